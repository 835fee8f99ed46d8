// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collecting tensor maps: kernels have a handful, so a list is searched.

#include "target/nvptx/tensor_maps.h"

#include "ir/walk.h"

static bool uses_map(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_TMA_LOAD || inst->op == TIR_OP_TMA_GATHER ||
           inst->op == TIR_OP_TMA_PIXELS || inst->op == TIR_OP_TMA_STORE ||
           inst->op == TIR_OP_TMA_PREFETCH;
}

static struct tir_tensor_map_use use_of(const struct tir_func *f, const struct tir_inst *inst)
{
    const struct tir_value *tensor = tir_ref_base(inst);
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct tir_tensor_map_use use = {
        .param = (uint32_t)(tir_param_of(f, tensor) - f->params),
        .rank = tensor->type->rank,
        .swizzle = (uint32_t)tir_attr_int(inst, TIR_ATTR_swizzle, 0),
        .bits = (uint32_t)tir_attr_int(inst, TIR_ATTR_bits, 0),
    };
    for (uint32_t d = 0; d < use.rank; d++) {
        use.box[d] = box->list[d] ? box->list[d] : 1;
        use.stride[d] = tir_slice_stride(inst, d);
    }
    use.pixels = (uint32_t)tir_attr_int(inst, TIR_ATTR_pixels, 0);
    for (uint32_t i = 0; use.pixels && i + 2 < use.rank; i++) {
        use.low[i] = tir_attr_find(inst, TIR_ATTR_low)->list[i];
        use.high[i] = tir_attr_find(inst, TIR_ATTR_high)->list[i];
    }
    return use;
}

static bool is_same(const struct tir_tensor_map_use *a, const struct tir_tensor_map_use *b)
{
    return a->param == b->param && a->swizzle == b->swizzle && a->bits == b->bits &&
           !memcmp(a->box, b->box, sizeof(a->box)) &&
           !memcmp(a->stride, b->stride, sizeof(a->stride)) && a->pixels == b->pixels &&
           !memcmp(a->low, b->low, sizeof(a->low)) && !memcmp(a->high, b->high, sizeof(a->high));
}

static uint32_t find(const struct tir_tensor_maps *maps, const struct tir_tensor_map_use *use)
{
    uint32_t i = 0;
    while (i < maps->len && !is_same(&maps->at[i], use))
        i++;
    return i;
}

struct tir_tensor_maps tir_tensor_maps(struct tir_arena *arena, const struct tir_func *f)
{
    VEC(struct tir_tensor_map_use) uses = {0};
    tir_foreach_inst(inst, f) {
        if (!uses_map(inst))
            continue;
        struct tir_tensor_map_use use = use_of(f, inst);
        struct tir_tensor_maps known = {uses.at, uses.len};
        if (find(&known, &use) == uses.len)
            vec_push(arena, &uses, use);
    }
    return (struct tir_tensor_maps){uses.at, uses.len};
}

uint32_t tir_tensor_map_index(const struct tir_tensor_maps *maps, const struct tir_func *f,
                              const struct tir_inst *inst)
{
    struct tir_tensor_map_use use = use_of(f, inst);
    return find(maps, &use);
}
