// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lexer. re2c finds where a token ends; what it stands for is computed below the rules.
#include "front/parse/lex.h"

#include <math.h>
#include <stdlib.h>

#include "base/unicode.h"

static const char *const token_texts[TIR_TOK_COUNT] = {
#define TOKEN(id, text)   text,
#define KEYWORD(id, text) "`" text "`",
#define PUNCT(id, text)   "`" text "`",
#include "front/parse/token.def"
};

static const char *const keywords[TIR_TOK_COUNT] = {
#define TOKEN(id, text)   NULL,
#define KEYWORD(id, text) text,
#define PUNCT(id, text)   NULL,
#include "front/parse/token.def"
};

static const char *const reserved[] = {"match", "struct", "enum"};

const char *tir_token_text(enum tir_token_kind kind)
{
    return token_texts[kind];
}

static uint32_t location(const struct tir_lexer *lx, const char *at)
{
    return lx->file->base + (uint32_t)(at - lx->file->text.ptr);
}

// Length of the UTF-8 sequence at p, 0 if it is none (overlong forms and surrogates are none).
static size_t utf8_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

bool tir_lexer_init(struct tir_lexer *lx, struct tir_context *cx, const struct tir_source_file *file)
{
    const char *start = file->text.ptr;
    *lx = (struct tir_lexer){.cx = cx, .file = file, .at = start, .end = start + file->text.len};
    if (file->text.len >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        lx->at += 3; // a byte order mark, which some editors put in front
    if (file->text.len > TIR_MAX_FILE_BYTES) {
        tir_error_at(&cx->diags, (struct tir_span){file->base, file->base}, TIR_E_FILE_SIZE,
                     "the file has more than %u bytes", TIR_MAX_FILE_BYTES);
        return false;
    }
    for (size_t i = 0, n; i < file->text.len; i += n) {
        n = utf8_length((const unsigned char *)start + i, file->text.len - i);
        if (!n) {
            uint32_t at = location(lx, start + i);
            tir_error_at(&cx->diags, (struct tir_span){at, at + 1}, TIR_E_UTF8,
                         "byte 0x%02x is not part of valid UTF-8", (unsigned char)start[i]);
            return false;
        }
    }
    return true;
}

static struct tir_token make(const struct tir_lexer *lx, enum tir_token_kind kind, const char *start)
{
    return (struct tir_token){.kind = kind, .span = {location(lx, start), location(lx, lx->at)}};
}

TIR_PRINTF(4, 5)
static struct tir_token bad(const struct tir_lexer *lx, const char *start, enum tir_diag_code code,
                            const char *format, ...)
{
    struct tir_token token = make(lx, TIR_TOK_BAD, start);
    if (!lx->muted) {
        struct tir_text text;
        tir_text_init(&text, &lx->cx->arena, 512);
        va_list args;
        va_start(args, format);
        tir_text_vformat(&text, format, args);
        va_end(args);
        tir_error_at(&lx->cx->diags, token.span, code, "%s", text.ptr);
    }
    return token;
}

static struct tir_token word(const struct tir_lexer *lx, const char *start)
{
    tir_str s = {start, (size_t)(lx->at - start)};
    if (s.len > TIR_MAX_NAME_BYTES)
        return bad(lx, start, TIR_E_TOKEN, "a name of %zu characters; the limit is %u", s.len,
                   TIR_MAX_NAME_BYTES);
    struct tir_token token = make(lx, TIR_TOK_NAME, start);
    for (int k = 0; k < TIR_TOK_COUNT; k++)
        if (keywords[k] && tir_str_is(s, keywords[k])) {
            token.kind = (enum tir_token_kind)k;
            return token;
        }
    for (int e = TIR_NONE + 1; e < TIR_ELEM_COUNT; e++)
        if (tir_str_is(s, tir_elems[e].name)) {
            token.kind = TIR_TOK_ELEM;
            token.elem = (enum tir_elem)e;
            return token;
        }
    for (size_t i = 0; i < TIR_COUNT_OF(reserved); i++)
        if (tir_str_is(s, reserved[i]))
            token.kind = TIR_TOK_RESERVED;
    token.name = tir_intern(&lx->cx->names, s);
    return token;
}

static struct tir_token integer(const struct tir_lexer *lx, const char *start, uint32_t radix)
{
    struct tir_token token = make(lx, TIR_TOK_INT, start);
    for (const char *p = radix == 10 ? start : start + 2; p < lx->at; p++) {
        if (*p == '_')
            continue;
        uint32_t digit = *p <= '9' ? (uint32_t)(*p - '0') : (uint32_t)((*p | 0x20) - 'a' + 10);
        if (token.number > (UINT64_MAX - digit) / radix)
            return bad(lx, start, TIR_E_OVERFLOW, "this integer does not fit in 64 bits");
        token.number = token.number * radix + digit;
    }
    return token;
}

// The text is rewritten as an integer with an exponent, which strtod reads alike in every locale.
static struct tir_token real(const struct tir_lexer *lx, const char *start)
{
    struct tir_token token = make(lx, TIR_TOK_FLOAT, start);
    struct tir_text digits;
    tir_text_init(&digits, &lx->cx->arena, 0);
    int64_t exponent = 0;
    bool fraction = false;
    const char *p = start;
    for (; p < lx->at && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            fraction = true;
        } else if (*p != '_') {
            tir_text_char(&digits, *p);
            exponent -= fraction;
        }
    }
    if (p < lx->at) {
        bool negative = *++p == '-';
        p += *p == '-' || *p == '+';
        int64_t stated = 0;
        for (; p < lx->at; p++)
            if (*p != '_' && stated < 1000000000)
                stated = stated * 10 + (*p - '0');
        exponent += negative ? -stated : stated;
    }
    tir_text_format(&digits, "e%lld", (long long)exponent);
    token.real = strtod(digits.ptr, NULL);
    if (isinf(token.real))
        return bad(lx, start, TIR_E_OVERFLOW, "this number does not fit in f64");
    return token;
}

