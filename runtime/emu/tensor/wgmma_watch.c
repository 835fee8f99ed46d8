// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The watch over a warp's registers while products, or loads of tensor memory, are in flight.
//
// Between the issue of a wgmma and the wait for its group, no instruction may read or write its
// accumulators or the registers of its A, except that another product may read the latter. Products
// of one shape may follow one another on the same accumulators. A register that another instruction
// has written needs a wgmma.fence before a product uses it. None of this depends on when the
// operation executes: a product is in flight until the program has waited for it.
//
// The registers of a tcgen05.ld are in flight until the warp's next wait for loads. A move makes
// its destination such a register too: compilers put moves before a wait that is tied to its
// registers. A store to local memory is a move as well, in code that is not optimised, but what it
// has moved is not followed.
//
// The watch has an entry for each register of the frame. It costs a look at every operand, so it
// exists only from a warp's first fence or load on, and only when something is checked.

#include <string.h>

#include "emu/run/run.h"
#include "emu/tensor/wgmma.h"

struct entry {
    uint32_t written;                           // the fence it was written after
    uint32_t accumulator, a;                    // 1 + the last group that has it as such
    const struct emu_insn *by_accumulator, *by; // and the product
    uint32_t load;                              // 1 + the group of its last tcgen05.ld
    const struct emu_insn *by_load;
};

struct emu_watch {
    const struct emu_frame *frame;
    uint32_t fence; // how many there were
    uint32_t done;  // groups
    uint32_t count;
    size_t size;
    struct entry at[];
};

static struct entry *entry_of(struct emu_watch *watch, uint32_t ref)
{
    const uint32_t slot = (ref & ((1u << EMU_REF_SHIFT) - 1)) / EMU_REG_SLOT;
    return ref >> EMU_REF_SHIFT == EMU_BASE_REG && slot < watch->count ? &watch->at[slot] : NULL;
}

static _Noreturn void fault(struct emu_warp *w, const struct emu_insn *by, const char *what)
{
    emu_fault(w, emu_first_lane(w->path->mask), "%s of the wgmma of PTX line %u is in flight", what,
              by->line);
}

static bool is_move(const struct emu_insn *in)
{
    return in->run == emu_run_mov || in->run == emu_run_mov_vector || in->run == emu_run_pack ||
           in->run == emu_run_unpack;
}

// Whether a store goes to local memory only.
static bool stores_locally(struct emu_warp *w, const struct emu_insn *in)
{
    uint64_t address[EMU_WARP];
    if (in->run != emu_run_st || (in->space != EMU_LOCAL && in->space != EMU_GENERIC))
        return false;
    bool is_local = true;
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP && in->space == EMU_GENERIC; i++)
        is_local &= !(w->path->mask >> i & 1) || (address[i] & EMU_WINDOW_MASK) == EMU_LOCAL_WINDOW;
    return is_local;
}

// The load that a register which the instruction reads belongs to, for a move.
static const struct emu_insn *load_of(struct emu_warp *w, struct entry *e, bool moves)
{
    if (e->load <= w->tmem_group[0])
        return NULL;
    if (!moves && emu_leaves_order(w->launch->module)) {
        if (emu_finding_is_new(w->launch, EMU_F_TMEM_LEFT, w->in->line, 0))
            emu_report(w, emu_first_lane(w->path->mask),
                       "%s the tcgen05.ld of PTX line %u is in flight",
                       emu_finding_prefix(EMU_F_TMEM_LEFT), e->by_load->line);
        e->load = 0; // once is enough
        return NULL;
    }
    if (!moves)
        emu_fault(w, emu_first_lane(w->path->mask),
                  "tensor memory register read: the tcgen05.ld of PTX line %u is in flight",
                  e->by_load->line);
    return e->by_load;
}

