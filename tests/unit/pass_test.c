// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The general passes on small programs: what goes in is built here, what comes out is compared as
// text. The program is verified before and after each pass.

#include "ir_unit.h"

#include "ir/walk.h"
#include "pass/pass.h"

#include <math.h>

typedef enum tir_change pass_fn(struct tir_func *f, struct tir_pass_cx *cx);

static enum tir_change run(struct ir_unit *u, pass_fn *pass)
{
    struct tir_pass_cx cx = {.scratch = &u->cx.scratch, .diags = &u->cx.diags};
    struct tir_text why;
    bool sound = tir_verify(u->f);
    enum tir_change change = pass(u->f, &cx);
    if (!sound || !tir_verify(u->f)) {
        tir_text_init(&why, &u->cx.arena, 0);
        tir_diags_render(&u->cx.diags, TIR_DIAG_TEXT, &why);
        fail_msg("%s the pass: %s", sound ? "after" : "before", why.ptr);
    }
    return change;
}

// f32 scalars x, y; i32 scalars i, j; Y: inout f32[N]; I: inout i32[N]; A: f32[N].
struct program {
    struct ir_unit u;
    struct tir_value *x, *y, *i, *j, *f32s, *i32s, *in, *n;
};

static void start(struct program *p)
{
    struct ir_unit *u = &p->u;
    ir_unit_start(u);
    p->x = ir_add_param(u, "x", ir_scalar(u, TIR_F32))->value;
    p->y = ir_add_param(u, "y", ir_scalar(u, TIR_F32))->value;
    p->i = ir_add_param(u, "i", ir_scalar(u, TIR_I32))->value;
    p->j = ir_add_param(u, "j", ir_scalar(u, TIR_I32))->value;
    p->f32s = ir_tensor(u, "Y", TIR_INOUT, TIR_F32, 1, 0, 0);
    p->i32s = ir_tensor(u, "I", TIR_INOUT, TIR_I32, 1, 0, 0);
    p->in = ir_tensor(u, "A", TIR_IN, TIR_F32, 1, 0, 0);
    ir_dims(u, (const char *[]){"N"}, 1);
    p->n = u->f->dims[0].value;
}

#define HEAD                                                                                 \
    "kernel k(x: f32, y: f32, i: i32, j: i32, Y: inout f32[N], I: inout i32[N], A: f32[N]) " \
    "form(tile)\n{\n"

static void keep(struct program *p, struct tir_value *v) // stores a scalar, so that it stays
{
    struct tir_value *to = v->type->elem == TIR_F32 ? p->f32s : p->i32s;
    ir_store1(&p->u, to, tir_const_index(p->u.f, 0), 0, v);
}

static struct tir_value *f(struct program *p, double v)
{
    return tir_const_float(p->u.f, ir_scalar(&p->u, TIR_F32), v);
}

static struct tir_value *c(struct program *p, int32_t v)
{
    return tir_const_i32(p->u.f, v);
}

static struct tir_value *op2(struct program *p, enum tir_op op, struct tir_value *a,
                             struct tir_value *b)
{
    return tir_binary(&p->u.b, op, a, b);
}

// fold turns op(a, b) into the value whose text this is.
static void folds(enum tir_op op, int which_a, int which_b, double constant, const char *expected)
{
    struct program p;
    start(&p);
    // 0: the constant as f32, 1: x, 2: y, 3: the constant as i32, 4: i, 5: j
    struct tir_value *values[] = {f(&p, constant), p.x, p.y, c(&p, (int32_t)constant), p.i, p.j};
    keep(&p, op2(&p, op, values[which_a], values[which_b]));
    run(&p.u, tir_pass_fold);
    tir_str text = ir_text(&p.u, p.u.f);
    const char *all = tir_str_copy(&p.u.cx.arena, text).ptr;
    if (!strstr(all, expected))
        fail_msg("%s(%d, %d) with %g: no '%s' in %s", tir_ops[op].name, which_a, which_b, constant,
                 expected, all);
    tir_context_finish(&p.u.cx);
}

