// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A whole program: its tiles loops, its header, and the launches it is tried with.
#include "program.h"

#include "rules.h"

// ---- text

const char *say(struct program *p, const char *format, ...)
{
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    va_list args;
    va_start(args, format);
    tir_text_vformat(&text, format, args);
    va_end(args);
    return text.ptr;
}

void line(struct program *p, const char *format, ...)
{
    va_list args;
    tir_text_format(&p->body, "%*s", (int)p->indent * 4, "");
    va_start(args, format);
    tir_text_vformat(&p->body, format, args);
    va_end(args);
    tir_text_char(&p->body, '\n');
}

const char *fresh_name(struct program *p, const char *stem)
{
    return say(p, "%s%u", stem, p->names++);
}

void declare(struct program *p, const char *function)
{
    vec_foreach(const char *, it, &p->functions)
        if (!strcmp(*it, function))
            return;
    vec_push(p->arena, &p->functions, function);
}

void import(struct program *p, const char *text)
{
    vec_foreach(const char *, it, &p->imports)
        if (!strcmp(*it, text))
            return;
    vec_push(p->arena, &p->imports, text);
}

// ---- forms

struct form form_scalar(enum tir_elem elem)
{
    return (struct form){.elem = elem};
}

struct form form_with(struct form f, enum tir_elem elem)
{
    f.elem = elem;
    return f;
}

bool form_equal(const struct form *a, const struct form *b)
{
    return a->elem == b->elem && a->rank == b->rank &&
           !memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0]));
}

int64_t form_count(const struct form *f)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < f->rank; i++)
        count *= f->shape[i];
    return count;
}

const char *size_text(struct program *p, int64_t size)
{
    static const char *const names[] = {"BM", "BN", "BK"};
    for (uint32_t i = 0; p->has_metas && i < TIR_COUNT_OF(names); i++)
        if (p->sizes[i] == size && size > 1)
            return names[i];
    return say(p, "%lld", (long long)size);
}

const char *elem_text(const struct program *p, enum tir_elem elem)
{
    return elem == p->named ? "T" : tir_elems[elem].name;
}

const char *form_text(struct program *p, const struct form *f)
{
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    tir_text_format(&text, "%s", elem_text(p, f->elem));
    for (uint32_t i = 0; i < f->rank; i++)
        tir_text_format(&text, "%s%s", i ? ", " : "[", size_text(p, f->shape[i]));
    if (f->rank)
        tir_text_char(&text, ']');
    return text.ptr;
}

int64_t pick_size(struct program *p)
{
    return p->sizes[choose(p->c, TIR_COUNT_OF(p->sizes))];
}

enum tir_elem pick_elem(struct program *p)
{
    static const enum tir_elem elems[] = {
        TIR_F32,  TIR_F32,  TIR_F32,  TIR_I32, TIR_I32, TIR_BF16, TIR_BF16, TIR_F16, TIR_F16,
        TIR_BOOL, TIR_I64,  TIR_U8,   TIR_I8,  TIR_U32, TIR_F64,  TIR_U16,  TIR_I16, TIR_U64,
        TIR_E4M3, TIR_E5M2, TIR_TF32, TIR_F32, TIR_I32, TIR_E3M2, TIR_E2M3};
    static const enum tir_elem wide[] = {TIR_F32, TIR_BF16, TIR_F32, TIR_F16, TIR_F32, TIR_E4M3};
    if (p->is_wide && chance(p->c, 80))
        return choose_from(p->c, wide);
    return choose_from(p->c, elems);
}

uint32_t new_dim(struct program *p, int64_t step)
{
    static const char *const names[] = {"M", "N", "K", "H", "Q", "R", "S", "U", "V", "W"};
    const uint32_t i = p->dims.len;
    struct dim d = {.name = i < TIR_COUNT_OF(names) ? names[i] : say(p, "D%u", i), .step = step};
    vec_push(p->arena, &p->dims, d);
    return i;
}

// ---- the whole

