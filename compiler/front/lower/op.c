// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of operations by name, driven by the op table: operands by position, optional operands and
// attributes by name. The result's type is what ir/infer.c says, so IR text comes back as it was.
#include "front/lower/builtin.h"

#include "front/parse/foreign.h"
#include "ir/attr_rules.h"
#include "ir/effect.h"
#include "ir/walk.h"

enum { MAX_FIXED = 8, MAX_LIST = 4096 };

struct op_call {
    struct call *c;
    enum tir_op op;
    const struct tir_op_info *info;
    struct val fixed[MAX_FIXED]; // VOID: absent
    const struct ast_expr *exprs[MAX_FIXED];
    struct slice slice;
    VEC(struct tir_value *) list;
    uint32_t next;         // the next argument by position
    struct val choices[2]; // of `where`, as they are written
};

// What has no place among the operands has a name.
static void note_optional(struct lower *l, const struct op_call *o)
{
    struct tir_text names;
    bool any = false;
    tir_text_init(&names, l->arena, 256);
    for (uint32_t i = 0; i < o->info->operand_count; i++)
        if (o->info->operands[i].kind == TIR_OPERAND_OPT) {
            tir_text_format(&names, "%s`%s = ...`", any ? ", " : "", o->info->operands[i].name);
            any = true;
        }
    if (any)
        tir_note_at(&l->cx->diags, o->c->e->span, "optional operands are given by name: " STR_FMT,
                    STR_ARG(tir_text_str(&names)));
}

static bool wrong_count(struct lower *l, struct op_call *o)
{
    uint32_t needed = 0;
    bool many = false;
    for (uint32_t i = 0; i < o->info->operand_count; i++) {
        needed += o->info->operands[i].kind != TIR_OPERAND_OPT &&
                  o->info->operands[i].kind != TIR_OPERAND_LIST;
        many |= o->info->operands[i].kind == TIR_OPERAND_LIST;
    }
    // A function of the language on top of the operation takes more.
    const struct builtin *builtin = l->is_ir ? NULL : builtin_find(o->info->name);
    if (builtin && builtin->most > needed) {
        lower_error(l, o->c->e->span, TIR_E_ARGUMENTS, "`%s` takes %u arguments, not %u",
                    builtin->name, builtin->most, o->c->positional);
        tir_foreign_help(&l->cx->diags, o->c->e->span, builtin->name);
        return false;
    }
    lower_error(l, o->c->e->span, TIR_E_ARGUMENTS, "`%s` takes %u operands%s, not %u",
                o->info->name, needed, many ? " or more" : "", o->c->positional);
    tir_foreign_help(&l->cx->diags, o->c->e->span, o->info->name);
    note_optional(l, o);
    if (o->op == TIR_OP_VIEW)
        tir_note_at(&l->cx->diags, o->c->e->span,
                    "another type over the same bytes is an alias: `let v: shared u32[64, 32] = "
                    "alias(buffer);`");
    return false;
}

static enum slice_use use_of(const struct op_call *o)
{
    switch (o->op) {
    case TIR_OP_STORE:
    case TIR_OP_PUSH:
    case TIR_OP_STORE_ASYNC:
    case TIR_OP_TMA_STORE:
        return SLICE_WRITE;
    case TIR_OP_ATOMIC:
        return SLICE_UPDATE;
    case TIR_OP_VIEW:
        return SLICE_VIEW;
    default:
        return call_named(o->c, "low") ? SLICE_PIXEL : SLICE_READ;
    }
}

// Whether a part of a buffer stands for the buffer that it is, not for what is in it.
static bool takes_part(enum tir_op op, const struct tir_operand_info *info)
{
    return info->kind == TIR_OPERAND_BUF || info->role == TIR_ROLE_BARRIER ||
           ((op == TIR_OP_COPY_ASYNC || op == TIR_OP_STORE_ASYNC) && info->kind == TIR_OPERAND_IN);
}

