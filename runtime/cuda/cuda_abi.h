// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of the CUDA driver's binary interface that the runtime uses, declared under other names,
// so that no toolkit is needed to build. tests/runtime/cuda_abi_test.c compares every declaration
// with cuda.h if that is installed.
#ifndef TIR_RUNTIME_CUDA_ABI_H
#define TIR_RUNTIME_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int cu_result;
typedef int cu_device;
typedef unsigned long long cu_deviceptr;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUmemPoolHandle_st *cu_pool;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphExec_st *cu_graph_exec;

// Results whose status says more than TIR_ERR_UNSUPPORTED, which is that of all others, those of
// later drivers too; and the usual ones of that kind. Name, value, status.
#define CU_RESULTS(X)                                                    \
    X(CUDA_ERROR_INVALID_VALUE, 1, TIR_ERR_INVALID)                      \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, TIR_ERR_NO_MEMORY)                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, TIR_ERR_NO_DRIVER)                  \
    X(CUDA_ERROR_DEINITIALIZED, 4, TIR_ERR_NO_DRIVER)                    \
    X(CUDA_ERROR_STUB_LIBRARY, 34, TIR_ERR_NO_DRIVER)                    \
    X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36, TIR_ERR_UNSUPPORTED)    \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, TIR_ERR_UNSUPPORTED)            \
    X(CUDA_ERROR_NO_DEVICE, 100, TIR_ERR_NO_DRIVER)                      \
    X(CUDA_ERROR_INVALID_DEVICE, 101, TIR_ERR_INVALID)                   \
    X(CUDA_ERROR_INVALID_IMAGE, 200, TIR_ERR_UNSUPPORTED)                \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, TIR_ERR_INVALID)                  \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, TIR_ERR_UNSUPPORTED)            \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, TIR_ERR_DEVICE)                 \
    X(CUDA_ERROR_INVALID_PTX, 218, TIR_ERR_UNSUPPORTED)                  \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220, TIR_ERR_DEVICE)              \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221, TIR_ERR_UNSUPPORTED)       \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, TIR_ERR_UNSUPPORTED)      \
    X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223, TIR_ERR_UNSUPPORTED)     \
    X(CUDA_ERROR_CONTAINED, 226, TIR_ERR_DEVICE)                         \
    X(CUDA_ERROR_INVALID_SOURCE, 300, TIR_ERR_UNSUPPORTED)               \
    X(CUDA_ERROR_INVALID_HANDLE, 400, TIR_ERR_INVALID)                   \
    X(CUDA_ERROR_ILLEGAL_STATE, 401, TIR_ERR_INVALID)                    \
    X(CUDA_ERROR_NOT_FOUND, 500, TIR_ERR_INVALID)                        \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, TIR_ERR_DEVICE)                   \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, TIR_ERR_UNSUPPORTED)      \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, TIR_ERR_DEVICE)                    \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, TIR_ERR_DEVICE)              \
    X(CUDA_ERROR_ASSERT, 710, TIR_ERR_DEVICE)                            \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714, TIR_ERR_DEVICE)              \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, TIR_ERR_DEVICE)               \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, TIR_ERR_DEVICE)                \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717, TIR_ERR_DEVICE)             \
    X(CUDA_ERROR_INVALID_PC, 718, TIR_ERR_DEVICE)                        \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, TIR_ERR_DEVICE)                     \
    X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720, TIR_ERR_UNSUPPORTED) \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721, TIR_ERR_DEVICE)                \
    X(CUDA_ERROR_NOT_PERMITTED, 800, TIR_ERR_UNSUPPORTED)                \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, TIR_ERR_UNSUPPORTED)                \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802, TIR_ERR_NO_DRIVER)               \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, TIR_ERR_NO_DRIVER)         \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, TIR_ERR_NO_DRIVER) \
    X(CUDA_ERROR_MPS_CONNECTION_FAILED, 805, TIR_ERR_NO_DRIVER)          \
    X(CUDA_ERROR_MPS_RPC_FAILURE, 806, TIR_ERR_DEVICE)                   \
    X(CUDA_ERROR_MPS_SERVER_NOT_READY, 807, TIR_ERR_NO_DRIVER)           \
    X(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808, TIR_ERR_NO_DRIVER)        \
    X(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809, TIR_ERR_NO_DRIVER)    \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810, TIR_ERR_DEVICE)             \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, TIR_ERR_UNSUPPORTED)   \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, TIR_ERR_INVALID)       \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, TIR_ERR_INVALID)             \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, TIR_ERR_INVALID)         \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, TIR_ERR_INVALID)          \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, TIR_ERR_INVALID)         \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, TIR_ERR_UNSUPPORTED)      \
    X(CUDA_ERROR_CAPTURED_EVENT, 907, TIR_ERR_INVALID)                   \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, TIR_ERR_INVALID)      \
    X(CUDA_ERROR_EXTERNAL_DEVICE, 911, TIR_ERR_DEVICE)                   \
    X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, TIR_ERR_UNSUPPORTED)         \
    X(CUDA_ERROR_UNKNOWN, 999, TIR_ERR_DEVICE)

// Other numbers: name in cuda.h, value.
#define CU_NUMBERS(X)                                            \
    X(CUDA_ERROR_NOT_READY, 600)                                 \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                        \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)              \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)          \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)          \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                    \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                     \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                             \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)        \
    X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)   \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                                \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                     \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                          \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                            \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                      \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                         \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                        \
    X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                  \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)  \
    X(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 11)       \
    X(CU_LAUNCH_PARAM_END_AS_INT, 0)                             \
    X(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, 1)                  \
    X(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, 2)

// Each number as TIR_<its name>, so that this header and cuda.h can stand in one file.
enum {
    TIR_CUDA_SUCCESS = 0,
#define X(name, value, status) TIR_##name = value,
    CU_RESULTS(X)
#undef X
#define X(name, value) TIR_##name = value,
        CU_NUMBERS(X)
#undef X
};

struct cu_launch_attribute {
    unsigned int id;
    char pad[4];
    union {
        char pad[64];
        struct {
            unsigned int x, y, z;
        } cluster; // or a preferred one
        int allowed;
    } value;
};

struct cu_launch_config {
    unsigned int grid[3], block[3];
    unsigned int shared_bytes;
    cu_stream stream;
    struct cu_launch_attribute *attrs;
    unsigned int attr_count;
};

struct cu_pool_props {
    unsigned int alloc_type, handle_types;
    struct {
        unsigned int type;
        int id;
    } location;
    void *security;
    size_t max_size; // 0: no limit
    unsigned char reserved[56];
};

#endif
