// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compile boundary: checks options, owns what a compilation holds, and runs front end, passes
// and code generation under protection.
//
// All of it is done on a thread with a deep stack, so that a host may call from a small one.
// Running out of memory jumps from anywhere below to `protected`, which holds nothing that changes;
// all state is in the compilation, so tearing it down afterwards is the same as after a normal end.
// Other threads (jobs.c, target/nvptx/nvptx.c) stop where they are, and this one jumps.
//
// A kernel in tile form is compiled for several sets of facts about its arguments
// (variants.c); a kernel that was written in a later form states its facts itself.

#include "compile/compile.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/parallel.h"
#include "compile/configs.h"
#include "compile/cost.h"
#include "compile/known.h"
#include "compile/variants.h"
#include "front/front.h"
#include "ir/walk.h"
#include "pass/pass.h"

static bool wants(const struct tir_compilation *c, tir_output output)
{
    return c->request.options.outputs >> output & 1;
}

double tir_compile_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void tir_compile_add_stage(struct tir_compilation *c, const char *name, double milliseconds)
{
    assert(c->stage_count < TIR_COUNT_OF(c->stages));
    c->stages[c->stage_count++] = (tir_stage){name, milliseconds};
}

static tir_status fail(struct tir_compilation *c, tir_status status, const char *format, ...)
    TIR_PRINTF(3, 4);
static tir_status fail(struct tir_compilation *c, tir_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c->error.status = status;
    vsnprintf(c->error.message, sizeof(c->error.message), format, args);
    va_end(args);
    return status;
}

// Options.

static tir_status check_pass(struct tir_compilation *c, const char *option, bool general,
                             tir_str name)
{
    struct tir_nearest near = tir_nearest_to(name, name.len < 4 ? 1 : 2);
    for (uint32_t i = 0; i < tir_pass_count; i++) {
        if (tir_str_is(name, tir_passes[i].name))
            return !general || tir_passes[i].general
                       ? TIR_OK
                       : fail(c, TIR_ERR_INVALID, "%s: %s is no clean-up pass", option,
                              tir_passes[i].name);
        tir_nearest_try(&near, tir_str_of(tir_passes[i].name));
    }
    return fail(c, TIR_ERR_INVALID, "%s: there is no pass " STR_FMT TIR_NEAREST_FMT, option,
                STR_ARG(name), TIR_NEAREST_ARG(near));
}

static tir_status check_wishes(struct tir_compilation *c)
{
    tir_str unknown;
    if (tir_compile_wishes_parse(c->request.options.require, &c->request.required, &unknown))
        return TIR_OK;
    fail(c, TIR_ERR_INVALID,
         "require: there is no `" STR_FMT "`; what can be required:", STR_ARG(unknown));
    for (uint32_t wish = TIR_WISH_NONE + 1; wish < TIR_WISH_COUNT; wish++) {
        size_t len = strlen(c->error.message);
        snprintf(c->error.message + len, sizeof(c->error.message) - len, " %s",
                 tir_wishes[wish].name);
    }
    return TIR_ERR_INVALID;
}

static tir_status check_cubin(struct tir_compilation *c)
{
    const tir_str arch = c->request.options.cubin_arch;
    c->request.cubin = c->request.target;
    if (!arch.len)
        return TIR_OK;
    const struct tir_target *target = tir_target_find(arch);
    if (!target)
        return fail(c, TIR_ERR_INVALID, "a cubin for the unknown target " STR_FMT, STR_ARG(arch));
    if (!tir_target_runs_on(&c->request.target, target))
        return fail(c, TIR_ERR_INVALID, "a cubin for %s cannot be made of code for %s",
                    target->name, c->request.target.name);
    c->request.cubin = *target;
    return TIR_OK;
}

