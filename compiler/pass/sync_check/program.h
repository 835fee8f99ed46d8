// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What sync_check knows of a kernel before it replays it, and what the replays so far have shown.
#ifndef TIR_PASS_SYNC_CHECK_PROGRAM_H
#define TIR_PASS_SYNC_CHECK_PROGRAM_H

#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/sync_check/state.h"

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

struct sync_met { // do two accesses touch a byte? (alias.c)
    uint64_t key; // of the two; 0: none is kept here
    bool meet;
};

struct sync_unordered { // sync_pairs between which a replay saw no order
    uint8_t now;        // in one round of all loops around the two
    uint8_t later;      // in two
    bool seen;          // a replay came to both
};

// An access of which pairs are noted (meet.c).
struct sync_spot {
    const struct tir_inst *by;
    struct tir_value *buffer; // that it accesses, a part of it if `sliced`
    uint8_t access;           // enum sync_access
    bool sliced;              // by the indices of `by`
    bool single;              // threads name elements one by one
    bool moves;               // a setting decides where it is
    const struct sync_part *part;
};

// Where a spot is: along each dimension of the root a sum, and how many elements (part.c).
struct sync_part {
    const struct tir_value *root;
    struct tir_value *at[TIR_MAX_RANK][SYNC_VIEWS];
    uint32_t count[TIR_MAX_RANK]; // of the sum
    int64_t size[TIR_MAX_RANK];   // -1: all, or any
    bool vague;                   // more than that is not known
};

struct sync_program {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    const struct tir_inst **assumes; // the assume_sync that covers an instruction, by id; or NULL
    struct bitset stored_by_all;     // stores that are unchecked as several CTAs make them, by id
    const struct tir_inst *orders;   // PTX or a spin that may order other accesses, or NULL
    const struct tir_inst *flags;    // what may order accesses of tensors beside barriers, or NULL
    bool by_hand;                 // the program, or roles, order accesses; else barriers of passes
    uint32_t memories;            // that proxy fences are told apart for: 1 or SYNC_MEMORIES
    struct bitset visited;        // instructions that are replayed, by id
    uint8_t *classes;             // of instructions, by id
    const struct tir_inst **next; // the next in its block that is visited, by id
    struct bitset needed;         // values that decide their effect, by id
    struct bitset numbers;        // those that do not only say where data is loaded
    struct tir_map keys;          // of stored values (tir_sync_keys)
    struct bitset open;           // values that settings decide, by id
    struct bitset open_to_data;   // and that data does
    struct bitset places;         // values that decide where in tensors they are, by id
    struct bitset tensors;        // that are loaded and stored, by value id
    struct bitset anywhere;       // buffers whose loads are taken to read all of them, by value id
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
    bool has_peers;            // what they do to tensors is compared
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
        bool loops;    // decides how often loops run that have no other in them
        bool outer;    // or those that have
        int64_t reach; // of an extent: where what threads touch of tensors ends (reach.c)
    } * args;          // by index in the kernel's block
    VEC(struct sync_unchecked) unchecked;
    VEC(struct sync_assumed) assumed;
    uint64_t work, work_limit;
    struct sync_met *met;    // SYNC_MET of them, by key
    uint8_t *first_spot;     // by instruction id: the number of its first spot, from 1 on; 0: none
    struct sync_spot *spots; // those of an instruction one after the other
    uint32_t spot_count;
    bool has_single;              // one of them is of single elements
    struct sync_unordered *pairs; // spot_count for each spot
    uint64_t given_up;            // work of replays that took too much of it
    uint32_t strands;             // that clocks have room for
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

// Do other threads of the CTA, or of the cluster, see it?
static inline bool tir_sync_is_shared(const struct tir_value *v)
{
    return v && (v->type->space == TIR_SPACE_SHARED || v->type->space == TIR_SPACE_CLUSTER ||
                 v->type->space == TIR_SPACE_TMEM);
}

// prepare.c: the instructions and values that matter. False: there is nothing to check.
bool tir_sync_prepare(struct sync_program *p);

// The `count` values that decide whether and how often the blocks of an instruction run.
struct tir_value *const *tir_sync_bounds_of(const struct tir_inst *inst, uint32_t *count);
// The number of a CTA, or of CTAs: another launch, or CTA, may have another one.
bool tir_sync_is_place(const struct tir_inst *inst);

// The values that `count` values depend on, and open: whether a setting, or data, decides them.
struct bitset tir_sync_slice(struct sync_program *p, struct tir_value *const *of, uint32_t count);
// Of those the ones that must be large for the `count` values to be large. How many loaded numbers
// are added is none of them.
struct bitset tir_sync_scaling_slice(struct sync_program *p, struct tir_value *const *of,
                                     uint32_t count);
bool tir_sync_is_open(const struct sync_program *p, const struct bitset *slice, bool by_data);

// step.c: what each round of a loop adds to the integer i that it carries. False: not known.
enum { SYNC_MOST_STEP = 1 << 20 }; // of a counter; what data or an argument adds has no such bound
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

