// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tirc tune: which configuration of a kernel is the fastest for which sizes, on this device.
//
// For each of the sizes: the model's choice is launched, then every other configuration by the
// first of its variants that fits, and their outputs are compared, with each other and, with
// --check, with the reference. Only then are they timed, by turns, so that a device that grows
// warmer is the same for all: a turn is as many launches between two events as take about a
// millisecond. An emulator gives the cycles of its model of time instead, which are the same every
// time.
//
// The fastest is stored. What is no more than a hundredth faster than the model's choice is noise,
// and the model's choice is stored, so that tables of two runs differ where something has changed.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/command/command.h"
#include "driver/compile.h"
#include "driver/emu/runtime.h"
#include "driver/file.h"
#include "driver/launch/reference.h"
#include "driver/say.h"
#include "driver/source.h"
#include "driver/tune/candidates.h"
#include "driver/tune/keep.h"
#include "driver/tune/sizes.h"
#include "driver/tune/tuned_file.h"

enum { TURNS = 20, MOST_TURNS = 100000, WARM_UP = 3, TURN_US = 1000, MOST_LAUNCHES = 200 };
static const double NOISE = 1.01;

struct tune {
    struct tir_session s;
    struct tir_timeline timeline; // of an emulator
    FILE *log;
    bool is_emulator;
    uint32_t turns;
    tir_rt_event *start, *end;
    struct tir_candidates list;
    uint32_t model;                          // the candidate that a launch takes
    struct tir_tensor first[TIR_MAX_PARAMS]; // the outputs of that one
    const char *out;                         // NULL: nothing is stored
    tir_str table;
    bool is_wrong;       // outputs differed
    tir_str passed_over; // why the last drawn size was
    uint32_t sizes, agreed;
    double log_ratio; // of the model's choice and the best, summed
    struct tir_keep keep;
};

// ---- outputs

static bool put_outputs_back(struct tir_session *s)
{
    for (uint32_t i = 0; i < s->info->param_count; i++)
        if (s->wants[i].bytes && tir_rt_buffer_write(s->buffers[i], 0, s->wants[i].bytes,
                                                     s->wants[i].size, NULL, s->error))
            return false;
    return true;
}

static bool keep_outputs(struct tune *t)
{
    for (uint32_t i = 0; i < t->s.info->param_count; i++)
        if (tir_param_is_output(&t->s.info->params[i]) &&
            !tir_tensor_clone(&t->first[i], &t->s.bind.params[i].tensor, t->s.error))
            return false;
    return true;
}

// Says where one output is not what it should be.
static bool compare(struct tune *t, const struct tir_tensor *got, const struct tir_tensor *want,
                    uint32_t param, tir_str config, const char *source)
{
    const tir_str name = t->s.info->params[param].name;
    const struct tir_options *o = t->s.options;
    struct tir_difference d;
    if (got->size == want->size && !memcmp(got->bytes, want->bytes, got->size))
        return true;
    if (!tir_reference_compare(got, want,
                               o->text[TIR_OPTION_COMPARE] ? o->number[TIR_OPTION_COMPARE] : -1,
                               t->s.rounded[param], &d, t->s.error))
        return false;
    if (!tir_difference_is_wrong(&d))
        return true;
    struct tir_text text;
    tir_text_init(&text, t->s.arena, 0);
    tir_text_format(&text, STR_FMT ": " STR_FMT ": ", STR_ARG(config), STR_ARG(name));
    if (d.mismatches) {
        tir_text_format(&text, "%lld of %lld elements differ from %s, the first at [",
                        (long long)d.mismatches, (long long)got->count, source);
        for (uint32_t i = 0; i < got->rank; i++)
            tir_text_format(&text, "%s%lld", i ? ", " : "", (long long)d.first[i]);
        tir_text_add(&text, STR("]: "));
        tir_scalar_print(&text, &d.got);
        tir_text_add(&text, STR(", not "));
        tir_scalar_print(&text, &d.want);
    } else {
        tir_text_format(&text, "differs from %s by %.3g of its root mean square (allowed %.3g)",
                        source, d.error, d.mean_tolerance);
    }
    tir_say(t->log, "%s: FAIL", text.ptr);
    t->is_wrong = true;
    return true;
}

