// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of matrices as numbers, and their products.

#include "emu/tensor/matrix.h"

#include <math.h>
#include <string.h>

#include "emu/lane/fp.h"

// Where the fields of a format of at most 8 bits go to make a float, and what to multiply it with.
struct small_float {
    uint8_t shift;     // of an element in its byte
    uint8_t magnitude; // bits without the sign
    uint8_t up;        // to a float's fields
    uint8_t nan;       // the magnitude that is no number; 0: there is none
    float scale;       // 2^(127 - bias)
};

static struct small_float small_float_of(struct emu_element e)
{
    switch (e.type) {
    case EMU_e4m3:
    case EMU_ue4m3:
        return (struct small_float){0, 7, 20, 0x7f, 0x1p120f};
    case EMU_e3m2:
        return (struct small_float){0, 5, 21, 0, 0x1p124f};
    case EMU_e2m3:
        return (struct small_float){0, 5, 20, 0, 0x1p126f};
    default: // e2m1
        return (struct small_float){e.bits == 8 ? 2 : 0, 3, 22, 0, 0x1p126f};
    }
}

static double small_value(struct small_float f, uint32_t byte)
{
    const uint32_t bits = byte >> f.shift, magnitude = bits & ((1u << f.magnitude) - 1);
    const float value = f.nan && magnitude == f.nan ? emu_f32_of(EMU_NAN_F32)
                                                    : emu_f32_of(magnitude << f.up) * f.scale;
    return bits >> f.magnitude & 1 ? -value : value;
}

static void decode_bytes(struct emu_element e, const uint8_t *from, uint32_t count, double *out)
{
    switch (e.type) {
    case EMU_s8:
        for (uint32_t i = 0; i < count; i++)
            out[i] = (int8_t)from[i];
        return;
    case EMU_u8:
        for (uint32_t i = 0; i < count; i++)
            out[i] = from[i];
        return;
    case EMU_e5m2:
        for (uint32_t i = 0; i < count; i++)
            out[i] = emu_f16_to_f32((uint16_t)(from[i] << 8));
        return;
    case EMU_ue8m0:
        for (uint32_t i = 0; i < count; i++)
            out[i] = from[i] == 0xff ? (double)NAN : emu_f64_of((uint64_t)(from[i] + 896) << 52);
        return;
    default:
        break;
    }
    const struct small_float f = small_float_of(e);
    const uint32_t keep = e.type == EMU_ue4m3 ? 0x7f : 0xff; // no sign
    for (uint32_t i = 0; i < count; i++)
        out[i] = small_value(f, from[i] & keep);
}

// Sixteen elements of less than 8 bits, then bytes that are not used.
static void decode_front(enum emu_type type, const uint8_t *from, uint32_t count, double *out)
{
    const struct small_float f = small_float_of(emu_element_packed(type));
    const uint32_t bits = emu_types[type].bits;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = from + i / 16 * 16 + i % 16 * bits / 8;
        const uint32_t two = (uint32_t)at[0] | (uint32_t)at[1] << 8;
        out[i] = small_value(f, two >> i % 16 * bits % 8 & ((1u << bits) - 1));
    }
}

static void decode_nibbles(struct emu_element e, const uint8_t *from, uint32_t count, double *out)
{
    const struct small_float f = small_float_of(e);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bits = from[i / 2] >> 4 * (i % 2) & 15;
        if (e.type == EMU_u4)
            out[i] = bits;
        else if (e.type == EMU_s4)
            out[i] = (int)(bits ^ 8) - 8;
        else
            out[i] = small_value(f, bits);
    }
}

static uint16_t half_at(const uint8_t *from, uint32_t i)
{
    uint16_t h;
    memcpy(&h, from + 2 * i, sizeof h);
    return h;
}

// Infinities and NaNs are rare: without them a half is a shift and a product.
static void decode_f16(const uint8_t *from, uint32_t count, double *out)
{
    uint32_t special = 0;
    for (uint32_t i = 0; i < count; i++)
        special |= (half_at(from, i) & 0x7c00u) + 0x400;
    for (uint32_t i = 0; i < count; i++) {
        const int32_t h = (int16_t)half_at(from, i);
        const uint32_t fields = (uint32_t)h << 13 & 0x8fffe000;
        out[i] = emu_f32_of(fields) * 0x1p112f;
    }
    for (uint32_t i = 0; i < count && special & 0x8000; i++)
        out[i] = emu_f16_to_f32(half_at(from, i));
}

static void decode_bf16(const uint8_t *from, uint32_t count, double *out)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = emu_bf16_to_f32(half_at(from, i));
}

