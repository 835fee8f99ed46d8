// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, memory: copies from global to shared memory by the threads of a crew (cp.async).

#include "pass/lower/access.h"
#include "pass/receipt.h"

// A copy from global to shared memory, `elements` at a time.
struct transfer {
    const struct tir_layout *layout;
    uint32_t elements;
    struct lower_global from;
    struct lower_walk *to;
};

// The widest that the copy states and the addresses allow; 1 element where nothing is known.
static void open_transfer(struct lower *lo, const struct tir_inst *inst, struct transfer *t)
{
    struct tir_value *to = inst->operands[TIR_COPY_TO];
    uint32_t rank = to->type->rank, dims[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d;
    uint32_t bytes = tir_elems[to->type->elem].bits / 8;
    uint32_t width = (uint32_t)tir_attr_int(inst, TIR_ATTR_width, 16);
    const uint32_t stated = TIR_MAX(1, width / bytes);
    const bool is_fixed = tir_takes_tiles(inst, TIR_COPY_MASK); // async_copy has laid out its tiles
    for (t->elements = stated;; t->elements /= 2) {
        t->layout = tir_layout_copy(lo->types, rank, to->type->shape,
                                    is_fixed ? stated : t->elements, lo->threads / 32);
        t->from = tir_lower_open_global(lo, inst, t->layout);
        t->to = tir_lower_walk_new(lo, to, t->layout, NULL, dims);
        if (t->elements == 1 || (t->from.vector.count % t->elements == 0 &&
                                 tir_lower_walk_vector(t->to).count % t->elements == 0))
            return;
    }
}

static void copy_elements(struct lower *lo, const struct tir_inst *inst, struct transfer *t,
                          uint32_t reg, enum tir_elem elem)
{
    uint32_t width = t->elements * tir_elems[elem].bits / 8;
    struct lower_place from = tir_lower_element_at(&t->from, reg),
                       to = tir_lower_walk_at(lo, t->to, reg);
    from.pred = tir_lower_and(lo, from.pred, inst->operands[TIR_COPY_PRED]);
    if (inst->operands[TIR_COPY_MASK])
        from.pred = tir_lower_and(lo, from.pred,
                                  tir_lower_register(lo, inst->operands[TIR_COPY_MASK], reg));
    if (width < 4) { // less than cp.async moves
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, &from, elem, t->elements, values);
        tir_lower_st_vector(lo, &to, t->elements, values);
        lo->copies_by_registers = true;
        return;
    }
    if (from.offset)
        from.at =
            tir_lower_add(lo, &lo->b, from.at, tir_const_int(lo->f, from.at->type, from.offset));
    struct tir_value *operands[] = {to.base, to.at, from.base, from.at, from.pred};
    struct tir_inst *copy = tir_build(&lo->b, TIR_OP_CP_ASYNC, operands, 5, NULL, 0, 0);
    tir_set_int(lo->f, copy, TIR_ATTR_width, width);
    tir_lower_set_cache(lo, copy, &from);
    if (to.offset)
        tir_set_int(lo->f, copy, TIR_ATTR_offset, to.offset);
}

void tir_lower_copy_async(struct lower *lo, struct tir_inst *inst)
{
    enum tir_elem elem = inst->operands[TIR_COPY_TO]->type->elem;
    struct transfer t;
    open_transfer(lo, inst, &t);
    t.from.by_steps = true;
    t.from.stepped = t.from.at;
    int64_t stated = tir_attr_int(inst, TIR_ATTR_width, 16);
    int64_t width = (int64_t)t.elements * tir_elems[elem].bits / 8;
    if (width < stated)
        tir_receipt_refuse(lo->cx, TIR_TOPIC_COPY, width < 4 ? TIR_WISH_ASYNC : TIR_WISH_NONE,
                           inst->span, "copy of %s: %lld bytes each%s, for want of alignment",
                           t.from.base->name ? t.from.base->name : "a tensor", (long long)width,
                           width < 4 ? ", through registers" : "");
    // Threads that would repeat what another one copies stay out; a false predicate would write
    // zeros.
    struct tir_value *owner = tir_lower_is_owner(lo, t.layout);
    struct tir_builder outside = lo->b;
    struct tir_inst *branch = NULL;
    if (owner) {
        branch = tir_build(&lo->b, TIR_OP_IF, &owner, 1, NULL, 0, 2);
        lo->b = tir_builder_at_end(lo->f, branch->regions[0]);
    }
    uint32_t count = tir_layout_size(t.layout, TIR_AXIS_REG);
    for (uint32_t r = 0; r < count; r += t.elements)
        copy_elements(lo, inst, &t, r, elem);
    for (uint32_t i = 0; branch && i < branch->region_count; i++) {
        struct tir_builder end = tir_builder_at_end(lo->f, branch->regions[i]);
        tir_build(&end, TIR_OP_YIELD, NULL, 0, NULL, 0, 0);
    }
    lo->b = outside;
}
