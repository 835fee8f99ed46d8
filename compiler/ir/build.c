// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making modules, functions, constants and instructions, and reading what they hold.

#include "ir/number.h"
#include "ir/walk.h"

struct tir_module *tir_module_new(struct tir_arena *arena, struct tir_types *types,
                                  struct tir_interner *names, struct tir_diags *diags)
{
    struct tir_module *m = arena_new(arena, struct tir_module);
    m->arena = arena;
    m->types = types;
    m->names = names;
    m->diags = diags;
    return m;
}

struct tir_func *tir_func_new(struct tir_module *m, const char *name)
{
    struct tir_func *f = arena_new(m->arena, struct tir_func);
    f->module = m;
    f->name = name;
    tir_map_init(&f->constants, m->arena);
    f->body = tir_block_new(f, NULL);
    f->host = tir_block_new(f, NULL);
    return f;
}

struct tir_block *tir_block_new(struct tir_func *f, struct tir_inst *owner)
{
    struct tir_block *block = arena_new(f->module->arena, struct tir_block);
    block->owner = owner;
    return block;
}

static struct tir_value *value_new(struct tir_func *f, enum tir_value_kind kind,
                                   const struct tir_type *type)
{
    struct tir_value *v = arena_new(f->module->arena, struct tir_value);
    v->type = type;
    v->kind = kind;
    v->id = f->value_count++;
    return v;
}

struct tir_value *tir_block_add_arg(struct tir_func *f, struct tir_block *block,
                                    const struct tir_type *type, const char *name)
{
    struct tir_value *arg = value_new(f, TIR_VALUE_ARG, type);
    arg->block = block;
    arg->index = block->arg_count;
    arg->name = name;
    struct tir_value **args = arena_array(f->module->arena, struct tir_value *, arg->index + 1);
    for (uint32_t i = 0; i < block->arg_count; i++)
        args[i] = block->args[i];
    args[block->arg_count++] = arg;
    block->args = args;
    return arg;
}

// Constants.

static struct tir_value *constant(struct tir_func *f, const struct tir_type *type,
                                  union tir_number x)
{
    type = tir_type_with_layout(f->module->types, type, NULL); // it fits any layout
    uint64_t parts[2] = {tir_map_key(type), (uint64_t)x.i};
    uint64_t key = tir_hash_bytes(parts, sizeof(parts), 0);
    struct tir_value *v;
    for (; (v = tir_map_get(&f->constants, key)); key++)
        if (v->type == type && v->constant.i == x.i) // i: the bits of either kind
            return v;
    v = value_new(f, TIR_VALUE_CONST, type);
    v->constant.i = x.i;
    tir_map_set(&f->constants, key, v);
    return v;
}

struct tir_value *tir_const_int(struct tir_func *f, const struct tir_type *type, int64_t value)
{
    assert(!tir_elem_is_float(type->elem));
    return constant(f, type, (union tir_number){.i = tir_number_wrap(type->elem, value)});
}

struct tir_value *tir_const_float(struct tir_func *f, const struct tir_type *type, double value)
{
    assert(tir_elem_is_float(type->elem));
    value = tir_number_round(type->elem, value); // one NaN, whatever its bits were
    return constant(f, type, (union tir_number){.f = value});
}

struct tir_value *tir_const_index(struct tir_func *f, int64_t value)
{
    return tir_const_int(f, tir_type_scalar(f->module->types, TIR_I64), value);
}

struct tir_value *tir_const_i32(struct tir_func *f, int32_t value)
{
    return tir_const_int(f, tir_type_scalar(f->module->types, TIR_I32), value);
}

struct tir_value *tir_const_bool(struct tir_func *f, bool value)
{
    return tir_const_int(f, tir_type_scalar(f->module->types, TIR_BOOL), value);
}

struct tir_value *tir_const_like(struct tir_func *f, const struct tir_type *type, double value)
{
    return tir_elem_is_float(type->elem) ? tir_const_float(f, type, value)
                                         : tir_const_int(f, type, (int64_t)value);
}

struct tir_value *tir_const_as(struct tir_func *f, const struct tir_type *type,
                               const struct tir_value *constant)
{
    return tir_elem_is_float(type->elem) ? tir_const_float(f, type, constant->constant.f)
                                         : tir_const_int(f, type, constant->constant.i);
}

struct tir_value *tir_const_element(struct tir_func *f, const struct tir_value *constant)
{
    const struct tir_type *scalar = tir_type_scalar(f->module->types, constant->type->elem);
    return tir_const_as(f, scalar, constant);
}

