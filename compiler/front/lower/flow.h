// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by statements with blocks: values that pass into a block and out of it (flow.c).
#ifndef TIR_FRONT_LOWER_FLOW_H
#define TIR_FRONT_LOWER_FLOW_H

#include "front/lower/lower.h"

struct flow {
    const struct ast_stmt *s;
    symbol_list vars;              // assigned inside
    uint32_t carried;              // values the text names, before them
    const struct tir_type **types; // of all
    struct tir_value **values;     // initial values, later what a block yields
    uint32_t count;
};

struct region {
    struct tir_builder outer;
    struct symbol *scope;
    struct tir_value **saved; // what the variables were outside
};

// A bool variable of the compiler's own, true at first.
struct symbol *flow_flag(struct lower *l, const char *name);
// Variables whose declaration went wrong are not carried: they are poison everywhere.
void flow_drop_poison(struct flow *f);
// Makes room once vars and carried are known, with the variables' types and values.
void flow_room(struct lower *l, struct flow *f);
// The types and first values of what `carry (...)` names. False: reported.
bool flow_carry(struct lower *l, struct flow *f);
// After the instruction: its results are what the names and variables stand for.
void flow_results(struct lower *l, struct flow *f, struct tir_inst *inst);
// Declares the names of a statement that went wrong.
void flow_failed(struct lower *l, const struct ast_stmt *s);

// Goes on in block, in a scope of its own.
struct region region_enter(struct lower *l, struct flow *f, struct tir_block *block);
// Adds arguments for the carried values and variables, which stand for them inside.
void region_args(struct lower *l, struct flow *f, struct tir_block *block);
// Ends the block with the values in f->values (the named ones) and the variables, unless it has
// ended; then goes on outside.
void region_leave(struct lower *l, struct flow *f, struct region *r, bool yield);

#endif