static struct tir_token string(const struct tir_lexer *lx, const char *start)
{
    struct tir_token token = make(lx, TIR_TOK_STRING, start);
    struct tir_text text;
    tir_text_init(&text, &lx->cx->arena, 0);
    for (const char *p = start + 1; p < lx->at - 1; p++) {
        if (*p != '\\') {
            tir_text_char(&text, *p);
            continue;
        }
        switch (*++p) {
        case 'n':
            tir_text_char(&text, '\n');
            break;
        case 't':
            tir_text_char(&text, '\t');
            break;
        case '0':
            tir_text_char(&text, '\0');
            break;
        case '"':
        case '\\':
            tir_text_char(&text, *p);
            break;
        default:
            return bad(lx, start, TIR_E_TOKEN, "unknown escape in a string; known are %s",
                       "\\n \\t \\\" \\\\ \\0");
        }
    }
    token.text = tir_text_str(&text);
    return token;
}

// A run of bytes that start no token is one error.
static struct tir_token unknown(struct tir_lexer *lx, const char *start)
{
    unsigned char c = (unsigned char)*start;
    while (lx->at < lx->end && (unsigned char)*lx->at >= 0x80)
        lx->at++;
    size_t at = 0;
    const uint32_t point = tir_utf8_next((tir_str){start, (size_t)(lx->end - start)}, &at);
    if (c >= 0x80 && point != TIR_REPLACEMENT &&
        (!tir_unicode_printable(point) || !tir_unicode_width(point)))
        return bad(lx, start, TIR_E_BYTE, "no token starts with U+%04X", (unsigned)point);
    if (c >= 0x80)
        return bad(lx, start, TIR_E_BYTE, "no token starts with `" STR_FMT "`",
                   TIR_MIN((int)(lx->at - start), 64), start);
    if (c < 0x20 || c == 0x7f)
        return bad(lx, start, TIR_E_BYTE, "no token starts with byte 0x%02x", c);
    return bad(lx, start, TIR_E_BYTE, "no token starts with `%c`%s", c,
               c == '#' ? "; a comment begins with `//`" : "");
}

// After "/*": true when the comment is closed; comments nest.
static bool skip_comment(struct tir_lexer *lx)
{
    uint32_t depth = 1;
    while (lx->at < lx->end) {
        if (lx->at[0] == '*' && lx->at[1] == '/') {
            lx->at += 2;
            if (!--depth)
                return true;
        } else if (lx->at[0] == '/' && lx->at[1] == '*') {
            lx->at += 2;
            depth++;
        } else {
            lx->at++;
        }
    }
    return false;
}

