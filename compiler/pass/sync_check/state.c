// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check's state: agents, buffers and barriers are made once for all replays of a kernel, with
// the values that all replays share, and reset before each replay.

#include "pass/sync_check/sync_check.h"

static void find_crew(const struct sync_program *p, struct sync_agent *a)
{
    for (const struct tir_inst *inst = p->f->body->first; inst; inst = inst->next) {
        if (inst->op != TIR_OP_ROLE)
            continue;
        struct tir_crew crew = tir_crew_of(p->f, inst);
        if (a->first_warp >= crew.first && a->first_warp < crew.first + crew.warps)
            a->crew = crew;
    }
}

static void find_constants(struct sync_run *r, struct sync_agent *a)
{
    const struct sync_program *p = r->p;
    tir_foreach_inst(inst, p->f) {
        const uint8_t class = p->classes[inst->id];
        const bool elects = inst->op == TIR_OP_ELECT && class != SYNC_SKIP; // others depend on it
        if ((class == SYNC_ONCE || elects) && bitset_has(&p->constant, inst->results[0]->id))
            tir_sync_evaluate(r, a, inst);
    }
    a->constants = tir_arena_copy(r->arena, a->slots, p->f->value_count * sizeof *a->constants);
}

static void add_agent(struct sync_run *r, uint32_t cta, uint32_t first, uint32_t warps)
{
    struct sync_program *p = r->p;
    struct sync_agent *a = &r->agents[r->agent_count];
    *a = (struct sync_agent){
        .id = r->agent_count++, .cta = cta, .first_warp = first, .warps = warps};
    find_crew(p, a);
    a->slots = arena_array(r->arena, struct sync_value, p->f->value_count);
    a->visits = arena_array(r->arena, uint32_t, p->f->inst_count);
    a->ran = arena_array(r->arena, struct sync_ran, p->f->inst_count);
    a->buffers = arena_array(r->arena, struct sync_buffer, p->buffer_count);
    a->tensors = arena_array(r->arena, struct sync_buffer, p->roots.len + 1);
    a->own = arena_array(r->arena, struct sync_own, warps * SYNC_LANES);
    find_constants(r, a);
}

static size_t words_of_clock(const struct sync_program *p)
{
    return (1 + (size_t)p->memories) * p->strands;
}

static struct sync_clock clock_at(const struct sync_program *p, uint32_t *words)
{
    struct sync_clock c = {.known = words};
    for (uint32_t i = 0; i < p->memories; i++)
        c.fenced[i] = words + (i + 1) * p->strands;
    return c;
}

static struct sync_clock take_clock(const struct sync_run *r, size_t *at)
{
    uint32_t *words = r->clocks + *at;
    *at += words_of_clock(r->p);
    return clock_at(r->p, words);
}

// One block for all, so that it is cleared at once.
static void make_clocks(struct sync_run *r, uint32_t barriers)
{
    size_t count = 2 * barriers, at = 0;
    for (uint32_t i = 0; i < r->agent_count; i++)
        count += (SYNC_THREADS + 1) * (r->agents[i].warps > 1 ? 2 : 1);
    if (r->p->has_tmem) // half as much as a clock
        count += r->agent_count * (SYNC_THREADS + 1) / 2;
    r->clock_words = count * words_of_clock(r->p);
    r->clocks = arena_array(r->arena, uint32_t, r->clock_words);
    for (uint32_t i = 0; i < r->agent_count; i++) {
        struct sync_agent *a = &r->agents[i];
        a->all = take_clock(r, &at);
        for (uint32_t t = 0; t < SYNC_THREADS; t++)
            a->threads[t].clock = take_clock(r, &at);
        if (a->warps == 1)
            continue;
        a->all_peers = take_clock(r, &at);
        for (uint32_t t = 0; t < SYNC_THREADS; t++)
            a->threads[t].peers = take_clock(r, &at);
    }
    for (uint32_t i = 0; r->p->has_tmem && i < r->agent_count; i++)
        for (uint32_t t = 0; t < SYNC_THREADS; t++, at += r->p->strands)
            r->agents[i].threads[t].after = r->clocks + at;
    r->seen_count = (size_t)barriers * 2 * r->agent_count;
    r->seen = arena_array(r->arena, struct sync_seen, r->seen_count);
    for (uint32_t i = 0; i < barriers; i++) {
        struct sync_mbarrier *m = &r->mbarriers[i];
        m->arriving = take_clock(r, &at);
        m->done = take_clock(r, &at);
        m->seen = r->seen + (size_t)i * 2 * r->agent_count;
        m->remote = m->seen + r->agent_count;
    }
}

