// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares our declarations of the driver's interface with cuda.h. That it compiles is the test.

#include <cuda.h>

#include "cuda/cuda_abi.h"
#include "tir/base.h"

#define SAME(a, b)             _Static_assert((a) == (b), #a " is not " #b)

// Numbers.
#define X(name, value, status) SAME(name, value);
CU_RESULTS(X)
#undef X
#define X(name, value) SAME(name, value);
CU_NUMBERS(X)
#undef X

// Types.
#define SAME_TYPE(ours, theirs) \
    _Static_assert(_Generic((ours *)0, theirs * : 1, default : 0), #ours " is not " #theirs)
SAME_TYPE(cu_device, CUdevice);
SAME_TYPE(cu_deviceptr, CUdeviceptr);
SAME_TYPE(cu_context, CUcontext);
SAME_TYPE(cu_module, CUmodule);
SAME_TYPE(cu_function, CUfunction);
SAME_TYPE(cu_stream, CUstream);
SAME_TYPE(cu_event, CUevent);
SAME_TYPE(cu_pool, CUmemoryPool);
SAME_TYPE(cu_graph, CUgraph);
SAME_TYPE(cu_graph_exec, CUgraphExec);
SAME_TYPE(cu_result, CUresult);

// Layouts.
#define SAME_FIELD(ours, field, theirs, their_field)                   \
    SAME(offsetof(struct ours, field), offsetof(theirs, their_field)); \
    SAME(sizeof(((struct ours *)0)->field), sizeof(((theirs *)0)->their_field))
#define SAME_PLACE(ours, field, theirs, their_field) \
    SAME(offsetof(struct ours, field), offsetof(theirs, their_field))
SAME(sizeof(struct cu_launch_config), sizeof(CUlaunchConfig));
SAME_PLACE(cu_launch_config, grid[0], CUlaunchConfig, gridDimX);
SAME_PLACE(cu_launch_config, grid[2], CUlaunchConfig, gridDimZ);
SAME_PLACE(cu_launch_config, block[0], CUlaunchConfig, blockDimX);
SAME_PLACE(cu_launch_config, block[2], CUlaunchConfig, blockDimZ);
SAME_FIELD(cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(cu_launch_config, attrs, CUlaunchConfig, attrs);
SAME_FIELD(cu_launch_config, attr_count, CUlaunchConfig, numAttrs);
SAME(sizeof(struct cu_launch_attribute), sizeof(CUlaunchAttribute));
SAME_FIELD(cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_FIELD(cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_PLACE(cu_launch_attribute, value.cluster.x, CUlaunchAttribute, value.clusterDim.x);
SAME_PLACE(cu_launch_attribute, value.cluster.z, CUlaunchAttribute, value.clusterDim.z);
#if CUDA_VERSION >= 12080
SAME_PLACE(cu_launch_attribute, value.cluster.x, CUlaunchAttribute, value.preferredClusterDim.x);
SAME_PLACE(cu_launch_attribute, value.cluster.z, CUlaunchAttribute, value.preferredClusterDim.z);
#endif
SAME(sizeof(struct cu_pool_props), sizeof(CUmemPoolProps));
SAME_FIELD(cu_pool_props, alloc_type, CUmemPoolProps, allocType);
SAME_FIELD(cu_pool_props, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(cu_pool_props, location, CUmemPoolProps, location);
SAME_FIELD(cu_pool_props, location.id, CUmemPoolProps, location.id);
SAME_FIELD(cu_pool_props, max_size, CUmemPoolProps, maxSize);

// Functions. cuda.h maps each name to its newest version; where that differs from the one we
// resolve, the signature must still be the same. Our struct stands for theirs.
#define cu_launch_config CUlaunchConfig_st
#define cu_pool_props    CUmemPoolProps_st
#define CU_FN(name, symbol, need, params) \
    _Static_assert(_Generic(&name, cu_result(*) params : 1, default : 0), symbol);
#include "cuda/cuda_api.def"

int main(void)
{
    return 0;
}
