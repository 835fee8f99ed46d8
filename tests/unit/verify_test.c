// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every kind of broken program is refused with a message that names what is wrong.

#include "ir_unit.h"

// The program is wrong, and the first message has this text in it.
static void refuses(struct ir_unit *u, const char *text)
{
    assert_false(tir_verify(u->f));
    assert_true(u->cx.diags.list.len > 0);
    assert_int_equal(u->cx.diags.list.at[0]->code, TIR_E_VERIFY);
    const char *message = tir_str_copy(&u->cx.arena, u->cx.diags.list.at[0]->text).ptr;
    if (!strstr(message, text))
        fail_msg("'%s' is not in '%s'", text, message);
    tir_context_finish(&u->cx);
}

static struct tir_value *start_with_x(struct ir_unit *u)
{
    ir_unit_start(u);
    return ir_add_param(u, "x", ir_scalar(u, TIR_I32))->value;
}

static void a_sound_program_passes(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    struct tir_inst *loop =
        ir_for1(&u, tir_const_i32(u.f, 0), x, tir_const_i32(u.f, 1), x, x->type);
    ir_end(&u, tir_binary(&u.b, TIR_OP_ADD, loop->regions[0]->args[1], loop->regions[0]->args[0]));
    struct tir_builder host = tir_builder_at_end(u.f, u.f->host);
    struct tir_value *gives[] = {tir_const_index(u.f, 8), tir_binary(&host, TIR_OP_GT, x, x)};
    tir_build_yield(&host, gives, 2);
    u.f->grid_count = 1;
    assert_true(tir_verify(u.f));
    assert_int_equal(u.cx.diags.list.len, 0);
    tir_context_finish(&u.cx);
}

static void use_before_definition(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    struct tir_value *a = tir_unary(&u.b, TIR_OP_NEG, x), *b = tir_unary(&u.b, TIR_OP_NEG, a);
    tir_move_before(b->def, a->def);
    refuses(&u, "operand 0 is not defined before it is used, in: let v1: i32 = neg(v2);");
}

static void use_outside_of_the_block(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    struct tir_inst *loop =
        ir_for1(&u, tir_const_i32(u.f, 0), x, tir_const_i32(u.f, 1), NULL, NULL);
    struct tir_value *inside = tir_unary(&u.b, TIR_OP_NEG, loop->regions[0]->args[0]);
    ir_end(&u, NULL);
    tir_unary(&u.b, TIR_OP_NEG, inside);
    refuses(&u, "not defined before it is used");
}

static void a_wrong_result_type(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    struct tir_value *operands[] = {x, x};
    tir_build1(&u.b, TIR_OP_ADD, ir_scalar(&u, TIR_I64), operands, 2);
    refuses(&u, "the result is i64 where i32 follows, in: let v1: i64 = add(x, x);");
}

static void a_yield_of_the_wrong_type(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    ir_for1(&u, tir_const_i32(u.f, 0), x, tir_const_i32(u.f, 1), x, x->type);
    ir_end(&u, tir_const_index(u.f, 1));
    refuses(&u, "value 0 is yielded as i64 where i32 is needed");
}

static void a_missing_yield(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    ir_for1(&u, tir_const_i32(u.f, 0), x, tir_const_i32(u.f, 1), NULL, NULL);
    refuses(&u, "a block does not end in a yield");
}

