// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which configuration of a kernel suits a problem: a small model of time.
//
//     kernel gemm<BM = 128, BN = 256>(...) config(BM = 128, BN = 256) config(BM = 64, BN = 128)
//
// A launch takes as many waves as its tiles need on the multiprocessors of the card; clusters of
// more than two CTAs lie in one GPC and leave some of them idle. The first tile of a CTA fills the
// pipeline (start), later ones only if the loop is not persistent. A tile costs some time beside
// its rounds, more in a cluster, and where it leaves in rows that 128 bytes do not divide. What is
// left keeps four things busy: tensor cores, copies to shared memory, the L2 cache that all of them
// ask, and the memory of the card. In each round the slowest of the first three counts; of all
// rounds and the memory the longer, and of the shorter what is not hidden behind it.
//
// On sm_90a pieces of rows that do not begin at multiples of 128 bytes lie on two lines of the L2
// cache and take longer, longer still where they also begin within a sector of 32 bytes. The CTAs
// of a cluster share what they ask for, but not that bytes arrive. Multiprocessors without a tile
// leave the L2 cache to the others. Rows of a tile past the end of a tensor are zeros, which all
// CTAs of the card wait for in turn: measured, they are far slower than rows that are there. Two
// CTAs of a grid that is not persistent run on a multiprocessor at a time if the stages of both fit
// and one warpgroup multiplies; one works while the other waits. What uses the sums of the only
// product of a round keeps a warpgroup from the next one, and so does the wait for them. Of
// several, others multiply meanwhile: with g warpgroups a g-th part of that time counts. An operand
// that follows from no product, such as weights of few bits, is converted in front of the first
// product of a round; those of later ones are converted while it is multiplied. Elements of few
// bits share registers, and so take less. A warpgroup also waits, for what it loads and what it
// multiplies; others fill that in.
//
//     waves = ceildiv(tiles, CTAs at a time)
//     turns = ceildiv(tiles, multiprocessors) where two CTAs share one, else waves
//     asked = sum over A and B of bytes / CTAs that share the copy
//     askew = sum over A and B of the same * (off_lines, + off_sectors)
//     busy  = sum over each dot of rounds of the loops around it
//             * (waves * (round + converting / CTAs of a multiprocessor / groups), the first dot's,
//                + max(turns * (multiply + compute + (after + using) / groups, of an only dot),
//                      max(turns * (bytes of A and B + askew) / fetched,
//                          tiles * (asked + askew) / cached)
//                      + bytes of all tiles past the ends / past,
//                      waves * bytes of A and B / words or elements, where threads copy them))
//     read  = bytes of the tensors / memory
//     tile  = fixed + clustered (in a cluster) + exchange (of a tile that a cluster shares)
//             + sum over each store of bytes / stored (+ uneven)
//     cycles = start + waves * tile + max(busy, read) + unhidden * min(busy, read)
//
// In tensor memory clusters share no copies, but two CTAs that multiply together have half of B
// each, a block of fewer than 128 rows takes the time of as many, and sums need no registers.
//
// CTAs of a cluster that share a tile (join.c) count as a tile each. Their rounds are those of the
// first, and what they exchange takes as long as a barrier of the cluster, however much it is.
//
// Each further tiles loop is one more launch. A tile without a product costs the time to begin it
// and what its loads and stores move, those of memory, of whole tiles: what lies past the end of a
// row takes its share of the work, so a launch has the tile with the least of it.
//
//     tile = begun + sum over each load and store of (rounds of its loops * bytes / moved)
//
// The numbers are those of the card that stands for the target (machine/cost.def). The receipt says
// so unless that card is one of the target's.

#include "compile/cost.h"

#include "compile/code.h"
#include "compile/compile.h"
#include "compile/formula.h"
#include "compile/known.h"
#include "ir/follow.h"
#include "ir/walk.h"
#include "pass/role/cluster.h"

struct model {
    struct tir_context *cx;
    const struct tir_request *request;
    const struct tir_func *f;
    struct tir_follow known; // at launch
    VEC(tir_formula_op) ops;
    bool is_lost;                  // something is no formula
    const struct tir_block *block; // whose rounds are in the cell ROUNDS
};

enum { TILES, WAVES, TURNS, ROUNDS, ASKEW, BUSY, READ }; // cells of the formula

static void push(struct model *m, tir_formula_code code, int64_t value)
{
    vec_push(&m->cx->arena, &m->ops, ((tir_formula_op){code, value}));
}

