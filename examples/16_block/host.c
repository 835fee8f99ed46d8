// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Serves a block of a transformer: norm, QKV, rotary embedding and append to a cache, attention,
// projection, norm, gated MLP. The kernels are compiled at run time, launched once while a stream
// is in capture, and replayed as a graph for each token. What comes out is compared with the same
// formulas in double precision (reference.c) and, from a GPU, with the emulator.
//
//     block [auto|cuda|cuda:N|emu [FOLDER]]
//
// With a folder, the tensors of every launch of the last token are written there, and the commands
// of tirc that do the launches again.
#include "block.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tir/compiler.h>
#include <tir/runtime.h>

// ---- what is compiled, and what is launched

enum program { NORM, PRODUCT, APPEND, DECODE, GATE, ADDED, PROGRAMS };

static const struct {
    const char *file, *kernel, *meta, *value; // one binding, or none
} programs[PROGRAMS] = {
    [NORM] = {"05_norm/rmsnorm.tir", "rmsnorm_rows", "T", "bf16"},
    [PRODUCT] = {"03_gemm/matmul.tir", "matmul", "T", "bf16"},
    [APPEND] = {"attention/append.tir", "append", "D", "64"},
    [DECODE] = {"attention/decode.tir", "decode", "D", "64"},
    [GATE] = {"10_epilogues/epilogues.tir", "gated", "BM", "16"}, // few rows
    [ADDED] = {"16_block/block.tir", "added", "T", "bf16"},
};
_Static_assert(HEAD == 64, "the metas of append and decode");

// A tensor as the kernel sees it, or, with rank 0, a number.
struct argument {
    enum tensor tensor;
    uint32_t rank;
    int64_t shape[4];
    tir_element element; // of a number
    double number;
};
#define VECTOR(t, n) \
    {                \
        t, 1,        \
        {            \
            n        \
        }            \
    }
#define MATRIX(t, m, n) \
    {                   \
        t, 2,           \
        {               \
            m, n        \
        }               \
    }
#define TENSOR(t, a, b, c, d) \
    {                         \
        t, 4,                 \
        {                     \
            a, b, c, d        \
        }                     \
    }
#define REAL(x)                                 \
    {                                           \
        .element = TIR_ELEMENT_F32, .number = x \
    }
#define INTEGER(x)                              \
    {                                           \
        .element = TIR_ELEMENT_I64, .number = x \
    }

enum { MOST_ARGUMENTS = 7 };

