// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, tensor memory: products on tcgen05, copies from shared memory, loads and stores, and
// the end of the allocation.
//
// An address has the lane in its upper half and the column in its lower. The rows of a buffer are
// blocks of 128 or 64 rows (tir_tmem_block), a product for each. Of 128 rows (PTX ISA, tcgen05 data
// path layout D) row r of a block is lane r. Of 64 rows (layout F) it is lane r / 16 * 32 + r % 16,
// and 16 lanes further in the blocks with odd numbers:
//
//     rows   0 ..  63   lanes  0 .. 15 of each warp, columns 0 .. n - 1
//     rows  64 .. 127   lanes 16 .. 31 of each warp, columns 0 .. n - 1
//     rows 128 .. 191   lanes  0 .. 15 of each warp, columns n .. 2 n - 1
//
// Of a pair of CTAs (cta_group::2) each CTA has such blocks, and a product has a block of both: 256
// rows (layout A) or 128 (layout B). Then 64 rows are folded, and move as a whole:
//
//     rows   0 ..  63   lanes  0 .. 63 columns 0 .. n / 2 - 1, lanes 64 .. 127 the rest
//
// Elements follow one another along the columns, several to a column if they have fewer than 32
// bits, and the dimensions before the last two count buffers side by side. A warp reaches the 32
// lanes of its place in its warpgroup; a thread has one of them, or parts of two of 16.
//
// Scales lie otherwise (scales.c).
//
//     gemm_tmem(a, b, acc, accumulate = c);
// becomes
//     tcgen05_mma(add(base, 64), descriptor_a, descriptor_b, accumulate = c, kind = f16,
//                 cols = 256, depth = 16, steps = 4, a_step = 2, b_step = 2);

#include "ir/walk.h"
#include "machine/product.h"
#include "pass/lower/descriptor.h"
#include "pass/lower/scales.h"
#include "pass/receipt.h"

enum {
    MAX_STEPS = 16,
    MAX_WORDS = 128,  // of one load or store
    FREE_WORDS = 24,  // registers of a thread beside those
    COLUMN_BITS = 32, // of one lane
    LANE_SHIFT = 16,
    HALF_LANES = 16 // of a warp
};

static bool refuse(struct lower *lo, const struct tir_inst *inst, const char *why)
{
    tir_error_at(lo->cx->diags, inst->span, TIR_E_UNSUPPORTED, "no tcgen05 for %s: %s",
                 inst->op == TIR_OP_GEMM_TMEM   ? "gemm_async"
                 : inst->op == TIR_OP_TMEM_COPY ? "copy_async"
                                                : tir_ops[inst->op].name,
                 why);
    lo->failed = true;
    return false;
}

static bool has_tcgen05(struct lower *lo, const struct tir_inst *inst)
{
    if (lo->cx->target->features & TIR_HAS_TCGEN05)
        return true;
    refuse(lo, inst, "the target has none");
    tir_lower_note_target(lo, TIR_HAS_TCGEN05);
    return false;
}

void tir_lower_set_group(struct lower *lo, struct tir_inst *inst)
{
    if (lo->has_pairs)
        tir_set_int(lo->f, inst, TIR_ATTR_cta_group, 2);
}

// Addresses.

// Are the rows of a buffer, or a part of one, blocks of 64 of a pair?
static bool folds(const struct lower *lo, const struct tir_type *t)
{
    return tir_tmem_folds(t->shape[t->rank - 2], lo->has_pairs);
}

// The columns that one step of dimension d of a buffer is; of the last one, in bits.
static int64_t columns_of(const struct lower *lo, const struct tir_type *t, uint32_t d)
{
    if (d + 1 == t->rank)
        return tir_elems[t->elem].bits;
    struct tir_type part = *t;
    for (uint32_t i = 0; i <= d; i++)
        part.shape[i] = 1;
    return tir_tmem_columns(&part, lo->has_pairs);
}

