// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// async_copy, the way back: tiles leave registers through shared memory and the tensor copy engine.
//
//     store(D[m:+128, n:+256], y);
// becomes, where products run on warpgroups or in tensor memory,
//     let out: shared bf16[128, 64] in S[...] swizzle(128) = alloc();
//     let out1: shared bf16[128, 64] in S[...] swizzle(128) = alloc();
//     let y0: bf16[128, 64] = extract(y, start = [0, 0]);
//     store(out[0:+128, 0:+64], y0);
//     store_async(D[m:+128, n:+64], out, engine = tma);
//     let y1: bf16[128, 64] = extract(y, start = [0, 64]);
//     store(out1[0:+128, 0:+64], y1);
//     store_async(D[m:+128, n + 64:+64], out1, engine = tma);
//     ...
//
// A chunk is 128 bytes of columns, one atom of the swizzle. What is left of a row are chunks of 64,
// 32 and 16 bytes: 240 columns of bf16 leave as 64, 64, 64, 32 and 16. Two buffers of a width take
// turns, so that one is written while the other leaves. Edges cost nothing: the engine drops
// elements outside. The barrier pass adds the fences and waits.
//
// If columns are spread over warps, as those of a turned accumulator are, and threads hold many
// elements, a chunk is some of the rows instead. What follows from sums in tensor memory is computed
// in chunks (columns.c). Of wide sums two warpgroups have half of the columns each. If they cannot
// be loaded in chunks, as when rows are reduced, a buffer holds a chunk of either half:
//     let v: bf16[2, 128, 128] = permute(reshape(y), permutation = [1, 0, 2]);
//     let v0: bf16[2, 128, 64] = extract(v, start = [0, 0, 0]);
//     store(out[0:+2, 0:+128, 0:+64], v0);
//     store_async(D[m:+128, n:+64], view(out[0, 0:+128, 0:+64]), engine = tma);
//     store_async(D[m:+128, n + 128:+64], view(out[1, 0:+128, 0:+64]), engine = tma);
// Slots in tensor memory's kernels are made before. What has no room beside them leaves from
// registers.
//
// An atomic whose old values nobody uses leaves the same way, if the engine can combine with what
// is in memory (PTX ISA, "cp.reduce.async.bulk.tensor"). In a loop it leaves as a whole, so that
// threads wait for each other once a round, if it is small:
//     atomic(D[m:+64, n:+64], y, kind = add);
// becomes
//     store(out[0:+64, 0:+64], y);
//     store_async(D[m:+64, n:+64], out, engine = tma, kind = add);
//
// If D is not aligned, tensor copies cannot store it and its rows leave through registers again.
// The detour is worth it because a thread then holds adjacent elements, unlike in an accumulator.
//     store(out[0:+128, 0:+128], y0);
//     let z0: bf16[128, 128] = load(out[0:+128, 0:+128]);
//     store(D[m:+128, n:+128], z0);
// The pass chunk makes a loop of the last two. Nothing is in flight, so there is one buffer, as
// large as two.

#include "pass/async/async_store.h"

#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/columns.h"
#include "pass/async/pipeline.h"
#include "pass/async/tma.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"
#include "pass/sync/life.h"

static const char no_room[] = "shared memory has no room for it";

struct turns { // buffers of one type that the chunks of a block's stores go through
    const struct tir_block *block;
    const struct tir_type *type;
    struct tir_value *buffers[TIR_BUDGET_STORE_BUFFERS];
    uint32_t count, next;
};

struct stores {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    VEC(struct tir_inst *) stores, atomics; // of tiles, to tensors
    VEC(struct turns) turns;
    struct tir_lives
        lives; // of shared memory where slots are made already; without `f`: they are not
};

struct outgoing {
    struct tir_func *f;
    struct tir_inst *store;      // or an atomic
    const struct tir_type *type; // of the value; of runs of its columns, a dimension in front
    int64_t runs;                // of columns, each in warps of its own, or 1
    uint32_t warps;              // that the value is spread over
    uint32_t cut;                // the dimension that chunks divide: the columns, or the rows
    int64_t extent;              // of a chunk along it
    bool is_computed;            // a chunk at a time, of columns
    struct tir_columns columns;  // those of the widest chunk
};

