// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the system provides to device code, as nvcc calls it (ptx/system.cu): printf, assert,
// malloc, calls. And alloca, special registers, and atomics that nvcc does not print.

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "rig.h"

// --- printf ---

static size_t expect_printf(char *to, size_t size, int t)
{
    size_t at = 0;
#define P(...) at += (size_t)snprintf(to + at, size - at, __VA_ARGS__)
    P("%d %i %u %x %X %o|", t, -t, (unsigned)t * 7u, (unsigned)t * 255, (unsigned)t * 4095,
      (unsigned)t + 8);
    P("[%5d] [%-5d] [%05d] [%+d] [% d] [%.3d] [%8.3d]|", t, t, -t, t, t, t, t);
    P("%lld %llu %llx %#x %#o|", -5000000000LL * t, 18000000000000000000ULL, 0xfeedULL << t,
      (unsigned)t, (unsigned)t);
    P("%f %.2f %10.3f %-10.1f| %e %.3E %g %G|", t * 1.5, -t * 0.125, t / 3.0, (double)t, t * 1e10,
      t * 1e-7, t * 0.5, t * 1e20);
    P("%+.1f % .1f %08.2f %a|", (double)t, (double)t, -1.5 * t, t * 0.75);
    P("%s %10s %-10s %.2s %c%c%%|", "text", "right", "left", "cut", 'a' + t, 'z');
    P("%*d %-*d %.*f|", 6, t, 4, t, 2, t * 1.25);
    P("%hd %hhu %ld %zu|\n", (short)t, (unsigned char)t, (long)t, (size_t)t);
#undef P
    return at;
}

static void prints(void **state)
{
    struct rig *r = *state;
    static char want[16384];
    for (int first = 0; first < 8; first++) {
        r->printed_size = 0;
        rig_param(r, &first, 4);
        rig_run(r, "prints", 1, 1);
        expect_printf(want, sizeof want, first);
        assert_string_equal(r->printed, want);
    }
    int out[2];
    const uint64_t po = rig_buffer(r, NULL, sizeof out);
    rig_param_u64(r, po);
    r->printed_size = 0;
    rig_run(r, "returns", 1, 1);
    rig_read(r, out, po, sizeof out);
    assert_string_equal(r->printed, "1 two\nnothing\n");
    assert_int_equal(out[0], 2);
    assert_int_equal(out[1], 0);
}

// --- assert, malloc ---

static void asserts(void **state)
{
    struct rig *r = *state;
    int in[32];
    for (int i = 0; i < 32; i++)
        in[i] = i;
    const uint64_t pi = rig_buffer(r, in, sizeof in);
    rig_param_u64(r, pi);
    rig_param_u32(r, 32);
    rig_run(r, "asserts", 1, 32);
    rig_param_u64(r, pi);
    rig_param_u32(r, 20);
    assert_int_equal(rig_try_run(r, "asserts", 1, 32), TIR_ERR_DEVICE);
    assert_message(r, "assertion failed: in[threadIdx.x] < limit && \"too large\", system.cu:");
    assert_message(r, "in void asserts(const int *, int)");
    assert_message(r, "thread (20,0,0)");
}

static void allocates(void **state)
{
    struct rig *r = *state;
    int out[40];
    const uint64_t po = rig_buffer(r, NULL, sizeof out);
    rig_param_u64(r, po);
    rig_param_u32(r, 7);
    rig_run(r, "lists", 1, 40);
    rig_read(r, out, po, sizeof out);
    for (int t = 0; t < 40; t++)
        assert_int_equal(out[t], 21 * (t + 1));
    rig_param_u64(r, po);
    assert_int_equal(rig_try_run(r, "leaks", 1, 1), TIR_ERR_DEVICE);
    assert_message(r, "out-of-bounds");
    rig_param_u64(r, po);
    assert_int_equal(rig_try_run(r, "frees_twice", 1, 1), TIR_ERR_DEVICE);
    assert_message(r, "call of free with 0x");
}

