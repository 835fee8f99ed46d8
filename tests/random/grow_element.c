// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise expressions.
#include <math.h>

#include "rules.h"

// ---- operands that broadcast

// The form of one of two operands whose broadcast is f. `mask`: which dimensions this one has.
static struct form part_of(const struct form *f, uint32_t mask)
{
    struct form out = *f;
    for (uint32_t i = 0; i < f->rank; i++)
        if (!(mask >> i & 1))
            out.shape[i] = 1;
    return out;
}

struct two {
    struct value a, b;
    bool b_is_literal;
};

static const char *small_literal(struct program *p, enum tir_elem elem, double *most)
{
    uint32_t n = 1 + choose(p->c, 3);
    *most = n;
    return elem == TIR_BOOL ? (n == 2 ? "false" : "true") : say(p, "%u", n);
}

// Two operands of an elementwise operation that gives the shape of f in this element type.
static struct two operands(struct program *p, const struct form *f)
{
    struct two out = {.b_is_literal = false};
    const uint32_t all = (1u << f->rank) - 1;
    uint32_t how = choose(p->c, f->rank ? 8 : 4), a = all, b = all;
    if (how == 3) {
        out.a = grow(p, *f);
        out.b_is_literal = true;
        out.b.lsb = 0;
        out.b.text = small_literal(p, f->elem, &out.b.most);
        if (is_int(f->elem) && chance(p->c, 30)) // or one of two, of the other operand's type
            out.b.text =
                say(p, "where(%s, %s, 1)", grow_firm(p, form_with(*f, TIR_BOOL)).text, out.b.text);
        return out;
    }
    if (how == 4) { // a scalar
        out.a = grow(p, *f);
        out.b = grow(p, form_scalar(f->elem));
        return out;
    }
    if (how == 5) { // any dimensions of either
        a = choose(p->c, all + 1);
        b = all & ~a;
    } else if (how > 5) {
        b = choose(p->c, all + 1);
    }
    struct form fa = part_of(f, a), fb = part_of(f, b);
    if (how == 7) {
        out.b = grow(p, fb); // the full one on the right
        struct value second = out.b;
        out.a = second;
        out.b = grow(p, fa);
        return out;
    }
    out.a = grow(p, fa);
    out.b = grow(p, fb);
    return out;
}

// ---- the range of a result

static void combine(struct value *out, const struct two *x, const char *op, enum tir_elem elem)
{
    const struct value *a = &x->a, *b = &x->b;
    out->lsb = TIR_MIN(a->lsb, b->lsb);
    out->err = a->err + b->err;
    switch (*op) {
    case '+':
    case '-':
        out->most = a->most + b->most;
        break;
    case '*':
        out->most = a->most * b->most;
        out->lsb = a->lsb + b->lsb;
        out->err = a->err * (b->most + b->err) + b->err * a->most;
        break;
    default: // min, max
        out->most = TIR_MAX(a->most, b->most);
        break;
    }
    if (!is_float(elem))
        out->most = INFINITY; // it may wrap
    else if (out->err > 0)
        out->err += unit(elem, out->most);
}

bool fits_arithmetic(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem != TIR_BOOL;
}

struct value grow_arithmetic(struct program *p, const struct form *f)
{
    static const char *const ops[] = {"+", "-", "*", "min", "max"};
    const char *op = choose_from(p->c, ops);
    struct two x = operands(p, f);
    struct value out = {0};
    combine(&out, &x, op, f->elem);
    out.text = *op == 'm' ? say(p, "%s(%s, %s)", op, x.a.text, x.b.text)
                          : say(p, "(%s %s %s)", x.a.text, op, x.b.text);
    return out;
}

bool fits_unary(struct program *p, const struct form *f)
{
    (void)p;
    (void)f;
    return true;
}

struct value grow_unary(struct program *p, const struct form *f)
{
    struct value v = grow(p, *f);
    if (f->elem == TIR_BOOL)
        v.text = say(p, "!%s", v.text);
    else if (choose(p->c, 2))
        v.text = say(p, "abs(%s)", v.text);
    else if (is_int(f->elem) && choose(p->c, 2))
        v.text = say(p, "(~%s)", v.text);
    else
        v.text = say(p, "(-%s)", v.text);
    if (is_int(f->elem))
        v.most = INFINITY;
    return v;
}

bool fits_bits(struct program *p, const struct form *f)
{
    (void)p;
    return !is_float(f->elem);
}

