// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cse: computes each value once.
//
// Walks in program order with a table of the pure instructions that dominate the current one. If an
// equal one is in the table, its results replace those of the later one, which is removed. Leaving
// a block removes its instructions from the table. Commutative operations match either way round.
// Loads from `in` tensors, which nothing writes, count as pure. Those of tiles do so within one
// block: further apart, keeping the tile alive may cost more registers than loading it again. Those
// of one thread LLVM would make one, too, and passes and emitters count how often a value is used.
//
//     let a: i64 = mul(m, 64);            let a: i64 = mul(m, 64);
//     let b: i64 = mul(64, m);     ->     let c: i64 = add(a, a);
//     let c: i64 = add(a, b);
//
// Not done here: instructions with blocks (a user reduction), partial redundancy.

#include "ir/walk.h"
#include "pass/pass.h"

struct entry {
    struct tir_inst *inst;
    uint64_t key;
    struct entry *below; // same hash, entered before
};

struct cse {
    struct tir_arena *arena;
    struct tir_func *f;
    struct tir_map table;    // hash -> struct entry, the newest
    struct tir_map replaced; // value -> value
    VEC(struct entry *) entered;
    bool changed;
};

static bool reads_only_inputs(const struct cse *c, const struct tir_inst *inst)
{
    if (inst->op != TIR_OP_LOAD && inst->op != TIR_OP_LD)
        return false;
    const struct tir_value *base = inst->op == TIR_OP_LD ? inst->operands[0] : tir_ref_base(inst);
    for (uint32_t i = 0; i < c->f->param_count; i++)
        if (c->f->params[i].value == base)
            return c->f->params[i].direction == TIR_IN;
    return false;
}

static bool swaps(const struct tir_inst *inst) // so that a + b and b + a look alike
{
    return tir_has_trait(inst, TIR_COMMUTES) && inst->operands[0]->id > inst->operands[1]->id;
}

static uint64_t hash(const struct tir_inst *inst)
{
    uint64_t head[] = {inst->op, inst->operand_count, inst->result_count};
    uint64_t h = tir_hash_bytes(head, sizeof(head), 0);
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[swaps(inst) ? 1 - i : i];
        uint64_t id = v ? v->id : UINT64_MAX;
        h = tir_hash_bytes(&id, sizeof(id), h);
    }
    for (uint32_t i = 0; i < inst->attr_count; i++) {
        const struct tir_attr *a = &inst->attrs[i];
        uint64_t parts[] = {a->key, (uint64_t)a->number};
        h = tir_hash_bytes(parts, sizeof(parts), h);
        h = tir_hash_bytes(a->list, a->list_count * sizeof(*a->list), h);
    }
    return h;
}

static bool same_attrs(const struct tir_inst *x, const struct tir_inst *y)
{
    if (x->attr_count != y->attr_count)
        return false;
    for (uint32_t i = 0; i < x->attr_count; i++) {
        const struct tir_attr *a = &x->attrs[i], *b = &y->attrs[i];
        if (a->key != b->key || a->number != b->number || a->list_count != b->list_count ||
            !tir_str_equal(a->text, b->text))
            return false;
        for (uint32_t k = 0; k < a->list_count; k++)
            if (a->list[k] != b->list[k])
                return false;
    }
    return true;
}

static bool same(const struct tir_inst *x, const struct tir_inst *y)
{
    if (x->op != y->op || x->operand_count != y->operand_count ||
        x->result_count != y->result_count || !same_attrs(x, y))
        return false;
    for (uint32_t i = 0; i < x->operand_count; i++)
        if (x->operands[swaps(x) ? 1 - i : i] != y->operands[swaps(y) ? 1 - i : i])
            return false;
    for (uint32_t i = 0; i < x->result_count; i++)
        if (x->results[i]->type != y->results[i]->type)
            return false;
    return true;
}

static void resolve(const struct cse *c, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *to =
            inst->operands[i] ? tir_map_get(&c->replaced, tir_map_key(inst->operands[i])) : NULL;
        if (to) // never replaced itself: it was in the table
            inst->operands[i] = to;
    }
}

static void visit(struct cse *c, struct tir_inst *inst)
{
    const bool once = reads_only_inputs(c, inst) || tir_has_trait(inst, TIR_PURE);
    if (inst->region_count || !once)
        return;
    uint64_t key = hash(inst);
    struct entry *top = tir_map_get(&c->table, key);
    for (struct entry *e = top; e; e = e->below) {
        if (!same(e->inst, inst) || (inst->op == TIR_OP_LOAD && e->inst->block != inst->block))
            continue;
        for (uint32_t i = 0; i < inst->result_count; i++)
            tir_map_set(&c->replaced, tir_map_key(inst->results[i]), e->inst->results[i]);
        tir_remove(inst);
        c->changed = true;
        return;
    }
    struct entry *e = arena_new(c->arena, struct entry);
    *e = (struct entry){inst, key, top};
    tir_map_set(&c->table, key, e);
    vec_push(c->arena, &c->entered, e);
}

static void visit_block(struct cse *c, struct tir_block *block)
{
    uint32_t before = c->entered.len;
    tir_foreach_inst_safe(inst, block) {
        resolve(c, inst);
        for (uint32_t r = 0; r < inst->region_count; r++)
            visit_block(c, inst->regions[r]);
        visit(c, inst);
    }
    while (c->entered.len > before) {
        struct entry *e = vec_pop(&c->entered);
        tir_map_set(&c->table, e->key, e->below);
    }
}

enum tir_change tir_pass_cse(struct tir_func *f, struct tir_pass_cx *cx)
{
    struct cse c = {.arena = cx->scratch, .f = f};
    tir_map_init(&c.table, cx->scratch);
    tir_map_init(&c.replaced, cx->scratch);
    visit_block(&c, f->body);
    visit_block(&c, f->host);
    return c.changed ? TIR_CHANGED : TIR_UNCHANGED;
}
