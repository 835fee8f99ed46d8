// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks beside code generation.
//
// In sequence                           beside each other
//     ... turn                              ... turn
//     sync_check                            lower_tile, bounds, finish
//     lower_tile, bounds, finish            code generation  |  sync_check, of a copy
//     code generation                       join: what the check reported goes to its place
//
// A check reads the program and changes nothing, so what follows needs none of its results but
// whether it passed. Only where it did, and all else too, are its reports and the code taken;
// otherwise both are thrown away and the variant is compiled in sequence (jobs.c). So what a
// compilation says and gives does not depend on the number of threads.

#include "compile/check.h"

static void copy(struct tir_check *check, const struct tir_func *f, const struct tir_context *of,
                 const tir_allocator *allocator)
{
    struct tir_context *cx = &check->cx;
    if (setjmp(cx->out_of_memory)) {
        check->no_memory = true;
        return;
    }
    check->has_context = true;
    tir_context_init(cx, allocator);
    cx->diags.sources = of->diags.sources;
    // The order of numbers decides how many steps the check takes.
    check->f =
        tir_func_clone_numbered(tir_module_new(&cx->arena, cx->types, &cx->names, &cx->diags), f);
    check->receipt.arena = &cx->arena;
    vec_push(&cx->arena, &check->receipt.parts, (struct tir_receipt_part){0});
}

void tir_check_leave(struct tir_check *check, const struct tir_func *f,
                     const struct tir_pass_info *pass, const struct tir_pass_cx *cx,
                     const struct tir_context *of, const tir_allocator *allocator, bool verify)
{
    assert(!check->pass);
    check->pass = pass;
    check->pass_cx = *cx;
    check->verify = verify;
    check->meter = *cx->meter;
    check->steps = cx->meter->steps;
    check->records = vec_last(&cx->receipt->parts).records.len;
    copy(check, f, of, allocator);
}

static bool run(struct tir_check *check)
{
    struct tir_pass_cx *cx = &check->pass_cx;
    cx->scratch = &check->cx.scratch;
    cx->diags = &check->cx.diags;
    cx->receipt = &check->receipt;
    cx->meter = &check->meter;
    const struct tir_pass_options options = {
        .run = tir_str_of(check->pass->name), .bisect = -1, .verify = check->verify};
    return tir_run_passes(check->f, cx, &options);
}

void tir_check_make(struct tir_check *check)
{
    check->is_made = true;
    if (check->no_memory)
        return;
    if (setjmp(check->cx.out_of_memory)) {
        check->no_memory = true;
        return;
    }
    check->ok = run(check) && !check->cx.diags.list.len;
    tir_arena_finish(&check->cx.scratch);
}

uint64_t tir_check_steps(const struct tir_check *check)
{
    return check->meter.steps - check->steps;
}

void tir_check_finish(struct tir_check *check)
{
    if (check->has_context)
        tir_context_finish(&check->cx);
    *check = (struct tir_check){0};
}
