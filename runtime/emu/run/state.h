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

#include <string.h>

#include "emu/decode/program.h"
#include "emu/device.h"

enum emu_path_state {
    EMU_PATH_READY,
    EMU_PATH_MEET,      // at a .sync instruction: lanes that must join are elsewhere
    EMU_PATH_BARRIER,   // at a CTA barrier, counted in
    EMU_PATH_CLUSTER,   // at a cluster barrier: the pc is the wait's, which will run again
    EMU_PATH_GROUP,     // at a wgmma wait: other warps of its warpgroup have not issued their part
    EMU_PATH_REGISTERS, // at a setmaxnreg.inc: other warps have not given up theirs
    EMU_PATH_MBARRIER   // at a try_wait whose phase is not complete; the pc is the wait's
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
    uint32_t *undefined;                  // lanes of each register (check/undefined.h)
    uint64_t *undefined_bits;             // of those lanes, 32 words a register; or NULL
    uint32_t undefined_count;             // registers that have some
    size_t size;                          // of the allocation
};

struct emu_path {
    uint32_t pc;
    uint32_t mask;
    struct emu_frame *frame;
    enum emu_path_state state;
    bool is_tired;  // used up its slice since the others last ran
    uint32_t used;  // of the slice
    uint32_t needs; // EMU_PATH_MEET: lanes it waits for
    // Of the instruction with a member mask that it waited at last: lanes it has waited for, and
    // those of them that were not about to exit.
    const struct emu_insn *meeting;
    uint32_t awaited, elsewhere;
    uint32_t barrier;                    // EMU_PATH_BARRIER: which
    const struct emu_mbarrier *mbarrier; // that it waits for, or looked at last
    bool is_late;                        // EMU_PATH_MBARRIER: its time limit has passed
    uint32_t parity;                     // that it waits for; EMU_NO_REF: it names a state
};

// A path that is counted in somewhere cannot join another one.
static inline bool emu_path_waits(const struct emu_path *p)
{
    return p->state >= EMU_PATH_BARRIER;
}

// The agents of a warp: itself, and its copies, which complete in the order of their groups. Those
// of cp.async.bulk are two, since a wait may be for their reads alone. Its products read only.
enum emu_warp_agent {
    EMU_AGENT_SELF,
    EMU_AGENT_COPY,
    EMU_AGENT_BULK_READ,
    EMU_AGENT_BULK_WRITE,
    EMU_AGENT_WGMMA,
    EMU_AGENT_UMMA,       // tcgen05: a group ends with a commit
    EMU_AGENT_TMEM_LOAD,  // tcgen05.ld: a group ends with its wait
    EMU_AGENT_TMEM_STORE, // tcgen05.st: the same
    EMU_AGENTS_PER_WARP
};

struct emu_barrier {
    uint32_t expected; // threads; 0 before the first arrival, EMU_NO_REF: all that are alive
    uint32_t arrived;
    uint32_t popc; // bar.red: how many predicates were true
    bool all, any;
    uint64_t time;        // of the last arrival, for the timeline
    struct emu_view view; // what those that arrived know
};

// The state of a warp when it was tested (repeat.c).
struct emu_repeat {
    uint64_t state, steps; // that is compared with
    uint64_t events;       // of the launch then
    uint32_t looks, most;  // since then, and after how many another state is taken
    bool is_set, found;    // found: it was the same again
};

enum { EMU_BARRIERS = 16 };
enum { EMU_POLLS = 4 }; // loads of one loop that are told apart

struct emu_cta;
struct emu_cluster;
struct emu_team;
struct emu_grid;
struct emu_mbarrier;
struct emu_op;
struct emu_tmem;
struct emu_watch;

