// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pass tensor_memory: a product along K accumulates in tensor memory, in a kernel of three roles.
//
//     tiles (m, n) in (M by 128, N by 128) {
//         let acc: f32[128, 128] = for k: i64 in range(0, K, 64) carry (s: f32[128, 128] = 0) {
//             let a: bf16[128, 64] = load(A[m:+128, k:+64]);  ...
//             yield dot(a, b, s);
//         }
//         store(D[m:+128, n:+128], cast(acc));
//     }
// becomes what examples/blackwell_ladder/6_specialized.tir has by hand:
//     role store warps(4)    waits for the sums of a tile, loads them, does what follows the loop
//     role load warps(1)     starts tensor copies of both operands into a ring of slots
//     role multiply warps(1) starts products, whose commits free the slots, and tells of the sums
//
// There are two accumulators: while one is stored, the next tile's products go into the other.
//
// What it takes: a target with tcgen05; one tiles loop, and in it one loop along K that does no
// more than load two tiles and multiply them; sums of 128 rows and up to 256 columns that begin
// with 0; operands that tensor copies can fetch. Any other kernel stays as it is, with a line in
// the receipt if it has a product. From here on the kernel orders its own memory (decision 17):
// sync_check proves what this pass writes.

#include "base/bitset.h"
#include "base/map.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/product.h"
#include "pass/pass.h"
#include "pass/receipt.h"

enum {
    SUMS = 2, // accumulators
    WARPGROUP = 4,
    DEFAULT_STAGES = 4,
    TMA_ROW = 16 // bytes
};

struct operand { // A or B
    struct tir_inst *load, *permute;
    struct tir_value *ring; // its slots
};

struct plan {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_types *types;
    struct tir_inst *tiles, *loop, *dot;
    struct operand operands[2];
    int64_t stages;
    uint32_t store_warps;
    struct bitset computable; // values that every role can compute for itself, by id
    const struct tir_type *i32, *boolean;
    struct tir_value *full, *empty, *done, *free, *acc;
};

// What it takes.

static bool is_scalar_arithmetic(const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_PURE) && !tir_has_trait(inst, TIR_THREAD) &&
           !inst->region_count && inst->result_count == 1 &&
           tir_type_is_scalar(inst->results[0]->type);
}

// A scalar loaded from a tensor that the kernel does not write.
static bool is_scalar_load(const struct plan *p, const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD && tir_type_is_scalar(inst->results[0]->type) &&
           tir_is_only_read(p->f, tir_ref_base(inst));
}

// Does each role get the value from before the roles, or compute it for itself?
static bool is_computable(const struct plan *p, const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST || !tir_is_made_in(p->tiles, v) ||
           bitset_has(&p->computable, v->id);
}

static bool is_copied(const struct plan *p, const struct tir_inst *inst)
{
    return inst->result_count == 1 && bitset_has(&p->computable, inst->results[0]->id);
}

static void find_computable(struct plan *p, const struct tir_block *block,
                            const struct tir_inst *end)
{
    for (const struct tir_inst *inst = block->first; inst != end; inst = inst->next) {
        bool fits = is_scalar_arithmetic(inst) || is_scalar_load(p, inst);
        for (uint32_t i = 0; fits && i < inst->operand_count; i++)
            fits = !inst->operands[i] || is_computable(p, inst->operands[i]);
        if (fits)
            bitset_insert(&p->computable, inst->results[0]->id);
    }
}

