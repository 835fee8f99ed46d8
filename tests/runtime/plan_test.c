// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of plans: what is found is what was kept for that key, while other threads write.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "alloc.h"
#include "plan.h"

enum { KEY_WORDS = 5, HEAD_WORDS = 3, BLOCK_WORDS = 9, KEYS = 5 * TIR_PLAN_SLOTS };

struct value {
    uint64_t head[HEAD_WORDS];
    uint8_t block[8 * BLOCK_WORDS];
};

static void make_key(uint64_t number, uint64_t key[KEY_WORDS])
{
    for (uint64_t i = 0; i < KEY_WORDS; i++) // keys that differ in one word, and little
        key[i] = i == number % KEY_WORDS ? number : 1;
}

static struct value make_value(uint64_t number)
{
    struct value value;
    for (uint64_t i = 0; i < HEAD_WORDS; i++)
        value.head[i] = number * 1000 + i;
    for (uint64_t i = 0; i < sizeof value.block; i++)
        value.block[i] = (uint8_t)(number * 7 + i);
    return value;
}

// Whether the number's value is there; fails when another one is.
static bool find(const struct plans *plans, uint64_t number, bool *right)
{
    uint64_t key[KEY_WORDS];
    struct value found, want = make_value(number);
    make_key(number, key);
    if (!tir_plans_find(plans, key, found.head, found.block))
        return false;
    *right &= memcmp(found.head, want.head, sizeof found.head) == 0 &&
              memcmp(found.block, want.block, sizeof found.block) == 0;
    return true;
}

static void keep(struct plans *plans, uint64_t number)
{
    uint64_t key[KEY_WORDS];
    const struct value value = make_value(number);
    make_key(number, key);
    tir_plans_keep(plans, key, value.head, value.block, BLOCK_WORDS);
}

static void test_kept(void **state)
{
    (void)state;
    struct counting counting = {.countdown = -1};
    const tir_allocator allocator = counting_allocator(&counting);
    struct plans plans = {0};
    bool right = true;
    uint32_t found = 0;
    tir_plans_init(&plans, &allocator, KEY_WORDS, HEAD_WORDS, BLOCK_WORDS);
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_false(find(&plans, i, &right));
        keep(&plans, i);
        assert_true(find(&plans, i, &right)); // what was kept last is there
    }
    for (uint64_t i = 0; i < KEYS; i++)
        found += find(&plans, i, &right);
    assert_true(right);
    assert_in_range(found, TIR_PLAN_SLOTS / 2, TIR_PLAN_SLOTS);
    tir_plans_finish(&plans);
    assert_int_equal(counting.live, 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct counting counting = {.countdown = 1};
    const tir_allocator allocator = counting_allocator(&counting);
    struct plans plans = {0};
    bool right = true;
    tir_plans_init(&plans, &allocator, KEY_WORDS, HEAD_WORDS, BLOCK_WORDS);
    keep(&plans, 1);
    assert_false(find(&plans, 1, &right));
    keep(&plans, 1);
    assert_true(find(&plans, 1, &right) && right);
    tir_plans_finish(&plans);
    assert_int_equal(counting.live, 0);
}

enum { THREADS = 4, ROUNDS = 20000 };

struct worker {
    struct plans *plans;
    uint64_t seed;
    uint32_t found;
    bool right;
};

static void *work(void *user)
{
    struct worker *w = user;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
        const uint64_t number = (w->seed >> 33) % KEYS;
        if (find(w->plans, number, &w->right))
            w->found++;
        else
            keep(w->plans, number);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct counting counting = {.countdown = -1};
    const tir_allocator allocator = counting_allocator(&counting);
    struct plans plans = {0};
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    tir_plans_init(&plans, &allocator, KEY_WORDS, HEAD_WORDS, BLOCK_WORDS);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&plans, i, 0, true};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].right);
        assert_true(workers[i].found > 0);
    }
    tir_plans_finish(&plans);
    assert_int_equal(counting.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
