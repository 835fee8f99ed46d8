// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow: divergence, loops, calls, barriers, exits, and what hangs.

#include <fenv.h>
#include <stdio.h>

#include "rig.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
// A kernel of one output, one 32-bit word a thread: %tid is %t, the thread's word is at [%o].
#define KERNEL(body)                                                                \
    HEAD ".visible .entry k(.param .u64 out)\n{\n"                                  \
         ".reg .pred %p<8>; .reg .b32 %t, %r<16>; .reg .b64 %o, %rd<16>;\n"         \
         "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %rd15, %t, 4;\n" \
         "add.s64 %o, %o, %rd15;\n" body "\n}\n"

static tir_status run_words(struct rig *r, const char *ptx, uint32_t threads, uint32_t *out)
{
    rig_open(r);
    rig_load(r, ptx);
    const uint64_t buffer = rig_buffer(r, NULL, threads * sizeof *out);
    rig_param_u64(r, buffer);
    const tir_status status = rig_try_run(r, "k", 1, threads);
    if (!status)
        rig_read(r, out, buffer, threads * sizeof *out);
    return status;
}

static void expect_words(const char *ptx, uint32_t threads, uint32_t *out)
{
    struct rig r;
    if (run_words(&r, ptx, threads, out))
        fail_msg("%s", r.error.message);
    rig_close(&r);
}

static void expect_fault(const char *ptx, uint32_t threads, const char *message)
{
    uint32_t out[1024];
    struct rig r;
    assert_int_equal(run_words(&r, ptx, threads, out), TIR_ERR_DEVICE);
    assert_message(&r, message);
    rig_close(&r);
}

static const char add_ptx[] = HEAD
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{ .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
    "  ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; ld.param.b64 %rd3, [c];\n"
    "  ld.param.b32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;\n"
    "  mul.wide.s32 %rd4, %r5, 4; add.s64 %rd1, %rd1, %rd4; add.s64 %rd2, %rd2, %rd4;\n"
    "  add.s64 %rd3, %rd3, %rd4; ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];\n"
    "  add.rn.f32 %f3, %f1, %f2; st.global.f32 [%rd3], %f3;\n"
    "DONE: ret; }\n";

static void adds_vectors(void **state)
{
    enum { N = 1000 };
    float a[N], b[N], c[N];
    struct rig r;
    (void)state;
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
    }
    rig_open(&r);
    rig_load(&r, add_ptx);
    const uint64_t pa = rig_buffer(&r, a, sizeof a), pb = rig_buffer(&r, b, sizeof b);
    const uint64_t pc = rig_buffer(&r, NULL, sizeof c);
    rig_param_u64(&r, pa);
    rig_param_u64(&r, pb);
    rig_param_u64(&r, pc);
    rig_param_u32(&r, N);
    rig_run(&r, "add", 8, 128);
    rig_read(&r, c, pc, sizeof c);
    for (int i = 0; i < N; i++)
        assert_float_equal(c[i], 1.5f * (float)i, 0);
    rig_close(&r);
}

// Lanes that wait in different places count for each other: each side reads what the other wrote.
static void warp_barriers_in_two_places(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(HEAD ".visible .entry k(.param .u64 out)\n{ .shared .u32 s[2];\n"
                      ".reg .pred %p; .reg .b32 %t, %r<8>; .reg .b64 %o, %d;\n"
                      "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n"
                      "add.s64 %o, %o, %d; setp.lt.u32 %p, %t, 16; @%p bra LOW;\n"
                      "st.shared.u32 [s+4], 7; bar.warp.sync -1; ld.shared.u32 %r1, [s]; bra END;\n"
                      "LOW: st.shared.u32 [s], 9; bar.warp.sync -1; ld.shared.u32 %r1, [s+4];\n"
                      "END: st.global.u32 [%o], %r1; ret; }\n",
                 32, out);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[31], 9);
}

