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
// Each role is walked on its own, with a named barrier of its threads. Accesses before the roles
// are ordered before all of them, for the whole CTA. Accesses of two roles are not ordered here:
// only rings and the programmer's mbarriers connect roles.
//
// Asynchronous engines (tensor copies, gemm_async) see memory through another proxy, and read on
// after they were started:
// - an ordinary write that they read or overwrite later needs fence(of = async_shared) in front of
//   the barrier, so ordinary writes are remembered beyond a barrier that had no fence;
// - they are awaited before memory that they read is written again: wait_group of wgmma by all
//   threads, wait_group(read) of tma by the thread that stored, then a barrier;
// - before a tensor copy stores where one before it may have, that one is waited for: they may end
//   in any order (barrier_places.c);
// - if no commit_group follows a store_async in its block, one thread of the role must start it:
//   the pass makes it `if leader { store_async(...); commit_group(engine = tma); }`, where the
//   leader is the role's first thread, and adds a wait at the end of the role. A store_async with
//   a commit_group is left to the programmer.
// Mbarriers hand over buffers that copy_async with an mbarrier writes or that two roles use, so
// accesses by these engines to the same buffer are already ordered. Accesses to two buffers in the
// same bytes are not.
//
// Reading a buffer while a copy to it is in flight is not a conflict here: the pipeline keeps slots
// apart, and the emulator checks it. An unknown operation with a shared buffer among its operands
// counts as writing it.
//
// A kernel that has a grid, or uses threads or barriers, orders its own accesses: nothing is put
// between two accesses to a buffer that the front end marked by_hand, or to a tensor; sync_check
// reports missing order. Scratch and staging buffers of passes, and bytes that two buffers share,
// are still ordered here.

#include "pass/sync/barrier.h"
#include "ir/follow.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/sync/crew.h"
#include "pass/sync/shared.h"

// UPDATE: by an atomic. PRODUCT, STORED: read by gemm_async or store_async, which may not be done;
// STORING: a tensor that store_async may still be writing.
enum access { READ, WRITE, UPDATE, IN_FLIGHT, PRODUCT, STORED, STORING };

enum need {
    NEED_BARRIER = 1,
    NEED_FENCE = 2,
    NEED_PRODUCTS = 4,
    NEED_STORES = 8,
    NEED_STORING = 16
};

#define MAX_AGE 7

struct range {
    enum access access;
    const struct tir_value *tensor; // global; NULL: shared memory
    const struct tir_value *root;   // the buffer
    const struct tir_inst *by;
    int64_t begin, end; // bytes of shared memory
    bool async;         // by an engine, through its own proxy
    bool by_hand;       // declared by a program that orders its accesses
    bool synced;        // a barrier followed; it is only kept because no fence did
    bool fenced;        // a fence followed
    int32_t age;        // of an engine's access: groups that were committed after its own; -1: its
                        // own was not
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
    const uint32_t *uses;       // by value id
    struct tir_follow uniform;  // is a value the same in all threads?
    bool by_hand;               // the program orders its own accesses
    bool engines;               // something accesses shared memory through another proxy
    struct tir_map handed_over; // buffers whose uses by engines are ordered by mbarriers
    struct tir_map loops;       // instruction -> struct loop *
    struct tir_crew cta, crew;  // all threads; those that run what is walked
    struct tir_value *leader;   // of the crew, once it was asked for
    struct tir_block *crew_block;
    struct tir_inst *first_role; // NULL: none
    struct tir_inst *branch;     // outermost branch of single threads that we are in; NULL: none
    bool stored;                 // the crew has started a store_async
    uint32_t before_roles;       // what was put in front of the roles
    bool dry;                    // walk only: insert nothing
    bool grown;                  // in this walk some loop's end left more than before
    bool changed, failed;
};

static bool is_by_hand(const struct tir_value *root)
{
    return root->def && tir_attr_int(root->def, TIR_ATTR_by_hand, 0);
}

static struct range range_of(const struct barriers *b, const struct tir_inst *by,
                             struct tir_value *buffer, enum access access)
{
    struct tir_value *root = tir_buffer_root(buffer);
    struct range r = {.access = access, .root = root, .by = by, .end = 1, .age = -1};
    if (root->type->space == TIR_SPACE_GLOBAL) {
        r.tensor = root;
        r.by_hand = b->by_hand;
        return r;
    }
    struct tir_bytes part = tir_buffer_part(buffer);
    r.by_hand = is_by_hand(root);
    int64_t offset = root->def ? tir_attr_int(root->def, TIR_ATTR_offset, 0) : 0;
    r.begin = offset + part.begin;
    r.end = offset + part.end;
    return r;
}

