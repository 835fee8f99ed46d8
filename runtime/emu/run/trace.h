// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A timeline of a launch by a simple model of time: not a measurement.
//
// Every warp has a clock in cycles. An instruction advances it by its row in costs.def; a wait
// advances it to the completion that it waits for. An asynchronous operation starts when it is
// issued and the engine of its CTA is free, occupies the engine for a time that depends on its
// size, and completes a latency later. The clocks follow from the order of the program and not from
// the schedule, so every schedule gives nearly the same timeline.
#ifndef EMU_TRACE_H
#define EMU_TRACE_H

#include "emu/async/op.h"
#include "emu/run/state.h"

// The cycles an instruction takes its warp; set when it is decoded.
uint16_t emu_trace_cost(const struct emu_insn *in);

// A cluster starts: on the multiprocessors that are free first.
void emu_trace_cluster(struct emu_cluster *cluster);
// It has finished.
void emu_trace_retire(struct emu_cluster *cluster);
// A warp starts.
void emu_trace_start(struct emu_warp *w);
// It has seen what became complete at `time`; `what` it waited for.
void emu_trace_wait(struct emu_warp *w, uint64_t time, const char *what);
// It looked for something that is not there yet: what it does from here on is waiting.
void emu_trace_poll(struct emu_warp *w);
// It has no lanes left.
void emu_trace_exit(struct emu_warp *w);
// An operation is issued: gives it its start and end.
void emu_trace_issue(struct emu_op *op);

static inline void emu_trace_reach(uint64_t *time, uint64_t other)
{
    *time = *time > other ? *time : other;
}

#endif
