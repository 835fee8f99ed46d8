// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Staging, the first step of the layout pass. Every tile that a dot multiplies is put in shared
// memory.
//
//     let a: bf16[128, 64] = load(A[m:+128, k:+64]);
//     let d: f32[128, 128] = dot(a, b, acc);
// becomes
//     let a: bf16[128, 64] = load(A[m:+128, k:+64]);
//     let a_shared: shared bf16[128, 64] in S[...] swizzle(128) = alloc();
//     store(a_shared[0:+128, 0:+64], a);
//     let d: f32[128, 128] = dot(a_shared, b_shared, acc);
//
// The buffer keeps the orientation of global memory, so the copy needs no transpose and async_copy
// can give it to the hardware; a permute of the buffer transposes it for the dot. ldmatrix
// transposes 16-bit elements on the way to registers. For other widths, an operand whose contiguous
// dimension is not K is transposed when it is stored, once for all products of its block and of
// those inside that come later. The rows are swizzled so that eight of them touch all banks.
//
// A that warps compute stays in registers for wgmma, but where warpgroups that share its rows would
// send it each other and have no registers for copies (tir_sent_operands).

#include "pass/layout/staging.h"

#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/async/cp_async.h"
#include "pass/async/tma.h"
#include "pass/layout/dot.h"
#include "pass/layout/operand.h"
#include "pass/layout/warpgroup.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

struct stage {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_map swizzled, plain; // tile -> its buffer in the tile's own orientation
    struct tir_map turned;          // tile -> its buffer the other way round
    struct bitset sent;             // results of dots whose A goes through shared memory, by id
    VEC(struct tir_inst *) stores;  // that fill these buffers
};

uint32_t tir_contiguous_dim(const struct tir_inst *access, uint32_t rank)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    uint32_t base_rank = tir_ref_base(access)->type->rank;
    if (!box || !base_rank || box->list[base_rank - 1] <= 0)
        return rank; // the innermost dimension is a single index or gathered
    return rank - 1;
}

static struct tir_inst *store_whole(struct tir_builder *b, struct tir_value *x,
                                    struct tir_value *buffer)
{
    const struct tir_type *t = buffer->type;
    struct tir_value *operands[3 + TIR_MAX_RANK] = {x, NULL, buffer};
    for (uint32_t d = 0; d < t->rank; d++)
        operands[3 + d] = tir_const_index(b->f, 0);
    struct tir_inst *store = tir_build(b, TIR_OP_STORE, operands, 3 + t->rank, NULL, 0, 0);
    tir_set_list(b->f, store, TIR_ATTR_box, t->shape, t->rank);
    return store;
}

// The elements that a copy takes.
static struct tir_value *mask_of(struct tir_builder *b, const struct tir_inst *copy)
{
    struct tir_value *pred = copy->operands[TIR_COPY_PRED], *mask = copy->operands[TIR_COPY_MASK];
    if (!pred || !mask)
        return pred ? pred : mask;
    if (tir_type_is_tile(mask->type))
        pred = tir_build1(b, TIR_OP_BROADCAST, mask->type, &pred, 1);
    return tir_binary(b, TIR_OP_AND, pred, mask);
}

struct tir_inst *tir_stage_copy(struct tir_func *f, struct tir_inst *copy,
                                const struct tir_layout *l)
{
    struct tir_builder b = tir_builder_before(f, copy);
    struct tir_value *to = copy->operands[TIR_COPY_TO];
    struct tir_type tile = {.elem = to->type->elem, .rank = to->type->rank, .layout = l};
    memcpy(tile.shape, to->type->shape, sizeof(tile.shape));
    struct tir_value *operands[3 + TIR_MAX_RANK] = {NULL, mask_of(&b, copy), tir_ref_base(copy)};
    uint32_t rank = tir_ref_base(copy)->type->rank;
    memcpy(operands + 3, tir_ref_indices(copy), rank * sizeof(*operands));
    struct tir_value *x =
        tir_build1(&b, TIR_OP_LOAD, tir_type_get(f->module->types, &tile), operands, 3 + rank);
    const struct tir_attr *box = tir_attr_find(copy, TIR_ATTR_box);
    tir_set_list(f, x->def, TIR_ATTR_box, box->list, box->list_count);
    tir_copy_attr(f, x->def, copy, TIR_ATTR_cache);
    store_whole(&b, x, to);
    tir_remove(copy);
    return x->def;
}

