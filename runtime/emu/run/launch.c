// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch: checks, laying out shared memory.

#include <fenv.h>
#include <string.h>

#include "emu/parse/parse.h"
#include "emu/run/launch.h"
#include "emu/run/state.h"
#include "emu/run/team.h"

// --- memory of the launch ---

void *emu_launch_alloc(struct emu_grid *l, void *old, size_t old_size, size_t new_size)
{
    l->allocated += new_size - old_size;
    if (l->allocated > l->emu->options.memory_limit)
        emu_raise(&l->trap, TIR_ERR_NO_MEMORY,
                  "registers and local memory take more than %llu bytes",
                  (unsigned long long)l->emu->options.memory_limit);
    void *p = emu_resize(&l->emu->allocator, old, old_size, new_size);
    if (!p)
        emu_raise(&l->trap, TIR_ERR_NO_MEMORY, "out of memory");
    return p;
}

void emu_launch_free(struct emu_grid *l, void *p, size_t size)
{
    l->allocated -= size;
    emu_resize(&l->emu->allocator, p, size, 0);
}

// --- checks and layout ---

static struct emu_func *find_kernel(const struct emu_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        struct emu_func *f = m->funcs.at[i];
        if (f->is_entry && f->is_defined && strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}

// Marks the shared variables of every function the kernel can reach. One that calls through a
// pointer may reach them all.
static void find_used(struct emu_module *m, struct emu_func *kernel)
{
    for (uint32_t i = 0; i < m->funcs.len; i++)
        m->funcs.at[i]->is_reached = false;
    for (uint32_t i = 0; i < m->shared.len; i++)
        m->shared.at[i].is_used = false;
    struct emu_func *queue = kernel;
    bool all = false;
    kernel->is_reached = true;
    kernel->next_reached = NULL;
    while (queue) {
        const struct emu_func *f = queue;
        queue = queue->next_reached;
        for (uint32_t i = 0; i < f->uses_count; i++) {
            const struct emu_use *use = &m->uses.at[f->uses_at + i];
            if (!use->is_call) {
                m->shared.at[use->index].is_used = true;
                continue;
            }
            const bool any = use->index == EMU_NO_REF;
            if (any && all)
                continue;
            all |= any;
            for (uint32_t k = any ? 0 : use->index; k < (any ? m->funcs.len : use->index + 1);
                 k++) {
                struct emu_func *callee = m->funcs.at[k];
                if (!callee->is_reached) {
                    callee->is_reached = true;
                    callee->next_reached = queue;
                    queue = callee;
                }
            }
        }
    }
}

// Gives every shared variable the kernel uses its offset; the dynamic ones all start at the end,
// which is what it returns.
static uint64_t layout_shared(struct emu_module *m, struct emu_func *kernel)
{
    uint64_t at = EMU_SHARED_START, dynamic_align = 16;
    find_used(m, kernel);
    for (uint32_t i = 0; i < m->shared.len; i++) {
        struct emu_shared_var *v = &m->shared.at[i];
        if (!v->is_used)
            continue;
        if (v->is_dynamic) {
            dynamic_align = v->align > dynamic_align ? v->align : dynamic_align;
            continue;
        }
        at = emu_align_up(at, v->align);
        v->offset = (uint32_t)at;
        at += v->size;
        if (at > EMU_SHARED_START + EMU_SHARED_LIMIT)
            return at;
    }
    at = emu_align_up(at, dynamic_align);
    for (uint32_t i = 0; i < m->shared.len; i++)
        if (m->shared.at[i].is_dynamic)
            m->shared.at[i].offset = (uint32_t)at;
    return at;
}

// Writes the addresses of shared variables into the constants that hold them.
static void apply_fixups(struct emu_module *m)
{
    for (uint32_t i = 0; i < m->fixups.len; i++) {
        const struct emu_fixup *f = &m->fixups.at[i];
        const uint64_t value = m->shared.at[f->shared].offset + f->addend;
        for (uint32_t k = 0; k < EMU_WARP; k++)
            memcpy(m->pool + f->pool + k * f->width, &value, f->width); // little endian
    }
}

tir_status emu_kernel_info(struct emu_module *module, const char *kernel,
                           struct emu_kernel_info *out, tir_error *error)
{
    struct emu_func *f = find_kernel(module, kernel);
    if (!f)
        return tir_error_set(error, TIR_ERR_INVALID, "the module has no kernel '%.100s'", kernel);
    *out = (struct emu_kernel_info){
        .name = f->name, .params_size = f->params_size, .max_threads = f->max_threads};
    const uint64_t end = layout_shared(module, f);
    out->static_shared_bytes = (uint32_t)(end > UINT32_MAX ? UINT32_MAX : end - EMU_SHARED_START);
    return TIR_OK;
}

tir_status emu_kernel_param(const struct emu_module *module, const char *kernel, uint32_t index,
                            size_t *offset, size_t *size, tir_error *error)
{
    const struct emu_func *f = find_kernel(module, kernel);
    if (!f)
        return tir_error_set(error, TIR_ERR_INVALID, "the module has no kernel '%.100s'", kernel);
    if (index >= f->param_count)
        return tir_error_set(error, TIR_ERR_INVALID, "%.100s has %u parameters", kernel,
                             f->param_count);
    *offset = f->params[index].offset;
    *size = f->params[index].size;
    return TIR_OK;
}

// The cluster's size along an axis: what the kernel says, or else the launch.
static uint32_t cluster_of(const struct emu_func *f, const struct emu_launch *launch, int axis)
{
    const uint32_t n = f->cluster[0] ? f->cluster[axis] : launch->cluster[axis];
    return n ? n : 1;
}

static tir_status check_launch(const struct emu_func *f, const struct emu_launch *launch,
                               tir_error *error)
{
    const uint32_t *block = launch->block, *grid = launch->grid;
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads == 0 || threads > 1024)
        return tir_error_set(error, TIR_ERR_INVALID, "block of %u x %u x %u threads", block[0],
                             block[1], block[2]);
    if (f->max_threads && threads > f->max_threads)
        return tir_error_set(error, TIR_ERR_INVALID, "block of %u threads; the kernel allows %u",
                             (uint32_t)threads, f->max_threads);
    if (f->block[0] && memcmp(f->block, block, sizeof f->block) != 0)
        return tir_error_set(error, TIR_ERR_INVALID,
                             "block of %u x %u x %u threads; the kernel requires %u x %u x %u",
                             block[0], block[1], block[2], f->block[0], f->block[1], f->block[2]);
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 ||
        grid[2] > 65535)
        return tir_error_set(error, TIR_ERR_INVALID, "grid of %u x %u x %u blocks", grid[0],
                             grid[1], grid[2]);
    if (launch->params_size != f->params_size)
        return tir_error_set(error, TIR_ERR_INVALID, "%zu bytes of parameters; the kernel takes %u",
                             launch->params_size, f->params_size);
    const uint32_t *cluster = launch->cluster, *own = f->cluster;
    const bool differs = (cluster[0] > 1 && cluster[0] != own[0]) ||
                         (cluster[1] > 1 && cluster[1] != own[1]) ||
                         (cluster[2] > 1 && cluster[2] != own[2]);
    if (own[0] && differs)
        return tir_error_set(error, TIR_ERR_INVALID,
                             "clusters of %u x %u x %u CTAs; the kernel says %u x %u x %u",
                             cluster[0], cluster[1], cluster[2], own[0], own[1], own[2]);
    uint32_t size = 1;
    for (int i = 0; i < 3; i++) {
        const uint32_t n = cluster_of(f, launch, i);
        if (n > EMU_MAX_CLUSTER || grid[i] % n)
            return tir_error_set(error, TIR_ERR_INVALID,
                                 "a grid of %u x %u x %u in clusters of %u x %u x %u", grid[0],
                                 grid[1], grid[2], cluster_of(f, launch, 0),
                                 cluster_of(f, launch, 1), cluster_of(f, launch, 2));
        size *= n;
    }
    if (size > EMU_MAX_CLUSTER)
        return tir_error_set(error, TIR_ERR_INVALID, "clusters of %u CTAs; %d are possible", size,
                             EMU_MAX_CLUSTER);
    const uint32_t *p = launch->preferred;
    for (int i = 0; i < 3 && (p[0] || p[1] || p[2]); i++)
        if (!p[i] || p[i] > EMU_MAX_CLUSTER || p[i] % cluster_of(f, launch, i) || grid[i] % p[i] ||
            p[0] * p[1] * p[2] > EMU_MAX_CLUSTER)
            return tir_error_set(error, TIR_ERR_INVALID,
                                 "a grid of %u x %u x %u in preferred clusters of %u x %u x %u",
                                 grid[0], grid[1], grid[2], p[0], p[1], p[2]);
    const uint64_t ctas = (uint64_t)grid[0] * grid[1] * grid[2];
    if (launch->cooperative && ctas > EMU_TOGETHER)
        return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                             "a cooperative launch of %llu CTAs; %d run together here",
                             (unsigned long long)ctas, EMU_TOGETHER);
    return TIR_OK;
}