// Does v follow from dimensions and integer parameters alone? Bounds of loops that depend on the
// tile count as those of the first one.
static enum tir_answer is_known_at_launch(void *user, struct tir_value *v)
{
    const struct model *m = user;
    if (v->kind == TIR_VALUE_CONST)
        return TIR_YES;
    bool is_int = tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem);
    if (v->kind == TIR_VALUE_ARG)
        return (v->block == m->f->body && is_int) || tir_compile_is_tile(v) ? TIR_YES : TIR_NO;
    bool is_plain = tir_has_trait(v->def, TIR_PURE) && !tir_has_trait(v->def, TIR_THREAD) &&
                    !v->def->region_count && !v->def->attr_count;
    return is_plain && tir_elem_is_int(v->type->elem) ? TIR_IF_OPERANDS : TIR_NO;
}

static void push_value(struct model *m, const struct tir_value *v)
{
    tir_formula one = {0};
    if (!tir_compile_estimate(m->cx, m->f, v, &one))
        m->is_lost = true;
    for (uint32_t i = 0; i < one.count; i++)
        push(m, one.ops[i].code, one.ops[i].value);
}

static bool has_tensor_memory(const struct model *m)
{
    return m->request->target.features & TIR_HAS_TCGEN05;
}

// The cluster that the loop's CTAs lie in; NULL: none. In tensor memory it is a pair of CTAs.
static const struct tir_attr *cluster_of(const struct model *m, const struct tir_inst *tiles)
{
    const struct tir_attr *cluster = tir_attr_find(tiles, TIR_ATTR_cluster);
    if (cluster && has_tensor_memory(m))
        tir_foreach_inst_in(dot, tiles->regions[0])
            if (dot->op == TIR_OP_DOT && !tir_tmem_suits_pair(tiles, dot))
                return NULL;
    return cluster;
}

// Tiles beside each other in dimension d. Pushes nothing if that is not known at launch.
static bool push_tiles_along(struct model *m, const struct tir_inst *tiles, uint32_t d)
{
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    const struct tir_attr *cluster = cluster_of(m, tiles);
    const int64_t together = cluster ? cluster->list[d] : 1; // tiles that walk together
    if (!tir_follows(&m->known, tiles->operands[d]))
        return false;
    push_value(m, tiles->operands[d]);
    push(m, TIR_FORMULA_CONST, by->list[d] * together);
    push(m, TIR_FORMULA_CEILDIV, 0);
    if (together > 1) {
        push(m, TIR_FORMULA_CONST, together);
        push(m, TIR_FORMULA_MUL, 0);
    }
    return true;
}

static void push_tiles(struct model *m, const struct tir_inst *tiles)
{
    push(m, TIR_FORMULA_CONST,
         tir_compile_sharers(m->f, tiles)); // of a cluster, which share each tile
    for (uint32_t d = 0; d < tir_attr_find(tiles, TIR_ATTR_by)->list_count; d++)
        if (push_tiles_along(m, tiles, d))
            push(m, TIR_FORMULA_MUL, 0);
}

static const struct tir_cost *cost_of(const struct model *m)
{
    return &tir_costs[m->request->target.card];
}

struct source {                  // what an operand is computed from, element by element
    int64_t bytes;               // loaded
    int64_t work;                // elements that operations make of it
    int64_t bits;                // of these elements
    const struct tir_inst *load; // of the most bytes, or NULL
    bool is_of_product;          // a sum is among it
    struct tir_arena *arena;
};

// Does v follow from where its elements stand?
static enum tir_answer is_place(void *user, struct tir_value *v)
{
    (void)user;
    if (!v->def || v->def->op == TIR_OP_IOTA)
        return TIR_YES;
    return tir_is_elementwise(v->def) || v->def->op == TIR_OP_BROADCAST ? TIR_IF_OPERANDS : TIR_NO;
}

// A choice by place, such as an interleave, is mostly one among registers.
static bool is_work(struct source *source, struct tir_value *v)
{
    struct tir_follow places;
    tir_follow_init(&places, source->arena, is_place, NULL);
    return tir_is_elementwise(v->def) && !tir_follows(&places, v) &&
           (v->def->op != TIR_OP_WHERE || !tir_follows(&places, v->def->operands[0]));
}

static enum tir_answer add_source(void *user, struct tir_value *v)
{
    struct source *source = user;
    if (!v->def || !tir_type_is_tile(v->type))
        return TIR_YES;
    if (v->def->op == TIR_OP_LOAD) {
        bool is_first = !source->load ||
                        tir_type_bytes(source->load->results[0]->type) < tir_type_bytes(v->type);
        source->load = is_first ? v->def : source->load;
        source->bytes += tir_type_bytes(v->type);
    }
    source->is_of_product |= v->def->op == TIR_OP_DOT;
    if (is_work(source, v)) {
        source->work += tir_type_count(v->type);
        source->bits += tir_type_count(v->type) * tir_elems[v->type->elem].bits;
    }
    bool passes_on = tir_is_elementwise(v->def) || v->def->op == TIR_OP_PERMUTE ||
                     v->def->op == TIR_OP_BROADCAST || v->def->op == TIR_OP_RESHAPE;
    return passes_on ? TIR_IF_OPERANDS : TIR_YES;
}

