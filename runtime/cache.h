// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A folder of files that can be made again, which processes share.
#ifndef TIR_RUNTIME_CACHE_H
#define TIR_RUNTIME_CACHE_H

#include "sha256.h"
#include "tir/base.h"

enum { TIR_CACHE_BYTES = 256 << 20 }; // of a folder, unless the options say otherwise

struct cache {
    const tir_allocator *allocator;
    char *folder; // NULL: there is no cache
    uint64_t limit;
};

// Opens the cache in this folder; NULL: in the one that the environment states; empty: none. The
// folder is made when something is first kept. A cache that cannot be used finds and keeps nothing.
tir_status tir_cache_open(struct cache *cache, const char *folder, uint64_t limit,
                          const tir_allocator *allocator, tir_error *error);
void tir_cache_close(struct cache *cache);

// What was kept under the key, with a zero byte after it; freed by the caller with the allocator,
// *size + 1 bytes. NULL: nothing is, or it is damaged, and then it is removed.
void *tir_cache_get(const struct cache *cache, const uint8_t key[TIR_SHA256_BYTES], size_t *size);
void tir_cache_put(const struct cache *cache, const uint8_t key[TIR_SHA256_BYTES],
                   const void *bytes, size_t size);
void tir_cache_drop(const struct cache *cache, const uint8_t key[TIR_SHA256_BYTES]);

#endif
