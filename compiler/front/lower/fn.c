// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions: inlined by lowering their body in a scope that sees only the program's constants.
// Metas come from the call by name, else from the types of the arguments, else from their default.
#include "front/lower/lower.h"
#include "ir/follow.h"

enum { FEW_NAMES = 8 }; // that a body declares beside its parameters

struct saved { // what an inlined body must not see
    const struct module *home;
    struct tir_map names;
    struct symbol *scope;
    struct loop *loop;
};

static bool is_unbound(struct lower *l, const struct ast_fn *fn, const char *name)
{
    vec_foreach(const struct ast_binding, it, &fn->metas)
        if (it->name == name)
            return !tir_map_get(&l->names, tir_map_key(name));
    return false;
}

static bool is_tensor(struct val v)
{
    return v.kind == VAL_IR && v.ir->type->space == TIR_SPACE_GLOBAL;
}

// The size of an argument along dimension d; of a tensor it may be known at launch alone.
static struct val extent_of(struct lower *l, struct val arg, uint32_t d)
{
    return is_tensor(arg) ? tensor_extent(l, arg.ir, d) : val_int(arg.ir->type->shape[d]);
}

// Binds the metas that the type of a parameter names, `x: T[M, N]`, and sizes that have no meaning
// yet.
static void bind_from_type(struct lower *l, const struct ast_fn *fn, const struct ast_type *t,
                           struct val arg)
{
    if (!t || t->fn || arg.kind != VAL_IR)
        return;
    const struct tir_type *type = arg.ir->type;
    if (t->elem == TIR_NONE && is_unbound(l, fn, t->name))
        scope_declare(l, t->name, t->span, (struct val){.kind = VAL_ELEM, .elem = type->elem});
    for (uint32_t d = 0; d < t->dims.len && d < type->rank; d++) {
        const struct ast_expr *dim = t->dims.at[d];
        bool is_new =
            dim->kind == AST_NAME && (is_unbound(l, fn, dim->name) || !scope_find(l, dim->name));
        if (is_new) {
            scope_declare(l, dim->name, dim->span, extent_of(l, arg, d));
            continue;
        }
        struct val v;
        bool is_multiple;
        const char *name = lower_solve(l, dim, extent_of(l, arg, d), &v, &is_multiple);
        if (name)
            scope_declare(l, name, dim->span, v);
    }
}

static bool bind_metas(struct lower *l, struct tir_span span, const struct ast_fn *fn,
                       const val_list *args)
{
    assert(args->at || !fn->params.len);
    for (uint32_t i = 0; i < fn->params.len; i++)
        bind_from_type(l, fn, fn->params.at[i].type, args->at[i]);
    vec_foreach(const struct ast_binding, it, &fn->metas) {
        if (!is_unbound(l, fn, it->name))
            continue;
        if (!it->value) {
            lower_error(l, span, TIR_E_META, "nothing says what meta `%s` of `%s` is", it->name,
                        fn->name);
            return false;
        }
        struct val v = lower_expr(l, it->value);
        scope_declare(l, it->name, it->span, v);
    }
    return true;
}

static bool is_buffer_type(const struct ast_type *t)
{
    return t && t->space != TIR_SPACE_VALUE;
}

// A buffer, or a part of one, stands for itself, in the layout that it has.
static struct tir_value *bind_buffer(struct lower *l, struct tir_span span,
                                     const struct ast_binding *param, struct val v,
                                     const struct tir_type *type)
{
    const struct tir_type *given = v.kind == VAL_IR ? v.ir->type : NULL;
    if (type->layout) {
        lower_error(l, param->type->layout->span, TIR_E_TYPE,
                    "`%s` has the layout of the buffer it is given; none can be stated here",
                    param->name);
        return NULL;
    }
    if (given && given->space == type->space && given->elem == type->elem &&
        tir_type_same_shape(given, type))
        return v.ir;
    if (v.kind != VAL_POISON) {
        lower_error(l, span, TIR_E_TYPE, "`%s` is %s, not %s", param->name,
                    lower_type_name(l, type), lower_val_name(l, v));
        lower_note(l, param->span, "declared here");
    }
    return NULL;
}

