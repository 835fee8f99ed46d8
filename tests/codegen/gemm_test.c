// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A whole product for Hopper, stated down to its barriers (gemm.tir): a producer of tensor copies,
// two warpgroups of products, a ring of four stages, tiles in turn, stores by the TMA. It is
// lowered, assembled without a word of ptxas about it, and run on the emulator.

#include "engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/number.h"
#include "pass/pass.h"

static const char *read_program(struct tir_arena *arena)
{
    FILE *f = fopen(GEMM, "rb");
    if (!f)
        fail_msg("cannot open %s", GEMM);
    char *text = arena_array(arena, char, 1 << 16);
    text[fread(text, 1, (1 << 16) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void open_gemm(struct engine *t)
{
    memset(t, 0, sizeof *t);
    struct tir_arena arena = unit_arena();
    parse_kernel(&t->u, read_program(&arena));
    struct tir_pass_cx cx = {.scratch = &t->u.cx.scratch,
                             .diags = &t->u.cx.diags,
                             .target = tir_target_find(STR("sm_90a"))};
    struct tir_pass_options options = {.bisect = -1, .verify = true};
    if (!tir_run_passes(t->u.f, &cx, &options))
        fail_msg("%s", "the passes refuse it");
    engine_load(t);
    tir_arena_finish(&arena);
}

static double decode(uint16_t bits)
{
    return tir_number_decode(TIR_BF16, bits).f;
}

static uint16_t *draw(size_t count, uint64_t *seed)
{
    uint16_t *v = calloc(count, sizeof *v);
    for (size_t i = 0; i < count; i++) {
        union tir_number x = {.f = (double)(rig_random(seed) % 257) / 128 - 1};
        v[i] = (uint16_t)tir_number_encode(TIR_BF16, x);
    }
    return v;
}

static void check(uint64_t m, uint64_t n, uint64_t k, uint32_t grid)
{
    uint64_t seed = m + n + k;
    struct engine t;
    open_gemm(&t);
    uint16_t *a = draw(m * k, &seed), *b = draw(n * k, &seed), *d = calloc(m * n, sizeof *d);
    engine_tensor(&t, a, m * k * 2, (uint64_t[]){m, k}, 2);
    engine_tensor(&t, b, n * k * 2, (uint64_t[]){n, k}, 2);
    uint64_t out = engine_tensor(&t, NULL, m * n * 2, (uint64_t[]){m, n}, 2);
    engine_run(&t, grid);
    rig_read(&t.r, d, out, m * n * 2);
    for (uint64_t i = 0; i < m * n; i++) {
        double want = 0;
        for (uint64_t j = 0; j < k; j++)
            want += decode(a[i / n * k + j]) * decode(b[i % n * k + j]);
        if (!(fabs(decode(d[i]) - want) <= 0.004 * fabs(want) + 1e-5 * (double)k))
            fail_msg("D[%d, %d] is %g, not %g", (int)(i / n), (int)(i % n), decode(d[i]), want);
    }
    free(a);
    free(b);
    free(d);
    engine_close(&t);
}

// Several tiles for a CTA; edges in every dimension; one step of K; more stages than steps.
static void products(void **state)
{
    (void)state;
    check(256, 512, 320, 3);
    check(200, 264, 136, 2);
    check(128, 256, 8, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
