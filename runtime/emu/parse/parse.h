// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parsed form of a PTX module. It lives while the module is loaded; decoding turns its
// instructions into the program that runs (program.h).
#ifndef EMU_PARSE_H
#define EMU_PARSE_H

#include "emu/base.h"
#include "emu/decode/program.h"
#include "emu/parse/lex.h"

enum emu_symbol_kind {
    EMU_SYM_REG,    // one register
    EMU_SYM_RANGE,  // `%r<n>`
    EMU_SYM_VAR,    // a variable or a parameter in memory
    EMU_SYM_FUNC,   // an entry or a device function
    EMU_SYM_PROTO,  // a call prototype: only its name matters
    EMU_SYM_TARGETS // a list of branch targets
};

struct emu_symbol {
    enum emu_symbol_kind kind;
    struct emu_name *name;
    struct emu_symbol *next;    // of the same name, further out
    struct emu_symbol *sibling; // of the same scope
    enum emu_type type;
    uint32_t line;

    uint32_t *refs; // of registers: where each lives; EMU_NO_REF until it is named
    uint32_t count; // of a range or a vector; 0 for a single register
    bool is_vector; // of a `.v2` or `.v4`, whose parts are named .x .y .z .w

    enum emu_space space; // EMU_SYM_VAR
    uint64_t address;     // global, const: address; local, param: offset; shared: index
    uint64_t size, align;
    bool is_extern; // declared, without memory of its own

    struct emu_func *func;       // EMU_SYM_FUNC
    struct emu_operand *targets; // EMU_SYM_TARGETS
};

// An interned identifier.
struct emu_name {
    tir_str text;
    struct emu_name *next;      // in the hash bucket
    struct emu_symbol *symbols; // in scope now, innermost first
    struct emu_symbol *ranges;  // the same: `a<2>` declares a0 and a1, and leaves `a` free
};

struct emu_label {
    struct emu_label *next; // in the hash bucket
    const struct emu_name *name;
    uint32_t scope;
    uint32_t pc; // from the function's start
};

enum emu_operand_kind {
    EMU_OPD_REG,
    EMU_OPD_INT,     // bits
    EMU_OPD_F32,     // bits of a float
    EMU_OPD_F64,     // bits of a double
    EMU_OPD_SREG,    // ref: enum emu_sreg
    EMU_OPD_ADDRESS, // symbol + bits
    EMU_OPD_NAME,    // an identifier that is no symbol yet: a label
    EMU_OPD_MEM,     // [list[0] + bits, list[1] ...]
    EMU_OPD_VEC,     // {list}
    EMU_OPD_LIST,    // (list)
    EMU_OPD_PAIR,    // list[0] | list[1]
    EMU_OPD_SINK     // _
};

struct emu_operand {
    enum emu_operand_kind kind;
    bool negate;      // !p
    bool minus;       // -%r, of a video instruction
    tir_str selector; // %r.b1, of a video instruction; empty: none
    enum emu_type type;
    uint32_t ref;
    uint64_t bits;
    struct emu_symbol *symbol;
    struct emu_name *name;
    struct emu_operand *list;
    uint32_t count;
};

enum { EMU_MAX_MODS = 16, EMU_MAX_OPERANDS = 16 };

struct emu_ast {
    uint32_t line;  // of the PTX
    uint32_t loc;   // index into the module's locations
    uint32_t scope; // for labels
    struct emu_operand *guard;
    tir_str opcode;             // "ld"
    tir_str mods[EMU_MAX_MODS]; // "global" "v4" "f32"
    uint8_t mod_count;
    uint8_t operand_count;
    uint32_t used_bytes; // of a load, as a pragma before it says; 0: all
    struct emu_operand *operands;
};

typedef EMU_VEC(struct emu_ast) emu_ast_vec;

enum { EMU_NAME_BUCKETS = 4096 };

struct emu_loader {
    struct emu *emu;
    struct emu_module *module;
    struct emu_trap trap;
    struct emu_arena scratch; // everything in this header
    struct emu_arena *keep;   // the module's
    struct emu_isa *isa;

