// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared and local memory: the address of each register of a tile in a buffer.
//
// When all sizes are powers of two (but for the outermost of a dimension, above which there are no
// bits), element coordinates and byte addresses are bit vectors, and the map between them
// (iterators and XOR swizzle alike) is linear over them:
//     address(thread ^ constant) = address(thread) ^ address(constant).
// So the thread's part is computed once, with a swizzle from the bits of the thread's number; a
// register's constant splits into bits that the thread's part never has (they are added, as the
// instruction's immediate) and the few others (XORed).
// Indices that only choose a slot of a ring are a plain addition; others that are multiples of the
// tile's own extent have bits of their own and are XORed to the thread's part. Anything else, index
// tiles among it, goes the slow, general way: coordinates, then digits, then the swizzle, for every
// register. Where registers have not lasted (jobs.c), those share an address that lie as far apart
// in every thread, which is asked of each.
//
// A slice that a program names may lie outside of its buffer: each of the buffer's dimensions has a
// bound, checked unless the index is known to fit. What is made by passes (copies, operands of a
// dot, scratch) always fits.

#include "ir/walk.h"
#include "pass/lower/lower.h"

struct walk_dim {            // one dimension of the alloc
    int32_t tile_dim;        // dimension of the tile that walks it, or -1
    uint32_t aligned;        // elements that are in or out of range together
    struct tir_value *index; // an index tile, whose first dimension is tile_dim; NULL: none
    struct tir_value *start; // i32; NULL: 0
    uint64_t divisor;        // of start
};

struct slice_dim { // one dimension of the buffer as the program names it
    int32_t tile_dim;
    struct tir_value *index;
    struct lower_bound bound; // in i32; without a position for an index tile
};

struct walk_part { // of a tile, along one of its dimensions
    uint32_t dim;
    int64_t start, size; // 0: the walk is of the whole tile
    int64_t reach;       // from the coordinate of a register in thread 0 to that in any other
};

struct walk_base { // the address of a register, less the offset
    uint32_t reg;
    struct tir_value *at;
    int64_t offset;
};

struct lower_walk {
    struct tir_value *base;          // alloc
    const struct tir_layout *memory; // its layout
    const struct tir_layout *layout; // of the tile; NULL: a scalar
    uint32_t bits;                   // of an element
    uint32_t rank;                   // of the alloc
    struct walk_dim dims[TIR_MAX_RANK];
    struct walk_part part;
    uint32_t slice_rank; // 0: nothing to check
    struct slice_dim slice[TIR_MAX_RANK];
    bool linear;
    struct tir_value *thread; // linear: the thread's part, bytes
    bool moves;               // linear: starts are in it, so it belongs to where the walk is made
    struct tir_value *slot;   // linear: bytes added by indices that choose a slot
    uint64_t thread_bits;     // linear: bits the thread's part may have
    struct tir_value
        *split[64]; // linear: thread ^ (bits of the constant that overlap), by those bits
    uint64_t split_bits[64];
    uint32_t splits;
    VEC(struct walk_base) bases; // general, where addresses are shared
    struct lower_vector vector;
};

// Are the bits of dimension d's coordinates bits of the position?
static bool is_bitwise(const struct tir_layout *l, uint32_t d)
{
    for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++) {
        bool outermost = i == l->first[d] && l->iters[i].axis == TIR_AXIS_REG;
        if (!tir_is_pow2(l->iters[i].stride) || !(outermost || tir_is_pow2(l->iters[i].extent)))
            return false;
    }
    return true;
}

static uint64_t byte_of(const struct lower_walk *w, const int64_t coord[TIR_MAX_RANK])
{
    uint64_t element = tir_layout_find(w->memory, coord).at[TIR_AXIS_REG];
    return tir_layout_byte(w->memory, element, w->bits);
}

// The tile's coordinates at a position, as coordinates of the alloc (starts not added).
static void alloc_coord(const struct lower_walk *w, struct tir_layout_at at,
                        int64_t out[TIR_MAX_RANK])
{
    int64_t coord[TIR_MAX_RANK] = {0};
    if (w->layout)
        tir_layout_coord(w->layout, at, coord);
    for (uint32_t d = 0; d < w->rank; d++)
        out[d] = w->dims[d].tile_dim >= 0 ? coord[w->dims[d].tile_dim] : 0;
}

// Byte of coordinates given as values, before the swizzle; NULL entries are 0, as is the result.
static struct tir_value *unswizzled(struct lower *lo, struct tir_builder *b,
                                    const struct tir_layout *m, uint32_t bits,
                                    struct tir_value *const *coord)
{
    struct tir_value *element = NULL;
    for (uint32_t d = 0; d < m->rank; d++) {
        if (!coord[d])
            continue;
        for (uint32_t i = m->first[d]; i < m->first[d + 1]; i++) {
            struct tir_value *digit =
                tir_lower_digit(lo, b, coord[d], (uint32_t)tir_layout_weight(m, d, i),
                                m->iters[i].extent, i == m->first[d]);
            element = tir_lower_add(lo, b, element,
                                    tir_lower_mul_const(lo, b, digit, m->iters[i].stride));
        }
    }
    return tir_lower_mul_const(lo, b, element, TIR_MAX(1, bits / 8));
}

