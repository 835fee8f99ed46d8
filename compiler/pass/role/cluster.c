// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cluster: neighbouring tiles walk together and share copies.
//
//     role load ... {
//         tiles (m, n) in (M by 128, N by 256) cluster(2, 1) ... {
//             ... put(a) with (slot: i32) {
//                 copy_async(view(a[slot, 0:+128, 0:+64]), A[m:+128, k:+64], engine = tma);
//                 copy_async(view(b[slot, 0:+256, 0:+64]), B[n:+256, k:+64], engine = tma);
//             }
//         }
//     }
// becomes, in a kernel with cluster(2, 1, 1),
//     role load ... {
//         let rank: i32 = cta_rank();   let first: i32 = rank * 128;   let beside: i64 = first;
//         tiles (m0, n) in (M by 256, N by 256) ... {
//             let m: i64 = m0 + beside;
//             ... put(a) with (slot: i32) {
//                 copy_async(view(a[slot, 0:+128, 0:+64]), A[m:+128, k:+64], engine = tma);
//                 copy_async(view(b[slot, first:+128, 0:+64]), B[n + first:+128, k:+64], ctas = 3,
//                            engine = tma);
//             }
//         }
//     }
// and every other role's tiles loop likewise. The CTAs of a cluster share a tile of the larger
// size, so they run the same rounds, also if some of their parts lie outside the tensors: elements
// outside read as zero and are not stored. The ring pass counts all CTAs that fill or free a slot
// at the slot's mbarriers.
//
// A copy is shared along the dimensions of the tile on which neither its place in the tensor nor
// the number of puts of its ring depends. It is split along the outermost dimension whose parts are
// whole swizzle patterns.
//
// If no copy can be shared, or if a tile outside the tensors would have an effect, the kernel stays
// without clusters and the receipt says why.

#include "pass/role/cluster.h"
#include "base/bitset.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/tma.h"
#include "pass/receipt.h"
#include "pass/role/tile_flow.h"

struct copy { // that several CTAs share
    struct tir_inst *copy;
    const struct tir_inst *tiles;
    uint32_t along;              // dimensions of the tile that it is shared along, as bits
    int64_t parts, whole, size;  // elements of it, and of each CTA's part
    uint32_t view_dim, from_dim; // along these of the ring's buffer and of the tensor
};

struct cluster {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    uint32_t *flow;
    const struct tir_inst *tiles; // of the first role
    int64_t size[TIR_MAX_RANK], ctas;
    uint32_t rank, split; // bits of the dimensions along which CTAs differ
    VEC(struct copy) copies;
    const char *refusal;
    struct tir_span refused_at;
};

static TIR_PRINTF(3, 4) void refuse(struct cluster *c, const struct tir_inst *inst,
                                    const char *format, ...)
{
    if (c->refusal)
        return;
    va_list args;
    va_start(args, format);
    c->refusal = tir_str_vformat(c->cx->scratch, format, args).ptr;
    va_end(args);
    c->refused_at = inst->span;
}

static const struct tir_inst *tiles_around(const struct tir_inst *inst)
{
    const struct tir_inst *up = inst->block->owner;
    while (up && up->op != TIR_OP_TILES)
        up = up->block->owner;
    return up;
}

// The name of a dimension of the tile that bits has.
static const char *name_of(const struct cluster *c, uint32_t bits)
{
    for (uint32_t d = 0; d < c->rank; d++)
        if (bits & c->split & 1u << d && c->tiles->regions[0]->args[d]->name)
            return c->tiles->regions[0]->args[d]->name;
    return "the tile";
}

// Effects that a tile outside the tensors must not have.

