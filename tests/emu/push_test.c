// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// st.async and red.async into another CTA of the cluster, st.bulk, stores that leave out elements.

#include <stdio.h>

#include "rig.h"

#define HEAD ".version 8.8\n.target sm_100a\n.address_size 64\n"

enum { WORDS = 8 };

// A thread of each of two CTAs pushes to the other one, which waits and copies out. The values are
// in %r, %d, %f and %g; what is in the destination before follows them in memory.
static const char cluster_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %%p<4>; .reg .b32 %%r<8>, %%n, %%t, %%o, %%q; .reg .b64 %%d<4>, %%a<4>;\n"
    ".reg .f32 %%f<4>; .reg .f64 %%g<4>;\n"
    ".shared .align 64 .b8 tile[64]; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %%a0, [src]; ld.param.u64 %%a1, [dst]; mov.u32 %%n, %%cluster_ctarank;\n"
    "ld.global.v4.u32 {%%r0, %%r1, %%r2, %%r3}, [%%a0];\n"
    "ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%a0+16];\n"
    "ld.global.v2.u64 {%%d0, %%d1}, [%%a0]; ld.global.v2.u64 {%%d2, %%d3}, [%%a0+16];\n"
    "mov.b32 %%f0, %%r0; mov.b64 %%g0, %%d0;\n"
    "mov.b32 %%f1, %%r1; mov.b64 %%g1, %%d1;\n"
    "mul.lo.u32 %%t, %%n, 64; cvt.u64.u32 %%a2, %%t; add.u64 %%a1, %%a1, %%a2;\n"
    "mov.u32 %%t, tile;\n"
    "ld.global.v4.u32 {%%o, %%q, _, _}, [%%a0+32]; st.shared.v2.u32 [tile], {%%o, %%q};\n"
    "st.shared.v2.u32 [tile+8], {%%o, %%q}; st.shared.v4.u32 [tile+16], {%%o, %%q, %%o, %%q};\n"
    "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], %u;\n"
    "barrier.cluster.arrive; barrier.cluster.wait;\n"
    "xor.b32 %%o, %%n, 1; mapa.shared::cluster.u32 %%t, %%t, %%o;\n"
    "mov.u32 %%q, bar; mapa.shared::cluster.u32 %%q, %%q, %%o;\n"
    "%s\n"
    "wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %%p1, [bar], 0;\n"
    "@!%%p1 bra wait;\n"
    "ld.shared.v4.u32 {%%r0, %%r1, %%r2, %%r3}, [tile];\n"
    "ld.shared.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [tile+16];\n"
    "st.global.v4.u32 [%%a1], {%%r0, %%r1, %%r2, %%r3};\n"
    "st.global.v4.u32 [%%a1+16], {%%r4, %%r5, %%r6, %%r7};\n"
    "barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n";

// What `insn`, which pushes `bytes`, leaves: the words of the second CTA.
static void push(const char *insn, uint32_t bytes, const uint32_t in[12], uint32_t run,
                 uint32_t out[WORDS])
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    uint32_t both[32];
    char text[4096];
    struct rig r;
    snprintf(text, sizeof text, cluster_ptx, bytes, insn);
    rig_open_with(&r, policies[run % 4], run);
    rig_load(&r, text);
    const uint64_t a = rig_buffer(&r, in, 12 * sizeof *in);
    const uint64_t b = rig_buffer(&r, NULL, sizeof both);
    rig_param_u64(&r, a);
    rig_param_u64(&r, b);
    r.cluster = 2;
    rig_run(&r, "k", 2, 1);
    for (uint32_t i = 0; i < 2; i++) {
        rig_read(&r, out, b + 64 * (uint64_t)i, WORDS * sizeof *out);
        memcpy(both + i * WORDS, out, WORDS * sizeof *out);
    }
    assert_memory_equal(both, both + WORDS, WORDS * sizeof *both);
    rig_close(&r);
}

