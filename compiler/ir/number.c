// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rounding, encoding and arithmetic of every element type, by one description of its format.
//
// A double holds every value of the narrower float types, and the sum, product, quotient or square
// root of two values of a type with p <= 24 bits is still rounded right when it is computed in
// double first (53 >= 2 p + 2). fma and 64-bit integers need more: they are rounded to odd on the
// way, which keeps the last step exact.

#include "ir/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum special { // what a full exponent field means
    IEEE,      // infinity and NaN
    ONE_NAN,   // numbers, but for a full mantissa: NaN
    FINITE     // numbers
};

struct format {
    int exponent_bits, mantissa_bits; // as stored, without the hidden bit
    int min_exponent;                 // of the smallest normal number
    enum special special;
    bool saturates;
    double max;
};

static const struct format formats[TIR_ELEM_COUNT] = {
    [TIR_E2M1] = {2, 1, 0, FINITE, true, 6},
    [TIR_E3M2] = {3, 2, -2, FINITE, true, 28},
    [TIR_E2M3] = {2, 3, 0, FINITE, true, 7.5},
    [TIR_E4M3] = {4, 3, -6, ONE_NAN, true, 448},
    [TIR_E5M2] = {5, 2, -14, IEEE, true, 57344},
    [TIR_UE4M3] = {4, 3, -6, ONE_NAN, true, 448},
    [TIR_F16] = {5, 10, -14, IEEE, false, 65504},
    [TIR_BF16] = {8, 7, -126, IEEE, false, 0x1.fep127},
    [TIR_TF32] = {8, 23, -126, IEEE, false, 0x1.ffcp127}, // stored as f32 with 13 zero bits
    [TIR_F32] = {8, 23, -126, IEEE, false, 0x1.fffffep127},
    [TIR_F64] = {11, 52, -1022, IEEE, false, 0x1.fffffffffffffp1023},
};

#define FRACTION ((UINT64_C(1) << 52) - 1) // of a double