// Does the slice of v's dimension lie outside of the tensor where the tile's start does? It does
// where v is start and what is added to it, none of it negative.
static bool goes_along(const struct cluster *c, struct tir_value *v, const struct tir_value *start)
{
    VEC(struct tir_value *) sums = {0};
    struct bitset seen = bitset_new(c->cx->scratch, c->f->value_count);
    vec_push(c->cx->scratch, &sums, v);
    while (sums.len) {
        v = vec_pop(&sums);
        if (v == start)
            return true;
        if (!v->def || v->def->op != TIR_OP_ADD || !bitset_insert(&seen, v->id))
            continue;
        for (uint32_t i = 0; i < 2; i++) {
            int64_t low, high;
            tir_range_get(c->ranges, v->def->operands[1 - i], &low, &high);
            if (low >= 0)
                vec_push(c->cx->scratch, &sums, v->def->operands[i]);
        }
    }
    return false;
}

static bool same_extent(const struct cluster *c, const struct tir_param_dim *dim,
                        const struct tir_value *extent)
{
    int64_t constant;
    if (dim->dim >= 0)
        return c->f->dims[dim->dim].value == extent;
    return tir_is_const_int(extent, &constant) && constant >= dim->constant;
}

// Is nothing stored of a tile that begins outside of extent d?
static bool is_dropped_outside(const struct cluster *c, const struct tir_inst *store, uint32_t d)
{
    const struct tir_param *param = tir_param_of(c->f, tir_ref_base(store));
    const struct tir_inst *tiles = tiles_around(store);
    const struct tir_attr *box = tir_attr_find(store, TIR_ATTR_box);
    if (!param || !tiles)
        return false;
    for (uint32_t i = 0; i < param->value->type->rank; i++)
        if (box->list[i] >= 0 && same_extent(c, &param->dims[i], tiles->operands[d]) &&
            goes_along(c, tir_ref_indices(store)[i], tiles->regions[0]->args[d]))
            return true;
    return false;
}

static void check_store(struct cluster *c, const struct tir_inst *store)
{
    if (tir_ref_base(store)->type->space != TIR_SPACE_GLOBAL)
        return;
    for (uint32_t d = 0; d < c->rank; d++)
        if (c->split & 1u << d && !is_dropped_outside(c, store, d))
            refuse(c, store, "what a tile beyond the last along %s stores would be seen",
                   name_of(c, 1u << d));
}

static void check_inst(struct cluster *c, const struct tir_inst *inst)
{
    uint32_t inputs = 0;
    switch (inst->op) {
    case TIR_OP_CTA_ID:
    case TIR_OP_NUM_CTAS:
    case TIR_OP_CTA_RANK:
    case TIR_OP_CTA_IN_CLUSTER:
    case TIR_OP_CLUSTER_SIZE:
    case TIR_OP_CLUSTER_ID:
    case TIR_OP_NUM_CLUSTERS:
    case TIR_OP_CLUSTER_ARRIVE:
    case TIR_OP_CLUSTER_WAIT:
    case TIR_OP_GRID_SYNC:
    case TIR_OP_REMOTE:
        refuse(c, inst, "the program itself speaks of the CTAs of the grid");
        return;
    case TIR_OP_RING: // another CTA would fill it once its loop is over
        if (inst->block != c->f->body)
            refuse(c, inst, "after its loop results use the bytes of its slots");
        return;
    case TIR_OP_PTX:
        refuse(c, inst, "PTX may do anything in a tile beyond the last");
        return;
    case TIR_OP_PRINT:
    case TIR_OP_ASSERT:
    case TIR_OP_TRAP:
        refuse(c, inst, "it would also be done in a tile beyond the last");
        return;
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
    case TIR_OP_STORE_ASYNC:
        check_store(c, inst);
        break;
    case TIR_OP_WHILE:
        inputs = tir_flow_of(c->flow, tir_yield_of(inst->regions[0])->operands[0]);
        break;
    case TIR_OP_FOR:
        inputs = tir_flow_of(c->flow, inst->operands[TIR_FOR_STEP]);
        break;
    case TIR_OP_ASSUME:
        inputs = tir_flow_of(c->flow, inst->operands[0]);
        break;
    default:
        break;
    }
    if (tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) == TIR_WORD_engine_bulk)
        refuse(c, inst, "a bulk copy must lie inside of its tensor");
    if (inputs & c->split && tiles_around(inst))
        refuse(c, inst, "what holds of %s need not hold beyond the last tile", name_of(c, inputs));
}

