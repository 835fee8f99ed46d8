// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types: one function per rule of ops.def, in a table.
//
// A rule looks at the operands, and at the stated type where the operands leave something open: the
// shape of a broadcast, or the layout of a load. A constant tile fits any layout, so a result whose
// operands are all constant takes the stated layout too.

#include "ir/ir.h"

struct query {
    struct tir_module *m;
    const struct tir_inst *inst;
    const struct tir_type *stated; // NULL: none
    tir_str *why;
};

typedef const struct tir_type *rule_fn(struct query *q);

static TIR_PRINTF(2, 3) const struct tir_type *no(struct query *q, const char *format, ...)
{
    struct tir_text text;
    tir_text_init(&text, q->m->arena, 0);
    va_list args;
    va_start(args, format);
    tir_text_vformat(&text, format, args);
    va_end(args);
    *q->why = tir_text_str(&text);
    return NULL;
}

static const char *text_of(struct query *q, const struct tir_type *t)
{
    return tir_type_text(q->m->arena, t).ptr;
}

static const struct tir_type *operand_type(const struct query *q, uint32_t i)
{
    return q->inst->operands[i]->type;
}

static const struct tir_type *scalar(const struct query *q, enum tir_elem elem)
{
    return tir_type_scalar(q->m->types, elem);
}

static const struct tir_type *nothing(const struct query *q)
{
    return scalar(q, TIR_NONE);
}

static bool same_but_layout(const struct tir_type *a, const struct tir_type *b)
{
    return a->elem == b->elem && a->space == b->space && tir_type_same_shape(a, b);
}

// t, with the stated layout if that is all the two differ in.
static const struct tir_type *with_stated_layout(struct query *q, const struct tir_type *t)
{
    return q->stated && same_but_layout(q->stated, t) ? q->stated : t;
}

// Tile t as the result of an operation on operand i, whose layout follows from the operand's.
static const struct tir_type *with_operand_layout(struct query *q, uint32_t i,
                                                  const struct tir_type *t,
                                                  const struct tir_layout *layout)
{
    if (q->inst->operands[i]->kind == TIR_VALUE_CONST)
        return with_stated_layout(q, t);
    return tir_type_with_layout(q->m->types, t, layout);
}

static bool axis_of(struct query *q, uint32_t rank, uint32_t *axis)
{
    int64_t at = tir_attr_int(q->inst, TIR_ATTR_axis, -1);
    if (at < 0 || at >= rank) {
        no(q, "axis %lld does not exist in rank %u", (long long)at, rank);
        return false;
    }
    *axis = (uint32_t)at;
    return true;
}

// Slices.

static bool add_index(struct query *q, struct tir_type *t, const struct tir_value *index,
                      int64_t box)
{
    if (!index || index->type->space != TIR_SPACE_VALUE || !tir_elem_is_int(index->type->elem)) {
        no(q, "an index must be an integer");
        return false;
    }
    if (box >= 0 ? index->type->rank > 0 : index->type->rank == 0 || box != -1) {
        no(q, "an index and its box do not agree");
        return false;
    }
    uint32_t added = box > 0 ? 1 : index->type->rank;
    if (t->rank + added > TIR_MAX_RANK) {
        no(q, "the slice has more than %d dimensions", TIR_MAX_RANK);
        return false;
    }
    for (uint32_t d = 0; d < added; d++)
        t->shape[t->rank++] = box > 0 ? box : index->type->shape[d];
    return true;
}

