// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index tiles of pixels, which pixel_index makes: for tensor copies, and without them.
#ifndef TIR_PASS_ASYNC_PIXELS_H
#define TIR_PASS_ASYNC_PIXELS_H

#include "ir/ir.h"

// The index tile along dimension 0, if the slice of a load or copy is of pixels. NULL: it is not.
const struct tir_inst *tir_pixels_of(const struct tir_inst *access);
// Makes the slice of such a copy one of the first pixel, with what a tensor copy says of the rest.
void tir_state_pixels(struct tir_func *f, struct tir_inst *copy);
// The same indices in another layout.
struct tir_value *tir_pixels_in_layout(struct tir_builder *b, struct tir_value *v,
                                       const struct tir_layout *l);
// Computes all index tiles that are left from the numbers of their pixels. False: none is left.
bool tir_expand_pixels(struct tir_func *f, struct tir_arena *scratch);

#endif