// An operand that is no load counts as one of its own size.
static struct source source_of(const struct model *m, struct tir_value *operand)
{
    struct source source = {.arena = &m->cx->arena};
    struct tir_follow follow;
    tir_follow_init(&follow, &m->cx->arena, add_source, &source);
    tir_follows(&follow, operand);
    source.bytes = source.bytes ? source.bytes : tir_type_bytes(operand->type);
    return source;
}

// The tensor that an operand is loaded from, or NULL.
static const struct tir_value *tensor_of(const struct source *from)
{
    const struct tir_value *base = from->load ? tir_ref_base(from->load) : NULL;
    return base && base->type->space == TIR_SPACE_GLOBAL && base->type->rank ? base : NULL;
}

// The kernel's tensor that it is; NULL: it is scratch memory.
static const struct tir_param *param_of(const struct model *m, const struct tir_value *tensor)
{
    for (uint32_t i = 0; i < m->f->param_count; i++)
        if (m->f->params[i].value == tensor && !m->f->params[i].is_scratch)
            return &m->f->params[i];
    return NULL;
}

// Adds `more` where the rows of the tensor are no multiples of that many bytes.
static void push_off(struct model *m, const struct tir_param *p, int64_t bytes, int64_t more)
{
    const struct tir_type *t = p->value->type;
    const struct tir_param_dim *row = &p->dims[t->rank - 1];
    push(m, row->dim < 0 ? TIR_FORMULA_CONST : TIR_FORMULA_DIM,
         row->dim < 0 ? row->constant : row->dim);
    push(m, TIR_FORMULA_CONST, TIR_MAX(1, bytes * 8 / TIR_MAX(8, tir_elems[t->elem].bits)));
    push(m, TIR_FORMULA_MOD, 0);
    push(m, TIR_FORMULA_CONST, 0);
    push(m, TIR_FORMULA_NE, 0);
    push(m, TIR_FORMULA_CONST, more);
    push(m, TIR_FORMULA_MUL, 0);
    push(m, TIR_FORMULA_ADD, 0);
}

// Adds as many bytes of an operand, which `together` CTAs share, as take the time for which copies
// last longer where its rows do not begin at whole lines. How long those of scratch tensors are is
// taken not to be known.
static void push_askew(struct model *m, const struct source *from, int64_t together)
{
    const struct tir_cost *cost = cost_of(m);
    const struct tir_value *tensor = tensor_of(from);
    const int64_t lines = from->bytes / together * cost->off_lines / 100;
    if (!tensor)
        return;
    const struct tir_param *p = param_of(m, tensor);
    if (!p) {
        push(m, TIR_FORMULA_CONST, lines);
        push(m, TIR_FORMULA_ADD, 0);
        return;
    }
    push_off(m, p, 128, lines);
    push_off(m, p, 32, from->bytes / together * cost->off_sectors / 100);
}

// Adds the time in which threads copy an operand whose rows are no multiples of 16 bytes.
static void push_by_threads(struct model *m, const struct source *from)
{
    const struct tir_cost *cost = cost_of(m);
    const struct tir_value *tensor = tensor_of(from);
    const struct tir_param *p = tensor ? param_of(m, tensor) : NULL;
    if (!p)
        return;
    push_off(m, p, 16, from->bytes / cost->words);
    push_off(m, p, 4, from->bytes / cost->elements);
}

// The dimension of the loop that the slice of the load begins at along its dimension `at`, or -1.
static int32_t tile_dimension(const struct tir_inst *tiles, const struct tir_inst *load,
                              uint32_t at)
{
    for (uint32_t d = 0; d < tir_attr_find(tiles, TIR_ATTR_by)->list_count; d++)
        if (tir_ref_indices(load)[at] == tiles->regions[0]->args[d])
            return (int32_t)d;
    return -1;
}

// CTAs of a cluster that share the operand: those beside each other in dimensions of the loop that
// its slice does not begin at.
static int64_t sharing(const struct tir_inst *tiles, const struct source *from)
{
    const struct tir_attr *cluster = tir_attr_find(tiles, TIR_ATTR_cluster);
    if (!cluster || !from->load)
        return 1;
    bool begins[TIR_MAX_RANK] = {false};
    for (uint32_t at = 0; at < tir_ref_base(from->load)->type->rank; at++) {
        const int32_t d = tile_dimension(tiles, from->load, at);
        if (tir_ref_indices(from->load)[at]->def)
            return 1; // computed from anything
        if (d >= 0)
            begins[d] = true;
    }
    int64_t together = 1;
    for (uint32_t d = 0; d < cluster->list_count; d++)
        together *= begins[d] ? 1 : cluster->list[d];
    return together;
}

