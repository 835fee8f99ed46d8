// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile: products into tensor memory, on tcgen05. Where their rows are: tmem.c.
//
//     gemm_tmem(a, b, acc, accumulate = c);
// becomes
//     tcgen05_mma(add(base, 64), descriptor_a, descriptor_b, accumulate = c, kind = f16,
//                 cols = 256, depth = 16, steps = 4, a_step = 2, b_step = 2);

#include "machine/product.h"
#include "pass/lower/descriptor.h"
#include "pass/lower/scales.h"
#include "pass/lower/tmem.h"
#include "pass/receipt.h"

enum { MAX_STEPS = 16 };

struct gemm {
    struct lower *lo;
    struct tir_inst *inst;
    const struct tir_product *product;
    const struct tir_scaled *scaled; // NULL: without scales
    struct tir_product own;          // of a product with scales, in elements of memory
    struct lower_scales scales[2];   // of A and B
    uint32_t m, n, steps;            // of one instruction, m in each CTA; instructions along K
    uint32_t ctas;                   // that it is of
    uint32_t rows, columns;          // of the sums
    struct lower_descriptor a, b;    // in shared memory
    struct tir_value *acc, *a_at;    // addresses; a_at: NULL unless A is in tensor memory
};

// A product with scales: 32 bytes of a row are a step, as without them.
static bool set_scaled(struct gemm *g, const struct tir_type *a)
{
    struct tir_value *sa = g->inst->operands[TIR_GEMM_SA], *sb = g->inst->operands[TIR_GEMM_SB];
    g->scaled = tir_scaled_find(TIR_ENGINE_TCGEN05, a->elem, sa->type->elem);
    if (!g->scaled)
        return tir_lower_tmem_refuse(g->lo, g->inst, "it has no such element types with scales");
    g->own = (struct tir_product){.engine = TIR_ENGINE_TCGEN05,
                                  .elem = a->elem,
                                  .acc = TIR_F32,
                                  .kind = g->scaled->kind,
                                  .depth = TIR_SCALED_BYTES,
                                  .feature = TIR_HAS_TCGEN05};
    g->product = &g->own;
    if (sb->def->op != TIR_OP_PERMUTE)
        return tir_lower_tmem_refuse(g->lo, g->inst,
                                     "the scales of B lie as B does, along K: sb.T");
    const char *why = tir_lower_scales_find(g->lo, sa, &g->scales[0]);
    why = why ? why : tir_lower_scales_find(g->lo, sb->def->operands[0], &g->scales[1]);
    if (why)
        return tir_lower_tmem_refuse(g->lo, g->inst, why);
    for (uint32_t i = 0; i < 2; i++)
        if (g->scales[i].id % g->scaled->scales)
            return tir_lower_tmem_refuse(
                g->lo, g->inst,
                g->scaled->scales == 2
                    ? "scales for 64 elements are 2 at a time, so the first of them is the "
                      "first or the third of 4"
                    : "scales for 64 elements are 4 at a time, so a part of them begins "
                      "at a multiple of 4");
    return true;
}

static bool set_kind(struct gemm *g)
{
    const struct tir_type *a = g->inst->operands[TIR_DOT_A]->type;
    const struct tir_type *b = g->inst->operands[TIR_DOT_B]->type;
    const struct tir_type *acc = g->inst->operands[TIR_DOT_ACC]->type;
    if (g->inst->operands[TIR_GEMM_SA] && !set_scaled(g, a))
        return false;
    if (!g->scaled)
        g->product = tir_product_find(TIR_ENGINE_TCGEN05, a->elem, b->elem, acc->elem);
    if (!g->product || (g->scaled && a->elem != b->elem && g->scaled->scales != 1))
        return tir_lower_tmem_refuse(g->lo, g->inst, "it has no such element types");
    if (!(g->lo->cx->target->features & g->product->feature)) {
        tir_lower_tmem_refuse(g->lo, g->inst, "the target has it for no such element types");
        tir_lower_note_target(g->lo, g->product->feature);
        return false;
    }
    g->rows = (uint32_t)acc->shape[0];
    g->m = (uint32_t)tir_tmem_block(g->rows);
    g->columns = (uint32_t)acc->shape[1];
    g->ctas = g->lo->has_pairs ? 2 : 1;
    g->steps = (uint32_t)(a->shape[1] / g->product->depth);
    if (a->shape[1] % g->product->depth)
        return tir_lower_tmem_refuse(g->lo, g->inst, "K is no multiple of 32 bytes");
    if (g->scaled && g->m != TIR_TMEM_LANES)
        return tir_lower_tmem_refuse(g->lo, g->inst,
                                     "a product with scales has a multiple of 128 rows");
    return true;
}

