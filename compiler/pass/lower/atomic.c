// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, memory: atomics of tiles, one for each element, or several sums at once where the
// target can and nobody uses the old values.

#include "pass/lower/access.h"
#include "pass/receipt.h"

static void set_words(struct lower *lo, struct tir_inst *atom, const struct tir_inst *inst,
                      const struct lower_place *p)
{
    static const enum tir_attr_key words[] = {TIR_ATTR_kind, TIR_ATTR_ordering, TIR_ATTR_scope};
    for (uint32_t i = 0; i < TIR_COUNT_OF(words); i++)
        if (tir_attr_find(inst, words[i]))
            tir_set_word(lo->f, atom, words[i], tir_attr_word(inst, words[i], TIR_WORD_NONE));
    if (p->offset)
        tir_set_int(lo->f, atom, TIR_ATTR_offset, p->offset);
}

static struct tir_value *build_atom(struct lower *lo, const struct tir_inst *inst,
                                    const struct lower_place *p, struct tir_value *value,
                                    struct tir_value *expected)
{
    struct tir_value *operands[] = {p->base, p->at, value, p->pred, expected};
    struct tir_value *old =
        tir_build1(&lo->b, TIR_OP_ATOM, value->type, operands, TIR_COUNT_OF(operands));
    set_words(lo, old->def, inst, p);
    return old;
}

// How many neighbours one instruction adds to where they are; 1 for other atomics.
static struct lower_vector red_vector(struct lower *lo, const struct tir_inst *inst,
                                      const struct lower_access *a)
{
    const struct lower_vector single = {.count = 1};
    const struct tir_value *base = tir_ref_base(inst);
    enum tir_elem elem = base->type->elem;
    bool adds = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_add;
    if (!adds || a->walk || !a->layout || !tir_elem_is_float(elem) || tir_elems[elem].bits > 32)
        return single;
    struct lower_vector v = a->vector;
    const char *limit = a->global.limit;
    const bool is_asked = lo->uses[inst->results[0]->id];
    uint32_t most = is_asked ? 1 : tir_target_red(lo->cx->target, elem);
    if (v.count > most || most == 1) {
        v.count = most;
        limit = is_asked ? "the old values are used" : "the target adds no more at once";
    }
    const char *name = base->name ? base->name : "a tensor";
    if (v.count * tir_elems[elem].bits < 128)
        tir_receipt_refuse(lo->cx, TIR_TOPIC_COPY, TIR_WISH_NONE, inst->span,
                           "atomic add to %s: %u %s at once, because %s", name, v.count,
                           tir_elems[elem].name, limit);
    else
        tir_receipt_add(lo->cx, TIR_TOPIC_COPY, inst->span, "atomic add to %s: %u %s at once", name,
                        v.count, tir_elems[elem].name);
    return v;
}

static void build_red(struct lower *lo, const struct tir_inst *inst, const struct lower_place *p,
                      struct lower_vector vector, uint32_t reg)
{
    struct tir_value *operands[3 + 8] = {p->base, p->at, p->pred};
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    for (uint32_t i = 0; i < vector.count; i++)
        operands[3 + i] = tir_lower_register(lo, v, tir_lower_together(vector, reg, i));
    struct tir_inst *red = tir_build(&lo->b, TIR_OP_RED, operands, 3 + vector.count, NULL, 0, 0);
    tir_set_int(lo->f, red, TIR_ATTR_width, vector.count * tir_elems[v->type->elem].bits / 8);
    set_words(lo, red, inst, p);
}

// Gives the old values from the threads that did the atomic to every thread with the element.
static void share_old(struct lower *lo, struct tir_value *scratch, const struct lower_access *a,
                      struct tir_value *owner, struct tir_value **old)
{
    uint32_t dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < TIR_MAX_RANK; d++)
        dims[d] = d;
    struct lower_walk *w = tir_lower_walk_new(lo, scratch, a->layout, NULL, dims);
    tir_lower_write(lo, w, old, a->count, owner);
    tir_lower_barrier(lo);
    tir_lower_read(lo, w, scratch->type->elem, a->count, old);
}

void tir_lower_atomic(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    struct tir_value *expected = inst->operands[TIR_ATOMIC_EXPECTED];
    struct lower_access a;
    tir_lower_open_access(lo, inst, v->type, inst->operands[TIR_STORE_MASK], &a);
    tir_lower_tell_width(lo, inst, &a);
    struct tir_value *owner = tir_lower_writer(lo, inst, a.layout);
    struct tir_value **old = tir_lower_new_registers(lo, a.count);
    struct lower_vector vector = red_vector(lo, inst, &a);
    for (uint32_t r = 0; r < a.count; r++) {
        if (!tir_lower_leads(vector, r))
            continue;
        struct lower_place p = tir_lower_place_of(lo, &a, r);
        p.pred = tir_lower_and(lo, owner, p.pred);
        if (vector.count > 1)
            build_red(lo, inst, &p, vector, r);
        else
            old[r] = build_atom(lo, inst, &p, tir_lower_register(lo, v, r),
                                expected ? tir_lower_register(lo, expected, r) : NULL);
    }
    if (vector.count > 1) // nobody asks for what was there
        return;
    if (inst->operands[TIR_ATOMIC_SCRATCH])
        share_old(lo, inst->operands[TIR_ATOMIC_SCRATCH], &a, owner, old);
    tir_lower_set_registers(lo, inst->results[0], old);
}