// The slice the instruction names, as a tile or scalar without a layout.
static const struct tir_type *slice_of(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    uint32_t fixed = tir_fixed_count(inst);
    if (inst->operand_count <= fixed || !inst->operands[fixed])
        return no(q, "the buffer is missing");
    const struct tir_type *base = operand_type(q, fixed);
    if (!tir_type_is_buffer(base))
        return no(q, "%s is not a buffer", text_of(q, base));
    if (base->elem == TIR_MBARRIER && inst->op != TIR_OP_VIEW)
        return no(q, "only operations on barriers may touch %s", text_of(q, base));
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    uint32_t given = inst->operand_count - fixed - 1;
    if (given != base->rank || (box ? box->list_count : 0) != base->rank)
        return no(q, "%u indices for a buffer of rank %u", given, base->rank);
    struct tir_type t = {.elem = base->elem};
    for (uint32_t d = 0; d < base->rank; d++)
        if (!add_index(q, &t, inst->operands[fixed + 1 + d], box->list[d]))
            return NULL;
    return tir_type_get(q->m->types, &t);
}

const struct tir_type *tir_slice_type(struct tir_module *m, const struct tir_inst *inst,
                                      tir_str *why)
{
    return slice_of(&(struct query){m, inst, NULL, why});
}

static bool mask_fits(struct query *q, uint32_t operand, const struct tir_type *slice)
{
    const struct tir_value *mask = q->inst->operands[operand];
    if (!mask)
        return true;
    const struct tir_type *t = mask->type;
    if (t->space != TIR_SPACE_VALUE || t->elem != TIR_BOOL ||
        (t->rank && !tir_type_same_shape(t, slice))) {
        no(q, "the mask is %s for a slice %s", text_of(q, t), text_of(q, slice));
        return false;
    }
    return true;
}

// Whether bar, unless it is absent, is a buffer of mbarriers.
static bool is_barrier(struct query *q, const struct tir_value *bar)
{
    if (!bar || (bar->type->elem == TIR_MBARRIER && bar->type->space == TIR_SPACE_SHARED))
        return true;
    no(q, "%s is not an mbarrier", text_of(q, bar->type));
    return false;
}

// Rules.

static const struct tir_type *rule_ring(struct query *q)
{
    const struct tir_value *ring = q->inst->operands[0];
    if (!ring->def || ring->def->op != TIR_OP_RING || ring->index != 0)
        return no(q, "%s is not the first buffer of a ring", text_of(q, ring->type));
    return q->inst->result_count && q->stated ? q->stated : nothing(q);
}

