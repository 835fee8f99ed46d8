// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two tiles loops become one where clusters of CTAs can exchange what the first hands to the
// second.
//
//     scratch P: f32[4, T, 64, 128];
//     for (m, n, z) in tiles(M by 64, N by 128, 4, cluster = (1, 1, 4)) {
//         let x = ...;
//         P[z, t, :, :] = x;
//     }
//     for (m, n, z) in tiles(M by 64, N by 128, 4, cluster = (1, 1, 4)) {
//         let all = P[0, t, :, z * 32 :+ 32] + P[1, t, :, z * 32 :+ 32] + ...;
//         D[m:+64, n + z * 32 :+ 32] = all;
//     }
// becomes, in a kernel with clusters of 4 CTAs, which share a tile,
//     for (m, n) in tiles(M by 64, N by 128) {
//         let z = cta_rank();
//         shared parts: f32[4, 64, 32];
//         cluster_arrive();
//         let x = ...;
//         cluster_wait();                                    // all CTAs of the cluster are there
//         store(remote(parts, 0)[z], extract(x, [0, 0]));
//         store(remote(parts, 1)[z], extract(x, [0, 32]));
//         ...
//         cluster_sync();
//         let all = load(parts[0]) + load(parts[1]) + ...;
//         D[m:+64, n + z * 32 :+ 32] = all;
//     }
//
// So there is one launch, and what is exchanged never leaves the multiprocessors. The order of
// additions is that of the program. Both loops ask for clusters that have all of their last
// dimension, and the second reads of scratch memory only what the same cluster has stored. Anything
// else stays two launches, and the receipt says why. So it does where products do not run on
// warpgroups: nothing was measured there.

#include "compile/compile.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"

#define MOST_CTAS    8 // of a cluster that every device has room for
#define MOST_COMPARE 8 // operations deep, of indices

struct join {
    struct tir_arena *arena;
    const struct tir_target *target;
    struct tir_func *f;
    struct tir_inst *first, *second; // the loops
    struct tir_inst *store;          // to the scratch tensor
    struct tir_value *scratch;       // the tensor
    VEC(struct tir_inst *) loads;    // of it
    uint32_t rank, leading;          // of the loops; single indices of the tensor, z among them
    uint32_t along;                  // the dimension of the tile that is shared out
    int64_t ctas, share;             // elements of it for each CTA
    const char *refusal;
    struct tir_span refused_at;
};

static bool refuse(struct join *j, const struct tir_inst *at, const char *why)
{
    if (!j->refusal) {
        j->refusal = why;
        j->refused_at = at->span;
    }
    return false;
}

// Is it the same for both loops? The number of a CTA is not.
static bool is_same(const struct join *j, const struct tir_value *a, const struct tir_value *b,
                    uint32_t depth)
{
    int64_t x, y;
    if (a == b || (tir_is_const_int(a, &x) && tir_is_const_int(b, &y) && x == y))
        return true;
    if (a->kind == TIR_VALUE_ARG && b->kind == TIR_VALUE_ARG)
        return a->block == j->first->regions[0] && b->block == j->second->regions[0] &&
               a->index == b->index && a->index + 1 < j->rank;
    if (depth == MOST_COMPARE || !a->def || !b->def || a->def->op != b->def->op ||
        a->type != b->type || !tir_has_trait(a->def, TIR_PURE) || a->def->attr_count ||
        b->def->attr_count || a->def->region_count ||
        a->def->operand_count != b->def->operand_count)
        return false;
    for (uint32_t i = 0; i < a->def->operand_count; i++)
        if (!is_same(j, a->def->operands[i], b->def->operands[i], depth + 1))
            return false;
    return true;
}

