// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// rows: computes a tile on its way to shared memory a few rows at a time.
//
//     let page: i32[128] in I = load(T[k / 16]);
//     let a: bf16[128, 64] in L = load(A[page, 0:+64]);
//     store(buf[0:+128, 0:+64], a);
// becomes
//     for row: i64 in range(0, 128, 32) {
//         let page0: i32[32] in I0 = load(T[(k + row) / 16]);
//         let a0: bf16[32, 64] in L0 = load(A[page0, 0:+64]);
//         store(buf[row:+32, 0:+64], a0);
//     }
//
// A value is computed by rows if each of its rows depends on the same rows of its operands: index
// tiles, masks, conversions, tables. Index tiles are so few elements that they are computed again
// for each use. A tile of all columns must have no other use, or only in a store behind which this
// one follows at once: then both are in the loop.
//
// Buffers that the program declares are left alone, but for slots of roles beside tensor memory.
// Loads move past other stores, so they must be of tensors that the kernel does not write, or
// nothing that writes stands between. The part of a tile has the layout of the tile, without the
// registers of other rows.

#include "pass/async/rows.h"

#include "base/bitset.h"
#include "ir/crew.h"
#include "ir/effect.h"
#include "ir/follow.h"
#include "ir/walk.h"
#include "machine/budget.h"

#define MOST_STORES 2 // in one loop
#define SMALL       8 // times larger is what is stored to than a buffer that may live on for it

struct rows {
    struct tir_func *f;
    struct tir_arena *scratch;
    struct tir_inst *stores[MOST_STORES]; // the last one first
    uint32_t store_count;
    bool has_slots;                 // copies are in flight, to as many slots as fit
    int64_t whole, count;           // rows: of the tile, of a part
    const uint32_t *uses;           // by value id
    uint32_t *seen;                 // by value id: uses by rows
    struct bitset inside;           // values that are computed by rows, by id
    VEC(struct tir_value *) values; // the same
    struct tir_value *row;          // the loop's variable
    struct tir_map built;           // value -> its rows in this round
    struct tir_builder *b;
};

// What is taken by rows.

static bool is_divided(const struct rows *r, const struct tir_value *v)
{
    const struct tir_type *t = v->type;
    return tir_type_is_tile(t) && t->rank <= 2 && t->shape[0] == r->whole;
}

static bool is_whole_row(const struct tir_value *v) // not an index tile, nor one of a column
{
    return v->type->rank == 2 && v->type->shape[1] > 1;
}

static const struct tir_type *part_type(const struct rows *r, const struct tir_type *type)
{
    struct tir_types *types = r->f->module->types;
    struct tir_type t = *type;
    t.shape[0] = r->count;
    t.layout = t.layout ? tir_layout_part(types, t.layout, t.shape) : NULL;
    return t.layout || !type->layout ? tir_type_get(types, &t) : NULL;
}

static const int64_t *box_of(const struct tir_inst *access)
{
    return tir_attr_find(access, TIR_ATTR_box)->list;
}

static uint32_t dimension(const struct tir_inst *access, uint32_t operand) // of its base
{
    return operand - tir_fixed_count(access) - 1;
}

// Does a round need only its rows of this operand?
static bool takes_rows(const struct rows *r, const struct tir_inst *inst, uint32_t operand)
{
    const struct tir_value *v = inst->operands[operand];
    if (!v || !is_divided(r, v))
        return false;
    if (!tir_ops[inst->op].has_ref || operand < tir_fixed_count(inst))
        return true;
    return operand > tir_fixed_count(inst) && !tir_slice_dim(inst, dimension(inst, operand));
}

// The layout of operand `i` in a round; NULL: there is none.
static const struct tir_layout *layout_in_round(const struct rows *r, const struct tir_inst *inst,
                                                uint32_t i)
{
    const struct tir_type *t = inst->operands[i]->type;
    t = takes_rows(r, inst, i) ? part_type(r, t) : t;
    return t ? t->layout : NULL;
}

