// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on the arguments that a launch may have: those for which the kernel's conditions hold,
// as the host computes them.

#include "pass/sync_check/sync_check.h"

// The host block, for the arguments as they are.
struct host {
    const struct tir_func *f;
    int64_t *at; // by value id
    struct bitset known;
};

static bool get(const struct host *h, const struct tir_value *v, int64_t *out)
{
    bool constant = v->kind == TIR_VALUE_CONST && !tir_elem_is_float(v->type->elem);
    *out = constant ? v->constant.i : h->at[v->id];
    return constant || bitset_has(&h->known, v->id);
}

static void compute(struct host *h, const struct tir_inst *inst)
{
    union tir_number in[3] = {{0}}, out;
    bool known = inst->operand_count > 0 && inst->operand_count <= 3;
    for (uint32_t i = 0; known && i < inst->operand_count; i++)
        known = get(h, inst->operands[i], &in[i].i);
    if (!known)
        return;
    enum tir_elem elem = inst->operands[inst->operand_count - 1]->type->elem;
    if (inst->op == TIR_OP_CAST)
        out = tir_number_cast(inst->results[0]->type->elem, elem, in[0]);
    else if (!tir_number_apply(inst->op, elem, in, &out))
        return;
    h->at[inst->results[0]->id] = out.i;
    bitset_insert(&h->known, inst->results[0]->id);
}

static struct host compute_host(const struct sync_program *p, const int64_t *args)
{
    const struct tir_func *f = p->f;
    struct host h = {f, arena_array(p->cx->scratch, int64_t, f->value_count),
                     bitset_new(p->cx->scratch, f->value_count)};
    for (uint32_t i = 0; i < f->body->arg_count; i++) {
        const struct tir_value *v = f->body->args[i];
        h.at[v->id] = args[i];
        if (tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem))
            bitset_insert(&h.known, v->id);
    }
    for (const struct tir_inst *inst = f->host->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_YIELD)
            compute(&h, inst);
    return h;
}

bool tir_sync_is_allowed(const struct sync_program *p, const int64_t *args)
{
    const struct tir_func *f = p->f;
    const struct tir_inst *yield = tir_yield_of(f->host);
    int64_t x;
    if (!yield)
        return true;
    struct host h = compute_host(p, args);
    for (uint32_t i = f->grid_count + f->extent_count; i < yield->operand_count; i++)
        if (get(&h, yield->operands[i], &x) && !x)
            return false;
    return true;
}
