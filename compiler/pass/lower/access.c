// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, memory: loads and stores of tiles as accesses of one thread, in words and vectors.
// Where they are in global memory is in global.c, in shared and local memory in walk.c.

#include "pass/lower/access.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

// A scalar access in tile code is done by one thread, unless it speaks of threads; a tile's by the
// owner of each element.
struct tir_value *tir_lower_writer(struct lower *lo, const struct tir_inst *inst,
                                   const struct tir_layout *l)
{
    if (l)
        return tir_lower_is_owner(lo, l);
    if (lo->by_thread || tir_attr_int(inst, TIR_ATTR_by_thread, 0))
        return NULL;
    return tir_binary(&lo->b, TIR_OP_EQ, tir_lower_tid(lo), tir_lower_i32(lo, 0));
}

void tir_lower_set_cache(struct lower *lo, struct tir_inst *access, const struct lower_place *p)
{
    if (p->cache)
        tir_set_word(lo->f, access, TIR_ATTR_cache, p->cache);
}

void tir_lower_ld_vector(struct lower *lo, const struct lower_place *p, enum tir_elem elem,
                         uint32_t count, struct tir_value **out)
{
    bool is_bool = elem == TIR_BOOL; // a byte in memory
    const struct tir_type *types[16];
    for (uint32_t i = 0; i < count; i++)
        types[i] = tir_type_scalar(lo->types, is_bool ? TIR_U8 : elem);
    struct tir_value *operands[] = {p->base, p->at, p->pred};
    struct tir_inst *ld = tir_build(&lo->b, TIR_OP_LD, operands, 3, types, count, 0);
    tir_set_int(lo->f, ld, TIR_ATTR_width, count * TIR_MAX(1, tir_elems[elem].bits / 8));
    if (p->offset)
        tir_set_int(lo->f, ld, TIR_ATTR_offset, p->offset);
    tir_lower_set_cache(lo, ld, p);
    for (uint32_t i = 0; i < count; i++)
        out[i] = is_bool ? tir_binary(&lo->b, TIR_OP_NE, ld->results[i],
                                      tir_const_int(lo->f, types[i], 0))
                         : ld->results[i];
}

void tir_lower_st_vector(struct lower *lo, const struct lower_place *p, uint32_t count,
                         struct tir_value *const *values)
{
    struct tir_value *operands[3 + 16] = {p->base, p->at, p->pred};
    for (uint32_t i = 0; i < count; i++)
        operands[3 + i] =
            values[i]->type == lo->boolean
                ? tir_lower_cast(lo, &lo->b, values[i], tir_type_scalar(lo->types, TIR_U8))
                : values[i];
    struct tir_inst *st = tir_build(&lo->b, TIR_OP_ST, operands, 3 + count, NULL, 0, 0);
    tir_set_int(lo->f, st, TIR_ATTR_width,
                count * TIR_MAX(1, tir_elems[values[0]->type->elem].bits / 8));
    if (p->offset)
        tir_set_int(lo->f, st, TIR_ATTR_offset, p->offset);
    tir_lower_set_cache(lo, st, p);
}

// Of a row that begins and ends anywhere.
static bool is_of_row(const struct lower_access *a)
{
    return !a->walk && a->global.past;
}

// Whether registers that move together are all in the mask or all outside: where the mask was
// repeated along their dimension they have one value of it.
static bool is_mask_of_vectors(struct lower *lo, const struct lower_access *a)
{
    for (uint32_t r = 0; r < a->count; r++)
        for (uint32_t i = 1; i < a->vector.count && tir_lower_leads(a->vector, r); i++)
            if (tir_lower_register(lo, a->mask, r) !=
                tir_lower_register(lo, a->mask, tir_lower_together(a->vector, r, i)))
                return false;
    return true;
}

void tir_lower_open_access(struct lower *lo, const struct tir_inst *inst,
                           const struct tir_type *tile, struct tir_value *mask,
                           struct lower_access *a)
{
    a->layout = tir_type_is_tile(tile) ? tile->layout : NULL;
    a->count = tir_lower_register_count(tile);
    a->mask = mask;
    a->walk = NULL;
    if (tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL) {
        a->global = tir_lower_open_global(lo, inst, a->layout);
        a->vector = a->global.vector;
    } else {
        a->walk = tir_lower_walk_slice(lo, inst, a->layout);
        a->vector = tir_lower_walk_vector(a->walk);
    }
    if (mask && tir_type_is_tile(mask->type) && !is_mask_of_vectors(lo, a)) {
        a->vector.count = 1;
        a->global.past = NULL;
        a->global.limit = "the mask may separate them";
    }
}

