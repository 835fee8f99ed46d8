// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, tiles loops: from the number of the CTA to the start of its tile.
//
//     tiles (m, n) in (M by 128, N by 128) { ... }
// becomes, with grid(mul(ceildiv(M, 128), ceildiv(N, 128))) in the kernel's header,
//     let pid: i32 = cta_id();
//     let m: i64 = cast(mul(div(pid, columns), 128));
//     let n: i64 = cast(mul(rem(pid, columns), 128));
//     ...
// and with persistent(1) the same inside a loop over pid, from cta_id by num_ctas. Where tiles
// differ in length, as under a causal mask, it walks every second round backwards,
//     let step: i32 = sub(mul(num_ctas(), 2), add(mul(cta_id(), 2), 1));
//     while carry (pid: i32 = cta_id(), step_2: i32 = step) { yield lt(pid, tiles); } do {
//         ...
//         yield add(pid, step_2), sub(mul(num_ctas(), 2), step_2);
//     }
// so that who had the first tile of a round has the last one of the next: an order that puts long
// tiles first would else give a CTA the longer tile in each round. With persistent(2) next(k) the
// loop goes on while the carried value k, which is pid, is not negative.
//
// Values that the tiles loop carries are that loop's. Each role has its own copy of the kernel's
// tiles loop; the grid is set by the first of them. The CTAs of a cluster share a tile: pid is then
// the cluster's number, and the grid has that many CTAs for each tile.

#include "ir/carry.h"
#include "ir/follow.h"
#include "ir/uneven.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/lower/lower.h"
#include "pass/receipt.h"

enum { MOST_OPERANDS = 3 }; // of what a grid is computed by

struct grid {
    struct lower *lo;
    struct tir_inst *tiles;
    struct tir_value **extents;
    uint32_t rank;
    const int64_t *by;
    struct tir_value *count[TIR_MAX_RANK]; // tiles of each dimension, i32
    bool in_turns;                         // every second round is walked backwards
};

static struct tir_value *op2(struct grid *g, enum tir_op op, struct tir_value *x,
                             struct tir_value *y)
{
    return tir_binary(&g->lo->b, op, x, y);
}

// index[d] of tile number pid, last dimension fastest, dimensions in the given sequence.
static void decode(struct grid *g, struct tir_value *pid, const uint32_t *sequence, uint32_t count,
                   struct tir_value **index)
{
    for (uint32_t k = count; k-- > 0;) {
        uint32_t d = sequence[k];
        index[d] = k ? op2(g, TIR_OP_REM, pid, g->count[d]) : pid;
        if (k)
            pid = op2(g, TIR_OP_DIV, pid, g->count[d]);
    }
}

// Row and column of tile number pid of rows x columns, in groups of `size` rows: first all rows of
// a group in one column, then in the next. Tiles that run together share operands in L2.
static void decode_grouped(struct grid *g, struct tir_value *pid, struct tir_value *size,
                           struct tir_value *rows, struct tir_value *columns,
                           struct tir_value **row, struct tir_value **column)
{
    struct tir_value *in_group = op2(g, TIR_OP_MUL, size, columns);
    struct tir_value *first = op2(g, TIR_OP_MUL, op2(g, TIR_OP_DIV, pid, in_group), size);
    struct tir_value *height = op2(g, TIR_OP_MIN, op2(g, TIR_OP_SUB, rows, first), size);
    struct tir_value *rest = op2(g, TIR_OP_REM, pid, in_group);
    *row = op2(g, TIR_OP_ADD, first, op2(g, TIR_OP_REM, rest, height));
    *column = op2(g, TIR_OP_DIV, rest, height);
}

