// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on control flow. Branches and loops narrow the mask of running lanes for as long
// as their blocks run; a value they give is written only in the lanes that were running.

#include "interp/state.h"

static uint8_t *save_mask(struct interp *in)
{
    return tir_arena_copy(&in->scratch, in->active, in->lanes);
}

static void restore_mask(struct interp *in, const uint8_t *mask)
{
    in->active_count = 0;
    for (uint32_t i = 0; i < in->lanes; i++)
        in->active_count += in->active[i] = mask[i];
}

// Of the lanes in `mask`, those where cond is `wanted` run. False: none.
static bool narrow_mask(struct interp *in, const uint8_t *mask, const union tir_number *cond,
                        bool wanted)
{
    in->active_count = 0;
    for (uint32_t i = 0; i < in->lanes; i++)
        in->active_count += in->active[i] = mask[i] && !!cond[i].i == wanted;
    return in->active_count;
}

static void check_whole(struct interp *in, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (in->active_count < in->lanes && inst->results[i]->type->rank)
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "a tile under divergent control flow");
}

void tir_interp_if(struct interp *in, const struct tir_inst *inst)
{
    const union tir_number *cond = tir_interp_read(in, inst->operands[0]);
    const uint8_t *mask = save_mask(in);
    for (uint32_t r = 0; r < inst->region_count; r++) {
        if (!narrow_mask(in, mask, cond, r == 0))
            continue;
        check_whole(in, inst);
        tir_interp_block(in, inst->regions[r]);
        const struct tir_inst *yield = tir_yield_of(inst->regions[r]);
        for (uint32_t i = 0; i < inst->result_count; i++)
            tir_interp_copy(in, inst, inst->results[i], yield->operands[i]);
    }
    restore_mask(in, mask);
}

void tir_interp_carry(struct interp *in, const struct tir_inst *inst, struct tir_value **args,
                      const struct tir_block *body)
{
    const struct tir_inst *yield = tir_yield_of(body);
    uint32_t count = yield ? yield->operand_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct tir_type *type = args[i]->type;
        struct slot *slot = &in->slots[args[i]->id];
        if (tir_type_is_buffer(type))
            tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "a buffer carried by a loop");
        if (!slot->next)
            slot->next = arena_array(&in->arena, union tir_number,
                                     type->rank ? (size_t)tir_type_count(type) : in->max_lanes);
        const union tir_number *from = tir_interp_read(in, yield->operands[i]);
        const uint32_t n = count_of(in, type), first = type->rank ? 0 : in->window;
        for (uint32_t k = 0; k < n; k++)
            slot->next[first + k] = type->rank || in->active[k] ? from[k] : slot->at[first + k];
    }
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = &in->slots[args[i]->id];
        union tir_number *at = slot->at;
        slot->at = slot->next;
        slot->next = at;
    }
}

bool tir_interp_step(enum tir_elem elem, int64_t *x, int64_t step)
{
    int64_t next;
    if (elem == TIR_U64)
        next = (int64_t)((uint64_t)*x + (uint64_t)step);
    else if (!tir_add_checked(*x, step, &next))
        return false;
    if (tir_number_wrap(elem, next) != next || (elem == TIR_U64 && (uint64_t)next < (uint64_t)*x))
        return false;
    *x = next;
    return true;
}

// The lanes of `mask` whose counter is below their end run. False: none.
static bool count_mask(struct interp *in, enum tir_elem elem, const uint8_t *mask,
                       const union tir_number *at, const union tir_number *end)
{
    in->active_count = 0;
    for (uint32_t i = 0; i < in->lanes; i++) {
        bool below = elem == TIR_U64 ? (uint64_t)at[i].i < (uint64_t)end[i].i : at[i].i < end[i].i;
        in->active_count += in->active[i] = mask[i] && below;
    }
    return in->active_count;
}

