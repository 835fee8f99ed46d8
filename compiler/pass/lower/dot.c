// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, products: dot as mma.sync with ldmatrix, or as fused multiply-adds.
//
// An 8 x 8 matrix of ldmatrix is eight rows of 16 bytes; `chunk` elements each. One mma.m16n8 step
// is two chunks deep, for every element width, so one description serves all: A takes four matrices
// (rows 0-7 and 8-15, first and second chunk), B two for each eight columns, loaded for sixteen
// columns at a time. Each lane supplies the address of one row (PTX ISA, "ldmatrix"): the lanes'
// addresses are described as a layout, and lower_walk finds them in the swizzled buffer. Where the
// buffer's contiguous dimension is not K, ldmatrix.trans turns each matrix on the way.
//
// Elements of f64 are wider than what ldmatrix moves: each lane loads its own. The four lanes of a
// row have a quarter of a step's K each, next to each other, which sums do not mind if A and B do
// the same: 16 bytes at a time that lie in all banks.
//
// Products accumulate step by step over K: fragments of one step live only for that step.
//
// With scales, a register of A's has up to 4 of a row, and the lanes of a quad those of four rows:
// lane 2 t + h of quad g has row g + 8 h of the m16 tile t of two. A register of B's has, in lane t
// of quad g, column g of the n8 tile t of four. An instruction selects the tile and the first of
// its scales (PTX ISA, "Block scaling for mma.sync"), so a register serves two or four tiles and
// one or more steps.

#include "pass/layout/dot.h"
#include "ir/walk.h"
#include "pass/lower/lower.h"

struct product {
    struct lower *lo;
    struct tir_inst *inst;
    struct tir_dot_plan plan;
    const struct tir_layout *acc;
    int64_t m, n, k;
    struct tir_iter warp_m, warp_n; // how the warps divide rows and columns
    uint32_t rows, columns, steps;  // m16 and n8 tiles of a warp; K steps
};

// The warps' iterator of dimension d of the accumulator; extent 1 if there is none.
static struct tir_iter warps_of(const struct tir_layout *l, uint32_t d)
{
    for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++)
        if (l->iters[i].axis == TIR_AXIS_WARP)
            return l->iters[i];
    return (struct tir_iter){1, 1, TIR_AXIS_WARP};
}

// Is the buffer's dimension d the one whose elements follow each other?
static bool is_contiguous(const struct tir_type *buffer, uint32_t d)
{
    const struct tir_layout *l = buffer->layout;
    return l->first[d + 1] > l->first[d] && l->iters[l->first[d + 1] - 1].stride == 1;
}

struct fragments {
    struct lower_walk *walk;
    bool trans;
    uint32_t matrices; // of one ldmatrix
    uint32_t chunk, tiles;
    int64_t shift;  // bits: how far above its place in memory mma takes an element in its byte
    uint32_t words; // f64: registers of a tile, which the lane loads itself; else 0
};

// An e2m1 is in the low 4 bits of its byte, and mma takes it from the middle.
static int64_t shift_of(const struct tir_value *v)
{
    return v->type->elem == TIR_E2M1 ? 2 : 0;
}

enum { LANE_ITERS = 7 }; // of the layouts below

// The addresses of the elements of buffer v, rows x columns, that the lanes have by `iters`.
static struct lower_walk *walk_lanes(struct product *p, struct tir_value *v, int64_t rows,
                                     int64_t columns, const struct tir_iter *iters)
{
    const struct tir_layout *l = tir_layout_from_iters(p->lo->types, 2, (int64_t[]){rows, columns},
                                                       iters, LANE_ITERS, NULL, 0, 0);
    static const uint32_t dims[2] = {0, 1};
    return tir_lower_walk_new(p->lo, v, l, NULL, dims);
}

