// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What attributes may say (ir/attrs.def has their names): the verifier's rules for one alone.
#ifndef TIR_IR_ATTR_RULES_H
#define TIR_IR_ATTR_RULES_H

#include "ir/ir.h"

// Are its integers in the range that the attribute has wherever it stands?
bool tir_attr_allows_integers(const struct tir_attr *attr);
// That range, for messages; empty: it has none.
tir_str tir_attr_range(struct tir_arena *arena, enum tir_attr_key key);
// If it is a word, is it one of the attribute, and one that the operation knows?
bool tir_attr_allows_word(const struct tir_inst *inst, const struct tir_attr *attr);

#endif