static const struct tir_type *rule_none(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    if (inst->op == TIR_OP_STORE) {
        const struct tir_type *slice = slice_of(q);
        if (!slice || !mask_fits(q, TIR_STORE_MASK, slice))
            return NULL;
        if (!same_but_layout(operand_type(q, TIR_STORE_VALUE), slice))
            return no(q, "%s stored to a slice %s", text_of(q, operand_type(q, TIR_STORE_VALUE)),
                      text_of(q, slice));
    } else if (inst->op == TIR_OP_COPY_ASYNC) {
        const struct tir_type *slice = slice_of(q), *to = operand_type(q, 0);
        if (!slice)
            return NULL;
        if (to->space != TIR_SPACE_SHARED || to->elem != slice->elem ||
            !tir_type_same_shape(to, slice))
            return no(q, "%s copied to %s", text_of(q, slice), text_of(q, to));
        return is_barrier(q, inst->operands[TIR_COPY_MBAR]) ? nothing(q) : NULL;
    } else if (inst->op == TIR_OP_STORE_ASYNC) {
        const struct tir_type *slice = slice_of(q), *from = operand_type(q, 0);
        if (!slice)
            return NULL;
        if (from->space != TIR_SPACE_SHARED || from->elem != slice->elem ||
            !tir_type_same_shape(from, slice))
            return no(q, "%s copied to %s", text_of(q, from), text_of(q, slice));
    } else if (inst->op == TIR_OP_PREFETCH || inst->op == TIR_OP_TMA_PREFETCH ||
               inst->op == TIR_OP_TMA_LOAD || inst->op == TIR_OP_TMA_STORE) {
        const struct tir_type *slice = slice_of(q);
        if (slice && tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
            return no(q, "%s is not a part of a tensor", text_of(q, slice));
        if (inst->op == TIR_OP_TMA_LOAD && !is_barrier(q, inst->operands[TIR_TMA_BAR]))
            return NULL;
        return slice ? nothing(q) : NULL;
    } else if (inst->op == TIR_OP_MBARRIER_INIT || inst->op == TIR_OP_ARRIVE ||
               inst->op == TIR_OP_WAIT) {
        if (inst->op == TIR_OP_WAIT && operand_type(q, TIR_WAIT_PARITY) != scalar(q, TIR_I32))
            return no(q, "the parity must be an i32");
        return is_barrier(q, inst->operands[TIR_BAR]) ? nothing(q) : NULL;
    } else if (inst->op == TIR_OP_BULK_LOAD) {
        return is_barrier(q, inst->operands[TIR_TMA_BAR]) ? nothing(q) : NULL;
    } else if (inst->op == TIR_OP_PUT) {
        return rule_ring(q);
    } else if (inst->op == TIR_OP_ASSUME && operand_type(q, 0) != scalar(q, TIR_BOOL)) {
        return no(q, "the condition must be a bool");
    }
    return nothing(q);
}

static const struct tir_type *rule_same(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_value *lead = inst->operands[0];
    uint32_t count = inst->op == TIR_OP_SCAN ? 1 : inst->operand_count; // then its scratch buffer
    for (uint32_t i = 1; i < count; i++)
        if (lead->kind == TIR_VALUE_CONST)
            lead = inst->operands[i];
    for (uint32_t i = 0; i < count; i++)
        if (!tir_value_fits(inst->operands[i], lead->type))
            return no(q, "operands are %s and %s", text_of(q, operand_type(q, 0)),
                      text_of(q, operand_type(q, i ? i : 1)));
    uint32_t axis;
    if (inst->op == TIR_OP_SCAN && !axis_of(q, lead->type->rank, &axis))
        return NULL;
    return lead->kind == TIR_VALUE_CONST ? with_stated_layout(q, lead->type) : lead->type;
}

static const struct tir_type *rule_first(struct query *q)
{
    if (!tir_type_is_scalar(operand_type(q, 0)) || operand_type(q, 1) != scalar(q, TIR_I32))
        return no(q, "the value must be a scalar and the lane an i32");
    return operand_type(q, 0);
}

static const struct tir_type *rule_compare(struct query *q)
{
    struct query of_operands = *q;
    const struct tir_type *stated = q->stated;
    if (stated)
        of_operands.stated = tir_type_with_elem(q->m->types, stated, operand_type(q, 0)->elem);
    const struct tir_type *t = rule_same(&of_operands);
    return t ? tir_type_with_elem(q->m->types, t, TIR_BOOL) : NULL;
}

static const struct tir_type *rule_select(struct query *q)
{
    struct tir_value *const *v = q->inst->operands;
    const struct tir_value *lead = v[1]->kind == TIR_VALUE_CONST ? v[2] : v[1];
    const struct tir_type *t = lead->type;
    if (lead->kind == TIR_VALUE_CONST) {
        t = v[0]->kind == TIR_VALUE_CONST
                ? with_stated_layout(q, t)
                : tir_type_with_layout(q->m->types, t, v[0]->type->layout);
    }
    if (!tir_value_fits(v[1], t) || !tir_value_fits(v[2], t))
        return no(q, "the choices are %s and %s", text_of(q, v[1]->type), text_of(q, v[2]->type));
    if (!tir_value_fits(v[0], tir_type_with_elem(q->m->types, t, TIR_BOOL)))
        return no(q, "the condition is %s for %s", text_of(q, v[0]->type), text_of(q, t));
    return t;
}

static const struct tir_type *rule_permute(struct query *q)
{
    const struct tir_type *x = operand_type(q, 0);
    const struct tir_attr *order = tir_attr_find(q->inst, TIR_ATTR_permutation);
    if (!order || order->list_count != x->rank)
        return no(q, "the permutation does not fit %s", text_of(q, x));
    struct tir_type t = {.elem = x->elem, .space = x->space, .rank = x->rank};
    uint32_t seen = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t from = order->list[d];
        if (from < 0 || from >= x->rank || (seen >> from & 1))
            return no(q, "not a permutation of %u dimensions", x->rank);
        seen |= 1u << from;
        t.shape[d] = x->shape[from];
    }
    const struct tir_layout *layout =
        x->layout ? tir_layout_permute(q->m->types, x->layout, order->list) : NULL;
    return with_operand_layout(q, 0, tir_type_get(q->m->types, &t), layout);
}

