// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers on the command line.
#include "driver/value/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LONGEST 400 // characters of a number; strtod needs a terminated copy

static bool terminated(tir_str text, char copy[LONGEST])
{
    if (!text.len || text.len >= LONGEST || isspace((unsigned char)text.ptr[0]) ||
        memchr(text.ptr, 0, text.len))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return true;
}

static bool magnitude(const char *digits, uint64_t *out)
{
    int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
    digits += base == 16 ? 2 : 0;
    if (!isxdigit((unsigned char)*digits)) // strtoull would take a sign or spaces
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, base);
    *out = value;
    return !errno && !*end;
}

bool tir_parse_uint(tir_str text, uint64_t *out)
{
    char copy[LONGEST];
    return terminated(text, copy) && magnitude(copy, out);
}

bool tir_parse_int(tir_str text, int64_t *out)
{
    char copy[LONGEST];
    uint64_t value;
    if (!terminated(text, copy) || !magnitude(copy + (copy[0] == '-'), &value) ||
        value > (uint64_t)INT64_MAX + (copy[0] == '-'))
        return false;
    *out = copy[0] == '-' ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool tir_parse_float(tir_str text, double *out)
{
    char copy[LONGEST], *end;
    if (!terminated(text, copy))
        return false;
    errno = 0;
    *out = strtod(copy, &end);
    return !*end && !(errno == ERANGE && isinf(*out)); // what is too small is 0, or nearly
}
