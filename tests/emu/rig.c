// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the emulator's tests share.

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

static void keep(void *user, const char *text, size_t size)
{
    struct rig *r = user;
    assert_true(size < sizeof r->printed - r->printed_size);
    memcpy(r->printed + r->printed_size, text, size);
    r->printed_size += size;
    r->printed[r->printed_size] = 0;
}

void rig_open(struct rig *r)
{
    rig_open_with(r, EMU_LAZY, 0);
}

void rig_open_with(struct rig *r, enum emu_policy policy, uint64_t seed)
{
    rig_open_traced(r, policy, seed, NULL, NULL);
}

void rig_open_traced(struct rig *r, enum emu_policy policy, uint64_t seed,
                     void (*trace)(void *, const struct emu_trace_event *), void *user)
{
    const struct emu_options options = {.check = EMU_CHECK_FULL,
                                        .policy = policy,
                                        .seed = seed,
                                        .print = keep,
                                        .print_user = r,
                                        .trace = trace,
                                        .trace_user = user,
                                        .step_limit = 10000000,
                                        .memory_limit = (uint64_t)1 << 28};
    rig_open_options(r, &options);
}

void rig_open_options(struct rig *r, const struct emu_options *options)
{
    memset(r, 0, sizeof *r);
    if (emu_create(options, &r->emu, &r->error))
        fail_msg("emu_create: %s", r->error.message);
}

void rig_close(struct rig *r)
{
    emu_destroy(r->emu);
}

// Adds the text to the files of the folder that RIG_PTX names, for tests/emu/assemble.py.
static void keep_ptx(const char *ptx)
{
    static int count;
    const char *folder = getenv("RIG_PTX");
    char path[512];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%05d.ptx", folder, count++);
    FILE *f = fopen(path, "wb");
    if (!f)
        fail_msg("cannot open %s", path);
    fputs(ptx, f);
    fclose(f);
}

tir_status rig_try_load(struct rig *r, const char *ptx)
{
    keep_ptx(ptx);
    return emu_load(r->emu, (tir_str){ptx, strlen(ptx)}, &r->module, &r->error);
}

void rig_load(struct rig *r, const char *ptx)
{
    if (rig_try_load(r, ptx))
        fail_msg("emu_load: %s", r->error.message);
}

void rig_load_file(struct rig *r, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", PTX_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *text = calloc((size_t)size + 1, 1);
    assert_int_equal(fread(text, 1, (size_t)size, f), size);
    fclose(f);
    rig_load(r, text);
    free(text);
}

uint64_t rig_buffer(struct rig *r, const void *bytes, size_t size)
{
    uint64_t address = 0;
    if (emu_alloc(r->emu, size, &address, &r->error))
        fail_msg("emu_alloc: %s", r->error.message);
    if (bytes && emu_write(r->emu, address, bytes, size, &r->error))
        fail_msg("emu_write: %s", r->error.message);
    return address;
}

void rig_read(struct rig *r, void *to, uint64_t from, size_t size)
{
    if (emu_read(r->emu, to, from, size, &r->error))
        fail_msg("emu_read: %s", r->error.message);
}

void rig_param(struct rig *r, const void *value, size_t size)
{
    r->params_size = (r->params_size + size - 1) / size * size;
    memcpy(r->params + r->params_size, value, size);
    r->params_size += size;
}

void rig_param_u32(struct rig *r, uint32_t value)
{
    rig_param(r, &value, sizeof value);
}

void rig_param_u64(struct rig *r, uint64_t value)
{
    rig_param(r, &value, sizeof value);
}

tir_status rig_try_run(struct rig *r, const char *kernel, uint32_t grid, uint32_t block)
{
    const struct emu_launch launch = {
        .grid = {grid, r->grid_y ? r->grid_y : 1, 1},
        .block = {block, 1, 1},
        .cluster = {r->cluster, 1, 1},
        .preferred = {r->preferred, r->preferred > 0, r->preferred > 0},
        .shared_bytes = r->shared_bytes,
        .params = r->params,
        .params_size = r->params_size};
    r->params_size = 0;
    return emu_run(r->emu, r->module, kernel, &launch, &r->error);
}

void rig_run(struct rig *r, const char *kernel, uint32_t grid, uint32_t block)
{
    if (rig_try_run(r, kernel, grid, block))
        fail_msg("emu_run: %s", r->error.message);
}

static const char each_head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry each(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .b64 %p<4>; .reg .u32 %i; .reg .u64 %j; .reg .b64 %a<8>, %out; .reg .b32 %b<8>;\n"
    ".reg .b16 %c<8>; .reg .f32 %f<8>; .reg .f64 %d<8>; .reg .b16 %h<8>; .reg .pred %q<8>;\n"
    "ld.param.u64 %p0, [src]; ld.param.u64 %p1, [dst]; mov.u32 %i, %tid.x;\n"
    "mul.wide.u32 %j, %i, 32; add.s64 %p0, %p0, %j; mul.wide.u32 %j, %i, 8;\n"
    "add.s64 %p1, %p1, %j; mov.b64 %out, 0;\n"
    "ld.global.v2.b64 {%a0, %a1}, [%p0]; ld.global.v2.b64 {%a2, %a3}, [%p0+16];\n";

void rig_turn(const char *ptx, uint32_t block, void *data, size_t size)
{
    struct rig r;
    rig_open(&r);
    rig_load(&r, ptx);
    const uint64_t buffer = rig_buffer(&r, data, size);
    rig_param_u64(&r, buffer);
    rig_run(&r, "k", 1, block);
    rig_read(&r, data, buffer, size);
    rig_close(&r);
}

void rig_each(const char *body, const uint64_t sources[][4], uint32_t lanes, uint64_t *out)
{
    struct rig r;
    char text[8192];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", each_head);
    for (int i = 0; i < 4; i++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at,
                             "cvt.u32.u64 %%b%d, %%a%d; cvt.u16.u64 %%c%d, %%a%d;\n"
                             "mov.b16 %%h%d, %%c%d; mov.b32 %%f%d, %%b%d; mov.b64 %%d%d, %%a%d;\n",
                             i, i, i, i, i, i, i, i, i, i);
    snprintf(text + at, sizeof text - at, "%s\nst.global.b64 [%%p1], %%out;\nret;\n}\n", body);
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t src = rig_buffer(&r, sources, lanes * sizeof sources[0]);
    const uint64_t dst = rig_buffer(&r, NULL, lanes * sizeof *out);
    rig_param_u64(&r, src);
    rig_param_u64(&r, dst);
    rig_run(&r, "each", 1, lanes);
    rig_read(&r, out, dst, lanes * sizeof *out);
    rig_close(&r);
}

uint64_t rig_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
