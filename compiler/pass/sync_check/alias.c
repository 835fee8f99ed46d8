// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on aliases: accesses to one alloc under two types, which are compared byte by byte.
//
// An alias is a buffer of its own here, as it has elements and dimensions of its own, at the bytes
// of its alloc (find_roots). What two threads do to one byte of it conflicts under whatever types.
// Buffers in tensor memory share cells: a byte is one of a lane and a column.

#include "pass/sync_check/sync_check.h"

enum { LANE_BYTES = 4 * TIR_TMEM_COLUMNS };

// Of tensor memory: the lane and column of an element of a buffer, in bytes.
static int64_t place_in_tmem(const struct tir_value *buffer, const int64_t *coord)
{
    const struct tir_type *t = buffer->type;
    const int64_t rows = t->shape[t->rank - 2], row = coord[t->rank - 2];
    const int64_t bits = tir_elems[t->elem].bits, width = t->shape[t->rank - 1] * bits / 32;
    const int64_t block = tir_tmem_block(rows), blocks = tir_ceil_div(rows, TIR_TMEM_LANES);
    int64_t slot = 0, lane = row % TIR_TMEM_LANES;
    for (uint32_t d = 0; d + 2 < t->rank; d++)
        slot = slot * t->shape[d] + coord[d];
    if (block != TIR_TMEM_LANES) { // 16 lanes of each warp, and then the other 16
        const int64_t in_block = row % block;
        const int64_t second = row / block % 2 + tir_attr_int(buffer->def, TIR_ATTR_upper, 0);
        lane = in_block / 16 * 32 + second * 16 + in_block % 16;
    }
    const int64_t column = (slot * blocks + row / TIR_TMEM_LANES) * width;
    return lane * LANE_BYTES + column * 4 + coord[t->rank - 1] * bits / 8;
}

// The byte at which element `element` of a root begins, counted from where its alloc begins.
static int64_t place_of(const struct sync_root *root, int64_t element)
{
    const struct tir_type *t = root->alloc->type;
    const uint32_t bits = tir_elems[t->elem].bits;
    int64_t coord[TIR_MAX_RANK] = {0}, rest = element;
    for (uint32_t d = t->rank; d-- > 0; rest /= t->shape[d])
        coord[d] = rest % t->shape[d];
    if (root->is_tmem)
        return root->begin % LANE_BYTES + place_in_tmem(root->alloc, coord);
    if (!t->layout)
        return root->begin + element * bits / 8;
    const struct tir_layout_at at = tir_layout_find(t->layout, coord);
    return root->begin + (int64_t)tir_layout_byte(t->layout, at.at[TIR_AXIS_REG], bits);
}

struct touched {
    int64_t begin;
    int64_t thread; // part of a point; -1: any
};

struct bytes { // that an access touches, sorted
    struct touched *at;
    uint32_t count;
    int64_t size; // of each
};

static int compare(const void *a, const void *b)
{
    const struct touched *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

// A tile that is accessed by the threads of a crew, each of which has elements of its own.
static bool is_dealt_out(const struct sync_record *record)
{
    const struct tir_layout *l = record->layout;
    bool dealt = l && !l->replica_count && record->exact && !record->async && !record->core;
    for (uint32_t d = 0; dealt && d < l->rank; d++)
        dealt = record->box.size[record->dims[d]] == l->shape[d]; // all of it is in the buffer
    return dealt;
}

struct walk {
    const struct sync_root *root;
    const struct sync_record *record;
    const struct sync_agent *agent; // whose threads have elements of their own; NULL: any has any
    int64_t coord[TIR_MAX_RANK];    // in the box
    struct bytes *out;
};

static void add_element(struct walk *w, int64_t element)
{
    int64_t thread = -1;
    if (w->agent) {
        int64_t in_tile[TIR_MAX_RANK];
        for (uint32_t d = 0; d < w->record->layout->rank; d++)
            in_tile[d] = w->coord[w->record->dims[d]];
        const struct tir_layout_at at = tir_layout_find(w->record->layout, in_tile);
        const uint32_t warp = w->record->first_warp + at.at[TIR_AXIS_WARP];
        if (warp < w->agent->first_warp || warp >= w->agent->first_warp + w->agent->warps)
            return;
        thread =
            (int64_t)w->agent->cta * SYNC_CTA_THREADS + warp * SYNC_LANES + at.at[TIR_AXIS_LANE];
    }
    w->out->at[w->out->count++] = (struct touched){place_of(w->root, element), thread};
}

static void add_box(struct walk *w, uint32_t d, int64_t element)
{
    if (d == w->root->alloc->type->rank) {
        add_element(w, element);
        return;
    }
    const struct sync_box *box = &w->record->box;
    for (int64_t i = 0; i < box->size[d]; i++) {
        w->coord[d] = i;
        add_box(w, d + 1, element * w->root->shape[d] + box->begin[d] + i);
    }
}

static struct bytes bytes_of(struct sync_run *r, const struct sync_root *root,
                             const struct sync_record *record)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < root->alloc->type->rank; d++)
        count *= TIR_MAX(record->box.size[d], 0);
    struct bytes out = {.size = tir_elems[root->alloc->type->elem].bits / 8};
    out.at = arena_array(r->arena, struct touched,
                         (size_t)(record->points ? record->point_count : count) + 1);
    for (uint32_t i = 0; record->points && i < record->point_count; i++)
        out.at[out.count++] = (struct touched){place_of(root, record->points[i] / SYNC_POINT),
                                               record->points[i] % SYNC_POINT};
    struct walk w = {.root = root, .record = record, .out = &out};
    w.agent = is_dealt_out(record) ? &r->agents[record->agent] : NULL;
    if (!record->points)
        add_box(&w, 0, 0);
    qsort(out.at, out.count, sizeof *out.at, compare);
    r->p->work += out.count / 4;
    return out;
}

