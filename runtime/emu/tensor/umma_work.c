// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of the tensor core: their queue, and the memory that they read.

#include "emu/tensor/umma_work.h"

#include <inttypes.h>
#include <stdio.h>

struct emu_smem_matrix emu_umma_matrix(uint64_t descriptor, bool mn_major)
{
    static const uint32_t swizzles[] = {0, 128, 128, 0, 64, 0, 32, 0};
    struct emu_smem_matrix m = emu_smem_matrix_of(descriptor);
    m.swizzle = swizzles[descriptor >> 61];
    m.wide = descriptor >> 61 == 1;
    m.mn_major = mn_major;
    return m;
}

void emu_umma_check_matrix(struct emu_warp *w, uint32_t lane, uint64_t descriptor)
{
    enum { VERSION = 46, ABSOLUTE = 52, ZERO = 53, SWIZZLE = 61 };
    const uint32_t swizzle = (uint32_t)(descriptor >> SWIZZLE);
    if ((descriptor >> VERSION & 7) != 1)
        emu_fault(w, lane, "tensor core: bits 46 to 48 of descriptor 0x%" PRIx64 " are not 1",
                  descriptor);
    if (descriptor >> ZERO & 255)
        emu_fault(w, lane, "tensor core: bits 53 to 60 of descriptor 0x%" PRIx64 " are not 0",
                  descriptor);
    if (descriptor >> ABSOLUTE & 1)
        emu_fault(w, lane, "tensor core: an absolute leading dimension is not emulated");
    if (swizzle == 3 || swizzle == 5 || swizzle == 7)
        emu_fault(w, lane, "tensor core: descriptor 0x%" PRIx64 " has no such swizzle: %u",
                  descriptor, swizzle);
}

void emu_umma_order(struct emu_umma_work *work, uint32_t accumulator)
{
    struct emu_warp *w = work->op.warp;
    w->umma_lanes |= 1u << work->op.lane;
    if (w->agent)
        work->op.core_op = emu_race_core_op(&w->launch->race, w->agent, accumulator);
}

// Shared memory is read when the operation is done; a wait for a later commit knows of the read.
static void read_unit(void *user, const uint8_t *unit)
{
    emu_op_access_as(user, unit, 16, EMU_LOAD, EMU_AGENT_UMMA);
}

struct emu_smem emu_umma_memory(struct emu_umma_work *work, const struct emu_cta *cta)
{
    const struct emu_grid *l = cta->launch;
    return (struct emu_smem){.bytes = cta->shared,
                             .shadow = l->emu->options.check ? cta->shared_shadow : NULL,
                             .size = l->shared_size,
                             .read = work->op.agent ? read_unit : NULL,
                             .user = &work->op};
}

void emu_umma_access(struct emu_umma_work *work, const struct emu_cta *cta, uint32_t lane,
                     uint32_t column, uint32_t count, enum emu_access access)
{
    emu_op_access_map(&work->op, &cta->tmem->race, emu_tmem_offset(lane, column), 4 * count, access,
                      EMU_AGENT_UMMA, EMU_PROXY_TENSOR);
}

static void finish(struct emu_op *op)
{
    ((struct emu_umma_work *)op)->done((struct emu_umma_work *)op);
}

static void describe(const struct emu_op *op, char *text, size_t size)
{
    (void)op;
    snprintf(text, size, "a later tcgen05.commit");
}

static uint64_t cycles(const struct emu_op *op)
{
    return ((const struct emu_umma_work *)op)->cycles;
}

static const struct emu_engine engine = {.name = "tcgen05",
                                         .unit = EMU_UNIT_MATRIX,
                                         .latency = 20,
                                         .cycles = cycles,
                                         .in_order = true,
                                         .finish = finish,
                                         .describe = describe};

void *emu_umma_work_new(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, size_t size,
                        void (*done)(struct emu_umma_work *))
{
    struct emu_umma_work *work = emu_op_new(w, &engine, lane, size);
    const uint32_t rank = in->op & EMU_UMMA_PAIR ? w->cta->rank & ~1u : w->cta->rank;
    if (in->op & EMU_UMMA_PAIR && rank + 1 >= w->cta->cluster->size)
        emu_fault(w, lane, "cta_group::2 in a CTA without a peer");
    emu_tmem_group(w, in->op & EMU_UMMA_PAIR);
    work->op.group = w->umma_group;
    emu_op_track(&work->op, EMU_FULL, true);
    work->op.queue = &w->cta->cluster->ctas[rank];
    work->done = done;
    work->cycles = 1;
    return work;
}
