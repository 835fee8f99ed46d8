// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_store: the chunks of a value that leaves through shared memory.

#include "machine/budget.h"
#include "pass/async/pipeline.h"
#include "pass/async/stores.h"
#include "pass/layout/warpgroup.h"
#include "pass/sync/crew.h"

bool tir_outgoing_repeats(const struct tir_inst *inst)
{
    const struct tir_inst *loop = inst->block->owner;
    while (loop && !tir_is_loop(loop))
        loop = loop->block->owner;
    if (inst->op != TIR_OP_ATOMIC || !loop || loop->op == TIR_OP_TILES ||
        tir_type_bytes(inst->operands[TIR_STORE_VALUE]->type) > TIR_BUDGET_ROUND_BYTES)
        return false;
    tir_foreach_inst_within(dot, loop)
        if (tir_dot_on_warpgroups(dot) && dot->block->owner == loop)
            return true;
    return false;
}

int64_t tir_outgoing_columns(const struct tir_inst *store, int64_t left)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    if (tir_outgoing_repeats(store))
        return left;
    const uint32_t bits = tir_elems[t->elem].bits;
    int64_t bytes = TIR_BUDGET_STORE_BYTES;
    while (bytes > left * bits / 8)
        bytes /= 2;
    return bytes * 8 / bits;
}

// Rows of a chunk, if chunks are rows: at most as many bytes as 128 rows of a chunk of columns.
static int64_t chunk_rows(const struct tir_type *t)
{
    const int64_t row = t->shape[t->rank - 1] * tir_elems[t->elem].bits / 8;
    int64_t rows = 1;
    while (2 * rows * row <= 128 * TIR_BUDGET_STORE_BYTES &&
           t->shape[t->rank - 2] % (2 * rows) == 0)
        rows *= 2;
    return rows;
}

// Would each thread have its part of chunks of `extent` along dimension `cut`?
static bool has_parts(const struct tir_func *f, const struct tir_type *t, uint32_t cut,
                      int64_t extent)
{
    int64_t shape[TIR_MAX_RANK];
    memcpy(shape, t->shape, sizeof(shape));
    shape[cut] = extent;
    return tir_layout_part(f->module->types, t->layout, shape);
}

// Would each thread have its part of chunks of `extent` columns? Of what follows from sums in
// tensor memory it has that if they are loaded in chunks.
static bool has_part(const struct stores *s, struct tir_inst *store, int64_t extent)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    struct tir_columns columns;
    return has_parts(s->f, t, t->rank - 1, extent) ||
           (s->lives.f && tir_columns_init(&columns, s->f, s->cx->scratch, store, extent));
}

int64_t tir_outgoing_row_columns(const struct stores *s, struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    const uint32_t bits = tir_elems[t->elem].bits, last = t->rank - 1;
    const int64_t whole = t->shape[last], least = TIR_BUDGET_STORE_BYTES * 8 / bits;
    // Beside sums of two warpgroups a thread has no registers for as many of what is added.
    struct tir_columns columns = {0};
    if (s->lives.f)
        tir_columns_init(&columns, s->f, s->cx->scratch, store, TIR_MIN(least, whole));
    const bool is_narrow = columns.is_spread && columns.has_loads;
    const int64_t most = TIR_MIN(whole, (is_narrow ? 1 : TIR_BUDGET_STORE_BUFFERS) * least);
    const int64_t unit = whole * bits / 8 % TIR_BUDGET_STORE_BYTES ? 16 : TIR_BUDGET_STORE_BYTES;
    for (int64_t n = most; n >= TIR_MIN(least, whole); n--)
        if (whole % n == 0 && n * bits / 8 % unit == 0 && has_part(s, store, n))
            return n;
    return has_part(s, store, most) && has_part(s, store, whole % most) ? most : 0;
}