// Both sides of a branch run, and a shuffle after it sees every lane.
static void branches_meet_again(void **state)
{
    uint32_t out[64];
    (void)state;
    expect_words(KERNEL("and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;\n"
                        "mul.lo.u32 %r2, %t, 100; bra JOIN;\n"
                        "EVEN: add.u32 %r2, %t, 7;\n"
                        "JOIN: shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;\n"
                        "st.global.u32 [%o], %r3; ret;"),
                 64, out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], (i ^ 1) & 1 ? (i ^ 1) * 100 : (i ^ 1) + 7);
}

// The join comes before one of its sides in the text: min-pc order alone does not get there.
static void branches_meet_backwards(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(KERNEL("setp.lt.u32 %p1, %t, 16; mov.u32 %r2, %t; @!%p1 bra HIGH; bra LOW;\n"
                        "JOIN: shfl.sync.idx.b32 %r3, %r2, 31, 31, -1;\n"
                        "st.global.u32 [%o], %r3; ret;\n"
                        "LOW: add.u32 %r2, %r2, 1; bra JOIN;\n"
                        "HIGH: add.u32 %r2, %r2, 2; bra JOIN;"),
                 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 33);
}

static void loops_of_different_length(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(KERNEL("mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
                        "LOOP: add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1;\n"
                        "setp.le.u32 %p1, %r1, %t; @%p1 bra LOOP;\n"
                        "activemask.b32 %r4; redux.sync.max.u32 %r3, %r2, -1;\n"
                        "setp.ne.u32 %p2, %r4, -1; selp.u32 %r3, 9999, %r3, %p2;\n"
                        "add.u32 %r2, %r2, %r3; st.global.u32 [%o], %r2; ret;"),
                 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i * (i + 1) / 2 + 31 * 16);
}

// Lane 0 spins until lane 31 of the same warp has stored: both sides must run.
static void lanes_wait_for_each_other(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(HEAD ".visible .entry k(.param .u64 out)\n{ .shared .u32 flag;\n"
                      ".reg .pred %p<4>; .reg .b32 %t, %r<8>; .reg .b64 %o, %d;\n"
                      "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n"
                      "add.s64 %o, %o, %d; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [flag], 0;\n"
                      "bar.warp.sync -1; @!%p1 bra OTHER;\n"
                      "SPIN: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0;\n"
                      "@%p2 bra SPIN; bra DONE;\n"
                      "OTHER: mov.u32 %r1, 5; setp.eq.u32 %p3, %t, 31;\n"
                      "@%p3 st.volatile.shared.u32 [flag], 77;\n"
                      "DONE: st.global.u32 [%o], %r1; ret; }\n",
                 32, out);
    assert_int_equal(out[0], 77);
    assert_int_equal(out[1], 5);
}

// Each thread of four warps takes a lock in turn.
static void locks_work(void **state)
{
    uint32_t out[128];
    (void)state;
    expect_words(HEAD ".visible .entry k(.param .u64 out)\n{ .shared .u32 lock, count;\n"
                      ".reg .pred %p<4>; .reg .b32 %t, %r<8>; .reg .b64 %o, %d;\n"
                      "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n"
                      "add.s64 %o, %o, %d; setp.eq.u32 %p1, %t, 0;\n"
                      "@%p1 st.shared.u32 [lock], 0; @%p1 st.shared.u32 [count], 0; bar.sync 0;\n"
                      "TRY: atom.shared.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p2, %r1, 0;\n"
                      "@%p2 bra TRY;\n"
                      "ld.volatile.shared.u32 %r2, [count]; add.u32 %r2, %r2, 1;\n"
                      "st.volatile.shared.u32 [count], %r2; membar.cta;\n"
                      "atom.shared.exch.b32 %r3, [lock], 0; bar.sync 0;\n"
                      "ld.shared.u32 %r4, [count]; st.global.u32 [%o], %r4; ret; }\n",
                 128, out);
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(out[i], 128);
}