bool tir_value_fits(const struct tir_value *v, const struct tir_type *type)
{
    if (v->type == type)
        return true;
    return v->kind == TIR_VALUE_CONST && type->space == TIR_SPACE_VALUE &&
           v->type->elem == type->elem && tir_type_same_shape(v->type, type);
}

// Instructions.

static void link_inst(struct tir_builder *b, struct tir_inst *inst)
{
    inst->block = b->block;
    inst->next = b->before;
    inst->prev = b->before ? b->before->prev : b->block->last;
    *(inst->prev ? &inst->prev->next : &b->block->first) = inst;
    *(inst->next ? &inst->next->prev : &b->block->last) = inst;
}

// Not zeroed; NULL for none.
static void *take_array(struct tir_arena *arena, uint32_t count, size_t size)
{
    return count ? tir_arena_take(arena, count * size) : NULL;
}

struct tir_inst *tir_build(struct tir_builder *b, enum tir_op op, struct tir_value *const *operands,
                           uint32_t operand_count, const struct tir_type *const *types,
                           uint32_t result_count, uint32_t region_count)
{
    struct tir_func *f = b->f;
    struct tir_arena *arena = f->module->arena;
    struct tir_inst *inst = arena_new(arena, struct tir_inst);
    inst->op = op;
    inst->id = f->inst_count++;
    inst->span = b->span;
    inst->operand_count = operand_count;
    inst->operands = take_array(arena, operand_count, sizeof(*inst->operands));
    for (uint32_t i = 0; i < operand_count; i++)
        inst->operands[i] = operands[i];
    inst->result_count = result_count;
    inst->results = take_array(arena, result_count, sizeof(*inst->results));
    for (uint32_t i = 0; i < result_count; i++) {
        struct tir_value *result = value_new(f, TIR_VALUE_RESULT, types[i]);
        result->def = inst;
        result->index = i;
        inst->results[i] = result;
    }
    inst->region_count = region_count;
    inst->regions = take_array(arena, region_count, sizeof(*inst->regions));
    for (uint32_t i = 0; i < region_count; i++)
        inst->regions[i] = tir_block_new(f, inst);
    link_inst(b, inst);
    return inst;
}

struct tir_value *tir_build1(struct tir_builder *b, enum tir_op op, const struct tir_type *type,
                             struct tir_value *const *operands, uint32_t operand_count)
{
    return tir_build(b, op, operands, operand_count, &type, 1, 0)->results[0];
}

struct tir_value *tir_unary(struct tir_builder *b, enum tir_op op, struct tir_value *x)
{
    return tir_build1(b, op, x->type, &x, 1);
}

struct tir_value *tir_transpose(struct tir_builder *b, struct tir_value *x)
{
    const struct tir_type *type = tir_type_transpose(b->f->module->types, x->type);
    struct tir_value *v = tir_build1(b, TIR_OP_PERMUTE, type, &x, 1);
    int64_t order[TIR_MAX_RANK];
    tir_transposition(x->type->rank, order);
    tir_set_list(b->f, v->def, TIR_ATTR_permutation, order, x->type->rank);
    return v;
}

struct tir_value *tir_in_layout(struct tir_builder *b, struct tir_value *v,
                                const struct tir_layout *layout)
{
    if (!layout || v->kind == TIR_VALUE_CONST || v->type->layout == layout ||
        !tir_type_is_tile(v->type))
        return v;
    const struct tir_type *type = tir_type_with_layout(b->f->module->types, v->type, layout);
    return tir_build1(b, TIR_OP_CONVERT_LAYOUT, type, (struct tir_value *[]){v, NULL}, 2);
}

struct tir_value *tir_binary(struct tir_builder *b, enum tir_op op, struct tir_value *x,
                             struct tir_value *y)
{
    const struct tir_type *type = x->kind == TIR_VALUE_CONST ? y->type : x->type;
    if (tir_ops[op].rule == TIR_RULE_COMPARE)
        type = tir_type_with_elem(b->f->module->types, type, TIR_BOOL);
    return tir_build1(b, op, type, (struct tir_value *[]){x, y}, 2);
}

struct tir_inst *tir_build_yield(struct tir_builder *b, struct tir_value *const *values,
                                 uint32_t count)
{
    return tir_build(b, TIR_OP_YIELD, values, count, NULL, 0, 0);
}

// Attributes.

struct tir_attr *tir_attr_find(const struct tir_inst *inst, enum tir_attr_key key)
{
    for (uint32_t i = 0; i < inst->attr_count; i++)
        if (inst->attrs[i].key == key)
            return &inst->attrs[i];
    return NULL;
}