// A sequence has one new row, so O[b, h, 0, :] is also a row of [BATCH, MODEL].
static const struct step {
    const char *name;
    enum program program;
    uint32_t count;
    struct argument arguments[MOST_ARGUMENTS];
} steps[] = {
    {"norm_1",
     NORM,
     4,
     {MATRIX(INPUT, BATCH, MODEL), VECTOR(GAIN_1, MODEL), MATRIX(NORMED_1, BATCH, MODEL),
      REAL(EPSILON)}},
    {"qkv",
     PRODUCT,
     3,
     {MATRIX(NORMED_1, BATCH, MODEL), MATRIX(W_QKV, ROW, MODEL), MATRIX(QKV, BATCH, ROW)}},
    {"append",
     APPEND,
     7,
     {TENSOR(QKV, BATCH, 1, HEADS + 2 * GROUPS, HEAD), MATRIX(COS, CACHE, HEAD / 2),
      MATRIX(SIN, CACHE, HEAD / 2), VECTOR(LENGTH, BATCH), TENSOR(Q, BATCH, HEADS, 1, HEAD),
      TENSOR(K, BATCH, GROUPS, CACHE, HEAD), TENSOR(V, BATCH, GROUPS, CACHE, HEAD)}},
    {"decode",
     DECODE,
     7,
     {TENSOR(Q, BATCH, GROUPS, HEADS / GROUPS, HEAD), TENSOR(K, BATCH, GROUPS, CACHE, HEAD),
      TENSOR(V, BATCH, GROUPS, CACHE, HEAD), VECTOR(LENGTH, BATCH),
      TENSOR(O, BATCH, GROUPS, HEADS / GROUPS, HEAD), INTEGER(1), REAL(SCALE)}},
    {"project",
     ADDED,
     4,
     {MATRIX(O, BATCH, MODEL), MATRIX(W_O, MODEL, MODEL), MATRIX(INPUT, BATCH, MODEL),
      MATRIX(MIDDLE, BATCH, MODEL)}},
    {"norm_2",
     NORM,
     4,
     {MATRIX(MIDDLE, BATCH, MODEL), VECTOR(GAIN_2, MODEL), MATRIX(NORMED_2, BATCH, MODEL),
      REAL(EPSILON)}},
    {"gate",
     GATE,
     4,
     {MATRIX(NORMED_2, BATCH, MODEL), MATRIX(W_GATE, HIDDEN, MODEL), MATRIX(W_UP, HIDDEN, MODEL),
      MATRIX(GATED, BATCH, HIDDEN)}},
    {"down",
     ADDED,
     4,
     {MATRIX(GATED, BATCH, HIDDEN), MATRIX(W_DOWN, MODEL, HIDDEN), MATRIX(MIDDLE, BATCH, MODEL),
      MATRIX(OUTPUT, BATCH, MODEL)}},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

struct host { // what must be given back in the end; NULL: not there yet
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_compilation *outlines[PROGRAMS];
    tir_rt_module *modules[PROGRAMS];
    tir_rt_kernel *kernels[PROGRAMS];
    tir_rt_buffer *buffers[TENSORS];
    tir_rt_stream *stream;
    tir_rt_graph *graph;
    struct file *files; // that were read
    tir_error error;
};

static tir_str view(const char *text)
{
    return (tir_str){text, strlen(text)};
}

static tir_status fail(struct host *h, const char *what, const char *name)
{
    h->error = (tir_error){.status = TIR_ERR_INVALID};
    snprintf(h->error.message, sizeof h->error.message, "%.200s: %.40s", name, what);
    return TIR_ERR_INVALID;
}

// ---- sources: a program and what it imports, which stay in memory

struct file {
    struct file *next;
    char name[512];
    size_t size;
    char text[1 << 16];
};

static const struct file *read_file(struct host *h, const char *name, size_t size)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file || size >= sizeof file->name) {
        free(file);
        return NULL;
    }
    file->next = h->files;
    h->files = file;
    memcpy(file->name, name, size);
    FILE *stream = fopen(file->name, "rb");
    if (!stream)
        return NULL;
    file->size = fread(file->text, 1, sizeof file->text, stream);
    fclose(stream);
    return file->size < sizeof file->text ? file : NULL;
}

// An import stands in the folder of the file that imports it. The compiler has those of "tir/".
static int import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    char full[512];
    size_t folder = from.len;
    while (folder && from.ptr[folder - 1] != '/')
        folder--;
    if (folder + path.len > sizeof full)
        return 0;
    memcpy(full, from.ptr, folder);
    memcpy(full + folder, path.ptr, path.len);
    const struct file *file = read_file(user, full, folder + path.len);
    if (!file)
        return 0;
    *name = view(file->name);
    *text = (tir_str){file->text, file->size};
    return 1;
}

// ---- compiling while the program runs

static tir_status read_program(struct host *h, enum program p)
{
    char name[512];
    int size = snprintf(name, sizeof name, EXAMPLES "/%s", programs[p].file);
    const struct file *file = size > 0 ? read_file(h, name, (size_t)size) : NULL;
    if (!file)
        return fail(h, "cannot be read", name);
    const tir_rt_device_info *device = tir_rt_device_describe(h->device);
    const char *arch = tir_compile_arch_for(device->arch);
    if (!arch)
        return fail(h, "the GPU is too old", device->name);
    const tir_setting meta = {view(programs[p].meta), view(programs[p].value)};
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.arch = view(arch);
    options.max_shared = device->max_shared;
    options.outputs = 1u << TIR_OUTPUT_OUTLINE | 1u << TIR_OUTPUT_ARTIFACT;
    options.kernel = view(programs[p].kernel);
    options.metas = &meta;
    options.meta_count = 1;
    options.import = import;
    options.import_user = h;
    return tir_compile(view(file->name), (tir_str){file->text, file->size}, &options,
                       &h->outlines[p], &h->error);
}

