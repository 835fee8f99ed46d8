// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes of tensor maps.
//
// Which bits hold what, and what is refused, was read off the bytes that the driver (13.0) wrote
// for some 27000 sets of parameters on an H200; tools/bench/tensor_map_dump.c prints them, and
// tests/runtime/tensor_map.golden keeps those that show every field and every bound. Elements of 4
// and 6 bits need a Blackwell GPU: their codes are those that ptxas has tensormap.replace write,
// their rules those of cuda.h, and what BYTES and PATTERN hold, which that instruction never
// writes, has not been seen.

#include "tensor_bits.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "error.h"

enum {
    MAX_BYTES = 233472, // shared memory of a multiprocessor
    PACKED_BOX = 128    // elements of 4 or 6 bits in a row of a box
};

// Where a field lies: first bit, bits. Members of an array follow each other.
struct field {
    uint16_t at, bits;
};
static const struct field ADDRESS = {0, 57}, IM2COL = {64, 1}, RANK = {68, 3}, TYPE = {71, 4},
                          INTERLEAVE = {75, 2}, SWIZZLE = {77, 2}, FILL = {79, 1},
                          TYPE_HIGH = {80, 1}, L2 = {81, 2}, STRIDE_LOW = {96, 32},
                          STRIDE_HIGH = {224, 4}, DIM = {256, 32}, STEP = {416, 3}, BOX = {440, 8},
                          PIXELS = {480, 10}, BYTES = {512, 18}, PATTERN = {576, 11};
enum { LOWER = 448, UPPER = 464 };
static const uint8_t corner_bits[] = {[3] = 16, [4] = 8, [5] = 5};

// `code` is what TYPE and, above it, TYPE_HIGH hold. `bits`: in global memory, of packed types.
static const struct {
    uint8_t bytes, code;
    bool is_float;
    uint8_t bits;
} types[TIR_TENSOR_MAP_TYPE_COUNT] = {
    [TIR_TENSOR_MAP_U8] = {1, 0, false},
    [TIR_TENSOR_MAP_U16] = {2, 1, false},
    [TIR_TENSOR_MAP_U32] = {4, 2, false},
    [TIR_TENSOR_MAP_S32] = {4, 3, false},
    [TIR_TENSOR_MAP_U64] = {8, 4, false},
    [TIR_TENSOR_MAP_S64] = {8, 5, false},
    [TIR_TENSOR_MAP_F16] = {2, 6, true},
    [TIR_TENSOR_MAP_F32] = {4, 7, true},
    [TIR_TENSOR_MAP_F64] = {8, 9, true},
    [TIR_TENSOR_MAP_BF16] = {2, 10, true},
    [TIR_TENSOR_MAP_F32_FTZ] = {4, 8, true},
    [TIR_TENSOR_MAP_TF32] = {4, 16 + 7, true},
    [TIR_TENSOR_MAP_TF32_FTZ] = {4, 16 + 8, true},
    [TIR_TENSOR_MAP_U4_ALIGN16] = {1, 12, false, 4},
    [TIR_TENSOR_MAP_U6_ALIGN16] = {1, 13, false, 6},
};

TIR_API uint32_t tir_tensor_map_type_bytes(tir_tensor_map_type type)
{
    return (uint32_t)type < TIR_TENSOR_MAP_TYPE_COUNT ? types[type].bytes : 0;
}

TIR_API uint32_t tir_tensor_map_type_bits(tir_tensor_map_type type)
{
    const uint32_t bytes = tir_tensor_map_type_bytes(type);
    return bytes && types[type].bits ? types[type].bits : 8 * bytes;
}

static bool is_packed(const tir_tensor_map *m)
{
    return types[m->type].bits;
}

// --- the rules ---

#define REFUSE(...)                                                \
    do {                                                           \
        return tir_error_set(error, TIR_ERR_INVALID, __VA_ARGS__); \
    } while (0)

