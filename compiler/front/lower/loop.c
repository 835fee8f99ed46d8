// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements with blocks: loops and branches, and how assigned variables pass through them.
//
// break and continue clear flags, which are carried like variables: `live` guards the rest of the
// iteration, `go_on` the iterations to come.
#include "front/lower/flow.h"

// for

enum { BEGIN, END, STEP, MAX_UNROLL = 1024 };

static bool range_values(struct lower *l, const struct ast_stmt *s, struct val range[3],
                         const struct ast_expr *exprs[3])
{
    uint32_t n = s->values.len;
    range[BEGIN] = val_int(0);
    range[STEP] = val_int(1);
    exprs[BEGIN] = exprs[STEP] = NULL;
    if (n < 1 || n > 3) {
        lower_error(l, s->head, TIR_E_ARGUMENTS,
                    "`range` takes an end, begin and end, or begin, end "
                    "and step");
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = n == 1 ? END : i;
        exprs[at] = s->values.at[i];
        range[at] = lower_expr(l, exprs[at]);
        ok &= range[at].kind != VAL_POISON;
    }
    if (ok && exprs[STEP] && range[STEP].kind == VAL_INT &&
        (range[STEP].i == 0 || range[STEP].i == INT64_MIN)) {
        lower_error(l, exprs[STEP]->span, TIR_E_ARGUMENTS, "a step cannot be %lld",
                    (long long)range[STEP].i);
        ok = false;
    }
    return ok;
}

static void unrolled_iterations(struct lower *l, const struct ast_stmt *s, const int64_t range[3])
{
    const struct ast_binding *var = &s->vars.at[0];
    struct loop loop = {.outer = l->loop};
    bool leaves = block_may_leave(s->body);
    bool down = range[STEP] < 0;
    if (down ? range[BEGIN] <= range[END] : range[BEGIN] >= range[END])
        uses_in(l, s->body, 0);
    if (leaves)
        loop.go_on = flow_flag(l, "go_on");
    for (int64_t i = range[BEGIN];
         (down ? i > range[END] : i < range[END]) && lower_enter(l, s->head);) {
        lower_leave(l); // a step of its own, even where it does nothing
        int64_t go_on = 1;
        if (leaves) {
            loop.live = flow_flag(l, "live");
            loop.live->val = loop.go_on->val;
            if (tir_is_const_int(loop.live->val.ir, &go_on) && !go_on)
                break;
        }
        l->loop = &loop;
        struct symbol *scope = scope_enter(l);
        scope_declare(l, var->name, var->span, val_int(i));
        int64_t known;
        if (leaves && !tir_is_const_int(loop.live->val.ir, &known))
            lower_guarded(l, s->body, 0, s->body->stmts.len);
        else
            lower_stmts(l, s->body, 0, s->body->stmts.len);
        scope_leave(l, scope);
        l->loop = loop.outer;
        if (!tir_add_checked(i, range[STEP], &i))
            break;
    }
}

static void lower_unrolled(struct lower *l, const struct ast_stmt *s)
{
    struct val v[3];
    const struct ast_expr *exprs[3];
    int64_t range[3], span;
    if (!range_values(l, s, v, exprs))
        return;
    for (int i = 0; i < 3; i++) {
        if (v[i].kind != VAL_INT) {
            lower_error(l, exprs[i]->span, TIR_E_CONSTANT,
                        "the range of an unrolled loop must be known at compile time, not %s",
                        lower_val_name(l, v[i]));
            return;
        }
        range[i] = v[i].i;
    }
    bool down = range[STEP] < 0;
    int64_t step = down ? -range[STEP] : range[STEP];
    if (!tir_sub_checked(range[down ? BEGIN : END], range[down ? END : BEGIN], &span))
        span = INT64_MAX;
    if (span > 0 && (span - 1) / step >= MAX_UNROLL) {
        lower_error(l, s->head, TIR_E_UNROLL, "unrolled %lld times; the limit is %d",
                    (long long)((span - 1) / step) + 1, MAX_UNROLL);
        return;
    }
    unrolled_iterations(l, s, range);
}

