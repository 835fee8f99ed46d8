// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on points: the single elements that threads touch, each with its thread.

#include "pass/sync_check/memory.h"

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t tir_sync_element(const struct sync_run *r, const struct sync_agent *a,
                         const struct tir_inst *inst, const struct sync_buffer *of, uint32_t i)
{
    const struct sync_root *root = &r->p->roots.at[of->root];
    int64_t at[TIR_MAX_RANK], element = 0;
    memcpy(at, of->box.begin, sizeof at);
    for (uint32_t d = 0; d < of->rank; d++) {
        struct sync_value index = tir_sync_value(r, a, tir_ref_indices(inst)[d]);
        int64_t x = index.kind == SYNC_EACH ? index.each[i] : index.number;
        if (x < 0 || x >= of->box.size[of->dim[d]])
            return -1;
        at[of->dim[d]] += x;
    }
    for (uint32_t d = 0; d < root->alloc->type->rank; d++)
        element = element * root->shape[d] + at[d];
    return element;
}

// A point is an element and the thread that touches it. Which lane elect_sync picks is not known:
// it is a thread of its own.
static int64_t point_of(const struct sync_who *who, int64_t element, uint32_t i)
{
    const struct sync_agent *a = who->agent;
    return element * SYNC_POINT + (a->threads[who->thread].elected ? SYNC_CLUSTER : 0) +
           a->cta * SYNC_CTA_THREADS + a->first_warp * SYNC_LANES + i;
}

static int64_t element_at(int64_t point)
{
    return point / SYNC_POINT;
}

static int64_t thread_at(int64_t point)
{
    return point % SYNC_CLUSTER;
}

static bool in_one_warp(int64_t x, int64_t y)
{
    return thread_at(x) / SYNC_LANES == thread_at(y) / SYNC_LANES;
}

static uint64_t key_at(const struct sync_record *access, int64_t point)
{
    return access->keys->warps[thread_at(point) % SYNC_CTA_THREADS / SYNC_LANES];
}

// Do accesses a and b store values of which it is known whether they are equal?
static bool have_keys(const struct sync_record *a, const struct sync_record *b)
{
    const bool one_round = a->round && a->round == b->round;
    return a->keys && b->keys && ((!a->keys->by_round && !b->keys->by_round) || one_round);
}

// Threads of one CTA that store the same value leave that one, whoever is last.
static bool have_one_value(const struct sync_record *a, int64_t x, const struct sync_record *b,
                           int64_t y)
{
    return thread_at(x) / SYNC_CTA_THREADS == thread_at(y) / SYNC_CTA_THREADS &&
           key_at(a, x) == key_at(b, y);
}

void tir_sync_sort_points(int64_t *points, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (points[i] < points[i - 1]) {
            qsort(points, count, sizeof *points, compare);
            return;
        }
}

// The greatest number that divides how far the elements are apart; of one element 0.
static int64_t step_of(const int64_t *points, uint32_t count)
{
    uint64_t step = 0;
    for (uint32_t i = 1; i < count && step != 1; i++) {
        const uint64_t way = (uint64_t)(element_at(points[i]) - element_at(points[0]));
        if (!step || way % step)
            step = tir_gcd(step, way);
    }
    return (int64_t)step;
}

// May they name one element, for where they begin and end, and how far these are apart?
static bool may_share(const struct sync_record *a, const struct sync_record *b)
{
    if (!a->point_count || !b->point_count ||
        element_at(a->points[0]) > element_at(b->points[b->point_count - 1]) ||
        element_at(b->points[0]) > element_at(a->points[a->point_count - 1]))
        return false;
    const int64_t step =
        a->step == b->step ? a->step : (int64_t)tir_gcd((uint64_t)a->step, (uint64_t)b->step);
    return !step || !((element_at(a->points[0]) - element_at(b->points[0])) % step);
}

// Does data of each thread decide where it is? Then the remainders alone tell threads apart.
static bool is_by_own_data(const struct sync_record *access)
{
    return access->modulus && !access->base;
}

// Has each thread an element of its own?
static bool are_apart(struct sync_run *r, const struct sync_record *access)
{
    const bool own = is_by_own_data(access);
    const struct sync_record x = own ? tir_sync_remainders(r, access, access->modulus) : *access;
    for (uint32_t i = 1; i < x.point_count; i++)
        if (element_at(x.points[i]) == element_at(x.points[i - 1]))
            return false;
    return true;
}

// The numbers of all loops around inst; 0: one is not known.
uint64_t tir_sync_round(const struct sync_run *r, const struct sync_agent *a,
                        const struct tir_inst *inst)
{
    uint64_t round = 0;
    for (const struct tir_inst *o = inst->block->owner; o; o = o->block->owner) {
        const struct tir_block *body = o->regions[0];
        const uint32_t counters = o->op == TIR_OP_TILES ? body->arg_count : o->op == TIR_OP_FOR;
        if (o->op == TIR_OP_WHILE)
            return 0;
        for (uint32_t i = 0; i < counters; i++) {
            const struct sync_value now = tir_sync_value(r, a, body->args[i]);
            if (now.kind != SYNC_INT)
                return 0;
            round = tir_sync_mix(round, (uint64_t)now.number);
        }
    }
    return round | 1;
}

