// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of other shapes: transposes, dimensions of size 1, reductions, scans, products.
#include <math.h>

#include "rules.h"

#define MOST_PRODUCTS (1u << 20) // multiplications of a tile's products together
#define MOST_MATRICES 16         // of a product of rank 3

// ---- dimensions

bool fits_transpose(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank >= 2;
}

struct value grow_transpose(struct program *p, const struct form *f)
{
    struct form g = *f;
    g.shape[f->rank - 2] = f->shape[f->rank - 1];
    g.shape[f->rank - 1] = f->shape[f->rank - 2];
    struct value v = grow(p, g);
    v.text = say(p, "%s.T", v.text);
    return v;
}

static uint32_t ones(const struct form *f)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->rank; i++)
        count += f->shape[i] == 1;
    return count;
}

// One of the dimensions of size 1.
static uint32_t pick_one(struct program *p, const struct form *f)
{
    uint32_t at = choose(p->c, ones(f)), i = 0;
    while (f->shape[i] != 1 || at-- > 0)
        i++;
    return i;
}

// x[:, word, :] with the word at `axis` of `rank` indices.
static const char *indexed(struct program *p, const char *x, uint32_t rank, uint32_t axis,
                           const char *word)
{
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    tir_text_format(&text, "%s[", x);
    for (uint32_t i = 0; i < rank; i++)
        tir_text_format(&text, "%s%s", i ? ", " : "", i == axis ? word : ":");
    tir_text_char(&text, ']');
    return text.ptr;
}

bool fits_new_axis(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank >= 2 && ones(f) > 0;
}

struct value grow_new_axis(struct program *p, const struct form *f)
{
    uint32_t axis = pick_one(p, f);
    struct form g = *f;
    g.rank--;
    for (uint32_t i = axis; i < g.rank; i++)
        g.shape[i] = f->shape[i + 1];
    struct value v = grow(p, g);
    v.text = indexed(p, v.text, f->rank, axis, "None");
    return v;
}

bool fits_drop_axis(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank >= 1 && f->rank < TIR_MAX_RANK;
}

struct value grow_drop_axis(struct program *p, const struct form *f)
{
    uint32_t axis = choose(p->c, f->rank + 1);
    struct form g = *f;
    g.rank++;
    for (uint32_t i = g.rank; i-- > axis + 1;)
        g.shape[i] = f->shape[i - 1];
    g.shape[axis] = 1;
    struct value v = grow(p, g);
    v.text = indexed(p, v.text, g.rank, axis, "0");
    return v;
}

// ---- reductions and scans

static const struct combination {
    const char *word, *function;
    enum { OF_NUMBERS = 1, OF_BOOLS = 2, OF_INTS = 4, OF_U32 = 8 } of;
    bool is_sum, is_product;
} combinations[] = {
    {"sum", NULL, OF_NUMBERS, true, false},
    {"max", NULL, OF_NUMBERS, false, false},
    {"min", NULL, OF_NUMBERS, false, false},
    {"any", NULL, OF_BOOLS, false, false},
    {"all", NULL, OF_BOOLS, false, false},
    {"prod", NULL, OF_INTS, false, true},
    {"plus", "fn plus(a, b) { return a + b; }", OF_NUMBERS, true, false},
    {"both", "fn both(a, b) { return a & b; }", OF_INTS | OF_BOOLS, false, false},
    {"odd", "fn odd(a, b) { return a ^ b; }", OF_INTS | OF_BOOLS, false, false},
    // Those below do not commute.
    {"second", "fn second(a, b) { return b; }", OF_NUMBERS | OF_BOOLS, false, false},
    {"larger", "fn larger(a, b) { return abs(a) >= abs(b) ? a : b; }", OF_NUMBERS, false, false},
    {"affine",
     "fn affine(a, b) { return (((a >> 16) * (b >> 16)) << 16) | (((b >> 16) * (a & 65535) + (b & "
     "65535)) & 65535); }",
     OF_U32, false, false},
};

