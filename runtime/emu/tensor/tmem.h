// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor memory (tcgen05): 128 lanes of 512 columns of 32 bits, for each CTA.
//
// An address has the lane in its upper half and the column in its lower. Columns are allocated in
// powers of two; every access checks that its columns are. As in other memory a shadow says which
// words were written, and which ones an operation in flight will write, and the last accesses are
// kept for races: a load or store is complete with its warp's wait, what the tensor core does with
// a commit.
#ifndef EMU_TMEM_H
#define EMU_TMEM_H

#include "emu/run/state.h"

enum { EMU_TMEM_LANES = 128, EMU_TMEM_COLUMNS = 512, EMU_TMEM_UNIT = 32 };

struct emu_tmem {
    uint32_t words[EMU_TMEM_LANES][EMU_TMEM_COLUMNS];
    uint8_t shadow[EMU_TMEM_LANES][EMU_TMEM_COLUMNS];
    uint16_t owner[EMU_TMEM_COLUMNS / EMU_TMEM_UNIT]; // columns of the allocation; 0: free
    bool starts[EMU_TMEM_COLUMNS / EMU_TMEM_UNIT];    // the allocation starts here
    uint16_t last;     // columns of the last allocation; 0: there was none
    uint8_t cta_group; // that its instructions name; 0: none came yet
    uint32_t turns;    // allocations and frees of the pair that this CTA has come to
    bool is_relinquished;
    struct emu_race_map race;
    struct emu_view freed; // what those knew that freed columns
};

enum { // op of tcgen05.ld and .st: the shape, and bits
    EMU_TMEM_32X32B,
    EMU_TMEM_16X64B,
    EMU_TMEM_16X128B,
    EMU_TMEM_16X256B,
    EMU_TMEM_16X32BX2,
    EMU_TMEM_SHAPE = 7,
    EMU_TMEM_PACKED = 1 << 3,
    EMU_TMEM_MIN = 1 << 4, // of .ld.red
    EMU_TMEM_MAX = 1 << 5
};

// The CTA's tensor memory, made when it is first asked for.
struct emu_tmem *emu_tmem_of(struct emu_cta *cta);
// Faults unless the column is allocated in the CTA; `lane`: of the warp, for the message.
void emu_tmem_check(struct emu_warp *w, uint32_t lane, struct emu_cta *cta, uint32_t column);
// An instruction of the warp's CTA names cta_group::1 or, for the pair, 2: all name the same.
void emu_tmem_group(struct emu_warp *w, bool is_pair);
// Where a word is in the map of races, and the address of what is there.
static inline uint64_t emu_tmem_offset(uint32_t lane, uint32_t column)
{
    return 4ull * (lane * EMU_TMEM_COLUMNS + column);
}
static inline uint64_t emu_tmem_address(uint64_t offset)
{
    return offset / (4 * EMU_TMEM_COLUMNS) << 16 | offset / 4 % EMU_TMEM_COLUMNS;
}
// Another CTA begins, with every right to allocate. Nothing is allocated.
void emu_tmem_start(struct emu_cta *cta);
// Forgets the accesses of the last CTA, where races are looked for.
void emu_tmem_forget(struct emu_cta *cta);
void emu_tmem_free(struct emu_cta *cta);
// The last thread of the warp's CTA exits: nothing may be allocated.
void emu_tmem_exit(struct emu_warp *w);

#endif
