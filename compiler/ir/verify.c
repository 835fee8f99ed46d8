// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules every form shares, then those of the function's form.
//
// One walk in program order. `visible` holds, by id, the values that dominate the current place: a
// value is entered when it is defined and leaves with its block. What one instruction promises
// about its types is infer.c's business; here are the rules that span instructions.

#include "ir/attr_rules.h"
#include "ir/crew.h"
#include "ir/ir.h"

#define MAX_ERRORS 8 // of one function; the first is what matters

struct verifier {
    struct tir_func *f;
    const struct tir_value **visible; // by value id
    uint32_t errors;
    uint32_t threads; // that tiles are spread over: the CTA's, or a role's
};

static uint32_t regions_needed(const struct tir_inst *inst)
{
    switch (inst->op) {
    case TIR_OP_IF:
    case TIR_OP_WHILE:
        return 2;
    case TIR_OP_FOR:
    case TIR_OP_TILES:
    case TIR_OP_ROLE:
    case TIR_OP_SCOPE:
    case TIR_OP_PUT:
    case TIR_OP_GET:
        return 1;
    case TIR_OP_REDUCE:
    case TIR_OP_SCAN:
        return tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_user;
    default:
        return 0;
    }
}

static TIR_PRINTF(3, 4) void wrong(struct verifier *v, const struct tir_inst *inst,
                                   const char *format, ...)
{
    if (v->errors++ >= MAX_ERRORS)
        return;
    struct tir_text text;
    tir_text_init(&text, v->f->module->arena, 0);
    tir_text_format(&text, "kernel %s: ", v->f->name);
    va_list args;
    va_start(args, format);
    tir_text_vformat(&text, format, args);
    va_end(args);
    if (inst && inst->region_count == regions_needed(inst)) {
        tir_text_add(&text, STR(", in: "));
        tir_print_line(&text, v->f, inst);
    }
    tir_error_at(v->f->module->diags, inst ? inst->span : v->f->span, TIR_E_VERIFY, "%s", text.ptr);
}

static const char *text_of(struct verifier *v, const struct tir_type *t)
{
    return tir_type_text(v->f->module->arena, t).ptr;
}

// Values.

static void check_layout(struct verifier *v, const struct tir_inst *inst, const struct tir_type *t)
{
    const struct tir_layout *l = t->layout;
    bool shape_fits = l->rank == t->rank;
    for (uint32_t d = 0; shape_fits && d < t->rank; d++)
        shape_fits = l->shape[d] == t->shape[d];
    if (!shape_fits)
        wrong(v, inst, "the layout of %s is for another shape", text_of(v, t));
    else if (tir_type_is_tile(t) && v->threads && !tir_layout_is_spread(l, v->threads / 32))
        wrong(v, inst, "%s is not spread over the %u threads", text_of(v, t), v->threads);
    else if (tir_type_is_buffer(t) && !tir_layout_is_memory(l))
        wrong(v, inst, "%s does not lie in memory", text_of(v, t));
}

static void check_type(struct verifier *v, const struct tir_inst *inst, const struct tir_type *t)
{
    enum tir_form form = v->f->form;
    if (t->elem == TIR_NONE || (t->rank == 0 && t->layout)) {
        wrong(v, inst, "%s cannot be the type of a value", text_of(v, t));
        return;
    }
    int64_t count = 1;
    for (uint32_t d = 0; d < t->rank && t->space != TIR_SPACE_GLOBAL; d++)
        if (t->shape[d] < 1 || !tir_mul_checked(count, t->shape[d], &count) || count > 1 << 24) {
            wrong(v, inst, "the size of %s is not allowed", text_of(v, t));
            return;
        }
    if (t->layout)
        check_layout(v, inst, t);
    // A view or a permutation of a buffer may leave it to the buffer.
    bool is_made =
        inst && (inst->op == TIR_OP_ALLOC || inst->op == TIR_OP_ALIAS || inst->op == TIR_OP_RING);
    bool needs_layout =
        tir_type_is_tile(t) || (is_made && t->space == TIR_SPACE_SHARED && t->elem != TIR_MBARRIER);
    if (form >= TIR_FORM_LAID_OUT && needs_layout && t->rank && !t->layout)
        wrong(v, inst, "%s has no layout in form %s", text_of(v, t), tir_form_name(form));
    if (form == TIR_FORM_LOWERED && tir_type_is_tile(t))
        wrong(v, inst, "a tile, %s, in form lowered", text_of(v, t));
}