static const char *take_operand(struct plan *p, struct operand *o, struct tir_value *v)
{
    struct tir_inst *def = v->def;
    if (def && def->op == TIR_OP_PERMUTE) {
        o->permute = def;
        def = def->operands[0]->def;
    }
    if (!def || def->op != TIR_OP_LOAD || def->block != p->loop->regions[0])
        return "an operand is not loaded as it is";
    o->load = def;
    const struct tir_value *tensor = tir_ref_base(def);
    const struct tir_type *t = def->results[0]->type;
    const struct tir_attr *box = tir_attr_find(def, TIR_ATTR_box);
    const struct tir_value *pad = def->operands[TIR_LOAD_PAD];
    if (def->operands[TIR_LOAD_MASK] || (pad && (pad->kind != TIR_VALUE_CONST || pad->constant.i)))
        return "an operand has a mask or a pad";
    if (tensor->type->space != TIR_SPACE_GLOBAL || !tir_param_of(p->f, tensor))
        return "an operand is no tensor";
    if (tir_tensor_alignment(p->f, tensor) < TMA_ROW)
        return "the rows of an operand are not known to be aligned to 16 bytes";
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0 || box->list[d] > TIR_TMA_MAX_BOX)
            return "a tensor copy fetches no such part";
    for (uint32_t d = 0; d < box->list_count; d++)
        if (!is_computable(p, tir_ref_indices(def)[d]))
            return "where an operand begins depends on more than scalars";
    const int64_t row = t->shape[1] * tir_elems[t->elem].bits / 8;
    const bool k_last = (o->permute != NULL) == (o == &p->operands[TIR_DOT_B]);
    if (row % 32 || (!k_last && (row % 128 || tir_elems[t->elem].bits != 16)))
        return "an operand has no descriptor";
    return NULL;
}

// The loop does nothing but load and multiply.
static const char *take_loop(struct plan *p)
{
    const struct tir_block *body = p->loop->regions[0];
    const struct tir_inst *yield = tir_yield_of(body);
    struct tir_inst *dot = p->loop->result_count == 1 ? yield->operands[0]->def : NULL;
    if (!dot || dot->op != TIR_OP_DOT || dot->block != body ||
        dot->operands[TIR_DOT_ACC] != body->args[1])
        return "the loop carries more than the sums of one product";
    p->dot = dot;
    for (uint32_t i = 0; i < TIR_FOR_INIT; i++)
        if (!is_computable(p, p->loop->operands[i]))
            return "the bounds of its loop depend on more than scalars";
    const struct tir_value *init = p->loop->operands[TIR_FOR_INIT];
    if (init->kind != TIR_VALUE_CONST || init->constant.i)
        return "the sums do not begin with 0";
    for (uint32_t i = 0; i < 2; i++) {
        const char *why = take_operand(p, &p->operands[i], dot->operands[i]);
        if (why)
            return why;
    }
    for (const struct tir_inst *inst = body->first; inst; inst = inst->next)
        if (inst != dot && inst != yield && inst != p->operands[0].load &&
            inst != p->operands[1].load && inst != p->operands[0].permute &&
            inst != p->operands[1].permute && !is_copied(p, inst))
            return "the loop does more than load and multiply";
    return NULL;
}

// What follows the loop may not order memory, nor load what it stores.
static const char *take_rest(const struct plan *p)
{
    const struct tir_func *f = p->f;
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < f->param_count; i++) {
            const bool is_of =
                tir_ops[inst->op].has_ref && tir_ref_base(inst) == f->params[i].value;
            if (is_of && (inst->op == TIR_OP_ATOMIC ||
                          (inst->op == TIR_OP_LOAD && f->params[i].direction != TIR_IN)))
                return "a tensor is both read and written";
        }
    for (const struct tir_inst *inst = p->loop->prev; inst; inst = inst->prev)
        if (!tir_has_trait(inst, TIR_PURE) && !tir_has_trait(inst, TIR_READS))
            return "something is stored before the product";
    for (const struct tir_inst *inst = p->tiles->regions[0]->first; inst; inst = inst->next)
        if (inst != p->loop && inst->region_count && tir_is_loop(inst))
            return "there is another loop beside that of the product";
    return NULL;
}

static const char *take_sums(const struct plan *p)
{
    const struct tir_type *t = p->loop->results[0]->type;
    const struct tir_value *a = p->dot->operands[TIR_DOT_A], *b = p->dot->operands[TIR_DOT_B];
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_TCGEN05, a->type->elem, t->elem);
    if (!product || a->type->elem != b->type->elem)
        return "it has no such element types";
    if (t->shape[0] != TIR_TCGEN05_ROWS)
        return "the sums do not have 128 rows";
    if (t->shape[1] % TIR_TCGEN05_COLUMNS || t->shape[1] > TIR_TCGEN05_MOST_COLUMNS)
        return "the sums do not have 16 to 256 columns, in steps of 16";
    return a->type->shape[1] % product->depth ? "K is no multiple of 32 bytes" : NULL;
}

