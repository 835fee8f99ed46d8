// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps: the 128 bytes that describe a tensor in global memory, and the part that is copied
// at once, to the tensor copies of a GPU.
//
// The bytes are those that the CUDA driver writes for the same parameters (cuTensorMapEncodeTiled,
// cuTensorMapEncodeIm2col), bit for bit, so a map made here can be given to a kernel on a GPU, and
// one made by the driver to a kernel on the emulator. Nothing here needs a driver.
//
// Dimension 0 is the innermost one; its elements lie next to each other.
#ifndef TIR_TENSOR_MAP_H
#define TIR_TENSOR_MAP_H

#include "tir/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIR_TENSOR_MAP_BYTES = 128, TIR_TENSOR_MAP_RANK = 5 };

// The values of the enums are those of the driver's.
typedef enum tir_tensor_map_kind {
    TIR_TENSOR_MAP_TILED = 0,
    TIR_TENSOR_MAP_IM2COL = 1,
    TIR_TENSOR_MAP_IM2COL_WIDE = 2 // with one pair of corners; the bytes are those of IM2COL
} tir_tensor_map_kind;

typedef enum tir_tensor_map_type {
    TIR_TENSOR_MAP_U8 = 0,
    TIR_TENSOR_MAP_U16 = 1,
    TIR_TENSOR_MAP_U32 = 2,
    TIR_TENSOR_MAP_S32 = 3,
    TIR_TENSOR_MAP_U64 = 4,
    TIR_TENSOR_MAP_S64 = 5,
    TIR_TENSOR_MAP_F16 = 6,
    TIR_TENSOR_MAP_F32 = 7,
    TIR_TENSOR_MAP_F64 = 8,
    TIR_TENSOR_MAP_BF16 = 9,
    TIR_TENSOR_MAP_F32_FTZ = 10,
    TIR_TENSOR_MAP_TF32 = 11,
    TIR_TENSOR_MAP_TF32_FTZ = 12,
    // 16 elements that follow each other in global memory come to the first 8 or 12 of 16 bytes of
    // shared memory (sm_100a and later). U8 does what 13 would do, elements of 4 bits without gaps.
    TIR_TENSOR_MAP_U4_ALIGN16 = 14,
    TIR_TENSOR_MAP_U6_ALIGN16 = 15,
    TIR_TENSOR_MAP_TYPE_COUNT
} tir_tensor_map_type;

typedef enum tir_tensor_map_interleave {
    TIR_TENSOR_MAP_DENSE = 0,
    TIR_TENSOR_MAP_INTERLEAVE_16 = 1, // slices of 16 bytes of channels
    TIR_TENSOR_MAP_INTERLEAVE_32 = 2
} tir_tensor_map_interleave;

typedef enum tir_tensor_map_swizzle {
    TIR_TENSOR_MAP_SWIZZLE_NONE = 0,
    TIR_TENSOR_MAP_SWIZZLE_32 = 1,
    TIR_TENSOR_MAP_SWIZZLE_64 = 2,
    TIR_TENSOR_MAP_SWIZZLE_128 = 3
} tir_tensor_map_swizzle;

typedef enum tir_tensor_map_l2 {
    TIR_TENSOR_MAP_L2_NONE = 0,
    TIR_TENSOR_MAP_L2_64 = 1,
    TIR_TENSOR_MAP_L2_128 = 2,
    TIR_TENSOR_MAP_L2_256 = 3
} tir_tensor_map_l2;

typedef enum tir_tensor_map_fill {
    TIR_TENSOR_MAP_FILL_ZERO = 0,
    TIR_TENSOR_MAP_FILL_NAN = 1 // floating-point types only
} tir_tensor_map_fill;

// The encoder ignores members of another kind or beyond the rank; decoding sets them to zero.
typedef struct tir_tensor_map {
    tir_tensor_map_kind kind;
    tir_tensor_map_type type;
    tir_tensor_map_interleave interleave; // other than DENSE: rank 3 to 5
    tir_tensor_map_swizzle swizzle;
    tir_tensor_map_l2 l2; // how much the L2 cache fetches
    tir_tensor_map_fill fill;
    uint32_t rank; // 1 to 5; im2col: 3 to 5
    // A multiple of 16, with INTERLEAVE_32 and of elements of 4 or 6 bits of 32; below 2^57.
    uint64_t address;
    // Elements, 1 to 2^32; dims that corners bound: below 2^31. Dim 0 of elements of 4 or 6 bits is
    // a multiple of 128.
    uint64_t dims[5];
    uint64_t strides[4]; // bytes between neighbours in dims 1 to 4; multiples as `address`, < 2^40
    uint32_t steps[5];   // every how manyth element is taken, 1 to 8
    // TILED: elements of the box before steps, 1 to 256; box[0] * bytes a multiple of 16 and, when
    // dense and swizzled, at most the swizzle's span. A box may have at most 233472 bytes. Elements
    // of 4 or 6 bits: 128 in dim 0, which have 128 bytes of shared memory; dense, filled with
    // zeros, and swizzled by 128 bytes or not at all.
    uint32_t box[5];
    // IM2COL: corners of the box of base pixels, from the innermost of the rank - 2 dims of pixels.
    // Rank 3: 16 bits, rank 4: 8 bits, rank 5: 5 bits, signed. WIDE: the first ones count.
    int32_t lower[3], upper[3];
    uint32_t channels; // of a pixel, 1 to 256; bytes as those of box[0]
    uint32_t pixels;   // 1 to 1024
} tir_tensor_map;

// Writes the 128 bytes of a map. Refuses (TIR_ERR_INVALID) what the driver refuses on sm_90, but
// for elements of 4 or 6 bits, and the message names the member.
TIR_API TIR_CHECKED tir_status tir_tensor_map_encode(const tir_tensor_map *map,
                                                     uint8_t bytes[TIR_TENSOR_MAP_BYTES],
                                                     tir_error *error);

// Reads the 128 bytes of a map. Refuses bytes that no encoder writes. IM2COL_WIDE comes back as
// IM2COL.
TIR_API TIR_CHECKED tir_status tir_tensor_map_decode(const uint8_t bytes[TIR_TENSOR_MAP_BYTES],
                                                     tir_tensor_map *out, tir_error *error);

// Bytes of an element in shared memory; of 4 or 6 bits, its part of 16.
TIR_API uint32_t tir_tensor_map_type_bytes(tir_tensor_map_type type);
// Bits of an element in global memory.
TIR_API uint32_t tir_tensor_map_type_bits(tir_tensor_map_type type);

#ifdef __cplusplus
}
#endif
#endif
