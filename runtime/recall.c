// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans: a launch like an earlier one is not decided again.
//
// Programs launch a kernel on few shapes, many times. All that a launch decides, its checks, the
// choice of a variant, its tensor maps and its grid, follows from the shapes and strides of the
// tensors, the lowest bits of their addresses, and the scalars that formulas use. These are the key
// of a plan:
//     wanted variant | 4 bits of each address | per tensor shape, stride, ... | scalars
// A plan holds the number of the variant (or, from their count on, of the sequence), the grid, and
// the parameter block with its tensor maps. A launch that finds one writes its addresses and other
// scalars into a copy of that block. It only has to look itself whether tensors share memory; where
// their bytes overlap, there is no plan for it.

#include <string.h>

#include "packing.h"
#include "tensor_bits.h"

enum { LOW_BITS = 4, ADDRESS_BITS = 57 };

// The key of these arguments, and the addresses of the tensors. False: they are not simple, and may
// be wrong.
static bool read_args(struct packing *p, const tir_rt_arg *args, uint64_t *key,
                      uint64_t data[TIR_MAX_PARAMS])
{
    const tir_artifact_kernel *info = p->info;
    uint64_t *at = key + (info->param_count + 15) / 16;
    for (uint32_t i = 0; i < info->param_count; i++) {
        if (i % 16 == 0)
            key[i / 16] = 0;
        if (info->params[i].kind == TIR_PARAM_SCALAR) {
            if (args[i].kind != TIR_RT_SCALAR)
                return false;
            if (p->kernel->layout->decisive >> i & 1)
                *at++ = args[i].as.scalar.value.u;
            continue;
        }
        struct tensor_view view;
        int64_t dense[TIR_MAX_RANK];
        if (tir_packing_view(p, &info->params[i], &args[i], &view, dense) || !view.data ||
            view.data >> ADDRESS_BITS)
            return false;
        data[i] = view.data;
        key[i / 16] |= (view.data & ((1u << LOW_BITS) - 1)) << i % 16 * LOW_BITS;
        for (uint32_t d = 0; d < view.rank; d++) {
            *at++ = (uint64_t)view.shape[d];
            *at++ = (uint64_t)view.strides[d];
        }
    }
    return true;
}

// ---- a plan in words

enum { HEAD_NUMBER, HEAD_GRID, HEAD_SIZE, HEAD_REST };

static void write_head(const struct packing *p, uint64_t *head)
{
    const tir_artifact_kernel *info = p->info;
    head[HEAD_NUMBER] = p->variant | (uint64_t)p->is_tuned << 32;
    head[HEAD_GRID] = p->grid[0] | (uint64_t)p->grid[1] << 32;
    head[HEAD_SIZE] = p->params_size | (uint64_t)p->grid[2] << 32;
    uint64_t *at = head + HEAD_REST;
    for (uint32_t i = 0; i < info->dim_count; i++)
        *at++ = (uint64_t)p->dims[i];
    for (uint32_t i = 0; i < info->param_count; i++)
        *at++ = (uint64_t)p->values[i];
}

static void read_head(struct packing *p, const uint64_t *head)
{
    const tir_artifact_kernel *info = p->info;
    p->variant = (uint32_t)head[HEAD_NUMBER];
    p->is_tuned = head[HEAD_NUMBER] >> 32;
    p->grid[0] = (uint32_t)head[HEAD_GRID];
    p->grid[1] = (uint32_t)(head[HEAD_GRID] >> 32);
    p->params_size = (uint32_t)head[HEAD_SIZE];
    p->grid[2] = (uint32_t)(head[HEAD_SIZE] >> 32);
    memcpy(p->dims, head + HEAD_REST, info->dim_count * sizeof *p->dims);
    memcpy(p->values, head + HEAD_REST + info->dim_count, info->param_count * sizeof *p->values);
}

// Of each tensor the bytes before and after its address that it reaches.
static uint64_t *reaches_of(const struct packing *p, uint64_t *head)
{
    return head + HEAD_REST + p->info->dim_count + p->info->param_count;
}

