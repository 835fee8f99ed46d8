// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// specialize_warps: gives copies and products their own warps.
//
//     let a: shared bf16[4, 128, 64] in R = ring(stages = 4);
//     tiles (m, n) in (M by 128, N by 256) persistent(1) {
//         let r: T = for k: i64 in range(0, K, 64) carry (acc: T = zero) {
//             put(a) with (slot: i32) { copy_async(view(a[slot, ...]), A[m:+128, k:+64], ...); }
//             let d: T = get(a, lag = 1) with (slot: i32) { ... dot(..., acc) ... }
//             yield d;
//         }
//         store(D[m:+128, n:+256], r);
//     }
// becomes
//     let a: shared bf16[4, 128, 64] in R = ring(stages = 4);
//     role load warps(1) first(0) regs(24) {
//         tiles (m, n) in (...) persistent(1) {
//             for k: i64 in range(0, K, 64) { put(a) with (slot: i32) { copy_async(...); } }
//         }
//     }
//     role math warps(8) first(4) regs(240) {
//         tiles (m, n) in (...) persistent(1) {
//             let r: T = for k: ... carry (acc: T = zero) {
//                 let d: T = get(a, lag = 1) with (slot: i32) { ... dot(..., acc) ... }
//                 yield d;
//             }
//             store(D[m:+128, n:+256], r);
//         }
//     }
//
// Both roles walk the same loops: each has a copy of the whole program. `math` loses the puts.
// `load` keeps only the puts, and the loops and branches around them, of all instructions with an
// effect; dead code elimination removes the rest. So the conditions and addresses of copies must
// depend only on parameters, loop variables and memory that nothing writes. If they depend on the
// contents of other copies, the program stays one role and the receipt says so.
//
// What puts compute slots from may come by cp.async, ahead of its round, to buffers that they read:
// these copies, and the groups in which they are awaited, are work of `load` too.
//
// With store_role on the tiles loop, buffers from which tensor copies store become rings too
// (store_ring.c), and a third role has a copy of the program with only the gets of these rings:
// `math` goes on while that role waits for the copies. It is one warp in the warpgroup of `load`.
//
// One warp starts copies. It has a separate warpgroup, because registers are divided by warpgroup:
// it gives its registers to the warpgroups that hold the accumulators. Where one warpgroup holds
// them it has enough, so the warp follows it, and more CTAs have room on a multiprocessor:
//     role load warps(1) first(4) { ... }
//     role math warps(4) first(0) { ... }
// If puts compute the tiles that they store, or copy rows by cp.async, `load` has as many warps as
// `math`, since the tiles are already spread over these. What one warpgroup turns is spread anew.

#include "base/bitset.h"
#include "ir/crew.h"
#include "ir/effect.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "machine/target.h"
#include "pass/layout/turned.h"
#include "pass/receipt.h"
#include "pass/role/store_ring.h"

struct split {
    struct tir_func *f;
    struct tir_pass_cx *cx;
    bool sends;                   // of `store`, not of `load`
    tir_inst_list outgoing;       // rings that `math` fills and `store` empties
    struct bitset needed;         // values that what the role does needs, by id
    VEC(struct tir_value *) work; // needed, but not yet looked at
    enum tir_role_work works;     // `load`; beyond TURNS with as many warps as `math` has
    bool feeds;                   // cp.async fills buffers that puts read
    const char *refusal;
    struct tir_span refused_at;
};

// A put or get of a ring that `math` fills?
static bool is_outgoing(const struct split *s, const struct tir_inst *inst)
{
    vec_foreach(struct tir_inst *, ring, &s->outgoing)
        if (inst->operands[0]->def == *ring)
            return true;
    return false;
}

