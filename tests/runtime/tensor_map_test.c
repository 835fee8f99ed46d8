// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensor map encoder against the driver's: every line of a file of tools/bench/tensor_map_dump.
//
// A line is a set of parameters in decimal and the bytes that the driver wrote, without the zeros
// at their end, or `E` and its error.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tir/tensor_map.h"

static const char *golden;

// A line: the slots in the order of the dump.
enum {
    KIND,
    TYPE,
    RANK,
    ADDRESS,
    DIM,
    STRIDE = DIM + 5,
    BOX = STRIDE + 4,
    STEP = BOX + 5,
    INTERLEAVE = STEP + 5,
    SWIZZLE,
    L2,
    FILL,
    LOWER,
    UPPER = LOWER + 3,
    CHANNELS = UPPER + 3,
    PIXELS,
    WIDE,
    SLOTS
};

static tir_tensor_map map_of(const int64_t *at)
{
    tir_tensor_map m = {.kind = (tir_tensor_map_kind)at[KIND],
                        .type = (tir_tensor_map_type)(int32_t)at[TYPE],
                        .rank = (uint32_t)at[RANK],
                        .address = (uint64_t)at[ADDRESS],
                        .interleave = (tir_tensor_map_interleave)(int32_t)at[INTERLEAVE],
                        .swizzle = (tir_tensor_map_swizzle)(int32_t)at[SWIZZLE],
                        .l2 = (tir_tensor_map_l2)(int32_t)at[L2],
                        .fill = (tir_tensor_map_fill)(int32_t)at[FILL],
                        .channels = (uint32_t)at[CHANNELS],
                        .pixels = (uint32_t)at[PIXELS]};
    for (int i = 0; i < 5; i++) {
        m.dims[i] = (uint64_t)at[DIM + i];
        m.box[i] = (uint32_t)at[BOX + i];
        m.steps[i] = (uint32_t)at[STEP + i];
    }
    for (int i = 0; i < 4; i++)
        m.strides[i] = (uint64_t)at[STRIDE + i];
    for (int i = 0; i < 3; i++) {
        m.lower[i] = (int32_t)at[LOWER + i];
        m.upper[i] = (int32_t)at[UPPER + i];
    }
    return m;
}

