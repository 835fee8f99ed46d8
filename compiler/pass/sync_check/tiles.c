// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on scalars of tiles, such as `any(x > 0.0)`: which of them are the same number.
//
// Tiles are not replayed. So each has a number by its text: of its operation, its attributes and
// its operands, down to constants and to values that something else gave, and of what its blocks
// yield (the combination of a scan, the two sides of an if). Such a value is another one in each
// round of the loops around it. Loads of one place of a tensor that the kernel does not write are
// the same. Two roles walk copies of a loop, so its counters go by the text of the loop, and what
// is computed of them by its own.
//
// One of two roles may load a round ahead (prefetch):
//     for k in range(0, K, 64) carry (x = load(A[0])) { ... yield load(A[k + 64]); }
// There x is load(A[k]): what it begins with is that with 0 for k, and what it goes on with is that
// with k + 64 for k.
//
// What a loop carries otherwise goes by what it begins with and by what it goes on with, if that
// follows from itself (`i` of `while i < n { i += 1; ... }`): two such values are equal in each
// round.

#include "ir/follow.h"
#include "pass/sync_check/sync_check.h"

static uint32_t depth_of(const struct tir_block *block)
{
    uint32_t depth = 0;
    for (; block && block->owner; block = block->owner->block)
        depth++;
    return depth;
}

static struct sync_source source_of(const struct sync_program *p, const struct tir_value *v)
{
    if (!v)
        return (struct sync_source){.number = 0};
    if (v->kind == TIR_VALUE_CONST)
        return (struct sync_source){
            .number =
                tir_sync_mix(tir_sync_mix(TIR_OP_COUNT, v->type->elem), (uint64_t)v->constant.i)};
    if (p->sources[v->id].number)
        return p->sources[v->id];
    return (struct sync_source){.number = tir_sync_mix(TIR_OP_COUNT + 1, v->id),
                                .block = v->kind == TIR_VALUE_ARG ? v->block : v->def->block};
}

static uint64_t of_attrs(const struct tir_inst *inst, uint64_t h)
{
    for (uint32_t i = 0; i < inst->attr_count; i++) {
        const struct tir_attr *attr = &inst->attrs[i];
        h = tir_sync_mix(tir_sync_mix(h, attr->key), (uint64_t)attr->number);
        for (uint32_t k = 0; k < attr->list_count; k++)
            h = tir_sync_mix(h, (uint64_t)attr->list[k]);
        h = tir_hash_bytes(attr->text.ptr, attr->text.len, h);
    }
    return h;
}

// The arguments that count the rounds of a loop, by the operands that say how.
static void find_counters(struct sync_program *p, const struct tir_inst *loop)
{
    const bool is_for = loop->op == TIR_OP_FOR;
    const uint32_t tiles = is_for ? 0 : tir_attr_find(loop, TIR_ATTR_by)->list_count;
    uint64_t h = of_attrs(loop, loop->op);
    for (uint32_t i = 0; i < (is_for ? TIR_FOR_STEP + 1 : tiles); i++)
        h = tir_sync_mix(h, source_of(p, loop->operands[i]).number);
    const struct tir_block *body = loop->regions[0];
    for (uint32_t i = 0; i < (is_for ? 1 : tiles); i++)
        p->sources[body->args[i]->id] =
            (struct sync_source){.number = tir_sync_mix(h, i) | 1, .block = body};
}

static bool is_combination(const struct tir_inst *inst)
{
    return inst->op == TIR_OP_REDUCE || inst->op == TIR_OP_SCAN;
}

// The elements that a reduction or scan combines, by how many combinations are around its own.
static void find_combined(struct sync_program *p, const struct tir_block *combination)
{
    uint32_t around = 0;
    for (const struct tir_inst *at = combination->owner; at; at = at->block->owner)
        around += is_combination(at);
    for (uint32_t i = 0; i < combination->arg_count; i++)
        p->sources[combination->args[i]->id] = (struct sync_source){
            .number = tir_sync_mix(tir_sync_mix(TIR_OP_COUNT + 2, around), i) | 1};
}