static void missing_and_stray_attributes(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    struct tir_inst *wait = tir_build(&u.b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
    (void)wait;
    refuses(&u, "attribute groups is missing");
    x = start_with_x(&u);
    tir_set_int(u.f, tir_unary(&u.b, TIR_OP_NEG, x)->def, TIR_ATTR_axis, 0);
    refuses(&u, "neg has no attribute axis");
    start_with_x(&u);
    tir_build(&u.b, TIR_OP_IF, (struct tir_value *[]){tir_const_bool(u.f, true)}, 1, NULL, 0, 1);
    refuses(&u, "1 blocks where 2 are needed");
}

// A tiles loop over x by 8, with that cluster.
static void start_tiles(struct ir_unit *u, const int64_t *cluster, uint32_t count)
{
    ir_unit_start(u);
    struct tir_value *n = tir_const_index(u->f, 64);
    struct tir_inst *tiles = tir_build(&u->b, TIR_OP_TILES, &n, 1, NULL, 0, 1);
    tir_set_list(u->f, tiles, TIR_ATTR_by, (int64_t[]){8}, 1);
    tir_set_list(u->f, tiles, TIR_ATTR_cluster, cluster, count);
    tir_block_add_arg(u->f, tiles->regions[0], n->type, "m");
    struct tir_builder in = tir_builder_at_end(u->f, tiles->regions[0]);
    tir_build_yield(&in, NULL, 0);
}

static void clusters_of_tiles(void **state)
{
    (void)state;
    struct ir_unit u;
    start_tiles(&u, (int64_t[]){2}, 1);
    assert_true(tir_verify(u.f));
    tir_context_finish(&u.cx);
    start_tiles(&u, (int64_t[]){2, 1}, 2);
    refuses(&u, "the cluster has 2 sizes for 1 extents");
    start_tiles(&u, (int64_t[]){0}, 1);
    refuses(&u, "attribute cluster has a value that is not allowed");
}

static void directions_of_parameters(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    struct tir_value *a = ir_tensor(&u, "A", TIR_IN, TIR_F32, 1, 0, 0);
    ir_dims(&u, (const char *[]){"N"}, 1);
    ir_store1(&u, a, tir_const_index(u.f, 0), 0, tir_const_float(u.f, ir_scalar(&u, TIR_F32), 1));
    refuses(&u, "A is an input and is written");
}

static void layouts_from_laid_out_on(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    struct tir_value *a = ir_tensor(&u, "A", TIR_IN, TIR_F32, 1, 0, 0);
    ir_dims(&u, (const char *[]){"N"}, 1);
    const struct tir_type *tile = tir_type_tile(u.cx.types, TIR_F32, 1, (int64_t[]){128});
    ir_load1(&u, a, tir_const_index(u.f, 0), 128, tile);
    assert_true(tir_verify(u.f));
    u.f->form = TIR_FORM_LAID_OUT;
    refuses(&u, "f32[128] has no layout in form laid_out");

    ir_unit_start(&u);
    a = ir_tensor(&u, "A", TIR_IN, TIR_F32, 1, 0, 0);
    ir_dims(&u, (const char *[]){"N"}, 1);
    tile = tir_type_tile(u.cx.types, TIR_F32, 1, (int64_t[]){128});
    const struct tir_layout *l = tir_layout_blocked(u.cx.types, 1, (int64_t[]){128},
                                                    (uint32_t[]){0}, (uint32_t[]){0}, 1, 1, 4);
    tile = tir_type_with_layout(u.cx.types, tile, l);
    ir_load1(&u, a, tir_const_index(u.f, 0), 128, tile);
    u.f->form = TIR_FORM_LAID_OUT;
    u.f->threads = 128;
    assert_true(tir_verify(u.f));
    u.f->threads = 256;
    refuses(&u, "is not spread over the 256 threads");
}

// A tile has its own register for each element, and a buffer no lanes.
static void layouts_are_of_threads_or_of_memory(void **state)
{
    (void)state;
    const int64_t shape[] = {32, 2};
    for (uint32_t stride = 1; stride <= 2; stride++) {
        struct ir_unit u;
        ir_unit_start(&u);
        const struct tir_iter iters[] = {{32, 1, TIR_AXIS_LANE}, {2, stride, TIR_AXIS_REG}};
        const struct tir_type *t =
            tir_type_with_layout(u.cx.types, tir_type_tile(u.cx.types, TIR_I64, 2, shape),
                                 tir_layout_from_iters(u.cx.types, 2, shape, iters, 2, NULL, 0, 0));
        struct tir_value *zero = tir_const_index(u.f, 0);
        tir_build1(&u.b, TIR_OP_BROADCAST, t, &zero, 1);
        u.f->form = TIR_FORM_LAID_OUT;
        u.f->threads = 32;
        if (stride > 1) {
            refuses(&u, "is not spread over the 32 threads");
            continue;
        }
        assert_true(tir_verify(u.f));
        struct tir_type buffer = *t;
        buffer.space = TIR_SPACE_SHARED;
        tir_build1(&u.b, TIR_OP_ALLOC, tir_type_get(u.cx.types, &buffer), NULL, 0);
        refuses(&u, "does not lie in memory");
    }
}

static void forms_remove_operations(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    struct tir_value *a = ir_tensor(&u, "A", TIR_IN, TIR_F32, 1, 0, 0);
    ir_dims(&u, (const char *[]){"N"}, 1);
    ir_load1(&u, a, tir_const_index(u.f, 0), 0, ir_scalar(&u, TIR_F32));
    u.f->form = TIR_FORM_LOWERED;
    refuses(&u, "load may not appear in form lowered");
}

static void the_host_block_is_arithmetic(void **state)
{
    (void)state;
    struct ir_unit u;
    struct tir_value *x = start_with_x(&u);
    struct tir_value *inside = tir_unary(&u.b, TIR_OP_NEG, x);
    struct tir_builder host = tir_builder_at_end(u.f, u.f->host);
    tir_build_yield(&host, &inside, 1);
    u.f->grid_count = 1;
    refuses(&u, "not defined before it is used");
    x = start_with_x(&u);
    host = tir_builder_at_end(u.f, u.f->host);
    tir_build_yield(&host, &x, 1);
    u.f->grid_count = 1;
    refuses(&u, "value 0 of the host block is i32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_program_passes),
        cmocka_unit_test(use_before_definition),
        cmocka_unit_test(use_outside_of_the_block),
        cmocka_unit_test(a_wrong_result_type),
        cmocka_unit_test(a_yield_of_the_wrong_type),
        cmocka_unit_test(a_missing_yield),
        cmocka_unit_test(clusters_of_tiles),
        cmocka_unit_test(missing_and_stray_attributes),
        cmocka_unit_test(directions_of_parameters),
        cmocka_unit_test(layouts_from_laid_out_on),
        cmocka_unit_test(layouts_are_of_threads_or_of_memory),
        cmocka_unit_test(forms_remove_operations),
        cmocka_unit_test(the_host_block_is_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
