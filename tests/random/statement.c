// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements: variables, assignments, branches, loops, and stores that tiles do not race for.
#include <math.h>

#include "rules.h"

struct form pick_form(struct program *p)
{
    static const uint32_t ranks[] = {2, 2, 2, 2, 1, 1, 0, 3, 2, 4};
    struct form f = {.elem = pick_elem(p), .rank = choose_from(p->c, ranks)};
    if (f.rank == 4)
        f.rank += choose(p->c, 3);
    const uint32_t first = f.rank == TIR_MAX_RANK ? 0 : 2; // which dimensions are large
    for (uint32_t i = 0; i < f.rank; i++)
        f.shape[i] = i < first || i + 2 >= f.rank ? pick_size(p) : 1 + (int64_t)choose(p->c, 3);
    if (f.rank && chance(p->c, 10))
        f.shape[choose(p->c, f.rank)] = 1;
    while (form_count(&f) > MOST_ELEMENTS)
        f.rank--;
    return f;
}

static struct variable *declare_variable(struct program *p, const char *stem, struct form f,
                                         struct value range)
{
    struct variable v = {.name = fresh_name(p, stem),
                         .form = f,
                         .range = range,
                         .depth = p->loops,
                         .trips = p->trips};
    v.range.text = v.name;
    vec_push(p->arena, &p->vars, v);
    return &vec_last(&p->vars);
}

struct value let(struct program *p, const struct form *f, struct value v)
{
    const struct variable *x = declare_variable(p, "t", *f, v);
    line(p, "let %s = %s;", x->name, v.text);
    return x->range;
}

static void let_statement(struct program *p)
{
    struct form f = pick_form(p);
    struct value e = grow(p, f);
    bool is_typed = choose(p->c, 3) == 1;
    const struct variable *v = declare_variable(p, "x", f, e);
    line(p, "let %s%s%s = %s;", v->name, is_typed ? ": " : "", is_typed ? form_text(p, &f) : "",
         e.text);
}

struct bit { // of an element's number
    uint32_t stride;
    const char *axis;
};

// "(2, 2) : (1@laneid, 4)"
static const char *bits_text(struct program *p, const struct bit *bits, uint32_t count)
{
    struct tir_text sizes, places;
    tir_text_init(&sizes, p->arena, 0);
    tir_text_init(&places, p->arena, 0);
    for (uint32_t i = 0; i < count; i++) {
        tir_text_format(&sizes, "%s2", i ? ", " : "");
        tir_text_format(&places, "%s%u%s", i ? ", " : "", bits[i].stride, bits[i].axis);
    }
    return say(p, "(%s) : (%s)", sizes.ptr, places.ptr);
}

// A layout of the tile, whose sizes are powers of two: each bit of an element's number is one of
// the register, of the lane or of the warp. Lanes and warps that have none of these have copies.
static const char *layout_text(struct program *p, const struct form *f)
{
    enum { LANES = 5, MOST_BITS = 20 };
    const uint32_t own = (uint32_t)llround(log2((double)form_count(f)));
    const uint32_t threads = LANES + (uint32_t)llround(log2((double)p->layout_warps));
    const uint32_t count = TIR_MAX(own, threads);
    struct bit bits[MOST_BITS];
    for (uint32_t i = 0; i < count; i++)
        bits[i] = i < LANES     ? (struct bit){1u << i, "@laneid"}
                  : i < threads ? (struct bit){1u << (i - LANES), "@warpid"}
                                : (struct bit){1u << (i - threads), ""};
    for (uint32_t i = count; i-- > 1;) {
        const uint32_t k = choose(p->c, i + 1);
        const struct bit bit = bits[i];
        bits[i] = bits[k];
        bits[k] = bit;
    }
    const char *text = say(p, "S[%s]", bits_text(p, bits, own));
    return count == own ? text : say(p, "%s + R[%s]", text, bits_text(p, bits + own, count - own));
}

static bool has_bits(const struct form *f)
{
    bool is = form_count(f) > 1;
    for (uint32_t i = 0; i < f->rank; i++)
        is = is && tir_is_pow2((uint64_t)f->shape[i]);
    return is;
}

// The type of a variable, and its layout in programs that state them: what is assigned may have
// one.
static const char *stated(struct program *p, const struct form *f)
{
    const char *type = form_text(p, f);
    return p->layout_warps && has_bits(f) ? say(p, "%s in %s", type, layout_text(p, f)) : type;
}

