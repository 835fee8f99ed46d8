// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check before the replay: finds the instructions and values that matter.
//
// An instruction matters if it orders memory or touches shared memory. So do all values that decide
// whether, how often and where it runs; they are found backwards, through loops and branches. The
// rest, nearly all arithmetic on data, is not replayed.

#include "pass/sync_check/sync_check.h"

#include "pass/sync/shared.h"

// Goes from values back to what they are computed from.
struct walker {
    struct sync_program *p;
    struct bitset *found; // values, by id
    bool visits;          // marks the instructions on the way too
    bool stops;           // at loads from tensors, which are `loads` then
    bool scales;          // leaves out where data is loaded, and how much of it is added
    VEC(const struct tir_inst *) loads;
    VEC(const struct tir_value *) work;
};

static bool touches_shared(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (tir_sync_is_shared(inst->operands[i]))
            return true;
    return false;
}

// A lowered operation, or PTX that does more than compute: it is not modelled.
static bool is_opaque(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_LD:
    case TIR_OP_ST:
    case TIR_OP_ATOM:
    case TIR_OP_RED:
    case TIR_OP_CP_ASYNC:
    case TIR_OP_LDMATRIX:
    case TIR_OP_STMATRIX:
    case TIR_OP_TMA_LOAD:
    case TIR_OP_TMA_GATHER:
    case TIR_OP_TMA_PIXELS:
    case TIR_OP_TMA_STORE:
    case TIR_OP_BULK_LOAD:
    case TIR_OP_BULK_STORE:
    case TIR_OP_BULK_SEND:
    case TIR_OP_ST_ASYNC:
        return touches_shared(inst);
    case TIR_OP_WGMMA:
    case TIR_OP_TCGEN05_MMA:
    case TIR_OP_TCGEN05_CP:
    case TIR_OP_TMEM_LD:
    case TIR_OP_TMEM_ST:
        return true;
    case TIR_OP_PTX:
        return !tir_sync_ptx_computes(inst);
    default:
        return false;
    }
}

// Loads and stores of a tensor that others of the CTA store to or load from.
static bool is_tensor_event(const struct sync_program *p, const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC ||
            inst->op == TIR_OP_COPY_ASYNC || inst->op == TIR_OP_STORE_ASYNC) &&
           bitset_has(&p->tensors, tir_ref_base(inst)->id);
}

static bool is_event(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_ALLOC:
    case TIR_OP_ALIAS:
    case TIR_OP_TMEM_BUFFER:
    case TIR_OP_VIEW:
    case TIR_OP_PERMUTE:
    case TIR_OP_RESHAPE:
    case TIR_OP_REMOTE:
    case TIR_OP_TEST_WAIT: // orders nothing
        return false;
    case TIR_OP_COMMIT_GROUP:
    case TIR_OP_WAIT_GROUP:
    case TIR_OP_AWAIT:
    case TIR_OP_GEMM_ASYNC:
    case TIR_OP_COPY_ASYNC:
    case TIR_OP_STORE_ASYNC:
    case TIR_OP_BAR_SYNC:
    case TIR_OP_BAR_ARRIVE:
    case TIR_OP_WARP_SYNC:
    case TIR_OP_CLUSTER_ARRIVE:
    case TIR_OP_CLUSTER_WAIT:
    case TIR_OP_GRID_SYNC:
    case TIR_OP_FENCE:
    case TIR_OP_SETMAXNREG:
        return true;
    case TIR_OP_SHUFFLE:
    case TIR_OP_VOTE:
    case TIR_OP_ELECT: // all lanes of a warp have to come
        return inst->block->owner && inst->block->owner->op != TIR_OP_ROLE;
    default:
        return !is_opaque(inst) && touches_shared(inst);
    }
}

// The instructions after an assume_sync in its block.
static void find_assumed(struct sync_program *p, const struct tir_block *block,
                         const struct tir_inst *by)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_ASSUME_SYNC)
            by = inst;
        p->assumes[inst->id] = by;
        for (uint32_t i = 0; i < inst->region_count; i++)
            find_assumed(p, inst->regions[i], by);
    }
}

static void need(struct walker *w, const struct tir_value *v)
{
    if (v && v->kind != TIR_VALUE_CONST && bitset_insert(w->found, v->id))
        vec_push(w->p->cx->scratch, &w->work, v);
}

