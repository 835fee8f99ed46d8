// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A table of what was decided before, which threads read without waiting.
//
// A key has a few neighbouring slots. A slot's plan is allocated when it is first used and freed
// with the table, so a reader may look at it at any time. A plan that is given up is written over.
// Its version is odd meanwhile, and a reader that sees an odd or a changed version has found
// nothing.

#include "plan.h"

#include "host.h"

enum { NEIGHBOURS = 4 };

struct plan {
    atomic_uint_fast64_t version; // 0: nothing was written yet
    _Atomic uint64_t hash;
    atomic_uint block_words;
    _Atomic uint64_t words[]; // the key, the head, the block
};

static size_t plan_bytes(const struct plans *plans)
{
    const size_t words = (size_t)plans->key_words + plans->head_words + plans->block_words;
    return sizeof(struct plan) + words * sizeof(_Atomic uint64_t);
}

void tir_plans_init(struct plans *plans, const tir_allocator *allocator, uint32_t key_words,
                    uint32_t head_words, uint32_t block_words)
{
    plans->allocator = allocator;
    plans->key_words = key_words;
    plans->head_words = head_words;
    plans->block_words = block_words;
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

static struct plan *slot(const struct plans *plans, uint64_t hash, uint32_t neighbour)
{
    const uint64_t at = (hash + neighbour) % TIR_PLAN_SLOTS;
    return atomic_load_explicit(&plans->slots[at], memory_order_acquire);
}

static uint64_t word(const _Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static bool read_plan(const struct plans *plans, const struct plan *plan, uint64_t hash,
                      const uint64_t *key, uint64_t *head, uint8_t *block)
{
    const uint64_t version = atomic_load_explicit(&plan->version, memory_order_acquire);
    const uint32_t words = atomic_load_explicit(&plan->block_words, memory_order_relaxed);
    const _Atomic uint64_t *at = plan->words + plans->key_words;
    if (version == 0 || version % 2 || word(&plan->hash) != hash)
        return false;
    for (uint32_t i = 0; i < plans->key_words; i++)
        if (word(&plan->words[i]) != key[i])
            return false;
    for (uint32_t i = 0; i < plans->head_words; i++)
        head[i] = word(at++);
    for (uint32_t i = 0; i < words; i++) { // no plan has more than there is room for
        const uint64_t bytes = word(at++);
        memcpy(block + i * sizeof bytes, &bytes, sizeof bytes);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&plan->version, memory_order_relaxed) == version;
}

bool tir_plans_find(const struct plans *plans, const uint64_t *key, uint64_t *head, uint8_t *block)
{
    const uint64_t hash = hash_of(key, plans->key_words);
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        const struct plan *plan = slot(plans, hash, i);
        if (!plan)
            return false;
        if (read_plan(plans, plan, hash, key, head, block))
            return true;
    }
    return false;
}

static void put(_Atomic uint64_t **at, uint64_t value)
{
    atomic_store_explicit((*at)++, value, memory_order_relaxed);
}

static void write_plan(const struct plans *plans, struct plan *plan, uint64_t hash,
                       const uint64_t *key, const uint64_t *head, const uint8_t *block,
                       uint32_t block_words)
{
    _Atomic uint64_t *at = plan->words;
    const uint64_t version = atomic_load_explicit(&plan->version, memory_order_relaxed);
    atomic_store_explicit(&plan->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&plan->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&plan->block_words, block_words, memory_order_relaxed);
    for (uint32_t i = 0; i < plans->key_words; i++)
        put(&at, key[i]);
    for (uint32_t i = 0; i < plans->head_words; i++)
        put(&at, head[i]);
    for (uint32_t i = 0; i < block_words; i++) {
        uint64_t bytes;
        memcpy(&bytes, block + i * sizeof bytes, sizeof bytes);
        put(&at, bytes);
    }
    atomic_store_explicit(&plan->version, version + 2, memory_order_release);
}

// The slot of this hash, a free one, or one that is given up.
static uint32_t choose_slot(struct plans *plans, uint64_t hash)
{
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        const struct plan *plan = slot(plans, hash, i);
        if (!plan || word(&plan->hash) == hash)
            return (uint32_t)((hash + i) % TIR_PLAN_SLOTS);
    }
    return (uint32_t)((hash + plans->turn++ % NEIGHBOURS) % TIR_PLAN_SLOTS);
}

void tir_plans_keep(struct plans *plans, const uint64_t *key, const uint64_t *head,
                    const uint8_t *block, uint32_t block_words)
{
    const uint64_t hash = hash_of(key, plans->key_words);
    pthread_mutex_lock(&plans->lock);
    const uint32_t at = choose_slot(plans, hash);
    struct plan *plan = atomic_load_explicit(&plans->slots[at], memory_order_relaxed);
    const bool is_new = !plan;
    if (is_new)
        plan = tir_host_alloc(plans->allocator, plan_bytes(plans));
    if (plan)
        write_plan(plans, plan, hash, key, head, block, block_words);
    if (is_new && plan)
        atomic_store_explicit(&plans->slots[at], plan, memory_order_release);
    pthread_mutex_unlock(&plans->lock);
}
