// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Settings: the arguments, CTAs and data with which sync_check replays a kernel, and what is wished
// of them.
#ifndef TIR_PASS_SYNC_CHECK_SETTING_H
#define TIR_PASS_SYNC_CHECK_SETTING_H

#include "pass/sync_check/program.h"
#include "pass/sync_check/solve.h"

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

// ask.c: a setting near the present one that meets all goals.
enum sync_goal_kind {
    SYNC_ROUNDS,         // the loop runs `number` rounds
    SYNC_ROUNDS_OR_MORE, // at some time
    SYNC_BLOCK,          // an if takes the block of that number; a comparison is true (0) or false
    SYNC_CHOICE,         // it would, if the replay reached it
    SYNC_PLACE,          // what the instruction names of a buffer is in the buffer
    SYNC_MEET,           // two threads touch one element, by `spots`
    SYNC_TOUCH,          // the same, of spots of which one is more than single elements
    SYNC_SLOT,           // in the first rounds, where spots[0] is, `value` is `number`, or, without
                         // one, spots[0] begins there along dimension `axis`
    SYNC_CTA,            // the CTA has this number along the axis
    SYNC_GRID            // the grid has so many CTAs
};

enum sync_meeting { // of two warps, or of one; the first thread has the lower number, or the other
    SYNC_MEET_UP,
    SYNC_MEET_DOWN,
    SYNC_MEET_UP_IN_A_WARP,
    SYNC_MEET_DOWN_IN_A_WARP,
    SYNC_MEETINGS
};

struct sync_goal {
    enum sync_goal_kind kind;
    const struct tir_inst *inst;
    uint32_t axis;
    int64_t number;
    struct tir_value *value;
    bool goes_on; // ROUNDS_OR_MORE, BLOCK: and the loops around it run another round
    const struct tir_inst *again; // ROUNDS_OR_MORE: and so in a later round of this for; or NULL.
                                  // MEET, TOUCH: the second spot in a later round of it
    bool by_two; // TOUCH: the second spot in a cluster, or a CTA, further on along the axis
    // MEET, by threads as `number` says (enum sync_meeting); TOUCH: 1 + 2 * d or 2 + 2 * d, and the
    // first one begins behind the other along dimension d, or before it.
    const struct sync_spot *spots[2]; // SLOT has one
};

enum sync_answer tir_sync_ask(struct sync_program *p, const struct sync_goal *goals, uint32_t count,
                              struct sync_setting *setting);
// The slices of buffers on the chip that inst names, and that its buffers are.
enum { SYNC_SLICES = 8 };
uint32_t tir_sync_slices(const struct tir_inst *inst, const struct tir_inst *out[SYNC_SLICES]);
// Whether no setting at all meets a goal.
bool tir_sync_is_never(struct sync_program *p, const struct sync_goal *goal,
                       const struct sync_setting *near);

#endif