// --- calls and local memory ---

static int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static void calls(void **state)
{
    struct rig *r = *state;
    int which[32], deep[32];
    float out[32];
    for (int i = 0; i < 32; i++)
        which[i] = i * 7 % 3;
    const uint64_t pd = rig_buffer(r, NULL, sizeof deep), po = rig_buffer(r, NULL, sizeof out);
    const float a = 1.5f, b = 10;
    rig_param_u64(r, pd);
    rig_param_u64(r, po);
    rig_param_u64(r, rig_buffer(r, which, sizeof which));
    rig_param(r, &a, 4);
    rig_param(r, &b, 4);
    rig_run(r, "calls", 1, 32);
    rig_read(r, deep, pd, sizeof deep);
    rig_read(r, out, po, sizeof out);
    for (int t = 0; t < 32; t++) {
        const float x = a + (float)t;
        assert_int_equal(deep[t], ackermann(2, t % 4));
        assert_float_equal(out[t],
                           which[t] == 0   ? x + b
                           : which[t] == 1 ? x * b
                           : x > b         ? x
                                           : b,
                           0);
    }
}

static void local_arrays(void **state)
{
    struct rig *r = *state;
    uint32_t in[16], out[32];
    enum { ROUNDS = 50 };
    for (uint32_t i = 0; i < 16; i++)
        in[i] = i * 2654435761u;
    const uint64_t po = rig_buffer(r, NULL, sizeof out);
    rig_param_u64(r, po);
    rig_param_u64(r, rig_buffer(r, in, sizeof in));
    rig_param_u32(r, ROUNDS);
    rig_run(r, "local_arrays", 1, 32);
    rig_read(r, out, po, sizeof out);
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t s[16], sum = 0;
        for (int i = 0; i < 16; i++)
            s[i] = in[i] + t;
        for (uint32_t k = 0; k < ROUNDS; k++) {
            const uint32_t at = s[k & 15] & 15;
            s[at] = s[at] * 1664525u + s[(at + k) & 15] + 1013904223u;
        }
        for (uint32_t i = 0; i < 16; i++)
            sum ^= s[i] * (i + 1);
        assert_int_equal(out[t], sum);
    }
}

static void specials(void **state)
{
    struct rig *r = *state;
    uint32_t out[6];
    const uint64_t po = rig_buffer(r, NULL, sizeof out);
    rig_param_u64(r, po);
    r->shared_bytes = 512;
    rig_run(r, "specials", 1, 1);
    r->shared_bytes = 0;
    rig_read(r, out, po, sizeof out);
    const uint32_t want[] = {0, 512, 0, 1, 1, 1};
    assert_memory_equal(out, want, sizeof want);
}

// --- what nvcc does not print ---

#define HEAD ".version 9.0\n.target sm_100a\n.address_size 64\n"

static void stack(void **state)
{
    (void)state;
    uint64_t src[32][4], out[32];
    for (uint32_t i = 0; i < 32; i++)
        src[i][0] = i % 7 * 8 + 16;
    // Twice the lane's number of bytes, the second at an alignment of 64; then back to the first.
    rig_each(
        "stacksave.u64 %a4; alloca.u64 %a5, %a0; alloca.u64 %a6, %a0, 64; st.local.u64 [%a5], 5;"
        "st.local.u64 [%a6+8], 7; and.b64 %a7, %a6, 63; stackrestore.u64 %a4;"
        "alloca.u64 %a4, 8; sub.u64 %a4, %a4, %a5; add.u64 %a7, %a7, %a4;"
        "sub.u64 %a6, %a6, %a5; setp.ge.u64 %q0, %a6, %a0; selp.u64 %out, %a7, 99, %q0;",
        (const uint64_t(*)[4])src, 32, out);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], 0);
    struct rig r;
    rig_open(&r);
    rig_load(
        &r, HEAD
        ".entry f() { .reg .b64 %a; alloca.u64 %a, 99999; ret; }\n"
        ".entry g() { .reg .b64 %a; alloca.u64 %a, 16; ld.local.u64 %a, [%a]; ld.u64 %a, [%a]; ret; }\n"
        ".entry h() { stackrestore.u64 12345; ret; }\n");
    assert_int_equal(rig_try_run(&r, "f", 1, 1), TIR_ERR_DEVICE);
    assert_message(&r, "call stack overflow: alloca");
    assert_int_equal(rig_try_run(&r, "g", 1, 1), TIR_ERR_DEVICE);
    assert_message(&r, "undefined value is part of an address");
    assert_int_equal(rig_try_run(&r, "h", 1, 1), TIR_ERR_DEVICE);
    assert_message(&r, "stackrestore of what no stacksave gave");
    rig_close(&r);
}

