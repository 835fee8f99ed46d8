// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on scalars of tiles, such as `any(x > 0.0)`: which of them are the same number.
//
// Tiles are not replayed. So each has a number by its text: of its operation, its attributes and
// its operands, down to constants and to values that something else gave. Such a value is another
// one in each round of the loops around it. Loads of one place of a tensor that the kernel does not
// write are the same. Two roles walk copies of a loop, so its counters go by the text of the loop,
// and what is computed of them by its own.

#include "pass/sync_check/sync_check.h"

static uint32_t depth_of(const struct tir_block *block)
{
    uint32_t depth = 0;
    for (; block && block->owner; block = block->owner->block)
        depth++;
    return depth;
}

static struct sync_source source_of(const struct sync_program *p, const struct tir_value *v)
{
    if (!v)
        return (struct sync_source){.number = 0};
    if (v->kind == TIR_VALUE_CONST)
        return (struct sync_source){
            .number =
                tir_sync_mix(tir_sync_mix(TIR_OP_COUNT, v->type->elem), (uint64_t)v->constant.i)};
    if (p->sources[v->id].number)
        return p->sources[v->id];
    return (struct sync_source){.number = tir_sync_mix(TIR_OP_COUNT + 1, v->id),
                                .block = v->kind == TIR_VALUE_ARG ? v->block : v->def->block};
}

static uint64_t of_attrs(const struct tir_inst *inst, uint64_t h)
{
    for (uint32_t i = 0; i < inst->attr_count; i++) {
        const struct tir_attr *attr = &inst->attrs[i];
        h = tir_sync_mix(tir_sync_mix(h, attr->key), (uint64_t)attr->number);
        for (uint32_t k = 0; k < attr->list_count; k++)
            h = tir_sync_mix(h, (uint64_t)attr->list[k]);
        h = tir_hash_bytes(attr->text.ptr, attr->text.len, h);
    }
    return h;
}

// The arguments that count the rounds of a loop, by the operands that say how.
static void find_counters(struct sync_program *p, const struct tir_inst *loop)
{
    const bool is_for = loop->op == TIR_OP_FOR;
    const uint32_t tiles = is_for ? 0 : tir_attr_find(loop, TIR_ATTR_by)->list_count;
    uint64_t h = of_attrs(loop, loop->op);
    for (uint32_t i = 0; i < (is_for ? TIR_FOR_STEP + 1 : tiles); i++)
        h = tir_sync_mix(h, source_of(p, loop->operands[i]).number);
    const struct tir_block *body = loop->regions[0];
    for (uint32_t i = 0; i < (is_for ? 1 : tiles); i++)
        p->sources[body->args[i]->id] =
            (struct sync_source){.number = tir_sync_mix(h, i) | 1, .block = body};
}

// Does the text say all there is to know of the result?
static bool is_by_text(const struct tir_func *f, const struct tir_inst *inst)
{
    if (!inst->result_count || inst->region_count || tir_has_trait(inst, TIR_THREAD))
        return false;
    return inst->op == TIR_OP_LOAD ? tir_is_only_read(f, tir_ref_base(inst))
                                   : tir_has_trait(inst, TIR_PURE);
}

void tir_sync_find_sources(struct sync_program *p)
{
    p->sources = arena_array(p->cx->scratch, struct sync_source, p->f->value_count);
    tir_foreach_inst(inst, p->f) {
        if (inst->op == TIR_OP_FOR || inst->op == TIR_OP_TILES)
            find_counters(p, inst);
        if (!is_by_text(p->f, inst))
            continue;
        if (inst->op == TIR_OP_CONVERT_LAYOUT) { // the same elements
            p->sources[inst->results[0]->id] = source_of(p, inst->operands[0]);
            continue;
        }
        struct sync_source out = {.number = of_attrs(inst, inst->op)};
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_value *v = inst->operands[i];
            const bool is_scratch = v && tir_type_is_buffer(v->type) && inst->op != TIR_OP_LOAD;
            if (!v || is_scratch) // which not every role needs
                continue;
            const struct sync_source from = source_of(p, v);
            out.number = tir_sync_mix(tir_sync_mix(out.number, i), from.number);
            if (depth_of(from.block) > depth_of(out.block))
                out.block = from.block;
        }
        for (uint32_t i = 0; i < inst->result_count; i++) {
            const struct tir_type *t = inst->results[i]->type;
            struct sync_source *to = &p->sources[inst->results[i]->id];
            *to = out;
            to->number = tir_sync_mix(tir_sync_mix(out.number, t->elem), i) | 1;
            for (uint32_t d = 0; d < t->rank; d++)
                to->number = tir_sync_mix(to->number, (uint64_t)t->shape[d]) | 1;
        }
    }
}

uint64_t tir_sync_of_tiles(const struct sync_run *r, const struct sync_agent *a,
                           const struct tir_value *v)
{
    const struct sync_source source = source_of(r->p, v);
    uint64_t h = source.number;
    for (uint32_t i = 0; source.block && i < a->depth; i++) {
        const struct sync_frame *f = &a->frames[i];
        if (f->owner && (tir_is_loop(f->owner) || f->owner->op == TIR_OP_TILES))
            h = tir_sync_mix(h, f->round);
        if (f->block == source.block)
            break;
    }
    return h;
}
