// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler as a library: .tir source in memory to an artifact that the runtime loads.
//
//     tir_compile_options options = TIR_COMPILE_OPTIONS_INIT;
//     const char *arch = tir_compile_arch_for(device->arch); // NULL: the GPU is too old
//     options.arch = (tir_str){arch, strlen(arch)};
//     options.max_shared = device->max_shared;
//     tir_compilation *compilation;
//     tir_status status = tir_compile(name, source, &options, &compilation, &error);
//     if (status == TIR_OK)
//         load(tir_compilation_output(compilation, TIR_OUTPUT_ARTIFACT));
//     else
//         print(compilation ? tir_compilation_diagnostics(compilation) : error.message);
//     tir_compilation_destroy(compilation);
//
// Nothing is kept between calls and nothing is printed. Calls from different threads are
// independent. A call starts its own threads, one for each processor and at most 16, while the
// caller's thread waits. They end before the call returns. Callbacks run on them, one at a time.
//
// The first call changes state of the whole process: it initialises LLVM's target for NVIDIA GPUs,
// switches off two of LLVM's passes (slsr and load-store-vectorizer), takes LLVM's fatal-error
// hook, so that an error inside LLVM ends the compilation and not the process, and lets the C
// library keep some freed memory (up to 8 MiB of each heap) for the next call.
//
// A NULL from the caller's allocator is TIR_ERR_NO_MEMORY. LLVM has no such way out: where the
// system gives it no memory, it ends the process.
#ifndef TIR_COMPILER_H
#define TIR_COMPILER_H

#include "tir/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tir_compilation tir_compilation; // the result of one call of tir_compile

// Bytes of stack that tir_compile needs on the calling thread. Its own threads reserve 64 MiB of
// addresses each, and only used pages take memory. If the system grants no thread, the caller's
// thread does the work and needs a stack that grows with the nesting of the source.
#define TIR_COMPILE_STACK 65536

// NAME=VALUE, as text: "BM" and "128".
typedef struct tir_setting {
    tir_str name;
    tir_str value;
} tir_setting;

// The outputs of a compilation. Values are bit numbers of tir_compile_options.outputs.
typedef enum tir_output {
    TIR_OUTPUT_ARTIFACT = 0, // for tir_rt_module_load
    TIR_OUTPUT_PTX = 1,      // one module with every kernel and variant
    TIR_OUTPUT_CUBIN = 2,    // by ptxas; TIR_ERR_UNSUPPORTED if it is not installed
    TIR_OUTPUT_LLVM = 3,     // LLVM IR, as text
    TIR_OUTPUT_IR = 4,       // the program after its last pass, as .tir text
    TIR_OUTPUT_HEADER = 5,   // a C header: the artifact's bytes and a launch function per kernel
    TIR_OUTPUT_RECEIPT = 6,  // how each kernel was lowered, with refusals; always made
    TIR_OUTPUT_PRINTED = 7,  // the text of print_after and time_passes; always made
    TIR_OUTPUT_RECEIPT_JSON = 8, // the receipt as one JSON object; docs/receipt.md has its keys
    // What the variants are, without their code: for tir_rt_module_open. The other outputs are then
    // those of tir_compile_variant.
    TIR_OUTPUT_OUTLINE = 9,
    TIR_OUTPUT_SCHEDULE = 10,     // how loops of products are scheduled, as tables of text
    TIR_OUTPUT_SCHEDULE_SVG = 11, // the same as a picture
    TIR_OUTPUT_COUNT = 12
} tir_output;

typedef enum tir_diagnostics_format {
    TIR_DIAGNOSTICS_TEXT = 0, // with the source line and a caret
    TIR_DIAGNOSTICS_JSON = 1  // one object a line
} tir_diagnostics_format;

// Finds an imported file. `from` is the name of the file that imports, `path` is as written there.
// Fills *name, which messages show and which identifies a second import of the file, and *text;
// both must stay valid until tir_compile returns. 0: there is no such file; *text may then say why,
// in one line.
typedef int (*tir_import_fn)(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text);

