// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout, anchors: the values whose layout is chosen, and how.

#include "pass/layout/dot.h"
#include "pass/layout/layout.h"
#include "pass/layout/operand.h"
#include "pass/layout/staging.h"
#include "pass/layout/turned.h"
#include "pass/layout/warpgroup.h"

#include <stdlib.h>

// Tiles of a role or scope are spread over its own warps.
void tir_solver_enter_crew(struct solver *s, const struct tir_inst *inst)
{
    while (inst && inst->op != TIR_OP_ROLE && inst->op != TIR_OP_SCOPE)
        inst = inst->block->owner;
    s->warps = inst ? (uint32_t)tir_attr_int(inst, TIR_ATTR_warps, 1) : s->f->threads / 32;
}

// Layouts that the program states.
static void anchor_stated(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        for (uint32_t r = 0; r < inst->result_count; r++)
            tir_solver_assign(s, inst->results[r], inst->results[r]->type->layout);
        for (uint32_t k = 0; k < inst->region_count; k++)
            for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++)
                tir_solver_assign(s, inst->regions[k]->args[i],
                                  inst->regions[k]->args[i]->type->layout);
    }
    tir_solver_propagate(s);
}

// Operand a in registers of a gemm_async, or of a dot on warpgroups.
const struct tir_layout *tir_solver_products_layout(struct solver *s,
                                                    const struct tir_inst *product,
                                                    const struct tir_value *a)
{
    tir_solver_enter_crew(s, product);
    uint32_t rows = tir_wgmma_row_groups(product->results[0]->type->shape, s->warps);
    return tir_layout_wgmma_a(s->types, a->type->shape, tir_elems[a->type->elem].bits, rows,
                              s->warps);
}

// Sums that gemm_async computes: rows over the warpgroups, as far as there are rows for each.
static bool anchor_products(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_GEMM_ASYNC)
            continue;
        tir_solver_enter_crew(s, inst);
        const struct tir_type *t = inst->results[0]->type;
        struct tir_value *a = inst->operands[TIR_DOT_A];
        uint32_t rows = tir_wgmma_row_groups(t->shape, s->warps);
        if (!rows) {
            tir_error_at(s->cx->diags, inst->span, TIR_E_UNSUPPORTED,
                         "gemm_async of %s on %u warps: 4 warps do 64 rows and 8 columns or more",
                         tir_type_text(s->cx->scratch, t).ptr, s->warps);
            return false;
        }
        tir_solver_assign(s, inst->results[0], tir_solver_wgmma_layout(s, t));
        tir_solver_propagate(s);
        if (tir_type_is_tile(a->type)) {
            tir_solver_assign(s, a, tir_solver_products_layout(s, inst, a));
            tir_solver_propagate(s);
        }
    }
    return true;
}

// Warps over the accumulator so that each warp's part is as square as possible: the operands it
// reads from shared memory are then smallest. `has`, unless NULL, is as good if it is one of them.
static const struct tir_layout *mma_layout(struct solver *s, const struct tir_type *t,
                                           const struct tir_layout *has)
{
    if (has && has == tir_layout_tmem_mma(s->types, t->shape, s->warps, false))
        return has;
    uint32_t best_m = 1, best_n = 1;
    int64_t best_cost = INT64_MAX;
    for (uint32_t wm = 1; wm <= s->warps; wm++)
        for (uint32_t wn = 1; wm * wn <= s->warps; wn++) {
            if (s->warps % (wm * wn) || t->shape[0] % (16 * wm) || t->shape[1] % (8 * wn))
                continue;
            if (has && has == tir_layout_mma(s->types, t->shape, wm, wn, false, s->warps))
                return has;
            int64_t m = t->shape[0] / wm, n = t->shape[1] / wn;
            int64_t cost = m * n * 4096 + m + n; // first spread the work, then keep parts square
            if (cost < best_cost) {
                best_cost = cost;
                best_m = wm;
                best_n = wn;
            }
        }
    return tir_layout_mma(s->types, t->shape, best_m, best_n, false, s->warps);
}

// Rows over the warpgroups, as far as there are rows for each.
const struct tir_layout *tir_solver_wgmma_layout(struct solver *s, const struct tir_type *t)
{
    uint32_t rows = tir_wgmma_row_groups(t->shape, s->warps);
    return rows ? tir_layout_wgmma(s->types, t->shape, rows, s->warps / 4 / rows, s->warps) : NULL;
}