// Does a thread have in a round what it needs of the index tiles?
static bool has_indices(const struct rows *r, const struct tir_inst *access,
                        const struct tir_type *tile)
{
    const struct tir_type *part = part_type(r, tile);
    for (uint32_t d = 0; part && d < tir_ref_base(access)->type->rank; d++) {
        const uint32_t i = tir_fixed_count(access) + 1 + d;
        const struct tir_type *t = access->operands[i]->type;
        if (!tir_type_is_tile(t) || access->operands[i]->kind == TIR_VALUE_CONST)
            continue;
        int64_t shape[TIR_MAX_RANK];
        memcpy(shape, t->shape, sizeof(shape));
        shape[0] = takes_rows(r, access, i) ? r->count : shape[0];
        if (layout_in_round(r, access, i) != tir_layout_of_index(r->f->module->types, t->rank,
                                                                 shape, part->layout,
                                                                 tir_slice_dim(access, d)))
            return false;
    }
    return part;
}

// Are the rows of the access those of one dimension, or of index tiles?
static bool has_rows(const struct rows *r, const struct tir_inst *access)
{
    for (uint32_t d = 0; d < tir_ref_base(access)->type->rank; d++) {
        const struct tir_value *index = tir_ref_indices(access)[d];
        if (box_of(access)[d] && !tir_slice_dim(access, d))
            return box_of(access)[d] == r->whole || is_divided(r, index) ||
                   (tir_type_is_tile(index->type) && index->type->shape[0] == 1);
    }
    return false;
}

static bool is_in_step(const struct rows *r, const struct tir_inst *inst)
{
    struct tir_types *types = r->f->module->types;
    const struct tir_value *x = inst->operands[0];
    const struct tir_layout *l = part_type(r, inst->results[0]->type)->layout;
    if (x->kind == TIR_VALUE_CONST || tir_type_is_scalar(x->type))
        return true;
    const struct tir_layout *from = layout_in_round(r, inst, 0);
    if (inst->op == TIR_OP_RESHAPE)
        return from && is_divided(r, x) &&
               tir_layout_reshape(types, l, x->type->rank, from->shape) == from;
    for (uint32_t d = 0; from && l && d < from->rank; d++)
        if (from->shape[d] != l->shape[d])
            l = tir_layout_slice(types, l, d);
    return from && x->type->rank == inst->results[0]->type->rank && l == from;
}

// Does a load, which stands before the stores, give the same there? It must not keep a buffer alive
// whose place the one that is stored to could take, unless it is small and no slots want the bytes.
static bool can_move(const struct rows *r, const struct tir_inst *load)
{
    if (tir_is_only_read(r->f, tir_ref_base(load)))
        return true;
    struct tir_value *from = tir_buffer_root(tir_ref_base(load));
    for (uint32_t i = 0; i < r->store_count; i++)
        if (tir_buffer_root(tir_ref_base(r->stores[i])) == from)
            return false;
    // A slot is a view.
    const int64_t bytes = tir_buffer_bytes(tir_ref_base(r->stores[0])->type);
    const bool is_slot = tir_ref_base(load) != from || tir_buffer_is_by_hand(from);
    if (load->block != r->stores[0]->block ||
        (!is_slot && (r->has_slots || tir_buffer_bytes(from->type) * SMALL > bytes)))
        return false;
    for (const struct tir_inst *inst = load->next; inst != r->stores[0]; inst = inst->next) {
        const bool stores = inst->op == TIR_OP_STORE || inst->op == TIR_OP_FOR;
        if (!stores && inst->op != TIR_OP_LOAD && inst->op != TIR_OP_ALLOC &&
            !tir_has_trait(inst, TIR_PURE))
            return false;
        tir_foreach_inst_within(in, inst)
            if (stores && in->op == TIR_OP_STORE && tir_buffer_root(tir_ref_base(in)) == from)
                return false;
            else if (in != inst && tir_has_effect(in) && in->op != TIR_OP_STORE)
                return false;
    }
    return true;
}

