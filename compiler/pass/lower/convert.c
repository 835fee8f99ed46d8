// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, convert_layout: the same tile held by other registers, lanes or warps.
//
// When every thread already has its elements, registers are renamed. When every warp has, its lanes
// exchange them by shuffles, as many elements at a time as a word has. Otherwise the tile goes
// through the scratch buffer that memory placed: stores in the old layout, a barrier, loads in the
// new one. Where memory had no room for all of it, the scratch is shorter than the tile along one
// dimension, and the tile goes through it in parts, with another barrier before each part but the
// first: a thread stores and loads what it holds of a part, by predicates.

#include "pass/lower/lower.h"
#include "pass/sync/shared.h"

static struct lower_walk *walk(struct lower *lo, struct tir_value *scratch,
                               const struct tir_layout *l)
{
    uint32_t dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < l->rank; d++)
        dims[d] = d;
    return tir_lower_walk_new(lo, scratch, l, NULL, dims);
}

struct exchange { // of a tile between layouts
    struct tir_value *scratch;
    const struct tir_layout *from, *to;
    struct tir_value **written; // registers of `from`
    uint32_t written_count;
    struct tir_value **read; // registers of `to`
    uint32_t read_count;
};

static void through_whole(struct lower *lo, const struct exchange *x)
{
    struct lower_walk *write = walk(lo, x->scratch, x->from), *read = walk(lo, x->scratch, x->to);
    tir_lower_write(lo, write, x->written, x->written_count, tir_lower_is_owner(lo, x->from));
    tir_lower_barrier(lo);
    tir_lower_read(lo, read, x->scratch->type->elem, x->read_count, x->read);
}

// What a register has after this part: where all threads have its element from here or none, there
// is nothing to choose.
static struct tir_value *choose(struct lower *lo, struct lower_walk *read, uint32_t r,
                                struct tir_value *part, struct tir_value *before)
{
    if (tir_lower_walk_misses(read, r))
        return before;
    struct tir_value *is_here = before ? tir_lower_walk_pred(lo, read, r) : NULL;
    struct tir_value *choice[] = {is_here, part, before};
    return is_here ? tir_build1(&lo->b, TIR_OP_WHERE, part->type, choice, 3) : part;
}

static void through_parts(struct lower *lo, const struct exchange *x, uint32_t dim)
{
    struct tir_value *owner = tir_lower_is_owner(lo, x->from);
    struct tir_value **part = tir_lower_new_registers(lo, x->read_count);
    for (int64_t start = 0; start < x->from->shape[dim]; start += x->scratch->type->shape[dim]) {
        if (start)
            tir_lower_barrier(lo);
        struct lower_walk *write = tir_lower_walk_part(lo, x->scratch, x->from, dim, start);
        tir_lower_write(lo, write, x->written, x->written_count, owner);
        tir_lower_barrier(lo);
        struct lower_walk *read = tir_lower_walk_part(lo, x->scratch, x->to, dim, start);
        tir_lower_read(lo, read, x->scratch->type->elem, x->read_count, part);
        for (uint32_t r = 0; r < x->read_count; r++)
            x->read[r] = choose(lo, read, r, part[r], x->read[r]);
    }
}

void tir_lower_convert(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[TIR_REDUCE_X], *result = inst->results[0];
    struct tir_value *scratch = inst->operands[TIR_REDUCE_SCRATCH];
    const struct tir_layout *from = x->type->layout, *to = result->type->layout;
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    if (!scratch && (!from || tir_layout_same_owner(from, to))) {
        for (uint32_t r = 0; r < count; r++)
            out[r] = tir_lower_register(lo, x, from ? tir_lower_same_register(to, r, from) : 0);
        tir_lower_set_registers(lo, result, out);
        return;
    }
    uint32_t written = tir_lower_register_count(x->type);
    struct tir_value **registers = tir_lower_new_registers(lo, written);
    for (uint32_t r = 0; r < written; r++)
        registers[r] = tir_lower_register(lo, x, r);
    struct tir_exchange exchange;
    if (!scratch && tir_convert_exchanges(x->type, result->type, &exchange)) {
        tir_lower_exchange(lo, &exchange, tir_type_scalar(lo->types, x->type->elem), registers,
                           out);
        tir_lower_set_registers(lo, result, out);
        return;
    }
    const struct exchange all = {scratch, from, to, registers, written, out, count};
    uint32_t dim = 0;
    while (dim < from->rank && scratch->type->shape[dim] == from->shape[dim])
        dim++;
    if (dim == from->rank)
        through_whole(lo, &all);
    else
        through_parts(lo, &all, dim);
    tir_lower_set_registers(lo, result, out);
}