// Elements that lie in a row in memory and that a warp moves with one instruction.
static int64_t row_of_warp(const struct lower_access *a)
{
    const struct lower_global *g = &a->global;
    const struct lower_side *s = &g->sides[g->rank - 1];
    if (s->stride || s->box <= 0)
        return 1;
    const struct tir_layout *l = a->layout;
    int64_t row = 1, lanes = 1;
    for (uint32_t i = l->first[s->tile_dim + 1]; i-- > l->first[s->tile_dim];) {
        const struct tir_iter *iter = &l->iters[i];
        if (iter->axis == TIR_AXIS_REG && lanes == 1 && row < a->vector.count) {
            row *= TIR_MIN(iter->extent, a->vector.count / row);
            if (row == a->vector.count && iter->extent > row)
                break;
        } else if (iter->axis == TIR_AXIS_LANE) {
            row *= iter->extent;
            lanes *= iter->extent;
        } else if (iter->extent > 1) {
            break;
        }
    }
    return row;
}

// How wide a tile's accesses of global memory are, and why no wider.
void tir_lower_tell_width(struct lower *lo, const struct tir_inst *inst,
                          const struct lower_access *a)
{
    if (a->walk || !a->layout || !a->global.rank)
        return;
    const struct lower_global *g = &a->global;
    const char *what = inst->op == TIR_OP_LOAD ? "load" : "store";
    const char *name = g->base->name ? g->base->name : "a tensor";
    const uint32_t at_once = a->vector.count * g->bytes;
    const int64_t row = row_of_warp(a) * g->bytes;
    const char *limit =
        g->sides[g->rank - 1].stride ? "the innermost stride is not known to be 1" : g->limit;
    if (at_once < 16)
        tir_receipt_refuse(lo->cx, TIR_TOPIC_COPY, TIR_WISH_NONE, inst->span,
                           "%s of %s: %u bytes at once, because %s; %lld in a row for a warp", what,
                           name, at_once, limit, (long long)row);
    else
        tir_receipt_add(lo->cx, TIR_TOPIC_COPY, inst->span,
                        "%s of %s: %u bytes at once, %lld in a row for a warp", what, name, at_once,
                        (long long)row);
}

struct lower_place tir_lower_place_of(struct lower *lo, struct lower_access *a, uint32_t reg)
{
    struct lower_place p =
        a->walk ? tir_lower_walk_at(lo, a->walk, reg) : tir_lower_element_at(&a->global, reg);
    if (a->mask)
        p.pred = tir_lower_and(lo, p.pred, tir_lower_register(lo, a->mask, reg));
    return p;
}

// Rows that begin and end anywhere (askew.c).
static struct lower_row row_of(struct lower *lo, const struct lower_access *a)
{
    const struct lower_global *g = &a->global;
    const struct lower_side *s = &g->sides[g->rank - 1];
    const struct lower_bound *bound = &s->bound;
    struct tir_value *zero = tir_const_int(lo->f, bound->position->type, 0);
    struct lower_row row = {.elem = g->elem, .is_askew = g->is_askew, .past = g->past};
    row.before = tir_binary(&lo->b, TIR_OP_SUB, s->whole ? s->whole : zero, bound->position);
    row.wraps = tir_attr_int(g->inst, TIR_ATTR_wraps, 0);
    row.columns = s->box;
    row.after = tir_binary(&lo->b, TIR_OP_SUB, bound->extent, bound->position);
    if (!g->is_askew)
        row.lies = tir_binary(&lo->b, TIR_OP_EQ, g->past, zero);
    return row;
}

static struct lower_piece *pieces_of(struct lower *lo, struct lower_access *a,
                                     struct tir_value *owner, struct tir_value *stored)
{
    const struct lower_global *g = &a->global;
    struct lower_piece *pieces = arena_array(lo->cx->scratch, struct lower_piece, a->count),
                       *p = pieces;
    for (uint32_t r = 0; r < a->count; r++) {
        if (!tir_lower_leads(a->vector, r))
            continue;
        int64_t coord[TIR_MAX_RANK];
        tir_layout_coord(a->layout, (struct tir_layout_at){{r, 0, 0}}, coord);
        p->column = coord[g->sides[g->rank - 1].tile_dim];
        p->place = tir_lower_place_of(lo, a, r);
        p->place.pred = tir_lower_and(lo, owner, p->place.pred);
        for (uint32_t i = 0; stored && i < a->vector.count; i++)
            p->elements[i] = tir_lower_register(lo, stored, tir_lower_together(a->vector, r, i));
        p++;
    }
    return pieces;
}

