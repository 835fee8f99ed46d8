// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel on a device, with its arguments: what run, trace and tune do before and after a
// launch.
//
// Zeroed but for its first members; each step needs the ones before it. Whatever became of them,
// tir_session_close frees all there is.
#ifndef TIR_DRIVER_LAUNCH_SESSION_H
#define TIR_DRIVER_LAUNCH_SESSION_H

#include "tir/runtime.h"

#include "driver/emu/timeline.h"
#include "driver/launch/bind.h"
#include "driver/options.h"

struct tir_session {
    struct tir_arena *arena;
    const struct tir_options *options;
    tir_error *error;
    const char *path;
    const char *schedule;          // of the emulator; NULL: the default
    struct tir_timeline *timeline; // or NULL

    tir_runtime *runtime;
    tir_rt_device *device;
    const char *arch; // what is compiled for
    tir_str source;
    tir_rt_module *module;
    tir_rt_kernel *kernel;
    const tir_artifact_kernel *info;
    struct tir_bind bind;
    tir_rt_buffer *buffers[TIR_MAX_PARAMS];
    tir_rt_arg args[TIR_MAX_PARAMS];
    struct tir_tensor wants[TIR_MAX_PARAMS];  // of outputs: as they were before the launch
    enum tir_elem rounded[TIR_MAX_PARAMS];    // what inexact values of outputs are rounded to
    struct tir_tensor starts[TIR_MAX_PARAMS]; // the same of outputs that have contents, to stay
};

bool tir_session_open(struct tir_session *s); // the device
bool tir_session_load(struct tir_session *s); // the kernel, compiled for it
// The source again with other options; the module is the caller's. Quiet: no diagnostics.
bool tir_session_compile(struct tir_session *s, const struct tir_options *options, bool quiet,
                         tir_rt_module **out);
// The arguments, from words like those of tirc run, on the device.
bool tir_session_bind(struct tir_session *s, const char *const *words, uint32_t count);
void tir_session_unbind(struct tir_session *s);
// The configuration of a kernel's variant or, numbered after those, of a sequence.
uint32_t tir_session_config(const tir_artifact_kernel *info, uint32_t variant);
// Launches a variant or sequence of the kernel, or of another one with the same parameters; -1:
// whichever the runtime takes. Does not wait.
bool tir_session_launch(struct tir_session *s, tir_rt_kernel *kernel, int32_t variant,
                        tir_rt_launch_report *report,
                        tir_rt_launch_report *steps); // TIR_MAX_STEPS; NULL: not wanted
bool tir_session_read(struct tir_session *s);         // the outputs, into bind.params[].tensor
// The reference interpreter on the same inputs: its results replace the outputs in `wants`.
bool tir_session_reference(struct tir_session *s);
bool tir_session_rounding(struct tir_session *s); // only `rounded`, which the reference fills too
// Bytes that a launch has to move at least: inputs read and outputs written once.
uint64_t tir_session_traffic(const struct tir_session *s);
void tir_session_close(struct tir_session *s);

#endif
