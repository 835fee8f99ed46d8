// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Findings: their table, their text, and JSON.

#include "emu/check/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/check/race.h"
#include "emu/run/state.h"
#include "emu/tensor/tmem.h"
#include "emu/text.h"

static const struct {
    const char *name, *prefix, *note;
    bool is_hint;
} kinds[EMU_FINDING_KINDS] = {
#define FINDING(id, prefix, note) {#id, prefix, note, false},
#define HINT(id, prefix, note)    {#id, prefix, note, true},
#include "emu/check/finding.def"
};

const char *emu_finding_name(enum emu_finding_kind kind)
{
    return kinds[kind].name;
}

const char *emu_finding_prefix(enum emu_finding_kind kind)
{
    return kinds[kind].prefix;
}

const char *emu_finding_note(enum emu_finding_kind kind)
{
    return kinds[kind].note;
}

bool emu_finding_is_hint(enum emu_finding_kind kind)
{
    return kinds[kind].is_hint;
}

// --- places ---

void emu_source(const struct emu_module *m, const struct emu_insn *in, const char **file,
                uint32_t *line)
{
    const struct emu_loc *loc = &m->locs.at[in->loc];
    *file = NULL;
    *line = loc->line;
    for (uint32_t i = 0; i < m->files.len; i++)
        if (in->loc && m->files.at[i].id == loc->file)
            *file = m->files.at[i].name;
}

static struct emu_place place_at(const struct emu_module *m, const struct emu_insn *in)
{
    struct emu_place p = {.line = in->line, .warp = -1, .lane = -1};
    emu_source(m, in, &p.file, &p.file_line);
    const char *slash = p.file ? strrchr(p.file, '/') : NULL;
    p.file = slash ? slash + 1 : p.file;
    return p;
}

void emu_describe(const struct emu_module *m, const struct emu_insn *in, char *text, size_t size)
{
    const struct emu_place p = place_at(m, in);
    if (p.file)
        snprintf(text, size, "PTX line %u (%.80s:%u)", p.line, p.file, p.file_line);
    else
        snprintf(text, size, "PTX line %u", p.line);
}

struct emu_place emu_place_of(const struct emu_warp *w, uint32_t lane)
{
    struct emu_place p = place_at(w->launch->module, w->in);
    memcpy(p.cta, w->cta->id, sizeof p.cta);
    p.warp = (int32_t)w->index;
    p.lane = (int32_t)lane;
    return p;
}

// "PTX line 12 (a.tir:3), CTA (0,0,0), thread (5,0,0)"
static void describe_place(const struct emu_grid *l, const struct emu_place *p, char *text,
                           size_t size)
{
    const uint32_t bx = l->shape.block[0], by = l->shape.block[1];
    int at = snprintf(text, size, "PTX line %u", p->line);
    if (p->file)
        at += snprintf(text + at, size - (size_t)at, " (%.80s:%u)", p->file, p->file_line);
    at +=
        snprintf(text + at, size - (size_t)at, ", CTA (%u,%u,%u)", p->cta[0], p->cta[1], p->cta[2]);
    if (p->warp >= 0 && p->lane >= 0) {
        const uint32_t t = (uint32_t)p->warp * EMU_WARP + (uint32_t)p->lane;
        snprintf(text + at, size - (size_t)at, ", thread (%u,%u,%u)", t % bx, t / bx % by,
                 t / (bx * by));
    }
}

// --- keeping them ---

static const char *keep(struct emu_arena *arena, const char *text)
{
    if (!text)
        return NULL;
    const size_t size = strlen(text) + 1;
    char *copy = memcpy(emu_arena_alloc(arena, size), text, size);
    for (char *c = copy; *c; c++) // names come from hostile text
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    return copy;
}

bool emu_finding_is_new(const struct emu_grid *l, enum emu_finding_kind kind, uint32_t line,
                        uint32_t other)
{
    const struct emu_findings *list = l->findings;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t now = list->at[i].at.line, then = list->at[i].other.line;
        if (list->at[i].kind == kind &&
            ((now == line && then == other) || (now == other && then == line)))
            return false;
    }
    return list->count < (emu_finding_is_hint(kind) ? EMU_MAX_HINTS : EMU_MAX_FINDINGS);
}

void emu_finding_add(struct emu_grid *l, const struct emu_finding *f)
{
    struct emu_findings *list = l->findings;
    const bool is_hint = emu_finding_is_hint(f->kind);
    if (!emu_finding_is_new(l, f->kind, f->at.line, f->other.line))
        return;
    struct emu_finding *to = &list->at[list->count];
    *to = *f;
    to->message = keep(&list->arena, f->message);
    to->at.file = keep(&list->arena, f->at.file);
    to->other.file = keep(&list->arena, f->other.file);
    list->count++;
    list->error = list->error || is_hint ? list->error : to->message;
}

