// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How fast the emulator is: lane instructions a second at every level of checks.
//
//   bench_emulator [KERNELS.ptx]
//
// Runs kernels of tests/emu/ptx/kernels.ptx whose warps hardly diverge, so that a warp instruction
// is 32 lane instructions, and prints the median of five launches of each.

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/emu.h"

enum { RUNS = 5 };

static const struct {
    const char *name;
    uint32_t grid[3], block[3];
    uint32_t n;
    size_t words[3]; // of the buffers it takes
} cases[] = {
    {"reduce", {64, 1, 1}, {256, 1, 1}, 1 << 20, {1 << 20, 1}},
    {"tiled", {16, 16, 1}, {16, 16, 1}, 256, {65536, 65536, 65536}},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(tir_status status, const tir_error *error)
{
    if (status) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *text, size_t which, enum emu_check check)
{
    static const char *const levels[] = {"off", "memory", "race", "full"};
    const struct emu_options options = {.check = check};
    struct emu *emu;
    struct emu_module *module;
    tir_error error;
    double seconds[RUNS];
    unsigned char params[64];
    size_t at = 0;
    need(emu_create(&options, &emu, &error), &error);
    need(emu_load(emu, (tir_str){text, strlen(text)}, &module, &error), &error);
    for (int i = 0; i < 3 && cases[which].words[i]; i++) {
        uint64_t address;
        need(emu_alloc(emu, cases[which].words[i] * 4, &address, &error), &error);
        need(emu_fill(emu, address, 0, cases[which].words[i] * 4, &error), &error);
        memcpy(params + at, &address, sizeof address);
        at += sizeof address;
    }
    memcpy(params + at, &cases[which].n, 4);
    at += 4;
    struct emu_launch launch = {.params = params, .params_size = at};
    memcpy(launch.grid, cases[which].grid, sizeof launch.grid);
    memcpy(launch.block, cases[which].block, sizeof launch.block);
    for (int i = 0; i < RUNS; i++) {
        const double start = now();
        need(emu_run(emu, module, cases[which].name, &launch, &error), &error);
        seconds[i] = now() - start;
    }
    qsort(seconds, RUNS, sizeof *seconds, by_value);
    printf("%-8s %-7s %7.1f ms, %6.1f M lane instructions/s\n", cases[which].name, levels[check],
           seconds[RUNS / 2] * 1e3, (double)emu_instructions(emu) * 32e-6 / seconds[RUNS / 2]);
    emu_destroy(emu);
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int check = EMU_CHECK_OFF; check <= EMU_CHECK_FULL; check++)
            measure(text, i, (enum emu_check)check);
    return 0;
}
