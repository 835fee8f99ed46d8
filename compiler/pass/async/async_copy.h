// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What cp.async can copy.
#ifndef TIR_PASS_ASYNC_ASYNC_COPY_H
#define TIR_PASS_ASYNC_ASYNC_COPY_H

#include "ir/range.h"
#include "machine/target.h"

// Bytes that one cp.async may move of the slice that a load or copy names, into a buffer of this
// type: 4, 8 or 16. 0: none can, and *why says so.
uint32_t tir_copy_width(const struct tir_func *f, const struct tir_target *target,
                        const struct tir_ranges *ranges, const struct tir_inst *slice,
                        const struct tir_type *buffer, const char **why);

#endif
