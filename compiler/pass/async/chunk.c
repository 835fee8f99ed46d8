// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// chunk: moves large tiles between global and shared memory a few rows at a time.
//
//     let a: bf16[128, 64] in L = load(A[m:+128, k:+64]);
//     store(buf[0:+128, 0:+64], a);
// becomes
//     for i: i64 in range(0, 128, 32) {
//         let rows: bf16[32, 64] in L2 = load(A[m + i:+32, k:+64]);
//         store(buf[i:+32, 0:+64], rows);
//     }
//
// If rows are not aligned every element is a separate access, and a tile of 128 x 64 would be
// hundreds of instructions and predicates in a row: slow to compile and no faster to run. The pass
// also makes loops of asynchronous copies of less than 16 bytes, and of two kinds of stores: of a
// tile from shared memory to a tensor (async_store), and of a tile whose layout is converted first,
// which then goes through shared memory if there is room. Their rows leave in vectors if the tensor
// turns out to be aligned at run time. Tiles with few accesses (16 or fewer a thread) stay whole.
//
// In a kernel whose operands arrive that way, the products do not limit the speed, so they are
// computed one step along K at a time:
//     for k: i64 in range(0, 64, 16) carry (sum: f32[128, 128] in M = acc) {
//         yield dot(view(a[0:+128, k:+16]), view(b[k:+16, 0:+128]), sum);
//     }
// ptxas unrolls this loop where it sees fit.

#include "pass/async/chunk.h"

#include "ir/range.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/async/room.h"
#include "pass/async/rows.h"
#include "pass/layout/dot.h"
#include "pass/layout/staging.h"
#include "pass/layout/warpgroup.h"
#include "pass/sync/crew.h"

struct chunk {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    uint32_t *uses;
    uint32_t warps;     // that tiles are spread over where the access is
    bool on_warpgroups; // the products are
    bool has_room;      // for the buffers of stores
    bool loads, stores; // what was chunked
};

// Elements of the tensor that move at a time.
static uint32_t vector_of(const struct chunk *c, const struct tir_value *tensor)
{
    return TIR_MAX(1, tir_tensor_alignment(c->f, tensor) * 8 / tir_elems[tensor->type->elem].bits);
}

// Rows of a tile of type t that make at most `most` accesses of a thread, `vector` elements each,
// and not much fewer, if the tile has a whole number of such chunks; 0: leave it whole. Around
// products on warpgroups only `most` will do: there a thread has registers for the rest.
static int64_t chunk_rows(const struct chunk *c, const struct tir_type *t, uint32_t vector,
                          int64_t most)
{
    const int64_t at_once = vector * 32 * (int64_t)c->warps; // elements of all threads
    const int64_t least = c->on_warpgroups ? most : TIR_MAX(1, most / 4);
    if (t->rank != 2 || tir_type_count(t) / at_once <= most)
        return 0;
    for (int64_t rows = t->shape[0] / 2; rows >= 8; rows--) {
        // A swizzle repeats every eight rows; a chunk that starts there is addressed by adding.
        if (t->shape[0] % rows || rows % 8 || rows * t->shape[1] % at_once)
            continue;
        const int64_t n = rows * t->shape[1] / at_once;
        if (n <= most)
            return n >= least ? rows : 0;
    }
    return 0;
}

static const struct tir_type *rows_type(struct chunk *c, const struct tir_type *t, int64_t rows,
                                        uint32_t vector)
{
    static const uint32_t order[2] = {1, 0};
    struct tir_types *types = c->f->module->types;
    struct tir_type out = *t;
    out.space = TIR_SPACE_VALUE;
    out.shape[0] = rows;
    out.layout = tir_layout_blocked(types, 2, out.shape, order, order, vector, 1, c->warps);
    return tir_type_get(types, &out);
}

// for row in range(0, end, step), whose body the builder given back is at the end of.
static struct tir_builder build_rows(struct chunk *c, struct tir_builder *b, int64_t end,
                                     int64_t step, struct tir_value **row)
{
    struct tir_func *f = c->f;
    struct tir_value *bounds[] = {tir_const_index(f, 0), tir_const_index(f, end),
                                  tir_const_index(f, step)};
    struct tir_inst *loop = tir_build(b, TIR_OP_FOR, bounds, 3, NULL, 0, 1);
    tir_set_int(f, loop, TIR_ATTR_unroll, 1);
    *row = tir_block_add_arg(f, loop->regions[0], bounds[0]->type,
                             tir_intern_cstr(f->module->names, "row"));
    struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
    in.span = b->span;
    return in;
}

