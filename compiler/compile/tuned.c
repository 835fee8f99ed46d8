// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of configurations that were measured: options.tuned.
//
//     "NVIDIA H200" 132 sm_90a matmul<T=f16>(M=16, N=8192, K=4096) config(BM=32, BN=64)
//
// A line names the device with its number of multiprocessors, the target, the kernel with the metas
// that were given and the sizes of its dimensions, and the configuration by the metas it binds; a
// comment may follow. The tokens are the language's, so its lexer reads them. Any other line is an
// error. A line that does not fit the program is a warning: the kernel has changed since it was
// measured, and it will run as if it had not been. A line for another target or other metas is
// ignored silently, since one table serves many builds.

#include "compile/tuned.h"

#include <stdlib.h>

#include "compile/known.h"
#include "front/parse/lex.h"
#include "ir/number.h"

struct reader {
    struct tir_context *cx;
    struct tir_lexer lexer;
    struct tir_token t; // the next one
};

// ---- reading

static void advance(struct reader *r)
{
    r->t = tir_lex(&r->lexer);
}

static bool unexpected(struct reader *r, const char *wanted)
{
    if (r->t.kind != TIR_TOK_BAD) // else it was reported
        tir_error_at(&r->cx->diags, r->t.span, TIR_E_TUNED, "expected %s, found %s", wanted,
                     tir_token_text(r->t.kind));
    return false;
}

static bool take(struct reader *r, enum tir_token_kind kind, struct tir_token *out)
{
    if (r->t.kind != kind)
        return unexpected(r, tir_token_text(kind));
    if (out)
        *out = r->t;
    advance(r);
    return true;
}

static bool take_count(struct reader *r, int64_t most, int64_t *out)
{
    if (r->t.kind != TIR_TOK_INT || r->t.number > (uint64_t)most)
        return unexpected(r, "a size");
    *out = (int64_t)r->t.number;
    advance(r);
    return true;
}

// A meta's value, as the compiler prints it.
static bool take_value(struct reader *r, tir_str *out)
{
    struct tir_text text;
    tir_text_init(&text, &r->cx->arena, 0);
    const bool negative = r->t.kind == TIR_TOK_SUB;
    if (negative)
        advance(r);
    if (r->t.kind == TIR_TOK_INT && r->t.number <= INT64_MAX)
        tir_text_format(&text, "%s%llu", negative ? "-" : "", (unsigned long long)r->t.number);
    else if (r->t.kind == TIR_TOK_FLOAT)
        tir_number_print(&text, TIR_F64,
                         (union tir_number){.f = negative ? -r->t.real : r->t.real});
    else if (!negative && r->t.kind == TIR_TOK_ELEM)
        tir_text_format(&text, "%s", tir_elems[r->t.elem].name);
    else if (!negative && (r->t.kind == TIR_TOK_TRUE || r->t.kind == TIR_TOK_FALSE))
        tir_text_format(&text, "%s", r->t.kind == TIR_TOK_TRUE ? "true" : "false");
    else
        return unexpected(r, "a value");
    *out = tir_text_str(&text);
    advance(r);
    return true;
}

// NAME=VALUE with commas between, up to the closing token; sizes where `sizes`.
static bool take_list(struct reader *r, enum tir_token_kind close, bool sizes,
                      struct tir_tuned_list *out)
{
    while (r->t.kind != close) {
        struct tir_token name;
        struct tir_tuned_binding one = {0};
        if ((out->len && !take(r, TIR_TOK_COMMA, NULL)) || !take(r, TIR_TOK_NAME, &name) ||
            !take(r, TIR_TOK_ASSIGN, NULL) ||
            !(sizes ? take_count(r, INT64_MAX, &one.size) : take_value(r, &one.value)))
            return false;
        one.name = name.name;
        one.span = name.span;
        vec_push(&r->cx->arena, out, one);
    }
    advance(r);
    return true;
}

