// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tcgen05: products of the tensor core and copies to tensor memory, against plain loops.
//
// There is no such hardware here: where elements lie is what the manual's tables and figures say.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lane/fp.h"
#include "emu/tensor/umma.h"
#include "rig.h"
#include "tcgen05.h"

enum { A_AT = 0, B_AT = 32768, IMAGE = 65536, COLUMNS = 64, MOST_K = 64 };

// --- products ---

struct form {
    const char *kind;
    const char *a, *b, *d;
    int m, n;
    int swizzle_a, swizzle_b, trans_a, trans_b;
    bool a_in_tmem, negate_a, negate_b, keep; // keep: D is read
    int divide;                               // D by two to this power
    bool disable;                             // every third lane
    bool ws;
    int scales; // of a row
    char scale; // 'e': ue8m0, 'm': ue4m3
    int id_a, id_b;
    uint64_t mask;        // of zero columns
    const char *zeros[4]; // of each part of the columns: which they are, again and again
};

static int bits_of(const char *type)
{
    return !strcmp(type, "tf32") ? 32 : strstr(type, "f16") ? 16 : !strcmp(type, "fp4") ? 4 : 8;
}

static uint32_t code_of(const char *type)
{
    static const char *const names[] = {"f16",  "bf16", "tf32", "e4m3", "e5m2", "e2m3",
                                        "e3m2", "e2m1", "u8",   "s8",   "fp4"};
    static const uint32_t codes[] = {0, 1, 2, 0, 1, 3, 4, 5, 0, 1, 1};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], type))
            return codes[i];
    fail_msg("no type %s", type);
    return 0;
}

// An element's number and bits; those of the narrow formats by their definition.
static uint32_t draw(const char *type, double *value, uint64_t *seed)
{
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const uint32_t r = (uint32_t)rig_random(seed);
    const double sign = r & 1 ? -1 : 1;
    if (!strcmp(type, "e2m1") || !strcmp(type, "fp4")) { // fp4: two to a byte
        *value = sign * e2m1[r >> 1 & 7];
        return (r & 1) << 3 | (r >> 1 & 7);
    }
    if (!strcmp(type, "e2m3") || !strcmp(type, "e3m2")) {
        const int m = type[3] - '0', e = (int)(r >> 8) % (m == 3 ? 4 : 8), bias = m == 3 ? 1 : 3;
        const uint32_t fraction = r >> 16 & ((1u << m) - 1);
        *value = sign * ldexp(ldexp(fraction, -m) + (e ? 1 : 0), (e ? e : 1) - bias);
        return (r & 1) << 5 | (uint32_t)e << m | fraction;
    }
    if (!strcmp(type, "u8"))
        return (uint32_t)(*value = r & 0xff);
    if (!strcmp(type, "s8"))
        return (uint32_t)(int)(*value = (int8_t)r) & 0xff;
    *value = (double)(r % 9) - 4;
    return (uint32_t)emu_fp_from_f64(*value, emu_type_find((tir_str){type, strlen(type)}), EMU_RN,
                                     false);
}

struct layout {
    int swizzle, trans, bits, narrow, leading, stride;
};

static struct layout layout_of(int swizzle, int trans, const char *type, int rows, int k)
{
    struct layout l = {swizzle, trans, bits_of(type), 0, 0, swizzle ? 8 * swizzle : 128};
    l.narrow = !strcmp(type, "e2m1")                                    ? 4
               : !strncmp(type, "e2m3", 4) || !strncmp(type, "e3m2", 4) ? 6
                                                                        : 0;
    if (!swizzle)
        l.leading = trans ? rows * l.bits / 128 * 128 : rows / 8 * 128;
    else if (trans)
        l.leading = k / 8 * 8 * swizzle;
    return l;
}

static void put(uint8_t *image, const struct layout *l, int i, int k, uint32_t value)
{
    const int t = 128 / l->bits, major = l->trans ? i : k, minor = l->trans ? k : i,
              unit = major / t;
    int at;
    if (!l->swizzle)
        at = minor % 8 * 16 + minor / 8 * (l->trans ? l->leading : l->stride) +
             unit * (l->trans ? l->stride : l->leading);
    else
        at = minor % 8 * l->swizzle + minor / 8 * l->stride +
             unit / (l->swizzle / 16) * l->leading +
             (unit % (l->swizzle / 16) ^ minor % 8 * l->swizzle / 128) * 16;
    const int bits = l->narrow ? l->narrow : l->bits, bit = major % t * bits;
    for (int n = 0; n < bits; n++)
        if (value >> n & 1)
            image[at + (bit + n) / 8] |= (uint8_t)(1u << (bit + n) % 8);
}