static int64_t slot_bytes(const struct plan *p)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < 2; i++)
        bytes += tir_type_bytes(p->operands[i].load->results[0]->type);
    return bytes;
}

// As many slots as the loop asks for, if there is room beside a tile of sums.
static const char *take_stages(struct plan *p)
{
    const int64_t left = p->cx->target->shared_per_cta - TIR_BUDGET_MBARRIER_BYTES -
                         tir_type_bytes(p->loop->results[0]->type);
    p->stages = tir_attr_int(p->loop, TIR_ATTR_stages, DEFAULT_STAGES);
    p->stages = TIR_MIN(p->stages, left / slot_bytes(p));
    // A thread has at most 128 of the sums.
    p->store_warps = p->loop->results[0]->type->shape[1] > 128 ? 2 * WARPGROUP : WARPGROUP;
    return p->stages < 1 ? "its operands do not fit shared memory" : NULL;
}

static struct tir_inst *only_tiles(const struct tir_func *f)
{
    struct tir_inst *tiles = NULL;
    for (struct tir_inst *inst = f->body->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_TILES && tiles)
            return NULL;
        if (inst->op == TIR_OP_TILES)
            tiles = inst;
        else if (!is_scalar_arithmetic(inst) && inst->op != TIR_OP_ASSUME)
            return NULL;
    }
    return tiles;
}

static struct tir_inst *loop_of_product(const struct tir_inst *tiles)
{
    for (struct tir_inst *inst = tiles->regions[0]->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_FOR)
            for (const struct tir_inst *in = inst->regions[0]->first; in; in = in->next)
                if (in->op == TIR_OP_DOT)
                    return inst;
    return NULL;
}

static const char *take(struct plan *p)
{
    const struct tir_func *f = p->f;
    if (f->threads || f->grid_count || f->cluster[0])
        return "the kernel states its threads or its grid";
    p->tiles = only_tiles(f);
    if (!p->tiles || p->tiles->result_count || tir_attr_find(p->tiles, TIR_ATTR_cluster))
        return "it is not in the one tiles loop of its kernel";
    p->loop = loop_of_product(p->tiles);
    if (!p->loop)
        return "it is not in a loop along K";
    p->computable = bitset_new(p->cx->scratch, f->value_count);
    const struct tir_block *const blocks[] = {p->tiles->regions[0], p->loop->regions[0]};
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t a = 0; a < blocks[i]->arg_count; a++)
            if (tir_type_is_scalar(blocks[i]->args[a]->type))
                bitset_insert(&p->computable, blocks[i]->args[a]->id);
        find_computable(p, blocks[i], i ? NULL : p->loop);
    }
    const char *why = take_loop(p);
    why = why ? why : take_rest(p);
    why = why ? why : take_sums(p);
    return why ? why : take_stages(p);
}

// Small things to build.

static struct tir_value *constant(struct plan *p, int32_t v)
{
    return tir_const_i32(p->f, v);
}

static struct tir_inst *plain(struct tir_builder *b, enum tir_op op,
                              struct tir_value *const *operands, uint32_t count)
{
    return tir_build(b, op, operands, count, NULL, 0, 0);
}

static void fence(struct tir_builder *b, enum tir_word of)
{
    tir_set_word(b->f, plain(b, TIR_OP_FENCE, NULL, 0), TIR_ATTR_of, of);
}

// Slot `slot` of a buffer, whose dimension 0 is the slots.
static struct tir_value *slot_of(struct tir_builder *b, struct tir_value *buffer,
                                 struct tir_value *slot)
{
    const struct tir_type *whole = buffer->type;
    struct tir_type t = {.elem = whole->elem, .space = whole->space, .rank = whole->rank - 1};
    struct tir_value *operands[1 + TIR_MAX_RANK] = {buffer, slot};
    int64_t box[TIR_MAX_RANK] = {0};
    for (uint32_t d = 1; d < whole->rank; d++) {
        t.shape[d - 1] = box[d] = whole->shape[d];
        operands[1 + d] = tir_const_index(b->f, 0);
    }
    const struct tir_type *type = tir_type_get(b->f->module->types, &t);
    struct tir_inst *view = tir_build(b, TIR_OP_VIEW, operands, 1 + whole->rank, &type, 1, 0);
    tir_set_list(b->f, view, TIR_ATTR_box, box, whole->rank);
    return tir_result(view);
}

