// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of the library's files, of functions whose types follow from the call, of packed
// elements, and of products that are, or are not, rounded on their way to a sum.
#include <math.h>

#include "rules.h"

// ---- modules

static struct value activation(struct program *p, const struct form *f)
{
    // At most 4 in size: slopes there, and the largest result. The first ones are exact.
    static const struct {
        const char *open, *close;
        double slope, most;
    } calls[] = {{"nn.relu(", ")", 1, 0},         {"nn.leaky_relu(", ", 0.5)", 1, 0},
                 {"nn.silu(", ")", 1.1, 4},       {"nn.gelu(", ")", 1.2, 4},
                 {"nn.gelu_tanh(", ")", 1.2, 4},  {"nn.elu(", ")", 1, 4},
                 {"nn.softplus(", ")", 1, 4.1},   {"nn.softmax(", ")", 2, 1},
                 {"nn.logsumexp(", ")", 2, 12.4}, {"nn.log_softmax(", ")", 4, 17}};
    enum { EXACT = 2, ELEMENTWISE = 7, KEPT = 1 };
    const bool is_loose = may_err(p) && (f->elem == TIR_F32 || f->elem == TIR_F64);
    const bool has_rows = f->rank == 2 && form_count(f) <= MOST_ELEMENTS / 4;
    uint32_t i = choose(p->c, !is_loose ? EXACT : has_rows ? 10 : ELEMENTWISE);
    struct form g = *f;
    if (i == 8 && f->shape[1] != 1)
        i = 7;
    if (i == 8)
        g.shape[1] = 16;
    struct value v = grow(p, g);
    if (i < EXACT) {
        v.lsb -= i == 1;
        v.text = say(p, "%s%s%s", calls[i].open, v.text, calls[i].close);
        return v;
    }
    if (v.err > 0.01)
        return i == 8 ? (struct value){.text = say(p, "max(%s, axis = 1)", v.text),
                                       .most = v.most,
                                       .lsb = v.lsb,
                                       .err = v.err}
                      : v;
    v = held(p, &g, v, 4, v.lsb);
    return (struct value){say(p, "%s%s%s", calls[i].open, v.text, calls[i].close), calls[i].most,
                          -60,
                          calls[i].slope * (v.err + 16 * unit(f->elem, 4)) +
                              calls[i].most * ldexp(1, f->elem == TIR_F64 ? -36 : -16)};
}

bool fits_library(struct program *p, const struct form *f)
{
    (void)p;
    const bool is_activated =
        f->elem == TIR_F32 || f->elem == TIR_F64 || f->elem == TIR_F16 || f->elem == TIR_BF16;
    return is_activated || (f->elem == TIR_U32 && form_count(f) <= MOST_ELEMENTS / 4) ||
           (f->elem == TIR_I64 && f->rank == 0);
}

struct value grow_library(struct program *p, const struct form *f)
{
    if (is_float(f->elem)) {
        import(p, "import \"tir/nn.tir\" as nn;");
        return activation(p, f);
    }
    if (f->elem == TIR_I64) { // an imported file without a name
        import(p, "import \"tir/sched.tir\";");
        declare(p,
                "fn place(t) { let i, j = tile_grouped(t, 5, 7, group = 2); return i * 7 + j; }");
        declare(p, "fn snake(t) { let i, j = tile_snake(t, 5, 7); return i * 7 + j; }");
        return (struct value){.text = say(p, "%s(%s & 31)", choose(p->c, 2) ? "place" : "snake",
                                          grow_firm(p, *f).text),
                              .most = 35};
    }
    import(p, "import \"tir/random.tir\" as random;");
    declare(p,
            "fn word(seed, c) { let _a, b, _c, d = random.random_bits(seed, c); return b ^ d; }");
    struct value seed = grow_firm(p, form_scalar(TIR_U32)), counter = grow_firm(p, *f);
    return (struct value){.text = say(p, "word(%s, %s)", seed.text, counter.text),
                          .most = INFINITY};
}

// ---- a file of the program's own

const char own_module[] =
    "import \"own.tir\" as again;\n"
    "import \"tir/nn.tir\" as nn;\n"
    "const TWO = 2;\n"
    "fn same(x) { return x; }\n"
    "fn twice(x) { return again.plus(x, x); }\n"
    "fn plus(x, y) { return x + y; }\n"
    "fn either<T = f32>(c: bool, x: T, y: T) -> T { return c ? x : y; }\n"
    "fn positive(x) { return nn.relu(x); }\n"
    "fn applied(f, x, times = TWO) { return times == 2 ? f(f(x)) : f(x); }\n"
    "fn larger(x, y) { let s, t = x > y ? again.both(x, y) : again.both(y, x); return s; }\n"
    "fn both(x, y) { return x, y; }\n";

