// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The explicit level: mbarriers, stage variables, and calls that assign accumulators.
#include "front/lower/builtin.h"

// mbarrier NAME[n] arrivals(m);

// One thread prepares all of them; then every thread of the CTA, or of the cluster, may use them.
static void prepare_barriers(struct lower *l)
{
    struct tir_value *tid =
        build_one(l, TIR_OP_TID, tir_type_scalar(l->cx->types, TIR_I32), NULL, 0);
    struct tir_value *first = tir_binary(&l->b, TIR_OP_EQ, tid, tir_const_i32(l->f, 0));
    struct tir_inst *branch = tir_build(&l->b, TIR_OP_IF, &first, 1, NULL, 0, 2);
    struct tir_builder outer = l->b;
    l->b = tir_builder_at_end(l->f, branch->regions[0]);
    l->b.span = outer.span;
    vec_foreach(struct barrier, it, &l->barriers) {
        struct tir_value *operands[] = {[TIR_BAR] = it->array, [TIR_BAR_AT] = NULL};
        struct tir_inst *init = tir_build(&l->b, TIR_OP_MBARRIER_INIT, operands, 2, NULL, 0, 0);
        tir_set_int(l->f, init, TIR_ATTR_arrivals, it->arrivals);
        init->span = it->array->def->span; // where messages point
    }
    struct tir_inst *fence = tir_build(&l->b, TIR_OP_FENCE, NULL, 0, NULL, 0, 0);
    tir_set_word(l->f, fence, TIR_ATTR_of, TIR_WORD_of_mbarrier_init);
    tir_build_yield(&l->b, NULL, 0);
    l->b = tir_builder_at_end(l->f, branch->regions[1]);
    tir_build_yield(&l->b, NULL, 0);
    l->b = outer;
    if (!l->f->cluster[0]) {
        tir_build(&l->b, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
        return;
    }
    tir_build(&l->b, TIR_OP_CLUSTER_ARRIVE, NULL, 0, NULL, 0, 0);
    tir_build(&l->b, TIR_OP_CLUSTER_WAIT, NULL, 0, NULL, 0, 0);
}

static bool barrier_numbers(struct lower *l, const struct ast_stmt *s, int64_t *count,
                            int64_t *arrivals)
{
    struct options o;
    *count = 1;
    if (l->b.block != l->f->body || l->calls) {
        lower_error(l, s->head, TIR_E_ROLE,
                    "mbarriers are declared at the top level of their kernel, which prepares them");
        return false;
    }
    if ((s->value && !const_int(l, s->value, "the number of mbarriers", count)) ||
        !lower_options(l, s, &o))
        return false;
    *arrivals = o.value[AST_OPTION_MBARRIER_arrivals];
    if (*count < 1 || *count > 1024 || !*arrivals) {
        lower_error(l, s->head, TIR_E_ROLE,
                    !*arrivals
                        ? "an mbarrier says how many arrivals complete a phase: `arrivals(n)`"
                        : "1 to 1024 mbarriers are possible");
        return false;
    }
    return true;
}

void lower_mbarrier(struct lower *l, const struct ast_stmt *s)
{
    const struct ast_binding *b = &s->names.at[0];
    int64_t count, arrivals;
    l->barriers_left -= l->barriers_left > 0;
    if (!barrier_numbers(l, s, &count, &arrivals)) {
        scope_declare(l, b->name, b->span, val_poison());
        return;
    }
    struct tir_type t = {.elem = TIR_MBARRIER, .space = TIR_SPACE_SHARED, .rank = 1};
    t.shape[0] = count;
    struct tir_value *array = build_one(l, TIR_OP_ALLOC, tir_type_get(l->cx->types, &t), NULL, 0);
    array->name = b->name;
    vec_push(l->arena, &l->barriers, ((struct barrier){array, arrivals}));
    struct tir_value *named = array;
    if (!s->value) {
        struct tir_value *operands[] = {array, tir_const_index(l->f, 0)};
        struct tir_type one = {.elem = TIR_MBARRIER, .space = TIR_SPACE_SHARED};
        const struct tir_type *type = tir_type_get(l->cx->types, &one);
        struct tir_inst *view = tir_build(&l->b, TIR_OP_VIEW, operands, 2, &type, 1, 0);
        tir_set_list(l->f, view, TIR_ATTR_box, (int64_t[]){0}, 1);
        named = tir_result(view);
    }
    scope_declare(l, b->name, b->span, val_ir(named))->may_be_unused = false;
    if (!l->barriers_left)
        prepare_barriers(l);
}

// var NAME: stage(n, phase = p);
//
// Two i32 variables: NAME, the slot, and NAME.phase, the parity to wait for.

const char *stage_phase_name(struct lower *l, const char *name)
{
    return tir_intern(&l->cx->names, tir_str_format(l->arena, "%s.phase", name));
}

static void declare_i32(struct lower *l, const char *name, struct tir_span span, int64_t value,
                        int64_t stages)
{
    struct symbol *s = scope_declare(l, name, span, val_poison());
    s->assignable = true;
    s->stages = stages;
    s->type = tir_type_scalar(l->cx->types, TIR_I32);
    s->val = val_ir(tir_const_int(l->f, s->type, value));
}

void lower_stage(struct lower *l, const struct ast_stmt *s)
{
    const struct ast_binding *b = &s->names.at[0];
    struct options o;
    int64_t stages;
    bool ok = s->names.len == 1 && lower_options(l, s, &o) &&
              const_int(l, s->value, "the number of stages", &stages);
    if (ok && (stages < 1 || stages > 1024)) {
        lower_error(l, s->value->span, TIR_E_ROLE, "there are 1 to 1024 stages, not %lld",
                    (long long)stages);
        ok = false;
    }
    if (!ok) {
        scope_declare(l, b->name, b->span, val_poison());
        return;
    }
    declare_i32(l, b->name, b->span, 0, stages);
    declare_i32(l, stage_phase_name(l, b->name), b->span, o.value[AST_OPTION_STAGE_phase], 0);
}

struct symbol *lower_stage_of(struct lower *l, const struct ast_expr *e)
{
    if (e->base->kind != AST_NAME)
        return NULL;
    struct symbol *s = scope_find(l, e->base->name);
    return s && s->stages ? s : NULL;
}

struct val lower_stage_field(struct lower *l, const struct ast_expr *e, struct symbol *symbol)
{
    symbol->used = true;
    if (strcmp(e->field, "index") == 0)
        return symbol->val;
    if (strcmp(e->field, "phase") == 0)
        return scope_find(l, stage_phase_name(l, symbol->name))->val;
    lower_error(l, e->span, TIR_E_NAME, "a stage has `index`, `phase` and `advance()`, not `%.64s`",
                e->field);
    return val_poison();
}

// The next slot; after the last one the first again, with the other parity.
bool lower_stage_call(struct lower *l, const struct ast_expr *e, struct symbol *symbol)
{
    struct symbol *phase = scope_find(l, stage_phase_name(l, symbol->name));
    if (strcmp(e->base->field, "advance") != 0 || e->args.len) {
        lower_error(l, e->span, TIR_E_ARGUMENTS, "a stage moves with `%s.advance()`", symbol->name);
        return false;
    }
    if (symbol->level != l->level) {
        lower_error(l, e->span, TIR_E_ASSIGN, "`%s` is outside of the role or tiles loop",
                    symbol->name);
        return false;
    }
    struct tir_value *last = tir_const_i32(l->f, (int32_t)symbol->stages - 1);
    struct tir_value *zero = tir_const_i32(l->f, 0), *one = tir_const_i32(l->f, 1);
    struct tir_value *wraps = tir_binary(&l->b, TIR_OP_EQ, symbol->val.ir, last);
    struct tir_value *next = tir_binary(&l->b, TIR_OP_ADD, symbol->val.ir, one);
    struct tir_value *flip = build_one(l, TIR_OP_CAST, symbol->type, &wraps, 1);
    struct tir_value *choices[] = {wraps, zero, next};
    lower_assign(l, symbol, build_one(l, TIR_OP_WHERE, symbol->type, choices, 3));
    lower_assign(l, phase, tir_binary(&l->b, TIR_OP_XOR, phase->val.ir, flip));
    return true;
}

// Calls that assign.

const char *assigned_by_call(struct lower *l, const struct ast_expr *e, uint32_t i)
{
    if (l->is_ir || e->base->kind != AST_NAME || i >= e->args.len || e->args.at[i].name ||
        e->args.at[i].value->kind != AST_NAME)
        return NULL;
    const struct builtin *b = builtin_find(e->base->name);
    const bool product = b && b->handler == builtin_gemm_async;
    if (product && lower_is_tmem(l, e->args.at[i].value))
        return NULL; // what is assigned is in memory
    if (!product && !(b && b->handler == builtin_await))
        return NULL;
    return product && i > 0 ? NULL : e->args.at[i].value->name;
}

// An accumulator: a variable that holds a tile.
static struct symbol *accumulator(struct lower *l, const struct call *c, uint32_t i)
{
    const struct ast_expr *e = call_arg(c, i);
    struct symbol *s = e->kind == AST_NAME ? scope_find(l, e->name) : NULL;
    if (e->kind == AST_NAME && !s) {
        scope_unknown(l, e->span, e->name);
        return NULL;
    }
    if (s && s->val.kind == VAL_POISON)
        return NULL;
    if (!s || !s->assignable || s->stages || !tir_type_is_tile(s->type)) {
        lower_error(l, e->span, TIR_E_ASSIGN, "`%s` assigns an accumulator: a `var` that is a tile",
                    c->name);
        return NULL;
    }
    if (s->level != l->level) {
        lower_error(l, e->span, TIR_E_ASSIGN, "`%s` is outside of the role or tiles loop", s->name);
        return NULL;
    }
    s->used = true;
    return s;
}

// gemm_async(acc, a, b): acc += a . b, in flight until an await
bool builtin_gemm_async(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    (void)out;
    if (call_arg(c, 0) && lower_is_tmem(l, call_arg(c, 0)))
        return lower_gemm_tmem(l, c);
    const struct ast_expr *accumulate = builtin_named(c, NAMED_accumulate);
    if (accumulate) {
        lower_error(l, accumulate->span, TIR_E_ARGUMENTS,
                    "`accumulate` is for sums in tensor memory; a `var` may begin with 0");
        return false;
    }
    if (c->positional > 3) {
        lower_error(l, call_arg(c, 3)->span, TIR_E_ARGUMENTS,
                    "products with scales have their sums in tensor memory");
        return false;
    }
    struct symbol *acc = accumulator(l, c, 0);
    if (!acc)
        return false;
    if (lower_threads(l) % 128) {
        lower_error(l, c->e->span, TIR_E_ROLE,
                    "`gemm_async` runs on whole warpgroups of 128 threads; here are %u",
                    lower_threads(l));
        return false;
    }
    if (!tir_wgmma_row_groups(acc->type->shape, TIR_MAX(lower_threads(l) / 32, 4))) {
        lower_error(l, c->e->span, TIR_E_DOT,
                    "`gemm_async` on %s: each 4 warps do 64 rows and 8 columns, or more of both",
                    lower_type_name(l, acc->type));
        return false;
    }
    struct tir_value *operands[3] = {[TIR_DOT_ACC] = acc->val.ir};
    for (uint32_t i = 0; i < 2; i++) {
        struct val v = lower_part(l, call_arg(c, i + 1));
        if (v.kind != VAL_IR) {
            if (v.kind != VAL_POISON)
                lower_error(l, call_arg(c, i + 1)->span, TIR_E_DOT, "`gemm_async` cannot take %s",
                            lower_val_name(l, v));
            return false;
        }
        operands[i] = v.ir;
    }
    if (operands[TIR_DOT_B]->type->space != TIR_SPACE_SHARED) {
        lower_error(l, call_arg(c, 2)->span, TIR_E_DOT,
                    "the second factor of `gemm_async` is a shared buffer, not %s",
                    lower_type_name(l, operands[TIR_DOT_B]->type));
        return false;
    }
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_GEMM_ASYNC, operands, 3, &acc->type, 1, 0);
    tir_str why = STR("");
    if (!tir_infer(l->m, inst, acc->type, &why)) {
        lower_error(l, c->e->span, TIR_E_DOT, "`gemm_async`: " STR_FMT, STR_ARG(why));
        tir_remove(inst);
        return false;
    }
    lower_assign(l, acc, tir_result(inst));
    return true;
}