static const struct combination *pick_combination(struct program *p, enum tir_elem elem,
                                                  bool is_scan)
{
    const uint32_t count = TIR_COUNT_OF(combinations);
    const uint32_t first = choose(p->c, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct combination *c = &combinations[(first + i) % count];
        bool fits = (c->of & OF_BOOLS && elem == TIR_BOOL) ||
                    (c->of & OF_NUMBERS && elem != TIR_BOOL) || (c->of & OF_INTS && is_int(elem)) ||
                    (c->of & OF_U32 && elem == TIR_U32);
        bool is_word =
            !is_scan || c->function || (strcmp(c->word, "any") && strcmp(c->word, "all"));
        if (fits && is_word)
            return c;
    }
    tir_unreachable(); // second takes all
}

// The operand x of n terms made fit for the combination, and what comes out of it.
static struct value combined(struct program *p, const struct form *f, const struct combination *c,
                             struct value *x, int64_t n)
{
    if (c->is_sum && is_float(f->elem) && !may_err(p)) {
        const int digits = exact_digits(f->elem);
        const int room = digits - (int)ceil(log2((double)n)); // of one term
        if (!sums_exactly(f->elem, x, (double)n) && room >= 1)
            *x = held(p, f, *x, ldexp(1, TIR_MIN(room, 3)), TIR_MIN(0, TIR_MAX(x->lsb, 3 - room)));
    }
    struct value out = *x;
    if (c->is_sum) {
        out.most = x->most * (double)n;
        out.err = x->err * (double)n;
        if (x->err > 0 || !sums_exactly(f->elem, x, (double)n))
            out.err += (double)n * unit(f->elem, out.most);
    }
    if (is_int(f->elem))
        out.most = c->word[0] == 'm' ? x->most : INFINITY;
    return out;
}

// Sums of few digits cannot be exact.
static const struct combination *sound_combination(struct program *p, const struct form *f,
                                                   int64_t n, bool is_scan)
{
    const struct combination *c = pick_combination(p, f->elem, is_scan);
    bool is_coarse = is_float(f->elem) && ldexp(1, exact_digits(f->elem)) < 2.0 * (double)n;
    return c->is_sum && is_coarse && !may_err(p) ? &combinations[1] : c;
}

bool fits_reduce(struct program *p, const struct form *f)
{
    (void)p;
    return ones(f) > 0;
}

