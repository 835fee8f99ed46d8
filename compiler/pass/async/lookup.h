// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lookups: loads in a loop that addresses of its copies follow from.
#ifndef TIR_PASS_ASYNC_LOOKUP_H
#define TIR_PASS_ASYNC_LOOKUP_H

#include "ir/follow.h"
#include "pass/pass.h"

struct tir_lookups {
    struct tir_func *f;
    struct tir_arena *arena;
    struct tir_inst *loop; // a for
    struct tir_follow follow;
    VEC(struct tir_value *) found; // results of loads in the loop's block
};

void tir_lookups_init(struct tir_lookups *l, struct tir_func *f, struct tir_arena *arena,
                      struct tir_inst *loop);
// Adds the last loads that v follows from.
void tir_lookups_add(struct tir_lookups *l, struct tir_value *v);
// The same for what a load or copy takes: its address and its mask.
void tir_lookups_add_operands(struct tir_lookups *l, const struct tir_inst *access);
bool tir_is_lookup(const struct tir_lookups *l, const struct tir_value *v);

// Makes the loop carry what is found, from what the loop variable `first` looks up on; map gets the
// value that is carried for each lookup.
void tir_lookups_carry(struct tir_lookups *l, struct tir_value *first, struct tir_map *map);
// Each round takes what the round before it looked up, in front of `place` in the loop's block.
void tir_lookups_run_ahead(struct tir_lookups *l, struct tir_inst *place);
// Yields what `at` looks up, at b in the loop's block.
void tir_lookups_yield(struct tir_lookups *l, struct tir_builder *b, struct tir_value *at);

#endif