// Called by the first launch that takes this variant.
static tir_status compile(void *user, tir_str entry, tir_rt_code *code, tir_error *error)
{
    tir_compilation *variant;
    tir_status status = tir_compile_variant(user, entry, &variant, error);
    if (status == TIR_OK) {
        tir_str artifact = tir_compilation_output(variant, TIR_OUTPUT_ARTIFACT);
        status = tir_rt_code_set(code, artifact.ptr, artifact.len, error);
    }
    tir_compilation_destroy(variant);
    return status;
}

static tir_status load(struct host *h)
{
    tir_status status = TIR_OK;
    for (int p = 0; p < PROGRAMS && !status; p++) {
        status = read_program(h, p);
        if (status == TIR_ERR_DIAGNOSED) {
            tir_str text = tir_compilation_diagnostics(h->outlines[p]);
            fprintf(stderr, "%.*s", (int)text.len, text.ptr);
        }
        if (status)
            return status;
        tir_str outline = tir_compilation_output(h->outlines[p], TIR_OUTPUT_OUTLINE);
        status = tir_rt_module_open(h->device, outline.ptr, outline.len, compile, h->outlines[p],
                                    &h->modules[p], &h->error);
        if (!status)
            status = tir_rt_module_kernel(h->modules[p], view(programs[p].kernel), &h->kernels[p],
                                          &h->error);
    }
    return status;
}

// ---- memory

// What has no contents yet is poisoned: all bits are ones, a NaN.
static tir_status allocate(struct host *h, const struct data *data)
{
    tir_status status = TIR_OK;
    for (int t = 0; t < TENSORS && !status; t++) {
        const size_t size = tensor_bytes(t);
        status = tir_rt_buffer_create(h->device, size, &h->buffers[t], &h->error);
        if (!status && data->contents[t])
            status = tir_rt_buffer_write(h->buffers[t], 0, data->contents[t], size, h->stream,
                                         &h->error);
        else if (!status)
            status = tir_rt_buffer_fill(h->buffers[t], 0, 0xff, size, h->stream, &h->error);
    }
    return status;
}

// ---- one token: a graph of eight launches

static tir_status launch(struct host *h, const struct step *step)
{
    tir_rt_arg args[MOST_ARGUMENTS];
    for (uint32_t i = 0; i < step->count; i++) {
        const struct argument *a = &step->arguments[i];
        if (a->rank)
            args[i] = tir_rt_arg_tensor(tir_rt_buffer_address(h->buffers[a->tensor]),
                                        tensors[a->tensor].element, a->rank, a->shape, NULL);
        else if (a->element == TIR_ELEMENT_F32)
            args[i] = tir_rt_arg_float(a->element, a->number);
        else
            args[i] = tir_rt_arg_int(a->element, (int64_t)a->number);
    }
    return tir_rt_launch(h->kernels[step->program], h->stream, args, step->count, NULL, &h->error);
}

// Nothing runs here: the launches are checked, compiled and written down.
static tir_status capture(struct host *h)
{
    tir_status status = tir_rt_capture_begin(h->stream, &h->error);
    for (int i = 0; i < STEPS && !status; i++)
        status = launch(h, &steps[i]);
    return status ? status : tir_rt_capture_end(h->stream, &h->graph, &h->error);
}

