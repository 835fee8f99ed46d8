// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Artifacts as bytes: the writer and the reader, from one description.
//
// The records are artifact_records.c's; here are the sections, and what is read of them when.
// Reading treats every byte as hostile, and memory is bounded by the size of the input
// (compress.h). The layout is drawn in docs/artifact.md.
//
// An artifact can be opened without its texts: a launch needs the PTX of few entries, and nobody
// the receipt until somebody asks for it.

#include "artifact_wire.h"
#include "error.h"

enum {
    HEADER_BYTES = 24,
    ROW_BYTES = 24, // of the section table
    SECTION_ALIGN = 16,
    LEAST_FRAME = 1024 // bytes that are worth a frame
};

enum section {
    SECTION_INFO = 1,    // targets, kernels and parts of the PTX: the record stream
    SECTION_STRINGS = 2, // every string of INFO, each followed by a zero byte
    SECTION_PTX = 3,     // its parts, each as it is or as a frame of compress.h
    SECTION_CUBIN = 4,
    SECTION_RECEIPT = 5,  // text, followed by a zero byte
    SECTION_FORMULAS = 6, // the operations of all formulas of INFO; equal formulas are there once
    SECTION_LAST = SECTION_FORMULAS
};

// The object was made writable by tir_artifact_open; only its users see it as const.
static struct decoded *decoded_of(const tir_artifact_desc *desc)
{
    return (struct decoded *)(uintptr_t)desc;
}

static size_t align_up(size_t at)
{
    return (at + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
}

// Where each section goes, given its size; returns the size of the whole.
static size_t place(struct range ranges[SECTION_LAST + 1])
{
    size_t at = HEADER_BYTES + SECTION_LAST * ROW_BYTES;
    for (int id = SECTION_INFO; id <= SECTION_LAST; id++) {
        ranges[id].at = align_up(at);
        at = ranges[id].at + ranges[id].size;
    }
    return align_up(at);
}

static void write_header(uint8_t *out, size_t total, const struct range *ranges)
{
    memcpy(out, "TIRA", 4);
    put_le(out + 4, TIR_ARTIFACT_VERSION, 4);
    put_le(out + 8, total, 8);
    put_le(out + 16, SECTION_LAST, 4);
    for (uint32_t id = SECTION_INFO; id <= SECTION_LAST; id++) {
        uint8_t *row = out + HEADER_BYTES + (id - 1) * ROW_BYTES;
        put_le(row, id, 4);
        put_le(row + 4, ranges[id].form, 4);
        put_le(row + 8, ranges[id].at, 8);
        put_le(row + 16, ranges[id].size, 8);
    }
}

// A section that is one piece of memory.
struct blob {
    enum section id;
    tir_str bytes;
    bool is_text;  // a zero byte follows
    bool is_parts; // it is compressed
    uint8_t *frame;
    size_t room;
};

// The blob's frame, if that is smaller. False: no memory.
static bool compress(const tir_allocator *allocator, struct blob *blob, struct range *range)
{
    range->size = blob->bytes.len ? blob->bytes.len + blob->is_text : 0;
    if (range->size < LEAST_FRAME || blob->is_parts)
        return true;
    blob->room = range->size;
    blob->frame = tir_host_alloc(allocator, blob->room);
    if (!blob->frame)
        return false;
    size_t size = tir_compress(blob->bytes, blob->is_text, blob->frame, blob->room);
    if (size && size < range->size)
        *range = (struct range){.size = size, .form = TIR_FORM_ZSTD};
    return true;
}

static void write_blob(uint8_t *out, const struct range *range, const struct blob *blob)
{
    if (range->form == TIR_FORM_ZSTD)
        memcpy(out + range->at, blob->frame, range->size);
    else if (blob->bytes.len)
        memcpy(out + range->at, blob->bytes.ptr, blob->bytes.len);
}

// The sections after `parts` are made, as bytes.
static tir_status write_all(const tir_artifact_desc *desc, struct code_parts *parts, tir_str packed,
                            const tir_allocator *allocator, uint8_t **bytes, size_t *size,
                            tir_error *error)
{
    tir_artifact_desc copy = *desc;
    struct wire w = {.mode = MEASURE, .parts = parts, .allocator = *allocator};
    tir_wire_info(&w, &copy);
    struct range ranges[SECTION_LAST + 1] = {
        [SECTION_INFO] = {.size = w.info.at},
        [SECTION_STRINGS] = {.size = w.strings.at},
    };
    if (w.strings.at > UINT32_MAX) {
        tir_wire_free_formulas(&w);
        return tir_error_set(error, TIR_ERR_INVALID, "the artifact's strings exceed 4 GiB");
    }
    const size_t formulas_size = (size_t)w.formulas.ops * OP_BYTES;
    uint8_t *formulas = formulas_size ? tir_host_alloc(allocator, formulas_size) : NULL;
    if (formulas)
        tir_wire_write_formulas(&w, formulas);
    struct blob blobs[] = {
        {.id = SECTION_PTX, .bytes = packed, .is_parts = true},
        {.id = SECTION_CUBIN, .bytes = desc->cubin},
        {.id = SECTION_RECEIPT, .bytes = desc->receipt, .is_text = true},
        {.id = SECTION_FORMULAS, .bytes = {(const char *)formulas, formulas_size}}};
    const size_t blob_count = sizeof blobs / sizeof *blobs;
    bool fits = !w.no_memory && (formulas || !formulas_size);
    for (size_t i = 0; i < blob_count && fits; i++)
        fits = compress(allocator, &blobs[i], &ranges[blobs[i].id]);
    size_t total = place(ranges);
    w.out = fits ? tir_host_alloc(allocator, total) : NULL;
    if (w.out) {
        w.mode = WRITE;
        w.info.at = ranges[SECTION_INFO].at;
        w.strings.at = w.strings.size = ranges[SECTION_STRINGS].at;
        tir_wire_info(&w, &copy);
        write_header(w.out, total, ranges);
        for (size_t i = 0; i < blob_count; i++)
            write_blob(w.out, &ranges[blobs[i].id], &blobs[i]);
        *bytes = w.out;
        *size = total;
    }
    for (size_t i = 0; i < blob_count; i++)
        tir_host_free(allocator, blobs[i].frame, blobs[i].room);
    tir_host_free(allocator, formulas, formulas_size);
    tir_wire_free_formulas(&w);
    return w.out ? TIR_OK
                 : tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for an artifact of %zu bytes",
                                 total);
}

