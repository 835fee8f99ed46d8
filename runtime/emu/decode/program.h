// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program a module becomes: decoded instructions, their operands, functions and variables.
//
// A value of a warp is a vector: 32 lanes of 2, 4, 8 or 16 bytes next to each other, or one 32-bit
// mask for a predicate. An operand is a reference to such a vector: two bits say in which block of
// memory it lies (the frame's registers, the module's constants, the warp's special registers) and
// the rest is its byte offset there. Constants are spread over 32 lanes once, at load, so no
// instruction asks what kind of operand it has.
#ifndef EMU_PROGRAM_H
#define EMU_PROGRAM_H

#include "emu/base.h"
#include "emu/emu.h"

enum emu_space {
    EMU_GENERIC,
    EMU_GLOBAL,
    EMU_CONST,
    EMU_SHARED,
    EMU_LOCAL,
    EMU_PARAM,         // of the launch
    EMU_SHARED_CLUSTER // shared memory of any CTA of the cluster
};

enum emu_sreg {
#define SREG(name, spelling, type) EMU_SREG_##name,
#include "emu/run/sregs.def"
    EMU_SREG_COUNT
};

enum emu_base { EMU_BASE_REG, EMU_BASE_POOL, EMU_BASE_SREG, EMU_BASE_COUNT };

enum { EMU_REF_SHIFT = 30 };
enum { EMU_REG_SLOT = 64 }; // bytes; every register of a frame takes a multiple of it

static inline uint32_t emu_ref(enum emu_base base, uint32_t offset)
{
    return (uint32_t)base << EMU_REF_SHIFT | offset;
}

struct emu_warp;
struct emu_insn;

// Executes one instruction for the lanes in `mask`, which is never empty.
typedef void (*emu_run_fn)(struct emu_warp *w, const struct emu_insn *in, uint32_t mask);
// Computes all 32 lanes of a result from all 32 lanes of its sources.
typedef void (*emu_alu_fn)(void *restrict d, const void *const *s);
// Compares all lanes: bit i is lane i.
typedef uint32_t (*emu_cmp_fn)(const void *a, const void *b);
// New value of a memory cell, for atomics. Values are the low bits of 64.
typedef uint64_t (*emu_atom_fn)(uint64_t old, uint64_t b, uint64_t c);

enum {
    EMU_INSN_SYNC = 1 << 0, // waits for other lanes: the path is split by the guard first
    EMU_INSN_GUARD_NOT = 1 << 1,
    EMU_INSN_FTZ = 1 << 2,  // flush subnormal inputs and results to zero
    EMU_INSN_SAT = 1 << 3,  // clamp to [0, 1]
    EMU_INSN_RELU = 1 << 4, // clamp negative results to zero
    EMU_INSN_POLL = 1 << 5, // a load that other agents' writes are looked for with
    EMU_INSN_BITS = 1 << 6, // moves bits, EMU_ROW_M
    EMU_INSN_FIX = EMU_INSN_FTZ | EMU_INSN_SAT | EMU_INSN_RELU
};

enum emu_round { EMU_RN, EMU_RZ, EMU_RM, EMU_RP, EMU_RNA, EMU_RS };

struct emu_insn {
    emu_run_fn run;
    union {
        emu_alu_fn alu;
        emu_cmp_fn cmp;
        emu_atom_fn atom;
    };
    uint32_t guard; // reference of a predicate, or EMU_NO_REF
    uint32_t dst;
    uint32_t src[4];
    int64_t offset;  // memory: added to the address
    uint32_t list;   // memory, mma, call: where its operands start in the module's list
    uint32_t target; // branch: pc; brx: how many; call: function index; load: used bytes or 0
    uint16_t flags;
    uint8_t count; // operands in the list
    uint8_t op;    // what the class of instruction distinguishes
    uint8_t type;  // enum emu_type
    uint8_t type2;
    uint8_t size;  // bytes of a memory element
    uint8_t width; // bytes of a register element
    uint8_t space; // enum emu_space
    uint8_t round;
    uint8_t order; // memory, fences: EMU_STRONG, EMU_ACQUIRE, EMU_RELEASE
    uint8_t scope; // enum emu_scope
    uint16_t cost; // cycles, for the timeline
    uint32_t line;
    uint32_t loc;
    uint32_t touches; // where its registers start in the module's list; they end at the next one's
};

// A register that an instruction names.
struct emu_touch {
    uint32_t ref;
    uint8_t width; // bytes of a lane; 0: a predicate
    bool is_write;
};

// An operand of an instruction's list: a vector and how wide its elements are.
struct emu_arg {
    uint32_t ref;
    uint32_t width;        // bytes; 0: a predicate
    uint32_t offset, size; // of a variable in the frame's memory, when ref is EMU_NO_REF
};

struct emu_loc {
    uint32_t file, line;
};

struct emu_file {
    uint32_t id;
    const char *name;
};

struct emu_shared_var {
    uint64_t size, align;
    bool is_dynamic;  // starts where the static variables end
    bool is_used;     // by the kernel being launched
    bool is_reserved; // the system's: all zeros when a CTA starts
    uint32_t offset;  // in it
};

// A constant vector holding the address of a shared variable, filled in at launch.
struct emu_fixup {
    uint32_t pool; // offset in the pool
    uint32_t width;
    uint32_t shared; // index of the variable
    uint64_t addend;
};

struct emu_param {
    uint32_t offset, size; // in the launch's block (entries) or the frame's memory (functions)
    uint32_t ref;          // a register parameter of a function; else EMU_NO_REF
    uint32_t width;
};

// A function names a shared variable, or calls a function (EMU_NO_REF: one it has a pointer to).
struct emu_use {
    uint32_t index;
    bool is_call;
};

struct emu_func {
    const char *name;
    uint32_t index;
    bool is_entry, is_defined;
    uint32_t entry, end; // pc
    uint32_t reg_bytes, local_bytes;
    uint32_t params_size;
    struct emu_param *params, *rets;
    uint32_t param_count, ret_count;
    uint32_t max_threads;
    uint32_t block[3];            // from .reqntid; 0: not stated
    uint32_t cluster[3];          // from .reqnctapercluster; 0: not stated
    uint32_t uses_at, uses_count; // in the module's list
    uint32_t stack_at;            // 1 + where alloca's area is in local memory; 0: none

    // While the shared memory of a kernel is laid out: functions it reaches.
    bool is_reached;
    struct emu_func *next_reached;
};

struct emu_module {
    struct emu_module *next; // of the device
    struct emu *emu;
    struct emu_arena arena;
    EMU_VEC(struct emu_insn) code;
    EMU_VEC(struct emu_arg) args;
    EMU_VEC(struct emu_touch) touches;
    EMU_VEC(uint32_t) targets; // brx.idx and call
    EMU_VEC(struct emu_func *) funcs;
    EMU_VEC(struct emu_shared_var) shared;
    EMU_VEC(struct emu_use) uses; // each function's next to each other
    EMU_VEC(struct emu_fixup) fixups;
    EMU_VEC(struct emu_loc) locs;
    EMU_VEC(struct emu_file) files;
    EMU_VEC(uint64_t) objects;            // device memory of its variables
    uint8_t *pool;                        // the constants
    bool fences_tensors, commits_tensors; // it has a tcgen05.fence somewhere; a commit
    uint32_t pool_len, pool_cap;
};

// Code that waits for products of the tensor core and has no tcgen05.fence at all: its compiler
// leaves such order to ptxas, as Triton does.
static inline bool emu_leaves_order(const struct emu_module *m)
{
    return m->commits_tensors && !m->fences_tensors;
}

#endif