// alloc and store of x, placed right after x is made (or before `user` when x has no instruction),
// behind the stores to other buffers, from which x may be read again.
// as: the operand that x is brought for, whose rows lie one after the other.
static struct tir_value *to_shared(struct stage *s, struct tir_value *x, const struct tir_value *as,
                                   struct tir_inst *user, bool swizzled)
{
    struct tir_func *f = s->f;
    struct tir_builder b = tir_builder_before(f, user);
    if (x->def) {
        b.block = x->def->block;
        b.before = x->def->next;
        b.span = x->def->span;
        while (b.before &&
               (b.before->op == TIR_OP_ALLOC ||
                (b.before->op == TIR_OP_STORE && b.before->operands[TIR_STORE_VALUE] == x)))
            b.before = b.before->next;
    }
    const struct tir_type *t = x->type;
    struct tir_types *types = f->module->types;
    uint32_t bits = tir_elems[t->elem].bits;
    uint32_t swizzle = swizzled ? tir_dot_swizzle(f, as) : 0;
    struct tir_type shared = *t;
    shared.space = TIR_SPACE_SHARED;
    shared.layout = tir_layout_memory(types, as->type->rank, as->type->shape, bits, swizzle);
    if (shared.layout && as != x)
        shared.layout = tir_layout_reshape(types, shared.layout, t->rank, t->shape);
    const struct tir_type *type = tir_type_get(types, &shared);
    struct tir_value *buffer = tir_build1(&b, TIR_OP_ALLOC, type, NULL, 0);
    buffer->name = x->name;
    if (!x->name && x->def && x->def->op == TIR_OP_LOAD && tir_ref_base(x->def)->name)
        buffer->name = tir_intern(f->module->names, tir_str_format(s->cx->scratch, "%s_tile",
                                                                   tir_ref_base(x->def)->name));
    vec_push(s->cx->scratch, &s->stores, store_whole(&b, x, buffer));
    return buffer;
}

// The buffer that x is in already; NULL: in none that serves. Tensor cores read swizzled rows
// alone.
static struct tir_value *staged_before(struct stage *s, const struct tir_value *x, bool swizzled)
{
    struct tir_value *buffer = tir_map_get(&s->swizzled, tir_map_key(x));
    return buffer || swizzled ? buffer : tir_map_get(&s->plain, tir_map_key(x));
}

// The buffer that x was turned into for a product that always comes before this one.
static struct tir_value *turned_before(struct stage *s, const struct tir_value *x,
                                       const struct tir_inst *dot)
{
    struct tir_value *buffer = tir_map_get(&s->turned, tir_map_key(x));
    const struct tir_block *at = dot->block;
    while (buffer && at != buffer->def->block && at->owner)
        at = at->owner->block;
    return buffer && at == buffer->def->block ? buffer : NULL;
}

// Do tensor cores take K across the rows in memory, too? ldmatrix and wgmma turn 16-bit elements;
// lanes load those of 64 bits by themselves.
static bool turns(enum tir_elem elem)
{
    return tir_elems[elem].bits == 16 || tir_elems[elem].bits == 64;
}

// Can mma take the rows of what v is a transpose of as they are in memory? k_dim: v's dimension K.
static bool is_straight(const struct tir_value *v, bool turned, uint32_t k_dim, bool mma)
{
    const uint32_t k_in_x = turned ? 1 - k_dim : k_dim;
    return !mma || k_in_x == 1 || turns(v->type->elem);
}

bool tir_stages_straight(const struct tir_target *target, const struct tir_inst *dot, uint32_t i)
{
    bool turned;
    tir_unturned(dot->operands[i], &turned);
    return is_straight(dot->operands[i], turned, i == TIR_DOT_A ? 1 : 0,
                       tir_dot_on_warpgroups(dot) || tir_dot_plan(target, dot).mma);
}

