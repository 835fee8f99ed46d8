// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Images as modules of the driver, and what it made of PTX kept for the next time.
//
// A driver has a cache of its own, which users switch off, which is small, and which containers
// lose. So the runtime asks the driver's linker for the cubin, loads that, and keeps it (cache.c).
// Its key is the text, the kind of GPU and the driver. Where any of this fails the driver gets the
// PTX, as if there were no cache, and says what is wrong with it.

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cuda/cuda_device.h"
#include "error.h"
#include "host.h"
#include "runtime.h"

// Keeps the first line of the driver's log that names an error, else the first line.
static void add_log(tir_error *error, const char *log)
{
    const char *line = strstr(log, "error");
    while (line && line > log && line[-1] != '\n')
        line--;
    if (!line)
        line = log;
    const int length = (int)strcspn(line, "\n");
    const tir_error cause = *error;
    if (length)
        tir_error_set_native(error, cause.status, cause.native, "%s: %.*s", cause.message, length,
                             line);
}

tir_status tir_cuda_load_image(struct cuda_device *d, const char *image, cu_module *out,
                               tir_error *error)
{
    char log[4096] = "";
    unsigned int options[] = {TIR_CU_JIT_ERROR_LOG_BUFFER, TIR_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    tir_status status;
    CU_CALL_IN(d, status, error, cuModuleLoadDataEx, out, image, 2, options, values);
    if (status && error && log[0])
        add_log(error, log);
    return status;
}

// ---- the cache

static void add_text(struct sha256 *sha, const char *text)
{
    tir_sha256_add(sha, text, strlen(text) + 1);
}

// Two builds of a driver state one version, and may assemble differently.
static void add_build(struct sha256 *sha)
{
    char text[256];
    const int file = open("/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    const ssize_t size = read(file, text, sizeof text);
    if (size > 0)
        tir_sha256_add(sha, text, (size_t)size);
    close(file);
}

static void make_key(const struct cuda_device *d, tir_str ptx, uint8_t key[TIR_SHA256_BYTES])
{
    struct sha256 sha;
    const uint64_t numbers[] = {(uint64_t)d->base.info.driver, ptx.len};
    tir_sha256_init(&sha);
    add_text(&sha, "cuLink, no options"); // how it is assembled
    add_text(&sha, d->base.info.arch);
    tir_sha256_add(&sha, numbers, sizeof numbers);
    tir_sha256_add(&sha, ptx.ptr, ptx.len);
    add_build(&sha);
    tir_sha256_end(&sha, key);
}

static bool has_linker(const struct cuda_api *api)
{
    return api->cuLinkCreate && api->cuLinkAddData && api->cuLinkComplete && api->cuLinkDestroy;
}

static tir_status link_in_context(struct cuda_device *d, tir_str ptx, const uint8_t *key,
                                  cu_module *out)
{
    const struct cuda_api *api = d->api;
    cu_linker linker;
    void *cubin, *text = (void *)(uintptr_t)ptx.ptr; // which is only read
    size_t size;
    tir_status status = CU_CALL(api, NULL, cuLinkCreate, 0, NULL, NULL, &linker);
    if (status)
        return status;
    status = CU_CALL(api, NULL, cuLinkAddData, linker, TIR_CU_JIT_INPUT_PTX, text, ptx.len + 1,
                     "tir", 0, NULL, NULL);
    if (!status)
        status = CU_CALL(api, NULL, cuLinkComplete, linker, &cubin, &size);
    if (!status)
        status = tir_cuda_load_image(d, cubin, out, NULL);
    if (!status)
        tir_cache_put(&d->base.runtime->cache, key, cubin, size);
    api->cuLinkDestroy(linker); // and the cubin with it
    return status;
}

// Assembles PTX and keeps what comes of it.
static tir_status link_and_keep(struct cuda_device *d, tir_str ptx, const uint8_t *key,
                                cu_module *out)
{
    bool pushed;
    tir_status status = tir_cuda_enter(d, &pushed, NULL);
    if (status)
        return status;
    status = link_in_context(d, ptx, key, out);
    tir_cuda_leave(d, pushed);
    return status;
}

// What was kept of the PTX, loaded. False: nothing that the driver takes.
static bool load_kept(struct cuda_device *d, const uint8_t *key, cu_module *out)
{
    const struct cache *cache = &d->base.runtime->cache;
    size_t size;
    void *cubin = tir_cache_get(cache, key, &size);
    if (!cubin)
        return false;
    const tir_status status = tir_cuda_load_image(d, cubin, out, NULL);
    tir_host_free(cache->allocator, cubin, size + 1);
    if (status)
        tir_cache_drop(cache, key);
    return !status;
}

tir_status tir_cuda_load_ptx(struct cuda_device *d, tir_str ptx, cu_module *out, tir_error *error)
{
    uint8_t key[TIR_SHA256_BYTES];
    const bool keeps =
        d->base.runtime->cache.folder && has_linker(d->api) && !atomic_load(&d->refuses_link);
    if (keeps) {
        make_key(d, ptx, key);
        if (load_kept(d, key, out) || !link_and_keep(d, ptx, key, out))
            return TIR_OK;
    }
    const tir_status status = tir_cuda_load_image(d, ptx.ptr, out, error);
    if (keeps && !status)
        atomic_store(&d->refuses_link, true); // not to assemble everything twice
    return status;
}
