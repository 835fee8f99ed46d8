// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma against plain loops: every type, layouts of shared memory, N, sparse A, register hazards.
//
// Matrices are put into shared memory here by the rule a tensor copy swizzles by (16-byte unit c of
// row r goes to unit c ^ phase(r)), not by the address formula the emulator reads them with.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/lane/fp.h"
#include "rig.h"

#define HEAD ".version 8.4\n.target sm_90a\n.address_size 64\n"

enum { M = 64, MAX_N = 256, MAX_K = 256, A_AT = 1024, B_AT = 40960, BYTES = 110592 };

struct form {
    const char *a, *b, *d;
    int n;
    int swizzle_a, swizzle_b; // bytes; swizzle_a -1: A in registers
    int trans_a, trans_b;
    int sparse; // 1 + selector
    int negate_a, negate_b;
    const char *tail; // after the types
};

static int bits_of(const char *type)
{
    if (!strcmp(type, "b1"))
        return 1;
    if (!strcmp(type, "tf32"))
        return 32;
    return strstr(type, "f16") ? 16 : 8;
}

static enum emu_type type_of(const char *name)
{
    return emu_type_find((tir_str){name, strlen(name)});
}

// A small number of the type, and its bits.
static uint32_t draw(const char *type, double *value, uint64_t *seed)
{
    const int x = (int)(rig_random(seed) % 9) - 4;
    if (!strcmp(type, "b1"))
        return (uint32_t)(*value = (double)(rig_random(seed) & 1));
    if (!strcmp(type, "u8"))
        return (uint32_t)(*value = (double)(rig_random(seed) & 0xff));
    if (!strcmp(type, "s8"))
        return (uint32_t)(int)(*value = (double)(int8_t)rig_random(seed)) & 0xff;
    *value = x;
    return (uint32_t)emu_fp_from_f64(x, type_of(type), EMU_RN, false);
}

static void put_bits(uint8_t *at, size_t index, int bits, uint32_t value)
{
    for (int i = 0; i < bits; i++)
        if (value >> i & 1)
            at[(index * (size_t)bits + (size_t)i) / 8] |=
                (uint8_t)(1u << (index * (size_t)bits + (size_t)i) % 8);
}

struct layout {
    int swizzle, trans, bits, rows, k;
    int leading, stride; // bytes
};

// Strides with gaps between the pieces, so that a wrong one is seen.
static struct layout layout_of(int swizzle, int trans, int bits, int rows, int k)
{
    struct layout l = {swizzle, trans, bits, rows, k, 0, 0};
    const int t = 128 / bits;
    if (!swizzle) {
        l.leading = trans ? (rows / t) * 128 + 16 : 128 * (rows / 8) + 32;
        l.stride = 128;
    } else if (trans) {
        l.stride = 8 * swizzle;
        l.leading = (k / 8) * 8 * swizzle;
    } else {
        l.stride = 8 * swizzle;
    }
    return l;
}

static void put(uint8_t *image, const struct layout *l, int i, int k, uint32_t value)
{
    const int t = 128 / l->bits, major = l->trans ? i : k, minor = l->trans ? k : i;
    const int unit = major / t;
    int at;
    if (!l->swizzle) {
        at = minor % 8 * 16 + minor / 8 * (l->trans ? l->leading : l->stride) +
             unit * (l->trans ? l->stride : l->leading);
    } else {
        const int units = l->swizzle / 16, phase = minor % 8 * l->swizzle / 128;
        at = minor % 8 * l->swizzle + minor / 8 * l->stride + unit / units * l->leading +
             (unit % units ^ phase) * 16;
    }
    put_bits(image + at, (size_t)(major % t), l->bits, value);
}

static uint64_t descriptor(const struct layout *l, int address)
{
    const uint64_t mode = l->swizzle == 128 ? 1 : l->swizzle == 64 ? 2 : l->swizzle == 32 ? 3 : 0;
    return (uint64_t)address >> 4 | (uint64_t)(l->leading >> 4) << 16 |
           (uint64_t)(l->stride >> 4) << 32 | mode << 62;
}

struct data {
    uint8_t image[BYTES]; // of shared memory
    uint32_t a[4][128], meta[128], d[128][128];
};

struct model {
    double a[M][MAX_K], b[MAX_N][MAX_K], d[M][MAX_N];
};