static bool take_line(struct reader *r, struct tir_tuned_line *line)
{
    struct tir_token device, arch, kernel, word;
    int64_t multiprocessors;
    if (r->t.kind != TIR_TOK_STRING) {
        unexpected(r, "the name of a device in quotes");
        advance(r); // it may start a line itself
        return false;
    }
    if (!take(r, TIR_TOK_STRING, &device) || !take_count(r, UINT32_MAX, &multiprocessors) ||
        !take(r, TIR_TOK_NAME, &arch) || !take(r, TIR_TOK_NAME, &kernel))
        return false;
    *line = (struct tir_tuned_line){.span = kernel.span,
                                    .device = device.text,
                                    .multiprocessors = (uint32_t)multiprocessors,
                                    .arch = arch.name,
                                    .kernel = kernel.name};
    if (r->t.kind == TIR_TOK_LT) {
        advance(r);
        if (!take_list(r, TIR_TOK_GT, false, &line->given))
            return false;
    }
    if (!take(r, TIR_TOK_LPAREN, NULL) || !take_list(r, TIR_TOK_RPAREN, true, &line->sizes))
        return false;
    if (r->t.kind != TIR_TOK_NAME || strcmp(r->t.name, "config"))
        return unexpected(r, "`config`");
    return take(r, TIR_TOK_NAME, &word) && take(r, TIR_TOK_LPAREN, NULL) &&
           take_list(r, TIR_TOK_RPAREN, false, &line->config);
}

static bool starts_line(const struct reader *r)
{
    const char *text = r->lexer.file->text.ptr;
    const char *at = text + (r->t.span.begin - r->lexer.file->base);
    while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == text || at[-1] == '\n';
}

bool tir_compile_tuned_read(struct tir_tuned *t)
{
    struct reader r = {.cx = t->cx};
    const uint32_t errors = t->cx->diags.error_count;
    const tir_str name = t->request->options.tuned_name.len ? t->request->options.tuned_name
                                                            : STR("the tuned table");
    if (!t->request->options.tuned.len)
        return true;
    const struct tir_source_file *file =
        tir_source_add(&t->cx->sources, name, t->request->options.tuned);
    if (!file) {
        tir_error_at(&t->cx->diags, (struct tir_span){0, 0}, TIR_E_FILE_SIZE,
                     "the table of configurations is too large");
        return false;
    }
    if (!tir_lexer_init(&r.lexer, t->cx, file))
        return false;
    advance(&r);
    while (r.t.kind != TIR_TOK_EOF) {
        struct tir_tuned_line line;
        if (take_line(&r, &line))
            vec_push(&t->cx->arena, &t->lines, line);
        else
            while (r.t.kind != TIR_TOK_EOF && !starts_line(&r))
                advance(&r);
    }
    return t->cx->diags.error_count == errors;
}

// ---- which lines are about a kernel

static void stale(struct tir_tuned *t, struct tir_span span, const char *format, ...)
    TIR_PRINTF(3, 4);
static void stale(struct tir_tuned *t, struct tir_span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_str text = tir_str_vformat(&t->cx->arena, format, args);
    va_end(args);
    tir_error_at(&t->cx->diags, span, TIR_W_TUNED, "%s", text.ptr);
    tir_note_at(&t->cx->diags, (struct tir_span){0, 0},
                "the line is ignored; `tirc tune` measures anew");
}

static const struct tir_tuned_binding *binding_of(const struct tir_tuned_list *list,
                                                  const char *name)
{
    vec_foreach(const struct tir_tuned_binding, it, list)
        if (!strcmp(it->name, name))
            return it;
    return NULL;
}

static bool is_given(const struct tir_tuned *t, const char *meta)
{
    for (size_t i = 0; i < t->request->options.meta_count; i++)
        if (tir_str_is(t->request->options.metas[i].name, meta))
            return true;
    return false;
}

