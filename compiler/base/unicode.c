// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// UTF-8 and character widths. wcwidth is not used: it follows the locale of the process, which
// belongs to the host program.

#include "base/unicode.h"

uint32_t tir_utf8_next(tir_str s, size_t *at)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)s.ptr[(*at)++];
    if (first < 0x80)
        return first;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || s.len - *at < length - 1)
        return TIR_REPLACEMENT;
    uint32_t point = first & (0x7fu >> length);
    for (size_t i = 0; i < length - 1; i++) {
        unsigned char c = (unsigned char)s.ptr[*at + i];
        if ((c & 0xc0) != 0x80)
            return TIR_REPLACEMENT;
        point = point << 6 | (c & 0x3f);
    }
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < smallest[length] || point > 0x10ffff || surrogate)
        return TIR_REPLACEMENT;
    *at += length - 1;
    return point;
}

size_t tir_utf8_check(tir_str s)
{
    for (size_t at = 0; at < s.len;) {
        size_t begin = at;
        // A well-formed U+FFFD is three bytes; a malformed byte moves by one.
        if (tir_utf8_next(s, &at) == TIR_REPLACEMENT && at == begin + 1)
            return begin;
    }
    return s.len;
}

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t count, uint32_t point)
{
    for (size_t i = 0; i < count && ranges[i].first <= point; i++)
        if (point <= ranges[i].last)
            return true;
    return false;
}

// The blocks of Unicode whose characters are wide (East_Asian_Width W or F) or combining, coarsely:
// a misplaced caret under a rare character is all that a missing range costs.
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},
    {0x2705, 0x2705},   {0x274c, 0x274c},   {0x2753, 0x2757},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};
static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x064b, 0x065f},
    {0x0900, 0x0902}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},   {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},   {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

uint32_t tir_unicode_width(uint32_t point)
{
    if (point < 0x300)
        return 1;
    if (is_in(combining, TIR_COUNT_OF(combining), point))
        return 0;
    return is_in(wide, TIR_COUNT_OF(wide), point) ? 2 : 1;
}

bool tir_unicode_printable(uint32_t point)
{
    if (point < 0x20 || (point >= 0x7f && point < 0xa0))
        return false;
    bool overrides = (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    return !overrides && point != 0x2028 && point != 0x2029;
}
