// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// turn: the warpgroups of a role start their products one after the other.
//
//     role math first(4) regs(240) warps(8) {
//         for t: i64 in range(0, N, 64) turns(1) {
//             ...
//             fence(of = wgmma);
//             let d: T = gemm_async(a, bs, zero);
//             commit_group(engine = wgmma);
//             ...
//         }
//     }
// becomes
//     role math first(4) regs(240) warps(8) {
//         if warpid() >= 8 { bar_arrive(id = 3, threads = 256); }
//         for t: i64 in range(0, N, 64) {
//             ...
//             if warpid() < 8 { bar_sync(id = 3, threads = 256); }
//             else { bar_sync(id = 4, threads = 256); }
//             fence(of = wgmma);
//             let d: T = gemm_async(a, bs, zero);
//             commit_group(engine = wgmma);
//             if warpid() < 8 { bar_arrive(id = 4, threads = 256); }
//             else { bar_arrive(id = 3, threads = 256); }
//             ...
//         }
//     }
//
// Warpgroups that start their products at the same time share the tensor cores, wait for both, and
// then compute both while the tensor cores are idle. In turns one computes while the other
// multiplies (FlashAttention-3, arXiv:2407.08608, section 3.1: ping-pong). The pass schedule marks
// the loops where that pays (docs/decisions/062).
//
// A turn begins before the first product of a round and ends when the last one has started that
// nothing is awaited before; products behind a wait have another turn. Each warpgroup has a named
// barrier at which it waits and the one before it arrives; the last one arrives for the first turn
// when the role begins. So what is left at the end of a loop is the first turn of the next one, and
// any number of rounds is right that all warpgroups run alike, 0 included. Products in front of and
// behind a loop, and in blocks inside of it, have no turns.
//
// No memory is ordered by turns alone: the pass comes behind barrier, and may leave turns out where
// too few named barriers are free, or one warpgroup is alone.

#include "ir/effect.h"
#include "ir/walk.h"
#include "pass/pass.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

// The products that are started in one turn.
struct turn {
    struct tir_inst *first, *last; // the fence in front of them, the commit behind them
};

typedef VEC(struct turn) turn_list;

static turn_list turns_of(struct tir_arena *scratch, const struct tir_inst *loop)
{
    turn_list turns = {0};
    bool open = false; // nothing was awaited since the last product
    for (struct tir_inst *inst = loop->regions[0]->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_AWAIT || tir_is_group(inst, TIR_OP_WAIT_GROUP, TIR_DONE_WGMMA))
            open = false;
        if (inst->op != TIR_OP_GEMM_ASYNC || tir_done_of(inst) != TIR_DONE_WGMMA)
            continue;
        struct tir_inst *fence = inst->prev, *commit = inst->next;
        if (!fence || fence->op != TIR_OP_FENCE || !commit ||
            !tir_is_group(commit, TIR_OP_COMMIT_GROUP, TIR_DONE_WGMMA))
            continue; // by hand
        if (open)
            vec_last(&turns).last = commit;
        else
            vec_push(scratch, &turns, ((struct turn){fence, commit}));
        open = true;
    }
    return turns;
}

// As many neighbouring named barriers that nothing else uses as there are warpgroups; 0: there are
// none.
static uint32_t free_barriers(const struct tir_func *f, uint32_t count)
{
    uint32_t used = 1; // by number: that of the CTA
    tir_foreach_inst(inst, f) {
        const int64_t id = tir_attr_int(inst, TIR_ATTR_id, 0);
        used |= UINT32_C(1) << id;
        if (inst->op != TIR_OP_ROLE && inst->op != TIR_OP_SCOPE)
            continue;
        const struct tir_crew crew = tir_crew_of(f, inst);
        const uint32_t own = tir_crew_barrier(f, &crew);
        for (uint32_t g = 0; g < crew.groups && g <= own; g++)
            used |= UINT32_C(1) << (own - g);
    }
    const uint32_t all = (UINT32_C(1) << count) - 1;
    for (uint32_t id = 1; id + count <= TIR_NAMED_BARRIERS; id++)
        if (!(used & all << id))
            return id;
    return 0;
}

