// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, askew: vectors of rows that do not move as a whole, element by element.
//
// A thread goes through its vectors that are cut. Few threads have any, and most of these have one:
// what a row begins in, ends in, or wraps in. The CTA waits for them, so what counts is how many
// instructions one vector takes, and not all of the thread's:
//
//     todo = a bit for each vector that is cut
//     while (todo) {
//         one = its lowest bit;  place, before, after = those of that vector
//         for each element: load it if it is in the row
//         the words of that vector = these elements;  todo -= one
//     }
//
// Where a warp has whole rows, its threads have several: then all vectors move at once.

#include "ir/walk.h"
#include "pass/lower/lower.h"
#include "pass/sync/crew.h"

enum { MOST = 32, LANES = 32 }; // vectors of a loop

// A vector: its element i is in the row where before <= i < after.
struct spot {
    struct lower_place place;
    struct tir_value *before, *after;
};

struct rest {
    struct lower *lo;
    const struct lower_row *row;
    struct lower_piece *pieces;
    uint32_t count;
    struct tir_inst *owner; // the loop or the branch
    struct tir_builder outside;
    struct tir_value *next;     // bits that are left behind this round
    struct tir_value *is[MOST]; // is it the round of that piece?
    struct spot spot;           // of the round's piece
};

static struct tir_value *bits(struct lower *lo, int64_t value)
{
    return tir_const_int(lo->f, lo->u32, value);
}

// Elements.

static struct lower_place element_at(const struct rest *r, const struct spot *s, uint32_t i)
{
    struct lower *lo = r->lo;
    struct tir_value *number = tir_const_int(lo->f, s->before->type, i);
    struct lower_place p = s->place;
    p.offset += (int64_t)i * tir_elems[r->row->elem].bits / 8;
    p.pred = tir_lower_and(lo, p.pred, tir_binary(&lo->b, TIR_OP_LE, s->before, number));
    p.pred = tir_lower_and(lo, p.pred, tir_binary(&lo->b, TIR_OP_LT, number, s->after));
    return p;
}

// The element that it stands for where it is in front of the row.
static struct lower_place wrapped_at(const struct rest *r, const struct spot *s, uint32_t i)
{
    struct lower *lo = r->lo;
    const struct tir_type *t = s->before->type;
    struct tir_value *first = tir_const_int(lo->f, t, i);
    struct tir_value *last = tir_const_int(lo->f, t, r->row->columns + i);
    struct lower_place p = s->place;
    p.offset += (r->row->columns + (int64_t)i) * tir_elems[r->row->elem].bits / 8;
    p.pred = tir_lower_and(lo, p.pred, tir_binary(&lo->b, TIR_OP_LT, first, s->before));
    p.pred = tir_lower_and(lo, p.pred, tir_binary(&lo->b, TIR_OP_LT, last, s->after));
    return p;
}

static struct tir_value *load_one(struct lower *lo, const struct lower_row *row,
                                  const struct lower_place *p, struct tir_value *other)
{
    struct tir_value *v;
    tir_lower_ld_vector(lo, p, row->elem, 1, &v);
    struct tir_value *choice[] = {p->pred, v, other};
    return other ? tir_build1(&lo->b, TIR_OP_WHERE, v->type, choice, 3) : v;
}

static struct tir_value *load_word(const struct rest *r, const struct spot *s, uint32_t w)
{
    const uint32_t parts = tir_lower_in_word(r->row->elem);
    struct tir_value *elements[4];
    for (uint32_t i = 0; i < parts; i++) {
        struct lower_place p = element_at(r, s, w * parts + i);
        elements[i] = load_one(r->lo, r->row, &p, r->row->pad);
        if (!r->row->wraps)
            continue;
        p = wrapped_at(r, s, w * parts + i);
        elements[i] = load_one(r->lo, r->row, &p, elements[i]);
    }
    return tir_lower_joined(r->lo, r->lo->u32, elements, parts);
}

static void store_word(const struct rest *r, const struct spot *s, uint32_t w,
                       struct tir_value *word)
{
    const uint32_t parts = tir_lower_in_word(r->row->elem);
    struct tir_value *elements[4];
    tir_lower_unpack_word(r->lo, r->row->elem, word, elements);
    for (uint32_t i = 0; i < parts; i++) {
        struct lower_place p = element_at(r, s, w * parts + i);
        tir_lower_st_vector(r->lo, &p, 1, &elements[i]);
        if (!r->row->wraps)
            continue;
        p = wrapped_at(r, s, w * parts + i);
        tir_lower_st_vector(r->lo, &p, 1, &elements[i]);
    }
}

static void replace_if(struct lower *lo, struct tir_value *is, struct tir_value *by,
                       struct tir_value **word)
{
    struct tir_value *choice[] = {is, by, *word};
    *word = tir_build1(&lo->b, TIR_OP_WHERE, lo->u32, choice, 3);
}

// One after the other.

