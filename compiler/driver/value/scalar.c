// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar arguments and single elements as text.
#include "driver/value/scalar.h"

#include <math.h>

#include "driver/fail.h"
#include "driver/value/number.h"
#include "ir/number.h"

static union tir_number number_of(const struct tir_scalar *s)
{
    return tir_elem_is_float(s->elem) ? (union tir_number){.f = s->f}
                                      : (union tir_number){.i = s->i};
}

static bool parse(enum tir_elem elem, tir_str text, struct tir_scalar *out)
{
    switch (tir_elems[elem].kind) {
    case TIR_KIND_BOOLEAN:
        out->i = tir_str_is(text, "true") || tir_str_is(text, "1");
        return out->i || tir_str_is(text, "false") || tir_str_is(text, "0");
    case TIR_KIND_SIGNED:
        return tir_parse_int(text, &out->i) && tir_number_wrap(elem, out->i) == out->i;
    case TIR_KIND_UNSIGNED: {
        uint64_t value;
        bool sound = tir_parse_uint(text, &value);
        out->i = (int64_t)value;
        return sound && tir_number_wrap(elem, out->i) == out->i;
    }
    case TIR_KIND_FLOAT: {
        double value;
        bool sound = tir_parse_float(text, &value);
        out->f = tir_number_round(elem, value);
        return sound && (isinf(value) || !isinf(out->f));
    }
    case TIR_KIND_NONE:
        break;
    }
    return false;
}

bool tir_scalar_parse(enum tir_elem elem, tir_str text, struct tir_scalar *out, tir_error *error)
{
    *out = (struct tir_scalar){.elem = elem};
    if (!parse(elem, text, out))
        return tir_fail(error, TIR_ERR_INVALID, "\"" STR_FMT "\" is not a value of %s",
                        STR_ARG(text), tir_elems[elem].name);
    out->bits = tir_number_encode(elem, number_of(out));
    return true;
}

struct tir_scalar tir_scalar_load(enum tir_elem elem, const uint8_t *at)
{
    struct tir_scalar scalar = {.elem = elem};
    for (uint32_t i = 0; i < tir_elems[elem].bits / 8; i++)
        scalar.bits |= (uint64_t)at[i] << 8 * i;
    union tir_number number = tir_number_decode(elem, scalar.bits);
    if (tir_elem_is_float(elem))
        scalar.f = number.f;
    else
        scalar.i = number.i;
    return scalar;
}

void tir_scalar_print(struct tir_text *out, const struct tir_scalar *scalar)
{
    tir_number_print(out, scalar->elem, number_of(scalar));
}
