// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Changing a function: unlinking, moving, replacing uses, copying.

#include "ir/follow.h"
#include "ir/walk.h"

static void unlink_inst(struct tir_inst *inst)
{
    struct tir_block *block = inst->block;
    *(inst->prev ? &inst->prev->next : &block->first) = inst->next;
    *(inst->next ? &inst->next->prev : &block->last) = inst->prev;
}

void tir_remove(struct tir_inst *inst)
{
    unlink_inst(inst);
    inst->prev = inst->next = NULL;
    inst->block = NULL;
}

void tir_move_before(struct tir_inst *inst, struct tir_inst *where)
{
    assert(inst != where);
    unlink_inst(inst);
    inst->block = where->block;
    inst->prev = where->prev;
    inst->next = where;
    *(where->prev ? &where->prev->next : &where->block->first) = inst;
    where->prev = inst;
}

// Replacing.

static void replace_operands(struct tir_inst *inst, const struct tir_value *from,
                             struct tir_value *to)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] == from)
            inst->operands[i] = to;
}

static void replace_in(struct tir_block *root, struct tir_value *from, struct tir_value *to)
{
    tir_foreach_inst_in(inst, root)
        replace_operands(inst, from, to);
}

void tir_replace_later_uses(struct tir_value *from, struct tir_value *to)
{
    const struct tir_block *root = from->def->block;
    for (struct tir_inst *inst = tir_walk_skip(root, from->def); inst;
         inst = tir_walk_next(root, inst))
        replace_operands(inst, from, to);
}

void tir_replace_uses(struct tir_func *f, struct tir_value *from, struct tir_value *to)
{
    replace_in(f->body, from, to);
    replace_in(f->host, from, to);
}

static void replace_map_in(struct tir_block *root, const struct tir_map *map)
{
    tir_foreach_inst_in(inst, root) {
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            struct tir_value *to;
            while (inst->operands[i] && (to = tir_map_get(map, tir_map_key(inst->operands[i]))))
                inst->operands[i] = to;
        }
    }
}

void tir_replace_uses_map(struct tir_func *f, const struct tir_map *map)
{
    if (!map->count)
        return;
    replace_map_in(f->body, map);
    replace_map_in(f->host, map);
}

// Copying.

struct copy { // what values become: one of the two
    struct tir_map *map;
    struct tir_value **by_id; // of a function that is copied as a whole
    bool adopts;              // into another module
};

// The type in the module that f is copied to.
static const struct tir_type *type_in(struct tir_func *f, const struct copy *c,
                                      const struct tir_type *t)
{
    return c->adopts ? tir_type_adopt(f->module->types, t) : t;
}

static void becomes(const struct copy *c, const struct tir_value *v, struct tir_value *to)
{
    if (c->by_id)
        c->by_id[v->id] = to;
    else
        tir_map_set(c->map, tir_map_key(v), to);
}

static struct tir_value *mapped(struct tir_func *f, const struct copy *c, struct tir_value *v)
{
    if (!v)
        return NULL;
    struct tir_value *to = c->by_id ? c->by_id[v->id] : tir_map_get(c->map, tir_map_key(v));
    if (to)
        return to;
    if (v->kind != TIR_VALUE_CONST)
        return v;
    to = tir_const_as(f, type_in(f, c, v->type), v);
    if (c->by_id)
        c->by_id[v->id] = to;
    return to;
}

static void clone_block(struct tir_builder *b, const struct tir_block *from, const struct copy *c,
                        bool with_yield);

static struct tir_inst *clone_inst(struct tir_builder *b, const struct tir_inst *inst,
                                   const struct copy *c)
{
    enum { FEW = 16 }; // most instructions; what they are built from is copied
    struct tir_func *f = b->f;
    struct tir_arena *arena = f->module->arena;
    struct tir_value *few[FEW], **operands = few;
    const struct tir_type *few_types[FEW], **types = few_types;
    if (inst->operand_count > FEW)
        operands = arena_array(arena, struct tir_value *, inst->operand_count);
    if (inst->result_count > FEW)
        types = arena_array(arena, const struct tir_type *, inst->result_count);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        operands[i] = mapped(f, c, inst->operands[i]);
    for (uint32_t i = 0; i < inst->result_count; i++)
        types[i] = type_in(f, c, inst->results[i]->type);
    struct tir_span span = b->span;
    b->span = inst->span;
    struct tir_inst *copy = tir_build(b, inst->op, operands, inst->operand_count, types,
                                      inst->result_count, inst->region_count);
    b->span = span;
    for (uint32_t i = 0; i < inst->result_count; i++) {
        copy->results[i]->name = inst->results[i]->name;
        becomes(c, inst->results[i], copy->results[i]);
    }
    copy->attr_count = inst->attr_count;
    copy->attrs = tir_arena_copy(arena, inst->attrs, inst->attr_count * sizeof(*inst->attrs));
    for (uint32_t r = 0; r < inst->region_count; r++) {
        const struct tir_block *old = inst->regions[r];
        for (uint32_t i = 0; i < old->arg_count; i++) {
            struct tir_value *arg = old->args[i];
            becomes(c, arg,
                    tir_block_add_arg(f, copy->regions[r], type_in(f, c, arg->type), arg->name));
        }
        struct tir_builder inside = tir_builder_at_end(f, copy->regions[r]);
        clone_block(&inside, old, c, true);
    }
    return copy;
}

struct tir_inst *tir_clone_inst(struct tir_builder *b, const struct tir_inst *inst,
                                struct tir_map *map)
{
    return clone_inst(b, inst, &(struct copy){.map = map});
}