TIR_API tir_status tir_artifact_encode(const tir_artifact_desc *desc,
                                       const tir_allocator *allocator, uint8_t **bytes,
                                       size_t *size, tir_error *error)
{
    *bytes = NULL;
    *size = 0;
    tir_status status = tir_artifact_check(desc, desc->ptx.len > 0, error);
    if (status)
        return status;
    const tir_allocator a = tir_host_allocator(allocator);
    const size_t len = desc->ptx.len, room = 2 * len + 1;
    struct code_parts parts = {0};
    char *text = tir_host_alloc_raw(&a, room); // with the zero byte that the text need not have
    if (!text)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to compress %zu bytes", len);
    if (len)
        memcpy(text, desc->ptx.ptr, len);
    text[len] = 0;
    if (tir_parts_divide((tir_str){text, len}, &a, &parts)) {
        uint8_t *packed = (uint8_t *)text + len + 1;
        tir_str stored = {(const char *)packed,
                          tir_parts_pack(&parts, (tir_str){text, len}, packed)};
        status = write_all(desc, &parts, stored, &a, bytes, size, error);
    } else {
        status = tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to divide %zu bytes", len);
    }
    tir_parts_free(&parts, &a);
    tir_host_free(&a, text, room);
    return status;
}

TIR_API void tir_artifact_bytes_free(uint8_t *bytes, size_t size, const tir_allocator *allocator)
{
    tir_allocator a = tir_host_allocator(allocator);
    tir_host_free(&a, bytes, size);
}

// Reads the section table. Unknown sections are skipped; each known one is there exactly once.
static const char *read_sections(const uint8_t *in, size_t size, struct range *ranges)
{
    uint32_t count = (uint32_t)get_le(in + 16, 4);
    if (get_le(in + 8, 8) != size)
        return "its size is not what its header says";
    if (count > (size - HEADER_BYTES) / ROW_BYTES)
        return "its section table ends early";
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = in + HEADER_BYTES + (size_t)i * ROW_BYTES;
        uint64_t id = get_le(row, 4), at = get_le(row + 8, 8), length = get_le(row + 16, 8);
        uint64_t form = get_le(row + 4, 4);
        if (at > size || length > size - at)
            return "a section lies outside it";
        if (id < SECTION_INFO || id > SECTION_LAST)
            continue;
        if (ranges[id].at)
            return "a section is there twice";
        if (at < HEADER_BYTES)
            return "a section lies in the header";
        const bool may_be_frame =
            id == SECTION_CUBIN || id == SECTION_RECEIPT || id == SECTION_FORMULAS;
        if (form > (may_be_frame ? TIR_FORM_ZSTD : TIR_FORM_STORED))
            return "a section has a form that it cannot have";
        ranges[id] = (struct range){(size_t)at, (size_t)length, (enum tir_form)form};
    }
    for (int id = SECTION_INFO; id <= SECTION_LAST; id++)
        if (!ranges[id].at)
            return "a section is missing";
    return NULL;
}

