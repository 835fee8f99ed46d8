// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code that passes build for a crew: barriers, and code for its first thread.

#include "pass/sync/crew.h"

void tir_build_crew_barrier(struct tir_builder *b, const struct tir_crew *crew)
{
    struct tir_inst *sync = tir_build(b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    if (!crew->role)
        return;
    tir_set_int(b->f, sync, TIR_ATTR_id, crew->number + 1);
    tir_set_int(b->f, sync, TIR_ATTR_threads, crew->warps * 32);
}

bool tir_is_crew_barrier(const struct tir_inst *inst, const struct tir_crew *crew)
{
    int64_t threads = tir_attr_int(inst, TIR_ATTR_threads, 0);
    return inst->op == TIR_OP_BAR_SYNC && (threads == 0 || threads >= crew->warps * 32);
}

struct tir_value *tir_build_is_leader(struct tir_builder *b, const struct tir_crew *crew)
{
    const struct tir_type *i32 = tir_type_scalar(b->f->module->types, TIR_I32);
    struct tir_value *tid = tir_build1(b, TIR_OP_TID, i32, NULL, 0);
    return tir_binary(b, TIR_OP_EQ, tid, tir_const_i32(b->f, (int32_t)crew->first * 32));
}

struct tir_builder tir_build_if(struct tir_builder *b, struct tir_value *cond)
{
    struct tir_inst *inst = tir_build(b, TIR_OP_IF, &cond, 1, NULL, 0, 2);
    for (uint32_t r = 0; r < 2; r++) {
        struct tir_builder end = tir_builder_at_end(b->f, inst->regions[r]);
        tir_build_yield(&end, NULL, 0);
    }
    struct tir_builder in = tir_builder_before(b->f, inst->regions[0]->first);
    in.span = b->span;
    return in;
}