// The outputs in `all`, or of the last launch where that is NULL, against others.
static bool compare_all(struct tune *t, const struct tir_tensor *all,
                        const struct tir_tensor *wants, const struct tir_candidate *c,
                        const char *source)
{
    for (uint32_t i = 0; i < t->s.info->param_count; i++)
        if (tir_param_is_output(&t->s.info->params[i]) &&
            !compare(t, all ? &all[i] : &t->s.bind.params[i].tensor, &wants[i], i, c->name, source))
            return false;
    return true;
}

// ---- one launch of each

// Launches and reads the outputs; -1: the variant that the runtime takes.
static bool launch(struct tune *t, tir_rt_kernel *kernel, int32_t variant,
                   tir_rt_launch_report *report)
{
    t->timeline.end = 0;
    return put_outputs_back(&t->s) && tir_session_launch(&t->s, kernel, variant, report, NULL) &&
           !tir_rt_device_synchronize(t->s.device, t->s.error) && tir_session_read(&t->s);
}

static void found(const struct tune *t, struct tir_candidate *c, uint32_t variant)
{
    c->fits = true;
    c->variant = variant;
    c->time = (double)t->timeline.end;
}

static bool launch_model(struct tune *t)
{
    tir_rt_launch_report report;
    if (!launch(t, t->s.kernel, -1, &report))
        return false;
    if (!report.launched)
        return tir_fail(t->s.error, TIR_ERR_INVALID,
                        "there is nothing to launch: the grid or every output is empty");
    t->model = tir_session_config(t->s.info, report.variant);
    found(t, &t->list.all.at[t->model], report.variant);
    return keep_outputs(t);
}

static bool launch_candidate(struct tune *t, struct tir_candidate *c)
{
    for (uint32_t v = 0; v < c->info->variant_count + c->info->sequence_count; v++) {
        tir_rt_launch_report report;
        if (tir_session_config(c->info, v) != c->config)
            continue;
        if (launch(t, c->kernel, (int32_t)v, &report)) {
            found(t, c, v);
            return compare_all(t, NULL, t->first, c, "the model's choice");
        }
        if (t->s.error->status != TIR_ERR_INVALID) // it does not fit
            return false;
    }
    return true;
}

static bool launch_all(struct tune *t)
{
    vec_foreach(struct tir_candidate, c, &t->list.all)
        c->fits = false;
    if (!tir_session_rounding(&t->s) || !launch_model(t))
        return false;
    const struct tir_candidate *model = &t->list.all.at[t->model];
    vec_foreach(struct tir_candidate, c, &t->list.all)
        if (c != model && !launch_candidate(t, c))
            return false;
    return !t->s.options->given[TIR_OPTION_COMPARE] ||
           (tir_session_reference(&t->s) &&
            compare_all(t, t->first, t->s.wants, model, "the reference"));
}

// ---- time