static void load_row(struct lower *lo, struct lower_access *a, struct tir_value *pad,
                     struct tir_value **out)
{
    struct lower_row row = row_of(lo, a);
    row.pad = pad ? tir_const_element(lo->f, pad) : NULL;
    struct lower_piece *pieces = pieces_of(lo, a, NULL, NULL), *p = pieces;
    tir_lower_load_row(lo, &row, pieces, a->count / a->vector.count);
    for (uint32_t r = 0; r < a->count; r++) {
        if (!tir_lower_leads(a->vector, r))
            continue;
        for (uint32_t i = 0; i < a->vector.count; i++)
            out[tir_lower_together(a->vector, r, i)] = p->elements[i];
        p++;
    }
}

void tir_lower_load(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *result = inst->results[0], *pad = inst->operands[TIR_LOAD_PAD];
    struct lower_access a;
    tir_lower_open_access(lo, inst, result->type, inst->operands[TIR_LOAD_MASK], &a);
    tir_lower_tell_width(lo, inst, &a);
    struct tir_value **out = tir_lower_new_registers(lo, a.count);
    const bool is_row = is_of_row(&a);
    if (is_row)
        load_row(lo, &a, pad, out);
    for (uint32_t r = 0; !is_row && r < a.count; r++) {
        if (!tir_lower_leads(a.vector, r))
            continue;
        struct lower_place p = tir_lower_place_of(lo, &a, r);
        struct tir_value *values[16];
        tir_lower_ld_vector(lo, &p, tir_ref_base(inst)->type->elem, a.vector.count, values);
        for (uint32_t i = 0; i < a.vector.count; i++) {
            uint32_t at = tir_lower_together(a.vector, r, i);
            out[at] = values[i];
            if (!pad || !p.pred)
                continue;
            struct tir_value *choice[] = {p.pred, out[at], tir_lower_register(lo, pad, at)};
            out[at] = tir_build1(&lo->b, TIR_OP_WHERE, out[at]->type, choice, 3);
        }
    }
    if (tir_rounds(inst, result))
        for (uint32_t r = 0; r < a.count; r++)
            out[r] = tir_lower_cast(lo, &lo->b, out[r], tir_type_scalar(lo->types, TIR_TF32));
    tir_lower_set_registers(lo, result, out);
}

void tir_lower_store(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *v = inst->operands[TIR_STORE_VALUE];
    struct lower_access a;
    tir_lower_open_access(lo, inst, v->type, inst->operands[TIR_STORE_MASK], &a);
    tir_lower_tell_width(lo, inst, &a);
    struct tir_value *owner = tir_ref_base(inst)->type->space == TIR_SPACE_LOCAL
                                  ? NULL
                                  : tir_lower_writer(lo, inst, a.layout);
    if (is_of_row(&a)) {
        const struct lower_row row = row_of(lo, &a);
        tir_lower_store_row(lo, &row, pieces_of(lo, &a, owner, v), a.count / a.vector.count);
        return;
    }
    for (uint32_t r = 0; r < a.count; r++) {
        if (!tir_lower_leads(a.vector, r))
            continue;
        struct lower_place p = tir_lower_place_of(lo, &a, r);
        p.pred = tir_lower_and(lo, owner, p.pred);
        struct tir_value *values[16];
        for (uint32_t i = 0; i < a.vector.count; i++)
            values[i] = tir_lower_register(lo, v, tir_lower_together(a.vector, r, i));
        tir_lower_st_vector(lo, &p, a.vector.count, values);
    }
}

// A line is printed once, as a scalar is stored once.
void tir_lower_print(struct lower *lo, struct tir_inst *inst)
{
    struct tir_value *owner = tir_lower_writer(lo, inst, NULL);
    struct tir_builder b = owner ? tir_build_if(&lo->b, owner) : lo->b;
    struct tir_map map;
    tir_map_init(&map, lo->cx->scratch);
    tir_clone_inst(&b, inst, &map);
}