static void laid_out_statement(struct program *p)
{
    const struct form f = pick_form(p);
    const struct value e = grow(p, f);
    const struct variable *v = declare_variable(p, "x", f, e);
    line(p, "let %s: %s = %s;", v->name, stated(p, &f), e.text);
}

// ---- variables that change

// The range that a variable of floats keeps to, whatever is assigned.
static struct value kept(struct program *p, const struct form *f, struct value v)
{
    const bool is_narrow = tir_elems[f->elem].bits <= 16;
    v = held(p, f, v, is_narrow ? 4 : 16, is_narrow ? 0 : p->grain);
    if (is_float(f->elem)) {
        v.most = is_narrow ? 4 : 16;
        v.lsb = is_narrow ? 0 : p->grain;
    } else {
        v.most = INFINITY;
    }
    return v;
}

uint32_t sum_variable(struct program *p, struct form f)
{
    struct variable *v = declare_variable(p, "sum", f, (struct value){.lsb = 0});
    v->is_var = v->is_sum = true;
    line(p, "var %s: %s = %s;", v->name, stated(p, &f), f.elem == TIR_BOOL ? "false" : "0");
    return p->vars.len - 1;
}

void var_statement(struct program *p)
{
    struct form f = pick_form(p);
    if (f.elem != TIR_BOOL && choose(p->c, 2)) {
        sum_variable(p, f);
        return;
    }
    struct value e = kept(p, &f, grow_firm(p, f));
    struct variable *v = declare_variable(p, "v", f, e);
    v->is_var = true;
    line(p, "var %s: %s = %s;", v->name, stated(p, &f), e.text);
}

// What is added to a sum by every round of the loops around it, made small enough to stay exact.
static bool fits_sum(struct program *p, struct variable *v, struct value *e)
{
    const double trips = p->trips / v->trips;
    const double room = ldexp(1, exact_digits(v->form.elem) - 1);
    if (!is_float(v->form.elem)) {
        v->range.most = INFINITY;
        return true;
    }
    if (!may_err(p)) {
        const int lsb = TIR_MIN(p->grain, v->range.lsb);
        const double left = ldexp(room, lsb) - v->range.most;
        double most = 65536;
        while (most > 1 && most * trips > left)
            most /= 2;
        if (most * trips > left)
            return false;
        *e = held(p, &v->form, *e, most, lsb);
    }
    v->range.most += e->most * trips;
    v->range.lsb = TIR_MIN(v->range.lsb, e->lsb);
    if (e->err > 0 || v->range.err > 0 || v->range.most > ldexp(room, v->range.lsb))
        v->range.err += trips * (e->err + unit(v->form.elem, v->range.most));
    return true;
}

void add_to_sum(struct program *p, uint32_t index, struct value e)
{
    const char *name = p->vars.at[index].name;
    if (p->vars.at[index].form.elem == TIR_BOOL)
        line(p, "%s = %s ^ %s;", name, name, e.text);
    else if (fits_sum(p, &p->vars.at[index], &e))
        line(p, "%s %s %s;", name, choose(p->c, 4) == 1 ? "-=" : "+=", e.text);
}

void assign_statement(struct program *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->vars.len; i++)
        count += p->vars.at[i].is_var;
    if (!count) {
        var_statement(p);
        return;
    }
    uint32_t at = count - 1 - choose(p->c, count), index = 0;
    while (!p->vars.at[index].is_var || at-- > 0)
        index++;
    const struct form f = p->vars.at[index].form;
    const char *name = p->vars.at[index].name;
    if (p->vars.at[index].is_sum) {
        struct form g = f;
        // Growing may move the variables.
        struct value e = fits_product(p, &g) && chance(p->c, 60) ? tamed(p, &g, grow_product(p, &g))
                                                                 : grow(p, f);
        add_to_sum(p, index, e);
        return;
    }
    struct value e = grow_firm(p, f);
    if (is_int(f.elem)) {
        static const char *const ops[] = {"=", "+=", "-=", "*="};
        line(p, "%s %s %s;", name, choose_from(p->c, ops), e.text);
        return;
    }
    if (is_float(f.elem) && choose(p->c, 2)) {
        e.text = say(p, "(%s + %s)", name, e.text);
        e.most += 16;
    }
    line(p, "%s = %s;", name, kept(p, &f, e).text);
}

