// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names that text mentions but that is not lowered: the side of a compile-time branch that is not
// taken. What is used only there is used all the same, with other metas.
#include "front/lower/lower.h"

static void use_block(struct lower *l, const struct ast_block *block);

static void use_name(struct lower *l, const char *name)
{
    struct symbol *s = tir_map_get(&l->names, tir_map_key(name));
    if (s)
        s->used = true;
}

static void use_type(struct lower *l, const struct ast_type *t)
{
    if (!t)
        return;
    if (t->name)
        use_name(l, t->name);
    vec_foreach(struct ast_expr *, it, &t->dims)
        uses_of(l, *it);
    if (!t->layout)
        return;
    const ast_iters *const iters[] = {&t->layout->iters, &t->layout->replicas};
    for (uint32_t i = 0; i < TIR_COUNT_OF(iters); i++)
        vec_foreach(const struct ast_iter, it, iters[i]) {
            uses_of(l, it->extent);
            uses_of(l, it->stride);
        }
    uses_of(l, t->layout->swizzle);
    uses_of(l, t->layout->value);
}

void uses_of(struct lower *l, const struct ast_expr *e)
{
    if (!e)
        return;
    switch (e->kind) {
    case AST_NAME:
        use_name(l, e->name);
        break;
    case AST_TYPE:
        use_type(l, e->type);
        break;
    case AST_LIST:
        vec_foreach(struct ast_expr *, it, &e->items)
            uses_of(l, *it);
        break;
    case AST_UNARY:
    case AST_BINARY:
    case AST_CHOOSE:
        uses_of(l, e->a);
        uses_of(l, e->b);
        uses_of(l, e->c);
        break;
    case AST_CALL:
    case AST_INDEX:
    case AST_FIELD:
        uses_of(l, e->base);
        vec_foreach(struct ast_arg, it, &e->args)
            uses_of(l, it->value);
        vec_foreach(struct ast_index, it, &e->indices) {
            uses_of(l, it->first);
            uses_of(l, it->second);
            uses_of(l, it->stride);
        }
        break;
    default:
        break;
    }
}

static void use_bindings(struct lower *l, const ast_bindings *bindings)
{
    vec_foreach(const struct ast_binding, it, bindings) {
        use_type(l, it->type);
        uses_of(l, it->value);
    }
}

static void use_stmt(struct lower *l, const struct ast_stmt *s)
{
    if (s->name)
        use_name(l, s->name);
    use_bindings(l, &s->names);
    use_bindings(l, &s->vars);
    use_bindings(l, &s->carry);
    uses_of(l, s->value);
    uses_of(l, s->target);
    vec_foreach(struct ast_expr *, it, &s->values)
        uses_of(l, *it);
    vec_foreach(const struct ast_extent, it, &s->extents) {
        uses_of(l, it->extent);
        uses_of(l, it->by);
    }
    vec_foreach(const struct ast_arg, it, &s->options)
        uses_of(l, it->value);
    if (s->body)
        use_block(l, s->body);
    if (s->other)
        use_block(l, s->other);
}

static void use_block(struct lower *l, const struct ast_block *block)
{
    vec_foreach(struct ast_stmt *, it, &block->stmts)
        use_stmt(l, *it);
}

void uses_in(struct lower *l, const struct ast_block *block, uint32_t first)
{
    for (uint32_t i = first; block && i < block->stmts.len; i++)
        use_stmt(l, block->stmts.at[i]);
}
