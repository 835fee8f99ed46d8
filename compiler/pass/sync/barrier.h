// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of the barrier pass.
#ifndef TIR_PASS_SYNC_BARRIER_H
#define TIR_PASS_SYNC_BARRIER_H

#include "base/vec.h"
#include "ir/effect.h"
#include "ir/follow.h"
#include "ir/range.h"
#include "pass/pass.h"
#include "pass/sync/crew.h"

// An access that nothing has ordered yet before all that follows.
struct range {
    enum tir_access access;         // READ, WRITE, UPDATE
    enum tir_done in_flight;        // says when an engine's access is over; NOW: it is
    const struct tir_value *tensor; // global; NULL: shared memory
    const struct tir_value *root;   // the buffer
    const struct tir_inst *by;
    const struct tir_inst *at;   // `by`, or the outermost branch around it that was left
    const struct tir_inst *copy; // that it came by, where `by` is the wait for it; else NULL
    int64_t begin, end;          // bytes of shared memory
    bool async;                  // by an engine, through its own proxy
    bool by_hand;                // declared by a program that orders its accesses
    bool synced;                 // a barrier followed; it is only kept because no fence did
    bool fenced;                 // a fence followed
    int32_t age; // in flight: groups that were committed after its own; -1: its own was not
    const struct tir_inst *stepper; // loop of which each round uses another slot; NULL: none
    uint8_t rounds;                 // of it that have ended since
    bool stays;                     // where the loop runs again, it goes on with the next slot
};

struct state {
    VEC(struct range) pending;
};

struct loop {
    struct state back;        // what its end leaves for its start
    struct tir_inst *barrier; // this loop or one around it, got a barrier in front; NULL: none did
};

struct barriers {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    const uint32_t *uses;       // by value id
    struct tir_follow uniform;  // is a value the same in all threads?
    bool by_hand;               // the program orders its own accesses
    bool engines;               // something accesses shared memory through another proxy
    bool engines_write;         // and writes so
    struct tir_map handed_over; // buffers whose uses by engines are ordered by mbarriers
    struct tir_map loops;       // instruction -> struct loop *
    struct tir_crew cta, crew;  // all threads; those that run what is walked
    struct tir_value *leader;   // of the crew, once it was asked for
    struct tir_block *crew_block;
    struct tir_inst *first_role; // NULL: none
    struct tir_inst *branch;     // outermost branch of single threads that we are in; NULL: none
    bool stored;                 // the crew has started a store_async
    uint32_t before_roles;       // what was put in front of the roles
    bool dry;                    // walk only: insert nothing
    bool grown;                  // in this walk some loop's end left more than before
    bool changed, failed;
};

// Bits of what two accesses need between them. Of what is in flight, until its sources have been
// read or until it is done, by what says so.
enum {
    NEED_BARRIER = 1,
    NEED_FENCE_SHARED = 2, // of writes to shared memory, or to tensors
    NEED_FENCE_GLOBAL = 4,
    NEED_FENCE = NEED_FENCE_SHARED | NEED_FENCE_GLOBAL,
    NEED_READ = 8, // << enum tir_done
    NEED_DONE = NEED_READ << TIR_DONE_COUNT
};

// barrier_pending.c: what is pending, and what a wait, fence or barrier ends.

bool tir_barrier_is_loop(const struct tir_inst *inst); // may its block run again?
// Was p made before the roles, one of which we are in?
bool tir_barrier_is_older_than_role(const struct barriers *b, const struct range *p);
// Was p made in a round of the loop, which we are in, that has not ended or that came before?
bool tir_barrier_is_made_in(const struct range *p, const struct tir_inst *loop);

// What inst does to the buffer, or to the slice that it names.
struct range tir_barrier_range(const struct barriers *b, const struct tir_inst *inst,
                               const struct tir_effect *effect);
// Accesses all of a buffer at once.
struct range tir_barrier_range_of(const struct barriers *b, const struct tir_inst *inst,
                                  struct tir_value *buffer, enum tir_access access);
