// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles and threads do not mix: a tile operation is done by the whole CTA together, so neither its
// operands nor whether it is reached may differ between threads; in a role, by its threads. And a
// kernel without a grid or roles has no threads to speak of.
//
// A role does a scalar store or atomic once. Where its operands differ between threads, or only
// some threads reach it, every thread that comes does its own:
//     store(Y[i], t);
// becomes, where i or t come from tid(),
//     store(Y[i], t, by_thread = 1);
//
// varying.c finds what differs.
#include "front/lower/lower.h"
#include "front/lower/varying.h"

struct uniform {
    struct lower *l;
    struct varying varying;
    const struct tir_inst *reported; // the branch or loop that the last message was about
};

// From the number of the thread, from its own memory, or from an atomic of single threads.
static bool differs_by_thread(const struct varying *set, const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_THREAD) ||
           (inst->op == TIR_OP_ATOMIC && (set->f->grid_count || varying_around(set, inst))) ||
           (inst->op == TIR_OP_LOAD && tir_ref_base(inst)->type->space == TIR_SPACE_LOCAL);
}

static bool is_tile(const struct tir_value *v)
{
    return v && tir_type_is_tile(v->type);
}

static bool is_tile_op(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (is_tile(inst->operands[i]))
            return true;
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (is_tile(inst->results[i]))
            return true;
    bool together = inst->op == TIR_OP_COPY_ASYNC && !inst->operands[TIR_COPY_MBAR];
    return together || inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET;
}

static bool check_inst(struct uniform *u, const struct tir_inst *inst)
{
    bool is_slot = inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET;
    if (inst->region_count && !is_slot && inst->op != TIR_OP_REDUCE && inst->op != TIR_OP_SCAN)
        return true; // what it carries comes from an operation that is checked itself
    if (inst->op == TIR_OP_YIELD || !is_tile_op(inst))
        return true;
    bool varying = false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        varying |= varying_has(&u->varying, inst->operands[i]) && !is_tile(inst->operands[i]);
    const struct tir_inst *around = varying ? NULL : varying_around(&u->varying, inst);
    if (!varying && (!around || around == u->reported))
        return true;
    if (around)
        u->reported = around;
    lower_error(u->l, inst->span, TIR_E_THREAD_TILE,
                varying   ? "`%s` on a tile, with an operand that differs between threads"
                : is_slot ? "`%s` where not every thread of the role comes"
                          : "`%s` on a tile, where not every thread comes",
                tir_ops[inst->op].name);
    if (!is_slot)
        tir_note_at(
            &u->l->cx->diags, inst->span,
            "a tile belongs to all threads of its CTA or role; `role NAME warps(1) { }` has "
            "tiles of one warp");
    return false;
}

static void mark_by_thread(const struct uniform *u, struct tir_inst *inst)
{
    bool is_once =
        inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC || inst->op == TIR_OP_PRINT;
    if (is_once && !is_tile_op(inst) &&
        (varying_operands(&u->varying, inst) || varying_around(&u->varying, inst)))
        tir_set_int(u->l->f, inst, TIR_ATTR_by_thread, 1);
}

static bool check_no_threads(struct lower *l)
{
    tir_foreach_inst(inst, l->f)
        if (tir_has_trait(inst, TIR_THREAD)) {
            lower_error(
                l, inst->span, TIR_E_THREAD_TILE,
                "`%s` is about single threads; only a kernel with `grid(...)` or roles speaks of "
                "them",
                tir_ops[inst->op].name);
            return false;
        }
    return true;
}

bool uniform_check(struct lower *l)
{
    if (!l->f->grid_count && !l->roles.len)
        return check_no_threads(l);
    struct uniform u = {.l = l,
                        .varying = {.f = l->f,
                                    .begins = differs_by_thread,
                                    .values = bitset_new(l->arena, l->f->value_count)}};
    varying_find(&u.varying);
    bool ok = true;
    tir_foreach_inst(inst, l->f) {
        ok &= check_inst(&u, inst);
        if (!l->f->grid_count)
            mark_by_thread(&u, inst);
    }
    return ok;
}