static void wait_for(struct tir_builder *b, struct tir_value *bars, struct tir_value *const *at)
{
    struct tir_value *operands[] = {slot_of(b, bars, at[0]), NULL, at[1]};
    plain(b, TIR_OP_WAIT, operands, 3);
}

static void commit_to(struct tir_builder *b, struct tir_value *bars, struct tir_value *slot)
{
    plain(b, TIR_OP_COMMIT, (struct tir_value *[]){slot_of(b, bars, slot), NULL}, 2);
}

// An if without results; its block is open, and closed by end_if.
static struct tir_builder begin_if(struct tir_builder *b, struct tir_value *condition)
{
    struct tir_inst *branch = tir_build(b, TIR_OP_IF, &condition, 1, NULL, 0, 2);
    struct tir_builder no = tir_builder_at_end(b->f, branch->regions[1]);
    tir_build_yield(&no, NULL, 0);
    struct tir_builder in = tir_builder_at_end(b->f, branch->regions[0]);
    in.span = b->span;
    return in;
}

static void end_if(struct tir_builder *in)
{
    tir_build_yield(in, NULL, 0);
}

// The slot after (at[0], at[1]) and its parity.
static void step_on(struct plan *p, struct tir_builder *b, int64_t slots, struct tir_value *at[2])
{
    struct tir_value *last = constant(p, (int32_t)slots - 1);
    struct tir_value *wraps = tir_binary(b, TIR_OP_EQ, at[0], last);
    struct tir_value *next = tir_binary(b, TIR_OP_ADD, at[0], constant(p, 1));
    struct tir_value *choice[] = {wraps, constant(p, 0), next};
    at[0] = tir_build1(b, TIR_OP_WHERE, p->i32, choice, 3);
    at[1] = tir_binary(b, TIR_OP_XOR, at[1], tir_build1(b, TIR_OP_CAST, p->i32, &wraps, 1));
}

static struct tir_value *elect(struct plan *p, struct tir_builder *b)
{
    return tir_build1(b, TIR_OP_ELECT, p->boolean, NULL, 0);
}

// Before the roles.

static struct tir_value *alloc(struct plan *p, struct tir_builder *b, const struct tir_type *type,
                               const char *name)
{
    struct tir_value *v = tir_build1(b, TIR_OP_ALLOC, type, NULL, 0);
    v->name = tir_intern_cstr(p->f->module->names, name);
    if (type->elem != TIR_MBARRIER)
        tir_set_int(p->f, v->def, TIR_ATTR_by_hand, 1);
    return v;
}

static void build_rings(struct plan *p, struct tir_builder *b)
{
    static const char *const names[] = {"A_slots", "B_slots"};
    for (uint32_t i = 0; i < 2; i++) {
        const struct tir_type *tile = p->operands[i].load->results[0]->type;
        const uint32_t bits = tir_elems[tile->elem].bits;
        const int64_t row = tile->shape[1] * bits / 8;
        struct tir_type t = {.elem = tile->elem,
                             .space = TIR_SPACE_SHARED,
                             .rank = 3,
                             .shape = {p->stages, tile->shape[0], tile->shape[1]}};
        t.layout = tir_layout_memory(p->types, 3, t.shape, bits,
                                     row % 128 == 0  ? 128
                                     : row % 64 == 0 ? 64
                                                     : 32);
        p->operands[i].ring = alloc(p, b, tir_type_get(p->types, &t), names[i]);
    }
}

