// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of a replay of sync_check: agents and their clocks, the accesses made so far, barriers.
//
// An *agent* is a set of warps of one CTA that the program cannot tell apart: they run the same
// instructions with the same decisions. The first warp of such a set is one agent and the others
// are a second, so that a conflict between two of them is seen. An agent has *threads*: thread 0
// stands for every lane of its warps, the others for lanes that run a block by themselves (laneid()
// < 16, the one that elect_sync picks).
//
// A *clock* holds one number for each *strand*, a source of consecutive events: the accesses of all
// lanes of an agent, those of one lane, its converged events, its groups of asynchronous work, the
// phases of an mbarrier. Event n of a strand precedes a thread's next access if the thread's clock
// has at least n there.
//
// A thread knows its own warp and the other warps of its agent separately, although they have the
// same strands: the clock `peers`, which warp_sync does not advance, is for the others.
#ifndef TIR_PASS_SYNC_CHECK_STATE_H
#define TIR_PASS_SYNC_CHECK_STATE_H

#include "base/bitset.h"
#include "base/vec.h"
#include "ir/ir.h"
#include "pass/sync/crew.h"

enum {
    SYNC_LANES = 32,
    SYNC_STRANDS = 64, // to begin with
    SYNC_MOST_STRANDS = 4096,
    SYNC_THREADS = 17,  // of an agent: all its lanes, and up to sixteen sets of them
    SYNC_CLASSES = 32,  // of the warps of a CTA
    SYNC_CTAS = 16,     // of a cluster
    SYNC_BARRIERS = 16, // named; then come that of the cluster and that of the grid
    SYNC_GRID_BARRIER,
    SYNC_DEPTH = 24,      // of blocks
    SYNC_RECORDS = 1024,  // of one buffer or tensor
    SYNC_FORGOTTEN = 256, // of them, where there are more
    SYNC_MET = 4096,      // pairs of accesses of which is kept whether they touch a byte
    SYNC_PARTS = 8,       // of an index
    SYNC_SPOTS = 192,     // accesses of which pairs are noted
    SYNC_VIEWS = 6,       // of a buffer, one of the other
    SYNC_SPLITS = 8,
    SYNC_GIVEN = 8,   // elements of tensors that a setting gives
    SYNC_GROUPS = 8,  // of products in flight
    SYNC_DENIED = 14, // the seed by which each comparison is false as it is written
    SYNC_HELD = 15,   // the one by which each is true
    SYNC_PAIRED = 16, // the first seed by which two questions are answered in different ways
    SYNC_COPIES = 32, // groups of copies in flight, beside commits to mbarriers
    SYNC_CTA_THREADS = 1024,
    SYNC_CLUSTER = SYNC_CTA_THREADS * SYNC_CTAS, // threads
    SYNC_POINT = 2 * SYNC_CLUSTER // those, and the same again as picked by elect_sync
};

// Memory that a proxy fence covers.
enum sync_memory { SYNC_OF_SHARED, SYNC_OF_TENSORS, SYNC_MEMORIES };

struct sync_clock { // by strand
    uint32_t *known;
    uint32_t *fenced[SYNC_MEMORIES]; // followed by a proxy fence: visible to asynchronous accesses
};

// Memory.

struct sync_root { // a shared buffer as it was allocated
    const struct tir_value *alloc;
    int64_t begin, end; // bytes; if not placed, a range of its own
    uint32_t group;     // of the warps of a scope, each of which has one
    bool is_mbarrier;
    bool is_tmem;     // in tensor memory
    bool is_tensor;   // in global memory: for conflicts between threads of the CTA
    bool only_stored; // a tensor that is not loaded: stores of other values matter alone
    int64_t shape[TIR_MAX_RANK];
    uint32_t first_barrier; // its mbarriers in sync_run.mbarriers, for CTA 0
    bool has_cells;         // stores to it are remembered
    uint32_t first_cell;
};

struct sync_box { // a part of a buffer, in the buffer's dimensions
    int64_t begin[TIR_MAX_RANK], size[TIR_MAX_RANK];
};

struct sync_buffer { // the buffer, or part of one, of a value
    uint32_t root, cta;
    uint32_t rank;
    uint8_t dim[TIR_MAX_RANK]; // of the root, for each of its own
    struct sync_box box;       // in the root's dimensions
    bool exact;                // false: its start is unknown, and box covers all possible places
    bool reshaped;             // its dimensions are none of the root's: box covers all of it
};

enum sync_access { SYNC_READ, SYNC_WRITE, SYNC_UPDATE }; // UPDATE: by an atomic

// The pairs of threads of which two accesses may be.
enum sync_pairs {
    SYNC_NO_PAIRS = 0,
    SYNC_IN_A_WARP = 1,
    SYNC_OF_TWO_WARPS = 2,
    SYNC_ALL_PAIRS = 3
};