// Is inst an atomic of each round of a loop of products, small enough for a buffer of its own?
static bool repeats(const struct tir_inst *inst)
{
    const struct tir_inst *loop = inst->block->owner;
    while (loop && !tir_is_loop(loop))
        loop = loop->block->owner;
    if (inst->op != TIR_OP_ATOMIC || !loop || loop->op == TIR_OP_TILES ||
        tir_type_bytes(inst->operands[TIR_STORE_VALUE]->type) > TIR_BUDGET_ROUND_BYTES)
        return false;
    tir_foreach_inst_within(dot, loop) if (tir_dot_on_warpgroups(dot) &&
                                           dot->block->owner == loop) return true;
    return false;
}

// Columns of the next chunk of the store, with `left` of a row: as many as a power of two of bytes
// holds, or all.
static int64_t chunk_columns(const struct tir_inst *store, int64_t left)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    if (repeats(store))
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

// Columns of a chunk if they leave through registers: equal parts of a row of 128 to 256 bytes,
// whole atoms of the swizzle where the row is, or else 256 bytes and a rest. 0: threads have no
// such parts. One buffer is as large as two of tensor copies.
static int64_t row_columns(const struct stores *s, struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    const uint32_t bits = tir_elems[t->elem].bits, last = t->rank - 1;
    const int64_t whole = t->shape[last], least = TIR_BUDGET_STORE_BYTES * 8 / bits;
    const int64_t most = TIR_MIN(whole, TIR_BUDGET_STORE_BUFFERS * least);
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
        extent = chunk_columns(store, left);
        if (!has_part(s, store, extent))
            return false;
    }
    return true;
}

// Do chunks of rows serve?
static bool cuts_rows(const struct stores *s, struct tir_inst *store)
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
        cuts_rows(s, store))
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
        extent = chunk_columns(store, left);
        if (!has_parts(s->f, &turned, 2, extent))
            return NULL;
    }
    return tir_type_get(types, &turned);
}

// Why the value of the store cannot leave in chunks.
static const char *refuse_chunks(const struct stores *s, struct tir_inst *store)
{
    const struct tir_type *t = store->operands[TIR_STORE_VALUE]->type;
    uint32_t bits = tir_elems[t->elem].bits;
    if (t->rank < 2 || bits < 8)
        return "it has one dimension or elements smaller than a byte";
    int64_t bytes = t->shape[t->rank - 1] * bits / 8;
    if (bytes % 16)
        return "its rows are not a multiple of 16 bytes";
    if (!has_columns(s, store) && !cuts_rows(s, store) && !in_runs(s, store))
        return "its columns are spread over warps";
    return NULL;
}

// Are the value's rows a slice of the tensor's rows, of which every element is stored?
static bool stores_rows(const struct tir_inst *store)
{
    const struct tir_attr *box = tir_attr_find(store, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0)
            return false;
    return !store->operands[TIR_STORE_MASK] && box->list[box->list_count - 1] > 0;
}

static const struct tir_type *chunk_type(const struct outgoing *o)
{
    struct tir_type t = *o->type;
    t.shape[o->cut] = o->extent;
    t.layout = NULL;
    return tir_type_get(o->f->module->types, &t);
}

static const struct tir_type *buffer_type(const struct outgoing *o)
{
    struct tir_types *types = o->f->module->types;
    struct tir_type t = *chunk_type(o);
    uint32_t bits = tir_elems[t.elem].bits;
    t.space = TIR_SPACE_SHARED;
    bool one_row = tir_type_count(&t) == t.shape[t.rank - 1]; // which no other row conflicts with
    uint32_t swizzle = one_row ? 0 : tir_layout_swizzle_for(t.shape[t.rank - 1] * bits / 8);
    t.layout = tir_layout_memory(types, t.rank, t.shape, bits, swizzle);
    return tir_type_get(types, &t);
}

