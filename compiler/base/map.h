// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One hash map: u64 key to pointer, iterated in insertion order, so output never depends on
// addresses. Pointers are keys by value (tir_map_key).
#ifndef TIR_BASE_MAP_H
#define TIR_BASE_MAP_H

#include "base/arena.h"

struct tir_map_entry {
    uint64_t key;
    void *value;
};

struct tir_map {
    struct tir_arena *arena;
    struct tir_map_entry *entries; // in insertion order
    uint32_t *slots;               // index + 1 into entries
    uint32_t count, capacity, slot_count;
};

void tir_map_init(struct tir_map *map, struct tir_arena *arena);
void tir_map_reserve(struct tir_map *map, uint32_t count); // an empty map, for so many
// Where the entry of key is, which never changes; adds one with NULL if there is none.
uint32_t tir_map_place(struct tir_map *map, uint64_t key);
void *tir_map_get(const struct tir_map *map, uint64_t key);       // NULL: absent
void tir_map_set(struct tir_map *map, uint64_t key, void *value); // adds or replaces

static inline uint64_t tir_map_key(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

uint64_t tir_hash_bytes(const void *bytes, size_t size, uint64_t seed);

#endif
