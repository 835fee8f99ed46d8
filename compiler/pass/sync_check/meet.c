// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on pairs of accesses that nothing orders and that met in no replay: other arguments
// may bring them to one element.
//
//     Y[i64(tid())] = x;          // 64 threads
//     Y[i64(tid() + n)] = y;      // they meet where n is less than 64
//
// A replay notes such pairs where arguments decide where the two are. The plan asks for arguments
// with which they meet (plan_meet.c).

#include "pass/sync_check/memory.h"

// Elements that threads name one by one, of a tensor or of a buffer that is no part of another.
static bool is_single(const struct sync_program *p, const struct tir_inst *inst)
{
    const bool accesses =
        inst->op == TIR_OP_LOAD || inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC;
    if (!accesses || !bitset_has(&p->visited, inst->id))
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

void tir_sync_find_pairs(struct sync_program *p)
{
    p->single = arena_array(p->cx->scratch, uint8_t, p->f->inst_count);
    tir_foreach_inst(inst, p->f) {
        bool moves;
        if (p->single_count == SYNC_SINGLE || !is_single(p, inst) || is_by_data(p, inst, &moves))
            continue;
        const uint32_t i = p->single_count++;
        p->single[inst->id] = (uint8_t)(i + 1);
        p->moves[i] = moves;
        if (moves && inst->op == TIR_OP_STORE && leaves_values(p, inst))
            p->pairs[i][i].now = SYNC_ALL_PAIRS;
    }
}

void tir_sync_note_pair(struct sync_run *r, const struct sync_record *old,
                        const struct sync_record *now, enum sync_pairs pairs)
{
    const uint8_t x = r->p->single[old->by->id], y = r->p->single[now->by->id];
    const bool conflicts =
        old->access == SYNC_WRITE || now->access == SYNC_WRITE || old->access != now->access;
    const bool is_one_round = old->round && old->round == now->round;
    if (!x || !y || !conflicts)
        return;
    struct sync_unordered *pair = &r->p->pairs[TIR_MIN(x, y) - 1][TIR_MAX(x, y) - 1];
    pair->seen = true;
    if (!(r->p->moves[x - 1] || r->p->moves[y - 1]))
        return;
    *(is_one_round ? &pair->now : &pair->later) |= (uint8_t)pairs;
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

bool tir_sync_are_alike(struct sync_program *p, const struct tir_inst *x, const struct tir_inst *y)
{
    for (uint32_t d = 0; d < tir_ref_base(x)->type->rank; d++) {
        struct parts of_x = {.count = 0}, of_y = {.count = 0};
        add_parts(p, tir_ref_indices(x)[d], false, &of_x);
        add_parts(p, tir_ref_indices(y)[d], false, &of_y);
        if (of_x.mixed || of_y.mixed || !have_equal_parts(&of_x, &of_y))
            return false;
    }
    return true;
}
