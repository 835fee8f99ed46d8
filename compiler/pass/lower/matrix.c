// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, ldmatrix and stmatrix: fragments of products from and to shared memory.
//
// In a fragment of mma or wgmma a register pair is two columns of a row; eight lanes times four
// make an 8 x 8 matrix. ldmatrix and stmatrix move up to four of them, each row as 16 bytes of an
// address that one lane supplies (PTX ISA), where plain accesses would move 4 bytes a lane. The
// lanes' addresses are described as a layout, which lower_walk finds in the buffer: the tile's own,
// but with lanes counting rows of a matrix and matrices. Where the buffer's contiguous dimension is
// the tile's rows, .trans turns each matrix on the way and lanes count columns.
//
// Bytes move as pairs or fours. The other role turns operands of wgmma that way (layout): what
// ldmatrix.trans loads are two neighbours of each of two columns, and what stmatrix stores are four
// neighbours of a row. So a tile that is permuted between the two is transposed by its bytes.
// Two neighbouring rows of such a store lie in registers of one lane; its matrices have every
// second row. In a swizzled buffer the first and the last four of these share banks, so the last
// four lanes of each eight store their two rows in the other order.

#include "pass/lower/lower.h"

#define MATRIX_ROW 16 // bytes

// What becomes of the digits of a fragment's lane and registers: digits of the lane that supplies
// an address, or of the elements of its row.
struct digit {
    enum { OF_ROW, OF_LANE, OF_MATRIX } of;
    uint32_t stride; // of elements or lanes
};

struct fragment {
    uint32_t bits;
    bool trans;
    struct digit lines, within; // of the lane: 8, 4 apart, and 4 beside each other
    struct digit registers[3];  // binary, lowest first
    uint32_t register_count;
    uint32_t word; // registers between the parts of a word
};

static const struct fragment fragments[] = {
    {16, false, {OF_LANE, 1}, {OF_ROW, 2}, {{OF_ROW, 1}}, 1, 1},
    {16, true, {OF_ROW, 1}, {OF_LANE, 2}, {{OF_LANE, 1}}, 1, 1},
    {8, false, {OF_LANE, 1}, {OF_ROW, 4}, {{OF_MATRIX, 0}, {OF_ROW, 1}, {OF_ROW, 2}}, 3, 2},
    {8, true, {OF_ROW, 2}, {OF_LANE, 2}, {{OF_ROW, 1}, {OF_LANE, 1}}, 2, 1},
};

struct matrices {
    const struct fragment *fragment;
    const struct tir_layout *tile;
    const struct tir_layout *lanes; // the addresses of lanes; registers along a matrix's row
    uint32_t count;                 // of one instruction
    uint32_t next;                  // the stride of further registers
    struct tir_value *lane;         // those of lower, while addresses are of other lanes
    struct tir_map coords;
};

static uint32_t row_elements(const struct fragment *f)
{
    return 8 * MATRIX_ROW / f->bits;
}

static struct tir_iter image(const struct digit *d, uint32_t extent)
{
    return (struct tir_iter){extent, d->stride, d->of == OF_LANE ? TIR_AXIS_LANE : TIR_AXIS_REG};
}

// Puts what a lane's digit becomes, innermost first. false: it is no digit of a fragment.
static bool add_lane(const struct fragment *f, const struct tir_iter *it, struct tir_iter *to,
                     uint32_t *count)
{
    if (it->extent == 8 && it->stride == 4)
        to[(*count)++] = image(&f->lines, 8);
    else if (it->extent == 4 && it->stride == 1)
        to[(*count)++] = image(&f->within, 4);
    else
        return false;
    return true;
}

// The same for registers: those of a matrix, then matrices as far as the instruction takes them,
// then others.
static bool add_registers(struct matrices *m, struct tir_iter it, struct tir_iter *to,
                          uint32_t *count)
{
    const struct fragment *f = m->fragment;
    for (; it.extent > 1 && it.stride < 1u << f->register_count; it.extent /= 2, it.stride *= 2) {
        if (it.extent % 2 || !tir_is_pow2(it.stride))
            return false;
        uint32_t digit = 0;
        while (1u << digit < it.stride)
            digit++;
        const struct digit *d = &f->registers[digit];
        to[*count] = image(d, 2);
        if (d->of == OF_MATRIX)
            to[*count] = (struct tir_iter){2, 8, TIR_AXIS_LANE};
        ++*count;
    }
    uint32_t taken = 1;
    for (; m->count < 4 && it.extent % (2 * taken) == 0; m->count *= 2)
        taken *= 2;
    if (taken > 1)
        to[(*count)++] = (struct tir_iter){taken, 8 * (m->count / taken), TIR_AXIS_LANE};
    to[(*count)++] = (struct tir_iter){it.extent / taken, m->next, TIR_AXIS_REG};
    m->next *= it.extent / taken;
    return true;
}

