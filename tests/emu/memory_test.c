// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory: spaces, vectors, widths, variables, atomics, asynchronous copies, and every wrong access.

#include "rig.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
// A kernel of two 64-bit parameters %a and %b; %t is the thread.
#define KERNEL(vars, body)                                                                      \
    HEAD vars ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n"                            \
              ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %t, %r<16>, %s; .reg .f32 %f<8>;\n" \
              ".reg .b64 %a, %b, %rd<16>;\n"                                                    \
              "ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %t, %tid.x;\n" body "\n}\n"

static tir_status run(struct rig *r, const char *ptx, uint32_t threads, uint64_t a, uint64_t b)
{
    rig_load(r, ptx);
    rig_param_u64(r, a);
    rig_param_u64(r, b);
    return rig_try_run(r, "k", 1, threads);
}

static void expect(struct rig *r, const char *ptx, uint32_t threads, uint64_t a, uint64_t b)
{
    if (run(r, ptx, threads, a, b))
        fail_msg("%s", r->error.message);
}

// Runs with an input of 64 bytes at %a and 64 uninitialised ones at %b.
static void expect_fault(const char *ptx, const char *message)
{
    struct rig r;
    const uint8_t bytes[64] = {1};
    rig_open(&r);
    const uint64_t a = rig_buffer(&r, bytes, sizeof bytes), b = rig_buffer(&r, NULL, 64);
    r.shared_bytes = 64;
    assert_int_equal(run(&r, ptx, 32, a, b), TIR_ERR_DEVICE);
    assert_message(&r, message);
    rig_close(&r);
}

static void out_of_bounds(void **state)
{
    (void)state;
    expect_fault(KERNEL("", "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %a;\n"
                            "ld.global.u32 %r1, [%rd1]; ret;"),
                 "out-of-bounds global load of 4 bytes at 0x");
    expect_fault(KERNEL("", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a+64]; ret;"),
                 "out-of-bounds global load of 16 bytes");
    expect_fault(KERNEL("", "st.global.u32 [%a+-4], %t; ret;"), "out-of-bounds global store");
    expect_fault(KERNEL("", "mov.u64 %rd1, 0; ld.u32 %r1, [%rd1]; ret;"),
                 "out-of-bounds global load");
    expect_fault(
        KERNEL(".shared .u32 s[8];", "st.shared.u32 [s+28], 5; st.shared.u32 [s+96], %t; ret;"),
        "out-of-bounds shared store of 4 bytes");
    expect_fault(KERNEL("", "mov.u32 %r1, 0; st.shared.u32 [%r1], %t; ret;"),
                 "out-of-bounds shared store of 4 bytes at 0x0");
    expect_fault(KERNEL("", ".local .u32 l[2]; st.local.u32 [l+8], %t; ret;"),
                 "out-of-bounds local store");
    expect_fault(KERNEL("", "ld.param.u64 %rd1, [a+12]; ret;"), "out-of-bounds param load");
}

static void messages_say_where(void **state)
{
    struct rig r;
    uint32_t word = 0;
    (void)state;
    rig_open(&r);
    const uint64_t a = rig_buffer(&r, &word, sizeof word);
    rig_load(&r, HEAD ".visible .entry k(.param .u64 a)\n{ .reg .b64 %a, %d; .reg .b32 %r<4>;\n"
                      ".loc 1 5 0\nld.param.u64 %a, [a];\n"
                      "mov.u32 %r1, %tid.y;\nmul.wide.u32 %d, %r1, 2;\nadd.u64 %a, %a, %d;\n"
                      ".loc 1 17 3, function_name $L__info, inlined_at 1 5 9\n"
                      "ld.global.u16 %r2, [%a];\nret; }\n"
                      ".file 1 \"kernels/copy.tir\"\n"
                      ".section .debug_str { $L__info: .b8 0 }\n");
    const struct emu_launch launch = {
        .grid = {1, 3, 1}, .block = {2, 4, 1}, .params = &a, .params_size = 8};
    assert_int_equal(emu_run(r.emu, r.module, "k", &launch, &r.error), TIR_ERR_DEVICE);
    assert_message(&r, "out-of-bounds global load of 2 bytes at 0x");
    assert_message(&r, "; PTX line 12 (copy.tir:17), CTA (0,0,0), thread (0,2,0)");
    rig_close(&r);
}