// What is asked may stand behind the types, which ptxas takes too; of two types the order counts.
static void comparisons_in_any_order(void **state)
{
    uint32_t out[64];
    (void)state;
    expect_words(KERNEL("setp.u32.lt %p1, %t, 40; setp.u32.and.ge %p2, %t, 8, %p1;\n"
                        "mov.b32 %r3, 0f3F800000; @%p2 mov.b32 %r3, 0f7F800000;\n"
                        "testp.f32.infinite %p3, %r3; selp.b32 %r1, 1, 0, %p3;\n"
                        "set.f32.u32.lt %r2, %t, 16; add.u32 %r1, %r1, %r2;\n"
                        "st.global.u32 [%o], %r1; ret;"),
                 64, out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], (i >= 8 && i < 40) + (i < 16 ? 0x3f800000u : 0));
}

static void guards_apply(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(KERNEL("mov.u32 %r1, 1; setp.gt.u32 %p1, %t, 9; @%p1 mov.u32 %r1, 2;\n"
                        "@!%p1 add.u32 %r1, %r1, 40; st.global.u32 [%o], %r1;\n"
                        "@%p1 exit; st.global.u32 [%o], 3;"),
                 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i > 9 ? 2 : 3);
}

// sm_100 has min and max of three; no other test machine knows them.
static void extremes_of_three(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(
        KERNEL("mov.b32 %r1, 0x3f800000; mov.b32 %r2, 0x40000000; mov.b32 %r3, 0x7fc00000;\n"
               "cvt.rn.f32.u32 %r4, %t;\n"
               "max.f32 %r5, %r1, %r2, %r4; min.f32 %r6, %r4, %r3, %r2;\n"
               "max.NaN.f32 %r7, %r1, %r4, %r3; setp.nan.f32 %p1, %r7, %r7;\n"
               "cvt.rni.u32.f32 %r5, %r5; cvt.rni.u32.f32 %r6, %r6;\n"
               "mad.lo.u32 %r5, %r5, 100, %r6; selp.u32 %r1, 10000, 0, %p1;\n"
               "add.u32 %r5, %r5, %r1; st.global.u32 [%o], %r5; ret;"),
        32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 10000 + (i > 2 ? i : 2) * 100 + (i < 2 ? i : 2));
}

// sm_100 adds, subtracts and multiplies halves into a float without a conversion.
static void halves_into_floats(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(KERNEL(".reg .b16 %h<4>; cvt.rn.f32.u32 %r1, %t;\n"
                        "mov.b16 %h1, 0x4500; mov.b16 %h2, 0x40a0;\n" // 5 as f16, 5 as bf16
                        "add.rn.f32.f16 %r2, %h1, %r1; sub.rn.f32.bf16 %r3, %h2, %r1;\n"
                        "fma.rn.f32.f16 %r4, %h1, %h1, %r2; fma.rn.f32.bf16 %r4, %h2, %h2, %r4;\n"
                        "sub.f32 %r4, %r4, %r3; cvt.rni.u32.f32 %r4, %r4;\n"
                        "st.global.u32 [%o], %r4; ret;"),
                 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 50 + 2 * i);
}

static void branches_by_index(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(KERNEL("rem.u32 %r1, %t, 3; L: .branchtargets A, B, C;\n"
                        "brx.idx %r1, L;\n"
                        "A: mov.u32 %r2, 10; bra.uni E; B: mov.u32 %r2, 20; bra.uni E;\n"
                        "C: mov.u32 %r2, 30; E: st.global.u32 [%o], %r2; ret;"),
                 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 10 * (i % 3 + 1));
    expect_fault(KERNEL("L: .branchtargets A, B; brx.idx %t, L; A: B: ret;"), 32,
                 "brx.idx: index 2 is beyond its 2 targets");
}

