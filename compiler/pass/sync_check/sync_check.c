// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check: finds conflicting accesses that nothing orders, from a kernel's text alone.
//
//     wait(view(full[s]), p);          // the copy's bytes are here
//     fence(of = wgmma);
//     let d: f32[128, 256] in WG = gemm_async(view(a[s, 0:+128, 0:+64]), bt, acc);
//     commit_group(engine = wgmma);
//     arrive(view(empty[s]));          // refused: the product may still read slot s
//
// The kernel is replayed: every warp of a CTA is run, with integers computed and data unknown, for
// settings of its arguments, its CTAs and its tiles (plan.c). The settings give each loop 0, 1, ...
// S + 2 and 2 S to 2 S + 2 rounds (S: slots of the deepest ring), give each persistent CTA enough
// tiles to go round the ring, and reach every block. Clocks (sync_check.h) record what lies between
// two accesses, so one schedule finds every race, every missing proxy fence and every release that
// comes too early. mbarriers whose arrivals or bytes do not balance, and threads that wait for
// ever, are found as they happen.
//
// Branches on data are replayed not taken, taken and mixed. Parts that are not modelled, that no
// replay reaches, or that exceed the work limit are a warning.

#include "pass/sync_check/sync_check.h"

enum { WORK_LIMIT = 3200000 }; // of four warps of each CTA

uint32_t tir_sync_rounds(const struct sync_program *p)
{
    uint32_t least = UINT32_MAX;
    tir_foreach_inst(inst, p->f)
        if (bitset_has(&p->inner_loops, inst->id))
            least = TIR_MIN(least, p->rounds[inst->id].most);
    return least == UINT32_MAX ? 0 : least;
}

// Tiles that a CTA which stays has gone through; 0: it has one.
static uint32_t tiles_of(const struct sync_program *p)
{
    uint32_t most = 0;
    tir_foreach_inst(inst, p->f)
        if (inst->op == TIR_OP_TILES && tir_attr_int(inst, TIR_ATTR_persistent, 0))
            most = TIR_MAX(most, p->rounds[inst->id].most);
    return most;
}

static void write_rounds(struct sync_program *p)
{
    struct tir_text text;
    uint32_t rounds = tir_sync_rounds(p), tiles = tiles_of(p);
    tir_text_init(&text, p->cx->scratch, 0);
    tir_text_format(&text, "sync: checked in %u replays", p->replays);
    if (p->f->preferred[0])
        tir_text_format(&text, " in clusters of %u CTAs", p->ctas);
    if (p->has_data_loops)
        tir_text_format(&text, ", loops of up to %u rounds%s", rounds,
                        p->recurs ? " and, as the state recurs, of any more" : "");
    if (tiles)
        tir_text_format(&text, ", %u tiles of a CTA", tiles);
    tir_receipt_add(p->cx, TIR_TOPIC_SYNC, p->f->span, STR_FMT, STR_ARG(tir_text_str(&text)));
    tir_receipt_add(p->cx, TIR_TOPIC_SYNC, p->f->span,
                    "sync: %llu steps, %u questions for settings, %u numbers tried, "
                    "%llu looks at clocks",
                    (unsigned long long)(p->work + p->given_up), p->questions, p->nodes,
                    (unsigned long long)p->looked);
    tir_foreach_inst(inst, p->f) {
        uint32_t most = p->rounds[inst->id].most;
        if (bitset_has(&p->data_loops, inst->id) && most != rounds)
            tir_receipt_add(p->cx, TIR_TOPIC_SYNC, inst->span, "sync: this loop: up to %u rounds",
                            most);
    }
}

static void write_receipt(struct sync_program *p)
{
    tir_receipt_grant(p->cx, TIR_WISH_SYNC); // but for what is refused below
    tir_sync_write_assumed(p);
    if (p->replays && (p->mbarrier_count || p->role_count || p->unchecked.len))
        write_rounds(p);
    vec_foreach(const struct sync_unchecked, it, &p->unchecked)
        tir_receipt_refuse(p->cx, TIR_TOPIC_SYNC, TIR_WISH_SYNC, it->span,
                           "sync: unchecked: " STR_FMT, STR_ARG(it->text));
}

// False: an error.
static bool check(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct sync_program p = {.f = f, .cx = cx};
    if (tir_sync_prepare(&p)) {
        p.work_limit = (uint64_t)WORK_LIMIT * TIR_MIN(p.ctas, (uint32_t)SYNC_CTAS) *
                       tir_ceil_div(p.threads, 4 * SYNC_LANES);
        if (!tir_sync_limits(&p) || tir_sync_replay_all(&p) == SYNC_FAILED)
            return false;
    }
    write_receipt(&p);
    return true;
}

// The clusters have the stated size, or the preferred one.
static bool check_of_size(struct tir_func *f, struct tir_pass_cx *cx, const uint32_t size[3])
{
    uint32_t stated[3];
    memcpy(stated, f->cluster, sizeof stated);
    memcpy(f->cluster, size, sizeof stated);
    const bool ok = check(f, cx);
    memcpy(f->cluster, stated, sizeof stated);
    if (!ok)
        tir_note_at(cx->diags, f->span, "this is in clusters of %u x %u x %u CTAs", size[0],
                    size[1], size[2]);
    return ok;
}

enum tir_change tir_pass_sync_check(struct tir_func *f, struct tir_pass_cx *cx)
{
    const bool ok = f->preferred[0]
                        ? check_of_size(f, cx, f->cluster) && check_of_size(f, cx, f->preferred)
                        : check(f, cx);
    return ok ? TIR_UNCHANGED : TIR_FAILED;
}
