// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What several roles read is computed in each of them.
//
// A number that is made before the roles is live in all of them, and ptxas 13.0 spills such numbers
// where one role has few registers, whatever the others have. Those that a few operations make of
// constants and of the number of the thread or the CTA are made where a role begins:
//
//     let r: i32 = mul(cta_rank(), i32(192));       if first {
//     if first {                                        setmaxnreg(change = inc, regs = 160);
//         setmaxnreg(change = inc, regs = 160);         let r: i32 = mul(cta_rank(), i32(192));
//         ... r ...                           ->        ... r ...
//     } else {                                      } else {
//         setmaxnreg(change = dec, regs = 24);          setmaxnreg(change = dec, regs = 24);
//         ... r ...                                     let r_2: i32 = mul(cta_rank(), i32(192));
//     }                                                 ... r_2 ...
//                                                   }
//
// Left alone is what comes from memory, what a division makes, and what long chains make.

#include "pass/clean/in_roles.h"

#include "base/bitset.h"
#include "base/vec.h"
#include "ir/walk.h"
#include "machine/budget.h"

struct copies {
    const struct tir_inst *role; // its setmaxnreg
    struct tir_map map;          // values and their copies in it
};

struct in_roles {
    struct tir_func *f;
    struct tir_arena *scratch;
    uint32_t *length;            // operations that make a value, by id
    const struct tir_inst **one; // of the roles that use a value, by id
    struct bitset several;       // values that others use as well
    VEC(struct copies) copies;   // of roles that need some
};

static const uint32_t never = UINT32_MAX;

static bool is_cheap(const struct in_roles *r, const struct tir_inst *inst)
{
    const struct tir_type *t = inst->result_count == 1 ? inst->results[0]->type : NULL;
    return t && tir_type_is_scalar(t) && tir_elem_is_int(t->elem) &&
           tir_has_trait(inst, TIR_PURE) && !inst->region_count && inst->block == r->f->body &&
           inst->op != TIR_OP_DIV && inst->op != TIR_OP_REM && inst->op != TIR_OP_CEILDIV;
}

// How many operations make v anew, or `never`. They stand in the block in this order.
static uint32_t length_of(const struct in_roles *r, const struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return 0;
    return v->kind == TIR_VALUE_RESULT && v->def->block == r->f->body ? r->length[v->id] : never;
}

static void measure(struct in_roles *r)
{
    for (const struct tir_inst *inst = r->f->body->first; inst; inst = inst->next) {
        uint64_t length = is_cheap(r, inst) ? 1 : never;
        for (uint32_t i = 0; i < inst->operand_count && length != never; i++)
            length += inst->operands[i] ? length_of(r, inst->operands[i]) : 0;
        for (uint32_t i = 0; i < inst->result_count; i++)
            r->length[inst->results[i]->id] =
                length <= TIR_BUDGET_ROLE_OPERATIONS ? (uint32_t)length : never;
    }
}

// The role around inst: the block that moves registers.
static struct tir_inst *role_around(const struct in_roles *r, const struct tir_inst *inst)
{
    for (const struct tir_block *b = inst->block; b != r->f->body; b = b->owner->block)
        for (struct tir_inst *first = b->first; first; first = first->next)
            if (first->op == TIR_OP_SETMAXNREG)
                return first;
    return NULL;
}

static void note_uses(struct in_roles *r, const struct tir_inst *inst)
{
    const struct tir_inst *role = role_around(r, inst);
    for (uint32_t i = 0; role && i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (!v || v->kind != TIR_VALUE_RESULT || length_of(r, v) == never)
            continue;
        if (r->one[v->id] && r->one[v->id] != role)
            bitset_insert(&r->several, v->id);
        r->one[v->id] = role;
    }
}

static struct tir_map *copies_of(struct in_roles *r, const struct tir_inst *role)
{
    vec_foreach(struct copies, c, &r->copies)
        if (c->role == role)
            return &c->map;
    vec_push(r->scratch, &r->copies, (struct copies){.role = role});
    struct tir_map *map = &r->copies.at[r->copies.len - 1].map;
    tir_map_init(map, r->scratch);
    return map;
}

bool tir_compute_in_roles(struct tir_func *f, struct tir_arena *scratch)
{
    const uint32_t values = f->value_count;
    struct in_roles r = {.f = f,
                         .scratch = scratch,
                         .length = arena_array(scratch, uint32_t, values),
                         .one = arena_array(scratch, const struct tir_inst *, values),
                         .several = bitset_new(scratch, values)};
    bool changed = false;
    measure(&r);
    tir_foreach_inst(inst, f)
        note_uses(&r, inst);
    tir_foreach_inst(inst, f) {
        struct tir_inst *role = role_around(&r, inst);
        for (uint32_t i = 0; role && i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            if (!v || v->id >= values || !bitset_has(&r.several, v->id))
                continue;
            struct tir_builder b = tir_builder_before(f, role->next);
            inst->operands[i] = tir_clone_value(&b, v, f->body, copies_of(&r, role));
            changed = true;
        }
    }
    return changed;
}
