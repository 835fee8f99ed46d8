// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lexer of PTX (re2c).

#include "emu/parse/lex.h"

#include <stdlib.h>
#include <string.h>

// The value of digits in a base; *ok is false when it does not fit in 64 bits.
static uint64_t number(const char *at, const char *end, unsigned base, int *ok)
{
    uint64_t value = 0;
    *ok = 1;
    for (; at < end && *at != 'U'; at++) {
        const char c = *at;
        const unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10u;
        if (value > (UINT64_MAX - digit) / base)
            *ok = 0;
        value = value * base + digit;
    }
    return value;
}

static uint64_t decimal(const char *at, const char *end)
{
    char text[64];
    const size_t len = (size_t)(end - at) < sizeof text - 1 ? (size_t)(end - at) : sizeof text - 1;
    memcpy(text, at, len);
    text[len] = '\0';
    const double value = strtod(text, NULL);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct emu_token emu_lex(struct emu_lexer *lexer)
{
    const char *YYCURSOR = lexer->cursor;
    const char *YYMARKER = YYCURSOR;
    const char *start;
    struct emu_token token;
    int ok = 1;
again:
    start = YYCURSOR;
    token = (struct emu_token){.line = lexer->line};
    /*!re2c
        re2c:define:YYCTYPE = "unsigned char";
        re2c:yyfill:enable = 0;

        digit = [0-9];
        hex = [0-9a-fA-F];
        letter = [a-zA-Z_$%];
        word = letter [a-zA-Z0-9_$]*;
        part = [a-zA-Z0-9_]+;

        "\x00" {
            token.kind = YYCURSOR > lexer->end ? EMU_TOK_END : EMU_TOK_BAD;
            if (token.kind == EMU_TOK_END)
                YYCURSOR = lexer->end;
            goto done;
        }
        [ \t\r\f\v]+ { goto again; }
        "\n" { lexer->line++; goto again; }
        "//" [^\n\x00]* { goto again; }
        "/*" {
            while (YYCURSOR < lexer->end && !(YYCURSOR[0] == '*' && YYCURSOR[1] == '/'))
                lexer->line += *YYCURSOR++ == '\n';
            if (YYCURSOR >= lexer->end) {
                token.kind = EMU_TOK_BAD;
                goto done;
            }
            YYCURSOR += 2;
            goto again;
        }
        word { token.kind = EMU_TOK_WORD; goto done; }
        "." part ("::" part)* { token.kind = EMU_TOK_DOT; goto done; }
        "0" [fF] hex{8} {
            token.kind = EMU_TOK_F32;
            token.bits = number(start + 2, YYCURSOR, 16, &ok);
            goto done;
        }
        "0" [dD] hex{16} {
            token.kind = EMU_TOK_F64;
            token.bits = number(start + 2, YYCURSOR, 16, &ok);
            goto done;
        }
        digit+ ("." digit* ([eE] [+-]? digit+)? | [eE] [+-]? digit+) {
            token.kind = EMU_TOK_F64;
            token.bits = decimal(start, YYCURSOR);
            goto done;
        }
        "0" [xX] hex+ "U"? {
            token.kind = EMU_TOK_INT;
            token.bits = number(start + 2, YYCURSOR, 16, &ok);
            goto done;
        }
        "0" [bB] [01]+ "U"? {
            token.kind = EMU_TOK_INT;
            token.bits = number(start + 2, YYCURSOR, 2, &ok);
            goto done;
        }
        "0" [0-7]+ "U"? {
            token.kind = EMU_TOK_INT;
            token.bits = number(start + 1, YYCURSOR, 8, &ok);
            goto done;
        }
        "0" "U"? | [1-9] digit* "U"? {
            token.kind = EMU_TOK_INT;
            token.bits = number(start, YYCURSOR, 10, &ok);
            goto done;
        }
        ["] [^"\n\x00]* ["] { token.kind = EMU_TOK_STRING; goto done; }
        [,;:{}()<>|!@+*/=&^~?-] | "[" | "]" {
            token.kind = EMU_TOK_PUNCT;
            token.punct = *start;
            goto done;
        }
        * { token.kind = EMU_TOK_BAD; goto done; }
    */
done:
    if (!ok)
        token.kind = EMU_TOK_BAD;
    token.text = (tir_str){start, (size_t)(YYCURSOR - start)};
    if (token.kind == EMU_TOK_DOT)
        token.text = (tir_str){start + 1, token.text.len - 1};
    if (token.kind == EMU_TOK_STRING)
        token.text = (tir_str){start + 1, token.text.len - 2};
    lexer->cursor = YYCURSOR;
    return token;
}