struct emu_warp {
    uint8_t
        *base[EMU_BASE_COUNT]; // of operands: the current frame's registers, constants, %tid ...
    struct emu_path *path;     // the one that runs
    const struct emu_insn *in; // the instruction that runs
    struct emu_grid *launch;
    struct emu_cta *cta;
    struct emu_agent *agent; // NULL: races are not looked for
    uint32_t stop_pc;        // of the lowest path of the same frame that is still ahead
    bool reschedule;         // the paths have changed
    bool yield;              // the warp has nothing to do for a while
    bool is_polling;         // what it did last was to look for something that has not happened
    uint32_t exists, alive;
    uint32_t carry; // the condition code of add.cc, a bit a lane
    uint32_t index; // in the CTA
    uint32_t path_count;
    struct emu_path
        *paths[EMU_WARP + 1]; // one more: a call adds the new path before it drops the old
    struct emu_path path_store[EMU_WARP + 1];
    struct emu_frame *free_frames;
    uint64_t steps;
    uint32_t group[EMU_WARP];      // the commit group a cp.async of a lane would join now
    uint32_t umma_group;           // commits of tcgen05 so far
    uint32_t umma_lanes;           // that have started operations since the last one
    uint32_t tmem_group[2];        // waits for its loads, and for its stores, so far
    uint32_t bulk_group[EMU_WARP]; // the same of cp.async.bulk
    bool is_at_pair;          // it has come to an instruction of the pair, and waits for the peer
    uint32_t cluster_arrived; // lanes that have arrived at the cluster barrier
    uint32_t cluster_done;    // and those whose arrival has been completed since
    struct emu_view cluster_view;  // what was known where it was
    const struct emu_insn *passed; // a wait that was over before its barrier's first phase was
    struct emu_poll {              // loads that may be polls, and what had happened then
        const struct emu_insn *in;
        uint64_t address, events;
    } polls[EMU_POLLS];
    const struct emu_poll *poll; // the last
    struct emu_repeat repeat;
    uint32_t wgmma_group;                // the group a product joins now
    uint32_t undefined_count;            // registers that are undefined in some lane, of all frames
    const struct emu_insn *undefined_by; // the last load that made one so
    struct emu_watch *watch;             // over the registers of products and loads; or NULL
    uint32_t registers;                  // from setmaxnreg; 0: not said
    uint32_t priority;                   // schedule.c
    // The timeline (trace.c): now, where the run and the polling began, the run's first
    // instruction.
    uint64_t time, run_from, poll_from;
    const struct emu_insn *run_in;
    uint64_t sregs[EMU_SREG_clock][EMU_WARP]; // 32-bit ones use the first half of their row
};

// Units that asynchronous operations occupy, for the timeline.
enum emu_unit { EMU_UNIT_COPY, EMU_UNIT_BULK, EMU_UNIT_MATRIX, EMU_UNITS };

struct emu_cta {
    struct emu_grid *launch;
    struct emu_cluster *cluster;
    uint32_t rank; // in the cluster
    uint32_t id[3];
    uint32_t alive;                  // threads
    uint8_t *shared, *shared_shadow; // from address EMU_SHARED_START
    uint8_t *pool;                   // the module's constants, with this CTA's shared addresses
    struct emu_barrier barriers[EMU_BARRIERS];
    uint64_t engine_free[EMU_UNITS]; // the timeline: when each can begin the next operation
    struct emu_mbarrier *mbarriers;  // by when they were initialised, the last first
    struct emu_warp *warps;
    struct emu_tmem *tmem;          // or NULL
    const struct emu_insn *refused; // the query that saw a request fail; or NULL
    struct emu_race_map race;
};

// The CTAs of a cluster run together; without clusters there is one in each.
struct emu_cluster {
    struct emu_grid *launch;
    struct emu_cluster *next;                               // resident ones, or free ones
    uint32_t size;                                          // CTAs that it has now
    uint64_t linear;                                        // among the clusters of its size
    uint32_t alive;                                         // threads
    uint32_t arrived;                                       // threads at the cluster barrier
    uint64_t arrived_time, done_time, start_time, end_time; // the timeline
    uint32_t sm_group;
    struct emu_view view; // what those that arrived know
    struct emu_domain domain;
    struct emu_agent *agents; // one a warp, CTA after CTA; NULL: races are not looked for
    struct emu_cta *ctas;     // launch->cluster_size of them
    struct emu_op *ops;       // in flight, in the order of issue
    struct emu_op *last_op;
};

// Who moves next (schedule.c).
struct emu_schedule {
    enum emu_policy policy;
    uint64_t random;      // state of the generator
    uint64_t events;      // of the launch when something happened last
    uint32_t stalls;      // turns since then in which no warp could continue
    uint32_t patience;    // turns before another cluster joins
    uint32_t quiet;       // turns since something happened
    uint64_t deadline;    // in nanoseconds of the host's clock; 0: none
    uint32_t next_lowest; // adversarial: the priority below all others
};

