// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, askew: vectors of rows that begin and end anywhere in memory.
//
// Turned tiles (compile/askew.c) have vectors that lie at multiples of 16 bytes (the attribute
// begins). A vector moves at once if it is of the row as a whole, and lies there indeed. Others
// have vectors that lie anywhere (the attribute askew), as far from a multiple of 8 bytes in all
// threads:
//
//     vector            [ d  e  f  g ]
//     memory     [ c  d ][ e  f ][ g  h ]     past = 1
//
// Three parts of 8 bytes are loaded, and shifted by a word or none and within words.
//
// What is not of the row as a whole goes element by element, in a loop over the vectors of a thread
// that are cut, which few threads enter and most of these for one vector: the others of their CTA
// wait for them. So nothing outside of the row is touched, and tests of elements take no registers
// beside the loop. All vectors of an access are on their way before anything waits for one.

#include "ir/walk.h"
#include "pass/lower/lower.h"

enum { VECTOR = 16, GRAIN = 8, WORD = 4, WORDS = TIR_ROW_WORDS, GRAIN_WORDS = GRAIN / WORD };

static uint32_t elements_of(const struct lower_row *row, uint32_t bytes)
{
    return bytes * 8 / tir_elems[row->elem].bits;
}

// Does before <= low and high < after hold? The thread's part is in what constants are compared
// with.
static struct tir_value *is_between(struct lower *lo, struct tir_value *before, int64_t low,
                                    int64_t high, struct tir_value *after)
{
    const struct tir_type *t = before->type;
    struct tir_value *begins = tir_binary(&lo->b, TIR_OP_LE, before, tir_const_int(lo->f, t, low));
    struct tir_value *ends = tir_binary(&lo->b, TIR_OP_LT, tir_const_int(lo->f, t, high), after);
    return tir_lower_and(lo, begins, ends);
}

static struct tir_value *is_below(struct lower *lo, int64_t column, struct tir_value *bound)
{
    return tir_binary(&lo->b, TIR_OP_LT, tir_const_int(lo->f, bound->type, column), bound);
}

// May columns of the piece stand for others?
static bool may_wrap(const struct lower_row *row, const struct lower_piece *piece)
{
    return piece->column < row->wraps;
}

// Says of each vector whether it moves at once, and whether it does not though elements of it are
// in the row.
static void choose(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                   uint32_t count)
{
    const int64_t rest = elements_of(row, VECTOR) - 1;
    const int64_t moved = elements_of(row, row->is_askew ? VECTOR + GRAIN : VECTOR) - 1;
    struct tir_value *before = row->before, *after = row->after;
    if (row->is_askew) {
        before = tir_binary(&lo->b, TIR_OP_ADD, before, row->past);
        after = tir_binary(&lo->b, TIR_OP_ADD, after, row->past);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct lower_piece *p = &pieces[i];
        const int64_t c = p->column;
        p->whole = tir_lower_and(lo, is_between(lo, before, c, c + moved, after), row->lies);
        p->cut = may_wrap(row, p) ? is_below(lo, c, row->after)
                                  : is_between(lo, row->before, c + rest, c, row->after);
        p->cut = tir_lower_and(lo, p->cut, tir_unary(&lo->b, TIR_OP_NOT, p->whole));
        p->whole = tir_lower_and(lo, p->place.pred, p->whole);
        p->cut = tir_lower_and(lo, p->place.pred, p->cut);
    }
}

// In place of a vector that is not loaded.
static void pad_words(struct lower *lo, const struct lower_row *row, struct lower_piece *piece)
{
    struct tir_value *parts[] = {row->pad, row->pad, row->pad, row->pad};
    struct tir_value *pad = tir_lower_joined(lo, lo->u32, parts, tir_lower_in_word(row->elem));
    for (uint32_t w = 0; w < WORDS; w++) {
        struct tir_value *choice[] = {piece->whole, piece->words[w], pad};
        piece->words[w] = tir_build1(&lo->b, TIR_OP_WHERE, lo->u32, choice, 3);
    }
}

