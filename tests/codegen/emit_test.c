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

// O[i] = sum of X[i : i + n] by a loop whose bounds are 64-bit.
static void a_loop_becomes_phis(void **state)
{
    (void)state;
    struct ir_unit u;
    start_kernel(&u, "sum", 32);
    struct tir_value *x = vector(&u, "X", TIR_IN, TIR_F32), *o = vector(&u, "O", TIR_OUT, TIR_F32);
    ir_dims(&u, (const char *const[]){"N"}, 1);
    struct tir_inst *loop =
        ir_for1(&u, tir_const_index(u.f, 0), u.f->dims[0].value, tir_const_index(u.f, 2),
                tir_const_float(u.f, ir_scalar(&u, TIR_F32), 0), ir_scalar(&u, TIR_F32));
    struct tir_block *body = loop->regions[0];
    struct tir_value *at = op2(&u, TIR_OP_MUL, body->args[0], tir_const_index(u.f, 4));
    struct tir_inst *ld = build_ld(&u, x, at, 0, NULL, TIR_F32, 1);
    ir_end(&u, op2(&u, TIR_OP_ADD, body->args[1], ld->results[0]));
    build_st(&u, o, tir_const_index(u.f, 0), 0, NULL, loop->results, 1);
    tir_str ptx = compile_for(&u, "sm_90a");
    assert_has(ptx, "ld.global.nc.b32");
    assert_has(ptx, "add.rn.f32");
    assert_has_not(ptx, ".local");
    assemble(&u, "sm_90a", ptx);
    tir_context_finish(&u.cx);
}

static void a_branch_and_a_while_loop_become_blocks(void **state)
{
    (void)state;
    struct ir_unit u;
    start_kernel(&u, "halve", 32);
    struct tir_value *o = vector(&u, "O", TIR_OUT, TIR_I32), *n = scalar_param(&u, "n", TIR_I32);
    const struct tir_type *i32 = ir_scalar(&u, TIR_I32);
    struct tir_inst *loop = tir_build(&u.b, TIR_OP_WHILE, &n, 1, &i32, 1, 2);
    struct tir_value *in_test = tir_block_add_arg(u.f, loop->regions[0], i32, "i");
    struct tir_value *in_body = tir_block_add_arg(u.f, loop->regions[1], i32, "i");
    u.b = tir_builder_at_end(u.f, loop->regions[0]);
    ir_end(&u, op2(&u, TIR_OP_GT, in_test, tir_const_i32(u.f, 7)));
    u.b = tir_builder_at_end(u.f, loop->regions[1]);
    struct tir_value *odd = op2(&u, TIR_OP_EQ, op2(&u, TIR_OP_AND, in_body, tir_const_i32(u.f, 1)),
                                tir_const_i32(u.f, 1));
    struct tir_inst *choice = tir_build(&u.b, TIR_OP_IF, &odd, 1, &i32, 1, 2);
    u.b = tir_builder_at_end(u.f, choice->regions[0]);
    ir_end(&u, op2(&u, TIR_OP_SUB, in_body, tir_const_i32(u.f, 3)));
    u.b = tir_builder_at_end(u.f, choice->regions[1]);
    ir_end(&u, op2(&u, TIR_OP_DIV, in_body, tir_const_i32(u.f, 3)));
    u.b = tir_builder_at_end(u.f, loop->regions[1]);
    ir_end(&u, choice->results[0]);
    build_st(&u, o, tir_const_i32(u.f, 0), 0, NULL, loop->results, 1);
    tir_str ptx = compile_for(&u, "sm_80");
    assert_has(ptx, "bra");
    assert_has_not(ptx, "div.s32"); // by a constant: multiplied
    assemble(&u, "sm_80", ptx);
    tir_context_finish(&u.cx);
}

