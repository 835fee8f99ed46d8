// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The expected results of a kernel: the interpreter on the same inputs. Only here the driver uses
// the compiler's front end and interpreter instead of the public API.
#ifndef TIR_DRIVER_LAUNCH_REFERENCE_H
#define TIR_DRIVER_LAUNCH_REFERENCE_H

#include "driver/options.h"
#include "driver/value/scalar.h"
#include "driver/value/tensor.h"

struct tir_reference_arg {
    tir_str name;
    bool is_output;
    enum tir_elem elem;
    struct tir_tensor *tensor; // written to; NULL: a scalar
    uint64_t bits;             // of the scalar
};

struct tir_reference {
    const char *path;
    tir_str source;
    const char *kernel; // NULL: the only one of the file
    const char *arch;   // what the kernel is compiled for: SHARED_BYTES and TENSOR_COLUMNS are its,
    uint32_t max_shared; // but no more than the device has; 0: not limited
};

// What computes the outputs of `kernel` of a file: itself, or what --check-against says. Strings
// are kept in the arena.
bool tir_reference_find(struct tir_arena *arena, const struct tir_options *options,
                        const struct tir_reference *kernel, struct tir_reference *out,
                        tir_error *error);

// Interprets it on the arguments, which its parameters take by name; it must have each output.
// rounded: to what inexact values are rounded on the way to each (tir_interp_rounding), for
// tir_reference_compare. Only that, if only_rounding.
bool tir_reference_run(const struct tir_reference *reference, const struct tir_options *options,
                       const struct tir_reference_arg *args, uint32_t count, bool only_rounding,
                       enum tir_elem *rounded, tir_error *error);

struct tir_difference {
    double tolerance;
    enum tir_elem rounded;        // the type that it is of; that of the tensor, if it is stated
    double error, mean_tolerance; // of all errors, relative to the rms; held to it if it is not 0
    double max_abs, max_rel;      // over finite pairs
    int64_t mismatches;
    int64_t first[TIR_MAX_RANK]; // index of the first mismatch, where there is one
    struct tir_scalar got, want; // its values
};

// Compares two tensors of one shape; rtol < 0: the tolerance of the element type and of what
// inexact values are rounded to. False on failure to compare (*error), not on a mismatch.
bool tir_reference_compare(const struct tir_tensor *got, const struct tir_tensor *want, double rtol,
                           enum tir_elem rounded, struct tir_difference *out, tir_error *error);
bool tir_difference_is_wrong(const struct tir_difference *d);

#endif
