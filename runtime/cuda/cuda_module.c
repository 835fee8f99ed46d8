// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code on a GPU: loading PTX or a cubin, functions, launches.
//
// A cubin is used when it is for this very kind of GPU; anything else is the PTX, compiled by the
// driver. Whether the target fits is decided here and not by the driver, whose message for it would
// not say what is needed.

#include "cuda/cuda_device.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

// "sm_90a": number 90, suffix 'a'. Suffix 0: none. false: not of this form.
struct target {
    unsigned long number;
    char suffix;
};

static bool parse_target(const char *text, struct target *out)
{
    char *end;
    if (strncmp(text, "sm_", 3) != 0 || text[3] < '1' || text[3] > '9')
        return false;
    out->number = strtoul(text + 3, &end, 10);
    out->suffix = *end;
    return !*end || ((*end == 'a' || *end == 'f') && !end[1]);
}

// Whether PTX for `target` runs on `device`: later GPUs run plain targets, GPUs of the same major
// version 'f' targets, and only the same GPU 'a' targets.
static bool ptx_fits(struct target target, struct target device)
{
    if (target.suffix == 'a')
        return target.number == device.number;
    if (target.suffix == 'f' && target.number / 10 != device.number / 10)
        return false;
    return target.number <= device.number;
}

// A cubin needs the same major version and no later minor one.
static bool cubin_fits(struct target target, struct target device)
{
    if (target.suffix == 'a')
        return target.number == device.number;
    return target.number / 10 == device.number / 10 && target.number <= device.number;
}

static bool fits(tir_str name, const struct cuda_device *d,
                 bool (*rule)(struct target, struct target))
{
    struct target target, device;
    return name.len && parse_target(name.ptr, &target) &&
           parse_target(d->base.info.arch, &device) && rule(target, device);
}

// Whether the driver refused the cubin for what it is, which leaves the PTX to try.
static bool is_of_no_use(const tir_error *error)
{
    return error->native == TIR_CUDA_ERROR_NO_BINARY_FOR_GPU ||
           error->native == TIR_CUDA_ERROR_INVALID_IMAGE;
}

// A cubin is ready to run, so there is nothing to gain from parts of it.
tir_status tir_cuda_accepts(tir_rt_device *device, const tir_artifact_desc *desc, bool has_ptx,
                            bool *whole, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    *whole = fits(desc->cubin_arch, d, cubin_fits);
    if (*whole || (has_ptx && fits(desc->target, d, ptx_fits)))
        return TIR_OK;
    return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                         "the artifact is for %.*s, the device is %s (%s)", TIR_STR(desc->target),
                         device->info.arch, device->info.name);
}

static tir_status load(struct cuda_device *d, const tir_artifact_desc *desc, cu_module *out,
                       tir_error *error)
{
    tir_error refusal;
    if (!fits(desc->cubin_arch, d, cubin_fits))
        return tir_cuda_load_image(d, desc->ptx.ptr, out, error);
    tir_status status = tir_cuda_load_image(d, desc->cubin.ptr, out, &refusal);
    if (status && is_of_no_use(&refusal) && desc->ptx.len && fits(desc->target, d, ptx_fits))
        return tir_cuda_load_image(d, desc->ptx.ptr, out, error);
    if (status)
        *error = refusal;
    return status;
}

tir_status tir_cuda_module_load(tir_rt_device *device, const tir_artifact_desc *desc, void **out,
                                tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    cu_module module = NULL;
    unsigned int mode;
    tir_status status = tir_cuda_relax(d, &mode, error);
    if (!status) {
        status = load(d, desc, &module, error);
        tir_cuda_restore(d, mode);
    }
    *out = status ? NULL : module;
    return status;
}

void tir_cuda_module_unload(tir_rt_device *device, void *module)
{
    CU_RELEASE_IN(cuda_device_of(device), cuModuleUnload, module);
}

static bool has_cluster(const uint32_t cluster[3])
{
    return cluster[0] != 0;
}