// The last two dimensions in groups; the ones before them are planes, one after the other.
static void decode_planes(struct grid *g, struct tir_value *pid, int64_t group,
                          const uint32_t *sequence, struct tir_value **index)
{
    uint32_t m = g->rank - 2, n = g->rank - 1;
    if (m > 0) {
        struct tir_value *plane = op2(g, TIR_OP_MUL, g->count[m], g->count[n]);
        decode(g, op2(g, TIR_OP_DIV, pid, plane), sequence, m, index);
        pid = op2(g, TIR_OP_REM, pid, plane);
    }
    decode_grouped(g, pid, tir_lower_i32(g->lo, group), g->count[m], g->count[n], &index[m],
                   &index[n]);
}

static struct tir_value *grid_value(struct grid *g, enum tir_op of_cta, enum tir_op of_cluster)
{
    bool clusters = tir_func_ctas(g->lo->f) > 1;
    return tir_build1(&g->lo->b, clusters ? of_cluster : of_cta, g->lo->i32, NULL, 0);
}

// The rows of a group, long tiles first. CTAs that walk every second round backwards need some
// rounds from the long tiles to the short ones: in one round, or in two, those at its ends would
// meet long tiles alone.
static struct tir_value *heavy_group(struct grid *g, struct tir_value *columns)
{
    const struct tir_attr *stated = tir_attr_find(g->tiles, TIR_ATTR_group);
    struct tir_value *usual = tir_lower_i32(g->lo, TIR_BUDGET_ORDER_GROUP);
    if (stated)
        return tir_lower_i32(g->lo, stated->number);
    if (!g->in_turns)
        return usual;
    struct tir_value *ctas = grid_value(g, TIR_OP_NUM_CTAS, TIR_OP_NUM_CLUSTERS);
    struct tir_value *tiles =
        op2(g, TIR_OP_MUL, ctas, tir_lower_i32(g->lo, TIR_BUDGET_ORDER_ROUNDS));
    struct tir_value *some = op2(g, TIR_OP_MAX, columns, tir_lower_i32(g->lo, 1));
    return op2(g, TIR_OP_MAX, op2(g, TIR_OP_CEILDIV, tiles, some), usual);
}

// Groups of rows, which all other dimensions together are; the last column of a group first. Long
// tiles come before short ones, and the rows of a group (the heads of attention) stay in L2.
static void decode_heavy(struct grid *g, struct tir_value *pid, const uint32_t *sequence,
                         struct tir_value **index)
{
    uint32_t last = g->rank - 1;
    struct tir_value *rows = tir_lower_i32(g->lo, 1), *row;
    for (uint32_t d = 0; d < last; d++)
        rows = d ? op2(g, TIR_OP_MUL, rows, g->count[d]) : g->count[d];
    struct tir_value *group = heavy_group(g, g->count[last]);
    decode_grouped(g, pid, group, rows, g->count[last], &row, &index[last]);
    decode(g, row, sequence, last, index);
    struct tir_value *top = op2(g, TIR_OP_SUB, g->count[last], tir_lower_i32(g->lo, 1));
    index[last] = op2(g, TIR_OP_SUB, top, index[last]);
}

static void decode_order(struct grid *g, struct tir_value *pid, struct tir_value **index)
{
    uint32_t sequence[TIR_MAX_RANK] = {0};
    enum tir_word order = tir_attr_word(g->tiles, TIR_ATTR_order, TIR_WORD_order_row_major);
    int64_t group = tir_attr_int(g->tiles, TIR_ATTR_group, TIR_BUDGET_ORDER_GROUP);
    for (uint32_t d = 0; d < g->rank; d++)
        sequence[d] = order == TIR_WORD_order_column_major ? g->rank - 1 - d : d;
    if (order == TIR_WORD_order_grouped && g->rank >= 2)
        decode_planes(g, pid, group, sequence, index);
    else if (order == TIR_WORD_order_heavy_first)
        decode_heavy(g, pid, sequence, index);
    else
        decode(g, pid, sequence, g->rank, index);
}

struct host { // what a grid is computed from, in the host block
    struct lower *lo;
    struct tir_builder b;
    struct tir_map made; // value of the body -> value of the host block
};