static void misaligned(void **state)
{
    (void)state;
    expect_fault(KERNEL("", "ld.global.u32 %r1, [%a+2]; ret;"),
                 "misaligned global load of 4 bytes");
    expect_fault(KERNEL("", "ld.global.v2.u32 {%r1, %r2}, [%a+4]; ret;"),
                 "misaligned global load of 8 bytes");
    expect_fault(
        KERNEL(".shared .align 8 .b8 s[32];", "st.shared.v4.u32 [s+8], {%t,%t,%t,%t}; ret;"),
        "misaligned shared store of 16 bytes");
    expect_fault(KERNEL("", "atom.global.add.u64 %rd1, [%a+4], 1; ret;"),
                 "misaligned global atomic");
}

static void uninitialised(void **state)
{
    (void)state;
    expect_fault(KERNEL("", "st.global.u16 [%b], 5; ld.global.u32 %r1, [%b]; ret;"),
                 "uninitialised global load of 4 bytes");
    expect_fault(KERNEL(".extern .shared .align 16 .b8 dyn[];",
                        "mov.u32 %r2, dyn; ld.shared.u32 %r1, [%r2+4]; ret;"),
                 "uninitialised shared load of 4 bytes");
    expect_fault(KERNEL("", ".local .u32 l[2]; st.local.u32 [l], %t; ld.local.u32 %r1, [l+4];"
                            "st.global.u32 [%b], %r1; ret;"),
                 "undefined value is stored where others see it");
    expect_fault(KERNEL("", "red.global.add.u32 [%b], 1; ret;"), "uninitialised global atomic");
    expect_fault(KERNEL("", "cp.async.ca.shared.global [%r1], [%b], 4; ret;"),
                 "uninitialised global load");
}

// A compiler that widens a load says which bytes are used. The others may be unset, or another warp
// may write them meanwhile.
static void widened_loads(void **state)
{
#define WIDENED(mask, elements)                                                         \
    KERNEL(".shared .align 16 .b8 s[128];",                                             \
           "mov.u32 %s, s; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.v2.u32 [%s], {5, 6};" \
           "@%p1 st.shared.u32 [%s+8], 7; bar.sync 0; setp.eq.u32 %p2, %t, 32;"         \
           "@%p2 st.shared.u32 [%s+12], 9;\n.pragma \"used_bytes_mask " mask "\";\n"    \
           "ld.shared.v4.u32 {" elements "}, [%s]; add.u32 %r5, %r1, %r3;"              \
           "ld.shared.u32 %r6, [%s]; st.global.u32 [%b], %r5; ret;")
    struct rig r;
    uint32_t out;
    (void)state;
    const struct emu_options options = {.check = EMU_CHECK_RACE};
    rig_open_options(&r, &options);
    const uint64_t b = rig_buffer(&r, NULL, sizeof out);
    assert_int_equal(run(&r, WIDENED("4095", "%r1, %r2, %r3, %r4"), 64, b, b), TIR_OK);
    rig_read(&r, &out, b, sizeof out);
    assert_int_equal(out, 12);
    assert_int_equal(run(&r, WIDENED("0x0f0f", "%r1, _, %r3, _"), 64, b, b), TIR_OK);
    assert_int_equal(run(&r, WIDENED("0xf00", "%r1, %r2, %r3, %r4"), 64, b, b), TIR_OK);
    assert_int_equal(run(&r, WIDENED("0xffff", "%r1, _, %r3, _"), 64, b, b), TIR_OK);
    rig_close(&r);
    expect_fault(WIDENED("0xffff", "%r1, %r2, %r3, %r4"), "uninitialised shared load of 16 bytes");
    expect_fault(WIDENED("0x10ff", "%r1, %r2, %r3, %r4"), "uninitialised shared load of 1 bytes");
    expect_fault(WIDENED("0x1ffff", "%r1, %r2, %r3, %r4"), "uninitialised shared load of 16 bytes");
    // It is not so: what it says to be unused is stored.
    expect_fault(WIDENED("0xfff", "%r1, %r2, %r4, %r3"), "undefined value is stored");
#undef WIDENED
}

