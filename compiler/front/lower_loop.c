// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statements with blocks: loops and branches, and how assigned variables pass through them.
//
// An instruction with blocks carries two kinds of values: those the text names (`carry (...)`,
// `yield`), then the outer variables its blocks assign. break and continue clear flags, which are
// carried like variables: `live` guards the rest of the iteration, `go_on` the iterations to come.
#include "front/lower.h"

struct flow {
    const struct ast_stmt *s;
    symbol_list vars;              // assigned inside
    uint32_t carried;              // values the text names, before them
    const struct tir_type **types; // of all
    struct tir_value **values;     // initial values, later what a block yields
    uint32_t count;
};

static struct symbol *flag_new(struct lower *l, const char *name)
{
    struct symbol *s = arena_new(l->arena, struct symbol);
    s->name = tir_intern_cstr(&l->cx->names, name);
    s->assignable = true;
    s->level = l->level;
    s->val = val_ir(tir_const_bool(l->f, true));
    s->type = s->val.ir->type;
    return s;
}

static void flow_room(struct lower *l, struct flow *f)
{
    f->count = f->carried + f->vars.len;
    f->types = arena_array(l->arena, const struct tir_type *, f->count);
    f->values = arena_array(l->arena, struct tir_value *, f->count);
    for (uint32_t i = 0; i < f->vars.len; i++) {
        f->types[f->carried + i] = f->vars.at[i]->type;
        f->values[f->carried + i] = f->vars.at[i]->val.ir;
    }
}

// Variables whose declaration went wrong are not carried: they are poison everywhere.
static void drop_poison(struct flow *f)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->vars.len; i++)
        if (f->vars.at[i]->val.kind == VAL_IR)
            f->vars.at[kept++] = f->vars.at[i];
    f->vars.len = kept;
}

static bool flow_carry(struct lower *l, struct flow *f)
{
    bool ok = true;
    for (uint32_t i = 0; i < f->carried; i++) {
        const struct ast_binding *b = &f->s->carry.at[i];
        if (!b->value) {
            lower_error(l, b->span, TIR_E_SYNTAX, "a carried value needs its first value: `= ...`");
            return false;
        }
        const struct tir_type *type = b->type ? lower_type(l, b->type) : NULL;
        struct val v = lower_expr(l, b->value);
        f->values[i] = type       ? convert_to(l, b->value->span, v, type)
                       : !b->type ? convert_default(l, b->value->span, v)
                                  : NULL;
        ok &= f->values[i] != NULL;
        f->types[i] = type ? type : ok ? f->values[i]->type : NULL;
    }
    return ok;
}

// Blocks.

struct region {
    struct tir_builder outer;
    struct symbol *scope;
    struct tir_value **saved; // what the variables were outside
};

static struct region region_enter(struct lower *l, struct flow *f, struct tir_block *block)
{
    struct region r = {l->b, scope_enter(l), NULL};
    r.saved = arena_array(l->arena, struct tir_value *, f->vars.len);
    for (uint32_t i = 0; i < f->vars.len; i++)
        r.saved[i] = f->vars.at[i]->val.ir;
    struct tir_span span = l->b.span;
    l->b = tir_builder_at_end(l->f, block);
    l->b.span = span;
    return r;
}

// Arguments for the carried values and variables, which stand for them inside.
static void region_args(struct lower *l, struct flow *f, struct tir_block *block)
{
    for (uint32_t i = 0; i < f->count; i++) {
        bool is_var = i >= f->carried;
        const struct ast_binding *b = is_var ? NULL : &f->s->carry.at[i];
        const char *name = is_var ? f->vars.at[i - f->carried]->name : b->name;
        struct tir_value *arg = tir_block_add_arg(l->f, block, f->types[i], name);
        if (is_var)
            f->vars.at[i - f->carried]->val = val_ir(arg);
        else
            scope_declare(l, b->name, b->span, val_ir(arg));
    }
}

// Ends the block with the values in f->values (the named ones) and the variables.
static void region_leave(struct lower *l, struct flow *f, struct region *r, bool yield)
{
    for (uint32_t i = 0; i < f->vars.len; i++) {
        f->values[f->carried + i] = f->vars.at[i]->val.ir;
        f->vars.at[i]->val = val_ir(r->saved[i]);
    }
    if (yield)
        tir_build_yield(&l->b, f->values, f->count);
    scope_leave(l, r->scope);
    l->b = r->outer;
}