static uint64_t descriptor(const struct layout *l, int address)
{
    const uint64_t mode = l->swizzle == 128 ? 2 : l->swizzle == 64 ? 4 : l->swizzle == 32 ? 6 : 0;
    return (uint64_t)address >> 4 | (uint64_t)(l->leading >> 4) << 16 |
           (uint64_t)(l->stride >> 4) << 32 | (uint64_t)1 << 46 | mode << 61;
}

struct data {
    uint8_t image[IMAGE];
    uint32_t d[COLUMNS][128], a[32][128], scales[8][128]; // columns of tensor memory, by lanes
    uint64_t descriptors[2];
    uint32_t instruction, disabled[4], unused;
};

static void make_kernel(const struct form *f, int columns_a, char *text, size_t size)
{
    char regs[1024], a[32], disable[64] = "", scale[32] = "";
    const int d = IMAGE, ta = IMAGE + COLUMNS * 512, scales = ta + 32 * 512,
              rest = scales + 8 * 512;
    size_t n = (size_t)snprintf(text, size, "%s", tcgen05_begin);
    n += (size_t)snprintf(
        text + n, size - n,
        "mov.u32 %%c, s; shl.b32 %%i, %%t, 2; add.u32 %%c, %%c, %%i; mov.u32 %%i, 0;\n"
        "mov.u64 %%z, %%q;\nL: ld.global.b32 %%r0, [%%z]; st.shared.b32 [%%c], %%r0;\n"
        "add.u64 %%z, %%z, 512; add.u32 %%c, %%c, 512; add.u32 %%i, %%i, 512;\n"
        "setp.lt.u32 %%g, %%i, %d; @%%g bra L;\n",
        IMAGE);
    for (int i = 0; i < COLUMNS; i++)
        n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%r%d, [%%q+%d];\n", i,
                              d + i * 512);
    tcgen05_registers(regs, sizeof regs, COLUMNS);
    n += (size_t)snprintf(text + n, size - n, "tcgen05.st.sync.aligned.32x32b.x%d.b32 [%%a], %s;\n",
                          COLUMNS, regs);
    for (int i = 0; i < columns_a; i++)
        n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%r%d, [%%q+%d];\n", i,
                              ta + i * 512);
    tcgen05_registers(regs, sizeof regs, columns_a);
    if (columns_a)
        n += (size_t)snprintf(text + n, size - n,
                              "tcgen05.st.sync.aligned.32x32b.x%d.b32 [%%a+64], %s;\n", columns_a,
                              regs);
    for (int i = 0; i < 8 && f->scales; i++)
        n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%r%d, [%%q+%d];\n", i,
                              scales + i * 512);
    if (f->scales)
        n += (size_t)snprintf(text + n, size - n,
                              "tcgen05.st.sync.aligned.32x32b.x8.b32 [%%a+96], "
                              "{%%r0,%%r1,%%r2,%%r3,%%r4,%%r5,%%r6,%%r7};\n");
    snprintf(a, sizeof a, columns_a ? "[%%tm+64]" : "%%x");
    if (f->disable)
        snprintf(disable, sizeof disable, " {%%r1, %%r2, %%r3, %%r4},");
    if (f->divide)
        snprintf(scale, sizeof scale, ", %d", f->divide);
    if (f->mask)
        snprintf(scale, sizeof scale, ", 0x%llx", (unsigned long long)f->mask);
    if (f->scales)
        snprintf(disable, sizeof disable, " [%%tm+96], [%%tm+100],");
    n += (size_t)snprintf(
        text + n, size - n,
        "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n"
        "@%%f mbarrier.init.shared.b64 [bar], 1; fence.proxy.async; bar.sync 0;\n"
        "tcgen05.fence::after_thread_sync; ld.global.b64 %%x, [%%p+%d]; ld.global.b64 %%y, [%%p+%d];\n"
        "ld.global.b32 %%r0, [%%p+%d]; ld.global.b32 %%r1, [%%p+%d]; ld.global.b32 %%r2, [%%p+%d];\n"
        "ld.global.b32 %%r3, [%%p+%d]; ld.global.b32 %%r4, [%%p+%d]; setp.eq.u32 %%g, %%t, %s;\n"
        "@%%f tcgen05.mma%s.cta_group::1.kind::%s [%%tm], %s, %%y, %%r0,%s %%g%s;\n"
        "mov.u32 %%b, bar; cvt.u64.u32 %%z, %%b; cvta.shared.u64 %%z, %%z;\n"
        "@%%f tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%%z];\n"
        "W: mbarrier.try_wait.parity.shared.b64 %%g, [bar], 0; @!%%g bra W;\n"
        "tcgen05.fence::after_thread_sync;\n",
        rest, rest + 8, rest + 16, rest + 20, rest + 24, rest + 28, rest + 32, f->keep ? "0" : "1",
        f->ws ? ".ws" : "", f->kind, a, disable, scale);
    tcgen05_registers(regs, sizeof regs, COLUMNS);
    n += (size_t)snprintf(text + n, size - n,
                          "tcgen05.ld.sync.aligned.32x32b.x%d.b32 %s, [%%a];\n"
                          "tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync;\n",
                          COLUMNS, regs);
    for (int i = 0; i < COLUMNS; i++)
        n += (size_t)snprintf(text + n, size - n, "st.global.b32 [%%q+%d], %%r%d;\n", d + i * 512,
                              i);
    snprintf(text + n, size - n, "%s", tcgen05_end);
}