// Does the text say all there is to know of the results?
static bool is_by_text(const struct tir_func *f, const struct tir_inst *inst)
{
    if (!inst->result_count || tir_has_trait(inst, TIR_THREAD))
        return false;
    if (inst->op == TIR_OP_IF || is_combination(inst))
        return true;
    if (inst->region_count)
        return false;
    return inst->op == TIR_OP_LOAD ? tir_is_only_read(f, tir_ref_base(inst))
                                   : tir_has_trait(inst, TIR_PURE);
}

static void add_source(const struct sync_program *p, struct sync_source *out, uint32_t place,
                       const struct tir_value *v)
{
    const struct sync_source from = source_of(p, v);
    out->number = tir_sync_mix(tir_sync_mix(out->number, place), from.number);
    if (depth_of(from.block) > depth_of(out->block))
        out->block = from.block;
}

static void find_source(struct sync_program *p, const struct tir_inst *inst)
{
    if (inst->op == TIR_OP_CONVERT_LAYOUT) { // the same elements
        p->sources[inst->results[0]->id] = source_of(p, inst->operands[0]);
        return;
    }
    struct sync_source out = {.number = of_attrs(inst, inst->op)};
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        const bool is_scratch = v && tir_type_is_buffer(v->type) && inst->op != TIR_OP_LOAD;
        if (v && !is_scratch) // which not every role needs
            add_source(p, &out, i, v);
    }
    // of an if, each result is by its own yields: a copy of it may yield fewer
    for (uint32_t i = 0; is_combination(inst) && inst->region_count && i < inst->result_count; i++)
        add_source(p, &out, i, tir_yield_of(inst->regions[0])->operands[i]);
    for (uint32_t i = 0; i < inst->result_count; i++) {
        const struct tir_type *t = inst->results[i]->type;
        struct sync_source one = out;
        for (uint32_t r = 0; inst->op == TIR_OP_IF && r < inst->region_count; r++)
            add_source(p, &one, r, tir_yield_of(inst->regions[r])->operands[i]);
        one.number = tir_sync_mix(one.number, t->elem);
        if (inst->op != TIR_OP_IF)
            one.number = tir_sync_mix(one.number, i);
        for (uint32_t d = 0; d < t->rank; d++)
            one.number = tir_sync_mix(one.number, (uint64_t)t->shape[d]);
        one.number |= 1;
        p->sources[inst->results[i]->id] = one;
    }
}

// What a round yields, read with something in place of the counter of the next round.
struct reading {
    struct sync_program *p;
    const struct tir_inst *loop;
    struct sync_source counter;
};

static bool is_next_counter(const struct reading *of, const struct tir_inst *inst)
{
    const struct tir_value *step = of->loop->operands[TIR_FOR_STEP];
    return inst->op == TIR_OP_ADD && inst->operands[0] == of->loop->regions[0]->args[0] &&
           source_of(of->p, inst->operands[1]).number == source_of(of->p, step).number;
}

static enum tir_answer ask_reading(void *user, struct tir_value *v)
{
    struct reading *of = user;
    const struct tir_block *body = of->loop->regions[0];
    const struct tir_block *block = v->def ? v->def->block : v->block;
    if (v->kind == TIR_VALUE_CONST || block != body)
        return TIR_YES;
    if (!v->def)
        return TIR_NO;
    if (is_next_counter(of, v->def)) {
        of->p->sources[v->id] = of->counter;
        return TIR_YES;
    }
    return v->def->region_count || !is_by_text(of->p->f, v->def) ? TIR_NO : TIR_IF_OPERANDS;
}

static void then_read(void *user, struct tir_value *v)
{
    find_source(((struct reading *)user)->p, v->def);
}

// Leaves sources of the loop's block behind that find_sources has yet to find. Number 0: it depends
// on more.
static struct sync_source read_with(struct sync_program *p, const struct tir_inst *loop,
                                    struct tir_value *yielded, struct sync_source counter)
{
    struct reading reading = {p, loop, counter};
    struct tir_follow follow;
    tir_follow_init(&follow, p->cx->scratch, ask_reading, &reading);
    follow.then = then_read;
    return tir_follows(&follow, yielded) ? source_of(p, yielded) : (struct sync_source){0};
}