struct value grow_bits(struct program *p, const struct form *f)
{
    static const char *const of_bools[] = {"&&", "||", "^", "&", "|"};
    static const char *const of_ints[] = {"&", "|", "^", "<<", ">>"};
    const char *op = f->elem == TIR_BOOL ? choose_from(p->c, of_bools) : choose_from(p->c, of_ints);
    struct value out = {.most = INFINITY};
    if (op[1] && f->elem != TIR_BOOL) {
        struct value a = grow(p, *f);
        out.text = say(p, "(%s %s %u)", a.text, op, choose(p->c, 9));
        return out;
    }
    struct two x = operands(p, f);
    out.text = say(p, "(%s %s %s)", x.a.text, op, x.b.text);
    return out;
}

// ---- decisions

bool fits_compare(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem == TIR_BOOL;
}

struct value grow_compare(struct program *p, const struct form *f)
{
    static const char *const ops[] = {"<", "==", "!=", "<=", ">", ">="};
    struct form g = form_with(*f, pick_elem(p));
    const char *op = g.elem == TIR_BOOL ? ops[1 + choose(p->c, 2)] : choose_from(p->c, ops);
    p->firm++;
    struct two x = operands(p, &g);
    p->firm--;
    return (struct value){.text = say(p, "(%s %s %s)", x.a.text, op, x.b.text)};
}

bool fits_choice(struct program *p, const struct form *f)
{
    (void)p;
    (void)f;
    return true;
}

struct value grow_choice(struct program *p, const struct form *f)
{
    struct form c = form_with(*f, TIR_BOOL);
    struct value cond = grow_firm(p, f->rank && chance(p->c, 20) ? form_scalar(TIR_BOOL) : c);
    struct value a = grow(p, *f);
    struct value b = grow(p, *f);
    struct value out = {.most = TIR_MAX(a.most, b.most),
                        .lsb = TIR_MIN(a.lsb, b.lsb),
                        .err = TIR_MAX(a.err, b.err)};
    out.text = choose(p->c, 2) ? say(p, "(%s ? %s : %s)", cond.text, a.text, b.text)
                               : say(p, "where(%s, %s, %s)", cond.text, a.text, b.text);
    return out;
}

// ---- other elements

bool fits_cast(struct program *p, const struct form *f)
{
    (void)p;
    (void)f;
    return true;
}

// An element that some variable of this shape has, so that what is in registers is used again.
static enum tir_elem elem_at_hand(struct program *p, const struct form *f)
{
    vec_foreach(struct variable, v, &p->vars) {
        struct form g = form_with(*f, v->form.elem);
        if (v->form.elem != f->elem && form_equal(&v->form, &g) && chance(p->c, 50))
            return v->form.elem;
    }
    return pick_elem(p);
}

struct value grow_cast(struct program *p, const struct form *f)
{
    enum tir_elem from = elem_at_hand(p, f);
    struct form g = form_with(*f, from);
    if (f->elem == TIR_BOOL) { // a bool is compared, not cast
        struct value x = grow_firm(p, g);
        return (struct value){.text =
                                  say(p, from == TIR_BOOL ? "(%s != false)" : "(%s != 0)", x.text)};
    }
    struct value v = is_float(f->elem) ? grow(p, g) : grow_firm(p, g);
    if (from == TIR_BOOL)
        v.most = 1;
    if (is_float(f->elem) && !is_float(from)) {
        v.lsb = 0;
        if (!(v.most <= 256)) {
            v.text = say(p, "(%s & 7)", v.text);
            v.most = 7;
        }
    }
    if (is_float(f->elem)) // saturates or overflows beyond
        v = is_float(from) ? held(p, &g, v, tir_elems[f->elem].bits > 16 ? 65536 : 256, v.lsb) : v;
    v.text = say(p, "%s(%s)", elem_text(p, f->elem), v.text);
    if (v.err > 0)
        v.err += unit(f->elem, v.most);
    if (is_int(f->elem) && is_int(from))
        v.most = INFINITY;
    return v;
}

bool fits_bitcast(struct program *p, const struct form *f)
{
    (void)p;
    return is_int(f->elem);
}

// Of integers of the other sign: what is in a float's bits may depend on the device (-0.0).
struct value grow_bitcast(struct program *p, const struct form *f)
{
    static const enum tir_elem other[TIR_ELEM_COUNT] = {
        [TIR_I8] = TIR_U8,   [TIR_U8] = TIR_I8,   [TIR_I16] = TIR_U16, [TIR_U16] = TIR_I16,
        [TIR_I32] = TIR_U32, [TIR_U32] = TIR_I32, [TIR_I64] = TIR_U64, [TIR_U64] = TIR_I64};
    struct value v = grow(p, form_with(*f, other[f->elem]));
    return (struct value){.text = say(p, "bitcast(%s, %s)", elem_text(p, f->elem), v.text),
                          .most = INFINITY};
}