// Memory of the checks counts like that of registers.
static void *checks_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct emu_grid *l = user;
    if (new_size > old_size && l->allocated + new_size > l->emu->options.memory_limit)
        return NULL;
    l->allocated += new_size - old_size;
    return emu_resize(&l->emu->allocator, ptr, old_size, new_size);
}

static void checks_start(struct emu_grid *l)
{
    struct emu_findings *findings = l->findings;
    findings->arena.trap = &l->trap;
    l->checks = (struct emu_arena){.allocator = {checks_resize, l}, .trap = &l->trap};
    emu_order_init(&l->order, &l->checks);
    l->order.has_lanes = l->emu->options.check == EMU_CHECK_FULL;
    l->race = (struct emu_race){.arena = &l->checks,
                                .check_lanes = l->emu->options.check == EMU_CHECK_FULL,
                                .found = emu_report_conflict,
                                .user = l};
}

static void checks_end(struct emu_grid *l)
{
    l->findings->arena.trap = NULL;
    emu_race_end(&l->race);
    emu_arena_free(&l->checks);
}

// Nothing here and below changes between setjmp and a jump back, so no local needs to be volatile.
static tir_status prepare(struct emu_grid *l, const void *params)
{
    if (setjmp(l->trap.env))
        return l->trap.error->status;
    l->params = emu_launch_alloc(l, NULL, 0, l->params_size + 1);
    if (l->params_size)
        memcpy(l->params, params, l->params_size);
    l->is_traced = l->emu->options.trace != NULL;
    l->sm_groups = l->emu->options.sm_count / l->cluster_size;
    l->sm_groups = l->sm_groups ? l->sm_groups : 1;
    l->sm_time = emu_launch_alloc(l, NULL, 0, l->sm_groups * sizeof *l->sm_time);
    memset(l->sm_time, 0, l->sm_groups * sizeof *l->sm_time);
    return TIR_OK;
}

