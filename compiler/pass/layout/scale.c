// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// scale: products with scales become products of bf16, unless tensor cores take the scales.
//
//     let d: f32[128, 64] = dot(a, b, c, sa = sa, sb = sb);
// becomes
//     let s: f32[128, 2] = cast(sa);
//     let scales: shared f32[128, 2] = alloc();
//     store(scales[0:+128, 0:+2], s);
//     let block: i32[64] = div(iota(axis = 0), i32[64](32));
//     let by: f32[128, 64] = load(scales[0:+128, block]);
//     let a_2: bf16[128, 64] = cast(mul(cast(a), by));
//     ...
//     let d: f32[128, 64] = dot(a_2, b_2, c);
//
// bf16 holds the product of an element of 4 to 8 bits and a scale in ue8m0 or ue4m3 exactly,
// unless it leaves the range. Factors of u8 are unpacked to twice as many e2m1. The columns of b
// are rows here: its transposes cancel those of the program.
//
// Factors of fp8, and of floats of 4 and 6 bits, become f16 on a target whose tensor cores do not
// multiply them; f16 has all their numbers.
//
// A target with block_scale keeps what its instructions take: those of tcgen05 for the pass
// tensor_memory, which makes the same of those that it does not take, those of mma.sync for
// lower_tile.

#include "pass/layout/scale.h"

#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/receipt.h"

// Which instruction.

// Does one instruction take both factors? Elements of one scale may be mixed.
static bool go_together(const struct tir_scaled *a, const struct tir_scaled *b)
{
    return a && b && (a == b || (a->scales == 1 && b->scales == 1));
}

// The sums of an engine, of those that take scales.
static const struct engine {
    enum tir_engine engine;
    uint32_t feature;
    int64_t rows, columns, most_columns;
    const char *why_types, *why_rows, *why_columns;
} engines[] = {
    {TIR_ENGINE_TCGEN05, TIR_HAS_TCGEN05, TIR_TCGEN05_ROWS, TIR_TCGEN05_COLUMNS,
     TIR_TCGEN05_MOST_COLUMNS,
     "it takes e4m3, e5m2, e3m2, e2m3 and e2m1 with ue8m0, or u8, two e2m1, with ue8m0 or ue4m3",
     "it has rows in blocks of 128", "it has 16 to 256 columns, in steps of 16"},
    {TIR_ENGINE_MMA, TIR_HAS_MMA_SCALED, TIR_MMA_ROWS, TIR_MMA_COLUMNS, INT64_MAX,
     "it takes e4m3, e5m2, e3m2, e2m3 and e2m1 with ue8m0, or u8, two e2m1, with ue8m0 or ue4m3",
     "it has rows in blocks of 16", "it has columns in blocks of 8"},
};

// The packed elements that a factor consists of; NULL: it is anything else.
static const struct tir_inst *expand_of(const struct tir_value *factor)
{
    const struct tir_inst *def = factor->kind == TIR_VALUE_RESULT ? factor->def : NULL;
    if (def && def->op == TIR_OP_PERMUTE)
        def = def->operands[0]->kind == TIR_VALUE_RESULT ? def->operands[0]->def : NULL;
    return def && def->op == TIR_OP_EXPAND ? def : NULL;
}

// Elements of less than 8 bits come to shared memory, 16 in 16 bytes, by tensor copies that expand.
static bool comes_packed(const struct tir_inst *dot, uint32_t which)
{
    const struct tir_value *v = dot->operands[which];
    return !tir_elem_is_narrow(v->type->elem) || expand_of(v);
}

static const struct engine *engine_of(const struct tir_target *target)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(engines); i++)
        if (target->features & engines[i].feature)
            return &engines[i];
    return NULL;
}