static bool open_operand(struct gemm *g, struct lower_descriptor *d, uint32_t operand, int64_t rows)
{
    struct tir_value *v = g->inst->operands[operand];
    *d = (struct lower_descriptor){.kind = LOWER_DESCRIPTOR_TCGEN05,
                                   .depth = g->product->depth,
                                   .steps = g->steps,
                                   .bits = tir_elems[v->type->elem].bits,
                                   .k_dim = operand == TIR_DOT_A};
    const char *why = tir_lower_descriptor_open(g->lo, d, v, rows);
    return !why || tir_lower_tmem_refuse(g->lo, g->inst, why);
}

static bool open_a(struct gemm *g)
{
    struct tir_value *a = g->inst->operands[TIR_DOT_A];
    if (a->type->space == TIR_SPACE_TMEM) {
        if (g->m != TIR_TMEM_LANES)
            return tir_lower_tmem_refuse(g->lo, g->inst,
                                         "A in tensor memory has a multiple of 128 rows");
        g->a_at = tir_lower_tmem_address(g->lo, a);
        return g->a_at;
    }
    if (!open_operand(g, &g->a, TIR_DOT_A, g->m))
        return false;
    for (uint32_t r = 0; r < g->rows; r += g->m)
        if (!tir_lower_descriptor_fits(&g->a, r, g->m))
            return tir_lower_tmem_refuse(g->lo, g->inst,
                                         "A's layout in shared memory has no descriptor");
    return true;
}

// Of a pair each CTA has half of the columns of B, so several instructions along N would each take
// a part of both halves.
static bool open_b_of_pair(struct gemm *g)
{
    enum { COLUMNS_OF_PAIR = 32 }; // as CUTLASS has them; PTX allows 16 where elements have 16 bits
    if (g->columns % COLUMNS_OF_PAIR || g->columns > TIR_TCGEN05_MOST_COLUMNS)
        return tir_lower_tmem_refuse(g->lo, g->inst,
                                     "a product of a pair has a multiple of 32 columns, up to 256");
    g->n = g->columns;
    if (!open_operand(g, &g->b, TIR_DOT_B, g->n / 2))
        return false;
    return tir_lower_descriptor_fits(&g->b, 0, g->n / 2) ||
           tir_lower_tmem_refuse(g->lo, g->inst, "B's layout in shared memory has no descriptor");
}

// The most columns at a time for which every instruction's B has a descriptor.
static bool open_b(struct gemm *g)
{
    if (g->ctas > 1)
        return open_b_of_pair(g);
    if (!open_operand(g, &g->b, TIR_DOT_B, g->columns))
        return false;
    for (g->n = TIR_MIN(g->columns, TIR_TCGEN05_MOST_COLUMNS); g->n; g->n--) {
        bool fits = g->columns % g->n == 0 && g->n % TIR_TCGEN05_COLUMNS == 0 &&
                    (!g->scaled || g->n == g->columns || g->n % TIR_TMEM_SCALE_LANES == 0);
        for (uint32_t c = 0; fits && c < g->columns; c += g->n)
            fits = tir_lower_descriptor_fits(&g->b, c, g->n);
        if (fits)
            return true;
    }
    return tir_lower_tmem_refuse(g->lo, g->inst,
                                 g->columns % TIR_TCGEN05_COLUMNS
                                     ? "the columns of the sums are no multiple of 16"
                                     : "B's layout in shared memory has no descriptor");
}