int64_t tir_attr_int(const struct tir_inst *inst, enum tir_attr_key key, int64_t absent)
{
    const struct tir_attr *attr = tir_attr_find(inst, key);
    return attr ? attr->number : absent;
}

bool tir_tmem_is_pair(const struct tir_value *buffer)
{
    while (buffer->def && buffer->def->op == TIR_OP_VIEW)
        buffer = tir_ref_base(buffer->def);
    return buffer->def && buffer->def->op == TIR_OP_TMEM_BUFFER &&
           tir_attr_find(buffer->def, TIR_ATTR_cta_group);
}

enum tir_word tir_attr_word(const struct tir_inst *inst, enum tir_attr_key key,
                            enum tir_word absent)
{
    const struct tir_attr *attr = tir_attr_find(inst, key);
    return attr ? (enum tir_word)attr->number : absent;
}

static struct tir_attr *attr_slot(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key)
{
    struct tir_attr *found = tir_attr_find(inst, key);
    if (found)
        return found;
    struct tir_attr *attrs = arena_array(f->module->arena, struct tir_attr, inst->attr_count + 1);
    uint32_t at = 0;
    while (at < inst->attr_count && inst->attrs[at].key < key)
        at++;
    for (uint32_t i = 0; i < inst->attr_count; i++)
        attrs[i + (i >= at)] = inst->attrs[i];
    attrs[at].key = key;
    inst->attrs = attrs;
    inst->attr_count++;
    return &attrs[at];
}

void tir_set_int(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key, int64_t number)
{
    attr_slot(f, inst, key)->number = number;
}

void tir_set_word(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key,
                  enum tir_word word)
{
    attr_slot(f, inst, key)->number = word;
}

void tir_set_list(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key,
                  const int64_t *list, uint32_t count)
{
    struct tir_attr *attr = attr_slot(f, inst, key);
    int64_t *copy = arena_array(f->module->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        copy[i] = list[i];
    attr->list = copy;
    attr->list_count = count;
}

void tir_set_text(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key, tir_str text)
{
    attr_slot(f, inst, key)->text = tir_str_copy(f->module->arena, text);
}

bool tir_same_list(const struct tir_inst *a, const struct tir_inst *b, enum tir_attr_key key)
{
    const struct tir_attr *x = tir_attr_find(a, key), *y = tir_attr_find(b, key);
    return x && y ? x->list_count == y->list_count &&
                        !memcmp(x->list, y->list, x->list_count * sizeof(*x->list))
                  : x == y;
}

void tir_copy_attr(struct tir_func *f, struct tir_inst *to, const struct tir_inst *from,
                   enum tir_attr_key key)
{
    const struct tir_attr *attr = tir_attr_find(from, key);
    if (attr)
        *attr_slot(f, to, key) = *attr;
}

// Questions.

void tir_drop_attr(struct tir_func *f, struct tir_inst *inst, enum tir_attr_key key)
{
    if (!tir_attr_find(inst, key))
        return;
    struct tir_attr *attrs = arena_array(f->module->arena, struct tir_attr, inst->attr_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < inst->attr_count; i++)
        if (inst->attrs[i].key != key)
            attrs[count++] = inst->attrs[i];
    inst->attrs = attrs;
    inst->attr_count = count;
}

bool tir_has_tile(const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && tir_type_is_tile(inst->operands[i]->type))
            return true;
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (tir_type_is_tile(inst->results[i]->type))
            return true;
    return false;
}

bool tir_has_effect(const struct tir_inst *inst)
{
    const uint32_t effects = TIR_WRITES | TIR_ASYNC | TIR_SYNC;
    if (inst->op != TIR_OP_ALLOC && inst->op != TIR_OP_TILES && tir_has_trait(inst, effects))
        return true;
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (struct tir_inst *i = inst->regions[r]->first; i; i = i->next)
            if (tir_has_effect(i))
                return true;
    return inst->op == TIR_OP_WHILE; // it may not end
}

uint32_t tir_func_ctas(const struct tir_func *f)
{
    const uint32_t *c = f->preferred[0] ? f->preferred : f->cluster;
    return c[0] ? c[0] * c[1] * c[2] : 1;
}

uint32_t tir_carried_at(const struct tir_inst *inst)
{
    const struct tir_attr *by = inst->op == TIR_OP_TILES ? tir_attr_find(inst, TIR_ATTR_by) : NULL;
    return by ? by->list_count : tir_fixed_count(inst);
}

bool tir_is_const_int(const struct tir_value *v, int64_t *out)
{
    if (v->kind != TIR_VALUE_CONST || !tir_elem_is_int(v->type->elem))
        return false;
    *out = v->constant.i;
    return true;
}

