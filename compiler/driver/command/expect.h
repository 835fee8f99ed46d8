// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics against what a source says it expects.
#ifndef TIR_DRIVER_COMMAND_EXPECT_H
#define TIR_DRIVER_COMMAND_EXPECT_H

#include "base/str.h"

// Compares rendered diagnostics (as text) with comments of the source:
//     // expect-error {{part of the message}}         on this line
//     // expect-warning@-2 {{E0101}}                  two lines above; the code is part, too
// Adds a line to *out for each missing and each unexpected one; true: none.
bool tir_expect_check(struct tir_arena *arena, tir_str name, tir_str source, tir_str diagnostics,
                      struct tir_text *out);

#endif
