// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions against plain loops on random data.
//
// The places of the elements are written down here once more, shape by shape, as the figures of the
// PTX manual give them, not as the emulator computes them.

#include <math.h>
#include <stdio.h>

#include "emu/lane/fp.h"
#include "rig.h"

#define HEAD ".version 8.4\n.target sm_90\n.address_size 64\n"

struct place {
    int row, col;
};

struct shape {
    const char *text; // of the instruction, after mma.sync.aligned.
    int m, k;
    enum emu_type a, b, c;                    // C and D are of one type
    struct place (*place_a)(int lane, int i); // of element i of a lane's fragment
    struct place (*place_b)(int lane, int i);
};

// Figures of the manual: "row = groupID for ...", "col = threadID_in_group * 2 + ...".
static struct place a_k16_16(int lane, int i) // m16n8k16, .f16 and .bf16
{
    const int g = lane / 4, t = lane % 4;
    const int row = (i >= 0 && i < 2) || (i >= 4 && i < 6) ? g : g + 8;
    return (struct place){row, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
}

static struct place b_k16_16(int lane, int i)
{
    return (struct place){lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
}

static struct place a_k8_16(int lane, int i) // m16n8k8, .f16 and .bf16
{
    return (struct place){i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
}

static struct place b_k8_16(int lane, int i)
{
    return (struct place){lane % 4 * 2 + i, lane / 4};
}

static struct place a_k8_32(int lane, int i) // m16n8k8, .tf32
{
    return (struct place){i == 0 || i == 2 ? lane / 4 : lane / 4 + 8,
                          i < 2 ? lane % 4 : lane % 4 + 4};
}

static struct place b_k8_32(int lane, int i)
{
    return (struct place){i == 0 ? lane % 4 : lane % 4 + 4, lane / 4};
}

static struct place a_k4_32(int lane, int i) // m16n8k4, .tf32
{
    return (struct place){i == 0 ? lane / 4 : lane / 4 + 8, lane % 4};
}

static struct place b_k4_32(int lane, int i)
{
    (void)i;
    return (struct place){lane % 4, lane / 4};
}

static struct place a_m8k4_64(int lane, int i) // m8n8k4, .f64
{
    (void)i;
    return (struct place){lane / 4, lane % 4};
}

static struct place a_k32_8(int lane, int i) // m16n8k32, 8-bit types
{
    const int g = lane / 4, t = lane % 4;
    const int row = (i < 4) || (i >= 8 && i < 12) ? g : g + 8;
    return (struct place){row, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
}

static struct place b_k32_8(int lane, int i)
{
    return (struct place){i < 4 ? lane % 4 * 4 + (i & 3) : lane % 4 * 4 + (i & 3) + 16, lane / 4};
}

static struct place a_k16_8(int lane, int i) // m16n8k16, 8-bit types
{
    return (struct place){i < 4 ? lane / 4 : lane / 4 + 8, lane % 4 * 4 + (i & 3)};
}

static struct place b_k16_8(int lane, int i)
{
    return (struct place){lane % 4 * 4 + i, lane / 4};
}

static struct place place_c(int lane, int i)
{
    return (struct place){i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
}

static const struct shape shapes[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, EMU_f16, EMU_f16, EMU_f32, a_k16_16, b_k16_16},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, EMU_f16, EMU_f16, EMU_f16, a_k16_16, b_k16_16},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, EMU_bf16, EMU_bf16, EMU_f32, a_k16_16, b_k16_16},
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, EMU_f16, EMU_f16, EMU_f32, a_k8_16, b_k8_16},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, EMU_bf16, EMU_bf16, EMU_f32, a_k8_16, b_k8_16},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, EMU_tf32, EMU_tf32, EMU_f32, a_k8_32, b_k8_32},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, EMU_tf32, EMU_tf32, EMU_f32, a_k4_32, b_k4_32},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 4, EMU_f64, EMU_f64, EMU_f64, a_m8k4_64, b_k4_32},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 32, EMU_s8, EMU_s8, EMU_s32, a_k32_8, b_k32_8},
    {"m16n8k32.row.col.s32.u8.s8.s32", 16, 32, EMU_u8, EMU_s8, EMU_s32, a_k32_8, b_k32_8},
    {"m16n8k16.row.col.s32.u8.u8.s32", 16, 16, EMU_u8, EMU_u8, EMU_s32, a_k16_8, b_k16_8},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 32, EMU_e4m3, EMU_e5m2, EMU_f32, a_k32_8, b_k32_8},
    {"m16n8k32.row.col.f16.e5m2.e5m2.f16", 16, 32, EMU_e5m2, EMU_e5m2, EMU_f16, a_k32_8, b_k32_8},
};

