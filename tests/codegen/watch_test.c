// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits with a watchdog: what they write when nobody comes, on the emulator, whose clock counts
// instructions.

#include "engine.h"

#include <stdlib.h>

// As runtime/watchdog.h draws it.
struct record {
    uint32_t line, offset, parity, pending, turn, zero, claim, ms;
};
struct page {
    struct record records[16 * 32];
};

struct watched {
    struct ir_unit u;
    struct rig r;
    tir_str ptx;
    uint64_t page, claim;
};

static tir_str compile_watched(struct ir_unit *u, const char *arch)
{
    struct tir_nvptx nvptx = {0};
    struct tir_nvptx_options options = {
        .target = tir_target_find(tir_str_of(arch)), .verify = true, .watchdog = true};
    struct tir_nvptx_result result;
    assert_true(tir_nvptx_emit(&nvptx, &u->cx.arena, &u->cx.diags, u->m->funcs.at, u->m->funcs.len,
                               &options, &result));
    tir_nvptx_finish(&nvptx);
    return result.ptx;
}

// Loads the kernel, whose only parameter is X: i32[n]; without checks, since the watchdog reads the
// bytes of mbarriers.
static void open_watched(struct watched *w, const char *source, const struct emu_options *options)
{
    static const struct page empty;
    memset(w, 0, sizeof *w);
    parse_kernel(&w->u, source);
    w->ptx = compile_watched(&w->u, "sm_90a");
    assemble_clean(&w->u, "sm_90a", w->ptx);
    rig_open_options(&w->r, options);
    rig_load(&w->r, w->ptx.ptr);
    w->page = rig_buffer(&w->r, &empty, sizeof empty);
    w->claim = rig_buffer(&w->r, (uint32_t[3]){0}, 12);
}

static tir_status run(struct watched *w, uint32_t grid, uint64_t limit)
{
    const struct tir_func *f = w->u.f;
    const uint64_t params[] = {w->page, 1, 1, w->page, w->claim, limit};
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        rig_param_u64(&w->r, params[i]);
    w->r.shared_bytes = (uint32_t)f->shared_bytes;
    w->r.cluster = f->cluster[0];
    return rig_try_run(&w->r, f->name, grid, f->threads);
}

static void close_watched(struct watched *w)
{
    rig_close(&w->r);
    tir_context_finish(&w->u.cx);
}

static const struct emu_options unchecked = {.check = EMU_CHECK_OFF};

static void everybody_says_where_it_hangs(void **state)
{
    (void)state;
    static const char source[] =
        "kernel hang(X: inout i32[n]) grid(3) threads(64) form(lowered) shared(64)\n"
        "{\n"
        "    let full: shared mbarrier[2] = alloc(offset = 0);\n"
        "    let empty: shared mbarrier = alloc(offset = 16);\n"
        "    if eq(tid(), i32(0)) {\n"
        "        mbarrier_init(full, arrivals = 1);\n"
        "        mbarrier_init(empty, arrivals = 3);\n"
        "    }\n"
        "    bar_sync();\n"
        "    if eq(cta_id(), i32(1)) {\n"
        "        if lt(tid(), i32(32)) {\n"
        "            wait(full, i32(0), offset = 8);\n"
        "        }\n"
        "        if ge(tid(), i32(32)) {\n"
        "            wait(empty, i32(1));\n" // the phase before the first one is complete
        "            wait(empty, i32(0));\n"
        "        }\n"
        "    }\n"
        "}\n";
    struct watched w;
    struct page page;
    uint32_t claim;
    open_watched(&w, source, &unchecked);
    assert_int_equal(run(&w, 3, 1000), TIR_ERR_DEVICE);
    assert_message(&w.r, "trap");
    rig_read(&w.r, &page, w.page, sizeof page);
    rig_read(&w.r, &claim, w.claim, sizeof claim);
    assert_int_equal(claim, 2); // CTA 1
    static const struct record want[] = {{12, 8, 0, 1, 0, 0, 2, 0}, {16, 16, 0, 3, 0, 0, 2, 0}};
    for (int i = 0; i < 16 * 32; i++) {
        struct record got = page.records[i];
        assert_in_range(got.turn, i < 2, i < 2 ? 2 : 0); // in any order
        got.turn = got.ms = 0;
        assert_memory_equal(&got, i < 2 ? &want[i] : &(struct record){0}, sizeof got);
    }
    close_watched(&w);
}

