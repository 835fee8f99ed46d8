// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches that do not end: every warp that waits, and for what.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emu/async/mbarrier.h"
#include "emu/run/state.h"
#include "emu/text.h"

static const struct emu_insn *insn_of(const struct emu_grid *l, const struct emu_path *p)
{
    return &l->module->code.at[p->state == EMU_PATH_BARRIER ? p->pc - 1 : p->pc];
}

// " (role)", if the launch names the warp.
static void name_warp(const struct emu_warp *w, char *out, size_t size)
{
    const struct emu_names *names = w->launch->names;
    char name[40] = "";
    if (names)
        names->warp(names->user, w->index, name, sizeof name);
    snprintf(out, size, "%s%s%s", *name ? " (" : "", name, *name ? ")" : "");
}

// "name, ", if the launch names the mbarrier.
static void name_mbarrier(const struct emu_mbarrier *b, char *out, size_t size)
{
    const struct emu_grid *l = b->cta->launch;
    const uint32_t fixed = l->shared_size - l->dynamic_size;
    char name[40] = "";
    if (l->names && b->offset >= fixed)
        l->names->shared(l->names->user, b->offset - fixed, name, sizeof name);
    snprintf(out, size, "%s%s", name, *name ? ", " : "");
}

// The barrier and the warps concerned.
static void put_mbarrier(const struct emu_mbarrier *b, char *out, size_t size)
{
    name_mbarrier(b, out, size);
    const size_t begin = strlen(out);
    emu_mbarrier_describe(b, out + begin, size - begin);
    const struct {
        const char *what;
        const struct emu_insn *in;
    } rows[] = {{"init", b->init},
                {"last arrival", b->last_arrive},
                {"last bytes", b->last_expect},
                {"last bytes that came", b->last_complete}};
    for (int i = 0; i < 4; i++) {
        const size_t at = strlen(out);
        if (rows[i].in)
            snprintf(out + at, size - at, ", %s at PTX line %u", rows[i].what, rows[i].in->line);
    }
}

// The meaning of a wait for a parity, and whether it looks like one for the other parity.
static void put_parity(const struct emu_mbarrier *b, uint32_t parity, char *out, size_t size)
{
    const size_t at = strlen(out);
    if (parity == EMU_NO_REF)
        return;
    const int n = snprintf(out + at, size - at, ", waits for parity %u, that of phase %" PRIu64,
                           parity, b->phase);
    if (b->phase && b->pending == b->expected && !b->tx && (size_t)n < size - at)
        snprintf(out + at + n, size - at - (size_t)n,
                 ", of which nothing has come yet, while phase %" PRIu64
                 " (parity %u) is complete; a wait for the wrong parity?",
                 b->phase - 1, (unsigned)((b->phase - 1) & 1));
}

// The warps of a CTA that are not at its barrier. A named barrier may not be for all of them.
static void put_missing(struct emu_text *t, const struct emu_warp *w, uint32_t barrier)
{
    const struct emu_cta *cta = w->cta;
    const char *before = "; not there: warp";
    for (uint32_t i = 0; i < w->launch->warps; i++) {
        const struct emu_warp *other = &cta->warps[i];
        uint32_t there = 0;
        for (uint32_t k = 0; k < other->path_count; k++)
            if (other->paths[k]->state == EMU_PATH_BARRIER && other->paths[k]->barrier == barrier)
                there |= other->paths[k]->mask;
        if (there && i < w->index)
            return; // it was said there
        if (there == other->exists)
            continue;
        emu_put(t, "%s %u", before, i);
        if (other->alive & ~there)
            emu_put(t, "%s", there ? " in part" : "");
        else
            emu_put(t, "%s", there ? ", whose other lanes have exited" : ", which has exited");
        before = ", warp";
    }
}

