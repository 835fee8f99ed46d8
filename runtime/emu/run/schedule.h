// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which warps and asynchronous operations run, by a policy and a seed.
#ifndef EMU_SCHEDULE_H
#define EMU_SCHEDULE_H

#include "emu/async/op.h"
#include "emu/run/state.h"

// An operation has been issued: says when it may move, or does it at once, and then it is gone.
void emu_schedule_issued(struct emu_op *op);
// Whether a wait that may suspend its thread gives up at once: now and then, where chance rules.
bool emu_schedule_gives_up(struct emu_grid *l);
// A warp starts.
void emu_schedule_warp(struct emu_warp *w);

#endif