struct sync_record { // an access that was made
    const struct tir_inst *by;
    struct sync_box box;
    uint64_t same; // accesses with equal keys give each thread the same elements; 0: none
    const struct sync_keys *keys; // of a scalar that is stored; NULL: none
    uint64_t round;               // equal in one round of the loops around it; 0: not known
    const int64_t *points;        // element * SYNC_POINT + thread, sorted; NULL: the whole box
    uint16_t agent;
    uint32_t point_count;
    int64_t step; // of the elements that the points name: all are so many apart, or a multiple
    uint32_t at;
    uint16_t strand;
    uint8_t access;
    bool of_tensor;
    bool async;    // by the asynchronous proxy
    bool grouped;  // done when its thread has waited for its group
    bool core;     // by the tensor core, in a group of its thread (tmem.c)
    uint32_t told; // the converged event of its agent that is the fence after it; 0: there is none
    bool exact;
    int64_t modulus; // of a tensor: data decides about multiples of it; 0: the elements are known
    uint64_t base;   // equal if data decides alike; 0: different for each thread
    uint8_t first_warp, end_warp;    // of the role or scope whose threads make it; 0, 0: of the CTA
    const struct tir_layout *layout; // of the tile, whose dimensions are `dims` of the box; or NULL
    uint8_t dims[TIR_MAX_RANK];
};

struct sync_rest { // accesses of one strand that were forgotten
    struct sync_record last;
    int64_t from, to; // elements
};

struct sync_shadow { // the accesses to one buffer in one CTA
    VEC(struct sync_record) records;
    VEC(struct sync_rest) rests;
};

// Values.

enum sync_kind {
    SYNC_UNSET,
    SYNC_INT,    // the same in every thread of the agent
    SYNC_EACH,   // one for each thread of the agent
    SYNC_SYMBOL, // not known; equal numbers are equal values
    SYNC_BUFFER,
    SYNC_TILE
};

// The threads between which a value differs, as far as the program shows. GUESS: a value that lanes
// have exchanged, which is usually the same in all.
enum sync_spread { SYNC_SAME, SYNC_WARPS, SYNC_EVERY_LANE, SYNC_GUESS };

struct sync_value {
    enum sync_kind kind;
    enum sync_spread varies;   // SYMBOL
    bool elected;              // EACH: true in the lane that elect_sync picks
    bool answered, yes;        // SYMBOL that is true or false: the answer drawn for it
    bool counts;               // SYMBOL that bounds loops: it stands for `count` in this replay
    uint32_t made;             // TILE: when its registers were last written
    uint32_t group;            // TILE: the group of wgmma that still writes them; 0: none
    const struct tir_inst *by; // TILE with a group: its gemm_async
    int64_t number;            // INT; SYMBOL
    int64_t count;             // SYMBOL that counts
    int64_t of, times; // SYMBOL that is `times` another one and `each` more (places.c); or 0
    union {
        const int64_t *each;
        const struct sync_buffer *buffer;
    };
};

static inline struct sync_value sync_symbol(uint64_t number, enum sync_spread varies)
{
    return (struct sync_value){
        .kind = SYNC_SYMBOL, .number = (int64_t)(number >> 1), .varies = varies};
}

// Agents.

struct sync_thread {
    struct sync_clock clock;
    struct sync_clock peers;          // what it knows of the other warps of its agent
    const uint32_t *mask;             // its lanes, of each warp; NULL: all
    bool elected;                     // the lane that elect_sync picks, whichever it is
    bool alone;                       // one lane of each warp: it knows its own events
    uint16_t data;                    // strand of its accesses
    uint16_t bulk;                    // strand of its groups of stores; 0: none yet
    uint32_t bulk_closed, bulk_done;  // groups committed, and known to have read
    uint16_t wrote;                   // strand of what they write to tensors; 0: none yet
    const struct tir_inst *bulk_open; // the last store that was not committed
    const struct tir_inst *bulk_last; // the last store
    uint16_t core;                    // strand of its groups of products in tensor memory; or 0
    uint32_t core_closed;             // groups committed
    const struct tir_inst *core_open; // the last product that was not committed
    const struct tir_inst *core_last; // the last product
    uint32_t *after; // with tmem: what it knew at its last fence(after_thread_sync)
};

struct sync_lanes {       // some lanes of each warp
    const uint32_t *mask; // of each warp; NULL: all
    uint32_t thread;
    uint32_t count;              // of one warp
    const struct tir_inst *data; // a subset, by the data of this condition
    enum sync_spread spread;     // of that data
};

struct sync_split { // an if that not all lanes take
    const int64_t *each;
    const uint32_t *within; // the lanes that reach it
    struct sync_lanes yes, no;
};

struct sync_frame {               // a block that is being run
    const struct tir_inst *owner; // NULL: the kernel
    const struct tir_block *block;
    const struct tir_inst *next;
    struct sync_lanes lanes;      // that run
    int64_t at, end, step;        // for; tiles: the wave
    const int64_t *begins, *ends; // for: of each thread, where they differ; else NULL
    uint32_t round;
    uint32_t start;                // a number of its own
    bool merges;                   // an if whose other block ran for other lanes
    bool is_other;                 // an if whose first block ran too: data of each thread decides
    uint32_t lies_on;              // frames of the if's other block that are right below; 0: none
    const struct tir_inst *stands; // the warp_sync at which its lanes wait for others; NULL: none
};

