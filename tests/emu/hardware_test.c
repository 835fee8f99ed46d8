// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every instruction of insns.def and warps.def, on many inputs, against what a GPU computes.
//
// hardware.golden holds a hash of the results of an H200 for each instruction, so the emulator is
// held to hardware everywhere. On a machine with a GPU the same PTX runs there as well and results
// are compared one by one; with --golden it prints a new file instead. Instructions that hardware
// only approximates have no hash: without a GPU they are run but not compared. An instruction whose
// results nobody has recorded yet is run, printed and counted. With --sums it measures matrix
// products instead (hardware_sums.c).
//
// One module holds one instruction, so that one the driver does not accept costs only itself.

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hardware.h"
#include "rig.h"

enum { LANES = 2048, MAX_TEXT = 16384 };

struct insn {
    const char *op, *sig, *tail;
    int tolerance;
};

static const struct insn insns[] = {
#define INSN(op, sig, tail, tolerance) {op, sig, tail, tolerance},
#include "insns.def"
};

static const struct {
    const char *name, *body;
    unsigned threads; // of a CTA
} bodies[] = {
#define BODY(name, body)      {name, body, 32},
#define WARPGROUP(name, body) {name, body, 128},
#include "warps.def"
};

static const char head[] =
    ".version 8.4\n.target sm_90a\n.address_size 64\n"
    ".visible .entry each(.param .u64 src, .param .u64 dst)\n{\n"
    ".shared .align 1024 .b8 shared[8192];\n"
    ".reg .b64 %p<4>; .reg .b32 %i<4>; .reg .u64 %j; .reg .b64 %a<16>, %out; .reg .b32 %b<24>;\n"
    ".reg .b16 %c<24>; .reg .f32 %f<16>; .reg .f64 %d<16>; .reg .pred %q<8>;\n"
    "ld.param.u64 %p0, [src]; ld.param.u64 %p1, [dst]; mov.u32 %i0, %tid.x;\n"
    "mov.u32 %i1, %ctaid.x; mov.u32 %i2, %ntid.x; mad.lo.u32 %i0, %i1, %i2, %i0;\n"
    "mov.u32 %i1, %laneid;\n"
    "mul.wide.u32 %j, %i0, 32; add.s64 %p0, %p0, %j; mul.wide.u32 %j, %i0, 8;\n"
    "add.s64 %p1, %p1, %j; mov.b64 %out, 0;\n"
    "ld.global.v2.b64 {%a0, %a1}, [%p0]; ld.global.v2.b64 {%a2, %a3}, [%p0+16];\n";

// Loads every source in every width, so that a body may name what it likes.
static size_t begin(char *text)
{
    size_t at = (size_t)snprintf(text, MAX_TEXT, "%s", head);
    for (int i = 0; i < 4; i++)
        at += (size_t)snprintf(text + at, MAX_TEXT - at,
                               "cvt.u32.u64 %%b%d, %%a%d; cvt.u16.u64 %%c%d, %%a%d;\n"
                               "mov.b32 %%f%d, %%b%d; mov.b64 %%d%d, %%a%d;\n",
                               i, i, i, i, i, i, i, i);
    return at;
}

static char register_of(char kind)
{
    switch (kind) {
    case 'h':
        return 'c';
    case 'w':
        return 'b';
    case 'l':
        return 'a';
    case 'p':
        return 'q';
    default:
        return kind;
    }
}

static void write_insn(const struct insn *n, char *text)
{
    size_t at = begin(text);
    at += (size_t)snprintf(text + at, MAX_TEXT - at, "%s %%%c7", n->op, register_of(n->sig[0]));
    for (int i = 1; n->sig[i]; i++)
        at += (size_t)snprintf(text + at, MAX_TEXT - at, ", %%%c%d", register_of(n->sig[i]), i - 1);
    at += (size_t)snprintf(text + at, MAX_TEXT - at, "%s;\n", n->tail);
    const char *store = "";
    switch (n->sig[0]) {
    case 'h':
        store = "cvt.u64.u16 %out, %c7;";
        break;
    case 'w':
        store = "cvt.u64.u32 %out, %b7;";
        break;
    case 'l':
        store = "mov.b64 %out, %a7;";
        break;
    case 'f':
        store = "mov.b32 %b7, %f7; cvt.u64.u32 %out, %b7;";
        break;
    case 'd':
        store = "mov.b64 %out, %d7;";
        break;
    case 'p':
        store = "selp.u64 %out, 1, 0, %q7;";
        break;
    }
    snprintf(text + at, MAX_TEXT - at, "%s\nst.global.b64 [%%p1], %%out;\nret;\n}\n", store);
}

static const uint64_t ints[] = {0,
                                1,
                                2,
                                3,
                                4,
                                5,
                                7,
                                8,
                                9,
                                15,
                                16,
                                17,
                                31,
                                32,
                                33,
                                63,
                                64,
                                65,
                                127,
                                128,
                                255,
                                256,
                                0x7fff,
                                0x8000,
                                0xffff,
                                0x10000,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                0x100000000,
                                0x7fffffffffffffff,
                                0x8000000000000000,
                                0xffffffffffffffff,
                                0xffffff80,
                                0xffffffffffff8000};

