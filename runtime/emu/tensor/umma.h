// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tcgen05.mma and tcgen05.commit: what their decoder and their execution share.
#ifndef EMU_UMMA_H
#define EMU_UMMA_H

#include "emu/tensor/smem_matrix.h"

enum emu_umma_kind {
    EMU_UMMA_F16,
    EMU_UMMA_TF32,
    EMU_UMMA_F8F6F4,
    EMU_UMMA_I8,
    EMU_UMMA_MXF8F6F4, // from here on with scales
    EMU_UMMA_MXF4,
    EMU_UMMA_MXF4NVF4
};

enum { // op of a product, beside the kind
    EMU_UMMA_KIND = 7,
    EMU_UMMA_PAIR = 1 << 3, // cta_group::2
    EMU_UMMA_A_IN_TMEM = 1 << 4,
    EMU_UMMA_NOT_INPUT_D = 1 << 5, // the predicate came with a `!`
    EMU_UMMA_WS = 1 << 6,
    // op of a commit, beside EMU_UMMA_PAIR
    EMU_UMMA_MULTICAST = 1 << 4
};

enum emu_umma_copy { // of tcgen05.cp
    EMU_UMMA_128X256B,
    EMU_UMMA_128X128B,
    EMU_UMMA_4X256B,
    EMU_UMMA_64X128B_02_13,
    EMU_UMMA_64X128B_01_23,
    EMU_UMMA_32X128B_X4
};

enum { EMU_UMMA_MOST_N = 256 };

// The contents of an instruction descriptor.
struct emu_umma_shape {
    uint32_t m, n, k;
    struct emu_element a, b;
    enum emu_type d;
    bool negate_a, negate_b, trans_a, trans_b, saturate;
    enum emu_type scale;       // of the scales of A and B; EMU_none: there are none
    uint32_t scale_a, scale_b; // which byte of a word has the first one
};

// False: the kind has no such shape or types.
bool emu_umma_shape_of(uint32_t descriptor, enum emu_umma_kind kind, uint32_t op,
                       struct emu_umma_shape *out);

#endif