struct emu_grid {
    struct emu *emu;
    struct emu_module *module;
    const struct emu_func *kernel;
    struct emu_launch_shape {
        uint32_t grid[3], block[3], cluster[3];
        uint32_t preferred[3]; // what takes the place of several clusters; one of them without
    } shape;
    const struct emu_names *names; // or NULL
    uint8_t *params;               // a copy
    uint32_t params_size;
    uint32_t shared_size; // static and dynamic
    uint32_t dynamic_size;
    uint32_t threads, warps;   // of a CTA
    uint32_t cluster_size;     // CTAs of a preferred cluster
    uint64_t cluster_count;    // of such in the grid
    uint64_t next_cluster;     // to start
    uint32_t next_part;        // or that part of it, where it starts as several clusters
    uint64_t cluster_now;      // that was started last
    uint64_t stride;           // to the one after the next; 1, but for workers (team.c)
    uint64_t clock;            // instructions executed so far, by all
    uint64_t events;           // events that a warp may wait for: stores, arrivals, copies
    uint64_t allocated;        // host memory of the launch, held to the device limit
    struct emu_object *object; // that was accessed last
    struct emu_cluster *resident, *free;
    struct emu_schedule schedule;
    bool is_cooperative; // all clusters are resident together
    bool cancels;        // clusters take the place of others (clusterlaunchcontrol)
    uint64_t workspace;  // of a cooperative grid: its size and the counter of its barrier
    bool is_traced;
    bool is_independent;           // clusters have nothing to do with each other (team.h)
    struct emu_team *team;         // of a worker: those it works with; else NULL
    struct emu_findings *findings; // the device's, or the worker's
    uint32_t sm_groups;            // the timeline: groups of multiprocessors of a cluster's size,
    uint64_t *sm_time;             // and when each is free
    struct emu_trap trap;
    struct emu_arena checks; // memory of the two below
    struct emu_order order;
    struct emu_race race;
};

static inline void *emu_at_ref(const struct emu_warp *w, uint32_t ref)
{
    return w->base[ref >> EMU_REF_SHIFT] + (ref & ((1u << EMU_REF_SHIFT) - 1));
}

