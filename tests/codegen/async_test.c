// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies, bulk copies, mbarriers, named barriers, clusters: lowered text to PTX, and what
// the PTX does on the emulator.

#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 16 };

static uint16_t *numbered(size_t count) // 1, 2, 3, ...
{
    uint16_t *v = calloc(count, sizeof *v);
    for (size_t i = 0; i < count; i++)
        v[i] = (uint16_t)(i + 1);
    return v;
}

// One thread moves a box of every rank in, and out to another place; the outermost dimension is a
// single index.
static void boxes_of_every_rank_are_moved(void **state)
{
    static const uint64_t all_dims[] = {3, 4, 3, 5, 40};
    static const uint64_t from[] = {2, 1, 0, 3, 8}, to[] = {1, 2, 1, 0, 16},
                          box[] = {1, 2, 2, 2, 16};
    static const char *const names[] = {"P", "Q", "R", "S", "T"};
    (void)state;
    for (uint32_t rank = 1; rank <= 5; rank++) {
        char shape[64] = "", in[128] = "", out[128] = "", source[2048];
        uint32_t first = 5 - rank, bytes = 2;
        for (uint32_t d = first; d < 5; d++) {
            const char *comma = d > first ? ", " : "";
            char size[16] = "";
            if (rank > 1 && d == first)
                bytes *= 1;
            else
                bytes *= (uint32_t)box[d];
            if (rank == 1 || d > first)
                snprintf(size, sizeof size, ":+%d", (int)box[d]);
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%s", comma, names[d]);
            snprintf(in + strlen(in), sizeof in - strlen(in), "%s%d%s", comma, (int)from[d], size);
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%d%s", comma, (int)to[d],
                     size);
        }
        snprintf(source, sizeof source,
                 "kernel move(A: i16[%s], D: out i16[%s]) threads(32) form(lowered) shared(1032)\n"
                 "{\n"
                 "    let a: shared i16[512] in row_major = alloc(offset = 0);\n"
                 "    let full: shared mbarrier[1] in row_major = alloc(offset = 1024);\n"
                 "    if eq(tid(), 0) {\n"
                 "        mbarrier_init(full, arrivals = 1);\n"
                 "        fence(of = async_shared);\n"
                 "        arrive(full, bytes = %d);\n"
                 "        tma_prefetch(A[%s], swizzle = 0);\n"
                 "        tma_load(a, i32(256), full, i32(0), A[%s], offset = 128, swizzle = 0);\n"
                 "        wait(full, i32(0));\n"
                 "        tma_store(a, i32(384), D[%s], swizzle = 0);\n"
                 "        commit_group(engine = tma);\n"
                 "        wait_group(groups = 0, engine = tma);\n"
                 "    }\n"
                 "}\n",
                 shape, shape, (int)bytes, in, in, out);
        struct engine t;
        engine_open(&t, source);
        const uint64_t *dims = all_dims + first;
        size_t count = 1;
        for (uint32_t d = 0; d < rank; d++)
            count *= dims[d];
        uint16_t *data = numbered(count), *got = calloc(count, 2);
        engine_tensor(&t, data, count * 2, dims, rank);
        uint64_t address = engine_tensor(&t, got, count * 2, dims, rank);
        engine_run(&t, 1);
        rig_read(&t.r, got, address, count * 2);
        for (size_t i = 0; i < count; i++) {
            size_t rest = i, source_at = 0, scale = 1;
            bool inside = true;
            for (uint32_t d = 5; d-- > first;) {
                uint64_t at = rest % all_dims[d], size = rank > 1 && d == first ? 1 : box[d];
                rest /= all_dims[d];
                inside = inside && at >= to[d] && at < to[d] + size;
                source_at += (size_t)(at - to[d] + from[d]) * scale;
                scale *= all_dims[d];
            }
            assert_int_equal(got[i], inside ? data[source_at] : 0);
        }
        free(data);
        free(got);
        engine_close(&t);
    }
}

