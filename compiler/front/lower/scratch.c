// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scratch tensors, and the sizes of tensors.
//
// The runtime makes a scratch tensor before it launches anything, so its sizes are computed in the
// host block, from dimensions and integer parameters: values of the body that they are made of are
// computed again there.
#include "front/lower/lower.h"

#include "ir/follow.h"

// Whether v follows from dimensions and parameters alone.
static enum tir_answer is_free(void *user, struct tir_value *v)
{
    const struct lower *l = user;
    if (!tir_type_is_scalar(v->type) || tir_elem_is_float(v->type->elem))
        return TIR_NO;
    if (!v->def)
        return v->kind == TIR_VALUE_CONST || v->block == l->f->body ? TIR_YES : TIR_NO;
    bool is_plain = tir_has_trait(v->def, TIR_PURE) && !tir_has_trait(v->def, TIR_THREAD) &&
                    !v->def->region_count;
    return is_plain ? TIR_IF_OPERANDS : TIR_NO;
}

// v, which was just made of the host's instructions from `first` on and of values of the body, as a
// value of the host block alone: what those are made of is computed before its use.
static struct tir_value *in_host(struct lower *l, struct tir_follow *free, struct tir_inst *first,
                                 struct tir_value *v)
{
    struct tir_map map;
    tir_map_init(&map, l->arena);
    for (struct tir_inst *inst = first; inst != l->b.before; inst = inst->next) {
        struct tir_builder before = tir_builder_before(l->f, inst);
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (tir_follows(free, inst->operands[i]))
                inst->operands[i] = tir_clone_value(&before, inst->operands[i], l->f->body, &map);
    }
    return tir_clone_value(&l->b, v, l->f->body, &map);
}

static struct tir_value *lower_extent(struct lower *l, const struct ast_expr *e)
{
    const struct tir_type *index = tir_type_scalar(l->cx->types, TIR_I64);
    struct tir_builder outer = l->b;
    l->b = tir_builder_before(l->f, tir_yield_of(l->f->host));
    l->b.span = e->span;
    l->in_host = true;
    const struct tir_inst *last = l->b.before->prev;
    struct val v = lower_expr(l, e);
    struct tir_value *size = convert_to(l, e->span, v, index), *host = NULL;
    struct tir_follow free;
    tir_follow_init(&free, l->arena, is_free, l);
    if (size && tir_follows(&free, size))
        host = in_host(l, &free, last ? last->next : l->f->host->first, size);
    l->in_host = false;
    l->b = outer;
    if (host && tir_expression_size(l->arena, host) > TIR_MAX_EXPRESSION)
        lower_error(l, e->span, TIR_E_GRID, TIR_EXPRESSION_TOO_LONG, TIR_MAX_EXPRESSION);
    if (v.kind == VAL_INT && v.i < 1)
        lower_error(l, e->span, TIR_E_SLICE, "a dimension of size %lld; sizes are at least 1",
                    (long long)v.i);
    else if (size && !host)
        lower_error(l, e->span, TIR_E_SLICE,
                    "the size of a scratch tensor follows from dimensions and integer parameters");
    return host;
}

static const char *wrong_place(const struct lower *l)
{
    if (l->f->grid_count)
        return "a kernel with `grid` has no scratch tensors; pass them as parameters";
    if (l->role || l->roles.len || l->rings.len)
        return "a kernel with roles has no scratch tensors; pass them as parameters";
    if (l->b.block != l->f->body)
        return "a scratch tensor stands at the top level of the kernel, before the tiles loops "
               "that use it";
    return NULL;
}

static bool is_taken(const struct lower *l, const char *name) // interned
{
    bool taken = false;
    for (uint32_t i = 0; i < l->f->param_count; i++)
        taken |= l->f->params[i].name == name;
    for (uint32_t i = 0; i < l->f->dim_count; i++)
        taken |= l->f->dims[i].name == name;
    for (uint32_t i = 0; i < l->f->scratch_count; i++)
        taken |= l->f->scratch[i].name == name;
    return taken;
}

