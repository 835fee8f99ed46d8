// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The op table, building, constants, walking, copying, inference and printing.

#include "ir_unit.h"

#include "ir/effect.h"
#include "ir/walk.h"

#include <math.h>

static bool is_name(const char *s)
{
    if (!s || !*s)
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '_'))
            return false;
    return true;
}

static void check_operands(const struct tir_op_info *op)
{
    uint32_t fixed = 0, refs = 0, lists = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        assert_true(is_name(op->operands[i].name));
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(op->operands[i].name, op->operands[j].name);
        refs += op->operands[i].kind == TIR_OPERAND_REF;
        lists += op->operands[i].kind == TIR_OPERAND_LIST;
        // Optional operands are written by name: no attribute may have that name.
        if (op->operands[i].kind == TIR_OPERAND_OPT)
            for (uint32_t key = 0; key < TIR_ATTR_COUNT; key++)
                assert_string_not_equal(op->operands[i].name, tir_attr_infos[key].name);
        if (op->operands[i].kind == TIR_OPERAND_LIST)
            assert_int_equal(i, op->operand_count - 1);
        fixed +=
            op->operands[i].kind != TIR_OPERAND_REF && op->operands[i].kind != TIR_OPERAND_LIST;
    }
    assert_int_equal(fixed, op->fixed_count);
    assert_int_equal(refs, op->has_ref);
    assert_int_equal(lists, op->has_list);
    assert_true(refs + lists <= 1); // what follows the fixed operands must be told apart
}

