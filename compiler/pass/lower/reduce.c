// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, reductions and scans: within the thread, then over lanes, then over warps.
//
//     let s: f32[1, 1] in L = reduce(x, axis = 1, kind = sum);      // x over registers, lanes,
//     warps
// becomes
//     let t: f32 = add(add(x0, x1), add(x2, x3));
//     let u: f32 = add(t, shuffle(t, 16, mode = bfly));   ...       // 16, 8, 4, 2, 1
//     st(scratch, mul(warp, 4), u, pred = first lane);   bar_sync();
//     let s: f32 = add(ld(scratch), ld(scratch, offset = 4)) ...
//
// Elements narrower than 32 bits are combined as f32 or i32 and rounded once at the end, unless the
// program gives its own function. The order of combination is fixed by the layout, so results
// repeat from run to run.

#include "ir/walk.h"
#include "pass/lower/lower.h"

struct combine {
    struct lower *lo;
    struct tir_inst *inst;
    enum tir_word kind;
    enum tir_elem elem;
    const struct tir_type *work; // the type values are combined in
    const struct tir_layout *layout;
    uint32_t axis;
};

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

static struct combine open_combine(struct lower *lo, struct tir_inst *inst)
{
    const struct tir_type *t = inst->operands[TIR_REDUCE_X]->type;
    struct combine c = {.lo = lo, .inst = inst, .elem = t->elem, .layout = t->layout};
    c.kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_kind_sum);
    c.axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    c.work = work_type(lo, c.elem, c.kind);
    return c;
}

static struct tir_value *apply(struct combine *c, struct tir_value *x, struct tir_value *y)
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

static struct tir_value *to_work(struct combine *c, struct tir_value *x)
{
    return tir_lower_cast(c->lo, &c->lo->b, x, c->work);
}

static struct tir_value *from_work(struct combine *c, struct tir_value *x)
{
    struct lower *lo = c->lo;
    if (c->elem == TIR_BOOL && x->type != lo->boolean)
        return tir_binary(&lo->b, TIR_OP_NE, x, tir_const_int(lo->f, x->type, 0));
    return tir_lower_cast(lo, &lo->b, x, tir_type_scalar(lo->types, c->elem));
}

