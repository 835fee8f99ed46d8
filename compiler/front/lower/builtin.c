// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Built-ins that make, measure or move values: constant tiles, indices, sizes, atomics, lanes, PTX.
#include "front/lower/builtin.h"

static bool give(struct lower *l, val_list *out, struct val v)
{
    if (v.kind != VAL_POISON)
        vec_push(l->arena, out, v);
    return v.kind != VAL_POISON;
}

// An element type as an argument.
static bool lower_elem_arg(struct lower *l, const struct ast_expr *e, enum tir_elem *out)
{
    struct val v = lower_expr(l, e);
    *out = v.elem;
    if (v.kind != VAL_ELEM && v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_ARGUMENTS, "expected an element type, not %s",
                    lower_val_name(l, v));
    return v.kind == VAL_ELEM;
}

static const struct tir_type *lower_sizes(struct lower *l, struct call *c, uint32_t first,
                                          enum tir_elem elem)
{
    int64_t shape[TIR_MAX_RANK];
    uint32_t rank = c->positional - first;
    if (rank > TIR_MAX_RANK) {
        lower_error(l, c->e->span, TIR_E_RANK, "%u dimensions; the limit is %d", rank,
                    TIR_MAX_RANK);
        return NULL;
    }
    for (uint32_t d = 0; d < rank; d++)
        if (!const_int(l, call_arg(c, first + d), "the size of a tile", &shape[d]))
            return NULL;
    return lower_tile_type(l, c->e->span, elem, rank, shape);
}

// zeros(T, m, n), full(v, T, m, n)
bool builtin_full(struct lower *l, struct call *c, int which, val_list *out)
{
    uint32_t first = (uint32_t)which;
    enum tir_elem elem;
    struct val v = first ? lower_expr(l, call_arg(c, 0)) : val_int(0);
    if (!lower_elem_arg(l, call_arg(c, first), &elem))
        return false;
    if (elem == TIR_BOOL && !first)
        v = val_bool(false);
    const struct tir_type *type = lower_sizes(l, c, first + 1, elem);
    return type && give(l, out, val_ir(convert_to(l, call_arg(c, 0)->span, v, type)));
}

bool builtin_iota(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    const struct tir_type *type = lower_sizes(l, c, 0, TIR_I32);
    return type && give(l, out, val_ir(build_iota(l, type, 0)));
}

bool builtin_rows(struct lower *l, struct call *c, int which, val_list *out)
{
    const struct ast_expr *e = call_arg(c, 0);
    struct val v = lower_expr(l, e);
    if (!convert_is_value(l, e->span, v))
        return false;
    if (v.kind != VAL_IR || v.ir->type->rank != 2) {
        lower_error(l, e->span, TIR_E_RANK, "`%s` needs a tile of rank 2, not %s", c->name,
                    lower_val_name(l, v));
        return false;
    }
    int64_t shape[2] = {1, 1};
    shape[which] = v.ir->type->shape[which];
    const struct tir_type *type = tir_type_tile(l->cx->types, TIR_I32, 2, shape);
    return give(l, out, val_ir(build_iota(l, type, (uint32_t)which)));
}

