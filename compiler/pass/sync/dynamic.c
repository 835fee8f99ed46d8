// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// dynamic: CTAs that are done take over tiles of CTAs that have not started.
//
//     role load ... {
//         tiles (m, n) in (...) persistent(2) { ... }
//     }
//     role math ... {
//         tiles (m, n) in (...) persistent(2) { ... }
//     }
// becomes
//     let response: shared u32[3, 4] in S = alloc();
//     let known: shared mbarrier[3] = alloc();
//     let read: shared mbarrier[3] = alloc();
//     (one thread initialises them, with those of rings if there are some; a barrier)
//     role load ... {
//         tiles (m, n) in (...) carry (t: i32 = 0, s: i32 = 0, p: i32 = 0) persistent(2) next(0) {
//             wait(read[s], 1 - p);
//             if elect_sync() { arrive(known[s], bytes = 16); try_cancel(response[s], known[s]); }
//             ...
//             wait(known[s], p);
//             let next: i32 = first_ctaid(response[s]);
//             fence(of = async_shared);
//             warp_sync();
//             if laneid() == 0 { arrive(read[s]); }
//             yield next, (s + 1 or 0), (p, or its complement where s wraps);
//         }
//     }
//     role math ... { the same without the request }
//
// The grid has a CTA for each tile (lower_tile). One thread asks for the next tile when its role
// begins with this one, so that the answer is there long before any role is done. The role that
// copies asks, since it is ahead of the others: by NEXT_TILES (a budget), which is how many
// responses there are. `read` says that all warps have read a response, `known` that it is there.
// The first tile is the CTA's own. A request that fails ends the loops: none follows it.
//
// CTAs of a cluster take over a cluster: the first asks, all get the response, and all tell the
// first that they have read it. It ends when they have.
//
// The loop keeps its fixed stride where the target has no clusterlaunchcontrol, and where CTAs wait
// for each other: these rely on the order in which they start.

#include "ir/carry.h"
#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/pass.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"
#include "pass/sync/slot.h"

enum { RESPONSE_WORDS = 4, RESPONSE_BYTES = 16 };

struct dynamic {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    const struct tir_type *i32;
    struct tir_value *responses, *known, *read;
    uint32_t ctas;                // of a cluster
    const struct tir_inst *asker; // the tiles loop in which a thread asks
    VEC(struct tir_inst *) loops; // one of each role, or the kernel's
};

// Where the loop stands in one role: the slot of the next response, and the phase there.
struct place {
    struct tir_value *slot, *phase;
};

static void find_loops(struct dynamic *d)
{
    tir_foreach_inst(inst, d->f)
        if (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0) == TIR_DYNAMIC &&
            !tir_attr_find(inst, TIR_ATTR_next))
            vec_push(d->cx->scratch, &d->loops, inst);
}

static bool copies(const struct tir_inst *loop)
{
    tir_foreach_inst_within(inst, loop)
        if (inst->op == TIR_OP_COPY_ASYNC)
            return true;
    return false;
}

static void find_asker(struct dynamic *d)
{
    d->asker = d->loops.at[0];
    vec_foreach(struct tir_inst *, loop, &d->loops)
        if (copies(*loop)) {
            d->asker = *loop;
            return;
        }
}

// Does a loop look at a tensor that the kernel writes too, until it has changed?
static bool looks_again(const struct tir_func *f, const struct tir_inst *inst)
{
    if ((inst->op != TIR_OP_LOAD && inst->op != TIR_OP_ATOMIC) ||
        tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL ||
        tir_is_only_read(f, tir_ref_base(inst)))
        return false;
    const struct tir_inst *owner = inst->block->owner;
    while (owner && owner->op != TIR_OP_WHILE)
        owner = owner->block->owner;
    return owner;
}

// What another CTA has written is seen by an acquire, or by a fence after a relaxed look.
static bool waits(const struct tir_func *f)
{
    bool acquires = false, fences = false, looks = false;
    tir_foreach_inst(inst, f) {
        const enum tir_word of = tir_attr_word(inst, TIR_ATTR_of, TIR_WORD_NONE);
        acquires |= inst->op == TIR_OP_ATOMIC && tir_acquires(inst);
        fences |= inst->op == TIR_OP_FENCE && (of == TIR_WORD_of_gpu || of == TIR_WORD_of_system);
        looks |= looks_again(f, inst);
    }
    return acquires || (fences && looks);
}

