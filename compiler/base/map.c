// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hash map: a dense array of entries in insertion order, and an open-addressed table of indices
// into it that is at most half full.

#include "base/map.h"

void tir_map_init(struct tir_map *map, struct tir_arena *arena)
{
    *map = (struct tir_map){.arena = arena};
}

// Spreads keys that differ only in a few bits, as pointers do: the middle of the product with 2^64
// by the golden ratio depends on all that is below it, which the upper half of the key is added to.
static uint32_t spread(uint64_t key)
{
    return (uint32_t)((key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

// The slot that holds key, or the free one where it belongs. slot_count is not 0.
static uint32_t *find_slot(const struct tir_map *map, uint64_t key)
{
    uint32_t mask = map->slot_count - 1;
    for (uint32_t i = spread(key) & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &map->slots[i];
        if (!*slot || map->entries[*slot - 1].key == key)
            return slot;
    }
}

void *tir_map_get(const struct tir_map *map, uint64_t key)
{
    if (!map->slot_count)
        return NULL;
    uint32_t slot = *find_slot(map, key);
    return slot ? map->entries[slot - 1].value : NULL;
}

static void grow(struct tir_map *map, uint32_t capacity)
{
    struct tir_map_entry *entries = arena_array(map->arena, struct tir_map_entry, capacity);
    if (map->count)
        memcpy(entries, map->entries, map->count * sizeof *entries);
    map->entries = entries;
    map->capacity = capacity;
    map->slot_count = capacity * 2;
    map->slots = arena_array(map->arena, uint32_t, map->slot_count);
    for (uint32_t i = 0; i < map->count; i++)
        *find_slot(map, entries[i].key) = i + 1;
}

void tir_map_reserve(struct tir_map *map, uint32_t count)
{
    uint32_t capacity = 8;
    while (capacity < count)
        capacity *= 2;
    grow(map, capacity);
}

uint32_t tir_map_place(struct tir_map *map, uint64_t key)
{
    if (map->count == map->capacity)
        grow(map, map->capacity ? map->capacity * 2 : 8);
    uint32_t *slot = find_slot(map, key);
    if (!*slot) {
        map->entries[map->count++] = (struct tir_map_entry){key, NULL};
        *slot = map->count;
    }
    return *slot - 1;
}

void tir_map_set(struct tir_map *map, uint64_t key, void *value)
{
    const uint32_t place = tir_map_place(map, key);
    map->entries[place].value = value;
}

// The finisher of SplitMix64.
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

// By words, and by FNV-1a what is left of one.
uint64_t tir_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed, word;
    for (; size >= sizeof(word); size -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        hash = mix(hash ^ word);
    }
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}
