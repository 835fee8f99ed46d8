// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pipeline as a table, and running it.

#include "pass/receipt.h"
#include "pass/run.h"

// clang-format off
const struct tir_pass_info tir_passes[] = {
#define PASS(id, in, out, meaning) {#id, false, TIR_FORM_##in, TIR_FORM_##out, tir_pass_##id, meaning},
#define CHECK(id, form, meaning) {#id, false, TIR_FORM_##form, TIR_FORM_##form, tir_pass_##id, meaning, true},
#include "pass/passes.def"
#define CLEAN(id, meaning) {#id, true, TIR_FORM_TILE, TIR_FORM_TILE, tir_pass_##id, meaning},
#include "pass/passes.def"
};
const uint32_t tir_pipeline_count = 0
#define PASS(...) + 1
#include "pass/passes.def"
;
// clang-format on
const uint32_t tir_pass_count = TIR_COUNT_OF(tir_passes);

const struct tir_pass_info *tir_pass_by_name(tir_str name)
{
    for (uint32_t i = 0; i < tir_pass_count; i++)
        if (tir_str_is(name, tir_passes[i].name))
            return &tir_passes[i];
    return NULL;
}

static bool check_name(struct tir_func *f, struct tir_pass_cx *cx, tir_str name)
{
    if (!name.len || tir_pass_by_name(name) || tir_str_is(name, "all"))
        return true;
    tir_error_at(cx->diags, f->span, TIR_E_ARGUMENTS, "there is no pass " STR_FMT, STR_ARG(name));
    return false;
}

static bool run_all(struct tir_func *f, struct tir_pass_cx *cx,
                    const struct tir_pass_options *options)
{
    if (options->run.len) {
        const struct tir_pass_info *only = tir_pass_by_name(options->run);
        if (!only || tir_run_pass(f, cx, only) == TIR_FAILED)
            return false;
        f->after = f->after && !only->general ? only->name : f->after;
        return true;
    }
    uint32_t first = 0;
    while (f->after && first < tir_pipeline_count && strcmp(f->after, tir_passes[first].name))
        first++;
    if (first == tir_pipeline_count || (f->after && tir_passes[first].out != f->form)) {
        tir_error_at(cx->diags, f->span, TIR_E_ARGUMENTS, "no pass %s gives form %s", f->after,
                     tir_form_name(f->form));
        return false;
    }
    first += f->after != NULL;
    f->after = NULL;
    bool is_described = false;
    for (uint32_t i = first; i < tir_pipeline_count; i++) {
        const struct tir_pass_info *pass = &tir_passes[i];
        if (f->form > pass->in)
            continue; // it entered the pipeline after this pass
        // The last pass of that form changes nothing: it looks at what is described.
        if (f->form == TIR_FORM_SYNCED && tir_passes[i + 1].out > TIR_FORM_SYNCED &&
            !is_described) {
            tir_receipt_describe(cx, f);
            is_described = true;
        }
        if (pass->is_check && options->leave)
            options->leave(options->user, f, cx, pass);
        else if (tir_run_pass(f, cx, pass) == TIR_FAILED)
            return false;
        if (tir_str_is(options->stop_after, pass->name)) {
            f->after = pass->name;
            break;
        }
    }
    if (f->form == TIR_FORM_SYNCED && !is_described) // stopped before that
        tir_receipt_describe(cx, f);
    return true;
}

static void print_times(const struct tir_runner *r, const struct tir_func *f)
{
    if (!r->options->time || !r->options->printed)
        return;
    tir_text_format(r->options->printed, "// passes of %s, in microseconds (and runs)\n", f->name);
    for (uint32_t i = 0; i < r->timed_count; i++)
        tir_text_format(r->options->printed, "// %9.1f  %s (%u)\n",
                        (double)r->timed[i].nanoseconds / 1000, r->timed[i].name, r->timed[i].runs);
}

bool tir_run_passes(struct tir_func *f, struct tir_pass_cx *cx,
                    const struct tir_pass_options *options)
{
    struct tir_runner runner = {.options = options, .changes_left = options->bisect};
    if (!check_name(f, cx, options->run) || !check_name(f, cx, options->stop_after) ||
        !check_name(f, cx, options->print_after) || !check_name(f, cx, options->skip))
        return false;
    cx->runner = &runner;
    bool done = run_all(f, cx, options);
    cx->runner = NULL;
    print_times(&runner, f);
    return done;
}
