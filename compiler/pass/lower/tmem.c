// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, tensor memory: addresses, copies from shared memory, loads and stores, and the end of
// the allocation.
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
// lanes of its place in its warpgroup. Which of them a thread has, and with which instruction,
// follows from the layout of the tile (layout_tmem.c).
//
// Scales lie otherwise (scales.c).

#include "pass/lower/tmem.h"

#include "ir/walk.h"
#include "pass/lower/descriptor.h"
#include "pass/lower/scales.h"
#include "pass/receipt.h"

enum {
    MAX_WORDS = 128, // of one load or store
    FREE_WORDS = 24, // registers of a thread beside those
    LANE_SHIFT = 16,
    HALF_LANES = 16 // of a warp
};

bool tir_lower_tmem_refuse(struct lower *lo, const struct tir_inst *inst, const char *why)
{
    tir_error_at(lo->cx->diags, inst->span, TIR_E_UNSUPPORTED, "no tcgen05 for %s: %s",
                 inst->op == TIR_OP_GEMM_TMEM   ? "gemm_async"
                 : inst->op == TIR_OP_TMEM_COPY ? "copy_async"
                                                : tir_ops[inst->op].name,
                 why);
    lo->failed = true;
    return false;
}

bool tir_lower_has_tcgen05(struct lower *lo, const struct tir_inst *inst)
{
    if (lo->cx->target->features & TIR_HAS_TCGEN05)
        return true;
    tir_lower_tmem_refuse(lo, inst, "the target has none");
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
            tir_lower_tmem_refuse(lo, inst, "a part of 64 rows of a pair has all columns");
            return NULL;
        }
        if (d == t->rank - 1 && step % TMEM_COLUMN_BITS) {
            if (!tir_is_const_int(index, &known) || known * step % TMEM_COLUMN_BITS) {
                tir_lower_tmem_refuse(lo, inst, "a part does not begin with a column of 32 bits");
                return NULL;
            }
            index = tir_lower_i32(lo, known * step / TMEM_COLUMN_BITS);
            step = TMEM_COLUMN_BITS;
        }
        if (d == t->rank - 1)
            step /= TMEM_COLUMN_BITS;
        at = tir_lower_add(lo, &lo->b, at, tir_lower_mul_const(lo, &lo->b, index, step));
    }
    return at;
}

struct tir_value *tir_lower_tmem_address(struct lower *lo, struct tir_value *buffer)
{
    struct tir_inst *def = buffer->def;
    if (def->op == TIR_OP_TMEM_BUFFER)
        return tir_lower_add(
            lo, &lo->b, def->operands[0],
            tir_lower_i32(lo,
                          tir_attr_int(def, TIR_ATTR_column, 0) +
                              (tir_attr_int(def, TIR_ATTR_upper, 0) * HALF_LANES << LANE_SHIFT)));
    if (def->op != TIR_OP_VIEW) {
        tir_lower_tmem_refuse(lo, def, "a matrix in tensor memory is not transposed");
        return NULL;
    }
    struct tir_value *at = tir_lower_tmem_address(lo, tir_ref_base(def));
    return at ? step_into(lo, def, at) : NULL;
}

int64_t tir_lower_tmem_row_columns(const struct lower *lo, const struct tir_value *v)
{
    while (v->def->op == TIR_OP_VIEW)
        v = tir_ref_base(v->def);
    const int64_t columns =
        v->type->shape[v->type->rank - 1] * tir_elems[v->type->elem].bits / TMEM_COLUMN_BITS;
    return folds(lo, v->type) ? columns / 2 : columns;
}

int64_t tir_lower_tmem_block_at(const struct lower *lo, int64_t rows, int64_t columns, int64_t i)
{
    return tir_tmem_block(rows) == TIR_TMEM_LANES || tir_tmem_folds(rows, lo->has_pairs)
               ? i * columns
               : i / 2 * columns + (i % 2 * HALF_LANES << LANE_SHIFT);
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
        return tir_lower_tmem_refuse(
            lo, inst,
            "it fills 128 lanes, and blocks of 64 rows have half of them: they "
            "are stored through registers");
    if (bytes % PIECE)
        return tir_lower_tmem_refuse(lo, inst, "a row is no multiple of 16 bytes");
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
        return tir_lower_tmem_refuse(lo, inst, why);
    struct tir_value *start = tir_lower_tmem_address(lo, to);
    for (int64_t r = 0; start && r < rows; r += TIR_TMEM_LANES)
        for (uint32_t i = 0; i < d.steps; i++) {
            const int64_t at = tir_lower_tmem_block_at(lo, rows, tir_lower_tmem_row_columns(lo, to),
                                                       r / TIR_TMEM_LANES) +
                               i * 8 * piece / TMEM_COLUMN_BITS;
            tir_lower_tmem_cp(lo, tir_lower_add(lo, &lo->b, start, tir_lower_i32(lo, at)),
                              tir_lower_descriptor_at(lo, &d, r, (int64_t)i * d.depth), 8 * piece,
                              TIR_TMEM_LANES);
        }
    return start ? (uint32_t)(rows / TIR_TMEM_LANES) * d.steps : 0;
}