bool fits_own(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem != TIR_BOOL;
}

struct value grow_own(struct program *p, const struct form *f)
{
    import(p, "import \"own.tir\" as own;");
    const bool is_wide = tir_elems[f->elem].bits >= 32 && f->elem != TIR_TF32;
    const uint32_t how = choose(p->c, is_wide ? 6 : 4);
    if (how == 3) {
        const char *c = grow_condition(p);
        const struct value a = grow(p, *f), b = grow(p, *f);
        return (struct value){say(p, "own.either(%s, %s, %s)", c, a.text, b.text),
                              TIR_MAX(a.most, b.most), TIR_MIN(a.lsb, b.lsb),
                              TIR_MAX(a.err, b.err)};
    }
    struct value v = grow(p, *f);
    if (how >= 4) {
        const bool is_const = how == 5 && f->elem == TIR_F32;
        v.text = is_const ? say(p, "(%s * own.TWO)", v.text) : say(p, "own.twice(%s)", v.text);
        v.most *= 2;
        v.err *= 2;
        return v;
    }
    v.text = how == 0   ? say(p, "own.same(%s)", v.text)
             : how == 1 ? say(p, "own.applied(own.same, %s)", v.text)
                        : say(p, "own.applied(own.same, times = 1, x = %s)", v.text);
    return v;
}

// ---- types from the call

bool fits_typed(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem != TIR_BOOL && f->rank <= 2;
}

// The type and sizes of the argument, and a number that the call may state.
struct value grow_typed(struct program *p, const struct form *f)
{
    static const char *const functions[] = {
        "fn plus_of_0<T = f32, N = 3>(x: T) { return x + T(N); }",
        "fn plus_of_1<T = f32, N = 3>(x: T[A]) -> T[A] { return x + full(N, T, A); }",
        "fn plus_of_2<T = f32, N = 3>(x: T[A, B]) -> T[A, B] { return x + full(N, T, A, B); }"};
    declare(p, functions[f->rank]);
    const uint32_t n = choose(p->c, 4);
    struct value v = grow(p, *f);
    v.text = n == 3 ? say(p, "plus_of_%u(%s)", f->rank, v.text)
                    : say(p, "plus_of_%u(%s, N = %u)", f->rank, v.text, n);
    v.most = is_float(f->elem) ? v.most + n : INFINITY;
    v.lsb = TIR_MIN(v.lsb, 0);
    v.err += v.err > 0 ? unit(f->elem, v.most) : 0;
    return v;
}

// ---- packed elements

bool fits_expanded(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem == TIR_F32 && f->rank == 2 && f->shape[1] % 4 == 0;
}

struct value grow_expanded(struct program *p, const struct form *f)
{
    static const struct {
        const char *name;
        int64_t bits;
        double most;
        int lsb;
    } elems[] = {{"e2m1", 4, 6, -1}, {"e3m2", 6, 28, -4}, {"e2m3", 6, 7.5, -3}};
    const uint32_t i = choose(p->c, TIR_COUNT_OF(elems));
    struct form g = form_with(*f, TIR_U8);
    g.shape[1] = f->shape[1] * elems[i].bits / 8;
    struct value bytes = grow_firm(p, g);
    return (struct value){say(p, "f32(expand(%s, %s))", elems[i].name, bytes.text), elems[i].most,
                          elems[i].lsb, 0};
}

// ---- contraction

bool fits_contraction(struct program *p, const struct form *f)
{
    (void)p;
    return f->elem == TIR_BOOL;
}

// Sums of products of more digits than a number has: rounded once or twice, they compare otherwise.
struct value grow_contraction(struct program *p, const struct form *f)
{
    static const enum tir_elem elems[] = {TIR_F32, TIR_F32, TIR_F64, TIR_F16, TIR_BF16};
    static const char *const ops[] = {"==", "<", "!=", ">="};
    const enum tir_elem elem = choose_from(p->c, elems);
    const struct form g = form_with(*f, elem);
    const char *x = grow_firm(p, g).text, *y = grow_firm(p, g).text;
    if (!strncmp(y, "dot", 3)) // would take the product as its accumulator
        y = say(p, "(0 + %s)", y);
    const bool is_second = choose(p->c, 2), subtracts = choose(p->c, 2);
    const char *product = say(p, "%s * %s(1.1)", x, tir_elems[elem].name);
    const char *sum =
        say(p, "%s %c %s", is_second ? y : product, subtracts ? '-' : '+', is_second ? product : y);
    const char *once = say(p, "fma(%s%s, %s(1.1), %s%s)", subtracts && is_second ? "-" : "", x,
                           tir_elems[elem].name, subtracts && !is_second ? "-" : "", y);
    return (struct value){.text = say(p, "(%s %s %s)", sum, choose_from(p->c, ops), once)};
}
