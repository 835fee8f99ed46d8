// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NAME=VALUE, as a caller gives it: a meta, or the size of a dimension.
#ifndef TIR_BASE_BINDING_H
#define TIR_BASE_BINDING_H

#include "base/str.h"

struct tir_binding {
    tir_str name;
    tir_str value;
};

#endif
