// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far the sums of matrix products are from those of a GPU, on normally distributed values.
//
// Every thread converts its share of A, B and C from single precision, so the GPU and the emulator
// multiply the same values. Where in a matrix a value stands does not matter: the same kernel run
// by the emulator on absolute values gives sum|a*b| + |c| for each result, which is what
// differences are measured against. With half-precision results the unit is the last bit of the
// result.

#include <math.h>
#include <stdio.h>

#include "hardware.h"
#include "rig.h"

enum { LANES = 4096, WORDS = 32, MAX_RESULTS = 8, MAX_TEXT = 16384 };

static const struct form {
    const char *insn; // up to the types
    const char *type; // of A and B
    bool half;        // C and D are f16, else f32
    int a, b;         // registers of A and B; 0 of A: both matrices are in shared memory
} forms[] = {
    {"mma.sync.aligned.m16n8k16.row.col", "f16", false, 4, 2},
    {"mma.sync.aligned.m16n8k16.row.col", "f16", true, 4, 2},
    {"mma.sync.aligned.m16n8k8.row.col", "f16", false, 2, 1},
    {"mma.sync.aligned.m16n8k16.row.col", "bf16", false, 4, 2},
    {"mma.sync.aligned.m16n8k8.row.col", "bf16", false, 2, 1},
    {"mma.sync.aligned.m16n8k8.row.col", "tf32", false, 4, 2},
    {"mma.sync.aligned.m16n8k4.row.col", "tf32", false, 2, 1},
    {"mma.sync.aligned.m16n8k32.row.col", "e4m3", false, 4, 2},
    {"mma.sync.aligned.m16n8k32.row.col", "e4m3", true, 4, 2},
    {"wgmma.mma_async.sync.aligned.m64n16k16", "f16", false, 0, 0},
    {"wgmma.mma_async.sync.aligned.m64n16k16", "f16", true, 0, 0},
    {"wgmma.mma_async.sync.aligned.m64n16k16", "bf16", false, 0, 0},
    {"wgmma.mma_async.sync.aligned.m64n16k8", "tf32", false, 0, 0},
    {"wgmma.mma_async.sync.aligned.m64n16k32", "e4m3", false, 0, 0},
    {"wgmma.mma_async.sync.aligned.m64n16k32", "e4m3", true, 0, 0},
};

// Words of a thread's share: of A and B together 20 at most, of C 8 at most.
enum { C_AT = 24, WGMMA_WORDS = 5 };

struct text {
    char *at, *end;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->at += vsnprintf(t->at, (size_t)(t->end - t->at), format, args);
    va_end(args);
}

static int results_of(const struct form *f)
{
    return f->a ? 4 : MAX_RESULTS;
}

// Register %a<i> becomes elements of A or B made of the next words of the share.
static void put_element(struct text *t, const struct form *f, int i)
{
    if (strcmp(f->type, "tf32") == 0)
        put(t, "ld.global.f32 %%x0, [%%src+%d]; cvt.rna.tf32.f32 %%a%d, %%x0;\n", i * 4, i);
    else if (strcmp(f->type, "e4m3") == 0)
        put(t,
            "ld.global.v4.f32 {%%x0, %%x1, %%x2, %%x3}, [%%src+%d];\n"
            "cvt.rn.satfinite.e4m3x2.f32 %%h0, %%x1, %%x0;\n"
            "cvt.rn.satfinite.e4m3x2.f32 %%h1, %%x3, %%x2; mov.b32 %%a%d, {%%h0, %%h1};\n",
            i * 16, i);
    else
        put(t, "ld.global.v2.f32 {%%x0, %%x1}, [%%src+%d]; cvt.rn.%sx2.f32 %%a%d, %%x1, %%x0;\n",
            i * 8, f->type, i);
}

static void put_list(struct text *t, const char *name, int from, int count)
{
    for (int i = 0; i < count; i++)
        put(t, "%s%%%s%d%s", i ? ", " : "{", name, from + i, i + 1 < count ? "" : "}");
}