void tir_lower_tmem_copy(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *to = inst->operands[TIR_TMEM_TO], *from = inst->operands[TIR_TMEM_FROM];
    if (!tir_lower_has_tcgen05(lo, inst))
        return;
    const bool scales = tir_tmem_is_scales(to->type);
    uint32_t count = 0;
    const char *why = scales ? tir_lower_scales_copy(lo, to, from, &count) : NULL;
    if (why)
        tir_lower_tmem_refuse(lo, inst, why);
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
    struct tir_tmem_shape shape;  // of the instructions
    bool is_half;                 // blocks of 64 rows, in half of the lanes of each warp
    bool folds;                   // in half of the warps
    uint32_t blocks, halves;      // of a thread; of the 32 lanes in each, what moves at a time
    uint32_t words, parts;        // of each; elements of a word
};

// The columns of a row of the tile, in each lane.
static int64_t row_columns_of_tile(const struct access *a)
{
    const int64_t columns = a->tile->shape[1] * tir_elems[a->tile->elem].bits / TMEM_COLUMN_BITS;
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
    if (!tir_lower_has_tcgen05(lo, inst))
        return false;
    if (mask)
        return tir_lower_tmem_refuse(lo, inst,
                                     "a part of tensor memory moves as a whole, without a mask");
    *a = (struct access){.tile = tile,
                         .folds = folds(lo, tile),
                         .row_columns = tir_lower_tmem_row_columns(lo, tir_ref_base(inst))};
    a->is_half = tir_tmem_block(tile->shape[0]) != TIR_TMEM_LANES && !a->folds;
    if (a->is_half && bits != TMEM_COLUMN_BITS)
        return tir_lower_tmem_refuse(lo, inst, "elements of blocks of 64 rows have 32 bits");
    if (warps % 4 || lo->first_warp % 4)
        return tir_lower_tmem_refuse(lo, inst, "the warps do not make up whole warpgroups");
    if (bits > TMEM_COLUMN_BITS || tir_lower_register_count(tile) * bits % TMEM_COLUMN_BITS)
        return tir_lower_tmem_refuse(lo, inst, "a thread has no whole columns of 32 bits");
    if (!tir_tmem_shape_of(lo->types, tile, tile->layout, warps, lo->has_pairs, &a->shape))
        return tir_lower_tmem_refuse(lo, inst, "no shape has the layout of the tile");
    struct tir_value *at = tir_lower_tmem_address(lo, tir_ref_base(inst));
    a->at = at ? step_into(lo, inst, at) : NULL;
    if (!a->at)
        return false;
    find_place(lo, a);
    a->halves = a->shape.row_bits && !a->is_half ? 2 : 1;
    const uint32_t count = tir_lower_register_count(tile) / (a->blocks * a->halves);
    a->parts = TMEM_COLUMN_BITS / bits;
    a->words = count / a->parts;
    return true;
}

// How many words the next instruction moves: a power of two. ptxas refuses one with more registers
// than threads have at launch, also where a role gets more.
static uint32_t next_words(const struct lower *lo, const struct access *a, uint32_t done)
{
    const uint32_t registers = lo->cx->target->registers_per_sm / lo->f->threads;
    const uint32_t split = a->shape.split; // an instruction has columns on either side of it
    uint32_t n = MAX_WORDS;
    while (n > a->words - done || (split && n > split - done % split) ||
           (n > 1 && n + FREE_WORDS > registers))
        n /= 2;
    return n;
}