// x of another lane. Booleans, which only a program's own function leaves as they are, go as i32.
static struct tir_value *shuffle(struct combine *c, struct tir_value *x, enum tir_word mode,
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

// Pairwise, so that the dependence is short. values are overwritten.
static struct tir_value *combine_tree(struct combine *c, struct tir_value **values, uint32_t count)
{
    while (count > 1) {
        uint32_t half = count / 2;
        for (uint32_t i = 0; i < half; i++)
            values[i] = apply(c, values[2 * i], values[2 * i + 1]);
        if (count % 2)
            values[half] = values[count - 1];
        count = half + count % 2;
    }
    return values[0];
}

// Warps (and lanes) along the axis as one number each: the position of this warp among those that
// hold parts of one line, outermost iterator most significant.
static struct tir_value *part_along(struct combine *c, enum tir_axis axis, uint32_t *count)
{
    struct lower *lo = c->lo;
    const struct tir_layout *l = c->layout;
    struct tir_value *part = NULL;
    *count = 1;
    for (uint32_t i = l->first[c->axis + 1]; i-- > l->first[c->axis];) {
        const struct tir_iter *it = &l->iters[i];
        if (it->axis != axis)
            continue;
        struct tir_value *digit = tir_lower_digit(lo, &lo->top, tir_lower_thread(lo, axis),
                                                  it->stride, it->extent, false);
        part = tir_lower_add(lo, &lo->top, part, tir_lower_mul_const(lo, &lo->top, digit, *count));
        *count *= it->extent;
    }
    return part ? part : tir_lower_i32(lo, 0);
}

// The line an element belongs to: its coordinates without the axis, as one number.
struct lines {
    struct tir_value *thread; // the thread's part
    int64_t stride[TIR_MAX_RANK];
    int64_t count;
};

static struct lines open_lines(struct combine *c)
{
    struct lower *lo = c->lo;
    struct lines lines = {.count = 1};
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

static int64_t line_constant(const struct combine *c, const struct lines *lines,
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
static struct lower_place scratch_at(struct combine *c, const struct lines *lines,
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

static void write_scratch(struct combine *c, struct lower_place p, struct tir_value *x,
                          struct tir_value *pred)
{
    struct tir_value *v = from_work(c, x);
    p.pred = pred;
    tir_lower_st_vector(c->lo, &p, 1, &v);
}

static struct tir_value *read_scratch(struct combine *c, struct lower_place p)
{
    struct tir_value *v;
    tir_lower_ld_vector(c->lo, &p, c->elem, 1, &v);
    return to_work(c, v);
}

static struct tir_value *is_zero(struct lower *lo, struct tir_value *x)
{
    return tir_binary(&lo->b, TIR_OP_EQ, x, tir_lower_i32(lo, 0));
}

void tir_lower_reduce(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[TIR_REDUCE_X], *result = inst->results[0];
    struct combine c = open_combine(lo, inst);
    const struct tir_layout *l = c.layout, *own = result->type->layout;
    if (!l) { // a constant tile: give it the layout of the result, one register a line
        tir_lower_unsupported(lo, inst, "a reduction of a constant tile");
        return;
    }
    uint32_t count = tir_lower_register_count(x->type),
             out_count = tir_layout_size(own, TIR_AXIS_REG);
    struct tir_value **out = tir_lower_new_registers(lo, out_count);
    struct tir_value **parts = tir_lower_new_registers(lo, count);
    for (uint32_t o = 0; o < out_count; o++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < count; r++)
            if (tir_lower_same_register(l, r, own) == o)
                parts[n++] = to_work(&c, tir_lower_register(lo, x, r));
        out[o] = combine_tree(&c, parts, n);
        for (uint32_t i = l->first[c.axis]; i < l->first[c.axis + 1]; i++) {
            const struct tir_iter *it = &l->iters[i];
            for (uint32_t s = it->extent / 2; it->axis == TIR_AXIS_LANE && s > 0; s /= 2)
                out[o] = apply(&c, out[o],
                               shuffle(&c, out[o], TIR_WORD_mode_bfly,
                                       tir_lower_i32(lo, (int64_t)s * it->stride)));
        }
    }
    if (inst->operands[TIR_REDUCE_SCRATCH]) {
        struct lines lines = open_lines(&c);
        uint32_t warps, lanes;
        struct tir_value *warp = part_along(&c, TIR_AXIS_WARP, &warps);
        struct tir_value *lane = part_along(&c, TIR_AXIS_LANE, &lanes);
        struct tir_value *writer =
            tir_lower_and(lo, lanes > 1 ? is_zero(lo, lane) : NULL, tir_lower_is_owner(lo, l));
        for (uint32_t o = 0; o < out_count; o++)
            write_scratch(&c, scratch_at(&c, &lines, warp, 0, line_constant(&c, &lines, own, o)),
                          out[o], writer);
        tir_lower_barrier(lo);
        struct tir_value **all = tir_lower_new_registers(lo, warps);
        for (uint32_t o = 0; o < out_count; o++) {
            for (uint32_t w = 0; w < warps; w++)
                all[w] = read_scratch(
                    &c, scratch_at(&c, &lines, NULL, w, line_constant(&c, &lines, own, o)));
            out[o] = combine_tree(&c, all, warps);
        }
    }
    for (uint32_t o = 0; o < out_count; o++)
        out[o] = from_work(&c, out[o]);
    tir_lower_set_registers(lo, result, out);
}

// Scans. The axis is laid out, outermost first, as repetitions, warps, lanes, vector: a segment is
// what one repetition of one warp holds, and segments follow each other along the axis.

struct scan {
    struct combine c;
    struct lines lines;
    uint32_t vector, lanes, warps, repeats; // along the axis
    struct tir_value *lane, *warp;          // position along the axis
    uint32_t lane_stride;
};

static struct tir_value *choose(struct scan *s, struct tir_value *cond, struct tir_value *a,
                                struct tir_value *b)
{
    struct tir_value *operands[] = {cond, a, b};
    return tir_build1(&s->c.lo->b, TIR_OP_WHERE, a->type, operands, 3);
}

static void open_scan(struct scan *s)
{
    const struct tir_layout *l = s->c.layout;
    s->lines = open_lines(&s->c);
    s->lane = part_along(&s->c, TIR_AXIS_LANE, &s->lanes);
    s->warp = part_along(&s->c, TIR_AXIS_WARP, &s->warps);
    s->vector = 1;
    s->lane_stride = 1;
    for (uint32_t i = l->first[s->c.axis]; i < l->first[s->c.axis + 1]; i++)
        if (l->iters[i].axis == TIR_AXIS_LANE)
            s->lane_stride = l->iters[i].stride;
    uint32_t last = l->first[s->c.axis + 1];
    if (last > l->first[s->c.axis] && l->iters[last - 1].axis == TIR_AXIS_REG)
        s->vector = l->iters[last - 1].extent;
    s->repeats = (uint32_t)(l->shape[s->c.axis] / (s->vector * s->lanes * s->warps));
}

// The register of repetition k, element v of the line that register `line` of own belongs to.
static uint32_t register_of(const struct scan *s, const struct tir_layout *own, uint32_t line,
                            uint32_t k, uint32_t v)
{
    int64_t coord[TIR_MAX_RANK];
    tir_layout_coord(own, (struct tir_layout_at){{line, 0, 0}}, coord);
    coord[s->c.axis] = (int64_t)k * s->warps * s->lanes * s->vector + v;
    return tir_layout_find(s->c.layout, coord).at[TIR_AXIS_REG];
}

// Inclusive scan of one segment; gives its total, in every lane.
static struct tir_value *scan_segment(struct scan *s, struct tir_value **x)
{
    struct lower *lo = s->c.lo;
    for (uint32_t v = 1; v < s->vector; v++)
        x[v] = apply(&s->c, x[v - 1], x[v]);
    struct tir_value *total = x[s->vector - 1];
    if (s->lanes == 1)
        return total;
    for (uint32_t d = 1; d < s->lanes; d *= 2) {
        struct tir_value *below =
            shuffle(&s->c, total, TIR_WORD_mode_up, tir_lower_i32(lo, (int64_t)d * s->lane_stride));
        struct tir_value *has = tir_binary(&lo->b, TIR_OP_GE, s->lane, tir_lower_i32(lo, d));
        total = choose(s, has, apply(&s->c, below, total), total);
    }
    struct tir_value *before =
        shuffle(&s->c, total, TIR_WORD_mode_up, tir_lower_i32(lo, s->lane_stride));
    struct tir_value *first = is_zero(lo, s->lane);
    for (uint32_t v = 0; v < s->vector; v++)
        x[v] = choose(s, first, x[v], apply(&s->c, before, x[v]));
    // The last lane of this line: this lane with its position along the axis all ones.
    struct tir_value *last =
        tir_binary(&lo->b, TIR_OP_OR, tir_lower_thread(lo, TIR_AXIS_LANE),
                   tir_lower_i32(lo, (int64_t)(s->lanes - 1) * s->lane_stride));
    return shuffle(&s->c, total, TIR_WORD_mode_idx, last);
}

// Combines each segment with everything before it.
static void add_earlier(struct scan *s, const struct tir_layout *own, uint32_t line,
                        struct tir_value **totals, struct tir_value **out)
{
    struct lower *lo = s->c.lo;
    int64_t at = line_constant(&s->c, &s->lines, own, line);
    struct tir_value *sum = NULL; // of all segments before the current one
    for (uint32_t k = 0; k < s->repeats; k++) {
        struct tir_value *mine = sum; // what precedes this thread's segment
        for (uint32_t w = 0; w < s->warps; w++) {
            struct tir_value *t =
                s->warps == 1
                    ? totals[k]
                    : read_scratch(&s->c, scratch_at(&s->c, &s->lines, NULL, k * s->warps + w, at));
            sum = sum ? apply(&s->c, sum, t) : t;
            if (w + 1 < s->warps) {
                struct tir_value *after =
                    tir_binary(&lo->b, TIR_OP_GT, s->warp, tir_lower_i32(lo, w));
                mine = mine ? choose(s, after, sum, mine) : sum;
            }
        }
        if (!mine)
            continue;
        bool always = k > 0; // else only warps behind the first have something before them
        struct tir_value *has =
            always ? NULL : tir_binary(&lo->b, TIR_OP_GT, s->warp, tir_lower_i32(lo, 0));
        for (uint32_t v = 0; v < s->vector; v++) {
            uint32_t r = register_of(s, own, line, k, v);
            struct tir_value *y = apply(&s->c, mine, out[r]);
            out[r] = always ? y : choose(s, has, y, out[r]);
        }
    }
}

void tir_lower_scan(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *x = inst->operands[TIR_REDUCE_X], *result = inst->results[0];
    struct scan s = {.c = open_combine(lo, inst)};
    s.c.layout = result->type->layout;
    open_scan(&s);
    const struct tir_layout *own = tir_layout_slice(lo->types, s.c.layout, s.c.axis);
    uint32_t lines = tir_layout_size(own, TIR_AXIS_REG),
             count = tir_lower_register_count(result->type);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    struct tir_value **totals = tir_lower_new_registers(lo, lines * s.repeats);
    struct tir_value **segment = tir_lower_new_registers(lo, s.vector);
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t k = 0; k < s.repeats; k++) {
            for (uint32_t v = 0; v < s.vector; v++)
                segment[v] =
                    to_work(&s.c, tir_lower_register(lo, x, register_of(&s, own, line, k, v)));
            totals[line * s.repeats + k] = scan_segment(&s, segment);
            for (uint32_t v = 0; v < s.vector; v++)
                out[register_of(&s, own, line, k, v)] = segment[v];
        }
    if (s.warps > 1) {
        struct tir_value *writer = tir_lower_and(lo, s.lanes > 1 ? is_zero(lo, s.lane) : NULL,
                                                 tir_lower_is_owner(lo, s.c.layout));
        for (uint32_t line = 0; line < lines; line++)
            for (uint32_t k = 0; k < s.repeats; k++) {
                struct lower_place p = scratch_at(&s.c, &s.lines, s.warp, (int64_t)k * s.warps,
                                                  line_constant(&s.c, &s.lines, own, line));
                write_scratch(&s.c, p, totals[line * s.repeats + k], writer);
            }
        tir_lower_barrier(lo);
    }
    for (uint32_t line = 0; line < lines; line++)
        add_earlier(&s, own, line, totals + line * s.repeats, out);
    for (uint32_t r = 0; r < count; r++)
        out[r] = from_work(&s.c, out[r]);
    tir_lower_set_registers(lo, result, out);
}
