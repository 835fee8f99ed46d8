// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, bounds: whether the elements an access touches exist.
//
// An index along a dimension is start + thread part + constant of the register. What is known of
// the start decides whether the dimension is checked at all; where it is, one unsigned comparison
// serves every register that has the same constant.

#include "pass/lower/lower.h"

struct tir_value *tir_lower_narrowed(struct lower *lo, struct tir_value *x,
                                     const struct tir_type *to)
{
    if (tir_elems[x->type->elem].bits == 64 && to == lo->i32) {
        int64_t low, high, most = INT64_C(1) << 30;
        tir_range_get(lo->ranges, x, &low, &high);
        bool is_signed = tir_elems[x->type->elem].kind == TIR_KIND_SIGNED;
        if (low < -most || high > most)
            x = tir_binary(&lo->b, TIR_OP_MIN, x, tir_const_int(lo->f, x->type, most));
        if (low < -most && is_signed)
            x = tir_binary(&lo->b, TIR_OP_MAX, x, tir_const_int(lo->f, x->type, -most));
    }
    return tir_lower_cast(lo, &lo->b, x, to);
}

static bool says_below(const struct tir_value *cond, const struct tir_value *start,
                       const struct tir_value *extent)
{
    return cond->def && cond->def->op == TIR_OP_LT && cond->def->operands[0] == start &&
           cond->def->operands[1] == extent;
}

// Does the condition say that start + n is no more than the extent? The sum does not wrap.
static bool says_inside(struct lower *lo, const struct tir_value *cond, struct tir_value *start,
                        const struct tir_value *extent, int64_t n)
{
    const struct tir_inst *def = cond->def;
    if (def && def->op == TIR_OP_AND)
        return says_inside(lo, def->operands[0], start, extent, n) ||
               says_inside(lo, def->operands[1], start, extent, n);
    if (!def || def->op != TIR_OP_LE || def->operands[1] != extent)
        return false;
    struct tir_value *end = def->operands[0];
    const int64_t elements = tir_split_constant(&end), from = tir_split_constant(&start);
    if (end != start || from > elements - n)
        return false;
    int64_t low, high;
    tir_range_get(lo->ranges, end, &low, &high);
    const int64_t most = tir_elems[end->type->elem].bits == 64 ? INT64_MAX : INT32_MAX;
    return high <= most - elements;
}

// Does inst stand where a condition of the program holds that start is below the extent, or for
// n > 0 that n elements from there on are?
static bool is_guarded(struct lower *lo, const struct tir_inst *inst, struct tir_value *start,
                       const struct tir_value *extent, int64_t n)
{
    for (const struct tir_inst *at = inst; at; at = at->block->owner) {
        const struct tir_inst *owner = at->block->owner;
        if (!owner || owner->op != TIR_OP_IF || owner->regions[0] != at->block)
            continue;
        const struct tir_value *cond = owner->operands[0];
        if (n ? says_inside(lo, cond, start, extent, n) : says_below(cond, start, extent))
            return true;
    }
    return false;
}

// Is 0 <= start and start < extent known?
static bool starts_inside(struct lower *lo, const struct tir_inst *inst, struct tir_value *start,
                          struct tir_value *extent)
{
    int64_t e, low, high;
    tir_range_get(lo->ranges, start, &low, &high);
    // A copy that only runs where its start is below the extent.
    const struct tir_value *pred =
        inst->op == TIR_OP_COPY_ASYNC ? inst->operands[TIR_COPY_PRED] : NULL;
    if ((pred && says_below(pred, start, extent)) || is_guarded(lo, inst, start, extent, 0))
        return low >= 0;
    if (tir_is_const_int(extent, &e) && low >= 0 && high < e)
        return true;
    if (tir_map_get(&lo->below, tir_map_key(start)) == extent)
        return true;
    struct tir_inst *owner = start->block ? start->block->owner : NULL;
    if (owner && owner->op == TIR_OP_FOR && start->index == 0 &&
        owner->operands[TIR_FOR_END] == extent) {
        tir_range_get(lo->ranges, owner->operands[TIR_FOR_BEGIN], &low, &high);
        return low >= 0;
    }
    return false;
}

