// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Outlines: what the variants of a program are, without their code, which is made one by one.
//
// An outline is a compilation that ends where variants begin: its artifact says of each what a
// launch must know to choose it. tir_compile_variant takes one of them into a compilation of its
// own, which goes on from there as always and ends with an artifact of that variant. It reads the
// outline and writes nothing of it, so several can go on at the same time.

#include "compile/compile.h"

#include "pass/pass.h"

// Has the first pass nothing to bind or to fold: is no size given, and no condition stated?
static bool is_settled(const struct tir_compilation *c, const struct tir_func *f)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    return !c->request.options.dim_count &&
           (!yield || yield->operand_count == tir_conditions_at(f));
}

// Binds the dimensions whose size is given or demanded, as the first pass would.
static bool bind_dims(struct tir_compilation *c, struct tir_func *f, const struct tir_binding *dims)
{
    struct tir_pass_cx cx = {.scratch = &c->cx.scratch,
                             .diags = &c->cx.diags,
                             .target = &c->request.target,
                             .meter = &c->meter,
                             .known = dims,
                             .known_count = (uint32_t)c->request.options.dim_count};
    const struct tir_pass_options options = {.run = STR("specialize"), .bisect = -1};
    return tir_run_passes(f, &cx, &options);
}

bool tir_compile_outline(struct tir_compilation *c, const struct tir_binding *dims)
{
    tir_compile_options *o = &c->request.options;
    bool ok = true;
    // Variants are compiled after the caller has taken back the text of these.
    c->request.name = tir_str_copy(&c->cx.arena, c->request.name);
    o->print_after = tir_str_copy(&c->cx.arena, o->print_after);
    o->skip_pass = tir_str_copy(&c->cx.arena, o->skip_pass);
    vec_foreach(struct tir_kernel_code, kernel, &c->kernels)
        for (uint32_t v = 0; v < kernel->count; v++)
            if (!is_settled(c, kernel->variants[v])) {
                kernel->variants[v] = tir_func_clone(kernel->variants[v]); // others have its blocks
                ok = bind_dims(c, kernel->variants[v], dims) && ok;
            }
    return ok;
}

void tir_compile_take_variant(struct tir_compilation *c)
{
    const struct tir_kernel_code *from = c->of_kernel;
    const uint32_t v = c->of_variant;
    c->cx.diags.sources = c->outline->cx.diags.sources;
    struct tir_kernel_code kernel = {.name = from->name,
                                     .params = from->params,
                                     .dims = from->dims,
                                     .dim_count = from->dim_count,
                                     .costs = {from->costs[v]},
                                     .count = 1,
                                     .is_step = from->is_step};
    kernel.variants[0] = from->variants[v]; // which passes copy
    vec_push(&c->cx.arena, &c->kernels, kernel);
}

static bool find_variant(const struct tir_compilation *outline, tir_str entry,
                         const struct tir_kernel_code **kernel, uint32_t *variant)
{
    for (uint32_t i = 0; i < outline->kernels.len; i++) {
        *kernel = &outline->kernels.at[i];
        for (*variant = 0; *variant < (*kernel)->count; ++*variant)
            if (tir_str_is(entry, (*kernel)->variants[*variant]->name))
                return true;
    }
    return false;
}

TIR_API tir_status tir_compile_variant(const tir_compilation *outline, tir_str entry,
                                       tir_compilation **out, tir_error *error)
{
    const struct tir_kernel_code *kernel;
    uint32_t variant;
    *out = NULL;
    if (!tir_compile_is_outline(outline))
        return tir_compile_refuse(error, "the compilation is no outline");
    if (outline->error_count)
        return tir_compile_refuse(error, "the outline has errors");
    if (!find_variant(outline, entry, &kernel, &variant))
        return tir_compile_refuse(error, "the outline has no variant `%.*s`",
                                  (int)TIR_MIN(entry.len, 100), entry.ptr);
    struct tir_request request = outline->request;
    request.options.outputs &= ~(1u << TIR_OUTPUT_OUTLINE);
    request.options.dim_count = 0; // the outline has bound them
    request.options.tuned = (tir_str){NULL, 0};
    // Wishes are for the best variant; that all is synchronised is for each.
    request.required &= variant ? 1u << TIR_WISH_SYNC : UINT32_MAX;
    struct tir_compilation *c = tir_compilation_new(&request, error);
    if (!c)
        return TIR_ERR_NO_MEMORY;
    c->outline = outline;
    c->of_kernel = kernel;
    c->of_variant = variant;
    return tir_compilation_run(c, out, error);
}