static struct range range_of_slice(const struct barriers *b, const struct tir_inst *by,
                                   enum access access)
{
    struct range r = range_of(b, by, tir_ref_base(by), access);
    if (r.tensor)
        return r;
    struct tir_bytes whole = tir_buffer_part(tir_ref_base(by)), part = tir_slice_part(by);
    r.begin += part.begin - whole.begin;
    r.end += part.end - whole.end;
    return r;
}

static struct range range_of_engine(const struct barriers *b, const struct tir_inst *by,
                                    struct tir_value *buffer, enum access access)
{
    struct range r = range_of(b, by, buffer, access);
    r.async = true;
    return r;
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->tensor == b->tensor && a->begin < b->end && b->begin < a->end;
}

// Atomics of one kind give the same result in any order, unless their old values are used.
static bool any_order(const struct barriers *b, const struct tir_inst *x, const struct tir_inst *y)
{
    enum tir_word kind = tir_attr_word(x, TIR_ATTR_kind, TIR_WORD_NONE);
    return kind == tir_attr_word(y, TIR_ATTR_kind, TIR_WORD_NONE) &&
           kind != TIR_WORD_kind_exchange && !b->uses[x->results[0]->id] &&
           !b->uses[y->results[0]->id];
}

static bool is_read(enum access access)
{
    return access == READ || access == PRODUCT || access == STORED;
}

static bool is_inside(const struct tir_inst *inst, const struct tir_inst *outer)
{
    while (inst && inst != outer)
        inst = inst->block->owner;
    return inst;
}

// Was p made before the roles, one of which we are in?
static bool is_older_than_role(const struct barriers *b, const struct range *p)
{
    return b->crew.role && !is_inside(p->by, b->crew.role);
}

// The synchronisation needed between p, which came first, and r: enum need.
static uint32_t needs(const struct barriers *b, const struct range *p, const struct range *r)
{
    if (!overlap(p, r) || p->access == IN_FLIGHT || (is_read(p->access) && is_read(r->access)))
        return 0;
    if (p->by_hand && r->by_hand && p->root == r->root)
        return 0; // memory may have put other buffers in these bytes: that is not the program's
    if ((p->async || r->async) && p->root == r->root && !p->tensor && !is_older_than_role(b, p) &&
        tir_map_get(&b->handed_over, tir_map_key(p->root)))
        return 0;
    if (p->access == PRODUCT)
        return NEED_PRODUCTS | NEED_BARRIER;
    if (p->access == STORED)
        return NEED_STORES | NEED_BARRIER;
    if (p->access == STORING)
        return r->access == STORING && tir_stores_in_any_order(p->by, r->by)
                   ? 0
                   : NEED_STORING | NEED_BARRIER;
    if (!is_older_than_role(b, p) && tir_same_writers(b->ranges, p->by, r->by))
        return 0;
    if (p->access == UPDATE && r->access == UPDATE && any_order(b, p->by, r->by))
        return 0;
    if (r->async && !p->async && !p->fenced && p->access != READ)
        return NEED_FENCE | NEED_BARRIER;
    return p->synced ? 0 : NEED_BARRIER;
}

// Do p and r, which are alike but for what makes them, need the same in front of all that follows?
// Then one is enough: a program may have very many.
static bool same_makers(const struct barriers *b, const struct range *p, const struct range *r)
{
    if (p->by == r->by)
        return true;
    if (p->by->block != r->by->block)
        return false;
    switch ((int)p->access) {
    case READ:
        return true;
    case WRITE:
        return tir_same_writers(b->ranges, p->by, r->by);
    case UPDATE:
        return any_order(b, p->by, r->by);
    default:
        return false;
    }
}

static bool add(struct barriers *b, struct state *s, struct range r)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->access == r.access && p->tensor == r.tensor && p->root == r.root &&
            p->begin == r.begin && p->end == r.end && p->async == r.async &&
            p->synced == r.synced && p->fenced == r.fenced && p->by_hand == r.by_hand &&
            same_makers(b, p, &r)) {
            bool younger = r.age < p->age;
            p->age = TIR_MIN(p->age, r.age);
            return younger;
        }
    vec_push(b->cx->scratch, &s->pending, r);
    return true;
}