// After the instruction: its results are what the names and variables stand for.
static void flow_results(struct lower *l, struct flow *f, struct tir_inst *inst)
{
    const ast_bindings *names = &f->s->names;
    if (names->len != f->carried)
        lower_error(l, f->s->span, TIR_E_ARGUMENTS, "%u names for %u carried values", names->len,
                    f->carried);
    for (uint32_t i = 0; i < f->carried && i < names->len; i++) {
        const struct ast_binding *b = &names->at[i];
        const struct tir_type *type = b->type ? lower_type(l, b->type) : NULL;
        if (type && type != f->types[i])
            lower_error(l, b->span, TIR_E_TYPE, "`%s` is %s, but the loop carries %s", b->name,
                        lower_type_name(l, type), lower_type_name(l, f->types[i]));
        if (!inst->results[i]->name)
            inst->results[i]->name = b->name;
        scope_declare(l, b->name, b->span, val_ir(inst->results[i]));
    }
    for (uint32_t i = 0; i < f->vars.len; i++)
        lower_assign(l, f->vars.at[i], inst->results[f->carried + i]);
}

static void flow_failed(struct lower *l, const struct ast_stmt *s)
{
    vec_foreach(const struct ast_binding, it, &s->names)
        scope_declare(l, it->name, it->span, val_poison());
}

// Options.

const struct ast_arg *loop_option(const struct ast_stmt *s, const char *name)
{
    vec_foreach(const struct ast_arg, it, &s->options)
        if (strcmp(it->name, name) == 0)
            return it;
    return NULL;
}

bool loop_check_options(struct lower *l, const struct ast_stmt *s, const char *const *known,
                        uint32_t count)
{
    vec_foreach(const struct ast_arg, it, &s->options) {
        bool found = false;
        for (uint32_t i = 0; i < count; i++)
            found |= strcmp(known[i], it->name) == 0;
        if (!found) {
            lower_error(l, it->span, TIR_E_ARGUMENTS, "the loop has no option `%.64s`", it->name);
            return false;
        }
    }
    return true;
}