static bool parse_line(char *line, int64_t *at, uint8_t *bytes, bool *is_error)
{
    char *p = line;
    if (*p == '#' || *p == '\n')
        return false;
    for (int i = 0; i < SLOTS; i++)
        at[i] = strtoll(p, &p, 10);
    p += strspn(p, " ");
    *is_error = *p == 'E';
    memset(bytes, 0, TIR_TENSOR_MAP_BYTES);
    for (int i = 0; !*is_error && p[2 * i] != '\n' && p[2 * i] != '\0'; i++) {
        const char digits[3] = {p[2 * i], p[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

// What decoding gives: without the members that have no meaning.
static tir_tensor_map meaning(const tir_tensor_map *m)
{
    tir_tensor_map out = *m;
    const bool is_tiled = m->kind == TIR_TENSOR_MAP_TILED;
    const uint32_t corners = is_tiled ? 0 : m->kind == TIR_TENSOR_MAP_IM2COL ? m->rank - 2 : 1;
    for (uint32_t i = 0; i < 5; i++) {
        out.dims[i] = i < m->rank ? m->dims[i] : 0;
        out.steps[i] = i < m->rank ? m->steps[i] : 0;
        out.box[i] = i < m->rank && is_tiled ? m->box[i] : 0;
    }
    for (uint32_t i = 0; i < 4; i++)
        out.strides[i] = i + 1 < m->rank ? m->strides[i] : 0;
    for (uint32_t i = 0; i < 3; i++) {
        out.lower[i] = i < corners ? m->lower[i] : 0;
        out.upper[i] = i < corners ? m->upper[i] : 0;
    }
    out.channels = is_tiled ? 0 : m->channels;
    out.pixels = is_tiled ? 0 : m->pixels;
    out.kind = is_tiled ? TIR_TENSOR_MAP_TILED : TIR_TENSOR_MAP_IM2COL;
    return out;
}

static void test_driver(void **state)
{
    (void)state;
    static char line[1024];
    int64_t at[SLOTS];
    uint8_t expected[TIR_TENSOR_MAP_BYTES], bytes[TIR_TENSOR_MAP_BYTES];
    bool is_error;
    uint32_t count = 0, errors = 0;
    FILE *file = fopen(golden, "r");
    assert_non_null(file);
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (!parse_line(line, at, expected, &is_error))
            continue;
        if (at[KIND] == TIR_TENSOR_MAP_IM2COL_WIDE && (at[WIDE] < 0 || at[WIDE] > 1))
            continue; // a mode that we have not: no bit holds it
        if (at[TYPE] > TIR_TENSOR_MAP_TF32_FTZ && at[TYPE] < TIR_TENSOR_MAP_TYPE_COUNT) {
            assert_true(is_error); // it was an H200's driver: test_packed
            continue;
        }
        const tir_tensor_map m = map_of(at);
        tir_error error = {TIR_OK, 0, ""};
        const tir_status status = tir_tensor_map_encode(&m, bytes, &error);
        if ((status != TIR_OK) != is_error)
            fail_msg("line %d: the driver %s it, and we say '%s'", number,
                     is_error ? "refuses" : "takes", error.message);
        count++;
        errors += is_error;
        if (is_error) {
            assert_int_equal(status, TIR_ERR_INVALID);
            assert_true(error.message[0] != '\0');
            continue;
        }
        if (memcmp(bytes, expected, sizeof bytes) != 0)
            fail_msg("line %d: other bytes than the driver's", number);
        tir_tensor_map again;
        const tir_tensor_map same = meaning(&m);
        assert_int_equal(tir_tensor_map_decode(bytes, &again, &error), TIR_OK);
        assert_memory_equal(&again, &same, sizeof same);
    }
    fclose(file);
    assert_true(count > 500 && errors > 100 && errors < count);
}

static tir_tensor_map sample(void)
{
    return (tir_tensor_map){.kind = TIR_TENSOR_MAP_TILED,
                            .type = TIR_TENSOR_MAP_F16,
                            .swizzle = TIR_TENSOR_MAP_SWIZZLE_128,
                            .rank = 2,
                            .address = 0x10000,
                            .dims = {100, 50},
                            .strides = {256},
                            .steps = {1, 1},
                            .box = {64, 8}};
}

static void refused(tir_tensor_map m, const char *name)
{
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    tir_error error;
    assert_int_equal(tir_tensor_map_encode(&m, bytes, &error), TIR_ERR_INVALID);
    if (!strstr(error.message, name))
        fail_msg("'%s' does not name %s", error.message, name);
    assert_int_equal(tir_tensor_map_encode(&m, bytes, NULL), TIR_ERR_INVALID);
}

// It is encoded, and its bits say the same.
static void taken(tir_tensor_map m, const char *name)
{
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    tir_tensor_map again;
    const tir_tensor_map same = meaning(&m);
    tir_error error;
    if (tir_tensor_map_encode(&m, bytes, &error) || tir_tensor_map_decode(bytes, &again, &error))
        fail_msg("%s: %s", name, error.message);
    if (memcmp(&again, &same, sizeof same) != 0)
        fail_msg("%s: other bits", name);
}

#define TAKEN(member, value)               \
    do {                                   \
        tir_tensor_map changed = sample(); \
        changed.member = value;            \
        taken(changed, #member);           \
    } while (0)

#define REFUSED(member, value, name)       \
    do {                                   \
        tir_tensor_map changed = sample(); \
        changed.member = value;            \
        refused(changed, name);            \
    } while (0)

// The last value that cuTensorMapEncodeTiled documents as allowed and the first that it does not.
static void test_limits(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        TAKEN(dims[i], 1);
        TAKEN(dims[i], UINT64_C(1) << 32);
        REFUSED(dims[i], (UINT64_C(1) << 32) + 1, "dims[");
        REFUSED(dims[i], UINT64_MAX, "dims[");
        TAKEN(steps[i], 1);
        TAKEN(steps[i], 8);
        REFUSED(steps[i], 0, "steps[");
        REFUSED(steps[i], 9, "steps[");
    }
    TAKEN(address, (UINT64_C(1) << 57) - 16);
    REFUSED(address, UINT64_C(1) << 57, "address");
    TAKEN(strides[0], (UINT64_C(1) << 40) - 16);
    REFUSED(strides[0], UINT64_C(1) << 40, "strides[0]");
    TAKEN(box[1], 1);
    TAKEN(box[1], 256);
    REFUSED(box[1], 0, "box[1]");
    REFUSED(box[1], 257, "box[1]");
}

static void test_messages(void **state)
{
    (void)state;
    REFUSED(kind, (tir_tensor_map_kind)3, "kind");
    REFUSED(type, (tir_tensor_map_type)13, "type");
    REFUSED(rank, 0, "rank");
    REFUSED(rank, 6, "rank");
    REFUSED(interleave, TIR_TENSOR_MAP_INTERLEAVE_16, "rank");
    REFUSED(swizzle, (tir_tensor_map_swizzle)4, "swizzle");
    REFUSED(fill, (tir_tensor_map_fill)2, "fill");
    REFUSED(l2, (tir_tensor_map_l2)4, "l2");
    REFUSED(address, 8, "address");
    REFUSED(dims[1], 0, "dims[1]");
    REFUSED(strides[0], 8, "strides[0]");
    REFUSED(steps[1], 9, "steps[1]");
    REFUSED(box[1], 257, "box[1]");
    REFUSED(box[0], 4, "box[0]");
    REFUSED(box[0], 72, "box[0]");
}

// Elements of 4 and 6 bits: the code of each is the one that ptxas has tensormap.replace write, in
// the bits that it writes.
static void test_packed(void **state)
{
    (void)state;
    static const struct {
        tir_tensor_map_type type;
        uint8_t code;
    } types[] = {{TIR_TENSOR_MAP_U4_ALIGN16, 12}, {TIR_TENSOR_MAP_U6_ALIGN16, 13}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tir_tensor_map m = sample(), wrong;
        uint8_t bytes[TIR_TENSOR_MAP_BYTES];
        m.type = types[i].type;
        m.dims[0] = 256;
        m.box[0] = 128;
        taken(m, "packed");
        assert_int_equal(tir_tensor_map_encode(&m, bytes, NULL), TIR_OK);
        assert_int_equal((bytes[8] >> 7 | bytes[9] << 1) & 15, types[i].code);
        m.swizzle = TIR_TENSOR_MAP_SWIZZLE_NONE;
        taken(m, "packed, not swizzled");
#define PACKED_REFUSED(member, value, name) (wrong = m, wrong.member = value, refused(wrong, name))
        PACKED_REFUSED(address, 0x10010, "address");
        PACKED_REFUSED(strides[0], 272, "strides[0]");
        PACKED_REFUSED(dims[0], 192, "dims[0]");
        PACKED_REFUSED(box[0], 64, "box[0]");
        PACKED_REFUSED(swizzle, TIR_TENSOR_MAP_SWIZZLE_64, "swizzle");
        PACKED_REFUSED(fill, TIR_TENSOR_MAP_FILL_NAN, "fill");
    }
}

// Every bit of a good map turned over gives another good map or an error, never the same map.
static void test_bits(void **state)
{
    (void)state;
    const tir_tensor_map m = sample();
    uint8_t bytes[TIR_TENSOR_MAP_BYTES], again[TIR_TENSOR_MAP_BYTES];
    tir_error error;
    uint32_t refusals = 0;
    assert_int_equal(tir_tensor_map_encode(&m, bytes, &error), TIR_OK);
    for (uint32_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        tir_tensor_map out;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (tir_tensor_map_decode(bytes, &out, &error) == TIR_OK) {
            assert_memory_not_equal(&out, &m, sizeof m);
            assert_int_equal(tir_tensor_map_encode(&out, again, &error), TIR_OK);
            assert_memory_equal(again, bytes, sizeof bytes);
        } else {
            refusals++;
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_in_range(refusals, 800, 900); // of 1024 bits; the others are those of fields
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    golden = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_packed),
        cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
