// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "judge.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/compile.h"
#include "driver/launch/reference.h"
#include "driver/launch/session.h"
#include "driver/source.h"
#include "driver/value/element.h"
#include "entries.h"
#include "ir/number.h"
#include "notes.h"
#include "pass/pass.h"
#include "tir/compiler.h"

// ---- findings

// The message without what differs between two programs with the same mistake: numbers and names.
static void make_key(struct finding *f)
{
    size_t out = 0;
    for (const char *s = f->text; *s && *s != '\n' && out + 2 < sizeof(f->key); s++) {
        if (isdigit((unsigned char)*s) && (s == f->text || !isalnum((unsigned char)s[-1]))) {
            f->key[out++] = '#';
            while (isdigit((unsigned char)s[1]))
                s++;
        } else {
            f->key[out++] = *s;
        }
    }
    f->key[out] = 0;
}

TIR_PRINTF(2, 3) static bool found(struct finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof(f->text), format, args);
    va_end(args);
    make_key(f);
    return false;
}

static void enter(struct judge *j, const char *stage, const char *arch)
{
    snprintf(j->stage, 40, "%s%s%s", stage, *arch ? " for " : "", arch);
}

// ---- compiling

static int find_import(void *user, tir_str from, tir_str import, tir_str *name, tir_str *text)
{
    return tir_source_import(user, from, import, name, text);
}

static tir_status compile(const struct judge *j, tir_str source, const char *arch, uint32_t outputs,
                          const char *stop_after, tir_compilation **out, tir_error *error)
{
    struct tir_arena arena; // of the files that are imported
    tir_arena_init(&arena, NULL, NULL, NULL);
    struct tir_source_importer importer = {&arena, j->options.folder};
    tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
    options.import = find_import;
    options.import_user = &importer;
    options.arch = tir_str_of(arch);
    options.outputs = outputs;
    options.verify = 1;
    options.stop_after = tir_str_of(stop_after);
    const tir_status status =
        tir_compile(tir_str_of(j->options.path), source, &options, out, error);
    tir_arena_finish(&arena);
    return status;
}

static tir_str first_line(tir_str s)
{
    const char *end = memchr(s.ptr ? s.ptr : "", '\n', s.len);
    return end ? (tir_str){s.ptr, (size_t)(end - s.ptr)} : s;
}

// A refusal that only says that the program is too large for the target.
static bool is_too_large(tir_str diagnostics)
{
    static const char *const codes[] = {"error[E0301]", "error[E0304]"};
    for (size_t i = 0; i < TIR_COUNT_OF(codes); i++)
        if (diagnostics.len && strstr(diagnostics.ptr, codes[i]))
            return true;
    return false;
}

// Was a variant compiled again for another reason than its size? Then the compiler was at fault.
static bool is_wrong_attempt(const char *receipt, const char *arch, struct finding *f)
{
    for (const char *at = receipt; (at = strstr(at, "compiled again")); at++) {
        char line[400];
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
        if (!is_too_large(tir_str_of(line))) {
            found(f, "%s: %s", arch, line);
            return true;
        }
    }
    return false;
}

enum outcome { FINE, TOO_LARGE, WRONG };

static enum outcome compile_for(struct judge *j, const struct program *p, const char *arch,
                                uint32_t outputs, tir_compilation **out, struct finding *f)
{
    tir_error error = {.status = TIR_OK};
    enter(j, "compile", arch);
    tir_status status = compile(j, tir_str_of(p->source), arch, outputs, "", out, &error);
    if (status == TIR_OK) {
        tir_str receipt = tir_compilation_output(*out, TIR_OUTPUT_RECEIPT);
        if (receipt.ptr && is_wrong_attempt(receipt.ptr, arch, f))
            return WRONG;
        const char *unchecked = receipt.ptr ? strstr(receipt.ptr, "unchecked") : NULL;
        if (!unchecked || !j->options.unchecked)
            return FINE;
        found(f, "%s: %.200s", arch, unchecked);
        return WRONG;
    }
    if (!*out) {
        found(f, "%s: %s: %s", arch, tir_status_name(status), error.message);
        return WRONG;
    }
    tir_str all = tir_compilation_diagnostics(*out);
    if (is_too_large(all))
        return TOO_LARGE;
    tir_str line = first_line(all);
    const char *message = strstr(line.ptr, "error["); // behind the place
    found(f, "%s refuses: %.*s\n%.*s", arch,
          (int)(line.ptr + line.len - (message ? message : line.ptr)), message ? message : line.ptr,
          STR_ARG(all));
    return WRONG;
}

