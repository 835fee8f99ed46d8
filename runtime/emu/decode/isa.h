// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The instruction set as tables: which functions compute what, found by spelling.
#ifndef EMU_ISA_H
#define EMU_ISA_H

#include "emu/decode/program.h"

// Suffixes that a row accepts in addition to its spelling.
enum {
    EMU_ROW_R = 1 << 0, // .rn .rz .rm .rp
    EMU_ROW_F = 1 << 1, // .ftz
    EMU_ROW_S = 1 << 2, // .sat
    EMU_ROW_L = 1 << 3, // .relu
    EMU_ROW_M = 1 << 4  // moves bits: one of the result depends on one of each operand
};

// An instruction that computes every lane by itself. `name` spells dots as underscores.
struct emu_alu_row {
    const char *name;
    emu_alu_fn fn;
    uint8_t dst;    // enum emu_type
    uint8_t src[4]; // EMU_none: no such source
    uint8_t flags;
};

struct emu_cmp_row {
    const char *name; // "lt_s32"
    emu_cmp_fn fn;
    uint8_t type;
    bool flushes; // takes .ftz
};

// Each table ends with a row whose name is NULL.
extern const struct emu_alu_row emu_alu_int_rows[];
extern const struct emu_alu_row emu_alu_float_rows[];
extern const struct emu_alu_row emu_alu_half_rows[];
extern const struct emu_cmp_row emu_cmp_rows[];

struct emu_isa;

// The index over the tables; NULL when there is no memory.
struct emu_isa *emu_isa_create(const tir_allocator *allocator);
void emu_isa_destroy(struct emu_isa *isa, const tir_allocator *allocator);
const struct emu_alu_row *emu_isa_alu(const struct emu_isa *isa, tir_str name);
const struct emu_cmp_row *emu_isa_cmp(const struct emu_isa *isa, tir_str name);

#endif
