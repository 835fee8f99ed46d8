// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which lanes of which registers are undefined, and what may be done with them.

#include "emu/check/undefined.h"

#include <string.h>

#include "emu/run/run.h"

static uint32_t slots_of(const struct emu_func *f)
{
    return f->reg_bytes / EMU_REG_SLOT + 1;
}

size_t emu_undefined_size(const struct emu_func *f)
{
    return slots_of(f) * sizeof(uint32_t);
}

// The lanes of a register of the running frame; NULL: it is none.
static uint32_t *at(const struct emu_warp *w, uint32_t ref)
{
    if (ref == EMU_NO_REF || ref >> EMU_REF_SHIFT != EMU_BASE_REG)
        return NULL;
    return &w->path->frame->undefined[(ref & ((1u << EMU_REF_SHIFT) - 1)) / EMU_REG_SLOT];
}

uint32_t emu_undefined_lanes(const struct emu_warp *w, uint32_t ref)
{
    const uint32_t *lanes = at(w, ref);
    return lanes ? *lanes : 0;
}

static void change(struct emu_warp *w, uint32_t *lanes, uint32_t to)
{
    struct emu_frame *frame = w->path->frame;
    const uint32_t was = *lanes != 0, is = to != 0;
    frame->undefined_count += is - was;
    w->undefined_count += is - was;
    *lanes = to;
}

void emu_undefined_set(struct emu_warp *w, uint32_t ref, uint32_t lanes)
{
    uint32_t *of = at(w, ref);
    if (of)
        change(w, of, *of | lanes);
    w->undefined_by = w->in;
}

void emu_undefined_drop(struct emu_warp *w, struct emu_frame *frame)
{
    w->undefined_count -= frame->undefined_count;
    frame->undefined_count = 0;
    memset(frame->undefined, 0, emu_undefined_size(frame->func));
}

_Noreturn void emu_undefined_fault(struct emu_warp *w, uint32_t lanes, const char *use)
{
    emu_fault(w, emu_first_lane(lanes),
              "undefined value %s; the last such load of the warp is that of PTX line %u", use,
              w->undefined_by->line);
}

// Computes each lane by itself, and does nothing else.
static bool is_of_lanes(const struct emu_insn *in)
{
    static const emu_run_fn list[] = {
        emu_run_alu,        emu_run_alu_fix,    emu_run_lop3,     emu_run_setp,
        emu_run_set,        emu_run_selp,       emu_run_pred,     emu_run_mov,
        emu_run_pack,       emu_run_unpack,     emu_run_carry,    emu_run_add_const,
        emu_run_mov_vector, emu_run_cvt,        emu_run_cvt_pack, emu_run_video,
        emu_run_video_mad,  emu_run_video_simd, emu_run_isspacep, emu_run_cvt_pack_int};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (in->run == list[i])
            return true;
    return false;
}

// An instruction that reads an undefined register and is neither a move nor a computation.
static const char *use_of(const struct emu_insn *in)
{
    if (in->run == emu_run_ld || in->run == emu_run_st || in->run == emu_run_atom)
        return "is part of an address or goes to memory";
    return in->run == emu_run_bra || in->run == emu_run_brx ? "decides a branch"
                                                            : "is used by more than its lane";
}

void emu_undefined_step(struct emu_warp *w, const struct emu_insn *in)
{
    const struct emu_module *m = w->launch->module;
    const uint32_t next = (uint32_t)(in - m->code.at) + 1;
    const uint32_t end = next < m->code.len ? m->code.at[next].touches : m->touches.len;
    uint32_t mask = w->path->mask, read = 0;
    if (in->guard != EMU_NO_REF) {
        const uint32_t guard = *(const uint32_t *)emu_at_ref(w, in->guard);
        const uint32_t wrong = emu_undefined_lanes(w, in->guard) & mask;
        if (wrong)
            emu_undefined_fault(w, wrong,
                                in->run == emu_run_bra ? "decides a branch" : "is a guard");
        mask &= in->flags & EMU_INSN_GUARD_NOT ? ~guard : guard;
    }
    // Of a store the value may go to local memory, which store() decides.
    if (in->run == emu_run_st)
        read = emu_undefined_lanes(w, in->src[0]) & mask;
    for (uint32_t i = in->touches; i < end && in->run != emu_run_st; i++)
        if (!m->touches.at[i].is_write)
            read |= emu_undefined_lanes(w, m->touches.at[i].ref) & mask;
    const bool follows = is_of_lanes(in);
    if (read && !follows)
        emu_undefined_fault(w, read, use_of(in));
    for (uint32_t i = in->touches; i < end; i++) {
        uint32_t *to = m->touches.at[i].is_write ? at(w, m->touches.at[i].ref) : NULL;
        if (to)
            change(w, to, (*to & ~mask) | read);
    }
}
