// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by the files of the compile boundary: one compilation, and its code for each kernel.
#ifndef TIR_COMPILE_COMPILE_H
#define TIR_COMPILE_COMPILE_H

#include <pthread.h>

#include "base/vec.h"
#include "ir/context.h"
#include "pass/receipt.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/ptxas.h"
#include "tir/compiler.h"

#define TIR_MAX_CODE_VARIANTS 64
#define TIR_MOST_CONFIGS      30 // of a kernel: the first has up to five variants, others two

struct tir_tuned_binding { // NAME=VALUE of a table
    const char *name;      // interned
    struct tir_span span;
    tir_str value;
    int64_t size; // of a dimension
};

struct tir_tuned_line { // of options.tuned
    struct tir_span span;
    tir_str device;
    uint32_t multiprocessors;
    const char *arch, *kernel; // interned
    struct tir_tuned_list {
        struct tir_tuned_binding *at;
        uint32_t len, cap;
    } given, sizes, config;
    bool is_known;            // there is such a kernel
    const struct tir_func *f; // the configuration; NULL: the line does not count here
    int64_t *dims;            // the sizes in the order of the kernel's dimensions
    bool is_used;             // it is in the artifact
};

struct tir_step {
    uint32_t kernel; // of tir_compilation.kernels
    // Its arguments: parameters of the whole by number, then its scratch tensors.
    uint32_t args[TIR_MAX_PARAMS];
};

struct tir_sequence { // a configuration that is several launches
    struct tir_func *whole;
    tir_formula cost;
    struct tir_step steps[TIR_MAX_STEPS];
    uint32_t step_count;
};

struct tir_kernel_code { // one kernel and its variants, best first
    const char *name;
    struct tir_func *variants[TIR_MAX_CODE_VARIANTS];
    tir_formula costs[TIR_MAX_CODE_VARIANTS]; // none: the kernel has one configuration
    uint32_t count;
    const struct tir_param *params; // before sizes were bound; costs and tables speak of these
    uint32_t dim_count;             // dimensions
    VEC(struct tir_sequence) sequences;
    bool is_step; // of the nearest kernel before it that is none
};

struct tir_compilation {
    struct tir_context cx;
    struct tir_variant_job *jobs; // jobs.c; where the variants live
    uint32_t job_count;
    struct tir_nvptx nvptx;
    tir_allocator allocator; // the caller's, for one thread at a time
    pthread_mutex_t calling; // the caller's functions
    struct tir_meter meter;
    tir_compile_options options; // complete, whatever struct_size the caller had
    tir_str name, source;
    struct tir_target target; // as options.max_shared limits it
    VEC(struct tir_kernel_code) kernels;
    VEC(struct tir_tuned_line) tuned;
    struct tir_receipt receipt;
    uint32_t required; // 1 << tir_wish: what options.require asks for
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

// A kernel of f's parameters, without code.
struct tir_kernel_code tir_kernel_new(struct tir_compilation *c, const struct tir_func *f);

// artifact.c: outputs[TIR_OUTPUT_ARTIFACT] from the kernels, the PTX and the cubin. Not
// TIR_OK: c->error says why, or (TIR_ERR_DIAGNOSED) a diagnostic was reported.
tir_status tir_compile_artifact_make(struct tir_compilation *c);

// variants.c: adds f and its copies, each with the facts that it relies on, or f alone if variants
// make no sense. Of a configuration after the first it adds only the variants that a launch should
// choose among. cost: that of f, or none.
void tir_compile_variants(struct tir_compilation *c, struct tir_kernel_code *kernel,
                          struct tir_func *f, tir_formula cost);
bool tir_compile_has_dot(const struct tir_func *f);
// The conditions of the variant, as a clause; empty: it takes any arguments.
void tir_compile_variant_describe(struct tir_text *out, const struct tir_func *f);

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
// "tma,wgmma" as bits. False: *unknown is no wish.
bool tir_compile_wishes_parse(tir_str words, uint32_t *out, tir_str *unknown);
// False: the last part refuses one of `wishes` (bits) or, if every pass ran (finished), does not
// meet it; an error was reported.
bool tir_compile_receipt_require(struct tir_compilation *c, uint32_t wishes, bool finished);
// Warns of unchecked synchronisation in the last part, unless it is required and so an error.
void tir_compile_receipt_warn(struct tir_compilation *c);

// steps.c: whether f is a sequence: several tiles loops, or scratch tensors.
bool tir_compile_has_steps(const struct tir_func *f);
// Adds f to the sequences of the kernel of that number, and its steps as separate kernels.
// False: a diagnostic was reported.
bool tir_compile_sequence(struct tir_compilation *c, uint32_t kernel, struct tir_func *f,
                          tir_formula cost);
// The function that has the kernel's parameters.
static inline struct tir_func *tir_kernel_head(const struct tir_kernel_code *kernel)
{
    return kernel->count ? kernel->variants[0] : kernel->sequences.at[0].whole;
}

// whole.c: makes it a condition that f's sizes are multiples of its tiles (tir_func.when_count), so
// that it needs no tests for edges. If f walks no size in tiles it is left unchanged.
void tir_compile_whole_tiles(struct tir_func *f);

// cost.c: the modelled cycles of a launch of f, in form tile, as a formula.
tir_formula tir_compile_cost(struct tir_compilation *c, struct tir_func *f);
// The cheapest of the `count` configurations of a kernel for the dimensions known at compile time;
// `count` if these do not decide.
uint32_t tir_compile_cheapest(struct tir_compilation *c, struct tir_func *const *configs,
                              const tir_formula *costs, uint32_t count);

// The size of a dimension that is known at compile time.
bool tir_compile_known_size(const struct tir_compilation *c, tir_str name, int64_t *size);

// tuned.c: reads options.tuned. False: errors were reported.
bool tir_compile_tuned_read(struct tir_compilation *c);
// Finds the lines about a kernel, given its configurations, and warns of those that no longer fit.
void tir_compile_tuned_kernel(struct tir_compilation *c, const char *name,
                              struct tir_func *const *configs, uint32_t count);
// Warns of lines about unknown kernels.
void tir_compile_tuned_finish(struct tir_compilation *c);
// Whether the table has measurements for the sizes known at compile time. *out: the fastest
// configuration, or NULL if it differs between devices.
bool tir_compile_tuned_known(struct tir_compilation *c, const struct tir_func *kernel,
                             const struct tir_func **out);
// The choices of a kernel that was compiled in these configurations. `map` has each dimension's
// number in the artifact, or its size.
void tir_compile_tuned_fill(struct tir_compilation *c, const char *name,
                            const struct tir_func *const *configs, uint32_t count,
                            const struct tir_param_dim *map, tir_artifact_kernel *out);

// formula.c: the value of the host block as a formula. False: a diagnostic was reported.
bool tir_compile_formula(struct tir_compilation *c, const struct tir_func *f,
                         const struct tir_value *v, struct tir_span span, tir_formula *out);
// The same for an estimate, on which no result depends. False: there is no such formula.
bool tir_compile_estimate(struct tir_compilation *c, const struct tir_func *f,
                          const struct tir_value *v, tir_formula *out);

// header.c: outputs[TIR_OUTPUT_HEADER] from the artifact.
void tir_compile_header_make(struct tir_compilation *c);

#endif
