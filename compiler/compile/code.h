// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel and the code that it becomes: variants, or the steps of sequences.
#ifndef TIR_COMPILE_CODE_H
#define TIR_COMPILE_CODE_H

#include "base/vec.h"
#include "ir/context.h"
#include "ir/ir.h"

#define TIR_MOST_CONFIGS      56 // of a kernel: the first has up to five variants, others two
#define TIR_MOST_OWN_CONFIGS  24 // those with conditions of their own have as many as the first
#define TIR_MAX_CODE_VARIANTS (5 + 2 * (TIR_MOST_CONFIGS - 1) + 3 * TIR_MOST_OWN_CONFIGS)

struct tir_step {
    uint32_t kernel; // of tir_compilation.kernels
    // Its arguments: parameters of the whole by number, then its scratch tensors.
    uint32_t args[TIR_MAX_PARAMS];
};

struct tir_sequence { // a configuration that is several launches
    struct tir_func *whole;
    tir_formula cost;
    struct tir_step steps[TIR_MAX_STEPS];
    uint32_t step_count;
};

struct tir_kernel_code { // one kernel and its variants, best first
    const char *name;
    struct tir_func *variants[TIR_MAX_CODE_VARIANTS];
    tir_formula costs[TIR_MAX_CODE_VARIANTS]; // none: the kernel has one configuration
    uint32_t count;
    const struct tir_param *params; // before sizes were bound; costs and tables speak of these
    const struct tir_dim *dims;     // and their dimensions
    uint32_t dim_count;
    VEC(struct tir_sequence) sequences;
    tir_str chosen; // why it is this configuration, where the sizes are known
    bool is_step;   // of the nearest kernel before it that is none
};

// Is f a sequence: several tiles loops, or scratch tensors?
bool tir_compile_has_steps(const struct tir_func *f);
// A kernel of f's parameters, without code.
struct tir_kernel_code tir_kernel_new(struct tir_context *cx, const struct tir_func *f);
// The function that has the kernel's parameters.
static inline struct tir_func *tir_kernel_head(const struct tir_kernel_code *kernel)
{
    return kernel->count ? kernel->variants[0] : kernel->sequences.at[0].whole;
}

#endif
