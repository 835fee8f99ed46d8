// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of a module's variants, each loaded when something first needs it.
//
// A driver assembles all PTX that it is given, and of a kernel's variants a program often launches
// one. So each variant is a module of its own on the device: the artifact's PTX without the other
// entries. A cubin, and what cannot be divided, is loaded once and as a whole.

#include "module.h"

#include "error.h"
#include "host.h"
#include "ptx.h"
#include "watchdog.h"

tir_status tir_module_load_whole(tir_rt_module *module, void **out, tir_error *error)
{
    tir_status status = TIR_OK;
    pthread_mutex_lock(&module->whole_lock);
    if (!module->whole)
        status =
            module->device->ops->module_load(module->device, module->desc, &module->whole, error);
    *out = module->whole;
    pthread_mutex_unlock(&module->whole_lock);
    return status;
}

// The variant's part of the PTX as a module. *out NULL: there is no such part.
static tir_status load_part(tir_rt_module *module, tir_str entry, void **out, tir_error *error)
{
    const tir_allocator *allocator = module->device->allocator;
    const tir_str ptx = module->desc->ptx;
    tir_artifact_desc part = {.target = module->desc->target};
    tir_status status = TIR_OK;
    char *text = tir_host_alloc(allocator, ptx.len + 1);
    *out = NULL;
    if (!text)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a variant's PTX");
    part.ptx.ptr = text;
    if (tir_ptx_keep_entry(ptx, entry, text, &part.ptx.len))
        status = module->device->ops->module_load(module->device, &part, out, error);
    tir_host_free(allocator, text, ptx.len + 1);
    return status;
}

// A persistent variant runs on all multiprocessors, as many CTAs on each as it says, in as many
// clusters as the device says fit: these have to lie within its parts.
static tir_status find_most(tir_rt_device *device, const tir_artifact_variant *variant,
                            void *native, uint32_t *out, tir_error *error)
{
    const uint32_t *c = variant->cluster, size = c[0] ? c[0] * c[1] * c[2] : 1;
    uint32_t most = device->info.sm_count * variant->ctas_per_sm / size, fit = most;
    tir_status status = TIR_OK;
    if (c[0] && device->ops->clusters)
        status = device->ops->clusters(device, native, variant, &fit, error);
    most = fit < most ? fit : most;
    *out = (most ? most : 1) * (c[0] ? c[0] : 1);
    return status;
}

static tir_status load(tir_rt_module *module, const tir_artifact_variant *variant,
                       struct loaded_function *f, tir_error *error)
{
    tir_rt_device *device = module->device;
    tir_status status = TIR_OK;
    if (!module->is_whole && !f->own)
        status = load_part(module, variant->entry, &f->own, error);
    f->module = f->own;
    if (!status && !f->own)
        status = tir_module_load_whole(module, &f->module, error);
    if (!status)
        status = device->ops->function(device, f->module, variant, &f->native, error);
    if (!status && variant->persistent)
        status = find_most(device, variant, f->native, &f->most, error);
    return status;
}

tir_status tir_function_load(const tir_rt_kernel *kernel, uint32_t variant, tir_error *error)
{
    struct loaded_function *f = &kernel->functions[variant];
    const tir_artifact_variant *info = &kernel->info->variants[variant];
    tir_error cause = {0};
    tir_status status = TIR_OK;
    pthread_mutex_lock(&f->lock);
    if (!atomic_load_explicit(&f->is_ready, memory_order_relaxed)) {
        status = load(kernel->module, info, f, &cause);
        atomic_store_explicit(&f->is_ready, !status, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
    if (status && cause.native) // the driver does not say what it was about
        return tir_error_set_native(error, status, cause.native, "%.*s: %s", TIR_STR(info->entry),
                                    cause.message);
    if (status && error)
        *error = cause;
    return status;
}

void tir_function_release(tir_rt_module *module, struct loaded_function *function)
{
    tir_watchdog_destroy(module->device, function->watchdog);
    if (function->own)
        module->device->ops->module_unload(module->device, function->own);
    pthread_mutex_destroy(&function->lock);
}