// index(x, axis): along the axis, of size 1 elsewhere
bool builtin_index(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    const struct ast_expr *e = call_arg(c, 0);
    struct val v = lower_expr(l, e);
    if (!convert_is_value(l, e->span, v))
        return false;
    if (v.kind != VAL_IR || v.ir->type->rank == 0) {
        lower_error(l, e->span, TIR_E_RANK, "`%s` needs a tile, not %s", c->name,
                    lower_val_name(l, v));
        return false;
    }
    uint32_t axis, rank = v.ir->type->rank;
    if (!builtin_axis_of(l, c, 1, v.ir->type, &axis))
        return false;
    int64_t shape[TIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        shape[d] = d == axis ? v.ir->type->shape[d] : 1;
    const struct tir_type *type = tir_type_tile(l->cx->types, TIR_I32, rank, shape);
    return give(l, out, val_ir(build_iota(l, type, axis)));
}

bool builtin_alias(struct lower *l, struct call *c, int which, val_list *out)
{
    return lower_op_call(l, c, (enum tir_op)which, out);
}

// ordering = release, scope = gpu
static bool set_words(struct lower *l, const struct call *c, struct tir_inst *atomic)
{
    static const struct {
        enum named_arg arg;
        enum tir_attr_key key;
    } words[] = {{NAMED_ordering, TIR_ATTR_ordering}, {NAMED_scope, TIR_ATTR_scope}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(words); i++) {
        const struct ast_expr *e = builtin_named(c, words[i].arg);
        enum tir_word word;
        if (e && !lower_attr_word(l, c, words[i].key, e, &word))
            return false;
        if (e)
            tir_set_word(l->f, atomic, words[i].key, word);
    }
    return true;
}

// atomic_add(X[i], v, mask = c), atomic_cas(X[i], expected, v)
bool builtin_atomic(struct lower *l, struct call *c, int which, val_list *out)
{
    const uint32_t count = which == TIR_WORD_kind_cas ? 3 : 2;
    struct tir_value *values[2] = {NULL};
    struct slice s;
    if (!lower_slice(l, call_arg(c, 0), SLICE_UPDATE, &s))
        return false;
    for (uint32_t i = 1; i < count; i++) {
        const struct ast_expr *e = call_arg(c, i);
        values[i - 1] = convert_to(l, e->span, lower_expr(l, e), s.shown);
        if (!values[i - 1])
            return false;
        values[i - 1] = build_reshape(l, values[i - 1], s.type->rank, s.type->shape);
    }
    const struct ast_expr *em = builtin_named(c, NAMED_mask);
    struct tir_value *mask = em ? lower_mask(l, em, &s) : NULL;
    if (em && !mask)
        return false;
    if (s.type->elem == TIR_BOOL) {
        lower_error(l, c->e->span, TIR_E_TYPE, "`%s` works on numbers, not bools", c->name);
        return false;
    }
    struct tir_inst *inst = build_atomic(l, &s, values[count - 2], mask, (enum tir_word)which);
    inst->operands[TIR_ATOMIC_EXPECTED] = count == 3 ? values[0] : NULL;
    tir_str why = STR("");
    if (!set_words(l, c, inst)) {
        tir_remove(inst);
        return false;
    }
    if (!tir_infer(l->m, inst, s.type, &why)) {
        lower_error(l, c->e->span, TIR_E_TYPE, "`%s`: " STR_FMT, c->name, STR_ARG(why));
        tir_remove(inst);
        return false;
    }
    return give(l, out, val_ir(build_reshape(l, tir_result(inst), s.shown->rank, s.shown->shape)));
}

// Threads.

bool builtin_shuffle(struct lower *l, struct call *c, int which, val_list *out)
{
    const struct ast_expr *ex = call_arg(c, 0), *elane = call_arg(c, 1);
    struct val vx = lower_expr(l, ex);
    struct tir_value *x =
        convert_is_value(l, ex->span, vx) ? convert_default(l, ex->span, vx) : NULL;
    struct tir_value *lane = convert_elem(l, elane->span, lower_expr(l, elane), TIR_I32);
    if (!x || !lane)
        return false;
    if (x->type->rank || lane->type->rank || x->type->elem == TIR_BOOL) {
        lower_error(l, c->e->span, TIR_E_TYPE, "`%s` moves one number between lanes, not %s by %s",
                    c->name, lower_type_name(l, x->type), lower_type_name(l, lane->type));
        return false;
    }
    struct tir_value *operands[] = {x, lane};
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_SHUFFLE, operands, 2, &x->type, 1, 0);
    tir_set_word(l->f, inst, TIR_ATTR_mode, (enum tir_word)which);
    return give(l, out, val_ir(tir_result(inst)));
}

bool builtin_vote(struct lower *l, struct call *c, int which, val_list *out)
{
    const struct ast_expr *e = call_arg(c, 0);
    struct tir_value *x = convert_elem(l, e->span, lower_expr(l, e), TIR_BOOL);
    if (!x)
        return false;
    if (x->type->rank) {
        lower_error(l, e->span, TIR_E_TYPE, "`%s` takes one bool of each lane, not %s", c->name,
                    lower_type_name(l, x->type));
        return false;
    }
    enum tir_elem elem = which == TIR_WORD_kind_ballot ? TIR_U32 : TIR_BOOL;
    const struct tir_type *type = tir_type_scalar(l->cx->types, elem);
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_VOTE, &x, 1, &type, 1, 0);
    tir_set_word(l->f, inst, TIR_ATTR_kind, (enum tir_word)which);
    return give(l, out, val_ir(tir_result(inst)));
}

// ptx("text", inputs..., out = T, out = U)
bool builtin_ptx(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    struct tir_value *inputs[64];
    const struct tir_type *types[64];
    uint32_t input_count = 0, result_count = 0;
    struct val text = lower_expr(l, call_arg(c, 0));
    if (text.kind != VAL_TEXT) {
        if (text.kind != VAL_POISON)
            lower_error(l, c->e->span, TIR_E_ARGUMENTS, "`ptx` begins with its text, a string");
        return false;
    }
    for (uint32_t i = 1; i < c->positional; i++) {
        const struct ast_expr *e = call_arg(c, i);
        struct tir_value *v = convert_default(l, e->span, lower_expr(l, e));
        if (v && !tir_type_is_scalar(v->type)) {
            lower_error(l, e->span, TIR_E_TYPE, "inline PTX works on scalars, not %s",
                        lower_type_name(l, v->type));
            v = NULL;
        }
        if (!v)
            return false;
        inputs[input_count++] = v;
    }
    vec_foreach(const struct ast_arg, it, &c->e->args) {
        enum tir_elem elem;
        if (!it->name)
            continue;
        if (result_count == TIR_COUNT_OF(types) || !lower_elem_arg(l, it->value, &elem))
            return false;
        types[result_count++] = tir_type_scalar(l->cx->types, elem);
    }
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_PTX, inputs, input_count, types, result_count, 0);
    tir_set_text(l->f, inst, TIR_ATTR_text, text.text);
    for (uint32_t i = 0; i < result_count; i++)
        vec_push(l->arena, out, val_ir(inst->results[i]));
    return true;
}

