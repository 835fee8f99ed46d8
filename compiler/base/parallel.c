// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads are made for each call: a compilation makes three calls, and a thread costs some
// microseconds. Where none can be had, the caller's does all the work.

#ifdef __linux__
#define _GNU_SOURCE // sched_getaffinity
#include <sched.h>
#endif

#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MOST_THREADS 16

// The back end goes down a chain of integers that is cast at its end, with some 240 bytes for each
// of the operations, of which a kernel has 200,000. Only what is touched takes memory.
#define STACK_BYTES  ((size_t)64 << 20)

struct work {
    void (*run)(void *user, uint32_t i);
    void *user;
    uint32_t count;
    atomic_uint next;
};

uint32_t tir_processors(void)
{
#ifdef __linux__
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof allowed, &allowed))
        return (uint32_t)CPU_COUNT(&allowed);
#endif
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (uint32_t)count;
}

static bool start(pthread_t *thread, void *(*run)(void *user), void *user)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr))
        return false;
    bool ok =
        !pthread_attr_setstacksize(&attr, STACK_BYTES) && !pthread_create(thread, &attr, run, user);
    pthread_attr_destroy(&attr);
    return ok;
}

static void *take(void *user)
{
    struct work *work = user;
    for (;;) {
        uint32_t i = atomic_fetch_add(&work->next, 1);
        if (i >= work->count)
            return NULL;
        work->run(work->user, i);
    }
}

void tir_side_by_side(uint32_t threads, uint32_t count, void (*run)(void *user, uint32_t i),
                      void *user)
{
    struct work work = {.run = run, .user = user, .count = count};
    pthread_t others[MOST_THREADS];
    uint32_t started = 0;
    threads = TIR_MIN(TIR_MIN(threads, count), MOST_THREADS);
    while (started + 1 < threads && start(&others[started], take, &work))
        started++;
    take(&work);
    while (started)
        pthread_join(others[--started], NULL);
}

struct call {
    void (*run)(void *user);
    void *user;
};

static void *make_call(void *user)
{
    const struct call *call = user;
    call->run(call->user);
    return NULL;
}

void tir_with_deep_stack(void (*run)(void *user), void *user)
{
    struct call call = {run, user};
    pthread_t thread;
    if (start(&thread, make_call, &call))
        pthread_join(thread, NULL);
    else
        run(user);
}