const struct tir_scaled *tir_scaled_of(const struct tir_inst *dot, const struct tir_target *target,
                                       const char **why)
{
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *b = dot->operands[TIR_DOT_B]->type;
    const struct tir_type *sa = dot->operands[TIR_DOT_SA]->type;
    const struct tir_type *sb = dot->operands[TIR_DOT_SB]->type;
    const struct engine *engine = engine_of(target);
    *why = "the target has none for tiles";
    if (!engine)
        return NULL;
    const struct tir_scaled *scaled = tir_scaled_find(engine->engine, a->elem, sa->elem);
    const int64_t k = tir_scaled_depth(a, 1);
    *why = NULL;
    if (engine->engine == TIR_ENGINE_TCGEN05 &&
        !(comes_packed(dot, TIR_DOT_A) && comes_packed(dot, TIR_DOT_B)))
        *why = "it takes elements of 6 and 4 bits that are packed in memory: expand(T, load)";
    else if (!go_together(scaled, tir_scaled_find(engine->engine, b->elem, sb->elem)))
        *why = engine->why_types;
    else if (k != tir_scaled_block(scaled) * tir_scales_count(sa, 1) ||
             k != tir_scaled_block(scaled) * tir_scales_count(sb, 0))
        *why = "it has a scale for 32 elements, in ue4m3 for 16";
    else if (a->shape[0] % engine->rows)
        *why = engine->why_rows;
    else if (b->shape[1] % engine->columns || b->shape[1] > engine->most_columns)
        *why = engine->why_columns;
    else if (a->shape[1] % TIR_SCALED_BYTES)
        *why = "K is no multiple of 32 bytes";
    return *why ? NULL : scaled;
}

// Building.

struct scale {
    struct tir_func *f;
    struct tir_builder b;
};

static const struct tir_type *tile_type(struct scale *s, enum tir_elem elem, uint32_t rank,
                                        int64_t rows, int64_t columns)
{
    return tir_type_tile(s->f->module->types, elem, rank, (int64_t[]){rows, columns});
}

static struct tir_value *unary(struct scale *s, enum tir_op op, enum tir_elem elem,
                               struct tir_value *x)
{
    const struct tir_type *type = tir_type_with_elem(s->f->module->types, x->type, elem);
    return x->type == type && op == TIR_OP_CAST ? x : tir_build1(&s->b, op, type, &x, 1);
}

// x.T, which is what a transpose transposed.
static struct tir_value *turned(struct scale *s, struct tir_value *x)
{
    if (x->def && x->def->op == TIR_OP_PERMUTE)
        return x->def->operands[0];
    return tir_transpose(&s->b, x);
}

// factor * (0, 1, 2, ...) + first, or that divided by -factor.
static struct tir_value *counted(struct scale *s, int64_t count, int64_t factor, int64_t first)
{
    const struct tir_type *type =
        tir_type_tile(s->f->module->types, TIR_I32, 1, (int64_t[]){count});
    struct tir_value *i = tir_build1(&s->b, TIR_OP_IOTA, type, NULL, 0);
    tir_set_int(s->f, i->def, TIR_ATTR_axis, 0);
    i = tir_binary(&s->b, factor < 0 ? TIR_OP_DIV : TIR_OP_MUL, i,
                   tir_const_int(s->f, type, factor < 0 ? -factor : factor));
    return first ? tir_binary(&s->b, TIR_OP_ADD, i, tir_const_int(s->f, type, first)) : i;
}

static struct tir_value *staging(struct scale *s, const struct tir_type *tile, const char *name)
{
    struct tir_type t = *tile;
    t.space = TIR_SPACE_SHARED;
    struct tir_value *v =
        tir_build1(&s->b, TIR_OP_ALLOC, tir_type_get(s->f->module->types, &t), NULL, 0);
    v->name = tir_intern_cstr(s->f->module->names, name);
    return v;
}

// Stores all rows, whose columns go to those that the index tile names; NULL: to the same ones.
static void put(struct scale *s, struct tir_value *buffer, struct tir_value *columns,
                struct tir_value *v)
{
    struct tir_value *zero = tir_const_index(s->f, 0);
    struct tir_value *operands[] = {
        [TIR_STORE_VALUE] = v, [TIR_STORE_MASK] = NULL, buffer, zero, columns ? columns : zero};
    struct tir_inst *store = tir_build(&s->b, TIR_OP_STORE, operands, 5, NULL, 0, 0);
    const int64_t box[] = {v->type->shape[0], columns ? -1 : v->type->shape[1]};
    tir_set_list(s->f, store, TIR_ATTR_box, box, 2);
}

