// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rounded operands, a step of the layout pass and of tensor_memory: f32 that are cast to tf32 for
// products on warpgroups or in tensor memory are rounded by the tensor copy that brings them.
//
//     let a: f32[128, 32] = load(A[m:+128, k:+32]);
//     let b: tf32[128, 32] = cast(a);
//     let d: f32[128, 128] = dot(b, ..., acc);
// becomes
//     let b: tf32[128, 32] = load(A[m:+128, k:+32]);
//     let d: f32[128, 128] = dot(b, ..., acc);
//
// Else warps would load the tile, round it and store it. A tensor map of type TFLOAT32 rounds to
// nearest, ties to even, and keeps what is infinite: exactly what the cast does, as 33 million
// random f32 and the ones around each limit have shown on an H200.
//
// It is done where a tensor copy can bring the tile, K follows itself in memory, and nothing else
// uses it.

#include "pass/layout/rounded.h"

#include "ir/range.h"
#include "ir/walk.h"
#include "pass/async/tma.h"
#include "pass/layout/operand.h"
#include "pass/layout/warpgroup.h"

// The cast that makes operand i of loaded f32; NULL: it is another one, or cannot be copied.
static struct tir_inst *rounding_of(struct tir_func *f, const struct tir_pass_cx *cx,
                                    const struct tir_ranges *ranges, const uint32_t *uses,
                                    const struct tir_inst *dot, uint32_t i)
{
    bool turned;
    const struct tir_value *v = dot->operands[i], *x = tir_unturned(dot->operands[i], &turned);
    for (; v != x; v = v->def->operands[0])
        if (uses[v->id] > 1)
            return NULL;
    struct tir_inst *cast = x->def && x->def->op == TIR_OP_CAST ? x->def : NULL;
    const struct tir_inst *load = cast ? cast->operands[0]->def : NULL;
    const bool k_is_last = turned == (i == TIR_DOT_B);
    if (!load || load->op != TIR_OP_LOAD || !tir_rounds(load, x) || !k_is_last ||
        uses[load->results[0]->id] > 1 || tir_tma_refusal(f, cx->target, ranges, load))
        return NULL;
    return cast;
}

static void round_load(struct tir_func *f, struct tir_inst *cast)
{
    struct tir_value *loaded = cast->operands[0];
    loaded->type = tir_type_with_elem(f->module->types, loaded->type, TIR_TF32);
    tir_replace_uses(f, cast->results[0], loaded);
    tir_remove(cast);
}

void tir_round_operands(struct tir_func *f, struct tir_pass_cx *cx)
{
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    const uint32_t *uses = tir_count_uses(cx->scratch, f);
    uint32_t *as_operand = arena_array(cx->scratch, uint32_t, f->value_count);
    VEC(struct tir_inst *) casts = {0};
    tir_foreach_inst(dot, f)
        for (uint32_t i = TIR_DOT_A; dot->op == TIR_OP_DOT && i <= TIR_DOT_B; i++) {
            struct tir_inst *cast = rounding_of(f, cx, ranges, uses, dot, i);
            if (cast && ++as_operand[cast->results[0]->id] == uses[cast->results[0]->id])
                vec_push(cx->scratch, &casts, cast);
        }
    vec_foreach(struct tir_inst *, it, &casts)
        round_load(f, *it);
}

void tir_unround_operands(struct tir_func *f)
{
    tir_foreach_inst(dot, f)
        for (uint32_t i = TIR_DOT_A; dot->op == TIR_OP_DOT && i <= TIR_DOT_B; i++) {
            struct tir_inst *load = tir_loaded_by(dot->operands[i]);
            struct tir_value *loaded = load ? load->results[0] : NULL;
            if (!load || !tir_rounds(load, loaded) || tir_dot_on_warpgroups(dot))
                continue;
            const struct tir_type *rounded = loaded->type;
            loaded->type = tir_type_with_elem(f->module->types, rounded, TIR_F32);
            struct tir_builder b = {f, load->block, load->next, load->span};
            struct tir_value *cast = tir_build1(&b, TIR_OP_CAST, rounded, &loaded, 1);
            tir_replace_uses(f, loaded, cast);
            cast->def->operands[0] = loaded;
        }
}
