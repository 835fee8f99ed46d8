// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules: an artifact on a device, whose code is loaded when it is needed (function.c); or PTX
// text of any origin, whose kernels are launched by name.
//
// A module of PTX has a description of its own, with the text's target and no kernels.

#include "module.h"

#include <string.h>

#include "artifact.h"
#include "error.h"
#include "host.h"
#include "packing.h"
#include "watchdog.h"

// Frees whatever of a module is there.
static void release(tir_rt_module *module)
{
    const tir_allocator *allocator = module->device->allocator;
    for (size_t i = 0; i < module->function_count && module->functions; i++)
        tir_function_release(module, &module->functions[i]);
    if (module->whole)
        module->device->ops->module_unload(module->device, module->whole);
    pthread_mutex_destroy(&module->lock);
    tir_host_free(allocator, module->functions, module->function_count * sizeof *module->functions);
    for (uint32_t i = 0; module->layouts && i < module->desc->kernel_count; i++)
        tir_layout_finish(&module->layouts[i]);
    tir_host_free(allocator, module->layouts,
                  module->desc ? module->desc->kernel_count * sizeof *module->layouts : 0);
    tir_host_free(allocator, module->kernels,
                  module->desc ? module->desc->kernel_count * sizeof *module->kernels : 0);
    if (module->desc != &module->ptx)
        tir_artifact_free(module->desc, allocator);
    tir_host_free(allocator, module, sizeof *module);
}

// The measurements of such a device; NULL: none.
static const tir_artifact_tuned *find_tuned(const tir_artifact_kernel *info,
                                            const tir_rt_device_info *device)
{
    size_t len = strlen(device->name);
    for (uint32_t i = 0; i < info->tuned_count; i++) {
        const tir_artifact_tuned *tuned = &info->tuned[i];
        if (tuned->multiprocessors == device->sm_count && tuned->device.len == len &&
            memcmp(tuned->device.ptr, device->name, len) == 0)
            return tuned;
    }
    return NULL;
}

static tir_status make_tables(tir_rt_module *module, tir_error *error)
{
    const tir_artifact_desc *desc = module->desc;
    const tir_allocator *allocator = module->device->allocator;
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        module->function_count += desc->kernels[i].variant_count;
    if (module->function_count == 0)
        return TIR_OK;
    module->kernels = tir_host_alloc(allocator, desc->kernel_count * sizeof *module->kernels);
    module->layouts = tir_host_alloc(allocator, desc->kernel_count * sizeof *module->layouts);
    module->functions =
        tir_host_alloc(allocator, module->function_count * sizeof *module->functions);
    if (!module->kernels || !module->layouts || !module->functions)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a module");
    for (size_t i = 0; i < module->function_count; i++)
        pthread_mutex_init(&module->functions[i].lock, NULL);
    struct loaded_function *functions = module->functions;
    for (uint32_t i = 0; i < desc->kernel_count; i++) {
        module->kernels[i] = (tir_rt_kernel){
            .module = module,
            .device = module->device,
            .info = &desc->kernels[i],
            .functions = functions,
            .tuned = find_tuned(&desc->kernels[i], &module->device->info),
            .layout = &module->layouts[i],
            .all = module->kernels,
        };
        for (uint32_t v = 0; v < desc->kernels[i].variant_count; v++)
            functions[v].info = &desc->kernels[i].variants[v];
        tir_layout_init(&module->layouts[i], &desc->kernels[i], allocator);
        functions += desc->kernels[i].variant_count;
    }
    return TIR_OK;
}

static bool is_outline(const tir_artifact_desc *desc)
{
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        if (desc->kernels[i].variant_count)
            return desc->kernels[i].variants[0].is_open;
    return false;
}

static tir_rt_module *new_module(tir_rt_device *device, tir_error *error)
{
    tir_rt_module *module = tir_host_alloc(device->allocator, sizeof *module);
    if (!module) {
        tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a module");
        return NULL;
    }
    module->device = device;
    pthread_mutex_init(&module->lock, NULL);
    return module;
}