static struct tir_value *get(struct scale *s, struct tir_value *buffer, struct tir_value *columns,
                             const struct tir_type *type)
{
    struct tir_value *zero = tir_const_index(s->f, 0);
    struct tir_value *operands[] = {
        [TIR_LOAD_PAD] = NULL, [TIR_LOAD_MASK] = NULL, buffer, zero, columns ? columns : zero};
    struct tir_inst *load = tir_build(&s->b, TIR_OP_LOAD, operands, 5, &type, 1, 0);
    tir_set_list(s->f, load, TIR_ATTR_box,
                 (int64_t[]){type->shape[0], columns ? -1 : type->shape[1]}, 2);
    return tir_result(load);
}

// Both e2m1 of each byte, the one in the low half first.
static struct tir_value *unpacked(struct scale *s, struct tir_value *bytes)
{
    const struct tir_type *t = bytes->type;
    const struct tir_type *wide = tile_type(s, TIR_E2M1, 2, t->shape[0], 2 * t->shape[1]);
    struct tir_value *buffer = staging(s, wide, "unpacked");
    for (int64_t half = 0; half < 2; half++) {
        struct tir_value *bits =
            half ? tir_binary(&s->b, TIR_OP_SHR, bytes, tir_const_int(s->f, t, 4))
                 : tir_binary(&s->b, TIR_OP_AND, bytes, tir_const_int(s->f, t, 15));
        put(s, buffer, counted(s, t->shape[1], 2, half), unary(s, TIR_OP_BITCAST, TIR_E2M1, bits));
    }
    return get(s, buffer, NULL, wide);
}

// A value for each column, in all rows.
static struct tir_value *in_rows(struct scale *s, struct tir_value *columns, int64_t rows)
{
    const struct tir_type *t = columns->type;
    struct tir_value *row =
        tir_build1(&s->b, TIR_OP_RESHAPE, tile_type(s, t->elem, 2, 1, t->shape[0]), &columns, 1);
    return tir_build1(&s->b, TIR_OP_BROADCAST, tile_type(s, t->elem, 2, rows, t->shape[0]), &row,
                      1);
}

// Elements of 6 bits: an element is in one byte or in two that follow each other.
static struct tir_value *expanded(struct scale *s, struct tir_value *bytes,
                                  const struct tir_type *type)
{
    const int64_t rows = type->shape[0], columns = type->shape[1];
    const uint32_t width = tir_elem_width(type->elem);
    const struct tir_type *words = tile_type(s, TIR_I32, 2, rows, columns);
    struct tir_value *bit = counted(s, columns, width, 0);
    struct tir_value *at = tir_binary(&s->b, TIR_OP_DIV, bit, tir_const_int(s->f, bit->type, 8));
    struct tir_value *last = tir_const_int(s->f, bit->type, bytes->type->shape[1] - 1);
    struct tir_value *next = tir_binary(&s->b, TIR_OP_ADD, at, tir_const_int(s->f, bit->type, 1));
    next = tir_binary(&s->b, TIR_OP_MIN, next, last);
    struct tir_value *shift = tir_binary(&s->b, TIR_OP_REM, bit, tir_const_int(s->f, bit->type, 8));
    struct tir_value *buffer = staging(s, bytes->type, "packed");
    put(s, buffer, NULL, bytes);
    const struct tir_type *wide = tile_type(s, TIR_U8, 2, rows, columns);
    struct tir_value *low = unary(s, TIR_OP_CAST, TIR_I32, get(s, buffer, at, wide));
    struct tir_value *high = unary(s, TIR_OP_CAST, TIR_I32, get(s, buffer, next, wide));
    high = tir_binary(&s->b, TIR_OP_SHL, high, tir_const_int(s->f, words, 8));
    struct tir_value *both = tir_binary(&s->b, TIR_OP_OR, low, high);
    both = tir_binary(&s->b, TIR_OP_SHR, both, in_rows(s, shift, rows));
    both = tir_binary(&s->b, TIR_OP_AND, both, tir_const_int(s->f, words, (1 << width) - 1));
    return unary(s, TIR_OP_BITCAST, type->elem, unary(s, TIR_OP_CAST, TIR_U8, both));
}