// Lets the function have the shared memory and the cluster that its variant asks for.
static tir_status prepare(struct cuda_device *d, cu_function function,
                          const tir_artifact_variant *variant, tir_error *error)
{
    const uint32_t *cluster = variant->cluster;
    const uint32_t *most = has_cluster(variant->preferred) ? variant->preferred : cluster;
    tir_status status = TIR_OK;
    if (variant->dynamic_shared)
        CU_CALL_IN(d, status, error, cuFuncSetAttribute, function,
                   TIR_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   (int)variant->dynamic_shared);
    if (!status && has_cluster(cluster) && !d->api->cuLaunchKernelEx)
        status = tir_error_set(error, TIR_ERR_UNSUPPORTED,
                               "%.*s uses clusters, which this driver does not know",
                               TIR_STR(variant->entry));
    if (!status && variant->cooperative && !d->api->cuLaunchKernelEx)
        status = tir_error_set(error, TIR_ERR_UNSUPPORTED,
                               "%.*s is launched cooperatively, which takes a driver of CUDA 11.8",
                               TIR_STR(variant->entry));
    if (!status && most[0] * most[1] * most[2] > 8)
        CU_CALL_IN(d, status, error, cuFuncSetAttribute, function,
                   TIR_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return status;
}

static tir_status find_function(struct cuda_device *d, cu_module module,
                                const tir_artifact_variant *variant, cu_function *out,
                                tir_error *error)
{
    uint32_t most = d->base.info.max_shared;
    uint64_t shared = (uint64_t)variant->static_shared + variant->dynamic_shared;
    tir_status status;
    if (shared > most)
        return tir_error_set(
            error, TIR_ERR_UNSUPPORTED, "%.*s needs %llu bytes of shared memory, %s has %u",
            TIR_STR(variant->entry), (unsigned long long)shared, d->base.info.name, most);
    CU_CALL_IN(d, status, error, cuModuleGetFunction, out, module, variant->entry.ptr);
    return status ? status : prepare(d, *out, variant, error);
}

tir_status tir_cuda_function(tir_rt_device *device, void *module,
                             const tir_artifact_variant *variant, void **out, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    cu_function function = NULL;
    unsigned int mode;
    tir_status status = tir_cuda_relax(d, &mode, error); // finding it may load its code
    if (!status) {
        status = find_function(d, module, variant, &function, error);
        tir_cuda_restore(d, mode);
    }
    *out = function;
    return status;
}

static struct cu_launch_attribute cluster_attribute(unsigned int id, const uint32_t cluster[3])
{
    return (struct cu_launch_attribute){
        .id = id,
        .value.cluster = {cluster[0], cluster[1], cluster[2]},
    };
}

tir_status tir_cuda_clusters(tir_rt_device *device, void *function,
                             const tir_artifact_variant *variant, uint32_t *out, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    struct cu_launch_attribute attribute =
        cluster_attribute(TIR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, variant->cluster);
    struct cu_launch_config config = {
        .grid = {variant->cluster[0], variant->cluster[1], variant->cluster[2]},
        .block = {variant->threads, 1, 1},
        .shared_bytes = variant->dynamic_shared,
        .attrs = &attribute,
        .attr_count = 1,
    };
    int count = 0;
    tir_status status = TIR_OK;
    if (!d->api->cuOccupancyMaxActiveClusters)
        return TIR_OK;
    CU_CALL_IN(d, status, error, cuOccupancyMaxActiveClusters, &count, function, &config);
    if (!status && count < 1)
        status = tir_error_set(error, TIR_ERR_UNSUPPORTED,
                               "%.*s: no cluster of %u x %u x %u CTAs fits on %s",
                               TIR_STR(variant->entry), variant->cluster[0], variant->cluster[1],
                               variant->cluster[2], device->info.name);
    if (!status)
        *out = (uint32_t)count;
    return status;
}

tir_status tir_cuda_together(tir_rt_device *device, void *function,
                             const tir_artifact_variant *variant, uint32_t *out, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    const uint32_t *cluster = variant->cluster;
    tir_status status = TIR_OK;
    if (has_cluster(cluster) && d->api->cuOccupancyMaxActiveClusters) {
        status = tir_cuda_clusters(device, function, variant, out, error);
        *out *= cluster[0] * cluster[1] * cluster[2];
        return status;
    }
    int count = 0;
    CU_CALL_IN(d, status, error, cuOccupancyMaxActiveBlocksPerMultiprocessor, &count, function,
               (int)variant->threads, variant->dynamic_shared);
    *out = (uint32_t)count * device->info.sm_count;
    return status;
}

tir_status tir_cuda_usage(tir_rt_device *device, void *module, void *function, tir_rt_usage *out,
                          tir_error *error)
{
    (void)module;
    const struct {
        unsigned int attribute;
        uint32_t *value;
    } queries[] = {
        {TIR_CU_FUNC_ATTRIBUTE_NUM_REGS, &out->registers},
        {TIR_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &out->local_bytes},
        {TIR_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &out->static_shared},
        {TIR_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &out->max_threads},
    };
    tir_status status = TIR_OK;
    for (size_t i = 0; i < sizeof queries / sizeof queries[0] && !status; i++) {
        int value = 0;
        CU_CALL_IN(cuda_device_of(device), status, error, cuFuncGetAttribute, &value,
                   queries[i].attribute, function);
        *queries[i].value = (uint32_t)value;
    }
    return status;
}

tir_status tir_cuda_param(tir_rt_device *device, void *module, void *function, uint32_t index,
                          size_t *offset, size_t *size, tir_error *error)
{
    (void)module;
    struct cuda_device *d = cuda_device_of(device);
    tir_status status;
    if (!d->api->cuFuncGetParamInfo)
        return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                             "this driver does not say where parameters lie; CUDA 12.4 does");
    CU_CALL_IN(d, status, error, cuFuncGetParamInfo, function, index, offset, size);
    return status;
}

