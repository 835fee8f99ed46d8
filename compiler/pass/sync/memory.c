// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// memory: gives scratch space to operations that need it and places every shared buffer by
// liveness.
//
//     let a: shared f32[64, 64] in S = alloc();          // last used by d
//     let d: f32[64, 64] in M = dot(a, b, acc);
//     let e: f32[64, 64] in B = convert_layout(d);
// becomes
//     let a: shared f32[64, 64] in S = alloc(offset = 0);
//     let d: f32[64, 64] in M = dot(a, b, acc);
//     let scratch: shared f32[64, 64] in R = alloc(offset = 0);
//     let e: f32[64, 64] in B = convert_layout(d, scratch = scratch);
//
// A buffer lives from its alloc to its last use. A buffer made outside a loop and used in it lives
// as long as the loop. The small scratch of a reduction lives until the next reduction is done.
// Roles run concurrently: a buffer made outside them and used in one lives as long as all of them,
// and buffers of two roles are always live at the same time. mbarriers live for ever, and so do
// buffers that the program declares and orders itself (by_hand), as long as there is room: their
// author orders accesses to each buffer, not to bytes that two of them share. Scratch in a scope is
// there once for each group of warps, and shares its bytes with that of the same scope. Buffers are
// placed largest first, each at the lowest address that no live buffer occupies. Swizzled buffers
// are aligned to their pattern (1,024 bytes), those of tensor copies to 128, mbarriers to 8, others
// to 16. The barrier pass orders reuse: it works on the bytes placed here.
//
// Where this takes more than a CTA has, the scratch of conversions is cut to a half along one
// dimension, the largest first, until all fits: such a tile changes threads in parts.

#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/pass.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"
#include "pass/sync/shared.h"

struct interval {
    struct tir_inst *alloc;
    const struct tir_inst *role; // that the alloc is in, or NULL
    int64_t begin, end;          // program positions, inclusive
    int64_t bytes, offset, alignment;
    bool by_hand;                 // declared and ordered by the program
    const struct tir_inst *scope; // whose groups of warps each have one; NULL: none
    uint32_t groups;
    int64_t apart; // of all buffers of a scope, which have no alloc: from group to group
};

struct memory {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    VEC(struct interval) buffers;
    VEC(struct interval) scoped; // those of scopes, each of which has one interval of `buffers`
    bool by_hand_end;            // buffers of the program end with their last use, like all others
};

static const struct tir_type *scratch_type(struct tir_func *f, enum tir_elem elem, uint32_t rank,
                                           const int64_t *shape, uint32_t swizzle)
{
    struct tir_type t = {.elem = elem, .space = TIR_SPACE_SHARED, .rank = rank};
    memcpy(t.shape, shape, rank * sizeof(*shape));
    t.layout = tir_layout_memory(f->module->types, rank, shape, tir_elems[elem].bits, swizzle);
    return tir_type_get(f->module->types, &t);
}

// Of a conversion of tiles of x's element type, or of parts of this shape.
static const struct tir_type *convert_scratch_type(struct tir_func *f, const struct tir_type *x,
                                                   const int64_t *shape)
{
    int64_t row = shape[x->rank - 1] * tir_elems[x->elem].bits / 8;
    uint32_t swizzle = x->rank >= 2 && row % 128 == 0 ? 128 : 0;
    return scratch_type(f, x->elem, x->rank, shape, swizzle);
}

static struct tir_value *build_scratch(struct tir_func *f, struct tir_inst *inst,
                                       const struct tir_type *type)
{
    struct tir_builder b = tir_builder_before(f, inst);
    struct tir_value *v = tir_build1(&b, TIR_OP_ALLOC, type, NULL, 0);
    v->name = tir_intern_cstr(f->module->names, "scratch");
    return v;
}

static void add_atomic_scratch(struct tir_func *f, struct tir_inst *inst, bool used)
{
    static const int64_t one[] = {1};
    const struct tir_type *t = inst->results[0]->type;
    if (tir_atomic_shares(f, inst, used))
        inst->operands[TIR_ATOMIC_SCRATCH] = build_scratch(
            f, inst, scratch_type(f, t->elem, TIR_MAX(t->rank, 1), t->rank ? t->shape : one, 0));
}

// Bits as wide as the widest element of the tiles that are combined together.
static enum tir_elem widest(const struct tir_inst *inst)
{
    uint32_t bits = 8;
    for (uint32_t i = 0; i < inst->result_count; i++)
        bits = TIR_MAX(bits, tir_elems[inst->results[i]->type->elem].bits);
    return bits == 8 ? TIR_U8 : bits == 16 ? TIR_U16 : bits == 32 ? TIR_U32 : TIR_U64;
}

