// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hash map: insertion order, replacement, awkward keys; and FNV-1a's published values.

#include "unit.h"

#include "base/map.h"

static int values[4096];

static void absent_keys_give_null(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_map map;
    tir_map_init(&map, &arena);
    assert_null(tir_map_get(&map, 0));
    tir_map_set(&map, 0, &values[0]);
    assert_ptr_equal(tir_map_get(&map, 0), &values[0]);
    assert_null(tir_map_get(&map, 1));
    assert_null(tir_map_get(&map, UINT64_MAX));
    tir_arena_finish(&arena);
}

static void fill(uint64_t (*key)(uint32_t i))
{
    struct tir_arena arena = unit_arena();
    struct tir_map map;
    tir_map_init(&map, &arena);
    for (uint32_t i = 0; i < TIR_COUNT_OF(values); i++)
        tir_map_set(&map, key(i), &values[i]);
    assert_int_equal(map.count, TIR_COUNT_OF(values));
    for (uint32_t i = 0; i < TIR_COUNT_OF(values); i++) {
        assert_ptr_equal(tir_map_get(&map, key(i)), &values[i]);
        assert_true(map.entries[i].key == key(i)); // insertion order
    }
    tir_arena_finish(&arena);
}

static uint64_t high_bits(uint32_t i)
{
    return (uint64_t)i << 52;
}

static uint64_t descending(uint32_t i)
{
    return UINT64_MAX - i;
}

static uint64_t pointers(uint32_t i)
{
    return tir_map_key(&values[i]);
}

static void all_kinds_of_keys(void **state)
{
    (void)state;
    fill(high_bits);
    fill(descending);
    fill(pointers);
}

static void setting_again_replaces_in_place(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_map map;
    tir_map_init(&map, &arena);
    for (uint32_t i = 0; i < 8; i++) // a full table
        tir_map_set(&map, i, &values[i]);
    tir_map_set(&map, 3, &values[100]);
    assert_int_equal(map.count, 8);
    assert_ptr_equal(tir_map_get(&map, 3), &values[100]);
    assert_true(map.entries[3].key == 3);
    tir_map_set(&map, 4, NULL);
    assert_null(tir_map_get(&map, 4));
    tir_arena_finish(&arena);
}

static void places_stay(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    struct tir_map map;
    tir_map_init(&map, &arena);
    for (uint32_t i = 0; i < 100; i++) { // the table grows several times
        assert_int_equal(tir_map_place(&map, 7 * i), i);
        assert_null(tir_map_get(&map, 7 * i));
        map.entries[i].value = &values[i];
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(tir_map_place(&map, 7 * i), i);
        assert_ptr_equal(tir_map_get(&map, 7 * i), &values[i]);
    }
    assert_int_equal(map.count, 100);
    tir_arena_finish(&arena);
}

static void hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(tir_hash_bytes("", 0, 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(tir_hash_bytes("a", 1, 0) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(tir_hash_bytes("foobar", 6, 0) == UINT64_C(0x85944171f73967e8));
    assert_true(tir_hash_bytes("a", 1, 1) != tir_hash_bytes("a", 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_keys_give_null),
        cmocka_unit_test(all_kinds_of_keys),
        cmocka_unit_test(setting_again_replaces_in_place),
        cmocka_unit_test(places_stay),
        cmocka_unit_test(hash_is_fnv_1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
