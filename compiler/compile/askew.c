// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variant for whole rows that begin anywhere. Of a dense tensor with rows of an odd length few
// rows begin aligned, and an element at a time a row takes eight times as many accesses. But the
// vectors of memory that a row lies in are aligned, so threads take these: the tile turns until
// they are vectors of the tile.
//     for m in tiles(M) { Y[m:+1, 0:+4096] = f(X[m:+1, 0:+4096]); }
// becomes, where N + 7 <= 4096 and N >= 512,
//     for m in tiles(M) {
//         let s = askew(Y) + m * stride(Y, 0) & 7;       // elements from a multiple of 16 bytes on
//         Y[m:+1, (0 - s):+4096] = f(X[m:+1, (0 - s):+4096]);
//     }
// A tile of several rows has every eighth row, which all begin alike:
//     for m in tiles(M by 4) { Y[m:+4, 0:+1024] = f(X[m:+4, 0:+1024]); }
// becomes
//     for m in tiles(ceildiv(M, 32) * 32 by 4) {
//         let first = m / 32 * 32 + m / 4 % 8;
//         let at = first + 8 * iota(4);
//         Y[at, (0 - s):+1024] = f(X[at, (0 - s):+1024]);     // s: of row `first`
//     }
// So no row may depend on another one of its tile, or on where it is in it.
//
// Element c of a turned tile is what element c - s was, and the first s are what the last ones
// were. That is all that changes: the numbers that an iota counts turn too, so that masks say the
// same of each element, and what lies in front of the row is outside of the tensor, as what lies
// behind it was. So an operation that treats all elements alike, or combines them in any order,
// stays as it is. Others have no such variant.
//
// The rows of other tensors mostly begin as those of Y do; where they do not, their elements are
// moved by themselves. Vectors that all rows share, such as weights, are put together of two
// (pass/lower/askew.c).

#include "compile/askew.h"

#include "base/vec.h"
#include "compile/whole.h"
#include "ir/walk.h"
#include "pass/layout/extents.h"

enum { VECTOR = 16, LEAST = 8 }; // bytes; a row has this part of the columns, or more

struct askew {
    struct tir_func *f;
    struct tir_inst *tiles;
    struct tir_extents extents;
    uint32_t grid_dim;                  // along which the tile has
    int64_t rows;                       // so many rows, of which
    struct tir_value *start;            // this is the first, as the program has them
    const struct tir_tile_dim *lines;   // NULL: there is one
    const struct tir_inst *row;         // an access whose rows say how far the tiles turn
    const struct tir_tile_dim *columns; // that turn
    int64_t count;                      // of them
    VEC(struct tir_inst *) accesses;    // along them
    VEC(struct tir_inst *) iotas;
    VEC(struct tir_value *) lengths; // of the tensors along them
};

static bool turns(const struct askew *a, struct tir_tile_dim *dim)
{
    return tir_tile_dim_class(dim) == a->columns;
}

static bool is_access(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
}

// The dimensions of the tile that is loaded or stored; NULL: a scalar.
static struct tir_tile_dim *accessed(const struct askew *a, const struct tir_inst *access)
{
    const uint32_t value = TIR_STORE_VALUE;
    if (access->op == TIR_OP_LOAD)
        return a->extents.of[access->results[0]->id];
    return tir_type_is_tile(access->operands[value]->type)
               ? tir_extents_at(&a->extents, access, value)
               : NULL;
}

// Are the tile's rows those along dimension d?
static bool has_rows(const struct askew *a, const struct tir_inst *access, uint32_t d)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    return a->rows > 1 && box && box->list[d] == a->rows &&
           tir_ref_indices(access)[d] == a->start && tir_slice_stride(access, d) == 1;
}

