// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, copies by the tensor and bulk engines: splits the transfer of a tile into copies that
// the engine can do.
//
// A tensor copy moves a box. In shared memory the box lies row by row without gaps, its rows no
// longer than the swizzle's atom, and no side of it longer than 256 (PTX ISA, "Tensor modes").
// From the innermost dimension outwards, the box takes the elements that are consecutive in memory;
// the rest becomes further copies. A bf16[256, 128] tile in swizzle(128) memory, which is
// [128 / 64][256][64], takes two copies of [256, 64].
//
// Rows by number come four at a time, as many columns of each as a row of such a box has.
//
// Pixels come all at once: where the next ones begin only the engine counts. Channels are split.
//
// A bulk copy moves consecutive bytes, so each row of a tile is one.

#include "pass/async/tma.h"
#include "machine/budget.h"
#include "pass/lower/lower.h"

struct transfer {
    struct lower *lo;
    const struct tir_inst *inst; // its ref is the slice of the tensor
    struct tir_value *tensor;
    uint32_t rank;          // of the tensor
    uint32_t packed;        // bits of elements that are packed in the tensor's bytes; 0: none are
    bool rounds;            // f32 to tf32
    struct tir_value *rows; // by number; NULL: they follow each other
    int64_t pixels;         // that follow each other; 0: none do
    int64_t box[TIR_MAX_RANK]; // of the whole slice, in elements; 0: a single index
    struct lower_part part;
    struct tir_value *at;       // bytes where the part starts; NULL: 0
    uint32_t bytes;             // of an element
    int64_t step[TIR_MAX_RANK]; // box of one copy; 0: a single index
};

static bool refuse(struct transfer *t, const char *why)
{
    struct lower *lo = t->lo;
    tir_error_at(lo->cx->diags, t->inst->span, TIR_E_UNSUPPORTED, "no %s: %s",
                 t->inst->op == TIR_OP_STORE_ASYNC ? "such copy to a tensor"
                 : t->inst->op == TIR_OP_PREFETCH  ? "such prefetch"
                                                   : "such copy to shared memory",
                 why);
    lo->failed = true;
    return false;
}

static bool refuse_target(struct transfer *t, const char *why)
{
    refuse(t, why);
    tir_lower_note_target(t->lo, TIR_HAS_TMA);
    return false;
}

// The iterator that the innermost elements of the buffer's dimension lie along; extent 1: none.
static struct tir_iter inner_iter(const struct transfer *t, uint32_t dim)
{
    const struct tir_layout *m = t->part.memory;
    for (uint32_t d = 0; d < m->rank; d++)
        if (t->part.dims[d].dim == (int32_t)dim && m->first[d + 1] > m->first[d])
            return m->iters[m->first[d + 1] - 1];
    return (struct tir_iter){1, 1, TIR_AXIS_REG};
}

static struct transfer open_transfer(struct lower *lo, const struct tir_inst *inst,
                                     struct tir_value *buffer)
{
    struct transfer t = {.lo = lo, .inst = inst, .tensor = tir_ref_base(inst)};
    t.rank = t.tensor->type->rank;
    t.bytes = TIR_MAX(1, tir_elems[t.tensor->type->elem].bits / 8);
    const bool is_copy = inst->op == TIR_OP_COPY_ASYNC;
    t.packed = is_copy ? tir_copy_packed(inst) : 0;
    t.rounds = is_copy && tir_rounds(inst, inst->operands[TIR_COPY_TO]);
    t.rows = tir_copied_rows(inst);
    for (uint32_t d = 0; d < t.rank; d++)
        t.box[d] = tir_attr_find(inst, TIR_ATTR_box)->list[d];
    if (t.rows)
        t.box[0] = t.rows->type->shape[0];
    if (is_copy && tir_copies_pixels(inst))
        t.pixels = inst->operands[TIR_COPY_TO]->type->shape[0];
    if (t.packed)
        t.box[t.rank - 1] = t.box[t.rank - 1] * 8 / t.packed;
    memcpy(t.step, t.box, sizeof(t.step));
    if (buffer) {
        t.part = tir_lower_part_of(lo, buffer);
        t.at = tir_lower_part_start(lo, &t.part);
        if (!tir_lower_part_adds(&t.part))
            refuse(&t, "the part of the buffer begins inside of what lies together");
    }
    return t;
}

