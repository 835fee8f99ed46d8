// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns the tiles of rows that begin anywhere, as askew.c says.

#include "compile/askew_columns.h"
#include "compile/whole.h"
#include "ir/walk.h"

enum { LEAST = 8 }; // a row has this part of the columns, or more

// Elements from where a tensor begins to the row of an access, or the first of them.
static struct tir_value *row_of(const struct askew *a, struct tir_builder *b,
                                const struct tir_inst *access, struct tir_value *first)
{
    struct tir_value *base = tir_ref_base(access), *sum = NULL;
    const struct tir_type *i64 = tir_type_scalar(b->f->module->types, TIR_I64);
    for (uint32_t d = 0; d + 1 < base->type->rank; d++) {
        struct tir_value *stride = tir_build1(b, TIR_OP_STRIDE, i64, &base, 1);
        tir_set_int(b->f, stride->def, TIR_ATTR_axis, d);
        struct tir_value *at =
            tir_askew_has_rows(a, access, d) ? first : tir_ref_indices(access)[d];
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
    return tir_binary(b, TIR_OP_AND, at, tir_const_index(b->f, tir_askew_elements(access) - 1));
}

// Notes for which lengths the variant is. False: a constant one is none of them.
static bool note_length(struct askew *a, struct tir_value *extent, int64_t least, int64_t most)
{
    int64_t size;
    if (tir_is_const_int(extent, &size))
        return size >= least && size <= most;
    vec_foreach(struct askew_length, it, &a->lengths)
        if (it->value == extent) {
            it->least = TIR_MAX(it->least, least);
            it->most = TIR_MIN(it->most, most);
            return true;
        }
    vec_push(a->f->module->arena, &a->lengths, ((struct askew_length){extent, least, most}));
    return true;
}

// The most elements of a row of which none turns to the front.
static int64_t longest(const struct askew *a, const struct askew_columns *c)
{
    return c->count - tir_askew_elements(a->row) + 1;
}

// The columns that turn to the front are outside of all tensors, but where a loop walks the row,
// and rows are no shorter than pays: a few elements are there sooner one at a time.
static bool note_lengths(struct askew *a, const struct askew_columns *c)
{
    const int64_t most = c->walks ? INT64_MAX : longest(a, c);
    vec_foreach(struct tir_inst *, it, &c->accesses) {
        const struct tir_attr *box = tir_attr_find(*it, TIR_ATTR_box);
        for (uint32_t d = 0; d < box->list_count; d++)
            if (box->list[d] > 1 &&
                tir_askew_turns(c, &tir_askew_accessed(a, *it)[tir_slice_dim(*it, d)]) &&
                !note_length(a, tir_askew_extent(a, *it, d), c->count / LEAST, most))
                return false;
    }
    return true;
}

// Makes the lengths conditions of the launch.
static void demand_lengths(const struct askew *a)
{
    struct tir_builder b = tir_builder_at_end(a->f, a->f->host);
    b.before = tir_yield_of(a->f->host);
    VEC(struct tir_value *) demands = {0};
    vec_foreach(const struct askew_length, it, &a->lengths) {
        vec_push(a->f->module->arena, &demands,
                 tir_binary(&b, TIR_OP_GE, it->value, tir_const_index(a->f, it->least)));
        if (it->most < INT64_MAX)
            vec_push(a->f->module->arena, &demands,
                     tir_binary(&b, TIR_OP_LE, it->value, tir_const_index(a->f, it->most)));
    }
    tir_compile_demand(a->f, demands.at, demands.len);
}

// Where a slice begins that was to begin at `start`. It is made once, beside that, so slices that
// began alike still have one value: the pass barrier compares them by it.
static struct tir_value *turned_start(struct askew *a, struct tir_value *start,
                                      struct tir_value *begin)
{
    int64_t number;
    if (tir_is_const_int(start, &number) && !number)
        return begin;
    vec_foreach(const struct askew_start, it, &a->starts)
        if (it->from == start)
            return it->turned;
    struct tir_inst *where = begin->def->next;
    if (start->kind != TIR_VALUE_CONST && tir_is_made_in(a->tiles, start)) {
        if (start->kind == TIR_VALUE_RESULT)
            where = start->def->next;
        else if (start->block->owner != a->tiles)
            where = start->block->first;
    }
    struct tir_builder b = tir_builder_before(a->f, where);
    struct tir_value *turned = tir_binary(&b, TIR_OP_ADD, start, begin);
    vec_push(a->f->module->arena, &a->starts, ((struct askew_start){start, turned}));
    return turned;
}

// begin: -by, where the row begins in the tile
static void turn_access(struct askew *a, const struct askew_columns *c, struct tir_inst *access,
                        struct tir_value *begin)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    const bool moves = tir_askew_is_moved(a, access),
               is_apart = tir_askew_is_put_together(a, access);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] > 1 &&
            tir_askew_turns(c, &tir_askew_accessed(a, access)[tir_slice_dim(access, d)])) {
            struct tir_value **start = &tir_ref_indices(access)[d];
            *start = turned_start(a, *start, begin);
        }
    if (c->walks)
        tir_set_int(a->f, access, TIR_ATTR_wraps, tir_askew_elements(a->row));
    if (moves)
        tir_set_int(a->f, access, TIR_ATTR_begins, TIR_ASKEW_VECTOR);
    else if (is_apart)
        tir_set_int(a->f, access, TIR_ATTR_askew, TIR_ASKEW_VECTOR);
}

