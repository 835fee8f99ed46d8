// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls on several threads: each is made once, and all are over at the end.

#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/parallel.h"

#define CALLS 1000

struct calls {
    atomic_uint begun, of[CALLS];
    pthread_t by[CALLS];
};

static void count(void *user, uint32_t i)
{
    struct calls *c = user;
    atomic_fetch_add(&c->begun, 1);
    atomic_fetch_add(&c->of[i], 1);
    c->by[i] = pthread_self();
}

static void each_call_is_made_once(void **state)
{
    (void)state;
    for (uint32_t threads = 0; threads < 40; threads += 3) {
        struct calls c = {0};
        tir_side_by_side(threads, CALLS, count, &c);
        assert_int_equal(c.begun, CALLS);
        for (uint32_t i = 0; i < CALLS; i++)
            assert_int_equal(c.of[i], 1);
    }
}

static void one_thread_is_the_callers(void **state)
{
    (void)state;
    struct calls c = {0};
    tir_side_by_side(1, 5, count, &c);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(pthread_equal(c.by[i], pthread_self()));
    tir_side_by_side(8, 0, count, &c);
    assert_int_equal(c.begun, 5);
}

// Calls that need each other can only end when they run at the same time.
struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t all;
    uint32_t here;
};

static void meet(void *user, uint32_t i)
{
    (void)i;
    struct meeting *m = user;
    pthread_mutex_lock(&m->mutex);
    m->here++;
    pthread_cond_broadcast(&m->all);
    while (m->here < 3)
        pthread_cond_wait(&m->all, &m->mutex);
    pthread_mutex_unlock(&m->mutex);
}

static void calls_run_at_the_same_time(void **state)
{
    (void)state;
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    tir_side_by_side(3, 3, meet, &m);
    assert_int_equal(m.here, 3);
    assert_true(tir_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_is_made_once),
        cmocka_unit_test(one_thread_is_the_callers),
        cmocka_unit_test(calls_run_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