static struct val lower_operand(struct lower *l, struct op_call *o, const struct ast_expr *e,
                                const struct tir_operand_info *info)
{
    enum tir_operand_kind kind = info->kind;
    struct val v = takes_part(o->op, info) ? lower_part(l, e) : lower_expr(l, e);
    if (v.kind == VAL_POISON || v.kind == VAL_IR || (val_is_constant(v) && kind != TIR_OPERAND_BUF))
        return v;
    lower_error(l, e->span, TIR_E_TYPE, "`%s` cannot take %s", o->info->name, lower_val_name(l, v));
    return val_poison();
}

// Evaluates the operands that are written by position, in the order they are written.
static bool lower_positional(struct lower *l, struct op_call *o)
{
    uint32_t fixed = 0;
    bool ok = true;
    for (uint32_t i = 0; i < o->info->operand_count; i++) {
        enum tir_operand_kind kind = o->info->operands[i].kind;
        if (kind == TIR_OPERAND_LIST) {
            const struct ast_expr *e;
            while ((e = call_arg(o->c, o->next)) && o->list.len < MAX_LIST) {
                o->next++;
                struct val v = lower_operand(l, o, e, &o->info->operands[i]);
                struct tir_value *ir = v.kind == VAL_POISON ? NULL : convert_default(l, e->span, v);
                ok &= ir != NULL;
                vec_push(l->arena, &o->list, ir);
            }
            continue;
        }
        if (kind == TIR_OPERAND_OPT) {
            fixed++;
            continue;
        }
        const struct ast_expr *e = call_arg(o->c, o->next++);
        bool zero = !e && o->op == TIR_OP_DOT && fixed == TIR_DOT_ACC;
        if (!e && !zero)
            return wrong_count(l, o);
        if (kind == TIR_OPERAND_REF) {
            ok &= lower_slice(l, e, use_of(o), &o->slice);
            continue;
        }
        o->exprs[fixed] = e;
        o->fixed[fixed] = zero ? val_int(0) : lower_operand(l, o, e, &o->info->operands[i]);
        ok &= o->fixed[fixed++].kind != VAL_POISON;
    }
    return ok;
}

// Optional operands by name. Masks wait for the slice.
static bool lower_optional(struct lower *l, struct op_call *o)
{
    uint32_t fixed = 0;
    bool ok = true;
    for (uint32_t i = 0; i < o->info->operand_count; i++) {
        const struct tir_operand_info *info = &o->info->operands[i];
        if (info->kind == TIR_OPERAND_REF || info->kind == TIR_OPERAND_LIST)
            continue;
        const struct ast_arg *arg =
            info->kind == TIR_OPERAND_OPT ? call_named(o->c, info->name) : NULL;
        uint32_t at = fixed++;
        if (!arg)
            continue;
        o->exprs[at] = arg->value;
        if (info->role == TIR_ROLE_MASK)
            o->fixed[at] = val_ir(lower_mask(l, arg->value, &o->slice));
        else
            o->fixed[at] = lower_operand(l, o, arg->value, info);
        ok &= o->fixed[at].kind != VAL_POISON;
    }
    return ok;
}

// Conversions, by what the operation is.

static bool unify_fixed(struct lower *l, struct op_call *o, uint32_t first, uint32_t count)
{
    enum tir_elem hint = TIR_NONE;
    bool same = o->info->rule == TIR_RULE_SAME || o->info->rule == TIR_RULE_SELECT;
    if (same && o->c->stated_count)
        hint = o->c->stated[0]->elem;
    struct unify u = {tir_str_format(l->arena, "`%s`", o->info->name).ptr, o->c->e->span,
                      o->info->elems, hint, o->exprs + first};
    return convert_unify(l, &u, o->fixed + first, count);
}

static bool convert_fixed(struct op_call *o, uint32_t i, struct tir_value *v)
{
    o->fixed[i] = val_ir(v);
    return v;
}

