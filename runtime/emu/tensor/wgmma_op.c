// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wgmma as operations in flight: issue, groups, waits.
//
// Each warp of a warpgroup issues its own part of a product, its 16 rows. The products of a warp
// are done in the order of issue. A product is complete for all four warps at once, so a warp's
// wait needs the others to have issued theirs, and tells it that they have read their operands too:
// one thread may then hand the memory back for all of them. Shared memory and the registers of A
// are read, and those of D read and written, when the operation is done, not when it is issued.

#include "emu/tensor/wgmma.h"

#include <stdio.h>

#include "emu/async/op.h"
#include "emu/run/run.h"
#include "emu/run/trace.h"

struct product {
    struct emu_op op;
    uint8_t *registers; // of the frame that issued it
    uint64_t a, b;      // descriptors
    bool scale_d;
};

static void *lanes_of(const struct product *p, uint32_t ref)
{
    const uint32_t at = ref & ((1u << EMU_REF_SHIFT) - 1);
    return ref >> EMU_REF_SHIFT == EMU_BASE_REG ? p->registers + at : emu_at_ref(p->op.warp, ref);
}

static struct emu_smem_matrix matrix_of(uint64_t descriptor, bool mn_major)
{
    static const uint32_t swizzles[] = {0, 128, 64, 32};
    struct emu_smem_matrix m = emu_smem_matrix_of(descriptor);
    m.swizzle = swizzles[descriptor >> 62];
    m.mn_major = mn_major;
    return m;
}

static struct emu_wgmma shape_of(const struct emu_insn *in)
{
    const struct emu_element a = emu_element_packed((enum emu_type)in->type);
    return (struct emu_wgmma){.n = 8u * in->size,
                              .k = (in->op & EMU_WGMMA_SPARSE ? 512u : 256u) / a.bits,
                              .a = a,
                              .b = emu_element_packed((enum emu_type)in->type2),
                              .d = (enum emu_type)in->width,
                              .flags = in->op,
                              .selector = (uint32_t)in->offset};
}

static _Noreturn void fault(struct product *p, enum emu_matrix_fault kind, uint32_t address)
{
    switch (kind) {
    case EMU_MATRIX_OUTSIDE:
        emu_op_fault(&p->op, "out-of-bounds shared access of wgmma at 0x%x", address);
    case EMU_MATRIX_IN_FLIGHT:
        emu_op_fault(&p->op, "read while a copy is in flight: wgmma at shared 0x%x", address);
    case EMU_MATRIX_METADATA:
        emu_op_fault(&p->op, "sparse metadata of row %u names no two places of four", address);
    default:
        emu_op_fault(&p->op, "uninitialised shared memory is read by wgmma at 0x%x", address);
    }
}

static void read_unit(void *user, const uint8_t *unit)
{
    emu_op_access_as(user, unit, 16, EMU_LOAD, EMU_AGENT_WGMMA);
}

static void finish(struct emu_op *op)
{
    struct product *p = (struct product *)op;
    const struct emu_warp *w = op->warp;
    const struct emu_arg *args = &w->launch->module->args.at[op->in->list];
    const struct emu_smem memory = {.bytes = w->cta->shared,
                                    .shadow = w->launch->emu->options.check ? w->cta->shared_shadow
                                                                            : NULL,
                                    .size = w->launch->shared_size,
                                    .read = op->agent ? read_unit : NULL,
                                    .user = op};
    struct emu_wgmma x = shape_of(op->in);
    uint32_t *d[128], address = 0;
    const uint32_t count = x.n / (x.d == EMU_f16 ? 4 : 2);
    for (uint32_t i = 0; i < count; i++)
        d[i] = lanes_of(p, args[i].ref);
    for (uint32_t i = 0; i < EMU_WGMMA_A_REGISTERS && x.flags & EMU_WGMMA_A_IN_REGISTERS; i++)
        x.a_lanes[i] = lanes_of(p, args[count + i].ref);
    x.d_lanes = d;
    x.metadata = lanes_of(p, op->in->src[3]);
    x.warp = w->index % 4;
    x.scale_d = p->scale_d;
    x.a_matrix = matrix_of(p->a, x.flags & EMU_WGMMA_TRANS_A);
    x.b_matrix = matrix_of(p->b, x.flags & EMU_WGMMA_TRANS_B);
    const enum emu_matrix_fault kind = emu_wgmma_compute(&x, &memory, &address);
    if (kind)
        fault(p, kind, address);
}

static void describe(const struct emu_op *op, char *text, size_t size)
{
    snprintf(text, size, "wgmma group %u of its warp", op->group);
}

// A product of 64 x 256 x 16 takes a multiprocessor 128 cycles; this is a quarter of one.
static uint64_t cycles(const struct emu_op *op)
{
    return op->in->size;
}