// Has the access a part of one row, or of each of the tile's, from its beginning on?
static bool is_row(const struct askew *a, const struct tir_inst *access)
{
    const struct tir_type *t = tir_ref_base(access)->type;
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    struct tir_value *const *indices = tir_ref_indices(access);
    int64_t start;
    for (uint32_t d = 0; box && d + 1 < t->rank; d++)
        if (box->list[d] != 0 && box->list[d] != 1 && !has_rows(a, access, d))
            return false;
    return box && box->list[t->rank - 1] > 1 && tir_elems[t->elem].bits >= 8 &&
           tir_elems[t->elem].bits <= 32 && t->elem != TIR_BOOL &&
           tir_is_const_int(indices[t->rank - 1], &start) && !start;
}

// Are both rows of the same number?
static bool is_same_row(const struct tir_inst *a, const struct tir_inst *b)
{
    const uint32_t rank = tir_ref_base(a)->type->rank;
    if (tir_ref_base(b)->type->rank != rank || rank == 1)
        return false;
    for (uint32_t d = 0; d + 1 < rank; d++)
        if (tir_ref_indices(a)[d] != tir_ref_indices(b)[d])
            return false;
    return true;
}

// Is the number of the row known where a tile begins?
static bool is_known(const struct askew *a, const struct tir_inst *access)
{
    for (uint32_t d = 0; d + 1 < tir_ref_base(access)->type->rank; d++) {
        const struct tir_value *at = tir_ref_indices(access)[d];
        const struct tir_inst *maker = at->kind == TIR_VALUE_ARG ? at->block->owner : at->def;
        if (maker && maker != a->tiles && tir_is_inside(maker, a->tiles))
            return false;
    }
    return true;
}

// The dimension of the grid along which a tile has several rows, if any. False: there are two.
static bool find_rows(struct askew *a)
{
    const struct tir_attr *by = tir_attr_find(a->tiles, TIR_ATTR_by);
    uint32_t found = 0;
    a->rows = 1;
    for (uint32_t d = 0; d < by->list_count; d++) {
        if (by->list[d] == 1)
            continue;
        a->grid_dim = d;
        a->rows = by->list[d];
        a->start = a->tiles->regions[0]->args[d];
        found++;
    }
    return found <= 1;
}

// A row that is stored, or else loaded.
static bool find_row(struct askew *a)
{
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        if ((inst->op != TIR_OP_STORE && inst->op != TIR_OP_LOAD) ||
            !tir_param_of(a->f, tir_ref_base(inst)) || !is_row(a, inst) ||
            !is_same_row(inst, inst) || !is_known(a, inst))
            continue;
        const bool is_better = !a->row || (inst->op == TIR_OP_STORE && a->row->op == TIR_OP_LOAD);
        if (is_better)
            a->row = inst;
    }
    if (!a->row)
        return false;
    const struct tir_attr *box = tir_attr_find(a->row, TIR_ATTR_box);
    const uint32_t last = box->list_count - 1;
    a->columns = tir_tile_dim_class(&accessed(a, a->row)[tir_slice_dim(a->row, last)]);
    a->count = box->list[last];
    for (uint32_t d = 0; d < last; d++)
        if (has_rows(a, a->row, d))
            a->lines = tir_tile_dim_class(&accessed(a, a->row)[tir_slice_dim(a->row, d)]);
    if (a->rows > 1 && (!a->lines || a->lines == a->columns || a->lines->keeper))
        return false;
    return !a->columns->keeper;
}

// Is the dimension that of several rows?
static bool is_lines(const struct askew *a, struct tir_tile_dim *dim)
{
    return a->lines && tir_tile_dim_class(dim) == a->lines;
}

// Does the operation take the number of the first row only to say which rows it accesses, and are
// these all that its tile has?
static bool names_rows(const struct askew *a, const struct tir_inst *inst)
{
    if (a->rows == 1)
        return true;
    uint32_t uses = 0;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        uses += inst->operands[i] == a->start;
    struct tir_tile_dim *dims = is_access(inst) ? accessed(a, inst) : NULL;
    const struct tir_attr *box = dims ? tir_attr_find(inst, TIR_ATTR_box) : NULL;
    for (uint32_t d = 0; box && d < box->list_count; d++) {
        if (!box->list[d] || !is_lines(a, &dims[tir_slice_dim(inst, d)]))
            continue;
        if (!has_rows(a, inst, d) || !tir_param_of(a->f, tir_ref_base(inst)))
            return false;
        uses--;
    }
    return !uses;
}