bool fits_widened(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem == TIR_F32 || f->elem == TIR_F64 || f->elem == TIR_I32 || f->elem == TIR_I64;
}

struct value grow_widened(struct program *p, const struct form *f)
{
    static const enum tir_elem to_f32[] = {TIR_F16, TIR_BF16, TIR_E4M3, TIR_E5M2};
    static const enum tir_elem to_int[] = {TIR_I8, TIR_U8, TIR_I16, TIR_U16};
    enum tir_elem elem = f->elem == TIR_F32   ? choose_from(p->c, to_f32)
                         : f->elem == TIR_F64 ? TIR_F32
                                              : choose_from(p->c, to_int);
    struct two x = {.a = grow(p, *f)};
    struct value out = {0};
    x.b = grow(p, form_with(*f, elem));
    combine(&out, &x, "+", f->elem);
    out.text = choose(p->c, 2) ? say(p, "(%s + %s)", x.b.text, x.a.text)
                               : say(p, "(%s + %s)", x.a.text, x.b.text);
    return out;
}

bool fits_digits(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem == TIR_F32 || f->elem == TIR_F16 || f->elem == TIR_BF16;
}

// Bits that are cut out of an integer, in steps that may leave none, as a float; or times a float
// of 16 bits.
struct value grow_digits(struct program *p, const struct form *f)
{
    static const enum tir_elem from[] = {TIR_U8, TIR_I8, TIR_U16, TIR_I16, TIR_U32, TIR_I32};
    static const char *const to[] = {"u8", "u16", "u32", "i8", "i16"};
    struct value x = grow_firm(p, form_with(*f, choose_from(p->c, from)));
    for (uint32_t cuts = choose(p->c, 4); cuts; cuts--)
        x.text = chance(p->c, 30) ? say(p, "%s(%s)", choose_from(p->c, to), x.text)
                                  : say(p, "(%s >> %u)", x.text, 1 + choose(p->c, 31));
    const bool is_biased = choose(p->c, 2);
    x.text = is_biased ? say(p, "(i8(%s & 15) - 8)", x.text) : say(p, "u8(%s)", x.text);
    struct value out = {.text = say(p, "f32(%s)", x.text), .most = is_biased ? 8 : 255};
    if (is_biased && f->elem != TIR_F32 && choose(p->c, 2)) {
        struct value scale = held(p, f, grow_firm(p, *f), 16, 0); // exact, with 7 digits
        out.text = say(p, "(%s * f32(%s))", out.text, scale.text);
        out.most *= scale.most;
    }
    if (f->elem != TIR_F32)
        out.text = say(p, "%s(%s)", elem_text(p, f->elem), out.text);
    return out;
}

// ---- numbers

bool fits_rounding(struct program *p, const struct form *f)
{
    (void)p;
    return is_float(f->elem);
}

struct value grow_rounding(struct program *p, const struct form *f)
{
    static const char *const ops[] = {"floor", "ceil", "round", "trunc"};
    struct value v = grow_firm(p, *f);
    return (struct value){say(p, "%s(%s)", choose_from(p->c, ops), v.text), ceil(v.most), 0, 0};
}

bool fits_remainder(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem != TIR_BOOL;
}

struct value grow_remainder(struct program *p, const struct form *f)
{
    struct value v = grow(p, *f);
    if (is_float(f->elem)) { // by a power of two: exact
        uint32_t k = 1 + choose(p->c, 2);
        return (struct value){say(p, "(%s / %u)", v.text, 1u << k), v.most / (1u << k),
                              v.lsb - (int)k, v.err};
    }
    uint32_t by = choose(p->c, 4);
    struct value out = {.most = INFINITY};
    if (by == 3) { // rounded up, of what is not below 0
        out.text = say(p, "%s(%s & 63, %u)", choose(p->c, 2) ? "cdiv" : "ceildiv", v.text,
                       2 + choose(p->c, 6));
        out.most = 32;
    } else if (by == 0) {
        out.text = say(p, "(%s %% %u)", v.text, 2 + choose(p->c, 6));
        out.most = 7;
    } else if (by == 1) {
        out.text = say(p, "(%s / %u)", v.text, 2 + choose(p->c, 6));
    } else { // never by 0 or -1
        struct value d = grow(p, *f);
        out.text = say(p, "(%s %s ((%s & 7) + 1))", v.text, choose(p->c, 2) ? "/" : "%", d.text);
    }
    return out;
}

bool fits_fused(struct program *p, const struct form *f)
{
    (void)p;
    return is_float(f->elem);
}

