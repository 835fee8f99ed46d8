// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter as the reference of a run.
#include "driver/reference.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/source.h"
#include "front/front.h"
#include "interp/interp.h"

struct request {
    tir_str name, source;
    const struct tir_options *options;
    const char *kernel;
    const struct tir_reference_arg *args;
    uint32_t count;
    tir_error *error;
};

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

static bool interpret(struct tir_func *f, const struct request *r, struct tir_arena *arena)
{
    struct tir_interp_arg *args = arena_array(arena, struct tir_interp_arg, r->count);
    uint64_t *bits = arena_array(arena, uint64_t, r->count); // little-endian hosts only
    for (uint32_t i = 0; i < r->count; i++) {
        bits[i] = r->args[i].bits;
        args[i] = argument(&r->args[i], &bits[i]);
    }
    if (tir_interp_run(f, args, r->count, NULL, r->error) == TIR_OK)
        return true;
    tir_error cause = *r->error;
    return tir_fail(r->error, cause.status, "the reference interpreter: %s", cause.message);
}

static bool compile_and_interpret(struct tir_context *cx, const struct request *r)
{
    struct tir_front_options front = {.kernel = r->kernel,
                                      .meta_count = r->options->defines.len,
                                      .import = tir_source_import,
                                      .import_user = &cx->arena};
    struct tir_binding *metas = arena_array(&cx->arena, struct tir_binding, front.meta_count);
    for (uint32_t i = 0; i < front.meta_count; i++)
        tir_source_split(r->options->defines.at[i], &metas[i].name, &metas[i].value);
    front.metas = metas;
    struct tir_module *module;
    if (!tir_front_module(cx, r->name, r->source, &front, &module) || !module->funcs.len)
        return tir_fail(r->error, TIR_ERR_INTERNAL,
                        "the reference: the source compiled once, but not twice");
    return interpret(module->funcs.at[0], r, &cx->arena);
}

bool tir_reference_run(tir_str name, tir_str source, const struct tir_options *options,
                       const char *kernel, const struct tir_reference_arg *args, uint32_t count,
                       tir_error *error)
{
    const struct request request = {name, source, options, kernel, args, count, error};
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

bool tir_reference_compare(const struct tir_tensor *got, const struct tir_tensor *want, double rtol,
                           struct tir_difference *out, tir_error *error)
{
    *out = (struct tir_difference){.tolerance = rtol < 0 ? tir_interp_tolerance(got->elem) : rtol};
    uint8_t *a = dense(got), *b = dense(want);
    bool done = a && b;
    if (done) {
        struct tir_interp_diff diff;
        tir_interp_compare(got->elem, a, b, got->count, out->tolerance, &diff);
        out->max_abs = diff.max_abs;
        out->max_rel = diff.max_rel;
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
