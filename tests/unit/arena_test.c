// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arena: alignment, zeroing, savepoints, and every allocation failing in turn.

#include "unit.h"

#include "alloc.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static void objects_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    unsigned char *last = NULL;
    for (size_t size = 0; size < 300; size++) {
        unsigned char *p = tir_arena_alloc(&arena, size);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        assert_ptr_not_equal(p, last);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
        last = p;
    }
    tir_arena_finish(&arena);
}

static void large_objects_get_their_own_chunk(void **state)
{
    (void)state;
    struct counting counting = {.countdown = -1};
    tir_allocator allocator = counting_allocator(&counting);
    struct tir_arena arena;
    tir_arena_init(&arena, &allocator, unit_out_of_memory, NULL);
    char *small = tir_arena_alloc(&arena, 10);
    char *large = tir_arena_alloc(&arena, 5 << 20);
    small[9] = 'a';
    large[0] = large[(5 << 20) - 1] = 'b';
    assert_true(counting.live > 5 << 20);
    tir_arena_finish(&arena);
    assert_int_equal(counting.live, 0);
}

static void released_memory_is_zeroed_when_used_again(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    int *kept = arena_new(&arena, int);
    *kept = 7;
    struct tir_arena_mark mark = tir_arena_mark(&arena);
    char *first = tir_arena_alloc(&arena, 100);
    memset(first, 'x', 100);
    tir_arena_release(&arena, mark);
    char *again = tir_arena_alloc(&arena, 100);
    assert_ptr_equal(first, again);
    assert_int_equal(again[99], 0);
    assert_int_equal(*kept, 7);
    tir_arena_finish(&arena);
}

static void release_frees_newer_chunks(void **state)
{
    (void)state;
    struct counting counting = {.countdown = -1};
    tir_allocator allocator = counting_allocator(&counting);
    struct tir_arena arena;
    tir_arena_init(&arena, &allocator, unit_out_of_memory, NULL);
    struct tir_arena_mark empty = tir_arena_mark(&arena);
    tir_arena_alloc(&arena, 1);
    size_t one_chunk = counting.live;
    struct tir_arena_mark mark = tir_arena_mark(&arena);
    for (int i = 0; i < 1000; i++)
        tir_arena_alloc(&arena, 4096);
    assert_true(counting.live > one_chunk);
    tir_arena_release(&arena, mark);
    assert_int_equal(counting.live, one_chunk);
    tir_arena_release(&arena, empty);
    assert_int_equal(counting.live, 0);
    tir_arena_alloc(&arena, 1);
    tir_arena_finish(&arena);
    assert_int_equal(counting.live, 0);
}

// Only under AddressSanitizer: what is not an object is poisoned.
static void overruns_and_released_objects_are_poisoned(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    struct tir_arena arena = unit_arena();
    char *kept = tir_arena_alloc(&arena, 1);
    struct tir_arena_mark mark = tir_arena_mark(&arena);
    char *p = tir_arena_alloc(&arena, 13);
    assert_false(__asan_address_is_poisoned(p + 12));
    assert_true(__asan_address_is_poisoned(p + 13));
    assert_true(__asan_address_is_poisoned(p + 31));
    tir_arena_release(&arena, mark);
    assert_true(__asan_address_is_poisoned(p));
    assert_false(__asan_address_is_poisoned(kept));
    tir_arena_finish(&arena);
#else
    skip();
#endif
}

static void copy_of_nothing_is_not_null(void **state)
{
    (void)state;
    struct tir_arena arena = unit_arena();
    assert_non_null(tir_arena_copy(&arena, NULL, 0));
    assert_memory_equal(tir_arena_copy(&arena, "abc", 4), "abc", 4);
    tir_arena_finish(&arena);
}

static void jump(void *user)
{
    longjmp(*(jmp_buf *)user, 1);
}

// True: the work ended at the hook.
static bool runs_out(const tir_allocator *allocator, void (*work)(struct tir_arena *arena))
{
    jmp_buf boundary;
    struct tir_arena arena;
    tir_arena_init(&arena, allocator, jump, &boundary);
    if (setjmp(boundary)) {
        tir_arena_finish(&arena);
        return true;
    }
    work(&arena);
    tir_arena_finish(&arena);
    return false;
}

static void allocate_many(struct tir_arena *arena)
{
    for (int i = 0; i < 100; i++)
        tir_arena_alloc(arena, 32 << 10);
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    int failed = 0;
    for (int n = 1;; n++) {
        struct counting counting = {.countdown = n};
        tir_allocator allocator = counting_allocator(&counting);
        bool out = runs_out(&allocator, allocate_many);
        assert_int_equal(counting.live, 0);
        if (!out)
            break;
        failed++;
    }
    assert_in_range(failed, 3, 100);
}

static void allocate_too_much(struct tir_arena *arena)
{
    volatile size_t all = SIZE_MAX; // as a size that no compiler knows
    tir_arena_alloc(arena, all);
}

static void allocate_overflowing_array(struct tir_arena *arena)
{
    tir_arena_alloc_array(arena, SIZE_MAX / 8 + 2, 8);
}

static void impossible_sizes_end_at_the_hook(void **state)
{
    (void)state;
    assert_true(runs_out(NULL, allocate_too_much));
    assert_true(runs_out(NULL, allocate_overflowing_array));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_aligned_zeroed_and_apart),
        cmocka_unit_test(large_objects_get_their_own_chunk),
        cmocka_unit_test(released_memory_is_zeroed_when_used_again),
        cmocka_unit_test(release_frees_newer_chunks),
        cmocka_unit_test(overruns_and_released_objects_are_poisoned),
        cmocka_unit_test(copy_of_nothing_is_not_null),
        cmocka_unit_test(every_allocation_can_fail),
        cmocka_unit_test(impossible_sizes_end_at_the_hook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