// Compilers make one list of a large switch: here of 300 targets, of which the last are taken.
static void branches_by_index_of_many(void **state)
{
    enum { TARGETS = 300 };
    static char ptx[1 << 15];
    uint32_t out[32];
    size_t at = 0;
    (void)state;
    at += (size_t)snprintf(ptx, sizeof ptx,
                           HEAD ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %%t, %%r<4>;\n"
                                ".reg .b64 %%o, %%d;\nld.param.u64 %%o, [out];\n"
                                "mov.u32 %%t, %%tid.x; mul.wide.u32 %%d, %%t, 4;\n"
                                "add.s64 %%o, %%o, %%d; add.u32 %%r1, %%t, %d;\n"
                                "L: .branchtargets",
                           TARGETS - 32);
    for (int i = 0; i < TARGETS; i++)
        at += (size_t)snprintf(ptx + at, sizeof ptx - at, "%s L%d", i ? "," : "", i);
    at += (size_t)snprintf(ptx + at, sizeof ptx - at, ";\nbrx.idx %%r1, L;\n");
    for (int i = 0; i < TARGETS; i++)
        at += (size_t)snprintf(ptx + at, sizeof ptx - at, "L%d: mov.u32 %%r2, %d; bra E;\n", i, i);
    snprintf(ptx + at, sizeof ptx - at, "E: st.global.u32 [%%o], %%r2; ret;\n}\n");
    expect_words(ptx, 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], TARGETS - 32 + i);
}

static const char call_ptx[] = HEAD
    // fibonacci, recursive, so frames nest and diverge
    ".func (.param .b32 r) fib(.param .b32 n)\n{ .reg .pred %p; .reg .b32 %r<8>;\n"
    "ld.param.u32 %r1, [n]; setp.lt.u32 %p, %r1, 2; @%p bra LEAF;\n"
    "{ .param .b32 a; .param .b32 v; sub.u32 %r2, %r1, 1; st.param.b32 [a], %r2;\n"
    "  call.uni (v), fib, (a); ld.param.b32 %r3, [v]; }\n"
    "{ .param .b32 a; .param .b32 v; sub.u32 %r2, %r1, 2; st.param.b32 [a], %r2;\n"
    "  call.uni (v), fib, (a); ld.param.b32 %r4, [v]; }\n"
    "add.u32 %r5, %r3, %r4; st.param.b32 [r], %r5; ret;\n"
    "LEAF: st.param.b32 [r], %r1; ret; }\n"
    // by registers, and through a pointer to local memory
    ".func (.reg .u32 d) twice(.reg .u32 a, .reg .u64 p)\n{ .reg .u32 %x;\n"
    "ld.u32 %x, [p]; add.u32 d, a, a; add.u32 d, d, %x; ret; }\n"
    ".func (.param .b32 r) thrice(.param .b32 n)\n{ .reg .u32 %x; ld.param.u32 %x, [n];\n"
    "mul.lo.u32 %x, %x, 3; st.param.u32 [r], %x; ret; }\n"
    ".func (.param .b32 r) same(.param .b32 n)\n{ .reg .u32 %x; ld.param.u32 %x, [n];\n"
    "st.param.u32 [r], %x; ret; }\n"
    ".visible .entry k(.param .u64 out)\n{ .local .align 8 .b8 stack[16];\n"
    ".reg .pred %p; .reg .b32 %t, %r<8>; .reg .b64 %o, %d, %f, %g;\n"
    "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4; add.s64 %o, %o, %d;\n"
    "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %t;\n"
    "  call (v), fib, (a); ld.param.b32 %r1, [v]; }\n"
    "mov.u64 %d, stack; st.local.u32 [%d+4], %t; cvta.local.u64 %d, %d; add.u64 %d, %d, 4;\n"
    "call (%r2), twice, (%t, %d);\n"
    "mov.u64 %f, thrice; mov.u64 %g, same; and.b32 %r4, %t, 1; setp.eq.u32 %p, %r4, 0;\n"
    "selp.b64 %f, %f, %g, %p;\n"
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r2;\n"
    "  call (v), %f, (a), P; ld.param.b32 %r3, [v]; }\n"
    "mad.lo.u32 %r3, %r1, 1000, %r3; st.global.u32 [%o], %r3; ret; }\n";

static void calls_work(void **state)
{
    uint32_t out[12];
    uint32_t fib[12] = {0, 1};
    (void)state;
    for (int i = 2; i < 12; i++)
        fib[i] = fib[i - 1] + fib[i - 2];
    expect_words(call_ptx, 12, out);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(out[i], fib[i] * 1000 + 3 * i * (i % 2 ? 1 : 3));
}

