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
// A loop that walks a row in tiles has the same elements in each, turned:
//     for n in range(0, N, 4096) { sums += X[m:+1, n:+4096]; }
// becomes
//     for n in range(0, N, 4096) { sums += X[m:+1, (n - s):+4096, wraps = 8]; }
// where the first s elements of a slice are those behind its last (the attribute wraps).
//
// A buffer in shared memory that takes turned tiles has them turned, so all of its accesses turn,
// as slices of one width at multiples of it. What copies wider slices does so in pieces then
// (askew_pieces.c).
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

#include "compile/askew_columns.h"
#include "ir/walk.h"

bool tir_askew_turns(const struct askew_columns *c, struct tir_tile_dim *dim)
{
    return tir_tile_dim_class(dim) == c->class;
}

static bool is_access(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
}

struct tir_tile_dim *tir_askew_accessed(const struct askew *a, const struct tir_inst *access)
{
    const uint32_t value = TIR_STORE_VALUE;
    if (access->op == TIR_OP_LOAD)
        return a->extents.of[access->results[0]->id];
    return tir_type_is_tile(access->operands[value]->type)
               ? tir_extents_at(&a->extents, access, value)
               : NULL;
}

bool tir_askew_has_rows(const struct askew *a, const struct tir_inst *access, uint32_t d)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    return a->rows > 1 && box && box->list[d] == a->rows &&
           tir_ref_indices(access)[d] == a->start && tir_slice_stride(access, d) == 1;
}

int64_t tir_askew_elements(const struct tir_inst *access)
{
    return TIR_ASKEW_VECTOR * 8 / tir_elems[tir_ref_base(access)->type->elem].bits;
}

// Does a slice that starts here begin with a vector of the row?
static bool starts_with_vector(const struct askew *a, const struct tir_value *start)
{
    int64_t low, high;
    tir_range_get(a->ranges, start, &low, &high);
    return low >= 0 && tir_range_divisor(a->ranges, start) % TIR_ASKEW_VECTOR == 0;
}

// Has the access a part of one row, or of each of the tile's, that begins with a vector?
static bool is_row(const struct askew *a, const struct tir_inst *access)
{
    const struct tir_type *t = tir_ref_base(access)->type;
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    for (uint32_t d = 0; box && d + 1 < t->rank; d++)
        if (box->list[d] != 0 && box->list[d] != 1 && !tir_askew_has_rows(a, access, d))
            return false;
    return box && box->list[t->rank - 1] > 1 && tir_elems[t->elem].bits >= 8 &&
           tir_elems[t->elem].bits <= 32 && t->elem != TIR_BOOL &&
           starts_with_vector(a, tir_ref_indices(access)[t->rank - 1]);
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

// Do all slices of tensors that begin at the value have columns there?
static bool begins_columns(const struct askew *a, const struct tir_value *start)
{
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        const struct tir_attr *box = is_access(inst) ? tir_attr_find(inst, TIR_ATTR_box) : NULL;
        for (uint32_t d = 0; box && d + 1 < box->list_count; d++)
            if (tir_ref_indices(inst)[d] == start)
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
        if (by->list[d] == 1 || begins_columns(a, a->tiles->regions[0]->args[d]))
            continue;
        a->grid_dim = d;
        a->rows = by->list[d];
        a->start = a->tiles->regions[0]->args[d];
        found++;
    }
    return found <= 1;
}

static bool is_row_of_tensor(const struct askew *a, const struct tir_inst *inst)
{
    return (inst->op == TIR_OP_STORE || inst->op == TIR_OP_LOAD) &&
           tir_param_of(a->f, tir_ref_base(inst)) && is_row(a, inst) && is_same_row(inst, inst);
}

static struct askew_columns columns_of(const struct askew *a, const struct tir_inst *row)
{
    const struct tir_attr *box = tir_attr_find(row, TIR_ATTR_box);
    const uint32_t last = box->list_count - 1;
    return (struct askew_columns){
        tir_tile_dim_class(&tir_askew_accessed(a, row)[tir_slice_dim(row, last)]), box->list[last]};
}

