// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The element types of artifacts as the compiler's: the bridge between the two tables.
#ifndef TIR_DRIVER_VALUE_ELEMENT_H
#define TIR_DRIVER_VALUE_ELEMENT_H

#include "tir/artifact.h"

#include "ir/type.h"

enum tir_elem tir_elem_of_element(tir_element element);

#endif
