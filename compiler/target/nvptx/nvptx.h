// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The target: kernels in lowered form in, PTX out.
//
// The parameters of an entry, in order, each at its natural alignment:
//     a tensor    its address, then one i64 stride in elements for each dimension, outermost first
//     a scalar    the value in its own type (bool: one byte, 0 or 1)
//     then each named dimension as an i64
//     then each tensor map (tensor_maps.h), 128 bytes at a multiple of 64
//     then, with a watchdog, three i64: its page, its claim, its limit (emit_watch.c)
// Shared memory is one dynamic array; a launch passes f->shared_bytes.
#ifndef TIR_TARGET_NVPTX_NVPTX_H
#define TIR_TARGET_NVPTX_NVPTX_H

#include <setjmp.h>

#include "base/meter.h"
#include "ir/ir.h"
#include "target/nvptx/llvm.h"

struct tir_nvptx_options {
    const struct tir_target *target;
    bool line_info;          // .loc lines that name the source
    bool verify;             // LLVM's verifier
    bool want_llvm;          // fill result->llvm
    bool watchdog;           // waits that take too long say where they are
    struct tir_meter *meter; // NULL: steps are not counted
    // Other work, for the threads that compile modules, once all modules are begun: beside(user, i)
    // for each i below beside_count, as tir_side_by_side calls it. It is not done where kernels
    // are refused before that. Not with want_llvm.
    uint32_t beside_count;
    void (*beside)(void *user, uint32_t i);
    void *user;
};

struct tir_nvptx_result {
    tir_str llvm, ptx; // on the arena
    // Wall time on the way to the text that was ready last: IR, LLVM's passes, its code generator.
    double build_ms, llvm_ms, ptx_ms;
};

// Checks the machine's rules for a lowered kernel. False: a diagnostic was reported.
bool tir_nvptx_check(const struct tir_func *f, const struct tir_target *target,
                     struct tir_diags *diags);
// The part of it about the asynchronous engines and what threads wait for: what is wrong, or NULL.
// lacking: 0, or features of targets, one of which it would take.
const char *tir_nvptx_check_async(const struct tir_func *f, const struct tir_target *target,
                                  const struct tir_inst *inst, uint32_t *lacking);

// Whether there is something in f that a watchdog can watch.
bool tir_nvptx_can_watch(const struct tir_func *f, const struct tir_target *target);
// Is f a step whose launch may overlap those of the steps beside it?
bool tir_nvptx_overlaps(const struct tir_func *f, const struct tir_target *target);
// Does it start before the step before it has ended, and wait for that end itself?
bool tir_nvptx_waits(const struct tir_func *f, const struct tir_target *target);
// Do its CTAs wait for each other, so that they have to run at the same time?
bool tir_nvptx_is_cooperative(const struct tir_func *f);

#define TIR_NVPTX_UNITS 8 // modules that are compiled at a time, at most

struct tir_nvptx_unit { // one module: the thread that compiles it writes nothing else
    struct tir_llvm ll;
    struct tir_arena arena; // released with the unit
    struct tir_diags diags;
    struct tir_meter meter; // of the options, for questions between stages
    jmp_buf out_of_memory;
    bool ok, no_memory;
    double end, build_ms, llvm_ms, ptx_ms; // end: when its text was ready
};

struct tir_nvptx { // the modules of one emission; zeroed at first
    struct tir_nvptx_unit units[TIR_NVPTX_UNITS];
};

// Compiles kernels (the entry is f->name) into one PTX module. False: a diagnostic was reported, or
// the meter says no more. A caller that leaves this call by a jump (out of memory) must call
// tir_nvptx_finish.
bool tir_nvptx_emit(struct tir_nvptx *nvptx, struct tir_arena *arena, struct tir_diags *diags,
                    struct tir_func *const *funcs, uint32_t count,
                    const struct tir_nvptx_options *options, struct tir_nvptx_result *result);
// Frees what there is.
void tir_nvptx_finish(struct tir_nvptx *nvptx);

#endif