// Rows of 64 numbers arrive with their 16-byte units swizzled; each thread unswizzles its own row.
static const char swizzled[] =
    "kernel rows(A: bf16[M, N], O: out i32[128, 32]) threads(128) form(lowered) shared(16392)\n"
    "{\n"
    "    let a: shared bf16[128, 64] in swizzle(128) = alloc(offset = 0);\n"
    "    let full: shared mbarrier[1] in row_major = alloc(offset = 16384);\n"
    "    let row: i32 = tid();\n"
    "    if eq(row, 0) {\n"
    "        mbarrier_init(full, arrivals = 1);\n"
    "        fence(of = async_shared);\n"
    "    }\n"
    "    bar_sync();\n"
    "    if eq(warpid(), 0) {\n"
    "        if elect_sync() {\n"
    "            arrive(full, bytes = 16384);\n"
    "            tma_load(a, i32(0), full, i32(0), A[i64(8):+128, i64(64):+64], swizzle = 128);\n"
    "        }\n"
    "    }\n"
    "    wait(full, i32(0));\n"
    "    let phase: i32 = and(row, 7);\n"
    "    for c: i32 in range(i32(0), i32(8), i32(1)) {\n"
    "        let unit: i32 = xor(c, phase);\n"
    "        let x: i32, y: i32, z: i32, w: i32 = ld(a, add(mul(row, 128), mul(unit, 16)), width = 16);\n"
    "        st(O, add(mul(row, 128), mul(c, 16)), x, y, z, w, width = 16);\n"
    "    }\n"
    "}\n";

static void a_swizzled_box_is_unswizzled(void **state)
{
    (void)state;
    struct engine t;
    engine_open(&t, swizzled);
    assert_has(t.ptx, ".param .align 64 .b8 rows_param_8[128]");
    assert_has(t.ptx, "prefetch.param.tensormap");
    assert_has(t.ptx, "shfl.sync.idx.b32"); // the warp's number is the same in all lanes
    assert_has(t.ptx, "cp.async.bulk.tensor.2d.shared::cta.global.tile");
    uint16_t *data = numbered(150 * 200), got[128 * 64];
    engine_tensor(&t, data, 150 * 200 * 2, (uint64_t[]){150, 200}, 2);
    uint64_t out = engine_tensor(&t, NULL, sizeof got, (uint64_t[]){128, 32}, 2);
    engine_run(&t, 1);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 128 * 64; i++)
        assert_int_equal(got[i], data[(8 + i / 64) * 200 + 64 + i % 64]);
    free(data);
    engine_close(&t);
}

// The engine combines a box of 32-bit numbers with what is in the tensor.
static void boxes_are_combined(void **state)
{
    static const char source[] =
        "kernel combine(D: inout i32[M, N]) threads(32) form(lowered) shared(128)\n"
        "{\n"
        "    let a: shared i32[32] in row_major = alloc(offset = 0);\n"
        "    st(a, mul(laneid(), 4), mul(laneid(), 3), width = 4);\n"
        "    fence(of = async_shared);\n"
        "    warp_sync();\n"
        "    if elect_sync() {\n"
        "        tma_store(a, i32(0), D[i64(1):+4, i64(8):+8], swizzle = 0, kind = %s);\n"
        "        commit_group(engine = tma);\n"
        "        wait_group(groups = 0, engine = tma, read = 1);\n"
        "    }\n"
        "}\n";
    static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor"};
    (void)state;
    for (int k = 0; k < 6; k++) {
        char text[1024];
        snprintf(text, sizeof text, source, kinds[k]);
        struct engine t;
        engine_open(&t, text);
        int32_t d[6 * 20], got[6 * 20];
        for (int i = 0; i < 6 * 20; i++)
            d[i] = i * 7 % 97;
        uint64_t address = engine_tensor(&t, d, sizeof d, (uint64_t[]){6, 20}, 2);
        engine_run(&t, 1);
        rig_read(&t.r, got, address, sizeof got);
        for (int i = 0; i < 6 * 20; i++) {
            int row = i / 20 - 1, col = i % 20 - 8, x = d[i], y = 3 * (8 * row + col);
            const int results[] = {x + y, TIR_MIN(x, y), TIR_MAX(x, y), x & y, x | y, x ^ y};
            bool inside = row >= 0 && row < 4 && col >= 0 && col < 8;
            assert_int_equal(got[i], inside ? results[k] : x);
        }
        engine_close(&t);
    }
}

