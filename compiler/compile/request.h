// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compilation is asked for. Read-only once the options are checked.
#ifndef TIR_COMPILE_REQUEST_H
#define TIR_COMPILE_REQUEST_H

#include "machine/target.h"
#include "tir/compiler.h"

struct tir_request {
    tir_str name, source;
    tir_compile_options options; // complete, whatever struct_size the caller had
    struct tir_target target;    // as options.max_shared limits it
    struct tir_target cubin;     // what ptxas assembles for, where it does
    uint32_t required;           // 1 << tir_wish: what options.require asks for
};

#endif
