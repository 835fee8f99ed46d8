// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How lowering reports: names for types and values, and where an inlined function was called from.
#include "front/library.h"
#include "front/lower/lower.h"

#include <math.h>

enum {
    MAX_DEPTH = 1000,
    MAX_INSTRUCTIONS = 200000,
    MAX_STEPS = 2000000,
    MAX_CALLS_SHOWN = 3,
    MAX_ERRORS = 100
};

// shown_at: the call that the message itself stands at.
static void note_calls(struct lower *l, const struct inlined *shown_at)
{
    uint32_t shown = 0;
    for (const struct inlined *in = l->calls; in && shown < MAX_CALLS_SHOWN;
         in = in->outer, shown++)
        if (in != shown_at)
            tir_note_at(&l->cx->diags, in->call, "in `%s`, called here", in->fn->name);
}

static bool is_in_library(const struct lower *l, struct tir_span span)
{
    const struct tir_position at = tir_source_locate(&l->cx->sources, span.begin);
    for (uint32_t i = 0; at.file && library_files[i].name; i++)
        if (tir_str_equal(at.file->name, tir_str_of(library_files[i].name)))
            return true;
    return false;
}

// The call by which the program came to the library; NULL: its own text is wrong.
static const struct inlined *library_call(const struct lower *l, struct tir_span span)
{
    const struct inlined *in = l->calls;
    if (!is_in_library(l, span))
        return NULL;
    while (in && is_in_library(l, in->call))
        in = in->outer;
    return in;
}

void lower_error(struct lower *l, struct tir_span span, enum tir_diag_code code, const char *format,
                 ...)
{
    va_list args;
    va_start(args, format);
    tir_str text = tir_str_vformat(l->arena, format, args);
    va_end(args);
    const struct inlined *in = library_call(l, span);
    if (in) {
        tir_error_at(&l->cx->diags, in->call, code, "in `%s`: %s", in->fn->name, text.ptr);
        tir_note_at(&l->cx->diags, span, "it is found here");
    } else {
        tir_error_at(&l->cx->diags, span, code, "%s", text.ptr);
    }
    note_calls(l, in);
    if (++l->errors >= MAX_ERRORS) // an error in a function comes back with every call of it
        l->stopped = true;
}

void lower_note(struct lower *l, struct tir_span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_str text = tir_str_vformat(l->arena, format, args);
    va_end(args);
    tir_note_at(&l->cx->diags, span, "%s", text.ptr);
}

const char *lower_type_name(struct lower *l, const struct tir_type *t)
{
    return tir_type_text(l->arena, t).ptr;
}

static const char *layout_name(struct lower *l, const struct tir_layout *layout)
{
    struct tir_text text;
    tir_text_init(&text, l->arena, 0);
    tir_text_format(&text, "the layout of [");
    for (uint32_t d = 0; d < layout->rank; d++)
        tir_text_format(&text, "%s%lld", d ? ", " : "", (long long)layout->shape[d]);
    tir_text_format(&text, "] in ");
    tir_layout_print(&text, layout);
    return text.ptr;
}

const char *lower_val_name(struct lower *l, struct val v)
{
    switch (v.kind) {
    case VAL_POISON:
        return "an error";
    case VAL_VOID:
        return "nothing";
    case VAL_INT:
        return tir_str_format(l->arena, "the integer %lld", (long long)v.i).ptr;
    case VAL_FLOAT:
        return tir_str_format(
                   l->arena,
                   v.f == floor(v.f) && fabs(v.f) < 1e6 ? "the number %.1f" : "the number %g", v.f)
            .ptr;
    case VAL_BOOL:
        return v.truth ? "true" : "false";
    case VAL_ELEM:
        return tir_str_format(l->arena, "the type %s", tir_elems[v.elem].name).ptr;
    case VAL_LAYOUT:
        return layout_name(l, v.layout);
    case VAL_TEXT:
        return "a string";
    case VAL_RING:
        return "a ring";
    case VAL_FN:
        return tir_str_format(l->arena, "the function `%s`", v.fn->name).ptr;
    case VAL_MODULE:
        return "a module";
    case VAL_CONFIGS:
        return "a list of configurations";
    case VAL_ABSENT:
        return "nothing";
    case VAL_IR:
        if (v.ir->type->space == TIR_SPACE_GLOBAL)
            return tir_str_format(l->arena, "a tensor of %s in memory",
                                  tir_elems[v.ir->type->elem].name)
                .ptr;
        return lower_type_name(l, v.ir->type);
    }
    tir_unreachable();
}

void lower_note_operand(struct lower *l, const struct ast_expr *e, struct val v)
{
    if (!e || e->kind != AST_NAME || v.kind != VAL_IR)
        return;
    const struct symbol *s = scope_find(l, e->name);
    if (s)
        lower_note(l, s->span, "`%s` is %s", e->name, lower_val_name(l, v));
}

// The place where the kernel's own text calls the functions being inlined: a limit is exceeded by
// all that this call expands to.
static struct tir_span outermost(const struct lower *l, struct tir_span span)
{
    for (const struct inlined *in = l->calls; in; in = in->outer)
        span = in->call;
    return span;
}

bool lower_enter(struct lower *l, struct tir_span span)
{
    if (l->stopped)
        return false;
    l->steps++;
    if (!tir_meter_take(l->cx->meter, 1)) {
        tir_error_at(&l->cx->diags, span, TIR_E_LIMIT, "the compilation was stopped here");
        l->stopped = true;
        return false;
    }
    if (l->depth >= MAX_DEPTH)
        tir_error_at(&l->cx->diags, outermost(l, span), TIR_E_NESTING,
                     "nested more than %d levels deep, calls included", MAX_DEPTH);
    else if (l->f->inst_count > MAX_INSTRUCTIONS)
        tir_error_at(&l->cx->diags, outermost(l, span), TIR_E_LIMIT,
                     "the kernel has more than %d operations once functions and loops are expanded",
                     MAX_INSTRUCTIONS);
    else if (l->steps > MAX_STEPS)
        tir_error_at(&l->cx->diags, outermost(l, span), TIR_E_LIMIT,
                     "expanding functions and loops takes more than %d statements and expressions",
                     MAX_STEPS);
    else
        return ++l->depth;
    l->stopped = true;
    return false;
}

void lower_leave(struct lower *l)
{
    l->depth--;
}