static struct tir_value *extent_of(const struct askew *a, const struct tir_inst *access, uint32_t d)
{
    const struct tir_param_dim *dim = &tir_param_of(a->f, tir_ref_base(access))->dims[d];
    return dim->dim >= 0 ? a->f->dims[dim->dim].value : tir_const_index(a->f, dim->constant);
}

// A grid of several rows a tile is rounded up to spans of tiles. Are the rows that this adds
// outside of what inst writes?
static bool ends_with_grid(const struct askew *a, const struct tir_inst *inst)
{
    if (a->rows == 1 || !tir_has_trait(inst, TIR_WRITES) || inst->region_count ||
        inst->op == TIR_OP_ALLOC)
        return true;
    const struct tir_value *all = a->tiles->operands[a->grid_dim];
    const struct tir_attr *box = is_access(inst) ? tir_attr_find(inst, TIR_ATTR_box) : NULL;
    int64_t x, y;
    for (uint32_t d = 0; box && d < box->list_count; d++)
        if (has_rows(a, inst, d) && tir_param_of(a->f, tir_ref_base(inst))) {
            const struct tir_value *extent = extent_of(a, inst, d);
            return extent == all ||
                   (tir_is_const_int(extent, &x) && tir_is_const_int(all, &y) && x == y);
        }
    return false;
}

// Notes an access that turns. False: it is none of a tensor, or begins elsewhere.
static bool note_access(struct askew *a, struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct tir_tile_dim *dims = accessed(a, inst);
    bool any = false;
    for (uint32_t d = 0; dims && d < box->list_count; d++) {
        int64_t start;
        if (box->list[d] <= 1 || !turns(a, &dims[tir_slice_dim(inst, d)]))
            continue;
        if (!tir_param_of(a->f, tir_ref_base(inst)) || tir_slice_stride(inst, d) != 1 ||
            !tir_is_const_int(tir_ref_indices(inst)[d], &start) || start)
            return false;
        any = true;
    }
    if (any)
        vec_push(a->f->module->arena, &a->accesses, inst);
    return true;
}

// Is the operation the same on tiles that are turned?
static bool note(struct askew *a, struct tir_inst *inst)
{
    const int64_t axis = tir_attr_int(inst, TIR_ATTR_axis, 0);
    if (!names_rows(a, inst) || !ends_with_grid(a, inst))
        return false;
    switch (inst->op) {
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        return note_access(a, inst);
    case TIR_OP_IOTA:
        if (is_lines(a, &a->extents.of[inst->results[0]->id][axis]))
            return false;
        if (!turns(a, &a->extents.of[inst->results[0]->id][axis]))
            return true;
        vec_push(a->f->module->arena, &a->iotas, inst);
        return tir_elem_is_int(inst->results[0]->type->elem) &&
               tir_elems[inst->results[0]->type->elem].bits >= 32;
    case TIR_OP_REDUCE: // a function need not commute
        return !is_lines(a, &tir_extents_at(&a->extents, inst, TIR_REDUCE_X)[axis]) &&
               (tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) != TIR_WORD_kind_user ||
                !turns(a, &tir_extents_at(&a->extents, inst, TIR_REDUCE_X)[axis]));
    case TIR_OP_ROLE:
    case TIR_OP_SCOPE:
    case TIR_OP_SCAN:
    case TIR_OP_EXTRACT:
    case TIR_OP_DOT:
        return false;
    default: // an operation without a rule has kept the columns
        return true;
    }
}

