// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the loader refuses, with which message; and every allocation that can fail.

#include <stdio.h>
#include <stdlib.h>

#include "emu/decode/help.h"
#include "rig.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define BODY(text)                                                                  \
    HEAD ".visible .entry k(.param .u64 a)\n{\n.reg .pred %p<4>; .reg .b16 %h<4>; " \
         ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .shared .b32 s[4];\n" text "\n}\n"

static const struct {
    const char *ptx, *message;
} refused[] = {
    // the instruction set
    {BODY("frobnicate.u32 %r1, %r2;"), "PTX line 7: frobnicate.u32: unknown instruction"},
    {BODY("\n\nbogus.fence.sync.aligned;"),
     "PTX line 9: bogus.fence.sync.aligned: unknown instruction"},
    {BODY("add.rn.u32 %r1, %r2, %r3;"), "add.rn.u32: unknown instruction"},
    {BODY("add.sat.u32 %r1, %r2, %r3;"), "add.sat.u32: unknown instruction"},
    {BODY("mul.u32 %r1, %r2, %r3;"), "mul.u32: unknown instruction"},
    {BODY("ld.global.sometimes.u32 %r1, [%d1];"), "unknown suffix '.sometimes'"},
    {BODY("bra.fast L; L:"), "unknown suffix '.fast'"},
    {BODY("T: .branchtargets L, ; L:"), "a name expected"},
    {BODY("T: .branchtargets L M; L: M:"), "';' expected"},
    {BODY("T: .branchtargets ; L:"), "a name expected"},
    {BODY("T: .calltargets 7;"), "a name expected"},
    {BODY("setp.almost.u32 %p1, %r1, %r2;"), "unknown comparison"},
    {BODY("setp.lo.s32 %p1, %r1, %r2;"), "unknown comparison"},
    {BODY("atom.global.mul.u32 %r1, [%d1], %r2;"), "unknown atomic operation"},
    {BODY("atom.global.add.f16 %r1, [%d1], %r2;"), "where '.f16' is wanted"},
    {BODY("cvt.rn.f16x2.f16 %r1, %h1;"), "unknown conversion"},
    {BODY("mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};"),
     "unknown shape or types"},
    {BODY("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};"),
     "is not 4 registers"},
    {BODY("ldmatrix.sync.aligned.m8n8.x3.b16 {%r1,%r2,%r3}, [%r1];"), "'.x1', '.x2' or '.x4'"},
    {BODY("ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1,%r2}, [%r1];"), "needs '.trans'"},
    {BODY("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1,%r2}, [%r1];"), "no such number"},
    {BODY("ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r1];"), "no such number or format"},
    {BODY("stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r1], {%r1};"), "needs '.trans'"},
    {BODY("cp.async.cg.shared.global [%r1], [%d1], 8;"), "copies are of 4, 8 or 16 bytes"},
    {BODY("bar.arrive 1;"), "a count of threads is missing"},
    // operands
    {BODY("add.u32 %r1, %r2;"), "too few operands"},
    {BODY("add.u32 %r1, %r2, %r3, %r4;"), "too many operands"},
    {BODY("add.u32 %r1, %r2, %d1;"), "operand 3 is a '.b64' register where '.u32' is wanted"},
    {BODY("add.u32 %r1, %r2, %p1;"), "is a '.pred' register"},
    {BODY("add.f32 %f1, %f1, 1;"), "an integer where '.f32' is wanted"},
    {BODY("add.u16 %h1, %h1, 0f3F800000;"), "a floating-point constant where '.u16' is wanted"},
    {BODY("add.u32 5, %r2, %r3;"), "the destination is not a register"},
    {BODY("add.u32 %r1, %r8, %r3;"), "unknown register '%r8'"},
    {BODY("add.u32 %r1, %r01, %r3;"), "unknown register '%r01'"},
    {BODY("add.u32 %r1, %tid.q, %r3;"), "unknown register '%tid.q'"},
    {BODY("add.u32 %r1, nothing, %r3;"), "'nothing' is not declared"},
    {BODY("ld.global.v2.u32 %r1, [%d1];"), "2 elements expected"},
    {BODY("ld.global.v2.u32 {%r1, %r2, %r3}, [%d1];"), "2 elements expected"},
    {BODY("ld.global.u64 %r1, [%d1];"), "registers are narrower than the type"},
    {BODY("ld.global.v4.b64 {%d1,%d2,%d3,%d4}, [%d1]; ld.global.v8.b64 {%d1}, [%d1];"),
     "unknown access type"},
    {BODY("ld.global.u32 %r1, %d1;"), "is not an address in brackets"},
    {BODY("mov.b64 %d1, {%r1, %r2, %r3};"), "3 parts do not make 8 bytes"},
    {BODY("mov.u16 %h1, s;"), "an address needs a register of 32 or 64 bits"},
    {BODY("@%r1 bra L; L:"), "is a '.b32' register where '.pred' is wanted"},
    {BODY("bra L;"), "label 'L' is not defined"},
    {BODY("{ L: } bra L;"), "label 'L' is not defined"},
    {BODY("L: L: ret;"), "label 'L' is defined twice"},
    {BODY("mov.u32 %r1, 4 / (3 - 3);"), "division by zero in a constant"},
    {HEAD ".func f(); .func g(); .alias f, g;", "an alias is a function without a body"},
    {BODY("call nothing;"), "neither a function nor a register"},
    // declarations
    {HEAD ".entry k() { .reg .b32 %r<99999999>; }", "more than 4194304 registers"},
    {HEAD ".entry k() { .local .b8 l[1000000]; }", "bytes of local memory a thread"},
    {HEAD ".global .b8 g[1000000000000];", "bytes of variables"},
    {HEAD ".global .b8 g[99999999999999999999];", "is not PTX"},
    {HEAD ".global .u32 g[2] = {1, 2, 3};", "too many initial values"},
    {HEAD ".global .u64 g = h;", "this address is not known"},
    {HEAD ".shared .u32 s = 1;", "only global and constant variables have initial values"},
    {HEAD ".global .pred p;", "a predicate has no address"},
    {HEAD ".global .align 3 .u32 g;", "alignment is not a power of two"},
    {HEAD ".extern .global .u32 g; .entry k() { .reg .u32 %r; ld.global.u32 %r, [g]; }",
     "'g' is declared but not defined"},
    {HEAD ".entry k() { ret; } .entry k() { ret; }", "function 'k' is defined twice"},
    {HEAD ".func f(.param .u32 a); .func f() { ret; }", "was declared with other parameters"},
    {HEAD ".reg .u32 %r;", "is not a directive"},
    {".version 8.0\n.target sm_80\n.address_size 32\n", "only 64-bit addresses"},
    // text
    {HEAD ".entry k( { }", "'.param' expected"},
    {HEAD ".entry k() { ret }", "a constant expected before '}'"},
    {HEAD ".entry k() { ret;", "'}' expected at the end"},
    {HEAD "/* no end", "is not PTX"},
    {HEAD ".file 1 \"no end\n", "is not PTX"},
    {HEAD ".entry k() { mov.u32 \x01; }", "is not PTX"},
    {"hello", "'hello' is not a directive"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct rig r;
        rig_open(&r);
        if (rig_try_load(&r, refused[i].ptx) != TIR_ERR_INVALID)
            fail_msg("accepted: %s", refused[i].ptx);
        assert_null(r.module);
        assert_message(&r, refused[i].message);
        rig_close(&r);
    }
}

