// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host tensors: storage, walking, and filling by a specification.
#include "driver/value/tensor.h"

#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "base/str.h"
#include "driver/value/number.h"
#include "driver/value/random.h"
#include "driver/value/scalar.h"
#include "ir/number.h"

#define MAX_BYTES (UINT64_C(1) << 46)

// ---- storage

// Contiguous rows, each followed by `pad` elements. Saturates; `span` finds what is too large.
static void default_strides(struct tir_tensor *t, int64_t pad)
{
    int64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = step;
        if (!tir_mul_checked(step, TIR_MAX(t->shape[i], 1), &step))
            step = INT64_MAX;
        if (i + 1 == t->rank && i > 0 && !tir_add_checked(step, pad, &step))
            step = INT64_MAX;
    }
}

static bool is_empty(const struct tir_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->shape[i] == 0)
            return true;
    return false;
}

// Elements from the start of the storage to the end of the last element; 0 for an empty tensor.
static bool span(const struct tir_tensor *t, int64_t *out)
{
    int64_t last = t->offset, step;
    *out = 0;
    if (is_empty(t))
        return true;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!tir_mul_checked(t->shape[i] - 1, t->strides[i], &step) ||
            !tir_add_checked(last, step, &last))
            return false;
    }
    return tir_add_checked(last, 1, out);
}

static bool count_elements(const struct tir_tensor *t, int64_t *out)
{
    *out = is_empty(t) ? 0 : 1;
    for (uint32_t i = 0; *out && i < t->rank; i++)
        if (!tir_mul_checked(*out, t->shape[i], out))
            return false;
    return true;
}

bool tir_tensor_make(struct tir_tensor *out, enum tir_elem elem, uint32_t rank,
                     const int64_t *shape, const int64_t *strides, int64_t pad, int64_t offset,
                     tir_error *error)
{
    *out = (struct tir_tensor){.elem = elem, .rank = rank, .offset = offset};
    uint32_t size = tir_elem_size(elem);
    int64_t elements;
    if (!size || elem == TIR_E2M1) // two of which share a byte in a tensor
        return tir_fail(error, TIR_ERR_UNSUPPORTED, "tensors of %s cannot be made here",
                        tir_elems[elem].name);
    for (uint32_t i = 0; i < rank; i++) {
        out->shape[i] = shape[i];
        out->strides[i] = strides ? strides[i] : 0;
    }
    if (!strides)
        default_strides(out, pad);
    if (!count_elements(out, &out->count) || !span(out, &elements) ||
        (uint64_t)out->count > MAX_BYTES / size || (uint64_t)elements > MAX_BYTES / size)
        return tir_fail(error, TIR_ERR_INVALID, "the tensor would be too large");
    out->size = (uint64_t)elements * size;
    out->bytes = malloc(out->size ? out->size : 1);
    if (!out->bytes)
        return tir_fail(error, TIR_ERR_NO_MEMORY, "no memory for a tensor of %llu bytes",
                        (unsigned long long)out->size);
    memset(out->bytes, 0xFF, out->size);
    return true;
}

void tir_tensor_free(struct tir_tensor *tensor)
{
    free(tensor->bytes);
    tensor->bytes = NULL;
}

bool tir_tensor_clone(struct tir_tensor *out, const struct tir_tensor *from, tir_error *error)
{
    if (!tir_tensor_make(out, from->elem, from->rank, from->shape, from->strides, 0, from->offset,
                         error))
        return false;
    memcpy(out->bytes, from->bytes, from->size);
    return true;
}

uint32_t tir_elem_size(enum tir_elem elem)
{
    return tir_elems[elem].bits / 8;
}

// ---- walking

struct tir_cursor tir_cursor_first(const struct tir_tensor *tensor)
{
    return (struct tir_cursor){.tensor = tensor,
                               .at = tensor->bytes +
                                     (size_t)tensor->offset * tir_elem_size(tensor->elem)};
}

// At element number `i` in row-major order.
static struct tir_cursor cursor_at(const struct tir_tensor *t, int64_t i)
{
    struct tir_cursor c = tir_cursor_first(t);
    for (uint32_t axis = t->rank; axis-- > 0 && i > 0; i /= t->shape[axis]) {
        c.index[axis] = i % t->shape[axis];
        c.at += c.index[axis] * t->strides[axis] * (int64_t)tir_elem_size(t->elem);
    }
    return c;
}

