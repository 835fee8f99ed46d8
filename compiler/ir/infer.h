// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inside infer: what its files share. A rule gives the type of an instruction's first result; for
// reductions and scans, of any.
#ifndef TIR_IR_INFER_H
#define TIR_IR_INFER_H

#include "ir/ir.h"

struct tir_query {
    struct tir_module *m;
    const struct tir_inst *inst;
    const struct tir_type *stated; // NULL: none
    tir_str *why;
    uint32_t result;
};

// Says why there is no type: NULL.
const struct tir_type *tir_infer_refuse(struct tir_query *q, const char *format, ...)
    TIR_PRINTF(2, 3);
bool tir_infer_axis(struct tir_query *q, uint32_t rank, uint32_t *axis);
// t, with the stated layout if that is all the two differ in.
const struct tir_type *tir_infer_stated_layout(struct tir_query *q, const struct tir_type *t);
// Tile t as the result of an operation on operand i, whose layout follows from the operand's.
const struct tir_type *tir_infer_operand_layout(struct tir_query *q, uint32_t i,
                                                const struct tir_type *t,
                                                const struct tir_layout *layout);
// The slice the instruction names, as a tile or scalar without a layout, and whether its mask is
// one of such a tile (infer_slice.c).
const struct tir_type *tir_infer_slice(struct tir_query *q);
bool tir_infer_mask_fits(struct tir_query *q, uint32_t operand, const struct tir_type *slice);
// Of operations on slices (infer_slice.c).
const struct tir_type *tir_infer_load(struct tir_query *q);
const struct tir_type *tir_infer_atomic(struct tir_query *q);
const struct tir_type *tir_infer_atom(struct tir_query *q);
const struct tir_type *tir_infer_view(struct tir_query *q);
const struct tir_type *tir_infer_index(struct tir_query *q);
// Whether an operation waits for the phase of an mbarrier; whether its first operand is the
// response to a try_cancel: 16 bytes, or such parts and a place (infer_effect.c).
bool tir_infer_phase(struct tir_query *q);
bool tir_infer_response(struct tir_query *q);
// Of operations without a result, and of puts and gets (infer_effect.c).
const struct tir_type *tir_infer_none(struct tir_query *q);
const struct tir_type *tir_infer_ring(struct tir_query *q);
// Of operations whose type is stated (infer_stated.c).
const struct tir_type *tir_infer_stated(struct tir_query *q);
// Of a copy from shared to tensor memory, and whether a product's scales are those of a and b
// (infer_tmem.c).
const struct tir_type *tir_infer_tmem_copy(struct tir_query *q);
bool tir_infer_scales_fit(struct tir_query *q, const struct tir_type *a, const struct tir_type *b);
// Of a dot with scales (infer_tmem.c).
const struct tir_type *tir_infer_scaled_dot(struct tir_query *q);

static inline const char *tir_infer_text(struct tir_query *q, const struct tir_type *t)
{
    return tir_type_text(q->m->arena, t).ptr;
}

static inline const struct tir_type *tir_infer_operand(const struct tir_query *q, uint32_t i)
{
    return q->inst->operands[i]->type;
}

static inline const struct tir_type *tir_infer_scalar(const struct tir_query *q, enum tir_elem elem)
{
    return tir_type_scalar(q->m->types, elem);
}

static inline const struct tir_type *tir_infer_nothing(const struct tir_query *q)
{
    return tir_infer_scalar(q, TIR_NONE);
}

static inline bool tir_infer_same_but_layout(const struct tir_type *a, const struct tir_type *b)
{
    return a->elem == b->elem && a->space == b->space && tir_type_same_shape(a, b);
}

#endif
