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

enum { KEY_WORDS = 5, HEAD_WORDS = 3, BLOCK_BYTES = 72, PARTS = 2, KEYS = 5 * TIR_PLAN_SLOTS };

static void make_key(uint64_t number, uint64_t key[KEY_WORDS])
{
    for (uint64_t i = 0; i < KEY_WORDS; i++) // keys that differ in one word, and little
        key[i] = i == number % KEY_WORDS ? number : 1;
}

static void init(struct plans *plans, const tir_allocator *allocator)
{
    tir_plans_init(plans, allocator, KEY_WORDS, HEAD_WORDS, BLOCK_BYTES, PARTS);
}

static void write(struct plan *plan, uint64_t number)
{
    for (uint64_t i = 0; i < HEAD_WORDS; i++)
        plan->head[i] = number * 1000 + i;
    for (uint64_t i = 0; i < BLOCK_BYTES; i++)
        plan->block[i] = (uint8_t)(number * 7 + i);
    for (uint64_t i = 0; i < PARTS; i++)
        plan->parts[i] = plan->block + number % (BLOCK_BYTES - i);
}

static bool is_right(const struct plan *plan, uint64_t number)
{
    bool right = (uintptr_t)plan->block % 64 == 0;
    for (uint64_t i = 0; i < HEAD_WORDS; i++)
        right &= plan->head[i] == number * 1000 + i;
    for (uint64_t i = 0; i < BLOCK_BYTES; i++)
        right &= plan->block[i] == (uint8_t)(number * 7 + i);
    for (uint64_t i = 0; i < PARTS; i++)
        right &= plan->parts[i] == plan->block + number % (BLOCK_BYTES - i);
    return right;
}

static struct plan *take(const struct plans *plans, uint64_t number)
{
    uint64_t key[KEY_WORDS];
    make_key(number, key);
    return tir_plans_take(plans, key, KEY_WORDS);
}

static struct plan *make(struct plans *plans, uint64_t number)
{
    uint64_t key[KEY_WORDS];
    make_key(number, key);
    return tir_plans_make(plans, key, KEY_WORDS);
}

// Whether the number's value is there. What is found is written anew, so that two threads that have
// the same plan disturb each other.
static bool find(const struct plans *plans, uint64_t number, bool *right)
{
    struct plan *plan = take(plans, number);
    if (!plan)
        return false;
    *right &= is_right(plan, number);
    memset(plan->block, 0, BLOCK_BYTES);
    write(plan, number);
    *right &= is_right(plan, number);
    tir_plans_give(plan);
    return true;
}

static void keep(struct plans *plans, uint64_t number)
{
    struct plan *plan = make(plans, number);
    if (!plan)
        return;
    write(plan, number);
    tir_plans_give(plan);
}

static void test_kept(void **state)
{
    (void)state;
    struct counting counting = {.countdown = -1};
    const tir_allocator allocator = counting_allocator(&counting);
    struct plans plans = {0};
    bool right = true;
    uint32_t found = 0;
    init(&plans, &allocator);
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
    init(&plans, &allocator);
    keep(&plans, 1);
    assert_false(find(&plans, 1, &right));
    keep(&plans, 1);
    assert_true(find(&plans, 1, &right) && right);
    tir_plans_finish(&plans);
    assert_int_equal(counting.live, 0);
}

// A thread has its plan alone; others get another one for the same key, as long as there are slots.
static void test_taken(void **state)
{
    (void)state;
    struct counting counting = {.countdown = -1};
    const tir_allocator allocator = counting_allocator(&counting);
    struct plans plans = {0};
    struct plan *taken[5];
    init(&plans, &allocator);
    for (uint64_t i = 0; i < 4; i++) {
        assert_null(take(&plans, 1));
        taken[i] = make(&plans, 1);
        assert_non_null(taken[i]);
        for (uint64_t j = 0; j < i; j++)
            assert_ptr_not_equal(taken[i], taken[j]);
    }
    assert_null(take(&plans, 1));
    assert_null(make(&plans, 1));
    tir_plans_give(taken[2]);
    taken[4] = take(&plans, 1);
    assert_ptr_equal(taken[4], taken[2]);
    assert_null(take(&plans, 1));
    // One that nobody has is written over rather than another one made.
    tir_plans_give(taken[1]);
    assert_ptr_equal(make(&plans, 1), taken[1]);
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
    init(&plans, &allocator);
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
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
