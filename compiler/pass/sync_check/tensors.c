// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on tensors in global memory that a kernel reads and writes: which of them the replay
// checks, and which of them CTAs may share.
//
//     for m in tiles(M by 64) { A[m:+64, :] = f(A[m:+64, :]); }    // each CTA has its own rows
//     for m in tiles(M by 64) { A[m:+64, :] = f(A[0:+64, :]); }    // unchecked: others write them

#include "pass/sync_check/sync_check.h"

// By which threads may wait for each other beside barriers: PTX, atomics that order, and fences of
// a scope beside other atomics. NULL: there is none.
static const struct tir_inst *find_flags(const struct sync_program *p)
{
    tir_foreach_inst(inst, p->f)
        if (inst->op == TIR_OP_PTX || tir_sync_is_scope_fence(inst) ||
            (inst->op == TIR_OP_ATOMIC && (tir_acquires(inst) || tir_releases(inst))))
            return inst;
    return NULL;
}

static bool is_changed(const struct sync_program *p, const struct tir_value *tensor)
{
    tir_foreach_inst(inst, p->f)
        if ((inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC ||
             inst->op == TIR_OP_STORE_ASYNC) &&
            tir_ref_base(inst) == tensor)
            return true;
    return false;
}

static const struct tir_inst *loop_around(const struct tir_inst *inst)
{
    for (inst = inst->block->owner; inst && !tir_is_loop(inst);)
        inst = inst->block->owner;
    return inst;
}

// May a thread learn by it what others have done: an atomic, PTX, a load of what the kernel
// changes, or a load again and again?
static bool may_tell(const struct sync_program *p, const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_ATOMIC || inst->op == TIR_OP_PTX)
        return true;
    if (inst->op != TIR_OP_LOAD || tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
        return false;
    for (const struct tir_inst *o = inst->block->owner; o; o = o->block->owner)
        if (o->op == TIR_OP_WHILE)
            return true;
    return is_changed(p, tir_ref_base(inst));
}

bool tir_sync_may_be_told(const struct sync_program *p, const struct tir_inst *at)
{
    bool before = true;
    tir_foreach_inst(inst, p->f) {
        before &= inst != at;
        bool again = false; // in a later round of a loop around both
        for (const struct tir_inst *loop = loop_around(at); loop; loop = loop_around(loop))
            for (const struct tir_inst *o = loop_around(inst); o; o = loop_around(o))
                again |= o == loop;
        if ((before || again) && inst != at && may_tell(p, inst))
            return true;
    }
    return false;
}

static void add_tensor(struct sync_program *p, const struct tir_value *v, bool only_stored)
{
    struct sync_root root = {.alloc = v, .is_tensor = true, .only_stored = only_stored};
    bitset_insert(&p->tensors, v->id);
    vec_push(p->cx->scratch, &p->roots, root);
}

// The tiles loop whose coordinates say what inst works on; NULL: it is in none.
static const struct tir_inst *tiles_of(const struct tir_inst *inst)
{
    for (inst = inst->block->owner; inst && inst->op != TIR_OP_TILES;)
        inst = inst->block->owner;
    return inst;
}

// Is v the coordinate and more, from *low to *high, such as the first row of a part of the tile?
static bool follows(const struct sync_program *p, const struct tir_value *v,
                    const struct tir_value *coordinate, int64_t *low, int64_t *high)
{
    const struct tir_inst *sum = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    int64_t least, most;
    *low = *high = 0;
    if (v == coordinate)
        return true;
    for (uint32_t i = 0; sum && sum->op == TIR_OP_ADD && i < 2; i++) {
        if (!follows(p, sum->operands[i], coordinate, low, high))
            continue;
        tir_range_get(p->ranges, sum->operands[!i], &least, &most);
        const uint64_t by = tir_range_divisor(p->ranges, sum->operands[!i]);
        if (most >= 0 && by && by <= INT32_MAX) // the last part begins where one does
            most -= most % (int64_t)by;
        return tir_add_checked(*low, least, low) && tir_add_checked(*high, most, high);
    }
    return false;
}

// The rows along an axis that a mask leaves: where it says row < 33, as that of padded tiles does.
static int64_t rows_of(const struct tir_value *mask, uint32_t axis, int64_t rows)
{
    const struct tir_inst *inst = mask ? mask->def : NULL;
    if (inst && inst->op == TIR_OP_AND)
        return rows_of(inst->operands[0], axis, rows_of(inst->operands[1], axis, rows));
    if (!inst || inst->op != TIR_OP_LT || inst->operands[1]->kind != TIR_VALUE_CONST)
        return rows;
    const struct tir_inst *counts = inst->operands[0]->def;
    bool along = counts && counts->op == TIR_OP_IOTA &&
                 tir_attr_int(counts, TIR_ATTR_axis, 0) == (int64_t)axis;
    return along ? TIR_MIN(rows, inst->operands[1]->constant.i) : rows;
}

// The extent of what inst accesses in dimension e of its tensor; 0: one element, -1: who knows.
static int64_t extent_of(const struct tir_inst *inst, uint32_t e)
{
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    const struct tir_value *mask = inst->op == TIR_OP_STORE  ? inst->operands[TIR_STORE_MASK]
                                   : inst->op == TIR_OP_LOAD ? inst->operands[TIR_LOAD_MASK]
                                                             : NULL;
    return mask && box->list[e] > 0 ? rows_of(mask, tir_slice_dim(inst, e), box->list[e])
                                    : box->list[e];
}

enum { NO_DIMENSION = -1, ONE_TILE = -2 };