static void need_scalars(struct walker *w, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && !tir_type_is_tile(inst->operands[i]->type))
            need(w, inst->operands[i]);
}

static void need_slice(struct walker *w, const struct tir_inst *inst)
{
    for (uint32_t i = tir_fixed_count(inst); i < inst->operand_count; i++)
        if (!tir_type_is_tile(inst->operands[i]->type))
            need(w, inst->operands[i]);
}

// What decides where an event happens and what it means.
static void need_of_event(struct walker *w, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        if (tir_sync_is_shared(tir_ref_base(inst)) && !tir_sync_reads_anywhere(w->p, inst))
            need_slice(w, inst);
        if (inst->op == TIR_OP_ATOMIC)
            need(w, inst->operands[TIR_ATOMIC_SCRATCH]);
        break;
    case TIR_OP_PUSH:
        need_slice(w, inst);
        need(w, inst->operands[TIR_PUSH_MBAR]);
        break;
    case TIR_OP_COPY_ASYNC:
        need(w, inst->operands[TIR_COPY_TO]);
        need(w, inst->operands[TIR_COPY_MBAR]);
        need(w, inst->operands[TIR_COPY_CTAS]);
        if (tir_sync_is_shared(tir_ref_base(inst)))
            need_slice(w, inst);
        break;
    case TIR_OP_STORE_ASYNC:
        need(w, inst->operands[0]);
        break;
    case TIR_OP_SHUFFLE:
    case TIR_OP_VOTE:
    case TIR_OP_ELECT:
        break;
    default:
        need_scalars(w, inst);
        break;
    }
}

static uint32_t extent_count(const struct tir_inst *tiles)
{
    return tir_attr_find(tiles, TIR_ATTR_by)->list_count;
}

struct tir_value *const *tir_sync_bounds_of(const struct tir_inst *inst, uint32_t *count)
{
    if (inst->op == TIR_OP_WHILE)
        inst = tir_yield_of(inst->regions[0]);
    *count = inst->op == TIR_OP_IF || inst->op == TIR_OP_YIELD ? 1
             : inst->op == TIR_OP_FOR                          ? TIR_FOR_INIT
             : inst->op == TIR_OP_TILES                        ? extent_count(inst)
                                                               : 0;
    return inst->operands;
}

static void need_of_blocks(struct walker *w, const struct tir_inst *inst)
{
    uint32_t count;
    struct tir_value *const *bounds = tir_sync_bounds_of(inst, &count);
    for (uint32_t i = 0; i < count; i++)
        need(w, bounds[i]);
    const struct tir_attr *next = tir_attr_find(inst, TIR_ATTR_next);
    if (next) // a tiles loop that goes on by what it carries
        need(w, inst->regions[0]->args[extent_count(inst) + next->number]);
}

static void visit(struct walker *w, const struct tir_inst *inst)
{
    for (; inst && bitset_insert(&w->p->visited, inst->id); inst = inst->block->owner) {
        if (inst->region_count)
            need_of_blocks(w, inst);
        if (is_event(inst))
            need_of_event(w, inst);
    }
}

// Carried value i of a loop: where it comes from.
static void need_carried(struct walker *w, const struct tir_inst *loop, uint32_t i)
{
    uint32_t before = loop->op == TIR_OP_FOR     ? TIR_FOR_INIT
                      : loop->op == TIR_OP_TILES ? extent_count(loop)
                                                 : 0;
    const struct tir_block *body = loop->regions[loop->op == TIR_OP_WHILE];
    need(w, loop->operands[before + i]);
    need(w, tir_yield_of(body)->operands[i]);
}

// Does each round add a small number to carried value i? Then it is large after many rounds only.
static bool adds_little(const struct sync_program *p, const struct tir_inst *loop, uint32_t i)
{
    struct sync_step step;
    return loop->op == TIR_OP_TILES || (tir_sync_step(p, loop, i, &step) &&
                                        step.low > -SYNC_MOST_STEP && step.high < SYNC_MOST_STEP);
}

static bool is_query(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_IS_CANCELED || inst->op == TIR_OP_FIRST_CTAID;
}

