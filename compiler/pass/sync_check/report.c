// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's messages: the first thing that is wrong, with the two lines it is between.

#include "pass/sync_check/sync_check.h"

uint32_t tir_sync_line(const struct sync_program *p, const struct tir_inst *inst)
{
    return tir_source_locate(p->cx->diags->sources, inst->span.begin).line;
}

void tir_sync_fail(struct sync_run *r, enum tir_diag_code code, const struct tir_inst *at,
                   const struct tir_inst *other, const char *note, const char *format, ...)
{
    if (r->outcome != SYNC_GOING)
        return;
    r->outcome = SYNC_FAILED;
    struct tir_text text;
    tir_text_init(&text, r->p->cx->scratch, 0);
    va_list args;
    va_start(args, format);
    tir_text_vformat(&text, format, args);
    va_end(args);
    tir_error_at(r->p->cx->diags, at->span, code, "%s", text.ptr);
    if (other)
        tir_note_at(r->p->cx->diags, other->span, "%s", note);
}

void tir_sync_unchecked_at(struct sync_program *p, struct tir_span span, tir_str text)
{
    vec_foreach(const struct sync_unchecked, old, &p->unchecked)
        if (old->span.begin == span.begin && tir_str_equal(old->text, text))
            return;
    struct sync_unchecked now = {span, text};
    vec_push(p->f->module->arena, &p->unchecked, now);
}

void tir_sync_unchecked(struct sync_program *p, const struct tir_inst *inst, const char *what)
{
    tir_sync_unchecked_at(
        p, inst->span, tir_str_format(p->f->module->arena, "%s: %s", tir_ops[inst->op].name, what));
}