static bool join(struct barriers *b, struct state *into, const struct state *from)
{
    bool grown = false;
    vec_foreach(const struct range, p, &from->pending)
        grown |= add(b, into, *p);
    return grown;
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

// Was p made in front of `place`, which we may be inside of by now, by threads that wait at a
// barrier there?
static bool is_behind(const struct barriers *b, const struct range *p, const struct tir_inst *place)
{
    if (is_loop(place) && is_inside(p->by, place))
        return false;
    return !b->crew.role || (place == b->first_role) != is_inside(p->by, b->crew.role);
}

// A fence by all threads in front of `place`.
static void fence(const struct barriers *b, struct state *s, const struct tir_inst *place)
{
    vec_foreach(struct range, p, &s->pending)
        if (is_behind(b, p, place))
            p->fenced = true;
}

// After a wait for all but `groups` of what this access stands for, it is an ordinary one.
static void finish(const struct barriers *b, struct state *s, const struct tir_inst *place,
                   enum access access, int64_t groups)
{
    vec_foreach(struct range, p, &s->pending)
        if (p->access == access && p->age >= groups && is_behind(b, p, place))
            p->access = access == STORING ? WRITE : READ;
}

static bool is_ordinary(const struct range *p)
{
    return p->access == READ || p->access == WRITE || p->access == UPDATE;
}

// After a barrier before `place`, three kinds of accesses remain: those that follow it, those of
// engines in flight, and ordinary writes that an engine may not see yet.
static void clear(const struct barriers *b, struct state *s, const struct tir_inst *place)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pending.len; i++) {
        struct range *p = &s->pending.at[i];
        bool ordered = is_ordinary(p) && is_behind(b, p, place);
        bool unseen = b->engines && p->access != READ && !p->async && !p->fenced;
        if (ordered && !unseen)
            continue;
        p->synced |= ordered;
        s->pending.at[kept++] = *p;
    }
    s->pending.len = kept;
}

// Inserting.

static struct tir_value *leader_of(struct barriers *b)
{
    if (!b->leader) { // at the top of the crew's block, for all of it
        struct tir_builder top = tir_builder_before(b->f, b->crew_block->first);
        b->leader = tir_build_is_leader(&top, &b->crew);
        b->leader->name = tir_intern_cstr(b->f->module->names, "leader");
    }
    return b->leader;
}

