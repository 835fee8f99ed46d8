// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers: phases, pending arrivals, transaction bytes (PTX ISA, "mbarrier object").
//
// The bytes of an mbarrier in shared memory are opaque, so its state lies beside them; their shadow
// says that they are not data. A phase is complete when no arrival and no byte is pending; a wait
// names its parity.
#ifndef EMU_MBARRIER_H
#define EMU_MBARRIER_H

#include "emu/async/op.h"
#include "emu/run/state.h"

struct emu_mbarrier {
    struct emu_mbarrier *next; // of the CTA
    struct emu_cta *cta;
    uint32_t offset;          // from the start of the CTA's shared memory
    uint32_t expected;        // arrivals of a phase
    uint32_t pending;         // of this phase
    int64_t tx;               // bytes announced and not yet there
    uint64_t phase;           // that is not complete yet; from 0
    uint64_t time, done_time; // the timeline: of this phase so far, and of the one before it
    struct emu_view view;     // the knowledge of the arrivals of this phase
    struct emu_view done;     // and in those before
    const struct emu_insn *init, *last_arrive, *last_expect,
        *last_complete; // for messages; or NULL
    struct emu_record init_by;
};

// The thread or operation that changes a barrier.
struct emu_by {
    struct emu_warp *warp;
    const struct emu_insn *in;
    uint32_t lane;
    struct emu_op *op; // NULL: the thread itself
};

static inline struct emu_by emu_by_op(struct emu_op *op)
{
    return (struct emu_by){op->warp, op->in, op->lane, op};
}

enum emu_mbarrier_op {
    EMU_MBARRIER_INIT,
    EMU_MBARRIER_INVAL,
    EMU_MBARRIER_EXPECT_TX,
    EMU_MBARRIER_COMPLETE_TX,
    EMU_MBARRIER_ARRIVE,
    EMU_MBARRIER_ARRIVE_DROP,
    EMU_MBARRIER_WAIT
};
enum {
    EMU_MBARRIER_EXPECTS = 16,     // an arrive that announces bytes first
    EMU_MBARRIER_NO_COMPLETE = 32, // an arrive that must not complete the phase
    EMU_MBARRIER_PARITY = 32,      // a wait for a parity, not a state
    EMU_MBARRIER_TRY = 64          // a wait that may suspend
};

// The barrier at an address of shared memory, or a fault that says there is none.
struct emu_mbarrier *emu_mbarrier_at(struct emu_warp *w, uint32_t lane, enum emu_space space,
                                     uint64_t address);
// The same, for a copy that signals it: its init must be known, with a fence.
struct emu_mbarrier *emu_mbarrier_of_copy(struct emu_warp *w, uint32_t lane, enum emu_space space,
                                          uint64_t address);
// Changes, by a thread that executes an instruction or by an operation.
void emu_mbarrier_arrive(struct emu_mbarrier *b, const struct emu_by *by, uint32_t count);
void emu_mbarrier_expect(struct emu_mbarrier *b, const struct emu_by *by, uint32_t bytes);
void emu_mbarrier_complete(struct emu_mbarrier *b, const struct emu_by *by, uint32_t bytes);
// Whether a CTA of the cluster has this barrier now.
bool emu_mbarrier_is(const struct emu_cluster *cluster, const struct emu_mbarrier *b);
void emu_mbarriers_drop(struct emu_cta *cta);
// "mbarrier at 0x400: phase 3, 1 of 2 arrivals and 16384 bytes pending"
void emu_mbarrier_describe(const struct emu_mbarrier *b, char *text, size_t size);

static inline uint32_t emu_mbarrier_address(const struct emu_mbarrier *b)
{
    return b->offset + EMU_SHARED_START + emu_rank_bits(b->cta->rank);
}

#endif
