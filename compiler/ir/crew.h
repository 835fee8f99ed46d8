// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The warps that run an instruction: those of its scope or role, or all of the CTA.
#ifndef TIR_IR_CREW_H
#define TIR_IR_CREW_H

#include "ir/ir.h"

#define TIR_WARPGROUP      4     // warps
#define TIR_REGISTERS      65536 // of a multiprocessor, on every target
#define TIR_NAMED_BARRIERS 16    // of a CTA

// The most registers that each thread of a CTA starts with; setmaxnreg moves these between its
// warpgroups, and there are no others.
uint32_t tir_launch_registers(uint32_t threads);

struct tir_crew {
    const struct tir_inst *role;  // NULL: the CTA
    const struct tir_inst *scope; // the innermost around; NULL: all warps of the role or CTA
    uint32_t number;              // of the role, in program order
    uint32_t first, warps;        // of a scope the warps of one group, the first
    uint32_t groups;              // of warps, that each run the block by themselves
};

// The crew of the role or scope that inst is, or is inside of. A role without a first warp follows
// the role before it: in the same warpgroup if there is room and both ask for the same registers,
// which belong to a warpgroup; else in the next warpgroup. The groups of a scope count from the
// first warp of its role.
struct tir_crew tir_crew_of(const struct tir_func *f, const struct tir_inst *inst);
struct tir_crew tir_crew_of_block(const struct tir_func *f, const struct tir_block *block);
// The named barrier of the crew; 0: that of the CTA. Of a scope it is the first group's, and each
// next group has the one below; a group of one warp needs none.
bool tir_crew_has_barrier(const struct tir_func *f,
                          const struct tir_crew *crew); // are there enough?
uint32_t tir_crew_barrier(const struct tir_func *f, const struct tir_crew *crew);
// A bool that is true only in the crew's first thread; of a scope, in that of each group.
struct tir_value *tir_build_is_leader(struct tir_builder *b, const struct tir_crew *crew);

#endif
