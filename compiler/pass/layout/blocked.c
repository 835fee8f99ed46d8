// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// layout, blocked: coalesced access, vectors and lanes along the contiguous dimension.
//
// Warps lie away from dimensions that are reduced, so that a line stays in a warp:
//     let x: f32[64, 128] in S[(16, 4, 32, 4) : (4, 1@warpid, 1@laneid, 1)] = load(...);
// Where several warps reduce a line even so, they have as much of it as they can, and a thread has
// elements of more lines, if these share most of what is loaded: then it is loaded once for them.
//     let x: f32[2, 1024] in S[(2, 2, 4, 32, 4) : (8, 4, 1@warpid, 1@laneid, 1)] = load(...);
//     let w: f32[1024] in S[(2, 4, 32, 4) : (4, 1@warpid, 1@laneid, 1)] = load(W[0:+1024]);

#include "ir/follow.h"
#include "pass/layout/layout.h"
#include "pass/layout/staging.h"

// Counts the loaded tiles that v is computed from, element by element, each of them once.
static enum tir_answer count_load(void *user, struct tir_value *v)
{
    uint32_t *loads = user;
    const struct tir_inst *def = tir_type_is_tile(v->type) ? v->def : NULL;
    if (!def)
        return TIR_YES;
    *loads += def->op == TIR_OP_LOAD;
    bool passes_on =
        tir_is_elementwise(def) || def->op == TIR_OP_RESHAPE || def->op == TIR_OP_PERMUTE;
    return passes_on ? TIR_IF_OPERANDS : TIR_YES;
}

// Is more loaded that all lines of a tile like t along the dimension share, such as weights, than
// is loaded for each of them?
static bool shares_lines(const struct solver *s, const struct tir_type *t, uint32_t along)
{
    uint32_t shared = 0, own = 0;
    struct tir_follow follow;
    tir_follow_init(&follow, s->cx->scratch, count_load, &shared);
    vec_foreach(struct tir_inst *, it, &s->broadcasts) {
        struct tir_value *x = (*it)->operands[0];
        if (tir_type_same_shape((*it)->results[0]->type, t) && tir_type_is_tile(x->type) &&
            x->type->shape[along] == t->shape[along])
            tir_follows(&follow, x);
    }
    if (!shared)
        return false;
    vec_foreach(struct tir_inst *, it, &s->loads)
        own += tir_type_same_shape((*it)->results[0]->type, t);
    return shared > own;
}

// Do several warps have parts of a dimension?
static bool crosses_warps(const struct tir_layout *l, uint32_t d)
{
    for (uint32_t i = l->first[d]; i < l->first[d + 1]; i++)
        if (l->iters[i].axis == TIR_AXIS_WARP && l->iters[i].extent > 1)
            return true;
    return false;
}

const struct tir_layout *tir_solver_blocked(struct solver *s, const struct tir_type *t,
                                            uint32_t contiguous, uint32_t vectors)
{
    uint32_t order[TIR_MAX_RANK], warp_order[TIR_MAX_RANK], n = 0, w = 0;
    if (contiguous < t->rank)
        order[n++] = contiguous;
    for (uint32_t d = t->rank; d-- > 0;)
        if (d != contiguous)
            order[n++] = d;
    bool reduced[TIR_MAX_RANK] = {false};
    vec_foreach(struct tir_inst *, it, &s->reduces)
        if (tir_type_same_shape((*it)->operands[0]->type, t))
            reduced[tir_attr_int(*it, TIR_ATTR_axis, 0)] = true;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < t->rank; i++)
            if (reduced[order[i]] == (pass == 1))
                warp_order[w++] = order[i];
    // A thread may have so many elements side by side if no other thread is to have the same.
    int64_t share = TIR_MAX(1, tir_tile_parts(t) / (32 * s->warps));
    uint32_t vector = TIR_MAX(1, vectors * 8 / tir_elems[t->elem].bits);
    while (vector > share)
        vector /= 2;
    // A tile that is transposed keeps a square of elements in each thread: vectors both ways.
    uint32_t patch = 1;
    vec_foreach(struct tir_inst *, it, &s->transposes)
        if (tir_type_same_shape((*it)->operands[0]->type, t))
            while (patch < vector && patch * vector < share)
                patch *= 2;
    vector = TIR_MAX(1, vector);
    const struct tir_layout *l =
        tir_layout_blocked(s->types, t->rank, t->shape, order, warp_order, vector, patch, s->warps);
    for (uint32_t d = 0; d < t->rank; d++)
        if (reduced[d] && crosses_warps(l, d) && shares_lines(s, t, d))
            return tir_layout_blocked(s->types, t->rank, t->shape, order, order, vector, patch,
                                      s->warps);
    return l;
}

const struct tir_layout *tir_solver_blocked_access(struct solver *s, const struct tir_inst *access,
                                                   const struct tir_type *t)
{
    bool shared = tir_ref_base(access)->type->space == TIR_SPACE_SHARED;
    uint32_t begins = (uint32_t)TIR_MAX(tir_attr_int(access, TIR_ATTR_begins, 0),
                                        tir_attr_int(access, TIR_ATTR_askew, 0));
    uint32_t vectors = shared ? 16 : TIR_MAX(begins, tir_tensor_begin(s->f, tir_ref_base(access)));
    return tir_solver_blocked(s, t, tir_contiguous_dim(access, t->rank), vectors);
}
