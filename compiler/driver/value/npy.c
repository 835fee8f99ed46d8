// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads and writes .npy files.
//
// A file is "\x93NUMPY", two version bytes, the header's length (2 bytes in version 1, else 4,
// little end first), the header, the data. The header is a Python literal:
//     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// The reader takes exactly these three keys, in any order, and nothing of what else Python could
// write there. Nothing in the file is trusted: each length is checked against the bytes at hand.
#include "driver/value/npy.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/file.h"

// ---- the header

struct reader {
    const char *name; // of the file
    const char *at, *end;
    tir_error *error;
};

static bool malformed(struct reader *r, const char *what)
{
    return tir_fail(r->error, TIR_ERR_INVALID, "%s: not a .npy file: %s", r->name, what);
}

static bool token(struct reader *r, char c)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n'))
        r->at++;
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool word(struct reader *r, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len))
        return false;
    r->at += len;
    return true;
}

static bool quoted(struct reader *r, tir_str *out)
{
    char quote = token(r, '\'') ? '\'' : token(r, '"') ? '"' : 0;
    const char *begin = r->at;
    while (quote && r->at < r->end && *r->at != quote)
        r->at++;
    if (!quote || r->at == r->end)
        return false;
    *out = (tir_str){begin, (size_t)(r->at++ - begin)};
    return true;
}

static bool extent(struct reader *r, int64_t *out)
{
    const char *begin = r->at;
    *out = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (*out > (INT64_C(1) << 56))
            return false;
        else
            *out = *out * 10 + (*r->at - '0');
    return r->at > begin;
}

static bool shape(struct reader *r, struct tir_npy *out)
{
    if (!token(r, '('))
        return malformed(r, "its shape is no tuple");
    while (!token(r, ')')) {
        if (out->rank == TIR_MAX_RANK)
            return tir_fail(r->error, TIR_ERR_INVALID, "%s: more than %d dimensions", r->name,
                            TIR_MAX_RANK);
        token(r, ' '); // nothing, or the spaces before a number
        if (!extent(r, &out->shape[out->rank++]))
            return malformed(r, "its shape is not made of sizes");
        if (!token(r, ',') && (r->at == r->end || *r->at != ')'))
            return malformed(r, "its shape is no tuple");
    }
    return true;
}

static bool entry(struct reader *r, struct tir_npy *out, unsigned *seen)
{
    tir_str key, type;
    if (!quoted(r, &key) || !token(r, ':'))
        return malformed(r, "its header is no dictionary");
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    if (key.len == 5 && !memcmp(key.ptr, "descr", 5)) {
        *seen |= 1;
        if (!quoted(r, &type) || type.len >= sizeof(out->type) || type.len < 2 ||
            memchr(type.ptr, 0, type.len))
            return tir_fail(r->error, TIR_ERR_INVALID, "%s: its elements are not plain numbers",
                            r->name);
        memcpy(out->type, type.ptr, type.len);
        out->type[type.len] = 0;
        return true;
    }
    if (key.len == 13 && !memcmp(key.ptr, "fortran_order", 13)) {
        *seen |= 2;
        out->fortran = word(r, "True");
        return out->fortran || word(r, "False") || malformed(r, "fortran_order is no bool");
    }
    if (key.len == 5 && !memcmp(key.ptr, "shape", 5)) {
        *seen |= 4;
        out->rank = 0;
        return shape(r, out);
    }
    return malformed(r, "its header has an unknown key");
}

static bool dictionary(struct reader *r, struct tir_npy *out)
{
    unsigned seen = 0;
    if (!token(r, '{'))
        return malformed(r, "its header is no dictionary");
    while (!token(r, '}')) {
        if (!entry(r, out, &seen))
            return false;
        if (!token(r, ',') && (r->at == r->end || *r->at != '}'))
            return malformed(r, "its header is no dictionary");
    }
    return seen == 7 || malformed(r, "its header lacks descr, fortran_order or shape");
}

// "<f4" is 4 bytes; 0: not a plain number.
static uint32_t type_size(const char *type)
{
    const char *digits = type + (strchr("<>|=", type[0]) != NULL);
    bool plain = strchr("fiubV", digits[0]) && strchr("1248", digits[1]) && digits[1] && !digits[2];
    return plain ? (uint32_t)(digits[1] - '0') : 0;
}

enum { PREFIX = 12, LARGEST_HEADER = 1 << 20 };

