// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc run: compile, fill the inputs, launch, compare, time, print. --explore does all of it once
// for each schedule, until one goes wrong.
#include <stdio.h>
#include <stdlib.h>

#include "driver/command/command.h"
#include "driver/emu/runtime.h"
#include "driver/launch/result.h"
#include "driver/launch/session.h"
#include "driver/launch/unwritten.h"
#include "driver/say.h"

struct run {
    struct tir_session s;
    tir_rt_event *start, *end;
    struct tir_result result;
    bool is_stuck; // the device will not come back
};

// ---- launching

static bool bind(struct run *r)
{
    struct tir_session *s = &r->s;
    r->result.device = tir_rt_device_describe(s->device);
    r->result.kernel = s->info;
    r->result.arch = s->arch;
    if (!tir_session_bind(s, s->options->args.at + 1, s->options->args.len - 1))
        return false;
    r->result.traffic = tir_session_traffic(s);
    for (uint32_t i = 0; i < s->info->param_count; i++)
        if (tir_param_is_output(&s->info->params[i]))
            r->result.outputs[r->result.output_count++].bound = &s->bind.params[i];
    return true;
}

// With --timeout, a kernel that hangs where no watchdog looks is left alone, somewhat later.
static bool wait_for_end(struct run *r)
{
    enum { MOST_S = 1000000, GRACE_MS = 2000 };
    const int64_t limit = TIR_MIN(r->s.options->integer[TIR_OPTION_TIMEOUT], MOST_S);
    uint32_t done;
    if (!limit)
        return !tir_rt_device_synchronize(r->s.device, r->s.error);
    if (tir_rt_stream_wait(r->s.device, NULL, (uint32_t)limit * 1250 + GRACE_MS, &done, r->s.error))
        return false;
    r->is_stuck = !done;
    return done || tir_fail(r->s.error, TIR_ERR_DEVICE,
                            "the kernel has not ended, and no wait for an mbarrier says why");
}