// One of two values would be lost in silence.
static tir_status check_settings(struct tir_compilation *c, const char *option,
                                 const tir_setting *settings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (tir_str_equal(settings[i].name, settings[j].name))
                return fail(c, TIR_ERR_INVALID, "%s: " STR_FMT " is given twice", option,
                            STR_ARG(settings[i].name));
    return TIR_OK;
}

static tir_status check_options(struct tir_compilation *c)
{
    const tir_compile_options *o = &c->request.options;
    tir_str arch = o->arch.len ? o->arch : tir_str_of(tir_targets[0].name);
    const struct tir_target *target = tir_target_find(arch), *instead = tir_target_for(arch);
    if (!target && instead)
        return fail(c, TIR_ERR_INVALID, "unknown target " STR_FMT "; a GPU of that name runs %s",
                    STR_ARG(arch), instead->name);
    if (!target)
        return fail(c, TIR_ERR_INVALID,
                    "unknown target " STR_FMT "; the first one is %s, the last %s", STR_ARG(arch),
                    tir_targets[0].name, tir_targets[tir_target_count - 1].name);
    c->request.target = *target;
    if (o->max_shared)
        c->request.target.shared_per_cta =
            TIR_MIN(c->request.target.shared_per_cta, (int64_t)o->max_shared);
    const struct {
        const char *option;
        bool general; // it names a clean-up pass
        tir_str value;
    } passes[] = {
        {"run_pass", false, o->run_pass},
        {"stop_after", false, o->stop_after},
        {"print_after", false, tir_str_is(o->print_after, "all") ? STR("") : o->print_after},
        {"skip_pass", true, o->skip_pass}};
    for (size_t i = 0; i < TIR_COUNT_OF(passes); i++)
        if (passes[i].value.len &&
            check_pass(c, passes[i].option, passes[i].general, passes[i].value) != TIR_OK)
            return TIR_ERR_INVALID;
    uint32_t code = ~(1u << TIR_OUTPUT_IR | 1u << TIR_OUTPUT_RECEIPT | 1u << TIR_OUTPUT_PRINTED |
                      1u << TIR_OUTPUT_RECEIPT_JSON | 1u << TIR_OUTPUT_SCHEDULE |
                      1u << TIR_OUTPUT_SCHEDULE_SVG);
    if ((o->run_pass.len || o->stop_after.len) && (o->outputs & code))
        return fail(c, TIR_ERR_INVALID, "run_pass and stop_after give IR only");
    if (o->outputs >> TIR_OUTPUT_COUNT)
        return fail(c, TIR_ERR_INVALID, "outputs has bits beyond the last output");
    if (o->bisect < -1)
        return fail(c, TIR_ERR_INVALID, "bisect is less than -1");
    if ((uint32_t)o->diagnostics > TIR_DIAGNOSTICS_JSON)
        return fail(c, TIR_ERR_INVALID, "there is no format %u of diagnostics",
                    (uint32_t)o->diagnostics);
    tir_status status = check_settings(c, "metas", o->metas, o->meta_count);
    if (!status)
        status = check_settings(c, "dims", o->dims, o->dim_count);
    if (!status)
        status = check_cubin(c);
    return status ? status : check_wishes(c);
}

static struct tir_binding *bindings(struct tir_compilation *c, const tir_setting *settings,
                                    size_t count)
{
    struct tir_binding *list = arena_array(&c->cx.arena, struct tir_binding, count + 1);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct tir_binding){settings[i].name, settings[i].value};
    return list;
}

static bool import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    struct tir_compilation *c = user;
    return c->request.options.import(c->request.options.import_user, from, path, name, text) != 0;
}

static enum tir_feature_answer has(void *user, tir_str name)
{
    const struct tir_compilation *c = user;
    const uint32_t feature = tir_target_feature(name);
    return !feature                               ? TIR_FEATURE_UNKNOWN
           : c->request.target.features & feature ? TIR_FEATURE_THERE
                                                  : TIR_FEATURE_LACKING;
}

// Front end and passes.

