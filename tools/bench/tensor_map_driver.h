// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sets of tensor map parameters, and the CUDA driver that encodes them, for the tools that record
// what the driver and a GPU make of them. A set is an array, so that sweeps are loops over slots.
#ifndef TENSOR_MAP_DRIVER_H
#define TENSOR_MAP_DRIVER_H

#include <stdint.h>

// clang-format off
#define SLOTS(X) \
    X(kind) X(type) X(rank) X(address) \
    X(dim0) X(dim1) X(dim2) X(dim3) X(dim4) \
    X(stride0) X(stride1) X(stride2) X(stride3) \
    X(box0) X(box1) X(box2) X(box3) X(box4) \
    X(step0) X(step1) X(step2) X(step3) X(step4) \
    X(interleave) X(swizzle) X(l2) X(fill) \
    X(lower0) X(lower1) X(lower2) X(upper0) X(upper1) X(upper2) \
    X(channels) X(pixels) X(wide)
// clang-format on

enum {
#define SLOT(name) S_##name,
    SLOTS(SLOT)
#undef SLOT
        SLOT_COUNT
};

enum { TILED, IM2COL, IM2COL_WIDE, KINDS };

struct params {
    int64_t at[SLOT_COUNT];
};

enum { PACKED = 13, TYPES = 16 }; // the first packed type

// Bytes of an element; packed types: of 16 elements, as they lie in global memory.
extern const uint8_t type_bytes[TYPES];

// Loads the driver and makes a context current. 0 when there is no GPU.
int driver_start(void);
// The driver's function of that name, or NULL, into the function pointer at `function`.
void driver_symbol(const char *name, void *function);
// Prints what runs: driver version, GPU.
void driver_print(void);
// The driver's status; 801 for a function it has not.
int driver_encode(const struct params *p, uint8_t *map);

// A legal set of one kind and rank: 16-bit floats, 32 of them in a row of the box.
struct params params_base(int kind, int rank);
void params_print(const struct params *p);
// Elements in `bytes` bytes; the one legal number for packed types.
int64_t params_inner(int64_t type, int64_t bytes);

uint64_t random_below(uint64_t limit);

#endif
