// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See lattice.h: what products with a common factor say about each other.
//
//     b == s * q + r && 0 <= r && r < s && b == s * c      s * (c - q) < s, so that c == q
//     t >= q                                               s * t >= s * q
//
// Both are about s * x - s * y, where s * y may be left out: an inequality between the two and s
// holds without s, and one between x and y holds with s. Such inequalities are added to the
// problem, and so are the equations that two opposite ones make.

#include "pass/sync_check/lattice.h"

#include <stdlib.h>

#include "base/base.h"

enum { ROOM = 24 };                // relations that are left to others
#define LARGEST (INT64_C(1) << 19) // of a coefficient

// A form as it is on the lattice: at + the sum of by[c] * (steps along column c).
struct image {
    int64_t at, by[SYNC_UNKNOWNS];
    uint64_t columns; // that move it, as bits
    bool small;       // its numbers are, so that what is computed from them does not overflow
};

// A difference of products with the common factor s: s * x, of unknowns.
struct shared {
    struct sync_linear product, rest, factor;
    struct image of_product, of_rest, of_factor;
    int64_t low, high; // of s
};

struct factoring {
    struct sync_problem *q;
    const struct lattice *l;
    const struct sync_range *b;
    struct image *images, *factors; // of relations; of the factors of products
};

static struct image image_of(const struct factoring *f, const struct sync_linear *form)
{
    const struct lattice *l = f->l;
    struct image image = {.at = form->constant};
    for (uint32_t i = 0; i < f->q->count; i++) {
        if (!form->by[i])
            continue;
        image.at += form->by[i] * l->at[i];
        for (uint32_t c = 0; c < l->columns; c++)
            image.by[c] += form->by[i] * l->steps[c][i];
    }
    image.small = llabs(image.at) <= SYNC_INFINITY;
    for (uint32_t c = 0; c < l->columns; c++) {
        image.columns |= (uint64_t)(image.by[c] != 0) << c;
        image.small &= llabs(image.by[c]) <= LARGEST;
    }
    return image;
}

// Is `times` * r, times > 0, the sum of of_x * x, of_y * y and a constant `more`? y may be NULL.
static bool is_sum(const struct factoring *f, const struct image *r, const struct image *x,
                   const struct image *y, int64_t *times, int64_t *of_x, int64_t *of_y,
                   int64_t *more)
{
    uint32_t i = 0, k = 0;
    uint64_t first = y ? y->columns : x->columns, all = first | x->columns;
    if (!first || !r->columns || r->columns & ~all || !r->small)
        return false;
    while (!(first >> i & 1))
        i++;
    *times = y ? 0 : x->by[i];
    for (k = 0; y && k < f->l->columns && !*times; k++)
        *times = x->by[i] * y->by[k] - x->by[k] * y->by[i];
    if (!*times)
        return false;
    k -= y != NULL;
    *of_x = y ? r->by[i] * y->by[k] - r->by[k] * y->by[i] : r->by[i];
    *of_y = y ? x->by[i] * r->by[k] - x->by[k] * r->by[i] : 0;
    int64_t common = (int64_t)tir_gcd(tir_gcd((uint64_t)llabs(*of_x), (uint64_t)llabs(*of_y)),
                                      (uint64_t)llabs(*times));
    common = *times < 0 ? -common : common;
    *times /= common;
    *of_x /= common;
    *of_y /= common;
    if (!*of_x || *times > LARGEST || llabs(*of_x) > LARGEST || llabs(*of_y) > LARGEST)
        return false;
    for (uint32_t c = 0; c < f->l->columns; c++)
        if (*times * r->by[c] != *of_x * x->by[c] + (y ? *of_y * y->by[c] : 0))
            return false;
    *more = *times * r->at - *of_x * x->at - (y ? *of_y * y->at : 0);
    return true;
}

// Whether a says what b does, or more.
static bool implies(const struct factoring *f, const struct image *a, const struct image *b)
{
    int64_t times, of_b, none, more;
    return is_sum(f, a, b, NULL, &times, &of_b, &none, &more) && of_b > 0 && more <= 0;
}

// Adds what was found, unless it is known or too large to be of use.
static void add(struct factoring *f, const struct sync_linear *form, bool equal)
{
    struct sync_problem *q = f->q;
    struct image image = image_of(f, form);
    if (q->too_large || q->relation_count + ROOM >= SYNC_RELATIONS || !image.small) {
        q->too_large = false;
        return;
    }
    if (!equal && !image.columns && image.at >= 0)
        return;
    for (uint32_t i = 0; i < q->relation_count && !equal; i++)
        if (!q->relations[i].equal && implies(f, &f->images[i], &image))
            return;
    f->images[q->relation_count] = image;
    tir_sync_relate(q, form, equal);
}