// One of the values, by the round's piece.
static struct tir_value *chosen(const struct rest *r, struct tir_value *const *values)
{
    struct tir_value *v = values[r->count - 1];
    for (uint32_t i = r->count - 1; i-- > 0;) {
        struct tir_value *choice[] = {r->is[i], values[i], v};
        if (v != values[i])
            v = tir_build1(&r->lo->b, TIR_OP_WHERE, v->type, choice, 3);
    }
    return v;
}

// Does the same number of bytes lie between the column and the place of each piece?
static bool lies_by_column(const struct rest *r, int64_t bytes)
{
    const struct lower_piece *first = &r->pieces[0];
    for (uint32_t i = 1; i < r->count; i++) {
        const struct lower_piece *p = &r->pieces[i];
        if (p->place.at != first->place.at ||
            p->place.offset - p->column * bytes != first->place.offset - first->column * bytes)
            return false;
    }
    return true;
}

static struct lower_place choose_place(const struct rest *r, struct tir_value *column)
{
    struct lower *lo = r->lo;
    const int64_t bytes = tir_elems[r->row->elem].bits / 8;
    struct lower_place place = r->pieces[0].place;
    place.pred = NULL; // there is a row, or the piece would not be cut
    if (lies_by_column(r, bytes)) {
        struct tir_value *by = tir_lower_cast(lo, &lo->b, column, place.at->type);
        by = tir_lower_mul_const(lo, &lo->b, by, bytes);
        place.at = tir_lower_add(lo, &lo->b, place.at, by);
        place.offset -= r->pieces[0].column * bytes;
        return place;
    }
    struct tir_value *ats[MOST];
    for (uint32_t i = 0; i < r->count; i++) {
        const struct lower_place *p = &r->pieces[i].place;
        ats[i] = tir_lower_add(lo, &lo->b, p->at, tir_const_int(lo->f, p->at->type, p->offset));
    }
    place.at = chosen(r, ats);
    place.offset = 0;
    return place;
}

static void choose_spot(struct rest *r)
{
    struct lower *lo = r->lo;
    struct tir_value *columns[MOST];
    for (uint32_t i = 0; i < r->count; i++)
        columns[i] = tir_const_int(lo->f, r->row->before->type, r->pieces[i].column);
    struct tir_value *column = chosen(r, columns);
    r->spot.place = choose_place(r, column);
    r->spot.before = tir_binary(&lo->b, TIR_OP_SUB, r->row->before, column);
    r->spot.after = tir_binary(&lo->b, TIR_OP_SUB, r->row->after, column);
}

// Begins the loop, which carries the words; they become those of the round.
static void begin_loop(struct rest *r, struct tir_value **words, uint32_t count)
{
    struct lower *lo = r->lo;
    struct tir_value **init = tir_lower_new_registers(lo, 1 + count);
    const struct tir_type **types =
        arena_array(lo->f->module->arena, const struct tir_type *, 1 + count);
    for (uint32_t i = 0; i < r->count; i++) {
        struct tir_value *choice[] = {r->pieces[i].cut, bits(lo, (int64_t)1 << i), bits(lo, 0)};
        struct tir_value *bit = tir_build1(&lo->b, TIR_OP_WHERE, lo->u32, choice, 3);
        init[0] = i ? tir_binary(&lo->b, TIR_OP_OR, init[0], bit) : bit;
    }
    for (uint32_t i = 0; i <= count; i++) {
        types[i] = lo->u32;
        init[i] = i ? words[i - 1] : init[0];
    }
    r->owner = tir_build(&lo->b, TIR_OP_WHILE, init, 1 + count, types, 1 + count, 2);
    struct tir_block *test = r->owner->regions[0], *body = r->owner->regions[1];
    for (uint32_t i = 0; i <= count; i++) {
        tir_block_add_arg(lo->f, test, lo->u32, NULL);
        struct tir_value *arg = tir_block_add_arg(lo->f, body, lo->u32, NULL);
        if (i)
            words[i - 1] = arg;
    }
    r->outside = lo->b;
    lo->b = tir_builder_at_end(lo->f, test);
    struct tir_value *goes_on = tir_binary(&lo->b, TIR_OP_NE, test->args[0], bits(lo, 0));
    tir_build_yield(&lo->b, &goes_on, 1);
    lo->b = tir_builder_at_end(lo->f, body);
    struct tir_value *todo = body->args[0];
    r->next =
        tir_binary(&lo->b, TIR_OP_AND, todo, tir_binary(&lo->b, TIR_OP_SUB, todo, bits(lo, 1)));
    struct tir_value *one = tir_binary(&lo->b, TIR_OP_SUB, todo, r->next);
    for (uint32_t i = 0; i < r->count; i++)
        r->is[i] = tir_binary(&lo->b, TIR_OP_EQ, one, bits(lo, (int64_t)1 << i));
    choose_spot(r);
}

// Ends the loop; the words become its results.
static void end_loop(struct rest *r, struct tir_value **words, uint32_t count)
{
    struct tir_value **yields = tir_lower_new_registers(r->lo, 1 + count);
    yields[0] = r->next;
    for (uint32_t i = 0; i < count; i++)
        yields[1 + i] = words[i];
    tir_build_yield(&r->lo->b, yields, 1 + count);
    r->lo->b = r->outside;
    for (uint32_t i = 0; i < count; i++)
        words[i] = r->owner->results[1 + i];
}