// How many bytes come before the data, from the first PREFIX bytes; of version 1 two of them are
// of the header.
static bool data_offset(struct reader *r, const uint8_t *bytes, size_t size, size_t *out)
{
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6))
        return malformed(r, "it does not begin like one");
    const uint32_t version = bytes[6], prefix = version == 1 ? 10 : 12;
    if (version < 1 || version > 3)
        return tir_fail(r->error, TIR_ERR_INVALID, "%s: .npy version %u is not known", r->name,
                        version);
    if (size < prefix)
        return malformed(r, "it ends early");
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > LARGEST_HEADER)
        return malformed(r, "its header is larger than 1 MiB");
    r->at = (const char *)bytes + prefix;
    *out = prefix + length;
    return true;
}

static bool data_size(struct reader *r, const struct tir_npy *npy, uint64_t *out)
{
    *out = type_size(npy->type);
    if (!*out)
        return tir_fail(r->error, TIR_ERR_INVALID, "%s: elements of type %s are not known", r->name,
                        npy->type);
    for (uint32_t i = 0; i < npy->rank; i++) {
        if (npy->shape[i] && *out > (UINT64_C(1) << 56) / (uint64_t)npy->shape[i])
            return tir_fail(r->error, TIR_ERR_INVALID, "%s: its shape is too large", r->name);
        *out *= (uint64_t)npy->shape[i];
    }
    return true;
}

// The header alone; *need is how many bytes of data follow.
static bool header(struct reader *r, const uint8_t *bytes, size_t size, struct tir_npy *out,
                   uint64_t *need)
{
    *out = (struct tir_npy){.rank = 0};
    if (!data_offset(r, bytes, size, &out->data))
        return false;
    if (out->data > size)
        return malformed(r, "it ends within the header");
    r->end = (const char *)bytes + out->data;
    return dictionary(r, out) && data_size(r, out, need);
}

static bool has_size(const char *name, uint64_t got, const char *more, uint64_t need,
                     tir_error *error)
{
    return got == need || tir_fail(error, TIR_ERR_INVALID,
                                   "%s: holds %llu%s bytes of data where its shape and type need "
                                   "%llu",
                                   name, (unsigned long long)got, more, (unsigned long long)need);
}

bool tir_npy_header(const char *name, const uint8_t *bytes, size_t size, struct tir_npy *out,
                    tir_error *error)
{
    struct reader r = {name, NULL, NULL, error};
    uint64_t need = 0;
    return header(&r, bytes, size, out, &need) && has_size(name, size - out->data, "", need, error);
}

bool tir_npy_open(const char *path, struct tir_npy_file *f, tir_error *error)
{
    *f = (struct tir_npy_file){.path = path};
    struct reader r = {path, NULL, NULL, error};
    size_t header_end = 0;
    return tir_file_open(path, &f->file, error) &&
           tir_file_append(f->file, path, PREFIX, &f->bytes, &f->size, error) &&
           data_offset(&r, (const uint8_t *)f->bytes, f->size, &header_end) &&
           (header_end <= f->size ||
            tir_file_append(f->file, path, header_end - f->size, &f->bytes, &f->size, error)) &&
           header(&r, (const uint8_t *)f->bytes, f->size, &f->npy, &f->need);
}

bool tir_npy_load(struct tir_npy_file *f, struct tir_tensor *into, tir_error *error)
{
    const uint64_t end = f->npy.data + f->need; // one byte more would be too much
    if (!tir_file_append(f->file, f->path, (size_t)(end + 1 - f->size), &f->bytes, &f->size, error))
        return false;
    return has_size(f->path, f->size - f->npy.data, f->size > end ? " or more" : "", f->need,
                    error) &&
           tir_npy_read(f->path, (const uint8_t *)f->bytes, f->size, &f->npy, into, error);
}

void tir_npy_close(struct tir_npy_file *f)
{
    tir_file_close(f->file);
    free(f->bytes);
    f->file = NULL;
    f->bytes = NULL;
}

// ---- the data

// The type of each element in a file, and other types from which it may be read.
static const struct {
    char kind;
    char raw; // also kept as: bytes (V) or unsigned
} kinds[TIR_ELEM_COUNT] = {
    [TIR_I8] = {'i', 0},      [TIR_I16] = {'i', 0},     [TIR_I32] = {'i', 0},
    [TIR_I64] = {'i', 0},     [TIR_U8] = {'u', 0},      [TIR_U16] = {'u', 0},
    [TIR_U32] = {'u', 0},     [TIR_U64] = {'u', 0},     [TIR_F16] = {'f', 0},
    [TIR_F32] = {'f', 0},     [TIR_F64] = {'f', 0},     [TIR_TF32] = {'f', 0},
    [TIR_BF16] = {'V', 'u'},  [TIR_E4M3] = {'V', 'u'},  [TIR_E5M2] = {'V', 'u'},
    [TIR_UE8M0] = {'V', 'u'}, [TIR_BOOL] = {'b', 0},    [TIR_E3M2] = {'V', 'u'},
    [TIR_E2M3] = {'V', 'u'},  [TIR_UE4M3] = {'V', 'u'},
};