static void the_op_table_is_sound(void **state)
{
    (void)state;
    const uint32_t effects = TIR_WRITES | TIR_ASYNC | TIR_SYNC;
    for (uint32_t i = 0; i < TIR_OP_COUNT; i++) {
        const struct tir_op_info *op = &tir_ops[i];
        assert_true(is_name(op->name));
        assert_int_equal(tir_op_by_name(tir_str_of(op->name)), i); // so names differ
        assert_true(strlen(op->meaning) > 1);
        check_operands(op);
        for (uint32_t a = 0; a < op->attr_count; a++)
            for (uint32_t b = 0; b < a; b++)
                assert_true(op->attrs[a].key != op->attrs[b].key);
        assert_false((op->traits & TIR_PURE) && (op->traits & (effects | TIR_READS)));
        if (op->traits & TIR_COMMUTES)
            assert_int_equal(op->operand_count, 2);
        assert_int_equal(op->rule == TIR_RULE_NONE, op->result_count == 0);
    }
    for (uint32_t i = 0; i < TIR_ATTR_COUNT; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(tir_attr_infos[i].name, tir_attr_infos[j].name);
    for (uint32_t i = 1; i < TIR_WORD_COUNT; i++)
        assert_int_equal(tir_word_by_name(tir_words[i].key, tir_str_of(tir_words[i].name)), i);
    for (uint32_t i = 0; i < TIR_FORM_COUNT; i++)
        assert_int_equal(tir_form_by_name(tir_str_of(tir_form_name((enum tir_form)i))), i);
    assert_int_equal(tir_op_by_name(STR("no_such_op")), TIR_OP_COUNT);
    assert_int_equal(tir_word_by_name(TIR_ATTR_mode, STR("sum")), TIR_WORD_NONE);
}

// What ends later, and what passes may not move across other accesses, says so twice.
static void effects_agree_with_traits(void **state)
{
    (void)state;
    static const struct {
        enum tir_op op;
        enum tir_access access;
        enum tir_done done;
    } rows[] = {
#define DONE(...)
#define EFFECT(op, way, operand, access, proxy, done) \
    {TIR_OP_##op, TIR_ACCESS_##access, TIR_DONE_##done},
#include "ir/effect.def"
    };
    bool ends_later[TIR_OP_COUNT] = {false};
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++) {
        const uint32_t traits = tir_ops[rows[i].op].traits;
        const bool is_own =
            rows[i].access == TIR_ACCESS_EXCHANGE; // scratch, which nobody else sees
        assert_true(tir_has_effects(rows[i].op));
        ends_later[rows[i].op] |= rows[i].done != TIR_DONE_NOW;
        if (!is_own && rows[i].access != TIR_ACCESS_READ)
            assert_true(traits & TIR_WRITES);
        if (rows[i].access == TIR_ACCESS_UPDATE)
            assert_true(traits & TIR_READS);
    }
    for (uint32_t op = 0; op < TIR_OP_COUNT; op++)
        if (tir_ops[op].last_form != TIR_FORM_LOWERED)
            assert_int_equal(ends_later[op], (tir_ops[op].traits & TIR_ASYNC) != 0);
}

static void equal_types_and_constants_are_one_pointer(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    assert_ptr_equal(ir_tile(&u, TIR_F32, 8, 4), ir_tile(&u, TIR_F32, 8, 4));
    assert_ptr_not_equal(ir_tile(&u, TIR_F32, 8, 4), ir_tile(&u, TIR_F32, 4, 8));
    assert_ptr_not_equal(ir_tile(&u, TIR_F32, 8, 4), ir_tile(&u, TIR_F16, 8, 4));
    assert_int_equal(tir_type_bytes(ir_tile(&u, TIR_BF16, 8, 4)), 64);
    assert_int_equal(tir_type_bytes(ir_tile(&u, TIR_E2M1, 8, 4)), 32);

    const struct tir_type *f32 = ir_scalar(&u, TIR_F32), *u8 = ir_scalar(&u, TIR_U8);
    assert_ptr_equal(tir_const_float(u.f, f32, 0.1), tir_const_float(u.f, f32, (double)0.1f));
    assert_ptr_not_equal(tir_const_float(u.f, f32, 0.0), tir_const_float(u.f, f32, -0.0));
    assert_ptr_equal(tir_const_int(u.f, u8, 300), tir_const_int(u.f, u8, 44));
    assert_ptr_equal(tir_const_float(u.f, f32, (double)NAN),
                     tir_const_float(u.f, f32, -(double)NAN));
    assert_ptr_not_equal(tir_const_index(u.f, 3), tir_const_i32(u.f, 3));
    tir_context_finish(&u.cx);
}

// The kernel of docs/language.md in IR form.
static void build_gemm(struct ir_unit *u)
{
    ir_unit_start(u);
    struct tir_value *a = ir_tensor(u, "A", TIR_IN, TIR_BF16, 2, 0, 1);
    struct tir_value *b = ir_tensor(u, "B", TIR_IN, TIR_BF16, 2, 2, 1);
    struct tir_value *d = ir_tensor(u, "D", TIR_OUT, TIR_BF16, 2, 0, 2);
    ir_dims(u, (const char *[]){"M", "K", "N"}, 3);
    struct tir_func *f = u->f;
    struct tir_value *m_dim = f->dims[0].value, *k_dim = f->dims[1].value;
    struct tir_value *extents[] = {m_dim, f->dims[2].value};
    struct tir_inst *tiles = tir_build(&u->b, TIR_OP_TILES, extents, 2, NULL, 0, 1);
    tir_set_list(f, tiles, TIR_ATTR_by, (int64_t[]){64, 32}, 2);
    tir_set_int(f, tiles, TIR_ATTR_group, 8);
    tir_set_word(f, tiles, TIR_ATTR_order, TIR_WORD_order_grouped);
    struct tir_value *m = tir_block_add_arg(f, tiles->regions[0], ir_scalar(u, TIR_I64), "m");
    struct tir_value *n = tir_block_add_arg(f, tiles->regions[0], ir_scalar(u, TIR_I64), "n");
    u->b = tir_builder_at_end(f, tiles->regions[0]);
    const struct tir_type *acc = ir_tile(u, TIR_F32, 64, 32);
    struct tir_inst *loop = ir_for1(u, tir_const_index(f, 0), k_dim, tir_const_index(f, 16),
                                    tir_const_float(f, acc, 0), acc);
    tir_set_int(f, loop, TIR_ATTR_stages, 3);
    struct tir_value *k = loop->regions[0]->args[0];
    struct tir_value *at = ir_load2(u, a, m, 64, k, 16, ir_tile(u, TIR_BF16, 64, 16));
    at->name = "a";
    struct tir_value *bt = ir_load2(u, b, n, 32, k, 16, ir_tile(u, TIR_BF16, 32, 16));
    struct tir_value *bp = tir_build1(&u->b, TIR_OP_PERMUTE, ir_tile(u, TIR_BF16, 16, 32), &bt, 1);
    tir_set_list(f, bp->def, TIR_ATTR_permutation, (int64_t[]){1, 0}, 2);
    struct tir_value *ops[TIR_DOT_OPERANDS] = {at, bp, loop->regions[0]->args[1]};
    struct tir_value *sum = tir_build1(&u->b, TIR_OP_DOT, acc, ops, TIR_DOT_OPERANDS);
    sum->name = "acc";
    ir_end(u, sum);
    struct tir_value *r =
        tir_build1(&u->b, TIR_OP_CAST, ir_tile(u, TIR_BF16, 64, 32), loop->results, 1);
    r->name = "dot"; // an operation's name
    ir_store2(u, d, m, 64, n, 32, r);
    ir_end(u, NULL);
}

static const char *const gemm_text =
    "kernel k(A: bf16[M, K], B: bf16[N, K], D: out bf16[M, N]) form(tile)\n"
    "{\n"
    "    tiles (m, n) in (M by 64, N by 32) group(8) order(grouped) {\n"
    "        let v1: f32[64, 32] = for i: i64 in range(0, K, 16) carry (acc: f32[64, 32] = "
    "f32[64, 32](0)) stages(3) {\n"
    "            let a: bf16[64, 16] = load(A[m:+64, i:+16]);\n"
    "            let v2: bf16[32, 16] = load(B[n:+32, i:+16]);\n"
    "            let v3: bf16[16, 32] = permute(v2, permutation = [1, 0]);\n"
    "            let acc_2: f32[64, 32] = dot(a, v3, acc);\n"
    "            yield acc_2;\n"
    "        }\n"
    "        let dot_2: bf16[64, 32] = cast(v1);\n"
    "        store(D[m:+64, n:+32], dot_2);\n"
    "    }\n"
    "}\n";

static void a_gemm_prints_as_tir(void **state)
{
    (void)state;
    struct ir_unit u;
    build_gemm(&u);
    assert_ir(&u, u.f, gemm_text);
    tir_context_finish(&u.cx);
}

static void a_clone_prints_the_same_and_shares_nothing(void **state)
{
    (void)state;
    struct ir_unit u;
    build_gemm(&u);
    struct tir_func *copy = tir_func_clone(u.f);
    assert_ir(&u, copy, gemm_text);
    tir_foreach_inst(inst, copy) {
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *v = inst->operands[i];
            tir_foreach_inst(old, u.f)
                for (uint32_t j = 0; j < old->operand_count; j++)
                    assert_true(!v || v != old->operands[j]);
        }
    }
    tir_remove(copy->body->first);
    assert_ir(&u, u.f, gemm_text);
    tir_context_finish(&u.cx);
}

