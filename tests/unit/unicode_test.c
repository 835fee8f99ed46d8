// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// UTF-8: every code point, and what must be refused; widths of a few characters of each kind.

#include "unit.h"

#include "base/unicode.h"

static size_t encode(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)(0xf00u >> length | point);
    return length;
}

static void every_code_point_decodes(void **state)
{
    (void)state;
    for (uint32_t point = 0; point <= 0x10ffff; point++) {
        char bytes[4];
        size_t length = encode(point, bytes), at = 0;
        uint32_t decoded = tir_utf8_next((tir_str){bytes, length}, &at);
        bool surrogate = point >= 0xd800 && point <= 0xdfff;
        assert_int_equal(decoded, surrogate ? TIR_REPLACEMENT : point);
        assert_int_equal(at, surrogate ? 1 : length);
    }
}

static void malformed_bytes_move_by_one(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xc3(",
    };
    for (size_t i = 0; i < TIR_COUNT_OF(bad); i++) {
        size_t at = 0;
        assert_int_equal(tir_utf8_next(tir_str_of(bad[i]), &at), TIR_REPLACEMENT);
        assert_int_equal(at, 1);
        assert_int_equal(tir_utf8_check(tir_str_of(bad[i])), 0);
    }
}

static void check_finds_the_first_bad_byte(void **state)
{
    (void)state;
    assert_int_equal(tir_utf8_check(STR("plain")), 5);
    assert_int_equal(tir_utf8_check(STR("ok \xef\xbf\xbd ok")), 9); // U+FFFD itself is fine
    assert_int_equal(tir_utf8_check(STR("caf\xc3\xa9 \xe9")), 6);
    assert_int_equal(tir_utf8_check((tir_str){0}), 0);
}

static void widths(void **state)
{
    (void)state;
    assert_int_equal(tir_unicode_width('a'), 1);
    assert_int_equal(tir_unicode_width(0xe9), 1);
    assert_int_equal(tir_unicode_width(0x301), 0);
    assert_int_equal(tir_unicode_width(0x4e2d), 2);
    assert_int_equal(tir_unicode_width(0x1f600), 2);
    assert_int_equal(tir_unicode_width(0x3b1), 1);
    assert_int_equal(tir_unicode_width(0x10ffff), 1);
}

static void terminals_are_protected(void **state)
{
    (void)state;
    assert_false(tir_unicode_printable(0x1b));
    assert_false(tir_unicode_printable(0x9b));
    assert_false(tir_unicode_printable(0x202e));
    assert_true(tir_unicode_printable(' '));
    assert_true(tir_unicode_printable(0xe9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_decodes),
        cmocka_unit_test(malformed_bytes_move_by_one),
        cmocka_unit_test(check_finds_the_first_bad_byte),
        cmocka_unit_test(widths),
        cmocka_unit_test(terminals_are_protected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