bool tir_lower_may_leave(struct lower *lo, const struct tir_inst *inst, struct tir_value *start,
                         struct tir_value *extent, int64_t n)
{
    int64_t e, low, high;
    tir_range_get(lo->ranges, start, &low, &high);
    if (tir_is_const_int(extent, &e) && low >= 0 && high <= e - n)
        return false;
    if (low >= 0 && is_guarded(lo, inst, start, extent, n))
        return false;
    if (tir_lower_has_room(lo, inst, start, extent, n))
        return false;
    if (!starts_inside(lo, inst, start, extent))
        return true;
    // A multiple of n below a multiple of n has n elements left.
    return n != 1 && (tir_range_divisor(lo->ranges, start) % (uint64_t)n ||
                      tir_range_divisor(lo->ranges, extent) % (uint64_t)n);
}

struct tir_value *tir_lower_in_range(struct lower *lo, struct tir_value *position,
                                     struct tir_value *extent)
{
    const struct tir_type *u =
        tir_type_scalar(lo->types, position->type == lo->i32 ? TIR_U32 : TIR_U64);
    return tir_binary(&lo->b, TIR_OP_LT, tir_lower_cast(lo, &lo->b, position, u),
                      tir_lower_cast(lo, &lo->b, extent, u));
}

static struct tir_value *clamped(struct lower *lo, struct tir_value *x, int64_t low)
{
    const int64_t most = INT64_C(1) << 30;
    x = tir_binary(&lo->b, TIR_OP_MIN, x, tir_const_int(lo->f, x->type, most));
    return tir_binary(&lo->b, TIR_OP_MAX, x, tir_const_int(lo->f, x->type, low));
}

// A position and an extent of 64 bits as ones of 32 for which the same constants are inside: how
// far below 0 the position is, and what is left of the extent from there on. A test in 64 bits
// takes two registers for each constant; a row of sums in tensor memory has 128 of them.
static void bring_near(struct lower *lo, struct lower_bound *bound)
{
    struct tir_value *zero = tir_const_int(lo->f, bound->position->type, 0);
    struct tir_value *below = tir_binary(&lo->b, TIR_OP_MIN, bound->position, zero);
    struct tir_value *from = tir_binary(&lo->b, TIR_OP_SUB, bound->position, below);
    struct tir_value *left = tir_binary(&lo->b, TIR_OP_SUB, bound->extent, from);
    below = tir_binary(&lo->b, TIR_OP_MAX, below,
                       tir_const_int(lo->f, below->type, -(INT64_C(1) << 30)));
    bound->near[0] = tir_lower_cast(lo, &lo->b, below, lo->i32);
    bound->near[1] = tir_lower_cast(lo, &lo->b, clamped(lo, left, 0), lo->i32);
}

struct tir_value *tir_lower_bound_at(struct lower *lo, struct lower_bound *bound, int64_t constant)
{
    if (!bound->checked)
        return NULL;
    for (uint32_t i = 0; i < bound->known; i++)
        if (bound->constants[i] == constant)
            return bound->predicates[i];
    const bool is_far = bound->is_long && bound->position->type != lo->i32;
    if (is_far && !bound->near[0])
        bring_near(lo, bound);
    struct tir_value *position = is_far ? bound->near[0] : bound->position;
    struct tir_value *c = tir_const_int(lo->f, position->type, constant);
    struct tir_value *p = tir_lower_in_range(lo, tir_lower_add(lo, &lo->b, position, c),
                                             is_far ? bound->near[1] : bound->extent);
    if (bound->known < TIR_COUNT_OF(bound->constants)) {
        bound->constants[bound->known] = constant;
        bound->predicates[bound->known++] = p;
    }
    return p;
}

struct tir_value *tir_lower_index_at(struct lower *lo, struct tir_value *index,
                                     const int64_t coord[TIR_MAX_RANK], uint32_t first)
{
    const struct tir_layout *own = index->type->layout;
    uint32_t r = 0;
    if (own) {
        int64_t c[TIR_MAX_RANK] = {0};
        for (uint32_t d = 0; d < own->rank; d++)
            c[d] = own->shape[d] == 1 ? 0 : coord[first + d];
        r = tir_layout_find(own, c).at[TIR_AXIS_REG];
    }
    return tir_lower_register(lo, index, r);
}