bool loop_option_int(struct lower *l, const struct ast_stmt *s, const char *name, int64_t *out)
{
    const struct ast_arg *option = loop_option(s, name);
    if (!option || !option->value)
        return true;
    if (!const_int(l, option->value, name, out))
        return false;
    if (*out >= 1 && *out <= INT32_MAX)
        return true;
    lower_error(l, option->span, TIR_E_ARGUMENTS, "`%s` must be at least 1, not %lld", name,
                (long long)*out);
    return false;
}

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
    if (ok && exprs[STEP] && range[STEP].kind == VAL_INT && range[STEP].i < 1) {
        lower_error(l, exprs[STEP]->span, TIR_E_ARGUMENTS, "a step must be at least 1, not %lld",
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
    if (range[BEGIN] >= range[END])
        uses_in(l, s->body, 0);
    if (leaves)
        loop.go_on = flag_new(l, "go_on");
    for (int64_t i = range[BEGIN]; i < range[END] && !l->stopped;) {
        int64_t go_on = 1;
        if (leaves) {
            loop.live = flag_new(l, "live");
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
    if (!tir_sub_checked(range[END], range[BEGIN], &span))
        span = INT64_MAX;
    if (span > 0 && (span - 1) / range[STEP] >= MAX_UNROLL) {
        lower_error(l, s->head, TIR_E_UNROLL, "unrolled %lld times; the limit is %d",
                    (long long)((span - 1) / range[STEP]) + 1, MAX_UNROLL);
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

static void set_for_options(struct lower *l, const struct ast_stmt *s, struct tir_inst *inst)
{
    int64_t stages = 0, unroll = 0;
    if (loop_option_int(l, s, "stages", &stages) && stages)
        tir_set_int(l->f, inst, TIR_ATTR_stages, stages);
    if (loop_option_int(l, s, "unroll", &unroll) && unroll)
        tir_set_int(l->f, inst, TIR_ATTR_unroll, unroll);
}

// A loop without break.
static void lower_counted(struct lower *l, struct flow *f, struct val range[3])
{
    const struct ast_stmt *s = f->s;
    struct tir_value **operands = arena_array(l->arena, struct tir_value *, 3 + f->count);
    for (uint32_t i = 0; i < 3; i++)
        operands[i] = range[i].ir;
    for (uint32_t i = 0; i < f->count; i++)
        operands[3 + i] = f->values[i];
    struct tir_inst *inst =
        tir_build(&l->b, TIR_OP_FOR, operands, 3 + f->count, f->types, f->count, 1);
    set_for_options(l, s, inst);
    struct region r = region_enter(l, f, inst->regions[0]);
    const struct ast_binding *var = &s->vars.at[0];
    struct tir_value *index =
        tir_block_add_arg(l->f, inst->regions[0], range[0].ir->type, var->name);
    scope_declare(l, var->name, var->span, val_ir(index));
    region_args(l, f, inst->regions[0]);
    if (block_may_leave(s->body) && !f->carried)
        l->loop->live = flag_new(l, "live");
    bool ok = lower_yielding(l, s->body, s->head, f->types, f->carried, f->values);
    region_leave(l, f, &r, ok);
    flow_results(l, f, inst);
}

// while (cond && go_on) over the flow's values. index, go_on: variables of the flow, or NULL.
struct while_parts {
    struct symbol *index, *go_on;
    struct tir_value *end, *step; // of index
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
        lower_error(l, f->s->value->span, TIR_E_TYPE, "a condition is one bool, not %s",
                    lower_type_name(l, cond->type));
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
    if (p->index) {
        const struct ast_binding *var = &s->vars.at[0];
        scope_declare(l, var->name, var->span, p->index->val);
    }
    if (block_may_leave(body) && !f->carried)
        l->loop->live = flag_new(l, "live");
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
static void lower_breaking(struct lower *l, struct flow *f, struct val range[3])
{
    struct symbol *index = flag_new(l, f->s->vars.at[0].name);
    index->val = range[BEGIN];
    index->type = range[BEGIN].ir->type;
    struct while_parts p = {index, l->loop->go_on, range[END].ir, range[STEP].ir};
    add_var(l, f, index);
    add_var(l, f, l->loop->go_on);
    flow_room(l, f);
    build_while(l, f, &p);
}

void lower_for(struct lower *l, const struct ast_stmt *s)
{
    static const char *const known[] = {"stages", "unroll"};
    if (!loop_check_options(l, s, known, 2))
        return;
    if (s->vars.len != 1) {
        lower_error(l, s->head, TIR_E_ARGUMENTS, "a `range` has one variable, not %u", s->vars.len);
        return;
    }
    const struct ast_arg *unroll = loop_option(s, "unroll");
    if (unroll && !unroll->value) {
        lower_unrolled(l, s);
        return;
    }
    struct flow f = {.s = s, .carried = s->carry.len};
    struct val range[3];
    const struct ast_expr *exprs[3];
    struct loop loop = {.outer = l->loop};
    bool ok = range_values(l, s, range, exprs) && unify_range(l, s, range, exprs);
    l->loop = &loop; // so that breaks in the body are not the outer loop's
    assigned_in(l, s->body, NULL, &f.vars);
    drop_poison(&f);
    bool breaks = has_break(s->body) && !f.carried;
    if (breaks)
        loop.go_on = flag_new(l, "go_on");
    flow_room(l, &f);
    l->loop = loop.outer;
    ok = ok && flow_carry(l, &f);
    l->loop = &loop;
    if (!ok)
        flow_failed(l, s);
    else if (breaks)
        lower_breaking(l, &f, range);
    else
        lower_counted(l, &f, range);
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
    drop_poison(&f);
    if (has_break(body) && !f.carried) {
        loop.go_on = p.go_on = flag_new(l, "go_on");
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
    drop_poison(&f);
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
        lower_error(l, s->value->span, TIR_E_TYPE, "a condition is one bool, not %s",
                    lower_type_name(l, cond->type));
        cond = NULL;
    }
    struct flow f = {.s = s};
    if (!cond || !if_results(l, s, &f)) {
        flow_failed(l, s);
        return;
    }
    assigned_in(l, s->body, s->other, &f.vars);
    drop_poison(&f);
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