// ---- branches and loops

static void inner_block(struct program *p)
{
    uint32_t vars = p->vars.len;
    p->indent++;
    p->nesting++;
    grow_block(p, 1 + choose(p->c, 3));
    p->nesting--;
    p->indent--;
    p->vars.len = vars;
}

static void if_statement(struct program *p)
{
    line(p, "if %s {", grow_condition(p));
    inner_block(p);
    if (choose(p->c, 2)) {
        line(p, "} else {");
        inner_block(p);
    }
    line(p, "}");
}

void loop_enter(struct program *p, const char *index, int64_t walks, uint32_t dim)
{
    p->loops++;
    p->trips *= MOST_TRIPS;
    struct variable v = {.name = index,
                         .form = form_scalar(TIR_I64),
                         .range = {.text = say(p, "i64(%s)", index), .most = INFINITY},
                         .depth = p->loops,
                         .trips = p->trips,
                         .walks = walks,
                         .dim = dim};
    vec_push(p->arena, &p->vars, v);
}

void loop_leave(struct program *p, uint32_t vars, double trips)
{
    p->trips = trips;
    p->loops--;
    p->vars.len = vars;
}

static void loop_body(struct program *p, const char *index, int64_t walks, uint32_t dim)
{
    const uint32_t vars = p->vars.len;
    const double outer = p->trips;
    loop_enter(p, index, walks, dim);
    inner_block(p);
    loop_leave(p, vars, outer);
}

static void leave_statement(struct program *p)
{
    if (p->loops)
        line(p, "if %s { %s; }", grow_condition(p), choose(p->c, 2) ? "continue" : "break");
}

static void for_statement(struct program *p)
{
    const char *name = fresh_name(p, "k");
    uint32_t how = choose(p->c, 5);
    if (how < 3 && p->dims.len < 8 && p->loops == 0) { // along a dimension
        const uint32_t dim = new_dim(p, pick_size(p));
        const struct dim d = p->dims.at[dim];
        p->dims.at[dim].is_deep = true;
        p->dims.at[dim].walk = d.step;
        const char *stages = how == 0        ? ""
                             : p->has_stages ? ", stages = STAGES"
                                             : say(p, ", stages = %u", 1 + choose(p->c, 4));
        const char *unroll = choose(p->c, 5) == 4 ? ", unroll = 2" : "";
        if (chance(p->c, 15)) // down
            line(p, "for %s in range(%s, 0, -%s%s%s) {", name, d.name, size_text(p, d.step), stages,
                 unroll);
        else
            line(p, "for %s in range(0, %s, %s%s%s) {", name, d.name, size_text(p, d.step), stages,
                 unroll);
        loop_body(p, name, d.step, dim);
    } else {
        static const char *const tails[] = {"", ", unroll", ", unroll = 2", ", stages = 2"};
        uint32_t begin = choose(p->c, 2), step = 1 + choose(p->c, 2);
        uint32_t trips = choose(p->c, 4);
        const char *end = how == 4 ? say(p, "(%s & 3)", grow_firm(p, form_scalar(TIR_I64)).text)
                                   : say(p, "%u", begin + trips * step);
        const char *tail = tails[how == 4 ? 2 * choose(p->c, 2) : choose(p->c, 4)];
        if (chance(p->c, 15)) // down
            line(p, "for %s in range(%s, %u, -%u%s) {", name, end, begin, step, tail);
        else
            line(p, "for %s in range(%u, %s, %u%s) {", name, begin, end, step, tail);
        loop_body(p, name, step, UINT32_MAX);
    }
    line(p, "}");
}

static void while_statement(struct program *p)
{
    const char *name = fresh_name(p, "n");
    uint32_t trips = choose(p->c, 4);
    const char *also = "";
    line(p, "var %s: i32 = 0;", name);
    if (choose(p->c, 3) == 1) // a variable, whose value may change
        vec_foreach(struct variable, v, &p->vars)
            if (v->form.rank == 0 && v->form.elem == TIR_BOOL)
                also = say(p, " && !%s", v->range.text);
    line(p, "while %s < %u%s {", name, trips, also);
    line(p, "    %s += 1;", name);
    loop_body(p, name, 1, UINT32_MAX);
    line(p, "}");
}

// ---- stores

