// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of configurations that were measured: options.tuned.
#ifndef TIR_COMPILE_TUNED_H
#define TIR_COMPILE_TUNED_H

#include "base/vec.h"
#include "compile/request.h"
#include "ir/context.h"
#include "ir/ir.h"

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

struct tir_tuned {
    struct tir_context *cx;
    const struct tir_request *request;
    VEC(struct tir_tuned_line) lines;
};

// Reads options.tuned. False: errors were reported.
bool tir_compile_tuned_read(struct tir_tuned *t);
// Finds the lines about a kernel, given its configurations, and warns of those that no longer fit.
void tir_compile_tuned_kernel(struct tir_tuned *t, const char *name,
                              struct tir_func *const *configs, uint32_t count);
// Warns of lines about unknown kernels.
void tir_compile_tuned_finish(struct tir_tuned *t);
// Whether the table has measurements for the sizes known at compile time. *out: the fastest
// configuration, or NULL if it differs between devices.
bool tir_compile_tuned_known(struct tir_tuned *t, const struct tir_func *kernel,
                             const struct tir_func **out);
// The choices of a kernel that was compiled in these configurations. `map` has each dimension's
// number in the artifact, or its size.
void tir_compile_tuned_fill(struct tir_tuned *t, const char *name,
                            const struct tir_func *const *configs, uint32_t count,
                            const struct tir_param_dim *map, tir_artifact_kernel *out);

#endif