// What stands after a pass, of the best variant of each kernel.
struct halfway {
    const char *pass;
    tir_compilation *compilation; // NULL: this program is not stopped
    tir_str text;                 // empty: nothing that the interpreter runs
};

// Kernels that are several launches, and scalars of one thread, are nothing for the interpreter.
static bool stop_halfway(struct judge *j, const struct program *p, const char *arch, uint64_t seed,
                         struct halfway *out, struct finding *f)
{
    const struct tir_pass_info *pass = &tir_passes[seed / 7 % tir_pipeline_count];
    tir_error error;
    *out = (struct halfway){.pass = pass->name};
    if (!j->options.reread || seed % j->options.reread)
        return true;
    enter(j, "stop halfway", arch);
    if (compile(j, tir_str_of(p->source), arch, 1u << TIR_OUTPUT_IR, pass->name, &out->compilation,
                &error))
        return found(f, "%s: stopping after %s: %s", arch, pass->name, error.message);
    const tir_str text = tir_compilation_output(out->compilation, TIR_OUTPUT_IR);
    if (pass->out != TIR_FORM_LOWERED && strstr(text.ptr, "kernel k("))
        out->text = text;
    return true;
}

// Read again, it must end as PTX that is among the PTX of the whole program.
static bool reread(struct judge *j, const char *arch, const struct halfway *halfway, tir_str ptx,
                   struct finding *f)
{
    tir_compilation *second = NULL;
    tir_error error;
    bool fine = true;
    enter(j, "read again", arch);
    if (compile(j, tir_compilation_output(halfway->compilation, TIR_OUTPUT_IR), arch,
                1u << TIR_OUTPUT_PTX, "", &second, &error))
        fine =
            found(f, "%s: its own text after %s is refused: %s\n%.*s", arch, halfway->pass,
                  error.message, STR_ARG(second ? tir_compilation_diagnostics(second) : STR("")));
    tir_str strange =
        fine ? entries_strange(tir_compilation_output(second, TIR_OUTPUT_PTX), ptx) : STR("");
    if (strange.len)
        fine = found(f, "%s: the text after %s, read again, gives other PTX\nof " STR_FMT, arch,
                     halfway->pass, STR_ARG(strange));
    tir_compilation_destroy(second);
    return fine;
}

// ---- running

struct trial { // one launch, on several targets
    struct tir_options options;
    const char *words[64];
    uint32_t word_count;
    struct tir_tensor wants[TIR_MAX_PARAMS];
    struct tir_tensor starts[TIR_MAX_PARAMS]; // of outputs, for what is interpreted once more
    bool has_wants;
};

static void split(struct tir_arena *arena, const char *text, struct trial *t)
{
    while (*text) {
        text += strspn(text, " ");
        size_t len = strcspn(text, " ");
        if (len && t->word_count < TIR_COUNT_OF(t->words))
            t->words[t->word_count++] = tir_str_copy(arena, (tir_str){text, len}).ptr;
        text += len;
    }
}

static double tolerance(const struct program *p, tir_str name)
{
    vec_foreach(struct tensor, t, &p->tensors)
        if (tir_str_is(name, t->name))
            return t->range.err;
    return 0;
}

static bool agrees(enum tir_elem elem, const uint8_t *a, const uint8_t *b, double err)
{
    uint64_t x = 0, y = 0;
    memcpy(&x, a, tir_elem_size(elem));
    memcpy(&y, b, tir_elem_size(elem));
    if (x == y)
        return true;
    if (!is_float(elem))
        return false;
    double got = tir_number_decode(elem, x).f, want = tir_number_decode(elem, y).f;
    return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= err;
}