static struct axis axis_of_tile(const struct program *p, uint32_t i)
{
    const struct variable *v = &p->vars.at[p->tile.at[i]];
    return v->dim == UINT32_MAX ? (struct axis){.fixed = (int64_t)v->trips}
                                : (struct axis){.dim = v->dim};
}

// A tensor of which each tile has a part of its own: an axis for each variable of the tiles loop,
// and others of constant size. *f is the form of the part, the text its slice.
static struct tensor *new_part(struct program *p, enum tir_elem elem, struct form *f,
                               const char **slice)
{
    uint32_t rank = 0;
    struct tensor *t = new_tensor(p, "Y", elem, 0);
    struct tir_text text;
    t->range = (struct value){.lsb = 0};
    tir_text_init(&text, p->arena, 0);
    *f = (struct form){.elem = elem};
    for (uint32_t i = 0; i < p->tile.len; i++) {
        const struct variable *v = &p->vars.at[p->tile.at[i]];
        t->axes[rank++] = axis_of_tile(p, i);
        tir_text_format(&text, "%s%s", i ? ", " : "", v->name);
        if (v->walks > 1) {
            f->shape[f->rank++] = v->walks;
            tir_text_format(&text, ":+%s", size_text(p, v->walks));
        }
    }
    while (rank < TIR_MAX_RANK && (f->rank == 0 || chance(p->c, f->rank == 1 ? 50 : 10))) {
        int64_t size = f->rank < 2 ? pick_size(p) : 1 + (int64_t)choose(p->c, 3);
        if (form_count(f) * size > MOST_ELEMENTS)
            break;
        t->axes[rank++] = (struct axis){.fixed = size};
        f->shape[f->rank++] = size;
        tir_text_format(&text, choose(p->c, 2) ? ", :" : ", 0:+%s", size_text(p, size));
    }
    for (uint32_t i = 0; i < rank; i++)
        if (!t->axes[i].fixed)
            p->dims.at[t->axes[i].dim].is_used = true;
    t->form.rank = rank;
    *slice = text.ptr;
    return t;
}

// What is stored to t from now on.
static void note_range(struct tensor *t, const struct value *v)
{
    t->range.most = TIR_MAX(t->range.most, v->most);
    t->range.lsb = TIR_MIN(t->range.lsb, v->lsb);
    t->range.err = TIR_MAX(t->range.err, v->err);
}

static void note_fill(struct tensor *t)
{
    struct value v = range_of_fill(t->form.elem);
    note_range(t, &v);
}

static void partial_store(struct program *p) // of something that was there before
{
    struct form f;
    const char *slice;
    struct tensor *t = new_part(p, pick_elem(p), &f, &slice);
    const uint32_t at = (uint32_t)(t - p->tensors.at);
    t->role = TENSOR_INOUT;
    note_fill(t);
    const char *name = t->name;
    uint32_t how = choose(p->c, p->loops ? 2 : 3);
    if (how == 2) { // read, changed, written
        struct variable *old = declare_variable(p, "x", f, range_of_fill(f.elem));
        old->range.text = old->name;
        line(p, "let %s = %s[%s];", old->name, name, slice);
    }
    struct value e = grow(p, f);
    if (how == 1)
        line(p, "store(%s[%s], %s, mask = %s%s);", name, slice, e.text,
             grow_firm(p, form_with(f, TIR_BOOL)).text, pick_cache(p));
    else
        line(p, "%s[%s] = %s;", name, slice, e.text);
    note_range(&p->tensors.at[at], &e);
}

// Rows of this tile's part in another order.
static void scatter(struct program *p)
{
    struct form f;
    const char *slice;
    uint32_t first = p->tile.at[0];
    if (p->vars.at[first].walks == 1) {
        partial_store(p);
        return;
    }
    struct tensor *t = new_part(p, pick_elem(p), &f, &slice);
    const uint32_t at = (uint32_t)(t - p->tensors.at);
    t->role = TENSOR_INOUT;
    note_fill(t);
    const char *name = t->name, *start = p->vars.at[first].name;
    const char *rest = strchr(slice, ',');
    static const uint32_t odd[] = {1, 5, 7, 11};
    uint32_t n = (uint32_t)f.shape[0], by = choose_from(p->c, odd);
    while (tir_gcd(n, by) != 1)
        by++;
    const char *index =
        say(p, "i32(%s) + (iota(%u) * %u + %u) %% %u", start, n, by, choose(p->c, n), n);
    struct value e = grow(p, f);
    line(p, "%s[%s%s] = %s;", name, index, rest ? rest : "", e.text);
    note_range(&p->tensors.at[at], &e);
}