void tir_cursor_next(struct tir_cursor *cursor)
{
    const struct tir_tensor *t = cursor->tensor;
    int64_t size = tir_elem_size(t->elem);
    for (uint32_t i = t->rank; i-- > 0;) {
        cursor->at += t->strides[i] * size;
        if (++cursor->index[i] < t->shape[i])
            return;
        cursor->at -= t->shape[i] * t->strides[i] * size;
        cursor->index[i] = 0;
    }
}

void tir_tensor_glimpse(struct tir_text *out, const struct tir_tensor *t)
{
    enum { FEW = 8 };
    struct tir_cursor c = tir_cursor_first(t);
    for (int64_t i = 0; i < t->count && i < FEW; i++, tir_cursor_next(&c)) {
        struct tir_scalar element = tir_scalar_load(t->elem, c.at);
        tir_text_char(out, ' ');
        tir_scalar_print(out, &element);
    }
    tir_text_add(out, t->count > FEW ? STR(" ...\n") : STR("\n"));
}

// ---- specifications

static const struct fill_name {
    const char *name;
    enum tir_fill fill;
    uint32_t least, most; // arguments
    double a, b;          // where they are left out
} fills[] = {
    {"randn", TIR_FILL_RANDN, 0, 2, 0, 1},     {"rand", TIR_FILL_RAND, 0, 2, 0, 1},
    {"randint", TIR_FILL_RANDINT, 2, 2, 0, 0}, {"arange", TIR_FILL_ARANGE, 0, 0, 0, 0},
    {"zeros", TIR_FILL_CONSTANT, 0, 0, 0, 0},  {"ones", TIR_FILL_CONSTANT, 0, 0, 1, 0},
    {"full", TIR_FILL_CONSTANT, 1, 1, 0, 0},
};

// Cuts what comes before the first `separator` off *rest.
static tir_str cut(tir_str *rest, char separator)
{
    const char *at = memchr(rest->ptr, separator, rest->len);
    tir_str head = {rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len};
    size_t used = head.len + (at != NULL);
    *rest = (tir_str){rest->ptr + used, rest->len - used};
    return head;
}

// Whether elements may have this number, or this integer, but for rounding. Small floats hold all,
// as casts to them end at their largest number, and casts round what is drawn for integers.
static bool fits(enum tir_elem elem, enum tir_fill fill, double number, int64_t i)
{
    if (tir_elem_is_float(elem))
        return !isfinite(number) || isfinite(tir_number_round(elem, number));
    if (fill == TIR_FILL_RANDINT)
        return tir_number_wrap(elem, i) == i;
    const int64_t cast = tir_number_cast(elem, TIR_F64, (union tir_number){.f = number}).i;
    return fill != TIR_FILL_CONSTANT ||
           number == (elem == TIR_U64 ? (double)(uint64_t)cast : (double)cast);
}

static bool fill_arguments(tir_str rest, const struct fill_name *fill, enum tir_elem elem,
                           struct tir_tensor_spec *out, tir_error *error)
{
    const bool is_int = fill->fill == TIR_FILL_RANDINT;
    uint32_t count = 0;
    for (; rest.ptr && rest.len && count < 2; count++) {
        tir_str argument = cut(&rest, ':');
        int64_t *i = count ? &out->hi : &out->lo;
        double *number = count ? &out->b : &out->a;
        if (is_int ? !tir_parse_int(argument, i) : !tir_parse_float(argument, number))
            return tir_fail(error, TIR_ERR_INVALID, "%s: \"" STR_FMT "\" is not a number",
                            fill->name, STR_ARG(argument));
        if (!fits(elem, fill->fill, is_int ? (double)*i : *number, *i))
            return tir_fail(error, TIR_ERR_INVALID, "%s: \"" STR_FMT "\" is not a value of %s",
                            fill->name, STR_ARG(argument), tir_elems[elem].name);
    }
    if (rest.len || count < fill->least || count > fill->most)
        return tir_fail(error, TIR_ERR_INVALID, "%s takes %u%s numbers, after \":\"", fill->name,
                        fill->least, fill->least == fill->most ? "" : " to 2");
    const bool is_range = fill->fill == TIR_FILL_RANDINT ? out->lo <= out->hi
                          : fill->fill == TIR_FILL_RAND  ? out->a <= out->b // and no NaN
                                                         : true;
    return is_range || tir_fail(error, TIR_ERR_INVALID, "%s: the range is empty", fill->name);
}

