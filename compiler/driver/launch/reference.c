// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter as the reference of a run.
#include "driver/launch/reference.h"
#include "driver/say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/source.h"
#include "front/front.h"
#include "interp/interp.h"
#include "machine/target.h"

struct request {
    const struct tir_reference *reference;
    const struct tir_options *options;
    const struct tir_reference_arg *args;
    uint32_t count;
    bool only_rounding;
    enum tir_elem *rounded;
    tir_error *error;
};

bool tir_reference_find(struct tir_arena *arena, const struct tir_options *options,
                        const struct tir_reference *kernel, struct tir_reference *out,
                        tir_error *error)
{
    const char *text = options->text[TIR_OPTION_AGAINST];
    *out = *kernel;
    if (!text)
        return true;
    const char *colon = strrchr(text, ':');
    tir_str path = colon ? (tir_str){text, (size_t)(colon - text)} : tir_str_of(text);
    out->kernel = colon ? colon + 1 : NULL;
    if (!path.len)
        return true;
    out->path = tir_str_copy(arena, path).ptr;
    return tir_source_read(arena, out->path, &out->source, error);
}

static struct tir_interp_arg argument(const struct tir_reference_arg *arg, uint64_t *bits)
{
    struct tir_interp_arg out = {.elem = arg->elem, .data = bits};
    if (!arg->tensor)
        return out;
    out.rank = arg->tensor->rank;
    out.data = tir_cursor_first(arg->tensor).at;
    memcpy(out.shape, arg->tensor->shape, sizeof(out.shape));
    memcpy(out.strides, arg->tensor->strides, sizeof(out.strides));
    return out;
}

static bool has_output(const struct tir_func *f, tir_str name)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (tir_str_is(name, f->params[i].name))
            return f->params[i].direction != TIR_IN;
    return false;
}

// The arguments in the order of the reference's parameters.
static bool match(const struct tir_func *f, const struct request *r,
                  const struct tir_reference_arg **in_order)
{
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_param *p = &f->params[i];
        uint32_t at = 0;
        while (at < r->count && !tir_str_is(r->args[at].name, p->name))
            at++;
        if (at == r->count)
            return tir_fail(r->error, TIR_ERR_INVALID,
                            "the reference `%s` takes `%s`, which the kernel does not have",
                            f->name, p->name);
        in_order[i] = &r->args[at];
    }
    for (uint32_t i = 0; i < r->count; i++)
        if (r->args[i].is_output && !has_output(f, r->args[i].name))
            return tir_fail(r->error, TIR_ERR_INVALID,
                            "the reference `%s` does not compute `" STR_FMT "`", f->name,
                            STR_ARG(r->args[i].name));
    return true;
}

static bool interpret(struct tir_func *f, const struct request *r, struct tir_arena *arena,
                      const struct tir_interp_options *options)
{
    const uint32_t count = f->param_count;
    const struct tir_reference_arg **in_order =
        arena_array(arena, const struct tir_reference_arg *, count);
    struct tir_interp_arg *args = arena_array(arena, struct tir_interp_arg, count);
    uint64_t *bits = arena_array(arena, uint64_t, count); // little-endian hosts only
    if (!match(f, r, in_order))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        bits[i] = in_order[i]->bits;
        args[i] = argument(in_order[i], &bits[i]);
    }
    if (!options) { // of the configuration that counts
        enum tir_elem *rounded = arena_array(arena, enum tir_elem, count);
        tir_interp_rounding(arena, f, rounded);
        for (uint32_t i = 0; i < count; i++)
            r->rounded[in_order[i] - r->args] = rounded[i];
        if (r->only_rounding)
            return true;
    }
    if (tir_interp_run(f, args, count, options, r->error) == TIR_OK)
        return true;
    tir_error cause = *r->error;
    const char *way_out =
        cause.status == TIR_ERR_UNSUPPORTED && !r->options->given[TIR_OPTION_AGAINST]
            ? "; --check-against compares with another kernel"
            : "";
    return tir_fail(r->error, cause.status, "the reference interpreter: %s%s", cause.message,
                    way_out);
}

// As the compilation has it.
static int64_t shared_bytes(const struct tir_reference *reference)
{
    const struct tir_target *target = tir_target_find(tir_str_of(reference->arch));
    if (!target || !reference->max_shared)
        return target ? target->shared_per_cta : 0;
    return TIR_MIN(target->shared_per_cta, (int64_t)reference->max_shared);
}

static int64_t tensor_columns(const struct tir_reference *reference)
{
    const struct tir_target *target = tir_target_find(tir_str_of(reference->arch));
    return target ? tir_tensor_columns(target) : 0;
}

