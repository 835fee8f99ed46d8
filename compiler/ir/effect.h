// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What operations do to memory, through which proxy, and what says that they are done: effect.def.
// sync_check derives the same on its own, and a test holds the two against each other.
#ifndef TIR_IR_EFFECT_H
#define TIR_IR_EFFECT_H

#include "ir/ir.h"

enum tir_access { TIR_ACCESS_READ, TIR_ACCESS_WRITE, TIR_ACCESS_UPDATE, TIR_ACCESS_EXCHANGE };

enum tir_proxy { TIR_PROXY_GENERIC, TIR_PROXY_ASYNC };

enum tir_done {
#define DONE(id, ...) TIR_DONE_##id,
#define EFFECT(...)
#include "ir/effect.def"
    TIR_DONE_COUNT
};

struct tir_done_info {
    enum tir_word engine; // of its groups; TIR_WORD_NONE: it has none
    bool by_one;          // one thread starts, commits and waits for all that its role does
    bool reads;           // wait_group(read) waits for what is read
    int64_t groups;       // how many may be in flight at a wait for older ones
    bool by_ring;         // rings and the pipeline wait for it; else the barrier pass does
};
extern const struct tir_done_info tir_dones[TIR_DONE_COUNT];

enum tir_way {
    TIR_WAY_ONLY,
    TIR_WAY_BY_THREADS, // a copy that threads share, without an mbarrier
    TIR_WAY_BY_RING,    // a copy by an engine that fills a slot in a put
    TIR_WAY_BY_MBARRIER // a copy whose bytes complete at an mbarrier
};

struct tir_effect {
    enum tir_op op;
    enum tir_way way;
    uint8_t operand; // its position; TIR_SLICE
    enum tir_access access;
    enum tir_proxy proxy;
    enum tir_done done;
};
#define TIR_SLICE UINT8_MAX // the slice that the operation names

bool tir_has_effects(enum tir_op op); // is it in the table?
// The rows of effect.def for inst, in their order. Operands that are not in memory are left out.
#define tir_foreach_effect(e, inst)                                    \
    for (const struct tir_effect *e = tir_effect_after(inst, NULL); e; \
         e = tir_effect_after(inst, e))
const struct tir_effect *tir_effect_after(const struct tir_inst *inst,
                                          const struct tir_effect *before);
// The buffer or tensor of one of its effects. A slice may touch only a part of it.
struct tir_value *tir_effect_buffer(const struct tir_inst *inst, const struct tir_effect *effect);

// What says that all of inst is done. NOW too for what is not in the table.
enum tir_done tir_done_of(const struct tir_inst *inst);
// What a commit_group, wait_group or await closes or waits for.
enum tir_done tir_done_of_group(const struct tir_inst *group);
// Does the engine of tensor and bulk copies combine elements of this type with those in memory so?
// kind NONE: it replaces them (PTX ISA, "cp.reduce.async.bulk").
bool tir_engine_combines(enum tir_word kind, enum tir_elem elem);
// Is inst a commit_group or wait_group (op) for it? An await waits as wait_group does.
bool tir_is_group(const struct tir_inst *inst, enum tir_op op, enum tir_done done);

// Does the program itself close the group that the store_async joins? If not, one thread of those
// that come starts it (pass `barrier`).
bool tir_is_committed(const struct tir_inst *store);

// Builds commit_group (op) or a wait_group for all but `groups` of what `done` stands for.
struct tir_inst *tir_build_group(struct tir_builder *b, enum tir_op op, enum tir_done done,
                                 int64_t groups);

#endif