typedef struct tir_compile_options {
    size_t struct_size; // sizeof(tir_compile_options)
    tir_allocator
        allocator;    // resize NULL: the C library's. LLVM allocates by itself. Other threads
                      // call it too, but never two at a time
    tir_str arch;     // the target, "sm_80" (if empty) to "sm_120a"; for a device it is
                      // tir_compile_arch_for(device->arch)
    uint32_t outputs; // 1 << tir_output for each wanted output; 0: check only
    const tir_setting *metas; // compile-time parameters, each once, for all kernels that have them
    size_t meta_count;
    // Dimensions whose size is known, each once, and names that follow from them; the launch must
    // then agree. TIR_ERR_DIAGNOSED: no kernel has one of them.
    const tir_setting *dims;
    size_t dim_count;
    tir_str kernel;       // only this kernel; empty: all of the main file
    uint32_t line_info;   // 1: the code has source lines
    uint32_t verify;      // 1: check the program's rules after every pass, and LLVM's
    uint32_t cubin;       // 1: put a cubin for `arch` into the artifact if ptxas is installed
    tir_str run_pass;     // run this pass alone; outputs may be IR only
    tir_str stop_after;   // end after this pass, outputs may be IR only
    tir_str print_after;  // print the program after this pass, or after "all"
    tir_str skip_pass;    // omit this clean-up pass
    int64_t bisect;       // run only the first N passes that change something; -1: all
    uint32_t time_passes; // 1: print how long each pass took
    tir_diagnostics_format diagnostics;
    tir_import_fn import; // NULL: imports are errors
    void *import_user;
    // Words separated by commas. "async", "tma", "wgmma", "pipeline", "specialize", "cluster": it
    // is an error in the source's diagnostics if the best variant of a kernel does not have this.
    // "sync": unchecked synchronisation, in any variant, is an error instead of a warning. Another
    // word: TIR_ERR_INVALID.
    tir_str require;
    // 1: a kernel for sm_90 and later ends if a wait for an mbarrier exceeds the time limit of the
    // launch, and the runtime lists the waiting warps, their mbarriers and source lines.
    uint32_t watchdog;
    // A table of the configurations that are fastest for certain sizes on certain devices, as `tirc
    // tune` writes it (docs/runtime.md), and its name in messages. Malformed text is an error in
    // the source's diagnostics; a line that no longer fits the program is a warning.
    tir_str tuned;
    tir_str tuned_name;
    uint32_t max_shared; // bytes of shared memory that a CTA may use, tir_rt_device_info.max_shared
                         // of the device that the code is for; 0: as many as the target has
    // Steps after which the compilation ends with TIR_ERR_STOPPED; 0: no limit. Steps are the
    // statements and expressions that functions and loops expand to, and the operations of the
    // program at each pass and before LLVM. Their number depends only on the source and on these
    // options, not on the machine: tir_compilation_steps.
    uint64_t step_limit;
    // Called after every few thousand steps, between passes, and between LLVM's stages on each of
    // the modules. A result other than 0 ends the compilation with TIR_ERR_STOPPED. May be NULL.
    int (*cancel)(void *user);
    void *cancel_user;
    // The GPU, e.g. "sm_90a", for which ptxas assembles a cubin into the artifact, beside the PTX
    // for all others. It must run the target's code: the same one, or, for a target without a
    // letter, a later one. TIR_ERR_UNSUPPORTED: ptxas is missing or refuses. Empty: none, unless
    // `cubin` asks for one.
    tir_str cubin_arch;
    // The variant that TIR_OUTPUT_IR has, by the name that the receipt gives it, or "all". Empty:
    // the best one of each kernel. TIR_ERR_INVALID: no kernel has it.
    tir_str variant;
    // 1: variants have the cost that the model expects also where there is nothing to choose from,
    // so that kernels of several artifacts can be compared.
    uint32_t costs;
} tir_compile_options;
#define TIR_COMPILE_OPTIONS_INIT                                                                  \
    {                                                                                             \
        sizeof(tir_compile_options), {NULL, NULL}, {NULL, 0}, 1u << TIR_OUTPUT_ARTIFACT, NULL, 0, \
            NULL, 0, {NULL, 0}, 0, 0, 0, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, -1, 0,       \
            TIR_DIAGNOSTICS_TEXT, NULL, NULL, {NULL, 0}, 0, {NULL, 0}, {NULL, 0}, 0, 0, NULL,     \
            NULL, {NULL, 0}, {NULL, 0}, 0                                                         \
    }