// Elements of f64: a lane has `each` along K for each of its rows of A, and of its column of B.
static struct fragments open_wide(struct product *p, bool of_a)
{
    struct tir_value *v = p->inst->operands[of_a ? TIR_DOT_A : TIR_DOT_B];
    const uint32_t each = p->plan.depth / 4, halves = of_a ? 2 : 1, words = halves * each;
    const uint32_t tiles = of_a ? p->rows : p->columns;
    const struct tir_iter along_k[] = {{p->steps, words * tiles, TIR_AXIS_REG},
                                       {4, 1, TIR_AXIS_LANE},
                                       {each, halves, TIR_AXIS_REG}};
    const struct tir_iter rows[] = {of_a ? p->warp_m : p->warp_n,
                                    {tiles, words, TIR_AXIS_REG},
                                    {halves, 1, TIR_AXIS_REG},
                                    {8, 4, TIR_AXIS_LANE}};
    struct tir_iter iters[LANE_ITERS];
    memcpy(iters + (of_a ? 0 : TIR_COUNT_OF(along_k)), rows, sizeof(rows));
    memcpy(iters + (of_a ? TIR_COUNT_OF(rows) : 0), along_k, sizeof(along_k));
    struct lower_walk *walk =
        of_a ? walk_lanes(p, v, p->m, p->k, iters) : walk_lanes(p, v, p->k, p->n, iters);
    return (struct fragments){.walk = walk, .tiles = tiles, .words = words};
}

// Lane addresses for A: dimension 0 is M, dimension 1 is K.
static struct fragments open_a(struct product *p)
{
    if (p->plan.kind == TIR_WORD_kind_f64)
        return open_wide(p, true);
    struct tir_value *a = p->inst->operands[TIR_DOT_A];
    uint32_t chunk = p->plan.chunk;
    bool trans = !is_contiguous(a->type, 1);
    struct tir_iter rows[] = {
        p->warp_m, {p->rows, chunk, TIR_AXIS_REG}, {2, 8, TIR_AXIS_LANE}, {8, 1, TIR_AXIS_LANE}};
    struct tir_iter depth[] = {{p->steps, chunk * p->rows, TIR_AXIS_REG},
                               {2, 16, TIR_AXIS_LANE},
                               {chunk, 1, TIR_AXIS_REG}};
    if (trans) { // a row of the matrix runs along M: lanes count along K
        rows[3] = (struct tir_iter){8, 1, TIR_AXIS_REG};
        depth[2] = (struct tir_iter){8, 1, TIR_AXIS_LANE};
    }
    struct tir_iter iters[LANE_ITERS];
    memcpy(iters, rows, sizeof(rows));
    memcpy(iters + 4, depth, sizeof(depth));
    return (struct fragments){
        walk_lanes(p, a, p->m, p->k, iters), trans, 4, chunk, p->rows, shift_of(a), 0};
}

// Lane addresses for B: dimension 0 is K, dimension 1 is N.
static struct fragments open_b(struct product *p)
{
    if (p->plan.kind == TIR_WORD_kind_f64)
        return open_wide(p, false);
    struct tir_value *b = p->inst->operands[TIR_DOT_B];
    uint32_t chunk = p->plan.chunk;
    bool trans = !is_contiguous(b->type, 0), pairs = p->columns % 2 == 0;
    uint32_t tiles = pairs ? p->columns / 2 : p->columns;
    struct tir_iter depth[] = {
        {p->steps, chunk * tiles, TIR_AXIS_REG}, {2, 8, TIR_AXIS_LANE}, {chunk, 1, TIR_AXIS_REG}};
    struct tir_iter columns[] = {p->warp_n,
                                 {tiles, chunk, TIR_AXIS_REG},
                                 {pairs ? 2 : 1, 16, TIR_AXIS_LANE},
                                 {8, 1, TIR_AXIS_LANE}};
    if (trans) {
        depth[2] = (struct tir_iter){8, 1, TIR_AXIS_LANE};
        columns[3] = (struct tir_iter){8, 1, TIR_AXIS_REG};
    }
    struct tir_iter iters[LANE_ITERS];
    memcpy(iters, depth, sizeof(depth));
    memcpy(iters + 3, columns, sizeof(columns));
    return (struct fragments){
        walk_lanes(p, b, p->k, p->n, iters), trans, pairs ? 4 : 2, chunk, tiles, shift_of(b), 0};
}