// Where a word of block i of the thread is, or of one of its halves.
static struct tir_value *word_at(struct lower *lo, const struct access *a, uint32_t i,
                                 uint32_t half, uint32_t word)
{
    const uint32_t split = a->shape.split;
    const int64_t rows = a->tile->shape[0];
    const int64_t column = (split               ? word / split * 2 * split + word % split
                            : a->shape.row_bits ? 2 * word
                                                : word) +
                           (half * HALF_LANES << LANE_SHIFT);
    struct tir_builder *b = &lo->b;
    if (!a->first)
        return tir_lower_add(
            lo, b, a->at,
            tir_lower_i32(lo, tir_lower_tmem_block_at(lo, rows, a->row_columns, i) + column));
    struct tir_value *block = tir_lower_add(lo, b, a->first, tir_lower_i32(lo, i));
    struct tir_value *at = tir_lower_add(lo, b, a->at, tir_lower_i32(lo, column));
    if (a->is_half) {
        struct tir_value *odd = tir_lower_digit(lo, b, block, 1, 2, false);
        at = tir_lower_add(lo, b, at, tir_lower_mul_const(lo, b, odd, HALF_LANES << LANE_SHIFT));
        block = tir_lower_digit(lo, b, block, 2, 2, true);
    }
    return tir_lower_add(lo, b, at, tir_lower_mul_const(lo, b, block, a->row_columns));
}

static void set_shape(struct lower *lo, const struct access *a, struct tir_inst *inst)
{
    if (a->shape.row_bits)
        tir_set_int(lo->f, inst, TIR_ATTR_row_bits, a->shape.row_bits);
    if (a->shape.split)
        tir_set_int(lo->f, inst, TIR_ATTR_split, a->shape.split);
}

// The register that has element e of those that the instructions list.
static uint32_t register_of(const struct access *a, uint32_t e)
{
    int64_t coord[TIR_MAX_RANK];
    if (a->shape.natural == a->tile->layout)
        return e;
    tir_layout_coord(a->shape.natural, (struct tir_layout_at){{[TIR_AXIS_REG] = e}}, coord);
    return tir_layout_find(a->tile->layout, coord).at[TIR_AXIS_REG];
}

// A shape that the layout of the tile has chosen.
static void report_shape(struct lower *lo, const struct access *a, const struct tir_inst *inst)
{
    const uint32_t row_bits = a->shape.row_bits, usual = a->is_half ? 256 : 0;
    if (row_bits != usual)
        tir_receipt_add(lo->cx, TIR_TOPIC_MEMORY, inst->span, "%s of %s: tcgen05.%s.16x%ub%s",
                        tir_ops[inst->op].name, tir_ref_base(inst)->name,
                        inst->op == TIR_OP_LOAD ? "ld" : "st", row_bits,
                        row_bits == 32 ? "x2" : "");
}

// What v is before conversions to a layout that it has already, as those of stated layouts.
static const struct tir_value *unconverted(const struct tir_value *v)
{
    while (v->def && v->def->op == TIR_OP_CONVERT_LAYOUT &&
           v->type == v->def->operands[TIR_REDUCE_X]->type)
        v = v->def->operands[TIR_REDUCE_X];
    return v;
}

static bool is_abs(const struct tir_value *v)
{
    return v->def && v->def->op == TIR_OP_ABS && v->type->elem == TIR_F32;
}

// The reduction of the rows of v, or of v without its signs, that a load can do too; NULL: none.
static const struct tir_inst *reduction_of(const struct lower *lo, const struct tir_value *v)
{
    tir_foreach_inst(inst, lo->f) {
        const enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
        if (inst->op != TIR_OP_REDUCE || tir_attr_int(inst, TIR_ATTR_axis, 0) != 1 ||
            (kind != TIR_WORD_kind_max && kind != TIR_WORD_kind_min))
            continue;
        const struct tir_value *x = unconverted(inst->operands[TIR_REDUCE_X]);
        if (x == v || (is_abs(x) && unconverted(x->def->operands[0]) == v))
            return inst;
    }
    return NULL;
}

// Whether instructions have one: it takes rows of a thread alone, of whole words, two at least.
static bool may_reduce(const struct lower *lo, const struct access *a)
{
    const enum tir_elem elem = a->tile->elem;
    const uint32_t row_bits = a->shape.row_bits;
    bool may = lo->cx->target->features & TIR_HAS_TCGEN05_RED && (!row_bits || row_bits == 32) &&
               (elem == TIR_F32 || elem == TIR_I32 || elem == TIR_U32);
    for (uint32_t w = 0, n; may && w < a->words; w += n) {
        n = next_words(lo, a, w);
        may = n > 1;
    }
    return may;
}

