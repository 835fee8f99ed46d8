// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor memory: its loads and stores in every shape, and loads that reduce, against plain loops.
//
// There is no such hardware here: where elements lie is what the manual's tables and figures say.

#include <math.h>
#include <stdlib.h>

#include "rig.h"
#include "tcgen05.h"

enum { COLUMNS = 64 };

// --- loads and stores ---

struct shape {
    const char *name;
    int registers;                                       // of x1
    void (*place)(int t, int r, int *lane, int *column); // of thread t, register r
};

static void place_32x32b(int t, int r, int *lane, int *column)
{
    *lane = t;
    *column = r;
}

static void place_16x64b(int t, int r, int *lane, int *column)
{
    *lane = t / 4 + (t & 1 ? 8 : 0);
    *column = 2 * r + (t & 2 ? 1 : 0);
}

static void place_16x128b(int t, int r, int *lane, int *column)
{
    *lane = t / 4 + (r & 1 ? 8 : 0);
    *column = r / 2 * 4 + t % 4;
}

static void place_16x256b(int t, int r, int *lane, int *column) // as accumulators of mma
{
    *lane = t / 4 + (r & 2 ? 8 : 0);
    *column = r / 4 * 8 + t % 4 * 2 + (r & 1);
}

static void place_16x32bx2(int t, int r, int *lane, int *column) // halves 32 columns apart
{
    *lane = t % 16;
    *column = r + (t < 16 ? 0 : 32);
}

static const struct shape shapes[] = {
    {"32x32b", 1, place_32x32b},   {"16x64b", 1, place_16x64b},     {"16x128b", 2, place_16x128b},
    {"16x256b", 4, place_16x256b}, {"16x32bx2", 1, place_16x32bx2},
};

// Stores 64 columns of every lane, loads them by the shape, gives the registers of all threads.
static void run_load(const struct shape *s, int count, bool packed, uint32_t (*out)[128])
{
    static char text[32768];
    static uint32_t in[128][128];
    char regs[1024];
    for (int i = 0; i < 128; i++)
        for (int t = 0; t < 128; t++)
            in[i][t] = (uint32_t)(t * 1000 + i);
    size_t n = (size_t)snprintf(text, sizeof text, "%s", tcgen05_begin);
    for (int i = 0; i < COLUMNS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "ld.global.b32 %%r%d, [%%q+%d];\n", i,
                              i * 512);
    tcgen05_registers(regs, sizeof regs, COLUMNS);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "tcgen05.st.sync.aligned.32x32b.x%d.b32 [%%a], %s;\n"
                          "tcgen05.wait::st.sync.aligned;\n",
                          COLUMNS, regs);
    tcgen05_registers(regs, sizeof regs, count * s->registers);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "tcgen05.ld.sync.aligned.%s.x%d%s.b32 %s, [%%a]%s;\n"
                          "tcgen05.wait::ld.sync.aligned;\n",
                          s->name, count, packed ? ".pack::16b" : "", regs,
                          s->place == place_16x32bx2 ? ", 32" : "");
    for (int i = 0; i < count * s->registers; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "st.global.b32 [%%q+%d], %%r%d;\n",
                              i * 512, i);
    snprintf(text + n, sizeof text - n, "%s", tcgen05_end);
    memcpy(out, in, sizeof in);
    rig_turn(text, 128, out, sizeof in);
}

static void loads(void **state)
{
    static uint32_t out[128][128];
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int count = 1; count * shapes[i].registers <= 16; count *= 2)
            // Packed, the second half of 16x32bx2 would start behind the 64 columns.
            for (int packed = 0; packed < (shapes[i].place == place_16x32bx2 ? 1 : 2); packed++) {
                run_load(&shapes[i], count, packed, out);
                for (int t = 0; t < 128; t++)
                    for (int r = 0; r < count * shapes[i].registers; r++) {
                        int lane, column;
                        shapes[i].place(t % 32, r, &lane, &column);
                        uint32_t want = (uint32_t)((t / 32 * 32 + lane) * 1000 + column);
                        if (packed) {
                            want = (uint32_t)((t / 32 * 32 + lane) * 1000 + 2 * column);
                            want = (want & 0xffff) | (want + 1) << 16;
                        }
                        if (out[r][t] != want)
                            fail_msg("%s.x%d%s: thread %d register %d is %u, not %u",
                                     shapes[i].name, count, packed ? " packed" : "", t, r,
                                     out[r][t], want);
                    }
            }
}

