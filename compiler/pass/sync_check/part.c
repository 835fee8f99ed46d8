// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on parts of buffers, as the text names them: views of views, and slices of those.
//
//     let rows = view(buf[n, 0:+64, 0:+64]);
//     store(rows[m:+16, 0:+64], x);          // of buf: n, then m, then 0; 1 x 16 x 64 elements

#include "pass/sync_check/sync_check.h"

struct dims { // of the root, for each of a view's
    uint8_t of[TIR_MAX_RANK];
    uint32_t rank;
};

static void take_slice(struct sync_part *part, struct dims *dims, const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    const uint32_t rank = dims->rank;
    dims->rank = 0;
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t to = dims->of[d];
        if (box->list[d] < 0) { // by an index tile
            part->size[to] = -1;
        } else if (part->count[to] == SYNC_VIEWS) {
            part->vague = true;
        } else {
            part->at[to][part->count[to]++] = tir_ref_indices(inst)[d];
            part->size[to] = TIR_MAX(box->list[d], 1);
        }
        if (box->list[d])
            dims->of[dims->rank++] = (uint8_t)to;
    }
}

static void take_view(struct sync_part *part, struct dims *dims, const struct tir_inst *view)
{
    struct dims before = *dims;
    const struct tir_attr *order = tir_attr_find(view, TIR_ATTR_permutation);
    if (part->vague)
        return;
    if (view->op == TIR_OP_VIEW)
        take_slice(part, dims, view);
    else if (view->op == TIR_OP_RESHAPE)
        part->vague = true;
    for (uint32_t d = 0; view->op == TIR_OP_PERMUTE && d < dims->rank; d++)
        dims->of[d] = before.of[order->list[d]];
}

// What a buffer is a part of; NULL: it is one of its own.
static const struct tir_value *around(const struct tir_value *buffer)
{
    const struct tir_inst *def = buffer->kind == TIR_VALUE_RESULT ? buffer->def : NULL;
    return !def ? NULL : def->op == TIR_OP_REMOTE ? def->operands[0] : tir_viewed(def);
}

// One of several, as a branch or a loop decides?
static bool is_one_of(const struct tir_value *buffer)
{
    return buffer->kind == TIR_VALUE_RESULT ? buffer->def->region_count > 0
                                            : buffer->block->owner != NULL;
}

struct sync_part tir_sync_part_of(const struct sync_spot *spot)
{
    const struct tir_inst *views[SYNC_VIEWS];
    struct sync_part part = {.root = spot->buffer};
    struct dims dims = {.rank = 0};
    uint32_t count = 0;
    for (const struct tir_value *of; (of = around(part.root)); part.root = of)
        if (count < SYNC_VIEWS)
            views[count++] = part.root->def;
        else
            part.vague = true;
    part.vague |= is_one_of(part.root);
    const struct tir_type *t = part.root->type;
    for (; dims.rank < t->rank; dims.rank++) {
        part.size[dims.rank] = t->space == TIR_SPACE_GLOBAL ? -1 : t->shape[dims.rank];
        dims.of[dims.rank] = (uint8_t)dims.rank;
    }
    while (count)
        take_view(&part, &dims, views[--count]);
    if (spot->sliced && !part.vague)
        take_slice(&part, &dims, spot->by);
    return part;
}

// Replays go through CTAs and tiles, and through numbers of rounds, whatever these decide: what
// moves a part is an argument that decides about no loop.
struct walk {
    const struct sync_program *p;
    struct bitset seen;
    VEC(const struct tir_value *) work;
    bool moves, by_data;
};

static void follow(struct walk *w, const struct tir_value *v)
{
    if (v && v->kind != TIR_VALUE_CONST && bitset_insert(&w->seen, v->id))
        vec_push(w->p->cx->scratch, &w->work, v);
}

