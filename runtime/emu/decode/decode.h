// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the decoders of instructions: suffixes, operands, constants.
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "emu/check/order.h"
#include "emu/decode/isa.h"
#include "emu/parse/parse.h"
#include "emu/run/run.h"

struct emu_dec {
    struct emu_loader *ld;
    const struct emu_ast *ast;
    struct emu_insn *in;
    uint32_t used; // suffixes that were understood, a bit each
    uint32_t at;   // the first operand that was not taken
};

typedef void (*emu_decode_fn)(struct emu_dec *d);

// The text of the instruction is wrong: names it and its line.
_Noreturn void emu_dec_bad(struct emu_dec *d, const char *format, ...) TIR_PRINTF(2, 3);

// Suffixes. Each call takes one that was not taken; the end checks that none is left.
bool emu_dec_mod(struct emu_dec *d, const char *name);
// The index in a NULL-terminated list of the one that is there, or -1.
int emu_dec_one_of(struct emu_dec *d, const char *const *names);
// The next suffix that is a type, from the left; EMU_none when there is no more.
enum emu_type emu_dec_type(struct emu_dec *d);
enum emu_round emu_dec_round(struct emu_dec *d);

// Operands, from the left. NULL when there is no more.
struct emu_operand *emu_dec_next(struct emu_dec *d);
// The next operand as a source of `bytes` bytes a lane (0: a predicate).
uint32_t emu_dec_src(struct emu_dec *d, enum emu_type type);
uint32_t emu_dec_operand(struct emu_dec *d, const struct emu_operand *o, enum emu_type type);
// As a destination; a sink gives EMU_NO_REF.
uint32_t emu_dec_dst(struct emu_dec *d, enum emu_type type);
uint32_t emu_dec_dst_operand(struct emu_dec *d, const struct emu_operand *o, enum emu_type type);
// A predicate source; *negate says whether it came with a `!`.
uint32_t emu_dec_pred(struct emu_dec *d, const struct emu_operand *o, bool *negate);
// `d` or `d|p`: the second is EMU_NO_REF where there is none.
void emu_dec_pair(struct emu_dec *d, enum emu_type first, uint32_t *second);
// An operand that must be an integer constant.
uint64_t emu_dec_constant(struct emu_dec *d);
// A memory operand: sets src[0], offset, type2; gives what else stood in the brackets.
const struct emu_operand *emu_dec_memory(struct emu_dec *d, enum emu_space space);
// The same into an argument, for an instruction with more than one address.
const struct emu_operand *emu_dec_address(struct emu_dec *d, enum emu_space space,
                                          struct emu_arg *out);
// Suffixes of memory order and scope, and what holds where they are missing.
void emu_dec_order(struct emu_dec *d, uint32_t order, enum emu_scope scope);
// The operands of an instruction's list.
void emu_dec_args_begin(struct emu_dec *d);
struct emu_arg *emu_dec_arg(struct emu_dec *d);

// Suffixes that must all be there; NULL ends the list.
void emu_dec_need(struct emu_dec *d, const char *const *names);
// The next operand as `count` registers, an argument each: `{a, b}`, or `a` for one.
void emu_dec_registers(struct emu_dec *d, uint32_t count, enum emu_type type, bool is_dst);

// A vector of constants; width in bytes, 0 for a predicate.
uint32_t emu_dec_pool(struct emu_loader *ld, uint64_t value, uint32_t width);
// The bytes a lane of a register of this type takes.
uint32_t emu_reg_width(enum emu_type type);

// The decoders of the table.
#define DECODER(opcode, name) void emu_decode_##name(struct emu_dec *d);
#include "emu/decode/opcodes.def"

#endif