static tir_status make_watchdogs(tir_rt_module *module, tir_error *error)
{
    tir_status status = TIR_OK;
    for (uint32_t i = 0; i < module->desc->kernel_count; i++) {
        const tir_rt_kernel *kernel = &module->kernels[i];
        for (uint32_t v = 0; v < kernel->info->variant_count && !status; v++)
            if (kernel->info->variants[v].watchdog)
                status =
                    tir_watchdog_create(module->device, kernel->info, &kernel->info->variants[v],
                                        &kernel->functions[v].watchdog, error);
    }
    return status;
}

static tir_status load_artifact(tir_rt_module *module, const void *artifact, size_t size,
                                tir_error *error)
{
    tir_rt_device *device = module->device;
    void *whole;
    tir_status status = tir_artifact_open(artifact, size, device->allocator, &module->desc, error);
    if (!status && is_outline(module->desc)) {
        if (module->compile)
            return make_tables(module, error);
        status = tir_error_set(error, TIR_ERR_INVALID,
                               "the artifact is an outline, for tir_rt_module_open");
    }
    if (!status)
        status = device->ops->accepts(device, module->desc, tir_artifact_has_ptx(module->desc),
                                      &module->is_whole, error);
    if (!status)
        status = make_tables(module, error);
    if (!status)
        status = make_watchdogs(module, error);
    if (!status && module->is_whole)
        status = tir_module_load_whole(module, &whole, error);
    return status;
}