// Are two sizes the same, whatever the launch?
static bool same_size(struct lower *l, struct val a, struct val b)
{
    if (a.kind == VAL_INT || b.kind == VAL_INT)
        return a.kind == b.kind && a.i == b.i;
    return a.kind == VAL_IR && b.kind == VAL_IR && tir_same_value(l->arena, a.ir, b.ir);
}

// A tensor stands for itself. Its element type and its sizes are those of the parameter's type: a
// size that is known at launch alone needs a name of its own there.
static struct val bind_tensor(struct lower *l, struct tir_span at, const struct ast_binding *param,
                              struct val v)
{
    const struct ast_type *t = param->type;
    const struct tir_type *given = v.ir->type;
    enum tir_elem elem;
    if (!lower_elem(l, t, &elem))
        return val_poison();
    if (elem != given->elem || t->dims.len != given->rank) {
        lower_error(l, at, TIR_E_TYPE, "`%s` is a tensor of %s of %u dimensions, not of %s of %u",
                    param->name, tir_elems[elem].name, t->dims.len, tir_elems[given->elem].name,
                    given->rank);
        lower_note(l, param->span, "declared here");
        return val_poison();
    }
    for (uint32_t d = 0; d < t->dims.len; d++) {
        struct val stated = lower_expr(l, t->dims.at[d]);
        if (stated.kind == VAL_POISON)
            return stated;
        if (!same_size(l, stated, extent_of(l, v, d))) {
            lower_error(l, at, TIR_E_TYPE,
                        "dimension %u of the tensor is not known to be that of `%s`", d,
                        param->name);
            lower_note(l, t->dims.at[d]->span, "declared here");
            return val_poison();
        }
    }
    return v;
}

static uint32_t required(const struct ast_fn *fn)
{
    uint32_t count = fn->params.len;
    while (count && fn->params.at[count - 1].value)
        count--;
    return count;
}

// A function for a parameter that is one; it is called as the parameter's type says.
static struct val bind_function(struct lower *l, struct tir_span span,
                                const struct ast_binding *param, struct val v)
{
    const struct ast_signature *s = param->type->fn;
    if (v.kind != VAL_FN) {
        if (v.kind != VAL_POISON)
            lower_error(l, span, TIR_E_TYPE, "`%s` is a function, not %s", param->name,
                        lower_val_name(l, v));
        return val_poison();
    }
    const struct ast_fn *fn = v.fn->fn;
    if (fn && (s->params.len < required(fn) || s->params.len > fn->params.len)) {
        lower_error(l, span, TIR_E_ARGUMENTS,
                    "`%s` takes %u arguments where `%s` is called with %u", fn->name,
                    fn->params.len, param->name, s->params.len);
        lower_note(l, fn->span, "`%s` is defined here", fn->name);
        return val_poison();
    }
    struct fn_value *f = arena_new(l->arena, struct fn_value);
    *f = (struct fn_value){v.fn->fn, v.fn->name, s};
    return (struct val){.kind = VAL_FN, .fn = f};
}

// An argument as what the parameter's type says. A scalar type takes a tile too: the body then
// works on each of its elements.
static struct val bind_value(struct lower *l, struct tir_span at, const struct ast_binding *param,
                             struct val v)
{
    if (!param->type)
        return v;
    if (param->type->fn)
        return bind_function(l, at, param, v);
    if (is_tensor(v) && param->type->dims.len && !is_buffer_type(param->type))
        return bind_tensor(l, at, param, v);
    const struct tir_type *type = lower_type(l, param->type);
    if (!type)
        return val_poison();
    if (is_buffer_type(param->type))
        return val_ir(bind_buffer(l, at, param, v, type));
    if (!type->rank && v.kind == VAL_IR && tir_type_is_tile(v.ir->type)) {
        l->calls->by_element = true;
        return val_ir(convert_elem(l, at, v, type->elem));
    }
    return val_ir(convert_to(l, at, v, type));
}

// The argument for parameter i, as it is written. NULL: it is not.
static const struct ast_expr *written(const struct call *call, const struct ast_fn *fn, uint32_t i)
{
    const struct ast_arg *named = call ? arg_interned(&call->e->args, fn->params.at[i].name) : NULL;
    return named ? named->value : call ? call_arg(call, i) : NULL;
}

