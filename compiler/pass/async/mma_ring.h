// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether tensor copies feed loops of products by mma.sync; a part of async_copy and pipeline.
#ifndef TIR_PASS_ASYNC_MMA_RING_H
#define TIR_PASS_ASYNC_MMA_RING_H

#include "ir/follow.h"
#include "pass/pass.h"

// Why no tensor copies feed the products of f by mma.sync; NULL: they may.
const char *tir_mma_ring_refusal(const struct tir_func *f, const struct tir_pass_cx *cx);
// Why the copy of the slice of `access` cannot start rounds ahead of its own; NULL: it can.
const char *tir_mma_ring_copy_refusal(const struct tir_func *f, struct tir_arena *scratch,
                                      const struct tir_inst *access);

#endif
