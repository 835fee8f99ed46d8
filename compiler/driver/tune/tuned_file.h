// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of a table of measured configurations, as tirc tune keeps it up to date.
#ifndef TIR_DRIVER_TUNE_TUNED_FILE_H
#define TIR_DRIVER_TUNE_TUNED_FILE_H

#include "base/str.h"

// The table with this line for `key`, which is the line before " config(". It replaces the line
// with that key; else it follows the last line about the same device, target and kernel; else it is
// the last line. All other lines stay unchanged.
tir_str tir_tuned_file_put(struct tir_arena *arena, tir_str table, tir_str key, tir_str line);

#endif