static size_t list(char *text, size_t size, char name, int count)
{
    size_t n = (size_t)snprintf(text, size, "{");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%%%c%d", i ? "," : "", name, i);
    return n + (size_t)snprintf(text + n, size - n, "}");
}

static int registers_of(const struct form *t)
{
    return t->n / (!strcmp(t->d, "f16") ? 4 : 2);
}

static const char load[] =
    ".extern .shared .align 1024 .b8 s[];\n"
    ".visible .entry k(.param .u64 p, .param .u64 da, .param .u64 db, .param .u32 scale)\n"
    "{ .reg .b32 %d<128>, %a<4>, %m, %t, %o, %v; .reg .b64 %p, %q, %x, %y, %w; .reg .pred %c, %s;\n"
    "ld.param.u64 %p, [p]; ld.param.u64 %x, [da]; ld.param.u64 %y, [db]; mov.u32 %t, %tid.x;\n"
    "ld.param.u32 %v, [scale]; setp.ne.u32 %s, %v, 0; shl.b32 %o, %t, 2; cvt.u64.u32 %w, %o;\n"
    "add.u64 %q, %p, %w; mov.u32 %v, s; add.u32 %o, %o, %v; mov.u32 %m, 0;\n"
    "L: ld.global.b32 %a0, [%q]; st.shared.b32 [%o], %a0; add.u64 %q, %q, 512;\n"
    "add.u32 %o, %o, 512; add.u32 %m, %m, 512; setp.lt.u32 %c, %m, 110592; @%c bra L;\n"
    "fence.proxy.async; bar.sync 0;\n";

static void make_kernel(const struct form *t, int k, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, HEAD "%s", load);
    for (int i = 0; i < 4; i++)
        n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%a%d, [%%q+%d];\n", i, i * 512);
    n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%m, [%%q+2048];\n");
    for (int i = 0; i < registers_of(t); i++)
        n += (size_t)snprintf(text + n, size - n, "ld.global.b32 %%d%d, [%%q+%d];\n", i,
                              2560 + i * 512);
    n +=
        (size_t)snprintf(text + n, size - n,
                         "wgmma.fence.sync.aligned;\n"
                         "wgmma.mma_async%s.sync.aligned.m64n%dk%d.%s.%s.%s%s ",
                         t->sparse ? ".sp" : "", t->n, k, t->d, t->a, t->b, t->tail ? t->tail : "");
    n += list(text + n, size - n, 'd', registers_of(t));
    n += (size_t)snprintf(text + n, size - n, ", ");
    if (t->swizzle_a < 0)
        n += list(text + n, size - n, 'a', 4);
    else
        n += (size_t)snprintf(text + n, size - n, "%%x");
    n += (size_t)snprintf(text + n, size - n, ", %%y");
    if (t->sparse)
        n += (size_t)snprintf(text + n, size - n, ", %%m, %d", t->sparse - 1);
    n += (size_t)snprintf(text + n, size - n, ", %%s");
    if (strcmp(t->d, "s32") != 0)
        n += (size_t)snprintf(text + n, size - n, ", %d, %d", t->negate_a ? -1 : 1,
                              t->negate_b ? -1 : 1);
    if (bits_of(t->a) == 16 && t->swizzle_a >= 0)
        n += (size_t)snprintf(text + n, size - n, ", %d", t->trans_a);
    if (bits_of(t->a) == 16)
        n += (size_t)snprintf(text + n, size - n, ", %d", t->trans_b);
    n +=
        (size_t)snprintf(text + n, size - n,
                         ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (int i = 0; i < registers_of(t); i++)
        n += (size_t)snprintf(text + n, size - n, "st.global.b32 [%%q+%d], %%d%d;\n",
                              2560 + i * 512, i);
    snprintf(text + n, size - n, "ret; }\n");
}

