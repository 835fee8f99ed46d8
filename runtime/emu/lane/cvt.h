// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the two halves of cvt: single values (cvt.c) and packed ones (cvt_packed.c).
#ifndef EMU_CVT_H
#define EMU_CVT_H

#include "emu/decode/decode.h"

enum {                      // emu_insn.op
    CVT_INTEGRAL = 1 << 0,  // .rni and its relatives: round to an integer, keep the type's kind
    CVT_SATFINITE = 1 << 1, // .satfinite
    CVT_WIDTH_SHIFT = 4     // log2 of the source register's width
};

// A source register, which may be wider than the type.
uint32_t emu_cvt_source(struct emu_dec *d, const struct emu_operand *o, enum emu_type type,
                        uint32_t *width);
// The operands of a conversion to or from a packed type, and of cvt.pack; suffixes are taken.
void emu_cvt_packed(struct emu_dec *d, enum emu_type to, enum emu_type from);
void emu_cvt_pack_ints(struct emu_dec *d, enum emu_type to, enum emu_type from);

#endif