static void endless_recursion_is_reported(void **state)
{
    (void)state;
    expect_fault(HEAD ".func f() { call f; ret; }\n"
                      ".visible .entry k(.param .u64 out) { call f; ret; }\n",
                 32, "call stack overflow");
}

static void endless_loops_are_reported(void **state)
{
    (void)state;
    expect_fault(KERNEL("L: bra L;"), 32, "does the same again and again");
    expect_fault(KERNEL("L: add.u32 %r0, %r0, 1; bra L;"), 32, "step limit");
}

static void time_runs_out(void **state)
{
    struct rig r;
    (void)state;
    rig_open_options(&r, &(struct emu_options){.check = EMU_CHECK_FULL, .time_limit = 20});
    rig_load(&r, KERNEL("L: add.u64 %o, %o, 1; bra L;"));
    rig_param_u64(&r, 0);
    assert_int_equal(rig_try_run(&r, "k", 1, 64), TIR_ERR_DEVICE);
    assert_message(&r, "time limit of 20 ms; CTA (0,0,0); warp 0 runs, PTX line");
    rig_close(&r);
}

// Each CTA ends in the turn in which it starts, so that none is left where a turn ends.
static void time_runs_out_between_ctas(void **state)
{
    struct rig r;
    (void)state;
    for (enum emu_policy policy = EMU_LAZY; policy <= EMU_ADVERSARIAL; policy++) {
        rig_open_options(&r, &(struct emu_options){.policy = policy, .time_limit = 20});
        rig_load(&r, KERNEL("ret;"));
        rig_param_u64(&r, 0);
        assert_int_equal(rig_try_run(&r, "k", INT32_MAX, 64), TIR_ERR_DEVICE);
        assert_message(&r, "time limit of 20 ms; CTA (");
        rig_close(&r);
    }
}

// Whatever the level of checks: what the shuffle gives to lanes that read them is undefined.
static void lanes_that_never_come_are_reported(void **state)
{
    struct rig r;
    (void)state;
    for (enum emu_check level = EMU_CHECK_OFF; level <= EMU_CHECK_FULL; level++) {
        rig_open_options(&r, &(struct emu_options){.check = level});
        rig_load(&r, KERNEL("setp.ge.u32 %p1, %t, 16; @%p1 bra out;\n"
                            "shfl.sync.bfly.b32 %r1, %t, 8, 31, -1;\n"
                            "out: st.global.u32 [%o], %t; ret;"));
        rig_param_u64(&r, rig_buffer(&r, NULL, 32 * sizeof(uint32_t)));
        assert_int_equal(rig_try_run(&r, "k", 1, 32), TIR_ERR_DEVICE);
        assert_message(&r, "lanes never came: 0x0000ffff waited for 0xffff0000");
        rig_close(&r);
    }
}

static void barriers_order_warps(void **state)
{
    uint32_t out[256];
    (void)state;
    expect_words(HEAD
                 ".visible .entry k(.param .u64 out)\n{ .shared .u32 s[256];\n"
                 ".reg .b32 %t, %r<8>; .reg .b64 %o, %d;\n"
                 "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4;\n"
                 "add.s64 %o, %o, %d; mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;\n"
                 "st.shared.u32 [%r1], %t; barrier.sync.aligned 0;\n"
                 "mov.u32 %r3, s; sub.u32 %r4, 1020, %r2; add.u32 %r3, %r3, %r4;\n"
                 "ld.shared.u32 %r5, [%r3]; st.global.u32 [%o], %r5; ret; }\n",
                 256, out);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], 255 - i);
}

static void exited_threads_leave_the_barrier(void **state)
{
    uint32_t out[96];
    (void)state;
    expect_words(KERNEL("setp.ge.u32 %p1, %t, 64; st.global.u32 [%o], 1; @%p1 exit;\n"
                        "bar.sync 0; st.global.u32 [%o], 2; ret;"),
                 96, out);
    assert_int_equal(out[0], 2);
    assert_int_equal(out[95], 1);
}

