// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, what reductions and scans share: the operation on two values, values of other lanes,
// and the scratch buffer in which warps exchange theirs.

#include "pass/lower/combine.h"

#include "ir/walk.h"

static const struct tir_type *work_type(struct lower *lo, enum tir_elem elem, enum tir_word kind)
{
    if (kind == TIR_WORD_kind_user)
        return tir_type_scalar(lo->types, elem);
    if (elem == TIR_BOOL)
        return lo->i32;
    if (tir_elems[elem].bits >= 32)
        return tir_type_scalar(lo->types, elem == TIR_TF32 ? TIR_F32 : elem);
    if (tir_elem_is_float(elem))
        return tir_type_scalar(lo->types, TIR_F32);
    return tir_elems[elem].kind == TIR_KIND_UNSIGNED ? lo->u32 : lo->i32;
}

struct combine tir_combine_open(struct lower *lo, struct tir_inst *inst)
{
    const struct tir_type *t = inst->operands[TIR_REDUCE_X]->type;
    struct combine c = {.lo = lo, .inst = inst, .elem = t->elem, .layout = t->layout};
    c.kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_kind_sum);
    c.axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    c.work = work_type(lo, c.elem, c.kind);
    return c;
}

struct tir_value *tir_combine_apply(struct combine *c, struct tir_value *x, struct tir_value *y)
{
    struct lower *lo = c->lo;
    switch (c->kind) {
    case TIR_WORD_kind_sum:
        return tir_binary(&lo->b, TIR_OP_ADD, x, y);
    case TIR_WORD_kind_prod:
        return tir_binary(&lo->b, TIR_OP_MUL, x, y);
    case TIR_WORD_kind_min:
        return tir_binary(&lo->b, TIR_OP_MIN, x, y);
    case TIR_WORD_kind_max:
        return tir_binary(&lo->b, TIR_OP_MAX, x, y);
    case TIR_WORD_kind_and:
    case TIR_WORD_kind_all:
        return tir_binary(&lo->b, TIR_OP_AND, x, y);
    case TIR_WORD_kind_or:
    case TIR_WORD_kind_any:
        return tir_binary(&lo->b, TIR_OP_OR, x, y);
    case TIR_WORD_kind_xor:
        return tir_binary(&lo->b, TIR_OP_XOR, x, y);
    default: { // the program's own function
        const struct tir_block *body = c->inst->regions[0];
        struct tir_map map;
        tir_map_init(&map, lo->cx->scratch);
        tir_map_set(&map, tir_map_key(body->args[0]), x);
        tir_map_set(&map, tir_map_key(body->args[1]), y);
        tir_clone_into(&lo->b, body, &map);
        struct tir_value *result = tir_yield_of(body)->operands[0];
        struct tir_value *mapped = tir_map_get(&map, tir_map_key(result));
        return mapped ? mapped : result;
    }
    }
}

struct tir_value *tir_combine_to_work(struct combine *c, struct tir_value *x)
{
    return tir_lower_cast(c->lo, &c->lo->b, x, c->work);
}

struct tir_value *tir_combine_from_work(struct combine *c, struct tir_value *x)
{
    struct lower *lo = c->lo;
    if (c->elem == TIR_BOOL && x->type != lo->boolean)
        return tir_binary(&lo->b, TIR_OP_NE, x, tir_const_int(lo->f, x->type, 0));
    return tir_lower_cast(lo, &lo->b, x, tir_type_scalar(lo->types, c->elem));
}

// Booleans, which only a program's own function leaves as they are, go as i32.
struct tir_value *tir_combine_shuffle(struct combine *c, struct tir_value *x, enum tir_word mode,
                                      struct tir_value *lane)
{
    struct lower *lo = c->lo;
    bool is_bool = x->type == lo->boolean;
    if (is_bool)
        x = tir_lower_cast(lo, &lo->b, x, lo->i32);
    struct tir_value *operands[] = {x, lane};
    struct tir_value *y = tir_build1(&lo->b, TIR_OP_SHUFFLE, x->type, operands, 2);
    tir_set_word(lo->f, y->def, TIR_ATTR_mode, mode);
    return is_bool ? tir_binary(&lo->b, TIR_OP_NE, y, tir_lower_i32(lo, 0)) : y;
}