// Adds where a slice begins to the address of its buffer. NULL: reported.
static struct tir_value *step_into(struct lower *lo, const struct tir_inst *inst,
                                   struct tir_value *at)
{
    const struct tir_type *t = tir_ref_base(inst)->type;
    for (uint32_t d = 0; at && d < t->rank; d++) {
        struct tir_value *index = tir_lower_cast(lo, &lo->b, tir_ref_indices(inst)[d], lo->i32);
        if (d == t->rank - 2) // all lanes
            continue;
        int64_t known, step = columns_of(lo, t, d);
        if (d == t->rank - 1 && folds(lo, t)) {
            if (tir_attr_find(inst, TIR_ATTR_box)->list[d] == t->shape[d])
                continue;
            refuse(lo, inst, "a part of 64 rows of a pair has all columns");
            return NULL;
        }
        if (d == t->rank - 1 && step % COLUMN_BITS) {
            if (!tir_is_const_int(index, &known) || known * step % COLUMN_BITS) {
                refuse(lo, inst, "a part does not begin with a column of 32 bits");
                return NULL;
            }
            index = tir_lower_i32(lo, known * step / COLUMN_BITS);
            step = COLUMN_BITS;
        }
        if (d == t->rank - 1)
            step /= COLUMN_BITS;
        at = tir_lower_add(lo, &lo->b, at, tir_lower_mul_const(lo, &lo->b, index, step));
    }
    return at;
}

// NULL: reported.
static struct tir_value *address_of(struct lower *lo, struct tir_value *buffer)
{
    struct tir_inst *def = buffer->def;
    if (def->op == TIR_OP_TMEM_BUFFER)
        return tir_lower_add(lo, &lo->b, def->operands[0],
                             tir_lower_i32(lo, tir_attr_int(def, TIR_ATTR_column, 0)));
    if (def->op != TIR_OP_VIEW) {
        refuse(lo, def, "a matrix in tensor memory is not transposed");
        return NULL;
    }
    struct tir_value *at = address_of(lo, tir_ref_base(def));
    return at ? step_into(lo, def, at) : NULL;
}

// The columns of a row of the whole buffer that v is a part of, in each lane.
static int64_t row_columns(const struct lower *lo, const struct tir_value *v)
{
    while (v->def->op == TIR_OP_VIEW)
        v = tir_ref_base(v->def);
    const int64_t columns =
        v->type->shape[v->type->rank - 1] * tir_elems[v->type->elem].bits / COLUMN_BITS;
    return folds(lo, v->type) ? columns / 2 : columns;
}

// Where block i of rows begins.
static int64_t block_at(const struct lower *lo, int64_t rows, int64_t columns, int64_t i)
{
    return tir_tmem_block(rows) == TIR_TMEM_LANES || tir_tmem_folds(rows, lo->has_pairs)
               ? i * columns
               : i / 2 * columns + (i % 2 * HALF_LANES << LANE_SHIFT);
}