static bool convert_select(struct lower *l, struct op_call *o)
{
    struct unify u = {"`where`", o->c->e->span, TIR_CLASS_ANY, TIR_NONE, o->exprs};
    o->choices[0] = o->fixed[1];
    o->choices[1] = o->fixed[2];
    return convert_fixed(o, 0, convert_elem(l, o->exprs[0]->span, o->fixed[0], TIR_BOOL)) &&
           unify_fixed(l, o, 1, 2) && convert_unify_shapes(l, &u, o->fixed, 3);
}

static bool convert_stored(struct lower *l, struct op_call *o)
{
    struct tir_value *v =
        convert_to(l, o->exprs[0]->span, o->fixed[TIR_STORE_VALUE], o->slice.shown);
    if (!v)
        return false;
    v = build_reshape(l, v, o->slice.type->rank, o->slice.type->shape);
    return convert_fixed(o, TIR_STORE_VALUE, v);
}

static bool convert_pad(struct lower *l, struct op_call *o)
{
    if (o->fixed[TIR_LOAD_PAD].kind == VAL_VOID)
        return true;
    const struct tir_type *type = tir_type_scalar(l->cx->types, o->slice.type->elem);
    return convert_fixed(o, TIR_LOAD_PAD,
                         convert_to(l, o->exprs[0]->span, o->fixed[TIR_LOAD_PAD], type));
}

static bool dot_error(struct lower *l, struct op_call *o, const char *why)
{
    lower_error(l, o->c->e->span, TIR_E_DOT, "cannot multiply %s by %s: %s",
                lower_val_name(l, o->fixed[0]), lower_val_name(l, o->fixed[1]), why);
    lower_note_operand(l, o->exprs[0], o->fixed[0]);
    lower_note_operand(l, o->exprs[1], o->fixed[1]);
    return false;
}

static bool is_factor(const struct lower *l, struct val v)
{
    return v.kind == VAL_IR && v.ir->type->space != TIR_SPACE_GLOBAL &&
           (v.ir->type->rank == 2 || (v.ir->type->rank == 3 && !l->is_ir));
}

// The columns of the first are multiplied by the rows of the second.
static bool depths_agree(struct lower *l, struct op_call *o)
{
    const struct tir_type *a = o->fixed[0].ir->type, *b = o->fixed[1].ir->type;
    const int64_t cols = a->shape[a->rank - 1], rows = b->shape[b->rank - 2];
    if (cols == rows)
        return true;
    dot_error(l, o,
              tir_str_format(l->arena, "the first has %lld columns, the second %lld rows",
                             (long long)cols, (long long)rows)
                  .ptr);
    if (cols == b->shape[b->rank - 1])
        lower_suggest_turned(l, o->exprs[1]);
    return false;
}

// How many matrices each factor has: as many as the other, or one for all. 0: reported.
static int64_t batch_of(struct lower *l, struct op_call *o)
{
    const struct tir_type *a = o->fixed[0].ir->type, *b = o->fixed[1].ir->type;
    const int64_t na = a->rank == 3 ? a->shape[0] : 1, nb = b->rank == 3 ? b->shape[0] : 1;
    const int64_t n = TIR_MAX(na, nb);
    const char *why = NULL;
    if (na != nb && na != 1 && nb != 1)
        why = tir_str_format(l->arena, "the first has %lld matrices, the second %lld",
                             (long long)na, (long long)nb)
                  .ptr;
    else if (n > LOWER_MAX_BATCH)
        why = tir_str_format(l->arena, "%lld matrices at once; the limit is %d", (long long)n,
                             LOWER_MAX_BATCH)
                  .ptr;
    if (why)
        dot_error(l, o, why);
    return why ? 0 : n;
}

// The rest is what infer says of the operation.
static bool convert_scaled_dot(struct lower *l, struct op_call *o)
{
    const struct tir_type *a = o->fixed[TIR_DOT_A].ir->type, *b = o->fixed[TIR_DOT_B].ir->type;
    if (a->rank != 2 || b->rank != 2)
        return dot_error(l, o, "factors with scales have rank 2");
    const struct tir_span span = o->c->e->span;
    const struct tir_type *type =
        lower_tile_type(l, span, TIR_F32, 2, (int64_t[]){a->shape[0], b->shape[1]});
    const struct ast_expr *e = o->exprs[TIR_DOT_ACC];
    return type && convert_fixed(o, TIR_DOT_ACC,
                                 convert_to(l, e ? e->span : span, o->fixed[TIR_DOT_ACC], type));
}