struct value grow_fused(struct program *p, const struct form *f)
{
    struct two x = {.a = grow(p, *f)}, y = {.b_is_literal = false};
    struct value out = {0};
    x.b = grow(p, *f);
    y.b = grow(p, *f);
    combine(&y.a, &x, "*", f->elem);
    combine(&out, &y, "+", f->elem);
    out.text = say(p, "fma(%s, %s, %s)", x.a.text, x.b.text, y.b.text);
    return out;
}

// Times factors that are mostly 1.
bool fits_rescaled(struct program *p, const struct form *f)
{
    (void)p;
    return is_float(f->elem) && f->rank > 0;
}

struct value grow_rescaled(struct program *p, const struct form *f)
{
    struct two x = {.a = grow(p, *f)};
    struct value out = {0};
    struct form g = part_of(f, choose(p->c, 1u << f->rank));
    x.b = grow(p, g);
    if (chance(p->c, 70))
        x.b.text = say(p, "where(%s, 1, %s)", grow_firm(p, form_with(g, TIR_BOOL)).text, x.b.text);
    x.b.most = TIR_MAX(x.b.most, 1);
    x.b.lsb = TIR_MIN(x.b.lsb, 0);
    combine(&out, &x, "*", f->elem);
    out.text = say(p, "rescale(%s, %s)", x.a.text, x.b.text);
    return out;
}

// Functions of the hardware, in loose programs.
bool fits_call(struct program *p, const struct form *f)
{
    return p->loose && !p->firm &&
           (f->elem == TIR_F32 || f->elem == TIR_F64 || f->elem == TIR_F16 || f->elem == TIR_BF16);
}

struct value grow_call(struct program *p, const struct form *f)
{
    // At most 4 in size, or at least 1: slopes there, and the largest result.
    static const struct {
        const char *open, *close;
        double slope, most;
        bool is_positive, is_coarse;
    } calls[] = {
        {"exp(", ")", 55, 55, false, false},        {"exp2(", ")", 12, 16, false, false},
        {"tanh(", ")", 1, 1, false, false},         {"sin(", ")", 1, 1, false, false},
        {"cos(", ")", 1, 1, false, false},          {"erf(", ")", 1.2, 1, false, false},
        {"sqrt(", ")", 0.5, 2.3, true, false},      {"rsqrt(", ")", 0.5, 1, true, false},
        {"log(", ")", 1, 1.7, true, false},         {"log2(", ")", 1.5, 2.4, true, false},
        {"(1.0 / ", ")", 1, 1, true, false},        {"sigmoid(", ")", 1, 1, false, false},
        {"log1p(abs(", "))", 2, 1.7, false, false}, {"expm1(", ")", 110, 55, false, false},
        {"pow(", ", 1.5)", 12, 11.2, true, false},  {"div_approx(1.0, ", ")", 1, 1, true, false},
        {"tanh_approx(", ")", 1, 1, false, true}};
    uint32_t i = choose(p->c, TIR_COUNT_OF(calls));
    struct value v = grow(p, *f);
    if (v.err > 0.01)
        return v;
    v = held(p, f, v, 4, v.lsb);
    if (calls[i].is_positive)
        v.text = say(p, "(abs(%s) + 1)", v.text);
    const bool is_f64 = f->elem == TIR_F64;
    double coarse = ldexp(1, calls[i].is_coarse ? -10 : is_f64 ? -40 : -18); // approximations
    return (struct value){say(p, "%s%s%s", calls[i].open, v.text, calls[i].close), calls[i].most,
                          -60,
                          calls[i].slope * (v.err + 4 * unit(f->elem, 1)) + calls[i].most * coarse +
                              unit(f->elem, calls[i].most)};
}

// A function of the program.
bool fits_function(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem != TIR_BOOL;
}

struct value grow_function(struct program *p, const struct form *f)
{
    struct two x = operands(p, f);
    struct value out = {0};
    combine(&out, &x, "+", f->elem);
    const uint32_t how = choose(p->c, 3);
    if (x.b_is_literal || how) {
        const char *elem = tir_elems[f->elem].name;
        declare(p, "fn plus(a, b) { return a + b; }");
        declare(
            p,
            say(p,
                "fn on_%s(a, b, f: fn(%s, %s) -> %s = plus, g = plus) { return how(f, g, a, b); }",
                elem, elem, elem, elem));
        declare(p, "fn how(f, g, a, b) { return f(a, b); }");
        out.text = how < 2 ? say(p, "plus(%s, %s)", x.a.text, x.b.text)
                           : say(p, "on_%s(%s, g = plus, b = %s)", elem, x.a.text, x.b.text);
    } else {
        declare(p, "fn larger_sum(a, b) { let c = max(a, b); return a + b - c + max(b, a); }");
        out.text = say(p, "larger_sum(%s, %s)", x.a.text, x.b.text);
        out.most *= 3;
        out.err *= 4;
    }
    return out;
}
