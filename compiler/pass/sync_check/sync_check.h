// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of sync_check: the replay of one kernel in one setting.
#ifndef TIR_PASS_SYNC_CHECK_SYNC_CHECK_H
#define TIR_PASS_SYNC_CHECK_SYNC_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "ir/number.h"
#include "pass/receipt.h"
#include "pass/sync_check/setting.h"

struct sync_far { // the last access of a strand to shared memory of another CTA
    const struct tir_inst *by;
    uint32_t cta, at;
    uint16_t strand;
};

struct sync_head { // of a loop
    uint32_t round;
    int64_t number;
};

// Which agent runs next. Vector clocks show the races of all schedules in one; but in some a state
// recurs, and in others the agents drift apart.
enum sync_pace {
    SYNC_IN_TURNS, // one step each
    SYNC_HURRIED,  // each as far as it can
    SYNC_ABREAST   // one step each of those that are no more ahead in their loops than they must be
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
    bool draws_late;      // one that says whether a loop goes on
    int64_t longest;      // rounds of an inner loop
    uint32_t starts;      // of blocks
    enum sync_pace pace;
    bool watches; // for states that recur
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
    struct bitset *occupied;         // by CTA: roots that have accesses, or cells, and maybe others
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

// plan.c, plan_*.c: all replays, and what they leave unchecked.
enum sync_outcome tir_sync_replay_all(struct sync_program *p);
// The number of rounds that all inner loops whose rounds depend on the setting have come to.
uint32_t tir_sync_rounds(const struct sync_program *p);

// limits.c: at the end of a replay. False: an error was reported.
bool tir_sync_registers(struct sync_run *r, uint32_t cta);

// state.c: the agents, buffers and barriers of a kernel, once, and as they are before a replay.
void tir_sync_set_up(struct sync_run *r);
void tir_sync_reset(struct sync_run *r);
struct sync_clock tir_sync_new_clock(struct sync_run *r);
struct sync_named *tir_sync_named(struct sync_run *r, uint32_t cta, uint32_t id);

// replay.c: runs all agents as far as they can.
enum sync_outcome tir_sync_replay(struct sync_run *r);

// flow.c. The block that the agent runs:
static inline struct sync_frame *tir_sync_top(struct sync_agent *a)
{
    return &a->frames[a->depth - 1];
}
// inst has blocks: into one of them, if any is to be run.
void tir_sync_enter(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst);
// Into another block, or the same one again, or on behind them.
void tir_sync_end_block(struct sync_run *r, struct sync_agent *a);

// pace.c: is the agent more rounds ahead of some other one that is in such a loop, too? Of loops
// around it none.
bool tir_sync_is_ahead(const struct sync_run *r, const struct sync_agent *a, int64_t most);

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
// Does each thread take its way through an if by its own data, with no say in what others may do?
// Then it is checked as if each took both blocks, one after the other.
bool tir_sync_is_apart(const struct sync_program *p, const struct tir_inst *inst,
                       const struct sync_value *cond);
// Is v one number in all of these lanes?
bool tir_sync_equal_among(const struct sync_agent *a, const uint32_t *mask,
                          const struct sync_value *v, int64_t *number);
// The agent's warps from its w-th on are another agent when the replay begins again, as it must.
void tir_sync_split_agent(struct sync_run *r, const struct sync_agent *a, uint32_t w);
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
void tir_sync_find_anywhere(struct sync_program *p);
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
// The record, with what its elements leave when they are divided by the modulus.
struct sync_record tir_sync_remainders(struct sync_run *r, const struct sync_record *record,
                                       int64_t modulus);
// Whether data may bring two threads of such a pair to one element.
bool tir_sync_may_meet(struct sync_run *r, const struct sync_root *root,
                       const struct sync_record *old, const struct sync_record *now,
                       enum sync_pairs pairs);

// given.c: data that a setting gives.
// Is it one of the numbers that bounds of loops are computed from?
bool tir_sync_is_count(const struct sync_program *p, const struct tir_inst *load);
// The key of an element, before its indices are mixed into it.
uint64_t tir_sync_first_key(const struct tir_inst *load);
// Of a float's integer that bounds of loops are computed from; 0: it is none.
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

// boxes.c: the slice that inst names of a buffer.
void tir_sync_view(const struct sync_agent *a, const struct tir_inst *inst,
                   const struct sync_buffer *of, struct sync_buffer *out);

// points.c
void tir_sync_sort_points(int64_t *points, uint32_t count);
// Does one thread of such a pair touch an element of a, and the other later the same element of b?
bool tir_sync_points_meet(struct sync_run *r, const struct sync_root *root,
                          const struct sync_record *a, const struct sync_record *b,
                          enum sync_pairs pairs);
// The element that thread i of the agent names, counted row by row; negative: none.
int64_t tir_sync_element(const struct sync_run *r, const struct sync_agent *a,
                         const struct tir_inst *inst, const struct sync_buffer *of, uint32_t i);
// The numbers of all loops around inst; 0: one is not known.
uint64_t tir_sync_round(const struct sync_run *r, const struct sync_agent *a,
                        const struct tir_inst *inst);
// Where threads have single elements: those that `who` touches.
void tir_sync_points(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                     const struct sync_buffer *of, struct sync_record *access);
// Refuses a store by which threads touch the same element.
void tir_sync_check_apart(struct sync_run *r, const struct tir_inst *store,
                          const struct sync_buffer *of, const struct sync_record *access);

// alias.c: are the buffers of two roots the same bytes under two types?
bool tir_sync_share_alloc(const struct sync_root *a, const struct sync_root *b);
// Is it of a tile of which the warps of its agent have a part, which the layout says?
bool tir_sync_is_of_warps(const struct sync_run *r, const struct sync_record *record);
// Do two accesses to such buffers, or to one, touch one byte, by one of these pairs of threads?
bool tir_sync_bytes_meet(struct sync_run *r, const struct sync_root *of_a,
                         const struct sync_record *a, const struct sync_root *of_b,
                         const struct sync_record *b, enum sync_pairs pairs);
// The elements of one buffer in bytes that an access to another one touches, as points of `out` in
// the run's arena; of another alloc than the buffer's, in all bytes from begin to end.
void tir_sync_elements_met(struct sync_run *r, const struct sync_root *root,
                           const struct sync_root *of, const struct sync_record *record,
                           int64_t begin, int64_t end, struct sync_record *out);

// memory.c: records that `who` touches b, and compares with earlier records. `access` states the
// instruction and the kind; its box is filled in here.
void tir_sync_access(struct sync_run *r, const struct sync_who *who, const struct sync_buffer *b,
                     struct sync_record access);
// An access after which the CTA of the buffer may not have ended.
void tir_sync_note_far(struct sync_run *r, uint32_t cta, const struct sync_record *now);
// That some element of the access is in its buffer, for the plan.
void tir_sync_note_place(struct sync_run *r, const struct sync_buffer *b,
                         const struct sync_record *access);

// barrier.c: refuses an instruction that a whole warp, or more, must reach if only some lanes do.
// True: all reach it.
bool tir_sync_all_come(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                       enum sync_spread allowed);
// Barriers. Functions that return false must wait.
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
// The check ends here: by what follows the instruction nothing is known.
void tir_sync_end_at(struct sync_run *r, const struct tir_inst *inst, const char *what);
// The same, as the kernel has more of something than is followed.
void tir_sync_give_up(struct sync_run *r, const char *what, uint32_t most);
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