static struct tir_value *plus(struct tir_builder *b, struct tir_value *start, struct tir_value *row)
{
    int64_t zero;
    if (tir_is_const_int(start, &zero) && zero == 0)
        return row;
    if (start->type != row->type) // an index that was read from memory, say
        start = tir_build1(b, TIR_OP_CAST, row->type, &start, 1);
    return tir_binary(b, TIR_OP_ADD, start, row);
}

// The part that an access moves: two dimensions of a buffer or a tensor, the innermost and an outer
// one.
struct slice {
    struct tir_value *const *ref; // the base, then an index for each of its dimensions
    const int64_t *box;
    uint32_t rank; // of the base
};

static struct slice slice_of(const struct tir_inst *access)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    return (struct slice){access->operands + tir_fixed_count(access), box->list, box->list_count};
}

static bool is_plain(const struct tir_inst *access)
{
    struct slice s = slice_of(access);
    uint32_t slices = 0;
    for (uint32_t d = 0; d < s.rank; d++) {
        if (s.box[d] < 0)
            return false;
        slices += s.box[d] > 0;
    }
    return slices == 2 && s.box[s.rank - 1] > 0;
}

// The ref operands of `rows` rows of the slice from `row` on, and their box.
static void take_rows(struct tir_builder *b, const struct slice *s, struct tir_value *row,
                      int64_t rows, struct tir_value **ref, int64_t *box)
{
    memcpy(ref, s->ref, (1 + s->rank) * sizeof(*ref));
    memcpy(box, s->box, s->rank * sizeof(*box));
    uint32_t d = 0;
    while (!box[d])
        d++;
    ref[1 + d] = plus(b, ref[1 + d], row);
    box[d] = rows;
}

// A tile of type t that goes from a tensor to shared memory, or from there to a tensor.
struct move {
    const struct tir_type *t;
    struct slice from, to;
    struct tir_value *pad;
    bool fetches;                  // from the tensor
    const struct tir_inst *access; // the one of the tensor
};

// Loads and stores `rows` rows at a time, in vectors. aligned: bytes that the tensor turned out to
// be aligned to, or 0.
static void build_loop(struct chunk *c, struct tir_builder b, const struct move *move, int64_t rows,
                       uint32_t vector, uint32_t aligned)
{
    struct tir_value *row;
    const struct slice *from = &move->from, *to = &move->to;
    struct tir_builder in = build_rows(c, &b, move->t->shape[0], rows, &row);
    const struct tir_type *type = rows_type(c, move->t, rows, vector);
    int64_t box[TIR_MAX_RANK];
    struct tir_value *load_operands[3 + TIR_MAX_RANK] = {move->pad, NULL};
    take_rows(&in, from, row, rows, load_operands + 2, box);
    struct tir_inst *load = tir_build(&in, TIR_OP_LOAD, load_operands, 3 + from->rank, &type, 1, 0);
    tir_set_list(c->f, load, TIR_ATTR_box, box, from->rank);
    struct tir_value *store_operands[3 + TIR_MAX_RANK] = {load->results[0], NULL};
    take_rows(&in, to, row, rows, store_operands + 2, box);
    struct tir_inst *store = tir_build(&in, TIR_OP_STORE, store_operands, 3 + to->rank, NULL, 0, 0);
    tir_set_list(c->f, store, TIR_ATTR_box, box, to->rank);
    struct tir_inst *access = move->fetches ? load : store;
    tir_copy_attr(c->f, access, move->access, TIR_ATTR_cache);
    tir_copy_attr(c->f, access, move->access, TIR_ATTR_wraps);
    if (aligned)
        tir_set_int(c->f, access, TIR_ATTR_aligned, aligned);
    tir_build_yield(&in, NULL, 0);
}