static enum tir_answer is_for_host(void *user, struct tir_value *v)
{
    const struct host *host = user;
    if (tir_elem_is_float(v->type->elem)) // launch formulas have integers
        return TIR_NO;
    if (v->kind != TIR_VALUE_RESULT)
        return v->kind == TIR_VALUE_CONST || v->block == host->lo->f->body ? TIR_YES : TIR_NO;
    bool is_plain = tir_has_trait(v->def, TIR_PURE) && !tir_has_trait(v->def, TIR_THREAD) &&
                    !v->def->region_count && !v->def->attr_count;
    return is_plain && v->def->result_count == 1 && v->def->operand_count <= MOST_OPERANDS
               ? TIR_IF_OPERANDS
               : TIR_NO;
}

static void make_on_host(void *user, struct tir_value *v)
{
    struct host *host = user;
    struct tir_value *operands[MOST_OPERANDS];
    for (uint32_t i = 0; i < v->def->operand_count; i++) {
        struct tir_value *made = tir_map_get(&host->made, tir_map_key(v->def->operands[i]));
        operands[i] = made ? made : v->def->operands[i];
    }
    tir_map_set(&host->made, tir_map_key(v),
                tir_build1(&host->b, v->def->op, v->type, operands, v->def->operand_count));
}

// The same computation as v; NULL: it needs the device.
static struct tir_value *on_host(struct host *host, struct tir_follow *follow, struct tir_value *v)
{
    if (!tir_follows(follow, v))
        return NULL;
    struct tir_value *made = tir_map_get(&host->made, tir_map_key(v));
    return made ? made : v;
}

static bool refuse(const struct grid *g, const char *why)
{
    tir_error_at(g->lo->cx->diags, g->tiles->span, TIR_E_GRID, "%s", why);
    return false;
}

static bool set_grid(struct grid *g)
{
    struct tir_func *f = g->lo->f;
    if (g->lo->has_grid) // the tiles loops of all roles are the same
        return true;
    g->lo->has_grid = true;
    g->lo->tiles_differ = tir_tiles_differ(g->lo->f, g->lo->cx->scratch);
    if (f->cluster[1] > 1 || f->cluster[2] > 1)
        return refuse(g, "a tiles loop needs a cluster that lies along the first axis");
    struct tir_inst *yield = tir_yield_of(f->host);
    struct host host = {g->lo, {f, f->host, yield, {0, 0}}, {0}};
    struct tir_builder b = host.b;
    struct tir_follow follow;
    tir_map_init(&host.made, g->lo->cx->scratch);
    tir_follow_init(&follow, g->lo->cx->scratch, is_for_host, &host);
    follow.then = make_on_host;
    struct tir_value *total = NULL;
    for (uint32_t d = 0; d < g->rank; d++) {
        struct tir_value *extent = on_host(&host, &follow, g->extents[d]);
        if (!extent) {
            tir_error_at(g->lo->cx->diags, g->tiles->span, TIR_E_GRID,
                         "extent %u of tiles must follow from dimensions and integer parameters",
                         d);
            return false;
        }
        if (tir_expression_size(g->lo->cx->scratch, extent) > TIR_MAX_EXPRESSION) {
            tir_error_at(g->lo->cx->diags, g->tiles->span, TIR_E_GRID, TIR_EXPRESSION_TOO_LONG,
                         TIR_MAX_EXPRESSION);
            return false;
        }
        extent = tir_lower_cast(g->lo, &b, extent, g->lo->i64);
        struct tir_value *n =
            g->by[d] == 1 ? extent
                          : tir_binary(&b, TIR_OP_CEILDIV, extent, tir_const_index(f, g->by[d]));
        total = total ? tir_binary(&b, TIR_OP_MUL, total, n) : n;
    }
    if (tir_func_ctas(f) > 1)
        total = tir_binary(&b, TIR_OP_MUL, total, tir_const_index(f, tir_func_ctas(f)));
    uint32_t count = yield ? yield->operand_count : 0;
    struct tir_value **values = arena_array(g->lo->cx->scratch, struct tir_value *, count + 1);
    values[0] = total;
    if (count)
        memcpy(values + 1, yield->operands, count * sizeof(*values));
    if (yield)
        tir_remove(yield);
    b = tir_builder_at_end(f, f->host);
    tir_build_yield(&b, values, count + 1);
    f->grid_count = 1;
    return true;
}

