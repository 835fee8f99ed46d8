// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checking formulas before they are trusted.
#ifndef TIR_RUNTIME_FORMULA_H
#define TIR_RUNTIME_FORMULA_H

#include "tir/artifact.h"

// Whether a scalar of this type may be pushed by a formula.
static inline int tir_element_is_integer(tir_element element)
{
    return element <= TIR_ELEMENT_U64 || element == TIR_ELEMENT_BOOL;
}

// Checks codes, indices and the stack of a formula that belongs to `kernel`, whose params must
// be readable. NULL where it is right, else what is wrong with it.
const char *tir_formula_check(const tir_formula *formula, const tir_artifact_kernel *kernel);

#endif