static void enter(struct verifier *v, const struct tir_value *value)
{
    v->visible[value->id] = value;
}

static void leave_block(struct verifier *v, const struct tir_block *block)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        v->visible[block->args[i]->id] = NULL;
    for (const struct tir_inst *inst = block->first; inst; inst = inst->next)
        for (uint32_t i = 0; i < inst->result_count; i++)
            v->visible[inst->results[i]->id] = NULL;
}

static bool check_operands(struct verifier *v, const struct tir_inst *inst)
{
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *x = inst->operands[i];
        if (!x)
            continue; // infer.c says where one may be absent
        bool known =
            x->id < v->f->value_count && (x->kind == TIR_VALUE_CONST || v->visible[x->id] == x);
        if (!known) {
            wrong(v, inst, "operand %u is not defined before it is used", i);
            return false;
        }
        if (x->kind == TIR_VALUE_CONST && v->f->form == TIR_FORM_LOWERED && x->type->rank)
            wrong(v, inst, "a constant tile in form lowered");
        bool stored =
            i == TIR_STORE_VALUE && (inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC);
        if (stored && x->kind == TIR_VALUE_CONST && x->type->rank &&
            v->f->form >= TIR_FORM_LAID_OUT)
            wrong(v, inst, "a stored constant has no layout; a broadcast gives it one");
    }
    return true;
}

// Attributes.

static void check_attr(struct verifier *v, const struct tir_inst *inst, const struct tir_attr *attr)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    bool listed = attr->key == TIR_ATTR_box && op->has_ref;
    for (uint32_t i = 0; i < op->attr_count; i++)
        listed |= op->attrs[i].key == attr->key;
    const char *name = tir_attr_infos[attr->key].name;
    if (!listed)
        wrong(v, inst, "%s has no attribute %s", op->name, name);
    if (!tir_attr_allows_integers(attr))
        wrong(v, inst, "attribute %s has a value that is not allowed", name);
    if (!tir_attr_allows_word(inst, attr))
        wrong(v, inst, "attribute %s has a word that does not belong to it", name);
}

static bool check_attrs(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t before = v->errors;
    for (uint32_t i = 0; i < inst->attr_count; i++) {
        if (i && inst->attrs[i - 1].key >= inst->attrs[i].key)
            wrong(v, inst, "attributes out of order");
        check_attr(v, inst, &inst->attrs[i]);
    }
    for (uint32_t i = 0; i < op->attr_count; i++)
        if (op->attrs[i].required && !tir_attr_find(inst, op->attrs[i].key))
            wrong(v, inst, "attribute %s is missing", tir_attr_infos[op->attrs[i].key].name);
    return v->errors == before;
}

// Regions.

static const struct tir_inst *yield_of(struct verifier *v, const struct tir_inst *inst,
                                       const struct tir_block *block, uint32_t count)
{
    const struct tir_inst *yield = tir_yield_of(block);
    if (!yield)
        wrong(v, inst, "a block does not end in a yield");
    else if (yield->operand_count != count)
        wrong(v, inst, "a block yields %u values where %u are needed", yield->operand_count, count);
    else
        return yield;
    return NULL;
}

static void check_yields(struct verifier *v, const struct tir_inst *inst,
                         const struct tir_block *block, uint32_t count,
                         const struct tir_type *const *types)
{
    const struct tir_inst *yield = yield_of(v, inst, block, count);
    for (uint32_t i = 0; yield && i < count; i++)
        if (!yield->operands[i] || !tir_value_fits(yield->operands[i], types[i])) {
            wrong(v, inst, "value %u is yielded as %s where %s is needed", i,
                  yield->operands[i] ? text_of(v, yield->operands[i]->type) : "nothing",
                  text_of(v, types[i]));
            return;
        }
}

// The block's arguments are `lead` (NULL: none), then one for each result.
static void check_args(struct verifier *v, const struct tir_inst *inst,
                       const struct tir_block *block, const struct tir_type *lead)
{
    uint32_t skip = lead ? 1 : 0;
    bool fits = block->arg_count == skip + inst->result_count;
    if (fits && lead)
        fits = block->args[0]->type == lead;
    for (uint32_t i = 0; fits && i < inst->result_count; i++)
        fits = block->args[skip + i]->type == inst->results[i]->type;
    if (!fits)
        wrong(v, inst, "the block's arguments do not match what is carried");
}

