// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor copies as instructions: every kind of them, maps that are wrong, multicast, changed maps.

#include <stdio.h>

#include "emu/async/tensor_map.h"
#include "rig.h"

#define HEAD ".version 8.6\n.target sm_90a\n.address_size 64\n"

enum { TENSOR = 64 << 10, TILE = 16 << 10 };

static uint8_t tensor[TENSOR], after[TENSOR], expected[TENSOR], tile[TILE], wanted[TILE];

struct test {
    tir_tensor_map map;
    struct emu_tensor_copy copy;
    uint64_t base, data; // device addresses of the tensor and the tile's bytes
};

static void fill(uint8_t *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)rig_random(&seed);
}

// A tensor of 2-byte elements with rows of 32 of them in the box, and coordinates that leave it.
static struct test make(uint32_t rank, enum emu_tensor_mode mode, bool is_load)
{
    struct test t = {
        .map = {.kind = mode == EMU_TENSOR_IM2COL ? TIR_TENSOR_MAP_IM2COL : TIR_TENSOR_MAP_TILED,
                .type = TIR_TENSOR_MAP_F16,
                .swizzle = TIR_TENSOR_MAP_SWIZZLE_64,
                .rank = rank,
                .dims = {80, 7, 6, 3, 2},
                .steps = {1, 1, 2, 1, 1},
                .box = {32, 4, 3, 2, 1},
                .channels = 32,
                .pixels = 24},
        .copy = {.mode = mode, .is_load = is_load, .at = {64, 5, 1, 2, 1}}};
    uint64_t stride = 192;
    for (uint32_t i = 1; i < rank; i++) {
        t.map.strides[i - 1] = stride;
        stride *= t.map.dims[i];
    }
    if (mode == EMU_TENSOR_IM2COL)
        t.copy.at[3] = 1;
    for (int i = 0; i < 3 && is_load; i++) {
        t.map.lower[i] = -1;
        t.map.upper[i] = -1;
        t.copy.offset[i] = (uint16_t)(i % 2);
    }
    if (is_load && mode == EMU_TENSOR_TILE)
        t.copy.at[0] = -16;
    if (mode == EMU_TENSOR_ROWS) {
        t.map.box[1] = 1;
        t.copy.at[3] = 6;
        t.copy.at[4] = 9;
    }
    return t;
}

static void move(void *user, struct emu_tensor_run r)
{
    const struct test *t = user;
    uint8_t *s = wanted + r.shared;
    if (t->copy.is_load)
        for (uint32_t i = 0; i < r.size; i++)
            s[i] = r.global ? expected[r.global - t->base + i] : 0;
    else if (r.global && !r.is_tail)
        memcpy(expected + (r.global - t->base), s, r.size);
}

static void put_params(struct rig *r, const struct test *t)
{
    uint8_t map[TIR_TENSOR_MAP_BYTES];
    tir_error error;
    if (tir_tensor_map_encode(&t->map, map, &error) != TIR_OK)
        fail_msg("%s", error.message);
    r->params_size = 0;
    r->shared_bytes = TILE;
    rig_param(r, map, sizeof map);
    rig_param_u64(r, t->data);
    rig_param_u32(r, emu_tensor_bytes(&t->copy));
    for (int i = 0; i < 5; i++)
        rig_param_u32(r, (uint32_t)t->copy.at[i]);
    for (int i = 0; i < 4; i++)
        rig_param(r, &t->copy.offset[i % 3], sizeof *t->copy.offset);
}

static void run(const char *file, const char *kernel, struct test t, uint32_t seed)
{
    static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM, EMU_ADVERSARIAL};
    struct rig r;
    rig_open_with(&r, policies[seed % 4], seed);
    rig_load_file(&r, file);
    fill(tensor, sizeof tensor, seed);
    fill(tile, sizeof tile, seed + 100);
    t.base = t.map.address = rig_buffer(&r, tensor, sizeof tensor);
    t.data = rig_buffer(&r, tile, sizeof tile);
    t.copy.map = &t.map;
    put_params(&r, &t);
    rig_run(&r, kernel, 1, 32);
    memcpy(expected, tensor, sizeof tensor);
    memcpy(wanted, tile, sizeof tile);
    assert_null(emu_tensor_walk(&t.copy, move, &t));
    rig_read(&r, after, t.base, sizeof after);
    rig_read(&r, tile, t.data, sizeof tile);
    assert_memory_equal(after, expected, sizeof after);
    assert_memory_equal(tile, wanted, sizeof tile);
    rig_close(&r);
}

