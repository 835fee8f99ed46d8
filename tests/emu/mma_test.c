// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every form of mma and mma.sp that tensor_test.c does not have, against plain loops.
//
// Elements are drawn as numbers and encoded by tables of their own, so that the decoding of the
// narrow formats is tested too. A sparse A is drawn as a full matrix with two of four places set.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rig.h"

#define HEAD ".version 8.8\n.target sm_120a\n.address_size 64\n"

enum { MAX_M = 16, MAX_K = 256, N = 8 };

struct format {
    const char *name;
    int bits;     // that one takes
    int shift;    // of the element in them
    int exponent; // bits; 0: an integer
    int mantissa; // bits, or those of the integer
    int bias;     // 1 for signed integers
};

static const struct format formats[] = {
    {"f16", 16, 0, 5, 10, 15}, {"bf16", 16, 0, 8, 7, 127},     {"tf32", 32, 13, 8, 10, 127},
    {"e4m3", 8, 0, 4, 3, 7},   {"e5m2", 8, 0, 5, 2, 15},       {"e3m2", 8, 0, 3, 2, 3},
    {"e2m3", 8, 0, 2, 3, 1},   {"e2m1", 8, 2, 2, 1, 1},        {"s8", 8, 0, 0, 8, 1},
    {"u8", 8, 0, 0, 8, 0},     {"s4", 4, 0, 0, 4, 1},          {"u4", 4, 0, 0, 4, 0},
    {"b1", 1, 0, 0, 1, 0},     {"e2m1 packed", 4, 0, 2, 1, 1},
};

static const struct format *format_of(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    fail_msg("no format %s", name);
    return NULL;
}

// A number from its fields, by the definition of the formats.
static double number(const struct format *f, uint32_t bits)
{
    const uint32_t mantissa = bits & ((1u << f->mantissa) - 1);
    if (!f->exponent)
        return f->bias && mantissa >> (f->mantissa - 1) ? (double)mantissa - (1 << f->mantissa)
                                                        : mantissa;
    const int e = (int)(bits >> f->mantissa & ((1u << f->exponent) - 1));
    const double m = ldexp(mantissa, -f->mantissa) + (e ? 1 : 0);
    const double value = ldexp(m, (e ? e : 1) - f->bias);
    return bits >> (f->mantissa + f->exponent) & 1 ? -value : value;
}

// Random bits of a number near one, where the format has larger ones.
static uint32_t draw(const struct format *f, uint64_t *seed)
{
    const uint32_t r = (uint32_t)rig_random(seed);
    if (!f->exponent)
        return r & ((1u << f->mantissa) - 1);
    const uint32_t least = f->bias > 3 ? (uint32_t)f->bias - 2 : 0;
    const uint32_t e = least + (r >> 16) % (f->bias > 3 ? 4 : 1u << f->exponent);
    return (r & 1) << (f->mantissa + f->exponent) | e << f->mantissa |
           (r >> 1 & ((1u << f->mantissa) - 1));
}

struct form {
    const char *text; // after "mma.", with what comes after the shape
    int m, k;
    const char *a, *b;
    char c;     // 'f': f32, 'h': f16, 's': s32
    int sparse; // 1 + selector
    int scales; // of a row of A
    char scale; // 'e': ue8m0, 'm': ue4m3
    int byte_a, thread_a, byte_b, thread_b;
};

struct registers {
    uint32_t words[4 + 4 + 4 + 4 + 3][32]; // C, A, B; metadata, scales
};
enum { AT_C = 0, AT_A = 4, AT_B = 8, AT_META = 12, AT_SCALE_A = 13, AT_SCALE_B = 14 };

static void put(uint32_t (*words)[32], int lane, int i, int bits, uint32_t value)
{
    words[i * bits / 32][lane] |= value << i * bits % 32;
}

// The manual's formulas: an element's register is i / e.
static void fill(struct registers *r, int at, const struct format *f, int rows, int k,
                 uint32_t (*bits)[MAX_K])
{
    const int e = 32 / f->bits;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < rows * k / 32; i++) {
            const int reg = i / e, upper = rows == 16 ? reg % 2 : 0,
                      block = rows == 16 ? reg / 2 : reg;
            put(r->words + at, lane, i, f->bits,
                bits[lane / 4 + 8 * upper][block * 4 * e + lane % 4 * e + i % e] << f->shift);
        }
}

