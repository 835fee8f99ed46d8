// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The index over the tables of instructions.

#include "emu/decode/isa.h"

#include <string.h>

enum { BUCKETS = 4096 }; // a power of two, a few times the rows

struct emu_isa {
    const struct emu_alu_row *alu[BUCKETS];
    const struct emu_cmp_row *cmp[BUCKETS];
};

static uint32_t hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)text[i]) * 16777619u;
    return (h ^ h >> 16) & (BUCKETS - 1);
}

static void add_alu(struct emu_isa *isa, const struct emu_alu_row *row)
{
    for (; row->name; row++) {
        uint32_t at = hash(row->name, strlen(row->name));
        while (isa->alu[at])
            at = (at + 1) & (BUCKETS - 1);
        isa->alu[at] = row;
    }
}

struct emu_isa *emu_isa_create(const tir_allocator *allocator)
{
    struct emu_isa *isa = emu_resize(allocator, NULL, 0, sizeof *isa);
    if (!isa)
        return NULL;
    memset(isa, 0, sizeof *isa);
    add_alu(isa, emu_alu_int_rows);
    add_alu(isa, emu_alu_float_rows);
    add_alu(isa, emu_alu_half_rows);
    for (const struct emu_cmp_row *row = emu_cmp_rows; row->name; row++) {
        uint32_t at = hash(row->name, strlen(row->name));
        while (isa->cmp[at])
            at = (at + 1) & (BUCKETS - 1);
        isa->cmp[at] = row;
    }
    return isa;
}

void emu_isa_destroy(struct emu_isa *isa, const tir_allocator *allocator)
{
    if (isa)
        emu_resize(allocator, isa, sizeof *isa, 0);
}

const struct emu_alu_row *emu_isa_alu(const struct emu_isa *isa, tir_str name)
{
    for (uint32_t at = hash(name.ptr, name.len); isa->alu[at]; at = (at + 1) & (BUCKETS - 1))
        if (emu_str_is(name, isa->alu[at]->name))
            return isa->alu[at];
    return NULL;
}

const struct emu_cmp_row *emu_isa_cmp(const struct emu_isa *isa, tir_str name)
{
    for (uint32_t at = hash(name.ptr, name.len); isa->cmp[at]; at = (at + 1) & (BUCKETS - 1))
        if (emu_str_is(name, isa->cmp[at]->name))
            return isa->cmp[at];
    return NULL;
}