const struct tir_param *tir_param_of(const struct tir_func *f, const struct tir_value *v)
{
    for (uint32_t i = 0; i < f->param_count; i++)
        if (f->params[i].value == v)
            return &f->params[i];
    return NULL;
}

bool tir_is_only_read(const struct tir_func *f, const struct tir_value *buffer)
{
    const struct tir_param *param = tir_param_of(f, buffer);
    return param && param->direction == TIR_IN;
}

uint32_t tir_scratch_of(const struct tir_func *f, const struct tir_value *v)
{
    uint32_t i = 0;
    while (i < f->scratch_count && f->scratch[i].value != v)
        i++;
    return i;
}

struct tir_value *tir_scratch_extent(const struct tir_func *f, uint32_t index, uint32_t dim)
{
    uint32_t at = f->grid_count + dim;
    for (uint32_t i = 0; i < index; i++)
        at += f->scratch[i].value->type->rank;
    return tir_yield_of(f->host)->operands[at];
}

int64_t tir_split_constant(struct tir_value **v)
{
    const struct tir_inst *sum = (*v)->def;
    int64_t c;
    if (!sum || (sum->op != TIR_OP_ADD && sum->op != TIR_OP_SUB) ||
        !tir_is_const_int(sum->operands[1], &c) || c == INT64_MIN)
        return 0;
    *v = sum->operands[0];
    return sum->op == TIR_OP_ADD ? c : -c;
}

enum { MOST = 16 }; // bytes that an access asks for

uint32_t tir_tensor_alignment(const struct tir_func *f, const struct tir_value *tensor)
{
    const struct tir_param *param = tir_param_of(f, tensor);
    return f->facts & TIR_FACT_VECTOR16 ? MOST : param ? TIR_MIN(MOST, param->aligned) : 0;
}

uint32_t tir_tensor_begin(const struct tir_func *f, const struct tir_value *tensor)
{
    const struct tir_param *param = tir_param_of(f, tensor);
    const uint32_t begins = param ? TIR_MIN(MOST, param->begins) : 0;
    return TIR_MAX(begins, tir_tensor_alignment(f, tensor));
}

bool tir_tensor_is_dense(const struct tir_func *f, const struct tir_value *tensor)
{
    return f->facts & TIR_FACT_UNIT_INNER || tir_tensor_begin(f, tensor);
}

uint32_t tir_combined_at(const struct tir_inst *inst, uint32_t i)
{
    return i ? tir_fixed_count(inst) + i - 1 : TIR_REDUCE_X;
}

uint32_t tir_combined_count(const struct tir_inst *inst)
{
    return 1 + inst->operand_count - tir_fixed_count(inst);
}

bool tir_is_elementwise(const struct tir_inst *inst)
{
    switch (tir_ops[inst->op].rule) {
    case TIR_RULE_SAME:
    case TIR_RULE_COMPARE:
    case TIR_RULE_SELECT:
        return true;
    default:
        return inst->op == TIR_OP_CAST || inst->op == TIR_OP_BITCAST;
    }
}

bool tir_block_contains(const struct tir_block *outer, const struct tir_inst *inst)
{
    for (; inst; inst = inst->block->owner)
        if (inst->block == outer)
            return true;
    return false;
}

bool tir_is_made_in(const struct tir_inst *outer, const struct tir_value *v)
{
    const struct tir_block *block = v->kind == TIR_VALUE_ARG ? v->block : v->def->block;
    while (block->owner && block->owner != outer)
        block = block->owner->block;
    return block->owner;
}

int64_t tir_alias_offset(const struct tir_value *buffer)
{
    const bool is_alias = buffer->def && buffer->def->op == TIR_OP_ALIAS;
    return is_alias ? tir_attr_int(buffer->def, TIR_ATTR_offset, 0) : 0;
}

bool tir_is_aliased(const struct tir_func *f, const struct tir_value *buffer)
{
    tir_foreach_inst(inst, f)
        if (inst->op == TIR_OP_ALIAS && inst->operands[0] == buffer)
            return true;
    return false;
}

struct tir_value *tir_buffer_root(struct tir_value *buffer)
{
    struct tir_value *of;
    while (buffer->def && (of = buffer->def->op == TIR_OP_ALIAS ? buffer->def->operands[0]
                                                                : tir_viewed(buffer->def)))
        buffer = of;
    return buffer;
}

bool tir_buffer_is_by_hand(struct tir_value *buffer)
{
    const struct tir_inst *made = tir_buffer_root(buffer)->def;
    return made && tir_attr_int(made, TIR_ATTR_by_hand, 0);
}
