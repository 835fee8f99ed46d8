// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements without blocks of their own, and lists of statements.
#include "front/lower/lower.h"

static void give_name(struct tir_value *v, const char *name)
{
    if (v->kind == TIR_VALUE_RESULT && !v->name)
        v->name = name;
}

void lower_assign(struct lower *l, struct symbol *symbol, struct tir_value *value)
{
    (void)l;
    give_name(value, symbol->name);
    symbol->val = val_ir(value);
}

// let

// With a type it may be IR text, where unused values are no mistake.
static void declare_let(struct lower *l, const struct ast_binding *b, struct val v)
{
    if (v.kind == VAL_IR)
        give_name(v.ir, b->name);
    scope_declare(l, b->name, b->span, v)->may_be_unused = b->type != NULL;
}

static void declare_poison(struct lower *l, const ast_bindings *names)
{
    vec_foreach(const struct ast_binding, it, names)
        scope_declare(l, it->name, it->span, val_poison());
}

// The types that a let states: for all names or none of them.
static bool stated_types(struct lower *l, const ast_bindings *names, const struct tir_type **types,
                         uint32_t *count)
{
    *count = 0;
    vec_foreach(const struct ast_binding, it, names) {
        if (!it->type)
            continue;
        const struct tir_type *type = lower_type(l, it->type);
        if (!type)
            return false;
        types[(*count)++] = type;
    }
    if (*count == 0 || *count == names->len)
        return true;
    lower_error(l, names->at[0].span, TIR_E_TYPE, "state the type of every name or of none");
    return false;
}

static struct val let_value(struct lower *l, const struct ast_expr *e, struct val v,
                            const struct tir_type *type)
{
    if (type)
        return val_ir(convert_to(l, e->span, v, type));
    if (v.kind == VAL_TEXT || v.kind == VAL_VOID) {
        lower_error(l, e->span, TIR_E_TYPE, "%s is not a value", lower_val_name(l, v));
        return val_poison();
    }
    return v;
}

static void lower_let(struct lower *l, const struct ast_stmt *s)
{
    const struct tir_type **types = arena_array(l->arena, const struct tir_type *, s->names.len);
    uint32_t stated;
    val_list values = {0};
    bool ok = stated_types(l, &s->names, types, &stated);
    ok = ok && lower_values(l, s->value, types, stated, &values);
    if (ok && values.len != s->names.len) {
        lower_error(l, s->span, TIR_E_ARGUMENTS, "%u value%s for %u name%s", values.len,
                    values.len == 1 ? "" : "s", s->names.len, s->names.len == 1 ? "" : "s");
        ok = false;
    }
    if (!ok) {
        declare_poison(l, &s->names);
        return;
    }
    for (uint32_t i = 0; i < values.len; i++)
        declare_let(l, &s->names.at[i],
                    let_value(l, s->value, values.at[i], stated ? types[i] : NULL));
}

// var

static void lower_var(struct lower *l, const struct ast_stmt *s)
{
    const struct ast_binding *b = &s->names.at[0];
    if (s->names.len != 1) {
        lower_error(l, s->span, TIR_E_ARGUMENTS, "`var` declares one name");
        declare_poison(l, &s->names);
        return;
    }
    const struct tir_type *type = b->type ? lower_type(l, b->type) : NULL;
    struct val v = lower_expr(l, s->value);
    struct tir_value *ir = NULL;
    if (type)
        ir = convert_to(l, s->value->span, v, type);
    else if (!b->type && convert_is_value(l, s->value->span, v))
        ir = convert_default(l, s->value->span, v);
    if (ir && ir->type->space != TIR_SPACE_VALUE) {
        lower_error(l, b->span, TIR_E_TYPE, "a variable holds a scalar or a tile, not a buffer");
        ir = NULL;
    }
    struct symbol *symbol = scope_declare(l, b->name, b->span, val_poison());
    symbol->assignable = true;
    symbol->may_be_unused = false;
    if (!ir)
        return;
    symbol->type = type ? type : ir->type;
    lower_assign(l, symbol, ir);
}

// Assignments.

static enum tir_token_kind operator_of(enum tir_token_kind op)
{
    switch (op) {
    case TIR_TOK_ADD_TO:
        return TIR_TOK_ADD;
    case TIR_TOK_SUB_TO:
        return TIR_TOK_SUB;
    case TIR_TOK_MUL_TO:
        return TIR_TOK_MUL;
    case TIR_TOK_DIV_TO:
        return TIR_TOK_DIV;
    default:
        return TIR_TOK_ASSIGN;
    }
}

// The assigned value: the value itself, or the target combined with it.
static struct val assigned_value(struct lower *l, const struct ast_stmt *s, struct val target)
{
    enum tir_token_kind op = operator_of(s->op);
    struct val v = lower_expr(l, s->value);
    if (op == TIR_TOK_ASSIGN)
        return v;
    struct ast_expr whole = {.kind = AST_BINARY, .span = s->span, .op = op};
    return lower_binary_vals(l, &whole, op, s->target, target, s->value, v);
}