const struct tir_layout *tir_solver_dot_layout(struct solver *s, const struct tir_inst *dot,
                                               const struct tir_layout *has)
{
    const struct tir_type *t = dot->results[0]->type;
    tir_solver_enter_crew(s, dot);
    if (tir_dot_on_warpgroups(dot))
        return tir_solver_wgmma_layout(s, t);
    if (tir_dot_plan(s->cx->target, dot).mma)
        return mma_layout(s, t, has);
    return has ? has : tir_solver_blocked(s, t, 1, 16);
}

const struct tir_layout *tir_solver_tmem_layout(struct solver *s, const struct tir_inst *access)
{
    const struct tir_value *v = tir_solver_accessed(access);
    if (!v || tir_ref_base(access)->type->space != TIR_SPACE_TMEM)
        return NULL;
    tir_solver_enter_crew(s, access);
    const bool is_pair = tir_tmem_is_pair(tir_ref_base(access));
    const struct tir_layout *has = v->type->layout;
    struct tir_tmem_shape shape;
    if (!has && tir_solver_needs_layout(v))
        has = s->of[v->id];
    if (has && tir_tmem_shape_of(s->types, v->type, has, s->warps, is_pair, &shape))
        return has;
    return tir_layout_tmem(s->types, v->type->shape, s->warps, is_pair);
}

static bool is_in_tmem(const struct tir_inst *inst)
{
    return tir_solver_accessed(inst) && tir_ref_base(inst)->type->space == TIR_SPACE_TMEM;
}

// The load from tensor memory that gives v, maybe in one branch of an if. NULL: none does.
static const struct tir_inst *loaded_from_tmem(const struct tir_value *v)
{
    const struct tir_inst *def = v ? v->def : NULL;
    for (uint32_t r = 0; def && def->op == TIR_OP_IF && r < def->region_count; r++) {
        const struct tir_inst *in = tir_yield_of(def->regions[r])->operands[v->index]->def;
        if (in && is_in_tmem(in))
            return in;
    }
    return def && is_in_tmem(def) ? def : NULL;
}

// Sums that mma.sync adds to those in tensor memory: these are loaded in its threads, not moved to
// them through shared memory.
static void anchor_resumed(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_DOT || tir_dot_on_warpgroups(inst) ||
            !tir_dot_plan(s->cx->target, inst).mma)
            continue;
        const struct tir_inst *load = loaded_from_tmem(inst->operands[TIR_DOT_ACC]);
        if (!load)
            continue;
        tir_solver_enter_crew(s, inst);
        tir_solver_assign(s, inst->results[0],
                          tir_layout_tmem_mma(s->types, inst->results[0]->type->shape, s->warps,
                                              tir_tmem_is_pair(tir_ref_base(load))));
        tir_solver_propagate(s);
    }
}

// Loads and stores of tensor memory: in a layout that the program states, if an instruction has it.
static bool anchor_tmem(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (!is_in_tmem(inst))
            continue;
        struct tir_value *v = tir_solver_accessed(inst);
        const struct tir_layout *l = tir_solver_tmem_layout(s, inst);
        if (!l) {
            tir_error_at(s->cx->diags, inst->span, TIR_E_UNSUPPORTED,
                         "%s on %u warps: each 4 warps have all lanes of tensor memory, and share "
                         "out the columns",
                         tir_type_text(s->cx->scratch, v->type).ptr, s->warps);
            return false;
        }
        tir_solver_assign(s, v, l);
        tir_solver_propagate(s);
    }
    return true;
}

// The rows of copies that single threads start: each thread has all of them.
static void anchor_rows(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (!tir_loads_rows(inst) || !tir_solver_needs_layout(inst->results[0]))
            continue;
        const struct tir_type *t = inst->results[0]->type;
        tir_solver_enter_crew(s, inst);
        const struct tir_iter all = {(uint32_t)tir_type_count(t), 1, TIR_AXIS_REG};
        const struct tir_iter each[] = {{32, 1, TIR_AXIS_LANE}, {s->warps, 1, TIR_AXIS_WARP}};
        tir_solver_assign(s, inst->results[0],
                          tir_layout_from_iters(s->types, t->rank, t->shape, &all, 1, each, 2, 0));
    }
}

