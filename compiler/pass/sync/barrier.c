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
// Each role is walked on its own, with a named barrier of its threads, and so is a scope, with one
// of each group of its warps (warp_sync of a warp). Accesses before the roles are ordered before
// all of them, for the whole CTA. Accesses of two roles are not ordered here: only rings and the
// programmer's mbarriers connect roles.
//
// Asynchronous engines (tensor copies, gemm_async) see memory through another proxy, and read on
// after they were started:
// - an ordinary write that they read or overwrite later needs fence(of = async_shared) in front of
//   the barrier, and so does an ordinary read of what they overwrite: so such accesses are
//   remembered beyond a barrier that had no fence;
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
// An atomic with an ordering hands all tensors on: it counts as a write of each that the kernel
// writes, before it (release) or after it (acquire).
//
// A kernel that has a grid, or uses threads or barriers, orders its own accesses: nothing is put
// between two accesses to a buffer that the front end marked by_hand, or to a tensor; sync_check
// reports missing order. Scratch and staging buffers of passes, and bytes that two buffers share,
// are still ordered here.

#include "pass/sync/barrier.h"

#include "ir/walk.h"

// Is what inst loads, stores or updates so ours to order? A buffer that no program declares always.
static bool is_ours(const struct barriers *b, const struct tir_inst *inst)
{
    const struct tir_value *moved =
        inst->result_count ? inst->results[0] : inst->operands[TIR_STORE_VALUE];
    const struct tir_value *root = tir_buffer_root(tir_ref_base(inst));
    const bool is_made = root->def && root->def->op == TIR_OP_ALLOC &&
                         root->type->space == TIR_SPACE_SHARED &&
                         !tir_buffer_is_by_hand(tir_ref_base(inst));
    return !b->by_hand || tir_type_is_tile(moved->type) || is_made;
}

// Scratch is written, then comes a barrier of the operation's own, then it is read.
static void through_scratch(struct barriers *b, struct state *s, struct tir_inst *inst,
                            const struct tir_effect *effect)
{
    struct tir_value *scratch = tir_effect_buffer(inst, effect);
    struct range r = tir_barrier_range_of(b, inst, scratch, TIR_ACCESS_WRITE);
    tir_barrier_order(b, s, inst, &r);
    if (!b->dry)
        tir_barrier_has_name(b); // lower_tile uses it
    tir_barrier_met(b, s, inst);
    if (b->engines) {
        r.synced = true;
        tir_barrier_add(b, s, r);
    }
    tir_barrier_add(b, s, tir_barrier_range_of(b, inst, scratch, TIR_ACCESS_READ));
}

static void start_once(struct barriers *b, struct tir_inst *store)
{
    struct tir_builder build = tir_builder_before(b->f, store);
    struct tir_builder in = tir_build_if(&build, tir_barrier_leader(b));
    tir_move_before(store, in.before);
    tir_build_group(&in, TIR_OP_COMMIT_GROUP, tir_done_of(store), 0);
    b->changed = true;
}

// An operation that one thread starts, and that nothing committed yet.
static void start(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    tir_barrier_committed(s, tir_done_of(inst));
    b->stored = true;
    if (!b->dry)
        start_once(b, inst);
}

// Tensors that CTAs hand each other: an atomic that releases comes after what the crew did to any
// of them, and one that acquires comes before what it will do.
static void order_tensors(struct barriers *b, struct tir_inst *atomic, struct state *s, bool before)
{
    if (atomic->op != TIR_OP_ATOMIC || b->by_hand)
        return;
    for (uint32_t i = 0; i < b->f->param_count; i++) {
        struct tir_value *v = b->f->params[i].value;
        if (v->type->space != TIR_SPACE_GLOBAL || b->f->params[i].direction == TIR_IN)
            continue;
        struct range r = tir_barrier_range_of(b, atomic, v, TIR_ACCESS_WRITE);
        if (before && tir_releases(atomic))
            tir_barrier_order(b, s, atomic, &r);
        else if (!before && tir_acquires(atomic))
            tir_barrier_add(b, s, r);
    }
}