// Warps 0 and 1 meet at barrier 1; warp 2 only arrives there; warp 3 is elsewhere.
static void named_barriers(void **state)
{
    uint32_t out[128];
    (void)state;
    expect_words(KERNEL("shr.u32 %r1, %t, 5; setp.eq.u32 %p1, %r1, 2; setp.eq.u32 %p2, %r1, 3;\n"
                        "mov.u32 %r2, 5; @%p2 bra D; @%p1 bra A; bar.sync 1, 96; bra D;\n"
                        "A: bar.arrive 1, 96;\n"
                        "D: st.global.u32 [%o], %r2; bar.sync 0; ret;"),
                 128, out);
    assert_int_equal(out[0], 5);
}

static void barriers_reduce(void **state)
{
    uint32_t out[64];
    (void)state;
    expect_words(KERNEL("setp.lt.u32 %p1, %t, 40; bar.red.popc.u32 %r1, 0, %p1;\n"
                        "bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, !%p1;\n"
                        "selp.u32 %r2, 1000, 0, %p2; selp.u32 %r3, 2000, 0, %p3;\n"
                        "add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;\n"
                        "st.global.u32 [%o], %r1; ret;"),
                 64, out);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], 2040);
}

static void deadlocks_are_reported(void **state)
{
    (void)state;
    expect_fault(KERNEL("setp.ge.u32 %p1, %t, 32; @%p1 bra B; bar.sync 1; ret;\n"
                        "B: bar.sync 2; ret;"),
                 64, "deadlock; CTA (0,0,0); warp 0 at barrier 1, 32 of 64 threads there");
    expect_fault(KERNEL("bar.sync 3, 96; ret;"), 64, "64 of 96 threads there");
    expect_fault(KERNEL("setp.ge.u32 %p1, %t, 16; @%p1 bra B; shfl.sync.idx.b32 %r1, %t, 0, 31, -1;"
                        "ret; B: bar.warp.sync -1; ret;"),
                 32, "lanes 0x0000ffff wait for lanes 0xffff0000");
}

static void barrier_misuse_is_reported(void **state)
{
    (void)state;
    expect_fault(KERNEL("bar.sync 16; ret;"), 32, "barrier 16 does not exist");
    expect_fault(KERNEL("bar.sync 1, 33; ret;"), 32, "not a multiple of the warp size");
    expect_fault(KERNEL("trap;"), 1, "trap; PTX line");
}

// A barrier across the grid works as long as the CTAs fit on the device.
static void ctas_can_wait_for_each_other(void **state)
{
    struct rig r;
    uint32_t count = 0, out[4];
    (void)state;
    rig_open(&r);
    rig_load(&r, HEAD ".visible .entry k(.param .u64 count, .param .u64 out)\n{ .reg .pred %p<3>;\n"
                      ".reg .b32 %r<8>; .reg .b64 %c, %o, %d;\n"
                      "ld.param.u64 %c, [count]; ld.param.u64 %o, [out]; mov.u32 %r1, %ctaid.x;\n"
                      "mul.wide.u32 %d, %r1, 4; add.u64 %o, %o, %d; red.global.add.u32 [%c], 1;\n"
                      "W: ld.acquire.gpu.global.u32 %r2, [%c]; setp.lt.u32 %p1, %r2, 4;\n"
                      "@%p1 bra W; st.global.u32 [%o], %r2; ret; }\n");
    const uint64_t pc = rig_buffer(&r, &count, sizeof count), po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, pc);
    rig_param_u64(&r, po);
    rig_run(&r, "k", 4, 1);
    rig_read(&r, out, po, sizeof out);
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i], 4);
    rig_close(&r);
}

