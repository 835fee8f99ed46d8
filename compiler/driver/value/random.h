// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random inputs by counter: number i of a key is the same on every platform, in any order.
#ifndef TIR_DRIVER_VALUE_RANDOM_H
#define TIR_DRIVER_VALUE_RANDOM_H

#include "base/base.h"

// The key of one tensor: seed and name.
uint64_t tir_random_key(uint64_t seed, tir_str name);
// Philox4x32-10.
void tir_random_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
// Uniform in [0, 1), 53 random bits.
double tir_random_uniform(uint64_t key, uint64_t i);
// Uniform integer in [lo, hi].
int64_t tir_random_int(uint64_t key, uint64_t i, int64_t lo, int64_t hi);
// Numbers 2 * pair and 2 * pair + 1 of the key's N(0,1) sequence.
void tir_random_normals(uint64_t key, uint64_t pair, double out[2]);

#endif