static const uint64_t halves[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                                  0x7fff, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x3f80,
                                  0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x007f, 0x4500,
                                  0x40a0, 0x7f7f, 0x4248, 0x0078, 0x007e, 0x7f7e, 0x3800};

static const uint64_t floats[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff,
    0xffabcdef, 0x7fabcdef, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0x3f000000, 0x4effffff,
    0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0xdf000000, 0x42fe0000, 0x43000000, 0xc3000000,
    0x47ffe000, 0x477ff000, 0x43e00000, 0x40200000, 0x40600000, 0xc0200000, 0x3effffff, 0x33800000};

static const double doubles[] = {
    0,       -0.0,  1,    -1,           INFINITY, -INFINITY,    NAN,          5e-324, 2.2e-308,
    1.7e308, 0.5,   1.5,  2.5,          -2.5,     2147483647.5, 4294967296.0, 9.3e18, -9.3e18,
    1.9e19,  65520, -NAN, 3.4028236e38, 1e-45,    1.4e-46,      127.5,        -128.5, 255.5};

// Sources: edge values of the kind the instruction computes with, mixed with random bits.
static uint64_t source(const char *op, uint64_t *seed)
{
    const uint64_t r = rig_random(seed);
    const int choice = (int)(rig_random(seed) % 4);
    const bool is_f64 = strstr(op, "f64") != NULL, is_f32 = strstr(op, "f32") != NULL;
    if (choice == 0)
        return r;
    if (strstr(op, "f16") && (!is_f32 || choice == 1)) {
        const uint64_t lo = halves[r % (sizeof halves / 8)],
                       hi = halves[(r >> 8) % (sizeof halves / 8)];
        return choice == 1 ? hi << 16 | lo : (r & 0x3fff3fff) + 0x20002000;
    }
    if (is_f64 && (!is_f32 || choice == 1)) {
        double x = doubles[r % (sizeof doubles / 8)];
        if (choice == 2)
            x = (double)(int64_t)r / (double)(1u << (rig_random(seed) % 32));
        uint64_t bits;
        memcpy(&bits, &x, 8);
        return bits;
    }
    if (is_f32) {
        float x = (float)(int64_t)r / (float)((uint64_t)1 << (rig_random(seed) % 63));
        uint32_t bits;
        memcpy(&bits, &x, 4);
        return choice == 1 ? floats[r % (sizeof floats / 8)] : choice == 2 ? bits : r & 0xffffffff;
    }
    return choice == 3 ? r >> (rig_random(seed) % 64) : ints[r % (sizeof ints / 8)];
}

// --- the GPU, through the few calls of the driver that this needs ---

static void *symbol(void *library, const char *name)
{
    void *p = dlsym(library, name);
    if (!p) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        exit(1);
    }
    return p;
}

// POSIX lets a function pointer be read out of an object pointer; C does not, so through memory.
#define GET(to, library, name)                   \
    do {                                         \
        void *found = symbol((library), (name)); \
        memcpy(&(to), &found, sizeof found);     \
    } while (0)

bool gpu_open(struct gpu *g)
{
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*set)(void *);
    int (*alloc)(uint64_t *, size_t);
    int device;
    void *context;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    GET(init, library, "cuInit");
    GET(get, library, "cuDeviceGet");
    GET(retain, library, "cuDevicePrimaryCtxRetain");
    GET(set, library, "cuCtxSetCurrent");
    GET(alloc, library, "cuMemAlloc_v2");
    GET(g->load, library, "cuModuleLoadData");
    GET(g->unload, library, "cuModuleUnload");
    GET(g->function, library, "cuModuleGetFunction");
    GET(g->to_device, library, "cuMemcpyHtoD_v2");
    GET(g->to_host, library, "cuMemcpyDtoH_v2");
    GET(g->launch, library, "cuLaunchKernel");
    GET(g->synchronize, library, "cuCtxSynchronize");
    return !init(0) && !get(&device, 0) && !retain(&context, device) && !set(context) &&
           !alloc(&g->src, GPU_SOURCE) && !alloc(&g->dst, GPU_RESULT);
}

int gpu_run(struct gpu *g, const char *text, const struct gpu_job *job)
{
    void *module, *function;
    void *params[] = {&g->src, &g->dst};
    int status = g->load(&module, text);
    if (status)
        return status;
    status = g->function(&function, module, "each");
    status = status ? status : g->to_device(g->src, job->src, job->src_size);
    status = status
                 ? status
                 : g->launch(function, job->grid, 1, 1, job->threads, 1, 1, 0, NULL, params, NULL);
    status = status ? status : g->synchronize();
    status = status ? status : g->to_host(job->out, g->dst, job->out_size);
    g->unload(module);
    return status;
}

// --- comparing ---

