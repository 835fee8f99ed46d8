// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles and threads do not mix: a tile operation is done by the whole CTA together, so neither its
// operands nor whether it is reached may differ between threads; in a role or scope, by its
// threads. And a kernel without a grid or roles has no threads to speak of.
//
// A role does a scalar store or atomic once. Where its operands differ between threads, or only
// some threads reach it, every thread that comes does its own:
//     store(Y[i], t);
// becomes, where i or t come from tid(),
//     store(Y[i], t, by_thread = 1);
//
// The rows that a tensor copy names are loaded by each thread that starts one,
//     let r: i32[4] = load(I[i:+4], by_thread = 1);
// and are no tile of all threads.
//
// varying.c finds what differs.
#include "front/lower/lower.h"
#include "front/lower/varying.h"
#include "ir/crew.h"

enum {
    SIZES = 6,      // of scopes: 1, 2, 4, ... 32 warps
    THREADS = 1024, // that a CTA has at most
    LONGEST = 8     // steps of an expression that counts threads
};

struct uniform {
    struct lower *l;
    struct varying varying;          // between the threads of a role or CTA
    struct varying within[SIZES];    // between those of a group of so many warps
    const struct tir_inst *reported; // the branch or loop that the last message was about
};

static bool is_tile(const struct tir_value *v)
{
    return v && tir_type_is_tile(v->type);
}

// From the number of the thread, from its own memory, or from an atomic of single threads.
static bool differs_by_thread(const struct varying *set, const struct tir_inst *inst)
{
    return tir_has_trait(inst, TIR_THREAD) ||
           (inst->op == TIR_OP_ATOMIC && !is_tile(inst->results[0]) &&
            (set->f->grid_count || varying_around(set, inst))) ||
           (inst->op == TIR_OP_LOAD && tir_ref_base(inst)->type->space == TIR_SPACE_LOCAL);
}

// (thread - begin) / unit, rounded down. unit 0: the value does not count threads.
struct count {
    int64_t begin, unit;
};

static bool is_small(const struct tir_value *v, int64_t *number)
{
    return tir_is_const_int(v, number) && *number >= -THREADS && *number <= THREADS;
}

// After `by` was added. What counts below zero is left out: its quotients are rounded up, and
// without a sign it wraps.
static struct count count_from(struct count c, int64_t by, const struct tir_crew *crew)
{
    c.begin -= by * c.unit;
    return c.begin <= 32 * (int64_t)crew->first ? c : (struct count){0};
}

static struct count count_of(const struct tir_func *f, const struct tir_value *v, uint32_t steps)
{
    int64_t by;
    const struct tir_inst *inst = v->def;
    struct count c = {0};
    if (!inst || inst->region_count || steps == LONGEST)
        return c;
    if (inst->op == TIR_OP_TID)
        return (struct count){0, 1};
    if (inst->op == TIR_OP_WARPID)
        return (struct count){0, 32};
    if (inst->op == TIR_OP_WGID)
        return (struct count){0, 32 * TIR_WARPGROUP};
    if (inst->op == TIR_OP_CAST)
        return tir_elem_is_int(v->type->elem) && tir_elems[v->type->elem].bits >= 16
                   ? count_of(f, inst->operands[0], steps + 1)
                   : c;
    const bool is_step = inst->op == TIR_OP_ADD || inst->op == TIR_OP_SUB ||
                         inst->op == TIR_OP_DIV || inst->op == TIR_OP_SHR;
    if (!is_step || !is_small(inst->operands[1], &by))
        return c;
    c = count_of(f, inst->operands[0], steps + 1);
    const struct tir_crew crew = tir_crew_of(f, inst);
    switch (inst->op) {
    case TIR_OP_ADD:
        return count_from(c, by, &crew);
    case TIR_OP_SUB:
        return count_from(c, -by, &crew);
    case TIR_OP_DIV:
        return (struct count){c.begin, by > 0 ? c.unit * by : 0};
    default:
        return (struct count){c.begin, by >= 0 && by < 16 ? c.unit << by : 0};
    }
}