// The shared copies.

// Copies are shared by CTAs that fill and empty the ring equally often.
static bool is_in_step(struct cluster *c, const struct tir_inst *copy, const struct tir_inst *ring)
{
    tir_foreach_inst(inst, c->f) {
        if ((inst->op != TIR_OP_PUT && inst->op != TIR_OP_GET) || inst->operands[0]->def != ring)
            continue;
        uint32_t control = tir_flow_of_control(c->flow, inst) & c->split;
        if (control) {
            refuse(c, copy, "how often %s is copied follows from %s", tir_ref_base(copy)->name,
                   name_of(c, control));
            return false;
        }
    }
    return true;
}

// Bytes from one index of the buffer's dimension to the next, in memory as tir_layout_memory has
// it.
static int64_t step_bytes(const struct tir_type *slots, uint32_t dim)
{
    uint32_t last = slots->rank - 1, swizzle = slots->layout->swizzle;
    int64_t bits = tir_elems[slots->elem].bits;
    int64_t bytes = swizzle ? swizzle : slots->shape[last] * bits / 8;
    for (uint32_t d = dim + 1; d < last; d++)
        bytes *= slots->shape[d];
    return bytes;
}

// Cuts the copy along the outermost dimension that can be. False: none can.
static bool cut(struct copy *s, const struct tir_inst *view)
{
    const struct tir_attr *to = tir_attr_find(view, TIR_ATTR_box),
                          *from = tir_attr_find(s->copy, TIR_ATTR_box);
    const struct tir_type *slots = tir_ref_base(view)->type;
    int64_t pattern = slots->layout->swizzle ? TIR_SWIZZLE_BYTES : TIR_TMA_TENSOR_BYTES;
    uint32_t k = 0;
    for (uint32_t i = 0; i + 1 < to->list_count; i++) {
        if (to->list[i] <= 0)
            continue;
        while (k < from->list_count && from->list[k] <= 0)
            k++; // single indices of the tensor are no dimension of the buffer
        if (k == from->list_count)
            return false;
        s->view_dim = i;
        s->from_dim = k++;
        s->whole = to->list[i];
        s->size = s->whole / s->parts;
        if (s->whole % s->parts == 0 && s->size * step_bytes(slots, i) % pattern == 0)
            return true;
    }
    return false;
}

static void look_at_copy(struct cluster *c, struct tir_inst *copy)
{
    const struct tir_inst *ring = copy->block->owner->operands[0]->def;
    const struct tir_inst *view = copy->operands[TIR_COPY_TO]->def;
    const char *name = tir_ref_base(copy)->name;
    struct copy s = {.copy = copy, .tiles = tiles_around(copy), .parts = 1};
    uint32_t follows = 0;
    for (uint32_t i = 0; i < copy->operand_count; i++)
        follows |= tir_flow_of(c->flow, copy->operands[i]);
    s.along = c->split & ~follows;
    for (uint32_t d = 0; d < c->rank; d++)
        s.parts *= s.along & 1u << d ? c->size[d] : 1;
    if (s.parts == 1 || !is_in_step(c, copy, ring))
        return;
    if (tir_copied_rows(copy) || tir_copies_pixels(copy)) {
        refuse(c, copy, "%s is copied by rows or pixels, not by boxes that can be cut", name);
        return;
    }
    if (!s.tiles)
        refuse(c, copy, "%s is copied outside of the tiles loop", name);
    else if (!view || view->op != TIR_OP_VIEW || tir_ref_base(view)->def != ring ||
             !tir_plain_memory(c->f->module->types, view->results[0]))
        refuse(c, copy, "the slots that %s is copied to have a layout of their own", name);
    else if (!cut(&s, view))
        refuse(c, copy, "the tile of %s cannot be cut in %lld parts that tensor copies can move",
               name, (long long)s.parts);
    else
        vec_push(c->cx->scratch, &c->copies, s);
}