static void load_in_turn(struct rest *r, struct tir_value **words)
{
    begin_loop(r, words, r->count * TIR_ROW_WORDS);
    for (uint32_t w = 0; w < TIR_ROW_WORDS; w++) {
        struct tir_value *word = load_word(r, &r->spot, w);
        for (uint32_t i = 0; i < r->count; i++)
            replace_if(r->lo, r->is[i], word, &words[i * TIR_ROW_WORDS + w]);
    }
    end_loop(r, words, r->count * TIR_ROW_WORDS);
}

static void store_in_turn(struct rest *r)
{
    begin_loop(r, NULL, 0);
    for (uint32_t w = 0; w < TIR_ROW_WORDS; w++) {
        struct tir_value *words[MOST];
        for (uint32_t i = 0; i < r->count; i++)
            words[i] = r->pieces[i].words[w];
        store_word(r, &r->spot, w, chosen(r, words));
    }
    end_loop(r, NULL, 0);
}

// All at once.

static struct tir_value *is_any_cut(const struct rest *r)
{
    struct tir_value *any = r->pieces[0].cut;
    for (uint32_t i = 1; i < r->count; i++)
        any = tir_binary(&r->lo->b, TIR_OP_OR, any, r->pieces[i].cut);
    return any;
}

static struct spot spot_of(const struct rest *r, const struct lower_piece *p)
{
    struct lower *lo = r->lo;
    struct tir_value *column = tir_const_int(lo->f, r->row->before->type, p->column);
    struct spot s = {.place = p->place};
    s.place.pred = p->cut;
    s.before = tir_binary(&lo->b, TIR_OP_SUB, r->row->before, column);
    s.after = tir_binary(&lo->b, TIR_OP_SUB, r->row->after, column);
    return s;
}

static void load_at_once(struct rest *r, struct tir_value **words)
{
    struct lower *lo = r->lo;
    const uint32_t count = r->count * TIR_ROW_WORDS;
    const struct tir_type **types =
        arena_array(lo->f->module->arena, const struct tir_type *, count);
    for (uint32_t i = 0; i < count; i++)
        types[i] = lo->u32;
    struct tir_value *any = is_any_cut(r);
    r->owner = tir_build(&lo->b, TIR_OP_IF, &any, 1, types, count, 2);
    struct tir_builder other = tir_builder_at_end(lo->f, r->owner->regions[1]);
    tir_build_yield(&other, words, count);
    r->outside = lo->b;
    lo->b = tir_builder_at_end(lo->f, r->owner->regions[0]);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct spot s = spot_of(r, &r->pieces[i]);
        for (uint32_t w = 0; w < TIR_ROW_WORDS; w++)
            replace_if(lo, r->pieces[i].cut, load_word(r, &s, w), &words[i * TIR_ROW_WORDS + w]);
    }
    tir_build_yield(&lo->b, words, count);
    lo->b = r->outside;
    for (uint32_t i = 0; i < count; i++)
        words[i] = r->owner->results[i];
}

static void store_at_once(struct rest *r)
{
    struct lower *lo = r->lo;
    struct tir_value *any = is_any_cut(r);
    r->outside = lo->b;
    lo->b = tir_build_if(&r->outside, any);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct spot s = spot_of(r, &r->pieces[i]);
        for (uint32_t w = 0; w < TIR_ROW_WORDS; w++)
            store_word(r, &s, w, r->pieces[i].words[w]);
    }
    lo->b = r->outside;
}

// Does a warp have whole rows?
static bool has_whole_rows(const struct lower_row *row)
{
    return row->columns * tir_elems[row->elem].bits <= LANES * TIR_ROW_WORDS * 32;
}

void tir_lower_load_rest(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i += MOST) {
        struct rest r = {
            .lo = lo, .row = row, .pieces = pieces + i, .count = TIR_MIN(MOST, count - i)};
        struct tir_value *words[MOST * TIR_ROW_WORDS];
        const uint32_t all = r.count * TIR_ROW_WORDS;
        for (uint32_t w = 0; w < all; w++)
            words[w] = r.pieces[w / TIR_ROW_WORDS].words[w % TIR_ROW_WORDS];
        (has_whole_rows(row) ? load_at_once : load_in_turn)(&r, words);
        for (uint32_t w = 0; w < all; w++)
            r.pieces[w / TIR_ROW_WORDS].words[w % TIR_ROW_WORDS] = words[w];
    }
}

void tir_lower_store_rest(struct lower *lo, const struct lower_row *row, struct lower_piece *pieces,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i += MOST) {
        struct rest r = {
            .lo = lo, .row = row, .pieces = pieces + i, .count = TIR_MIN(MOST, count - i)};
        (has_whole_rows(row) ? store_at_once : store_in_turn)(&r);
    }
}