static void anchor_dots(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        if (inst->op != TIR_OP_DOT)
            continue;
        tir_solver_assign(s, inst->results[0], tir_solver_dot_layout(s, inst, NULL));
        tir_solver_propagate(s);
        struct tir_value *a = inst->operands[TIR_DOT_A];
        if (tir_dot_on_warpgroups(inst)) {
            tir_solver_assign(s, a, tir_solver_products_layout(s, inst, a)); // nothing for a buffer
            tir_solver_propagate(s);
        }
    }
}

// Bytes that are loaded from shared memory and stored there with another dimension contiguous.
static void anchor_turned(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        struct tir_value *v = inst->op == TIR_OP_STORE ? tir_solver_accessed(inst) : NULL;
        if (!v || !tir_solver_needs_layout(v) || s->of[v->id] ||
            tir_ref_base(inst)->type->space != TIR_SPACE_SHARED ||
            !(s->cx->target->features & TIR_HAS_STMATRIX))
            continue;
        const struct tir_inst *load = tir_reordered_load(v);
        if (!load || tir_ref_base(load)->type->space != TIR_SPACE_SHARED)
            continue;
        tir_solver_enter_crew(s, inst);
        tir_solver_assign(s, v, tir_turned_of(s->types, v, false, s->warps).layout);
        tir_solver_propagate(s);
    }
}

// The dimension along which the elements of a tile lie side by side in memory, if that is where it
// comes from.
static uint32_t contiguous_of(const struct tir_value *v)
{
    const uint32_t last = v->type->rank - 1;
    if (!v->def || v->def->op != TIR_OP_PERMUTE)
        return last;
    const struct tir_attr *from = tir_attr_find(v->def, TIR_ATTR_permutation);
    for (uint32_t d = 0; d < last; d++)
        if (from->list[d] == (int64_t)last)
            return d;
    return last;
}

// Of a scan along another dimension than that of rows in memory: a thread has a vector of a row and
// what it has of the axis side by side, so the tile is loaded and stored as it is, and a register
// follows the one before it. Rows of less than a sector would be fetched piece by piece.
static const struct tir_layout *columns_layout(struct solver *s, const struct tir_type *t,
                                               uint32_t axis, uint32_t contiguous)
{
    const int64_t bits = tir_elems[t->elem].bits;
    if (axis == contiguous || t->shape[contiguous] * bits / 8 < TIR_BUDGET_RUN_BYTES)
        return NULL;
    uint32_t order[TIR_MAX_RANK] = {contiguous, axis}, n = 2;
    uint32_t warp_order[TIR_MAX_RANK] = {contiguous}, w = 1;
    for (uint32_t d = t->rank; d-- > 0;)
        if (d != contiguous && d != axis)
            order[n++] = warp_order[w++] = d;
    warp_order[w] = axis;
    const int64_t share = TIR_MAX(1, tir_type_count(t) / (32 * s->warps));
    const int64_t vector = TIR_MIN(16 * 8 / bits, share);
    return tir_layout_blocked(s->types, t->rank, t->shape, order, warp_order, (uint32_t)vector,
                              (uint32_t)(share / vector), s->warps);
}

static void anchor_scans(struct solver *s)
{
    tir_foreach_inst(inst, s->f)
        if (inst->op == TIR_OP_SCAN) {
            const struct tir_value *x = inst->operands[TIR_REDUCE_X];
            uint32_t axis = (uint32_t)tir_attr_int(inst, TIR_ATTR_axis, 0);
            tir_solver_enter_crew(s, inst);
            const struct tir_layout *l = columns_layout(s, x->type, axis, contiguous_of(x));
            if (!l)
                l = tir_solver_blocked(s, inst->results[0]->type, axis, 16);
            tir_solver_assign(s, inst->results[0], l);
            tir_solver_propagate(s);
        }
}

// The tile that a memory access moves; NULL for scalars.
struct tir_value *tir_solver_accessed(const struct tir_inst *inst)
{
    struct tir_value *v = NULL;
    if (inst->op == TIR_OP_LOAD)
        v = inst->results[0];
    else if (inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC)
        v = inst->operands[TIR_STORE_VALUE];
    return v && tir_type_is_tile(v->type) ? v : NULL;
}

struct access { // to memory, of a tile
    struct tir_inst *inst;
    int64_t size;
    uint32_t place;              // in the program
    const struct access *widest; // find_widest
    int64_t begins;              // bytes of vectors that the ends of rows may cut
};

