// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which variables a block assigns, and whether it can leave its loop: what a loop or branch must
// know before its block is lowered.
#include "front/lower/lower.h"

struct walk {
    struct lower *l;
    symbol_list *out;
    VEC(const char *) hidden; // names declared inside the block, which hide outer ones
    const struct loop
        *loop; // the loop that a break or continue met here leaves; NULL: an inner one
};

static void walk_block(struct walk *w, const struct ast_block *block, uint32_t first);

static void add(struct walk *w, struct symbol *s)
{
    vec_foreach(struct symbol *, it, w->out)
        if (*it == s)
            return;
    vec_push(w->l->arena, w->out, s);
}

static void assign(struct walk *w, const char *name)
{
    vec_foreach(const char *, it, &w->hidden)
        if (*it == name)
            return;
    struct symbol *s = tir_map_get(&w->l->names, tir_map_key(name));
    if (s && s->assignable)
        add(w, s);
}

static void hide(struct walk *w, const ast_bindings *names)
{
    vec_foreach(struct ast_binding, it, names)
        vec_push(w->l->arena, &w->hidden, it->name);
}

static void leave(struct walk *w, bool is_break)
{
    if (!w->loop || !w->loop->live)
        return;
    add(w, w->loop->live);
    if (is_break && w->loop->go_on)
        add(w, w->loop->go_on);
}

// The buffers of the ring, by which its slot is called.
static void hide_slots(struct walk *w, const char *ring)
{
    const struct symbol *s = tir_map_get(&w->l->names, tir_map_key(ring));
    if (s && s->val.kind == VAL_RING)
        hide(w, s->val.ring->buffers);
}

// s.advance(), gemm_async(acc, a, b), await(x, y)
static void assign_by_call(struct walk *w, const struct ast_expr *e)
{
    if (e->kind != AST_CALL)
        return;
    if (e->base->kind == AST_FIELD && e->base->base->kind == AST_NAME) {
        const char *name = e->base->base->name;
        assign(w, name);
        assign(w, stage_phase_name(w->l, name));
        return;
    }
    const char *name;
    for (uint32_t i = 0; (name = assigned_by_call(w->l, e, i)); i++)
        assign(w, name);
}

static void walk_stmt(struct walk *w, const struct ast_stmt *s)
{
    const struct loop *loop = w->loop;
    uint32_t hidden = w->hidden.len;
    switch (s->kind) {
    case AST_ASSIGN:
        if (s->target->kind == AST_NAME)
            assign(w, s->target->name);
        return;
    case AST_LET:
    case AST_VAR:
    case AST_BUFFER:
    case AST_SCRATCH:
    case AST_RING:
    case AST_MBARRIER:
    case AST_STAGE:
        hide(w, &s->names);
        return;
    case AST_BREAK:
    case AST_CONTINUE:
        leave(w, s->kind == AST_BREAK);
        return;
    case AST_FOR:
    case AST_WHILE:
    case AST_TILES:
    case AST_ROLE:
    case AST_SCOPE:
        w->loop = NULL;
        hide(w, &s->vars);
        hide(w, &s->carry);
        break;
    case AST_PUT:
    case AST_GET:
        w->loop = NULL;
        hide_slots(w, s->name);
        break;
    case AST_IF:
        break;
    case AST_DO:
        assign_by_call(w, s->value);
        return;
    case AST_RETURN:
    case AST_YIELD:
        return;
    }
    walk_block(w, s->body, 0);
    if (s->other)
        walk_block(w, s->other, 0);
    w->loop = loop;
    w->hidden.len = hidden;
    hide(w, &s->names);
}

static void walk_block(struct walk *w, const struct ast_block *block, uint32_t first)
{
    uint32_t hidden = w->hidden.len;
    for (uint32_t i = first; i < block->stmts.len; i++)
        walk_stmt(w, block->stmts.at[i]);
    w->hidden.len = hidden;
}

void assigned_in(struct lower *l, const struct ast_block *a, const struct ast_block *b,
                 symbol_list *out)
{
    struct walk w = {.l = l, .out = out, .loop = l->loop};
    walk_block(&w, a, 0);
    if (b)
        walk_block(&w, b, 0);
}

void assigned_from(struct lower *l, const struct ast_block *block, uint32_t first, symbol_list *out)
{
    struct walk w = {.l = l, .out = out, .loop = l->loop};
    walk_block(&w, block, first);
}

static bool block_has(const struct ast_block *block, bool breaks_only);

static bool stmt_has(const struct ast_stmt *s, bool breaks_only)
{
    if (s->kind == AST_BREAK || (s->kind == AST_CONTINUE && !breaks_only))
        return true;
    return s->kind == AST_IF &&
           (block_has(s->body, breaks_only) || (s->other && block_has(s->other, breaks_only)));
}

static bool block_has(const struct ast_block *block, bool breaks_only)
{
    vec_foreach(struct ast_stmt *, it, &block->stmts)
        if (stmt_has(*it, breaks_only))
            return true;
    return false;
}

bool has_break(const struct ast_block *block)
{
    return block_has(block, true);
}

bool may_leave(const struct ast_stmt *s)
{
    return stmt_has(s, false);
}

bool block_may_leave(const struct ast_block *block)
{
    return block_has(block, false);
}