static bool parse(struct tir_compilation *c, struct tir_module **m)
{
    const tir_compile_options *o = &c->request.options;
    struct tir_front_options front = {.metas = bindings(c, o->metas, o->meta_count),
                                      .meta_count = (uint32_t)o->meta_count,
                                      .kernel = o->kernel.len ? tir_intern(&c->cx.names, o->kernel)
                                                              : NULL,
                                      .has = has,
                                      .has_user = c,
                                      .shared_bytes = c->request.target.shared_per_cta,
                                      .tensor_columns = tir_tensor_columns(&c->request.target),
                                      .import = o->import ? import : NULL,
                                      .import_user = c};
    double start = tir_compile_now_ms();
    bool ok = tir_front_module(&c->cx, c->request.name, c->request.source, &front, m);
    tir_compile_add_stage(c, "front", tir_compile_now_ms() - start);
    return ok;
}

struct tir_kernel_code tir_kernel_new(struct tir_context *cx, const struct tir_func *f)
{
    return (struct tir_kernel_code){
        .name = f->name,
        .params = tir_arena_copy(&cx->arena, f->params, f->param_count * sizeof(*f->params)),
        .dims = tir_arena_copy(&cx->arena, f->dims, f->dim_count * sizeof(*f->dims)),
        .dim_count = f->dim_count};
}

// A variant's entry may not have the name of another kernel.
static bool check_names(struct tir_compilation *c)
{
    uint32_t errors = c->cx.diags.error_count;
    for (uint32_t i = 0; i < c->kernels.len; i++)
        for (uint32_t j = 0; j < c->kernels.len; j++)
            for (uint32_t v = 0; i != j && v < c->kernels.at[j].count; v++)
                if (c->kernels.at[i].name == c->kernels.at[j].variants[v]->name) // interned
                    tir_error_at(&c->cx.diags, tir_kernel_head(&c->kernels.at[i])->span,
                                 TIR_E_REDEFINED, "`%s` is what a variant of kernel `%s` is called",
                                 c->kernels.at[i].name, c->kernels.at[j].name);
    return c->cx.diags.error_count == errors;
}

// One configuration, which is variants or a sequence.
static bool add_config(struct tir_compilation *c, uint32_t kernel, struct tir_func *f,
                       tir_formula cost)
{
    if (tir_compile_has_steps(f))
        return tir_compile_sequence(c, kernel, f, cost);
    tir_compile_variants(&c->cx, &c->request, &c->kernels.at[kernel], f, cost);
    return true;
}

// Why the model chooses: what it takes the configuration to cost, and the next one.
static tir_str reason(struct tir_compilation *c, struct tir_func *const *configs, uint32_t count,
                      const struct tir_choice *choice)
{
    struct tir_text text;
    if (choice->best == count)
        return STR("");
    tir_text_init(&text, &c->cx.arena, 0);
    tir_text_format(&text, STR_FMT ", the cheapest of %u: %lld cycles",
                    STR_ARG(tir_compile_config_text(&c->cx.arena, configs[choice->best])), count,
                    (long long)choice->cost);
    if (choice->next < count)
        tir_text_format(&text, "; next " STR_FMT ", %lld",
                        STR_ARG(tir_compile_config_text(&c->cx.arena, configs[choice->next])),
                        (long long)choice->next_cost);
    return tir_text_str(&text);
}

// Loops that count are loops with an index for all that asks before the passes: which variants
// there are, what a configuration costs. A pass that is run alone takes the program as it is.
static void count_loops(struct tir_compilation *c, struct tir_func *f)
{
    struct tir_pass_cx pass = {
        .scratch = &c->cx.scratch, .diags = &c->cx.diags, .target = &c->request.target};
    bool has_while = false;
    tir_foreach_inst(inst, f)
        has_while |= inst->op == TIR_OP_WHILE;
    if (has_while && f->form == TIR_FORM_TILE && !f->facts && !c->request.options.run_pass.len)
        tir_pass_counted(f, &pass);
}

