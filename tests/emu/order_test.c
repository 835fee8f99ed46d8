// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views and shadow records on their own: no kernel runs here.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/check/race.h"

enum { WARPS = 4 };

struct bench {
    struct emu_arena arena;
    struct emu_trap trap;
    tir_error error;
    struct emu_order order;
    struct emu_race race;
    struct emu_domain domains[2]; // of one CTA each
    struct emu_agent agents[2][WARPS];
    struct emu_race_map map;
    struct emu_conflict last;
    uint32_t conflicts;
};

static void found(void *user, const struct emu_conflict *conflict)
{
    struct bench *b = user;
    b->last = *conflict;
    b->conflicts++;
}

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->trap.error = &b->error;
    b->arena.trap = &b->trap;
    emu_order_init(&b->order, &b->arena);
    b->race = (struct emu_race){.arena = &b->arena, .check_lanes = true, .found = found, .user = b};
    b->map = (struct emu_race_map){.address = 0x1000, .size = 5000};
    for (uint32_t d = 0; d < 2; d++) {
        assert_true(emu_domain_start(&b->order, &b->domains[d], 1, WARPS, 70 + d));
        for (uint32_t i = 0; i < WARPS; i++)
            emu_agent_start(&b->agents[d][i], &b->domains[d], i);
    }
}

static void close_bench(struct bench *b)
{
    emu_arena_free(&b->arena);
}

// Conflicts that an access finds.
static uint32_t access_as(struct bench *b, struct emu_agent *a, uint32_t lanes, uint64_t offset,
                          uint64_t size, bool writes, uint32_t what)
{
    const struct emu_who who = emu_who_agent(a);
    b->conflicts = 0;
    emu_race_access(&b->race, &who, lanes, &b->map, offset, size, writes, what);
    return b->conflicts;
}

static uint32_t load(struct bench *b, struct emu_agent *a, uint64_t offset, uint64_t size)
{
    return access_as(b, a, 1, offset, size, false, emu_record_what(1, EMU_PROXY_GENERIC, 0, 0));
}

static uint32_t store(struct bench *b, struct emu_agent *a, uint64_t offset, uint64_t size)
{
    return access_as(b, a, 1, offset, size, true, emu_record_what(2, EMU_PROXY_GENERIC, 0, 0));
}

static void barrier(struct bench *b, uint32_t domain)
{
    struct emu_view view = {0};
    emu_view_clear(&view, &b->domains[domain]);
    for (uint32_t i = 0; i < WARPS; i++)
        emu_order_release(&b->agents[domain][i], &view);
    for (uint32_t i = 0; i < WARPS; i++)
        emu_order_acquire(&b->agents[domain][i], &view);
}

static void barriers_order(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *a = b.agents[0];
    assert_int_equal(store(&b, &a[0], 0, 4), 0);
    assert_int_equal(load(&b, &a[0], 0, 4), 0);
    barrier(&b, 0);
    assert_int_equal(load(&b, &a[1], 0, 4), 0);
    assert_int_equal(store(&b, &a[2], 0, 4), 1); // the load comes neither before nor after
    assert_false(b.last.before_writes);
    assert_int_equal(b.last.before.uid, a[1].uid);
    barrier(&b, 0);
    assert_int_equal(load(&b, &a[3], 0, 4), 0);
    assert_int_equal(store(&b, &a[0], 4, 4), 0); // other bytes
    assert_int_equal(load(&b, &a[1], 4, 4), 1);
    assert_true(b.last.before_writes);
    assert_int_equal(b.last.kind, EMU_CONFLICT_ORDER);
    close_bench(&b);
}

// A write that knows one reader may not know another.
static void every_reader_counts(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *a = b.agents[0];
    for (uint32_t i = 0; i < WARPS; i++)
        assert_int_equal(load(&b, &a[i], 16, 16), 0);
    assert_int_equal(store(&b, &a[0], 16, 16), WARPS - 1);
    assert_int_equal(store(&b, &a[0], 16, 16), 0); // said once
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < WARPS; i++)
            assert_int_equal(load(&b, &b.agents[k][i], 2048, 4), 0);
    assert_int_equal(store(&b, &a[3], 2048, 4), 2 * WARPS - 1);
    close_bench(&b);
}

