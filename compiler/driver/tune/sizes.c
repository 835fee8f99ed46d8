// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads sizes: words to groups, groups to combinations.
#include "driver/tune/sizes.h"

#include "driver/launch/bind.h"
#include "driver/value/number.h"
#include "driver/value/random.h"

enum { MOST = 100000 }; // sizes

struct span {
    int64_t first, last;
};

struct axis {       // sizes that are the same, and what they are one after the other
    uint64_t sizes; // 1 << number
    VEC(struct span) spans;
    VEC(int64_t) values; // of the spans, doubled
};

struct sizes_reader {
    struct tir_arena *arena;
    const tir_artifact_kernel *kernel;
    const struct tir_draw *draw;
    struct tir_size_list *out;
    tir_error *error;
    uint64_t drawn; // random numbers that were taken
    VEC(struct axis) group;
};

static uint32_t size_count(const tir_artifact_kernel *kernel)
{
    return kernel->dim_count + kernel->name_count;
}

static tir_str size_name(const tir_artifact_kernel *kernel, uint32_t size)
{
    return size < kernel->dim_count ? kernel->dims[size]
                                    : kernel->names[size - kernel->dim_count].name;
}

static uint32_t size_called(const tir_artifact_kernel *kernel, tir_str name)
{
    uint32_t i = 0;
    while (i < size_count(kernel) && !tir_str_equal(size_name(kernel, i), name))
        i++;
    return i;
}

// The dimension whose size the kernel states (`where N == 64`); NULL: it has none of that name.
static const tir_artifact_fixed *fixed_called(const tir_artifact_kernel *kernel, tir_str name)
{
    for (uint32_t i = 0; i < kernel->fixed_count; i++)
        if (tir_str_equal(kernel->fixed[i].name, name))
            return &kernel->fixed[i];
    return NULL;
}

// The part of *rest before `separator`, which goes from it; all of it where there is none.
static tir_str cut(tir_str *rest, char separator)
{
    const char *at = memchr(rest->ptr, separator, rest->len);
    tir_str part = {rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len};
    const size_t gone = part.len + (at != NULL);
    *rest = (tir_str){rest->ptr + gone, rest->len - gone};
    return part;
}

// "16", or "16..512".
static bool read_value(struct sizes_reader *r, const char *word, tir_str text, struct axis *axis)
{
    int64_t first, last;
    tir_str from = text, to = text;
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.ptr[i] == '.' && text.ptr[i + 1] == '.') {
            from = (tir_str){text.ptr, i};
            to = (tir_str){text.ptr + i + 2, text.len - i - 2};
            break;
        }
    if (!tir_parse_int(from, &first) || !tir_parse_int(to, &last) || first < 0 || last < first)
        return tir_fail(r->error, TIR_ERR_INVALID,
                        "%s: sizes are whole numbers from 0, as in 16,64 or 16..512", word);
    if (first == 0 && last > 0)
        return tir_fail(r->error, TIR_ERR_INVALID,
                        "%s: " STR_FMT " is no range: doubled, 0 stays 0; as in 0,1..%lld", word,
                        STR_ARG(text), (long long)last);
    vec_push(r->arena, &axis->spans, ((struct span){first, last}));
    for (int64_t value = first;; value *= 2) {
        vec_push(r->arena, &axis->values, value);
        if (value == 0 || value > last / 2)
            return true;
    }
}

static bool check_fixed(struct sizes_reader *r, const char *word, const tir_artifact_fixed *fixed,
                        const struct axis *axis)
{
    vec_foreach(const int64_t, value, &axis->values)
        if (*value != fixed->size)
            return tir_fail(r->error, TIR_ERR_INVALID, "%s: " STR_FMT " needs " STR_FMT " == %lld",
                            word, STR_ARG(r->kernel->name), STR_ARG(fixed->name),
                            (long long)fixed->size);
    return true;
}

// "M=N=K=16,64". False without an error in *is_sizes: the word names no size.
static bool read_word(struct sizes_reader *r, const char *word, struct axis *axis, bool *is_sizes)
{
    tir_str values = tir_str_of(word), name = values;
    const tir_artifact_fixed *fixed = NULL;
    *is_sizes = false;
    while (memchr(values.ptr, '=', values.len)) {
        name = cut(&values, '=');
        const uint32_t size = size_called(r->kernel, name);
        const tir_artifact_fixed *stated = fixed_called(r->kernel, name);
        if (stated) {
            fixed = stated;
            *is_sizes = true;
            continue;
        }
        if (size == size_count(r->kernel))
            return !*is_sizes ||
                   tir_fail(r->error, TIR_ERR_INVALID, "%s: " STR_FMT " has no dimension " STR_FMT,
                            word, STR_ARG(r->kernel->name), STR_ARG(name));
        if (axis->sizes >> size & 1)
            return tir_fail(r->error, TIR_ERR_INVALID, "%s: " STR_FMT " is there twice", word,
                            STR_ARG(name));
        axis->sizes |= UINT64_C(1) << size;
        *is_sizes = true;
    }
    while (*is_sizes) {
        const bool is_last = !memchr(values.ptr, ',', values.len);
        if (!read_value(r, word, cut(&values, ','), axis))
            return false;
        if (is_last)
            break;
    }
    return !fixed || check_fixed(r, word, fixed, axis);
}