// Runs of bytes in and out, at run-time places and of a run-time size.
static void bytes_are_moved_in_bulk(void **state)
{
    static const char source[] =
        "kernel bulk(A: i32[N], D: out i32[N]) threads(32) form(lowered) shared(4104)\n"
        "{\n"
        "    let a: shared i32[1024] in row_major = alloc(offset = 0);\n"
        "    let full: shared mbarrier[1] in row_major = alloc(offset = 4096);\n"
        "    let mine: i32 = mul(cta_id(), 256);\n"
        "    if elect_sync() {\n"
        "        mbarrier_init(full, arrivals = 1);\n"
        "        fence(of = async_shared);\n"
        "        arrive(full, count = 0, bytes = 256);\n"
        "        bulk_load(a, i32(512), full, i32(0), A, mine, i32(256), offset = 16);\n"
        "        arrive(full);\n"
        "        wait(full, i32(0));\n"
        "        bulk_store(D, mine, a, i32(528), sub(cta_id(), -1) * i32(64));\n"
        "        commit_group(engine = bulk);\n"
        "        wait_group(groups = 0, engine = bulk);\n"
        "    }\n"
        "}\n";
    (void)state;
    struct engine t;
    engine_open(&t, source);
    assert_has(t.ptx, "mbarrier.expect_tx.relaxed.cta.shared");
    int32_t data[256], got[256] = {0};
    for (int i = 0; i < 256; i++)
        data[i] = i + 1;
    engine_tensor(&t, data, sizeof data, (uint64_t[]){256}, 1);
    uint64_t out = engine_tensor(&t, got, sizeof got, (uint64_t[]){256}, 1);
    engine_run(&t, 4);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 256; i++) // CTA c stores 16 (c + 1) of its 64 numbers
        assert_int_equal(got[i], i % 64 < 16 * (i / 64 + 1) ? data[i] : 0);
    engine_close(&t);
}

// Each of two CTAs loads half of a tile for both; each tells both that it has read it.
static const char multicast[] =
    "kernel share(A: i32[M, N], O: out i32[256, 4]) threads(128) cluster(2, 1, 1)\n"
    "    form(lowered) shared(2064)\n"
    "{\n"
    "    let a: shared i32[128, 4] in row_major = alloc(offset = 0);\n"
    "    let full: shared mbarrier[1] in row_major = alloc(offset = 2048);\n"
    "    let empty: shared mbarrier[1] in row_major = alloc(offset = 2056);\n"
    "    let t: i32 = tid();\n"
    "    let rank: i32 = cta_rank();\n"
    "    if eq(t, 0) {\n"
    "        mbarrier_init(full, arrivals = 1);\n"
    "        mbarrier_init(empty, arrivals = 8);\n"
    "        fence(of = mbarrier_init);\n"
    "        arrive(full, bytes = 2048);\n"
    "    }\n"
    "    cluster_arrive();\n"
    "    cluster_wait();\n"
    "    if eq(t, 32) {\n"
    "        let half: i32 = mul(rank, 64);\n"
    "        tma_load(a, mul(half, 16), full, i32(0), A[half:+64, 0:+4],\n"
    "                 ctas = i32(3), swizzle = 0);\n"
    "    }\n"
    "    wait(full, i32(0));\n"
    "    let x: i32, y: i32, z: i32, w: i32 = ld(a, mul(t, 16), width = 16);\n"
    "    let row: i32 = add(mul(cta_in_cluster(), 128), t);\n"
    "    st(O, mul(row, 16), x, y, z, add(w, cluster_id()), width = 16);\n"
    "    warp_sync();\n"
    "    if lt(laneid(), 2) {\n"
    "        arrive(empty, cta = laneid());\n"
    "    }\n"
    "    wait(empty, i32(0));\n"
    "}\n";

