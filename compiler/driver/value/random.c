// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Philox4x32-10 and Box-Muller.
//
// Libraries differ in the last bit of log, sin and cos, and a test that prints an error must print
// the same one everywhere. So these three are summed here from their series, in operations whose
// result IEEE 754 fixes; the file is compiled without contraction to fused multiply-adds. The
// generator is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
#include "driver/value/random.h"

#include <math.h>

void tir_random_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    // Four variables: an array went through memory in each round.
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t tir_random_key(uint64_t seed, tir_str name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed * UINT64_C(0x9E3779B97F4A7C15); // FNV-1a
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void block_of(uint64_t key, uint64_t i, uint64_t out[2])
{
    uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0}, words[4];
    tir_random_block(counter, (uint32_t[2]){(uint32_t)key, (uint32_t)(key >> 32)}, words);
    out[0] = words[0] | (uint64_t)words[1] << 32;
    out[1] = words[2] | (uint64_t)words[3] << 32;
}

double tir_random_uniform(uint64_t key, uint64_t i)
{
    uint64_t bits[2];
    block_of(key, i, bits);
    return (double)(bits[0] >> 11) * 0x1p-53;
}

int64_t tir_random_int(uint64_t key, uint64_t i, int64_t lo, int64_t hi)
{
    uint64_t bits[2], range = (uint64_t)hi - (uint64_t)lo + 1; // 0: all of 64 bits
    block_of(key, i, bits);
    return (int64_t)((uint64_t)lo + (range ? bits[0] % range : bits[0]));
}

#define SQRT_HALF 0.70710678118654752440
#define LN2       0.69314718055994530942
#define HALF_PI   1.57079632679489661923

static double log_of(double u) // u > 0
{
    int exponent;
    double m = frexp(u, &exponent);
    if (m < SQRT_HALF) {
        m *= 2;
        exponent--;
    }
    double z = (m - 1) / (m + 1), square = z * z, sum = 0;
    for (int k = 25; k > 0; k -= 2) // 2 artanh(z), |z| < 0.172
        sum = sum * square + 1.0 / k;
    return exponent * LN2 + 2 * z * sum;
}

static void sin_cos(double turn, double *sine, double *cosine) // turn in [0, 1)
{
    int quadrant = (int)(turn * 4);
    double x = (turn * 4 - quadrant) * HALF_PI, square = x * x, s = 1, c = 1;
    for (int k = 22; k > 0; k -= 2) {
        c = 1 - c * square / ((k - 1) * k);
        s = 1 - s * square / (k * (k + 1));
    }
    s *= x;
    static const signed char signs[4][2] = {{1, 1}, {1, -1}, {-1, -1}, {-1, 1}}; // of sin, cos
    *sine = signs[quadrant][0] * (quadrant % 2 ? c : s);
    *cosine = signs[quadrant][1] * (quadrant % 2 ? s : c);
}

void tir_random_normals(uint64_t key, uint64_t pair, double out[2])
{
    uint64_t bits[2];
    block_of(key, pair, bits);
    double u = (double)((bits[0] >> 11) + 1) * 0x1p-53; // (0, 1]
    double radius = sqrt(-2 * log_of(u)), sine, cosine;
    sin_cos((double)(bits[1] >> 11) * 0x1p-53, &sine, &cosine);
    out[0] = radius * cosine;
    out[1] = radius * sine;
}
