// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma: what its decoder, its execution and the watch over its registers share.
#ifndef EMU_WGMMA_H
#define EMU_WGMMA_H

#include "emu/run/state.h"
#include "emu/tensor/smem_matrix.h"

enum { // op
    EMU_WGMMA_A_IN_REGISTERS = 1 << 0,
    EMU_WGMMA_NEGATE_A = 1 << 1,
    EMU_WGMMA_NEGATE_B = 1 << 2,
    EMU_WGMMA_TRANS_A = 1 << 3,
    EMU_WGMMA_TRANS_B = 1 << 4,
    EMU_WGMMA_SATFINITE = 1 << 5,
    EMU_WGMMA_SPARSE = 1 << 6,
    EMU_WGMMA_NOT_SCALE_D = 1 << 7 // the predicate came with a `!`
};

enum { EMU_WGMMA_M = 64, EMU_WGMMA_A_REGISTERS = 4 };

// The numeric part, of one warp's 16 rows. Types are of in; n is a multiple of 8.
struct emu_wgmma {
    uint32_t n, k; // k as the instruction spells it
    struct emu_element a, b;
    enum emu_type d;
    uint32_t flags;
    uint32_t warp; // of the warpgroup
    bool scale_d;
    struct emu_smem_matrix a_matrix, b_matrix;
    const void *a_lanes[EMU_WGMMA_A_REGISTERS]; // when A is in registers
    const uint32_t *metadata;                   // 32 lanes, when A is sparse
    uint32_t selector;
    uint32_t *const *d_lanes; // n / 2 registers of 32 lanes; n / 4 for f16
};

// Computes. Gives what is wrong, and at which address of shared memory.
enum emu_matrix_fault emu_wgmma_compute(const struct emu_wgmma *p, const struct emu_smem *memory,
                                        uint32_t *address);

// --- registers in flight (wgmma_watch.c) ---

// For every instruction while the warp has a watch: faults when it touches registers of a product
// or of a load in flight, and remembers what it writes.
void emu_watch(struct emu_warp *w, const struct emu_insn *in);
// A wgmma.fence; makes the watch.
void emu_watch_fence(struct emu_warp *w);
// A product starts: its registers are checked, and are in flight from now on.
void emu_watch_issue(struct emu_warp *w, const struct emu_insn *in);
// All groups but the newest `pending` are complete.
void emu_watch_wait(struct emu_warp *w, uint32_t pending);
// A tcgen05.ld: until the warp's next wait no instruction may use its registers. Makes the watch.
void emu_watch_load(struct emu_warp *w, const struct emu_insn *in);
void emu_watch_free(struct emu_warp *w);
// The last lane of the warp exits: no product may be in flight.
void emu_wgmma_exit(struct emu_warp *w);

#endif