// The box of one copy: the elements of the last `limit` dimensions that are consecutive in memory.
static void set_steps(struct transfer *t, int64_t most)
{
    int64_t dense = 1;
    uint32_t dim = t->pixels > 0; // of the buffer, after that of pixels
    for (uint32_t d = 0; d < t->rank; d++)
        dim += t->box[d] > 0;
    for (uint32_t d = t->rank; d-- > 0;) {
        if (t->box[d] <= 0)
            continue;
        t->step[d] = tir_tma_side(inner_iter(t, --dim), t->box[d], dense,
                                  most / tir_slice_stride(t->inst, d));
        dense *= t->step[d];
    }
    if (t->rows)
        t->step[0] = TIR_MIN(t->step[0], TIR_ROWS_AT_ONCE);
}

static int64_t copies_of(const struct transfer *t)
{
    int64_t copies = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        copies *= t->box[d] > 0 ? t->box[d] / t->step[d] : 1;
    return copies;
}

// The next copy's coordinates in the slice; false: that was the last.
static bool next_copy(const struct transfer *t, int64_t at[TIR_MAX_RANK])
{
    for (uint32_t d = t->rank; d-- > 0;) {
        if (t->box[d] <= 0)
            continue;
        at[d] += t->step[d];
        if (at[d] < t->box[d])
            return true;
        at[d] = 0;
    }
    return false;
}

// Byte of the shared buffer that coordinates in the slice stand for, from where the part starts.
static int64_t byte_at(const struct transfer *t, const int64_t at[TIR_MAX_RANK])
{
    int64_t coord[TIR_MAX_RANK] = {0};
    for (uint32_t d = 0, dim = t->pixels > 0; d < t->rank; d++)
        if (t->box[d] > 0)
            coord[dim++] = at[d];
    return tir_lower_part_byte(&t->part, coord);
}

// Where the copy is to give zeros, a start that lies outside of the tensor.
static struct tir_value *if_copied(struct transfer *t, struct tir_value *start)
{
    struct lower *lo = t->lo;
    struct tir_value *pred =
        t->inst->op == TIR_OP_COPY_ASYNC ? t->inst->operands[TIR_COPY_PRED] : NULL;
    if (!pred)
        return start;
    struct tir_value *away = tir_const_int(lo->f, start->type, -(INT64_C(1) << 30));
    return tir_build1(&lo->b, TIR_OP_WHERE, start->type, (struct tir_value *[]){pred, start, away},
                      3);
}

// The number of a row, which engines take as i32: others are those of no row.
static struct tir_value *row_at(struct transfer *t, int64_t at)
{
    struct lower *lo = t->lo;
    const int64_t coord[TIR_MAX_RANK] = {at};
    struct tir_value *number = tir_lower_index_at(lo, t->rows, coord, 0);
    struct tir_value *row = tir_lower_cast(lo, &lo->b, number, lo->i32);
    if (tir_elems[number->type->elem].bits > 32) {
        struct tir_value *again = tir_lower_cast(lo, &lo->b, row, number->type);
        struct tir_value *choice[] = {tir_binary(&lo->b, TIR_OP_EQ, number, again), row,
                                      tir_lower_i32(lo, -1)};
        row = tir_build1(&lo->b, TIR_OP_WHERE, lo->i32, choice, 3);
    }
    return if_copied(t, row);
}

static struct tir_value *index_at(struct transfer *t, uint32_t d, int64_t at)
{
    struct lower *lo = t->lo;
    if (t->rows && d == 0)
        return row_at(t, at);
    struct tir_value *start = tir_ref_indices(t->inst)[d];
    at *= tir_slice_stride(t->inst, d);
    if (t->packed && d == t->rank - 1) { // a multiple of 3 bytes, or of 2, is 4 elements
        struct tir_value *by = tir_const_int(lo->f, start->type, t->packed / 2);
        start = tir_binary(&lo->b, TIR_OP_DIV, start, by);
        start = tir_lower_mul_const(lo, &lo->b, start, 4);
    }
    start = tir_lower_add(lo, &lo->b, start, tir_const_int(lo->f, start->type, at));
    return d == 0 ? if_copied(t, start) : start;
}

