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

const char *form_text(struct program *p, const struct form *f)
{
    struct tir_text text;
    tir_text_init(&text, p->arena, 0);
    tir_text_format(&text, "%s", tir_elems[f->elem].name);
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
    static const enum tir_elem elems[] = {TIR_F32,  TIR_F32,  TIR_F32,  TIR_I32,  TIR_I32, TIR_BF16,
                                          TIR_BF16, TIR_F16,  TIR_F16,  TIR_BOOL, TIR_I64, TIR_U8,
                                          TIR_I8,   TIR_U32,  TIR_F64,  TIR_U16,  TIR_I16, TIR_U64,
                                          TIR_E4M3, TIR_E5M2, TIR_TF32, TIR_F32,  TIR_I32};
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

// ---- one tiles loop

static void tile_variable(struct program *p, struct tir_text *names, struct tir_text *extents,
                          int64_t *elements)
{
    const int64_t most = chance(p->c, 15) ? MOST_ELEMENTS : MOST_ELEMENTS / 4;
    int64_t size = pick_size(p);
    while (size > 1 && size * *elements > most)
        size = size / 3 + 1;
    *elements *= size;
    struct variable v = {.name = fresh_name(p, "m"),
                         .form = form_scalar(TIR_I64),
                         .walks = size,
                         .trips = 1,
                         .dim = UINT32_MAX};
    v.range = (struct value){.text = v.name, .most = 1 << 20};
    uint32_t how = choose(p->c, 8);
    const char *comma = names->len ? ", " : "";
    tir_text_format(names, "%s%s", comma, v.name);
    if (how == 7) { // of constant size
        v.trips = 1 + choose(p->c, 3);
        v.walks = 1;
        tir_text_format(extents, "%s%u", comma, (uint32_t)v.trips);
    } else {
        bool is_old = p->step > 0 && p->dims.len && choose(p->c, 2);
        v.dim = is_old ? choose(p->c, p->dims.len) : new_dim(p, v.walks);
        struct dim *d = &p->dims.at[v.dim];
        const char *name = d->name;
        d->walk = d->walk ? TIR_MIN(d->walk, v.walks) : v.walks;
        if (how == 6) {
            v.walks = 1;
            p->dims.at[v.dim].is_single = true;
        }
        if (v.walks == 1)
            tir_text_format(extents, "%s%s", comma, name);
        else
            tir_text_format(extents, "%s%s by %s", comma, name, size_text(p, v.walks));
    }
    vec_push(p->arena, &p->tile, p->vars.len);
    vec_push(p->arena, &p->vars, v);
}

static void tiles_loop(struct program *p, uint32_t statements)
{
    static const char *const orders[] = {
        "", "", "", ", order = column_major", ", order = row_major", ", order = heavy_first"};
    static const char *const walks[] = {"",
                                        "",
                                        "",
                                        "",
                                        ", persistent",
                                        ", persistent",
                                        ", persistent, store_role",
                                        ", cluster = (2, 1)"};
    struct tir_text names, extents;
    const uint32_t vars = p->vars.len;
    const uint32_t count = 1 + choose(p->c, 3);
    tir_text_init(&names, p->arena, 0);
    tir_text_init(&extents, p->arena, 0);
    int64_t elements = 1;
    p->tile.len = 0;
    p->cost = 0;
    for (uint32_t i = 0; i < count; i++)
        tile_variable(p, &names, &extents, &elements);
    const char *order = choose_from(p->c, orders);
    if (count > 1 && choose(p->c, 6) == 5)
        order = ", order = grouped(2)";
    const char *walk = walks[choose(p->c, count > 1 ? 8 : 7)];
    if (count == 3 && strstr(walk, "cluster"))
        walk = ", cluster = (1, 2, 1)";
    line(p, count > 1 ? "for (%s) in tiles(%s%s%s) {" : "for %s in tiles(%s%s%s) {", names.ptr,
         extents.ptr, order, walk);
    p->indent++;
    grow_block(p, statements);
    grow_stores(p);
    p->indent--;
    line(p, "}");
    p->vars.len = vars;
}

// ---- launches

enum { ALIGNED, ODD, EDGE };

static int64_t granule(const struct dim *d)
{
    return d->walk ? d->walk : TIR_MAX(d->step, 1);
}

// A size for a dimension: of the first launch whole tiles, of the others anything.
static int64_t launch_size(const struct dim *d, uint32_t launch, uint32_t kind)
{
    const int64_t few[] = {2, 1, 3, 4, 0, 5};
    const int64_t step = granule(d), deep = d->is_deep ? 2 : 1;
    const int64_t whole[] = {1, 2, 1, 2, 1, 3};
    const int64_t odd[] = {step + 1, step - 1, 1, deep * step - 1, deep * step + 3, 5};
    const int64_t edge[] = {step, 0, step + 1, deep * 2 * step, 5, 1};
    int64_t size = launch == ALIGNED ? whole[kind] * step * deep
                   : launch == ODD   ? odd[kind]
                                     : edge[kind];
    if (step > 64 && !d->is_deep)
        size = TIR_MIN(size, step + 3);
    if (d->is_single)
        size = few[kind];
    return d->is_even ? tir_ceil_div(size, step) * step : size;
}

static const char *fill_text(const struct tensor *t)
{
    if (t->form.elem == TIR_BOOL)
        return "randint:0:1";
    if (is_float(t->form.elem))
        return t->range.lsb <= -60 && t->role == TENSOR_IN ? "rand:-1:1" : "randint:-3:3";
    return is_signed(t->form.elem) ? "randint:-8:7" : "randint:0:15";
}

static void make_launch(struct program *p, uint32_t launch, const uint32_t *kinds)
{
    struct tir_text *text = &p->launches[launch];
    tir_text_init(text, p->arena, 0);
    for (uint32_t i = 0; i < p->dims.len; i++)
        tir_text_format(text, " %s=%lld", p->dims.at[i].name,
                        (long long)launch_size(&p->dims.at[i], launch, kinds[i % 8] % 6));
    for (uint32_t i = 0; i < p->scalars.len; i++)
        tir_text_format(text, " %s=%lld", p->scalars.at[i].name, (long long)p->scalars.at[i].value);
    for (uint32_t i = 0; i < p->tensors.len; i++) {
        const struct tensor *t = &p->tensors.at[i];
        if (t->role == TENSOR_SCRATCH)
            continue;
        const char *place = launch == EDGE && kinds[i % 8] == 6   ? "pad=1"
                            : launch == EDGE && kinds[i % 8] == 7 ? "offset=1"
                                                                  : "";
        if (t->role == TENSOR_OUT && *place)
            tir_text_format(text, " %s=%s", t->name, place);
        else if (t->role != TENSOR_OUT)
            tir_text_format(text, " %s=%s%s%s", t->name, fill_text(t), *place ? "," : "", place);
    }
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
                        tir_elems[t->form.elem].name);
        for (uint32_t k = 0; k < t->form.rank; k++)
            if (t->axes[k].fixed)
                tir_text_format(out, "%s%lld", k ? ", " : "", (long long)t->axes[k].fixed);
            else
                tir_text_format(out, "%s%s", k ? ", " : "", p->dims.at[t->axes[k].dim].name);
        tir_text_char(out, ']');
        comma = ", ";
    }
    vec_foreach(struct scalar, s, &p->scalars)
        tir_text_format(out, "%s%s: %s", comma, s->name, tir_elems[s->elem].name);
}