static const struct tir_type *rule_reduce(struct query *q)
{
    const struct tir_type *x = operand_type(q, 0);
    uint32_t axis;
    if (!axis_of(q, tir_type_is_tile(x) ? x->rank : 0, &axis))
        return NULL;
    struct tir_type t = *x;
    t.layout = NULL;
    t.shape[axis] = 1;
    const struct tir_layout *layout =
        x->layout ? tir_layout_slice(q->m->types, x->layout, axis) : NULL;
    return with_operand_layout(q, 0, tir_type_get(q->m->types, &t), layout);
}

// NONE: they do not multiply. Of 16 and 8 bits, sums are f16 where the accumulator is.
static enum tir_elem dot_acc(enum tir_elem a, enum tir_elem b, enum tir_elem acc)
{
    bool fp8 = (a == TIR_E4M3 || a == TIR_E5M2) && (b == TIR_E4M3 || b == TIR_E5M2);
    bool int8 = (a == TIR_I8 || a == TIR_U8) && (b == TIR_I8 || b == TIR_U8);
    if (int8)
        return TIR_I32;
    if (!fp8 && (a != b || !tir_elem_is_float(a)))
        return TIR_NONE;
    if (acc == TIR_F16 && (fp8 || a == TIR_F16))
        return TIR_F16;
    return a == TIR_F64 ? TIR_F64 : TIR_F32;
}

static const struct tir_type *rule_dot(struct query *q)
{
    const struct tir_type *a = operand_type(q, TIR_DOT_A), *b = operand_type(q, TIR_DOT_B);
    const struct tir_type *acc = operand_type(q, TIR_DOT_ACC);
    const struct tir_type *both[] = {a, b};
    for (uint32_t i = 0; i < 2; i++)
        if (both[i]->rank != 2 ||
            (both[i]->space != TIR_SPACE_VALUE && both[i]->space != TIR_SPACE_SHARED))
            return no(q, "%s is not a tile of rank 2", text_of(q, both[i]));
    if (a->shape[1] != b->shape[0])
        return no(q, "%s and %s do not multiply", text_of(q, a), text_of(q, b));
    const struct tir_type *t = tir_type_tile(q->m->types, dot_acc(a->elem, b->elem, acc->elem), 2,
                                             (int64_t[]){a->shape[0], b->shape[1]});
    if (t->elem == TIR_NONE)
        return no(q, "%s and %s do not multiply", text_of(q, a), text_of(q, b));
    if (!same_but_layout(acc, t))
        return no(q, "the sum is %s where %s is needed", text_of(q, acc), text_of(q, t));
    return with_operand_layout(q, TIR_DOT_ACC, t, acc->layout);
}

static const struct tir_type *rule_load(struct query *q)
{
    const struct tir_type *slice = slice_of(q);
    if (!slice || !mask_fits(q, TIR_LOAD_MASK, slice))
        return NULL;
    const struct tir_value *pad = q->inst->operands[TIR_LOAD_PAD];
    if (pad && pad->type != scalar(q, slice->elem))
        return no(q, "the pad is %s for %s", text_of(q, pad->type), text_of(q, slice));
    return with_stated_layout(q, slice);
}

