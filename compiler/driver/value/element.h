// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The element types of artifacts as the compiler's and back: the bridge between the two tables.
#ifndef TIR_DRIVER_VALUE_ELEMENT_H
#define TIR_DRIVER_VALUE_ELEMENT_H

#include "tir/artifact.h"

#include "ir/type.h"

enum tir_elem tir_elem_of_element(tir_element element);
tir_element tir_element_of_elem(enum tir_elem elem); // not of TIR_NONE

#endif