// Compilers shuffle a variable that one lane alone has set, and give its value to all.
static void shuffled_values(void **state)
{
#define ONE_SET \
    ".local .u32 l; setp.eq.u32 %p1, %t, 3; @%p1 st.local.u32 [l], 7; ld.local.u32 %r1, [l];"
    struct rig r;
    uint32_t out[2];
    (void)state;
    rig_open(&r);
    const uint64_t b = rig_buffer(&r, NULL, sizeof out);
    expect(&r,
           KERNEL("", ONE_SET "shfl.sync.idx.b32 %r2|%p2, %r1, 3, 31, -1;"
                              "shfl.sync.up.b32 %r1, %r1, 1, 0, -1; setp.ne.u32 %p1, %t, 4;"
                              "@%p1 bra end; st.global.v2.u32 [%b], {%r1, %r2}; end: ret;"),
           32, 0, b);
    rig_read(&r, out, b, sizeof out);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 7);
    rig_close(&r);
    expect_fault(KERNEL("", ONE_SET "shfl.sync.idx.b32 %r2, %r1, 4, 31, -1;"
                                    "st.global.u32 [%b], %r2; ret;"),
                 "undefined value is stored where others see it");
    expect_fault(KERNEL("", ONE_SET "shfl.sync.idx.b32 %r2, %t, %r1, 31, -1; ret;"),
                 "undefined value is used by more than its lane");
    expect_fault(KERNEL("", ONE_SET "shfl.sync.idx.b32 %r2, %r1, %r1, 31, -1; ret;"),
                 "undefined value is used by more than its lane");
#undef ONE_SET
}

static void constants_are_read_only(void **state)
{
    (void)state;
    expect_fault(KERNEL(".const .u32 c = 5;", "mov.u64 %rd1, c; st.u32 [%rd1], %t; ret;"),
                 "read-only memory: const store");
    expect_fault(KERNEL("", "mov.u64 %rd1, a; cvta.param.u64 %rd1, %rd1; st.u32 [%rd1], %t; ret;"),
                 "read-only memory: param store");
}