// Granules are cut finer where an access needs it, and what they held stays.
static void bytes(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *a = b.agents[0];
    assert_int_equal(store(&b, &a[0], 32, 16), 0);
    assert_int_equal(load(&b, &a[1], 48, 16), 0);
    assert_int_equal(load(&b, &a[2], 48, 16), 0);
    assert_int_equal(store(&b, &a[1], 47, 1), 1);
    assert_int_equal(store(&b, &a[1], 64, 1), 0);
    assert_int_equal(store(&b, &a[2], 65, 1), 0);
    assert_int_equal(load(&b, &a[3], 64, 2), 2);
    assert_int_equal(store(&b, &a[0], 50, 2), 2 * 2); // two readers of each byte
    assert_int_equal(store(&b, &a[0], 1020, 8), 0);   // over the end of a page
    assert_int_equal(load(&b, &a[1], 1023, 2), 2);
    close_bench(&b);
}

static void flags(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *x = &b.agents[0][1], *y = &b.agents[1][2], *z = &b.agents[1][3];
    store(&b, x, 0, 4);
    emu_order_flag_store(x, 0x500, EMU_STRONG, EMU_SCOPE_GPU); // releases nothing
    emu_order_flag_load(y, 0x500, EMU_STRONG | EMU_ACQUIRE, EMU_SCOPE_GPU);
    assert_int_equal(load(&b, y, 0, 4), 1);
    emu_order_flag_store(x, 0x500, EMU_STRONG | EMU_RELEASE, EMU_SCOPE_GPU);
    emu_order_flag_load(y, 0x500, EMU_STRONG, EMU_SCOPE_GPU);
    const uint32_t other = emu_record_what(7, EMU_PROXY_GENERIC, 0, 0); // told once a place
    assert_int_equal(access_as(&b, y, 1, 0, 4, false, other), 1);       // the fence is missing
    emu_order_fence_memory(y, EMU_ACQUIRE, EMU_SCOPE_GPU);
    assert_int_equal(load(&b, y, 0, 4), 0);
    // A chain over an atomic by another thread.
    emu_order_flag_atomic(z, 0x500, EMU_STRONG | EMU_ACQUIRE, EMU_SCOPE_GPU);
    assert_int_equal(load(&b, z, 0, 4), 0);
    // What is stored after the release is not covered, and a scope must reach.
    store(&b, x, 8, 4);
    emu_order_flag_load(y, 0x500, EMU_STRONG | EMU_ACQUIRE, EMU_SCOPE_GPU);
    assert_int_equal(access_as(&b, y, 1, 8, 4, false, other), 1);
    emu_order_fence_memory(x, EMU_RELEASE, EMU_SCOPE_CTA);
    emu_order_flag_store(x, 0x600, EMU_STRONG, EMU_SCOPE_SYS);
    emu_order_flag_load(y, 0x600, EMU_STRONG | EMU_ACQUIRE, EMU_SCOPE_SYS);
    assert_int_equal(load(&b, y, 8, 4), 1);
    emu_order_flag_load(&b.agents[0][0], 0x600, EMU_STRONG | EMU_ACQUIRE, EMU_SCOPE_CTA);
    assert_int_equal(load(&b, &b.agents[0][0], 8, 4), 0);
    close_bench(&b);
}

static void strong_accesses(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *x = &b.agents[0][1], *y = &b.agents[1][2], *z = &b.agents[0][0];
    const uint32_t gpu = emu_record_what(5, EMU_PROXY_GENERIC, EMU_STRONG, EMU_SCOPE_GPU);
    const uint32_t cta = emu_record_what(5, EMU_PROXY_GENERIC, EMU_STRONG, EMU_SCOPE_CTA);
    assert_int_equal(access_as(&b, x, 1, 0, 4, true, gpu), 0);
    assert_int_equal(access_as(&b, y, 1, 0, 4, true, gpu), 0);
    assert_int_equal(access_as(&b, z, 1, 0, 4, true, cta), 1); // y is outside of its scope
    assert_int_equal(access_as(&b, x, 1, 0, 4, true, cta), 1);
    assert_int_equal(load(&b, z, 0, 4), 2); // of x and of y
    close_bench(&b);
}

