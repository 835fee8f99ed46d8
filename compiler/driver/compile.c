// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler library as the commands use it.
#include "driver/compile.h"

#include "driver/fail.h"
#include "driver/say.h"
#include "driver/source.h"

static int import(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text)
{
    return tir_source_import(user, from, path, name, text);
}

static tir_str text_of(const struct tir_options *options, enum tir_option option)
{
    return options->text[option] ? tir_str_of(options->text[option]) : (tir_str){NULL, 0};
}

static const tir_setting *settings(struct tir_arena *arena, const char *const *given,
                                   uint32_t count)
{
    tir_setting *out = arena_array(arena, tir_setting, count);
    for (uint32_t i = 0; i < count; i++)
        tir_source_split(given[i], &out[i].name, &out[i].value);
    return out;
}

static tir_output receipt_output(const struct tir_options *options)
{
    const char *format = options->text[TIR_OPTION_RECEIPT];
    return format && !strcmp(format, "json") ? TIR_OUTPUT_RECEIPT_JSON : TIR_OUTPUT_RECEIPT;
}

static tir_compile_options compile_options(const struct tir_compile_request *r)
{
    const struct tir_options *o = r->options;
    tir_compile_options out = TIR_COMPILE_OPTIONS_INIT;
    const char *diagnostics = o->text[TIR_OPTION_DIAGNOSTICS];
    out.cubin_arch = text_of(o, TIR_OPTION_CUBIN);
    out.arch = r->arch ? tir_str_of(r->arch) : text_of(o, TIR_OPTION_ARCH);
    out.arch = out.arch.len ? out.arch : out.cubin_arch;
    out.max_shared = r->max_shared;
    out.outputs = r->outputs | 1u << receipt_output(o);
    out.metas = settings(r->arena, o->defines.at, o->defines.len);
    out.meta_count = o->defines.len;
    out.dims = settings(r->arena, o->dims.at, o->dims.len);
    out.dim_count = o->dims.len;
    out.kernel = text_of(o, TIR_OPTION_KERNEL);
    out.watchdog = o->given[TIR_OPTION_WATCHDOG] || o->given[TIR_OPTION_TIMEOUT];
    out.line_info = r->line_info || o->given[TIR_OPTION_DEBUG];
    out.verify = o->given[TIR_OPTION_VERIFY];
    out.run_pass = text_of(o, TIR_OPTION_PASS);
    out.stop_after = text_of(o, TIR_OPTION_STOP);
    out.variant = text_of(o, TIR_OPTION_VARIANT);
    out.print_after = text_of(o, TIR_OPTION_PRINT);
    out.skip_pass = text_of(o, TIR_OPTION_SKIP);
    out.bisect = o->given[TIR_OPTION_BISECT] ? o->integer[TIR_OPTION_BISECT] : -1;
    out.time_passes = o->given[TIR_OPTION_TIMES];
    out.costs = o->given[TIR_OPTION_KEEP];
    out.require = text_of(o, TIR_OPTION_REQUIRE);
    if (diagnostics && !strcmp(diagnostics, "json") && !o->given[TIR_OPTION_EXPECT])
        out.diagnostics = TIR_DIAGNOSTICS_JSON;
    out.tuned_name = text_of(o, TIR_OPTION_TUNED);
    out.import = import;
    return out;
}

static void report(const struct tir_compile_request *r, const tir_compilation *compilation)
{
    if (!r->quiet)
        tir_say_text(stderr, tir_compilation_diagnostics(compilation));
    tir_say_text(r->log, tir_compilation_output(compilation, TIR_OUTPUT_PRINTED));
    if (r->options->given[TIR_OPTION_RECEIPT])
        tir_say_text(r->log, tir_compilation_output(compilation, receipt_output(r->options)));
    size_t count = 0;
    const tir_stage *stages = tir_compilation_stages(compilation, &count);
    for (size_t i = 0; r->options->given[TIR_OPTION_TIMES] && i < count; i++)
        fprintf(r->log, "%10.3f ms  stage %s\n", stages[i].milliseconds, stages[i].name);
}

bool tir_compile_source(const struct tir_compile_request *r, tir_compilation **out,
                        tir_error *error)
{
    tir_str name = strcmp(r->path, "-") ? tir_str_of(r->path) : STR("<stdin>");
    tir_compile_options options = compile_options(r);
    struct tir_source_importer importer = tir_source_importer_of(r->arena, r->options, r->path);
    options.import_user = &importer;
    if (options.tuned_name.len &&
        !tir_source_read(r->arena, options.tuned_name.ptr, &options.tuned, error))
        return false;
    tir_status status = tir_compile(name, r->source, &options, out, error);
    if (*out)
        report(r, *out);
    const enum tir_command command = r->options->command;
    const bool may_be_told = command == TIR_COMMAND_CHECK || command == TIR_COMMAND_BUILD;
    if (status == TIR_OK && may_be_told && !r->quiet &&
        options.diagnostics == TIR_DIAGNOSTICS_TEXT &&
        !tir_compilation_output(*out, TIR_OUTPUT_RECEIPT).len)
        tir_say(stderr, "tirc: " STR_FMT " has no kernel", STR_ARG(name));
    error->status = status;
    return status == TIR_OK;
}
