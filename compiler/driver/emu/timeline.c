// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects a timeline and writes it as a trace for Perfetto or chrome://tracing.
//
// The form is the "JSON Object Format" of trace events: complete events (ph X) on threads of
// processes, and metadata events (ph M) that name them. Slices of one thread must not overlap, so
// the operations that an engine has in flight at a time are dealt to several threads, each to the
// first that is free. The many small copies of one warp's commit group make one slice. A
// microsecond of the file is a cycle of the model.
#include "driver/emu/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    MOST = 1 << 19,      // slices: about what viewers can show
    ENGINE_TRACKS = 1000 // an engine's threads are numbered from a multiple of this
};

static const char model[] =
    "Times are cycles of a simple model of the emulator, shown as microseconds. Nothing was "
    "measured: see overlap and stalls here, not speed.";

void tir_timeline_init(struct tir_timeline *t, struct tir_arena *arena)
{
    *t = (struct tir_timeline){.arena = arena, .most = MOST};
}

// The timeline's own copy of a string; there are few different ones.
static const char *keep(struct tir_timeline *t, const char *text)
{
    if (!text)
        return NULL;
    vec_foreach(const char *, name, &t->names)
        if (!strcmp(*name, text))
            return *name;
    const char *copy = tir_str_copy(t->arena, tir_str_of(text)).ptr;
    vec_push(t->arena, &t->names, copy);
    return copy;
}

void tir_timeline_add(void *user, const tir_rt_trace_event *event)
{
    struct tir_timeline *t = user;
    const uint64_t cycles = event->end - event->start;
    t->end = TIR_MAX(t->end, event->end);
    t->run += event->kind == TIR_RT_TRACE_RUN ? cycles : 0;
    t->waited += event->kind == TIR_RT_TRACE_WAIT ? cycles : 0;
    if (t->slices.len >= t->most) {
        t->dropped++;
        return;
    }
    struct tir_slice slice = {.event = *event, .operations = 1};
    slice.event.name = keep(t, event->name);
    slice.event.engine = keep(t, event->engine);
    slice.event.file = keep(t, event->file);
    vec_push(t->arena, &t->slices, slice);
}

// ---- processes and threads

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_ctas(const tir_rt_trace_event *a, const tir_rt_trace_event *b)
{
    for (int i = 2; i >= 0; i--)
        if (a->cta[i] != b->cta[i])
            return compare(a->cta[i], b->cta[i]);
    return 0;
}

// Slices that share a thread or, of an engine, its threads.
static int compare_owners(const tir_rt_trace_event *a, const tir_rt_trace_event *b)
{
    const int cta = compare_ctas(a, b);
    if (cta)
        return cta;
    if (!a->engine || !b->engine)
        return a->engine || b->engine ? (a->engine ? 1 : -1) : compare(a->warp, b->warp);
    return strcmp(a->engine, b->engine);
}

static int by_owner_and_time(const void *a, const void *b)
{
    const tir_rt_trace_event *x = &((const struct tir_slice *)a)->event;
    const tir_rt_trace_event *y = &((const struct tir_slice *)b)->event;
    const int owner = compare_owners(x, y);
    if (owner)
        return owner;
    if (x->start != y->start)
        return compare(x->start, y->start);
    return x->end != y->end ? compare(x->end, y->end) : compare(x->warp, y->warp);
}

static bool same_group(const tir_rt_trace_event *a, const tir_rt_trace_event *b)
{
    return a->group && a->group == b->group && a->warp == b->warp && a->name == b->name &&
           !compare_owners(a, b);
}

static int by_group(const void *a, const void *b)
{
    const tir_rt_trace_event *x = &((const struct tir_slice *)a)->event;
    const tir_rt_trace_event *y = &((const struct tir_slice *)b)->event;
    const int owner = compare_owners(x, y);
    if (owner)
        return owner;
    if (x->warp != y->warp)
        return compare(x->warp, y->warp);
    return x->group != y->group ? compare(x->group, y->group) : by_owner_and_time(a, b);
}

// The copies of each commit group become one.
static void join_groups(struct tir_timeline *t)
{
    uint32_t len = 0;
    qsort(t->slices.at, t->slices.len, sizeof(*t->slices.at), by_group);
    vec_foreach(struct tir_slice, s, &t->slices) {
        struct tir_slice *last = len ? &t->slices.at[len - 1] : NULL;
        if (!last || !same_group(&last->event, &s->event)) {
            t->slices.at[len++] = *s;
            continue;
        }
        last->operations++;
        last->event.end = TIR_MAX(last->event.end, s->event.end);
        last->event.ptx_last = TIR_MAX(last->event.ptx_last, s->event.ptx_last);
    }
    t->slices.len = len;
}

struct tracks {
    struct tir_arena *arena;
    VEC(uint64_t) free_at; // of the owner's threads
};

// The first thread of the owner that is free by then.
static uint32_t deal(struct tracks *tracks, const tir_rt_trace_event *e)
{
    uint32_t i = 0;
    while (i < tracks->free_at.len && tracks->free_at.at[i] > e->start)
        i++;
    if (i == tracks->free_at.len)
        vec_push(tracks->arena, &tracks->free_at, 0);
    tracks->free_at.at[i] = e->end;
    return i;
}

