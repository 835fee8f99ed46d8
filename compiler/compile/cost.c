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
// first. None is shorter than it takes to fill a slot of the ring again (refill / stages). What
// they exchange takes as long as a barrier of the cluster, however much it is.
//
// Each further tiles loop is one more launch. A tile without a product costs the time to begin it
// and what its loads and stores move, those of memory, of whole tiles: what lies past the end of a
// row takes its share of the work, so a launch has the tile with the least of it.
//
//     tile = begun + sum over each load and store of (rounds of its loops * bytes / moved)
//
// The numbers are those of the card that stands for the target (machine/cost.def). The receipt says
// so unless that card is one of the target's.

#include "compile/cost_model.h"

#include "compile/code.h"
#include "compile/compile.h"
#include "compile/formula.h"
#include "ir/walk.h"
#include "pass/role/cluster.h"

const struct tir_cost *tir_cost_of(const struct cost_model *m)
{
    return &tir_costs[m->request->target.card];
}

void tir_cost_push(struct cost_model *m, tir_formula_code code, int64_t value)
{
    vec_push(&m->cx->arena, &m->ops, ((tir_formula_op){code, value}));
}

// Does v follow from dimensions and integer parameters alone? Bounds of loops that depend on the
// tile count as those of the first one.
static enum tir_answer is_known_at_launch(void *user, struct tir_value *v)
{
    const struct cost_model *m = user;
    if (v->kind == TIR_VALUE_CONST)
        return TIR_YES;
    bool is_int = tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem);
    if (v->kind == TIR_VALUE_ARG)
        return (v->block == m->f->body && is_int) || tir_compile_is_tile(v) ? TIR_YES : TIR_NO;
    bool is_plain = tir_has_trait(v->def, TIR_PURE) && !tir_has_trait(v->def, TIR_THREAD) &&
                    !v->def->region_count && !v->def->attr_count;
    return is_plain && tir_elem_is_int(v->type->elem) ? TIR_IF_OPERANDS : TIR_NO;
}

void tir_cost_push_value(struct cost_model *m, const struct tir_value *v)
{
    tir_formula one = {0};
    if (!tir_compile_estimate(m->cx, m->f, v, &one))
        m->is_lost = true;
    for (uint32_t i = 0; i < one.count; i++)
        tir_cost_push(m, one.ops[i].code, one.ops[i].value);
}

bool tir_cost_has_tensor_memory(const struct cost_model *m)
{
    return m->request->target.features & TIR_HAS_TCGEN05;
}

const struct tir_attr *tir_cost_cluster_of(const struct cost_model *m, const struct tir_inst *tiles)
{
    const struct tir_attr *cluster = tir_attr_find(tiles, TIR_ATTR_cluster);
    if (cluster && tir_cost_has_tensor_memory(m))
        tir_foreach_inst_in(dot, tiles->regions[0])
            if (dot->op == TIR_OP_DOT && !tir_tmem_suits_pair(tiles, dot))
                return NULL;
    return cluster;
}

bool tir_cost_push_tiles_along(struct cost_model *m, const struct tir_inst *tiles, uint32_t d)
{
    const struct tir_attr *by = tir_attr_find(tiles, TIR_ATTR_by);
    const struct tir_attr *cluster = tir_cost_cluster_of(m, tiles);
    const int64_t together = cluster ? cluster->list[d] : 1; // tiles that walk together
    if (!tir_follows(&m->known, tiles->operands[d]))
        return false;
    tir_cost_push_value(m, tiles->operands[d]);
    tir_cost_push(m, TIR_FORMULA_CONST, by->list[d] * together);
    tir_cost_push(m, TIR_FORMULA_CEILDIV, 0);
    if (together > 1) {
        tir_cost_push(m, TIR_FORMULA_CONST, together);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
    }
    return true;
}

static void push_tiles(struct cost_model *m, const struct tir_inst *tiles)
{
    tir_cost_push(m, TIR_FORMULA_CONST,
                  tir_compile_sharers(m->f, tiles)); // of a cluster, which share each tile
    for (uint32_t d = 0; d < tir_attr_find(tiles, TIR_ATTR_by)->list_count; d++)
        if (tir_cost_push_tiles_along(m, tiles, d))
            tir_cost_push(m, TIR_FORMULA_MUL, 0);
}

