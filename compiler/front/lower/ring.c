// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rings: queues of tiles in shared memory, by which roles meet.
//
// The blocks of put and get see a slot of the ring under the names of its buffers. What a get
// assigns outside of its block, it gives as results.
#include "front/lower/flow.h"

// Declaration.

// Rows of a ring that says nothing are swizzled, as copies and products like them.
static const struct tir_type *swizzled_slots(struct lower *l, const struct tir_type *t)
{
    uint32_t bits = tir_elems[t->elem].bits;
    if (t->rank < 3)
        return t;
    uint32_t swizzle = tir_layout_swizzle_for(t->shape[t->rank - 1] * bits / 8);
    const struct tir_layout *layout =
        tir_layout_memory(l->cx->types, t->rank, t->shape, bits, swizzle);
    return layout ? tir_type_with_layout(l->cx->types, t, layout) : t;
}

// The layout that b states for a slot, in each of the slots of `whole`.
static const struct tir_type *repeated_slots(struct lower *l, const struct ast_binding *b,
                                             const struct tir_type *whole)
{
    struct ast_type one = *b->type;
    one.space = TIR_SPACE_SHARED;
    const struct tir_type *slot = lower_type(l, &one);
    if (!slot)
        return NULL;
    const struct tir_layout *in = slot->layout;
    struct tir_iter iters[TIR_MAX_ITERS + 1] = {
        {(uint32_t)whole->shape[0], tir_layout_size(in, TIR_AXIS_REG), TIR_AXIS_REG}};
    memcpy(iters + 1, in->iters, in->iter_count * sizeof(*iters));
    const struct tir_layout *layout =
        in->iter_count < TIR_MAX_ITERS
            ? tir_layout_from_iters(l->cx->types, whole->rank, whole->shape, iters,
                                    in->iter_count + 1, in->replicas, in->replica_count,
                                    in->swizzle)
            : NULL;
    if (layout)
        return tir_type_with_layout(l->cx->types, whole, layout);
    lower_error(l, b->type->layout->span, TIR_E_TYPE, "no slots of a ring can have this layout");
    return NULL;
}

// Layouts are written for one slot; the slots lie one after the other.
static const struct tir_type *slots_type(struct lower *l, const struct ast_binding *b,
                                         int64_t stages)
{
    struct ast_type whole = *b->type;
    struct ast_expr count = {.kind = AST_INT, .span = b->type->span, .number = (uint64_t)stages};
    whole.space = TIR_SPACE_SHARED;
    whole.dims.at = NULL;
    whole.dims.len = whole.dims.cap = 0;
    vec_push(l->arena, &whole.dims, &count);
    vec_foreach(struct ast_expr *, it, &b->type->dims)
        vec_push(l->arena, &whole.dims, *it);
    const bool is_of_slot = b->type->layout && (b->type->layout->kind == AST_LAYOUT_ITERS ||
                                                b->type->layout->kind == AST_LAYOUT_VALUE);
    if (is_of_slot)
        whole.layout = NULL;
    const struct tir_type *type = lower_type(l, &whole);
    if (type && is_of_slot)
        return repeated_slots(l, b, type);
    return type && !type->layout ? swizzled_slots(l, type) : type;
}

static bool check_buffers(struct lower *l, const struct ast_stmt *s)
{
    if (!s->names.len)
        lower_error(l, s->head, TIR_E_ROLE, "the ring has no buffers: `{ a: bf16[128, 64]; }`");
    for (uint32_t i = 0; i < s->names.len; i++)
        for (uint32_t j = 0; j < i; j++)
            if (s->names.at[i].name == s->names.at[j].name) { // interned
                lower_error(l, s->names.at[i].span, TIR_E_REDEFINED, "two buffers called `%s`",
                            s->names.at[i].name);
                return false;
            }
    return s->names.len;
}

