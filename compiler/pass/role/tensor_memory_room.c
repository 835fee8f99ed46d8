// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tensor_memory: slots, columns, warps and registers of the kernel that it writes.
//
// What leaves tensor memory needs room in shared memory. Sums have a second slot, and the loop as
// many stages as it asks for, if there is room.

#include "pass/role/tensor_memory.h"

#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/async_store.h"
#include "pass/layout/layout.h"
#include "pass/sync/life.h"

enum {
    DEFAULT_STAGES = 4,
    DOUBLE = 2, // sums, if there are columns for it; converted operands
    LEAST_COLUMNS = 32
};

static int64_t columns_of(const struct tmem_plan *p, const struct tir_type *t, int64_t slots)
{
    const int64_t lanes = tir_tmem_folds(t->shape[0], p->is_pair)
                              ? t->shape[0]
                              : (int64_t)tir_align_up((uint64_t)t->shape[0], TIR_TMEM_LANES);
    return slots * lanes * t->shape[1] * tir_elems[t->elem].bits / (32 * TIR_TMEM_LANES);
}

// Slots of what the role that computes hands over.
static int64_t computed_slots(const struct tmem_operand *o)
{
    return o->is_converted && o->group ? DOUBLE : 1;
}

static int64_t columns_of_sums(const struct tmem_plan *p, uint32_t product)
{
    const struct tmem_product *t = &p->products[product];
    return columns_of(p, tmem_sums_type(t), t->sums.slots);
}

// Do the sums leave half of the lanes of their columns to others?
static bool has_half(const struct tmem_plan *p, uint32_t product)
{
    return tmem_sums_type(&p->products[product])->shape[0] == TIR_TMEM_LANES / 2 && !p->is_pair;
}

// The widest sums with half of the lanes that have no place; product_count: there are none.
static uint32_t widest_half(const struct tmem_plan *p, uint32_t placed)
{
    uint32_t widest = p->product_count;
    for (uint32_t i = 0; i < p->product_count; i++)
        if (!(placed >> i & 1) &&
            (widest == p->product_count || columns_of_sums(p, i) > columns_of_sums(p, widest)))
            widest = i;
    return widest;
}

// Sums with all lanes follow one another. Then come those with half of them: the widest first, to
// the half that is shorter so far.
int64_t tir_tmem_place_sums(struct tmem_plan *p)
{
    int64_t taken[2] = {0}; // columns, of the lower lanes and of the upper
    uint32_t placed = 0;
    for (uint32_t i = 0; i < p->product_count; i++) {
        p->products[i].is_upper = false;
        if (p->shares_lanes && has_half(p, i))
            continue;
        p->products[i].column = taken[0];
        taken[0] += columns_of_sums(p, i);
        placed |= 1u << i;
    }
    taken[1] = taken[0];
    for (uint32_t i; (i = widest_half(p, placed)) < p->product_count; placed |= 1u << i) {
        const bool is_upper = taken[1] < taken[0];
        p->products[i].is_upper = is_upper;
        p->products[i].column = taken[is_upper];
        taken[is_upper] += columns_of_sums(p, i);
    }
    return TIR_MAX(taken[0], taken[1]);
}

static int64_t used_columns(struct tmem_plan *p)
{
    int64_t columns = tir_tmem_place_sums(p);
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operands[i].in_tmem)
            columns += columns_of(p, p->operands[i].tile->type, computed_slots(&p->operands[i]));
    return columns + tir_tmem_scale_columns(p);
}

// What the loop carries in registers.
static int64_t carried_bytes(struct tmem_plan *p)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->loop->result_count; i++)
        if (!tir_tmem_carrier(p, i))
            bytes += tir_type_bytes(p->loop->results[i]->type);
    return bytes;
}

// What the loops around it carry.
static int64_t held_bytes(const struct tmem_plan *p)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->holder_count; i++)
        for (uint32_t k = 0; tir_is_loop(p->holders[i]) && k < p->holders[i]->result_count; k++)
            bytes += tir_type_bytes(p->holders[i]->results[k]->type);
    return bytes;
}

// Sums of products that stay with the role that computes, such as those of a tail.
static int64_t kept_bytes(struct tmem_plan *p)
{
    int64_t bytes = 0;
    tir_foreach_inst_in(inst, p->tiles->regions[0])
        if (inst->op == TIR_OP_DOT && !tir_tmem_product_of(p, inst))
            bytes += tir_type_bytes(inst->results[0]->type);
    return bytes;
}

