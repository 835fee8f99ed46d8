// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timeline of an emulated launch, and its form as a file for Perfetto or chrome://tracing.
#ifndef TIR_DRIVER_EMU_TIMELINE_H
#define TIR_DRIVER_EMU_TIMELINE_H

#include "tir/runtime.h"

#include "base/str.h"
#include "base/vec.h"

struct tir_slice {
    tir_rt_trace_event event; // its strings are the timeline's
    uint32_t operations;      // that it stands for
    uint32_t cta, track;      // once it is drawn
};

struct tir_timeline {
    struct tir_arena *arena;
    VEC(struct tir_slice) slices;
    VEC(const char *) names;
    uint32_t most;        // slices that are kept
    uint64_t dropped;     // slices that came when there were so many
    uint64_t run, waited; // cycles, summed over warps
    uint64_t end;         // the last cycle
    uint32_t ctas, warps; // seen; counted when it is drawn
};

void tir_timeline_init(struct tir_timeline *t, struct tir_arena *arena);
// For tir_runtime_options.emu_trace; `user` is the timeline.
void tir_timeline_add(void *user, const tir_rt_trace_event *event);
// The timeline in the JSON form of trace events: a process for each CTA, a thread for each warp,
// and as many for each engine as it has operations in flight at a time.
void tir_timeline_json(struct tir_timeline *t, struct tir_text *out);

#endif
