// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// setmaxnreg: the warps of a CTA share the registers that its threads begin with.
//
// How many a thread has is counted, not modelled. All begin with as many as a multiprocessor has
// for each, rounded down to 8. A warp that asks for more waits until others have given up theirs.
// A warp that exits without a word leaves all but the fewest there can be.

#include "emu/decode/decode.h"
#include "emu/run/run.h"
#include "emu/run/state.h"

enum { REGISTERS = 65536, MOST = 256, FEWEST = 24, STEP = 8 };

static uint64_t at_first(const struct emu_grid *l)
{
    const uint64_t each = REGISTERS / ((uint64_t)l->warps * EMU_WARP) / STEP * STEP;
    return each < MOST ? each : MOST;
}

// What all warps of the CTA of `w` would have if it had `n` a thread.
static uint64_t wanted(const struct emu_warp *w, uint64_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->launch->warps; i++) {
        const struct emu_warp *other = &w->cta->warps[i];
        const uint64_t held = other->registers ? other->registers
                              : other->alive   ? at_first(w->launch)
                                               : FEWEST;
        sum += (other == w ? n : held) * EMU_WARP;
    }
    return sum;
}

static uint64_t available(const struct emu_grid *l)
{
    return at_first(l) * l->warps * EMU_WARP;
}

void emu_registers_recheck(struct emu_cta *cta)
{
    for (uint32_t i = 0; i < cta->launch->warps; i++)
        for (uint32_t k = 0; k < cta->warps[i].path_count; k++)
            if (cta->warps[i].paths[k]->state == EMU_PATH_REGISTERS)
                cta->warps[i].paths[k]->state = EMU_PATH_READY;
}

void emu_registers_report(struct emu_warp *w, const struct emu_insn *in)
{
    w->in = in;
    emu_report(w, 0, "setmaxnreg: the warps of the CTA ask for %llu registers; there are %llu",
               (unsigned long long)wanted(w, (uint64_t)in->offset),
               (unsigned long long)available(w->launch));
}

// offset: how many a thread will have
EMU_RUN(setmaxnreg)
{
    if (!emu_path_meet(w, mask, EMU_FULL))
        return;
    if (wanted(w, (uint64_t)in->offset) > available(w->launch)) {
        w->path->pc--;
        w->path->state = EMU_PATH_REGISTERS;
        w->reschedule = true;
        return;
    }
    w->registers = (uint32_t)in->offset;
    w->launch->events++;
    emu_registers_recheck(w->cta);
}

void emu_decode_setmaxnreg(struct emu_dec *d)
{
    d->in->run = emu_run_setmaxnreg;
    d->in->flags |= EMU_INSN_SYNC;
    if (!emu_dec_mod(d, "inc") && !emu_dec_mod(d, "dec"))
        emu_dec_bad(d, "'.inc' or '.dec' is missing");
    if (!emu_dec_mod(d, "sync") || !emu_dec_mod(d, "aligned") || !emu_dec_mod(d, "u32"))
        emu_dec_bad(d, "'.sync.aligned.u32' is missing");
    const uint64_t n = emu_dec_constant(d);
    if (n < FEWEST || n > MOST || n % STEP)
        emu_dec_bad(d, "%llu registers; %d to %d in steps of %d are possible",
                    (unsigned long long)n, FEWEST, MOST, STEP);
    d->in->offset = (int64_t)n;
}