// Do the metas that the line names have these values, and the others the kernel's own?
static bool is_of_this_build(const struct tir_tuned *t, const struct tir_tuned_line *line,
                             const struct tir_func *f)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < f->meta_count; i++) {
        const struct tir_meta *meta = &f->metas[i];
        const struct tir_tuned_binding *it = binding_of(&line->given, meta->name);
        const bool is_own = meta->is_config ? !is_given(t, meta->name) : meta->is_default;
        if (it ? !tir_str_equal(it->value, meta->value) : !is_own)
            return false;
        named += it != NULL;
    }
    return named == line->given.len;
}

// The sizes of the line in the order of f's dimensions.
static bool order_sizes(struct tir_tuned *t, struct tir_tuned_line *line, const struct tir_func *f)
{
    line->dims = arena_array(&t->cx->arena, int64_t, f->dim_count + 1);
    vec_foreach(const struct tir_tuned_binding, it, &line->sizes) {
        uint32_t d = 0;
        while (d < f->dim_count && strcmp(f->dims[d].name, it->name))
            d++;
        if (d == f->dim_count) {
            stale(t, it->span, "`%s` has no dimension `%s`", line->kernel, it->name);
            return false;
        }
        line->dims[d] = it->size;
    }
    for (uint32_t d = 0; d < f->dim_count; d++)
        if (!binding_of(&line->sizes, f->dims[d].name)) {
            stale(t, line->span, "`%s` has a dimension `%s`, whose size is not there", line->kernel,
                  f->dims[d].name);
            return false;
        }
    return true;
}

// Is this what the configuration binds, no more and no less?
static bool binds(const struct tir_func *f, const struct tir_tuned_list *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->meta_count; i++) {
        const struct tir_tuned_binding *it = binding_of(list, f->metas[i].name);
        if (f->metas[i].is_config != (it != NULL) ||
            (it && !tir_str_equal(it->value, f->metas[i].value)))
            return false;
        count += f->metas[i].is_config;
    }
    return count == list->len;
}

void tir_compile_tuned_kernel(struct tir_tuned *t, const char *name,
                              struct tir_func *const *configs, uint32_t count)
{
    vec_foreach(struct tir_tuned_line, line, &t->lines) {
        if (line->kernel != name) // interned
            continue;
        line->is_known = true;
        if (strcmp(line->arch, t->request->target.name) || !is_of_this_build(t, line, configs[0]) ||
            !order_sizes(t, line, configs[0]))
            continue;
        for (uint32_t i = 0; i < count && !line->f; i++)
            if (configs[i]->config && binds(configs[i], &line->config))
                line->f = configs[i];
        if (!line->f)
            stale(t, line->config.len ? line->config.at[0].span : line->span,
                  "`%s` has no such configuration", line->kernel);
    }
}

void tir_compile_tuned_finish(struct tir_tuned *t)
{
    vec_foreach(const struct tir_tuned_line, line, &t->lines)
        if (!line->is_known && !t->request->options.kernel.len)
            stale(t, line->span, "there is no kernel `%s`", line->kernel);
}

// ---- what is chosen

bool tir_compile_tuned_known(struct tir_tuned *t, const struct tir_func *kernel,
                             const struct tir_func **out)
{
    const struct tir_func *chosen = NULL;
    int64_t dims[TIR_MAX_DIMS];
    *out = NULL;
    if (!t->request->options.dim_count || kernel->dim_count > TIR_MAX_DIMS)
        return false;
    for (uint32_t d = 0; d < kernel->dim_count; d++)
        if (!tir_known_size(t->request, kernel, d, &dims[d]))
            return false;
    vec_foreach(const struct tir_tuned_line, line, &t->lines) {
        if (line->kernel != kernel->name || !line->f ||
            memcmp(line->dims, dims, kernel->dim_count * sizeof(*dims)))
            continue;
        if (chosen && chosen != line->f)
            return true;
        chosen = line->f;
    }
    *out = chosen;
    return chosen != NULL;
}