// The loops have the same tiles, of which a cluster has all along the last dimension.
static bool loops_fit(struct join *j)
{
    const struct tir_inst *a = j->first, *b = j->second;
    const struct tir_attr *size = tir_attr_find(a, TIR_ATTR_cluster);
    int64_t extent;
    j->rank = a->operand_count;
    if (!size || !tir_attr_find(b, TIR_ATTR_cluster))
        return false; // nobody asks
    j->ctas = size->list[j->rank - 1];
    for (uint32_t d = 0; d + 1 < j->rank; d++)
        if (size->list[d] != 1)
            return false; // neighbours that share copies
    if (!tir_same_list(a, b, TIR_ATTR_cluster) || !tir_same_list(a, b, TIR_ATTR_by) ||
        b->operand_count != j->rank)
        return refuse(j, b, "the loops have other tiles");
    for (uint32_t d = 0; d < j->rank; d++)
        if (!is_same(j, a->operands[d], b->operands[d], 0))
            return refuse(j, b, "the loops have other extents");
    if (j->rank < 2 || !tir_is_const_int(a->operands[j->rank - 1], &extent) || extent != j->ctas ||
        tir_attr_find(a, TIR_ATTR_by)->list[j->rank - 1] != 1)
        return refuse(j, a, "a cluster has not all of the last dimension");
    if (j->ctas > MOST_CTAS)
        return refuse(j, a, "not every device has room for so large a cluster");
    if (tir_attr_find(a, TIR_ATTR_persistent) || tir_attr_find(b, TIR_ATTR_persistent))
        return refuse(j, a, "the loops are persistent");
    if (tir_attr_int(b, TIR_ATTR_store_role, 0))
        return refuse(j, b, "the second loop has a role that stores");
    return true;
}

// What the first loop does besides one store, and what neither may ask.
static bool effects_fit(struct join *j)
{
    tir_foreach_inst(inst, j->f) {
        const bool first = tir_block_contains(j->first->regions[0], inst);
        if (!first && !tir_block_contains(j->second->regions[0], inst))
            continue;
        if (tir_has_trait(inst, TIR_SYNC) || inst->op == TIR_OP_CTA_ID ||
            inst->op == TIR_OP_NUM_CTAS || inst->op == TIR_OP_PTX)
            return refuse(j, inst, "the program speaks of its CTAs");
        if (!first || !tir_has_trait(inst, TIR_WRITES))
            continue;
        if (inst->op != TIR_OP_STORE || j->store || inst->block != j->first->regions[0])
            return refuse(j, inst, "the first loop does more than to store one tile");
        j->store = inst;
    }
    return j->store ? true : refuse(j, j->first, "the first loop stores nothing");
}

// A slice of single indices, then tiles.
static bool is_plain(const struct join *j, const struct tir_inst *access)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    const uint32_t rank = j->scratch->type->rank;
    bool fits = box && box->list_count == rank && access->attr_count == 1;
    for (uint32_t i = 0; i < tir_fixed_count(access); i++)
        fits &= !access->operands[i] || (access->op == TIR_OP_STORE && i == TIR_STORE_VALUE);
    for (uint32_t d = 0; fits && d < rank; d++)
        fits = d < j->leading ? box->list[d] == 0 : box->list[d] > 0;
    return fits;
}

// Is v the number of a tile along a dimension of the loop, of which there are so many?
static bool is_tile_number(const struct join *j, const struct tir_value *v,
                           const struct tir_value *count)
{
    const struct tir_attr *by = tir_attr_find(j->first, TIR_ATTR_by);
    for (uint32_t d = 0; d + 1 < j->rank; d++) {
        const struct tir_value *arg = j->first->regions[0]->args[d];
        const struct tir_value *extent = j->first->operands[d], *of = count;
        int64_t x, y;
        if (by->list[d] != 1) {
            if (!v->def || v->def->op != TIR_OP_DIV || v->def->operands[0] != arg ||
                !tir_is_const_int(v->def->operands[1], &x) || x != by->list[d] || !count->def ||
                count->def->op != TIR_OP_CEILDIV ||
                !tir_is_const_int(count->def->operands[1], &y) || x != y)
                continue;
            of = count->def->operands[0];
        } else if (v != arg) {
            continue;
        }
        if (is_same(j, extent, of, 0))
            return true;
    }
    return false;
}