// What is needed between p, which came first, and r.
uint32_t tir_barrier_needs(const struct barriers *b, const struct range *p, const struct range *r);

// barrier_slots.c: buffers of which each round uses another slot.

// Sets r's loop, if r is an access to a slot of that kind.
void tir_barrier_find_slot(struct range *r, const struct tir_value *buffer);
// At the end of a round of the loop, and behind the loop.
void tir_barrier_stepped(struct state *s, const struct tir_inst *loop);
void tir_barrier_left(struct state *s, const struct tir_inst *loop);
// Are p and r known to be of two slots of one buffer?
bool tir_barrier_other_slot(const struct range *p, const struct range *r);

// True: the state has more than it had.
bool tir_barrier_add(struct barriers *b, struct state *s, struct range r);
bool tir_barrier_join(struct barriers *b, struct state *into, const struct state *from);
struct state tir_barrier_copy_of(struct barriers *b, const struct state *s);
// Behind a branch, what was made in it is no longer told apart by its blocks.
void tir_barrier_leave(struct barriers *b, struct state *s, const struct tir_inst *left);

// In front of `place`: the fences in `need`, by all threads; a barrier.
void tir_barrier_fenced(const struct barriers *b, struct state *s, const struct tir_inst *place,
                        uint32_t need);
void tir_barrier_met(const struct barriers *b, struct state *s, const struct tir_inst *place);
void tir_barrier_committed(struct state *s, enum tir_done done);
// After a wait for all but `groups` groups, what they stand for is an ordinary access; reads: only
// what they read.
void tir_barrier_finished(const struct barriers *b, struct state *s, const struct tir_inst *place,
                          enum tir_done done, bool reads, int64_t groups);
// After their wait the copies that threads share are what `wait` wrote.
void tir_barrier_landed(struct state *s, const struct tir_inst *wait);

// barrier_insert.c: what is needed between two accesses.

// Puts in front of inst what r, an access of inst, needs after all that is pending.
void tir_barrier_order(struct barriers *b, struct state *s, struct tir_inst *inst,
                       const struct range *r);
// What was put in front of `place` has ordered.
void tir_barrier_settle(const struct barriers *b, struct state *s, const struct tir_inst *place,
                        uint32_t need, int64_t groups);
uint32_t tir_barrier_fences(const struct tir_inst *fence); // NEED_ bits of what it does
bool tir_barrier_has_name(struct barriers *b);             // for the crew; else an error
struct tir_value *tir_barrier_leader(struct barriers *b);

// barrier_survey.c: facts about the whole kernel.

// Does f order its own scalar accesses, because it uses single threads or barriers? Code that
// passes add to choose the thread that arrives at an mbarrier or starts a copy does not count.
bool tir_speaks_of_threads(const struct tir_func *f, struct tir_arena *scratch);
// Buffers that copies with mbarriers fill, or that two roles use: keys of `found`, which lives on
// scratch.
void tir_find_handed_over(struct tir_func *f, struct tir_arena *scratch, struct tir_map *found);

// Does each thread write in store y what it wrote in store x, as far as the two touch the same?
// x may be y, in a later round of a loop. False: they differ, or one is no store.
bool tir_same_writers(const struct tir_ranges *ranges, const struct tir_inst *x,
                      const struct tir_inst *y);
// Are x and y loads or stores of tiles of one tensor in which each thread has the same elements, as
// far as the two touch the same, and no other thread has them?
bool tir_own_elements(const struct tir_ranges *ranges, const struct tir_inst *x,
                      const struct tir_inst *y);
// Are loads x and y alike in what tir_own_elements says of each and any store?
bool tir_same_owners(const struct tir_ranges *ranges, const struct tir_inst *x,
                     const struct tir_inst *y);
// May the engine end two store_async to one tensor in any order: do they combine alike, or go to
// different places? x may be y, in a later round of a loop.
bool tir_stores_in_any_order(const struct tir_inst *x, const struct tir_inst *y);

#endif