// Compiles. `name` is the source's name in messages; neither it nor `source` need stay valid.
// options may be NULL. *out is set with TIR_OK and with TIR_ERR_DIAGNOSED, which means that the
// source (or, with E0302, its use of the target) is wrong and that the diagnostics say how. With
// every other status *out is NULL and *error says why. TIR_ERR_INVALID: an option is wrong.
// TIR_ERR_UNSUPPORTED: a cubin is wanted and ptxas is missing or refuses. TIR_ERR_STOPPED:
// step_limit or cancel.
TIR_API TIR_CHECKED tir_status tir_compile(tir_str name, tir_str source,
                                           const tir_compile_options *options,
                                           tir_compilation **out, tir_error *error);
TIR_API void tir_compilation_destroy(tir_compilation *compilation); // NULL is fine

// Compiles one variant of an outline, a compilation with TIR_OUTPUT_OUTLINE that has no errors.
// `entry` is what its artifact calls the variant. The result has the outline's options and other
// outputs; its artifact has one kernel with one variant, for tir_rt_module_open. It is destroyed
// before the outline. `*out`, status and error are those of tir_compile, and TIR_ERR_INVALID: it is
// no outline, or has no such variant. Calls for one outline may run at the same time.
//
// So a program that compiles at run time reads its source once and waits for the variants that it
// launches, not for all.
TIR_API TIR_CHECKED tir_status tir_compile_variant(const tir_compilation *outline, tir_str entry,
                                                   tir_compilation **out, tir_error *error);

// Everything below is borrowed, and lives as long as the compilation.

// Every diagnostic, including warnings, in the requested format. Empty: none.
TIR_API tir_str tir_compilation_diagnostics(const tir_compilation *compilation);
TIR_API uint32_t tir_compilation_error_count(const tir_compilation *compilation);
TIR_API uint32_t tir_compilation_warning_count(const tir_compilation *compilation);

// One output; empty if it was not requested, or if the compilation failed before it was made.
TIR_API tir_str tir_compilation_output(const tir_compilation *compilation, tir_output output);

// The stages that ran, in order, with their times: "front", "passes", "build" (LLVM IR), "llvm"
// (its passes), "ptx" (its code generator), "ptxas", "artifact".
typedef struct tir_stage {
    const char *name;
    double milliseconds; // wall time
} tir_stage;
TIR_API const tir_stage *tir_compilation_stages(const tir_compilation *compilation, size_t *count);

// The steps of the compilation, as step_limit counts them.
TIR_API uint64_t tir_compilation_steps(const tir_compilation *compilation);

// The targets that options.arch may name: "sm_80" first. NULL past the last one.
TIR_API const char *tir_compile_arch(size_t index);

// The best target whose code runs on a device with this tir_rt_device_info.arch, also for devices
// newer than this library: "sm_90a" for "sm_90", "sm_86" for "sm_87", "sm_90" for "sm_121", and
// "sm_80" for an emulator (""), which runs every target. NULL: there is none, or `device` is not
// the name of a device.
TIR_API const char *tir_compile_arch_for(const char *device);

#ifdef __cplusplus
}
#endif
#endif