static bool note_all(struct askew *a)
{
    vec_foreach(const struct tir_tile_link, it, &a->extents.links)
        if (turns(a, it->inner) || turns(a, it->outer) || is_lines(a, it->inner) ||
            is_lines(a, it->outer))
            return false;
    tir_foreach_inst(inst, a->f)
        if (!note(a, inst))
            return false;
    vec_foreach(struct tir_inst *, it, &a->accesses)
        if (!tir_is_inside(*it, a->tiles))
            return false;
    vec_foreach(struct tir_inst *, it, &a->iotas)
        if (!tir_is_inside(*it, a->tiles))
            return false;
    return true;
}

// May be moved in vectors, as they lie in memory.
static bool is_moved(const struct askew *a, const struct tir_inst *access)
{
    const struct tir_value *pad = access->op == TIR_OP_LOAD ? access->operands[TIR_LOAD_PAD] : NULL;
    return access->op != TIR_OP_ATOMIC && is_row(a, access) &&
           (!pad || pad->kind == TIR_VALUE_CONST) && is_same_row(a->row, access) &&
           (access->op == TIR_OP_STORE || tir_is_only_read(a->f, tir_ref_base(access)));
}

static int64_t elements_of(const struct tir_inst *access)
{
    return VECTOR * 8 / tir_elems[tir_ref_base(access)->type->elem].bits;
}

// May be loaded in vectors that lie anywhere.
static bool is_put_together(const struct askew *a, const struct tir_inst *access)
{
    return access->op == TIR_OP_LOAD && is_row(a, access) && !access->operands[TIR_LOAD_PAD] &&
           !access->operands[TIR_LOAD_MASK] && tir_is_only_read(a->f, tir_ref_base(access));
}

// The row of the most elements in a vector: where it begins aligned, so do the others.
static void choose_row(struct askew *a)
{
    vec_foreach(struct tir_inst *, it, &a->accesses)
        if (is_moved(a, *it) && elements_of(*it) > elements_of(a->row))
            a->row = *it;
}

// Elements from where a tensor begins to the row of an access, or the first of them.
static struct tir_value *row_of(const struct askew *a, struct tir_builder *b,
                                const struct tir_inst *access, struct tir_value *first)
{
    struct tir_value *base = tir_ref_base(access), *sum = NULL;
    const struct tir_type *i64 = tir_type_scalar(b->f->module->types, TIR_I64);
    for (uint32_t d = 0; d + 1 < base->type->rank; d++) {
        struct tir_value *stride = tir_build1(b, TIR_OP_STRIDE, i64, &base, 1);
        tir_set_int(b->f, stride->def, TIR_ATTR_axis, d);
        struct tir_value *at = has_rows(a, access, d) ? first : tir_ref_indices(access)[d];
        struct tir_value *part = tir_binary(b, TIR_OP_MUL, at, stride);
        sum = sum ? tir_binary(b, TIR_OP_ADD, sum, part) : part;
    }
    return sum;
}

// Elements from a multiple of 16 bytes to where the row begins.
static struct tir_value *askew_of(const struct askew *a, struct tir_builder *b,
                                  const struct tir_inst *access, struct tir_value *first)
{
    struct tir_types *types = b->f->module->types;
    struct tir_value *base = tir_ref_base(access);
    struct tir_value *at = tir_build1(b, TIR_OP_ASKEW, tir_type_scalar(types, TIR_I32), &base, 1);
    at = tir_build1(b, TIR_OP_CAST, tir_type_scalar(types, TIR_I64), &at, 1);
    at = tir_binary(b, TIR_OP_ADD, at, row_of(a, b, access, first));
    return tir_binary(b, TIR_OP_AND, at, tir_const_index(b->f, elements_of(access) - 1));
}

