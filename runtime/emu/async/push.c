// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stores of registers that arrive later, and zeros: st.async, red.async, st.bulk.
//
// An asynchronous store takes its values when it is issued and writes them to shared memory of the
// cluster some time later; it tells an mbarrier so by transaction bytes. Unlike bulk copies it is
// no access of the async proxy, so no proxy fence stands between it and what threads do.

#include <inttypes.h>
#include <string.h>

#include "emu/async/cp_async.h"
#include "emu/async/mbarrier.h"
#include "emu/async/op.h"
#include "emu/run/run.h"

enum { MOST = 32, FILL_STEP = 8, FILL_LIMIT = 16777216 };

struct push {
    struct emu_op op;
    struct emu_mbarrier *barrier;
    uint8_t *to, *to_shadow;
    uint32_t size, element; // bytes
    uint8_t data[MOST];
};

static void combine(struct push *p)
{
    for (uint32_t k = 0; k < p->size; k++)
        if (p->op.warp->launch->emu->options.check && p->to_shadow[k] != EMU_SET)
            emu_op_fault(&p->op, "uninitialised shared memory is read by red.async");
    for (uint32_t k = 0; k < p->size; k += p->element) {
        uint64_t old = 0, value = 0;
        memcpy(&old, p->to + k, p->element);
        memcpy(&value, p->data + k, p->element);
        value = p->op.in->atom(old, value, 0);
        memcpy(p->to + k, &value, p->element);
    }
}

static void finish(struct emu_op *op)
{
    struct push *p = (struct push *)op;
    const struct emu_by by = emu_by_op(op);
    emu_op_access(op, p->to, p->size, op->in->atom ? EMU_ATOMIC : EMU_STORE, false);
    if (op->in->atom)
        combine(p);
    else
        memcpy(p->to, p->data, p->size);
    memset(p->to_shadow, EMU_SET, p->size);
    emu_op_signal(op, &p->barrier->view);
    emu_mbarrier_complete(p->barrier, &by, p->size);
}

static void describe(const struct emu_op *op, char *text, size_t size)
{
    emu_mbarrier_describe(((const struct push *)op)->barrier, text, size);
}

static bool touches(const struct emu_op *op, const struct emu_cta *cta)
{
    return emu_op_is_of(cta, ((const struct push *)op)->to);
}

static const struct emu_engine engine = {.name = "asynchronous store",
                                         .unit = EMU_UNIT_COPY,
                                         .latency = 300,
                                         .finish = finish,
                                         .touches = touches,
                                         .describe = describe};

// src[0] + offset: address; list: values, then the barrier; atom: a reduction; size: of a value
EMU_RUN(push)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t values = in->count - 1u, size = in->size;
    uint64_t to[EMU_WARP], barrier[EMU_WARP];
    emu_addresses(w, in, to);
    emu_arg_addresses(w, &args[values], barrier);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const struct emu_cell cell =
            emu_locate(w, i, EMU_SHARED_CLUSTER, to[i], size * values, EMU_STORE);
        struct emu_mbarrier *b = emu_mbarrier_at(w, i, EMU_SHARED_CLUSTER, barrier[i]);
        struct push *p = emu_op_new(w, &engine, i, sizeof *p);
        p->barrier = b;
        p->op.barriers = &p->barrier;
        p->op.barrier_count = 1;
        p->to = cell.bytes;
        p->to_shadow = cell.shadow;
        p->size = size * values;
        p->element = size;
        p->op.is_generic = true;
        for (uint32_t k = 0; k < values; k++)
            memcpy(p->data + k * size,
                   (const uint8_t *)emu_at_ref(w, args[k].ref) + i * args[k].width, size);
        if (!in->atom)
            memset(p->to_shadow, EMU_IN_FLIGHT, p->size);
        emu_op_track(&p->op, 1u << i, false);
        emu_op_issued(&p->op);
    }
}

// src[0] + offset: address in the CTA's own shared memory; src[1]: bytes; width: of src[1]
EMU_RUN(bulk_fill)
{
    uint64_t to[EMU_WARP];
    emu_addresses(w, in, to);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint64_t size = 0;
        uint32_t offset;
        if (!(mask >> i & 1))
            continue;
        memcpy(&size, (const uint8_t *)emu_at_ref(w, in->src[1]) + i * in->width, in->width);
        if (size % FILL_STEP || size > FILL_LIMIT)
            emu_fault(w, i, "st.bulk of %" PRIu64 " bytes; multiples of 8 up to %d are possible",
                      size, FILL_LIMIT);
        const enum emu_space space = (enum emu_space)in->space;
        const struct emu_cta *cta = emu_shared_at(w, i, space, to[i], (uint32_t)size, &offset);
        if (cta != w->cta)
            emu_fault_access(w, i, "another CTA's address:", "store", "shared", to[i], size);
        const uint64_t start = EMU_SHARED_START + offset + emu_rank_bits(cta->rank);
        for (uint64_t k = 0; k < size; k += FILL_STEP) {
            const struct emu_cell cell =
                emu_resolve(w, i, EMU_SHARED, start + k, FILL_STEP, EMU_STORE);
            memset(cell.bytes, 0, FILL_STEP);
            memset(cell.shadow, EMU_SET, FILL_STEP);
        }
    }
}