// The functions from `first` on that are configurations of one kernel; all but the best one go
// where the sizes are known. Gives how many there are.
static uint32_t add_kernel(struct tir_compilation *c, struct tir_module *m, uint32_t first,
                           bool *ok)
{
    struct tir_func **configs = m->funcs.at + first, *f = configs[0];
    uint32_t count = 1, kernel = c->kernels.len;
    while (first + count < m->funcs.len && configs[count]->config == count + 1)
        count++;
    if (count > 1 && !tir_compile_share(&c->cx, configs, count)) {
        *ok = false;
        return count;
    }
    for (uint32_t i = 0; i < count; i++) {
        count_loops(c, configs[i]);
        tir_compile_join(c, configs[i]);
    }
    tir_formula *costs = arena_array(&c->cx.arena, tir_formula, count);
    const bool has_costs = count > 1 || c->request.options.costs;
    for (uint32_t i = 0; has_costs && i < count; i++)
        costs[i] = tir_compile_cost(&c->cx, &c->request, configs[i]);
    tir_compile_tuned_kernel(&c->tuned, f->name, configs, count);
    struct tir_choice choice = {.best = count};
    uint32_t best = 0;
    const struct tir_func *tuned;
    if (count > 1 && tir_compile_tuned_known(&c->tuned, configs[0], &tuned))
        best = tuned ? tuned->config - 1 : count;
    else if (count > 1)
        best = (choice = tir_compile_cheapest(&c->cx, &c->request, configs, costs, count)).best;
    vec_push(&c->cx.arena, &c->kernels, tir_kernel_new(&c->cx, f));
    c->kernels.at[kernel].chosen = reason(c, configs, count, &choice);
    if (best < count)
        *ok &= add_config(c, kernel, configs[best],
                          c->request.options.costs ? costs[best] : (tir_formula){0});
    else
        for (uint32_t i = 0; i < count; i++)
            *ok &= add_config(c, kernel, configs[i], costs[i]);
    return count;
}

// From the source to the kernels and their variants.
static bool read_source(struct tir_compilation *c)
{
    struct tir_module *m;
    if (!parse(c, &m) || !tir_compile_tuned_read(&c->tuned))
        return false;
    bool ok = tir_known_bind(&c->cx, &c->request, m);
    for (uint32_t i = 0; ok && i < m->funcs.len;)
        i += add_kernel(c, m, i, &ok);
    return ok;
}

static bool lower(struct tir_compilation *c)
{
    const tir_compile_options *o = &c->request.options;
    const struct tir_binding *dims = bindings(c, o->dims, o->dim_count);
    double start = tir_compile_now_ms();
    bool ok =
        tir_compile_is_outline(c) ? tir_compile_outline(c, dims) : tir_compile_run_passes(c, dims);
    tir_compile_tuned_finish(&c->tuned);
    tir_compile_add_stage(c, "passes", tir_compile_now_ms() - start - c->beside_ms);
    return ok && check_names(c);
}

// Is the variant what the option `variant` asks for: the best one if it is empty?
static bool is_printed(const struct tir_compilation *c, const struct tir_func *f, uint32_t variant)
{
    const tir_str wanted = c->request.options.variant;
    return wanted.len ? tir_str_is(wanted, "all") || tir_str_is(wanted, f->name) : variant == 0;
}

static tir_status print_ir(struct tir_compilation *c)
{
    const tir_str wanted = c->request.options.variant;
    struct tir_nearest near = tir_nearest_to(wanted, 3);
    struct tir_text text;
    tir_text_init(&text, &c->cx.arena, 0);
    vec_foreach(const struct tir_kernel_code, kernel, &c->kernels)
        for (uint32_t v = 0; v < kernel->count; v++) {
            tir_nearest_try(&near, tir_str_of(kernel->variants[v]->name));
            if (!is_printed(c, kernel->variants[v], v))
                continue;
            if (text.len)
                tir_text_char(&text, '\n');
            tir_print_func(&text, kernel->variants[v]);
        }
    c->outputs[TIR_OUTPUT_IR] = tir_text_str(&text);
    if (text.len || !wanted.len)
        return TIR_OK;
    return fail(c, TIR_ERR_INVALID, "there is no variant " STR_FMT TIR_NEAREST_FMT, STR_ARG(wanted),
                TIR_NEAREST_ARG(near));
}