// CTAs of one multiprocessor that a persistent grid counts on; registers are not known here.
static uint32_t resident_ctas(const struct lower *lo)
{
    const struct tir_target *target = lo->cx->target;
    int64_t by_registers =
        target->registers_per_sm / (lo->f->threads * TIR_BUDGET_RESIDENT_REGISTERS);
    int64_t ctas = tir_target_ctas(target, lo->f->shared_bytes, lo->f->threads);
    ctas = TIR_MIN(ctas, by_registers);
    tir_foreach_inst(inst, lo->f)
        if (inst->op == TIR_OP_TMEM_ALLOC)
            ctas = TIR_MIN(ctas, TIR_TMEM_COLUMNS / tir_attr_int(inst, TIR_ATTR_columns, 1));
    return (uint32_t)TIR_MAX(1, ctas);
}

// A CTA that waits for columns of tensor memory holds a tile that nobody can take over. So no more
// CTAs of a full grid than have columns may have room in the shared memory of a multiprocessor.
static void keep_columns_free(struct lower *lo)
{
    const struct tir_target *target = lo->cx->target;
    const int64_t of_system = target->shared_per_sm - target->shared_per_cta;
    int64_t columns = 0;
    tir_foreach_inst(inst, lo->f)
        if (inst->op == TIR_OP_TMEM_ALLOC)
            columns = TIR_MAX(columns, tir_attr_int(inst, TIR_ATTR_columns, 1));
    if (!columns)
        return;
    int64_t most = target->shared_per_sm / (TIR_TMEM_COLUMNS / columns + 1) - of_system;
    lo->f->shared_bytes = TIR_MAX(lo->f->shared_bytes, most / 16 * 16 + 16);
}

// Moves what is in the loop's block to the builder's position. args: what its arguments are; gives
// the yield, which is no longer in the block.
static struct tir_inst *inline_block(struct lower *lo, struct tir_block *block,
                                     struct tir_value *const *args)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        tir_replace_uses(lo->f, block->args[i], args[i]);
    struct tir_inst *yield = tir_yield_of(block);
    if (yield)
        tir_remove(yield);
    struct tir_inst *anchor = tir_build(&lo->b, TIR_OP_WARP_SYNC, NULL, 0, NULL, 0, 0);
    while (block->first)
        tir_move_before(block->first, anchor);
    tir_remove(anchor);
    return yield;
}

// The loop over tiles of one CTA. It carries numbers of its own, then what the tiles loop does.
struct walk {
    struct tir_inst *loop;
    struct tir_block *body;
    struct tir_value *pid; // the tile's number in the body
    uint32_t first;        // of the body's arguments, those before what the tiles loop carries
};

// Lets the loop carry what the tiles loop does.
static void carry_all(struct grid *g, struct walk *w)
{
    const struct tir_block *body = g->tiles->regions[0];
    for (uint32_t i = 0; i < g->tiles->result_count; i++)
        tir_carry_add(g->lo->f, w->loop, g->tiles->operands[g->rank + i],
                      body->args[g->rank + i]->name);
}