// Where buffers of an atomic that repeats are made, to keep their bytes: in front of its loops.
static struct tir_inst *outermost_loop(struct tir_inst *inst)
{
    struct tir_inst *found = inst;
    for (struct tir_inst *up = inst->block->owner; up && up->op != TIR_OP_TILES;
         up = up->block->owner)
        found = tir_is_loop(up) ? up : found;
    return found;
}

// Atomics are made first, wherever they stand: a store in front of one needs its buffers earlier.
static void make_before(struct turns *turns, struct tir_inst *store)
{
    struct tir_inst *inst = store;
    while (inst && inst != turns->buffers[0]->def)
        inst = inst->next;
    for (uint32_t i = 0; inst && i < turns->count; i++)
        tir_move_before(turns->buffers[i]->def, store);
}

// The buffers that there are for chunks of this extent; NULL: none.
static struct turns *find_turns(struct stores *s, const struct outgoing *o)
{
    const struct tir_type *type = buffer_type(o);
    if (repeats(o->store))
        return NULL;
    vec_foreach(struct turns, t, &s->turns)
        if (t->block == o->store->block && t->type == type)
            return t;
    return NULL;
}

// At most: those of runs hold a chunk of each.
static int64_t buffers_of(const struct outgoing *o)
{
    return TIR_MAX(TIR_BUDGET_STORE_BUFFERS / o->runs, 1);
}

// The buffers of chunks of this extent; `count` of them, unless there are such.
static struct turns *turns_of(struct stores *s, const struct outgoing *o, int64_t count)
{
    struct tir_inst *before = repeats(o->store) ? outermost_loop(o->store) : o->store;
    struct turns *found = find_turns(s, o);
    struct turns turns = {.block = before->block, .type = buffer_type(o)};
    if (found) {
        make_before(found, before);
        return found;
    }
    struct tir_builder b = tir_builder_before(s->f, before);
    turns.count = (uint32_t)TIR_MIN(count, buffers_of(o));
    for (uint32_t i = 0; i < turns.count; i++) {
        turns.buffers[i] = tir_build1(&b, TIR_OP_ALLOC, turns.type, NULL, 0);
        turns.buffers[i]->name = tir_intern_cstr(s->f->module->names, "out");
    }
    vec_push(s->cx->scratch, &s->turns, turns);
    return &s->turns.at[s->turns.len - 1];
}

static struct tir_value *next_buffer(struct turns *turns)
{
    return turns->buffers[turns->next++ % turns->count];
}

static struct tir_value *build_whole(const struct outgoing *o, struct tir_builder *b)
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
    const struct tir_type *part = chunk_type(o);
    part = tir_type_with_layout(types, part, tir_layout_part(types, o->type->layout, part->shape));
    struct tir_value *x = tir_build1(b, TIR_OP_EXTRACT, part, &whole, 1);
    int64_t starts[TIR_MAX_RANK] = {0};
    starts[o->cut] = start;
    tir_set_list(o->f, x->def, TIR_ATTR_start, starts, o->type->rank);
    return x;
}

static void build_store(const struct outgoing *o, struct tir_builder *b, struct tir_value *x,
                        struct tir_value *buffer)
{
    struct tir_value *operands[3 + TIR_MAX_RANK] = {x, NULL, NULL, NULL};
    uint32_t fixed = tir_ops[TIR_OP_STORE].fixed_count;
    operands[fixed] = buffer;
    for (uint32_t d = 0; d < o->type->rank; d++)
        operands[fixed + 1 + d] = tir_const_index(o->f, 0);
    struct tir_inst *store =
        tir_build(b, TIR_OP_STORE, operands, fixed + 1 + o->type->rank, NULL, 0, 0);
    tir_set_list(o->f, store, TIR_ATTR_box, x->type->shape, o->type->rank);
}

// The dimension of the tensor that chunks divide.
static uint32_t cut_of_tensor(const struct outgoing *o)
{
    const struct tir_attr *box = tir_attr_find(o->store, TIR_ATTR_box);
    const uint32_t cut = o->cut - (o->runs > 1);
    uint32_t d = box->list_count - 1;
    while (d && (box->list[d] <= 0 || tir_slice_dim(o->store, d) != cut))
        d--;
    return d;
}

