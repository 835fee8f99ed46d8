// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that the system provides to device code.
#ifndef EMU_BUILTIN_H
#define EMU_BUILTIN_H

#include "emu/run/run.h"
#include "emu/run/state.h"

// Runs a call of a function without a body for the lanes of `mask`. False: there is none of its
// name. Faults when the kernel uses it wrongly.
bool emu_builtin_call(struct emu_warp *w, const struct emu_func *f, const struct emu_insn *in,
                      uint32_t mask);

#endif