static uint32_t bits_of_d(const char *type, int value)
{
    if (!strcmp(type, "s32"))
        return (uint32_t)value;
    return !strcmp(type, "f16") ? (uint32_t)emu_fp_from_f64(value, EMU_f16, EMU_RN, false)
                                : emu_f32_bits((float)value);
}

static double d_of_bits(const char *type, uint32_t bits)
{
    if (!strcmp(type, "s32"))
        return (int32_t)bits;
    return !strcmp(type, "f16") ? emu_f16_to_f32((uint16_t)bits) : emu_f32_of(bits);
}

static int lane_of(const struct form *f, int row)
{
    return f->m == 128 || f->ws ? row : row / 16 * 32 + row % 16;
}

// Where an element of D is: with .ws the columns lie in two or four parts under one another.
static int place_d(const struct form *f, int row, int c, int *column)
{
    const int parts = f->ws ? 128 / f->m : 1, part = c / (f->n / parts);
    *column = c % (f->n / parts);
    return lane_of(f, row) + part * (128 / parts);
}

// One of the scales of a row of A, or of a column of B, into all quarters of the lanes.
static double draw_scale(const struct form *f, struct data *data, int side, int row, int i,
                         uint64_t *seed)
{
    const int r = (int)(rig_random(seed) % 32), e = r % 4, m = r / 4;
    const uint32_t bits = f->scale == 'e' ? (uint32_t)(126 + e) : (uint32_t)((6 + e) << 3 | m);
    const int byte = (side ? f->id_b : f->id_a) + i;
    for (int quarter = 0; quarter < 4; quarter++)
        data->scales[side * 4 + row / 32][quarter * 32 + row % 32] |= bits << 8 * byte;
    return f->scale == 'e' ? ldexp(1, e - 1) : ldexp(1 + m / 8.0, e - 1);
}

static void scale_rows(const struct form *f, struct data *data, int k, int side,
                       double (*x)[MOST_K], uint64_t *seed)
{
    for (int row = 0; row < (side ? f->n : f->m); row++)
        for (int i = 0; i < f->scales; i++) {
            const double factor = draw_scale(f, data, side, row, i, seed);
            for (int j = i * k / f->scales; j < (i + 1) * k / f->scales; j++)
                x[row][j] *= factor;
        }
}

static uint32_t instruction_of(const struct form *f)
{
    const uint32_t d = !strcmp(f->d, "f32") ? 1u : !strcmp(f->d, "s32") ? 2u : 0u;
    const uint32_t common = code_of(f->a) << 7 | code_of(f->b) << 10 | (uint32_t)f->negate_a << 13 |
                            (uint32_t)f->negate_b << 14 | (uint32_t)f->trans_a << 15 |
                            (uint32_t)f->trans_b << 16 | (uint32_t)(f->n / 8) << 17;
    if (f->scales)
        return common | (uint32_t)f->id_b << 4 | (f->scale == 'e' ? 1u << 23 : 0) |
               (uint32_t)(f->m / 128) << 27 | (uint32_t)f->id_a << 29;
    const uint32_t shift = f->mask >> 56 ? 1u << 30 : 0; // up to 8 columns
    return common | d << 4 | (uint32_t)(f->m / 16) << 24 | shift;
}

// Runs a kernel on the data of one CTA, in place.
static void run(const char *text, struct data *data)
{
    struct rig r;
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t buffer = rig_buffer(&r, data, sizeof *data);
    rig_param_u64(&r, buffer);
    r.shared_bytes = IMAGE;
    rig_run(&r, "k", 1, 128);
    rig_read(&r, data, buffer, sizeof *data);
    rig_close(&r);
}

