// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts a range for as many threads as there are cores; the caller takes the first part itself, and
// those for which there is no thread.
#include "driver/value/parallel.h"

#include <pthread.h>
#include <unistd.h>

#include "base/base.h"

enum { MOST = 64, GRAIN = 1024, LEAST = 1 << 16 };

struct part {
    void (*run)(void *user, int64_t first, int64_t end);
    void *user;
    int64_t first, end;
    pthread_t thread;
    bool has_thread;
};

static void *run_part(void *argument)
{
    struct part *part = argument;
    part->run(part->user, part->first, part->end);
    return NULL;
}

void tir_parallel(int64_t count, void (*run)(void *user, int64_t first, int64_t end), void *user)
{
    const int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t parts = TIR_MAX(1, TIR_MIN(TIR_MIN(cores, MOST), count / LEAST));
    const int64_t step = (count / parts / GRAIN + 1) * GRAIN;
    struct part all[MOST];
    for (int64_t i = 0; i < parts; i++) {
        const int64_t first = TIR_MIN(i * step, count);
        all[i] =
            (struct part){run, user, first, i + 1 < parts ? TIR_MIN(first + step, count) : count};
        all[i].has_thread = i && !pthread_create(&all[i].thread, NULL, run_part, &all[i]);
    }
    for (int64_t i = 0; i < parts; i++)
        if (!all[i].has_thread)
            run_part(&all[i]);
    for (int64_t i = 0; i < parts; i++)
        if (all[i].has_thread)
            pthread_join(all[i].thread, NULL);
}
