// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bulk copies: shared by copies of plain bytes and of tensor maps.
//
// A bulk copy signals an mbarrier by transaction bytes (in every CTA it writes to), or belongs to a
// bulk group of the thread that issued it.
#ifndef EMU_BULK_H
#define EMU_BULK_H

#include "emu/async/mbarrier.h"
#include "emu/async/op.h"

// How the bytes get to their destination.
typedef uint64_t (*emu_combine_fn)(uint64_t old, uint64_t value, uint64_t unused);

// A run of bytes of a copy. Exactly one side may be absent: then zeros or NaNs are written, or
// bytes are dropped.
struct emu_run {
    uint8_t *to, *to_shadow;           // NULL: dropped
    const uint8_t *from, *from_shadow; // NULL: `fill`
    uint32_t size;
};

// Header of every bulk operation. `runs` is computed at issue.
struct emu_bulk {
    struct emu_op op;
    struct emu_mbarrier *barriers[EMU_MAX_CLUSTER]; // to signal, `barrier_count` of them
    uint32_t barrier_count;                         // 0: it is in a bulk group
    uint32_t bytes;                                 // that each barrier is told
    emu_combine_fn combine;                         // a reduction; NULL: a copy
    uint32_t element;                               // bytes, of reductions and fills
    uint64_t fill;                                  // element that absent sources have
    uint32_t (*convert)(uint32_t bits);             // of every 32 bits that are read; or NULL
    uint8_t *data;                                  // the sources' bytes, once they are read
    size_t data_size;
    uint32_t run_count, run_cap;
    struct emu_run *runs;
};

// A bulk operation by one lane.
struct emu_bulk *emu_bulk_new(struct emu_warp *w, uint32_t lane);
// Adds a run. Both sides have been checked for bounds.
void emu_bulk_run(struct emu_bulk *b, struct emu_run run);
// Marks destinations in flight, joins a group when no barrier is there, and hands it over.
void emu_bulk_issue(struct emu_bulk *b);

#endif