static bool check_assignable(struct lower *l, const struct ast_stmt *s, const struct symbol *symbol)
{
    if (symbol->stages) {
        lower_error(l, s->target->span, TIR_E_ASSIGN, "a stage moves with `%s.advance()`",
                    symbol->name);
        return false;
    }
    if (!symbol->assignable) {
        lower_error(l, s->target->span, TIR_E_ASSIGN, "`%s` cannot be assigned", symbol->name);
        if (symbol->val.ir && symbol->val.ir->type->space != TIR_SPACE_VALUE)
            lower_note(l, symbol->span, "it is memory: a store says where, `%s[...] = x`",
                       symbol->name);
        else
            lower_note(l, symbol->span, "it is declared here; only `var` can be assigned");
        return false;
    }
    if (symbol->level == l->level)
        return true;
    lower_error(l, s->target->span, TIR_E_ASSIGN,
                l->scope_warps ? "`%s` is outside of the scope, whose groups of warps each run its "
                                 "block by themselves"
                : l->role      ? "`%s` is outside of the role, which runs beside the others"
                          : "`%s` is outside of the tiles loop, whose iterations run in parallel",
                symbol->name);
    lower_note(l, symbol->span, "it is declared here");
    return false;
}

static void assign_name(struct lower *l, const struct ast_stmt *s)
{
    struct symbol *symbol = scope_find(l, s->target->name);
    if (!symbol) {
        scope_unknown(l, s->target->span, s->target->name);
        lower_note(l, s->target->span, "`let` or `var` declares a name: `var %.64s = ...;`",
                   s->target->name);
        scope_declare(l, s->target->name, s->target->span, val_poison());
        return;
    }
    if (symbol->val.kind == VAL_POISON && !symbol->type) {
        lower_expr(l, s->value);
        return;
    }
    if (symbol->is_slot) {
        lower_fill_slot(l, s, symbol);
        return;
    }
    if (!check_assignable(l, s, symbol))
        return;
    struct val v = assigned_value(l, s, symbol->val);
    struct tir_value *ir = convert_to(l, s->value->span, v, symbol->type);
    if (ir && !tir_value_fits(ir, symbol->type))
        lower_error(l, s->target->span, TIR_E_ASSIGN,
                    "the value has a layout, the variable has none: `var %s: T in LAYOUT`",
                    symbol->name);
    else if (ir)
        lower_assign(l, symbol, ir);
    else if (v.kind != VAL_POISON)
        lower_note(l, symbol->span, "`%s` is %s", symbol->name, lower_type_name(l, symbol->type));
}

static void assign_slice(struct lower *l, const struct ast_stmt *s)
{
    struct slice slice;
    struct val old = val_poison();
    if (s->op != TIR_TOK_ASSIGN && !lower_slice(l, s->target, SLICE_READ, &slice))
        return;
    if (!lower_slice(l, s->target, SLICE_WRITE, &slice))
        return;
    if (s->op != TIR_TOK_ASSIGN)
        old = val_ir(build_load(l, &slice, NULL, NULL));
    struct val v = assigned_value(l, s, old);
    struct tir_value *ir = convert_to(l, s->value->span, v, slice.shown);
    if (ir)
        build_store(l, &slice, ir, NULL);
}

static void lower_assignment(struct lower *l, const struct ast_stmt *s)
{
    if (s->target->kind == AST_NAME)
        assign_name(l, s);
    else if (s->target->kind == AST_INDEX)
        assign_slice(l, s);
    else
        lower_error(l, s->target->span, TIR_E_ASSIGN, "only a variable or a slice can be assigned");
}

// The rest.

static void lower_buffer(struct lower *l, const struct ast_stmt *s)
{
    const struct ast_binding *b = &s->names.at[0];
    const struct tir_type *type = lower_type(l, b->type);
    if (type && type->rank == 0) {
        lower_error(l, b->type->span, TIR_E_RANK, "a buffer has at least one dimension");
        type = NULL;
    }
    if (!type) {
        declare_poison(l, &s->names);
        return;
    }
    struct tir_value *v = type->space == TIR_SPACE_TMEM ? lower_tmem(l, s, type)
                                                        : build_one(l, TIR_OP_ALLOC, type, NULL, 0);
    if (v)
        declare_let(l, b, val_ir(v));
    else
        declare_poison(l, &s->names);
}

static bool has_effect_from(const struct tir_inst *inst)
{
    for (; inst; inst = inst->next)
        if (tir_has_effect(inst))
            return true;
    return false;
}