static bool launch_and_read(struct run *r)
{
    if (!tir_session_launch(&r->s, r->s.kernel, -1, &r->result.report, r->result.steps) ||
        !wait_for_end(r))
        return false;
    return tir_session_read(&r->s);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool measure(struct run *r)
{
    int64_t count = r->s.options->integer[TIR_OPTION_TIME];
    int64_t warm_up = r->result.device->kind == TIR_RT_EMU ? 0 : TIR_MIN(count, 5);
    if (count > 1000000)
        return tir_fail(r->s.error, TIR_ERR_INVALID, "--time=%lld: at most 1000000 launches",
                        (long long)count);
    double *times = arena_array(r->s.arena, double, count);
    if (tir_rt_event_create(r->s.device, &r->start, r->s.error) ||
        tir_rt_event_create(r->s.device, &r->end, r->s.error))
        return false;
    for (int64_t i = -warm_up; i < count; i++) {
        tir_rt_launch_report report;
        float milliseconds;
        if (tir_rt_event_record(r->start, NULL, r->s.error) ||
            !tir_session_launch(&r->s, r->s.kernel, -1, &report, NULL) ||
            tir_rt_event_record(r->end, NULL, r->s.error) ||
            tir_rt_event_elapsed(r->start, r->end, &milliseconds, r->s.error))
            return false;
        if (i >= 0)
            times[i] = (double)milliseconds * 1e3;
    }
    qsort(times, (size_t)count, sizeof(*times), by_size);
    r->result.launches = (uint32_t)count;
    r->result.min_us = times[0];
    r->result.median_us = (times[(count - 1) / 2] + times[count / 2]) / 2;
    return true;
}

// ---- checking

// Whether bytes that belong to no element were changed: they held 0xFF.
static bool strayed(const struct tir_tensor *t)
{
    uint32_t size = tir_elem_size(t->elem);
    if (t->size == (uint64_t)t->count * size)
        return false;
    struct tir_tensor copy;
    tir_error error;
    if (!tir_tensor_clone(&copy, t, &error))
        return false;
    struct tir_cursor c = tir_cursor_first(&copy);
    for (int64_t i = 0; i < copy.count; i++, tir_cursor_next(&c))
        memset(c.at, 0xFF, size);
    uint64_t at = 0;
    while (at < copy.size && copy.bytes[at] == 0xFF)
        at++;
    bool found = at < copy.size;
    tir_tensor_free(&copy);
    return found;
}

static bool check(struct run *r)
{
    const struct tir_session *s = &r->s;
    const double rtol =
        s->options->text[TIR_OPTION_COMPARE] ? s->options->number[TIR_OPTION_COMPARE] : -1;
    struct tir_unwritten *unwritten = arena_array(s->arena, struct tir_unwritten, TIR_MAX_PARAMS);
    if (!tir_session_reference(&r->s) || !tir_unwritten_find(&r->s, unwritten))
        return false;
    r->result.checked = true;
    for (uint32_t i = 0; i < r->result.output_count; i++) {
        struct tir_result_output *o = &r->result.outputs[i];
        const struct tir_tensor *got = &o->bound->tensor;
        const uint32_t param = (uint32_t)(o->bound - s->bind.params);
        if (!tir_reference_compare(got, &s->wants[param], rtol, s->rounded[param], &o->difference,
                                   s->error))
            return false;
        o->stray = strayed(got);
        o->unwritten = unwritten[param];
        o->wrong = o->stray || tir_difference_is_wrong(&o->difference) || o->unwritten.count > 0;
    }
    return true;
}

// ---- all of it

static bool save(struct run *r)
{
    for (uint32_t i = 0; i < r->result.kernel->param_count; i++)
        if (r->s.bind.params[i].spec.save &&
            !tir_npy_save(r->s.bind.params[i].spec.save, &r->s.bind.params[i].tensor, r->s.error))
            return false;
    return true;
}

static bool wants_check(const struct tir_options *options)
{
    return options->given[TIR_OPTION_COMPARE] || options->given[TIR_OPTION_AGAINST];
}

static bool run(struct run *r)
{
    return tir_session_open(&r->s) && tir_session_load(&r->s) && bind(r) && launch_and_read(r) &&
           (!wants_check(r->s.options) || check(r)) &&
           (r->s.options->integer[TIR_OPTION_TIME] == 0 || measure(r)) && save(r);
}

static void release(struct run *r)
{
    tir_rt_event_destroy(r->start);
    tir_rt_event_destroy(r->end);
    tir_session_close(&r->s);
}

// One round; the caller releases it.
static bool begin_and_run(struct run *r, struct tir_arena *arena, const struct tir_options *options,
                          uint32_t round, tir_error *error)
{
    *r = (struct run){.s = {.arena = arena,
                            .options = options,
                            .error = error,
                            .path = options->args.at[0],
                            .schedule = tir_emu_schedule(arena, options, round)}};
    return run(r);
}

bool tir_run_trace(struct tir_arena *arena, const struct tir_options *options,
                   struct tir_timeline *timeline, tir_error *error)
{
    struct run *r = arena_new(arena, struct run);
    *r = (struct run){.s = {.arena = arena,
                            .options = options,
                            .error = error,
                            .path = options->args.at[0],
                            .schedule = options->text[TIR_OPTION_SCHEDULE],
                            .timeline = timeline}};
    const bool done = run(r);
    release(r);
    return done;
}

enum tir_exit tir_command_run(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error;
    if (!options->args.len) {
        fputs("tirc: run needs a file; tirc run --help says more\n", stderr);
        return TIR_EXIT_USAGE;
    }
    struct run *r = arena_new(arena, struct run);
    uint32_t round = 0, rounds = tir_emu_rounds(options);
    bool done = begin_and_run(r, arena, options, round, &error);
    while (done && tir_result_passes(&r->result) && ++round < rounds) {
        release(r);
        done = begin_and_run(r, arena, options, round, &error);
    }
    enum tir_exit status = TIR_EXIT_FINE;
    if (done) {
        struct tir_text text;
        tir_text_init(&text, arena, 0);
        (options->given[TIR_OPTION_JSON] ? tir_result_json : tir_result_text)(&r->result, &text);
        tir_say_text(stdout, tir_text_str(&text));
        tir_emu_print_findings(arena, r->s.device); // hints
        if (!tir_result_passes(&r->result))
            status = TIR_EXIT_WRONG;
    } else {
        status = tir_emu_complain(arena, r->s.device, &error);
        if (r->is_stuck) { // nothing of the device can be freed
            fflush(stdout);
            _Exit((int)status);
        }
    }
    if (status == TIR_EXIT_WRONG && options->given[TIR_OPTION_EXPLORE])
        tir_say(stderr, "tirc: in round %u of %u; --schedule=%s replays it", round + 1, rounds,
                r->s.schedule ? r->s.schedule : "lazy");
    release(r);
    return status;
}