static void the_rest_of_the_grammar(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    struct tir_value *y = ir_tensor(&u, "Y", TIR_INOUT, TIR_F32, 1, 0, -1);
    struct tir_value *s = ir_add_param(&u, "s", ir_scalar(&u, TIR_F32))->value;
    ir_dims(&u, (const char *[]){"N"}, 1);
    struct tir_func *f = u.f;
    struct tir_value *n = f->dims[0].value;
    struct tir_builder host = tir_builder_at_end(f, f->host);
    struct tir_value *gives[] = {
        tir_binary(&host, TIR_OP_CEILDIV, n, tir_const_index(f, 256)),
        tir_binary(&host, TIR_OP_EQ, tir_binary(&host, TIR_OP_REM, n, tir_const_index(f, 4)),
                   tir_const_index(f, 0)),
        tir_binary(&host, TIR_OP_GT, s, tir_const_float(f, s->type, -0.0))};
    tir_build_yield(&host, gives, 3);
    f->grid_count = 1;
    f->threads = 256;
    f->facts = TIR_FACT_INDEX32 | TIR_FACT_UNIT_INNER;
    f->form = TIR_FORM_SYNCED;
    f->shared_bytes = 4096;
    f->metas = &(struct tir_meta){"BN", STR("256")};
    f->meta_count = 1;

    const struct tir_type *i32 = ir_scalar(&u, TIR_I32), *f32 = ir_scalar(&u, TIR_F32);
    struct tir_value *tid = tir_build1(&u.b, TIR_OP_TID, i32, NULL, 0);
    struct tir_value *c = tir_binary(&u.b, TIR_OP_LT, tid, tir_const_i32(f, 7));
    struct tir_inst *choice =
        tir_build(&u.b, TIR_OP_IF, &c, 1, (const struct tir_type *[]){f32, i32}, 2, 2);
    u.b = tir_builder_at_end(f, choice->regions[0]);
    tir_build_yield(&u.b, (struct tir_value *[]){s, tid}, 2);
    u.b = tir_builder_at_end(f, choice->regions[1]);
    tir_build_yield(&u.b, (struct tir_value *[]){tir_const_float(f, f32, 0.1), tid}, 2);
    u.b = tir_builder_at_end(f, f->body);
    struct tir_inst *loop = tir_build(&u.b, TIR_OP_WHILE, &choice->results[1], 1, &i32, 1, 2);
    struct tir_value *going = tir_block_add_arg(f, loop->regions[0], i32, "i");
    struct tir_value *inside = tir_block_add_arg(f, loop->regions[1], i32, "i");
    struct tir_builder b0 = tir_builder_at_end(f, loop->regions[0]);
    struct tir_value *on = tir_binary(&b0, TIR_OP_GT, going, tir_const_i32(f, 0));
    tir_build_yield(&b0, &on, 1);
    struct tir_builder b1 = tir_builder_at_end(f, loop->regions[1]);
    struct tir_value *half = tir_binary(&b1, TIR_OP_SHR, inside, tir_const_i32(f, 1));
    tir_build_yield(&b1, &half, 1);
    const struct tir_type *big = tir_type_tile(u.cx.types, TIR_F32, 1, (int64_t[]){256});
    struct tir_value *operands[] = {tir_const_float(f, f32, -INFINITY), NULL, y,
                                    tir_const_index(f, 0)};
    struct tir_inst *load = tir_build(&u.b, TIR_OP_LOAD, operands, 4, &big, 1, 0);
    tir_set_list(f, load, TIR_ATTR_box, (int64_t[]){256}, 1);
    const struct tir_type *one = tir_type_tile(u.cx.types, TIR_F32, 1, (int64_t[]){1});
    struct tir_inst *reduce = tir_build(
        &u.b, TIR_OP_REDUCE, (struct tir_value *[]){tir_result(load), NULL}, 2, &one, 1, 1);
    tir_set_int(f, reduce, TIR_ATTR_axis, 0);
    tir_set_word(f, reduce, TIR_ATTR_kind, TIR_WORD_kind_user);
    struct tir_value *a = tir_block_add_arg(f, reduce->regions[0], f32, "a");
    struct tir_value *b = tir_block_add_arg(f, reduce->regions[0], f32, "a");
    struct tir_builder br = tir_builder_at_end(f, reduce->regions[0]);
    struct tir_value *sum = tir_binary(&br, TIR_OP_ADD, a, b);
    tir_build_yield(&br, &sum, 1);
    ir_store1(&u, y, tir_const_index(f, -3), 256, tir_const_float(f, big, 0.5));
    struct tir_value *st[] = {y, tid, c, s, choice->results[0]};
    struct tir_inst *machine = tir_build(&u.b, TIR_OP_ST, st, 5, NULL, 0, 0);
    tir_set_int(f, machine, TIR_ATTR_width, 8);
    tir_set_int(f, machine, TIR_ATTR_offset, 16);
    struct tir_inst *ptx = tir_build(&u.b, TIR_OP_PTX, &tid, 1, NULL, 0, 0);
    tir_set_text(f, ptx, TIR_ATTR_text, STR("say \"hi\" \\ $0;\n"));
    assert_ir(&u, f,
              "kernel k(Y: inout f32[N], s: f32) grid(ceildiv(N, 256)) where eq(rem(N, 4), 0) "
              "where gt(s, f32(-0.0)) threads(256) meta(BN = 256) form(synced) facts(index32, "
              "unit_inner) shared(4096)\n"
              "{\n"
              "    let v1: i32 = tid();\n"
              "    let v2: bool = lt(v1, i32(7));\n"
              "    let v3: f32, v4: i32 = if v2 {\n"
              "        yield s, v1;\n"
              "    } else {\n"
              "        yield f32(0.1), v1;\n"
              "    }\n"
              "    let v5: i32 = while carry (i: i32 = v4) {\n"
              "        let v6: bool = gt(i, i32(0));\n"
              "        yield v6;\n"
              "    } do {\n"
              "        let v7: i32 = shr(i, i32(1));\n"
              "        yield v7;\n"
              "    }\n"
              "    let v8: f32[256] = load(Y[0:+256], pad = f32(-inf));\n"
              "    let v9: f32[1] = reduce(v8, axis = 0, kind = user) with (a: f32, a_2: f32) {\n"
              "        let v10: f32 = add(a, a_2);\n"
              "        yield v10;\n"
              "    }\n"
              "    store(Y[-3:+256], f32[256](0.5));\n"
              "    st(Y, v1, s, v3, pred = v2, offset = 16, width = 8);\n"
              "    ptx(v1, text = \"say \\\"hi\\\" \\\\ $0;\\n\");\n"
              "}\n");
    tir_context_finish(&u.cx);
}

