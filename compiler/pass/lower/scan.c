// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, what keeps the order of the axis: scans, and reductions by the program's own
// function.
//
// The iterators of the axis make blocks in blocks, the innermost ones first:
//
//     S[(2, 2, 4, 2) : (1@warpid, 2, 1@laneid, 1)], 32 elements of a line:
//     two registers are a block; four lanes' blocks are a block of 8; two of those, in other
//     registers, a block of 16; two warps' blocks are the line
//
// From the inside out, each block gets its total and each of its parts what precedes it in the
// block: registers one after the other, lanes by shuffles. From the innermost iterator over warps
// on, all threads exchange the totals of their blocks through the scratch buffer, and each reads
// those of the line in order. From the outside in, what precedes a block in the line is then
// combined with what precedes its parts in the block, and at last with the elements.
//
// A function has no neutral element, so what precedes a block may be nothing: for all threads,
// which is known here, or for some, which a condition says.

#include "pass/lower/combine.h"
#include "pass/sync/shared.h"

struct prefix {
    struct tuple value;    // the first is NULL: nothing
    struct tir_value *has; // NULL: every thread has one
};

struct scan {
    struct combine *c;
    uint32_t begin, end; // iterators of the axis
    uint32_t inner;      // first of those that registers and lanes combine
    uint32_t count;      // registers of a line, in its order
    uint32_t *offset;    // of each from the first one
    struct line *lines;
    uint32_t line_count;
};

// The registers of a line, by position in it; what belongs to a block stands at its first one.
struct line {
    uint32_t reg;                         // the first
    struct tuple *total;                  // of blocks done so far
    struct tuple *inclusive;              // of elements, in their innermost block
    struct prefix *before[TIR_MAX_ITERS]; // of the parts of each iterator's blocks, from s->begin
    struct prefix *outer;                 // of blocks that the scratch buffer combines
};

static const struct tir_iter *iter_of(const struct scan *s, uint32_t i)
{
    return &s->c->layout->iters[i];
}

static struct tir_value *at_least(struct scan *s, struct tir_value *x, int64_t least)
{
    return tir_binary(&s->c->lo->b, TIR_OP_GE, x, tir_lower_i32(s->c->lo, least));
}

static void open_scan(struct scan *s, struct combine *c)
{
    const struct tir_layout *l = c->layout;
    *s =
        (struct scan){.c = c, .begin = l->first[c->axis], .end = l->first[c->axis + 1], .count = 1};
    for (uint32_t i = s->begin; i < s->end; i++)
        if (iter_of(s, i)->axis == TIR_AXIS_REG)
            s->count *= iter_of(s, i)->extent;
    s->offset = arena_array(c->lo->cx->scratch, uint32_t, s->count);
    uint32_t known = 1;
    for (uint32_t i = s->end; i-- > s->begin;) {
        const struct tir_iter *it = iter_of(s, i);
        if (it->axis != TIR_AXIS_REG)
            continue;
        for (uint32_t j = known; j < known * it->extent; j++)
            s->offset[j] = s->offset[j % known] + j / known * it->stride;
        known *= it->extent;
    }
    s->inner = s->end;
    while (s->inner > s->begin && iter_of(s, s->inner - 1)->axis != TIR_AXIS_WARP)
        s->inner--;
}

// Positions between the first ones of blocks that iterators from i on make.
static uint32_t positions(const struct scan *s, uint32_t i)
{
    uint32_t n = 1;
    for (; i < s->end; i++)
        if (iter_of(s, i)->axis == TIR_AXIS_REG)
            n *= iter_of(s, i)->extent;
    return n;
}

// From the inside out.

static void join_registers(struct scan *s, struct line *line, uint32_t i, uint32_t at,
                           uint32_t step)
{
    struct tuple sum = line->total[at];
    for (uint32_t k = 1; k < iter_of(s, i)->extent; k++) {
        line->before[i - s->begin][at + k * step].value = sum;
        sum = tir_combine_apply(s->c, sum, line->total[at + k * step]);
        if (i + 1 == s->end)
            line->inclusive[at + k] = sum;
    }
    line->total[at] = sum;
}