// Whether x < c or one of its kin, which changes between two threads alone, does so between groups.
static bool parts_groups(const struct varying *set, const struct tir_inst *inst)
{
    int64_t number;
    const bool above = inst->op == TIR_OP_LE || inst->op == TIR_OP_GT;
    if (!above && inst->op != TIR_OP_LT && inst->op != TIR_OP_GE)
        return false;
    const struct count c = count_of(set->f, inst->operands[0], 0);
    return c.unit && is_small(inst->operands[1], &number) &&
           (c.begin + (number + above) * c.unit) % set->threads == 0;
}

// The same in each group of set->threads threads, which begins with a multiple of so many.
static bool same_in_group(const struct varying *set, const struct tir_inst *inst)
{
    if (inst->result_count != 1 || tir_type_is_buffer(inst->results[0]->type))
        return false;
    const struct count c = count_of(set->f, inst->results[0], 0);
    if (c.unit && c.unit % set->threads == 0 && c.begin % set->threads == 0)
        return true;
    if (parts_groups(set, inst))
        return true;
    if (set->threads > 32)
        return false;
    if (inst->op == TIR_OP_VOTE)
        return true;
    return inst->op == TIR_OP_SHUFFLE && !varying_has(set, inst->operands[1]) &&
           tir_attr_word(inst, TIR_ATTR_mode, TIR_WORD_mode_idx) == TIR_WORD_mode_idx;
}

// What threads do by themselves: load rows, and start copies of these.
static bool is_tile_op(const struct tir_inst *inst)
{
    if (tir_loads_rows(inst) || (tir_copied_rows(inst) && inst->operands[TIR_COPY_MBAR]))
        return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (is_tile(inst->operands[i]))
            return true;
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (is_tile(inst->results[i]))
            return true;
    bool together = inst->op == TIR_OP_COPY_ASYNC && !inst->operands[TIR_COPY_MBAR];
    return together || inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET;
}

// The values that differ between the threads that inst is done by.
static const struct varying *varying_of(struct uniform *u, const struct tir_inst *inst)
{
    const struct tir_crew crew = tir_crew_of(u->l->f, inst);
    if (!crew.scope)
        return &u->varying;
    struct varying *set = u->within;
    for (uint32_t warps = crew.warps; warps > 1; warps /= 2)
        set++;
    if (!set->f) {
        *set = (struct varying){.f = u->l->f,
                                .begins = differs_by_thread,
                                .ends = same_in_group,
                                .threads = 32 * crew.warps,
                                .values = bitset_new(u->l->arena, u->l->f->value_count)};
        varying_find(set);
    }
    return set;
}

// A tile of other threads: made outside of the role or scope that inst is in.
static const struct tir_value *foreign_tile(const struct tir_func *f, const struct tir_inst *inst)
{
    const struct tir_crew crew = tir_crew_of(f, inst);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (!is_tile(v) || v->kind == TIR_VALUE_CONST)
            continue;
        const struct tir_crew other =
            tir_crew_of_block(f, v->kind == TIR_VALUE_ARG ? v->block : v->def->block);
        if (other.role != crew.role || other.scope != crew.scope)
            return v;
    }
    return NULL;
}

static bool check_foreign(struct uniform *u, const struct tir_inst *inst)
{
    const struct tir_value *v = foreign_tile(u->l->f, inst);
    if (!v)
        return true;
    const bool in_scope = tir_crew_of(u->l->f, inst).scope;
    lower_error(u->l, inst->span, TIR_E_THREAD_TILE,
                "%s%s%s is a tile of all threads outside of this %s, which has tiles of its own",
                v->name ? "`" : "", v->name ? v->name : "this", v->name ? "`" : "",
                in_scope ? "scope" : "role");
    if (v->def)
        lower_note(u->l, v->def->span, "it is made here; a shared buffer takes it inside");
    return false;
}