// await(x, y, groups = n)
bool builtin_await(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    (void)out;
    const struct ast_expr *e = builtin_named(c, NAMED_groups);
    struct symbol *symbols[64];
    struct tir_value *values[64];
    const struct tir_type *types[64];
    int64_t groups = 0;
    if (e && !const_int(l, e, "groups", &groups))
        return false;
    for (uint32_t i = 0; i < c->positional; i++) {
        symbols[i] = accumulator(l, c, i);
        if (!symbols[i])
            return false;
        values[i] = symbols[i]->val.ir;
        types[i] = values[i]->type; // a constant's has no layout
    }
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_AWAIT, values, c->positional, types, c->positional, 0);
    tir_set_int(l->f, inst, TIR_ATTR_groups, groups);
    for (uint32_t i = 0; i < c->positional; i++)
        if (values[i]->kind != TIR_VALUE_CONST)
            lower_assign(l, symbols[i], inst->results[i]);
    return true;
}

// Short forms.

// expect_tx(bar, n): arrive(bar, bytes = n)
bool builtin_expect_tx(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    (void)out;
    int64_t bytes;
    const struct ast_expr *e = call_arg(c, 0);
    struct val bar = lower_part(l, e);
    if (bar.kind == VAL_POISON || !const_int(l, call_arg(c, 1), "the number of bytes", &bytes))
        return false;
    if (bar.kind != VAL_IR || bar.ir->type->elem != TIR_MBARRIER || bar.ir->type->rank) {
        lower_error(l, e->span, TIR_E_ROLE, "`expect_tx` is about one mbarrier, not %s",
                    lower_val_name(l, bar));
        return false;
    }
    struct tir_value *operands[] = {
        [TIR_BAR] = bar.ir, [TIR_BAR_AT] = NULL, [TIR_ARRIVE_CTA] = NULL};
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_ARRIVE, operands, 3, NULL, 0, 0);
    tir_set_int(l->f, inst, TIR_ATTR_bytes, bytes);
    return true;
}

bool builtin_cluster_sync(struct lower *l, struct call *c, int which, val_list *out)
{
    (void)which;
    (void)c;
    (void)out;
    tir_build(&l->b, TIR_OP_CLUSTER_ARRIVE, NULL, 0, NULL, 0, 0);
    tir_build(&l->b, TIR_OP_CLUSTER_WAIT, NULL, 0, NULL, 0, 0);
    return true;
}