    struct emu_lexer lexer;
    struct emu_token token; // the one to look at
    struct emu_name *buckets[EMU_NAME_BUCKETS];
    EMU_VEC(uint32_t) scope_parent;             // by scope id; 0 is the module's
    EMU_VEC(struct emu_symbol *) scope_symbols; // by depth: the symbols to drop when it closes
    EMU_VEC(uint32_t) scope_stack;
    uint32_t scope;
    struct emu_label *labels[EMU_NAME_BUCKETS]; // of the function being parsed
    uint32_t label_count;
    uint64_t registers; // declared so far
    uint64_t variables; // bytes of them
    struct emu_func *func;
    emu_ast_vec code; // of the function
    uint32_t loc;
    uint32_t used_bytes;                              // of the next load; 0: all
    uint32_t depth;                                   // of nested operands
    struct emu_constant *constants[EMU_NAME_BUCKETS]; // vectors in the pool, by value
};

_Noreturn void emu_syntax(struct emu_loader *ld, uint32_t line, const char *format, ...)
    TIR_PRINTF(3, 4);

// Parses the module's text and decodes each function when its body ends. Raises what is wrong.
void emu_parse(struct emu_loader *ld);

// Statements: one instruction, from its first token to its semicolon.
void emu_parse_insn(struct emu_loader *ld, struct emu_operand *guard);
struct emu_operand emu_parse_operand(struct emu_loader *ld);
// An integer constant expression; symbols are not allowed in it.
uint64_t emu_parse_constant(struct emu_loader *ld);

// Tokens.
void emu_next(struct emu_loader *ld);
bool emu_at(const struct emu_loader *ld, char punct);
bool emu_accept(struct emu_loader *ld, char punct);
void emu_expect(struct emu_loader *ld, char punct);
bool emu_at_dot(const struct emu_loader *ld, const char *name);
bool emu_accept_dot(struct emu_loader *ld, const char *name);
struct emu_name *emu_expect_word(struct emu_loader *ld);
uint64_t emu_expect_int(struct emu_loader *ld);
void emu_skip_parens(struct emu_loader *ld); // up to the matching `)`, which is included

// Declarations (variable.c).
// The part of a declaration before the name of a variable.
struct emu_decl {
    enum emu_space space;
    bool is_reg, is_param;
    enum emu_type type;
    uint64_t align;
    uint32_t vector;
};
struct emu_decl emu_parse_decl(struct emu_loader *ld, enum emu_space space, bool is_reg,
                               bool is_param);
uint64_t emu_parse_dims(struct emu_loader *ld); // `[n][m]` after a name: elements, 0 for `[]`
void emu_declare_registers(struct emu_loader *ld, const struct emu_decl *d);
// One statement: all that is declared by it.
void emu_parse_variables(struct emu_loader *ld, enum emu_space space, bool is_extern);

// Names and scopes.
struct emu_name *emu_intern(struct emu_loader *ld, tir_str text);
struct emu_symbol *emu_declare(struct emu_loader *ld, struct emu_name *name,
                               enum emu_symbol_kind kind);
void emu_scope_open(struct emu_loader *ld);
void emu_scope_close(struct emu_loader *ld);
void emu_label(struct emu_loader *ld, const struct emu_name *name);
void emu_labels_drop(struct emu_loader *ld); // at the end of a function
// The pc of a label seen from a scope, or EMU_NO_REF.
uint32_t emu_label_find(const struct emu_loader *ld, const struct emu_name *name, uint32_t scope);
// The register an identifier names, or false.
bool emu_find_register(struct emu_loader *ld, tir_str text, struct emu_operand *out);
// The parts of a vector register.
bool emu_find_vector(struct emu_loader *ld, tir_str text, struct emu_operand *out);

// Space for a variable in the function's per-thread memory; gives its offset.
uint32_t emu_func_local(struct emu_loader *ld, uint64_t size, uint64_t align);
// Space for a register of a type.
uint32_t emu_func_register(struct emu_loader *ld, enum emu_type type);

// decode.c: turns ld->code into the function's program.
void emu_decode(struct emu_loader *ld);

#endif