// What inst does to memory, by the table: all of it is ordered before any is noted, so that a
// barrier for one comes before the others as well.
static void walk_effects(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    const struct tir_done_info *done = &tir_dones[tir_done_of(inst)];
    const bool by_group = done->engine != TIR_WORD_NONE && !done->by_ring;
    struct range ranges[4];
    uint32_t count = 0;
    tir_foreach_effect(e, inst) {
        const enum tir_space space = tir_effect_buffer(inst, e)->type->space;
        const bool moves = e->operand == TIR_SLICE && e->done == TIR_DONE_NOW;
        if (e->access == TIR_ACCESS_EXCHANGE ||
            (space != TIR_SPACE_SHARED && space != TIR_SPACE_GLOBAL) ||
            (moves && !is_ours(b, inst)))
            continue;
        ranges[count] = tir_barrier_range(b, inst, e);
        if (count && by_group && done->by_one)
            ranges[count].by_hand = ranges[0].by_hand; // a tensor, as the buffer that goes there
        count++;
    }
    const bool is_ours = count && done->by_one && by_group && !ranges[0].by_hand && !b->branch &&
                         !tir_is_committed(inst);
    for (uint32_t i = 0; i < count; i++)
        tir_barrier_order(b, s, inst, &ranges[i]);
    order_tensors(b, inst, s, true);
    for (uint32_t i = 0; i < count; i++)
        if (!done->by_ring || ranges[i].access != TIR_ACCESS_READ) // copies read what stays
            tir_barrier_add(b, s, ranges[i]);
    order_tensors(b, inst, s, false);
    tir_foreach_effect(e, inst)
        if (e->access == TIR_ACCESS_EXCHANGE)
            through_scratch(b, s, inst, e);
    if (is_ours)
        start(b, inst, s);
}

static void walk_wait(const struct barriers *b, struct tir_inst *wait, struct state *s)
{
    const enum tir_done done = tir_done_of_group(wait);
    if (done == TIR_DONE_CP_ASYNC)
        tir_barrier_landed(s, wait);
    else
        tir_barrier_finished(b, s, wait, done, tir_attr_int(wait, TIR_ATTR_read, 0),
                             tir_attr_int(wait, TIR_ATTR_groups, 0));
}

// Blocks.

static void walk(struct barriers *b, struct tir_block *block, struct state *s);

static bool is_in_loop(const struct tir_inst *inst)
{
    const struct tir_inst *up = inst->block->owner;
    while (up && !tir_barrier_is_loop(up))
        up = up->block->owner;
    return up;
}

static void walk_loop(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    struct loop *loop = tir_map_get(&b->loops, tir_map_key(inst));
    if (!loop) {
        loop = arena_new(b->cx->scratch, struct loop);
        tir_map_set(&b->loops, tir_map_key(inst), loop);
    }
    loop->barrier = NULL;
    struct state body = tir_barrier_copy_of(b, s), back = tir_barrier_copy_of(b, &loop->back);
    tir_barrier_join(b, &body, &back);
    walk(b, inst->regions[0], &body);
    const bool is_while = inst->op == TIR_OP_WHILE;
    if (is_while) { // it ends after its condition, which comes after the last round
        *s = tir_barrier_copy_of(b, &body);
        walk(b, inst->regions[1], &body);
    }
    tir_barrier_stepped(&body, inst);
    b->grown |= tir_barrier_join(b, &loop->back, &body);
    tir_barrier_left(&body, inst);
    const bool again = is_in_loop(inst); // then it matters where in this one they are
    if (again && !is_while)
        tir_barrier_join(b, s, &back);
    if (loop->barrier)
        tir_barrier_met(b, s, loop->barrier);
    if (!again && is_while) {
        tir_barrier_leave(b, s, inst);
    } else if (!again) {
        tir_barrier_leave(b, &back, inst);
        tir_barrier_leave(b, &body, inst);
        tir_barrier_join(b, s, &back);
    }
    if (!is_while)
        tir_barrier_join(b, s, &body); // what was in s too: the loop may run no iteration
}