static tir_status check_modes(const tir_tensor_map *m, tir_error *error)
{
    if ((uint32_t)m->kind > TIR_TENSOR_MAP_IM2COL_WIDE)
        REFUSE("kind %d does not exist", (int)m->kind);
    if (!tir_tensor_map_type_bytes(m->type))
        REFUSE("type %d does not exist", (int)m->type);
    if ((uint32_t)m->interleave > TIR_TENSOR_MAP_INTERLEAVE_32)
        REFUSE("interleave %d does not exist", (int)m->interleave);
    if ((uint32_t)m->swizzle > TIR_TENSOR_MAP_SWIZZLE_128)
        REFUSE("swizzle %d does not exist", (int)m->swizzle);
    if ((uint32_t)m->l2 > TIR_TENSOR_MAP_L2_256)
        REFUSE("l2 %d does not exist", (int)m->l2);
    if ((uint32_t)m->fill > TIR_TENSOR_MAP_FILL_NAN)
        REFUSE("fill %d does not exist", (int)m->fill);
    if (m->fill == TIR_TENSOR_MAP_FILL_NAN && !types[m->type].is_float)
        REFUSE("fill is NaN, and type is not a floating-point type");
    if (is_packed(m) && m->interleave)
        REFUSE("interleave %d, and elements have less than 8 bits", (int)m->interleave);
    if (is_packed(m) && m->swizzle && m->swizzle != TIR_TENSOR_MAP_SWIZZLE_128)
        REFUSE("swizzle %d, and elements have less than 8 bits", (int)m->swizzle);
    const uint32_t least = m->kind == TIR_TENSOR_MAP_TILED && !m->interleave ? 1 : 3;
    if (m->rank < least || m->rank > TIR_TENSOR_MAP_RANK)
        REFUSE("rank is %" PRIu32 "; %" PRIu32 " to 5 are allowed here", m->rank, least);
    return TIR_OK;
}

static tir_status check_tensor(const tir_tensor_map *m, tir_error *error)
{
    const uint32_t align = is_packed(m) || m->interleave == TIR_TENSOR_MAP_INTERLEAVE_32 ? 32 : 16;
    if (m->address % align)
        REFUSE("address 0x%" PRIx64 " is not a multiple of %" PRIu32, m->address, align);
    if (m->address >> ADDRESS.bits)
        REFUSE("address 0x%" PRIx64 " is not below 2^57", m->address);
    for (uint32_t i = 0; i < m->rank; i++)
        if (m->dims[i] == 0 || m->dims[i] > UINT64_C(1) << 32)
            REFUSE("dims[%" PRIu32 "] is %" PRIu64 "; 1 to 2^32 are allowed", i, m->dims[i]);
    if (is_packed(m) && m->dims[0] % PACKED_BOX)
        REFUSE("dims[0] is %" PRIu64 ", not a multiple of %d", m->dims[0], PACKED_BOX);
    for (uint32_t i = 0; i + 1 < m->rank; i++) {
        if (m->strides[i] % align)
            REFUSE("strides[%" PRIu32 "] is %" PRIu64 ", not a multiple of %" PRIu32, i,
                   m->strides[i], align);
        if (m->strides[i] >> 40)
            REFUSE("strides[%" PRIu32 "] is %" PRIu64 ", not below 2^40", i, m->strides[i]);
    }
    for (uint32_t i = 0; i < m->rank; i++)
        if (m->steps[i] < 1 || m->steps[i] > 8)
            REFUSE("steps[%" PRIu32 "] is %" PRIu32 "; 1 to 8 are allowed", i, m->steps[i]);
    return TIR_OK;
}

// The dims of pixels begin after the channels; with interleave those come last but one.
static tir_status check_corners(const tir_tensor_map *m, tir_error *error)
{
    const int32_t limit = 1 << (corner_bits[m->rank] - 1);
    const uint32_t first = m->interleave ? 0 : 1, count = m->rank - 2;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t dim = m->dims[first + i];
        if (dim >> 31)
            REFUSE("dims[%" PRIu32 "] is %" PRIu64 "; pixels have dims below 2^31", first + i, dim);
        if (i > 0 && m->kind == TIR_TENSOR_MAP_IM2COL_WIDE)
            continue;
        const int32_t lower = m->lower[i], upper = m->upper[i];
        if (lower < -limit || lower >= limit)
            REFUSE("lower[%" PRIu32 "] is %" PRId32 "; %" PRId32 " to %" PRId32 " are allowed", i,
                   lower, -limit, limit - 1);
        if (upper < -limit || upper >= limit)
            REFUSE("upper[%" PRIu32 "] is %" PRId32 "; %" PRId32 " to %" PRId32 " are allowed", i,
                   upper, -limit, limit - 1);
        if ((int64_t)dim + upper - lower <= 0)
            REFUSE("lower[%" PRIu32 "] %" PRId32 " and upper[%" PRIu32 "] %" PRId32
                   " leave nothing of dims[%" PRIu32 "] %" PRIu64,
                   i, lower, i, upper, first + i, dim);
    }
    return TIR_OK;
}