static void build_barriers(struct plan *p, struct tir_builder *b)
{
    const struct {
        struct tir_value **to;
        const char *name;
        int64_t count, arrivals;
    } rows[] = {{&p->full, "full", p->stages, 1},
                {&p->empty, "empty", p->stages, 1},
                {&p->done, "done", SUMS, 1},
                {&p->free, "free", SUMS, p->store_warps}};
    struct tir_type t = {.elem = TIR_MBARRIER, .space = TIR_SPACE_SHARED, .rank = 1};
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++) {
        t.shape[0] = rows[i].count;
        *rows[i].to = alloc(p, b, tir_type_get(p->types, &t), rows[i].name);
    }
    struct tir_value *tid = tir_build1(b, TIR_OP_TID, p->i32, NULL, 0);
    struct tir_builder in = begin_if(b, tir_binary(b, TIR_OP_EQ, tid, constant(p, 0)));
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++)
        tir_set_int(p->f,
                    plain(&in, TIR_OP_MBARRIER_INIT, (struct tir_value *[]){*rows[i].to, NULL}, 2),
                    TIR_ATTR_arrivals, rows[i].arrivals);
    fence(&in, TIR_WORD_of_mbarrier_init);
    end_if(&in);
}

static void build_sums(struct plan *p, struct tir_builder *b)
{
    const struct tir_type *sums = p->loop->results[0]->type;
    struct tir_type slot = {.elem = TIR_I32, .space = TIR_SPACE_SHARED, .rank = 1, .shape = {1}};
    struct tir_type t = {.elem = sums->elem,
                         .space = TIR_SPACE_TMEM,
                         .rank = 3,
                         .shape = {SUMS, sums->shape[0], sums->shape[1]}};
    struct tir_value *at = alloc(p, b, tir_type_get(p->types, &slot), "tmem_address");
    struct tir_value *warp = tir_build1(b, TIR_OP_WARPID, p->i32, NULL, 0);
    struct tir_builder in = begin_if(b, tir_binary(b, TIR_OP_EQ, warp, constant(p, 0)));
    int64_t columns = 32;
    while (columns < tir_tmem_columns(&t))
        columns *= 2;
    tir_set_int(p->f, plain(&in, TIR_OP_TMEM_ALLOC, &at, 1), TIR_ATTR_columns, columns);
    end_if(&in);
    plain(b, TIR_OP_BAR_SYNC, NULL, 0); // for the mbarriers too
    struct tir_value *operands[] = {
        [TIR_LOAD_PAD] = NULL, [TIR_LOAD_MASK] = NULL, at, tir_const_index(p->f, 0)};
    struct tir_inst *load = tir_build(b, TIR_OP_LOAD, operands, 4, &p->i32, 1, 0);
    tir_set_list(p->f, load, TIR_ATTR_box, (int64_t[]){0}, 1);
    struct tir_value *base = tir_result(load);
    p->acc = tir_build1(b, TIR_OP_TMEM_BUFFER, tir_type_get(p->types, &t), &base, 1);
    p->acc->name = tir_intern_cstr(p->f->module->names, "sums");
}

// Roles.

struct role {
    struct plan *p;
    struct tir_inst *tiles, *loop;
    struct tir_builder in; // where the tiles loop is built
    struct tir_map map;    // values of the kernel as it was to those of this role
};

static struct tir_value *of(const struct role *r, struct tir_value *v)
{
    struct tir_value *mine = tir_map_get(&r->map, tir_map_key(v));
    return mine ? mine : v;
}

