// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// columns: computes an epilogue a chunk of columns at a time, if it is stored in chunks.
//
//     let r: bf16[128, 256] in L = load(R[m:+128, n:+256]);
//     let y: bf16[128, 256] in L = add(sums, r);
//     store(D[m:+128, n:+256], y);
// becomes for the first of two chunks
//     let z: bf16[128, 128] in B = load(R[m:+128, n:+128]);
//     store(out, z);
//     let r0: bf16[128, 128] in L0 = load(out);
//     let s0: bf16[128, 128] in L0 = extract(sums, start = [0, 0]);
//     let y0: bf16[128, 128] in L0 = add(s0, r0);
//
// The accumulator leaves few registers, so no second tile of its size should be live at the same
// time, least of all one that is loaded element by element with a test for each. A tensor that is
// not aligned is loaded the way results are stored (async_store): in rows, through the buffer that
// the chunk then goes to.
//
// A value is computed in chunks if only the stored tile uses it and each of its columns depends on
// the same columns of its operands. Other values are computed whole, and a chunk is an extract of
// them. Loads move past the stores of earlier chunks, so only loads of tensors that the kernel does
// not write are included. Columns are reduced in chunks only where registers do not last, for each
// chunk has barriers.
//
// Of wide sums in tensor memory two warpgroups have half of the columns each, and no thread of the
// second has anything of the first chunk. Then the sums are loaded in chunks, which they share
// again, where they were loaded as a whole: what frees their place stands behind that.
//
//     let s: f32[128, 256] in S[(4, 32, 2, 128) : (1@warpid, 1@laneid, 4@warpid, 1)] = load(sums);
// becomes
//     let s0: f32[128, 64] in S[(4, 32, 2, 32) : (1@warpid, 1@laneid, 4@warpid, 1)] =
//         load(sums[0:+128, 0:+64]);
//     let s1: f32[128, 64] in ... = load(sums[0:+128, 64:+64]);

#include "pass/async/columns.h"

#include "ir/follow.h"
#include "machine/budget.h"
#include "pass/sync/crew.h"

static bool is_divided(const struct tir_columns *c, const struct tir_value *v)
{
    const struct tir_type *t = v->type;
    return tir_type_is_tile(t) && t->shape[t->rank - 1] == c->whole;
}

// The type of v's columns in a chunk; NULL: threads do not have them by themselves.
static const struct tir_type *part_type(const struct tir_columns *c, const struct tir_value *v)
{
    if (!is_divided(c, v))
        return v->type;
    struct tir_types *types = c->f->module->types;
    struct tir_type t = *v->type;
    t.shape[t.rank - 1] = c->count;
    if (t.layout)
        t.layout = c->is_spread ? tir_layout_narrow(types, t.layout, c->count)
                                : tir_layout_part(types, t.layout, t.shape);
    bool fits = t.layout || v->kind == TIR_VALUE_CONST;
    return fits ? tir_type_get(types, &t) : NULL;
}

static bool is_of_sums(const struct tir_inst *load)
{
    return load->op == TIR_OP_LOAD && tir_ref_base(load)->type->space == TIR_SPACE_TMEM;
}

// Do warpgroups share the columns of a chunk as a load from tensor memory shares them?
static bool can_load_sums(const struct tir_columns *c, const struct tir_inst *load)
{
    const struct tir_type *t = part_type(c, load->results[0]);
    const bool is_pair = tir_tmem_is_pair(tir_ref_base(load));
    return c->is_spread && t->rank == 2 && !tir_tmem_folds(t->shape[0], is_pair) &&
           t->layout == tir_layout_tmem(c->f->module->types, t->shape, c->warps, is_pair);
}

static bool can_load(const struct tir_columns *c, const struct tir_inst *load)
{
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    const struct tir_value *pad = load->operands[TIR_LOAD_PAD];
    const bool can =
        is_of_sums(load) ? can_load_sums(c, load) : tir_is_only_read(c->f, tir_ref_base(load));
    if (!can || load->operands[TIR_LOAD_MASK] || (pad && !tir_type_is_scalar(pad->type)) ||
        tir_attr_find(load, TIR_ATTR_wraps))
        return false;
    for (uint32_t d = 0; d < box->list_count; d++)
        if (box->list[d] < 0)
            return false;
    return box->list[box->list_count - 1] == c->whole;
}

