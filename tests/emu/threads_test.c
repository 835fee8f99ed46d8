// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches on several threads of the host: who may have them, and that nobody can tell.

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rig.h"

enum { GRID = 61, BLOCK = 64, WORDS = GRID * BLOCK };

// Each thread stores %r4 to its word of the buffer after `body`; %r0 is the CTA, %r1 the thread,
// %a0 the thread's word, %a1 the buffer.
#define KERNEL(body)                                                                         \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                       \
    ".extern .func (.param .b64 p) malloc(.param .b64 s);\n"                                 \
    ".visible .entry k(.param .u64 dst)\n{\n"                                                \
    ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %a<8>; .shared .align 16 .b32 tile[64];\n" \
    "ld.param.u64 %a1, [dst]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x;\n"                 \
    "mad.lo.u32 %r2, %r0, 64, %r1; mul.wide.u32 %a2, %r2, 4; add.s64 %a0, %a1, %a2;\n"       \
    "mov.u32 %r3, tile; mad.lo.u32 %r3, %r1, 4, %r3; mov.u32 %r4, %r2;\n" body               \
    "\nst.global.u32 [%a0], %r4;\nret;\n}\n"

// Takes longer the lower the CTA is, with barriers and shared memory on the way.
#define LONG                                                                     \
    "sub.u32 %r5, 61, %r0; mul.lo.u32 %r5, %r5, 5;\n"                            \
    "more: st.shared.u32 [%r3], %r4; bar.sync 0; xor.b32 %r6, %r3, 4;\n"         \
    "ld.shared.u32 %r7, [%r6]; mad.lo.u32 %r4, %r4, 1664525, %r7; bar.sync 0;\n" \
    "sub.u32 %r5, %r5, 1; setp.ne.u32 %p0, %r5, 0; @%p0 bra more;\n"

// An allocator that knows who calls it, and fails from the `limit`-th call on.
struct calls {
    atomic_flag busy;
    atomic_uint count, overlaps, others;
    unsigned limit;
    pthread_t first;
};

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct calls *c = user;
    (void)old_size;
    if (atomic_flag_test_and_set(&c->busy))
        atomic_fetch_add(&c->overlaps, 1);
    if (!pthread_equal(c->first, pthread_self()))
        atomic_fetch_add(&c->others, 1);
    void *p = NULL;
    if (!new_size)
        free(ptr);
    else if (atomic_fetch_add(&c->count, 1) < c->limit)
        p = realloc(ptr, new_size);
    atomic_flag_clear(&c->busy);
    return p;
}

// What came of a launch.
struct outcome {
    tir_status status;
    char message[248];
    uint32_t findings;
    uint64_t instructions;
    uint32_t words[WORDS];
    unsigned others, overlaps; // calls of the allocator by other threads, and at the same time
};

static void launch(const char *ptx, struct emu_options options, unsigned limit, struct outcome *out)
{
    struct calls calls = {.busy = ATOMIC_FLAG_INIT, .limit = UINT32_MAX, .first = pthread_self()};
    struct rig r;
    memset(out, 0, sizeof *out);
    options.allocator = (tir_allocator){resize, &calls};
    options.step_limit = 1000000;
    rig_open_options(&r, &options);
    rig_load(&r, ptx);
    const uint64_t dst = rig_buffer(&r, NULL, sizeof out->words);
    rig_param_u64(&r, dst);
    calls.limit = limit ? atomic_load(&calls.count) + limit : UINT32_MAX;
    r.error.message[0] = 0;
    out->status = rig_try_run(&r, "k", GRID, BLOCK);
    memcpy(out->message, r.error.message, sizeof out->message);
    emu_findings(r.emu, &out->findings);
    out->instructions = emu_instructions(r.emu);
    if (!out->status)
        rig_read(&r, out->words, dst, sizeof out->words);
    out->others = atomic_load(&calls.others);
    out->overlaps = atomic_load(&calls.overlaps);
    rig_close(&r);
}

static void same_results(void **state)
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        static struct outcome one, many;
        struct emu_options options = {
            .check = EMU_CHECK_MEMORY, .policy = policies[i], .seed = i, .threads = 1};
        launch(KERNEL(LONG), options, 0, &one);
        assert_int_equal(one.status, TIR_OK);
        assert_int_equal(one.others, 0);
        static const uint32_t counts[] = {2, 3, 8, 1000};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            options.threads = counts[k];
            launch(KERNEL(LONG), options, 0, &many);
            assert_int_equal(many.status, TIR_OK);
            assert_memory_equal(one.words, many.words, sizeof one.words);
            assert_int_equal(one.instructions, many.instructions);
            assert_true(many.others > 0);
            assert_int_equal(many.overlaps, 0);
        }
    }
}