static bool bind_params(struct lower *l, struct tir_span span, const struct ast_fn *fn,
                        const val_list *args, const struct call *call)
{
    assert(args->at || !fn->params.len);
    for (uint32_t i = 0; i < fn->params.len; i++) {
        const struct ast_binding *param = &fn->params.at[i];
        const struct ast_expr *e = written(call, fn, i);
        struct val v = args->at[i];
        if (v.kind == VAL_ABSENT)
            v = lower_expr(l, param->value);
        v = bind_value(l, e ? e->span : span, param, v);
        if (v.kind == VAL_POISON)
            return false;
        scope_declare(l, param->name, param->span, v);
    }
    return true;
}

static bool check_results(struct lower *l, const struct ast_fn *fn, const struct ast_stmt *ret,
                          uint32_t count)
{
    if (!fn->results.len || fn->results.len == count)
        return true;
    lower_error(l, ret ? ret->span : fn->span, TIR_E_RETURN,
                "`%s` says it returns %u values, but returns %u", fn->name, fn->results.len, count);
    return false;
}

// The values of a `return`: one of each expression, or all of one call or choice.
static bool returned_values(struct lower *l, const struct ast_stmt *ret, val_list *out)
{
    if (ret && ret->values.len == 1)
        return lower_values(l, ret->values.at[0], NULL, 0, out);
    bool ok = true;
    for (uint32_t i = 0; ret && i < ret->values.len; i++) {
        vec_push(l->arena, out, lower_expr(l, ret->values.at[i]));
        ok &= out->at[i].kind != VAL_POISON;
    }
    return ok;
}

static bool lower_return(struct lower *l, const struct ast_fn *fn, const struct ast_stmt *ret,
                         val_list *results)
{
    val_list values = {0};
    if (!returned_values(l, ret, &values) || !check_results(l, fn, ret, values.len))
        return false;
    for (uint32_t i = 0; i < values.len; i++) {
        struct tir_span at = ret->values.at[ret->values.len == 1 ? 0 : i]->span;
        struct val v = values.at[i];
        if (fn->results.len) {
            const struct tir_type *type = lower_type(l, fn->results.at[i]);
            bool by_element = type && !type->rank && l->calls->by_element && v.kind == VAL_IR;
            v = !type        ? val_poison()
                : by_element ? val_ir(convert_elem(l, at, v, type->elem))
                             : val_ir(convert_to(l, at, v, type));
        }
        if (v.kind == VAL_POISON)
            return false;
        vec_push(l->arena, results, v);
    }
    return true;
}

static bool lower_body(struct lower *l, const struct ast_fn *fn, val_list *results)
{
    const struct ast_block *body = fn->body;
    uint32_t end = body->stmts.len, errors = l->cx->diags.error_count;
    const struct ast_stmt *ret =
        end && vec_last(&body->stmts)->kind == AST_RETURN ? vec_last(&body->stmts) : NULL;
    lower_stmts(l, body, 0, ret ? end - 1 : end);
    return lower_return(l, fn, ret, results) && l->cx->diags.error_count == errors;
}

// ": `axis` is missing", of the first parameter that has neither an argument nor a default.
static const char *first_missing(struct lower *l, const struct ast_fn *fn, const val_list *args)
{
    for (uint32_t i = 0; i < fn->params.len; i++)
        if (!fn->params.at[i].value && (i >= args->len || args->at[i].kind == VAL_ABSENT))
            return tir_str_format(l->arena, ": `%s` is missing", fn->params.at[i].name).ptr;
    return "";
}

// Is there an argument, or a default, for each parameter?
static bool is_complete(struct lower *l, struct tir_span span, const struct ast_fn *fn,
                        const val_list *args)
{
    uint32_t given = 0, least = required(fn), most = fn->params.len;
    bool ok = args->len == most;
    for (uint32_t i = 0; i < args->len; i++) {
        bool absent = args->at[i].kind == VAL_ABSENT;
        given += !absent;
        ok &= !absent || (i < most && fn->params.at[i].value);
    }
    if (ok)
        return true;
    const char *missing = first_missing(l, fn, args);
    if (least == most)
        lower_error(l, span, TIR_E_ARGUMENTS, "`%s` takes %u argument%s, not %u%s", fn->name, most,
                    most == 1 ? "" : "s", given, missing);
    else
        lower_error(l, span, TIR_E_ARGUMENTS, "`%s` takes %u to %u arguments, not %u%s", fn->name,
                    least, most, given, missing);
    lower_note(l, fn->span, "`%s` is defined here", fn->name);
    return false;
}