static void put_mma(struct text *t, const struct form *f)
{
    const char *const c = f->half ? "c" : "d", *const type = f->half ? "f16" : "f32";
    put(t, "%s.%s.%s.%s.%s ", f->insn, type, f->type, f->type, type);
    const int count = f->half ? results_of(f) / 2 : results_of(f);
    put_list(t, c, 0, count);
    put(t, ", ");
    put_list(t, "a", 0, f->a);
    put(t, ", ");
    put_list(t, "a", f->a, f->b);
    put(t, ", ");
    put_list(t, c, 0, count);
    put(t, ";\n");
}

// A is 2048 bytes and B 512 behind it, both K-major and not swizzled: 128 bytes from one core
// matrix to the next along k, 256 to the next along m or n.
static void put_wgmma(struct text *t, const struct form *f)
{
    put(t, "mov.u32 %%i0, shared; mov.u32 %%i1, %%tid.x; mad.lo.u32 %%i1, %%i1, 4, %%i0;\n");
    for (int i = 0; i < WGMMA_WORDS; i++)
        put(t, "st.shared.b32 [%%i1+%d], %%a%d;\n", i * 512, i);
    put(t, "fence.proxy.async; bar.sync 0; shr.u32 %%i0, %%i0, 4; cvt.u64.u32 %%j, %%i0;\n"
           "add.u64 %%da, %%j, 0x1000080000; add.u64 %%db, %%da, 128;\n"
           "wgmma.fence.sync.aligned;\n");
    put(t, "%s.%s.%s.%s ", f->insn, f->half ? "f16" : "f32", f->type, f->type);
    put_list(t, f->half ? "c" : "d", 0, f->half ? MAX_RESULTS / 2 : MAX_RESULTS);
    const bool major = f->type[0] == 'f' || f->type[0] == 'b';
    put(t,
        ", %%da, %%db, 1, 1, 1%s;\n"
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
        major ? ", 0, 0" : "");
}

static void write_form(const struct form *f, char *text)
{
    struct text t = {text, text + MAX_TEXT};
    put(&t,
        ".version %s\n.target sm_90a\n.address_size 64\n"
        ".visible .entry each(.param .u64 src, .param .u64 dst)\n{\n"
        ".shared .align 1024 .b8 shared[2560];\n"
        ".reg .b32 %%a<8>, %%c<4>, %%i<3>; .reg .b16 %%h<2>; .reg .f32 %%x<4>, %%d<8>;\n"
        ".reg .b64 %%src, %%dst, %%j, %%da, %%db;\n"
        "ld.param.u64 %%src, [src]; ld.param.u64 %%dst, [dst];\n"
        "mov.u32 %%i0, %%ctaid.x; mov.u32 %%i1, %%ntid.x; mov.u32 %%i2, %%tid.x;\n"
        "mad.lo.u32 %%i0, %%i0, %%i1, %%i2; mul.wide.u32 %%j, %%i0, %d; add.u64 %%src, %%src, %%j;\n"
        "mul.wide.u32 %%j, %%i0, %d; add.u64 %%dst, %%dst, %%j;\n",
        f->half && f->type[0] == 'e' ? "8.7" : "8.4", WORDS * 4, MAX_RESULTS * 4);
    for (int i = 0; i < (f->a ? f->a + f->b : WGMMA_WORDS); i++)
        put_element(&t, f, i);
    for (int i = 0; i < results_of(f); i++)
        put(&t, "ld.global.f32 %%d%d, [%%src+%d];\n", i, (C_AT + i) * 4);
    for (int i = 0; f->half && i < results_of(f) / 2; i++)
        put(&t, "cvt.rn.f16x2.f32 %%c%d, %%d%d, %%d%d;\n", i, 2 * i + 1, 2 * i);
    (f->a ? put_mma : put_wgmma)(&t, f);
    for (int i = 0; f->half && i < results_of(f) / 2; i++)
        put(&t, "mov.b32 {%%h0, %%h1}, %%c%d; cvt.f32.f16 %%d%d, %%h0; cvt.f32.f16 %%d%d, %%h1;\n",
            i, 2 * i, 2 * i + 1);
    for (int i = 0; i < results_of(f); i++)
        put(&t, "st.global.f32 [%%dst+%d], %%d%d;\n", i * 4, i);
    put(&t, "ret;\n}\n");
}

