// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel: its metas, parameters and dimensions, its clauses, its body.
#include "front/lower/lower.h"
#include "ir/walk.h"

enum { MAX_PARAMS = 64 };

static const struct tir_binding *given_for(const struct tir_front_options *o, const char *name)
{
    for (uint32_t i = 0; i < o->meta_count; i++)
        if (tir_str_is(o->metas[i].name, name))
            return &o->metas[i];
    return NULL;
}

static bool is_same(struct lower *l, struct val a, struct val b)
{
    return a.kind == b.kind && tir_str_equal(meta_text(l, a), meta_text(l, b));
}

static void lower_metas(struct lower *l, const struct ast_kernel *k,
                        const struct tir_front_options *o)
{
    struct tir_func *f = l->f;
    f->metas = arena_array(l->arena, struct tir_meta, k->metas.len);
    vec_foreach(const struct ast_binding, it, &k->metas) {
        const struct tir_binding *given = given_for(o, it->name);
        struct val v = meta_bind(l, it, given);
        struct symbol *old = tir_map_get(&l->names, tir_map_key(it->name));
        if (old) {
            lower_error(l, it->span, TIR_E_REDEFINED, "`%s` is a parameter twice", it->name);
            lower_note(l, old->span, "it is declared here too");
        }
        scope_declare(l, it->name, it->span, v);
        if (v.kind != VAL_POISON)
            f->metas[f->meta_count++] = (struct tir_meta){
                .name = it->name,
                .value = meta_text(l, v),
                .is_default = !given || (it->value && is_same(l, v, meta_bind(l, it, NULL)))};
    }
}

// Has an earlier configuration of the kernel the same values?
static bool is_repeated(const struct lower *l)
{
    const struct tir_func *f = l->f;
    vec_foreach(struct tir_func *, it, &l->m->funcs) {
        bool same = (*it)->span.begin == f->span.begin && (*it)->meta_count == f->meta_count;
        for (uint32_t i = 0; same && i < f->meta_count; i++)
            same = tir_str_equal((*it)->metas[i].value, f->metas[i].value);
        if (same)
            return true;
    }
    return false;
}

// The dimension of that name, made when it is new.
static int32_t dim_of(struct lower *l, const char *name)
{
    struct tir_func *f = l->f;
    for (uint32_t i = 0; i < f->dim_count; i++)
        if (f->dims[i].name == name)
            return (int32_t)i;
    f->dims[f->dim_count].name = name;
    return (int32_t)f->dim_count++;
}

// A name that means nothing yet is a dimension; anything else is a compile-time size.
static bool is_dim(struct lower *l, const struct ast_expr *e)
{
    return e->kind == AST_NAME && !scope_find(l, e->name);
}

// The dimension of that size, which gets its name when those of all others are known.
static int32_t sized_dim_of(struct lower *l, const struct ast_param *param,
                            const struct ast_expr *e)
{
    const struct tir_source_map *sources = l->cx->diags.sources;
    vec_foreach(const struct sized_dim, it, &l->sized)
        if (tir_str_equal(tir_source_text(sources, it->size->span),
                          tir_source_text(sources, e->span)))
            return (int32_t)it->dim;
    vec_push(l->arena, &l->sized, ((struct sized_dim){param, e, l->f->dim_count, false}));
    return (int32_t)l->f->dim_count++;
}

static bool lower_dims(struct lower *l, const struct ast_param *from, struct tir_param *param)
{
    const struct ast_type *t = from->type;
    if (t->dims.len > TIR_MAX_RANK) {
        lower_error(l, t->span, TIR_E_RANK, "%u dimensions; the limit is %d", t->dims.len,
                    TIR_MAX_RANK);
        return false;
    }
    for (uint32_t d = 0; d < t->dims.len; d++) {
        const struct ast_expr *e = t->dims.at[d];
        if (is_dim(l, e)) {
            param->dims[d].dim = dim_of(l, e->name);
            continue;
        }
        if (lower_is_sized(l, e)) {
            param->dims[d].dim = sized_dim_of(l, from, e);
            continue;
        }
        param->dims[d].dim = -1;
        if (!const_int(l, e, "the size of a dimension", &param->dims[d].constant))
            return false;
        if (param->dims[d].constant < 1) {
            lower_error(l, e->span, TIR_E_SLICE, "a dimension of size %lld; sizes are at least 1",
                        (long long)param->dims[d].constant);
            return false;
        }
    }
    return true;
}