// --- loads that reduce ---

enum { REDUCED = 8 };

struct reduction {
    const char *name;
    char type; // 'f', 'u', 's'
    bool is_max, is_abs, nan_wins;
};

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

// Whether a comes before b in the order that the reduction looks for the last of.
static bool is_before(const struct reduction *f, uint32_t a, uint32_t b)
{
    if (f->type == 'u')
        return a < b;
    if (f->type == 's' || !(a >> 31 & b >> 31))
        return f->type == 's' ? (int32_t)a < (int32_t)b : a >> 31 != b >> 31 ? a >> 31 : a < b;
    return b < a; // both are negative
}

static uint32_t reduced(const struct reduction *f, const uint32_t *v)
{
    uint32_t best = 0, nans = 0;
    bool any = false;
    for (int i = 0; i < REDUCED; i++) {
        const uint32_t x = f->is_abs ? v[i] & 0x7fffffff : v[i];
        const bool nan = f->type == 'f' && is_nan(x);
        nans += nan;
        if (!nan && (!any || (f->is_max ? is_before(f, best, x) : is_before(f, x, best))))
            best = x;
        any |= !nan;
    }
    return !any || (nans && f->nan_wins) ? 0x7fffffff : best;
}

static void check_reduction(const struct reduction *f, uint64_t seed)
{
    static const uint32_t special[] = {0x7fc00000, 0xffc00001, 0x80000000, 0, 0xff800000, 1};
    static char text[4096];
    static uint32_t data[REDUCED + 1][128];
    for (int i = 0; i < REDUCED; i++)
        for (int t = 0; t < 128; t++) {
            const uint64_t x = rig_random(&seed);
            data[i][t] = t % 16 == 15 ? special[x % 2] // nothing but NaNs
                         : x >> 60    ? (uint32_t)x
                                      : special[x % 6];
        }
    size_t n = (size_t)snprintf(text, sizeof text, "%s", tcgen05_begin);
    for (int i = 0; i < REDUCED; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "ld.global.b32 %%r%d, [%%q+%d];\n", i,
                              i * 512);
    snprintf(text + n, sizeof text - n,
             "tcgen05.st.sync.aligned.32x32b.x8.b32 [%%a], {%%r0,%%r1,%%r2,%%r3,%%r4,%%r5,%%r6,"
             "%%r7};\ntcgen05.wait::st.sync.aligned;\n"
             "tcgen05.ld.red.sync.aligned.32x32b.x8.%s {%%r10,%%r11,%%r12,%%r13,%%r14,%%r15,%%r16,"
             "%%r17}, %%r20, [%%a];\ntcgen05.wait::ld.sync.aligned;\n"
             "st.global.b32 [%%q+%d], %%r20; st.global.b32 [%%q], %%r17;\n%s",
             f->name, REDUCED * 512, tcgen05_end);
    static uint32_t out[REDUCED + 1][128];
    memcpy(out, data, sizeof out);
    rig_turn(text, 128, out, sizeof out);
    for (int t = 0; t < 128; t++) {
        uint32_t v[REDUCED];
        for (int i = 0; i < REDUCED; i++)
            v[i] = data[i][t];
        if (out[REDUCED][t] != reduced(f, v))
            fail_msg("%s: thread %d has 0x%x, not 0x%x", f->name, t, out[REDUCED][t],
                     reduced(f, v));
        assert_int_equal(out[0][t], v[REDUCED - 1]); // what was loaded
    }
}

static void reductions(void **state)
{
    static const struct reduction forms[] = {
        {"min.f32", 'f'},
        {"max.f32", 'f', .is_max = true},
        {"max.abs.f32", 'f', .is_max = true, .is_abs = true},
        {"min.NaN.f32", 'f', .nan_wins = true},
        {"max.abs.NaN.f32", 'f', .is_max = true, .is_abs = true, .nan_wins = true},
        {"min.u32", 'u'},
        {"max.u32", 'u', .is_max = true},
        {"min.s32", 's'},
        {"max.s32", 's', .is_max = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (uint64_t seed = 1; seed < 4; seed++)
            check_reduction(&forms[i], seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads),
        cmocka_unit_test(reductions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