void emu_watch(struct emu_warp *w, const struct emu_insn *in)
{
    struct emu_watch *watch = w->watch;
    const struct emu_module *m = w->launch->module;
    const uint32_t next = (uint32_t)(in - m->code.at) + 1;
    const uint32_t end = next < m->code.len ? m->code.at[next].touches : m->touches.len;
    const struct emu_insn *load = NULL;
    bool moves = is_move(in);
    if (w->path->frame != watch->frame || in->run == emu_run_wgmma)
        return;
    for (uint32_t i = in->touches; i < end; i++) {
        struct entry *e = entry_of(watch, m->touches.at[i].ref);
        if (!e || m->touches.at[i].is_write || e->load <= w->tmem_group[0])
            continue;
        moves = moves || stores_locally(w, in);
        if (load_of(w, e, moves))
            load = e->by_load;
    }
    for (uint32_t i = in->touches; i < end; i++) {
        struct entry *e = entry_of(watch, m->touches.at[i].ref);
        const bool is_write = m->touches.at[i].is_write;
        if (!e)
            continue;
        if (e->accumulator > watch->done)
            fault(w, e->by_accumulator,
                  is_write ? "wgmma register written: an accumulator"
                           : "wgmma register read: an accumulator");
        if (e->a > watch->done)
            fault(w, e->by,
                  is_write ? "wgmma register written: a register of A"
                           : "wgmma register read: a register of A");
        if (is_write) {
            e->written = watch->fence;
            e->load = load ? w->tmem_group[0] + 1 : 0;
            e->by_load = load;
        }
    }
}

void emu_watch_free(struct emu_warp *w)
{
    if (w->watch)
        emu_launch_free(w->launch, w->watch, w->watch->size);
    w->watch = NULL;
}

// The watch over the running frame.
static struct emu_watch *watch_of(struct emu_warp *w)
{
    const struct emu_frame *frame = w->path->frame;
    if (w->watch && w->watch->frame == frame)
        return w->watch;
    const uint32_t count = frame->func->reg_bytes / EMU_REG_SLOT + 1;
    const size_t size = sizeof *w->watch + count * sizeof *w->watch->at;
    emu_watch_free(w);
    w->watch = emu_launch_alloc(w->launch, NULL, 0, size);
    memset(w->watch, 0, size);
    w->watch->frame = frame;
    w->watch->done = w->wgmma_group;
    w->watch->count = count;
    w->watch->size = size;
    return w->watch;
}

void emu_watch_fence(struct emu_warp *w)
{
    watch_of(w)->fence++;
}

void emu_watch_load(struct emu_warp *w, const struct emu_insn *in)
{
    struct emu_watch *watch = watch_of(w);
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    for (uint32_t i = 0; i <= in->count; i++) { // .red has one more
        struct entry *e = entry_of(watch, i < in->count ? args[i].ref : in->dst);
        if (!e)
            continue;
        e->load = w->tmem_group[0] + 1;
        e->by_load = in;
    }
}

static void need_fence(struct emu_warp *w, const struct entry *e, const char *what)
{
    if (e->written == w->watch->fence)
        emu_fault(w, 0, "wgmma without a wgmma.fence: %s was written after the last one", what);
}

static void issue_accumulator(struct emu_warp *w, const struct emu_insn *in, struct entry *e)
{
    const struct emu_insn *last = e->by_accumulator;
    need_fence(w, e, "an accumulator");
    if (e->a > w->watch->done)
        fault(w, e->by, "wgmma register written: a register of A");
    if (e->accumulator > w->watch->done && (last->size != in->size || last->width != in->width))
        fault(w, last, "wgmma of another shape: an accumulator");
    e->accumulator = w->wgmma_group + 1;
    e->by_accumulator = in;
}

void emu_watch_issue(struct emu_warp *w, const struct emu_insn *in)
{
    const struct emu_module *m = w->launch->module;
    const uint32_t count = 8u * in->size / (in->width == EMU_f16 ? 4 : 2);
    if (!w->watch || w->watch->frame != w->path->frame)
        emu_fault(w, 0, "wgmma without a wgmma.fence before it");
    for (uint32_t i = 0; i < in->count; i++) {
        struct entry *e = entry_of(w->watch, m->args.at[in->list + i].ref);
        if (!e)
            continue;
        if (i < count) {
            issue_accumulator(w, in, e);
            continue;
        }
        need_fence(w, e, "a register of A");
        if (e->accumulator > w->watch->done)
            fault(w, e->by_accumulator, "wgmma register read: an accumulator");
        e->a = w->wgmma_group + 1;
        e->by = in;
    }
}

void emu_watch_wait(struct emu_warp *w, uint32_t pending)
{
    if (w->watch && w->wgmma_group >= pending && w->wgmma_group - pending > w->watch->done)
        w->watch->done = w->wgmma_group - pending;
}