bool lower_inline(struct lower *l, struct tir_span span, struct ast_fn *fn, const val_list *args,
                  const struct call *call, val_list *results)
{
    if (fn->active) {
        lower_error(l, span, TIR_E_RECURSION, "`%s` calls itself; functions are inlined", fn->name);
        return false;
    }
    if (!is_complete(l, span, fn, args))
        return false;
    val_list stated = {0}; // metas by name, in the caller's scope
    for (uint32_t i = 0; call && i < fn->metas.len; i++) {
        const struct ast_arg *arg = arg_interned(&call->e->args, fn->metas.at[i].name);
        struct val v = arg ? lower_expr(l, arg->value) : (struct val){VAL_VOID, {0}};
        vec_push(l->arena, &stated, v);
    }
    struct saved saved = {l->home, l->names, l->scope, l->loop};
    struct inlined frame = {l->calls, fn, span, false};
    l->home = fn->home;
    tir_map_init(&l->names, l->arena);
    tir_map_reserve(&l->names, fn->metas.len + fn->params.len + FEW_NAMES);
    l->scope = NULL;
    l->loop = NULL;
    l->calls = &frame;
    fn->active = true;
    for (uint32_t i = 0; i < stated.len; i++)
        if (stated.at[i].kind != VAL_VOID)
            scope_declare(l, fn->metas.at[i].name, fn->metas.at[i].span, stated.at[i]);
    bool ok = bind_metas(l, span, fn, args) && bind_params(l, span, fn, args, call) &&
              lower_body(l, fn, results);
    scope_leave(l, NULL);
    fn->active = false;
    l->calls = frame.outer;
    l->home = saved.home;
    l->names = saved.names;
    l->scope = saved.scope;
    l->loop = saved.loop;
    return ok;
}

// mbarriers are no values, whatever takes them.
static bool is_mbarrier_expr(struct lower *l, const struct ast_expr *e)
{
    if (!lower_is_buffer_expr(l, e))
        return false;
    const struct symbol *s = scope_find(l, e->kind == AST_INDEX ? e->base->name : e->name);
    return s->val.ir->type->elem == TIR_MBARRIER;
}

static struct val lower_argument(struct lower *l, const struct ast_expr *e,
                                 const struct ast_binding *param)
{
    bool is_part = (param && is_buffer_type(param->type)) || is_mbarrier_expr(l, e);
    return is_part ? lower_part(l, e) : lower_expr(l, e);
}

// The parameter of that name; params.len: there is none.
static uint32_t param_named(const struct ast_fn *fn, const char *name)
{
    uint32_t i = 0;
    while (i < fn->params.len && fn->params.at[i].name != name)
        i++;
    return i;
}

static bool has_meta(const struct ast_fn *fn, const char *name)
{
    vec_foreach(const struct ast_binding, meta, &fn->metas)
        if (meta->name == name)
            return true;
    return false;
}

bool lower_fn_call(struct lower *l, struct call *c, const struct fn_value *f, val_list *out)
{
    struct ast_fn *fn = f->fn;
    val_list args = {0};
    bool ok = true;
    for (uint32_t i = 0; i < TIR_MAX(fn->params.len, c->positional); i++)
        vec_push(l->arena, &args, ((struct val){.kind = VAL_ABSENT}));
    uint32_t next = 0;
    vec_foreach(const struct ast_arg, it, &c->e->args) {
        uint32_t at = it->name ? param_named(fn, it->name) : next++;
        if (it->name && has_meta(fn, it->name))
            continue;
        if (it->name && at == fn->params.len) {
            lower_error(l, it->span, TIR_E_META, "`%s` has no parameter or meta `%.64s`", fn->name,
                        it->name);
            ok = false;
            continue;
        }
        if (args.at[at].kind != VAL_ABSENT) {
            lower_error(l, it->span, TIR_E_ARGUMENTS, "`%s` is given twice", it->name);
            ok = false;
            continue;
        }
        args.at[at] = lower_argument(l, it->value, at < fn->params.len ? &fn->params.at[at] : NULL);
        ok &= args.at[at].kind != VAL_POISON;
    }
    return ok && lower_inline(l, c->e->span, fn, &args, c, out);
}