static void clone_block(struct tir_builder *b, const struct tir_block *from, const struct copy *c,
                        bool with_yield)
{
    for (struct tir_inst *inst = from->first; inst; inst = inst->next)
        if (with_yield || inst->op != TIR_OP_YIELD)
            clone_inst(b, inst, c);
}

void tir_clone_into(struct tir_builder *b, const struct tir_block *from, struct tir_map *map)
{
    clone_block(b, from, &(struct copy){.map = map}, false);
}

struct again { // a value that is computed again
    struct tir_builder *b;
    const struct tir_block *block;
    struct tir_map *map;
};

static enum tir_answer is_at_hand(void *user, struct tir_value *v)
{
    const struct again *again = user;
    bool is_made = v->def && v->def->block == again->block;
    return is_made && !tir_map_get(again->map, tir_map_key(v)) ? TIR_IF_OPERANDS : TIR_YES;
}

static void compute_again(void *user, struct tir_value *v)
{
    const struct again *again = user;
    if (!tir_map_get(again->map, tir_map_key(v))) // it may be a second result
        clone_inst(again->b, v->def, &(struct copy){.map = again->map});
}

struct tir_value *tir_clone_value(struct tir_builder *b, struct tir_value *v,
                                  const struct tir_block *block, struct tir_map *map)
{
    struct again again = {b, block, map};
    struct tir_follow follow;
    tir_follow_init(&follow, b->f->module->arena, is_at_hand, &again);
    follow.then = compute_again;
    tir_follows(&follow, v);
    struct tir_value *to = v ? tir_map_get(map, tir_map_key(v)) : NULL;
    return to ? to : v;
}

// loop: the only tiles loop that is copied; NULL: all are.
static struct tir_func *clone_func(struct tir_module *m, const struct tir_func *f,
                                   const struct tir_inst *loop, bool adopts)
{
    struct tir_arena *arena = m->arena;
    struct tir_func *copy = tir_func_new(m, f->name);
    struct tir_block *body = copy->body, *host = copy->host;
    struct tir_map constants = copy->constants;
    const struct copy c = {.by_id = arena_array(arena, struct tir_value *, f->value_count),
                           .adopts = adopts};
    *copy = *f;
    copy->module = m;
    copy->body = body;
    copy->host = host;
    copy->constants = constants;
    copy->value_count = copy->inst_count = 0;
    for (uint32_t i = 0; i < f->body->arg_count; i++) {
        struct tir_value *arg = f->body->args[i];
        becomes(&c, arg, tir_block_add_arg(copy, body, type_in(copy, &c, arg->type), arg->name));
    }
    copy->params = tir_arena_copy(arena, f->params, f->param_count * sizeof(*f->params));
    for (uint32_t i = 0; i < f->param_count; i++)
        copy->params[i].value = c.by_id[f->params[i].value->id];
    copy->dims = tir_arena_copy(arena, f->dims, f->dim_count * sizeof(*f->dims));
    for (uint32_t i = 0; i < f->dim_count; i++)
        copy->dims[i].value = c.by_id[f->dims[i].value->id];
    copy->scratch = tir_arena_copy(arena, f->scratch, f->scratch_count * sizeof(*f->scratch));
    for (uint32_t i = 0; i < f->scratch_count; i++)
        copy->scratch[i].value = c.by_id[f->scratch[i].value->id];
    struct tir_builder into_body = tir_builder_at_end(copy, body);
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        if (!loop || inst == loop || inst->op != TIR_OP_TILES)
            clone_inst(&into_body, inst, &c);
    struct tir_builder into_host = tir_builder_at_end(copy, host);
    clone_block(&into_host, f->host, &c, true);
    return copy;
}

struct tir_func *tir_func_clone(struct tir_func *f)
{
    return clone_func(f->module, f, NULL, false);
}

struct tir_func *tir_func_clone_with(struct tir_func *f, const struct tir_inst *loop)
{
    return clone_func(f->module, f, loop, false);
}

struct tir_func *tir_func_share(const struct tir_func *f)
{
    struct tir_arena *arena = f->module->arena;
    struct tir_func *other = tir_arena_copy(arena, f, sizeof(*f));
    other->params = tir_arena_copy(arena, f->params, f->param_count * sizeof(*f->params));
    other->dims = tir_arena_copy(arena, f->dims, f->dim_count * sizeof(*f->dims));
    tir_map_init(&other->constants, arena); // f may add to its own
    return other;
}

struct tir_func *tir_func_clone_to(struct tir_module *m, const struct tir_func *f)
{
    return clone_func(m, f, NULL, true);
}

// Constants have numbers too, and are met as operands.
static void keep_numbers(struct tir_block *copy, const struct tir_block *block)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        copy->args[i]->id = block->args[i]->id;
    const struct tir_inst *inst = block->first;
    for (struct tir_inst *to = copy->first; to; to = to->next, inst = inst->next) {
        to->id = inst->id;
        for (uint32_t i = 0; i < inst->operand_count; i++)
            if (inst->operands[i])
                to->operands[i]->id = inst->operands[i]->id;
        for (uint32_t i = 0; i < inst->result_count; i++)
            to->results[i]->id = inst->results[i]->id;
        for (uint32_t r = 0; r < inst->region_count; r++)
            keep_numbers(to->regions[r], inst->regions[r]);
    }
}

struct tir_func *tir_func_clone_numbered(struct tir_module *m, const struct tir_func *f)
{
    struct tir_func *copy = clone_func(m, f, NULL, true);
    keep_numbers(copy->body, f->body);
    keep_numbers(copy->host, f->host);
    copy->value_count = f->value_count;
    copy->inst_count = f->inst_count;
    return copy;
}
