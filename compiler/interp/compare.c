// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Comparing a device's output with the interpreter's.

#include <math.h>

#include "interp/interp.h"
#include "ir/number.h"

static union tir_number element(enum tir_elem elem, const uint8_t *data, int64_t i)
{
    uint32_t bits = tir_elems[elem].bits;
    uint64_t raw = 0;
    memcpy(&raw, data + i * (bits / 8), bits / 8);
    return tir_number_decode(elem, raw);
}

static double as_double(enum tir_elem elem, union tir_number x)
{
    if (tir_elem_is_float(elem))
        return x.f;
    return elem == TIR_U64 ? (double)(uint64_t)x.i : (double)x.i;
}

static double root_mean_square(enum tir_elem elem, const uint8_t *data, int64_t count)
{
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        double x = as_double(elem, element(elem, data, i));
        if (isfinite(x)) {
            sum += x * x;
            finite++;
        }
    }
    return finite ? sqrt(sum / (double)finite) : 0;
}

static bool agrees(enum tir_elem elem, union tir_number got, union tir_number want, double rtol,
                   struct tir_interp_diff *diff)
{
    if (!tir_elem_is_float(elem)) {
        double error = fabs(as_double(elem, got) - as_double(elem, want));
        diff->max_abs = fmax(diff->max_abs, error);
        diff->max_rel = fmax(diff->max_rel, error / fmax(fabs(as_double(elem, want)), 1));
        return got.i == want.i;
    }
    if (!isfinite(got.f) || !isfinite(want.f))
        return got.f == want.f || (isnan(got.f) && isnan(want.f));
    double error = fabs(got.f - want.f), scale = fmax(fabs(want.f), diff->rms);
    diff->error += error * error;
    diff->max_abs = fmax(diff->max_abs, error);
    if (error > 0)
        diff->max_rel = fmax(diff->max_rel, error / scale);
    return error <= rtol * scale;
}

bool tir_interp_compare(enum tir_elem elem, const void *got, const void *want, int64_t count,
                        double rtol, struct tir_interp_diff *diff)
{
    *diff = (struct tir_interp_diff){.rms = root_mean_square(elem, want, count), .first = -1};
    const int64_t size = tir_elems[elem].bits / 8;
    for (int64_t i = 0; i < count; i++) {
        if (size && !memcmp((const uint8_t *)got + i * size, (const uint8_t *)want + i * size,
                            (size_t)size))
            continue; // most are the same
        union tir_number g = element(elem, got, i), w = element(elem, want, i);
        if (agrees(elem, g, w, rtol, diff) || diff->mismatches++)
            continue;
        diff->first = i;
        diff->got = as_double(elem, g);
        diff->want = as_double(elem, w);
    }
    diff->error = count ? sqrt(diff->error / (double)count) : 0;
    return !diff->mismatches;
}

double tir_interp_tolerance(enum tir_elem elem)
{
    if (!tir_elem_is_float(elem))
        return 0;
    if (elem == TIR_F64)
        return 1e-10;
    return fmin(0.5, fmax(1e-4, ldexp(4, -(int)tir_elems[elem].mantissa)));
}