// Of the threads that touch one byte, are two of these pairs?
static bool conflict(const struct touched *x, const struct touched *y, enum sync_pairs pairs)
{
    if (x->thread < 0 || y->thread < 0)
        return true;
    const int64_t a = x->thread % SYNC_CLUSTER / SYNC_LANES;
    const int64_t b = y->thread % SYNC_CLUSTER / SYNC_LANES;
    return x->thread != y->thread && pairs & (a == b ? SYNC_IN_A_WARP : SYNC_OF_TWO_WARPS);
}

bool tir_sync_is_of_warps(const struct sync_run *r, const struct sync_record *record)
{
    const struct sync_agent *a = &r->agents[record->agent];
    return is_dealt_out(record) && (a->first_warp != record->first_warp ||
                                    a->warps < tir_layout_size(record->layout, TIR_AXIS_WARP));
}

static const struct tir_value *alloc_of(const struct sync_root *root)
{
    const struct tir_inst *def = root->is_tensor ? NULL : root->alloc->def;
    return def && def->op == TIR_OP_ALIAS ? def->operands[0] : root->alloc;
}

bool tir_sync_share_alloc(const struct sync_root *a, const struct sync_root *b)
{
    return (a->is_tmem && b->is_tmem) || alloc_of(a) == alloc_of(b);
}

// A number that stands for what bytes_of depends on.
static uint64_t key_of(const struct sync_run *r, const struct sync_root *root,
                       const struct sync_record *record, uint64_t key)
{
    const uint32_t rank = root->alloc->type->rank;
    key = tir_sync_mix(key, (uint64_t)(root - r->p->roots.at));
    for (uint32_t i = 0; record->points && i < record->point_count; i++)
        key = tir_sync_mix(key, (uint64_t)record->points[i]);
    for (uint32_t d = 0; !record->points && d < rank; d++)
        key = tir_sync_mix(tir_sync_mix(key, (uint64_t)record->box.begin[d]),
                           (uint64_t)record->box.size[d]);
    if (!is_dealt_out(record))
        return key;
    const struct sync_agent *a = &r->agents[record->agent];
    const uint64_t warps = (uint64_t)a->first_warp << 32 | a->warps << 16 | record->first_warp;
    return tir_sync_mix(tir_sync_mix(tir_sync_mix(key, a->cta), warps), record->by->id + 1);
}

static bool bytes_meet(struct sync_run *r, const struct sync_root *of_a,
                       const struct sync_record *a, const struct sync_root *of_b,
                       const struct sync_record *b, enum sync_pairs pairs)
{
    const struct tir_arena_mark mark = tir_arena_mark(r->arena);
    const struct bytes x = bytes_of(r, of_a, a), y = bytes_of(r, of_b, b);
    bool meet = false;
    for (uint32_t i = 0, first = 0; i < x.count && !meet; i++) {
        while (first < y.count && y.at[first].begin + y.size <= x.at[i].begin)
            first++;
        for (uint32_t k = first; k < y.count && y.at[k].begin < x.at[i].begin + x.size; k++)
            meet |= conflict(&x.at[i], &y.at[k], pairs);
    }
    tir_arena_release(r->arena, mark);
    return meet;
}

// Rounds and replays ask the same again and again.
bool tir_sync_bytes_meet(struct sync_run *r, const struct sync_root *of_a,
                         const struct sync_record *a, const struct sync_root *of_b,
                         const struct sync_record *b, enum sync_pairs pairs)
{
    const uint64_t key = key_of(r, of_b, b, key_of(r, of_a, a, pairs)) | 1;
    struct sync_met *met = &r->p->met[(key >> 1) % SYNC_MET];
    if (met->key != key)
        *met = (struct sync_met){key, bytes_meet(r, of_a, a, of_b, b, pairs)};
    return met->meet;
}

// Does one of the sorted bytes lie in these?
static bool any_in(const struct bytes *x, int64_t begin, int64_t end)
{
    uint32_t low = 0, high = x->count; // the first that does not end before them
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (x->at[middle].begin + x->size <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->count && x->at[low].begin < end;
}

void tir_sync_elements_met(struct sync_run *r, const struct sync_root *root,
                           const struct sync_root *of, const struct sync_record *record,
                           int64_t begin, int64_t end, struct sync_record *out)
{
    const struct tir_type *t = root->alloc->type;
    const int64_t count = tir_type_count(t), size = tir_elems[t->elem].bits / 8;
    int64_t *points = arena_array(r->arena, int64_t, (size_t)count);
    struct touched span = {begin, -1};
    struct bytes bytes = {.at = &span, .count = 1, .size = end - begin};
    if (tir_sync_share_alloc(root, of))
        bytes = bytes_of(r, of, record);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = place_of(root, i);
        if (any_in(&bytes, at, at + size))
            points[out->point_count++] = i * SYNC_POINT;
    }
    out->points = points;
    r->p->work += (uint64_t)count / 4;
}
