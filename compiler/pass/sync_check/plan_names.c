// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's plan: what no replay has come to, in words.

#include "pass/sync_check/plan.h"

static void name_places(struct sync_plan *s)
{
    tir_foreach_inst(inst, s->p->f)
        if (!tir_plan_came(&s->p->came, inst, 0) && !bitset_has(&s->dead, 2 * inst->id) &&
            tir_plan_is_placed(s, inst) && tir_plan_is_reached(s, inst))
            tir_sync_unchecked_at(s->p, tir_sync_place(s->p, inst),
                                  STR("in no replay it is inside of its buffer"));
}

static void name_block(struct sync_plan *s, const struct tir_inst *inst, uint32_t block)
{
    const struct tir_inst *first = inst->regions[block]->first;
    bool empty = !first || first->op == TIR_OP_YIELD;
    tir_str text = empty ? STR("no replay goes by the block of this `if`")
                         : tir_str_format(s->p->f->module->arena,
                                          "no replay comes to this block of the `if` of line %u",
                                          tir_sync_line(s->p, inst));
    tir_sync_unchecked_at(s->p, tir_sync_place(s->p, empty ? inst : first), text);
}

static void name_blocks(struct sync_plan *s)
{
    tir_foreach_inst(inst, s->p->f) {
        if (inst->op != TIR_OP_IF || !tir_plan_is_choice(s, inst) || !tir_plan_is_reached(s, inst))
            continue;
        for (uint32_t k = 0; k < 2; k++)
            if (!tir_plan_came(&s->p->came, inst, k) && tir_plan_is_open(s, inst) &&
                !tir_plan_is_dead(s, inst, k))
                name_block(s, inst, k);
    }
}

static void name_loops(struct sync_plan *s)
{
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        uint32_t most = tir_plan_most_rounds(s, *loop);
        bool recurs = s->recurs && s->p->rounds[(*loop)->id].recurs;
        if (!tir_plan_is_reached(s, *loop))
            continue;
        if (most < tir_plan_needed_rounds(s) && !recurs && tir_plan_may_run(s, *loop, most + 1))
            tir_sync_unchecked_at(
                s->p, (*loop)->span,
                tir_str_format(s->p->f->module->arena,
                               "no replay runs this loop for more than %u round%s", most,
                               most == 1 ? "" : "s"));
        else if (tir_plan_may_run_again(s, *loop))
            tir_sync_unchecked_at(
                s->p, (*loop)->span,
                STR("no replay runs this loop in two rounds of the one around it"));
    }
}

// The numbers that a loop carries, is not only counted by, and that never came back.
static tir_str what_goes_on(const struct sync_plan *s, const struct tir_inst *loop)
{
    const struct tir_block *head = loop->regions[0]; // where its state is watched
    struct tir_text text;
    bool any = false;
    tir_text_init(&text, s->p->cx->scratch, 0);
    for (uint32_t i = 0; i < head->arg_count; i++) {
        const struct tir_value *v = head->args[i];
        if (!v->name || !bitset_has(&s->p->numbers, v->id) || bitset_has(&s->p->counters, v->id) ||
            bitset_has(&s->p->returned, v->id) || !bitset_has(&s->p->went_on, v->id))
            continue;
        tir_text_format(&text, "%s%s", any ? ", " : "; ", v->name);
        any = true;
    }
    if (any)
        tir_text_format(&text, " had no number twice");
    return tir_text_str(&text);
}

// Loops that can run more rounds than they did, with a state that is new in each.
static void name_long_loops(struct sync_plan *s)
{
    vec_foreach(const struct tir_inst *, loop, &s->loops) {
        uint32_t most = tir_plan_most_rounds(s, *loop);
        if (!bitset_has(&s->p->inner_loops, (*loop)->id) || !tir_plan_may_run(s, *loop, most + 1))
            continue;
        tir_sync_unchecked_at(s->p, (*loop)->span,
                              tir_str_format(s->p->f->module->arena,
                                             "more than %u rounds of this loop: no state was seen "
                                             "to recur" STR_FMT,
                                             most, STR_ARG(what_goes_on(s, *loop))));
    }
}

void tir_plan_name_unchecked(struct sync_plan *s)
{
    if (!s->p->replays) {
        tir_sync_unchecked_at(s->p, s->p->f->span,
                              s->p->given_up
                                  ? STR("the kernel takes more work than the limit")
                                  : STR("no arguments were found that its conditions allow"));
        return;
    }
    if (s->is_short)
        tir_sync_unchecked_at(
            s->p, s->p->f->span,
            STR("arguments decide about more, or about more work, than is replayed"));
    tir_plan_set_args(s, s->p->depth, 1);
    tir_sync_ask_for_ctas(s->p, &s->setting);
    name_blocks(s);
    name_places(s);
    name_loops(s);
    if (s->p->has_data_loops && !s->recurs)
        name_long_loops(s);
}
