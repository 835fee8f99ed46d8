// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shapes of the PTX that single constructs become.

#include "codegen.h"

// O[i] = X[i] + s for i < N, four values a thread.
static void build_add(struct ir_unit *u, enum tir_elem elem)
{
    start_kernel(u, "add", 128);
    struct tir_value *x = vector(u, "X", TIR_IN, elem), *o = vector(u, "O", TIR_OUT, elem);
    struct tir_value *s = scalar_param(u, "s", elem);
    ir_dims(u, (const char *const[]){"N"}, 1);
    uint32_t size = tir_elems[elem].bits / 8;
    struct tir_value *at =
        op2(u, TIR_OP_MUL, op0(u, TIR_OP_TID), tir_const_i32(u->f, 4 * (int)size));
    struct tir_inst *ld = build_ld(u, x, at, 16, NULL, elem, 4);
    struct tir_value *sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = op2(u, TIR_OP_ADD, ld->results[i], s);
    build_st(u, o, at, 16, NULL, sums, 4);
}

static void a_kernel_has_the_documented_parameters(void **state)
{
    (void)state;
    struct ir_unit u;
    build_add(&u, TIR_F32);
    tir_str ptx = compile_for(&u, "sm_90a");
    assert_has(ptx, ".version 8.6");
    assert_has(ptx, ".target sm_90a");
    assert_has(ptx, ".visible .entry add(");
    assert_has(ptx, ".param .u64 .ptr .global .align 1 add_param_0,\n\t.param .u64 add_param_1,\n"
                    "\t.param .u64 .ptr .global .align 1 add_param_2,\n\t.param .u64 add_param_3,\n"
                    "\t.param .f32 add_param_4,\n\t.param .u64 add_param_5\n");
    assert_has(ptx, ".reqntid 128, 1, 1");
    tir_context_finish(&u.cx);
}

static void accesses_are_vectors_with_immediate_offsets(void **state)
{
    (void)state;
    static const enum tir_elem elems[] = {TIR_F32, TIR_BF16, TIR_F16, TIR_I8, TIR_I64};
    static const char *const loads[] = {"ld.global.nc.v4.b32", "ld.global.nc.v2.b32",
                                        "ld.global.nc.v2.b32", "ld.global.nc.b32", NULL};
    for (uint32_t i = 0; i < 4; i++) {
        struct ir_unit u;
        build_add(&u, elems[i]);
        tir_str ptx = compile_for(&u, "sm_80");
        assert_has(ptx, loads[i]);
        assert_has(ptx, "+16]");
        assemble(&u, "sm_80", ptx);
        tir_context_finish(&u.cx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_has_the_documented_parameters),
        cmocka_unit_test(accesses_are_vectors_with_immediate_offsets),
    };
    return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
