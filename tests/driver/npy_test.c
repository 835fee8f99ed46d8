// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// .npy files: all types and versions there and back, and files that lie.

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "driver/value/npy.h"

// A file of `version` with this header and these data bytes; returns its size.
static size_t build(uint8_t *file, uint8_t version, const char *header, const void *data,
                    size_t bytes)
{
    size_t len = strlen(header), at = version == 1 ? 10 : 12;
    memset(file, 0, at);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = version;
    file[8] = (uint8_t)len;
    file[9] = (uint8_t)(len >> 8);
    memcpy(file + at, header, len);
    memcpy(file + at + len, data, bytes);
    return at + len + bytes;
}

static bool read_into(const uint8_t *file, size_t size, enum tir_elem elem, struct tir_tensor *t,
                      tir_error *error)
{
    // A copy of the exact size, so that a sanitizer sees reads past the end.
    uint8_t *exact = malloc(size ? size : 1);
    memcpy(exact, file, size);
    struct tir_npy npy;
    bool done = tir_npy_header("f", exact, size, &npy, error);
    t->bytes = NULL;
    if (done)
        done = tir_tensor_make(t, elem, npy.rank, npy.shape, NULL, 0, 0, error) &&
               tir_npy_read("f", exact, size, &npy, t, error);
    free(exact);
    return done;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const int64_t shape[5] = {2, 3, 1, 4, 5};
    for (uint32_t e = TIR_NONE + 1; e < TIR_ELEM_COUNT; e++) {
        if (e == TIR_E2M1 || e == TIR_MBARRIER) // no tensors are made of them
            continue;
        for (uint32_t rank = 0; rank <= 5; rank++) {
            struct tir_tensor a, b;
            struct tir_tensor_spec spec = {.fill = TIR_FILL_DEFAULT};
            tir_error error;
            uint8_t *file;
            size_t size;
            assert_true(tir_tensor_make(&a, (enum tir_elem)e, rank, shape, NULL, 3, 1, &error));
            tir_tensor_fill(&a, &spec, 9);
            assert_true(tir_npy_write(&a, &file, &size, &error));
            assert_int_equal((size - (size_t)a.count * tir_elem_size(a.elem)) % 64, 0);
            assert_true(read_into(file, size, (enum tir_elem)e, &b, &error));
            assert_int_equal(b.rank, rank);
            struct tir_cursor x = tir_cursor_first(&a), y = tir_cursor_first(&b);
            for (int64_t i = 0; i < a.count; i++, tir_cursor_next(&x), tir_cursor_next(&y))
                assert_memory_equal(x.at, y.at, tir_elem_size(a.elem));
            tir_tensor_free(&a);
            tir_tensor_free(&b);
            free(file);
        }
    }
}

static void test_versions_and_orders(void **state)
{
    (void)state;
    static const struct {
        uint8_t version;
        const char *header;
        uint8_t data[12];
        uint8_t want[12]; // u16[2, 3], row-major, little end first
    } cases[] = {
        {1,
         "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }",
         {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0},
         {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}},
        {2,
         "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3), }\n",
         {1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0},
         {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}},
        {3,
         "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\">u2\"}",
         {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6},
         {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        uint8_t file[256];
        struct tir_tensor t;
        tir_error error;
        size_t size = build(file, cases[i].version, cases[i].header, cases[i].data, 12);
        assert_true(read_into(file, size, TIR_U16, &t, &error));
        assert_memory_equal(t.bytes, cases[i].want, 12);
        tir_tensor_free(&t);
    }
}

// The file is none of f32, and the error says why.
static void refuses(const uint8_t *file, size_t size)
{
    struct tir_tensor t;
    tir_error error = {0};
    assert_false(read_into(file, size, TIR_F32, &t, &error));
    assert_true(error.message[0]);
    tir_tensor_free(&t);
}

static void test_raw_types(void **state)
{
    (void)state;
    static const char *const types[] = {"|V2", "<V2", "<u2"};
    const uint8_t data[2] = {0x80, 0x3f};
    for (size_t i = 0; i < TIR_COUNT_OF(types); i++) {
        char header[100];
        uint8_t file[256];
        struct tir_tensor t;
        tir_error error;
        snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }",
                 types[i]);
        size_t size = build(file, 1, header, data, 2);
        assert_true(read_into(file, size, TIR_BF16, &t, &error));
        assert_memory_equal(t.bytes, data, 2);
        tir_tensor_free(&t);
        assert_false(read_into(file, size, TIR_F16, &t, &error));
        tir_tensor_free(&t);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", // no end
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1, }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (72057594037927936, 4096), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 1), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4444444', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", // not f4
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1, }",
        "{'descr': '<f4', 'fortran_order': False 'shape': (1,), }",
    };
    for (size_t i = 0; i < TIR_COUNT_OF(headers); i++) {
        uint8_t file[512];
        refuses(file, build(file, 1, headers[i], "\0\0\0\0", 4));
    }
}

// A zero byte ends a text, but not the type of a file: wherever it is, the type is none.
static void test_zero_bytes(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '@f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<@4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f@', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4@', 'fortran_order': False, 'shape': (1,), }",
    };
    for (size_t i = 0; i < TIR_COUNT_OF(headers); i++) {
        uint8_t file[512];
        const size_t size = build(file, 1, headers[i], "\0\0\0\0", 4);
        *(uint8_t *)memchr(file, '@', size) = 0;
        refuses(file, size);
    }
}

// Every prefix of a sound file is refused, and so is every change of one byte of its frame that
// makes it another file; none is a crash.
static void test_damage(void **state)
{
    (void)state;
    uint8_t file[256];
    tir_error error;
    struct tir_tensor t;
    size_t size = build(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }",
                        "\0\0\0\0", 4);
    for (size_t cut = 0; cut < size; cut++) {
        assert_false(read_into(file, cut, TIR_F32, &t, &error));
        tir_tensor_free(&t);
    }
    for (size_t at = 0; at + 4 < size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            file[at] ^= (uint8_t)(1u << bit);
            bool done = read_into(file, size, TIR_F32, &t, &error);
            assert_true(!done || t.count == 1);
            tir_tensor_free(&t);
            file[at] ^= (uint8_t)(1u << bit);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_versions_and_orders),
        cmocka_unit_test(test_raw_types),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_zero_bytes), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