// One of the copies by cp.async that puts read, outside of these, or a group of such?
static bool is_thread_copy(const struct tir_inst *inst)
{
    const struct tir_inst *owner = inst->block->owner;
    if (owner && owner->op == TIR_OP_PUT)
        return false;
    return inst->op == TIR_OP_COPY_ASYNC
               ? tir_done_of(inst) == TIR_DONE_CP_ASYNC
               : tir_is_group(inst, TIR_OP_COMMIT_GROUP, TIR_DONE_CP_ASYNC) ||
                     tir_is_group(inst, TIR_OP_WAIT_GROUP, TIR_DONE_CP_ASYNC);
}

static bool is_load(const struct split *s, const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_PUT && !is_outgoing(s, inst)) || (s->feeds && is_thread_copy(inst));
}

static bool is_send(const struct split *s, const struct tir_inst *inst)
{
    return inst->op == TIR_OP_GET && is_outgoing(s, inst);
}

// What the role is for: puts, or stores by tensor copies, which stand in gets once there are
// rings.
static bool is_work(const struct split *s, const struct tir_inst *inst)
{
    return s->sends ? inst->op == TIR_OP_STORE_ASYNC : is_load(s, inst);
}

static bool holds_work(const struct split *s, const struct tir_inst *inst)
{
    if (is_work(s, inst))
        return true;
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            if (holds_work(s, in))
                return true;
    return false;
}

static bool is_control(const struct tir_inst *inst)
{
    return tir_carries(inst) || inst->op == TIR_OP_IF;
}

static void refuse(struct split *s, const struct tir_inst *inst, const char *why)
{
    if (!s->refusal) {
        s->refusal = why;
        s->refused_at = inst->span;
    }
}

// Values that puts need.

static void need(struct split *s, struct tir_value *v)
{
    if (v && v->kind != TIR_VALUE_CONST && bitset_insert(&s->needed, v->id))
        vec_push(s->cx->scratch, &s->work, v);
}

static void need_all(struct split *s, struct tir_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        need(s, values[i]);
}

static struct tir_value *yielded(const struct tir_inst *inst, uint32_t region, uint32_t i)
{
    return tir_yield_of(inst->regions[region])->operands[i];
}

// Carried value or result number i of a loop or branch.
static void need_carried(struct split *s, const struct tir_inst *inst, uint32_t i)
{
    if (inst->op == TIR_OP_IF) {
        need(s, yielded(inst, 0, i));
        need(s, yielded(inst, 1, i));
        return;
    }
    need(s, inst->operands[tir_fixed_count(inst) + i]);
    need(s, yielded(inst, inst->region_count - 1, i));
}

// How often a loop runs, which way a branch goes.
static void need_control(struct split *s, const struct tir_inst *inst)
{
    need_all(s, inst->operands,
             inst->op == TIR_OP_TILES ? inst->operand_count : tir_fixed_count(inst));
    if (inst->op == TIR_OP_WHILE)
        need(s, yielded(inst, 0, 0));
}

static void need_result(struct split *s, const struct tir_value *v)
{
    const struct tir_inst *inst = v->def;
    if (is_control(inst)) {
        need_control(s, inst);
        need_carried(s, inst, v->index);
        return;
    }
    if (inst->op == TIR_OP_GET) {
        need(s, yielded(inst, 0, v->index));
        return;
    }
    if (inst->op == TIR_OP_RING || (inst->op == TIR_OP_ALLOC && s->feeds))
        return;
    if (tir_type_is_tile(v->type) && (s->works == TIR_ROLE_COPIES || inst->op == TIR_OP_DOT))
        refuse(s, inst, "what is copied follows from a tile");
    if (inst->op == TIR_OP_LOAD) {
        if (!tir_is_only_read(s->f, tir_ref_base(inst)))
            refuse(s, inst, "what is copied follows from memory that is written");
    } else if (!tir_has_trait(inst, TIR_PURE)) {
        refuse(s, inst, "what is copied follows from an operation with an effect");
    }
    need_all(s, inst->operands, inst->operand_count);
}

static void need_argument(struct split *s, const struct tir_value *v)
{
    const struct tir_inst *owner = v->block->owner;
    uint32_t lead = owner && owner->op == TIR_OP_FOR ? 1 : 0;
    if (owner && tir_is_loop(owner) && v->index >= lead)
        need_carried(s, owner, v->index - lead);
}