typedef float share[WORDS];
typedef float result[MAX_RESULTS];

static unsigned threads_of(const struct form *f)
{
    return f->a ? 32 : 128;
}

static bool emulate(const struct form *f, const char *text, share *src, result *out)
{
    struct rig r;
    rig_open(&r);
    tir_status status = rig_try_load(&r, text);
    if (!status) {
        const uint64_t from = rig_buffer(&r, src, LANES * sizeof *src);
        const uint64_t to = rig_buffer(&r, out, LANES * sizeof *out);
        rig_param_u64(&r, from);
        rig_param_u64(&r, to);
        status = rig_try_run(&r, "each", LANES / threads_of(f), threads_of(f));
        if (!status)
            rig_read(&r, out, to, LANES * sizeof *out);
    }
    if (status)
        printf("%s: emulator: %s\n", f->insn, r.error.message);
    rig_close(&r);
    return !status;
}

// What a difference of 1 is: see above. `whole` is sum|a*b| + |c|.
static double unit_of(const struct form *f, float value, float whole)
{
    if (!f->half)
        return ldexp(whole, -24);
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, (exponent < -13 ? -13 : exponent) - 11);
}

static void report(const struct form *f, result *emu, result *gpu, result *whole)
{
    double most = 0, squares = 0, mean = 0;
    int count = 0, equal = 0;
    for (int i = 0; i < LANES; i++) {
        for (int k = 0; k < results_of(f); k++) {
            const double off = ((double)gpu[i][k] - emu[i][k]) / unit_of(f, emu[i][k], whole[i][k]);
            most = fabs(off) > most ? fabs(off) : most;
            squares += off * off;
            mean += emu[i][k] < 0 ? -off : off; // positive: further from zero
            equal += off == 0;
            count++;
        }
    }
    printf("%-40s %-5s %-5s %8.3f %8.4f %8.4f %6.1f%%\n", f->insn, f->type, f->half ? "f16" : "f32",
           most, sqrt(squares / count), mean / count, 100.0 * equal / count);
}

// Twelve uniform values less their mean are as good as normal here, and the same on every machine.
static float normal(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += ldexp((double)(rig_random(seed) >> 11), -53);
    return (float)sum;
}

int hardware_sums(struct gpu *g)
{
    static char text[MAX_TEXT];
    static share src[LANES], positive[LANES];
    static result emu[LANES], whole[LANES], gpu[LANES];
    uint64_t seed = 1;
    int failed = 0;
    for (int i = 0; i < LANES; i++) {
        for (int k = 0; k < WORDS; k++) {
            src[i][k] = normal(&seed);
            positive[i][k] = fabsf(src[i][k]);
        }
    }
    printf("GPU less emulator, in units of 2^-24 (sum|a*b| + |c|), or of the last bit of f16:\n"
           "%-40s %-5s %-5s %8s %8s %8s %7s\n",
           "instruction", "A, B", "C, D", "largest", "RMS", "outward", "equal");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *f = &forms[i];
        write_form(f, text);
        if (!emulate(f, text, src, emu) || !emulate(f, text, positive, whole)) {
            failed++;
            continue;
        }
        if (!g)
            continue;
        const int status = gpu_run(g, text,
                                   &(struct gpu_job){LANES / threads_of(f), threads_of(f), src,
                                                     sizeof src, gpu, sizeof gpu});
        if (status)
            printf("%s %s: the driver says %d\n", f->insn, f->type, status);
        else
            report(f, emu, gpu, whole);
        failed += status != 0;
    }
    printf(g ? "%d forms failed\n" : "no GPU; %d forms failed\n", failed);
    return failed ? 1 : 0;
}