// A chunk's part of the tensor: its base and indices.
static void set_part(const struct outgoing *o, struct tir_builder *b, int64_t start,
                     struct tir_value **ref)
{
    const uint32_t rank = tir_ref_base(o->store)->type->rank, at = 1 + cut_of_tensor(o);
    memcpy(ref, o->store->operands + tir_fixed_count(o->store), (1 + rank) * sizeof(*ref));
    if (start)
        ref[at] = tir_binary(b, TIR_OP_ADD, ref[at], tir_const_int(o->f, ref[at]->type, start));
}

static void set_box(const struct outgoing *o, struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(o->store, TIR_ATTR_box);
    int64_t boxes[TIR_MAX_RANK];
    memcpy(boxes, box->list, box->list_count * sizeof(*boxes));
    boxes[cut_of_tensor(o)] = o->extent;
    tir_set_list(o->f, inst, TIR_ATTR_box, boxes, box->list_count);
}

static void build_store_async(const struct outgoing *o, struct tir_builder *b, int64_t start,
                              struct tir_value *buffer)
{
    struct tir_value *operands[2 + TIR_MAX_RANK] = {buffer};
    set_part(o, b, start, operands + 1);
    uint32_t count = 2 + operands[1]->type->rank;
    struct tir_inst *copy = tir_build(b, TIR_OP_STORE_ASYNC, operands, count, NULL, 0, 0);
    set_box(o, copy);
    tir_set_word(o->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
    tir_copy_attr(o->f, copy, o->store, TIR_ATTR_cache);
    tir_copy_attr(o->f, copy, o->store, TIR_ATTR_kind);
}

// The buffer's rows to the tensor, an element a lane.
static void build_rows(const struct outgoing *o, struct tir_builder *b, int64_t start,
                       struct tir_value *buffer)
{
    struct tir_types *types = o->f->module->types;
    struct tir_type t = *chunk_type(o);
    uint32_t order[TIR_MAX_RANK];
    for (uint32_t d = 0; d < o->type->rank; d++)
        order[d] = o->type->rank - 1 - d;
    t.layout = tir_layout_blocked(types, t.rank, t.shape, order, order, 1, 1, o->warps);
    struct tir_value *from[3 + TIR_MAX_RANK] = {NULL, NULL, buffer}, *to[3 + TIR_MAX_RANK] = {NULL};
    set_part(o, b, start, to + 2);
    for (uint32_t d = 0; d < o->type->rank; d++)
        from[3 + d] = tir_const_index(o->f, 0);
    to[0] = tir_build1(b, TIR_OP_LOAD, tir_type_get(types, &t), from, 3 + o->type->rank);
    tir_set_list(o->f, to[0]->def, TIR_ATTR_box, t.shape, o->type->rank);
    struct tir_inst *store = tir_build(b, TIR_OP_STORE, to, 3 + to[2]->type->rank, NULL, 0, 0);
    set_box(o, store);
    tir_copy_attr(o->f, store, o->store, TIR_ATTR_cache);
}

// in_rows: it leaves through registers again, in rows.
static void open(struct outgoing *o, const struct stores *s, struct tir_inst *store, bool in_rows)
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
    o->extent = in_rows ? row_columns(s, store) : chunk_columns(store, o->type->shape[o->cut]);
    if (!in_rows && cuts_rows(s, store)) {
        o->cut = t->rank - 2;
        o->extent = chunk_rows(t);
    }
    // Accumulators of warpgroups stay in registers, and ptxas computes the rest where it is stored.
    o->is_computed = in_rows || (s->lives.f && o->runs == 1 && o->cut + 1 == o->type->rank);
    if (o->is_computed)
        tir_columns_init(&o->columns, f, s->cx->scratch, store, o->extent);
}

// The chunk of the value that begins at `start`, on its way to the buffer.
static struct tir_value *build_part(struct outgoing *o, struct stores *s, struct tir_builder *b,
                                    struct tir_value *whole, int64_t start,
                                    struct tir_value *buffer)
{
    if (!o->is_computed)
        return build_chunk(o, b, whole, start);
    if (o->columns.count != o->extent)
        tir_columns_init(&o->columns, o->f, s->cx->scratch, o->store, o->extent);
    return tir_columns_build(&o->columns, b, buffer, start);
}

