// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch that is prepared.
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include "emu/run/state.h"

// Runs the clusters that fall to it, in the default floating-point environment, and frees what
// that took. The outcome is in its trap's error and its findings.
tir_status emu_grid_run(struct emu_grid *l);

#endif
