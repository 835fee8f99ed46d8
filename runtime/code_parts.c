// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The PTX of an artifact in parts.
//
// Entries that follow each other are a part of up to PART_BYTES: enough that what they have in
// common is stored once, and little enough that a launch does not wait for the others. What lies
// between entries is a part that all of them need. A module that cannot be divided is one such.

#include "code_parts.h"

#include <string.h>

#include "host.h"
#include "ptx.h"

enum { PART_BYTES = 128 << 10 };

// 0: it has none, or cannot be divided.
static uint32_t count_entries(tir_str ptx)
{
    struct tir_ptx_statement s;
    uint32_t count = 0;
    while (tir_ptx_next(&ptx, &s)) {
        if (s.is_binding)
            return 0;
        count += s.entry.len > 0;
    }
    return count;
}

// The statement goes to the last part, or begins one.
static void add(struct code_parts *parts, const struct tir_ptx_statement *s)
{
    struct code_part *part = parts->count ? &parts->at[parts->count - 1] : NULL;
    const bool is_entry = s->entry.len > 0;
    if (!part || is_entry != (part->entry_count > 0) ||
        (is_entry && part->size + s->text.len > PART_BYTES)) {
        part = &parts->at[parts->count++];
        part->entries = parts->entries + parts->entry_count;
    }
    part->size += s->text.len;
    if (is_entry)
        parts->entries[parts->entry_count++] = s->entry;
    part->entry_count += is_entry;
}

bool tir_parts_divide(tir_str ptx, const tir_allocator *allocator, struct code_parts *out)
{
    struct tir_ptx_statement s;
    *out = (struct code_parts){0};
    if (!ptx.len)
        return true;
    const uint32_t entries = count_entries(ptx);
    const size_t room = 2 * (size_t)entries + 1; // each entry, what follows it, and the head
    out->bytes = room * sizeof *out->at + entries * sizeof *out->entries;
    out->at = tir_host_alloc(allocator, out->bytes);
    if (!out->at)
        return false;
    out->entries = (tir_str *)(out->at + room);
    if (!entries)
        out->at[out->count++].size = ptx.len;
    while (entries && tir_ptx_next(&ptx, &s))
        add(out, &s);
    return true;
}

void tir_parts_free(struct code_parts *parts, const tir_allocator *allocator)
{
    tir_host_free(allocator, parts->at, parts->bytes);
}

size_t tir_parts_pack(struct code_parts *parts, tir_str ptx, uint8_t *out)
{
    size_t at = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct code_part *part = &parts->at[i];
        const size_t size =
            tir_compress((tir_str){ptx.ptr, part->size}, false, out + at, part->size);
        part->form = size && size < part->size ? TIR_FORM_ZSTD : TIR_FORM_STORED;
        part->stored = (int64_t)(part->form == TIR_FORM_ZSTD ? size : part->size);
        if (part->form == TIR_FORM_STORED)
            memcpy(out + at, ptx.ptr, part->size);
        at += (size_t)part->stored;
        ptx.ptr += part->size;
    }
    return at;
}

const char *tir_parts_measure(struct code_parts *parts, const uint8_t *stored, size_t size,
                              size_t *all)
{
    *all = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct code_part *part = &parts->at[i];
        if (part->form > TIR_FORM_ZSTD || part->stored < 1 || (uint64_t)part->stored > size)
            return "a part of the PTX has a wrong form or size";
        const size_t bytes = (size_t)part->stored;
        part->size = part->form == TIR_FORM_ZSTD ? tir_decompressed_size(stored, bytes) : bytes;
        if (!part->size || part->size > SIZE_MAX / 2 - *all)
            return "a section cannot be decompressed";
        *all += part->size;
        stored += bytes;
        size -= bytes;
    }
    return size ? "the PTX is more than its parts" : NULL;
}

bool tir_part_has(const struct code_part *part, tir_str entry)
{
    for (uint32_t i = 0; i < part->entry_count; i++)
        if (part->entries[i].len == entry.len &&
            memcmp(part->entries[i].ptr, entry.ptr, entry.len) == 0)
            return true;
    return false;
}

bool tir_part_read(const struct code_part *part, const uint8_t *stored, char *out)
{
    if (part->form == TIR_FORM_STORED)
        memcpy(out, stored, part->size);
    else if (!tir_decompress(stored, (size_t)part->stored, out, part->size))
        return false;
    return !memchr(out, 0, part->size);
}