static void check_carried(struct verifier *v, const struct tir_inst *inst)
{
    uint32_t count = inst->operand_count - tir_carried_at(inst);
    struct tir_value **init = inst->operands + tir_carried_at(inst);
    bool fits = count == inst->result_count;
    for (uint32_t i = 0; fits && i < count; i++)
        fits = tir_value_fits(init[i], inst->results[i]->type);
    if (!fits)
        wrong(v, inst, "the first values do not match what is carried");
    // Passes know which memory an access goes to by following its buffer to one `alloc`.
    for (uint32_t i = 0; i < inst->result_count; i++)
        if (inst->results[i]->type->space != TIR_SPACE_VALUE) {
            wrong(v, inst,
                  "a loop carries values, and this is %s; carry the index of a slot of one buffer",
                  text_of(v, inst->results[i]->type));
            return;
        }
}

static void check_tiles(struct verifier *v, const struct tir_inst *inst,
                        const struct tir_type *const *types)
{
    const struct tir_block *block = inst->regions[0];
    uint32_t extents = tir_carried_at(inst);
    bool fits = block->arg_count == inst->operand_count && extents > 0;
    for (uint32_t i = 0; fits && i < extents; i++)
        fits = tir_elem_is_int(inst->operands[i]->type->elem) &&
               tir_type_is_scalar(inst->operands[i]->type) &&
               block->args[i]->type == inst->operands[i]->type;
    for (uint32_t i = extents; fits && i < block->arg_count && i - extents < inst->result_count;
         i++)
        fits = block->args[i]->type == types[i - extents];
    if (!fits)
        wrong(v, inst, "extents, tile sizes and block arguments do not match");
    const struct tir_attr *cluster = tir_attr_find(inst, TIR_ATTR_cluster);
    if (cluster && cluster->list_count != extents)
        wrong(v, inst, "the cluster has %u sizes for %u extents", cluster->list_count, extents);
    const int64_t next = tir_attr_int(inst, TIR_ATTR_next, -1);
    if (next >= (int64_t)inst->result_count || (next >= 0 && types[next]->elem != TIR_I32))
        wrong(v, inst, "the next tile is not an i32 that the loop carries");
    check_carried(v, inst);
    check_yields(v, inst, block, inst->result_count, types);
}

static void check_user_region(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_block *block = inst->regions[0];
    const struct tir_type *scalars[TIR_MAX_COMBINED];
    uint32_t count = inst->result_count;
    if (count > TIR_MAX_COMBINED)
        return; // reported
    bool fits = block->arg_count == 2 * count;
    for (uint32_t i = 0; i < count; i++) {
        scalars[i] = tir_type_scalar(v->f->module->types, inst->results[i]->type->elem);
        fits = fits && block->args[i]->type == scalars[i] &&
               block->args[count + i]->type == scalars[i];
    }
    if (!fits)
        wrong(v, inst, "the block must take two elements of each tile, %s first",
              text_of(v, scalars[0]));
    check_yields(v, inst, block, count, scalars);
}

// Of a ring: the argument is the slot.
static void check_slot(struct verifier *v, const struct tir_inst *inst, uint32_t count,
                       const struct tir_type *const *types)
{
    const struct tir_block *block = inst->regions[0];
    if (block->arg_count != 1 ||
        block->args[0]->type != tir_type_scalar(v->f->module->types, TIR_I32))
        wrong(v, inst, "the block must take the slot, an i32");
    check_yields(v, inst, block, count, types);
}