static bool convert_dot(struct lower *l, struct op_call *o)
{
    if (!is_factor(l, o->fixed[0]) || !is_factor(l, o->fixed[1]))
        return dot_error(l, o, "both must be tiles of rank 2 or 3");
    const struct tir_type *a = o->fixed[0].ir->type, *b = o->fixed[1].ir->type;
    struct val acc = o->fixed[TIR_DOT_ACC];
    if (o->fixed[TIR_DOT_SA].kind != VAL_VOID || o->fixed[TIR_DOT_SB].kind != VAL_VOID)
        return convert_scaled_dot(l, o);
    enum tir_elem elem =
        tir_dot_elem(a->elem, b->elem, acc.kind == VAL_IR ? acc.ir->type->elem : TIR_NONE);
    if (elem == TIR_NONE)
        return dot_error(l, o, "floats of one type, fp8 or 8-bit integers multiply");
    const int64_t batch = depths_agree(l, o) ? batch_of(l, o) : 0;
    if (!batch)
        return false;
    struct tir_span span = o->c->e->span;
    const bool is_batched = a->rank == 3 || b->rank == 3;
    const int64_t shape[] = {batch, a->shape[a->rank - 2], b->shape[b->rank - 1]};
    const struct tir_type *type =
        lower_tile_type(l, span, elem, is_batched ? 3 : 2, is_batched ? shape : shape + 1);
    if (!type)
        return false;
    const struct ast_expr *e = o->exprs[TIR_DOT_ACC];
    return convert_fixed(o, TIR_DOT_ACC, convert_to(l, e ? e->span : span, acc, type));
}

// Lanes, CTAs and parities are i32; the rest is what it is.
static bool convert_plain(struct lower *l, struct op_call *o)
{
    uint32_t fixed = 0;
    for (uint32_t i = 0; i < o->info->operand_count; i++) {
        enum tir_operand_kind kind = o->info->operands[i].kind;
        if (kind == TIR_OPERAND_REF || kind == TIR_OPERAND_LIST)
            continue;
        struct val v = o->fixed[fixed];
        uint32_t at = fixed++;
        bool is_i32 = v.kind != VAL_VOID && o->info->operands[i].role == TIR_ROLE_I32;
        if (!val_is_constant(v) && !is_i32)
            continue;
        struct tir_span span = o->exprs[at]->span;
        struct tir_value *ir =
            is_i32 ? convert_elem(l, span, v, TIR_I32) : convert_default(l, span, v);
        if (!convert_fixed(o, at, ir))
            return false;
    }
    return true;
}

static bool convert_operands(struct lower *l, struct op_call *o)
{
    switch (o->op) {
    case TIR_OP_LOAD:
        return convert_pad(l, o);
    case TIR_OP_STORE:
    case TIR_OP_PUSH:
    case TIR_OP_ATOMIC:
        return convert_stored(l, o);
    case TIR_OP_DOT:
        return convert_dot(l, o);
    case TIR_OP_ASSUME:
    case TIR_OP_ASSERT:
        return convert_fixed(o, 0, convert_elem(l, o->exprs[0]->span, o->fixed[0], TIR_BOOL));
    default:
        break;
    }
    switch (o->info->rule) {
    case TIR_RULE_SAME:
    case TIR_RULE_COMPARE:
        return unify_fixed(l, o, 0, o->info->fixed_count);
    case TIR_RULE_SELECT:
        return convert_select(l, o);
    default:
        return convert_plain(l, o);
    }
}

// Attributes.

