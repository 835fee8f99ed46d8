// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX as the statements of its module, and the part of it that one of its entries needs.
#ifndef TIR_RUNTIME_PTX_H
#define TIR_RUNTIME_PTX_H

#include <stdbool.h>

#include "tir/base.h"

struct tir_ptx_statement {
    tir_str text;    // with the blanks and comments before it
    tir_str entry;   // the name of the entry that it is; empty: it is none
    bool is_binding; // it may name entries: the module cannot be divided
};

// Takes the next statement off `rest`, which ends with a zero byte at rest->ptr[rest->len]. False:
// nothing is left.
bool tir_ptx_next(tir_str *rest, struct tir_ptx_statement *out);

// Writes the module without its other entries to `out`, which has room for ptx.len + 1 bytes, and a
// zero byte after it; it may be ptx.ptr. The text ends with a zero byte too, at ptx.ptr[ptx.len].
// `*size`: its bytes without that. False: the module does not have the entry, or cannot be divided,
// and `out` has no meaning.
bool tir_ptx_keep_entry(tir_str ptx, tir_str entry, char *out, size_t *size);

#endif