// The shared buffer that stands for operand v, seen with v's shape. k_dim: v's dimension K.
static struct tir_value *stage_operand(struct stage *s, struct tir_inst *dot, struct tir_value *v,
                                       uint32_t k_dim, const struct tir_dot_plan *plan)
{
    struct tir_builder before = tir_builder_before(s->f, dot);
    bool turned;
    struct tir_value *x = tir_unturned(v, &turned);
    if (is_straight(v, turned, k_dim, plan->mma)) {
        struct tir_value *buffer = staged_before(s, x, plan->mma);
        if (!buffer) {
            buffer = to_shared(s, tir_brought(x), x, dot, plan->mma);
            if (x->def) // else the buffer is filled at this dot and serves it alone
                tir_map_set(plan->mma ? &s->swizzled : &s->plain, tir_map_key(x), buffer);
        }
        if (!tir_type_same_shape(buffer->type, x->type))
            buffer = tir_reshaped_buffer(&before, buffer, x->type);
        return turned ? tir_transpose(&before, buffer) : buffer;
    }
    struct tir_value *buffer = turned_before(s, x, dot);
    if (buffer)
        return k_dim == 1 ? buffer : tir_transpose(&before, buffer);
    struct tir_builder at = before;
    if (v->def && s->cx->attempt && s->cx->attempt->late) {
        at.block = v->def->block;
        at.before = v->def->next;
    }
    struct tir_value *k_last = k_dim == 1 ? v : tir_transpose(&at, v);
    tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, v->def ? v->def->span : dot->span,
                       "copy of %s: through registers, because it is turned while it is stored: "
                       "%s transposes only 16-bit elements",
                       v->name ? v->name : "an operand of dot",
                       tir_dot_on_warpgroups(dot) ? "wgmma" : "ldmatrix");
    buffer = to_shared(s, k_last, k_last, dot, true);
    tir_map_set(&s->turned, tir_map_key(x), buffer);
    return k_dim == 1 ? buffer : tir_transpose(&before, buffer);
}

// Can ldmatrix take the buffer's rows as they are: 16 aligned bytes at a time, along K unless it
// transposes?
static bool feeds_mma(const struct tir_type *buffer, uint32_t k_dim)
{
    const struct tir_layout *l = buffer->layout;
    uint32_t bits = tir_elems[buffer->elem].bits, dense = UINT32_MAX;
    for (uint32_t d = 0; l && d < l->rank; d++)
        for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++) {
            if (l->iters[i].stride == 1 && l->iters[i].extent * bits % 128 == 0)
                dense = d;
            else if (l->iters[i].stride * bits % 128)
                return false;
        }
    return dense == k_dim || (dense != UINT32_MAX && turns(buffer->elem));
}

// The part of a shared buffer that begins at start, as a tile of type t, at the builder's position.
static struct tir_value *load_part(struct tir_builder *b, struct tir_value *buffer,
                                   const struct tir_type *t, const int64_t *start)
{
    struct tir_value *operands[3 + TIR_MAX_RANK] = {NULL, NULL, buffer};
    for (uint32_t d = 0; d < t->rank; d++)
        operands[3 + d] = tir_const_index(b->f, start[d]);
    struct tir_value *x = tir_build1(b, TIR_OP_LOAD, t, operands, 3 + t->rank);
    tir_set_list(b->f, x->def, TIR_ATTR_box, t->shape, t->rank);
    return x;
}

static struct tir_value *load_whole(struct tir_func *f, struct tir_inst *user,
                                    struct tir_value *buffer)
{
    static const int64_t start[TIR_MAX_RANK] = {0};
    struct tir_builder b = tir_builder_before(f, user);
    struct tir_type tile = *buffer->type;
    tile.space = TIR_SPACE_VALUE;
    tile.layout = NULL;
    return load_part(&b, buffer, tir_type_get(f->module->types, &tile), start);
}

