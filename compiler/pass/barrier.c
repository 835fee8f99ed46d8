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
// Walks the program once in order with the accesses made since the last barrier, as byte ranges of
// shared memory where memory placed them (so reuse of space counts) and as whole tensors in global
// memory. A barrier goes before an operation that conflicts with one of them. A loop's body is
// walked with what its own end may leave added to what enters it; where only what enters it needs
// order, the barrier goes in front of the loop. A write by copy_async counts as made when it is
// issued, for what came before it, and as visible only after its wait_group: the wait turns it into
// an ordinary write that still needs a barrier before other threads read it.
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

struct barriers {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    struct tir_ranges *ranges;
    const uint32_t *uses; // by value id
    bool by_hand;         // the program orders its own scalar accesses
    bool dry;             // walk only: insert nothing
    bool needed;          // by an operation seen in a dry walk
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

static bool conflicts(const struct barriers *b, const struct state *s, const struct range *r)
{
    vec_foreach(const struct range, p, &s->pending) {
        if (!overlap(p, r) || p->access == IN_FLIGHT || (p->access == READ && r->access == READ))
            continue;
        if (p->by == r->by && r->by->op == TIR_OP_STORE && keeps_elements(b, r->by))
            continue;
        if (p->access == UPDATE && r->access == UPDATE && any_order(b, p->by, r->by))
            continue;
        return true;
    }
    return false;
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

// After a barrier only copies in flight remain.
static void clear(struct state *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pending.len; i++)
        if (s->pending.at[i].access == IN_FLIGHT)
            s->pending.at[kept++] = s->pending.at[i];
    s->pending.len = kept;
}

static void synchronize(struct barriers *b, struct state *s, struct tir_inst *before)
{
    b->needed = true;
    if (!b->dry) {
        struct tir_builder build = tir_builder_before(b->f, before);
        tir_build(&build, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
        b->changed = true;
    }
    clear(s);
}

static void order(struct barriers *b, struct state *s, struct tir_inst *before, struct range r)
{
    if (conflicts(b, s, &r))
        synchronize(b, s, before);
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
    clear(s);
    add(b, s, range_of(inst, scratch, READ));
}

static void walk(struct barriers *b, struct tir_block *block, struct state *s);

static void walk_body(struct barriers *b, struct tir_inst *loop, struct state *s)
{
    for (uint32_t r = 0; r < loop->region_count; r++)
        walk(b, loop->regions[r], s);
}

// What the end of the body leaves for its start is added to what enters the loop. True: some
// operation of the body then needs a barrier in front of it.
static bool enter_loop(struct barriers *b, struct tir_inst *loop, struct state *s)
{
    bool dry = b->dry, needed = b->needed;
    b->dry = true;
    for (uint32_t round = 0; round < 3; round++) { // the third finds nothing new, and judges
        struct state probe = copy_of(b, s);
        b->needed = false;
        walk_body(b, loop, &probe);
        join(b, s, &probe);
    }
    bool inside = b->needed;
    b->dry = dry;
    b->needed = needed;
    return inside;
}

static void walk_loop(struct barriers *b, struct tir_inst *loop, struct state *s)
{
    struct state entered = copy_of(b, s), synchronized = copy_of(b, s);
    clear(&synchronized);
    if (enter_loop(b, loop, &entered) && !enter_loop(b, loop, &synchronized)) {
        synchronize(b, s, loop); // once in front of the loop instead of in each iteration
        entered = synchronized;
    }
    *s = copy_of(b, &entered);
    walk_body(b, loop, s);
    join(b, s, &entered);
}

static void walk_inst(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    switch (inst->op) {
    case TIR_OP_BAR_SYNC:
        clear(s);
        break;
    case TIR_OP_WAIT_GROUP:
        vec_foreach(struct range, p, &s->pending)
            if (p->access == IN_FLIGHT)
                p->access = WRITE;
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
        if (!tir_attr_int(inst, TIR_ATTR_persistent, 0)) { // one tile a CTA
            walk(b, inst->regions[0], s);
            break;
        }
        walk_loop(b, inst, s);
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
    struct state s = {{0}};
    walk(&b, f->body, &s);
    return b.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