static void expand(struct tir_func *f, struct tir_inst *inst)
{
    struct scale s = {.f = f, .b = tir_builder_before(f, inst)};
    s.b.span = inst->span;
    struct tir_value *bytes = inst->operands[0];
    const struct tir_type *type = tir_result(inst)->type;
    tir_replace_uses(f, tir_result(inst),
                     type->elem == TIR_E2M1 ? unpacked(&s, bytes) : expanded(&s, bytes, type));
    tir_remove(inst);
}

// Packed elements stay packed where each use is as a factor that tensor copies bring; NULL:
// nowhere.
static bool stays_packed(struct tir_func *f, const struct tir_target *target,
                         const struct tir_value *v, bool is_turned)
{
    const char *why;
    bool stays = target;
    tir_foreach_inst(user, f)
        for (uint32_t i = 0; stays && i < user->operand_count; i++) {
            if (user->operands[i] != v)
                continue;
            if (user->op == TIR_OP_PERMUTE && !is_turned) {
                stays = stays_packed(f, target, tir_result(user), true);
                continue;
            }
            const struct tir_scaled *scaled =
                tir_is_scaled_dot(user) ? tir_scaled_of(user, target, &why) : NULL;
            stays = scaled && scaled->engine == TIR_ENGINE_TCGEN05;
        }
    return stays;
}

static struct tir_inst *first_other(struct tir_func *f, const struct tir_target *target)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_EXPAND && !stays_packed(f, target, tir_result(inst), false))
            return inst;
    return NULL;
}

static enum tir_change expand_others(struct tir_func *f, const struct tir_target *target)
{
    enum tir_change change = TIR_UNCHANGED;
    for (struct tir_inst *inst; (inst = first_other(f, target)); change = TIR_CHANGED)
        expand(f, inst);
    return change;
}

// Each scale for all columns of its block.
static struct tir_value *repeated(struct scale *s, struct tir_value *scales, int64_t columns)
{
    const struct tir_type *t = scales->type;
    const struct tir_type *wide = tile_type(s, TIR_F32, 2, t->shape[0], columns);
    struct tir_value *x = unary(s, TIR_OP_CAST, TIR_F32, scales);
    if (t->shape[1] == 1)
        return tir_build1(&s->b, TIR_OP_BROADCAST, wide, &x, 1);
    struct tir_value *buffer = staging(s, x->type, "scales");
    put(s, buffer, NULL, x);
    return get(s, buffer, counted(s, columns, -(columns / t->shape[1]), 0), wide);
}

// The rows of x times their scales.
static struct tir_value *multiplied(struct scale *s, struct tir_value *x, struct tir_value *scales)
{
    x = x->type->elem == TIR_U8 ? unpacked(s, x) : x;
    struct tir_value *by =
        tir_in_layout(&s->b, repeated(s, scales, x->type->shape[1]), x->type->layout);
    struct tir_value *product =
        tir_binary(&s->b, TIR_OP_MUL, unary(s, TIR_OP_CAST, TIR_F32, x), by);
    return unary(s, TIR_OP_CAST, TIR_BF16, product);
}