// Adds the time that a round of all tiles takes for what lies past the end of an operand.
static void push_past(struct model *m, const struct tir_inst *tiles, const struct source *from,
                      int64_t together)
{
    const struct tir_attr *box = from->load ? tir_attr_find(from->load, TIR_ATTR_box) : NULL;
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    for (uint32_t at = 0; box && at < box->list_count; at++) {
        const int32_t d = tile_dimension(tiles, from->load, at);
        if (d < 0 || box->list[at] <= 1 || !push_tiles_along(m, tiles, (uint32_t)d))
            continue;
        push(m, TIR_FORMULA_CONST, by->list[d]);
        push(m, TIR_FORMULA_MUL, 0);
        push_value(m, tiles->operands[d]);
        push(m, TIR_FORMULA_SUB, 0);
        push(m, TIR_FORMULA_GET, TILES); // as many for each of those along d
        push(m, TIR_FORMULA_MUL, 0);
        push_tiles_along(m, tiles, (uint32_t)d);
        push(m, TIR_FORMULA_CONST, 1); // no tiles at all
        push(m, TIR_FORMULA_MAX, 0);
        push(m, TIR_FORMULA_DIV, 0);
        push(m, TIR_FORMULA_CONST, tir_type_bytes(from->load->results[0]->type) / box->list[at]);
        push(m, TIR_FORMULA_MUL, 0);
        push(m, TIR_FORMULA_CONST, together * cost_of(m)->past);
        push(m, TIR_FORMULA_DIV, 0);
        push(m, TIR_FORMULA_ADD, 0);
    }
}

// Does each CTA of the loop walk many tiles?
static bool is_persistent(const struct tir_inst *tiles)
{
    return tir_attr_int(tiles, TIR_ATTR_persistent, 0) != 0;
}

// The warpgroups that share the rows of the product. Several have all registers of a
// multiprocessor.
static int64_t warpgroups(const struct tir_inst *dot)
{
    enum { ROWS = 64 }; // of a wgmma
    return tir_ceil_div(dot->results[0]->type->shape[0], ROWS);
}

// How many CTAs of the loop run on a multiprocessor at a time, as their stages allow: 1 or 2. A
// loop that does not say how many stages it has takes all there is room for. Only products on
// warpgroups were measured; registers decide elsewhere, too.
static int64_t room_for_ctas(const struct model *m, const struct tir_inst *tiles)
{
    int64_t bytes = 0;
    bool has_dot = false;
    if (is_persistent(tiles) || !(m->request->target.features & TIR_HAS_WGMMA))
        return 1;
    tir_foreach_inst_in(dot, tiles->regions[0]) {
        if (dot->op == TIR_OP_ALLOC) // what a cluster exchanges
            bytes += tir_type_bytes(dot->results[0]->type);
        if (dot->op != TIR_OP_DOT)
            continue;
        has_dot = true;
        const int64_t stages = tir_attr_int(dot->block->owner, TIR_ATTR_stages, 0);
        if (!stages || warpgroups(dot) > 1)
            return 1;
        bytes += stages * (source_of(m, dot->operands[TIR_DOT_A]).bytes +
                           source_of(m, dot->operands[TIR_DOT_B]).bytes);
    }
    return has_dot && 2 * bytes <= m->request->target.shared_per_cta ? 2 : 1;
}

// Where a cluster shares a tile, room for two only makes it easier to place.
static int64_t ctas_together(const struct model *m, const struct tir_inst *tiles)
{
    return tir_compile_sharers(m->f, tiles) > 1 ? 1 : room_for_ctas(m, tiles);
}

// The tiles that a multiprocessor works on, one after the other or two at a time. Parts whose
// number is not known at launch are taken to fill them.
static void push_turns(struct model *m, const struct tir_inst *tiles)
{
    const uint32_t rank = tir_attr_find(tiles, TIR_ATTR_by)->list_count;
    const int64_t most = ctas_together(m, tiles);
    bool are_known = true;
    for (uint32_t d = 0; d < rank; d++)
        are_known &= tir_follows(&m->known, tiles->operands[d]);
    const bool two = most > 1 && are_known;
    push(m, TIR_FORMULA_GET, two ? TILES : WAVES);
    push(m, TIR_FORMULA_CONST, two ? m->request->target.multiprocessors : most);
    push(m, two ? TIR_FORMULA_CEILDIV : TIR_FORMULA_MUL, 0);
}