// Loads extend by the type's sign into wider registers; stores cut.
static void widths(void **state)
{
    struct rig r;
    const uint8_t in[16] = {0xff, 0x80, 0x7f, 0x81, 1, 2, 3, 0x84, 5, 6, 7, 8, 9, 10, 11, 12};
    uint64_t out[8];
    (void)state;
    rig_open(&r);
    const uint64_t a = rig_buffer(&r, in, sizeof in), b = rig_buffer(&r, NULL, sizeof out);
    expect(&r,
           KERNEL("",
                  "ld.global.s8 %rd1, [%a]; st.global.u64 [%b], %rd1;\n"
                  "ld.global.u8 %r1, [%a]; cvt.u64.u32 %rd1, %r1; st.global.u64 [%b+8], %rd1;\n"
                  "ld.global.s16 %r1, [%a+2]; cvt.s64.s32 %rd1, %r1; st.global.u64 [%b+16], %rd1;\n"
                  "ld.global.b8 %h1, [%a+3]; cvt.u64.u16 %rd1, %h1; st.global.u64 [%b+24], %rd1;\n"
                  "ld.global.s32 %rd1, [%a+4]; st.global.u64 [%b+32], %rd1;\n"
                  "mov.b64 %rd2, -1; st.global.u64 [%b+40], %rd2;\n"
                  "mov.b32 %r2, 0x1234567; st.global.u8 [%b+40], %r2;\n"
                  "st.global.b16 [%b+42], %r2;\n"
                  "ld.global.nc.L1::no_allocate.v2.u16 {%h1, %h2}, [%a+8];\n"
                  "mov.b32 %r3, {%h2, %h1}; cvt.u64.u32 %rd1, %r3; st.global.u64 [%b+48], %rd1;\n"
                  "ld.global.v2.b64 {%rd3, _}, [%a]; st.global.u64 [%b+56], %rd3; ret;"),
           1, a, b);
    rig_read(&r, out, b, sizeof out);
    assert_int_equal(out[0], UINT64_MAX);
    assert_int_equal(out[1], 0xff);
    assert_int_equal(out[2], (uint64_t)(int16_t)0x817f);
    assert_int_equal(out[3], 0x81);
    assert_int_equal(out[4], (uint64_t)(int32_t)0x84030201);
    assert_int_equal(out[5], 0xffffffff4567ff67);
    assert_int_equal(out[6], 0x06050807);
    assert_int_equal(out[7], 0x84030201817f80ff);
    rig_close(&r);
}

static void variables(void **state)
{
    struct rig r;
    uint32_t out[8];
    (void)state;
    rig_open(&r);
    const uint64_t b = rig_buffer(&r, NULL, sizeof out);
    expect(&r,
           KERNEL(".global .align 4 .b8 text[8] = {72, 101, 0xff, -1};\n"
                  ".global .u32 table[4] = {1, 2, 3};\n.const .f32 pi = 0f40490FDB;\n"
                  ".global .f64 e = 2.5;\n.global .u64 p[2] = {table+8, generic(table)};\n"
                  ".global .align 16 .b8 name[4] = \"abc\";\n.global .u32 zero;\n"
                  ".global .s32 matrix[2][2] = {{1, 2}, {3, 4}};\n",
                  "ld.global.u32 %r1, [text]; st.global.u32 [%b], %r1;\n"
                  "mov.u64 %rd1, p; ld.global.u64 %rd2, [%rd1]; ld.u32 %r1, [%rd2];\n"
                  "st.global.u32 [%b+4], %r1; ld.const.f32 %f1, [pi]; st.global.f32 [%b+8], %f1;\n"
                  "ld.global.u32 %r1, [e+4]; st.global.u32 [%b+12], %r1;\n"
                  "ld.global.u32 %r1, [name]; st.global.u32 [%b+16], %r1;\n"
                  "ld.global.u32 %r1, [zero]; st.global.u32 [%b+20], %r1;\n"
                  "st.global.u32 [zero], 9; ld.global.u32 %r1, [matrix+8];\n"
                  "st.global.u32 [%b+24], %r1; ld.global.u64 %rd2, [p+8]; ld.u32 %r1, [%rd2+12];\n"
                  "st.global.u32 [%b+28], %r1; ret;"),
           1, 0, b);
    rig_read(&r, out, b, sizeof out);
    const uint32_t want[] = {0xffff6548, 3, 0x40490fdb, 0x40040000, 0x00636261, 0, 3, 0};
    assert_memory_equal(out, want, sizeof want);
    rig_close(&r);
}