static void suggest_word(struct lower *l, struct tir_span span, enum tir_attr_key key,
                         const char *name)
{
    struct tir_nearest nearest = tir_nearest_to(tir_str_of(name ? name : ""), 2);
    for (int w = 0; w < TIR_WORD_COUNT; w++)
        if (tir_words[w].key == key)
            tir_nearest_try(&nearest, tir_str_of(tir_words[w].name));
    if (nearest.name.ptr)
        tir_fix_at(&l->cx->diags, span, nearest.name.ptr, "the nearest name");
}

bool lower_attr_word(struct lower *l, const struct call *c, enum tir_attr_key key,
                     const struct ast_expr *e, enum tir_word *out)
{
    const char *name = e->kind == AST_NAME ? e->name : NULL;
    if (e->kind == AST_TYPE && e->type->elem != TIR_NONE && !e->type->dims.len)
        name = tir_elems[e->type->elem].name;
    *out = name ? tir_word_by_name(key, tir_str_of(name)) : TIR_WORD_NONE;
    if (*out == TIR_WORD_NONE) {
        lower_error(l, e->span, TIR_E_ARGUMENTS, "not a value of attribute `%s` of `%s`",
                    tir_attr_infos[key].name, c->name);
        suggest_word(l, e->span, key, name);
    }
    return *out != TIR_WORD_NONE;
}

bool lower_int_list(struct lower *l, const struct ast_expr *e, int64_t list[TIR_MAX_ITERS],
                    uint32_t *count)
{
    if (e->kind != AST_LIST || e->items.len > TIR_MAX_ITERS) {
        lower_error(l, e->span, TIR_E_ARGUMENTS, "expected a list such as [1, 0]");
        return false;
    }
    for (uint32_t i = 0; i < e->items.len; i++)
        if (!const_int(l, e->items.at[i], "an item of the list", &list[i]))
            return false;
    *count = e->items.len;
    return true;
}

static bool attr_list(struct lower *l, struct tir_inst *inst, enum tir_attr_key key,
                      const struct ast_expr *e)
{
    int64_t list[TIR_MAX_ITERS];
    uint32_t count;
    if (!lower_int_list(l, e, list, &count))
        return false;
    tir_set_list(l->f, inst, key, list, count);
    return true;
}

static bool check_range(struct lower *l, const struct op_call *o, const struct tir_attr *attr,
                        const struct ast_expr *e)
{
    const tir_str range = tir_attr_range(l->arena, attr->key);
    if (!range.len || tir_attr_allows_integers(attr))
        return true; // or the verifier says it
    lower_error(l, e->span, TIR_E_ARGUMENTS, "`%s` of `%s` is " STR_FMT ", not %lld",
                tir_attr_infos[attr->key].name, o->c->name, STR_ARG(range),
                (long long)attr->number);
    return false;
}

static bool set_attr(struct lower *l, struct op_call *o, struct tir_inst *inst,
                     enum tir_attr_key key, const struct ast_expr *e)
{
    int64_t number;
    enum tir_word word;
    struct val v;
    switch (tir_attr_infos[key].kind) {
    case TIR_ATTR_INT:
        if (!const_int(l, e, tir_attr_infos[key].name, &number))
            return false;
        tir_set_int(l->f, inst, key, number);
        return check_range(l, o, tir_attr_find(inst, key), e);
    case TIR_ATTR_WORD:
        if (!lower_attr_word(l, o->c, key, e, &word))
            return false;
        tir_set_word(l->f, inst, key, word);
        return true;
    case TIR_ATTR_LIST:
        return attr_list(l, inst, key, e);
    case TIR_ATTR_TEXT:
        v = lower_expr(l, e);
        if (v.kind == VAL_TEXT)
            tir_set_text(l->f, inst, key, v.text);
        else if (v.kind != VAL_POISON)
            lower_error(l, e->span, TIR_E_ARGUMENTS, "`%s` is a string", tir_attr_infos[key].name);
        return v.kind == VAL_TEXT;
    }
    tir_unreachable();
}