static double value_of(uint64_t bits, enum emu_type type)
{
    if (type == EMU_s8)
        return (int8_t)bits;
    if (type == EMU_u8)
        return (uint8_t)bits;
    if (type == EMU_s32)
        return (int32_t)bits;
    return emu_fp_to_f64(bits, type);
}

// A number of the type, small enough for sums that tests can compare.
static uint64_t random_value(enum emu_type type, uint64_t *state)
{
    const double x = (double)(int64_t)(rig_random(state) >> 40) / (1 << 22) - 2;
    switch (type) {
    case EMU_s8:
    case EMU_u8:
        return rig_random(state) & 0xff;
    case EMU_s32:
        return (uint32_t)(rig_random(state) & 0xfffff);
    default:
        return emu_fp_from_f64(x, type, EMU_RN, false);
    }
}

// Elements of a lane's fragment, packed into 64-bit words of its registers.
struct fragments {
    uint32_t words[32][8]; // up to 8 registers of 32 bits, or 4 of 64
};

static void put(struct fragments *f, int lane, int i, uint64_t bits, enum emu_type type)
{
    memcpy((uint8_t *)f->words[lane] + (size_t)i * emu_types[type].bits / 8, &bits,
           emu_types[type].bits / 8u);
}

static uint64_t get(const struct fragments *f, int lane, int i, enum emu_type type)
{
    uint64_t bits = 0;
    memcpy(&bits, (const uint8_t *)f->words[lane] + (size_t)i * emu_types[type].bits / 8,
           emu_types[type].bits / 8u);
    return bits;
}

static size_t registers(char *text, size_t size, char name, int count)
{
    size_t at = (size_t)snprintf(text, size, "{");
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%%%c%d", i ? "," : "", name, i);
    return at + (size_t)snprintf(text + at, size - at, "}");
}

// Loads the fragments of every lane, multiplies once, stores D over C.
static void make_kernel(const struct shape *s, char *text, size_t size)
{
    const int width = s->c == EMU_f64 ? 8 : 4;
    const int counts[4] = {s->m * 8 * (int)emu_types[s->c].bits / 8 / 32 / width,
                           s->m * s->k * (int)emu_types[s->a].bits / 8 / 32 / width,
                           s->k * 8 * (int)emu_types[s->b].bits / 8 / 32 / width, 0};
    size_t at = (size_t)snprintf(
        text, size,
        HEAD
        ".visible .entry k(.param .u64 f)\n{ .reg .b%d %%a<8>, %%b<8>, %%c<8>; .reg .b32 %%t;\n"
        ".reg .b64 %%f, %%o; ld.param.u64 %%f, [f]; mov.u32 %%t, %%tid.x;\n"
        "mul.wide.u32 %%o, %%t, 32; add.u64 %%f, %%f, %%o;\n",
        width * 8);
    const char names[] = "cab";
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < counts[n]; i++)
            at += (size_t)snprintf(text + at, size - at, "ld.global.b%d %%%c%d, [%%f+%d];\n",
                                   width * 8, names[n], i, n * 1024 + i * width);
    at += (size_t)snprintf(text + at, size - at, "mma.sync.aligned.%s ", s->text);
    const char order[] = "cabc";
    const int order_counts[] = {counts[0], counts[1], counts[2], counts[0]};
    for (int n = 0; n < 4; n++) {
        at += registers(text + at, size - at, order[n], order_counts[n]);
        at += (size_t)snprintf(text + at, size - at, n < 3 ? ", " : ";\n");
    }
    for (int i = 0; i < counts[0]; i++)
        at += (size_t)snprintf(text + at, size - at, "st.global.b%d [%%f+%d], %%c%d;\n", width * 8,
                               i * width, i);
    snprintf(text + at, size - at, "ret; }\n");
}

