// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel on a device, with its arguments.
//
// The order matters: the device is opened first, since it decides what is compiled for; the
// artifact then says which values are needed. Outputs are copied before the launch, so that the
// reference starts from the same bytes, those of an inout tensor included.
#include "driver/launch/session.h"

#include <stdio.h>

#include "driver/compile.h"
#include "driver/emu/runtime.h"
#include "driver/fail.h"
#include "driver/launch/reference.h"
#include "driver/source.h"
#include "driver/value/element.h"

// ---- device and kernel

bool tir_session_open(struct tir_session *s)
{
    const char *spec = s->options->text[TIR_OPTION_DEVICE];
    FILE *log = s->options->given[TIR_OPTION_JSON] ? stderr : stdout;
    if (!tir_emu_runtime(s->options, s->schedule, log, s->timeline, &s->runtime, s->error) ||
        tir_rt_device_open(s->runtime, spec ? spec : "auto", &s->device, s->error))
        return false;
    const tir_rt_device_info *device = tir_rt_device_describe(s->device);
    static const enum tir_option emu_only[] = {TIR_OPTION_EMU_CHECK, TIR_OPTION_SCHEDULE,
                                               TIR_OPTION_EXPLORE, TIR_OPTION_THREADS};
    for (size_t i = 0; i < TIR_COUNT_OF(emu_only); i++)
        if (s->options->given[emu_only[i]] && device->kind != TIR_RT_EMU)
            return tir_fail(
                s->error, TIR_ERR_INVALID,
                "--emu-check, --schedule, --explore and --emu-threads need --device=emu");
    const char *arch = s->options->text[TIR_OPTION_ARCH];
    s->arch = arch ? arch : tir_compile_arch_for(device->arch);
    return s->arch || tir_fail(s->error, TIR_ERR_UNSUPPORTED,
                               "%s (%s) is %s: GPUs from compute capability 8.0 are needed",
                               device->spec, device->name, device->arch);
}

bool tir_session_compile(struct tir_session *s, const struct tir_options *options, bool quiet,
                         tir_rt_module **out)
{
    const tir_rt_device_info *device = tir_rt_device_describe(s->device);
    const bool is_emulator = device->kind == TIR_RT_EMU;
    struct tir_compile_request request = {.arena = s->arena,
                                          .options = options,
                                          .path = s->path,
                                          .source = s->source,
                                          .arch = s->arch,
                                          .max_shared = device->max_shared,
                                          .outputs = 1u << TIR_OUTPUT_ARTIFACT,
                                          .quiet = quiet,
                                          .line_info = is_emulator}; // findings name source lines
    request.log = s->options->given[TIR_OPTION_JSON] ? stderr : stdout;
    tir_compilation *compilation = NULL;
    *out = NULL;
    bool done = tir_compile_source(&request, &compilation, s->error);
    tir_str artifact =
        done ? tir_compilation_output(compilation, TIR_OUTPUT_ARTIFACT) : (tir_str){NULL, 0};
    done = done && !tir_rt_module_load(s->device, artifact.ptr, artifact.len, out, s->error);
    tir_compilation_destroy(compilation);
    return done;
}

static bool pick_kernel(struct tir_session *s)
{
    const tir_artifact_desc *desc = tir_rt_module_describe(s->module);
    const char *name = s->options->text[TIR_OPTION_KERNEL];
    struct tir_text names;
    uint32_t count = 0; // of kernels that are no steps; steps come after their kernels
    tir_text_init(&names, s->arena, 0);
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        if (!desc->kernels[i].is_step)
            tir_text_format(&names, "%s%.*s", count++ ? ", " : "", (int)desc->kernels[i].name.len,
                            desc->kernels[i].name.ptr);
    if (!desc->kernel_count)
        return tir_fail(s->error, TIR_ERR_INVALID, "%s has no kernel", s->path);
    if (!name && count > 1)
        return tir_fail(s->error, TIR_ERR_INVALID, "%s has several kernels: --kernel is one of %s",
                        s->path, names.ptr);
    tir_str wanted = name ? tir_str_of(name) : desc->kernels[0].name;
    if (tir_rt_module_kernel(s->module, wanted, &s->kernel, s->error))
        return false;
    s->info = tir_rt_kernel_describe(s->kernel);
    return true;
}

uint32_t tir_session_config(const tir_artifact_kernel *info, uint32_t variant)
{
    return variant < info->variant_count ? info->variants[variant].config
                                         : info->sequences[variant - info->variant_count].config;
}

bool tir_session_load(struct tir_session *s)
{
    return tir_source_read(s->arena, s->path, &s->source, s->error) &&
           tir_session_compile(s, s->options, false, &s->module) && pick_kernel(s);
}

// ---- arguments

static tir_rt_arg scalar_argument(const struct tir_bound *p)
{
    tir_rt_arg arg = {.kind = TIR_RT_SCALAR, .as.scalar.element = p->param->element};
    bool wide =
        p->scalar.elem == TIR_F32 || p->scalar.elem == TIR_TF32 || p->scalar.elem == TIR_F64;
    if (wide)
        arg.as.scalar.value.f = p->scalar.f;
    else if (tir_elem_is_float(p->scalar.elem))
        arg.as.scalar.value.u = p->scalar.bits;
    else
        arg.as.scalar.value.i = p->scalar.i; // unsigned: the same bits
    return arg;
}