static void parameters(struct program *p, struct tir_text *out)
{
    static const char *const words[] = {[TENSOR_IN] = "",
                                        [TENSOR_OUT] = "out ",
                                        [TENSOR_INOUT] = "inout ",
                                        [TENSOR_ATOMIC] = "inout "};
    const char *comma = "";
    for (uint32_t i = 0; i < p->tensors.len; i++) {
        const struct tensor *t = &p->tensors.at[i];
        if (t->role == TENSOR_SCRATCH)
            continue;
        tir_text_format(out, "%s%s: %s%s[", comma, t->name, words[t->role],
                        elem_text(p, t->form.elem));
        for (uint32_t k = 0; k < t->form.rank; k++)
            if (t->axes[k].fixed)
                tir_text_format(out, "%s%lld", k ? ", " : "", (long long)t->axes[k].fixed);
            else
                tir_text_format(out, "%s%s", k ? ", " : "",
                                t->axes[k].stated ? t->axes[k].stated
                                                  : p->dims.at[t->axes[k].dim].name);
        tir_text_char(out, ']');
        comma = ", ";
    }
    vec_foreach(struct scalar, s, &p->scalars)
        tir_text_format(out, "%s%s: %s", comma, s->name, elem_text(p, s->elem));
}

static void scratch_tensors(struct program *p, struct tir_text *out)
{
    for (uint32_t i = 0; i < p->tensors.len; i++) {
        const struct tensor *t = &p->tensors.at[i];
        if (t->role != TENSOR_SCRATCH)
            continue;
        tir_text_format(out, "    scratch %s: %s[", t->name, elem_text(p, t->form.elem));
        for (uint32_t k = 0; k < t->form.rank; k++)
            if (t->axes[k].fixed)
                tir_text_format(out, "%s%lld", k ? ", " : "", (long long)t->axes[k].fixed);
            else
                tir_text_format(out, "%s%s", k ? ", " : "", p->dims.at[t->axes[k].dim].name);
        tir_text_format(out, "];\n");
    }
}

static void name_all_dims(struct program *p) // a dimension is known by the tensors that have it
{
    for (uint32_t i = 0; i < p->dims.len; i++) {
        bool is_param = false;
        vec_foreach(struct tensor, t, &p->tensors)
            for (uint32_t k = 0; t->role != TENSOR_SCRATCH && k < t->form.rank; k++)
                is_param |= !t->axes[k].fixed && t->axes[k].dim == i;
        if (!is_param)
            new_tensor(p, "X", TIR_U8, 1)->axes[0].dim = i;
    }
}

// Some inputs have dimensions that are expressions, where another parameter has the dimension.
static void state_sizes(struct program *p)
{
    static const char *const ways[][2] = {// in front of the dimension, and after it
                                          {"2 * ", ""},
                                          {"", " + 3"},
                                          {"", " * 2 + 1"},
                                          {"3 * (", " + 1)"},
                                          {"max(", ", 5)"}};
    for (uint32_t i = 0; i < p->tensors.len; i++) {
        struct axis *axis = &p->tensors.at[i].axes[0];
        bool is_known = false;
        if (p->tensors.at[i].role != TENSOR_IN || !p->tensors.at[i].form.rank || axis->fixed)
            continue;
        vec_foreach(const struct tensor, t, &p->tensors)
            for (uint32_t k = 0; t->role != TENSOR_SCRATCH && k < t->form.rank; k++)
                is_known |= &t->axes[k] != axis && !t->axes[k].fixed && !t->axes[k].stated &&
                            t->axes[k].dim == axis->dim;
        const char *name = p->dims.at[axis->dim].name;
        if (!is_known || !chance(p->c, 10))
            continue;
        const uint32_t way = choose(p->c, TIR_COUNT_OF(ways));
        axis->stated = say(p, "%s%s%s", ways[way][0], name, ways[way][1]);
    }
}

static void metas(const struct program *p, struct tir_text *out)
{
    static const char *const names[] = {"BM", "BN", "BK"};
    const char *before = "<";
    for (uint32_t i = 0; p->has_metas && i < TIR_COUNT_OF(names); i++, before = ", ")
        tir_text_format(out, "%s%s = %lld", before, names[i], (long long)p->sizes[i]);
    if (p->has_stages) {
        tir_text_format(out, "%sSTAGES = 2", before);
        before = ", ";
    }
    if (p->named != TIR_NONE) {
        tir_text_format(out, "%sT%s = %s", before, p->has_metas ? ": type" : "",
                        tir_elems[p->named].name);
        before = ", ";
    }
    if (*before == ',')
        tir_text_char(out, '>');
}

// The same two configurations, as lists give them: some are not this kernel's, one is there twice.
static void list_of_stages(const struct program *p, struct tir_text *out)
{
    tir_text_format(out,
                    "configs stages { config few config(STAGES = 3%s) config(CTAS = 2) }\n"
                    "configs few { config(STAGES = 1) config(STAGES = 5, CTAS = 1) }\n",
                    p->needs);
}

