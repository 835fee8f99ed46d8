// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the passes on all variants of all kernels in parallel.
//
// A variant is copied to a separate context (memory, types, diagnostics), so passes of different
// variants share only constant data: the source, its names, the target. Their reports are joined
// afterwards in the order of the variants, for each kernel up to the first variant with an error.
// So nothing depends on the number of threads.
//
// An optimization that cannot apply never fails the compilation: a variant whose passes fail is
// compiled again from the start: with cp.async, if tensor copies may feed mma.sync; with fewer
// stages, then without pairs of CTAs, then without roles, then with mma.sync. The receipt says so.
// Errors that stay are those of the last attempt, which asks for least. Beside mma.sync a variant
// whose registers will not last has twice the warps, or makes tiles where they are used first, if
// more is left then.
//
// Where code is wanted and there are more processors than variants, checks are left to the end and
// made beside code generation (check.h). If one of them fails, that stops, its variant is compiled
// again, without leaving any, and the code is made anew.
//
// Running out of memory ends the passes of a variant; the caller's thread then jumps to the
// boundary itself.

#include "compile/compile.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/parallel.h"
#include "compile/check.h"
#include "compile/variants.h"
#include "ir/live.h"
#include "ir/walk.h"
#include "machine/budget.h"

struct tir_variant_job {
    struct tir_compilation *c;
    const struct tir_binding *dims;
    struct tir_kernel_code *kernel;
    uint32_t variant; // of the kernel
    bool is_required; // to have what options.require asks for
    bool has_context, ok, no_memory;
    bool may_leave; // checks
    struct tir_check check;
    struct tir_context cx;
    struct tir_func *f;         // the result
    struct tir_fullest fullest; // of it, if it is lowered
    struct tir_receipt receipt;
    struct tir_text printed;
    struct tir_meter meter;
};

enum { FAILURE_SIZE = 256 };

static const struct tir_attempt attempts[] = {
    {.stages = INT64_MAX},
    {"with cp.async", .stages = INT64_MAX, .only_cp_async = true},
    {"with two stages", .stages = 2},
    {"with one stage", .stages = 1},
    {"without pairs of CTAs", .stages = INT64_MAX, .no_pairs = true},
    {"with one stage and no pairs of CTAs", .stages = 1, .no_pairs = true},
    {"with one stage and no roles", .stages = 1, .no_roles = true},
    {"with mma.sync", .stages = INT64_MAX, .no_roles = true, .only_mma_sync = true},
    {"with mma.sync and one stage", .stages = 1, .no_roles = true, .only_mma_sync = true},
};

// What saves registers, where more than `from` percent of what a thread has are live at a time, up
// to `to` percent (0: any), on targets with one of the features (0: all); for more warps from
// `alone` percent on where there is one for each scheduler.
static const struct saving {
    uint32_t from, to, alone, features;
    struct tir_attempt attempt;
} savings[] = {
    {.from = 100 + TIR_BUDGET_OVERCOUNT,
     .alone = TIR_BUDGET_ALONE_FROM,
     .attempt = {.gain = "threads: twice as many", .stages = INT64_MAX, .more_warps = true}},
    {.from = 100,
     .to = 100 + TIR_BUDGET_LATE_OVERCOUNT,
     .features = TIR_HAS_ADD_64,
     .attempt = {.gain = "tiles: made where they are used first, among them a product",
                 .stages = INT64_MAX,
                 .late = TIR_LATE_PRODUCTS}},
    {.from = 100 + TIR_BUDGET_LATE_OVERCOUNT,
     .attempt = {.gain = "tiles: made where they are used first",
                 .stages = INT64_MAX,
                 .late = TIR_LATE_TILES}},
};

static void leave(void *user, const struct tir_func *f, const struct tir_pass_cx *cx,
                  const struct tir_pass_info *check)
{
    struct tir_variant_job *job = user;
    const struct tir_compilation *c = job->c;
    tir_check_leave(&job->check, f, check, cx, &c->cx, &c->allocator, c->request.options.verify);
}

// As far as that can be told before ptxas orders the instructions.
static void count_registers(struct tir_variant_job *job, struct tir_pass_cx *pass)
{
    job->fullest = tir_live_fullest(&job->cx.scratch, job->f);
    if (job->fullest.live > job->fullest.limit)
        tir_receipt_add(pass, TIR_TOPIC_LAUNCH, job->fullest.at->span,
                        "registers: %" PRIu32 " are live here, of %" PRIu32
                        " that a thread has; ptxas may spill some",
                        job->fullest.live, job->fullest.limit);
}

