// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes that are known when a kernel is compiled.
#ifndef TIR_COMPILE_KNOWN_H
#define TIR_COMPILE_KNOWN_H

#include "compile/request.h"
#include "ir/context.h"
#include "ir/ir.h"

// The size of dimension `dim` of f, if it is given or f demands one.
bool tir_known_size(const struct tir_request *request, const struct tir_func *f, uint32_t dim,
                    int64_t *size);

// The value in the host block of the next name that follows from dimensions; NULL: no more.
struct tir_value *tir_sized_name_next(const struct tir_func *f, const struct tir_value *last);

// Makes sizes that are given for such names conditions of the kernels. False: a diagnostic was
// reported, such as of a name that no kernel has.
bool tir_known_bind(struct tir_context *cx, const struct tir_request *request,
                    struct tir_module *m);

#endif