static void stores(void **state)
{
#define ST "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
    static const struct {
        const char *insn;
        uint32_t bytes;
    } rows[] = {
        {ST ".b32 [%t], %r0, [%q];", 4},
        {ST ".u32 [%t], %r0, [%q];", 4},
        {ST ".s32 [%t], %r0, [%q];", 4},
        {ST ".f32 [%t], %f0, [%q];", 4},
        {ST ".b64 [%t], %d0, [%q];", 8},
        {ST ".u64 [%t], %d0, [%q];", 8},
        {ST ".s64 [%t], %d0, [%q];", 8},
        {ST ".f64 [%t], %g0, [%q];", 8},
        {ST ".v2.b32 [%t], {%r0, %r1}, [%q];", 8},
        {ST ".v2.f32 [%t], {%f0, %f1}, [%q];", 8},
        {ST ".v2.u64 [%t], {%d0, %d1}, [%q];", 16},
        {ST ".v2.f64 [%t], {%g0, %g1}, [%q];", 16},
        {ST ".v4.s32 [%t], {%r0, %r1, %r2, %r3}, [%q];", 16},
        {ST ".v4.b64 [%t], {%d0, %d1, %d2, %d3}, [%q];", 32},
        {"st.async.mbarrier::complete_tx::bytes.u32 [%t], %r0, [%q];", 4},
    };
    static const uint32_t in[12] = {1, 2, 3, 4, 5, 6, 7, 8, 100, 101, 0, 0};
    (void)state;
    for (uint32_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
        uint32_t out[WORDS];
        push(rows[i / 4].insn, rows[i / 4].bytes, in, i, out);
        for (uint32_t k = 0; k < WORDS; k++)
            assert_int_equal(out[k], k < rows[i / 4].bytes / 4 ? in[k] : in[8 + k % 2]);
    }
}

static void reductions(void **state)
{
#define OLD 0x80000010u
#define NEW 0x12u
#define RED "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
    static const struct {
        const char *insn;
        uint32_t bytes, low, high;
    } rows[] = {
        {RED ".add.u32 [%t], %r0, [%q];", 4, OLD + NEW, 7},
        {RED ".add.s32 [%t], %r0, [%q];", 4, OLD + NEW, 7},
        {RED ".add.u64 [%t], %d0, [%q];", 8, OLD + NEW, 7 + 3},
        {RED ".min.u32 [%t], %r0, [%q];", 4, NEW, 7},
        {RED ".min.s32 [%t], %r0, [%q];", 4, OLD, 7},
        {RED ".max.u32 [%t], %r0, [%q];", 4, OLD, 7},
        {RED ".max.s32 [%t], %r0, [%q];", 4, NEW, 7},
        {RED ".inc.u32 [%t], %r0, [%q];", 4, 0, 7},
        {RED ".dec.u32 [%t], %r0, [%q];", 4, NEW, 7},
        {RED ".and.b32 [%t], %r0, [%q];", 4, OLD & NEW, 7},
        {RED ".or.b32 [%t], %r0, [%q];", 4, OLD | NEW, 7},
        {RED ".xor.b32 [%t], %r0, [%q];", 4, OLD ^ NEW, 7},
    };
    static const uint32_t in[12] = {NEW, 3, 0, 0, 0, 0, 0, 0, OLD, 7, 0, 0};
    (void)state;
    for (uint32_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
        uint32_t out[WORDS];
        push(rows[i / 4].insn, rows[i / 4].bytes, in, i, out);
        assert_int_equal(out[0], rows[i / 4].low);
        assert_int_equal(out[1], rows[i / 4].high);
    }
}

// The forms without an mbarrier go to global memory and release.
static void global_forms(void **state)
{
    uint32_t word = 5;
    (void)state;
    rig_turn(HEAD ".visible .entry k(.param .u64 p) { .reg .b64 %a; ld.param.u64 %a, [p];\n"
                  "st.async.release.gpu.global.u32 [%a], 40;\n"
                  "st.async.mmio.release.sys.global.u32 [%a], 41;\n"
                  "red.async.release.gpu.global.add.u32 [%a], 1; ret; }",
             1, &word, sizeof word);
    assert_int_equal(word, 42);
}

static void refused(void **state)
{
    static const char *const insns[] = {
        ST ".b16 [%t], %h, [%t];",
        ST ".b32 [%t], %t;",
        "st.async.shared::cluster.b32 [%t], %t, [%t];",
        RED ".add.s64 [%t], %d, [%t];",
        RED ".and.u32 [%t], %t, [%t];",
        "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%t], %t, [%t];",
        "st.bulk.shared::cta [%t], 64, 1;",
        "st.bulk.shared::cta [%t], 64;",
        "st.global.v4.b32 [%d], {%t, _, %t, %t};",
    };
    (void)state;
    for (size_t i = 0; i < sizeof insns / sizeof *insns; i++) {
        char text[512];
        struct rig r;
        snprintf(text, sizeof text,
                 HEAD
                 ".visible .entry k() { .reg .b16 %%h; .reg .b32 %%t; .reg .b64 %%d;\n%s ret; }",
                 insns[i]);
        rig_open(&r);
        if (!rig_try_load(&r, text))
            fail_msg("'%s' is taken", insns[i]);
        rig_close(&r);
    }
}

