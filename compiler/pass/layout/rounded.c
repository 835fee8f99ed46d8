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
// It is done where a tensor copy can bring the tile, K follows itself in memory, and only products
// use it, all in this way.

#include "pass/layout/rounded.h"

#include "base/bitset.h"
#include "ir/range.h"
#include "ir/walk.h"
#include "pass/async/tma.h"
#include "pass/layout/operand.h"
#include "pass/layout/warpgroup.h"

// Does it give the rows of a cast as they are, or turned?
static bool passes_rows(const struct tir_inst *inst)
{
    if (!inst || inst->op == TIR_OP_PERMUTE)
        return inst;
    const struct tir_value *of = inst->op == TIR_OP_RESHAPE ? inst->operands[0] : NULL;
    if (!of || !of->def || of->def->op != TIR_OP_CAST)
        return false;
    const struct tir_type *from = of->type, *to = inst->results[0]->type;
    return to->rank && from->shape[from->rank - 1] == to->shape[to->rank - 1];
}

// Does a product take operand i of inst with K along its rows in memory?
static bool takes_rows(const struct tir_inst *inst, uint32_t i)
{
    bool turned;
    if (inst->op != TIR_OP_DOT || i > TIR_DOT_B)
        return false;
    tir_unturned(inst->operands[i], &turned);
    return turned == (i == TIR_DOT_B);
}

// Values that something else reads, behind transposes too.
static struct bitset find_kept(struct tir_func *f, struct tir_arena *arena)
{
    struct bitset kept = bitset_new(arena, f->value_count);
    tir_foreach_inst(inst, f)
        for (uint32_t i = 0; i < inst->operand_count && !passes_rows(inst); i++)
            for (struct tir_value *v = takes_rows(inst, i) ? NULL : inst->operands[i]; v;
                 v = passes_rows(v->def) ? v->def->operands[0] : NULL)
                bitset_insert(&kept, v->id);
    return kept;
}

static void round_load(struct tir_func *f, struct tir_inst *cast)
{
    struct tir_value *x = cast->operands[0], *loaded = tir_brought(x);
    loaded->type = tir_type_with_elem(f->module->types, loaded->type, TIR_TF32);
    x->type = tir_type_with_elem(f->module->types, x->type, TIR_TF32);
    tir_replace_uses(f, cast->results[0], x);
    tir_remove(cast);
}

void tir_round_operands(struct tir_func *f, struct tir_pass_cx *cx)
{
    const struct tir_ranges *ranges = tir_ranges_new(cx->scratch, f);
    const uint32_t *uses = tir_count_uses(cx->scratch, f);
    const struct bitset kept = find_kept(f, cx->scratch);
    VEC(struct tir_inst *) casts = {0};
    tir_foreach_inst(cast, f) {
        if (cast->op != TIR_OP_CAST || bitset_has(&kept, cast->results[0]->id))
            continue;
        struct tir_value *x = cast->operands[0], *loaded = tir_brought(x);
        const struct tir_inst *load = loaded->def;
        if (load && load->op == TIR_OP_LOAD && tir_rounds(load, cast->results[0]) &&
            uses[x->id] == 1 && uses[loaded->id] == 1 &&
            !tir_tma_refusal(f, cx->target, ranges, load))
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
