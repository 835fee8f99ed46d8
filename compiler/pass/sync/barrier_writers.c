// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses that need no barrier between them: each thread writes again what it wrote before, or
// loads and stores elements of a tensor that no other thread has.

#include "ir/range.h"
#include "pass/sync/barrier.h"

// Is the value how far back the columns of a slice turn?
static bool is_turn(const struct tir_ranges *ranges, int64_t wraps, const struct tir_value *v)
{
    int64_t low, high;
    tir_range_get(ranges, v, &low, &high);
    return low > -wraps && high <= 0;
}

// Where the slice would start along d if it did not turn; NULL: at 0. *turn: how far back it turns,
// or NULL. That follows from the row, so a thread always has the same elements of a row.
static const struct tir_value *start_of(const struct tir_ranges *ranges,
                                        const struct tir_inst *inst, uint32_t d,
                                        const struct tir_value **turn)
{
    const struct tir_value *start = tir_ref_indices(inst)[d];
    const int64_t wraps = tir_attr_int(inst, TIR_ATTR_wraps, 0);
    *turn = NULL;
    if (!wraps || !tir_attr_find(inst, TIR_ATTR_begins) || d + 1 < tir_ref_base(inst)->type->rank)
        return start;
    if (is_turn(ranges, wraps, start)) {
        *turn = start;
        return NULL;
    }
    for (uint32_t i = 0; start->def && start->def->op == TIR_OP_ADD && i < 2; i++)
        if (is_turn(ranges, wraps, start->def->operands[i])) {
            *turn = start->def->operands[i];
            return start->def->operands[1 - i];
        }
    return start;
}

static const struct tir_value *turn_of(const struct tir_ranges *ranges, const struct tir_inst *inst)
{
    const struct tir_value *turn = NULL;
    if (tir_attr_find(inst, TIR_ATTR_wraps))
        start_of(ranges, inst, tir_ref_base(inst)->type->rank - 1, &turn);
    return turn;
}

// Does every start of the slice that inst names stay the same, or move by whole slices?
static bool moves_by_slices(const struct tir_ranges *ranges, const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++) {
        const struct tir_value *turn, *start = start_of(ranges, inst, d, &turn);
        const uint64_t divisor = start ? tir_range_divisor(ranges, start) : 0;
        if (box->list[d] < 0 || (box->list[d] > 0 && divisor % (uint64_t)box->list[d]))
            return false;
    }
    return true;
}

// Is the buffer, in every round of a loop, the same part of what it views, or another whole part?
static bool keeps_part(const struct tir_ranges *ranges, const struct tir_value *buffer)
{
    bool keeps = true;
    const struct tir_inst *of = buffer->def;
    while (keeps && of && tir_viewed(of)) {
        keeps = of->op != TIR_OP_VIEW || moves_by_slices(ranges, of);
        of = tir_viewed(of)->def;
    }
    return keeps;
}

// Does a store in a loop give each thread the same elements in every round, as far as rounds touch
// the same ones?
static bool keeps_elements(const struct tir_ranges *ranges, const struct tir_inst *store)
{
    return moves_by_slices(ranges, store) && keeps_part(ranges, tir_ref_base(store));
}

// Do the two name slices of one size of one buffer, through views that do the same?
static bool same_slices(const struct tir_inst *x, const struct tir_inst *y)
{
    const struct tir_value *of_x = tir_ref_base(x), *of_y = tir_ref_base(y);
    const struct tir_attr *a = tir_attr_find(x, TIR_ATTR_box), *b = tir_attr_find(y, TIR_ATTR_box);
    if (of_x->type != of_y->type || a->list_count != b->list_count ||
        memcmp(a->list, b->list, a->list_count * sizeof(*a->list)) != 0)
        return false;
    if (of_x == of_y)
        return true;
    return of_x->def && of_y->def && of_x->def->op == TIR_OP_VIEW && of_y->def->op == TIR_OP_VIEW &&
           same_slices(of_x->def, of_y->def);
}

bool tir_same_writers(const struct tir_ranges *ranges, const struct tir_inst *x,
                      const struct tir_inst *y)
{
    if (x == y && tir_done_of(x) == TIR_DONE_CP_ASYNC) // threads share each copy in one way
        return keeps_part(ranges, x->operands[TIR_COPY_TO]);
    if (x->op != TIR_OP_STORE || y->op != TIR_OP_STORE || !keeps_elements(ranges, y))
        return false;
    return x == y || (x->operands[TIR_STORE_VALUE]->type == y->operands[TIR_STORE_VALUE]->type &&
                      same_slices(x, y) && keeps_elements(ranges, x) &&
                      turn_of(ranges, x) == turn_of(ranges, y));
}

// The tile of a load or store of a tensor; NULL: it is another access.
static const struct tir_type *tile_of_tensor(const struct tir_inst *inst)
{
    const struct tir_value *tile = inst->op == TIR_OP_LOAD    ? inst->results[0]
                                   : inst->op == TIR_OP_STORE ? inst->operands[TIR_STORE_VALUE]
                                                              : NULL;
    const bool is_tile =
        tile && tir_type_is_tile(tile->type) && tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
    return is_tile ? tile->type : NULL;
}

// May each thread have elements for itself?
static bool has_owners(const struct tir_ranges *ranges, const struct tir_inst *inst)
{
    const struct tir_type *tile = tile_of_tensor(inst);
    return tile && tile->layout && !tile->layout->replica_count && keeps_elements(ranges, inst);
}

bool tir_own_elements(const struct tir_ranges *ranges, const struct tir_inst *x,
                      const struct tir_inst *y)
{
    return tile_of_tensor(x) == tile_of_tensor(y) && has_owners(ranges, x) &&
           has_owners(ranges, y) && same_slices(x, y) && turn_of(ranges, x) == turn_of(ranges, y);
}

bool tir_same_owners(const struct tir_ranges *ranges, const struct tir_inst *x,
                     const struct tir_inst *y)
{
    const bool has = has_owners(ranges, x);
    return has == has_owners(ranges, y) && (!has || tir_own_elements(ranges, x, y));
}
