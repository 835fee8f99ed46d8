// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the decoders of tensor copies and the functions that execute them.
#ifndef EMU_TENSOR_COPY_H
#define EMU_TENSOR_COPY_H

#include "emu/decode/decode.h"

// The operands of a tensor copy in its instruction's list; absent ones have EMU_NO_REF.
enum {
    EMU_TENSOR_MAP,                        // address
    EMU_TENSOR_SHARED,                     // address
    EMU_TENSOR_BARRIER,                    // address
    EMU_TENSOR_CTAS,                       // 16 bits: of a multicast
    EMU_TENSOR_AT,                         // five coordinates
    EMU_TENSOR_OFFSET = EMU_TENSOR_AT + 5, // three offsets of im2col
    EMU_TENSOR_ARGS = EMU_TENSOR_OFFSET + 3
};

enum emu_tensor_action {
    EMU_TENSOR_LOAD,
    EMU_TENSOR_STORE,
    EMU_TENSOR_REDUCE,
    EMU_TENSOR_PREFETCH
};

void emu_decode_tensor_copy(struct emu_dec *d, bool reduces, bool prefetches);

#endif