// Does the layout of an operand's part follow from that of the result's part?
static bool is_in_step(const struct tir_columns *c, const struct tir_inst *inst)
{
    struct tir_types *types = c->f->module->types;
    const struct tir_type *from = part_type(c, inst->operands[0]);
    const struct tir_layout *l = part_type(c, inst->results[0])->layout;
    if (inst->operands[0]->kind == TIR_VALUE_CONST || tir_type_is_scalar(from))
        return true;
    if (inst->op == TIR_OP_RESHAPE)
        return is_divided(c, inst->operands[0]) &&
               tir_layout_reshape(types, l, from->rank, from->shape) == from->layout;
    for (uint32_t d = 0; l && d < from->rank; d++)
        if (from->shape[d] != l->shape[d])
            l = tir_layout_slice(types, l, d);
    return from->rank == inst->results[0]->type->rank && l == from->layout;
}

static int64_t registers_of(const struct tir_value *v)
{
    const struct tir_type *t = v->type;
    return (int64_t)tir_layout_size(t->layout, TIR_AXIS_REG) * tir_elems[t->elem].bits / 32;
}

// Has a thread no registers for what columns are reduced to beside what they are reduced from?
static bool can_reduce(const struct tir_columns *c, const struct tir_inst *reduce)
{
    const struct tir_value *x = reduce->operands[TIR_REDUCE_X];
    const uint32_t axis = (uint32_t)tir_attr_int(reduce, TIR_ATTR_axis, 0);
    const struct tir_inst *role = tir_crew_of(c->f, reduce).role;
    const int64_t launch = tir_launch_registers(c->f->threads);
    if (reduce->region_count || axis + 1 == x->type->rank || !is_divided(c, x))
        return false;
    const struct tir_layout *l = part_type(c, x)->layout;
    return tir_layout_slice(c->f->module->types, l, axis) ==
               part_type(c, reduce->results[0])->layout &&
           registers_of(x) + registers_of(reduce->results[0]) + TIR_BUDGET_FREE_REGISTERS >
               (role ? tir_attr_int(role, TIR_ATTR_regs, launch) : launch);
}

static bool can_divide(const struct tir_columns *c, const struct tir_inst *inst);

// A branch is taken again for each chunk.
static bool can_branch(const struct tir_columns *c, const struct tir_inst *branch)
{
    for (uint32_t r = 0; r < branch->region_count; r++) {
        const struct tir_block *block = branch->regions[r];
        for (const struct tir_inst *in = block->first; in; in = in->next) {
            if (in->op == TIR_OP_YIELD)
                continue;
            if (in->op == TIR_OP_IF || !can_divide(c, in))
                return false;
            for (uint32_t i = 0; i < in->operand_count; i++) {
                const struct tir_value *v = in->operands[i];
                if (v && v->def && v->def->block == block && !is_divided(c, v))
                    return false;
            }
        }
    }
    return true;
}

static bool can_divide(const struct tir_columns *c, const struct tir_inst *inst)
{
    if (inst->result_count != 1 || !is_divided(c, inst->results[0]) ||
        !part_type(c, inst->results[0]))
        return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && !part_type(c, inst->operands[i]))
            return false;
    switch (inst->op) {
    case TIR_OP_BROADCAST:
    case TIR_OP_RESHAPE:
        return is_in_step(c, inst);
    case TIR_OP_LOAD:
        return can_load(c, inst);
    case TIR_OP_IF:
        return can_branch(c, inst);
    case TIR_OP_REDUCE:
        return can_reduce(c, inst);
    default:
        return tir_is_elementwise(inst) && tir_has_trait(inst, TIR_PURE);
    }
}

static void see_operands(const struct tir_inst *inst, uint32_t *seen)
{
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i])
            seen[inst->operands[i]->id]++;
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            see_operands(in, seen);
}

bool tir_columns_has(const struct tir_columns *c, const struct tir_value *v)
{
    return v->id < c->inside.bits && bitset_has(&c->inside, v->id);
}

static void find_inside(struct tir_columns *c, struct tir_inst *store)
{
    const uint32_t *uses = tir_count_uses(c->scratch, c->f);
    uint32_t *seen = arena_array(c->scratch, uint32_t, c->f->value_count);
    see_operands(store, seen);
    for (const struct tir_inst *inst = store->prev; inst; inst = inst->prev) {
        if (!can_divide(c, inst) || seen[inst->results[0]->id] != uses[inst->results[0]->id])
            continue;
        bitset_insert(&c->inside, inst->results[0]->id);
        see_operands(inst, seen);
        c->has_loads |= inst->op == TIR_OP_LOAD && !is_of_sums(inst);
        for (uint32_t r = 0; r < inst->region_count; r++)
            for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
                if (in->result_count)
                    bitset_insert(&c->inside, in->results[0]->id);
    }
}

