// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: built here, counted, capped and de-duplicated; printed only by render.c.
//
//     tir_error_at(diags, span, TIR_E_SHAPE_MISMATCH, "cannot add %s and %s", a, b);
//     tir_note_at(diags, where_b_was_made, "%s comes from here", b);
//     tir_fix_at(diags, span, "m[:, None]", "give the tile a second dimension");
// Notes and fixes belong to the last message. Repeated messages are dropped.
#ifndef TIR_BASE_DIAG_H
#define TIR_BASE_DIAG_H

#include "base/source.h"

enum tir_severity { TIR_ERROR, TIR_WARNING, TIR_REMARK };

enum tir_diag_code {
#define DIAG(id, code, severity, title) TIR_##id,
#include "base/diag.def"
    TIR_DIAG_COUNT
};

struct tir_diag_note {
    struct tir_span span;
    tir_str text;
    bool is_fix; // text says what the change does; replacement is the new text of span
    tir_str replacement;
};

struct tir_diag {
    enum tir_diag_code code;
    struct tir_span span;
    tir_str text;
    VEC(struct tir_diag_note) notes;
};

struct tir_diags {
    struct tir_arena *arena;
    const struct tir_source_map *sources;
    VEC(struct tir_diag *) list; // in the order reported
    uint32_t error_count, warning_count;
    uint32_t limit; // errors, and warnings, kept; later ones are only counted (default 20)
    bool muted;     // the last message was dropped, so its notes are too
};

struct tir_diag_info {
    const char *code; // "E0102", "W0001", "R0001"
    enum tir_severity severity;
    const char *title;
};
extern const struct tir_diag_info tir_diag_infos[TIR_DIAG_COUNT];

void tir_diags_init(struct tir_diags *diags, struct tir_arena *arena,
                    const struct tir_source_map *sources);
// Reports to `to` what was reported to `from`, in the same order.
void tir_diags_repeat(struct tir_diags *to, const struct tir_diags *from);
// Severity comes from diag.def.
void tir_error_at(struct tir_diags *diags, struct tir_span span, enum tir_diag_code code,
                  const char *format, ...) TIR_PRINTF(4, 5);
void tir_note_at(struct tir_diags *diags, struct tir_span span, const char *format, ...)
    TIR_PRINTF(3, 4);
void tir_fix_at(struct tir_diags *diags, struct tir_span span, const char *replacement,
                const char *format, ...) TIR_PRINTF(4, 5);

// s as messages have it: on one line, and what could upset a terminal is U+FFFD.
void tir_text_message(struct tir_text *out, tir_str s);
// "file", "line", "column", "end_line", "end_column" of an object, each ends in a comma; columns
// count bytes. Nothing for nowhere.
void tir_json_place(struct tir_text *out, const struct tir_source_map *sources,
                    struct tir_span span);

enum tir_diag_format { TIR_DIAG_TEXT, TIR_DIAG_JSON };
// Renders every diagnostic: carets and notes, or one JSON object a line.
void tir_diags_render(const struct tir_diags *diags, enum tir_diag_format format,
                      struct tir_text *out);

#endif
