// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wmma: how the lanes of a warp hold matrices that PTX leaves opaque.
//
// Here a register of A or B is 8 rows of 4 e elements, as with mma (mma.c), and a pair of values of
// C or D is 8 rows of 8; these tiles follow one another along the rows first. The rows of B are its
// columns. f16 has eight registers for A and B whatever the shape: the tiles come round again.
#ifndef EMU_WMMA_H
#define EMU_WMMA_H

#include "emu/tensor/matrix.h"

struct emu_wmma_shape {
    const char *name;
    uint8_t m, n, k;
};

extern const struct emu_wmma_shape emu_wmma_shapes[]; // ends with one without a name

enum emu_wmma_side { EMU_WMMA_A, EMU_WMMA_B, EMU_WMMA_C };

enum { // op of loads and stores, beside the side
    EMU_WMMA_SIDE = 3,
    EMU_WMMA_COL = 1 << 2,
    EMU_WMMA_STRIDE = 1 << 3, // src[1] has one
    // op of products
    EMU_WMMA_SATFINITE = 1 << 0,
    EMU_WMMA_XOR = 1 << 1
};

struct emu_wmma_fragment {
    uint32_t rows, columns;
    uint32_t elements;         // of a lane in a row of a tile
    uint32_t tiles, registers; // of a lane
};

struct emu_wmma_fragment emu_wmma_fragment_of(const struct emu_wmma_shape *s,
                                              enum emu_wmma_side side, enum emu_type type);

#endif
