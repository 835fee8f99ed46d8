// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conditions on a setting: the values of a kernel as sums of unknowns, and what they must satisfy.
//
//     (k / 64) % 7 == 6      k = 64 r, q = r, q = 7 s + 6, with r, q and s unknown
//
// Products and quotients of unknowns are unknowns too (solve.h). If a value is no such sum, a few
// numbers are tried for a part of it: a side of `||`, what a bit operation takes, a round of a loop
// whose carried value does not change by a constant. Data may have any value.
// Numbers here do not wrap, so the caller must test whether an answer holds.
#ifndef TIR_PASS_SYNC_CHECK_ASK_H
#define TIR_PASS_SYNC_CHECK_ASK_H

#include "pass/sync_check/sync_check.h"

enum { SYNC_PICKS = 24 }; // that are open at a time

struct sync_known { // what a value is
    const struct sync_linear *form;
    uint32_t time;
    bool of_thread; // it depends on which thread it is
};

struct sync_following { // of a loop, by instruction id
    uint32_t unknown;
    bool counted, followed; // the unknown is made; the values carried are those of round `at`
    int64_t at;
    uint32_t all; // the unknown of all its rounds, if it has `ended`
    bool ended;
};

struct sync_loaded {             // an element of a tensor, or a float's integer
    const struct tir_inst *load; // or NULL, and
    uint64_t key;
    struct sync_linear *forms; // its indices, and what it is
};

struct sync_ask {
    struct sync_program *p;
    struct tir_arena *arena;
    struct sync_problem *q;
    const struct sync_setting *wanted;
    struct sync_known *known;           // by value id
    const struct sync_linear **carried; // by value id: at the round that is followed
    struct sync_following *rounds;      // by instruction id
    const struct tir_inst *following;   // the loop whose rounds are
    uint32_t time, depth;
    uint32_t *arg, thread; // unknowns, plus 1: of arguments, of a thread's number
    bool of_thread;        // that was asked for
    uint32_t cta[3], ctas[3], tile[TIR_MAX_RANK];
    const struct tir_inst *tiles; // that `tile` is of
    uint8_t pick[SYNC_PICKS], picks[SYNC_PICKS];
    uint32_t pick_count, pick_at;
    struct sync_loaded loads[SYNC_GIVEN]; // that count
    uint32_t load_count;
    bool partial; // not all there is to pick from is
    bool loose;   // carried values are only bounded: what has no solution never happens
    bool follows; // it came to carried values that are not known at once
    bool plain;   // the kernel's conditions that leave a choice are left out
};

// The value, as it is where it is used.
struct sync_linear tir_sync_linear(struct sync_ask *a, const struct tir_value *v);
// Makes a condition true, or false.
void tir_sync_demand(struct sync_ask *a, const struct tir_value *cond, bool wanted);
void tir_sync_equal(struct sync_ask *a, struct sync_linear x, struct sync_linear y);
// x >= y + more
void tir_sync_at_least(struct sync_ask *a, struct sync_linear x, struct sync_linear y,
                       int64_t more);
// x, as one of a few numbers that it may be.
int64_t tir_sync_number(struct sync_ask *a, struct sync_linear x);
struct sync_linear tir_sync_cta(struct sync_ask *a, uint32_t axis); // of the grid
struct sync_linear tir_sync_ctas(struct sync_ask *a, uint32_t axis);
// Brings a loop to the head of a round: what it carries, of `which`, is what it is there.
void tir_sync_follow(struct sync_ask *a, const struct tir_inst *loop, int64_t to,
                     const struct bitset *which);
// A while goes on after the round that it is in.
void tir_sync_demand_next(struct sync_ask *a, const struct tir_inst *loop);
// From here on a for is in a later round than before: what is made in it may be something else.
void tir_sync_go_on(struct sync_ask *a, const struct tir_inst *loop);
// ask.c: the conditions for a block to run, and for one more round of the loops around it.
void tir_sync_demand_block(struct sync_ask *a, const struct tir_block *block, bool goes_on);
// Each goal is one of some thread, not all of the same one.
void tir_sync_take_thread(struct sync_ask *a);
// ask_meet.c: MEET, TOUCH and SLOT.
void tir_sync_demand_meeting(struct sync_ask *a, const struct sync_goal *goal);
// given.c: what a question says of elements that are loaded.
void tir_sync_note_load(struct sync_ask *a, const struct tir_inst *load, struct sync_linear form);
// The float's integer of this key: the form, or what it was before.
struct sync_linear tir_sync_rounded(struct sync_ask *a, uint64_t key, struct sync_linear form);
void tir_sync_take_loads(const struct sync_ask *a, const int64_t *numbers,
                         struct sync_setting *out);
// Goes on to what was not picked yet. False: that was all.
bool tir_sync_next_picks(struct sync_ask *a);

#endif
