// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The targets that the compiler knows (target.def), and what each can do (feature.def).
#ifndef TIR_MACHINE_TARGET_H
#define TIR_MACHINE_TARGET_H

#include "base/str.h"
#include "ir/type.h"
#include "machine/cost.h"

struct tir_func;

// What the field of an address in a descriptor of shared memory can hold, in units of 16 bytes.
#define TIR_DESCRIPTOR_ADDRESS 0x3fff

enum tir_feature_index {
#define FEATURE(id, ...) TIR_FEATURE_##id,
#include "machine/feature.def"
    TIR_FEATURE_COUNT
};

enum tir_feature { // sets of them
#define FEATURE(id, ...) TIR_HAS_##id = 1 << TIR_FEATURE_##id,
#include "machine/feature.def"
};

struct tir_target {
    const char *name;          // "sm_90a"
    uint32_t capability;       // 90: compute capability 9.0
    uint32_t ptx;              // 86: PTX ISA 8.6
    int64_t shared_per_cta;    // bytes, dynamic limit
    int64_t shared_per_sm;     // bytes
    uint32_t registers_per_sm; // of 32 bits
    uint32_t warps_per_sm, ctas_per_sm;
    uint32_t multiprocessors; // of the largest card, which estimates of time assume
    uint32_t features;        // enum tir_feature
    enum tir_card card;       // whose costs stand for it
    bool is_measured;         // the card is one of its own
};

// Limits of tensor copies on every target that has them (PTX ISA, "Tensor copy").
enum {
    TIR_TMA_MAX_RANK = 5,      // dimensions of a tensor
    TIR_TMA_MAX_BOX = 256,     // elements along a side
    TIR_TMA_MAX_PIXELS = 1024, // of an im2col copy
    TIR_TMA_ROW_BYTES = 16,    // a row is a multiple of them
    TIR_TMA_PACKED = 128,      // elements of 4 or 6 bits in a row, and the bytes that they get
    TIR_TMA_PACKED_ALIGN = 32, // bytes, of the rows of a tensor in which they are packed
    TIR_TMA_TENSOR_BYTES = 128 // a box begins at a multiple of them in shared memory
};

extern const struct tir_target tir_targets[]; // the first one is the default
extern const uint32_t tir_target_count;
const struct tir_target *tir_target_find(tir_str name); // NULL: unknown
// Of the tensor memory of a CTA; 0: there is none.
int64_t tir_tensor_columns(const struct tir_target *target);
// CTAs that a multiprocessor has room for by shared memory and warps, at least one.
uint32_t tir_target_ctas(const struct tir_target *target, int64_t shared, uint32_t threads);
// Those of a lowered kernel, and no more than a persistent one launches.
uint32_t tir_target_ctas_of(const struct tir_target *target, const struct tir_func *f);
// The feature of that name in lower case, as `tcgen05`; 0: there is none.
uint32_t tir_target_feature(tir_str name);
// The first target with one of the features, which some target has.
const char *tir_target_first_with(uint32_t features);

// The most neighbouring elements that one red adds to in global memory; 1: each has its own atomic.
uint32_t tir_target_red(const struct tir_target *target, enum tir_elem elem);

// The best target whose code runs on a device of that compute capability, "sm_121" for 12.1. PTX of
// a target with an "a" runs on that capability alone, other PTX on later ones as well. NULL: none.
const struct tir_target *tir_target_for(tir_str device);
// Does code for one target run on the GPU that another one is for?
bool tir_target_runs_on(const struct tir_target *code, const struct tir_target *gpu);

#endif
