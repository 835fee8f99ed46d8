// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// barrier: orders every conflicting pair of accesses to memory that threads share.
//
//     store(buf[0:+64, 0:+64], x);
//     let d: f32[64, 64] in M = dot(buf, other, acc);
// becomes
//     store(buf[0:+64, 0:+64], x);
//     bar_sync();
//     let d: f32[64, 64] in M = dot(buf, other, acc);
//
// Walks the program in order with the accesses made since the last barrier, as byte ranges of
// shared memory where memory placed them (so reuse of space counts) and as whole tensors in global
// memory. A barrier goes before an operation that conflicts with one of them, or before the loops
// around it that the other access is not in: once instead of in each iteration. What a loop's end
// may leave for its start is found by walking until nothing is added. A write by copy_async counts
// as made when it is issued, for what came before it, and as visible only after its wait_group: the
// wait turns it into an ordinary write that still needs a barrier before other threads read it.
//
// Reading a buffer while a copy to it is in flight is not a conflict here: the pipeline keeps slots
// apart, and the emulator checks it. In a kernel that speaks of single threads, scalar accesses are
// the programmer's to order; only what whole tiles touch is looked at.

#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/shared.h"

enum access { READ, WRITE, UPDATE, IN_FLIGHT }; // UPDATE: by an atomic

struct range {
    enum access access;
    const struct tir_value *tensor; // global; NULL: shared memory
    const struct tir_inst *by;
    int64_t begin, end; // bytes of shared memory
};

struct state {
    VEC(struct range) pending;
};

struct loop {
    struct state back;        // what its end leaves for its start
    struct tir_inst *barrier; // this loop or one around it, got a barrier in front; NULL: none did
};

struct barriers {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    const uint32_t *uses; // by value id
    bool by_hand;         // the program orders its own scalar accesses
    struct tir_map loops; // instruction -> struct loop *
    bool dry;             // walk only: insert nothing
    bool grown;           // in this walk some loop's end left more than before
    bool changed;
};

static struct range range_of(const struct tir_inst *by, struct tir_value *buffer,
                             enum access access)
{
    struct tir_value *root = tir_buffer_root(buffer);
    if (root->type->space == TIR_SPACE_GLOBAL)
        return (struct range){access, root, by, 0, 1};
    int64_t begin = tir_attr_int(root->def, TIR_ATTR_offset, 0);
    return (struct range){access, NULL, by, begin, begin + tir_buffer_bytes(root->type)};
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->tensor == b->tensor && a->begin < b->end && b->begin < a->end;
}

// Does every start of the slice that inst names stay the same, or move by whole slices?
static bool moves_by_slices(const struct barriers *b, const struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++) {
        uint64_t divisor = tir_range_divisor(b->ranges, tir_ref_indices(inst)[d]);
        if (box->list[d] < 0 || (box->list[d] > 0 && divisor % (uint64_t)box->list[d]))
            return false;
    }
    return true;
}

// Does a store in a loop give each thread the same elements in every round, as far as rounds touch
// the same ones?
static bool keeps_elements(const struct barriers *b, const struct tir_inst *store)
{
    bool keeps = moves_by_slices(b, store);
    const struct tir_inst *of = tir_ref_base(store)->def;
    while (keeps && of && (of->op == TIR_OP_VIEW || of->op == TIR_OP_PERMUTE)) {
        bool is_view = of->op == TIR_OP_VIEW;
        keeps = !is_view || moves_by_slices(b, of);
        of = is_view ? tir_ref_base(of)->def : of->operands[0]->def;
    }
    return keeps;
}

// Atomics of one kind give the same in any order, except to who looks at the old values.
static bool any_order(const struct barriers *b, const struct tir_inst *x, const struct tir_inst *y)
{
    enum tir_word kind = tir_attr_word(x, TIR_ATTR_kind, TIR_WORD_NONE);
    return kind == tir_attr_word(y, TIR_ATTR_kind, TIR_WORD_NONE) &&
           kind != TIR_WORD_kind_exchange && !b->uses[x->results[0]->id] &&
           !b->uses[y->results[0]->id];
}