void emu_elements_decode(struct emu_element e, const void *from, uint32_t count, double *out)
{
    uint32_t word;
    const uint8_t *bytes = from;
    switch (e.bits) {
    case 1:
        for (uint32_t i = 0; i < count; i++)
            out[i] = bytes[i / 8] >> i % 8 & 1;
        return;
    case 4:
        decode_nibbles(e, bytes, count, out);
        return;
    case 8:
        if (e.front && emu_types[e.type].bits < 8)
            decode_front((enum emu_type)e.type, bytes, count, out);
        else
            decode_bytes(e, bytes, count, out);
        return;
    case 16:
        (e.type == EMU_f16 ? decode_f16 : decode_bf16)(bytes, count, out);
        return;
    case 32: // tf32
        for (uint32_t i = 0; i < count; i++) {
            memcpy(&word, bytes + 4 * i, sizeof word);
            out[i] = emu_f32_of(word & 0xffffe000);
        }
        return;
    default:
        memcpy(out, from, count * sizeof *out);
    }
}

// Eight columns at a time: their sums stay in registers.
void emu_matrix_multiply(uint32_t m, uint32_t n, uint32_t k, const double *a, const uint16_t *at,
                         const double *b, double *d)
{
    for (uint32_t i = 0; i < m; i++, a += k, at = at ? at + k : NULL)
        for (uint32_t column = 0; column < n; column += 8, d += 8) {
            double sum[8] = {0};
            for (uint32_t j = 0; j < k; j++) {
                const double x = a[j], *row = b + (size_t)(at ? at[j] : j) * n + column;
                for (uint32_t c = 0; c < 8; c++)
                    sum[c] += x * row[c];
            }
            memcpy(d, sum, sizeof sum);
        }
}

double emu_matrix_c(uint32_t bits, enum emu_type type)
{
    if (type == EMU_s32)
        return (int32_t)bits;
    return type == EMU_f16 ? emu_f16_to_f32((uint16_t)bits) : emu_f32_of(bits);
}

uint64_t emu_matrix_finish(double sum, double c, enum emu_type type, bool saturate)
{
    sum += c;
    if (type == EMU_s32) {
        if (saturate)
            sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        return (uint32_t)(int64_t)sum;
    }
    if (type == EMU_f16)
        return emu_fp_from_f64(sum, EMU_f16, EMU_RN, false);
    return sum != sum ? EMU_NAN_F32 : emu_f32_bits((float)sum);
}

bool emu_sparse_positions(struct emu_element e, uint64_t bits, uint32_t stored, bool ordered,
                          uint16_t *out)
{
    for (uint32_t i = 0; i < stored; i++) {
        const uint32_t unit = e.bits == 4 ? i / 2 : e.bits == 32 ? 2 * i : i;
        const uint32_t pair = (uint32_t)(bits >> unit / 2 * 4) & 15;
        const uint32_t first = pair & 3, second = pair >> 2;
        if (first == second || (ordered && first > second) ||
            (e.bits == 32 && (first % 2 || second != first + 1)))
            return false;
        const uint32_t at = unit / 2 * 4 + (unit % 2 ? second : first);
        out[i] = (uint16_t)(e.bits == 4 ? 2 * at + i % 2 : e.bits == 32 ? at / 2 : at);
    }
    return true;
}

uint64_t emu_sparse_metadata(struct emu_element e, const uint32_t *lanes, uint32_t k,
                             uint32_t selector, uint32_t row)
{
    const uint32_t high = row / 8, bits = emu_sparse_bits(e, k);
    const uint32_t *quad = lanes + row % 8 * 4;
    if (e.bits >= 16) { // 16 or 32 bits a row
        const uint32_t *first = quad + selector * (bits / 16);
        const uint64_t low = first[0] >> 16 * high & 0xffff;
        return bits == 16 ? low : low | (uint64_t)(first[1] >> 16 * high & 0xffff) << 16;
    }
    const uint32_t *first = quad + high + 2 * selector; // 32 or 64
    return bits == 32 ? first[0] : first[0] | (uint64_t)first[2] << 32;
}

void emu_register_decode(struct emu_element e, const void *lanes, double *out, uint32_t row_step)
{
    double values[8 * 128];
    const uint32_t count = emu_element_count(e);
    emu_elements_decode(e, lanes, 8 * count, values);
    for (uint32_t g = 0; g < 8; g++)
        memcpy(out + (size_t)g * row_step, values + g * count, count * sizeof *out);
}