// Is all that the chunks of inst come from computed in chunks, too?
static bool is_closed(const struct tir_columns *c, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *v = inst->operands[i];
        if (v && is_divided(c, v) && v->kind != TIR_VALUE_CONST && !tir_columns_has(c, v))
            return false;
    }
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            if (!is_closed(c, in))
                return false;
    return true;
}

bool tir_columns_init(struct tir_columns *c, struct tir_func *f, struct tir_arena *scratch,
                      struct tir_inst *store, int64_t count)
{
    struct tir_value *stored = store->operands[TIR_STORE_VALUE];
    *c = (struct tir_columns){.f = f,
                              .scratch = scratch,
                              .whole = stored->type->shape[stored->type->rank - 1],
                              .inside = bitset_new(scratch, f->value_count),
                              .stored = stored,
                              .block = store->block,
                              .warps = tir_crew_of(f, store).warps,
                              .count = count};
    c->is_spread = !part_type(c, stored);
    find_inside(c, store);
    bool fits = !c->is_spread || tir_columns_has(c, stored);
    for (const struct tir_inst *inst = store->prev; c->is_spread && inst; inst = inst->prev)
        fits &= !inst->result_count || !tir_columns_has(c, inst->results[0]) || is_closed(c, inst);
    return fits;
}

static struct tir_value *build_part(struct tir_columns *c, struct tir_builder *b,
                                    struct tir_value *v);

// Does the load go through the buffer? Then threads load neighbours and not what they need.
static bool is_staged(const struct tir_columns *c, const struct tir_inst *load)
{
    const struct tir_type *t = part_type(c, load->results[0]), *buffer = c->buffer->type;
    return !is_of_sums(load) && t->elem == buffer->elem && t->rank == 2 && buffer->rank == 2 &&
           t->shape[0] == buffer->shape[0] && tir_tensor_alignment(c->f, tir_ref_base(load)) < 16;
}

static struct tir_inst *build_access(struct tir_columns *c, struct tir_builder *b, enum tir_op op,
                                     struct tir_value *first, struct tir_value *const *ref,
                                     const int64_t *box, const struct tir_type *type)
{
    struct tir_value *operands[3 + TIR_MAX_RANK] = {first};
    uint32_t rank = ref[0]->type->rank;
    memcpy(operands + 2, ref, (1 + rank) * sizeof(*ref));
    struct tir_inst *access = tir_build(b, op, operands, 3 + rank, &type, type ? 1 : 0, 0);
    tir_set_list(c->f, access, TIR_ATTR_box, box, rank);
    return access;
}

static struct tir_value *build_load(struct tir_columns *c, struct tir_builder *b,
                                    const struct tir_inst *load, const struct tir_type *type)
{
    static const uint32_t order[] = {1, 0};
    struct tir_func *f = c->f;
    const struct tir_attr *box = tir_attr_find(load, TIR_ATTR_box);
    uint32_t rank = box->list_count;
    struct tir_value *ref[1 + TIR_MAX_RANK], *pad = load->operands[TIR_LOAD_PAD];
    int64_t boxes[TIR_MAX_RANK];
    memcpy(ref, load->operands + tir_fixed_count(load), (1 + rank) * sizeof(*ref));
    memcpy(boxes, box->list, rank * sizeof(*boxes));
    boxes[rank - 1] = c->count;
    if (c->start)
        ref[rank] =
            tir_binary(b, TIR_OP_ADD, ref[rank], tir_const_int(f, ref[rank]->type, c->start));
    const bool staged = is_staged(c, load);
    const struct tir_type *by_rows = type;
    if (staged) {
        const struct tir_layout *rows =
            tir_layout_blocked(f->module->types, 2, type->shape, order, order, 1, 1, c->warps);
        by_rows = tir_type_with_layout(f->module->types, type, rows);
    }
    struct tir_inst *fetch = build_access(c, b, TIR_OP_LOAD, pad, ref, boxes, by_rows);
    tir_copy_attr(f, fetch, load, TIR_ATTR_cache);
    if (!staged)
        return fetch->results[0];
    struct tir_value *buffer[] = {c->buffer, tir_const_index(f, 0), tir_const_index(f, 0)};
    build_access(c, b, TIR_OP_STORE, fetch->results[0], buffer, type->shape, NULL);
    return build_access(c, b, TIR_OP_LOAD, NULL, buffer, type->shape, type)->results[0];
}