// A higher CTA goes wrong long before CTA 5 does.
static void same_fault(void **state)
{
#define WRONG_FROM_5 LONG "setp.lt.u32 %p1, %r0, 5; @%p1 bra fine;\n"
    static const char *const kernels[] = {
        KERNEL(WRONG_FROM_5 "mul.wide.u32 %a3, %r0, 1048576; add.s64 %a0, %a1, %a3; fine:"),
        KERNEL(WRONG_FROM_5 "ld.global.u32 %r4, [%a0]; fine:"),
        KERNEL(WRONG_FROM_5 "bar.sync 1, 128; fine:"),
        KERNEL(WRONG_FROM_5 "trap; fine:"),
        KERNEL(WRONG_FROM_5 "again: bra again; fine:"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        static struct outcome one, many;
        struct emu_options options = {.check = EMU_CHECK_MEMORY, .threads = 1};
        launch(kernels[i], options, 0, &one);
        assert_int_equal(one.status, TIR_ERR_DEVICE);
        assert_non_null(strstr(one.message, "CTA (5,0,0)"));
        assert_int_equal(one.findings, 1);
        for (options.threads = 2; options.threads < 6; options.threads++) {
            launch(kernels[i], options, 0, &many);
            assert_int_equal(many.status, TIR_ERR_DEVICE);
            assert_string_equal(one.message, many.message);
            assert_int_equal(many.findings, 1);
            assert_true(many.others > 0);
        }
    }
}

static void ignore(void *user, const struct emu_trace_event *event)
{
    (void)user;
    (void)event;
}

static void who_may(void **state)
{
    static const struct {
        const char *ptx;
        enum emu_check check;
        bool is_traced, is_independent;
    } cases[] = {
        {KERNEL(""), EMU_CHECK_OFF, false, true},
        {KERNEL(""), EMU_CHECK_MEMORY, false, true},
        {KERNEL(""), EMU_CHECK_RACE, false, false},
        {KERNEL(""), EMU_CHECK_FULL, false, false},
        {KERNEL(""), EMU_CHECK_MEMORY, true, false},
        {KERNEL("st.shared.u32 [%r3], 0; atom.shared.add.u32 %r4, [%r3], 1;"), EMU_CHECK_MEMORY,
         false, true},
        {KERNEL("st.shared.u32 [%r3], 0; ld.volatile.shared.u32 %r4, [%r3];"), EMU_CHECK_MEMORY,
         false, true},
        {KERNEL("fence.acq_rel.cta;"), EMU_CHECK_MEMORY, false, true},
        {KERNEL("st.release.gpu.global.u32 [%a0], %r4;"), EMU_CHECK_MEMORY, false, true},
        {KERNEL("st.global.u32 [%a0], 0; atom.global.add.u32 %r4, [%a0], 1;"), EMU_CHECK_MEMORY,
         false, false},
        {KERNEL("st.global.u32 [%a0], 0; red.global.add.u32 [%a0], 1;"), EMU_CHECK_MEMORY, false,
         false},
        {KERNEL("st.global.u32 [%a0], 0; atom.add.u32 %r4, [%a0], 1;"), EMU_CHECK_MEMORY, false,
         false},
        {KERNEL("st.global.u32 [%a0], 0; ld.volatile.global.u32 %r4, [%a0];"), EMU_CHECK_MEMORY,
         false, false},
        {KERNEL("st.global.u32 [%a0], 0; ld.relaxed.gpu.u32 %r4, [%a0];"), EMU_CHECK_MEMORY, false,
         false},
        {KERNEL("st.global.u32 [%a0], 0; ld.acquire.gpu.global.u32 %r4, [%a0];"), EMU_CHECK_MEMORY,
         false, false},
        {KERNEL("{ .param .b64 s; .param .b64 p; st.param.b64 [s], 16;\n"
                "call.uni (p), malloc, (s); }"),
         EMU_CHECK_MEMORY, false, false},
        {KERNEL("membar.gl;"), EMU_CHECK_MEMORY, false, false},
        {KERNEL("mov.u32 %r4, %clock;"), EMU_CHECK_MEMORY, false, false},
        {KERNEL("bra end; st.global.u32 [%a0], 0; red.global.add.u32 [%a0], 1; end:"),
         EMU_CHECK_MEMORY, false, false},
        {KERNEL(
             "bra end; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a1], [tile], 16;"
             "end:"),
         EMU_CHECK_MEMORY, false, false},
        {KERNEL("bra end; cp.async.bulk.global.shared::cta.bulk_group [%a1], [tile], 16; end:"),
         EMU_CHECK_MEMORY, false, true},
        {KERNEL("bra end; cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group "
                "[%a1, {%r1}], [tile]; end:"),
         EMU_CHECK_MEMORY, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct outcome out;
        const struct emu_options options = {
            .check = cases[i].check, .threads = 4, .trace = cases[i].is_traced ? ignore : NULL};
        launch(cases[i].ptx, options, 0, &out);
        if (out.status || (out.others > 0) != cases[i].is_independent)
            fail_msg("case %zu: %s; %u calls by other threads", i, out.message, out.others);
    }
}

// Memory that runs out, wherever it does, is an error and no more than that.
static void no_memory(void **state)
{
    (void)state;
    static struct outcome out;
    const struct emu_options options = {.check = EMU_CHECK_MEMORY, .threads = 3};
    unsigned limit = 1;
    do {
        launch(KERNEL(LONG), options, limit++, &out);
        assert_int_equal(out.overlaps, 0);
        if (out.status)
            assert_int_equal(out.status, TIR_ERR_NO_MEMORY);
    } while (out.status && limit < 1000);
    assert_true(limit > 10 && limit < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_results),
        cmocka_unit_test(same_fault),
        cmocka_unit_test(who_may),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