static void wide_atomics(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r);
    uint64_t cell[2] = {1, 2}, out[4];
    rig_load(&r,
             HEAD ".entry f(.param .u64 p, .param .u64 q) { .reg .b64 %a<8>; .reg .b128 %z<4>;\n"
                  "ld.param.u64 %a0, [p]; ld.param.u64 %a1, [q]; mov.b64 %a2, 1; mov.b64 %a3, 2;\n"
                  "mov.b128 %z0, {%a2, %a3}; mov.b128 %z1, {%a3, %a3};\n"
                  "atom.global.cas.b128 %z2, [%a0], %z1, %z1;\n" // is not there
                  "atom.global.cas.b128 %z2, [%a0], %z0, %z1;\n"
                  "mov.b128 {%a4, %a5}, %z2; st.global.v2.u64 [%a1], {%a4, %a5};\n"
                  "atom.global.exch.b128 %z2, [%a0], %z0;\n"
                  "mov.b128 {%a4, %a5}, %z2; st.global.v2.u64 [%a1+16], {%a4, %a5}; ret; }\n");
    const uint64_t pc = rig_buffer(&r, cell, sizeof cell), po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, pc);
    rig_param_u64(&r, po);
    rig_run(&r, "f", 1, 1);
    rig_read(&r, out, po, sizeof out);
    rig_read(&r, cell, pc, sizeof cell);
    const uint64_t want[] = {1, 2, 2, 2};
    assert_memory_equal(out, want, sizeof want);
    assert_int_equal(cell[0], 1);
    assert_int_equal(cell[1], 2);
    rig_close(&r);
}

static void float_reductions(void **state)
{
    (void)state;
    static const uint32_t values[] = {0x3f800000, 0xc0400000, 0x80000000, 0x7fc00000, 0x40000000};
    uint64_t src[5][4], out[5];
    for (int i = 0; i < 5; i++)
        src[i][0] = values[i];
    rig_each("redux.sync.min.f32 %f4, %f0, 0x1f; redux.sync.max.abs.f32 %f5, %f0, 0x1f;"
             "mov.b32 %b4, %f4; mov.b32 %b5, %f5; mov.b64 %out, {%b4, %b5};",
             (const uint64_t(*)[4])src, 5, out);
    assert_int_equal(out[2], 0x40400000c0400000);
    rig_each("redux.sync.min.NaN.f32 %f4, %f0, 0x1f; mov.b32 %b4, %f4; cvt.u64.u32 %out, %b4;",
             (const uint64_t(*)[4])src, 5, out);
    assert_int_equal(out[4], 0x7fffffff);
}