// Values that a put's block uses and does not make.
static void need_outside(struct split *s, const struct tir_block *block)
{
    tir_foreach_inst_in(inst, block)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            bool inside = v && (v->def ? tir_block_contains(block, v->def) : v->block == block);
            if (!inside)
                need(s, v);
        }
}

static void find_needed(struct split *s)
{
    s->needed = bitset_new(s->cx->scratch, s->f->value_count);
    tir_foreach_inst(inst, s->f) {
        if (is_work(s, inst) && s->sends)
            need_all(s, tir_ref_indices(inst), tir_ref_base(inst)->type->rank);
        else if (is_work(s, inst) && inst->region_count)
            need_outside(s, inst->regions[0]);
        else if (is_work(s, inst))
            need_all(s, inst->operands, inst->operand_count);
        else if (is_control(inst) && holds_work(s, inst))
            need_control(s, inst);
    }
    while (s->work.len) {
        struct tir_value *v = vec_pop(&s->work);
        if (v->kind == TIR_VALUE_RESULT)
            need_result(s, v);
        else
            need_argument(s, v);
    }
}

// The roles.

static struct tir_inst *build_role(struct split *s, const char *name, uint32_t first,
                                   uint32_t warps, uint32_t regs)
{
    struct tir_builder b = tir_builder_at_end(s->f, s->f->body);
    b.span = s->f->span;
    struct tir_inst *role = tir_build(&b, TIR_OP_ROLE, NULL, 0, NULL, 0, 1);
    tir_set_text(s->f, role, TIR_ATTR_name, tir_str_of(name));
    tir_set_int(s->f, role, TIR_ATTR_warps, warps);
    tir_set_int(s->f, role, TIR_ATTR_first, first);
    if (regs)
        tir_set_int(s->f, role, TIR_ATTR_regs, regs);
    tir_receipt_role(s->cx, role);
    return role;
}

static void end_block(struct tir_func *f, struct tir_block *block)
{
    struct tir_builder b = tir_builder_at_end(f, block);
    tir_build_yield(&b, NULL, 0);
}

// A get in `load`: what is in it, as far as it is needed.
static void open_get(struct tir_func *f, struct tir_inst *get)
{
    struct tir_block *block = get->regions[0];
    struct tir_inst *yield = tir_yield_of(block);
    tir_replace_uses(f, block->args[0], tir_const_i32(f, 0));
    for (uint32_t i = 0; i < get->result_count; i++)
        tir_replace_uses(f, get->results[i], yield->operands[i]);
    tir_remove(yield);
    while (block->first)
        tir_move_before(block->first, get);
    tir_remove(get);
}

// A loop or branch without puts whose results nothing needs.
static void drop_control(struct tir_func *f, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_replace_uses(f, inst->results[i], tir_const_like(f, inst->results[i]->type, 0));
    tir_remove(inst);
}

static bool is_needed(const struct split *s, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (bitset_has(&s->needed, inst->results[i]->id))
            return true;
    return false;
}

// Of the copy for `load` or `store`: leaves its work, and what may be needed for it.
static void keep_work(struct split *s, struct tir_block *block)
{
    const uint32_t effects = TIR_WRITES | TIR_ASYNC | TIR_SYNC;
    struct tir_inst *next;
    for (struct tir_inst *inst = block->first; inst; inst = next) {
        next = inst->next;
        if ((s->sends ? is_send(s, inst) : is_load(s, inst)) || inst->op == TIR_OP_YIELD)
            continue;
        if (inst->op == TIR_OP_PUT) {
            tir_remove(inst);
        } else if (inst->op == TIR_OP_GET) {
            next = inst->regions[0]->first;
            next = next == tir_yield_of(inst->regions[0]) ? inst->next : next;
            open_get(s->f, inst);
        } else if (is_control(inst)) {
            if (!holds_work(s, inst) && !is_needed(s, inst))
                drop_control(s->f, inst);
            for (uint32_t r = 0; inst->block && r < inst->region_count; r++)
                keep_work(s, inst->regions[r]);
        } else if (tir_has_trait(inst, effects) && inst->op != TIR_OP_ALLOC) {
            for (uint32_t i = 0; i < inst->result_count; i++)
                tir_replace_uses(s->f, inst->results[i],
                                 tir_const_like(s->f, inst->results[i]->type, 0));
            tir_remove(inst);
        }
    }
}