static void identities_hold_only_where_they_are_exact(void **state)
{
    (void)state;
    enum { K, X, Y, KI, I, J };
    folds(TIR_OP_ADD, I, KI, 0, "store(I[0], i);");
    folds(TIR_OP_ADD, KI, I, 0, "store(I[0], i);");
    folds(TIR_OP_ADD, X, K, 0, "add(x, f32(0));"); // -0.0 + 0.0 is 0.0
    folds(TIR_OP_ADD, X, K, -0.0, "store(Y[0], x);");
    folds(TIR_OP_SUB, X, K, 0, "store(Y[0], x);");
    folds(TIR_OP_SUB, X, X, 0, "sub(x, x);"); // infinity
    folds(TIR_OP_SUB, I, I, 0, "store(I[0], i32(0));");
    folds(TIR_OP_SUB, KI, I, 0, "neg(i);");
    folds(TIR_OP_SUB, K, X, 0, "sub(f32(0), x);"); // 0 - 0 is 0, -(0) is -0
    folds(TIR_OP_MUL, X, K, 1, "store(Y[0], x);");
    folds(TIR_OP_MUL, X, K, 0, "mul(x, f32(0));"); // NaN, infinity
    folds(TIR_OP_MUL, X, K, -1, "neg(x);");
    folds(TIR_OP_MUL, I, KI, 0, "store(I[0], i32(0));");
    folds(TIR_OP_DIV, X, K, 4, "mul(x, f32(0.25));");
    folds(TIR_OP_DIV, X, K, 3, "div(x, f32(3));");
    folds(TIR_OP_DIV, I, KI, 1, "store(I[0], i);");
    folds(TIR_OP_REM, I, KI, 1, "store(I[0], i32(0));");
    folds(TIR_OP_MAX, X, K, -(double)INFINITY, "store(Y[0], x);");
    folds(TIR_OP_MAX, X, X, 0, "store(Y[0], x);");
    folds(TIR_OP_MIN, I, KI, INT32_MIN, "store(I[0], i32(-2147483648));");
    folds(TIR_OP_AND, I, KI, -1, "store(I[0], i);");
    folds(TIR_OP_XOR, I, KI, -1, "not(i);");
    folds(TIR_OP_SHL, I, KI, 40, "shl(i, i32(40));");
    folds(TIR_OP_ADD, KI, KI, 5, "store(I[0], i32(10));");
    folds(TIR_OP_MUL, K, K, 0.1, "store(Y[0], f32(0.010000001));"); // rounded as f32
    folds(TIR_OP_DIV, KI, KI, 0, "store(I[0], i32(0));");
}

static void known_branches_and_loops_go(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_func *fn = p.u.f;
    struct tir_value *cond = op2(&p, TIR_OP_LT, c(&p, 1), c(&p, 2));
    const struct tir_type *i32 = p.i->type;
    struct tir_inst *choice = tir_build(&p.u.b, TIR_OP_IF, &cond, 1, &i32, 1, 2);
    p.u.b = tir_builder_at_end(fn, choice->regions[0]);
    ir_end(&p.u, op2(&p, TIR_OP_ADD, p.i, p.j));
    p.u.b = tir_builder_at_end(fn, choice->regions[1]);
    ir_end(&p.u, p.j);
    keep(&p, tir_result(choice));
    // One trip; no trip.
    struct tir_inst *once = ir_for1(&p.u, c(&p, 4), c(&p, 10), c(&p, 8), tir_result(choice), i32);
    ir_end(&p.u, op2(&p, TIR_OP_MUL, once->regions[0]->args[1], once->regions[0]->args[0]));
    keep(&p, tir_result(once));
    struct tir_inst *never = ir_for1(&p.u, c(&p, 4), c(&p, 4), c(&p, 1), p.j, i32);
    ir_end(&p.u, never->regions[0]->args[0]);
    keep(&p, tir_result(never));
    assert_int_equal(run(&p.u, tir_pass_fold), TIR_CHANGED);
    assert_ir(&p.u, fn,
              HEAD "    let v1: i32 = add(i, j);\n"
                   "    store(I[0], v1);\n"
                   "    let v2: i32 = mul(v1, i32(4));\n"
                   "    store(I[0], v2);\n"
                   "    store(I[0], j);\n"
                   "}\n");
    assert_int_equal(run(&p.u, tir_pass_fold), TIR_UNCHANGED);
    tir_context_finish(&p.u.cx);
}