// Multiplies by the rounds of the loops around inst whose bounds are known at launch; others count
// once.
static void push_rounds(struct model *m, const struct tir_inst *inst)
{
    if (inst->block != m->block)
        push(m, TIR_FORMULA_CONST, 1);
    for (const struct tir_inst *up = inst->block->owner; up && inst->block != m->block;
         up = up->block->owner) {
        if (up->op != TIR_OP_FOR)
            continue;
        bool known = true;
        for (uint32_t i = TIR_FOR_BEGIN; i <= TIR_FOR_STEP; i++)
            known &= tir_follows(&m->known, up->operands[i]);
        if (!known)
            continue;
        push_value(m, up->operands[TIR_FOR_END]);
        push_value(m, up->operands[TIR_FOR_BEGIN]);
        push(m, TIR_FORMULA_SUB, 0);
        push_value(m, up->operands[TIR_FOR_STEP]);
        push(m, TIR_FORMULA_CEILDIV, 0);
        push(m, TIR_FORMULA_MUL, 0);
    }
    if (inst->block != m->block)
        push(m, TIR_FORMULA_SET, ROUNDS);
    m->block = inst->block;
    push(m, TIR_FORMULA_GET, ROUNDS);
    push(m, TIR_FORMULA_MUL, 0);
}

// Rows of the sums, as many as the product takes the time of.
static int64_t rows_worth(const struct model *m, const struct tir_type *sums)
{
    const int64_t rows = sums->shape[0], block = tir_tmem_block(rows);
    return has_tensor_memory(m) && block ? rows / block * TIR_MAX(block, cost_of(m)->fewest_rows)
                                         : rows;
}

// Elements that operations behind the product make, up to the next one in its round.
static int64_t work_after(const struct tir_inst *dot)
{
    int64_t work = 0;
    for (const struct tir_inst *inst = dot->next; inst && inst->op != TIR_OP_DOT; inst = inst->next)
        if (tir_is_elementwise(inst) && tir_type_is_tile(inst->results[0]->type))
            work += tir_type_count(inst->results[0]->type);
    return work;
}

// Does another product stand in front of this one in its round?
static bool is_later(const struct tir_inst *dot)
{
    for (const struct tir_inst *inst = dot->prev; inst; inst = inst->prev)
        if (inst->op == TIR_OP_DOT)
            return true;
    return false;
}

static bool is_only(const struct tir_inst *dot)
{
    for (const struct tir_inst *inst = dot->next; inst; inst = inst->next)
        if (inst->op == TIR_OP_DOT)
            return false;
    return !is_later(dot);
}

// The cycles of a round in which its sums are used. A warpgroup waits for those of an only product;
// beside another one it multiplies meanwhile, and what is computed is slower: exponentials.
static int64_t uses_of(const struct model *m, const struct tir_inst *dot)
{
    const struct tir_cost *cost = cost_of(m);
    const int64_t work = work_after(dot), groups = warpgroups(dot);
    if (!is_only(dot))
        return work / (groups * groups) / cost->computed;
    return work ? work / groups / cost->used + cost->using / groups : 0;
}

// Is the operand converted in front of all products of a round? What makes that of a later product
// is hidden behind the first.
static bool is_converted(const struct tir_inst *dot, const struct source *from)
{
    return from->work && !from->is_of_product && !is_later(dot);
}

// The cycles that making an operand takes beside the products.
static int64_t made(const struct model *m, const struct tir_inst *dot, const struct source *from)
{
    const struct tir_cost *cost = cost_of(m);
    if (from->is_of_product)
        return from->work / cost->computed;
    return is_converted(dot, from) ? from->bits / 32 / cost->converted : 0;
}

// The time in which the operands of all tiles arrive, of one round: at the multiprocessor with the
// most of them, or from the L2 cache.
static void push_copies(struct model *m, const struct tir_inst *tiles, const struct source *a,
                        const struct source *b)
{
    const struct tir_cost *cost = cost_of(m);
    const int64_t share_a = sharing(tiles, a), share_b = sharing(tiles, b);
    push(m, TIR_FORMULA_CONST, 0);
    push_askew(m, a, share_a);
    push_askew(m, b, share_b);
    push(m, TIR_FORMULA_SET, ASKEW);
    const struct {
        int64_t bytes, cell, rate;
    } ways[] = {{a->bytes + b->bytes, TURNS, cost->fetched},
                {a->bytes / share_a + b->bytes / share_b, TILES, cost->cached}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(ways); i++) {
        push(m, TIR_FORMULA_CONST, ways[i].bytes);
        push(m, TIR_FORMULA_GET, ASKEW);
        push(m, TIR_FORMULA_ADD, 0);
        push(m, TIR_FORMULA_GET, ways[i].cell);
        push(m, TIR_FORMULA_MUL, 0);
        push(m, TIR_FORMULA_CONST, ways[i].rate);
        push(m, TIR_FORMULA_DIV, 0);
    }
    push(m, TIR_FORMULA_MAX, 0);
    push_past(m, tiles, a, share_a);
    push_past(m, tiles, b, share_b);
}