struct tir_token tir_lex(struct tir_lexer *lx)
{
    const char *start, *marker = NULL;
again:
    start = lx->at;
#define TOKEN_IS(id) return make(lx, TIR_TOK_##id, start)
    /*!re2c
    re2c:define:YYCTYPE = "unsigned char";
    re2c:define:YYCURSOR = lx->at;
    re2c:define:YYMARKER = marker;
    re2c:define:YYLIMIT = lx->end;
    re2c:yyfill:enable = 0;

    digits = [0-9] ("_"* [0-9])*;
    exponent = [eE] [+-]? digits;
    string_char = [^"\\\n\x00] | "\\" [^\n\x00];

    "\x00" {
        if (start < lx->end)
            return unknown(lx, start);
        lx->at = start;
        TOKEN_IS(EOF);
    }
    [ \t\r\n]+ { goto again; }
    "//" [^\n\x00]* {
        while (lx->at < lx->end && *lx->at != '\n')
            lx->at++;
        if (lx->keep_comments)
            TOKEN_IS(COMMENT);
        goto again;
    }
    "/*" {
        if (!skip_comment(lx)) {
            struct tir_token token = bad(lx, start, TIR_E_TOKEN, "this comment is never closed");
            token.kind = TIR_TOK_EOF;
            return token;
        }
        if (lx->keep_comments)
            TOKEN_IS(COMMENT);
        goto again;
    }
    [A-Za-z_] [A-Za-z0-9_]* { return word(lx, start); }
    digits { return integer(lx, start, 10); }
    "0" [xX] [0-9a-fA-F] ("_"* [0-9a-fA-F])* { return integer(lx, start, 16); }
    "0" [bB] [01] ("_"* [01])* { return integer(lx, start, 2); }
    digits "." digits? exponent? | digits exponent { return real(lx, start); }
    ( digits | digits "." digits? exponent? | digits exponent ) [fFhHuUlL]+ {
        return bad(lx, start, TIR_E_TOKEN,
                   "a number has no suffix: it takes the type of its context, or `f32(1)` states one");
    }
    ( digits | digits "." digits? exponent? | digits exponent | "0" [xXbB] [0-9a-fA-F_]* ) [A-Za-z_] [A-Za-z0-9_]* {
        return bad(lx, start, TIR_E_TOKEN, "a malformed number");
    }
    "\"" string_char* "\"" { return string(lx, start); }
    "\"" string_char* { return bad(lx, start, TIR_E_TOKEN, "this string is not closed on its line"); }
    "(" { TOKEN_IS(LPAREN); }    ")" { TOKEN_IS(RPAREN); }
    "[" { TOKEN_IS(LBRACKET); }  "]" { TOKEN_IS(RBRACKET); }
    "{" { TOKEN_IS(LBRACE); }    "}" { TOKEN_IS(RBRACE); }
    "," { TOKEN_IS(COMMA); }     ";" { TOKEN_IS(SEMI); }
    ":" { TOKEN_IS(COLON); }     ":+" { TOKEN_IS(TAKE); }
    "." { TOKEN_IS(DOT); }       "@" { TOKEN_IS(AT); }
    "->" { TOKEN_IS(ARROW); }    "?" { TOKEN_IS(QUESTION); }
    "=" { TOKEN_IS(ASSIGN); }    "+=" { TOKEN_IS(ADD_TO); }
    "-=" { TOKEN_IS(SUB_TO); }   "*=" { TOKEN_IS(MUL_TO); }
    "/=" { TOKEN_IS(DIV_TO); }   "+" { TOKEN_IS(ADD); }
    "-" { TOKEN_IS(SUB); }       "*" { TOKEN_IS(MUL); }
    "/" { TOKEN_IS(DIV); }       "%" { TOKEN_IS(REM); }
    "<<" { TOKEN_IS(SHL); }      ">>" { TOKEN_IS(SHR); }
    "<" { TOKEN_IS(LT); }        "<=" { TOKEN_IS(LE); }
    ">" { TOKEN_IS(GT); }        ">=" { TOKEN_IS(GE); }
    "==" { TOKEN_IS(EQ); }       "!=" { TOKEN_IS(NE); }
    "&" { TOKEN_IS(AND); }       "^" { TOKEN_IS(XOR); }
    "|" { TOKEN_IS(OR); }        "&&" { TOKEN_IS(AND_AND); }
    "||" { TOKEN_IS(OR_OR); }    "!" { TOKEN_IS(NOT); }
    "~" { TOKEN_IS(BIT_NOT); }
    * { return unknown(lx, start); }
    */
#undef TOKEN_IS
}
