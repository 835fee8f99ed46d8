// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch: laying out shared memory, running CTAs, deadlocks, fault messages.
//
// CTAs run one after another. A CTA that keeps running without finishing may be waiting for one
// that has not started, as in a grid-wide barrier; so after a few rounds the next CTA joins it,
// until as many are resident as the device has multiprocessors.

#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/parse.h"
#include "emu/state.h"

enum { PATIENCE = 8 }; // rounds without a finished CTA before another one joins

// --- faults ---

void emu_describe(const struct emu_module *m, const struct emu_insn *in, char *text, size_t size)
{
    const struct emu_loc *loc = &m->locs.at[in->loc];
    const char *name = NULL;
    for (uint32_t i = 0; i < m->files.len; i++)
        if (in->loc && m->files.at[i].id == loc->file)
            name = m->files.at[i].name;
    if (name) {
        const char *slash = strrchr(name, '/');
        snprintf(text, size, "PTX line %u (%.80s:%u)", in->line, slash ? slash + 1 : name,
                 loc->line);
    } else {
        snprintf(text, size, "PTX line %u", in->line);
    }
}

void emu_fault(struct emu_warp *w, uint32_t lane, const char *format, ...)
{
    char what[160], where[110];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    emu_describe(w->launch->module, w->in, where, sizeof where);
    const struct emu_grid *l = w->launch;
    const uint32_t t = w->index * EMU_WARP + lane, bx = l->shape.block[0], by = l->shape.block[1];
    emu_raise(&w->launch->trap, TIR_ERR_DEVICE, "%s; %s, CTA (%u,%u,%u), thread (%u,%u,%u)", what,
              where, w->cta->id[0], w->cta->id[1], w->cta->id[2], t % bx, t / bx % by,
              t / (bx * by));
}

// Every warp is blocked and nothing can release one.
static _Noreturn void deadlock(struct emu_grid *l)
{
    char text[248];
    size_t at = 0;
    const struct emu_cta *cta = l->resident;
    at += (size_t)snprintf(text, sizeof text, "deadlock; CTA (%u,%u,%u)", cta->id[0], cta->id[1],
                           cta->id[2]);
    for (uint32_t i = 0; i < l->warps; i++)
        for (uint32_t k = 0; k < cta->warps[i].path_count && at < sizeof text; k++) {
            const struct emu_path *p = cta->warps[i].paths[k];
            char where[110];
            const bool barrier = p->state == EMU_PATH_BARRIER;
            emu_describe(l->module, &l->module->code.at[barrier ? p->pc - 1 : p->pc], where,
                         sizeof where);
            if (barrier) {
                const struct emu_barrier *b = &cta->barriers[p->barrier];
                const uint32_t all = b->expected == EMU_NO_REF ? cta->alive : b->expected;
                at += (size_t)snprintf(text + at, sizeof text - at,
                                       "; warp %u at barrier %u, %u of %u threads there, %s", i,
                                       p->barrier, b->arrived, all, where);
            } else {
                at += (size_t)snprintf(text + at, sizeof text - at,
                                       "; warp %u lanes 0x%08x wait for lanes 0x%08x, %s", i,
                                       p->mask, p->needs, where);
            }
        }
    emu_raise(&l->trap, TIR_ERR_DEVICE, "%s", text);
}

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

static void warp_free(struct emu_grid *l, struct emu_warp *w)
{
    const tir_allocator *a = &l->emu->allocator;
    emu_warp_stop(w);
    while (w->free_frames) {
        struct emu_frame *next = w->free_frames->parent;
        emu_resize(a, w->free_frames, w->free_frames->size, 0);
        w->free_frames = next;
    }
    if (w->copies)
        emu_resize(a, w->copies, w->copy_cap * sizeof *w->copies, 0);
}

static void cta_free(struct emu_grid *l, struct emu_cta *cta)
{
    const tir_allocator *a = &l->emu->allocator;
    for (uint32_t i = 0; cta->warps && i < l->warps; i++)
        warp_free(l, &cta->warps[i]);
    if (cta->warps)
        emu_resize(a, cta->warps, l->warps * sizeof *cta->warps, 0);
    if (cta->shared)
        emu_resize(a, cta->shared, 2 * (size_t)l->shared_size + 1, 0);
    emu_resize(a, cta, sizeof *cta, 0);
}

static void launch_free(struct emu_grid *l)
{
    struct emu_cta **lists[] = {&l->resident, &l->free};
    for (int i = 0; i < 2; i++)
        while (*lists[i]) {
            struct emu_cta *next = (*lists[i])->next;
            cta_free(l, *lists[i]);
            *lists[i] = next;
        }
    if (l->params)
        emu_resize(&l->emu->allocator, l->params, l->params_size + 1, 0);
}

// --- CTAs ---

static void set_all(uint64_t *row, uint32_t value)
{
    uint32_t *v = (uint32_t *)row;
    for (int i = 0; i < EMU_WARP; i++)
        v[i] = value;
}