static bool add_scratch(struct tir_func *f, struct tir_inst *inst)
{
    if (inst->op != TIR_OP_CONVERT_LAYOUT && inst->op != TIR_OP_REDUCE && inst->op != TIR_OP_SCAN)
        return false;
    const struct tir_type *x = inst->operands[TIR_REDUCE_X]->type;
    if (!x->layout) // a constant
        return false;
    if (inst->op == TIR_OP_CONVERT_LAYOUT) {
        if (!tir_convert_needs_scratch(x, inst->results[0]->type))
            return false;
        inst->operands[TIR_REDUCE_SCRATCH] =
            build_scratch(f, inst, convert_scratch_type(f, x, x->shape));
        return true;
    }
    uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
    bool in_order = inst->op == TIR_OP_SCAN ||
                    tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_user;
    // One entry for each tile, each line along the axis and each part of it.
    int64_t parts =
        in_order ? tir_combine_blocks(x->layout, axis) : tir_warps_along(x->layout, axis);
    if (parts == 1)
        return false;
    uint32_t tiles = tir_combined_count(inst);
    int64_t shape[2] = {tiles * parts, tir_type_count(x) / x->shape[axis]};
    enum tir_elem elem = tiles == 1 ? x->elem : widest(inst);
    inst->operands[TIR_REDUCE_SCRATCH] = build_scratch(f, inst, scratch_type(f, elem, 2, shape, 0));
    return true;
}

struct positions {
    int64_t *of;  // by instruction id
    int64_t *end; // last position inside the instruction's regions
};

static void number(const struct tir_block *block, struct positions *p, int64_t *next)
{
    for (struct tir_inst *inst = block->first; inst; inst = inst->next) {
        p->of[inst->id] = (*next)++;
        for (uint32_t r = 0; r < inst->region_count; r++)
            number(inst->regions[r], p, next);
        p->end[inst->id] = (*next)++;
    }
}

// The position up to which `user` keeps a buffer alive that was allocated in block `home`: its own,
// or the end of the outermost loop around it that the alloc is not in, or of the kernel if that is
// a role.
static int64_t use_end(const struct positions *p, const struct tir_block *home,
                       const struct tir_inst *user)
{
    int64_t end = p->end[user->id];
    for (const struct tir_block *block = user->block; block != home && block->owner;
         block = block->owner->block)
        end = block->owner->op == TIR_OP_ROLE ? INT64_MAX : p->end[block->owner->id];
    return end;
}

static struct interval interval_of(const struct memory *m, const struct positions *p,
                                   struct tir_inst *alloc)
{
    const struct tir_type *t = alloc->results[0]->type;
    struct interval in = {.alloc = alloc,
                          .role = tir_crew_of(m->f, alloc).role,
                          .begin = p->of[alloc->id],
                          .end = p->of[alloc->id],
                          .by_hand = tir_attr_int(alloc, TIR_ATTR_by_hand, 0),
                          .bytes = tir_buffer_bytes(t),
                          .alignment = t->layout ? tir_layout_alignment(t->layout) : 16};
    if (t->elem == TIR_MBARRIER) {
        in.begin = 0;
        in.end = INT64_MAX;
        in.alignment = 8;
    }
    const struct tir_crew crew = tir_crew_of(m->f, alloc);
    if (crew.scope && !in.by_hand && t->elem != TIR_MBARRIER) {
        in.scope = crew.scope;
        in.groups = crew.groups;
    }
    return in;
}

// Is it a tensor or bulk copy, that one thread starts?
static bool is_engine_copy(const struct tir_inst *inst)
{
    return tir_dones[tir_done_of(inst)].by_one;
}

static void find_intervals(struct memory *m)
{
    struct tir_func *f = m->f;
    struct positions p = {arena_array(m->cx->scratch, int64_t, f->inst_count),
                          arena_array(m->cx->scratch, int64_t, f->inst_count)};
    int64_t next = 0;
    number(f->body, &p, &next);
    struct tir_map index; // alloc's value -> 1 + its place in buffers
    tir_map_init(&index, m->cx->scratch);
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_ALLOC && inst->results[0]->type->space == TIR_SPACE_SHARED) {
            struct interval in = interval_of(m, &p, inst);
            vec_push(m->cx->scratch, &m->buffers, in);
            tir_map_set(&index, tir_map_key(inst->results[0]), (void *)(uintptr_t)m->buffers.len);
        }
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            if (!v || v->type->space != TIR_SPACE_SHARED)
                continue;
            struct tir_value *root = tir_buffer_root(v);
            uintptr_t at = (uintptr_t)tir_map_get(&index, tir_map_key(root));
            if (at) {
                struct interval *in = &m->buffers.at[at - 1];
                in->end = TIR_MAX(in->end, use_end(&p, in->alloc->block, inst));
                if (inst->op == TIR_OP_ALIAS)
                    in->alignment = TIR_MAX(in->alignment,
                                            tir_layout_alignment(inst->results[0]->type->layout));
                if (inst->op == TIR_OP_TMEM_ALLOC) // too small to be worth an order
                    in->end = INT64_MAX;
                if (is_engine_copy(inst) && root->type->elem != TIR_MBARRIER)
                    in->alignment = TIR_MAX(in->alignment, 128);
            }
        }
    }
}

