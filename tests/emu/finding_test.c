// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Findings: what they hold, their JSON, and the table of docs/emulator.md.

#include <stdio.h>
#include <stdlib.h>

#include "rig.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

// Two warps store to a word and load its neighbour; nothing stands between.
static const char racing[] = HEAD
    ".visible .entry k() {\n.reg .b32 %r<8>; .shared .align 4 .b32 s[64];\n"
    ".loc 1 3 1\nmov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;\n"
    "st.shared.u32 [%r3], %r1;\n"
    "xor.b32 %r4, %r3, 128;\n"
    ".loc 1 4 1\n"
    "bar.warp.sync -1;\n"
    "st.shared.u32 [%r4], %r1;\nret; }\n"
    ".file 1 \"dir/two \\x.tir\"\n";

static void structured(void **state)
{
    struct rig r;
    uint32_t count = 9;
    (void)state;
    rig_open(&r);
    assert_ptr_not_equal(emu_findings(r.emu, &count), NULL);
    assert_int_equal(count, 0);
    rig_load(&r, racing);
    assert_int_equal(rig_try_run(&r, "k", 1, 64), TIR_ERR_DEVICE);
    const struct emu_finding *f = emu_findings(r.emu, &count);
    assert_int_equal(count, 1); // 64 words, one pair of instructions
    assert_int_equal(f->kind, EMU_F_RACE);
    assert_int_equal(f->at.line, 8);
    assert_int_equal(f->at.warp, 1);
    assert_int_equal(f->at.lane, 0);
    assert_string_equal(f->at.does, "store");
    assert_int_equal(f->at.file_line, 3);
    assert_int_equal(f->other.line, 12);
    assert_int_equal(f->other.warp, 0);
    assert_int_equal(f->other.file_line, 4);
    assert_string_equal(f->space, "shared");
    assert_int_equal(f->address, 1024 + 128);
    assert_int_equal(f->size, 4);
    assert_int_equal(strncmp(f->message, r.error.message, 200), 0);
    rig_close(&r);
}

static void json(void **state)
{
    struct rig r;
    char text[2048], small[16];
    (void)state;
    rig_open(&r);
    assert_int_equal(emu_findings_json(r.emu, text, sizeof text), 4);
    assert_string_equal(text, "[\n]\n");
    rig_load(&r, racing);
    assert_int_equal(rig_try_run(&r, "k", 1, 64), TIR_ERR_DEVICE);
    const size_t len = emu_findings_json(r.emu, text, sizeof text);
    assert_int_equal(len, strlen(text));
    assert_int_equal(emu_findings_json(r.emu, small, sizeof small), len);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_non_null(strstr(text, "{\"kind\":\"RACE\",\"message\":\"data race: shared store of 4"));
    assert_non_null(strstr(text, "\"at\":{\"file\":\"two \\\\x.tir\",\"file_line\":3,"
                                 "\"does\":\"store\",\"warp\":1,\"lane\":0,\"ptx_line\":8,"
                                 "\"cta\":[0,0,0]}"));
    assert_non_null(strstr(text, "\"space\":\"shared\",\"address\":1152,\"size\":4,\"note\":\""));
    rig_close(&r);
}

// Two warps store the same: told, and the launch is right. It does not hide what is wrong.
static const char again[] =
    HEAD ".visible .entry k(.param .u32 other) {\n.reg .b32 %r<4>; .shared .align 4 .b32 s[64];\n"
         "ld.param.u32 %r1, [other]; mov.u32 %r0, %warpid;\n"
         "mov.u32 %r2, 5; st.shared.u32 [s], %r2;\n"
         "mul.lo.u32 %r2, %r0, %r1; st.shared.u32 [s+4], %r2;\nret; }\n";

static void hints(void **state)
{
    struct rig r;
    uint32_t count;
    char text[2048];
    (void)state;
    rig_open(&r);
    rig_load(&r, again);
    rig_param_u32(&r, 0);
    rig_run(&r, "k", 1, 64);
    const struct emu_finding *f = emu_findings(r.emu, &count);
    assert_int_equal(count, 2); // two places
    assert_int_equal(f->kind, EMU_F_AGAIN);
    assert_int_equal(f->at.line, 7);
    assert_true(emu_finding_is_hint(f->kind));
    emu_findings_json(r.emu, text, sizeof text);
    assert_non_null(strstr(text, "\"hint\":true}"));
    rig_param_u32(&r, 1);
    assert_int_equal(rig_try_run(&r, "k", 1, 64), TIR_ERR_DEVICE);
    assert_message(&r, "data race");
    f = emu_findings(r.emu, &count);
    assert_int_equal(count, 2);
    assert_int_equal(f[1].kind, EMU_F_RACE);
    rig_close(&r);
}