static void look_at_copies(struct cluster *c)
{
    bool any = false;
    tir_foreach_inst(inst, c->f) {
        const struct tir_inst *put = inst->block->owner;
        if (inst->op != TIR_OP_COPY_ASYNC || !put || put->op != TIR_OP_PUT ||
            inst->operands[TIR_COPY_CTAS] ||
            tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) != TIR_WORD_engine_tma)
            continue;
        any = true;
        look_at_copy(c, inst);
    }
    if (c->copies.len)
        c->refusal = NULL; // of other copies
    else if (!any)
        refuse(c, c->tiles, "no ring is filled by tensor copies");
    else
        refuse(c, c->tiles, "every copy follows from %s", name_of(c, c->split));
}

// Whether tiles may walk together at all.
static void survey(struct cluster *c)
{
    if (!(c->cx->target->features & TIR_HAS_CLUSTER))
        refuse(c, c->tiles, "the target has no clusters");
    else if (c->f->cluster[0])
        refuse(c, c->tiles, "the kernel has a cluster of its own");
    if (c->refusal)
        return;
    c->ranges = tir_ranges_new(c->cx->scratch, c->f);
    c->flow = tir_tile_flow(c->cx->scratch, c->f);
    tir_foreach_inst(inst, c->f)
        check_inst(c, inst);
}

// Rewriting. The CTAs of a cluster are numbered over the dimensions of the tile, the last fastest.

struct walk { // of one role over the tiles
    struct tir_builder before;
    struct tir_value *at[TIR_MAX_RANK]; // where this CTA is along each dimension
};

static int64_t stride_of(const struct cluster *c, uint32_t d)
{
    int64_t stride = 1;
    while (++d < c->rank)
        stride *= c->size[d];
    return stride;
}

static struct tir_value *times(struct tir_builder *b, struct tir_value *v, int64_t by)
{
    return by == 1 ? v : tir_binary(b, TIR_OP_MUL, v, tir_const_i32(b->f, (int32_t)by));
}

static struct tir_value *plus(struct tir_builder *b, struct tir_value *x, struct tir_value *y)
{
    int64_t zero;
    if (!x || (tir_is_const_int(x, &zero) && zero == 0))
        return y;
    return tir_binary(b, TIR_OP_ADD, x, y);
}

static struct tir_value *as(struct tir_builder *b, struct tir_value *v, const struct tir_type *type)
{
    return v->type == type ? v : tir_build1(b, TIR_OP_CAST, type, &v, 1);
}

static void find_place(const struct cluster *c, struct walk *w)
{
    struct tir_builder *b = &w->before;
    const struct tir_type *i32 = tir_type_scalar(c->f->module->types, TIR_I32);
    struct tir_value *rank = tir_build1(b, TIR_OP_CTA_RANK, i32, NULL, 0);
    for (uint32_t d = 0; d < c->rank; d++) {
        int64_t stride = stride_of(c, d);
        if (c->size[d] == 1)
            continue;
        w->at[d] = rank;
        if (stride > 1)
            w->at[d] = tir_binary(b, TIR_OP_DIV, rank, tir_const_i32(c->f, (int32_t)stride));
        if (stride * c->size[d] < c->ctas)
            w->at[d] =
                tir_binary(b, TIR_OP_REM, w->at[d], tir_const_i32(c->f, (int32_t)c->size[d]));
    }
}

// The CTAs that share the copy: those that differ from this one along its dimensions alone.
static struct tir_value *build_mask(const struct cluster *c, struct walk *w, const struct copy *s)
{
    int64_t mask = 0;
    struct tir_value *first = NULL;
    for (int64_t cta = 0; cta < c->ctas; cta++) {
        bool with_first = true;
        for (uint32_t d = 0; d < c->rank; d++)
            with_first &= s->along & 1u << d || cta / stride_of(c, d) % c->size[d] == 0;
        mask |= (int64_t)with_first << cta;
    }
    for (uint32_t d = 0; d < c->rank; d++)
        if (c->split & ~s->along & 1u << d)
            first = plus(&w->before, first, times(&w->before, w->at[d], stride_of(c, d)));
    struct tir_value *all = tir_const_i32(c->f, (int32_t)mask);
    return first ? tir_binary(&w->before, TIR_OP_SHL, all, first) : all;
}