// Generic addresses reach every space; isspacep tells them apart.
static void generic_addresses(void **state)
{
    struct rig r;
    uint32_t out[4] = {0};
    (void)state;
    rig_open(&r);
    const uint64_t b = rig_buffer(&r, out, sizeof out);
    expect(
        &r,
        KERNEL(".shared .align 8 .b8 s[16];",
               ".local .u32 l; cvta.shared.u64 %rd1, s; st.u32 [%rd1+4], 11; ld.shared.u32 %r1, "
               "[s+4];\n"
               "mov.u64 %rd2, l; cvta.local.u64 %rd3, %rd2; st.u32 [%rd3], 22; ld.local.u32 %r2, "
               "[%rd2];\n"
               "mov.u64 %rd4, b; cvta.param.u64 %rd4, %rd4; ld.u64 %rd5, [%rd4];\n"
               "st.u32 [%rd5], %r1; st.global.u32 [%rd5+4], %r2;\n"
               "isspacep.shared %p1, %rd1; isspacep.local %p2, %rd3; isspacep.global %p3, %rd5;\n"
               "isspacep.global %p4, %rd1; selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2;\n"
               "selp.u32 %r5, 4, 0, %p3; selp.u32 %r6, 8, 0, %p4; or.b32 %r3, %r3, %r4;\n"
               "or.b32 %r3, %r3, %r5; or.b32 %r3, %r3, %r6; st.global.u32 [%b+8], %r3;\n"
               "cvta.to.shared.u64 %rd6, %rd1; ld.shared.u32 %r7, [%rd6+4];\n"
               "st.global.u32 [%b+12], %r7; ret;"),
        1, 0, b);
    rig_read(&r, out, b, sizeof out);
    const uint32_t want[] = {11, 22, 7, 11};
    assert_memory_equal(out, want, sizeof want);
    rig_close(&r);
}

static void atomics(void **state)
{
    struct rig r;
    struct {
        uint32_t sum, min, inc, dec, exch, cas, bits;
        float f;
        double d;
        uint64_t wide;
        uint16_t h[2], bf[2];
        uint32_t olds;
    } m = {0, 100, 0, 0, 7, 5, 0xff, 0, 0, 1, {0, 0}, {0, 0}, 0};
    (void)state;
    rig_open(&r);
    const uint64_t a = rig_buffer(&r, &m, sizeof m);
    expect(&r,
           KERNEL("", "atom.global.add.u32 %r1, [%a], %t; add.u32 %r2, %t, 3;\n"
                      "red.global.min.u32 [%a+4], %r2; atom.global.inc.u32 %r3, [%a+8], 9;\n"
                      "atom.global.dec.u32 %r3, [%a+12], 9; setp.eq.u32 %p1, %t, 4;\n"
                      "@%p1 atom.global.exch.b32 %r4, [%a+16], 70;\n"
                      "@%p1 st.global.u32 [%a+56], %r4;\n"
                      "add.u32 %r5, %t, 5; add.u32 %r6, %t, 6;\n"
                      "atom.global.cas.b32 %r7, [%a+20], %r5, %r6;\n"
                      "mov.u32 %r8, 0xf; red.relaxed.gpu.global.and.b32 [%a+24], %r8;\n"
                      "red.global.add.f32 [%a+28], 0f3F000000;\n"
                      "mov.f64 %rd1, 0d3FD0000000000000; red.global.add.f64 [%a+32], %rd1;\n"
                      "mov.u64 %rd2, -1; @%p1 atom.add.u64 %rd3, [%a+40], %rd2;\n"
                      "mov.b32 %r9, 0x3c003800; red.global.add.noftz.f16x2 [%a+48], %r9;\n"
                      "mov.b32 %r9, 0x3f803f00; red.global.add.noftz.bf16x2 [%a+52], %r9; ret;"),
           32, a, 0);
    rig_read(&r, &m, a, sizeof m);
    assert_int_equal(m.sum, 31 * 16);
    assert_int_equal(m.min, 3);
    assert_int_equal(m.inc, 32 % 10);
    assert_int_equal(m.dec, 8); // 0 -> 9 8 ... 0, three times, then 9, 8
    assert_int_equal(m.exch, 70);
    assert_int_equal(m.olds, 7);
    assert_int_equal(m.cas, 37); // each lane finds what the one before it left
    assert_int_equal(m.bits, 0xf);
    assert_float_equal(m.f, 16, 0);
    assert_true(m.d == 8);
    assert_int_equal(m.wide, 0);
    assert_int_equal(m.h[0], 0x4c00); // 16
    assert_int_equal(m.h[1], 0x5000); // 32
    assert_int_equal(m.bf[0], 0x4180);
    assert_int_equal(m.bf[1], 0x4200);
    rig_close(&r);
}