// The same in front of `store`: in loops of at most `most` accesses of a thread, as many elements
// at a time as the tensor is known to be aligned to, or `wide` bytes if it turns out to be aligned
// to them. False: they are so few that they may stay a load and a store.
static bool build_move(struct chunk *c, struct tir_inst *store, const struct move *move,
                       int64_t most, uint32_t wide)
{
    struct tir_func *f = c->f;
    const struct tir_type *t = move->t;
    struct tir_value *const *tensor = move->fetches ? move->from.ref : move->to.ref;
    uint32_t vector = vector_of(c, tensor[0]), many = wide * 8 / tir_elems[t->elem].bits;
    int64_t rows = chunk_rows(c, t, vector, most);
    if (!rows)
        return false;
    struct tir_builder b = tir_builder_before(f, store);
    if (vector >= many || !tir_tensor_is_dense(f, tensor[0])) {
        build_loop(c, b, move, rows, vector, 0);
        return true;
    }
    const struct tir_type *i32 = tir_type_scalar(f->module->types, TIR_I32);
    struct tir_value *bytes = tir_build1(&b, TIR_OP_ALIGNMENT, i32, tensor, 1);
    struct tir_value *aligned = tir_binary(&b, TIR_OP_GE, bytes, tir_const_i32(f, (int32_t)wide));
    struct tir_inst *branch = tir_build(&b, TIR_OP_IF, &aligned, 1, NULL, 0, 2);
    struct tir_builder in = tir_builder_at_end(f, branch->regions[0]);
    in.span = b.span;
    int64_t wide_rows = chunk_rows(c, t, many, TIR_BUDGET_CHUNK_COPIES);
    build_loop(c, in, move, wide_rows ? wide_rows : t->shape[0], many, wide);
    tir_build_yield(&in, NULL, 0);
    in.block = branch->regions[1];
    build_loop(c, in, move, rows, vector, 0);
    tir_build_yield(&in, NULL, 0);
    return true;
}

// Nothing but allocs stands between the two.
static bool follows(const struct tir_inst *load, const struct tir_inst *store)
{
    const struct tir_inst *next = load->next;
    while (next && next->op == TIR_OP_ALLOC)
        next = next->next;
    return next == store;
}

// The load of the value that `store` stores, if it has no other use, from a tensor to shared memory
// (fetches) or the other way; NULL: there is none.
static struct tir_inst *moved_by(const struct chunk *c, const struct tir_inst *store, bool fetches)
{
    const struct tir_value *v = store->operands[TIR_STORE_VALUE];
    struct tir_inst *load = v->def;
    if (store->operands[TIR_STORE_MASK] || !load || load->op != TIR_OP_LOAD ||
        load->operands[TIR_LOAD_MASK] || !follows(load, store) || c->uses[v->id] != 1)
        return NULL;
    enum tir_space from = tir_ref_base(load)->type->space, to = tir_ref_base(store)->type->space;
    bool fits = fetches ? from == TIR_SPACE_GLOBAL && to == TIR_SPACE_SHARED
                        : from == TIR_SPACE_SHARED && to == TIR_SPACE_GLOBAL;
    return fits && v->type->rank == 2 && is_plain(load) && is_plain(store) ? load : NULL;
}

// The type of a part of a buffer; NULL: its layout cannot be cut there, or `ring` chooses it later.
static const struct tir_type *part_type(struct chunk *c, const struct tir_type *buffer,
                                        const int64_t *box)
{
    const struct tir_layout *l = buffer->layout;
    if (!l)
        return NULL;
    struct tir_iter iters[TIR_MAX_ITERS];
    memcpy(iters, l->iters, l->iter_count * sizeof(*iters));
    for (uint32_t d = 0; d < 2; d++) { // the innermost iterators that make up the box
        int64_t left = box[d];
        for (uint32_t i = l->first[d + 1]; i-- > l->first[d];) {
            iters[i].extent = (uint32_t)TIR_MIN(left, (int64_t)iters[i].extent);
            left /= iters[i].extent;
        }
    }
    struct tir_type t = *buffer;
    memcpy(t.shape, box, 2 * sizeof(*box));
    t.layout = tir_layout_from_iters(c->f->module->types, 2, box, iters, l->iter_count, NULL, 0,
                                     l->swizzle);
    return t.layout ? tir_type_get(c->f->module->types, &t) : NULL;
}

static struct tir_value *part_of(struct chunk *c, struct tir_builder *b, struct tir_value *buffer,
                                 const struct tir_type *type, struct tir_value *row,
                                 struct tir_value *column)
{
    struct tir_value *operands[] = {buffer, row, column};
    struct tir_value *part = tir_build1(b, TIR_OP_VIEW, type, operands, 3);
    tir_set_list(c->f, part->def, TIR_ATTR_box, type->shape, 2);
    part->name = buffer->name;
    return part;
}

