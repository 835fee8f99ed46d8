// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading variants ahead of their first launch, several at a time.
//
// Which variants the launches to come will take is decided one after the other, which takes
// microseconds; then threads load them, each the next that nobody has begun.

#include <unistd.h>

#include "error.h"
#include "host.h"
#include "packing.h"

enum { MOST_THREADS = 16 };

// A variant that is to be loaded, and what came of it.
struct wish {
    const tir_rt_kernel *kernel;
    uint32_t variant;
    tir_status status;
    tir_error error;
};

struct wishes {
    const tir_allocator *allocator;
    struct wish *at;
    uint32_t count, room;
    atomic_uint next; // that nobody has begun
};

static tir_status add(void *user, const tir_rt_kernel *kernel, uint32_t variant, tir_error *error)
{
    struct wishes *w = user;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->at[i].kernel == kernel && w->at[i].variant == variant)
            return TIR_OK;
    if (w->count == w->room) {
        const uint32_t room = w->room ? 2 * w->room : 16;
        struct wish *at = w->allocator->resize(w->allocator->user, w->at, w->room * sizeof *at,
                                               room * sizeof *at);
        if (!at)
            return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to load code ahead");
        w->at = at;
        w->room = room;
    }
    w->at[w->count++] = (struct wish){.kernel = kernel, .variant = variant};
    return TIR_OK;
}

static tir_status add_all(struct wishes *w, const tir_rt_module *module, tir_error *error)
{
    tir_status status = TIR_OK;
    for (uint32_t i = 0; i < module->desc->kernel_count && !status; i++)
        for (uint32_t v = 0; v < module->desc->kernels[i].variant_count && !status; v++)
            status = add(w, &module->kernels[i], v, error);
    return status;
}

// What a launch would take of this configuration. *done is false where nothing of it fits.
static tir_status add_config(struct wishes *w, struct packing *p, const tir_rt_arg *args,
                             uint32_t config, bool *done)
{
    tir_status status = tir_packing_find(p, -1, config);
    if (p->info->sequence_count) {
        const int64_t below = status ? INT64_MAX : p->cost;
        tir_status other = tir_sequence_steps(p, args, config, below, add, w, done);
        if (*done)
            return other;
    }
    *done = !status;
    return status ? status : add(w, p->kernel, p->variant, p->error);
}

static tir_status add_launch(struct wishes *w, const tir_rt_prepare *launch, tir_error *error)
{
    struct packing p;
    bool done = false;
    p.key_words = 0;
    tir_status status = tir_packing_fill(&p, launch->kernel, launch->args, launch->count, error);
    if (status)
        return status;
    const uint32_t config = tir_packing_config(&p);
    status = add_config(w, &p, launch->args, config, &done);
    if (!done && config != TIR_ANY_CONFIG)
        status = add_config(w, &p, launch->args, TIR_ANY_CONFIG, &done);
    return status;
}

static void *work(void *user)
{
    struct wishes *w = user;
    for (uint32_t i; (i = atomic_fetch_add(&w->next, 1)) < w->count;)
        w->at[i].status = tir_function_ready(w->at[i].kernel, w->at[i].variant, &w->at[i].error);
    return NULL;
}

static uint32_t processors(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 1 ? count < MOST_THREADS ? (uint32_t)count : MOST_THREADS : 1;
}

// All that can be loaded is loaded; the first failure is the caller's.
static tir_status load(struct wishes *w, uint32_t threads, tir_error *error)
{
    pthread_t others[MOST_THREADS];
    uint32_t started = 0;
    threads = threads ? threads : processors();
    threads = threads < w->count ? threads : w->count;
    while (started + 1 < threads && started < MOST_THREADS &&
           !pthread_create(&others[started], NULL, work, w))
        started++;
    work(w);
    while (started)
        pthread_join(others[--started], NULL);
    for (uint32_t i = 0; i < w->count; i++)
        if (w->at[i].status) {
            *error = w->at[i].error;
            return w->at[i].status;
        }
    return TIR_OK;
}

TIR_API tir_status tir_rt_module_prepare(tir_rt_module *module, const tir_rt_prepare *launches,
                                         uint32_t count, uint32_t threads, tir_error *error)
{
    tir_rt_device *device = module->device;
    struct wishes w = {.allocator = device->allocator};
    tir_error local, cause = {0};
    error = error ? error : &local;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    if (!launches)
        status = add_all(&w, module, &cause);
    for (uint32_t i = 0; launches && i < count && !status; i++) {
        if (launches[i].kernel->module == module)
            status = add_launch(&w, &launches[i], &cause);
        else
            status = tir_error_set(&cause, TIR_ERR_INVALID, "a kernel belongs to another module");
    }
    if (!status)
        status = load(&w, threads, &cause);
    tir_host_free(device->allocator, w.at, w.room * sizeof *w.at);
    if (status)
        *error = cause;
    return tir_device_leave(device, status, error);
}