static void walking_is_program_order(void **state)
{
    (void)state;
    struct ir_unit u;
    build_gemm(&u);
    const enum tir_op expected[] = {TIR_OP_TILES,   TIR_OP_FOR,  TIR_OP_LOAD,  TIR_OP_LOAD,
                                    TIR_OP_PERMUTE, TIR_OP_DOT,  TIR_OP_YIELD, TIR_OP_CAST,
                                    TIR_OP_STORE,   TIR_OP_YIELD};
    uint32_t at = 0;
    tir_foreach_inst(inst, u.f) {
        assert_int_equal(inst->op, expected[at]);
        at++;
    }
    assert_int_equal(at, TIR_COUNT_OF(expected));
    struct tir_inst *tiles = u.f->body->first, *loop = tiles->regions[0]->first;
    assert_int_equal(tir_walk_skip(u.f->body, loop)->op, TIR_OP_CAST);
    assert_null(tir_walk_skip(u.f->body, tiles));
    assert_true(tir_block_contains(tiles->regions[0], loop->regions[0]->first));
    assert_false(tir_block_contains(loop->regions[0], tiles));
    uint32_t *uses = tir_count_uses(u.m->arena, u.f);
    assert_int_equal(uses[tiles->regions[0]->args[0]->id], 2); // m: a load and the store
    assert_int_equal(uses[loop->results[0]->id], 1);
    assert_true(tir_has_effect(tiles));
    assert_false(tir_has_effect(loop));
    tir_context_finish(&u.cx);
}

