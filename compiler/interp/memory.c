// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on memory: tensors and buffers hold encoded elements, as they do on a device.
//
// A slice is first turned into a list of places, one element offset each and -1 for what lies
// outside; loading, storing and atomics then walk that list.

#include "interp/state.h"
#include "ir/effect.h"

#define OUTSIDE (-1)

struct places {
    const struct buffer *buffer;
    int64_t *at; // element offsets; negative: outside
    uint32_t count;
    bool lanes; // one place per lane, not a tile
};

static union tir_number fetch(const struct buffer *b, int64_t at)
{
    const uint32_t size = tir_elems[b->elem].bits / 8;
    uint64_t raw = 0;
    for (uint32_t i = 0; b->bytes && i < size; i++)
        memcpy((uint8_t *)&raw + i, b->data + b->bytes[at * size + i], 1);
    if (!b->bytes)
        memcpy(&raw, b->data + at * size, size);
    return tir_number_decode(b->elem, raw);
}

static void put(const struct buffer *b, int64_t at, union tir_number x)
{
    const uint32_t size = tir_elems[b->elem].bits / 8;
    const uint64_t raw = tir_number_encode(b->elem, x);
    for (uint32_t i = 0; b->bytes && i < size; i++)
        memcpy(b->data + b->bytes[at * size + i], (const uint8_t *)&raw + i, 1);
    if (!b->bytes)
        memcpy(b->data + at * size, &raw, size);
}

static bool inside(int64_t index, int64_t size)
{
    return (uint64_t)index < (uint64_t)size;
}

// The box of one dimension: a size, 0 for a single index, -1 for an index tile.
static int64_t box_of(const struct tir_inst *inst, uint32_t d)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    if (box)
        return box->list[d];
    return tir_type_is_tile(tir_ref_indices(inst)[d]->type) ? -1 : 0;
}

// Each lane's own element.
static void resolve_lanes(struct interp *in, const struct tir_inst *inst, struct places *p)
{
    struct tir_value **indices = tir_ref_indices(inst);
    const struct buffer *b = p->buffer;
    p->count = in->lanes;
    p->at = arena_array(&in->scratch, int64_t, p->count);
    for (uint32_t i = 0; i < p->count; i++)
        p->at[i] = b->first + b->lane_stride * (in->window + i);
    for (uint32_t d = 0; d < b->rank; d++) {
        const union tir_number *index = tir_interp_read(in, indices[d]);
        for (uint32_t i = 0; i < p->count; i++)
            if (p->at[i] != OUTSIDE)
                p->at[i] = inside(index[i].i, b->shape[d]) ? p->at[i] + index[i].i * b->stride[d]
                                                           : OUTSIDE;
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (!in->active[i])
            p->at[i] = OUTSIDE;
}

// The places so far, times `size` more, which lie `steps` further or OUTSIDE.
static void extend_by(struct interp *in, struct places *p, const int64_t *steps, uint32_t size)
{
    int64_t *at = arena_array(&in->scratch, int64_t, (size_t)p->count * size);
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t j = 0; j < size; j++)
            at[(size_t)i * size + j] =
                p->at[i] == OUTSIDE || steps[j] == OUTSIDE ? OUTSIDE : p->at[i] + steps[j];
    p->at = at;
    p->count *= size;
}

// A dimension's slice, of every n-th element; wraps: the attribute, or 1.
static void extend(struct interp *in, struct places *p, uint32_t d, int64_t start, int64_t n,
                   uint32_t size, int64_t wraps)
{
    const struct buffer *b = p->buffer;
    const uint64_t turned = (0 - (uint64_t)start) & (uint64_t)(wraps - 1);
    int64_t *steps = arena_array(&in->scratch, int64_t, size);
    for (uint32_t j = 0; j < size; j++) {
        const uint64_t along = j < turned ? (uint64_t)j + size : j;
        int64_t index = (int64_t)((uint64_t)start + (uint64_t)n * along);
        steps[j] = inside(index, b->shape[d]) ? index * b->stride[d] : OUTSIDE;
    }
    extend_by(in, p, steps, size);
}