static void a_cluster_shares_a_tile(void **state)
{
    (void)state;
    struct engine t;
    engine_open(&t, multicast);
    assert_has(t.ptx, ".reqnctapercluster 2");
    assert_has(t.ptx, ".multicast::cluster");
    assert_has(t.ptx, "mbarrier.arrive.shared::cluster.b64"); // of the CTA's scope: no flushes
    int32_t data[130 * 4], got[256 * 4];
    for (int i = 0; i < 130 * 4; i++)
        data[i] = i + 1;
    engine_tensor(&t, data, sizeof data, (uint64_t[]){130, 4}, 2);
    uint64_t out = engine_tensor(&t, NULL, sizeof got, (uint64_t[]){256, 4}, 2);
    engine_run(&t, 2);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 256 * 4; i++)
        assert_int_equal(got[i], data[i % (128 * 4)]);
    engine_close(&t);
}

// Threads write, read and count in the other CTA's memory.
static const char neighbours[] =
    "kernel neighbours(O: out i32[64]) threads(32) cluster(2, 1, 1)\n"
    "    form(lowered) shared(264)\n"
    "{\n"
    "    let a: shared i32[64] in row_major = alloc(offset = 0);\n"
    "    let b: shared mbarrier[1] in row_major = alloc(offset = 256);\n"
    "    let t: i32 = tid();\n"
    "    let rank: i32 = cta_rank();\n"
    "    let other: i32 = xor(rank, 1);\n"
    "    if eq(t, 0) {\n"
    "        mbarrier_init(b, arrivals = 32);\n"
    "        fence(of = mbarrier_init);\n"
    "    }\n"
    "    st(a, mul(t, 4), i32(0), offset = 128, width = 4);\n"
    "    cluster_arrive(relaxed = 0);\n"
    "    cluster_wait();\n"
    "    let there: cluster i32[64] in row_major = remote(a, other);\n"
    "    st(there, mul(t, 4), add(mul(rank, 1000), t), width = 4);\n"
    "    let old: i32 = atom(there, i32(0), t, kind = add, offset = 128);\n"
    "    arrive(b, cta = other);\n"
    "    wait(b, i32(0));\n"
    "    let mine: i32 = ld(a, mul(t, 4), width = 4);\n"
    "    let sum: i32 = ld(a, i32(128), width = 4);\n"
    "    let even: bool = eq(and(t, 1), 0);\n"
    "    let back: i32 = ld(there, mul(t, 4), pred = even, width = 4);\n"
    "    let from: i32 = add(add(mine, sum), back);\n"
    "    st(O, mul(add(mul(rank, 32), t), 4), from, width = 4);\n"
    "    cluster_arrive();\n"
    "    cluster_wait();\n"
    "}\n";

static void threads_reach_the_other_cta(void **state)
{
    (void)state;
    struct engine t;
    engine_open(&t, neighbours);
    assert_has(t.ptx, "st.shared::cluster");
    assert_has(t.ptx, "atom.shared::cluster.add");
    assert_has(t.ptx, "mbarrier.arrive.release.cluster.shared::cluster.b64");
    assert_has(t.ptx, "mbarrier.try_wait.parity.acquire.cluster.shared.b64");
    int32_t got[64];
    uint64_t out = engine_tensor(&t, NULL, sizeof got, (uint64_t[]){64}, 1);
    engine_run(&t, 2);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 64; i++) {
        int rank = i / 32, lane = i % 32, other = 1 - rank;
        int back = lane % 2 == 0 ? rank * 1000 + lane : 0;
        assert_int_equal(got[i], other * 1000 + lane + 31 * 32 / 2 + back);
    }
    engine_close(&t);
}

