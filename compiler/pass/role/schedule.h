// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of the pass schedule: a loop's operations, an order of them, and what it costs.
#ifndef TIR_PASS_ROLE_SCHEDULE_H
#define TIR_PASS_ROLE_SCHEDULE_H

#include "base/vec.h"
#include "pass/pass.h"
#include "pass/role/certificate.h"

enum { SCHEDULE_PRODUCTS = 6 }; // most in a loop's body

// An instruction of the loop's body; what is inside of a get belongs to it.
struct schedule_op {
    struct tir_inst *inst;
    bool is_product;             // starts products on warpgroups
    int64_t tensor, issue, mufu; // cycles of the engines, for one warpgroup
    int64_t busy;                // cycles of a scheduler with all its units, in the replay
    bool is_seldom;              // split takes it out of all rounds but a few
    int64_t words;               // registers of a thread that its results take
    bool is_kept;                // it adds to its result of the round before, in the same registers
};

// `later` must come after `first`: in the same round, or in the next one (distance 1).
struct schedule_edge {
    uint32_t first, later, distance;
    enum tir_need kind;
};

struct schedule {
    struct tir_func *f;
    struct tir_arena *scratch;
    const struct tir_cost *cost;
    struct tir_inst *loop;
    VEC(struct schedule_op) ops;
    VEC(struct schedule_edge) edges;
    uint32_t products[SCHEDULE_PRODUCTS], product_count; // ops, in the order of the source
    uint32_t groups;                                     // warpgroups that run the loop
    int64_t registers;                                   // of a thread, for tiles
    int64_t all_registers;                               // of a thread, for anything
};

// Operations in the order they stand in the steady loop. Those of stage 1 are of the round before.
struct schedule_order {
    uint32_t *at;    // ops
    uint8_t *stage;  // by op
    int64_t cycles;  // of a round, predicted
    int64_t words;   // registers of a thread that tiles take
    int64_t held;    // those of them that are taken while a product starts, the most
    int64_t beside;  // registers that must be left beside these
    bool is_rotated; // some op is of stage 1
};

// schedule_model.c: the operations and edges of s->loop. False: it has no product.
bool tir_schedule_model(struct schedule *s);
// What keeps the loop in the order of its source; NULL: nothing does.
const char *tir_schedule_refusal(const struct schedule *s);
// The ring that a get takes a slot of, or NULL.
const struct tir_value *tir_schedule_ring(const struct tir_inst *inst);
// Does each product take a tile in registers that is computed from no product?
bool tir_schedule_computes_operands(const struct schedule *s);

// schedule_search.c: the best order, or that of the source; why the search stopped there.
struct schedule_order tir_schedule_search(struct schedule *s, struct tir_pass_cx *cx,
                                          const struct schedule_order *source, const char **why);
struct schedule_order tir_schedule_new_order(const struct schedule *s);
struct schedule_order tir_schedule_of_source(const struct schedule *s);
// Do the registers suffice?
bool tir_schedule_fits(const struct schedule *s, const struct schedule_order *order);

// The cycles of a round and the registers of the order.
void tir_schedule_time(const struct schedule *s, struct schedule_order *order);
// The cycles of a round of a chosen order, played finer than orders are compared by.
int64_t tir_schedule_replay(const struct schedule *s, const struct schedule_order *order);
// The rounds that were counted; operations by slot.
struct tir_run *tir_schedule_runs(const struct schedule *s, const struct schedule_order *order,
                                  struct tir_arena *arena);
// The first slot where tiles take the registers that the order says.
uint32_t tir_schedule_fullest(const struct schedule *s, const struct schedule_order *order);
// Warpgroups that are played.
uint32_t tir_schedule_groups(const struct schedule *s);

// Makes the loop run in this order, with the rest of a round in front of and after it if it is
// rotated. Gives the loop as it is then.
struct tir_inst *tir_schedule_build(const struct schedule *s, const struct schedule_order *order);

// What the order claims, in the memory of the arena. It must be called before the loop is built.
struct tir_certificate tir_schedule_certify(const struct schedule *s,
                                            const struct schedule_order *order,
                                            struct tir_arena *arena);

#endif
