// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, roles: turns concurrent blocks into branches on the number of the warp.
//
//     role load warps(1) first(0) regs(40) { A }
//     role math warps(8) first(4) regs(232) { B }
// becomes
//     let w: i32 = warpid();
//     if lt(w, 4) {
//         setmaxnreg(regs = 40, change = dec);
//         if lt(w, 1) { A }
//     } else {
//         setmaxnreg(regs = 232, change = inc);
//         B
//     }
//
// Warps without a role do nothing, except that they change registers with a role in their
// warpgroup, since the whole warpgroup must execute that instruction. Inside a role the threads
// count from its first warp, and reductions, scans and conversions use the role's named barrier.

#include "ir/walk.h"
#include "pass/lower/lower.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

enum { MAX_WARPS = 32, MAX_REGS = 256 };

struct range { // consecutive warps of one role, or of none
    struct tir_inst *role;
    uint32_t first, end;
    int64_t barrier;
};

struct roles {
    struct lower *lo;
    struct range ranges[2 * MAX_WARPS + 1]; // all warps, in order
    uint32_t count;
    bool changes;  // registers move between roles
    int64_t entry; // registers of a thread at the start
};

static int64_t regs_of(const struct tir_inst *role)
{
    return role ? tir_attr_int(role, TIR_ATTR_regs, 0) : 0;
}

static bool refuse(struct lower *lo, const struct tir_inst *role, const char *why)
{
    tir_error_at(lo->cx->diags, role->span, TIR_E_UNSUPPORTED, "role " STR_FMT " %s",
                 STR_ARG(tir_attr_find(role, TIR_ATTR_name)->text), why);
    lo->failed = true;
    return false;
}

static void insert(struct roles *r, struct range range)
{
    uint32_t at = r->count++;
    for (; at > 0 && r->ranges[at - 1].first > range.first; at--)
        r->ranges[at] = r->ranges[at - 1];
    r->ranges[at] = range;
}

static bool collect(struct roles *r, struct tir_inst *first)
{
    struct lower *lo = r->lo;
    uint32_t warps = lo->f->threads / 32;
    for (struct tir_inst *role = first; role; role = role->next) {
        if (role->op != TIR_OP_ROLE) {
            tir_lower_unsupported(lo, role, "an operation after the roles of a kernel");
            return false;
        }
        struct tir_crew crew = tir_crew_of(lo->f, role);
        if (crew.warps == 0 || crew.first + crew.warps > warps)
            return refuse(lo, role, "has warps that the kernel does not have");
        if (crew.number + 1 >= TIR_NAMED_BARRIERS)
            return refuse(lo, role, "is one more than there are barriers for");
        insert(r, (struct range){role, crew.first, crew.first + crew.warps, crew.number + 1});
    }
    uint32_t roles = r->count;
    for (uint32_t i = 0, at = 0; i <= roles; i++) { // what lies between, as ranges without a role
        uint32_t next = i < roles ? r->ranges[i].first : warps;
        if (next < at)
            return refuse(lo, r->ranges[i].role, "shares warps with another one");
        if (next > at)
            r->ranges[r->count++] = (struct range){NULL, at, next, 0};
        at = i < roles ? r->ranges[i].end : warps;
    }
    for (uint32_t i = roles, end = r->count; i < end; i++) {
        struct range idle = r->ranges[i];
        r->count = i;
        insert(r, idle);
    }
    return true;
}

// The ranges from i on up to the first that ends with a warpgroup.
static uint32_t group_end(const struct roles *r, uint32_t i)
{
    while (r->ranges[i].end % TIR_WARPGROUP && i + 1 < r->count)
        i++;
    return i + 1;
}

static int64_t group_regs(const struct roles *r, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (regs_of(r->ranges[i].role))
            return regs_of(r->ranges[i].role);
    return 0;
}

// Do registers move? Only where the target can, every warpgroup with a role says how many it needs,
// and what some give back is enough for the others: they would wait for ever.
static bool may_change(struct roles *r, const char **why)
{
    struct lower *lo = r->lo;
    int64_t needed = 0;
    r->entry = tir_launch_registers(lo->f->threads);
    *why = NULL;
    for (uint32_t i = 0, end; i < r->count; i = end) {
        end = group_end(r, i);
        int64_t regs = group_regs(r, i, end);
        for (uint32_t k = i; k < end; k++) {
            int64_t own = regs_of(r->ranges[k].role);
            if (own && (own % 8 || own < 24 || own > MAX_REGS))
                *why = "registers of a thread are multiples of 8 from 24 to 256";
            if (r->ranges[k].role && own != regs)
                *why = "roles of one warpgroup have different registers";
        }
        needed += (regs ? regs : r->entry) * 32 * (r->ranges[end - 1].end - r->ranges[i].first);
    }
    if (needed > r->entry * lo->f->threads)
        *why = "roles have more registers than the kernel starts with";
    if (!(lo->cx->target->features & (TIR_HAS_WGMMA | TIR_HAS_TCGEN05)))
        *why = "the target has no setmaxnreg";
    return !*why && r->count > 1;
}

static void open_budget(struct roles *r, const struct tir_inst *first)
{
    bool stated = false;
    for (uint32_t i = 0; i < r->count; i++)
        stated |= regs_of(r->ranges[i].role) != 0;
    const char *why = NULL;
    r->changes = stated && may_change(r, &why);
    if (stated && !r->changes && why)
        tir_receipt_refuse(r->lo->cx, TIR_TOPIC_ROLE, TIR_WISH_NONE, first->span,
                           "registers of roles are not changed, because %s", why);
}

