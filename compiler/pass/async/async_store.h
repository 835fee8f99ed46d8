// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores of tiles by tensor copies; a part of async_copy.
#ifndef TIR_PASS_ASYNC_ASYNC_STORE_H
#define TIR_PASS_ASYNC_ASYNC_STORE_H

#include "pass/pass.h"

// Stores the results of f's products through shared memory, in chunks of columns, if tensor copies
// can store them. True: something changed.
bool tir_make_async_stores(struct tir_func *f, struct tir_pass_cx *cx);

// Bytes of shared memory that a store of this tile goes through, if its columns are whole chunks.
int64_t tir_store_buffers_bytes(const struct tir_type *value);

#endif
