// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which tensors share memory: every answer against a map of the bits that each element has, for
// random shapes and strides, and for those that hosts have.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "overlap.h"

enum { BYTES = 4096, BASE = BYTES / 2, CASES = 60000 };

static uint64_t seed = 1;

static int64_t random_from(int64_t low, int64_t high)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static uint8_t owner[BYTES * 8]; // of each bit: 0, or which tensor has it

// Marks the bits of all elements. Whether two of them met, or one met those of the other tensor.
static void mark(const struct footprint *f, uint8_t mine, bool *itself, bool *other)
{
    int64_t index[TIR_MAX_RANK] = {0};
    for (;;) {
        int64_t at = (int64_t)f->data * 8;
        for (uint32_t d = 0; d < f->rank; d++)
            at += index[d] * f->strides[d] * (int64_t)f->bits;
        for (uint32_t i = 0; i < f->bits; i++) {
            uint8_t *bit = &owner[at + i];
            *itself |= *bit == mine;
            *other |= *bit && *bit != mine;
            if (!*bit)
                *bit = mine;
        }
        uint32_t d = f->rank;
        while (d-- > 0 && ++index[d] == f->shape[d])
            index[d] = 0;
        if (d == UINT32_MAX)
            return;
    }
}

static void compare(struct footprint *a, struct footprint *b)
{
    bool itself = false, other = false, ignored = false;
    memset(owner, 0, sizeof owner);
    mark(a, 1, &itself, &ignored);
    mark(b, 2, &ignored, &other);
    assert_int_equal(tir_footprint_overlaps_itself(a), itself);
    assert_int_equal(tir_footprints_overlap(a, b), other);
    assert_int_equal(tir_footprints_overlap(b, a), other);
}

static struct reach reach_of(const struct footprint *f)
{
    return tir_reach(f->data, f->bits, f->rank, f->shape, f->strides);
}

static struct footprint random_tensor(void)
{
    static const uint32_t bits[] = {4, 8, 16, 32, 64};
    struct footprint f = {.bits = bits[random_from(0, 4)], .rank = (uint32_t)random_from(0, 4)};
    f.data = BASE + (uint64_t)random_from(-40, 40);
    for (uint32_t d = 0; d < f.rank; d++) {
        f.shape[d] = random_from(1, 4);
        f.strides[d] = random_from(-17, 17);
    }
    return f;
}

static void test_random(void **state)
{
    (void)state;
    uint32_t apart = 0;
    for (int i = 0; i < CASES; i++) {
        struct footprint a = random_tensor(), b = random_tensor();
        compare(&a, &b);
        const struct reach ra = reach_of(&a), rb = reach_of(&b);
        const bool may = ra.end > rb.low && rb.end > ra.low;
        assert_true(may || !tir_footprints_overlap(&a, &b));
        apart += may && !tir_footprints_overlap(&a, &b);
    }
    assert_true(apart > 1000); // the bounds alone would not have done
}

// Parts of one matrix of 6 by 8 floats: halves of the rows, every other column, blocks, diagonals.
static void test_parts(void **state)
{
    (void)state;
    for (int i = 0; i < CASES / 4; i++) {
        struct footprint part[2];
        for (int k = 0; k < 2; k++) {
            const int64_t row = random_from(0, 5), column = random_from(0, 7);
            const int64_t down = random_from(1, 3), right = random_from(1, 3);
            part[k] = (struct footprint){
                .data = BASE + (uint64_t)(row * 8 + column) * 4,
                .bits = 32,
                .rank = 2,
                .shape = {random_from(1, (5 - row) / down + 1),
                          random_from(1, (7 - column) / right + 1)},
                .strides = {8 * down, right},
            };
        }
        compare(&part[0], &part[1]);
    }
}

// Too large for a map, where the answer is known: the first and last elements that may meet.
static void test_large(void **state)
{
    (void)state;
    const int64_t rows = 1 << 20, pitch = 1 << 16, half = pitch / 2;
    struct footprint left = {
        .data = 1 << 12, .bits = 16, .rank = 2, .shape = {rows, half}, .strides = {pitch, 1}};
    struct footprint right = left;
    right.data += (uint64_t)half * 2;
    assert_false(tir_footprints_overlap(&left, &right));
    right.data -= 2;
    assert_true(tir_footprints_overlap(&left, &right));
    assert_false(tir_footprint_overlaps_itself(&left));
    left.strides[0] = half - 1;
    assert_true(tir_footprint_overlaps_itself(&left));
    // At the end of the addresses, and of what 64 bits count.
    struct footprint last = {.data = UINT64_MAX - 7, .bits = 64, .rank = 1, .shape = {1}};
    assert_true(reach_of(&last).end == UINT64_MAX && reach_of(&last).low == UINT64_MAX - 7);
    struct footprint whole = {
        .data = 8, .bits = 8, .rank = 1, .shape = {INT64_MAX / 8}, .strides = {1}};
    assert_false(tir_footprints_overlap(&last, &whole));
    assert_true(tir_footprints_overlap(&whole, &whole));
}

// Strides made to be hard are answered soon, and with the careful answer.
static void test_hard(void **state)
{
    (void)state;
    struct footprint a = {.data = 1 << 20,
                          .bits = 64,
                          .rank = 5,
                          .shape = {997, 991, 983, 977, 971},
                          .strides = {30030, 30032, 30034, 30036, 30038}};
    struct footprint b = a;
    b.data += 8;
    assert_true(tir_footprints_overlap(&a, &b)); // in truth all distances are even
    assert_true(tir_footprint_overlaps_itself(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_hard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