static void atomic(struct program *p)
{
    static const enum tir_elem elems[] = {TIR_I32, TIR_U32, TIR_I64, TIR_U64, TIR_F32, TIR_F64};
    static const char *const kinds[] = {"add", "max", "min", "xor", "or", "and"};
    struct form f = {.elem = choose_from(p->c, elems), .rank = choose(p->c, 3)};
    for (uint32_t i = 0; i < f.rank; i++)
        f.shape[i] = pick_size(p);
    struct tensor *t = new_tensor(p, "C", f.elem, TIR_MAX(f.rank, 1));
    const char *name = t->name, *kind = choose_from(p->c, kinds);
    if (is_float(f.elem)) // small whole numbers, whose sum is exact in any order
        kind = kinds[0];
    t->role = TENSOR_ATOMIC;
    for (uint32_t i = 0; i < t->form.rank; i++)
        t->axes[i].fixed = f.rank ? f.shape[i] + (int64_t)choose(p->c, 3) : 3;
    const char *where = "1";
    if (f.rank == 1 && choose(p->c, 2))
        where = grow_index_tile(p, f).text;
    else if (f.rank == 1)
        where = say(p, "0:+%s", size_text(p, f.shape[0]));
    else if (f.rank == 2)
        where = say(p, "0:+%s, 1:+%s", size_text(p, f.shape[0]), size_text(p, f.shape[1]));
    static const char *const words[] = {"",
                                        "",
                                        "",
                                        ", ordering = release",
                                        ", ordering = acquire, scope = gpu",
                                        ", ordering = acq_rel, scope = system",
                                        ", scope = cta"};
    const char *mask =
        chance(p->c, 20) ? say(p, ", mask = %s", grow_firm(p, form_with(f, TIR_BOOL)).text) : "";
    const struct value v = held(p, &f, grow_firm(p, f), 4, 0);
    line(p, "atomic_%s(%s[%s], %s%s%s);", kind, name, where, v.text, mask,
         choose_from(p->c, words));
}

// The old values of a part of the tile's own.
static void exchange(struct program *p)
{
    static const enum tir_elem elems[] = {TIR_I32, TIR_U32, TIR_I64, TIR_U64};
    static const char *const kinds[] = {"cas", "cas", "add", "exchange", "max", "xor"};
    struct form f;
    const char *slice;
    struct tensor *t = new_part(p, choose_from(p->c, elems), &f, &slice);
    const char *name = t->name, *kind = choose_from(p->c, kinds);
    t->role = TENSOR_INOUT;
    note_fill(t);
    struct value e = grow_firm(p, f);
    if (!strcmp(kind, "cas"))
        e.text = say(p, "%s, %s", grow_firm(p, f).text, e.text);
    struct variable *old = declare_variable(p, "x", f, (struct value){.most = INFINITY});
    old->range.text = old->name;
    line(p, "let %s = atomic_%s(%s[%s], %s);", old->name, kind, name, slice, e.text);
}

// A variable as it is, in a part of the tile's own: of the first tiles, the others are dropped.
void keep_variable(struct program *p, uint32_t index)
{
    enum { KEPT = 6 };
    const struct variable v = p->vars.at[index];
    if (v.form.rank + p->tile.len > TIR_MAX_RANK || (v.is_sum && p->loops > v.depth))
        return;
    struct tensor *t = new_tensor(p, "Z", v.form.elem, p->tile.len + v.form.rank);
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    t->role = TENSOR_INOUT;
    for (uint32_t i = 0; i < p->tile.len; i++) {
        const struct variable *m = &p->vars.at[p->tile.at[i]];
        t->axes[i].fixed = KEPT;
        tir_text_format(&text, i ? ", %s / %s" : "%s / %s", m->name, size_text(p, m->walks));
    }
    for (uint32_t i = 0; i < v.form.rank; i++) {
        t->axes[p->tile.len + i].fixed = v.form.shape[i];
        tir_text_format(&text, ", 0:+%s", size_text(p, v.form.shape[i]));
    }
    note_range(t, &v.range);
    line(p, "%s[%s] = %s;", t->name, text.ptr, v.range.text);
}

static void keep_statement(struct program *p)
{
    keep_variable(p, p->vars.len - 1 - choose(p->c, p->vars.len));
}