// The work of the other roles.
static void drop_work(const struct split *s, struct tir_block *body)
{
    for (struct tir_inst *inst = tir_walk_next(body, NULL), *next; inst; inst = next) {
        bool theirs = is_load(s, inst) || is_send(s, inst);
        next = theirs ? tir_walk_skip(body, inst) : tir_walk_next(body, inst);
        if (theirs)
            tir_remove(inst);
    }
}

static bool has_ring(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_RING)
            return true;
    return false;
}

static bool has_role(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_ROLE)
            return true;
    return false;
}

// All threads of a put fill its slot with what they store, or by cp.async.
static enum tir_role_work work_of_put(const struct tir_func *f, const struct tir_inst *put)
{
    enum tir_role_work work = TIR_ROLE_COPIES;
    tir_foreach_inst_in(inst, put->regions[0]) {
        if (tir_done_of(inst) == TIR_DONE_CP_ASYNC)
            return TIR_ROLE_COMPUTES;
        if (inst->op != TIR_OP_STORE)
            continue;
        struct tir_value *v = inst->operands[TIR_STORE_VALUE];
        work = TIR_MAX(work, tir_turning_work(f, v, false, f->threads / 32));
    }
    return work;
}

static enum tir_role_work work_of_puts(const struct tir_func *f)
{
    enum tir_role_work work = TIR_ROLE_COPIES;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_PUT)
            work = TIR_MAX(work, work_of_put(f, inst));
    return work;
}

static bool is_read_in_put(const struct tir_func *f, const struct tir_value *root)
{
    tir_foreach_inst(put, f)
        if (put->op == TIR_OP_PUT)
            tir_foreach_inst_in(inst, put->regions[0])
                if (inst->op == TIR_OP_LOAD && tir_buffer_root(tir_ref_base(inst)) == root)
                    return true;
    return false;
}

// Do puts read buffers that cp.async fills? Then they are to read all of these, since groups count
// all copies of a thread.
static void find_feeds(struct split *s)
{
    bool others = false;
    struct tir_inst *copy = NULL;
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_COPY_ASYNC || !is_thread_copy(inst))
            continue;
        copy = inst;
        if (is_read_in_put(s->f, tir_buffer_root(inst->operands[TIR_COPY_TO])))
            s->feeds = true;
        else
            others = true;
    }
    if (s->feeds && others)
        refuse(s, copy, "the warps that multiply await copies by cp.async too");
}

// Whether the tiles loop asks for a role that stores; it loses the clause.
static const struct tir_inst *take_clause(struct tir_func *f)
{
    const struct tir_inst *found = NULL;
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_store_role, 0)) {
            tir_drop_attr(f, inst, TIR_ATTR_store_role);
            found = inst;
        }
    return found;
}

static void plan_stores(struct split *load, struct split *store, const struct tir_inst *tiles,
                        enum tir_role_work works)
{
    store->sends = true;
    find_needed(store);
    if (works != TIR_ROLE_COPIES)
        refuse(store, tiles, "the warps beside it compute slots");
    if (!store->refusal) {
        tir_make_store_rings(store->f, store->cx, &store->outgoing);
        load->outgoing = store->outgoing;
    }
    if (!store->outgoing.len)
        refuse(store, tiles, "no tile leaves by tensor copies from buffers of its own");
    if (store->refusal)
        tir_receipt_refuse(store->cx, TIR_TOPIC_ROLE, TIR_WISH_NONE, store->refused_at,
                           "role store: none, because %s", store->refusal);
}