void tir_sync_set_up(struct sync_run *r)
{
    struct sync_program *p = r->p;
    uint32_t barriers = p->ctas * p->mbarrier_count;
    r->agent_count = 0;
    r->agents = arena_array(r->arena, struct sync_agent, 2 * p->ctas * p->class_count);
    r->shadows = arena_array(r->arena, struct sync_shadow, p->ctas * p->roots.len + 1);
    r->occupied = arena_array(r->arena, struct bitset, p->ctas);
    for (uint32_t c = 0; c < p->ctas; c++)
        r->occupied[c] = bitset_new(r->arena, p->roots.len);
    r->mbarriers = arena_array(r->arena, struct sync_mbarrier, barriers + 1);
    r->cells = arena_array(r->arena, struct sync_value, (size_t)p->ctas * p->cell_count + 1);
    for (uint32_t c = 0; c < p->ctas; c++)
        for (uint32_t i = 0; i < p->class_count; i++) {
            uint32_t first = p->class_first[i], warps = p->class_first[i + 1] - first;
            add_agent(r, c, first, 1);
            if (warps > 1)
                add_agent(r, c, first + 1, warps - 1);
        }
    make_clocks(r, barriers);
}

static int64_t extent_of(const struct sync_run *r, const struct sync_root *tensor, uint32_t d)
{
    const struct tir_func *f = r->p->f;
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_param_dim *dim = &f->params[i].dims[d];
        if (f->params[i].value == tensor->alloc)
            return dim->dim < 0 ? dim->constant : r->setting->args[f->dims[dim->dim].value->index];
    }
    return 0;
}

static void reset_tensors(const struct sync_run *r, struct sync_agent *a)
{
    for (uint32_t i = 0; i < r->p->roots.len; i++) {
        struct sync_root *root = &r->p->roots.at[i];
        struct sync_buffer *b = &a->tensors[i];
        if (!root->is_tensor)
            continue;
        *b = (struct sync_buffer){
            .root = i, .cta = a->cta, .rank = root->alloc->type->rank, .exact = true};
        int64_t left = INT64_MAX / SYNC_POINT; // elements that can be counted
        for (uint32_t d = 0; d < b->rank; d++) {
            b->dim[d] = (uint8_t)d;
            b->box.size[d] = root->shape[d] = TIR_MAX(extent_of(r, root, d), 0);
            left /= TIR_MAX(root->shape[d], 1);
        }
        if (!left) // nothing in it is looked at
            memset(b->box.size, 0, sizeof b->box.size);
        a->slots[root->alloc->id] = (struct sync_value){.kind = SYNC_BUFFER, .buffer = b};
    }
}

static void reset_values(const struct sync_run *r, struct sync_agent *a)
{
    const struct tir_func *f = r->p->f;
    memcpy(a->slots, a->constants, f->value_count * sizeof *a->slots);
    memset(a->visits, 0, f->inst_count * sizeof *a->visits);
    memset(a->ran, 0, f->inst_count * sizeof *a->ran);
    for (uint32_t i = 0; i < f->body->arg_count; i++) {
        const struct tir_value *v = f->body->args[i];
        bool known = tir_type_is_scalar(v->type) && !tir_elem_is_float(v->type->elem);
        a->slots[v->id] = known
                              ? (struct sync_value){.kind = SYNC_INT, .number = r->setting->args[i]}
                              : (struct sync_value){.kind = SYNC_SYMBOL, .number = v->id};
    }
    reset_tensors(r, a);
}