static const char *whole_text(struct program *p)
{
    struct tir_text out;
    tir_text_init(&out, p->arena, 0);
    vec_foreach(const char *, text, &p->imports)
        tir_text_format(&out, "%s\n", *text);
    vec_foreach(const char *, function, &p->functions)
        tir_text_format(&out, "%s\n", *function);
    if (p->lists_stages)
        list_of_stages(p, &out);
    tir_text_format(&out, "kernel k");
    metas(p, &out);
    tir_text_char(&out, '(');
    parameters(p, &out);
    tir_text_char(&out, ')');
    vec_foreach(struct dim, d, &p->dims)
        if (d->is_even)
            tir_text_format(&out, " where %s %% %lld == 0", d->name, (long long)granule(d));
    if (p->lists_stages)
        tir_text_format(&out, " config stages config few");
    else if (p->has_stages)
        tir_text_format(&out, " config(STAGES = 1) config(STAGES = 3%s)", p->needs);
    if (!p->is_contracted)
        tir_text_format(&out, " contract(off)");
    tir_text_format(&out, "\n{\n");
    scratch_tensors(p, &out);
    tir_text_add(&out, tir_text_str(&p->body));
    tir_text_format(&out, "}\n");
    return out.ptr;
}

void program_make(struct program *p, struct tir_arena *arena, struct choices *c)
{
    static const int64_t sizes[] = {16, 32, 8,  64, 24, 4, 16,  5,  3, 48, 1,
                                    2,  32, 16, 64, 33, 7, 128, 96, 8, 32, 16};
    static const char *const needs[] = {"", "", ", needs = wgmma", ", needs = tma",
                                        ", needs = tcgen05"};
    static const enum tir_elem named[] = {TIR_F32, TIR_BF16, TIR_F16, TIR_I32, TIR_F64, TIR_U8};
    uint32_t kinds[MOST_LAUNCHES][MOST_PARAM_KINDS];
    *p = (struct program){.arena = arena, .c = c, .indent = 1, .trips = 1};
    // Choices that follow one another, so that a kind can be asked for by number.
    static const enum program_kind others[] = {TILES, TILES, TILES, TILES, PAIR, PAIR, ROLES};
    enum program_kind kind = choose(c, PROGRAM_KINDS + TIR_COUNT_OF(others));
    if (kind >= PROGRAM_KINDS)
        kind = others[kind - PROGRAM_KINDS];
    const struct grow_rule *outer = &grow_rules[choose(c, grow_rule_count)];
    const struct grow_rule *inner = &grow_rules[choose(c, grow_rule_count)];
    p->has_roles = kind == ROLES;
    tir_text_init(&p->body, arena, 0);
    for (uint32_t i = 0; i < MOST_LAUNCHES; i++)
        for (uint32_t k = 0; k < MOST_PARAM_KINDS; k++)
            kinds[i][k] = choose(c, i == EDGE ? 8 : 6);
    assert(c->count == WIDE_CHOICE);
    p->is_wide = chance(c, 20);
    for (uint32_t i = 0; i < 3; i++)
        p->sizes[i] = p->is_wide ? 64 >> (choose(c, 5) == 4) : choose_from(c, sizes);
    p->has_metas = chance(c, 25);
    p->has_stages = chance(c, 8);
    p->needs = choose_from(c, needs);
    p->lists_stages = p->has_stages && chance(c, 50);
    p->named = chance(c, 15) ? choose_from(c, named) : TIR_NONE;
    p->layout_warps = chance(c, 20) && kind == TILES ? 1 << choose(c, 4) : 0;
    for (uint32_t i = 0; p->layout_warps && !p->is_wide && i < 3; i++)
        p->sizes[i] = 4 << choose(c, 5);
    p->loose = chance(c, 25);
    p->grain = chance(c, 50) ? -4 : 0;
    p->max_depth = 2 + choose(c, 4);
    p->is_even = chance(c, 10);
    p->is_contracted = !chance(c, 15);
    p->steps = chance(c, 12) && kind == TILES ? 2 + choose(c, 2) : 1;
    const uint32_t statements = choose(c, 6);
    if (kind == PAIR)
        pair_loop(p, outer, inner);
    else if (kind == ROLES)
        roles(p);
    else
        for (; p->step < p->steps; p->step++)
            tiles_loop(p, statements);
    name_all_dims(p);
    vec_foreach(struct dim, d, &p->dims)
        d->is_even = p->is_even && granule(d) > 1 && !d->is_single;
    state_sizes(p);
    p->source = whole_text(p);
    const uint32_t launches = chance(c, 40) ? MOST_LAUNCHES : 2;
    for (p->launch_count = 0; p->launch_count < launches; p->launch_count++)
        make_launch(p, p->launch_count, kinds[p->launch_count]);
}