static bool conflict(const struct barriers *b, const struct range *p, const struct range *r)
{
    if (!overlap(p, r) || p->access == IN_FLIGHT || (p->access == READ && r->access == READ))
        return false;
    if (p->by == r->by && r->by->op == TIR_OP_STORE && keeps_elements(b, r->by))
        return false;
    return p->access != UPDATE || r->access != UPDATE || !any_order(b, p->by, r->by);
}

static void add(struct barriers *b, struct state *s, struct range r)
{
    vec_foreach(const struct range, p, &s->pending)
        if (p->access == r.access && p->tensor == r.tensor && p->by == r.by &&
            p->begin == r.begin && p->end == r.end)
            return;
    vec_push(b->cx->scratch, &s->pending, r);
}

static void join(struct barriers *b, struct state *into, const struct state *from)
{
    vec_foreach(const struct range, p, &from->pending)
        add(b, into, *p);
}

static struct state copy_of(struct barriers *b, const struct state *s)
{
    struct state out = {{0}};
    join(b, &out, s);
    return out;
}

static bool is_loop(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_FOR || inst->op == TIR_OP_WHILE ||
           (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0));
}

static bool is_inside(const struct tir_inst *inst, const struct tir_inst *loop)
{
    while (inst && inst != loop)
        inst = inst->block->owner;
    return inst;
}

// Where a barrier between the two accesses goes: before inst, or before the outermost loop around
// it that is not around the other.
static struct tir_inst *place_between(const struct tir_inst *other, struct tir_inst *inst)
{
    struct tir_inst *place = inst;
    for (struct tir_inst *up = inst->block->owner; up && !is_inside(other, up);
         up = up->block->owner)
        if (is_loop(up))
            place = up;
    return place;
}

// After a barrier before `place`, which we may be inside of by now, only what is made in there
// remains, and copies in flight.
static void clear(struct state *s, const struct tir_inst *place)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pending.len; i++)
        if (s->pending.at[i].access == IN_FLIGHT ||
            (is_loop(place) && is_inside(s->pending.at[i].by, place)))
            s->pending.at[kept++] = s->pending.at[i];
    s->pending.len = kept;
}

