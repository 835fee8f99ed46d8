// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the pass chunk will put in shared memory.
#ifndef TIR_PASS_ASYNC_CHUNK_H
#define TIR_PASS_ASYNC_CHUNK_H

#include "pass/pass.h"

// The buffer through which the value of this store to global memory will go, if it leaves in
// chunks; NULL: it does not. uses: of all values.
const struct tir_type *tir_chunked_store(struct tir_func *f, struct tir_pass_cx *cx, uint32_t *uses,
                                         const struct tir_inst *store);

#endif
