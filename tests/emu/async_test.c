// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// mbarriers, bulk copies, clusters, and the schedules they run under.

#include <stdlib.h>

#include "rig.h"

#define HEAD ".version 8.6\n.target sm_90a\n.address_size 64\n"

enum { N = 256 };

static void fill(uint32_t *data, uint32_t count, uint64_t seed)
{
    for (uint32_t i = 0; i < count; i++)
        data[i] = (uint32_t)rig_random(&seed);
}

// Runs a kernel of two buffers of N words under every schedule and compares the second with the
// first.
static void copies_under_every_schedule(const char *ptx, uint32_t grid, uint32_t cluster,
                                        uint32_t block)
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    for (uint32_t run = 0; run < 40; run++) {
        uint32_t in[N], out[N];
        struct rig r;
        rig_open_with(&r, policies[run % 4], run);
        rig_load(&r, ptx);
        fill(in, N, run);
        const uint64_t a = rig_buffer(&r, in, sizeof in), b = rig_buffer(&r, NULL, sizeof out);
        rig_param_u64(&r, a);
        rig_param_u64(&r, b);
        r.cluster = cluster;
        rig_run(&r, "k", grid, block);
        rig_read(&r, out, b, sizeof out);
        assert_memory_equal(in, out, sizeof in);
        rig_close(&r);
    }
}

// What CTAs know of clusters of two sizes: those of each four are one cluster, or two, by the seed.
static void clusters_of_two_sizes(void **state)
{
    static const char ptx[] =
        HEAD ".visible .entry k(.param .u64 out)\n{\n"
             ".reg .b32 %r<8>; .reg .b64 %a<4>;\n"
             "ld.param.u64 %a0, [out]; mov.u32 %r0, %ctaid.x; mov.u32 %r6, %ctaid.y;\n"
             "mad.lo.u32 %r0, %r6, 8, %r0; mul.wide.u32 %a1, %r0, 16; add.u64 %a0, %a0, %a1;\n"
             "mov.u32 %r1, %cluster_nctarank; mov.u32 %r2, %cluster_ctarank;\n"
             "mov.u32 %r3, %clusterid.x; mov.u32 %r4, %nclusterid.x;\n"
             "st.global.v4.u32 [%a0], {%r1, %r2, %r3, %r4};\n"
             "barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n";
    enum { CTAS = 16 };
    uint32_t larger = 0;
    (void)state;
    for (uint32_t seed = 0; seed < 8; seed++) {
        uint32_t seen[CTAS][4];
        struct rig r;
        rig_open_with(&r, EMU_RANDOM, seed);
        rig_load(&r, ptx);
        const uint64_t out = rig_buffer(&r, NULL, sizeof seen);
        rig_param_u64(&r, out);
        r.cluster = 2;
        r.preferred = 4;
        r.grid_y = 2;
        rig_run(&r, "k", 8, 32);
        rig_read(&r, seen, out, sizeof seen);
        for (uint32_t i = 0; i < CTAS; i++) {
            const uint32_t size = seen[i / 4 * 4][0];
            const uint32_t expected[4] = {size, i % size, i % 8 / size, 8 / size};
            assert_true(size == 2 || size == 4);
            assert_memory_equal(seen[i], expected, sizeof expected);
            larger += size == 4;
        }
        rig_close(&r);
    }
    assert_in_range(larger, 1, 8 * CTAS - 1);
}