static int compare_accesses(const void *a, const void *b)
{
    const struct access *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    if (x->begins != y->begins)
        return x->begins < y->begins ? 1 : -1;
    return x->place < y->place ? -1 : 1;
}

static void anchor_access(struct solver *s, const struct access *access)
{
    struct tir_value *v = tir_solver_accessed(access->inst);
    if (s->of[v->id])
        return;
    tir_solver_enter_crew(s, access->inst);
    tir_solver_assign(s, v, tir_solver_blocked_access(s, access->inst, v->type));
    tir_solver_propagate(s);
}

static bool is_of_tensor(const struct access *access)
{
    return tir_ref_base(access->inst)->type->space == TIR_SPACE_GLOBAL;
}

static uint32_t bits_of(const struct access *access)
{
    return tir_elems[tir_solver_accessed(access->inst)->type->elem].bits;
}

// Of tensors, that of the widest elements from each access on, among those of as many elements.
// Lanes with one vector of wide elements each have neighbouring bytes of narrow ones; with one
// vector of narrow elements they would have every second piece of wide ones.
static void find_widest(struct access *accesses, uint32_t count)
{
    struct access *widest = NULL;
    for (uint32_t i = count; i--;) {
        struct access *it = &accesses[i];
        if (widest && (widest->size != it->size || widest->begins != it->begins))
            widest = NULL;
        if (is_of_tensor(it) && (!widest || bits_of(it) >= bits_of(widest)))
            widest = it;
        it->widest = is_of_tensor(it) ? widest : it;
    }
}

// The largest tile first, and of equals those of vectors that may be cut, beside which others are
// moved element by element; then the one that comes first.
static void anchor_accesses(struct solver *s)
{
    VEC(struct access) accesses = {0};
    tir_foreach_inst(inst, s->f) {
        struct tir_value *v = tir_solver_accessed(inst);
        struct access access = {inst, v ? tir_type_count(v->type) : 0, accesses.len, NULL,
                                tir_attr_int(inst, TIR_ATTR_begins, 0)};
        if (v && tir_solver_needs_layout(v))
            vec_push(s->cx->scratch, &accesses, access);
    }
    if (accesses.len)
        qsort(accesses.at, accesses.len, sizeof(*accesses.at), compare_accesses);
    find_widest(accesses.at, accesses.len);
    vec_foreach(const struct access, it, &accesses) {
        anchor_access(s, it->widest);
        anchor_access(s, it);
    }
}

static void anchor_rest(struct solver *s)
{
    tir_foreach_inst(inst, s->f) {
        tir_solver_enter_crew(s, inst);
        for (uint32_t r = 0; r < inst->result_count; r++)
            if (tir_solver_needs_layout(inst->results[r]) && !s->of[inst->results[r]->id]) {
                const struct tir_type *t = inst->results[r]->type;
                tir_solver_assign(s, inst->results[r], tir_solver_blocked(s, t, t->rank - 1, 16));
                tir_solver_propagate(s);
            }
        for (uint32_t k = 0; k < inst->region_count; k++)
            for (uint32_t i = 0; i < inst->regions[k]->arg_count; i++) {
                struct tir_value *arg = inst->regions[k]->args[i];
                if (tir_solver_needs_layout(arg) && !s->of[arg->id]) {
                    tir_solver_assign(s, arg,
                                      tir_solver_blocked(s, arg->type, arg->type->rank - 1, 16));
                    tir_solver_propagate(s);
                }
            }
    }
}

// What masks and numbers of elements led to while products had not all got theirs.
static void spread_again(struct solver *s)
{
    tir_foreach_inst(inst, s->f)
        for (uint32_t r = 0; r < inst->result_count; r++)
            if (tir_solver_needs_layout(inst->results[r]) && s->of[inst->results[r]->id])
                vec_push(s->cx->scratch, &s->work, inst->results[r]);
    tir_solver_propagate(s);
}

bool tir_solver_anchor(struct solver *s)
{
    anchor_stated(s);
    s->of_products = true;
    anchor_resumed(s);
    if (!anchor_tmem(s) || !anchor_products(s))
        return false;
    anchor_rows(s);
    anchor_dots(s);
    s->of_products = false;
    spread_again(s);
    anchor_scans(s);
    anchor_turned(s);
    anchor_accesses(s);
    anchor_rest(s);
    return true;
}