// A row that is stored, or else loaded.
static bool find_row(struct askew *a)
{
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        if (!is_row_of_tensor(a, inst) || !is_known(a, inst))
            continue;
        const bool is_better = !a->row || (inst->op == TIR_OP_STORE && a->row->op == TIR_OP_LOAD);
        if (is_better)
            a->row = inst;
    }
    if (!a->row)
        return false;
    const uint32_t last = tir_attr_find(a->row, TIR_ATTR_box)->list_count - 1;
    for (uint32_t d = 0; d < last; d++)
        if (tir_askew_has_rows(a, a->row, d))
            a->lines = tir_tile_dim_class(&tir_askew_accessed(a, a->row)[tir_slice_dim(a->row, d)]);
    return a->rows == 1 || (a->lines && !a->lines->keeper);
}

// Is the dimension that of several rows?
static bool is_lines(const struct askew *a, struct tir_tile_dim *dim)
{
    return a->lines && tir_tile_dim_class(dim) == a->lines;
}

// Has the access an index tile, or what becomes one? Rows that an index tile names go with it one
// by one, and not each with all of it.
static bool has_index_tile(const struct tir_inst *access)
{
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0 || tir_slice_stride(access, d) != 1)
            return true;
    return false;
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
    struct tir_tile_dim *dims = is_access(inst) ? tir_askew_accessed(a, inst) : NULL;
    const struct tir_attr *box = dims ? tir_attr_find(inst, TIR_ATTR_box) : NULL;
    for (uint32_t d = 0; box && d < box->list_count; d++) {
        if (!box->list[d] || !is_lines(a, &dims[tir_slice_dim(inst, d)]))
            continue;
        if (!tir_askew_has_rows(a, inst, d) || !tir_param_of(a->f, tir_ref_base(inst)) ||
            has_index_tile(inst))
            return false;
        uses--;
    }
    return !uses;
}

struct tir_value *tir_askew_extent(const struct askew *a, const struct tir_inst *access, uint32_t d)
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
        if (tir_askew_has_rows(a, inst, d) && tir_param_of(a->f, tir_ref_base(inst))) {
            const struct tir_value *extent = tir_askew_extent(a, inst, d);
            return extent == all ||
                   (tir_is_const_int(extent, &x) && tir_is_const_int(all, &y) && x == y);
        }
    return false;
}

// Is it a piece of a tile's buffer, which can have turned elements as any others?
static bool is_piece(const struct askew *a, const struct askew_columns *c,
                     const struct tir_inst *access, uint32_t d)
{
    const struct tir_value *buffer = tir_ref_base(access);
    const struct tir_attr *box = tir_attr_find(access, TIR_ATTR_box);
    return buffer->kind == TIR_VALUE_RESULT && buffer->def->op == TIR_OP_ALLOC &&
           tir_is_inside(buffer->def, a->tiles) && access->op != TIR_OP_ATOMIC &&
           d + 1 == box->list_count && box->list[d] == c->count &&
           buffer->type->shape[d] % c->count == 0 && tir_slice_stride(access, d) == 1 &&
           tir_range_divisor(a->ranges, tir_ref_indices(access)[d]) % (uint64_t)c->count == 0;
}

// Notes an access that turns. False: it begins elsewhere, or is none of a tensor or a buffer.
static bool note_access(struct askew *a, struct askew_columns *c, struct tir_inst *inst)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    struct tir_tile_dim *dims = tir_askew_accessed(a, inst);
    bool any = false;
    for (uint32_t d = 0; dims && d < box->list_count; d++) {
        int64_t start;
        if (box->list[d] <= 1 || !tir_askew_turns(c, &dims[tir_slice_dim(inst, d)]))
            continue;
        if (is_piece(a, c, inst, d)) {
            vec_push(a->f->module->arena, &c->kept, inst);
            c->walks |= tir_ref_base(inst)->type->shape[d] > c->count;
            continue;
        }
        if (!tir_param_of(a->f, tir_ref_base(inst)) || tir_slice_stride(inst, d) != 1 ||
            !starts_with_vector(a, tir_ref_indices(inst)[d]))
            return false;
        c->walks |= !tir_is_const_int(tir_ref_indices(inst)[d], &start) || start;
        any = true;
    }
    if (any)
        vec_push(a->f->module->arena, &c->accesses, inst);
    return true;
}