static bool check_rows(struct transfer *t)
{
    const uint32_t features = t->lo->cx->target->features;
    const bool is_sent = t->inst->operands[TIR_COPY_CTAS];
    if (!(features & TIR_HAS_GATHER4) || (is_sent && !(features & TIR_HAS_TCGEN05))) {
        refuse(t, is_sent ? "the target has no tensor copies of rows by number to several CTAs"
                          : "the target has no tensor copies of rows by number");
        tir_lower_note_target(t->lo, TIR_HAS_GATHER4 | (is_sent ? TIR_HAS_TCGEN05 : 0));
        return false;
    }
    return t->step[0] == TIR_ROWS_AT_ONCE ||
           refuse(t, "four rows of it do not lie together in shared memory");
}

static bool check_pixels(struct transfer *t)
{
    const int64_t row = t->step[t->rank - 1];
    if (t->pixels > TIR_TMA_MAX_PIXELS)
        return refuse(t, "a tensor copy has 1024 pixels at most");
    return tir_tma_side(inner_iter(t, 0), t->pixels, row, t->pixels) == t->pixels ||
           refuse(t, "its pixels do not lie together in shared memory");
}

static bool check_tensor(struct transfer *t)
{
    uint32_t last = t->rank - 1;
    if (t->lo->failed)
        return false;
    if (t->rank == 0)
        return refuse(t, "the tensor has no dimension");
    if (!(t->lo->cx->target->features & TIR_HAS_TMA))
        return refuse_target(t, "the target has no tensor copies");
    if (t->rank > TIR_TMA_MAX_RANK)
        return refuse(t, "a tensor map has 5 dimensions at most");
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->box[d] < 0)
            return refuse(t, "its elements are gathered");
    if (t->rows ? !check_rows(t) : t->pixels && !check_pixels(t))
        return false;
    int64_t row = t->step[last] * t->bytes, start;
    if (t->packed && (t->step[last] != TIR_TMA_PACKED ||
                      (t->part.memory->swizzle && t->part.memory->swizzle != TIR_TMA_PACKED)))
        return refuse(t,
                      "elements of less than 8 bits come 128 of a row at a time, swizzled by 128 "
                      "bytes or not at all");
    if (t->box[last] == 0 || row % TIR_TMA_ROW_BYTES)
        return refuse(t, "its rows are no multiple of 16 bytes in shared memory");
    if (tir_is_const_int(tir_ref_indices(t->inst)[last], &start) &&
        start * t->bytes % TIR_TMA_ROW_BYTES)
        return refuse(t, "its rows begin at no multiple of 16 bytes");
    if (copies_of(t) > TIR_BUDGET_TILE_COPIES)
        return refuse(t, "its layout in shared memory takes more than 64 copies");
    if (!t->part.memory)
        return true;
    int64_t at[TIR_MAX_RANK] = {0};
    if (tir_lower_part_divisor(&t->part) % TIR_TMA_TENSOR_BYTES)
        return refuse(t, "it is not known to begin at a multiple of 128 bytes in shared memory");
    do {
        if (byte_at(t, at) % TIR_TMA_TENSOR_BYTES)
            return refuse(t, "a box of it begins at no multiple of 128 bytes in shared memory");
    } while (next_copy(t, at));
    if (t->part.memory->swizzle && row > t->part.memory->swizzle)
        return refuse(t, "its rows are longer than the swizzle's");
    return true;
}

// operands[0..fixed) are there; the slice of one copy follows.
static struct tir_inst *build_tensor_copy(struct transfer *t, enum tir_op op,
                                          struct tir_value **operands,
                                          const int64_t at[TIR_MAX_RANK])
{
    struct lower *lo = t->lo;
    uint32_t fixed = tir_ops[op].fixed_count;
    int64_t step[TIR_MAX_RANK];
    memcpy(step, t->step, sizeof(step));
    if (t->rows)
        step[0] = 0;
    for (uint32_t i = 1; t->rows && i < TIR_ROWS_AT_ONCE; i++)
        operands[TIR_GATHER_ROWS + i - 1] = row_at(t, at[0] + i);
    for (uint32_t i = 0; t->pixels && i < TIR_PIXEL_DIMS; i++)
        operands[TIR_PIXELS_DZ + i] = t->inst->operands[TIR_COPY_DZ + i];
    operands[fixed] = t->tensor;
    for (uint32_t d = 0; d < t->rank; d++)
        operands[fixed + 1 + d] = index_at(t, d, at[d]);
    struct tir_inst *copy = tir_build(&lo->b, op, operands, fixed + 1 + t->rank, NULL, 0, 0);
    tir_set_list(lo->f, copy, TIR_ATTR_box, step, t->rank);
    tir_set_int(lo->f, copy, TIR_ATTR_swizzle, t->part.memory ? t->part.memory->swizzle : 0);
    if (t->part.memory && byte_at(t, at))
        tir_set_int(lo->f, copy, TIR_ATTR_offset, byte_at(t, at));
    if (t->packed || t->rounds)
        tir_set_int(lo->f, copy, TIR_ATTR_bits, t->rounds ? TIR_MAP_TF32 : t->packed);
    tir_copy_attr(lo->f, copy, t->inst, TIR_ATTR_cache);
    tir_copy_attr(lo->f, copy, t->inst, TIR_ATTR_strides);
    if (t->pixels) {
        tir_copy_attr(lo->f, copy, t->inst, TIR_ATTR_low);
        tir_copy_attr(lo->f, copy, t->inst, TIR_ATTR_high);
        tir_set_int(lo->f, copy, TIR_ATTR_pixels, t->pixels);
    }
    return copy;
}