// Byte address of coordinates given as values.
static struct tir_value *address(struct lower *lo, struct tir_builder *b,
                                 const struct lower_walk *w, struct tir_value *const *coord)
{
    struct tir_value *byte = unswizzled(lo, b, w->memory, w->bits, coord);
    if (!byte)
        return tir_lower_i32(lo, 0);
    if (w->memory->swizzle) {
        struct tir_value *row = tir_lower_digit(lo, b, byte, 128, w->memory->swizzle / 16, false);
        row = tir_binary(b, TIR_OP_SHL, row, tir_lower_i32(lo, 4));
        byte = tir_binary(b, TIR_OP_XOR, byte, row);
    }
    return byte;
}

static uint32_t tile_extent(const struct lower_walk *w, uint32_t d)
{
    int32_t t = w->dims[d].tile_dim;
    return t >= 0 && w->layout ? (uint32_t)w->layout->shape[t] : 1;
}

// A start that may be added to the address: its dimension is one iterator in memory, it is a
// multiple of the tile's extent, and so far apart that the swizzle's pattern is at its beginning
// again.
static bool chooses_slot(const struct lower_walk *w, uint32_t d)
{
    const struct tir_layout *m = w->memory;
    uint32_t extent = tile_extent(w, d);
    if (m->first[d + 1] - m->first[d] > 1 || w->dims[d].divisor % extent)
        return false;
    if (m->first[d + 1] == m->first[d])
        return true; // a dimension of size 1
    uint64_t step = (uint64_t)m->iters[m->first[d]].stride * extent * w->bits / 8;
    return !m->swizzle || step % TIR_SWIZZLE_BYTES == 0;
}

// A start whose bits are none of the tile's own.
static bool is_apart(const struct lower_walk *w, uint32_t d)
{
    uint32_t extent = tile_extent(w, d);
    return w->layout && is_bitwise(w->memory, d) && tir_is_pow2(extent) &&
           w->dims[d].divisor % extent == 0;
}

static bool is_linear(const struct lower_walk *w)
{
    for (uint32_t d = 0; w->layout && d < w->layout->rank; d++)
        if (!is_bitwise(w->layout, d))
            return false;
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->dims[d].index || (tile_extent(w, d) != 1 && !is_bitwise(w->memory, d)) ||
            (w->dims[d].start && !chooses_slot(w, d) && !is_apart(w, d)))
            return false;
    return true;
}

// Bits of the address that multiples of the tile's extent along dimension d may have.
static uint64_t apart_bits(const struct lower_walk *w, uint32_t d)
{
    uint64_t bits = 0;
    for (int64_t s = tile_extent(w, d); s < w->memory->shape[d]; s += tile_extent(w, d)) {
        int64_t at[TIR_MAX_RANK] = {0};
        at[d] = s;
        bits |= byte_of(w, at);
    }
    return bits;
}

static uint64_t thread_byte(const struct lower_walk *w, uint32_t lane, uint32_t warp)
{
    int64_t at[TIR_MAX_RANK];
    alloc_coord(w, (struct tir_layout_at){{0, lane, warp}}, at);
    return byte_of(w, at);
}

// Bits of the lane or of the warp that all go as far up in the address.
struct field {
    enum tir_axis axis;
    int32_t up; // below 0: down
    uint32_t bits;
};

// Each bit of a thread's number is one of an element, and one more of the pattern of a swizzle.
enum { MOST_FIELDS = 2 * 16 };

static uint32_t axis_bits(const struct lower *lo, enum tir_axis axis)
{
    uint32_t bits = 0;
    while (axis == TIR_AXIS_LANE ? bits < 5 : 1u << bits < lo->threads / 32)
        bits++;
    return bits;
}

// The fields that the thread's part is the sum of, modulo 2 in each bit.
static uint32_t list_fields(const struct lower *lo, const struct lower_walk *w,
                            struct field fields[MOST_FIELDS])
{
    uint32_t count = 0;
    for (enum tir_axis axis = TIR_AXIS_LANE; axis <= TIR_AXIS_WARP; axis++)
        for (int32_t i = 0; i < (int32_t)axis_bits(lo, axis); i++) {
            const uint32_t lane = axis == TIR_AXIS_LANE ? 1u << i : 0;
            const uint64_t byte = thread_byte(w, lane, axis == TIR_AXIS_WARP ? 1u << i : 0);
            for (int32_t to = 0; byte >> to; to++) {
                if (!(byte >> to & 1))
                    continue;
                uint32_t f = 0;
                while (f < count && (fields[f].axis != axis || fields[f].up != to - i))
                    f++;
                assert(f < MOST_FIELDS);
                if (f == count)
                    fields[count++] = (struct field){axis, to - i, 0};
                fields[f].bits |= 1u << i;
            }
        }
    return count;
}