static void proxies(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *x = &b.agents[0][0], *y = &b.agents[0][1];
    const uint32_t async = emu_record_what(9, EMU_PROXY_ASYNC, 0, 0);
    store(&b, x, 0, 16);
    store(&b, x, 16, 16);
    barrier(&b, 0);
    struct emu_agent *op = emu_order_begin(y, true);
    assert_int_equal(access_as(&b, op, 0, 0, 16, false, async), 1);
    assert_int_equal(b.last.kind, EMU_CONFLICT_PROXY);
    emu_order_fence(x, EMU_FENCE_ASYNC_GLOBAL, EMU_FULL);
    barrier(&b, 0);
    op = emu_order_begin(y, true);
    assert_int_equal(access_as(&b, op, 0, 16, 16, true, async), 1); // a fence for another space
    emu_order_fence(x, EMU_FENCE_ASYNC_SHARED, EMU_FULL);
    barrier(&b, 0);
    op = emu_order_begin(y, true);
    assert_int_equal(access_as(&b, op, 0, 0, 16, false, async), 0);
    // The issuer does not know that it is done before it has waited.
    assert_int_equal(store(&b, y, 0, 16), 2); // of the two that read
    op = emu_order_begin(x, true);
    assert_int_equal(access_as(&b, op, 0, 512, 16, true, async), 0);
    struct emu_view phase = {0};
    emu_view_clear(&phase, &b.domains[0]);
    emu_order_complete(op, &phase);
    emu_order_end(op);
    assert_int_equal(load(&b, x, 512, 16), 1);
    emu_order_acquire(x, &phase);
    assert_int_equal(load(&b, x, 512, 16), 0); // and needs no fence
    assert_int_equal(store(&b, x, 512, 16), 0);
    assert_ptr_equal(emu_order_begin(x, true), op); // its slot is free again
    close_bench(&b);
}

// More operations than slots: one that shares its slot still knows what its issuer did when the
// other is over and somebody else begins there.
static void shared_slots(void **state)
{
    enum { MANY = 1000 };
    struct emu_agent *ops[MANY];
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *x = &b.agents[0][0], *y = &b.agents[0][1];
    const uint32_t async = emu_record_what(9, EMU_PROXY_ASYNC, 0, 0);
    store(&b, x, 0, 16);
    emu_order_fence(x, EMU_FENCE_ASYNC_SHARED, EMU_FULL);
    uint32_t count = 0, same;
    do {
        assert_true(count < MANY);
        ops[count] = emu_order_begin(x, true);
        for (same = 0; ops[same] != ops[count];)
            same++;
    } while (same == count++);
    emu_order_end(ops[same]);
    for (uint32_t i = 0; i < count; i++)
        emu_order_begin(y, true);
    assert_int_equal(access_as(&b, ops[same], 0, 0, 16, false, async), 0);
    close_bench(&b);
}

// Operations that are known by their group take no slot for longer than they run, and one that is
// pending learns nothing from those behind it.
static void slots_of_groups(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *x = &b.agents[0][0], *y = &b.agents[0][1];
    for (uint32_t i = 0; i < 1000; i++)
        emu_order_end(emu_order_begin(x, false));
    struct emu_agent *pending = emu_order_begin(x, false);
    store(&b, y, 0, 16);
    barrier(&b, 0);
    struct emu_agent *later = emu_order_begin(x, false);
    assert_ptr_not_equal(pending, later);
    const uint32_t async = emu_record_what(9, EMU_PROXY_GENERIC, 0, 0);
    assert_int_equal(access_as(&b, later, 0, 0, 16, false, async), 0);
    assert_int_equal(access_as(&b, pending, 0, 0, 16, false, async), 1);
    close_bench(&b);
}

