// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on pairs of accesses that nothing orders and that met in no replay: other arguments
// may bring them to one element.
//
//     Y[i64(tid())] = x;          // 64 threads
//     Y[i64(tid() + n)] = y;      // they meet where n is less than 64
//     store(s[n], x);             // a slot
//     y = load(s[m + 1]);         // the same one, where n is m + 1
//
// A replay notes such pairs where arguments decide where the two are. The plan asks for arguments
// with which they meet (plan_meet.c).

#include "pass/sync_check/memory.h"

// Elements that threads name one by one, of a tensor or of a buffer that is no part of another.
static bool is_single(const struct sync_program *p, const struct tir_inst *inst)
{
    const bool accesses =
        inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
    if (!accesses)
        return false;
    const struct tir_type *t =
        inst->op == TIR_OP_LOAD ? inst->results[0]->type : inst->operands[TIR_STORE_VALUE]->type;
    const struct tir_value *base = tir_ref_base(inst);
    return !t->rank && (inst->op == TIR_OP_LOAD || tir_is_by_thread(p->f, inst)) &&
           (bitset_has(&p->tensors, base->id) ||
            (base->type->space == TIR_SPACE_SHARED && !(base->def && tir_viewed(base->def))));
}

// Does data decide where it is, of which settings give nothing? Do settings, in `moves`?
static bool is_by_data(struct sync_program *p, const struct tir_inst *inst, bool *moves)
{
    const uint32_t rank = tir_ref_base(inst)->type->rank;
    const struct bitset slice = tir_sync_slice(p, tir_ref_indices(inst), rank);
    bool by_data = false;
    *moves = tir_sync_is_open(p, &slice, true);
    for (uint32_t i = 0; i <= slice.bits / 64; i++)
        by_data |= (slice.words[i] & p->open_to_data.words[i] & ~p->counts.words[i]) != 0;
    return by_data;
}

// May its threads store different values?
static bool leaves_values(struct sync_program *p, const struct tir_inst *store)
{
    struct tir_value *v = store->operands[TIR_STORE_VALUE];
    return tir_sync_varies(p, v) || tir_sync_warps_differ(p, v);
}

struct spots {
    struct sync_program *p;
    VEC(struct sync_spot) found;
};

// Memory that the program itself orders its accesses to.
static bool is_by_hand(const struct sync_program *p, struct tir_value *buffer)
{
    if (buffer->type->space == TIR_SPACE_GLOBAL)
        return bitset_has(&p->tensors, buffer->id) && p->f->grid_count;
    return tir_sync_is_shared(buffer) && buffer->type->elem != TIR_MBARRIER &&
           (p->f->grid_count || tir_buffer_is_by_hand(buffer));
}

// Of data alone: replays take it to be anywhere.
static bool is_of_data(struct sync_program *p, const struct sync_part *part, bool moves)
{
    for (uint32_t d = 0; d < part->root->type->rank && !moves; d++)
        for (uint32_t i = 0; i < part->count[d]; i++) {
            const struct bitset slice = tir_sync_slice(p, &part->at[d][i], 1);
            if (tir_sync_is_open(p, &slice, true) && !tir_sync_is_open(p, &slice, false))
                return true;
        }
    return false;
}

static void add(struct spots *s, const struct tir_inst *by, struct tir_value *buffer,
                enum sync_access access, bool sliced)
{
    struct sync_spot spot = {
        .by = by, .buffer = buffer, .access = (uint8_t)access, .sliced = sliced};
    struct sync_part part;
    if (sliced && is_single(s->p, by)) {
        spot.single = true;
        if (is_by_data(s->p, by, &spot.moves))
            return;
        part = tir_sync_part_of(&spot);
    } else {
        if (!buffer || !tir_type_is_buffer(buffer->type) || !is_by_hand(s->p, buffer))
            return;
        part = tir_sync_part_of(&spot);
        spot.moves = tir_sync_is_moved(s->p, &part);
        if (is_of_data(s->p, &part, spot.moves))
            return;
    }
    spot.part = tir_arena_copy(s->p->cx->scratch, &part, sizeof part);
    vec_push(s->p->cx->scratch, &s->found, spot);
}