static void empty_modules(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    rig_load(&r, "");
    assert_int_equal(emu_load(r.emu, (tir_str){NULL, 0}, &r.module, NULL), TIR_OK);
    assert_int_equal(emu_load(r.emu, (tir_str){"\0\0", 2}, &r.module, &r.error), TIR_ERR_INVALID);
    emu_unload(r.emu, r.module);
    rig_close(&r);
}

// Nesting of any depth is an error, not a crash.
static void deep_nesting(void **state)
{
    static const char *const units[] = {"{", "-", "(", "[", "@", "!", "{ L:"};
    enum { DEPTH = 100000 };
    (void)state;
    char *text = malloc(DEPTH * 8 + 1000);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (int in_operand = 0; in_operand < 2; in_operand++) {
            struct rig r;
            rig_open(&r);
            const char *start = in_operand ? BODY("mov.b32 %r1, ") : BODY("");
            memcpy(text, start, strlen(start) + 1);
            char *at = strrchr(text, '}');
            for (int k = 0; k < DEPTH; k++) {
                memcpy(at, units[i], strlen(units[i]));
                at += strlen(units[i]);
            }
            *at = '\0';
            assert_int_equal(rig_try_load(&r, text), TIR_ERR_INVALID);
            rig_close(&r);
        }
    }
    free(text);
}

