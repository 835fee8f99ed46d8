// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The public binary interface of DLPack tensors, declared under other names.
//
// Layouts and numbers as DLPack 1.1 states them; they have not changed since 0.2 but for additions.
#ifndef TIR_RUNTIME_DLPACK_ABI_H
#define TIR_RUNTIME_DLPACK_ABI_H

#include <stdint.h>

enum dl_device_type {
    DL_DEVICE_CUDA = 2,
    DL_DEVICE_CUDA_HOST = 3, // pinned host memory, which a GPU can address
    DL_DEVICE_EXT_DEV = 12,  // for experiments; memory of the emulator says this
    DL_DEVICE_CUDA_MANAGED = 13
};

enum dl_type_code {
    DL_TYPE_INT = 0,
    DL_TYPE_UINT = 1,
    DL_TYPE_FLOAT = 2,
    DL_TYPE_BFLOAT = 4,
    DL_TYPE_BOOL = 6,
    DL_TYPE_FLOAT8_E4M3FN = 10,
    DL_TYPE_FLOAT8_E5M2 = 12,
    DL_TYPE_FLOAT8_E8M0FNU = 14,
    DL_TYPE_FLOAT4_E2M1FN = 17
};

struct dl_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t rank;
    uint8_t type_code;
    uint8_t type_bits;
    uint16_t type_lanes;
    int64_t *shape;
    int64_t *strides; // in elements; NULL: contiguous
    uint64_t byte_offset;
};

struct dl_managed_versioned {
    uint32_t version_major;
    uint32_t version_minor;
    void *manager;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

#define DL_FLAG_READ_ONLY 1u

#endif
