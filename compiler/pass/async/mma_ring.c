// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether tensor copies feed loops of products by mma.sync.
//
// They do on a target with tensor copies, but without products on warpgroups: one thread starts the
// copies of later rounds into the slots of a ring (pipeline_ahead.c), and ldmatrix reads the
// swizzle that they write. A round costs no barrier and no thread its addresses. Where wgmma is at
// hand, mma.sync has what wgmma refuses, and keeps cp.async.
//
// A loop gets as many slots full as it empties, so its results may use their bytes after it.

#include "pass/async/mma_ring.h"

#include "ir/walk.h"
#include "machine/target.h"
#include "pass/async/pipeline.h"
#include "pass/layout/dot.h"

static struct tir_inst *loop_of(const struct tir_inst *inst)
{
    struct tir_inst *owner = inst->block->owner;
    return owner && owner->op == TIR_OP_FOR ? owner : NULL;
}

const char *tir_mma_ring_refusal(const struct tir_func *f, const struct tir_pass_cx *cx)
{
    if (!(cx->target->features & TIR_HAS_TMA))
        return "the target has no tensor copies";
    if (cx->target->features & TIR_HAS_WGMMA)
        return "no tma: no product of the kernel runs on warpgroups";
    if (f->grid_count)
        return "no tma: the kernel speaks of single threads";
    if (cx->attempt && (cx->attempt->only_cp_async || cx->attempt->stages < 2))
        return "no tma: the kernel failed with it";
    bool multiplies = false;
    tir_foreach_inst(inst, f) {
        if (inst->op == TIR_OP_ROLE || inst->op == TIR_OP_RING)
            return "no tma: the program has roles or rings of its own";
        multiplies |= inst->op == TIR_OP_DOT && loop_of(inst) && tir_dot_plan(cx->target, inst).mma;
    }
    return multiplies ? NULL : "no tma: no loop of the kernel has products on tensor cores";
}

const char *tir_mma_ring_copy_refusal(const struct tir_func *f, struct tir_arena *scratch,
                                      const struct tir_inst *access)
{
    const struct tir_inst *loop = loop_of(access);
    if (!loop)
        return "it is not in a loop";
    if (tir_attr_int(loop, TIR_ATTR_stages, 0) == 1)
        return "its loop asks for one stage";
    struct tir_follow ahead;
    tir_runs_ahead_init(&ahead, scratch, f, loop->regions[0]);
    for (uint32_t d = 0; d < tir_ref_base(access)->type->rank; d++)
        if (!tir_follows(&ahead, tir_ref_indices(access)[d]))
            return "its address depends on values carried or computed in the loop";
    return NULL;
}