// The values of the range in one integer type.
static bool unify_range(struct lower *l, const struct ast_stmt *s, struct val v[3],
                        const struct ast_expr *exprs[3])
{
    const struct ast_binding *var = &s->vars.at[0];
    if (var->type) {
        const struct tir_type *type = lower_type(l, var->type);
        for (int i = 0; type && i < 3; i++) {
            v[i] = val_ir(convert_to(l, exprs[i] ? exprs[i]->span : s->head, v[i], type));
            if (v[i].kind == VAL_POISON)
                return false;
        }
        if (!type)
            return false;
    }
    struct unify u = {"`range`", s->head, TIR_CLASS_INT, TIR_I64, exprs};
    if (!convert_unify(l, &u, v, 3))
        return false;
    if (v[0].ir->type->rank == 0)
        return true;
    lower_error(l, s->head, TIR_E_TYPE, "a range of scalars is needed, not of %s",
                lower_type_name(l, v[0].ir->type));
    return false;
}

// A range that goes down is one that goes up from 0, and its variable what is left of `from`. NULL:
// it goes up.
static struct tir_value *turn_range(struct lower *l, struct val v[3], bool down)
{
    if (!down)
        return NULL;
    struct tir_value *from = v[BEGIN].ir;
    struct tir_value *last = tir_binary(&l->b, TIR_OP_MIN, from, v[END].ir);
    v[END] = val_ir(tir_binary(&l->b, TIR_OP_SUB, from, last));
    v[BEGIN] = val_ir(tir_const_int(l->f, from->type, 0));
    return from;
}

static void declare_index(struct lower *l, const struct ast_stmt *s, struct tir_value *index,
                          struct tir_value *from)
{
    const struct ast_binding *var = &s->vars.at[0];
    if (from)
        index = tir_binary(&l->b, TIR_OP_SUB, from, index);
    scope_declare(l, var->name, var->span, val_ir(index));
}

// A loop without break.
static void lower_counted(struct lower *l, struct flow *f, const struct options *o,
                          struct val range[3], struct tir_value *from)
{
    const struct ast_stmt *s = f->s;
    struct tir_value **operands = arena_array(l->arena, struct tir_value *, 3 + f->count);
    for (uint32_t i = 0; i < 3; i++)
        operands[i] = range[i].ir;
    for (uint32_t i = 0; i < f->count; i++)
        operands[3 + i] = f->values[i];
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_FOR, operands, 3 + f->count, f->types, f->count, 1);
    if (o->arg[AST_OPTION_FOR_stages])
        tir_set_int(l->f, inst, TIR_ATTR_stages, o->value[AST_OPTION_FOR_stages]);
    if (o->arg[AST_OPTION_FOR_turns])
        tir_set_int(l->f, inst, TIR_ATTR_turns, o->value[AST_OPTION_FOR_turns]);
    if (o->arg[AST_OPTION_FOR_unroll])
        tir_set_int(l->f, inst, TIR_ATTR_unroll, o->value[AST_OPTION_FOR_unroll]);
    struct region r = region_enter(l, f, inst->regions[0]);
    struct tir_value *index =
        tir_block_add_arg(l->f, inst->regions[0], range[0].ir->type, s->vars.at[0].name);
    declare_index(l, s, index, from);
    region_args(l, f, inst->regions[0]);
    if (block_may_leave(s->body) && !f->carried)
        l->loop->live = flow_flag(l, "live");
    bool ok = lower_yielding(l, s->body, s->head, f->types, f->carried, f->values);
    region_leave(l, f, &r, ok);
    flow_results(l, f, inst);
}

static void refuse_tile(struct lower *l, const struct ast_expr *e, const struct tir_value *cond)
{
    lower_error(l, e->span, TIR_E_TYPE, "a condition is one bool, not %s",
                lower_type_name(l, cond->type));
    lower_note(l, e->span, "`any(c)` and `all(c)` are; `where(c, x, y)` chooses each element");
}

// while (cond && go_on) over the flow's values. index, go_on: variables of the flow, or NULL.
struct while_parts {
    struct symbol *index, *go_on;
    struct tir_value *end, *step; // of index
    struct tir_value *from;       // see turn_range
};

static struct tir_value *while_condition(struct lower *l, struct flow *f,
                                         const struct while_parts *p)
{
    struct tir_value *cond = NULL;
    if (p->index)
        cond = tir_binary(&l->b, TIR_OP_LT, p->index->val.ir, p->end);
    else if (f->s->value)
        cond = convert_elem(l, f->s->value->span, lower_expr(l, f->s->value), TIR_BOOL);
    if (cond && cond->type->rank) {
        refuse_tile(l, f->s->value, cond);
        return NULL;
    }
    if (cond && p->go_on)
        cond = tir_binary(&l->b, TIR_OP_AND, p->go_on->val.ir, cond);
    return cond;
}