// Code.

static tir_status assemble(struct tir_compilation *c)
{
    const char *path = tir_ptxas_find(&c->cx.arena);
    bool needed = wants(c, TIR_OUTPUT_CUBIN) || c->request.options.cubin_arch.len;
    if (!path)
        return needed ? fail(c, TIR_ERR_UNSUPPORTED,
                             "ptxas is neither in PATH nor in /usr/local/cuda/bin")
                      : TIR_OK;
    double start = tir_compile_now_ms();
    struct tir_ptxas_result result;
    bool ran =
        tir_ptxas_run(&c->cx.arena, path, &c->request.cubin, c->outputs[TIR_OUTPUT_PTX], &result);
    tir_compile_add_stage(c, "ptxas", tir_compile_now_ms() - start);
    if (ran && result.ok) {
        c->outputs[TIR_OUTPUT_CUBIN] = result.cubin;
        for (uint32_t i = 0; i < result.kernel_count; i++)
            tir_compile_receipt_code(c, &result.kernels[i]);
        return TIR_OK;
    }
    c->assembler = ran ? result.reason : STR("it cannot be started");
    if (!needed) // an older ptxas does not know every target; the driver takes the PTX
        return TIR_OK;
    return fail(c, TIR_ERR_UNSUPPORTED, "%s: " STR_FMT, path, STR_ARG(c->assembler));
}

// What needs the code of all variants.
static tir_status make_code(struct tir_compilation *c)
{
    if (!tir_compile_generate(c))
        return TIR_ERR_DIAGNOSED;
    if (!tir_meter_ask(&c->meter))
        return TIR_ERR_STOPPED;
    const tir_compile_options *o = &c->request.options;
    if (o->cubin || o->cubin_arch.len || wants(c, TIR_OUTPUT_CUBIN))
        return assemble(c);
    return TIR_OK;
}

static tir_status make_outputs(struct tir_compilation *c)
{
    const uint32_t artifact = 1u << TIR_OUTPUT_ARTIFACT | 1u << TIR_OUTPUT_HEADER;
    const uint32_t wanted = c->request.options.outputs;
    const bool is_outline = tir_compile_is_outline(c);
    tir_status status = TIR_OK;
    if (wants(c, TIR_OUTPUT_IR) && !is_outline)
        status = print_ir(c);
    if (!status && tir_compile_wants_code(c))
        status = make_code(c);
    if (status || !(wanted & artifact || is_outline))
        return status;
    double start = tir_compile_now_ms();
    status = tir_compile_artifact_make(c, is_outline ? TIR_OUTPUT_OUTLINE : TIR_OUTPUT_ARTIFACT);
    if (!status && wants(c, TIR_OUTPUT_HEADER) && !is_outline)
        tir_compile_header_make(c);
    tir_compile_add_stage(c, "artifact", tir_compile_now_ms() - start);
    return status;
}

static tir_status compile(struct tir_compilation *c)
{
    tir_context_init(&c->cx, &c->allocator);
    c->cx.meter = &c->meter;
    c->tuned = (struct tir_tuned){.cx = &c->cx, .request = &c->request};
    c->receipt.arena = &c->cx.arena;
    tir_text_init(&c->printed, &c->cx.arena, 0);
    if (c->outline)
        tir_compile_take_variant(c);
    else if (!read_source(c))
        return TIR_ERR_DIAGNOSED;
    if (!lower(c))
        return TIR_ERR_DIAGNOSED;
    return c->meter.is_stopped ? TIR_ERR_STOPPED : make_outputs(c);
}