static bool can_divide(const struct rows *r, const struct tir_inst *inst)
{
    if (!inst || inst->result_count != 1 || inst->region_count ||
        !part_type(r, inst->results[0]->type))
        return false;
    const struct tir_value *pad;
    switch (inst->op) {
    case TIR_OP_IOTA:
        return true;
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
        return is_in_step(r, inst);
    case TIR_OP_LOAD:
        pad = inst->operands[TIR_LOAD_PAD];
        return (!pad || tir_type_is_scalar(pad->type)) && has_rows(r, inst) &&
               has_indices(r, inst, inst->results[0]->type) && can_move(r, inst);
    default:
        return tir_is_elementwise(inst) && tir_has_trait(inst, TIR_PURE);
    }
}

// Adds what inst takes by rows.
static void need(struct rows *r, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        if (!takes_rows(r, inst, i) || v->kind == TIR_VALUE_CONST)
            continue;
        r->seen[v->id]++;
        if (bitset_insert(&r->inside, v->id))
            vec_push(r->scratch, &r->values, v);
    }
}

static bool can_store(const struct rows *r, const struct tir_inst *store)
{
    const struct tir_value *v = store->operands[TIR_STORE_VALUE];
    return v->kind != TIR_VALUE_CONST && v->type->rank == 2 && is_divided(r, v) &&
           tir_ref_base(store)->type->space == TIR_SPACE_SHARED && has_rows(r, store) &&
           has_indices(r, store, v->type);
}

// Finds what is computed by rows. False: it cannot be.
static bool find(struct rows *r, int64_t count)
{
    r->count = count;
    r->inside = bitset_new(r->scratch, r->f->value_count);
    r->seen = arena_array(r->scratch, uint32_t, r->f->value_count);
    r->values.len = 0;
    for (uint32_t i = 0; i < r->store_count; i++) {
        if (!can_store(r, r->stores[i]))
            return false;
        need(r, r->stores[i]);
    }
    for (uint32_t i = 0; i < r->values.len; i++) {
        if (!can_divide(r, r->values.at[i]->def))
            return false;
        need(r, r->values.at[i]->def);
    }
    vec_foreach(struct tir_value *const, v, &r->values)
        if (is_whole_row(*v) && (*v)->def->op != TIR_OP_BROADCAST && (*v)->def->op != TIR_OP_IOTA &&
            r->seen[(*v)->id] != r->uses[(*v)->id])
            return false;
    return true;
}

// Registers.

// Does a thread load neighbours together?
static bool loads_vectors(const struct rows *r, const struct tir_inst *load)
{
    const struct tir_value *tensor = tir_ref_base(load);
    const struct tir_value *last = tir_ref_indices(load)[tensor->type->rank - 1];
    return tir_type_is_scalar(last->type) &&
           (tensor->type->space == TIR_SPACE_SHARED || tir_tensor_alignment(r->f, tensor) >= 4);
}

// Of a thread, for all rows: what is loaded in vectors fills them, other elements have one each.
static int64_t registers_of(const struct rows *r, const struct tir_value *v)
{
    const int64_t bits = tir_elems[v->type->elem].bits,
                  n = tir_layout_size(v->type->layout, TIR_AXIS_REG);
    if (v->type->elem == TIR_BOOL || v->def->op == TIR_OP_BROADCAST || v->def->op == TIR_OP_IOTA)
        return 0;
    const bool packed = v->def->op == TIR_OP_LOAD && loads_vectors(r, v->def);
    return packed ? (n * bits + 31) / 32 : n * TIR_MAX(1, bits / 32);
}

// The most that threads hold: the index tiles, and the largest tile of rows.
static int64_t registers(const struct rows *r)
{
    int64_t most = 0, indices = 0;
    vec_foreach(struct tir_value *const, v, &r->values) {
        const int64_t n = registers_of(r, *v);
        if (is_whole_row(*v))
            most = TIR_MAX(most, n);
        else
            indices = TIR_MAX(indices, n);
    }
    return most + indices;
}

