// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles that loops load, on their way through shared memory.
#ifndef TIR_PASS_LAYOUT_STREAM_H
#define TIR_PASS_LAYOUT_STREAM_H

#include "pass/pass.h"

// Sends tiles that loops load through shared buffers, where the copies can then run ahead.
void tir_stream_loads(struct tir_func *f, struct tir_pass_cx *cx);

#endif
