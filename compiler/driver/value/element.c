// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bridge is the spelling, which both tables share.
#include "driver/value/element.h"

enum tir_elem tir_elem_of_element(tir_element element)
{
    enum tir_elem elem = TIR_NONE;
    for (uint32_t i = TIR_NONE + 1; i < TIR_ELEM_COUNT; i++)
        if (!strcmp(tir_elems[i].name, tir_element_name(element)))
            elem = (enum tir_elem)i;
    return elem;
}
