// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names and sizes of element types.

#include "tir/artifact.h"

static const struct {
    const char *name;
    uint32_t bits;
} elements[TIR_ELEMENT_COUNT] = {
    [TIR_ELEMENT_I8] = {"i8", 8},       [TIR_ELEMENT_I16] = {"i16", 16},
    [TIR_ELEMENT_I32] = {"i32", 32},    [TIR_ELEMENT_I64] = {"i64", 64},
    [TIR_ELEMENT_U8] = {"u8", 8},       [TIR_ELEMENT_U16] = {"u16", 16},
    [TIR_ELEMENT_U32] = {"u32", 32},    [TIR_ELEMENT_U64] = {"u64", 64},
    [TIR_ELEMENT_F16] = {"f16", 16},    [TIR_ELEMENT_BF16] = {"bf16", 16},
    [TIR_ELEMENT_TF32] = {"tf32", 32},  [TIR_ELEMENT_F32] = {"f32", 32},
    [TIR_ELEMENT_F64] = {"f64", 64},    [TIR_ELEMENT_E4M3] = {"e4m3", 8},
    [TIR_ELEMENT_E5M2] = {"e5m2", 8},   [TIR_ELEMENT_E2M1] = {"e2m1", 4},
    [TIR_ELEMENT_UE8M0] = {"ue8m0", 8}, [TIR_ELEMENT_BOOL] = {"bool", 8},
    [TIR_ELEMENT_E3M2] = {"e3m2", 8},   [TIR_ELEMENT_E2M3] = {"e2m3", 8},
    [TIR_ELEMENT_UE4M3] = {"ue4m3", 8},
};

TIR_API const char *tir_element_name(tir_element element)
{
    return (uint32_t)element < TIR_ELEMENT_COUNT ? elements[element].name : "?";
}

TIR_API uint32_t tir_element_bits(tir_element element)
{
    return (uint32_t)element < TIR_ELEMENT_COUNT ? elements[element].bits : 0;
}
