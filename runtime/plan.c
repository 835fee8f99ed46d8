// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A table of what was decided before, which threads read without waiting.
//
// A key has a few neighbouring slots. A slot's plan is allocated when it is first used and freed
// with the table, so a thread may look at it at any time. It takes the plan before it reads more
// than the hash, and uses it where it lies; nobody waits for a plan that is taken. A thread that
// finds it so makes another one for the same key, in the next slot: threads that launch the same at
// the same time soon have a plan each.

#include "plan.h"

#include <string.h>

#include "artifact.h"
#include "host.h"

enum { NEIGHBOURS = 4 };

static size_t plan_bytes(const struct plans *plans)
{
    return sizeof(struct plan) + (plans->key_words + plans->head_words) * sizeof(uint64_t) +
           plans->part_count * sizeof(void *) + TIR_MAP_ALIGN - 1 + plans->block_bytes;
}

void tir_plans_init(struct plans *plans, const tir_allocator *allocator, uint32_t key_words,
                    uint32_t head_words, uint32_t block_bytes, uint32_t part_count)
{
    plans->allocator = allocator;
    plans->key_words = key_words;
    plans->head_words = head_words;
    plans->block_bytes = block_bytes;
    plans->part_count = part_count;
    pthread_mutex_init(&plans->lock, NULL);
}

void tir_plans_finish(struct plans *plans)
{
    for (uint32_t i = 0; i < TIR_PLAN_SLOTS; i++)
        tir_host_free(plans->allocator, atomic_load(&plans->slots[i]), plan_bytes(plans));
    pthread_mutex_destroy(&plans->lock);
}

// Two chains, since a multiplication waits for the one before it; each step can be undone, so that
// no word is lost.
static uint64_t hash_of(const uint64_t *key, uint32_t count)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u; // 2^64 by the golden ratio
    uint64_t a = count, b = ~a;
    for (uint32_t i = 0; i + 1 < count; i += 2) {
        a = (a ^ key[i]) * factor;
        b = (b ^ key[i + 1]) * factor;
    }
    if (count % 2)
        a = (a ^ key[count - 1]) * factor;
    a = (a ^ (a >> 32) ^ (b << 7 | b >> 57)) * factor;
    return a ^ a >> 29;
}

static uint32_t slot_of(uint64_t hash, uint32_t neighbour)
{
    return (uint32_t)((hash + neighbour) % TIR_PLAN_SLOTS);
}

static struct plan *plan_in(const struct plans *plans, uint32_t slot)
{
    return atomic_load_explicit(&plans->slots[slot], memory_order_acquire);
}

static bool has_hash(const struct plan *plan, uint64_t hash)
{
    return atomic_load_explicit(&plan->hash, memory_order_relaxed) == hash;
}

static bool try_to_take(struct plan *plan)
{
    return !atomic_load_explicit(&plan->is_taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&plan->is_taken, true, memory_order_acquire);
}

void tir_plans_give(struct plan *plan)
{
    atomic_store_explicit(&plan->is_taken, false, memory_order_release);
}

struct plan *tir_plans_take(const struct plans *plans, const uint64_t *key, uint32_t key_words)
{
    const uint64_t hash = hash_of(key, key_words);
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        struct plan *plan = plan_in(plans, slot_of(hash, i));
        if (!plan)
            return NULL;
        if (!has_hash(plan, hash) || !try_to_take(plan))
            continue;
        if (memcmp(plan->key, key, key_words * sizeof *key) == 0)
            return plan;
        tir_plans_give(plan);
    }
    return NULL;
}

// A new plan, which is taken.
static struct plan *new_plan(const struct plans *plans)
{
    struct plan *plan = tir_host_alloc(plans->allocator, plan_bytes(plans));
    if (!plan)
        return NULL;
    plan->head = plan->key + plans->key_words;
    plan->parts = (void **)(plan->head + plans->head_words);
    const uintptr_t end = (uintptr_t)(plan->parts + plans->part_count);
    plan->block = (uint8_t *)(plan->parts + plans->part_count) + (0 - end) % TIR_MAP_ALIGN;
    atomic_init(&plan->is_taken, true);
    return plan;
}

// A plan that is taken: one of this hash, a new one, or one that is given up.
static struct plan *choose(struct plans *plans, uint64_t hash)
{
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        struct plan *plan = plan_in(plans, slot_of(hash, i));
        if (plan && has_hash(plan, hash) && try_to_take(plan))
            return plan;
        if (plan)
            continue;
        plan = new_plan(plans);
        atomic_store_explicit(&plans->slots[slot_of(hash, i)], plan, memory_order_release);
        return plan;
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        struct plan *plan = plan_in(plans, slot_of(hash, plans->turn++ % NEIGHBOURS));
        if (try_to_take(plan))
            return plan;
    }
    return NULL;
}

struct plan *tir_plans_make(struct plans *plans, const uint64_t *key, uint32_t key_words)
{
    const uint64_t hash = hash_of(key, key_words);
    pthread_mutex_lock(&plans->lock);
    struct plan *plan = choose(plans, hash);
    pthread_mutex_unlock(&plans->lock);
    if (!plan)
        return NULL;
    atomic_store_explicit(&plan->hash, hash, memory_order_relaxed);
    memcpy(plan->key, key, key_words * sizeof *key);
    return plan;
}