// Is v inside of the extent, as a constant, as the number of a tile, or in x * w + y, of which
// there are p * w?
static bool is_inside(const struct join *j, const struct tir_value *v,
                      const struct tir_value *extent, uint32_t depth)
{
    int64_t x, most;
    if (tir_is_const_int(v, &x) && tir_is_const_int(extent, &most))
        return x >= 0 && x < most;
    if (is_tile_number(j, v, extent))
        return true;
    if (depth == MOST_COMPARE || !v->def || v->def->op != TIR_OP_ADD || !extent->def ||
        extent->def->op != TIR_OP_MUL)
        return false;
    for (uint32_t i = 0; i < 8; i++) { // which operand is which
        const struct tir_value *product = v->def->operands[i & 1], *y = v->def->operands[!(i & 1)];
        if (!product->def || product->def->op != TIR_OP_MUL)
            continue;
        struct tir_value **of = product->def->operands, **all = extent->def->operands;
        const uint32_t k = i >> 1 & 1, m = i >> 2;
        if (is_same(j, of[!k], all[!m], 0) && is_inside(j, of[k], all[m], depth + 1) &&
            is_inside(j, y, all[!m], depth + 1))
            return true;
    }
    return false;
}

// P[z, t, 0:+64, 0:+128] of a tensor f32[4, T, 64, 128], with a t that is below T.
static bool store_fits(struct join *j)
{
    const struct tir_inst *store = j->store;
    j->scratch = tir_ref_base(store);
    const uint32_t s = tir_scratch_of(j->f, j->scratch);
    const struct tir_type *tile = store->operands[TIR_STORE_VALUE]->type;
    if (s == j->f->scratch_count || tile->rank != 2 || j->scratch->type->rank < 3)
        return refuse(j, store, "what the first loop stores is no tile of scratch memory");
    j->leading = j->scratch->type->rank - tile->rank;
    if (!is_plain(j, store) || tir_ref_indices(store)[0] != j->first->regions[0]->args[j->rank - 1])
        return refuse(j, store, "it is not stored by the number of the CTA and whole");
    for (uint32_t d = 0; d < j->scratch->type->rank; d++) {
        int64_t extent, start;
        const bool constant = tir_is_const_int(tir_scratch_extent(j->f, s, d), &extent);
        if (d == 0 && (!constant || extent != j->ctas))
            return refuse(j, store, "the scratch tensor has not as many parts as a cluster CTAs");
        if (d > 0 && d < j->leading &&
            !is_inside(j, tir_ref_indices(store)[d], tir_scratch_extent(j->f, s, d), 0))
            return refuse(j, store, "it may be stored outside of the scratch tensor");
        if (d >= j->leading && (!constant || extent != tile->shape[d - j->leading] ||
                                !tir_is_const_int(tir_ref_indices(store)[d], &start) || start))
            return refuse(j, store, "the scratch tensor has other tiles");
    }
    return true;
}

// z * share in the second loop.
static bool is_own_share(const struct join *j, const struct tir_value *v, int64_t share)
{
    const struct tir_value *z = j->second->regions[0]->args[j->rank - 1];
    int64_t by;
    if (share == 1)
        return v == z;
    if (!v->def || v->def->op != TIR_OP_MUL)
        return false;
    struct tir_value **of = v->def->operands;
    return (of[0] == z && tir_is_const_int(of[1], &by) && by == share) ||
           (of[1] == z && tir_is_const_int(of[0], &by) && by == share);
}

