// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans: a launch like an earlier one is not decided again.
//
// Programs launch a kernel on few shapes, many times. All that a launch decides, its checks, the
// choice of a variant, its tensor maps and its grid, follows from the shapes and strides of the
// tensors, the lowest bits of their addresses, and the scalars that formulas use. These are the key
// of a plan:
//     wanted variant, use | of each tensor: its type and bits of its address, shape, strides if it
//     has any | scalars
// A plan holds the number of the variant (or, from their count on, of the sequence), the grid, and
// the parameter block with its tensor maps. A launch that finds one takes it, writes its addresses
// and other scalars into that block, and the driver reads them there. It only has to look itself
// whether tensors share memory; where their bytes overlap, there is no plan for it.

#include <string.h>

#include "packing.h"
#include "tensor_bits.h"

// ---- a plan in words

enum { HEAD_NUMBER, HEAD_GRID, HEAD_SIZE, HEAD_REST };

// After those: of each tensor the bytes before and after its address that it reaches, the
// dimensions, and the value of each parameter.
uint32_t tir_packing_head_words(const tir_artifact_kernel *info)
{
    return HEAD_REST + 2 * info->param_count + info->dim_count + info->param_count;
}

// Whether what a tensor reaches does not lie within the numbers that addresses are.
static bool is_cut_off(const struct reach *reach)
{
    return reach->low < reach->end && (!reach->low || reach->end == UINT64_MAX);
}

static void write_spans(const struct packing *p, uint64_t *out)
{
    for (uint32_t i = 0; i < p->info->param_count; i++, out += 2) {
        uint64_t data = 0;
        if (p->reach[i].end)
            memcpy(&data, p->block + p->kernel->layout->param[i], sizeof data);
        out[0] = data - p->reach[i].low;
        out[1] = p->reach[i].end - data;
    }
}

// Whether no tensor that is written shares bytes with another one.
static bool are_apart(const struct packing *p, const uint64_t *data)
{
    const struct launch_layout *layout = p->kernel->layout;
    const uint64_t *span = p->plan->head + HEAD_REST;
    for (uint32_t o = 0; o < layout->output_count; o++) {
        const uint32_t i = layout->outputs[o];
        const int64_t low = (int64_t)(data[i] - span[2 * i]);
        const int64_t end = (int64_t)(data[i] + span[2 * i + 1]);
        for (uint32_t t = 0; t < layout->tensor_count; t++) {
            const uint32_t j = layout->tensors[t].param;
            if (j != i && low < (int64_t)(data[j] + span[2 * j + 1]) &&
                (int64_t)(data[j] - span[2 * j]) < end)
                return false;
        }
    }
    return true;
}

static void write_head(const struct packing *p, uint64_t *head)
{
    const tir_artifact_kernel *info = p->info;
    uint64_t *dims = head + HEAD_REST + 2 * info->param_count;
    head[HEAD_NUMBER] = p->variant | (uint64_t)p->is_tuned << 32;
    head[HEAD_GRID] = p->grid[0] | (uint64_t)p->grid[1] << 32;
    head[HEAD_SIZE] = p->params_size | (uint64_t)p->grid[2] << 32;
    memcpy(dims, p->dims, info->dim_count * sizeof *dims);
    memcpy(dims + info->dim_count, p->values, info->param_count * sizeof *dims);
    write_spans(p, head + HEAD_REST);
}

static void read_head(struct packing *p, const uint64_t *head)
{
    const tir_artifact_kernel *info = p->info;
    const uint64_t *dims = head + HEAD_REST + 2 * info->param_count;
    p->variant = (uint32_t)head[HEAD_NUMBER];
    p->is_tuned = head[HEAD_NUMBER] >> 32;
    p->grid[0] = (uint32_t)head[HEAD_GRID];
    p->grid[1] = (uint32_t)(head[HEAD_GRID] >> 32);
    p->params_size = (uint32_t)head[HEAD_SIZE];
    p->grid[2] = (uint32_t)(head[HEAD_SIZE] >> 32);
    if (p->variant < info->variant_count)
        return; // only the formulas of a sequence are evaluated each time
    memcpy(p->dims, dims, info->dim_count * sizeof *dims);
    memcpy(p->values, dims + info->dim_count, info->param_count * sizeof *dims);
}

// ---- launches

static void move_maps(struct packing *p, const uint64_t *data)
{
    const tir_artifact_variant *variant = p->kernel->functions[p->variant].info;
    uint8_t *map = p->block + tir_packing_maps_at(p, variant);
    for (uint32_t i = 0; i < variant->map_count; i++, map += TIR_TENSOR_MAP_BYTES)
        tir_tensor_map_move(map, data[variant->maps[i].param]);
}

static bool use_plan(struct packing *p, const tir_rt_arg *args, const uint64_t *data,
                     enum recall_use use)
{
    p->block = p->plan->block;
    p->parts = p->plan->parts;
    read_head(p, p->plan->head);
    if (!tir_packing_args(p, args, data) || (use == RECALL_LAUNCH && !are_apart(p, data)))
        return false;
    if (p->variant < p->info->variant_count)
        move_maps(p, data);
    return true;
}

bool tir_packing_recall(struct packing *p, const tir_rt_kernel *kernel, const tir_rt_arg *args,
                        uint32_t count, int32_t wanted, enum recall_use use, tir_error *error)
{
    const struct launch_layout *layout = kernel->layout;
    uint64_t data[TIR_MAX_PARAMS];
    p->plan = NULL;
    p->key_words = 0;
    if (!layout->has_plans || count != kernel->info->param_count)
        return false;
    p->kernel = kernel;
    p->info = kernel->info;
    p->device = &kernel->device->info;
    p->error = NULL;
    p->key[0] = (uint32_t)wanted | (uint64_t)use << 32;
    if (!tir_packing_key(p, args, data))
        return false;
    p->plan = tir_plans_take(&layout->plans, p->key, p->key_words);
    if (p->plan && !use_plan(p, args, data, use))
        tir_packing_done(p);
    p->error = error;
    return p->plan;
}

void tir_packing_done(struct packing *p)
{
    if (p->plan)
        tir_plans_give(p->plan);
    p->plan = NULL;
}

// The parts of a launch with tensor maps, in the plan's own block.
static void write_parts(const struct packing *p, struct plan *plan)
{
    uint32_t i = 0;
    for (; p->parts[i]; i++)
        plan->parts[i] = plan->block + ((uint8_t *)p->parts[i] - p->block);
    plan->parts[i] = NULL;
}

void tir_packing_remember(const struct packing *p)
{
    const bool is_sequence = p->variant >= p->info->variant_count;
    if (!p->key_words)
        return;
    for (uint32_t i = 0; i < p->info->param_count; i++)
        if (is_cut_off(&p->reach[i]))
            return;
    struct plan *plan = tir_plans_make(&p->kernel->layout->plans, p->key, p->key_words);
    if (!plan)
        return;
    write_head(p, plan->head);
    memcpy(plan->block, p->block, p->params_size);
    if (!is_sequence && p->kernel->functions[p->variant].info->map_count)
        write_parts(p, plan);
    tir_plans_give(plan);
}