// Packed scales in shared memory as a matrix: of the rows of A, or of the columns of B.
static struct tir_value *unpacked_scales(struct scale *s, struct tir_value *packed, bool of_b)
{
    const struct tir_type *t = packed->type;
    struct tir_types *types = s->f->module->types;
    const uint32_t bands = (uint32_t)t->shape[0], blocks = (uint32_t)t->shape[1];
    const uint32_t block = TIR_TMEM_SCALE_LANES * TIR_PACKED_SCALES;
    struct tir_type matrix = {.elem = t->elem, .space = TIR_SPACE_SHARED, .rank = 2};
    matrix.shape[of_b] = tir_scales_rows(t, 1);
    matrix.shape[!of_b] = tir_scales_count(t, 1);
    const struct tir_iter rows[] = {
        {bands, blocks * block, TIR_AXIS_REG},
        {TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES, TIR_TMEM_SCALES, TIR_AXIS_REG},
        {TIR_TMEM_SCALE_LANES, TIR_PACKED_SCALES, TIR_AXIS_REG}};
    const struct tir_iter scales[] = {{blocks, block, TIR_AXIS_REG},
                                      {TIR_TMEM_SCALES, 1, TIR_AXIS_REG}};
    enum { ROWS = TIR_COUNT_OF(rows), SCALES = TIR_COUNT_OF(scales) };
    struct tir_iter iters[ROWS + SCALES];
    memcpy(iters + (of_b ? SCALES : 0), rows, sizeof(rows));
    memcpy(iters + (of_b ? 0 : ROWS), scales, sizeof(scales));
    matrix.layout = tir_layout_from_iters(types, 2, matrix.shape, iters, ROWS + SCALES, NULL, 0, 0);
    struct tir_value *buffer = staging(s, t, "packed"), *zero = tir_const_index(s->f, 0);
    struct tir_value *operands[] = {
        [TIR_STORE_VALUE] = packed, [TIR_STORE_MASK] = NULL, buffer, zero, zero, zero, zero};
    struct tir_inst *store =
        tir_build(&s->b, TIR_OP_STORE, operands, TIR_COUNT_OF(operands), NULL, 0, 0);
    tir_set_list(s->f, store, TIR_ATTR_box, t->shape, t->rank);
    return tir_build1(&s->b, TIR_OP_ALIAS, tir_type_get(types, &matrix), &buffer, 1);
}

// The scales of B are those of its columns, which are rows here.
static struct tir_value *rows_of_scales(struct scale *s, struct tir_value *scales, bool of_b)
{
    if (!tir_scales_are_packed(scales->type))
        return of_b ? turned(s, scales) : scales;
    struct tir_value *rows = unpacked_scales(s, scales, false);
    return get(s, rows, NULL,
               tile_type(s, rows->type->elem, 2, rows->type->shape[0], rows->type->shape[1]));
}

static void multiply_scales(struct tir_func *f, struct tir_inst *dot)
{
    struct scale s = {.f = f, .b = tir_builder_before(f, dot)};
    s.b.span = dot->span;
    struct tir_value *sa = rows_of_scales(&s, dot->operands[TIR_DOT_SA], false);
    struct tir_value *sb = rows_of_scales(&s, dot->operands[TIR_DOT_SB], true);
    struct tir_value *b = multiplied(&s, turned(&s, dot->operands[TIR_DOT_B]), sb);
    dot->operands[TIR_DOT_A] = multiplied(&s, dot->operands[TIR_DOT_A], sa);
    dot->operands[TIR_DOT_B] = turned(&s, b);
    dot->operands[TIR_DOT_SA] = dot->operands[TIR_DOT_SB] = NULL;
}

void tir_multiply_scales(struct tir_func *f)
{
    expand_others(f, NULL);
    tir_foreach_inst(inst, f)
        if (tir_is_scaled_dot(inst))
            multiply_scales(f, inst);
}

// Lanes load packed scales from shared memory as they lie, if the rows of each warp are whole parts
// of blocks, which powers of two ensure; else as a matrix.
static enum tir_change unpack_for_lanes(struct tir_func *f, struct tir_inst *dot)
{
    const struct tir_type *sums = tir_result(dot)->type;
    struct scale s = {.f = f, .b = tir_builder_before(f, dot)};
    enum tir_change change = TIR_UNCHANGED;
    s.b.span = dot->span;
    for (uint32_t i = TIR_DOT_SA; i <= TIR_DOT_SB; i++)
        if (tir_scales_are_packed(dot->operands[i]->type) &&
            !tir_is_pow2((uint64_t)sums->shape[i == TIR_DOT_SB])) {
            dot->operands[i] = unpacked_scales(&s, dot->operands[i], i == TIR_DOT_SB);
            change = TIR_CHANGED;
        }
    return change;
}