// What decides is loaded from a shared buffer: then so does what is stored there.
static void need_stored(struct walker *w, const struct tir_value *buffer)
{
    if (!bitset_insert(&w->p->decides, buffer->id))
        return;
    tir_foreach_inst(inst, w->p->f) {
        bool stores =
            inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC || inst->op == TIR_OP_PUSH;
        if (stores && tir_buffer_root(tir_ref_base(inst)) == buffer &&
            tir_type_is_scalar(inst->operands[TIR_STORE_VALUE]->type))
            need(w, inst->operands[TIR_STORE_VALUE]);
    }
}

static void trace(struct walker *w, const struct tir_value *v)
{
    const struct tir_inst *owner = v->kind == TIR_VALUE_ARG ? v->block->owner : NULL;
    if (v->kind == TIR_VALUE_ARG && !owner)
        return;
    const struct tir_inst *from = owner ? owner : v->def;
    if (w->visits)
        visit(w, from);
    if (from->op == TIR_OP_TMEM_BUFFER) // wherever it is
        return;
    if (from->op == TIR_OP_IF) {
        need(w, from->operands[0]);
        need(w, tir_yield_of(from->regions[0])->operands[v->index]);
        need(w, tir_yield_of(from->regions[1])->operands[v->index]);
    } else if (tir_carries(from)) {
        uint32_t lead = !owner || from->op == TIR_OP_WHILE ? 0
                        : from->op == TIR_OP_FOR           ? 1
                                                           : extent_count(from);
        if (!w->visits && v->index < lead && from->op == TIR_OP_TILES) // how large a coordinate is
            need(w, from->operands[v->index]);
        else if (!w->scales || v->index < lead || adds_little(w->p, from, v->index - lead))
            need_of_blocks(w, from);
        if (v->index >= lead)
            need_carried(w, from, v->index - lead);
    } else if (!tir_type_is_tile(v->type)) {
        if (w->scales && from->op == TIR_OP_LOAD) // any number, from wherever
            return;
        if (w->stops && from->op == TIR_OP_LOAD &&
            tir_ref_base(from)->type->space == TIR_SPACE_GLOBAL) {
            vec_push(w->p->cx->scratch, &w->loads, from);
            return;
        }
        need_scalars(w, from);
        if (w->visits && from->op == TIR_OP_LOAD && tir_sync_is_shared(tir_ref_base(from)))
            need_stored(w, tir_buffer_root(tir_ref_base(from)));
        if (w->visits && is_query(from))
            need_stored(w, tir_buffer_root(from->operands[TIR_CANCEL_RESPONSE]));
    }
}

bool tir_sync_is_place(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_CTA_ID || inst->op == TIR_OP_NUM_CTAS ||
           inst->op == TIR_OP_CLUSTER_ID || inst->op == TIR_OP_NUM_CLUSTERS;
}

// Values that stay the same in one thread however often they are computed.
static void find_fixed(struct sync_program *p)
{
    tir_foreach_inst(inst, p->f) {
        bool fixed = inst->op == TIR_OP_ELECT || inst->op == TIR_OP_ALLOC ||
                     inst->op == TIR_OP_TMEM_BUFFER ||
                     (tir_has_trait(inst, TIR_PURE) && !inst->region_count);
        bool constant = !tir_sync_is_place(inst);
        const uint32_t from = inst->op == TIR_OP_TMEM_BUFFER ? 0 : inst->operand_count;
        for (uint32_t i = 0; fixed && i < from; i++) {
            const struct tir_value *v = inst->operands[i];
            bool argument = v && v->kind == TIR_VALUE_ARG && !v->block->owner;
            bool number = v && v->kind == TIR_VALUE_CONST;
            fixed = number || argument || (v && bitset_has(&p->fixed, v->id));
            constant &= number || (v && bitset_has(&p->constant, v->id));
        }
        for (uint32_t i = 0; fixed && i < inst->result_count; i++) {
            if (tir_type_is_tile(inst->results[i]->type))
                continue;
            bitset_insert(&p->fixed, inst->results[i]->id);
            if (constant)
                bitset_insert(&p->constant, inst->results[i]->id);
        }
    }
}

