// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters and their CTAs: making them, starting them on the next part of the grid, freeing them.
//
// A launch without clusters has clusters of one CTA. The memory of a cluster is used again by the
// next one, so a large grid costs as much as those of its clusters that are resident at a time.

#include <string.h>

#include "emu/async/mbarrier.h"
#include "emu/async/op.h"
#include "emu/check/undefined.h"
#include "emu/run/trace.h"
#include "emu/tensor/tmem.h"
#include "emu/tensor/wgmma.h"

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
    const uint32_t *block = l->shape.block;
    w->launch = l;
    w->cta = cta;
    w->index = index;
    w->base[EMU_BASE_POOL] = cta->pool;
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
        set_all(w->sregs[EMU_SREG_nctaid_x + i], l->shape.grid[i]);
    }
    set_all(w->sregs[EMU_SREG_cluster_ctarank], cta->rank);
    set_all(w->sregs[EMU_SREG_warpid], index);
    set_all(w->sregs[EMU_SREG_nwarpid], l->warps);
    set_all(w->sregs[EMU_SREG_nsmid], l->emu->options.sm_count);
    set_all(w->sregs[EMU_SREG_dynamic_smem_size], l->dynamic_size);
    set_all(w->sregs[EMU_SREG_total_smem_size], l->shared_size);
    set_all(w->sregs[EMU_SREG_is_explicit_cluster], l->cluster_size > 1 ? EMU_FULL : 0);
    set_all(w->sregs[EMU_SREG_aggr_smem_size], l->shared_size);
    // Where CUDA's cooperative groups look for the workspace of the grid (driver_abi.h there).
    set_all(w->sregs[EMU_SREG_envreg1], (uint32_t)(l->workspace >> 32));
    set_all(w->sregs[EMU_SREG_envreg2], (uint32_t)l->workspace);
}

// The module's constants as a CTA of this rank sees them: its shared addresses carry the rank.
static uint8_t *pool_new(struct emu_grid *l, uint32_t rank)
{
    const struct emu_module *m = l->module;
    if (rank == 0)
        return m->pool;
    uint8_t *pool = emu_launch_alloc(l, NULL, 0, m->pool_len);
    memcpy(pool, m->pool, m->pool_len);
    for (uint32_t i = 0; i < m->fixups.len; i++) {
        const struct emu_fixup *f = &m->fixups.at[i];
        for (uint32_t k = 0; k < EMU_WARP; k++)
            pool[f->pool + k * f->width + EMU_RANK_SHIFT / 8] = (uint8_t)rank; // little endian
    }
    return pool;
}

static void cta_init(struct emu_cluster *cluster, uint32_t rank)
{
    struct emu_grid *l = cluster->launch;
    struct emu_cta *cta = &cluster->ctas[rank];
    cta->launch = l;
    cta->cluster = cluster;
    cta->rank = rank;
    cta->pool = pool_new(l, rank);
    cta->shared = emu_launch_alloc(l, NULL, 0, 2 * (size_t)l->shared_size + 1);
    cta->shared_shadow = cta->shared + l->shared_size;
    cta->warps = emu_launch_alloc(l, NULL, 0, l->warps * sizeof *cta->warps);
    memset(cta->warps, 0, l->warps * sizeof *cta->warps);
    for (uint32_t i = 0; i < l->warps; i++)
        warp_init(cta, i);
}

static struct emu_cluster *cluster_new(struct emu_grid *l)
{
    struct emu_cluster *cluster = emu_launch_alloc(l, NULL, 0, sizeof *cluster);
    *cluster = (struct emu_cluster){.launch = l, .next = l->free};
    l->free = cluster; // from here on the launch frees it
    const size_t size = l->cluster_size * sizeof *cluster->ctas;
    cluster->ctas = emu_launch_alloc(l, NULL, 0, size);
    memset(cluster->ctas, 0, size);
    for (uint32_t i = 0; i < l->cluster_size; i++)
        cta_init(cluster, i);
    return cluster;
}

// Of clusters of so many CTAs.
static const uint32_t *shape_of(const struct emu_grid *l, uint32_t size)
{
    return size == l->cluster_size ? l->shape.preferred : l->shape.cluster;
}

static void place_in(const uint32_t shape[3], uint32_t rank, uint32_t at[3])
{
    at[0] = rank % shape[0];
    at[1] = rank / shape[0] % shape[1];
    at[2] = rank / (shape[0] * shape[1]);
}