// after: of what stands after that pass, by the interpreter; NULL: of the launch.
static bool compare(const struct tir_session *s, struct trial *t, const struct program *p,
                    uint32_t launch, const char *after, struct finding *f)
{
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        const struct tir_bound *b = &s->bind.params[i];
        if (!tir_param_is_output(b->param))
            continue;
        const double err = tolerance(p, b->param->name);
        struct tir_cursor got = tir_cursor_first(after ? &s->wants[i] : &b->tensor),
                          want = tir_cursor_first(&t->wants[i]);
        for (int64_t k = 0; k < b->tensor.count; k++) {
            if (!agrees(b->tensor.elem, got.at, want.at, err)) {
                uint64_t x = 0, y = 0;
                memcpy(&x, got.at, tir_elem_size(b->tensor.elem));
                memcpy(&y, want.at, tir_elem_size(b->tensor.elem));
                return found(f,
                             "%s: wrong result%s%s\nlaunch %u:%s\n" STR_FMT
                             " element %lld: got bits %llx, want %llx, allowed %g",
                             s->arch, after ? " of the interpreter after " : "", after ? after : "",
                             launch, p->launches[launch].ptr, STR_ARG(b->param->name), (long long)k,
                             (unsigned long long)x, (unsigned long long)y, err);
            }
            tir_cursor_next(&got);
            tir_cursor_next(&want);
        }
    }
    return true;
}

// The interpreter's results are the same for every target.
static bool reference(struct tir_session *s, struct trial *t)
{
    if (t->has_wants)
        return true;
    if (!tir_session_reference(s))
        return false;
    memcpy(t->wants, s->wants, sizeof(t->wants));
    memset(s->wants, 0, sizeof(s->wants)); // they are the trial's now
    return t->has_wants = true;
}

// A variant for other sizes than these; what single threads do.
static bool is_not_for_interpreter(const char *message)
{
    return strstr(message, "a condition of kernel") || strstr(message, "is a machine operation") ||
           strstr(message, "needs a kernel with grid(...)");
}

// The interpreter on what stands after a pass, which must mean what the program means.
static bool interpret_after(struct judge *j, struct tir_session *s, struct trial *t,
                            const struct program *p, uint32_t number, tir_str text,
                            const char *pass, struct finding *f)
{
    const tir_str source = s->source;
    enter(j, "interpret what is after a pass", s->arch);
    for (uint32_t i = 0; i < s->info->param_count; i++) {
        tir_tensor_free(&s->wants[i]);
        s->wants[i] = t->starts[i];
        memset(&t->starts[i], 0, sizeof(t->starts[i]));
    }
    s->source = text;
    const bool fine = tir_session_reference(s);
    s->source = source;
    if (!fine && is_not_for_interpreter(s->error->message))
        return true;
    if (!fine)
        return found(f, "%s: interpreter after %s: %s\nlaunch %u:%s", s->arch, pass,
                     s->error->message, number, p->launches[number].ptr);
    return compare(s, t, p, number, pass, f);
}

static bool launch(struct judge *j, struct tir_session *s, struct trial *t, const struct program *p,
                   uint32_t number, const struct halfway *halfway, struct finding *f)
{
    tir_rt_launch_report report;
    const char *words = p->launches[number].ptr;
    enter(j, "run", s->arch);
    if (!tir_session_bind(s, t->words, t->word_count))
        return found(f, "%s: %s\nlaunch %u:%s", s->arch, s->error->message, number, words);
    for (uint32_t i = 0; halfway->text.len && i < s->info->param_count; i++)
        if (tir_param_is_output(s->bind.params[i].param) &&
            !tir_tensor_clone(&t->starts[i], &s->wants[i], s->error))
            return found(f, "%s", s->error->message);
    if (!tir_session_launch(s, s->kernel, -1, &report, NULL) ||
        tir_rt_device_synchronize(s->device, s->error)) {
        char text[700] = "";
        tir_rt_emu_findings(s->device, 0, text, sizeof(text));
        return found(f, "%s: %s\nlaunch %u:%s\n%s", s->arch, s->error->message, number, words,
                     text);
    }
    j->tally->launches++;
    if (!tir_session_read(s))
        return found(f, "%s: %s", s->arch, s->error->message);
    enter(j, "interpret", "");
    if (!reference(s, t))
        return found(f, "interpreter: %s\nlaunch %u:%s", s->error->message, number, words);
    return compare(s, t, p, number, NULL, f) &&
           (!halfway->text.len ||
            interpret_after(j, s, t, p, number, halfway->text, halfway->pass, f));
}

