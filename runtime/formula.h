// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checking formulas before they are trusted, and what they take of tensors.
#ifndef TIR_RUNTIME_FORMULA_H
#define TIR_RUNTIME_FORMULA_H

#include "tir/artifact.h"

// Whether a scalar of this type may be pushed by a formula.
static inline int tir_element_is_integer(tir_element element)
{
    return element <= TIR_ELEMENT_U64 || element == TIR_ELEMENT_BOOL;
}

// What ALIGN and BEGIN push of TIR_ALIGNMENTS.
static inline int64_t tir_align_of(int64_t alignments)
{
    return alignments & 255;
}

static inline int64_t tir_begin_of(int64_t alignments)
{
    return alignments >> 8;
}

// Checks codes, indices and the stack of a formula that belongs to `kernel`, whose params must
// be readable. NULL where it is right, else what is wrong with it.
const char *tir_formula_check(const tir_formula *formula, const tir_artifact_kernel *kernel);

#endif
