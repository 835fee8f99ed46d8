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

static size_t bits_size(const struct emu_func *f)
{
    return slots_of(f) * EMU_WARP * sizeof(uint64_t);
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

// The undefined bits of its lanes.
static uint64_t *bits_at(struct emu_warp *w, uint32_t ref)
{
    struct emu_frame *frame = w->path->frame;
    if (!frame->undefined_bits)
        frame->undefined_bits = emu_launch_alloc(w->launch, NULL, 0, bits_size(frame->func));
    return frame->undefined_bits + (at(w, ref) - frame->undefined) * EMU_WARP;
}

uint64_t emu_undefined_bits(const struct emu_warp *w, uint32_t ref, uint32_t lane)
{
    const struct emu_frame *frame = w->path->frame;
    if (!(emu_undefined_lanes(w, ref) >> lane & 1))
        return 0;
    return frame->undefined_bits[(size_t)(at(w, ref) - frame->undefined) * EMU_WARP + lane];
}

static void change(struct emu_warp *w, uint32_t *lanes, uint32_t to)
{
    struct emu_frame *frame = w->path->frame;
    const uint32_t was = *lanes != 0, is = to != 0;
    frame->undefined_count += is - was;
    w->undefined_count += is - was;
    *lanes = to;
}

static void mark(struct emu_warp *w, uint32_t ref, const uint64_t *bits, uint32_t lanes)
{
    uint64_t *to = lanes ? bits_at(w, ref) : NULL;
    uint32_t *of = at(w, ref);
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (lanes >> i & 1)
            to[i] = bits[i];
    change(w, of, *of | lanes);
}

void emu_undefined_set(struct emu_warp *w, uint32_t ref, const uint64_t *bits, uint32_t lanes)
{
    if (at(w, ref))
        mark(w, ref, bits, lanes);
    w->undefined_by = w->in;
}

void emu_undefined_shuffled(struct emu_warp *w, uint32_t to, uint32_t of, const uint32_t *from,
                            uint32_t mask)
{
    uint64_t bits[EMU_WARP];
    uint32_t undefined = 0;
    if (!at(w, to))
        return;
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        bits[i] = mask >> i & 1 ? emu_undefined_bits(w, of, from[i]) : 0;
        undefined |= bits[i] ? 1u << i : 0;
    }
    change(w, at(w, to), *at(w, to) & ~mask);
    mark(w, to, bits, undefined);
}