static struct tir_value *take_field(struct lower *lo, const struct field *f)
{
    struct tir_value *x = tir_lower_thread(lo, f->axis);
    if (f->bits != (1u << axis_bits(lo, f->axis)) - 1)
        x = tir_binary(&lo->top, TIR_OP_AND, x, tir_lower_i32(lo, f->bits));
    if (f->up)
        x = tir_binary(&lo->top, f->up > 0 ? TIR_OP_SHL : TIR_OP_SHR, x,
                       tir_lower_i32(lo, f->up > 0 ? f->up : -f->up));
    return x;
}

// The thread's part of the address from the bits of its number, without coordinates.
static struct tir_value *thread_part(struct lower *lo, const struct lower_walk *w)
{
    struct field fields[MOST_FIELDS];
    const uint32_t count = list_fields(lo, w, fields);
    struct tir_value *sum = tir_lower_i32(lo, 0);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bits = fields[i].up > 0 ? (uint64_t)fields[i].bits << fields[i].up
                                               : fields[i].bits >> -fields[i].up;
        struct tir_value *field = take_field(lo, &fields[i]);
        sum =
            !seen ? field : tir_binary(&lo->top, seen & bits ? TIR_OP_XOR : TIR_OP_ADD, sum, field);
        seen |= bits;
    }
    return sum;
}

static void open_linear(struct lower *lo, struct lower_walk *w)
{
    struct tir_value *coord[TIR_MAX_RANK] = {NULL}, *apart[TIR_MAX_RANK] = {NULL};
    const struct tir_layout *m = w->memory;
    // Without a swizzle, and where threads copy tiles, addresses in global memory are of the same
    // coordinates.
    const bool by_bits = w->layout && m->swizzle && lo->swizzles_by_bits;
    for (uint32_t d = 0; d < w->rank; d++) {
        const struct walk_dim *dim = &w->dims[d];
        if (dim->tile_dim >= 0 && w->layout && !by_bits)
            coord[d] = tir_lower_coord(lo, w->layout, (uint32_t)dim->tile_dim);
        if (dim->start && !chooses_slot(w, d)) {
            apart[d] = dim->start;
            w->moves = true;
            w->thread_bits |= apart_bits(w, d);
        } else if (dim->start && m->first[d + 1] > m->first[d]) {
            w->slot = tir_lower_add(
                lo, &lo->b, w->slot,
                tir_lower_mul_const(lo, &lo->b, dim->start,
                                    (int64_t)m->iters[m->first[d]].stride * w->bits / 8));
        }
    }
    w->thread = by_bits ? thread_part(lo, w) : address(lo, &lo->top, w, coord);
    if (w->moves)
        w->thread = tir_binary(&lo->b, TIR_OP_XOR, w->thread, address(lo, &lo->b, w, apart));
    if (!w->layout)
        return;
    // The map is linear: a bit that some thread has, some lane of warp 0 or lane 0 of a warp has.
    for (uint32_t lane = 1; lane < 32; lane *= 2)
        w->thread_bits |= thread_byte(w, lane, 0);
    for (uint32_t warp = 1; warp < lo->threads / 32; warp++)
        w->thread_bits |= thread_byte(w, 0, warp);
}

struct lower_vector tir_lower_neighbours(const struct tir_layout *l, uint32_t d, uint32_t most)
{
    struct lower_vector v = {.count = 1};
    uint32_t digits = 0;
    most = TIR_MIN(most, 1U << TIR_COUNT_OF(v.strides));
    for (uint32_t i = l->first[d + 1]; i-- > l->first[d] && l->iters[i].axis == TIR_AXIS_REG;) {
        int64_t left = l->iters[i].extent;
        for (int64_t stride = l->iters[i].stride; left % 2 == 0 && v.count < most; stride *= 2) {
            v.strides[digits++] = (uint32_t)stride;
            v.count *= 2;
            left /= 2;
        }
        if (left > 1)
            break;
    }
    return v;
}