// A NaN travels as a double with the same upper bits.
static double nan_of(uint64_t fraction)
{
    const uint64_t bits = UINT64_C(0x7ff) << 52 | fraction;
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

double tir_number_nan(void)
{
    return nan_of(FRACTION);
}

static double round_scale(double x) // ue8m0
{
    if (isnan(x) || x < 0)
        return tir_number_nan();
    int e;
    if (x <= 0x1p-127)
        return 0x1p-127;
    if (x >= 0x1p127)
        return 0x1p127;
    double fraction = frexp(x, &e);
    return ldexp(1, fraction > 0.5 ? e : e - 1);
}

double tir_number_round(enum tir_elem elem, double x)
{
    const struct format *t = &formats[elem];
    if (elem == TIR_UE8M0)
        return round_scale(x);
    if (elem == TIR_UE4M3 && !(x > 0)) // it has no sign
        return x == 0 ? 0 : tir_number_nan();
    if (isnan(x))
        return t->special == FINITE ? t->max : tir_number_nan();
    if (elem == TIR_F64 || x == 0)
        return x;
    double r = x;
    if (!isinf(x)) {
        int e;
        frexp(x, &e);
        int digits = (int)tir_elems[elem].mantissa - 1;
        int last = TIR_MAX(e - 1, t->min_exponent) - digits; // weight of the last bit
        r = ldexp(rint(ldexp(x, -last)), last);
    }
    if (fabs(r) > t->max)
        return copysign(t->saturates ? t->max : INFINITY, r);
    return r;
}

int64_t tir_number_wrap(enum tir_elem elem, int64_t x)
{
    const struct tir_elem_info *info = &tir_elems[elem];
    if (info->kind == TIR_KIND_BOOLEAN)
        return x != 0;
    if (info->bits == 64)
        return x;
    assert(info->bits > 0);
    uint64_t low = (uint64_t)x & ((UINT64_C(1) << info->bits) - 1);
    uint64_t sign = UINT64_C(1) << (info->bits - 1);
    if (info->kind == TIR_KIND_SIGNED && (low & sign))
        low |= ~(sign | (sign - 1));
    return (int64_t)low;
}

static uint64_t encode_float(enum tir_elem elem, double x)
{
    if (elem == TIR_UE8M0)
        return isnan(x) ? 0xff : (uint64_t)(ilogb(x) + 127);
    const struct format *t = &formats[elem];
    uint64_t mantissa_mask = (UINT64_C(1) << t->mantissa_bits) - 1;
    uint64_t exponent_mask = (UINT64_C(1) << t->exponent_bits) - 1;
    uint64_t sign = signbit(x) != 0, exponent = 0, mantissa, bits;
    double magnitude = fabs(x);
    memcpy(&bits, &x, sizeof(bits));
    if (isnan(x) || isinf(x)) { // of an infinity no bit of the fraction is set
        exponent = exponent_mask;
        mantissa = (bits & FRACTION) >> (52 - t->mantissa_bits);
        if (isnan(x) && (!mantissa || t->special == ONE_NAN))
            mantissa = mantissa_mask;
    } else if (magnitude < ldexp(1, t->min_exponent)) {
        mantissa = (uint64_t)ldexp(magnitude, t->mantissa_bits - t->min_exponent);
    } else {
        int e = ilogb(magnitude);
        exponent = (uint64_t)((int64_t)e - t->min_exponent + 1);
        mantissa = (uint64_t)ldexp(magnitude, t->mantissa_bits - e) & mantissa_mask;
    }
    return ((sign << t->exponent_bits | exponent) << t->mantissa_bits) | mantissa;
}

static double decode_float(enum tir_elem elem, uint64_t bits)
{
    if (elem == TIR_UE8M0)
        return (bits & 0xff) == 0xff ? tir_number_nan() : ldexp(1, (int)(bits & 0xff) - 127);
    const struct format *t = &formats[elem];
    if (elem == TIR_TF32)
        bits &= ~UINT64_C(0x1fff); // the tensor core ignores them
    uint64_t mantissa_mask = (UINT64_C(1) << t->mantissa_bits) - 1;
    uint64_t exponent_mask = (UINT64_C(1) << t->exponent_bits) - 1;
    if (elem == TIR_UE4M3)
        bits &= 0x7f;
    uint64_t mantissa = bits & mantissa_mask, exponent = bits >> t->mantissa_bits & exponent_mask;
    bool negative = bits >> (t->mantissa_bits + t->exponent_bits) & 1;
    double magnitude;
    if (exponent == exponent_mask && t->special == IEEE)
        magnitude = mantissa ? nan_of(mantissa << (52 - t->mantissa_bits)) : INFINITY;
    else if (exponent == exponent_mask && t->special == ONE_NAN && mantissa == mantissa_mask)
        magnitude = tir_number_nan();
    else if (exponent == 0)
        magnitude = ldexp((double)mantissa, t->min_exponent - t->mantissa_bits);
    else
        magnitude = ldexp((double)(mantissa | (mantissa_mask + 1)),
                          (int)exponent - 1 + t->min_exponent - t->mantissa_bits);
    return negative ? -magnitude : magnitude;
}

uint64_t tir_number_encode(enum tir_elem elem, union tir_number x)
{
    if (tir_elem_is_float(elem))
        return encode_float(elem, x.f);
    uint32_t bits = tir_elems[elem].bits;
    return bits == 64 ? (uint64_t)x.i : (uint64_t)x.i & ((UINT64_C(1) << bits) - 1);
}

union tir_number tir_number_decode(enum tir_elem elem, uint64_t bits)
{
    if (tir_elem_is_float(elem))
        return (union tir_number){.f = decode_float(elem, bits)};
    return (union tir_number){.i = tir_number_wrap(elem, (int64_t)bits)};
}

// Casts.

// An integer as a double that a narrower float type still rounds right: 53 bits, the last one set
// if anything was lost (round to odd).
static double odd_double(uint64_t magnitude)
{
    int shift = 0;
    while (magnitude >> shift >= UINT64_C(1) << 53)
        shift++;
    uint64_t kept = magnitude >> shift;
    if (kept << shift != magnitude)
        kept |= 1;
    return ldexp((double)kept, shift);
}

static double from_int(enum tir_elem to, enum tir_elem from, int64_t x)
{
    bool negative = x < 0 && from != TIR_U64;
    uint64_t magnitude = negative ? -(uint64_t)x : (uint64_t)x;
    double d = to == TIR_F64 ? (double)magnitude : odd_double(magnitude);
    return tir_number_round(to, negative ? -d : d);
}

static int64_t to_int(enum tir_elem to, double x)
{
    int bits = (int)tir_elems[to].bits;
    if (isnan(x))
        return 0;
    x = trunc(x);
    if (tir_elems[to].kind == TIR_KIND_UNSIGNED) {
        if (x <= 0)
            return 0;
        if (x >= ldexp(1, bits))
            return tir_number_wrap(to, -1);
        return (int64_t)(uint64_t)x;
    }
    if (x >= ldexp(1, bits - 1))
        return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
    if (x < -ldexp(1, bits - 1))
        return tir_number_wrap(to, (int64_t)(UINT64_C(1) << (bits - 1)));
    return (int64_t)x;
}

union tir_number tir_number_cast(enum tir_elem to, enum tir_elem from, union tir_number x)
{
    union tir_number r;
    if (tir_elem_is_float(from) && tir_elem_is_float(to))
        r.f = tir_number_round(to, x.f);
    else if (tir_elem_is_float(to))
        r.f = from_int(to, from, x.i);
    else if (tir_elems[to].kind == TIR_KIND_BOOLEAN)
        r.i = tir_elem_is_float(from) ? x.f != 0 : x.i != 0;
    else if (tir_elem_is_float(from))
        r.i = to_int(to, x.f);
    else
        r.i = tir_number_wrap(to, x.i);
    return r;
}

// Arithmetic.

// a * b + c to odd in double: right for every type of at most 24 bits, whose products are exact.
static double fma_odd(double a, double b, double c)
{
    double product = a * b, sum = product + c;
    if (!isfinite(sum) || !isfinite(product))
        return sum;
    double c_part = sum - product;
    double error = (product - (sum - c_part)) + (c - c_part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    if (error != 0 && !(bits & 1))
        sum = nextafter(sum, error > 0 ? INFINITY : -INFINITY);
    return sum;
}

static double min_float(double a, double b)
{
    if (isnan(a) || isnan(b))
        return tir_number_nan();
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

// clang-format off
static bool apply_float(enum tir_op op, enum tir_elem elem, const double *in, double *out)
{
    double a = in[0], b = in[1], r;
    switch (op) {
    case TIR_OP_ADD: r = a + b; break;
    case TIR_OP_SUB: r = a - b; break;
    case TIR_OP_MUL:
    case TIR_OP_RESCALE: r = a * b; break;
    case TIR_OP_DIV:
    case TIR_OP_DIV_APPROX: r = a / b; break;
    case TIR_OP_REM: r = fmod(a, b); break;
    case TIR_OP_NEG: r = -a; break;
    case TIR_OP_ABS: r = fabs(a); break;
    case TIR_OP_MIN: r = min_float(a, b); break;
    case TIR_OP_MAX: r = -min_float(-a, -b); break;
    case TIR_OP_FMA: r = elem == TIR_F64 ? fma(a, b, in[2]) : fma_odd(a, b, in[2]); break;
    case TIR_OP_FLOOR: r = floor(a); break;
    case TIR_OP_CEIL: r = ceil(a); break;
    case TIR_OP_ROUND: r = rint(a); break;
    case TIR_OP_TRUNC: r = trunc(a); break;
    case TIR_OP_EXP: r = exp(a); break;
    case TIR_OP_EXP2: r = exp2(a); break;
    case TIR_OP_LOG: r = log(a); break;
    case TIR_OP_LOG2: r = log2(a); break;
    case TIR_OP_SQRT: r = sqrt(a); break;
    case TIR_OP_RSQRT: r = 1 / sqrt(a); break;
    case TIR_OP_SIN: r = sin(a); break;
    case TIR_OP_COS: r = cos(a); break;
    case TIR_OP_TANH: r = tanh(a); break;
    case TIR_OP_TANH_APPROX: r = tanh(a); break;
    case TIR_OP_ERF: r = erf(a); break;
    case TIR_OP_POW: r = pow(a, b); break;
    default: return false;
    }
    *out = tir_number_round(elem, r);
    return true;
}
// clang-format on

static int64_t divide(bool is_unsigned, int64_t a, int64_t b, bool want_remainder)
{
    if (b == 0)
        return 0;
    if (is_unsigned)
        return (int64_t)(want_remainder ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b);
    if (b == -1) // the smallest integer has no negative
        return want_remainder ? 0 : (int64_t) - (uint64_t)a;
    return want_remainder ? a % b : a / b;
}

static int64_t shift_right(enum tir_elem elem, int64_t a, uint64_t by)
{
    uint32_t bits = tir_elems[elem].bits;
    if (tir_elems[elem].kind == TIR_KIND_UNSIGNED)
        return by >= bits ? 0 : (int64_t)((uint64_t)a >> by);
    by = TIR_MIN(by, bits - 1);
    return a < 0 ? (int64_t) ~(~(uint64_t)a >> by) : (int64_t)((uint64_t)a >> by);
}

static bool less_int(bool is_unsigned, int64_t a, int64_t b)
{
    return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

// x without what a sign adds to it.
static uint64_t bits_of(enum tir_elem elem, uint64_t x)
{
    return x << (64 - tir_elems[elem].bits) >> (64 - tir_elems[elem].bits);
}

static uint32_t count_ones(uint64_t x)
{
    uint32_t count = 0;
    for (; x; x &= x - 1)
        count++;
    return count;
}

static uint32_t width_of(uint64_t x) // up to its first 1
{
    uint32_t width = 0;
    for (; x; x >>= 1)
        width++;
    return width;
}

// clang-format off
static bool apply_int(enum tir_op op, enum tir_elem elem, int64_t a, int64_t b, int64_t *out)
{
    bool is_unsigned = tir_elems[elem].kind == TIR_KIND_UNSIGNED;
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    int64_t r;
    switch (op) {
    case TIR_OP_ADD: r = (int64_t)(x + y); break;
    case TIR_OP_SUB: r = (int64_t)(x - y); break;
    case TIR_OP_MUL: r = (int64_t)(x * y); break;
    case TIR_OP_DIV: r = divide(is_unsigned, a, b, false); break;
    case TIR_OP_REM: r = divide(is_unsigned, a, b, true); break;
    case TIR_OP_CEILDIV: {
        int64_t rest = divide(is_unsigned, a, b, true);
        r = divide(is_unsigned, a, b, false) + (is_unsigned ? rest != 0 : rest > 0);
        break;
    }
    case TIR_OP_NEG: r = (int64_t)-x; break;
    case TIR_OP_ABS: r = !is_unsigned && a < 0 ? (int64_t)-x : a; break;
    case TIR_OP_MIN: r = less_int(is_unsigned, b, a) ? b : a; break;
    case TIR_OP_MAX: r = less_int(is_unsigned, a, b) ? b : a; break;
    case TIR_OP_AND: r = a & b; break;
    case TIR_OP_OR: r = a | b; break;
    case TIR_OP_XOR: r = a ^ b; break;
    case TIR_OP_NOT: r = elem == TIR_BOOL ? !a : ~a; break;
    case TIR_OP_SHL: r = y >= tir_elems[elem].bits ? 0 : (int64_t)(x << y); break;
    case TIR_OP_SHR: r = shift_right(elem, a, y); break;
    case TIR_OP_POPCOUNT: r = count_ones(bits_of(elem, x)); break;
    case TIR_OP_LEADING_ZEROS: r = tir_elems[elem].bits - width_of(bits_of(elem, x)); break;
    default: return false;
    }
    *out = tir_number_wrap(elem, r);
    return true;
}

// *less, *equal: false with NaN.
static bool compare(enum tir_op op, bool less, bool equal, bool greater, int64_t *out)
{
    switch (op) {
    case TIR_OP_EQ: *out = equal; return true;
    case TIR_OP_NE: *out = !equal; return true;
    case TIR_OP_LT: *out = less; return true;
    case TIR_OP_LE: *out = less || equal; return true;
    case TIR_OP_GT: *out = greater; return true;
    case TIR_OP_GE: *out = greater || equal; return true;
    default: return false;
    }
}
// clang-format on

bool tir_number_apply(enum tir_op op, enum tir_elem elem, const union tir_number *in,
                      union tir_number *out)
{
    enum tir_rule rule = tir_ops[op].rule;
    if (rule == TIR_RULE_SELECT) {
        *out = in[0].i ? in[1] : in[2];
        return true;
    }
    bool is_float = tir_elem_is_float(elem);
    if (rule == TIR_RULE_COMPARE) {
        if (is_float)
            return compare(op, in[0].f<in[1].f, in[0].f == in[1].f, in[0].f> in[1].f, &out->i);
        bool is_unsigned = tir_elems[elem].kind == TIR_KIND_UNSIGNED;
        return compare(op, less_int(is_unsigned, in[0].i, in[1].i), in[0].i == in[1].i,
                       less_int(is_unsigned, in[1].i, in[0].i), &out->i);
    }
    if (rule != TIR_RULE_SAME)
        return false;
    uint32_t count = tir_ops[op].operand_count;
    if (!is_float)
        return apply_int(op, elem, in[0].i, count > 1 ? in[1].i : 0, &out->i);
    double x[3] = {0};
    for (uint32_t i = 0; i < count; i++)
        x[i] = in[i].f;
    return apply_float(op, elem, x, &out->f);
}

// Text.

void tir_number_print(struct tir_text *out, enum tir_elem elem, union tir_number x)
{
    if (elem == TIR_BOOL) {
        tir_text_add(out, x.i ? STR("true") : STR("false"));
        return;
    }
    if (tir_elems[elem].kind == TIR_KIND_UNSIGNED) {
        tir_text_format(out, "%llu", (unsigned long long)x.i);
        return;
    }
    if (!tir_elem_is_float(elem)) {
        tir_text_int(out, x.i);
        return;
    }
    if (isnan(x.f) || isinf(x.f)) {
        tir_text_add(out, isnan(x.f) ? STR("nan") : x.f < 0 ? STR("-inf") : STR("inf"));
        return;
    }
    char buffer[40];
    if (x.f == rint(x.f) && fabs(x.f) < 1e15) {
        bool minus_zero = x.f == 0 && signbit(x.f); // an integer literal would lose the sign
        if (minus_zero)
            tir_text_add(out, STR("-0.0"));
        else
            tir_text_format(out, "%.0f", x.f);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, sizeof(buffer), "%.*g", digits, x.f);
        if (tir_number_round(elem, strtod(buffer, NULL)) == x.f)
            break;
    }
    for (char *c = buffer; *c; c++) // whatever the host program's locale writes for the point
        if (!strchr("+-0123456789e", *c))
            *c = '.';
    tir_text_add(out, tir_str_of(buffer));
}
