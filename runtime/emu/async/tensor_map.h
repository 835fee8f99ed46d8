// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The geometry of tensor copies: which bytes of global memory meet which bytes of shared memory.
//
// A box is a list of rows, and a row is what lies next to each other in global memory: box[0]
// elements, the channels of a pixel, or a slice of channels of an interleaved tensor. In shared
// memory rows lie one after another; with a swizzle a row takes the swizzle's span even where it is
// shorter. The swizzle exchanges pieces of 16 bytes: bits 4 to 6 of an address are xored with
// bits 7 to 9, as many of them as the mode has. So it depends on addresses, not on places in a box.
#ifndef EMU_TENSOR_MAP_H
#define EMU_TENSOR_MAP_H

#include <stdbool.h>

#include "tir/tensor_map.h"

enum emu_tensor_mode {
    EMU_TENSOR_TILE,
    EMU_TENSOR_IM2COL,
    EMU_TENSOR_ROWS // gather4, scatter4: at[0] is the column, at[1] to at[4] are rows
};

struct emu_tensor_copy {
    const tir_tensor_map *map;
    enum emu_tensor_mode mode;
    bool is_load;
    int32_t at[5];
    uint16_t offset[3]; // im2col: added to every pixel
    uint32_t shared;    // address in shared memory
};

// A stretch of bytes that is contiguous on both sides.
struct emu_tensor_run {
    uint64_t global; // address; 0: outside of the tensor
    uint32_t shared; // address
    uint32_t size;
    bool is_tail; // of a store: after the end of a row, in its last 16 bytes; hardware writes them
};

typedef void (*emu_tensor_run_fn)(void *user, struct emu_tensor_run run);

// Calls `emit` for every run of a copy. Gives NULL, or what hardware refuses about it (then nothing
// was emitted).
const char *emu_tensor_walk(const struct emu_tensor_copy *copy, emu_tensor_run_fn emit, void *user);

// Bytes that a load announces to its mbarrier: all of the box, wherever it lies.
uint32_t emu_tensor_bytes(const struct emu_tensor_copy *copy);
// Bytes of shared memory from the first to the last one.
uint32_t emu_tensor_extent(const struct emu_tensor_copy *copy);
// The value of elements outside the tensor, repeated every 8 bytes.
uint64_t emu_tensor_fill(const tir_tensor_map *map);
// The conversion of a 32-bit element by a load: rounding to tf32. NULL: none.
typedef uint32_t (*emu_convert_fn)(uint32_t bits);
emu_convert_fn emu_tensor_convert(const tir_tensor_map *map);

#endif