static enum sync_class class_of(const struct sync_program *p, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_MBARRIER_INIT:
    case TIR_OP_ARRIVE:
    case TIR_OP_COMMIT:
    case TIR_OP_WAIT:
    case TIR_OP_BAR_SYNC:
    case TIR_OP_BAR_ARRIVE:
    case TIR_OP_WARP_SYNC:
    case TIR_OP_CLUSTER_ARRIVE:
    case TIR_OP_CLUSTER_WAIT:
    case TIR_OP_GRID_SYNC:
    case TIR_OP_FENCE:
    case TIR_OP_SETMAXNREG:
        return SYNC_BARRIER;
    case TIR_OP_COMMIT_GROUP:
    case TIR_OP_WAIT_GROUP:
    case TIR_OP_AWAIT:
        return SYNC_GROUP;
    case TIR_OP_GEMM_ASYNC:
        return SYNC_PRODUCT;
    case TIR_OP_SHUFFLE:
    case TIR_OP_VOTE:
    case TIR_OP_ELECT:
        return SYNC_WARP;
    case TIR_OP_IF:
    case TIR_OP_FOR:
    case TIR_OP_WHILE:
    case TIR_OP_TILES:
    case TIR_OP_ROLE:
    case TIR_OP_SCOPE:
        return SYNC_BLOCKS;
    default:
        break;
    }
    if (is_event(inst) || is_tensor_event(p, inst) || tir_has_tile(inst) || !inst->result_count)
        return SYNC_OTHER;
    if (bitset_has(&p->fixed, inst->results[0]->id))
        return SYNC_ONCE;
    if (inst->op == TIR_OP_VIEW)
        return SYNC_VIEW;
    bool elementwise = tir_has_trait(inst, TIR_PURE) && inst->operand_count &&
                       inst->operand_count <= 3 && !tir_type_is_buffer(inst->results[0]->type);
    return elementwise && inst->op != TIR_OP_BITCAST &&
                   !tir_elem_is_float(inst->results[0]->type->elem)
               ? SYNC_ARITHMETIC
               : SYNC_VALUE;
}

static void find_instructions(struct sync_program *p, const struct tir_block *block)
{
    const struct tir_inst *next = NULL;
    for (const struct tir_inst *inst = block->last; inst; inst = inst->prev) {
        p->next[inst->id] = next;
        if (!bitset_has(&p->visited, inst->id))
            continue;
        p->classes[inst->id] = (uint8_t)class_of(p, inst);
        next = inst;
        for (uint32_t i = 0; i < inst->region_count; i++)
            find_instructions(p, inst->regions[i]);
    }
}

static void trace_all(struct walker *w)
{
    while (w->work.len)
        trace(w, vec_pop(&w->work));
}

// First what decides by its number, then what only says where data is loaded.
static void find_visited(struct sync_program *p)
{
    struct walker w = {.p = p, .found = &p->numbers, .visits = true, .stops = true};
    tir_foreach_inst(inst, p->f)
        if (is_event(inst) || (p->has_wgmma && tir_has_tile(inst) && inst->op != TIR_OP_YIELD) ||
            (inst->op == TIR_OP_ROLE && tir_attr_find(inst, TIR_ATTR_regs))) // if it is empty, too
            visit(&w, inst);
    trace_all(&w);
    memcpy(p->needed.words, p->numbers.words, (p->numbers.bits / 64 + 1) * sizeof(uint64_t));
    w.found = &p->needed;
    w.stops = false;
    vec_foreach(const struct tir_inst *, load, &w.loads)
        need_scalars(&w, *load);
    trace_all(&w);
    struct walker places = {.p = p, .found = &p->places, .visits = true};
    tir_foreach_inst(inst, p->f)
        if (is_tensor_event(p, inst)) {
            visit(&places, inst);
            need_slice(&places, inst);
        }
    trace_all(&places);
}

static struct bitset slice(struct sync_program *p, struct tir_value *const *of, uint32_t count,
                           bool scales)
{
    struct bitset found = bitset_new(p->cx->scratch, p->f->value_count);
    struct walker w = {.p = p, .found = &found, .scales = scales};
    for (uint32_t i = 0; i < count; i++)
        need(&w, of[i]);
    trace_all(&w);
    return found;
}

struct bitset tir_sync_slice(struct sync_program *p, struct tir_value *const *of, uint32_t count)
{
    return slice(p, of, count, false);
}

struct bitset tir_sync_scaling_slice(struct sync_program *p, struct tir_value *const *of,
                                     uint32_t count)
{
    return slice(p, of, count, true);
}