static const char *refusal_of(const struct dynamic *d)
{
    if (!(d->cx->target->features & TIR_HAS_CLC))
        return "the target has no clusterlaunchcontrol";
    return waits(d->f) ? "CTAs wait for others" : NULL;
}

static struct tir_inst *build(struct tir_builder *b, enum tir_op op,
                              struct tir_value *const *operands, uint32_t count)
{
    return tir_build(b, op, operands, count, NULL, 0, 0);
}

// The start of the kernel.

static struct tir_value *build_responses(struct dynamic *d, struct tir_builder *b)
{
    struct tir_types *types = d->f->module->types;
    struct tir_type t = {.elem = TIR_U32,
                         .space = TIR_SPACE_SHARED,
                         .rank = 2,
                         .shape = {TIR_BUDGET_NEXT_TILES, RESPONSE_WORDS}};
    t.layout = tir_layout_memory(types, t.rank, t.shape, tir_elems[t.elem].bits, 0);
    struct tir_value *v = tir_build1(b, TIR_OP_ALLOC, tir_type_get(types, &t), NULL, 0);
    v->name = tir_intern_cstr(d->f->module->names, "response");
    return v;
}

static void build_init(struct tir_builder *b, struct tir_value *mbarriers, int64_t arrivals)
{
    struct tir_inst *init =
        build(b, TIR_OP_MBARRIER_INIT, (struct tir_value *[]){mbarriers, NULL}, 2);
    tir_set_int(b->f, init, TIR_ATTR_arrivals, arrivals);
}

static bool is_by_one_thread(const struct tir_inst *branch)
{
    const struct tir_inst *test = branch->operands[0]->def;
    return test && test->op == TIR_OP_EQ && test->operands[0]->def &&
           test->operands[0]->def->op == TIR_OP_TID;
}

// A branch at the start of the kernel in which one thread initialises mbarriers, in front of a
// barrier of all that use ours; NULL: there is none.
static struct tir_inst *find_init(const struct dynamic *d)
{
    const enum tir_op barrier = d->ctas > 1 ? TIR_OP_CLUSTER_ARRIVE : TIR_OP_BAR_SYNC;
    for (struct tir_inst *inst = d->f->body->first; inst; inst = inst->next)
        if (inst->op == TIR_OP_IF && inst->regions[0]->first->op == TIR_OP_MBARRIER_INIT)
            return is_by_one_thread(inst) && inst->next && inst->next->op == barrier ? inst : NULL;
    return NULL;
}

static struct tir_builder build_branch(struct dynamic *d, struct tir_builder *b)
{
    const struct tir_crew all = {.warps = TIR_MAX(d->f->threads / 32, 1)};
    struct tir_builder in = tir_build_if(b, tir_build_is_leader(b, &all));
    tir_set_word(d->f, build(&in, TIR_OP_FENCE, NULL, 0), TIR_ATTR_of, TIR_WORD_of_mbarrier_init);
    if (d->ctas > 1) {
        build(b, TIR_OP_CLUSTER_ARRIVE, NULL, 0);
        build(b, TIR_OP_CLUSTER_WAIT, NULL, 0);
    } else {
        build(b, TIR_OP_BAR_SYNC, NULL, 0);
    }
    return tir_builder_before(d->f, in.block->first);
}

static void build_start(struct dynamic *d)
{
    struct tir_func *f = d->f;
    struct tir_builder b = tir_builder_before(f, f->body->first);
    struct tir_inst *init = find_init(d);
    int64_t readers = 0;
    b.span = d->asker->span;
    vec_foreach(struct tir_inst *, loop, &d->loops)
        readers += tir_crew_of(f, *loop).warps;
    d->responses = build_responses(d, &b);
    d->known = tir_slot_mbarriers(&b, TIR_BUDGET_NEXT_TILES, "known");
    d->read = tir_slot_mbarriers(&b, TIR_BUDGET_NEXT_TILES, "read");
    struct tir_builder in =
        init ? tir_builder_before(f, init->regions[0]->first) : build_branch(d, &b);
    build_init(&in, d->known, 1);
    build_init(&in, d->read, readers * d->ctas);
}