static void check_shape(const struct shape *s, uint64_t seed)
{
    static char text[8192];
    double a[16][32] = {{0}}, b[32][8] = {{0}};
    struct fragments f[3]; // C, A, B
    struct rig r;
    const int na = s->m * s->k / 32, nb = s->k * 8 / 32, nc = s->m * 8 / 32;
    memset(f, 0, sizeof f);
    for (int lane = 0; lane < 32; lane++) {
        for (int i = 0; i < na; i++) {
            const uint64_t bits = random_value(s->a, &seed);
            const struct place p = s->place_a(lane, i);
            a[p.row][p.col] = value_of(bits, s->a);
            put(&f[1], lane, i, bits, s->a);
        }
        for (int i = 0; i < nb; i++) {
            const uint64_t bits = random_value(s->b, &seed);
            const struct place p = s->place_b(lane, i);
            b[p.row][p.col] = value_of(bits, s->b);
            put(&f[2], lane, i, bits, s->b);
        }
        for (int i = 0; i < nc; i++)
            put(&f[0], lane, i, random_value(s->c, &seed), s->c);
    }
    make_kernel(s, text, sizeof text);
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t buffer = rig_buffer(&r, f, sizeof f);
    struct fragments d;
    rig_param_u64(&r, buffer);
    rig_run(&r, "k", 1, 32);
    rig_read(&r, &d, buffer, sizeof d);
    const double tolerance = s->c == EMU_f16 ? 0x1p-10 : s->c == EMU_f32 ? 0x1p-23 : 0x1p-50;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < nc; i++) {
            const struct place p = place_c(lane, i);
            double want = value_of(get(&f[0], lane, i, s->c), s->c), scale = fabs(want);
            for (int k = 0; k < s->k; k++) {
                want += a[p.row][k] * b[k][p.col];
                scale += fabs(a[p.row][k] * b[k][p.col]);
            }
            const double got = value_of(get(&d, lane, i, s->c), s->c);
            if (!(fabs(got - want) <= scale * tolerance))
                fail_msg("%s: row %d column %d is %g, not %g", s->text, p.row, p.col, got, want);
        }
    rig_close(&r);
}

static void products(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint64_t seed = 1; seed < 4; seed++)
            check_shape(&shapes[i], seed);
}