static uint32_t config_index(const struct tir_func *const *configs, uint32_t count,
                             const struct tir_func *f)
{
    uint32_t i = 0;
    while (i < count && configs[i]->config != f->config)
        i++;
    return i;
}

struct picked { // a choice and where it is stated
    tir_artifact_choice choice;
    struct tir_span span;
};

static int by_sizes(const void *a, const void *b)
{
    const struct picked *x = a, *y = b;
    for (uint32_t d = 0; d < x->choice.dim_count; d++)
        if (x->choice.dims[d] != y->choice.dims[d])
            return x->choice.dims[d] < y->choice.dims[d] ? -1 : 1;
    return (x->span.begin > y->span.begin) - (x->span.begin < y->span.begin);
}

// Sorts; of several choices for the same sizes the last one stated stays.
static uint32_t settle(struct tir_tuned *t, struct picked *all, uint32_t count,
                       tir_artifact_choice *out)
{
    uint32_t kept = 0;
    qsort(all, count, sizeof(*all), by_sizes);
    for (uint32_t i = 0; i < count; i++) {
        struct picked next = i + 1 < count ? all[i + 1] : all[i];
        next.span = all[i].span;
        if (i + 1 < count && by_sizes(&next, &all[i]) == 0)
            stale(t, all[i].span, "a later line is for the same sizes");
        else
            out[kept++] = all[i].choice;
    }
    return kept;
}

// The sizes of a line for the dimensions that are left. False: it is for another size of one that
// is known.
static bool map_sizes(const struct tir_tuned_line *line, const struct tir_param_dim *map,
                      tir_artifact_choice *out, int64_t *sizes)
{
    out->dims = sizes;
    for (uint32_t d = 0; d < line->sizes.len; d++)
        if (map[d].dim >= 0)
            sizes[map[d].dim] = line->dims[d], out->dim_count++;
        else if (map[d].constant != line->dims[d])
            return false;
    return true;
}

// The choices for the device of one line.
static void fill_device(struct tir_tuned *t, const struct tir_tuned_line *first,
                        const struct tir_func *const *configs, uint32_t count,
                        const struct tir_param_dim *map, tir_artifact_tuned *out)
{
    struct tir_arena *arena = &t->cx->arena;
    struct picked *all = arena_array(arena, struct picked, t->lines.len);
    uint32_t found = 0;
    vec_foreach(struct tir_tuned_line, line, &t->lines) {
        if (line->kernel != first->kernel || !line->f ||
            line->multiprocessors != first->multiprocessors ||
            !tir_str_equal(line->device, first->device))
            continue;
        line->is_used = true;
        struct picked one = {.span = line->span};
        one.choice.config = config_index(configs, count, line->f);
        if (one.choice.config < count && // else known sizes have left it out
            map_sizes(line, map, &one.choice, arena_array(arena, int64_t, line->sizes.len + 1)))
            all[found++] = one;
    }
    tir_artifact_choice *choices = arena_array(arena, tir_artifact_choice, found + 1);
    *out = (tir_artifact_tuned){.device = first->device,
                                .multiprocessors = first->multiprocessors,
                                .choice_count = settle(t, all, found, choices),
                                .choices = choices};
}

void tir_compile_tuned_fill(struct tir_tuned *t, const char *name,
                            const struct tir_func *const *configs, uint32_t count,
                            const struct tir_param_dim *map, tir_artifact_kernel *out)
{
    tir_artifact_tuned *tuned = arena_array(&t->cx->arena, tir_artifact_tuned, t->lines.len + 1);
    vec_foreach(struct tir_tuned_line, line, &t->lines)
        if (line->kernel == name && line->f && !line->is_used)
            fill_device(t, line, configs, count, map, &tuned[out->tuned_count++]);
    out->tuned = tuned;
}