// Adds what one index tile of dimension d says to the steps of the shape that all have together.
static void add_tile(struct interp *in, const struct buffer *b, uint32_t d,
                     const struct tir_value *tile, const struct tir_type *shape, int64_t *steps)
{
    const union tir_number *from = tir_interp_read(in, tile);
    int64_t count = tir_type_count(shape);
    for (int64_t j = 0; j < count; j++) {
        int64_t rest = j, at = 0, weight = 1;
        for (uint32_t i = shape->rank; i-- > 0; rest /= shape->shape[i]) {
            at += tile->type->shape[i] == 1 ? 0 : rest % shape->shape[i] * weight;
            weight *= tile->type->shape[i];
        }
        bool ok = steps[j] != OUTSIDE && inside(from[at].i, b->shape[d]);
        steps[j] = ok ? steps[j] + from[at].i * b->stride[d] : OUTSIDE;
    }
}

// What the index tiles of the slice name together.
static void extend_by_tiles(struct interp *in, struct places *p, const struct tir_inst *inst)
{
    const struct buffer *b = p->buffer;
    struct tir_value **indices = tir_ref_indices(inst);
    int64_t box[TIR_MAX_RANK];
    struct tir_type shape;
    for (uint32_t d = 0; d < b->rank; d++)
        box[d] = box_of(inst, d);
    bool fits = tir_index_shape(indices, box, b->rank, &shape);
    assert(fits);
    (void)fits;
    uint32_t count = (uint32_t)tir_type_count(&shape);
    int64_t *steps = arena_array(&in->scratch, int64_t, count);
    for (uint32_t d = 0; d < b->rank; d++)
        if (box[d] < 0)
            add_tile(in, b, d, indices[d], &shape, steps);
    extend_by(in, p, steps, count);
}

static struct places resolve(struct interp *in, const struct tir_inst *inst)
{
    struct tir_value **indices = tir_ref_indices(inst);
    struct places p = {.buffer = tir_interp_buffer(in, inst, tir_ref_base(inst)), .lanes = true};
    for (uint32_t d = 0; d < p.buffer->rank; d++)
        p.lanes = p.lanes && box_of(inst, d) == 0;
    if (p.lanes) {
        resolve_lanes(in, inst, &p);
        return p;
    }
    if (p.buffer->lane_stride)
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "a tile of a thread's own buffer");
    p.at = arena_new(&in->scratch, int64_t);
    p.at[0] = p.buffer->first;
    p.count = 1;
    bool tiles_done = false;
    for (uint32_t d = 0; d < p.buffer->rank; d++) {
        int64_t box = box_of(inst, d);
        if (box < 0 && !tiles_done)
            extend_by_tiles(in, &p, inst);
        else if (box >= 0)
            extend(in, &p, d, tir_interp_uniform(in, inst, indices[d]).i, tir_slice_stride(inst, d),
                   (uint32_t)TIR_MAX(box, 1),
                   d + 1 == p.buffer->rank ? tir_attr_int(inst, TIR_ATTR_wraps, 1) : 1);
        tiles_done |= box < 0;
    }
    return p;
}

// An optional operand that goes with each place: absent, the same for all, or one per place.
struct each {
    const union tir_number *at;
    uint32_t step;
};

static struct each each_of(struct interp *in, const struct tir_inst *inst, const struct places *p,
                           const struct tir_value *v)
{
    if (!v)
        return (struct each){0};
    if (p->lanes || v->type->rank)
        return (struct each){tir_interp_read(in, v), 1};
    tir_interp_uniform(in, inst, v);
    return (struct each){tir_interp_read(in, v), 0};
}

static bool masked_out(struct each mask, uint32_t i)
{
    return mask.at && !mask.at[i * mask.step].i;
}

static void check_count(struct interp *in, const struct tir_inst *inst, const struct places *p,
                        const struct tir_type *type)
{
    if (p->count != count_of(in, type))
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "'%s' of %u elements of a slice of %u",
                        tir_ops[inst->op].name, count_of(in, type), p->count);
}

// f32 that become tf32 are rounded, all others are as they were.
static union tir_number rounded(enum tir_elem to, const struct buffer *from, union tir_number x)
{
    const bool rounds = from->elem == TIR_F32 && to == TIR_TF32;
    return rounds ? tir_number_cast(to, from->elem, x) : x;
}

