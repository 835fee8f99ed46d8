// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads are made for each call: a compilation makes two calls, and a thread costs some
// microseconds. Where none can be had, the caller's does all the work.

#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MOST_THREADS 16

struct work {
    void (*run)(void *user, uint32_t i);
    void *user;
    uint32_t count;
    atomic_uint next;
};

uint32_t tir_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (uint32_t)count;
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
    while (started + 1 < threads && !pthread_create(&others[started], NULL, take, &work))
        started++;
    take(&work);
    while (started)
        pthread_join(others[--started], NULL);
}