// Are the elements of a row neighbours along a dimension?
static bool has_rows(const struct matrices *m)
{
    for (uint32_t d = 0; d < m->lanes->rank; d++) {
        if (m->lanes->first[d + 1] == m->lanes->first[d])
            continue;
        const struct tir_iter *inner = &m->lanes->iters[m->lanes->first[d + 1] - 1];
        if (inner->axis == TIR_AXIS_REG && inner->stride == 1)
            return inner->extent % row_elements(m->fragment) == 0;
    }
    return false;
}

static bool set_lanes(struct lower *lo, struct matrices *m)
{
    const struct tir_layout *l = m->tile;
    struct tir_layout to = {.rank = l->rank};
    m->next = row_elements(m->fragment);
    m->count = 1;
    for (uint32_t i = 0; i < m->fragment->register_count; i++)
        if (m->fragment->registers[i].of == OF_MATRIX)
            m->count *= 2;
    for (uint32_t d = 0; d < l->rank; d++) {
        struct tir_iter reversed[4 * TIR_MAX_ITERS];
        uint32_t n = 0;
        to.shape[d] = l->shape[d];
        to.first[d] = to.iter_count;
        for (uint32_t i = l->first[d + 1]; i-- > l->first[d];) {
            const struct tir_iter *it = &l->iters[i];
            if (it->axis == TIR_AXIS_WARP)
                reversed[n++] = *it;
            else if (it->axis == TIR_AXIS_LANE ? !add_lane(m->fragment, it, reversed, &n)
                                               : !add_registers(m, *it, reversed, &n))
                return false;
        }
        if (to.iter_count + n > TIR_MAX_ITERS)
            return false;
        while (n > 0)
            to.iters[to.iter_count++] = reversed[--n];
    }
    to.first[l->rank] = to.iter_count;
    m->lanes = tir_layout_get(lo->types, &to);
    return m->lanes && tir_layout_size(m->lanes, TIR_AXIS_LANE) <= 32 && has_rows(m);
}

// Registers of the first part of a word of the instruction's matrices.
static void find_words(const struct matrices *m, uint32_t group, uint32_t registers[4])
{
    for (uint32_t i = 0; i < m->count; i++) {
        int64_t coord[TIR_MAX_RANK];
        const uint32_t at = row_elements(m->fragment) * group;
        tir_layout_coord(m->lanes, (struct tir_layout_at){{at, 8 * i, 0}}, coord);
        registers[i] = tir_layout_find(m->tile, coord).at[TIR_AXIS_REG];
    }
}

