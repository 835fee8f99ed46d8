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
// Where rows are not aligned every element is an access of its own, and a tile of 128 x 64 would be
// hundreds of instructions and predicates in a row: slow to compile and no faster to run. The same
// is done to a store that first converts its tile's layout: the tile goes to shared memory at once
// and leaves it in rows. Tiles whose accesses are few (16 or fewer a thread) stay whole.

#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/stage.h"

#define MOST_ACCESSES 16 // of one thread, for a tile to stay whole

struct chunk {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    uint32_t *uses;
    bool changed;
};

// Accesses of one thread when each moves one element, or a vector where rows are aligned.
static int64_t accesses(const struct chunk *c, const struct tir_type *t)
{
    int64_t each = c->f->facts & TIR_FACT_VECTOR16 ? 128 / tir_elems[t->elem].bits : 1;
    return tir_type_count(t) / TIR_MAX(1, each * c->f->threads);
}

// Rows that make MOST_ACCESSES, if the tile has a whole number of such chunks; 0: leave it whole.
static int64_t chunk_rows(const struct chunk *c, const struct tir_type *t)
{
    int64_t n = accesses(c, t);
    if (t->rank != 2 || n <= MOST_ACCESSES || n % MOST_ACCESSES)
        return 0;
    int64_t chunks = n / MOST_ACCESSES, rows = t->shape[0] / chunks;
    // A swizzle repeats every eight rows; a chunk that starts there is addressed by an addition.
    return t->shape[0] % chunks == 0 && rows % 8 == 0 ? rows : 0;
}

static const struct tir_type *rows_type(struct chunk *c, const struct tir_type *t, int64_t rows)
{
    static const uint32_t order[2] = {1, 0};
    struct tir_types *types = c->f->module->types;
    struct tir_type out = *t;
    out.space = TIR_SPACE_VALUE;
    out.shape[0] = rows;
    uint32_t vector = c->f->facts & TIR_FACT_VECTOR16 ? 128 / tir_elems[t->elem].bits : 1;
    out.layout =
        tir_layout_blocked(types, 2, out.shape, order, order, vector, 1, c->f->threads / 32);
    return tir_type_get(types, &out);
}

// One load and one store of `rows` rows, `to` and `from` being the ref operands (base, two indices)
// of the whole tile; the first index moves with the loop.
static void build_loop(struct chunk *c, struct tir_builder b, const struct tir_type *t,
                       int64_t rows, struct tir_value *const *from, struct tir_value *pad,
                       struct tir_value *const *to)
{
    struct tir_func *f = c->f;
    struct tir_value *bounds[] = {tir_const_index(f, 0), tir_const_index(f, t->shape[0]),
                                  tir_const_index(f, rows)};
    struct tir_inst *loop = tir_build(&b, TIR_OP_FOR, bounds, 3, NULL, 0, 1);
    tir_set_int(f, loop, TIR_ATTR_unroll, 1);
    tir_set_int(f, loop, TIR_ATTR_stages, 1);
    struct tir_value *i = tir_block_add_arg(f, loop->regions[0], bounds[0]->type,
                                            tir_intern_cstr(f->module->names, "row"));
    struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
    in.span = b.span;
    const struct tir_type *type = rows_type(c, t, rows);
    int64_t box[2] = {rows, t->shape[1]}, zero;
    struct tir_value *at[2];
    for (uint32_t k = 0; k < 2; k++) {
        struct tir_value *start = k ? to[1] : from[1];
        bool at_zero = tir_is_const_int(start, &zero) && zero == 0;
        at[k] = at_zero ? i : tir_binary(&in, TIR_OP_ADD, start, i);
    }
    struct tir_value *load_operands[] = {pad, NULL, from[0], at[0], from[2]};
    struct tir_inst *load = tir_build(&in, TIR_OP_LOAD, load_operands, 5, &type, 1, 0);
    tir_set_list(f, load, TIR_ATTR_box, box, 2);
    struct tir_value *store_operands[] = {load->results[0], NULL, to[0], at[1], to[2]};
    struct tir_inst *store = tir_build(&in, TIR_OP_STORE, store_operands, 5, NULL, 0, 0);
    tir_set_list(f, store, TIR_ATTR_box, box, 2);
    tir_build_yield(&in, NULL, 0);
    c->changed = true;
}