void tir_interp_load(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *result = tir_result(inst);
    struct places p = resolve(in, inst);
    check_count(in, inst, &p, result->type);
    struct each pad = each_of(in, inst, &p, inst->operands[TIR_LOAD_PAD]);
    struct each mask = each_of(in, inst, &p, inst->operands[TIR_LOAD_MASK]);
    union tir_number *to = tir_interp_write(in, result);
    static const union tir_number zero;
    for (uint32_t i = 0; i < p.count; i++)
        if (p.at[i] == OUTSIDE || masked_out(mask, i))
            to[i] = rounded(result->type->elem, p.buffer, pad.at ? pad.at[i * pad.step] : zero);
        else
            to[i] = rounded(result->type->elem, p.buffer, fetch(p.buffer, p.at[i]));
}

void tir_interp_store(struct interp *in, const struct tir_inst *inst)
{
    struct places p = resolve(in, inst);
    struct each value = each_of(in, inst, &p, inst->operands[TIR_STORE_VALUE]);
    struct each mask = each_of(in, inst, &p, inst->operands[TIR_STORE_MASK]);
    assert(value.at);
    if (value.step)
        check_count(in, inst, &p, inst->operands[TIR_STORE_VALUE]->type);
    for (uint32_t i = 0; i < p.count; i++)
        if (p.at[i] != OUTSIDE && !masked_out(mask, i))
            put(p.buffer, p.at[i], value.at[i * value.step]);
}

// A role does a scalar atomic once, unless it speaks of threads: by the first lane that comes.
static bool once_for_all(const struct interp *in, const struct tir_inst *inst,
                         const struct places *p)
{
    return p->lanes && in->threads && !tir_is_by_thread(in->f, inst);
}

void tir_interp_atomic(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *result = tir_result(inst);
    struct places p = resolve(in, inst);
    struct each value = each_of(in, inst, &p, inst->operands[TIR_STORE_VALUE]);
    struct each mask = each_of(in, inst, &p, inst->operands[TIR_STORE_MASK]);
    struct each expected = each_of(in, inst, &p, inst->operands[TIR_ATOMIC_EXPECTED]);
    enum tir_op op = tir_op_of_kind(tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE));
    assert(value.at);
    check_count(in, inst, &p, result->type);
    union tir_number *old = tir_interp_write(in, result);
    bool once = once_for_all(in, inst, &p), done = false;
    for (uint32_t i = 0; i < p.count; i++) {
        old[i] = (union tir_number){0};
        if (once && done) {
            old[i] = old[i - 1];
            continue;
        }
        done |= once && in->active[i];
        if (p.at[i] == OUTSIDE || masked_out(mask, i))
            continue;
        old[i] = fetch(p.buffer, p.at[i]);
        union tir_number pair[2] = {old[i], value.at[i * value.step]}, next = pair[1];
        if (op != TIR_OP_COUNT && !tir_number_apply(op, p.buffer->elem, pair, &next))
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED,
                            "this atomic on %s cannot be interpreted",
                            tir_elems[p.buffer->elem].name);
        if (!expected.at || expected.at[i * expected.step].i == old[i].i)
            put(p.buffer, p.at[i], next);
    }
    tir_interp_scribble(in, inst, inst->operands[TIR_ATOMIC_SCRATCH]);
}

static void set_buffer(struct interp *in, const struct tir_value *v, const struct buffer *b)
{
    struct slot *slot = &in->slots[v->id];
    if (!slot->buffer)
        slot->buffer = arena_new(&in->arena, struct buffer);
    *slot->buffer = *b;
}

static void dense(struct buffer *b)
{
    int64_t size = 1;
    for (uint32_t d = b->rank; d-- > 0; size *= b->shape[d])
        b->stride[d] = size;
}

// A buffer's contents are undefined: bytes that read as NaN make a use visible. Buffers that were
// placed share the CTA's memory, as they do on the device.
void tir_interp_alloc(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *result = tir_result(inst);
    const struct tir_type *type = result->type;
    struct slot *slot = &in->slots[result->id];
    size_t bytes = (size_t)tir_type_bytes(type), copies = 1;
    int64_t offset = tir_attr_int(inst, TIR_ATTR_offset, -1);
    if (type->space == TIR_SPACE_LOCAL)
        copies = in->max_lanes;
    if (offset >= 0 && (!in->shared || offset + (int64_t)bytes > in->f->shared_bytes))
        tir_interp_fail(in, inst, TIR_ERR_INVALID, "a buffer lies outside of shared memory");
    if (!slot->buffer) {
        struct buffer *b = slot->buffer = arena_new(&in->arena, struct buffer);
        *b = (struct buffer){.elem = type->elem, .rank = type->rank};
        memcpy(b->shape, type->shape, sizeof b->shape);
        dense(b);
        b->lane_stride = type->space == TIR_SPACE_LOCAL ? tir_type_count(type) : 0;
        b->data =
            offset >= 0 ? in->shared + offset : tir_arena_alloc_array(&in->arena, copies, bytes);
    }
    if (offset < 0)
        memset(slot->buffer->data, 0xff, copies * bytes);
}