// What a loop carries: what it is at first, and after a round. How many rounds there are is what
// replays differ by.
static void follow_carried(struct walk *w, const struct tir_inst *loop, uint32_t i)
{
    const uint32_t before = loop->op == TIR_OP_FOR ? TIR_FOR_INIT
                            : loop->op == TIR_OP_TILES
                                ? tir_attr_find(loop, TIR_ATTR_by)->list_count
                                : 0;
    follow(w, loop->operands[before + i]);
    follow(w, tir_yield_of(loop->regions[loop->op == TIR_OP_WHILE])->operands[i]);
}

static void follow_argument(struct walk *w, const struct tir_value *v)
{
    const struct tir_inst *owner = v->block->owner;
    const uint32_t lead = !owner || owner->op == TIR_OP_WHILE ? 0
                          : owner->op == TIR_OP_FOR           ? 1
                          : owner->op == TIR_OP_TILES
                              ? tir_attr_find(owner, TIR_ATTR_by)->list_count
                              : UINT32_MAX;
    if (lead == UINT32_MAX) {
        w->by_data = true;
    } else if (owner && v->index >= lead) {
        follow_carried(w, owner, v->index - lead);
    } else if (owner && owner->op == TIR_OP_FOR) {
        follow(w, owner->operands[TIR_FOR_BEGIN]);
        follow(w, owner->operands[TIR_FOR_STEP]);
    } else if (!owner) {
        w->moves |= !w->p->args[v->index].loops && !w->p->args[v->index].outer;
    }
}

static void follow_result(struct walk *w, const struct tir_value *v)
{
    const struct tir_inst *inst = v->def;
    if (inst->op == TIR_OP_IF) {
        follow(w, inst->operands[0]);
        follow(w, tir_yield_of(inst->regions[0])->operands[v->index]);
        follow(w, tir_yield_of(inst->regions[1])->operands[v->index]);
    } else if (tir_carries(inst)) {
        follow_carried(w, inst, v->index);
    } else if (inst->region_count || bitset_has(&w->p->open_to_data, v->id) || tir_has_tile(inst)) {
        w->by_data = true;
    } else {
        for (uint32_t i = 0; i < inst->operand_count; i++)
            follow(w, inst->operands[i]);
    }
}

bool tir_sync_is_moved(const struct sync_program *p, const struct sync_part *part)
{
    struct walk w = {.p = p, .seen = bitset_new(p->cx->scratch, p->f->value_count)};
    for (uint32_t d = 0; d < part->root->type->rank; d++)
        for (uint32_t i = 0; i < part->count[d]; i++)
            follow(&w, part->at[d][i]);
    while (w.work.len && !w.by_data) {
        const struct tir_value *v = w.work.at[--w.work.len];
        if (v->kind == TIR_VALUE_ARG)
            follow_argument(&w, v);
        else
            follow_result(&w, v);
    }
    return w.moves && !w.by_data;
}

// A number, whatever the arguments?
static bool is_stated(const struct sync_part *part, uint32_t d, int64_t *begin)
{
    *begin = 0;
    for (uint32_t i = 0; i < part->count[d]; i++) {
        if (part->at[d][i]->kind != TIR_VALUE_CONST)
            return false;
        *begin += part->at[d][i]->constant.i;
    }
    return true;
}

bool tir_sync_may_shift(const struct sync_part *x, const struct sync_part *y, uint32_t d)
{
    int64_t of_x, of_y;
    return !(is_stated(x, d, &of_x) && is_stated(y, d, &of_y)) && x->size[d] >= 0 &&
           y->size[d] >= 0 && (x->size[d] > 1 || y->size[d] > 1);
}

bool tir_sync_may_share(const struct sync_part *x, const struct sync_part *y)
{
    int64_t of_x, of_y;
    if (x->vague || y->vague)
        return true;
    if (x->root != y->root)
        return false;
    for (uint32_t d = 0; d < x->root->type->rank; d++)
        if (x->size[d] >= 0 && y->size[d] >= 0 && is_stated(x, d, &of_x) &&
            is_stated(y, d, &of_y) && (of_x + x->size[d] <= of_y || of_y + y->size[d] <= of_x))
            return false;
    return true;
}