// The sizes of a graph are fixed; how long the cache is stands in memory.
static tir_status serve(struct host *h, const struct data *data, float *results)
{
    uint16_t output[BATCH * MODEL];
    tir_status status = TIR_OK;
    for (int token = 0; token < TOKENS && !status; token++) {
        int32_t lengths[BATCH];
        for (int b = 0; b < BATCH; b++)
            lengths[b] = first_lengths[b] + token + 1;
        status = tir_rt_buffer_write(h->buffers[LENGTH], 0, lengths, sizeof lengths, h->stream,
                                     &h->error);
        if (!status)
            status = tir_rt_buffer_write(h->buffers[INPUT], 0, data->inputs[token],
                                         sizeof data->inputs[token], h->stream, &h->error);
        if (!status)
            status = tir_rt_graph_launch(h->graph, h->stream, &h->error);
        if (!status)
            status = tir_rt_buffer_read(h->buffers[OUTPUT], 0, output, sizeof output, h->stream,
                                        &h->error);
        for (int i = 0; i < BATCH * MODEL; i++)
            results[token * BATCH * MODEL + i] = bf16_value(output[i]);
    }
    return status;
}

// ---- the launches again, by tirc

// One file of NumPy; the bits of bf16 are unsigned integers there.
static tir_status save(struct host *h, const char *folder, const struct argument *a,
                       const char *name)
{
    const size_t size = tensor_bytes(a->tensor);
    char path[512], header[128], shape[80];
    int end = 0;
    void *bytes = malloc(size);
    if (!bytes)
        return fail(h, "no memory", name);
    for (uint32_t d = 0; d < a->rank; d++)
        end += snprintf(shape + end, sizeof shape - (size_t)end, "%lld, ", (long long)a->shape[d]);
    const int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 tensors[a->tensor].numpy, shape);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *file = fopen(path, "wb");
    tir_status status =
        tir_rt_buffer_read(h->buffers[a->tensor], 0, bytes, size, h->stream, &h->error);
    if (!file)
        status = fail(h, "cannot be written", path);
    if (!status) {
        fprintf(file, "\x93NUMPY\x01%c%c%c%s%*s\n", 0, 118, 0, header, 117 - length, "");
        fwrite(bytes, 1, size, file);
    }
    if (file)
        fclose(file);
    free(bytes);
    return status;
}

// The sizes of an output, which tirc may not find in the inputs.
static void print_sizes(const tir_artifact_kernel *kernel, const tir_artifact_param *param,
                        const struct argument *a)
{
    for (uint32_t d = 0; d < a->rank; d++)
        if (param->extents[d].dim != TIR_EXTENT_FIXED) {
            const tir_str *name = &kernel->dims[param->extents[d].dim];
            printf(" %.*s=%lld", (int)name->len, name->ptr, (long long)a->shape[d]);
        }
}

static tir_status repeat(struct host *h, const char *folder, const struct step *step)
{
    const tir_artifact_kernel *kernel = tir_rt_kernel_describe(h->kernels[step->program]);
    tir_status status = TIR_OK;
    printf("tirc run " EXAMPLES "/%s --kernel %s -D %s=%s", programs[step->program].file,
           programs[step->program].kernel, programs[step->program].meta,
           programs[step->program].value);
    for (uint32_t i = 0; i < step->count && !status; i++) {
        const struct argument *a = &step->arguments[i];
        const tir_artifact_param *param = &kernel->params[i];
        char name[64];
        if (param->direction == TIR_DIRECTION_OUT)
            print_sizes(kernel, param, a);
        snprintf(name, sizeof name, "%s.%.*s", step->name, (int)param->name.len, param->name.ptr);
        printf(" %.*s=", (int)param->name.len, param->name.ptr);
        if (!a->rank) {
            printf("%.9g", a->number);
            continue;
        }
        status = save(h, folder, a, name);
        if (param->direction != TIR_DIRECTION_OUT)
            printf("@%s/%s.npy", folder, name);
        if (param->direction != TIR_DIRECTION_IN)
            printf("%ssave=%s/%s.again.npy", param->direction == TIR_DIRECTION_OUT ? "" : ",",
                   folder, name);
    }
    printf("\n");
    return status;
}