// A launch that is right, and findings of the one before are gone.
static void next_launch(void **state)
{
    struct rig r;
    uint32_t count;
    (void)state;
    rig_open(&r);
    rig_load(&r, racing);
    assert_int_equal(rig_try_run(&r, "k", 1, 64), TIR_ERR_DEVICE);
    rig_run(&r, "k", 1, 32);
    emu_findings(r.emu, &count);
    assert_int_equal(count, 0);
    rig_close(&r);
}

static void deadlock_lists_all(void **state)
{
    struct rig r;
    uint32_t count;
    char want[80];
    (void)state;
    rig_open(&r);
    rig_load(&r, HEAD ".visible .entry k() { .reg .b32 %r; mov.u32 %r, %warpid;\n"
                      "bar.sync %r, 64; ret; }\n");
    assert_int_equal(rig_try_run(&r, "k", 1, 512), TIR_ERR_DEVICE);
    const struct emu_finding *f = emu_findings(r.emu, &count);
    assert_int_equal(count, 1);
    assert_int_equal(f->kind, EMU_F_DEADLOCK);
    for (uint32_t i = 0; i < 16; i++) {
        snprintf(want, sizeof want, "warp %u at barrier %u, 32 of 64 threads there, PTX line 5", i,
                 i);
        assert_non_null(strstr(f->message, want));
    }
    rig_close(&r);
}

static void documented(void **state)
{
    (void)state;
    FILE *f = fopen(DOCS, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20), row[512];
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    const char *at = text;
    for (int i = 0; i < EMU_FINDING_KINDS; i++) {
        const enum emu_finding_kind kind = (enum emu_finding_kind)i;
        const char *prefix = emu_finding_prefix(kind), *quote = *prefix ? "`" : "";
        snprintf(row, sizeof row, "\n| %s%s%s | %s |\n", quote, *prefix ? prefix : "anything else",
                 quote, emu_finding_note(kind));
        at = strstr(at, row); // in the table's order
        if (!at)
            fail_msg("docs/emulator.md lacks, or has elsewhere:%s", row);
    }
    free(text);
}

// Tensor memory as Triton's code uses it: no fence anywhere, and the wait for a load behind the use
// of its register.
#define LEFT(fence)                                                                              \
    ".version 8.7\n.target sm_100a\n.address_size 64\n"                                          \
    ".visible .entry k(.param .u64 out) {\n"                                                     \
    ".reg .pred %p<4>; .reg .b32 %t, %r<8>; .reg .b64 %o; .shared .align 8 .b8 s[16];\n"         \
    "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; setp.lt.u32 %p0, %t, 32;\n"                     \
    "setp.eq.u32 %p1, %t, 0; @!%p0 bra ready;\n"                                                 \
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;\n"                         \
    "@%p1 mbarrier.init.shared.b64 [s+8], 1;\n"                                                  \
    "ready: bar.sync 0; ld.shared.u32 %r1, [s]; mov.u32 %r2, 5; @!%p0 bra stored;\n"             \
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2}; tcgen05.wait::st.sync.aligned;\n"       \
    "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [s+8];\n"        \
    "stored: mbarrier.try_wait.parity.shared.b64 %p2, [s+8], 0; @!%p2 bra stored; bar.sync 0;\n" \
    "setp.ge.u32 %p3, %t, 128; @!%p3 bra loaded;\n"                                              \
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r1];\n"                                      \
    "add.u32 %r7, %r6, 1; st.global.u32 [%o], %r7; tcgen05.wait::ld.sync.aligned;\n"             \
    "loaded: bar.sync 0; @!%p0 bra gone;\n"                                                      \
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;\n"                                   \
    "gone: " fence "ret; }\n"

static void order_left_to_ptxas(void **state)
{
    static const char *const ptx[] = {LEFT(""), LEFT("tcgen05.fence::after_thread_sync; ")};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r;
        uint32_t count, out = 0, seen = 0;
        rig_open(&r);
        rig_load(&r, ptx[i]);
        const uint64_t at = rig_buffer(&r, &out, sizeof out);
        rig_param_u64(&r, at);
        assert_int_equal(rig_try_run(&r, "k", 1, 160), i ? TIR_ERR_DEVICE : TIR_OK);
        const struct emu_finding *f = emu_findings(r.emu, &count);
        for (uint32_t k = 0; k < count; k++)
            seen |= f[k].kind == EMU_F_TMEM_UNFENCED   ? 1
                    : f[k].kind == EMU_F_TMEM_LEFT     ? 2
                    : f[k].kind == EMU_F_TMEM_FENCE    ? 4
                    : f[k].kind == EMU_F_TMEM_REGISTER ? 8
                                                       : 16;
        assert_int_equal(seen, i ? 4 | 8 : 1 | 2);
        rig_read(&r, &out, at, sizeof out);
        assert_int_equal(out, i ? 0 : 6);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structured),
        cmocka_unit_test(json),
        cmocka_unit_test(hints),
        cmocka_unit_test(next_launch),
        cmocka_unit_test(deadlock_lists_all),
        cmocka_unit_test(documented),
        cmocka_unit_test(order_left_to_ptxas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
