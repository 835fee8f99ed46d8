// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on places in tensors that data decides.
//
//     Y[i64(t) * 128 + i64(tid())] = x;      // t is loaded: 128 * t + 0, 1, ... 127
//
// A symbol that is a multiple of another symbol plus a number for each thread keeps these two
// parts. Threads with one t are compared by their numbers, threads with two by the remainders,
// which show that no other thread reaches the elements of a thread. If that does not decide
// (Y[I[n]]), the access is unchecked.

#include "pass/sync_check/sync_check.h"

#define MOST  (INT64_C(1) << 30) // of numbers that are followed
#define SHIFT (INT64_C(1) << 44) // of elements that data decides, so that none is negative

// times * the symbol `of`, and a number of each thread more; times 0: no symbol; of 0: each thread
// has one of its own.
struct form {
    int64_t of, times, number;
    const int64_t *each; // or NULL: `number`
};

// False: it is no number.
static bool form_of(const struct sync_value *v, struct form *out)
{
    *out = (struct form){0};
    if (v->kind == SYNC_INT)
        out->number = v->number;
    else if (v->kind == SYNC_EACH)
        out->each = v->each;
    else if (v->kind == SYNC_SYMBOL && v->times)
        *out = (struct form){v->of, v->times, 0, v->each};
    else if (v->kind == SYNC_SYMBOL)
        *out = (struct form){v->varies == SYNC_SAME ? v->number : 0, 1, 0, NULL};
    return v->kind == SYNC_INT || v->kind == SYNC_EACH || v->kind == SYNC_SYMBOL;
}

static int64_t number_of(const struct form *f, uint32_t i)
{
    return f->each ? f->each[i] : f->number;
}

static uint64_t size_of(int64_t x)
{
    return (uint64_t)(x < 0 ? -x : x);
}

static bool is_small(int64_t x)
{
    return x > -MOST && x < MOST;
}

// x + y * sign, or x * y; what is left are the numbers of threads. False: it is no such form.
static bool combine(enum tir_op op, const struct form *x, const struct form *y, struct form *out)
{
    if (op == TIR_OP_MUL) {
        const struct form *by = x->times ? y : x, *of = x->times ? x : y;
        out->of = of->of;
        out->times = of->times * by->number;
        return !by->times && !by->each && is_small(out->times) && out->times;
    }
    int64_t sign = op == TIR_OP_SUB ? -1 : 1;
    if (!x->times || !y->times || (x->of && x->of == y->of)) {
        out->of = x->times ? x->of : y->of;
        out->times = x->times + sign * y->times;
        return is_small(out->times) && out->times;
    }
    out->times = (int64_t)tir_gcd(size_of(x->times), size_of(y->times));
    uint64_t both =
        tir_sync_mix(tir_sync_mix((uint64_t)x->of, (uint64_t)x->times), (uint64_t)y->of);
    out->of =
        x->of && y->of ? (int64_t)(tir_sync_mix(both, (uint64_t)(sign * y->times)) >> 1 | 1) : 0;
    return true;
}

void tir_sync_follow_symbol(struct sync_run *r, const struct sync_agent *a,
                            const struct tir_inst *inst, struct sync_value *out)
{
    struct form in[2] = {{0}, {0}}, sum;
    bool casts = inst->op == TIR_OP_CAST;
    if (!(casts || inst->op == TIR_OP_ADD || inst->op == TIR_OP_SUB || inst->op == TIR_OP_MUL) ||
        !tir_elem_is_int(inst->results[0]->type->elem) ||
        !tir_elem_is_int(inst->operands[0]->type->elem))
        return;
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct sync_value v = tir_sync_value(r, a, inst->operands[i]);
        if (!form_of(&v, &in[i]))
            return;
    }
    if (!combine(casts ? TIR_OP_ADD : inst->op, &in[0], &in[1], &sum))
        return;
    uint32_t count = a->warps * SYNC_LANES;
    int64_t *each = arena_array(r->arena, int64_t, count);
    r->p->work += count / 4;
    for (uint32_t i = 0; i < count; i++) {
        int64_t m = number_of(&in[0], i), n = number_of(&in[1], i);
        if (!is_small(m) || !is_small(n))
            return;
        each[i] = inst->op == TIR_OP_MUL ? m * n : inst->op == TIR_OP_SUB ? m - n : m + n;
    }
    out->of = sum.of;
    out->times = sum.times;
    out->each = each;
}