static bool run_all(struct judge *j, const struct program *p, const char *arch,
                    const tir_compilation *compilation, const struct halfway *halfway,
                    struct trial *trials, struct finding *f)
{
    tir_error error;
    struct tir_session s = {.arena = p->arena,
                            .error = &error,
                            .path = j->options.path,
                            .runtime = j->runtime,
                            .device = j->device,
                            .arch = arch,
                            .source = tir_str_of(p->source)};
    tir_str artifact = tir_compilation_output(compilation, TIR_OUTPUT_ARTIFACT);
    enter(j, "load", arch);
    if (tir_rt_module_load(s.device, artifact.ptr, artifact.len, &s.module, &error) ||
        tir_rt_module_kernel(s.module, STR("k"), &s.kernel, &error))
        return found(f, "%s: %s", arch, error.message);
    s.info = tir_rt_kernel_describe(s.kernel);
    bool fine = true;
    for (uint32_t i = 0; fine && i < p->launch_count; i++) {
        s.options = &trials[i].options;
        fine = launch(j, &s, &trials[i], p, i, halfway, f);
        tir_session_unbind(&s);
    }
    tir_rt_module_destroy(s.module);
    return fine;
}

// ---- all of it

#define MOST_PTX (16 << 20) // bytes of an entry

// Code that grows with the tile, where a loop would do, takes long to compile and to load.
static bool is_short(struct judge *j, const char *arch, uint64_t seed, tir_str ptx,
                     struct finding *f)
{
    uint64_t entries = 0;
    for (const char *at = ptx.ptr; (at = strstr(at, ".entry ")); at++)
        entries++;
    uint64_t bytes = ptx.len / TIR_MAX(entries, 1);
    if (bytes > j->tally->longest) {
        j->tally->longest = bytes;
        j->tally->longest_seed = seed;
    }
    return bytes <= MOST_PTX || found(f, "%s: %" PRIu64 " bytes of PTX an entry", arch, bytes);
}

static bool judge_notes(struct judge *j, const struct program *p, const char *arch, uint64_t seed,
                        struct finding *f)
{
    tir_compilation *compilation = NULL;
    struct notes notes = {.kernels = 0};
    const enum outcome outcome = compile_for(j, p, arch, 1u << TIR_OUTPUT_PTX, &compilation, f);
    bool fine = outcome != WRONG;
    enter(j, "assemble", arch);
    if (outcome == FINE)
        fine = notes_take(p->arena, arch, tir_compilation_output(compilation, TIR_OUTPUT_PTX),
                          &notes) ||
               found(f, "no ptxas");
    if (fine && notes.note.len)
        fine = found(f, STR_FMT "\n%s, " STR_FMT, STR_ARG(notes.note), arch, STR_ARG(notes.of));
    if (fine && j->options.spills && notes.spilled)
        fine = found(f, "%u bytes of local memory\n%s, " STR_FMT, notes.spilled, arch,
                     STR_ARG(notes.of));
    j->tally->refused += outcome == TOO_LARGE;
    j->tally->products += notes.kernels > 0;
    j->tally->spilling += notes.spilled > 0;
    if (notes.spilled > j->tally->spilled) {
        j->tally->spilled = notes.spilled;
        j->tally->spilled_seed = seed;
    }
    tir_compilation_destroy(compilation);
    return fine;
}

