// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The receipt as text, one line a decision.

#include "pass/receipt.h"

#include <stdarg.h>

static void add_line(struct tir_pass_cx *cx, const char *format, va_list args)
{
    if (!cx->receipt)
        return;
    tir_text_vformat(cx->receipt, format, args);
    tir_text_char(cx->receipt, '\n');
}

void tir_receipt_add(struct tir_pass_cx *cx, enum tir_topic topic, struct tir_span span,
                     const char *format, ...)
{
    (void)topic, (void)span;
    va_list args;
    va_start(args, format);
    add_line(cx, format, args);
    va_end(args);
}

void tir_receipt_refuse(struct tir_pass_cx *cx, enum tir_topic topic, enum tir_wish wish,
                        struct tir_span span, const char *format, ...)
{
    (void)topic, (void)wish, (void)span;
    va_list args;
    va_start(args, format);
    add_line(cx, format, args);
    va_end(args);
}
