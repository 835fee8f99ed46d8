// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a fuzz target is: one function that takes any bytes, and returns 0 if all is well. It must
// not crash, hang, leak, or keep anything from one call to the next.
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Stops with a message when something that must hold does not, in every kind of build.
#define FUZZ_CHECK(condition) \
    ((condition) ? (void)0    \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

#endif