static bool lower_param(struct lower *l, const struct ast_param *from, struct tir_param *param)
{
    const struct ast_type *t = from->type;
    struct tir_type type = {.rank = t->dims.len};
    param->name = from->name;
    param->direction = from->direction;
    param->span = from->span;
    if (!lower_elem(l, t, &type.elem) || !lower_dims(l, from, param))
        return false;
    if (t->space != TIR_SPACE_VALUE || t->layout) {
        lower_error(l, t->span, TIR_E_TYPE, "a parameter is a scalar or a tensor in global memory");
        return false;
    }
    if (type.elem == TIR_MBARRIER) {
        lower_error(l, t->span, TIR_E_ROLE,
                    "an mbarrier lives in shared memory; it cannot be a parameter");
        return false;
    }
    if (type.rank == 0 && from->stated_direction && from->direction != TIR_IN) {
        lower_error(l, from->span, TIR_E_TYPE, "only tensors can be `out` or `inout`");
        return false;
    }
    if (type.rank)
        type.space = TIR_SPACE_GLOBAL;
    param->value =
        tir_block_add_arg(l->f, l->f->body, tir_type_get(l->cx->types, &type), from->name);
    return true;
}

static void declare_param(struct lower *l, const char *name, struct tir_span span,
                          struct tir_value *v)
{
    const struct symbol *old = tir_map_get(&l->names, tir_map_key(name));
    if (old) {
        lower_error(l, span, TIR_E_REDEFINED, "`%s` is declared twice", name);
        lower_note(l, old->span, "it is declared here too");
    }
    scope_declare(l, name, span, val_ir(v));
}

// X_0, X_0_, ...: the first that nothing is called.
static void name_sized_dims(struct lower *l)
{
    struct tir_func *f = l->f;
    vec_foreach(const struct sized_dim, it, &l->sized) {
        uint32_t d = 0;
        while (it->param->type->dims.at[d] != it->size)
            d++;
        struct tir_text text;
        tir_text_init(&text, l->arena, 0);
        tir_text_format(&text, "%s_%u", it->param->name, d);
        for (bool is_taken = true; is_taken;) {
            f->dims[it->dim].name = tir_intern(&l->cx->names, tir_text_str(&text));
            is_taken = scope_find(l, f->dims[it->dim].name);
            for (uint32_t i = 0; i < f->param_count; i++)
                is_taken |= f->params[i].name == f->dims[it->dim].name;
            for (uint32_t i = 0; i < f->dim_count; i++)
                is_taken |= i != it->dim && f->dims[i].name == f->dims[it->dim].name;
            tir_text_char(&text, '_');
        }
    }
}

// Where the dimension is first named.
static struct tir_span dim_span(const struct ast_kernel *k, const char *name)
{
    vec_foreach(const struct ast_param, it, &k->params)
        vec_foreach(struct ast_expr *, dim, &it->type->dims)
            if ((*dim)->kind == AST_NAME && (*dim)->name == name)
                return (*dim)->span;
    return k->span;
}

static bool is_sized(const struct lower *l, uint32_t dim)
{
    vec_foreach(const struct sized_dim, it, &l->sized)
        if (it->dim == dim)
            return true;
    return false;
}

static bool lower_params(struct lower *l, const struct ast_kernel *k)
{
    struct tir_func *f = l->f;
    bool ok = true;
    if (k->params.len > MAX_PARAMS) {
        lower_error(l, k->span, TIR_E_ARGUMENTS, "%u parameters; the limit is %d", k->params.len,
                    MAX_PARAMS);
        return false;
    }
    f->params = arena_array(l->arena, struct tir_param, k->params.len);
    f->dims = arena_array(l->arena, struct tir_dim, k->params.len * TIR_MAX_RANK);
    vec_foreach(const struct ast_param, it, &k->params)
        ok &= lower_param(l, it, &f->params[f->param_count++]);
    if (!ok)
        return false;
    name_sized_dims(l);
    const struct tir_type *index = tir_type_scalar(l->cx->types, TIR_I64);
    for (uint32_t i = 0; i < f->param_count; i++)
        declare_param(l, f->params[i].name, f->params[i].span, f->params[i].value);
    for (uint32_t i = 0; i < f->dim_count; i++) {
        f->dims[i].value = tir_block_add_arg(f, f->body, index, f->dims[i].name);
        if (!is_sized(l, i))
            declare_param(l, f->dims[i].name, dim_span(k, f->dims[i].name), f->dims[i].value);
    }
    return true;
}

