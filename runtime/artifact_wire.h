// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What goes on while an artifact is measured, written or read, and its records.
#ifndef TIR_RUNTIME_ARTIFACT_WIRE_H
#define TIR_RUNTIME_ARTIFACT_WIRE_H

#include "artifact.h"
#include "code_parts.h"
#include "host.h"

enum { OP_BYTES = 12 }; // of the formulas

// One block of a decoded artifact, in a list that is freed as a whole.
struct block {
    struct block *next;
    size_t size;
};

struct range {
    size_t at, size;
    enum tir_form form; // of a section
};

// The object into which tir_artifact_open returns a pointer.
struct decoded {
    tir_artifact_desc desc; // first, so that the two pointers convert
    tir_allocator allocator;
    struct block *blocks;
    const uint8_t *kept; // the sections that are not read yet
    struct range ptx, cubin, receipt;
    struct code_parts parts; // of the PTX
    size_t ptx_size;         // of its text
};

enum mode { MEASURE, WRITE, READ };

// Formulas that differ, one after the other.
struct formulas {
    tir_formula *at;
    uint32_t count, room, ops;
};

struct wire {
    enum mode mode;
    const char *wrong;         // READ: the first thing that was wrong
    uint8_t *out;              // WRITE: the whole artifact
    const uint8_t *in;         // READ: the whole artifact
    const char *kept;          // READ: what is copied of it
    struct range info;         // where the records are; `at` moves on, `size` is what is left
    struct range strings;      // WRITE and MEASURE: as info; READ: the whole section
    tir_allocator allocator;   // MEASURE
    struct formulas formulas;  // MEASURE and WRITE
    const tir_formula_op *ops; // READ: of all formulas
    uint32_t op_count;
    struct code_parts *parts;
    struct decoded *decoded; // READ
    bool no_memory;
};

// Known when this is compiled.
static inline bool is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static inline void put_le(uint8_t *bytes, uint64_t value, size_t count)
{
    if (is_little_endian())
        memcpy(bytes, &value, count);
    else
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t get_le(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    if (is_little_endian())
        memcpy(&value, bytes, count);
    else
        for (size_t i = 0; i < count; i++)
            value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

// Memory of any contents that lives as long as the artifact, or NULL.
void *tir_decoded_block(struct decoded *decoded, size_t size);
// The same; NULL is noted.
void *tir_wire_block(struct wire *w, size_t count, size_t size);

// All records. Measuring and writing find which formulas differ.
void tir_wire_info(struct wire *w, tir_artifact_desc *desc);

// The section of formulas, which is read before the records.
void tir_wire_read_formulas(struct wire *w, const uint8_t *in, size_t size);
void tir_wire_write_formulas(struct wire *w, uint8_t *out);
void tir_wire_free_formulas(struct wire *w);

#endif
