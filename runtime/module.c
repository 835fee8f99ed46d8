// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules: an artifact on a device, with every function looked up before the first launch.

#include "module.h"

#include <string.h>

#include "error.h"
#include "host.h"

struct tir_rt_module {
    tir_rt_device *device;
    const tir_artifact_desc *desc;
    void *native;
    tir_rt_kernel *kernels; // desc->kernel_count
    void **functions;       // of all variants of all kernels
    size_t function_count;
};

// Frees whatever of a module is there.
static void release(tir_rt_module *module)
{
    const tir_allocator *allocator = module->device->allocator;
    if (module->native)
        module->device->ops->module_unload(module->device, module->native);
    tir_host_free(allocator, module->functions, module->function_count * sizeof(void *));
    tir_host_free(allocator, module->kernels,
                  module->desc ? module->desc->kernel_count * sizeof *module->kernels : 0);
    tir_artifact_free(module->desc, allocator);
    tir_host_free(allocator, module, sizeof *module);
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
    module->functions = tir_host_alloc(allocator, module->function_count * sizeof(void *));
    if (!module->kernels || !module->functions)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a module");
    void **functions = module->functions;
    for (uint32_t i = 0; i < desc->kernel_count; i++) {
        module->kernels[i] = (tir_rt_kernel){
            .device = module->device,
            .info = &desc->kernels[i],
            .functions = functions,
        };
        functions += desc->kernels[i].variant_count;
    }
    return TIR_OK;
}

static tir_status load_functions(tir_rt_module *module, tir_error *error)
{
    tir_rt_device *device = module->device;
    tir_status status = device->ops->module_load(device, module->desc, &module->native, error);
    for (uint32_t i = 0; i < module->desc->kernel_count && !status; i++) {
        tir_rt_kernel *kernel = &module->kernels[i];
        kernel->native = module->native;
        for (uint32_t v = 0; v < kernel->info->variant_count && !status; v++)
            status = device->ops->function(device, module->native, &kernel->info->variants[v],
                                           &kernel->functions[v], error);
    }
    return status;
}

TIR_API tir_status tir_rt_module_load(tir_rt_device *device, const void *artifact, size_t size,
                                      tir_rt_module **out, tir_error *error)
{
    tir_error local;
    error = error ? error : &local;
    *out = NULL;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    tir_rt_module *module = tir_host_alloc(device->allocator, sizeof *module);
    if (!module)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a module");
    module->device = device;
    status = tir_artifact_decode(artifact, size, device->allocator, &module->desc, error);
    if (!status)
        status = make_tables(module, error);
    if (!status)
        status = load_functions(module, error);
    if (status)
        release(module);
    else
        *out = module;
    return tir_device_leave(device, status, error);
}

TIR_API void tir_rt_module_destroy(tir_rt_module *module)
{
    if (module)
        release(module);
}

TIR_API const tir_artifact_desc *tir_rt_module_describe(const tir_rt_module *module)
{
    return module->desc;
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
    if (variant >= kernel->info->variant_count)
        return tir_error_set(error, TIR_ERR_INVALID, "%.*s has no variant %u",
                             TIR_STR(kernel->info->name), variant);
    status = device->ops->usage(device, kernel->native, kernel->functions[variant], out, error);
    return tir_device_leave(device, status, error);
}