// After the blocks inside were checked, so their yields are sound.
static void check_regions(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_type *bool_type = tir_type_scalar(v->f->module->types, TIR_BOOL);
    const struct tir_type **types =
        arena_array(v->f->module->arena, const struct tir_type *, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        types[i] = inst->results[i]->type;
    switch (inst->op) {
    case TIR_OP_FOR:
        check_carried(v, inst);
        check_args(v, inst, inst->regions[0], inst->operands[TIR_FOR_BEGIN]->type);
        check_yields(v, inst, inst->regions[0], inst->result_count, types);
        break;
    case TIR_OP_WHILE:
        check_carried(v, inst);
        check_args(v, inst, inst->regions[0], NULL);
        check_args(v, inst, inst->regions[1], NULL);
        check_yields(v, inst, inst->regions[0], 1, &bool_type);
        check_yields(v, inst, inst->regions[1], inst->result_count, types);
        break;
    case TIR_OP_IF:
        check_yields(v, inst, inst->regions[0], inst->result_count, types);
        check_yields(v, inst, inst->regions[1], inst->result_count, types);
        break;
    case TIR_OP_TILES:
        check_tiles(v, inst, types);
        break;
    case TIR_OP_ROLE:
    case TIR_OP_SCOPE:
        yield_of(v, inst, inst->regions[0], 0);
        break;
    case TIR_OP_PUT:
    case TIR_OP_GET:
        check_slot(v, inst, inst->result_count, types);
        break;
    default:
        check_user_region(v, inst);
        break;
    }
}

// Instructions.

// What a reduction or scan of several tiles gives beside its first result.
static void check_combined(struct verifier *v, const struct tir_inst *inst)
{
    for (uint32_t i = 1; i < inst->result_count; i++) {
        tir_str why = {0};
        const struct tir_type *stated = inst->results[i]->type;
        const struct tir_type *t = tir_infer_result(v->f->module, inst, i, stated, &why);
        if (t && t != stated)
            wrong(v, inst, "result %u is %s where %s follows", i, text_of(v, stated),
                  text_of(v, t));
    }
}

static void check_results(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    if (op->result_count != TIR_MANY && op->result_count != inst->result_count) {
        wrong(v, inst, "%u results where %u are needed", inst->result_count, op->result_count);
        return;
    }
    const struct tir_type *stated = inst->result_count ? inst->results[0]->type : NULL;
    tir_str why = {0};
    const struct tir_type *t = tir_infer(v->f->module, inst, stated, &why);
    if (!t)
        wrong(v, inst, STR_FMT, STR_ARG(why));
    else if (stated && t != stated)
        wrong(v, inst, "the result is %s where %s follows", text_of(v, stated), text_of(v, t));
    if (t && op->rule == TIR_RULE_COMBINE)
        check_combined(v, inst);
    for (uint32_t i = 0; i < inst->result_count; i++)
        check_type(v, inst, inst->results[i]->type);
    if (inst->op == TIR_OP_RESHAPE && t && t->layout && inst->operands[0]->type->layout &&
        t->layout != tir_layout_reshape(v->f->module->types, inst->operands[0]->type->layout,
                                        t->rank, t->shape))
        wrong(v, inst, "a reshape moves data between threads");
}

static void check_direction(struct verifier *v, const struct tir_inst *inst)
{
    if (!tir_ops[inst->op].has_ref)
        return;
    const struct tir_value *base = tir_ref_base(inst);
    for (uint32_t i = 0; i < v->f->param_count; i++) {
        const struct tir_param *p = &v->f->params[i];
        bool writes = inst->op == TIR_OP_STORE || inst->op == TIR_OP_ATOMIC ||
                      inst->op == TIR_OP_STORE_ASYNC || inst->op == TIR_OP_TMA_STORE;
        bool reads = inst->op == TIR_OP_LOAD || inst->op == TIR_OP_COPY_ASYNC ||
                     inst->op == TIR_OP_TMA_LOAD || inst->op == TIR_OP_TMA_GATHER ||
                     inst->op == TIR_OP_TMA_PIXELS;
        if (p->value != base)
            continue;
        if (writes && p->direction == TIR_IN)
            wrong(v, inst, "%s is an input and is written", p->name);
        if (reads && p->direction == TIR_OUT)
            wrong(v, inst, "%s is an output and is read", p->name);
    }
}

// Only memory of the GPU is behind caches: one of the operands is a tensor.
static void check_cache(struct verifier *v, const struct tir_inst *inst)
{
    if (!tir_attr_find(inst, TIR_ATTR_cache))
        return;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i] && inst->operands[i]->type->space == TIR_SPACE_GLOBAL)
            return;
    wrong(v, inst, "cache is for accesses of tensors");
}

// Tensor maps alone have strides, of 8 at most and none along the innermost dimension.
static void check_strides(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_attr *strides = tir_attr_find(inst, TIR_ATTR_strides);
    if (!strides || !tir_ops[inst->op].has_ref)
        return;
    const uint32_t rank = tir_ref_base(inst)->type->rank;
    bool right = strides->list_count == rank && rank && strides->list[rank - 1] == 1;
    for (uint32_t d = 0; right && d < rank; d++)
        right = strides->list[d] >= 1 && strides->list[d] <= TIR_MAX_STRIDE;
    if (!right)
        wrong(v, inst, "strides are 1 to %d for each dimension of the tensor, the last 1",
              TIR_MAX_STRIDE);
    if (inst->op == TIR_OP_COPY_ASYNC &&
        tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE) != TIR_WORD_engine_tma)
        wrong(v, inst, "strides are for the engine tma");
}

