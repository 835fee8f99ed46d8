// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inside lower_tile: what reductions and scans share (combine.c).
#ifndef TIR_PASS_LOWER_COMBINE_H
#define TIR_PASS_LOWER_COMBINE_H

#include "pass/lower/lower.h"

// What is combined at a time: a value of each tile.
struct tuple {
    struct tir_value *of[TIR_MAX_COMBINED];
};

// A reduction or scan being lowered.
struct combine {
    struct lower *lo;
    struct tir_inst *inst;
    enum tir_word kind;
    uint32_t count; // tiles
    enum tir_elem elem[TIR_MAX_COMBINED];
    const struct tir_type *work[TIR_MAX_COMBINED]; // the types values are combined in
    const struct tir_layout *layout;
    uint32_t axis;
};

struct combine tir_combine_open(struct lower *lo, struct tir_inst *inst);
struct tuple *tir_combine_tuples(struct combine *c, uint32_t count); // all NULL
// What register reg of the tiles holds, to combine.
struct tuple tir_combine_register(struct combine *c, uint32_t reg);
// Register i of the results is out[i].
void tir_combine_set_results(struct combine *c, const struct tuple *out);
// Combines x with y, which follows it along the axis.
struct tuple tir_combine_apply(struct combine *c, struct tuple x, struct tuple y);
struct tuple tir_combine_choose(struct combine *c, struct tir_value *cond, struct tuple x,
                                struct tuple y);
// Neighbours first, in their order. values are overwritten.
struct tuple tir_combine_tree(struct combine *c, struct tuple *values, uint32_t count);
// x of another lane.
struct tuple tir_combine_shuffle(struct combine *c, struct tuple x, enum tir_word mode,
                                 struct tir_value *lane);
// One number of the digits that iterators begin .. end of the layout take of this lane or warp, the
// outermost most significant; count: how many there are.
struct tir_value *tir_combine_part(struct combine *c, enum tir_axis axis, uint32_t begin,
                                   uint32_t end, uint32_t *count);
struct tir_value *tir_combine_is_zero(struct lower *lo, struct tir_value *x);

// A line: elements that differ only along the axis. In shared scratch each has one entry a part.
struct combine_lines {
    struct tir_value *thread; // the thread's part of a line's number
    int64_t stride[TIR_MAX_RANK];
    int64_t count;
};
struct combine_lines tir_combine_lines(struct combine *c);
// The register's part of a line's number; l: a layout with the lines of the operand.
int64_t tir_combine_line(const struct combine *c, const struct combine_lines *lines,
                         const struct tir_layout *l, uint32_t reg);
// Entry (part + part_constant) of a line.
struct lower_place tir_combine_entry(struct combine *c, const struct combine_lines *lines,
                                     struct tir_value *part, int64_t part_constant, int64_t line);
void tir_combine_write(struct combine *c, struct lower_place p, struct tuple x,
                       struct tir_value *pred);
struct tuple tir_combine_read(struct combine *c, struct lower_place p);

// Reductions in the order of the axis, for functions that do not commute (scan.c).
void tir_lower_ordered_reduce(struct combine *c);

#endif