static void join_lanes(struct scan *s, struct line *line, uint32_t i, uint32_t at)
{
    struct lower *lo = s->c->lo;
    const struct tir_iter *it = iter_of(s, i);
    uint32_t count;
    struct tir_value *part = tir_combine_part(s->c, TIR_AXIS_LANE, i, i + 1, &count);
    struct tuple sum = line->total[at];
    for (uint32_t d = 1; d < it->extent; d *= 2) {
        struct tuple below = tir_combine_shuffle(s->c, sum, TIR_WORD_mode_up,
                                                 tir_lower_i32(lo, (int64_t)d * it->stride));
        sum = tir_combine_choose(s->c, at_least(s, part, d), tir_combine_apply(s->c, below, sum),
                                 sum);
    }
    if (i + 1 == s->end)
        line->inclusive[at] = sum;
    else
        line->before[i - s->begin][at] = (struct prefix){
            tir_combine_shuffle(s->c, sum, TIR_WORD_mode_up, tir_lower_i32(lo, it->stride)),
            at_least(s, part, 1)};
    // The last lane is this one with all bits of its digit set.
    struct tir_value *last = tir_binary(&lo->b, TIR_OP_OR, tir_lower_thread(lo, TIR_AXIS_LANE),
                                        tir_lower_i32(lo, (int64_t)(it->extent - 1) * it->stride));
    line->total[at] = tir_combine_shuffle(s->c, sum, TIR_WORD_mode_idx, last);
}

static void open_line(struct scan *s, struct line *line, uint32_t reg)
{
    struct tir_arena *scratch = s->c->lo->cx->scratch;
    line->reg = reg;
    line->total = tir_combine_tuples(s->c, s->count);
    line->inclusive = tir_combine_tuples(s->c, s->count);
    line->outer = arena_array(scratch, struct prefix, s->count);
    for (uint32_t i = s->begin; i < s->end; i++)
        line->before[i - s->begin] = arena_array(scratch, struct prefix, s->count);
    for (uint32_t j = 0; j < s->count; j++)
        line->total[j] = line->inclusive[j] = tir_combine_register(s->c, reg + s->offset[j]);
}

static void join_inner(struct scan *s, struct line *line)
{
    for (uint32_t i = s->end; i-- > s->inner;) {
        uint32_t step = positions(s, i + 1), block = positions(s, i);
        for (uint32_t at = 0; at < s->count; at += block)
            if (iter_of(s, i)->axis == TIR_AXIS_REG)
                join_registers(s, line, i, at, step);
            else
                join_lanes(s, line, i, at);
    }
}

// Between warps.

struct exchange {
    struct combine_lines lines;
    struct tir_value *part, *writer; // of this thread among the blocks; whether it writes them
    int64_t weight;                  // elements of a block
    uint32_t blocks;                 // of a line
    bool *parts;                     // which blocks threads may have beside the register's
};

// The blocks that the register's is not, but this thread's may be: sums of the outer digits.
static void open_parts(struct scan *s, struct exchange *e)
{
    struct lower *lo = s->c->lo;
    e->parts = arena_array(lo->cx->scratch, bool, e->blocks);
    e->parts[0] = true;
    for (uint32_t i = s->begin; i < s->inner; i++) {
        const struct tir_iter *it = iter_of(s, i);
        if (it->axis == TIR_AXIS_REG)
            continue;
        uint32_t count,
            weight = (uint32_t)(tir_layout_weight(s->c->layout, s->c->axis, i) / e->weight);
        struct tir_value *digit = tir_combine_part(s->c, it->axis, i, i + 1, &count);
        e->part =
            tir_lower_add(lo, &lo->top, e->part, tir_lower_mul_const(lo, &lo->top, digit, weight));
        for (uint32_t b = e->blocks; b-- > 0;)
            for (uint32_t k = 1; e->parts[b] && k < it->extent; k++)
                e->parts[b + k * weight] = true;
    }
}

static void open_exchange(struct scan *s, struct exchange *e)
{
    struct combine *c = s->c;
    uint32_t lanes;
    *e = (struct exchange){.lines = tir_combine_lines(c),
                           .weight = tir_layout_weight(c->layout, c->axis, s->inner - 1),
                           .blocks = tir_combine_blocks(c->layout, c->axis)};
    open_parts(s, e);
    struct tir_value *lane = tir_combine_part(c, TIR_AXIS_LANE, s->inner, s->end, &lanes);
    e->writer = tir_lower_and(c->lo, lanes > 1 ? tir_combine_is_zero(c->lo, lane) : NULL,
                              tir_lower_is_owner(c->lo, c->layout));
}

