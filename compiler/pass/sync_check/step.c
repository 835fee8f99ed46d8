// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on what each round of a loop adds to a value that the loop carries.
//
//     while m < M { ...; if c { m += 64; } else { m += 32; } }      // 32 to 64
//
// One walk in program order over the loop's body: a value is the carried one and more if it is a
// sum with one such value, or if each way to it, through an `if` or a `where`, is. Of
// min(m + 64, M) only the most is known, of max(m - 64, 0) only the least.

#include "pass/sync_check/sync_check.h"

enum { MOST_FACTOR = 1 << 20 };

struct walk {
    const struct sync_program *p;
    struct bitset known;   // values that are the carried one and more, by id
    int64_t *least, *most; // how much more, by value id
    bool up, down;         // what is added on the way to the next round
    struct bitset way;     // values on that way, by id
    VEC(const struct tir_value *) open;
};

// How much more, from here on without bound. Sums of a loop's body are less.
#define MOST (INT64_C(1) << 60)

static bool is_known(const struct walk *w, const struct tir_value *v)
{
    return v->kind != TIR_VALUE_CONST && bitset_has(&w->known, v->id);
}

static void set(struct walk *w, const struct tir_value *v, int64_t least, int64_t most)
{
    bitset_insert(&w->known, v->id);
    w->least[v->id] = least <= -MOST / 2 ? -MOST : least;
    w->most[v->id] = most >= MOST / 2 ? MOST : most;
}

// inst as x and a number from *low to *high. NULL: it is no such sum.
static const struct tir_value *sum_of(const struct walk *w, const struct tir_inst *inst,
                                      int64_t *low, int64_t *high)
{
    if (inst->op != TIR_OP_ADD && inst->op != TIR_OP_SUB)
        return NULL;
    bool first = is_known(w, inst->operands[0]), minus = inst->op == TIR_OP_SUB;
    const struct tir_value *x = inst->operands[!first], *y = inst->operands[first];
    int64_t least, most;
    tir_range_get(w->p->ranges, y, &least, &most);
    if (!is_known(w, x) || is_known(w, y) || (minus && !first) || least < -INT32_MAX ||
        most > INT32_MAX)
        return NULL;
    *low = minus ? -most : least;
    *high = minus ? -least : most;
    return x;
}

static void meet(struct walk *w, const struct tir_value *to, const struct tir_value *x,
                 const struct tir_value *y)
{
    if (is_known(w, x) && is_known(w, y))
        set(w, to, TIR_MIN(w->least[x->id], w->least[y->id]),
            TIR_MAX(w->most[x->id], w->most[y->id]));
}

// The operand that is known, if the other one is not, or else NULL.
static const struct tir_value *one_known(const struct walk *w, const struct tir_inst *inst)
{
    bool first = is_known(w, inst->operands[0]), second = is_known(w, inst->operands[1]);
    return first == second ? NULL : inst->operands[!first];
}

static void follow(struct walk *w, const struct tir_inst *inst)
{
    const struct tir_inst *branch = inst->op == TIR_OP_YIELD ? inst->block->owner : NULL;
    int64_t low, high;
    const struct tir_value *x = sum_of(w, inst, &low, &high);
    bool is_min = inst->op == TIR_OP_MIN, is_max = inst->op == TIR_OP_MAX;
    if (x)
        set(w, inst->results[0], w->least[x->id] + low, w->most[x->id] + high);
    else if ((is_min || is_max) && (x = one_known(w, inst)))
        set(w, inst->results[0], is_min ? -MOST : w->least[x->id], is_max ? MOST : w->most[x->id]);
    else if (inst->op == TIR_OP_WHERE)
        meet(w, inst->results[0], inst->operands[1], inst->operands[2]);
    else if (branch && branch->op == TIR_OP_IF && inst->block == branch->regions[1])
        for (uint32_t i = 0; i < branch->result_count; i++)
            meet(w, branch->results[i], tir_yield_of(branch->regions[0])->operands[i],
                 inst->operands[i]);
}

static void open(struct walk *w, const struct tir_value *v)
{
    if (bitset_insert(&w->way, v->id))
        vec_push(w->p->cx->scratch, &w->open, v);
}

static void go_back(struct walk *w, const struct tir_value *v)
{
    int64_t low, high;
    const struct tir_inst *inst = v->def;
    const struct tir_value *x = inst ? sum_of(w, inst, &low, &high) : NULL;
    if (x) {
        w->up |= high > 0;
        w->down |= low < 0;
        open(w, x);
    } else if (inst && (inst->op == TIR_OP_MIN || inst->op == TIR_OP_MAX)) {
        w->up = w->down = true;
    } else if (inst) {
        bool branches = inst->op == TIR_OP_IF;
        for (uint32_t i = 0; i < 2; i++)
            open(w, branches ? tir_yield_of(inst->regions[i])->operands[v->index]
                             : inst->operands[1 + i]);
    }
}

bool tir_sync_step(const struct sync_program *p, const struct tir_inst *loop, uint32_t i,
                   struct sync_step *out)
{
    struct tir_arena *arena = p->cx->scratch;
    uint32_t count = p->f->value_count;
    const struct tir_block *body = loop->regions[loop->region_count - 1];
    const struct tir_value *arg = body->args[body->arg_count - loop->result_count + i],
                           *next = tir_yield_of(body)->operands[i];
    if (!tir_type_is_scalar(arg->type) || !tir_elem_is_int(arg->type->elem))
        return false;
    struct walk w = {.p = p, .known = bitset_new(arena, count), .way = bitset_new(arena, count)};
    w.least = arena_array(arena, int64_t, count);
    w.most = arena_array(arena, int64_t, count);
    set(&w, arg, 0, 0);
    tir_foreach_inst_in(inst, body)
        follow(&w, inst);
    if (!is_known(&w, next))
        return false;
    open(&w, next);
    while (w.open.len)
        go_back(&w, vec_pop(&w.open));
    int64_t least = w.least[next->id], most = w.most[next->id];
    *out = (struct sync_step){w.way, least, most, least > -MOST, most < MOST, !(w.up && w.down)};
    return true;
}

struct sync_multiple tir_sync_multiple(const struct tir_value *v)
{
    struct sync_multiple m = {v, 1, 0};
    for (int64_t by; m.base->kind == TIR_VALUE_RESULT; m.base = m.base->def->operands[0]) {
        const struct tir_inst *inst = m.base->def;
        if (inst->op == TIR_OP_CAST)
            continue;
        if (inst->operand_count != 2 || !inst->operands[1] || // absent: a response has no more
            !tir_is_const_int(inst->operands[1], &by) || by > MOST_FACTOR || by < -MOST_FACTOR ||
            m.scale > MOST_FACTOR)
            return m;
        if (inst->op == TIR_OP_ADD || inst->op == TIR_OP_SUB)
            m.more += m.scale * (inst->op == TIR_OP_ADD ? by : -by);
        else if (inst->op == TIR_OP_MUL && by > 0)
            m.scale *= by;
        else
            return m;
    }
    return m;
}

bool tir_sync_has_fixed_rounds(const struct tir_inst *loop)
{
    if (loop->op != TIR_OP_FOR || loop->operands[TIR_FOR_STEP]->kind != TIR_VALUE_CONST)
        return false;
    struct sync_multiple begin = tir_sync_multiple(loop->operands[TIR_FOR_BEGIN]),
                         end = tir_sync_multiple(loop->operands[TIR_FOR_END]);
    return begin.base == end.base && begin.scale == end.scale;
}
