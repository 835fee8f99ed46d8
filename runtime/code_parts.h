// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The PTX of an artifact in parts, so that a launch decompresses those alone that its entry needs.
#ifndef TIR_RUNTIME_CODE_PARTS_H
#define TIR_RUNTIME_CODE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "compress.h"
#include "tir/base.h"

struct code_part {
    const tir_str *entries; // those in it; none: every entry needs the part
    uint32_t entry_count;
    enum tir_form form;
    int64_t stored; // bytes, in the artifact
    size_t size;    // bytes, of its text
};

// Parts one behind the other.
struct code_parts {
    struct code_part *at;
    uint32_t count;
    tir_str *entries; // the names that they refer to, where they were divided here
    uint32_t entry_count;
    size_t bytes; // of memory
};

// Divides PTX, which a zero byte follows, into parts that refer to it. False: no memory.
bool tir_parts_divide(tir_str ptx, const tir_allocator *allocator, struct code_parts *out);
void tir_parts_free(struct code_parts *parts, const tir_allocator *allocator);

// Writes what is stored of all parts to `out`, which has room for the whole text; returns its size.
size_t tir_parts_pack(struct code_parts *parts, tir_str ptx, uint8_t *out);

// Finds the size of each text, and of all; `stored` is what the artifact has. NULL where it is
// right, else what is wrong.
const char *tir_parts_measure(struct code_parts *parts, const uint8_t *stored, size_t size,
                              size_t *all);

bool tir_part_has(const struct code_part *part, tir_str entry);

// Writes the text of a part. False: it is damaged.
bool tir_part_read(const struct code_part *part, const uint8_t *stored, char *out);

#endif
