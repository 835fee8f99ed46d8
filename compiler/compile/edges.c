// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variant for tensors of one dimension that begin aligned and have any length. Where an address
// is a multiple of 16 so is that of every tile, and only the tiles that reach over the end have
// vectors which the end may cut:
//     for n in tiles(N by 2048) { Y[n:+2048] = f(X[n:+2048]); }
// becomes
//     for n in tiles(N by 2048) {
//         if n + 2048 <= N { Y[n:+2048] = f(X[n:+2048]); }     // vectors, and no tests
//         else { Y[n:+2048] = f(X[n:+2048]); }                 // element by element
//     }
//
// The branch is one of the CTA and not of each access: behind it is straight-line code, so that all
// loads are on their way before the first is waited for.
//
// A dense tensor of several dimensions has unaligned rows where their length is no multiple, so
// there is no such variant beside one; a constant length needs none.

#include "compile/edges.h"

#include "base/vec.h"
#include "ir/walk.h"
#include "machine/budget.h"
#include "pass/sync/crew.h"

struct reach { // how far from a tile's start the accesses of a tensor's length go
    struct tir_value *start, *extent;
    int64_t elements;
};

struct edges {
    struct tir_func *f;
    struct tir_inst *tiles;
    VEC(struct reach) reaches;
};

// Asks of each tensor of one dimension where it begins alone. False: that helps none, or not all.
static bool ask_begins(struct tir_func *f)
{
    bool any = false;
    for (uint32_t i = 0; i < f->param_count; i++) {
        struct tir_param *p = &f->params[i];
        const uint32_t rank = p->value->type->rank;
        if (!p->aligned || p->dims[rank - 1].dim < 0)
            continue;
        if (rank > 1)
            return false;
        p->begins = p->aligned;
        p->aligned = 0;
        any = true;
    }
    return any;
}

static void add_reach(struct edges *e, struct tir_value *start, struct tir_value *extent,
                      int64_t elements)
{
    vec_foreach(struct reach, it, &e->reaches)
        if (it->start == start && it->extent == extent) {
            it->elements = TIR_MAX(it->elements, elements);
            return;
        }
    vec_push(e->f->module->arena, &e->reaches, ((struct reach){start, extent, elements}));
}

// Notes how far an access goes. False: it walks such a tensor by other things than tiles.
static bool note_access(struct edges *e, const struct tir_inst *inst)
{
    const struct tir_param *p = tir_param_of(e->f, tir_ref_base(inst));
    const int64_t box = p && p->begins ? tir_attr_find(inst, TIR_ATTR_box)->list[0] : 0;
    if (box <= 1) // no such tensor, or no rows of it
        return true;
    struct tir_value *start = tir_ref_indices(inst)[0];
    const int64_t from = tir_split_constant(&start);
    if (start->kind != TIR_VALUE_ARG || start->block->owner != e->tiles)
        return false;
    if (from >= 0) // others are tested for the beginning too
        add_reach(e, start, e->f->dims[p->dims[0].dim].value, from + box);
    return true;
}

// May it stand twice, in a branch? Buffers and what is done by hand may not; loops may be unrolled.
static bool may_repeat(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_LOAD:
    case TIR_OP_STORE:
    case TIR_OP_ATOMIC:
        return tir_ref_base(inst)->type->space == TIR_SPACE_GLOBAL;
    case TIR_OP_IF:
    case TIR_OP_YIELD:
    case TIR_OP_ASSUME:
        return true;
    default:
        return tir_has_trait(inst, TIR_PURE);
    }
}

static bool note_accesses(struct edges *e)
{
    uint32_t count = 0;
    tir_foreach_inst(inst, e->f) {
        if (++count > TIR_BUDGET_EDGES_INSTRUCTIONS)
            return false;
        if (inst->op == TIR_OP_TILES) {
            if (e->tiles || inst->result_count)
                return false;
            e->tiles = inst;
        } else if (!may_repeat(inst) || (tir_ops[inst->op].has_ref && !note_access(e, inst))) {
            return false;
        }
    }
    return e->tiles && e->reaches.len;
}

static struct tir_value *build_test(const struct edges *e, struct tir_builder *b)
{
    struct tir_value *inside = NULL;
    vec_foreach(const struct reach, it, &e->reaches) {
        struct tir_value *end =
            tir_binary(b, TIR_OP_ADD, it->start, tir_const_index(e->f, it->elements));
        struct tir_value *fits = tir_binary(b, TIR_OP_LE, end, it->extent);
        inside = inside ? tir_binary(b, TIR_OP_AND, inside, fits) : fits;
    }
    return inside;
}

static void split(const struct edges *e)
{
    struct tir_block *block = e->tiles->regions[0];
    struct tir_inst *yield = tir_yield_of(block), *const last = yield->prev;
    struct tir_builder b = tir_builder_before(e->f, yield);
    b.span = e->tiles->span;
    struct tir_builder whole = tir_build_if(&b, build_test(e, &b));
    struct tir_block *cut = whole.block->owner->regions[1];
    for (struct tir_inst *inst = NULL; inst != last;) {
        inst = block->first;
        tir_move_before(inst, tir_yield_of(cut));
    }
    struct tir_map map;
    tir_map_init(&map, e->f->module->arena);
    tir_clone_into(&whole, cut, &map);
}

struct tir_func *tir_compile_edges(struct tir_func *f)
{
    struct edges e = {.f = tir_func_clone(f)};
    if (!ask_begins(e.f) || !note_accesses(&e))
        return NULL;
    split(&e);
    return e.f;
}