static void tiles(void **state)
{
    (void)state;
    static const char *const loads[] = {"load_1", "load_2", "load_3", "load_4", "load_5"};
    static const char *const stores[] = {"store_1", "store_2", "store_3", "store_4", "store_5"};
    for (uint32_t seed = 0; seed < 4; seed++)
        for (uint32_t rank = 1; rank <= 5; rank++) {
            run("tensor_copy.ptx", loads[rank - 1], make(rank, EMU_TENSOR_TILE, true), seed);
            run("tensor_copy.ptx", stores[rank - 1], make(rank, EMU_TENSOR_TILE, false), seed);
        }
}

static void im2col(void **state)
{
    (void)state;
    static const char *const loads[] = {"im2col_3", "im2col_4", "im2col_5"};
    static const char *const stores[] = {"store_im2col_3", "store_im2col_4", "store_im2col_5"};
    for (uint32_t rank = 3; rank <= 5; rank++) {
        run("tensor_copy.ptx", loads[rank - 3], make(rank, EMU_TENSOR_IM2COL, true), rank);
        run("tensor_copy.ptx", stores[rank - 3], make(rank, EMU_TENSOR_IM2COL, false), rank);
    }
}

static void rows(void **state)
{
    (void)state;
    run("tensor_rows.ptx", "gather", make(2, EMU_TENSOR_ROWS, true), 1);
    run("tensor_rows.ptx", "scatter", make(2, EMU_TENSOR_ROWS, false), 2);
}

// --- reductions ---

static uint32_t combine(const char *op, uint32_t old, uint32_t value)
{
    switch (op[0] == 'm' || op[0] == 'a' ? op[1] : op[0]) {
    case 'd': // add; dec begins with d too, and is told apart below
        if (op[0] == 'd')
            return old == 0 || old > value ? value : old - 1;
        return old + value;
    case 'i':
        if (op[0] == 'i')
            return old >= value ? 0 : old + 1;
        return old < value ? old : value;
    case 'a':
        return old > value ? old : value;
    case 'n':
        return old & value;
    case 'o':
        return old | value;
    default:
        return old ^ value;
    }
}

static uint32_t word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static void reductions(void **state)
{
    (void)state;
    static const char *const ops[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char kernel[16];
        struct rig r;
        struct test t = make(2, EMU_TENSOR_TILE, false);
        t.map.type = TIR_TENSOR_MAP_U32;
        t.map.swizzle = TIR_TENSOR_MAP_SWIZZLE_NONE;
        t.map.dims[0] = 40;
        t.copy.at[0] = 32; // eight columns and two rows of the box are inside
        rig_open(&r);
        rig_load_file(&r, "tensor_copy.ptx");
        fill(tensor, sizeof tensor, i);
        fill(tile, sizeof tile, i + 50);
        t.base = t.map.address = rig_buffer(&r, tensor, sizeof tensor);
        t.data = rig_buffer(&r, tile, sizeof tile);
        t.copy.map = &t.map;
        put_params(&r, &t);
        snprintf(kernel, sizeof kernel, "reduce_%s", ops[i]);
        rig_run(&r, kernel, 1, 32);
        rig_read(&r, after, t.base, sizeof after);
        for (uint32_t y = 0; y < 2; y++)
            for (uint32_t x = 0; x < 8; x++) {
                uint8_t *at = tensor + (5 + y) * 192 + (32 + x) * 4;
                const uint32_t value = combine(ops[i], word(at), word(tile + (y * 32 + x) * 4));
                memcpy(at, &value, 4);
            }
        assert_memory_equal(after, tensor, sizeof after);
        // Elements that have no such operation.
        t.map.type = i < 3 ? TIR_TENSOR_MAP_TF32 : TIR_TENSOR_MAP_F32;
        put_params(&r, &t);
        assert_true(i == 0 || rig_try_run(&r, kernel, 1, 32) == TIR_ERR_DEVICE);
        assert_true(i == 0 || strstr(r.error.message, " have no ."));
        rig_close(&r);
    }
}