// Products.

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
        return refuse(g->lo, g->inst, "it has no such element types with scales");
    g->own = (struct tir_product){.engine = TIR_ENGINE_TCGEN05,
                                  .elem = a->elem,
                                  .acc = TIR_F32,
                                  .kind = g->scaled->kind,
                                  .depth = TIR_SCALED_BYTES,
                                  .feature = TIR_HAS_TCGEN05};
    g->product = &g->own;
    if (sb->def->op != TIR_OP_PERMUTE)
        return refuse(g->lo, g->inst, "the scales of B lie as B does, along K: sb.T");
    const char *why = tir_lower_scales_find(g->lo, sa, &g->scales[0]);
    why = why ? why : tir_lower_scales_find(g->lo, sb->def->operands[0], &g->scales[1]);
    if (why)
        return refuse(g->lo, g->inst, why);
    for (uint32_t i = 0; i < 2; i++)
        if (g->scales[i].id % g->scaled->scales)
            return refuse(
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
        g->product = tir_product_find(TIR_ENGINE_TCGEN05, a->elem, acc->elem);
    const bool is_mixed =
        g->scaled ? g->scaled->scales == 1 : tir_elem_is_fp8(a->elem) && tir_elem_is_fp8(b->elem);
    if (!g->product || (a->elem != b->elem && !is_mixed))
        return refuse(g->lo, g->inst, "it has no such element types");
    if (!(g->lo->cx->target->features & g->product->feature)) {
        refuse(g->lo, g->inst, "the target has it for no such element types");
        tir_lower_note_target(g->lo, g->product->feature);
        return false;
    }
    g->rows = (uint32_t)acc->shape[0];
    g->m = (uint32_t)tir_tmem_block(g->rows);
    g->columns = (uint32_t)acc->shape[1];
    g->ctas = g->lo->has_pairs ? 2 : 1;
    g->steps = (uint32_t)(a->shape[1] / g->product->depth);
    if (a->shape[1] % g->product->depth)
        return refuse(g->lo, g->inst, "K is no multiple of 32 bytes");
    if (g->scaled && g->m != TIR_TMEM_LANES)
        return refuse(g->lo, g->inst, "a product with scales has a multiple of 128 rows");
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
    return !why || refuse(g->lo, g->inst, why);
}

static bool open_a(struct gemm *g)
{
    struct tir_value *a = g->inst->operands[TIR_DOT_A];
    if (a->type->space == TIR_SPACE_TMEM) {
        if (g->m != TIR_TMEM_LANES)
            return refuse(g->lo, g->inst, "A in tensor memory has a multiple of 128 rows");
        g->a_at = address_of(g->lo, a);
        return g->a_at;
    }
    if (!open_operand(g, &g->a, TIR_DOT_A, g->m))
        return false;
    for (uint32_t r = 0; r < g->rows; r += g->m)
        if (!tir_lower_descriptor_fits(&g->a, r, g->m))
            return refuse(g->lo, g->inst, "A's layout in shared memory has no descriptor");
    return true;
}

// Of a pair each CTA has half of the columns of B, so several instructions along N would each take
// a part of both halves.
static bool open_b_of_pair(struct gemm *g)
{
    enum { COLUMNS_OF_PAIR = 32 }; // as CUTLASS has them; PTX allows 16 where elements have 16 bits
    if (g->columns % COLUMNS_OF_PAIR || g->columns > TIR_TCGEN05_MOST_COLUMNS)
        return refuse(g->lo, g->inst,
                      "a product of a pair has a multiple of 32 columns, up to 256");
    g->n = g->columns;
    if (!open_operand(g, &g->b, TIR_DOT_B, g->n / 2))
        return false;
    return tir_lower_descriptor_fits(&g->b, 0, g->n / 2) ||
           refuse(g->lo, g->inst, "B's layout in shared memory has no descriptor");
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
    return refuse(g->lo, g->inst,
                  g->columns % TIR_TCGEN05_COLUMNS
                      ? "the columns of the sums are no multiple of 16"
                      : "B's layout in shared memory has no descriptor");
}

static bool build_descriptor(struct gemm *g, struct lower_descriptor *d)
{
    const char *why = tir_lower_descriptor_build(g->lo, d);
    return !why || refuse(g->lo, g->inst, why);
}