static bool emu_each(const char *name, const char *text, unsigned threads, uint64_t (*src)[4],
                     uint64_t *out)
{
    struct rig r;
    rig_open(&r);
    tir_status status = rig_try_load(&r, text);
    if (!status) {
        const uint64_t from = rig_buffer(&r, src, LANES * 32), to = rig_buffer(&r, NULL, LANES * 8);
        rig_param_u64(&r, from);
        rig_param_u64(&r, to);
        status = rig_try_run(&r, "each", LANES / threads, threads);
        if (!status)
            rig_read(&r, out, to, LANES * 8);
    }
    if (status)
        printf("%s: emulator: %s\n", name, r.error.message);
    rig_close(&r);
    return !status;
}

static bool close_enough(uint64_t a, uint64_t b, char kind, int tolerance)
{
    if (a == b)
        return true;
    if (kind == 'd') {
        double x, y;
        memcpy(&x, &a, 8);
        memcpy(&y, &b, 8);
        return x != x && y != y; // what a NaN of double precision holds is not defined
    }
    if (kind == 'f' && tolerance) {
        const int64_t x = a & 0x80000000 ? -(int64_t)(a & 0x7fffffff) : (int64_t)a;
        const int64_t y = b & 0x80000000 ? -(int64_t)(b & 0x7fffffff) : (int64_t)b;
        return llabs(x - y) <= tolerance;
    }
    return false;
}

static int failed, passed, unrecorded;
static char golden[262144]; // lines of a hash and a name; empty when a new file is made

static uint64_t hash_of(const uint64_t *v, char kind)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < LANES; i++) {
        double x;
        memcpy(&x, &v[i], 8);
        h = (h ^ (kind == 'd' && x != x ? 0 : v[i])) * 1099511628211u;
        h ^= h >> 29;
    }
    return h;
}

static void check_golden(const char *name, uint64_t hash)
{
    char line[160];
    snprintf(line, sizeof line, "\n%016llx %s\n", (unsigned long long)hash, name);
    if (strstr(golden, line)) {
        passed++;
        return;
    }
    snprintf(line, sizeof line, " %s\n", name);
    if (!strstr(golden, line)) {
        printf("%s: not recorded\n", name);
        unrecorded++;
        return;
    }
    printf("%s: results are not those of hardware.golden\n", name);
    failed++;
}

static void check_gpu(struct gpu *g, const char *name, const char *text, unsigned threads,
                      char kind, int tolerance, uint64_t (*src)[4], const uint64_t *emu)
{
    static uint64_t gpu[LANES];
    const int status = gpu_run(
        g, text, &(struct gpu_job){LANES / threads, threads, src, LANES * 32, gpu, LANES * 8});
    if (status) {
        printf("%s: the driver says %d\n", name, status);
        failed++;
        return;
    }
    if (!golden[0]) {
        if (!tolerance)
            printf("%016llx %s\n", (unsigned long long)hash_of(gpu, kind), name);
        return;
    }
    int wrong = 0;
    for (int i = 0; i < LANES; i++)
        if (!close_enough(emu[i], gpu[i], kind, tolerance) && wrong++ < 3)
            printf("%s(%llx, %llx, %llx, %llx): emulator %llx, GPU %llx\n", name,
                   (unsigned long long)src[i][0], (unsigned long long)src[i][1],
                   (unsigned long long)src[i][2], (unsigned long long)src[i][3],
                   (unsigned long long)emu[i], (unsigned long long)gpu[i]);
    if (wrong)
        printf("%s: %d of %d differ\n", name, wrong, LANES);
    failed += wrong != 0;
    passed += wrong == 0;
}

static void compare(struct gpu *g, const char *name, const char *text, unsigned threads, char kind,
                    int tolerance)
{
    static uint64_t src[LANES][4], emu[LANES];
    uint64_t seed = 1;
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < 4; k++)
            src[i][k] = source(name, &seed);
    if (!emu_each(name, text, threads, src, emu)) {
        failed++;
        return;
    }
    if (g)
        check_gpu(g, name, text, threads, kind, tolerance, src, emu);
    if (golden[0] && !tolerance)
        check_golden(name, hash_of(emu, kind));
}

static void read_golden(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(1);
    }
    golden[0] = '\n';
    const size_t size = fread(golden + 1, 1, sizeof golden - 2, f);
    fclose(f);
    golden[1 + size] = '\0';
}

int main(int argc, char **argv)
{
    static char text[MAX_TEXT];
    struct gpu gpu, *g = gpu_open(&gpu) ? &gpu : NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: %s GOLDEN | --golden | --sums\n", argv[0]);
        return 2;
    }
    if (strcmp(argv[1], "--sums") == 0)
        return hardware_sums(g);
    if (strcmp(argv[1], "--golden") != 0)
        read_golden(argv[1]);
    for (size_t i = 0; i < sizeof insns / sizeof *insns; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", insns[i].op, insns[i].tail);
        write_insn(&insns[i], text);
        compare(g, name, text, 32, insns[i].sig[0], insns[i].tolerance);
    }
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const size_t at = begin(text);
        snprintf(text + at, MAX_TEXT - at, "%s\nst.global.b64 [%%p1], %%out;\nret;\n}\n",
                 bodies[i].body);
        compare(g, bodies[i].name, text, bodies[i].threads, 'l', 0);
    }
    if (golden[0])
        printf("%d passed, %d failed, %d not recorded\n", passed, failed, unrecorded);
    return failed ? 1 : 0;
}