struct tir_value *tir_stage_through(struct tir_builder *b, struct tir_value *x,
                                    struct tir_value *buffer)
{
    static const int64_t start[TIR_MAX_RANK] = {0};
    store_whole(b, x, buffer);
    return load_part(b, buffer, x->type, start);
}

bool tir_may_stage_extract(const struct tir_inst *extract)
{
    const struct tir_type *whole = extract->operands[0]->type;
    return tir_type_count(whole) * tir_elems[whole->elem].bits / 8 <= TIR_BUDGET_PART_BYTES;
}

// x in rows in a buffer of its own.
static struct tir_value *staged_rows(struct tir_builder *b, struct tir_value *x)
{
    struct tir_types *types = b->f->module->types;
    struct tir_type t = *x->type;
    t.space = TIR_SPACE_SHARED;
    t.layout = tir_layout_memory(types, t.rank, t.shape, tir_elems[t.elem].bits, 0);
    struct tir_value *buffer = tir_build1(b, TIR_OP_ALLOC, tir_type_get(types, &t), NULL, 0);
    store_whole(b, x, buffer);
    return buffer;
}

void tir_stage_reshape(struct tir_func *f, struct tir_inst *reshape)
{
    static const int64_t start[TIR_MAX_RANK] = {0};
    struct tir_value *r = reshape->results[0];
    struct tir_builder b = tir_builder_before(f, reshape);
    struct tir_value *buffer = staged_rows(&b, reshape->operands[0]);
    struct tir_value *y = load_part(&b, tir_reshaped_buffer(&b, buffer, r->type), r->type, start);
    y->name = r->name;
    tir_replace_uses(f, r, y);
    tir_remove(reshape);
}

void tir_stage_extract(struct tir_func *f, struct tir_inst *extract)
{
    struct tir_value *x = extract->operands[0], *part = extract->results[0];
    struct tir_builder b = tir_builder_before(f, extract);
    struct tir_value *buffer = staged_rows(&b, x);
    struct tir_value *y =
        load_part(&b, buffer, part->type, tir_attr_find(extract, TIR_ATTR_start)->list);
    y->name = part->name;
    tir_replace_uses(f, part, y);
    tir_remove(extract);
}

// The buffer of operand i, whose dimension K is k_dim.
static void stage(struct stage *s, struct tir_inst *dot, uint32_t i, uint32_t k_dim,
                  const struct tir_dot_plan *plan)
{
    struct tir_value *v = dot->operands[i];
    if (tir_type_is_buffer(v->type)) {
        if (!plan->mma || feeds_mma(v->type, k_dim))
            return;
        v = load_whole(s->f, dot, v);
    }
    dot->operands[i] = stage_operand(s, dot, v, k_dim, plan);
}

// wgmma takes rows as ldmatrix does, swizzled and of either orientation when elements have 16 bits.
static const struct tir_dot_plan on_warpgroups = {.mma = true};
// Lanes load scales, and elements that are not for tensor cores, wherever they lie.
static const struct tir_dot_plan by_lanes = {.mma = false};

// Why no tensor copy brings the tile that is stored, if nothing else uses it; NULL: one does.
static const char *tensor_copy_refusal(const struct stage *s, const struct tir_ranges *ranges,
                                       const struct tir_inst *store)
{
    const struct tir_type *buffer = tir_ref_base(store)->type;
    const char *why =
        tir_tma_refusal(s->f, s->cx->target, ranges, store->operands[TIR_STORE_VALUE]->def);
    return why ? why : tir_tma_boxes_refusal(buffer->layout, buffer->shape, NULL, buffer->elem);
}

// The same for cp.async.
static const char *copy_refusal(const struct stage *s, const struct tir_ranges *ranges,
                                const struct tir_inst *store)
{
    struct tir_copied copied;
    const char *why = "it is computed";
    return tir_copied_of(store->operands[TIR_STORE_VALUE], &copied) &&
                   tir_copy_width(s->f, s->cx->target, ranges, &copied, tir_ref_base(store)->type,
                                  &why)
               ? NULL
               : why;
}

