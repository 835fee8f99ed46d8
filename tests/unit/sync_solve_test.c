// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's solver against all numbers tried one by one, on small problems that are drawn, some
// of them with products, squares among them.

#include "unit.h"

#include "pass/sync_check/solve.h"

enum { PROBLEMS = 20000, UNKNOWNS = 3, FIRST = -2, LAST = 6 };

static uint64_t state_of_draw = 20261123;

static int64_t draw(int64_t low, int64_t high)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state_of_draw >> 33) % (uint64_t)(high - low + 1));
}

static void relate(struct sync_problem *q)
{
    struct sync_linear form = tir_sync_constant(draw(-6, 6));
    for (uint32_t i = 0; i < UNKNOWNS; i++)
        form.by[i] = draw(0, 2) ? draw(-3, 3) : 0;
    tir_sync_relate(q, &form, draw(0, 3) == 0);
}

// A product of two forms is a constant, another form, or less than that.
static void relate_product(struct sync_problem *q)
{
    struct sync_linear x = tir_sync_single((uint32_t)draw(0, UNKNOWNS - 1));
    struct sync_linear y = tir_sync_single((uint32_t)draw(0, UNKNOWNS - 1));
    x.constant = draw(-2, 3);
    y.constant = draw(0, 1);
    struct sync_linear product = tir_sync_product(q, &x, &y);
    struct sync_linear rest =
        draw(0, 1) ? tir_sync_single((uint32_t)draw(0, UNKNOWNS - 1)) : tir_sync_constant(0);
    rest.constant = draw(-6, 30);
    rest = tir_sync_add(q, &rest, &product, -1);
    tir_sync_relate(q, &rest, draw(0, 2) > 0);
}

// Quotients of two forms by one divisor: x == by * quotient + rest, rest < by. Quotients are
// products' factors, so they are compared with each other and with a number.
static void relate_quotients(struct sync_problem *q)
{
    struct sync_linear by = tir_sync_single((uint32_t)draw(0, UNKNOWNS - 1));
    by.constant = draw(0, 3);
    struct sync_linear one = tir_sync_constant(1), positive = tir_sync_add(q, &by, &one, -1);
    tir_sync_relate(q, &positive, false);
    for (int64_t i = draw(1, 2); i > 0; i--) {
        struct sync_linear quotient = tir_sync_single((uint32_t)draw(0, UNKNOWNS - 1));
        quotient.constant = draw(0, 1);
        struct sync_linear product = tir_sync_product(q, &by, &quotient);
        struct sync_linear x = tir_sync_constant(draw(0, 12));
        for (uint32_t k = 0; k < UNKNOWNS; k++)
            x.by[k] = draw(0, 2) ? 0 : draw(-1, 2);
        struct sync_linear rest = tir_sync_add(q, &x, &product, -1);
        struct sync_linear most = tir_sync_add(q, &positive, &rest, -1);
        tir_sync_relate(q, &rest, false);
        tir_sync_relate(q, &most, false);
    }
}

static void compute_products(const struct sync_problem *q, int64_t *numbers)
{
    for (uint32_t i = 0; i < q->product_count; i++)
        numbers[q->products[i].unknown] = tir_sync_at(q, &q->products[i].factors[0], numbers) *
                                          tir_sync_at(q, &q->products[i].factors[1], numbers);
}

static bool holds(const struct sync_problem *q, const int64_t *numbers)
{
    for (uint32_t i = 0; i < q->relation_count; i++) {
        int64_t x = tir_sync_at(q, &q->relations[i].form, numbers);
        if (q->relations[i].equal ? x != 0 : x < 0)
            return false;
    }
    return true;
}

// How many solutions a problem has, and between what the form is for them.
static uint32_t count_solutions(const struct sync_problem *q, const struct sync_linear *form,
                                int64_t *low, int64_t *high)
{
    uint32_t count = 0;
    int64_t n[SYNC_UNKNOWNS] = {0};
    *low = INT64_MAX;
    *high = INT64_MIN;
    for (n[0] = FIRST; n[0] <= LAST; n[0]++)
        for (n[1] = FIRST; n[1] <= LAST; n[1]++)
            for (n[2] = FIRST; n[2] <= LAST; n[2]++) {
                compute_products(q, n);
                if (!holds(q, n))
                    continue;
                int64_t x = tir_sync_at(q, form, n);
                *low = TIR_MIN(*low, x);
                *high = TIR_MAX(*high, x);
                count++;
            }
    return count;
}

// Bounds are asked for as relations come, so they are narrowed step by step.
static void check_bounds(struct sync_problem *q)
{
    struct sync_linear form = tir_sync_constant(draw(-5, 5));
    for (uint32_t i = 0; i < UNKNOWNS; i++)
        form.by[i] = draw(-3, 3);
    int64_t low, high, least, most;
    tir_sync_bounds(q, &form, &low, &high);
    if (!count_solutions(q, &form, &least, &most))
        return;
    assert_true(low <= least && most <= high);
    if (!q->relation_count && form.by[0] && !form.by[1] && !form.by[2])
        assert_true(low == least && high == most);
}

