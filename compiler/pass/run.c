// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running one pass: leaving it out, timing it, checking and printing what it made.

#include "pass/run.h"

#include <time.h>

#include "ir/walk.h"

static int64_t now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void count_time(struct tir_runner *r, const char *name, int64_t nanoseconds)
{
    uint32_t i = 0;
    while (i < r->timed_count && r->timed[i].name != name)
        i++;
    if (i == TIR_MAX_TIMED)
        return;
    if (i == r->timed_count)
        r->timed[r->timed_count++].name = name;
    r->timed[i].nanoseconds += nanoseconds;
    r->timed[i].runs++;
}

static bool left_out(const struct tir_runner *r, const struct tir_pass_info *pass)
{
    return pass->general && (r->changes_left == 0 || tir_str_is(r->options->skip, pass->name));
}

static uint64_t count_insts(const struct tir_func *f)
{
    uint64_t count = 0;
    tir_foreach_inst(inst, f)
        count++;
    return count;
}

static void print_after(const struct tir_runner *r, const struct tir_func *f,
                        const struct tir_pass_info *pass)
{
    tir_str wanted = r->options->print_after;
    bool all = tir_str_is(wanted, "all") && !pass->general;
    if (!r->options->printed || !(all || tir_str_is(wanted, pass->name)))
        return;
    tir_text_format(r->options->printed, "// after %s\n", pass->name);
    tir_print_func(r->options->printed, f);
}

static bool verified(const struct tir_runner *r, struct tir_func *f,
                     const struct tir_pass_info *pass)
{
    bool wanted = r->options->verify;
#ifndef NDEBUG
    wanted = true;
#endif
    if (!wanted || tir_verify(f))
        return true;
    tir_note_at(f->module->diags, f->span, "found after pass %s", pass->name);
    return false;
}

enum tir_change tir_run_pass(struct tir_func *f, struct tir_pass_cx *cx,
                             const struct tir_pass_info *pass)
{
    struct tir_runner *r = cx->runner;
    if (r && left_out(r, pass))
        return TIR_UNCHANGED;
    if (!pass->general && f->form != pass->in) {
        tir_error_at(cx->diags, f->span, TIR_E_VERIFY,
                     "pass %s takes form %s, but kernel %s is in form %s", pass->name,
                     tir_form_name(pass->in), f->name, tir_form_name(f->form));
        return TIR_FAILED;
    }
    if (!tir_meter_take(cx->meter, count_insts(f)) || !tir_meter_ask(cx->meter))
        return TIR_FAILED; // nothing is wrong with the program
    int64_t start = now();
    struct tir_arena_mark mark = tir_arena_mark(cx->scratch);
    enum tir_change change = pass->run(f, cx);
    tir_arena_release(cx->scratch, mark);
    if (change == TIR_FAILED)
        return TIR_FAILED;
    if (!pass->general)
        f->form = pass->out;
    if (!r)
        return change;
    count_time(r, pass->name, now() - start);
    if (pass->general && change == TIR_CHANGED && r->changes_left > 0)
        r->changes_left--;
    if (!verified(r, f, pass))
        return TIR_FAILED;
    print_after(r, f, pass);
    return change;
}