// Narrow factors.

static bool has_product(const struct tir_target *target, enum tir_elem a, enum tir_elem b,
                        enum tir_elem sum)
{
    static const enum tir_engine all[] = {TIR_ENGINE_MMA, TIR_ENGINE_WGMMA, TIR_ENGINE_TCGEN05};
    for (uint32_t i = 0; i < TIR_COUNT_OF(all); i++) {
        const struct tir_product *product = tir_product_find(all[i], a, b, sum);
        if (product && target->features & product->feature)
            return true;
    }
    return false;
}

// f16 has every number of fp8, and of floats of 4 and 6 bits.
static bool is_narrow(const struct tir_value *factor)
{
    const enum tir_elem elem = factor->type->elem;
    return tir_type_is_tile(factor->type) && tir_elem_is_float(elem) && tir_elems[elem].bits <= 8 &&
           !tir_elem_is_scale(elem);
}

// A transpose stays one, so that what is loaded lies in memory as it did.
static struct tir_value *as_halves(struct tir_builder *b, struct tir_value *v)
{
    struct tir_value *x = v->def && v->def->op == TIR_OP_PERMUTE ? v->def->operands[0] : v;
    struct tir_types *types = b->f->module->types;
    struct tir_value *y =
        tir_build1(b, TIR_OP_CAST, tir_type_with_elem(types, x->type, TIR_F16), &x, 1);
    if (x == v)
        return y;
    const struct tir_type *turned = tir_type_with_elem(types, v->type, TIR_F16);
    struct tir_value *z = tir_build1(b, TIR_OP_PERMUTE, turned, &y, 1);
    tir_copy_attr(b->f, z->def, v->def, TIR_ATTR_permutation);
    return z;
}

// Factors that no tensor core of the target multiplies are f16 on those that it has.
static bool multiply_halves(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *dot)
{
    struct tir_value *a = dot->operands[TIR_DOT_A], *b = dot->operands[TIR_DOT_B];
    const enum tir_elem sum =
        dot->results[0]->type->elem == TIR_F16 ? TIR_F32 : dot->results[0]->type->elem;
    if (!is_narrow(a) || !is_narrow(b) ||
        has_product(cx->target, a->type->elem, b->type->elem, sum) ||
        !has_product(cx->target, TIR_F16, TIR_F16, sum))
        return false;
    struct tir_builder before = tir_builder_before(f, dot);
    dot->operands[TIR_DOT_A] = as_halves(&before, a);
    dot->operands[TIR_DOT_B] = as_halves(&before, b);
    tir_receipt_refuse(
        cx, TIR_TOPIC_DOT, TIR_WISH_NONE, dot->span,
        "dot: %s as f16, which has its numbers, because the target has no such product",
        tir_elems[a->type->elem].name);
    return true;
}

enum tir_change tir_pass_scale(struct tir_func *f, struct tir_pass_cx *cx)
{
    enum tir_change change = expand_others(f, cx->target);
    tir_foreach_inst(inst, f) {
        const char *why;
        if (inst->op == TIR_OP_DOT && !tir_is_scaled_dot(inst) && multiply_halves(f, cx, inst))
            change = TIR_CHANGED;
        if (!tir_is_scaled_dot(inst))
            continue;
        const struct tir_scaled *scaled = tir_scaled_of(inst, cx->target, &why);
        if (scaled && scaled->engine == TIR_ENGINE_MMA && unpack_for_lanes(f, inst))
            change = TIR_CHANGED;
        if (scaled)
            continue;
        multiply_scales(f, inst);
        tir_receipt_refuse(cx, TIR_TOPIC_DOT, TIR_WISH_NONE, inst->span, TIR_SCALED_REFUSAL, why);
        change = TIR_CHANGED;
    }
    return change;
}
