// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long compilations take, stage by stage. Usage: compile_time TIRC FILE...
//
// Each file is compiled RUNS times to an artifact in this process, after one compilation that is
// not counted, and RUNS times by a new process `TIRC build`. Prints a Markdown table of medians in
// milliseconds; a compilation in the process runs from source text to artifact bytes. One variant
// is an outline and the best variant of its first kernel, from source text to PTX.

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tir/artifact.h"
#include "tir/compiler.h"

enum { RUNS = 20, LONGEST = 1 << 20 };

static const char *const names[] = {"front", "passes", "build", "llvm", "ptx", "artifact"};
enum { STAGES = sizeof names / sizeof *names };

struct times { // milliseconds
    double stages[STAGES][RUNS];
    double process[RUNS]; // of TIRC
    double whole[RUNS];   // of tir_compile
    double one[RUNS];     // of tir_compile to an outline, and of one variant
};

static char text[LONGEST];

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, RUNS, sizeof *values, by_size);
    return (values[(RUNS - 1) / 2] + values[RUNS / 2]) / 2;
}

static tir_str read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, "cannot be read");
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    return (tir_str){text, size};
}

// `run` below 0: to warm up.
static void compile(const char *path, tir_str source, int run, struct times *out)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = (tir_str){"sm_90a", 6};
    tir_compilation *compilation = NULL;
    tir_error error;
    double start = now();
    if (tir_compile((tir_str){path, strlen(path)}, source, &options, &compilation, &error))
        fail(path, compilation ? "does not compile" : error.message);
    double whole = now() - start;
    size_t count;
    const tir_stage *stages = tir_compilation_stages(compilation, &count);
    for (size_t i = 0; run >= 0 && i < count; i++)
        for (int name = 0; name < STAGES; name++)
            if (!strcmp(stages[i].name, names[name]))
                out->stages[name][run] += stages[i].milliseconds;
    if (run >= 0)
        out->whole[run] = whole;
    tir_compilation_destroy(compilation);
}

// The entry of the first variant.
static tir_str first_entry(const tir_artifact_desc *desc)
{
    for (uint32_t i = 0; i < desc->kernel_count; i++)
        if (desc->kernels[i].variant_count)
            return desc->kernels[i].variants[0].entry;
    return (tir_str){NULL, 0};
}

static double compile_one(const char *path, tir_str source)
{
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = (tir_str){"sm_90a", 6};
    options.outputs = 1u << TIR_OUTPUT_OUTLINE | 1u << TIR_OUTPUT_PTX;
    tir_compilation *outline = NULL, *variant = NULL;
    const tir_artifact_desc *desc;
    tir_error error;
    double start = now();
    if (tir_compile((tir_str){path, strlen(path)}, source, &options, &outline, &error))
        fail(path, outline ? "does not compile" : error.message);
    const tir_str bytes = tir_compilation_output(outline, TIR_OUTPUT_OUTLINE);
    if (tir_artifact_decode(bytes.ptr, bytes.len, NULL, &desc, &error))
        fail(path, error.message);
    if (tir_compile_variant(outline, first_entry(desc), &variant, &error))
        fail(path, error.message);
    double time = now() - start;
    tir_artifact_free(desc, NULL);
    tir_compilation_destroy(variant);
    tir_compilation_destroy(outline);
    return time;
}

static double process(char *tirc, char *path)
{
    char *arguments[] = {tirc, "build", path, "--arch=sm_90a", "-o", "/dev/null", NULL};
    char *environment[] = {NULL};
    pid_t child;
    int status;
    double start = now();
    if (posix_spawn(&child, tirc, NULL, NULL, arguments, environment))
        fail(tirc, "cannot be started");
    if (waitpid(child, &status, 0) < 0 || status)
        fail(path, "tirc build failed");
    return now() - start;
}

static void row(char *tirc, char *path)
{
    static struct times times;
    times = (struct times){{{0}}};
    tir_str source = read_file(path);
    compile(path, source, -1, &times);
    for (int run = 0; run < RUNS; run++)
        compile(path, source, run, &times);
    for (int run = 0; run < RUNS; run++)
        times.one[run] = compile_one(path, source);
    for (int run = 0; run < RUNS; run++)
        times.process[run] = process(tirc, path);
    const char *slash = strrchr(path, '/');
    printf("| %s |", slash ? slash + 1 : path);
    for (int name = 0; name < STAGES; name++)
        printf(" %.1f |", median(times.stages[name]));
    printf(" %.1f | %.1f | %.1f |\n", median(times.whole), median(times.one),
           median(times.process));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct stat size;
    if (argc < 3) {
        fprintf(stderr, "usage: compile_time TIRC FILE...\n");
        return 2;
    }
    if (stat(argv[1], &size))
        fail(argv[1], "cannot be found");
    printf("tirc: %.1f MB\n\n| file |", (double)size.st_size / 1e6);
    for (int name = 0; name < STAGES; name++)
        printf(" %s |", names[name]);
    printf(" in process | one variant | tirc build |\n|---|");
    for (int column = 0; column < STAGES + 3; column++)
        printf("---|");
    puts("");
    for (int i = 2; i < argc; i++)
        row(argv[1], argv[i]);
    return 0;
}