// Opens a role and its tiles loop, which carries `count` pairs of a slot and its parity: 0 and
// phases[i] at first. Gives them as they are in a tile.
static struct tir_builder begin_role(struct role *r, struct plan *p, struct tir_builder *b,
                                     const char *name, uint32_t first, uint32_t warps,
                                     const int32_t *phases, uint32_t count, struct tir_value **at)
{
    const uint32_t extents = p->tiles->operand_count;
    struct tir_value *operands[TIR_MAX_RANK + 4];
    const struct tir_type *types[4] = {p->i32, p->i32, p->i32, p->i32};
    struct tir_inst *role = tir_build(b, TIR_OP_ROLE, NULL, 0, NULL, 0, 1);
    tir_set_text(p->f, role, TIR_ATTR_name, tir_str_of(name));
    tir_set_int(p->f, role, TIR_ATTR_first, first);
    tir_set_int(p->f, role, TIR_ATTR_warps, warps);
    *r = (struct role){.p = p, .in = tir_builder_at_end(p->f, role->regions[0])};
    r->in.span = b->span;
    tir_map_init(&r->map, p->cx->scratch);
    memcpy(operands, p->tiles->operands, extents * sizeof(*operands));
    for (uint32_t i = 0; i < count; i++) {
        operands[extents + 2 * i] = constant(p, 0);
        operands[extents + 2 * i + 1] = constant(p, phases[i]);
    }
    r->tiles = tir_build(&r->in, TIR_OP_TILES, operands, extents + 2 * count, types, 2 * count, 1);
    const struct tir_attr *by = tir_attr_find(p->tiles, TIR_ATTR_by);
    tir_set_list(p->f, r->tiles, TIR_ATTR_by, by->list, by->list_count);
    const struct tir_attr *order = tir_attr_find(p->tiles, TIR_ATTR_order);
    if (order)
        tir_set_word(p->f, r->tiles, TIR_ATTR_order, (enum tir_word)order->number);
    const struct tir_attr *group = tir_attr_find(p->tiles, TIR_ATTR_group);
    if (group)
        tir_set_int(p->f, r->tiles, TIR_ATTR_group, group->number);
    tir_set_int(p->f, r->tiles, TIR_ATTR_persistent, 1);
    struct tir_block *body = r->tiles->regions[0];
    for (uint32_t i = 0; i < extents; i++) {
        const struct tir_value *old = p->tiles->regions[0]->args[i];
        tir_map_set(&r->map, tir_map_key(old), tir_block_add_arg(p->f, body, old->type, old->name));
    }
    for (uint32_t i = 0; i < 2 * count; i++)
        at[i] = tir_block_add_arg(p->f, body, p->i32, NULL);
    struct tir_builder in = tir_builder_at_end(p->f, body);
    in.span = p->tiles->span;
    return in;
}

static void end_role(struct role *r, struct tir_builder *in, struct tir_value *const *at,
                     uint32_t count)
{
    tir_build_yield(in, at, 2 * count);
    tir_build_yield(&r->in, NULL, 0);
}

// Opens the loop along K of a role, which carries one pair.
static struct tir_builder begin_loop(struct role *r, struct tir_builder *b, struct tir_value *at[2])
{
    const struct plan *p = r->p;
    const struct tir_block *old = p->loop->regions[0];
    const struct tir_type *types[] = {p->i32, p->i32};
    for (const struct tir_inst *inst = p->loop->block->first; inst != p->loop; inst = inst->next)
        if (is_copied(p, inst))
            tir_clone_inst(b, inst, &r->map);
    struct tir_value *operands[TIR_FOR_INIT + 2] = {
        of(r, p->loop->operands[TIR_FOR_BEGIN]), of(r, p->loop->operands[TIR_FOR_END]),
        of(r, p->loop->operands[TIR_FOR_STEP]), at[0], at[1]};
    b->span = p->loop->span;
    r->loop = tir_build(b, TIR_OP_FOR, operands, TIR_FOR_INIT + 2, types, 2, 1);
    struct tir_block *body = r->loop->regions[0];
    tir_map_set(&r->map, tir_map_key(old->args[0]),
                tir_block_add_arg(p->f, body, old->args[0]->type, old->args[0]->name));
    at[0] = tir_block_add_arg(p->f, body, p->i32, NULL);
    at[1] = tir_block_add_arg(p->f, body, p->i32, NULL);
    struct tir_builder in = tir_builder_at_end(p->f, body);
    in.span = p->dot->span;
    return in;
}

static void end_loop(struct role *r, struct tir_builder *in, struct tir_value *at[2])
{
    step_on(r->p, in, r->p->stages, at);
    tir_build_yield(in, at, 2);
    at[0] = r->loop->results[0];
    at[1] = r->loop->results[1];
}

static void copy_operand(struct role *r, struct tir_builder *b, const struct operand *o,
                         struct tir_value *bar, struct tir_value *slot)
{
    const struct tir_attr *box = tir_attr_find(o->load, TIR_ATTR_box);
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {
        [TIR_COPY_TO] = slot_of(b, o->ring, slot), [TIR_COPY_MBAR] = bar};
    operands[TIR_COPY_FIXED] = tir_ref_base(o->load);
    for (uint32_t d = 0; d < box->list_count; d++)
        operands[TIR_COPY_FIXED + 1 + d] = of(r, tir_ref_indices(o->load)[d]);
    struct tir_inst *copy =
        plain(b, TIR_OP_COPY_ASYNC, operands, TIR_COPY_FIXED + 1 + box->list_count);
    copy->span = o->load->span;
    tir_set_list(r->p->f, copy, TIR_ATTR_box, box->list, box->list_count);
    tir_set_word(r->p->f, copy, TIR_ATTR_engine, TIR_WORD_engine_tma);
}