static void predicated_accesses_have_no_branch(void **state)
{
    (void)state;
    struct ir_unit u;
    start_kernel(&u, "guarded", 64);
    struct tir_value *x = vector(&u, "X", TIR_IN, TIR_F32), *o = vector(&u, "O", TIR_OUT, TIR_F32);
    struct tir_value *t = vector(&u, "T", TIR_INOUT, TIR_BF16);
    struct tir_value *n = scalar_param(&u, "n", TIR_I32);
    struct tir_value *at = op2(&u, TIR_OP_MUL, op0(&u, TIR_OP_TID), tir_const_i32(u.f, 16));
    struct tir_value *pred = op2(&u, TIR_OP_LT, at, n);
    struct tir_inst *ld = build_ld(&u, x, at, 32, pred, TIR_F32, 4);
    struct tir_inst *half = build_ld(&u, t, at, 0, pred, TIR_BF16, 2);
    build_st(&u, t, at, 4, pred, half->results, 2);
    build_st(&u, o, at, -16, pred, ld->results, 4);
    struct tir_value *shared = build_alloc(&u, TIR_SPACE_SHARED, TIR_F32, 256, 1024);
    build_st(&u, shared, at, 0, pred, ld->results, 1);
    struct tir_inst *back = build_ld(&u, shared, at, 0, pred, TIR_U8, 1);
    struct tir_value *byte = cast(&u, back->results[0], TIR_F32);
    build_st(&u, o, at, 64, pred, &byte, 1);
    tir_str ptx = compile_for(&u, "sm_90a");
    assert_has(ptx, " ld.global.nc.v4.b32 {");
    assert_has(ptx, "+32]");
    assert_has(ptx, " ld.global.b32 ");
    assert_has(ptx, " st.global.v4.b32 [");
    assert_has(ptx, "+-16]");
    assert_has(ptx, " st.shared.b32 [");
    assert_has(ptx, " ld.shared.b8 ");
    assert_has(ptx, ".extern .shared .align 1024 .b8 tir$shared[]");
    assert_has_not(ptx, "bra");
    assemble(&u, "sm_90a", ptx);
    tir_context_finish(&u.cx);
}

static struct tir_inst *build_mma(struct ir_unit *u, enum tir_word kind, int64_t depth,
                                  uint32_t inputs, enum tir_elem sum, uint32_t sums)
{
    struct tir_value *operands[2 + 16] = {NULL}, **registers = operands + 2; // behind the scales
    const struct tir_type *types[4];
    for (uint32_t i = 0; i < inputs; i++)
        registers[i] = tir_const_int(u->f, ir_scalar(u, TIR_U32), i);
    for (uint32_t i = 0; i < sums; i++) {
        types[i] = ir_scalar(u, sum);
        registers[inputs + i] =
            sum == TIR_F32 ? tir_const_float(u->f, types[i], i) : tir_const_int(u->f, types[i], i);
    }
    struct tir_inst *mma =
        tir_build(&u->b, TIR_OP_MMA, operands, 2 + inputs + sums, types, sums, 0);
    tir_set_word(u->f, mma, TIR_ATTR_kind, kind);
    tir_set_int(u->f, mma, TIR_ATTR_cols, 8);
    tir_set_int(u->f, mma, TIR_ATTR_depth, depth);
    return mma;
}

static void matrix_instructions_are_chosen_by_kind(void **state)
{
    (void)state;
    static const struct {
        enum tir_word kind;
        int64_t depth;
        uint32_t inputs;
        enum tir_elem sum;
        uint32_t sums;
        const char *text;
    } cases[] = {
        {TIR_WORD_kind_f16, 16, 6, TIR_F32, 4, "m16n8k16.row.col.f32.f16.f16.f32"},
        {TIR_WORD_kind_f16, 16, 6, TIR_U32, 2, "m16n8k16.row.col.f16.f16.f16.f16"},
        {TIR_WORD_kind_bf16, 16, 6, TIR_F32, 4, "m16n8k16.row.col.f32.bf16.bf16.f32"},
        {TIR_WORD_kind_tf32, 8, 6, TIR_F32, 4, "m16n8k8.row.col.f32.tf32.tf32.f32"},
        {TIR_WORD_kind_i8, 32, 6, TIR_I32, 4, "m16n8k32.row.col.s32.s8.s8.s32"},
        {TIR_WORD_kind_u8, 32, 6, TIR_I32, 4, "m16n8k32.row.col.s32.u8.u8.s32"},
        {TIR_WORD_kind_e4m3, 32, 6, TIR_F32, 4, "m16n8k32.row.col.f32.e4m3.e4m3.f32"},
        {TIR_WORD_kind_e5m2, 32, 6, TIR_F32, 4, "m16n8k32.row.col.f32.e5m2.e5m2.f32"},
    };
    struct ir_unit u;
    start_kernel(&u, "matrices", 32);
    struct tir_value *o = vector(&u, "O", TIR_OUT, TIR_F32);
    for (uint32_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        struct tir_inst *mma = build_mma(&u, cases[i].kind, cases[i].depth, cases[i].inputs,
                                         cases[i].sum, cases[i].sums);
        build_st(&u, o, tir_const_i32(u.f, 16 * (int)i), 0, NULL, mma->results, cases[i].sums);
    }
    tir_str ptx = compile_for(&u, "sm_90a");
    for (uint32_t i = 0; i < TIR_COUNT_OF(cases); i++)
        assert_has(ptx, cases[i].text);
    assemble(&u, "sm_90a", ptx);
    tir_context_finish(&u.cx);
}