// Is the operation the same on tiles that are turned?
static bool note(struct askew *a, struct askew_columns *c, struct tir_inst *inst)
{
    const int64_t axis = tir_attr_int(inst, TIR_ATTR_axis, 0);
    if (!names_rows(a, inst) || !ends_with_grid(a, inst))
        return false;
    switch (inst->op) {
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        return note_access(a, c, inst);
    case TIR_OP_IOTA:
        if (is_lines(a, &a->extents.of[inst->results[0]->id][axis]))
            return false;
        if (!tir_askew_turns(c, &a->extents.of[inst->results[0]->id][axis]))
            return true;
        vec_push(a->f->module->arena, &c->iotas, inst);
        return tir_elem_is_int(inst->results[0]->type->elem) &&
               tir_elems[inst->results[0]->type->elem].bits >= 32;
    case TIR_OP_REDUCE: // a function need not commute
        return !is_lines(a, &tir_extents_at(&a->extents, inst, TIR_REDUCE_X)[axis]) &&
               (tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) != TIR_WORD_kind_user ||
                !tir_askew_turns(c, &tir_extents_at(&a->extents, inst, TIR_REDUCE_X)[axis]));
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

static bool note_all(struct askew *a, struct askew_columns *c)
{
    if (c->class->keeper || c->class == a->lines || c->count < TIR_ASKEW_VECTOR)
        return false; // or more columns may turn than there are
    vec_foreach(const struct tir_tile_link, it, &a->extents.links)
        if (tir_askew_turns(c, it->inner) || tir_askew_turns(c, it->outer) ||
            is_lines(a, it->inner) || is_lines(a, it->outer))
            return false;
    tir_foreach_inst(inst, a->f)
        if (!note(a, c, inst))
            return false;
    vec_foreach(struct tir_inst *, it, &c->accesses)
        if (!tir_is_inside(*it, a->tiles))
            return false;
    vec_foreach(struct tir_inst *, it, &c->iotas)
        if (!tir_is_inside(*it, a->tiles))
            return false;
    return true;
}

bool tir_askew_is_moved(const struct askew *a, const struct tir_inst *access)
{
    const struct tir_value *pad = access->op == TIR_OP_LOAD ? access->operands[TIR_LOAD_PAD] : NULL;
    return access->op != TIR_OP_ATOMIC && is_row(a, access) &&
           (!pad || pad->kind == TIR_VALUE_CONST) && is_same_row(a->row, access) &&
           (access->op == TIR_OP_STORE || tir_is_only_read(a->f, tir_ref_base(access)));
}

bool tir_askew_is_put_together(const struct askew *a, const struct tir_inst *access)
{
    return access->op == TIR_OP_LOAD && is_row(a, access) && !access->operands[TIR_LOAD_PAD] &&
           !access->operands[TIR_LOAD_MASK] && tir_is_only_read(a->f, tir_ref_base(access));
}

static bool is_staged(const struct tir_inst *access)
{
    for (const struct tir_inst *loop = access->block->owner; loop; loop = loop->block->owner)
        if (tir_attr_int(loop, TIR_ATTR_stages, 1) > 1)
            return true;
    return false;
}

// Can tiles of rows that a loop walks turn? Only the last dimension wraps, and copies that run
// ahead have slices that do not.
static bool may_wrap(const struct askew *a, const struct askew_columns *c)
{
    vec_foreach(struct tir_inst *, it, &c->accesses) {
        const struct tir_attr *box = tir_attr_find(*it, TIR_ATTR_box);
        for (uint32_t d = 0; d + 1 < box->list_count; d++)
            if (box->list[d] > 1 &&
                tir_askew_turns(c, &tir_askew_accessed(a, *it)[tir_slice_dim(*it, d)]))
                return false;
        if (is_staged(*it))
            return false;
    }
    return tir_is_pow2((uint64_t)c->count); // so none are added
}

// Is it a slice of a buffer, whose elements may have been turned?
static bool is_slice_of_buffer(const struct tir_inst *inst)
{
    const struct tir_attr *box = inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE
                                     ? tir_attr_find(inst, TIR_ATTR_box)
                                     : NULL;
    return box && box->list[box->list_count - 1] > 1 &&
           tir_ref_base(inst)->kind == TIR_VALUE_RESULT &&
           tir_ref_base(inst)->def->op == TIR_OP_ALLOC;
}

// Are there accesses of the buffer but slices of the columns' width that turn?
static bool is_torn(const struct askew *a, const struct askew_columns *c,
                    const struct tir_value *buffer)
{
    uint32_t turned = 0;
    vec_foreach(const struct askew_columns, other, &a->columns)
        vec_foreach(struct tir_inst *, it, &other->kept)
            turned += tir_ref_base(*it) == buffer && other->count == c->count;
    return turned != a->uses[buffer->id];
}

// Are there accesses of the tensor but stores that turn?
static bool has_other_uses(const struct askew *a, const struct tir_value *tensor)
{
    uint32_t turned = 0;
    vec_foreach(const struct askew_columns, c, &a->columns)
        vec_foreach(struct tir_inst *, it, &c->accesses)
            turned += tir_ref_base(*it) == tensor && (*it)->op == TIR_OP_STORE;
    return turned != a->uses[tensor->id];
}

// Has a buffer turned tiles and others, or does a tensor that is written? Of slices that wrap
// nothing asks whether they meet others.
static bool tears(const struct askew *a, const struct askew_columns *c)
{
    bool torn = false;
    vec_foreach(struct tir_inst *, it, &c->kept)
        torn |= is_torn(a, c, tir_ref_base(*it));
    vec_foreach(struct tir_inst *, it, &c->accesses)
        torn |= c->walks && !tir_is_only_read(a->f, tir_ref_base(*it)) &&
                has_other_uses(a, tir_ref_base(*it));
    return torn;
}

static void drop_torn(struct askew *a)
{
    for (uint32_t i = 0; i < a->columns.len;) {
        if (!tears(a, &a->columns.at[i])) {
            i++;
            continue;
        }
        a->columns.at[i] = a->columns.at[--a->columns.len];
        i = 0; // what these columns share with others is torn now
    }
}

// All columns of this row that may turn. False: none may.
static bool find_columns(struct askew *a)
{
    VEC(const struct tir_tile_dim *) seen = {0};
    tir_foreach_inst_in(inst, a->tiles->regions[0]) {
        const bool has_row = is_row_of_tensor(a, inst) && is_same_row(a->row, inst);
        if (!has_row && !is_slice_of_buffer(inst))
            continue;
        struct askew_columns c = columns_of(a, inst);
        bool is_new = true;
        vec_foreach(const struct tir_tile_dim *, it, &seen)
            is_new &= *it != c.class;
        if (!is_new)
            continue;
        vec_push(a->f->module->arena, &seen, c.class);
        if (note_all(a, &c) && (!c.walks || may_wrap(a, &c)))
            vec_push(a->f->module->arena, &a->columns, c);
    }
    drop_torn(a);
    bool any = false;
    vec_foreach(const struct askew_columns, c, &a->columns)
        any |= c->accesses.len > 0;
    return any;
}

// The row of the most elements in a vector: where it begins aligned, so do the others.
static void choose_row(struct askew *a)
{
    vec_foreach(struct askew_columns, c, &a->columns)
        vec_foreach(struct tir_inst *, it, &c->accesses)
            if (tir_askew_is_moved(a, *it) && tir_askew_elements(*it) > tir_askew_elements(a->row))
                a->row = *it;
}

static struct tir_value *row_length(const struct askew *a, const struct tir_inst *access)
{
    return tir_askew_extent(a, access, tir_ref_base(access)->type->rank - 1);
}

// Are all rows known to be whole vectors? They begin alike, so only a tensor that itself begins
// between vectors would take such a variant: others serve it, and the code of all launches is
// smaller.
static bool has_whole_rows(const struct askew *a)
{
    bool whole = true;
    vec_foreach(const struct askew_columns, c, &a->columns)
        vec_foreach(struct tir_inst *, it, &c->accesses)
            if (tir_askew_is_moved(a, *it))
                whole &= tir_range_divisor(a->ranges, row_length(a, *it)) %
                             (uint64_t)tir_askew_elements(*it) ==
                         0;
    return whole;
}

struct tir_func *tir_compile_askew(struct tir_func *f)
{
    struct askew a = {.f = tir_func_clone(f)};
    tir_foreach_inst(inst, a.f)
        if (inst->op == TIR_OP_TILES)
            a.tiles = inst;
    if (!a.tiles || a.f->grid_count)
        return NULL;
    a.uses = tir_count_uses(a.f->module->arena, a.f);
    tir_askew_split(&a);
    tir_extents_find(&a.extents, a.f, a.f->module->arena);
    a.ranges = tir_ranges_new(a.f->module->arena, a.f);
    a.uses = tir_count_uses(a.f->module->arena, a.f);
    if (!find_rows(&a) || !find_row(&a) || !find_columns(&a))
        return NULL;
    choose_row(&a);
    return !has_whole_rows(&a) && tir_askew_turn(&a) ? a.f : NULL;
}
