// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A table of what was decided before, which threads read without waiting.
#ifndef TIR_RUNTIME_PLAN_H
#define TIR_RUNTIME_PLAN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tir/base.h"

enum {
    TIR_PLAN_SLOTS = 128,     // a power of two
    TIR_PLAN_KEY_WORDS = 128, // of a key, at most
};

struct plan;

struct plans {
    const tir_allocator *allocator;
    uint32_t key_words, head_words, block_words; // a value is a head and a block of at most so many
    pthread_mutex_t lock;                        // of those who write
    uint32_t turn; // which slot of a full neighbourhood is given up next
    struct plan *_Atomic slots[TIR_PLAN_SLOTS];
};

void tir_plans_init(struct plans *plans, const tir_allocator *allocator, uint32_t key_words,
                    uint32_t head_words, uint32_t block_words);
void tir_plans_finish(struct plans *plans);

// Copies the value that was kept last for this key. False: none is kept; then the two are
// undefined.
bool tir_plans_find(const struct plans *plans, const uint64_t *key, uint64_t *head, uint8_t *block);

// Keeps a value, in the place of another one if need be. Without memory nothing is kept.
void tir_plans_keep(struct plans *plans, const uint64_t *key, const uint64_t *head,
                    const uint8_t *block, uint32_t block_words);

#endif