void tir_interp_for(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_block *body = inst->regions[0];
    const struct tir_value *begin = inst->operands[TIR_FOR_BEGIN];
    const union tir_number *end = tir_interp_read(in, inst->operands[TIR_FOR_END]);
    const union tir_number *step = tir_interp_read(in, inst->operands[TIR_FOR_STEP]);
    enum tir_elem elem = begin->type->elem;
    const uint8_t *outer = save_mask(in);
    uint8_t *mask = save_mask(in); // without the lanes whose counter would overflow
    for (uint32_t i = 0; i < in->lanes; i++)
        if (in->active[i] && (elem == TIR_U64 ? step[i].i == 0 : step[i].i <= 0))
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "the step of a loop is %lld",
                            (long long)step[i].i);
    memcpy(tir_interp_write(in, body->args[0]), tir_interp_read(in, begin),
           in->lanes * sizeof *end);
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, body->args[i + 1], inst->operands[TIR_FOR_INIT + i]);
    union tir_number *at = tir_interp_write(in, body->args[0]);
    while (count_mask(in, elem, mask, at, end)) {
        tir_interp_block(in, body);
        tir_interp_carry(in, inst, body->args + 1, body);
        for (uint32_t i = 0; i < in->lanes; i++)
            if (in->active[i] && !tir_interp_step(elem, &at[i].i, step[i].i))
                mask[i] = 0;
    }
    restore_mask(in, outer);
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, inst->results[i], body->args[i + 1]);
}

void tir_interp_while(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_block *test = inst->regions[0], *body = inst->regions[1];
    const uint8_t *outer = save_mask(in);
    uint8_t *mask = save_mask(in);
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, test->args[i], inst->operands[i]);
    for (;;) {
        tir_interp_block(in, test);
        const struct tir_value *go = tir_yield_of(test)->operands[0];
        if (!narrow_mask(in, mask, tir_interp_read(in, go), true))
            break;
        memcpy(mask, in->active, in->lanes);
        for (uint32_t i = 0; i < inst->result_count; i++)
            tir_interp_copy(in, inst, body->args[i], test->args[i]);
        tir_interp_block(in, body);
        tir_interp_carry(in, inst, test->args, body);
    }
    restore_mask(in, outer);
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, inst->results[i], test->args[i]);
}

static void set_start(struct interp *in, const struct tir_value *arg, int64_t start)
{
    union tir_number *at = tir_interp_write(in, arg);
    for (uint32_t i = 0; i < in->lanes; i++)
        at[i].i = start;
}

// Moves on to the next tile in row-major order. False: that was the last.
static bool next_tile(struct interp *in, const struct tir_block *body, uint32_t rank,
                      const int64_t *by, const int64_t *end)
{
    for (uint32_t d = rank; d-- > 0;) {
        int64_t at = tir_interp_write(in, body->args[d])->i;
        bool next = tir_add_checked(at, by[d], &at) && at < end[d];
        set_start(in, body->args[d], next ? at : 0);
        if (next)
            return true;
    }
    return false;
}

// One tile after the other: the tiles are independent of each other, but for what a role carries,
// which a CTA that does all of them carries through all of them.
void tir_interp_tiles(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_block *body = inst->regions[0];
    uint32_t rank = tir_carried_at(inst);
    int64_t *end = arena_array(&in->scratch, int64_t, rank);
    bool any = true;
    if (in->f->grid_count)
        tir_interp_fail(in, inst, TIR_ERR_UNSUPPORTED, "a tiles loop in an explicit kernel");
    for (uint32_t d = 0; d < rank; d++) {
        end[d] = tir_interp_uniform(in, inst, inst->operands[d]).i;
        any &= end[d] > 0;
        set_start(in, body->args[d], 0);
    }
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, body->args[rank + i], inst->operands[rank + i]);
    const int64_t *by = tir_attr_find(inst, TIR_ATTR_by)->list;
    while (any) {
        tir_interp_block(in, body);
        tir_interp_carry(in, inst, body->args + rank, body);
        any = next_tile(in, body, rank, by, end);
    }
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(in, inst, inst->results[i], body->args[rank + i]);
}

void tir_interp_assume_sync(struct interp *in, const struct tir_inst *inst)
{
    (void)in; // it is about threads that run side by side
    (void)inst;
}

void tir_interp_assume(struct interp *in, const struct tir_inst *inst)
{
    const struct tir_value *cond = inst->operands[0];
    const union tir_number *at = tir_interp_read(in, cond);
    uint32_t count = count_of(in, cond->type);
    for (uint32_t i = 0; i < count; i++)
        if (!at[i].i && (cond->type->rank || in->active[i]))
            tir_interp_fail(in, inst, TIR_ERR_INVALID, "an assumption does not hold");
}

void tir_interp_nothing(struct interp *in, const struct tir_inst *inst)
{
    (void)in;
    (void)inst;
}