struct sync_ran { // of a loop: the frame around it, and in which of its rounds the loop has run
    uint32_t start, last, count;
};

struct sync_own { // groups of cp.async of one thread
    uint32_t closed, done;
};

struct sync_agent {
    uint32_t id, cta;
    uint32_t first_warp, warps;
    struct tir_crew crew;   // of the role that its warps belong to
    struct tir_crew within; // whose block they run: a group of a scope, their role, the CTA
    uint32_t role_id;       // while they run its role: its named barrier; else 0
    const struct tir_inst *registers; // the last request for registers; NULL: none
    struct sync_value *slots;         // by value id
    struct sync_value *constants;     // what they are at the beginning
    struct sync_buffer *buffers;      // of values, by sync_program.buffer_of
    struct sync_buffer *tensors;      // by root
    uint32_t *visits;                 // by instruction id
    struct sync_ran *ran;             // by instruction id
    struct sync_clock all;            // the common knowledge of the lanes of a warp
    struct sync_clock all_peers;      // and of the other warps of the agent
    struct sync_own *own;             // by thread
    struct sync_thread threads[SYNC_THREADS];
    uint32_t thread_count;
    uint16_t events;                       // strand of converged events
    uint16_t wgmma;                        // strand of its groups of products; 0: none yet
    uint16_t copies;                       // strand of its groups of cp.async; 0: none yet
    uint16_t inits;                        // strand of its fences of mbarrier_init; 0: none yet
    uint32_t inits_fenced;                 // how many there were
    uint32_t wgmma_closed, wgmma_done;     // groups
    uint32_t wgmma_events[SYNC_GROUPS];    // its converged events when the last groups were closed
    uint32_t copies_closed;                // groups, by all its threads
    uint32_t copies_batch;                 // closed batches: groups, or parts that are committed
    uint32_t copies_ends[SYNC_COPIES];     // the batches when the last groups were closed
    uint32_t copies_group;                 // the batch that the last copy is in
    const struct tir_inst *copies_told;    // the last commit of copies to an mbarrier; NULL: none
    const struct tir_inst *copies_last;    // NULL: none
    struct sync_split splits[SYNC_SPLITS]; // that were met last
    uint32_t split_count;
    uint32_t now;        // counts its events
    uint32_t fence_time; // the last fence(of = wgmma)
    uint32_t await_time;
    const struct tir_inst *wgmma_open, *wgmma_last;
    struct sync_frame frames[SYNC_DEPTH];
    uint32_t depth;
    uint32_t stage;  // of an instruction that waits in between
    uint32_t ticket; // of its wait
    uint32_t cluster_ticket;
    const struct tir_inst *request; // the last try_cancel of its warps; NULL: none
    uint32_t request_at;            // its converged event
    const struct tir_inst *stopped; // at; NULL: not waiting
    uint64_t stopped_at;            // what sync_run.phases was
};

// Different for the threads of each role, of each group of a scope, and of the CTA.
static inline uint64_t sync_crew_key(const struct sync_agent *a)
{
    const struct tir_crew *c = &a->within;
    return c->scope ? UINT64_C(64) * (c->first + 1) + c->warps : a->role_id;
}

// Barriers.

struct sync_seen { // a wait that has seen a phase
    const struct tir_inst *by;
    uint32_t phase, at;
};

struct sync_share { // the releases of a thread's lanes to an mbarrier, lane by lane
    const struct sync_agent *agent;
    uint16_t data;
    uint32_t *known, *fenced[SYNC_MEMORIES]; // as of a clock, by lane of the agent's warps
};

struct sync_mbarrier {
    const struct tir_inst *init; // NULL: not prepared
    bool init_fenced;
    uint16_t init_strand;
    uint32_t init_at;
    uint16_t told_strand; // fences of initialisations that a relaxed arrival tells of
    uint32_t told_at;     // which of them is after this one; 0: none
    uint16_t strand;      // its phases
    int64_t count, pending, bytes;
    uint32_t completed;                            // phases
    const struct tir_inst *arrive, *expect, *copy; // the last ones
    struct sync_clock arriving, done;
    VEC(struct sync_share) shares; // that `arriving` has once all lanes have come
    uint32_t copy_phase;           // that the last copy belongs to
    const struct tir_inst *early;  // an arrival that may be counted in the phase before; NULL: none
    const struct tir_inst *early_for; // a wait that has seen that one; or NULL
    struct sync_seen *seen;           // by agent
    struct sync_seen *remote;         // arrivals from other CTAs, by agent
};

struct sync_named { // a named barrier, the CTA's, or the cluster's
    uint32_t expected, arrived, completed;
    uint16_t strand;    // its phases; 0: the cluster's
    struct bitset here; // agents that have arrived
    const struct tir_inst *last, *completes;
    struct sync_clock arriving, done;
};

// The acting thread, and its number of lanes of each warp.
struct sync_who {
    struct sync_agent *agent;
    uint32_t thread;
    uint32_t lanes;
    const uint32_t *mask;        // of each warp; NULL: all
    const struct tir_inst *data; // as in sync_lanes
    enum sync_spread spread;
};

#endif
