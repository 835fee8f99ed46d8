// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on the kernel's arguments: which of them decide how often loops run, and by how much
// each goes (ceildiv(M, 128): M goes by 128).

#include "pass/sync_check/sync_check.h"

static const struct tir_value *without_casts(const struct tir_value *v)
{
    while (v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_CAST)
        v = v->def->operands[0];
    return v;
}

static bool is_argument(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_ARG && !v->block->owner;
}

// ceildiv(M, 128): M goes by 128.
static void find_granule(struct sync_program *p, const struct tir_inst *inst)
{
    int64_t by = 1;
    if ((inst->op != TIR_OP_CEILDIV && inst->op != TIR_OP_DIV) ||
        !tir_is_const_int(inst->operands[1], &by))
        return;
    const struct tir_value *v = without_casts(inst->operands[0]);
    if (is_argument(v))
        p->args[v->index].granule = TIR_MAX(p->args[v->index].granule, by);
}

// Notes that some values, which go by `step`, decide how often a loop runs. False: no setting
// does.
static bool use_args(struct sync_program *p, struct tir_value *const *of, uint32_t count,
                     int64_t step, bool *which)
{
    struct bitset found = tir_sync_slice(p, of, count);
    struct bitset scaling = tir_sync_scaling_slice(p, of, count);
    bool any = tir_sync_is_open(p, &found, false);
    for (uint32_t i = 0; i < p->f->body->arg_count; i++) {
        const struct tir_value *v = p->f->body->args[i];
        which[i] = tir_type_is_scalar(v->type) && bitset_has(&found, v->id);
        if (which[i] && bitset_has(&scaling, v->id))
            p->args[i].granule = TIR_MAX(p->args[i].granule, step);
    }
    return any;
}

// By how much a loop's counter goes: of a while the carried value that decides about its rounds and
// that each round changes, the one with the largest steps. 1: none is known.
static int64_t step_of(struct sync_program *p, const struct tir_inst *loop,
                       struct tir_value *const *bounds, uint32_t bound_count)
{
    int64_t most = 1;
    if (loop->op == TIR_OP_FOR)
        tir_is_const_int(loop->operands[TIR_FOR_STEP], &most);
    if (loop->op != TIR_OP_WHILE)
        return most;
    struct bitset deciding = tir_sync_slice(p, bounds, bound_count);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        struct sync_step step;
        if (!bitset_has(&deciding, loop->regions[0]->args[i]->id) ||
            !tir_sync_step(p, loop, i, &step))
            continue;
        if (step.has_low && step.low > -SYNC_MOST_STEP)
            most = TIR_MAX(most, -step.low);
        if (step.has_high && step.high < SYNC_MOST_STEP)
            most = TIR_MAX(most, step.high);
    }
    return most;
}

static bool has_loop(const struct sync_program *p, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->region_count; i++)
        for (const struct tir_inst *at = inst->regions[i]->first; at; at = at->next)
            if ((bitset_has(&p->data_loops, at->id) && !bitset_has(&p->fixed_loops, at->id)) ||
                has_loop(p, at))
                return true;
    return false;
}

static void find_args_of_loop(struct sync_program *p, const struct tir_inst *loop)
{
    uint32_t args = p->f->body->arg_count, count;
    bool *which = arena_array(p->cx->scratch, bool, args + 1);
    struct tir_value *const *bounds = tir_sync_bounds_of(loop, &count);
    bool fixed = tir_sync_has_fixed_rounds(loop);
    if (!use_args(p, bounds, count, fixed ? 1 : step_of(p, loop, bounds, count), which))
        return;
    p->has_data_loops = true;
    bitset_insert(&p->data_loops, loop->id);
    if (fixed) { // its counter counts, and the loop around it decides about rounds
        bitset_insert(&p->fixed_loops, loop->id);
        return;
    }
    bool outer = has_loop(p, loop);
    if (!outer)
        bitset_insert(&p->inner_loops, loop->id);
    for (uint32_t i = 0; i < args; i++) {
        p->args[i].loops |= which[i] && !outer;
        p->args[i].outer |= which[i] && outer;
    }
}

void tir_sync_find_args(struct sync_program *p)
{
    uint32_t args = p->f->body->arg_count, count;
    bool *which = arena_array(p->cx->scratch, bool, args + 1);
    VEC(const struct tir_inst *) loops = {0};
    p->args = tir_arena_alloc_array(p->cx->scratch, args, sizeof *p->args);
    tir_foreach_inst(inst, p->f) {
        if (tir_sync_is_place(inst) && bitset_has(&p->needed, inst->results[0]->id))
            p->axes |= 1u << tir_attr_int(inst, TIR_ATTR_axis, 0) % 3;
        if (!bitset_has(&p->visited, inst->id))
            continue;
        find_granule(p, inst);
        if (tir_is_loop(inst))
            vec_push(p->cx->scratch, &loops, inst);
        if (inst->op != TIR_OP_TILES)
            continue;
        struct tir_value *const *extents = tir_sync_bounds_of(inst, &count);
        for (uint32_t i = 0; i < count; i++)
            use_args(p, extents + i, 1, tir_attr_find(inst, TIR_ATTR_by)->list[i], which);
    }
    tir_sync_find_counts(p);
    while (loops.len) // those within before those around
        find_args_of_loop(p, vec_pop(&loops));
}
