// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, shared and local memory: from coordinates to bytes.

#include "pass/lower/walk.h"

uint64_t tir_lower_walk_byte(const struct lower_walk *w, const int64_t coord[TIR_MAX_RANK])
{
    uint64_t element = tir_layout_find(w->memory, coord).at[TIR_AXIS_REG];
    return tir_layout_byte(w->memory, element, w->bits);
}

// The tile's coordinates at a position, as coordinates of the alloc (starts not added).
void tir_lower_walk_coord(const struct lower_walk *w, struct tir_layout_at at,
                          int64_t out[TIR_MAX_RANK])
{
    int64_t coord[TIR_MAX_RANK] = {0};
    if (w->layout)
        tir_layout_coord(w->layout, at, coord);
    for (uint32_t d = 0; d < w->rank; d++)
        out[d] = w->dims[d].tile_dim >= 0 ? coord[w->dims[d].tile_dim] : 0;
}

// Byte of coordinates given as values, before the swizzle; NULL entries are 0, as is the result.
struct tir_value *tir_lower_unswizzled(struct lower *lo, struct tir_builder *b,
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
struct tir_value *tir_lower_walk_address(struct lower *lo, struct tir_builder *b,
                                         const struct lower_walk *w, struct tir_value *const *coord)
{
    struct tir_value *byte = tir_lower_unswizzled(lo, b, w->memory, w->bits, coord);
    if (!byte)
        return tir_lower_i32(lo, 0);
    if (w->memory->swizzle) {
        struct tir_value *row = tir_lower_digit(lo, b, byte, 128, w->memory->swizzle / 16, false);
        row = tir_binary(b, TIR_OP_SHL, row, tir_lower_i32(lo, 4));
        byte = tir_binary(b, TIR_OP_XOR, byte, row);
    }
    return byte;
}
