// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of the standard library's functions: order, the place of the largest, parts, limits.
#include "rules.h"

#define MOST_SORTED 16 // elements along the axis: 10 exchanges of all elements

static bool is_ordered(enum tir_elem elem)
{
    return is_int(elem) || elem == TIR_F32 || elem == TIR_F64 || elem == TIR_F16 ||
           elem == TIR_BF16;
}

bool fits_sorted(struct program *p, const struct form *f)
{
    return f->rank >= 1 && is_ordered(f->elem) && form_count(f) <= MOST_ELEMENTS / 4 &&
           p->rearranged < 3;
}

// The smallest power of two that is not below n.
static int64_t power_above(int64_t n)
{
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

struct value grow_sorted(struct program *p, const struct form *f)
{
    const uint32_t axis = choose(p->c, f->rank);
    const int64_t kept = f->shape[axis];
    int64_t all = power_above(kept);
    if (choose(p->c, 2)) // few are chosen from any number
        all = kept + choose(p->c, (uint32_t)kept + 1);
    struct form g = *f;
    g.shape[axis] = all;
    if (all > MOST_SORTED || form_count(&g) > MOST_ELEMENTS)
        return grow(p, *f);
    p->rearranged += 2; // each exchange goes through shared memory
    const bool gives_index = f->elem == TIR_I32 && choose(p->c, 2);
    if (gives_index)
        g.elem = choose(p->c, 2) ? TIR_F32 : TIR_I32;
    struct value v = grow_firm(p, g);
    if (kept == all && all == power_above(all) && !gives_index && choose(p->c, 2)) {
        v.text = say(p, "sort(%s, axis = %u)", v.text, axis);
        return v;
    }
    const char *name = say(p, "top_%s_%u_%u", gives_index ? "at" : "of", axis, (uint32_t)kept);
    declare(p, say(p, "fn %s(x) { let v, i = top(x, %u, axis = %u); return %s; }", name,
                   (uint32_t)kept, axis, gives_index ? "i" : "v"));
    v.text = say(p, "%s(%s)", name, v.text);
    if (gives_index)
        v = (struct value){.text = v.text, .most = MOST_SORTED};
    return v;
}

bool fits_place(struct program *p, const struct form *f)
{
    (void)p;
    bool fits = false;
    for (uint32_t i = 0; i < f->rank; i++)
        fits |= f->shape[i] == 1;
    return fits && f->elem == TIR_I32;
}

struct value grow_place(struct program *p, const struct form *f)
{
    uint32_t axis = 0;
    while (f->shape[axis] != 1)
        axis++;
    static const enum tir_elem keys[] = {TIR_F32, TIR_I32, TIR_BF16, TIR_U8, TIR_I64};
    struct form g = form_with(*f, choose_from(p->c, keys));
    g.shape[axis] = pick_size(p);
    if (form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    struct value v = grow_firm(p, g);
    const char *text =
        say(p, "%s(%s, axis = %u)", choose(p->c, 2) ? "argmax" : "argmin", v.text, axis);
    return (struct value){.text = text, .most = (double)g.shape[axis]};
}

bool fits_part(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank >= 1 && form_count(f) <= MOST_ELEMENTS / 4;
}

// One of 2 to 4 equal parts.
struct value grow_part(struct program *p, const struct form *f)
{
    const uint32_t axis = choose(p->c, f->rank), parts = 2 + choose(p->c, 3);
    const uint32_t part = choose(p->c, parts);
    struct form g = *f;
    g.shape[axis] *= parts;
    const char *name = say(p, "part_%u_of_%u_at_%u", part, parts, axis);
    static const char *const names[] = {"a, b", "a, b, c", "a, b, c, d"};
    declare(p, say(p, "fn %s(x) { let %s = split(x, axis = %u%s); return %c; }", name,
                   names[parts - 2], axis, parts == 2 ? "" : say(p, ", parts = %u", parts),
                   'a' + (int)part));
    struct value v = grow(p, g);
    v.text = say(p, "%s(%s)", name, v.text);
    return v;
}

bool fits_limit(struct program *p, const struct form *f)
{
    (void)p;
    return is_ordered(f->elem);
}

struct value grow_limit(struct program *p, const struct form *f)
{
    const uint32_t low = choose(p->c, 2), high = low + choose(p->c, 4);
    struct value v = grow(p, *f);
    v.text = say(p, "clamp(%s, %u, %u)", v.text, low, high);
    v.most = TIR_MIN(v.most, high);
    v.most = TIR_MAX(v.most, low);
    v.lsb = TIR_MIN(v.lsb, 0);
    return v;
}
