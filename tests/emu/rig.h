// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the emulator's tests share: one device, one module, buffers, and a launch in one call.
#ifndef TESTS_EMU_RIG_H
#define TESTS_EMU_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emu/emu.h"

struct rig {
    struct emu *emu;
    struct emu_module *module;
    tir_error error; // of the last call that failed
    uint8_t params[4096];
    size_t params_size;
    uint32_t shared_bytes;
    uint32_t cluster;    // CTAs of a cluster along x; 0: none
    uint32_t preferred;  // and of a preferred one; 0: none
    uint32_t grid_y;     // CTAs along y; 0: one
    char printed[16384]; // what device code has printed since it was last emptied
    size_t printed_size;
};

// A device with checks on and a low step limit. Every rig_* fails the test when it cannot do what
// it says, except rig_try_*.
void rig_open(struct rig *r);
// The same under a schedule of its own.
void rig_open_with(struct rig *r, enum emu_policy policy, uint64_t seed);
// The same with somebody who wants the timeline.
void rig_open_traced(struct rig *r, enum emu_policy policy, uint64_t seed,
                     void (*trace)(void *, const struct emu_trace_event *), void *user);
// The same with options of its own.
void rig_open_options(struct rig *r, const struct emu_options *options);
void rig_close(struct rig *r);
void rig_load(struct rig *r, const char *ptx);
tir_status rig_try_load(struct rig *r, const char *ptx);
// A file of tests/emu/ptx.
void rig_load_file(struct rig *r, const char *name);

// Device memory: with the given bytes, or uninitialised when `bytes` is NULL.
uint64_t rig_buffer(struct rig *r, const void *bytes, size_t size);
void rig_read(struct rig *r, void *to, uint64_t from, size_t size);

// Parameters of the next launch, in order, each at its natural alignment.
void rig_param(struct rig *r, const void *value, size_t size);
void rig_param_u32(struct rig *r, uint32_t value);
void rig_param_u64(struct rig *r, uint64_t value);

// Launches with the parameters added since the last launch.
tir_status rig_try_run(struct rig *r, const char *kernel, uint32_t grid, uint32_t block);
void rig_run(struct rig *r, const char *kernel, uint32_t grid, uint32_t block);

// All of it for a kernel `k` of one CTA that takes a buffer: what is in `data` goes in, what it has
// become comes back.
void rig_turn(const char *ptx, uint32_t block, void *data, size_t size);

// For one instruction: a kernel of one warp that loads sources from the first parameter (one 64-bit
// slot for each of 4 sources of each lane), runs `body` on %a0..3 (64 bits), %b0..3 (32), %c0..3
// (16), %f0..3, %d0..3, %h0..3 (f32, f64, f16), and stores %out (64 bits), which is 0 before. Gives
// the 32 results.
void rig_each(const char *body, const uint64_t sources[][4], uint32_t lanes, uint64_t *out);

// A seeded generator of random bits.
uint64_t rig_random(uint64_t *state);

#define assert_message(r, text)                                          \
    do {                                                                 \
        if (!strstr((r)->error.message, (text)))                         \
            fail_msg("'%s' is not in '%s'", (text), (r)->error.message); \
    } while (0)

#endif
