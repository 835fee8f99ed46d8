// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores by the tensor copy engine that need no wait between them: they go to different places.
//
// The engine starts its copies in order and may end them in any. Two of one tensor are apart where
// some dimension says so: their starts are the same sum of values but for a constant, as those of
// the chunks of one tile are, and the constant is at least the box. In a loop, the store of a later
// round counts too: each loop around both must move a dimension of its own, by the box at least.
// Different tiles of a tiles loop are different places: the language says so.

#include "pass/sync/barrier.h"

#include <string.h>

enum { TERMS = 8 };

struct start { // a start in one dimension: constant + sum of factor * value
    int64_t constant, factor[TERMS];
    const struct tir_value *value[TERMS];
    uint32_t count;
    bool known;
};

static void add_term(struct start *s, const struct tir_value *v, int64_t factor)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->value[i] == v) {
            s->known &= tir_add_checked(s->factor[i], factor, &s->factor[i]);
            return;
        }
    s->known &= s->count < TERMS;
    if (!s->known)
        return;
    s->value[s->count] = v;
    s->factor[s->count++] = factor;
}

// Adds factor * v.
static void take_apart(struct start *s, struct tir_value *v, int64_t factor, uint32_t depth)
{
    const struct tir_inst *by = v->def;
    int64_t number, product;
    if (tir_is_const_int(v, &number)) {
        s->known &= tir_mul_checked(number, factor, &product) &&
                    tir_add_checked(s->constant, product, &s->constant);
    } else if (by && depth && (by->op == TIR_OP_ADD || by->op == TIR_OP_SUB)) {
        take_apart(s, by->operands[0], factor, depth - 1);
        take_apart(s, by->operands[1], by->op == TIR_OP_SUB ? -factor : factor, depth - 1);
    } else if (by && depth && by->op == TIR_OP_MUL && tir_is_const_int(by->operands[1], &number)) {
        s->known &= tir_mul_checked(number, factor, &product);
        if (s->known)
            take_apart(s, by->operands[0], product, depth - 1);
    } else {
        add_term(s, v, factor);
    }
}

static struct start start_of(struct tir_value *v)
{
    struct start s = {.known = true};
    take_apart(&s, v, 1, TERMS);
    return s;
}

// Are a and b the same sum but for the constant?
static bool same_terms(const struct start *a, const struct start *b)
{
    if (!a->known || !b->known || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t j = 0;
        while (j < b->count && b->value[j] != a->value[i])
            j++;
        if (j == b->count || b->factor[j] != a->factor[i])
            return false;
    }
    return true;
}

struct around { // the loops around both stores, the innermost first
    const struct tir_inst *loops[TERMS];
    uint32_t count;
};

static bool is_made_in(const struct tir_value *v, const struct tir_inst *loop)
{
    const struct tir_block *block = v->def ? v->def->block : v->block;
    while (block && block != loop->regions[0])
        block = block->owner ? block->owner->block : NULL;
    return block;
}

// False: too many, or one that does not count.
static bool find_loops(const struct tir_inst *x, const struct tir_inst *y, struct around *around)
{
    for (const struct tir_inst *up = x->block->owner; up && up->op != TIR_OP_TILES;
         up = up->block->owner) {
        const bool is_loop = up->op == TIR_OP_FOR || up->op == TIR_OP_WHILE;
        if (!is_loop || !tir_block_contains(up->regions[up->region_count - 1], y))
            continue;
        if (up->op == TIR_OP_WHILE || around->count == TERMS)
            return false;
        around->loops[around->count++] = up;
    }
    return true;
}

static uint64_t size_of(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static bool changes(const struct around *around, const struct start *s)
{
    for (uint32_t i = 0; around->count && i < s->count; i++)
        if (is_made_in(s->value[i], around->loops[around->count - 1]))
            return true;
    return false;
}

// By how much a round of the loop moves the start; 0: by nothing that is known, or more than the
// loop's variable changes it.
static uint64_t moved_by(const struct around *around, const struct start *s, uint32_t loop)
{
    const struct tir_inst *of = around->loops[loop], *outermost = around->loops[around->count - 1];
    int64_t by = 0, step;
    for (uint32_t i = 0; i < s->count; i++)
        if (is_made_in(s->value[i], outermost) &&
            (s->value[i] != of->regions[0]->args[0] ||
             !tir_is_const_int(of->operands[TIR_FOR_STEP], &step) ||
             !tir_mul_checked(step, s->factor[i], &by)))
            return 0;
    return size_of(by);
}

static bool are_apart(const struct tir_inst *x, const struct tir_inst *y)
{
    const int64_t *box = tir_attr_find(x, TIR_ATTR_box)->list;
    const uint32_t rank = tir_ref_base(x)->type->rank;
    struct around around = {.count = 0};
    uint32_t moves = 0; // bits of loops whose other rounds store elsewhere
    bool apart = x == y;
    if (memcmp(box, tir_attr_find(y, TIR_ATTR_box)->list, rank * sizeof(*box)) != 0 ||
        !find_loops(x, y, &around))
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        const struct start a = start_of(tir_ref_indices(x)[d]);
        const struct start b = start_of(tir_ref_indices(y)[d]);
        int64_t distance;
        if (!same_terms(&a, &b) || !tir_sub_checked(a.constant, b.constant, &distance))
            continue;
        const uint64_t size = TIR_MAX((uint64_t)box[d], 1);
        const bool differs = size_of(distance) >= size;
        if (differs && !changes(&around, &a))
            return true;
        apart |= differs;
        for (uint32_t l = 0; l < around.count; l++)
            if (moved_by(&around, &a, l) >= size_of(distance) + size)
                moves |= 1u << l;
    }
    return apart && moves == (1u << around.count) - 1;
}

bool tir_stores_in_any_order(const struct tir_inst *x, const struct tir_inst *y)
{
    const enum tir_word kind = tir_attr_word(x, TIR_ATTR_kind, TIR_WORD_NONE);
    return kind == tir_attr_word(y, TIR_ATTR_kind, TIR_WORD_NONE) &&
           (kind != TIR_WORD_NONE || are_apart(x, y));
}