// What a thread loads for itself is for the copies that it starts.
static void check_rows(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_value *rows = tir_copied_rows(inst);
    if (rows && v->f->form > TIR_FORM_TILE && !tir_loads_rows(rows->def))
        wrong(v, inst, "the rows of a copy are loaded by_thread");
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct tir_value *x = inst->operands[i];
        if (x && x != rows && tir_type_is_tile(x->type) && x->def && tir_loads_rows(x->def))
            wrong(v, inst, "a tile by_thread is the rows of copies alone");
    }
}

static void check_place(struct verifier *v, const struct tir_inst *role)
{
    if (role->block != v->f->body || (role->next && role->next->op != TIR_OP_ROLE))
        wrong(v, role, "roles stand at the end of the kernel, side by side");
    const struct tir_crew crew = tir_crew_of(v->f, role);
    if (v->f->threads && crew.first + crew.warps > v->f->threads / 32)
        wrong(v, role, "the role's warps end at %u, the CTA's at %u", crew.first + crew.warps,
              v->f->threads / 32);
}

// Groups of warps are whole, and begin with a multiple of so many.
static void check_scope(struct verifier *v, const struct tir_inst *scope)
{
    const int64_t warps = tir_attr_int(scope, TIR_ATTR_warps, 0);
    const struct tir_crew around = tir_crew_of_block(v->f, scope->block);
    if (warps < 1 || !tir_is_pow2((uint64_t)warps) || around.warps % warps || around.first % warps)
        wrong(v, scope, "a scope of %lld warps in %u from warp %u on", (long long)warps,
              around.warps, around.first);
    if (!v->f->grid_count)
        wrong(v, scope, "a scope in a kernel without a grid");
}

static void check_block(struct verifier *v, const struct tir_block *block,
                        const struct tir_inst *owner);

static void check_inst(struct verifier *v, const struct tir_inst *inst)
{
    const struct tir_op_info *op = &tir_ops[inst->op];
    uint32_t before = v->errors;
    if (v->f->form > op->last_form)
        wrong(v, inst, "%s may not appear in form %s", op->name, tir_form_name(v->f->form));
    bool sound = check_operands(v, inst);
    sound = check_attrs(v, inst) && sound;
    if (inst->region_count != regions_needed(inst)) {
        wrong(v, inst, "%u blocks where %u are needed", inst->region_count, regions_needed(inst));
        sound = false;
    }
    if (!sound)
        return;
    check_results(v, inst);
    if (v->errors != before)
        return;
    check_direction(v, inst);
    check_cache(v, inst);
    check_strides(v, inst);
    check_rows(v, inst);
    if (inst->op == TIR_OP_ROLE)
        check_place(v, inst);
    if (inst->op == TIR_OP_SCOPE)
        check_scope(v, inst);
    uint32_t threads = v->threads;
    if (inst->op == TIR_OP_ROLE || inst->op == TIR_OP_SCOPE) // its tiles are over its own warps
        v->threads = 32 * (uint32_t)tir_attr_int(inst, TIR_ATTR_warps, 0);
    for (uint32_t r = 0; r < inst->region_count; r++)
        check_block(v, inst->regions[r], inst);
    v->threads = threads;
    if (inst->region_count && v->errors == before)
        check_regions(v, inst);
}

static void check_block(struct verifier *v, const struct tir_block *block,
                        const struct tir_inst *owner)
{
    if (block->owner != owner)
        wrong(v, owner, "a block does not know its owner");
    for (uint32_t i = 0; i < block->arg_count; i++) {
        if (block->args[i]->block != block || block->args[i]->index != i)
            wrong(v, owner, "argument %u does not know its block", i);
        check_type(v, owner, block->args[i]->type);
        enter(v, block->args[i]);
    }
    const struct tir_inst *prev = NULL;
    for (const struct tir_inst *inst = block->first; inst; prev = inst, inst = inst->next) {
        if (inst->block != block || inst->prev != prev)
            wrong(v, inst, "a broken link between instructions");
        bool may_yield = !inst->next && (owner || block == v->f->host);
        if (inst->op == TIR_OP_YIELD && !may_yield)
            wrong(v, inst, "a yield that does not end a block");
        check_inst(v, inst);
        for (uint32_t i = 0; i < inst->result_count; i++)
            enter(v, inst->results[i]);
    }
    if (block->last != prev)
        wrong(v, owner, "a broken link at the end of a block");
    if (block != v->f->body)
        leave_block(v, block);
}

// The function.