// "store of D", "atomic add to D"
static const char *text_of(struct tir_arena *arena, const struct tir_inst *store)
{
    const char *name = tir_ref_base(store)->name;
    if (store->op == TIR_OP_STORE)
        return tir_str_format(arena, "store of %s", name).ptr;
    return tir_str_format(arena, "atomic %s to %s",
                          tir_words[tir_attr_word(store, TIR_ATTR_kind, TIR_WORD_NONE)].name, name)
        .ptr;
}

// The part of a buffer that holds the chunk of one run.
static struct tir_value *build_run(const struct outgoing *o, struct tir_builder *b,
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

static void send(struct stores *s, struct tir_inst *store)
{
    struct outgoing o;
    open(&o, s, store, false);
    const int64_t whole = o.type->shape[o.cut];
    uint32_t chunks = 0;
    struct tir_builder b = tir_builder_before(s->f, store);
    struct tir_value *value = build_whole(&o, &b);
    for (int64_t start = 0; start < whole; start += o.extent, chunks += (uint32_t)o.runs) {
        if (o.cut + 1 == o.type->rank)
            o.extent = chunk_columns(store, whole - start);
        struct tir_value *buffer = next_buffer(turns_of(s, &o, (whole - start) / o.extent));
        build_store(&o, &b, build_part(&o, s, &b, value, start, buffer), buffer);
        for (int64_t run = 0; run < o.runs; run++)
            build_store_async(&o, &b, run * whole + start, build_run(&o, &b, buffer, run));
    }
    tir_receipt_add(s->cx, TIR_TOPIC_COPY, store->span, "%s: tma, in %u chunk%s%s",
                    text_of(s->cx->scratch, store), chunks, chunks == 1 ? "" : "s",
                    o.cut + 1 < o.type->rank ? " of rows" : "");
    tir_remove(store);
}

static void send_rows(struct stores *s, struct tir_inst *store)
{
    struct outgoing o;
    open(&o, s, store, true);
    const int64_t whole = o.type->shape[o.cut];
    struct tir_builder b = tir_builder_before(s->f, store);
    struct tir_value *buffer = next_buffer(turns_of(s, &o, 1));
    for (int64_t start = 0; start < whole; start += o.extent) {
        o.extent = TIR_MIN(o.extent, whole - start);
        build_store(&o, &b, build_part(&o, s, &b, NULL, start, buffer), buffer);
        build_rows(&o, &b, start, buffer);
    }
    tir_remove(store);
}

// Chunks of one width have one tensor map.
static uint32_t count_widths(const struct outgoing *o)
{
    uint32_t widths = 1;
    int64_t extent = o->extent;
    for (int64_t left = o->type->shape[o->cut] - extent; o->cut + 1 == o->type->rank && left;
         left -= extent) {
        const int64_t before = extent;
        extent = chunk_columns(o->store, left);
        widths += extent != before;
    }
    return widths;
}

// Bytes of the buffers that the store will go through and that there are not yet.
static int64_t new_bytes(struct stores *s, struct tir_inst *store, bool in_rows)
{
    struct outgoing o;
    open(&o, s, store, in_rows);
    const int64_t whole = o.type->shape[o.cut];
    int64_t bytes = 0, last = 0; // last: the extent of the chunk before
    for (int64_t start = 0; start < whole; start += o.extent) {
        if (!in_rows && o.cut + 1 == o.type->rank)
            o.extent = chunk_columns(store, whole - start);
        o.extent = TIR_MIN(o.extent, whole - start);
        const int64_t turns = in_rows ? 1 : (whole - start) / o.extent;
        if (o.extent != last && !find_turns(s, &o))
            bytes += TIR_MIN(turns, buffers_of(&o)) * tir_buffer_bytes(buffer_type(&o));
        last = o.extent;
    }
    return bytes;
}

// Why tensor copies cannot take the chunks out of their buffers; NULL: they can.
static const char *refuse_buffers(const struct stores *s, struct tir_inst *store)
{
    struct outgoing o;
    open(&o, s, store, false);
    const struct tir_type *t = buffer_type(&o);
    int64_t box[TIR_MAX_RANK];
    memcpy(box, t->shape, sizeof(box));
    box[0] = o.runs > 1 ? 0 : box[0]; // a run at a time
    const char *no_boxes = tir_tma_boxes_refusal(t->layout, box, NULL, t->elem);
    return no_boxes ? no_boxes : tir_tma_maps_refusal(s->f, store, count_widths(&o));
}

// Why tensor copies cannot take part of what an atomic does; NULL: they can.
static const char *refuse_atomic(const struct tir_func *f, const uint32_t *uses,
                                 const struct tir_inst *atomic)
{
    const struct tir_value *tensor = tir_ref_base(atomic);
    const enum tir_word kind = tir_attr_word(atomic, TIR_ATTR_kind, TIR_WORD_NONE);
    if (uses[atomic->results[0]->id])
        return "the old values are used";
    if (!tir_engine_combines(kind, tensor->type->elem))
        return "the engine does not combine its elements so";
    if (tir_acquires(atomic) || tir_releases(atomic) ||
        tir_attr_word(atomic, TIR_ATTR_scope, TIR_WORD_scope_gpu) == TIR_WORD_scope_system)
        return "copies order nothing, and only for the threads of the GPU";
    // The two proxies would need fences between them.
    tir_foreach_inst(inst, f)
        if (tir_ops[inst->op].has_ref && tir_ref_base(inst) == tensor &&
            (inst->op != TIR_OP_ATOMIC || uses[inst->results[0]->id]))
            return "the kernel has other accesses to the tensor";
    return NULL;
}

// Tensor copies take atomics if they take all of a tensor.
static const char *refuse_atomics(const struct stores *s, const uint32_t *uses,
                                  const struct tir_value *tensor)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_ATOMIC || tir_ref_base(inst) != tensor)
            continue;
        const char *why = refuse_atomic(s->f, uses, inst);
        if (!why && !tir_type_is_tile(inst->operands[TIR_STORE_VALUE]->type))
            why = "the kernel has other accesses to the tensor";
        why = why ? why : refuse_chunks(s, inst);
        why = why ? why : tir_tma_refusal(s->f, s->cx->target, s->ranges, inst);
        why = why ? why : refuse_buffers(s, inst);
        if (why)
            return why;
    }
    return NULL;
}