// By a fixed stride.
static struct walk walk_by_stride(struct grid *g, struct tir_value *pid, struct tir_value *total)
{
    struct tir_value *step = grid_value(g, TIR_OP_NUM_CTAS, TIR_OP_NUM_CLUSTERS);
    struct tir_value *bounds[TIR_FOR_INIT] = {pid, total, step};
    struct walk w = {.first = 1};
    w.loop = tir_build(&g->lo->b, TIR_OP_FOR, bounds, TIR_FOR_INIT, NULL, 0, 1);
    w.body = w.loop->regions[0];
    w.pid = tir_block_add_arg(g->lo->f, w.body, g->lo->i32, "pid");
    carry_all(g, &w);
    return w;
}

// A while loop, without its test.
static struct walk begin_while(struct grid *g)
{
    struct walk w = {.loop = tir_build(&g->lo->b, TIR_OP_WHILE, NULL, 0, NULL, 0, 2)};
    w.body = w.loop->regions[1];
    return w;
}

static void end_while(struct grid *g, struct walk *w, uint32_t pid, enum tir_op test,
                      struct tir_value *other)
{
    struct lower *lo = g->lo;
    struct tir_builder b = tir_builder_at_end(lo->f, w->loop->regions[0]);
    struct tir_value *goes_on = tir_binary(&b, test, w->loop->regions[0]->args[pid], other);
    tir_build_yield(&b, &goes_on, 1);
    w->pid = w->body->args[pid];
    b = tir_builder_at_end(lo->f, w->body);
    struct tir_value *counts = tir_binary(&b, TIR_OP_GE, w->pid, tir_lower_i32(lo, 0));
    tir_build(&b, TIR_OP_ASSUME, &counts, 1, NULL, 0, 0);
}

// Every second round backwards.
static struct walk walk_in_turns(struct grid *g, struct tir_value *pid, struct tir_value *total,
                                 struct tir_value **yields)
{
    struct lower *lo = g->lo;
    struct tir_value *two = tir_lower_i32(lo, 2), *one = tir_lower_i32(lo, 1);
    struct tir_value *count = grid_value(g, TIR_OP_NUM_CTAS, TIR_OP_NUM_CLUSTERS);
    struct tir_value *both = op2(g, TIR_OP_MUL, count, two);
    struct tir_value *twice = op2(g, TIR_OP_MUL, pid, two);
    struct tir_value *first = op2(g, TIR_OP_SUB, both, op2(g, TIR_OP_ADD, twice, one));
    struct walk w = begin_while(g);
    w.first = 2;
    g->in_turns = true;
    tir_carry_add(lo->f, w.loop, pid, "pid");
    struct tir_value *step = tir_carry_add(lo->f, w.loop, first, "step");
    carry_all(g, &w);
    end_while(g, &w, 0, TIR_OP_LT, total);
    struct tir_builder b = tir_builder_at_end(lo->f, w.body);
    yields[0] = tir_binary(&b, TIR_OP_ADD, w.pid, step);
    yields[1] = tir_binary(&b, TIR_OP_SUB, both, step);
    return w;
}

// While there is a next one; the first is the CTA's own.
static struct walk walk_dynamic(struct grid *g, struct tir_value *pid, int64_t next)
{
    struct walk w = begin_while(g);
    g->tiles->operands[g->rank + next] = pid;
    carry_all(g, &w);
    end_while(g, &w, (uint32_t)next, TIR_OP_GE, tir_lower_i32(g->lo, 0));
    return w;
}

static struct walk walk_tiles(struct grid *g, struct tir_value *pid, struct tir_value *total,
                              struct tir_value **yields)
{
    const struct tir_attr *next = tir_attr_find(g->tiles, TIR_ATTR_next);
    if (next)
        return walk_dynamic(g, pid, next->number);
    if (!g->lo->tiles_differ)
        return walk_by_stride(g, pid, total);
    tir_receipt_add(g->lo->cx, TIR_TOPIC_LAUNCH, g->tiles->span,
                    "tiles: every second round backwards, since they differ in length");
    return walk_in_turns(g, pid, total, yields);
}