// Pairwise, so that the dependence is short.
struct tir_value *tir_combine_tree(struct combine *c, struct tir_value **values, uint32_t count)
{
    while (count > 1) {
        uint32_t half = count / 2;
        for (uint32_t i = 0; i < half; i++)
            values[i] = tir_combine_apply(c, values[2 * i], values[2 * i + 1]);
        if (count % 2)
            values[half] = values[count - 1];
        count = half + count % 2;
    }
    return values[0];
}

struct tir_value *tir_combine_part(struct combine *c, enum tir_axis axis, uint32_t begin,
                                   uint32_t end, uint32_t *count)
{
    struct lower *lo = c->lo;
    struct tir_value *part = NULL;
    *count = 1;
    for (uint32_t i = end; i-- > begin;) {
        const struct tir_iter *it = &c->layout->iters[i];
        if (it->axis != axis)
            continue;
        struct tir_value *digit = tir_lower_digit(lo, &lo->top, tir_lower_thread(lo, axis),
                                                  it->stride, it->extent, false);
        part = tir_lower_add(lo, &lo->top, part, tir_lower_mul_const(lo, &lo->top, digit, *count));
        *count *= it->extent;
    }
    return part ? part : tir_lower_i32(lo, 0);
}

struct combine_lines tir_combine_lines(struct combine *c)
{
    struct lower *lo = c->lo;
    struct combine_lines lines = {.count = 1};
    for (uint32_t d = c->layout->rank; d-- > 0;) {
        if (d == c->axis)
            continue;
        lines.stride[d] = lines.count;
        lines.count *= c->layout->shape[d];
        struct tir_value *part =
            tir_lower_mul_const(lo, &lo->top, tir_lower_coord(lo, c->layout, d), lines.stride[d]);
        lines.thread = tir_lower_add(lo, &lo->top, lines.thread, part);
    }
    if (!lines.thread)
        lines.thread = tir_lower_i32(lo, 0);
    return lines;
}

int64_t tir_combine_line(const struct combine *c, const struct combine_lines *lines,
                         const struct tir_layout *l, uint32_t reg)
{
    int64_t coord[TIR_MAX_RANK], line = 0;
    tir_layout_coord(l, (struct tir_layout_at){{reg, 0, 0}}, coord);
    for (uint32_t d = 0; d < l->rank; d++)
        if (d != c->axis)
            line += coord[d] * lines->stride[d];
    return line;
}

// Place of entry (part, line) of the scratch buffer, which has `lines` entries a part.
struct lower_place tir_combine_entry(struct combine *c, const struct combine_lines *lines,
                                     struct tir_value *part, int64_t part_constant, int64_t line)
{
    struct lower *lo = c->lo;
    int64_t bytes = TIR_MAX(1, tir_elems[c->elem].bits / 8);
    struct tir_value *at = tir_lower_mul_const(lo, &lo->b, lines->thread, bytes);
    at = tir_lower_add(lo, &lo->b, at,
                       part ? tir_lower_mul_const(lo, &lo->b, part, lines->count * bytes) : NULL);
    int64_t offset = (part_constant * lines->count + line) * bytes;
    return (struct lower_place){c->inst->operands[TIR_REDUCE_SCRATCH], at, offset, NULL};
}

void tir_combine_write(struct combine *c, struct lower_place p, struct tir_value *x,
                       struct tir_value *pred)
{
    struct tir_value *v = tir_combine_from_work(c, x);
    p.pred = pred;
    tir_lower_st_vector(c->lo, &p, 1, &v);
}

struct tir_value *tir_combine_read(struct combine *c, struct lower_place p)
{
    struct tir_value *v;
    tir_lower_ld_vector(c->lo, &p, c->elem, 1, &v);
    return tir_combine_to_work(c, v);
}

struct tir_value *tir_combine_is_zero(struct lower *lo, struct tir_value *x)
{
    return tir_binary(&lo->b, TIR_OP_EQ, x, tir_lower_i32(lo, 0));
}
