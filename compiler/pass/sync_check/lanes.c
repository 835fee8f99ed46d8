// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on divergent lanes: which of them run a block, the values after it, and where they
// converge.
//
// If some lanes of a warp take one block of an if and the rest the other, the frames of the first
// lie on those of the second, which run later:
//
//     kernel | else: lanes 16-31 | then: lanes 0-15 | for ...
//
// A warp_sync in one of them waits for the lanes of the other, so the two change places; when all
// 32 lanes have reached it, they go on.

#include "pass/sync_check/sync_check.h"

static uint32_t bits_of(uint32_t m)
{
    uint32_t n = 0;
    for (; m; m &= m - 1)
        n++;
    return n;
}

void tir_sync_split_agent(struct sync_run *r, const struct sync_agent *a, uint32_t w)
{
    struct sync_program *p = r->p;
    uint32_t i = p->class_count;
    if (i + 1 > SYNC_CLASSES) {
        tir_sync_give_up(r, "warps that go different ways", SYNC_CLASSES);
        return;
    }
    p->class_count++;
    for (; p->class_first[i] > a->first_warp + w; i--)
        p->class_first[i + 1] = p->class_first[i];
    p->class_first[i + 1] = a->first_warp + w;
    r->outcome = SYNC_AGAIN;
}

// All warps of an agent must have the same number of lanes in a block. False: the agent was split.
static bool is_uniform(struct sync_run *r, const struct sync_agent *a, const uint32_t *mask)
{
    for (uint32_t w = 1; w < a->warps; w++)
        if (bits_of(mask[w]) != bits_of(mask[w - 1])) {
            tir_sync_split_agent(r, a, w);
            return false;
        }
    return true;
}

struct sync_lanes tir_sync_lanes_where(struct sync_run *r, struct sync_agent *a,
                                       const struct sync_lanes *within, const int64_t *each,
                                       bool wanted)
{
    uint32_t *mask = arena_array(r->arena, uint32_t, a->warps);
    bool all = true;
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++)
        if ((each[i] != 0) == wanted)
            mask[i / SYNC_LANES] |= UINT32_C(1) << i % SYNC_LANES;
    for (uint32_t w = 0; w < a->warps; w++) {
        uint32_t outer = within->mask ? within->mask[w] : UINT32_MAX;
        mask[w] &= outer;
        all &= mask[w] == outer;
    }
    struct sync_lanes out = *within;
    if (all || r->outcome != SYNC_GOING || !is_uniform(r, a, mask))
        return out;
    out.mask = mask;
    out.count = bits_of(mask[0]);
    out.thread = 0;
    return out;
}

void tir_sync_name_lanes(struct sync_run *r, struct sync_agent *a, struct sync_lanes *lanes,
                         bool elected)
{
    if (lanes->mask && lanes->count && !lanes->thread)
        lanes->thread = tir_sync_thread(r, a, lanes->mask, elected && lanes->count == 1);
}

// Conditions that do not change are met again and again.
const struct sync_split *tir_sync_split(struct sync_run *r, struct sync_agent *a,
                                        const struct sync_lanes *within,
                                        const struct sync_value *cond)
{
    for (uint32_t i = 0; i < TIR_MIN(a->split_count, (uint32_t)SYNC_SPLITS); i++)
        if (a->splits[i].each == cond->each && a->splits[i].within == within->mask &&
            a->splits[i].yes.data == within->data)
            return &a->splits[i];
    struct sync_split *split = &a->splits[a->split_count++ % SYNC_SPLITS];
    split->each = cond->each;
    split->within = within->mask;
    split->no = tir_sync_lanes_where(r, a, within, cond->each, false);
    split->yes = tir_sync_lanes_where(r, a, within, cond->each, true);
    tir_sync_name_lanes(r, a, &split->no, false);
    tir_sync_name_lanes(r, a, &split->yes, cond->elected);
    return split;
}

static bool is_number(const struct sync_value *v)
{
    return v->kind == SYNC_INT || v->kind == SYNC_EACH;
}

struct sync_value tir_sync_merged(struct sync_run *r, const struct sync_agent *a,
                                  const struct sync_lanes *lanes, struct sync_value first,
                                  struct sync_value second)
{
    if (!is_number(&first) || !is_number(&second) || !lanes->mask) {
        struct sync_value x = is_number(&second) && first.kind != SYNC_UNSET ? first : second;
        if (x.kind == SYNC_SYMBOL && lanes->mask && first.kind != SYNC_UNSET) {
            x.varies = TIR_MAX(x.varies, SYNC_EVERY_LANE);
            x.times = 0;
        }
        return x;
    }
    int64_t *each = arena_array(r->arena, int64_t, a->warps * SYNC_LANES);
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++) {
        const struct sync_value *v =
            lanes->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1 ? &second : &first;
        each[i] = v->kind == SYNC_EACH ? v->each[i] : v->number;
    }
    return tir_sync_each(a, each);
}