static void check(const struct form *f, uint64_t seed)
{
    static char text[32768];
    static struct data data;
    static double a[128][MOST_K], b[COLUMNS + 16][MOST_K], d[COLUMNS][128];
    const int k = 256 / bits_of(f->a), e = 32 / bits_of(f->a);
    const int shift = (int)(f->mask >> 56), columns_b = f->n + (f->mask ? 16 : 0);
    memset(&data, 0, sizeof data);
    const struct layout la = layout_of(f->swizzle_a, f->trans_a, f->a, f->m, k);
    const struct layout lb = layout_of(f->swizzle_b, f->trans_b, f->b, columns_b, k);
    for (int i = 0; i < f->m; i++)
        for (int j = 0; j < k; j++) {
            const uint32_t bits = draw(f->a, &a[i][j], &seed);
            a[i][j] *= f->negate_a ? -1 : 1;
            if (f->a_in_tmem) // e2m1 lies in the middle of its byte
                data.a[j / e][lane_of(f, i)] |= (!strcmp(f->a, "e2m1") ? bits << 2 : bits)
                                                << j % e * bits_of(f->a);
            else
                put(data.image + A_AT, &la, i, j, bits);
        }
    for (int i = 0; i < columns_b; i++)
        for (int j = 0; j < k; j++) {
            put(data.image + B_AT, &lb, i, j, draw(f->b, &b[i][j], &seed));
            b[i][j] *= f->negate_b ? -1 : 1;
        }
    for (int i = 0; i < f->n && f->mask; i++) {
        const int part = f->n * f->m / 128; // columns of one
        const char *zeros = f->zeros[i / part];
        const bool zero = zeros[(size_t)(i % part) % strlen(zeros)] == '1';
        for (int j = 0; j < k; j++)
            b[i][j] = zero ? 0 : b[i + shift][j];
    }
    for (int c = 0; c < COLUMNS; c++)
        for (int lane = 0; lane < 128; lane++) {
            const int value = (int)(rig_random(&seed) % 200) * 4 - 400;
            d[c][lane] = value;
            data.d[c][lane] = bits_of_d(f->d, value);
        }
    data.descriptors[0] = descriptor(&la, 2048 + A_AT); // static shared memory is before it
    data.descriptors[1] = descriptor(&lb, 2048 + B_AT);
    scale_rows(f, &data, k, 0, a, &seed);
    scale_rows(f, &data, k, 1, b, &seed);
    data.instruction = instruction_of(f);
    for (int i = 0; i < 128 && f->disable; i += 3)
        data.disabled[i / 32] |= 1u << i % 32;
    make_kernel(f, f->a_in_tmem ? k / e : 0, text, sizeof text);
    run(text, &data);
    for (int i = 0; i < f->m; i++)
        for (int c = 0; c < f->n; c++) {
            int column;
            const int lane = place_d(f, i, c, &column);
            const bool kept = f->disable && lane % 3 == 0;
            double want = kept || f->keep ? d[column][lane] * (kept ? 1 : ldexp(1, -f->divide)) : 0;
            for (int j = 0; j < k && !kept; j++)
                want += a[i][j] * b[c][j];
            const double got = d_of_bits(f->d, data.d[column][lane]);
            const double slack = fabs(want) * (!strcmp(f->d, "f16") ? 0x1p-10
                                               : f->scales          ? 0x1p-23
                                                                    : 0);
            if (!(fabs(got - want) <= slack))
                fail_msg(
                    "%s %s x %s, m %d n %d, swizzles %d %d, transposed %d %d: row %d column %d is "
                    "%g, not %g",
                    f->kind, f->a, f->b, f->m, f->n, f->swizzle_a, f->swizzle_b, f->trans_a,
                    f->trans_b, i, c, got, want);
        }
    for (int c = f->n; c < COLUMNS; c++) // and nothing else is written
        for (int lane = 0; lane < 128; lane++)
            assert_true(d_of_bits(f->d, data.d[c][lane]) == d[c][lane]);
}

