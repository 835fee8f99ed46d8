// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernels of foreign.py are made of. Each function has two bodies: what nvcc makes PTX of,
// and plain C++ that says what it has to give. NaNs have one form, and with FTZ there are no
// subnormal numbers of 32 bits. With PLAIN nvcc sees operators, else intrinsics that it never
// contracts.
#ifndef TESTS_RANDOM_FOREIGN_CUH
#define TESTS_RANDOM_FOREIGN_CUH

#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#ifdef __CUDACC__
#define BOTH         __host__ __device__
#define TABLE        __constant__
#define GLOBAL_TABLE __device__
#define APART        __noinline__
#else
#include <fenv.h>
#include <math.h>
#include <string.h>
#define BOTH
#define TABLE        static
#define GLOBAL_TABLE static
#define APART        __attribute__((noinline))
#endif

#ifdef __CUDA_ARCH__
#define DEVICE(...) __VA_ARGS__
#define HOST(...)
#elif defined(__CUDACC__) // the host's pass of nvcc is not used
#define DEVICE(...)
#define HOST(...)
#else
#define DEVICE(...)
#define HOST(...) __VA_ARGS__
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;
typedef unsigned __int128 u128;

#define FN(type) static BOTH inline type

// --- bits and numbers ---

FN(u32) raw(f32 x)
{
    DEVICE(return __float_as_uint(x);) HOST(u32 u; memcpy(&u, &x, 4); return u;)
}
FN(u64) raw(f64 x)
{
    DEVICE(return (u64)__double_as_longlong(x);) HOST(u64 u; memcpy(&u, &x, 8); return u;)
}
FN(f32) of_raw(u32 u)
{
    DEVICE(return __uint_as_float(u);) HOST(f32 x; memcpy(&x, &u, 4); return x;)
}
FN(f64) of_raw(u64 u)
{
    DEVICE(return __longlong_as_double((long long)u);) HOST(f64 x; memcpy(&x, &u, 8); return x;)
}
FN(bool) is_nan(f32 x)
{
    return (raw(x) & 0x7fffffffu) > 0x7f800000u;
}
FN(bool) is_nan(f64 x)
{
    return (raw(x) & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
}
FN(u32) bits(f32 x)
{
    return is_nan(x) ? 0x7fffffffu : raw(x);
}
FN(u64) bits(f64 x)
{
    return is_nan(x) ? 0x7fffffffffffffffull : raw(x);
}
FN(u16) canon16(u16 h)
{
    return (h & 0x7fff) > 0x7c00 ? 0x7fff : h;
}
FN(u16) canonb(u16 h)
{
    return (h & 0x7fff) > 0x7f80 ? 0x7fff : h;
}
#ifdef FTZ
FN(u32) flushed(u32 u)
{
    return u & 0x7f800000u ? u : u & 0x80000000u;
}
#else
FN(u32) flushed(u32 u)
{
    return u;
}
#endif
FN(f32) z(f32 x)
{
    HOST(return of_raw(flushed(raw(x)));) DEVICE(return x;)
}
FN(f32) to_f32(u32 u)
{
    return of_raw(flushed((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : u));
}
FN(f64) to_f64(u64 u)
{
    return of_raw((u & 0x7fffffffffffffffull) > 0x7ff0000000000000ull ? (u64)0x7fffffffffffffffull
                                                                      : u);
}

// --- f32 and f64: nearest, towards zero, down, up ---

#ifndef __CUDACC__
template <class F> auto rounded(int way, F f) -> decltype(f())
{
    static const int ways[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    fesetround(ways[way]);
    auto x = f();
    fesetround(FE_TONEAREST);
    return x;
}
#define ROUNDED(way, T, value)          \
    rounded(way, [=] {                  \
        volatile T p = a, q = b, r = c; \
        (void)p;                        \
        (void)q;                        \
        (void)r;                        \
        volatile T x = (value);         \
        return (T)x;                    \
    })
#endif
#ifdef PLAIN
#define NEAREST(plain, intrinsic) plain
#else
#define NEAREST(plain, intrinsic) intrinsic
#endif
#define ARITHMETIC(T, Z, add, sub, mul, div, fused, root)                                        \
    FN(T) add##_0(T a, T b)                                                                      \
    {                                                                                            \
        DEVICE(return NEAREST(a + b, __##add##_rn(a, b));)                                       \
        HOST(T c = 0; return Z(ROUNDED(0, T, p + q));)                                           \
    }                                                                                            \
    FN(T) sub##_0(T a, T b)                                                                      \
    {                                                                                            \
        DEVICE(return NEAREST(a - b, __##sub##_rn(a, b));)                                       \
        HOST(T c = 0; return Z(ROUNDED(0, T, p - q));)                                           \
    }                                                                                            \
    FN(T) mul##_0(T a, T b)                                                                      \
    {                                                                                            \
        DEVICE(return NEAREST(a * b, __##mul##_rn(a, b));)                                       \
        HOST(T c = 0; return Z(ROUNDED(0, T, p * q));)                                           \
    }                                                                                            \
    FN(T) div##_0(T a, T b)                                                                      \
    {                                                                                            \
        DEVICE(return NEAREST(a / b, __##div##_rn(a, b));)                                       \
        HOST(T c = 0; return Z(ROUNDED(0, T, p / q));)                                           \
    }                                                                                            \
    FN(T) fused##_0(T a, T b, T c)                                                               \
    {                                                                                            \
        DEVICE(return __##fused##_rn(a, b, c);) HOST(return Z(ROUNDED(0, T, FUSED(p, q, r)));)   \
    }                                                                                            \
    FN(T) root##_0(T a)                                                                          \
    {                                                                                            \
        DEVICE(return __##root##_rn(a);) HOST(T b = 0, c = 0; return Z(ROUNDED(0, T, ROOT(p)));) \
    }                                                                                            \
    WAY(T, Z, 1, rz, add, sub, mul, div, fused, root)                                            \
    WAY(T, Z, 2, rd, add, sub, mul, div, fused, root)                                            \
    WAY(T, Z, 3, ru, add, sub, mul, div, fused, root)
#define WAY(T, Z, n, way, add, sub, mul, div, fused, root)                                        \
    FN(T) add##_##n(T a, T b)                                                                     \
    {                                                                                             \
        DEVICE(return __##add##_##way(a, b);) HOST(T c = 0; return Z(ROUNDED(n, T, p + q));)      \
    }                                                                                             \
    FN(T) sub##_##n(T a, T b)                                                                     \
    {                                                                                             \
        DEVICE(return __##sub##_##way(a, b);) HOST(T c = 0; return Z(ROUNDED(n, T, p - q));)      \
    }                                                                                             \
    FN(T) mul##_##n(T a, T b)                                                                     \
    {                                                                                             \
        DEVICE(return __##mul##_##way(a, b);) HOST(T c = 0; return Z(ROUNDED(n, T, p * q));)      \
    }                                                                                             \
    FN(T) div##_##n(T a, T b)                                                                     \
    {                                                                                             \
        DEVICE(return __##div##_##way(a, b);) HOST(T c = 0; return Z(ROUNDED(n, T, p / q));)      \
    }                                                                                             \
    FN(T) fused##_##n(T a, T b, T c)                                                              \
    {                                                                                             \
        DEVICE(return __##fused##_##way(a, b, c);) HOST(return Z(ROUNDED(n, T, FUSED(p, q, r)));) \
    }                                                                                             \
    FN(T) root##_##n(T a)                                                                         \
    {                                                                                             \
        DEVICE(return __##root##_##way(a);)                                                       \
        HOST(T b = 0, c = 0; return Z(ROUNDED(n, T, ROOT(p)));)                                   \
    }
#define SAME(x)        (x)
#define FUSED(a, b, c) fmaf(a, b, c)
#define ROOT(a)        sqrtf(a)
ARITHMETIC(f32, z, fadd, fsub, fmul, fdiv, fmaf, fsqrt)
#undef FUSED
#undef ROOT
#define FUSED(a, b, c) ::fma(a, b, c)
#define ROOT(a)        ::sqrt(a)
ARITHMETIC(f64, SAME, dadd, dsub, dmul, ddiv, fma, dsqrt)

template <class T> BOTH inline T least(T a, T b)
{
    return b < a ? b : a;
}
template <class T> BOTH inline T most(T a, T b)
{
    return a < b ? b : a;
}
// The lesser of two numbers: -0 is less than 0, and a NaN loses.
#define PICK(T, name, intrinsic, less)                                           \
    FN(T) name(T a, T b)                                                         \
    {                                                                            \
        DEVICE(return intrinsic(a, b);)                                          \
        HOST(if (is_nan(a)) return b; if (is_nan(b)) return a;                   \
             if (a == b) return (raw(a) >> (sizeof(T) * 8 - 1)) == less ? a : b; \
             return (a < b) == (bool)less ? a : b;)                              \
    }
PICK(f32, f_min, fminf, 1)
PICK(f32, f_max, fmaxf, 0)
PICK(f64, d_min, fmin, 1)
PICK(f64, d_max, fmax, 0)
#define ONE(T, name, device, host)                \
    FN(T) name(T a)                               \
    {                                             \
        DEVICE(return device;) HOST(return host;) \
    }
ONE(f32, f_abs, fabsf(a), fabsf(a))
ONE(f32, f_neg, -a, -a)
ONE(f32, f_floor, floorf(a), floorf(a))
ONE(f32, f_ceil, ceilf(a), ceilf(a))
ONE(f32, f_trunc, truncf(a), truncf(a))
ONE(f32, f_rint, rintf(a), rintf(a))
ONE(f32, f_round, roundf(a), roundf(a))
ONE(f32, f_sat, __saturatef(a), is_nan(a) || a < 0 || a == 0 ? 0.0f : a > 1 ? 1.0f : a)
ONE(f64, d_abs, fabs(a), fabs(a))
ONE(f64, d_neg, -a, -a)
ONE(f64, d_floor, floor(a), floor(a))
ONE(f64, d_ceil, ceil(a), ceil(a))
ONE(f64, d_trunc, trunc(a), trunc(a))
ONE(f64, d_rint, rint(a), rint(a))
ONE(f64, d_round, round(a), round(a))
ONE(f64, d_cube, a *a *a, a *a *a)
FN(f32) f_sign(f32 a, f32 b)
{
    return copysignf(a, is_nan(b) ? 1.0f : b);
}
FN(f64) d_sign(f64 a, f64 b)
{
    return copysign(a, is_nan(b) ? 1.0 : b);
}
FN(f32) f_mod(f32 a, f32 b)
{
    return fmodf(a, b);
}
FN(f64) d_mod(f64 a, f64 b)
{
    return fmod(a, b);
}
FN(f32) f_remainder(f32 a, f32 b)
{
    return remainderf(a, b);
}
FN(f64) d_remainder(f64 a, f64 b)
{
    return remainder(a, b);
}
FN(f32) f_scaled(f32 a, i32 n)
{
    return ldexpf(a, n % 300);
}
FN(f64) d_scaled(f64 a, i32 n)
{
    return ldexp(a, n % 2200);
}
FN(f32) f_next(f32 a, f32 b)
{
    return nextafterf(a, b);
}
FN(f64) d_next(f64 a, f64 b)
{
    return nextafter(a, b);
}
FN(i32) f_exponent(f32 a)
{
    return is_nan(a) || a == 0 || a - a != 0 ? 0 : ilogbf(a);
}
FN(i32) d_exponent(f64 a)
{
    return is_nan(a) || a == 0 || a - a != 0 ? 0 : ilogb(a);
}
FN(f32) f_fraction(f32 a)
{
    int e = 0;
    const f32 m = is_nan(a) || a - a != 0 ? a : frexpf(a, &e);
    return m;
}
FN(f64) d_fraction(f64 a)
{
    f64 w;
    return is_nan(a) ? a : modf(a, &w);
}

// --- conversions ---

#ifndef __CUDACC__
template <class R, class T> R integer(int way, T x, R low, R high)
{
    if (x != x)
        return 0;
    const long double r = way == 0   ? nearbyintl(x)
                          : way == 1 ? truncl(x)
                          : way == 2 ? floorl(x)
                                     : ceill(x);
    return r <= (long double)low ? low : r >= (long double)high ? high : (R)r;
}
template <class R, class T> R narrowed(int way, T a)
{
    static const int ways[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    fesetround(ways[way]);
    volatile T x = a;
    volatile R r = (R)x;
    fesetround(FE_TONEAREST);
    return r;
}
#endif
// NaNs become 0 here: what an instruction makes of them depends on the types.
#define TO_INT(name, R, T, low, high)                       \
    FN(R) name##_0(T a)                                     \
    {                                                       \
        DEVICE(return is_nan(a) ? 0 : (R)__##name##_rn(a);) \
        HOST(return integer<R, T>(0, a, low, high);)        \
    }                                                       \
    FN(R) name##_1(T a)                                     \
    {                                                       \
        DEVICE(return is_nan(a) ? 0 : (R)__##name##_rz(a);) \
        HOST(return integer<R, T>(1, a, low, high);)        \
    }                                                       \
    FN(R) name##_2(T a)                                     \
    {                                                       \
        DEVICE(return is_nan(a) ? 0 : (R)__##name##_rd(a);) \
        HOST(return integer<R, T>(2, a, low, high);)        \
    }                                                       \
    FN(R) name##_3(T a)                                     \
    {                                                       \
        DEVICE(return is_nan(a) ? 0 : (R)__##name##_ru(a);) \
        HOST(return integer<R, T>(3, a, low, high);)        \
    }
TO_INT(float2int, i32, f32, INT32_MIN, INT32_MAX)
TO_INT(float2uint, u32, f32, 0, UINT32_MAX)
TO_INT(float2ll, i64, f32, INT64_MIN, INT64_MAX)
TO_INT(float2ull, u64, f32, 0, UINT64_MAX)
TO_INT(double2int, i32, f64, INT32_MIN, INT32_MAX)
TO_INT(double2uint, u32, f64, 0, UINT32_MAX)
TO_INT(double2ll, i64, f64, INT64_MIN, INT64_MAX)
TO_INT(double2ull, u64, f64, 0, UINT64_MAX)
#define TO_FLOAT(name, R, T, Z)                                                  \
    FN(R) name##_0(T a)                                                          \
    {                                                                            \
        DEVICE(return __##name##_rn(a);) HOST(return Z((narrowed<R, T>(0, a)));) \
    }                                                                            \
    FN(R) name##_1(T a)                                                          \
    {                                                                            \
        DEVICE(return __##name##_rz(a);) HOST(return Z((narrowed<R, T>(1, a)));) \
    }                                                                            \
    FN(R) name##_2(T a)                                                          \
    {                                                                            \
        DEVICE(return __##name##_rd(a);) HOST(return Z((narrowed<R, T>(2, a)));) \
    }                                                                            \
    FN(R) name##_3(T a)                                                          \
    {                                                                            \
        DEVICE(return __##name##_ru(a);) HOST(return Z((narrowed<R, T>(3, a)));) \
    }
TO_FLOAT(int2float, f32, i32, z)
TO_FLOAT(uint2float, f32, u32, z)
TO_FLOAT(ll2float, f32, i64, z)
TO_FLOAT(ull2float, f32, u64, z)
TO_FLOAT(ll2double, f64, i64, SAME)
TO_FLOAT(ull2double, f64, u64, SAME)
TO_FLOAT(double2float, f32, f64, z)
FN(f64) i2d(i32 a)
{
    return (f64)a;
}
FN(f64) f2d(f32 a)
{
    return (f64)a;
}

// --- 16 and 8 bits ---

#ifndef __CUDACC__
// A sum or a fused product of numbers of 16 bits, rounded to odd in 53: rounding it again is exact.
static f64 odd_fused(f64 a, f64 b, f64 c)
{
    const f64 p = a * b, s = p + c;
    if (!(s - s == 0))
        return s;
    const f64 t = s - p, e = (p - (s - t)) + (c - t);
    u64 u = raw(s);
    if (e != 0 && !(u & 1))
        u = (e > 0) == (s > 0) ? u + 1 : s == 0 ? u : u - 1;
    return of_raw(u);
}
#endif
#define HALF_OF(T, raw_type, h) \
    ({                          \
        raw_type r_;            \
        r_.x = h;               \
        (T) r_;                 \
    })
#define HALF_BITS(T, raw_type, v) \
    ({                            \
        raw_type r_ = (v);        \
        (u16) r_.x;               \
    })
#define SIXTEEN(p, T, raw_type, canon, widen, of_double)                                          \
    FN(T) p##_of(u16 h)                                                                           \
    {                                                                                             \
        raw_type r;                                                                               \
        r.x = h;                                                                                  \
        return T(r);                                                                              \
    }                                                                                             \
    FN(u16) p##_bits(T v)                                                                         \
    {                                                                                             \
        const raw_type r = v;                                                                     \
        return canon(r.x);                                                                        \
    }                                                                                             \
    FN(f64) p##_wide(u16 h)                                                                       \
    {                                                                                             \
        return (f64)widen(p##_of(h));                                                             \
    }                                                                                             \
    FN(u16) p##_add(u16 a, u16 b)                                                                 \
    {                                                                                             \
        DEVICE(return p##_bits(__hadd_rn(p##_of(a), p##_of(b)));)                                 \
        HOST(return p##_bits(of_double(odd_fused(p##_wide(a), 1, p##_wide(b))));)                 \
    }                                                                                             \
    FN(u16) p##_sub(u16 a, u16 b)                                                                 \
    {                                                                                             \
        DEVICE(return p##_bits(__hsub_rn(p##_of(a), p##_of(b)));)                                 \
        HOST(return p##_bits(of_double(odd_fused(p##_wide(a), 1, -p##_wide(b))));)                \
    }                                                                                             \
    FN(u16) p##_mul(u16 a, u16 b)                                                                 \
    {                                                                                             \
        DEVICE(return p##_bits(__hmul_rn(p##_of(a), p##_of(b)));)                                 \
        HOST(return p##_bits(of_double(p##_wide(a) * p##_wide(b)));)                              \
    }                                                                                             \
    FN(u16) p##_fma(u16 a, u16 b, u16 c)                                                          \
    {                                                                                             \
        DEVICE(return p##_bits(__hfma(p##_of(a), p##_of(b), p##_of(c)));)                         \
        HOST(return p##_bits(of_double(odd_fused(p##_wide(a), p##_wide(b), p##_wide(c))));)       \
    }                                                                                             \
    FN(u16) p##_relu(u16 a, u16 b, u16 c)                                                         \
    {                                                                                             \
        DEVICE(return p##_bits(__hfma_relu(p##_of(a), p##_of(b), p##_of(c)));)                    \
        HOST(const u16 x = p##_bits(of_double(odd_fused(p##_wide(a), p##_wide(b), p##_wide(c)))); \
             return x == 0x7fff  ? x                                                              \
                    : x & 0x8000 ? 0                                                              \
                                 : x;)                                                            \
    }                                                                                             \
    FN(u16) p##_neg(u16 a)                                                                        \
    {                                                                                             \
        DEVICE(return p##_bits(__hneg(p##_of(a)));) HOST(return canon(a ^ 0x8000);)               \
    }                                                                                             \
    FN(u16) p##_abs(u16 a)                                                                        \
    {                                                                                             \
        DEVICE(return p##_bits(__habs(p##_of(a)));) HOST(return canon(a & 0x7fff);)               \
    }                                                                                             \
    FN(u16) p##_min(u16 a, u16 b)                                                                 \
    {                                                                                             \
        DEVICE(return p##_bits(__hmin(p##_of(a), p##_of(b)));)                                    \
        HOST(return p##_bits(of_double(d_min(p##_wide(a), p##_wide(b))));)                        \
    }                                                                                             \
    FN(u16) p##_max(u16 a, u16 b)                                                                 \
    {                                                                                             \
        DEVICE(return p##_bits(__hmax(p##_of(a), p##_of(b)));)                                    \
        HOST(return p##_bits(of_double(d_max(p##_wide(a), p##_wide(b))));)                        \
    }                                                                                             \
    FN(u16) p##_min_nan(u16 a, u16 b)                                                             \
    {                                                                                             \
        DEVICE(return p##_bits(__hmin_nan(p##_of(a), p##_of(b)));)                                \
        HOST(return is_nan(p##_wide(a)) || is_nan(p##_wide(b)) ? 0x7fff : p##_min(a, b);)         \
    }                                                                                             \
    FN(bool) p##_less(u16 a, u16 b)                                                               \
    {                                                                                             \
        DEVICE(return __hlt(p##_of(a), p##_of(b));) HOST(return p##_wide(a) < p##_wide(b);)       \
    }                                                                                             \
    FN(bool) p##_unordered(u16 a, u16 b)                                                          \
    {                                                                                             \
        DEVICE(return __hgeu(p##_of(a), p##_of(b));) HOST(return !(p##_wide(a) < p##_wide(b));)   \
    }                                                                                             \
    FN(f32) p##_float(u16 a)                                                                      \
    {                                                                                             \
        return z(widen(p##_of(a)));                                                               \
    }                                                                                             \
    FN(u16) p##_double(f64 a)                                                                     \
    {                                                                                             \
        return p##_bits(of_double(a));                                                            \
    }                                                                                             \
    FN(u32) p##_pair_fma(u32 a, u32 b, u32 c)                                                     \
    {                                                                                             \
        DEVICE(T##2 x, y, w; x.x = p##_of(a & 0xffff); x.y = p##_of(a >> 16);                     \
               y.x = p##_of(b & 0xffff); y.y = p##_of(b >> 16); w.x = p##_of(c & 0xffff);         \
               w.y = p##_of(c >> 16); x = __hfma2(x, y, w);                                       \
               return p##_bits(x.x) | (u32)p##_bits(x.y) << 16;)                                  \
        HOST(return p##_fma(a & 0xffff, b & 0xffff, c & 0xffff) |                                 \
                        (u32)p##_fma(a >> 16, b >> 16, c >> 16) << 16;)                           \
    }
typedef __half half_t;
typedef __half2 half_t2;
typedef __nv_bfloat16 brain_t;
typedef __nv_bfloat162 brain_t2;
SIXTEEN(h, half_t, __half_raw, canon16, __half2float, __double2half)
SIXTEEN(b, brain_t, __nv_bfloat16_raw, canonb, __bfloat162float, __double2bfloat16)
FN(u16) h_of_f32_0(f32 a)
{
    return h_bits(__float2half_rn(a));
}
FN(u16) h_of_f32_1(f32 a)
{
    return h_bits(__float2half_rz(a));
}
FN(u16) h_of_f32_2(f32 a)
{
    return h_bits(__float2half_rd(a));
}
FN(u16) h_of_f32_3(f32 a)
{
    return h_bits(__float2half_ru(a));
}
FN(u16) b_of_f32_0(f32 a)
{
    return b_bits(__float2bfloat16_rn(a));
}
FN(u16) b_of_f32_1(f32 a)
{
    return b_bits(__float2bfloat16_rz(a));
}
FN(u16) b_of_f32_2(f32 a)
{
    return b_bits(__float2bfloat16_rd(a));
}
FN(u16) b_of_f32_3(f32 a)
{
    return b_bits(__float2bfloat16_ru(a));
}
FN(u16) h_of_i32(i32 a)
{
    return h_bits(__int2half_rn(a));
}
FN(u16) h_of_u64(u64 a)
{
    return h_bits(__ull2half_rn(a));
}
FN(i32) h_to_i32(u16 a)
{
    return is_nan(h_wide(a)) ? 0 : __half2int_rz(h_of(a));
}
FN(u8) e4m3(f32 a)
{
    return __nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E4M3);
}
FN(u8) e5m2(f32 a)
{
    return __nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E5M2);
}
FN(u8) e5m2_open(f32 a)
{
    return __nv_cvt_float_to_fp8(a, __NV_NOSAT, __NV_E5M2);
}
FN(u16) of_e4m3(u8 a)
{
    return canon16(__nv_cvt_fp8_to_halfraw(a, __NV_E4M3).x);
}
FN(u16) of_e5m2(u8 a)
{
    return canon16(__nv_cvt_fp8_to_halfraw(a, __NV_E5M2).x);
}

// --- integers ---

FN(u32) mul_hi(u32 a, u32 b)
{
    DEVICE(return __umulhi(a, b);) HOST(return (u64)a * b >> 32;)
}
FN(i32) mul_hi_s(i32 a, i32 b)
{
    DEVICE(return __mulhi(a, b);) HOST(return (i64)a * b >> 32;)
}
FN(u64) mul_hi(u64 a, u64 b)
{
    DEVICE(return __umul64hi(a, b);) HOST(return (u128)a * b >> 64;)
}
FN(i64) mul_hi_s(i64 a, i64 b)
{
    DEVICE(return __mul64hi(a, b);) HOST(return (__int128)a * b >> 64;)
}
FN(u32) mul24(u32 a, u32 b)
{
    DEVICE(return __umul24(a, b);) HOST(return (a & 0xffffff) * (b & 0xffffff);)
}
FN(i32) mul24s(i32 a, i32 b)
{
    DEVICE(return __mul24(a, b);)
    HOST(return (i32)((u32)((i32)((u32)a << 8) >> 8) * (u32)((i32)((u32)b << 8) >> 8));)
}
FN(u32) ones(u32 a)
{
    DEVICE(return __popc(a);) HOST(return __builtin_popcount(a);)
}
FN(u32) ones(u64 a)
{
    DEVICE(return __popcll(a);) HOST(return __builtin_popcountll(a);)
}
FN(u32) leading(u32 a)
{
    DEVICE(return __clz(a);) HOST(return a ? __builtin_clz(a) : 32;)
}
FN(u32) leading(u64 a)
{
    DEVICE(return __clzll(a);) HOST(return a ? __builtin_clzll(a) : 64;)
}
FN(u32) first(u32 a)
{
    DEVICE(return __ffs(a);) HOST(return __builtin_ffs(a);)
}
FN(u32) first(u64 a)
{
    DEVICE(return __ffsll(a);) HOST(return __builtin_ffsll(a);)
}
FN(u32) turned(u32 a)
{
    DEVICE(return __brev(a);)
    HOST(u32 r = 0; for (int i = 0; i < 32; i++) r |= (a >> i & 1) << (31 - i); return r;)
}
FN(u64) turned(u64 a)
{
    DEVICE(return __brevll(a);)
    HOST(u64 r = 0; for (int i = 0; i < 64; i++) r |= (a >> i & 1) << (63 - i); return r;)
}
FN(u32) permuted(u32 a, u32 b, u32 s)
{
    DEVICE(return __byte_perm(a, b, s);)
    HOST(u32 r = 0; for (int i = 0; i < 4; i++) r |=
                    (u32)(u8)(((u64)b << 32 | a) >> 8 * (s >> 4 * i & 7)) << 8 * i;
         return r;)
}
FN(u32) funnel_l(u32 a, u32 b, u32 n)
{
    DEVICE(return __funnelshift_l(a, b, n);) HOST(return ((u64)b << 32 | a) << (n & 31) >> 32;)
}
FN(u32) funnel_r(u32 a, u32 b, u32 n)
{
    DEVICE(return __funnelshift_r(a, b, n);) HOST(return ((u64)b << 32 | a) >> (n & 31);)
}
FN(u32) funnel_lc(u32 a, u32 b, u32 n)
{
    DEVICE(return __funnelshift_lc(a, b, n);)
    HOST(return n >= 32 ? a : ((u64)b << 32 | a) << n >> 32;)
}
FN(u32) funnel_rc(u32 a, u32 b, u32 n)
{
    DEVICE(return __funnelshift_rc(a, b, n);) HOST(return n >= 32 ? b : ((u64)b << 32 | a) >> n;)
}
FN(u32) apart(u32 a, u32 b, u32 c)
{
    DEVICE(return __usad(a, b, c);) HOST(return (a > b ? a - b : b - a) + c;)
}
FN(u32) apart_s(i32 a, i32 b, u32 c)
{
    DEVICE(return __sad(a, b, c);) HOST(return (a > b ? (u32)a - (u32)b : (u32)b - (u32)a) + c;)
}
FN(u32) mean(u32 a, u32 b)
{
    DEVICE(return __uhadd(a, b);) HOST(return ((u64)a + b) >> 1;)
}
FN(i32) mean_up(i32 a, i32 b)
{
    DEVICE(return __rhadd(a, b);) HOST(return ((i64)a + b + 1) >> 1;)
}
#ifndef __CUDACC__
template <int SIZE, bool SIGNED, class F> u32 by_parts(u32 a, u32 b, F f)
{
    u32 r = 0;
    for (int i = 0; i < 32; i += SIZE) {
        const i32 x = SIGNED ? (i32)(a << (32 - SIZE - i)) >> (32 - SIZE)
                             : (i32)(a >> i & ((1u << SIZE) - 1));
        const i32 y = SIGNED ? (i32)(b << (32 - SIZE - i)) >> (32 - SIZE)
                             : (i32)(b >> i & ((1u << SIZE) - 1));
        r |= ((u32)f(x, y) & ((1u << SIZE) - 1)) << i;
    }
    return r;
}
static i32 within(i32 x, i32 low, i32 high)
{
    return x < low ? low : x > high ? high : x;
}
#endif
#define PARTS(name, intrinsic, size, is_signed, value)                                    \
    FN(u32) name(u32 a, u32 b)                                                            \
    {                                                                                     \
        DEVICE(return intrinsic(a, b);)                                                   \
        HOST(return by_parts<size, is_signed>(a, b, [](i32 x, i32 y) { return value; });) \
    }
PARTS(v_add4, __vadd4, 8, false, x + y)
PARTS(v_sub2, __vsub2, 16, false, x - y)
PARTS(v_addss4, __vaddss4, 8, true, within(x + y, -128, 127))
PARTS(v_addus2, __vaddus2, 16, false, within(x + y, 0, 65535))
PARTS(v_subss2, __vsubss2, 16, true, within(x - y, -32768, 32767))
PARTS(v_subus4, __vsubus4, 8, false, within(x - y, 0, 255))
PARTS(v_maxs2, __vmaxs2, 16, true, x > y ? x : y)
PARTS(v_minu4, __vminu4, 8, false, x < y ? x : y)
PARTS(v_maxu2, __vmaxu2, 16, false, x > y ? x : y)
PARTS(v_mins4, __vmins4, 8, true, x < y ? x : y)
PARTS(v_apart4, __vabsdiffu4, 8, false, x > y ? x - y : y - x)
PARTS(v_aparts2, __vabsdiffs2, 16, true, x > y ? x - y : y - x)
PARTS(v_mean4, __vavgu4, 8, false, (x + y + 1) >> 1)
PARTS(v_means2, __vavgs2, 16, true, (x + y + (x + y >= 0)) / 2)
PARTS(v_less4, __vcmpltu4, 8, false, x < y ? -1 : 0)
PARTS(v_above2, __vcmpgts2, 16, true, x > y ? -1 : 0)
PARTS(v_same4, __vseteq4, 8, false, x == y)
PARTS(v_half4, __vhaddu4, 8, false, (x + y) >> 1)
FN(u32) dot4(u32 a, u32 b, u32 c)
{
    DEVICE(return __dp4a(a, b, c);)
    HOST(for (int i = 0; i < 32; i += 8) c += (u32)(u8)(a >> i) * (u8)(b >> i); return c;)
}
FN(i32) dot4s(i32 a, i32 b, i32 c)
{
    DEVICE(return __dp4a(a, b, c);)
    HOST(u32 s = c; for (int i = 0; i < 32; i += 8) s += (u32)((i8)(a >> i) * (i8)(b >> i));
         return s;)
}
FN(u32) dot2(u32 a, u32 b, u32 c)
{
    DEVICE(return __dp2a_lo(a, b, c);)
    HOST(return c + (a & 65535) * (b & 255) + (a >> 16) * (b >> 8 & 255);)
}
FN(i32) dot2s(i32 a, i32 b, i32 c)
{
    DEVICE(return __dp2a_hi(a, b, c);)
    HOST(return (u32)c + (u32)((i16)a * (i8)(b >> 16)) + (u32)((i16)(a >> 16) * (i8)(b >> 24));)
}
FN(u32) nth(u32 m, u32 base, i32 n)
{
    DEVICE(return __fns(m, base & 31, n);)
    HOST(base &= 31; if (n == 0) return m >> base & 1 ? base : ~0u;
         for (i32 at = (i32)base;
              at >= 0 && at<32; at += n> 0
                  ? 1
                  : -1) if ((m >> at & 1) && (n > 0 ? --n == 0 : ++n == 0)) return (u32)at;
         return ~0u;)
}

// --- by PTX ---

FN(u32) field(u32 a, u32 at, u32 len)
{
    DEVICE(u32 r; asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(at), "r"(len)); return r;)
    HOST(at &= 255; len &= 255;
         return at > 31 || len == 0 ? 0 : a >> at & (len > 31 ? ~0u : (1u << len) - 1);)
}
FN(i64) field_s(i64 a, u32 at, u32 len)
{
    at &= 63;
    len = 1 + (len & 31);
    DEVICE(i64 r; asm("bfe.s64 %0, %1, %2, %3;" : "=l"(r) : "l"(a), "r"(at), "r"(len)); return r;)
    HOST(u64 r = 0; for (u32 i = 0; i < 64; i++) {
        const u32 from = at + (i < len ? i : len - 1);
        r |= (u64)(a >> (from > 63 ? 63 : from) & 1) << i;
    } return (i64)r;)
}
FN(u32) inserted(u32 a, u32 b, u32 at, u32 len)
{
    DEVICE(u32 r; asm("bfi.b32 %0, %1, %2, %3, %4;"
                      : "=r"(r)
                      : "r"(a), "r"(b), "r"(at), "r"(len));
           return r;)
    HOST(at &= 255; len &= 255; for (u32 i = 0; i < len && at + i < 32; i++) b =
                                    (b & ~(1u << (at + i))) | (a >> i & 1) << (at + i);
         return b;)
}
template <int LUT> BOTH inline u32 logic(u32 a, u32 b, u32 c)
{
    DEVICE(u32 r; asm("lop3.b32 %0, %1, %2, %3, %4;"
                      : "=r"(r)
                      : "r"(a), "r"(b), "r"(c), "n"(LUT));
           return r;)
    HOST(u32 r = 0; for (int i = 0; i < 32; i++) r |=
                    (u32)(LUT >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
         return r;)
    return 0;
}
FN(u64) wide_sum(u64 a, u64 b, u64 c) // (a b + c) >> 32 of 128 bits, through carries
{
    DEVICE(
        u64 r;
        asm("{.reg .u32 a0, a1, b0, b1, c0, c1, r0, r1, r2, r3; mov.b64 {a0, a1}, %1; mov.b64 {b0, b1}, %2; mov.b64 {c0, c1}, %3;"
            " mad.lo.cc.u32 r0, a0, b0, c0; madc.hi.cc.u32 r1, a0, b0, c1; addc.u32 r2, 0, 0; mad.lo.cc.u32 r1, a0, b1, r1; madc.hi.cc.u32 r2, a0, b1, r2; addc.u32 r3, 0, 0;"
            " mad.lo.cc.u32 r1, a1, b0, r1; madc.hi.cc.u32 r2, a1, b0, r2; addc.u32 r3, r3, 0; mad.lo.cc.u32 r2, a1, b1, r2; madc.hi.u32 r3, a1, b1, r3; mov.b64 %0, {r1, r2};}"
            : "=l"(r)
            : "l"(a), "l"(b), "l"(c));
        return r;)
    HOST(return (u64)(((u128)a * b + c) >> 32);)
}
FN(u64) borrowed(u64 a, u64 b)
{
    DEVICE(
        u64 r;
        asm("{.reg .u32 a0, a1, b0, b1; mov.b64 {a0, a1}, %1; mov.b64 {b0, b1}, %2; sub.cc.u32 a0, a0, b0; subc.u32 a1, a1, b1; mov.b64 %0, {a0, a1};}"
            : "=l"(r)
            : "l"(a), "l"(b));
        return r;)
    HOST(return a - b;)
}
FN(u32) spread(u32 a, u32 n)
{
    DEVICE(u32 r; asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(n)); return r;)
    HOST(if (n > 31) return a; if (n == 0) return 0;
         return (u32)((i32)(a << (32 - n)) >> (32 - n));)
}
FN(u32) masked(u32 at, u32 n)
{
    DEVICE(u32 r; asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(at), "r"(n)); return r;)
    HOST(u32 r = 0; for (u64 i = at; i < 32 && i < (u64)at + n; i++) r |= 1u << i; return r;)
}
FN(u32) sum16(u32 a, u32 b)
{
    DEVICE(
        u32 r;
        asm("{.reg .u16 x, y, u, v; mov.b32 {x, y}, %1; mov.b32 {u, v}, %2; add.u16 x, x, u; mul.lo.u16 y, y, v; mov.b32 %0, {x, y};}"
            : "=r"(r)
            : "r"(a), "r"(b));
        return r;)
    HOST(return (u16)(a + b) | (u32)(u16)((a >> 16) * (b >> 16)) << 16;)
}
FN(i32) sum_sat(i32 a, i32 b)
{
    DEVICE(i32 r; asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r;)
    HOST(const i64 s = (i64)a + b; return s > INT32_MAX   ? INT32_MAX
                                          : s < INT32_MIN ? INT32_MIN
                                                          : (i32)s;)
}
FN(u32) chosen(u32 a, u32 b, i32 c)
{
    DEVICE(u32 r; asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r;)
    HOST(return c >= 0 ? a : b;)
}
FN(u32) compared(u32 a, i32 b)
{
    DEVICE(
        u32 r;
        asm("{.reg .pred p, q; setp.lt.u32 p|q, %1, 77; setp.gt.and.s32 p, %2, 5, p; @p bra L%=; xor.b32 %0, %1, 1; bra.uni M%=; L%=: set.eq.u32.s32 %0, %2, 9; M%=: @q add.u32 %0, %0, 3;}"
            : "=r"(r)
            : "r"(a), "r"(b));
        return r;)
    HOST(const bool p = b > 5 && a < 77; u32 r = p ? (b == 9 ? ~0u : 0) : a ^ 1;
         return a < 77 ? r : r + 3;)
}
FN(u32) multi(u32 a, u32 b)
{
    DEVICE(
        u32 r;
        asm("{.reg .b8 x; .reg .v2 .u32 pair; cvt.u8.u32 x, %1; cvt.s32.s8 %0, x; mov.u32 pair.x, %2; add.u32 %0, %0, pair.x;}"
            : "=r"(r)
            : "r"(a), "r"(b));
        return r;)
    HOST(return (u32)(i32)(i8)a + b;)
}

#endif