// The part of the slot that this CTA brings.
static struct tir_value *build_piece(const struct cluster *c, struct tir_builder *b,
                                     const struct copy *s, struct tir_value *first)
{
    struct tir_inst *view = s->copy->operands[TIR_COPY_TO]->def;
    int64_t box[TIR_MAX_RANK];
    const struct tir_attr *old = tir_attr_find(view, TIR_ATTR_box);
    struct tir_type type = *view->results[0]->type;
    uint32_t dim = 0;
    for (uint32_t i = 0; i < s->view_dim; i++)
        dim += old->list[i] > 0;
    type.shape[dim] = s->size;
    type.layout = NULL; // the buffer's
    const struct tir_type *types[] = {tir_type_get(c->f->module->types, &type)};
    struct tir_value *start = tir_ref_indices(view)[s->view_dim];
    start = plus(b, start, as(b, first, start->type));
    struct tir_inst *piece =
        tir_build(b, TIR_OP_VIEW, view->operands, view->operand_count, types, 1, 0);
    memcpy(box, old->list, old->list_count * sizeof(*box));
    box[s->view_dim] = s->size;
    tir_set_list(c->f, piece, TIR_ATTR_box, box, old->list_count);
    tir_ref_indices(piece)[s->view_dim] = start;
    piece->results[0]->name = view->results[0]->name;
    return piece->results[0];
}

static void share(const struct cluster *c, struct walk *w, const struct copy *s)
{
    struct tir_func *f = c->f;
    struct tir_value *part = NULL;
    for (uint32_t d = 0; d < c->rank; d++)
        if (s->along & 1u << d)
            part = plus(&w->before, part ? times(&w->before, part, c->size[d]) : NULL, w->at[d]);
    struct tir_value **from = &tir_ref_indices(s->copy)[s->from_dim];
    struct tir_value *first = as(&w->before, times(&w->before, part, s->size), (*from)->type);
    first->name = tir_intern_cstr(f->module->names, "part");
    struct tir_value *mask = build_mask(c, w, s);
    struct tir_builder b = tir_builder_before(f, s->copy);
    s->copy->operands[TIR_COPY_TO] = build_piece(c, &b, s, first);
    const int64_t stride = tir_slice_stride(s->copy, s->from_dim);
    if (stride > 1)
        first = tir_binary(&b, TIR_OP_MUL, first, tir_const_int(f, first->type, stride));
    *from = plus(&b, *from, first);
    int64_t box[TIR_MAX_RANK];
    const struct tir_attr *old = tir_attr_find(s->copy, TIR_ATTR_box);
    memcpy(box, old->list, old->list_count * sizeof(*box));
    box[s->from_dim] = s->size;
    tir_set_list(f, s->copy, TIR_ATTR_box, box, old->list_count);
    s->copy->operands[TIR_COPY_CTAS] = mask;
    tir_receipt_add(c->cx, TIR_TOPIC_COPY, s->copy->span,
                    "copy of %s: shared by %lld CTAs, of which each brings %lld of %lld",
                    tir_ref_base(s->copy)->name, (long long)s->parts, (long long)s->size,
                    (long long)s->whole);
}

