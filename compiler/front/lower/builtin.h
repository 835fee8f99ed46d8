// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions that are not operations of the table. Each is given the call, and the last column
// of its row; false: reported.
#ifndef TIR_FRONT_LOWER_BUILTIN_H
#define TIR_FRONT_LOWER_BUILTIN_H

#include "front/lower/lower.h"

typedef bool builtin_fn(struct lower *l, struct call *c, int which, val_list *out);

#define BUILTIN(name, least, most, handler, which) builtin_fn builtin_##handler;
#include "front/lower/builtin.def"

extern const char *const builtin_names[]; // ends in NULL

// An operation on values that are there, with one WORD or INT attribute; shared by the handlers.
struct tir_value *builtin_reduce_axis(struct lower *l, enum tir_op op, struct tir_value *x,
                                      uint32_t axis, enum tir_word kind);

// The axis that e says, from 0 on. False: reported.
bool builtin_axis(struct lower *l, const struct ast_expr *e, const struct tir_type *t,
                  uint32_t *out);

#endif
