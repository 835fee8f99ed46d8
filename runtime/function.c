// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of a module's variants, each loaded when something first needs it.
//
// A driver assembles all PTX that it is given, and of a kernel's variants a program often launches
// one. So each variant is a module of its own on the device: the artifact's PTX without the other
// entries. A cubin, and what cannot be divided, is loaded once and as a whole. The code of an open
// variant is made by the program when it is needed (tir_rt_module_open).

#include "module.h"

#include <string.h>

#include "artifact.h"
#include "error.h"
#include "host.h"
#include "ptx.h"
#include "watchdog.h"

// All code of the module. The text of an artifact is there while it is loaded.
static tir_status load_whole(tir_rt_module *module, tir_error *error)
{
    tir_rt_device *device = module->device;
    tir_artifact_desc code = *module->desc;
    tir_str text = {NULL, 0};
    tir_status status = TIR_OK;
    if (module->desc != &module->ptx)
        status = tir_artifact_read_ptx(module->desc, NULL, device->allocator, &text, error);
    if (text.ptr)
        code.ptx = text;
    if (!status)
        status = device->ops->module_load(device, &code, &module->whole, error);
    tir_host_free(device->allocator, (char *)(uintptr_t)text.ptr, text.len + 1);
    return status;
}

tir_status tir_module_load_whole(tir_rt_module *module, void **out, tir_error *error)
{
    tir_status status = TIR_OK;
    pthread_mutex_lock(&module->lock);
    if (!module->whole)
        status = load_whole(module, error);
    *out = module->whole;
    pthread_mutex_unlock(&module->lock);
    return status;
}

// The variant's part of the PTX as a module. *out NULL: there is no such part.
static tir_status load_part(tir_rt_module *module, tir_str entry, void **out, tir_error *error)
{
    const tir_allocator *allocator = module->device->allocator;
    tir_str ptx;
    *out = NULL;
    tir_status status = tir_artifact_read_ptx(module->desc, &entry, allocator, &ptx, error);
    char *text = (char *)(uintptr_t)ptx.ptr; // it is ours
    tir_artifact_desc part = {.target = module->desc->target, .ptx.ptr = text};
    if (text && tir_ptx_keep_entry(ptx, entry, text, &part.ptx.len))
        status = module->device->ops->module_load(module->device, &part, out, error);
    tir_host_free(allocator, text, ptx.len + 1);
    return status;
}

// ---- open variants

struct tir_rt_code {
    tir_rt_module *module;
    const tir_artifact_desc *desc;
};

TIR_API tir_status tir_rt_code_set(tir_rt_code *code, const void *artifact, size_t size,
                                   tir_error *error)
{
    const tir_allocator *allocator = code->module->device->allocator;
    const tir_artifact_desc *desc;
    tir_status status = tir_artifact_decode(artifact, size, allocator, &desc, error);
    if (status)
        return status;
    tir_artifact_free(code->desc, allocator);
    code->desc = desc;
    return TIR_OK;
}

