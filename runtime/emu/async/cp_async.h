// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asynchronous copies of single threads.
#ifndef EMU_ASYNC_H
#define EMU_ASYNC_H

#include "emu/run/state.h"

// Lanes exit: their cp.async copies arrive.
void emu_copies_exit(struct emu_warp *w, uint32_t mask);

// The addresses an argument of an instruction's list gives: a register of 4 or 8 bytes and an
// offset.
void emu_arg_addresses(struct emu_warp *w, const struct emu_arg *arg, uint64_t *out);

#endif
