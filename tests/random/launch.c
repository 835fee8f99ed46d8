// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The launches that a program is tried with, as words of `tirc run`.
#include "program.h"

int64_t granule(const struct dim *d)
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

// Of all tensors of a launch: each launch on each target makes them anew, and compares them. A
// tensor may take so many bytes.
#define MOST_ELEMENTS_MADE (1 << 23)
#define MOST_BYTES         (1 << 26)

static int64_t elements_of(const struct tensor *t, const int64_t *sizes)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < t->form.rank; i++)
        count *= t->axes[i].fixed ? t->axes[i].fixed : sizes[t->axes[i].dim];
    return count;
}

static int64_t bytes_of(const struct tensor *t, const int64_t *sizes)
{
    return elements_of(t, sizes) * TIR_MAX(tir_elems[t->form.elem].bits / 8, 1);
}

// Halves the longest dimension of a tensor, as long as there are tiles in it. False: it cannot.
static bool halve(const struct program *p, const struct tensor *t, int64_t *sizes)
{
    uint32_t longest = UINT32_MAX;
    for (uint32_t i = 0; i < t->form.rank; i++)
        if (!t->axes[i].fixed && (longest == UINT32_MAX || sizes[t->axes[i].dim] > sizes[longest]))
            longest = t->axes[i].dim;
    if (longest == UINT32_MAX)
        return false;
    const struct dim *d = &p->dims.at[longest];
    const int64_t step = d->is_even ? granule(d) : 1;
    const int64_t half = tir_ceil_div(sizes[longest] / 2, step) * step;
    if (half >= sizes[longest])
        return false;
    sizes[longest] = half;
    return true;
}

// Dimensions grow after tensors are made of them: what came out too large is made smaller.
static void keep_small(const struct program *p, int64_t *sizes)
{
    vec_foreach(const struct tensor, t, &p->tensors)
        while (bytes_of(t, sizes) > MOST_BYTES && halve(p, t, sizes))
            continue;
    for (;;) {
        const struct tensor *largest = NULL;
        int64_t all = 0;
        vec_foreach(const struct tensor, t, &p->tensors) {
            all += elements_of(t, sizes);
            if (!largest || elements_of(t, sizes) > elements_of(largest, sizes))
                largest = t;
        }
        if (all <= MOST_ELEMENTS_MADE || !halve(p, largest, sizes))
            return;
    }
}

void make_launch(struct program *p, uint32_t launch, const uint32_t *kinds)
{
    struct tir_text *text = &p->launches[launch];
    tir_text_init(text, p->arena, 0);
    int64_t *sizes = arena_array(p->arena, int64_t, p->dims.len);
    for (uint32_t i = 0; i < p->dims.len; i++)
        sizes[i] = launch_size(&p->dims.at[i], launch, kinds[i % 8] % 6);
    keep_small(p, sizes);
    for (uint32_t i = 0; i < p->dims.len; i++) // what sums of a loop's rounds rely on
        assert(!p->dims.at[i].is_deep || sizes[i] <= MOST_TRIPS * p->dims.at[i].walk);
    for (uint32_t i = 0; i < p->dims.len; i++)
        tir_text_format(text, " %s=%lld", p->dims.at[i].name, (long long)sizes[i]);
    for (uint32_t i = 0; i < p->scalars.len; i++)
        tir_text_format(text, " %s=%lld", p->scalars.at[i].name, (long long)p->scalars.at[i].value);
    for (uint32_t i = 0; i < p->tensors.len; i++) {
        const struct tensor *t = &p->tensors.at[i];
        if (t->role == TENSOR_SCRATCH)
            continue;
        const uint32_t kind = launch == EDGE && !t->is_aligned ? kinds[i % 8] : 0;
        const char *place = kind == 6 ? "pad=1" : kind == 7 ? "offset=1" : "";
        if (t->role == TENSOR_OUT && *place)
            tir_text_format(text, " %s=%s", t->name, place);
        else if (t->role != TENSOR_OUT)
            tir_text_format(text, " %s=%s%s%s", t->name, fill_text(t), *place ? "," : "", place);
    }
}
