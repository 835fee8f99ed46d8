// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter: what a kernel means, executed on the host. The reference of every check.
//
// Tile kernels run one tile of the grid after the other. Explicit kernels (grid and threads
// clauses) run one CTA after the other, all its threads in lockstep: a scalar is one number per
// thread and divergent branches and loops run under a mask. Where CTAs wait for each other
// (grid_sync), each runs up to the barrier before any runs on. Asynchronous copies complete at
// once, barriers only check that no thread is missing, layouts change nothing. So every form up to
// `synced` gives what its tile form gives. The machine operations of `lowered` are the emulator's
// business.
//
// Numbers are exact for integers (which wrap) and rounded to the element type after every operation
// for floats. Sums inside one `dot`, `reduce` or `scan` are kept in double and rounded once, at the
// end: the best answer a device can be asked for, not the one of a particular order of additions.
#ifndef TIR_INTERP_INTERP_H
#define TIR_INTERP_INTERP_H

#include "ir/ir.h"

struct tir_interp_arg {
    enum tir_elem elem;
    uint32_t rank; // 0: a scalar
    void *data;    // elements in their encoded form; of a scalar, the one. Not owned
    int64_t shape[TIR_MAX_RANK];
    int64_t strides[TIR_MAX_RANK]; // in elements
};

struct tir_interp_options {
    uint64_t step_limit;            // instructions executed before giving up, 1 more for every 64
                                    // elements of a result; 0: 2^32
    const tir_allocator *allocator; // NULL: the C library's
    // Receives each line that the kernel prints; NULL: it prints nothing.
    void (*print)(void *user, const char *text, size_t size);
    void *print_user;
    bool only_conditions; // do not run the body
};

// Runs `f` on the arguments, one per parameter in order; dimensions follow from the tensors'
// shapes. options may be NULL. On failure the tensors hold whatever was written so far.
//   TIR_ERR_INVALID      wrong arguments, a condition, `assume` or `assert` that does not hold,
//                        divergence at a barrier, `trap`, the step limit: the message says where
//   TIR_ERR_UNSUPPORTED  an operation without a sequential meaning here: inline PTX, lowered ones
//   TIR_ERR_NO_MEMORY
tir_status tir_interp_run(struct tir_func *f, const struct tir_interp_arg *args, uint32_t count,
                          const struct tir_interp_options *options, tir_error *error);

// Comparing an output with its reference. Element i agrees when
//     |got - want| <= rtol * max(|want|, rms)
// where rms is the root mean square of the finite reference values: an element near zero, left over
// when larger ones cancelled, is held to the accuracy of its neighbours. NaN agrees with NaN, and
// an infinity with the infinity of the same sign. Integers and bool agree when equal; rtol is
// ignored.
struct tir_interp_diff {
    double max_abs, max_rel; // over finite pairs; rel is relative to max(|want|, rms)
    double rms;              // of the reference
    double error;            // the root mean square of the errors of finite pairs
    int64_t mismatches;
    int64_t first;    // index of the first mismatch in row-major order, -1: none
    double got, want; // its values
};

// Both in the encoded form, row-major and dense. True when every element agrees.
bool tir_interp_compare(enum tir_elem elem, const void *got, const void *want, int64_t count,
                        double rtol, struct tir_interp_diff *diff);

// The default tolerance: two units in the last place of the type, but at most
// 0.5, and for f32 1e-4 and f64 1e-10, since sums in another order and the approximate functions of
// the hardware lose more than that; 0 for integers.
double tir_interp_tolerance(enum tir_elem elem);

// For each parameter of f the coarsest float type that inexact values, those of sums and
// approximate functions, have or are rounded to before they get into it; TIR_NONE: its values are
// exact. An element of an output may differ by the tolerance of that type, if it is more than its
// own: where a rounding goes the other way. That is rare, so the root mean square of all errors is
// held to the geometric mean of the two: of sums that are known to d, a share d / u is rounded the
// other way, by a unit u, which is sqrt(d u).
void tir_interp_rounding(struct tir_arena *arena, struct tir_func *f, enum tir_elem *rounded);

#endif