void emu_undefined_free(struct emu_grid *l, struct emu_frame *frame)
{
    if (frame->undefined_bits)
        emu_launch_free(l, frame->undefined_bits, bits_size(frame->func));
    frame->undefined_bits = NULL;
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

// Whether a bit of its result depends on one bit of each operand, at the same place or another.
static bool moves_bits(const struct emu_insn *in)
{
    static const emu_run_fn list[] = {emu_run_lop3, emu_run_selp,   emu_run_pred,      emu_run_mov,
                                      emu_run_pack, emu_run_unpack, emu_run_mov_vector};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (in->run == list[i])
            return true;
    if (in->run == emu_run_cvt)
        return emu_types[in->type].kind < EMU_KIND_FLOAT &&
               emu_types[in->type2].kind < EMU_KIND_FLOAT && !(in->flags & EMU_INSN_SAT);
    return in->run == emu_run_alu && in->flags & EMU_INSN_BITS;
}

// --- an instruction executed again ---

enum { MOST_TOUCHED = 16 };

struct written {
    const struct emu_touch *touch;
    uint8_t before[16 * EMU_WARP], result[16 * EMU_WARP];
    uint64_t bits[EMU_WARP]; // that differed from the result
};

static size_t size_of(const struct emu_touch *t)
{
    return t->width ? (size_t)t->width * EMU_WARP : sizeof(uint32_t);
}

// Inverts the undefined bits of a register.
static void invert(struct emu_warp *w, const struct emu_touch *t)
{
    uint8_t *p = emu_at_ref(w, t->ref);
    const uint32_t lanes = emu_undefined_lanes(w, t->ref);
    for (uint32_t i = 0; i < EMU_WARP; i++)
        if (!t->width)
            p[i / 8] ^= lanes & 1u << i ? 1u << i % 8 : 0;
        else
            for (uint32_t b = 0; b < t->width; b++)
                p[i * t->width + b] ^= (uint8_t)(emu_undefined_bits(w, t->ref, i) >> b % 8 * 8);
}

static uint64_t lane_of(const struct emu_touch *t, const uint8_t *content, uint32_t lane)
{
    uint64_t low = 0, high = 0;
    if (!t->width)
        return content[lane / 8] >> lane % 8 & 1;
    memcpy(&low, content + (size_t)lane * t->width, t->width < 8 ? t->width : 8);
    if (t->width > 8)
        memcpy(&high, content + (size_t)lane * t->width + 8, 8);
    return low ^ high; // of 128 bits only whether they differ counts
}

// Executes the instruction with the undefined bits of one source inverted, of all, or of none.
static void again(struct emu_warp *w, const struct emu_insn *in, uint32_t mask,
                  const struct emu_touch *const *sources, uint32_t count, struct written *to,
                  uint32_t writes, bool first)
{
    for (uint32_t k = 0; k < count; k++)
        invert(w, sources[k]);
    in->run(w, in, mask);
    for (uint32_t k = 0; k < writes; k++) {
        const struct emu_touch *t = to[k].touch;
        const uint8_t *now = emu_at_ref(w, t->ref);
        if (first)
            memcpy(to[k].result, now, size_of(t));
        for (uint32_t i = 0; i < EMU_WARP; i++)
            to[k].bits[i] |= lane_of(t, to[k].result, i) ^ lane_of(t, now, i);
    }
    for (uint32_t k = 0; k < writes; k++)
        memcpy(emu_at_ref(w, to[k].touch->ref), to[k].before, size_of(to[k].touch));
    // A source that is written as well has its value back by now.
    for (uint32_t k = 0; k < count; k++) {
        bool is_back = false;
        for (uint32_t i = 0; i < writes; i++)
            is_back |= to[i].touch->ref == sources[k]->ref;
        if (!is_back)
            invert(w, sources[k]);
    }
}

// What an instruction that moves bits makes undefined.
static void follow(struct emu_warp *w, const struct emu_insn *in, uint32_t mask, uint32_t end)
{
    const struct emu_touch *sources[MOST_TOUCHED] = {NULL};
    static const struct written none;
    struct written to[MOST_TOUCHED];
    uint32_t count = 0, writes = 0;
    for (uint32_t i = in->touches; i < end; i++) {
        const struct emu_touch *t = &w->launch->module->touches.at[i];
        bool is_new = !t->is_write && emu_undefined_lanes(w, t->ref) & mask;
        for (uint32_t k = 0; k < count; k++)
            is_new &= sources[k]->ref != t->ref;
        if (is_new)
            sources[count++] = t;
        if (!t->is_write || !at(w, t->ref))
            continue;
        to[writes] = none;
        to[writes].touch = t;
        memcpy(to[writes++].before, emu_at_ref(w, t->ref), size_of(t));
    }
    again(w, in, mask, sources, 0, to, writes, true);
    for (uint32_t k = 0; k < count; k++)
        again(w, in, mask, &sources[k], 1, to, writes, false);
    if (count > 1)
        again(w, in, mask, sources, count, to, writes, false);
    for (uint32_t k = 0; k < writes; k++) {
        uint32_t *lanes = at(w, to[k].touch->ref), differ = 0;
        for (uint32_t i = 0; i < EMU_WARP; i++)
            if (mask >> i & 1 && to[k].bits[i]) {
                differ |= 1u << i;
                to[k].bits[i] = to[k].touch->width > 8 ? UINT64_MAX : to[k].bits[i];
            }
        change(w, lanes, *lanes & ~mask);
        mark(w, to[k].touch->ref, to[k].bits, differ);
    }
}

// An instruction that reads an undefined register and is neither a move nor a computation.
static const char *use_of(const struct emu_insn *in)
{
    if (in->run == emu_run_ld || in->run == emu_run_st || in->run == emu_run_atom)
        return "is part of an address or goes to memory";
    return in->run == emu_run_bra || in->run == emu_run_brx ? "decides a branch"
                                                            : "is used by more than its lane";
}

// Is the register the value of a shuffle alone?
static bool is_shuffled(const struct emu_insn *in, uint32_t ref)
{
    return in->run == emu_run_shfl && ref == in->src[0] && ref != in->src[1] && ref != in->src[2] &&
           ref != in->src[3];
}

void emu_undefined_step(struct emu_warp *w, const struct emu_insn *in)
{
    uint64_t all[EMU_WARP];
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
    // Of a store the value may go to local memory, which store() decides. That of a shuffle goes to
    // other lanes, which the shuffle knows once all have come.
    if (in->run == emu_run_st)
        read = emu_undefined_lanes(w, in->src[0]) & mask;
    for (uint32_t i = in->touches; i < end && in->run != emu_run_st; i++)
        if (!m->touches.at[i].is_write && !is_shuffled(in, m->touches.at[i].ref))
            read |= emu_undefined_lanes(w, m->touches.at[i].ref) & mask;
    const bool follows = is_of_lanes(in);
    if (read && !follows)
        emu_undefined_fault(w, read, use_of(in));
    if (read && moves_bits(in) && end - in->touches <= MOST_TOUCHED) {
        follow(w, in, mask, end);
        return;
    }
    for (uint32_t i = in->touches; i < end; i++) {
        uint32_t *to = m->touches.at[i].is_write ? at(w, m->touches.at[i].ref) : NULL;
        if (!to || (in->run == emu_run_shfl && m->touches.at[i].ref == in->dst))
            continue;
        const uint32_t width = m->touches.at[i].width;
        for (uint32_t k = 0; k < EMU_WARP; k++)
            all[k] = width && width < 8 ? ((uint64_t)1 << width * 8) - 1 : UINT64_MAX;
        change(w, to, *to & ~mask);
        mark(w, m->touches.at[i].ref, all, read);
    }
}