// A warpgroup for each block of rows, or two that have half of the columns each: a thread has at
// most 128 registers of sums, and 64 beside as many that loops carry.
static const char *take_warps(struct tmem_plan *p)
{
    // Bytes of sums: after the loop, and of one product.
    int64_t blocks = 1, after = kept_bytes(p), most = 0;
    for (uint32_t i = 0; i < p->product_count; i++) {
        const struct tmem_product *t = &p->products[i];
        const struct tir_type *type = tmem_sums_type(t);
        const int64_t bytes = tir_type_bytes(type);
        blocks = TIR_MAX(blocks, type->shape[0] / tir_tmem_block(type->shape[0]));
        after += t->kind == TMEM_OF_ROUND ? 0 : bytes;
        most = TIR_MAX(most, bytes);
    }
    const int64_t all = blocks * 4 * 32 * TMEM_WARPGROUP; // bytes of a register of each thread
    const int64_t held = held_bytes(p);
    const bool is_wide = TIR_MAX(after, most) > 128 * all ||
                         held + TIR_MAX(after, most + carried_bytes(p)) > 192 * all;
    p->compute_warps = (uint32_t)(is_wide ? 2 * blocks : blocks) * TMEM_WARPGROUP;
    if (most > 2 * 128 * all)
        return "its sums take more registers than threads have";
    const uint32_t stated = tir_stated_threads(p->f) / 32;
    if (stated && stated != p->compute_warps)
        return "layouts that the program states have other warps than the role that computes";
    if (p->compute_warps > TMEM_MOST_COMPUTE)
        return "its sums take more registers than threads have";
    for (uint32_t i = 0; i < p->product_count; i++)
        if (!tir_layout_tmem(p->types, tmem_sums_type(&p->products[i])->shape, p->compute_warps,
                             p->is_pair))
            return "warpgroups do not share out the sums of all products";
    return NULL;
}

// What the warpgroups do that do not compute, if some of them gather. COPIES: too many for that.
static enum tir_role_work gather_work(uint32_t all)
{
    static const enum tir_role_work works[] = {
        [2] = TIR_ROLE_GATHERS, [3] = TIR_ROLE_GATHER_MANY, [4] = TIR_ROLE_GATHER_MOST};
    return all < TIR_COUNT_OF(works) ? works[all] : TIR_ROLE_COPIES;
}

// Warpgroups that compute take registers from one more that holds all other warps, or from two, and
// from those that gather. A single one beside one more has as many as there are without that.
static const char *take_registers(struct tmem_plan *p)
{
    const uint32_t groups = p->compute_warps / TMEM_WARPGROUP;
    p->warps = p->compute_warps + 1 + p->product_count + p->scale_warps;
    const uint32_t others = tir_ceil_div(p->warps, TMEM_WARPGROUP) - groups;
    const enum tir_role_work gathers = gather_work(others + p->gather_warps / TMEM_WARPGROUP);
    p->registers = tir_role_registers(groups, p->gather_warps  ? gathers
                                              : others > 1     ? TIR_ROLE_ISSUE_MANY
                                              : p->scale_warps ? TIR_ROLE_ARRANGES
                                                               : TIR_ROLE_ISSUES);
    if (p->gather_warps && (!p->registers.math || gathers == TIR_ROLE_COPIES))
        return "its roles have more threads than registers";
    if (!p->registers.math)
        return NULL;
    if (p->scale_warps) // fewer scales of a thread
        p->scale_warps += (groups + others) * TMEM_WARPGROUP - p->warps;
    p->warps = (groups + others) * TMEM_WARPGROUP + p->gather_warps;
    return NULL;
}

// Of a slot in shared memory.
static int64_t operand_bytes(const struct tmem_operand *o)
{
    const struct tir_type t = o->is_arranged ? tir_tmem_scales_type(o) : tmem_slot_type(o);
    return tir_type_bytes(&t);
}

// Of operands that are loaded for a tile.
static int64_t tile_bytes(const struct tmem_plan *p)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (!p->operands[i].is_computed && p->operands[i].is_per_tile)
            bytes += operand_bytes(&p->operands[i]);
    return bytes;
}

// What the tiles that the loop's sums become go through on their way to tensors.
static int64_t store_bytes(const struct tmem_plan *p)
{
    int64_t bytes = 0;
    tir_foreach_inst_in(inst, p->tiles->regions[0]) {
        const struct tir_value *v =
            inst->op == TIR_OP_STORE ? inst->operands[TIR_STORE_VALUE] : NULL;
        if (v && tir_type_is_tile(v->type) && v->type->rank > 1 &&
            tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL)
            bytes = TIR_MAX(bytes, tir_store_buffers_bytes(v->type));
    }
    return bytes;
}

// What results go through beside the slots: what the program rearranges in front of the loop and
// behind it, at places that these buffers share, also with `stores`.
static int64_t bytes_beside(const struct tmem_plan *p, int64_t stores)
{
    struct tir_lives lives;
    tir_lives_find(&lives, p->f, p->cx->scratch, false);
    vec_foreach(struct tir_life, in, &lives.buffers)
        if (in->buffer && tir_block_contains(p->loop->regions[0], in->buffer->def))
            in->bytes = 0;                         // it may become an operand's slot
    const int64_t bytes = tir_lives_place(&lives); // TIR_MAX asks twice
    return TIR_MAX(TIR_MAX(bytes, stores) + TIR_BUDGET_MBARRIER_BYTES, TIR_BUDGET_FREE_SHARED);
}

