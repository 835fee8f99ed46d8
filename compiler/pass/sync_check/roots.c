// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check before the replay: the kernel's buffers, and its warps that may go different ways.

#include "pass/sync_check/sync_check.h"

#include "pass/sync/shared.h"

// The bytes of shared memory, or of one lane of tensor memory, before the buffer and in it.
static int64_t start_of(const struct tir_inst *buffer)
{
    return buffer->op == TIR_OP_TMEM_BUFFER ? 4 * tir_attr_int(buffer, TIR_ATTR_column, 0)
                                            : tir_attr_int(buffer, TIR_ATTR_offset, 0);
}

static int64_t length_of(const struct tir_inst *buffer)
{
    const struct tir_type *t = buffer->results[0]->type;
    const bool is_pair = tir_attr_find(buffer, TIR_ATTR_cta_group);
    return buffer->op == TIR_OP_TMEM_BUFFER ? 4 * tir_tmem_columns(t, is_pair)
                                            : tir_buffer_bytes(t);
}

// Where the buffer that an alias is of begins.
static int64_t begin_of(const struct sync_program *p, const struct tir_value *alloc)
{
    vec_foreach(const struct sync_root, root, &p->roots)
        if (root->alloc == alloc)
            return root->begin;
    tir_unreachable();
}

void tir_sync_find_roots(struct sync_program *p)
{
    // What has no place is somewhere else; tensor memory, where columns have places, is too.
    int64_t elsewhere = INT64_C(1) << 40;
    const int64_t columns = INT64_C(1) << 41;
    tir_foreach_inst(inst, p->f) {
        if ((!tir_is_allocated(inst) && inst->op != TIR_OP_TMEM_BUFFER) ||
            !tir_sync_is_shared(inst->results[0]))
            continue;
        const struct tir_type *t = inst->results[0]->type;
        const bool placed = inst->op != TIR_OP_ALLOC || tir_attr_find(inst, TIR_ATTR_offset);
        const int64_t base = inst->op == TIR_OP_ALIAS         ? begin_of(p, inst->operands[0])
                             : inst->op == TIR_OP_TMEM_BUFFER ? columns
                                                              : 0;
        struct sync_root root = {.alloc = inst->results[0],
                                 .begin = placed ? base + start_of(inst) : elsewhere,
                                 .is_mbarrier = t->elem == TIR_MBARRIER,
                                 .is_tmem = t->space == TIR_SPACE_TMEM,
                                 .first_barrier = p->mbarrier_count};
        memcpy(root.shape, t->shape, t->rank * sizeof *root.shape);
        root.end = root.begin + length_of(inst);
        if (!placed)
            elsewhere = root.end;
        if (root.is_mbarrier)
            p->mbarrier_count += (uint32_t)tir_type_count(t);
        p->has_tmem |= root.is_tmem;
        const int64_t apart = tir_attr_int(inst, TIR_ATTR_apart, 0);
        const uint32_t groups = apart ? tir_crew_of(p->f, inst).groups : 1;
        for (; root.group < groups; root.group++, root.begin += apart, root.end += apart)
            vec_push(p->cx->scratch, &p->roots, root);
    }
}

// Each value that is a buffer has a place of its own in an agent.
void tir_sync_find_buffers(struct sync_program *p)
{
    p->buffer_of = arena_array(p->cx->scratch, uint32_t, p->f->value_count);
    tir_foreach_inst(inst, p->f)
        if (p->classes[inst->id] && inst->result_count &&
            tir_type_is_buffer(inst->results[0]->type))
            p->buffer_of[inst->results[0]->id] = p->buffer_count++;
}

void tir_sync_find_depth(struct sync_program *p)
{
    p->depth = 2;
    vec_foreach(const struct sync_root, root, &p->roots)
        if (root->is_mbarrier && root->alloc->type->rank)
            p->depth = TIR_MAX(p->depth, root->alloc->type->shape[0]);
    tir_foreach_inst(inst, p->f)
        if (inst->op == TIR_OP_WAIT_GROUP)
            p->depth = TIR_MAX(p->depth, tir_attr_int(inst, TIR_ATTR_groups, 0) + 1);
    p->depth = TIR_MIN(p->depth, 8);
}

static void add_boundary(struct sync_program *p, uint32_t warp)
{
    uint32_t i = 0;
    while (i < p->class_count && p->class_first[i] < warp)
        i++;
    if ((i < p->class_count && p->class_first[i] == warp) || p->class_count == SYNC_CLASSES)
        return;
    for (uint32_t k = p->class_count++; k > i; k--)
        p->class_first[k] = p->class_first[k - 1];
    p->class_first[i] = warp;
}

void tir_sync_find_classes(struct sync_program *p)
{
    uint32_t warps = p->threads / SYNC_LANES;
    add_boundary(p, 0);
    for (const struct tir_inst *inst = p->f->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_ROLE)
            continue;
        struct tir_crew crew = tir_crew_of(p->f, inst);
        p->role_count++;
        if (crew.first < warps)
            add_boundary(p, crew.first);
        if (crew.first + crew.warps < warps)
            add_boundary(p, crew.first + crew.warps);
    }
    tir_foreach_inst(inst, p->f) {
        const struct tir_crew crew = tir_crew_of(p->f, inst);
        for (uint32_t g = 0; inst->op == TIR_OP_SCOPE && g < crew.groups; g++)
            add_boundary(p, crew.first + g * crew.warps);
    }
    p->class_first[p->class_count] = warps;
}
