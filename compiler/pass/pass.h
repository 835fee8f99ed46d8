// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes and the runner that checks what they promise.
#ifndef TIR_PASS_PASS_H
#define TIR_PASS_PASS_H

#include "base/binding.h"
#include "base/meter.h"
#include "ir/ir.h"

struct tir_target; // machine/target.h: limits and features of the target

enum tir_change { TIR_UNCHANGED, TIR_CHANGED, TIR_FAILED }; // FAILED: a diagnostic was reported

// What passes do without because the attempts before failed, or do since registers did not last
// (compile/jobs.c).
enum tir_late {
    TIR_LATE_NONE,
    TIR_LATE_PRODUCTS, // if a product then comes after another one
    TIR_LATE_TILES
};

struct tir_attempt {
    const char *name;   // a clause for the receipt; NULL: the first attempt
    const char *gain;   // in its place: what there is since registers did not last
    int64_t stages;     // of a loop, at most
    bool no_pairs;      // of CTAs that multiply together, unless the program states them
    bool no_roles;      // unless the program states them
    bool only_mma_sync; // the same of wgmma and tcgen05
    bool only_cp_async; // no tensor copies feed mma.sync
    bool more_warps;    // twice as many beside mma.sync, unless the program states them
    enum tir_late late; // tiles beside mma.sync are made where they are used first
};

struct tir_pass_cx {
    struct tir_arena *scratch; // released by the runner after the pass
    struct tir_diags *diags;
    const struct tir_target *target;
    struct tir_receipt *receipt;     // decisions and their reasons (receipt.h); NULL: not wanted
    const struct tir_binding *known; // dimensions known at compile time (specialize)
    uint32_t known_count;
    const struct tir_attempt *attempt; // NULL: the first
    struct tir_meter *meter;           // NULL: steps are not counted
    struct tir_runner *runner;         // set by tir_run_passes; NULL: passes are called directly
};

// The value of a known dimension as a number. False: it is none.
bool tir_size_parse(tir_str s, int64_t *out);
// Does f demand a size of the dimension (`where M == 512`)?
bool tir_demanded_size(const struct tir_func *f, const struct tir_value *dim, int64_t *size);

// One function per row of passes.def.
#define PASS(id, ...)  enum tir_change tir_pass_##id(struct tir_func *f, struct tir_pass_cx *cx);
#define CLEAN(id, ...) enum tir_change tir_pass_##id(struct tir_func *f, struct tir_pass_cx *cx);
#include "pass/passes.def"

struct tir_pass_info {
    const char *name;
    bool general;          // takes any form and keeps it
    enum tir_form in, out; // not of general passes
    enum tir_change (*run)(struct tir_func *f, struct tir_pass_cx *cx);
    const char *meaning;
    bool is_check; // reads the program, and only reports
};
extern const struct tir_pass_info tir_passes[]; // the pipeline, then fold, cse, licm, dce
extern const uint32_t tir_pipeline_count;       // how many of them are the pipeline
extern const uint32_t tir_pass_count;
const struct tir_pass_info *tir_pass_by_name(tir_str name); // NULL: none

struct tir_pass_options {
    tir_str run;         // run only this pass (IR in, IR out); empty: the pipeline
    tir_str stop_after;  // empty: the end
    tir_str print_after; // a pass, "all", or empty
    tir_str skip;        // a general pass to omit; empty: none
    int64_t bisect;      // run general passes until N of them changed something; -1: all
    bool verify;         // verify after every pass
    bool time;
    struct tir_text *printed; // where print_after and time write
    // Called in the place of a check, which the caller makes itself. NULL: it is run.
    void (*leave)(void *user, const struct tir_func *f, const struct tir_pass_cx *cx,
                  const struct tir_pass_info *check);
    void *user; // of leave
};

// Runs the pipeline on one function from its form onwards: passes for an earlier form are skipped.
// False: a diagnostic was reported.
bool tir_run_passes(struct tir_func *f, struct tir_pass_cx *cx,
                    const struct tir_pass_options *options);

// For passes that consist of others: runs one of them with all services of the runner.
enum tir_change tir_run_pass(struct tir_func *f, struct tir_pass_cx *cx,
                             const struct tir_pass_info *pass);

#endif