static void set_attributes(struct lower *lo, struct tir_inst *inst, const struct matrices *m,
                           const struct lower_place *place)
{
    if (place->offset)
        tir_set_int(lo->f, inst, TIR_ATTR_offset, place->offset);
    if (m->fragment->trans)
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

// Do lanes of a store exchange rows? The digit of the first two matrices is the row's lowest.
static bool exchanges_rows(const struct fragment *f)
{
    return f->registers[0].of == OF_MATRIX;
}

// In lanes whose rows are among the last four of each eight: true.
static struct tir_value *is_late(struct lower *lo)
{
    struct tir_value *bit = tir_binary(&lo->top, TIR_OP_AND, tir_lower_thread(lo, TIR_AXIS_LANE),
                                       tir_lower_i32(lo, 16));
    return tir_binary(&lo->top, TIR_OP_NE, bit, tir_lower_i32(lo, 0));
}

// Addresses are those of the lanes that supply them. Where rows are exchanged, lane 4 supplies that
// which lane 12 would.
static void enter_lanes(struct lower *lo, struct matrices *m)
{
    if (!exchanges_rows(m->fragment))
        return;
    m->lane = tir_lower_thread(lo, TIR_AXIS_LANE);
    m->coords = lo->coords;
    struct tir_value *bit = tir_binary(&lo->top, TIR_OP_AND, m->lane, tir_lower_i32(lo, 4));
    bit = tir_binary(&lo->top, TIR_OP_SHL, bit, tir_lower_i32(lo, 1));
    lo->lane = tir_binary(&lo->top, TIR_OP_XOR, m->lane, bit);
    tir_map_init(&lo->coords, lo->cx->scratch);
}

static void leave_lanes(struct lower *lo, struct matrices *m)
{
    if (!exchanges_rows(m->fragment))
        return;
    lo->lane = m->lane;
    lo->coords = m->coords;
}

static struct lower_place place_of(struct lower *lo, struct matrices *m, struct lower_walk *walk,
                                   uint32_t group)
{
    enter_lanes(lo, m);
    struct lower_place place = tir_lower_walk_at(lo, walk, row_elements(m->fragment) * group);
    leave_lanes(lo, m);
    return place;
}

// Does each of the 32 lanes have rows and columns of its own, as in a fragment?
static bool fills_lanes(const struct tir_layout *l)
{
    uint32_t digits = 0;
    for (uint32_t i = 0; i < l->iter_count; i++)
        digits += l->iters[i].axis == TIR_AXIS_LANE;
    return digits == 2 && tir_layout_size(l, TIR_AXIS_LANE) == 32;
}

// Whether the access of a tile of type t can move matrices; *walk: their rows' addresses.
static bool open_matrices(struct lower *lo, const struct tir_inst *inst, const struct tir_type *t,
                          struct matrices *m, struct lower_walk **walk)
{
    if (tir_ref_base(inst)->type->space != TIR_SPACE_SHARED || !tir_type_is_tile(t) || !t->layout ||
        has_index_tile(inst) || !fills_lanes(t->layout))
        return false;
    m->tile = t->layout;
    for (uint32_t i = 0; i < TIR_COUNT_OF(fragments); i++) {
        const uint32_t row = row_elements(&fragments[i]);
        m->fragment = &fragments[i];
        if (tir_elems[t->elem].bits != m->fragment->bits ||
            (inst->op == TIR_OP_LOAD && exchanges_rows(m->fragment)) || !set_lanes(lo, m))
            continue;
        enter_lanes(lo, m);
        *walk = tir_lower_walk_slice(lo, inst, m->lanes);
        leave_lanes(lo, m);
        struct lower_vector together = tir_lower_walk_vector(*walk);
        if (tir_lower_walk_is_inside(*walk) && together.count == row &&
            tir_lower_is_in_order(together))
            return true;
    }
    return false;
}

// A word of each matrix, of the lane's registers.
static void pack_words(struct lower *lo, const struct matrices *m, struct tir_value *v,
                       const uint32_t registers[4], struct tir_value **words)
{
    const struct fragment *f = m->fragment;
    for (uint32_t i = 0; i < m->count; i++) {
        struct tir_value *parts[4];
        for (uint32_t k = 0; k < 32 / f->bits; k++)
            parts[k] = tir_lower_register(lo, v, registers[i] + k * f->word);
        words[i] = tir_build1(&lo->b, TIR_OP_PACK, lo->i32, parts, 32 / f->bits);
    }
    for (uint32_t i = 0; exchanges_rows(f) && i < m->count; i += 2) {
        struct tir_value *late = is_late(lo), *pair[] = {words[i], words[i + 1]};
        for (uint32_t k = 0; k < 2; k++) {
            struct tir_value *operands[] = {late, pair[1 - k], pair[k]};
            words[i + k] = tir_build1(&lo->b, TIR_OP_WHERE, lo->i32, operands, 3);
        }
    }
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
    const uint32_t groups = tir_layout_size(m.lanes, TIR_AXIS_REG) / row_elements(m.fragment);
    for (uint32_t g = 0; g < groups; g++) {
        struct lower_place place = place_of(lo, &m, walk, g);
        struct tir_value *operands[2 + 4] = {place.base, place.at};
        uint32_t registers[4];
        find_words(&m, g, registers);
        pack_words(lo, &m, v, registers, operands + 2);
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
    const uint32_t parts = 32 / m.fragment->bits;
    const uint32_t groups = tir_layout_size(m.lanes, TIR_AXIS_REG) / row_elements(m.fragment);
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    const struct tir_type *words[] = {lo->i32, lo->i32, lo->i32, lo->i32};
    const struct tir_type *of_word[] = {scalar, scalar, scalar, scalar};
    struct tir_value **out = tir_lower_new_registers(lo, tir_lower_register_count(result->type));
    for (uint32_t g = 0; g < groups; g++) {
        struct lower_place place = place_of(lo, &m, walk, g);
        struct tir_value *operands[] = {place.base, place.at};
        uint32_t registers[4];
        find_words(&m, g, registers);
        struct tir_inst *ld = tir_build(&lo->b, TIR_OP_LDMATRIX, operands, 2, words, m.count, 0);
        set_attributes(lo, ld, &m, &place);
        for (uint32_t i = 0; i < m.count; i++) {
            struct tir_inst *word =
                tir_build(&lo->b, TIR_OP_UNPACK, &ld->results[i], 1, of_word, parts, 0);
            for (uint32_t k = 0; k < parts; k++)
                out[registers[i] + k * m.fragment->word] = word->results[k];
        }
    }
    tir_lower_set_registers(lo, result, out);
    return true;
}