static void a_condition_is_known_in_its_branches(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_func *fn = p.u.f;
    struct tir_value *cond = op2(&p, TIR_OP_LT, p.i, p.j);
    struct tir_inst *outer = tir_build(&p.u.b, TIR_OP_IF, &cond, 1, NULL, 0, 2);
    for (uint32_t r = 0; r < 2; r++) {
        p.u.b = tir_builder_at_end(fn, outer->regions[r]);
        struct tir_value *choices[] = {cond, p.i, p.j};
        keep(&p, tir_build1(&p.u.b, TIR_OP_WHERE, p.i->type, choices, 3));
        ir_end(&p.u, NULL);
    }
    struct tir_value *choices[] = {cond, p.j, p.i};
    keep(&p, tir_build1(&p.u.b, TIR_OP_WHERE, p.i->type, choices, 3));
    run(&p.u, tir_pass_fold);
    assert_ir(&p.u, fn,
              HEAD "    let v1: bool = lt(i, j);\n"
                   "    if v1 {\n"
                   "        store(I[0], i);\n"
                   "    } else {\n"
                   "        store(I[0], j);\n"
                   "    }\n"
                   "    let v2: i32 = where(v1, j, i);\n"
                   "    store(I[0], v2);\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static void unchanging_carried_values_go(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    const struct tir_type *i32 = p.i->type;
    struct tir_inst *loop = ir_for1(&p.u, c(&p, 0), p.i, c(&p, 1), p.j, i32);
    keep(&p, loop->regions[0]->args[1]);
    ir_end(&p.u, loop->regions[0]->args[1]);
    keep(&p, tir_result(loop));
    run(&p.u, tir_pass_fold);
    assert_ir(&p.u, p.u.f,
              HEAD "    for i_2: i32 in range(i32(0), i, i32(1)) {\n"
                   "        store(I[0], j);\n"
                   "    }\n"
                   "    store(I[0], j);\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static struct tir_value *cast(struct program *p, struct tir_value *v, enum tir_elem elem)
{
    const struct tir_type *t = tir_type_with_elem(p->u.cx.types, v->type, elem);
    return tir_build1(&p->u.b, TIR_OP_CAST, t, &v, 1);
}

static void cast_chains_fold_where_they_are_exact(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    keep(&p, cast(&p, cast(&p, p.x, TIR_F64), TIR_F32));  // x
    keep(&p, cast(&p, cast(&p, p.x, TIR_BF16), TIR_F32)); // rounds
    keep(&p, cast(&p, cast(&p, p.i, TIR_I64), TIR_I32));  // i
    keep(&p, cast(&p, cast(&p, p.i, TIR_F64), TIR_I32));  // i
    keep(&p, cast(&p, cast(&p, p.i, TIR_F32), TIR_I32));  // rounds
    run(&p.u, tir_pass_fold);
    run(&p.u, tir_pass_dce);
    assert_ir(&p.u, p.u.f,
              HEAD "    store(Y[0], x);\n"
                   "    let v1: bf16 = cast(x);\n"
                   "    let v2: f32 = cast(v1);\n"
                   "    store(Y[0], v2);\n"
                   "    store(I[0], i);\n"
                   "    store(I[0], i);\n"
                   "    let v3: f32 = cast(i);\n"
                   "    let v4: i32 = cast(v3);\n"
                   "    store(I[0], v4);\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static void tiles_of_one_scalar_compute_on_the_scalar(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    const struct tir_type *tile = tir_type_tile(p.u.cx.types, TIR_F32, 1, (int64_t[]){64});
    struct tir_value *b = tir_build1(&p.u.b, TIR_OP_BROADCAST, tile, &p.x, 1);
    struct tir_value *e = tir_unary(&p.u.b, TIR_OP_EXP, b);
    struct tir_value *s = tir_binary(&p.u.b, TIR_OP_MUL, e, tir_const_float(p.u.f, tile, 3));
    ir_store1(&p.u, p.f32s, tir_const_index(p.u.f, 0), 64, s);
    run(&p.u, tir_pass_clean);
    assert_ir(&p.u, p.u.f,
              HEAD "    let v1: f32 = exp(x);\n"
                   "    let v2: f32 = mul(v1, f32(3));\n"
                   "    let v3: f32[64] = broadcast(v2);\n"
                   "    store(Y[0:+64], v3);\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static void cse_finds_the_same_thing_either_way_round(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_value *a = op2(&p, TIR_OP_MUL, p.i, p.j), *b = op2(&p, TIR_OP_MUL, p.j, p.i);
    struct tir_value *d = op2(&p, TIR_OP_SUB, p.i, p.j), *e = op2(&p, TIR_OP_SUB, p.j, p.i);
    keep(&p, op2(&p, TIR_OP_ADD, a, b));
    keep(&p, op2(&p, TIR_OP_ADD, d, e));
    // Inside a block what dominates it is known; after the block what was inside is not.
    struct tir_value *cond = op2(&p, TIR_OP_LT, p.i, p.j);
    struct tir_inst *choice = tir_build(&p.u.b, TIR_OP_IF, &cond, 1, NULL, 0, 2);
    p.u.b = tir_builder_at_end(p.u.f, choice->regions[0]);
    keep(&p, op2(&p, TIR_OP_MUL, p.i, p.j));
    keep(&p, op2(&p, TIR_OP_XOR, p.i, p.j));
    ir_end(&p.u, NULL);
    p.u.b = tir_builder_at_end(p.u.f, choice->regions[1]);
    ir_end(&p.u, NULL);
    keep(&p, op2(&p, TIR_OP_XOR, p.i, p.j));
    assert_int_equal(run(&p.u, tir_pass_cse), TIR_CHANGED);
    assert_ir(&p.u, p.u.f,
              HEAD "    let v1: i32 = mul(i, j);\n"
                   "    let v2: i32 = sub(i, j);\n"
                   "    let v3: i32 = sub(j, i);\n"
                   "    let v4: i32 = add(v1, v1);\n"
                   "    store(I[0], v4);\n"
                   "    let v5: i32 = add(v2, v3);\n"
                   "    store(I[0], v5);\n"
                   "    let v6: bool = lt(i, j);\n"
                   "    if v6 {\n"
                   "        store(I[0], v1);\n"
                   "        let v7: i32 = xor(i, j);\n"
                   "        store(I[0], v7);\n"
                   "    }\n"
                   "    let v8: i32 = xor(i, j);\n"
                   "    store(I[0], v8);\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static void only_loads_from_inputs_are_shared(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_value *zero = tir_const_index(p.u.f, 0);
    const struct tir_type *f32 = p.x->type;
    for (uint32_t i = 0; i < 2; i++) {
        struct tir_value *a = ir_load1(&p.u, p.in, zero, 0, f32);
        keep(&p, op2(&p, TIR_OP_ADD, a, ir_load1(&p.u, p.f32s, zero, 0, f32)));
    }
    run(&p.u, tir_pass_cse);
    assert_ir(&p.u, p.u.f,
              HEAD "    let v1: f32 = load(A[0]);\n"
                   "    let v2: f32 = load(Y[0]);\n"
                   "    let v3: f32 = add(v1, v2);\n"
                   "    store(Y[0], v3);\n"
                   "    let v4: f32 = load(Y[0]);\n"
                   "    let v5: f32 = add(v1, v4);\n"
                   "    store(Y[0], v5);\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static void dce_looks_at_carried_values_one_by_one(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_func *fn = p.u.f;
    const struct tir_type *i32 = p.i->type;
    struct tir_value *operands[] = {c(&p, 0), p.i, c(&p, 1), p.i, p.j, p.j};
    const struct tir_type *types[] = {i32, i32, i32};
    struct tir_inst *loop = tir_build(&p.u.b, TIR_OP_FOR, operands, 6, types, 3, 1);
    struct tir_block *body = loop->regions[0];
    const char *names[] = {"t", "dead", "used", "helper"};
    for (uint32_t i = 0; i < 4; i++)
        tir_block_add_arg(fn, body, i32, names[i]);
    p.u.b = tir_builder_at_end(fn, body);
    struct tir_value *yields[] = {op2(&p, TIR_OP_ADD, body->args[1], p.j), // feeds only itself
                                  op2(&p, TIR_OP_ADD, body->args[2], body->args[3]),
                                  op2(&p, TIR_OP_XOR, body->args[3], p.j)};
    tir_build_yield(&p.u.b, yields, 3);
    p.u.b = tir_builder_at_end(fn, fn->body);
    keep(&p, loop->results[1]);
    op2(&p, TIR_OP_ADD, loop->results[2], p.i);
    assert_int_equal(run(&p.u, tir_pass_dce), TIR_CHANGED);
    assert_ir(&p.u, fn,
              HEAD "    let v1: i32, v2: i32 = for t: i32 in range(i32(0), i, i32(1)) carry "
                   "(used: i32 = j, helper: i32 = j) {\n"
                   "        let v3: i32 = add(used, helper);\n"
                   "        let v4: i32 = xor(helper, j);\n"
                   "        yield v3, v4;\n"
                   "    }\n"
                   "    store(I[0], v1);\n"
                   "}\n");
    assert_int_equal(run(&p.u, tir_pass_dce), TIR_UNCHANGED);
    tir_remove(fn->body->last); // the store
    run(&p.u, tir_pass_dce);
    assert_ir(&p.u, fn, HEAD "}\n");
    tir_context_finish(&p.u.cx);
}

static void dce_keeps_what_has_an_effect(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_inst *loop = ir_for1(&p.u, c(&p, 0), p.i, c(&p, 1), NULL, NULL);
    struct tir_value *t = op2(&p, TIR_OP_ADD, loop->regions[0]->args[0], p.j);
    op2(&p, TIR_OP_MUL, t, t);
    keep(&p, t);
    ir_end(&p.u, NULL);
    tir_build(&p.u.b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    const struct tir_type buffer = {
        .elem = TIR_F32, .space = TIR_SPACE_SHARED, .rank = 1, .shape = {8}};
    tir_build1(&p.u.b, TIR_OP_ALLOC, tir_type_get(p.u.cx.types, &buffer), NULL, 0);
    run(&p.u, tir_pass_dce);
    assert_ir(&p.u, p.u.f,
              HEAD "    for i_2: i32 in range(i32(0), i, i32(1)) {\n"
                   "        let v1: i32 = add(i_2, j);\n"
                   "        store(I[0], v1);\n"
                   "    }\n"
                   "    bar_sync();\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

static void licm_climbs_and_leaves_big_tiles(void **state)
{
    (void)state;
    struct program p;
    start(&p);
    struct tir_value *zero = tir_const_index(p.u.f, 0);
    const struct tir_type *big = tir_type_tile(p.u.cx.types, TIR_F32, 1, (int64_t[]){8192});
    const struct tir_type *small = tir_type_tile(p.u.cx.types, TIR_F32, 1, (int64_t[]){64});
    struct tir_inst *outer = ir_for1(&p.u, c(&p, 0), p.i, c(&p, 1), NULL, NULL);
    struct tir_inst *inner = ir_for1(&p.u, c(&p, 0), p.j, c(&p, 1), NULL, NULL);
    struct tir_value *a = ir_load1(&p.u, p.in, zero, 0, p.x->type);
    struct tir_value *e = tir_unary(&p.u.b, TIR_OP_EXP, a);
    struct tir_value *o = op2(&p, TIR_OP_ADD, outer->regions[0]->args[0], p.j);
    struct tir_value *s = ir_load1(&p.u, p.in, zero, 64, small);
    struct tir_value *t = ir_load1(&p.u, p.in, zero, 8192, big);
    struct tir_value *w = ir_load1(&p.u, p.f32s, zero, 0, p.x->type);
    keep(&p, e);
    keep(&p, op2(&p, TIR_OP_ADD, o, inner->regions[0]->args[0]));
    keep(&p, w);
    ir_store1(&p.u, p.f32s, zero, 64, s);
    ir_store1(&p.u, p.f32s, zero, 8192, t);
    ir_end(&p.u, NULL);
    ir_end(&p.u, NULL);
    run(&p.u, tir_pass_licm);
    assert_ir(&p.u, p.u.f,
              HEAD "    let v1: f32 = load(A[0]);\n"
                   "    let v2: f32 = exp(v1);\n"
                   "    let v3: f32[64] = load(A[0:+64]);\n"
                   "    for i_2: i32 in range(i32(0), i, i32(1)) {\n"
                   "        let v4: i32 = add(i_2, j);\n"
                   "        for i_3: i32 in range(i32(0), j, i32(1)) {\n"
                   "            let v5: f32[8192] = load(A[0:+8192]);\n"
                   "            let v6: f32 = load(Y[0]);\n"
                   "            store(Y[0], v2);\n"
                   "            let v7: i32 = add(v4, i_3);\n"
                   "            store(I[0], v7);\n"
                   "            store(Y[0], v6);\n"
                   "            store(Y[0:+64], v3);\n"
                   "            store(Y[0:+8192], v5);\n"
                   "        }\n"
                   "    }\n"
                   "}\n");
    tir_context_finish(&p.u.cx);
}

// A: f32[M, K], Y: inout f32[N]; grid(ceildiv(M, 64)) where eq(M, 128) where eq(rem(K, 8), 0).
static void start_with_host(struct program *p)
{
    struct ir_unit *u = &p->u;
    ir_unit_start(u);
    p->in = ir_tensor(u, "A", TIR_IN, TIR_F32, 2, 0, 1);
    p->f32s = ir_tensor(u, "Y", TIR_INOUT, TIR_F32, 1, 2, 0);
    ir_dims(u, (const char *[]){"M", "K", "N"}, 3);
    struct tir_func *fn = u->f;
    struct tir_builder host = tir_builder_at_end(fn, fn->host);
    struct tir_value *m = fn->dims[0].value, *k = fn->dims[1].value;
    struct tir_value *zero = tir_const_index(fn, 0);
    struct tir_value *rest = tir_binary(&host, TIR_OP_REM, k, tir_const_index(fn, 8));
    struct tir_value *gives[] = {tir_binary(&host, TIR_OP_CEILDIV, m, tir_const_index(fn, 64)),
                                 tir_binary(&host, TIR_OP_EQ, m, tir_const_index(fn, 128)),
                                 tir_binary(&host, TIR_OP_EQ, rest, zero)};
    tir_build_yield(&host, gives, 3);
    fn->grid_count = 1;
    struct tir_value *inside = tir_binary(&u->b, TIR_OP_REM, k, tir_const_index(fn, 8));
    struct tir_value *cond = tir_binary(&u->b, TIR_OP_EQ, inside, zero);
    struct tir_inst *choice = tir_build(&u->b, TIR_OP_IF, &cond, 1, NULL, 0, 2);
    u->b = tir_builder_at_end(fn, choice->regions[0]);
    ir_store1(u, p->f32s, tir_binary(&u->b, TIR_OP_MUL, m, fn->dims[2].value), 0, f(p, 1));
    ir_end(u, NULL);
    u->b = tir_builder_at_end(fn, choice->regions[1]);
    ir_store1(u, p->f32s, zero, 0, f(p, 2));
    ir_end(u, NULL);
}

static struct tir_pass_cx context(struct program *p, const struct tir_binding *known,
                                  uint32_t count)
{
    return (struct tir_pass_cx){
        .scratch = &p->u.cx.scratch, .diags = &p->u.cx.diags, .known = known, .known_count = count};
}

static void specialize_binds_what_is_given_and_demanded(void **state)
{
    (void)state;
    struct program p;
    start_with_host(&p);
    const struct tir_binding known[] = {{STR("N"), STR("100")}, {STR("other"), STR("x")}};
    struct tir_pass_cx cx = context(&p, known, 2);
    assert_int_equal(tir_pass_specialize(p.u.f, &cx), TIR_CHANGED);
    assert_true(tir_verify(p.u.f));
    assert_int_equal(tir_pass_clean(p.u.f, &cx), TIR_CHANGED);
    assert_true(tir_verify(p.u.f));
    assert_ir(&p.u, p.u.f,
              "kernel k(A: f32[128, K], Y: inout f32[100]) grid(2) where eq(rem(K, 8), 0) "
              "form(tile)\n"
              "{\n"
              "    store(Y[12800], f32(1));\n"
              "}\n");
    tir_context_finish(&p.u.cx);
}

static void specialize_refuses(const char *name, const char *value, const char *expected)
{
    struct program p;
    start_with_host(&p);
    const struct tir_binding known = {tir_str_of(name), tir_str_of(value)};
    struct tir_pass_cx cx = context(&p, &known, 1);
    assert_int_equal(tir_pass_specialize(p.u.f, &cx), TIR_FAILED);
    assert_str(p.u.cx.diags.list.at[0]->text, expected);
    tir_context_finish(&p.u.cx);
}

static void specialize_refuses_what_cannot_hold(void **state)
{
    (void)state;
    specialize_refuses("M", "100", "condition 1 of kernel k does not hold for these dimensions");
    specialize_refuses("K", "12", "condition 2 of kernel k does not hold for these dimensions");
    specialize_refuses("K", "-8", "dimension K cannot be '-8'");
    specialize_refuses("K", "99999999999999999999", "dimension K cannot be '99999999999999999999'");
}

// Runs the pipeline with these options; gives what was printed.
static const char *printed(struct program *p, struct tir_pass_options options, bool expected)
{
    struct tir_text text;
    tir_text_init(&text, &p->u.cx.arena, 0);
    options.printed = &text;
    struct tir_pass_cx cx = context(p, NULL, 0);
    assert_int_equal(tir_run_passes(p->u.f, &cx, &options), expected);
    return text.ptr ? text.ptr : "";
}

static void the_runner_stops_prints_and_leaves_out(void **state)
{
    (void)state;
    struct program p;
    start_with_host(&p);
    struct tir_pass_options options = {.bisect = -1, .stop_after = STR("clean")};
    options.print_after = STR("specialize");
    options.time = true;
    const char *text = printed(&p, options, true);
    assert_non_null(strstr(text, "// after specialize\nkernel k(A: f32[128, K]"));
    assert_null(strstr(text, "// after clean"));
    assert_non_null(strstr(text, " fold ("));
    assert_null(strstr(text, " layout ("));
    assert_int_equal(p.u.f->form, TIR_FORM_TILE);
    tir_context_finish(&p.u.cx);

    start_with_host(&p); // without fold the branch stays; so it does when no change is allowed
    options = (struct tir_pass_options){.bisect = -1, .stop_after = STR("clean")};
    options.skip = STR("fold");
    printed(&p, options, true);
    assert_non_null(strstr(tir_str_copy(&p.u.cx.arena, ir_text(&p.u, p.u.f)).ptr, "if "));
    tir_context_finish(&p.u.cx);
    start_with_host(&p);
    options = (struct tir_pass_options){.bisect = 0, .stop_after = STR("clean")};
    printed(&p, options, true);
    assert_non_null(strstr(tir_str_copy(&p.u.cx.arena, ir_text(&p.u, p.u.f)).ptr, "if "));
    tir_context_finish(&p.u.cx);
}

static void the_runner_checks_names_and_forms(void **state)
{
    (void)state;
    struct program p;
    start_with_host(&p);
    printed(&p, (struct tir_pass_options){.run = STR("fuse"), .bisect = -1}, false);
    assert_str(p.u.cx.diags.list.at[0]->text, "there is no pass fuse");
    printed(&p, (struct tir_pass_options){.run = STR("barrier"), .bisect = -1}, false);
    assert_str(p.u.cx.diags.list.at[1]->text,
               "pass barrier takes form specialized, but kernel k is in form tile");
    printed(&p, (struct tir_pass_options){.run = STR("dce"), .bisect = -1}, true);
    tir_context_finish(&p.u.cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities_hold_only_where_they_are_exact),
        cmocka_unit_test(known_branches_and_loops_go),
        cmocka_unit_test(a_condition_is_known_in_its_branches),
        cmocka_unit_test(unchanging_carried_values_go),
        cmocka_unit_test(cast_chains_fold_where_they_are_exact),
        cmocka_unit_test(tiles_of_one_scalar_compute_on_the_scalar),
        cmocka_unit_test(cse_finds_the_same_thing_either_way_round),
        cmocka_unit_test(only_loads_from_inputs_are_shared),
        cmocka_unit_test(dce_looks_at_carried_values_one_by_one),
        cmocka_unit_test(dce_keeps_what_has_an_effect),
        cmocka_unit_test(licm_climbs_and_leaves_big_tiles),
        cmocka_unit_test(specialize_binds_what_is_given_and_demanded),
        cmocka_unit_test(specialize_refuses_what_cannot_hold),
        cmocka_unit_test(the_runner_stops_prints_and_leaves_out),
        cmocka_unit_test(the_runner_checks_names_and_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
