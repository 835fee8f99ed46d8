// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on values: integers and conditions are computed for every thread of an agent, and data
// is a symbol. Equal computations on equal symbols give equal symbols, so two roles that ask the
// same question take the same way.

#include "pass/sync_check/sync_check.h"

static struct sync_value int_of(int64_t number)
{
    return (struct sync_value){.kind = SYNC_INT, .number = number};
}

struct sync_value tir_sync_value(const struct sync_run *r, const struct sync_agent *a,
                                 const struct tir_value *v)
{
    (void)r;
    if (!v) // an optional operand that is left out: an offset of nothing, a condition unasked
        return int_of(0);
    if (v->kind != TIR_VALUE_CONST)
        return a->slots[v->id];
    if (v->type->rank)
        return (struct sync_value){.kind = SYNC_TILE, .made = a->await_time};
    if (tir_elem_is_float(v->type->elem))
        return sync_symbol(tir_sync_mix(TIR_OP_COUNT, (uint64_t)v->id), SYNC_SAME);
    return int_of(v->constant.i);
}

struct sync_value tir_sync_each(const struct sync_agent *a, const int64_t *each)
{
    for (uint32_t i = 1; i < a->warps * SYNC_LANES; i++)
        if (each[i] != each[0])
            return (struct sync_value){.kind = SYNC_EACH, .each = each};
    return int_of(each[0]);
}

int64_t tir_sync_decide(struct sync_run *r, const struct sync_value *v, int64_t below)
{
    if (v->kind == SYNC_INT)
        return v->number < 0 ? 0 : TIR_MIN(v->number, below - 1);
    r->decided = true;
    if (v->answered && below == 2)
        return v->yes;
    if (below == 2)
        return tir_sync_draw(r, v->number);
    if (r->seed < 2 || r->seed == SYNC_HELD)
        return r->seed ? below - 1 : 0;
    return (int64_t)(tir_sync_mix((uint64_t)v->number, r->seed) >> 8) % below;
}

static int64_t thread_number(const struct sync_agent *a, enum tir_op op, uint32_t i)
{
    uint32_t tid = a->first_warp * SYNC_LANES + i;
    switch (op) {
    case TIR_OP_TID:
        return tid;
    case TIR_OP_WARPID:
        return tid / SYNC_LANES;
    case TIR_OP_WGID:
        return tid / (4 * SYNC_LANES);
    case TIR_OP_TID_IN_WG:
        return tid % (4 * SYNC_LANES);
    case TIR_OP_ELECT:
        return tid % SYNC_LANES == 0;
    default:
        return tid % SYNC_LANES;
    }
}

static struct sync_value thread_value(struct sync_run *r, const struct sync_agent *a,
                                      enum tir_op op)
{
    uint32_t count = a->warps * SYNC_LANES;
    int64_t *each = arena_array(r->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        each[i] = thread_number(a, op, i);
    struct sync_value v = tir_sync_each(a, each);
    v.elected = op == TIR_OP_ELECT;
    return v;
}

static int64_t rank_along(const struct sync_run *r, const struct sync_agent *a, int64_t axis)
{
    const uint32_t *cluster = r->p->f->cluster;
    int64_t rank = a->cta;
    for (int64_t i = 0; i < axis && i < 3; i++)
        rank /= TIR_MAX(cluster[i], 1);
    return axis < 3 ? rank % TIR_MAX(cluster[axis], 1) : 0;
}

// Among whom does a value differ?
static enum sync_spread spread_of(const struct sync_agent *a, const struct sync_value *v)
{
    if (v->kind != SYNC_EACH)
        return v->kind == SYNC_SYMBOL ? v->varies : SYNC_SAME;
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++)
        if (v->each[i] != v->each[i / SYNC_LANES * SYNC_LANES])
            return SYNC_EVERY_LANE;
    return SYNC_WARPS;
}

