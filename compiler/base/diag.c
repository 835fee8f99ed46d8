// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collecting diagnostics. A message that repeats one already kept (same code, place and text) is
// dropped, as is every error or warning past the limit; the notes of a dropped message go with it.

#include "base/diag.h"

const struct tir_diag_info tir_diag_infos[TIR_DIAG_COUNT] = {
#define DIAG(id, code, severity, title) {code, TIR_##severity, title},
#include "base/diag.def"
};

void tir_diags_init(struct tir_diags *diags, struct tir_arena *arena,
                    const struct tir_source_map *sources)
{
    *diags = (struct tir_diags){.arena = arena, .sources = sources, .limit = 20, .muted = true};
}

static tir_str format_text(struct tir_diags *diags, const char *format, va_list args)
    TIR_PRINTF(2, 0);

static tir_str format_text(struct tir_diags *diags, const char *format, va_list args)
{
    struct tir_text text;
    tir_text_init(&text, diags->arena, 4096); // long names are cut, not refused
    tir_text_vformat(&text, format, args);
    return tir_text_str(&text);
}

static bool is_repeated(const struct tir_diags *diags, const struct tir_diag *diag)
{
    for (uint32_t i = 0; i < diags->list.len; i++) {
        const struct tir_diag *old = diags->list.at[i];
        if (old->code == diag->code && old->span.begin == diag->span.begin &&
            old->span.end == diag->span.end && tir_str_equal(old->text, diag->text))
            return true;
    }
    return false;
}

// Where the messages of one severity are counted; NULL: remarks, which are the receipt and never
// dropped.
static uint32_t *counter(struct tir_diags *diags, enum tir_severity severity)
{
    switch (severity) {
    case TIR_ERROR:
        return &diags->error_count;
    case TIR_WARNING:
        return &diags->warning_count;
    case TIR_REMARK:
        return NULL;
    }
    tir_unreachable();
}

void tir_error_at(struct tir_diags *diags, struct tir_span span, enum tir_diag_code code,
                  const char *format, ...)
{
    uint32_t *count = counter(diags, tir_diag_infos[code].severity);
    diags->muted = true;
    if (count && *count >= diags->limit) {
        ++*count;
        return;
    }
    struct tir_diag *diag = arena_new(diags->arena, struct tir_diag);
    *diag = (struct tir_diag){.code = code, .span = span};
    va_list args;
    va_start(args, format);
    diag->text = format_text(diags, format, args);
    va_end(args);
    if (count && is_repeated(diags, diag))
        return;
    if (count)
        ++*count;
    vec_push(diags->arena, &diags->list, diag);
    diags->muted = false;
}

static void add_note(struct tir_diags *diags, struct tir_diag_note note)
{
    struct tir_diag *last = vec_last(&diags->list);
    vec_push(diags->arena, &last->notes, note);
}

void tir_note_at(struct tir_diags *diags, struct tir_span span, const char *format, ...)
{
    if (diags->muted)
        return;
    va_list args;
    va_start(args, format);
    add_note(diags, (struct tir_diag_note){.span = span, .text = format_text(diags, format, args)});
    va_end(args);
}

void tir_fix_at(struct tir_diags *diags, struct tir_span span, const char *replacement,
                const char *format, ...)
{
    if (diags->muted)
        return;
    va_list args;
    va_start(args, format);
    struct tir_diag_note note = {
        .span = span,
        .text = format_text(diags, format, args),
        .is_fix = true,
        .replacement = tir_str_copy(diags->arena, tir_str_of(replacement)),
    };
    va_end(args);
    add_note(diags, note);
}

void tir_diags_repeat(struct tir_diags *to, const struct tir_diags *from)
{
    uint32_t errors = from->error_count, warnings = from->warning_count;
    vec_foreach(struct tir_diag *, it, &from->list) {
        const struct tir_diag *diag = *it;
        enum tir_severity severity = tir_diag_infos[diag->code].severity;
        errors -= severity == TIR_ERROR;
        warnings -= severity == TIR_WARNING;
        tir_error_at(to, diag->span, diag->code, STR_FMT, STR_ARG(diag->text));
        vec_foreach(const struct tir_diag_note, note, &diag->notes) {
            if (note->is_fix)
                tir_fix_at(to, note->span, note->replacement.ptr, STR_FMT, STR_ARG(note->text));
            else
                tir_note_at(to, note->span, STR_FMT, STR_ARG(note->text));
        }
    }
    to->error_count += errors; // those that were only counted
    to->warning_count += warnings;
}
