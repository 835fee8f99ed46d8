// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code that passes build for a crew: barriers, and code for each of its groups.
#ifndef TIR_PASS_SYNC_CREW_H
#define TIR_PASS_SYNC_CREW_H

#include "ir/crew.h"

// Builds a barrier for exactly these threads; of a scope, one for each of its groups.
void tir_build_crew_barrier(struct tir_builder *b, const struct tir_crew *crew);
// Builds a barrier of so many warps, or an arrival there; id 0: that of the CTA.
void tir_build_barrier(struct tir_builder *b, enum tir_op op, uint32_t id, uint32_t warps);
// Builds code of its own for each of a crew's groups of warps.
void tir_build_by_group(struct tir_builder b, const struct tir_crew *groups,
                        void (*build)(void *user, struct tir_builder *b, uint32_t group),
                        void *user);
// Is inst a barrier that all of these threads wait at?
bool tir_is_crew_barrier(const struct tir_inst *inst, const struct tir_crew *crew);
// Builds `if cond { }`: gives the builder of its block, in front of the yield.
struct tir_builder tir_build_if(struct tir_builder *b, struct tir_value *cond);

#endif