static bool same_text(tir_str a, tir_str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

// Whether launches of the two kernels have the same parameters.
static bool same_interface(const tir_artifact_kernel *a, const tir_artifact_kernel *b)
{
    if (!same_text(a->name, b->name) || a->dim_count != b->dim_count ||
        a->param_count != b->param_count)
        return false;
    for (uint32_t i = 0; i < a->param_count; i++) {
        const tir_artifact_param *p = &a->params[i], *q = &b->params[i];
        if (p->kind != q->kind || p->element != q->element || p->direction != q->direction ||
            p->rank != q->rank)
            return false;
        for (uint32_t d = 0; d < p->rank; d++)
            if (p->extents[d].dim != q->extents[d].dim ||
                p->extents[d].fixed != q->extents[d].fixed)
                return false;
    }
    return true;
}

static const tir_artifact_variant *find_variant(const tir_artifact_desc *desc,
                                                const tir_artifact_kernel *kernel, tir_str entry)
{
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        for (uint32_t v = 0; v < desc->kernels[i].variant_count; v++) {
            const tir_artifact_variant *variant = &desc->kernels[i].variants[v];
            if (same_text(variant->entry, entry) && !variant->is_open &&
                same_interface(&desc->kernels[i], kernel))
                return variant;
        }
    return NULL;
}

// The program's failure, with the status that it states and a message whether or not it has one. A
// fault is of some other device: this one has had no call.
static tir_status not_made(tir_str entry, tir_status status, tir_error *error)
{
    if (!error->message[0])
        tir_error_set(error, status, "%.*s: the program could not make its code (%s)",
                      TIR_STR(entry), tir_status_name(status));
    return error->status = status == TIR_ERR_DEVICE ? TIR_ERR_INVALID : status;
}

// Has the code made, and takes what it says of the variant.
static tir_status compile(const tir_rt_kernel *kernel, struct loaded_function *f, tir_error *error)
{
    tir_rt_module *module = kernel->module;
    struct tir_rt_code code = {.module = module};
    const tir_str entry = f->info->entry;
    bool whole;
    tir_status status = module->compile(module->compile_user, entry, &code, error);
    f->code = code.desc;
    if (status)
        return not_made(entry, status, error);
    const tir_artifact_variant *info =
        code.desc ? find_variant(code.desc, kernel->info, entry) : NULL;
    if (!info)
        return tir_error_set(error, TIR_ERR_INVALID, "%.*s: what was compiled is not this variant",
                             TIR_STR(entry));
    status = module->device->ops->accepts(module->device, code.desc, code.desc->ptx.len > 0, &whole,
                                          error);
    if (!status && info->watchdog)
        status = tir_watchdog_create(module->device, kernel->info, info, &f->watchdog, error);
    if (!status)
        f->info = info;
    return status;
}

// An attempt that has failed leaves nothing.
static void forget_code(const tir_rt_kernel *kernel, struct loaded_function *f)
{
    tir_watchdog_destroy(kernel->device, f->watchdog);
    tir_artifact_free(f->code, kernel->device->allocator);
    f->watchdog = NULL;
    f->code = NULL;
}

// ---- loading

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

// The device's module that the variant is in.
static tir_status load_code(tir_rt_module *module, struct loaded_function *f, tir_error *error)
{
    tir_rt_device *device = module->device;
    tir_status status = TIR_OK;
    if (f->code)
        status = device->ops->module_load(device, f->code, &f->own, error);
    else if (!module->is_whole && !f->own)
        status = load_part(module, f->info->entry, &f->own, error);
    f->module = f->own;
    return status || f->own ? status : tir_module_load_whole(module, &f->module, error);
}

static tir_status load(const tir_rt_kernel *kernel, struct loaded_function *f, tir_error *error)
{
    tir_rt_device *device = kernel->device;
    const tir_artifact_variant *open = f->info->is_open ? f->info : NULL;
    tir_status status = open ? compile(kernel, f, error) : TIR_OK;
    if (!status)
        status = load_code(kernel->module, f, error);
    if (!status)
        status = device->ops->function(device, f->module, f->info, &f->native, error);
    if (!status && f->info->persistent)
        status = find_most(device, f->info, f->native, &f->most, error);
    if (!status && f->info->cooperative)
        status = device->ops->together(device, f->native, f->info, &f->most, error);
    if (status && open) {
        if (f->own)
            device->ops->module_unload(device, f->own);
        f->own = NULL;
        f->info = open;
        forget_code(kernel, f);
    }
    return status;
}

tir_status tir_function_load(const tir_rt_kernel *kernel, uint32_t variant, tir_error *error)
{
    struct loaded_function *f = &kernel->functions[variant];
    const tir_str entry = kernel->info->variants[variant].entry;
    tir_error cause = {0};
    tir_status status = TIR_OK;
    pthread_mutex_lock(&f->lock);
    if (!atomic_load_explicit(&f->is_ready, memory_order_relaxed)) {
        status = load(kernel, f, &cause);
        atomic_store_explicit(&f->is_ready, !status, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
    if (status && cause.native) // the driver does not say what it was about
        return tir_error_set_native(error, status, cause.native, "%.*s: %s", TIR_STR(entry),
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
    tir_artifact_free(function->code, module->device->allocator);
    pthread_mutex_destroy(&function->lock);
}