// Does each CTA of the loop walk many tiles?
static bool is_persistent(const struct tir_inst *tiles)
{
    return tir_attr_int(tiles, TIR_ATTR_persistent, 0) != 0;
}

// How many CTAs of the loop run on a multiprocessor at a time, as their stages allow: 1 or 2. A
// loop that does not say how many stages it has takes all there is room for. Only products on
// warpgroups were measured; registers decide elsewhere, too.
static int64_t room_for_ctas(const struct cost_model *m, const struct tir_inst *tiles)
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
        if (!stages || tir_cost_warpgroups(dot) > 1)
            return 1;
        bytes += stages * (tir_cost_source_of(m, dot->operands[TIR_DOT_A]).bytes +
                           tir_cost_source_of(m, dot->operands[TIR_DOT_B]).bytes);
    }
    return has_dot && 2 * bytes <= m->request->target.shared_per_cta ? 2 : 1;
}

// Where a cluster shares a tile, room for two only makes it easier to place.
int64_t tir_cost_ctas_together(const struct cost_model *m, const struct tir_inst *tiles)
{
    return tir_compile_sharers(m->f, tiles) > 1 ? 1 : room_for_ctas(m, tiles);
}

// The tiles that a multiprocessor works on, one after the other or two at a time. Parts whose
// number is not known at launch are taken to fill them.
static void push_turns(struct cost_model *m, const struct tir_inst *tiles)
{
    const uint32_t rank = tir_attr_find(tiles, TIR_ATTR_by)->list_count;
    const int64_t most = tir_cost_ctas_together(m, tiles);
    bool are_known = true;
    for (uint32_t d = 0; d < rank; d++)
        are_known &= tir_follows(&m->known, tiles->operands[d]);
    const bool two = most > 1 && are_known;
    tir_cost_push(m, TIR_FORMULA_GET, two ? TILES : WAVES);
    tir_cost_push(m, TIR_FORMULA_CONST, two ? m->request->target.multiprocessors : most);
    tir_cost_push(m, two ? TIR_FORMULA_CEILDIV : TIR_FORMULA_MUL, 0);
}

// Sizes are not negative, so a loop from 0 to one of them has no fewer than no rounds.
static bool may_end_before_it_begins(const struct tir_inst *loop)
{
    int64_t begin;
    return !tir_is_const_int(loop->operands[TIR_FOR_BEGIN], &begin) || begin ||
           loop->operands[TIR_FOR_END]->kind == TIR_VALUE_RESULT;
}