static bool has_optional(const struct tir_op_info *info)
{
    for (uint32_t i = 0; i < info->operand_count; i++)
        if (info->operands[i].kind == TIR_OPERAND_OPT)
            return true;
    return false;
}

static bool set_attrs(struct lower *l, struct op_call *o, struct tir_inst *inst)
{
    for (uint32_t i = 0; i < o->info->attr_count; i++) {
        enum tir_attr_key key = o->info->attrs[i].key;
        const struct ast_arg *arg = call_named(o->c, tir_attr_infos[key].name);
        const struct ast_expr *e = arg ? arg->value : NULL;
        const bool has_place = o->info->attrs[i].required || !has_optional(o->info) || l->is_ir;
        if (!e && has_place && (e = call_arg(o->c, o->next)))
            o->next++;
        if (e ? !set_attr(l, o, inst, key, e) : false)
            return false;
        if (!e && o->info->attrs[i].required && key != TIR_ATTR_box) {
            lower_error(l, o->c->e->span, TIR_E_ARGUMENTS, "`%s` needs `%s = ...`: %s",
                        o->info->name, tir_attr_infos[key].name, tir_attr_infos[key].meaning);
            return false;
        }
    }
    return o->next >= o->c->positional || wrong_count(l, o);
}

static bool check_names(struct lower *l, struct op_call *o)
{
    struct name_list names = {.owner = o->info->name, .what = "operand or attribute"};
    for (uint32_t i = 0; i < o->info->operand_count; i++)
        if (o->info->operands[i].kind == TIR_OPERAND_OPT)
            vec_push(l->arena, &names.names, o->info->operands[i].name);
    for (uint32_t i = 0; i < o->info->attr_count; i++)
        vec_push(l->arena, &names.names, tir_attr_infos[o->info->attrs[i].key].name);
    if (o->op == TIR_OP_LOAD && !l->is_ir)
        lower_pixel_names(l, &names);
    return lower_check_names(l, &o->c->e->args, &names);
}

// The instruction.

static struct tir_inst *build_op(struct lower *l, struct op_call *o)
{
    uint32_t fixed = o->info->fixed_count, n = 0;
    uint32_t rank = o->info->has_ref ? o->slice.base->type->rank + 1 : 0;
    struct tir_value **operands =
        arena_array(l->arena, struct tir_value *, fixed + rank + o->list.len + 1);
    for (uint32_t i = 0; i < fixed; i++)
        operands[n++] = o->fixed[i].kind == VAL_IR ? o->fixed[i].ir : NULL;
    if (o->info->has_ref) {
        operands[n++] = o->slice.base;
        for (uint32_t d = 0; d + 1 < rank; d++)
            operands[n++] = o->slice.indices[d];
    }
    for (uint32_t i = 0; i < o->list.len; i++)
        operands[n++] = o->list.at[i];
    uint32_t results = o->info->result_count;
    if (o->info->rule == TIR_RULE_COMBINE)
        results = 1 + o->list.len;
    else if (results == TIR_MANY)
        results = o->c->stated_count;
    const struct tir_type **types = arena_array(l->arena, const struct tir_type *, results);
    for (uint32_t i = 0; i < results; i++)
        types[i] =
            i < o->c->stated_count ? o->c->stated[i] : tir_type_scalar(l->cx->types, TIR_I32);
    uint32_t regions = o->c->e->region || o->op == TIR_OP_PUT || o->op == TIR_OP_GET ? 1 : 0;
    struct tir_inst *inst = tir_build(&l->b, o->op, operands, n, types, results, regions);
    if (o->info->has_ref)
        tir_set_list(l->f, inst, TIR_ATTR_box, o->slice.box, rank - 1);
    return inst;
}

