// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Help for words of other languages, from one table.
#include "front/parse/foreign.h"

static const struct {
    const char *word, *here, *hint;
} foreign[] = {
#define FOREIGN(word, here, hint) {word, here, hint},
#include "front/parse/foreign.def"
};

static const struct {
    enum tir_token_kind before, token;
    const char *text;
} operators[] = {
#define FOREIGN_OPERATOR(before, token, text) {TIR_TOK_##before, TIR_TOK_##token, text},
#include "front/parse/foreign.def"
};

static const struct {
    const char *wanted;
    enum tir_token_kind token;
    const char *text;
} places[] = {
#define FOREIGN_PLACE(wanted, token, text) {wanted, TIR_TOK_##token, text},
#include "front/parse/foreign.def"
};

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + (length - tail), end) == 0;
}

const char *tir_foreign_place(const char *wanted, enum tir_token_kind token)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(places); i++)
        if (places[i].token == token && ends_in(wanted, places[i].wanted))
            return places[i].text;
    return NULL;
}

const char *tir_foreign_operator(enum tir_token_kind before, enum tir_token_kind token)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(operators); i++)
        if (operators[i].before == before && operators[i].token == token)
            return operators[i].text;
    return NULL;
}

const char *tir_foreign_elem(const char *word)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(foreign); i++)
        for (int e = 0; e < TIR_ELEM_COUNT && strcmp(foreign[i].word, word) == 0; e++)
            if (strcmp(foreign[i].here, tir_elems[e].name) == 0)
                return tir_elems[e].name;
    return NULL;
}

bool tir_foreign_word(const char *word)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(foreign); i++)
        if (strcmp(foreign[i].word, word) == 0)
            return true;
    return false;
}

bool tir_foreign_help(struct tir_diags *diags, struct tir_span span, const char *word)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(foreign); i++) {
        if (strcmp(foreign[i].word, word) != 0)
            continue;
        if (foreign[i].here[0])
            tir_fix_at(diags, span, foreign[i].here, "here it is");
        if (foreign[i].hint[0])
            tir_note_at(diags, span, "%s", foreign[i].hint);
        return true;
    }
    return false;
}