// --- allocations ---

struct counter {
    long left;  // allocations that still succeed
    long alive; // blocks
};

static void *count_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct counter *c = user;
    (void)old_size;
    if (new_size == 0) {
        c->alive -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (c->left-- <= 0)
        return NULL;
    void *p = realloc(ptr, new_size);
    c->alive += ptr == NULL;
    return p;
}

static const char sweep_ptx[] = HEAD
    ".global .u32 g[4] = {1, 2};\n"
    ".func (.param .b32 r) f(.param .b32 a) { .local .b8 l[64]; .reg .u32 %r<2>;\n"
    "ld.param.u32 %r1, [a]; st.local.u32 [l], %r1; st.param.u32 [r], %r1; ret; }\n"
    ".entry k(.param .u64 out) { .shared .align 16 .b8 s[1024]; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    ".param .b32 a; .param .b32 v; ld.param.u64 %d1, [out];\n"
    "mov.u32 %r1, %tid.x; st.param.b32 [a], %r1; call (v), f, (a); ld.param.b32 %r2, [v];\n"
    "cvt.u64.u32 %d2, %r1; and.b64 %d2, %d2, 0xc; add.u64 %d2, %d2, %d1; mov.u32 %r3, s;\n"
    "mad.lo.u32 %r3, %r1, 4, %r3; cp.async.ca.shared.global [%r3], [%d2], 4; cp.async.wait_all;\n"
    "bar.sync 0; ld.shared.u32 %r4, [%r3]; red.global.add.u32 [%d1+32], %r4; ret; }\n";

// Creates a device, loads, allocates and runs; gives the first status that is not fine.
static tir_status use_device(struct counter *c)
{
    const struct emu_options options = {.allocator = {count_resize, c}, .check = EMU_CHECK_FULL};
    struct emu *emu;
    struct emu_module *module;
    uint64_t out = 0;
    tir_error error;
    tir_status status = emu_create(&options, &emu, &error);
    if (status)
        return status;
    status = emu_load(emu, (tir_str){sweep_ptx, sizeof sweep_ptx - 1}, &module, &error);
    if (!status)
        status = emu_alloc(emu, 64, &out, &error);
    if (!status)
        status = emu_fill(emu, out, 0, 64, &error);
    const struct emu_launch launch = {
        .grid = {3, 1, 1}, .block = {64, 1, 1}, .params = &out, .params_size = sizeof out};
    if (!status)
        status = emu_run(emu, module, "k", &launch, &error);
    emu_destroy(emu);
    return status;
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    for (long n = 0; n < 1000; n++) {
        struct counter c = {.left = n};
        const tir_status status = use_device(&c);
        assert_int_equal(c.alive, 0);
        if (status == TIR_OK) {
            assert_true(n > 10);
            return;
        }
        assert_int_equal(status, TIR_ERR_NO_MEMORY);
    }
    fail_msg("more than 1000 allocations");
}