_Noreturn void emu_findings_stop(struct emu_grid *l)
{
    emu_raise(&l->trap, TIR_ERR_DEVICE, "%s", l->findings->error ? l->findings->error : "");
}

// The row whose beginning the text has; the longest, where several do.
static enum emu_finding_kind kind_of(const char *text)
{
    size_t best = 0;
    enum emu_finding_kind kind = EMU_F_OTHER;
    for (int i = 0; i < EMU_FINDING_KINDS; i++) {
        const size_t len = strlen(kinds[i].prefix);
        if (len > best && strncmp(text, kinds[i].prefix, len) == 0) {
            best = len;
            kind = (enum emu_finding_kind)i;
        }
    }
    return kind;
}

static void add(struct emu_warp *w, uint32_t lane, struct emu_finding *f, const char *what)
{
    char where[200], text[512];
    const char *does = f->at.does;
    f->kind = kind_of(what);
    f->at = emu_place_of(w, lane);
    f->at.does = does;
    describe_place(w->launch, &f->at, where, sizeof where);
    snprintf(text, sizeof text, "%s; %s", what, where);
    f->message = text;
    emu_finding_add(w->launch, f);
}

void emu_report(struct emu_warp *w, uint32_t lane, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    add(w, lane, &(struct emu_finding){0}, what);
}

void emu_fault(struct emu_warp *w, uint32_t lane, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    add(w, lane, &(struct emu_finding){0}, what);
    emu_findings_stop(w->launch);
}

void emu_fault_access(struct emu_warp *w, uint32_t lane, const char *what, const char *access,
                      const char *space, uint64_t address, uint32_t size)
{
    char text[200];
    struct emu_finding f = {.at.does = access, .space = space, .address = address, .size = size};
    snprintf(text, sizeof text, "%s %s %s of %u bytes at 0x%" PRIx64, what, space, access, size,
             address);
    add(w, lane, &f, text);
    emu_findings_stop(w->launch);
}

// --- races ---

static const char *verb(const struct emu_record *r, bool writes)
{
    const uint32_t proxy = r->what & EMU_REC_PROXY;
    const bool async = proxy == EMU_PROXY_ASYNC || proxy == EMU_PROXY_TENSOR;
    if (r->what & EMU_REC_ATOMIC)
        return async ? "asynchronous reduction" : "atomic";
    if (async)
        return writes ? "asynchronous write" : "asynchronous read";
    return writes ? "store" : "load";
}

static struct emu_place place_of_record(const struct emu_grid *l, const struct emu_record *r,
                                        bool writes)
{
    const struct emu_domain_name *name = emu_order_name(&l->order, r->uid);
    struct emu_place p = place_at(l->module, &l->module->code.at[r->what >> EMU_REC_PC_SHIFT]);
    p.does = verb(r, writes);
    if (!name)
        return p;
    const uint32_t agent = r->uid - name->base, in_cta = agent % name->per_cta;
    const bool is_warp = agent < name->ctas * name->per_cta; // else an engine: of the first CTA
    emu_cta_id(l, name->ctas, name->serial, is_warp ? agent / name->per_cta : 0, p.cta);
    if (is_warp)
        p.warp = (int32_t)(in_cta / EMU_AGENTS_PER_WARP);
    if (r->lanes && (r->what & EMU_REC_PROXY) != EMU_PROXY_TENSOR)
        p.lane = (int32_t)emu_first_lane(r->lanes);
    return p;
}

static uint64_t address_of(const struct emu_conflict *c)
{
    return c->map->is_tensor ? emu_tmem_address(c->offset) : c->map->address + c->offset;
}

// The last mbarrier wait of the warp at a place, if it was over before the barrier's first phase.
static const struct emu_insn *passed_wait(const struct emu_grid *l, const struct emu_place *p)
{
    for (const struct emu_cluster *c = l->resident; c && p->warp >= 0; c = c->next)
        for (uint32_t i = 0; i < c->size; i++)
            if (memcmp(c->ctas[i].id, p->cta, sizeof p->cta) == 0)
                return c->ctas[i].warps[p->warp].passed;
    return NULL;
}

// Whether the warp of an access knows of another warp of the CTA it conflicts with: that one told
// it something, and not enough.
static bool has_heard(const struct emu_grid *l, const struct emu_conflict *c)
{
    const struct emu_domain_name *name = emu_order_name(&l->order, c->before.uid);
    const struct emu_agent *now = emu_order_warp(&l->order, c->now.uid);
    if (!name || !name->warps || !now)
        return false;
    const uint32_t cta = (c->before.uid - name->base) / name->per_cta;
    const uint32_t first = name->base + cta * name->per_cta;
    bool found = false;
    if (c->now.uid - first < name->per_cta)
        return false; // the same CTA
    for (uint32_t i = 0; i < name->per_cta; i += name->per_warp)
        found |= emu_view_clock(&l->order, &now->view, EMU_KNOWN, first + i) != 0;
    return found;
}