// Warp 0 hands numbers to warp 1 through barrier 1 and goes on; warps 2 and 3 do not take part.
static void a_named_barrier_is_for_some(void **state)
{
    static const char source[] =
        "kernel hand(O: out i32[32]) threads(128) form(lowered) shared(128)\n"
        "{\n"
        "    let a: shared i32[32] in row_major = alloc(offset = 0);\n"
        "    if eq(warpid(), 0) {\n"
        "        st(a, mul(laneid(), 4), mul(laneid(), 5), width = 4);\n"
        "        bar_arrive(id = 1, threads = 64);\n"
        "    }\n"
        "    if eq(warpid(), 1) {\n"
        "        bar_sync(id = 1, threads = 64);\n"
        "        let lane: i32 = xor(laneid(), 31);\n"
        "        let x: i32 = ld(a, mul(lane, 4), width = 4);\n"
        "        st(O, mul(laneid(), 4), x, width = 4);\n"
        "    }\n"
        "}\n";
    (void)state;
    struct engine t;
    engine_open(&t, source);
    assert_has(t.ptx, "bar.arrive \t1, 64;");
    assert_has(t.ptx, "bar.sync \t1, 64;");
    int32_t got[32];
    uint64_t out = engine_tensor(&t, NULL, sizeof got, (uint64_t[]){32}, 1);
    engine_run(&t, 1);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 32; i++)
        assert_int_equal(got[i], 5 * (31 - i));
    engine_close(&t);
}

// Matrices of 8 x 8 whose element (r, c) of number m is 64 m + 8 r + c, from registers to memory.
static void matrices_are_stored(void **state)
{
    (void)state;
    for (int count = 1; count <= 4; count *= 2)
        for (int trans = 0; trans < 2; trans++) {
            char source[2048];
            int n = snprintf(source, sizeof source,
                             "kernel put(O: out i32[128]) threads(32) form(lowered) shared(1024)\n"
                             "{\n"
                             "    let a: shared i32[256] in row_major = alloc(offset = 0);\n"
                             "    let l: i32 = laneid();\n"
                             "    let e: i32 = mul(l, 2);\n"
                             "    let v: i32 = or(e, shl(add(e, 1), 16));\n"
                             "    stmatrix(a, mul(l, 16)");
            for (int m = 0; m < count; m++)
                n += snprintf(source + n, sizeof source - (size_t)n, ", add(v, %d)",
                              m * 64 * 0x10001);
            snprintf(source + n, sizeof source - (size_t)n,
                     ", offset = 512, trans = %d);\n"
                     "    warp_sync();\n"
                     "    if lt(l, %d) {\n"
                     "        let x: i32, y: i32, z: i32, w: i32 =\n"
                     "            ld(a, mul(l, 16), offset = 512, width = 16);\n"
                     "        st(O, mul(l, 16), x, y, z, w, width = 16);\n"
                     "    }\n"
                     "}\n",
                     trans, 8 * count);
            struct engine t;
            engine_open(&t, source);
            uint16_t got[256] = {0};
            uint64_t out = engine_tensor(&t, got, sizeof got, (uint64_t[]){128}, 1);
            engine_run(&t, 1);
            rig_read(&t.r, got, out, sizeof got);
            for (int i = 0; i < 64 * count; i++) {
                int r = i / 8 % 8, c = i % 8;
                assert_int_equal(got[i], i / 64 * 64 + (trans ? 8 * c + r : 8 * r + c));
            }
            engine_close(&t);
        }
}