// ---- reading

static tir_status no_memory(tir_error *error)
{
    return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory to read an artifact");
}

static tir_status damaged(const char *wrong, tir_error *error)
{
    return tir_error_set(error, TIR_ERR_INVALID, "the artifact is damaged: %s", wrong);
}

// Copies the sections that are read later, or into which records point.
static void keep_sections(struct wire *w, struct range *ranges)
{
    static const enum section kept[] = {SECTION_STRINGS, SECTION_PTX, SECTION_CUBIN,
                                        SECTION_RECEIPT};
    const size_t count = sizeof kept / sizeof *kept;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        at += ranges[kept[i]].size;
    uint8_t *copy = tir_wire_block(w, at, 1);
    at = 0;
    for (size_t i = 0; copy && i < count; i++) {
        struct range *range = &ranges[kept[i]];
        memcpy(copy + at, w->in + range->at, range->size);
        range->at = at;
        at += range->size;
    }
    w->decoded->kept = copy;
    w->kept = (const char *)copy;
}

static void read_formulas(struct wire *w, const struct range *range)
{
    const tir_allocator *allocator = &w->decoded->allocator;
    const uint8_t *stored = w->in + range->at;
    if (range->form == TIR_FORM_STORED) {
        tir_wire_read_formulas(w, stored, range->size);
        return;
    }
    const size_t size = tir_decompressed_size(stored, range->size);
    uint8_t *contents = size ? tir_host_alloc_raw(allocator, size) : NULL;
    if (size && !contents)
        w->no_memory = true;
    else if (!size || !tir_decompress(stored, range->size, contents, size))
        w->wrong = "a section cannot be decompressed";
    else
        tir_wire_read_formulas(w, contents, size);
    tir_host_free(allocator, contents, size);
}

static void read_all(struct wire *w, const void *bytes, size_t size)
{
    struct range ranges[SECTION_LAST + 1] = {{0, 0}};
    struct decoded *d = w->decoded;
    w->in = bytes;
    w->wrong = read_sections(bytes, size, ranges);
    if (!w->wrong)
        keep_sections(w, ranges);
    if (!w->wrong)
        read_formulas(w, &ranges[SECTION_FORMULAS]);
    if (w->wrong || w->no_memory)
        return;
    w->info = ranges[SECTION_INFO];
    w->strings = ranges[SECTION_STRINGS];
    w->parts = &d->parts;
    d->ptx = ranges[SECTION_PTX];
    d->cubin = ranges[SECTION_CUBIN];
    d->receipt = ranges[SECTION_RECEIPT];
    tir_wire_info(w, &d->desc);
    if (!w->wrong && w->info.size)
        w->wrong = "it has bytes after its last record";
    if (!w->wrong)
        w->wrong = tir_parts_measure(&d->parts, d->kept + d->ptx.at, d->ptx.size, &d->ptx_size);
}

// The contents of a section.
static tir_status read_blob(struct decoded *d, const struct range *range, tir_str *out,
                            tir_error *error)
{
    const uint8_t *stored = d->kept + range->at;
    *out = (tir_str){(const char *)stored, range->size};
    if (range->form == TIR_FORM_STORED)
        return TIR_OK;
    size_t size = tir_decompressed_size(stored, range->size);
    char *contents = size ? tir_decoded_block(d, size) : NULL;
    *out = (tir_str){"", 0};
    if (size && !contents)
        return no_memory(error);
    if (!size || !tir_decompress(stored, range->size, contents, size))
        return damaged("a section cannot be decompressed", error);
    *out = (tir_str){contents, size};
    return TIR_OK;
}

static bool is_needed(const struct code_part *part, const tir_str *entry)
{
    return !entry || !part->entry_count || tir_part_has(part, *entry);
}

// The texts of the parts that the entry needs, or all: their size, or 0 if no part has the entry.
static size_t measure_ptx(const struct decoded *d, const tir_str *entry)
{
    size_t size = 0;
    bool found = !entry;
    for (uint32_t i = 0; i < d->parts.count; i++)
        if (is_needed(&d->parts.at[i], entry)) {
            size += d->parts.at[i].size;
            found |= d->parts.at[i].entry_count > 0;
        }
    return found ? size : 0;
}

