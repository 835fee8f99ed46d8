// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The driver's entry points as one table of function pointers.
#ifndef TIR_RUNTIME_CUDA_API_H
#define TIR_RUNTIME_CUDA_API_H

#include "cuda/cuda_abi.h"
#include "tir/base.h"

struct cuda_api {
    void *library; // from dlopen
    int version;   // of the driver, e.g. 12080
#define CU_FN(name, symbol, need, params) cu_result(*name) params;
#include "cuda/cuda_api.def"
};

// The status of a driver call: TIR_OK, or the message "cuInit: CUDA_ERROR_...: what it means".
tir_status tir_cuda_status(const struct cuda_api *api, cu_result result, const char *call,
                           tir_error *error);

// Calls entry point `fn` and gives its status.
#define CU_CALL(api, error, fn, ...) tir_cuda_status((api), (api)->fn(__VA_ARGS__), #fn, (error))

#endif
