// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls: casts and constants of a type, functions, built-ins, operations, in that order.
#include "front/lower/builtin.h"
#include "front/lower/lower.h"

const struct ast_arg *call_named(const struct call *c, const char *name)
{
    vec_foreach(const struct ast_arg, it, &c->e->args)
        if (it->name && strcmp(it->name, name) == 0)
            return it;
    return NULL;
}

const struct ast_expr *call_arg(const struct call *c, uint32_t i)
{
    vec_foreach(const struct ast_arg, it, &c->e->args)
        if (!it->name && i-- == 0)
            return it->value;
    return NULL;
}

bool call_check(struct lower *l, const struct call *c, uint32_t least, uint32_t most,
                const char *const *named, uint32_t named_count)
{
    if (c->positional < least || c->positional > most) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS, "`%.64s` takes %u%s arguments, not %u", c->name,
                    c->positional < least ? least : most,
                    least == most           ? ""
                    : c->positional < least ? " or more"
                                            : " or fewer",
                    c->positional);
        return false;
    }
    vec_foreach(const struct ast_arg, it, &c->e->args) {
        bool known = !it->name;
        for (uint32_t i = 0; i < named_count; i++)
            known |= it->name && strcmp(it->name, named[i]) == 0;
        if (!known) {
            lower_error(l, it->span, TIR_E_ARGUMENTS, "`%.64s` has no argument named `%.64s`",
                        c->name, it->name);
            return false;
        }
    }
    return true;
}

// Built-ins.

struct builtin_row {
    const char *name;
    uint32_t least, most;
    builtin_fn *handler;
    int which;
};

static const struct builtin_row builtins[] = {
#define BUILTIN(name, least, most, handler, which) {#name, least, most, builtin_##handler, which},
#include "front/lower/builtin.def"
};

const char *const builtin_names[] = {
#define BUILTIN(name, least, most, handler, which) #name,
#include "front/lower/builtin.def"
    NULL};

bool lower_builtin_exists(const char *name)
{
    for (uint32_t i = 0; builtin_names[i]; i++)
        if (strcmp(builtin_names[i], name) == 0)
            return true;
    return false;
}

bool lower_builtin(struct lower *l, struct call *c, val_list *out, bool *ok)
{
    bool is_op = tir_op_by_name(tir_str_of(c->name)) != TIR_OP_COUNT;
    if (is_op && (call_named(c, "kind") || call_named(c, "text")))
        return false;
    for (uint32_t i = 0; i < TIR_COUNT_OF(builtins); i++) {
        const struct builtin_row *row = &builtins[i];
        if (strcmp(row->name, c->name) != 0)
            continue;
        if (c->positional >= row->least && c->positional <= row->most)
            *ok = row->handler(l, c, row->which, out);
        else if (is_op)
            return false;
        else
            *ok = call_check(l, c, row->least, row->most, NULL, 0);
        return true;
    }
    return false;
}

// Types as functions.

// T(x): a cast; T[m, n](x): that many times x.
static bool lower_type_call(struct lower *l, const struct ast_expr *e, const struct ast_type *t,
                            val_list *out)
{
    struct call c = {.e = e, .name = "a type", .positional = e->args.len};
    enum tir_elem elem;
    if (!call_check(l, &c, 1, 1, NULL, 0) || !lower_elem(l, t, &elem))
        return false;
    // The one place for integers beyond i64.
    const struct ast_expr *arg = e->args.at[0].value;
    struct val v;
    if (elem == TIR_U64 && arg->kind == AST_INT && arg->number > INT64_MAX)
        v = val_ir(
            tir_const_int(l->f, tir_type_scalar(l->cx->types, TIR_U64), (int64_t)arg->number));
    else
        v = lower_expr(l, arg);
    struct tir_value *x = convert_cast(l, arg->span, v, elem);
    if (x && (t->dims.len || t->space != TIR_SPACE_VALUE)) {
        const struct tir_type *type = lower_type(l, t);
        if (type && type->space != TIR_SPACE_VALUE) {
            lower_error(l, t->span, TIR_E_TYPE, "a buffer is no value");
            type = NULL;
        }
        x = type ? convert_to(l, arg->span, val_ir(x), type) : NULL;
    }
    if (x)
        vec_push(l->arena, out, val_ir(x));
    return x;
}

// T[m, n](x) where T is a meta: the indices are the sizes.
static bool lower_indexed_call(struct lower *l, const struct ast_expr *e, val_list *out)
{
    const struct ast_expr *callee = e->base;
    struct ast_type t = {.span = callee->span, .name = callee->base->name};
    vec_foreach(const struct ast_index, it, &callee->indices) {
        if (it->kind != AST_ONE) {
            lower_error(l, it->span, TIR_E_SLICE, "expected the size of a tile");
            return false;
        }
        vec_push(l->arena, &t.dims, it->first);
    }
    return lower_type_call(l, e, &t, out);
}

static bool is_type_name(struct lower *l, const struct ast_expr *e)
{
    if (e->kind != AST_NAME)
        return false;
    const struct symbol *s = scope_find(l, e->name);
    return s && s->val.kind == VAL_ELEM;
}

static bool lower_named_call(struct lower *l, struct call *c, val_list *out)
{
    struct ast_fn *fn = tir_map_get(&l->program->fns, tir_map_key(c->name));
    if (fn)
        return lower_fn_call(l, c, fn, out);
    bool ok;
    if (lower_builtin(l, c, out, &ok))
        return ok;
    enum tir_op op = tir_op_by_name(tir_str_of(c->name));
    if (op != TIR_OP_COUNT)
        return lower_op_call(l, c, op, out);
    scope_unknown_function(l, c->e->base->span, c->name);
    return false;
}

bool lower_call(struct lower *l, const struct ast_expr *e, const struct tir_type *const *stated,
                uint32_t stated_count, val_list *out)
{
    const struct ast_expr *callee = e->base;
    if (!lower_enter(l, e->span))
        return false;
    bool ok = false;
    if (callee->kind == AST_TYPE) {
        ok = lower_type_call(l, e, callee->type, out);
    } else if (is_type_name(l, callee)) {
        struct ast_type t = {.span = callee->span, .name = callee->name};
        ok = lower_type_call(l, e, &t, out);
    } else if (callee->kind == AST_INDEX && is_type_name(l, callee->base)) {
        ok = lower_indexed_call(l, e, out);
    } else if (callee->kind == AST_FIELD && lower_stage_of(l, callee)) {
        ok = lower_stage_call(l, e, lower_stage_of(l, callee));
    } else if (callee->kind == AST_NAME) {
        struct call c = {e, callee->name, 0, stated, stated_count};
        vec_foreach(const struct ast_arg, it, &e->args)
            c.positional += !it->name;
        ok = lower_named_call(l, &c, out);
    } else if (callee->kind != AST_ERROR) {
        lower_error(l, callee->span, TIR_E_TYPE, "this cannot be called");
    }
    lower_leave(l);
    return ok;
}