// What the driver gives a cooperative grid: 32 bits for a size, and the counter of the barrier, 0.
static tir_status make_workspace(struct emu_grid *l)
{
    enum { SIZE = 8 };
    tir_status status = emu_alloc(l->emu, SIZE, &l->workspace, l->trap.error);
    return status ? status : emu_fill(l->emu, l->workspace, 0, SIZE, l->trap.error);
}

static tir_status run(struct emu_grid *l)
{
    if (setjmp(l->trap.env))
        return l->trap.error->status;
    emu_schedule_run(l);
    if (l->findings->error)
        emu_findings_stop(l);
    return TIR_OK;
}

tir_status emu_grid_run(struct emu_grid *l)
{
    // The host may have set a rounding mode, flushing of subnormals or traps.
    fenv_t host;
    fegetenv(&host);
    fesetenv(FE_DFL_ENV);
    checks_start(l);
    const tir_status status = run(l);
    emu_clusters_free(l);
    checks_end(l);
    fesetenv(&host);
    return status;
}

tir_status emu_run(struct emu *emu, struct emu_module *module, const char *kernel,
                   const struct emu_launch *launch, tir_error *error)
{
    tir_error ignored;
    struct emu_func *f = find_kernel(module, kernel);
    if (!f)
        return tir_error_set(error, TIR_ERR_INVALID, "the module has no kernel '%.100s'", kernel);
    tir_status status = check_launch(f, launch, error);
    if (status)
        return status;
    const uint64_t end = layout_shared(module, f) + launch->shared_bytes;
    if (end > EMU_SHARED_START + EMU_SHARED_LIMIT)
        return tir_error_set(error, TIR_ERR_INVALID, "%llu bytes of shared memory; there are %d",
                             (unsigned long long)(end - EMU_SHARED_START), EMU_SHARED_LIMIT);
    apply_fixups(module);
    struct emu_grid *l = emu_resize(&emu->allocator, NULL, 0, sizeof *l);
    if (!l)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "out of memory");
    *l = (struct emu_grid){
        .emu = emu, .module = module, .kernel = f, .stride = 1, .findings = &emu->findings};
    memcpy(l->shape.grid, launch->grid, sizeof l->shape.grid);
    memcpy(l->shape.block, launch->block, sizeof l->shape.block);
    l->cluster_size = l->cluster_count = 1;
    for (int i = 0; i < 3; i++) {
        const uint32_t preferred = launch->preferred[i];
        l->shape.cluster[i] = cluster_of(f, launch, i);
        l->shape.preferred[i] = preferred ? preferred : l->shape.cluster[i];
        l->cluster_size *= l->shape.preferred[i];
        l->cluster_count *= launch->grid[i] / l->shape.preferred[i];
    }
    l->names = launch->names;
    l->params_size = f->params_size;
    l->shared_size = (uint32_t)(end - EMU_SHARED_START);
    l->dynamic_size = launch->shared_bytes;
    l->threads = launch->block[0] * launch->block[1] * launch->block[2];
    l->warps = (l->threads + EMU_WARP - 1) / EMU_WARP;
    l->trap.error = error ? error : &ignored;
    emu_arena_free(&emu->findings.arena);
    emu->findings.count = 0;
    emu->findings.error = NULL;
    l->is_cooperative = launch->cooperative;
    l->is_independent = !l->is_cooperative && emu_is_independent(l);
    l->cancels = emu_cancels(l);
    if (l->cancels && launch->preferred[0])
        status = tir_error_set(error, TIR_ERR_UNSUPPORTED,
                               "clusterlaunchcontrol in a launch with preferred clusters: which "
                               "size is cancelled is not said");
    if (!status)
        status = prepare(l, launch->params);
    if (!status && l->is_cooperative)
        status = make_workspace(l);
    const uint64_t threads = l->is_independent ? emu->options.threads : 1;
    const uint64_t workers = threads < l->cluster_count ? threads : l->cluster_count;
    if (!status)
        status = workers > 1 ? emu_team_run(l, (uint32_t)workers) : emu_grid_run(l);
    emu->instructions = l->clock;
    emu_object_sweep(emu);
    if (l->workspace)
        emu_free(emu, l->workspace, &ignored);
    if (l->params)
        emu_resize(&emu->allocator, l->params, l->params_size + 1, 0);
    if (l->sm_time)
        emu_resize(&emu->allocator, l->sm_time, l->sm_groups * sizeof *l->sm_time, 0);
    emu_resize(&emu->allocator, l, sizeof *l, 0);
    return status;
}

uint64_t emu_instructions(const struct emu *emu)
{
    return emu->instructions;
}
