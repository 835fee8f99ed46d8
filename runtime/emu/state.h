// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of a running kernel: launch, CTAs, warps, paths and frames.
//
// A warp's lanes are split into paths: sets of lanes that are at the same instruction of the same
// frame. A branch that not all lanes take splits a path; paths that meet at one instruction merge.
// The path deepest in calls and then at the lowest pc runs first, so that code after a branch waits
// for both of its sides; a path that has used up its slice lets the others run, so that a spin loop
// makes progress whatever it waits for. Instructions that need other lanes (`.sync`, barriers)
// block their path until those lanes have come to the same instruction or have exited.
//
// A frame is one call of a function: its registers, 32 lanes each, and its per-thread memory.
#ifndef EMU_STATE_H
#define EMU_STATE_H

#include "emu/device.h"
#include "emu/program.h"

enum emu_path_state {
    EMU_PATH_READY,
    EMU_PATH_MEET,   // at a .sync instruction: lanes that must join are elsewhere
    EMU_PATH_BARRIER // at a CTA barrier, counted in
};

struct emu_frame {
    struct emu_frame *parent; // the next free frame, when this one is free
    const struct emu_func *func;
    const struct emu_insn *call; // that made it; NULL for the kernel's
    uint32_t ret_pc;
    uint32_t depth;
    uint32_t users;                       // paths in it and frames called from it
    uint32_t local_base;                  // address of its first byte of local memory
    uint8_t *regs, *local, *local_shadow; // local memory is lane after lane
    size_t size;                          // of the allocation
};

struct emu_path {
    uint32_t pc;
    uint32_t mask;
    struct emu_frame *frame;
    enum emu_path_state state;
    bool is_tired;    // used up its slice since the others last ran
    uint32_t used;    // of the slice
    uint32_t needs;   // EMU_PATH_MEET: lanes it waits for
    uint32_t barrier; // EMU_PATH_BARRIER: which
};

struct emu_barrier {
    uint32_t expected; // threads; 0 while nobody has arrived, EMU_NO_REF: all that are alive
    uint32_t arrived;
    uint32_t popc; // bar.red: how many predicates were true
    bool all, any;
};

enum { EMU_BARRIERS = 16 };

struct emu_cta;
struct emu_grid;

// A copy instruction whose bytes have not arrived.
struct emu_copy {
    uint32_t mask; // lanes it is pending for
    uint32_t size;
    uint32_t dst[EMU_WARP];   // offset in shared memory
    uint32_t group[EMU_WARP]; // the lane's commit group it belongs to
    uint8_t data[EMU_WARP][16];
};

struct emu_warp {
    uint8_t
        *base[EMU_BASE_COUNT]; // of operands: the current frame's registers, constants, %tid ...
    struct emu_path *path;     // the one that runs
    const struct emu_insn *in; // the instruction that runs
    struct emu_grid *launch;
    struct emu_cta *cta;
    uint32_t stop_pc; // of the lowest path of the same frame that is still ahead
    bool reschedule;  // the paths have changed
    bool yield;       // the warp has nothing to do for a while
    uint32_t exists, alive;
    uint32_t carry; // the condition code of add.cc, a bit a lane
    uint32_t index; // in the CTA
    uint32_t path_count;
    struct emu_path
        *paths[EMU_WARP + 1]; // one more: a call adds the new path before it drops the old
    struct emu_path path_store[EMU_WARP + 1];
    struct emu_frame *free_frames;
    uint64_t steps;
    struct emu_copy *copies;
    uint32_t copy_count, copy_cap;
    uint32_t group[EMU_WARP];                 // the commit group a copy would join now
    uint64_t sregs[EMU_SREG_clock][EMU_WARP]; // 32-bit ones use the first half of their row
};

struct emu_cta {
    struct emu_grid *launch;
    struct emu_cta *next; // resident ones, or free ones
    uint32_t id[3];
    uint64_t linear;
    uint32_t alive;                  // threads
    uint8_t *shared, *shared_shadow; // from address EMU_SHARED_START
    struct emu_barrier barriers[EMU_BARRIERS];
    struct emu_warp *warps;
    bool progress; // something ran or was released since this was cleared
};