void emu_report_conflict(void *user, const struct emu_conflict *c)
{
    static const enum emu_finding_kind rows[] = {EMU_F_RACE,       EMU_F_PROXY, EMU_F_LANES,
                                                 EMU_F_TMEM_FENCE, EMU_F_AGAIN, EMU_F_TMEM_ORDER};
    struct emu_grid *l = user;
    char now[200], then[200], text[768];
    struct emu_finding f = {.kind = rows[c->kind],
                            .space = c->map->is_global   ? "global"
                                     : c->map->is_tensor ? "tensor memory"
                                                         : "shared",
                            .address = address_of(c),
                            .size = c->size,
                            .at = place_of_record(l, &c->now, c->now_writes),
                            .other = place_of_record(l, &c->before, c->before_writes),
                            .message = text};
    if (f.kind == EMU_F_TMEM_FENCE && emu_leaves_order(l->module))
        f.kind = EMU_F_TMEM_UNFENCED;
    if (!emu_finding_is_new(l, f.kind, f.at.line, f.other.line))
        return; // before its text, which takes most of the time
    describe_place(l, &f.at, now, sizeof now);
    describe_place(l, &f.other, then, sizeof then);
    snprintf(text, sizeof text, "%s %s %s of %u bytes at 0x%" PRIx64 "; %s; %s before it: %s",
             emu_finding_prefix(f.kind), f.space, f.at.does, c->size, f.address, now, f.other.does,
             then);
    const struct emu_insn *late = passed_wait(l, &f.at),
                          *wait = late ? late : passed_wait(l, &f.other);
    const size_t at = strlen(text);
    if (wait)
        snprintf(text + at, sizeof text - at,
                 "; the wait at PTX line %u names parity 1 of an mbarrier in phase 0 (parity 0): "
                 "it did not wait",
                 wait->line);
    else if (c->kind == EMU_CONFLICT_ORDER && has_heard(l, c))
        snprintf(text + at, sizeof text - at,
                 "; a flag tells what is before the fence of the thread that sets it: after the "
                 "barrier, where it tells of other threads");
    emu_finding_add(l, &f);
}

// --- reading them ---

const struct emu_finding *emu_findings(const struct emu *emu, uint32_t *count)
{
    *count = emu->findings.count;
    return emu->findings.at;
}

// Kept text has printable characters only.
static void put_string(struct emu_text *o, const char *name, const char *value)
{
    if (!value)
        return;
    emu_put(o, "\"%s\":\"", name);
    for (const char *c = value; *c; c++)
        emu_put(o, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    emu_put(o, "\",");
}

static void put_place(struct emu_text *o, const char *name, const struct emu_place *p)
{
    if (!p->line)
        return;
    emu_put(o, "\"%s\":{", name);
    put_string(o, "file", p->file);
    if (p->file)
        emu_put(o, "\"file_line\":%u,", p->file_line);
    put_string(o, "does", p->does);
    if (p->warp >= 0)
        emu_put(o, "\"warp\":%d,\"lane\":%d,", p->warp, p->lane);
    emu_put(o, "\"ptx_line\":%u,\"cta\":[%u,%u,%u]},", p->line, p->cta[0], p->cta[1], p->cta[2]);
}

size_t emu_findings_json(const struct emu *emu, char *text, size_t size)
{
    struct emu_text o = {.at = text, .size = size};
    emu_put(&o, "[");
    for (uint32_t i = 0; i < emu->findings.count; i++) {
        const struct emu_finding *f = &emu->findings.at[i];
        emu_put(&o, "%s\n{", i ? "," : "");
        put_string(&o, "kind", emu_finding_name(f->kind));
        put_string(&o, "message", f->message);
        put_place(&o, "at", &f->at);
        put_place(&o, "other", &f->other);
        put_string(&o, "space", f->space);
        if (f->space)
            emu_put(&o, "\"address\":%" PRIu64 ",\"size\":%" PRIu64 ",", f->address, f->size);
        emu_put(&o, "\"note\":\"%s\",\"hint\":%s}", emu_finding_note(f->kind),
                emu_finding_is_hint(f->kind) ? "true" : "false");
    }
    emu_put(&o, "\n]\n");
    return o.len;
}

size_t emu_findings_text(const struct emu *emu, char *text, size_t size)
{
    struct emu_text o = {.at = text, .size = size};
    emu_put(&o, "%s", "");
    for (uint32_t i = 0; i < emu->findings.count; i++)
        emu_put(&o, "%s\n  note: %s\n", emu->findings.at[i].message,
                emu_finding_note(emu->findings.at[i].kind));
    return o.len;
}