// One cluster, or one CTA, is replayed: the one of the setting.
static int64_t place_along(const struct sync_run *r, const struct sync_agent *a, enum tir_op op,
                           int64_t axis)
{
    int64_t share = TIR_MAX(r->p->f->cluster[axis], 1);
    if (op == TIR_OP_CTA_IN_CLUSTER) // in every setting, and before there is one
        return rank_along(r, a, axis);
    if (op == TIR_OP_CLUSTER_SIZE)
        return share;
    int64_t cluster = r->setting->cta[axis] / share, ctas = r->setting->ctas[axis];
    switch (op) {
    case TIR_OP_CTA_ID:
        return cluster * share + rank_along(r, a, axis);
    case TIR_OP_CLUSTER_ID:
        return cluster;
    case TIR_OP_NUM_CTAS:
        return TIR_MAX(ctas, share);
    default:
        return TIR_MAX(ctas / share, 1);
    }
}

// One elementwise operation; x: its operands, in one thread.
static struct sync_value apply(const struct sync_run *r, const struct sync_agent *a,
                               const struct tir_inst *inst, uint32_t lane, bool *known)
{
    union tir_number in[3], out;
    for (uint32_t i = 0; i < inst->operand_count && i < 3; i++) {
        struct sync_value v = tir_sync_value(r, a, inst->operands[i]);
        in[i].i = v.kind == SYNC_EACH ? v.each[lane]
                  : v.counts          ? v.count
                  : v.answered        ? v.yes
                                      : v.number;
    }
    const struct tir_value *to = inst->results[0];
    // where: the elements are the second operand's
    enum tir_elem elem = inst->operands[inst->operand_count - 1]->type->elem;
    *known = true;
    if (inst->op == TIR_OP_CAST || inst->op == TIR_OP_BITCAST)
        return int_of(tir_number_cast(to->type->elem, elem, in[0]).i);
    if (!tir_number_apply(inst->op, elem, in, &out))
        *known = false;
    return int_of(out.i);
}

// One that is the same in all threads: a number, or, beside one that differs, an answer about data.
static bool is_known(const struct sync_value *v, const struct sync_value *other)
{
    return v->kind == SYNC_INT || (v->kind == SYNC_SYMBOL && v->answered &&
                                   v->varies == SYNC_SAME && other->kind == SYNC_EACH);
}

// A condition that is false everywhere, or does not restrict the other one, needs no arithmetic.
static bool short_cut(const struct tir_inst *inst, const struct sync_value *x,
                      const struct sync_value *y, struct sync_value *out)
{
    if ((inst->op != TIR_OP_AND && inst->op != TIR_OP_OR) ||
        inst->results[0]->type->elem != TIR_BOOL)
        return false;
    const struct sync_value *known = is_known(x, y) ? x : y;
    const struct sync_value *other = known == x ? y : x;
    if (!is_known(known, other))
        return false;
    bool yes = known->kind == SYNC_INT ? known->number != 0 : known->yes;
    *out = (inst->op == TIR_OP_AND) == yes ? *other : int_of(yes);
    return true;
}

bool tir_sync_arithmetic(struct sync_agent *a, const struct tir_inst *inst)
{
    union tir_number in[3], x;
    enum tir_elem elem = TIR_BOOL;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        elem = v->type->elem;
        if (v->kind != TIR_VALUE_CONST) {
            if (a->slots[v->id].kind != SYNC_INT)
                return false;
            in[i].i = a->slots[v->id].number;
        } else if (v->type->rank || tir_elem_is_float(elem)) {
            return false;
        } else {
            in[i].i = v->constant.i;
        }
    }
    if (inst->op == TIR_OP_CAST)
        x = tir_number_cast(inst->results[0]->type->elem, elem, in[0]);
    else if (!tir_number_apply(inst->op, elem, in, &x))
        return false;
    a->slots[inst->results[0]->id] = int_of(x.i);
    return true;
}

