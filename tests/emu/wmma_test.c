// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wmma from memory to memory: every shape, type and layout, with strides, against plain loops.

#include <stdio.h>
#include <stdlib.h>

#include "emu/lane/fp.h"
#include "rig.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

struct form {
    int m, n, k;
    const char *a, *b, *c, *d;
    const char *op; // of b1, or how it rounds or saturates
};

enum { MOST = 32 * 160 * 8, A_AT = 0, B_AT = MOST, C_AT = 2 * MOST, D_AT = 3 * MOST };

static enum emu_type type_of(const char *name)
{
    return emu_type_find((tir_str){name, strlen(name)});
}

// A small number of the type, and its bits.
static uint64_t draw(enum emu_type type, double *value, uint64_t *seed)
{
    const int x = (int)(rig_random(seed) % 15) - 7;
    switch (type) {
    case EMU_b1:
        return (uint64_t)(*value = x & 1);
    case EMU_u8:
    case EMU_u4:
        return (uint64_t)(*value = x + 7);
    case EMU_s8:
    case EMU_s4:
    case EMU_s32:
        *value = x;
        return (uint64_t)(int64_t)x & (((uint64_t)1 << emu_types[type].bits) - 1);
    default:
        *value = x;
        return emu_fp_from_f64(x, type, EMU_RN, false);
    }
}

static void put_bits(uint8_t *at, size_t bit, uint32_t bits, uint64_t value)
{
    for (uint32_t i = 0; i < bits; i++)
        if (value >> i & 1)
            at[(bit + i) / 8] |= (uint8_t)(1u << (bit + i) % 8);
}

// Fills a matrix of rows x columns; `by_rows` says which follow one another.
static void fill(uint8_t *image, const char *type, int rows, int columns, bool by_rows, int stride,
                 double (*values)[128], uint64_t *seed)
{
    const enum emu_type t = type_of(type);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            put_bits(image, (size_t)(by_rows ? r * stride + c : c * stride + r) * emu_types[t].bits,
                     emu_types[t].bits, draw(t, &values[r][c], seed));
}

static int registers(const struct form *f, char side, const char *type)
{
    const int bits = emu_types[type_of(type)].bits;
    const int elements = (side == 'a' ? f->m * f->k : side == 'b' ? f->n * f->k : f->m * f->n) / 32;
    if (side < 'c' && !strcmp(type, "f16"))
        return 8;
    return elements * bits / (bits == 64 ? 64 : 32);
}

static size_t list(char *text, size_t size, char name, int count)
{
    size_t n = (size_t)snprintf(text, size, "{");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%%%c%d", i ? "," : "", name, i);
    return n + (size_t)snprintf(text + n, size - n, "}");
}

static size_t access(const struct form *f, char side, const char *type, const char *layout,
                     const int *stride, char *text, size_t size)
{
    char regs[160], shape[32], end[16] = "";
    list(regs, sizeof regs, side, registers(f, side == 'd' ? 'c' : side, type));
    snprintf(shape, sizeof shape, "m%dn%dk%d", f->m, f->n, f->k);
    if (stride)
        snprintf(end, sizeof end, ", %d", *stride);
    if (side == 'd')
        return (size_t)snprintf(text, size,
                                "wmma.store.d.sync.aligned.%s.%s.global.%s [%%p+%d], %s%s;\n",
                                layout, shape, type, D_AT, regs, end);
    return (size_t)snprintf(text, size, "wmma.load.%c.sync.aligned.%s.%s%s.%s %s, [%%p+%d]%s;\n",
                            side, layout, shape, side == 'a' ? "" : ".global", type, regs,
                            side == 'a'   ? A_AT
                            : side == 'b' ? B_AT
                                          : C_AT,
                            end);
}

static void make_kernel(const struct form *f, const char *const *layout, const int *strides,
                        bool with_strides, char *text, size_t size)
{
    const bool is_f64 = !strcmp(f->a, "f64"), is_f16 = !strcmp(f->a, "f16");
    const bool is_b1 = !strcmp(f->a, "b1");
    size_t n =
        (size_t)snprintf(text, size,
                         HEAD ".visible .entry k(.param .u64 p)\n{ .reg .b64 %%p;\n"
                              ".reg .b%d %%a<8>, %%b<8>, %%c<8>, %%d<8>; ld.param.u64 %%p, [p];\n",
                         is_f64 ? 64 : 32);
    const int *s = with_strides ? strides : NULL;
    n += access(f, 'a', f->a, layout[0], s, text + n, size - n);
    n += access(f, 'b', f->b, layout[1], s ? s + 1 : NULL, text + n, size - n);
    n += access(f, 'c', f->c, layout[2], s ? s + 2 : NULL, text + n, size - n);
    n += (size_t)snprintf(text + n, size - n, "wmma.mma%s.sync.aligned.%s.%s.m%dn%dk%d",
                          is_b1 ? f->op : "", layout[0], layout[1], f->m, f->n, f->k);
    if (is_f16)
        n += (size_t)snprintf(text + n, size - n, ".%s.%s ", f->d, f->c);
    else
        n += (size_t)snprintf(text + n, size - n, "%s.%s.%s.%s.%s%s ", is_f64 && f->op ? f->op : "",
                              f->d, f->a, f->b, f->c, !is_f64 && !is_b1 && f->op ? f->op : "");
    n += list(text + n, size - n, 'd', registers(f, 'c', f->d));
    for (int i = 0; i < 3; i++) {
        n += (size_t)snprintf(text + n, size - n, ", ");
        n += list(text + n, size - n, "abc"[i],
                  registers(f, "abc"[i],
                            i == 0   ? f->a
                            : i == 1 ? f->b
                                     : f->c));
    }
    n += (size_t)snprintf(text + n, size - n, ";\n");
    n += access(f, 'd', f->d, layout[3], s ? s + 3 : NULL, text + n, size - n);
    snprintf(text + n, size - n, "ret; }\n");
}