static bool combines(struct query *q, enum tir_elem elem)
{
    enum tir_word kind = tir_attr_word(q->inst, TIR_ATTR_kind, TIR_WORD_NONE);
    bool bitwise =
        kind == TIR_WORD_kind_and || kind == TIR_WORD_kind_or || kind == TIR_WORD_kind_xor;
    if (!bitwise || !tir_elem_is_float(elem))
        return true;
    no(q, "an atomic `%s` combines integers, not %s", tir_words[kind].name, tir_elems[elem].name);
    return false;
}

static const struct tir_type *rule_atomic(struct query *q)
{
    const struct tir_type *slice = slice_of(q), *value = operand_type(q, TIR_STORE_VALUE);
    if (!slice || !mask_fits(q, TIR_STORE_MASK, slice) || !combines(q, slice->elem))
        return NULL;
    if (tir_ref_base(q->inst)->type->space == TIR_SPACE_LOCAL)
        return no(q, "an atomic on a local buffer, which no other thread can see");
    if (!same_but_layout(value, slice))
        return no(q, "%s combined with a slice %s", text_of(q, value), text_of(q, slice));
    return with_operand_layout(q, TIR_STORE_VALUE, slice, value->layout);
}

static const struct tir_type *rule_atom(struct query *q)
{
    const struct tir_type *value = operand_type(q, 2);
    if (!tir_type_is_scalar(value) || value->elem != operand_type(q, 0)->elem)
        return no(q, "%s combined with %s", text_of(q, value), text_of(q, operand_type(q, 0)));
    return combines(q, value->elem) ? value : NULL;
}

static const struct tir_type *rule_view(struct query *q)
{
    const struct tir_type *slice = slice_of(q);
    if (!slice)
        return NULL;
    const struct tir_type *base = operand_type(q, 0);
    const struct tir_attr *box = tir_attr_find(q->inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < base->rank; d++)
        if (box->list[d] < 0)
            return no(q, "a view has no index tiles");
    if (base->space == TIR_SPACE_GLOBAL)
        return no(q, "a view is of a shared or local buffer");
    struct tir_type t = *slice;
    t.space = base->space;
    return with_stated_layout(q, tir_type_get(q->m->types, &t));
}

static const struct tir_type *rule_index(struct query *q)
{
    const struct tir_type *of = operand_type(q, 0);
    uint32_t axis;
    if (of->space != TIR_SPACE_GLOBAL)
        return no(q, "%s is not a tensor", text_of(q, of));
    return axis_of(q, of->rank, &axis) ? scalar(q, TIR_I64) : NULL;
}

static const struct tir_type *rule_i32(struct query *q)
{
    int64_t axis = tir_attr_int(q->inst, TIR_ATTR_axis, 0);
    if (axis < 0 || axis > 2)
        return no(q, "a grid has axes 0 to 2");
    if (q->inst->op == TIR_OP_ALIGNMENT && operand_type(q, 0)->space != TIR_SPACE_GLOBAL)
        return no(q, "%s is not a tensor", text_of(q, operand_type(q, 0)));
    return scalar(q, TIR_I32);
}

// verify.c compares every carried and yielded value; here only the first result is asked for.
static const struct tir_type *rule_carried(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    uint32_t fixed = tir_carried_at(inst);
    if (inst->operand_count < fixed)
        return no(q, "%u operands for %u extents", inst->operand_count, fixed);
    for (uint32_t i = 0; i < fixed; i++)
        if (!tir_type_is_scalar(operand_type(q, i)) || operand_type(q, i) != operand_type(q, 0) ||
            !tir_elem_is_int(operand_type(q, i)->elem))
            return no(q, "the bounds must be integers of one type");
    if (inst->operand_count == fixed)
        return nothing(q);
    const struct tir_value *init = inst->operands[fixed];
    return q->stated && tir_value_fits(init, q->stated) ? q->stated : init->type;
}