static bool big_endian_host(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return !first;
}

static void copy_element(uint8_t *to, const uint8_t *from, uint32_t size, bool swap)
{
    for (uint32_t i = 0; i < size; i++)
        to[i] = from[swap ? size - 1 - i : i];
}

bool tir_npy_read(const char *name, const uint8_t *bytes, size_t size, const struct tir_npy *npy,
                  struct tir_tensor *into, tir_error *error)
{
    const char *type = npy->type + (strchr("<>|=", npy->type[0]) != NULL);
    uint32_t element = tir_elem_size(into->elem);
    char kind = kinds[into->elem].kind, raw = kinds[into->elem].raw;
    if ((type[0] != kind && type[0] != raw) || type_size(npy->type) != element)
        return tir_fail(error, TIR_ERR_INVALID, "%s: holds %s where %s needs %c%u%s", name,
                        npy->type, tir_elems[into->elem].name, kind, element,
                        raw ? " or the same bytes as unsigned" : "");
    bool same = npy->rank == into->rank;
    for (uint32_t i = 0; same && i < npy->rank; i++)
        same = npy->shape[i] == into->shape[i];
    if (!same || size - npy->data != (uint64_t)into->count * element)
        return tir_fail(error, TIR_ERR_INVALID, "%s: its shape is not that of the tensor", name);
    bool big = npy->type[0] == '>' || (npy->type[0] != '<' && big_endian_host());
    int64_t steps[TIR_MAX_RANK], step = 1; // of the file, in elements
    for (uint32_t i = 0; i < npy->rank; i++) {
        uint32_t axis = npy->fortran ? i : npy->rank - 1 - i;
        steps[axis] = step;
        step *= npy->shape[axis];
    }
    struct tir_cursor c = tir_cursor_first(into);
    for (int64_t i = 0; i < into->count; i++, tir_cursor_next(&c)) {
        int64_t from = 0;
        for (uint32_t d = 0; d < npy->rank; d++)
            from += c.index[d] * steps[d];
        copy_element(c.at, bytes + npy->data + (size_t)from * element, element,
                     big != big_endian_host());
        if (into->elem == TIR_BOOL)
            *c.at = *c.at != 0;
    }
    return true;
}

bool tir_npy_write(const struct tir_tensor *tensor, uint8_t **out, size_t *size, tir_error *error)
{
    uint32_t element = tir_elem_size(tensor->elem), len = 0;
    char sizes[TIR_MAX_RANK * 24] = "", header[256];
    for (uint32_t i = 0; i < tensor->rank; i++)
        len += (uint32_t)snprintf(sizes + len, sizeof(sizes) - len, "%lld, ",
                                  (long long)tensor->shape[i]);
    if (tensor->rank > 1)
        sizes[len - 2] = 0;
    int text = snprintf(header, sizeof(header),
                        "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (%s), }",
                        element == 1 || kinds[tensor->elem].kind == 'V' ? '|' : '<',
                        kinds[tensor->elem].kind, element, sizes);
    // The data begins at a multiple of 64; the header is filled with spaces and ends in a newline.
    size_t data = ((size_t)10 + (size_t)text + 1 + 63) / 64 * 64;
    *size = data + (size_t)tensor->count * element;
    *out = malloc(*size);
    if (!*out)
        return tir_fail(error, TIR_ERR_NO_MEMORY, "out of memory");
    memset(*out, ' ', data);
    memcpy(*out, "\x93NUMPY\1\0", 8);
    (*out)[8] = (uint8_t)(data - 10);
    (*out)[9] = (uint8_t)((data - 10) >> 8);
    memcpy(*out + 10, header, (size_t)text);
    (*out)[data - 1] = '\n';
    uint8_t *to = *out + data;
    struct tir_cursor c = tir_cursor_first(tensor);
    for (int64_t i = 0; i < tensor->count; i++, tir_cursor_next(&c), to += element)
        copy_element(to, c.at, element, big_endian_host());
    return true;
}

bool tir_npy_save(const char *path, const struct tir_tensor *tensor, tir_error *error)
{
    uint8_t *bytes;
    size_t size;
    if (!tir_npy_write(tensor, &bytes, &size, error))
        return false;
    bool done = tir_file_write(path, bytes, size, error);
    free(bytes);
    return done;
}