static void put_path(struct emu_text *t, const struct emu_warp *w, const struct emu_path *p)
{
    char where[110], name[48], what[600];
    name_warp(w, name, sizeof name);
    emu_describe(w->launch->module, insn_of(w->launch, p), where, sizeof where);
    if (p->state == EMU_PATH_BARRIER) {
        const struct emu_barrier *b = &w->cta->barriers[p->barrier];
        snprintf(what, sizeof what, "at barrier %u, %u of %u threads there", p->barrier, b->arrived,
                 b->expected == EMU_NO_REF ? w->cta->alive : b->expected);
    } else if (p->state == EMU_PATH_CLUSTER) {
        snprintf(what, sizeof what, "at the cluster barrier, %u of %u threads there",
                 w->cta->cluster->arrived, w->cta->cluster->alive);
    } else if (p->state == EMU_PATH_MBARRIER || emu_mbarrier_is(w->cta->cluster, p->mbarrier)) {
        put_mbarrier(p->mbarrier, what, sizeof what);
        put_parity(p->mbarrier, p->parity, what, sizeof what);
    } else if (p->state == EMU_PATH_GROUP) {
        snprintf(what, sizeof what, "waits for wgmma of the other warps of its warpgroup");
    } else if (p->state == EMU_PATH_REGISTERS) {
        snprintf(what, sizeof what, "waits for registers of other warps");
    } else if (p->state == EMU_PATH_MEET) {
        snprintf(what, sizeof what, "lanes 0x%08x wait for lanes 0x%08x", p->mask, p->needs);
    } else if (w->poll && w->poll->events == w->launch->events) {
        snprintf(what, sizeof what, "looks at 0x%" PRIx64 " again and again", w->poll->address);
    } else if (w->repeat.found && w->repeat.events == w->launch->events) {
        snprintf(what, sizeof what, "does the same again and again");
    } else {
        snprintf(what, sizeof what, "runs");
    }
    emu_put(t, "; CTA (%u,%u,%u); warp %u%s %s, %s", w->cta->id[0], w->cta->id[1], w->cta->id[2],
            w->index, name, what, where);
    if (p->state == EMU_PATH_BARRIER)
        put_missing(t, w, p->barrier);
}

static void put_all(struct emu_text *t, const struct emu_grid *l, const char *what)
{
    const uint32_t *c = l->shape.cluster, stated = c[0] * c[1] * c[2];
    t->len = 0;
    emu_put(t, "%s", what);
    for (const struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        for (uint32_t i = 0; i < cluster->size * l->warps; i++) {
            const struct emu_warp *w = &cluster->ctas[i / l->warps].warps[i % l->warps];
            for (uint32_t k = 0; k < w->path_count; k++)
                put_path(t, w, w->paths[k]);
        }
    if (!l->is_independent && l->next_cluster < l->cluster_count)
        emu_put(t, "; CTAs that have not started: %" PRIu64 " of %" PRIu64,
                (l->cluster_count - l->next_cluster) * l->cluster_size - l->next_part * stated,
                l->cluster_count * l->cluster_size);
}

// Lanes that wait for lanes of their own warp, which wait elsewhere.
static void report_apart(struct emu_warp *w)
{
    uint32_t blocked = 0;
    for (uint32_t k = 0; k < w->path_count; k++)
        blocked |= w->paths[k]->mask;
    for (uint32_t k = 0; k < w->path_count; k++) {
        const struct emu_path *p = w->paths[k];
        if (p->state != EMU_PATH_MEET || !(p->needs & blocked & ~p->mask))
            continue;
        w->in = insn_of(w->launch, p);
        emu_report(w, emu_first_lane(p->mask), "lanes apart: 0x%08x wait for 0x%08x", p->mask,
                   p->needs);
    }
}

// A warp that waits for registers that no other will give up: the others wait for it.
static void report_registers(struct emu_warp *w)
{
    for (uint32_t k = 0; k < w->path_count; k++)
        if (w->paths[k]->state == EMU_PATH_REGISTERS)
            emu_registers_report(w, insn_of(w->launch, w->paths[k]));
}

static void each_warp(struct emu_grid *l, void (*report)(struct emu_warp *))
{
    for (const struct emu_cluster *cluster = l->resident; cluster; cluster = cluster->next)
        for (uint32_t i = 0; i < cluster->size * l->warps; i++)
            report(&cluster->ctas[i / l->warps].warps[i % l->warps]);
}

// Of the first cluster with threads, which a launch that hangs has.
static struct emu_warp *first_warp(const struct emu_grid *l)
{
    const struct emu_cluster *cluster = l->resident;
    uint32_t i = 0;
    while (!cluster->alive)
        cluster = cluster->next;
    while (!cluster->ctas[i / l->warps].warps[i % l->warps].path_count)
        i++;
    return &cluster->ctas[i / l->warps].warps[i % l->warps];
}

void emu_hang(struct emu_grid *l, enum emu_finding_kind kind, const char *what)
{
    struct emu_text t = {0};
    struct emu_warp *w = first_warp(l);
    if (kind == EMU_F_DEADLOCK)
        each_warp(l, report_registers);
    w->in = insn_of(l, w->paths[0]);
    put_all(&t, l, what);
    t.size = t.len + 1;
    t.at = emu_arena_alloc(&l->findings->arena, t.size);
    put_all(&t, l, what);
    const struct emu_finding f = {
        .kind = kind, .message = t.at, .at = emu_place_of(w, emu_first_lane(w->paths[0]->mask))};
    emu_finding_add(l, &f);
    each_warp(l, report_apart);
    emu_findings_stop(l);
}