// Slots that are made later leave room for buffers, others may not.
static bool has_room(struct stores *s, struct tir_inst *store, bool in_rows)
{
    struct tir_lives *l = &s->lives;
    if (!l->f)
        return true;
    const struct tir_life in = {.role = tir_crew_of(s->f, store).role,
                                .begin = l->order.begin[store->id],
                                .end = l->order.end[store->id],
                                .bytes = new_bytes(s, store, in_rows),
                                .alignment = TIR_SWIZZLE_BYTES};
    vec_push(l->arena, &l->buffers, in);
    if (tir_lives_place(l) <= s->cx->target->shared_per_cta)
        return true;
    l->buffers.len--;
    return false;
}

// Sums of other products, and what a thread loads for each column, are all there in front of the
// first chunk, whose barrier nothing passes, unless they are computed in chunks.
static bool holds_more(const struct stores *s, struct tir_inst *store, bool in_rows)
{
    struct outgoing o;
    open(&o, s, store, in_rows);
    const uint32_t many = tir_layout_size(o.type->layout, TIR_AXIS_REG) / 2; // of a thread
    for (const struct tir_inst *inst = store->prev; inst; inst = inst->prev) {
        const struct tir_type *of = inst->result_count ? inst->results[0]->type : NULL;
        if (inst->op == TIR_OP_LOAD && tir_type_is_tile(of) &&
            tir_layout_size(of->layout, TIR_AXIS_REG) >= many &&
            !(o.is_computed && tir_columns_has(&o.columns, inst->results[0])) &&
            tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
            return true;
        if (inst->op == TIR_OP_DOT && !o.is_computed)
            return true;
        for (uint32_t i = 0; i < inst->region_count; i++)
            tir_foreach_inst_in(inner, inst->regions[i])
                if (!o.is_computed && inner->op == TIR_OP_DOT &&
                    tir_type_is_tile(inner->results[0]->type))
                    return true;
    }
    return false;
}

static bool make_store(struct stores *s, struct tir_inst *store)
{
    struct tir_func *f = s->f;
    const char *no_chunks = refuse_chunks(s, store);
    const char *no_copy = tir_tma_refusal(f, s->cx->target, s->ranges, store);
    if (!no_chunks && !no_copy)
        no_copy = refuse_buffers(s, store);
    const char *why = no_chunks ? no_chunks : no_copy;
    const bool by_rows = !no_chunks && cuts_rows(s, store);
    const bool has_rows = !no_chunks && !by_rows && stores_rows(store) && row_columns(s, store);
    bool staged = !no_chunks && (!no_copy || has_rows);
    if (staged && s->lives.f && holds_more(s, store, no_copy))
        why = "threads hold more than the sums";
    else if (staged && !has_room(s, store, no_copy))
        why = no_room;
    staged = staged && (why == no_chunks || why == no_copy);
    if (why)
        tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, s->lives.f ? TIR_WISH_NONE : TIR_WISH_TMA,
                           store->span, "store of %s: %s, because %s", tir_ref_base(store)->name,
                           staged ? "in rows from shared memory" : "from registers", why);
    if (!staged)
        return false;
    if (no_copy)
        send_rows(s, store);
    else
        send(s, store);
    return true;
}

