// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on the accesses that are remembered of a buffer or a tensor, to compare later ones
// with them. What all threads know of conflicts with nothing that comes later, and is forgotten
// first. Of the others the first ones go: of those of a strand only from where to where they were
// is known, and what comes there and is not ordered after them is unchecked.
//
//     for r in range(0, 2000) { A[r, tid()] = x; bar_sync(); }   // known
//     for r in range(0, 2000) { A[r, tid()] = x; }
//     y = A[0, 63 - tid()];                                      // unchecked

#include "pass/sync_check/memory.h"

static bool knows(const struct sync_run *r, const struct sync_clock *clock,
                  const struct sync_record *record, bool fences)
{
    bool yes = clock->known[record->strand] >= record->at;
    for (uint32_t i = 0; fences && i < r->p->memories && !record->async; i++)
        yes &= clock->fenced[i][record->strand] >= record->at;
    return yes;
}

// To all threads; by proxy fences, too, if that is asked.
static bool is_known(const struct sync_run *r, const struct sync_record *record, bool fences)
{
    for (uint32_t i = 0; i < r->agent_count; i++) {
        const struct sync_agent *a = &r->agents[i];
        for (uint32_t t = 0; a->depth && t < a->thread_count; t++)
            if (!knows(r, &a->threads[t].clock, record, fences) ||
                (a->warps > 1 && !knows(r, &a->threads[t].peers, record, fences)))
                return false;
    }
    return true;
}

// Of tensor memory also what fences of its own tell is remembered.
static void forget_known(const struct sync_run *r, const struct sync_root *root,
                         struct sync_shadow *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->records.len; i++)
        if (root->is_tmem || !is_known(r, &s->records.at[i], true))
            s->records.at[kept++] = s->records.at[i];
    s->records.len = kept;
}

// From the first to the last element that an access may touch.
static void reach_of(const struct sync_root *root, const struct sync_record *record, int64_t *first,
                     int64_t *last)
{
    const uint32_t count = record->point_count;
    *first = *last = 0;
    if (record->modulus)
        *last = INT64_MAX;
    else if (count)
        *first = record->points[0] / SYNC_POINT, *last = record->points[count - 1] / SYNC_POINT;
    for (uint32_t d = 0; !record->points && d < root->alloc->type->rank; d++) {
        *first = *first * root->shape[d] + record->box.begin[d];
        *last = *last * root->shape[d] + record->box.begin[d] + record->box.size[d] - 1;
    }
}

static void forget(struct sync_run *r, const struct sync_root *root, struct sync_shadow *s,
                   const struct sync_record *record)
{
    struct sync_rest now = {.last = *record};
    const bool known = is_known(r, record, false); // not one with what threads do not know of
    reach_of(root, record, &now.from, &now.to);
    vec_foreach(struct sync_rest, old, &s->rests) {
        if (old->last.strand != record->strand || old->last.access != record->access ||
            old->last.async != record->async || is_known(r, &old->last, false) != known)
            continue;
        old->from = TIR_MIN(old->from, now.from);
        old->to = TIR_MAX(old->to, now.to);
        old->last.at = TIR_MAX(old->last.at, record->at);
        return;
    }
    now.last.same = 0;
    vec_push(r->arena, &s->rests, now);
}

void tir_sync_remember(struct sync_run *r, const struct sync_root *root, struct sync_shadow *s,
                       const struct sync_record *now)
{
    if (s->records.len == SYNC_RECORDS)
        forget_known(r, root, s);
    if (s->records.len == SYNC_RECORDS) {
        s->records.len -= SYNC_FORGOTTEN;
        for (uint32_t i = 0; i < SYNC_FORGOTTEN; i++)
            forget(r, root, s, &s->records.at[i]);
        memmove(s->records.at, s->records.at + SYNC_FORGOTTEN,
                s->records.len * sizeof *s->records.at);
    }
    vec_push(r->arena, &s->records, *now);
}

void tir_sync_compare_rests(struct sync_run *r, const struct sync_who *who,
                            const struct sync_root *root, const struct sync_shadow *s,
                            const struct sync_record *now)
{
    int64_t from = 0, to = INT64_MAX;
    vec_foreach(const struct sync_rest, old, &s->rests) {
        if (root)
            reach_of(root, now, &from, &to);
        if (from > old->to || old->from > to || !tir_sync_may_conflict(who, &old->last, now))
            continue;
        tir_sync_unchecked(r->p, now->by,
                           tir_str_format(r->p->cx->scratch,
                                          "nothing orders it after %s of line %u, which is one of "
                                          "more than %d accesses: where they were is forgotten",
                                          tir_sync_name_of(old->last.by),
                                          tir_sync_line(r->p, old->last.by), SYNC_RECORDS)
                               .ptr);
        return;
    }
}