struct matrices {
    double a[MAX_M][MAX_K], b[N][MAX_K], c[MAX_M][N];
};

// Two of four units of each row: the values that are stored and the metadata that says where.
static void draw_sparse(const struct form *t, const struct format *f, struct registers *r,
                        uint32_t (*stored)[MAX_K], double (*a)[MAX_K], uint64_t *seed)
{
    static const uint32_t pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const int per_unit = f->bits == 4 ? 2 : 1, units = f->bits == 32 ? 2 * t->k : t->k / per_unit;
    for (int row = 0; row < t->m; row++)
        for (int group = 0; group < units / 4; group++) {
            const uint32_t *pair =
                pairs[f->bits == 32 ? rig_random(seed) % 2 * 5 : rig_random(seed) % 6];
            const uint32_t nibble = pair[0] | pair[1] << 2;
            for (int i = 0; i < 2 && f->bits != 32; i++)
                for (int n = 0; n < per_unit; n++) {
                    const uint32_t bits = draw(f, seed);
                    stored[row][(2 * group + i) * per_unit + n] = bits;
                    a[row][(4 * group + (int)pair[i]) * per_unit + n] = number(f, bits);
                }
            if (f->bits == 32) {
                stored[row][group] = draw(f, seed);
                a[row][2 * group + (int)pair[0] / 2] = number(f, stored[row][group]);
            }
            // Where the nibble goes: 16 bits of a row at a time, or 32 for elements of 8 and 4.
            const int selector = t->sparse - 1, high = row / 8;
            const int piece = f->bits >= 16 ? group / 4 : group / 8;
            const int lanes = units * 16 / 256; // of a quad
            const int lane =
                f->bits >= 16 ? selector * lanes + piece : selector * lanes + 2 * piece + high;
            const int shift = f->bits >= 16 ? 16 * high + group % 4 * 4 : group % 8 * 4;
            r->words[AT_META][row % 8 * 4 + lane] |= nibble << shift;
        }
}

static void draw_scales(const struct form *t, struct registers *r, struct matrices *x,
                        uint64_t *seed)
{
    for (int lane = 0; lane < 32; lane++) // those nobody asks for
        r->words[AT_SCALE_A][lane] = r->words[AT_SCALE_B][lane] = (uint32_t)rig_random(seed);
    for (int side = 0; side < 2; side++)
        for (int row = 0; row < (side ? N : t->m); row++)
            for (int i = 0; i < t->scales; i++) {
                const uint32_t e = (uint32_t)rig_random(seed) % 4,
                               m = (uint32_t)rig_random(seed) % 8;
                const uint32_t bits = t->scale == 'e' ? 125 + e : (5 + e) << 3 | m;
                const double scale =
                    t->scale == 'e' ? ldexp(1, (int)e - 2) : ldexp(1 + m / 8.0, (int)e - 2);
                const int lane = row % 8 * 4 + (side ? t->thread_b : 2 * t->thread_a + row / 8);
                const int byte = (side ? t->byte_b : t->byte_a) + i;
                uint32_t *word = &r->words[side ? AT_SCALE_B : AT_SCALE_A][lane];
                *word = (*word & ~(0xffu << 8 * byte)) | bits << 8 * byte;
                for (int k = i * t->k / t->scales; k < (i + 1) * t->k / t->scales; k++)
                    (side ? x->b : x->a)[row][k] *= scale;
            }
}

static void draw_c(const struct form *t, struct registers *r, struct matrices *x, uint64_t *seed)
{
    for (int lane = 0; lane < 32; lane++)
        for (int v = 0; v < t->m / 4; v++) {
            const int value = (int)(rig_random(seed) % 2001) - 1000;
            const float f = (float)value;
            uint32_t bits = (uint32_t)value;
            x->c[lane / 4 + v / 2 * 8][lane % 4 * 2 + v % 2] = value;
            if (t->c == 'f')
                memcpy(&bits, &f, 4);
            if (t->c == 'h') { // an integer of up to 11 bits as a half
                int e = 0;
                while (abs(value) >> e)
                    e++;
                bits = value ? (uint32_t)(e + 14) << 10 | ((uint32_t)abs(value) << (11 - e) & 0x3ff)
                             : 0;
                bits |= value < 0 ? 0x8000 : 0;
                put(r->words + AT_C, lane, v, 16, bits);
            } else {
                r->words[AT_C + v][lane] = bits;
            }
        }
}