static void build_load_role(struct plan *p, struct tir_builder *b)
{
    struct role r;
    struct tir_value *at[2];
    struct tir_builder in = begin_role(&r, p, b, "load", p->store_warps, 1, (int32_t[]){1}, 1, at);
    struct tir_builder loop = begin_loop(&r, &in, at);
    for (const struct tir_inst *inst = p->loop->regions[0]->first; inst; inst = inst->next)
        if (is_copied(p, inst))
            tir_clone_inst(&loop, inst, &r.map);
    wait_for(&loop, p->empty, at);
    struct tir_builder one = begin_if(&loop, elect(p, &loop));
    struct tir_value *bar = slot_of(&one, p->full, at[0]);
    tir_set_int(p->f, plain(&one, TIR_OP_ARRIVE, (struct tir_value *[]){bar, NULL, NULL}, 3),
                TIR_ATTR_bytes, slot_bytes(p));
    for (uint32_t i = 0; i < 2; i++)
        copy_operand(&r, &one, &p->operands[i], bar, at[0]);
    end_if(&one);
    end_loop(&r, &loop, at);
    end_role(&r, &in, at, 1);
}

static struct tir_value *factor(struct tir_builder *b, const struct operand *o,
                                struct tir_value *slot)
{
    struct tir_value *v = slot_of(b, o->ring, slot);
    if (!o->permute)
        return v;
    struct tir_type t = *v->type;
    t.shape[0] = v->type->shape[1];
    t.shape[1] = v->type->shape[0];
    struct tir_value *turned =
        tir_build1(b, TIR_OP_PERMUTE, tir_type_get(b->f->module->types, &t), &v, 1);
    tir_set_list(b->f, turned->def, TIR_ATTR_permutation, (int64_t[]){1, 0}, 2);
    return turned;
}

static void build_multiply_role(struct plan *p, struct tir_builder *b)
{
    struct role r;
    struct tir_value *at[4]; // of the slots, of the sums
    struct tir_builder in =
        begin_role(&r, p, b, "multiply", p->store_warps + 1, 1, (int32_t[]){0, 1}, 2, at);
    wait_for(&in, p->free, at + 2);
    fence(&in, TIR_WORD_of_after_thread_sync);
    struct tir_builder loop = begin_loop(&r, &in, at);
    wait_for(&loop, p->full, at);
    struct tir_builder one = begin_if(&loop, elect(p, &loop));
    struct tir_value *k = of(&r, p->loop->regions[0]->args[0]);
    struct tir_value *operands[] = {
        [TIR_DOT_A] = factor(&one, &p->operands[0], at[0]),
        [TIR_DOT_B] = factor(&one, &p->operands[1], at[0]),
        [TIR_DOT_ACC] = slot_of(&one, p->acc, at[2]),
        [TIR_GEMM_ACCUMULATE] =
            tir_binary(&one, TIR_OP_GT, k, of(&r, p->loop->operands[TIR_FOR_BEGIN]))};
    plain(&one, TIR_OP_GEMM_TMEM, operands, 4);
    commit_to(&one, p->empty, at[0]);
    end_if(&one);
    end_loop(&r, &loop, at);
    struct tir_builder last = begin_if(&in, elect(p, &in));
    commit_to(&last, p->done, at[2]);
    end_if(&last);
    step_on(p, &in, SUMS, at + 2);
    end_role(&r, &in, at, 2);
}