// Have all threads parts of all chunks of columns?
static bool has_columns(const struct stores *s, struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    int64_t extent, left = t->shape[t->rank - 1];
    for (; left; left -= extent) {
        extent = tir_outgoing_columns(store, left);
        if (!has_part(s, store, extent))
            return false;
    }
    return true;
}

bool tir_outgoing_cuts_rows(const struct stores *s, struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    return !has_columns(s, store) && t->rank == 2 &&
           tir_layout_size(t->layout, TIR_AXIS_REG) >= TIR_BUDGET_ROW_CHUNK_ELEMENTS &&
           has_parts(s->f, t, t->rank - 2, chunk_rows(t));
}

static const int64_t runs_first[] = {1, 0, 2}; // the permutation of rows, runs, columns

// A value whose columns lie in runs, each in warps of its own, with the runs in front. NULL: they
// do not, or a chunk of each run is not a part that each thread has.
static const struct tir_type *in_runs(const struct stores *s, struct tir_inst *store)
{
    struct tir_types *types = s->f->module->types;
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    if (!s->lives.f || t->rank != 2 || t->shape[1] % 2 || has_columns(s, store) ||
        tir_outgoing_cuts_rows(s, store))
        return NULL;
    struct tir_type split = {
        .elem = t->elem, .rank = 3, .shape = {t->shape[0], 2, t->shape[1] / 2}};
    split.layout = tir_layout_reshape(types, t->layout, split.rank, split.shape);
    if (!split.layout)
        return NULL;
    struct tir_type turned = split;
    for (uint32_t d = 0; d < split.rank; d++)
        turned.shape[d] = split.shape[runs_first[d]];
    turned.layout = tir_layout_permute(types, split.layout, runs_first);
    for (int64_t extent, left = turned.shape[2]; left; left -= extent) {
        extent = tir_outgoing_columns(store, left);
        if (!has_parts(s->f, &turned, 2, extent))
            return NULL;
    }
    return tir_type_get(types, &turned);
}

const char *tir_outgoing_refusal(const struct stores *s, struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    uint32_t bits = tir_elems[t->elem].bits;
    if (t->rank < 2 || bits < 8)
        return "it has one dimension or elements smaller than a byte";
    int64_t bytes = t->shape[t->rank - 1] * bits / 8;
    if (bytes % 16)
        return "its rows are not a multiple of 16 bytes";
    if (!has_columns(s, store) && !tir_outgoing_cuts_rows(s, store) && !in_runs(s, store))
        return "its columns are spread over warps";
    return NULL;
}

void tir_outgoing_open(struct outgoing *o, const struct stores *s, struct tir_inst *store,
                       bool in_rows)
{
    struct tir_func *f = s->f;
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    const struct tir_type *runs = in_rows ? NULL : in_runs(s, store);
    *o = (struct outgoing){.f = f,
                           .store = store,
                           .type = runs ? runs : t,
                           .runs = runs ? runs->shape[0] : 1,
                           .warps = tir_crew_of(f, store).warps};
    o->cut = o->type->rank - 1;
    o->extent = in_rows ? tir_outgoing_row_columns(s, store)
                        : tir_outgoing_columns(store, o->type->shape[o->cut]);
    if (!in_rows && tir_outgoing_cuts_rows(s, store)) {
        o->cut = t->rank - 2;
        o->extent = chunk_rows(t);
    }
    // Accumulators of warpgroups stay in registers, and ptxas computes the rest where it is stored.
    o->is_computed = in_rows || (s->lives.f && o->runs == 1 && o->cut + 1 == o->type->rank);
    if (o->is_computed)
        tir_columns_init(&o->columns, f, s->cx->scratch, store, o->extent);
}

const struct tir_type *tir_outgoing_chunk_type(const struct outgoing *o)
{
    struct tir_type t = *o->type;
    t.shape[o->cut] = o->extent;
    t.layout = NULL;
    return tir_type_get(o->f->module->types, &t);
}