void tir_interp_scribble(struct interp *in, const struct tir_inst *inst, const struct tir_value *v)
{
    if (!v)
        return;
    const struct buffer *b = tir_interp_buffer(in, inst, v);
    uint32_t bits = tir_elems[b->elem].bits;
    memset(b->data + b->first * bits / 8, 0xff, (size_t)tir_type_bytes(v->type));
}

// The same buffer with its dimensions in another order.
void tir_interp_transpose(struct interp *in, const struct tir_inst *inst)
{
    const struct buffer *b = tir_interp_buffer(in, inst, inst->operands[0]);
    const int64_t *order = tir_attr_find(inst, TIR_ATTR_permutation)->list;
    struct buffer v = *b;
    for (uint32_t d = 0; d < b->rank; d++) {
        v.shape[d] = b->shape[order[d]];
        v.stride[d] = b->stride[order[d]];
    }
    set_buffer(in, tir_result(inst), &v);
}

// The strides of a row-major buffer in another shape. The whole of it has no gaps.
void tir_interp_reshape_buffer(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_type *t = tir_result(inst)->type;
    struct buffer v = *tir_interp_buffer(in, inst, inst->operands[0]);
    int64_t stride = v.rank ? v.stride[v.rank - 1] : 1;
    v.rank = t->rank;
    for (uint32_t d = t->rank; d-- > 0; stride *= t->shape[d]) {
        v.shape[d] = t->shape[d];
        v.stride[d] = stride;
    }
    set_buffer(in, tir_result(inst), &v);
}

void tir_interp_view(struct interp *in, const struct tir_inst *inst)
{
    const struct buffer *b = tir_interp_buffer(in, inst, tir_ref_base(inst));
    struct buffer v = {.data = b->data,
                       .elem = b->elem,
                       .first = b->first,
                       .lane_stride = b->lane_stride,
                       .bytes = b->bytes};
    for (uint32_t d = 0; d < b->rank; d++) {
        int64_t box = box_of(inst, d), size = TIR_MAX(box, 1);
        if (box < 0)
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "a view through an index tile");
        int64_t start = tir_interp_uniform(in, inst, tir_ref_indices(inst)[d]).i;
        if (!inside(start, b->shape[d]) || size > b->shape[d] - start)
            tir_interp_fail(
                in, inst, TIR_ERR_INVALID,
                "a part of a buffer lies outside of it: %lld in dimension %u of size %lld",
                (long long)start, d, (long long)b->shape[d]);
        v.first += start * b->stride[d];
        if (box) {
            v.shape[v.rank] = box;
            v.stride[v.rank++] = b->stride[d];
        }
    }
    set_buffer(in, tir_result(inst), &v);
}

// Offsets of all elements of a buffer, row-major.
static struct places all_of(struct interp *in, const struct buffer *b)
{
    struct places p = {.buffer = b, .at = arena_new(&in->scratch, int64_t), .count = 1};
    p.at[0] = b->first;
    for (uint32_t d = 0; d < b->rank; d++)
        extend(in, &p, d, 0, 1, (uint32_t)b->shape[d], 1);
    return p;
}

void tir_interp_load_all(struct interp *in, const struct buffer *b, union tir_number *to)
{
    struct places p = all_of(in, b);
    for (uint32_t i = 0; i < p.count; i++)
        to[i] = fetch(b, p.at[i]);
}

union tir_number tir_interp_packed(enum tir_elem elem, uint32_t bit, const union tir_number *bytes)
{
    const uint32_t bits = tir_elem_width(elem);
    uint64_t all = tir_number_encode(TIR_U8, bytes[0]);
    if (bit + bits > 8)
        all |= tir_number_encode(TIR_U8, bytes[1]) << 8;
    return tir_number_decode(elem, all >> bit & ((1u << bits) - 1));
}