static tir_status load_module(tir_rt_device *device, const void *artifact, size_t size,
                              tir_rt_compile_fn compile, void *user, tir_rt_module **out,
                              tir_error *error)
{
    tir_error local;
    error = error ? error : &local;
    *out = NULL;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    tir_rt_module *module = new_module(device, error);
    if (!module)
        return TIR_ERR_NO_MEMORY;
    module->compile = compile;
    module->compile_user = user;
    status = load_artifact(module, artifact, size, error);
    if (status)
        release(module);
    else
        *out = module;
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_module_load(tir_rt_device *device, const void *artifact, size_t size,
                                      tir_rt_module **out, tir_error *error)
{
    return load_module(device, artifact, size, NULL, NULL, out, error);
}

TIR_API tir_status tir_rt_module_open(tir_rt_device *device, const void *artifact, size_t size,
                                      tir_rt_compile_fn compile, void *user, tir_rt_module **out,
                                      tir_error *error)
{
    return load_module(device, artifact, size, compile, user, out, error);
}

// ---- PTX of any origin

// The word after `.target` at the start of a line.
static tir_status find_target(tir_rt_module *module, tir_str ptx, tir_error *error)
{
    static const char word[] = ".target";
    const char *end = ptx.ptr + ptx.len;
    for (const char *line = ptx.ptr, *next; line && line < end; line = next ? next + 1 : NULL) {
        next = memchr(line, '\n', (size_t)(end - line));
        const char *stop = next ? next : end;
        while (line < stop && (*line == ' ' || *line == '\t'))
            line++;
        if ((size_t)(stop - line) < sizeof word || memcmp(line, word, sizeof word - 1) != 0)
            continue;
        line += sizeof word - 1;
        while (line < stop && (*line == ' ' || *line == '\t'))
            line++;
        size_t len = 0;
        while (line + len < stop && memchr(", \t\r/;", line[len], 7) == NULL)
            len++;
        if (len == 0 || len >= sizeof module->target)
            break;
        memcpy(module->target, line, len);
        return TIR_OK;
    }
    return tir_error_set(error, TIR_ERR_INVALID, "the PTX says no .target");
}

static tir_status load_text(tir_rt_module *module, tir_str ptx, tir_error *error)
{
    tir_rt_device *device = module->device;
    void *whole;
    char *text = tir_host_alloc(device->allocator, ptx.len + 1); // the driver wants a NUL
    if (!text)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a module");
    memcpy(text, ptx.ptr, ptx.len);
    tir_status status = find_target(module, ptx, error);
    module->ptx.target = (tir_str){module->target, strlen(module->target)};
    module->ptx.ptx = (tir_str){text, ptx.len};
    if (!status)
        status = device->ops->accepts(device, module->desc, true, &module->is_whole, error);
    if (!status)
        status = tir_module_load_whole(module, &whole, error);
    module->ptx.ptx = (tir_str){NULL, 0};
    tir_host_free(device->allocator, text, ptx.len + 1);
    return status;
}

TIR_API tir_status tir_rt_module_load_ptx(tir_rt_device *device, tir_str ptx, tir_rt_module **out,
                                          tir_error *error)
{
    tir_error local;
    error = error ? error : &local;
    *out = NULL;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    tir_rt_module *module = new_module(device, error);
    if (!module)
        return TIR_ERR_NO_MEMORY;
    module->desc = &module->ptx;
    status = load_text(module, ptx, error);
    if (status)
        release(module);
    else
        *out = module;
    return tir_device_leave(device, status, error);
}

// An entry of any module by its name: that of a variant, or one of the module as a whole.
static tir_status find_entry(tir_rt_module *module, const tir_artifact_variant *variant,
                             void **native, void **function, tir_error *error)
{
    const tir_rt_device *device = module->device;
    for (uint32_t i = 0; i < module->desc->kernel_count; i++) {
        const tir_rt_kernel *kernel = &module->kernels[i];
        for (uint32_t v = 0; v < kernel->info->variant_count; v++) {
            const tir_str entry = kernel->info->variants[v].entry;
            if (entry.len != variant->entry.len ||
                memcmp(entry.ptr, variant->entry.ptr, entry.len) != 0)
                continue;
            tir_status status = tir_function_ready(kernel, v, error);
            *native = kernel->functions[v].module;
            return status
                       ? status
                       : device->ops->function(module->device, *native, variant, function, error);
        }
    }
    if (is_outline(module->desc))
        return tir_error_set(error, TIR_ERR_INVALID, "the outline has no variant '%.*s'",
                             TIR_STR(variant->entry));
    tir_status status = tir_module_load_whole(module, native, error);
    return status ? status
                  : device->ops->function(module->device, *native, variant, function, error);
}

// Refuses what no device accepts, with the same message for all of them.
static tir_status check_shape(const tir_rt_ptx_launch *launch, tir_error *error)
{
    const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
    if (launch->struct_size < sizeof *launch)
        return tir_error_set(error, TIR_ERR_INVALID, "the launch has no proper struct_size");
    if (!grid[0] || !grid[1] || !grid[2])
        return tir_error_set(error, TIR_ERR_INVALID, "a grid of %u x %u x %u CTAs", grid[0],
                             grid[1], grid[2]);
    if ((uint64_t)block[0] * block[1] - 1 >= 1024 ||
        (uint64_t)block[0] * block[1] * block[2] - 1 >= 1024)
        return tir_error_set(error, TIR_ERR_INVALID, "a CTA of %u x %u x %u threads", block[0],
                             block[1], block[2]);
    for (int i = 0; i < 3 && (cluster[0] || cluster[1] || cluster[2]); i++)
        if (!cluster[i] || grid[i] % cluster[i])
            return tir_error_set(error, TIR_ERR_INVALID,
                                 "a grid of %u x %u x %u CTAs is not made of clusters of %u x %u x "
                                 "%u",
                                 grid[0], grid[1], grid[2], cluster[0], cluster[1], cluster[2]);
    return TIR_OK;
}

TIR_API tir_status tir_rt_launch_ptx(tir_rt_module *module, tir_rt_stream *stream,
                                     const char *kernel, const tir_rt_ptx_launch *launch,
                                     tir_error *error)
{
    tir_error local;
    tir_rt_device *device = module->device;
    void *native, *code, *function;
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (!status)
        status = tir_device_stream(device, stream, &native, error);
    if (!status)
        status = check_shape(launch, error);
    if (status)
        return status;
    tir_artifact_variant variant = {.entry = {kernel, strlen(kernel)},
                                    .dynamic_shared = launch->dynamic_shared,
                                    .cooperative = launch->cooperative};
    struct device_launch call = {.dynamic_shared = launch->dynamic_shared,
                                 .params = launch->params,
                                 .params_size = launch->params_size,
                                 .cooperative = launch->cooperative};
    memcpy(variant.cluster, launch->cluster, sizeof variant.cluster);
    memcpy(call.cluster, launch->cluster, sizeof call.cluster);
    memcpy(call.grid, launch->grid, sizeof call.grid);
    memcpy(call.block, launch->block, sizeof call.block);
    status = find_entry(module, &variant, &code, &function, error);
    if (!status)
        status = device->ops->launch(device, native, code, function, &call, error);
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_ptx_param(tir_rt_module *module, const char *kernel, uint32_t index,
                                    size_t *offset, size_t *size, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = module->device;
    const tir_artifact_variant variant = {.entry = {kernel, strlen(kernel)}};
    void *code, *function;
    error = error ? error : &local;
    *offset = *size = 0;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    status = find_entry(module, &variant, &code, &function, error);
    if (!status)
        status = device->ops->param(device, code, function, index, offset, size, error);
    return tir_device_leave(device, status, error);
}

// ---- all modules

TIR_API void tir_rt_module_destroy(tir_rt_module *module)
{
    if (module)
        release(module);
}

TIR_API const tir_artifact_desc *tir_rt_module_describe(const tir_rt_module *module)
{
    tir_rt_module *m = (tir_rt_module *)(uintptr_t)module; // only its callers see it as const
    if (m->desc != &m->ptx) {
        pthread_mutex_lock(&m->lock);
        tir_artifact_read_receipt(m->desc, NULL);
        pthread_mutex_unlock(&m->lock);
    }
    return m->desc;
}

// Appends " name" while there is room.
static void append_name(char *list, size_t size, tir_str name)
{
    size_t at = strlen(list);
    if (at + name.len + 2 > size)
        return;
    list[at] = ' ';
    memcpy(list + at + 1, name.ptr, name.len);
    list[at + 1 + name.len] = 0;
}

TIR_API tir_status tir_rt_module_kernel(tir_rt_module *module, tir_str name, tir_rt_kernel **out,
                                        tir_error *error)
{
    char names[160] = "";
    *out = NULL;
    for (uint32_t i = 0; i < module->desc->kernel_count; i++) {
        const tir_artifact_kernel *info = &module->desc->kernels[i];
        if (info->name.len == name.len && memcmp(info->name.ptr, name.ptr, name.len) == 0) {
            *out = &module->kernels[i];
            return TIR_OK;
        }
        append_name(names, sizeof names, info->name);
    }
    return tir_error_set(error, TIR_ERR_INVALID, "there is no kernel '%.*s'; there are:%s",
                         name.len < 64 ? (int)name.len : 64, name.ptr, names);
}

TIR_API const tir_artifact_kernel *tir_rt_kernel_describe(const tir_rt_kernel *kernel)
{
    return kernel->info;
}

TIR_API tir_status tir_rt_kernel_usage(tir_rt_kernel *kernel, uint32_t variant, tir_rt_usage *out,
                                       tir_error *error)
{
    tir_error local;
    tir_rt_device *device = kernel->device;
    error = error ? error : &local;
    *out = (tir_rt_usage){0};
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    uint32_t sequence = variant - kernel->info->variant_count;
    if (variant >= kernel->info->variant_count && sequence < kernel->info->sequence_count) {
        kernel = &kernel->all[kernel->info->sequences[sequence].steps[0].kernel];
        variant = 0;
    }
    if (variant >= kernel->info->variant_count)
        return tir_error_set(error, TIR_ERR_INVALID, "%.*s has no variant %u",
                             TIR_STR(kernel->info->name), variant);
    status = tir_function_ready(kernel, variant, error);
    const struct loaded_function *f = &kernel->functions[variant];
    if (!status)
        status = device->ops->usage(device, f->module, f->native, out, error);
    return tir_device_leave(device, status, error);
}