static void products(void **state)
{
    static const struct form forms[] = {
        {"f16", "f16", "f16", "f32", 128, 64, 128, 128, 0, 0, .keep = true},
        {"f16", "bf16", "bf16", "f32", 128, 32, 64, 32, 0, 0, .negate_a = true},
        {"f16", "f16", "f16", "f16", 64, 64, 128, 128, 0, 0, .keep = true},
        {"f16", "f16", "f16", "f32", 128, 64, 128, 128, 1, 1, .keep = true},
        {"f16", "bf16", "bf16", "f32", 64, 64, 0, 0, 1, 1, .negate_b = true},
        {"f16", "bf16", "bf16", "f32", 128, 64, 0, 64, 0, 1, .keep = true, .divide = 2},
        {"f16", "f16", "f16", "f32", 128, 8, 32, 128, 0, 0, .a_in_tmem = true, .keep = true},
        {"f16", "bf16", "bf16", "f32", 64, 64, 32, 128, 0, 0, .a_in_tmem = true},
        {"f16", "f16", "f16", "f32", 128, 64, 128, 128, 0, 0, .keep = true, .disable = true},
        {"tf32", "tf32", "tf32", "f32", 128, 64, 128, 64, 0, 0, .keep = true, .negate_b = true},
        {"tf32", "tf32", "tf32", "f32", 64, 16, 0, 32, 0, 0, .a_in_tmem = true},
        {"i8", "s8", "u8", "s32", 128, 32, 128, 128, 0, 0, .keep = true},
        {"i8", "u8", "u8", "s32", 64, 64, 32, 0, 0, 0, .keep = true},
        {"i8", "s8", "s8", "s32", 128, 64, 128, 128, 1, 1, .keep = true},
    };
    static const char *const narrow[] = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i], i + 1);
    for (int i = 0; i < 25; i++)
        for (int tmem = 0; tmem < 2; tmem++) {
            const struct form f = {"f8f6f4",
                                   narrow[i / 5],
                                   narrow[i % 5],
                                   i % 2 ? "f32" : "f16",
                                   128,
                                   64,
                                   128,
                                   64,
                                   0,
                                   0,
                                   .a_in_tmem = tmem,
                                   .keep = true};
            check(&f, (uint64_t)i + 1);
        }
}

static void stationary_weights(void **state)
{
    static const struct form forms[] = {
        {"f16", "f16", "f16", "f32", 32, 64, 128, 128, 0, 0, .keep = true, .ws = true},
        {"f16", "bf16", "bf16", "f32", 64, 64, 128, 64, 0, 1, .keep = true, .ws = true},
        {"i8", "s8", "s8", "s32", 128, 64, 32, 128, 0, 0, .keep = true, .ws = true},
        {"f8f6f4", "e5m2", "e2m1", "f32", 32, 64, 128, 128, 0, 0, .ws = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i], i + 1);
}

// The examples of the manual, whose masks tcgen05_begin with column 0 here.
static void zero_columns(void **state)
{
    const uint64_t spans = 1ull << 39 | 2ull << 40 | 3ull << 48;
    const struct form forms[] = {
        {"f16", "f16", "f16", "f32", 128, 64, 128, 128, 0, 0, .keep = true, .ws = true,
         .mask = spans, .zeros = {"0000111"}},
        {"i8", "s8", "s8", "s32", 64, 64, 32, 128, 0, 0, .keep = true, .ws = true,
         .mask = spans | 1ull << 32, .zeros = {"1110000", "0000111"}},
        {"f16", "f16", "f16", "f32", 32, 64, 128, 64, 0, 0, .ws = true,
         .mask = spans | 3ull << 32 | 0x01020100 | 2ull << 56,
         .zeros = {"1110000", "1100001", "0011100", "0001110"}},
        {"f16", "bf16", "bf16", "f32", 64, 64, 128, 0, 0, 1, .keep = true, .ws = true,
         .mask = spans | 1ull << 32 | 3ull << 56, .zeros = {"1110000", "0000111"}},
        {"f16", "bf16", "bf16", "f32", 64, 64, 128, 0, 0, 1, .ws = true, .mask = 8ull << 56,
         .zeros = {"0", "0"}}, // a shift alone
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i], i + 1);
}

static void block_scales(void **state)
{
    static const char *const narrow[] = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
    static const struct form forms[] = {
        {"mxf4.block_scale", "fp4", "fp4", "f32", 128, 64, 128, 64, 0, 0, .keep = true, .scales = 2,
         .scale = 'e', .id_a = 2},
        {"mxf4nvf4.block_scale.block32", "fp4", "fp4", "f32", 128, 32, 32, 0, 0, 0, .scales = 2,
         .scale = 'e', .id_b = 2, .negate_b = true},
        {"mxf4nvf4.block_scale.block16", "fp4", "fp4", "f32", 128, 64, 128, 128, 0, 0, .keep = true,
         .scales = 4, .scale = 'm'},
        {"mxf4nvf4.block_scale.scale_vec::4X", "fp4", "fp4", "f32", 128, 8, 64, 128, 0, 0,
         .scales = 4, .scale = 'm', .a_in_tmem = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i], i + 1);
    for (int i = 0; i < 25; i++) {
        const struct form f = {"mxf8f6f4.block_scale.block32",
                               narrow[i / 5],
                               narrow[i % 5],
                               "f32",
                               128,
                               64,
                               128,
                               64,
                               0,
                               0,
                               .keep = true,
                               .a_in_tmem = i % 3 == 0,
                               .scales = 1,
                               .scale = 'e',
                               .id_a = i % 4,
                               .id_b = (i + 1) % 4};
        check(&f, (uint64_t)i + 1);
    }
}

// --- copies ---

struct copy {
    const char *name;
    int rows, words;   // that are copied
    int again, spread; // lanes to the next time, and from 32 rows to the next
    int bits;          // of elements that become bytes
};