enum { MOST_STEPS = 256 }; // to what a value is computed from

// Is it computed from a lane's number, but for what lanes have told each other? `steps` that are
// left: of longer sums no more is known.
static bool has_own_lane(const struct tir_value *v, uint32_t *steps)
{
    const struct tir_inst *inst = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    if (!inst || !*steps)
        return false;
    --*steps;
    if (inst->op == TIR_OP_TID || inst->op == TIR_OP_LANEID || inst->op == TIR_OP_TID_IN_WG)
        return true;
    bool own = false;
    for (uint32_t i = 0; i < inst->operand_count && tir_has_trait(inst, TIR_PURE) && !own; i++)
        own = inst->op != TIR_OP_SHUFFLE && inst->operands[i] && !inst->region_count &&
              has_own_lane(inst->operands[i], steps);
    return own;
}

static bool varies_by_lane(const struct sync_program *p, const struct tir_value *v,
                           const struct bitset *from)
{
    uint32_t steps = MOST_STEPS;
    tir_foreach_inst(inst, p->f) // lanes that have told each other may all have the sum
        if (inst->op == TIR_OP_SHUFFLE && bitset_has(from, inst->results[0]->id))
            return has_own_lane(v, &steps);
    tir_foreach_inst(inst, p->f) {
        if (!inst->result_count || !bitset_has(from, inst->results[0]->id) ||
            tir_type_is_buffer(inst->results[0]->type))
            continue;
        bool lane =
            inst->op == TIR_OP_TID || inst->op == TIR_OP_LANEID || inst->op == TIR_OP_TID_IN_WG;
        bool load = inst->op == TIR_OP_LOAD && tir_ref_base(inst)->type->space != TIR_SPACE_LOCAL;
        if (lane || !(tir_has_trait(inst, TIR_PURE) || inst->region_count || load ||
                      inst->op == TIR_OP_VOTE))
            return true;
    }
    return false;
}

bool tir_sync_varies_in_warp(struct sync_program *p, struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return false;
    const struct bitset from = tir_sync_slice(p, &v, 1);
    return varies_by_lane(p, v, &from);
}

bool tir_sync_varies(struct sync_program *p, struct tir_value *v)
{
    if (v->kind == TIR_VALUE_CONST)
        return false;
    const struct bitset from = tir_sync_slice(p, &v, 1);
    tir_foreach_inst(inst, p->f)
        if ((inst->op == TIR_OP_WARPID || inst->op == TIR_OP_WGID || inst->op == TIR_OP_TID ||
             inst->op == TIR_OP_TID_IN_WG) &&
            bitset_has(&from, inst->results[0]->id))
            return true;
    return varies_by_lane(p, v, &from);
}

// What settings decide, and what data does.
static void find_open(struct sync_program *p)
{
    for (uint32_t i = 0; i < p->f->body->arg_count; i++)
        if (tir_type_is_scalar(p->f->body->args[i]->type))
            bitset_insert(&p->open, p->f->body->args[i]->id);
    tir_foreach_inst(inst, p->f) {
        const bool by_data = inst->op == TIR_OP_LOAD || inst->op == TIR_OP_ATOMIC ||
                             inst->op == TIR_OP_SHUFFLE || inst->op == TIR_OP_VOTE ||
                             inst->op == TIR_OP_TEST_WAIT || is_query(inst);
        for (uint32_t i = 0; i < inst->result_count && (by_data || tir_sync_is_place(inst)); i++)
            bitset_insert(by_data ? &p->open_to_data : &p->open, inst->results[i]->id);
        for (uint32_t i = 0; inst->op == TIR_OP_TILES && i < extent_count(inst); i++)
            bitset_insert(&p->open, inst->regions[0]->args[i]->id);
    }
}

bool tir_sync_is_open(const struct sync_program *p, const struct bitset *slice, bool by_data)
{
    for (uint32_t i = 0; i <= slice->bits / 64; i++)
        if (slice->words[i] & (p->open.words[i] | (by_data ? p->open_to_data.words[i] : 0)))
            return true;
    return false;
}

// Loops of which the CTAs of a cluster share each tile.
static bool has_tiles(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_TILES)
            return true;
    return false;
}

