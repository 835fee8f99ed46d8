// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles a kernel at run time and launches it: tabulates a function that is given on the command
// line, on the first GPU or, without one, on the emulator. The source is read once; of the kernel's
// variants only the one that the launch takes is compiled.
//
//     jit_host 'exp(-x * x)' [auto|cuda|cuda:N|emu]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tir/compiler.h>
#include <tir/runtime.h>

enum { COUNT = 9 }; // x = -2, -1.5, ... 2

static const char kernel_source[] = "kernel tabulate(X: f32[N], Y: out f32[N])\n"
                                    "{\n"
                                    "    for i in tiles(N by 1024) {\n"
                                    "        let x = X[i:+1024];\n"
                                    "        Y[i:+1024] = %s;\n"
                                    "    }\n"
                                    "}\n";

struct host { // what must be given back in the end; NULL: not there yet
    tir_compilation *outline;
    tir_runtime *runtime;
    tir_rt_device *device;
    tir_rt_module *module;
    tir_rt_buffer *x, *y;
    tir_error error;
};

static tir_str view(const char *text)
{
    return (tir_str){text, strlen(text)};
}

static tir_status open_device(struct host *h, const char *spec)
{
    tir_status status = tir_runtime_create(NULL, &h->runtime, &h->error);
    if (status == TIR_OK)
        status = tir_rt_device_open(h->runtime, spec, &h->device, &h->error);
    return status;
}

// Puts the expression into the kernel and reads it, for the device.
static tir_status read_kernel(struct host *h, const char *expression)
{
    char source[1024];
    int size = snprintf(source, sizeof source, kernel_source, expression);
    if (size < 0 || (size_t)size >= sizeof source) {
        h->error = (tir_error){TIR_ERR_INVALID, 0, "the expression is too long"};
        return TIR_ERR_INVALID;
    }
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    const tir_rt_device_info *device = tir_rt_device_describe(h->device);
    const char *arch = tir_compile_arch_for(device->arch);
    if (!arch) {
        h->error = (tir_error){TIR_ERR_UNSUPPORTED, 0, "the GPU is too old"};
        return TIR_ERR_UNSUPPORTED;
    }
    options.arch = view(arch);
    options.max_shared = device->max_shared;
    options.outputs = 1u << TIR_OUTPUT_OUTLINE | 1u << TIR_OUTPUT_ARTIFACT;
    return tir_compile(view("expression"), (tir_str){source, (size_t)size}, &options, &h->outline,
                       &h->error);
}

// Called by the first launch that takes this variant.
static tir_status compile(void *user, tir_str entry, tir_rt_code *code, tir_error *error)
{
    tir_compilation *variant;
    tir_status status = tir_compile_variant(user, entry, &variant, error);
    if (status == TIR_ERR_DIAGNOSED) {
        tir_str text = tir_compilation_diagnostics(variant);
        fprintf(stderr, "%.*s", (int)text.len, text.ptr);
    } else if (status == TIR_OK) {
        tir_str artifact = tir_compilation_output(variant, TIR_OUTPUT_ARTIFACT);
        status = tir_rt_code_set(code, artifact.ptr, artifact.len, error);
    }
    tir_compilation_destroy(variant);
    return status;
}

static tir_status load(struct host *h, tir_rt_kernel **kernel)
{
    tir_str outline = tir_compilation_output(h->outline, TIR_OUTPUT_OUTLINE);
    tir_status status = tir_rt_module_open(h->device, outline.ptr, outline.len, compile, h->outline,
                                           &h->module, &h->error);
    if (status == TIR_OK)
        status = tir_rt_module_kernel(h->module, view("tabulate"), kernel, &h->error);
    return status;
}

static tir_status launch(struct host *h, tir_rt_kernel *kernel, const float *x, float *y)
{
    const int64_t shape[] = {COUNT};
    tir_status status = tir_rt_buffer_create(h->device, COUNT * sizeof *x, &h->x, &h->error);
    if (status == TIR_OK)
        status = tir_rt_buffer_create(h->device, COUNT * sizeof *y, &h->y, &h->error);
    if (status == TIR_OK)
        status = tir_rt_buffer_write(h->x, 0, x, COUNT * sizeof *x, NULL, &h->error);
    if (status != TIR_OK)
        return status;
    // Arguments are checked against what the artifact says of the kernel: number, type, shape.
    const tir_rt_arg args[] = {
        tir_rt_arg_tensor(tir_rt_buffer_address(h->x), TIR_ELEMENT_F32, 1, shape, NULL),
        tir_rt_arg_tensor(tir_rt_buffer_address(h->y), TIR_ELEMENT_F32, 1, shape, NULL),
    };
    status = tir_rt_launch(kernel, NULL, args, 2, NULL, &h->error);
    if (status == TIR_OK)
        status = tir_rt_buffer_read(h->y, 0, y, COUNT * sizeof *y, NULL, &h->error);
    return status;
}

static tir_status tabulate(struct host *h, const char *expression, const char *spec)
{
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = -2 + 0.5f * (float)i;
    tir_rt_kernel *kernel;
    tir_status status = open_device(h, spec);
    if (status == TIR_OK)
        status = read_kernel(h, expression);
    if (status == TIR_OK)
        status = load(h, &kernel);
    if (status == TIR_OK)
        status = launch(h, kernel, x, y);
    for (int i = 0; status == TIR_OK && i < COUNT; i++)
        printf("%5.2f  %9.6f\n", (double)x[i], (double)y[i]);
    return status;
}

// In the opposite order of making; destroying NULL does nothing.
static void finish(struct host *h)
{
    tir_rt_buffer_destroy(h->y);
    tir_rt_buffer_destroy(h->x);
    tir_rt_module_destroy(h->module);
    tir_rt_device_destroy(h->device);
    tir_runtime_destroy(h->runtime);
    tir_compilation_destroy(h->outline);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s EXPRESSION-IN-x [auto|cuda|cuda:N|emu]\n", argv[0]);
        return 2;
    }
    struct host h = {NULL};
    tir_status status = tabulate(&h, argv[1], argc == 3 ? argv[2] : "auto");
    if (status == TIR_ERR_DIAGNOSED) {
        tir_str text = tir_compilation_diagnostics(h.outline);
        fprintf(stderr, "%.*s", (int)text.len, text.ptr);
    } else if (status != TIR_OK) {
        fprintf(stderr, "%s: %s\n", tir_status_name(status), h.error.message);
    }
    finish(&h);
    return status == TIR_OK ? 0 : status == TIR_ERR_DIAGNOSED ? 2 : 1;
}