// What operands that count give: a number too, or an answer. False: it is not known.
static bool count(const struct sync_run *r, const struct sync_agent *a, const struct tir_inst *inst,
                  struct sync_value *out)
{
    bool known;
    int64_t number = apply(r, a, inst, 0, &known).number;
    out->answered = known && inst->results[0]->type->elem == TIR_BOOL;
    out->yes = number != 0;
    out->counts = known && !out->answered;
    out->count = number;
    return known;
}

// where(c, 64, 32), with c unknown but the same in all threads, is one of the two, as of an if.
static bool choose(struct sync_run *r, const struct sync_agent *a, const struct tir_inst *inst,
                   struct sync_value *out)
{
    if (inst->op != TIR_OP_WHERE)
        return false;
    struct sync_value cond = tir_sync_value(r, a, inst->operands[0]);
    struct sync_value x = tir_sync_value(r, a, inst->operands[1]);
    struct sync_value y = tir_sync_value(r, a, inst->operands[2]);
    bool numbers =
        (x.kind == SYNC_INT || x.kind == SYNC_EACH) && (y.kind == SYNC_INT || y.kind == SYNC_EACH);
    if (cond.kind != SYNC_SYMBOL || cond.varies != SYNC_SAME || !numbers)
        return false;
    *out = tir_sync_decide(r, &cond, 2) ? x : y;
    return true;
}

// What a group of warps computes of its tiles is its own.
static uint64_t group_key(const struct sync_agent *a)
{
    return a->within.scope ? sync_crew_key(a) : 0;
}

static struct sync_value elementwise(struct sync_run *r, struct sync_agent *a,
                                     const struct tir_inst *inst)
{
    const enum tir_elem elem = inst->results[0]->type->elem;
    bool each = false, symbolic = tir_elem_is_float(elem);
    bool counts = !symbolic;
    bool elected = false;
    enum sync_spread varies = SYNC_SAME;
    uint64_t hash = tir_sync_mix(inst->op, elem);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct sync_value v = tir_sync_value(r, a, inst->operands[i]);
        each |= v.kind == SYNC_EACH;
        symbolic |= v.kind != SYNC_EACH && v.kind != SYNC_INT;
        counts &= v.kind == SYNC_INT || v.counts || v.answered;
        varies = TIR_MAX(varies, spread_of(a, &v));
        elected |= v.elected;
        hash = tir_sync_mix(hash, v.kind == SYNC_EACH ? inst->id : (uint64_t)v.number);
    }
    struct sync_value out;
    if (inst->operand_count == 2) {
        struct sync_value x = tir_sync_value(r, a, inst->operands[0]);
        struct sync_value y = tir_sync_value(r, a, inst->operands[1]);
        if (short_cut(inst, &x, &y, &out))
            return out;
    }
    if (symbolic && choose(r, a, inst, &out))
        return out;
    if (symbolic) {
        out = sync_symbol(hash, varies);
        tir_sync_follow_symbol(r, a, inst, &out);
        if (!counts || !count(r, a, inst, &out))
            tir_sync_holds(r, a, inst, &out);
        return out;
    }
    bool known;
    if (!each) {
        out = apply(r, a, inst, 0, &known);
        return known ? out : sync_symbol(hash, varies);
    }
    uint32_t count = a->warps * SYNC_LANES;
    int64_t *numbers = arena_array(r->arena, int64_t, count);
    r->p->work += count / 4;
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = apply(r, a, inst, i, &known).number;
        if (!known)
            return sync_symbol(hash, varies);
    }
    out = tir_sync_each(a, numbers);
    out.elected = elected;
    return out;
}