// P[1, t, 0:+64, z * 32 :+ 32]: a part of what the same cluster has stored.
static bool load_fits(struct join *j, struct tir_inst *load)
{
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    struct tir_value **at = tir_ref_indices(load), **stored = tir_ref_indices(j->store);
    int64_t part, start;
    uint32_t shares = 0;
    if (load->op != TIR_OP_LOAD || !is_plain(j, load))
        return refuse(j, load, "what the loops share is not loaded as tiles");
    if (!tir_is_const_int(at[0], &part) || part < 0 || part >= j->ctas)
        return refuse(j, load, "the number of a part is not known");
    for (uint32_t d = 1; d < j->leading; d++)
        if (!is_same(j, stored[d], at[d], 0))
            return refuse(j, load, "another cluster may have stored it");
    for (uint32_t d = 0; d < 2; d++) {
        const uint32_t of = j->leading + d;
        const int64_t whole = j->store->operands[TIR_STORE_VALUE]->type->shape[d];
        const int64_t share = whole / j->ctas;
        if (box->list[of] == whole && tir_is_const_int(at[of], &start) && start == 0)
            continue;
        if (whole % j->ctas || box->list[of] != share || !is_own_share(j, at[of], share) ||
            (j->share && (j->along != d || j->share != share)))
            return refuse(j, load, "CTAs do not take equal shares of a tile");
        j->along = d;
        j->share = share;
        shares++;
    }
    return shares == 1 ? true : refuse(j, load, "CTAs do not take shares of a tile");
}

static bool loads_fit(struct join *j)
{
    tir_foreach_inst(inst, j->f) {
        if (!tir_ops[inst->op].has_ref || tir_ref_base(inst) != j->scratch || inst == j->store)
            continue;
        if (!tir_is_inside(inst, j->second))
            return refuse(j, inst, "a third loop reads it");
        if (!load_fits(j, inst))
            return false;
        vec_push(j->arena, &j->loads, inst);
    }
    const struct tir_type *tile = j->store->operands[TIR_STORE_VALUE]->type;
    if (tir_type_bytes(tile) * 100 > j->target->shared_per_cta * TIR_BUDGET_JOINED_BYTES)
        return refuse(j, j->store, "the tile leaves too little shared memory to the stages");
    return j->loads.len ? true : refuse(j, j->second, "the second loop reads nothing of the first");
}

static bool is_input(const struct tir_func *f, const struct tir_value *tensor)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value == tensor)
            return f->params[i].direction == TIR_IN;
    return false;
}

// One cluster is in the second loop while another one is in the first.
static bool tensors_fit(struct join *j)
{
    for (uint32_t i = 0; i < j->f->body->arg_count; i++) {
        const struct tir_value *v = j->f->body->args[i];
        if (tir_type_is_buffer(v->type) && v != j->scratch && !is_input(j->f, v) &&
            tir_uses_value(j->first, v) && tir_uses_value(j->second, v))
            return refuse(j, j->second, "the first loop may read what the second one writes");
    }
    return true;
}

// Rewriting.

static void build(struct tir_builder *b, enum tir_op op)
{
    tir_build(b, op, NULL, 0, NULL, 0, 0);
}

static void drop_arg(struct tir_block *block, uint32_t at)
{
    block->arg_count--;
    for (uint32_t i = at; i < block->arg_count; i++) {
        block->args[i] = block->args[i + 1];
        block->args[i]->index = i;
    }
}

// The second loop without its last dimension, whose place is the CTA's rank.
static struct tir_value *narrow(struct join *j)
{
    struct tir_inst *tiles = j->second;
    struct tir_types *types = j->f->module->types;
    struct tir_block *body = tiles->regions[0];
    struct tir_value *z = body->args[j->rank - 1];
    int64_t by[TIR_MAX_RANK];
    memcpy(by, tir_attr_find(tiles, TIR_ATTR_by)->list, j->rank * sizeof(*by));
    struct tir_builder b = tir_builder_before(j->f, body->first);
    struct tir_value *rank =
        tir_build1(&b, TIR_OP_CTA_RANK, tir_type_scalar(types, TIR_I32), NULL, 0);
    struct tir_value *place = tir_build1(&b, TIR_OP_CAST, z->type, &rank, 1);
    place->name = z->name;
    tir_replace_uses(j->f, z, place);
    tir_replace_uses(j->f, j->first->regions[0]->args[j->rank - 1], place);
    for (uint32_t d = 0; d + 1 < j->rank; d++)
        tir_replace_uses(j->f, j->first->regions[0]->args[d], body->args[d]);
    drop_arg(body, j->rank - 1);
    tiles->operand_count--;
    tir_set_list(j->f, tiles, TIR_ATTR_by, by, j->rank - 1);
    tir_drop_attr(j->f, tiles, TIR_ATTR_cluster);
    return rank;
}

