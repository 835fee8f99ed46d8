// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of sync_check: the replay of one kernel, its agents and their clocks, the
// accesses made so far and the barriers.
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
#ifndef TIR_PASS_SYNC_CHECK_SYNC_CHECK_H
#define TIR_PASS_SYNC_CHECK_SYNC_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "base/bitset.h"
#include "ir/number.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"
#include "pass/sync_check/solve.h"

enum {
    SYNC_LANES = 32,
    SYNC_STRANDS = 64, // to begin with
    SYNC_MOST_STRANDS = 4096,
    SYNC_THREADS = 17, // of an agent: all its lanes, and up to sixteen sets of them
    SYNC_AGENTS = 256,
    SYNC_CLASSES = 32,  // of the warps of a CTA
    SYNC_CTAS = 16,     // of a cluster
    SYNC_BARRIERS = 16, // named; then come that of the cluster and that of the grid
    SYNC_GRID_BARRIER,
    SYNC_DEPTH = 24,     // of blocks
    SYNC_RECORDS = 1024, // of one buffer
    SYNC_STORES = 64,    // of one tensor that are remembered
    SYNC_LOADS = 32,
    SYNC_SPLITS = 8,
    SYNC_GIVEN = 8,   // elements of tensors that a setting gives
    SYNC_GROUPS = 8,  // of products in flight
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
    bool only_stored; // a tensor that is not loaded: only values that differ matter
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
    uint64_t same;         // accesses with equal keys give each thread the same elements; 0: none
    const int64_t *points; // element * SYNC_POINT + thread, sorted; NULL: the whole box
    uint16_t agent;
    uint32_t point_count;
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

struct sync_shadow { // the accesses to one buffer in one CTA
    VEC(struct sync_record) records;
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

// Facts about the kernel before it is replayed.

enum sync_class { // the replay's treatment of an instruction
    SYNC_SKIP,
    SYNC_ARITHMETIC, // elementwise on integers
    SYNC_VIEW,
    SYNC_VALUE, // computes other scalars and buffers
    SYNC_ONCE,  // its result never changes
    SYNC_WARP,  // reached by all lanes of a warp, without effect on other warps
    SYNC_BLOCKS,
    SYNC_BARRIER,
    SYNC_GROUP,
    SYNC_PRODUCT,
    SYNC_OTHER
};

struct sync_unchecked { // a line of the receipt, and a warning
    struct tir_span span;
    tir_str text;
};

struct sync_assumed { // a fault that was not refused because of an assume_sync
    const struct tir_inst *by;
    struct tir_span span;
    tir_str text;
};

// Where a value that is computed from tiles comes from (tiles.c).
struct sync_source {
    uint64_t number;               // equal for the same computation; 0: not by its text
    const struct tir_block *block; // the innermost in which something is given that it depends on
};

struct sync_rounds {
    uint32_t most;
    bool recurs;     // its state did
    uint64_t seen;   // bit n: n rounds, up to 63
    int64_t may;     // the most that nothing is known to forbid; 0: not asked
    int64_t never;   // the fewest that it is known never to run, or more; 0: none
    uint32_t around; // the most rounds of one run of the loop around it that it has run in
};

struct sync_program {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    const struct tir_inst **assumes; // the assume_sync that covers an instruction, by id; or NULL
    const struct tir_inst *orders;   // PTX or a spin that may order other accesses, or NULL
    const struct tir_inst *flags;    // what may order accesses of tensors beside barriers, or NULL
    bool by_hand;                 // the program, or roles, order accesses; else barriers of passes
    uint32_t memories;            // that proxy fences are told apart for: 1 or SYNC_MEMORIES
    struct bitset visited;        // instructions that are replayed, by id
    uint8_t *classes;             // of instructions, by id
    const struct tir_inst **next; // the next in its block that is visited, by id
    struct bitset needed;         // values that decide their effect, by id
    struct bitset places;         // values that decide where in tensors they are, by id
    struct bitset tensors;        // that are loaded and stored, by value id
    struct bitset fixed;          // values that an agent computes once, by id
    struct bitset constant;       // and that no argument of the kernel decides
    const struct tir_ranges *ranges; // of integers
    struct sync_source *sources;     // by value id
    uint32_t *buffer_of;             // by value id
    uint32_t buffer_count;
    bool has_wgmma;
    bool has_tmem, has_pairs;
    bool has_data_loops;        // loops whose number of rounds depends on arguments
    struct bitset data_loops;   // by id of the instruction
    struct bitset fixed_loops;  // of them: the number does not, only where it begins
    struct bitset counts;       // values that bounds of `for` loops are computed from, by id
    int64_t *units;             // what they go by, by id
    struct sync_rounds *rounds; // that loops have run, by id of the instruction
    // 2 * id + block of an if: blocks that some replay has entered; 2 * id: accesses of which some
    // element was in its buffer.
    struct bitset came;
    struct bitset came_long;   // and one in which a ring goes round
    uint32_t axes;             // of the grid, as bits: CTAs along them may go different ways
    uint32_t replays, tries;   // tries: to find settings
    uint32_t questions, nodes; // to the solver; numbers that it tried
    uint64_t looked;           // times that a clock was asked for an event, to know a state again
    bool recurs;               // the state of a long loop
    struct bitset returned;    // values that long loops carry and that came back, by id
    struct bitset went_on;     // or that did not in many rounds
    struct bitset inner_loops; // those that have no other in them
    struct bitset counters;    // values that are only compared, and do so in one direction, by id
    int64_t *periods;          // of counters, after which remainders of them repeat; 0: none
    int64_t cycle;             // rounds after which all those remainders repeat; 0: too many
    int64_t threshold;         // rounds after which their comparisons stay, except in the last ones
    uint32_t ctas;             // of a cluster that are replayed
    uint32_t role_count;
    uint32_t threads; // of a CTA
    int64_t depth;    // slots of the deepest ring
    VEC(struct sync_root) roots;
    uint32_t mbarrier_count; // of one CTA
    struct bitset decides;   // buffers from which a scalar is loaded that is needed, by value id
    uint32_t cell_count;     // of one CTA
    uint32_t class_count;
    uint32_t class_first[SYNC_CLASSES + 1]; // warps; the last is where they end
    struct {
        int64_t granule;
        bool loops; // decides how often loops run that have no other in them
        bool outer; // or those that have
    } * args;       // by index in the kernel's block
    VEC(struct sync_unchecked) unchecked;
    VEC(struct sync_assumed) assumed;
    uint64_t work, work_limit;
    uint64_t given_up; // work of replays that took too much of it
    uint32_t strands;  // that clocks have room for
};

// One replay.

struct sync_far { // the last access of a strand to shared memory of another CTA
    const struct tir_inst *by;
    uint32_t cta, at;
    uint16_t strand;
};

struct sync_head { // of a loop
    uint32_t round;
    int64_t number;
};

struct sync_setting {
    int64_t *args;              // by index in the kernel's block
    int64_t cta[3], ctas[3];    // a CTA of the cluster that is replayed; how many the grid has
    int64_t tile[TIR_MAX_RANK]; // that the tiles loops begin with
    bool last;                  // they begin with the last one
    int64_t waves;              // tiles of a CTA that stays
    bool is_column;             // which begin at one place in the last extent: of a grid as wide
    struct sync_given {         // elements of tensors that count (given.c)
        uint64_t key;
        int64_t number;
    } given[SYNC_GIVEN];
    uint32_t given_count;
};

// AGAIN: more agents are needed, or more strands.
enum sync_outcome { SYNC_GOING, SYNC_FAILED, SYNC_AGAIN, SYNC_GIVEN_UP };

struct sync_run {
    struct sync_program *p;
    struct tir_arena *arena;
    enum sync_outcome outcome;
    const struct sync_setting *setting;
    struct bitset *came;  // as in sync_program
    uint32_t most;        // rounds of a loop whose length depends on data
    uint32_t seed;        // branches on data: 0 not taken, 1 taken, else mixed (data.c)
    struct tir_map drawn; // the questions that were drawn an answer, in their order
    bool decided;         // some branch was on data
    int64_t longest;      // rounds of an inner loop
    uint32_t starts;      // of blocks
    bool hurries;         // each agent runs as far as it can, instead of one step
    bool watches;         // for states that recur
    bool recurs;
    bool stuck; // no state can recur: it has a number that goes on and on
    const struct sync_agent *watched;
    VEC(uint64_t) states;
    struct sync_head *heads; // by value id: what loops carry at the head of a round
    // The state.
    uint32_t *clocks; // of agents and mbarriers
    size_t clock_words;
    struct sync_seen *seen; // of mbarriers
    size_t seen_count;
    struct sync_agent *agents;
    uint32_t agent_count;
    uint32_t strand_count;
    uint64_t phases;                 // of all barriers, that are complete
    uint32_t threads_left;           // that have not ended, of all CTAs
    struct sync_shadow *shadows;     // by CTA, then root
    struct sync_mbarrier *mbarriers; // by CTA, then root's first and index
    VEC(struct sync_far) far;
    struct sync_value *cells; // by CTA, then root's first and element
    uint32_t writes;          // to them
    const struct tir_inst
        *refused[SYNC_CTAS];          // what has seen a try_cancel of the CTA fail; or NULL
    VEC(struct sync_reply *) replies; // to questions about data
    // Made when they are first used; the last is the cluster's.
    struct sync_named *named[SYNC_CTAS][SYNC_GRID_BARRIER + 1];
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

// A number that stands for two: for many numbers one after the other.
static inline uint64_t tir_sync_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 31);
}

// From inst on, in its block: what is visited.
static inline const struct tir_inst *tir_sync_visited(const struct sync_program *p,
                                                      const struct tir_inst *inst)
{
    return !inst || p->classes[inst->id] ? inst : p->next[inst->id];
}

// A decision: an if, or an integer comparison that decides something. Its number in `came` is
// 2 * id, and one more if it is false.
static inline bool tir_sync_is_comparison(const struct tir_inst *inst)
{
    return tir_ops[inst->op].rule == TIR_RULE_COMPARE &&
           tir_type_is_scalar(inst->results[0]->type) &&
           !tir_elem_is_float(inst->operands[0]->type->elem);
}

static inline struct tir_value *tir_sync_condition(const struct tir_inst *choice)
{
    return choice->op == TIR_OP_IF ? choice->operands[0] : choice->results[0];
}

// prepare.c: the instructions and values that matter. False: there is nothing to check.
bool tir_sync_prepare(struct sync_program *p);

// The `count` values that decide whether and how often the blocks of an instruction run.
struct tir_value *const *tir_sync_bounds_of(const struct tir_inst *inst, uint32_t *count);
// The number of a CTA, or of CTAs: another launch, or CTA, may have another one.
bool tir_sync_is_place(const struct tir_inst *inst);

// The values that `count` values depend on, and open: whether a setting, or data, decides them.
struct bitset tir_sync_slice(struct sync_program *p, struct tir_value *const *of, uint32_t count);
bool tir_sync_is_open(const struct sync_program *p, const struct bitset *slice, bool by_data);

// step.c: what each round of a loop adds to the integer i that it carries. False: not known.
struct sync_step {
    struct bitset way; // the values from the carried one to that of the next round, by id
    int64_t low, high; // how much is added, as far as
    bool has_low, has_high;
    bool directed; // sums alone change it, and all that they add has one sign
};
bool tir_sync_step(const struct sync_program *p, const struct tir_inst *loop, uint32_t i,
                   struct sync_step *out);

// v = scale * base + more
struct sync_multiple {
    const struct tir_value *base;
    int64_t scale, more;
};
struct sync_multiple tir_sync_multiple(const struct tir_value *v);
// for k in range(g * 64, (g + 1) * 64, 16): whatever decides where it begins, it has four rounds.
bool tir_sync_has_fixed_rounds(const struct tir_inst *loop);

// args.c
void tir_sync_find_args(struct sync_program *p);
void tir_sync_find_counts(struct sync_program *p); // counts.c

// allowed.c: do the kernel's conditions hold for these arguments?
bool tir_sync_is_allowed(const struct sync_program *p, const int64_t *args);

// plan.c, plan_*.c: all replays, and what they leave unchecked.
enum sync_outcome tir_sync_replay_all(struct sync_program *p);
// The number of rounds that all inner loops whose rounds depend on the setting have come to.
uint32_t tir_sync_rounds(const struct sync_program *p);

// ask.c: a setting near the present one that meets all goals.
enum sync_goal_kind {
    SYNC_ROUNDS,         // the loop runs `number` rounds
    SYNC_ROUNDS_OR_MORE, // at some time
    SYNC_BLOCK,          // an if takes the block of that number; a comparison is true (0) or false
    SYNC_CHOICE,         // it would, if the replay reached it
    SYNC_PLACE,          // what the instruction names of a buffer is in the buffer
    SYNC_CTA,            // the CTA has this number along the axis
    SYNC_GRID            // the grid has so many CTAs
};

struct sync_goal {
    enum sync_goal_kind kind;
    const struct tir_inst *inst;
    uint32_t axis;
    int64_t number;
    bool goes_on; // ROUNDS_OR_MORE, BLOCK: and the loops around it run another round
};

enum sync_answer tir_sync_ask(struct sync_program *p, const struct sync_goal *goals, uint32_t count,
                              struct sync_setting *setting);
// The slices of buffers on the chip that inst names, and that its buffers are.
enum { SYNC_SLICES = 8 };
uint32_t tir_sync_slices(const struct tir_inst *inst, const struct tir_inst *out[SYNC_SLICES]);
// Whether no setting at all meets a goal.
bool tir_sync_is_never(struct sync_program *p, const struct sync_goal *goal,
                       const struct sync_setting *near);

// A fence of a CTA, a cluster, the GPU or the system.
bool tir_sync_is_scope_fence(const struct tir_inst *inst);

// tensors.c: the tensors that the replay checks, and those in which CTAs may conflict.
void tir_sync_find_tensors(struct sync_program *p);
// phases.c: do barriers of the grid stand between all reads of the tensor and all writes?
// If so, a copy engine that may not see what was written is noted as unchecked.
bool tir_sync_phases_keep_apart(struct sync_program *program, const struct tir_value *tensor);
// A store of one element by each thread that reaches it: two of them may store to the same one.
bool tir_sync_is_by_threads(const struct sync_program *p, const struct tir_inst *inst);

// carried.c: which stores to tensors depend on how tiles are given to CTAs.
void tir_sync_find_carried(struct sync_program *p);

// May a value differ from lane to lane of a warp? As the text says, whether it is replayed or not.
bool tir_sync_varies(struct sync_program *p, struct tir_value *v);

// counters.c: what loops count, and only to know when to end.
void tir_sync_find_counters(struct sync_program *p);

// limits.c. False: an error was reported.
bool tir_sync_limits(const struct sync_program *p);
bool tir_sync_registers(struct sync_run *r, uint32_t cta); // in the end of a replay

// report.c: adds an unchecked part, at a place of the program.
void tir_sync_unchecked(struct sync_program *p, const struct tir_inst *inst, const char *what);
void tir_sync_unchecked_at(struct sync_program *p, struct tir_span span, tir_str text);

void tir_sync_write_assumed(const struct sync_program *p);

// state.c: the agents, buffers and barriers of a kernel, once, and as they are before a replay.
void tir_sync_set_up(struct sync_run *r);
void tir_sync_reset(struct sync_run *r);
struct sync_clock tir_sync_new_clock(struct sync_run *r);
struct sync_named *tir_sync_named(struct sync_run *r, uint32_t cta, uint32_t id);

// replay.c: runs all agents as far as they can.
enum sync_outcome tir_sync_replay(struct sync_run *r);

// lanes.c: lanes that diverge and converge.
// The lanes of `within` for which a condition is true, or is not; they have no name yet.
struct sync_lanes tir_sync_lanes_where(struct sync_run *r, struct sync_agent *a,
                                       const struct sync_lanes *within, const int64_t *each,
                                       bool wanted);
// Finds the thread that represents them.
void tir_sync_name_lanes(struct sync_run *r, struct sync_agent *a, struct sync_lanes *lanes,
                         bool elected);
const struct sync_split *tir_sync_split(struct sync_run *r, struct sync_agent *a,
                                        const struct sync_lanes *within,
                                        const struct sync_value *cond);
// `second` in some lanes, `first` in the others.
struct sync_value tir_sync_merged(struct sync_run *r, const struct sync_agent *a,
                                  const struct sync_lanes *lanes, struct sync_value first,
                                  struct sync_value second);
// Is v one number in all of these lanes?
bool tir_sync_equal_among(const struct sync_agent *a, const uint32_t *mask,
                          const struct sync_value *v, int64_t *number);
// A warp_sync: continues when all lanes have reached one, in any block.
void tir_sync_meet_lanes(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst);
// At the end of a block: do other lanes still wait for its lanes?
void tir_sync_check_left(struct sync_run *r, const struct sync_agent *a);

// recur.c: called when an agent reaches the head of a loop.
void tir_sync_watch(struct sync_run *r, const struct sync_agent *a, const struct sync_frame *f);

// value.c
struct sync_value tir_sync_value(const struct sync_run *r, const struct sync_agent *a,
                                 const struct tir_value *v);
void tir_sync_evaluate(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst);
// The same, fast, for common instructions; false for others.
bool tir_sync_arithmetic(struct sync_agent *a, const struct tir_inst *inst);
bool tir_sync_evaluate_view(const struct sync_run *r, struct sync_agent *a,
                            const struct tir_inst *inst);
// The result of inst for an unknown value: the same in every agent for the same symbol.
int64_t tir_sync_decide(struct sync_run *r, const struct sync_value *v, int64_t below);
struct sync_value tir_sync_each(const struct sync_agent *a, const int64_t *each);

// tiles.c: scalars of tiles.
void tir_sync_find_sources(struct sync_program *p);
// A number that is the same for the same computation on the same tiles.
uint64_t tir_sync_of_tiles(const struct sync_run *r, const struct sync_agent *a,
                           const struct tir_value *v);

// places.c: places in tensors that data decides.
// An operation on a symbol: the known facts about the result.
void tir_sync_follow_symbol(struct sync_run *r, const struct sync_agent *a,
                            const struct tir_inst *inst, struct sync_value *out);
// As tir_sync_element, of all threads, but for what data decides: record's modulus and base.
int64_t *tir_sync_places(struct sync_run *r, const struct sync_agent *a,
                         const struct tir_inst *inst, const struct sync_buffer *of,
                         struct sync_record *record);
// Whether data may bring two threads of such a pair to one element.
bool tir_sync_may_meet(struct sync_run *r, const struct sync_root *root,
                       const struct sync_record *old, const struct sync_record *now,
                       enum sync_pairs pairs);

// given.c: data that a setting gives.
// Is it one of the numbers that bounds of loops are computed from?
bool tir_sync_is_count(const struct sync_program *p, const struct tir_inst *load);
// The key of an element, before its indices are mixed into it.
uint64_t tir_sync_first_key(const struct tir_inst *load);
// Of a float's integer that bounds of loops are computed from, in no loop; 0: it is none.
uint64_t tir_sync_rounded_key(const struct sync_program *p, const struct tir_value *v);
// False: the setting says nothing of it.
bool tir_sync_given(const struct sync_setting *setting, uint64_t key, int64_t *number);

// data.c: data that decides something.
void tir_sync_find_cells(struct sync_program *p);
// After a write: the contents of the cells are unknown, or `value` of each thread.
void tir_sync_forget(struct sync_run *r, const struct sync_buffer *b,
                     const struct sync_record *access);
void tir_sync_keep(struct sync_run *r, const struct sync_who *who, const struct sync_value *value,
                   const struct sync_buffer *b, const struct sync_record *access);
// The result of a load of a scalar. False: nothing was kept.
bool tir_sync_kept(struct sync_run *r, const struct sync_agent *a, const struct tir_inst *load,
                   struct sync_value *out);
// A request for another CTA's work is answered in the buffer: `request` is another number each
// time; 0: it fails.
void tir_sync_respond(struct sync_run *r, const struct sync_buffer *b, uint64_t request);
// Whether a request has canceled a CTA, as its response says: the same in every thread.
bool tir_sync_is_canceled(struct sync_run *r, const struct sync_agent *a,
                          const struct tir_inst *query);
// What is_canceled or first_ctaid gives. Of the CTA only that it is one is known.
struct sync_value tir_sync_query(struct sync_run *r, const struct sync_agent *a,
                                 const struct tir_inst *query);
// The answer to a question about data, for the seed.
bool tir_sync_draw(struct sync_run *r, int64_t question);
// Whether a comparison of symbols holds, or what follows from such. False: it is none.
bool tir_sync_holds(struct sync_run *r, const struct sync_agent *a, const struct tir_inst *inst,
                    struct sync_value *out);

// clock.c
uint16_t tir_sync_strand(struct sync_run *r);
uint16_t tir_sync_use_strand(struct sync_run *r, uint16_t *strand); // makes it at its first use
void tir_sync_join(const struct sync_run *r, struct sync_clock *into,
                   const struct sync_clock *from);
void tir_sync_acquire(const struct sync_run *r, const struct sync_who *who,
                      const struct sync_clock *from);
void tir_sync_release(struct sync_run *r, const struct sync_who *who, struct sync_clock *into);
// Some lanes of other threads release their events to an mbarrier.
void tir_sync_release_shares(struct sync_run *r, const struct sync_who *who,
                             struct sync_mbarrier *m);
void tir_sync_warp(struct sync_run *r, struct sync_agent *a); // the lanes meet
void tir_sync_fence(const struct sync_run *r, const struct sync_who *who, enum sync_memory of);
// The thread that represents some lanes of the agent's warps.
uint32_t tir_sync_thread(struct sync_run *r, struct sync_agent *a, const uint32_t *mask,
                         bool elected);
struct sync_clock *tir_sync_clock(const struct sync_who *who);
void tir_sync_learn(struct sync_agent *a, uint16_t strand, uint32_t at); // in all its threads
void tir_sync_learn_of_peers(struct sync_agent *a, uint16_t strand, uint32_t at);
// Later accesses of the agent are another event.
void tir_sync_pass(struct sync_agent *a);

// memory.c
void tir_sync_sort_points(int64_t *points, uint32_t count);
// Does one thread of such a pair touch an element of a, and the other later the same element of b?
bool tir_sync_points_meet(const struct sync_root *root, const struct sync_record *a,
                          const struct sync_record *b, enum sync_pairs pairs);
// An access after which the CTA of the buffer may not have ended.
void tir_sync_note_far(struct sync_run *r, uint32_t cta, const struct sync_record *now);
// Are the buffers of two roots the same bytes under two types?
bool tir_sync_share_alloc(const struct sync_root *a, const struct sync_root *b);
// Do two accesses to such buffers touch one byte, by one of these pairs of threads?
bool tir_sync_bytes_meet(struct sync_run *r, const struct sync_root *of_a,
                         const struct sync_record *a, const struct sync_root *of_b,
                         const struct sync_record *b, enum sync_pairs pairs);
// Records that `who` touches b, and compares with earlier records. `access` states the instruction
// and the kind; its box is filled in here.
void tir_sync_access(struct sync_run *r, const struct sync_who *who, const struct sync_buffer *b,
                     struct sync_record access);
// That some element of the access is in its buffer, for the plan.
void tir_sync_note_place(struct sync_run *r, const struct sync_buffer *b,
                         const struct sync_record *access);
// The slice that inst names of a buffer.
void tir_sync_view(const struct sync_agent *a, const struct tir_inst *inst,
                   const struct sync_buffer *of, struct sync_buffer *out);
// The element that thread i of the agent names, counted row by row; negative: none.
int64_t tir_sync_element(const struct sync_run *r, const struct sync_agent *a,
                         const struct tir_inst *inst, const struct sync_buffer *of, uint32_t i);
// Where threads have single elements: those that `who` touches.
void tir_sync_points(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                     const struct sync_buffer *of, struct sync_record *access);

// Refuses an instruction that a whole warp, or more, must reach if only some lanes do. True: all
// reach it.
bool tir_sync_all_come(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                       enum sync_spread allowed);
// Refuses a store by which threads touch the same element.
void tir_sync_check_apart(struct sync_run *r, const struct tir_inst *store,
                          const struct sync_buffer *of, const struct sync_record *access);

// barrier.c: barriers. Functions that return false must wait.
bool tir_sync_barrier_op(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst);
// All threads of the role, or of the CTA, meet inside inst.
bool tir_sync_role_barrier(struct sync_run *r, const struct sync_who *who,
                           const struct tir_inst *inst);
// The mbarriers that a value stands for, in a CTA of the cluster: *count from the result on.
struct sync_mbarrier *tir_sync_mbarriers(struct sync_run *r, const struct sync_agent *a,
                                         const struct tir_inst *inst, const struct tir_value *bar,
                                         uint32_t cta, int64_t *count);
bool tir_sync_is_ready(struct sync_run *r, const struct sync_who *who,
                       const struct sync_mbarrier *m, const struct tir_inst *inst);
// Records an arrival that may be counted in the phase before the intended one.
void tir_sync_note_early(struct sync_run *r, const struct sync_who *who, struct sync_mbarrier *m,
                         const struct tir_inst *inst);
// Takes so many arrivals from the phase; false: it had fewer left, which is reported.
bool tir_sync_count(struct sync_run *r, const struct sync_who *who, struct sync_mbarrier *m,
                    const struct tir_inst *inst, int64_t arrivals);
void tir_sync_complete(struct sync_run *r, struct sync_mbarrier *m, const struct tir_inst *by);
void tir_sync_exit(struct sync_run *r, const struct sync_agent *a); // the cluster waits no more
void tir_sync_check_end(struct sync_run *r);                        // when all agents have ended

// access.c: operations that touch memory or registers in flight.
bool tir_sync_access_op(struct sync_run *r, const struct sync_who *who,
                        const struct tir_inst *inst);
// commit_group, wait_group, await. False: it has to wait.
bool tir_sync_group_op(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
void tir_sync_use_tiles(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst);
// A commit of engine cp_async.
void tir_sync_commit_copies(struct sync_run *r, const struct sync_who *who,
                            const struct tir_inst *inst);
void tir_sync_leave(struct sync_run *r, struct sync_agent *a); // at its end

// Reports the first error of a replay, at one instruction and with a note at the other; where an
// assume_sync covers one of them the receipt does, and the replay goes on, but for a deadlock.
void tir_sync_fail(struct sync_run *r, enum tir_diag_code code, const struct tir_inst *at,
                   const struct tir_inst *other, const char *note, const char *format, ...)
    TIR_PRINTF(6, 7);
uint32_t tir_sync_line(const struct sync_program *p, const struct tir_inst *inst);
// Where it is in the source; what a pass made is where its block is.
struct tir_span tir_sync_place(const struct sync_program *p, const struct tir_inst *inst);

// tmem.c: tensor memory.
// A product, or a copy from shared memory.
void tir_sync_core(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
void tir_sync_commit(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst);
// Of before_thread_sync and after_thread_sync.
void tir_sync_fence_tmem(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst);
// The columns of tensor memory that a box spans.
void tir_sync_columns(const struct sync_root *root, const struct sync_box *box, int64_t *begin,
                      int64_t *end);
// Whether two accesses by warps are in other lanes wherever they are by two warps: 0 to 3 of a
// warpgroup each have lanes of their own. `all`: also if they are by one.
bool tir_sync_in_own_lanes(const struct sync_run *r, const struct sync_record *old,
                           const struct sync_record *now, bool *all);
// Two operations of one thread that the tensor core executes in order.
bool tir_sync_in_pipeline(const struct sync_record *old, const struct sync_record *now);
// Which fence two accesses that are ordered still lack: the end of its name, or NULL.
const char *tir_sync_lacks_fence(const struct sync_run *r, const struct sync_who *who,
                                 const struct sync_record *old, const struct sync_record *now);
// At the end of a CTA, of which `end` knows all that its threads do.
void tir_sync_check_core(struct sync_run *r, uint32_t cta, const struct sync_clock *end);

#endif