// Registers that are neighbours in memory too: along the dimension whose innermost iterator is
// dense, as far as the other iterators keep them aligned.
static struct lower_vector vector_of(const struct lower_walk *w)
{
    const struct lower_vector alone = {.count = 1};
    const struct tir_layout *m = w->memory, *l = w->layout;
    for (uint32_t d = 0; l && d < w->rank; d++) {
        if (m->first[d + 1] == m->first[d] || m->iters[m->first[d + 1] - 1].stride != 1)
            continue;
        const struct walk_dim *dim = &w->dims[d];
        if (dim->tile_dim < 0 || dim->index)
            return alone;
        const uint32_t dense = m->first[d + 1] - 1;
        struct lower_vector v =
            tir_lower_neighbours(l, (uint32_t)dim->tile_dim, 128 / TIR_MAX(8, w->bits));
        while (v.count > 1 && (m->iters[dense].extent % v.count || dim->aligned % v.count ||
                               dim->divisor % v.count))
            v.count /= 2;
        for (uint32_t i = 0; i < m->iter_count; i++)
            while (i != dense && m->iters[i].stride % v.count)
                v.count /= 2;
        return v;
    }
    return alone;
}

static void set_start(struct lower *lo, struct walk_dim *dim, struct tir_value *start)
{
    int64_t c;
    if (!tir_is_const_int(start, &c) || c != 0)
        dim->start = tir_lower_cast(lo, &lo->b, start, lo->i32);
    dim->divisor = tir_range_divisor(lo->ranges, start);
}

// The storage layout of a buffer without a layout, such as one of mbarriers.
static const struct tir_layout *memory_of(struct lower *lo, const struct tir_type *t)
{
    return t->layout ? t->layout
                     : tir_layout_memory(lo->types, t->rank, t->shape, tir_elems[t->elem].bits, 0);
}

// A reshape is of what has whole dimensions. The alloc gets its dimensions in place of those, after
// the ones that views have taken a single index of.
static struct tir_value *walk_through_reshape(struct lower *lo, struct lower_walk *w,
                                              const struct tir_inst *reshape)
{
    const struct tir_type *t = reshape->results[0]->type;
    const struct tir_layout *own = memory_of(lo, t);
    struct tir_value *buffer = reshape->operands[0];
    for (; buffer->def->op == TIR_OP_VIEW; buffer = tir_ref_base(buffer->def)) {
        const struct tir_layout *of = memory_of(lo, tir_ref_base(buffer->def)->type);
        const struct tir_attr *box = tir_attr_find(buffer->def, TIR_ATTR_box);
        for (uint32_t d = box->list_count; d-- > 0;) {
            struct tir_value *index = tir_ref_indices(buffer->def)[d];
            if (box->list[d])
                continue;
            own = tir_layout_before(lo->types, of, d, own);
            memmove(w->dims + 1, w->dims, (own->rank - 1) * sizeof(*w->dims));
            w->dims[0] = (struct walk_dim){.tile_dim = -1};
            set_start(lo, &w->dims[0], index);
        }
    }
    w->memory = own;
    return buffer;
}

// Through views, permutes, reshapes and remotes down to the alloc; of another CTA's, the remote of
// the whole.
static struct tir_value *walk_to_alloc(struct lower *lo, struct lower_walk *w,
                                       struct tir_value *buffer)
{
    struct tir_value *cta = NULL;
    w->memory = NULL;
    while (buffer->def && !tir_is_allocated(buffer->def)) {
        struct tir_inst *inst = buffer->def;
        struct walk_dim of[TIR_MAX_RANK];
        if (inst->op == TIR_OP_REMOTE) {
            cta = inst->operands[1];
            buffer = inst->operands[0];
            continue;
        }
        memcpy(of, w->dims, sizeof(of));
        if (inst->op == TIR_OP_PERMUTE) {
            const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
            for (uint32_t d = 0; d < order->list_count; d++)
                w->dims[order->list[d]] = of[d];
            buffer = inst->operands[0];
            continue;
        }
        if (inst->op == TIR_OP_RESHAPE) {
            buffer = walk_through_reshape(lo, w, inst);
            break;
        }
        const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
        uint32_t inner = 0;
        for (uint32_t d = 0; d < box->list_count; d++) {
            struct tir_value *index = tir_ref_indices(inst)[d];
            struct tir_value *at = tir_lower_cast(lo, &lo->b, index, lo->i32);
            int64_t c;
            if (tir_is_const_int(at, &c) && c == 0)
                at = NULL;
            uint64_t divisor = tir_range_divisor(lo->ranges, index);
            if (!box->list[d]) {
                w->dims[d] = (struct walk_dim){.tile_dim = -1, .start = at, .divisor = divisor};
                continue;
            }
            w->dims[d] = of[inner++];
            w->dims[d].start = tir_lower_add(lo, &lo->b, w->dims[d].start, at);
            w->dims[d].divisor = tir_gcd(w->dims[d].divisor, divisor);
        }
        buffer = tir_ref_base(inst);
    }
    w->memory = w->memory ? w->memory : memory_of(lo, buffer->type);
    w->rank = w->memory->rank;
    return cta ? tir_lower_remote(lo, buffer, cta) : buffer;
}

