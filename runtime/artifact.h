// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the artifact writer and reader.
#ifndef TIR_RUNTIME_ARTIFACT_H
#define TIR_RUNTIME_ARTIFACT_H

#include <stdbool.h>

#include "tir/artifact.h"

enum {
    TIR_MAP_ALIGN = 64,     // of the tensor maps in a parameter block
    TIR_WATCHDOG_BYTES = 24 // at its end, of a variant with a watchdog
};

// <0, 0, >0: the sizes of the choice come before `dims`, are the same, come after them.
int tir_choice_compare(const tir_artifact_choice *choice, const int64_t *dims);

// Checks every rule of tir/artifact.h. Pointers and counts must already be consistent, and counts
// within their limits. `has_ptx`: there is some, whether `desc` has its text or not.
tir_status tir_artifact_check(const tir_artifact_desc *desc, bool has_ptx, tir_error *error);

// As tir_artifact_decode, but `ptx` and `receipt` are empty: they are read when they are needed,
// and damage to them is found then.
tir_status tir_artifact_open(const void *bytes, size_t size, const tir_allocator *allocator,
                             const tir_artifact_desc **out, tir_error *error);

// The functions below take what tir_artifact_open gave.
bool tir_artifact_has_ptx(const tir_artifact_desc *desc);

// What an entry needs of the PTX, with other entries, or all of it (NULL): out->len bytes and a
// zero byte from `allocator`. out->ptr NULL: nothing, or the PTX is not divided such that there is
// a part for the entry.
tir_status tir_artifact_read_ptx(const tir_artifact_desc *desc, const tir_str *entry,
                                 const tir_allocator *allocator, tir_str *out, tir_error *error);

// Fills in desc->receipt, unless it is there; one thread at a time. On an error it is as it was.
tir_status tir_artifact_read_receipt(const tir_artifact_desc *desc, tir_error *error);

#endif