// Sizes.

bool builtin_bytes(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    const struct ast_expr *e = call_arg(c, 0);
    struct val v = lower_part(l, e);
    if (v.kind == VAL_IR && v.ir->type->space != TIR_SPACE_GLOBAL)
        return give(l, out, val_int(tir_type_bytes(v.ir->type)));
    if (v.kind != VAL_POISON)
        lower_error(l, e->span, TIR_E_ARGUMENTS, "`bytes` is of a buffer or tile, not of %s",
                    lower_val_name(l, v));
    return false;
}

static struct val size_of(struct lower *l, const struct tir_value *v, uint32_t axis)
{
    return v->type->space == TIR_SPACE_GLOBAL ? tensor_extent(l, v, axis)
                                              : val_int(v->type->shape[axis]);
}

bool builtin_size(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    const struct ast_expr *e = call_arg(c, 0);
    struct val v = lower_expr(l, e);
    uint32_t axis = 0;
    if (v.kind == VAL_LAYOUT)
        return builtin_size_of_layout(l, c, v.layout, out);
    if (v.kind != VAL_IR || v.ir->type->rank == 0) {
        if (v.kind != VAL_POISON)
            lower_error(l, e->span, TIR_E_ARGUMENTS, "`size` is of a tensor or tile, not of %s",
                        lower_val_name(l, v));
        return false;
    }
    bool given = call_arg(c, 1) || builtin_named(c, NAMED_axis);
    if (given && !builtin_axis_of(l, c, 1, v.ir->type, &axis))
        return false;
    return give(l, out, size_of(l, v.ir, axis));
}

// An element type and a value, the arguments of the call. NULL: reported.
static struct tir_value *elem_and_value(struct lower *l, struct call *c, enum tir_elem *elem)
{
    if (!lower_elem_arg(l, call_arg(c, 0), elem))
        return NULL;
    const struct ast_expr *e = call_arg(c, 1);
    struct val v = lower_expr(l, e);
    return convert_is_value(l, e->span, v) ? convert_default(l, e->span, v) : NULL;
}

bool builtin_bitcast(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    enum tir_elem elem;
    struct tir_value *x = elem_and_value(l, c, &elem);
    if (!x)
        return false;
    if (tir_elems[elem].bits != tir_elems[x->type->elem].bits) {
        lower_error(l, c->e->span, TIR_E_TYPE, "%s and %s have different widths",
                    tir_elems[elem].name, tir_elems[x->type->elem].name);
        return false;
    }
    const struct tir_type *type = tir_type_with_elem(l->cx->types, x->type, elem);
    return give(l, out, val_ir(build_one(l, TIR_OP_BITCAST, type, &x, 1)));
}

// Elements of 4 or 6 bits, packed in the bytes of each row.
bool builtin_expand(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    enum tir_elem elem;
    struct tir_value *x = elem_and_value(l, c, &elem);
    if (!x)
        return false;
    struct tir_type t = *x->type;
    if (!tir_elem_is_narrow(elem) || t.elem != TIR_U8 || t.rank != 2 ||
        t.shape[1] * 8 % tir_elem_width(elem)) {
        lower_error(l, c->e->span, TIR_E_TYPE,
                    "expand makes e2m1, e3m2 or e2m3 of u8[M, N], not %s of %s",
                    tir_elems[elem].name, tir_type_text(l->arena, x->type).ptr);
        return false;
    }
    t.elem = elem;
    t.shape[1] = t.shape[1] * 8 / tir_elem_width(elem);
    t.layout = NULL;
    return give(l, out, val_ir(build_one(l, TIR_OP_EXPAND, tir_type_get(l->cx->types, &t), &x, 1)));
}

bool builtin_assume_sync(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    (void)out;
    const struct ast_expr *reason = call_arg(c, 0);
    if (reason->kind != AST_STRING || !reason->text.len) {
        lower_error(l, reason->span, TIR_E_ARGUMENTS, "`assume_sync` takes a reason, a string");
        return false;
    }
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_ASSUME_SYNC, NULL, 0, NULL, 0, 0);
    tir_set_text(l->f, inst, TIR_ATTR_text, reason->text);
    return true;
}

bool builtin_static_assert(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    (void)out;
    const struct ast_expr *message = call_arg(c, 1);
    bool truth;
    if (!const_truth(l, call_arg(c, 0), "the condition of static_assert", &truth))
        return false;
    if (message && message->kind != AST_STRING) {
        lower_error(l, message->span, TIR_E_ARGUMENTS, "the message must be a string");
        return false;
    }
    if (!truth && message)
        lower_error(l, c->e->span, TIR_E_STATIC_ASSERT, STR_FMT, STR_ARG(message->text));
    else if (!truth)
        lower_error(l, c->e->span, TIR_E_STATIC_ASSERT, "this is false");
    return truth;
}