// Makes it a condition of the launch that the columns which turn to the front are outside of all
// tensors, and that rows are no shorter than pays: a few elements are there sooner one at a time.
// False: it is not so.
static bool demand_lengths(struct askew *a)
{
    const int64_t most = a->count - elements_of(a->row) + 1;
    struct tir_builder b = tir_builder_at_end(a->f, a->f->host);
    b.before = tir_yield_of(a->f->host);
    VEC(struct tir_value *) extents = {0};
    vec_foreach(struct tir_inst *, it, &a->accesses) {
        const struct tir_attr *box = tir_attr_find(*it, TIR_ATTR_box);
        for (uint32_t d = 0; d < box->list_count; d++)
            if (box->list[d] > 1 && turns(a, &accessed(a, *it)[tir_slice_dim(*it, d)])) {
                struct tir_value *extent = extent_of(a, *it, d);
                int64_t size;
                if (tir_is_const_int(extent, &size) && (size > most || size < a->count / LEAST))
                    return false;
                bool is_new = extent->kind != TIR_VALUE_CONST;
                vec_foreach(struct tir_value *, other, &extents)
                    is_new &= *other != extent;
                if (is_new)
                    vec_push(a->f->module->arena, &extents, extent);
            }
    }
    vec_foreach(struct tir_value *, extent, &extents)
        vec_push(a->f->module->arena, &a->lengths, *extent);
    const uint32_t count = extents.len;
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value *extent = extents.at[i];
        extents.at[i] = tir_binary(&b, TIR_OP_LE, extent, tir_const_index(a->f, most));
        vec_push(a->f->module->arena, &extents,
                 tir_binary(&b, TIR_OP_GE, extent, tir_const_index(a->f, a->count / LEAST)));
    }
    tir_compile_demand(a->f, extents.at, extents.len);
    return true;
}

// begin: -by, where the row begins in the tile
static void turn_access(const struct askew *a, struct tir_inst *access, struct tir_value *begin)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    const bool moves = is_moved(a, access), is_apart = is_put_together(a, access);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] > 1 && turns(a, &accessed(a, access)[tir_slice_dim(access, d)]))
            tir_ref_indices(access)[d] = begin;
    if (moves)
        tir_set_int(a->f, access, TIR_ATTR_begins, VECTOR);
    else if (is_apart)
        tir_set_int(a->f, access, TIR_ATTR_askew, VECTOR);
}

// The column that element c has: c - by, and of those below 0 the last ones.
static void turn_iota(const struct askew *a, struct tir_inst *iota, struct tir_value *by)
{
    struct tir_value *c = iota->results[0];
    const struct tir_type *scalar = tir_type_scalar(a->f->module->types, c->type->elem);
    struct tir_builder b = tir_builder_before(a->f, iota->next);
    struct tir_value *shift = tir_build1(&b, TIR_OP_CAST, scalar, &by, 1);
    shift = tir_build1(&b, TIR_OP_BROADCAST, c->type, &shift, 1);
    struct tir_value *column = tir_binary(&b, TIR_OP_SUB, c, shift);
    struct tir_value *last =
        tir_binary(&b, TIR_OP_ADD, column, tir_const_int(a->f, c->type, a->count));
    struct tir_value *choice[] = {tir_binary(&b, TIR_OP_LT, c, shift), last, column};
    struct tir_value *turned = tir_build1(&b, TIR_OP_WHERE, c->type, choice, 3);
    tir_replace_later_uses(c, turned);
    column->def->operands[0] = c;
    choice[0]->def->operands[0] = c;
}

// Every tile of a span of rows is there, also if the last span is not full.
static void round_extent(const struct askew *a, int64_t span)
{
    struct tir_value **extent = &a->tiles->operands[a->grid_dim];
    struct tir_builder b = tir_builder_before(a->f, a->tiles);
    struct tir_value *all = tir_const_index(a->f, span);
    *extent = tir_binary(&b, TIR_OP_MUL, tir_binary(&b, TIR_OP_CEILDIV, *extent, all), all);
}

// The first row of a tile.
static struct tir_value *first_of(const struct askew *a, struct tir_builder *b, int64_t step)
{
    struct tir_value *span = tir_const_index(a->f, a->rows * step);
    struct tir_value *before = tir_binary(b, TIR_OP_DIV, a->start, span);
    struct tir_value *tile = tir_binary(b, TIR_OP_DIV, a->start, tir_const_index(a->f, a->rows));
    before = tir_binary(b, TIR_OP_MUL, before, span);
    tile = tir_binary(b, TIR_OP_REM, tile, tir_const_index(a->f, step));
    return tir_binary(b, TIR_OP_ADD, before, tile);
}

