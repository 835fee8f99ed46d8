// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on data that decides branches: its way through shared memory, and the answers to
// questions about it.
//
// A scheduler stores the next tile in shared memory, and two roles read it. So a scalar load gives
// the value last stored to that element, a number if it is known, else a symbol, and the same for
// every thread. Two roles may ask the same question in opposite ways (t < tiles, t >= tiles): both
// are one question with one answer, which is drawn when it is first asked.
//
// Loops that go on while the answer is yes must end: after the rounds that the replay gives them,
// answers are drawn anew in each round.

#include "pass/sync_check/sync_check.h"

enum { MOST_CELLS = 4096 }; // of one buffer

// Cells: the elements of buffers from which a scalar is loaded that matters.

void tir_sync_find_cells(struct sync_program *p)
{
    vec_foreach(struct sync_root, root, &p->roots) {
        int64_t count = root->is_tensor ? 0 : tir_type_count(root->alloc->type);
        if (root->is_tensor || !bitset_has(&p->decides, root->alloc->id) || count > MOST_CELLS)
            continue;
        root->has_cells = true;
        root->first_cell = p->cell_count;
        p->cell_count += (uint32_t)count;
    }
}

static struct sync_value *cells_of(const struct sync_run *r, const struct sync_buffer *b)
{
    return r->cells + (size_t)b->cta * r->p->cell_count + r->p->roots.at[b->root].first_cell;
}

static void forget_box(struct sync_run *r, const struct sync_buffer *b, uint32_t d, int64_t element)
{
    const struct sync_root *root = &r->p->roots.at[b->root];
    if (d == root->alloc->type->rank) {
        cells_of(r, b)[element] =
            sync_symbol(tir_sync_mix(r->writes, (uint64_t)element), SYNC_SAME);
        return;
    }
    for (int64_t i = 0; i < b->box.size[d]; i++)
        forget_box(r, b, d + 1, element * root->shape[d] + b->box.begin[d] + i);
}

void tir_sync_forget(struct sync_run *r, const struct sync_buffer *b,
                     const struct sync_record *access)
{
    r->writes++;
    for (uint32_t i = 0; i < access->point_count; i++) {
        int64_t element = access->points[i] / SYNC_POINT;
        cells_of(r, b)[element] =
            sync_symbol(tir_sync_mix(r->writes, (uint64_t)element), SYNC_SAME);
    }
    if (!access->points)
        forget_box(r, b, 0, 0);
}

void tir_sync_keep(struct sync_run *r, const struct sync_who *who, const struct sync_value *value,
                   const struct sync_buffer *b, const struct sync_record *access)
{
    const struct sync_agent *a = who->agent;
    for (uint32_t i = 0; i < access->point_count; i++) {
        struct sync_value *cell = &cells_of(r, b)[access->points[i] / SYNC_POINT];
        uint32_t thread = (uint32_t)(access->points[i] % SYNC_CTA_THREADS);
        uint64_t number = (uint64_t)value->number;
        if (value->varies != SYNC_SAME && access->point_count > 1)
            number = tir_sync_mix(number, thread);
        if (value->kind == SYNC_EACH)
            *cell = (struct sync_value){.kind = SYNC_INT,
                                        .number = value->each[thread - a->first_warp * SYNC_LANES]};
        else if (value->kind == SYNC_INT || value->kind == SYNC_SYMBOL)
            *cell = (struct sync_value){.kind = value->kind, .number = (int64_t)number};
        if (value->kind == SYNC_SYMBOL && value->varies == SYNC_SAME) { // and what it stands for
            cell->answered = value->answered;
            cell->yes = value->yes;
            cell->counts = value->counts;
            cell->count = value->count;
        }
    }
}

// The value that thread i loads; the element is its own, or -1.
static struct sync_value cell_at(const struct sync_run *r, const struct sync_buffer *b,
                                 int64_t element)
{
    if (element < 0)
        return (struct sync_value){.kind = SYNC_INT};
    struct sync_value v = cells_of(r, b)[element];
    return v.kind == SYNC_UNSET ? sync_symbol(tir_sync_mix(b->root, (uint64_t)element), SYNC_SAME)
                                : v;
}

bool tir_sync_kept(struct sync_run *r, const struct sync_agent *a, const struct tir_inst *load,
                   struct sync_value *out)
{
    struct sync_value base = tir_sync_value(r, a, tir_ref_base(load));
    if (base.kind != SYNC_BUFFER || base.buffer->reshaped ||
        !r->p->roots.at[base.buffer->root].has_cells)
        return false;
    for (uint32_t d = 0; d < base.buffer->rank; d++) {
        enum sync_kind kind = tir_sync_value(r, a, tir_ref_indices(load)[d]).kind;
        if (kind != SYNC_INT && kind != SYNC_EACH)
            return false;
    }
    const uint32_t *mask = a->frames[a->depth - 1].lanes.mask;
    int64_t *each = arena_array(r->arena, int64_t, a->warps * SYNC_LANES);
    bool numbers = true, any = false;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < a->warps * SYNC_LANES; i++) {
        if (mask && !(mask[i / SYNC_LANES] >> i % SYNC_LANES & 1))
            continue;
        struct sync_value v = cell_at(r, base.buffer, tir_sync_element(r, a, load, base.buffer, i));
        numbers &= v.kind == SYNC_INT;
        each[i] = v.number;
        if (!any)
            *out = v;
        else if (v.number != out->number || v.kind != out->kind)
            out->varies = SYNC_EVERY_LANE;
        hash = tir_sync_mix(hash, (uint64_t)v.number);
        any = true;
    }
    if (any && out->varies == SYNC_SAME)
        return true;
    *out = numbers ? tir_sync_each(a, each) : sync_symbol(hash, SYNC_EVERY_LANE);
    return any;
}

