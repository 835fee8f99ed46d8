// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers with values loaded from local memory that was never written.
//
// Loading such bytes is legal: compilers load a vector and use a part of it, or load ahead of a
// branch. Depending on them is an error. So the registers are followed, lane by lane: values
// computed from one are undefined too, and a store to local memory makes the bytes undefined again.
// A shuffle hands the undefined bits of a lane to those that read it. Any other use is reported: a
// branch or a guard, an address, a store that other threads can see, an instruction of several
// lanes.
//
// Of each lane the undefined bits are known, so that a byte can be taken from a word, and so that
// bit fields can be set one after another. Instructions that move bits are executed again with
// these bits inverted: what differs then is undefined. Any other one's result is so as a whole.
//
// In shared and global memory the load itself is reported (mem.c), but for bytes that the compiler
// says to be unused: these are followed, too.
//
// While a register of the warp is undefined, the operands of every instruction are tested.
#ifndef EMU_UNDEFINED_H
#define EMU_UNDEFINED_H

#include "emu/run/state.h"

// How many bytes the lanes of a frame's registers take here.
size_t emu_undefined_size(const struct emu_func *f);
// The running path is about to execute an instruction.
void emu_undefined_step(struct emu_warp *w, const struct emu_insn *in);
// The lanes have loaded undefined bits into a register.
void emu_undefined_set(struct emu_warp *w, uint32_t ref, const uint64_t *bits, uint32_t lanes);
// Each lane of the mask has in `to`, since a shuffle, what lane from[i] had in `of`.
void emu_undefined_shuffled(struct emu_warp *w, uint32_t to, uint32_t of, const uint32_t *from,
                            uint32_t mask);
// Those of one lane, which are its first 64.
uint64_t emu_undefined_bits(const struct emu_warp *w, uint32_t ref, uint32_t lane);
// The lanes of a register that are undefined.
uint32_t emu_undefined_lanes(const struct emu_warp *w, uint32_t ref);
// What a frame that will not be used again has allocated.
void emu_undefined_free(struct emu_grid *l, struct emu_frame *frame);
// Ends the launch: a lane uses one.
_Noreturn void emu_undefined_fault(struct emu_warp *w, uint32_t lanes, const char *use);
// The marks of a byte of local memory: its undefined bits, EMU_SET for none, EMU_UNSET for all.
static inline uint8_t emu_unset_mark(uint8_t bits)
{
    return bits == 0 ? EMU_SET : bits == 0xff ? EMU_UNSET : bits == 1 ? 0xff : bits;
}
static inline uint8_t emu_unset_bits(uint8_t mark)
{
    return mark == EMU_SET ? 0 : mark == EMU_UNSET ? 0xff : mark == 0xff ? 1 : mark;
}
// The frame is left.
void emu_undefined_drop(struct emu_warp *w, struct emu_frame *frame);

#endif
