// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of the model of time share: cost.c has tiles loops, cost_product.c products,
// cost_operand.c what brings their operands. Each appends to a formula.
#ifndef TIR_COMPILE_COST_MODEL_H
#define TIR_COMPILE_COST_MODEL_H

#include "compile/cost.h"
#include "ir/follow.h"

struct cost_model {
    struct tir_context *cx;
    const struct tir_request *request;
    const struct tir_func *f;
    struct tir_follow known; // at launch
    VEC(tir_formula_op) ops;
    bool is_lost;                  // something is no formula
    const struct tir_block *block; // whose rounds are in the cell ROUNDS
};

enum { TILES, WAVES, TURNS, ROUNDS, ASKEW, BUSY, READ }; // cells of the formula

// The numbers of the card that stands for the target.
const struct tir_cost *tir_cost_of(const struct cost_model *m);
bool tir_cost_has_tensor_memory(const struct cost_model *m);

void tir_cost_push(struct cost_model *m, tir_formula_code code, int64_t value);
void tir_cost_push_value(struct cost_model *m, const struct tir_value *v);
// Tiles beside each other in dimension d. Pushes nothing if that is not known at launch.
bool tir_cost_push_tiles_along(struct cost_model *m, const struct tir_inst *tiles, uint32_t d);
// Multiplies by the rounds of the loops around inst whose bounds are known at launch; others count
// once.
void tir_cost_push_rounds(struct cost_model *m, const struct tir_inst *inst);

// The cluster that the loop's CTAs lie in; NULL: none. In tensor memory it is a pair of CTAs.
const struct tir_attr *tir_cost_cluster_of(const struct cost_model *m,
                                           const struct tir_inst *tiles);
// CTAs of the loop that run on a multiprocessor at a time.
int64_t tir_cost_ctas_together(const struct cost_model *m, const struct tir_inst *tiles);

// Products.

// The warpgroups that share the rows of the product. Several have all registers of a
// multiprocessor.
int64_t tir_cost_warpgroups(const struct tir_inst *dot);
// Adds the time that a dot keeps tensor cores and copies busy, in all its rounds and waves.
void tir_cost_push_product(struct cost_model *m, const struct tir_inst *tiles,
                           const struct tir_inst *dot);

// Operands.

struct cost_source {             // what an operand is computed from, element by element
    int64_t bytes;               // loaded
    int64_t work;                // elements that operations make of it
    int64_t bits;                // of these elements
    const struct tir_inst *load; // of the most bytes, or NULL
    bool is_of_product;          // a sum is among it
    struct tir_arena *arena;
};

// An operand that is no load counts as one of its own size.
struct cost_source tir_cost_source_of(const struct cost_model *m, struct tir_value *operand);
// CTAs of a cluster that share the operand: those beside each other in dimensions of the loop that
// its slice does not begin at.
int64_t tir_cost_sharing(const struct tir_inst *tiles, const struct cost_source *from);
// Adds as many bytes of an operand, which `together` CTAs share, as take the time for which copies
// last longer where its rows do not begin at whole lines.
void tir_cost_push_askew(struct cost_model *m, const struct cost_source *from, int64_t together);
// Adds the time in which threads copy an operand whose rows are no multiples of 16 bytes.
void tir_cost_push_by_threads(struct cost_model *m, const struct cost_source *from);
// Adds the time that a round of all tiles takes for what lies past the end of an operand.
void tir_cost_push_past(struct cost_model *m, const struct tir_inst *tiles,
                        const struct cost_source *from, int64_t together);

#endif