static void build_setmaxnreg(struct roles *r, struct tir_builder *b, int64_t regs)
{
    if (!r->changes || !regs || regs == r->entry)
        return;
    struct tir_inst *inst = tir_build(b, TIR_OP_SETMAXNREG, NULL, 0, NULL, 0, 0);
    tir_set_int(r->lo->f, inst, TIR_ATTR_regs, regs);
    tir_set_word(r->lo->f, inst, TIR_ATTR_change,
                 regs < r->entry ? TIR_WORD_change_dec : TIR_WORD_change_inc);
}

// The role's block, where it stands.
static void lower_block_of(struct lower *lo, const struct range *range)
{
    struct lower outer = *lo;
    struct tir_block *block = range->role->regions[0];
    struct tir_builder start = tir_builder_before(lo->f, block->first);
    struct tir_inst *marker = tir_build(&start, TIR_OP_WARP_SYNC, NULL, 0, NULL, 0, 0);
    lo->top = tir_builder_before(lo->f, marker);
    lo->lane = lo->warp = lo->tid = NULL;
    lo->first_warp = range->first;
    lo->threads = 32 * (range->end - range->first);
    lo->barrier = range->barrier;
    tir_map_init(&lo->coords, lo->cx->scratch);
    tir_lower_block(lo, block);
    tir_remove(marker);
    lo->top = outer.top;
    lo->b = outer.b;
    lo->lane = outer.lane;
    lo->warp = outer.warp;
    lo->tid = outer.tid;
    lo->first_warp = outer.first_warp;
    lo->threads = outer.threads;
    lo->barrier = outer.barrier;
    lo->coords = outer.coords;
}

// The number of the first role, in the order of the program, among ranges from .. to.
static int64_t first_role(const struct roles *r, uint32_t from, uint32_t to)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = from; i < to; i++)
        if (r->ranges[i].role)
            first = TIR_MIN(first, r->ranges[i].barrier);
    return first;
}

// An if that parts the warps of ranges from .. at from those of at .. to; *lower and *upper: its
// blocks. The code of the role that stands first in the program comes first, since what that role
// starts would wait for code from further away.
static void branch(const struct roles *r, struct tir_builder b, uint32_t from, uint32_t at,
                   uint32_t to, struct tir_builder *lower, struct tir_builder *upper)
{
    struct lower *lo = r->lo;
    const int64_t first = first_role(r, from, at); // of warps without a role, none
    const bool swap = first != INT64_MAX && first_role(r, at, to) < first;
    struct tir_value *then =
        tir_binary(&b, swap ? TIR_OP_GE : TIR_OP_LT, tir_lower_thread(lo, TIR_AXIS_WARP),
                   tir_lower_i32(lo, r->ranges[at - 1].end));
    struct tir_inst *inst = tir_build(&b, TIR_OP_IF, &then, 1, NULL, 0, 2);
    struct tir_builder *blocks[] = {swap ? upper : lower, swap ? lower : upper};
    for (uint32_t i = 0; i < 2; i++) {
        struct tir_builder in = tir_builder_at_end(lo->f, inst->regions[i]);
        *blocks[i] = tir_builder_before(lo->f, tir_build_yield(&in, NULL, 0));
    }
}

// The ranges from .. to of one run of warpgroups.
static void build_ranges(struct roles *r, struct tir_builder b, uint32_t from, uint32_t to)
{
    uint32_t used = to;
    while (used > from && !r->ranges[used - 1].role) // warps at the end that have nothing to do
        used--;
    for (uint32_t i = from; i < used; i++) {
        const struct range *range = &r->ranges[i];
        struct tir_builder own = b;
        if (i + 1 < to)
            branch(r, b, i, i + 1, to, &own, &b);
        if (!range->role)
            continue;
        struct tir_block *block = range->role->regions[0];
        tir_remove(tir_yield_of(block));
        while (block->first)
            tir_move_before(block->first, own.before);
    }
}

// Messages about the kernel speak of its roles, which are branches from here on.
static void keep_names(const struct roles *r)
{
    struct tir_func *f = r->lo->f;
    f->roles = arena_array(f->module->arena, struct tir_role, r->count);
    for (uint32_t i = 0; i < r->count; i++)
        if (r->ranges[i].role)
            f->roles[f->role_count++] =
                (struct tir_role){tir_attr_find(r->ranges[i].role, TIR_ATTR_name)->text,
                                  r->ranges[i].first, r->ranges[i].end - r->ranges[i].first};
}

void tir_lower_roles(struct lower *lo, struct tir_inst *first)
{
    struct roles r = {.lo = lo};
    if (!collect(&r, first))
        return;
    keep_names(&r);
    open_budget(&r, first);
    for (uint32_t i = 0; i < r.count && !lo->failed; i++)
        if (r.ranges[i].role)
            lower_block_of(lo, &r.ranges[i]);
    if (lo->failed)
        return;
    struct tir_builder b = lo->b;
    for (uint32_t i = 0, end; i < r.count; i = end) {
        struct tir_builder own = b;
        end = group_end(&r, i);
        if (end < r.count)
            branch(&r, b, i, end, r.count, &own, &b);
        build_setmaxnreg(&r, &own, group_regs(&r, i, end));
        build_ranges(&r, own, i, end);
    }
    while (first->next)
        tir_remove(first->next);
    if (r.changes) // one CTA has all registers of a multiprocessor
        lo->f->persistent = TIR_MIN(lo->f->persistent, 1);
}
