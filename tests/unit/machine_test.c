// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tables of targets and products: every row can be found and makes sense.

#include "unit.h"

#include "ir/crew.h"
#include "machine/budget.h"
#include "machine/product.h"

#include <stdlib.h>

static void every_target_is_found_by_its_name(void **state)
{
    (void)state;
    assert_true(tir_target_count >= 7);
    for (uint32_t i = 0; i < tir_target_count; i++)
        assert_ptr_equal(tir_target_find(tir_str_of(tir_targets[i].name)), &tir_targets[i]);
}

static void unknown_targets_are_not_found(void **state)
{
    (void)state;
    assert_null(tir_target_find(STR("sm_8")));
    assert_null(tir_target_find(STR("sm_80 ")));
    assert_null(tir_target_find(STR("")));
}

static void limits_are_consistent(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < tir_target_count; i++) {
        const struct tir_target *target = &tir_targets[i];
        assert_true(target->shared_per_cta > 48 << 10);
        assert_true(target->shared_per_cta < target->shared_per_sm);
        assert_int_equal(target->registers_per_sm, 65536);
        assert_true(target->features & TIR_HAS_CP_ASYNC);
        assert_in_range(target->ptx, 80, 99);
        assert_int_equal(strtoul(target->name + 3, NULL, 10), target->capability);
        if (target->features & TIR_HAS_WGMMA)
            assert_string_equal(target->name, "sm_90a");
    }
}

// One instruction takes 32 bytes of K, whatever the elements, and its kind is called as they are.
static void products_are_consistent(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (uint32_t engine = 0; engine < TIR_ENGINE_COUNT; engine++)
        for (uint32_t elem = 1; elem < TIR_ELEM_COUNT; elem++)
            for (uint32_t acc = 1; acc < TIR_ELEM_COUNT; acc++) {
                const struct tir_product *p = tir_product_find(engine, elem, elem, acc);
                if (!p)
                    continue;
                found++;
                // 32 bytes of a row; of f64, whose registers are twice as wide, 64.
                assert_int_equal(p->depth * tir_elems[elem].bits, elem == TIR_F64 ? 512 : 256);
                assert_string_equal(tir_words[p->kind].name, tir_elems[elem].name);
                assert_int_equal(tir_dot_elem(elem, elem, acc), acc);
                const struct tir_product *first = tir_product_of_kind(engine, p->kind);
                assert_int_equal(first->depth, p->depth);
                assert_int_equal(first->feature, p->feature);
            }
    assert_true(found > 0);
}

// Of two elements that multiply, each has a product with the other, of the same depth and sums, and
// its word for B.
static void products_of_two_elements(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (uint32_t a = 1; a < TIR_ELEM_COUNT; a++)
        for (uint32_t b = 1; b < TIR_ELEM_COUNT; b++) {
            assert_int_equal(tir_elems_multiply(a, b), tir_elems_multiply(b, a));
            if (a == b || !tir_elems_multiply(a, b))
                continue;
            found++;
            assert_string_equal(tir_words[tir_b_kind(a, b)].name, tir_elems[b].name);
            const enum tir_elem acc = tir_elem_is_float(a) ? TIR_F32 : TIR_I32;
            assert_int_equal(tir_dot_elem(a, b, acc), acc);
            for (uint32_t engine = 0; engine < TIR_ENGINE_COUNT; engine++) {
                const struct tir_product *p = tir_product_find(engine, a, b, acc);
                const struct tir_product *q = tir_product_find(engine, b, a, acc);
                assert_non_null(p);
                assert_int_equal(p->depth, q->depth);
                assert_int_equal(p->feature, q->feature);
                assert_true(tir_kind_takes(p->kind, tir_b_kind(a, b)));
                assert_false(tir_kind_takes(TIR_WORD_kind_f16, tir_b_kind(a, b)));
            }
        }
    assert_int_equal(found, 4); // fp8 and bytes, in both orders
}

// setmaxnreg takes multiples of 8 from 24 to 256, and waits for ever for registers that nobody has.
static void role_registers_are_those_of_the_launch(void **state)
{
    (void)state;
    // Warpgroups beside those of the products (0: as many), and for how many of these rows exist.
    static const struct {
        uint32_t load, least, most;
    } works[] = {
        [TIR_ROLE_COPIES] = {1, 2, 3},      [TIR_ROLE_TURNS] = {1, 2, 3},
        [TIR_ROLE_TURN_MANY] = {0, 2, 3},   [TIR_ROLE_COMPUTES] = {0, 2, 3},
        [TIR_ROLE_ISSUES] = {1, 2, 3},      [TIR_ROLE_ARRANGES] = {1, 2, 3},
        [TIR_ROLE_ISSUE_MANY] = {2, 1, 2},  [TIR_ROLE_GATHERS] = {2, 1, 3},
        [TIR_ROLE_GATHER_MANY] = {3, 1, 2}, [TIR_ROLE_GATHER_MOST] = {4, 1, 1},
    };
    for (uint32_t groups = 1; groups <= TIR_BUDGET_PRODUCT_GROUPS; groups++)
        for (uint32_t work = 0; work < TIR_COUNT_OF(works); work++) {
            const struct tir_role_registers has =
                tir_role_registers(groups, (enum tir_role_work)work);
            const uint32_t load = works[work].load ? works[work].load : groups;
            const uint32_t all = load + groups;
            if (groups < works[work].least || groups > works[work].most) {
                assert_int_equal(has.math, 0);
                continue;
            }
            assert_in_range(has.load, 24, 256);
            assert_in_range(has.math, 24, 256);
            assert_int_equal(has.load % 8 + has.math % 8, 0);
            assert_true(load * has.load + groups * has.math <=
                        all * tir_launch_registers(all * 128));
        }
    assert_int_equal(tir_role_registers(TIR_BUDGET_PRODUCT_GROUPS + 1, TIR_ROLE_COPIES).math, 0);
}

// The fewer bits the faster, but for f64: a 16th of bf16's rate on an H200, a 64th on a B200.
static void products_a_cycle_follow_from_bits(void **state)
{
    (void)state;
    for (uint32_t card = 0; card < TIR_CARD_COUNT; card++) {
        const struct tir_cost *cost = &tir_costs[card];
        assert_int_equal(tir_products_a_cycle(cost, TIR_BF16), cost->products);
        assert_int_equal(tir_products_a_cycle(cost, TIR_F16), cost->products);
        assert_int_equal(tir_products_a_cycle(cost, TIR_TF32), cost->products / 2);
        assert_int_equal(tir_products_a_cycle(cost, TIR_I8), cost->products * 2);
        assert_int_equal(tir_products_a_cycle(cost, TIR_E4M3), cost->products * 2);
        assert_int_equal(tir_products_a_cycle(cost, TIR_E2M1), cost->products * 2);
        assert_in_range(tir_products_a_cycle(cost, TIR_F64), cost->products / 64,
                        cost->products / 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_target_is_found_by_its_name),
        cmocka_unit_test(unknown_targets_are_not_found),
        cmocka_unit_test(limits_are_consistent),
        cmocka_unit_test(products_are_consistent),
        cmocka_unit_test(products_of_two_elements),
        cmocka_unit_test(role_registers_are_those_of_the_launch),
        cmocka_unit_test(products_a_cycle_follow_from_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
