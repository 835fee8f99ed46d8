// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls: casts and constants of a type, functions, built-ins, operations, in that order.
#include "front/lower/builtin.h"
#include "front/lower/lower.h"
#include "front/parse/foreign.h"

static const char *const arg_names[] = {
#define NAMED(name) #name,
#include "front/lower/builtin.def"
};

const struct ast_arg *call_named(const struct call *c, const char *name)
{
    return arg_named(&c->e->args, name);
}

const struct ast_expr *call_arg(const struct call *c, uint32_t i)
{
    vec_foreach(const struct ast_arg, it, &c->e->args)
        if (!it->name && i-- == 0)
            return it->value;
    return NULL;
}

// sum(x, 1) or scan(x, 1, f), where the axis is an argument by name.
static void suggest_axis(struct lower *l, const struct call *c, uint32_t most, uint32_t named)
{
    const struct ast_expr *axis = NULL;
    for (uint32_t i = 1; i < c->positional && !axis; i++)
        axis = call_arg(c, i)->kind == AST_INT ? call_arg(c, i) : NULL;
    if (!axis || c->positional != most + 1 || !(named >> NAMED_axis & 1) || call_named(c, "axis"))
        return;
    tir_str text = tir_source_text(&l->cx->sources, axis->span);
    tir_fix_at(&l->cx->diags, axis->span,
               tir_str_format(l->arena, "axis = " STR_FMT, STR_ARG(text)).ptr,
               "the axis is given by name");
}

// named: bit for bit what it takes by name.
static bool check_arguments(struct lower *l, const struct call *c, uint32_t fewest, uint32_t most,
                            uint32_t named)
{
    if (c->positional < fewest || c->positional > most) {
        lower_error(l, c->e->span, TIR_E_ARGUMENTS, "`%.64s` takes %u%s arguments, not %u", c->name,
                    c->positional < fewest ? fewest : most,
                    fewest == most           ? ""
                    : c->positional < fewest ? " or more"
                                             : " or fewer",
                    c->positional);
        suggest_axis(l, c, most, named);
        return false;
    }
    struct name_list names = {.owner = c->name, .what = "argument named"};
    for (uint32_t i = 0; i < NAMED_COUNT; i++)
        if (named >> i & 1)
            vec_push(l->arena, &names.names, arg_names[i]);
    if (named == 1u << NAMED_out)
        names.repeats = arg_names[NAMED_out];
    return lower_check_names(l, &c->e->args, &names);
}

// Built-ins.