// Requests and responses.

static struct tir_value *response_at(struct dynamic *d, struct tir_builder *b,
                                     struct tir_value *slot)
{
    static const int64_t box[] = {0, RESPONSE_WORDS};
    struct tir_types *types = d->f->module->types;
    struct tir_type t = {
        .elem = TIR_U32, .space = TIR_SPACE_SHARED, .rank = 1, .shape = {RESPONSE_WORDS}};
    t.layout = tir_layout_memory(types, t.rank, t.shape, tir_elems[t.elem].bits, 0);
    struct tir_value *operands[] = {d->responses, slot, tir_const_index(d->f, 0)};
    const struct tir_type *type = tir_type_get(types, &t);
    struct tir_inst *view = tir_build(b, TIR_OP_VIEW, operands, 3, &type, 1, 0);
    tir_set_list(d->f, view, TIR_ATTR_box, box, 2);
    return view->results[0];
}

// Is this the CTA that asks for its cluster?
static struct tir_value *build_is_first(struct dynamic *d, struct tir_builder *b)
{
    struct tir_value *rank = tir_build1(b, TIR_OP_CTA_RANK, d->i32, NULL, 0);
    return tir_binary(b, TIR_OP_EQ, rank, tir_const_i32(d->f, 0));
}

static void build_wait_read(struct dynamic *d, struct tir_builder *b, struct place at)
{
    struct tir_value *before = tir_binary(b, TIR_OP_XOR, at.phase, tir_const_i32(d->f, 1));
    tir_slot_wait(b, d->read, at.slot, before);
}

static void build_request(struct dynamic *d, struct tir_inst *loop, struct place at)
{
    const struct tir_crew crew = tir_crew_of(d->f, loop);
    struct tir_builder b = tir_builder_before(d->f, loop->regions[0]->first);
    struct tir_value *first = d->ctas > 1 ? build_is_first(d, &b) : NULL;
    struct tir_builder in = first ? tir_build_if(&b, first) : b;
    build_wait_read(d, first ? &in : &b, at);
    const struct tir_type *boolean = tir_type_scalar(d->f->module->types, TIR_BOOL);
    struct tir_value *one = crew.warps == 1 ? tir_build1(&b, TIR_OP_ELECT, boolean, NULL, 0)
                                            : tir_build_is_leader(&b, &crew);
    in = tir_build_if(&b, one);
    struct tir_value *response = response_at(d, &in, at.slot);
    struct tir_value *known = tir_slot_mbarrier(&in, d->known, at.slot);
    struct tir_inst *expect =
        build(&in, TIR_OP_ARRIVE, (struct tir_value *[]){known, NULL, NULL}, 3);
    tir_set_int(d->f, expect, TIR_ATTR_bytes, RESPONSE_BYTES);
    if (first)
        in = tir_build_if(&in, first);
    struct tir_inst *request =
        build(&in, TIR_OP_TRY_CANCEL, (struct tir_value *[]){response, NULL, known, NULL}, 4);
    if (first)
        tir_set_int(d->f, request, TIR_ATTR_multicast, 1);
}

