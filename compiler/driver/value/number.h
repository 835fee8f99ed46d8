// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers on the command line.
#ifndef TIR_DRIVER_VALUE_NUMBER_H
#define TIR_DRIVER_VALUE_NUMBER_H

#include "base/str.h"

// Decimal or 0x, with an optional sign; the whole of `text`. False: it is not, or does not fit.
bool tir_parse_int(tir_str text, int64_t *out);
// The same up to 2^64 - 1, kept as bits.
bool tir_parse_uint(tir_str text, uint64_t *out);
// As strtod reads it, inf and nan too; the whole of `text`. False: it is not, or does not fit.
bool tir_parse_float(tir_str text, double *out);

#endif
