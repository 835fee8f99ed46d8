// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sync_check on values: do two threads have the same one?
//
// A value has a key for each thread: its expression, with the thread's own numbers for tid(),
// warpid() and their kin, and sums and quotients of integers computed. So warpid() / 2 has one key
// for two warps, and X[tid() % 32] one for the same lane of all. The counter of a loop has the keys
// of its first number and its step. What else regions give, and what is computed beyond the limit
// on steps, is the same only where no number of the thread is in it.

#include "pass/sync_check/sync_check.h"

enum {
    MOST_STEPS = 256,  // for a key
    MOST_STORES = 256, // whose values have keys, beside constants
};

struct key {
    uint64_t hash;
    int64_t number;
    bool is_number;
};

struct keys {
    struct sync_program *p;
    uint32_t thread; // of the CTA
    uint32_t steps;
    bool by_round; // a loop gives it
};

static struct key key_of(struct keys *k, struct tir_value *v);

static struct key number(int64_t n)
{
    return (struct key){tir_sync_mix(UINT64_C(0x9e3779b97f4a7c15), (uint64_t)n), n, true};
}

static struct key hashed(uint64_t hash)
{
    return (struct key){.hash = hash};
}

// Of something that is not looked into.
static struct key opaque(struct keys *k, struct tir_value *v)
{
    return hashed(tir_sync_mix(v->id, tir_sync_varies(k->p, v) ? k->thread + 1 : 0));
}

static bool compute(const struct tir_inst *inst, int64_t a, int64_t b, int64_t *out)
{
    switch (inst->op) {
    case TIR_OP_ADD:
        return tir_add_checked(a, b, out);
    case TIR_OP_SUB:
        return tir_sub_checked(a, b, out);
    case TIR_OP_MUL:
        return tir_mul_checked(a, b, out);
    case TIR_OP_DIV:
        *out = a >= 0 && b > 0 ? a / b : 0;
        return a >= 0 && b > 0;
    case TIR_OP_REM:
        *out = a >= 0 && b > 0 ? a % b : 0;
        return a >= 0 && b > 0;
    case TIR_OP_AND:
        *out = a & b;
        return a >= 0 && b >= 0;
    case TIR_OP_SHR:
        *out = a >= 0 && b >= 0 && b < 63 ? a >> b : 0;
        return a >= 0 && b >= 0 && b < 63;
    default:
        return false;
    }
}

static struct key key_of_op(struct keys *k, struct tir_value *v)
{
    const struct tir_inst *inst = v->def;
    struct key first[2] = {{0}};
    uint64_t h = tir_sync_mix(v->id, inst->operand_count);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct key one = inst->operands[i] ? key_of(k, inst->operands[i]) : hashed(0);
        h = tir_sync_mix(h, one.hash);
        if (i < 2)
            first[i] = one;
    }
    int64_t n;
    if (inst->op == TIR_OP_CAST && first[0].is_number && !tir_elem_is_float(v->type->elem) &&
        first[0].number >= 0 && first[0].number <= INT32_MAX)
        return first[0];
    if (inst->operand_count == 2 && first[0].is_number && first[1].is_number &&
        compute(inst, first[0].number, first[1].number, &n) && n >= 0 && n <= INT32_MAX)
        return number(n);
    return hashed(h);
}

// The counter of a loop: threads that begin and step alike have the same one in a round.
static struct key key_of_counter(struct keys *k, const struct tir_inst *loop, struct tir_value *v)
{
    const struct key begin = key_of(k, loop->operands[TIR_FOR_BEGIN]);
    const struct key step = key_of(k, loop->operands[TIR_FOR_STEP]);
    return hashed(tir_sync_mix(tir_sync_mix(v->id, begin.hash), step.hash));
}

