// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of values: which sums are exact, and how a value is held to a range.
#include <math.h>

#include "program.h"

static int digits(enum tir_elem elem)
{
    return (int)tir_elems[elem].mantissa;
}

double unit(enum tir_elem elem, double most)
{
    return is_float(elem) ? ldexp(most, 1 - digits(elem)) : 0;
}

// e2m3 ends at 7.5, before its digits do.
int exact_digits(enum tir_elem elem)
{
    return elem == TIR_E2M3 ? 2 : digits(elem);
}

bool sums_exactly(enum tir_elem elem, const struct value *v, double terms)
{
    return !is_float(elem) || v->most * terms <= ldexp(1, exact_digits(elem) + v->lsb);
}

struct value held(struct program *p, const struct form *f, struct value v, double most, int lsb)
{
    if (!is_float(f->elem))
        return v;
    if (v.lsb < lsb && v.err == 0) {
        v.text = lsb == 0 ? say(p, "round(%s)", v.text)
                          : say(p, "(round(%s * %g) * %g)", v.text, ldexp(1, -lsb), ldexp(1, lsb));
        v.most = ceil(v.most);
        v.lsb = lsb;
    }
    if (!(v.most <= most)) {
        v.text = say(p, "min(max(%s, %g), %g)", v.text, -most, most);
        v.most = most;
        v.lsb = TIR_MIN(v.lsb, (int)floor(log2(most)));
    }
    // An error may be no number: an infinite one, times a factor of 0.
    if (!(v.err <= 2 * v.most))
        v.err = 2 * v.most;
    return v;
}

struct value tamed(struct program *p, const struct form *f, struct value v)
{
    double most = tir_elems[f->elem].bits > 16 ? 65536 : 64;
    if (!is_float(f->elem))
        return v;
    v = held(p, f, v, most, v.lsb);
    if (v.err == 0 && v.lsb < -24)
        v = held(p, f, v, most, 0);
    return v;
}

struct value range_of_fill(enum tir_elem elem)
{
    return (struct value){.most = is_float(elem) ? 3 : is_signed(elem) ? 8 : 15};
}