static struct tir_inst *build_wait(struct tir_builder *b, enum tir_word engine, int64_t groups)
{
    struct tir_inst *wait = tir_build(b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_word(b->f, wait, TIR_ATTR_engine, engine);
    tir_set_int(b->f, wait, TIR_ATTR_groups, groups);
    return wait;
}

static bool has_named_barrier(struct barriers *b)
{
    if (!b->crew.role || b->crew.number + 1 < TIR_NAMED_BARRIERS)
        return true;
    if (!b->failed)
        tir_error_at(
            b->cx->diags, b->crew.role->span, TIR_E_LIMIT,
            "kernel %s: this role needs a named barrier; there are %d, for the CTA and the "
            "first %d roles",
            b->f->name, TIR_NAMED_BARRIERS, TIR_NAMED_BARRIERS - 1);
    b->failed = true;
    return false;
}

static void insert(struct barriers *b, struct tir_inst *place, uint32_t need, int64_t groups,
                   bool of_tensor)
{
    struct tir_builder build = tir_builder_before(b->f, place);
    bool of_cta = place == b->first_role;
    b->changed = true;
    if (need & NEED_PRODUCTS)
        build_wait(&build, TIR_WORD_engine_wgmma, 0);
    if (need & (NEED_STORES | NEED_STORING)) {
        struct tir_value *leader = of_cta ? tir_build_is_leader(&build, &b->cta) : leader_of(b);
        struct tir_builder in = tir_build_if(&build, leader);
        struct tir_inst *wait = build_wait(&in, TIR_WORD_engine_tma, groups);
        if (!(need & NEED_STORING))
            tir_set_int(b->f, wait, TIR_ATTR_read, 1);
    }
    if (need & NEED_FENCE) {
        struct tir_inst *inst = tir_build(&build, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
        tir_set_word(b->f, inst, TIR_ATTR_of,
                     of_tensor ? TIR_WORD_of_async : TIR_WORD_of_async_shared);
    }
    if (of_cta || has_named_barrier(b))
        tir_build_crew_barrier(&build, of_cta ? &b->cta : &b->crew);
}

// What a barrier and what came with it, in front of `place`, has ordered.
static void settle(const struct barriers *b, struct state *s, const struct tir_inst *place,
                   uint32_t need, int64_t groups)
{
    if (need & NEED_PRODUCTS)
        finish(b, s, place, PRODUCT, 0);
    if (need & (NEED_STORES | NEED_STORING))
        finish(b, s, place, STORED, groups);
    if (need & NEED_STORING)
        finish(b, s, place, STORING, groups);
    if (need & NEED_FENCE)
        fence(b, s, place);
    clear(b, s, place);
}

// Puts between r, of an instruction at `before`, and what is pending what they need: of what was
// made before the roles, or of the rest.
static void order_part(struct barriers *b, struct state *s, struct tir_inst *before,
                       const struct range *r, bool before_roles)
{
    if (!tir_meter_take(b->cx->meter, s->pending.len)) {
        b->failed = true;
        return;
    }
    struct tir_inst *place = NULL; // after all that r conflicts with: the innermost
    uint32_t need = 0;
    int64_t groups = MAX_AGE;
    vec_foreach(const struct range, p, &s->pending) {
        uint32_t these = is_older_than_role(b, p) == before_roles ? needs(b, p, r) : 0;
        if (!these)
            continue;
        need |= these;
        if (these & (NEED_STORES | NEED_STORING))
            groups = TIR_MIN(groups, TIR_MAX(p->age, 0));
        struct tir_inst *here = before_roles ? b->first_role : place_between(p->by, before);
        if (!place || is_inside(here, place))
            place = here;
    }
    if (!need)
        return;
    for (struct tir_inst *up = before; up != place && up->block->owner; up = up->block->owner) {
        struct loop *loop = tir_map_get(&b->loops, tir_map_key(up->block->owner));
        if (loop && !before_roles && (!loop->barrier || is_inside(place, loop->barrier)))
            loop->barrier = place;
    }
    groups = place == before ? groups : 0; // they may be younger in front of a loop
    if (!b->dry)
        insert(b, place, need, groups, r->tensor);
    settle(b, s, place, need, groups);
    b->before_roles |= before_roles ? need : 0;
}

static void order(struct barriers *b, struct state *s, struct tir_inst *inst, struct range r)
{
    struct tir_inst *before = b->branch ? b->branch : inst;
    if (before->op == TIR_OP_GEMM_ASYNC && before->prev && before->prev->op == TIR_OP_FENCE)
        before = before->prev; // fence(of = wgmma) stays at its product
    if (b->crew.role)
        order_part(b, s, before, &r, true);
    order_part(b, s, before, &r, false);
}

// The slice that inst names is loaded, stored or updated.
static void access(struct barriers *b, struct state *s, struct tir_inst *inst, enum access kind)
{
    enum tir_space space = tir_ref_base(inst)->type->space;
    if (space != TIR_SPACE_SHARED && space != TIR_SPACE_GLOBAL)
        return;
    struct range r = range_of_slice(b, inst, kind);
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
    struct range r = range_of(b, inst, scratch, WRITE);
    order(b, s, inst, r);
    if (!b->dry)
        has_named_barrier(b); // lower_tile uses it
    clear(b, s, inst);
    if (b->engines) {
        r.synced = true;
        add(b, s, r);
    }
    add(b, s, range_of(b, inst, scratch, READ));
}

// Operations of engines.

// Both before either is noted: a barrier for b comes before the read of a as well.
static void walk_product(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    bool async = inst->op == TIR_OP_GEMM_ASYNC;
    struct range reads[2];
    uint32_t count = 0;
    for (uint32_t i = TIR_DOT_A; i <= TIR_DOT_B; i++)
        if (tir_type_is_buffer(inst->operands[i]->type)) {
            reads[count] = range_of(b, inst, inst->operands[i], READ);
            reads[count++].async = async;
        }
    for (uint32_t i = 0; i < count; i++)
        order(b, s, inst, reads[i]);
    for (uint32_t i = 0; i < count; i++) {
        reads[i].access = async ? PRODUCT : READ;
        add(b, s, reads[i]);
    }
}

static void walk_copy(struct barriers *b, struct tir_inst *copy, struct state *s)
{
    struct range r = range_of(b, copy, copy->operands[TIR_COPY_TO], WRITE);
    r.async = copy->operands[TIR_COPY_MBAR] != NULL;
    if (r.async)
        order(b, s, copy, range_of_engine(b, copy, tir_ref_base(copy), READ));
    order(b, s, copy, r);
    r.access = IN_FLIGHT;
    add(b, s, r);
}

static bool is_group(const struct tir_inst *inst, enum tir_op op, enum tir_word engine)
{
    return inst->op == op &&
           tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_cp_async) == engine;
}

// Does the program itself close the group that the store_async joins?
static bool is_committed(const struct tir_inst *store)
{
    const struct tir_inst *inst = store->next;
    while (inst && !is_group(inst, TIR_OP_COMMIT_GROUP, TIR_WORD_engine_tma))
        inst = inst->next;
    return inst;
}

static void commit(struct state *s, enum tir_word engine)
{
    vec_foreach(struct range, p, &s->pending) {
        bool stores = p->access == STORED || p->access == STORING;
        if (engine == TIR_WORD_engine_wgmma ? p->access == PRODUCT
                                            : stores && engine == TIR_WORD_engine_tma)
            p->age = TIR_MIN(p->age + 1, MAX_AGE);
    }
}

static void start_once(struct barriers *b, struct tir_inst *store)
{
    struct tir_builder build = tir_builder_before(b->f, store);
    struct tir_builder in = tir_build_if(&build, leader_of(b));
    tir_move_before(store, in.before);
    struct tir_inst *group = tir_build(&in, TIR_OP_COMMIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_word(b->f, group, TIR_ATTR_engine, TIR_WORD_engine_tma);
    b->changed = true;
}

static void walk_store_async(struct barriers *b, struct tir_inst *store, struct state *s)
{
    struct range from = range_of_engine(b, store, store->operands[0], READ);
    struct range to = range_of_engine(b, store, tir_ref_base(store), STORING);
    to.by_hand = from.by_hand;
    bool ours = !from.by_hand && !b->branch && !is_committed(store);
    order(b, s, store, from);
    order(b, s, store, to);
    from.access = STORED;
    add(b, s, from);
    add(b, s, to);
    if (!ours)
        return;
    commit(s, TIR_WORD_engine_tma);
    b->stored = true;
    if (!b->dry)
        start_once(b, store);
}

static void walk_wait(const struct barriers *b, struct tir_inst *wait, struct state *s)
{
    int64_t groups = tir_attr_int(wait, TIR_ATTR_groups, 0);
    if (wait->op == TIR_OP_AWAIT || is_group(wait, TIR_OP_WAIT_GROUP, TIR_WORD_engine_wgmma)) {
        finish(b, s, wait, PRODUCT, groups);
    } else if (is_group(wait, TIR_OP_WAIT_GROUP, TIR_WORD_engine_tma)) {
        finish(b, s, wait, STORED, groups);
        if (!tir_attr_int(wait, TIR_ATTR_read, 0))
            finish(b, s, wait, STORING, groups);
    } else {
        vec_foreach(struct range, p, &s->pending)
            if (p->access == IN_FLIGHT && !p->async) {
                p->access = WRITE;
                p->by = wait;
            }
    }
}

// Blocks.

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
    b->grown |= join(b, &loop->back, &body);
    if (loop->barrier)
        clear(b, s, loop->barrier);
    join(b, s, &body); // what was in s too: the loop may run no iteration
}

// Whether v is the same in all threads of a warp or CTA.
static enum tir_answer is_uniform(void *user, struct tir_value *v)
{
    (void)user;
    if (!v->def || v->def->region_count || tir_type_is_buffer(v->type))
        return TIR_YES;
    return tir_has_trait(v->def, TIR_THREAD) ? TIR_NO : TIR_IF_OPERANDS;
}

// What single threads do in a branch is done behind it: they are the ones that matter.
static void walk_if(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    struct tir_inst *branch = b->branch;
    if (!branch && !tir_follows(&b->uniform, inst->operands[0]))
        b->branch = inst;
    struct state other = copy_of(b, s);
    walk(b, inst->regions[0], s);
    walk(b, inst->regions[1], &other);
    bool is_one_sided = inst->regions[1]->first == tir_yield_of(inst->regions[1]);
    if (!b->branch || !is_one_sided)
        join(b, s, &other);
    b->branch = branch;
}

// In front of the end of the crew's block.
static void finish_stores(struct barriers *b)
{
    if (!b->stored || b->dry)
        return;
    struct tir_builder end = {b->f, b->crew_block, tir_yield_of(b->crew_block), b->f->span};
    struct tir_builder in = tir_build_if(&end, leader_of(b));
    build_wait(&in, TIR_WORD_engine_tma, 0);
}

static void walk_crew(struct barriers *b, struct tir_block *block, struct state *s)
{
    b->crew = tir_crew_of_block(b->f, block);
    b->crew_block = block;
    b->leader = NULL;
    b->stored = false;
    walk(b, block, s);
    finish_stores(b);
}

static void walk_role(struct barriers *b, struct tir_inst *role, const struct state *s)
{
    struct barriers outer = *b;
    struct state own = copy_of(b, s);
    if (b->before_roles)
        settle(b, &own, b->first_role, b->before_roles, 0);
    walk_crew(b, role->regions[0], &own);
    b->crew = outer.crew;
    b->crew_block = outer.crew_block;
    b->leader = outer.leader;
    b->stored = outer.stored;
}

// Not known here: whatever shared memory it names, it may write.
static void walk_unknown(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    if (!tir_has_trait(inst, TIR_READS | TIR_WRITES) || inst->op == TIR_OP_PTX)
        return;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        if (!v || v->type->space != TIR_SPACE_SHARED || v->type->elem == TIR_MBARRIER)
            continue;
        struct range r = range_of(b, inst, v, WRITE);
        order(b, s, inst, r);
        add(b, s, r);
    }
}