// The stored elements of A: all of them, or two of four with their places in metadata.
static void draw_a(const struct form *t, const struct layout *l, int k, struct data *data,
                   struct model *x, uint64_t *seed)
{
    static const int pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const int stored = t->sparse ? k / 2 : k, bits = bits_of(t->a), e = 32 / bits;
    for (int row = 0; row < M; row++)
        for (int j = 0; j < stored; j++) {
            double value;
            const uint32_t word = draw(t->a, &value, seed);
            int at = j;
            if (t->sparse) {
                const int half = bits == 32, group = half ? j : j / 2; // nibble of the metadata
                static int pair;
                if (half)
                    pair = (int)(rig_random(seed) % 2) * 5;
                else if (j % 2 == 0)
                    pair = (int)(rig_random(seed) % 6);
                at = half ? 2 * j + pair / 5 : 4 * group + pairs[pair][j % 2];
                const uint32_t nibble = (uint32_t)(pairs[pair][0] | pairs[pair][1] << 2);
                const int r = row % 16, lane = bits >= 16 ? 2 * (t->sparse - 1) + group / 4
                                                          : r / 8 + 2 * (group / 8);
                const int shift = bits >= 16 ? r / 8 * 16 + group % 4 * 4 : group % 8 * 4;
                if (half || j % 2 == 0)
                    data->meta[row / 16 * 32 + r % 8 * 4 + lane] |= nibble << shift;
            }
            x->a[row][at] = t->negate_a ? -value : value;
            if (t->swizzle_a >= 0) {
                put(data->image + A_AT, l, row, j, word);
                continue;
            }
            const int reg = row / 8 % 2 + j / (4 * e) * 2;
            const int lane = row / 16 * 32 + row % 8 * 4 + j % (4 * e) / e;
            data->a[reg][lane] |= word << j % e * bits;
        }
}

static int lane_of(int row, int col)
{
    return row / 16 * 32 + row % 8 * 4 + col % 8 / 2;
}

static void draw_d(const struct form *t, struct data *data, struct model *x, uint64_t *seed)
{
    for (int row = 0; row < M; row++)
        for (int col = 0; col < t->n; col++) {
            const int value = (int)(rig_random(seed) % 201) - 100;
            const int v = col / 8 * 4 + row / 8 % 2 * 2 + col % 2, lane = lane_of(row, col);
            x->d[row][col] = value;
            if (!strcmp(t->d, "f16"))
                data->d[v / 2][lane] |= (uint32_t)emu_fp_from_f64(value, EMU_f16, EMU_RN, false)
                                        << v % 2 * 16;
            else
                data->d[v][lane] =
                    !strcmp(t->d, "s32") ? (uint32_t)value : emu_f32_bits((float)value);
        }
}

static double result(const struct form *t, const struct data *data, int row, int col)
{
    const int v = col / 8 * 4 + row / 8 % 2 * 2 + col % 2, lane = lane_of(row, col);
    if (!strcmp(t->d, "f16"))
        return emu_f16_to_f32((uint16_t)(data->d[v / 2][lane] >> v % 2 * 16));
    return !strcmp(t->d, "s32") ? (int32_t)data->d[v][lane] : emu_f32_of(data->d[v][lane]);
}

static void check(const struct form *t, uint64_t seed)
{
    static char text[32768];
    static struct data data;
    static struct model x;
    struct rig r;
    const int k = (t->sparse ? 512 : 256) / bits_of(t->a), bits = bits_of(t->a);
    const uint32_t scale = t->n % 3 != 0;
    memset(&data, 0, sizeof data);
    memset(&x, 0, sizeof x);
    const struct layout la =
        layout_of(t->swizzle_a < 0 ? 0 : t->swizzle_a, t->trans_a, bits, M, t->sparse ? k / 2 : k);
    const struct layout lb = layout_of(t->swizzle_b, t->trans_b, bits, t->n, k);
    draw_a(t, &la, k, &data, &x, &seed);
    for (int n = 0; n < t->n; n++)
        for (int i = 0; i < k; i++) {
            put(data.image + B_AT, &lb, n, i, draw(t->b, &x.b[n][i], &seed));
            x.b[n][i] *= t->negate_b ? -1 : 1;
        }
    draw_d(t, &data, &x, &seed);
    make_kernel(t, k, text, sizeof text);
    rig_open(&r);
    rig_load(&r, text);
    const uint64_t buffer = rig_buffer(&r, &data, sizeof data);
    rig_param_u64(&r, buffer);
    rig_param_u64(&r, descriptor(&la, 1024 + A_AT)); // dynamic shared memory starts at 1024
    rig_param_u64(&r, descriptor(&lb, 1024 + B_AT));
    rig_param_u32(&r, scale);
    r.shared_bytes = BYTES;
    rig_run(&r, "k", 1, 128);
    rig_read(&r, &data, buffer, sizeof data);
    rig_close(&r);
    for (int row = 0; row < M; row++)
        for (int col = 0; col < t->n; col++) {
            double want = scale ? x.d[row][col] : 0;
            for (int i = 0; i < k; i++)
                want += x.a[row][i] * x.b[col][i];
            const double got = result(t, &data, row, col);
            if (got != want)
                fail_msg(
                    "%s x %s, n %d, swizzles %d %d, transposed %d %d, sparse %d: row %d column "
                    "%d is %g, not %g",
                    t->a, t->b, t->n, t->swizzle_a, t->swizzle_b, t->trans_a, t->trans_b, t->sparse,
                    row, col, got, want);
        }
}

