// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions that are not operations of the table. Each is given the call, and the last column
// of its row; false: reported.
#ifndef TIR_FRONT_LOWER_BUILTIN_H
#define TIR_FRONT_LOWER_BUILTIN_H

#include "front/lower/lower.h"

typedef bool builtin_fn(struct lower *l, struct call *c, int which, val_list *out);

#define BUILTIN(name, fewest, most, named, handler, which) builtin_fn builtin_##handler;
#include "front/lower/builtin.def"

enum named_arg {
#define NAMED(name) NAMED_##name,
#include "front/lower/builtin.def"
    NAMED_COUNT
};

struct builtin {
    const char *name;
    uint32_t fewest, most; // arguments by position
    uint32_t named;        // bit for bit those that it takes by name
    builtin_fn *handler;
    int which;
};

enum {
#define BUILTIN(name, ...) BUILTIN_##name,
#include "front/lower/builtin.def"
    BUILTIN_COUNT
};
extern const struct builtin builtins[BUILTIN_COUNT];

const struct builtin *builtin_find(const char *name); // NULL: there is none

// The argument that a call gives by name. NULL: it does not.
const struct ast_expr *builtin_named(const struct call *c, enum named_arg name);

// An operation on values that are there, with one WORD or INT attribute; shared by the handlers.
struct tir_value *builtin_reduce_axis(struct lower *l, enum tir_op op, struct tir_value *x,
                                      uint32_t axis, enum tir_word kind);

// All elements of a tile, as a scalar.
struct tir_value *builtin_reduce_all(struct lower *l, struct tir_value *x, enum tir_word kind);

// size(layout, axis)
bool builtin_size_of_layout(struct lower *l, const struct call *c, const struct tir_layout *layout,
                            val_list *out);

// The axis that a call gives by name or as its argument `at`, from 0 on; of rank 1 it may be left
// out. False: reported.
bool builtin_axis_of(struct lower *l, const struct call *c, uint32_t at, const struct tir_type *t,
                     uint32_t *axis);

// gemm_async(acc, a, b, sa, sb, accumulate = c) where acc is in tensor memory
bool lower_gemm_tmem(struct lower *l, const struct call *c);

#endif