static bool upload(struct tir_session *s, uint32_t i)
{
    struct tir_bound *p = &s->bind.params[i];
    const struct tir_tensor *t = &p->tensor;
    if (p->param->kind == TIR_PARAM_SCALAR) {
        s->args[i] = scalar_argument(p);
        return true;
    }
    if (tir_param_is_output(p->param) && !tir_tensor_clone(&s->wants[i], t, s->error))
        return false;
    bool has_contents =
        p->param->direction == TIR_DIRECTION_INOUT || p->spec.fill != TIR_FILL_DEFAULT;
    if (tir_param_is_output(p->param) && has_contents &&
        !tir_tensor_clone(&s->starts[i], t, s->error))
        return false;
    if (tir_rt_buffer_create(s->device, t->size, &s->buffers[i], s->error) ||
        tir_rt_buffer_write(s->buffers[i], 0, t->bytes, t->size, NULL, s->error))
        return false;
    uint64_t base = tir_rt_buffer_address(s->buffers[i]);
    uint64_t skip = t->size ? (uint64_t)t->offset * tir_elem_size(t->elem) : 0;
    s->args[i] = tir_rt_arg_tensor(base + skip, p->param->element, t->rank, t->shape, t->strides);
    return true;
}

bool tir_session_bind(struct tir_session *s, const char *const *words, uint32_t count)
{
    if (!tir_bind_make(s->arena, s->info, s->path, words, count, tir_options_seed(s->options),
                       &s->bind, s->error))
        return false;
    for (uint32_t i = 0; i < s->info->param_count; i++)
        if (!upload(s, i))
            return false;
    return true;
}

uint64_t tir_session_traffic(const struct tir_session *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        const struct tir_bound *p = &s->bind.params[i];
        const uint32_t times = p->param->direction == TIR_DIRECTION_INOUT ? 2 : 1;
        if (p->param->kind == TIR_PARAM_TENSOR)
            bytes += (uint64_t)p->tensor.count * tir_elem_size(p->tensor.elem) * times;
    }
    return bytes;
}

void tir_session_unbind(struct tir_session *s)
{
    for (uint32_t i = 0; i < TIR_MAX_PARAMS; i++) {
        tir_rt_buffer_destroy(s->buffers[i]);
        s->buffers[i] = NULL;
        tir_tensor_free(&s->wants[i]);
        tir_tensor_free(&s->starts[i]);
    }
    tir_bind_release(&s->bind);
}

// ---- launches

bool tir_session_launch(struct tir_session *s, tir_rt_kernel *kernel, int32_t variant,
                        tir_rt_launch_report *report, tir_rt_launch_report *steps)
{
    tir_rt_launch_options options = TIR_RT_LAUNCH_OPTIONS_INIT;
    options.variant = variant;
    options.report = report;
    options.step_reports = steps;
    options.step_report_count = TIR_MAX_STEPS;
    options.timeout_ms =
        (uint32_t)TIR_MIN(s->options->integer[TIR_OPTION_TIMEOUT], UINT32_MAX / 1000) * 1000;
    return !tir_rt_launch(kernel, NULL, s->args, s->info->param_count, &options, s->error);
}

bool tir_session_read(struct tir_session *s)
{
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        struct tir_bound *p = &s->bind.params[i];
        if (tir_param_is_output(p->param) &&
            tir_rt_buffer_read(s->buffers[i], 0, p->tensor.bytes, p->tensor.size, NULL, s->error))
            return false;
    }
    return true;
}

static bool ask_reference(struct tir_session *s, bool only_rounding)
{
    struct tir_reference_arg args[TIR_MAX_PARAMS];
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        struct tir_bound *p = &s->bind.params[i];
        bool tensor = p->param->kind == TIR_PARAM_TENSOR;
        args[i].name = p->param->name;
        args[i].is_output = tensor && tir_param_is_output(p->param);
        args[i].elem = tir_elem_of_element(p->param->element);
        args[i].tensor = !tensor ? NULL : tir_param_is_output(p->param) ? &s->wants[i] : &p->tensor;
        args[i].bits = p->scalar.bits;
    }
    const struct tir_reference own = {s->path, s->source, tir_str_copy(s->arena, s->info->name).ptr,
                                      s->arch, tir_rt_device_describe(s->device)->max_shared};
    struct tir_reference reference;
    return tir_reference_find(s->arena, s->options, &own, &reference, s->error) &&
           tir_reference_run(&reference, s->options, args, s->info->param_count, only_rounding,
                             s->rounded, s->error);
}

bool tir_session_reference(struct tir_session *s)
{
    return ask_reference(s, false);
}

bool tir_session_rounding(struct tir_session *s)
{
    return ask_reference(s, true);
}

void tir_session_close(struct tir_session *s)
{
    tir_session_unbind(s);
    tir_rt_module_destroy(s->module);
    tir_rt_device_destroy(s->device);
    tir_runtime_destroy(s->runtime);
}