// Of vectors of memory the 16 bytes that begin `past` elements behind the first: a word further or
// not, and within words by a shift of two of them.
static void shift(struct lower *lo, const struct lower_row *row, struct tir_value **words)
{
    const uint32_t parts = tir_lower_in_word(row->elem);
    const struct tir_type *u64 = tir_type_scalar(lo->types, TIR_U64);
    struct tir_value *past = tir_lower_cast(lo, &lo->b, row->past, lo->u32);
    struct tir_value *further = tir_const_int(lo->f, lo->u32, parts);
    further = tir_binary(&lo->b, TIR_OP_AND, past, further);
    further = tir_binary(&lo->b, TIR_OP_NE, further, tir_const_int(lo->f, lo->u32, 0));
    for (uint32_t w = 0; w <= WORDS; w++) {
        struct tir_value *choice[] = {further, words[w + 1], words[w]};
        words[w] = tir_build1(&lo->b, TIR_OP_WHERE, lo->u32, choice, 3);
    }
    if (parts == 1)
        return;
    struct tir_value *bits =
        tir_binary(&lo->b, TIR_OP_AND, past, tir_const_int(lo->f, lo->u32, parts - 1));
    bits = tir_lower_mul_const(lo, &lo->b, bits, tir_elems[row->elem].bits);
    bits = tir_lower_cast(lo, &lo->b, bits, u64);
    for (uint32_t w = 0; w < WORDS; w++) {
        struct tir_value *both = tir_lower_joined(lo, u64, words + w, 2);
        words[w] = tir_lower_cast(lo, &lo->b, tir_binary(&lo->b, TIR_OP_SHR, both, bits), lo->u32);
    }
}

// The words of all pieces.
static void load_words(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                       uint32_t count)
{
    struct tir_value *back = NULL;
    choose(lo, row, pieces, count);
    if (row->is_askew)
        back = tir_lower_mul_const(lo, &lo->b, row->past, tir_elems[row->elem].bits / 8);
    for (uint32_t i = 0; i < count; i++) {
        struct lower_place p = pieces[i].place;
        p.pred = pieces[i].whole;
        p.at = back ? tir_binary(&lo->b, TIR_OP_SUB, p.at, back) : p.at;
        const uint32_t at_once = back ? GRAIN_WORDS : WORDS,
                       most = back ? WORDS + GRAIN_WORDS : WORDS;
        for (uint32_t w = 0; w < most; w += at_once, p.offset += GRAIN)
            tir_lower_ld_vector(lo, &p, TIR_U32, at_once, pieces[i].words + w);
    }
    for (uint32_t i = 0; back && i < count; i++)
        shift(lo, row, pieces[i].words);
    for (uint32_t i = 0; row->pad && i < count; i++)
        pad_words(lo, row, &pieces[i]);
    tir_lower_load_rest(lo, row, pieces, count);
}

void tir_lower_unpack_word(struct lower *lo, enum tir_elem elem, struct tir_value *word,
                           struct tir_value **out)
{
    const uint32_t parts = tir_lower_in_word(elem);
    const struct tir_type *type = tir_type_scalar(lo->types, elem);
    const struct tir_type *types[WORD] = {type, type, type, type};
    memcpy(out, tir_build(&lo->b, TIR_OP_UNPACK, &word, 1, types, parts, 0)->results,
           parts * sizeof(*out));
}

void tir_lower_load_row(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                        uint32_t count)
{
    const uint32_t parts = tir_lower_in_word(row->elem);
    load_words(lo, row, pieces, count);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t w = 0; w < WORDS; w++)
            tir_lower_unpack_word(lo, row->elem, pieces[i].words[w],
                                  pieces[i].elements + (size_t)w * parts);
}

void tir_lower_store_row(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                         uint32_t count)
{
    const uint32_t parts = tir_lower_in_word(row->elem);
    choose(lo, row, pieces, count);
    for (uint32_t i = 0; i < count; i++) {
        struct lower_piece *p = &pieces[i];
        for (uint32_t w = 0; w < WORDS; w++)
            p->words[w] = tir_lower_joined(lo, lo->u32, p->elements + (size_t)w * parts, parts);
        struct lower_place at = p->place;
        at.pred = p->whole;
        tir_lower_st_vector(lo, &at, WORDS, p->words);
    }
    tir_lower_store_rest(lo, row, pieces, count);
}