// The number that a value from data stands for: a loaded one, or a float's integer. Roles that walk
// the same loop may ask about its bounds in different ways, as 0 < n and n - 64, so that one draw
// for each question would not do. Tables of offsets ascend, one faster than another, and a bound is
// not always a multiple of the step. A loop whose first rounds stand before it (schedule) has fewer
// than its bounds say. As an answer it is none or the most, but for seeds that mix answers.
static int64_t count_of(struct sync_run *r, const struct tir_value *table,
                        const struct tir_value *to, const struct sync_value *v, int64_t index)
{
    enum { BEFORE = 2, TABLE = 4 };
    const int64_t most = r->most + BEFORE, unit = r->p->units[to->id];
    const int64_t before = unit * most * (int64_t)((uint64_t)index % TABLE); // in the table
    const uint64_t bits = tir_sync_mix((uint64_t)v->number, r->seed) >> 40;
    const bool yes = tir_sync_draw(r, v->number) || r->seed == SYNC_DENIED; // comparisons are
    r->decided = true;
    if (r->seed < 2 || r->seed >= SYNC_DENIED)
        return yes ? unit * most + before : 0;
    const int64_t slope = table ? (int64_t)((tir_sync_mix(table->id, r->seed) >> 40) % 3) : 1;
    const int64_t count = unit * tir_sync_decide(r, v, most + 1) + slope * before;
    const bool whole = !count || (bits & 1);
    return whole ? count : count - (int64_t)((bits >> 1) % (uint64_t)unit);
}

// An integer that bounds are computed from, and of which no more is known, counts.
static struct sync_value counted(struct sync_run *r, const struct tir_value *to,
                                 struct sync_value x)
{
    bool open = x.kind == SYNC_SYMBOL && x.varies == SYNC_SAME && !x.counts && !x.answered;
    if (open && tir_elem_is_int(to->type->elem) && bitset_has(&r->p->counts, to->id)) {
        const uint64_t key = tir_sync_rounded_key(r->p, to);
        x.counts = true;
        if (!key || !tir_sync_given(r->setting, key, &x.count))
            x.count = count_of(r, NULL, to, &x, 0);
    }
    return x;
}

static struct sync_value loaded(struct sync_run *r, const struct sync_agent *a,
                                const struct tir_inst *inst)
{
    struct sync_value kept;
    if (tir_sync_kept(r, a, inst, &kept))
        return kept;
    struct tir_value *base = tir_buffer_root(tir_ref_base(inst));
    uint64_t hash = tir_sync_first_key(inst);
    enum sync_spread varies = SYNC_SAME;
    int64_t index = 0;
    for (uint32_t d = 0; d < tir_ref_base(inst)->type->rank; d++) {
        struct sync_value v = tir_sync_value(r, a, tir_ref_indices(inst)[d]);
        varies = TIR_MAX(varies, spread_of(a, &v));
        index = v.kind == SYNC_INT ? v.number : v.counts ? v.count : 0;
        hash = tir_sync_mix(hash, v.kind == SYNC_EACH ? inst->id : (uint64_t)v.number);
    }
    if (base->type->space == TIR_SPACE_LOCAL)
        varies = SYNC_GUESS;
    if (base->type->space != TIR_SPACE_GLOBAL)
        hash = tir_sync_mix(tir_sync_mix(hash, inst->id), a->visits[inst->id]);
    struct sync_value out = sync_symbol(hash, varies);
    out.counts = varies == SYNC_SAME && tir_sync_is_count(r->p, inst);
    if (out.counts && !tir_sync_given(r->setting, hash, &out.count))
        out.count = count_of(r, base, inst->results[0], &out, index);
    return out;
}