static struct ring *build_ring(struct lower *l, const struct ast_stmt *s)
{
    int64_t stages;
    const struct tir_type **types = arena_array(l->arena, const struct tir_type *, s->names.len);
    if (l->b.block != l->f->body || l->calls || l->role) {
        lower_error(l, s->head, TIR_E_ROLE, "a ring is declared at the top level of its kernel");
        return NULL;
    }
    if (!check_buffers(l, s) || !const_int(l, s->value, "the number of slots", &stages))
        return NULL;
    if (stages < 1 || stages > 64) {
        lower_error(l, s->value->span, TIR_E_ROLE, "a ring has 1 to 64 slots, not %lld",
                    (long long)stages);
        return NULL;
    }
    for (uint32_t i = 0; i < s->names.len; i++)
        if (!(types[i] = slots_type(l, &s->names.at[i], stages)))
            return NULL;
    struct ring *ring = arena_new(l->arena, struct ring);
    *ring = (struct ring){.buffers = &s->names, .span = s->head};
    ring->inst = tir_build(&l->b, TIR_OP_RING, NULL, 0, types, s->names.len, 0);
    tir_set_int(l->f, ring->inst, TIR_ATTR_stages, stages);
    for (uint32_t i = 0; i < s->names.len; i++)
        ring->inst->results[i]->name = s->names.at[i].name;
    vec_push(l->arena, &l->rings, ring);
    return ring;
}

void lower_ring(struct lower *l, const struct ast_stmt *s)
{
    struct ring *ring = build_ring(l, s);
    struct val v = ring ? (struct val){.kind = VAL_RING, .ring = ring} : val_poison();
    scope_declare(l, s->name, s->name_span, v);
}

void lower_check_rings(struct lower *l)
{
    vec_foreach(struct ring *, it, &l->rings)
        if (!(*it)->put || !(*it)->get)
            lower_error(l, (*it)->span, TIR_E_ROLE, "nothing is ever %s this ring",
                        (*it)->put ? "taken out of" : "put into");
}

// put and get

// One role fills a ring and another one empties it: then what a program computes does not depend on
// which of them is faster.
static bool check_role(struct lower *l, const struct ast_stmt *s, struct ring *ring)
{
    bool puts = s->kind == AST_PUT;
    const char *word = puts ? "put" : "get";
    const struct role **mine = puts ? &ring->put : &ring->get;
    const struct role *other = puts ? ring->get : ring->put;
    if (!l->role) {
        lower_error(l, s->head, TIR_E_ROLE, "`%s` is only possible in a role", word);
        return false;
    }
    if ((*mine && *mine != l->role) || other == l->role) {
        lower_error(l, s->head, TIR_E_ROLE,
                    other == l->role ? "a role cannot fill and empty the same ring"
                                     : "another role does `%s` on this ring already",
                    word);
        lower_note(l, other == l->role ? l->role->span : (*mine)->span, "in this role");
        return false;
    }
    *mine = l->role;
    return true;
}

static struct ring *ring_of(struct lower *l, const struct ast_stmt *s)
{
    struct symbol *symbol = scope_find(l, s->name);
    if (!symbol) {
        scope_unknown(l, s->name_span, s->name);
        return NULL;
    }
    symbol->used = true;
    if (symbol->val.kind == VAL_RING)
        return check_role(l, s, symbol->val.ring) ? symbol->val.ring : NULL;
    if (symbol->val.kind != VAL_POISON)
        lower_error(l, s->name_span, TIR_E_ROLE, "`%s` is %s, not a ring", s->name,
                    lower_val_name(l, symbol->val));
    return NULL;
}

static struct tir_value *slot_view(struct lower *l, struct tir_value *buffer,
                                   struct tir_value *slot)
{
    uint32_t rank = buffer->type->rank;
    struct tir_value *operands[TIR_MAX_RANK + 1] = {buffer, slot};
    int64_t box[TIR_MAX_RANK] = {0};
    struct tir_type t = {.elem = buffer->type->elem, .space = TIR_SPACE_SHARED, .rank = rank - 1};
    for (uint32_t d = 1; d < rank; d++) {
        operands[d + 1] = tir_const_index(l->f, 0);
        box[d] = t.shape[d - 1] = buffer->type->shape[d];
    }
    const struct tir_type *type = tir_type_get(l->cx->types, &t);
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_VIEW, operands, rank + 1, &type, 1, 0);
    tir_set_list(l->f, inst, TIR_ATTR_box, box, rank);
    return tir_result(inst);
}