static void check_signature(struct verifier *v)
{
    const struct tir_func *f = v->f;
    uint32_t stated = f->param_count + f->dim_count;
    bool fits = f->body->arg_count == stated + f->scratch_count;
    for (uint32_t i = 0; fits && i < f->param_count; i++) {
        fits = f->params[i].value == f->body->args[i];
        for (uint32_t d = 0; fits && d < f->params[i].value->type->rank; d++)
            fits = f->params[i].dims[d].dim < (int32_t)f->dim_count;
    }
    for (uint32_t i = 0; fits && i < f->dim_count; i++)
        fits = f->dims[i].value == f->body->args[f->param_count + i];
    for (uint32_t i = 0; fits && i < f->scratch_count; i++)
        fits = f->scratch[i].value == f->body->args[stated + i] &&
               f->scratch[i].value->type->space == TIR_SPACE_GLOBAL;
    for (uint32_t i = 0; fits && i < f->param_count; i++) {
        const struct tir_param *p = &f->params[i];
        const uint32_t bytes[] = {p->aligned, p->begins};
        for (uint32_t k = 0; k < TIR_COUNT_OF(bytes); k++)
            if (bytes[k] && (!tir_is_pow2(bytes[k]) || bytes[k] > 32 ||
                             p->value->type->space != TIR_SPACE_GLOBAL))
                wrong(v, NULL, "%s is aligned to %u bytes", p->name, bytes[k]);
    }
    if (!fits)
        wrong(v, NULL, "parameters and dimensions do not match the block's arguments");
    if (f->threads % 32 || f->threads > 1024)
        wrong(v, NULL, "%u threads", f->threads);
}

// What is several launches is taken apart before any pass: what stands beside the tiles loops
// belongs to each of them, so it must be the same whenever it is computed.
static void check_steps(struct verifier *v)
{
    const struct tir_func *f = v->f;
    uint32_t loops = 0, extents = 0;
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        loops += inst->op == TIR_OP_TILES;
    for (uint32_t i = 0; i < f->scratch_count; i++)
        extents += f->scratch[i].value->type->rank;
    if (extents != f->extent_count)
        wrong(v, NULL, "the host block gives %u extents of scratch tensors", f->extent_count);
    if (loops < 2 && !f->scratch_count)
        return;
    if (f->form != TIR_FORM_TILE || f->facts || f->grid_count || !loops)
        wrong(v, NULL,
              "only a kernel in form tile, of tiles loops, has several of them or scratch");
    for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
        if (inst->op != TIR_OP_TILES && !tir_has_trait(inst, TIR_PURE))
            wrong(v, inst, "only arithmetic stands beside several tiles loops");
}

static void check_host(struct verifier *v)
{
    const struct tir_func *f = v->f;
    const struct tir_type *bool_type = tir_type_scalar(f->module->types, TIR_BOOL);
    const struct tir_inst *yield = tir_yield_of(f->host);
    for (const struct tir_inst *inst = f->host->first; inst; inst = inst->next)
        if (inst != yield && (!tir_has_trait(inst, TIR_PURE) || tir_has_trait(inst, TIR_THREAD) ||
                              inst->region_count || tir_result(inst)->type->rank))
            wrong(v, inst, "only scalar arithmetic can run before a launch");
    uint32_t count = yield ? yield->operand_count : 0;
    if (count < tir_conditions_at(f) || f->grid_count > 3 || (f->host->first && !yield))
        wrong(v, NULL, "the grid is not given by the host block");
    for (uint32_t i = 0; yield && i < count; i++) {
        const struct tir_type *t = yield->operands[i]->type;
        if (!tir_type_is_scalar(t) ||
            (i < tir_conditions_at(f) ? t->elem != TIR_I64 : t != bool_type))
            wrong(v, yield, "value %u of the host block is %s", i, text_of(v, t));
    }
}

bool tir_verify(struct tir_func *f)
{
    struct verifier v = {.f = f, .threads = f->threads};
    v.visible = arena_array(f->module->arena, const struct tir_value *, f->value_count);
    check_signature(&v);
    check_block(&v, f->body, NULL);
    if (!v.errors) {
        // The host block sees the arguments of the body, but nothing computed there.
        for (const struct tir_inst *inst = f->body->first; inst; inst = inst->next)
            for (uint32_t i = 0; i < inst->result_count; i++)
                v.visible[inst->results[i]->id] = NULL;
        check_block(&v, f->host, NULL);
        check_host(&v);
        check_steps(&v);
    }
    return v.errors == 0;
}
