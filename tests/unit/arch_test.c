// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of targets: every row can be found and makes sense.

#include "unit.h"

#include "machine/target.h"

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
        const struct tir_target *arch = &tir_targets[i];
        assert_true(arch->shared_per_cta > 48 << 10);
        assert_true(arch->shared_per_cta < arch->shared_per_sm);
        assert_int_equal(arch->registers_per_sm, 65536);
        assert_true(arch->features & TIR_HAS_CP_ASYNC);
        assert_memory_equal(arch->ptx, "ptx", 3);
        if (arch->features & TIR_HAS_WGMMA)
            assert_string_equal(arch->name, "sm_90a");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_target_is_found_by_its_name),
        cmocka_unit_test(unknown_targets_are_not_found),
        cmocka_unit_test(limits_are_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
