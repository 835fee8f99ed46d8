// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of a PTX kernel: numbers, and buffers with their contents.
#include "driver/emu/args.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/file.h"
#include "driver/value/npy.h"
#include "driver/value/number.h"
#include "driver/value/random.h"

struct reader {
    struct tir_arena *arena;
    tir_error *error;
    uint64_t seed;
    uint32_t index; // of the argument
};

static bool bad(struct reader *r, const char *word, const char *what)
{
    return tir_fail(r->error, TIR_ERR_INVALID, "%s: %s", word, what);
}

static enum tir_elem element_of(tir_str name)
{
    for (uint32_t i = TIR_NONE + 1; i < TIR_ELEM_COUNT; i++)
        if (tir_str_is(name, tir_elems[i].name))
            return (enum tir_elem)i;
    return TIR_NONE;
}

// "[256,64]", or nothing for one element; gives what comes after.
static const char *read_shape(const char *at, int64_t shape[TIR_MAX_RANK], uint32_t *rank)
{
    *rank = 0;
    if (*at != '[')
        return at;
    do {
        at++;
        size_t len = strcspn(at, ",]");
        if (*rank == TIR_MAX_RANK || !tir_parse_int((tir_str){at, len}, &shape[*rank]) ||
            shape[*rank] < 0)
            return NULL;
        ++*rank;
        at += len;
    } while (*at == ',');
    return *at == ']' ? at + 1 : NULL;
}

static bool fill_from_file(struct reader *r, struct tir_emu_arg *arg)
{
    struct tir_npy_file file;
    bool done = tir_npy_open(arg->spec.file, &file, r->error);
    bool same = done && file.npy.rank == arg->tensor.rank;
    for (uint32_t i = 0; same && i < file.npy.rank; i++)
        same = file.npy.shape[i] == arg->tensor.shape[i];
    if (done && !same)
        done = tir_fail(r->error, TIR_ERR_INVALID, "%s: %s has another shape", arg->word,
                        arg->spec.file);
    done = done && tir_npy_load(&file, &arg->tensor, r->error);
    tir_npy_close(&file);
    return done;
}

// "bf16[256,64]=randn->out.npy": `text` begins at the type.
static bool read_buffer(struct reader *r, const char *text, struct tir_emu_arg *arg)
{
    size_t name = strcspn(text, "[=-");
    enum tir_elem elem = element_of((tir_str){text, name});
    int64_t shape[TIR_MAX_RANK];
    uint32_t rank;
    if (elem == TIR_NONE)
        return bad(r, arg->word, "the element type is none that there is");
    const char *rest = read_shape(text + name, shape, &rank);
    if (!rest || (*rest && *rest != '=' && strncmp(rest, "->", 2) != 0))
        return bad(r, arg->word, "a shape is written [256,64]");
    const char *arrow = strstr(rest, "->");
    tir_str fill = {rest, arrow ? (size_t)(arrow - rest) : strlen(rest)};
    arg->is_buffer = true;
    if (fill.len) { // "=..."
        const char *contents = tir_str_copy(r->arena, (tir_str){fill.ptr + 1, fill.len - 1}).ptr;
        if (!tir_tensor_spec_parse(r->arena, contents, elem, &arg->spec, r->error))
            return false;
    }
    if (arrow)
        arg->spec.save = arrow + 2;
    if (arrow && !arrow[2])
        return bad(r, arg->word, "a file is needed after ->");
    if (arg->spec.stride_count && arg->spec.stride_count != rank)
        return bad(r, arg->word, "as many strides as dimensions are needed");
    if (!tir_tensor_make(&arg->tensor, elem, rank, shape,
                         arg->spec.stride_count ? arg->spec.strides : NULL, arg->spec.pad,
                         arg->spec.offset, r->error))
        return false;
    if (arg->spec.fill == TIR_FILL_FILE)
        return fill_from_file(r, arg);
    if (arg->spec.fill != TIR_FILL_DEFAULT) {
        char number[16];
        int len = snprintf(number, sizeof(number), "%u", r->index);
        tir_tensor_fill(&arg->tensor, &arg->spec,
                        tir_random_key(r->seed, (tir_str){number, (size_t)len}));
    }
    return true;
}

static bool read_arg(struct reader *r, struct tir_emu_arg *arg)
{
    arg->is_hidden = !strncmp(arg->word, "mem:", 4);
    arg->is_map = !strncmp(arg->word, "tmap:", 5);
    if (arg->is_map)
        return tir_emu_map_parse(arg->word, &arg->map, r->error);
    if (arg->is_hidden || !strncmp(arg->word, "buf:", 4))
        return read_buffer(r, arg->word + 4, arg);
    size_t name = strcspn(arg->word, "=");
    enum tir_elem elem = element_of((tir_str){arg->word, name});
    if (elem == TIR_NONE || !arg->word[name])
        return bad(r, arg->word,
                   "an argument is TYPE=NUMBER, buf:TYPE[SHAPE]=CONTENTS or tmap:...");
    return tir_scalar_parse(elem, tir_str_of(arg->word + name + 1), &arg->scalar, r->error);
}

bool tir_emu_args_parse(struct tir_arena *arena, const char *const *words, uint32_t count,
                        uint64_t seed, struct tir_emu_args *out, tir_error *error)
{
    struct reader r = {.arena = arena, .error = error, .seed = seed};
    out->at = arena_array(arena, struct tir_emu_arg, count);
    out->count = count;
    for (r.index = 0; r.index < count; r.index++)
        out->at[r.index].word = words[r.index];
    for (r.index = 0; r.index < count; r.index++)
        if (!read_arg(&r, &out->at[r.index]))
            return false;
    for (r.index = 0; r.index < count; r.index++) {
        const struct tir_emu_arg *arg = &out->at[r.index];
        if (arg->is_map && (arg->map.of >= count || !out->at[arg->map.of].is_buffer))
            return bad(&r, arg->word, "there is no buffer of this number; the first argument is 0");
    }
    return true;
}

void tir_emu_args_release(struct tir_emu_args *args)
{
    for (uint32_t i = 0; i < args->count; i++) {
        tir_tensor_free(&args->at[i].tensor);
        tir_tensor_free(&args->at[i].result);
    }
}