// Values that a warp's lanes exchange.
static struct sync_value told(struct sync_run *r, const struct sync_agent *a,
                              const struct tir_inst *inst)
{
    enum sync_spread varies = a->warps > 1 ? SYNC_WARPS : SYNC_SAME;
    if (inst->op == TIR_OP_SHUFFLE) {
        struct sync_value from = tir_sync_value(r, a, inst->operands[1]);
        bool one = tir_attr_word(inst, TIR_ATTR_mode, TIR_WORD_NONE) == TIR_WORD_mode_idx;
        if (!one || spread_of(a, &from) > SYNC_WARPS)
            varies = SYNC_GUESS;
        struct sync_value x = tir_sync_value(r, a, inst->operands[0]);
        if (varies != SYNC_GUESS && x.kind == SYNC_INT)
            return x; // all lanes have it
        if (varies != SYNC_GUESS && x.kind == SYNC_SYMBOL && a->warps == 1) {
            x.times = 0;
            x.varies = SYNC_SAME; // one lane's, which the others may have stored as well
            return x;
        }
    }
    return sync_symbol(tir_sync_mix(tir_sync_mix(inst->id, a->id), a->visits[inst->id]), varies);
}

// The group of a scope that the agent's warps are in. An agent has warps of one group, or, of a
// role that is not the scope's, none.
static uint32_t group_of(const struct sync_agent *a, const struct tir_crew *crew)
{
    const uint32_t at = a->first_warp >= crew->first ? a->first_warp - crew->first : 0;
    return TIR_MIN(at / crew->warps, crew->groups - 1);
}

static struct sync_buffer whole_buffer(const struct sync_run *r, const struct sync_agent *a,
                                       const struct tir_value *alloc)
{
    struct sync_buffer b = {.cta = a->cta, .rank = alloc->type->rank, .exact = true};
    const struct tir_crew crew = tir_crew_of(r->p->f, alloc->def);
    const bool each = tir_attr_find(alloc->def, TIR_ATTR_apart);
    const uint32_t group = each ? group_of(a, &crew) : 0;
    while (r->p->roots.at[b.root].alloc != alloc || r->p->roots.at[b.root].group != group)
        b.root++;
    for (uint32_t d = 0; d < b.rank; d++) {
        b.dim[d] = (uint8_t)d;
        b.box.size[d] = alloc->type->shape[d];
    }
    return b;
}

static bool in_cta(const struct sync_run *r, const struct sync_agent *a,
                   const struct tir_value *which, struct sync_buffer *b)
{
    struct sync_value cta = tir_sync_value(r, a, which);
    if (cta.kind != SYNC_INT || cta.number < 0 || cta.number >= r->p->ctas)
        return false;
    b->cta = (uint32_t)cta.number;
    return true;
}

static struct sync_value buffer_value(const struct sync_run *r, struct sync_agent *a,
                                      const struct tir_inst *inst)
{
    const struct tir_value *result = inst->results[0];
    struct sync_buffer *b = &a->buffers[r->p->buffer_of[result->id]];
    struct sync_value out = {.kind = SYNC_BUFFER, .buffer = b};
    if (tir_is_allocated(inst) || inst->op == TIR_OP_TMEM_BUFFER) {
        *b = whole_buffer(r, a, result);
        return out;
    }
    struct sync_value of =
        tir_sync_value(r, a, inst->op == TIR_OP_VIEW ? tir_ref_base(inst) : inst->operands[0]);
    if (of.kind != SYNC_BUFFER)
        return sync_symbol(inst->id, SYNC_SAME);
    if (inst->op == TIR_OP_VIEW) {
        tir_sync_view(a, inst, of.buffer, b);
        return out;
    }
    *b = *of.buffer;
    if (inst->op == TIR_OP_PERMUTE) {
        const struct tir_attr *order = tir_attr_find(inst, TIR_ATTR_permutation);
        for (uint32_t d = 0; d < b->rank; d++)
            b->dim[d] = of.buffer->dim[order->list[d]];
    } else if (inst->op == TIR_OP_RESHAPE) {
        b->reshaped = true;
        b->rank = result->type->rank;
        memset(b->dim, 0, sizeof b->dim);
    } else if (!in_cta(r, a, inst->operands[1], b)) {
        return sync_symbol(inst->id, SYNC_SAME);
    }
    return out;
}

