// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opens the CUDA driver library and resolves its entry points.
//
// cuGetProcAddress gives the version of each function that was current in a stated release, which
// is the one cuda_abi.h declares. Drivers before 12.0 lack the form of it used here; there the
// exported symbols, which carry the version in their names, are used directly.

#include "cuda/cuda_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "error.h"
#include "host.h"
#include "runtime.h"

enum { API_VERSION = 12000 }; // the release whose functions cuda_api.def describes

typedef cu_result (*get_proc_address)(const char *symbol, void **out, int version,
                                      unsigned long long flags, unsigned int *found);

enum need { REQUIRED, OPTIONAL };

static const struct row {
    const char *name, *symbol;
    enum need need;
    size_t offset; // of the pointer within struct cuda_api
} rows[] = {
#define CU_FN(name, symbol, need, params) {#name, symbol, need, offsetof(struct cuda_api, name)},
#include "cuda/cuda_api.def"
};

static const struct {
    cu_result result;
    tir_status status;
    const char *name;
} results[] = {
#define X(name, value, status) {value, status, #name},
    CU_RESULTS(X)
#undef X
};

tir_status tir_cuda_status(const struct cuda_api *api, cu_result result, const char *call,
                           tir_error *error)
{
    if (result == TIR_CUDA_SUCCESS)
        return TIR_OK;
    const char *name = NULL, *text = NULL;
    tir_status status = TIR_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].result == result) {
            status = results[i].status;
            name = results[i].name;
        }
    const char *given = NULL;
    if (api->cuGetErrorName(result, &given) == TIR_CUDA_SUCCESS && given)
        name = given;
    if (api->cuGetErrorString(result, &text) != TIR_CUDA_SUCCESS || !text)
        text = "the driver does not say why";
    return tir_error_set_native(error, status, (int32_t)result, "%s: %s: %s", call,
                                name ? name : "unknown CUDA error", text);
}

static tir_status resolve(struct cuda_api *api, tir_error *error)
{
    get_proc_address get = NULL;
    void *symbol = dlsym(api->library, "cuGetProcAddress_v2");
    // ISO C has no cast from an object pointer to a function pointer; their bytes are the same.
    memcpy(&get, &symbol, sizeof get);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        void *address = NULL;
        unsigned int found;
        if (!get)
            address = dlsym(api->library, row->symbol);
        else if (get(row->name, &address, API_VERSION, 0, &found) != TIR_CUDA_SUCCESS)
            address = NULL;
        if (!address && row->need == REQUIRED)
            return tir_error_set(error, TIR_ERR_NO_DRIVER,
                                 "the CUDA driver is too old: it has no %s", row->symbol);
        memcpy((char *)api + row->offset, &address, sizeof address);
    }
    return TIR_OK;
}

static tir_status start(struct cuda_api *api, tir_error *error)
{
    tir_status status = resolve(api, error);
    if (!status)
        status = CU_CALL(api, error, cuInit, 0);
    if (!status)
        status = CU_CALL(api, error, cuDriverGetVersion, &api->version);
    // Whatever the driver's reason, there is none that can be used.
    if (status && error)
        error->status = TIR_ERR_NO_DRIVER;
    return status ? TIR_ERR_NO_DRIVER : TIR_OK;
}

static void *open_library(const char *library)
{
    if (library)
        return dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return handle ? handle : dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
}

tir_status tir_cuda_load(const char *library, const tir_allocator *allocator, struct cuda_api **out,
                         tir_error *error)
{
    *out = NULL;
    struct cuda_api *api = tir_host_alloc(allocator, sizeof *api);
    if (!api)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for the CUDA driver's table");
    api->library = open_library(library);
    tir_status status = TIR_ERR_NO_DRIVER;
    if (!api->library)
        tir_error_set(error, status, "there is no CUDA driver: %s cannot be opened",
                      library ? library : "libcuda.so.1");
    else
        status = start(api, error);
    if (status)
        tir_cuda_unload(api, allocator);
    else
        *out = api;
    return status;
}

void tir_cuda_unload(struct cuda_api *api, const tir_allocator *allocator)
{
    if (api->library)
        dlclose(api->library);
    tir_host_free(allocator, api, sizeof *api);
}