// Only sm_100 has these, so hardware.golden does not.
static void minimum_of_three(void **state)
{
    uint32_t out[32];
    (void)state;
    expect_words(KERNEL(".reg .f32 %f<8>; cvt.rn.f32.u32 %f1, %t; mov.f32 %f2, 0f41200000;\n"
                        "mov.f32 %f3, 0f40A00000; mov.f32 %f5, 0f7FC00000;\n"
                        "max.f32 %f4, %f1, %f2, %f3; min.f32 %f4, %f4, %f5, %f4;\n"
                        "setp.lt.u32 %p1, %t, 5; @%p1 max.NaN.f32 %f4, %f4, %f2, %f5;\n"
                        "cvt.rzi.u32.f32 %r1, %f4; st.global.u32 [%o], %r1; ret;"),
                 32, out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 5 ? 0 : i < 10 ? 10 : i); // a NaN becomes 0
}

// What the host set for its own arithmetic neither matters nor is lost.
// A difference leaves 1 where it does not borrow, for sums too: nvcc divides 128 bits so.
static void carries(void **state)
{
    uint32_t out[1];
    (void)state;
    expect_words(KERNEL("mov.u32 %r1, 5; mov.u32 %r2, 3; mov.u32 %r10, 0;\n"
                        "sub.cc.u32 %r3, %r1, %r2; addc.u32 %r4, %r10, %r10;\n"
                        "sub.cc.u32 %r3, %r2, %r1; addc.u32 %r5, %r10, %r10;\n"
                        "sub.cc.u32 %r3, %r1, %r1; subc.cc.u32 %r3, %r10, %r10;\n"
                        "addc.u32 %r6, %r10, %r10;\n"
                        "add.cc.u32 %r3, %r1, -1; subc.u32 %r7, %r1, %r2;\n"
                        "add.cc.u32 %r3, %r1, 1; subc.u32 %r8, %r1, %r2;\n"
                        "mad.lo.u32 %r4, %r4, 10, %r5; mad.lo.u32 %r4, %r4, 10, %r6;\n"
                        "mad.lo.u32 %r4, %r4, 10, %r7; mad.lo.u32 %r4, %r4, 10, %r8;\n"
                        "st.global.u32 [%o], %r4; ret;"),
                 1, out);
    assert_int_equal(out[0], 10121);
}

// `a<2>` declares a0 and a1; `a` is another register, as in Triton's conversions of e4m3.
static void ranges_leave_their_name(void **state)
{
    uint32_t out[1];
    (void)state;
    expect_words(KERNEL("{ .reg .b32 a; .reg .b16 a<2>; .reg .b32 c<2>, c; mov.b32 a, 0x00050003;\n"
                        "mov.b32 {a0, a1}, a; cvt.u32.u16 c0, a0; cvt.u32.u16 c1, a1;\n"
                        "mad.lo.u32 c, c0, 10, c1; st.global.u32 [%o], c; } ret;"),
                 1, out);
    assert_int_equal(out[0], 35);
}

// Cooperative groups of several warps meet in shared memory of the system, which is zero at first.
static void reserved_shared_memory(void **state)
{
    uint32_t out[64];
    (void)state;
    expect_words(
        KERNEL(".shared .align 16 .b8 own[16]; mov.u32 %r1, %reserved_smem_offset_1;\n"
               "mov.u32 %r2, own; atom.shared.add.u32 %r3, [%r1+284], 1; bar.sync 0;\n"
               "mov.u32 %r4, %reserved_smem_offset_1; ld.shared.u32 %r5, [%r4+284];\n"
               "st.shared.v2.u32 [%r2], {%r1, %r1}; st.shared.v2.u32 [%r2+8], {%r1, %r1};\n"
               "ld.shared.u32 %r6, [%r4]; add.u32 %r5, %r5, %r6;\n"
               "st.global.u32 [%o], %r5; ret;"),
        64, out);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], 64);
}

