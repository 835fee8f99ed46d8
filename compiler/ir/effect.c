// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ir/effect.h"

enum { EACH, ONE, NO = 0, YES, BARRIER = 0, RING };
#define TIR_WORD_engine_NONE TIR_WORD_NONE

const struct tir_done_info tir_dones[TIR_DONE_COUNT] = {
#define DONE(id, engine, starts, reads, groups, reuse) \
    {TIR_WORD_engine_##engine, starts, reads, groups, reuse},
#define EFFECT(...)
#include "ir/effect.def"
};

static const struct tir_effect effects[] = {
#define DONE(...)
#define EFFECT(op, way, operand, access, proxy, done)       \
    {TIR_OP_##op,         TIR_WAY_##way,     TIR_##operand, \
     TIR_ACCESS_##access, TIR_PROXY_##proxy, TIR_DONE_##done},
#include "ir/effect.def"
};

static enum tir_way way_of(const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_COPY_ASYNC)
        return TIR_WAY_ONLY;
    if (inst->operands[TIR_COPY_MBAR])
        return TIR_WAY_BY_MBARRIER;
    const enum tir_word engine = tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_engine_cp_async);
    return engine == TIR_WORD_engine_cp_async ? TIR_WAY_BY_THREADS : TIR_WAY_BY_RING;
}

struct tir_value *tir_copied_rows(const struct tir_inst *copy)
{
    if (copy->op != TIR_OP_COPY_ASYNC || way_of(copy) == TIR_WAY_BY_THREADS)
        return NULL;
    for (uint32_t d = 0; d < tir_ref_base(copy)->type->rank; d++)
        if (tir_type_is_tile(tir_ref_indices(copy)[d]->type))
            return tir_ref_indices(copy)[d];
    return NULL;
}

bool tir_has_effects(enum tir_op op)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(effects); i++)
        if (effects[i].op == op)
            return true;
    return false;
}

struct tir_value *tir_effect_buffer(const struct tir_inst *inst, const struct tir_effect *effect)
{
    return effect->operand == TIR_SLICE ? tir_ref_base(inst) : inst->operands[effect->operand];
}

const struct tir_effect *tir_effect_after(const struct tir_inst *inst,
                                          const struct tir_effect *before)
{
    const struct tir_effect *end = effects + TIR_COUNT_OF(effects);
    for (const struct tir_effect *e = before ? before + 1 : effects; e < end; e++) {
        if (e->op != inst->op || e->way != way_of(inst))
            continue;
        const struct tir_value *v = tir_effect_buffer(inst, e);
        if (v && tir_type_is_buffer(v->type))
            return e;
    }
    return NULL;
}

enum tir_done tir_done_of(const struct tir_inst *inst)
{
    tir_foreach_effect(e, inst)
        if (e->done != TIR_DONE_NOW)
            return e->done;
    return TIR_DONE_NOW;
}

enum tir_done tir_done_of_group(const struct tir_inst *group)
{
    enum tir_word engine = group->op == TIR_OP_AWAIT
                               ? TIR_WORD_engine_wgmma
                               : tir_attr_word(group, TIR_ATTR_engine, TIR_WORD_engine_cp_async);
    if (engine == TIR_WORD_engine_bulk) // shares the groups of tensor copies
        engine = TIR_WORD_engine_tma;
    for (uint32_t i = 0; i < TIR_DONE_COUNT; i++)
        if (tir_dones[i].engine == engine)
            return i;
    return TIR_DONE_NOW;
}

bool tir_engine_combines(enum tir_word kind, enum tir_elem elem)
{
    const uint32_t bits = tir_elems[elem].bits;
    switch (kind) {
    case TIR_WORD_NONE:
        return true;
    case TIR_WORD_kind_add:
        return elem == TIR_I32 || elem == TIR_U32 || elem == TIR_U64 || elem == TIR_F16 ||
               elem == TIR_BF16 || elem == TIR_F32;
    case TIR_WORD_kind_min:
    case TIR_WORD_kind_max:
        return elem == TIR_F16 || elem == TIR_BF16 || (tir_elem_is_int(elem) && bits >= 32);
    case TIR_WORD_kind_and:
    case TIR_WORD_kind_or:
    case TIR_WORD_kind_xor:
        return tir_elem_is_int(elem) && bits >= 32;
    default:
        return false;
    }
}

bool tir_is_group(const struct tir_inst *inst, enum tir_op op, enum tir_done done)
{
    const bool is_op = inst->op == op || (op == TIR_OP_WAIT_GROUP && inst->op == TIR_OP_AWAIT);
    return is_op && tir_done_of_group(inst) == done;
}

bool tir_is_committed(const struct tir_inst *store)
{
    const struct tir_inst *inst = store->next;
    while (inst && !tir_is_group(inst, TIR_OP_COMMIT_GROUP, tir_done_of(store)))
        inst = inst->next;
    return inst;
}

struct tir_inst *tir_build_group(struct tir_builder *b, enum tir_op op, enum tir_done done,
                                 int64_t groups)
{
    struct tir_inst *group = tir_build(b, op, NULL, 0, NULL, 0, 0);
    if (done != TIR_DONE_CP_ASYNC) // the engine of a group that states none
        tir_set_word(b->f, group, TIR_ATTR_engine, tir_dones[done].engine);
    if (op == TIR_OP_WAIT_GROUP)
        tir_set_int(b->f, group, TIR_ATTR_groups, TIR_MIN(groups, tir_dones[done].groups));
    return group;
}
