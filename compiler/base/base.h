// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes, assertions and arithmetic that every part of the compiler uses.
#ifndef TIR_BASE_BASE_H
#define TIR_BASE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tir/base.h"

#if defined(__GNUC__)
#define TIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TIR_NORETURN          __attribute__((noreturn))
#define tir_unreachable()     (assert(!"unreachable"), __builtin_unreachable())
#else
#define TIR_PRINTF(fmt, args)
#define TIR_NORETURN
#define tir_unreachable() assert(!"unreachable")
#endif

// A function is compiled for wider vector units, too, which are used where there are some.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TIR_WIDER __attribute__((target_clones("avx2", "default")))
#else
#define TIR_WIDER
#endif

#define TIR_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TIR_MIN(a, b)       ((a) < (b) ? (a) : (b))
#define TIR_MAX(a, b)       ((a) > (b) ? (a) : (b))

static inline uint64_t tir_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

static inline int64_t tir_ceil_div(int64_t a, int64_t b) // b > 0
{
    return a / b + (a % b > 0);
}

static inline uint64_t tir_gcd(uint64_t a, uint64_t b) // of 0 and b: b
{
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static inline int64_t tir_power_in(int64_t n) // the largest power of two that divides n > 0
{
    return n & -n;
}
static inline bool tir_is_pow2(uint64_t v)
{
    return v && !(v & (v - 1));
}

// Checked 64-bit arithmetic: false when the result does not fit; *out is then unchanged.
bool tir_add_checked(int64_t a, int64_t b, int64_t *out);
bool tir_sub_checked(int64_t a, int64_t b, int64_t *out);
bool tir_mul_checked(int64_t a, int64_t b, int64_t *out);

#endif