static bool compile(struct tir_context *cx, const struct request *r, struct tir_module **module)
{
    struct tir_source_importer importer =
        tir_source_importer_of(&cx->arena, r->options, r->reference->path);
    struct tir_front_options front = {.kernel = r->reference->kernel,
                                      .meta_count = r->options->defines.len,
                                      .metas_are_shared = true,
                                      .shared_bytes = shared_bytes(r->reference),
                                      .tensor_columns = tensor_columns(r->reference),
                                      .import = tir_source_import,
                                      .import_user = &importer};
    struct tir_binding *metas = arena_array(&cx->arena, struct tir_binding, front.meta_count);
    for (uint32_t i = 0; i < front.meta_count; i++)
        tir_source_split(r->options->defines.at[i], &metas[i].name, &metas[i].value);
    front.metas = metas;
    if (tir_front_module(cx, tir_str_of(r->reference->path), r->reference->source, &front,
                         module) &&
        (*module)->funcs.len)
        return true;
    struct tir_text text;
    tir_text_init(&text, &cx->arena, 0);
    tir_diags_render(&cx->diags, TIR_DIAG_TEXT, &text);
    tir_say_text(stderr, tir_text_str(&text));
    return tir_fail(r->error, TIR_ERR_INVALID, "the reference %s does not compile",
                    r->reference->path);
}

static bool compile_and_interpret(struct tir_context *cx, const struct request *r)
{
    struct tir_module *module;
    if (!compile(cx, r, &module))
        return false;
    uint32_t kernels = 0, first = 0;
    const struct tir_interp_options only_conditions = {.only_conditions = true};
    vec_foreach(struct tir_func *, it, &module->funcs)
        kernels += (*it)->config <= 1;
    if (kernels > 1)
        return tir_fail(r->error, TIR_ERR_INVALID,
                        "%s has several kernels: --check-against=FILE:KERNEL says which",
                        r->reference->path);
    // Of several configurations the first one whose conditions hold.
    for (uint32_t i = module->funcs.len; i-- > 0 && module->funcs.len > 1;)
        if (interpret(module->funcs.at[i], r, &cx->arena, &only_conditions))
            first = i;
    return interpret(module->funcs.at[first], r, &cx->arena, NULL);
}

bool tir_reference_run(const struct tir_reference *reference, const struct tir_options *options,
                       const struct tir_reference_arg *args, uint32_t count, bool only_rounding,
                       enum tir_elem *rounded, tir_error *error)
{
    const struct request request = {reference, options, args, count, only_rounding, rounded, error};
    struct tir_context *cx = calloc(1, sizeof(*cx));
    bool done;
    if (!cx || setjmp(cx->out_of_memory)) {
        done = tir_fail(error, TIR_ERR_NO_MEMORY, "out of memory in the reference interpreter");
    } else {
        tir_context_init(cx, NULL);
        done = compile_and_interpret(cx, &request);
    }
    if (cx)
        tir_context_finish(cx);
    free(cx);
    return done;
}

// The elements alone, in row-major order; NULL when there is no memory.
static uint8_t *dense(const struct tir_tensor *t)
{
    uint32_t size = tir_elem_size(t->elem);
    uint8_t *out = malloc((size_t)t->count * size + 1);
    if (out && t->size == (uint64_t)t->count * size) // as it is
        return memcpy(out, t->bytes, t->size);
    struct tir_cursor c = tir_cursor_first(t);
    for (int64_t i = 0; out && i < t->count; i++, tir_cursor_next(&c))
        memcpy(out + (size_t)i * size, c.at, size);
    return out;
}

static struct tir_difference allowed(enum tir_elem elem, double rtol, enum tir_elem rounded)
{
    const double own = tir_interp_tolerance(elem);
    const bool more = tir_elem_is_float(elem) && tir_elem_is_float(rounded) &&
                      tir_interp_tolerance(rounded) > own;
    if (rtol >= 0 || !more)
        return (struct tir_difference){.tolerance = rtol < 0 ? own : rtol, .rounded = elem};
    const double coarse = tir_interp_tolerance(rounded);
    return (struct tir_difference){
        .tolerance = coarse, .rounded = rounded, .mean_tolerance = sqrt(own * coarse)};
}

bool tir_difference_is_wrong(const struct tir_difference *d)
{
    return d->mismatches || (d->mean_tolerance > 0 && d->error > d->mean_tolerance);
}

bool tir_reference_compare(const struct tir_tensor *got, const struct tir_tensor *want, double rtol,
                           enum tir_elem rounded, struct tir_difference *out, tir_error *error)
{
    *out = allowed(got->elem, rtol, rounded);
    uint8_t *a = dense(got), *b = dense(want);
    bool done = a && b;
    if (done) {
        struct tir_interp_diff diff;
        tir_interp_compare(got->elem, a, b, got->count, out->tolerance, &diff);
        out->max_abs = diff.max_abs;
        out->max_rel = diff.max_rel;
        out->error = diff.rms > 0 ? diff.error / diff.rms : diff.error;
        out->mismatches = diff.mismatches;
        int64_t rest = diff.first, size = tir_elem_size(got->elem);
        if (diff.mismatches) {
            out->got = tir_scalar_load(got->elem, a + diff.first * size);
            out->want = tir_scalar_load(want->elem, b + diff.first * size);
        }
        for (uint32_t axis = got->rank; diff.mismatches && axis-- > 0; rest /= got->shape[axis])
            out->first[axis] = rest % got->shape[axis];
    } else {
        tir_fail(error, TIR_ERR_NO_MEMORY, "no memory to compare the outputs");
    }
    free(a);
    free(b);
    return done;
}