static void reset_agent(struct sync_run *r, struct sync_agent *a)
{
    const struct tir_func *f = r->p->f;
    struct sync_agent old = *a;
    *a = (struct sync_agent){.id = old.id,
                             .cta = old.cta,
                             .first_warp = old.first_warp,
                             .warps = old.warps,
                             .crew = old.crew,
                             .within = {.warps = r->p->threads / SYNC_LANES},
                             .slots = old.slots,
                             .constants = old.constants,
                             .buffers = old.buffers,
                             .tensors = old.tensors,
                             .visits = old.visits,
                             .ran = old.ran,
                             .own = old.own,
                             .all = old.all,
                             .all_peers = old.all_peers,
                             .thread_count = 1,
                             .depth = 1};
    for (uint32_t t = 0; t < SYNC_THREADS; t++) {
        a->threads[t].clock = old.threads[t].clock;
        a->threads[t].peers = old.threads[t].peers;
        a->threads[t].after = old.threads[t].after;
    }
    memset(a->own, 0, a->warps * SYNC_LANES * sizeof *a->own);
    reset_values(r, a);
    a->events = tir_sync_strand(r);
    a->threads[0].data = tir_sync_strand(r);
    a->all.known[a->threads[0].data] = 1;
    tir_sync_learn(a, a->events, 1);
    a->frames[0] = (struct sync_frame){.block = f->body,
                                       .next = tir_sync_visited(r->p, f->body->first),
                                       .lanes = {.count = SYNC_LANES}};
}

void tir_sync_reset(struct sync_run *r)
{
    struct sync_program *p = r->p;
    r->outcome = SYNC_GOING;
    r->strand_count = 1; // 0 is none
    r->threads_left = p->ctas * p->class_first[p->class_count] * SYNC_LANES;
    memset(r->clocks, 0, r->clock_words * sizeof *r->clocks);
    if (r->seen_count)
        memset(r->seen, 0, r->seen_count * sizeof *r->seen);
    memset(r->shadows, 0, p->ctas * p->roots.len * sizeof *r->shadows);
    for (uint32_t c = 0; c < p->ctas; c++) {
        memset(r->occupied[c].words, 0, (p->roots.len / 64 + 1) * sizeof(uint64_t));
        for (uint32_t i = 0; i < p->roots.len; i++)
            if (p->roots.at[i].has_cells)
                bitset_insert(&r->occupied[c], i);
    }
    memset(r->refused, 0, sizeof r->refused);
    memset(r->cells, 0, (size_t)p->ctas * p->cell_count * sizeof *r->cells);
    for (uint32_t i = 0; i < p->ctas * p->mbarrier_count; i++) {
        struct sync_mbarrier *m = &r->mbarriers[i];
        *m = (struct sync_mbarrier){
            .arriving = m->arriving, .done = m->done, .seen = m->seen, .remote = m->remote};
    }
    for (uint32_t i = 0; i < r->agent_count && r->outcome == SYNC_GOING; i++)
        reset_agent(r, &r->agents[i]);
}

struct sync_clock tir_sync_new_clock(struct sync_run *r)
{
    return clock_at(r->p, arena_array(r->arena, uint32_t, words_of_clock(r->p)));
}

struct sync_named *tir_sync_named(struct sync_run *r, uint32_t cta, uint32_t id)
{
    if (r->named[cta][id])
        return r->named[cta][id];
    struct sync_named *n = arena_new(r->arena, struct sync_named);
    n->arriving = tir_sync_new_clock(r);
    n->done = tir_sync_new_clock(r);
    n->here = bitset_new(r->arena, r->agent_count);
    n->strand = id < SYNC_BARRIERS ? tir_sync_strand(r) : 0;
    r->named[cta][id] = n;
    return n;
}
