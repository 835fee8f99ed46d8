// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on barriers of the grid: all CTAs run up to one, and then all run on.
//
// A CTA is its values and its shared memory. One CTA after the other runs what stands between two
// barriers, so a CTA may wait for those of lower numbers there. Every thread of the grid comes to
// a barrier, so a branch or loop around one goes the same way in all of them and needs no mask:
//
//     for r in range(n) { a; grid_sync(); b; }     a of each CTA, b of each CTA, a of each CTA, ...

#include "interp/state.h"
#include "ir/walk.h"

struct cta {
    struct slot *slots;
    uint8_t *shared;
};

struct grid {
    struct interp *in;
    struct cta *ctas;
    int64_t count;
    const uint8_t *holds; // by instruction: a barrier of the grid, or what has one in its regions
};

// Runs what follows for each CTA in turn, as the CTA.
#define EACH_CTA(g, i) for (int64_t i = 0; i < (g)->count && enter(g, i); i++)

static bool enter(struct grid *g, int64_t number)
{
    struct interp *in = g->in;
    in->slots = g->ctas[number].slots;
    in->shared = g->ctas[number].shared;
    in->cta[0] = number % in->grid[0];
    in->cta[1] = number / in->grid[0] % in->grid[1];
    in->cta[2] = number / in->grid[0] / in->grid[1];
    return true;
}

// A number that is the same in all threads of the grid.
static int64_t same(struct grid *g, const struct tir_inst *inst, const struct tir_value *v)
{
    int64_t x = 0;
    EACH_CTA(g, c)
    {
        const union tir_number *at = tir_interp_read(g->in, v);
        x = c ? x : at->i;
        for (uint32_t i = 0; i < g->in->lanes; i++)
            if (at[i].i != x)
                tir_interp_fail(g->in, inst, TIR_ERR_INVALID,
                                "not every thread of the grid comes to the grid_sync here: "
                                "'%s' depends on %lld in one and on %lld in another",
                                tir_ops[inst->op].name, (long long)x, (long long)at[i].i);
    }
    return x;
}

static void run_all(struct grid *g, const struct tir_block *block);

static void copy_all(struct grid *g, const struct tir_inst *inst, struct tir_value **to,
                     struct tir_value **from)
{
    EACH_CTA(g, c)
    for (uint32_t i = 0; i < inst->result_count; i++)
        tir_interp_copy(g->in, inst, to[i], from[i]);
}

static void carry_all(struct grid *g, const struct tir_inst *inst, struct tir_value **args,
                      const struct tir_block *body)
{
    EACH_CTA(g, c)
    tir_interp_carry(g->in, inst, args, body);
}

static void run_if(struct grid *g, const struct tir_inst *inst)
{
    uint32_t side = !same(g, inst, inst->operands[0]);
    if (side >= inst->region_count)
        return;
    run_all(g, inst->regions[side]);
    if (inst->result_count)
        copy_all(g, inst, inst->results, tir_yield_of(inst->regions[side])->operands);
}

static void run_for(struct grid *g, const struct tir_inst *inst)
{
    const struct tir_block *body = inst->regions[0];
    enum tir_elem elem = body->args[0]->type->elem;
    int64_t at = same(g, inst, inst->operands[TIR_FOR_BEGIN]);
    int64_t end = same(g, inst, inst->operands[TIR_FOR_END]);
    int64_t step = same(g, inst, inst->operands[TIR_FOR_STEP]);
    if (step <= 0)
        tir_interp_fail(g->in, inst, TIR_ERR_INVALID, "the step of a loop is %lld",
                        (long long)step);
    copy_all(g, inst, body->args + 1, inst->operands + TIR_FOR_INIT);
    bool more = true;
    while (more && (elem == TIR_U64 ? (uint64_t)at < (uint64_t)end : at < end)) {
        EACH_CTA(g, c)
        for (uint32_t i = 0; i < g->in->lanes; i++)
            tir_interp_write(g->in, body->args[0])[i].i = at;
        run_all(g, body);
        carry_all(g, inst, body->args + 1, body);
        more = tir_interp_step(elem, &at, step);
    }
    copy_all(g, inst, inst->results, body->args + 1);
}

static void run_while(struct grid *g, const struct tir_inst *inst)
{
    const struct tir_block *test = inst->regions[0], *body = inst->regions[1];
    copy_all(g, inst, test->args, inst->operands);
    for (;;) {
        run_all(g, test);
        if (!same(g, inst, tir_yield_of(test)->operands[0]))
            break;
        copy_all(g, inst, body->args, test->args);
        run_all(g, body);
        carry_all(g, inst, test->args, body);
    }
    copy_all(g, inst, inst->results, test->args);
}

static void run_all(struct grid *g, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst;) {
        const struct tir_inst *barrier = inst;
        while (barrier && !g->holds[barrier->id])
            barrier = barrier->next;
        EACH_CTA(g, c)
        tir_interp_until(g->in, inst, barrier);
        if (!barrier)
            return;
        if (barrier->op == TIR_OP_IF)
            run_if(g, barrier);
        else if (barrier->op == TIR_OP_FOR)
            run_for(g, barrier);
        else if (barrier->op == TIR_OP_WHILE)
            run_while(g, barrier);
        else if (barrier->op != TIR_OP_GRID_SYNC)
            tir_interp_fail(g->in, barrier, TIR_ERR_UNSUPPORTED,
                            "a grid_sync in '%s' cannot be interpreted", tir_ops[barrier->op].name);
        inst = barrier->next;
    }
}

// The values that are there before a CTA begins are those of each of them.
static struct cta make_cta(struct interp *in, const struct slot *slots)
{
    struct cta cta = {arena_array(&in->arena, struct slot, in->f->value_count), NULL};
    memcpy(cta.slots, slots, in->f->value_count * sizeof *slots);
    if (in->f->shared_bytes > 0) {
        cta.shared = tir_arena_alloc(&in->arena, (size_t)in->f->shared_bytes);
        memset(cta.shared, 0xff, (size_t)in->f->shared_bytes);
    }
    return cta;
}

bool tir_interp_syncs_grid(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_GRID_SYNC)
            return true;
    return false;
}

void tir_interp_grid(struct interp *in)
{
    struct grid g = {.in = in, .count = 1};
    for (uint32_t d = 0; d < 3; d++)
        if (in->grid[d] <= 0 || !tir_mul_checked(g.count, in->grid[d], &g.count))
            return;
    uint8_t *holds = arena_array(&in->arena, uint8_t, in->f->inst_count);
    tir_foreach_inst(inst, in->f)
        if (inst->op == TIR_OP_GRID_SYNC)
            for (const struct tir_inst *at = inst; at; at = at->block->owner)
                holds[at->id] = 1;
    g.holds = holds;
    g.ctas = arena_array(&in->arena, struct cta, (size_t)g.count);
    const struct slot *slots = in->slots;
    for (int64_t i = 0; i < g.count; i++)
        g.ctas[i] = make_cta(in, slots);
    in->active_count = in->lanes;
    memset(in->active, 1, in->lanes);
    run_all(&g, in->f->body);
}
