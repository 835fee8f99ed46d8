// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dense bit sets for dataflow over instruction or value ids.
#ifndef TIR_BASE_BITSET_H
#define TIR_BASE_BITSET_H

#include "base/arena.h"

struct bitset {
    uint64_t *words;
    uint32_t bits;
};

static inline struct bitset bitset_new(struct tir_arena *arena, uint32_t bits)
{
    return (struct bitset){arena_array(arena, uint64_t, bits / 64 + 1), bits};
}

static inline bool bitset_has(const struct bitset *set, uint32_t bit)
{
    assert(bit < set->bits);
    return set->words[bit / 64] >> (bit % 64) & 1;
}

// True when the bit was not yet in the set.
static inline bool bitset_insert(struct bitset *set, uint32_t bit)
{
    assert(bit < set->bits);
    uint64_t old = set->words[bit / 64], mask = UINT64_C(1) << (bit % 64);
    set->words[bit / 64] = old | mask;
    return !(old & mask);
}

// The first bit from `bit` on that is in the set; set->bits: none is.
static inline uint32_t bitset_next(const struct bitset *set, uint32_t bit)
{
    while (bit < set->bits && !bitset_has(set, bit))
        bit = set->words[bit / 64] >> (bit % 64) ? bit + 1 : (bit / 64 + 1) * 64;
    return bit < set->bits ? bit : set->bits;
}

static inline void bitset_remove(struct bitset *set, uint32_t bit)
{
    set->words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

#endif