static void replacing_follows_chains(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    struct tir_value *x = ir_add_param(&u, "x", ir_scalar(&u, TIR_I32))->value;
    struct tir_value *a = tir_unary(&u.b, TIR_OP_NEG, x), *b = tir_unary(&u.b, TIR_OP_NEG, a);
    struct tir_value *c = tir_binary(&u.b, TIR_OP_ADD, b, a);
    struct tir_map map;
    tir_map_init(&map, u.m->arena);
    tir_map_set(&map, tir_map_key(b), a);
    tir_map_set(&map, tir_map_key(a), x);
    tir_replace_uses_map(u.f, &map);
    assert_ptr_equal(c->def->operands[0], x);
    assert_ptr_equal(c->def->operands[1], x);
    tir_replace_uses(u.f, x, tir_const_i32(u.f, 2));
    assert_ptr_equal(c->def->operands[1], tir_const_i32(u.f, 2));
    tir_move_before(c->def, a->def);
    assert_ptr_equal(u.f->body->first, c->def);
    assert_ptr_equal(u.f->body->last, b->def);
    tir_context_finish(&u.cx);
}

// Asks for the type of op over operands; returns its text, or the reason in brackets.
static const char *infer(struct ir_unit *u, enum tir_op op, struct tir_value **operands,
                         uint32_t count, const struct tir_type *stated)
{
    struct tir_inst inst = {.op = op, .operands = operands, .operand_count = count};
    tir_str why = {0};
    const struct tir_type *t = tir_infer(u->m, &inst, stated, &why);
    if (t)
        return tir_type_text(u->m->arena, t).ptr;
    return tir_str_format(u->m->arena, "(" STR_FMT ")", STR_ARG(why)).ptr;
}

