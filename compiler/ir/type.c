// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interned types and their text.

#include "ir/type.h"

#include "ir/type_table.h"

struct tir_types *tir_types_new(struct tir_arena *arena)
{
    struct tir_types *types = arena_new(arena, struct tir_types);
    types->arena = arena;
    tir_map_init(&types->types, arena);
    tir_map_init(&types->layouts, arena);
    return types;
}

static bool equal(const struct tir_type *a, const struct tir_type *b)
{
    return a->elem == b->elem && a->space == b->space && a->rank == b->rank &&
           a->layout == b->layout && tir_type_same_shape(a, b);
}

static uint64_t hash(const struct tir_type *t)
{
    uint64_t h = tir_hash_bytes(t->shape, t->rank * sizeof(t->shape[0]), 0);
    const uint64_t kind = (uint64_t)t->elem | (uint64_t)t->space << 16 | (uint64_t)t->rank << 32;
    const uint64_t rest[2] = {kind, tir_map_key(t->layout)};
    return tir_hash_bytes(rest, sizeof(rest), h);
}

const struct tir_type *tir_type_get(struct tir_types *types, const struct tir_type *like)
{
    assert(like->rank <= TIR_MAX_RANK);
    uint64_t key = hash(like);
    struct tir_type_node *head = tir_map_get(&types->types, key);
    for (struct tir_type_node *node = head; node; node = node->next)
        if (equal(&node->type, like))
            return &node->type;
    struct tir_type_node *node = arena_new(types->arena, struct tir_type_node);
    node->type = *like;
    for (uint32_t d = like->rank; d < TIR_MAX_RANK; d++)
        node->type.shape[d] = 0;
    node->next = head;
    tir_map_set(&types->types, key, node);
    return &node->type;
}

const struct tir_type *tir_type_scalar(struct tir_types *types, enum tir_elem elem)
{
    const struct tir_type **known = &types->scalars[elem];
    if (!*known)
        *known = tir_type_get(types, &(struct tir_type){.elem = elem});
    return *known;
}

const struct tir_type *tir_type_tile(struct tir_types *types, enum tir_elem elem, uint32_t rank,
                                     const int64_t *shape)
{
    struct tir_type t = {.elem = elem, .rank = rank};
    for (uint32_t d = 0; d < rank; d++)
        t.shape[d] = shape[d];
    return tir_type_get(types, &t);
}

const struct tir_type *tir_type_with_elem(struct tir_types *types, const struct tir_type *t,
                                          enum tir_elem elem)
{
    if (t->elem == elem)
        return t;
    struct tir_type like = *t;
    like.elem = elem;
    return tir_type_get(types, &like);
}

const struct tir_type *tir_type_with_layout(struct tir_types *types, const struct tir_type *t,
                                            const struct tir_layout *layout)
{
    if (t->layout == layout)
        return t;
    struct tir_type like = *t;
    like.layout = layout;
    return tir_type_get(types, &like);
}

const struct tir_type *tir_type_adopt(struct tir_types *types, const struct tir_type *t)
{
    struct tir_type like = *t;
    like.layout = t->layout ? tir_layout_get(types, t->layout) : NULL;
    return tir_type_get(types, &like);
}

bool tir_type_same_shape(const struct tir_type *a, const struct tir_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return true;
}

void tir_shape_group(const struct tir_type *a, uint32_t *i, const struct tir_type *b, uint32_t *j)
{
    int64_t x = 1, y = 1;
    do {
        const bool takes_a = *i < a->rank && (x <= y || *j == b->rank);
        if (takes_a)
            x *= a->shape[(*i)++];
        else
            y *= b->shape[(*j)++];
    } while (x != y);
}

bool tir_type_differs_in_ones(const struct tir_type *a, const struct tir_type *b)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->shape[i] == 1)
            i++;
        while (j < b->rank && b->shape[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->shape[i++] != b->shape[j++])
            return false;
    }
}

int64_t tir_type_count(const struct tir_type *t)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        count *= t->shape[d];
    return count;
}

int64_t tir_type_bytes(const struct tir_type *t)
{
    return tir_ceil_div(tir_type_count(t) * tir_elems[t->elem].bits, 8);
}

int64_t tir_tmem_columns(const struct tir_type *t, bool is_pair)
{
    const int64_t rows = t->shape[t->rank - 2];
    const bool folds = tir_tmem_folds(rows, is_pair);
    const int64_t lanes = folds ? rows : tir_ceil_div(rows, TIR_TMEM_LANES) * TIR_TMEM_LANES;
    if (tir_tmem_is_scales(t)) {
        const int64_t columns = tir_type_count(t) / TIR_TMEM_SCALES / TIR_TMEM_SCALE_LANES;
        return rows % TIR_TMEM_LANES || t->shape[t->rank - 1] % TIR_TMEM_SCALES ||
                       columns > TIR_TMEM_COLUMNS
                   ? 0
                   : columns;
    }
    const int64_t bits =
        tir_type_count(t) / rows * lanes / TIR_TMEM_LANES * tir_elems[t->elem].bits;
    const int64_t row = t->shape[t->rank - 1] * tir_elems[t->elem].bits;
    return row % (folds ? 64 : 32) || bits > 32 * TIR_TMEM_COLUMNS ? 0 : bits / 32;
}

void tir_type_print(struct tir_text *out, const struct tir_type *t)
{
    static const char *const spaces[] = {"", "tensor ", "shared ", "cluster ", "local ", "tmem "};
    tir_text_format(out, "%s%s", spaces[t->space], tir_elems[t->elem].name);
    for (uint32_t d = 0; d < t->rank; d++) {
        tir_text_add(out, d ? STR(", ") : STR("["));
        if (t->space == TIR_SPACE_GLOBAL)
            tir_text_char(out, '_'); // the sizes are values of the kernel
        else
            tir_text_int(out, t->shape[d]);
    }
    if (t->rank)
        tir_text_char(out, ']');
    if (t->layout) {
        tir_text_add(out, STR(" in "));
        tir_layout_print(out, t->layout);
    }
}

tir_str tir_type_text(struct tir_arena *arena, const struct tir_type *t)
{
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    tir_type_print(&text, t);
    return tir_text_str(&text);
}