// Scopes. Each group of warps is somewhere else in the block, so a scope's buffers share bytes with
// no other's, and lie in all groups at the same distance:
//
//     group 0: place 0, place 1, ...   group 1: place 0, place 1, ...
//
// Two buffers that are never alive at once have one place, as large as the larger one.

static uint32_t place_of(const struct interval *all, uint32_t i)
{
    uint32_t place = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t j = 0; j < i; j++)
            if (all[j].scope == all[i].scope && all[j].offset == place &&
                all[j].begin <= all[i].end && all[i].begin <= all[j].end) {
                place++;
                moved = true;
            }
    }
    return place;
}

// Bytes of the first `places` places of a group.
static int64_t bytes_of_places(const struct memory *m, const struct interval *all, int64_t places)
{
    int64_t bytes = 0;
    for (int64_t place = 0; place < places; place++) {
        int64_t most = 0;
        vec_foreach(const struct interval, in, &m->scoped)
            if (in->scope == all->scope && in->offset == place)
                most = TIR_MAX(most, in->bytes);
        bytes += (int64_t)tir_align_up((uint64_t)most, (uint64_t)all->alignment);
    }
    return bytes;
}

// What the buffers of a scope take, all groups together.
static void size_scope(struct memory *m, struct interval *all)
{
    int64_t places = 0;
    for (uint32_t i = 0; i < m->scoped.len; i++) {
        struct interval *in = &m->scoped.at[i];
        if (in->scope != all->scope)
            continue;
        in->offset = place_of(m->scoped.at, i);
        all->alignment = TIR_MAX(all->alignment, in->alignment);
        places = TIR_MAX(places, in->offset + 1);
    }
    all->apart = bytes_of_places(m, all, places);
    all->bytes = all->apart * all->groups;
}

static void gather_scopes(struct memory *m)
{
    uint32_t kept = 0;
    vec_foreach(const struct interval, in, &m->buffers)
        if (in->scope)
            vec_push(m->cx->scratch, &m->scoped, *in);
        else
            m->buffers.at[kept++] = *in;
    m->buffers.len = kept;
    vec_foreach(const struct interval, in, &m->scoped) {
        bool is_known = false;
        vec_foreach(const struct interval, all, &m->buffers)
            is_known |= all->scope == in->scope;
        struct interval all = {.role = in->role,
                               .scope = in->scope,
                               .groups = in->groups,
                               .end = INT64_MAX,
                               .alignment = 128};
        if (is_known)
            continue;
        size_scope(m, &all);
        vec_push(m->cx->scratch, &m->buffers, all);
    }
}

static void place_scoped(const struct memory *m)
{
    vec_foreach(const struct interval, in, &m->scoped)
        vec_foreach(const struct interval, all, &m->buffers) {
            if (all->scope != in->scope)
                continue;
            tir_set_int(m->f, in->alloc, TIR_ATTR_offset,
                        all->offset + bytes_of_places(m, all, in->offset));
            if (in->groups > 1)
                tir_set_int(m->f, in->alloc, TIR_ATTR_apart, all->apart);
        }
}

static bool is_small_scratch(const struct interval *in)
{
    const struct tir_inst *user = in->alloc ? in->alloc->next : NULL;
    return user && (user->op == TIR_OP_REDUCE || user->op == TIR_OP_SCAN) &&
           in->bytes <= TIR_BUDGET_TURN_BYTES &&
           user->operands[TIR_REDUCE_SCRATCH] == in->alloc->results[0];
}

// Lets the scratch of a reduction live until the next one is done, so that they take turns at two
// places: the barrier inside each then also orders the reuse of the other place.
static void take_turns(struct memory *m)
{
    struct interval *last = NULL;
    vec_foreach(struct interval, in, &m->buffers) {
        if (!is_small_scratch(in))
            continue;
        if (last)
            last->end = TIR_MAX(last->end, in->end);
        last = in;
    }
}