// failure: of the first attempt; NULL: this is it.
static void run_attempt(struct tir_variant_job *job, const struct tir_attempt *attempt,
                        tir_str stop_after, const char *failure)
{
    struct tir_compilation *c = job->c;
    struct tir_context *cx = &job->cx;
    const tir_compile_options *o = &c->request.options;
    if (job->has_context)
        tir_context_finish(cx);
    tir_check_finish(&job->check);
    job->has_context = true;
    job->receipt = (struct tir_receipt){0};
    tir_context_init(cx, &c->allocator);
    cx->diags.sources = c->cx.diags.sources;
    job->receipt.arena = &cx->arena;
    tir_text_init(&job->printed, &cx->arena, 0);
    struct tir_module *m = tir_module_new(&cx->arena, cx->types, &cx->names, &cx->diags);
    job->f = tir_func_clone_to(m, job->kernel->variants[job->variant]);
    struct tir_pass_cx pass = {.scratch = &cx->scratch,
                               .diags = &cx->diags,
                               .target = &c->request.target,
                               .receipt = &job->receipt,
                               .meter = &job->meter,
                               .known = job->dims,
                               .known_count = (uint32_t)o->dim_count,
                               .attempt = attempt};
    struct tir_pass_options options = {.run = o->run_pass,
                                       .stop_after = stop_after,
                                       .print_after = job->variant ? STR("") : o->print_after,
                                       .skip = o->skip_pass,
                                       .bisect = o->bisect,
                                       .verify = o->verify,
                                       .time = o->time_passes && !job->variant,
                                       .printed = &job->printed,
                                       .leave = job->may_leave ? leave : NULL,
                                       .user = job};
    tir_compile_receipt_begin(&job->receipt, job->kernel->name, job->f);
    job->ok = tir_run_passes(job->f, &pass, &options);
    if (failure && job->ok && attempt->gain)
        tir_receipt_add(&pass, TIR_TOPIC_LAUNCH, job->f->span, "%s, since %s", attempt->gain,
                        failure);
    else if (failure && job->ok) // else its own errors tell all
        tir_receipt_add(&pass, TIR_TOPIC_LAUNCH, job->f->span, "compiled again %s: %s",
                        attempt->name, failure);
    if (job->ok && job->f->form == TIR_FORM_LOWERED)
        count_registers(job, &pass);
    const struct tir_cost *card = &tir_costs[c->request.target.card];
    if (job->f->config && !c->request.target.is_measured)
        tir_receipt_add(&pass, TIR_TOPIC_LAUNCH, job->f->span, "configurations: modelled as %s%s",
                        card->card,
                        card->is_published ? ", by published rates and guesses; not measured" : "");
    for (const struct tir_left_out *it = job->variant || job->kernel->is_step ? NULL
                                                                              : job->f->left_out;
         it; it = it->next)
        tir_receipt_add(&pass, TIR_TOPIC_LAUNCH, it->span, STR_FMT, STR_ARG(it->text));
    if (job->f->joined.len && !job->kernel->is_step)
        tir_receipt_add(&pass, TIR_TOPIC_LAUNCH, job->f->joined_at, STR_FMT,
                        STR_ARG(job->f->joined));
    if (job->kernel->chosen.len)
        tir_receipt_add(&pass, TIR_TOPIC_LAUNCH, job->f->span, "configuration: " STR_FMT,
                        STR_ARG(job->kernel->chosen));
}

// The context of the attempt goes, so its message is copied.
static void copy_error(const struct tir_variant_job *job, char *failure)
{
    vec_foreach(struct tir_diag *const, it, &job->cx.diags.list)
        if (tir_diag_infos[(*it)->code].severity == TIR_ERROR) {
            snprintf(failure, FAILURE_SIZE, "error[%s]: " STR_FMT, tir_diag_infos[(*it)->code].code,
                     STR_ARG((*it)->text));
            return;
        }
}

// A mistake of the compiler itself: another attempt would hide it.
static bool is_internal(const struct tir_variant_job *job)
{
    vec_foreach(struct tir_diag *const, it, &job->cx.diags.list)
        if ((*it)->code == TIR_E_VERIFY)
            return true;
    return false;
}