#define COPY_VARS ".shared .align 16 .b8 s[1024];"
#define COPY_HEAD                                                                      \
    "shl.b32 %r1, %t, 4; mov.u32 %s, s; add.u32 %s, %s, %r1; cvt.u64.u32 %rd1, %r1;\n" \
    "add.u64 %a, %a, %rd1; add.u64 %b, %b, %rd1;\n"

static void copies_arrive(void **state)
{
    struct rig r;
    uint8_t in[1024], out[1024];
    (void)state;
    for (int i = 0; i < 1024; i++)
        in[i] = (uint8_t)(i * 7);
    rig_open(&r);
    const uint64_t a = rig_buffer(&r, in, sizeof in), b = rig_buffer(&r, NULL, sizeof out);
    // Two groups; the first is waited for alone, its neighbour's part read after a barrier.
    expect(&r,
           KERNEL(COPY_VARS, COPY_HEAD
                  "cp.async.cg.shared.global.L2::128B [%s], [%a], 16; cp.async.commit_group;\n"
                  "cp.async.ca.shared.global [%s+512], [%a+512], 8, 5; cp.async.ca.shared.global "
                  "[%s+520], [%a+520], 4; setp.lt.u32 %p1, %t, 99; cp.async.ca.shared.global "
                  "[%s+524], [%a+524], 4, %p1; cp.async.commit_group;\n"
                  "cp.async.wait_group 1; bar.warp.sync -1; xor.b32 %r2, %s, 16;\n"
                  "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];\n"
                  "st.global.v4.u32 [%b], {%r3, %r4, %r5, %r6}; cp.async.wait_all;\n"
                  "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%s+512];\n"
                  "st.global.v4.u32 [%b+512], {%r3, %r4, %r5, %r6}; ret;"),
           32, a, b);
    rig_read(&r, out, b, sizeof out);
    for (uint32_t i = 0; i < 512; i++)
        assert_int_equal(out[i], in[i ^ 16]);
    for (uint32_t i = 512; i < 1024; i++) {
        const uint32_t at = i % 16;
        assert_int_equal(out[i], at < 5 || (at >= 8 && at < 12) ? in[i] : 0);
    }
    rig_close(&r);
}

static void copies_must_be_waited_for(void **state)
{
    (void)state;
#define ISSUE                                                                         \
    "shl.b32 %r1, %t, 1; and.b32 %r1, %r1, 48; mov.u32 %s, s; add.u32 %s, %s, %r1;\n" \
    "setp.eq.u32 %p1, %t, 3; cvt.u64.u32 %rd1, %r1; add.u64 %a, %a, %rd1;\n"          \
    "@%p1 cp.async.cg.shared.global [%s], [%a], 16;\n"
    expect_fault(KERNEL(COPY_VARS, ISSUE "@%p1 ld.shared.u32 %r2, [%s+4]; ret;"),
                 "read while a copy is in flight: shared load of 4 bytes");
    expect_fault(KERNEL(COPY_VARS, ISSUE "cp.async.commit_group; cp.async.wait_group 1;\n"
                                         "@%p1 ld.shared.u8 %r2, [%s+15]; ret;"),
                 "read while a copy is in flight");
    expect_fault(
        KERNEL(COPY_VARS, ISSUE "cp.async.wait_group 0; @%p1 ld.shared.u8 %r2, [%s]; ret;"),
        "read while a copy is in flight"); // it was never committed
    expect_fault(KERNEL(COPY_VARS, ISSUE "@%p1 st.shared.u8 [%s], %t; ret;"),
                 "overwritten while a copy is in flight: shared store of 1 bytes");
    expect_fault(KERNEL(COPY_VARS, ISSUE "@%p1 cp.async.ca.shared.global [%s+8], [%a], 4; ret;"),
                 "overwritten while a copy is in flight");
    expect_fault(
        KERNEL(COPY_VARS, "mov.u32 %s, s; cp.async.ca.shared.global [%s], [%a], 4, 5; ret;"),
        "cp.async: source size 5 is above 4");
    expect_fault(
        KERNEL(COPY_VARS, "mov.u32 %s, s; cp.async.cg.shared.global [%s], [%a+8], 16; ret;"),
        "misaligned global copy source of 16 bytes");
}

