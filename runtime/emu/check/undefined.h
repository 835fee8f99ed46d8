// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers that hold what was loaded from local memory nobody has written.
//
// To load such bytes is no mistake: compilers load a vector and use a part of it, or load ahead of
// a branch. To depend on them is one. So the registers are followed, lane by lane: what is computed
// of one is undefined too, and a store to local memory makes the bytes undefined again. Everything
// else that reads one is reported: a branch or a guard, an address, a store that others can see, an
// instruction of more than one lane. A register is undefined as a whole where one byte of it is.
//
// Shared and global memory is not like that: there the load is reported (mem.c).
//
// Costs a look at the operands of every instruction while a register of the warp is undefined.
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