// In a cluster the record is that of the CTA's rank.
static void a_cluster_has_a_record_for_each_warp(void **state)
{
    (void)state;
    static const char source[] =
        "kernel hang(X: inout i32[n]) grid(4) threads(64) cluster(2, 1, 1) form(lowered) "
        "shared(64)\n"
        "{\n"
        "    let full: shared mbarrier[2] = alloc(offset = 32);\n"
        "    if eq(tid(), i32(0)) {\n"
        "        mbarrier_init(full, arrivals = 1);\n"
        "    }\n"
        "    bar_sync();\n"
        "    if eq(cta_id(), i32(3)) {\n"
        "        if ge(tid(), i32(32)) {\n"
        "            wait(full, i32(0));\n"
        "        }\n"
        "    }\n"
        "}\n";
    struct watched w;
    struct page page;
    open_watched(&w, source, &unchecked);
    assert_int_equal(run(&w, 4, 1000), TIR_ERR_DEVICE);
    rig_read(&w.r, &page, w.page, sizeof page);
    for (uint32_t i = 0; i < 16 * 32; i++) {
        assert_int_equal(page.records[i].line, i == 33 ? 10 : 0);
        assert_int_equal(page.records[i].claim, i == 33 ? 2 : 0);
        assert_int_equal(page.records[i].offset, i == 33 ? 32 : 0);
    }
    close_watched(&w);
}

// One that comes late, but before the grace is over: the record is taken back. The others stay busy
// by waiting for a barrier of their own, so that the emulator lets waits give up in between.
static void a_late_arrival_is_no_hang(void **state)
{
    (void)state;
    static const char source[] =
        "kernel late(X: inout i32[n]) grid(1) threads(64) form(lowered) shared(64)\n"
        "{\n"
        "    let full: shared mbarrier = alloc(offset = 8);\n"
        "    let never: shared mbarrier = alloc(offset = 16);\n"
        "    if eq(tid(), i32(0)) {\n"
        "        mbarrier_init(full, arrivals = 32);\n"
        "        mbarrier_init(never, arrivals = 1);\n"
        "    }\n"
        "    bar_sync();\n"
        "    if ge(tid(), i32(32)) {\n"
        "        let at: i32 = address(never);\n"
        "        ptx(at, text = \"{ .reg .pred p; .reg .b64 a, b; mov.u64 a, %globaltimer; L: "
        "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], 0; mov.u64 b, %globaltimer; "
        "sub.u64 b, b, a; setp.lt.u64 p, b, 4400; @p bra L; }\");\n"
        "        arrive(full);\n"
        "    }\n"
        "    wait(full, i32(0));\n"
        "}\n";
    struct watched w;
    struct page page;
    uint32_t claim;
    open_watched(&w, source, &unchecked);
    if (run(&w, 1, 4000))
        fail_msg("%s", w.r.error.message);
    rig_read(&w.r, &page, w.page, sizeof page);
    rig_read(&w.r, &claim, w.claim, sizeof claim);
    assert_int_equal(page.records[0].offset, 8); // it was there
    assert_int_equal(page.records[0].line, 0);
    assert_int_equal(claim, 0);
    close_watched(&w);
}

// Kernels that wait for nothing, and targets before sm_90, have no watchdog.
static void nothing_to_watch(void **state)
{
    (void)state;
    static const char source[] =
        "kernel wait(X: inout i32[n]) grid(1) threads(32) form(lowered) shared(64)\n"
        "{\n"
        "    let full: shared mbarrier = alloc(offset = 0);\n"
        "    mbarrier_init(full, arrivals = 1);\n"
        "    wait(full, i32(1));\n"
        "}\n";
    static const char idle[] = "kernel idle(X: inout i32[n]) grid(1) threads(32) form(lowered)\n"
                               "{\n"
                               "    bar_sync();\n"
                               "}\n";
    struct ir_unit u;
    parse_kernel(&u, source);
    assert_non_null(strstr(compile_watched(&u, "sm_90a").ptr, "wait_param_5"));
    assert_null(strstr(compile_watched(&u, "sm_80").ptr, "wait_param_3"));
    tir_context_finish(&u.cx);
    parse_kernel(&u, idle);
    assert_null(strstr(compile_watched(&u, "sm_90a").ptr, "idle_param_3"));
    tir_context_finish(&u.cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_says_where_it_hangs),
        cmocka_unit_test(a_cluster_has_a_record_for_each_warp),
        cmocka_unit_test(a_late_arrival_is_no_hang),
        cmocka_unit_test(nothing_to_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