// Replaces each CTA's tile by the cluster's, in which it begins at an offset.
static void widen(const struct cluster *c, struct walk *w, struct tir_inst *tiles)
{
    struct tir_func *f = c->f;
    struct tir_block *body = tiles->regions[0];
    struct tir_builder top = tir_builder_before(f, body->first);
    int64_t by[TIR_MAX_RANK];
    memcpy(by, tir_attr_find(tiles, TIR_ATTR_by)->list, c->rank * sizeof(*by));
    for (uint32_t d = 0; d < c->rank; d++) {
        if (c->size[d] == 1)
            continue;
        struct tir_value *start = body->args[d];
        struct tir_value *beside = as(&w->before, times(&w->before, w->at[d], by[d]), start->type);
        struct tir_value *own =
            tir_build1(&top, TIR_OP_ADD, start->type, (struct tir_value *[]){start, beside}, 2);
        own->name = start->name;
        tir_replace_uses(f, start, own);
        own->def->operands[0] = start;
        by[d] *= c->size[d];
    }
    tir_set_list(f, tiles, TIR_ATTR_by, by, c->rank);
    int64_t group = tir_attr_int(tiles, TIR_ATTR_group, 0); // still as many rows of tiles
    if (group && c->rank >= 2)
        tir_set_int(f, tiles, TIR_ATTR_group, TIR_MAX(1, group / c->size[c->rank - 2]));
}

static void widen_all(struct cluster *c)
{
    tir_foreach_inst(tiles, c->f) {
        if (tiles->op != TIR_OP_TILES)
            continue;
        struct walk w = {.before = tir_builder_before(c->f, tiles)};
        find_place(c, &w);
        vec_foreach(const struct copy, s, &c->copies)
            if (s->tiles == tiles)
                share(c, &w, s);
        widen(c, &w, tiles);
    }
    c->f->cluster[0] = (uint32_t)c->ctas;
    c->f->cluster[1] = c->f->cluster[2] = 1;
}

static void report(const struct cluster *c)
{
    struct tir_text sizes;
    tir_text_init(&sizes, c->cx->scratch, 0);
    for (uint32_t d = 0; d < c->rank; d++)
        tir_text_format(&sizes, "%s%lld", d ? " x " : "", (long long)c->size[d]);
    if (c->refusal)
        tir_receipt_refuse(c->cx, TIR_TOPIC_LAUNCH, TIR_WISH_CLUSTER, c->refused_at,
                           "cluster of %s tiles: none, because %s", sizes.ptr, c->refusal);
    else
        tir_receipt_add(c->cx, TIR_TOPIC_LAUNCH, c->tiles->span, "cluster: %s tiles walk together",
                        sizes.ptr);
}

static void drop_clause(struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES && tir_attr_find(inst, TIR_ATTR_cluster))
            tir_drop_attr(f, inst, TIR_ATTR_cluster);
}

// The clause of the kernel's tiles loops. False: there is none.
static bool take_clause(struct cluster *c)
{
    tir_foreach_inst(inst, c->f) {
        const struct tir_attr *clause =
            inst->op == TIR_OP_TILES ? tir_attr_find(inst, TIR_ATTR_cluster) : NULL;
        if (!clause || c->tiles)
            continue;
        c->tiles = inst;
        c->rank = clause->list_count;
        memcpy(c->size, clause->list, c->rank * sizeof(*c->size));
    }
    c->ctas = 1;
    for (uint32_t d = 0; d < c->rank; d++) {
        c->ctas *= c->size[d];
        c->split |= c->size[d] > 1 ? 1u << d : 0;
    }
    return c->tiles;
}

const char *tir_cluster_refusal(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct cluster c = {.f = f, .cx = cx};
    if (take_clause(&c))
        survey(&c);
    return c.refusal;
}

void tir_cluster_widen(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct cluster c = {.f = f, .cx = cx};
    if (take_clause(&c)) {
        drop_clause(f);
        widen_all(&c);
    }
}

enum tir_change tir_pass_cluster(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct cluster c = {.f = f, .cx = cx};
    if (!take_clause(&c))
        return TIR_UNCHANGED;
    drop_clause(f);
    survey(&c);
    if (!c.refusal)
        look_at_copies(&c);
    report(&c);
    if (!c.refusal) {
        widen_all(&c);
        tir_pass_dce(f, cx);
    }
    return TIR_CHANGED;
}