static void launches_and_registers_are_controlled(void **state)
{
    static const char source[] =
        "kernel roles(O: out i32[256]) threads(256) form(lowered) shared(0)\n"
        "{\n"
        "    griddepcontrol(change = wait);\n"
        "    if eq(wgid(), 0) {\n"
        "        setmaxnreg(regs = 40, change = dec);\n"
        "    } else {\n"
        "        setmaxnreg(regs = 232, change = inc);\n"
        "    }\n"
        "    griddepcontrol(change = launch);\n"
        "    fence(of = gpu);\n"
        "    st(O, mul(tid(), 4), add(wgid(), cluster_id()), width = 4);\n"
        "}\n";
    (void)state;
    struct engine t;
    engine_open(&t, source);
    assert_has(t.ptx, "setmaxnreg.dec.sync.aligned.u32 \t40;");
    assert_has(t.ptx, "setmaxnreg.inc.sync.aligned.u32 \t232;");
    assert_has(t.ptx, "griddepcontrol.wait;");
    assert_has(t.ptx, "griddepcontrol.launch_dependents;");
    assert_has(t.ptx, "fence.acq_rel.gpu;");
    int32_t got[256];
    uint64_t out = engine_tensor(&t, NULL, sizeof got, (uint64_t[]){256}, 1);
    engine_run(&t, 1);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 256; i++)
        assert_int_equal(got[i], i / 128);
    engine_close(&t);
}

// What every target has works without the engines: mbarriers, elections.
static void the_oldest_target_has_mbarriers(void **state)
{
    static const char source[] = "kernel old(O: out i32[64]) threads(64) form(lowered) shared(16)\n"
                                 "{\n"
                                 "    let b: shared mbarrier[2] in row_major = alloc(offset = 0);\n"
                                 "    if eq(tid(), 0) {\n"
                                 "        mbarrier_init(b, at = i32(8), arrivals = 6);\n"
                                 "    }\n"
                                 "    fence(of = mbarrier_init);\n"
                                 "    bar_sync();\n"
                                 "    if elect_sync() {\n"
                                 "        arrive(b, offset = 8, count = 3);\n"
                                 "    }\n"
                                 "    wait(b, at = i32(8), i32(0));\n"
                                 "    st(O, mul(tid(), 4), warpid(), width = 4);\n"
                                 "}\n";
    (void)state;
    struct engine t;
    memset(&t, 0, sizeof t);
    parse_kernel(&t.u, source);
    t.ptx = compile_for(&t.u, "sm_80");
    assemble_clean(&t.u, "sm_80", t.ptx);
    assert_has(t.ptx, "mbarrier.init.shared.b64 \t[tir$shared+8]");
    assert_has_not(t.ptx, "mbarrier.init.shared.b64 \t[tir$shared],");
    rig_open(&t.r);
    rig_load(&t.r, t.ptx.ptr);
    int32_t got[64];
    uint64_t out = engine_tensor(&t, NULL, sizeof got, (uint64_t[]){64}, 1);
    engine_run(&t, 1);
    rig_read(&t.r, got, out, sizeof got);
    for (int i = 0; i < 64; i++)
        assert_int_equal(got[i], i / 32);
    engine_close(&t);
}

// Tensor copies and clusters in the words of every target that has them.
static void later_targets_assemble(void **state)
{
    static const char *const targets[] = {"sm_90", "sm_100a", "sm_120a"};
    static const char *const sources[] = {swizzled, multicast, neighbours};
    (void)state;
    for (size_t i = 0; i < 9; i++) {
        struct ir_unit u;
        parse_kernel(&u, sources[i / 3]);
        tir_str ptx = compile_for(&u, targets[i % 3]);
        assemble_clean(&u, targets[i % 3], ptx);
        tir_context_finish(&u.cx);
    }
}