// The results of the accessors; runs for right and for wrong sources.
static void conclude(struct tir_compilation *c)
{
    struct tir_text text;
    tir_text_init(&text, &c->cx.arena, 0);
    tir_diags_render(&c->cx.diags,
                     c->request.options.diagnostics == TIR_DIAGNOSTICS_JSON ? TIR_DIAG_JSON
                                                                            : TIR_DIAG_TEXT,
                     &text);
    c->diagnostics = tir_text_str(&text);
    c->error_count = c->cx.diags.error_count;
    vec_foreach(struct tir_diag *, d, &c->cx.diags.list)
        c->warning_count += tir_diag_infos[(*d)->code].severity == TIR_WARNING;
    c->outputs[TIR_OUTPUT_RECEIPT] = tir_compile_receipt_text(c);
    if (wants(c, TIR_OUTPUT_RECEIPT_JSON))
        c->outputs[TIR_OUTPUT_RECEIPT_JSON] = tir_compile_receipt_json(c);
    if (wants(c, TIR_OUTPUT_SCHEDULE))
        c->outputs[TIR_OUTPUT_SCHEDULE] = tir_compile_schedule_text(c);
    if (wants(c, TIR_OUTPUT_SCHEDULE_SVG))
        c->outputs[TIR_OUTPUT_SCHEDULE_SVG] = tir_compile_schedule_svg(c);
    c->outputs[TIR_OUTPUT_PRINTED] = tir_text_str(&c->printed);
    for (int i = 0; i < TIR_OUTPUT_RECEIPT; i++)
        if (!wants(c, (tir_output)i))
            c->outputs[i] = (tir_str){NULL, 0};
}

static tir_status stopped(struct tir_compilation *c)
{
    unsigned long long limit = c->request.options.step_limit, steps = c->meter.steps;
    if (limit && steps > limit)
        return fail(c, TIR_ERR_STOPPED, "the compilation takes more than %llu steps, its limit",
                    limit);
    return fail(c, TIR_ERR_STOPPED, "the compilation was cancelled after %llu steps", steps);
}

static void protected(void *user)
{
    struct tir_compilation *c = user;
    if (setjmp(c->cx.out_of_memory)) {
        fail(c, TIR_ERR_NO_MEMORY, "out of memory");
        return;
    }
    tir_status status = c->error.status = compile(c);
    if (status == TIR_OK && c->cx.diags.error_count)
        status = TIR_ERR_DIAGNOSED;
    if (c->meter.is_stopped)
        status = stopped(c);
    if (status == TIR_ERR_DIAGNOSED)
        fail(c, status, "the source has errors");
    conclude(c);
}

// The public calls.

static void *c_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void *one_at_a_time(void *user, void *ptr, size_t old_size, size_t new_size)
{
    struct tir_compilation *c = user;
    const tir_allocator *a = &c->request.options.allocator;
    pthread_mutex_lock(&c->calling);
    void *p = a->resize(a->user, ptr, old_size, new_size);
    pthread_mutex_unlock(&c->calling);
    return p;
}

static bool is_cancelled(void *user)
{
    struct tir_compilation *c = user;
    pthread_mutex_lock(&c->calling);
    bool is_cancelled = c->request.options.cancel(c->request.options.cancel_user) != 0;
    pthread_mutex_unlock(&c->calling);
    return is_cancelled;
}

static void set_error(tir_error *error, tir_status status, const char *message)
{
    if (!error)
        return;
    memset(error, 0, sizeof(*error));
    error->status = status;
    snprintf(error->message, sizeof(error->message), "%s", message);
    // A message is one line, whatever the names in it.
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
}

tir_status tir_compile_refuse(tir_error *error, const char *format, ...)
{
    char message[sizeof(error->message)];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    set_error(error, TIR_ERR_INVALID, message);
    return TIR_ERR_INVALID;
}

