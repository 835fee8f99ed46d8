// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the configurations of a kernel share.
#ifndef TIR_COMPILE_CONFIGS_H
#define TIR_COMPILE_CONFIGS_H

#include "ir/context.h"
#include "ir/ir.h"

// Configurations of one kernel take the same arguments. Conditions that not all of them state are
// moved to the end of each and choose it at a launch (tir_func.own_count) instead of being
// demanded. False: a diagnostic was reported.
bool tir_compile_share(struct tir_context *cx, struct tir_func *const *configs, uint32_t count);
// The metas that the configuration binds: "BM=64, BN=128".
tir_str tir_compile_config_text(struct tir_arena *arena, const struct tir_func *f);

#endif
