// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of no other expression: variables, constants, parameters, indices.
#include <math.h>

#include "rules.h"

static bool is_usable(const struct program *p, const struct variable *v, const struct form *f)
{
    return form_equal(&v->form, f) && !(p->firm && v->range.err > 0) &&
           !(v->is_sum && p->loops > v->depth);
}

bool fits_variable(struct program *p, const struct form *f)
{
    vec_foreach(struct variable, v, &p->vars)
        if (is_usable(p, v, f))
            return true;
    return false;
}

struct value grow_variable(struct program *p, const struct form *f)
{
    uint32_t count = 0;
    vec_foreach(struct variable, v, &p->vars)
        count += is_usable(p, v, f);
    uint32_t at = count - 1 - choose(p->c, count); // the newest is the simplest
    vec_foreach(struct variable, v, &p->vars)
        if (is_usable(p, v, f) && at-- == 0)
            return v->range;
    tir_unreachable();
}

bool fits_constant(struct program *p, const struct form *f)
{
    (void)p;
    (void)f;
    return true;
}

// A literal of the type, and its range.
static struct value literal(struct program *p, enum tir_elem elem)
{
    static const int64_t ints[] = {1, 0, 2, 3, 5, 7, 100, -1};
    static const struct {
        double value;
        int lsb;
    } floats[] = {{1, 0}, {0, 0}, {2, 1}, {-1, 0}, {0.5, -1}, {3, 0}, {-1.5, -1}, {0.25, -2}};
    uint32_t i = choose(p->c, 8);
    if (elem == TIR_BOOL)
        return (struct value){.text = i % 2 ? "false" : "true"};
    if (is_float(elem))
        return (struct value){say(p, "%.2f", floats[i].value), fabs(floats[i].value), floats[i].lsb,
                              0};
    int64_t n = ints[i] < 0 && !is_signed(elem) ? 1 : ints[i];
    if (n > 1 && chance(p->c, 15)) { // by its name
        declare(p, say(p, "const OF_%lld = %lld;", (long long)n, (long long)n));
        return (struct value){.text = say(p, "OF_%lld", (long long)n), .most = 100};
    }
    return (struct value){.text = say(p, "%lld", (long long)n), .most = 100};
}

struct value grow_constant(struct program *p, const struct form *f)
{
    struct value v = literal(p, f->elem);
    if (f->rank == 0) {
        if (f->elem != TIR_BOOL)
            v.text = say(p, "%s(%s)", elem_text(p, f->elem), v.text);
        return v;
    }
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    tir_text_format(&text, "full(%s, %s", v.text, elem_text(p, f->elem));
    for (uint32_t i = 0; i < f->rank; i++)
        tir_text_format(&text, ", %s", size_text(p, f->shape[i]));
    tir_text_char(&text, ')');
    v.text = text.ptr;
    return v;
}

bool fits_scalar(struct program *p, const struct form *f)
{
    (void)p;
    return f->rank == 0;
}

struct value grow_scalar(struct program *p, const struct form *f)
{
    const struct scalar *s = NULL;
    vec_foreach(struct scalar, it, &p->scalars)
        if (it->elem == f->elem)
            s = it;
    if (!s) {
        struct scalar made = {fresh_name(p, "s"), f->elem, (int64_t)choose(p->c, 2) + 1};
        if (f->elem == TIR_BOOL)
            made.value -= 1;
        vec_push(p->arena, &p->scalars, made);
        s = &vec_last(&p->scalars);
    }
    return (struct value){.text = s->name, .most = 2};
}

// Numbers of rows and columns; positions of the tile.
bool fits_index(struct program *p, const struct form *f)
{
    (void)p;
    if (f->elem == TIR_I64)
        return f->rank == 0 && p->vars.len > 0;
    uint32_t large = 0;
    for (uint32_t i = 0; i < f->rank; i++)
        large += f->shape[i] > 1;
    return f->elem == TIR_I32 && f->rank >= 1 && large <= 1;
}

struct value grow_index(struct program *p, const struct form *f)
{
    struct value v = {.most = INFINITY};
    if (f->elem == TIR_I64) {
        uint32_t dim;
        v.text = index_near(p, 1, &dim);
        v.text = say(p, "i64(%s)", v.text);
        return v;
    }
    v.most = 128;
    if (f->rank == 1) {
        v.text = say(p, "iota(%s)", size_text(p, f->shape[0]));
        return v;
    }
    struct form other = *f; // rows(), cols() and index() take any tile of that many
    uint32_t axis = 0;
    while (axis + 1 < f->rank && f->shape[axis] == 1)
        axis++;
    if (f->rank > 2 || choose(p->c, 4) == 3) {
        const uint32_t more = choose(p->c, f->rank);
        other.shape[more] = more == axis ? other.shape[more] : 2;
        struct tir_text zeros;
        tir_text_init(&zeros, p->arena, 0);
        for (uint32_t i = 0; i < f->rank; i++)
            tir_text_format(&zeros, ", %s", size_text(p, other.shape[i]));
        v.text = say(p, "index(zeros(bool%s), axis = %u)", zeros.ptr, axis);
        return v;
    }
    other.shape[!axis] = choose(p->c, 2) ? pick_size(p) : 1;
    vec_foreach(struct variable, x, &p->vars)
        if (x->form.rank == 2 && x->form.shape[axis] == f->shape[axis]) {
            v.text = say(p, "%s(%s)", axis ? "cols" : "rows", x->name);
            return v;
        }
    v.text = say(p, "%s(zeros(bool, %s, %s))", axis ? "cols" : "rows", size_text(p, other.shape[0]),
                 size_text(p, other.shape[1]));
    return v;
}