// `taken` says whether sm_80 takes the program; then sm_90a, which has more of everything, must.
static bool judge_target(struct judge *j, const struct program *p, const char *arch, uint64_t seed,
                         struct trial *trials, bool *taken, struct finding *f)
{
    const bool assembles = j->options.ptxas && seed % j->options.ptxas == 0;
    uint32_t outputs = 1u << TIR_OUTPUT_ARTIFACT | 1u << TIR_OUTPUT_PTX;
    if (assembles)
        outputs |= 1u << TIR_OUTPUT_CUBIN;
    tir_compilation *compilation = NULL;
    enum outcome outcome = compile_for(j, p, arch, outputs, &compilation, f);
    bool fine = outcome != WRONG;
    if (!strcmp(arch, "sm_80"))
        *taken = outcome == FINE;
    if (outcome == TOO_LARGE && *taken && !strcmp(arch, "sm_90a"))
        fine = found(f, "%s refuses what sm_80 takes\n" STR_FMT, arch,
                     STR_ARG(tir_compilation_diagnostics(compilation)));
    j->tally->refused += outcome == TOO_LARGE;
    j->tally->assembled += assembles && outcome == FINE;
    if (outcome == FINE)
        fine = is_short(j, arch, seed, tir_compilation_output(compilation, TIR_OUTPUT_PTX), f);
    struct halfway halfway = {.pass = NULL};
    if (outcome == FINE && fine)
        fine = stop_halfway(j, p, arch, seed, &halfway, f);
    if (outcome == FINE && fine && (!j->own_arch || !strcmp(arch, j->own_arch)))
        fine = run_all(j, p, arch, compilation, &halfway, trials, f);
    if (fine && halfway.compilation)
        fine = reread(j, arch, &halfway, tir_compilation_output(compilation, TIR_OUTPUT_PTX), f);
    tir_compilation_destroy(halfway.compilation);
    tir_compilation_destroy(compilation);
    return fine;
}

bool judge_program(struct judge *j, const struct program *p, uint64_t seed, struct finding *finding)
{
    struct trial *trials = arena_array(p->arena, struct trial, MOST_LAUNCHES);
    bool fine = true;
    for (uint32_t i = 0; i < p->launch_count; i++)
        split(p->arena, p->launches[i].ptr, &trials[i]);
    uint32_t count = 0;
    bool taken = false;
    while (tir_compile_arch(count))
        count++;
    for (uint32_t i = 0; fine && i < count; i++) {
        const char *arch = tir_compile_arch(i);
        const bool is_only = j->options.only && *j->options.only;
        if (is_only && strcmp(arch, j->options.only))
            continue;
        const bool always = is_only || !strcmp(arch, "sm_80") || !strcmp(arch, "sm_90a");
        snprintf(j->arch, 16, "%s", arch);
        if (is_only && j->options.notes)
            fine = judge_notes(j, p, arch, seed, finding);
        else if (always || j->options.all_targets || i == seed % count)
            fine = judge_target(j, p, arch, seed, trials, &taken, finding);
    }
    memcpy(finding->arch, j->arch, sizeof(finding->arch));
    for (uint32_t i = 0; i < p->launch_count; i++)
        for (uint32_t k = 0; k < TIR_MAX_PARAMS; k++)
            tir_tensor_free(&trials[i].wants[k]), tir_tensor_free(&trials[i].starts[k]);
    j->tally->programs++;
    return fine;
}

bool judge_open(struct judge *j, tir_error *error)
{
    tir_runtime_options options = TIR_RUNTIME_OPTIONS_INIT;
    options.emu_check = TIR_RT_EMU_CHECK_FULL;
    options.emu_threads = 1;
    options.emu_steps = 1 << 26;
    if (tir_runtime_create(&options, &j->runtime, error) ||
        tir_rt_device_open(j->runtime, j->options.device, &j->device, error))
        return false;
    const tir_rt_device_info *info = tir_rt_device_describe(j->device);
    j->own_arch = info->kind == TIR_RT_CUDA ? tir_compile_arch_for(info->arch) : NULL;
    return true;
}

void judge_close(struct judge *j)
{
    tir_rt_device_destroy(j->device);
    tir_runtime_destroy(j->runtime);
}