static void load_words(struct lower *lo, const struct fragments *f, uint32_t step,
                       struct tir_value **out)
{
    const struct lower_vector v = tir_lower_walk_vector(f->walk);
    const uint32_t count = f->tiles * f->words, first = step * count;
    for (uint32_t r = 0; r < count; r++) {
        if (!tir_lower_leads(v, first + r))
            continue;
        struct tir_value *values[16];
        const struct lower_place place = tir_lower_walk_at(lo, f->walk, first + r);
        tir_lower_ld_vector(lo, &place, TIR_F64, v.count, values);
        for (uint32_t i = 0; i < v.count; i++)
            out[tir_lower_together(v, r, i)] = values[i];
    }
}

static void load_fragments(struct product *p, const struct fragments *f, uint32_t step,
                           struct tir_value **out)
{
    struct lower *lo = p->lo;
    const struct tir_type *types[4] = {lo->i32, lo->i32, lo->i32, lo->i32};
    if (f->words) {
        load_words(lo, f, step, out);
        return;
    }
    for (uint32_t i = 0; i < f->tiles; i++) {
        struct lower_place place = tir_lower_walk_at(lo, f->walk, (step * f->tiles + i) * f->chunk);
        struct tir_value *operands[] = {place.base, place.at};
        struct tir_inst *ld =
            tir_build(&lo->b, TIR_OP_LDMATRIX, operands, 2, types, f->matrices, 0);
        if (place.offset)
            tir_set_int(lo->f, ld, TIR_ATTR_offset, place.offset);
        if (f->trans)
            tir_set_int(lo->f, ld, TIR_ATTR_trans, 1);
        for (uint32_t m = 0; m < f->matrices; m++)
            out[i * f->matrices + m] = f->shift ? tir_binary(&lo->b, TIR_OP_SHL, ld->results[m],
                                                             tir_lower_i32(lo, f->shift))
                                                : ld->results[m];
    }
}

// Registers of the scales of A or of B: those of tile i and step s are in number
// s / steps * (tiles / share) + i / share.
struct scales {
    struct tir_value **words;
    uint32_t tiles, share; // m16 or n8 tiles of a warp; those that one register serves
    uint32_t steps;        // that it serves
    uint32_t of_step;      // scales of a row in one step
};

enum { WORD = 4 }; // scales in a register

// Registers of `bytes` scales, which may be fewer than 4: no instruction selects the others.
static struct tir_value **read_words(struct lower *lo, struct lower_walk *walk, enum tir_elem elem,
                                     uint32_t bytes, uint32_t count)
{
    const struct lower_vector together = tir_lower_walk_vector(walk);
    struct tir_value **words = tir_lower_new_registers(lo, count);
    if (bytes == WORD && tir_lower_is_in_order(together) && together.count % WORD == 0) {
        for (uint32_t i = 0; i < count; i++) {
            const struct lower_place place = tir_lower_walk_at(lo, walk, i * WORD);
            tir_lower_ld_vector(lo, &place, TIR_I32, 1, &words[i]);
        }
        return words;
    }
    struct tir_value **all = tir_lower_new_registers(lo, count * bytes);
    tir_lower_read(lo, walk, elem, count * bytes, all);
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value *parts[WORD];
        for (uint32_t k = 0; k < WORD; k++)
            parts[k] = all[i * bytes + k % bytes];
        words[i] = tir_build1(&lo->b, TIR_OP_PACK, lo->i32, parts, WORD);
    }
    return words;
}