static bool parse_fill(struct tir_arena *arena, tir_str item, enum tir_elem elem,
                       struct tir_tensor_spec *out, tir_error *error)
{
    if (item.len > 1 && item.ptr[0] == '@') {
        out->fill = TIR_FILL_FILE;
        out->file = tir_str_copy(arena, (tir_str){item.ptr + 1, item.len - 1}).ptr;
        return true;
    }
    tir_str rest = item, name = cut(&rest, ':');
    for (size_t i = 0; i < TIR_COUNT_OF(fills); i++) {
        if (!tir_str_is(name, fills[i].name))
            continue;
        out->fill = fills[i].fill;
        out->a = fills[i].a;
        out->b = fills[i].b;
        return fill_arguments(rest, &fills[i], elem, out, error);
    }
    return tir_fail(error, TIR_ERR_INVALID,
                    "\"" STR_FMT "\" is none of randn, rand, randint:LO:HI, zeros, ones, arange, "
                    "full:X, @FILE.npy",
                    STR_ARG(item));
}

static bool parse_strides(tir_str text, struct tir_tensor_spec *out)
{
    for (out->stride_count = 0; text.len; out->stride_count++)
        if (out->stride_count == TIR_MAX_RANK ||
            !tir_parse_int(cut(&text, 'x'), &out->strides[out->stride_count]) ||
            out->strides[out->stride_count] < 0)
            return false;
    return out->stride_count > 0;
}

static bool parse_option(struct tir_arena *arena, tir_str key, tir_str value,
                         struct tir_tensor_spec *out, tir_error *error)
{
    const char *needed = "a whole number from 0 is needed";
    bool sound;
    if (tir_str_is(key, "pad"))
        sound = tir_parse_int(value, &out->pad) && out->pad >= 0;
    else if (tir_str_is(key, "offset"))
        sound = tir_parse_int(value, &out->offset) && out->offset >= 0;
    else if (tir_str_is(key, "strides")) {
        needed = "elements from 0, one per dimension, with x between";
        sound = parse_strides(value, out);
    } else if (tir_str_is(key, "save")) {
        needed = "the name of a file is needed";
        sound = value.len > 0;
        out->save = tir_str_copy(arena, value).ptr;
    } else
        return tir_fail(error, TIR_ERR_INVALID,
                        "\"" STR_FMT "\" is none of pad=N, strides=NxN, offset=N, save=FILE",
                        STR_ARG(key));
    return sound || tir_fail(error, TIR_ERR_INVALID, STR_FMT "=" STR_FMT ": %s", STR_ARG(key),
                             STR_ARG(value), needed);
}

bool tir_tensor_spec_parse(struct tir_arena *arena, const char *text, enum tir_elem elem,
                           struct tir_tensor_spec *out, tir_error *error)
{
    *out = (struct tir_tensor_spec){.fill = TIR_FILL_DEFAULT};
    tir_str rest = tir_str_of(text);
    do {
        tir_str item = cut(&rest, ','), value = item, key = cut(&value, '=');
        bool option = key.len < item.len && item.ptr[0] != '@';
        if (!option && out->fill != TIR_FILL_DEFAULT)
            return tir_fail(error, TIR_ERR_INVALID, "the contents are stated twice");
        if (!(option ? parse_option(arena, key, value, out, error)
                     : parse_fill(arena, item, elem, out, error)))
            return false;
    } while (rest.len);
    return true;
}

// ---- filling

static void set(enum tir_elem elem, uint8_t *at, union tir_number value)
{
    uint64_t bits = tir_number_encode(elem, value);
    for (uint32_t i = 0; i < tir_elem_size(elem); i++, bits >>= 8)
        at[i] = (uint8_t)bits; // little-endian, as on the device
}

static void set_float(enum tir_elem elem, uint8_t *at, double value)
{
    set(elem, at, tir_number_cast(elem, TIR_F64, (union tir_number){.f = value}));
}