// Is it of the thread alone: what others neither wait for nor see in an order?
static bool is_of_thread(const struct sync_program *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count && inst->op == TIR_OP_IF; i++)
        if (bitset_has(&p->needed, inst->results[i]->id))
            return false;
    switch (inst->op) {
    case TIR_OP_IF:
    case TIR_OP_YIELD:
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ASSUME:
    case TIR_OP_ASSERT:
    case TIR_OP_PRINT:
        return true;
    case TIR_OP_ATOMIC:
        return tir_attr_word(inst, TIR_ATTR_ordering, TIR_WORD_ordering_relaxed) ==
               TIR_WORD_ordering_relaxed;
    default:
        return tir_has_trait(inst, TIR_PURE) && !tir_has_trait(inst, TIR_SYNC);
    }
}

bool tir_sync_is_apart(const struct sync_program *p, const struct tir_inst *inst,
                       const struct sync_value *cond)
{
    if (inst->op != TIR_OP_IF || cond->kind != SYNC_SYMBOL || cond->varies < SYNC_EVERY_LANE)
        return false;
    tir_foreach_inst_within(in, inst)
        if (!is_of_thread(p, in))
            return false;
    return true;
}

bool tir_sync_equal_among(const struct sync_agent *a, const uint32_t *mask,
                          const struct sync_value *v, int64_t *number)
{
    bool any = false;
    *number = v->number;
    if (v->kind != SYNC_EACH)
        return v->kind == SYNC_INT;
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++) {
        if (mask && !(mask[i / SYNC_LANES] >> i % SYNC_LANES & 1))
            continue;
        if (any && v->each[i] != *number)
            return false;
        *number = v->each[i];
        any = true;
    }
    return any;
}

// Meeting again.

// Puts the frames from `at` on below those that they lie on: of the if's two blocks the other runs.
static void change_places(struct sync_agent *a, uint32_t at)
{
    struct sync_frame frames[SYNC_DEPTH];
    uint32_t below = a->frames[at].lies_on, low = at - below, above = a->depth - at;
    memcpy(frames, a->frames + low, (below + above) * sizeof *frames);
    memcpy(a->frames + low, frames + below, above * sizeof *frames);
    memcpy(a->frames + low + above, frames, below * sizeof *frames);
    a->frames[low].lies_on = 0;
    a->frames[low + above].lies_on = above;
    // Whichever ends last merges.
    a->frames[low].merges = true;
    a->frames[low + above].merges = false;
}

// Do the lanes that stand at a warp_sync make up their warps?
static bool have_all_come(const struct sync_agent *a)
{
    for (uint32_t w = 0; w < a->warps; w++) {
        uint32_t lanes = 0;
        for (uint32_t i = 0; i < a->depth; i++)
            if (a->frames[i].stands)
                lanes |= a->frames[i].lanes.mask ? a->frames[i].lanes.mask[w] : UINT32_MAX;
        if (lanes != UINT32_MAX)
            return false;
    }
    return true;
}

void tir_sync_meet_lanes(struct sync_run *r, const struct sync_who *who,
                         const struct tir_inst *inst)
{
    struct sync_agent *a = who->agent;
    a->frames[a->depth - 1].stands = inst;
    bool known = who->spread != SYNC_EVERY_LANE;
    if (!known || !have_all_come(a)) {
        for (uint32_t i = a->depth; known && i-- > 0;)
            if (a->frames[i].lies_on && !a->frames[i - 1].stands) {
                change_places(a, i);
                return;
            }
        tir_sync_all_come(r, who, inst, SYNC_WARPS);
        return;
    }
    for (uint32_t i = 0; i < a->depth; i++)
        a->frames[i].stands = NULL;
    tir_sync_warp(r, a);
}

void tir_sync_check_left(struct sync_run *r, const struct sync_agent *a)
{
    const struct sync_frame *top = &a->frames[a->depth - 1];
    if (top->stands)
        tir_sync_fail(r, TIR_E_SYNC_BARRIER, top->stands, NULL, NULL,
                      "only some lanes of a warp come to %s", tir_ops[top->stands->op].name);
}
