// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// As much of Unicode as messages need: decoding UTF-8, and the width of a character on a terminal.
#ifndef TIR_BASE_UNICODE_H
#define TIR_BASE_UNICODE_H

#include "base/base.h"

#define TIR_REPLACEMENT 0xfffdu // what a malformed byte decodes to

// The code point at s.ptr[*at]; moves *at past it. *at < s.len. A byte that does not begin a
// well-formed sequence is TIR_REPLACEMENT and moves by one.
uint32_t tir_utf8_next(tir_str s, size_t *at);

// The offset of the first malformed byte; s.len when there is none.
size_t tir_utf8_check(tir_str s);

// Columns a code point takes: 0 for combining marks, 2 for wide East Asian characters and emoji,
// else 1. Independent of the locale.
uint32_t tir_unicode_width(uint32_t point);

// False for what may not reach a terminal as it is: control characters and direction overrides.
bool tir_unicode_printable(uint32_t point);

#endif