// The number of the next tile, in front of the yield; negative if there is none.
static struct tir_value *build_response(struct dynamic *d, struct tir_builder *b, struct place at)
{
    struct tir_func *f = d->f;
    tir_slot_wait(b, d->known, at.slot, at.phase);
    struct tir_value *of[] = {response_at(d, b, at.slot), NULL};
    struct tir_value *next = tir_build1(b, TIR_OP_FIRST_CTAID, d->i32, of, 2);
    tir_set_word(f, build(b, TIR_OP_FENCE, NULL, 0), TIR_ATTR_of, TIR_WORD_of_async_shared);
    build(b, TIR_OP_WARP_SYNC, NULL, 0);
    struct tir_value *lane = tir_build1(b, TIR_OP_LANEID, d->i32, NULL, 0);
    struct tir_builder in = tir_build_if(b, tir_binary(b, TIR_OP_EQ, lane, tir_const_i32(f, 0)));
    struct tir_value *arrive[] = {tir_slot_mbarrier(&in, d->read, at.slot), NULL,
                                  d->ctas > 1 ? tir_const_i32(f, 0) : NULL};
    build(&in, TIR_OP_ARRIVE, arrive, 3);
    if (d->ctas == 1)
        return next;
    struct tir_value *choice[] = {
        tir_binary(b, TIR_OP_LT, next, tir_const_i32(f, 0)), next,
        tir_binary(b, TIR_OP_DIV, next, tir_const_i32(f, (int32_t)d->ctas))};
    return tir_build1(b, TIR_OP_WHERE, d->i32, choice, 3);
}

// After the loop, in the CTA that asks: until all of the cluster have read the last response, and
// so those before it.
static void build_drain(struct dynamic *d, struct tir_inst *loop)
{
    struct tir_builder b = {d->f, loop->block, loop->next, loop->span};
    struct tir_builder in = tir_build_if(&b, build_is_first(d, &b));
    struct place at = {loop->results[loop->result_count - 2],
                       loop->results[loop->result_count - 1]};
    for (uint32_t i = 1; i < TIR_BUDGET_NEXT_TILES; i++) // from the next one round to the last
        tir_slot_step(&in, TIR_BUDGET_NEXT_TILES, &at.slot, &at.phase);
    build_wait_read(d, &in, at);
}

static void rewrite(struct dynamic *d, struct tir_inst *loop)
{
    static const char *const names[] = {"next", "slot", "phase"};
    struct tir_value *carried[3], *zero = tir_const_i32(d->f, 0);
    tir_set_int(d->f, loop, TIR_ATTR_next, loop->result_count);
    for (uint32_t i = 0; i < TIR_COUNT_OF(names); i++)
        carried[i] = tir_carry_add(d->f, loop, zero, names[i]);
    struct tir_block *body = loop->regions[0];
    struct place at = {carried[1], carried[2]};
    if (!body->first) { // a role may have nothing to do
        struct tir_builder end = tir_builder_at_end(d->f, body);
        tir_build_yield(&end, NULL, 0);
    }
    if (loop == d->asker)
        build_request(d, loop, at);
    struct tir_inst *yield = tir_yield_of(body);
    struct tir_builder b = {d->f, body, yield, loop->span};
    struct tir_value *next = build_response(d, &b, at);
    tir_slot_step(&b, TIR_BUDGET_NEXT_TILES, &at.slot, &at.phase);
    tir_yield_add(d->f, body, next);
    tir_yield_add(d->f, body, at.slot);
    tir_yield_add(d->f, body, at.phase);
    if (loop == d->asker && d->ctas > 1)
        build_drain(d, loop);
}

enum tir_change tir_pass_dynamic(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct dynamic d = {.f = f, .cx = cx, .ctas = tir_func_ctas(f)};
    find_loops(&d);
    if (!d.loops.len)
        return TIR_UNCHANGED;
    const char *refusal = refusal_of(&d);
    if (refusal) {
        vec_foreach(struct tir_inst *, loop, &d.loops)
            tir_set_int(f, *loop, TIR_ATTR_persistent, 1);
        tir_receipt_refuse(cx, TIR_TOPIC_LAUNCH, TIR_WISH_NONE, d.loops.at[0]->span,
                           "tiles: by a fixed stride, because %s", refusal);
        return TIR_CHANGED;
    }
    d.i32 = tir_type_scalar(f->module->types, TIR_I32);
    find_asker(&d);
    build_start(&d);
    vec_foreach(struct tir_inst *, loop, &d.loops)
        rewrite(&d, *loop);
    tir_receipt_add(cx, TIR_TOPIC_LAUNCH, d.asker->span,
                    "tiles: taken over one by one, asked for with clusterlaunchcontrol");
    return TIR_CHANGED;
}