static bool take_turn(struct tune *t, const struct tir_candidate *c, uint32_t launches, double *us)
{
    tir_rt_launch_report report;
    float milliseconds;
    if (tir_rt_event_record(t->start, NULL, t->s.error))
        return false;
    for (uint32_t i = 0; i < launches; i++)
        if (!tir_session_launch(&t->s, c->kernel, (int32_t)c->variant, &report, NULL))
            return false;
    if (tir_rt_event_record(t->end, NULL, t->s.error) ||
        tir_rt_event_elapsed(t->start, t->end, &milliseconds, t->s.error))
        return false;
    *us = (double)milliseconds * 1e3 / launches;
    return true;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool measure(struct tune *t)
{
    vec_foreach(struct tir_candidate, c, &t->list.all)
        c->turns = arena_array(t->s.arena, double, t->turns);
    for (uint32_t turn = 0; turn < WARM_UP + t->turns; turn++)
        vec_foreach(struct tir_candidate, c, &t->list.all) {
            double us;
            if (!c->fits)
                continue;
            if (!take_turn(t, c, turn ? c->launches : 1, &us))
                return false;
            if (turn < WARM_UP) // the later, the better known
                c->launches =
                    (uint32_t)TIR_MAX(1, TIR_MIN(TURN_US / TIR_MAX(us, 1), MOST_LAUNCHES));
            else
                c->turns[turn - WARM_UP] = us;
        }
    vec_foreach(struct tir_candidate, c, &t->list.all) {
        qsort(c->turns, t->turns, sizeof(*c->turns), by_size);
        c->time = (c->turns[(t->turns - 1) / 2] + c->turns[t->turns / 2]) / 2;
    }
    return true;
}

// ---- what came out

// The fastest of the first `count` candidates; `at_least`, unless one is faster by more than noise.
static uint32_t best_of(const struct tune *t, uint32_t count, uint32_t at_least)
{
    const struct tir_candidate *all = t->list.all.at;
    uint32_t best = at_least;
    for (uint32_t i = 0; i < count; i++)
        if (all[i].fits && all[i].time < all[best].time)
            best = i;
    return all[at_least].time <= all[best].time * NOISE ? at_least : best;
}

static tir_str sizes_text(const struct tune *t, const struct tir_sizes *sizes)
{
    struct tir_text text;
    tir_text_init(&text, t->s.arena, 0);
    for (uint32_t i = 0; i < t->s.info->dim_count; i++)
        tir_text_format(&text, "%s" STR_FMT "=%lld", i ? ", " : "", STR_ARG(t->s.info->dims[i]),
                        (long long)sizes->dims[i]);
    return tir_text_str(&text);
}

static tir_str time_text(const struct tune *t, double time)
{
    if (t->is_emulator)
        return tir_str_format(t->s.arena, "%.0f cycles", time);
    return tir_str_format(t->s.arena, "%.2f us, %.1f GB/s", time,
                          (double)tir_session_traffic(&t->s) / time / 1e3);
}

static void show(struct tune *t, const struct tir_sizes *sizes, uint32_t best, uint32_t tried)
{
    tir_say(t->log, "%s", sizes_text(t, sizes).ptr);
    for (uint32_t i = 0; i < t->list.all.len; i++) {
        const struct tir_candidate *c = &t->list.all.at[i];
        const char *time = c->fits ? time_text(t, c->time).ptr : "does not fit these arguments";
        struct tir_text mark;
        tir_text_init(&mark, t->s.arena, 0);
        if (i == best)
            tir_text_add(&mark, STR(" best"));
        else if (i == tried)
            tir_text_add(&mark, STR(" better"));
        if (i == t->model)
            tir_text_add(&mark, STR(" (the model's choice)"));
        tir_say(t->log, "  %-40.*s %*s%s", STR_ARG(c->name), mark.len ? -24 : 0, time, mark.ptr);
    }
    fflush(t->log);
}

// The start of the line in the table: the device, the target, the kernel and its sizes.
static tir_str key_text(const struct tune *t, const struct tir_sizes *sizes)
{
    const tir_artifact_kernel *info = t->s.info;
    const tir_rt_device_info *device = tir_rt_device_describe(t->s.device);
    const char *separator = "<";
    struct tir_text text;
    tir_text_init(&text, t->s.arena, 0);
    tir_text_json(&text, tir_str_of(device->name));
    tir_text_format(&text, " %u %s " STR_FMT, device->sm_count, t->s.arch, STR_ARG(info->name));
    for (uint32_t i = 0; i < info->meta_count; i++)
        for (uint32_t k = 0; k < t->s.options->defines.len; k++) {
            tir_str name, value;
            tir_source_split(t->s.options->defines.at[k], &name, &value);
            if (!tir_str_equal(name, info->metas[i].name))
                continue;
            tir_text_format(&text, "%s" STR_FMT "=" STR_FMT, separator, STR_ARG(name),
                            STR_ARG(info->metas[i].value));
            separator = ", ";
            break;
        }
    tir_text_format(&text, "%s(" STR_FMT ")", *separator == '<' ? "" : ">",
                    STR_ARG(sizes_text(t, sizes)));
    return tir_text_str(&text);
}

// To the file as it is now: others may measure other sizes or devices for it meanwhile.
static bool add_to_file(struct tune *t, tir_str key, tir_str line)
{
    const int lock = tir_file_lock(t->out);
    bool done = !tir_file_same(t->out, t->out) || // there is none yet
                tir_source_read(t->s.arena, t->out, &t->table, t->s.error);
    if (done) {
        t->table = tir_tuned_file_put(t->s.arena, t->table, key, line);
        done = tir_file_write(t->out, t->table.ptr, t->table.len, t->s.error);
    }
    tir_file_unlock(lock);
    return done;
}

static bool store(struct tune *t, const struct tir_sizes *sizes, uint32_t best)
{
    struct tir_arena *arena = t->s.arena;
    const tir_str key = key_text(t, sizes);
    tir_str line = tir_str_format(arena, STR_FMT " config(" STR_FMT ") // %s", STR_ARG(key),
                                  STR_ARG(t->list.all.at[best].name),
                                  time_text(t, t->list.all.at[best].time).ptr);
    if (best != t->model)
        line = tir_str_format(arena, STR_FMT "; the model's choice: %s", STR_ARG(line),
                              time_text(t, t->list.all.at[t->model].time).ptr);
    if (strcmp(t->out, "-"))
        return add_to_file(t, key, line);
    t->table = tir_tuned_file_put(arena, t->table, key, line);
    return true;
}

// ---- all of it

static void count(struct tune *t, uint32_t best, uint32_t tried)
{
    struct tir_candidate *all = t->list.all.at;
    t->sizes++;
    t->agreed += best == t->model;
    t->log_ratio += log(all[t->model].time / all[best].time);
    if (tried != best) {
        all[tried].wins++;
        all[tried].gain = fmax(all[tried].gain, all[best].time / all[tried].time);
    }
}

// For --keep.
static void remember(struct tune *t)
{
    int64_t scalars[TIR_MAX_PARAMS] = {0};
    for (uint32_t i = 0; i < t->s.info->param_count; i++)
        if (t->s.info->params[i].kind == TIR_PARAM_SCALAR)
            scalars[i] = t->s.bind.params[i].scalar.i;
    tir_keep_add(&t->keep, &t->list, t->s.bind.dims, scalars);
}

static bool tune_sizes(struct tune *t, const struct tir_size_list *list,
                       const struct tir_sizes *sizes)
{
    uint32_t given;
    const char *const *words = tir_sizes_words(t->s.arena, t->s.info, list, sizes, &given);
    if (!tir_session_bind(&t->s, words, given) || !launch_all(t))
        return false;
    if (t->is_wrong)
        return true;
    if (!t->is_emulator && !measure(t))
        return false;
    const uint32_t best = best_of(t, t->list.listed, t->model);
    const uint32_t tried = best_of(t, t->list.all.len, best);
    show(t, sizes, best, tried);
    count(t, best, tried);
    if (t->s.options->given[TIR_OPTION_KEEP])
        remember(t);
    return !t->out || store(t, sizes, best);
}

static void forget_sizes(struct tune *t)
{
    tir_session_unbind(&t->s);
    for (uint32_t i = 0; i < TIR_MAX_PARAMS; i++)
        tir_tensor_free(&t->first[i]);
}

// What is in the file already stays, so it has to be a table. One that has become stale may be
// tuned anew.
static bool open_table(struct tune *t)
{
    static const char header[] =
        "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
        "// The fastest configuration of a kernel for certain sizes, as `tirc tune` has measured it: each one timed\n"
        "// by turns with the others, on random inputs, after their outputs were compared. For tirc build --tuned.\n";
    struct tir_options options = *t->s.options;
    struct tir_compile_request request = {.arena = t->s.arena,
                                          .options = &options,
                                          .path = t->s.path,
                                          .source = t->s.source,
                                          .arch = t->s.arch,
                                          .log = t->log};
    tir_compilation *compilation = NULL;
    t->table = tir_str_of(header);
    if (!t->out || !strcmp(t->out, "-") || access(t->out, F_OK))
        return true;
    options.text[TIR_OPTION_TUNED] = t->out;
    const bool is_table = tir_source_read(t->s.arena, t->out, &t->table, t->s.error) &&
                          tir_compile_source(&request, &compilation, t->s.error);
    tir_compilation_destroy(compilation);
    return is_table;
}

static bool above_zero(struct tune *t, enum tir_option option, const char *name)
{
    return !t->s.options->given[option] || t->s.options->integer[option] > 0 ||
           tir_fail(t->s.error, TIR_ERR_INVALID, "%s=0: at least 1", name);
}

static bool prepare(struct tune *t)
{
    const struct tir_options *o = t->s.options;
    const int64_t turns = o->given[TIR_OPTION_TIME] ? o->integer[TIR_OPTION_TIME] : TURNS;
    if (turns < 1 || turns > MOST_TURNS)
        return tir_fail(t->s.error, TIR_ERR_INVALID, "--time=%lld: 1 to %d turns", (long long)turns,
                        MOST_TURNS);
    t->turns = (uint32_t)turns;
    if (!above_zero(t, TIR_OPTION_KEEP, "--keep") || !above_zero(t, TIR_OPTION_DRAW, "--draw"))
        return false;
    if (!tir_session_open(&t->s) || !tir_session_load(&t->s) || !open_table(t))
        return false;
    t->is_emulator = tir_rt_device_describe(t->s.device)->kind == TIR_RT_EMU;
    if (!tir_candidates_find(&t->s, &t->list))
        return false;
    if (t->list.all.len < 2 || (t->out && t->list.listed < 2))
        return tir_fail(t->s.error, TIR_ERR_INVALID,
                        STR_FMT " has no configurations to choose among: config(META = VALUE)",
                        STR_ARG(t->s.info->name));
    return t->is_emulator || (!tir_rt_event_create(t->s.device, &t->start, t->s.error) &&
                              !tir_rt_event_create(t->s.device, &t->end, t->s.error));
}

static void introduce(const struct tune *t)
{
    const tir_rt_device_info *device = tir_rt_device_describe(t->s.device);
    const char *times = t->is_emulator
                            ? "cycles of the emulator's model of time (not measured)"
                            : tir_str_format(t->s.arena, "medians of %u turns", t->turns).ptr;
    tir_say(t->log, "%.*s on %s (%s, %u multiprocessors), compiled for %s: %u configurations, %s",
            STR_ARG(t->s.info->name), device->spec, device->name, device->sm_count, t->s.arch,
            t->list.all.len, times);
    if (t->list.failed)
        tir_say(t->log, "%u combinations of --try do not compile", t->list.failed);
}

static void conclude(const struct tune *t)
{
    tir_say(t->log,
            "the model's choice is the best for %u of %u, and takes %.3f times as long "
            "(geometric mean)",
            t->agreed, t->sizes, exp(t->log_ratio / t->sizes));
    vec_foreach(const struct tir_candidate, c, &t->list.all)
        if (c->wins)
            tir_say(t->log,
                    "worth a clause: config(" STR_FMT "), for %u of %u; up to %.3f times as fast",
                    STR_ARG(c->name), c->wins, t->sizes, c->gain);
}

static void show_kept(struct tune *t)
{
    struct tir_keep *keep = &t->keep;
    if (!t->s.options->given[TIR_OPTION_KEEP])
        return;
    tir_keep_choose(keep, (uint32_t)TIR_MIN(t->s.options->integer[TIR_OPTION_KEEP], UINT32_MAX));
    tir_say(t->log,
            "with %u of %u configurations a launch takes %.3f times as long as the best of all "
            "(geometric mean)%s",
            keep->kept.len, keep->candidates, keep->loss,
            keep->unfit
                ? tir_str_format(t->s.arena, "; none fits %u of %u", keep->unfit, t->sizes).ptr
                : "");
    vec_foreach(const uint32_t, i, &keep->kept)
        tir_say(t->log, "  config(" STR_FMT ")", STR_ARG(t->list.all.at[*i].name));
}

// Drawn sizes for which the kernel cannot be launched (a `where`, nothing in the grid, tensors that
// are too large) are passed over.
static bool pass_over(struct tune *t)
{
    if (!t->s.options->given[TIR_OPTION_DRAW] || t->s.error->status != TIR_ERR_INVALID)
        return false;
    const tir_str why = tir_str_of(t->s.error->message);
    if (!tir_str_equal(why, t->passed_over)) // a wrong argument is that for each size
        tir_say(t->log, "passed over: " STR_FMT, STR_ARG(why));
    t->passed_over = tir_str_copy(t->s.arena, why);
    return true;
}

static bool tune(struct tune *t)
{
    struct tir_size_list list;
    const struct tir_options *o = t->s.options;
    const struct tir_draw draw = {.count = o->integer[TIR_OPTION_DRAW],
                                  .seed = tir_options_seed(o)};
    if (!prepare(t) || !tir_sizes_parse(t->s.arena, t->s.info, o->args.at + 1, o->args.len - 1,
                                        &draw, &list, t->s.error))
        return false;
    introduce(t);
    vec_foreach(const struct tir_sizes, sizes, &list.all) {
        const bool done = tune_sizes(t, &list, sizes);
        forget_sizes(t);
        if (!done && !pass_over(t))
            return false;
    }
    if (t->is_wrong)
        return true;
    if (!t->sizes)
        return tir_fail(t->s.error, TIR_ERR_INVALID, "no size that was drawn can be launched");
    conclude(t);
    show_kept(t);
    return !t->out || strcmp(t->out, "-") ||
           tir_file_write("-", t->table.ptr, t->table.len, t->s.error);
}

enum tir_exit tir_command_tune(struct tir_arena *arena, const struct tir_options *options)
{
    tir_error error;
    if (!options->args.len) {
        fputs("tirc: tune needs a file; tirc tune --help says more\n", stderr);
        return TIR_EXIT_USAGE;
    }
    struct tune *t = arena_new(arena, struct tune);
    t->out = options->text[TIR_OPTION_OUTPUT];
    t->log = t->out && !strcmp(t->out, "-") ? stderr : stdout;
    tir_timeline_init(&t->timeline, arena);
    t->timeline.most = 0; // its end will do
    t->keep.arena = arena;
    t->s = (struct tir_session){.arena = arena,
                                .options = options,
                                .error = &error,
                                .path = options->args.at[0],
                                .timeline = &t->timeline};
    const bool done = tune(t);
    const enum tir_exit status = !done         ? tir_emu_complain(arena, t->s.device, &error)
                                 : t->is_wrong ? TIR_EXIT_WRONG
                                               : TIR_EXIT_FINE;
    tir_rt_event_destroy(t->start);
    tir_rt_event_destroy(t->end);
    tir_candidates_release(&t->list);
    tir_session_close(&t->s);
    return status;
}
