// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The generator: known answers, and the moments of what it gives.

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "driver/value/random.h"

// The three answers that the generator's authors publish with it.
static void test_known_blocks(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        uint32_t out[4];
        tir_random_block(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof(out));
    }
}

static void test_keys_differ(void **state)
{
    (void)state;
    uint64_t a = tir_random_key(1, (tir_str){"A", 1}), b = tir_random_key(1, (tir_str){"B", 1});
    assert_true(a != b);
    assert_true(a != tir_random_key(2, (tir_str){"A", 1}));
    assert_true(tir_random_uniform(a, 0) != tir_random_uniform(b, 0));
    assert_true(tir_random_uniform(a, 0) != tir_random_uniform(a, 1));
}

enum { COUNT = 1 << 18 };

static void test_normal_moments(void **state)
{
    (void)state;
    double sum[5] = {0}, largest = 0;
    uint64_t key = tir_random_key(1, (tir_str){"A", 1});
    for (uint64_t i = 0; i < COUNT / 2; i++) {
        double pair[2];
        tir_random_normals(key, i, pair);
        for (int j = 0; j < 2; j++) {
            largest = fmax(largest, fabs(pair[j]));
            for (int power = 1; power <= 4; power++)
                sum[power] += pow(pair[j], power) / COUNT;
        }
    }
    // Five standard errors of each moment of N(0,1).
    assert_true(fabs(sum[1]) < 5 * sqrt(1.0 / COUNT));
    assert_true(fabs(sum[2] - 1) < 5 * sqrt(2.0 / COUNT));
    assert_true(fabs(sum[3]) < 5 * sqrt(15.0 / COUNT));
    assert_true(fabs(sum[4] - 3) < 5 * sqrt(96.0 / COUNT));
    assert_true(largest > 4 && largest < 6);
}

// The series against the C library's functions, by undoing Box-Muller.
static void test_normal_is_box_muller(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 4096; i++) {
        double pair[2];
        uint32_t words[4], counter[4] = {(uint32_t)i, 0, 0, 0};
        tir_random_normals(77, i, pair);
        tir_random_block(counter, (uint32_t[2]){77, 0}, words);
        double u = (double)(((words[0] | (uint64_t)words[1] << 32) >> 11) + 1) * 0x1p-53;
        double v = (double)((words[2] | (uint64_t)words[3] << 32) >> 11) * 0x1p-53;
        double radius = sqrt(-2 * log(u)), turn = 2 * 3.14159265358979323846 * v;
        assert_true(fabs(pair[0] - radius * cos(turn)) < 1e-13);
        assert_true(fabs(pair[1] - radius * sin(turn)) < 1e-13);
    }
}

static void test_int_range(void **state)
{
    (void)state;
    unsigned seen[16] = {0};
    for (uint64_t i = 0; i < 16 * 256; i++) {
        int64_t x = tir_random_int(5, i, -8, 7);
        assert_in_range(x + 8, 0, 15);
        seen[x + 8]++;
    }
    for (int i = 0; i < 16; i++)
        assert_in_range(seen[i], 256 - 80, 256 + 80);
    assert_int_equal(tir_random_int(5, 0, 3, 3), 3);
    assert_true(tir_random_int(5, 0, INT64_MIN, INT64_MAX) !=
                tir_random_int(5, 1, INT64_MIN, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_blocks),   cmocka_unit_test(test_keys_differ),
        cmocka_unit_test(test_normal_moments), cmocka_unit_test(test_normal_is_box_muller),
        cmocka_unit_test(test_int_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