static void what_a_target_lacks_is_an_error(void **state)
{
    (void)state;
    struct ir_unit u;
    start_kernel(&u, "matrices", 32);
    build_mma(&u, TIR_WORD_kind_e4m3, 32, 6, TIR_F32, 4);
    struct tir_nvptx_options options = {.target = tir_target_find(STR("sm_80"))};
    struct tir_nvptx_result result;
    struct tir_nvptx nvptx = {0};
    assert_false(
        tir_nvptx_emit(&nvptx, &u.cx.arena, &u.cx.diags, u.m->funcs.at, 1, &options, &result));
    assert_int_equal(u.cx.diags.error_count, 1);
    assert_int_equal(u.cx.diags.list.at[0]->code, TIR_E_UNSUPPORTED);
    tir_context_finish(&u.cx);
}

static void copies_go_through_shared_memory(void **state)
{
    (void)state;
    struct ir_unit u;
    start_kernel(&u, "copy", 32);
    struct tir_value *x = vector(&u, "X", TIR_IN, TIR_BF16), *o = vector(&u, "O", TIR_OUT, TIR_U32);
    struct tir_value *n = scalar_param(&u, "n", TIR_I32);
    struct tir_value *shared = build_alloc(&u, TIR_SPACE_SHARED, TIR_BF16, 512, 0);
    struct tir_value *at = op2(&u, TIR_OP_MUL, op0(&u, TIR_OP_TID), tir_const_i32(u.f, 16));
    struct tir_value *operands[] = {shared, at, x, at, op2(&u, TIR_OP_LT, at, n)};
    struct tir_inst *copy = tir_build(&u.b, TIR_OP_CP_ASYNC, operands, 5, NULL, 0, 0);
    tir_set_int(u.f, copy, TIR_ATTR_width, 16);
    tir_build(&u.b, TIR_OP_COMMIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_int(u.f, tir_build(&u.b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0), TIR_ATTR_groups, 0);
    tir_build(&u.b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    const struct tir_type *u32 = ir_scalar(&u, TIR_U32), *types[] = {u32, u32, u32, u32};
    struct tir_inst *load =
        tir_build(&u.b, TIR_OP_LDMATRIX, (struct tir_value *[]){shared, at}, 2, types, 4, 0);
    tir_set_int(u.f, load, TIR_ATTR_trans, 1);
    build_st(&u, o, at, 0, NULL, load->results, 4);
    tir_str ptx = compile_for(&u, "sm_80");
    assert_has(ptx, "cp.async.cg.shared.global");
    assert_has(ptx, "cp.async.commit_group");
    assert_has(ptx, "cp.async.wait_group");
    assert_has(ptx, "bar.sync");
    assert_has(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16");
    assemble(&u, "sm_80", ptx);
    tir_context_finish(&u.cx);
}

static struct tir_value *shuffle(struct ir_unit *u, struct tir_value *x, enum tir_word mode)
{
    struct tir_value *operands[] = {x, tir_const_i32(u->f, 1)};
    struct tir_inst *inst = tir_build(&u->b, TIR_OP_SHUFFLE, operands, 2, &x->type, 1, 0);
    tir_set_word(u->f, inst, TIR_ATTR_mode, mode);
    return inst->results[0];
}

static void warps_shuffle_vote_and_run_inline_ptx(void **state)
{
    (void)state;
    struct ir_unit u;
    start_kernel(&u, "warp", 64);
    struct tir_value *o = vector(&u, "O", TIR_OUT, TIR_F32);
    struct tir_value *v = cast(&u, op0(&u, TIR_OP_LANEID), TIR_F64);
    v = shuffle(&u, v, TIR_WORD_mode_bfly);
    v = shuffle(&u, cast(&u, v, TIR_BF16), TIR_WORD_mode_up);
    v = shuffle(&u, cast(&u, v, TIR_F32), TIR_WORD_mode_down);
    struct tir_value *odd = op2(&u, TIR_OP_GT, v, tir_const_float(u.f, v->type, 3));
    const struct tir_type *boolean = ir_scalar(&u, TIR_BOOL);
    struct tir_inst *any = tir_build(&u.b, TIR_OP_VOTE, &odd, 1, &boolean, 1, 0);
    tir_set_word(u.f, any, TIR_ATTR_kind, TIR_WORD_kind_any);
    struct tir_value *flag = cast(&u, any->results[0], TIR_F32), *in[] = {v, flag};
    struct tir_inst *ptx_inst = tir_build(&u.b, TIR_OP_PTX, in, 2, &v->type, 1, 0);
    tir_set_text(u.f, ptx_inst, TIR_ATTR_text, STR("copysign.f32 $0, $1, $2;"));
    build_st(&u, o, tir_const_i32(u.f, 0), 0, NULL, ptx_inst->results, 1);
    tir_str ptx = compile_for(&u, "sm_80");
    assert_has(ptx, "shfl.sync.bfly.b32");
    assert_has(ptx, "shfl.sync.up.b32");
    assert_has(ptx, "shfl.sync.down.b32");
    assert_has(ptx, "vote.sync.any.pred");
    assert_has(ptx, "copysign.f32");
    assemble(&u, "sm_80", ptx);
    tir_context_finish(&u.cx);
}

static void wrong_inline_ptx_is_an_error(void **state)
{
    (void)state;
    static const char *const texts[] = {"mov.b32 $2, 1;", "mov.b32 $x, 1;", "mov.b32 $0, 1; $"};
    for (uint32_t i = 0; i < TIR_COUNT_OF(texts); i++) {
        struct ir_unit u;
        start_kernel(&u, "wrong", 32);
        struct tir_value *in = tir_const_i32(u.f, 1);
        struct tir_inst *inst = tir_build(&u.b, TIR_OP_PTX, &in, 1, &in->type, 1, 0);
        tir_set_text(u.f, inst, TIR_ATTR_text, tir_str_of(texts[i]));
        struct tir_nvptx_options options = {.target = tir_target_find(STR("sm_80"))};
        struct tir_nvptx_result result;
        struct tir_nvptx nvptx = {0};
        assert_false(
            tir_nvptx_emit(&nvptx, &u.cx.arena, &u.cx.diags, u.m->funcs.at, 1, &options, &result));
        assert_int_equal(u.cx.diags.error_count, 1);
        tir_context_finish(&u.cx);
    }
}

static bool no_such_instruction(void *user)
{
    struct tir_llvm *ll = user;
    if (!tir_llvm_init(ll, tir_target_find(STR("sm_80"))))
        return false;
    LLVMTypeRef type = LLVMFunctionType(ll->f64, &ll->f64, 1, false);
    LLVMValueRef f = LLVMAddFunction(ll->module, "f", type);
    LLVMPositionBuilderAtEnd(ll->builder, LLVMAppendBasicBlockInContext(ll->context, f, ""));
    LLVMValueRef x = LLVMGetParam(f, 0);
    LLVMBuildRet(ll->builder, tir_llvm_call(ll, "llvm.exp2", &ll->f64, 1, &x, 1));
    return tir_llvm_generate(ll);
}

static void an_error_inside_llvm_ends_only_the_compilation(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); // what LLVM held at that moment is leaked, knowingly
#endif
    struct tir_llvm ll = {0};
    assert_false(tir_llvm_protect(&ll, no_such_instruction, &ll));
    assert_true(ll.message[0]);
    tir_llvm_finish(&ll);
    struct ir_unit u;
    build_add(&u, TIR_F32);
    assert_has(compile_for(&u, "sm_80"), ".entry add(");
    tir_context_finish(&u.cx);
}

// O[0] = r[1] + r[n] of a buffer of the thread: the constant index needs no memory, the other does.
static void buffers_of_a_thread_become_registers(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct ir_unit u;
        start_kernel(&u, "local", 32);
        struct tir_value *o = vector(&u, "O", TIR_OUT, TIR_F32),
                         *n = scalar_param(&u, "n", TIR_I32);
        struct tir_value *r = build_alloc(&u, TIR_SPACE_LOCAL, TIR_F32, 8, 0);
        struct tir_value *v = cast(&u, op0(&u, TIR_OP_TID), TIR_F32);
        struct tir_value *at =
            dynamic ? op2(&u, TIR_OP_MUL, n, tir_const_i32(u.f, 4)) : tir_const_i32(u.f, 4);
        build_st(&u, r, tir_const_i32(u.f, 4), 0, NULL, &v, 1);
        struct tir_inst *ld = build_ld(&u, r, at, 0, NULL, TIR_F32, 1);
        build_st(&u, o, tir_const_i32(u.f, 0), 0, NULL, ld->results, 1);
        tir_str ptx = compile_for(&u, "sm_80");
        if (dynamic)
            assert_has(ptx, "ld.local");
        else
            assert_has_not(ptx, ".local");
        assemble(&u, "sm_80", ptx);
        tir_context_finish(&u.cx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_has_the_documented_parameters),
        cmocka_unit_test(accesses_are_vectors_with_immediate_offsets),
        cmocka_unit_test(a_loop_becomes_phis),
        cmocka_unit_test(a_branch_and_a_while_loop_become_blocks),
        cmocka_unit_test(predicated_accesses_have_no_branch),
        cmocka_unit_test(matrix_instructions_are_chosen_by_kind),
        cmocka_unit_test(what_a_target_lacks_is_an_error),
        cmocka_unit_test(copies_go_through_shared_memory),
        cmocka_unit_test(warps_shuffle_vote_and_run_inline_ptx),
        cmocka_unit_test(wrong_inline_ptx_is_an_error),
        cmocka_unit_test(an_error_inside_llvm_ends_only_the_compilation),
        cmocka_unit_test(buffers_of_a_thread_become_registers),
    };
    return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