// x >= 0 if it holds for `of` / s, s * (of_rest * rest + by) >= least.
static void without_factor(struct factoring *f, const struct shared *s, const struct image *r)
{
    int64_t times, of_rest, by, more;
    if (s->low < 1 || !is_sum(f, r, &s->of_product, &s->of_factor, &times, &of_rest, &by, &more))
        return;
    int64_t least = -more, over = least > 0 ? s->high : s->low;
    struct sync_linear form = tir_sync_constant(by + tir_sync_floor_div(-least, over));
    form = tir_sync_add(f->q, &form, &s->rest, of_rest);
    add(f, &form, false);
}

// of_rest * rest + by >= 0, times s.
static void with_factor(struct factoring *f, const struct shared *s, const struct image *r)
{
    int64_t times, of_rest, none, by;
    if (s->low < 0 || !is_sum(f, r, &s->of_rest, NULL, &times, &of_rest, &none, &by))
        return;
    struct sync_linear form = tir_sync_constant(0);
    form = tir_sync_add(f->q, &form, &s->product, of_rest);
    form = tir_sync_add(f->q, &form, &s->factor, by);
    add(f, &form, false);
}

// What bounds of the rest say of the product.
static void with_bounds(struct factoring *f, const struct shared *s)
{
    int64_t bounds[2];
    tir_sync_bounds_within(f->q, f->b, &s->rest, &bounds[0], &bounds[1]);
    for (uint32_t i = 0; i < 2 && s->low >= 0; i++) {
        if (llabs(bounds[i]) > LARGEST)
            continue;
        struct sync_linear form = tir_sync_constant(0);
        form = tir_sync_add(f->q, &form, &s->product, i ? -1 : 1);
        form = tir_sync_add(f->q, &form, &s->factor, i ? bounds[i] : -bounds[i]);
        add(f, &form, false);
    }
}

static void relate(struct factoring *f, struct shared *s)
{
    uint32_t count = f->q->relation_count;
    s->of_product = image_of(f, &s->product);
    s->of_rest = image_of(f, &s->rest);
    if (f->q->too_large || !s->of_product.small || !s->of_rest.small) {
        f->q->too_large = false;
        return;
    }
    with_bounds(f, s);
    for (uint32_t i = 0; i < count; i++)
        if (!f->q->relations[i].equal) {
            without_factor(f, s, &f->images[i]);
            with_factor(f, s, &f->images[i]);
        }
}

// x >= 0 and -x >= 0 are x == 0.
static void find_equations(struct factoring *f)
{
    struct sync_problem *q = f->q;
    uint32_t count = q->relation_count;
    int64_t times, by, none, more;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!q->relations[i].equal && !q->relations[k].equal && f->images[k].small &&
                is_sum(f, &f->images[i], &f->images[k], NULL, &times, &by, &none, &more) &&
                by < 0 && !more)
                add(f, &q->relations[i].form, true);
}

void tir_sync_share_factors(struct sync_problem *q, struct tir_arena *arena,
                            const struct lattice *l, const struct sync_range *b)
{
    struct factoring f = {q, l, b, arena_array(arena, struct image, SYNC_RELATIONS),
                          arena_array(arena, struct image, 2 * SYNC_PRODUCTS)};
    const struct sync_linear none = tir_sync_constant(0);
    for (uint32_t i = 0; i < q->relation_count; i++)
        f.images[i] = image_of(&f, &q->relations[i].form);
    for (uint32_t i = 0; i < 2 * q->product_count; i++)
        f.factors[i] = image_of(&f, &q->products[i / 2].factors[i % 2]);
    for (uint32_t i = 0; i < 2 * q->product_count; i++) {
        const struct sync_product *p = &q->products[i / 2];
        struct sync_linear product = tir_sync_single(p->unknown), rest = p->factors[!(i % 2)];
        struct shared s = {.factor = p->factors[i % 2]};
        s.of_factor = f.factors[i];
        tir_sync_bounds_within(q, b, &s.factor, &s.low, &s.high);
        if (s.low < 0 || !s.of_factor.small || !s.of_factor.columns)
            continue;
        s.product = tir_sync_add(q, &none, &product, 1);
        s.rest = tir_sync_add(q, &none, &rest, 1);
        relate(&f, &s);
        for (uint32_t k = i / 2 * 2 + 2; k < 2 * q->product_count; k++) {
            const struct sync_product *other = &q->products[k / 2];
            if (f.factors[k].at != s.of_factor.at ||
                memcmp(f.factors[k].by, s.of_factor.by, sizeof s.of_factor.by) != 0)
                continue;
            struct sync_linear subtracted = tir_sync_single(other->unknown);
            s.product = tir_sync_add(q, &product, &subtracted, -1);
            s.rest = tir_sync_add(q, &rest, &other->factors[!(k % 2)], -1);
            relate(&f, &s);
        }
    }
    find_equations(&f);
}