// An mbarrier as a buffer and a byte in it.
static void mbarrier_at(struct lower *lo, struct tir_value *bar, struct tir_value **base,
                        struct tir_value **at)
{
    struct lower_part part = tir_lower_part_of(lo, bar);
    *base = part.base;
    *at = tir_lower_part_start(lo, &part);
    if (!*at)
        *at = tir_lower_i32(lo, 0);
}

static struct tir_value *or_zero(struct lower *lo, struct tir_value *at)
{
    return at ? at : tir_lower_i32(lo, 0);
}

// Bulk copies.

// Bytes from the tensor's address to the element at the slice's start + at.
static struct tir_value *global_byte(struct transfer *t, const int64_t at[TIR_MAX_RANK])
{
    struct lower *lo = t->lo;
    struct tir_value *byte = NULL;
    for (uint32_t d = 0; d < t->rank; d++) {
        struct tir_value *i = tir_lower_narrowed(lo, tir_ref_indices(t->inst)[d], lo->index);
        i = tir_lower_add(lo, &lo->b, i, tir_const_int(lo->f, lo->index, at[d]));
        if (d + 1 < t->rank) {
            struct tir_value *stride = tir_build1(&lo->b, TIR_OP_STRIDE, lo->i64, &t->tensor, 1);
            tir_set_int(lo->f, stride->def, TIR_ATTR_axis, d);
            i = tir_lower_mul(lo, &lo->b, i, tir_lower_cast(lo, &lo->b, stride, lo->index));
        }
        byte = tir_lower_add(lo, &lo->b, byte, tir_lower_mul_const(lo, &lo->b, i, t->bytes));
    }
    return byte;
}

static bool check_bulk(struct transfer *t)
{
    struct lower *lo = t->lo;
    uint32_t last = t->rank - 1;
    const struct tir_param *param = tir_param_of(lo->f, t->tensor);
    if (lo->failed)
        return false;
    if (t->rank == 0)
        return refuse(t, "the tensor has no dimension");
    if (!(lo->cx->target->features & TIR_HAS_TMA))
        return refuse_target(t, "the target has no bulk copies");
    if (!tir_tensor_is_dense(lo->f, t->tensor))
        return refuse(t, "elements of a row may not follow each other");
    if (t->part.memory->swizzle)
        return refuse(t, "the bulk engine does not swizzle");
    if (t->inst->op == TIR_OP_COPY_ASYNC && t->inst->operands[TIR_COPY_PRED])
        return refuse(t, "the bulk engine has no predicate");
    for (uint32_t d = 0; d < t->rank; d++) {
        struct tir_value *start = tir_ref_indices(t->inst)[d];
        int32_t dim = param->dims[d].dim;
        struct tir_value *extent =
            dim >= 0 ? lo->f->dims[dim].value : tir_const_index(lo->f, param->dims[d].constant);
        if (t->box[d] < 0)
            return refuse(t, "its elements are gathered");
        if (tir_lower_may_leave(lo, t->inst, start, extent, TIR_MAX(t->box[d], 1)))
            return refuse(t, "the bulk engine needs the whole slice inside of the tensor");
    }
    if (t->box[last] != t->step[last] || t->step[last] * t->bytes % TIR_TMA_ROW_BYTES)
        return refuse(t, "its rows do not lie together as a multiple of 16 bytes");
    if (copies_of(t) > TIR_BUDGET_TILE_COPIES)
        return refuse(t, "it has more than 64 rows");
    return true;
}