static double value_at(const uint8_t *image, const char *type, int at)
{
    const enum emu_type t = type_of(type);
    uint64_t bits = 0;
    memcpy(&bits, image + (size_t)at * emu_types[t].bits / 8, emu_types[t].bits / 8u);
    return t == EMU_s32 ? (int32_t)bits : emu_fp_to_f64(bits, t);
}

static void check(const struct form *f, int layouts, bool with_strides)
{
    static char text[8192];
    static uint8_t image[4 * MOST];
    static double a[32][128], b[32][128], c[32][128];
    static const char *const names[] = {"row", "col"};
    const char *layout[4];
    uint64_t seed = (uint64_t)layouts + 1;
    for (int i = 0; i < 4; i++)
        layout[i] = names[layouts >> i & 1];
    const int rows[] = {f->m, f->k, f->m, f->m}, columns[] = {f->k, f->n, f->n, f->n};
    int strides[4];
    for (int i = 0; i < 4; i++) {
        strides[i] = layouts >> i & 1 ? rows[i] : columns[i];
        if (with_strides)
            strides[i] += f->k >= 32 && i < 2 ? f->k : 16;
    }
    memset(image, 0, sizeof image);
    fill(image + A_AT, f->a, f->m, f->k, !(layouts & 1), strides[0], a, &seed);
    fill(image + B_AT, f->b, f->n, f->k, layouts & 2, strides[1], b, &seed); // B by its columns
    fill(image + C_AT, f->c, f->m, f->n, !(layouts & 4), strides[2], c, &seed);
    make_kernel(f, layout, strides, with_strides, text, sizeof text);
    rig_turn(text, 32, image, sizeof image);
    for (int i = 0; i < f->m; i++)
        for (int j = 0; j < f->n; j++) {
            double want = c[i][j];
            for (int k = 0; k < f->k; k++)
                want += f->op && strstr(f->op, "xor") ? a[i][k] != b[j][k] : a[i][k] * b[j][k];
            const double got =
                value_at(image + D_AT, f->d, layouts & 8 ? j * strides[3] + i : i * strides[3] + j);
            if (got != want)
                fail_msg("m%dn%dk%d %s %s %s %s: row %d column %d is %g, not %g", f->m, f->n, f->k,
                         f->a, layout[0], layout[1], layout[2], i, j, got, want);
        }
}

static void products(void **state)
{
    static const struct form forms[] = {
        {16, 16, 16, "f16", "f16", "f32", "f32", NULL},
        {16, 16, 16, "f16", "f16", "f16", "f32", NULL},
        {8, 32, 16, "f16", "f16", "f32", "f16", NULL},
        {32, 8, 16, "f16", "f16", "f16", "f16", NULL},
        {16, 16, 16, "bf16", "bf16", "f32", "f32", NULL},
        {8, 32, 16, "bf16", "bf16", "f32", "f32", NULL},
        {32, 8, 16, "bf16", "bf16", "f32", "f32", NULL},
        {16, 16, 8, "tf32", "tf32", "f32", "f32", NULL},
        {8, 8, 4, "f64", "f64", "f64", "f64", NULL},
        {8, 8, 4, "f64", "f64", "f64", "f64", ".rz"},
        {16, 16, 16, "s8", "s8", "s32", "s32", ".satfinite"},
        {8, 32, 16, "u8", "u8", "s32", "s32", NULL},
        {32, 8, 16, "s8", "s8", "s32", "s32", NULL},
    };
    static const struct form narrow[] = {
        {8, 8, 32, "s4", "s4", "s32", "s32", NULL},
        {8, 8, 32, "u4", "u4", "s32", "s32", ".satfinite"},
        {8, 8, 128, "b1", "b1", "s32", "s32", ".xor.popc"},
        {8, 8, 128, "b1", "b1", "s32", "s32", ".and.popc"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int layouts = 0; layouts < 32; layouts++)
            check(&forms[i], layouts & 15, layouts & 16);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        for (int layouts = 0; layouts < 8; layouts++) // A by rows, B by columns
            check(&narrow[i], 2 | (layouts & 3) << 2, layouts & 4);
}

// C[i][j] is 100 i + j: a store by columns transposes, and lanes hold every element once.
static void stores_what_was_loaded(void **state)
{
    static const char text[] = HEAD
        ".visible .entry k(.param .u64 p)\n{ .shared .align 32 .b8 s[1024]; .reg .b32 %c<8>, %t, %a;\n"
        ".reg .b64 %p, %q; ld.param.u64 %p, [p]; mov.u32 %a, s;\n"
        "wmma.load.c.sync.aligned.row.m16n16k16.global.s32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, [%p];\n"
        "wmma.store.d.sync.aligned.col.m16n16k16.shared.s32 [%a], {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};\n"
        "bar.warp.sync -1;\n"
        "wmma.load.c.sync.aligned.row.m16n16k16.shared.s32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, [%a];\n"
        "mov.u32 %t, 16;\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.s32 [%p], {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, %t;\n"
        "ret; }\n";
    int32_t image[16][16];
    (void)state;
    for (int i = 0; i < 256; i++)
        image[i / 16][i % 16] = i / 16 * 100 + i % 16;
    rig_turn(text, 32, image, sizeof image);
    for (int i = 0; i < 256; i++)
        assert_int_equal(image[i / 16][i % 16], i % 16 * 100 + i / 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(stores_what_was_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
