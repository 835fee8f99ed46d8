// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Help for words of other languages, from one table.
#include "front/parse/foreign.h"

static const struct {
    const char *word, *here, *hint;
} foreign[] = {
#define FOREIGN(word, here, hint) {word, here, hint},
#include "front/parse/foreign.def"
};

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