struct tir_value *tir_lower_remote(struct lower *lo, struct tir_value *buffer,
                                   struct tir_value *cta)
{
    struct tir_type t = *buffer->type;
    t.space = TIR_SPACE_CLUSTER;
    return tir_build1(&lo->b, TIR_OP_REMOTE, tir_type_get(lo->types, &t),
                      (struct tir_value *[]){buffer, cta}, 2);
}

static void finish_walk(struct lower *lo, struct lower_walk *w, struct tir_value *buffer)
{
    w->base = walk_to_alloc(lo, w, buffer);
    w->linear = is_linear(w);
    if (w->linear)
        open_linear(lo, w);
    w->vector = vector_of(w);
}

static struct lower_walk *new_walk(struct lower *lo, const struct tir_value *buffer,
                                   const struct tir_layout *l)
{
    struct lower_walk *w = arena_new(lo->cx->scratch, struct lower_walk);
    w->layout = l;
    w->bits = tir_elems[buffer->type->elem].bits;
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        w->dims[d].tile_dim = -1;
    return w;
}

struct lower_walk *tir_lower_walk_new(struct lower *lo, struct tir_value *buffer,
                                      const struct tir_layout *l, struct tir_value *const *starts,
                                      const uint32_t *dims)
{
    struct lower_walk *w = new_walk(lo, buffer, l);
    for (uint32_t d = 0; l && d < l->rank; d++)
        w->dims[dims[d]].tile_dim = (int32_t)d;
    for (uint32_t d = 0; starts && d < buffer->type->rank; d++)
        set_start(lo, &w->dims[d], starts[d]);
    finish_walk(lo, w, buffer);
    return w;
}

static int64_t reach_of(const struct tir_layout *l, uint32_t dim)
{
    int64_t reach = 0;
    for (uint32_t i = l->first[dim]; i < l->first[dim + 1]; i++)
        if (l->iters[i].axis != TIR_AXIS_REG)
            reach += (l->iters[i].extent - 1) * tir_layout_weight(l, dim, i);
    return reach;
}

struct lower_walk *tir_lower_walk_part(struct lower *lo, struct tir_value *buffer,
                                       const struct tir_layout *l, uint32_t dim, int64_t start)
{
    struct lower_walk *w = new_walk(lo, buffer, l);
    const int64_t size = buffer->type->shape[dim];
    w->part = (struct walk_part){dim, start, size, reach_of(l, dim)};
    struct tir_value *back = start ? tir_lower_i32(lo, -start) : NULL;
    w->slice_rank = l->rank;
    for (uint32_t d = 0; d < l->rank; d++)
        w->slice[d].tile_dim = w->dims[d].tile_dim = (int32_t)d;
    w->dims[dim].start = back;
    w->dims[dim].divisor = w->dims[dim].aligned = (uint32_t)size;
    struct tir_value *position = tir_lower_add(lo, &lo->b, tir_lower_coord(lo, l, dim), back);
    w->slice[dim].bound =
        (struct lower_bound){.position = position ? position : tir_lower_i32(lo, 0),
                             .extent = tir_lower_i32(lo, size),
                             .checked = true};
    finish_walk(lo, w, buffer);
    return w;
}

// Where the index of dimension d of the slice may leave the buffer.
static void set_bound(struct lower *lo, const struct tir_inst *inst, const struct lower_walk *w,
                      uint32_t d, int64_t box, struct slice_dim *s, struct walk_dim *dim)
{
    struct tir_value *start = tir_ref_indices(inst)[d];
    int64_t size = tir_ref_base(inst)->type->shape[d];
    s->bound.extent = tir_lower_i32(lo, size);
    if (box < 0) {
        int64_t low, high;
        tir_range_get(lo->ranges, start, &low, &high);
        s->bound.checked = low < 0 || high >= size;
        return;
    }
    s->bound.checked =
        tir_lower_may_leave(lo, inst, start, tir_const_index(lo->f, size), TIR_MAX(box, 1));
    if (!s->bound.checked)
        return;
    dim->aligned = (uint32_t)tir_gcd((uint64_t)size, dim->divisor);
    s->bound.position = tir_lower_narrowed(lo, start, lo->i32);
    if (box > 0 && w->layout)
        s->bound.position = tir_lower_add(lo, &lo->b, s->bound.position,
                                          tir_lower_coord(lo, w->layout, (uint32_t)s->tile_dim));
}