// One lane of an operand whose elements have `width` bytes, 8 at most.
static inline uint64_t emu_lane_value(const struct emu_warp *w, uint32_t ref, uint32_t width,
                                      uint32_t lane)
{
    uint64_t value = 0;
    memcpy(&value, (const uint8_t *)emu_at_ref(w, ref) + (size_t)lane * width, width);
    return value;
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

// The file and line `.loc` gives; NULL where there is none.
void emu_source(const struct emu_module *m, const struct emu_insn *in, const char **file,
                uint32_t *line);
// "PTX line 12 (a.cu:3)"
void emu_describe(const struct emu_module *m, const struct emu_insn *in, char *text, size_t size);
// Ends the launch: no warp can continue, or time is up (deadlock.c). The message is `what` and
// where every warp is.
_Noreturn void emu_hang(struct emu_grid *l, enum emu_finding_kind kind, const char *what);

// Memory of a launch; freed by the launch.
void *emu_launch_alloc(struct emu_grid *l, void *old, size_t old_size, size_t new_size);
void emu_launch_free(struct emu_grid *l, void *p, size_t size);

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

// Runs a warp until all its paths are blocked or gone, it yields, or it has run `slice`
// instructions. Gives how many it ran.
uint64_t emu_warp_run(struct emu_warp *w, uint64_t slice);
void emu_warp_start(struct emu_warp *w, const struct emu_func *kernel);
// Drops all paths, wherever they are; their frames become free ones.
void emu_warp_stop(struct emu_warp *w);
// Moves `mask` of the running path to another pc.
void emu_path_split(struct emu_warp *w, uint32_t mask, uint32_t pc);
// Removes lanes of the running path for good.
void emu_path_exit(struct emu_warp *w, uint32_t mask);
// For the start of a .sync instruction: true when every lane of `members` that is alive is in
// `mask`. Otherwise the running path is blocked at this instruction, which will be executed again.
// Lanes that did something else and exited while it waited for them are a finding.
bool emu_path_meet(struct emu_warp *w, uint32_t mask, uint32_t members);
// As emu_path_meet, without ordering what the lanes did and without findings.
bool emu_path_gather(struct emu_warp *w, uint32_t mask, uint32_t members);
// The running path goes on at a .sync instruction whose lanes `members` are there or have exited:
// complains of those that exited while it waited for them.
void emu_path_check_gone(struct emu_warp *w, uint32_t members);
void emu_warp_call(struct emu_warp *w, const struct emu_func *f, const struct emu_insn *in,
                   uint32_t mask);
void emu_warp_return(struct emu_warp *w, uint32_t mask);

// --- memory (mem.c) ---

enum emu_access { EMU_LOAD, EMU_STORE, EMU_ATOMIC };

struct emu_cell {
    uint8_t *bytes, *shadow;  // shadow is NULL where nothing is tracked
    struct emu_race_map *map; // NULL: no races there
    uint64_t at;              // in the map
    bool is_shared;           // another lane stored here by this very instruction
};

// The CTA of the cluster whose shared memory an address of shared or generic space lies in, and
// where there. Faults when it lies in none, or when not all bytes do.
struct emu_cta *emu_shared_at(struct emu_warp *w, uint32_t lane, enum emu_space space,
                              uint64_t address, uint32_t size, uint32_t *offset);
// Checks the place of one lane's access and gives its memory. Faults when it is wrong.
struct emu_cell emu_locate(struct emu_warp *w, uint32_t lane, enum emu_space space,
                           uint64_t address, uint32_t size, enum emu_access access);
// The same for an access that the lane makes now, by the running instruction: its order counts.
struct emu_cell emu_resolve(struct emu_warp *w, uint32_t lane, enum emu_space space,
                            uint64_t address, uint32_t size, enum emu_access access);
// Whether all bytes with these shadows have been written.
bool emu_all_set(const uint8_t *shadow, uint32_t size);
// A run of global memory of any size, for a copy; bounds and write protection are checked.
struct emu_cell emu_global_range(struct emu_warp *w, uint32_t lane, uint64_t address, uint32_t size,
                                 bool is_write);
// A use of an object that synchronises, an mbarrier, or its end.
void emu_sync_access(struct emu_warp *w, uint32_t lane, struct emu_race_map *map, uint64_t at,
                     uint32_t size, bool ends);
// The copies of the warp's group as an accessing agent, with the knowledge of `view`.
struct emu_who emu_group_who(const struct emu_warp *w, const struct emu_view *view,
                             enum emu_warp_agent which, uint32_t group);
// The warp has waited for all groups below `end`.
void emu_group_wait(struct emu_warp *w, enum emu_warp_agent which, uint32_t end);
// The same for operations of another warp of its warpgroup.
void emu_group_wait_of(struct emu_warp *w, const struct emu_warp *other, enum emu_warp_agent which,
                       uint32_t end);
// A load or an atomic operation that finds what it found before, since nothing has happened, waits
// for somebody.
void emu_poll(struct emu_warp *w, const struct emu_insn *in, uint64_t address);
// The addresses of a memory operand: register, 32 or 64 bits, and offset.
void emu_addresses(struct emu_warp *w, const struct emu_insn *in, uint64_t *out);

// The last thread of the warp's CTA has exited: checks what it left pending (exit.c).
void emu_cta_exit(struct emu_warp *w);

// --- barriers (sync.c) ---

// Lanes have exited: a wait for all threads may be complete now.
void emu_barrier_recheck(struct emu_cta *cta);
void emu_cluster_barrier_recheck(struct emu_cluster *cluster);

// --- registers of a CTA (registers.c) ---

// Warps that wait for registers look again.
void emu_registers_recheck(struct emu_cta *cta);
// They will never come: what the warps ask for.
void emu_registers_report(struct emu_warp *w, const struct emu_insn *in);

// --- clusters (cluster.c) ---

// The CTA of this rank in a cluster of the grid.
void emu_cta_id(const struct emu_grid *l, uint32_t size, uint64_t cluster, uint32_t rank,
                uint32_t id[3]);
// Starts the next cluster of the grid.
void emu_cluster_start(struct emu_grid *l);
void emu_clusters_free(struct emu_grid *l);
// A CTA's rank as shared::cluster addresses carry it.
static inline uint32_t emu_rank_bits(uint32_t rank)
{
    return rank << EMU_RANK_SHIFT;
}

// --- the schedule (schedule.c) ---

// Runs every cluster of the grid.
void emu_schedule_run(struct emu_grid *l);

#endif