// Row addresses come from lanes 0 to 8n - 1; lane i gets elements 2i and 2i + 1 of each matrix.
static void matrices_load_and_store(void **state)
{
    static const char text[] = HEAD
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{ .shared .align 16 .b8 s[1024];\n"
        ".reg .b32 %t, %r<8>, %m<8>, %a; .reg .b64 %i, %o, %d;\n"
        "ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %d, %t, 16; add.u64 %i, %i, %d; add.u64 %o, %o, %d;\n"
        "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%i]; mov.u32 %a, s; shl.b32 %r5, %t, 4;\n"
        "add.u32 %a, %a, %r5; st.shared.v4.b32 [%a], {%r0, %r1, %r2, %r3}; bar.warp.sync -1;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%m0, %m1, %m2, %m3}, [%a];\n"
        "st.global.v4.b32 [%o], {%m0, %m1, %m2, %m3};\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%m0, %m1}, [%a];\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %m2, %m0;\n"
        "ldmatrix.sync.aligned.m8n8.x1.b16 {%m3}, [%d];\n"
        "st.global.v4.b32 [%o+512], {%m0, %m1, %m2, %m3};\n"
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%a], {%m0, %m1, %m2, %m2};\n"
        "bar.warp.sync -1; ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%a];\n"
        "st.global.v4.b32 [%o+1024], {%r0, %r1, %r2, %r3}; ret; }\n";
    static char generic[4096];
    uint16_t in[32][8], out[3][32][8];
    struct rig r;
    (void)state;
    for (int i = 0; i < 256; i++)
        in[i / 8][i % 8] = (uint16_t)(i * 3);
    // The x1 form reads through a generic address.
    const char *cut = strstr(text, "ldmatrix.sync.aligned.m8n8.x1");
    snprintf(generic, sizeof generic, "%.*scvt.u64.u32 %%d, %%a; cvta.shared.u64 %%d, %%d;\n%s",
             (int)(cut - text), text, cut);
    rig_open(&r);
    rig_load(&r, generic);
    const uint64_t pi = rig_buffer(&r, in, sizeof in), po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, pi);
    rig_param_u64(&r, po);
    rig_run(&r, "k", 1, 32);
    rig_read(&r, out, po, sizeof out);
    for (int lane = 0; lane < 32; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int h = 0; h < 2; h++) {
            for (int m = 0; m < 4; m++)
                assert_int_equal(out[0][lane][2 * m + h], in[8 * m + g][2 * t + h]);
            assert_int_equal(out[1][lane][h], in[2 * t + h][g]);
            assert_int_equal(out[1][lane][2 + h], in[8 + 2 * t + h][g]);
            assert_int_equal(out[1][lane][4 + h], in[g][2 * t + h]);
            assert_int_equal(out[1][lane][6 + h], in[g][2 * t + h]);
        }
    }
    for (int row = 0; row < 8; row++)
        for (int col = 0; col < 8; col++) {
            assert_int_equal(out[2][row][col], in[row][col]);
            assert_int_equal(out[2][8 + row][col], in[8 + row][col]);
            assert_int_equal(out[2][16 + row][col], in[col][row]);
        }
    rig_close(&r);
}

// --- matrices of bytes ---

struct bytes_form {
    const char *name; // of the instruction
    int bits, registers;
    bool trans;
};

// Element `i` of row `row` in memory, distinct in rows and columns.
static unsigned element_of(const struct bytes_form *f, int row, int i)
{
    return (unsigned)(f->bits == 8 ? row * 16 + i + row / 16 * 7 : row * 5 + i * 3 + row / 16) &
           ((1u << f->bits) - 1);
}

static void check_bytes(const struct bytes_form *f)
{
    static const char regs[4][20] = {"%m0", "%m0, %m1", "", "%m0, %m1, %m2, %m3"};
    char text[2048];
    uint8_t in[32][16], out[32][4][4];
    struct rig r;
    memset(in, 0xa5, sizeof in); // what is behind the packed elements
    for (int row = 0; row < 32; row++)
        for (int bit = 0; bit < 16 * f->bits; bit++) {
            const unsigned value = element_of(f, row, bit / f->bits) >> bit % f->bits & 1;
            uint8_t *at = &in[row][bit / 8];
            *at = (uint8_t)((*at & ~(1u << bit % 8)) | value << bit % 8);
        }
    snprintf(text, sizeof text,
             ".version 8.8\n.target sm_100a\n.address_size 64\n"
             ".visible .entry k(.param .u64 in, .param .u64 out)\n{ .shared .align 16 .b8 s[512];\n"
             ".reg .b32 %%t, %%r<8>, %%m<4>, %%a; .reg .b64 %%i, %%o, %%d;\n"
             "ld.param.u64 %%i, [in]; ld.param.u64 %%o, [out]; mov.u32 %%t, %%tid.x;\n"
             "mul.wide.u32 %%d, %%t, 16; add.u64 %%i, %%i, %%d; add.u64 %%o, %%o, %%d;\n"
             "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%i]; mov.u32 %%a, s;\n"
             "shl.b32 %%r5, %%t, 4; add.u32 %%a, %%a, %%r5;\n"
             "st.shared.v4.b32 [%%a], {%%r0, %%r1, %%r2, %%r3}; bar.warp.sync -1;\n"
             "ldmatrix.sync.aligned.%s {%s}, [%%a];\n"
             "st.global.v4.b32 [%%o], {%%m0, %%m1, %%m2, %%m3}; ret; }\n",
             f->name, regs[f->registers - 1]);
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t pi = rig_buffer(&r, in, sizeof in), po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, pi);
    rig_param_u64(&r, po);
    rig_run(&r, "k", 1, 32);
    rig_read(&r, out, po, sizeof out);
    const int halves = f->trans ? 2 : 1;
    for (int lane = 0; lane < 32; lane++)
        for (int k = 0; k < f->registers; k++)
            for (int b = 0; b < 4; b++) {
                const int row = lane / 4 + k % halves * 8, column = lane % 4 * 4 + b;
                const int first = k / halves * 8 * halves; // of the matrix
                const unsigned want = f->trans ? element_of(f, first + column, row)
                                               : element_of(f, first + row, column);
                if (out[lane][k][b] != want)
                    fail_msg("%s: lane %d register %d byte %d is %u, not %u", f->name, lane, k, b,
                             out[lane][k][b], want);
            }
    rig_close(&r);
}

