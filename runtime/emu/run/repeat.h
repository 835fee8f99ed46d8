// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Warps that only repeat themselves: finds endless spins.
#ifndef EMU_REPEAT_H
#define EMU_REPEAT_H

#include "emu/run/state.h"

// Looks at every warp that can move.
void emu_repeat_look(struct emu_grid *l);
// Whether all that can move only repeat themselves, as the looks since something happened in the
// launch say. `late`: those that move when a time limit runs out count too.
bool emu_all_repeat(const struct emu_grid *l, bool late);

#endif