// What is loaded in a round of a loop, or asked of other threads, may be another value in the next.
static bool is_another_each_time(const struct tir_inst *inst)
{
    if (!inst || tir_has_trait(inst, TIR_PURE))
        return false;
    for (const struct tir_inst *o = inst->block->owner; o; o = o->block->owner)
        if (tir_is_loop(o) || o->op == TIR_OP_TILES)
            return true;
    return false;
}

static struct key key_of(struct keys *k, struct tir_value *v)
{
    int64_t n;
    if (tir_is_const_int(v, &n))
        return number(n);
    if (v->kind == TIR_VALUE_CONST)
        return hashed(tir_sync_mix(v->id, 0));
    const struct tir_inst *inst = v->def;
    k->by_round |= (!inst && v->block && v->block->owner) || is_another_each_time(inst);
    if (!k->steps || (inst && inst->region_count))
        return opaque(k, v);
    k->steps--;
    if (!inst) {
        const struct tir_inst *loop = v->block ? v->block->owner : NULL;
        return loop && loop->op == TIR_OP_FOR && !v->index ? key_of_counter(k, loop, v)
                                                           : opaque(k, v);
    }
    switch (inst->op) {
    case TIR_OP_TID:
        return number(k->thread);
    case TIR_OP_TID_IN_WG:
        return number(k->thread % (4 * SYNC_LANES));
    case TIR_OP_LANEID:
        return number(k->thread % SYNC_LANES);
    case TIR_OP_WARPID:
        return number(k->thread / SYNC_LANES);
    case TIR_OP_WGID:
        return number(k->thread / (4 * SYNC_LANES));
    case TIR_OP_LOAD:
    case TIR_OP_SHUFFLE:
    case TIR_OP_VOTE:
        return key_of_op(k, v);
    default:
        return tir_has_trait(inst, TIR_PURE) ? key_of_op(k, v) : opaque(k, v);
    }
}

// By warp. False: lanes of one have different keys.
static bool find_keys(struct sync_program *p, struct tir_value *v, struct sync_keys *keys)
{
    const uint32_t step = tir_sync_varies_in_warp(p, v) ? 1 : SYNC_LANES;
    *keys = (struct sync_keys){0};
    for (uint32_t thread = 0; thread < p->threads; thread += step) {
        struct keys k = {.p = p, .thread = thread, .steps = MOST_STEPS};
        const uint64_t key = key_of(&k, v).hash;
        keys->by_round |= k.by_round;
        if (thread % SYNC_LANES == 0)
            keys->warps[thread / SYNC_LANES] = key;
        else if (keys->warps[thread / SYNC_LANES] != key)
            return false;
    }
    return true;
}

void tir_sync_find_keys(struct sync_program *p)
{
    struct sync_keys keys;
    uint32_t stores = 0;
    tir_map_init(&p->keys, p->cx->scratch);
    if (p->threads > SYNC_CTA_THREADS)
        return;
    tir_foreach_inst(inst, p->f) {
        if (inst->op != TIR_OP_STORE || !tir_is_by_thread(p->f, inst) ||
            tir_ref_base(inst)->type->space != TIR_SPACE_GLOBAL)
            continue;
        struct tir_value *v = inst->operands[TIR_STORE_VALUE];
        if (v->type->rank || tir_map_get(&p->keys, tir_map_key(v)) ||
            (v->kind != TIR_VALUE_CONST && stores++ >= MOST_STORES))
            continue;
        if (find_keys(p, v, &keys))
            tir_map_set(&p->keys, tir_map_key(v),
                        tir_arena_copy(p->cx->scratch, &keys, sizeof keys));
    }
}

const struct sync_keys *tir_sync_keys(const struct sync_program *p, const struct tir_value *v)
{
    return tir_map_get(&p->keys, tir_map_key(v));
}

bool tir_sync_warps_differ(const struct sync_program *p, const struct tir_value *v)
{
    const struct sync_keys *keys = tir_sync_keys(p, v);
    for (uint32_t i = 1; keys && i < p->threads / SYNC_LANES; i++)
        if (keys->warps[i] != keys->warps[0])
            return true;
    return false;
}
