// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The PTX emulator: executes PTX text on the host and reports its faults.
//
// One `struct emu` is one device: its memory, its loaded modules and its first fault. It does not
// depend on the runtime; runtime/emu_device.c makes it one of the runtime's devices. Calls on
// different devices may run in parallel; calls on one device may not.
#ifndef EMU_EMU_H
#define EMU_EMU_H

#include <stdbool.h>

#include "tir/base.h"

struct emu;        // a device
struct emu_module; // a loaded PTX module; owned by its device

// How much is checked: each level has what the ones before it have. Accesses out of bounds are
// always found.
enum emu_check {
    EMU_CHECK_OFF,
    EMU_CHECK_MEMORY, // initialisation of every access, copies in flight
    EMU_CHECK_RACE,   // order between warps, CTAs and asynchronous engines
    EMU_CHECK_FULL    // order between the lanes of a warp, hygiene
};

// Who moves when several could (schedule.c). The same policy and seed replay a run exactly.
enum emu_policy {
    EMU_LAZY,       // asynchronous operations as late as they may
    EMU_EAGER,      // at once
    EMU_RANDOM,     // by the seed
    EMU_ADVERSARIAL // by priorities that the seed draws and turns around
};

// A stretch of the timeline of a launch. Times are cycles of a simple model (trace.h), not
// measured.
enum emu_trace_kind {
    EMU_TRACE_RUN,   // a warp executes
    EMU_TRACE_WAIT,  // a warp waits; `name` says for what
    EMU_TRACE_FLIGHT // an operation of an asynchronous engine, from its issue to its completion
};

struct emu_trace_event {
    enum emu_trace_kind kind;
    const char *name;   // lives as long as the program
    const char *engine; // of a flight: what it occupies; else NULL; lives as long as the program
    uint32_t cta[3];
    uint32_t warp;               // of a flight: that issued it
    uint32_t group;              // of a cp.async: the warp's commit group, from 1; else 0
    uint32_t ptx_line, ptx_last; // its first instruction and, of a run, its last one
    const char *file;            // as `.loc` has it, or NULL; lives as long as the module
    uint32_t source_line, source_last;
    uint64_t start, end;
};

struct emu_options {
    tir_allocator allocator; // resize == NULL: the C library's
    uint32_t sm_count;       // how many multiprocessors to report (%nsmid); 0: 8
    uint64_t memory_limit;   // most bytes of device memory at a time; 0: 8 GiB
    enum emu_check check;
    enum emu_policy policy;
    uint64_t seed; // of EMU_RANDOM and EMU_ADVERSARIAL
    // Of the host, for launches whose clusters have nothing to do with each other, without a
    // timeline and with checks up to MEMORY; 0: 1. What such a launch does is the same to the bit
    // with any number of them, unless its clusters race with each other.
    uint32_t threads;
    uint64_t step_limit; // most instructions one launch may execute per warp; 0: 2^40
    uint32_t time_limit; // milliseconds of the host that a launch may take; 0: any
    // Receives the output of vprintf in device code; may be NULL. Called during emu_run.
    void (*print)(void *user, const char *text, size_t size);
    void *print_user;
    // Receives the timeline of every launch; may be NULL. Called during emu_run.
    void (*trace)(void *user, const struct emu_trace_event *event);
    void *trace_user;
};

// Reads "lazy", "eager", "random:SEED", "adversarial" or "adversarial:SEED" with a decimal number.
// False: none of them.
bool emu_policy_parse(const char *text, enum emu_policy *policy, uint64_t *seed);

// What people call a warp of a CTA and a byte of dynamic shared memory: each writes its name, of
// one word, as snprintf does, or nothing where there is none.
struct emu_names {
    void (*warp)(const void *user, uint32_t warp, char *text, size_t size);
    void (*shared)(const void *user, uint32_t offset, char *text, size_t size);
    const void *user;
};

enum { EMU_TOGETHER = 1024 }; // CTAs of a cooperative launch, at most

// A launch: the shape in threads and CTAs, dynamic shared memory, and the parameter block laid out
// with each parameter where emu_kernel_param says.
struct emu_launch {
    uint32_t grid[3], block[3], cluster[3]; // cluster: 0 or 1 means none
    // Clusters in place of several of the stated ones, for parts of the grid that the seed chooses;
    // 0: none. They divide the grid.
    uint32_t preferred[3];
    uint32_t shared_bytes; // dynamic shared memory
    const void *params;
    size_t params_size;
    bool cooperative; // all CTAs run together, EMU_TOGETHER at most, and may wait for each other
    const struct emu_names *names; // for messages, during the launch; NULL: none
};