// Questions.

struct sync_reply {
    int64_t question;
    bool yes;
    struct tir_map asked; // by agent and loop: the round in which it did first, plus 1
};

// The innermost loop that goes on by an answer; NULL: none is around the agent.
static const struct sync_frame *asking_frame(const struct sync_agent *a)
{
    for (uint32_t i = a->depth; i-- > 0;) {
        const struct tir_inst *owner = a->frames[i].owner;
        if (owner && (owner->op == TIR_OP_WHILE || tir_attr_find(owner, TIR_ATTR_next)))
            return &a->frames[i];
    }
    return NULL;
}

// Comparisons that ask one question in opposite ways, n < 0 and n >= 0, have opposite answers. So
// no one answer to all questions enters `0 <= n && n < N`. By SYNC_HELD each comparison is true
// that asks a question first, and by SYNC_DENIED false. By seeds from SYNC_PAIRED on, two for each
// bit of the questions' places in their order, each question has each answer while any other one
// has the other.
bool tir_sync_draw(struct sync_run *r, int64_t question)
{
    const uint64_t key = (uint64_t)question;
    uintptr_t place = (uintptr_t)tir_map_get(&r->drawn, key);
    if (!place) {
        place = r->drawn.count + 1;
        tir_map_set(&r->drawn, key, (void *)place); // NOLINT(performance-no-int-to-ptr)
    }
    if (r->seed < 2)
        return r->seed;
    if (r->seed == SYNC_DENIED || r->seed == SYNC_HELD)
        return r->seed == SYNC_HELD;
    if (r->seed < SYNC_PAIRED)
        return tir_sync_mix(key, r->seed) >> 8 & 1;
    return ((place - 1) >> (r->seed - SYNC_PAIRED) / 2 ^ r->seed) & 1;
}

static bool draw_late(const struct sync_run *r, int64_t question, uint32_t round)
{
    return tir_sync_mix(tir_sync_mix((uint64_t)question, round), r->seed) >> 8 & 1;
}

// The round of this run of the loop in which the agent has asked it first: of two roles that ask it
// there, one may have asked it elsewhere.
static uint32_t asked_first(struct sync_reply *reply, const struct sync_agent *a,
                            const struct sync_frame *f)
{
    const uint64_t key = (uint64_t)a->id << 32 | (f ? f->start : 0);
    uintptr_t first = (uintptr_t)tir_map_get(&reply->asked, key);
    if (!first) {
        first = (f ? f->round : 0) + UINT32_C(1);
        tir_map_set(&reply->asked, key, (void *)first); // NOLINT(performance-no-int-to-ptr)
    }
    return (uint32_t)first - 1;
}

// `negated`: it is asked for a comparison that holds if the answer is no.
static bool answer(struct sync_run *r, const struct sync_agent *a, int64_t question, bool negated)
{
    const struct sync_frame *f = asking_frame(a);
    const uint32_t round = f ? f->round : 0;
    const bool takes_tiles = f && f->owner->op == TIR_OP_TILES; // of these a ring may need more
    const uint32_t most = takes_tiles ? TIR_MAX(r->most, r->setting->waves) : r->most;
    r->decided = true;
    r->draws_late |= f != NULL;
    vec_foreach(struct sync_reply *, it, &r->replies) {
        struct sync_reply *old = *it;
        if (old->question != question)
            continue;
        bool again = round >= asked_first(old, a, f) + most; // nothing new has come in between
        return again ? draw_late(r, question, round) : old->yes;
    }
    struct sync_reply *now = arena_new(r->arena, struct sync_reply);
    now->question = question;
    now->yes = round < most ? tir_sync_draw(r, question) : draw_late(r, question, round);
    now->yes ^= negated && round < most && (r->seed == SYNC_DENIED || r->seed == SYNC_HELD);
    tir_map_init(&now->asked, r->arena);
    asked_first(now, a, f);
    vec_push(r->arena, &r->replies, now);
    return now->yes;
}

static bool is_true(struct sync_run *r, const struct sync_agent *a, const struct sync_value *v)
{
    if (v->kind == SYNC_INT)
        return v->number != 0;
    return v->answered ? v->yes : answer(r, a, v->number, false);
}

