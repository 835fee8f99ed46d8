// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the parts of sync_check's plan: the settings that a kernel is replayed for.
#ifndef TIR_PASS_SYNC_CHECK_PLAN_H
#define TIR_PASS_SYNC_CHECK_PLAN_H

#include "pass/sync_check/sync_check.h"

enum {
    PLAN_SEEDS = 4,         // ways to take branches on data: not taken, taken, mixed
    PLAN_MOST_PAIRED = 6,   // and further ones where there are several
    PLAN_MORE_SEEDS = 12,   // if blocks after them were not entered
    PLAN_MOST_LOOPS = 6,    // whose rounds are asked for together
    PLAN_MOST_STEERED = 96, // replays of settings that were asked for
};

#define PLAN_ALL UINT32_MAX

struct sync_plan {
    struct sync_program *p;
    struct sync_setting setting;
    struct sync_run state; // that all replays begin with, once it is made
    uint32_t steered;
    bool is_cut;     // the last replay that was steered to took too much work
    bool is_short;   // something that no name tells of was not replayed, for want of work
    uint32_t alone;  // the argument that decides about rounds, the others being small; or PLAN_ALL
    int64_t longest; // rounds of an inner loop
    bool decided;    // some branch was on data
    uint32_t drawn;  // questions about data of one replay, at most
    bool ever_decided;
    bool draws_late;                    // and one that says whether a loop goes on
    enum sync_pace pace;                // of a long loop
    bool watches, is_long, recurs;      // the state of a long loop
    int64_t wanted;                     // rounds of it, before answers that end it are drawn
    bool stuck;                         // and cannot recur in the last replay
    struct bitset came;                 // what a replay came to
    struct bitset asked, dead;          // what none comes to, as far as asked; as in came
    VEC(const struct tir_inst *) loops; // whose rounds depend on the setting, or on data
};

// Are there questions that a seed from SYNC_DENIED on answers in ways that none before it did?
bool tir_plan_has_pairs(const struct sync_plan *s, uint32_t seed);

// plan_replay.c: one setting.
// The first CTA, or cluster, as if it went through all tiles of the grid.
void tir_plan_take_first_cta(struct sync_plan *s);
bool tir_plan_are_allowed(const struct sync_plan *s);
// May another setting be asked for and replayed?
bool tir_plan_has_left(struct sync_plan *s);
// Asks for a setting near to the present one. False: none was found.
bool tir_plan_steer(struct sync_plan *s, const struct sync_goal *goals, uint32_t count,
                    enum sync_answer *answer);
// Long enough for the roles to find their pace and for a ring to go round twice.
int64_t tir_plan_long_rounds(const struct sync_plan *s);
enum sync_outcome tir_plan_replay_once(struct sync_plan *s, uint32_t seed);
// So that a ring goes round twice in tiles of so many rounds, and one tile more where they are
// short.
uint32_t tir_plan_waves_of(const struct sync_plan *s, int64_t rounds);
// For the present arguments, or those next to them that the kernel's conditions allow.
enum sync_outcome tir_plan_replay(struct sync_plan *s, int64_t rounds);
// With one of `shares` of all work, beyond which it is given up: what was replayed counts.
enum sync_outcome tir_plan_with_share(struct sync_plan *s,
                                      enum sync_outcome run(struct sync_plan *), uint32_t shares,
                                      bool *too_much);
// For settings that were asked for, which may ask for too much.
enum sync_outcome tir_plan_replay_steered(struct sync_plan *s);
// Loops get `rounds` rounds, those around them `waves`, and all else room for several tiles.
void tir_plan_set_args(struct sync_plan *s, int64_t rounds, int64_t waves);
// Whether so many rounds are worth a replay: of a ring that fills, that has just been full, and
// that is about to go round for the second time.
bool tir_plan_counts(const struct sync_plan *s, int64_t rounds);

// plan_loops.c: how often loops run.
uint32_t tir_plan_most_rounds(const struct sync_plan *s, const struct tir_inst *loop);
// Can a loop run so often, or more, for all that is known? It is asked for more rounds than before.
bool tir_plan_may_run(const struct sync_plan *s, const struct tir_inst *loop, int64_t rounds);
// The inner loops run so often, or more; goals that come with another one.
uint32_t tir_plan_long_goals(const struct sync_plan *s, int64_t rounds, struct sync_goal *goals);
// So many that a ring is full and goes round.
int64_t tir_plan_needed_rounds(const struct sync_plan *s);
// May a loop run in another round of the one around it, and has it not?
bool tir_plan_may_run_again(struct sync_plan *s, const struct tir_inst *loop);
// Inner loops that have not run each number of rounds up to `most`.
enum sync_outcome tir_plan_replay_short(struct sync_plan *s, int64_t most);
// Long loops, until their state recurs.
enum sync_outcome tir_plan_replay_long(struct sync_plan *s);
// And longer ones, until remainders of counters, or the pace of the roles, repeat.
enum sync_outcome tir_plan_replay_cycle(struct sync_plan *s);
// Loops that can run a few rounds more, and not so many that their state recurs.
enum sync_outcome tir_plan_replay_last_rounds(struct sync_plan *s);
// Loops that have run too few rounds for a ring, to the most that they can.
enum sync_outcome tir_plan_replay_few(struct sync_plan *s);
// Loops in two rounds of the one around them.
enum sync_outcome tir_plan_replay_nested(struct sync_plan *s);

// plan_steer.c: one thing at a time that was left out.
// CTAs that are not the first, of small grids and of the one that there is.
enum sync_outcome tir_plan_replay_ctas(struct sync_plan *s);
// Blocks, and ways of comparisons, that no replay has come to; `again`: none with long loops.
enum sync_outcome tir_plan_replay_blocks(struct sync_plan *s, bool again);
// Accesses that have been outside of their buffers.
enum sync_outcome tir_plan_replay_places(struct sync_plan *s);
// Is it in such a set as sync_program.came?
bool tir_plan_came(const struct bitset *set, const struct tir_inst *branch, uint32_t block);
bool tir_plan_is_choice(const struct sync_plan *s, const struct tir_inst *inst);
// Does a setting, or data, decide about the branch? Without that all there is has been replayed.
bool tir_plan_is_open(const struct sync_plan *s, const struct tir_inst *branch);
// Whether what contains inst has been come to.
bool tir_plan_is_reached(const struct sync_plan *s, const struct tir_inst *inst);
// Whether nothing can ever come to a block of an if, or make a comparison so.
bool tir_plan_is_dead(struct sync_plan *s, const struct tir_inst *inst, uint32_t block);
// Do arguments, or which CTA it is, decide where in buffers on the chip inst reads or writes?
bool tir_plan_is_placed(const struct sync_plan *s, const struct tir_inst *inst);

// plan_slots.c: each of a few slots, mbarriers, phases and CTAs that arguments choose.
enum sync_outcome tir_plan_replay_slots(struct sync_plan *s);

// plan_meet.c
enum sync_outcome tir_plan_replay_meetings(struct sync_plan *s);

// plan_names.c
// Adds what no replay has come to to the unchecked parts.
void tir_plan_name_unchecked(struct sync_plan *s);

#endif