// The tile as products leave it: what is turned only then is exchanged as it was.
static struct tir_value *unturned(struct tir_value *x)
{
    return x->def && x->def->op == TIR_OP_PERMUTE ? x->def->operands[0] : x;
}

// The buffer of this CTA: a share of the tile from each of the cluster.
static struct tir_value *make_buffer(const struct join *j, struct tir_builder *b,
                                     const struct tir_type *share)
{
    struct tir_type type = {.elem = share->elem, .space = TIR_SPACE_SHARED, .rank = 3};
    type.shape[0] = j->ctas;
    type.shape[1] = share->shape[0];
    type.shape[2] = share->shape[1];
    struct tir_value *parts =
        tir_build1(b, TIR_OP_ALLOC, tir_type_get(j->f->module->types, &type), NULL, 0);
    tir_set_int(j->f, parts->def, TIR_ATTR_by_hand, 1);
    parts->name = tir_intern_cstr(j->f->module->names, "parts");
    return parts;
}

static void set_box(const struct join *j, struct tir_inst *access, const struct tir_type *share)
{
    const int64_t box[] = {0, share->shape[0], share->shape[1]};
    tir_set_list(j->f, access, TIR_ATTR_box, box, 3);
}

// Sends the shares of the tile to the CTAs that they are for.
static void send(const struct join *j, struct tir_builder *b, struct tir_value *x,
                 struct tir_value *parts, struct tir_value *rank, const struct tir_type *share,
                 uint32_t along)
{
    struct tir_type remote = *parts->type;
    remote.space = TIR_SPACE_CLUSTER;
    for (int64_t cta = 0; cta < j->ctas; cta++) {
        int64_t start[2] = {0};
        start[along] = cta * j->share;
        struct tir_value *part = tir_build1(b, TIR_OP_EXTRACT, share, &x, 1);
        tir_set_list(j->f, part->def, TIR_ATTR_start, start, 2);
        struct tir_value *of[] = {parts, tir_const_i32(j->f, (int32_t)cta)};
        struct tir_value *there =
            tir_build1(b, TIR_OP_REMOTE, tir_type_get(j->f->module->types, &remote), of, 2);
        struct tir_value *operands[TIR_MAX_RANK + 4] = {0};
        const uint32_t fixed = tir_fixed_count(j->store);
        operands[TIR_STORE_VALUE] = part;
        operands[fixed] = there;
        operands[fixed + 1] = rank;
        operands[fixed + 2] = operands[fixed + 3] = tir_const_index(j->f, 0);
        set_box(j, tir_build(b, TIR_OP_STORE, operands, fixed + 4, NULL, 0, 0), share);
    }
}

// A share that has come, in the place of a load from scratch memory.
static void receive(const struct join *j, struct tir_inst *load, struct tir_value *parts,
                    const struct tir_type *share, bool turned)
{
    struct tir_builder b = tir_builder_before(j->f, load);
    struct tir_value *operands[TIR_MAX_RANK + 4] = {0};
    const uint32_t fixed = tir_fixed_count(load);
    operands[fixed] = parts;
    operands[fixed + 1] = tir_ref_indices(load)[0];
    operands[fixed + 2] = operands[fixed + 3] = tir_const_index(j->f, 0);
    struct tir_inst *part = tir_build(&b, TIR_OP_LOAD, operands, fixed + 4, &share, 1, 0);
    set_box(j, part, share);
    struct tir_value *v = tir_result(part);
    tir_replace_uses(j->f, tir_result(load), turned ? tir_transpose(&b, v) : v);
    tir_remove(load);
}

