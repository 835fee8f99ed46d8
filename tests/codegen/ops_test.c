// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every scalar operation on every element type compiles for every target, and ptxas takes the
// result.

#include "codegen.h"

#include "pass/lower/lower.h"
#include "target/nvptx/emit.h"

#include <stdio.h>

static bool in_class(const struct tir_op_info *op, enum tir_elem elem)
{
    switch (op->elems) {
    case TIR_CLASS_ANY:
        return true;
    case TIR_CLASS_NUM:
        return elem != TIR_BOOL;
    case TIR_CLASS_FLOAT:
        return tir_elem_is_float(elem);
    case TIR_CLASS_INT:
        return tir_elem_is_int(elem);
    case TIR_CLASS_BITS:
        return !tir_elem_is_float(elem);
    }
    return false;
}

static bool computes(enum tir_op op, enum tir_elem elem)
{
    return !(op == TIR_OP_REM && elem == TIR_F64);
}

static struct tir_value *load_at(struct ir_unit *u, const char *name, enum tir_elem elem)
{
    struct tir_value *base = vector(u, name, TIR_IN, elem);
    struct tir_value *size = tir_const_i32(u->f, (int32_t)tir_elems[elem].bits / 8);
    struct tir_value *at = op2(u, TIR_OP_MUL, op0(u, TIR_OP_TID), size);
    return build_ld(u, base, at, 0, NULL, elem, 1)->results[0];
}

static void store_at(struct ir_unit *u, struct tir_value *value)
{
    enum tir_elem elem = value->type->elem;
    struct tir_value *base = vector(u, "O", TIR_OUT, elem);
    struct tir_value *size = tir_const_i32(u->f, (int32_t)tir_elems[elem].bits / 8);
    build_st(u, base, op2(u, TIR_OP_MUL, op0(u, TIR_OP_TID), size), 0, NULL, &value, 1);
}

static const char *kernel_name(struct ir_unit *u, const char *a, const char *b, const char *c)
{
    return tir_str_format(&u->cx.arena, "%s_%s_%s", a, b, c).ptr;
}

static void build_elementwise(struct ir_unit *u, enum tir_op op, enum tir_elem elem)
{
    static const char *const names[] = {"X", "Y", "Z"};
    add_kernel(u, kernel_name(u, tir_ops[op].name, tir_elems[elem].name, "k"), 32);
    struct tir_value *in[3];
    for (uint32_t i = 0; i < tir_ops[op].operand_count; i++)
        in[i] = load_at(u, names[i], op == TIR_OP_WHERE && i == 0 ? TIR_BOOL : elem);
    bool compare = op >= TIR_OP_EQ && op <= TIR_OP_GE;
    store_at(u, tir_build1(&u->b, op, ir_scalar(u, compare ? TIR_BOOL : elem), in,
                           tir_ops[op].operand_count));
}

static void compile_everywhere(struct ir_unit *u)
{
    for (uint32_t i = 0; i < tir_target_count; i++) {
        tir_str ptx = compile_for(u, tir_targets[i].name);
        // Two with the most different features; the rest differ from them by feature bits only.
        if (i == 0 || i + 1 == tir_target_count)
            assemble(u, tir_targets[i].name, ptx);
    }
}

static void every_elementwise_operation_compiles(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    u.m->funcs.len = 0;
    for (int op = TIR_OP_ADD; op <= TIR_OP_WHERE; op++)
        for (int elem = TIR_BOOL; elem < TIR_ELEM_COUNT; elem++)
            if (tir_ops[op].last_form == TIR_FORM_LOWERED &&
                in_class(&tir_ops[op], (enum tir_elem)elem) &&
                computes((enum tir_op)op, (enum tir_elem)elem))
                build_elementwise(&u, (enum tir_op)op, (enum tir_elem)elem);
    assert_true(u.m->funcs.len > 400);
    compile_everywhere(&u);
    tir_context_finish(&u.cx);
}