// ---- text

static void separate(struct tir_text *out, bool *first)
{
    tir_text_add(out, *first ? STR("\n") : STR(",\n"));
    *first = false;
}

static void name_process(struct tir_text *out, const struct tir_slice *s, bool *first)
{
    const uint32_t *cta = s->event.cta;
    separate(out, first);
    tir_text_format(out,
                    "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"CTA "
                    "(%u,%u,%u)\"}}",
                    s->cta, cta[0], cta[1], cta[2]);
    separate(out, first);
    tir_text_format(out,
                    "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_labels\",\"args\":{\"labels\":"
                    "\"a model, not a measurement\"}}",
                    s->cta);
}

static void name_thread(struct tir_text *out, const struct tir_slice *s, bool *first)
{
    const tir_rt_trace_event *e = &s->event;
    separate(out, first);
    tir_text_format(out,
                    "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{"
                    "\"name\":",
                    s->cta, s->track);
    if (e->engine)
        tir_text_json(out,
                      tir_str_format(out->arena, "%s %u", e->engine, s->track % ENGINE_TRACKS));
    else
        tir_text_format(out, "\"warp %u\"", e->warp);
    tir_text_add(out, STR("}}"));
}

static void lines(struct tir_text *out, const char *key, uint32_t first, uint32_t last)
{
    tir_text_format(out, first == last ? ",\"%s\":\"%u\"" : ",\"%s\":\"%u to %u\"", key, first,
                    last);
}

// A run is named after where it begins.
static tir_str title(struct tir_arena *arena, const tir_rt_trace_event *e)
{
    if (e->kind == TIR_RT_TRACE_WAIT)
        return tir_str_format(arena, "wait: %s", e->name);
    if (e->kind == TIR_RT_TRACE_FLIGHT || !e->ptx_line)
        return tir_str_of(e->name);
    if (!e->file)
        return tir_str_format(arena, "PTX line %u", e->ptx_line);
    const char *slash = strrchr(e->file, '/');
    return tir_str_format(arena, "%s:%u", slash ? slash + 1 : e->file, e->source_line);
}

static void draw(struct tir_text *out, const struct tir_slice *s, bool *first)
{
    static const char *const kinds[] = {
        [TIR_RT_TRACE_RUN] = "run", [TIR_RT_TRACE_WAIT] = "wait", [TIR_RT_TRACE_FLIGHT] = "flight"};
    const tir_rt_trace_event *e = &s->event;
    separate(out, first);
    tir_text_format(out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ",\"dur\":%" PRIu64,
                    s->cta, s->track, e->start, e->end - e->start);
    tir_text_format(out, ",\"cat\":\"%s\",\"name\":", kinds[e->kind]);
    tir_text_json(out, title(out->arena, e));
    tir_text_format(out, ",\"args\":{\"warp\":%u", e->warp);
    if (s->operations > 1)
        tir_text_format(out, ",\"operations\":%u", s->operations);
    if (e->ptx_line)
        lines(out, "PTX line", e->ptx_line, e->ptx_last);
    if (e->file) {
        tir_text_add(out, STR(",\"file\":"));
        tir_text_json(out, tir_str_of(e->file));
        lines(out, "line", e->source_line, e->source_last);
    }
    tir_text_add(out, STR("}}"));
}

void tir_timeline_json(struct tir_timeline *t, struct tir_text *out)
{
    struct tracks tracks = {.arena = t->arena};
    const struct tir_slice *before = NULL;
    uint32_t base = 0, named = 0; // the owner's first thread, and how many have their names
    bool first = true;
    if (t->slices.len) {
        join_groups(t);
        qsort(t->slices.at, t->slices.len, sizeof(*t->slices.at), by_owner_and_time);
    }
    tir_text_add(out, STR("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":"));
    tir_text_json(out, tir_str_of(model));
    tir_text_format(out,
                    ",\"cycles\":%" PRIu64 ",\"slices left out\":%" PRIu64 "},\"traceEvents\":[",
                    t->end, t->dropped);
    vec_foreach(struct tir_slice, s, &t->slices) {
        const bool new_cta = !before || compare_ctas(&before->event, &s->event);
        t->ctas += new_cta;
        s->cta = t->ctas;
        if (!before || compare_owners(&before->event, &s->event)) {
            const bool first_engine = new_cta || !before->event.engine;
            base = !s->event.engine ? s->event.warp + 1
                   : first_engine   ? ENGINE_TRACKS
                                    : base + ENGINE_TRACKS;
            tracks.free_at.len = named = 0;
            t->warps += !s->event.engine;
        }
        s->track = base + deal(&tracks, &s->event);
        if (new_cta)
            name_process(out, s, &first);
        if (named < tracks.free_at.len)
            name_thread(out, s, &first);
        named = tracks.free_at.len;
        draw(out, s, &first);
        before = s;
    }
    tir_text_add(out, STR("\n]}\n"));
}
