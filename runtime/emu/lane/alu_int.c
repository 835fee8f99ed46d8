// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integer and bit instructions over 32 lanes: the functions for alu_int.def.

#include "emu/lane/alu.h"

static inline uint32_t pair(uint32_t low, uint32_t high)
{
    return (low & 0xffff) | high << 16;
}

static inline int32_t clamp32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline int32_t relu(int32_t x)
{
    return x < 0 ? 0 : x;
}

static inline uint64_t both(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static inline uint64_t high64(uint64_t a, uint64_t b)
{
    const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    const uint64_t mid = ah * bl + (al * bl >> 32);
    const uint64_t low = al * bh + (uint32_t)mid;
    return ah * bh + (mid >> 32) + (low >> 32);
}

static inline uint64_t high64s(uint64_t a, uint64_t b)
{
    return high64(a, b) - (a >> 63 ? b : 0) - (b >> 63 ? a : 0);
}

static inline uint64_t low24(uint32_t a)
{
    return a & 0xffffff;
}

static inline int64_t low24s(uint32_t a)
{
    return (int64_t)((a & 0xffffff) ^ 0x800000) - 0x800000;
}

static inline uint32_t umin16(uint32_t a, uint32_t b)
{
    return (uint16_t)a < (uint16_t)b ? a : b;
}

static inline uint32_t umax16(uint32_t a, uint32_t b)
{
    return (uint16_t)a > (uint16_t)b ? a : b;
}

static inline uint32_t smin16(uint32_t a, uint32_t b)
{
    return (int16_t)a < (int16_t)b ? a : b;
}

static inline uint32_t smax16(uint32_t a, uint32_t b)
{
    return (int16_t)a > (int16_t)b ? a : b;
}

static inline uint32_t popc(uint32_t a)
{
    a -= a >> 1 & 0x55555555;
    a = (a & 0x33333333) + (a >> 2 & 0x33333333);
    a = (a + (a >> 4)) & 0x0f0f0f0f;
    return a * 0x01010101 >> 24;
}

// The position of the highest one, or all ones when there is none.
static inline uint32_t top(uint64_t a)
{
    uint32_t at = 0;
    if (a == 0)
        return UINT32_MAX;
    for (uint32_t step = 32; step; step /= 2)
        if (a >> step) {
            a >>= step;
            at += step;
        }
    return at;
}

static inline uint32_t shift_amount(uint32_t at, uint32_t highest)
{
    return at == UINT32_MAX ? at : highest - at;
}

static inline uint32_t reverse(uint32_t a)
{
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    a = (a >> 8 & 0x00ff00ff) | (a & 0x00ff00ff) << 8;
    return a >> 16 | a << 16;
}

// The nth one from `base` upwards (n > 0) or downwards (n < 0); n = 0 asks for bit `base` itself.
static uint32_t find_nth(uint32_t a, uint32_t base, int32_t n)
{
    if (base > 31)
        return UINT32_MAX;
    if (n == 0)
        return a >> base & 1 ? base : UINT32_MAX;
    int64_t left = n < 0 ? -(int64_t)n : n;
    for (int32_t at = (int32_t)base; at >= 0 && at < 32; at += n < 0 ? -1 : 1)
        if (a >> at & 1 && --left == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

// bfe: what lies past the top reads as zero, or as the sign.
static inline uint64_t field(uint64_t a, uint32_t pos, uint32_t len, uint32_t bits)
{
    const uint64_t x = pos >= bits ? 0 : a >> pos;
    return len >= 64 ? x : x & (((uint64_t)1 << len) - 1);
}

static inline uint64_t field_signed(int64_t a, uint32_t pos, uint32_t len, uint32_t bits)
{
    if (len == 0)
        return 0;
    const int64_t x = a >> (pos >= bits ? 63 : pos); // the sign fills what lies past the top
    if (len >= 64)
        return (uint64_t)x;
    const uint64_t sign = (uint64_t)1 << (len - 1);
    return (((uint64_t)x & ((sign << 1) - 1)) ^ sign) - sign;
}

static inline uint64_t insert(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, uint32_t bits)
{
    if (pos >= bits || len == 0)
        return b;
    const uint64_t mask = (len >= 64 ? UINT64_MAX : ((uint64_t)1 << len) - 1) << pos;
    return (b & ~mask) | (a << pos & mask);
}

// n ones at the bottom.
static inline uint32_t ones(uint32_t n)
{
    return n > 31 ? UINT32_MAX : (1u << n) - 1;
}

static inline uint32_t sign_from(uint32_t a, uint32_t n)
{
    if (n == 0)
        return 0;
    if (n > 31)
        return a;
    const uint32_t sign = 1u << (n - 1);
    return ((a & ones(n)) ^ sign) - sign;
}

// prmt: each selector nibble picks a byte of the eight; its top bit spreads that byte's sign.
static inline uint32_t permute(uint64_t bytes, uint32_t selector)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t nibble = selector >> 4 * i;
        uint32_t byte = (uint32_t)(bytes >> 8 * (nibble & 7)) & 0xff;
        if (nibble & 8)
            byte = byte & 0x80 ? 0xff : 0;
        out |= byte << 8 * i;
    }
    return out;
}

// f4e takes four bytes from position c upwards, b4e downwards, both around the eight.
static inline uint32_t permute_mode(uint64_t bytes, uint32_t c, int32_t step)
{
    uint32_t selector = 0;
    for (int32_t i = 0; i < 4; i++)
        selector |= (((c & 3) + (uint32_t)(step * i)) & 7) << 4 * i;
    return permute(bytes, selector);
}

// ecl: bytes below position c repeat byte c; ecr: bytes above it do.
static inline uint32_t permute_edge(uint64_t bytes, uint32_t c, bool left)
{
    uint32_t selector = 0;
    c &= 3;
    for (uint32_t i = 0; i < 4; i++)
        selector |= ((left ? i < c : i > c) ? c : i) << 4 * i;
    return permute(bytes, selector);
}

static inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < 8; i++)
        if (table >> i & 1)
            out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}

static inline uint32_t extend(uint32_t a, uint32_t bits, bool is_signed)
{
    const uint32_t sign = 1u << (bits - 1), low = a & ((sign << 1) - 1);
    return is_signed ? (low ^ sign) - sign : low;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, bool sa, bool sb)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 32; i += 8)
        sum += extend(a >> i, 8, sa) * extend(b >> i, 8, sb);
    return sum;
}

static inline uint32_t dot2(uint32_t a, uint32_t b, bool sa, bool sb)
{
    return extend(a, 16, sa) * extend(b, 8, sb) + extend(a >> 16, 16, sa) * extend(b >> 8, 8, sb);
}

// clang-format off
#define ALU1 EMU_ALU_FN1
#define ALU2 EMU_ALU_FN2
#define ALU3 EMU_ALU_FN3
#define ALU4 EMU_ALU_FN4
#include "emu/lane/alu_int.def"

#define ALU1 EMU_ALU_ROW1
#define ALU2 EMU_ALU_ROW2
#define ALU3 EMU_ALU_ROW3
#define ALU4 EMU_ALU_ROW4
const struct emu_alu_row emu_alu_int_rows[] = {
#include "emu/lane/alu_int.def"
    {0}
};
// clang-format on