static void order(struct barriers *b, struct state *s, struct tir_inst *before, struct range r)
{
    struct tir_inst *place = NULL; // behind all that r conflicts with: the innermost
    vec_foreach(const struct range, p, &s->pending) {
        if (!conflict(b, p, &r))
            continue;
        struct tir_inst *here = place_between(p->by, before);
        if (!place || is_inside(here, place))
            place = here;
    }
    if (!place)
        return;
    for (struct tir_inst *up = before; up != place; up = up->block->owner) {
        struct loop *loop = tir_map_get(&b->loops, tir_map_key(up->block->owner));
        if (loop && (!loop->barrier || is_inside(place, loop->barrier)))
            loop->barrier = place;
    }
    if (!b->dry) {
        struct tir_builder build = tir_builder_before(b->f, place);
        tir_build(&build, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
        b->changed = true;
    }
    clear(s, place);
}

static void access(struct barriers *b, struct state *s, struct tir_inst *inst,
                   struct tir_value *buffer, enum access kind)
{
    if (buffer->type->space == TIR_SPACE_LOCAL)
        return;
    struct range r = range_of(inst, buffer, kind);
    order(b, s, inst, r);
    add(b, s, r);
}

static bool is_ours(const struct barriers *b, const struct tir_value *moved)
{
    return !b->by_hand || tir_type_is_tile(moved->type);
}

// Scratch is written, then comes a barrier of the operation's own, then it is read.
static void through_scratch(struct barriers *b, struct state *s, struct tir_inst *inst,
                            struct tir_value *scratch)
{
    if (!scratch)
        return;
    order(b, s, inst, range_of(inst, scratch, WRITE));
    clear(s, inst);
    add(b, s, range_of(inst, scratch, READ));
}

static void walk(struct barriers *b, struct tir_block *block, struct state *s);

static void walk_loop(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    struct loop *loop = tir_map_get(&b->loops, tir_map_key(inst));
    if (!loop) {
        loop = arena_new(b->cx->scratch, struct loop);
        tir_map_set(&b->loops, tir_map_key(inst), loop);
    }
    loop->barrier = NULL;
    join(b, s, &loop->back);
    struct state body = copy_of(b, s);
    for (uint32_t r = 0; r < inst->region_count; r++)
        walk(b, inst->regions[r], &body);
    uint32_t before = loop->back.pending.len;
    join(b, &loop->back, &body);
    b->grown |= loop->back.pending.len > before;
    if (loop->barrier)
        clear(s, loop->barrier);
    join(b, s, &body); // what was in s too: the loop may run no iteration
}

static void walk_inst(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    switch (inst->op) {
    case TIR_OP_BAR_SYNC:
        clear(s, inst);
        break;
    case TIR_OP_WAIT_GROUP:
        vec_foreach(struct range, p, &s->pending)
            if (p->access == IN_FLIGHT) {
                p->access = WRITE;
                p->by = inst;
            }
        break;
    case TIR_OP_LOAD:
        if (is_ours(b, inst->results[0]))
            access(b, s, inst, tir_ref_base(inst), READ);
        break;
    case TIR_OP_STORE:
        if (is_ours(b, inst->operands[TIR_STORE_VALUE]))
            access(b, s, inst, tir_ref_base(inst), WRITE);
        break;
    case TIR_OP_ATOMIC:
        if (is_ours(b, inst->operands[TIR_STORE_VALUE]))
            access(b, s, inst, tir_ref_base(inst), UPDATE);
        through_scratch(b, s, inst, inst->operands[TIR_ATOMIC_SCRATCH]);
        break;
    case TIR_OP_DOT: {
        // Both before either is noted: a barrier for b comes before the read of a as well.
        struct range ra = range_of(inst, inst->operands[TIR_DOT_A], READ);
        struct range rb = range_of(inst, inst->operands[TIR_DOT_B], READ);
        order(b, s, inst, ra);
        order(b, s, inst, rb);
        add(b, s, ra);
        add(b, s, rb);
        break;
    }
    case TIR_OP_COPY_ASYNC: {
        struct range r = range_of(inst, inst->operands[TIR_COPY_TO], WRITE);
        order(b, s, inst, r);
        r.access = IN_FLIGHT;
        add(b, s, r);
        break;
    }
    case TIR_OP_CONVERT_LAYOUT:
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
        through_scratch(b, s, inst, inst->operands[TIR_REDUCE_SCRATCH]);
        break;
    case TIR_OP_TILES:
        if (is_loop(inst))
            walk_loop(b, inst, s);
        else
            walk(b, inst->regions[0], s);
        break;
    case TIR_OP_FOR:
    case TIR_OP_WHILE:
        walk_loop(b, inst, s);
        break;
    case TIR_OP_IF: {
        struct state other = copy_of(b, s);
        walk(b, inst->regions[0], s);
        walk(b, inst->regions[1], &other);
        join(b, s, &other);
        break;
    }
    default:
        break;
    }
}

static void walk(struct barriers *b, struct tir_block *block, struct state *s)
{
    tir_foreach_inst_safe(inst, block)
        walk_inst(b, inst, s);
}

enum tir_change tir_pass_barrier(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct barriers b = {.f = f,
                         .cx = cx,
                         .ranges = tir_ranges_new(cx->scratch, f),
                         .uses = tir_count_uses(cx->scratch, f)};
    tir_foreach_inst(inst, f)
        b.by_hand |= tir_has_trait(inst, TIR_THREAD) || inst->op == TIR_OP_BAR_SYNC;
    tir_map_init(&b.loops, cx->scratch);
    b.dry = true;
    do {
        struct state s = {{0}};
        b.grown = false;
        walk(&b, f->body, &s);
    } while (b.grown);
    b.dry = false;
    struct state s = {{0}};
    walk(&b, f->body, &s);
    return b.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