// Every access of the rows takes each step-th row from the first on.
static void step_rows(const struct askew *a, struct tir_builder *b, struct tir_value *first,
                      int64_t step)
{
    struct tir_types *types = a->f->module->types;
    const struct tir_type *t = tir_type_tile(types, TIR_I64, 1, &a->rows);
    struct tir_value *at =
        tir_build1(b, TIR_OP_IOTA, tir_type_tile(types, TIR_I32, 1, &a->rows), NULL, 0);
    tir_set_int(a->f, at->def, TIR_ATTR_axis, 0);
    at = tir_build1(b, TIR_OP_CAST, t, &at, 1);
    at = tir_binary(b, TIR_OP_MUL, at, tir_const_int(a->f, t, step));
    at = tir_binary(b, TIR_OP_ADD, tir_build1(b, TIR_OP_BROADCAST, t, &first, 1), at);
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
        for (uint32_t d = 0; box && d < box->list_count; d++) {
            if (!has_rows(a, inst, d))
                continue;
            int64_t list[TIR_MAX_RANK];
            memcpy(list, box->list, box->list_count * sizeof(*list));
            list[d] = -1;
            tir_set_list(a->f, inst, TIR_ATTR_box, list, box->list_count);
            box = tir_attr_find(inst, TIR_ATTR_box);
            tir_ref_indices(inst)[d] = at;
        }
    }
}

// Is it a load of what all rows share?
static bool is_shared(const struct askew *a, const struct tir_inst *inst,
                      const struct tir_value *begin)
{
    if (inst->op != TIR_OP_LOAD || !tir_attr_find(inst, TIR_ATTR_askew))
        return false;
    for (uint32_t d = 0; d < tir_ref_base(inst)->type->rank; d++) {
        const struct tir_value *at = tir_ref_indices(inst)[d];
        if (at != begin && at->kind != TIR_VALUE_CONST && tir_is_made_in(a->tiles, at))
            return false;
    }
    return true;
}

// Such loads move right behind the first one of a row: they are put together while that is on its
// way, and not when the row is there and waits for them.
static void load_early(const struct askew *a, const struct tir_value *begin)
{
    struct tir_inst *last = NULL;
    tir_foreach_inst_safe(inst, a->tiles->regions[0]) {
        if (!last && inst->op == TIR_OP_LOAD && tir_attr_find(inst, TIR_ATTR_begins))
            last = inst;
        if (!last || !is_shared(a, inst, begin))
            continue;
        if (last->next != inst)
            tir_move_before(inst, last->next);
        last = inst;
    }
}

struct row_test { // whether columns are in the row
    struct tir_inst *test, *iota;
};

// What the value is repeated from, or cast from without a change: it is a column or a length.
static struct tir_value *source_of(struct tir_value *v)
{
    while (v->kind == TIR_VALUE_RESULT &&
           (v->def->op == TIR_OP_BROADCAST ||
            (v->def->op == TIR_OP_CAST && tir_elem_is_int(v->def->operands[0]->type->elem) &&
             tir_elem_is_int(v->type->elem) && tir_elems[v->type->elem].bits >= 32)))
        v = v->def->operands[0];
    return v;
}

// The same of 0 + cols(x), where a tile begins at 0.
static struct tir_value *column_of(struct tir_value *v)
{
    int64_t number;
    v = source_of(v);
    if (v->kind == TIR_VALUE_RESULT && v->def->op == TIR_OP_ADD &&
        tir_is_const_int(source_of(v->def->operands[0]), &number) && !number)
        v = source_of(v->def->operands[1]);
    return v;
}