struct emu_kernel_info {
    const char *name;   // lives as long as the module
    size_t params_size; // bytes of the parameter block
    uint32_t static_shared_bytes;
    uint32_t max_threads; // from .maxntid or .reqntid; 0: not stated
};

tir_status emu_create(const struct emu_options *options, struct emu **out, tir_error *error);
void emu_destroy(struct emu *emu); // NULL is fine; frees modules and memory

// Parses PTX. The text is copied. A message names the line of the PTX that is wrong.
tir_status emu_load(struct emu *emu, tir_str ptx, struct emu_module **out, tir_error *error);
void emu_unload(struct emu *emu, struct emu_module *module);
tir_status emu_kernel_info(struct emu_module *module, const char *kernel,
                           struct emu_kernel_info *out, tir_error *error);
// Where parameter `index` lies in the block; TIR_ERR_INVALID: the kernel has fewer.
tir_status emu_kernel_param(const struct emu_module *module, const char *kernel, uint32_t index,
                            size_t *offset, size_t *size, tir_error *error);

// Device memory. Addresses are opaque, 256-byte aligned, never 0, and never reused next to each
// other, so that an access past the end of one allocation never hits another. Fresh memory counts
// as uninitialised until it is written, filled, or stored to.
tir_status emu_alloc(struct emu *emu, uint64_t size, uint64_t *out, tir_error *error);
tir_status emu_free(struct emu *emu, uint64_t address, tir_error *error);
tir_status emu_write(struct emu *emu, uint64_t dst, const void *src, uint64_t size,
                     tir_error *error);
tir_status emu_read(struct emu *emu, void *dst, uint64_t src, uint64_t size, tir_error *error);
tir_status emu_copy(struct emu *emu, uint64_t dst, uint64_t src, uint64_t size, tir_error *error);
tir_status emu_fill(struct emu *emu, uint64_t dst, uint8_t value, uint64_t size, tir_error *error);

// Runs a kernel to completion. TIR_ERR_DEVICE: the kernel did something wrong; emu_findings says
// what, and the message is that of the first finding: it starts with a short class
// ("out-of-bounds global load", "uninitialised shared load", "deadlock", ...) and says the PTX
// line, the source line where `.loc` gives one, the CTA and the thread.
tir_status emu_run(struct emu *emu, struct emu_module *module, const char *kernel,
                   const struct emu_launch *launch, tir_error *error);

// How many instructions the warps of the last launch executed.
uint64_t emu_instructions(const struct emu *emu);
// --- what the last launch did wrong ---

enum emu_finding_kind {
#define FINDING(id, prefix, note) EMU_F_##id,
#include "emu/check/finding.def"
    EMU_FINDING_KINDS
};

// A point of the program that an agent reached. Strings live as long as the finding.
struct emu_place {
    uint32_t line;      // of the PTX; 0: no place
    const char *file;   // that .loc names; NULL: none
    uint32_t file_line; // in it
    uint32_t cta[3];
    int32_t warp, lane; // -1: an asynchronous engine, or no lane in particular
    const char *does;   // "load", "store", "atomic", ...; NULL: not an access
};

struct emu_finding {
    enum emu_finding_kind kind;
    const char *message; // of any length; the launch's error holds the start of the first one
    struct emu_place at;
    struct emu_place other; // what it conflicts with; line 0: nothing
    const char *space;      // "shared", "global" ...; NULL: not about memory
    uint64_t address, size;
};

// The findings of the device's last launch, most 32, owned by it until the next launch.
const struct emu_finding *emu_findings(const struct emu *emu, uint32_t *count);
// A hint: told, and no reason for the launch to fail.
bool emu_finding_is_hint(enum emu_finding_kind kind);
// "OUT_OF_BOUNDS", what the message begins with, and what would fix it.
const char *emu_finding_name(enum emu_finding_kind kind);
const char *emu_finding_prefix(enum emu_finding_kind kind);
const char *emu_finding_note(enum emu_finding_kind kind);
// The findings as a JSON array, one object a line. Writes at most `size` bytes, the terminating 0
// included, and gives the length of the whole text, as snprintf does.
size_t emu_findings_json(const struct emu *emu, char *text, size_t size);
// The same for people: a line for the message and one, indented, for the note.
size_t emu_findings_text(const struct emu *emu, char *text, size_t size);

#endif