void tir_sync_points(struct sync_run *r, const struct sync_who *who, const struct tir_inst *inst,
                     const struct sync_buffer *of, struct sync_record *access)
{
    const struct sync_agent *a = who->agent;
    bool each = false, by_data = false;
    for (uint32_t d = 0; d < of->rank; d++) {
        enum sync_kind kind = tir_sync_value(r, a, tir_ref_indices(inst)[d]).kind;
        by_data |= kind != SYNC_INT && kind != SYNC_EACH;
        each |= kind != SYNC_INT;
    }
    bool all = inst->op == TIR_OP_LOAD || tir_is_by_thread(r->p->f, inst); // that come
    if (of->reshaped || (by_data && (!r->p->roots.at[of->root].is_tensor || !all)))
        return;
    const int64_t *elements = by_data ? tir_sync_places(r, a, inst, of, access) : NULL;
    uint32_t count = a->warps * SYNC_LANES, n = 0;
    int64_t *points = arena_array(r->arena, int64_t, count);
    uint64_t same = (inst->block->owner ? inst->block->owner->id + 1 : 1) * SYNC_CTAS + a->cta;
    same ^= access->base;
    for (uint32_t i = 0; i < (all ? count : 1); i++) { // one for all: the crew's first
        if (who->mask && !(who->mask[i / SYNC_LANES] >> i % SYNC_LANES & 1))
            continue;
        int64_t element = elements ? elements[i] : tir_sync_element(r, a, inst, of, i);
        same = tir_sync_mix(same, (uint64_t)(element - (int64_t)(a->first_warp * SYNC_LANES + i)));
        if (element >= 0)
            points[n++] = point_of(who, element, i);
    }
    r->p->work += count / 4;
    tir_sync_sort_points(points, n);
    access->points = points;
    access->point_count = n;
    access->step = step_of(points, n);
    access->exact = true;
    if (each && !is_by_own_data(access)) // else threads of other agents may be there, too
        access->same = are_apart(r, access) ? same | 1 : 0;
    if (inst->op == TIR_OP_STORE && all && r->p->roots.at[of->root].is_tensor)
        access->keys = tir_sync_keys(r->p, inst->operands[TIR_STORE_VALUE]);
    if ((access->keys && access->keys->by_round) || r->p->first_spot[inst->id])
        access->round = tir_sync_round(r, a, inst);
}

// Threads that store to one element in one statement leave one of their values: of a tensor, or of
// the lanes of a warp, that may be meant if the values are equal.
void tir_sync_check_apart(struct sync_run *r, const struct tir_inst *store,
                          const struct sync_buffer *of, const struct sync_record *access)
{
    bool equal = false, asked = false;
    if (is_by_own_data(access)) {
        if (!are_apart(r, access))
            tir_sync_unchecked(r->p, store, SYNC_BY_DATA);
        return;
    }
    for (uint32_t i = 1; i < access->point_count; i++) {
        int64_t x = access->points[i - 1], y = access->points[i];
        if (element_at(x) != element_at(y))
            continue;
        if (!asked && in_one_warp(x, y)) {
            asked = true;
            equal = !tir_sync_varies_in_warp(r->p, store->operands[TIR_STORE_VALUE]);
        }
        if ((equal && in_one_warp(x, y)) || (access->keys && have_one_value(access, x, access, y)))
            continue;
        const char *name = r->p->roots.at[of->root].alloc->name;
        tir_sync_fail(r, TIR_E_SYNC_RACE, store, NULL, NULL,
                      "threads %lld and %lld store to one element of %s in this statement",
                      (long long)(thread_at(x) % SYNC_CTA_THREADS),
                      (long long)(thread_at(y) % SYNC_CTA_THREADS),
                      name ? name : "a shared buffer");
        return;
    }
}

static bool point_in_box(const struct sync_root *root, int64_t element, const struct sync_box *box)
{
    for (uint32_t d = root->alloc->type->rank; d-- > 0;) {
        int64_t x = element % root->shape[d];
        element /= root->shape[d];
        if (x < box->begin[d] || x >= box->begin[d] + box->size[d])
            return false;
    }
    return true;
}

bool tir_sync_points_meet(struct sync_run *r, const struct sync_root *root,
                          const struct sync_record *a, const struct sync_record *b,
                          enum sync_pairs pairs)
{
    if (!a->points)
        return tir_sync_points_meet(r, root, b, a, pairs);
    if (!b->points) {
        for (uint32_t i = 0; i < a->point_count; i++)
            if (point_in_box(root, element_at(a->points[i]), &b->box))
                return true;
        return false;
    }
    if (!may_share(a, b))
        return false;
    r->p->work += (a->point_count + b->point_count) / 128;
    // What a thread only started is not in order with what it does after it.
    const bool is_started = a->by->op == TIR_OP_PUSH;
    const bool has_keys = have_keys(a, b);
    for (uint32_t i = 0, first = 0; i < a->point_count; i++) {
        int64_t x = a->points[i];
        while (first < b->point_count && element_at(b->points[first]) < element_at(x))
            first++;
        for (uint32_t j = first; j < b->point_count; j++) {
            int64_t y = b->points[j];
            if (element_at(x) != element_at(y))
                break;
            if ((x != y || is_started) && !(has_keys && have_one_value(a, x, b, y)) &&
                pairs & (in_one_warp(x, y) ? SYNC_IN_A_WARP : SYNC_OF_TWO_WARPS))
                return true;
        }
    }
    return false;
}

bool tir_sync_same_places(const struct sync_record *a, const struct sync_record *b)
{
    if (!a->points || !b->points)
        return !a->points && !b->points && !memcmp(&a->box, &b->box, sizeof a->box);
    return a->point_count == b->point_count &&
           !memcmp(a->points, b->points, a->point_count * sizeof *a->points);
}
