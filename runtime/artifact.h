// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the artifact writer and reader.
#ifndef TIR_RUNTIME_ARTIFACT_H
#define TIR_RUNTIME_ARTIFACT_H

#include "tir/artifact.h"

enum {
    TIR_MAP_ALIGN = 64,     // of the tensor maps in a parameter block
    TIR_WATCHDOG_BYTES = 24 // at its end, of a variant with a watchdog
};

// <0, 0, >0: the sizes of the choice come before `dims`, are the same, come after them.
int tir_choice_compare(const tir_artifact_choice *choice, const int64_t *dims);

// Checks every rule of tir/artifact.h. Pointers and counts must already be consistent, and counts
// within their limits.
tir_status tir_artifact_check(const tir_artifact_desc *desc, tir_error *error);

#endif