static const struct emu_engine engine = {.name = "wgmma",
                                         .unit = EMU_UNIT_MATRIX,
                                         .latency = 20,
                                         .cycles = cycles,
                                         .in_order = true,
                                         .finish = finish,
                                         .describe = describe};

// A descriptor is the same in all lanes.
static uint64_t uniform(struct emu_warp *w, uint32_t ref, const char *what)
{
    const uint64_t *v = emu_at_ref(w, ref);
    for (uint32_t i = 1; i < EMU_WARP; i++)
        if (v[i] != v[0])
            emu_fault(w, i, "the descriptor of %s is not the same in all lanes", what);
    return v[0];
}

static bool uniform_predicate(struct emu_warp *w, const struct emu_insn *in)
{
    const uint32_t p = *(const uint32_t *)emu_at_ref(w, in->src[2]);
    if (p && p != EMU_FULL)
        emu_fault(w, 0, "scale-d of wgmma is not the same in all lanes");
    return p ? !(in->op & EMU_WGMMA_NOT_SCALE_D) : in->op & EMU_WGMMA_NOT_SCALE_D;
}

// list: registers of D, of A; src: descriptors of A and B, scale-d, metadata; offset: the selector;
// size: n / 8; type, type2, width: of A, B, D
EMU_RUN(wgmma)
{
    if (!emu_whole_warp(w, mask))
        return;
    if (w->launch->emu->options.check)
        emu_watch_issue(w, in);
    struct product *p = emu_op_new(w, &engine, 0, sizeof *p);
    p->op.queue = w;
    p->op.group = w->wgmma_group;
    p->registers = w->base[EMU_BASE_REG];
    p->a = in->op & EMU_WGMMA_A_IN_REGISTERS ? 0 : uniform(w, in->src[0], "A");
    p->b = uniform(w, in->src[1], "B");
    p->scale_d = uniform_predicate(w, in);
    emu_op_track(&p->op, EMU_FULL, true);
    emu_op_issued(&p->op);
}

EMU_RUN(wgmma_fence)
{
    (void)in;
    if (emu_whole_warp(w, mask) && w->launch->emu->options.check)
        emu_watch_fence(w);
}

static struct emu_warp *sibling(const struct emu_warp *w, uint32_t i)
{
    const uint32_t index = w->index / 4 * 4 + i;
    return index < w->launch->warps ? &w->cta->warps[index] : NULL;
}

EMU_RUN(wgmma_commit)
{
    (void)in;
    if (!emu_whole_warp(w, mask))
        return;
    w->wgmma_group++;
    w->launch->events++;
    for (uint32_t i = 0; i < 4; i++) {
        const struct emu_warp *other = sibling(w, i);
        for (uint32_t k = 0; other && k < other->path_count; k++)
            if (other->paths[k]->state == EMU_PATH_GROUP)
                other->paths[k]->state = EMU_PATH_READY;
    }
}

// Whether all warps of the warpgroup have committed `groups`.
static bool all_committed(struct emu_warp *w, uint32_t groups)
{
    for (uint32_t i = 0; i < 4; i++) {
        const struct emu_warp *other = sibling(w, i);
        if (!other || other->wgmma_group >= groups)
            continue;
        if (!other->alive)
            emu_fault(w, 0, "wgmma: warp %u of the warpgroup exited without its part",
                      other->index);
        return false;
    }
    return true;
}

// Finishes a warp's products of the groups before `end`; gives when the last was complete.
static uint64_t finish_before(const struct emu_warp *w, uint32_t end)
{
    uint64_t time = 0;
    for (struct emu_op *op = w->cta->cluster->ops, *next; op; op = next) {
        next = op->next;
        if (op->engine != &engine || op->warp != w || op->group >= end)
            continue;
        emu_trace_reach(&time, op->end_time);
        emu_op_finish(op);
    }
    return time;
}

EMU_RUN(wgmma_wait)
{
    uint64_t time = 0;
    if (!emu_whole_warp(w, mask))
        return;
    const uint32_t pending = (uint32_t)in->offset;
    const uint32_t end = w->wgmma_group > pending ? w->wgmma_group - pending : 0;
    if (!all_committed(w, end)) {
        w->path->pc--;
        w->path->state = EMU_PATH_GROUP;
        w->reschedule = true;
        return;
    }
    for (uint32_t i = 0; i < 4 && end; i++) {
        const struct emu_warp *other = sibling(w, i);
        if (!other)
            continue;
        emu_trace_reach(&time, finish_before(other, end));
        emu_group_wait_of(w, other, EMU_AGENT_WGMMA, end);
    }
    emu_trace_wait(w, time, "wgmma group");
    emu_watch_wait(w, pending);
}

void emu_wgmma_exit(struct emu_warp *w)
{
    for (struct emu_op *op = w->cta->cluster->ops; op; op = op->next)
        if (op->engine == &engine && op->warp == w)
            emu_op_fault(op, "wgmma not waited for: the warp exits");
}