static uint64_t box_bytes(const tir_tensor_map *m)
{
    uint64_t bytes = types[m->type].bytes;
    if (m->kind != TIR_TENSOR_MAP_TILED)
        return bytes * m->channels * m->pixels;
    for (uint32_t i = 0; i < m->rank; i++)
        bytes *= m->box[i] / m->steps[i];
    return bytes;
}

static tir_status check_box(const tir_tensor_map *m, tir_error *error)
{
    const bool is_tiled = m->kind == TIR_TENSOR_MAP_TILED;
    const char *inner_name = is_tiled ? "box[0]" : "channels";
    const uint32_t inner = is_tiled ? m->box[0] : m->channels;
    if (inner < 1 || inner > 256)
        REFUSE("%s is %" PRIu32 "; 1 to 256 are allowed", inner_name, inner);
    for (uint32_t i = 1; i < m->rank && is_tiled; i++)
        if (m->box[i] < 1 || m->box[i] > 256)
            REFUSE("box[%" PRIu32 "] is %" PRIu32 "; 1 to 256 are allowed", i, m->box[i]);
    if (!is_tiled && (m->pixels < 1 || m->pixels > 1024))
        REFUSE("pixels is %" PRIu32 "; 1 to 1024 are allowed", m->pixels);
    if (is_packed(m) && inner != PACKED_BOX)
        REFUSE("%s is %" PRIu32 "; elements of less than 8 bits have %d", inner_name, inner,
               PACKED_BOX);
    const uint32_t bytes = inner * types[m->type].bytes, span = 16u << m->swizzle;
    if (bytes % 16)
        REFUSE("%s of %" PRIu32 " has %" PRIu32 " bytes, not a multiple of 16", inner_name, inner,
               bytes);
    if (!m->interleave && m->swizzle && bytes > span)
        REFUSE("%s of %" PRIu32 " has %" PRIu32 " bytes, more than the %" PRIu32 " of its swizzle",
               inner_name, inner, bytes, span);
    if (box_bytes(m) > MAX_BYTES)
        REFUSE("the box has %" PRIu64 " bytes; at most %d fit in shared memory", box_bytes(m),
               MAX_BYTES);
    return TIR_OK;
}

static tir_status check_map(const tir_tensor_map *m, tir_error *error)
{
    tir_status status = check_modes(m, error);
    if (status == TIR_OK)
        status = check_tensor(m, error);
    if (status == TIR_OK && m->kind != TIR_TENSOR_MAP_TILED)
        status = check_corners(m, error);
    return status == TIR_OK ? check_box(m, error) : status;
}

// --- the bits ---

// No field reaches from one word of 64 bits into the next.
static void put(uint64_t *words, struct field f, uint32_t index, uint64_t value)
{
    const uint32_t bit = f.at + index * f.bits;
    words[bit / 64] |= (value & (UINT64_MAX >> (64 - f.bits))) << bit % 64;
}

static uint64_t get(const uint8_t *bytes, struct field f, uint32_t index)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < f.bits; i++) {
        const uint32_t bit = f.at + index * f.bits + i;
        value |= (uint64_t)(bytes[bit / 8] >> bit % 8 & 1) << i;
    }
    return value;
}

static int32_t get_signed(const uint8_t *bytes, struct field f, uint32_t index)
{
    const int64_t value = (int64_t)get(bytes, f, index), limit = INT64_C(1) << (f.bits - 1);
    return (int32_t)(value >= limit ? value - 2 * limit : value);
}

static void pack_box(const tir_tensor_map *m, uint64_t *words)
{
    if (m->kind == TIR_TENSOR_MAP_TILED) {
        for (uint32_t i = 0; i < m->rank; i++)
            put(words, BOX, i, m->box[i] - 1);
        return;
    }
    const uint8_t bits = corner_bits[m->rank];
    const uint32_t corners = m->kind == TIR_TENSOR_MAP_IM2COL ? m->rank - 2 : 1;
    put(words, BOX, 0, m->channels - 1);
    put(words, PIXELS, 0, m->pixels - 1);
    for (uint32_t i = 0; i < corners; i++) {
        put(words, (struct field){LOWER, bits}, i, (uint32_t)m->lower[i]);
        put(words, (struct field){UPPER, bits}, i, (uint32_t)m->upper[i]);
    }
}