bool tir_sync_prepare(struct sync_program *p)
{
    struct tir_func *f = p->f;
    bool any = false;
    tir_foreach_inst(inst, f) {
        p->has_wgmma |= inst->op == TIR_OP_GEMM_ASYNC;
        any |= is_event(inst) || inst->op == TIR_OP_ROLE;
        p->by_hand |= inst->op == TIR_OP_ROLE ||
                      (inst->op == TIR_OP_ALLOC && tir_attr_int(inst, TIR_ATTR_by_hand, 0));
        if (tir_sync_ptx_orders(inst))
            p->orders = inst;
        if (inst->op == TIR_OP_ASSUME_SYNC && !p->assumes)
            p->assumes = arena_array(p->cx->scratch, const struct tir_inst *, f->inst_count);
        if (is_opaque(inst))
            tir_sync_unchecked(p, inst, "what it does with shared memory is not known");
        else if (inst->op == TIR_OP_GRIDDEPCONTROL)
            tir_sync_unchecked(p, inst, "the other grid is not replayed");
    }
    if (!p->orders)
        p->orders = tir_sync_find_spin(p);
    if (p->assumes)
        find_assumed(p, f->body, NULL);
    tir_sync_find_waits(p);
    p->threads = TIR_MAX(f->threads, SYNC_LANES);
    uint64_t ctas =
        (uint64_t)TIR_MAX(f->cluster[0], 1) * TIR_MAX(f->cluster[1], 1) * TIR_MAX(f->cluster[2], 1);
    p->ctas = (uint32_t)TIR_MIN(ctas, SYNC_CTAS + 1);
    p->has_peers = p->ctas > 1 && f->grid_count && !has_tiles(f);
    p->by_hand |= f->grid_count > 0;
    p->memories = 1;
    p->tensors = bitset_new(p->cx->scratch, f->value_count);
    p->ranges = tir_ranges_new(p->cx->scratch, f);
    tir_sync_find_roots(p);
    tir_sync_find_anywhere(p);
    tir_sync_find_tensors(p);
    tir_sync_find_carried(p);
    tir_sync_find_stores_of_all(p);
    for (uint32_t i = 0; i < p->roots.len; i++)
        any |= p->roots.at[i].is_tensor;
    if (!any)
        return false;
    p->has_pairs = tir_has_pairs(f);
    p->visited = bitset_new(p->cx->scratch, f->inst_count);
    p->needed = bitset_new(p->cx->scratch, f->value_count);
    p->numbers = bitset_new(p->cx->scratch, f->value_count);
    p->places = bitset_new(p->cx->scratch, f->value_count);
    p->fixed = bitset_new(p->cx->scratch, f->value_count);
    p->constant = bitset_new(p->cx->scratch, f->value_count);
    p->strands = SYNC_STRANDS;
    p->met = arena_array(p->cx->scratch, struct sync_met, SYNC_MET);
    p->classes = arena_array(p->cx->scratch, uint8_t, f->inst_count);
    p->next = arena_array(p->cx->scratch, const struct tir_inst *, f->inst_count);
    p->data_loops = bitset_new(p->cx->scratch, f->inst_count);
    p->inner_loops = bitset_new(p->cx->scratch, f->inst_count);
    p->fixed_loops = bitset_new(p->cx->scratch, f->inst_count);
    p->returned = bitset_new(p->cx->scratch, f->value_count);
    p->went_on = bitset_new(p->cx->scratch, f->value_count);
    p->came = bitset_new(p->cx->scratch, 2 * f->inst_count);
    p->came_long = bitset_new(p->cx->scratch, 2 * f->inst_count);
    p->rounds = arena_array(p->cx->scratch, struct sync_rounds, f->inst_count);
    p->open = bitset_new(p->cx->scratch, f->value_count);
    p->open_to_data = bitset_new(p->cx->scratch, f->value_count);
    find_open(p);
    tir_sync_find_depth(p);
    tir_sync_find_keys(p);
    tir_sync_find_classes(p);
    find_fixed(p);
    p->decides = bitset_new(p->cx->scratch, f->value_count);
    find_visited(p);
    tir_sync_find_cells(p);
    find_instructions(p, f->body);
    tir_sync_find_buffers(p);
    tir_sync_find_sources(p);
    tir_sync_find_args(p);
    tir_sync_find_counters(p);
    tir_sync_find_pairs(p);
    return true;
}