// The register's part of the number of the block at position j.
static uint32_t block_at(const struct scan *s, const struct exchange *e, const struct line *line,
                         uint32_t j)
{
    int64_t coord[TIR_MAX_RANK];
    struct tir_layout_at at = {{line->reg + s->offset[j], 0, 0}};
    tir_layout_coord(s->c->layout, at, coord);
    return (uint32_t)(coord[s->c->axis] / e->weight);
}

static void write_blocks(struct scan *s, const struct exchange *e, struct line *line)
{
    int64_t number = tir_combine_line(s->c, &e->lines, s->c->layout, line->reg);
    for (uint32_t j = 0; j < s->count; j += positions(s, s->inner)) {
        struct lower_place p =
            tir_combine_entry(s->c, &e->lines, e->part, block_at(s, e, line, j), number);
        tir_combine_write(s->c, p, line->total[j], e->writer);
    }
}

static struct tuple read_block(struct scan *s, const struct exchange *e, const struct line *line,
                               uint32_t b)
{
    int64_t number = tir_combine_line(s->c, &e->lines, s->c->layout, line->reg);
    return tir_combine_read(s->c, tir_combine_entry(s->c, &e->lines, NULL, b, number));
}

// The combination of all that precedes this thread's blocks in the line.
static void read_before(struct scan *s, const struct exchange *e, struct line *line)
{
    struct tuple sum = {{NULL}};
    uint32_t block = positions(s, s->inner);
    for (uint32_t b = 1; b < e->blocks; b++) {
        struct tuple t = read_block(s, e, line, b - 1);
        sum = sum.of[0] ? tir_combine_apply(s->c, sum, t) : t;
        for (uint32_t j = 0; j < s->count; j += block) {
            uint32_t first = block_at(s, e, line, j);
            struct prefix *p = &line->outer[j];
            if (b < first || !e->parts[b - first])
                continue;
            if (!p->value.of[0])
                *p = (struct prefix){sum, b > first ? at_least(s, e->part, b - first) : NULL};
            else
                p->value = tir_combine_choose(s->c, at_least(s, e->part, b - first), sum, p->value);
        }
    }
}

// From the outside in.

// A prefix: a, then b.
static struct prefix follow(struct scan *s, struct prefix a, struct prefix b)
{
    if (!a.value.of[0] || !b.value.of[0])
        return a.value.of[0] ? a : b;
    struct tuple both = tir_combine_apply(s->c, a.value, b.value);
    if (b.has)
        both = tir_combine_choose(s->c, b.has, both, a.value);
    if (a.has)
        both = tir_combine_choose(s->c, a.has, both, b.value);
    bool always = !a.has || !b.has;
    return (struct prefix){both, always ? NULL : tir_binary(&s->c->lo->b, TIR_OP_OR, a.has, b.has)};
}

static void join_outer(struct scan *s, struct line *line, struct tuple *out)
{
    struct prefix *p = line->outer;
    for (uint32_t i = s->inner; i + 1 < s->end; i++) {
        uint32_t step = positions(s, i + 1), block = positions(s, i);
        for (uint32_t j = s->count; j >= step; j -= step) { // the first of a block last
            uint32_t at = j - step;
            p[at] = follow(s, p[at - at % block], line->before[i - s->begin][at]);
        }
    }
    uint32_t innermost = s->inner < s->end ? positions(s, s->end - 1) : 1;
    for (uint32_t j = 0; j < s->count; j++) {
        struct prefix before = p[j - j % innermost];
        struct tuple y = line->inclusive[j];
        if (before.value.of[0])
            y = tir_combine_apply(s->c, before.value, y);
        if (before.has)
            y = tir_combine_choose(s->c, before.has, y, line->inclusive[j]);
        out[line->reg + s->offset[j]] = y;
    }
}

static bool begins_line(const struct scan *s, uint32_t reg)
{
    int64_t coord[TIR_MAX_RANK];
    tir_layout_coord(s->c->layout, (struct tir_layout_at){{reg, 0, 0}}, coord);
    return coord[s->c->axis] == 0;
}