// A word that a copy writes: rows of 16 bytes, eight after one another, the second 16 bytes of a
// row 4096 further on.
static uint32_t copied(const struct copy *c, const uint8_t *image, int row, int w)
{
    const uint8_t *from = image + row / 8 * 128 + row % 8 * 16 + w / 4 * 4096;
    uint32_t word = 0;
    for (int b = 0; b < 4; b++) {
        const int bit = c->bits * (w * 4 + b);
        uint32_t byte = from[w % 4 * 4 + b];
        if (c->bits)
            byte = (uint32_t)(from[bit / 8] | from[bit / 8 + 1] << 8) >> bit % 8 &
                   ((1u << c->bits) - 1);
        word |= (c->bits == 4 ? byte << 2 : byte) << 8 * b;
    }
    return word;
}

static void check_copy(const struct copy *c, uint64_t seed)
{
    static char text[32768], whole[33000];
    static struct data data;
    for (int k = 0; k < IMAGE; k++)
        data.image[k] = (uint8_t)rig_random(&seed);
    data.descriptors[0] = (uint64_t)2048 >> 4 | (uint64_t)(4096 >> 4) << 16 |
                          (uint64_t)(128 >> 4) << 32 | (uint64_t)1 << 46;
    const struct form f = {"f16", "f16", "f16", "f32", 128, 64, 0, 0, 0, 0, .keep = true};
    make_kernel(&f, 0, text, sizeof text);
    const char *at = strstr(text, "@%f tcgen05.mma");
    snprintf(whole, sizeof whole, "%.*s@%%f tcgen05.cp.cta_group::1.%s [%%tm], %%x;%s",
             (int)(at - text), text, c->name, strchr(at, '\n'));
    run(whole, &data);
    for (int row = 0; row < c->rows; row++)
        for (int w = 0; w < c->words; w++)
            for (int n = 0; n < (c->again ? 128 / c->rows : 1); n++) {
                const int lane = row / 32 * c->spread + row % 32 + n * c->again;
                const uint32_t want = copied(c, data.image, row, w);
                if (data.d[w][lane] != want)
                    fail_msg("%s: lane %d column %d is 0x%x, not 0x%x", c->name, lane, w,
                             data.d[w][lane], want);
            }
}