bool tir_sync_evaluate_view(const struct sync_run *r, struct sync_agent *a,
                            const struct tir_inst *inst)
{
    const struct tir_value *result = inst->results[0];
    const struct sync_value *of = &a->slots[tir_ref_base(inst)->id];
    if (of->kind != SYNC_BUFFER)
        return false;
    struct sync_buffer *b = &a->buffers[r->p->buffer_of[result->id]];
    tir_sync_view(a, inst, of->buffer, b);
    a->slots[result->id] = (struct sync_value){.kind = SYNC_BUFFER, .buffer = b};
    return true;
}

static struct sync_value scalar_value(struct sync_run *r, struct sync_agent *a,
                                      const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_TID:
    case TIR_OP_LANEID:
    case TIR_OP_WARPID:
    case TIR_OP_WGID:
    case TIR_OP_TID_IN_WG:
    case TIR_OP_ELECT:
        return thread_value(r, a, inst->op);
    case TIR_OP_NUM_THREADS:
        return int_of(r->p->threads);
    case TIR_OP_CTA_RANK:
        return int_of(a->cta);
    case TIR_OP_CTA_ID:
    case TIR_OP_CTA_IN_CLUSTER:
    case TIR_OP_CLUSTER_SIZE:
    case TIR_OP_CLUSTER_ID:
    case TIR_OP_NUM_CLUSTERS:
    case TIR_OP_NUM_CTAS:
        return int_of(place_along(r, a, inst->op, tir_attr_int(inst, TIR_ATTR_axis, 0) % 3));
    case TIR_OP_ALIGNMENT:
        return int_of(16);
    case TIR_OP_LOAD:
        return loaded(r, a, inst);
    case TIR_OP_SHUFFLE:
    case TIR_OP_VOTE:
        return told(r, a, inst);
    case TIR_OP_IS_CANCELED:
    case TIR_OP_FIRST_CTAID:
        return tir_sync_query(r, a, inst);
    case TIR_OP_TEST_WAIT: // by the time, so as data decides
        return sync_symbol(tir_sync_mix(tir_sync_mix(inst->id, a->id), a->visits[inst->id]),
                           SYNC_EVERY_LANE);
    case TIR_OP_ATOMIC: // each thread's own, or done by one of them for all
        if (r->p->f->grid_count || tir_attr_int(inst, TIR_ATTR_by_thread, 0))
            return sync_symbol(tir_sync_mix(tir_sync_mix(inst->id, a->id), a->visits[inst->id]),
                               SYNC_EVERY_LANE);
        return sync_symbol(tir_sync_mix(inst->id, a->visits[inst->id]), SYNC_SAME);
    default:
        if (tir_has_trait(inst, TIR_PURE) && tir_has_tile(inst))
            return sync_symbol(
                tir_sync_mix(tir_sync_of_tiles(r, a, inst->results[0]), group_key(a)), SYNC_SAME);
        if (tir_has_trait(inst, TIR_PURE) && inst->operand_count && inst->operand_count <= 3)
            return elementwise(r, a, inst);
        return sync_symbol(tir_sync_mix(tir_sync_mix(inst->id, a->visits[inst->id]), group_key(a)),
                           tir_has_tile(inst) ? SYNC_SAME : SYNC_GUESS);
    }
}

void tir_sync_evaluate(struct sync_run *r, struct sync_agent *a, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *t = inst->results[i]->type;
        struct sync_value *slot = &a->slots[inst->results[i]->id];
        if (t->space == TIR_SPACE_LOCAL) // each thread's own
            *slot = sync_symbol(inst->id, SYNC_SAME);
        else if (tir_type_is_buffer(t))
            *slot = buffer_value(r, a, inst);
        else if (t->rank)
            *slot = (struct sync_value){.kind = SYNC_TILE, .made = a->now};
        else
            *slot = counted(r, inst->results[i], scalar_value(r, a, inst));
    }
}
