// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX in parts: what an entry needs of them is what it needs of the whole.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_parts.h"
#include "host.h"
#include "ptx.h"

enum { ROOM = 2 << 20, PART = 128 << 10 };

// A text, its parts, and what is stored of them.
struct rig {
    tir_allocator allocator;
    char *text;
    size_t len;
    uint8_t *stored;
    size_t size;
    struct code_parts parts;
};

__attribute__((format(printf, 2, 3))) static void put(struct rig *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    r->len += (size_t)vsnprintf(r->text + r->len, ROOM - r->len, format, args);
    va_end(args);
}

static void open_rig(struct rig *r)
{
    *r = (struct rig){.allocator = tir_host_allocator(NULL), .text = calloc(1, ROOM)};
    put(r, ".version 8.6\n.target sm_90a\n.address_size 64\n");
}

static void put_entry(struct rig *r, int number, int lines)
{
    put(r, "\t// .globl f%d\n", number);
    put(r, ".visible .entry f%d() {\n", number);
    for (int i = 0; i < lines; i++)
        put(r, "\tadd.s32 \t%%r1, %%r2, %d;\n", i * 7 + number);
    put(r, "}\n");
}

static void divide(struct rig *r)
{
    assert_true(r->len + 1 < ROOM);
    const tir_str text = {r->text, r->len};
    assert_true(tir_parts_divide(text, &r->allocator, &r->parts));
    r->stored = malloc(r->len ? r->len : 1);
    r->size = tir_parts_pack(&r->parts, text, r->stored);
}

static void close_rig(struct rig *r)
{
    tir_parts_free(&r->parts, &r->allocator);
    free(r->stored);
    free(r->text);
}

static const char *measure(struct rig *r, size_t *all)
{
    return tir_parts_measure(&r->parts, r->stored, r->size, all);
}

// The parts with this entry and those without any; NULL: all. They are `count`.
static char *read_parts(struct rig *r, const tir_str *entry, size_t *len, int *count)
{
    char *out = malloc(r->len + 1);
    const uint8_t *stored = r->stored;
    *len = 0;
    *count = 0;
    for (uint32_t i = 0; i < r->parts.count; i++) {
        const struct code_part *part = &r->parts.at[i];
        if (!entry || !part->entry_count || tir_part_has(part, *entry)) {
            assert_true(tir_part_read(part, stored, out + *len));
            *len += part->size;
            ++*count;
        }
        stored += part->stored;
    }
    out[*len] = 0;
    return out;
}

static void expect_whole(struct rig *r)
{
    size_t all, len;
    int count;
    assert_null(measure(r, &all));
    assert_int_equal(all, r->len);
    char *out = read_parts(r, NULL, &len, &count);
    assert_int_equal(len, r->len);
    assert_memory_equal(out, r->text, len);
    free(out);
}

static void expect_entry(struct rig *r, int number, int parts)
{
    char name[16], *want = malloc(r->len + 1);
    const tir_str entry = {name, (size_t)snprintf(name, sizeof name, "f%d", number)};
    size_t want_len, len;
    int count;
    assert_true(tir_ptx_keep_entry((tir_str){r->text, r->len}, entry, want, &want_len));
    char *out = read_parts(r, &entry, &len, &count);
    assert_int_equal(count, parts);
    assert_true(tir_ptx_keep_entry((tir_str){out, len}, entry, out, &len));
    assert_string_equal(out, want);
    free(out);
    free(want);
}

static void test_divided(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r);
    put(&r, ".extern .shared .align 1024 .b8 shared[];\n");
    for (int i = 0; i < 40; i++) {
        put_entry(&r, i, 800); // about 20 KB
        if (i == 19)
            put(&r, ".func helper%d() { ret; }\n", i);
    }
    divide(&r);
    expect_whole(&r);
    assert_true(r.size < r.len / 4);
    for (uint32_t i = 0; i < r.parts.count; i++)
        assert_true(r.parts.at[i].size <= PART);
    for (int i = 0; i < 40; i++)
        expect_entry(&r, i, 4); // the head, the function, its own, and the end of the last line
    close_rig(&r);
}

// An entry larger than a part is one, and small ones share one.
static void test_sizes(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r);
    put_entry(&r, 0, 10);
    put_entry(&r, 1, 10000);
    put_entry(&r, 2, 10);
    put_entry(&r, 3, 10);
    divide(&r);
    expect_whole(&r);
    assert_int_equal(r.parts.count, 5);
    assert_int_equal(r.parts.at[0].entry_count, 0);
    assert_int_equal(r.parts.at[1].entry_count, 1);
    assert_int_equal(r.parts.at[2].entry_count, 1);
    assert_true(r.parts.at[2].size > PART);
    assert_int_equal(r.parts.at[3].entry_count, 2);
    for (int i = 0; i < 4; i++)
        expect_entry(&r, i, 3);
    assert_false(tir_part_has(&r.parts.at[1], (tir_str){"f1", 2}));
    close_rig(&r);
}

// What names entries from outside keeps the module whole, and so does a text without entries.
static void test_undivided(void **state)
{
    (void)state;
    for (int debug = 0; debug < 2; debug++) {
        struct rig r;
        open_rig(&r);
        if (debug) {
            put_entry(&r, 0, 10);
            put(&r, ".section .debug_info { .b8 1 }\n");
        }
        divide(&r);
        expect_whole(&r);
        assert_int_equal(r.parts.count, 1);
        assert_int_equal(r.parts.at[0].entry_count, 0);
        close_rig(&r);
    }
    struct rig r;
    open_rig(&r);
    r.len = 0;
    divide(&r);
    expect_whole(&r);
    assert_int_equal(r.parts.count, 0);
    close_rig(&r);
}

static void expect_wrong(struct rig *r, const char *part)
{
    size_t all;
    const char *wrong = measure(r, &all);
    assert_non_null(wrong);
    if (!strstr(wrong, part))
        fail_msg("'%s' does not say '%s'", wrong, part);
}

static void test_damaged(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r);
    put_entry(&r, 0, 1000);
    divide(&r);
    struct code_part *part = &r.parts.at[1];
    const struct code_part kept = *part;
    assert_int_equal(kept.form, TIR_FORM_ZSTD);
    memcpy(&part->form, &(unsigned){2}, sizeof part->form);
    expect_wrong(&r, "a wrong form or size");
    *part = kept;
    part->stored = 0;
    expect_wrong(&r, "a wrong form or size");
    part->stored = -1;
    expect_wrong(&r, "a wrong form or size");
    part->stored = (int64_t)r.size;
    expect_wrong(&r, "a wrong form or size");
    *part = kept;
    r.size++;
    expect_wrong(&r, "more than its parts");
    r.size--;

    char *out = malloc(kept.size);
    uint8_t *frame = r.stored + r.parts.at[0].stored;
    int64_t found = 0;
    for (int64_t i = 0; i < kept.stored; i++) {
        frame[i] ^= 0x20;
        size_t all;
        // It is found, or changes nothing: not all bits of a frame mean something.
        if (!measure(&r, &all) && part->size == kept.size && tir_part_read(part, frame, out))
            assert_memory_equal(out, r.text + r.parts.at[0].size, kept.size);
        else
            found++;
        *part = kept;
        frame[i] ^= 0x20;
    }
    assert_true(found > kept.stored * 9 / 10);
    assert_true(tir_part_read(part, frame, out));
    r.stored[4] = 0; // a text has none
    assert_int_equal(r.parts.at[0].form, TIR_FORM_STORED);
    assert_false(tir_part_read(&r.parts.at[0], r.stored, out));
    free(out);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divided),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_undivided),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