// --- what is wrong ---

static void refuse(struct test t, const char *kernel, int bit, const char *why)
{
    struct rig r;
    uint8_t map[TIR_TENSOR_MAP_BYTES];
    rig_open(&r);
    rig_load_file(&r, "tensor_copy.ptx");
    t.base = t.map.address = rig_buffer(&r, tensor, sizeof tensor);
    t.data = rig_buffer(&r, tile, sizeof tile);
    t.copy.map = &t.map;
    put_params(&r, &t);
    memcpy(map, r.params, sizeof map);
    if (bit >= 0)
        r.params[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_int_equal(rig_try_run(&r, kernel, 1, 32), TIR_ERR_DEVICE);
    if (!strstr(r.error.message, why))
        fail_msg("'%s' does not say '%s'", r.error.message, why);
    rig_close(&r);
}

static void wrong(void **state)
{
    (void)state;
    struct test t = make(2, EMU_TENSOR_TILE, true);
    refuse(t, "load_2", 1000, "bits are set that none has");
    refuse(t, "load_2", 71, "tensor map at"); // another type, and bytes that do not go with it
    refuse(t, "load_3", -1, "copy of 3 dimensions with a map of 2");
    refuse(t, "im2col_3", -1, "of 3 dimensions");
    refuse(make(3, EMU_TENSOR_TILE, true), "im2col_3", -1, "needs an im2col map");
    refuse(make(3, EMU_TENSOR_IM2COL, true), "load_3", -1, "needs a tiled map");
    t.copy.at[0] = 4;
    refuse(t, "load_2", -1, "not at a multiple of 16 bytes");
    t = make(2, EMU_TENSOR_TILE, false);
    t.copy.at[1] = -1;
    refuse(t, "store_2", -1, "negative coordinates");
    t = make(2, EMU_TENSOR_TILE, true);
    t.map.dims[1] = 4000; // behind the end of the buffer
    t.copy.at[0] = 0;
    t.copy.at[1] = 3000;
    refuse(t, "load_2", -1, "out-of-bounds");
}

// --- clusters ---

// Two CTAs: each loads half of a tile into both, and each writes its whole tile.
static const char multicast_ptx[] =
    HEAD ".extern .shared .align 1024 .b8 tile[];\n"
         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n"
         ".reg .pred %p<2>; .reg .b16 %h; .reg .b32 %r<6>; .reg .b64 %m, %d, %e;\n"
         ".shared .align 8 .b64 bar;\n"
         "mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.u64 %d, [out];\n"
         "mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %tid.x; setp.ne.u32 %p0, %r1, 0;\n"
         "@%p0 bra ready; mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n"
         "ready: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
         "@%p0 bra wait; mov.u16 %h, 3; mov.u32 %r2, tile; mad.lo.u32 %r2, %r0, 512, %r2;\n"
         "shl.b32 %r3, %r0, 3; mov.u32 %r4, 0;\n"
         "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
         ".multicast::cluster [%r2], [%m, {%r4, %r3}], [bar], %h;\n"
         "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;\n"
         "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
         "@%p0 bra done; mul.wide.u32 %e, %r0, 1024; add.u64 %d, %d, %e;\n"
         "cp.async.bulk.global.shared::cta.bulk_group [%d], [tile], 1024;\n"
         "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
         "done: ret;\n}\n";

static void multicast(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        static const enum emu_policy policies[] = {EMU_LAZY, EMU_EAGER, EMU_RANDOM,
                                                   EMU_ADVERSARIAL};
        struct rig r;
        struct test t = {.map = {.type = TIR_TENSOR_MAP_F32,
                                 .rank = 2,
                                 .dims = {16, 16},
                                 .strides = {64},
                                 .steps = {1, 1},
                                 .box = {16, 8}}};
        uint8_t map[TIR_TENSOR_MAP_BYTES];
        rig_open_with(&r, policies[seed % 4], seed);
        rig_load(&r, multicast_ptx);
        fill(tensor, 1024, seed);
        t.map.address = rig_buffer(&r, tensor, 1024);
        t.data = rig_buffer(&r, NULL, 2048);
        assert_int_equal(tir_tensor_map_encode(&t.map, map, NULL), TIR_OK);
        rig_param(&r, map, sizeof map);
        rig_param_u64(&r, t.data);
        r.cluster = 2;
        r.shared_bytes = 1024;
        rig_run(&r, "k", 2, 64);
        rig_read(&r, after, t.data, 2048);
        assert_memory_equal(after, tensor, 1024);
        assert_memory_equal(after + 1024, tensor, 1024);
        rig_close(&r);
    }
}