// A launch that has no such clusters is refused.
static void preferred_clusters_divide_the_grid(void **state)
{
    static const char ptx[] = HEAD ".visible .entry k() { ret; }\n";
    static const uint32_t wrong[][3] = {{6, 2, 4}, {8, 2, 3}, {32, 2, 32}, {8, 4, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rig r;
        rig_open(&r);
        rig_load(&r, ptx);
        r.cluster = wrong[i][1];
        r.preferred = wrong[i][2];
        assert_int_equal(rig_try_run(&r, "k", wrong[i][0], 32), TIR_ERR_INVALID);
        assert_message(&r, "in preferred clusters of");
        rig_close(&r);
    }
}

// One thread copies in by a bulk copy, all wait for it, one thread copies out.
static const char bulk_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %a<4>;\n"
    ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; mov.u32 %r0, %tid.x;\n"
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra ready;\n"
    "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
    "ready: bar.sync 0; @%p0 bra wait;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%a0], 1024, [bar];\n"
    "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;\n"
    "bar.sync 0; @%p0 bra done;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%a1], [tile], 1024;\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
    "done: ret;\n}\n";

static void bulk_copies(void **state)
{
    (void)state;
    copies_under_every_schedule(bulk_ptx, 1, 1, 96);
}

// Of every 16 bytes the copy out has those of a mask; the others stay.
static void masked_bulk_copies(void **state)
{
    static const char ptx[] = HEAD
        ".visible .entry k(.param .u64 dst)\n{\n"
        ".reg .b32 %r<4>; .reg .b64 %a<2>; .reg .b16 %h<2>; .shared .align 16 .b8 tile[128];\n"
        "ld.param.u64 %a1, [dst]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2;\n"
        "mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; mul.lo.u32 %r3, %r0, 0x01010101;\n"
        "st.shared.u32 [%r2], %r3; fence.proxy.async.shared::cta; bar.sync 0;\n"
        ".reg .pred %p; setp.ne.u32 %p, %r0, 0; @%p bra done; mov.u16 %h0, 0xc0f5;\n"
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%a1], [tile], 128, "
        "%a1, %h0;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
        "done: ret;\n}\n";
    uint8_t out[128], expected[128];
    struct rig r;
    (void)state;
    for (int i = 0; i < 128; i++)
        expected[i] = 0xc0f5 >> i % 16 & 1 ? (uint8_t)(i / 4) : 0xee;
    memset(out, 0xee, sizeof out);
    rig_open(&r);
    rig_load(&r, ptx);
    const uint64_t buffer = rig_buffer(&r, out, sizeof out);
    rig_param_u64(&r, buffer);
    rig_run(&r, "k", 1, 32);
    rig_read(&r, out, buffer, sizeof out);
    assert_memory_equal(out, expected, sizeof out);
    rig_close(&r);
}

// The leader of a cluster of two multicasts to both; the other one copies out.
static const char multicast_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %a<4>; .reg .b16 %h<2>;\n"
    ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; mov.u32 %r0, %cluster_ctarank;\n"
    "mov.u32 %r1, %tid.x; setp.ne.u32 %p3, %r1, 0; @%p3 bra ready;\n"
    "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n"
    "ready: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "setp.ne.u32 %p0, %r0, 0; or.pred %p0, %p0, %p3; @%p0 bra wait;\n"
    "mov.u16 %h0, 3;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], "
    "[%a0], 1024, [bar], %h0;\n"
    "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;\n"
    "setp.ne.u32 %p2, %r0, 1; or.pred %p2, %p2, %p3; @%p2 bra done;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%a1], [tile], 1024;\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"
    "done: barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n";

static void multicast(void **state)
{
    (void)state;
    copies_under_every_schedule(multicast_ptx, 2, 2, 32);
}

// Every CTA writes its part into the first one's shared memory, which copies it out.
static const char remote_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %a<4>;\n"
    ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; mov.u32 %r0, %cluster_ctarank;\n"
    "mov.u32 %r1, %tid.x; or.b32 %r2, %r0, %r1; setp.ne.u32 %p0, %r2, 0; @%p0 bra ready;\n"
    "mbarrier.init.shared.b64 [bar], 256;\n"
    "ready: barrier.cluster.arrive; barrier.cluster.wait;\n"
    "shl.b32 %r3, %r0, 6; add.u32 %r3, %r3, %r1; shl.b32 %r3, %r3, 2; cvt.u64.u32 %a2, %r3;\n"
    "add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2; ld.global.u32 %r4, [%a0];\n"
    "mov.u32 %r5, tile; mapa.shared::cluster.u32 %r6, %r5, 0; add.u32 %r6, %r6, %r3;\n"
    "st.shared::cluster.u32 [%r6], %r4;\n"
    "mov.u32 %r7, bar; mapa.shared::cluster.u32 %r8, %r7, 0;\n"
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];\n"
    "setp.ne.u32 %p1, %r0, 0; @%p1 bra last;\n"
    "wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra wait;\n"
    "last: barrier.cluster.arrive; barrier.cluster.wait;\n"
    "ld.shared::cluster.u32 %r9, [%r6]; st.global.u32 [%a1], %r9;\n"
    "barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n";