// Constant expressions, initial values with addresses, aliases, declarations of other compilers.
static void declarations(void **state)
{
    (void)state;
    static const char ptx[] = HEAD
        ".global .texref tex;\n.tex .u32 old;\n"
        ".global .attribute(.unified(0,0)) .u32 unified;\n"
        ".weak .global .align 8 .u32 v[12] = {(3+4)*2-1 << 2 | 0x10 & 0xff ^ 3, 7/2 % 3 >> 1,\n"
        "!0 && 1 || 0, 5 == 5 ? 07 : 0b101, ~0U, 3 <= 4 != 0, 4 > 5, -7 / 2, -7 >> 1, 1 << 4 + 1,\n"
        "0 ? 1 : 2 ? 3 : 4, 0x8000000000000000 / -1 == 0x8000000000000000};\n"
        ".global .align 8 .u64 to[2] = {generic(v)+8, v-(-4)};\n"
        ".global .align 8 .b8 bytes[8] = {0xff(v), 0xff00(v), 0xff0000(v), 0xff000000(v), 0, 0, 0, 0};\n"
        ".visible .func (.param .b32 r) twice(.param .b32 a)\n"
        "{ .reg .b32 %x; ld.param.b32 %x, [a]; shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }\n"
        ".visible .func (.param .b32 r) same(.param .b32 a);\n.alias same, twice;\n"
        ".entry k(.param .u64 out) {\n.reg .b64 %o, %a, %b; .reg .b32 %x, %y;\n"
        "ld.param.u64 %o, [out]; ld.global.u64 %a, [to]; ld.global.u32 %x, [%a]; st.global.u32 [%o], %x;\n"
        "ld.global.u64 %a, [to+8]; ld.global.u32 %x, [%a]; st.global.u32 [%o+4], %x;\n"
        "ld.global.u32 %x, [bytes]; mov.u64 %a, v; cvt.u32.u64 %y, %a; sub.u32 %x, %x, %y;\n"
        "st.global.u32 [%o+8], %x;\n"
        "{ .param .b32 p, q; st.param.b32 [p], 21; call (q), same, (p); ld.param.b32 %x, [q]; }\n"
        "st.global.u32 [%o+12], %x; mov.u32 %x, (1 << 4) + 3; st.global.u32 [%o+16], %x;\n"
        "ld.global.u32 %x, [v]; st.global.u32 [%o+20], %x;\n"
        "ld.global.u32 %x, [v+12]; st.global.u32 [%o+24], %x;\n"
        "ld.global.u32 %x, [v+16]; st.global.u32 [%o+28], %x;\n"
        "ld.global.u32 %x, [v+20]; st.global.u32 [%o+32], %x;\n"
        "ld.global.u32 %x, [v+24]; st.global.u32 [%o+36], %x;\n"
        "ld.global.u32 %x, [v+28]; st.global.u32 [%o+40], %x;\n"
        "ld.global.u32 %x, [v+32]; st.global.u32 [%o+44], %x;\n"
        "ld.global.u32 %x, [v+36]; st.global.u32 [%o+48], %x;\n"
        "ld.global.u32 %x, [v+40]; st.global.u32 [%o+52], %x;\n"
        "ld.global.u32 %x, [v+44]; st.global.u32 [%o+56], %x; ret; }\n";
    static const uint32_t want[] = {
        1,  0,          0, 42, 19,           (((3 + 4) * 2 - 1) << 2) | ((0x10 & 0xff) ^ 3),
        7,  UINT32_MAX, 1, 0,  (uint32_t)-3, (uint32_t)-4,
        32, 3,          1};
    struct rig r;
    uint32_t out[15];
    rig_open(&r);
    rig_load(&r, ptx);
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, po);
    rig_run(&r, "k", 1, 1);
    rig_read(&r, out, po, sizeof out);
    for (size_t k = 0; k < 15; k++)
        assert_int_equal(out[k], want[k]);
    rig_close(&r);
}

static void keep_text(void *user, const char *text, size_t size)
{
    char *page = user;
    strncat(page, text, size);
}

