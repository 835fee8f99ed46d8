// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See solve.h: a problem's unknowns, relations and products.

#include "base/base.h"
#include "pass/sync_check/lattice.h"

void tir_sync_clear(struct sync_problem *q)
{
    q->count = q->relation_count = q->product_count = 0;
    q->range_count = q->range_relations = q->range_products = 0;
    q->too_large = q->is_empty = false;
}

uint32_t tir_sync_unknown(struct sync_problem *q, int64_t low, int64_t high, int64_t wanted)
{
    if (q->count == SYNC_UNKNOWNS) {
        q->too_large = true;
        return q->count - 1;
    }
    q->unknowns[q->count] = (struct sync_unknown){low, high, wanted};
    return q->count++;
}

struct sync_linear tir_sync_constant(int64_t x)
{
    return (struct sync_linear){.constant = x};
}

struct sync_linear tir_sync_single(uint32_t unknown)
{
    struct sync_linear form = {0};
    form.by[unknown] = 1;
    return form;
}

int64_t tir_sync_checked(struct sync_problem *q, int64_t x, int64_t most)
{
    if (x > most || x < -most)
        q->too_large = true;
    return q->too_large ? 0 : x;
}

struct sync_linear tir_sync_add(struct sync_problem *q, const struct sync_linear *a,
                                const struct sync_linear *b, int64_t times)
{
    struct sync_linear sum = {0};
    times = tir_sync_checked(q, times, SYNC_LARGEST);
    sum.constant = tir_sync_checked(
        q, a->constant + tir_sync_checked(q, b->constant, SYNC_INFINITY) * times, SYNC_INFINITY);
    for (uint32_t i = 0; i < q->count; i++)
        sum.by[i] = tir_sync_checked(q, a->by[i] + b->by[i] * times, SYNC_LARGEST);
    return sum;
}

bool tir_sync_is_constant(const struct sync_problem *q, const struct sync_linear *a)
{
    for (uint32_t i = 0; i < q->count; i++)
        if (a->by[i])
            return false;
    return true;
}

uint64_t tir_sync_unknowns_of(const struct sync_problem *q, const struct sync_linear *form)
{
    uint64_t of = 0;
    for (uint32_t i = 0; i < q->count; i++)
        of |= (uint64_t)(form->by[i] != 0) << i;
    return of;
}

// Takes the inequality as another one that has the same unknowns, if it says more.
static bool is_related(struct sync_problem *q, const struct sync_linear *form)
{
    for (uint32_t i = 0; i < q->relation_count; i++) {
        struct sync_linear *old = &q->relations[i].form;
        if (q->relations[i].equal || memcmp(old->by, form->by, sizeof old->by) != 0)
            continue;
        if (form->constant < old->constant) {
            old->constant = form->constant;
            q->range_relations = TIR_MIN(q->range_relations, i); // to narrow again
        }
        return true;
    }
    return false;
}

void tir_sync_relate(struct sync_problem *q, const struct sync_linear *form, bool equal)
{
    if (!equal && is_related(q, form))
        return;
    if (q->relation_count == SYNC_RELATIONS) {
        q->too_large = true;
        return;
    }
    q->relations[q->relation_count].form = *form;
    q->relations[q->relation_count].of = tir_sync_unknowns_of(q, form);
    q->relations[q->relation_count++].equal = equal;
}

int64_t tir_sync_at(const struct sync_problem *q, const struct sync_linear *form,
                    const int64_t *numbers)
{
    int64_t sum = form->constant;
    for (uint32_t i = 0; i < q->count; i++)
        sum += form->by[i] * numbers[i];
    return sum;
}

bool tir_sync_is_factor(const struct sync_problem *q, uint32_t unknown)
{
    for (uint32_t i = 0; i < q->product_count; i++)
        if (q->products[i].factors[0].by[unknown] || q->products[i].factors[1].by[unknown])
            return true;
    return false;
}

struct sync_product tir_sync_product_of(const struct sync_problem *q, const struct sync_linear *x,
                                        const struct sync_linear *y, uint32_t unknown)
{
    return (struct sync_product){
        {*x, *y}, {tir_sync_unknowns_of(q, x), tir_sync_unknowns_of(q, y)}, unknown};
}

struct sync_linear tir_sync_product(struct sync_problem *q, const struct sync_linear *x,
                                    const struct sync_linear *y)
{
    for (uint32_t i = 0; i < q->product_count; i++) {
        const struct sync_linear *of = q->products[i].factors;
        for (uint32_t k = 0; k < 2; k++)
            if (!memcmp(&of[k], x, sizeof *x) && !memcmp(&of[!k], y, sizeof *y))
                return tir_sync_single(q->products[i].unknown);
    }
    if (q->product_count == SYNC_PRODUCTS) {
        q->too_large = true;
        return tir_sync_constant(0);
    }
    uint32_t unknown = tir_sync_unknown(q, -SYNC_INFINITY, SYNC_INFINITY, 0);
    q->products[q->product_count++] = tir_sync_product_of(q, x, y, unknown);
    return tir_sync_single(unknown);
}