static bool alive_together(const struct memory *m, const struct interval *a,
                           const struct interval *b)
{
    bool in_two_roles = a->role && b->role && a->role != b->role;
    bool stays = !m->by_hand_end && (a->by_hand || b->by_hand);
    return in_two_roles || stays || (a->begin <= b->end && b->begin <= a->end);
}

static void place(struct memory *m)
{
    uint32_t count = m->buffers.len;
    struct interval **order = arena_array(m->cx->scratch, struct interval *, count);
    for (uint32_t i = 0; i < count; i++) { // largest first; ties in program order
        uint32_t at = i;
        for (; at > 0 && order[at - 1]->bytes < m->buffers.at[i].bytes; at--)
            order[at] = order[at - 1];
        order[at] = &m->buffers.at[i];
    }
    m->f->shared_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct interval *in = order[i];
        in->offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t j = 0; j < i; j++) {
                const struct interval *other = order[j];
                bool overlap = in->offset < other->offset + other->bytes &&
                               other->offset < in->offset + in->bytes;
                if (overlap && alive_together(m, in, other)) {
                    in->offset = (int64_t)tir_align_up((uint64_t)(other->offset + other->bytes),
                                                       (uint64_t)in->alignment);
                    moved = true;
                }
            }
        }
        if (in->alloc)
            tir_set_int(m->f, in->alloc, TIR_ATTR_offset, in->offset);
        m->f->shared_bytes = TIR_MAX(m->f->shared_bytes, in->offset + in->bytes);
    }
}

// The conversion whose scratch this is, or NULL.
static struct tir_inst *convert_of(const struct interval *in)
{
    struct tir_inst *user = in->alloc ? in->alloc->next : NULL;
    bool is_scratch = user && user->op == TIR_OP_CONVERT_LAYOUT &&
                      user->operands[TIR_REDUCE_SCRATCH] == in->alloc->results[0];
    return is_scratch ? user : NULL;
}

// The dimension along which a tile goes through its scratch in parts: the longest but the last,
// along which elements move together; the last if the others are short.
static uint32_t parts_along(const struct tir_type *tile)
{
    uint32_t last = tile->rank - 1, along = last;
    int64_t most = tile->shape[last] / TIR_BUDGET_CONVERT_PARTS;
    for (uint32_t d = 0; d < last; d++)
        if (tile->shape[d] > most) {
            most = tile->shape[d];
            along = d;
        }
    return along;
}

static bool can_halve(const struct interval *in)
{
    const struct tir_inst *convert = convert_of(in);
    if (!convert)
        return false;
    const struct tir_type *tile = convert->operands[TIR_REDUCE_X]->type;
    int64_t size = in->alloc->results[0]->type->shape[parts_along(tile)];
    return size > 1 && size * TIR_BUDGET_CONVERT_PARTS > tile->shape[parts_along(tile)];
}

// The largest buffers of a group of the scope that can be halved. NULL: there are no more.
static struct interval *next_largest(const struct memory *m, const struct interval *all,
                                     struct interval *in)
{
    int64_t most = 0;
    vec_foreach(const struct interval, other, &m->scoped)
        most = other->scope == all->scope && can_halve(other) ? TIR_MAX(most, other->bytes) : most;
    for (in = in ? in + 1 : m->scoped.at; in < m->scoped.at + m->scoped.len; in++)
        if (in->scope == all->scope && in->bytes == most && can_halve(in))
            return in;
    return NULL;
}

static bool can_shrink(const struct memory *m, const struct interval *all)
{
    return all->scope ? next_largest(m, all, NULL) != NULL : can_halve(all);
}

static void halve(struct memory *m, struct interval *in)
{
    const struct tir_type *tile = convert_of(in)->operands[TIR_REDUCE_X]->type;
    struct tir_value *scratch = in->alloc->results[0];
    uint32_t d = parts_along(tile);
    int64_t shape[TIR_MAX_RANK];
    memcpy(shape, scratch->type->shape, sizeof(shape));
    shape[d] = (shape[d] + 1) / 2;
    scratch->type = convert_scratch_type(m->f, tile, shape);
    in->bytes = tir_buffer_bytes(scratch->type);
    in->alignment = tir_layout_alignment(scratch->type->layout);
}

static void shrink(struct memory *m, struct interval *all)
{
    if (!all->scope) {
        halve(m, all);
        return;
    }
    VEC(struct interval *) largest = {0};
    for (struct interval *in = next_largest(m, all, NULL); in; in = next_largest(m, all, in))
        vec_push(m->cx->scratch, &largest, in);
    vec_foreach(struct interval *, it, &largest)
        halve(m, *it);
    size_scope(m, all);
}

