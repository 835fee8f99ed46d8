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
    struct combine c = {.lo = lo, .inst = inst, .count = inst->result_count, .layout = t->layout};
    c.kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_kind_sum);
    c.axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    const struct tir_builder at = lo->b;
    for (uint32_t r = 0; r < inst->region_count; r++)
        tir_lower_block(lo, inst->regions[r]); // once, for all copies of the program's own function
    lo->b = at;
    for (uint32_t i = 0; i < c.count; i++) {
        c.elem[i] = inst->results[i]->type->elem;
        c.work[i] = work_type(lo, c.elem[i], c.kind);
    }
    return c;
}

struct tuple *tir_combine_tuples(struct combine *c, uint32_t count)
{
    return arena_array(c->lo->cx->scratch, struct tuple, count);
}

static struct tir_value *to_work(struct combine *c, uint32_t i, struct tir_value *x)
{
    return tir_lower_cast(c->lo, &c->lo->b, x, c->work[i]);
}

static struct tir_value *from_work(struct combine *c, uint32_t i, struct tir_value *x)
{
    struct lower *lo = c->lo;
    if (c->elem[i] == TIR_BOOL && x->type != lo->boolean)
        return tir_binary(&lo->b, TIR_OP_NE, x, tir_const_int(lo->f, x->type, 0));
    return tir_lower_cast(lo, &lo->b, x, tir_type_scalar(lo->types, c->elem[i]));
}

struct tuple tir_combine_register(struct combine *c, uint32_t reg)
{
    struct tuple x = {{NULL}};
    for (uint32_t i = 0; i < c->count; i++) {
        struct tir_value *tile = c->inst->operands[tir_combined_at(c->inst, i)];
        x.of[i] = to_work(c, i, tir_lower_register(c->lo, tile, reg));
    }
    return x;
}

void tir_combine_set_results(struct combine *c, const struct tuple *out)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct tir_value *result = c->inst->results[i];
        uint32_t count = tir_lower_register_count(result->type);
        struct tir_value **registers = tir_lower_new_registers(c->lo, count);
        for (uint32_t r = 0; r < count; r++)
            registers[r] = from_work(c, i, out[r].of[i]);
        tir_lower_set_registers(c->lo, result, registers);
    }
}

// The program's own function.
static struct tuple apply_user(struct combine *c, struct tuple x, struct tuple y)
{
    struct lower *lo = c->lo;
    const struct tir_block *body = c->inst->regions[0];
    struct tir_map map;
    tir_map_init(&map, lo->cx->scratch);
    for (uint32_t i = 0; i < c->count; i++) {
        tir_map_set(&map, tir_map_key(body->args[i]), x.of[i]);
        tir_map_set(&map, tir_map_key(body->args[c->count + i]), y.of[i]);
    }
    tir_clone_into(&lo->b, body, &map);
    for (uint32_t i = 0; i < c->count; i++) {
        struct tir_value *result = tir_yield_of(body)->operands[i];
        struct tir_value *mapped = tir_map_get(&map, tir_map_key(result));
        x.of[i] = mapped ? mapped : result;
    }
    return x;
}

struct tuple tir_combine_apply(struct combine *c, struct tuple x, struct tuple y)
{
    const enum tir_op op = tir_op_of_kind(c->kind);
    if (op != TIR_OP_COUNT)
        return (struct tuple){{tir_binary(&c->lo->b, op, x.of[0], y.of[0])}};
    return apply_user(c, x, y);
}

struct tuple tir_combine_choose(struct combine *c, struct tir_value *cond, struct tuple x,
                                struct tuple y)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct tir_value *operands[] = {cond, x.of[i], y.of[i]};
        x.of[i] = tir_build1(&c->lo->b, TIR_OP_WHERE, x.of[i]->type, operands, 3);
    }
    return x;
}

// Booleans, which only a program's own function leaves as they are, go as i32.
static struct tir_value *shuffle(struct lower *lo, struct tir_value *x, enum tir_word mode,
                                 struct tir_value *lane)
{
    bool is_bool = x->type == lo->boolean;
    if (is_bool)
        x = tir_lower_cast(lo, &lo->b, x, lo->i32);
    struct tir_value *operands[] = {x, lane};
    struct tir_value *y = tir_build1(&lo->b, TIR_OP_SHUFFLE, x->type, operands, 2);
    tir_set_word(lo->f, y->def, TIR_ATTR_mode, mode);
    return is_bool ? tir_binary(&lo->b, TIR_OP_NE, y, tir_lower_i32(lo, 0)) : y;
}

struct tuple tir_combine_shuffle(struct combine *c, struct tuple x, enum tir_word mode,
                                 struct tir_value *lane)
{
    for (uint32_t i = 0; i < c->count; i++)
        x.of[i] = shuffle(c->lo, x.of[i], mode, lane);
    return x;
}

// Pairwise, so that the dependence is short.
struct tuple tir_combine_tree(struct combine *c, struct tuple *values, uint32_t count)
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

static int64_t entry_bytes(const struct combine *c)
{
    return TIR_MAX(1, tir_elems[c->inst->operands[TIR_REDUCE_SCRATCH]->type->elem].bits / 8);
}

// Place of entry (part, line) of the scratch buffer, which has `lines` entries a part. The entries
// of each further tile come after all of the one before.
struct lower_place tir_combine_entry(struct combine *c, const struct combine_lines *lines,
                                     struct tir_value *part, int64_t part_constant, int64_t line)
{
    struct lower *lo = c->lo;
    int64_t bytes = entry_bytes(c);
    struct tir_value *at = tir_lower_mul_const(lo, &lo->b, lines->thread, bytes);
    at = tir_lower_add(lo, &lo->b, at,
                       part ? tir_lower_mul_const(lo, &lo->b, part, lines->count * bytes) : NULL);
    int64_t offset = (part_constant * lines->count + line) * bytes;
    return (struct lower_place){c->inst->operands[TIR_REDUCE_SCRATCH], at, offset, NULL};
}

// The distance of an entry of one tile from that of the next.
static int64_t next_tile(const struct combine *c)
{
    const struct tir_value *scratch = c->inst->operands[TIR_REDUCE_SCRATCH];
    return tir_type_count(scratch->type) / c->count * entry_bytes(c);
}

void tir_combine_write(struct combine *c, struct lower_place p, struct tuple x,
                       struct tir_value *pred)
{
    p.pred = pred;
    for (uint32_t i = 0; i < c->count; i++, p.offset += next_tile(c)) {
        struct tir_value *v = from_work(c, i, x.of[i]);
        tir_lower_st_vector(c->lo, &p, 1, &v);
    }
}

struct tuple tir_combine_read(struct combine *c, struct lower_place p)
{
    struct tuple x = {{NULL}};
    for (uint32_t i = 0; i < c->count; i++, p.offset += next_tile(c)) {
        struct tir_value *v;
        tir_lower_ld_vector(c->lo, &p, c->elem[i], 1, &v);
        x.of[i] = to_work(c, i, v);
    }
    return x;
}

struct tir_value *tir_combine_is_zero(struct lower *lo, struct tir_value *x)
{
    return tir_binary(&lo->b, TIR_OP_EQ, x, tir_lower_i32(lo, 0));
}
