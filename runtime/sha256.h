// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SHA-256 (FIPS 180-4).
#ifndef TIR_RUNTIME_SHA256_H
#define TIR_RUNTIME_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { TIR_SHA256_BYTES = 32 };

struct sha256 {
    uint32_t state[8];
    uint64_t size; // bytes so far
    uint8_t block[64];
};

void tir_sha256_init(struct sha256 *sha);
void tir_sha256_add(struct sha256 *sha, const void *data, size_t size);
void tir_sha256_end(struct sha256 *sha, uint8_t digest[TIR_SHA256_BYTES]);

#endif