static const struct tir_type *rule_yielded(struct query *q)
{
    if (operand_type(q, 0) != scalar(q, TIR_BOOL))
        return no(q, "the condition must be a bool");
    return q->stated ? q->stated : nothing(q);
}

static const struct tir_type *rule_bool(struct query *q)
{
    return scalar(q, TIR_BOOL);
}

// Stated types, by operation.

static const struct tir_type *stated_cast(struct query *q)
{
    const struct tir_type *x = operand_type(q, 0), *t = q->stated;
    if (t->elem == TIR_MBARRIER)
        return no(q, "an mbarrier is no value");
    if (!tir_value_fits(q->inst->operands[0], tir_type_with_elem(q->m->types, t, x->elem)))
        return no(q, "%s is cast to %s", text_of(q, x), text_of(q, t));
    if (q->inst->op == TIR_OP_BITCAST && tir_elems[x->elem].bits != tir_elems[t->elem].bits)
        return no(q, "%s and %s have different widths", text_of(q, x), text_of(q, t));
    return t;
}

static const struct tir_type *stated_broadcast(struct query *q)
{
    const struct tir_type *x = operand_type(q, 0), *t = q->stated;
    bool fits = tir_type_is_tile(t) && x->elem == t->elem && x->space == TIR_SPACE_VALUE &&
                (x->rank == 0 || x->rank == t->rank);
    for (uint32_t d = 0; fits && d < x->rank; d++)
        fits = x->shape[d] == 1 || x->shape[d] == t->shape[d];
    return fits ? t : no(q, "%s cannot be repeated as %s", text_of(q, x), text_of(q, t));
}

static const struct tir_type *stated_reshape(struct query *q)
{
    const struct tir_type *x = operand_type(q, 0), *t = q->stated;
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < x->rank && x->shape[i] == 1)
            i++;
        while (j < t->rank && t->shape[j] == 1)
            j++;
        if (i == x->rank || j == t->rank || x->shape[i] != t->shape[j])
            break;
        i++;
        j++;
    }
    if (i < x->rank || j < t->rank || x->elem != t->elem || x->space != TIR_SPACE_VALUE ||
        t->space != TIR_SPACE_VALUE)
        return no(q, "%s is not %s but for dimensions of size 1", text_of(q, x), text_of(q, t));
    return t;
}

static bool all_32_bits(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (tir_elems[inst->results[i]->type->elem].bits != 32)
            return false;
    return true;
}

static uint64_t bits_of(struct tir_value *const *values, uint32_t count)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits += tir_elems[values[i]->type->elem].bits;
    return bits;
}

static const struct tir_type *stated_machine(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    uint64_t bits = bits_of(inst->results, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (!tir_type_is_scalar(inst->results[i]->type))
            return no(q, "results must be scalars");
    switch ((int)inst->op) {
    case TIR_OP_LD:
        if (bits != 8 * (uint64_t)tir_attr_int(inst, TIR_ATTR_width, 0))
            return no(q, "the results have %llu bits", (unsigned long long)bits);
        break;
    case TIR_OP_LDMATRIX:
        if (!tir_is_pow2(inst->result_count) || inst->result_count > 4 || !all_32_bits(inst))
            return no(q, "the results must be 1, 2 or 4 values of 32 bits");
        break;
    case TIR_OP_PACK:
    case TIR_OP_UNPACK:
        if (bits != bits_of(inst->operands, inst->operand_count))
            return no(q, "the parts and the whole differ in bits");
        break;
    default:
        break;
    }
    return q->stated;
}

static const struct tir_type *stated_extract(struct query *q)
{
    const struct tir_type *x = operand_type(q, 0), *t = q->stated;
    const struct tir_attr *start = tir_attr_find(q->inst, TIR_ATTR_start);
    bool fits = tir_type_is_tile(t) && tir_type_is_tile(x) && x->elem == t->elem &&
                x->rank == t->rank && start && start->list_count == t->rank;
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = start->list[d] >= 0 && start->list[d] <= x->shape[d] - t->shape[d];
    return fits ? t : no(q, "%s is no part of %s", text_of(q, t), text_of(q, x));
}

static const struct tir_type *stated_remote(struct query *q)
{
    struct tir_type t = *operand_type(q, 0);
    if (t.space != TIR_SPACE_SHARED || operand_type(q, 1) != scalar(q, TIR_I32))
        return no(q, "a shared buffer and the i32 number of a CTA are needed");
    t.space = TIR_SPACE_CLUSTER;
    return tir_type_get(q->m->types, &t);
}

static const struct tir_type *stated_ring(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    int64_t stages = tir_attr_int(inst, TIR_ATTR_stages, 0);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *t = inst->results[i]->type;
        if (t->space != TIR_SPACE_SHARED || !t->rank || t->shape[0] != stages)
            return no(q, "%s does not have %lld slots", text_of(q, t), (long long)stages);
    }
    return q->stated;
}