static bool has_clusters(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (tir_attr_find(inst, TIR_ATTR_cluster))
            return true;
    return false;
}

// Can the attempt give this kernel something on a target with these features that the first one
// does not?
static bool is_other(const struct tir_attempt *attempt, const struct tir_func *f, uint32_t features)
{
    const uint32_t wgmma = features & TIR_HAS_WGMMA, tcgen05 = features & TIR_HAS_TCGEN05;
    if (attempt->only_cp_async)
        return features & TIR_HAS_TMA && !wgmma && !tcgen05;
    if (attempt->only_mma_sync)
        return wgmma || tcgen05;
    if (attempt->no_pairs)
        return tcgen05 && has_clusters(f);
    return !attempt->no_roles || wgmma; // without warpgroups no rings go to roles
}

static bool multiplies_by_mma_alone(const struct tir_func *f)
{
    bool has_mma = false;
    tir_foreach_inst(inst, f) {
        has_mma |= inst->op == TIR_OP_MMA;
        if (inst->op == TIR_OP_WGMMA || inst->op == TIR_OP_TMEM_ALLOC)
            return false;
    }
    return has_mma;
}

// Do products decide how many warps there are, and fewer than there may be?
static bool may_have_more_warps(const struct tir_variant_job *job)
{
    return !job->kernel->variants[job->variant]->threads &&
           job->f->threads < 32 * TIR_BUDGET_PRODUCT_WARPS;
}

// Is less of what a thread has live at a time?
static bool leaves_more(const struct tir_fullest *a, const struct tir_fullest *b)
{
    return (uint64_t)a->live * b->limit < (uint64_t)b->live * a->limit;
}

static bool is_too_full(const struct tir_fullest *fullest, uint32_t percent)
{
    return fullest->live > fullest->limit * percent / 100;
}

// Does a CTA of four warps have a multiprocessor to itself? On Blackwell.
static bool is_alone(const struct tir_variant_job *job)
{
    const struct tir_target *target = &job->c->request.target;
    return target->features & TIR_HAS_ADD_64 && job->f->threads == 32 * TIR_BUDGET_LEAST_WARPS &&
           tir_target_ctas_of(target, job->f) == 1;
}

static bool may_save(const struct saving *saving, const struct tir_fullest *fullest,
                     uint32_t features, bool alone)
{
    return is_too_full(fullest, alone && saving->alone ? saving->alone : saving->from) &&
           (!saving->to || !is_too_full(fullest, saving->to)) &&
           (!saving->features || features & saving->features);
}

// Of the first attempt, which has succeeded and whose meter began so, and those that save
// registers, the one that leaves most.
static const struct tir_attempt *with_registers(struct tir_variant_job *job, struct tir_meter meter,
                                                char *failure)
{
    const struct tir_attempt *best = &attempts[0], *last = best;
    const bool by_mma = multiplies_by_mma_alone(job->f), more_warps = may_have_more_warps(job);
    const bool alone = is_alone(job);
    const uint32_t features = job->c->request.target.features;
    struct tir_fullest least = job->fullest;
    snprintf(failure, FAILURE_SIZE,
             "%" PRIu32 " registers of a thread were live at a time, of %" PRIu32, least.live,
             least.limit);
    for (size_t i = 0; i < TIR_COUNT_OF(savings) && by_mma; i++) {
        if (!may_save(&savings[i], &least, features, alone) ||
            (savings[i].attempt.more_warps && !more_warps))
            continue;
        last = &savings[i].attempt;
        job->meter = meter;
        run_attempt(job, last, STR(""), failure);
        if (job->ok && leaves_more(&job->fullest, &least)) {
            best = last;
            least = job->fullest;
        }
    }
    if (last != best) {
        job->meter = meter;
        run_attempt(job, best, STR(""), best->gain ? failure : NULL);
    }
    return best;
}

// The attempt that succeeds, else the last one. failure: of the first.
static const struct tir_attempt *run_attempts(struct tir_variant_job *job, char *failure)
{
    const struct tir_attempt *last = &attempts[0];
    const struct tir_meter meter = job->meter;
    run_attempt(job, last, STR(""), NULL);
    if (job->ok)
        return with_registers(job, meter, failure);
    for (size_t i = 1; i < TIR_COUNT_OF(attempts) && !job->ok && !job->check.pass &&
                       !job->meter.is_stopped && !is_internal(job);
         i++) {
        if (!is_other(&attempts[i], job->kernel->variants[job->variant],
                      job->c->request.target.features))
            continue;
        if (!*failure)
            copy_error(job, failure);
        last = &attempts[i];
        run_attempt(job, last, STR(""), failure);
    }
    return last;
}