static void set_rows(struct transfer *t)
{
    set_steps(t, INT64_C(1) << 20);
    for (uint32_t d = 0; d + 1 < t->rank; d++)
        t->step[d] = TIR_MIN(t->box[d], 1);
}

// The operations.

void tir_lower_tensor_load(struct lower *lo, struct tir_inst *inst)
{
    struct transfer t = open_transfer(lo, inst, inst->operands[TIR_COPY_TO]);
    bool bulk = tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_tma) == TIR_WORD_engine_bulk;
    if (bulk)
        set_rows(&t);
    else
        set_steps(&t, TIR_TMA_MAX_BOX);
    if (bulk ? !check_bulk(&t) : !check_tensor(&t))
        return;
    struct tir_value *bar, *bar_at, *ctas = inst->operands[TIR_COPY_CTAS];
    mbarrier_at(lo, inst->operands[TIR_COPY_MBAR], &bar, &bar_at);
    int64_t at[TIR_MAX_RANK] = {0};
    do {
        struct tir_value *operands[9 + TIR_MAX_RANK] = {t.part.base, or_zero(lo, t.at), bar, bar_at,
                                                        ctas};
        if (!bulk) {
            build_tensor_copy(&t,
                              t.rows     ? TIR_OP_TMA_GATHER
                              : t.pixels ? TIR_OP_TMA_PIXELS
                                         : TIR_OP_TMA_LOAD,
                              operands, at);
            continue;
        }
        struct tir_value *from[] = {t.tensor, global_byte(&t, at),
                                    tir_lower_i32(lo, t.step[t.rank - 1] * t.bytes), ctas};
        memcpy(operands + 4, from, sizeof(from));
        struct tir_inst *copy = tir_build(&lo->b, TIR_OP_BULK_LOAD, operands, 8, NULL, 0, 0);
        tir_copy_attr(lo->f, copy, inst, TIR_ATTR_cache);
        if (byte_at(&t, at))
            tir_set_int(lo->f, copy, TIR_ATTR_offset, byte_at(&t, at));
    } while (next_copy(&t, at));
}

void tir_lower_tensor_store(struct lower *lo, struct tir_inst *inst)
{
    struct transfer t = open_transfer(lo, inst, inst->operands[0]);
    bool bulk = tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_tma) == TIR_WORD_engine_bulk;
    if (bulk)
        set_rows(&t);
    else
        set_steps(&t, TIR_TMA_MAX_BOX);
    if (bulk ? !check_bulk(&t) : !check_tensor(&t))
        return;
    int64_t at[TIR_MAX_RANK] = {0};
    do {
        struct tir_value *operands[5 + TIR_MAX_RANK] = {t.part.base, or_zero(lo, t.at)};
        if (!bulk) {
            struct tir_inst *copy = build_tensor_copy(&t, TIR_OP_TMA_STORE, operands, at);
            tir_copy_attr(lo->f, copy, inst, TIR_ATTR_kind);
            continue;
        }
        struct tir_value *to[] = {t.tensor, global_byte(&t, at), t.part.base, or_zero(lo, t.at),
                                  tir_lower_i32(lo, t.step[t.rank - 1] * t.bytes)};
        struct tir_inst *copy = tir_build(&lo->b, TIR_OP_BULK_STORE, to, 5, NULL, 0, 0);
        tir_copy_attr(lo->f, copy, inst, TIR_ATTR_kind);
        tir_copy_attr(lo->f, copy, inst, TIR_ATTR_cache);
        if (byte_at(&t, at))
            tir_set_int(lo->f, copy, TIR_ATTR_offset, byte_at(&t, at));
    } while (next_copy(&t, at));
}

// Nothing lies in shared memory: any box will do.
void tir_lower_prefetch(struct lower *lo, struct tir_inst *inst)
{
    struct transfer t = open_transfer(lo, inst, NULL);
    for (uint32_t d = 0; d < t.rank; d++)
        if (t.box[d] > 0)
            t.step[d] = tir_tma_divisor(t.box[d], TIR_TMA_MAX_BOX);
    if (!check_tensor(&t))
        return;
    int64_t at[TIR_MAX_RANK] = {0};
    do {
        struct tir_value *operands[1 + TIR_MAX_RANK];
        build_tensor_copy(&t, TIR_OP_TMA_PREFETCH, operands, at);
    } while (next_copy(&t, at));
}
