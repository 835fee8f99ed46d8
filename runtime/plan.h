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

// What was decided for a key. One thread at a time has it, which may change all but the key.
struct plan {
    atomic_bool is_taken;
    _Atomic uint64_t hash; // of the key
    uint64_t *head;
    uint8_t *block; // aligned for tensor maps
    void **parts;
    uint64_t key[];
};

struct plans {
    const tir_allocator *allocator;
    uint32_t key_words, head_words, block_bytes, part_count; // of a plan, at most
    pthread_mutex_t lock;                                    // of those who make plans
    uint32_t turn; // which slot of a full neighbourhood is given up next
    struct plan *_Atomic slots[TIR_PLAN_SLOTS];
};

void tir_plans_init(struct plans *plans, const tir_allocator *allocator, uint32_t key_words,
                    uint32_t head_words, uint32_t block_bytes, uint32_t part_count);
void tir_plans_finish(struct plans *plans);

// A plan for this key. No key is the beginning of another one. NULL: there is none, or others have
// it.
struct plan *tir_plans_take(const struct plans *plans, const uint64_t *key, uint32_t key_words);

// A plan for this key that is to be written, in the place of another one if need be. NULL: there is
// no memory, or others have all that it could be.
struct plan *tir_plans_make(struct plans *plans, const uint64_t *key, uint32_t key_words);

// Gives back a plan that one of the two gave.
void tir_plans_give(struct plan *plan);

#endif