static bool has_word(const char *page, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (const char *at = page; (at = strstr(at, word)); at++)
        if (!strchr(letters, at[strlen(word)]) && !strchr(letters, at[-1]))
            return true;
    return false;
}

// The reference page has a form of every instruction that has a decoder.
static void every_instruction_is_documented(void **state)
{
    (void)state;
    static const char *const opcodes[] = {
#define DECODER(opcode, name) opcode,
#include "emu/decode/opcodes.def"
    };
    char *page = calloc(1, 1 << 16);
    assert_non_null(page);
    emu_help_ptx(keep_text, page);
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (!has_word(page, opcodes[i]))
            fail_msg("forms.def has no '%s'", opcodes[i]);
    free(page);
}

// A register of a vector type has parts, and stands for all of them where a list is wanted.
static void vector_registers(void **state)
{
    struct rig r;
    uint32_t words[8] = {1, 2, 3, 4};
    (void)state;
    rig_open(&r);
    rig_load(&r,
             ".version 8.0\n.target sm_80\n.address_size 64\n"
             ".visible .entry k(.param .u64 p) { .reg .b64 %a; .reg .v4 .u32 v; .reg .v2 .b32 w;\n"
             "ld.param.u64 %a, [p]; ld.global.v4.u32 v, [%a]; mov.b32 w.x, v.w;\n"
             "add.u32 w.y, v.y, v.b; st.global.v2.b32 [%a+16], w; st.global.u32 [%a+24], v.x;\n"
             "ret; }");
    const uint64_t p = rig_buffer(&r, words, sizeof words);
    rig_param_u64(&r, p);
    rig_run(&r, "k", 1, 1);
    rig_read(&r, words, p, sizeof words);
    assert_int_equal(words[4], 4);
    assert_int_equal(words[5], 2 + 3);
    assert_int_equal(words[6], 1);
    assert_int_equal(rig_try_load(&r, ".version 8.0\n.target sm_80\n.address_size 64\n"
                                      ".entry k() { .reg .v2 .u32 v; mov.u32 v.x, v.z; ret; }"),
                     TIR_ERR_INVALID);
    assert_message(&r, "has no part '.z'");
    rig_close(&r);
}

// Suffixes in another order than the manual's, as compilers print them and ptxas takes them.
static void suffixes_in_any_order(void **state)
{
    static const char *const pairs[][2] = {
        {"max.s32.relu %b3, %b0, %b1;", "max.relu.s32 %b3, %b0, %b1;"},
        {"min.s16x2.relu %b3, %b0, %b1;", "min.relu.s16x2 %b3, %b0, %b1;"},
        {"add.s32.sat %b3, %b0, %b1;", "add.sat.s32 %b3, %b0, %b1;"},
        {"mul.u32.hi %b3, %b0, %b1;", "mul.hi.u32 %b3, %b0, %b1;"},
        {"add.f32.ftz.rz %f3, %f0, %f1; mov.b32 %b3, %f3;",
         "add.rz.ftz.f32 %f3, %f0, %f1; mov.b32 %b3, %f3;"},
        {"max.f32.NaN.ftz %f3, %f0, %f1; mov.b32 %b3, %f3;",
         "max.ftz.NaN.f32 %f3, %f0, %f1; mov.b32 %b3, %f3;"},
    };
    uint64_t seed = 3, sources[32][4], out[2][32];
    (void)state;
    for (size_t i = 0; i < 128; i++)
        sources[i / 4][i % 4] = rig_random(&seed);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        for (int k = 0; k < 2; k++) {
            char body[160];
            snprintf(body, sizeof body, "%s cvt.u64.u32 %%out, %%b3;", pairs[i][k]);
            rig_each(body, (const uint64_t(*)[4])sources, 32, out[k]);
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suffixes_in_any_order),
        cmocka_unit_test(declarations),
        cmocka_unit_test(refusals),
        cmocka_unit_test(vector_registers),
        cmocka_unit_test(empty_modules),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(every_allocation_can_fail),
        cmocka_unit_test(every_instruction_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