static bool build_descriptor(struct gemm *g, struct lower_descriptor *d)
{
    const char *why = tir_lower_descriptor_build(g->lo, d);
    return !why || tir_lower_tmem_refuse(g->lo, g->inst, why);
}

// What step adds to A, whether it is a descriptor or an address in tensor memory.
static int64_t a_step(const struct gemm *g, int64_t r, uint32_t step)
{
    const uint32_t bits = tir_elems[g->product->elem].bits;
    return g->a_at ? g->product->depth * bits / TMEM_COLUMN_BITS
                   : tir_lower_descriptor_step(&g->a, r, step);
}

// Steps from `step` on that lie at equal distances in both operands.
static uint32_t equal_steps(const struct gemm *g, int64_t r, int64_t c, uint32_t step,
                            int64_t by[2])
{
    uint32_t end = step + 1;
    by[0] = by[1] = 0;
    for (; end < g->steps && end - step < MAX_STEPS; end++) {
        const int64_t a = a_step(g, r, end - 1), b = tir_lower_descriptor_step(&g->b, c, end - 1);
        if (end > step + 1 && (a != by[0] || b != by[1]))
            break;
        by[0] = a;
        by[1] = b;
    }
    return end - step;
}

// Where the scales of rows of A, or of columns of B, from r on are for a step; *id: which of 4.
static struct tir_value *scales_at(struct gemm *g, uint32_t operand, uint32_t r, uint32_t step,
                                   int64_t *id)
{
    const struct lower_scales *s = &g->scales[operand];
    const uint32_t first = s->id + step * g->scaled->scales;
    const int64_t column = r / TIR_TMEM_SCALE_LANES + first / TIR_TMEM_SCALES * s->word_columns;
    *id = first % TIR_TMEM_SCALES;
    return tir_lower_add(g->lo, &g->lo->b, s->at, tir_lower_i32(g->lo, column));
}

// K of an instruction: with two e2m1 in a byte, of twice as many elements.
static uint32_t depth_of(const struct gemm *g)
{
    const bool is_packed = g->scaled && g->scaled->elem == TIR_U8;
    return g->product->depth * (is_packed ? 2 : 1);
}

static const char *elements_of(const struct gemm *g)
{
    const enum tir_elem a = g->inst->operands[TIR_DOT_A]->type->elem;
    const enum tir_elem b = g->inst->operands[TIR_DOT_B]->type->elem;
    const char *name = tir_words[g->product->kind].name;
    return a == b ? name
                  : tir_str_format(g->lo->cx->scratch, "%s and %s", name, tir_elems[b].name).ptr;
}