// As many slots as the loop asks for, if there is room, but beyond the fourth none that results
// would lack. An attempt that fails for what follows the loop has fewer in the next one
// (compile/jobs.c).
static const char *take_stages(struct tmem_plan *p)
{
    const int64_t beside = bytes_beside(p, 0), stores = bytes_beside(p, store_bytes(p)) - beside;
    int64_t round = 0, left = p->cx->target->shared_per_cta - beside;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const struct tmem_operand *o = &p->operands[i];
        if (!o->is_computed && !o->is_per_tile)
            round += operand_bytes(o);
        else if (!o->in_tmem || !o->is_computed)
            left -= operand_bytes(o) * computed_slots(o);
    }
    const int64_t most = p->cx->attempt ? p->cx->attempt->stages : INT64_MAX;
    int64_t stages = tir_attr_int(p->loop, TIR_ATTR_stages, DEFAULT_STAGES);
    stages = TIR_MIN(TIR_MIN(stages, most), left / TIR_MAX(round, 1));
    // Is there room for the next tile's?
    const bool is_double = most > 1 && left - stages * round >= tile_bytes(p);
    const int64_t rest = left - stores - (is_double ? tile_bytes(p) : 0);
    if (rest / TIR_MAX(round, 1) >= TIR_MIN(stages, DEFAULT_STAGES))
        stages = TIR_MIN(stages, rest / TIR_MAX(round, 1));
    for (uint32_t i = 0; i < p->group_count; i++) {
        struct tmem_group *g = &p->groups[i];
        const int64_t loaded = g->is_per_tile ? 1 + is_double : stages;
        g->channel.slots = g->is_converted  ? DOUBLE
                           : g->is_computed ? 1
                           : g->has_scales  ? TIR_MIN(loaded, p->most_scales)
                                            : loaded;
    }
    return left < 0 || stages < 1 ? "its operands do not fit shared memory" : NULL;
}

// Lets sums share lanes, or else takes away a second slot of the widest ones, or else moves an
// operand to shared memory, or else takes away a slot of scales.
static bool save_columns(struct tmem_plan *p)
{
    struct tmem_product *widest = NULL;
    if (!p->shares_lanes)
        return p->shares_lanes = true;
    for (uint32_t i = 0; i < p->product_count; i++) {
        struct tmem_product *t = &p->products[i];
        if (t->sums.slots > 1 &&
            (!widest || tmem_sums_type(t)->shape[1] > tmem_sums_type(widest)->shape[1]))
            widest = t;
    }
    if (widest)
        widest->sums.slots = 1;
    for (uint32_t i = 0; !widest && i < p->operand_count; i++)
        if (p->operands[i].in_tmem) {
            p->operands[i].in_tmem = false;
            return true;
        }
    int64_t scales = 0;
    for (uint32_t i = 0; !widest && i < p->group_count; i++)
        if (p->groups[i].has_scales)
            scales = TIR_MAX(scales, p->groups[i].channel.slots);
    if (scales > 1)
        p->most_scales = scales - 1;
    return widest || scales > 1;
}

// Shares out shared and tensor memory: what leaves the one needs room in the other.
static const char *take_memory(struct tmem_plan *p)
{
    for (uint32_t i = 0; i < p->product_count; i++)
        p->products[i].sums.slots = p->products[i].kind == TMEM_TURNS ? 1 : DOUBLE;
    p->most_scales = INT64_MAX;
    p->shares_lanes = false;
    const char *why = take_stages(p);
    while (!why && used_columns(p) > TIR_TMEM_COLUMNS)
        why = save_columns(p) ? take_stages(p)
                              : "its sums take more than 512 columns of tensor memory";
    for (p->columns = LEAST_COLUMNS; !why && p->columns < used_columns(p); p->columns *= 2)
        continue;
    return why;
}

// The CTA that multiplies is told of the slots of both of a pair, and tells both.
static void count_arrivals(struct tmem_plan *p)
{
    const uint32_t ctas = p->is_pair ? 2 : 1;
    for (uint32_t i = 0; i < p->group_count; i++) {
        struct tmem_group *g = &p->groups[i];
        g->channel.ctas = ctas;
        g->channel.fills = g->is_computed   ? ctas * p->compute_warps
                           : g->is_arranged ? ctas * p->scale_warps
                           : g->is_gathered ? ctas * p->gather_warps
                                            : 1;
        for (uint32_t t = 0; t < p->product_count; t++)
            g->channel.frees += g->products >> t & 1;
        g->channel.frees += g->is_fetched ? p->compute_warps : 0;
    }
    for (uint32_t i = 0; i < p->product_count; i++) {
        struct tmem_product *t = &p->products[i];
        t->sums.ctas = ctas;
        t->sums.fills = t->kind == TMEM_TURNS ? ctas * p->compute_warps : 1;
        t->sums.frees = t->kind == TMEM_TURNS ? 1 : ctas * p->compute_warps;
    }
}

const char *tir_tmem_take_room(struct tmem_plan *p)
{
    const char *why = take_memory(p);
    why = why ? why : take_warps(p);
    why = why ? why : take_registers(p);
    if (!why)
        count_arrivals(p);
    return why;
}