// The same of packed scales, whose rows are parts of three dimensions: 32 rows in a block, 4 times
// as many in its rows of 16 bytes, and blocks. rows: outermost first; their extents are powers of
// two.
static struct lower_walk *walk_packed(struct product *p, struct tir_value *v,
                                      const struct tir_iter *rows, uint32_t count,
                                      struct tir_iter words)
{
    const int64_t *shape = v->type->shape;
    const int64_t extents[] = {TIR_TMEM_SCALE_LANES, TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES,
                               shape[0]};
    enum { LANES, QUARTERS, BANDS, PARTS };
    struct tir_iter parts[PARTS][TIR_MAX_ITERS]; // innermost first
    uint32_t counts[PARTS] = {0}, part = LANES;
    int64_t left = extents[LANES];
    for (uint32_t i = count; i-- > 0;)
        for (struct tir_iter it = rows[i]; it.extent > 1;) {
            while (left == 1)
                left = extents[++part];
            const uint32_t take = (uint32_t)TIR_MIN(left, it.extent);
            parts[part][counts[part]++] = (struct tir_iter){take, it.stride, it.axis};
            it.extent /= take;
            it.stride *= take;
            left /= take;
        }
    struct tir_iter all[TIR_MAX_ITERS];
    uint32_t n = 0;
    for (uint32_t i = counts[BANDS]; i-- > 0;)
        all[n++] = parts[BANDS][i];
    all[n++] = words;
    for (uint32_t i = counts[LANES]; i-- > 0;)
        all[n++] = parts[LANES][i];
    for (uint32_t i = counts[QUARTERS]; i-- > 0;)
        all[n++] = parts[QUARTERS][i];
    all[n++] = (struct tir_iter){WORD, 1, TIR_AXIS_REG};
    const struct tir_layout *l =
        tir_layout_from_iters(p->lo->types, v->type->rank, shape, all, n, NULL, 0, 0);
    static const uint32_t dims[] = {0, 1, 2, 3};
    return tir_lower_walk_new(p->lo, v, l, NULL, dims);
}

// Rows of A are dimension 0 of its scales, columns of B dimension 1.
static struct scales load_scales(struct product *p, bool of_a)
{
    struct lower *lo = p->lo;
    struct tir_value *v = p->inst->operands[of_a ? TIR_DOT_SA : TIR_DOT_SB];
    const uint32_t of_row = (uint32_t)tir_scales_count(v->type, of_a ? 1 : 0);
    struct scales s = {.tiles = of_a ? p->rows : p->columns, .of_step = p->plan.scaled[0]->scales};
    s.share = of_a ? 2 : 4;
    while (s.tiles % s.share)
        s.share /= 2;
    uint32_t bytes = WORD; // of a register
    while (of_row % bytes)
        bytes /= 2;
    s.steps = bytes / s.of_step;
    const uint32_t groups = s.tiles / s.share, words = of_row / bytes * groups;
    const bool is_packed = tir_scales_are_packed(v->type);
    const struct tir_iter along_k[] = {{of_row / bytes, groups * bytes, TIR_AXIS_REG},
                                       {bytes, 1, TIR_AXIS_REG}};
    const struct tir_iter rows[] = {of_a ? p->warp_m : p->warp_n,
                                    {groups, bytes, TIR_AXIS_REG},
                                    {s.share, of_a ? 2 : 1, TIR_AXIS_LANE},
                                    {of_a ? 2 : 1, 1, TIR_AXIS_LANE},
                                    {8, 4, TIR_AXIS_LANE}};
    struct tir_iter iters[LANE_ITERS];
    memcpy(iters + (of_a ? 0 : TIR_COUNT_OF(along_k)), rows, sizeof(rows));
    memcpy(iters + (of_a ? TIR_COUNT_OF(rows) : 0), along_k, sizeof(along_k));
    struct lower_walk *walk = is_packed
                                  ? walk_packed(p, v, rows, TIR_COUNT_OF(rows), along_k[0])
                                  : walk_lanes(p, v, v->type->shape[0], v->type->shape[1], iters);
    s.words = read_words(lo, walk, v->type->elem, bytes, words);
    return s;
}

static void select_scales(struct product *p, struct tir_inst *mma, bool of_a,
                          const struct scales *s, uint32_t tile, uint32_t step)
{
    struct tir_func *f = p->lo->f;
    const uint32_t word = step / s->steps * (s->tiles / s->share) + tile / s->share;
    mma->operands[of_a ? TIR_MMA_SA : TIR_MMA_SB] = s->words[word];
    tir_set_int(f, mma, of_a ? TIR_ATTR_a_scale : TIR_ATTR_b_scale, step % s->steps * s->of_step);
    tir_set_int(f, mma, of_a ? TIR_ATTR_a_thread : TIR_ATTR_b_thread, tile % s->share);
}