// Adds the time that a dot keeps tensor cores and copies busy, in all its rounds and waves.
static void push_product(struct model *m, const struct tir_inst *tiles, const struct tir_inst *dot)
{
    const struct tir_cost *cost = cost_of(m);
    const struct tir_type *a = dot->operands[TIR_DOT_A]->type, *t = dot->results[0]->type;
    const bool on_threads = !(m->request->target.features & TIR_HAS_WGMMA) &&
                            !(has_tensor_memory(m) && tir_tmem_block(t->shape[0]));
    int64_t rows = t->shape[0], columns = t->shape[1], depth = a->shape[1];
    int64_t worth = TIR_MAX(columns, cost->fewest_columns);
    int64_t multiply = rows_worth(m, t) * worth * depth / tir_products_a_cycle(cost, a->elem);
    const struct source a_from = source_of(m, dot->operands[TIR_DOT_A]),
                        b_from = source_of(m, dot->operands[TIR_DOT_B]);
    const bool waits =
        dot->block->owner->op == TIR_OP_FOR && (m->request->target.features & TIR_HAS_WGMMA);
    const int64_t compute =
        made(m, dot, &a_from) + made(m, dot, &b_from) + (waits ? uses_of(m, dot) : 0);
    const bool converts = waits && (is_converted(dot, &a_from) || is_converted(dot, &b_from));
    const int64_t others = warpgroups(dot) * ctas_together(m, tiles); // and itself
    const int64_t waited = converts ? cost->converting / others : 0;
    if (on_threads && rows * columns > cost->most_sums)
        multiply = multiply * cost->too_many_sums / 100;
    if (m->request->target.features & TIR_HAS_WGMMA) {
        push_copies(m, tiles, &a_from, &b_from);
    } else {
        const int64_t parts = has_tensor_memory(m) && cluster_of(m, tiles) ? 2 : 1; // of B
        push(m, TIR_FORMULA_CONST, (a_from.bytes + b_from.bytes / parts) / cost->fetched);
        push(m, TIR_FORMULA_GET, TURNS);
        push(m, TIR_FORMULA_MUL, 0);
    }
    if (m->f->own_count) { // there are variants for such rows; those of the first one have factors
        push(m, TIR_FORMULA_CONST, 0);
        push_by_threads(m, &a_from);
        push_by_threads(m, &b_from);
        push(m, TIR_FORMULA_GET, WAVES);
        push(m, TIR_FORMULA_MUL, 0);
        push(m, TIR_FORMULA_MAX, 0);
    }
    push(m, TIR_FORMULA_GET, TURNS);
    push(m, TIR_FORMULA_CONST, multiply + compute);
    push(m, TIR_FORMULA_MUL, 0);
    push(m, TIR_FORMULA_MAX, 0);
    push(m, TIR_FORMULA_GET, WAVES);
    push(m, TIR_FORMULA_CONST, is_later(dot) ? 0 : cost->round + waited);
    push(m, TIR_FORMULA_MUL, 0);
    push(m, TIR_FORMULA_ADD, 0);
    push_rounds(m, dot);
    push(m, TIR_FORMULA_ADD, 0);
}

// A buffer in shared memory costs little beside.
static bool moves(const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE) &&
           tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
}

static const struct tir_type *moved_type(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD ? inst->results[0]->type : inst->operands[TIR_STORE_VALUE]->type;
}

static void push_move(struct model *m, const struct tir_inst *inst)
{
    const int64_t moved = cost_of(m)->moved; // rounded up: two halves are no less than the whole
    push(m, TIR_FORMULA_CONST, tir_ceil_div(tir_type_bytes(moved_type(inst)), moved));
    push_rounds(m, inst);
    push(m, TIR_FORMULA_ADD, 0);
}

// What a product computed leaves. Rows that 128 bytes do not divide take further copies.
static void push_store(struct model *m, const struct tir_inst *store)
{
    const struct tir_type *t = moved_type(store);
    const int64_t bytes = tir_type_bytes(t);
    const int64_t rows = t->rank ? tir_type_count(t) / t->shape[t->rank - 1] : 1;
    const bool is_uneven = (m->request->target.features & TIR_HAS_WGMMA) && bytes / rows % 128;
    push(m, TIR_FORMULA_CONST,
         bytes / cost_of(m)->stored + (is_uneven ? rows * cost_of(m)->uneven / 64 : 0));
    push_rounds(m, store);
    push(m, TIR_FORMULA_ADD, 0);
}