// Drivers since CUDA 12.3 capture launches that overlap: the edges of a graph then say so
// (cuStreamGetCaptureInfo_v12030 in cudaTypedefs.h).
#define OVERLAPS_IN_GRAPHS 12030

// Drivers since CUDA 12.8 know preferred clusters. Without them a kernel runs in smaller ones.
#define PREFERS            12080

tir_status tir_cuda_launch(tir_rt_device *device, void *stream, void *module, void *function,
                           const struct device_launch *launch, tir_error *error)
{
    (void)module;
    struct cuda_device *d = cuda_device_of(device);
    const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
    size_t size = launch->params_size;
    tir_status status;
    // The parameter block goes to the driver as it is. The driver only reads it.
    void *extra[] = {(void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT,
                     (void *)(uintptr_t)launch->params,
                     (void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, &size,
                     (void *)(uintptr_t)TIR_CU_LAUNCH_PARAM_END_AS_INT};
    void **whole = launch->parts ? NULL : extra;
    const bool early = launch->early && launch->variant && launch->variant->waits &&
                       !launch->cooperative && d->api->cuLaunchKernelEx &&
                       d->api->version >= OVERLAPS_IN_GRAPHS;
    if (!has_cluster(cluster) && !early && !launch->cooperative) {
        CU_CALL_IN(d, status, error, cuLaunchKernel, function, grid[0], grid[1], grid[2], block[0],
                   block[1], block[2], launch->dynamic_shared, stream, launch->parts, whole);
        return status;
    }
    struct cu_launch_attribute attributes[3];
    unsigned int count = 0;
    if (has_cluster(cluster))
        attributes[count++] = cluster_attribute(TIR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster);
    if (has_cluster(launch->preferred) && d->api->version >= PREFERS)
        attributes[count++] = cluster_attribute(TIR_CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
                                                launch->preferred);
    if (launch->cooperative)
        attributes[count++] = (struct cu_launch_attribute){
            .id = TIR_CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.allowed = 1};
    if (early)
        attributes[count++] = (struct cu_launch_attribute){
            .id = TIR_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.allowed = 1};
    struct cu_launch_config config = {
        .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]},
        .shared_bytes = launch->dynamic_shared,
        .stream = stream,
        .attrs = attributes,
        .attr_count = count,
    };
    CU_CALL_IN(d, status, error, cuLaunchKernelEx, &config, function, launch->parts, whole);
    return status;
}