// Statements outside several tiles loops are computed for each of them.
static void check_steps(struct lower *l)
{
    for (const struct tir_inst *inst = l->f->body->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_TILES && !tir_has_trait(inst, TIR_PURE)) {
            lower_error(l, inst->span, TIR_E_GRID,
                        "beside several tiles loops, or one with scratch tensors, only arithmetic "
                        "can stand");
            return;
        }
}

static void check_grid(struct lower *l, const struct ast_kernel *k)
{
    if (l->is_ir)
        return; // the verifier knows what each form needs
    if (l->f->scratch_count || (l->tiles_loops > 1 && !l->roles.len))
        check_steps(l);
    if (l->roles.len) {
        if (l->tiles_loops || (!l->f->grid_count && !l->tiles))
            lower_error(l, k->span, TIR_E_GRID,
                        "neither `grid(...)` nor a tiles loop in a role says what the CTAs are");
    } else if (!l->f->grid_count && !l->tiles_loops)
        lower_error(l, k->span, TIR_E_GRID,
                    "`%s` has no tiles loop; without `grid(...)` at least one says what the CTAs "
                    "are",
                    k->name);
    else if (l->f->grid_count && !l->f->threads)
        lower_error(l, k->span, TIR_E_THREADS,
                    "`%s` has a grid, so it must state its `threads(...)`", k->name);
}

static bool is_explicit(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_BAR_SYNC:
    case TIR_OP_BAR_ARRIVE:
    case TIR_OP_CLUSTER_ARRIVE:
    case TIR_OP_CLUSTER_WAIT:
    case TIR_OP_GRID_SYNC:
    case TIR_OP_MBARRIER_INIT:
    case TIR_OP_TMEM_ALLOC:
        return true;
    default:
        return tir_has_trait(inst, TIR_THREAD);
    }
}

// A kernel that has a grid, or speaks of threads or barriers, orders its own shared memory.
static void mark_by_hand(const struct lower *l)
{
    struct tir_func *f = l->f;
    bool by_hand = f->grid_count > 0;
    tir_foreach_inst(inst, f)
        by_hand |= is_explicit(inst);
    tir_foreach_inst(inst, f)
        if (by_hand && inst->op == TIR_OP_ALLOC && !tir_map_get(&l->staging, tir_map_key(inst)) &&
            inst->results[0]->type->space == TIR_SPACE_SHARED &&
            inst->results[0]->type->elem != TIR_MBARRIER)
            tir_set_int(f, inst, TIR_ATTR_by_hand, 1);
}

bool lower_kernel(struct lower *l, const struct ast_kernel *k, const struct tir_front_options *o)
{
    uint32_t errors = l->cx->diags.error_count;
    l->f = tir_func_new(l->m, k->name);
    l->f->span = k->span;
    l->b = tir_builder_at_end(l->f, l->f->body);
    tir_map_init(&l->names, l->arena);
    tir_map_init(&l->literals, l->arena);
    tir_map_init(&l->batches, l->arena);
    tir_map_init(&l->staged, l->arena);
    tir_map_init(&l->staging, l->arena);
    lower_metas(l, k, o);
    l->is_repeated = l->is_config && is_repeated(l);
    if (l->cx->diags.error_count == errors && !l->is_repeated && lower_params(l, k) &&
        lower_clauses(l, k) && !lower_is_left_out(l)) {
        vec_foreach(struct ast_stmt *, it, &k->body->stmts)
            l->barriers_left += (*it)->kind == AST_MBARRIER;
        lower_block(l, k->body);
        if (l->cx->diags.error_count == errors && !l->is_ir) {
            lower_check_rings(l);
            lower_place_roles(l);
            lower_check_scopes(l);
        }
        if (l->cx->diags.error_count == errors)
            check_grid(l, k);
    }
    if (l->cx->diags.error_count != errors || l->stopped || lower_is_left_out(l) ||
        !tir_verify(l->f))
        return false;
    if (!l->is_ir) {
        if (!uniform_check(l) || !flight_check(l) || !grid_sync_check(l) || !cancel_check(l))
            return false;
        slips_check(l);
        mark_by_hand(l);
    }
    vec_push(l->m->arena, &l->m->funcs, l->f);
    return true;
}
