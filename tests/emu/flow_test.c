// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow: divergence, loops, calls, barriers, exits, and what hangs.

#include "rig.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

// Adds two vectors; threads past the end do nothing.
static const char add_ptx[] = HEAD
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{ .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
    "  ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; ld.param.b64 %rd3, [c];\n"
    "  ld.param.b32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;\n"
    "  mul.wide.s32 %rd4, %r5, 4; add.s64 %rd1, %rd1, %rd4; add.s64 %rd2, %rd2, %rd4;\n"
    "  add.s64 %rd3, %rd3, %rd4; ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];\n"
    "  add.rn.f32 %f3, %f1, %f2; st.global.f32 [%rd3], %f3;\n"
    "DONE: ret; }\n";

static void adds_vectors(void **state)
{
    enum { N = 1000 };
    float a[N], b[N], c[N];
    struct rig r;
    (void)state;
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
    }
    rig_open(&r);
    rig_load(&r, add_ptx);
    const uint64_t pa = rig_buffer(&r, a, sizeof a), pb = rig_buffer(&r, b, sizeof b);
    const uint64_t pc = rig_buffer(&r, NULL, sizeof c);
    rig_param_u64(&r, pa);
    rig_param_u64(&r, pb);
    rig_param_u64(&r, pc);
    rig_param_u32(&r, N);
    rig_run(&r, "add", 8, 128);
    rig_read(&r, c, pc, sizeof c);
    for (int i = 0; i < N; i++)
        assert_float_equal(c[i], 1.5f * (float)i, 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
