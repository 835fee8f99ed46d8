// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of a table of measured configurations, as tirc tune keeps it up to date.
#ifndef TIR_DRIVER_TUNE_TUNED_FILE_H
#define TIR_DRIVER_TUNE_TUNED_FILE_H

#include "base/str.h"

// The table with a line for what `key` says, up to and without " config(": in the place of the one
// that was there, else behind the last one about the same device, target and kernel, else at the
// end. All other lines stay as they are.
tir_str tir_tuned_file_put(struct tir_arena *arena, tir_str table, tir_str key, tir_str line);

#endif