// The rows of a part for which a thread has few registers; 0: there is no such part, or the tile
// takes no more.
static int64_t rows_of_part(struct rows *r)
{
    int64_t least = 0;
    for (int64_t count = r->whole / 2; count >= 8; count--) {
        // A swizzle repeats every eight rows; a part that starts there is addressed by an addition.
        if (r->whole % count || count % 8 || !find(r, count))
            continue;
        const int64_t all = registers(r);
        least = all > TIR_BUDGET_ROW_REGISTERS ? count : 0;
        if (all * count <= TIR_BUDGET_ROW_REGISTERS * r->whole)
            break;
    }
    return least;
}

// Building.

static struct tir_value *rows_of(struct rows *r, struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return tir_const_as(r->f, part_type(r, v->type), v);
    struct tir_value *x = tir_map_get(&r->built, tir_map_key(v));
    assert(x);
    return x;
}

static struct tir_value *plus_row(struct rows *r, struct tir_value *start, int64_t stride)
{
    struct tir_value *row = r->row;
    if (stride != 1)
        row = tir_binary(r->b, TIR_OP_MUL, row, tir_const_index(r->f, stride));
    if (start->type != row->type) // an index that was read from memory, say
        start = tir_build1(r->b, TIR_OP_CAST, row->type, &start, 1);
    int64_t zero;
    return tir_is_const_int(start, &zero) && !zero ? row : tir_binary(r->b, TIR_OP_ADD, start, row);
}

static struct tir_inst *build_again(struct rows *r, const struct tir_inst *inst)
{
    struct tir_value **operands = arena_array(r->scratch, struct tir_value *, inst->operand_count);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        operands[i] = takes_rows(r, inst, i) ? rows_of(r, inst->operands[i]) : inst->operands[i];
    const bool has_ref = tir_ops[inst->op].has_ref;
    const uint32_t fixed = tir_fixed_count(inst),
                   rank = has_ref ? inst->operand_count - fixed - 1 : 0;
    int64_t box[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        box[d] = box_of(inst)[d];
        if (box[d] <= 0 || tir_slice_dim(inst, d))
            continue;
        box[d] = r->count;
        operands[fixed + 1 + d] = plus_row(r, operands[fixed + 1 + d], tir_slice_stride(inst, d));
    }
    const struct tir_type *type = inst->result_count ? part_type(r, inst->results[0]->type) : NULL;
    struct tir_inst *again =
        tir_build(r->b, inst->op, operands, inst->operand_count, &type, inst->result_count, 0);
    again->attrs = inst->attrs;
    again->attr_count = inst->attr_count;
    if (!has_ref)
        return again;
    again->attrs =
        tir_arena_copy(r->f->module->arena, inst->attrs, inst->attr_count * sizeof(*inst->attrs));
    tir_set_list(r->f, again, TIR_ATTR_box, box, rank);
    return again;
}

static struct tir_value *build_iota(struct rows *r, const struct tir_inst *iota)
{
    struct tir_value *i = build_again(r, iota)->results[0], *row = r->row;
    if (tir_attr_int(iota, TIR_ATTR_axis, 0))
        return i;
    row =
        tir_build1(r->b, TIR_OP_CAST, tir_type_scalar(r->f->module->types, i->type->elem), &row, 1);
    row = tir_build1(r->b, TIR_OP_BROADCAST, i->type, &row, 1);
    return tir_binary(r->b, TIR_OP_ADD, i, row);
}

static enum tir_answer is_built(void *user, struct tir_value *v)
{
    const struct rows *r = user;
    const bool is_inside =
        v->id < r->inside.bits && v->kind == TIR_VALUE_RESULT && bitset_has(&r->inside, v->id);
    return is_inside ? TIR_IF_OPERANDS : TIR_YES;
}

static void build_one(void *user, struct tir_value *v)
{
    struct rows *r = user;
    r->b->span = v->def->span;
    struct tir_value *x =
        v->def->op == TIR_OP_IOTA ? build_iota(r, v->def) : build_again(r, v->def)->results[0];
    x->name = v->name;
    tir_map_set(&r->built, tir_map_key(v), x);
}