// Elements of 4 or 6 bits from the bytes in which they are packed.
static void copy_packed(const struct places *from, const struct places *to, uint32_t bits,
                        bool copies)
{
    for (uint32_t i = 0; i < to->count; i++) {
        union tir_number bytes[2] = {{0}};
        for (uint32_t k = 0; k < 2 && i * bits / 8 + k < from->count; k++) {
            const int64_t at = from->at[i * bits / 8 + k];
            if (copies && at != OUTSIDE)
                bytes[k] = fetch(from->buffer, at);
        }
        put(to->buffer, to->at[i], tir_interp_packed(to->buffer->elem, i * bits % 8, bytes));
    }
}

void tir_interp_copy_async(struct interp *in, const struct tir_inst *inst)
{
    struct places from = resolve(in, inst);
    struct places to = all_of(in, tir_interp_buffer(in, inst, inst->operands[TIR_COPY_TO]));
    const uint32_t packed = tir_copy_packed(inst);
    if (from.lanes || 8 * from.count != (packed ? packed : 8) * to.count)
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED,
                        "copy_async of %u elements to a buffer of %u", from.count, to.count);
    const struct tir_value *pred = inst->operands[TIR_COPY_PRED];
    bool copies = !pred || tir_interp_uniform(in, inst, pred).i;
    if (packed) {
        copy_packed(&from, &to, packed, copies);
        return;
    }
    struct each mask = each_of(in, inst, &from, inst->operands[TIR_COPY_MASK]);
    static const union tir_number zero;
    for (uint32_t i = 0; i < from.count; i++) {
        bool there = copies && from.at[i] != OUTSIDE && !masked_out(mask, i);
        const union tir_number x = there ? fetch(from.buffer, from.at[i]) : zero;
        put(to.buffer, to.at[i], rounded(to.buffer->elem, from.buffer, x));
    }
}

// Every thread that comes does all of it, or one does.
void tir_interp_store_async(struct interp *in, const struct tir_inst *inst)
{
    struct places from = all_of(in, tir_interp_buffer(in, inst, inst->operands[0]));
    struct places to = resolve(in, inst);
    enum tir_op op = tir_op_of_kind(tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE));
    if (to.lanes || from.count != to.count)
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "%u elements copied to %u", from.count,
                        to.count);
    uint32_t times = op == TIR_OP_COUNT || !tir_is_committed(inst) ? 1 : in->active_count;
    for (uint32_t i = 0; i < from.count * times; i++) {
        int64_t at = to.at[i % from.count];
        if (at == OUTSIDE)
            continue;
        union tir_number pair[2] = {fetch(to.buffer, at),
                                    fetch(from.buffer, from.at[i % from.count])};
        union tir_number next = pair[1];
        if (op != TIR_OP_COUNT && !tir_number_apply(op, to.buffer->elem, pair, &next))
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "this copy cannot be interpreted");
        put(to.buffer, at, next);
    }
}

void tir_interp_stride(struct interp *in, const struct tir_inst *inst)
{
    const struct buffer *b = tir_interp_buffer(in, inst, inst->operands[0]);
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    for (uint32_t i = 0; i < in->lanes; i++)
        to[i].i = b->stride[tir_attr_int(inst, TIR_ATTR_axis, 0)];
}

void tir_interp_askew(struct interp *in, const struct tir_inst *inst)
{
    union tir_number *to = tir_interp_write(in, tir_result(inst)); // its memory is aligned
    for (uint32_t i = 0; i < in->lanes; i++)
        to[i].i = 0;
}

void tir_interp_alignment(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *tensor = inst->operands[0];
    const struct buffer *b = tir_interp_buffer(in, inst, tensor);
    const struct tir_param *param = tir_param_of(in->f, tensor); // no pass sees a scratch tensor
    union tir_number *to = tir_interp_write(in, tir_result(inst));
    uint32_t inner = b->rank - 1;
    uint64_t bits = tir_elems[b->elem].bits, all = 128;
    for (uint32_t d = 0; d < inner; d++)
        all |= (uint64_t)b->stride[d] * bits;
    if (param->dims[inner].dim >= 0)
        all |= (uint64_t)b->shape[inner] * bits;
    bool dense = b->stride[inner] == 1 || b->shape[inner] <= 1;
    for (uint32_t i = 0; i < in->lanes; i++)
        to[i].i = dense ? (int64_t)((all & (0 - all)) / 8) : 0;
}