// --- changed maps ---

// The map comes to shared memory, every field of it is replaced, it goes to global memory, and the
// copy uses it there.
#define REPLACE(field, type, args) \
    "tensormap.replace.tile." field ".shared::cta.b1024." type " [m], " args ";\n"
#define REPLACE_PTX(acquire)                                                                                \
    HEAD                                                                                                    \
        ".extern .shared .align 1024 .b8 tile[];\n"                                                         \
        ".visible .entry k(.param .u64 map, .param .u64 address, .param .u64 out)\n{\n"                     \
        ".reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %m, %a, %d, %x, %q;\n"                                \
        ".shared .align 8 .b64 bar; .shared .align 128 .b8 m[128];\n"                                       \
        "ld.param.u64 %m, [map]; ld.param.u64 %a, [address]; ld.param.u64 %d, [out];\n"                     \
        "mov.u32 %r0, %tid.x; mul.wide.u32 %q, %r0, 4; add.u64 %x, %m, %q;\n"                               \
        "ld.global.u32 %r1, [%x]; mov.u32 %r2, m; mad.lo.u32 %r2, %r0, 4, %r2;\n"                           \
        "st.shared.u32 [%r2], %r1; bar.warp.sync -1; setp.ne.u32 %p0, %r0, 0;\n"                            \
        "@%p0 bra copy;\n" REPLACE("global_address", "b64", "%a") REPLACE(                                  \
            "elemtype", "b32", "7") REPLACE("interleave_layout", "b32",                                     \
                                            "0") REPLACE("swizzle_mode", "b32",                             \
                                                         "0") REPLACE("fill_mode", "b32", "0")              \
            REPLACE("box_dim", "b32", "0, 16") REPLACE("box_dim", "b32", "1, 4") REPLACE(                   \
                "global_dim", "b32", "0, 16") REPLACE("global_dim", "b32",                                  \
                                                      "1, 9") REPLACE("global_stride", "b64",               \
                                                                      "0, 64")                              \
                REPLACE("element_stride", "b32", "1, 1") REPLACE(                                           \
                    "rank", "b32",                                                                          \
                    "1") "copy: bar.warp.sync -1;\n"                                                        \
                         "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"   \
                         ".aligned [%m], [m], 128;\n"                                                       \
                         "@%p0 exit;\n" acquire                                                             \
                         "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"        \
                         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n"                       \
                         "mov.u32 %r3, 0; mov.u32 %r4, 3;\n"                                                \
                         "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
                         " [tile], [%m, {%r3, %r4}], [bar];\n"                                              \
                         "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;\n"  \
                         "cp.async.bulk.global.shared::cta.bulk_group [%d], [tile], 256;\n"                 \
                         "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nret;\n}\n"

static tir_status replace(const char *ptx, const uint8_t map[TIR_TENSOR_MAP_BYTES], char *message)
{
    struct rig r;
    rig_open(&r);
    rig_load(&r, ptx);
    fill(tensor, 1024, 5);
    const uint64_t from = rig_buffer(&r, tensor, 1024), out = rig_buffer(&r, NULL, 256);
    rig_param_u64(&r, rig_buffer(&r, map, TIR_TENSOR_MAP_BYTES));
    rig_param_u64(&r, from);
    rig_param_u64(&r, out);
    r.shared_bytes = 1024;
    const tir_status status = rig_try_run(&r, "k", 1, 32);
    memcpy(message, r.error.message, sizeof r.error.message);
    if (status == TIR_OK) {
        rig_read(&r, after, out, 256);
        assert_memory_equal(after, tensor + 3 * 64, 256);
    }
    rig_close(&r);
    return status;
}