static void distributed_shared_memory(void **state)
{
    (void)state;
    copies_under_every_schedule(remote_ptx, 4, 4, 64);
}

// Two warps hand words over through two stages of full and empty mbarriers.
static const char ring_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %a<4>;\n"
    ".shared .align 16 .b8 tile[256]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];\n"
    "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; mov.u32 %r0, %tid.x;\n"
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra ready;\n"
    "mbarrier.init.shared.b64 [full], 32; mbarrier.init.shared.b64 [full+8], 32;\n"
    "mbarrier.init.shared.b64 [empty], 32; mbarrier.init.shared.b64 [empty+8], 32;\n"
    "ready: bar.sync 0; mov.u32 %r1, 0; mov.u32 %r2, full; mov.u32 %r3, empty;\n"
    "and.b32 %r4, %r0, 31; shl.b32 %r4, %r4, 2; cvt.u64.u32 %a2, %r4;\n"
    "add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2;\n"
    "loop: and.b32 %r5, %r1, 1; shr.u32 %r6, %r1, 1; and.b32 %r6, %r6, 1;\n"
    "shl.b32 %r7, %r5, 3; add.u32 %r8, %r2, %r7; add.u32 %r9, %r3, %r7;\n"
    "shl.b32 %r7, %r5, 7; mov.u32 %r10, tile; add.u32 %r10, %r10, %r7; add.u32 %r10, %r10, %r4;\n"
    "setp.ge.u32 %p1, %r0, 32; @%p1 bra consumer;\n"
    "xor.b32 %r6, %r6, 1;\n"
    "wait0: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], %r6; @!%p2 bra wait0;\n"
    "ld.global.u32 %r11, [%a0]; st.shared.u32 [%r10], %r11;\n"
    "mbarrier.arrive.shared.b64 _, [%r8]; bra next;\n"
    "consumer:\n"
    "wait1: mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r8], %r6; @!%p2 bra wait1;\n"
    "ld.shared.u32 %r11, [%r10]; st.global.u32 [%a1], %r11;\n"
    "mbarrier.arrive.shared.b64 _, [%r9];\n"
    "next: add.u64 %a0, %a0, 128; add.u64 %a1, %a1, 128; add.u32 %r1, %r1, 1;\n"
    "setp.lt.u32 %p3, %r1, 8; @%p3 bra loop; ret;\n}\n";

static void ring(void **state)
{
    (void)state;
    copies_under_every_schedule(ring_ptx, 1, 1, 64);
}

// cp.async completes through an mbarrier.
static const char cp_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %a<4>;\n"
    ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; mov.u32 %r0, %tid.x;\n"
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra ready; mbarrier.init.shared.b64 [bar], 64;\n"
    "ready: bar.sync 0; shl.b32 %r1, %r0, 4; cvt.u64.u32 %a2, %r1; add.u64 %a0, %a0, %a2;\n"
    "mov.u32 %r2, tile; add.u32 %r3, %r2, %r1; cp.async.cg.shared.global [%r3], [%a0], 16;\n"
    "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
    "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;\n"
    "xor.b32 %r4, %r1, 1008; add.u32 %r3, %r2, %r4; cvt.u64.u32 %a2, %r4; add.u64 %a1, %a1, %a2;\n"
    "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3]; st.global.v4.u32 [%a1], {%r5, %r6, %r7, %r8};\n"
    "ret;\n}\n";