static void build_while(struct lower *l, struct flow *f, const struct while_parts *p)
{
    const struct ast_stmt *s = f->s;
    const struct tir_type *truth = tir_type_scalar(l->cx->types, TIR_BOOL);
    bool written = s->kind == AST_WHILE && s->explicit_carry; // with a block for the condition
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_WHILE, f->values, f->count, f->types, f->count, 2);
    struct region r = region_enter(l, f, inst->regions[0]);
    region_args(l, f, inst->regions[0]);
    struct tir_value *cond = NULL;
    if (written)
        lower_yielding(l, s->body, s->head, &truth, 1, &cond);
    else
        cond = while_condition(l, f, p);
    if (cond)
        tir_build_yield(&l->b, &cond, 1);
    region_leave(l, f, &r, false);

    const struct ast_block *body = written ? s->other : s->body;
    r = region_enter(l, f, inst->regions[1]);
    region_args(l, f, inst->regions[1]);
    struct symbol *scope = scope_enter(l);
    if (p->index)
        declare_index(l, s, p->index->val.ir, p->from);
    if (block_may_leave(body) && !f->carried)
        l->loop->live = flow_flag(l, "live");
    bool ok = lower_yielding(l, body, s->head, f->types, f->carried, f->values);
    scope_leave(l, scope);
    if (p->index) {
        struct tir_value *next = tir_binary(&l->b, TIR_OP_ADD, p->index->val.ir, p->step);
        p->index->val = val_ir(next);
    }
    region_leave(l, f, &r, ok);
    flow_results(l, f, inst);
}

static void add_var(struct lower *l, struct flow *f, struct symbol *s)
{
    vec_push(l->arena, &f->vars, s);
}

// A `for` with a break is a `while` that counts.
static void lower_breaking(struct lower *l, struct flow *f, struct val range[3],
                           struct tir_value *from)
{
    struct symbol *index = flow_flag(l, f->s->vars.at[0].name);
    index->val = range[BEGIN];
    index->type = range[BEGIN].ir->type;
    struct while_parts p = {index, l->loop->go_on, range[END].ir, range[STEP].ir, from};
    add_var(l, f, index);
    add_var(l, f, l->loop->go_on);
    flow_room(l, f);
    build_while(l, f, &p);
}

void lower_for(struct lower *l, const struct ast_stmt *s)
{
    struct options options;
    if (!lower_options(l, s, &options))
        return;
    if (s->vars.len != 1) {
        lower_error(l, s->head, TIR_E_ARGUMENTS, "a `range` has one variable, not %u", s->vars.len);
        return;
    }
    const struct ast_arg *unroll = options.arg[AST_OPTION_FOR_unroll];
    if (unroll && !unroll->value) {
        lower_unrolled(l, s);
        return;
    }
    struct flow f = {.s = s, .carried = s->carry.len};
    struct val range[3];
    const struct ast_expr *exprs[3];
    struct loop loop = {.outer = l->loop};
    bool ok = range_values(l, s, range, exprs);
    bool down = ok && range[STEP].kind == VAL_INT && range[STEP].i < 0;
    if (down)
        range[STEP].i = -range[STEP].i;
    ok = ok && unify_range(l, s, range, exprs);
    struct tir_value *from = ok ? turn_range(l, range, down) : NULL;
    l->loop = &loop; // so that breaks in the body are not the outer loop's
    assigned_in(l, s->body, NULL, &f.vars);
    flow_drop_poison(&f);
    bool breaks = has_break(s->body) && !f.carried;
    if (breaks)
        loop.go_on = flow_flag(l, "go_on");
    flow_room(l, &f);
    l->loop = loop.outer;
    ok = ok && flow_carry(l, &f);
    l->loop = &loop;
    if (!ok)
        flow_failed(l, s);
    else if (breaks)
        lower_breaking(l, &f, range, from);
    else
        lower_counted(l, &f, &options, range, from);
    l->loop = loop.outer;
}

