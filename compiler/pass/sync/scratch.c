// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scratch that operations need: conversions, reductions and scans over several warps, atomics
// whose old values other threads use.
//
// A conversion can do with less: its tile then changes threads in parts.

#include "pass/sync/scratch.h"

#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/sync/shared.h"

static const struct tir_type *type_of(struct tir_func *f, enum tir_elem elem, uint32_t rank,
                                      const int64_t *shape, uint32_t swizzle)
{
    struct tir_type t = {.elem = elem, .space = TIR_SPACE_SHARED, .rank = rank};
    memcpy(t.shape, shape, rank * sizeof(*shape));
    t.layout = tir_layout_memory(f->module->types, rank, shape, tir_elems[elem].bits, swizzle);
    return tir_type_get(f->module->types, &t);
}

// Of a conversion of tiles of x's element type, or of parts of this shape.
static const struct tir_type *of_convert(struct tir_func *f, const struct tir_type *x,
                                         const int64_t *shape)
{
    int64_t row = shape[x->rank - 1] * tir_elems[x->elem].bits / 8;
    uint32_t swizzle = x->rank >= 2 && row % 128 == 0 ? 128 : 0;
    return type_of(f, x->elem, x->rank, shape, swizzle);
}

static const struct tir_type *of_atomic(struct tir_func *f, const struct tir_inst *inst, bool used)
{
    static const int64_t one[] = {1};
    const struct tir_type *t = inst->results[0]->type;
    if (!tir_atomic_shares(f, inst, used))
        return NULL;
    return type_of(f, t->elem, TIR_MAX(t->rank, 1), t->rank ? t->shape : one, 0);
}

// Bits as wide as the widest element of the tiles that are combined together.
static enum tir_elem widest(const struct tir_inst *inst)
{
    uint32_t bits = 8;
    for (uint32_t i = 0; i < inst->result_count; i++)
        bits = TIR_MAX(bits, tir_elems[inst->results[i]->type->elem].bits);
    return bits == 8 ? TIR_U8 : bits == 16 ? TIR_U16 : bits == 32 ? TIR_U32 : TIR_U64;
}

// One entry for each tile, each line along the axis and each part of it.
static const struct tir_type *of_combined(struct tir_func *f, const struct tir_inst *inst)
{
    const struct tir_type *x = inst->operands[TIR_REDUCE_X]->type;
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    bool in_order = inst->op == TIR_OP_SCAN ||
                    tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_user;
    int64_t parts =
        in_order ? tir_combine_blocks(x->layout, axis) : tir_warps_along(x->layout, axis);
    if (parts == 1)
        return NULL;
    uint32_t tiles = tir_combined_count(inst);
    int64_t shape[2] = {tiles * parts, tir_type_count(x) / x->shape[axis]};
    return type_of(f, tiles == 1 ? x->elem : widest(inst), 2, shape, 0);
}

uint32_t tir_scratch_at(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_ATOMIC:
        return TIR_ATOMIC_SCRATCH;
    case TIR_OP_CONVERT_LAYOUT:
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
        return TIR_REDUCE_SCRATCH;
    default:
        return UINT32_MAX;
    }
}

const struct tir_type *tir_scratch_type(struct tir_func *f, const struct tir_inst *inst, bool used)
{
    if (tir_scratch_at(inst) == UINT32_MAX)
        return NULL;
    if (inst->op == TIR_OP_ATOMIC)
        return of_atomic(f, inst, used);
    const struct tir_type *x = inst->operands[TIR_REDUCE_X]->type;
    if (!x->layout) // a constant
        return NULL;
    if (inst->op != TIR_OP_CONVERT_LAYOUT)
        return of_combined(f, inst);
    return tir_convert_needs_scratch(x, inst->results[0]->type) ? of_convert(f, x, x->shape) : NULL;
}

// The longest but the last, along which elements move together; the last if the others are short.
uint32_t tir_parts_along(const struct tir_type *tile)
{
    uint32_t last = tile->rank - 1, along = last;
    int64_t most = tile->shape[last] / TIR_BUDGET_CONVERT_PARTS;
    for (uint32_t d = 0; d < last; d++)
        if (tile->shape[d] > most) {
            most = tile->shape[d];
            along = d;
        }
    return along;
}

const struct tir_type *tir_scratch_half(struct tir_func *f, const struct tir_inst *inst,
                                        const struct tir_type *scratch)
{
    if (inst->op != TIR_OP_CONVERT_LAYOUT)
        return NULL;
    const struct tir_type *tile = inst->operands[TIR_REDUCE_X]->type;
    const uint32_t d = tir_parts_along(tile);
    int64_t shape[TIR_MAX_RANK];
    if (scratch->shape[d] <= 1 || scratch->shape[d] * TIR_BUDGET_CONVERT_PARTS <= tile->shape[d])
        return NULL;
    memcpy(shape, scratch->shape, sizeof(shape));
    shape[d] = (shape[d] + 1) / 2;
    return of_convert(f, tile, shape);
}