// Whether v is the same in all threads of a warp or CTA.
static enum tir_answer is_uniform(void *user, struct tir_value *v)
{
    (void)user;
    if (!v->def || v->def->region_count || tir_type_is_buffer(v->type))
        return TIR_YES;
    return tir_has_trait(v->def, TIR_THREAD) ? TIR_NO : TIR_IF_OPERANDS;
}

// Does a scope's group come to it together? Where it has tiles, the front end has seen to that.
static bool is_of_group(const struct barriers *b, const struct tir_inst *branch)
{
    if (!b->crew.scope)
        return false;
    for (uint32_t r = 0; r < branch->region_count; r++)
        tir_foreach_inst_in(inst, branch->regions[r])
            if (tir_has_tile(inst))
                return true;
    return false;
}

// What single threads do in a branch is done behind it: they are the ones that matter.
static void walk_if(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    struct tir_inst *branch = b->branch;
    if (!branch && !tir_follows(&b->uniform, inst->operands[0]) && !is_of_group(b, inst))
        b->branch = inst;
    struct state other = tir_barrier_copy_of(b, s);
    walk(b, inst->regions[0], s);
    walk(b, inst->regions[1], &other);
    tir_barrier_leave(b, s, inst);
    tir_barrier_leave(b, &other, inst);
    bool is_one_sided = inst->regions[1]->first == tir_yield_of(inst->regions[1]);
    if (!b->branch || !is_one_sided)
        tir_barrier_join(b, s, &other);
    b->branch = branch;
}

// In front of the end of the crew's block.
static void finish_stores(struct barriers *b)
{
    if (!b->stored || b->dry)
        return;
    struct tir_builder end = {b->f, b->crew_block, tir_yield_of(b->crew_block), b->f->span};
    struct tir_builder in = tir_build_if(&end, tir_barrier_leader(b));
    tir_build_group(&in, TIR_OP_WAIT_GROUP, TIR_DONE_TMA, 0);
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
    struct state own = tir_barrier_copy_of(b, s);
    if (b->before_roles)
        tir_barrier_settle(b, &own, b->first_role, b->before_roles, 0);
    walk_crew(b, role->regions[0], &own);
    b->crew = outer.crew;
    b->crew_block = outer.crew_block;
    b->leader = outer.leader;
    b->stored = outer.stored;
}

// Its warps order what they do in the scope. Bytes that they share with others there, nobody else
// has (memory.c). Whoever comes to a scope comes with all threads of its group.
static void walk_scope(struct barriers *b, struct tir_inst *scope, struct state *s)
{
    struct barriers outer = *b;
    b->branch = NULL;
    walk_crew(b, scope->regions[0], s);
    b->branch = outer.branch;
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
        struct range r = tir_barrier_range_of(b, inst, v, TIR_ACCESS_WRITE);
        tir_barrier_order(b, s, inst, &r);
        tir_barrier_add(b, s, r);
    }
}

static void walk_inst(struct barriers *b, struct tir_inst *inst, struct state *s)
{
    switch (inst->op) {
    case TIR_OP_BAR_SYNC:
    case TIR_OP_WARP_SYNC:
        if (tir_is_crew_barrier(inst, &b->crew))
            tir_barrier_met(b, s, inst);
        break;
    case TIR_OP_FENCE:
        tir_barrier_fenced(b, s, inst, tir_barrier_fences(inst));
        break;
    case TIR_OP_COMMIT_GROUP:
        tir_barrier_committed(s, tir_done_of_group(inst));
        break;
    case TIR_OP_WAIT_GROUP:
    case TIR_OP_AWAIT:
        walk_wait(b, inst, s);
        break;
    case TIR_OP_TILES:
        if (tir_barrier_is_loop(inst))
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
    case TIR_OP_SCOPE:
        walk_scope(b, inst, s);
        break;
    default:
        if (tir_has_effects(inst->op))
            walk_effects(b, inst, s);
        else
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
        tir_foreach_effect(e, inst) {
            b->engines |= e->proxy == TIR_PROXY_ASYNC;
            b->engines_write |= e->proxy == TIR_PROXY_ASYNC && e->access != TIR_ACCESS_READ;
        }
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