struct tir_compilation *tir_compilation_new(const struct tir_request *request, tir_error *error)
{
    const tir_compile_options *o = &request->options;
    struct tir_compilation *c = o->allocator.resize(o->allocator.user, NULL, 0, sizeof(*c));
    if (!c) {
        set_error(error, TIR_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    memset(c, 0, sizeof(*c));
    c->request = *request;
    c->allocator = (tir_allocator){.resize = one_at_a_time, .user = c};
    c->meter = (struct tir_meter){
        .limit = o->step_limit, .is_cancelled = o->cancel ? is_cancelled : NULL, .user = c};
    pthread_mutex_init(&c->calling, NULL);
    return c;
}

tir_status tir_compilation_run(struct tir_compilation *c, tir_compilation **out, tir_error *error)
{
    if (c->error.status == TIR_OK)
        tir_with_deep_stack(protected, c);
    const tir_status status = c->error.status;
    if (status)
        set_error(error, status, c->error.message);
    if (status == TIR_OK || status == TIR_ERR_DIAGNOSED)
        *out = c;
    else
        tir_compilation_destroy(c);
    return status;
}

TIR_API tir_status tir_compile(tir_str name, tir_str source, const tir_compile_options *options,
                               tir_compilation **out, tir_error *error)
{
    struct tir_request request = {
        .name = name, .source = source, .options = TIR_COMPILE_OPTIONS_INIT};
    tir_compile_options *own = &request.options;
    *out = NULL;
    if (options && options->struct_size < offsetof(tir_compile_options, metas))
        return tir_compile_refuse(error, "the compile options have no proper struct_size");
    if (options)
        memcpy(own, options, TIR_MIN(options->struct_size, sizeof(*own)));
    if (!own->allocator.resize)
        own->allocator.resize = c_resize;
    struct tir_compilation *c = tir_compilation_new(&request, error);
    if (!c)
        return TIR_ERR_NO_MEMORY;
    c->error.status = check_options(c);
    return tir_compilation_run(c, out, error);
}

TIR_API void tir_compilation_destroy(tir_compilation *compilation)
{
    if (!compilation)
        return;
    tir_nvptx_finish(&compilation->nvptx);
    tir_allocator allocator = compilation->request.options.allocator;
    if (compilation->artifact)
        tir_artifact_bytes_free(compilation->artifact, compilation->artifact_size, &allocator);
    tir_compile_passes_finish(compilation);
    tir_context_finish(&compilation->cx);
    pthread_mutex_destroy(&compilation->calling);
    allocator.resize(allocator.user, compilation, sizeof(*compilation), 0);
}

TIR_API tir_str tir_compilation_diagnostics(const tir_compilation *compilation)
{
    return compilation->diagnostics;
}

TIR_API uint32_t tir_compilation_error_count(const tir_compilation *compilation)
{
    return compilation->error_count;
}

TIR_API uint32_t tir_compilation_warning_count(const tir_compilation *compilation)
{
    return compilation->warning_count;
}

TIR_API tir_str tir_compilation_output(const tir_compilation *compilation, tir_output output)
{
    return (unsigned)output < TIR_OUTPUT_COUNT ? compilation->outputs[output] : STR("");
}

TIR_API const tir_stage *tir_compilation_stages(const tir_compilation *compilation, size_t *count)
{
    *count = compilation->stage_count;
    return compilation->stages;
}

TIR_API uint64_t tir_compilation_steps(const tir_compilation *compilation)
{
    return compilation->meter.steps;
}

TIR_API const char *tir_compile_arch(size_t index)
{
    return index < tir_target_count ? tir_targets[index].name : NULL;
}

TIR_API const char *tir_compile_arch_for(const char *device)
{
    if (!device || !device[0])
        return tir_targets[0].name;
    const struct tir_target *target = tir_target_for(tir_str_of(device));
    return target ? target->name : NULL;
}