void emu_cta_id(const struct emu_grid *l, uint32_t size, uint64_t cluster, uint32_t rank,
                uint32_t id[3])
{
    const uint32_t *shape = shape_of(l, size), *grid = l->shape.grid;
    const uint32_t x = grid[0] / shape[0], y = grid[1] / shape[1];
    place_in(shape, rank, id);
    id[0] += (uint32_t)(cluster % x) * shape[0];
    id[1] += (uint32_t)(cluster / x % y) * shape[1];
    id[2] += (uint32_t)(cluster / x / y) * shape[2];
}

// The registers about its cluster, whose size may differ from the one before.
static void warp_place(struct emu_warp *w)
{
    const struct emu_cta *cta = w->cta;
    const uint32_t *shape = shape_of(w->launch, cta->cluster->size);
    uint32_t in_cluster[3];
    place_in(shape, cta->rank, in_cluster);
    for (uint32_t i = 0; i < 3; i++) {
        set_all(w->sregs[EMU_SREG_ctaid_x + i], cta->id[i]);
        set_all(w->sregs[EMU_SREG_clusterid_x + i], cta->id[i] / shape[i]);
        set_all(w->sregs[EMU_SREG_nclusterid_x + i], w->launch->shape.grid[i] / shape[i]);
        set_all(w->sregs[EMU_SREG_cluster_nctaid_x + i], shape[i]);
        set_all(w->sregs[EMU_SREG_cluster_ctaid_x + i], in_cluster[i]);
    }
    set_all(w->sregs[EMU_SREG_cluster_nctarank], cta->cluster->size);
}

static void cta_start(struct emu_cta *cta)
{
    struct emu_grid *l = cta->launch;
    const uint32_t size = cta->cluster->size;
    const uint64_t linear = cta->cluster->linear;
    emu_cta_id(l, size, linear, cta->rank, cta->id);
    cta->alive = l->threads;
    cta->refused = NULL;
    emu_mbarriers_drop(cta);
    emu_tmem_start(cta);
    for (int i = 0; i < EMU_UNITS; i++)
        cta->engine_free[i] = cta->cluster->start_time;
    for (uint32_t i = 0; i < EMU_BARRIERS; i++)
        cta->barriers[i] = (struct emu_barrier){.view = cta->barriers[i].view};
    memset(cta->shared, 0xcd, l->shared_size);
    memset(cta->shared_shadow, EMU_UNSET, l->shared_size);
    for (uint32_t i = 0; i < l->module->shared.len; i++) {
        const struct emu_shared_var *v = &l->module->shared.at[i];
        if (!v->is_used || !v->is_reserved)
            continue;
        memset(cta->shared + (v->offset - EMU_SHARED_START), 0, v->size);
        memset(cta->shared_shadow + (v->offset - EMU_SHARED_START), EMU_SET, v->size);
    }
    for (uint32_t i = 0; i < l->warps; i++) {
        struct emu_warp *w = &cta->warps[i];
        warp_place(w);
        set_all(w->sregs[EMU_SREG_smid],
                (uint32_t)((linear * size + cta->rank) % l->emu->options.sm_count));
        emu_warp_start(w, l->kernel);
    }
}

// The cluster's warps, and their queues of copies, become agents of which no other knows anything.
static void start_agents(struct emu_cluster *cluster)
{
    struct emu_grid *l = cluster->launch;
    const uint32_t warps = l->cluster_size * l->warps;
    if (l->emu->options.check < EMU_CHECK_RACE)
        return;
    if (!cluster->agents)
        cluster->agents = emu_arena_array(&l->checks, warps, sizeof *cluster->agents);
    const bool enough = emu_domain_start(&l->order, &cluster->domain, cluster->size,
                                         l->warps * EMU_AGENTS_PER_WARP, cluster->linear);
    if (enough)
        emu_domain_warps(&l->order, cluster->agents, EMU_AGENTS_PER_WARP);
    for (uint32_t i = 0; i < cluster->size; i++) {
        struct emu_cta *cta = &cluster->ctas[i];
        cta->race.address = EMU_SHARED_START + emu_rank_bits(i);
        cta->race.size = l->shared_size;
        emu_race_forget(&l->race, &cta->race);
        emu_tmem_forget(cta);
        for (uint32_t k = 0; k < l->warps; k++) {
            struct emu_agent *a = &cluster->agents[i * l->warps + k];
            cta->warps[k].agent = enough ? a : NULL; // there are 4 billion
            if (enough)
                emu_agent_start(a, &cluster->domain,
                                i * cluster->domain.per_cta + k * EMU_AGENTS_PER_WARP);
        }
    }
}