// A call that gives a value and does nothing else was meant to be used: remote(b, 1);
static void lower_do(struct lower *l, const struct ast_stmt *s)
{
    val_list ignored = {0};
    const struct tir_block *block = l->b.block;
    const struct tir_inst *last = block->last;
    bool does = false;
    if (s->value->kind == AST_CALL)
        does = !lower_call(l, s->value, NULL, 0, &ignored) || !ignored.len || l->is_ir ||
               has_effect_from(last ? last->next : block->first);
    if (!does)
        lower_error(l, s->span, TIR_E_SYNTAX,
                    "this statement does nothing; a call or an assignment would");
}

static void lower_leave_loop(struct lower *l, const struct ast_stmt *s)
{
    bool is_break = s->kind == AST_BREAK;
    struct loop *loop = l->loop;
    if (!loop || !loop->live || (is_break && !loop->go_on)) {
        lower_error(l, s->span, TIR_E_SYNTAX,
                    "`%s` is not in a `for` or `while` that it could leave",
                    is_break ? "break" : "continue");
        lower_note(l, s->span,
                   "tiles run in parallel; an `if` around the rest leaves a tile early");
        return;
    }
    lower_assign(l, loop->live, tir_const_bool(l->f, false));
    if (is_break)
        lower_assign(l, loop->go_on, tir_const_bool(l->f, false));
}

static void lower_kind(struct lower *l, const struct ast_stmt *s)
{
    switch (s->kind) {
    case AST_LET:
        lower_let(l, s);
        break;
    case AST_VAR:
        lower_var(l, s);
        break;
    case AST_BUFFER:
        lower_buffer(l, s);
        break;
    case AST_SCRATCH:
        lower_scratch(l, s);
        break;
    case AST_ASSIGN:
        lower_assignment(l, s);
        break;
    case AST_DO:
        lower_do(l, s);
        break;
    case AST_FOR:
        lower_for(l, s);
        break;
    case AST_WHILE:
        lower_while(l, s);
        break;
    case AST_IF:
        lower_if(l, s);
        break;
    case AST_TILES:
        lower_tiles(l, s);
        break;
    case AST_ROLE:
        lower_role(l, s);
        break;
    case AST_SCOPE:
        lower_scope(l, s);
        break;
    case AST_RING:
        lower_ring(l, s);
        break;
    case AST_PUT:
        lower_put(l, s);
        break;
    case AST_GET:
        lower_get(l, s);
        break;
    case AST_MBARRIER:
        lower_mbarrier(l, s);
        break;
    case AST_STAGE:
        lower_stage(l, s);
        break;
    case AST_BREAK:
    case AST_CONTINUE:
        lower_leave_loop(l, s);
        break;
    case AST_RETURN:
        lower_error(l, s->span, TIR_E_RETURN, "`return` is only possible at the end of a function");
        lower_note(
            l, s->span,
            "in a kernel an `if` around the rest ends early; in a function `c ? x : y` chooses");
        break;
    case AST_YIELD:
        lower_error(l, s->span, TIR_E_RETURN,
                    "`yield` is only possible at the end of a block that "
                    "gives values");
        break;
    }
}

void lower_stmt(struct lower *l, const struct ast_stmt *s)
{
    if (!lower_enter(l, s->span))
        return;
    struct tir_span outer = l->b.span;
    l->b.span = s->span;
    if (l->roles.len && l->b.block == l->f->body && s->kind != AST_ROLE)
        lower_error(l, s->span, TIR_E_ROLE, "after a role only roles may follow");
    else
        lower_kind(l, s);
    l->b.span = outer;
    lower_leave(l);
}

void lower_stmts(struct lower *l, const struct ast_block *block, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end && !l->stopped; i++) {
        const struct ast_stmt *s = block->stmts.at[i];
        lower_stmt(l, s);
        if (!l->loop || !l->loop->live || !may_leave(s))
            continue;
        int64_t live;
        if (!tir_is_const_int(l->loop->live->val.ir, &live)) {
            lower_guarded(l, block, i + 1, end);
            return;
        }
        if (!live) { // the rest is never reached
            uses_in(l, block, i + 1);
            return;
        }
    }
}

void lower_block(struct lower *l, const struct ast_block *block)
{
    struct symbol *scope = scope_enter(l);
    lower_stmts(l, block, 0, block->stmts.len);
    scope_leave(l, scope);
}

bool lower_yielding(struct lower *l, const struct ast_block *block, struct tir_span span,
                    const struct tir_type *const *types, uint32_t count, struct tir_value **out)
{
    uint32_t end = block->stmts.len;
    const struct ast_stmt *last = end ? vec_last(&block->stmts) : NULL;
    bool yields = last && last->kind == AST_YIELD;
    lower_stmts(l, block, 0, yields ? end - 1 : end);
    uint32_t given = yields ? last->values.len : 0;
    if (given != count) {
        lower_error(l, yields ? last->span : span, TIR_E_RETURN,
                    "the block yields %u values; %u are needed", given, count);
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct ast_expr *e = last->values.at[i];
        out[i] = convert_to(l, e->span, lower_expr(l, e), types[i]);
        ok &= out[i] != NULL;
    }
    return ok;
}