static void lower_mma(struct product *p)
{
    const struct tir_scaled *const *scaled = p->plan.scaled;
    struct lower *lo = p->lo;
    struct tir_value *acc = p->inst->operands[TIR_DOT_ACC], *result = p->inst->results[0];
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **d = tir_lower_new_registers(lo, count);
    for (uint32_t r = 0; r < count; r++)
        d[r] = tir_lower_register(lo, acc, r);
    struct fragments fa = open_a(p), fb = open_b(p);
    const uint32_t of_a = fa.words ? fa.words : 4, of_b = fb.words ? fb.words : 2; // of one mma
    struct tir_value **a = tir_lower_new_registers(lo, of_a * p->rows);
    struct tir_value **b = tir_lower_new_registers(lo, of_b * p->columns);
    struct scales sa = {0}, sb = {0};
    if (scaled[0]) {
        sa = load_scales(p, true);
        sb = load_scales(p, false);
    }
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    const struct tir_type *types[4] = {scalar, scalar, scalar, scalar};
    for (uint32_t step = 0; step < p->steps; step++) {
        load_fragments(p, &fa, step, a);
        load_fragments(p, &fb, step, b);
        for (uint32_t i = 0; i < p->rows; i++)
            for (uint32_t j = 0; j < p->columns; j++) {
                struct tir_value *operands[TIR_MMA_REGISTERS + 8 + 4 + 4] = {NULL};
                struct tir_value **registers = operands + TIR_MMA_REGISTERS;
                uint32_t at[4];
                memcpy(registers, a + of_a * i, of_a * sizeof(*registers));
                memcpy(registers + of_a, b + of_b * j, of_b * sizeof(*registers));
                for (uint32_t c = 0; c < 4; c++) { // c0 c1: row lane / 4; c2 c3: eight below
                    int64_t coord[TIR_MAX_RANK] = {i * 16 + c / 2 * 8, j * 8 + c % 2};
                    at[c] = tir_layout_find(p->acc, coord).at[TIR_AXIS_REG];
                    registers[of_a + of_b + c] = d[at[c]];
                }
                struct tir_inst *mma = tir_build(&lo->b, TIR_OP_MMA, operands,
                                                 TIR_MMA_REGISTERS + of_a + of_b + 4, types, 4, 0);
                tir_set_word(lo->f, mma, TIR_ATTR_kind, p->plan.kind);
                tir_set_int(lo->f, mma, TIR_ATTR_cols, 8);
                tir_set_int(lo->f, mma, TIR_ATTR_depth, p->plan.depth);
                if (p->plan.b_kind)
                    tir_set_word(lo->f, mma, TIR_ATTR_b_kind, p->plan.b_kind);
                if (scaled[0]) {
                    tir_set_int(lo->f, mma, TIR_ATTR_scales, scaled[0]->scales);
                    if (scaled[1] != scaled[0])
                        tir_set_word(lo->f, mma, TIR_ATTR_b_kind, scaled[1]->b_kind);
                    select_scales(p, mma, true, &sa, i, step);
                    select_scales(p, mma, false, &sb, j, step);
                }
                for (uint32_t c = 0; c < 4; c++)
                    d[at[c]] = mma->results[c];
            }
    }
    tir_lower_set_registers(lo, result, d);
}

// Without mma: for each k, a column of A and a row of B for this thread's elements.

static struct tir_value **load_line(struct product *p, struct tir_value *buffer, uint32_t k_dim,
                                    struct tir_value *k, const struct tir_layout *l,
                                    const struct tir_type *as)
{
    struct lower *lo = p->lo;
    struct tir_value *starts[2] = {NULL, NULL};
    starts[k_dim] = k;
    starts[1 - k_dim] = tir_lower_i32(lo, 0);
    static const uint32_t dims[2] = {0, 1};
    struct lower_walk *w = tir_lower_walk_new(lo, buffer, l, starts, dims);
    uint32_t count = tir_layout_size(l, TIR_AXIS_REG);
    struct tir_value **out = tir_lower_new_registers(lo, count);
    tir_lower_read(lo, w, buffer->type->elem, count, out);
    for (uint32_t r = 0; r < count; r++)
        out[r] = tir_lower_cast(lo, &lo->b, out[r], as);
    return out;
}