static size_t list(char *text, size_t size, const char *name, int at, int count)
{
    size_t n = (size_t)snprintf(text, size, "{");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%%%s%d", i ? "," : "", name, at + i);
    return n + (size_t)snprintf(text + n, size - n, "}");
}

static void make_kernel(const struct form *t, int na, int nb, int nc, char *text, size_t size)
{
    size_t n = (size_t)snprintf(
        text, size,
        HEAD ".visible .entry k(.param .u64 f)\n{ .reg .b32 %%r<16>, %%t; .reg .b64 %%f, %%o;\n"
             ".reg .b16 %%h<2>; ld.param.u64 %%f, [f]; mov.u32 %%t, %%tid.x;\n"
             "mul.wide.u32 %%o, %%t, 4; add.u64 %%f, %%f, %%o;\n"
             "mov.b16 %%h0, %d; mov.b16 %%h1, %d;\n",
        t->byte_a, t->thread_a);
    for (int i = 0; i < 15; i++)
        n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%r%d, [%%f+%d];\n", i, i * 128);
    n += (size_t)snprintf(text + n, size - n, "mma.%s ", t->text);
    n += list(text + n, size - n, "r", AT_C, nc);
    n += (size_t)snprintf(text + n, size - n, ", ");
    n += list(text + n, size - n, "r", AT_A, na);
    n += (size_t)snprintf(text + n, size - n, ", ");
    n += list(text + n, size - n, "r", AT_B, nb);
    n += (size_t)snprintf(text + n, size - n, ", ");
    n += list(text + n, size - n, "r", AT_C, nc);
    if (t->sparse)
        n += (size_t)snprintf(text + n, size - n, ", %%r%d, %d", AT_META, t->sparse - 1);
    if (t->scales)
        n += (size_t)snprintf(text + n, size - n, ", %%r%d, {%%h0, %%h1}, %%r%d, {%d, %d}",
                              AT_SCALE_A, AT_SCALE_B, t->byte_b, t->thread_b);
    n += (size_t)snprintf(text + n, size - n, ";\n");
    for (int i = 0; i < nc; i++)
        n += (size_t)snprintf(text + n, size - n, "st.global.b32 [%%f+%d], %%r%d;\n", i * 128, i);
    snprintf(text + n, size - n, "ret; }\n");
}

static double result(const struct form *t, const struct registers *r, int lane, int v)
{
    const uint32_t word = r->words[t->c == 'h' ? v / 2 : v][lane];
    float f;
    memcpy(&f, &word, 4);
    const uint32_t half = word >> v % 2 * 16 & 0xffff;
    return t->c == 's' ? (int32_t)word : t->c == 'f' ? f : number(format_of("f16"), half);
}

static double product(const struct form *t, const double *a, const double *b)
{
    double sum = 0;
    for (int k = 0; k < t->k; k++)
        sum += strstr(t->text, "xor") ? a[k] != b[k] : a[k] * b[k];
    return sum;
}

