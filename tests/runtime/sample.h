// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small artifact that uses every feature of the format, for the runtime's tests.
#ifndef TESTS_RUNTIME_SAMPLE_H
#define TESTS_RUNTIME_SAMPLE_H

#include "tir/artifact.h"

#define TEXT(literal) ((tir_str){literal, sizeof(literal) - 1})
#define COUNT(array)  ((uint32_t)(sizeof(array) / sizeof(array)[0]))
#define FORMULA(...)                                                                    \
    {                                                                                   \
        .ops = (const tir_formula_op[]){__VA_ARGS__},                                   \
        .count = sizeof((const tir_formula_op[]){__VA_ARGS__}) / sizeof(tir_formula_op) \
    }
#define CONST(n)             \
    {                        \
        TIR_FORMULA_CONST, n \
    }
#define DIM(n)             \
    {                      \
        TIR_FORMULA_DIM, n \
    }
#define SCALAR(n)             \
    {                         \
        TIR_FORMULA_SCALAR, n \
    }
#define DO(op)              \
    {                       \
        TIR_FORMULA_##op, 0 \
    }

enum { DIM_M, DIM_N, DIM_K };
enum { PARAM_A, PARAM_B, PARAM_D, PARAM_STEP, PARAM_SCALE };
enum { KERNEL_GEMM, KERNEL_COPY, KERNEL_RELAY, KERNEL_STEP };
enum { VARIANT_FAST, VARIANT_WIDE, VARIANT_ANY };

// kernel gemm(A: bf16[M, K], B: bf16[4, N, K], D: out f32[M, N], step: i32, scale: f32)
// where step > 0
extern const tir_artifact_desc sample;

#endif
