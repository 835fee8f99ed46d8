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
// and buffers of two roles are always live at the same time. mbarriers live for ever. Buffers are
// placed largest first, each at the lowest address that no live buffer occupies. Swizzled buffers
// are aligned to their pattern (1,024 bytes), those of tensor copies to 128, mbarriers to 8, others
// to 16. The barrier pass orders reuse: it works on the bytes placed here.

#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/pass.h"
#include "pass/sync/crew.h"
#include "pass/sync/shared.h"

struct interval {
    struct tir_inst *alloc;
    const struct tir_inst *role; // that the alloc is in, or NULL
    int64_t begin, end;          // program positions, inclusive
    int64_t bytes, offset, alignment;
};

struct memory {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    VEC(struct interval) buffers;
};

static struct tir_value *build_scratch(struct tir_func *f, struct tir_inst *inst,
                                       enum tir_elem elem, uint32_t rank, const int64_t *shape,
                                       uint32_t swizzle)
{
    struct tir_builder b = tir_builder_before(f, inst);
    struct tir_type t = {.elem = elem, .space = TIR_SPACE_SHARED, .rank = rank};
    memcpy(t.shape, shape, rank * sizeof(*shape));
    t.layout = tir_layout_memory(f->module->types, rank, shape, tir_elems[elem].bits, swizzle);
    struct tir_value *v = tir_build1(&b, TIR_OP_ALLOC, tir_type_get(f->module->types, &t), NULL, 0);
    v->name = tir_intern_cstr(f->module->names, "scratch");
    return v;
}

static void add_atomic_scratch(struct tir_func *f, struct tir_inst *inst, bool used)
{
    static const int64_t one[] = {1};
    const struct tir_type *t = inst->results[0]->type;
    if (tir_atomic_shares(f, inst, used))
        inst->operands[TIR_ATOMIC_SCRATCH] =
            build_scratch(f, inst, t->elem, TIR_MAX(t->rank, 1), t->rank ? t->shape : one, 0);
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
        int64_t row = x->shape[x->rank - 1] * tir_elems[x->elem].bits / 8;
        uint32_t swizzle = x->rank >= 2 && row % 128 == 0 ? 128 : 0;
        inst->operands[TIR_REDUCE_SCRATCH] =
            build_scratch(f, inst, x->elem, x->rank, x->shape, swizzle);
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
    inst->operands[TIR_REDUCE_SCRATCH] = build_scratch(f, inst, elem, 2, shape, 0);
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
                          .bytes = tir_buffer_bytes(t),
                          .alignment = t->layout ? tir_layout_alignment(t->layout) : 16};
    if (t->elem == TIR_MBARRIER) {
        in.begin = 0;
        in.end = INT64_MAX;
        in.alignment = 8;
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
                if (is_engine_copy(inst) && root->type->elem != TIR_MBARRIER)
                    in->alignment = TIR_MAX(in->alignment, 128);
            }
        }
    }
}

static bool is_small_scratch(const struct interval *in)
{
    const struct tir_inst *user = in->alloc->next;
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

static bool alive_together(const struct interval *a, const struct interval *b)
{
    bool in_two_roles = a->role && b->role && a->role != b->role;
    return in_two_roles || (a->begin <= b->end && b->begin <= a->end);
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
    for (uint32_t i = 0; i < count; i++) {
        struct interval *in = order[i];
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t j = 0; j < i; j++) {
                const struct interval *other = order[j];
                bool overlap = in->offset < other->offset + other->bytes &&
                               other->offset < in->offset + in->bytes;
                if (overlap && alive_together(in, other)) {
                    in->offset = (int64_t)tir_align_up((uint64_t)(other->offset + other->bytes),
                                                       (uint64_t)in->alignment);
                    moved = true;
                }
            }
        }
        tir_set_int(m->f, in->alloc, TIR_ATTR_offset, in->offset);
        m->f->shared_bytes = TIR_MAX(m->f->shared_bytes, in->offset + in->bytes);
    }
}

static bool check_limit(struct memory *m)
{
    int64_t limit = m->cx->target->shared_per_cta;
    if (m->f->shared_bytes <= limit)
        return true;
    tir_error_at(m->cx->diags, m->f->span, TIR_E_SHARED_LIMIT,
                 "kernel %s needs %lld bytes of shared memory, %s has %lld", m->f->name,
                 (long long)m->f->shared_bytes, m->cx->target->name, (long long)limit);
    vec_foreach(struct interval, in, &m->buffers) {
        const struct tir_value *v = in->alloc->results[0];
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
    take_turns(&m);
    place(&m);
    if (!check_limit(&m))
        return TIR_FAILED;
    return TIR_CHANGED;
}