static void matrices_of_bytes(void **state)
{
    static const struct bytes_form forms[] = {
        {"m16n16.x1.trans.shared.b8", 8, 2, true},
        {"m16n16.x2.trans.shared.b8", 8, 4, true},
        {"m16n16.x1.trans.shared.b8x16.b6x16_p32", 6, 2, true},
        {"m16n16.x2.trans.shared::cta.b8x16.b4x16_p64", 4, 4, true},
        {"m8n16.x1.shared.b8x16.b6x16_p32", 6, 1, false},
        {"m8n16.x2.shared.b8x16.b4x16_p64", 4, 2, false},
        {"m8n16.x4.shared.b8x16.b6x16_p32", 6, 4, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_bytes(&forms[i]);
}

// Two bytes of a register are of row i / 4, two of the row eight further; columns go to memory.
static void matrices_of_bytes_are_stored(void **state)
{
    static const char text[] =
        ".version 8.8\n.target sm_100a\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{ .shared .align 16 .b8 s[512];\n"
        ".reg .b32 %t, %r<8>, %a; .reg .b64 %i, %o, %d;\n"
        "ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %d, %t, 16; add.u64 %i, %i, %d; add.u64 %o, %o, %d;\n"
        "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%i]; mov.u32 %a, s; shl.b32 %r5, %t, 4;\n"
        "add.u32 %a, %a, %r5; stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%a],\n"
        "{%r0, %r1, %r2, %r3}; bar.warp.sync -1;\n"
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%a];\n"
        "st.global.v4.b32 [%o], {%r0, %r1, %r2, %r3}; ret; }\n";
    uint8_t in[32][4][4], out[32][16];
    uint64_t seed = 7;
    struct rig r;
    (void)state;
    for (int i = 0; i < 512; i++)
        in[i / 16][i / 4 % 4][i % 4] = (uint8_t)rig_random(&seed);
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t pi = rig_buffer(&r, in, sizeof in), po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, pi);
    rig_param_u64(&r, po);
    rig_run(&r, "k", 1, 32);
    rig_read(&r, out, po, sizeof out);
    for (int m = 0; m < 4; m++)
        for (int lane = 0; lane < 32; lane++)
            for (int b = 0; b < 4; b++)
                assert_int_equal(out[m * 8 + lane % 4 * 2 + b % 2][lane / 4 + b / 2 * 8],
                                 in[lane][m][b]);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(matrices_load_and_store),
        cmocka_unit_test(matrices_of_bytes),
        cmocka_unit_test(matrices_of_bytes_are_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