static void types(void **state)
{
    static const struct form forms[] = {
        {"f16", "f16", "f32", 64, 128, 128, .negate_a = 1},
        {"f16", "f16", "f16", 72, 128, 64, .negate_b = 1},
        {"bf16", "bf16", "f32", 256, 64, 128, 0},
        {"tf32", "tf32", "f32", 40, 128, 32, .negate_a = 1, .negate_b = 1},
        {"e4m3", "e5m2", "f32", 48, 128, 128, .sparse = 0},
        {"e5m2", "e5m2", "f16", 128, 32, 64, .sparse = 0},
        {"e5m2", "e4m3", "f32", 8, 0, 0, .sparse = 0},
        {"e4m3", "e4m3", "f32", 16, -1, 128, .negate_b = 1},
        {"s8", "u8", "s32", 32, 128, 128, .tail = ".satfinite"},
        {"u8", "u8", "s32", 224, 64, 32, .sparse = 0},
        {"u8", "s8", "s32", 16, -1, 128, .sparse = 0},
        {"b1", "b1", "s32", 256, 128, 128, .tail = ".and.popc"},
        {"b1", "b1", "s32", 24, -1, 0, .tail = ".and.popc"},
        {"tf32", "tf32", "f32", 256, -1, 64, .sparse = 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i], i + 1);
}

static void layouts(void **state)
{
    static const int swizzles[] = {0, 32, 64, 128, -1};
    (void)state;
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 4; b++)
            for (int trans = 0; trans < 4; trans++) {
                const struct form t = {.a = "bf16",
                                       .b = "bf16",
                                       .d = "f32",
                                       .n = trans & 2 ? 128 : 56, // whole patterns of 64 along N
                                       .swizzle_a = swizzles[a],
                                       .swizzle_b = swizzles[b],
                                       .trans_a = trans & 1,
                                       .trans_b = trans >> 1};
                if (a < 4 || !t.trans_a)
                    check(&t, 7);
            }
}

static void sizes(void **state)
{
    (void)state;
    for (int n = 8; n <= 256; n += 8) {
        const struct form t = {.a = "f16",
                               .b = "f16",
                               .d = n % 16 ? "f16" : "f32",
                               .n = n,
                               .swizzle_a = n % 24 ? 128 : -1,
                               .swizzle_b = 128};
        check(&t, (uint64_t)n);
    }
}

static void sparse(void **state)
{
    static const struct form forms[] = {
        {"f16", "f16", "f32", 64, 128, 128, .sparse = 1},
        {"bf16", "bf16", "f32", 16, -1, 64, .sparse = 2},
        {"f16", "f16", "f16", 128, 32, 128, .trans_a = 1, .trans_b = 1, .sparse = 2},
        {"tf32", "tf32", "f32", 24, 64, 128, .sparse = 1},
        {"tf32", "tf32", "f32", 8, -1, 128, .sparse = 2},
        {"e4m3", "e5m2", "f32", 32, 128, 128, .sparse = 1},
        {"s8", "u8", "s32", 256, 0, 0, .sparse = 1},
        {"u8", "u8", "s32", 48, -1, 64, .sparse = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i], i + 1);
}

// --- registers in flight ---

// B is 16 x 8 zeros at the start of shared memory. `body` runs between the load of A and the end.
static tir_status run_body(const char *body, struct rig *r)
{
    static char text[8192];
    static const char head[] = HEAD
        ".visible .entry k(.param .u64 p)\n{ .shared .align 1024 .b8 s[256];\n"
        ".reg .f32 %d<8>, %x; .reg .b32 %a<8>, %t, %o; .reg .b64 %p, %b; .reg .pred %q;\n"
        ".reg .b16 %h; ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; shl.b32 %o, %t, 1; mov.u32 %a0, s;\n"
        "add.u32 %o, %o, %a0; mov.b16 %h, 0; st.shared.b16 [%o], %h; fence.proxy.async;\n"
        "bar.sync 0; shr.u32 %a0, %a0, 4; cvt.u64.u32 %b, %a0; or.b64 %b, %b, 0x800080000;\n"
        "mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0; mov.b32 %a4, 0;\n"
        "mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;\n";
    snprintf(text, sizeof text,
             "%s%s\ncvt.u64.u32 %%b, %%t; shl.b64 %%b, %%b, 2;\n"
             "add.u64 %%p, %%p, %%b; st.global.f32 [%%p], %%d0;\nret; }\n",
             head, body);
    rig_open(r);
    rig_load(r, text);
    rig_param_u64(r, rig_buffer(r, NULL, 512));
    return rig_try_run(r, "k", 1, 128);
}

