// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How fast the emulator is, how that scales over threads of the host, and how much memory it takes.
//
//   bench_emulator [FOLDER]
//
// Runs kernels of FOLDER, tests/emu/ptx unless given, whose warps hardly diverge, so that a warp
// instruction is 32 lane instructions. Times are processor time on one thread, medians of five
// launches. Scaling is by the clock on the wall, the best of the launches of two seconds, so that a
// machine that is shared for most of the time does; the processor time of all threads together
// beside it says what they cost each other.

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/emu.h"
#include "tir/tensor_map.h"

enum { RUNS = 5, CASES = 4, MOST_THREADS = 4, SECONDS = 2 };

static const struct bench {
    const char *name, *what, *file, *kernel;
    uint32_t grid[3], block[3];
    uint32_t n;
    size_t words[3];         // of the buffers it takes
    uint32_t box_rows[3];    // not 0: they are bf16 matrices of n x n, given as tensor maps
    uint32_t dynamic_shared; // bytes
} cases[CASES] = {
    {.name = "sum",
     .what = "1 M floats",
     .file = "kernels.ptx",
     .kernel = "reduce",
     .grid = {64, 1, 1},
     .block = {256, 1, 1},
     .n = 1 << 20,
     .words = {1 << 20, 1}},
    {.name = "tiled",
     .what = "128^3 product in f32",
     .file = "kernels.ptx",
     .kernel = "tiled",
     .grid = {8, 8, 1},
     .block = {16, 16, 1},
     .n = 128,
     .words = {16384, 16384, 16384}},
    {.name = "mma",
     .what = "256^3 product in bf16, mma.sync",
     .file = "kernels.ptx",
     .kernel = "gemm",
     .grid = {4, 4, 1},
     .block = {128, 1, 1},
     .n = 256,
     .words = {32768, 32768, 65536}},
    {.name = "wgmma",
     .what = "256^3 product in bf16, TMA, mbarriers and wgmma",
     .file = "gemm_tma.ptx",
     .kernel = "gemm",
     .grid = {2, 1, 1},
     .block = {384, 1, 1},
     .n = 256,
     .words = {32768, 32768, 32768},
     .box_rows = {128, 256, 64},
     .dynamic_shared = 229440},
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
    _Alignas(64) unsigned char params[512];
    struct emu_launch launch;
    size_t bytes; // of the buffers
};

// The next parameter.
static void add(struct setup *s, const void *value, size_t size, size_t align)
{
    size_t *at = &s->launch.params_size;
    *at = (*at + align - 1) / align * align;
    memcpy(s->params + *at, value, size);
    *at += size;
}

static void add_map(struct setup *s, uint64_t address, uint32_t box_rows)
{
    tir_error error;
    const uint32_t n = s->bench->n;
    const tir_tensor_map map = {.type = TIR_TENSOR_MAP_BF16,
                                .swizzle = TIR_TENSOR_MAP_SWIZZLE_128,
                                .rank = 2,
                                .address = address,
                                .dims = {n, n},
                                .strides = {n * 2},
                                .steps = {1, 1},
                                .box = {64, box_rows}};
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    need(tir_tensor_map_encode(&map, bytes, &error), &error);
    add(s, bytes, sizeof bytes, 64);
}

static void begin(struct setup *s, const char *text, const struct bench *bench,
                  const struct emu_options *options)
{
    tir_error error;
    memset(s, 0, sizeof *s);
    s->bench = bench;
    need(emu_create(options, &s->emu, &error), &error);
    need(emu_load(s->emu, (tir_str){text, strlen(text)}, &s->module, &error), &error);
    for (int i = 0; i < 3 && bench->words[i]; i++) {
        const size_t size = bench->words[i] * 4;
        uint64_t address;
        need(emu_alloc(s->emu, size, &address, &error), &error);
        need(emu_fill(s->emu, address, 0, size, &error), &error);
        if (bench->box_rows[i])
            add_map(s, address, bench->box_rows[i]);
        else
            add(s, &address, sizeof address, sizeof address);
        s->bytes += size;
    }
    for (int i = 0; i < (bench->box_rows[0] ? 3 : 1); i++) // a product by maps takes m, n and k
        add(s, &bench->n, sizeof bench->n, sizeof bench->n);
    s->launch.params = s->params;
    s->launch.shared_bytes = bench->dynamic_shared;
    memcpy(s->launch.grid, bench->grid, sizeof s->launch.grid);
    memcpy(s->launch.block, bench->block, sizeof s->launch.block);
}

static void launch(const struct setup *s)
{
    tir_error error;
    need(emu_run(s->emu, s->module, s->bench->kernel, &s->launch, &error), &error);
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

static void read_text(const char *folder, const char *file, char *text, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "rb");
    const size_t got = f ? fread(text, 1, size - 1, f) : 0;
    if (!got) {
        fprintf(stderr, "cannot read %s\nusage: bench_emulator [FOLDER]\n", path);
        exit(2);
    }
    fclose(f);
    text[got] = '\0';
}

int main(int argc, char **argv)
{
    static char texts[CASES][1 << 20];
    for (size_t i = 0; i < CASES; i++) {
        read_text(argc > 1 ? argv[1] : "tests/emu/ptx", cases[i].file, texts[i], sizeof texts[i]);
        printf("%-8s %s\n", cases[i].name, cases[i].what);
    }
    static void (*const measures[])(const char *, const struct bench *) = {speed, scaling, memory};
    for (size_t k = 0; k < sizeof measures / sizeof *measures; k++)
        for (size_t i = 0; i < CASES; i++)
            measures[k](texts[i], &cases[i]);
    return 0;
}
