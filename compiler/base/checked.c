// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked 64-bit arithmetic. *out is left as it is where the result does not fit.

#include "base/base.h"

bool tir_add_checked(int64_t a, int64_t b, int64_t *out)
{
    int64_t x;
    if (__builtin_add_overflow(a, b, &x))
        return false;
    *out = x;
    return true;
}

bool tir_sub_checked(int64_t a, int64_t b, int64_t *out)
{
    int64_t x;
    if (__builtin_sub_overflow(a, b, &x))
        return false;
    *out = x;
    return true;
}

bool tir_mul_checked(int64_t a, int64_t b, int64_t *out)
{
    int64_t x;
    if (__builtin_mul_overflow(a, b, &x))
        return false;
    *out = x;
    return true;
}