struct emu_grid {
    struct emu *emu;
    struct emu_module *module;
    const struct emu_func *kernel;
    struct emu_launch_shape {
        uint32_t grid[3], block[3];
    } shape;
    uint8_t *params; // a copy
    uint32_t params_size;
    uint32_t shared_size; // static and dynamic
    uint32_t dynamic_size;
    uint32_t threads, warps;   // of a CTA
    uint64_t clock;            // instructions executed so far, by all
    uint64_t allocated;        // host memory of the launch, held to the device limit
    struct emu_object *object; // that was accessed last
    struct emu_cta *resident, *free;
    struct emu_trap trap;
};

static inline void *emu_at_ref(const struct emu_warp *w, uint32_t ref)
{
    return w->base[ref >> EMU_REF_SHIFT] + (ref & ((1u << EMU_REF_SHIFT) - 1));
}

static inline uint32_t emu_first_lane(uint32_t mask) // mask != 0
{
    uint32_t lane = 0;
    while (!(mask >> lane & 1))
        lane++;
    return lane;
}

static inline uint32_t emu_popc(uint32_t a)
{
    a -= a >> 1 & 0x55555555;
    a = (a & 0x33333333) + (a >> 2 & 0x33333333);
    a = (a + (a >> 4)) & 0x0f0f0f0f;
    return a * 0x01010101 >> 24;
}

// Ends the launch: the kernel did something wrong. The message begins with the formatted text and
// goes on with where: lines, CTA, thread.
_Noreturn void emu_fault(struct emu_warp *w, uint32_t lane, const char *format, ...)
    EMU_PRINTF(3, 4);
// "PTX line 12 (a.cu:3)"
void emu_describe(const struct emu_module *m, const struct emu_insn *in, char *text, size_t size);

// Memory of a launch; freed by the launch.
void *emu_launch_alloc(struct emu_grid *l, void *old, size_t old_size, size_t new_size);

// --- results (exec.c) ---

// Writes the lanes in `mask` of a vector of `width` bytes a lane.
void emu_commit(struct emu_warp *w, uint32_t ref, const void *value, uint32_t width, uint32_t mask);
static inline void emu_commit_pred(struct emu_warp *w, uint32_t ref, uint32_t value, uint32_t mask)
{
    if (ref != EMU_NO_REF) {
        uint32_t *p = emu_at_ref(w, ref);
        *p = (*p & ~mask) | (value & mask);
    }
}

// --- warps (warp.c) ---

// Runs a warp until all its paths are blocked or gone, it yields, or its slice is used up.
void emu_warp_run(struct emu_warp *w);
void emu_warp_start(struct emu_warp *w, const struct emu_func *kernel);
// Drops all paths, wherever they are; their frames become free ones.
void emu_warp_stop(struct emu_warp *w);
// Moves `mask` of the running path to another pc.
void emu_path_split(struct emu_warp *w, uint32_t mask, uint32_t pc);
// Removes lanes of the running path for good.
void emu_path_exit(struct emu_warp *w, uint32_t mask);
// For the start of a .sync instruction: true when every lane of `members` that is alive is in
// `mask`. Otherwise the running path is blocked at this instruction, which will be executed again.
bool emu_path_meet(struct emu_warp *w, uint32_t mask, uint32_t members);
void emu_warp_call(struct emu_warp *w, const struct emu_func *f, const struct emu_insn *in,
                   uint32_t mask);
void emu_warp_return(struct emu_warp *w, uint32_t mask);

// --- memory (mem.c) ---

enum emu_access { EMU_LOAD, EMU_STORE, EMU_ATOMIC };

struct emu_cell {
    uint8_t *bytes, *shadow; // shadow is NULL where nothing is tracked
};

// Checks one lane's access and gives its memory. Faults when it is wrong.
struct emu_cell emu_resolve(struct emu_warp *w, uint32_t lane, enum emu_space space,
                            uint64_t address, uint32_t size, enum emu_access access);
// The addresses of a memory operand: register, 32 or 64 bits, and offset.
void emu_addresses(struct emu_warp *w, const struct emu_insn *in, uint64_t *out);

// --- barriers (sync.c) ---

// Lanes have exited: whoever waits for everybody may be complete now.
void emu_barrier_recheck(struct emu_cta *cta);

// --- asynchronous copies (async.c) ---

// Completes every copy of the given lanes that is at least `behind` groups old.
void emu_copies_land(struct emu_warp *w, uint32_t mask, uint32_t behind, bool all);

#endif
