// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DLPack tensors as launch arguments.

#include "dlpack.h"

#include "dlpack_abi.h"

static const struct {
    uint8_t code, bits;
    tir_element element;
} types[] = {
    {DL_TYPE_INT, 8, TIR_ELEMENT_I8},
    {DL_TYPE_INT, 16, TIR_ELEMENT_I16},
    {DL_TYPE_INT, 32, TIR_ELEMENT_I32},
    {DL_TYPE_INT, 64, TIR_ELEMENT_I64},
    {DL_TYPE_UINT, 8, TIR_ELEMENT_U8},
    {DL_TYPE_UINT, 16, TIR_ELEMENT_U16},
    {DL_TYPE_UINT, 32, TIR_ELEMENT_U32},
    {DL_TYPE_UINT, 64, TIR_ELEMENT_U64},
    {DL_TYPE_FLOAT, 16, TIR_ELEMENT_F16},
    {DL_TYPE_FLOAT, 32, TIR_ELEMENT_F32},
    {DL_TYPE_FLOAT, 64, TIR_ELEMENT_F64},
    {DL_TYPE_BFLOAT, 16, TIR_ELEMENT_BF16},
    {DL_TYPE_BOOL, 8, TIR_ELEMENT_BOOL},
    {DL_TYPE_FLOAT8_E4M3FN, 8, TIR_ELEMENT_E4M3},
    {DL_TYPE_FLOAT8_E5M2, 8, TIR_ELEMENT_E5M2},
    {DL_TYPE_FLOAT8_E8M0FNU, 8, TIR_ELEMENT_UE8M0},
    {DL_TYPE_FLOAT4_E2M1FN, 4, TIR_ELEMENT_E2M1},
};

static bool element_of(const struct dl_tensor *tensor, tir_element *out)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == tensor->type_code && types[i].bits == tensor->type_bits &&
            tensor->type_lanes == 1) {
            *out = types[i].element;
            return true;
        }
    return false;
}

static bool is_addressable(const tir_rt_device_info *device, const struct dl_tensor *tensor)
{
    switch (tensor->device_type) {
    case DL_DEVICE_CUDA:
        return device->kind == TIR_RT_CUDA && tensor->device_id == device->ordinal;
    case DL_DEVICE_CUDA_HOST:
    case DL_DEVICE_CUDA_MANAGED:
        return device->kind == TIR_RT_CUDA;
    case DL_DEVICE_EXT_DEV:
        return device->kind == TIR_RT_EMU;
    default:
        return false;
    }
}

const char *tir_dlpack_view(const tir_rt_device_info *device, const tir_rt_arg *arg,
                            tir_rt_tensor *out, bool *read_only)
{
    const struct dl_tensor *tensor = arg->as.dlpack;
    *read_only = false;
    if (!arg->as.dlpack)
        return "the DLPack tensor is NULL";
    if (arg->kind == TIR_RT_DLPACK_VERSIONED) {
        const struct dl_managed_versioned *managed = arg->as.dlpack;
        if (managed->version_major != 1)
            return "the DLPack tensor is not of version 1";
        tensor = &managed->tensor;
        *read_only = managed->flags & DL_FLAG_READ_ONLY;
    }
    if (!is_addressable(device, tensor))
        return "the DLPack tensor is not in memory of this device";
    if (tensor->rank < 0)
        return "the DLPack tensor has a negative rank";
    const uint64_t begin = (uint64_t)(uintptr_t)tensor->data;
    *out = (tir_rt_tensor){
        .data = begin ? begin + tensor->byte_offset : 0, // without memory, wherever it begins there
        .rank = (uint32_t)tensor->rank,
        .shape = tensor->shape,
        .strides = tensor->strides,
    };
    if (!element_of(tensor, &out->element))
        return "the DLPack tensor has an element type that tir does not know";
    return NULL;
}