// Requests for the work of other CTAs.

void tir_sync_respond(struct sync_run *r, const struct sync_buffer *b, uint64_t request)
{
    const struct sync_root *root = &r->p->roots.at[b->root];
    int64_t element = 0;
    if (!root->has_cells)
        return;
    for (uint32_t d = 0; d < root->alloc->type->rank; d++)
        element = element * root->shape[d] + b->box.begin[d];
    cells_of(r, b)[element] = sync_symbol(request, SYNC_SAME);
}

// The response, by the first of its words.
static int64_t response_of(const struct sync_run *r, const struct sync_agent *a,
                           const struct tir_inst *query)
{
    const struct sync_value of = tir_sync_value(r, a, query->operands[TIR_CANCEL_RESPONSE]);
    int64_t element = 0;
    if (of.kind != SYNC_BUFFER || !of.buffer->exact || !r->p->roots.at[of.buffer->root].has_cells)
        return (int64_t)(tir_sync_mix(query->id, a->visits[query->id]) >> 1);
    const struct sync_root *root = &r->p->roots.at[of.buffer->root];
    for (uint32_t d = 0; d < root->alloc->type->rank; d++)
        element = element * root->shape[d] + of.buffer->box.begin[d];
    return cell_at(r, of.buffer, element).number;
}

bool tir_sync_is_canceled(struct sync_run *r, const struct sync_agent *a,
                          const struct tir_inst *query)
{
    const int64_t response = response_of(r, a, query);
    return response && answer(r, a, response, false);
}

struct sync_value tir_sync_query(struct sync_run *r, const struct sync_agent *a,
                                 const struct tir_inst *query)
{
    const int64_t axis = tir_attr_int(query, TIR_ATTR_axis, 0) % 3;
    const int64_t response = response_of(r, a, query);
    const bool yes = tir_sync_is_canceled(r, a, query);
    struct sync_value out = sync_symbol(
        tir_sync_mix(tir_sync_mix((uint64_t)response, query->op), (uint64_t)axis), SYNC_SAME);
    if (query->op == TIR_OP_IS_CANCELED) {
        out.answered = true;
        out.yes = yes;
        return out;
    }
    const int64_t share = TIR_MAX(r->p->f->cluster[axis], 1);
    const int64_t clusters = TIR_MAX(r->setting->ctas[axis] / share, 1);
    out.counts = true;
    out.count = yes ? (int64_t)((uint64_t)out.number % (uint64_t)clusters) * share : -1;
    return out;
}

// The question that a comparison asks, and whether its answer is the other one.
static uint64_t question_of(enum tir_op op, int64_t x, int64_t y, bool *negated)
{
    bool swapped = op == TIR_OP_GT || op == TIR_OP_LE;
    bool equality = op == TIR_OP_EQ || op == TIR_OP_NE;
    *negated = op == TIR_OP_LE || op == TIR_OP_GE || op == TIR_OP_NE;
    if (swapped || (equality && x > y)) {
        int64_t other = x;
        x = y;
        y = other;
    }
    return tir_sync_mix(
        tir_sync_mix(tir_sync_mix(equality ? TIR_OP_EQ : TIR_OP_LT, (uint64_t)x), (uint64_t)y), 1);
}

bool tir_sync_holds(struct sync_run *r, const struct sync_agent *a, const struct tir_inst *inst,
                    struct sync_value *out)
{
    struct sync_value x = tir_sync_value(r, a, inst->operands[0]), y = x;
    if (inst->results[0]->type->elem != TIR_BOOL || inst->operand_count > 2)
        return false;
    if (inst->operand_count == 2)
        y = tir_sync_value(r, a, inst->operands[1]);
    if (x.kind == SYNC_EACH || y.kind == SYNC_EACH)
        return false;
    bool logical = inst->operands[0]->type->elem == TIR_BOOL, negated = false;
    out->answered = true;
    switch (inst->op) {
    case TIR_OP_NOT:
        out->yes = !is_true(r, a, &x);
        return true;
    case TIR_OP_AND:
        out->yes = is_true(r, a, &x) & is_true(r, a, &y);
        return true;
    case TIR_OP_OR:
        out->yes = is_true(r, a, &x) | is_true(r, a, &y);
        return true;
    case TIR_OP_XOR:
        out->yes = is_true(r, a, &x) ^ is_true(r, a, &y);
        return true;
    case TIR_OP_EQ:
    case TIR_OP_NE:
        if (logical) {
            out->yes = (is_true(r, a, &x) == is_true(r, a, &y)) == (inst->op == TIR_OP_EQ);
            return true;
        }
        break;
    case TIR_OP_LT:
    case TIR_OP_LE:
    case TIR_OP_GT:
    case TIR_OP_GE:
        break;
    default:
        out->answered = false;
        return false;
    }
    uint64_t question = question_of(inst->op, x.number, y.number, &negated);
    out->yes = answer(r, a, (int64_t)(question >> 1), negated) != negated;
    return true;
}
