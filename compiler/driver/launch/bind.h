// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of a launch, made from the NAME=VALUE words of the command line.
#ifndef TIR_DRIVER_LAUNCH_BIND_H
#define TIR_DRIVER_LAUNCH_BIND_H

#include "tir/artifact.h"

#include "driver/value/npy.h"
#include "driver/value/scalar.h"

struct tir_bound {
    const tir_artifact_param *param;
    bool given;
    struct tir_scalar scalar;    // of a scalar
    struct tir_tensor_spec spec; // of a tensor
    struct tir_tensor
        tensor; // filled in; an output holds 0xFF bytes unless its contents are stated
    struct tir_npy_file file; // while it is read
};

struct tir_bind {
    const tir_artifact_kernel *kernel;
    int64_t dims[TIR_MAX_DIMS];
    bool known[TIR_MAX_DIMS];
    int64_t names[TIR_MAX_DIMS]; // of names that follow from dimensions, where they are given
    bool named[TIR_MAX_DIMS];
    struct tir_bound params[TIR_MAX_PARAMS]; // one per parameter of the kernel
};

// Fills in *out from words like "M=512", "scale=0.5", "A=randn". Dimensions also follow from .npy
// files. `path` is for the example in the message when values are missing. False: *error; *out can
// be released all the same.
bool tir_bind_make(struct tir_arena *arena, const tir_artifact_kernel *kernel, const char *path,
                   const char *const *words, uint32_t count, uint64_t seed, struct tir_bind *out,
                   tir_error *error);
// The sizes alone, without files and tensors: those that neither words say nor follow from them are
// not known. Nothing is to be released.
bool tir_bind_sizes(struct tir_arena *arena, const tir_artifact_kernel *kernel,
                    const char *const *words, uint32_t count, struct tir_bind *out,
                    tir_error *error);
void tir_bind_release(struct tir_bind *bind);

static inline bool tir_param_is_output(const tir_artifact_param *param)
{
    return param->kind == TIR_PARAM_TENSOR && param->direction != TIR_DIRECTION_IN;
}

#endif