#define FENCE "wgmma.fence.sync.aligned;\n"
#define PRODUCT                                                              \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%d0,%d1,%d2,%d3}," \
    " {%a0,%a1,%a2,%a3}, %b, 1, 1, 1, 0;\n"
#define COMMIT  "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " n ";\n"

static void hazards(void **state)
{
    static const struct {
        const char *body, *message; // NULL: it is right
    } cases[] = {
        {FENCE PRODUCT COMMIT WAIT("0"), NULL},
        {PRODUCT COMMIT WAIT("0"), "without a wgmma.fence before it"},
        {FENCE PRODUCT COMMIT "add.f32 %x, %d0, %d0;\n" WAIT("0"), "register read: an accumulator"},
        {FENCE PRODUCT COMMIT WAIT("0") "add.f32 %x, %d0, %d0;\n", NULL},
        {FENCE PRODUCT COMMIT "mov.f32 %d3, %d7;\n" WAIT("0"), "written: an accumulator"},
        {FENCE PRODUCT COMMIT "mov.b32 %a2, 1;\n" WAIT("0"), "written: a register of A"},
        {FENCE PRODUCT COMMIT "mov.b32 %a4, %a2;\n" WAIT("0"), "read: a register of A"},
        {FENCE PRODUCT COMMIT WAIT("1") "mov.b32 %a2, 1;\n" WAIT("0"), "written: a register of A"},
        {FENCE PRODUCT WAIT("0") COMMIT WAIT("1"), "accumulator"}, // not committed when waited for
        {FENCE PRODUCT COMMIT WAIT("0") "mov.b32 %a2, 1;\n" PRODUCT COMMIT WAIT("0"),
         "without a wgmma.fence: a register of A"},
        {FENCE PRODUCT COMMIT WAIT("0") "mov.b32 %a2, 1;\n" FENCE PRODUCT COMMIT WAIT("0"), NULL},
        {FENCE PRODUCT PRODUCT COMMIT PRODUCT COMMIT WAIT("0"), NULL},
        {FENCE "mov.f32 %d1, %d2;\n" PRODUCT COMMIT WAIT("0"),
         "without a wgmma.fence: an accumulator"},
        {FENCE PRODUCT COMMIT "setp.eq.u32 %q, %t, 5; @%q mov.b32 %a2, 1;\n" WAIT("0"),
         "written: a register of A"},
        {FENCE PRODUCT COMMIT "setp.eq.u32 %q, %t, 500; @%q mov.b32 %a2, 1;\n" WAIT("0"), NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig r;
        const tir_status status = run_body(cases[i].body, &r);
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

static void wrong_memory(void **state)
{
    struct rig r;
    (void)state;
    // 256 bytes of B; a stride or a start beyond them, and bytes that nobody wrote.
    assert_int_not_equal(
        run_body(FENCE "or.b64 %b, %b, 0x3fff0000;\n" PRODUCT COMMIT WAIT("0"), &r), TIR_OK);
    assert_message(&r, "out-of-bounds shared access of wgmma");
    rig_close(&r);
    assert_int_not_equal(run_body(FENCE "mov.b64 %b, 0;\n" PRODUCT COMMIT WAIT("0"), &r), TIR_OK);
    assert_message(&r, "out-of-bounds shared access of wgmma at 0x0");
    rig_close(&r);
    assert_int_not_equal(
        run_body("cvt.u64.u32 %p, %t; or.b64 %b, %b, %p;\n" FENCE PRODUCT COMMIT WAIT("0"), &r),
        TIR_OK);
    assert_message(&r, "the descriptor of B is not the same in all lanes");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),  cmocka_unit_test(layouts), cmocka_unit_test(sizes),
        cmocka_unit_test(sparse), cmocka_unit_test(hazards), cmocka_unit_test(wrong_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