// The dimension of its tensor in which inst stays in the part that dimension d of its tiles loop
// gives to one CTA.
static int own_dimension(const struct sync_program *p, const struct tir_inst *inst,
                         const struct tir_inst *tiles, uint32_t d)
{
    int64_t by = tir_attr_find(tiles, TIR_ATTR_by)->list[d], low, high, extent;
    if (tir_is_const_int(tiles->operands[d], &extent) && extent <= by)
        return ONE_TILE;
    for (uint32_t e = 0; e < tir_ref_base(inst)->type->rank; e++)
        if (follows(p, tir_ref_indices(inst)[e], tiles->regions[0]->args[d], &low, &high) &&
            low >= 0 && extent_of(inst, e) >= 0 && high <= by - TIR_MAX(extent_of(inst, e), 1))
            return (int)e;
    return NO_DIMENSION;
}

// Whether each tile, and with it each CTA, has a part of the tensor to itself: two tiles differ in
// a coordinate, and each coordinate picks a part of its own.
static bool tiles_keep_apart(const struct sync_program *p, const struct tir_value *tensor)
{
    int dims[TIR_MAX_RANK];
    const struct tir_attr *by = NULL;
    tir_foreach_inst(inst, p->f) {
        if (!tir_ops[inst->op].has_ref || tir_ref_base(inst) != tensor)
            continue;
        const struct tir_inst *tiles = tiles_of(inst);
        if (!tiles)
            return false;
        const struct tir_attr *now = tir_attr_find(tiles, TIR_ATTR_by);
        if (by && now->list_count != by->list_count)
            return false;
        for (uint32_t d = 0; d < now->list_count; d++) {
            int own = own_dimension(p, inst, tiles, d);
            if (own == NO_DIMENSION || (by && (own != dims[d] || now->list[d] != by->list[d])))
                return false;
            dims[d] = own;
        }
        by = now;
    }
    return true;
}

bool tir_sync_is_by_threads(const struct sync_program *p, const struct tir_inst *inst)
{
    return inst->op == TIR_OP_STORE && !tir_type_is_tile(inst->operands[TIR_STORE_VALUE]->type) &&
           tir_is_by_thread(p->f, inst);
}

// Of a tile that each group of warps of a scope has.
static bool is_by_groups(const struct sync_program *p, const struct tir_inst *inst)
{
    return inst->op == TIR_OP_STORE && tir_crew_of(p->f, inst).groups > 1;
}

// Do several roles store to the tensor?
static bool is_by_roles(const struct sync_program *p, const struct tir_value *tensor)
{
    const struct tir_inst *first = NULL;
    tir_foreach_inst(inst, p->f) {
        if (inst->op != TIR_OP_STORE || tir_ref_base(inst) != tensor)
            continue;
        if (first && tir_crew_of(p->f, inst).role != tir_crew_of(p->f, first).role)
            return true;
        first = inst;
    }
    return false;
}

static bool has_ptx(const struct tir_func *f)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_PTX)
            return true;
    return false;
}

// Of tensors that are loaded and stored, or stored by single threads, groups of them or several
// roles, the order among the threads of a CTA is looked at, and that among CTAs is not. What copy
// engines alone store counts where a program orders its accesses itself, or has roles.
void tir_sync_find_tensors(struct sync_program *p)
{
    p->flags = find_flags(p);
    for (uint32_t i = 0; i < p->f->param_count; i++) {
        uint32_t stores = 0; // of tile programs statements: two may store to one place
        uint32_t statements = 0;
        bool loads = false, atomics = false, by_threads = false, by_tiles = false;
        bool copied = false, sent = false; // by copy engines
        const struct tir_value *v = p->f->params[i].value;
        const bool by_roles = is_by_roles(p, v);
        tir_foreach_inst(inst, p->f) {
            if (!tir_ops[inst->op].has_ref || tir_ref_base(inst) != v)
                continue;
            loads |= inst->op == TIR_OP_LOAD;
            stores = inst->op != TIR_OP_STORE ? stores : p->by_hand ? 1 : stores + 1;
            statements += inst->op == TIR_OP_STORE;
            by_tiles |= inst->op == TIR_OP_STORE && !tir_sync_is_by_threads(p, inst);
            atomics |= inst->op == TIR_OP_ATOMIC;
            by_threads |= tir_sync_is_by_threads(p, inst) || is_by_groups(p, inst);
            copied |= inst->op == TIR_OP_COPY_ASYNC;
            sent |= inst->op == TIR_OP_STORE_ASYNC;
        }
        bool only_stored = loads + stores + atomics < 2 && !by_roles;
        sent &= p->by_hand || loads || stores || atomics || copied;
        if (copied || sent) {
            only_stored = (loads || copied) + stores + atomics + sent < 2 && !by_roles;
            if (!only_stored || sent)
                p->memories = SYNC_MEMORIES;
        }
        only_stored &= !(by_tiles && p->f->grid_count); // in another round, or by another statement
        // Whether lanes have one value of a ptx() is not known, and then one statement is let pass.
        by_threads &= !p->flags || statements > 1 || !has_ptx(p->f);
        if ((!p->flags || p->by_hand) && (!only_stored || by_threads || sent))
            add_tensor(p, v, only_stored);
        if ((loads || copied) && (stores || sent || atomics) && !tir_sync_is_alone(p) &&
            !tiles_keep_apart(p, v) && !tir_sync_has_one_cluster(p, v) &&
            !tir_sync_phases_keep_apart(p, v))
            tir_sync_unchecked_at(
                p, p->f->span,
                tir_str_format(p->f->module->arena,
                               "the order of CTAs in %s, which they read and write",
                               p->f->params[i].name));
    }
}
