// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores of tiles by tensor copies; a part of async_copy.
#ifndef TIR_PASS_ASYNC_ASYNC_STORE_H
#define TIR_PASS_ASYNC_ASYNC_STORE_H

#include "pass/pass.h"

// Sends what the products of f give through shared memory in chunks of columns, where tensor copies
// can store it. True: something changed.
bool tir_make_async_stores(struct tir_func *f, struct tir_pass_cx *cx);

#endif