void tir_cost_push_rounds(struct cost_model *m, const struct tir_inst *inst)
{
    if (inst->block != m->block)
        tir_cost_push(m, TIR_FORMULA_CONST, 1);
    for (const struct tir_inst *up = inst->block->owner; up && inst->block != m->block;
         up = up->block->owner) {
        if (up->op != TIR_OP_FOR)
            continue;
        bool known = true;
        for (uint32_t i = TIR_FOR_BEGIN; i <= TIR_FOR_STEP; i++)
            known &= tir_follows(&m->known, up->operands[i]);
        if (!known)
            continue;
        tir_cost_push_value(m, up->operands[TIR_FOR_END]);
        tir_cost_push_value(m, up->operands[TIR_FOR_BEGIN]);
        tir_cost_push(m, TIR_FORMULA_SUB, 0);
        if (may_end_before_it_begins(up)) {
            tir_cost_push(m, TIR_FORMULA_CONST, 0);
            tir_cost_push(m, TIR_FORMULA_MAX, 0);
        }
        tir_cost_push_value(m, up->operands[TIR_FOR_STEP]);
        tir_cost_push(m, TIR_FORMULA_CEILDIV, 0);
        tir_cost_push(m, TIR_FORMULA_MUL, 0);
    }
    if (inst->block != m->block)
        tir_cost_push(m, TIR_FORMULA_SET, ROUNDS);
    m->block = inst->block;
    tir_cost_push(m, TIR_FORMULA_GET, ROUNDS);
    tir_cost_push(m, TIR_FORMULA_MUL, 0);
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

static void push_move(struct cost_model *m, const struct tir_inst *inst)
{
    const int64_t moved =
        tir_cost_of(m)->moved; // rounded up: two halves are no less than the whole
    tir_cost_push(m, TIR_FORMULA_CONST, tir_ceil_div(tir_type_bytes(moved_type(inst)), moved));
    tir_cost_push_rounds(m, inst);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
}

// What a product computed leaves. Rows that 128 bytes do not divide take further copies.
static void push_store(struct cost_model *m, const struct tir_inst *store)
{
    const struct tir_type *t = moved_type(store);
    const int64_t bytes = tir_type_bytes(t);
    const int64_t rows = t->rank ? tir_type_count(t) / t->shape[t->rank - 1] : 1;
    const bool is_uneven = (m->request->target.features & TIR_HAS_WGMMA) && bytes / rows % 128;
    tir_cost_push(m, TIR_FORMULA_CONST,
                  bytes / tir_cost_of(m)->stored +
                      (is_uneven ? rows * tir_cost_of(m)->uneven / 64 : 0));
    tir_cost_push_rounds(m, store);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
}

// The time to read and write every tensor of the loop once, but for scratch, which stays in the L2
// cache.
static void push_memory(struct cost_model *m, const struct tir_inst *tiles)
{
    tir_cost_push(m, TIR_FORMULA_CONST, 0);
    for (uint32_t i = 0; i < m->f->param_count; i++) {
        const struct tir_param *p = &m->f->params[i];
        if (!tir_type_is_buffer(p->value->type) || p->is_scratch ||
            !tir_uses_value(tiles, p->value))
            continue;
        tir_cost_push(m, TIR_FORMULA_CONST, TIR_MAX(8, tir_elems[p->value->type->elem].bits) / 8);
        for (uint32_t d = 0; d < p->value->type->rank; d++) {
            const struct tir_param_dim *dim = &p->dims[d];
            tir_cost_push(m, dim->dim < 0 ? TIR_FORMULA_CONST : TIR_FORMULA_DIM,
                          dim->dim < 0 ? dim->constant : dim->dim);
            tir_cost_push(m, TIR_FORMULA_MUL, 0);
        }
        tir_cost_push(m, TIR_FORMULA_CONST, tir_cost_of(m)->memory);
        tir_cost_push(m, TIR_FORMULA_DIV, 0);
        tir_cost_push(m, TIR_FORMULA_ADD, 0);
    }
}

static int64_t cluster_size(const struct cost_model *m, const struct tir_inst *tiles)
{
    const struct tir_attr *cluster = tir_cost_cluster_of(m, tiles);
    int64_t size = tir_compile_sharers(m->f, tiles);
    for (uint32_t d = 0; cluster && d < cluster->list_count; d++)
        size *= cluster->list[d];
    return size;
}

// The CTAs of clusters that share a tile: GPCs are not divided evenly, and fewer clusters run where
// a CTA needs a multiprocessor of its own.
static int64_t in_whole_clusters(const struct cost_model *m, const struct tir_inst *tiles)
{
    const struct tir_cost *cost = tir_cost_of(m);
    const uint32_t size = tir_compile_sharers(m->f, tiles);
    if (room_for_ctas(m, tiles) == 1 && size < TIR_COUNT_OF(cost->clusters) && cost->clusters[size])
        return size * cost->clusters[size];
    // The last one often waits for another to end.
    const int64_t most = m->request->target.multiprocessors * cost->in_gpcs / 100 / size - 1;
    return TIR_MAX(1, most) * size;
}

static int64_t ctas_at_a_time(const struct cost_model *m, const struct tir_inst *tiles)
{
    if (tir_compile_sharers(m->f, tiles) > 1)
        return in_whole_clusters(m, tiles);
    const int64_t all = m->request->target.multiprocessors * tir_cost_ctas_together(m, tiles);
    return cluster_size(m, tiles) > 2 ? all * tir_cost_of(m)->in_gpcs / 100 : all;
}

// The cycles of a tile beside its rounds and its sums.
static int64_t beside_rounds(const struct cost_model *m, const struct tir_inst *tiles)
{
    const struct tir_cost *cost = tir_cost_of(m);
    return cost->fixed + (cluster_size(m, tiles) > 1 ? cost->clustered : 0) +
           (tir_compile_sharers(m->f, tiles) > 1 ? cost->exchange : 0) +
           (is_persistent(tiles) ? 0 : cost->start);
}

// What a loop keeps busy and what memory takes, less what is hidden.
static void push_overlapped(struct cost_model *m)
{
    tir_cost_push(m, TIR_FORMULA_GET, BUSY);
    tir_cost_push(m, TIR_FORMULA_GET, READ);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
    tir_cost_push(m, TIR_FORMULA_GET, BUSY);
    tir_cost_push(m, TIR_FORMULA_GET, READ);
    tir_cost_push(m, TIR_FORMULA_MIN, 0);
    tir_cost_push(m, TIR_FORMULA_CONST, 100 - tir_cost_of(m)->unhidden);
    tir_cost_push(m, TIR_FORMULA_MUL, 0);
    tir_cost_push(m, TIR_FORMULA_CONST, 100);
    tir_cost_push(m, TIR_FORMULA_DIV, 0);
    tir_cost_push(m, TIR_FORMULA_SUB, 0);
}

static void push_waves(struct cost_model *m, const struct tir_inst *tiles)
{
    push_tiles(m, tiles);
    tir_cost_push(m, TIR_FORMULA_SET, TILES);
    tir_cost_push(m, TIR_FORMULA_GET, TILES);
    tir_cost_push(m, TIR_FORMULA_CONST, ctas_at_a_time(m, tiles));
    tir_cost_push(m, TIR_FORMULA_CEILDIV, 0);
    tir_cost_push(m, TIR_FORMULA_SET, WAVES);
}

static void push_products(struct cost_model *m, const struct tir_inst *tiles)
{
    push_turns(m, tiles);
    tir_cost_push(m, TIR_FORMULA_SET, TURNS);
    tir_cost_push(m, TIR_FORMULA_CONST, 0);
    tir_foreach_inst_in(inst, tiles->regions[0])
        if (inst->op == TIR_OP_DOT)
            tir_cost_push_product(m, tiles, inst);
    tir_cost_push(m, TIR_FORMULA_SET, BUSY);
    push_memory(m, tiles);
    tir_cost_push(m, TIR_FORMULA_SET, READ);
    push_overlapped(m);
    tir_cost_push(m, TIR_FORMULA_CONST, is_persistent(tiles) ? tir_cost_of(m)->start : 0);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
}

static void push_loop(struct cost_model *m, const struct tir_inst *tiles)
{
    bool has_dot = false;
    tir_foreach_inst_in(inst, tiles->regions[0])
        has_dot |= inst->op == TIR_OP_DOT;
    push_waves(m, tiles);
    tir_cost_push(m, TIR_FORMULA_CONST, has_dot ? beside_rounds(m, tiles) : tir_cost_of(m)->begun);
    tir_foreach_inst_in(inst, tiles->regions[0]) {
        if (!moves(inst))
            continue;
        if (!has_dot)
            push_move(m, inst);
        else if (inst->op == TIR_OP_STORE)
            push_store(m, inst);
    }
    tir_cost_push(m, TIR_FORMULA_GET, WAVES);
    tir_cost_push(m, TIR_FORMULA_MUL, 0);
    if (!has_dot)
        return;
    push_products(m, tiles);
    tir_cost_push(m, TIR_FORMULA_ADD, 0);
}

tir_formula tir_compile_cost(struct tir_context *cx, const struct tir_request *request,
                             struct tir_func *f)
{
    struct cost_model m = {.cx = cx, .request = request, .f = f};
    uint32_t loops = 0;
    tir_follow_init(&m.known, &cx->arena, is_known_at_launch, &m);
    for (const struct tir_inst *inst = m.f->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_TILES)
            continue;
        push_loop(&m, inst);
        if (loops++) {
            tir_cost_push(&m, TIR_FORMULA_ADD, 0);
            tir_cost_push(&m, TIR_FORMULA_CONST, tir_cost_of(&m)->launch);
            tir_cost_push(&m, TIR_FORMULA_ADD, 0);
        }
    }
    if (!loops || m.is_lost || m.ops.len > TIR_MAX_FORMULA) // no estimate is one too
        return (tir_formula){0};
    return (tir_formula){m.ops.at, m.ops.len};
}
