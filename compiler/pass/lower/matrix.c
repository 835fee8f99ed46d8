// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, ldmatrix and stmatrix: fragments of products from and to shared memory.
//
// In a fragment of mma or wgmma a register pair is two columns of a row; eight lanes times four
// make an 8 x 8 matrix. ldmatrix and stmatrix move up to four of them, each row as 16 bytes of an
// address that one lane supplies (PTX ISA), where plain accesses would move 4 bytes a lane. The
// lanes' addresses are described as a layout, which lower_walk finds in the buffer: the tile's own,
// but with lanes counting rows of a matrix and matrices. Where the buffer's contiguous dimension is
// the tile's rows, .trans turns each matrix on the way and lanes count columns.

#include "pass/lower/lower.h"

struct matrices {
    const struct tir_layout *tile; // whose rows are dimension `row`, columns `column`
    uint32_t row, column;
    const struct tir_layout *lanes; // the addresses of lanes; 8 registers along a matrix's row
    uint32_t count;                 // of one instruction
    bool trans;
};

// The dimension whose innermost iterators are these; rank: none.
static uint32_t find_dim(const struct tir_layout *l, const struct tir_iter *inner, uint32_t count)
{
    for (uint32_t d = 0; d < l->rank; d++) {
        uint32_t has = l->first[d + 1] - l->first[d];
        bool same = has >= count;
        for (uint32_t i = 0; same && i < count; i++) {
            const struct tir_iter *it = &l->iters[l->first[d + 1] - count + i];
            same = it->axis == inner[i].axis && it->extent == inner[i].extent &&
                   it->stride == inner[i].stride;
        }
        if (same)
            return d;
    }
    return l->rank;
}

static bool is_fragment(struct matrices *m, const struct tir_layout *l)
{
    static const struct tir_iter rows[] = {{8, 4, TIR_AXIS_LANE}};
    static const struct tir_iter columns[] = {{4, 1, TIR_AXIS_LANE}, {2, 1, TIR_AXIS_REG}};
    m->tile = l;
    m->row = find_dim(l, rows, 1);
    m->column = find_dim(l, columns, 2);
    return m->row < l->rank && m->column < l->rank;
}

// Adds what one dimension of the tile has outside of a matrix: warps, and registers as far as
// the instruction does not take them, innermost first, as further lanes. next: the stride of
// registers.
static void add_outer(struct matrices *m, struct tir_layout *to, uint32_t d, uint32_t inner,
                      uint32_t *next)
{
    const struct tir_layout *l = m->tile;
    struct tir_iter reversed[2 * TIR_MAX_ITERS];
    uint32_t n = 0;
    for (uint32_t i = l->first[d + 1] - inner; i-- > l->first[d];) {
        struct tir_iter it = l->iters[i];
        if (it.axis != TIR_AXIS_REG) {
            reversed[n++] = it;
            continue;
        }
        uint32_t taken = 1;
        for (; m->count < 4 && it.extent % (2 * taken) == 0; m->count *= 2)
            taken *= 2;
        if (taken > 1)
            reversed[n++] = (struct tir_iter){taken, 8 * (m->count / taken), TIR_AXIS_LANE};
        reversed[n++] = (struct tir_iter){it.extent / taken, *next, TIR_AXIS_REG};
        *next *= it.extent / taken;
    }
    while (n > 0)
        to->iters[to->iter_count++] = reversed[--n];
}

static bool set_lanes(struct lower *lo, struct matrices *m, bool trans)
{
    const struct tir_layout *l = m->tile;
    struct tir_layout to = {.rank = l->rank};
    uint32_t next = 8;
    m->count = 1;
    m->trans = trans;
    for (uint32_t d = 0; d < l->rank; d++) {
        bool is_row = d == m->row, is_column = d == m->column;
        if (l->iter_count + 4 > TIR_MAX_ITERS)
            return false;
        to.shape[d] = l->shape[d];
        to.first[d] = to.iter_count;
        add_outer(m, &to, d, is_row ? 1 : is_column ? 2 : 0, &next);
        if (is_row || is_column)
            to.iters[to.iter_count++] =
                (struct tir_iter){8, 1, is_row != trans ? TIR_AXIS_LANE : TIR_AXIS_REG};
    }
    to.first[l->rank] = to.iter_count;
    m->lanes = tir_layout_get(lo->types, &to);
    return m->lanes;
}