static void find_carried_ahead(struct sync_program *p, const struct tir_inst *loop)
{
    const struct tir_block *body = loop->regions[0];
    for (uint32_t i = 1; i < body->arg_count; i++) {
        const struct tir_value *first = loop->operands[TIR_FOR_INIT + i - 1];
        struct tir_value *next = tir_yield_of(body)->operands[i - 1];
        if (!first->def || !next->def || first->def->op != next->def->op)
            continue;
        const struct sync_source begin = source_of(p, loop->operands[TIR_FOR_BEGIN]);
        if (read_with(p, loop, next, begin).number == source_of(p, first).number)
            p->sources[body->args[i]->id] = read_with(p, loop, next, source_of(p, body->args[0]));
    }
}

// What a round yields, read with something in place of one carried value.
struct recurrence {
    struct sync_program *p;
    const struct tir_value *carried;
};

static enum tir_answer ask_recurrence(void *user, struct tir_value *v)
{
    const struct recurrence *of = user;
    if (v->kind == TIR_VALUE_CONST || (v->def ? v->def->block : v->block) != of->carried->block)
        return TIR_YES;
    if (!v->def)
        return of->p->sources[v->id].number ? TIR_YES : TIR_NO;
    return v->def->region_count || !is_by_text(of->p->f, v->def) ? TIR_NO : TIR_IF_OPERANDS;
}

static void then_recur(void *user, struct tir_value *v)
{
    find_source(((struct recurrence *)user)->p, v->def);
}

// Leaves sources of the loop's block behind, too.
static void find_carried(struct sync_program *p, const struct tir_inst *loop)
{
    enum { ITSELF = TIR_OP_COUNT + 3, CARRIED };
    const struct tir_block *body = loop->regions[loop->region_count - 1];
    const uint32_t first = loop->op == TIR_OP_FOR, begin = tir_fixed_count(loop);
    for (uint32_t i = first; i < body->arg_count; i++) {
        struct sync_source *source = &p->sources[body->args[i]->id];
        struct tir_value *next = tir_yield_of(body)->operands[i - first];
        if (source->number)
            continue;
        *source = (struct sync_source){.number = tir_sync_mix(ITSELF, 0) | 1, .block = body};
        struct recurrence recurrence = {p, body->args[i]};
        struct tir_follow follow;
        tir_follow_init(&follow, p->cx->scratch, ask_recurrence, &recurrence);
        follow.then = then_recur;
        const bool recurs = tir_follows(&follow, next);
        const uint64_t step = source_of(p, next).number;
        const struct sync_source from = source_of(p, loop->operands[begin + i - first]);
        *source = (struct sync_source){0};
        if (recurs)
            for (uint32_t r = 0; r < loop->region_count; r++)
                p->sources[loop->regions[r]->args[i]->id] = (struct sync_source){
                    .number = tir_sync_mix(tir_sync_mix(CARRIED, from.number), step) | 1,
                    .block = loop->regions[r]};
    }
}

static void find_sources(struct sync_program *p, const struct tir_block *block)
{
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next) {
        if (inst->op == TIR_OP_FOR || inst->op == TIR_OP_TILES)
            find_counters(p, inst);
        if (inst->op == TIR_OP_FOR)
            find_carried_ahead(p, inst);
        if (inst->op == TIR_OP_FOR || inst->op == TIR_OP_WHILE)
            find_carried(p, inst);
        for (uint32_t r = 0; r < inst->region_count; r++) {
            if (is_combination(inst))
                find_combined(p, inst->regions[r]);
            find_sources(p, inst->regions[r]);
        }
        if (is_by_text(p->f, inst))
            find_source(p, inst);
    }
}

void tir_sync_find_sources(struct sync_program *p)
{
    p->sources = arena_array(p->cx->scratch, struct sync_source, p->f->value_count);
    find_sources(p, p->f->body);
}

uint64_t tir_sync_of_tiles(const struct sync_run *r, const struct sync_agent *a,
                           const struct tir_value *v)
{
    const struct sync_source source = source_of(r->p, v);
    uint64_t h = source.number;
    for (uint32_t i = 0; source.block && i < a->depth; i++) {
        const struct sync_frame *f = &a->frames[i];
        if (f->owner && (tir_is_loop(f->owner) || f->owner->op == TIR_OP_TILES))
            h = tir_sync_mix(h, f->round);
        if (f->block == source.block)
            break;
    }
    return h;
}