static void inference_says_why_not(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    struct tir_value *x = ir_add_param(&u, "x", ir_scalar(&u, TIR_I32))->value;
    struct tir_value *y = ir_add_param(&u, "y", ir_scalar(&u, TIR_F32))->value;
    struct tir_value *t = tir_const_float(u.f, ir_tile(&u, TIR_F32, 8, 4), 1);
    struct tir_value *h = tir_const_float(u.f, ir_tile(&u, TIR_BF16, 4, 8), 1);
    struct tir_value *g = tir_const_float(u.f, ir_tile(&u, TIR_BF16, 8, 4), 1);
    struct tir_value *sum = tir_const_float(u.f, ir_tile(&u, TIR_F32, 4, 4), 1);
    struct tir_value *tensor = ir_tensor(&u, "A", TIR_IN, TIR_F32, 2, 0, 0);
    struct tir_value *xx[] = {x, x}, *xy[] = {x, y}, *tt[] = {t, t},
                     *dot[] = {h, g, sum, NULL, NULL};
    struct tir_value *bad_dot[] = {h, h, sum, NULL, NULL}, *gone[] = {x, NULL};
    struct tir_value *sa = tir_const_float(u.f, ir_tile(&u, TIR_UE8M0, 4, 2), 1);
    struct tir_value *sb = tir_const_float(u.f, ir_tile(&u, TIR_UE8M0, 2, 4), 1);
    struct tir_value *q = tir_const_int(u.f, ir_tile(&u, TIR_U8, 4, 4), 1);
    struct tir_value *scaled[] = {h, g, sum, sa, sb}, *half_scaled[] = {h, g, sum, sa, NULL};
    struct tir_value *turned_scales[] = {h, g, sum, sa, sa}, *wrong_scales[] = {h, g, sum, sb, sb},
                     *packed[] = {q, g, sum, sa, sb};
    assert_string_equal(infer(&u, TIR_OP_ADD, xx, 2, NULL), "i32");
    assert_string_equal(infer(&u, TIR_OP_LT, tt, 2, NULL), "bool[8, 4]");
    assert_string_equal(infer(&u, TIR_OP_ADD, xy, 2, NULL), "(operands are i32 and f32)");
    assert_string_equal(infer(&u, TIR_OP_EXP, xx, 1, NULL), "(operand x cannot be i32)");
    assert_string_equal(infer(&u, TIR_OP_ADD, gone, 2, NULL), "(operand b is missing)");
    assert_string_equal(infer(&u, TIR_OP_ADD, xx, 1, NULL), "(1 operands)");
    assert_string_equal(infer(&u, TIR_OP_ADD, &tensor, 1, NULL), "(1 operands)");
    assert_string_equal(infer(&u, TIR_OP_NEG, &tensor, 1, NULL),
                        "(operand x cannot be tensor f32[_, _])");
    assert_string_equal(infer(&u, TIR_OP_DOT, dot, 5, NULL), "f32[4, 4]");
    assert_string_equal(infer(&u, TIR_OP_DOT, bad_dot, 5, NULL),
                        "(bf16[4, 8] and bf16[4, 8] do not multiply)");
    assert_string_equal(infer(&u, TIR_OP_DOT, scaled, 5, NULL), "f32[4, 4]");
    assert_string_equal(infer(&u, TIR_OP_DOT, packed, 5, NULL), "f32[4, 4]"); // two e2m1 in a u8
    assert_string_equal(infer(&u, TIR_OP_DOT, half_scaled, 5, NULL),
                        "(scales of the first and of the second factor go together)");
    assert_string_equal(infer(&u, TIR_OP_DOT, wrong_scales, 5, NULL),
                        "(the scales are ue8m0[2, 4] and ue8m0[2, 4] for bf16[4, 8] and "
                        "bf16[8, 4]: each row of the first has scales for equal parts of its 8 "
                        "elements, and each column of the second)");
    assert_string_equal(infer(&u, TIR_OP_DOT, turned_scales, 5, NULL),
                        "(the scales of the second are ue8m0[4, 2] where [2, 4] is needed: "
                        "transpose them)");
    assert_string_equal(infer(&u, TIR_OP_CAST, &t, 1, NULL), "(the result type must be stated)");
    assert_string_equal(infer(&u, TIR_OP_CAST, &t, 1, h->type),
                        "(f32[8, 4] is cast to bf16[4, 8])");
    assert_string_equal(infer(&u, TIR_OP_BROADCAST, &y, 1, t->type), "f32[8, 4]");
    assert_string_equal(infer(&u, TIR_OP_BROADCAST, &x, 1, t->type),
                        "(i32 cannot be repeated as f32[8, 4])");
    tir_context_finish(&u.cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_op_table_is_sound),
        cmocka_unit_test(effects_agree_with_traits),
        cmocka_unit_test(equal_types_and_constants_are_one_pointer),
        cmocka_unit_test(a_gemm_prints_as_tir),
        cmocka_unit_test(a_clone_prints_the_same_and_shares_nothing),
        cmocka_unit_test(the_rest_of_the_grammar),
        cmocka_unit_test(walking_is_program_order),
        cmocka_unit_test(replacing_follows_chains),
        cmocka_unit_test(inference_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