static void cp_async_through_mbarrier(void **state)
{
    (void)state;
    copies_under_every_schedule(cp_ptx, 1, 1, 64);
}

// Clusters that take over the work of those that have not started. FENCE follows the read of a
// response, LAST is what a CTA does that has seen a request fail.
#define CANCEL(FENCE, LAST)                                                                     \
    HEAD ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"                             \
         ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %a<6>; .reg .b128 %q;\n"                \
         ".shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;\n"                       \
         "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; mov.u32 %r0, %ctaid.x;\n"           \
         "mbarrier.init.shared.b64 [bar], 1; mov.u32 %r2, 0;\n"                                 \
         "work: shl.b32 %r1, %r0, 2; cvt.u64.u32 %a2, %r1;\n"                                   \
         "add.u64 %a3, %a0, %a2; add.u64 %a4, %a1, %a2;\n"                                      \
         "ld.global.u32 %r3, [%a3]; st.global.u32 [%a4], %r3;\n"                                \
         "request: mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"                   \
         "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 " \
         "[answer], [bar];\n"                                                                   \
         "wait: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], %r2; @!%p0 bra wait;\n"    \
         "xor.b32 %r2, %r2, 1; ld.shared.b128 %q, [answer];\n" FENCE                            \
         "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q; @!%p1 bra done;\n"   \
         "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r0, %q; bra work;\n"   \
         "done: " LAST " ret;\n}\n"
#define FENCED "fence.proxy.async.shared::cta;\n"

static void cancelled_clusters(void **state)
{
    (void)state;
    copies_under_every_schedule(CANCEL(FENCED, ""), N, 1, 1);
}

static void wrong_requests(void **state)
{
    static const struct {
        const char *ptx, *message;
    } cases[] = {
        {CANCEL("", ""), "missing proxy fence: shared asynchronous write of 16 bytes"},
        {CANCEL(FENCED, "setp.eq.u32 %p2, %r2, 9; @!%p2 bra request;"),
         "clusterlaunchcontrol.try_cancel after a request of the CTA was seen to fail, at PTX line"},
        {CANCEL(FENCED, "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r0, %q;"),
         "clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed"},
    };
    (void)state;
    for (uint32_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        const uint32_t in[N] = {0};
        struct rig r;
        rig_open_with(&r, i % 4, i);
        rig_load(&r, cases[i / 4].ptx);
        const uint64_t a = rig_buffer(&r, in, sizeof in), b = rig_buffer(&r, NULL, sizeof in);
        rig_param_u64(&r, a);
        rig_param_u64(&r, b);
        assert_int_equal(rig_try_run(&r, "k", N, 1), TIR_ERR_DEVICE);
        assert_message(&r, cases[i / 4].message);
        rig_close(&r);
    }
}

// CTA 0 of a cluster asks for a response in both, long after the other one has ended.
static const char exited_ptx[] = HEAD
    ".visible .entry k()\n{\n.reg .pred %p<2>; .reg .b32 %r<4>;\n"
    ".shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;\n"
    "mov.u32 %r0, %cluster_ctarank; setp.ne.u32 %p0, %r0, 0; mbarrier.init.shared.b64 [bar], 1;\n"
    "@%p0 bra done; mov.u32 %r1, 0;\n"
    "later: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 40000; @%p1 bra later;\n"
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    ".multicast::cluster::all.b128 [answer], [bar];\n"
    "done: ret;\n}\n";

static void response_to_a_cta_that_has_ended(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    rig_load(&r, exited_ptx);
    r.cluster = 2;
    assert_int_equal(rig_try_run(&r, "k", 2, 1), TIR_ERR_DEVICE);
    assert_message(&r, "shared memory of a CTA that has exited: clusterlaunchcontrol.try_cancel");
    rig_close(&r);
}