// The mask of a slice whose size is known at run time.
static bool add_limits(struct lower *l, struct op_call *o)
{
    if (!o->info->has_ref || !lower_is_limited(&o->slice))
        return true;
    if (o->op != TIR_OP_LOAD && o->op != TIR_OP_STORE && o->op != TIR_OP_ATOMIC) {
        lower_error(l, o->slice.span, TIR_E_SLICE, "`%s` takes a slice of compile-time size",
                    o->info->name);
        return false;
    }
    struct val *mask = &o->fixed[o->op == TIR_OP_LOAD ? TIR_LOAD_MASK : TIR_STORE_MASK];
    *mask = val_ir(lower_limits(l, &o->slice, mask->kind == VAL_IR ? mask->ir : NULL));
    return true;
}

static enum tir_diag_code code_of(enum tir_op op)
{
    return op == TIR_OP_REDUCE || op == TIR_OP_SCAN || op == TIR_OP_IOTA ? TIR_E_AXIS : TIR_E_TYPE;
}

static bool infer(struct lower *l, struct op_call *o, struct tir_inst *inst)
{
    tir_str why = STR("");
    const struct tir_type *stated = o->c->stated_count ? o->c->stated[0] : NULL;
    const struct tir_type *type = tir_infer(l->m, inst, stated, &why);
    if (!type) {
        lower_error(l, o->c->e->span, code_of(o->op), "`%s`: " STR_FMT, o->c->name, STR_ARG(why));
        return false;
    }
    if (inst->result_count == 1)
        inst->results[0]->type = type;
    for (uint32_t i = 0; o->info->rule == TIR_RULE_COMBINE && i < inst->result_count; i++) {
        stated = i < o->c->stated_count ? o->c->stated[i] : NULL;
        inst->results[i]->type = tir_infer_result(l->m, inst, i, stated, &why);
    }
    return inst->result_count == 0 || lower_tile_fits(l, o->c->e->span, inst->results[0]->type);
}

static bool check_region(struct lower *l, struct op_call *o, struct tir_inst *inst)
{
    struct ast_fn *region = o->c->e->region;
    if (o->op == TIR_OP_PUT || o->op == TIR_OP_GET)
        return lower_slot_region(l, inst, o->c->e->span, region);
    bool reduces = o->op == TIR_OP_REDUCE || o->op == TIR_OP_SCAN;
    bool user = reduces && tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE) == TIR_WORD_kind_user;
    if (user == (region != NULL))
        return !region || lower_reduce_region(l, inst, o->c->e->span, region, true);
    lower_error(l, o->c->e->span, TIR_E_ARGUMENTS,
                "`kind = user` and a block `with (a, b) { ... }` go together");
    return false;
}

// A copy by an engine completes at its mbarrier, or fills the slot of the put that it stands in.
static bool check_completion(struct lower *l, const struct op_call *o, const struct tir_inst *inst)
{
    const struct tir_inst *around = inst->block->owner;
    while (around && around->op != TIR_OP_PUT)
        around = around->block->owner;
    if (l->is_ir || around || tir_done_of(inst) != TIR_DONE_RING)
        return true;
    lower_error(l, o->c->e->span, TIR_E_ROLE,
                "outside of `put`, a copy by engine %s says where it completes: `mbar = ...`",
                tir_words[tir_attr_word(inst, TIR_ATTR_engine, TIR_WORD_NONE)].name);
    return false;
}

static bool check_cache(struct lower *l, const struct op_call *o, const struct tir_inst *inst)
{
    struct tir_value *base = o->slice.base;
    if (l->is_ir || !tir_attr_find(inst, TIR_ATTR_cache) || base->type->space == TIR_SPACE_GLOBAL)
        return true;
    lower_error(l, o->c->e->span, TIR_E_ARGUMENTS, "`cache` is for tensors, and %s is %s",
                base->name ? base->name : "this", lower_val_name(l, val_ir(base)));
    return false;
}