static void check(const struct form *t, uint64_t seed)
{
    static char text[8192];
    static struct registers r;
    static struct matrices x;
    static uint32_t a[MAX_M][MAX_K], b[MAX_M][MAX_K];
    const struct format *fa = format_of(t->a), *fb = format_of(t->b);
    const int stored = t->sparse ? t->k / 2 : t->k;
    memset(&r, 0, sizeof r);
    memset(&x, 0, sizeof x);
    for (int row = 0; row < t->m; row++)
        for (int k = 0; k < t->k && !t->sparse; k++) {
            a[row][k] = draw(fa, &seed);
            x.a[row][k] = number(fa, a[row][k]);
        }
    if (t->sparse)
        draw_sparse(t, fa, &r, a, x.a, &seed);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < t->k; k++) {
            b[n][k] = draw(fb, &seed);
            x.b[n][k] = number(fb, b[n][k]);
        }
    draw_c(t, &r, &x, &seed);
    fill(&r, AT_A, fa, t->m, stored, a);
    fill(&r, AT_B, fb, N, t->k, b);
    if (t->scales)
        draw_scales(t, &r, &x, &seed);
    make_kernel(t, t->m * stored * fa->bits / 1024, t->k * N * fb->bits / 1024,
                t->c == 'h' ? t->m / 8 : t->m / 4, text, sizeof text);
    rig_turn(text, 32, &r, sizeof r);
    for (int lane = 0; lane < 32; lane++)
        for (int v = 0; v < t->m / 4; v++) {
            const int row = lane / 4 + v / 2 * 8, col = lane % 4 * 2 + v % 2;
            const double want = product(t, x.a[row], x.b[col]) + x.c[row][col];
            const double got = result(t, &r, lane, v);
            const double slack = t->c == 's' ? 0 : ldexp(fabs(want), t->c == 'h' ? -11 : -24);
            if (!(fabs(got - want) <= slack))
                fail_msg("%s: row %d column %d is %g, not %g", t->text, row, col, got, want);
        }
}

#define DENSE   "sync.aligned."
#define SPARSE  "sp.sync.aligned."
#define ORDERED "sp::ordered_metadata.sync.aligned."