// A thread that looks at two places by turns is not seen to be waiting. The copy it waits for is
// done all the same, once it is old; and as nothing orders the two, that is a race.
static const char spin_ptx[] = HEAD
    ".visible .entry k(.param .u64 src, .param .u64 dst)\n{\n"
    ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %a<2>; .shared .align 16 .b8 tile[16];\n"
    "ld.param.u64 %a0, [src]; ld.param.u64 %a1, [dst]; ld.global.u32 %r0, [%a0];\n"
    "st.shared.v4.u32 [tile], {%r0, %r0, %r0, %r0}; fence.proxy.async.shared::cta;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%a1], [tile], 16; cp.async.bulk.commit_group;\n"
    "spin: ld.volatile.global.u32 %r1, [%a1]; ld.volatile.global.u32 %r2, [%a0];\n"
    "setp.ne.u32 %p0, %r1, %r2; @%p0 bra spin; cp.async.bulk.wait_group 0; ret;\n}\n";

static void operations_are_not_put_off_for_ever(void **state)
{
    const uint32_t in[4] = {7, 7, 7, 7}, zero[4] = {0};
    uint32_t out[4];
    struct rig r;
    (void)state;
    rig_open(&r);
    rig_load(&r, spin_ptx);
    const uint64_t a = rig_buffer(&r, in, sizeof in), b = rig_buffer(&r, zero, sizeof zero);
    rig_param_u64(&r, a);
    rig_param_u64(&r, b);
    assert_int_equal(rig_try_run(&r, "k", 1, 1), TIR_ERR_DEVICE);
    assert_message(&r, "data race");
    rig_read(&r, out, b, sizeof out);
    assert_memory_equal(out, in, sizeof in);
    rig_close(&r);
}

// --- the timeline ---

struct timeline {
    struct emu_trace_event flights[4], waits[64];
    uint32_t flight_count, wait_count;
    uint64_t end[32]; // of the last stretch of each warp
};

static void note(void *user, const struct emu_trace_event *e)
{
    struct timeline *t = user;
    assert_true(e->end > e->start);
    if (e->kind == EMU_TRACE_FLIGHT) {
        assert_true(t->flight_count < 4);
        t->flights[t->flight_count++] = *e;
        return;
    }
    assert_true(e->start >= t->end[e->warp]); // a warp does one thing at a time
    t->end[e->warp] = e->end;
    if (e->kind == EMU_TRACE_WAIT && strcmp(e->name, "mbarrier") == 0) {
        assert_true(t->wait_count < 64);
        t->waits[t->wait_count++] = *e;
    }
}

static void timelines(void **state)
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    (void)state;
    for (int run = 0; run < 4; run++) {
        uint32_t in[N];
        struct timeline t = {.flight_count = 0};
        struct rig r;
        rig_open_traced(&r, policies[run], 1, note, &t);
        rig_load(&r, bulk_ptx);
        fill(in, N, 1);
        const uint64_t a = rig_buffer(&r, in, sizeof in), b = rig_buffer(&r, NULL, sizeof in);
        rig_param_u64(&r, a);
        rig_param_u64(&r, b);
        rig_run(&r, "k", 1, 96);
        assert_int_equal(t.flight_count, 2); // in and out
        assert_string_equal(t.flights[0].name, "bulk copy");
        assert_true(t.wait_count >= 3); // every warp waits for the first
        for (uint32_t i = 0; i < t.wait_count; i++)
            assert_int_equal(t.waits[i].end, t.flights[0].end);
        rig_close(&r);
    }
}

// --- what must be reported ---

#define WRONG(body)                                                                      \
    HEAD ".visible .entry k()\n{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %a<4>;\n" \
         ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;\n" body "\nret;\n}\n"
#define INIT "mbarrier.init.shared.b64 [bar], 1;\n"

