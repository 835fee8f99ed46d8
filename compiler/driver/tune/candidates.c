// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds configurations to compare, and compiles what --try asks for.
#include "driver/tune/candidates.h"

#include <stdio.h>

#include "driver/compile.h"
#include "driver/fail.h"
#include "driver/source.h"

enum { MOST = 1000 }; // combinations

struct trial { // --try META=VALUE,VALUE
    tir_str meta;
    VEC(tir_str) values;
};

static bool read_trials(struct tir_session *s, struct trial *trials)
{
    const struct tir_options *o = s->options;
    uint64_t combinations = 1;
    for (uint32_t i = 0; i < o->tries.len; i++) {
        tir_str values;
        tir_source_split(o->tries.at[i], &trials[i].meta, &values);
        for (const char *at = values.ptr, *end = at + values.len; at <= end;) {
            const char *comma = memchr(at, ',', (size_t)(end - at));
            const char *stop = comma ? comma : end;
            vec_push(s->arena, &trials[i].values, ((tir_str){at, (size_t)(stop - at)}));
            at = stop + 1;
        }
        combinations *= trials[i].values.len;
        if (combinations > MOST)
            return tir_fail(s->error, TIR_ERR_INVALID, "--try: more than %d combinations", MOST);
    }
    return true;
}

// The kernel's other parameters have to be those that the arguments are made for.
static bool takes_the_same(const tir_artifact_kernel *a, const tir_artifact_kernel *b)
{
    if (a->param_count != b->param_count || a->dim_count != b->dim_count)
        return false;
    for (uint32_t i = 0; i < a->dim_count; i++)
        if (!tir_str_equal(a->dims[i], b->dims[i]))
            return false;
    for (uint32_t i = 0; i < a->param_count; i++) {
        const tir_artifact_param *p = &a->params[i], *q = &b->params[i];
        if (p->kind != q->kind || p->element != q->element || p->rank != q->rank ||
            memcmp(p->extents, q->extents, sizeof(p->extents)))
            return false;
    }
    return true;
}

static bool is_there(const struct tir_candidates *list, tir_str name)
{
    vec_foreach(const struct tir_candidate, it, &list->all)
        if (tir_str_equal(it->name, name))
            return true;
    return false;
}

// "BM=64, BN=128" with those of `words` that it does not say.
static tir_str name_of(struct tir_arena *arena, tir_str config, const char *const *words,
                       uint32_t count)
{
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    tir_text_add(&text, config);
    for (uint32_t i = 0; i < count; i++) {
        const size_t len = strlen(words[i]);
        bool said = false;
        for (const char *at = config.ptr; at + len <= config.ptr + config.len; at++)
            said |= !memcmp(at, words[i], len) && (at == config.ptr || at[-1] == ' ') &&
                    (at + len == config.ptr + config.len || at[len] == ',');
        if (!said)
            tir_text_format(&text, "%s%s", text.len ? ", " : "", words[i]);
    }
    if (!text.len)
        tir_text_add(&text, STR("as it is"));
    return tir_text_str(&text);
}

static void add(struct tir_session *s, struct tir_candidates *out, tir_rt_module *module,
                tir_rt_kernel *kernel, const char *const *words, uint32_t count)
{
    const tir_artifact_kernel *info = tir_rt_kernel_describe(kernel);
    for (uint32_t c = 0; c < TIR_MAX(1, info->config_count); c++) {
        const tir_str config = info->config_count ? info->configs[c] : STR("");
        const struct tir_candidate one = {.name = name_of(s->arena, config, words, count),
                                          .module = module,
                                          .kernel = kernel,
                                          .info = info,
                                          .config = c};
        if (is_there(out, one.name))
            continue;
        vec_push(s->arena, &out->all, one);
        module = NULL; // the first one owns it
    }
    tir_rt_module_destroy(module);
}

// Whether one of the words, NAME=VALUE, has the name of this one.
static bool is_named(const char *const *words, uint32_t count, const char *define)
{
    const size_t name = strcspn(define, "=");
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(words[i], define, name + 1) == 0)
            return true;
    return false;
}

// Compiles with these words as -D, and with those of the command line that have other names.
static void try_one(struct tir_session *s, const char *const *words, uint32_t count,
                    struct tir_candidates *out)
{
    struct tir_options options = *s->options;
    tir_rt_module *module;
    tir_rt_kernel *kernel;
    memset(&options.defines, 0, sizeof(options.defines));
    for (uint32_t i = 0; i < s->options->defines.len; i++)
        if (!is_named(words, count, s->options->defines.at[i]))
            vec_push(s->arena, &options.defines, s->options->defines.at[i]);
    for (uint32_t i = 0; i < count; i++)
        vec_push(s->arena, &options.defines, words[i]);
    if (!tir_session_compile(s, &options, true, &module) ||
        tir_rt_module_kernel(module, s->info->name, &kernel, s->error) ||
        !takes_the_same(tir_rt_kernel_describe(kernel), s->info)) {
        tir_rt_module_destroy(module);
        out->failed++;
        return;
    }
    add(s, out, module, kernel, words, count);
}

bool tir_candidates_find(struct tir_session *s, struct tir_candidates *out)
{
    const uint32_t count = s->options->tries.len;
    struct trial *trials = arena_array(s->arena, struct trial, count + 1);
    const char **words = arena_array(s->arena, const char *, count + 1);
    uint64_t combinations = 1;
    add(s, out, NULL, s->kernel, NULL, 0);
    out->listed = out->all.len;
    if (!read_trials(s, trials))
        return false;
    for (uint32_t i = 0; i < count; i++)
        combinations *= trials[i].values.len;
    for (uint64_t n = 0; count && n < combinations; n++) {
        uint64_t rest = n;
        for (uint32_t i = count; i-- > 0; rest /= trials[i].values.len) {
            const tir_str value = trials[i].values.at[rest % trials[i].values.len];
            words[i] = tir_str_format(s->arena, STR_FMT "=" STR_FMT, STR_ARG(trials[i].meta),
                                      STR_ARG(value))
                           .ptr;
        }
        try_one(s, words, count, out);
    }
    return true;
}

void tir_candidates_release(struct tir_candidates *candidates)
{
    vec_foreach(struct tir_candidate, it, &candidates->all)
        tir_rt_module_destroy(it->module);
}
