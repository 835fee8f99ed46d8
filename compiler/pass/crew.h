// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who runs an instruction: the warps of its role, or all of the CTA.
#ifndef TIR_PASS_CREW_H
#define TIR_PASS_CREW_H

#include "ir/ir.h"

#define TIR_NAMED_BARRIERS 16 // number 0 is the whole CTA's, role number r has r + 1

struct tir_crew {
    const struct tir_inst *role; // NULL: the CTA
    uint32_t number;             // of the role, in program order
    uint32_t first, warps;
};

// The crew of the role that inst is, or is inside of. Roles that do not say where they begin follow
// each other; one with registers of its own begins a warpgroup, unless the one before has the same
// and leaves room.
struct tir_crew tir_crew_of(const struct tir_func *f, const struct tir_inst *inst);
struct tir_crew tir_crew_of_block(const struct tir_func *f, const struct tir_block *block);

// Builds bar_sync for exactly these threads.
void tir_build_crew_barrier(struct tir_builder *b, const struct tir_crew *crew);
// Is inst a barrier that all of these threads wait at?
bool tir_is_crew_barrier(const struct tir_inst *inst, const struct tir_crew *crew);
// A bool that is true in the crew's first thread alone.
struct tir_value *tir_build_is_leader(struct tir_builder *b, const struct tir_crew *crew);
// Builds `if cond { }`: gives the builder of its block, in front of the yield.
struct tir_builder tir_build_if(struct tir_builder *b, struct tir_value *cond);

#endif