// The iota whose numbers the test compares with the length of the rows. NULL: it is no such test.
static struct tir_inst *tested(const struct askew *a, const struct tir_inst *test)
{
    if (test->op != TIR_OP_LT || !tir_type_is_tile(test->results[0]->type))
        return NULL;
    const struct tir_value *length = source_of(test->operands[1]);
    const struct tir_value *column = column_of(test->operands[0]);
    bool is_length = false;
    vec_foreach(struct tir_value *, it, &a->lengths)
        is_length |= *it == length;
    vec_foreach(struct tir_inst *, it, &a->iotas)
        if (is_length && (*it)->results[0] == column)
            return *it;
    return NULL;
}

// Column c - by is in the row. Below 0 it is a large number without a sign, as the last columns
// are, so one comparison is enough.
static void turn_test(const struct askew *a, struct tir_inst *test, struct tir_inst *iota,
                      struct tir_value *by)
{
    struct tir_types *types = a->f->module->types;
    struct tir_type tile = *iota->results[0]->type;
    const struct tir_type *scalar = tir_type_scalar(types, tile.elem);
    tile.elem = tir_elems[tile.elem].bits == 32 ? TIR_U32 : TIR_U64;
    const struct tir_type *t = tir_type_get(types, &tile), *result = test->results[0]->type;
    struct tir_builder b = tir_builder_before(a->f, test);
    struct tir_value *shift = tir_build1(&b, TIR_OP_CAST, scalar, &by, 1);
    shift = tir_build1(&b, TIR_OP_BROADCAST, iota->results[0]->type, &shift, 1);
    struct tir_value *column = tir_binary(&b, TIR_OP_SUB, iota->results[0], shift);
    if (column->type != t)
        column = tir_build1(&b, TIR_OP_CAST, t, &column, 1);
    struct tir_value *length = source_of(test->operands[1]);
    length = tir_build1(&b, TIR_OP_CAST, tir_type_scalar(types, tile.elem), &length, 1);
    length = tir_build1(&b, TIR_OP_BROADCAST, t, &length, 1);
    struct tir_value *is = tir_binary(&b, TIR_OP_LT, column, length);
    if (is->type != result)
        is = tir_build1(&b, TIR_OP_BROADCAST, result, &is, 1);
    tir_replace_uses(a->f, test->results[0], is);
    tir_remove(test);
}

static bool turn(struct askew *a)
{
    if (!demand_lengths(a))
        return false;
    struct tir_builder b = tir_builder_before(a->f, a->tiles->regions[0]->first);
    const int64_t step = elements_of(a->row);
    struct tir_value *first = NULL;
    if (a->rows > 1)
        first = first_of(a, &b, step);
    struct tir_value *by = askew_of(a, &b, a->row, first);
    VEC(struct row_test) tests = {0};
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        const struct row_test test = {inst, tested(a, inst)};
        if (test.iota)
            vec_push(a->f->module->arena, &tests, test);
    }
    struct tir_value *begin = tir_binary(&b, TIR_OP_SUB, tir_const_index(a->f, 0), by);
    vec_foreach(struct tir_inst *, it, &a->accesses)
        turn_access(a, *it, begin);
    if (a->rows > 1) {
        step_rows(a, &b, first, step);
        round_extent(a, a->rows * step);
    }
    vec_foreach(struct tir_inst *, it, &a->iotas)
        turn_iota(a, *it, by);
    vec_foreach(struct row_test, it, &tests)
        turn_test(a, it->test, it->iota, by);
    load_early(a, begin);
    return true;
}

struct tir_func *tir_compile_askew(struct tir_func *f)
{
    struct askew a = {.f = tir_func_clone(f)};
    tir_foreach_inst(inst, a.f)
        if (inst->op == TIR_OP_TILES)
            a.tiles = inst;
    if (!a.tiles || a.f->grid_count)
        return NULL;
    tir_extents_find(&a.extents, a.f, a.f->module->arena);
    if (!find_rows(&a) || !find_row(&a) || !note_all(&a))
        return NULL;
    choose_row(&a);
    return turn(&a) ? a.f : NULL;
}