static bool write_reaches(const struct packing *p, uint64_t *out)
{
    for (uint32_t i = 0; i < p->info->param_count; i++, out += 2) {
        uint64_t data = 0;
        out[0] = out[1] = 0;
        if (p->info->params[i].kind == TIR_PARAM_SCALAR || p->reach[i].low == p->reach[i].end)
            continue;
        memcpy(&data, p->block + p->kernel->layout->param[i], sizeof data);
        if (!p->reach[i].low || p->reach[i].end == UINT64_MAX)
            return false; // cut off
        out[0] = data - p->reach[i].low;
        out[1] = p->reach[i].end - data;
    }
    return true;
}

// Whether no tensor that is written shares bytes with another one.
static bool are_apart(const struct packing *p)
{
    const tir_artifact_kernel *info = p->info;
    for (uint32_t i = 0; i < info->param_count; i++) {
        const tir_artifact_param *param = &info->params[i];
        if (param->kind == TIR_PARAM_SCALAR || param->direction == TIR_DIRECTION_IN)
            continue;
        for (uint32_t j = 0; j < info->param_count; j++)
            if (j != i && p->reach[i].low < p->reach[j].end && p->reach[j].low < p->reach[i].end)
                return false;
    }
    return true;
}

static bool read_reaches(struct packing *p, const uint64_t *in, const uint64_t *data)
{
    for (uint32_t i = 0; i < p->info->param_count; i++, in += 2) {
        p->reach[i] = (struct reach){0, 0};
        if (!in[1])
            continue;
        if (data[i] <= in[0])
            return false;
        p->reach[i] = (struct reach){data[i] - in[0], data[i] + in[1]};
    }
    return true;
}

// ---- the block

// Writes the addresses, and the scalars that decide nothing, over those of the plan.
static bool write_args(struct packing *p, const tir_rt_arg *args, const uint64_t *data)
{
    const tir_artifact_kernel *info = p->info;
    const struct launch_layout *layout = p->kernel->layout;
    for (uint32_t i = 0; i < info->param_count; i++) {
        if (info->params[i].kind == TIR_PARAM_TENSOR)
            memcpy(p->block + layout->param[i], &data[i], sizeof data[i]);
        else if (tir_packing_scalar(p, i, &args[i]))
            return false;
    }
    if (p->variant >= info->variant_count)
        return true;
    const tir_artifact_variant *variant = p->kernel->functions[p->variant].info;
    uint8_t *map = p->block + tir_packing_maps_at(p, variant);
    for (uint32_t i = 0; i < variant->map_count; i++, map += TIR_TENSOR_MAP_BYTES)
        tir_tensor_map_set(map, TIR_MAP_ADDRESS, 0, data[variant->maps[i].param]);
    return true;
}

static void list_parts(struct packing *p)
{
    const struct launch_layout *layout = p->kernel->layout;
    for (uint32_t i = 0; i < layout->part_count; i++)
        p->parts[i] = p->block + layout->at[i];
    p->part_count = layout->part_count;
}

bool tir_packing_recall(struct packing *p, const tir_rt_kernel *kernel, const tir_rt_arg *args,
                        uint32_t count, int32_t wanted, enum recall_use use, tir_error *error)
{
    const struct launch_layout *layout = kernel->layout;
    uint64_t data[TIR_MAX_PARAMS], head[TIR_PLAN_HEAD_WORDS];
    p->can_plan = false;
    if (!layout->has_plans || count != kernel->info->param_count)
        return false;
    p->kernel = kernel;
    p->info = kernel->info;
    p->device = &kernel->device->info;
    p->error = NULL;
    p->key[0] = (uint32_t)wanted | (uint64_t)use << 32;
    p->can_plan = read_args(p, args, p->key + 1, data);
    if (!p->can_plan || !tir_plans_find(&layout->plans, p->key, head, p->block))
        return false;
    read_head(p, head);
    if (!write_args(p, args, data) || !read_reaches(p, reaches_of(p, head), data) ||
        (use == RECALL_LAUNCH && !are_apart(p)))
        return false;
    list_parts(p);
    p->error = error;
    p->is_recalled = true;
    return true;
}

void tir_packing_remember(const struct packing *p)
{
    uint64_t head[TIR_PLAN_HEAD_WORDS];
    if (!p->can_plan)
        return;
    write_head(p, head);
    if (write_reaches(p, reaches_of(p, head)))
        tir_plans_keep(&p->kernel->layout->plans, p->key, head, p->block,
                       (uint32_t)(p->params_size + 7) / 8);
}
