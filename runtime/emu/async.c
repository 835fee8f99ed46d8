// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cp.async: copies from global to shared memory that arrive when they are waited for.
//
// Hardware may move the bytes at any time between the copy and its wait, so a program may rely on
// neither the old nor the new contents. Here the source is read when the copy is issued, the bytes
// of the destination are marked as in flight, and they arrive as late as they may: at the wait (or
// when the thread exits). Reading or overwriting them before that is reported by whoever does.

#include <string.h>

#include "emu/run.h"
#include "emu/state.h"

static struct emu_copy *copy_new(struct emu_warp *w)
{
    if (w->copy_count == w->copy_cap) {
        const uint32_t cap = w->copy_cap ? w->copy_cap * 2 : 16;
        w->copies = emu_launch_alloc(w->launch, w->copies, w->copy_cap * sizeof *w->copies,
                                     cap * sizeof *w->copies);
        w->copy_cap = cap;
    }
    struct emu_copy *c = &w->copies[w->copy_count++];
    c->mask = 0;
    return c;
}

// src[0] + offset: shared address; list: global address, a register and an offset; src[2]: bytes to
// read, when count is 1; src[3]: predicate under which nothing is read; size
EMU_RUN(cp_async)
{
    uint64_t address[EMU_WARP];
    const uint32_t size = in->size;
    const struct emu_arg *from = &w->launch->module->args.at[in->list];
    const uint64_t *base = emu_at_ref(w, from->ref);
    const uint32_t *bytes = emu_at_ref(w, in->src[2]);
    const uint32_t ignore = *(const uint32_t *)emu_at_ref(w, in->src[3]);
    emu_addresses(w, in, address);
    struct emu_copy *c = copy_new(w);
    c->size = size;
    memset(c->data, 0, sizeof c->data);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const uint32_t want = in->count ? bytes[i] : size;
        if (want > size)
            emu_fault(w, i, "cp.async: source size %u is above %u", want, size);
        const uint64_t source = base[i] + (uint64_t)(int32_t)from->offset;
        if (source % size)
            emu_fault(w, i, "misaligned cp.async source 0x%llx of %u bytes",
                      (unsigned long long)source, size);
        const uint32_t read = ignore >> i & 1 ? 0 : want;
        const uint32_t step = read == size ? size : 1; // part of an access: byte by byte
        for (uint32_t k = 0; k < read; k += step)
            memcpy(c->data[i] + k, emu_resolve(w, i, EMU_GLOBAL, source + k, step, EMU_LOAD).bytes,
                   step);
        const struct emu_cell to =
            emu_resolve(w, i, (enum emu_space)in->space, address[i], size, EMU_STORE);
        if (to.bytes < w->cta->shared || to.bytes >= w->cta->shared + w->launch->shared_size)
            emu_fault(w, i, "cp.async writes outside of shared memory");
        memset(to.shadow, EMU_IN_FLIGHT, size);
        c->dst[i] = (uint32_t)(to.bytes - w->cta->shared);
        c->group[i] = w->group[i];
    }
    c->mask = mask;
}

void emu_copies_land(struct emu_warp *w, uint32_t mask, uint32_t behind, bool all)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < w->copy_count; n++) {
        struct emu_copy *c = &w->copies[n];
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            if (!(c->mask & mask & 1u << i))
                continue;
            if (!all && c->group[i] + behind >= w->group[i])
                continue;
            memcpy(w->cta->shared + c->dst[i], c->data[i], c->size);
            memset(w->cta->shared_shadow + c->dst[i], EMU_SET, c->size);
            c->mask &= ~(1u << i);
        }
        if (c->mask)
            w->copies[kept++] = *c;
    }
    w->copy_count = kept;
}

EMU_RUN(cp_commit)
{
    (void)in;
    for (uint32_t i = 0; i < EMU_WARP; i++)
        w->group[i] += mask >> i & 1;
}

// offset: how many of the newest groups may stay pending; op: 1 for wait_all
EMU_RUN(cp_wait)
{
    emu_copies_land(w, mask, (uint32_t)in->offset, in->op);
}