// The column that element c has: c - by, and of those below 0 the last ones.
static void turn_iota(const struct askew *a, int64_t count, struct tir_inst *iota,
                      struct tir_value *by)
{
    struct tir_value *c = iota->results[0];
    const struct tir_type *scalar = tir_type_scalar(a->f->module->types, c->type->elem);
    struct tir_builder b = tir_builder_before(a->f, iota->next);
    struct tir_value *shift = tir_build1(&b, TIR_OP_CAST, scalar, &by, 1);
    shift = tir_build1(&b, TIR_OP_BROADCAST, c->type, &shift, 1);
    struct tir_value *column = tir_binary(&b, TIR_OP_SUB, c, shift);
    struct tir_value *last =
        tir_binary(&b, TIR_OP_ADD, column, tir_const_int(a->f, c->type, count));
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
            if (!tir_askew_has_rows(a, inst, d))
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

// The iota whose numbers the test compares with the length of rows that end in the tile. NULL: it
// is no such test.
static struct tir_inst *tested(const struct askew *a, const struct askew_columns *c,
                               const struct tir_inst *test)
{
    if (test->op != TIR_OP_LT || !tir_type_is_tile(test->results[0]->type))
        return NULL;
    const struct tir_value *length = source_of(test->operands[1]);
    const struct tir_value *column = column_of(test->operands[0]);
    bool is_length = false;
    vec_foreach(const struct askew_length, it, &a->lengths)
        is_length |= it->value == length && it->most <= longest(a, c);
    vec_foreach(struct tir_inst *, it, &c->iotas)
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

// by, begin: how far, and less than 0
static void turn_columns(struct askew *a, const struct askew_columns *c, struct tir_value *by,
                         struct tir_value *begin)
{
    VEC(struct row_test) tests = {0};
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        const struct row_test test = {inst, c->walks ? NULL : tested(a, c, inst)};
        if (test.iota)
            vec_push(a->f->module->arena, &tests, test);
    }
    vec_foreach(struct tir_inst *, it, &c->accesses)
        turn_access(a, c, *it, begin);
    vec_foreach(struct tir_inst *, it, &c->iotas)
        turn_iota(a, c->count, *it, by);
    vec_foreach(struct row_test, it, &tests)
        turn_test(a, it->test, it->iota, by);
}

bool tir_askew_turn(struct askew *a)
{
    vec_foreach(struct askew_columns, c, &a->columns)
        if (!note_lengths(a, c))
            return false;
    demand_lengths(a);
    struct tir_builder b = tir_builder_before(a->f, a->tiles->regions[0]->first);
    const int64_t step = tir_askew_elements(a->row);
    struct tir_value *first = NULL;
    if (a->rows > 1)
        first = first_of(a, &b, step);
    struct tir_value *by = askew_of(a, &b, a->row, first);
    struct tir_value *begin = tir_binary(&b, TIR_OP_SUB, tir_const_index(a->f, 0), by);
    vec_foreach(struct askew_columns, c, &a->columns)
        turn_columns(a, c, by, begin);
    if (a->rows > 1) {
        step_rows(a, &b, first, step);
        round_extent(a, a->rows * step);
    }
    load_early(a, begin);
    return true;
}
