// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch of independent clusters on several threads of the host.
#ifndef EMU_TEAM_H
#define EMU_TEAM_H

#include "emu/run/state.h"

// Whether no cluster of the launch can learn when another one runs: no instruction that the kernel
// reaches is one that orders clusters, or reads what others may be changing in order (a race is
// no order). Such clusters run one by one, so that what each of them does, down to the interleaving
// of its warps, does not depend on where or after which others it runs.
bool emu_is_independent(const struct emu_grid *l);

// Whether the kernel reaches a request for the work of another cluster.
bool emu_cancels(const struct emu_grid *l);

// Runs the clusters of a launch that is prepared, dealt out to `workers` threads: this one and
// others. `l` itself runs none; it gets the outcome: the fault of the lowest cluster that has one,
// as a single thread would, and how many instructions ran.
tir_status emu_team_run(struct emu_grid *l, uint32_t workers);

// Whether a cluster needs not run, because a lower one has gone wrong.
bool emu_team_is_over(struct emu_team *team, uint64_t cluster);

#endif