static void build(struct rows *r)
{
    struct tir_func *f = r->f;
    struct tir_builder before = tir_builder_before(f, r->stores[0]);
    struct tir_value *bounds[] = {tir_const_index(f, 0), tir_const_index(f, r->whole),
                                  tir_const_index(f, r->count)};
    struct tir_inst *loop = tir_build(&before, TIR_OP_FOR, bounds, 3, NULL, 0, 1);
    tir_set_int(f, loop, TIR_ATTR_unroll, 1);
    r->row = tir_block_add_arg(f, loop->regions[0], bounds[0]->type,
                               tir_intern_cstr(f->module->names, "row"));
    struct tir_builder in = tir_builder_at_end(f, loop->regions[0]);
    r->b = &in;
    tir_map_init(&r->built, r->scratch);
    struct tir_follow follow;
    tir_follow_init(&follow, r->scratch, is_built, r);
    follow.then = build_one;
    for (uint32_t i = r->store_count; i-- > 0;) {
        for (uint32_t k = 0; k < r->stores[i]->operand_count; k++)
            if (takes_rows(r, r->stores[i], k))
                tir_follows(&follow, r->stores[i]->operands[k]);
        in.span = r->stores[i]->span;
        build_again(r, r->stores[i]);
    }
    tir_build_yield(&in, NULL, 0);
}

// Removes the stores, and what is of no use then.
static void remove_whole(struct rows *r)
{
    for (uint32_t i = 0; i < r->store_count; i++)
        tir_remove(r->stores[i]);
    for (bool more = true; more;) {
        const uint32_t *uses = tir_count_uses(r->scratch, r->f);
        more = false;
        vec_foreach(struct tir_value *const, v, &r->values)
            if ((*v)->def->block && !uses[(*v)->id]) {
                tir_remove((*v)->def);
                more = true;
            }
    }
}

// Is it in registers alone, or only names a part of a buffer?
static bool is_computation(const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_ALLOC || tir_viewed(inst))
        return true;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && inst->operands[i]->type->space != TIR_SPACE_VALUE)
            return false;
    return tir_has_trait(inst, TIR_PURE);
}

// The store that stands before it, with nothing else than computation between; NULL: there is none.
static struct tir_inst *store_before(const struct tir_inst *store)
{
    struct tir_inst *inst = store->prev;
    while (inst && is_computation(inst))
        inst = inst->prev;
    return inst && inst->op == TIR_OP_STORE ? inst : NULL;
}

// Does a role beside tensor memory fill a slot? Elsewhere sync_check does not match the rows of a
// loop with what a program that declares buffers reads of them later.
static bool is_slot_of_role(const struct tir_func *f, const struct tir_inst *store)
{
    bool has_tmem = false;
    tir_foreach_inst(inst, f)
        has_tmem |= inst->op == TIR_OP_TMEM_ALLOC;
    return has_tmem && tir_crew_of(f, store).role;
}

bool tir_rows_build(struct tir_func *f, struct tir_pass_cx *cx, struct tir_inst *store)
{
    const struct tir_value *v = store->operands[TIR_STORE_VALUE];
    struct rows r = {.f = f, .scratch = cx->scratch};
    if (tir_ref_base(store)->type->space != TIR_SPACE_SHARED || v->type->rank != 2 ||
        (tir_buffer_is_by_hand(tir_ref_base(store)) && !is_slot_of_role(f, store)))
        return false;
    r.whole = v->type->shape[0];
    r.uses = tir_count_uses(cx->scratch, f);
    int64_t count = 0;
    tir_foreach_inst(inst, f)
        r.has_slots |= inst->op == TIR_OP_COPY_ASYNC;
    while (store && !count && r.store_count < MOST_STORES) {
        r.stores[r.store_count++] = store;
        count = rows_of_part(&r);
        store = store_before(store);
    }
    if (!count || !find(&r, count))
        return false;
    build(&r);
    remove_whole(&r);
    return true;
}