// Loads n words, of `parts` elements each, and reduces them as `reduce` says, unless it is NULL.
static struct tir_value *load_words(struct lower *lo, const struct access *a, struct tir_value *at,
                                    uint32_t n, struct tir_value **to,
                                    const struct tir_inst *reduce)
{
    const struct tir_type *elem = tir_type_scalar(lo->types, a->tile->elem);
    const struct tir_type *words[MAX_WORDS + 1], *parts[TMEM_COLUMN_BITS];
    for (uint32_t i = 0; i < n; i++)
        words[i] = lo->i32;
    words[n] = elem;
    for (uint32_t i = 0; i < a->parts; i++)
        parts[i] = elem;
    struct tir_inst *ld = tir_build(&lo->b, TIR_OP_TMEM_LD, &at, 1, words, n + (reduce ? 1 : 0), 0);
    set_shape(lo, a, ld);
    if (reduce)
        tir_set_word(lo->f, ld, TIR_ATTR_kind, tir_attr_word(reduce, TIR_ATTR_kind, TIR_WORD_NONE));
    if (reduce && is_abs(unconverted(reduce->operands[TIR_REDUCE_X])))
        tir_set_int(lo->f, ld, TIR_ATTR_of_abs, 1);
    for (uint32_t i = 0; i < n; i++, to += a->parts) {
        struct tir_value *word = ld->results[i];
        if (a->parts > 1)
            memcpy(to, tir_build(&lo->b, TIR_OP_UNPACK, &word, 1, parts, a->parts, 0)->results,
                   a->parts * sizeof(*to));
        else
            *to = elem == lo->i32 ? word : tir_build1(&lo->b, TIR_OP_BITCAST, elem, &word, 1);
    }
    return reduce ? ld->results[n] : NULL;
}

void tir_lower_tmem_load(struct lower *lo, struct tir_inst *inst)
{
    struct access a;
    const struct tir_type *tile = inst->results[0]->type;
    if (!open_access(lo, inst, tile, inst->operands[TIR_LOAD_MASK], &a))
        return;
    const uint32_t count = a.blocks * a.halves * a.words * a.parts;
    struct tir_value **in_order = tir_lower_new_registers(lo, count), **to = in_order;
    struct tir_value **out = tir_lower_new_registers(lo, count);
    struct lower_reduced *reduced = arena_array(lo->cx->scratch, struct lower_reduced, 1);
    const struct tir_inst *reduce = may_reduce(lo, &a) ? reduction_of(lo, inst->results[0]) : NULL;
    reduced->of = tir_lower_new_registers(lo, count);
    for (uint32_t i = 0; i < a.blocks * a.halves; i++)
        for (uint32_t w = 0, n; w < a.words; w += n, to += n * a.parts) {
            struct tir_value *at = word_at(lo, &a, i / a.halves, i % a.halves, w);
            n = next_words(lo, &a, w);
            reduced->of[register_of(&a, (uint32_t)(to - in_order))] =
                load_words(lo, &a, at, n, to, reduce);
        }
    for (uint32_t e = 0; e < count; e++)
        out[register_of(&a, e)] = in_order[e];
    if (reduce) {
        reduced->kind = tir_attr_word(reduce, TIR_ATTR_kind, TIR_WORD_NONE);
        tir_map_set(&lo->reduced, tir_map_key(reduce->operands[TIR_REDUCE_X]), reduced);
        tir_receipt_add(lo->cx, TIR_TOPIC_MEMORY, reduce->span, "reduce: by tcgen05.ld.red of %s",
                        tir_ref_base(inst)->name);
    }
    report_shape(lo, &a, inst);
    tir_lower_set_registers(lo, inst->results[0], out);
}

// Element `e` of v, or as many as a word has from it on, as a word.
static struct tir_value *word_of(struct lower *lo, const struct access *a, struct tir_value *v,
                                 uint32_t e)
{
    struct tir_value *parts[TMEM_COLUMN_BITS];
    for (uint32_t p = 0; p < a->parts; p++)
        parts[p] = tir_lower_register(lo, v, register_of(a, e + p));
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
    report_shape(lo, &a, inst);
    for (uint32_t i = 0; i < a.blocks * a.halves; i++)
        for (uint32_t w = 0, n; w < a.words; w += n) {
            struct tir_value *at = word_at(lo, &a, i / a.halves, i % a.halves, w);
            struct tir_value *operands[1 + MAX_WORDS] = {at};
            n = next_words(lo, &a, w);
            for (uint32_t k = 0; k < n; k++)
                operands[1 + k] = word_of(lo, &a, v, (i * a.words + w + k) * a.parts);
            set_shape(lo, &a, tir_build(&lo->b, TIR_OP_TMEM_ST, operands, 1 + n, NULL, 0, 0));
        }
}

// The allocation.

void tir_lower_tmem_buffer(struct lower *lo, struct tir_inst *inst)
{
    lo->tmem_base = inst->operands[0];
    if (lo->has_pairs != (tir_attr_find(inst, TIR_ATTR_cta_group) != NULL))
        tir_lower_tmem_refuse(lo, inst,
                              "all buffers in tensor memory are of pairs of CTAs, or none");
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
    if (!tir_lower_has_tcgen05(lo, alloc))
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