// What the map was before does not matter: of more dimensions, or zeros.
static void replaced(void **state)
{
    (void)state;
    static const char ptx[] =
        REPLACE_PTX("fence.proxy.tensormap::generic.acquire.gpu [%m], 128;\n");
    char message[sizeof((tir_error *)0)->message];
    uint8_t map[TIR_TENSOR_MAP_BYTES];
    const tir_tensor_map other = make(3, EMU_TENSOR_TILE, true).map;
    assert_int_equal(tir_tensor_map_encode(&other, map, NULL), TIR_OK);
    if (replace(ptx, map, message) != TIR_OK)
        fail_msg("%s", message);
    memset(map, 0, sizeof map);
    if (replace(ptx, map, message) != TIR_OK)
        fail_msg("zeros: %s", message);
}

// Any bytes as a map: `form` 0 replaces the rank and copies a tile, 1 copies a tile, 2 pixels, 3
// stores a tile.
static const char any_bytes_ptx[] = HEAD
    ".extern .shared .align 1024 .b8 tile[];\n"
    ".visible .entry k(.param .u64 map, .param .u32 rank, .param .u32 form)\n{\n"
    ".reg .pred %p<4>; .reg .b16 %h; .reg .b32 %r<4>; .reg .b64 %m; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %m, [map]; ld.param.u32 %r0, [rank]; ld.param.u32 %r1, [form];\n"
    "setp.eq.u32 %p0, %r1, 0; setp.le.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 2;\n"
    "setp.eq.u32 %p3, %r1, 3; mov.u32 %r2, 0; mov.b16 %h, 1;\n"
    "mbarrier.init.shared.b64 [bar], 1;\n"
    "@%p0 tensormap.replace.tile.rank.global.b1024.b32 [%m], %r0;\n"
    "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    " [tile], [%m, {%r2, %r2}], [bar];\n"
    "@%p2 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    " [tile], [%m, {%r2, %r2, %r2, %r2}], [bar], {%h, %h};\n"
    "@%p3 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m, {%r2, %r2}],"
    " [tile];\nret;\n}\n";

static void any_bytes(void **state)
{
    (void)state;
    enum { ROUNDS = 20000 };
    uint64_t seed = 1;
    struct rig r;
    uint8_t map[TIR_TENSOR_MAP_BYTES] = {0};
    uint32_t refused = 0;
    rig_open_options(&r, &(struct emu_options){.check = EMU_CHECK_OFF});
    rig_load(&r, any_bytes_ptx);
    const uint64_t at = rig_buffer(&r, map, sizeof map), data = rig_buffer(&r, tensor, 4096);
    for (uint32_t n = 0; n < ROUNDS; n++) {
        const uint32_t form = n % 4;
        struct test t =
            make(form == 2 ? 4 : 2, form == 2 ? EMU_TENSOR_IM2COL : EMU_TENSOR_TILE, true);
        t.map.address = data;
        assert_int_equal(tir_tensor_map_encode(&t.map, map, NULL), TIR_OK);
        for (uint64_t k = 0, count = rig_random(&seed) % 6; k < count; k++)
            map[rig_random(&seed) % sizeof map] ^= (uint8_t)(1u << rig_random(&seed) % 8);
        for (size_t k = 0; k < sizeof map && n % 5 == 0; k++)
            map[k] = (uint8_t)rig_random(&seed);
        assert_int_equal(emu_write(r.emu, at, map, sizeof map, NULL), TIR_OK);
        rig_param_u64(&r, at);
        rig_param_u32(&r, (uint32_t)(rig_random(&seed) % 6));
        rig_param_u32(&r, form);
        r.shared_bytes = 64 << 10;
        refused += rig_try_run(&r, "k", 1, 1) == TIR_ERR_DEVICE;
    }
    rig_close(&r);
    assert_in_range(refused, ROUNDS / 2, ROUNDS - 1); // and nothing worse happened
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles),      cmocka_unit_test(im2col),    cmocka_unit_test(rows),
        cmocka_unit_test(reductions), cmocka_unit_test(wrong),     cmocka_unit_test(multicast),
        cmocka_unit_test(replaced),   cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