// The product of rows from r on and columns from c on.
static void build_mma(struct gemm *g, uint32_t r, uint32_t c, uint32_t step, uint32_t count,
                      const int64_t by[2])
{
    struct lower *lo = g->lo;
    const int64_t k = (int64_t)step * g->product->depth;
    const int64_t columns = tir_lower_tmem_row_columns(lo, g->inst->operands[TIR_DOT_ACC]);
    const int64_t d = tir_lower_tmem_block_at(lo, g->rows, columns, r / g->m) + c;
    struct tir_value *a;
    if (g->a_at) {
        const int64_t at =
            tir_lower_tmem_block_at(lo, g->rows,
                                    tir_lower_tmem_row_columns(lo, g->inst->operands[TIR_DOT_A]),
                                    r / g->m) +
            (int64_t)step * a_step(g, r, step);
        a = tir_lower_add(lo, &lo->b, g->a_at, tir_lower_i32(lo, at));
    } else {
        a = tir_lower_descriptor_at(lo, &g->a, r, k);
    }
    int64_t ids[2] = {0};
    struct tir_value *operands[TIR_TCGEN05_OPERANDS] = {
        [TIR_TCGEN05_D] = tir_lower_add(lo, &lo->b, g->acc, tir_lower_i32(lo, d)),
        [TIR_TCGEN05_A] = a,
        [TIR_TCGEN05_B] = tir_lower_descriptor_at(lo, &g->b, c, k),
        [TIR_TCGEN05_ACCUMULATE] = step ? NULL : g->inst->operands[TIR_GEMM_ACCUMULATE]};
    if (g->scaled) {
        operands[TIR_TCGEN05_SA] = scales_at(g, TIR_DOT_A, r, step, &ids[TIR_DOT_A]);
        operands[TIR_TCGEN05_SB] = scales_at(g, TIR_DOT_B, c, step, &ids[TIR_DOT_B]);
    }
    struct tir_inst *mma =
        tir_build(&lo->b, TIR_OP_TCGEN05_MMA, operands, TIR_TCGEN05_OPERANDS, NULL, 0, 0);
    tir_set_word(lo->f, mma, TIR_ATTR_kind, g->product->kind);
    tir_set_int(lo->f, mma, TIR_ATTR_cols, g->n);
    tir_set_int(lo->f, mma, TIR_ATTR_depth, depth_of(g));
    const enum tir_word b_kind = tir_b_kind(g->inst->operands[TIR_DOT_A]->type->elem,
                                            g->inst->operands[TIR_DOT_B]->type->elem);
    if (b_kind)
        tir_set_word(lo->f, mma, TIR_ATTR_b_kind, b_kind);
    if (g->scaled)
        tir_set_int(lo->f, mma, TIR_ATTR_scales, g->scaled->scales);
    tir_set_int(lo->f, mma, TIR_ATTR_steps, count);
    if (g->m != TIR_TMEM_LANES)
        tir_set_int(lo->f, mma, TIR_ATTR_rows, g->m);
    tir_lower_set_group(lo, mma);
    const struct {
        enum tir_attr_key key;
        int64_t value;
    } rest[] = {{TIR_ATTR_a_step, by[0]},
                {TIR_ATTR_b_step, by[1]},
                {TIR_ATTR_a_trans, !g->a_at && g->a.trans},
                {TIR_ATTR_b_trans, g->b.trans},
                {TIR_ATTR_a_scale, ids[TIR_DOT_A]},
                {TIR_ATTR_b_scale, ids[TIR_DOT_B]}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(rest); i++)
        if (rest[i].value)
            tir_set_int(lo->f, mma, rest[i].key, rest[i].value);
}

void tir_lower_gemm_tmem(struct lower *lo, struct tir_inst *inst)
{
    struct gemm g = {.lo = lo, .inst = inst};
    if (!tir_lower_has_tcgen05(lo, inst) || !set_kind(&g) || !open_b(&g) || !open_a(&g) ||
        !build_descriptor(&g, &g.b) || (!g.a_at && !build_descriptor(&g, &g.a)))
        return;
    g.acc = tir_lower_tmem_address(lo, inst->operands[TIR_DOT_ACC]);
    if (!g.acc)
        return;
    const uint32_t per_row = g.columns / g.n, count = g.rows / g.m * per_row;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t step = 0, steps; step < g.steps; step += steps) {
            const uint32_t r = i / per_row * g.m, c = i % per_row * g.n;
            int64_t by[2];
            steps = equal_steps(&g, r, c, step, by);
            if (g.scaled) { // each step has its scales
                steps = 1;
                by[0] = by[1] = 0;
            }
            build_mma(&g, r, c, step, steps, by);
        }
    tir_receipt_add(lo->cx, TIR_TOPIC_DOT, inst->span,
                    "dot: tcgen05 m%un%uk%u.%s, %u of a thread%s%s%s; not run on silicon",
                    g.ctas * g.m, g.n, depth_of(&g), elements_of(&g), g.steps * count,
                    g.ctas > 1 ? " for a pair of CTAs" : "", g.a_at ? ", A from tensor memory" : "",
                    !g.scaled                      ? ""
                    : g.scaled->scale == TIR_UE4M3 ? ", ue4m3 for 16 elements"
                                                   : ", ue8m0 for 32 elements");
}