// Registers of the first element of the instruction's matrices; the second one follows it.
static void find_pairs(const struct matrices *m, uint32_t group, uint32_t registers[4])
{
    for (uint32_t i = 0; i < m->count; i++) {
        int64_t coord[TIR_MAX_RANK];
        tir_layout_coord(m->lanes, (struct tir_layout_at){{8 * group, 8 * i, 0}}, coord);
        registers[i] = tir_layout_find(m->tile, coord).at[TIR_AXIS_REG];
    }
}

static void set_attributes(struct lower *lo, struct tir_inst *inst, const struct matrices *m,
                           const struct lower_place *place)
{
    if (place->offset)
        tir_set_int(lo->f, inst, TIR_ATTR_offset, place->offset);
    if (m->trans)
        tir_set_int(lo->f, inst, TIR_ATTR_trans, 1);
}

// A lane has the index of its own elements, and not of the row whose address it would supply.
static bool has_index_tile(const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0)
            return true;
    return false;
}

// Whether the access of a tile of type t can move matrices; *walk: their rows' addresses.
static bool open_matrices(struct lower *lo, const struct tir_inst *inst, const struct tir_type *t,
                          struct matrices *m, struct lower_walk **walk)
{
    if (tir_ref_base(inst)->type->space != TIR_SPACE_SHARED || !tir_type_is_tile(t) || !t->layout ||
        tir_elems[t->elem].bits != 16 || has_index_tile(inst) || !is_fragment(m, t->layout))
        return false;
    for (uint32_t trans = 0; trans < 2; trans++) {
        if (!set_lanes(lo, m, trans))
            continue;
        *walk = tir_lower_walk_slice(lo, inst, m->lanes);
        struct lower_vector together = tir_lower_walk_vector(*walk);
        if (tir_lower_walk_is_inside(*walk) && together.count == 8 &&
            tir_lower_is_in_order(together))
            return true;
    }
    return false;
}

bool tir_lower_stmatrix(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    struct matrices m;
    struct lower_walk *walk;
    if (!(lo->cx->target->features & TIR_HAS_STMATRIX) || inst->operands[TIR_STORE_MASK] ||
        (v->type->layout && v->type->layout->replica_count) ||
        !open_matrices(lo, inst, v->type, &m, &walk))
        return false;
    uint32_t groups = tir_layout_size(m.lanes, TIR_AXIS_REG) / 8;
    for (uint32_t g = 0; g < groups; g++) {
        struct lower_place place = tir_lower_walk_at(lo, walk, 8 * g);
        struct tir_value *operands[2 + 4] = {place.base, place.at};
        uint32_t registers[4];
        find_pairs(&m, g, registers);
        for (uint32_t i = 0; i < m.count; i++) {
            struct tir_value *pair[] = {tir_lower_register(lo, v, registers[i]),
                                        tir_lower_register(lo, v, registers[i] + 1)};
            operands[2 + i] = tir_build1(&lo->b, TIR_OP_PACK, lo->i32, pair, 2);
        }
        set_attributes(lo, tir_build(&lo->b, TIR_OP_STMATRIX, operands, 2 + m.count, NULL, 0, 0),
                       &m, &place);
    }
    return true;
}

bool tir_lower_ldmatrix(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    struct matrices m;
    struct lower_walk *walk;
    if (inst->operands[TIR_LOAD_MASK] || !open_matrices(lo, inst, result->type, &m, &walk))
        return false;
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    const struct tir_type *words[] = {lo->i32, lo->i32, lo->i32, lo->i32};
    struct tir_value **out = tir_lower_new_registers(lo, tir_lower_register_count(result->type));
    uint32_t groups = tir_layout_size(m.lanes, TIR_AXIS_REG) / 8;
    for (uint32_t g = 0; g < groups; g++) {
        struct lower_place place = tir_lower_walk_at(lo, walk, 8 * g);
        struct tir_value *operands[] = {place.base, place.at};
        uint32_t registers[4];
        find_pairs(&m, g, registers);
        struct tir_inst *ld = tir_build(&lo->b, TIR_OP_LDMATRIX, operands, 2, words, m.count, 0);
        set_attributes(lo, ld, &m, &place);
        for (uint32_t i = 0; i < m.count; i++) {
            struct tir_inst *pair = tir_build(&lo->b, TIR_OP_UNPACK, &ld->results[i], 1,
                                              (const struct tir_type *[]){scalar, scalar}, 2, 0);
            memcpy(out + registers[i], pair->results, 2 * sizeof(*out));
        }
    }
    tir_lower_set_registers(lo, result, out);
    return true;
}
