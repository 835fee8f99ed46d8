// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on stores to tensors by several CTAs of an explicit grid. Their order is not replayed.
// Where a store goes, and whether it is reached, has to be decided by the number of a CTA, or of a
// cluster and of a CTA in it; else several CTAs along an axis store to one place.
//
//     kernel k(...) grid(M / 64, N / 64) cluster(2)
//         Y[cta_id() * 64:+64, 0:+64] = x;     // the CTAs along axis 1 do
//         Z[cluster_id(), 0:+64] = y;          // and so do the two of a cluster
//
// Where it does, two CTAs of other clusters are asked for, whose stores have an element in common.
//
//     X[16 * cta_id():+32] = z;                // two next to each other do
//
// What data decides is left to the program: the CTA that comes last adds up what others left.
// Stores with a barrier of the grid between them, in the text, are not compared. Of CTAs of one
// cluster the order is replayed (global.c).

#include "pass/sync_check/sync_check.h"

enum { CLUSTERS = 1, CTAS_OF_ONE = 2, ALL = CLUSTERS | CTAS_OF_ONE };

enum { MOST_ASKED = 128, MOST_UNSOLVED = 4 }; // questions about two stores

// What of an axis it tells apart; all, if it is data.
static uint32_t told_apart(const struct tir_inst *inst, uint32_t axis)
{
    switch (inst->op) {
    case TIR_OP_CTA_ID:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis ? ALL : 0;
    case TIR_OP_CLUSTER_ID:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis ? CLUSTERS : 0;
    case TIR_OP_CTA_IN_CLUSTER:
        return tir_attr_int(inst, TIR_ATTR_axis, 0) == (int64_t)axis ? CTAS_OF_ONE : 0;
    case TIR_OP_CTA_RANK:
        return CTAS_OF_ONE;
    case TIR_OP_LOAD:
    case TIR_OP_ATOMIC:
    case TIR_OP_FIRST_CTAID:
    case TIR_OP_IS_CANCELED:
    case TIR_OP_PTX:
        return ALL;
    default:
        return 0;
    }
}

// The values that say where and whether it loads or stores.
static struct bitset deciding(struct sync_program *p, const struct tir_inst *store)
{
    VEC(struct tir_value *) values = {0};
    struct tir_arena *arena = p->cx->scratch;
    uint32_t count;
    for (uint32_t d = 0; d < tir_ref_base(store)->type->rank; d++)
        vec_push(arena, &values, tir_ref_indices(store)[d]);
    if (store->op == TIR_OP_STORE && store->operands[TIR_STORE_MASK])
        vec_push(arena, &values, store->operands[TIR_STORE_MASK]);
    for (const struct tir_inst *up = store->block->owner; up; up = up->block->owner) {
        struct tir_value *const *bounds = tir_sync_bounds_of(up, &count);
        for (uint32_t i = 0; i < count; i++)
            vec_push(arena, &values, bounds[i]);
    }
    return tir_sync_slice(p, values.at, values.len);
}

// What of an axis there is more than one of, for all that the kernel's conditions say.
static uint32_t several(const struct sync_program *p, uint32_t axis)
{
    int64_t least, most;
    const int64_t of_one = TIR_MAX(p->f->cluster[axis], 1);
    tir_range_get(p->ranges, tir_yield_of(p->f->host)->operands[axis], &least, &most);
    return (most <= of_one ? 0 : CLUSTERS) | (of_one > 1 ? CTAS_OF_ONE : 0);
}

bool tir_sync_is_alone(const struct sync_program *p)
{
    uint32_t any = 0;
    for (uint32_t axis = 0; axis < p->f->grid_count; axis++)
        any |= several(p, axis);
    return p->f->grid_count && !any;
}

static bool keeps_apart(struct sync_program *p, const struct bitset *slice, uint32_t axis)
{
    uint32_t apart = ~several(p, axis);
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (bitset_has(slice, inst->results[i]->id))
                apart |= told_apart(inst, axis);
    return (apart & ALL) == ALL;
}

static bool stores(const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_STORE ||
            (inst->op == TIR_OP_STORE_ASYNC && !tir_attr_find(inst, TIR_ATTR_kind))) &&
           tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
}

void tir_sync_find_stores_of_all(struct sync_program *p)
{
    p->stored_by_all = bitset_new(p->cx->scratch, p->f->inst_count);
    tir_foreach_inst(inst, p->f) {
        if (!stores(inst))
            continue;
        const struct bitset slice = deciding(p, inst);
        for (uint32_t axis = 0; axis < p->f->grid_count; axis++) {
            if (keeps_apart(p, &slice, axis))
                continue;
            bitset_insert(&p->stored_by_all, inst->id);
            tir_sync_unchecked(p, inst,
                               tir_str_format(p->cx->scratch,
                                              "the order of CTAs: several along axis %u store here",
                                              axis)
                                   .ptr);
            break;
        }
    }
}

// Two that share a part.

static bool is_by_data(struct sync_program *p, const struct tir_inst *store)
{
    const struct bitset slice = deciding(p, store);
    tir_foreach_inst(inst, p->f)
        for (uint32_t i = 0; i < inst->result_count; i++)
            if (bitset_has(&slice, inst->results[i]->id) && told_apart(inst, UINT32_MAX) == ALL)
                return true;
    return false;
}