static void copies(void **state)
{
    static const struct copy forms[] = {
        {"128x256b", 128, 8, 0, 32, 0},
        {"128x128b", 128, 4, 0, 32, 0},
        {"4x256b", 4, 8, 0, 0, 0},
        {"64x128b.warpx2::02_13", 64, 4, 32, 64, 0},
        {"64x128b.warpx2::01_23", 64, 4, 64, 32, 0},
        {"32x128b.warpx4", 32, 4, 32, 0, 0},
        {"128x128b.b8x16.b4x16_p64", 128, 4, 0, 32, 4},
        {"128x128b.b8x16.b6x16_p32", 128, 4, 0, 32, 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_copy(&forms[i], i + 1);
}

// --- a pair of CTAs ---

enum { PAIR_STRIDE = IMAGE + COLUMNS * 512 };

static const char pair_begin[] =
    HEAD ".extern .shared .align 1024 .b8 s[];\n"
         ".visible .entry k(.param .u64 p)\n{ .shared .align 8 .b8 bar[16];\n"
         ".reg .b32 %r<128>, %t, %w, %tm, %a, %b, %c, %i, %k; .reg .b64 %p, %q, %x, %y, %z;\n"
         ".reg .pred %e, %f, %g; .reg .b16 %m; ld.param.u64 %p, [p]; mov.u32 %t, %tid.x;\n"
         "shr.u32 %w, %t, 5; setp.eq.u32 %e, %w, 0; mov.u32 %k, %cluster_ctarank;\n"
         "@%e tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [bar+8], 128;\n"
         "bar.sync 0; ld.shared.b32 %tm, [bar+8]; setp.eq.u32 %f, %t, 0;\n"
         "@%f mbarrier.init.shared.b64 [bar], 1; shl.b32 %a, %w, 21; add.u32 %a, %a, %tm;\n"
         "mov.u32 %c, s; shl.b32 %i, %t, 2; add.u32 %c, %c, %i; mov.u32 %i, 0;\n";
static const char pair_middle[] =
    "L: ld.global.b32 %r0, [%z]; st.shared.b32 [%c], %r0; add.u64 %z, %z, 512;\n"
    "add.u32 %c, %c, 512; add.u32 %i, %i, 512; setp.lt.u32 %g, %i, 65536; @%g bra L;\n"
    "fence.mbarrier_init.release.cluster; fence.proxy.async; barrier.cluster.arrive.aligned;\n"
    "barrier.cluster.wait.aligned; or.b32 %b, %k, %t; setp.eq.u32 %g, %b, 0; mov.b16 %m, 3;\n"
    "mov.u32 %b, bar; setp.ne.u32 %f, %t, %t;\n"
    "@%g tcgen05.mma.cta_group::2.kind::f16 [%tm], %x, %y, %r127, %f;\n"
    "@%g tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    " [%b], %m;\n"
    "W: mbarrier.try_wait.parity.shared.b64 %g, [bar], 0; @!%g bra W;\n"
    "tcgen05.fence::after_thread_sync;\n";

// Each CTA has half of the rows of A and of the columns of B. M 256: its rows of D have all
// columns; M 128: half of them in the upper lanes, half in the lower.
static void check_pair(int m)
{
    static char text[32768], regs[1024];
    static uint8_t image[2][PAIR_STRIDE];
    static double a[256][16], b[COLUMNS][16];
    const int n = COLUMNS, columns = m == 256 ? n : n / 2;
    const struct layout l = layout_of(32, 0, "f16", 128, 16);
    uint64_t seed = (uint64_t)m;
    struct rig r;
    memset(image, 0, sizeof image);
    for (int i = 0; i < m; i++)
        for (int k = 0; k < 16; k++)
            put(image[i / (m / 2)] + A_AT, &l, i % (m / 2), k, draw("f16", &a[i][k], &seed));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 16; k++)
            put(image[i / (n / 2)] + B_AT, &l, i % (n / 2), k, draw("f16", &b[i][k], &seed));
    const struct form f = {"f16", "f16", "f16", "f32", m, n, 32, 32, 0, 0, .keep = false};
    tcgen05_registers(regs, sizeof regs, columns);
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "%smul.wide.u32 %%x, %%k, %d; add.u64 %%p, %%p, %%x; mul.wide.u32 %%x, %%t, 4;\n"
        "add.u64 %%q, %%p, %%x; mov.u64 %%z, %%q; mov.b32 %%r127, %u; mov.u64 %%x, %llu;\n"
        "mov.u64 %%y, %llu;\n%stcgen05.ld.sync.aligned.32x32b.x%d.b32 %s, [%%a];\n"
        "tcgen05.wait::ld.sync.aligned;\n",
        pair_begin, PAIR_STRIDE, instruction_of(&f),
        (unsigned long long)descriptor(&l, 2048 + A_AT),
        (unsigned long long)descriptor(&l, 2048 + B_AT), pair_middle, columns, regs);
    for (int i = 0; i < columns; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "st.global.b32 [%%q+%d], %%r%d;\n",
                               IMAGE + i * 512, i);
    snprintf(
        text + at, sizeof text - at,
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; setp.eq.u32 %%e, %%w, 0;\n"
        "@%%e tcgen05.dealloc.cta_group::2.sync.aligned.b32 %%tm, 128;\nret; }\n");
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t buffer = rig_buffer(&r, image, sizeof image);
    rig_param_u64(&r, buffer);
    r.shared_bytes = IMAGE;
    r.cluster = 2;
    rig_run(&r, "k", 2, 128);
    rig_read(&r, image, buffer, sizeof image);
    rig_close(&r);
    for (int i = 0; i < m; i++)
        for (int c = 0; c < n; c++) {
            double want = 0;
            float got;
            for (int k = 0; k < 16; k++)
                want += a[i][k] * b[c][k];
            const int lane = i % (m / 2) + c / columns * 64;
            memcpy(&got, image[i / (m / 2)] + IMAGE + c % columns * 512 + lane * 4, sizeof got);
            if (got != want)
                fail_msg("m %d: row %d column %d is %g, not %g", m, i, c, got, want);
        }
}

static void pairs(void **state)
{
    (void)state;
    check_pair(256);
    check_pair(128);
}

// Where the scales of 64 rows of a CTA are is not known.
static void scales_of_pairs(void **state)
{
    static const enum emu_umma_kind kinds[] = {EMU_UMMA_MXF8F6F4, EMU_UMMA_MXF4, EMU_UMMA_MXF4NVF4};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const uint32_t format = i ? 1u << 7 | 1u << 10 : 0, common = format | 4u << 17 | 1u << 23;
        struct emu_umma_shape s;
        assert_true(emu_umma_shape_of(common | 1u << 27, kinds[i], 0, &s));
        assert_false(emu_umma_shape_of(common | 2u << 27, kinds[i], 0, &s));
        assert_true(emu_umma_shape_of(common | 2u << 27, kinds[i], EMU_UMMA_PAIR, &s));
        assert_int_equal(s.m, 256);
        assert_false(emu_umma_shape_of(common | 1u << 27, kinds[i], EMU_UMMA_PAIR, &s));
    }
}

