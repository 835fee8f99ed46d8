// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// alloca, stacksave, stackrestore: memory of a frame that is handed out while it runs.
//
// A function that uses them has an area for it in its per-thread memory. The area's first word
// holds how much of it is used; it counts as 0 while nothing has been written there, as in a new
// frame.

#include <string.h>

#include "emu/check/finding.h"
#include "emu/decode/decode.h"
#include "emu/run/state.h"

enum { AREA = 16384, FIRST = 16, MAX_ALIGN = 256 };

// The place of a lane's word in the frame.
static size_t word_at(const struct emu_warp *w, const struct emu_insn *in, uint32_t lane)
{
    return (size_t)lane * w->path->frame->func->local_bytes + (size_t)in->offset;
}

static uint32_t used(const struct emu_warp *w, const struct emu_insn *in, uint32_t lane)
{
    const struct emu_frame *f = w->path->frame;
    const size_t at = word_at(w, in, lane);
    uint32_t value = FIRST;
    if (f->local_shadow[at] == EMU_SET)
        memcpy(&value, f->local + at, sizeof value);
    return value;
}

static void set_used(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, uint32_t value)
{
    const struct emu_frame *f = w->path->frame;
    const size_t at = word_at(w, in, lane);
    memcpy(f->local + at, &value, sizeof value);
    f->local_shadow[at] = EMU_SET;
}

static void give(struct emu_warp *w, const struct emu_insn *in, const uint64_t *v, uint32_t mask)
{
    uint32_t narrow[EMU_WARP];
    for (int i = 0; i < EMU_WARP; i++)
        narrow[i] = (uint32_t)v[i];
    emu_commit(w, in->dst, in->width == 8 ? (const void *)v : narrow, in->width, mask);
}

// dst; src: bytes; offset: of the area in the frame; target: the alignment
EMU_RUN(alloca)
{
    uint64_t out[EMU_WARP] = {0};
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const uint64_t at = emu_align_up(used(w, in, i), in->target),
                       size = emu_lane_value(w, in->src[0], in->width, i);
        if (size > AREA || at + size > AREA)
            emu_fault(w, i, "call stack overflow: alloca of more than %d bytes in a function",
                      AREA);
        set_used(w, in, i, (uint32_t)(at + size));
        memset(w->path->frame->local_shadow + word_at(w, in, i) + at, EMU_UNSET, size);
        out[i] = w->path->frame->local_base + (uint64_t)in->offset + at;
    }
    give(w, in, out, mask);
}

// dst
EMU_RUN(stacksave)
{
    uint64_t out[EMU_WARP];
    for (uint32_t i = 0; i < EMU_WARP; i++)
        out[i] = mask >> i & 1 ? used(w, in, i) : 0;
    give(w, in, out, mask);
}

// src
EMU_RUN(stackrestore)
{
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const uint64_t value = emu_lane_value(w, in->src[0], in->width, i);
        if (value < FIRST || value > used(w, in, i))
            emu_fault(w, i, "stackrestore of what no stacksave gave");
        set_used(w, in, i, (uint32_t)value);
    }
}

static void take_area(struct emu_dec *d)
{
    static const char *const types[] = {"u32", "u64", NULL};
    const int type = emu_dec_one_of(d, types);
    if (type < 0)
        emu_dec_bad(d, "the type is .u32 or .u64");
    d->in->width = type ? 8 : 4;
    if (!d->ld->func->stack_at)
        d->ld->func->stack_at = emu_func_local(d->ld, AREA, MAX_ALIGN) + 1;
    d->in->offset = d->ld->func->stack_at - 1;
}

void emu_decode_alloca(struct emu_dec *d)
{
    take_area(d);
    const enum emu_type type = d->in->width == 8 ? EMU_b64 : EMU_b32;
    d->in->run = emu_run_alloca;
    d->in->dst = emu_dec_dst(d, type);
    d->in->src[0] = emu_dec_src(d, type);
    const uint64_t align = d->at < d->ast->operand_count ? emu_dec_constant(d) : 8;
    if (align == 0 || align > MAX_ALIGN || (align & (align - 1)))
        emu_dec_bad(d, "the alignment is not a power of two up to %d", MAX_ALIGN);
    d->in->target = align < 8 ? 8 : (uint32_t)align;
}

void emu_decode_stacksave(struct emu_dec *d)
{
    take_area(d);
    d->in->run = emu_run_stacksave;
    d->in->dst = emu_dec_dst(d, d->in->width == 8 ? EMU_b64 : EMU_b32);
}

void emu_decode_stackrestore(struct emu_dec *d)
{
    take_area(d);
    d->in->run = emu_run_stackrestore;
    d->in->src[0] = emu_dec_src(d, d->in->width == 8 ? EMU_b64 : EMU_b32);
}
