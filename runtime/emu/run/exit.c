// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks when the last thread of a CTA exits.
//
// From then on its shared memory may belong to another CTA. A copy that still reads or writes it,
// or an mbarrier whose bytes never came, is an error that rarely shows on hardware.

#include <inttypes.h>

#include "emu/async/mbarrier.h"
#include "emu/async/op.h"

bool emu_op_is_of(const struct emu_cta *cta, const uint8_t *bytes)
{
    return bytes && bytes >= cta->shared && bytes < cta->shared + cta->launch->shared_size;
}

static void report_op(const struct emu_op *op)
{
    struct emu_warp *w = op->warp;
    const struct emu_insn *now = w->in;
    char text[100];
    op->engine->describe(op, text, sizeof text);
    w->in = op->in;
    emu_report(w, op->lane, "%s %s, %s", emu_finding_prefix(EMU_F_EXIT_EARLY), op->engine->name,
               text);
    w->in = now;
}

void emu_op_left(const struct emu_op *op)
{
    if (op->warp->launch->emu->options.check == EMU_CHECK_FULL)
        report_op(op);
}

static void report_bytes(struct emu_warp *w, const struct emu_mbarrier *b)
{
    const struct emu_insn *now = w->in;
    w->in = b->tx < 0 || !b->last_expect ? b->last_complete : b->last_expect;
    emu_report(w, 0,
               "mbarrier bytes do not balance when the CTA exits: at 0x%x, phase %" PRIu64
               ", %" PRId64 " %s",
               emu_mbarrier_address(b), b->phase, b->tx < 0 ? -b->tx : b->tx,
               b->tx < 0 ? "came and were not announced" : "were announced and never came");
    w->in = now;
}

void emu_cta_exit(struct emu_warp *w)
{
    bool busy = false;
    if (w->launch->emu->options.check != EMU_CHECK_FULL)
        return;
    for (const struct emu_op *op = w->cta->cluster->ops; op; op = op->next)
        if (op->engine->touches && op->engine->touches(op, w->cta)) {
            report_op(op);
            busy = true;
        }
    for (const struct emu_mbarrier *b = w->cta->mbarriers; b && !busy; b = b->next)
        if (b->tx)
            report_bytes(w, b);
}