// Points. Those of a place that data decides are elements but for what symbols say of them.

static const int64_t NOWHERE = INT64_MIN;

// Adds to each element what index `v` of a dimension gives, but for its symbol. False: that is not
// known.
static bool add_index(struct sync_record *record, const struct form *f, int64_t extent,
                      int64_t stride, int64_t *elements, uint32_t count)
{
    if (!is_small(stride) || !is_small(f->times))
        return false;
    record->modulus =
        (int64_t)tir_gcd((uint64_t)record->modulus, size_of(f->times) * (uint64_t)stride);
    record->base =
        tir_sync_mix(tir_sync_mix(record->base, (uint64_t)f->of), (uint64_t)(f->times * stride));
    for (uint32_t i = 0; i < count; i++) {
        int64_t x = number_of(f, i);
        if (!f->times && (x < 0 || x >= extent))
            elements[i] = NOWHERE;
        else if (elements[i] != NOWHERE)
            elements[i] += x * stride;
        if (elements[i] != NOWHERE && !is_small(elements[i]))
            return false;
    }
    return true;
}

int64_t *tir_sync_places(struct sync_run *r, const struct sync_agent *a,
                         const struct tir_inst *inst, const struct sync_buffer *of,
                         struct sync_record *record)
{
    const struct sync_root *root = &r->p->roots.at[of->root];
    uint32_t count = a->warps * SYNC_LANES;
    int64_t *elements = arena_array(r->arena, int64_t, count), stride = 1;
    bool known = true, same = true;
    for (uint32_t d = of->rank; known && d-- > 0; stride *= TIR_MAX(root->shape[d], 1)) {
        struct sync_value v = tir_sync_value(r, a, tir_ref_indices(inst)[d]);
        struct form f;
        known = form_of(&v, &f) && add_index(record, &f, root->shape[d], stride, elements, count);
        same &= f.of || !f.times;
    }
    if (!known) { // anywhere
        memset(elements, 0, count * sizeof *elements);
        record->modulus = 1;
    }
    record->base = known && same ? record->base | 1 : 0;
    for (uint32_t i = 0; i < count; i++)
        elements[i] = elements[i] == NOWHERE ? -1 : elements[i] + SHIFT;
    return elements;
}

// The points, with remainders for elements.
struct sync_record tir_sync_remainders(struct sync_run *r, const struct sync_record *record,
                                       int64_t modulus)
{
    struct sync_record out = *record;
    int64_t *points = arena_array(r->arena, int64_t, record->point_count + 1);
    for (uint32_t i = 0; i < record->point_count; i++) {
        int64_t element = record->points[i] / SYNC_POINT + (record->modulus ? 0 : SHIFT);
        points[i] = element % modulus * SYNC_POINT + record->points[i] % SYNC_POINT;
    }
    tir_sync_sort_points(points, record->point_count);
    r->p->work += record->point_count;
    out.points = points;
    out.step = (int64_t)tir_gcd((uint64_t)record->step, (uint64_t)modulus);
    return out;
}

bool tir_sync_may_meet(struct sync_run *r, const struct sync_root *root,
                       const struct sync_record *old, const struct sync_record *now,
                       enum sync_pairs pairs)
{
    int64_t modulus = (int64_t)tir_gcd((uint64_t)old->modulus, (uint64_t)now->modulus);
    if (!modulus || !old->points || !now->points)
        return false;
    const struct sync_record a = tir_sync_remainders(r, old, modulus);
    const struct sync_record b = tir_sync_remainders(r, now, modulus);
    return tir_sync_points_meet(r, root, &a, &b, pairs);
}
