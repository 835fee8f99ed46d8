// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code of all variants, after their passes or beside their checks.

#include "compile/compile.h"

bool tir_compile_wants_code(const struct tir_compilation *c)
{
    const uint32_t code = 1u << TIR_OUTPUT_ARTIFACT | 1u << TIR_OUTPUT_HEADER |
                          1u << TIR_OUTPUT_PTX | 1u << TIR_OUTPUT_CUBIN | 1u << TIR_OUTPUT_LLVM;
    return c->request.options.outputs & code && !tir_compile_is_outline(c);
}

static struct tir_nvptx_options options_for(struct tir_compilation *c, struct tir_meter *meter)
{
    const tir_compile_options *o = &c->request.options;
    return (struct tir_nvptx_options){.target = &c->request.target,
                                      .line_info = o->line_info,
                                      .verify = o->verify,
                                      .watchdog = o->watchdog,
                                      .meter = meter,
                                      .want_llvm = o->outputs >> TIR_OUTPUT_LLVM & 1};
}

static bool is_vain(void *user)
{
    struct tir_compilation *c = user;
    return atomic_load(&c->is_code_vain) ||
           (c->meter.is_cancelled && c->meter.is_cancelled(c->meter.user));
}

void tir_compile_generate_beside(struct tir_compilation *c, struct tir_func *const *funcs,
                                 uint32_t count, void (*beside)(void *user, uint32_t i), void *user)
{
    const double start = tir_compile_now_ms();
    struct tir_meter meter = c->meter;
    meter.is_cancelled = is_vain;
    meter.user = c;
    struct tir_nvptx_options options = options_for(c, &meter);
    options.beside_count = count;
    options.beside = beside;
    options.user = user;
    struct tir_diags diags; // of code that nobody has asked for yet
    tir_diags_init(&diags, &c->cx.arena, c->cx.diags.sources);
    c->has_code =
        tir_nvptx_emit(&c->nvptx, &c->cx.arena, &diags, funcs, count, &options, &c->code) &&
        !diags.list.len;
    c->code_steps = meter.steps - c->meter.steps;
    c->beside_ms = tir_compile_now_ms() - start;
}

static bool emit(struct tir_compilation *c)
{
    VEC(struct tir_func *) funcs = {0};
    for (uint32_t i = 0; i < c->kernels.len; i++)
        for (uint32_t j = 0; j < c->kernels.at[i].count; j++)
            vec_push(&c->cx.arena, &funcs, c->kernels.at[i].variants[j]);
    const struct tir_nvptx_options options = options_for(c, &c->meter);
    return tir_nvptx_emit(&c->nvptx, &c->cx.arena, &c->cx.diags, funcs.at, funcs.len, &options,
                          &c->code);
}

bool tir_compile_generate(struct tir_compilation *c)
{
    const bool ok = c->has_code ? tir_meter_take(&c->meter, c->code_steps) : emit(c);
    tir_compile_add_stage(c, "build", c->code.build_ms);
    tir_compile_add_stage(c, "llvm", c->code.llvm_ms);
    tir_compile_add_stage(c, "ptx", c->code.ptx_ms);
    c->outputs[TIR_OUTPUT_LLVM] = c->code.llvm;
    c->outputs[TIR_OUTPUT_PTX] = c->code.ptx;
    return ok;
}