// The special registers that do not change during the launch.
static void warp_init(struct emu_cta *cta, uint32_t index)
{
    struct emu_grid *l = cta->launch;
    struct emu_warp *w = &cta->warps[index];
    const uint32_t *block = l->shape.block, *grid = l->shape.grid;
    w->launch = l;
    w->cta = cta;
    w->index = index;
    w->base[EMU_BASE_POOL] = l->module->pool;
    w->base[EMU_BASE_SREG] = (uint8_t *)w->sregs;
    for (int i = 0; i < EMU_WARP + 1; i++)
        w->paths[i] = &w->path_store[i];
    uint32_t *tid_x = (uint32_t *)w->sregs[EMU_SREG_tid_x];
    uint32_t *tid_y = (uint32_t *)w->sregs[EMU_SREG_tid_y];
    uint32_t *tid_z = (uint32_t *)w->sregs[EMU_SREG_tid_z];
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        const uint32_t t = index * EMU_WARP + i;
        w->exists |= (uint32_t)(t < l->threads) << i;
        tid_x[i] = t % block[0];
        tid_y[i] = t / block[0] % block[1];
        tid_z[i] = t / (block[0] * block[1]);
        ((uint32_t *)w->sregs[EMU_SREG_laneid])[i] = i;
        ((uint32_t *)w->sregs[EMU_SREG_lanemask_eq])[i] = 1u << i;
        ((uint32_t *)w->sregs[EMU_SREG_lanemask_lt])[i] = (1u << i) - 1;
        ((uint32_t *)w->sregs[EMU_SREG_lanemask_le])[i] = (2u << i) - 1;
        ((uint32_t *)w->sregs[EMU_SREG_lanemask_gt])[i] = ~((2u << i) - 1);
        ((uint32_t *)w->sregs[EMU_SREG_lanemask_ge])[i] = ~((1u << i) - 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        set_all(w->sregs[EMU_SREG_ntid_x + i], block[i]);
        set_all(w->sregs[EMU_SREG_nctaid_x + i], grid[i]);
        set_all(w->sregs[EMU_SREG_nclusterid_x + i], grid[i]);
        set_all(w->sregs[EMU_SREG_cluster_nctaid_x + i], 1);
    }
    set_all(w->sregs[EMU_SREG_cluster_nctarank], 1);
    set_all(w->sregs[EMU_SREG_warpid], index);
    set_all(w->sregs[EMU_SREG_nwarpid], l->warps);
    set_all(w->sregs[EMU_SREG_nsmid], l->emu->options.sm_count);
    set_all(w->sregs[EMU_SREG_dynamic_smem_size], l->dynamic_size);
    set_all(w->sregs[EMU_SREG_total_smem_size], l->shared_size);
}

static struct emu_cta *cta_new(struct emu_grid *l)
{
    struct emu_cta *cta = emu_launch_alloc(l, NULL, 0, sizeof *cta);
    *cta = (struct emu_cta){.launch = l, .next = l->free};
    l->free = cta; // from here on the launch frees it
    cta->shared = emu_launch_alloc(l, NULL, 0, 2 * (size_t)l->shared_size + 1);
    cta->shared_shadow = cta->shared + l->shared_size;
    cta->warps = emu_launch_alloc(l, NULL, 0, l->warps * sizeof *cta->warps);
    memset(cta->warps, 0, l->warps * sizeof *cta->warps);
    for (uint32_t i = 0; i < l->warps; i++)
        warp_init(cta, i);
    return cta;
}

static void cta_start(struct emu_grid *l, uint64_t linear)
{
    struct emu_cta *cta = l->free ? l->free : cta_new(l);
    const uint32_t *grid = l->shape.grid;
    l->free = cta->next;
    cta->next = NULL;
    struct emu_cta **last = &l->resident;
    while (*last)
        last = &(*last)->next;
    *last = cta;
    cta->linear = linear;
    cta->id[0] = (uint32_t)(linear % grid[0]);
    cta->id[1] = (uint32_t)(linear / grid[0] % grid[1]);
    cta->id[2] = (uint32_t)(linear / grid[0] / grid[1]);
    cta->alive = l->threads;
    memset(cta->barriers, 0, sizeof cta->barriers);
    memset(cta->shared, 0xcd, l->shared_size);
    memset(cta->shared_shadow, EMU_UNSET, l->shared_size);
    for (uint32_t i = 0; i < l->warps; i++) {
        struct emu_warp *w = &cta->warps[i];
        for (uint32_t k = 0; k < 3; k++) {
            set_all(w->sregs[EMU_SREG_ctaid_x + k], cta->id[k]);
            set_all(w->sregs[EMU_SREG_clusterid_x + k], cta->id[k]);
        }
        set_all(w->sregs[EMU_SREG_smid], (uint32_t)(linear % l->emu->options.sm_count));
        emu_warp_start(w, l->kernel);
    }
}