static bool nothing_missing(struct sizes_reader *r, const bool *known)
{
    for (uint32_t i = 0; i < r->kernel->dim_count; i++)
        if (!known[i])
            return tir_fail(
                r->error, TIR_ERR_INVALID,
                STR_FMT " needs sizes for " STR_FMT "; for example: " STR_FMT "=1024,4096",
                STR_ARG(r->kernel->name), STR_ARG(r->kernel->dims[i]), STR_ARG(r->kernel->dims[i]));
    return true;
}

static int64_t draw_int(struct sizes_reader *r, int64_t low, int64_t high)
{
    return tir_random_int(tir_random_key(r->draw->seed, STR("sizes")), r->drawn++, low, high);
}

// One of the values that were given, or a multiple of the first of a range: a power of two times it
// at least, and less than the next.
static int64_t draw_value(struct sizes_reader *r, const struct axis *axis)
{
    const struct span *span = &axis->spans.at[draw_int(r, 0, (int64_t)axis->spans.len - 1)];
    int64_t doublings = 0;
    if (span->first == span->last)
        return span->last;
    const int64_t most = span->last / span->first;
    while (most >> doublings > 1)
        doublings++;
    const int64_t low = INT64_C(1) << draw_int(r, 0, doublings);
    return span->first * draw_int(r, low, TIR_MIN(most, low - 1 + low));
}

static void set_axis(struct sizes_reader *r, struct tir_sizes *sizes, const struct axis *axis,
                     int64_t value)
{
    for (uint32_t i = 0; i < size_count(r->kernel); i++)
        if (axis->sizes >> i & 1)
            sizes->values[i] = value;
}

static void draw_group(struct sizes_reader *r, struct tir_sizes *last)
{
    for (int64_t n = 0; n < r->draw->count; n++) {
        vec_foreach(const struct axis, axis, &r->group)
            set_axis(r, last, axis, draw_value(r, axis));
        vec_push(r->arena, &r->out->all, *last);
    }
    r->group.len = 0;
}

// All combinations of the group, or so many drawn ones; `last` are the sizes that it takes over,
// and gives on.
static bool end_group(struct sizes_reader *r, struct tir_sizes *last)
{
    uint64_t combinations = 1;
    vec_foreach(const struct axis, axis, &r->group) {
        combinations = r->draw->count ? (uint64_t)r->draw->count : combinations * axis->values.len;
        last->given |= axis->sizes;
        if (combinations + r->out->all.len > MOST)
            return tir_fail(r->error, TIR_ERR_INVALID, "more than %d sizes", MOST);
    }
    if (r->draw->count && r->group.len) {
        draw_group(r, last);
        return true;
    }
    for (uint64_t n = 0; n < combinations; n++) {
        uint64_t rest = n;
        for (uint32_t a = r->group.len; a-- > 0;) {
            const struct axis *axis = &r->group.at[a];
            set_axis(r, last, axis, axis->values.at[rest % axis->values.len]);
            rest /= axis->values.len;
        }
        vec_push(r->arena, &r->out->all, *last);
    }
    r->group.len = 0;
    return true;
}

const char *const *tir_sizes_words(struct tir_arena *arena, const tir_artifact_kernel *kernel,
                                   const struct tir_size_list *list, const struct tir_sizes *sizes,
                                   uint32_t *count)
{
    VEC(const char *) words = {0};
    for (uint32_t i = 0; i < size_count(kernel); i++)
        if (sizes->given >> i & 1)
            vec_push(arena, &words,
                     tir_str_format(arena, STR_FMT "=%lld", STR_ARG(size_name(kernel, i)),
                                    (long long)sizes->values[i])
                         .ptr);
    vec_foreach(const char *const, word, &list->rest)
        vec_push(arena, &words, *word);
    *count = words.len;
    return words.at;
}

static bool find_dims(struct sizes_reader *r)
{
    struct tir_bind *bind = arena_new(r->arena, struct tir_bind);
    vec_foreach(struct tir_sizes, sizes, &r->out->all) {
        uint32_t count;
        const char *const *words = tir_sizes_words(r->arena, r->kernel, r->out, sizes, &count);
        if (!tir_bind_sizes(r->arena, r->kernel, words, count, bind, r->error) ||
            !nothing_missing(r, bind->known))
            return false;
        memcpy(sizes->dims, bind->dims, sizeof(sizes->dims));
    }
    return true;
}

bool tir_sizes_parse(struct tir_arena *arena, const tir_artifact_kernel *kernel,
                     const char *const *words, uint32_t count, const struct tir_draw *draw,
                     struct tir_size_list *out, tir_error *error)
{
    struct sizes_reader r = {
        .arena = arena, .kernel = kernel, .draw = draw, .out = out, .error = error};
    struct tir_sizes last = {0};
    *out = (struct tir_size_list){0};
    for (uint32_t i = 0; i < count; i++) {
        struct axis one = {0};
        bool is_sizes, starts_group = false;
        if (!read_word(&r, words[i], &one, &is_sizes))
            return false;
        if (!is_sizes) {
            vec_push(arena, &out->rest, words[i]);
            continue;
        }
        vec_foreach(const struct axis, axis, &r.group)
            starts_group |= (axis->sizes & one.sizes) != 0;
        if (starts_group && !end_group(&r, &last))
            return false;
        vec_push(arena, &r.group, one);
    }
    return end_group(&r, &last) && find_dims(&r);
}