const struct tir_type *tir_outgoing_buffer_type(const struct outgoing *o)
{
    struct tir_types *types = o->f->module->types;
    struct tir_type t = *tir_outgoing_chunk_type(o);
    uint32_t bits = tir_elems[t.elem].bits;
    t.space = TIR_SPACE_SHARED;
    bool one_row = tir_type_count(&t) == t.shape[t.rank - 1]; // which no other row conflicts with
    uint32_t swizzle = one_row ? 0 : tir_layout_swizzle_for(t.shape[t.rank - 1] * bits / 8);
    t.layout = tir_layout_memory(types, t.rank, t.shape, bits, swizzle);
    return tir_type_get(types, &t);
}

uint32_t tir_outgoing_widths(const struct outgoing *o)
{
    uint32_t widths = 1;
    int64_t extent = o->extent;
    for (int64_t left = o->type->shape[o->cut] - extent; o->cut + 1 == o->type->rank && left;
         left -= extent) {
        const int64_t before = extent;
        extent = tir_outgoing_columns(o->store, left);
        widths += extent != before;
    }
    return widths;
}

struct tir_value *tir_outgoing_value(const struct outgoing *o, struct tir_builder *b)
{
    struct tir_value *v = o->store->operands[TIR_STORE_VALUE];
    struct tir_types *types = o->f->module->types;
    struct tir_type split = *v->type;
    if (o->runs == 1)
        return v;
    split.rank = 3;
    for (uint32_t d = 0; d < split.rank; d++)
        split.shape[runs_first[d]] = o->type->shape[d];
    split.layout = tir_layout_reshape(types, v->type->layout, split.rank, split.shape);
    v = tir_build1(b, TIR_OP_RESHAPE, tir_type_get(types, &split), &v, 1);
    v = tir_build1(b, TIR_OP_PERMUTE, o->type, &v, 1);
    tir_set_list(o->f, v->def, TIR_ATTR_permutation, runs_first, split.rank);
    return v;
}

// The chunk's part of the value, in the layout in which each thread keeps what it has.
static struct tir_value *build_chunk(const struct outgoing *o, struct tir_builder *b,
                                     struct tir_value *whole, int64_t start)
{
    if (o->extent == o->type->shape[o->cut])
        return whole;
    struct tir_types *types = o->f->module->types;
    const struct tir_type *part = tir_outgoing_chunk_type(o);
    part = tir_type_with_layout(types, part, tir_layout_part(types, o->type->layout, part->shape));
    struct tir_value *x = tir_build1(b, TIR_OP_EXTRACT, part, &whole, 1);
    int64_t starts[TIR_MAX_RANK] = {0};
    starts[o->cut] = start;
    tir_set_list(o->f, x->def, TIR_ATTR_start, starts, o->type->rank);
    return x;
}

struct tir_value *tir_outgoing_chunk(struct outgoing *o, struct stores *s, struct tir_builder *b,
                                     struct tir_value *whole, int64_t start,
                                     struct tir_value *buffer)
{
    if (!o->is_computed)
        return build_chunk(o, b, whole, start);
    if (o->columns.count != o->extent)
        tir_columns_init(&o->columns, o->f, s->cx->scratch, o->store, o->extent);
    return tir_columns_build(&o->columns, b, buffer, start);
}

struct tir_value *tir_outgoing_run(const struct outgoing *o, struct tir_builder *b,
                                   struct tir_value *buffer, int64_t run)
{
    struct tir_types *types = o->f->module->types;
    struct tir_type t = *buffer->type;
    if (o->runs == 1)
        return buffer;
    t.rank--;
    memcpy(t.shape, buffer->type->shape + 1, t.rank * sizeof(*t.shape));
    t.layout = tir_layout_memory(types, t.rank, t.shape, tir_elems[t.elem].bits,
                                 buffer->type->layout->swizzle);
    return tir_build_slot(b, buffer, tir_const_index(o->f, run), tir_type_get(types, &t));
}