// One turn for every warp of every resident CTA. True when a CTA finished.
static bool round_robin(struct emu_grid *l)
{
    bool progress = false, finished = false;
    for (struct emu_cta **at = &l->resident; *at;) {
        struct emu_cta *cta = *at;
        cta->progress = false;
        for (uint32_t i = 0; i < l->warps; i++)
            if (cta->warps[i].alive)
                emu_warp_run(&cta->warps[i]);
        progress |= cta->progress;
        if (cta->alive == 0) {
            *at = cta->next;
            cta->next = l->free;
            l->free = cta;
            finished = true;
        } else {
            at = &cta->next;
        }
    }
    if (!progress)
        deadlock(l);
    return finished;
}

static void run_ctas(struct emu_grid *l)
{
    const uint32_t *grid = l->shape.grid;
    const uint64_t count = (uint64_t)grid[0] * grid[1] * grid[2];
    uint32_t resident = 0, patience = PATIENCE;
    for (uint64_t next = 0; next < count || l->resident;) {
        if (next < count && (!resident || (!patience && resident < l->emu->options.sm_count))) {
            cta_start(l, next++);
            resident++;
            patience = PATIENCE;
        }
        if (round_robin(l)) {
            patience = PATIENCE;
            resident = 0;
            for (const struct emu_cta *cta = l->resident; cta; cta = cta->next)
                resident++;
        } else if (patience) {
            patience--;
        }
    }
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
        return emu_fail(error, TIR_ERR_INVALID, "the module has no kernel '%.100s'", kernel);
    *out = (struct emu_kernel_info){.params_size = f->params_size, .max_threads = f->max_threads};
    const uint64_t end = layout_shared(module, f);
    out->static_shared_bytes = (uint32_t)(end > UINT32_MAX ? UINT32_MAX : end - EMU_SHARED_START);
    return TIR_OK;
}

static tir_status check_launch(const struct emu_func *f, const struct emu_launch *launch,
                               tir_error *error)
{
    const uint32_t *block = launch->block, *grid = launch->grid;
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads == 0 || threads > 1024)
        return emu_fail(error, TIR_ERR_INVALID, "block of %u x %u x %u threads", block[0], block[1],
                        block[2]);
    if (f->max_threads && threads > f->max_threads)
        return emu_fail(error, TIR_ERR_INVALID, "block of %u threads; the kernel allows %u",
                        (uint32_t)threads, f->max_threads);
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 ||
        grid[2] > 65535)
        return emu_fail(error, TIR_ERR_INVALID, "grid of %u x %u x %u blocks", grid[0], grid[1],
                        grid[2]);
    if (launch->params_size != f->params_size)
        return emu_fail(error, TIR_ERR_INVALID, "%zu bytes of parameters; the kernel takes %u",
                        launch->params_size, f->params_size);
    for (int i = 0; i < 3; i++)
        if (launch->cluster[i] > 1)
            return emu_fail(error, TIR_ERR_UNSUPPORTED, "clusters are not supported");
    return TIR_OK;
}

// Nothing here changes between setjmp and a jump back, so no local needs to be volatile.
static tir_status run(struct emu_grid *l, const void *params)
{
    if (setjmp(l->trap.env))
        return l->trap.error->status;
    l->params = emu_launch_alloc(l, NULL, 0, l->params_size + 1);
    if (l->params_size)
        memcpy(l->params, params, l->params_size);
    run_ctas(l);
    return TIR_OK;
}

tir_status emu_run(struct emu *emu, struct emu_module *module, const char *kernel,
                   const struct emu_launch *launch, tir_error *error)
{
    tir_error ignored;
    struct emu_func *f = find_kernel(module, kernel);
    if (!f)
        return emu_fail(error, TIR_ERR_INVALID, "the module has no kernel '%.100s'", kernel);
    tir_status status = check_launch(f, launch, error);
    if (status)
        return status;
    const uint64_t end = layout_shared(module, f) + launch->shared_bytes;
    if (end > EMU_SHARED_START + EMU_SHARED_LIMIT)
        return emu_fail(error, TIR_ERR_INVALID, "%llu bytes of shared memory; there are %d",
                        (unsigned long long)(end - EMU_SHARED_START), EMU_SHARED_LIMIT);
    apply_fixups(module);
    struct emu_grid *l = emu_resize(&emu->allocator, NULL, 0, sizeof *l);
    if (!l)
        return emu_fail(error, TIR_ERR_NO_MEMORY, "out of memory");
    *l = (struct emu_grid){.emu = emu, .module = module, .kernel = f};
    memcpy(l->shape.grid, launch->grid, sizeof l->shape.grid);
    memcpy(l->shape.block, launch->block, sizeof l->shape.block);
    l->params_size = f->params_size;
    l->shared_size = (uint32_t)(end - EMU_SHARED_START);
    l->dynamic_size = launch->shared_bytes;
    l->threads = launch->block[0] * launch->block[1] * launch->block[2];
    l->warps = (l->threads + EMU_WARP - 1) / EMU_WARP;
    l->trap.error = error ? error : &ignored;
    // The host may have set a rounding mode, flushing of subnormals or traps.
    fenv_t host;
    fegetenv(&host);
    fesetenv(FE_DFL_ENV);
    status = run(l, launch->params);
    fesetenv(&host);
    launch_free(l);
    emu_resize(&emu->allocator, l, sizeof *l, 0);
    return status;
}