// --- what is wrong ---

static void wrong(void **state)
{
    static const struct {
        const char *body, *message; // NULL: it is right
    } cases[] = {
        {"tcgen05.st.sync.aligned.32x32b.x1.b32 [%a], {%t}; tcgen05.wait::st.sync.aligned;\n",
         NULL},
        {"tcgen05.st.sync.aligned.32x32b.x1.b32 [%a+128], {%t};\n", "not allocated: column 128"},
        {"tcgen05.st.sync.aligned.32x32b.x1.b32 [%tm], {%t};\n", "lane 0 belongs to warp 0"},
        {"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%a];\n", "uninitialised tensor memory"},
        {"add.u32 %a, %a, 0x100000; tcgen05.st.sync.aligned.32x32b.x1.b32 [%a], {%t};\n",
         "misaligned"},
        {"add.u32 %a, %a, 0x100000; tcgen05.st.sync.aligned.16x64b.x1.b32 [%a], {%t};\n"
         "tcgen05.wait::st.sync.aligned;\n",
         NULL},
        {"@%e tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [bar+12], 64;\n",
         "not freed"},
        {"mov.b32 %b, 48;\n"
         "@%e tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [bar+12], %b;\n",
         "powers of two"},
        {"@%e tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [bar+12], 256;\n",
         "256 columns after an allocation of 128"},
        {"@%e tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 64;\n", "no allocation of 64"},
        {"@%e tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 128;\n", "no allocation of 128"},
        {"@%e tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
         "@%e tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [bar+12], 64;\n",
         "after relinquish"},
        {"@%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %t, !%f;\n",
         "nothing that descriptor"},
        {"mov.b32 %b, 0x8910010; @%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n",
         "nothing that descriptor"}, // a reserved bit
        {"mov.b32 %b, 0x8110010; @%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n",
         "bits 46 to 48"}, // as descriptors of wgmma are
        {"mov.b64 %x, 0x6000400000000000; mov.b32 %b, 0x8110010;\n"
         "@%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n",
         "no such swizzle: 3"},
        {"mov.b64 %x, 0x20400000000000; mov.b32 %b, 0x8110010;\n"
         "@%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n",
         "bits 53 to 60"},
        {"mov.b64 %x, 0x10400000000000;\n@%f tcgen05.cp.cta_group::1.4x256b [%tm], %x;\n",
         "an absolute leading dimension"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; mov.b64 %y, 0x1000000000;\n"
         "@%f tcgen05.mma.ws.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f, %y;\n",
         "reserved bits of the mask"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; mov.b64 %y, 0x100000000000000;\n"
         "@%f tcgen05.mma.ws.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f, %y;\n",
         "shifted by 1 columns, and by 0 at most"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; mov.b64 %y, 0x3028000000004;\n"
         "@%f tcgen05.mma.ws.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f, %y;\n",
         "mask 0 of zero columns begins after"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; @%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, %f;\n",
         "column 0 of D"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; @%f tcgen05.mma.cta_group::1.kind::f16 [%tm+128], %x, %x, %b, !%f;\n",
         "not allocated"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; @%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n"
         "bar.sync 0; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%a];\n",
         "while a copy is in flight"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; @%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n",
         "freed too early"},
        {"mov.b64 %x, 0x400000000000; mov.b32 %b, 0x8110010; setp.eq.u32 %g, %t, 1;\n"
         "@%f tcgen05.mma.cta_group::1.kind::f16 [%tm], %x, %x, %b, !%f;\n"
         "mov.u32 %c, bar; cvt.u64.u32 %z, %c; cvta.shared.u64 %z, %z;\n"
         "@%f mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n"
         "@%g tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%z];\n",
         "this lane commits, and lane 0 has started operations"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[8192];
        struct rig r;
        snprintf(text, sizeof text, "%s%s%s", tcgen05_begin, cases[i].body, tcgen05_end);
        rig_open(&r);
        rig_load(&r, text);
        rig_param_u64(&r, rig_buffer(&r, NULL, 512));
        r.shared_bytes = 1024;
        const tir_status status = rig_try_run(&r, "k", 1, 128);
        if (!cases[i].message && status)
            fail_msg("%s: %s", cases[i].body, r.error.message);
        if (cases[i].message) {
            if (!status)
                fail_msg("%s: nothing was found", cases[i].body);
            assert_message(&r, cases[i].message);
        }
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),        cmocka_unit_test(stationary_weights),
        cmocka_unit_test(zero_columns),    cmocka_unit_test(block_scales),
        cmocka_unit_test(scales_of_pairs), cmocka_unit_test(copies),
        cmocka_unit_test(pairs),           cmocka_unit_test(wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