static void pack(const tir_tensor_map *m, uint8_t bytes[TIR_TENSOR_MAP_BYTES])
{
    uint64_t words[TIR_TENSOR_MAP_BYTES / 8] = {0};
    put(words, ADDRESS, 0, m->address);
    put(words, IM2COL, 0, m->kind != TIR_TENSOR_MAP_TILED);
    put(words, RANK, 0, m->rank - 1);
    put(words, TYPE, 0, types[m->type].code);
    put(words, TYPE_HIGH, 0, types[m->type].code >> TYPE.bits);
    put(words, INTERLEAVE, 0, (uint64_t)m->interleave);
    put(words, SWIZZLE, 0, (uint64_t)m->swizzle);
    put(words, FILL, 0, (uint64_t)m->fill);
    put(words, L2, 0, (uint64_t)m->l2);
    for (uint32_t i = 0; i < m->rank; i++) {
        put(words, DIM, i, m->dims[i] - 1);
        put(words, STEP, i, m->steps[i] - 1);
    }
    for (uint32_t i = 0; i + 1 < m->rank; i++) {
        put(words, STRIDE_LOW, i, m->strides[i] >> 4);
        put(words, STRIDE_HIGH, i, m->strides[i] >> 36);
    }
    pack_box(m, words);
    put(words, BYTES, 0, box_bytes(m));
    // After how many bytes of shared memory the swizzle begins again.
    put(words, PATTERN, 0, m->swizzle ? 128u << m->swizzle : 16);
    memcpy(bytes, words, sizeof words); // little endian, as the device
}

static bool unpack_type(const uint8_t *bytes, tir_tensor_map_type *out)
{
    const uint64_t code = get(bytes, TYPE, 0) | get(bytes, TYPE_HIGH, 0) << TYPE.bits;
    for (uint32_t i = 0; i < TIR_TENSOR_MAP_TYPE_COUNT; i++)
        if (types[i].bytes && types[i].code == code) {
            *out = (tir_tensor_map_type)i;
            return true;
        }
    return false;
}

static void unpack_box(const uint8_t *bytes, tir_tensor_map *m)
{
    if (m->kind == TIR_TENSOR_MAP_TILED) {
        for (uint32_t i = 0; i < m->rank; i++)
            m->box[i] = (uint32_t)get(bytes, BOX, i) + 1;
        return;
    }
    m->channels = (uint32_t)get(bytes, BOX, 0) + 1;
    m->pixels = (uint32_t)get(bytes, PIXELS, 0) + 1;
    for (uint32_t i = 0; i + 2 < m->rank; i++) {
        m->lower[i] = get_signed(bytes, (struct field){LOWER, corner_bits[m->rank]}, i);
        m->upper[i] = get_signed(bytes, (struct field){UPPER, corner_bits[m->rank]}, i);
    }
}

// The fields, those of no meaning for the kind and the rank too. False when they name a type or an
// interleave that does not exist, or a rank above 5.
static bool unpack(const uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_tensor_map *out)
{
    tir_tensor_map m = {.kind =
                            get(bytes, IM2COL, 0) ? TIR_TENSOR_MAP_IM2COL : TIR_TENSOR_MAP_TILED,
                        .interleave = (tir_tensor_map_interleave)get(bytes, INTERLEAVE, 0),
                        .swizzle = (tir_tensor_map_swizzle)get(bytes, SWIZZLE, 0),
                        .l2 = (tir_tensor_map_l2)get(bytes, L2, 0),
                        .fill = (tir_tensor_map_fill)get(bytes, FILL, 0),
                        .rank = (uint32_t)get(bytes, RANK, 0) + 1,
                        .address = get(bytes, ADDRESS, 0)};
    if (m.rank > TIR_TENSOR_MAP_RANK || m.interleave > TIR_TENSOR_MAP_INTERLEAVE_32 ||
        !unpack_type(bytes, &m.type) || (m.kind != TIR_TENSOR_MAP_TILED && m.rank < 3))
        return false;
    for (uint32_t i = 0; i < m.rank; i++) {
        m.dims[i] = get(bytes, DIM, i) + 1;
        m.steps[i] = (uint32_t)get(bytes, STEP, i) + 1;
    }
    for (uint32_t i = 0; i + 1 < m.rank; i++)
        m.strides[i] = get(bytes, STRIDE_LOW, i) << 4 | get(bytes, STRIDE_HIGH, i) << 36;
    unpack_box(bytes, &m);
    *out = m;
    return true;
}

// --- maps that instructions make ---