static void run_variant(struct tir_variant_job *job)
{
    const tir_compile_options *o = &job->c->request.options;
    const struct tir_func *f = job->kernel->variants[job->variant];
    const struct tir_attempt *attempt = &attempts[0];
    char failure[FAILURE_SIZE] = "";
    bool is_whole = f->form == TIR_FORM_TILE && !o->run_pass.len && o->bisect < 0;
    if (is_whole)
        attempt = run_attempts(job, failure);
    if (is_whole && !job->ok && o->stop_after.len) // it may fail later only
        attempt = &attempts[0];
    if (!is_whole || o->stop_after.len)
        run_attempt(job, attempt, o->stop_after, attempt == &attempts[0] ? NULL : failure);
}

// Each variant may take what the limit leaves so far: how many run at a time plays no part.
static struct tir_meter meter_for_job(const struct tir_compilation *c)
{
    struct tir_meter meter = c->meter;
    meter.limit -= meter.limit ? meter.steps : 0;
    meter.steps = meter.ask_at = 0;
    return meter;
}

static void run_protected(struct tir_variant_job *job)
{
    if (setjmp(job->cx.out_of_memory)) {
        job->no_memory = true;
        return;
    }
    run_variant(job);
}

static void run_in_sequence(struct tir_variant_job *job)
{
    job->may_leave = false;
    job->meter = meter_for_job(job->c);
    run_protected(job);
}

static void run_job(void *user, uint32_t i)
{
    struct tir_variant_job *job = &((struct tir_variant_job *)user)[i];
    run_protected(job);
    if (job->check.pass && !job->ok && !job->no_memory) // the check comes before what failed
        run_in_sequence(job);
}

static void make_check(void *user, uint32_t i)
{
    struct tir_variant_job *job = &((struct tir_variant_job *)user)[i];
    if (!job->check.pass || job->check.is_made)
        return;
    tir_check_make(&job->check);
    if (!job->check.ok)
        atomic_store(&job->c->is_code_vain, true);
}

static void run_refused(void *user, uint32_t i)
{
    struct tir_variant_job *job = &((struct tir_variant_job *)user)[i];
    if (job->check.pass && !job->check.ok && !job->check.no_memory)
        run_in_sequence(job);
}

// Makes the checks that are left, beside code generation if nothing has failed yet.
static void make_checks(struct tir_compilation *c)
{
    bool all = c->job_count > 0, refused = false;
    VEC(struct tir_func *) funcs = {0};
    for (uint32_t i = 0; i < c->job_count; i++) {
        all = all && c->jobs[i].check.pass && !c->jobs[i].check.no_memory;
        vec_push(&c->cx.arena, &funcs, c->jobs[i].f);
    }
    if (all)
        tir_compile_generate_beside(c, funcs.at, c->job_count, make_check, c->jobs);
    tir_side_by_side(tir_processors(), c->job_count, make_check, c->jobs); // if there was no code
    for (uint32_t i = 0; i < c->job_count; i++)
        refused |= c->jobs[i].check.pass && !c->jobs[i].check.ok;
    if (!refused)
        return;
    c->has_code = false;
    tir_side_by_side(tir_processors(), c->job_count, run_refused, c->jobs);
}

// Takes over what the check reported, as if it had been made in its place.
static void join_check(struct tir_variant_job *job)
{
    const struct tir_check *check = &job->check;
    if (!check->pass)
        return;
    tir_meter_take(&job->meter, tir_check_steps(check));
    tir_receipt_insert(&job->c->cx.arena, &vec_last(&job->receipt.parts), check->records,
                       &vec_last(&check->receipt.parts));
}

// Did every pass run?
static bool runs_all(const struct tir_compilation *c)
{
    return !c->request.options.run_pass.len && !c->request.options.stop_after.len;
}