static bool is_plain(const struct tir_inst *access) // both dimensions are slices
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    return box->list_count == 2 && box->list[0] > 0 && box->list[1] > 0;
}

// Nothing but allocs stands between the two.
static bool follows(const struct tir_inst *load, const struct tir_inst *store)
{
    const struct tir_inst *next = load->next;
    while (next && next->op == TIR_OP_ALLOC)
        next = next->next;
    return next == store;
}

// load from global, store to shared.
static bool chunk_load(struct chunk *c, struct tir_inst *store)
{
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    struct tir_inst *load = v->def;
    if (tir_ref_base(store)->type->space != TIR_SPACE_SHARED || store->operands[TIR_STORE_MASK] ||
        !load || load->op != TIR_OP_LOAD || !follows(load, store) || c->uses[v->id] != 1 ||
        load->operands[TIR_LOAD_MASK] || tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL)
        return false;
    struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    if (pad && !tir_type_is_scalar(pad->type) && pad->kind != TIR_VALUE_CONST)
        return false;
    int64_t rows = chunk_rows(c, v->type);
    if (!rows || !is_plain(load) || !is_plain(store))
        return false;
    build_loop(c, tir_builder_before(c->f, store), v->type, rows,
               load->operands + tir_fixed_count(load), pad,
               store->operands + tir_fixed_count(store));
    tir_remove(store);
    tir_remove(load);
    return true;
}

// store to global of a tile whose layout is converted for the purpose.
static bool chunk_store(struct chunk *c, struct tir_inst *store)
{
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    struct tir_inst *convert = v->def;
    if (tir_ref_base(store)->type->space != TIR_SPACE_GLOBAL || store->operands[TIR_STORE_MASK] ||
        !convert || convert->op != TIR_OP_CONVERT_LAYOUT || c->uses[v->id] != 1 || !is_plain(store))
        return false;
    int64_t rows = chunk_rows(c, v->type);
    if (!rows)
        return false;
    struct tir_func *f = c->f;
    struct tir_builder b = tir_builder_before(f, store);
    struct tir_type t = *v->type;
    int64_t row_bytes = t.shape[1] * tir_elems[t.elem].bits / 8;
    t.space = TIR_SPACE_SHARED;
    t.layout = tir_layout_memory(f->module->types, 2, t.shape, tir_elems[t.elem].bits,
                                 row_bytes % 128 == 0 ? 128 : 0);
    struct tir_value *buffer =
        tir_build1(&b, TIR_OP_ALLOC, tir_type_get(f->module->types, &t), NULL, 0);
    struct tir_value *zero = tir_const_index(f, 0), *from[3] = {buffer, zero, zero};
    struct tir_value *operands[] = {convert->operands[TIR_REDUCE_X], NULL, buffer, zero, zero};
    struct tir_inst *whole = tir_build(&b, TIR_OP_STORE, operands, 5, NULL, 0, 0);
    tir_set_list(f, whole, TIR_ATTR_box, t.shape, 2);
    build_loop(c, b, v->type, rows, from, NULL, store->operands + tir_fixed_count(store));
    tir_remove(store);
    tir_remove(convert);
    return true;
}

static void run_block(struct chunk *c, struct tir_block *block)
{
    tir_foreach_inst_safe(inst, block) {
        for (uint32_t r = 0; r < inst->region_count; r++)
            run_block(c, inst->regions[r]);
        if (inst->op == TIR_OP_STORE && !chunk_load(c, inst))
            chunk_store(c, inst);
    }
}

enum tir_change tir_pass_chunk(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct chunk c = {.f = f, .cx = cx, .uses = tir_count_uses(cx->scratch, f)};
    run_block(&c, f->body);
    return c.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
