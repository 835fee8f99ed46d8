// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How fast the emulator is, how that scales over threads of the host, and how much memory it takes.
//
//   bench_emulator [KERNELS.ptx]
//
// Runs kernels of tests/emu/ptx/kernels.ptx whose warps hardly diverge, so that a warp instruction
// is 32 lane instructions. Times are processor time on one thread, medians of five launches.
// Scaling is by the clock on the wall, the best of the launches of two seconds, so that a machine
// that is shared for most of the time does; the processor time of all threads together beside it
// says what they cost each other.

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/emu.h"

enum { RUNS = 5, CASES = 3, MOST_THREADS = 4, SECONDS = 2 };

static const struct bench {
    const char *name, *what;
    uint32_t grid[3], block[3];
    uint32_t n;
    size_t words[3]; // of the buffers it takes
} cases[CASES] = {
    {"reduce", "sum of 1 M floats", {64, 1, 1}, {256, 1, 1}, 1 << 20, {1 << 20, 1}},
    {"tiled", "128^3 product in f32", {8, 8, 1}, {16, 16, 1}, 128, {16384, 16384, 16384}},
    {"gemm", "256^3 product in bf16, mma.sync", {4, 4, 1}, {128, 1, 1}, 256, {32768, 32768, 65536}},
};
static const char *const levels[] = {"off", "memory", "race", "full"};

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(tir_status status, const tir_error *error)
{
    if (status) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// ---- a device with one case's buffers

struct setup {
    struct emu *emu;
    struct emu_module *module;
    const struct bench *bench;
    unsigned char params[64];
    struct emu_launch launch;
    size_t bytes; // of the buffers
};

static void begin(struct setup *s, const char *text, const struct bench *bench,
                  const struct emu_options *options)
{
    tir_error error;
    size_t at = 0;
    memset(s, 0, sizeof *s);
    s->bench = bench;
    need(emu_create(options, &s->emu, &error), &error);
    need(emu_load(s->emu, (tir_str){text, strlen(text)}, &s->module, &error), &error);
    for (int i = 0; i < 3 && bench->words[i]; i++) {
        const size_t size = bench->words[i] * 4;
        uint64_t address;
        need(emu_alloc(s->emu, size, &address, &error), &error);
        need(emu_fill(s->emu, address, 0, size, &error), &error);
        memcpy(s->params + at, &address, sizeof address);
        at += sizeof address;
        s->bytes += size;
    }
    memcpy(s->params + at, &bench->n, 4);
    s->launch = (struct emu_launch){.params = s->params, .params_size = at + 4};
    memcpy(s->launch.grid, bench->grid, sizeof s->launch.grid);
    memcpy(s->launch.block, bench->block, sizeof s->launch.block);
}

static void launch(const struct setup *s)
{
    tir_error error;
    need(emu_run(s->emu, s->module, s->bench->name, &s->launch, &error), &error);
}

static double median(const struct setup *s, clockid_t clock)
{
    double seconds[RUNS];
    for (int i = 0; i < RUNS; i++) {
        const double start = now(clock);
        launch(s);
        seconds[i] = now(clock) - start;
    }
    qsort(seconds, RUNS, sizeof *seconds, by_value);
    return seconds[RUNS / 2];
}

// ---- what is measured

static void speed(const char *text, const struct bench *bench)
{
    for (int check = EMU_CHECK_OFF; check <= EMU_CHECK_FULL; check++) {
        struct setup s;
        begin(&s, text, bench, &(struct emu_options){.check = (enum emu_check)check});
        const double seconds = median(&s, CLOCK_PROCESS_CPUTIME_ID);
        printf("%-8s %-7s %8.1f ms, %6.1f M lane instructions/s\n", bench->name, levels[check],
               seconds * 1e3, (double)emu_instructions(s.emu) * 32e-6 / seconds);
        emu_destroy(s.emu);
    }
}

static void scaling(const char *text, const struct bench *bench)
{
    double one = 0;
    for (uint32_t threads = 1; threads <= MOST_THREADS; threads *= 2) {
        struct setup s;
        begin(&s, text, bench,
              &(struct emu_options){.check = EMU_CHECK_MEMORY, .threads = threads});
        double best = 1e9, busy = 1e9;
        for (const double end = now(CLOCK_MONOTONIC) + SECONDS; now(CLOCK_MONOTONIC) < end;) {
            const double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);
            launch(&s);
            best = least(best, now(CLOCK_MONOTONIC) - wall);
            busy = least(busy, now(CLOCK_PROCESS_CPUTIME_ID) - processor);
        }
        one = threads == 1 ? best : one;
        printf("%-8s %u threads %7.1f ms, %4.2f times as fast, %7.1f ms of processor time\n",
               bench->name, threads, best * 1e3, one / best, busy * 1e3);
        emu_destroy(s.emu);
    }
}

// An allocator that counts.
struct meter {
    size_t bytes, peak;
};

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct meter *m = user;
    m->bytes += new_size - old_size;
    m->peak = m->bytes > m->peak ? m->bytes : m->peak;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void memory(const char *text, const struct bench *bench)
{
    for (int check = EMU_CHECK_OFF; check <= EMU_CHECK_FULL; check++) {
        struct setup s;
        struct meter m = {0};
        begin(&s, text, bench,
              &(struct emu_options){.check = (enum emu_check)check, .allocator = {resize, &m}});
        const size_t before = m.bytes;
        launch(&s);
        const double launch_bytes = (double)(m.peak - before), buffers = (double)s.bytes;
        printf("%-8s %-7s %8.1f KiB of buffers and as much of their state; the launch takes %8.1f "
               "KiB more, %5.2f bytes for a byte of the buffers\n",
               bench->name, levels[check], buffers / 1024, launch_bytes / 1024,
               launch_bytes / buffers);
        emu_destroy(s.emu);
    }
}

int main(int argc, char **argv)
{
    FILE *f = fopen(argc > 1 ? argv[1] : "tests/emu/ptx/kernels.ptx", "rb");
    static char text[1 << 20];
    if (!f || fread(text, 1, sizeof text - 1, f) == 0) {
        fprintf(stderr, "usage: bench_emulator [KERNELS.ptx]\n");
        return 2;
    }
    fclose(f);
    for (size_t i = 0; i < CASES; i++)
        printf("%-8s %s\n", cases[i].name, cases[i].what);
    static void (*const measures[])(const char *, const struct bench *) = {speed, scaling, memory};
    for (size_t k = 0; k < sizeof measures / sizeof *measures; k++)
        for (size_t i = 0; i < CASES; i++)
            measures[k](text, &cases[i]);
    return 0;
}