static void chunk_copy(struct chunk *c, struct tir_inst *copy)
{
    struct tir_value *to = copy->operands[TIR_COPY_TO];
    const struct tir_type *t = to->type;
    uint32_t width = (uint32_t)tir_attr_int(copy, TIR_ATTR_width, 16);
    if (width == 16 || copy->operands[TIR_COPY_MASK])
        return;
    int64_t rows = chunk_rows(c, t, width * 8 / tir_elems[t->elem].bits, TIR_BUDGET_CHUNK_COPIES);
    int64_t box[2] = {rows, t->shape[1]};
    const struct tir_type *type = rows ? part_type(c, t, box) : NULL;
    if (!type || !is_plain(copy))
        return;
    struct tir_func *f = c->f;
    struct tir_builder b = tir_builder_before(f, copy);
    struct slice from = slice_of(copy);
    struct tir_value *row;
    struct tir_builder in = build_rows(c, &b, t->shape[0], rows, &row);
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {
        part_of(c, &in, to, type, row, tir_const_index(f, 0)), copy->operands[TIR_COPY_PRED]};
    int64_t boxes[TIR_MAX_RANK];
    take_rows(&in, &from, row, rows, operands + TIR_COPY_FIXED, boxes);
    struct tir_inst *part =
        tir_build(&in, TIR_OP_COPY_ASYNC, operands, TIR_COPY_FIXED + 1 + from.rank, NULL, 0, 0);
    tir_set_list(f, part, TIR_ATTR_box, boxes, from.rank);
    tir_set_int(f, part, TIR_ATTR_width, width);
    tir_copy_attr(f, part, copy, TIR_ATTR_cache);
    tir_build_yield(&in, NULL, 0);
    tir_remove(copy);
    c->loads = true;
}

// A dot whose steps along K become a loop.
static void chunk_dot(struct chunk *c, struct tir_inst *dot)
{
    struct tir_func *f = c->f;
    struct tir_value *a = dot->operands[TIR_DOT_A], *b = dot->operands[TIR_DOT_B];
    struct tir_value *sum = dot->results[0];
    int64_t m = a->type->shape[0], n = b->type->shape[1], depth = a->type->shape[1];
    struct tir_dot_plan plan = tir_dot_plan(c->cx->target, dot);
    int64_t box_a[2] = {m, plan.depth}, box_b[2] = {plan.depth, n};
    const struct tir_type *type_a = plan.mma ? part_type(c, a->type, box_a) : NULL;
    const struct tir_type *type_b = plan.mma ? part_type(c, b->type, box_b) : NULL;
    if (!type_a || !type_b || depth == plan.depth)
        return;
    struct tir_builder build = tir_builder_before(f, dot);
    struct tir_value *operands[] = {tir_const_index(f, 0), tir_const_index(f, depth),
                                    tir_const_index(f, plan.depth), dot->operands[TIR_DOT_ACC]};
    struct tir_inst *loop = tir_build(&build, TIR_OP_FOR, operands, 4, &sum->type, 1, 1);
    struct tir_value *k = tir_block_add_arg(f, loop->regions[0], operands[0]->type,
                                            tir_intern_cstr(f->module->names, "k"));
    struct tir_value *carried = tir_block_add_arg(f, loop->regions[0], sum->type, sum->name);
    struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
    in.span = dot->span;
    struct tir_value *zero = operands[0];
    struct tir_value *step[TIR_DOT_OPERANDS] = {[TIR_DOT_A] = part_of(c, &in, a, type_a, zero, k),
                                                [TIR_DOT_B] = part_of(c, &in, b, type_b, k, zero),
                                                [TIR_DOT_ACC] = carried};
    struct tir_value *next = tir_build1(&in, TIR_OP_DOT, sum->type, step, TIR_DOT_OPERANDS);
    tir_build_yield(&in, &next, 1);
    loop->results[0]->name = sum->name;
    tir_replace_uses(f, sum, loop->results[0]);
    tir_remove(dot);
}

// A load and the store of what it loaded. Around products on warpgroups lanes move four bytes,
// which fill sectors as lanes are next to each other.
static bool chunk_move(struct chunk *c, struct tir_inst *store)
{
    bool fetches = tir_ref_base(store)->type->space == TIR_SPACE_SHARED;
    struct tir_inst *load = moved_by(c, store, fetches);
    struct tir_value *pad = load ? load->operands[TIR_LOAD_PAD] : NULL;
    if (!load || (pad && !tir_type_is_scalar(pad->type) && pad->kind != TIR_VALUE_CONST))
        return false;
    struct move move = {load->results[0]->type, slice_of(load), slice_of(store), pad, fetches,
                        fetches ? load : store};
    if (!build_move(c, store, &move,
                    c->on_warpgroups ? TIR_BUDGET_CHUNK_COPIES : TIR_BUDGET_CHUNK_ACCESSES,
                    c->on_warpgroups ? 4 : 0))
        return false;
    tir_remove(store);
    tir_remove(load);
    c->loads |= fetches;
    c->stores |= !fetches;
    return true;
}

