// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What LLVM's NVPTX back end makes of LLVM IR (ptx/llvm.ll), against the same in C.

#include "rig.h"

static void open_llvm(struct rig *r)
{
    rig_open(r);
    rig_load_file(r, "llvm.ptx");
}

static void structures(void **state)
{
    enum { N = 8, SIZE = 64 };
    struct rig r;
    uint8_t x[SIZE] = {0}, y[SIZE] = {0}, out[N][SIZE];
    (void)state;
    // { i32 at 0, [3 x i64] at 8, half at 32, <4 x float> at 48 }
    for (int i = 0; i < 3; i++) {
        const int64_t a = 100 + i, b = -200 - i;
        memcpy(x + 8 + 8 * i, &a, 8);
        memcpy(y + 8 + 8 * i, &b, 8);
    }
    x[33] = 0x3c;
    y[33] = 0x40;
    for (int i = 0; i < 4; i++) {
        const float a = 1.5f * (float)i, b = -2.5f * (float)i;
        memcpy(x + 48 + 4 * i, &a, 4);
        memcpy(y + 48 + 4 * i, &b, 4);
    }
    open_llvm(&r);
    uint8_t blank[sizeof out] = {0};
    const uint64_t po = rig_buffer(&r, blank, sizeof blank);
    rig_param_u64(&r, po);
    r.params_size = 16; // structures are aligned to 16
    memcpy(r.params + 16, x, SIZE);
    memcpy(r.params + 80, y, SIZE);
    r.params_size = 144;
    rig_run(&r, "structures", 1, N);
    rig_read(&r, out, po, sizeof out);
    for (int t = 0; t < N; t++) {
        uint8_t want[SIZE];
        memcpy(want, t & 1 ? x : y, SIZE);
        want[0] = 5;
        assert_memory_equal(out[t], want, SIZE);
    }
    rig_close(&r);
}

// Adds 12345678901234567890123 to a * b, in 64-bit halves.
static void wide(int32_t a, uint64_t b, uint64_t *low, uint64_t *high)
{
    const uint64_t m = (uint64_t)(int64_t)a;
    const uint64_t ml = (uint32_t)m, mh = m >> 32, bl = (uint32_t)b, bh = b >> 32;
    const uint64_t mid = mh * bl + (ml * bl >> 32), rest = ml * bh + (uint32_t)mid;
    *low = m * b;
    *high = mh * bh + (mid >> 32) + (rest >> 32) - (a < 0 ? b : 0);
    const uint64_t add_low = 4807115922877859019u, add_high = 669;
    *low += add_low;
    *high += add_high + (*low < add_low);
}

static void control(void **state)
{
    enum { N = 64 };
    static const int table[4] = {3, 1, 4, 1};
    struct rig r;
    uint64_t out[N][2];
    const uint64_t n = 0x123456789abcdef1u;
    (void)state;
    open_llvm(&r);
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, po);
    rig_param_u64(&r, n);
    rig_run(&r, "control", 1, N);
    rig_read(&r, out, po, sizeof out);
    for (int t = 0; t < N; t++) {
        const int values[9] = {t * 3, t + 100, t ^ 85, -t, t * 32, t / 3, t | 64, t * t, -1};
        uint64_t low, high;
        wide(values[t % 9] * (t & 15) + table[t & 3], n, &low, &high);
        assert_int_equal(out[t][0], low);
        assert_int_equal(out[t][1], high);
    }
    rig_close(&r);
}

static void spaces(void **state)
{
    struct rig r;
    int32_t out[64];
    struct emu_kernel_info info;
    (void)state;
    open_llvm(&r);
    assert_int_equal(emu_kernel_info(r.module, "spaces", &info, &r.error), TIR_OK);
    assert_int_equal(info.static_shared_bytes, 256);
    assert_int_equal(emu_kernel_info(r.module, "control", &info, &r.error), TIR_OK);
    assert_int_equal(info.static_shared_bytes, 0); // its kernel names no shared variable
    const uint64_t po = rig_buffer(&r, NULL, sizeof out);
    rig_param_u64(&r, po);
    r.shared_bytes = 256;
    rig_run(&r, "spaces", 1, 64);
    rig_read(&r, out, po, sizeof out);
    for (int t = 0; t < 64; t++)
        assert_int_equal(out[t], 2 * (63 - t) * 1000 + (t ^ 1) + 10 * (t % 4 + 1) - 2);
    rig_param_u64(&r, po);
    r.shared_bytes = 252;
    assert_int_equal(rig_try_run(&r, "spaces", 1, 64), TIR_ERR_DEVICE);
    assert_message(&r, "out-of-bounds shared store of 4 bytes");
    assert_message(&r, "thread (63,0,0)");
    rig_close(&r);
}

static void atomics(void **state)
{
    struct rig r;
    struct {
        uint32_t sum;
        float f;
        uint64_t max;
        uint8_t bytes[4];
        uint32_t nand;
        uint16_t halves[2];
        uint32_t end;
    } m = {.bytes = {1, 250, 3, 4}, .nand = UINT32_MAX};
    uint32_t nand = UINT32_MAX;
    (void)state;
    open_llvm(&r);
    const uint64_t pm = rig_buffer(&r, &m, sizeof m);
    rig_param_u64(&r, pm);
    rig_run(&r, "atomics", 1, 32);
    rig_read(&r, &m, pm, sizeof m);
    assert_int_equal(m.sum, 31 * 16);
    assert_float_equal(m.f, 16, 0);
    assert_int_equal(m.max, 77);
    assert_int_equal(m.bytes[0], 1);
    assert_int_equal(m.bytes[1], (250 + 32) & 255); // and it does not carry into the next
    assert_int_equal(m.bytes[2], 3);
    for (uint32_t t = 0; t < 32; t++)
        nand = ~(nand & t);
    assert_int_equal(m.nand, nand); // lanes take their turns in order
    assert_int_equal(m.halves[0], 0x5000);
    assert_int_equal(m.halves[1], 0x5400);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures),
        cmocka_unit_test(control),
        cmocka_unit_test(spaces),
        cmocka_unit_test(atomics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