const struct builtin builtins[BUILTIN_COUNT] = {
#define BY_NAME(name) (1u << NAMED_##name)
#define BUILTIN(name, fewest, most, named, handler, which) \
    {#name, fewest, most, named, builtin_##handler, which},
#include "front/lower/builtin.def"
};

const struct builtin *builtin_find(const char *name)
{
    for (uint32_t i = 0; i < BUILTIN_COUNT; i++)
        if (tir_str_is(tir_str_of(name), builtins[i].name))
            return &builtins[i];
    return NULL;
}

const struct ast_expr *builtin_named(const struct call *c, enum named_arg name)
{
    const struct ast_arg *arg = call_named(c, arg_names[name]);
    return arg ? arg->value : NULL;
}

// A value hides the function of its name.
static bool names_function(struct lower *l, const struct ast_expr *e)
{
    const struct symbol *s = e->kind == AST_NAME ? scope_find(l, e->name) : NULL;
    return !(s && s->val.kind != VAL_FN) && lower_fn_value(l, e);
}

// Does the call mean the operation where a built-in has its name, too? That one takes no functions.
static bool means_operation(struct lower *l, const struct call *c, const struct builtin *b)
{
    for (uint32_t i = 0; i < c->positional && !l->is_ir; i++)
        if (names_function(l, call_arg(c, i)))
            return false;
    return l->is_ir || call_named(c, tir_attr_infos[TIR_ATTR_kind].name) ||
           call_named(c, tir_attr_infos[TIR_ATTR_text].name) || c->positional < b->fewest ||
           c->positional > b->most;
}

bool lower_builtin(struct lower *l, struct call *c, val_list *out, bool *ok)
{
    const struct builtin *b = builtin_find(c->name);
    if (!b || (tir_op_by_name(tir_str_of(c->name)) != TIR_OP_COUNT && means_operation(l, c, b)))
        return false;
    *ok = check_arguments(l, c, b->fewest, b->most, b->named) && b->handler(l, c, b->which, out);
    return true;
}

// Types as functions.

// T(x): a cast; T[m, n](x): that many times x.
static bool lower_type_call(struct lower *l, const struct ast_expr *e, const struct ast_type *t,
                            val_list *out)
{
    struct call c = {.e = e, .name = t->name ? t->name : tir_elems[t->elem].name};
    enum tir_elem elem;
    vec_foreach(const struct ast_arg, it, &e->args)
        c.positional += !it->name;
    if (!check_arguments(l, &c, 1, 1, 0) || !lower_elem(l, t, &elem))
        return false;
    const struct ast_expr *arg = e->args.at[0].value;
    if (arg->kind == AST_INT && arg->number > INT64_MAX && tir_elem_is_int(elem) &&
        elem != TIR_U64) {
        lower_error(l, arg->span, TIR_E_OVERFLOW, "%llu does not fit in %s",
                    (unsigned long long)arg->number, tir_elems[elem].name);
        return false;
    }
    struct val v = lower_expr(l, arg);
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

// Functions.

// `x` of `x.f`, where it is a module.
static const struct module *module_of(struct lower *l, const struct ast_expr *e)
{
    if (e->kind != AST_FIELD || e->base->kind != AST_NAME)
        return NULL;
    const struct symbol *s = scope_find(l, e->base->name);
    return s && s->val.kind == VAL_MODULE ? s->val.module : NULL;
}

const struct fn_value *lower_fn_value(struct lower *l, const struct ast_expr *e)
{
    const struct module *m = module_of(l, e);
    if (!m && e->kind != AST_NAME)
        return NULL;
    const char *name = m ? e->field : e->name;
    struct symbol *s = m ? NULL : scope_find(l, name);
    if (s && s->val.kind == VAL_FN) {
        s->used = true;
        return s->val.fn;
    }
    struct ast_fn *fn = tir_map_get(m ? &m->fns : &l->home->fns, tir_map_key(name));
    const bool is_known =
        fn || (!m && (builtin_find(name) || tir_op_by_name(tir_str_of(name)) != TIR_OP_COUNT));
    if (!is_known && !m)
        fn = tir_map_get(&lower_standard(l)->fns, tir_map_key(name));
    if (!fn && !is_known)
        return NULL;
    struct fn_value *v = arena_new(l->arena, struct fn_value);
    *v = (struct fn_value){.fn = fn, .name = name};
    return v;
}

static bool call_by_signature(struct lower *l, struct call *c, const struct fn_value *fn,
                              val_list *out);

static bool lower_named_call(struct lower *l, struct call *c, const struct fn_value *fn,
                             val_list *out)
{
    if (fn->signature)
        return call_by_signature(l, c, fn, out);
    if (fn->fn)
        return lower_fn_call(l, c, fn, out);
    bool ok;
    if (lower_builtin(l, c, out, &ok))
        return ok;
    return lower_op_call(l, c, tir_op_by_name(tir_str_of(c->name)), out);
}

// A scalar type is that of the elements; any shape has them.
static struct val as_stated(struct lower *l, struct tir_span span, struct val v,
                            const struct ast_type *stated)
{
    const struct tir_type *type = lower_type(l, stated);
    if (!type)
        return val_poison();
    return val_ir(type->rank ? convert_to(l, span, v, type) : convert_elem(l, span, v, type->elem));
}

// The arguments become what the signature says before the function is called on them, by names of
// their own, and so does its result.
static bool call_by_signature(struct lower *l, struct call *c, const struct fn_value *fn,
                              val_list *out)
{
    const struct ast_signature *s = fn->signature;
    struct call inner = {.name = fn->name, .positional = s->params.len};
    if (!check_arguments(l, c, s->params.len, s->params.len, 0))
        return false;
    struct ast_expr *e = arena_new(l->arena, struct ast_expr);
    *e = (struct ast_expr){.kind = AST_CALL, .span = c->e->span, .base = c->e->base};
    inner.e = e;
    struct symbol *scope = scope_enter(l);
    bool ok = true;
    for (uint32_t i = 0; i < s->params.len; i++) {
        const struct ast_expr *arg = call_arg(c, i);
        struct val v = as_stated(l, arg->span, lower_expr(l, arg), s->params.at[i]);
        const char *name =
            tir_intern(&l->cx->names, tir_str_format(l->arena, "argument %u", i + 1));
        ok &= v.kind != VAL_POISON;
        scope_declare(l, name, arg->span, v);
        struct ast_expr *by_name = arena_new(l->arena, struct ast_expr);
        *by_name = (struct ast_expr){.kind = AST_NAME, .span = arg->span, .name = name};
        vec_push(l->arena, &e->args, ((struct ast_arg){.span = arg->span, .value = by_name}));
    }
    struct fn_value plain = {.fn = fn->fn, .name = fn->name};
    val_list results = {0};
    ok = ok && lower_named_call(l, &inner, &plain, &results);
    scope_leave(l, scope);
    if (ok && s->results.len && results.len != s->results.len) {
        lower_error(l, c->e->span, TIR_E_RETURN, "`%s` returns %u values where %u is needed",
                    fn->name, results.len, s->results.len);
        ok = false;
    }
    for (uint32_t i = 0; ok && i < results.len; i++) {
        struct val v = results.at[i];
        if (s->results.len)
            v = as_stated(l, c->e->span, v, s->results.at[i]);
        ok = v.kind != VAL_POISON;
        vec_push(l->arena, out, v);
    }
    return ok;
}

// x.sum(axis = 1), as it is written elsewhere.
static void refuse_method(struct lower *l, const struct ast_expr *e)
{
    const struct ast_expr *callee = e->base;
    struct ast_expr function = {.kind = AST_NAME, .span = callee->span, .name = callee->field};
    tir_str value = tir_source_text(&l->cx->sources, callee->base->span);
    lower_error(l, callee->span, TIR_E_TYPE, "this cannot be called: a value has no methods");
    if (lower_fn_value(l, &function) && value.len && value.len < 80)
        tir_note_at(&l->cx->diags, callee->span, "the function is `%.64s(" STR_FMT "%s)`",
                    callee->field, STR_ARG(value), e->args.len ? ", ..." : "");
    else
        tir_foreign_help(&l->cx->diags, callee->span, callee->field);
}

static bool lower_function_call(struct lower *l, const struct ast_expr *e,
                                const struct tir_type *const *stated, uint32_t stated_count,
                                val_list *out)
{
    const struct ast_expr *callee = e->base;
    const struct fn_value *fn = lower_fn_value(l, callee);
    const struct module *m = module_of(l, callee);
    if (!fn && (callee->kind == AST_NAME || m)) {
        scope_unknown_function(l, m ? m : l->home, callee);
        return false;
    }
    if (!fn && callee->kind == AST_FIELD && callee->base->kind == AST_NAME &&
        !scope_find(l, callee->base->name)) {
        scope_unknown_prefix(l, callee);
        return false;
    }
    if (!fn) {
        if (callee->kind == AST_FIELD)
            refuse_method(l, e);
        else if (callee->kind != AST_ERROR)
            lower_error(l, callee->span, TIR_E_TYPE, "this cannot be called");
        return false;
    }
    struct call c = {e, fn->name, 0, stated, stated_count};
    vec_foreach(const struct ast_arg, it, &e->args)
        c.positional += !it->name;
    return lower_named_call(l, &c, fn, out);
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
    } else {
        ok = lower_function_call(l, e, stated, stated_count, out);
    }
    lower_leave(l);
    return ok;
}
