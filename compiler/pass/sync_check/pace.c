// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on agents that never wait for each other, such as a role that sums up in its loop what
// it loads for itself while others copy and multiply. One gets further and further ahead of the
// other, and the state never recurs. But one schedule shows the races of all: the replay may hold
// the one ahead.

#include "pass/sync_check/sync_check.h"

// The loop number `loop` that the agent is in, from outside, of those whose rounds depend on the
// setting; NULL: it is in fewer.
static const struct sync_frame *loop_of(const struct sync_run *r, const struct sync_agent *a,
                                        uint32_t loop)
{
    for (uint32_t i = 0; i < a->depth; i++) {
        const struct tir_inst *owner = a->frames[i].owner;
        if (owner && tir_is_loop(owner) && bitset_has(&r->p->data_loops, owner->id) && !loop--)
            return &a->frames[i];
    }
    return NULL;
}

// How far one agent is ahead of another in its loop, in rounds.
static int64_t lead_of(const struct sync_frame *ahead, const struct sync_frame *behind)
{
    const int64_t step = TIR_MAX(ahead->step, behind->step);
    return ahead->step && behind->step ? (ahead->at - behind->at) / step
                                       : (int64_t)ahead->round - behind->round;
}

bool tir_sync_is_ahead(const struct sync_run *r, const struct sync_agent *a, int64_t most)
{
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_agent *b = &r->agents[i];
        const struct sync_frame *mine, *other;
        int64_t lead = 0;
        uint32_t loop = 0;
        for (; !lead && (mine = loop_of(r, a, loop)) && (other = loop_of(r, b, loop)); loop++)
            lead = lead_of(mine, other);
        if (lead > (loop_of(r, a, loop) && loop_of(r, b, loop) ? 0 : most))
            return true;
    }
    return false;
}