// A part of the grid as large as a preferred cluster starts as such a one, or as several clusters
// of the stated size: by the seed, whoever starts it.
static bool is_whole(const struct emu_grid *l, uint64_t part)
{
    uint64_t z = l->emu->options.seed + (part + 1) * 0x9e3779b97f4a7c15; // splitmix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z >> 63;
}

// Which cluster it is; the launch goes on to the next one.
static void take_place(struct emu_grid *l, struct emu_cluster *cluster)
{
    const uint32_t *own = l->shape.cluster, *grid = l->shape.grid;
    const uint32_t size = own[0] * own[1] * own[2];
    cluster->size = l->cluster_size;
    cluster->linear = l->next_cluster;
    if (size < l->cluster_size && !is_whole(l, l->next_cluster)) {
        const uint32_t *whole = l->shape.preferred;
        const uint32_t parts[3] = {whole[0] / own[0], whole[1] / own[1], whole[2] / own[2]};
        uint32_t id[3], at[3];
        emu_cta_id(l, l->cluster_size, l->next_cluster, 0, id);
        place_in(parts, l->next_part, at);
        for (uint32_t i = 0; i < 3; i++)
            at[i] += id[i] / own[i];
        cluster->size = size;
        cluster->linear =
            at[0] + (uint64_t)(grid[0] / own[0]) * (at[1] + (uint64_t)(grid[1] / own[1]) * at[2]);
        if (++l->next_part < l->cluster_size / size)
            return;
    }
    l->next_part = 0;
    l->next_cluster += l->stride;
}

void emu_cluster_start(struct emu_grid *l)
{
    struct emu_cluster *cluster = l->free ? l->free : cluster_new(l);
    l->free = cluster->next;
    cluster->next = NULL;
    struct emu_cluster **last = &l->resident;
    while (*last)
        last = &(*last)->next;
    *last = cluster;
    take_place(l, cluster);
    cluster->alive = l->threads * cluster->size;
    cluster->arrived = 0;
    cluster->arrived_time = cluster->done_time = 0;
    emu_trace_cluster(cluster);
    for (uint32_t i = 0; i < cluster->size; i++)
        cta_start(&cluster->ctas[i]);
    start_agents(cluster);
}

// --- freeing ---

static void warp_free(struct emu_grid *l, struct emu_warp *w)
{
    const tir_allocator *a = &l->emu->allocator;
    emu_warp_stop(w);
    emu_watch_free(w);
    while (w->free_frames) {
        struct emu_frame *next = w->free_frames->parent;
        emu_undefined_free(l, w->free_frames);
        emu_resize(a, w->free_frames, w->free_frames->size, 0);
        w->free_frames = next;
    }
}

static void cluster_free(struct emu_grid *l, struct emu_cluster *cluster)
{
    const tir_allocator *a = &l->emu->allocator;
    emu_ops_drop(cluster);
    for (uint32_t k = 0; cluster->ctas && k < l->cluster_size; k++) {
        struct emu_cta *cta = &cluster->ctas[k];
        for (uint32_t i = 0; cta->warps && i < l->warps; i++)
            warp_free(l, &cta->warps[i]);
        if (cta->warps)
            emu_resize(a, cta->warps, l->warps * sizeof *cta->warps, 0);
        if (cta->shared)
            emu_resize(a, cta->shared, 2 * (size_t)l->shared_size + 1, 0);
        if (cta->pool && cta->rank)
            emu_resize(a, cta->pool, l->module->pool_len, 0);
        if (cta->launch) {
            emu_mbarriers_drop(cta);
            emu_tmem_free(cta);
        }
    }
    if (cluster->ctas)
        emu_resize(a, cluster->ctas, l->cluster_size * sizeof *cluster->ctas, 0);
    emu_resize(a, cluster, sizeof *cluster, 0);
}

void emu_clusters_free(struct emu_grid *l)
{
    struct emu_cluster **lists[] = {&l->resident, &l->free};
    for (int i = 0; i < 2; i++)
        while (*lists[i]) {
            struct emu_cluster *next = (*lists[i])->next;
            cluster_free(l, *lists[i]);
            *lists[i] = next;
        }
}