// The buffer through which the value of a store to global goes whose layout is converted for the
// purpose; NULL: through none.
static const struct tir_type *store_buffer(struct chunk *c, const struct tir_inst *store)
{
    const struct tir_value *v = store->operands[TIR_STORE_VALUE];
    const struct tir_inst *convert = v->def;
    if (tir_ref_base(store)->type->space != TIR_SPACE_GLOBAL || store->operands[TIR_STORE_MASK] ||
        !convert || convert->op != TIR_OP_CONVERT_LAYOUT || c->uses[v->id] != 1 ||
        v->type->rank != 2 || !is_plain(store) ||
        !chunk_rows(c, v->type, vector_of(c, tir_ref_base(store)), TIR_BUDGET_CHUNK_ACCESSES))
        return NULL;
    struct tir_type t = *v->type;
    if (tir_type_count(&t) * tir_elems[t.elem].bits / 8 > c->cx->target->shared_per_cta)
        return NULL; // a conversion goes through shared memory in parts
    int64_t row_bytes = t.shape[1] * tir_elems[t.elem].bits / 8;
    t.space = TIR_SPACE_SHARED;
    t.layout = tir_layout_memory(c->f->module->types, 2, t.shape, tir_elems[t.elem].bits,
                                 row_bytes % 128 == 0 ? 128 : 0);
    return tir_type_get(c->f->module->types, &t);
}

static void chunk_store(struct chunk *c, struct tir_inst *store)
{
    const struct tir_type *t = c->has_room ? store_buffer(c, store) : NULL;
    if (!t)
        return;
    struct tir_func *f = c->f;
    struct tir_builder b = tir_builder_before(f, store);
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    struct tir_inst *convert = v->def;
    struct tir_value *buffer = tir_build1(&b, TIR_OP_ALLOC, t, NULL, 0);
    struct tir_value *zero = tir_const_index(f, 0);
    struct tir_value *operands[] = {convert->operands[TIR_REDUCE_X], NULL, buffer, zero, zero};
    struct tir_inst *whole = tir_build(&b, TIR_OP_STORE, operands, 5, NULL, 0, 0);
    tir_set_list(f, whole, TIR_ATTR_box, t->shape, 2);
    struct move move = {
        .t = v->type, .from = {operands + 2, t->shape, 2}, .to = slice_of(store), .access = store};
    build_move(c, store, &move, TIR_BUDGET_CHUNK_ACCESSES, 16);
    tir_remove(store);
    tir_remove(convert);
    c->stores = true;
}

const struct tir_type *tir_chunked_store(struct tir_func *f, struct tir_pass_cx *cx, uint32_t *uses,
                                         const struct tir_inst *store)
{
    struct chunk c = {.f = f, .cx = cx, .uses = uses, .warps = tir_crew_of(f, store).warps};
    return store_buffer(&c, store);
}

// Around products on warpgroups a role computes a tile while others multiply: its loads stay
// together.
static bool chunk_computed(struct chunk *c, struct tir_inst *store)
{
    const bool built = !c->on_warpgroups && tir_rows_build(c->f, c->cx, store);
    c->loads |= built;
    return built;
}

static void run_block(struct chunk *c, struct tir_block *block)
{
    tir_foreach_inst_safe(inst, block) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            run_block(c, inst->regions[r]);
        c->warps = tir_crew_of(c->f, inst).warps;
        if (inst->op == TIR_OP_STORE && !chunk_move(c, inst) && !chunk_computed(c, inst))
            chunk_store(c, inst);
        else if (inst->op == TIR_OP_COPY_ASYNC)
            chunk_copy(c, inst);
    }
}

// Rings and buffers that the program declares may leave no room for what stores go through.
static bool has_room(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct tir_room room;
    tir_room_init(&room, f, cx, TIR_FILL_IN_LINE);
    return tir_room_suffices(&room);
}

enum tir_change tir_pass_chunk(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct chunk c = {.f = f,
                      .cx = cx,
                      .uses = tir_count_uses(cx->scratch, f),
                      .has_room = has_room(f, cx),
                      .on_warpgroups = tir_has_warpgroup_dot(f)};
    run_block(&c, f->body);
    VEC(struct tir_inst *) dots = {0};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT && !tir_is_scaled_dot(inst) && c.loads && !c.on_warpgroups)
            vec_push(cx->scratch, &dots, inst);
    vec_foreach(struct tir_inst *, it, &dots)
        chunk_dot(&c, *it);
    return c.loads || c.stores ? TIR_CHANGED : TIR_UNCHANGED;
}