static const struct tir_type *stated_wait(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    bool fits = inst->result_count == inst->operand_count;
    for (uint32_t i = 0; fits && i < inst->result_count; i++)
        fits = inst->results[i]->type == inst->operands[i]->type;
    return fits ? q->stated : no(q, "the values after the wait are not those before it");
}

static const struct tir_type *stated_vote(struct query *q)
{
    bool ballot = tir_attr_word(q->inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_ballot;
    if (operand_type(q, 0) != scalar(q, TIR_BOOL))
        return no(q, "the vote must be a bool");
    return scalar(q, ballot ? TIR_U32 : TIR_BOOL);
}

static const struct tir_type *rule_stated(struct query *q)
{
    const struct tir_type *t = q->stated;
    uint32_t axis;
    if (q->inst->op == TIR_OP_VOTE)
        return stated_vote(q);
    if (q->inst->result_count == 0 && tir_ops[q->inst->op].result_count == TIR_MANY && !t)
        return nothing(q);
    if (q->inst->op == TIR_OP_REMOTE)
        return stated_remote(q);
    if (!t)
        return no(q, "the result type must be stated");
    switch ((int)q->inst->op) {
    case TIR_OP_CAST:
    case TIR_OP_BITCAST:
        return stated_cast(q);
    case TIR_OP_BROADCAST:
        return stated_broadcast(q);
    case TIR_OP_RESHAPE:
        return stated_reshape(q);
    case TIR_OP_IOTA:
        if (!tir_type_is_tile(t) || !tir_elem_is_int(t->elem))
            return no(q, "indices must be a tile of integers");
        return axis_of(q, t->rank, &axis) ? t : NULL;
    case TIR_OP_CONVERT_LAYOUT:
        if (!t->layout || !same_but_layout(operand_type(q, 0), t))
            return no(q, "%s cannot become %s", text_of(q, operand_type(q, 0)), text_of(q, t));
        return t;
    case TIR_OP_EXTRACT:
        return stated_extract(q);
    case TIR_OP_RING:
        return stated_ring(q);
    case TIR_OP_AWAIT:
        return stated_wait(q);
    case TIR_OP_ALLOC:
        if (t->space != TIR_SPACE_SHARED && t->space != TIR_SPACE_LOCAL)
            return no(q, "a buffer must be shared or local");
        return t;
    default:
        return stated_machine(q);
    }
}

// Before the rule: what every row asks of its operands.

static bool elem_in_class(enum tir_elem e, enum tir_elem_class elems)
{
    bool is_int = tir_elem_is_int(e), is_float = tir_elem_is_float(e);
    switch (elems) {
    case TIR_CLASS_ANY:
        return true;
    case TIR_CLASS_NUM:
        return is_int || is_float;
    case TIR_CLASS_FLOAT:
        return is_float;
    case TIR_CLASS_INT:
        return is_int;
    case TIR_CLASS_BITS:
        return is_int || e == TIR_BOOL;
    }
    tir_unreachable();
}

static bool operand_fits(struct query *q, const struct tir_operand_info *info,
                         const struct tir_value *v)
{
    enum tir_op op = q->inst->op;
    bool may_be_buffer = op == TIR_OP_DOT || op == TIR_OP_COPY_ASYNC || op == TIR_OP_PERMUTE ||
                         op == TIR_OP_GEMM_ASYNC || op == TIR_OP_STORE_ASYNC;
    bool is_mbar = !strcmp(info->name, "mbar") || !strcmp(info->name, "bar");
    if (v && !strcmp(info->name, "scratch"))
        return v->type->space == TIR_SPACE_SHARED || (no(q, "scratch must be shared"), false);
    if (!v) {
        if (info->kind != TIR_OPERAND_OPT)
            no(q, "operand %s is missing", info->name);
        return info->kind == TIR_OPERAND_OPT;
    }
    if (v->type->elem == TIR_MBARRIER && tir_has_trait(q->inst, TIR_READS) && !is_mbar) {
        no(q, "only operations on barriers may touch %s", text_of(q, v->type));
        return false;
    }
    if (v->type->elem == TIR_NONE ||
        (info->kind == TIR_OPERAND_BUF && !tir_type_is_buffer(v->type)) ||
        (info->kind != TIR_OPERAND_BUF && !may_be_buffer && !is_mbar &&
         tir_type_is_buffer(v->type))) {
        no(q, "operand %s cannot be %s", info->name, text_of(q, v->type));
        return false;
    }
    if (info->kind == TIR_OPERAND_IN && !elem_in_class(v->type->elem, tir_ops[op].elems)) {
        no(q, "operand %s cannot be %s", info->name, text_of(q, v->type));
        return false;
    }
    return true;
}

static bool operands_fit(struct query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t fixed = op->fixed_count, at = 0;
    if (inst->operand_count < fixed ||
        (inst->operand_count > fixed && !op->has_ref && !op->has_list)) {
        no(q, "%u operands", inst->operand_count);
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i].kind != TIR_OPERAND_REF && op->operands[i].kind != TIR_OPERAND_LIST &&
            !operand_fits(q, &op->operands[i], inst->operands[at++]))
            return false;
    for (uint32_t i = fixed; i < inst->operand_count; i++)
        if (!inst->operands[i]) {
            no(q, "operand %u is missing", i);
            return false;
        }
    return true;
}