static void open_all_lines(struct scan *s)
{
    uint32_t registers = tir_layout_size(s->c->layout, TIR_AXIS_REG);
    s->lines = arena_array(s->c->lo->cx->scratch, struct line, registers / s->count);
    for (uint32_t r = 0; r < registers; r++)
        if (begins_line(s, r))
            open_line(s, &s->lines[s->line_count++], r);
}

// The values of other warps that every thread needs.
static void exchange(struct scan *s, struct exchange *e)
{
    open_exchange(s, e);
    for (uint32_t i = 0; i < s->line_count; i++)
        write_blocks(s, e, &s->lines[i]);
    tir_lower_barrier(s->c->lo);
}

void tir_lower_scan(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0];
    struct combine c = tir_combine_open(lo, inst);
    c.layout = result->type->layout;
    struct tuple *out = tir_combine_tuples(&c, tir_lower_register_count(result->type));
    struct scan s;
    open_scan(&s, &c);
    open_all_lines(&s);
    for (uint32_t i = 0; i < s.line_count; i++)
        join_inner(&s, &s.lines[i]);
    struct exchange e;
    bool between_warps = s.inner > s.begin;
    if (between_warps)
        exchange(&s, &e);
    for (uint32_t i = 0; i < s.line_count; i++) {
        if (between_warps)
            read_before(&s, &e, &s.lines[i]);
        join_outer(&s, &s.lines[i], out);
    }
    tir_combine_set_results(&c, out);
}

// Totals alone: blocks by halves, so that the dependence is short.

static struct tuple total_of_lanes(struct scan *s, uint32_t i, struct tuple x)
{
    struct lower *lo = s->c->lo;
    const struct tir_iter *it = iter_of(s, i);
    uint32_t count;
    struct tir_value *part = tir_combine_part(s->c, TIR_AXIS_LANE, i, i + 1, &count);
    for (uint32_t d = 1; d < it->extent; d *= 2) {
        struct tuple other = tir_combine_shuffle(s->c, x, TIR_WORD_mode_bfly,
                                                 tir_lower_i32(lo, (int64_t)d * it->stride));
        struct tir_value *bit = tir_binary(&lo->b, TIR_OP_AND, part, tir_lower_i32(lo, d));
        struct tir_value *first = tir_combine_is_zero(lo, bit);
        x = tir_combine_apply(s->c, tir_combine_choose(s->c, first, x, other),
                              tir_combine_choose(s->c, first, other, x));
    }
    return x;
}

static void total_inner(struct scan *s, struct line *line)
{
    struct tuple *parts = tir_combine_tuples(s->c, s->count);
    for (uint32_t i = s->end; i-- > s->inner;) {
        uint32_t step = positions(s, i + 1), block = positions(s, i);
        for (uint32_t at = 0; at < s->count; at += block) {
            if (iter_of(s, i)->axis == TIR_AXIS_LANE) {
                line->total[at] = total_of_lanes(s, i, line->total[at]);
                continue;
            }
            for (uint32_t k = 0; k < block / step; k++)
                parts[k] = line->total[at + k * step];
            line->total[at] = tir_combine_tree(s->c, parts, block / step);
        }
    }
}

void tir_lower_ordered_reduce(struct combine *c)
{
    struct tir_value *result = c->inst->results[0];
    const struct tir_layout *own = result->type->layout;
    struct tuple *out = tir_combine_tuples(c, tir_lower_register_count(result->type));
    struct scan s;
    open_scan(&s, c);
    open_all_lines(&s);
    for (uint32_t i = 0; i < s.line_count; i++)
        total_inner(&s, &s.lines[i]);
    struct exchange e = {0};
    bool between_warps = s.inner > s.begin;
    if (between_warps)
        exchange(&s, &e);
    struct tuple *blocks = tir_combine_tuples(c, e.blocks);
    for (uint32_t i = 0; i < s.line_count; i++) {
        struct line *line = &s.lines[i];
        for (uint32_t b = 0; b < e.blocks; b++)
            blocks[b] = read_block(&s, &e, line, b);
        out[tir_lower_same_register(c->layout, line->reg, own)] =
            between_warps ? tir_combine_tree(c, blocks, e.blocks) : line->total[0];
    }
    tir_combine_set_results(c, out);
}
