// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A runtime as --emu-check and --schedule ask for it, and the schedules of --explore.
#ifndef TIR_DRIVER_EMU_RUNTIME_H
#define TIR_DRIVER_EMU_RUNTIME_H

#include "tir/runtime.h"

#include "driver/command/command.h"
#include "driver/emu/timeline.h"
#include "driver/options.h"

// How many launches --explore asks for; 1 without it.
uint32_t tir_emu_rounds(const struct tir_options *options);
// The schedule of round `i`: that of --schedule, or with --explore the fixed ones first, then
// random ones. The text is the arena's.
const char *tir_emu_schedule(struct tir_arena *arena, const struct tir_options *options,
                             uint32_t i);
// Makes the runtime. What device code prints goes to `log`, what happens when to `timeline` unless
// it is NULL.
bool tir_emu_runtime(const struct tir_options *options, const char *schedule, void *log,
                     struct tir_timeline *timeline, tir_runtime **out, tir_error *error);

// All that went wrong in the device's last launch, on the arena; empty where there was none.
const char *tir_emu_findings_text(struct tir_arena *arena, tir_rt_device *device, uint32_t json);
// Prints it, a line each with "tirc:" before it. False: there is nothing.
bool tir_emu_print_findings(struct tir_arena *arena, tir_rt_device *device);
// Prints why a launch failed: the findings in full, a line each with "tirc:" before it, or, where
// there are none, the error.
enum tir_exit tir_emu_complain(struct tir_arena *arena, tir_rt_device *device,
                               const tir_error *error);

#endif