// A condition that holds, and a line that nobody prints.
static void assert_statement(struct program *p)
{
    struct form f = pick_form(p);
    f.elem = TIR_BOOL;
    const char *c = let(p, &f, grow_firm(p, f)).text;
    line(p, "assert(%s == %s, \"what is equal to itself\");", c, c);
    line(p, "if %s { print(\"not equal {}\", %s);%s }",
         f.rank ? say(p, "any(%s != %s)", c, c) : say(p, "%s != %s", c, c), c,
         choose(p->c, 2) ? " trap();" : "");
    line(p, "static_assert(%s > 0, \"a size\");", size_text(p, pick_size(p)));
    if (p->dims.len)
        line(p, "assume(%s >= 0);", p->dims.at[choose(p->c, p->dims.len)].name);
}

// It brings part of a tensor to a cache, and changes nothing.
static void prefetch_statement(struct program *p)
{
    static const enum tir_elem elems[] = {TIR_F32, TIR_BF16, TIR_I32, TIR_U8};
    uint32_t dim;
    struct tensor *t = new_tensor(p, "X", choose_from(p->c, elems), 2);
    t->axes[0].fixed = pick_size(p);
    t->axes[1].fixed = 64;
    t->is_aligned = true;
    const char *name = t->name, *start = index_near(p, t->axes[0].fixed, &dim);
    line(p, "prefetch(%s[%s:+8, %u:+32]%s);", name, start, 16 * choose(p->c, 4), pick_cache(p));
}

// Two values, one for the other where a condition of the program says so.
static void several_statement(struct program *p)
{
    const struct form f = pick_form(p);
    struct value a = grow(p, f), b = grow(p, f);
    declare(p, "fn pair(a, b) { return a, b; }");
    declare(p, "fn turned(a, b) { return b, a; }");
    const char *c = grow_condition(p);
    const struct value range = {.most = TIR_MAX(a.most, b.most),
                                .lsb = TIR_MIN(a.lsb, b.lsb),
                                .err = TIR_MAX(a.err, b.err)};
    const char *x = declare_variable(p, "x", f, range)->name;
    const char *y = declare_variable(p, "x", f, range)->name;
    line(p, "let %s, %s = %s ? pair(%s, %s) : turned(%s, %s);", x, y, c, a.text, b.text, a.text,
         b.text);
}

void grow_block(struct program *p, uint32_t statements)
{
    typedef void statement(struct program *);
    static statement *const simple[] = {let_statement,    let_statement, assign_statement,
                                        assign_statement, partial_store, keep_statement};
    static statement *const all[] = {
        let_statement,      let_statement,     let_statement, var_statement,
        var_statement,      var_statement,     for_statement, for_statement,
        for_statement,      assign_statement,  if_statement,  atomic,
        while_statement,    partial_store,     scatter,       leave_statement,
        assign_statement,   assert_statement,  exchange,      several_statement,
        laid_out_statement, prefetch_statement};
    for (uint32_t i = 0; i < statements; i++) {
        if (!has_room(p))
            assign_statement(p);
        else if (p->layout_warps && chance(p->c, 25))
            laid_out_statement(p);
        else if (p->loops && i == 0)
            assign_statement(p);
        else if (p->nesting >= 2)
            choose_from(p->c, simple)(p);
        else
            choose_from(p->c, all)(p);
    }
}

void grow_stores(struct program *p)
{
    uint32_t count = 1 + choose(p->c, 2), kept = 0;
    for (uint32_t i = p->vars.len; i-- > 0 && kept < 4 && p->tensors.len < 50;)
        if (chance(p->c, p->vars.at[i].is_var ? 90 : p->vars.at[i].form.rank ? 30 : 5)) {
            keep_variable(p, i);
            kept++;
        }
    for (uint32_t i = 0; i < count; i++) {
        struct form f;
        const char *slice;
        struct tensor *t = new_part(p, pick_elem(p), &f, &slice);
        const uint32_t at = (uint32_t)(t - p->tensors.at);
        t->role = p->step + 1 < p->steps && choose(p->c, 2) ? TENSOR_SCRATCH : TENSOR_OUT;
        struct value e = grow(p, f);
        note_range(&p->tensors.at[at], &e);
        line(p, "%s[%s] = %s;", p->tensors.at[at].name, slice, e.text);
    }
}