static void lower_slot_block(struct lower *l, struct flow *f, const struct ring *ring,
                             struct tir_inst *inst)
{
    const struct ast_stmt *s = f->s;
    struct region r = region_enter(l, f, inst->regions[0]);
    struct tir_value *slot =
        tir_block_add_arg(l->f, inst->regions[0], tir_type_scalar(l->cx->types, TIR_I32), "slot");
    for (uint32_t i = 0; i < ring->buffers->len; i++) {
        const struct ast_binding *b = &ring->buffers->at[i];
        struct tir_value *view = slot_view(l, ring->inst->results[i], slot);
        view->name = b->name;
        scope_declare(l, b->name, b->span, val_ir(view))->is_slot = s->kind == AST_PUT;
    }
    struct loop *loop = l->loop;
    l->loop = NULL;
    lower_stmts(l, s->body, 0, s->body->stmts.len);
    l->loop = loop;
    region_leave(l, f, &r, true);
}

void lower_put(struct lower *l, const struct ast_stmt *s)
{
    struct ring *ring = ring_of(l, s);
    struct flow f = {.s = s};
    struct options o;
    if (!ring || !lower_options(l, s, &o))
        return;
    assigned_in(l, s->body, NULL, &f.vars);
    if (f.vars.len) {
        lower_error(l, s->head, TIR_E_ASSIGN, "a put gives no values, so it cannot assign `%s`",
                    f.vars.at[0]->name);
        return;
    }
    flow_room(l, &f);
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_PUT, &ring->inst->results[0], 1, NULL, 0, 1);
    lower_slot_block(l, &f, ring, inst);
}

void lower_get(struct lower *l, const struct ast_stmt *s)
{
    struct ring *ring = ring_of(l, s);
    struct flow f = {.s = s};
    struct options o;
    if (!ring || !lower_options(l, s, &o))
        return;
    const int64_t lag = o.value[AST_OPTION_GET_lag];
    const int64_t stages = tir_attr_int(ring->inst, TIR_ATTR_stages, 0);
    if (lag >= stages) {
        lower_error(l, o.arg[AST_OPTION_GET_lag]->span, TIR_E_ROLE,
                    "`lag` must be 0 to %lld for %lld slots", (long long)stages - 1,
                    (long long)stages);
        return;
    }
    assigned_in(l, s->body, NULL, &f.vars);
    flow_drop_poison(&f);
    flow_room(l, &f);
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_GET, &ring->inst->results[0], 1, f.types, f.count, 1);
    if (lag)
        tir_set_int(l->f, inst, TIR_ATTR_lag, lag);
    lower_slot_block(l, &f, ring, inst);
    flow_results(l, &f, inst);
}

// Filling a slot.

static struct tir_inst *build_copy(struct lower *l, struct tir_value *slot, struct tir_value *base,
                                   struct tir_value *const *indices, const int64_t *box)
{
    uint32_t rank = base->type->rank, n = TIR_COPY_FIXED;
    struct tir_value *operands[TIR_COPY_FIXED + 1 + TIR_MAX_RANK] = {[TIR_COPY_TO] = slot};
    operands[n++] = base;
    for (uint32_t d = 0; d < rank; d++)
        operands[n++] = indices[d];
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_COPY_ASYNC, operands, n, NULL, 0, 0);
    tir_set_list(l->f, inst, TIR_ATTR_box, box, rank);
    return inst;
}

