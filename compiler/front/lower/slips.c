// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs that are legal but not what anybody means: warnings.
//
// The tiles of a loop run in parallel. A store whose place does not depend on one of the loop's
// variables is done by the tiles of all its values, and if what they store differs, one of them
// wins:
//     for (m, n) in tiles(M by 64, N by 64) { Sum[m:+64] = sum(X[m:+64, n:+64], axis = 1)[:, 0]; }
// Nothing is said about a store in a branch that depends on the variable, which is how a program
// says that one tile is to store; about places that come from shared memory, an atomic or inline
// PTX; about tiles of which there is one; and about kernels whose tiles wait for each other.
#include "front/lower/lower.h"
#include "front/lower/varying.h"
#include "ir/range.h"

static bool may_tell_tiles(const struct varying *set, const struct tir_inst *inst)
{
    (void)set;
    switch (inst->op) {
    case TIR_OP_ATOMIC:
    case TIR_OP_PTX:
    case TIR_OP_CTA_ID:
    case TIR_OP_CLUSTER_ID:
        return true;
    case TIR_OP_LOAD:
        return tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL;
    default:
        return false;
    }
}

static bool tells_tiles(const struct varying *set, const struct tir_inst *inst)
{
    (void)set;
    return inst->op == TIR_OP_ATOMIC;
}

// places: all that may depend on the variable.
static bool stores_everywhere(const struct varying *places, const struct tir_inst *store)
{
    const struct tir_value *to = tir_ref_base(store);
    for (uint32_t i = 0; i < to->type->rank; i++)
        if (varying_has(places, tir_ref_indices(store)[i]))
            return false;
    return to->type->space == TIR_SPACE_GLOBAL &&
           !varying_has(places, store->operands[TIR_STORE_MASK]) && !varying_around(places, store);
}

static void warn_store(struct lower *l, const struct tir_inst *store, const struct tir_value *var)
{
    tir_error_at(&l->cx->diags, store->span, TIR_W_SLIP,
                 "the tiles of all `%s` store here: no index depends on it", var->name);
    lower_note(l, store->span, "if one of them is to store, say which: `if %s == 0 { ... }`",
               var->name);
}

static struct varying find(struct lower *l, const struct tir_value *var,
                           bool (*begins)(const struct varying *, const struct tir_inst *))
{
    struct varying set = {
        .f = l->f, .begins = begins, .values = bitset_new(l->arena, l->f->value_count)};
    bitset_insert(&set.values, var->id);
    varying_find(&set);
    return set;
}

// As most stores in tiles are.
static bool is_at(const struct tir_inst *store, const struct tir_value *var)
{
    for (uint32_t i = 0; i < tir_ref_base(store)->type->rank; i++)
        if (tir_ref_indices(store)[i] == var)
            return true;
    return false;
}

static void check_stores(struct lower *l, const struct tir_inst *tiles, uint32_t dim)
{
    const struct tir_value *var = tiles->regions[0]->args[dim];
    struct varying places = {0}; // what may depend on it
    struct varying values = {0}; // what does depend on it: asked for by few programs
    uint32_t last = 0;           // an unrolled loop stores several times at one place of the text
    tir_foreach_inst_within(inst, tiles) {
        if (inst->op != TIR_OP_STORE || inst->span.begin == last || is_at(inst, var))
            continue;
        if (!places.f)
            places = find(l, var, may_tell_tiles);
        if (!stores_everywhere(&places, inst))
            continue;
        if (!values.f)
            values = find(l, var, tells_tiles);
        if (!varying_has(&values, inst->operands[TIR_STORE_VALUE]))
            continue;
        last = inst->span.begin;
        warn_store(l, inst, var);
    }
}

static bool tiles_wait(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_ATOMIC && tir_acquires(inst))
            return true;
    return false;
}

void slips_check(struct lower *l)
{
    if (tiles_wait(l->f))
        return;
    const struct tir_ranges *ranges = tir_ranges_new(l->arena, l->f);
    tir_foreach_inst(inst, l->f) {
        if (inst->op != TIR_OP_TILES)
            continue;
        const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
        for (uint32_t d = 0; d < by->list_count; d++) {
            int64_t low, high;
            tir_range_get(ranges, inst->operands[d], &low, &high);
            if (high > by->list[d])
                check_stores(l, inst, d);
        }
    }
}