static void walk_inst(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    switch (inst->op) {
    case TIR_OP_BAR_SYNC:
        if (tir_is_crew_barrier(inst, &b->crew))
            clear(b, s, inst);
        break;
    case TIR_OP_FENCE: {
        enum tir_word of = tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE);
        if (of == TIR_WORD_of_async_shared || of == TIR_WORD_of_async)
            fence(b, s, inst);
        break;
    }
    case TIR_OP_COMMIT_GROUP:
        commit(s, tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_cp_async));
        break;
    case TIR_OP_WAIT_GROUP:
    case TIR_OP_AWAIT:
        walk_wait(b, inst, s);
        break;
    case TIR_OP_LOAD:
        if (is_ours(b, inst->results[0]))
            access(b, s, inst, READ);
        break;
    case TIR_OP_STORE:
        if (is_ours(b, inst->operands[TIR_STORE_VALUE]))
            access(b, s, inst, WRITE);
        break;
    case TIR_OP_ATOMIC:
        if (is_ours(b, inst->operands[TIR_STORE_VALUE]))
            access(b, s, inst, UPDATE);
        through_scratch(b, s, inst, inst->operands[TIR_ATOMIC_SCRATCH]);
        break;
    case TIR_OP_DOT:
    case TIR_OP_GEMM_ASYNC:
        walk_product(b, inst, s);
        break;
    case TIR_OP_COPY_ASYNC:
        walk_copy(b, inst, s);
        break;
    case TIR_OP_STORE_ASYNC:
        walk_store_async(b, inst, s);
        break;
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
    case TIR_OP_IF:
        walk_if(b, inst, s);
        break;
    case TIR_OP_ROLE:
        walk_role(b, inst, s);
        break;
    default:
        walk_unknown(b, inst, s);
        break;
    }
}

