// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the decoder of mma and its execution.
#ifndef EMU_MMA_H
#define EMU_MMA_H

#include "emu/tensor/matrix.h"

enum emu_mma_kind {
    EMU_MMA_NONE,
    EMU_MMA_F8F6F4,
    EMU_MMA_MXF8F6F4, // from here on with scales
    EMU_MMA_MXF4,
    EMU_MMA_MXF4NVF4
};

enum { EMU_MMA_DENSE, EMU_MMA_SPARSE };

// A row of mma.def.
struct emu_mma_shape {
    const char *name;
    uint8_t sparse, kind, m, c; // c: enum emu_type of C and D
    uint16_t k;
    uint8_t a;
};

extern const struct emu_mma_shape emu_mma_shapes[];
extern const uint32_t emu_mma_shape_count;

enum { // op
    EMU_MMA_SATFINITE = 1 << 0,
    EMU_MMA_XOR = 1 << 1,
    EMU_MMA_ORDERED = 1 << 2,
    EMU_MMA_A_BY_COLUMNS = 1 << 3, // m8n8k4
    EMU_MMA_B_BY_ROWS = 1 << 4
};

static inline struct emu_element emu_mma_element(const struct emu_mma_shape *s, enum emu_type type)
{
    const bool padded = s->kind == EMU_MMA_F8F6F4 || s->kind == EMU_MMA_MXF8F6F4;
    return padded ? emu_element_padded(type) : emu_element_packed(type);
}

// Elements of A a row has stored.
static inline uint32_t emu_mma_stored(const struct emu_mma_shape *s)
{
    return s->sparse ? s->k / 2u : s->k;
}

// Registers of a lane that hold `values` elements.
static inline uint32_t emu_mma_registers(uint32_t values, uint32_t bits)
{
    return values * bits / (bits == 64 ? 64 : 32);
}

#endif