struct lower_walk *tir_lower_walk_slice(struct lower *lo, const struct tir_inst *inst,
                                        const struct tir_layout *l)
{
    struct tir_value *buffer = tir_ref_base(inst);
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct lower_walk *w = new_walk(lo, buffer, l);
    w->slice_rank = buffer->type->rank;
    for (uint32_t d = 0; d < w->slice_rank; d++) {
        struct tir_value *index = tir_ref_indices(inst)[d];
        struct walk_dim *dim = &w->dims[d];
        if (box->list[d])
            dim->tile_dim = (int32_t)tir_slice_dim(inst, d);
        if (box->list[d] < 0)
            dim->index = index;
        else
            set_start(lo, dim, index);
        w->slice[d].tile_dim = dim->tile_dim;
        w->slice[d].index = dim->index;
        set_bound(lo, inst, w, d, box->list[d], &w->slice[d], dim);
    }
    finish_walk(lo, w, buffer);
    return w;
}

struct lower_vector tir_lower_walk_vector(const struct lower_walk *walk)
{
    return walk->vector;
}

bool tir_lower_walk_is_inside(const struct lower_walk *walk)
{
    for (uint32_t d = 0; d < walk->slice_rank; d++)
        if (walk->slice[d].bound.checked)
            return false;
    return true;
}

static struct tir_value *linear_at(struct lower *lo, struct lower_walk *w, uint32_t reg,
                                   int64_t *offset)
{
    int64_t coord[TIR_MAX_RANK];
    alloc_coord(w, (struct tir_layout_at){{reg, 0, 0}}, coord);
    uint64_t constant = byte_of(w, coord), overlap = constant & w->thread_bits;
    struct tir_value *at = NULL;
    for (uint32_t i = 0; i < w->splits && !at; i++)
        if (w->split_bits[i] == overlap)
            at = w->split[i];
    if (!at) {
        at = w->thread;
        if (overlap)
            at = tir_binary(w->moves ? &lo->b : &lo->top, TIR_OP_XOR, at,
                            tir_lower_i32(lo, (int64_t)overlap));
        at = tir_lower_add(lo, &lo->b, at, w->slot);
        if (w->splits < TIR_COUNT_OF(w->split)) {
            w->split_bits[w->splits] = overlap;
            w->split[w->splits++] = at;
        }
    }
    *offset = (int64_t)(constant & ~w->thread_bits);
    return at;
}

// What part of a constant coordinate adds bytes to every address: whole steps of the outermost
// iterator, which no digit carries out of, and so many that the swizzle's pattern begins again.
static int64_t plain_part(const struct lower_walk *w, uint32_t d, int64_t constant, int64_t *bytes)
{
    const struct tir_layout *m = w->memory;
    if (m->first[d] == m->first[d + 1])
        return 0;
    const uint64_t unit = m->swizzle ? TIR_SWIZZLE_BYTES : 1;
    const uint64_t bits = (uint64_t)m->iters[m->first[d]].stride * w->bits;
    const uint64_t steps = 8 * unit / tir_gcd(8 * unit, bits);
    const int64_t step = tir_layout_weight(m, d, m->first[d]) * (int64_t)steps;
    *bytes += constant / step * (int64_t)(steps * bits / 8);
    return constant / step * step;
}

// Coordinates in the alloc, one by one.
static struct tir_value *general_at(struct lower *lo, struct tir_builder *b,
                                    const struct lower_walk *w, const int64_t tile[TIR_MAX_RANK],
                                    int64_t *offset)
{
    struct tir_value *coord[TIR_MAX_RANK] = {NULL};
    for (uint32_t d = 0; d < w->rank; d++) {
        const struct walk_dim *dim = &w->dims[d];
        int64_t constant = 0;
        if (dim->index) {
            struct tir_value *i = tir_lower_index_at(lo, dim->index, tile, (uint32_t)dim->tile_dim);
            coord[d] = tir_lower_narrowed(lo, i, lo->i32);
        } else if (dim->tile_dim >= 0 && w->layout) {
            coord[d] = tir_lower_coord(lo, w->layout, (uint32_t)dim->tile_dim);
            constant = tile[dim->tile_dim];
            if (tir_lower_walk_is_inside(w)) // so no address before the offset is below the buffer
                constant -= plain_part(w, d, constant, offset);
        }
        coord[d] = tir_lower_add(lo, b, coord[d], dim->start);
        if (constant)
            coord[d] = tir_lower_add(lo, b, coord[d], tir_lower_i32(lo, constant));
    }
    return address(lo, b, w, coord);
}

static uint64_t register_byte(const struct lower_walk *w, uint32_t reg, uint32_t lane,
                              uint32_t warp)
{
    int64_t at[TIR_MAX_RANK];
    alloc_coord(w, (struct tir_layout_at){{reg, lane, warp}}, at);
    return byte_of(w, at);
}