// A slice of a tensor is copied by whatever engine is best.
static bool fill_from_tensor(struct lower *l, const struct ast_stmt *s, struct tir_value *slot)
{
    struct slice from;
    const struct ast_expr *e = s->value;
    if (e->kind != AST_INDEX || !lower_is_buffer_expr(l, e) ||
        scope_find(l, e->base->name)->val.ir->type->space != TIR_SPACE_GLOBAL)
        return false;
    if (!lower_slice(l, e, SLICE_READ, &from))
        return true;
    // Dimensions of size 1 are added, or elements left out: a value, which is stored.
    if (from.shown != from.type || lower_is_limited(&from))
        return false;
    if (from.type->elem != slot->type->elem || !tir_type_same_shape(from.type, slot->type)) {
        lower_error(l, e->span, TIR_E_SHAPE_MISMATCH, "%s does not fill the slot, %s",
                    lower_type_name(l, from.type), lower_type_name(l, slot->type));
        return true;
    }
    build_copy(l, slot, from.base, from.indices, from.box);
    return true;
}

// The same for `load(A[...])`, which may say more: the value's load is `last`, and nothing uses it.
static bool fill_by_load(struct lower *l, struct tir_inst *load, struct tir_value *slot)
{
    if (!load || load->op != TIR_OP_LOAD || tir_ref_base(load)->type->space != TIR_SPACE_GLOBAL ||
        load->operands[TIR_LOAD_PAD] || load->operands[TIR_LOAD_MASK] ||
        !tir_type_same_shape(load->results[0]->type, slot->type))
        return false;
    struct tir_inst *copy = build_copy(l, slot, tir_ref_base(load), tir_ref_indices(load),
                                       tir_attr_find(load, TIR_ATTR_box)->list);
    tir_copy_attr(l->f, copy, load, TIR_ATTR_cache);
    tir_remove(load);
    return true;
}

void lower_fill_slot(struct lower *l, const struct ast_stmt *s, const struct symbol *symbol)
{
    struct tir_value *slot = symbol->val.ir;
    if (s->op != TIR_TOK_ASSIGN) {
        lower_error(l, s->target->span, TIR_E_ASSIGN,
                    "a slot that is being filled holds nothing yet to combine with");
        return;
    }
    if (fill_from_tensor(l, s, slot))
        return;
    struct slice all = {.span = s->target->span, .base = slot};
    for (uint32_t d = 0; d < slot->type->rank; d++) {
        all.indices[d] = tir_const_index(l->f, 0);
        all.box[d] = slot->type->shape[d];
    }
    all.type = all.shown =
        tir_type_tile(l->cx->types, slot->type->elem, slot->type->rank, slot->type->shape);
    const struct tir_inst *before = l->b.block->last;
    struct tir_value *v = convert_to(l, s->value->span, lower_expr(l, s->value), all.type);
    bool is_last = v && v->def && v->def == l->b.block->last && v->def != before;
    if (v && !(is_last && fill_by_load(l, v->def, slot)))
        build_store(l, &all, v, NULL);
}

// IR text: put(a) with (slot: i32) { ... }

bool lower_slot_region(struct lower *l, struct tir_inst *inst, struct tir_span span,
                       const struct ast_fn *region)
{
    const struct tir_type *slot = tir_type_scalar(l->cx->types, TIR_I32);
    if (!region || region->params.len != 1) {
        lower_error(l, span, TIR_E_ARGUMENTS,
                    "`%s` has a block that takes the slot: `with (slot: i32) { ... }`",
                    tir_ops[inst->op].name);
        return false;
    }
    const struct tir_type **types =
        arena_array(l->arena, const struct tir_type *, inst->result_count);
    struct tir_value **values = arena_array(l->arena, struct tir_value *, inst->result_count);
    for (uint32_t i = 0; i < inst->result_count; i++)
        types[i] = inst->results[i]->type;
    const struct ast_binding *param = &region->params.at[0];
    struct tir_builder outer = l->b;
    struct loop *loop = l->loop;
    struct symbol *scope = scope_enter(l);
    l->b = tir_builder_at_end(l->f, inst->regions[0]);
    l->b.span = span;
    l->loop = NULL;
    struct tir_value *arg = tir_block_add_arg(l->f, inst->regions[0], slot, param->name);
    scope_declare(l, param->name, param->span, val_ir(arg));
    bool ok = lower_yielding(l, region->body, span, types, inst->result_count, values);
    if (ok)
        tir_build_yield(&l->b, values, inst->result_count);
    scope_leave(l, scope);
    l->b = outer;
    l->loop = loop;
    return ok;
}