static void host_environment(void **state)
{
    uint32_t out[1];
    (void)state;
    fesetround(FE_UPWARD);
    expect_words(KERNEL(".reg .f32 %f<4>; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f2F800000;\n"
                        "add.rn.f32 %f3, %f1, %f2; st.global.f32 [%o], %f3; ret;"),
                 1, out);
    assert_int_equal(out[0], 0x3f800000);
    assert_int_equal(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
}

static void launches_are_checked(void **state)
{
    struct rig r;
    struct emu_kernel_info info;
    (void)state;
    rig_open(&r);
    rig_load(&r,
             HEAD ".visible .entry k(.param .u32 a, .param .u64 b, .param .align 4 .b8 c[3])\n"
                  ".maxntid 64, 2, 1\n{ .shared .align 8 .b8 s[20]; st.shared.u32 [s], 1; ret; }"
                  ".shared .b8 other[1000];");
    assert_int_equal(emu_kernel_info(r.module, "k", &info, &r.error), TIR_OK);
    assert_int_equal(info.params_size, 19);
    assert_int_equal(info.max_threads, 128);
    assert_int_equal(info.static_shared_bytes, 32); // to 16, where dynamic memory would start
    assert_int_equal(rig_try_run(&r, "k", 1, 32), TIR_ERR_INVALID);
    assert_message(&r, "0 bytes of parameters; the kernel takes 19");
    assert_int_equal(rig_try_run(&r, "nothing", 1, 32), TIR_ERR_INVALID);
    assert_message(&r, "no kernel 'nothing'");
    assert_int_equal(rig_try_run(&r, "k", 1, 256), TIR_ERR_INVALID);
    assert_message(&r, "block of 256 threads; the kernel allows 128");
    assert_int_equal(rig_try_run(&r, "k", 0, 32), TIR_ERR_INVALID);
    r.shared_bytes = 1 << 20;
    r.params_size = 19;
    assert_int_equal(rig_try_run(&r, "k", 1, 32), TIR_ERR_INVALID);
    assert_message(&r, "bytes of shared memory");
    rig_close(&r);
}

// .reqntid is the size of a block, not only a limit.
static void blocks_are_as_required(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    rig_load(&r, HEAD ".visible .entry k()\n.reqntid 64\n{ ret; }"
                      ".visible .entry two()\n.reqntid 32, 2\n{ ret; }");
    rig_run(&r, "k", 1, 64);
    assert_int_equal(rig_try_run(&r, "k", 1, 32), TIR_ERR_INVALID);
    assert_message(&r, "block of 32 x 1 x 1 threads; the kernel requires 64 x 1 x 1");
    assert_int_equal(rig_try_run(&r, "two", 1, 64), TIR_ERR_INVALID);
    assert_message(&r, "the kernel requires 32 x 2 x 1");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_vectors),
        cmocka_unit_test(blocks_are_as_required),
        cmocka_unit_test(warp_barriers_in_two_places),
        cmocka_unit_test(branches_meet_again),
        cmocka_unit_test(branches_meet_backwards),
        cmocka_unit_test(loops_of_different_length),
        cmocka_unit_test(lanes_wait_for_each_other),
        cmocka_unit_test(locks_work),
        cmocka_unit_test(comparisons_in_any_order),
        cmocka_unit_test(guards_apply),
        cmocka_unit_test(extremes_of_three),
        cmocka_unit_test(halves_into_floats),
        cmocka_unit_test(branches_by_index),
        cmocka_unit_test(branches_by_index_of_many),
        cmocka_unit_test(calls_work),
        cmocka_unit_test(endless_recursion_is_reported),
        cmocka_unit_test(endless_loops_are_reported),
        cmocka_unit_test(time_runs_out),
        cmocka_unit_test(time_runs_out_between_ctas),
        cmocka_unit_test(lanes_that_never_come_are_reported),
        cmocka_unit_test(barriers_order_warps),
        cmocka_unit_test(exited_threads_leave_the_barrier),
        cmocka_unit_test(named_barriers),
        cmocka_unit_test(barriers_reduce),
        cmocka_unit_test(deadlocks_are_reported),
        cmocka_unit_test(barrier_misuse_is_reported),
        cmocka_unit_test(ctas_can_wait_for_each_other),
        cmocka_unit_test(minimum_of_three),
        cmocka_unit_test(carries),
        cmocka_unit_test(ranges_leave_their_name),
        cmocka_unit_test(reserved_shared_memory),
        cmocka_unit_test(host_environment),
        cmocka_unit_test(launches_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
