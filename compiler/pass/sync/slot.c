// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slots that threads hand to each other: what passes build alike.

#include "pass/sync/slot.h"

struct tir_value *tir_slot_mbarriers(struct tir_builder *b, int64_t slots, const char *name)
{
    struct tir_type t = {.elem = TIR_MBARRIER, .space = TIR_SPACE_SHARED, .rank = 1};
    t.shape[0] = slots;
    struct tir_value *v =
        tir_build1(b, TIR_OP_ALLOC, tir_type_get(b->f->module->types, &t), NULL, 0);
    v->name = tir_intern_cstr(b->f->module->names, name);
    return v;
}

struct tir_value *tir_slot_mbarrier(struct tir_builder *b, struct tir_value *mbarriers,
                                    struct tir_value *slot)
{
    static const int64_t box[] = {0};
    struct tir_type t = *mbarriers->type;
    t.rank = 0;
    struct tir_value *operands[] = {mbarriers, slot};
    const struct tir_type *type = tir_type_get(b->f->module->types, &t);
    struct tir_inst *view = tir_build(b, TIR_OP_VIEW, operands, 2, &type, 1, 0);
    tir_set_list(b->f, view, TIR_ATTR_box, box, 1);
    return view->results[0];
}

void tir_slot_wait(struct tir_builder *b, struct tir_value *mbarriers, struct tir_value *slot,
                   struct tir_value *phase)
{
    struct tir_value *operands[] = {tir_slot_mbarrier(b, mbarriers, slot), NULL, phase};
    tir_build(b, TIR_OP_WAIT, operands, 3, NULL, 0, 0);
}

struct tir_value *tir_slot_next(struct tir_builder *b, struct tir_value *slot, int64_t slots)
{
    struct tir_func *f = b->f;
    struct tir_value *last = tir_const_i32(f, (int32_t)slots - 1);
    struct tir_value *wraps = tir_binary(b, TIR_OP_EQ, slot, last);
    struct tir_value *next = tir_binary(b, TIR_OP_ADD, slot, tir_const_i32(f, 1));
    struct tir_value *choice[] = {wraps, tir_const_i32(f, 0), next};
    return tir_build1(b, TIR_OP_WHERE, next->type, choice, 3);
}

bool tir_slot_is_next(const struct tir_value *v, const struct tir_value *slot, int64_t slots)
{
    const struct tir_inst *where = v->def;
    int64_t zero, one, last;
    if (!where || where->op != TIR_OP_WHERE || !tir_is_const_int(where->operands[1], &zero))
        return false;
    const struct tir_inst *wraps = where->operands[0]->def, *add = where->operands[2]->def;
    return zero == 0 && wraps && wraps->op == TIR_OP_EQ && wraps->operands[0] == slot &&
           tir_is_const_int(wraps->operands[1], &last) && last == slots - 1 && add &&
           add->op == TIR_OP_ADD && add->operands[0] == slot &&
           tir_is_const_int(add->operands[1], &one) && one == 1;
}

void tir_slot_step(struct tir_builder *b, int64_t slots, struct tir_value **slot,
                   struct tir_value **phase)
{
    struct tir_value *flip = tir_const_i32(b->f, 1);
    if (slots > 1) {
        *slot = tir_slot_next(b, *slot, slots);
        struct tir_value *wraps = (*slot)->def->operands[0];
        flip = tir_build1(b, TIR_OP_CAST, flip->type, &wraps, 1);
    }
    *phase = tir_binary(b, TIR_OP_XOR, *phase, flip);
}