static struct tir_value *build_branch(struct tir_columns *c, struct tir_builder *b,
                                      struct tir_inst *branch, const struct tir_type *type)
{
    for (uint32_t r = 0; r < branch->region_count; r++) // in front of the branch: it is for both
        tir_foreach_inst_in(in, branch->regions[r])
            for (uint32_t i = 0; i < in->operand_count; i++)
                if (in->operands[i] &&
                    !(in->operands[i]->def && in->operands[i]->def->block == branch->regions[r]))
                    build_part(c, b, in->operands[i]);
    struct tir_inst *copy =
        tir_build(b, TIR_OP_IF, branch->operands, 1, &type, 1, branch->region_count);
    for (uint32_t r = 0; r < branch->region_count; r++) {
        struct tir_builder in = tir_builder_at_end(c->f, copy->regions[r]);
        in.span = branch->span;
        struct tir_value *y = build_part(c, &in, tir_yield_of(branch->regions[r])->operands[0]);
        tir_build_yield(&in, &y, 1);
    }
    return copy->results[0];
}

static struct tir_value *build_extract(struct tir_columns *c, struct tir_builder *b,
                                       struct tir_value *v, const struct tir_type *type)
{
    int64_t starts[TIR_MAX_RANK] = {0};
    if (c->count == c->whole)
        return v;
    starts[type->rank - 1] = c->start;
    struct tir_value *x = tir_build1(b, TIR_OP_EXTRACT, type, &v, 1);
    tir_set_list(c->f, x->def, TIR_ATTR_start, starts, type->rank);
    return x;
}

static struct tir_value *part_of(struct tir_columns *c, struct tir_builder *b, struct tir_value *v);

static struct tir_value *build_again(struct tir_columns *c, struct tir_builder *b,
                                     const struct tir_inst *inst, const struct tir_type *type)
{
    struct tir_value **operands = arena_array(c->scratch, struct tir_value *, inst->operand_count);
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i])
            operands[i] = part_of(c, b, inst->operands[i]);
    struct tir_value *x = tir_build1(b, inst->op, type, operands, inst->operand_count);
    x->def->attrs = inst->attrs;
    x->def->attr_count = inst->attr_count;
    return x;
}

// Is inst, in the block of the store, a load from tensor memory, or a branch that may load?
static bool brings_sums(const struct tir_columns *c, const struct tir_inst *inst)
{
    bool loads = is_of_sums(inst);
    if (inst->block != c->block)
        return false;
    for (uint32_t r = 0; r < inst->region_count; r++)
        for (const struct tir_inst *in = inst->regions[r]->first; in; in = in->next)
            loads |= is_of_sums(in);
    return loads;
}

// v's columns of the chunk; v, if it has the same value in each column. Those of its operands that
// are computed in chunks are there already.
static struct tir_value *part_of(struct tir_columns *c, struct tir_builder *b, struct tir_value *v)
{
    if (!is_divided(c, v))
        return v;
    const struct tir_type *type = part_type(c, v);
    if (v->kind == TIR_VALUE_CONST)
        return tir_const_as(c->f, type, v);
    struct tir_value *x = tir_map_get(&c->built, tir_map_key(v));
    if (x)
        return x;
    bool again = tir_columns_has(c, v);
    struct tir_builder here =
        again && brings_sums(c, v->def) ? tir_builder_before(c->f, v->def) : *b;
    if (again)
        here.span = v->def->span;
    if (!again)
        x = build_extract(c, &here, v, type);
    else if (v->def->op == TIR_OP_LOAD)
        x = build_load(c, &here, v->def, type);
    else if (v->def->op == TIR_OP_IF)
        x = build_branch(c, &here, v->def, type);
    else
        x = build_again(c, &here, v->def, type);
    tir_map_set(&c->built, tir_map_key(v), x);
    return x;
}

struct part { // being built
    struct tir_columns *c;
    struct tir_builder *b;
};

static enum tir_answer ask_for_part(void *user, struct tir_value *v)
{
    const struct part *part = user;
    bool is_built = tir_map_get(&part->c->built, tir_map_key(v));
    if (is_divided(part->c, v) && tir_columns_has(part->c, v) && !is_built)
        return TIR_IF_OPERANDS;
    part_of(part->c, part->b, v);
    return TIR_YES;
}

static void build_one(void *user, struct tir_value *v)
{
    const struct part *part = user;
    part_of(part->c, part->b, v);
}

static struct tir_value *build_part(struct tir_columns *c, struct tir_builder *b,
                                    struct tir_value *v)
{
    struct part part = {c, b};
    struct tir_follow follow;
    tir_follow_init(&follow, c->scratch, ask_for_part, &part);
    follow.then = build_one;
    tir_follows(&follow, v);
    return part_of(c, b, v);
}

struct tir_value *tir_columns_build(struct tir_columns *c, struct tir_builder *b,
                                    struct tir_value *buffer, int64_t start)
{
    c->buffer = buffer;
    c->start = start;
    tir_map_init(&c->built, c->scratch);
    return build_part(c, b, c->stored);
}