// Writes them, and a zero byte.
static tir_status read_ptx(const struct decoded *d, const tir_str *entry, char *out,
                           tir_error *error)
{
    const uint8_t *stored = d->kept + d->ptx.at;
    for (uint32_t i = 0; i < d->parts.count; i++) {
        const struct code_part *part = &d->parts.at[i];
        if (is_needed(part, entry)) {
            if (!tir_part_read(part, stored, out))
                return damaged("a part of the PTX cannot be decompressed", error);
            out += part->size;
        }
        stored += part->stored;
    }
    *out = 0;
    return TIR_OK;
}

tir_status tir_artifact_open(const void *bytes, size_t size, const tir_allocator *allocator,
                             const tir_artifact_desc **out, tir_error *error)
{
    const tir_allocator a = tir_host_allocator(allocator);
    struct wire w = {.mode = READ};
    *out = NULL;
    if (size < HEADER_BYTES || memcmp(bytes, "TIRA", 4) != 0)
        return tir_error_set(error, TIR_ERR_INVALID, "these bytes are not an artifact");
    uint32_t version = (uint32_t)get_le((const uint8_t *)bytes + 4, 4);
    if (version != TIR_ARTIFACT_VERSION)
        return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                             "the artifact has version %u, this library reads version %u", version,
                             TIR_ARTIFACT_VERSION);
    w.decoded = tir_host_alloc(&a, sizeof *w.decoded);
    if (!w.decoded)
        return no_memory(error);
    w.decoded->allocator = a;
    read_all(&w, bytes, size);
    tir_artifact_desc *desc = &w.decoded->desc;
    tir_status status = w.no_memory ? no_memory(error) : w.wrong ? damaged(w.wrong, error) : TIR_OK;
    if (!status)
        status = read_blob(w.decoded, &w.decoded->cubin, &desc->cubin, error);
    if (!status)
        status = tir_artifact_check(desc, w.decoded->parts.count > 0, error);
    if (status)
        tir_artifact_free(desc, allocator);
    else
        *out = desc;
    return status;
}

bool tir_artifact_has_ptx(const tir_artifact_desc *desc)
{
    return decoded_of(desc)->parts.count > 0;
}

tir_status tir_artifact_read_ptx(const tir_artifact_desc *desc, const tir_str *entry,
                                 const tir_allocator *allocator, tir_str *out, tir_error *error)
{
    const struct decoded *d = decoded_of(desc);
    const size_t size = measure_ptx(d, entry);
    *out = (tir_str){NULL, 0};
    if (!size)
        return TIR_OK;
    char *text = tir_host_alloc_raw(allocator, size + 1);
    if (!text)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for %zu bytes of PTX", size);
    tir_status status = read_ptx(d, entry, text, error);
    if (status)
        tir_host_free(allocator, text, size + 1);
    else
        *out = (tir_str){text, size};
    return status;
}

tir_status tir_artifact_read_receipt(const tir_artifact_desc *desc, tir_error *error)
{
    struct decoded *d = decoded_of(desc);
    tir_str text;
    if (d->desc.receipt.ptr)
        return TIR_OK;
    tir_status status = read_blob(d, &d->receipt, &text, error);
    if (!status && text.len && memchr(text.ptr, 0, text.len) != text.ptr + text.len - 1)
        status = damaged("a text does not end where its section ends", error);
    if (!status)
        d->desc.receipt = text.len ? (tir_str){text.ptr, text.len - 1} : (tir_str){"", 0};
    return status;
}

TIR_API tir_status tir_artifact_decode(const void *bytes, size_t size,
                                       const tir_allocator *allocator,
                                       const tir_artifact_desc **out, tir_error *error)
{
    tir_status status = tir_artifact_open(bytes, size, allocator, out, error);
    if (status)
        return status;
    struct decoded *d = decoded_of(*out);
    char *text = tir_decoded_block(d, d->ptx_size + 1);
    status = text ? read_ptx(d, NULL, text, error) : no_memory(error);
    d->desc.ptx = (tir_str){text, d->ptx_size};
    if (!status)
        status = tir_artifact_read_receipt(*out, error);
    if (status) {
        tir_artifact_free(*out, allocator);
        *out = NULL;
    }
    return status;
}

TIR_API void tir_artifact_free(const tir_artifact_desc *desc, const tir_allocator *allocator)
{
    if (!desc)
        return;
    tir_allocator a = tir_host_allocator(allocator);
    struct decoded *decoded = decoded_of(desc);
    for (struct block *block = decoded->blocks, *next; block; block = next) {
        next = block->next;
        tir_host_free(&a, block, block->size);
    }
    tir_host_free(&a, decoded, sizeof *decoded);
}