// One warp ends a barrier for which the other one waits.
static void ends_under_a_wait(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    rig_load(&r, WRONG("mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; setp.ne.u32 %p1, %r0, 0;\n"
                       "@%p1 bra ready; st.shared.u32 [tile], 0;\n" INIT "ready: bar.sync 0;\n"
                       "@%p0 bra waits; @%p1 bra done;\n"
                       "poll: ld.volatile.shared.u32 %r1, [tile]; setp.eq.u32 %p2, %r1, 0;\n"
                       "@%p2 bra poll; mbarrier.inval.shared.b64 [bar]; bra done;\n"
                       "waits: st.volatile.shared.u32 [tile], 1;\n"
                       "w: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra w;\n"
                       "done:"));
    assert_int_equal(rig_try_run(&r, "k", 1, 64), TIR_ERR_DEVICE);
    assert_message(&r, ": warp 1 of CTA 0 waits for it");
    rig_close(&r);
}

static void wrong(void **state)
{
    static const struct {
        const char *ptx, *message;
    } cases[] = {
        {WRONG("mbarrier.arrive.shared.b64 _, [bar];"), "used before mbarrier.init"},
        {WRONG(INIT INIT), "initialised again"},
        {WRONG(INIT "mbarrier.arrive.shared.b64 _, [bar], 2;"), "2 arrive where 1 of 1"},
        {WRONG(INIT "ld.shared.u64 %a0, [bar];"), "an mbarrier as data"},
        {WRONG(INIT "mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];"),
         "used before mbarrier.init"},
        {WRONG(INIT
               "cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; mbarrier.inval.shared.b64 [bar];"),
         "the cp.async.mbarrier.arrive of PTX line 9 is to signal it"},
        {WRONG(INIT
               "mov.u64 %a0, 5; fence.mbarrier_init.release.cluster;\n"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [tile], %a0, [bar];\n"
               "mbarrier.inval.shared.b64 [bar];"),
         "the asynchronous store of PTX line 10 is to signal it"},
        {WRONG(INIT "st.shared.v4.u32 [tile], {1, 2, 3, 4}; fence.proxy.async;\n"
                    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                    "[tile+16], [tile], 16, [bar];\n"
                    "mbarrier.inval.shared.b64 [bar];"),
         "the bulk copy of PTX line 10 is to signal it"},
        {WRONG(INIT "w: mbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0; @!%p0 bra w;"),
         "phase 0 (parity 0): 1 of 1 arrivals and 0 bytes pending"},
        {WRONG(INIT "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n"
                    "w: mbarrier.test_wait.parity.shared::cta.b64 %p0, [bar], 0; @!%p0 bra w;"),
         "deadlock"},
        {WRONG("mov.u32 %r0, bar; mapa.shared::cluster.u32 %r1, %r0, 1;"), "mapa: rank 1"},
        {WRONG("barrier.cluster.wait;"), "without having arrived"},
        {WRONG("barrier.cluster.arrive; barrier.cluster.arrive;"), "arrives twice"},
        {WRONG("mov.u32 %r0, tile; ld.shared.u32 %r1, [%r0+0x1000000];"), "out-of-bounds"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig r;
        rig_open(&r);
        rig_load(&r, cases[i].ptx);
        assert_int_equal(rig_try_run(&r, "k", 1, 1), TIR_ERR_DEVICE);
        assert_message(&r, cases[i].message);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_of_two_sizes),
        cmocka_unit_test(preferred_clusters_divide_the_grid),
        cmocka_unit_test(bulk_copies),
        cmocka_unit_test(masked_bulk_copies),
        cmocka_unit_test(multicast),
        cmocka_unit_test(distributed_shared_memory),
        cmocka_unit_test(ring),
        cmocka_unit_test(cp_async_through_mbarrier),
        cmocka_unit_test(cancelled_clusters),
        cmocka_unit_test(wrong_requests),
        cmocka_unit_test(response_to_a_cta_that_has_ended),
        cmocka_unit_test(operations_are_not_put_off_for_ever),
        cmocka_unit_test(timelines),
        cmocka_unit_test(ends_under_a_wait),
        cmocka_unit_test(wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
