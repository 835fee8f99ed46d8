// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on tensors in global memory: whether two threads touch one element.
//
// Threads mostly come back to their own elements, so that two boxes meet is not enough. Of tiles the
// layouts say which threads have an element.

#include "pass/sync_check/memory.h"

// The threads of the crew that have the element at `coord` of the tensor.
static uint32_t owner_of(const struct sync_record *record, const int64_t *coord)
{
    int64_t in_tile[TIR_MAX_RANK];
    for (uint32_t d = 0; d < record->layout->rank; d++)
        in_tile[d] = coord[record->dims[d]] - record->box.begin[record->dims[d]];
    struct tir_layout_at at = tir_layout_find(record->layout, in_tile);
    return (record->first_warp + at.at[TIR_AXIS_WARP]) * SYNC_LANES + at.at[TIR_AXIS_LANE];
}

// Has another thread an element in one of two tiles than in the other? Some elements are asked.
static bool owners_differ(const struct sync_record *a, const struct sync_record *b, uint32_t rank)
{
    int64_t begin[TIR_MAX_RANK], size[TIR_MAX_RANK], coord[TIR_MAX_RANK], count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t end = TIR_MIN(a->box.begin[d] + a->box.size[d], b->box.begin[d] + b->box.size[d]);
        begin[d] = TIR_MAX(a->box.begin[d], b->box.begin[d]);
        size[d] = end - begin[d];
        count *= size[d];
    }
    int64_t step = count / 256 | 1; // odd, so that it leaves out no column
    for (int64_t i = 0; i < count; i += step) {
        int64_t left = i;
        for (uint32_t d = rank; d-- > 0; left /= size[d])
            coord[d] = begin[d] + left % size[d];
        if (owner_of(a, coord) != owner_of(b, coord))
            return true;
    }
    return false;
}

static bool by_other_warps(const struct sync_record *a, const struct sync_record *b)
{
    return a->end_warp && b->end_warp &&
           (a->end_warp <= b->first_warp || b->end_warp <= a->first_warp);
}

enum meeting { APART, MAY_MEET, MEET };

// Whether two threads touch the same element: in global memory, where threads mostly come back to
// their own, that two boxes meet is not enough.
static enum meeting meeting_of(const struct sync_root *root, const struct sync_record *old,
                               const struct sync_record *now, enum sync_pairs pairs)
{
    uint32_t rank = root->alloc->type->rank;
    const struct tir_layout *a = old->layout, *b = now->layout;
    bool by_data = old->modulus || now->modulus, both = old->points && now->points;
    if (!tir_sync_boxes_meet(&old->box, &now->box, rank))
        return APART;
    if (both && by_data && (old->modulus != now->modulus || old->base != now->base || !now->base))
        return APART; // tir_sync_may_meet says more
    if (both)
        return tir_sync_points_meet(root, old, now, pairs) ? MEET : APART;
    if (by_data || !old->exact || !now->exact)
        return MAY_MEET;
    if ((old->points || now->points) && !tir_sync_points_meet(root, old, now, pairs))
        return APART;
    if (old->async || now->async || by_other_warps(old, now))
        return MEET;
    if (!a || !b || a->replica_count || b->replica_count)
        return MAY_MEET;
    return owners_differ(old, now, rank) ? MEET : APART;
}

// Of a kernel that orders its accesses itself, or has roles, it is said if that cannot be told.
static void note_may_meet(struct sync_run *r, const struct sync_record *old,
                          const struct sync_record *now)
{
    const char *text = tir_str_format(r->p->cx->scratch,
                                      "nothing orders it after %s of line %u, and whether two "
                                      "threads touch one element is not known",
                                      tir_sync_name_of(old->by), tir_sync_line(r->p, old->by))
                           .ptr;
    if (r->p->by_hand && (old->access == SYNC_READ || now->access == SYNC_READ))
        tir_sync_unchecked(r->p, now->by, text);
}

// Remembers an access: of loads, and of all others, the last ones.
static void remember(struct sync_run *r, struct sync_shadow *s, const struct sync_record *now)
{
    bool load = now->access == SYNC_READ;
    uint32_t of_kind = 0, first = UINT32_MAX;
    for (uint32_t i = s->records.len; i-- > 0;)
        if ((s->records.at[i].access == SYNC_READ) == load) {
            of_kind++;
            first = i;
        }
    if (of_kind == (load ? SYNC_LOADS : SYNC_STORES)) {
        s->records.len--;
        memmove(&s->records.at[first], &s->records.at[first + 1],
                (s->records.len - first) * sizeof *s->records.at);
    }
    vec_push(r->arena, &s->records, *now);
}

void tir_sync_access_tensor(struct sync_run *r, const struct sync_who *who,
                            const struct sync_buffer *b, const struct sync_record *now)
{
    const struct sync_root *root = &r->p->roots.at[b->root];
    struct sync_shadow *s = &r->shadows[b->cta * r->p->roots.len + b->root];
    uint32_t kept = 0;
    if (!now->points && tir_sync_is_empty_box(&now->box, root->alloc->type->rank))
        return;
    for (uint32_t i = 0; i < s->records.len; i++) {
        struct sync_record *old = &s->records.at[i];
        enum sync_pairs pairs = tir_sync_may_conflict(who, old, now);
        if (old->access == SYNC_READ && now->access == SYNC_UPDATE) // it may look before it adds
            pairs = SYNC_NO_PAIRS;
        enum meeting meeting = pairs ? meeting_of(root, old, now, pairs) : APART;
        if (meeting == MEET) {
            tir_sync_report(r, who, b->root, old, now);
            return;
        }
        if (meeting == MAY_MEET)
            note_may_meet(r, old, now);
        if (pairs && (old->base != now->base || !now->base) &&
            tir_sync_may_meet(r, root, old, now, pairs))
            tir_sync_unchecked(r->p, now->by, SYNC_BY_DATA);
        if (tir_sync_is_superseded(who, old, now, root->alloc->type->rank))
            continue;
        s->records.at[kept++] = *old;
    }
    s->records.len = kept;
    if (now->access != SYNC_READ || now->points || r->p->by_hand)
        remember(r, s, now);
}