static void add_operands(struct spots *s, const struct tir_inst *inst, uint32_t count,
                         enum sync_access access)
{
    for (uint32_t i = 0; i < count; i++)
        add(s, inst, inst->operands[i], access, false);
}

static void add_accesses(struct spots *s, const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_LOAD:
        add(s, inst, tir_ref_base(inst), SYNC_READ, true);
        return;
    case TIR_OP_STORE:
    case TIR_OP_PUSH:
        add(s, inst, tir_ref_base(inst), SYNC_WRITE, true);
        return;
    case TIR_OP_ATOMIC:
        add(s, inst, tir_ref_base(inst), SYNC_UPDATE, true);
        return;
    case TIR_OP_COPY_ASYNC:
        add(s, inst, inst->operands[TIR_COPY_TO], SYNC_WRITE, false);
        add(s, inst, tir_ref_base(inst), SYNC_READ, true);
        return;
    case TIR_OP_STORE_ASYNC:
        add(s, inst, inst->operands[0], SYNC_READ, false);
        add(s, inst, tir_ref_base(inst), SYNC_WRITE, true);
        return;
    case TIR_OP_GEMM_ASYNC:
    case TIR_OP_DOT:
        add_operands(s, inst, 2, SYNC_READ);
        return;
    case TIR_OP_GEMM_TMEM:
        add_operands(s, inst, 2, SYNC_READ);
        add(s, inst, inst->operands[2], SYNC_WRITE, false);
        return;
    case TIR_OP_TMEM_COPY:
        add(s, inst, inst->operands[0], SYNC_READ, false);
        add(s, inst, inst->operands[1], SYNC_WRITE, false);
        return;
    default:
        return;
    }
}

// Does an argument, or which CTA it is, decide about a branch around inst?
static bool is_on_condition(struct sync_program *p, const struct tir_inst *inst)
{
    for (inst = inst->block->owner; inst; inst = inst->block->owner) {
        if (inst->op != TIR_OP_IF)
            continue;
        const struct bitset slice = tir_sync_slice(p, &inst->operands[0], 1);
        if (tir_sync_is_open(p, &slice, false))
            return true;
    }
    return false;
}

void tir_sync_find_pairs(struct sync_program *p)
{
    struct spots s = {.p = p};
    bool any = false;
    p->first_spot = arena_array(p->cx->scratch, uint8_t, p->f->inst_count);
    tir_foreach_inst(inst, p->f)
        if (bitset_has(&p->visited, inst->id))
            add_accesses(&s, inst);
    vec_foreach(const struct sync_spot, it, &s.found) {
        any |= it->moves || it->single || is_on_condition(p, it->by);
        p->has_single |= it->single;
    }
    if (!any)
        return;
    if (s.found.len > SYNC_SPOTS)
        tir_sync_unchecked(p, s.found.at[SYNC_SPOTS].by,
                           "there are too many accesses before it to ask which of them meet it for "
                           "other arguments");
    p->spots = s.found.at;
    p->spot_count = TIR_MIN(s.found.len, (uint32_t)SYNC_SPOTS);
    p->pairs =
        arena_array(p->cx->scratch, struct sync_unordered, (size_t)p->spot_count * p->spot_count);
    for (uint32_t i = p->spot_count; i-- > 0;) {
        const struct sync_spot *spot = &p->spots[i];
        p->first_spot[spot->by->id] = (uint8_t)(i + 1);
        if (spot->single && spot->moves && spot->by->op == TIR_OP_STORE &&
            leaves_values(p, spot->by))
            tir_sync_pair(p, i, i)->now = SYNC_ALL_PAIRS;
    }
}

bool tir_sync_moves(const struct sync_program *p, const struct tir_inst *inst)
{
    const uint32_t first = p->first_spot[inst->id];
    bool moves = false;
    for (uint32_t i = first; first && i <= p->spot_count && p->spots[i - 1].by == inst; i++)
        moves |= p->spots[i - 1].moves && !p->spots[i - 1].single;
    return moves;
}