// One statement that a target lacks, or that no machine has, and what is said about it.
struct refused {
    const char *arch, *statement, *message;
};
static const struct refused refusals[] = {
    {"sm_80", "fence(of = async_shared)", "fence: the target has no async proxy"},
    {"sm_80", "fence(of = cluster)", "fence: the target has no clusters"},
    {"sm_80", "arrive(b, bytes = 16)", "arrive: the target's mbarriers count no bytes"},
    {"sm_80", "arrive(b, cta = i32(0))", "arrive: the target has no clusters"},
    {"sm_80", "tma_prefetch(A[i64(0):+8, i64(0):+8], swizzle = 0)", "no tensor copies"},
    {"sm_80", "bulk_load(a, i32(0), b, i32(0), A, i32(0), i32(16))", "no bulk copies"},
    {"sm_80", "stmatrix(a, i32(0), i32(0))", "stmatrix: the target has no such instruction"},
    {"sm_80", "griddepcontrol(change = wait)", "no dependent launches"},
    {"sm_80", "commit_group(engine = tma)", "no bulk copies"},
    {"sm_80", "cluster_wait()", "cluster_wait: the target has no clusters"},
    {"sm_90", "setmaxnreg(regs = 40, change = dec)", "the target cannot move registers"},
    {"sm_90", "fence(of = wgmma)", "no products on warpgroups"},
    {"sm_100a", "commit_group(engine = wgmma)", "no products on warpgroups"},
    {"sm_90a", "bar_sync(id = 1, threads = 1056)", "at most 1024 threads"},
    {"sm_90a", "mbarrier_init(b, arrivals = 1048576)", "at most 1048575 arrivals"},
    {"sm_90a", "tma_store(a, i32(0), C[i64(0):+8], swizzle = 0, kind = add)",
     "cannot combine elements"},
    {"sm_90a", "arrive(b, count = 0)", "with bytes not at all"},
    {"sm_90a", "arrive(b, bytes = 1048576)", "at most 1048575 bytes"},
    {"sm_90a", "wait_group(groups = 8, engine = wgmma)", "at most 7 groups"},
    {"sm_90a", "tma_prefetch(A[i64(0):+512, i64(0):+8], swizzle = 0)", "at most 256 elements"},
    {"sm_90a", "tma_prefetch(A[i64(0):+8, i64(0):+6], swizzle = 0)", "multiple of 16 bytes"},
    {"sm_90a", "tma_prefetch(A[i64(0):+8, i64(0):+64], swizzle = 128)", "than the swizzle"},
    {"sm_90a", "stmatrix(a, i32(0), i32(0), i32(0), i32(0))", "1, 2 or 4 matrices"},
};

static void what_a_target_lacks_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TIR_COUNT_OF(refusals); i++) {
        const struct refused *r = &refusals[i];
        char source[1024];
        snprintf(
            source, sizeof source,
            "kernel k(A: inout i32[M, N], C: inout i64[M]) threads(128) form(lowered) shared(1032)\n"
            "{\n"
            "    let a: shared i32[256] in row_major = alloc(offset = 0);\n"
            "    let b: shared mbarrier[1] in row_major = alloc(offset = 1024);\n"
            "    %s;\n"
            "}\n",
            r->statement);
        expect_refused(source, r->arch, r->message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_of_every_rank_are_moved),
        cmocka_unit_test(a_swizzled_box_is_unswizzled),
        cmocka_unit_test(boxes_are_combined),
        cmocka_unit_test(bytes_are_moved_in_bulk),
        cmocka_unit_test(a_cluster_shares_a_tile),
        cmocka_unit_test(threads_reach_the_other_cta),
        cmocka_unit_test(a_named_barrier_is_for_some),
        cmocka_unit_test(matrices_are_stored),
        cmocka_unit_test(launches_and_registers_are_controlled),
        cmocka_unit_test(the_oldest_target_has_mbarriers),
        cmocka_unit_test(later_targets_assemble),
        cmocka_unit_test(what_a_target_lacks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
