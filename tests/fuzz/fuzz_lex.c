// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lexer on any bytes: tokens lie in the file, in order, and end.

#include "front/parse/lex.h"
#include "protect.h"

static void lex(struct tir_context *cx, struct tir_source_file *file)
{
    struct tir_lexer lexer;
    if (!tir_lexer_init(&lexer, cx, file)) {
        FUZZ_CHECK(cx->diags.error_count);
        return;
    }
    uint32_t last = file->base, end = file->base + (uint32_t)file->text.len;
    for (size_t i = 0;; i++) {
        struct tir_token token = tir_lex(&lexer);
        FUZZ_CHECK(token.span.begin >= last && token.span.end >= token.span.begin);
        FUZZ_CHECK(token.span.end <= end);
        FUZZ_CHECK(i <= file->text.len);
        FUZZ_CHECK(token.kind < TIR_TOK_COUNT && tir_token_text(token.kind));
        last = token.span.end;
        if (token.kind == TIR_TOK_EOF)
            break;
    }
    FUZZ_CHECK(tir_lex(&lexer).kind == TIR_TOK_EOF);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protect(data, size, lex);
    return 0;
}
