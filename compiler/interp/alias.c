// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on aliases: buffers here hold their elements in order, whatever their layout, so
// the bytes of an alias are found by the layouts of both. Each byte of the alias has a place in
// memory, which is that of a byte of the buffer.

#include "interp/state.h"

// Where the bytes of a buffer of type t lie in memory, element by element in order.
static uint32_t *places_of(struct tir_arena *arena, const struct tir_type *t)
{
    const uint32_t bits = tir_elems[t->elem].bits, size = bits / 8;
    const int64_t count = tir_type_count(t);
    uint32_t *places = arena_array(arena, uint32_t, (size_t)count * size);
    for (int64_t i = 0; i < count; i++) {
        uint64_t byte = (uint64_t)i * size;
        if (t->layout) {
            int64_t coord[TIR_MAX_RANK] = {0}, rest = i;
            for (uint32_t d = t->rank; d-- > 0; rest /= t->shape[d])
                coord[d] = rest % t->shape[d];
            const struct tir_layout_at at = tir_layout_find(t->layout, coord);
            byte = tir_layout_byte(t->layout, at.at[TIR_AXIS_REG], bits);
        }
        for (uint32_t k = 0; k < size; k++)
            places[i * size + k] = (uint32_t)byte + k;
    }
    return places;
}

// The byte of the buffer, in order, for each of the alias. NULL: they are in order, from `offset`.
static const uint32_t *translate(struct interp *in, const struct tir_inst *inst, int64_t offset)
{
    const struct tir_type *t = tir_result(inst)->type, *of = inst->operands[0]->type;
    const uint32_t count = (uint32_t)tir_type_bytes(t), all = (uint32_t)tir_type_bytes(of);
    if (!t->layout && !of->layout)
        return NULL;
    uint32_t *bytes = places_of(&in->arena, t);
    const uint32_t *places = places_of(&in->scratch, of);
    uint32_t *back = arena_array(&in->scratch, uint32_t, (size_t)tir_buffer_bytes(of));
    memset(back, 0xff, (size_t)tir_buffer_bytes(of) * sizeof *back);
    for (uint32_t i = 0; i < all; i++)
        back[places[i]] = i;
    bool in_order = true;
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = back[bytes[i] + (uint32_t)offset];
        if (bytes[i] == UINT32_MAX)
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "an alias of bytes without an element");
        in_order = in_order && bytes[i] == i + (uint32_t)offset;
    }
    return in_order ? NULL : bytes;
}

void tir_interp_alias(struct interp *in, const struct tir_inst *inst)
{
    const struct buffer *of = tir_interp_buffer(in, inst, inst->operands[0]);
    const struct tir_type *t = tir_result(inst)->type;
    const int64_t offset = tir_attr_int(inst, TIR_ATTR_offset, 0);
    struct slot *slot = &in->slots[tir_result(inst)->id];
    if (slot->buffer)
        return;
    struct buffer *b = slot->buffer = arena_new(&in->arena, struct buffer);
    *b = (struct buffer){.elem = t->elem, .rank = t->rank};
    memcpy(b->shape, t->shape, sizeof b->shape);
    int64_t size = 1;
    for (uint32_t d = b->rank; d-- > 0; size *= b->shape[d])
        b->stride[d] = size;
    b->lane_stride = of->lane_stride * tir_elems[of->elem].bits / tir_elems[t->elem].bits;
    b->bytes = translate(in, inst, offset);
    b->data = b->bytes ? of->data : of->data + offset;
}