// Do arguments, or what else replays do not go through, decide about an access?
static bool is_open(struct sync_program *p, const struct tir_inst *access)
{
    const struct tir_block *body = p->f->body;
    const struct bitset slice = deciding(p, access);
    bool open = is_by_data(p, access);
    for (uint32_t i = 0; i < body->arg_count; i++)
        open |= bitset_has(&slice, body->args[i]->id);
    return open;
}

// Is there one cluster, of which replays have all CTAs, and the same is done to the tensor in each?
bool tir_sync_has_one_cluster(struct sync_program *p, const struct tir_value *tensor)
{
    if (!p->has_peers)
        return false;
    for (uint32_t axis = 0; axis < p->f->grid_count; axis++)
        if (several(p, axis) & CLUSTERS)
            return false;
    tir_foreach_inst(inst, p->f)
        if (tir_ops[inst->op].has_ref && tir_ref_base(inst) == tensor && is_open(p, inst))
            return false;
    return true;
}

bool tir_sync_meets_grid(const struct tir_inst *loop)
{
    tir_foreach_inst_within(inst, loop)
        if (inst->op == TIR_OP_GRID_SYNC)
            return true;
    return false;
}

// Loops of which the program does not say which CTA has which round, or in which round all meet.
static bool is_left_out(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES || (inst->op == TIR_OP_WHILE && tir_sync_meets_grid(inst)))
            return true;
    return !f->grid_count;
}

struct store_pairs {
    struct sync_program *p;
    const struct sync_setting *near;
    VEC(struct sync_spot) found;
    VEC(uint32_t) phases; // of each: barriers of the grid before it, in the text
    uint32_t asked, unsolved;
};

static bool is_left(const struct store_pairs *m)
{
    return m->asked < MOST_ASKED && m->unsolved < MOST_UNSOLVED;
}

// Does y store to a place of x, in a cluster further on along some axis?
static bool may_share(struct store_pairs *m, const struct sync_spot *x, const struct sync_spot *y)
{
    struct sync_program *p = m->p;
    struct sync_setting setting = *m->near;
    struct sync_goal goal = {.kind = SYNC_TOUCH, .spots = {x, y}, .by_two = true};
    for (; goal.axis < p->f->grid_count && is_left(m); goal.axis++) {
        if (!(several(p, goal.axis) & CLUSTERS))
            continue;
        setting.args = tir_arena_copy(p->cx->scratch, m->near->args,
                                      (p->f->body->arg_count + 1) * sizeof *setting.args);
        const enum sync_answer answer = tir_sync_ask(p, &goal, 1, &setting);
        m->asked++;
        m->unsolved += answer == SYNC_UNSOLVED;
        if (answer == SYNC_SOLVED)
            return true;
    }
    return false;
}

static bool has_mask(const struct sync_spot *x)
{
    return x->by->op == TIR_OP_STORE && x->by->operands[TIR_STORE_MASK];
}

// Which elements a mask lets pass is not asked.
static void note(struct store_pairs *m, const struct sync_spot *x, const struct sync_spot *y)
{
    const char *masks = has_mask(x) || has_mask(y) ? ", unless masks keep them apart" : "";
    tir_sync_unchecked(m->p, y->by,
                       tir_str_format(m->p->cx->scratch,
                                      "the order of CTAs: two store to one place, the other one by "
                                      "%s of line %u%s",
                                      tir_ops[x->by->op].name, tir_sync_line(m->p, x->by), masks)
                           .ptr);
}

static void find_stores(struct store_pairs *m)
{
    struct sync_program *p = m->p;
    uint32_t phase = 0;
    tir_foreach_inst(inst, p->f) {
        struct sync_spot spot = {.by = inst, .access = SYNC_WRITE, .sliced = true};
        phase += inst->op == TIR_OP_GRID_SYNC;
        if (!stores(inst) || is_by_data(p, inst))
            continue;
        spot.buffer = tir_ref_base(inst);
        const struct sync_part part = tir_sync_part_of(&spot);
        spot.part = tir_arena_copy(p->cx->scratch, &part, sizeof part);
        vec_push(p->cx->scratch, &m->found, spot);
        vec_push(p->cx->scratch, &m->phases, phase);
    }
}

void tir_sync_ask_for_ctas(struct sync_program *p, const struct sync_setting *near)
{
    struct store_pairs m = {.p = p, .near = near};
    if (is_left_out(p->f))
        return;
    find_stores(&m);
    for (uint32_t i = 0; i < m.found.len; i++)
        for (uint32_t k = i + 1; k-- > 0 && m.phases.at[k] == m.phases.at[i] && is_left(&m);) {
            const struct sync_spot *x = &m.found.at[k], *y = &m.found.at[i];
            const bool is_said = x == y && bitset_has(&p->stored_by_all, x->by->id);
            if (is_said || !tir_sync_may_share(x->part, y->part))
                continue;
            if (may_share(&m, x, y) || (x != y && may_share(&m, y, x))) {
                note(&m, x, y);
                break;
            }
        }
    if (m.asked >= MOST_ASKED)
        tir_sync_unchecked_at(p, p->f->span,
                              STR("the order of CTAs in more stores than are asked for"));
}