static void lanes(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct emu_agent *x = &b.agents[0][0];
    const uint32_t st = emu_record_what(2, EMU_PROXY_GENERIC, 0, 0);
    const uint32_t ld = emu_record_what(3, EMU_PROXY_GENERIC, 0, 0);
    assert_int_equal(access_as(&b, x, 1 << 3, 0, 4, true, st), 0);
    assert_int_equal(access_as(&b, x, 1 << 3, 0, 4, false, ld), 0);
    assert_int_equal(access_as(&b, x, 1 << 4, 0, 4, false, ld), 1);
    assert_int_equal(b.last.kind, EMU_CONFLICT_LANES);
    emu_order_lanes(x, 0x18, EMU_FULL); // lanes 3 and 4
    assert_int_equal(access_as(&b, x, 1 << 4, 0, 4, false, ld), 0);
    assert_int_equal(access_as(&b, x, 1 << 5, 0, 4, false, ld), 1);
    emu_order_lanes(x, 0x30, EMU_FULL); // 5 knows by 4
    assert_int_equal(access_as(&b, x, 1 << 5, 0, 4, false, ld), 0);
    emu_order_lanes(x, EMU_FULL, EMU_FULL);
    assert_int_equal(access_as(&b, x, 1 << 6, 0, 4, true, st), 0);
    assert_int_equal(access_as(&b, x, 1 << 7, 0, 4, true, st), 0); // said by the caller: see below
    const struct emu_who who = emu_who_agent(x);
    assert_true(emu_race_access(&b.race, &who, 1 << 8, &b.map, 0, 4, true, st));
    close_bench(&b);
}

// Many CTAs hand a token on: the list of what is known stays bounded and invents no race.
static void long_chains(void **state)
{
    struct bench b;
    struct emu_domain d = {0};
    struct emu_agent a = {0};
    (void)state;
    open_bench(&b);
    store(&b, &b.agents[0][0], 0, 4);
    emu_order_flag_store(&b.agents[0][0], 0x700, EMU_STRONG | EMU_RELEASE, EMU_SCOPE_GPU);
    for (uint32_t i = 0; i < 10000; i++) {
        assert_true(emu_domain_start(&b.order, &d, 1, 1, 100 + i));
        emu_agent_start(&a, &d, 0);
        assert_int_equal(emu_order_name(&b.order, a.uid)->serial, 100 + i);
        emu_order_flag_atomic(&a, 0x700, EMU_STRONG | EMU_ACQUIRE | EMU_RELEASE, EMU_SCOPE_GPU);
        assert_int_equal(store(&b, &a, 0, 4), 0);
        emu_order_flag_atomic(&a, 0x700, EMU_STRONG | EMU_ACQUIRE | EMU_RELEASE, EMU_SCOPE_GPU);
    }
    assert_true(a.view.far_count <= 4096);
    assert_int_equal(store(&b, &b.agents[1][0], 0, 4), 1);
    close_bench(&b);
}

// Memory of the records for each byte that is touched: twice with 16 bytes an access, 8 times with
// 4, 32 times with 1, and a little for the pages' table.
struct meter {
    size_t bytes;
};

static void *count_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct meter *m = user;
    m->bytes += new_size - old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void cost(void **state)
{
    enum { SIZE = 1 << 19 };
    static const uint32_t sizes[] = {16, 4, 1};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bench b;
        struct meter m = {0};
        open_bench(&b);
        emu_arena_free(&b.arena);
        b.arena.allocator = (tir_allocator){count_resize, &m};
        emu_order_init(&b.order, &b.arena);
        assert_true(emu_domain_start(&b.order, &b.domains[0], 1, WARPS, 0));
        b.agents[0][0] = (struct emu_agent){0};
        emu_agent_start(&b.agents[0][0], &b.domains[0], 0);
        b.map.size = SIZE;
        for (uint32_t at = 0; at < SIZE; at += sizes[i])
            store(&b, &b.agents[0][0], at, sizes[i]);
        const double factor = (double)m.bytes / SIZE, want = 32.0 / sizes[i];
        assert_true(factor >= want && factor < want * 1.06 + 0.1);
        close_bench(&b);
        assert_int_equal(m.bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_order),
        cmocka_unit_test(every_reader_counts),
        cmocka_unit_test(bytes),
        cmocka_unit_test(flags),
        cmocka_unit_test(strong_accesses),
        cmocka_unit_test(proxies),
        cmocka_unit_test(shared_slots),
        cmocka_unit_test(slots_of_groups),
        cmocka_unit_test(lanes),
        cmocka_unit_test(long_chains),
        cmocka_unit_test(cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
