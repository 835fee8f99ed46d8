// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles that loops load, on their way through shared memory.
#ifndef TIR_PASS_LAYOUT_STREAM_H
#define TIR_PASS_LAYOUT_STREAM_H

#include "pass/pass.h"

// Sends tiles that loops load through shared buffers, where the copies can then run ahead.
void tir_stream_loads(struct tir_func *f, struct tir_pass_cx *cx);

// Is the shared buffer read for nothing but to compute what is stored for products on warpgroups?
bool tir_is_for_puts(const struct tir_func *f, struct tir_arena *scratch,
                     const struct tir_value *buffer);

#endif