static void narrow_integers(void **state)
{
    static const struct form forms[] = {
        {DENSE "m8n8k32.row.col.s32.s4.u4.s32", 8, 32, "s4", "u4", 's', .sparse = 0},
        {DENSE "m16n8k32.row.col.satfinite.s32.u4.s4.s32", 16, 32, "u4", "s4", 's', .sparse = 0},
        {DENSE "m16n8k64.row.col.s32.s4.s4.s32", 16, 64, "s4", "s4", 's', .sparse = 0},
        {DENSE "m8n8k128.row.col.s32.b1.b1.s32.and.popc", 8, 128, "b1", "b1", 's', .sparse = 0},
        {DENSE "m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, "b1", "b1", 's', .sparse = 0},
        {DENSE "m16n8k128.row.col.s32.b1.b1.s32.xor.popc", 16, 128, "b1", "b1", 's', .sparse = 0},
        {DENSE "m16n8k256.row.col.s32.b1.b1.s32.and.popc", 16, 256, "b1", "b1", 's', .sparse = 0},
        {DENSE "m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 16, 256, "b1", "b1", 's', .sparse = 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (uint64_t seed = 1; seed < 3; seed++)
            check(&forms[i], seed);
}

static const char *const narrow[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};

// Every pair of types of the kinds that take any.
static void narrow_floats(void **state)
{
    char text[160];
    (void)state;
    for (int i = 0; i < 25; i++) {
        struct form t = {text, 16, 32, narrow[i / 5], narrow[i % 5], 'f', .sparse = 0};
        snprintf(text, sizeof text, DENSE "m16n8k32.row.col.kind::f8f6f4.f32.%s.%s.f32", t.a, t.b);
        check(&t, (uint64_t)i + 1);
        snprintf(text, sizeof text, DENSE "m16n8k32.row.col.kind::f8f6f4.f16.%s.%s.f16", t.a, t.b);
        t.c = 'h';
        check(&t, (uint64_t)i + 1);
        t.c = 'f';
        t.k = 64;
        t.sparse = 1;
        snprintf(text, sizeof text, ORDERED "m16n8k64.row.col.kind::f8f6f4.f32.%s.%s.f32", t.a,
                 t.b);
        check(&t, (uint64_t)i + 1);
    }
}

static void scaled(void **state)
{
    char text[200];
    (void)state;
    for (int i = 0; i < 25; i++)
        for (int sparse = 0; sparse < 2; sparse++) {
            const struct form t = {
                text,  16,    sparse ? 64 : 32, narrow[i / 5], narrow[i % 5], 'f', sparse, 1, 'e',
                i % 4, i % 2, (i + 1) % 4,      (i + 2) % 4};
            snprintf(text, sizeof text,
                     "%sm16n8k%d.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.%s.%s.f32"
                     ".ue8m0",
                     sparse ? ORDERED : DENSE, t.k, t.a, t.b);
            check(&t, (uint64_t)i + 1);
        }
    for (int i = 0; i < 16; i++) {
        const bool four = i & 4, sparse = i & 8;
        const struct form t = {text,
                               16,
                               sparse ? 128 : 64,
                               "e2m1 packed",
                               "e2m1 packed",
                               'f',
                               sparse,
                               four ? 4 : 2,
                               four ? 'm' : 'e',
                               four ? 0 : i % 2 * 2,
                               i / 2 % 2,
                               four ? 0 : i / 2 % 2 * 2,
                               i % 4};
        snprintf(text, sizeof text, "%sm16n8k%d.row.col.kind::%s.f32.e2m1.e2m1.f32.%s",
                 sparse ? ORDERED : DENSE, t.k,
                 four    ? "mxf4nvf4.block_scale.scale_vec::4X"
                 : i % 2 ? "mxf4.block_scale"
                         : "mxf4nvf4.block_scale.scale_vec::2X",
                 four ? "ue4m3" : "ue8m0");
        check(&t, (uint64_t)i + 1);
    }
}

static void sparse_forms(void **state)
{
    static const struct form forms[] = {
        {SPARSE "m16n8k16.row.col.f32.f16.f16.f32", 16, 16, "f16", "f16", 'f', .sparse = 1},
        {ORDERED "m16n8k16.row.col.f16.f16.f16.f16", 16, 16, "f16", "f16", 'h', .sparse = 4},
        {ORDERED "m16n8k32.row.col.f32.f16.f16.f32", 16, 32, "f16", "f16", 'f', .sparse = 1},
        {SPARSE "m16n8k32.row.col.f16.f16.f16.f16", 16, 32, "f16", "f16", 'h', .sparse = 2},
        {SPARSE "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, "bf16", "bf16", 'f', .sparse = 3},
        {SPARSE "m16n8k32.row.col.f32.bf16.bf16.f32", 16, 32, "bf16", "bf16", 'f', .sparse = 2},
        {SPARSE "m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, "tf32", "tf32", 'f', .sparse = 2},
        {ORDERED "m16n8k16.row.col.f32.tf32.tf32.f32", 16, 16, "tf32", "tf32", 'f', .sparse = 2},
        {SPARSE "m16n8k32.row.col.s32.s8.u8.s32", 16, 32, "s8", "u8", 's', .sparse = 2},
        {SPARSE "m16n8k64.row.col.satfinite.s32.u8.s8.s32", 16, 64, "u8", "s8", 's', .sparse = 1},
        {SPARSE "m16n8k64.row.col.s32.s4.u4.s32", 16, 64, "s4", "u4", 's', .sparse = 1},
        {ORDERED "m16n8k64.row.col.s32.u4.u4.s32", 16, 64, "u4", "u4", 's', .sparse = 2},
        {ORDERED "m16n8k128.row.col.s32.s4.s4.s32", 16, 128, "s4", "s4", 's', .sparse = 1},
        {SPARSE "m16n8k64.row.col.f32.e4m3.e5m2.f32", 16, 64, "e4m3", "e5m2", 'f', .sparse = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (uint64_t seed = 1; seed < 3; seed++)
            check(&forms[i], seed);
}

// Metadata that names one place twice, or places in the wrong order where order is promised.
static void wrong_metadata(void **state)
{
    static const struct {
        const char *sp;
        uint32_t nibble;
        bool ok;
    } cases[] = {{"sp", 0x5, false},
                 {"sp", 0x1, true},
                 {"sp::ordered_metadata", 0x1, false},
                 {"sp::ordered_metadata", 0x4, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct rig r;
        snprintf(
            text, sizeof text,
            HEAD
            ".visible .entry k()\n{ .reg .b32 %%z, %%m, %%d<4>; mov.b32 %%z, 0;\n"
            "mov.b32 %%m, 0x4444444%x; mma.%s.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
            " {%%d0, %%d1, %%d2, %%d3}, {%%z, %%z}, {%%z, %%z}, {%%z, %%z, %%z, %%z}, %%m, 0;\nret; }\n",
            cases[i].nibble, cases[i].sp);
        rig_open(&r);
        rig_load(&r, text);
        assert_int_equal(rig_try_run(&r, "k", 1, 32) == TIR_OK, cases[i].ok);
        if (!cases[i].ok)
            assert_message(&r, "names no two places of four");
        rig_close(&r);
    }
}

// A[m][k] = m + 8 k of one of four products, B one column: each layout finds the same numbers.
static void quads(void **state)
{
    static const char *const layouts[] = {"row.row", "row.col", "col.row", "col.col"};
    (void)state;
    for (int form = 0; form < 4; form++) {
        char text[2048];
        uint32_t in[4][32], out[8][32];
        uint16_t *halves = (uint16_t *)in;
        struct rig r;
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++) {
                const int quad = lane / 4 % 4, n = lane % 4 + lane / 16 * 4,
                          other = i + lane / 16 * 4;
                const int am = form & 2 ? other : n, ak = form & 2 ? lane % 4 : i;
                const int bn = form & 1 ? n : other, bk = form & 1 ? i : lane % 4;
                static const uint16_t small[] = {0,      0x3c00, 0x4000, 0x4200,
                                                 0x4400, 0x4500, 0x4600, 0x4700};
                halves[(i / 2 * 32 + lane) * 2 + i % 2] = small[(am + ak + quad) % 8];
                halves[((2 + i / 2) * 32 + lane) * 2 + i % 2] = small[(bn * 3 + bk) % 8];
            }
        snprintf(
            text, sizeof text,
            HEAD
            ".visible .entry k(.param .u64 f)\n{ .reg .b32 %%r<8>, %%t; .reg .f32 %%d<8>, %%z;\n"
            ".reg .b64 %%f, %%o; ld.param.u64 %%f, [f]; mov.u32 %%t, %%tid.x; mov.b32 %%z, 0;\n"
            "mul.wide.u32 %%o, %%t, 4; add.u64 %%f, %%f, %%o; ld.global.b32 %%r0, [%%f];\n"
            "ld.global.b32 %%r1, [%%f+128]; ld.global.b32 %%r2, [%%f+256];\n"
            "ld.global.b32 %%r3, [%%f+384]; mma.sync.aligned.m8n8k4.%s.f32.f16.f16.f32\n"
            "{%%d0,%%d1,%%d2,%%d3,%%d4,%%d5,%%d6,%%d7}, {%%r0,%%r1}, {%%r2,%%r3},\n"
            "{%%z,%%z,%%z,%%z,%%z,%%z,%%z,%%z}; st.global.f32 [%%f], %%d0; st.global.f32 [%%f+128], %%d1;\n"
            "st.global.f32 [%%f+256], %%d2; st.global.f32 [%%f+384], %%d3; st.global.f32 [%%f+512], %%d4;\n"
            "st.global.f32 [%%f+640], %%d5; st.global.f32 [%%f+768], %%d6; st.global.f32 [%%f+896], %%d7;\n"
            "ret; }\n",
            layouts[form]);
        rig_open(&r);
        rig_load(&r, text);
        const uint64_t buffer = rig_buffer(&r, NULL, sizeof out);
        tir_error error;
        assert_int_equal(emu_write(r.emu, buffer, in, sizeof in, &error), TIR_OK);
        rig_param_u64(&r, buffer);
        rig_run(&r, "k", 1, 32);
        rig_read(&r, out, buffer, sizeof out);
        rig_close(&r);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 8; i++) {
                const int quad = lane / 4 % 4;
                const int row = (lane & 1) + (i & 2) + lane / 16 * 4;
                const int col = (i & 4) + (lane & 2) + (i & 1);
                float want = 0, got;
                for (int k = 0; k < 4; k++)
                    want += (float)((row + k + quad) % 8 * ((col * 3 + k) % 8));
                memcpy(&got, &out[i][lane], 4);
                if (got != want)
                    fail_msg("%s: lane %d value %d is %g, not %g", layouts[form], lane, i, got,
                             want);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_integers), cmocka_unit_test(narrow_floats),
        cmocka_unit_test(scaled),          cmocka_unit_test(sparse_forms),
        cmocka_unit_test(wrong_metadata),  cmocka_unit_test(quads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
