// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compilation: what is asked for, its code, and what comes out.
#ifndef TIR_COMPILE_COMPILE_H
#define TIR_COMPILE_COMPILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "compile/code.h"
#include "compile/request.h"
#include "compile/tuned.h"
#include "ir/context.h"
#include "pass/receipt.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/ptxas.h"
#include "tir/compiler.h"

struct tir_compilation {
    struct tir_request request;
    // What it is the compilation of, unless it begins with a source: a variant of an outline.
    const struct tir_compilation *outline;
    const struct tir_kernel_code *of_kernel;
    uint32_t of_variant;
    struct tir_context cx;
    struct tir_variant_job *jobs; // jobs.c; where the variants live
    uint32_t job_count;
    struct tir_nvptx nvptx;
    struct tir_nvptx_result code; // generate.c
    bool has_code;                // of all variants, made beside their checks
    uint64_t code_steps;          // that it took
    atomic_bool is_code_vain;     // one of the checks beside it has failed
    double beside_ms;             // that checks and code took beside each other
    tir_allocator allocator;      // the caller's, for one thread at a time
    pthread_mutex_t calling;      // the caller's functions
    struct tir_meter meter;
    VEC(struct tir_kernel_code) kernels;
    struct tir_tuned tuned;
    struct tir_receipt receipt;
    tir_str assembler; // why there is no cubin; NULL: there is one, or it was not asked for
    struct tir_text printed;
    tir_str outputs[TIR_OUTPUT_COUNT];
    uint8_t *artifact; // from the allocator
    size_t artifact_size;
    tir_str diagnostics;
    uint32_t error_count, warning_count;
    tir_stage stages[8];
    size_t stage_count;
    tir_error error;
};

double tir_compile_now_ms(void); // compile.c
void tir_compile_add_stage(struct tir_compilation *c, const char *name, double milliseconds);

// compile.c: a compilation for this request. NULL: no memory, and *error says so.
struct tir_compilation *tir_compilation_new(const struct tir_request *request, tir_error *error);
// Runs it, and hands it out or destroys it as the status says.
tir_status tir_compilation_run(struct tir_compilation *c, tir_compilation **out, tir_error *error);
// TIR_ERR_INVALID, with this message.
tir_status tir_compile_refuse(tir_error *error, const char *format, ...) TIR_PRINTF(2, 3);

// outline.c
static inline bool tir_compile_is_outline(const struct tir_compilation *c)
{
    return c->request.options.outputs >> TIR_OUTPUT_OUTLINE & 1;
}
// What passes would change of what an artifact says of the variants. False: errors were reported.
bool tir_compile_outline(struct tir_compilation *c, const struct tir_binding *dims);
// Begins a compilation of a variant of an outline.
void tir_compile_take_variant(struct tir_compilation *c);

// artifact.c: outputs[output] from the kernels, the PTX and the cubin. Not
// TIR_OK: c->error says why, or (TIR_ERR_DIAGNOSED) a diagnostic was reported.
tir_status tir_compile_artifact_make(struct tir_compilation *c, tir_output output);

// generate.c: do the outputs need code?
bool tir_compile_wants_code(const struct tir_compilation *c);
// The PTX of all variants, and the stages of its making. False: errors were reported, or the meter
// says no more.
bool tir_compile_generate(struct tir_compilation *c);
// Makes the code of these variants on the threads that also do this work, beside(user, i) for each
// i below count; some of the work is left undone if there can be no code. If it can,
// tir_compile_generate takes it; otherwise that reports why.
void tir_compile_generate_beside(struct tir_compilation *c, struct tir_func *const *funcs,
                                 uint32_t count, void (*beside)(void *user, uint32_t i),
                                 void *user);

// jobs.c: runs the passes on the variants of all kernels, each in a separate context that the
// compilation then owns; the results replace the variants. False: errors were reported.
bool tir_compile_run_passes(struct tir_compilation *c, const struct tir_binding *dims);
void tir_compile_passes_finish(struct tir_compilation *c);

// receipt.c: the part of a sequence: its launches and their scratch memory.
void tir_compile_receipt_sequence(struct tir_compilation *c, const char *kernel,
                                  const struct tir_sequence *sequence);
// Begins the part of variant f, to which passes add.
void tir_compile_receipt_begin(struct tir_receipt *receipt, const char *kernel,
                               const struct tir_func *f);
void tir_compile_receipt_code(struct tir_compilation *c, const struct tir_ptxas_kernel *k);
tir_str tir_compile_receipt_text(struct tir_compilation *c);
tir_str tir_compile_receipt_json(struct tir_compilation *c);
// "FILE:LINE: " of a span, without the file's folders; nothing where it has no file.
void tir_compile_place(struct tir_compilation *c, struct tir_span span, struct tir_text *out);
// schedule.c: the certificates of the best variants' loops, and one as an object of JSON.
tir_str tir_compile_schedule_text(struct tir_compilation *c);
tir_str tir_compile_schedule_svg(struct tir_compilation *c);
void tir_compile_schedule_json(struct tir_compilation *c, const struct tir_certificate *s,
                               struct tir_text *out);
// "tma,wgmma" as bits. False: *unknown is no wish.
bool tir_compile_wishes_parse(tir_str words, uint32_t *out, tir_str *unknown);
// False: the last part refuses one of `wishes` (bits) or, if every pass ran (finished), does not
// meet it; an error was reported.
bool tir_compile_receipt_require(struct tir_compilation *c, uint32_t wishes, bool finished);
// False: of what is required something is not in `granted` (bits), which are met by the steps of f;
// an error was reported.
bool tir_compile_receipt_require_of(struct tir_compilation *c, const struct tir_func *f,
                                    uint32_t granted);
// Warns of unchecked synchronisation in the last part, unless it is required and so an error.
void tir_compile_receipt_warn(struct tir_compilation *c);

// steps.c: adds f to the sequences of the kernel of that number, and its steps as separate kernels.
// False: a diagnostic was reported.
bool tir_compile_sequence(struct tir_compilation *c, uint32_t kernel, struct tir_func *f,
                          tir_formula cost);

// join.c: makes one loop of two of f's whose tiles clusters of CTAs can share.
void tir_compile_join(struct tir_compilation *c, struct tir_func *f);
// The CTAs of a cluster that share each tile of the loop; 1: none do.
uint32_t tir_compile_sharers(const struct tir_func *f, const struct tir_inst *tiles);

// header.c: outputs[TIR_OUTPUT_HEADER] from the artifact.
void tir_compile_header_make(struct tir_compilation *c);

#endif