// roots.c
void tir_sync_find_roots(struct sync_program *p);
void tir_sync_find_buffers(struct sync_program *p); // each value that is one has a place in agents
void tir_sync_find_depth(struct sync_program *p);
void tir_sync_find_classes(struct sync_program *p); // of warps

// spins.c
// A loop that spins until an atomic finds a flag in shared memory; fences order what it tells.
// NULL: there is none.
const struct tir_inst *tir_sync_find_spin(struct sync_program *p);
void tir_sync_find_waits(struct sync_program *p); // notes those for a flag in a tensor
// A fence of a CTA, a cluster, the GPU or the system.
bool tir_sync_is_scope_fence(const struct tir_inst *inst);
// Whether the load may read any place of its buffer, whatever its indices are (anywhere.c).
bool tir_sync_reads_anywhere(const struct sync_program *p, const struct tir_inst *inst);
// PTX that waits, orders or goes to memory (ptx.c).
bool tir_sync_ptx_orders(const struct tir_inst *inst);
// PTX whose results are all that it does.
bool tir_sync_ptx_computes(const struct tir_inst *inst);

// tensors.c: the tensors that the replay checks, and those in which CTAs may conflict.
void tir_sync_find_tensors(struct sync_program *p);
// May a thread have learned, before it comes to `at`, what other threads have done, by a flag?
bool tir_sync_may_be_told(const struct sync_program *p, const struct tir_inst *at);
// phases.c: do barriers of the grid stand between all reads of the tensor and all writes?
// If so, a copy engine that may not see what was written is noted as unchecked.
bool tir_sync_phases_keep_apart(struct sync_program *program, const struct tir_value *tensor);
// A store of one element by each thread that reaches it: two of them may store to the same one.
bool tir_sync_is_by_threads(const struct sync_program *p, const struct tir_inst *inst);

// meet.c: the accesses of which the plan asks where two threads meet.
void tir_sync_find_pairs(struct sync_program *p);
static inline struct sync_unordered *tir_sync_pair(const struct sync_program *p, uint32_t x,
                                                   uint32_t y)
{
    return &p->pairs[TIR_MIN(x, y) * p->spot_count + TIR_MAX(x, y)];
}
// Is what threads share in the places of two the same in a round of the loops around both? Then
// arguments do not decide whether two threads meet.
bool tir_sync_are_alike(struct sync_program *p, const struct sync_spot *x,
                        const struct sync_spot *y);

// part.c
struct sync_part tir_sync_part_of(const struct sync_spot *spot);
// Does an argument that decides about no loop say where it is, and nothing that is data?
bool tir_sync_is_moved(const struct sync_program *p, const struct sync_part *part);
// May x begin elsewhere along dimension d than y, as settings decide, and they still meet?
bool tir_sync_may_shift(const struct sync_part *x, const struct sync_part *y, uint32_t d);
// May they have an element in common, for all that the numbers in the text say?
bool tir_sync_may_share(const struct sync_part *x, const struct sync_part *y);

// ctas.c: stores to one place by several CTAs along an axis of the grid are unchecked.
void tir_sync_find_stores_of_all(struct sync_program *p);
// Is there one CTA alone, whatever the arguments?
bool tir_sync_is_alone(const struct sync_program *p);
// Does a replay have all accesses to the tensor, as there is one cluster and no argument decides?
bool tir_sync_has_one_cluster(struct sync_program *p, const struct tir_value *tensor);
bool tir_sync_meets_grid(const struct tir_inst *loop); // a barrier of the grid is in it
// So are those that two may make to one place.
struct sync_setting;
void tir_sync_ask_for_ctas(struct sync_program *p, const struct sync_setting *near);

// carried.c: which stores to tensors depend on how tiles are given to CTAs.
void tir_sync_find_carried(struct sync_program *p);

// May a value differ from lane to lane of a warp, or from thread to thread of a CTA? As the text
// says, whether it is replayed or not.
bool tir_sync_varies_in_warp(struct sync_program *p, struct tir_value *v);
bool tir_sync_varies(struct sync_program *p, struct tir_value *v);
// equal.c: of a value that is stored, a number for each warp: the same for the same value in one
// round of the loops around it. NULL: lanes of a warp may differ.
struct sync_keys {
    bool by_round; // other rounds may have other values
    uint64_t warps[SYNC_CTA_THREADS / SYNC_LANES];
};
const struct sync_keys *tir_sync_keys(const struct sync_program *p, const struct tir_value *v);
bool tir_sync_warps_differ(const struct sync_program *p, const struct tir_value *v);
void tir_sync_find_keys(struct sync_program *p);

// counters.c: what loops count, and only to know when to end.
void tir_sync_find_counters(struct sync_program *p);

// limits.c. False: an error was reported.
bool tir_sync_limits(const struct sync_program *p);

// report.c: adds an unchecked part, at a place of the program.
void tir_sync_unchecked(struct sync_program *p, const struct tir_inst *inst, const char *what);
void tir_sync_unchecked_at(struct sync_program *p, struct tir_span span, tir_str text);

void tir_sync_write_assumed(const struct sync_program *p);

#endif