// The scratch tensor, which nothing uses any more.
static void drop_scratch(struct tir_func *f, const struct tir_value *scratch)
{
    const uint32_t s = tir_scratch_of(f, scratch);
    struct tir_inst *yield = tir_yield_of(f->host);
    uint32_t at = f->grid_count;
    for (uint32_t i = 0; i < s; i++)
        at += f->scratch[i].value->type->rank;
    const uint32_t extents = scratch->type->rank;
    for (uint32_t i = at; i + extents < yield->operand_count; i++)
        yield->operands[i] = yield->operands[i + extents];
    yield->operand_count -= extents;
    f->extent_count -= extents;
    drop_arg(f->body, scratch->index);
    f->scratch_count--;
    for (uint32_t i = s; i < f->scratch_count; i++)
        f->scratch[i] = f->scratch[i + 1];
}

static void rewrite(struct join *j)
{
    struct tir_block *body = j->second->regions[0];
    struct tir_value *x = j->store->operands[TIR_STORE_VALUE], *sums = unturned(x);
    const bool turned = sums != x;
    const uint32_t along = turned ? 1 - j->along : j->along;
    struct tir_type type = *sums->type;
    type.shape[along] = j->share;
    const struct tir_type *share = tir_type_get(j->f->module->types, &type);
    struct tir_inst *where = body->first;
    struct tir_value *rank = narrow(j);
    struct tir_builder b = tir_builder_before(j->f, where);
    b.span = j->store->span;
    struct tir_value *parts = make_buffer(j, &b, share);
    build(&b, TIR_OP_CLUSTER_ARRIVE); // the CTA has begun
    for (struct tir_inst *inst = j->first->regions[0]->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op != TIR_OP_YIELD && inst != j->store)
            tir_move_before(inst, where);
    }
    build(&b, TIR_OP_CLUSTER_WAIT);
    send(j, &b, sums, parts, rank, share, along);
    build(&b, TIR_OP_CLUSTER_ARRIVE);
    build(&b, TIR_OP_CLUSTER_WAIT);
    vec_foreach(struct tir_inst *, load, &j->loads)
        receive(j, *load, parts, share, turned);
    tir_remove(j->store);
    tir_remove(j->first);
    drop_scratch(j->f, j->scratch);
    j->f->cluster[0] = (uint32_t)j->ctas;
    j->f->cluster[1] = j->f->cluster[2] = 1;
    j->f->is_joined = true;
}

uint32_t tir_compile_sharers(const struct tir_func *f, const struct tir_inst *tiles)
{
    if (f->is_joined)
        tir_foreach_inst_in(inst, tiles->regions[0])
            if (inst->op == TIR_OP_CLUSTER_ARRIVE)
                return tir_func_ctas(f);
    return f->is_joined ? 1 : tir_func_ctas(f);
}

static struct tir_inst *next_loop(const struct tir_inst *after)
{
    struct tir_inst *inst = after->next;
    while (inst && inst->op != TIR_OP_TILES)
        inst = inst->next;
    return inst;
}

void tir_compile_join(struct tir_compilation *c, struct tir_func *f)
{
    if (!(c->request.target.features & TIR_HAS_WGMMA) || !f->scratch_count || f->cluster[0] ||
        f->form != TIR_FORM_TILE)
        return;
    for (struct tir_inst *first = f->body->first, *second; first; first = second) {
        second = next_loop(first);
        if (first->op != TIR_OP_TILES || !second)
            continue;
        struct join j = {.arena = &c->cx.arena,
                         .target = &c->request.target,
                         .f = f,
                         .first = first,
                         .second = second};
        if (loops_fit(&j) && effects_fit(&j) && store_fits(&j) && loads_fit(&j) &&
            tensors_fit(&j)) {
            rewrite(&j);
            f->joined_at = second->span;
            f->joined = tir_str_format(
                j.arena, "cluster of %lld CTAs: it exchanges what two loops share, in one launch",
                (long long)j.ctas);
            return;
        }
        if (j.refusal) {
            f->joined_at = j.refused_at;
            f->joined = tir_str_format(j.arena, "two loops are not one of a cluster, because %s",
                                       j.refusal);
        }
    }
}