// The sums of a tile, or zeros if the loop has no round.
static struct tir_value *load_sums(struct role *r, struct tir_builder *b, struct tir_value *slot)
{
    struct plan *p = r->p;
    const struct tir_type *type = p->loop->results[0]->type;
    struct tir_value *some = tir_binary(b, TIR_OP_LT, of(r, p->loop->operands[TIR_FOR_BEGIN]),
                                        of(r, p->loop->operands[TIR_FOR_END]));
    struct tir_inst *branch = tir_build(b, TIR_OP_IF, &some, 1, &type, 1, 2);
    struct tir_builder yes = tir_builder_at_end(p->f, branch->regions[0]);
    struct tir_builder no = tir_builder_at_end(p->f, branch->regions[1]);
    yes.span = no.span = b->span;
    struct tir_value *operands[] = {[TIR_LOAD_PAD] = NULL,    [TIR_LOAD_MASK] = NULL,  p->acc, slot,
                                    tir_const_index(p->f, 0), tir_const_index(p->f, 0)};
    struct tir_inst *load = tir_build(&yes, TIR_OP_LOAD, operands, 6, &type, 1, 0);
    tir_set_list(p->f, load, TIR_ATTR_box, (int64_t[]){0, type->shape[0], type->shape[1]}, 3);
    tir_build_yield(&yes, load->results, 1);
    struct tir_value *zero = p->loop->operands[TIR_FOR_INIT];
    tir_build_yield(&no, &zero, 1);
    return tir_result(branch);
}

static void build_store_role(struct plan *p, struct tir_builder *b)
{
    struct role r;
    struct tir_value *at[2];
    struct tir_builder in = begin_role(&r, p, b, "store", 0, p->store_warps, (int32_t[]){0}, 1, at);
    const struct tir_inst *inst = p->tiles->regions[0]->first;
    for (; inst != p->loop; inst = inst->next)
        tir_clone_inst(&in, inst, &r.map);
    in.span = p->loop->span;
    wait_for(&in, p->done, at);
    fence(&in, TIR_WORD_of_after_thread_sync);
    tir_map_set(&r.map, tir_map_key(p->loop->results[0]), load_sums(&r, &in, at[0]));
    fence(&in, TIR_WORD_of_before_thread_sync);
    struct tir_value *lane = tir_build1(&in, TIR_OP_LANEID, p->i32, NULL, 0);
    struct tir_builder one = begin_if(&in, tir_binary(&in, TIR_OP_EQ, lane, constant(p, 0)));
    plain(&one, TIR_OP_ARRIVE, (struct tir_value *[]){slot_of(&one, p->free, at[0]), NULL, NULL},
          3);
    end_if(&one);
    for (inst = p->loop->next; inst && inst->op != TIR_OP_YIELD; inst = inst->next)
        tir_clone_inst(&in, inst, &r.map);
    step_on(p, &in, SUMS, at);
    end_role(&r, &in, at, 1);
}

static void rewrite(struct plan *p)
{
    struct tir_builder b = tir_builder_before(p->f, p->tiles);
    p->f->threads = 32 * (p->store_warps + 2);
    build_rings(p, &b);
    build_barriers(p, &b);
    build_sums(p, &b);
    build_store_role(p, &b);
    build_load_role(p, &b);
    build_multiply_role(p, &b);
    tir_receipt_add(p->cx, TIR_TOPIC_ROLE, p->tiles->span,
                    "roles: %u warps store, 1 loads, 1 multiplies; %d sums in tensor memory",
                    p->store_warps, SUMS);
    tir_receipt_add(p->cx, TIR_TOPIC_LOOP, p->loop->span, "loop: %lld stages of %lld bytes",
                    (long long)p->stages, (long long)slot_bytes(p));
    tir_remove(p->tiles);
}

enum tir_change tir_pass_tensor_memory(struct tir_func *f, struct tir_pass_cx *cx)
{
    const struct tir_inst *dot = NULL;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_DOT && !dot)
            dot = inst;
    if (!dot || !(cx->target->features & TIR_HAS_TCGEN05))
        return TIR_UNCHANGED;
    struct plan p = {.f = f,
                     .cx = cx,
                     .types = f->module->types,
                     .i32 = tir_type_scalar(f->module->types, TIR_I32),
                     .boolean = tir_type_scalar(f->module->types, TIR_BOOL)};
    const char *why = take(&p);
    if (why) {
        tir_receipt_refuse(cx, TIR_TOPIC_DOT, TIR_WISH_NONE, dot->span, "dot: no tcgen05: %s", why);
        return TIR_UNCHANGED;
    }
    rewrite(&p);
    return TIR_CHANGED;
}