// What step adds to A, whether it is a descriptor or an address in tensor memory.
static int64_t a_step(const struct gemm *g, int64_t r, uint32_t step)
{
    const uint32_t bits = tir_elems[g->product->elem].bits;
    return g->a_at ? g->product->depth * bits / COLUMN_BITS
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
    const int64_t columns = row_columns(lo, g->inst->operands[TIR_DOT_ACC]);
    const int64_t d = block_at(lo, g->rows, columns, r / g->m) + c;
    struct tir_value *a;
    if (g->a_at) {
        const int64_t at =
            block_at(lo, g->rows, row_columns(lo, g->inst->operands[TIR_DOT_A]), r / g->m) +
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
    const enum tir_elem b = g->inst->operands[TIR_DOT_B]->type->elem;
    if (b != g->inst->operands[TIR_DOT_A]->type->elem)
        tir_set_word(lo->f, mma, TIR_ATTR_b_kind,
                     tir_scaled_find(TIR_ENGINE_TCGEN05, b, TIR_UE8M0)->b_kind);
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
    if (!has_tcgen05(lo, inst) || !set_kind(&g) || !open_b(&g) || !open_a(&g) ||
        !build_descriptor(&g, &g.b) || (!g.a_at && !build_descriptor(&g, &g.a)))
        return;
    g.acc = address_of(lo, inst->operands[TIR_DOT_ACC]);
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

// Copies.

// Rows of 128 lanes, in pieces of 32 bytes, or of 16 if their number is odd. Returns how many; 0:
// reported.
static uint32_t copy_rows(struct lower *lo, struct tir_inst *inst, struct tir_value *to,
                          struct tir_value *from)
{
    enum { PIECE = 16 };
    const uint32_t bits = tir_elems[to->type->elem].bits;
    const int64_t rows = to->type->shape[0], bytes = to->type->shape[1] * bits / 8;
    const int64_t piece = bytes % (2 * PIECE) ? PIECE : 2 * PIECE;
    if (tir_tmem_block(rows) != TIR_TMEM_LANES)
        return refuse(lo, inst,
                      "it fills 128 lanes, and blocks of 64 rows have half of them: they "
                      "are stored through registers");
    if (bytes % PIECE)
        return refuse(lo, inst, "a row is no multiple of 16 bytes");
    struct lower_descriptor d = {.kind = LOWER_DESCRIPTOR_TCGEN05,
                                 .depth = (uint32_t)(8 * piece / bits),
                                 .steps = (uint32_t)(bytes / piece),
                                 .bits = bits,
                                 .k_dim = 1};
    const char *why = tir_lower_descriptor_open(lo, &d, from, TIR_TMEM_LANES);
    for (int64_t r = 0; !why && r < rows; r += TIR_TMEM_LANES)
        if (d.trans || !tir_lower_descriptor_fits(&d, r, TIR_TMEM_LANES))
            why = "the layout in shared memory has no descriptor; swizzle(128) has one";
    why = why ? why : tir_lower_descriptor_build(lo, &d);
    if (why)
        return refuse(lo, inst, why);
    struct tir_value *start = address_of(lo, to);
    for (int64_t r = 0; start && r < rows; r += TIR_TMEM_LANES)
        for (uint32_t i = 0; i < d.steps; i++) {
            const int64_t at = block_at(lo, rows, row_columns(lo, to), r / TIR_TMEM_LANES) +
                               i * 8 * piece / COLUMN_BITS;
            tir_lower_tmem_cp(lo, tir_lower_add(lo, &lo->b, start, tir_lower_i32(lo, at)),
                              tir_lower_descriptor_at(lo, &d, r, (int64_t)i * d.depth), 8 * piece,
                              TIR_TMEM_LANES);
        }
    return start ? (uint32_t)(rows / TIR_TMEM_LANES) * d.steps : 0;
}

void tir_lower_tmem_copy(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *to = inst->operands[TIR_TMEM_TO], *from = inst->operands[TIR_TMEM_FROM];
    if (!has_tcgen05(lo, inst))
        return;
    const bool scales = tir_tmem_is_scales(to->type);
    uint32_t count = 0;
    const char *why = scales ? tir_lower_scales_copy(lo, to, from, &count) : NULL;
    if (why)
        refuse(lo, inst, why);
    else if (!scales)
        count = copy_rows(lo, inst, to, from);
    if (count)
        tir_receipt_add(lo->cx, TIR_TOPIC_COPY, inst->span,
                        "to tensor memory: tcgen05.cp %s, %u of a thread; not run on silicon",
                        scales ? "32x128b.warpx4" : "of 128 rows", count);
}

// Loads and stores.

struct access {
    struct tir_value *at, *first; // of the thread's warp; its first block, NULL: 0
    const struct tir_type *tile;  // what moves
    int64_t row_columns;          // of the buffer
    bool is_half;                 // blocks of 64 rows, in half of the lanes of each warp
    bool folds;                   // in half of the warps
    uint32_t blocks;              // of a thread
    uint32_t words, parts;        // of a block; elements of a word
};

// The columns of a row of the tile, in each lane.
static int64_t row_columns_of_tile(const struct access *a)
{
    const int64_t columns = a->tile->shape[1] * tir_elems[a->tile->elem].bits / COLUMN_BITS;
    return a->folds ? columns / 2 : columns;
}

// Steps to the lanes of the warp and to the columns and blocks of its warpgroup (tir_layout_tmem).
static void find_place(struct lower *lo, struct access *a)
{
    const uint32_t warps = lo->threads / 32, groups = warps / 4;
    const int64_t rows = a->tile->shape[0];
    const uint32_t blocks = (uint32_t)(rows / tir_tmem_block(rows));
    const uint32_t groups_m = (uint32_t)tir_gcd(groups, blocks), groups_n = groups / groups_m;
    struct tir_value *warp = tir_lower_thread(lo, TIR_AXIS_WARP);
    struct tir_value *quarter = tir_lower_digit(lo, &lo->b, warp, 1, 4, warps == 4);
    a->blocks = blocks / groups_m;
    a->at = tir_lower_add(lo, &lo->b, a->at,
                          tir_lower_mul_const(lo, &lo->b, quarter, 32 << LANE_SHIFT));
    if (groups_m > 1) {
        struct tir_value *m = tir_lower_digit(lo, &lo->b, warp, 4, groups_m, groups_n == 1);
        a->first = tir_lower_mul_const(lo, &lo->b, m, a->blocks);
    }
    if (groups_n > 1) {
        struct tir_value *n = tir_lower_digit(lo, &lo->b, warp, 4 * groups_m, groups_n, true);
        const int64_t columns = row_columns_of_tile(a) / groups_n;
        a->at = tir_lower_add(lo, &lo->b, a->at, tir_lower_mul_const(lo, &lo->b, n, columns));
    }
}

// What a warp has of the slice. False: reported.
static bool open_access(struct lower *lo, struct tir_inst *inst, const struct tir_type *tile,
                        const struct tir_value *mask, struct access *a)
{
    const uint32_t warps = lo->threads / 32, bits = tir_elems[tile->elem].bits;
    if (!has_tcgen05(lo, inst))
        return false;
    if (mask)
        return refuse(lo, inst, "a part of tensor memory moves as a whole, without a mask");
    if (tile->layout != tir_layout_tmem(lo->types, tile->shape, warps, lo->has_pairs) ||
        lo->first_warp % 4)
        return refuse(lo, inst, "the warps do not make up whole warpgroups");
    *a = (struct access){
        .tile = tile, .folds = folds(lo, tile), .row_columns = row_columns(lo, tir_ref_base(inst))};
    a->is_half = tir_tmem_block(tile->shape[0]) != TIR_TMEM_LANES && !a->folds;
    if (a->is_half && bits != COLUMN_BITS)
        return refuse(lo, inst, "elements of blocks of 64 rows have 32 bits");
    struct tir_value *at = address_of(lo, tir_ref_base(inst));
    a->at = at ? step_into(lo, inst, at) : NULL;
    if (!a->at)
        return false;
    find_place(lo, a);
    const uint32_t count = tir_lower_register_count(tile) / a->blocks;
    if (bits > COLUMN_BITS || count * bits % COLUMN_BITS)
        return refuse(lo, inst, "a thread has no whole columns of 32 bits");
    a->parts = COLUMN_BITS / bits;
    a->words = count / a->parts;
    return true;
}

// How many words the next instruction moves: a power of two. ptxas refuses one with more registers
// than threads have at launch, also where a role gets more.
static uint32_t next_words(const struct lower *lo, const struct access *a, uint32_t done)
{
    const uint32_t registers = lo->cx->target->registers_per_sm / lo->f->threads;
    uint32_t n = MAX_WORDS;
    while (n > a->words - done || (n > 1 && n + FREE_WORDS > registers))
        n /= 2;
    return n;
}

// Where a word of block i of the thread is.
static struct tir_value *word_at(struct lower *lo, const struct access *a, uint32_t i,
                                 uint32_t word)
{
    const int64_t rows = a->tile->shape[0], column = a->is_half ? 2 * word : word;
    struct tir_builder *b = &lo->b;
    if (!a->first)
        return tir_lower_add(lo, b, a->at,
                             tir_lower_i32(lo, block_at(lo, rows, a->row_columns, i) + column));
    struct tir_value *block = tir_lower_add(lo, b, a->first, tir_lower_i32(lo, i));
    struct tir_value *at = tir_lower_add(lo, b, a->at, tir_lower_i32(lo, column));
    if (a->is_half) {
        struct tir_value *odd = tir_lower_digit(lo, b, block, 1, 2, false);
        at = tir_lower_add(lo, b, at, tir_lower_mul_const(lo, b, odd, HALF_LANES << LANE_SHIFT));
        block = tir_lower_digit(lo, b, block, 2, 2, true);
    }
    return tir_lower_add(lo, b, at, tir_lower_mul_const(lo, b, block, a->row_columns));
}

static void set_rows(struct lower *lo, const struct access *a, struct tir_inst *inst)
{
    if (a->is_half)
        tir_set_int(lo->f, inst, TIR_ATTR_rows, TIR_TMEM_LANES / 2);
}

// Loads n words, of `parts` elements each.
static void load_words(struct lower *lo, const struct access *a, struct tir_value *at, uint32_t n,
                       struct tir_value **to)
{
    const struct tir_type *elem = tir_type_scalar(lo->types, a->tile->elem);
    const struct tir_type *words[MAX_WORDS], *parts[COLUMN_BITS];
    for (uint32_t i = 0; i < n; i++)
        words[i] = lo->i32;
    for (uint32_t i = 0; i < a->parts; i++)
        parts[i] = elem;
    struct tir_inst *ld = tir_build(&lo->b, TIR_OP_TMEM_LD, &at, 1, words, n, 0);
    set_rows(lo, a, ld);
    for (uint32_t i = 0; i < n; i++, to += a->parts) {
        struct tir_value *word = ld->results[i];
        if (a->parts > 1)
            memcpy(to, tir_build(&lo->b, TIR_OP_UNPACK, &word, 1, parts, a->parts, 0)->results,
                   a->parts * sizeof(*to));
        else
            *to = elem == lo->i32 ? word : tir_build1(&lo->b, TIR_OP_BITCAST, elem, &word, 1);
    }
}

void tir_lower_tmem_load(struct lower *lo, struct tir_inst *inst)
{
    struct access a;
    const struct tir_type *tile = inst->results[0]->type;
    if (!open_access(lo, inst, tile, inst->operands[TIR_LOAD_MASK], &a))
        return;
    struct tir_value **out = tir_lower_new_registers(lo, a.blocks * a.words * a.parts);
    for (uint32_t i = 0; i < a.blocks; i++)
        for (uint32_t w = 0, n; w < a.words; w += n) {
            n = next_words(lo, &a, w);
            load_words(lo, &a, word_at(lo, &a, i, w), n, out + (i * a.words + w) * a.parts);
        }
    tir_lower_set_registers(lo, inst->results[0], out);
}

// Element `e` of v, or as many as a word has from it on, as a word.
static struct tir_value *word_of(struct lower *lo, const struct access *a, struct tir_value *v,
                                 uint32_t e)
{
    struct tir_value *parts[COLUMN_BITS];
    for (uint32_t p = 0; p < a->parts; p++)
        parts[p] = tir_lower_register(lo, v, e + p);
    if (a->parts > 1)
        return tir_build1(&lo->b, TIR_OP_PACK, lo->i32, parts, a->parts);
    return parts[0]->type == lo->i32 ? parts[0]
                                     : tir_build1(&lo->b, TIR_OP_BITCAST, lo->i32, parts, 1);
}

void tir_lower_tmem_store(struct lower *lo, struct tir_inst *inst)
{
    struct access a;
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    const struct tir_type *tile = v->type;
    if (!tile->layout) // a constant has none
        tile = tir_type_with_layout(
            lo->types, tile,
            tir_layout_tmem(lo->types, tile->shape, lo->threads / 32, lo->has_pairs));
    if (!open_access(lo, inst, tile, inst->operands[TIR_STORE_MASK], &a))
        return;
    for (uint32_t i = 0; i < a.blocks; i++)
        for (uint32_t w = 0, n; w < a.words; w += n) {
            struct tir_value *operands[1 + MAX_WORDS] = {word_at(lo, &a, i, w)};
            n = next_words(lo, &a, w);
            for (uint32_t k = 0; k < n; k++)
                operands[1 + k] = word_of(lo, &a, v, (i * a.words + w + k) * a.parts);
            set_rows(lo, &a, tir_build(&lo->b, TIR_OP_TMEM_ST, operands, 1 + n, NULL, 0, 0));
        }
}

// The allocation.

void tir_lower_tmem_buffer(struct lower *lo, struct tir_inst *inst)
{
    lo->tmem_base = inst->operands[0];
    if (lo->has_pairs != (tir_attr_find(inst, TIR_ATTR_cta_group) != NULL))
        refuse(lo, inst, "all buffers in tensor memory are of pairs of CTAs, or none");
}

// The threads that share tensor memory meet.
static void build_meeting(struct lower *lo, struct tir_builder *b)
{
    if (!lo->has_pairs) {
        tir_build(b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
        return;
    }
    tir_build(b, TIR_OP_CLUSTER_ARRIVE, NULL, 0, NULL, 0, 0);
    tir_build(b, TIR_OP_CLUSTER_WAIT, NULL, 0, NULL, 0, 0);
}

// At the end of the kernel the warp that allocated frees, when all threads have come, of pairs
// those of the cluster. Nothing is allocated for buffers that nobody uses.
void tir_lower_tmem_end(struct lower *lo)
{
    struct tir_inst *alloc = NULL;
    tir_foreach_inst(inst, lo->f)
        if (inst->op == TIR_OP_TMEM_ALLOC)
            alloc = inst;
    if (!alloc || lo->failed)
        return;
    struct tir_builder b = tir_builder_at_end(lo->f, lo->f->body);
    if (!lo->tmem_base) {
        tir_remove(alloc);
        if (lo->has_pairs) // the program may rely on it
            build_meeting(lo, &b);
        return;
    }
    if (!has_tcgen05(lo, alloc))
        return;
    static const enum tir_word sides[] = {TIR_WORD_of_before_thread_sync,
                                          TIR_WORD_of_after_thread_sync};
    for (uint32_t i = 0; i < 2; i++) {
        if (i)
            build_meeting(lo, &b);
        struct tir_inst *fence = tir_build(&b, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
        tir_set_word(lo->f, fence, TIR_ATTR_of, sides[i]);
    }
    struct tir_value *warp = tir_build1(&b, TIR_OP_WARPID, lo->i32, NULL, 0);
    struct tir_value *first = tir_binary(&b, TIR_OP_EQ, warp, tir_lower_i32(lo, 0));
    struct tir_inst *branch = tir_build(&b, TIR_OP_IF, &first, 1, NULL, 0, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct tir_builder in = tir_builder_at_end(lo->f, branch->regions[i]);
        if (i == 0) {
            struct tir_inst *free = tir_build(&in, TIR_OP_TMEM_FREE, &lo->tmem_base, 1, NULL, 0, 0);
            tir_set_int(lo->f, free, TIR_ATTR_columns, tir_attr_int(alloc, TIR_ATTR_columns, 0));
            tir_lower_set_group(lo, free);
        }
        tir_build_yield(&in, NULL, 0);
    }
}