struct turns { // of the warpgroups of one role or CTA
    struct tir_func *f;
    const struct tir_inst *role;
    struct tir_crew warpgroups;
    uint32_t barrier; // the first warpgroup's, which those of the others follow
};

// A warpgroup and the one before it meet at a barrier.
static void build_barrier(const struct turns *t, struct tir_builder *b, enum tir_op op,
                          uint32_t group)
{
    tir_build_barrier(b, op, t->barrier + group % t->warpgroups.groups, 2 * TIR_WARPGROUP);
}

static void build_begin(void *user, struct tir_builder *b, uint32_t group)
{
    build_barrier(user, b, TIR_OP_BAR_SYNC, group);
}

static void build_end(void *user, struct tir_builder *b, uint32_t group)
{
    build_barrier(user, b, TIR_OP_BAR_ARRIVE, group + 1);
}

// In front of everything that the role does.
static void build_first_turn(struct turns *t)
{
    const struct tir_crew *all = &t->warpgroups;
    const struct tir_type *i32 = tir_type_scalar(t->f->module->types, TIR_I32);
    struct tir_block *block = t->role ? t->role->regions[0] : t->f->body;
    struct tir_builder b = tir_builder_before(t->f, block->first);
    struct tir_value *warp = tir_build1(&b, TIR_OP_WARPID, i32, NULL, 0);
    const uint32_t last = all->first + (all->groups - 1) * all->warps;
    struct tir_builder in =
        tir_build_if(&b, tir_binary(&b, TIR_OP_GE, warp, tir_const_i32(t->f, (int32_t)last)));
    build_end(t, &in, all->groups - 1);
}

// Why warpgroups take no turns in a loop that asks for them; NULL: nothing is against it.
static const char *obstacle(const struct tir_crew *crew, const turn_list *turns)
{
    if (!turns->len)
        return "it starts no product on warpgroups";
    if (crew->scope)
        return "it is in a scope";
    return crew->warps < 2 * TIR_WARPGROUP ? "one warpgroup runs it alone" : NULL;
}

static void visit(struct turns *t, struct tir_pass_cx *cx, struct tir_inst *loop)
{
    const struct tir_crew crew = tir_crew_of(t->f, loop);
    const turn_list turns = turns_of(cx->scratch, loop);
    const char *why = obstacle(&crew, &turns);
    if (!why && (!t->barrier || crew.role != t->role)) {
        t->role = crew.role;
        t->warpgroups = crew;
        t->warpgroups.groups = crew.warps / TIR_WARPGROUP;
        t->warpgroups.warps = TIR_WARPGROUP;
        t->barrier = free_barriers(t->f, t->warpgroups.groups);
        if (t->barrier)
            build_first_turn(t);
        else
            why = "too few named barriers are free";
    }
    if (why) {
        tir_receipt_add(cx, TIR_TOPIC_LOOP, loop->span, "loop: no turns, because %s", why);
        return;
    }
    vec_foreach(struct turn, turn, &turns) {
        tir_build_by_group(tir_builder_before(t->f, turn->first), &t->warpgroups, build_begin, t);
        tir_build_by_group(tir_builder_before(t->f, turn->last->next), &t->warpgroups, build_end,
                           t);
    }
    tir_receipt_add(cx, TIR_TOPIC_LOOP, loop->span,
                    "loop: %u warpgroups start products in turns, %u a round", t->warpgroups.groups,
                    turns.len);
}

enum tir_change tir_pass_turn(struct tir_func *f, struct tir_pass_cx *cx)
{
    VEC(struct tir_inst *) loops = {0};
    struct turns t = {.f = f};
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_FOR && tir_attr_find(inst, TIR_ATTR_turns))
            vec_push(cx->scratch, &loops, inst);
    vec_foreach(struct tir_inst *, loop, &loops) {
        if (tir_attr_int(*loop, TIR_ATTR_turns, 0))
            visit(&t, cx, *loop);
        tir_drop_attr(f, *loop, TIR_ATTR_turns);
    }
    return loops.len ? TIR_CHANGED : TIR_UNCHANGED;
}