// ---- all of it

static tir_status run(struct host *h, const char *spec, const struct data *data, float *results,
                      const char *folder)
{
    tir_status status = tir_runtime_create(NULL, &h->runtime, &h->error);
    if (!status)
        status = tir_rt_device_open(h->runtime, spec, &h->device, &h->error);
    if (!status)
        status = load(h);
    if (!status)
        status = tir_rt_stream_create(h->device, &h->stream, &h->error);
    if (!status)
        status = allocate(h, data);
    if (!status)
        status = capture(h);
    if (!status)
        status = serve(h, data, results);
    for (int i = 0; i < STEPS && folder && !status; i++)
        status = repeat(h, folder, &steps[i]);
    if (status)
        fprintf(stderr, "%s: %s\n", tir_status_name(status), h->error.message);
    return status;
}

// In the opposite order of making; destroying NULL does nothing.
static void finish(struct host *h)
{
    tir_rt_graph_destroy(h->graph);
    tir_rt_stream_destroy(h->stream);
    for (int t = 0; t < TENSORS; t++)
        tir_rt_buffer_destroy(h->buffers[t]);
    for (int p = 0; p < PROGRAMS; p++)
        tir_rt_module_destroy(h->modules[p]);
    tir_rt_device_destroy(h->device);
    tir_runtime_destroy(h->runtime);
    for (int p = 0; p < PROGRAMS; p++)
        tir_compilation_destroy(h->outlines[p]);
    for (struct file *file = h->files, *next; file; file = next) {
        next = file->next;
        free(file);
    }
}

// The largest error of each token's outputs, as a share of max(|element|, rms of all).
static bool compare(const float *results, const float *expected, const char *with)
{
    bool passed = true;
    for (int token = 0; token < TOKENS; token++) {
        const float *got = results + token * BATCH * MODEL,
                    *want = expected + token * BATCH * MODEL;
        double square = 0, worst = 0;
        for (int i = 0; i < BATCH * MODEL; i++)
            square += (double)want[i] * want[i];
        const double size = sqrt(square / (BATCH * MODEL));
        for (int i = 0; i < BATCH * MODEL; i++) {
            const double share = fabs(got[i] - (double)want[i]) / fmax(fabs(want[i]), size);
            worst = share <= worst ? worst : share; // a NaN is the largest
        }
        const bool fine = worst <= TOLERANCE;
        printf("token %d against %s: largest error %.5f of %.5f: %s\n", token, with, worst,
               TOLERANCE, fine ? "PASS" : "FAIL");
        passed = passed && fine;
    }
    return passed;
}

int main(int argc, char **argv)
{
    static struct data data;
    static float results[TOKENS * BATCH * MODEL], expected[TOKENS * BATCH * MODEL];
    const char *spec = argc > 1 ? argv[1] : "auto";
    struct host h = {NULL};
    if (argc > 3) {
        fprintf(stderr, "usage: %s [auto|cuda|cuda:N|emu [FOLDER]]\n", argv[0]);
        return 2;
    }
    if (!make_data(&data))
        return 1;
    bool passed = run(&h, spec, &data, results, argc == 3 ? argv[2] : NULL) == TIR_OK;
    if (passed) {
        const tir_rt_device_info *device = tir_rt_device_describe(h.device);
        printf("%s: %d launches in a graph, %d tokens of %d sequences\n", device->name, STEPS,
               TOKENS, BATCH);
        reference(&data, expected);
        passed = compare(results, expected, "double precision");
    }
    if (passed && tir_rt_device_describe(h.device)->kind == TIR_RT_CUDA) {
        struct host emulator = {NULL};
        passed = run(&emulator, "emu", &data, expected, NULL) == TIR_OK &&
                 compare(results, expected, "the emulator");
        finish(&emulator);
    }
    finish(&h);
    free_data(&data);
    puts(passed ? "PASS" : "FAIL");
    return !passed;
}
