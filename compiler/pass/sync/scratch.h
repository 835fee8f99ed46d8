// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scratch in shared memory that operations need whose tiles change threads.
#ifndef TIR_PASS_SYNC_SCRATCH_H
#define TIR_PASS_SYNC_SCRATCH_H

#include "ir/ir.h"

// Where the operation has its scratch among its operands; UINT32_MAX: it never has any.
uint32_t tir_scratch_at(const struct tir_inst *inst);
// What inst needs. NULL: nothing. used: its old values are, if it is an atomic.
const struct tir_type *tir_scratch_type(struct tir_func *f, const struct tir_inst *inst, bool used);
// The dimension along which a tile goes through its scratch in parts.
uint32_t tir_parts_along(const struct tir_type *tile);
// Half of this scratch of inst, which then takes more parts. NULL: it stays as it is.
const struct tir_type *tir_scratch_half(struct tir_func *f, const struct tir_inst *inst,
                                        const struct tir_type *scratch);

#endif
