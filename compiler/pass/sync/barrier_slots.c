// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers of which each round of a loop uses another slot: what two accesses that are some rounds
// apart need nothing for.

#include "ir/walk.h"
#include "pass/sync/barrier.h"
#include "pass/sync/shared.h"
#include "pass/sync/slot.h"

// The view that takes a part of the whole buffer; NULL: there is none.
static const struct tir_inst *first_view(const struct tir_value *buffer)
{
    const struct tir_inst *first = NULL;
    for (const struct tir_value *v = buffer; v->def && v->def->op != TIR_OP_ALLOC;
         v = v->def->op == TIR_OP_VIEW ? tir_ref_base(v->def) : v->def->operands[0]) {
        if (v->def->op != TIR_OP_VIEW && v->def->op != TIR_OP_PERMUTE)
            return NULL;
        first = v->def;
    }
    return first && first->op == TIR_OP_VIEW ? first : NULL;
}

static uint32_t carried_index(const struct tir_inst *loop, const struct tir_value *arg)
{
    return arg->index - (loop->regions[0]->arg_count - loop->result_count);
}

static bool is_carried(const struct tir_value *v)
{
    const struct tir_inst *loop = v->def || !v->block ? NULL : v->block->owner;
    return loop && (loop->op == TIR_OP_FOR || loop->op == TIR_OP_TILES) &&
           v->index >= loop->regions[0]->arg_count - loop->result_count;
}

// Does the loop, where it runs again, go on with value i as it left it?
static bool goes_on(const struct tir_inst *loop, uint32_t i)
{
    for (;;) {
        const struct tir_inst *outer = loop->block->owner;
        if (!outer || outer->op == TIR_OP_ROLE)
            return true;
        const struct tir_value *init = loop->operands[tir_carried_at(loop) + i];
        if (!is_carried(init) || init->block->owner != outer)
            return false;
        const uint32_t of_outer = carried_index(outer, init);
        if (tir_yield_of(outer->regions[0])->operands[of_outer] != loop->results[i])
            return false;
        loop = outer;
        i = of_outer;
    }
}

void tir_barrier_find_slot(struct range *r, const struct tir_value *buffer)
{
    const struct tir_inst *view = first_view(buffer);
    if (!view || tir_attr_find(view, TIR_ATTR_box)->list[0] || view->operands[1]->def ||
        !is_carried(view->operands[1]))
        return;
    const struct tir_value *slot = view->operands[1];
    const struct tir_inst *loop = slot->block->owner;
    const uint32_t i = carried_index(loop, slot);
    const int64_t slots = r->root->type->shape[0];
    if (slots > 1 && slots <= UINT8_MAX && tir_is_inside(r->by, loop) &&
        tir_slot_is_next(tir_yield_of(loop->regions[0])->operands[i], slot, slots)) {
        r->stepper = loop;
        r->stays = goes_on(loop, i);
    }
}

void tir_barrier_stepped(struct state *s, const struct tir_inst *loop)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->stepper == loop && p->rounds < p->root->type->shape[0])
            p->rounds++;
}

void tir_barrier_left(struct state *s, const struct tir_inst *loop)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->stepper == loop && !p->stays)
            p->stepper = NULL;
}

bool tir_barrier_other_slot(const struct range *p, const struct range *r)
{
    return p->stepper && p->stepper == r->stepper && p->root == r->root &&
           p->rounds % p->root->type->shape[0];
}