// Takes over what the passes made and reported.
static bool join(struct tir_variant_job *job)
{
    struct tir_compilation *c = job->c;
    job->kernel->variants[job->variant] = job->f;
    tir_diags_repeat(&c->cx.diags, &job->cx.diags);
    vec_push(&c->cx.arena, &c->receipt.parts, job->receipt.parts.at[0]);
    tir_text_add(&c->printed, tir_text_str(&job->printed));
    if (!job->ok)
        return false;
    tir_compile_receipt_warn(c);
    // Other variants need not meet a wish, except that all must be synchronised.
    uint32_t wishes = job->is_required ? UINT32_MAX : 1u << TIR_WISH_SYNC;
    return tir_compile_receipt_require(c, wishes, runs_all(c));
}

// Where a step has a product, that step was asked. Where none has, one of them must meet a wish.
static bool join_steps(struct tir_compilation *c, const struct tir_sequence *sequence)
{
    uint32_t granted = 1u << TIR_WISH_SYNC;
    for (uint32_t i = 0; i < c->job_count; i++)
        for (uint32_t s = 0; s < sequence->step_count; s++) {
            const struct tir_variant_job *job = &c->jobs[i];
            if (job->kernel != &c->kernels.at[sequence->steps[s].kernel] || job->variant > 0)
                continue;
            if (!job->ok || job->is_required)
                return true;
            granted |= job->receipt.parts.at[0].granted;
        }
    return !runs_all(c) || tir_compile_receipt_require_of(c, sequence->whole, granted);
}

static bool join_all(struct tir_compilation *c)
{
    bool all = true;
    uint32_t at = 0;
    vec_foreach(const struct tir_kernel_code, kernel, &c->kernels) {
        bool ok = true;
        vec_foreach(const struct tir_sequence, it, &kernel->sequences)
            tir_compile_receipt_sequence(c, kernel->name, it);
        for (uint32_t v = 0; v < kernel->count; v++, at++)
            ok = ok && join(&c->jobs[at]);
        all = all && ok; // the errors of every kernel in one run
    }
    vec_foreach(const struct tir_kernel_code, kernel, &c->kernels)
        if (kernel->sequences.len)
            all &= join_steps(c, &kernel->sequences.at[0]);
    return all;
}

// Requirements are for the best variant alone; of steps without a product join_steps asks.
static bool must_require(const struct tir_kernel_code *kernel, uint32_t variant)
{
    return variant == 0 && (!kernel->is_step || tir_compile_has_dot(kernel->variants[0]));
}

// What is printed has its order, and text of LLVM is made on one thread. Many variants leave no
// processor idle, and their wrong programs should not wait for code.
static bool may_leave_checks(const struct tir_compilation *c, uint32_t variants)
{
    const tir_compile_options *o = &c->request.options;
    return variants < tir_processors() && tir_compile_wants_code(c) && runs_all(c) &&
           o->bisect < 0 && !o->print_after.len && !o->time_passes &&
           !(o->outputs >> TIR_OUTPUT_LLVM & 1);
}

bool tir_compile_run_passes(struct tir_compilation *c, const struct tir_binding *dims)
{
    uint32_t count = 0;
    vec_foreach(const struct tir_kernel_code, kernel, &c->kernels)
        count += kernel->count;
    const bool may_leave = may_leave_checks(c, count);
    c->jobs = arena_array(&c->cx.arena, struct tir_variant_job, count);
    vec_foreach(struct tir_kernel_code, kernel, &c->kernels)
        for (uint32_t v = 0; v < kernel->count; v++)
            c->jobs[c->job_count++] =
                (struct tir_variant_job){.c = c,
                                         .dims = dims,
                                         .kernel = kernel,
                                         .variant = v,
                                         .may_leave = may_leave,
                                         .meter = meter_for_job(c),
                                         .is_required = must_require(kernel, v)};
    tir_side_by_side(tir_processors(), count, run_job, c->jobs);
    if (may_leave)
        make_checks(c);
    for (uint32_t i = 0; i < count; i++)
        if (c->jobs[i].no_memory || c->jobs[i].check.no_memory)
            tir_arena_give_up(&c->cx.arena);
    for (uint32_t i = 0; i < count; i++) {
        join_check(&c->jobs[i]);
        c->meter.is_stopped |= c->jobs[i].meter.is_stopped;
        tir_meter_take(&c->meter, c->jobs[i].meter.steps);
    }
    return !c->meter.is_stopped && join_all(c);
}

void tir_compile_passes_finish(struct tir_compilation *c)
{
    for (uint32_t i = 0; i < c->job_count; i++) {
        tir_check_finish(&c->jobs[i].check);
        if (c->jobs[i].has_context)
            tir_context_finish(&c->jobs[i].cx);
    }
}
