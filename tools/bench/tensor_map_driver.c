// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads the CUDA driver and hands it sets of tensor map parameters.

#include "tensor_map_driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef int tiled_fn(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                     const uint32_t *, const uint32_t *, int, int, int, int);
typedef int im2col_fn(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                      const int *, const int *, uint32_t, uint32_t, const uint32_t *, int, int, int,
                      int);
typedef int wide_fn(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, int, int,
                    uint32_t, uint32_t, const uint32_t *, int, int, int, int, int);

static void *library;

static struct {
    tiled_fn *tiled;
    im2col_fn *im2col;
    wide_fn *wide; // NULL when the driver has none
} cu;

// ISO C has no conversion from object to function pointers; POSIX promises this one.
void driver_symbol(const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

int driver_start(void)
{
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*push)(void *);
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL)
        return 0;
    driver_symbol("cuInit", &init);
    driver_symbol("cuDevicePrimaryCtxRetain", &retain);
    driver_symbol("cuCtxPushCurrent_v2", &push);
    driver_symbol("cuTensorMapEncodeTiled", &cu.tiled);
    driver_symbol("cuTensorMapEncodeIm2col", &cu.im2col);
    driver_symbol("cuTensorMapEncodeIm2colWide", &cu.wide);
    void *context;
    return init != NULL && cu.tiled != NULL && cu.im2col != NULL && init(0) == 0 &&
           retain(&context, 0) == 0 && push(context) == 0;
}

void driver_print(void)
{
    int (*get_version)(int *);
    int (*get_name)(char *, int, int);
    int version;
    char name[64];
    driver_symbol("cuDriverGetVersion", &get_version);
    driver_symbol("cuDeviceGetName", &get_name);
    if (get_version(&version) == 0 && get_name(name, sizeof name, 0) == 0)
        printf("# driver %d, %s\n", version, name);
}

static void narrow(uint32_t *out, const int64_t *in, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = (uint32_t)in[i];
}

int driver_encode(const struct params *p, uint8_t *map)
{
    const int64_t *at = p->at;
    uint64_t dims[8] = {0}, strides[8] = {0}; // a driver may read as many as `rank` says
    uint32_t box[8] = {0}, steps[8] = {0};
    int lower[3], upper[3];
    memcpy(dims, at + S_dim0, 5 * sizeof *dims);
    memcpy(strides, at + S_stride0, 4 * sizeof *strides);
    narrow(box, at + S_box0, 5);
    narrow(steps, at + S_step0, 5);
    for (int i = 0; i < 3; i++) {
        lower[i] = (int)at[S_lower0 + i];
        upper[i] = (int)at[S_upper0 + i];
    }
    int type = (int)at[S_type], interleave = (int)at[S_interleave], swizzle = (int)at[S_swizzle];
    int l2 = (int)at[S_l2], fill = (int)at[S_fill];
    uint32_t rank = (uint32_t)at[S_rank];
    uint32_t channels = (uint32_t)at[S_channels], pixels = (uint32_t)at[S_pixels];
    void *address = (void *)(uintptr_t)at[S_address];
    if (at[S_kind] == TILED)
        return cu.tiled(map, type, rank, address, dims, strides, box, steps, interleave, swizzle,
                        l2, fill);
    if (at[S_kind] == IM2COL)
        return cu.im2col(map, type, rank, address, dims, strides, lower, upper, channels, pixels,
                         steps, interleave, swizzle, l2, fill);
    if (cu.wide == NULL)
        return 801; // CUDA_ERROR_NOT_SUPPORTED
    return cu.wide(map, type, rank, address, dims, strides, lower[0], upper[0], channels, pixels,
                   steps, interleave, (int)at[S_wide], swizzle, l2, fill);
}

// Bytes of an element; packed types: of 16 elements, as they lie in global memory.
const uint8_t type_bytes[TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 8, 8, 12};

struct params params_base(int kind, int rank)
{
    struct params p = {.at = {[S_kind] = kind,
                              [S_type] = 6,
                              [S_rank] = rank,
                              [S_address] = 0x7f0012345600,
                              [S_channels] = 32,
                              [S_pixels] = 64}};
    int64_t stride = 256;
    for (int i = 0; i < 5; i++) {
        p.at[S_dim0 + i] = i < rank ? 100 + 4 * i : 0;
        p.at[S_box0 + i] = i < rank ? (i == 0 ? 32 : 2 + i) : 0;
        p.at[S_step0 + i] = i < rank;
    }
    for (int i = 0; i + 1 < rank; i++) {
        p.at[S_stride0 + i] = stride;
        stride *= 128;
    }
    return p;
}

void params_print(const struct params *p)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        printf("%" PRId64 " ", p->at[i]);
}

int64_t params_inner(int64_t type, int64_t bytes)
{
    return type >= PACKED ? 128 : bytes / type_bytes[type];
}

static uint64_t random_state = 0x9e3779b97f4a7c15;

uint64_t random_below(uint64_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % limit;
}