const struct tir_type *tir_infer(struct tir_module *m, const struct tir_inst *inst,
                                 const struct tir_type *stated, tir_str *why)
{
    static rule_fn *const rules[] = {
        [TIR_RULE_NONE] = rule_none,       [TIR_RULE_SAME] = rule_same,
        [TIR_RULE_FIRST] = rule_first,     [TIR_RULE_COMPARE] = rule_compare,
        [TIR_RULE_SELECT] = rule_select,   [TIR_RULE_STATED] = rule_stated,
        [TIR_RULE_PERMUTE] = rule_permute, [TIR_RULE_REDUCE] = rule_reduce,
        [TIR_RULE_DOT] = rule_dot,         [TIR_RULE_LOAD] = rule_load,
        [TIR_RULE_ATOMIC] = rule_atomic,   [TIR_RULE_ATOM] = rule_atom,
        [TIR_RULE_VIEW] = rule_view,       [TIR_RULE_INDEX] = rule_index,
        [TIR_RULE_I32] = rule_i32,         [TIR_RULE_CARRIED] = rule_carried,
        [TIR_RULE_YIELDED] = rule_yielded, [TIR_RULE_RING] = rule_ring,
        [TIR_RULE_BOOL] = rule_bool,
    };
    struct query q = {m, inst, stated, why};
    return operands_fit(&q) ? rules[tir_ops[inst->op].rule](&q) : NULL;
}