static void what_is_solved_holds(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct sync_problem *q = arena_new(&arena, struct sync_problem);
    uint32_t solved = 0, never = 0;
    for (uint32_t i = 0; i < PROBLEMS; i++) {
        int64_t numbers[SYNC_UNKNOWNS], low, high;
        tir_sync_clear(q);
        for (uint32_t k = 0; k < UNKNOWNS; k++)
            tir_sync_unknown(q, FIRST, LAST, draw(FIRST, LAST));
        for (int64_t more = draw(0, 5); more >= 0; more--) {
            check_bounds(q);
            if (i % 2 && draw(0, 2) == 0)
                relate_product(q);
            else if (i % 4 > 1 && draw(0, 1))
                relate_quotients(q);
            else
                relate(q);
        }
        check_bounds(q);
        struct sync_linear none = tir_sync_constant(0);
        bool any = count_solutions(q, &none, &low, &high) > 0;
        enum sync_answer answer = tir_sync_solve(q, &arena, numbers);
        assert_true(answer != (any ? SYNC_NEVER : SYNC_SOLVED));
        if (answer == SYNC_SOLVED) {
            int64_t by_hand[SYNC_UNKNOWNS];
            memcpy(by_hand, numbers, sizeof by_hand);
            compute_products(q, by_hand);
            assert_memory_equal(by_hand, numbers, q->count * sizeof *numbers);
            assert_true(holds(q, numbers));
        }
        for (uint32_t k = 0; k < UNKNOWNS && answer == SYNC_SOLVED; k++)
            assert_true(FIRST <= numbers[k] && numbers[k] <= LAST);
        solved += answer == SYNC_SOLVED;
        never += answer == SYNC_NEVER;
    }
    assert_true(solved > PROBLEMS / 4 && never > PROBLEMS / 4);
    assert_true(PROBLEMS - solved - never < PROBLEMS / 100); // little was left unsolved
    tir_arena_finish(&arena);
}

// y * (x + 2) == y + 15 with x == y - 2 z + 1: the product goes with y, and not with x + 2, which z
// moves too. x, y and z are 2, 5 and 2.
static void products_go_with_one_factor(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct sync_problem *q = arena_new(&arena, struct sync_problem);
    static const int64_t relations[][5] = {// of x, y, z and the product; a constant
                                           {0, 2, 2, 0, -5}, {-1, 2, 0, 0, -5}, {3, 0, 0, 0, -1},
                                           {-3, 2, 0, 0, 4}, {1, -1, 2, 0, -1}, {0, 1, 0, -1, 15}};
    int64_t numbers[SYNC_UNKNOWNS];
    tir_sync_clear(q);
    for (uint32_t i = 0; i < UNKNOWNS; i++)
        tir_sync_unknown(q, FIRST, LAST, LAST - 1);
    struct sync_linear x = tir_sync_single(0), y = tir_sync_single(1);
    x.constant = 2;
    tir_sync_product(q, &x, &y);
    for (uint32_t i = 0; i < TIR_COUNT_OF(relations); i++) {
        struct sync_linear form = tir_sync_constant(relations[i][4]);
        memcpy(form.by, relations[i], 4 * sizeof *form.by);
        tir_sync_relate(q, &form, i >= 4);
    }
    assert_int_equal(tir_sync_solve(q, &arena, numbers), SYNC_SOLVED);
    assert_true(numbers[0] == 2 && numbers[1] == 5 && numbers[2] == 2 && numbers[3] == 20);
    tir_arena_finish(&arena);
}

// x == by * quotient + rest
static struct sync_linear quotient_of(struct sync_problem *q, struct sync_linear x,
                                      struct sync_linear by)
{
    struct sync_linear quotient =
        tir_sync_single(tir_sync_unknown(q, -SYNC_INFINITY, SYNC_INFINITY, 1));
    struct sync_linear product = tir_sync_product(q, &by, &quotient), one = tir_sync_constant(1);
    struct sync_linear rest = tir_sync_add(q, &x, &product, -1);
    struct sync_linear more = tir_sync_add(q, &by, &rest, -1);
    tir_sync_relate(q, &rest, false);
    more = tir_sync_add(q, &more, &one, -1);
    tir_sync_relate(q, &more, false);
    return quotient;
}

// Sizes that are large and wanted large: their numbers alone are too many to try.
static struct sync_linear size(struct sync_problem *q)
{
    return tir_sync_single(tir_sync_unknown(q, 1, INT32_MAX, 12345));
}

// What is `more` at least.
static void at_least(struct sync_problem *q, struct sync_linear x, struct sync_linear y,
                     int64_t more)
{
    struct sync_linear way = tir_sync_add(q, &x, &y, -1);
    way.constant -= more;
    tir_sync_relate(q, &way, false);
}

// For all sizes: s * c / s == c; x >= y makes x / s >= y / s; x / s < (x + s) / s; and that s * n
// is at least n. Each is denied.
static void common_factors_are_seen(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct sync_problem *q = arena_new(&arena, struct sync_problem);
    for (uint32_t which = 0; which < 6; which++) {
        int64_t numbers[SYNC_UNKNOWNS];
        tir_sync_clear(q);
        struct sync_linear s = size(q), c = size(q), x = size(q), y = size(q);
        struct sync_linear product = tir_sync_product(q, &s, &c);
        struct sync_linear next = tir_sync_add(q, &x, &s, 1);
        switch (which) {
        case 0:
            at_least(q, quotient_of(q, product, s), c, 1);
            break;
        case 1:
            at_least(q, c, quotient_of(q, product, s), 1);
            break;
        case 2:
            at_least(q, x, y, 0);
            at_least(q, quotient_of(q, y, s), quotient_of(q, x, s), 1);
            break;
        case 3:
            at_least(q, quotient_of(q, x, s), quotient_of(q, next, s), 0);
            break;
        case 4:
            at_least(q, quotient_of(q, next, s), quotient_of(q, x, s), 2);
            break;
        default:
            at_least(q, c, product, 1);
            break;
        }
        assert_int_equal(tir_sync_solve(q, &arena, numbers), SYNC_NEVER);
    }
    tir_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_solved_holds),
        cmocka_unit_test(products_go_with_one_factor),
        cmocka_unit_test(common_factors_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
