// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler library as the commands use it: options from the command line, diagnostics printed.
#ifndef TIR_DRIVER_COMPILE_H
#define TIR_DRIVER_COMPILE_H

#include <stdio.h>

#include "tir/compiler.h"

#include "driver/options.h"

struct tir_compile_request {
    struct tir_arena *arena;
    const struct tir_options *options;
    const char *path; // "-": standard input
    tir_str source;
    const char *arch;    // NULL: what --arch says, or sm_80
    uint32_t max_shared; // as in tir_compile_options
    uint32_t outputs;    // 1 << tir_output each
    FILE *log;           // where --receipt, --print-after and --time-passes print
    bool quiet;          // do not print diagnostics
    bool line_info;      // keep source lines without --debug too
};

// Compiles and prints diagnostics to standard error. *out is to be destroyed by the caller, also on
// failure; with TIR_ERR_DIAGNOSED everything has been said.
bool tir_compile_source(const struct tir_compile_request *request, tir_compilation **out,
                        tir_error *error);

#endif