static void every_cast_compiles(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    u.m->funcs.len = 0;
    for (int from = TIR_BOOL; from < TIR_ELEM_COUNT; from++)
        for (int to = TIR_BOOL; to < TIR_ELEM_COUNT; to++) {
            add_kernel(&u, kernel_name(&u, "cast", tir_elems[from].name, tir_elems[to].name), 32);
            store_at(&u, cast(&u, load_at(&u, "X", (enum tir_elem)from), (enum tir_elem)to));
        }
    compile_everywhere(&u);
    tir_context_finish(&u.cx);
}

static void add_atomic(struct ir_unit *u, enum tir_word kind, enum tir_elem elem)
{
    add_kernel(u, kernel_name(u, "atom", tir_words[kind].name, tir_elems[elem].name), 32);
    struct tir_value *value = load_at(u, "X", elem);
    struct tir_value *base = vector(u, "T", TIR_INOUT, elem);
    struct tir_value *operands[] = {base, tir_const_i32(u->f, 64), value, NULL,
                                    kind == TIR_WORD_kind_cas ? value : NULL};
    for (int guarded = 0; guarded < 2; guarded++) {
        if (guarded)
            operands[3] = op2(u, TIR_OP_LT, op0(u, TIR_OP_TID), tir_const_i32(u->f, 5));
        const struct tir_type *type = value->type;
        struct tir_inst *atom = tir_build(&u->b, TIR_OP_ATOM, operands, 5, &type, 1, 0);
        tir_set_word(u->f, atom, TIR_ATTR_kind, kind);
        if (guarded) // with the fences of both sides
            tir_set_word(u->f, atom, TIR_ATTR_ordering, TIR_WORD_ordering_acq_rel);
        if (guarded)
            store_at(u, atom->results[0]);
    }
}

static void every_atomic_compiles(void **state)
{
    (void)state;
    static const enum tir_word kinds[] = {
        TIR_WORD_kind_add, TIR_WORD_kind_min, TIR_WORD_kind_max,      TIR_WORD_kind_and,
        TIR_WORD_kind_or,  TIR_WORD_kind_xor, TIR_WORD_kind_exchange, TIR_WORD_kind_cas};
    struct ir_unit u;
    ir_unit_start(&u);
    u.m->funcs.len = 0;
    for (uint32_t k = 0; k < TIR_COUNT_OF(kinds); k++)
        for (int elem = TIR_I8; elem <= TIR_F64; elem++) {
            bool bits_only = (k >= 3 && k <= 5) || kinds[k] == TIR_WORD_kind_cas;
            if (tir_elem_is_float((enum tir_elem)elem) &&
                (bits_only || tir_elems[elem].bits < 16 || elem == TIR_TF32))
                continue;
            add_atomic(&u, kinds[k], (enum tir_elem)elem);
        }
    compile_everywhere(&u);
    tir_context_finish(&u.cx);
}

// A new operation without an emitter is found here, not by the first kernel that has it.
static void every_machine_operation_has_an_emitter(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < TIR_OP_COUNT; op++) {
        bool is_lowered = tir_ops[op].last_form == TIR_FORM_LOWERED;
        if (is_lowered != (tir_emitter_of(op) != NULL))
            fail_msg("%s: %s", tir_ops[op].name,
                     is_lowered ? "no emitter (emit.c)"
                                : "an emitter, though it is no machine operation");
    }
}

// Likewise an operation on tiles that nothing lowers.
static void every_operation_on_tiles_is_lowered(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < TIR_OP_COUNT; op++)
        if (tir_ops[op].last_form == TIR_FORM_SYNCED && !tir_lowering_of(op))
            fail_msg("%s: no lowering (pass/lower/tile.c)", tir_ops[op].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_elementwise_operation_compiles),
        cmocka_unit_test(every_cast_compiles),
        cmocka_unit_test(every_atomic_compiles),
        cmocka_unit_test(every_machine_operation_has_an_emitter),
        cmocka_unit_test(every_operation_on_tiles_is_lowered),
    };
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
