// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a PTX module that one of its entries needs.
#ifndef TIR_RUNTIME_PTX_H
#define TIR_RUNTIME_PTX_H

#include <stdbool.h>

#include "tir/base.h"

// Writes the module without its other entries to `out`, which has room for ptx.len + 1 bytes, and a
// zero byte after it. The text ends with a zero byte too, at ptx.ptr[ptx.len]. `*size`: its bytes
// without that. False: the module does not have the entry, or cannot be divided, and `out` has no
// meaning.
bool tir_ptx_keep_entry(tir_str ptx, tir_str entry, char *out, size_t *size);

#endif