// A copy of what `math` does in front of the end of the kernel, of which the role keeps its work.
static void fill_role(struct split *s, struct tir_inst *role, const struct tir_inst *math)
{
    struct tir_map map;
    tir_map_init(&map, s->cx->scratch);
    struct tir_builder b = tir_builder_at_end(s->f, role->regions[0]);
    tir_clone_into(&b, math->regions[0], &map);
    end_block(s->f, role->regions[0]);
    find_needed(s); // by the ids of the copy too
    keep_work(s, role->regions[0]);
}

// Spreads what puts store over the role's one warpgroup.
static void spread_turned(struct tir_func *f, const struct tir_inst *role)
{
    tir_foreach_inst_in(inst, role->regions[0])
        if (inst->op == TIR_OP_STORE)
            tir_turn_with(f->module->types, inst->operands[TIR_STORE_VALUE], TIR_WARPGROUP);
}

static void split(struct split *load, struct split *store)
{
    struct tir_func *f = load->f;
    const uint32_t warps = f->threads / 32;
    const struct tir_role_registers registers = tir_role_registers(f->threads / 128, load->works);
    const bool computes = load->works != TIR_ROLE_COPIES;
    const bool stores = store->outgoing.len, follows = !registers.load && !computes;
    const uint32_t loading = !computes ? 1 : load->works == TIR_ROLE_TURNS ? TIR_WARPGROUP : warps;
    const uint32_t others = computes ? loading : !follows ? TIR_WARPGROUP : stores ? 2 : 1;
    const uint32_t first = follows ? warps : 0;
    struct tir_inst *role = build_role(load, "load", first, loading, registers.load);
    struct tir_inst *third =
        stores ? build_role(store, "store", first + 1, 1, registers.load) : NULL;
    struct tir_inst *math = build_role(load, "math", follows ? 0 : others, warps, registers.math);
    end_block(f, math->regions[0]);
    for (struct tir_inst *inst = f->body->first, *next; inst != role; inst = next) {
        next = inst->next;
        if (inst->op != TIR_OP_RING)
            tir_move_before(inst, math->regions[0]->last);
    }
    fill_role(load, role, math);
    if (load->works == TIR_ROLE_TURNS)
        spread_turned(f, role);
    if (third)
        fill_role(store, third, math);
    drop_work(load, math->regions[0]);
    f->threads += 32 * others;
}

enum tir_change tir_pass_specialize_warps(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct split load = {.f = f, .cx = cx, .works = work_of_puts(f)}, store = load;
    const struct tir_inst *tiles = take_clause(f);
    const bool ahead = !(cx->target->features & TIR_HAS_WGMMA); // puts are, in line
    if (has_ring(f) && !has_role(f) && !ahead) {
        find_feeds(&load);
        find_needed(&load);
        if (f->threads / 128 > TIR_BUDGET_PRODUCT_GROUPS)
            refuse(&load, f->body->first, "more than three warpgroups compute");
        if (cx->attempt && cx->attempt->no_roles)
            refuse(&load, f->body->first, "the kernel failed with them");
        if (load.refusal)
            tir_receipt_refuse(cx, TIR_TOPIC_ROLE, TIR_WISH_SPECIALIZE, load.refused_at,
                               "roles: none, because %s", load.refusal);
    } else {
        load.refusal = "nothing is split in roles here";
    }
    if (load.refusal) {
        if (tiles)
            tir_receipt_refuse(cx, TIR_TOPIC_ROLE, TIR_WISH_NONE, tiles->span,
                               "role store: none, because %s", load.refusal);
        return tiles ? TIR_CHANGED : TIR_UNCHANGED;
    }
    if (tiles)
        plan_stores(&load, &store, tiles, load.works);
    split(&load, &store);
    tir_pass_dce(f, cx);
    return TIR_CHANGED;
}