static void lower_fma(struct product *p)
{
    struct lower *lo = p->lo;
    struct tir_value *result = p->inst->results[0], *acc = p->inst->operands[TIR_DOT_ACC];
    const struct tir_type *scalar = tir_type_scalar(lo->types, result->type->elem);
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **operands = tir_lower_new_registers(lo, TIR_FOR_INIT + count);
    const struct tir_type **types = arena_array(lo->cx->scratch, const struct tir_type *, count);
    operands[TIR_FOR_BEGIN] = tir_lower_i32(lo, 0);
    operands[TIR_FOR_END] = tir_lower_i32(lo, p->k);
    operands[TIR_FOR_STEP] = tir_lower_i32(lo, 1);
    for (uint32_t r = 0; r < count; r++) {
        operands[TIR_FOR_INIT + r] = tir_lower_register(lo, acc, r);
        types[r] = scalar;
    }
    struct tir_inst *loop =
        tir_build(&lo->b, TIR_OP_FOR, operands, TIR_FOR_INIT + count, types, count, 1);
    struct tir_value *k = tir_block_add_arg(lo->f, loop->regions[0], lo->i32, "k");
    struct tir_value **d = tir_lower_new_registers(lo, count);
    for (uint32_t r = 0; r < count; r++)
        d[r] = tir_block_add_arg(lo->f, loop->regions[0], scalar, NULL);

    struct tir_builder outer = lo->b;
    lo->b = tir_builder_at_end(lo->f, loop->regions[0]);
    lo->b.span = p->inst->span;
    const struct tir_layout *row = tir_layout_slice(lo->types, p->acc, 1);
    const struct tir_layout *column = tir_layout_slice(lo->types, p->acc, 0);
    struct tir_value **a = load_line(p, p->inst->operands[TIR_DOT_A], 1, k, row, scalar);
    struct tir_value **b = load_line(p, p->inst->operands[TIR_DOT_B], 0, k, column, scalar);
    for (uint32_t r = 0; r < count; r++) {
        struct tir_value *in[] = {a[tir_lower_same_register(p->acc, r, row)],
                                  b[tir_lower_same_register(p->acc, r, column)], d[r]};
        d[r] = tir_elem_is_float(scalar->elem)
                   ? tir_build1(&lo->b, TIR_OP_FMA, scalar, in, 3)
                   : tir_binary(&lo->b, TIR_OP_ADD, tir_binary(&lo->b, TIR_OP_MUL, in[0], in[1]),
                                d[r]);
    }
    tir_build_yield(&lo->b, d, count);
    lo->b = outer;
    tir_lower_set_registers(lo, result, loop->results);
}

void tir_lower_dot(struct lower *lo, struct tir_inst *inst)
{
    const struct tir_type *a = inst->operands[TIR_DOT_A]->type;
    const struct tir_type *b = inst->operands[TIR_DOT_B]->type;
    const struct tir_type *t = inst->results[0]->type;
    struct product p = {.lo = lo, .inst = inst, .acc = t->layout};
    p.m = t->shape[0];
    p.n = t->shape[1];
    p.k = a->shape[1];
    p.plan = tir_dot_plan(lo->cx->target, inst);
    if (!p.plan.mma) {
        lower_fma(&p);
        return;
    }
    if (!a->layout || !b->layout) { // layout leaves none of these
        tir_lower_unsupported(lo, inst, "a product of a part of a buffer without a layout");
        return;
    }
    p.warp_m = warps_of(p.acc, 0);
    p.warp_n = warps_of(p.acc, 1);
    p.rows = (uint32_t)p.m / (16 * p.warp_m.extent);
    p.columns = (uint32_t)p.n / (8 * p.warp_n.extent);
    p.steps = (uint32_t)p.k / (2 * p.plan.chunk);
    lower_mma(&p);
}