// Does a buffer that is live with this one, or it itself, end above the limit?
static bool is_at_limit(const struct memory *m, const struct interval *in, int64_t limit)
{
    vec_foreach(const struct interval, other, &m->buffers)
        if (other->offset + other->bytes > limit && alive_together(m, in, other))
            return true;
    return false;
}

static void tell_shared(struct memory *m)
{
    for (uint32_t i = 0; i < m->buffers.len; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct interval *a = &m->buffers.at[k], *b = &m->buffers.at[i];
            if (a->by_hand && b->by_hand && a->offset < b->offset + b->bytes &&
                b->offset < a->offset + a->bytes)
                tir_receipt_add(m->cx, TIR_TOPIC_MEMORY, b->alloc->span,
                                "shared memory: %s and %s share bytes, since there is no room "
                                "for both",
                                a->alloc->results[0]->name, b->alloc->results[0]->name);
        }
}

// Of a tile that changes threads in parts.
static void tell_parts(const struct memory *m, const struct interval *in)
{
    const struct tir_inst *convert = convert_of(in);
    const struct tir_type *tile = convert ? convert->operands[TIR_REDUCE_X]->type : NULL;
    uint32_t d = tile ? parts_along(tile) : 0;
    int64_t size = tile ? in->alloc->results[0]->type->shape[d] : 0;
    if (tile && size < tile->shape[d])
        tir_receipt_add(
            m->cx, TIR_TOPIC_MEMORY, convert->span,
            "a tile of %s changes threads in %lld parts of %lld bytes, since shared "
            "memory has no room for all of it",
            tir_type_text(m->cx->scratch, tir_type_with_layout(m->f->module->types, tile, NULL))
                .ptr,
            (long long)((tile->shape[d] + size - 1) / size), (long long)in->bytes);
}

static void place_within(struct memory *m, int64_t limit)
{
    place(m);
    m->by_hand_end = m->f->shared_bytes > limit;
    for (place(m); m->f->shared_bytes > limit; place(m)) {
        struct interval *largest = NULL;
        vec_foreach(struct interval, in, &m->buffers)
            if (can_shrink(m, in) && is_at_limit(m, in, limit) &&
                (!largest || in->bytes > largest->bytes))
                largest = in;
        if (!largest)
            return;
        shrink(m, largest);
    }
    vec_foreach(const struct interval, in, &m->buffers)
        tell_parts(m, in);
    vec_foreach(const struct interval, in, &m->scoped)
        tell_parts(m, in);
}

static bool check_limit(struct memory *m, int64_t limit)
{
    if (m->f->shared_bytes <= limit)
        return true;
    tir_error_at(m->cx->diags, m->f->span, TIR_E_SHARED_LIMIT,
                 "kernel %s needs %lld bytes of shared memory, %s has %lld", m->f->name,
                 (long long)m->f->shared_bytes, m->cx->target->name, (long long)limit);
    vec_foreach(struct interval, in, &m->buffers) {
        const struct tir_value *v = in->alloc ? in->alloc->results[0] : NULL;
        if (!v) {
            tir_note_at(
                m->cx->diags, in->scope->span,
                "%lld bytes for tiles that change threads in a scope, of %u groups of warps",
                (long long)in->bytes, in->groups);
            continue;
        }
        tir_note_at(
            m->cx->diags, in->alloc->span, "%lld bytes for %s: %s", (long long)in->bytes,
            v->name ? v->name : "a buffer",
            tir_type_text(m->cx->scratch, tir_type_with_layout(m->f->module->types, v->type, NULL))
                .ptr);
    }
    return false;
}

enum tir_change tir_pass_memory(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) all = {0};
    const uint32_t *uses = tir_count_uses(cx->scratch, f);
    tir_foreach_inst(inst, f)
        vec_push(cx->scratch, &all, inst);
    vec_foreach(struct tir_inst *, it, &all)
        if ((*it)->op == TIR_OP_ATOMIC)
            add_atomic_scratch(f, *it, uses[(*it)->results[0]->id] > 0);
        else
            add_scratch(f, *it);

    struct memory m = {.f = f, .cx = cx};
    f->shared_bytes = 0;
    find_intervals(&m);
    if (!m.buffers.len)
        return TIR_UNCHANGED;
    gather_scopes(&m);
    take_turns(&m);
    place_within(&m, cx->target->shared_per_cta);
    place_scoped(&m);
    tell_shared(&m);
    if (!check_limit(&m, cx->target->shared_per_cta))
        return TIR_FAILED;
    return TIR_CHANGED;
}