static const char fill_ptx[] = HEAD
    ".visible .entry k(.param .u64 dst, .param .u32 size)\n{\n"
    ".reg .pred %p; .reg .b32 %t, %r<4>; .reg .b64 %a, %d<4>; .shared .align 16 .b8 tile[256];\n"
    "ld.param.u64 %a, [dst]; ld.param.u32 %t, [size]; mov.u32 %r1, 7;\n"
    "mov.u32 %r0, 0;\n"
    "again: mov.u32 %r2, tile; add.u32 %r2, %r2, %r0; st.shared.u32 [%r2], %r1;\n"
    "add.u32 %r0, %r0, 4; setp.lt.u32 %p, %r0, 256; @%p bra again;\n"
    "st.bulk.weak.shared::cta [tile+16], %t, 0;\n"
    "cvt.u64.u32 %d0, %t; mov.u64 %d1, tile; cvta.shared.u64 %d1, %d1;\n"
    "st.bulk [%d1+128], %d0, 0;\n"
    "mov.u32 %r0, 0;\n"
    "out: mov.u32 %r2, tile; add.u32 %r2, %r2, %r0; ld.shared.u32 %r3, [%r2];\n"
    "st.global.u32 [%a], %r3; add.u64 %a, %a, 4;\n"
    "add.u32 %r0, %r0, 4; setp.lt.u32 %p, %r0, 256; @%p bra out; ret;\n}\n";

static void fills(void **state)
{
    struct rig r;
    uint32_t out[64];
    (void)state;
    rig_open(&r);
    rig_load(&r, fill_ptx);
    const uint64_t p = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, p);
    rig_param_u32(&r, 24);
    rig_run(&r, "k", 1, 1);
    rig_read(&r, out, p, sizeof out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], (i >= 4 && i < 10) || (i >= 32 && i < 38) ? 0 : 7);
    rig_param_u64(&r, p);
    rig_param_u32(&r, 20);
    assert_int_equal(rig_try_run(&r, "k", 1, 1), TIR_ERR_DEVICE);
    assert_message(&r, "st.bulk of 20 bytes");
    rig_param_u64(&r, p);
    rig_param_u32(&r, 1024);
    assert_int_equal(rig_try_run(&r, "k", 1, 1), TIR_ERR_DEVICE);
    assert_message(&r, "out-of-bounds");
    rig_close(&r);
}

// Elements that are left out keep what was there, and whether it was written at all.
static void stores_with_holes(void **state)
{
    struct rig r;
    uint32_t words[8], want[8] = {9, 9, 3, 9, 9, 3, 3, 9};
    (void)state;
    rig_open(&r);
    rig_load(&r, HEAD ".visible .entry k(.param .u64 p) { .reg .b64 %a; .reg .b32 %r;\n"
                      "ld.param.u64 %a, [p]; mov.u32 %r, 3;\n"
                      "st.global.v8.b32 [%a], {_, _, %r, _, _, %r, %r, _}; ret; }");
    for (int i = 0; i < 8; i++)
        words[i] = 9;
    const uint64_t p = rig_buffer(&r, words, sizeof words);
    rig_param_u64(&r, p);
    rig_run(&r, "k", 1, 1);
    rig_read(&r, words, p, sizeof words);
    assert_memory_equal(words, want, sizeof words);
    rig_close(&r);
}

static void spaces_of_narrow_addresses(void **state)
{
    struct rig r;
    uint32_t out = 9;
    (void)state;
    rig_open(&r);
    rig_load(&r, HEAD ".visible .entry k(.param .u64 p) { .reg .b64 %a; .reg .b32 %r<4>;\n"
                      ".reg .pred %p<2>; ld.param.u64 %a, [p]; cvt.u32.u64 %r0, %a;\n"
                      "isspacep.global %p0, %r0; isspacep.shared %p1, %r0;\n"
                      "selp.u32 %r1, 1, 0, %p0; selp.u32 %r2, 2, 0, %p1; add.u32 %r1, %r1, %r2;\n"
                      "st.global.u32 [%a], %r1; ret; }");
    const uint64_t p = rig_buffer(&r, &out, sizeof out);
    rig_param_u64(&r, p);
    rig_run(&r, "k", 1, 1);
    rig_read(&r, &out, p, sizeof out);
    assert_int_equal(out, 1);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores),
        cmocka_unit_test(reductions),
        cmocka_unit_test(global_forms),
        cmocka_unit_test(refused),
        cmocka_unit_test(fills),
        cmocka_unit_test(stores_with_holes),
        cmocka_unit_test(spaces_of_narrow_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