struct value grow_reduce(struct program *p, const struct form *f)
{
    uint32_t axis = pick_one(p, f);
    struct form g = *f;
    g.shape[axis] = pick_size(p);
    if (form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    const struct combination *c = sound_combination(p, &g, g.shape[axis], false);
    const bool decides = !strcmp(c->word, "larger");
    const bool counts = f->elem == TIR_I32 && !strcmp(c->word, "sum") && choose(p->c, 3) == 1;
    if (counts) // those that are true
        g.elem = TIR_BOOL;
    struct value x = decides ? grow_firm(p, g) : grow(p, g);
    struct value v =
        counts ? (struct value){.most = INFINITY} : combined(p, &g, c, &x, g.shape[axis]);
    if (c->function) {
        declare(p, c->function);
        v.text = say(p, "reduce(%s, axis = %u, %s)", x.text, axis, c->word);
    } else if (axis + 1 == g.rank && strlen(c->word) == 3 && c->word[0] != 'a' && g.rank == 2 &&
               choose(p->c, 3) == 1) {
        v.text = say(p, "row%s(%s)", c->word, x.text);
    } else {
        const double n = (double)g.shape[axis];
        const bool is_mean = !strcmp(c->word, "sum") && tir_elems[f->elem].bits >= 32 &&
                             is_float(f->elem) && exp2(floor(log2(n))) == n && choose(p->c, 2);
        int from_end = choose(p->c, 4) == 1 ? (int)g.rank : 0;
        v.text =
            say(p, "%s(%s, axis = %d)", is_mean ? "mean" : c->word, x.text, (int)axis - from_end);
        if (is_mean) // exact, by a power of two
            v = (struct value){v.text, v.most / n, v.lsb - (int)log2(n), v.err};
    }
    return v;
}

bool fits_reduce_all(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank == 0;
}

struct value grow_reduce_all(struct program *p, const struct form *f)
{
    struct form g = {.elem = f->elem, .rank = 1 + choose(p->c, 3)};
    for (uint32_t i = 0; i < g.rank; i++)
        g.shape[i] = pick_size(p);
    while (form_count(&g) > MOST_ELEMENTS)
        g.rank--;
    const int64_t n = form_count(&g);
    const struct combination *c = sound_combination(p, &g, n, false);
    while (c->function)
        c = f->elem == TIR_BOOL ? &combinations[3] : &combinations[1];
    struct value x = grow(p, g);
    struct value v = combined(p, &g, c, &x, n);
    v.text = say(p, "%s(%s)", c->word, x.text);
    return v;
}

bool fits_scan(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank >= 1;
}

struct value grow_scan(struct program *p, const struct form *f)
{
    uint32_t axis = choose(p->c, f->rank);
    const struct combination *c = sound_combination(p, f, f->shape[axis], true);
    const bool decides = !strcmp(c->word, "larger");
    struct value x = decides ? grow_firm(p, *f) : grow(p, *f);
    struct value v = combined(p, f, c, &x, f->shape[axis]);
    if (c->function)
        declare(p, c->function);
    if (!strcmp(c->word, "sum"))
        v.text = say(p, "cumsum(%s, axis = %u)", x.text, axis);
    else
        v.text = say(p, "scan(%s, axis = %u, %s)", x.text, axis, c->word);
    return v;
}

bool fits_several(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank >= 1;
}

// The value that goes with the largest key, of a reduction or scan of keys and values.
struct value grow_several(struct program *p, const struct form *f)
{
    const bool is_scan = !ones(f) || choose(p->c, 3) == 0;
    const uint32_t axis = is_scan ? choose(p->c, f->rank) : pick_one(p, f);
    struct form g = *f;
    if (!is_scan)
        g.shape[axis] = pick_size(p);
    if (!is_scan && form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    static const enum tir_elem keys[] = {TIR_I32, TIR_F32, TIR_F16, TIR_I64, TIR_U8};
    struct value key = grow_firm(p, form_with(g, choose_from(p->c, keys)));
    struct value v = grow(p, g);
    const char *word = is_scan ? "scan" : "reduce";
    const bool has_bool = choose(p->c, 3) == 1; // a third value between the two
    const char *name = say(p, "%s_%u%s", word, axis, has_bool ? "_odd" : "");
    declare(
        p,
        has_bool
            ? "fn larger_odd(k, p, x, l, q, y) { return k >= l ? k : l, p != q, k >= l ? x : y; }"
            : "fn larger_of(k, x, l, y) { return k >= l ? k : l, k >= l ? x : y; }");
    if (has_bool)
        declare(p, say(p,
                       "fn %s(k, x) { let m, o, r = %s((k, k > 0, x), axis = %u, larger_odd); "
                       "return r; }",
                       name, word, axis));
    else
        declare(p, say(p, "fn %s(k, x) { let m, r = %s((k, x), axis = %u, larger_of); return r; }",
                       name, word, axis));
    v.text = say(p, "%s(%s, %s)", name, key.text, v.text);
    return v;
}

// In another order its divisions give other last digits.
bool fits_moments(struct program *p, const struct form *f)
{
    return may_err(p) && ones(f) > 0 && (f->elem == TIR_F32 || f->elem == TIR_F64);
}

struct value grow_moments(struct program *p, const struct form *f)
{
    const uint32_t axis = pick_one(p, f);
    struct form g = *f;
    g.shape[axis] = pick_size(p);
    if (form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    const bool is_mean = choose(p->c, 2);
    const char *name = say(p, "%s_%u", is_mean ? "mean_of" : "variance_of", axis);
    declare(p, say(p, "fn %s(x) { let a, b = moments(x, axis = %u); return %c; }", name, axis,
                   is_mean ? 'a' : 'b'));
    struct value x = grow(p, g), v = {.most = x.most, .lsb = -200};
    v.err = x.err + 64 * unit(f->elem, x.most);
    if (!is_mean) {
        v.most = x.most * x.most;
        v.err = 4 * (x.most + x.err) * x.err + 256 * unit(f->elem, v.most);
    }
    v.text = say(p, "%s(%s)", name, x.text);
    return v;
}

// ---- rearranged

bool fits_rearranged(struct program *p, const struct form *f)
{
    return form_count(f) <= MOST_ELEMENTS / 4 && p->rearranged < 4;
}

// An element of a tile, at an index that the program computes.
static struct value grow_element(struct program *p, const struct form *f)
{
    const int64_t size = pick_size(p);
    struct form g = {.elem = f->elem, .rank = 1, .shape = {TIR_MAX(size, 16)}};
    struct value index = grow_firm(p, form_scalar(TIR_I32));
    struct value v = grow(p, g);
    v.text = say(p, "%s[%s & 15]", v.text, index.text);
    return v;
}

// x[:, text, :]
static void take_part(struct program *p, struct value *v, const struct form *f, uint32_t axis,
                      const char *text)
{
    v->text = indexed(p, v->text, f->rank, axis, text);
}

// Two to four tiles side by side, or two in turns.
static struct value grow_joined(struct program *p, const struct form *f, uint32_t axis)
{
    struct form part = *f;
    const bool interleaves = f->shape[axis] % 2 == 0 && choose(p->c, 2);
    const uint32_t most = (uint32_t)TIR_MIN(f->shape[axis], 4);
    uint32_t parts = interleaves ? 2 : 2 + choose(p->c, most - 1);
    struct value v = {.most = 0};
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    for (int64_t left = f->shape[axis]; parts > 0; left -= part.shape[axis]) {
        parts--;
        part.shape[axis] = interleaves ? f->shape[axis] / 2
                           : parts     ? 1 + choose(p->c, (uint32_t)(left - parts))
                                       : left;
        struct value x = grow(p, part);
        v = (struct value){.most = TIR_MAX(x.most, v.most),
                           .lsb = TIR_MIN(x.lsb, v.lsb),
                           .err = TIR_MAX(x.err, v.err)};
        tir_text_format(&text, "%s, ", x.text);
    }
    v.text = say(p, "%s(%saxis = %u)", interleaves ? "interleave" : "concat", text.ptr, axis);
    return v;
}

static const char *reshaped(struct program *p, const char *x, const struct form *f)
{
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    for (uint32_t i = 0; i < f->rank; i++)
        tir_text_format(&text, ", %s", size_text(p, f->shape[i]));
    return say(p, "reshape(%s%s)", x, text.ptr);
}

// A dimension of several, or neighbours of which there is one dimension.
static struct form regrouped(struct program *p, const struct form *f)
{
    static const int64_t by[] = {8, 4, 2, 3, 16, 1};
    struct form g = {.elem = f->elem};
    const uint32_t axis = choose(p->c, f->rank);
    const int64_t size = choose_from(p->c, by);
    const bool splits = f->rank < TIR_MAX_RANK && f->shape[axis] % size == 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        g.shape[g.rank++] = f->shape[i];
        if (i == axis && splits) {
            g.shape[g.rank - 1] /= size;
            g.shape[g.rank++] = size;
        } else if (i == axis && i + 1 < f->rank) {
            g.shape[g.rank - 1] *= f->shape[++i];
        }
    }
    return g;
}

// What the rows of the tile make in one dimension, in two, or in one more or less.
static struct value grow_reshaped(struct program *p, const struct form *f)
{
    if (choose(p->c, 2)) {
        struct value v = grow(p, regrouped(p, f));
        v.text = reshaped(p, v.text, f);
        return v;
    }
    struct form g = {.elem = f->elem, .rank = 1, .shape = {form_count(f)}};
    if (f->rank == 1 && f->shape[0] % 4 == 0)
        g = (struct form){.elem = f->elem, .rank = 2, .shape = {f->shape[0] / 4, 4}};
    struct value v = grow(p, g);
    v.text = reshaped(p, v.text, f);
    return v;
}

// take(x, t, axis): x with the dimensions of t in the place of one.
static struct value grow_taken(struct program *p, const struct form *f, uint32_t axis)
{
    const uint32_t most = TIR_MIN(f->rank - axis, 2u), least = f->rank == TIR_MAX_RANK;
    const uint32_t drawn = choose(p->c, most + 1), taken = TIR_MAX(least, drawn);
    struct form index = {.elem = TIR_I32, .rank = taken};
    struct form g = {.elem = f->elem, .rank = f->rank + 1 - taken};
    for (uint32_t i = 0; i < taken; i++)
        index.shape[i] = f->shape[axis + i];
    for (uint32_t i = 0; i < g.rank; i++)
        g.shape[i] = i == axis ? pick_size(p) : f->shape[i < axis ? i : i - 1 + taken];
    if (form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    const char *at = taken ? grow_index_tile(p, index).text
                           : say(p, "(%s & 7)", grow_firm(p, form_scalar(TIR_I32)).text);
    struct value v = grow(p, g);
    v.text = say(p, "take(%s, %s, %s%u)", v.text, at, choose(p->c, 2) ? "axis = " : "", axis);
    return v;
}

// take_along(x, t, axis): each element by an index of its own, or one for a whole dimension.
static struct value grow_taken_along(struct program *p, const struct form *f, uint32_t axis)
{
    struct form index = *f, g = *f;
    for (uint32_t i = 0; i < f->rank; i++)
        index.shape[i] = i != axis && choose(p->c, 4) == 3 ? 1 : f->shape[i];
    g.shape[axis] = pick_size(p);
    if (form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    const char *at = grow_index_tile(p, index).text;
    struct value v = grow(p, g);
    v.text = say(p, "take_along(%s, %s, axis = %u)", v.text, at, axis);
    return v;
}

struct value grow_rearranged(struct program *p, const struct form *f)
{
    p->rearranged++; // shared memory of each
    if (!f->rank)
        return grow_element(p, f);
    const uint32_t axis = choose(p->c, f->rank), how = choose(p->c, 9);
    struct form g = *f;
    if (how == 0 && f->shape[axis] > 1)
        return grow_joined(p, f, axis);
    if (how == 1)
        return grow_reshaped(p, f);
    if (how == 2) {
        struct value v = grow(p, g);
        v.text = say(p, "flip(%s, axis = %u)", v.text, axis);
        return v;
    }
    if (how == 6 || how == 7)
        return grow_taken(p, f, axis);
    if (how == 8)
        return grow_taken_along(p, f, axis);
    const uint32_t more = choose(p->c, 4);
    if (how == 3) { // a part
        g.shape[axis] += more;
        struct value v = grow(p, g);
        take_part(p, &v, f, axis,
                  say(p, "%u:+%s", choose(p->c, more + 1), size_text(p, f->shape[axis])));
        return v;
    }
    struct form index = {.rank = 1, .shape = {f->shape[axis]}};
    g.shape[axis] = how == 4 ? pick_size(p) : f->shape[axis] + 3;
    if (how == 4 && form_count(&g) > MOST_ELEMENTS)
        g.shape[axis] = 2;
    // A begin that turns out to be known at compile time must lie inside.
    const char *at = how == 4 ? grow_index_tile(p, index).text
                              : say(p, "(%s & 3):+%s", grow_firm(p, form_scalar(TIR_I32)).text,
                                    size_text(p, f->shape[axis]));
    struct value v = grow(p, g);
    take_part(p, &v, f, axis, at);
    return v;
}

// ---- products

bool fits_product(struct program *p, const struct form *f)
{
    bool is_sum =
        f->elem == TIR_F32 || f->elem == TIR_I32 || f->elem == TIR_F64 || f->elem == TIR_F16;
    const bool is_shape = f->rank == 2 || (f->rank == 3 && f->shape[0] <= MOST_MATRICES);
    return is_shape && is_sum && p->cost + form_count(f) <= MOST_PRODUCTS;
}

// The elements of the operands whose products give sums of this type.
static void factors(struct program *p, enum tir_elem sum, enum tir_elem *a, enum tir_elem *b)
{
    static const enum tir_elem to_f32[] = {TIR_BF16, TIR_F16,  TIR_BF16, TIR_F32,
                                           TIR_TF32, TIR_E4M3, TIR_E5M2};
    static const enum tir_elem to_f16[] = {TIR_F16, TIR_F16, TIR_E4M3, TIR_E5M2};
    static const enum tir_elem to_i32[] = {TIR_I8, TIR_U8};
    *a = sum == TIR_F32   ? to_f32[choose(p->c, p->grain ? 5 : 7)]
         : sum == TIR_F16 ? to_f16[choose(p->c, p->grain ? 2 : 4)]
         : sum == TIR_I32 ? choose_from(p->c, to_i32)
                          : TIR_F64;
    *b = *a;
    if (tir_elems[*a].bits == 8 && choose(p->c, 3) == 1)
        *b = is_float(*a) ? (*a == TIR_E4M3 ? TIR_E5M2 : TIR_E4M3)
                          : (*a == TIR_I8 ? TIR_U8 : TIR_I8);
}

// An operand: of the wanted shape, or the transpose of one of the other; `matrices` of them, 0 for
// one of rank 2.
static struct value factor(struct program *p, enum tir_elem elem, int64_t matrices, int64_t rows,
                           int64_t cols, double most, int lsb)
{
    const bool is_turned = choose(p->c, 5) > 2;
    struct form f = {.elem = elem};
    if (matrices)
        f.shape[f.rank++] = matrices;
    f.shape[f.rank++] = is_turned ? cols : rows;
    f.shape[f.rank++] = is_turned ? rows : cols;
    struct value v;
    if (!matrices && chance(p->c, 10) && has_room(p)) { // the rows of a box
        const struct form box = regrouped(p, &f);
        v = grow_load(p, &box);
        v.text = reshaped(p, v.text, &f);
    } else {
        v = grow(p, f);
    }
    v = held(p, &f, v, most, lsb);
    if (is_turned)
        v.text = say(p, "%s.T", v.text);
    return v;
}

// How many matrices each factor has: those of the product, or one of them a single one for all.
static void pick_matrices(struct program *p, const struct form *f, int64_t count[2])
{
    count[0] = count[1] = f->rank == 3 ? f->shape[0] : 0;
    const uint32_t how = f->rank == 3 ? choose(p->c, 8) : 0;
    if (how >= 4)
        count[how & 1] = how >= 6;
}

struct value grow_product(struct program *p, const struct form *f)
{
    enum tir_elem ea, eb;
    factors(p, f->elem, &ea, &eb);
    int64_t matrices[2], depth = pick_size(p);
    const int64_t rows = f->shape[f->rank - 2], cols = f->shape[f->rank - 1];
    pick_matrices(p, f, matrices);
    while (TIR_MAX(matrices[0] * rows, matrices[1] * cols) * depth > MOST_ELEMENTS)
        depth /= 2;
    const double products = (double)form_count(f);
    while (depth > 1 && (double)p->cost + products * (double)depth > MOST_PRODUCTS)
        depth /= 2;
    p->cost += (uint32_t)(products * (double)depth);
    // So few digits that every order of the additions is exact.
    const bool is_small = f->elem == TIR_F16 || tir_elems[ea].bits == 8;
    const double most = is_small ? 2 : 8;
    const int lsb = may_err(p) ? -200 : is_small ? 0 : p->grain / 2;
    struct value a = factor(p, ea, matrices[0], rows, depth, most, lsb);
    struct value b = factor(p, eb, matrices[1], depth, cols, most, lsb);
    const bool has_sum = f->elem == TIR_F16 || chance(p->c, 25);
    struct value acc = {.lsb = 0};
    if (has_sum)
        acc = held(p, f, grow(p, *f), is_small ? 512 : 4096,
                   may_err(p) ? -200
                   : is_small ? 0
                              : p->grain);
    struct value v = {.lsb = TIR_MIN(a.lsb + b.lsb, acc.lsb)};
    v.most = (double)depth * a.most * b.most + acc.most;
    v.err = (double)depth * (a.err * (b.most + b.err) + b.err * a.most) + acc.err;
    if (v.err > 0 || a.lsb + b.lsb < p->grain)
        v.err += (double)depth * unit(f->elem, v.most) * (is_small ? 64 : 1);
    if (f->elem == TIR_I32)
        v.most = INFINITY;
    v.text = has_sum ? say(p, "dot(%s, %s, %s)", a.text, b.text, acc.text)
                     : say(p, "dot(%s, %s)", a.text, b.text);
    return v;
}

// ---- products with scales

bool fits_scaled_product(struct program *p, const struct form *f)
{
    return f->elem == TIR_F32 && f->rank == 2 && fits_product(p, f);
}

// Powers of two: 1, and 2 or a half in some blocks.
static const char *scales(struct program *p, int64_t rows, int64_t cols)
{
    static const char *const others[] = {"2.0", "0.5", "4.0", "1.0"};
    struct form f = {.elem = TIR_BOOL, .rank = 2, .shape = {rows, cols}};
    return say(p, "ue8m0(where(%s, f32(%s), full(1.0, f32, %s, %s)))", grow_firm(p, f).text,
               choose_from(p->c, others), size_text(p, rows), size_text(p, cols));
}

struct value grow_scaled_product(struct program *p, const struct form *f)
{
    static const enum tir_elem elems[] = {TIR_E4M3, TIR_E5M2};
    static const int64_t blocks[] = {32, 16, 8, 4};
    const enum tir_elem ea = choose_from(p->c, elems), eb = choose_from(p->c, elems);
    const int64_t block = choose_from(p->c, blocks), rows = f->shape[0], cols = f->shape[1];
    int64_t count = 1 + choose(p->c, 3);
    while (count > 1 && TIR_MAX(rows, cols) * block * count > MOST_ELEMENTS)
        count--;
    const int64_t depth = block * count;
    if (TIR_MAX(rows, cols) * depth > MOST_ELEMENTS ||
        p->cost + form_count(f) * depth > MOST_PRODUCTS)
        return grow(p, *f);
    p->cost += (uint32_t)(form_count(f) * depth);
    struct value a = factor(p, ea, 0, rows, depth, 2, 0);
    const char *of_a = scales(p, rows, count);
    struct value b = factor(p, eb, 0, depth, cols, 2, 0);
    const char *of_b = scales(p, count, cols);
    struct value v = {.most = (double)depth * a.most * b.most * 16,
                      .lsb = TIR_MIN(a.lsb, 0) + TIR_MIN(b.lsb, 0) - 2};
    v.err = (double)depth * 16 * (a.err * (b.most + b.err) + b.err * a.most);
    if (v.err > 0)
        v.err += (double)depth * unit(f->elem, v.most);
    v.text = say(p, "dot_scaled(%s, %s, %s, %s)", a.text, of_a, b.text, of_b);
    return v;
}
