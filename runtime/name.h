// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The names of a variant's warps and mbarriers in the source.
#ifndef TIR_RUNTIME_NAME_H
#define TIR_RUNTIME_NAME_H

#include "tir/artifact.h"

// The role that a warp belongs to; NULL: none.
const tir_artifact_role *tir_name_role(const tir_artifact_variant *variant, uint32_t warp);

// The mbarrier at an offset in dynamic shared memory, and which one of its name; NULL: none.
const tir_artifact_barrier *tir_name_barrier(const tir_artifact_variant *variant, uint32_t offset,
                                             uint32_t *index);

#endif