// Where the tile number pid begins.
static void build_starts(struct grid *g, struct tir_value *pid, struct tir_value **starts)
{
    struct lower *lo = g->lo;
    decode_order(g, pid, starts);
    for (uint32_t d = 0; d < g->rank; d++) {
        struct tir_value *start = tir_lower_cast(lo, &lo->b, starts[d], lo->i64);
        starts[d] = tir_lower_mul_const(lo, &lo->b, start, g->by[d]);
        starts[d]->name = g->tiles->regions[0]->args[d]->name;
        tir_map_set(&lo->below, tir_map_key(starts[d]), g->extents[d]);
    }
}

void tir_lower_tiles(struct lower *lo, struct tir_inst *inst)
{
    struct grid g = {.lo = lo, .tiles = inst, .extents = inst->operands};
    const struct tir_attr *by = tir_attr_find(inst, TIR_ATTR_by);
    g.by = by->list;
    g.rank = by->list_count;
    if (!set_grid(&g)) {
        lo->failed = true;
        return;
    }
    struct tir_func *f = lo->f;
    struct tir_value *total = NULL;
    for (uint32_t d = 0; d < g.rank; d++) {
        struct tir_value *n = tir_lower_cast(lo, &lo->b, g.extents[d], lo->i64);
        if (g.by[d] != 1)
            n = tir_binary(&lo->b, TIR_OP_CEILDIV, n, tir_const_index(f, g.by[d]));
        g.count[d] = tir_lower_cast(lo, &lo->b, n, lo->i32);
        total = total ? tir_binary(&lo->b, TIR_OP_MUL, total, g.count[d]) : g.count[d];
    }
    struct tir_value *pid = grid_value(&g, TIR_OP_CTA_ID, TIR_OP_CLUSTER_ID);
    struct tir_builder outer = lo->b;
    struct tir_value **args = tir_lower_new_registers(lo, g.rank + inst->result_count);
    // After inst, so that the walk over this block goes on with the contents of the loop; inside
    // the persistent loop, the walk enters through the loop itself.
    if (tir_attr_int(inst, TIR_ATTR_persistent, 0)) {
        struct tir_value *yields[2] = {NULL};
        struct walk w = walk_tiles(&g, pid, total, yields);
        lo->b = tir_builder_at_end(f, w.body);
        build_starts(&g, w.pid, args);
        for (uint32_t i = 0; i < inst->result_count; i++)
            args[g.rank + i] = w.body->args[w.first + i];
        struct tir_inst *yield = inline_block(lo, inst->regions[0], args);
        for (uint32_t i = 0; i < TIR_COUNT_OF(yields) && yields[i]; i++)
            tir_yield_add(f, w.body, yields[i]);
        for (uint32_t i = 0; i < inst->result_count; i++)
            tir_yield_add(f, w.body, yield->operands[i]);
        if (!tir_yield_of(w.body))
            tir_build_yield(&lo->b, NULL, 0);
        uint32_t before = w.loop->result_count - inst->result_count;
        for (uint32_t i = 0; i < inst->result_count; i++)
            tir_replace_uses(f, inst->results[i], w.loop->results[before + i]);
        tir_move_before(inst, w.loop);
        if (tir_attr_find(inst, TIR_ATTR_next))
            keep_columns_free(lo);
        else
            f->persistent = resident_ctas(lo);
    } else {
        build_starts(&g, pid, args);
        for (uint32_t i = 0; i < inst->result_count; i++)
            args[g.rank + i] = inst->operands[g.rank + i];
        lo->b = (struct tir_builder){f, inst->block, inst->next, inst->span};
        struct tir_inst *yield = inline_block(lo, inst->regions[0], args);
        for (uint32_t i = 0; i < inst->result_count; i++)
            tir_replace_uses(f, inst->results[i], yield->operands[i]);
    }
    lo->b = outer;
    lo->ranges = tir_ranges_new(lo->cx->scratch, f); // of the new starts
}
