// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers with values loaded from local memory that was never written.
//
// Loading such bytes is legal: compilers load a vector and use a part of it, or load ahead of a
// branch. Depending on them is an error. So the registers are followed, lane by lane: values
// computed from one are undefined too, and a store to local memory makes the bytes undefined again.
// Any other use is reported: a branch or a guard, an address, a store that other threads can see,
// an instruction of several lanes. A register with one undefined byte is undefined as a whole.
//
// In shared and global memory the load itself is reported (mem.c).
//
// While a register of the warp is undefined, the operands of every instruction are tested.
#ifndef EMU_UNDEFINED_H
#define EMU_UNDEFINED_H

#include "emu/run/state.h"

// How many bytes the lanes of a frame's registers take here.
size_t emu_undefined_size(const struct emu_func *f);
// The running path is about to execute an instruction.
void emu_undefined_step(struct emu_warp *w, const struct emu_insn *in);
// The lanes have loaded undefined bytes into a register.
void emu_undefined_set(struct emu_warp *w, uint32_t ref, uint32_t lanes);
// The lanes of a register that are undefined.
uint32_t emu_undefined_lanes(const struct emu_warp *w, uint32_t ref);
// Ends the launch: a lane uses one.
_Noreturn void emu_undefined_fault(struct emu_warp *w, uint32_t lanes, const char *use);
// The frame is left.
void emu_undefined_drop(struct emu_warp *w, struct emu_frame *frame);

#endif