int64_t tir_store_buffers_bytes(const struct tir_type *value)
{
    const int64_t columns = value->shape[value->rank - 1];
    const int64_t row = columns * tir_elems[value->elem].bits / 8;
    return tir_type_count(value) / columns *
           TIR_MIN(row, TIR_BUDGET_STORE_BUFFERS * TIR_BUDGET_STORE_BYTES);
}

static bool make_atomics(struct stores *s)
{
    const uint32_t *uses = tir_count_uses(s->cx->scratch, s->f);
    const char **why = arena_array(s->cx->scratch, const char *, s->atomics.len);
    bool changed = false;
    for (uint32_t i = 0; i < s->atomics.len; i++) {
        why[i] = refuse_atomics(s, uses, tir_ref_base(s->atomics.at[i]));
        why[i] = why[i] || has_room(s, s->atomics.at[i], false) ? why[i] : no_room;
    }
    for (uint32_t i = 0; i < s->atomics.len; i++) {
        struct tir_inst *atomic = s->atomics.at[i];
        changed |= !why[i];
        if (!why[i])
            send(s, atomic);
        else
            tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, TIR_WISH_NONE, atomic->span,
                               "%s: from registers, because %s", text_of(s->cx->scratch, atomic),
                               why[i]);
    }
    return changed;
}

bool tir_make_async_stores(struct tir_func *f, struct tir_pass_cx *cx)
{
    if (!tir_has_warpgroup_dot(f) && (f->grid_count || !tir_has_tensor_memory(f)))
        return false;
    struct stores s = {.f = f, .cx = cx, .ranges = tir_ranges_new(cx->scratch, f)};
    if (!tir_has_warpgroup_dot(f))
        tir_lives_find(&s.lives, f, cx->scratch, true);
    tir_foreach_inst(inst, f) {
        if ((inst->op != TIR_OP_ATOMIC && inst->op != TIR_OP_STORE) ||
            !tir_type_is_tile(inst->operands[TIR_STORE_VALUE]->type) ||
            tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
            continue;
        if (inst->op == TIR_OP_ATOMIC)
            vec_push(cx->scratch, &s.atomics, inst);
        else
            vec_push(cx->scratch, &s.stores, inst);
    }
    bool changed = make_atomics(&s);
    vec_foreach(struct tir_inst *, it, &s.stores)
        changed |= make_store(&s, *it);
    if (changed)
        tir_pass_dce(f, cx); // what is now computed in chunks
    return changed;
}
