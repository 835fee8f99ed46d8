// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the pass schedule claims about the order of a loop, so that it can be checked and shown.
//
// Times are predicted, in cycles of a model (machine/work.def). A few rounds of every warpgroup are
// listed, each operation of each of them as a run:
//
//     from      begin           start        end     ready     the warpgroup reaches it; operands
//     |---------|---------------|############|-------|         are there; the engine works; its
//               |---->| next    (of a product)                 result is there
//
// A warpgroup goes on at `next`: of a product once it is started, of others at the end.
#ifndef TIR_PASS_ROLE_CERTIFICATE_H
#define TIR_PASS_ROLE_CERTIFICATE_H

#include "base/vec.h"
#include "ir/ir.h"

enum { TIR_CERTIFICATE_ROUNDS = 8 };

enum tir_unit { // where an operation spends most of its time
    TIR_UNIT_NONE,
    TIR_UNIT_TENSOR, // tensor cores
    TIR_UNIT_ISSUE,  // the schedulers of warps
    TIR_UNIT_MUFU,   // special function units
    TIR_UNIT_COUNT
};
extern const char *const tir_unit_names[TIR_UNIT_COUNT];

enum tir_need {     // why one operation follows another, weakest first: ORDER need
    TIR_NEED_TURN,  // both take slots of one ring
    TIR_NEED_QUEUE, // both are products, which run in the order of their start
    TIR_NEED_SUM,   // a product adds to the other's result, in its registers
    TIR_NEED_VALUE, // it uses the other's result
    TIR_NEED_COUNT
};
extern const char *const tir_need_names[TIR_NEED_COUNT];

struct tir_claim_op { // in the order of the steady loop: its slot
    enum tir_op op;
    tir_str text; // "s = get(K_tile)"
    struct tir_span span;
    uint32_t source, stage; // its place in the source's round; rounds that it runs later
    bool is_product;
    int64_t cycles[TIR_UNIT_COUNT]; // of a unit, for one warpgroup
    int64_t words;                  // registers of a thread that its results take
};

struct tir_claim_need {
    uint32_t first, later; // slots
    uint32_t rounds;       // of the steady loop from first to later
    enum tir_need kind;
    int64_t slack; // cycles that first could be later, in the runs below
};

struct tir_needs {
    VEC(struct tir_claim_need) list;
};

struct tir_claim_ring {
    const struct tir_value *ring;
    tir_str name;
    int64_t slots, bytes; // of shared memory, of all slots
    int64_t held;         // cycles that a slot is read
    int64_t slack;        // cycles that are left to fill it again
};

struct tir_run {
    int64_t from, begin, start, end, next, ready;
};

struct tir_certificate {
    struct tir_span span;
    tir_str why;     // the search stopped, or was not begun: then there are no operations
    uint32_t groups; // warpgroups
    uint32_t stages;
    int64_t cycles, source_cycles; // of a round; in the order of the source
    int64_t replayed;              // of a round, played finer; nothing checks it
    int64_t words, registers;      // of a thread, that tiles take at most and that they may take
    int64_t shared;                // bytes that a CTA may have
    uint32_t fullest;              // the first slot where they take as many
    VEC(struct tir_claim_op) ops;
    struct tir_needs needs;
    VEC(struct tir_claim_ring) rings;
    struct tir_run *runs; // by round, warpgroup and slot
};

static inline struct tir_run *tir_certificate_run(const struct tir_certificate *c, uint32_t round,
                                                  uint32_t group, uint32_t slot)
{
    return &c->runs[(round * c->groups + group) * c->ops.len + slot];
}

// What the unit where the operation spends most of its time is.
enum tir_unit tir_claim_unit(const struct tir_claim_op *op);

// What the operations of a loop's body need of each other, by place in it; without queue and slack.
struct tir_needs tir_certificate_needs(const struct tir_inst *loop, struct tir_arena *arena);

// Does the loop hold what its certificate claims? NULL: yes; else what differs, a clause. It reads
// the scheduled loop, the certificate and the needs of the source, nothing of the search.
const char *tir_certificate_check(const struct tir_certificate *c, const struct tir_needs *source,
                                  const struct tir_inst *loop, struct tir_arena *scratch);

#endif