// The time to read and write every tensor of the loop once, but for scratch, which stays in the L2
// cache.
static void push_memory(struct model *m, const struct tir_inst *tiles)
{
    push(m, TIR_FORMULA_CONST, 0);
    for (uint32_t i = 0; i < m->f->param_count; i++) {
        const struct tir_param *p = &m->f->params[i];
        if (!tir_type_is_buffer(p->value->type) || p->is_scratch ||
            !tir_uses_value(tiles, p->value))
            continue;
        push(m, TIR_FORMULA_CONST, TIR_MAX(8, tir_elems[p->value->type->elem].bits) / 8);
        for (uint32_t d = 0; d < p->value->type->rank; d++) {
            const struct tir_param_dim *dim = &p->dims[d];
            push(m, dim->dim < 0 ? TIR_FORMULA_CONST : TIR_FORMULA_DIM,
                 dim->dim < 0 ? dim->constant : dim->dim);
            push(m, TIR_FORMULA_MUL, 0);
        }
        push(m, TIR_FORMULA_CONST, cost_of(m)->memory);
        push(m, TIR_FORMULA_DIV, 0);
        push(m, TIR_FORMULA_ADD, 0);
    }
}

static int64_t cluster_size(const struct model *m, const struct tir_inst *tiles)
{
    const struct tir_attr *cluster = cluster_of(m, tiles);
    int64_t size = tir_compile_sharers(m->f, tiles);
    for (uint32_t d = 0; cluster && d < cluster->list_count; d++)
        size *= cluster->list[d];
    return size;
}

// The CTAs of clusters that share a tile: GPCs are not divided evenly, and fewer clusters run where
// a CTA needs a multiprocessor of its own.
static int64_t in_whole_clusters(const struct model *m, const struct tir_inst *tiles)
{
    const struct tir_cost *cost = cost_of(m);
    const uint32_t size = tir_compile_sharers(m->f, tiles);
    if (room_for_ctas(m, tiles) == 1 && size < TIR_COUNT_OF(cost->clusters) && cost->clusters[size])
        return size * cost->clusters[size];
    // The last one often waits for another to end.
    const int64_t most = m->request->target.multiprocessors * cost->in_gpcs / 100 / size - 1;
    return TIR_MAX(1, most) * size;
}

static int64_t ctas_at_a_time(const struct model *m, const struct tir_inst *tiles)
{
    if (tir_compile_sharers(m->f, tiles) > 1)
        return in_whole_clusters(m, tiles);
    const int64_t all = m->request->target.multiprocessors * ctas_together(m, tiles);
    return cluster_size(m, tiles) > 2 ? all * cost_of(m)->in_gpcs / 100 : all;
}

// The cycles of a tile beside its rounds and its sums.
static int64_t beside_rounds(const struct model *m, const struct tir_inst *tiles)
{
    const struct tir_cost *cost = cost_of(m);
    return cost->fixed + (cluster_size(m, tiles) > 1 ? cost->clustered : 0) +
           (tir_compile_sharers(m->f, tiles) > 1 ? cost->exchange : 0) +
           (is_persistent(tiles) ? 0 : cost->start);
}

// What a loop keeps busy and what memory takes, less what is hidden.
static void push_overlapped(struct model *m)
{
    push(m, TIR_FORMULA_GET, BUSY);
    push(m, TIR_FORMULA_GET, READ);
    push(m, TIR_FORMULA_ADD, 0);
    push(m, TIR_FORMULA_GET, BUSY);
    push(m, TIR_FORMULA_GET, READ);
    push(m, TIR_FORMULA_MIN, 0);
    push(m, TIR_FORMULA_CONST, 100 - cost_of(m)->unhidden);
    push(m, TIR_FORMULA_MUL, 0);
    push(m, TIR_FORMULA_CONST, 100);
    push(m, TIR_FORMULA_DIV, 0);
    push(m, TIR_FORMULA_SUB, 0);
}

static void push_waves(struct model *m, const struct tir_inst *tiles)
{
    push_tiles(m, tiles);
    push(m, TIR_FORMULA_SET, TILES);
    push(m, TIR_FORMULA_GET, TILES);
    push(m, TIR_FORMULA_CONST, ctas_at_a_time(m, tiles));
    push(m, TIR_FORMULA_CEILDIV, 0);
    push(m, TIR_FORMULA_SET, WAVES);
}