static void constant_registers(void **state)
{
    (void)state;
    uint64_t src[1][4] = {{0}}, out[1];
    rig_each(
        "mov.u32 %b4, %pm3; mov.u32 %b5, %envreg31; or.b32 %b4, %b4, %b5; mov.u64 %a4, %pm7_64;"
        "cvt.u32.u64 %b5, %a4; or.b32 %b4, %b4, %b5; mov.u32 %b5, %reserved_smem_offset_end;"
        "mov.v4.u32 {%b6, %b7, %b0, %b1}, %ntid; or.b32 %b4, %b4, %b1; mul.lo.u32 %b5, %b5, %b6;"
        "mul.lo.u32 %b5, %b5, %b7; mov.u16 %h4, %nctaid.x; cvt.u32.u16 %b6, %h4;"
        "mad.lo.u32 %b5, %b5, %b6, %b4; cvt.u64.u32 %out, %b5;",
        (const uint64_t(*)[4])src, 1, out);
    assert_int_equal(out[0], 1024);
    struct rig r;
    rig_open(&r);
    assert_int_not_equal(rig_try_load(&r, HEAD ".entry f() { .reg .u32 %r; mov.u32 %r, %pmx; }"),
                         TIR_OK);
    assert_message(&r, "unknown register '%pmx'");
    assert_int_not_equal(
        rig_try_load(&r, HEAD ".entry f() { .reg .u64 %r; multimem.st.relaxed.sys.global.u64 [%r],"
                              "%r; }"),
        TIR_OK);
    assert_message(&r, "multicast memory of several GPUs is not emulated");
    static const char *const refused[][2] = {
        {"tcgen05.shift.cta_group::1.down [%r];",
         "tcgen05.shift.cta_group::1.down: a shift of rows"},
        {"tcgen05.mma.sp.cta_group::1.kind::f16 [%r], %a, %a, [%r], %r, p;",
         "tcgen05.mma.sp.cta_group::1.kind::f16: sparse A and"},
        {"tcgen05.mma.cta_group::1.kind::f16.ashift [%r], [%r], %a, %r, p;",
         "tcgen05.mma.cta_group::1.kind::f16.ashift: sparse A and"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char ptx[300];
        snprintf(ptx, sizeof ptx,
                 "%s.entry f() { .reg .pred p; .reg .u32 %%r; .reg .u64 %%a;\n%s }", HEAD,
                 refused[i][0]);
        assert_int_not_equal(rig_try_load(&r, ptx), TIR_OK);
        assert_message(&r, refused[i][1]);
    }
    rig_close(&r);
}

static int open_module(void **state)
{
    struct rig *r = malloc(sizeof *r);
    rig_open(r);
    rig_load_file(r, "system.ptx");
    *state = r;
    return 0;
}

static int close_module(void **state)
{
    rig_close(*state);
    free(*state);
    return 0;
}

// A sweep over all codes on an H200: of a factor only these two make the result zero, of an addend
// none does.
static void out_of_bounds(void **state)
{
    (void)state;
    static const uint16_t codes[] = {0x7ff7, 0xfff7, 0x7ff6, 0x7ff8,
                                     0x7fff, 0xffff, 0x7fc0, 0xffc0};
    static uint64_t src[32][4], out[32];
    for (int i = 0; i < 32; i++) {
        src[i][0] = codes[i % 8];
        src[i][1] = 0x3c003c00;
    }
    rig_each("fma.rn.oob.f16 %c4, %c0, %c1, %c1; fma.rn.oob.relu.bf16 %c5, %c1, %c0, %c1;"
             "fma.rn.oob.bf16 %c6, %c1, %c1, %c0; fma.rn.oob.f16x2 %b4, %b0, %b1, %b1;"
             "shr.u32 %b4, %b4, 16; cvt.u16.u32 %c7, %b4;"
             "mov.b64 %out, {%c4, %c5, %c6, %c7};",
             (const uint64_t(*)[4])src, 32, out);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], i % 8 < 2 ? 0x3c007fff00000000 : 0x3c007fff7fff7fff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints),
        cmocka_unit_test(asserts),
        cmocka_unit_test(allocates),
        cmocka_unit_test(calls),
        cmocka_unit_test(local_arrays),
        cmocka_unit_test(specials),
        cmocka_unit_test(stack),
        cmocka_unit_test(wide_atomics),
        cmocka_unit_test(float_reductions),
        cmocka_unit_test(constant_registers),
        cmocka_unit_test(out_of_bounds),
    };
    return cmocka_run_group_tests(tests, open_module, close_module);
}