// Does one register lie as many bytes behind another one in every thread?
static bool lies_behind(const struct lower *lo, const struct lower_walk *w, uint32_t first,
                        uint32_t reg, int64_t *bytes)
{
    *bytes = (int64_t)(register_byte(w, reg, 0, 0) - register_byte(w, first, 0, 0));
    for (uint32_t warp = 0; warp < lo->threads / 32; warp++)
        for (uint32_t lane = 0; lane < 32; lane++)
            if ((int64_t)(register_byte(w, reg, lane, warp) -
                          register_byte(w, first, lane, warp)) != *bytes)
                return false;
    return *bytes >= 0;
}

// Do threads and registers alone say where elements lie?
static bool is_fixed(const struct lower_walk *w)
{
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->dims[d].index || w->dims[d].start)
            return false;
    return w->layout && tir_lower_walk_is_inside(w);
}

// Where registers have not lasted, the address of another register and an offset if there is one.
static struct tir_value *near_at(struct lower *lo, struct lower_walk *w, uint32_t reg,
                                 const int64_t tile[TIR_MAX_RANK], int64_t *offset)
{
    if (!lo->cx->attempt || !lo->cx->attempt->late || !is_fixed(w))
        return general_at(lo, &lo->b, w, tile, offset);
    vec_foreach(const struct walk_base, base, &w->bases)
        if (lies_behind(lo, w, base->reg, reg, offset)) {
            *offset += base->offset;
            return base->at;
        }
    *offset = 0;
    struct walk_base base = {.reg = reg, .at = general_at(lo, &lo->top, w, tile, offset)};
    base.offset = *offset;
    vec_push(lo->cx->scratch, &w->bases, base);
    return base.at;
}

// Has every thread its element of the register in the part that the walk is of?
static bool is_in_part(const struct lower_walk *w, const int64_t tile[TIR_MAX_RANK])
{
    const struct walk_part *p = &w->part;
    const int64_t first = tile[p->dim];
    return p->size && p->start <= first && first + p->reach < p->start + p->size;
}

static struct tir_value *inside(struct lower *lo, struct lower_walk *w,
                                const int64_t tile[TIR_MAX_RANK])
{
    struct tir_value *pred = NULL;
    if (is_in_part(w, tile))
        return NULL;
    for (uint32_t d = 0; d < w->slice_rank; d++) {
        struct slice_dim *s = &w->slice[d];
        struct tir_value *in = NULL;
        if (s->index && s->bound.checked) {
            struct tir_value *i = tir_lower_index_at(lo, s->index, tile, (uint32_t)s->tile_dim);
            in = tir_lower_in_range(lo, tir_lower_narrowed(lo, i, lo->i32), s->bound.extent);
        } else if (!s->index) {
            in = tir_lower_bound_at(lo, &s->bound, s->tile_dim >= 0 ? tile[s->tile_dim] : 0);
        }
        pred = tir_lower_and(lo, pred, in);
    }
    return pred;
}

static void tile_coord(const struct lower_walk *w, uint32_t reg, int64_t tile[TIR_MAX_RANK])
{
    memset(tile, 0, TIR_MAX_RANK * sizeof(*tile));
    if (w->layout)
        tir_layout_coord(w->layout, (struct tir_layout_at){{reg, 0, 0}}, tile);
}

bool tir_lower_walk_misses(const struct lower_walk *w, uint32_t reg)
{
    const struct walk_part *p = &w->part;
    int64_t tile[TIR_MAX_RANK];
    tile_coord(w, reg, tile);
    return p->size && (tile[p->dim] >= p->start + p->size || tile[p->dim] + p->reach < p->start);
}

struct tir_value *tir_lower_walk_pred(struct lower *lo, struct lower_walk *w, uint32_t reg)
{
    int64_t tile[TIR_MAX_RANK];
    tile_coord(w, reg, tile);
    return inside(lo, w, tile);
}

struct lower_place tir_lower_walk_at(struct lower *lo, struct lower_walk *w, uint32_t reg)
{
    int64_t tile[TIR_MAX_RANK];
    tile_coord(w, reg, tile);
    struct lower_place p = {.base = w->base, .pred = inside(lo, w, tile)};
    p.at = w->linear ? linear_at(lo, w, reg, &p.offset) : near_at(lo, w, reg, tile, &p.offset);
    return p;
}

void tir_lower_read(struct lower *lo, struct lower_walk *walk, enum tir_elem elem, uint32_t count,
                    struct tir_value **out)
{
    struct lower_vector v = walk->vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r) || tir_lower_walk_misses(walk, r))
            continue;
        struct lower_place p = tir_lower_walk_at(lo, walk, r);
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, &p, elem, v.count, values);
        for (uint32_t i = 0; i < v.count; i++)
            out[tir_lower_together(v, r, i)] = values[i];
    }
}