static bool check_scratch(struct lower *l, const struct ast_stmt *s, struct tir_type *type)
{
    const struct ast_binding *b = &s->names.at[0];
    const struct ast_type *t = b->type;
    const char *why = wrong_place(l);
    *type = (struct tir_type){.space = TIR_SPACE_GLOBAL, .rank = t->dims.len};
    if (why)
        lower_error(l, s->span, TIR_E_GRID, "%s", why);
    else if (t->space != TIR_SPACE_VALUE || t->layout || t->elem == TIR_MBARRIER)
        lower_error(l, t->span, TIR_E_TYPE, "a scratch tensor is in global memory");
    else if (t->dims.len < 1 || t->dims.len > TIR_MAX_RANK)
        lower_error(l, t->span, TIR_E_RANK, "a scratch tensor has 1 to %d dimensions, not %u",
                    TIR_MAX_RANK, t->dims.len);
    else if (is_taken(l, b->name))
        lower_error(l, b->span, TIR_E_REDEFINED, "`%s` is a tensor or dimension already", b->name);
    else
        return lower_elem(l, t, &type->elem);
    return false;
}

// Adds the sizes to the results of the host block, after those of earlier scratch tensors.
static void yield_extents(struct lower *l, struct tir_value *const *sizes, uint32_t count)
{
    struct tir_inst *yield = tir_yield_of(l->f->host);
    uint32_t before = tir_conditions_at(l->f), all = yield->operand_count + count;
    struct tir_value **operands = arena_array(l->arena, struct tir_value *, all);
    for (uint32_t i = 0; i < all; i++)
        operands[i] = i < before           ? yield->operands[i]
                      : i < before + count ? sizes[i - before]
                                           : yield->operands[i - count];
    yield->operands = operands;
    yield->operand_count = all;
    l->f->extent_count += count;
}

void lower_scratch(struct lower *l, const struct ast_stmt *s)
{
    const struct ast_binding *b = &s->names.at[0];
    struct tir_func *f = l->f;
    struct tir_value *sizes[TIR_MAX_RANK];
    struct tir_type type;
    bool ok = check_scratch(l, s, &type);
    for (uint32_t d = 0; ok && d < type.rank; d++)
        ok = (sizes[d] = lower_extent(l, b->type->dims.at[d])) != NULL;
    if (!ok) {
        scope_declare(l, b->name, b->span, val_poison());
        return;
    }
    struct tir_scratch *all = arena_array(l->arena, struct tir_scratch, f->scratch_count + 1);
    for (uint32_t i = 0; i < f->scratch_count; i++)
        all[i] = f->scratch[i];
    struct tir_value *tensor =
        tir_block_add_arg(f, f->body, tir_type_get(l->cx->types, &type), b->name);
    yield_extents(l, sizes, type.rank);
    all[f->scratch_count++] = (struct tir_scratch){b->name, tensor, b->span};
    f->scratch = all;
    scope_declare(l, b->name, b->span, val_ir(tensor))->may_be_unused = l->is_ir;
}

const char *tensor_name(const struct lower *l, const struct tir_value *tensor,
                        struct tir_span *declared)
{
    const struct tir_param *p = tir_param_of(l->f, tensor);
    uint32_t index = tir_scratch_of(l->f, tensor);
    if (!p && index == l->f->scratch_count)
        return NULL;
    *declared = p ? p->span : l->f->scratch[index].span;
    return p ? p->name : l->f->scratch[index].name;
}

bool tensor_size(const struct lower *l, const struct tir_value *tensor, uint32_t d, int64_t *size)
{
    const struct tir_param *p = tir_param_of(l->f, tensor);
    if (!p) {
        uint32_t index = tir_scratch_of(l->f, tensor);
        return index < l->f->scratch_count &&
               tir_is_const_int(tir_scratch_extent(l->f, index, d), size);
    }
    *size = p->dims[d].constant;
    return p->dims[d].dim < 0;
}

struct val tensor_extent(struct lower *l, const struct tir_value *tensor, uint32_t d)
{
    const struct tir_param *p = tir_param_of(l->f, tensor);
    int64_t size;
    if (tensor_size(l, tensor, d, &size))
        return val_int(size);
    if (p)
        return val_ir(l->f->dims[p->dims[d].dim].value);
    struct tir_map map;
    tir_map_init(&map, l->arena);
    struct tir_value *extent = tir_scratch_extent(l->f, tir_scratch_of(l->f, tensor), d);
    return val_ir(tir_clone_value(&l->b, extent, l->f->host, &map));
}