// Of this root, as far as the text tells?
static bool is_of(const struct sync_spot *spot, const struct sync_root *root)
{
    return spot->part->vague || spot->part->root == root->alloc;
}

static void note_spots(struct sync_run *r, uint32_t x, uint32_t y, bool is_one_round,
                       enum sync_pairs pairs)
{
    const struct sync_spot *of_x = &r->p->spots[x], *of_y = &r->p->spots[y];
    if (of_x->access != SYNC_WRITE && of_x->access == of_y->access)
        return;
    struct sync_unordered *pair = tir_sync_pair(r->p, x, y);
    pair->seen = true;
    if (of_x->moves || of_y->moves)
        *(is_one_round ? &pair->now : &pair->later) |= (uint8_t)pairs;
}

void tir_sync_note_pair(struct sync_run *r, const struct sync_root *root,
                        const struct sync_record *old, const struct sync_record *now,
                        enum sync_pairs pairs)
{
    const struct sync_program *p = r->p;
    const bool is_one_round = old->round && old->round == now->round;
    for (uint32_t x = p->first_spot[old->by->id] - 1u;
         x < p->spot_count && p->spots[x].by == old->by; x++) {
        if (p->spots[x].access != old->access || !is_of(&p->spots[x], root))
            continue;
        for (uint32_t y = p->first_spot[now->by->id] - 1u;
             y < p->spot_count && p->spots[y].by == now->by; y++)
            if (p->spots[y].access == now->access && is_of(&p->spots[y], root))
                note_spots(r, x, y, is_one_round, pairs);
    }
}

// The sum that an index is: numbers that differ from thread to thread, and others, `shared` ones.
struct parts {
    const struct tir_value *shared[SYNC_PARTS];
    bool minus[SYNC_PARTS];
    uint32_t count;
    bool mixed; // or it is no such sum
};

static void add_parts(struct sync_program *p, struct tir_value *v, bool minus, struct parts *out)
{
    const struct tir_inst *inst = v->kind == TIR_VALUE_RESULT ? v->def : NULL;
    const struct bitset slice = tir_sync_slice(p, &v, 1);
    if (v->kind == TIR_VALUE_CONST || !tir_sync_is_open(p, &slice, true))
        return; // of the thread alone
    if (inst && (inst->op == TIR_OP_ADD || inst->op == TIR_OP_SUB)) {
        add_parts(p, inst->operands[0], minus, out);
        add_parts(p, inst->operands[1], minus ^ (inst->op == TIR_OP_SUB), out);
    } else if (inst && inst->op == TIR_OP_CAST && tir_sync_varies(p, v)) {
        add_parts(p, inst->operands[0], minus, out);
    } else if (tir_sync_varies(p, v) || out->count == SYNC_PARTS) {
        out->mixed = true;
    } else {
        out->shared[out->count] = v;
        out->minus[out->count++] = minus;
    }
}

// Are the shared parts of two the same?
static bool have_equal_parts(struct parts *x, struct parts *y)
{
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t k = 0;
        while (k < y->count && (y->shared[k] != x->shared[i] || y->minus[k] != x->minus[i]))
            k++;
        if (k == y->count)
            return false;
        y->count--;
        y->shared[k] = y->shared[y->count];
        y->minus[k] = y->minus[y->count];
    }
    return !y->count;
}

static void add_part(struct sync_program *p, const struct sync_part *part, uint32_t d,
                     struct parts *out)
{
    for (uint32_t i = 0; i < part->count[d]; i++)
        add_parts(p, part->at[d][i], false, out);
}

bool tir_sync_are_alike(struct sync_program *p, const struct sync_spot *x,
                        const struct sync_spot *y)
{
    if (x->part->vague || y->part->vague)
        return false;
    for (uint32_t d = 0; d < x->part->root->type->rank; d++) {
        struct parts of_x = {.count = 0}, of_y = {.count = 0};
        add_part(p, x->part, d, &of_x);
        add_part(p, y->part, d, &of_y);
        if (of_x.mixed || of_y.mixed || !have_equal_parts(&of_x, &of_y))
            return false;
    }
    return true;
}