// A product of rank 3: a product of each pair of matrices, joined.
static bool lower_batched(struct lower *l, const struct op_call *o, val_list *out)
{
    struct tir_value *sums[LOWER_MAX_BATCH];
    const uint32_t count = (uint32_t)o->fixed[TIR_DOT_ACC].ir->type->shape[0];
    for (uint32_t i = 0; i < count; i++) {
        struct op_call one = *o;
        for (uint32_t j = 0; j <= TIR_DOT_ACC; j++)
            one.fixed[j] = val_ir(batch_matrix(l, o->fixed[j].ir, i));
        struct tir_inst *inst = build_op(l, &one);
        if (!set_attrs(l, &one, inst) || !infer(l, &one, inst)) {
            tir_remove(inst);
            return false;
        }
        sums[i] = tir_result(inst);
    }
    vec_push(l->arena, out, val_ir(batch_join(l, sums, count)));
    return true;
}

// copy_async(D[...], buffer) to a tensor
static bool copies_out(struct lower *l, const struct call *c)
{
    const struct ast_expr *to = call_arg(c, 0);
    if (!to || !lower_is_buffer_expr(l, to))
        return false;
    const struct ast_expr *name = to->kind == AST_INDEX ? to->base : to;
    return scope_find(l, name->name)->val.ir->type->space == TIR_SPACE_GLOBAL;
}

bool lower_op_call(struct lower *l, struct call *c, enum tir_op op, val_list *out)
{
    if (op == TIR_OP_COPY_ASYNC && call_arg(c, 0) && lower_is_tmem(l, call_arg(c, 0)))
        return lower_copy_tmem(l, c);
    if (op == TIR_OP_COPY_ASYNC && copies_out(l, c))
        op = TIR_OP_STORE_ASYNC;
    if (op == TIR_OP_STORE && call_named(c, "mbar"))
        op = TIR_OP_PUSH;
    if (op == TIR_OP_ALIAS && !l->is_ir)
        return lower_alias(l, c, out);
    if (op == TIR_OP_REMOTE && !l->f->cluster[0]) {
        lower_error(l, c->e->span, TIR_E_ROLE,
                    "`remote` is about another CTA of a cluster, and %s has none: `cluster(2)`",
                    l->f->name);
        return false;
    }
    struct op_call o = {.c = c, .op = op, .info = &tir_ops[op]};
    for (uint32_t i = 0; i < MAX_FIXED; i++)
        o.fixed[i] = (struct val){VAL_VOID, {0}};
    if (!check_names(l, &o) || !lower_positional(l, &o))
        return false;
    if (op == TIR_OP_LOAD && !l->is_ir && !lower_pixels(l, c, &o.slice))
        return false;
    if (!lower_optional(l, &o))
        return false;
    struct val v;
    bool evaluates = !c->stated_count && !l->in_host && !l->is_ir;
    if (evaluates && const_call(l, c->e->span, op, o.fixed, o.info->fixed_count, &v)) {
        vec_push(l->arena, out, v);
        return v.kind != VAL_POISON;
    }
    if (!convert_operands(l, &o))
        return false;
    if (!add_limits(l, &o))
        return false;
    if (op == TIR_OP_DOT && o.fixed[TIR_DOT_ACC].ir->type->rank == 3)
        return lower_batched(l, &o, out);
    for (uint32_t i = TIR_DOT_A; op == TIR_OP_DOT && i <= TIR_DOT_B; i++)
        o.fixed[i].ir = build_loaded_factor(l, o.fixed[i].ir);
    struct tir_inst *inst = build_op(l, &o);
    if (!set_attrs(l, &o, inst) || !infer(l, &o, inst) || !check_region(l, &o, inst) ||
        !check_completion(l, &o, inst) || !check_cache(l, &o, inst)) {
        tir_remove(inst);
        return false;
    }
    for (uint32_t i = 0; i < inst->result_count; i++) {
        struct tir_value *r = inst->results[i];
        if (op == TIR_OP_LOAD || op == TIR_OP_ATOMIC)
            if (o.slice.shown != o.slice.type)
                r = build_reshape(l, r, o.slice.shown->rank, o.slice.shown->shape);
        vec_push(l->arena, out, val_ir(r));
    }
    if (op == TIR_OP_WHERE && !c->stated_count && !l->is_ir)
        convert_note_literal(l, inst->results[0], o.choices[0], o.choices[1]);
    return true;
}