static void scratch_tensors(struct program *p, struct tir_text *out)
{
    for (uint32_t i = 0; i < p->tensors.len; i++) {
        const struct tensor *t = &p->tensors.at[i];
        if (t->role != TENSOR_SCRATCH)
            continue;
        tir_text_format(out, "    scratch %s: %s[", t->name, tir_elems[t->form.elem].name);
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

static const char *whole_text(struct program *p)
{
    struct tir_text out;
    tir_text_init(&out, p->arena, 0);
    vec_foreach(const char *, function, &p->functions)
        tir_text_format(&out, "%s\n", *function);
    tir_text_format(&out, "kernel k");
    if (p->has_metas)
        tir_text_format(&out, "<BM = %lld, BN = %lld, BK = %lld>", (long long)p->sizes[0],
                        (long long)p->sizes[1], (long long)p->sizes[2]);
    tir_text_char(&out, '(');
    parameters(p, &out);
    tir_text_char(&out, ')');
    vec_foreach(struct dim, d, &p->dims)
        if (d->is_even)
            tir_text_format(&out, " where %s %% %lld == 0", d->name, (long long)granule(d));
    tir_text_format(&out, "\n{\n");
    scratch_tensors(p, &out);
    tir_text_add(&out, tir_text_str(&p->body));
    tir_text_format(&out, "}\n");
    return out.ptr;
}

void program_make(struct program *p, struct tir_arena *arena, struct choices *c)
{
    static const int64_t sizes[] = {16, 32, 8, 64, 24, 4, 48, 5, 3, 128, 1, 2, 96, 33, 7, 64, 32};
    uint32_t kinds[MOST_LAUNCHES][8];
    *p = (struct program){.arena = arena, .c = c, .indent = 1, .trips = 1};
    tir_text_init(&p->body, arena, 0);
    for (uint32_t i = 0; i < MOST_LAUNCHES; i++)
        for (uint32_t k = 0; k < 8; k++)
            kinds[i][k] = choose(c, i == EDGE ? 8 : 6);
    for (uint32_t i = 0; i < 3; i++)
        p->sizes[i] = choose_from(c, sizes);
    p->has_metas = chance(c, 25);
    p->loose = chance(c, 15);
    p->grain = chance(c, 50) ? -4 : 0;
    p->max_depth = 2 + choose(c, 4);
    p->is_even = chance(c, 10);
    p->steps = chance(c, 12) ? 2 + choose(c, 2) : 1;
    const uint32_t statements = choose(c, 8);
    for (; p->step < p->steps; p->step++)
        tiles_loop(p, statements);
    name_all_dims(p);
    vec_foreach(struct dim, d, &p->dims)
        d->is_even = p->is_even && granule(d) > 1 && !d->is_single;
    p->source = whole_text(p);
    for (p->launch_count = 0; p->launch_count < MOST_LAUNCHES; p->launch_count++)
        make_launch(p, p->launch_count, kinds[p->launch_count]);
}