static void host_access(void **state)
{
    struct rig r;
    uint8_t bytes[100];
    uint64_t big;
    (void)state;
    rig_open(&r);
    const uint64_t a = rig_buffer(&r, NULL, 100), b = rig_buffer(&r, NULL, 100);
    assert_int_equal(a % 256, 0);
    assert_int_equal(emu_fill(r.emu, a, 7, 100, &r.error), TIR_OK);
    assert_int_equal(emu_copy(r.emu, b + 10, a, 50, &r.error), TIR_OK);
    rig_read(&r, bytes, b + 10, 50);
    assert_int_equal(bytes[49], 7);
    assert_int_equal(emu_write(r.emu, a + 90, bytes, 11, &r.error), TIR_ERR_INVALID);
    assert_message(&r, "no 11 bytes of device memory at 0x");
    assert_int_equal(emu_read(r.emu, bytes, 0, 1, &r.error), TIR_ERR_INVALID);
    assert_int_equal(emu_free(r.emu, a + 1, &r.error), TIR_ERR_INVALID);
    assert_int_equal(emu_free(r.emu, a, &r.error), TIR_OK);
    assert_int_equal(emu_free(r.emu, a, &r.error), TIR_ERR_INVALID);
    assert_int_equal(emu_read(r.emu, bytes, a, 1, &r.error), TIR_ERR_INVALID);
    assert_int_equal(emu_alloc(r.emu, (uint64_t)1 << 29, &big, &r.error), TIR_ERR_NO_MEMORY);
    assert_message(&r, "device memory: 536870912 bytes asked for");
    rig_close(&r);
}

// A host may allocate as often as it likes. Addresses are used again late, between those that are
// still in use, and never next to one of them.
static void addresses_come_round(void **state)
{
    enum { KEPT = 4, ROUNDS = 70000, LATE = 50000 };
    (void)state;
    struct rig r;
    rig_open(&r);
    uint64_t kept[KEPT], at, first = 0, again = 0;
    for (uint32_t i = 0; i < KEPT; i++)
        kept[i] = rig_buffer(&r, NULL, 4096 << i);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (emu_alloc(r.emu, 512, &at, &r.error))
            fail_msg("allocation %u: %s", i, r.error.message);
        for (uint32_t k = 0; k < KEPT; k++)
            assert_true(at > kept[k] + (4096 << k) || at + 512 < kept[k]);
        assert_int_equal(emu_write(r.emu, at, "x", 1, &r.error), TIR_OK);
        first = i ? first : at;
        if (i && at == first && !again)
            again = i;
        assert_int_equal(emu_free(r.emu, at, &r.error), TIR_OK);
    }
    assert_true(again > LATE);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_bounds),
        cmocka_unit_test(messages_say_where),
        cmocka_unit_test(misaligned),
        cmocka_unit_test(uninitialised),
        cmocka_unit_test(widened_loads),
        cmocka_unit_test(shuffled_values),
        cmocka_unit_test(constants_are_read_only),
        cmocka_unit_test(widths),
        cmocka_unit_test(variables),
        cmocka_unit_test(generic_addresses),
        cmocka_unit_test(atomics),
        cmocka_unit_test(copies_arrive),
        cmocka_unit_test(copies_must_be_waited_for),
        cmocka_unit_test(host_access),
        cmocka_unit_test(addresses_come_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