void lower_while(struct lower *l, const struct ast_stmt *s)
{
    struct flow f = {.s = s, .carried = s->carry.len};
    struct while_parts p = {0};
    struct loop loop = {.outer = l->loop};
    const struct ast_block *body = s->explicit_carry ? s->other : s->body;
    l->loop = &loop;
    assigned_in(l, body, NULL, &f.vars);
    flow_drop_poison(&f);
    if (has_break(body) && !f.carried) {
        loop.go_on = p.go_on = flow_flag(l, "go_on");
        add_var(l, &f, p.go_on);
    }
    flow_room(l, &f);
    if (flow_carry(l, &f))
        build_while(l, &f, &p);
    else
        flow_failed(l, s);
    l->loop = loop.outer;
}

// if

static void lower_branch(struct lower *l, struct flow *f, struct tir_block *to,
                         const struct ast_block *from, uint32_t first, uint32_t end)
{
    struct region r = region_enter(l, f, to);
    bool ok = true;
    if (f->carried && from)
        ok = lower_yielding(l, from, f->s->head, f->types, f->carried, f->values);
    else if (from)
        lower_stmts(l, from, first, end);
    region_leave(l, f, &r, ok);
}

static struct tir_inst *build_if(struct lower *l, struct flow *f, struct tir_value *cond)
{
    flow_room(l, f);
    return tir_build(&l->b, TIR_OP_IF, &cond, 1, f->types, f->count, 2);
}

void lower_guarded(struct lower *l, const struct ast_block *block, uint32_t first, uint32_t end)
{
    if (first >= end)
        return;
    static const struct ast_stmt nothing;
    struct flow f = {.s = &nothing};
    assigned_from(l, block, first, &f.vars);
    flow_drop_poison(&f);
    struct tir_inst *inst = build_if(l, &f, l->loop->live->val.ir);
    lower_branch(l, &f, inst->regions[0], block, first, end);
    lower_branch(l, &f, inst->regions[1], NULL, 0, 0);
    flow_results(l, &f, inst);
}

// The results that `let x: T = if ...` names. False: reported.
static bool if_results(struct lower *l, const struct ast_stmt *s, struct flow *f)
{
    vec_foreach(const struct ast_binding, it, &s->names)
        if (!it->type) {
            lower_error(l, it->span, TIR_E_TYPE, "the result of an `if` needs a type: `%s: T`",
                        it->name);
            return false;
        }
    if (s->names.len && !s->other) {
        lower_error(l, s->head, TIR_E_SYNTAX, "an `if` that gives values needs an `else`");
        return false;
    }
    f->carried = s->names.len;
    return true;
}

static void lower_known_if(struct lower *l, const struct ast_stmt *s, bool cond)
{
    if (s->names.len) {
        lower_error(l, s->head, TIR_E_TYPE, "an `if` that gives values needs a run-time condition");
        flow_failed(l, s);
    } else {
        const struct ast_block *taken = cond ? s->body : s->other;
        uses_in(l, cond ? s->other : s->body, 0);
        if (taken)
            lower_block(l, taken);
    }
}

void lower_if(struct lower *l, const struct ast_stmt *s)
{
    struct val v = lower_expr(l, s->value);
    if (v.kind == VAL_BOOL && !l->is_ir) {
        lower_known_if(l, s, v.truth);
        return;
    }
    struct tir_value *cond = convert_elem(l, s->value->span, v, TIR_BOOL);
    if (cond && cond->type->rank) {
        refuse_tile(l, s->value, cond);
        cond = NULL;
    }
    struct flow f = {.s = s};
    if (!cond || !if_results(l, s, &f)) {
        flow_failed(l, s);
        return;
    }
    assigned_in(l, s->body, s->other, &f.vars);
    flow_drop_poison(&f);
    flow_room(l, &f);
    const struct tir_type **types = f.types;
    for (uint32_t i = 0; i < f.carried; i++) {
        types[i] = lower_type(l, s->names.at[i].type);
        if (!types[i]) {
            flow_failed(l, s);
            return;
        }
    }
    struct tir_inst *inst = tir_build(&l->b, TIR_OP_IF, &cond, 1, types, f.count, 2);
    lower_branch(l, &f, inst->regions[0], s->body, 0, s->body->stmts.len);
    lower_branch(l, &f, inst->regions[1], s->other, 0, s->other ? s->other->stmts.len : 0);
    flow_results(l, &f, inst);
}