static void push_products(struct model *m, const struct tir_inst *tiles)
{
    push_turns(m, tiles);
    push(m, TIR_FORMULA_SET, TURNS);
    push(m, TIR_FORMULA_CONST, 0);
    tir_foreach_inst_in(inst, tiles->regions[0])
        if (inst->op == TIR_OP_DOT)
            push_product(m, tiles, inst);
    push(m, TIR_FORMULA_SET, BUSY);
    push_memory(m, tiles);
    push(m, TIR_FORMULA_SET, READ);
    push_overlapped(m);
    push(m, TIR_FORMULA_CONST, is_persistent(tiles) ? cost_of(m)->start : 0);
    push(m, TIR_FORMULA_ADD, 0);
}

static void push_loop(struct model *m, const struct tir_inst *tiles)
{
    bool has_dot = false;
    tir_foreach_inst_in(inst, tiles->regions[0])
        has_dot |= inst->op == TIR_OP_DOT;
    push_waves(m, tiles);
    push(m, TIR_FORMULA_CONST, has_dot ? beside_rounds(m, tiles) : cost_of(m)->begun);
    tir_foreach_inst_in(inst, tiles->regions[0]) {
        if (!moves(inst))
            continue;
        if (!has_dot)
            push_move(m, inst);
        else if (inst->op == TIR_OP_STORE)
            push_store(m, inst);
    }
    push(m, TIR_FORMULA_GET, WAVES);
    push(m, TIR_FORMULA_MUL, 0);
    if (!has_dot)
        return;
    push_products(m, tiles);
    push(m, TIR_FORMULA_ADD, 0);
}

tir_formula tir_compile_cost(struct tir_context *cx, const struct tir_request *request,
                             struct tir_func *f)
{
    struct model m = {.cx = cx, .request = request, .f = f};
    uint32_t loops = 0;
    tir_follow_init(&m.known, &cx->arena, is_known_at_launch, &m);
    for (const struct tir_inst *inst = m.f->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_TILES)
            continue;
        push_loop(&m, inst);
        if (loops++) {
            push(&m, TIR_FORMULA_ADD, 0);
            push(&m, TIR_FORMULA_CONST, cost_of(&m)->launch);
            push(&m, TIR_FORMULA_ADD, 0);
        }
    }
    if (!loops || m.is_lost || m.ops.len > TIR_MAX_FORMULA) // no estimate is one too
        return (tir_formula){0};
    return (tir_formula){m.ops.at, m.ops.len};
}

// The formula at the dimensions known at compile time. False: these do not decide.
static bool known_value(const struct tir_request *request, const struct tir_func *f,
                        const tir_formula *formula, int64_t *value)
{
    int64_t dims[TIR_MAX_DIMS] = {0}, params[TIR_MAX_PARAMS] = {0};
    for (uint32_t k = 0; k < formula->count; k++) {
        const tir_formula_op *op = &formula->ops[k];
        if (op->code == TIR_FORMULA_SCALAR || op->code == TIR_FORMULA_ALIGN ||
            op->code == TIR_FORMULA_BEGIN ||
            (op->code == TIR_FORMULA_DIM &&
             !tir_known_size(request, f, (uint32_t)op->value, &dims[op->value])))
            return false;
    }
    tir_error ignored;
    return formula->count && !tir_formula_eval(formula, dims, params, value, &ignored);
}

// Do the conditions of this configuration alone hold? False: the known dimensions do not decide.
static bool own_holds(struct tir_context *cx, const struct tir_request *request,
                      const struct tir_func *f, bool *holds)
{
    *holds = true;
    for (uint32_t i = 0; i < f->own_count; i++) {
        const struct tir_inst *yield = tir_yield_of(f->host);
        tir_formula formula;
        int64_t value;
        if (!tir_compile_estimate(cx, f, yield->operands[yield->operand_count - f->own_count + i],
                                  &formula) ||
            !known_value(request, f, &formula, &value))
            return false;
        *holds &= value != 0;
    }
    return true;
}

struct tir_choice tir_compile_cheapest(struct tir_context *cx, const struct tir_request *request,
                                       struct tir_func *const *configs, const tir_formula *costs,
                                       uint32_t count)
{
    const struct tir_choice none = {count, count, INT64_MAX, INT64_MAX};
    struct tir_choice found = none;
    if (!request->options.dim_count || configs[0]->dim_count > TIR_MAX_DIMS)
        return none;
    for (uint32_t i = 0; i < count; i++) {
        int64_t cost;
        bool holds;
        if (!known_value(request, configs[i], &costs[i], &cost) ||
            !own_holds(cx, request, configs[i], &holds))
            return none;
        if (holds && cost < found.cost)
            found = (struct tir_choice){i, found.best, cost, found.cost};
        else if (holds && cost < found.next_cost)
            found.next = i, found.next_cost = cost;
    }
    return found;
}