static void set_int(enum tir_elem elem, uint8_t *at, int64_t value)
{
    set(elem, at, tir_number_cast(elem, TIR_I64, (union tir_number){.i = value}));
}

// The default contents of a tensor: N(0,1), scales without a sign from 1/4 to 4, or small
// integers.
static struct tir_tensor_spec default_spec(enum tir_elem elem)
{
    struct tir_tensor_spec spec = {.fill = TIR_FILL_RANDINT, .lo = 0, .hi = 15};
    if (tir_elem_is_scale(elem))
        return (struct tir_tensor_spec){.fill = TIR_FILL_RAND, .a = 0.25, .b = 4};
    switch (tir_elems[elem].kind) {
    case TIR_KIND_FLOAT:
        return (struct tir_tensor_spec){.fill = TIR_FILL_RANDN, .a = 0, .b = 1};
    case TIR_KIND_SIGNED:
        spec.lo = -8;
        spec.hi = 7;
        break;
    case TIR_KIND_BOOLEAN:
        spec.hi = 1;
        break;
    case TIR_KIND_UNSIGNED:
    case TIR_KIND_NONE:
        break;
    }
    return spec;
}

struct filling {
    struct tir_tensor *tensor;
    struct tir_tensor_spec spec;
    uint64_t key;
    const uint64_t *few; // the elements of the integers from spec.lo, if they are few; or NULL
};

static void random_int(const struct filling *f, uint64_t i, uint8_t *at)
{
    const int64_t number = tir_random_int(f->key, i, f->spec.lo, f->spec.hi);
    if (f->few)
        memcpy(at, &f->few[number - f->spec.lo], tir_elem_size(f->tensor->elem));
    else
        set_int(f->tensor->elem, at, number);
}

// Number `i`; `pair` are the normal ones of i and its neighbour.
static void fill_one(const struct filling *f, int64_t i, uint8_t *at, double pair[2])
{
    const struct tir_tensor_spec *spec = &f->spec;
    const enum tir_elem elem = f->tensor->elem;
    const uint64_t key = f->key;
    switch (spec->fill) {
    case TIR_FILL_RANDN:
        if (i % 2 == 0)
            tir_random_normals(key, (uint64_t)i / 2, pair);
        set_float(elem, at, spec->a + spec->b * pair[i % 2]);
        break;
    case TIR_FILL_RAND:
        set_float(elem, at, spec->a + (spec->b - spec->a) * tir_random_uniform(key, (uint64_t)i));
        break;
    case TIR_FILL_RANDINT:
        random_int(f, (uint64_t)i, at);
        break;
    case TIR_FILL_ARANGE:
        set_int(elem, at, i);
        break;
    case TIR_FILL_CONSTANT:
        set_float(elem, at, spec->a);
        break;
    case TIR_FILL_DEFAULT:
    case TIR_FILL_FILE:
        break;
    }
}

enum { PART = 1 << 16 }; // elements that one thread fills at a time; even, for pairs of normals

static void fill_part(void *user, uint32_t part)
{
    const struct filling *f = user;
    const int64_t first = (int64_t)part * PART, end = TIR_MIN(first + PART, f->tensor->count);
    struct tir_cursor c = cursor_at(f->tensor, first);
    double pair[2] = {0, 0};
    for (int64_t i = first; i < end; i++, tir_cursor_next(&c))
        fill_one(f, i, c.at, pair);
}

void tir_tensor_fill(struct tir_tensor *t, const struct tir_tensor_spec *given, uint64_t key)
{
    enum { FEW = 256 };
    struct filling f = {t, given->fill == TIR_FILL_DEFAULT ? default_spec(t->elem) : *given, key};
    const struct tir_tensor_spec *spec = &f.spec;
    const uint64_t last = (uint64_t)spec->hi - (uint64_t)spec->lo;
    uint64_t few[FEW] = {0}; // to round each number of a large tensor takes long
    if (spec->fill == TIR_FILL_RANDINT && t->count > FEW && last < FEW) {
        for (uint64_t i = 0; i <= last; i++)
            set_int(t->elem, (uint8_t *)&few[i], spec->lo + (int64_t)i);
        f.few = few;
    }
    if (spec->fill != TIR_FILL_FILE)
        tir_side_by_side(tir_processors(), (uint32_t)((t->count + PART - 1) / PART), fill_part, &f);
}
