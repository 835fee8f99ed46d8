// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels of the tcgen05 tests begin and end with: 128 columns of tensor memory for one CTA.
#ifndef TESTS_EMU_TCGEN05_H
#define TESTS_EMU_TCGEN05_H

#include <stdio.h>

#define HEAD ".version 8.8\n.target sm_100a\n.address_size 64\n"

static const char tcgen05_begin[] = HEAD
    ".extern .shared .align 1024 .b8 s[];\n"
    ".visible .entry k(.param .u64 p)\n{ .shared .align 8 .b8 bar[16]; .reg .b32 %r<128>, %t, %w,\n"
    "%tm, %a, %b, %c, %i; .reg .b64 %p, %q, %x, %y, %z; .reg .pred %e, %f, %g;\n"
    "ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %e, %w, 0;\n"
    "@%e tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [bar+8], 128;\n"
    "bar.sync 0; ld.shared.b32 %tm, [bar+8]; setp.eq.u32 %f, %t, 0;\n"
    "shl.b32 %a, %w, 21; add.u32 %a, %a, %tm; mul.wide.u32 %x, %t, 4; add.u64 %q, %p, %x;\n";
static const char tcgen05_end[] =
    "bar.sync 0;\n@%e tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 128;\nret; }\n";

static inline size_t tcgen05_registers(char *text, size_t size, int count)
{
    size_t n = (size_t)snprintf(text, size, "{");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%%r%d", i ? "," : "", i);
    return n + (size_t)snprintf(text + n, size - n, "}");
}

#endif