// What uses the stored tile next.
static struct tir_inst *next_user(const struct tir_inst *store)
{
    struct tir_inst *user = store->next;
    while (user && !tir_uses_value(user, store->operands[TIR_STORE_VALUE]))
        user = user->next;
    return user;
}

// What else the kernel does with a tile that a copy can bring, it does with what lies in the
// buffer. The tile is read again where it is needed first: products of the same buffer may start
// before.
static void read_again(struct stage *s, const struct tir_ranges *ranges, struct tir_inst *store,
                       bool by_tensor_copies)
{
    struct tir_value *x = store->operands[TIR_STORE_VALUE];
    struct tir_inst *user = next_user(store);
    if (!user || !x->def || x->def->op != TIR_OP_LOAD ||
        tir_ref_base(x->def)->type->space != TIR_SPACE_GLOBAL)
        return;
    const char *name = tir_ref_base(x->def)->name;
    const char *why =
        by_tensor_copies ? tensor_copy_refusal(s, ranges, store) : copy_refusal(s, ranges, store);
    if (why) {
        if (!by_tensor_copies)
            tir_receipt_refuse(s->cx, TIR_TOPIC_COPY, TIR_WISH_ASYNC, x->def->span,
                               "copy of %s: through registers, because %s", name, why);
        return;
    }
    struct tir_value *y = load_whole(s->f, user, tir_ref_base(store));
    y->name = x->name;
    tir_replace_uses(s->f, x, y);
    store->operands[TIR_STORE_VALUE] = x;
    tir_receipt_add(s->cx, TIR_TOPIC_COPY, x->def->span, "copy of %s: %s", name,
                    by_tensor_copies ? "the warps that multiply read its slots, too"
                                     : "what else needs it reads the buffer, too");
}

static void stage_all(struct stage *s)
{
    struct tir_func *f = s->f;
    struct tir_pass_cx *cx = s->cx;
    tir_foreach_inst(inst, f) {
        if (inst->op != TIR_OP_DOT)
            continue;
        struct tir_value *a = inst->operands[TIR_DOT_A], *b = inst->operands[TIR_DOT_B];
        if (tir_dot_on_warpgroups(inst)) {
            const bool in_registers =
                tir_a_in_registers(inst) && !bitset_has(&s->sent, inst->results[0]->id);
            tir_receipt_add(cx, TIR_TOPIC_DOT, inst->span,
                            "dot: wgmma %lldx%lldx%lld %s on %u warpgroups, A in %s",
                            (long long)a->type->shape[0], (long long)b->type->shape[1],
                            (long long)a->type->shape[1], tir_elems[a->type->elem].name,
                            tir_crew_of(f, inst).warps / 4,
                            in_registers ? "registers" : "shared memory");
            if (!in_registers)
                stage(s, inst, TIR_DOT_A, 1, &on_warpgroups);
            stage(s, inst, TIR_DOT_B, 0, &on_warpgroups);
            continue;
        }
        struct tir_dot_plan plan = tir_dot_plan(cx->target, inst);
        tir_receipt_dot(cx, inst, &plan);
        stage(s, inst, TIR_DOT_A, 1, &plan);
        stage(s, inst, TIR_DOT_B, 0, &plan);
        if (plan.scaled[0]) {
            stage(s, inst, TIR_DOT_SA, 1, &by_lanes);
            stage(s, inst, TIR_DOT_SB, 0, &by_lanes);
        }
    }
}

void tir_stage_dots(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct stage s = {.f = f, .cx = cx};
    tir_map_init(&s.swizzled, cx->scratch);
    tir_map_init(&s.plain, cx->scratch);
    tir_map_init(&s.turned, cx->scratch);
    s.sent = tir_sent_operands(cx->scratch, f, cx->target);
    stage_all(&s);
    tir_pass_dce(f, cx); // transposes of tiles that buffers now stand for
    const bool by_tensor_copies = tir_has_warpgroup_dot(f);
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    vec_foreach(struct tir_inst *, store, &s.stores)
        read_again(&s, ranges, *store, by_tensor_copies);
}
