// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of the tensor core, which all stand in one queue: what products, commits and copies
// share.
#ifndef EMU_UMMA_WORK_H
#define EMU_UMMA_WORK_H

#include "emu/async/op.h"
#include "emu/run/run.h"
#include "emu/tensor/tmem.h"
#include "emu/tensor/umma.h"

struct emu_umma_work {
    struct emu_op op;
    void (*done)(struct emu_umma_work *work);
    uint64_t cycles; // of the engine; 1 unless it is set
};

// `size` bytes that begin with the work, in the queue of the CTA or pair; issued by the caller.
void *emu_umma_work_new(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, size_t size,
                        void (*done)(struct emu_umma_work *));
// Before its accesses: where a product accumulates, with its shape; 0: it is a copy.
void emu_umma_order(struct emu_umma_work *work, uint32_t accumulator);
// A fault unless the descriptor is one of the tensor core's.
void emu_umma_check_matrix(struct emu_warp *w, uint32_t lane, uint64_t descriptor);
struct emu_smem_matrix emu_umma_matrix(uint64_t descriptor, bool mn_major);
// Shared memory as it is read when the work is done; a wait for a later commit knows of the reads.
struct emu_smem emu_umma_memory(struct emu_umma_work *work, const struct emu_cta *cta);
// A run of words of a lane.
void emu_umma_access(struct emu_umma_work *work, const struct emu_cta *cta, uint32_t lane,
                     uint32_t column, uint32_t count, enum emu_access access);

#endif
