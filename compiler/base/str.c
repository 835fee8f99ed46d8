// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// String views, edit distance and interned names.

#include "base/str.h"

#include "base/map.h"

tir_str tir_str_copy(struct tir_arena *arena, tir_str s)
{
    char *copy = tir_arena_alloc(arena, s.len + 1);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return (tir_str){copy, s.len};
}

tir_str tir_str_format(struct tir_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tir_str text = tir_str_vformat(arena, format, args);
    va_end(args);
    return text;
}

tir_str tir_str_vformat(struct tir_arena *arena, const char *format, va_list args)
{
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    tir_text_vformat(&text, format, args);
    return tir_text_str(&text);
}

// Optimal string alignment: insertions, deletions, substitutions, and swaps of two neighbours,
// which are the most common slip. Three rows of the table are alive at a time.
uint32_t tir_str_distance(tir_str a, tir_str b, uint32_t limit)
{
    enum { LONGEST = 63 }; // names longer than this only match exactly
    if (tir_str_equal(a, b))
        return 0;
    size_t apart = a.len > b.len ? a.len - b.len : b.len - a.len;
    if (a.len > LONGEST || b.len > LONGEST || apart > limit)
        return limit + 1;

    uint32_t rows[3][LONGEST + 1];
    for (uint32_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            uint32_t change = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            uint32_t best = TIR_MIN(change, TIR_MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                best = TIR_MIN(best, above2[j - 2] + 1);
            row[j] = best;
        }
    }
    return TIR_MIN(rows[a.len % 3][b.len], limit + 1);
}

struct tir_nearest tir_nearest_to(tir_str wanted, uint32_t most)
{
    return (struct tir_nearest){.wanted = wanted, .distance = most + 1};
}

void tir_nearest_try(struct tir_nearest *n, tir_str name)
{
    uint32_t d = tir_str_distance(n->wanted, name, n->distance);
    if (d < n->distance) {
        n->distance = d;
        n->name = name;
    }
}

// The header before the text of an interned name.
struct interned {
    uint64_t hash;
    size_t len;
    char text[];
};

static const struct interned *interned_of(const char *text)
{
    return (const struct interned *)(const void *)(text - offsetof(struct interned, text));
}

static const char **find_name(const struct tir_interner *interner, uint64_t hash, tir_str s)
{
    uint32_t mask = interner->capacity - 1;
    for (uint32_t i = (uint32_t)(hash ^ hash >> 32) & mask;; i = (i + 1) & mask) {
        const char **slot = &interner->slots[i];
        if (!*slot)
            return slot;
        const struct interned *name = interned_of(*slot);
        if (name->hash == hash && tir_str_equal((tir_str){name->text, name->len}, s))
            return slot;
    }
}

static void grow_names(struct tir_interner *interner)
{
    struct tir_interner old = *interner;
    interner->capacity = old.capacity ? old.capacity * 2 : 64;
    interner->slots = arena_array(interner->arena, const char *, interner->capacity);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (!old.slots[i])
            continue;
        const struct interned *name = interned_of(old.slots[i]);
        *find_name(interner, name->hash, (tir_str){name->text, name->len}) = name->text;
    }
}

const char *tir_intern(struct tir_interner *interner, tir_str s)
{
    if (interner->count * 2 >= interner->capacity)
        grow_names(interner);
    uint64_t hash = tir_hash_bytes(s.ptr, s.len, 0);
    const char **slot = find_name(interner, hash, s);
    if (*slot)
        return *slot;
    struct interned *name = tir_arena_alloc(interner->arena, sizeof *name + s.len + 1);
    name->hash = hash;
    name->len = s.len;
    if (s.len)
        memcpy(name->text, s.ptr, s.len);
    interner->count++;
    *slot = name->text;
    return *slot;
}

const char *tir_intern_cstr(struct tir_interner *interner, const char *terminated)
{
    return tir_intern(interner, tir_str_of(terminated));
}