void tir_lower_write(struct lower *lo, struct lower_walk *walk, struct tir_value *const *registers,
                     uint32_t count, struct tir_value *pred)
{
    struct lower_vector v = walk->vector;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, r) || tir_lower_walk_misses(walk, r))
            continue;
        struct lower_place p = tir_lower_walk_at(lo, walk, r);
        p.pred = tir_lower_and(lo, p.pred, pred);
        struct tir_value *values[16];
        for (uint32_t i = 0; i < v.count; i++)
            values[i] = registers[tir_lower_together(v, r, i)];
        tir_lower_st_vector(lo, &p, v.count, values);
    }
}

// Parts.

struct lower_part tir_lower_part_of(struct lower *lo, struct tir_value *buffer)
{
    struct lower_walk *w = new_walk(lo, buffer, NULL);
    for (uint32_t d = 0; d < buffer->type->rank; d++)
        w->dims[d].tile_dim = (int32_t)d;
    struct lower_part part = {.base = walk_to_alloc(lo, w, buffer), .bits = w->bits};
    part.memory = w->memory;
    for (uint32_t d = 0; d < part.memory->rank; d++) {
        part.dims[d] = (struct lower_part_dim){.dim = w->dims[d].tile_dim,
                                               .size = 1,
                                               .start = w->dims[d].start,
                                               .divisor = w->dims[d].divisor};
        if (part.dims[d].dim >= 0)
            part.dims[d].size = buffer->type->shape[part.dims[d].dim];
    }
    return part;
}

void tir_lower_part_move(struct lower *lo, struct lower_part *part, uint32_t dim,
                         struct tir_value *by, uint64_t divisor, int64_t size)
{
    for (uint32_t d = 0; d < part->memory->rank; d++)
        if (part->dims[d].dim == (int32_t)dim) {
            part->dims[d].start = tir_lower_add(lo, &lo->b, part->dims[d].start, by);
            part->dims[d].divisor = tir_gcd(part->dims[d].divisor, divisor);
            part->dims[d].size = size;
        }
}

bool tir_lower_part_adds(const struct lower_part *part)
{
    const struct tir_layout *m = part->memory;
    for (uint32_t d = 0; d < m->rank; d++) {
        const struct lower_part_dim *dim = &part->dims[d];
        uint32_t iters = m->first[d + 1] - m->first[d];
        if (!dim->start || iters <= 1)
            continue;
        // No digit below the outermost may carry: each is 0 in the start, or in what is added.
        uint64_t inner = (uint64_t)tir_layout_weight(m, d, m->first[d]);
        bool within = dim->divisor % (uint64_t)dim->size == 0 &&
                      m->iters[m->first[d + 1] - 1].extent % (uint64_t)dim->size == 0;
        if (dim->divisor % inner && !within)
            return false;
    }
    return true;
}

// Each digit of a start, of which `divisor` is a divisor, adds so many bytes or a multiple.
static uint64_t digit_bytes(const struct lower_part *part, uint32_t d, uint32_t i)
{
    const struct tir_layout *m = part->memory;
    uint64_t weight = (uint64_t)tir_layout_weight(m, d, i), extent = m->iters[i].extent;
    uint64_t unit = (uint64_t)m->iters[i].stride * part->bits / 8, divisor = part->dims[d].divisor;
    if (divisor % weight)
        return unit;
    bool outermost = i == m->first[d];
    uint64_t digit = divisor / weight;
    if (!outermost)
        digit = digit % extent ? tir_gcd(digit, extent) : 0;
    return digit * unit;
}

uint64_t tir_lower_part_divisor(const struct lower_part *part)
{
    const struct tir_layout *m = part->memory;
    const struct tir_inst *def = part->base->def;
    uint64_t divisor = // of an alias of another CTA too
        def ? (uint64_t)tir_alias_offset(def->op == TIR_OP_REMOTE ? def->operands[0] : part->base)
            : 0;
    for (uint32_t d = 0; d < m->rank; d++)
        for (uint32_t i = m->first[d]; part->dims[d].start && i < m->first[d + 1]; i++)
            divisor = tir_gcd(divisor, digit_bytes(part, d, i));
    return divisor;
}

struct tir_value *tir_lower_part_start(struct lower *lo, const struct lower_part *part)
{
    struct tir_value *starts[TIR_MAX_RANK];
    for (uint32_t d = 0; d < part->memory->rank; d++)
        starts[d] = part->dims[d].start;
    return unswizzled(lo, &lo->b, part->memory, part->bits, starts);
}

int64_t tir_lower_part_byte(const struct lower_part *part, const int64_t coord[TIR_MAX_RANK])
{
    int64_t at[TIR_MAX_RANK] = {0};
    for (uint32_t d = 0; d < part->memory->rank; d++)
        at[d] = part->dims[d].dim >= 0 ? coord[part->dims[d].dim] : 0;
    return (int64_t)tir_layout_find(part->memory, at).at[TIR_AXIS_REG] * part->bits / 8;
}