// What each thread has loaded for its copies may differ between threads: it is no tile of theirs.
static bool check_rows(struct uniform *u, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (!is_tile(v) || !v->def || !tir_loads_rows(v->def) || v == tir_copied_rows(inst))
            continue;
        lower_error(u->l, inst->span, TIR_E_THREAD_TILE,
                    "the rows of a tensor copy are loaded for such copies alone, by the threads "
                    "that start them");
        lower_note(u->l, v->def->span, "what else needs them loads them anew");
        return false;
    }
    return true;
}

static bool check_inst(struct uniform *u, const struct tir_inst *inst)
{
    if (!check_foreign(u, inst) || !check_rows(u, inst))
        return false;
    bool is_slot = inst->op == TIR_OP_PUT || inst->op == TIR_OP_GET;
    if (inst->region_count && !is_slot && inst->op != TIR_OP_REDUCE && inst->op != TIR_OP_SCAN)
        return true; // what it carries comes from an operation that is checked itself
    if (inst->op == TIR_OP_YIELD || !is_tile_op(inst))
        return true;
    if (is_slot && tir_crew_of(u->l->f, inst).scope) {
        lower_error(u->l, inst->span, TIR_E_ROLE,
                    "`%s` in a scope: all warps of a role take a slot together",
                    tir_ops[inst->op].name);
        return false;
    }
    const struct varying *set = varying_of(u, inst);
    bool varying = false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        varying |= inst->operands[i] && varying_has(set, inst->operands[i]) &&
                   (!is_tile(inst->operands[i]) || inst->operands[i] == tir_copied_rows(inst));
    const struct tir_inst *around = varying ? NULL : varying_around(set, inst);
    if (!varying && (!around || around == u->reported))
        return true;
    if (around)
        u->reported = around;
    lower_error(u->l, inst->span, TIR_E_THREAD_TILE,
                varying   ? "`%s` on a tile, with an operand that differs between threads"
                : is_slot ? "`%s` where not every thread of the role comes"
                          : "`%s` on a tile, where not every thread comes",
                tir_ops[inst->op].name);
    if (!is_slot)
        tir_note_at(
            &u->l->cx->diags, inst->span,
            "a tile belongs to all threads of its CTA, role or scope; `scope warps(1) { }` has "
            "tiles of each warp");
    return false;
}

static void mark_by_thread(const struct uniform *u, struct tir_inst *inst)
{
    bool is_once =
        inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC || inst->op == TIR_OP_PRINT;
    if (is_once && !is_tile_op(inst) &&
        (varying_operands(&u->varying, inst) || varying_around(&u->varying, inst)))
        tir_set_int(u->l->f, inst, TIR_ATTR_by_thread, 1);
}

static bool check_no_threads(struct lower *l)
{
    tir_foreach_inst(inst, l->f)
        if (tir_has_trait(inst, TIR_THREAD)) {
            lower_error(
                l, inst->span, TIR_E_THREAD_TILE,
                "`%s` is about single threads; only a kernel with `grid(...)` or roles speaks of "
                "them",
                tir_ops[inst->op].name);
            return false;
        }
    return true;
}

bool uniform_check(struct lower *l)
{
    tir_foreach_inst(inst, l->f)
        if (tir_copied_rows(inst))
            tir_set_int(l->f, tir_copied_rows(inst)->def, TIR_ATTR_by_thread, 1);
    if (!l->f->grid_count && !l->roles.len)
        return check_no_threads(l);
    struct uniform u = {.l = l,
                        .varying = {.f = l->f,
                                    .begins = differs_by_thread,
                                    .values = bitset_new(l->arena, l->f->value_count)}};
    varying_find(&u.varying);
    bool ok = true;
    tir_foreach_inst(inst, l->f) {
        ok &= check_inst(&u, inst);
        if (!l->f->grid_count)
            mark_by_thread(&u, inst);
    }
    return ok;
}
