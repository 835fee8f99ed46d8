// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps of a launch's arguments. A plan keeps them (recall.c), and then only their addresses
// change.

#include "launch_map.h"

#include <stdbool.h>

#include "error.h"

// By element. Bits are copied as they are, so tf32 is f32; a recipe may ask for rounding.
static const tir_tensor_map_type types[TIR_ELEMENT_COUNT] = {
    [TIR_ELEMENT_I8] = TIR_TENSOR_MAP_U8,    [TIR_ELEMENT_I16] = TIR_TENSOR_MAP_U16,
    [TIR_ELEMENT_I32] = TIR_TENSOR_MAP_S32,  [TIR_ELEMENT_I64] = TIR_TENSOR_MAP_S64,
    [TIR_ELEMENT_U8] = TIR_TENSOR_MAP_U8,    [TIR_ELEMENT_U16] = TIR_TENSOR_MAP_U16,
    [TIR_ELEMENT_U32] = TIR_TENSOR_MAP_U32,  [TIR_ELEMENT_U64] = TIR_TENSOR_MAP_U64,
    [TIR_ELEMENT_F16] = TIR_TENSOR_MAP_F16,  [TIR_ELEMENT_BF16] = TIR_TENSOR_MAP_BF16,
    [TIR_ELEMENT_TF32] = TIR_TENSOR_MAP_F32, [TIR_ELEMENT_F32] = TIR_TENSOR_MAP_F32,
    [TIR_ELEMENT_F64] = TIR_TENSOR_MAP_F64,  [TIR_ELEMENT_E4M3] = TIR_TENSOR_MAP_U8,
    [TIR_ELEMENT_E5M2] = TIR_TENSOR_MAP_U8,  [TIR_ELEMENT_UE8M0] = TIR_TENSOR_MAP_U8,
    [TIR_ELEMENT_E3M2] = TIR_TENSOR_MAP_U8,  [TIR_ELEMENT_E2M3] = TIR_TENSOR_MAP_U8,
    [TIR_ELEMENT_UE4M3] = TIR_TENSOR_MAP_U8, [TIR_ELEMENT_BOOL] = TIR_TENSOR_MAP_U8,
};

static tir_tensor_map_swizzle swizzle_of(uint32_t bytes)
{
    switch (bytes) {
    case 32:
        return TIR_TENSOR_MAP_SWIZZLE_32;
    case 64:
        return TIR_TENSOR_MAP_SWIZZLE_64;
    case 128:
        return TIR_TENSOR_MAP_SWIZZLE_128;
    default:
        return TIR_TENSOR_MAP_SWIZZLE_NONE;
    }
}

tir_status tir_launch_map(const tir_artifact_map *recipe, const tir_artifact_param *param,
                          uint64_t data, const int64_t *shape, const int64_t *strides,
                          uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_error *error)
{
    // L2 is asked for WIDE bytes at a time where every row begins with such a piece. Elsewhere the
    // pieces of a row begin before it, and half of each belongs to another one: products took up to
    // 15 % longer (H200).
    enum { ALIGN = 16, WIDE = 256 };
    const int64_t size = tir_element_bits(param->element) / 8;
    const bool is_packed = recipe->bits == 4 || recipe->bits == 6;
    const uint32_t inner = param->rank - 1, align = is_packed ? 2 * ALIGN : ALIGN;
    tir_tensor_map map = {.type = recipe->bits == 4              ? TIR_TENSOR_MAP_U4_ALIGN16
                                  : recipe->bits == 6            ? TIR_TENSOR_MAP_U6_ALIGN16
                                  : recipe->bits == TIR_MAP_TF32 ? TIR_TENSOR_MAP_TF32
                                                                 : types[param->element],
                          .swizzle = swizzle_of(recipe->swizzle),
                          .l2 = TIR_TENSOR_MAP_L2_256,
                          .rank = param->rank,
                          .address = data};
    if (data % ALIGN)
        return tir_error_set(error, TIR_ERR_INVALID, "%.*s: the address is no multiple of %d bytes",
                             TIR_STR(param->name), ALIGN);
    for (uint32_t i = 0; i <= inner; i++) { // a map begins with the innermost dimension
        const uint32_t d = inner - i;
        const bool alone = shape[d] <= 1; // no neighbour: its stride does not matter
        if (!shape[d])
            return tir_error_set(error, TIR_ERR_INVALID, "%.*s: dimension %u is 0",
                                 TIR_STR(param->name), d);
        if (!alone && (i ? strides[d] <= 0 || strides[d] * size % ALIGN : strides[d] != 1))
            return tir_error_set(error, TIR_ERR_INVALID, "%.*s: the stride of dimension %u is %s",
                                 TIR_STR(param->name), d,
                                 i ? "not positive or no multiple of 16 bytes" : "not 1");
        map.dims[i] = (uint64_t)shape[d];
        if (is_packed && !i)
            map.dims[i] = map.dims[i] * 8 / recipe->bits;
        map.steps[i] = recipe->stride[d] ? recipe->stride[d] : 1;
        map.box[i] = recipe->box[d] * map.steps[i];
        if (i)
            map.strides[i - 1] = (uint64_t)(alone ? align : strides[d] * size);
        if (i && map.strides[i - 1] % WIDE)
            map.l2 = TIR_TENSOR_MAP_L2_128;
    }
    if (recipe->pixels) {
        map.kind = TIR_TENSOR_MAP_IM2COL;
        map.channels = map.box[0];
        map.pixels = recipe->pixels;
    }
    for (uint32_t i = 0; recipe->pixels && i + 2 < param->rank; i++) {
        map.lower[i] = recipe->low[inner - 2 - i];
        map.upper[i] = recipe->high[inner - 2 - i];
    }
    tir_error why;
    tir_status status = tir_tensor_map_encode(&map, bytes, error ? &why : NULL);
    return status ? tir_error_set(error, status, "%.*s: the tensor map's %s", TIR_STR(param->name),
                                  error ? why.message : "")
                  : TIR_OK;
}