static void walk(struct barriers *b, struct tir_block *block, struct state *s)
{
    tir_foreach_inst_safe(inst, block)
        if (!b->failed)
            walk_inst(b, inst, s);
}

// About the whole kernel.

static void survey(struct barriers *b)
{
    tir_foreach_inst(inst, b->f) {
        b->engines |= inst->op == TIR_OP_GEMM_ASYNC || inst->op == TIR_OP_STORE_ASYNC ||
                      (inst->op == TIR_OP_COPY_ASYNC && inst->operands[TIR_COPY_MBAR]);
        if (inst->op == TIR_OP_ROLE && !b->first_role)
            b->first_role = inst;
    }
    b->by_hand = b->f->grid_count || tir_speaks_of_threads(b->f, b->cx->scratch);
    tir_find_handed_over(b->f, b->cx->scratch, &b->handed_over);
}

static void walk_kernel(struct barriers *b)
{
    struct state s = {{0}};
    b->grown = false;
    b->before_roles = 0;
    walk_crew(b, b->f->body, &s);
}

enum tir_change tir_pass_barrier(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct barriers b = {.f = f,
                         .cx = cx,
                         .ranges = tir_ranges_new(cx->scratch, f),
                         .uses = tir_count_uses(cx->scratch, f),
                         .cta = {.warps = TIR_MAX(f->threads / 32, 1)}};
    tir_follow_init(&b.uniform, cx->scratch, is_uniform, NULL);
    survey(&b);
    tir_map_init(&b.loops, cx->scratch);
    b.dry = true;
    do
        walk_kernel(&b);
    while (b.grown);
    b.dry = false;
    walk_kernel(&b);
    if (b.failed)
        return TIR_FAILED;
    return b.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