static void set(uint8_t *bytes, struct field f, uint32_t index, uint64_t value)
{
    const uint32_t bit = f.at + index * f.bits;
    const uint64_t mask = UINT64_MAX >> (64 - f.bits) << bit % 64;
    uint64_t word;
    memcpy(&word, bytes + bit / 64 * 8, sizeof word);
    word = (word & ~mask) | (value << bit % 64 & mask);
    memcpy(bytes + bit / 64 * 8, &word, sizeof word);
}

void tir_tensor_map_set(uint8_t bytes[TIR_TENSOR_MAP_BYTES], enum tir_map_field field,
                        uint32_t index, uint64_t value)
{
    switch (field) {
    case TIR_MAP_ADDRESS:
        set(bytes, ADDRESS, 0, value);
        break;
    case TIR_MAP_RANK:
        set(bytes, RANK, 0, value - 1);
        break;
    case TIR_MAP_BOX:
        set(bytes, BOX, index, value - 1);
        break;
    case TIR_MAP_DIM:
        set(bytes, DIM, index, value - 1);
        break;
    case TIR_MAP_STRIDE:
        set(bytes, STRIDE_LOW, index, value >> 4);
        set(bytes, STRIDE_HIGH, index, value >> 36);
        break;
    case TIR_MAP_STEP:
        set(bytes, STEP, index, value - 1);
        break;
    case TIR_MAP_TYPE:
        set(bytes, TYPE, 0, types[value].code);
        set(bytes, TYPE_HIGH, 0, types[value].code >> TYPE.bits);
        break;
    case TIR_MAP_INTERLEAVE:
        set(bytes, INTERLEAVE, 0, value);
        break;
    case TIR_MAP_SWIZZLE:
        set(bytes, SWIZZLE, 0, value);
        break;
    case TIR_MAP_FILL:
        set(bytes, FILL, 0, value);
        break;
    case TIR_MAP_ATOMICITY:
        break;
    }
}

int tir_tensor_map_is_im2col(const uint8_t bytes[TIR_TENSOR_MAP_BYTES])
{
    return (int)get(bytes, IM2COL, 0);
}

// Makes what no instruction writes, or none clears, as the encoder leaves it in a map of this rank.
static void tidy(uint8_t *bytes, const uint8_t *encoded)
{
    const uint32_t rank = (uint32_t)get(encoded, RANK, 0) + 1;
    set(bytes, BYTES, 0, get(encoded, BYTES, 0));
    set(bytes, PATTERN, 0, get(encoded, PATTERN, 0));
    for (uint32_t i = rank; i < TIR_TENSOR_MAP_RANK; i++) {
        set(bytes, DIM, i, 0);
        set(bytes, STEP, i, 0);
        set(bytes, STRIDE_LOW, i - 1, 0);
        set(bytes, STRIDE_HIGH, i - 1, 0);
        if (!tir_tensor_map_is_im2col(encoded)) // its corners lie there
            set(bytes, BOX, i, 0);
    }
}

// --- the interface ---

TIR_API tir_status tir_tensor_map_encode(const tir_tensor_map *map,
                                         uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_error *error)
{
    const tir_status status = check_map(map, error);
    if (status == TIR_OK)
        pack(map, bytes);
    return status;
}

static tir_status decode(const uint8_t *bytes, bool is_made, tir_tensor_map *out, tir_error *error)
{
    tir_tensor_map m;
    uint8_t own[TIR_TENSOR_MAP_BYTES], again[TIR_TENSOR_MAP_BYTES];
    memset(out, 0, sizeof *out);
    if (!unpack(bytes, &m))
        return tir_error_set(error, TIR_ERR_INVALID, "these bytes are no tensor map");
    const tir_status status = tir_tensor_map_encode(&m, again, error);
    if (status != TIR_OK)
        return status;
    memcpy(own, bytes, sizeof own);
    if (is_made)
        tidy(own, again);
    if (memcmp(own, again, sizeof again) != 0)
        return tir_error_set(error, TIR_ERR_INVALID,
                             "these bytes are no tensor map: bits are set that none has");
    *out = m;
    return TIR_OK;
}

TIR_API tir_status tir_tensor_map_decode(const uint8_t bytes[TIR_TENSOR_MAP_BYTES],
                                         tir_tensor_map *out, tir_error *error)
{
    return decode(bytes, false, out, error);
}

tir_status tir_tensor_map_read(const uint8_t bytes[TIR_TENSOR_MAP_BYTES], tir_tensor_map *out,
                               tir_error *error)
{
    return decode(bytes, true, out, error);
}
