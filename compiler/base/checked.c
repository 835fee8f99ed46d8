// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked 64-bit arithmetic, in standard C.

#include "base/base.h"

bool tir_add_checked(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *out = a + b;
    return true;
}

bool tir_sub_checked(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a < INT64_MIN + b : a > INT64_MAX + b)
        return false;
    *out = a - b;
    return true;
}

bool tir_mul_checked(int64_t a, int64_t b, int64_t *out)
{
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *out = a * b;
    return true;
}
