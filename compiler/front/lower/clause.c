// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The clauses of a kernel: what must hold at launch, the grid, and what IR text states.
#include "front/lower/lower.h"

#include "ir/follow.h"

enum { MAX_GRID = 3, MAX_THREADS = 1024 };

struct clauses {
    struct lower *l;
    value_list grid, conditions;
    const struct ast_clause *preferred; // or NULL
};

static bool one_int(struct lower *l, const struct ast_clause *c, int64_t least, int64_t most,
                    enum tir_diag_code code, int64_t *out)
{
    if (c->args.len != 1 || c->args.at[0].name) {
        lower_error(l, c->span, TIR_E_ARGUMENTS, "`%s(...)` takes one value", c->name);
        return false;
    }
    const struct ast_expr *e = c->args.at[0].value;
    if (!const_int(l, e, c->name, out))
        return false;
    if (*out >= least && *out <= most)
        return true;
    lower_error(l, e->span, code, "`%s` must be %lld to %lld, not %lld", c->name, (long long)least,
                (long long)most, (long long)*out);
    return false;
}

enum known { ALWAYS_FALSE, ALWAYS_TRUE, BY_LAUNCH };

// What a condition is whatever the launch.
static enum known known_as(const struct tir_value *v)
{
    const struct tir_inst *def = v->def;
    if (v->kind == TIR_VALUE_CONST)
        return v->constant.i ? ALWAYS_TRUE : ALWAYS_FALSE;
    if (!def || def->operand_count != 2 || def->operands[0]->type->elem != TIR_BOOL)
        return BY_LAUNCH;
    const enum known a = known_as(def->operands[0]), b = known_as(def->operands[1]);
    const bool both = a != BY_LAUNCH && b != BY_LAUNCH;
    switch (def->op) {
    case TIR_OP_AND:
        return a == ALWAYS_FALSE || b == ALWAYS_FALSE ? ALWAYS_FALSE
               : both                                 ? ALWAYS_TRUE
                                                      : BY_LAUNCH;
    case TIR_OP_OR:
        return a == ALWAYS_TRUE || b == ALWAYS_TRUE ? ALWAYS_TRUE : both ? ALWAYS_FALSE : BY_LAUNCH;
    case TIR_OP_EQ:
        return !both ? BY_LAUNCH : a == b ? ALWAYS_TRUE : ALWAYS_FALSE;
    case TIR_OP_NE:
        return !both ? BY_LAUNCH : a != b ? ALWAYS_TRUE : ALWAYS_FALSE;
    default:
        return BY_LAUNCH;
    }
}

// Both parts of `a && b` are conditions of their own, so that passes find what each says.
static void push_conditions(struct clauses *cl, struct tir_value *cond)
{
    if (!cl->l->is_ir && cond->def && cond->def->op == TIR_OP_AND) {
        push_conditions(cl, cond->def->operands[0]);
        push_conditions(cl, cond->def->operands[1]);
    } else {
        vec_push(cl->l->arena, &cl->conditions, cond);
    }
}

static void clause_where(struct clauses *cl, const struct ast_clause *c)
{
    struct lower *l = cl->l;
    const struct ast_expr *e = c->args.at[0].value;
    struct val v = lower_expr(l, e);
    struct tir_value *cond = v.kind == VAL_BOOL ? NULL : convert_elem(l, e->span, v, TIR_BOOL);
    const bool is_false = v.kind == VAL_BOOL ? !v.truth : cond && known_as(cond) == ALWAYS_FALSE;
    l->is_impossible |= is_false;
    if (is_false && !l->is_config)
        lower_error(l, e->span, TIR_E_STATIC_ASSERT, "this condition is false with these metas");
    if (cond)
        push_conditions(cl, cond);
}

static void clause_grid(struct clauses *cl, const struct ast_clause *c)
{
    struct lower *l = cl->l;
    if (cl->grid.len || c->args.len < 1 || c->args.len > MAX_GRID) {
        lower_error(l, c->span, TIR_E_GRID, "a kernel has one grid of 1 to %d sizes", MAX_GRID);
        return;
    }
    const struct tir_type *index = tir_type_scalar(l->cx->types, TIR_I64);
    vec_foreach(const struct ast_arg, it, &c->args) {
        struct val v = lower_expr(l, it->value);
        struct tir_value *size = convert_to(l, it->value->span, v, index);
        if (v.kind == VAL_INT && v.i < 0)
            lower_error(l, it->value->span, TIR_E_GRID, "a grid of %lld CTAs", (long long)v.i);
        vec_push(l->arena, &cl->grid, size);
    }
}

static void clause_threads(struct clauses *cl, const struct ast_clause *c)
{
    int64_t threads; // 0: as if there were no clause, for a meta of some configurations
    if (!one_int(cl->l, c, 0, MAX_THREADS, TIR_E_THREADS, &threads))
        return;
    if (threads % 32)
        lower_error(cl->l, c->args.at[0].value->span, TIR_E_THREADS,
                    "%lld threads are not a multiple of 32, the size of a warp",
                    (long long)threads);
    cl->l->f->threads = (uint32_t)threads;
}

static const char *word_of(const struct ast_arg *arg)
{
    return !arg->name && arg->value->kind == AST_NAME ? arg->value->name : "";
}

// The number of a word among names; `count`: none of them.
static uint32_t number_of(const char *word, const char *const *names, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && strcmp(names[i], word) != 0)
        i++;
    return i;
}

// form(async, after = pipeline): the pass runner knows the passes that this stands for.
static void clause_form(struct clauses *cl, const struct ast_clause *c)
{
    const struct ast_arg *after = c->args.len == 2 ? &c->args.at[1] : NULL;
    enum tir_form form = TIR_FORM_COUNT;
    if (c->args.len == 1 || after)
        form = tir_form_by_name(tir_str_of(word_of(&c->args.at[0])));
    bool names_pass =
        after && after->name && !strcmp(after->name, "after") && after->value->kind == AST_NAME;
    if (form == TIR_FORM_COUNT || (after && !names_pass))
        lower_error(cl->l, c->span, TIR_E_ARGUMENTS, "expected a form, and `after = PASS`");
    else
        cl->l->f->form = form;
    if (names_pass)
        cl->l->f->after = after->value->name;
}

static void clause_facts(struct clauses *cl, const struct ast_clause *c)
{
    vec_foreach(const struct ast_arg, it, &c->args) {
        const uint32_t i = number_of(word_of(it), tir_fact_names, TIR_FACT_COUNT);
        if (i < TIR_FACT_COUNT)
            cl->l->f->facts |= 1u << i;
        else
            lower_error(cl->l, it->span, TIR_E_ARGUMENTS,
                        "a fact is index32, vector16 or unit_inner");
    }
}

static struct tir_param *tensor_named(struct lower *l, const char *name)
{
    for (uint32_t i = 0; name && i < l->f->param_count; i++)
        if (l->f->params[i].name == name) // interned
            return l->f->params[i].value->type->space == TIR_SPACE_GLOBAL ? &l->f->params[i] : NULL;
    return NULL;
}

// What may be relied on of single tensors: all of a row, or where it begins.
static void set_alignments(struct lower *l, const struct ast_clause *c, bool begins)
{
    vec_foreach(const struct ast_arg, it, &c->args) {
        struct tir_param *param = tensor_named(l, it->name);
        int64_t bytes;
        if (!param)
            lower_error(l, it->span, TIR_E_ARGUMENTS, "expected TENSOR = BYTES");
        else if (const_int(l, it->value, "an alignment", &bytes)) {
            if (bytes >= 1 && bytes <= 32 && tir_is_pow2((uint64_t)bytes))
                *(begins ? &param->begins : &param->aligned) = (uint32_t)bytes;
            else
                lower_error(l, it->span, TIR_E_ARGUMENTS,
                            "an alignment is 1, 2, 4, 8, 16 or 32 bytes, not %lld",
                            (long long)bytes);
        }
    }
}

static void clause_aligned(struct clauses *cl, const struct ast_clause *c) // (A = 16, ...)
{
    set_alignments(cl->l, c, false);
}

static void clause_begins(struct clauses *cl, const struct ast_clause *c) // (A = 16, ...)
{
    set_alignments(cl->l, c, true);
}

// scratch(P, ...): tensors that are scratch tensors of the launch.
static void clause_scratch(struct clauses *cl, const struct ast_clause *c)
{
    struct lower *l = cl->l;
    vec_foreach(const struct ast_arg, it, &c->args) {
        bool is_name = !it->name && it->value->kind == AST_NAME;
        struct tir_param *param = tensor_named(l, is_name ? it->value->name : NULL);
        if (param)
            param->is_scratch = true;
        else
            lower_error(l, it->span, TIR_E_ARGUMENTS, "expected the name of a tensor");
    }
}

// step(first), step(last, beside): which launch of a sequence the kernel is, and how it overlaps
// the one before.
static void clause_step(struct clauses *cl, const struct ast_clause *c)
{
    const char *words[] = {"", tir_pace_names[TIR_PACE_ALONE]};
    for (uint32_t i = 0; i < c->args.len && c->args.len <= TIR_COUNT_OF(words); i++)
        words[i] = word_of(&c->args.at[i]);
    const uint32_t place = number_of(words[0], tir_step_names, TIR_STEP_COUNT);
    const uint32_t pace = number_of(words[1], tir_pace_names, TIR_PACE_COUNT);
    if (place == TIR_STEP_NONE || place == TIR_STEP_COUNT || pace == TIR_PACE_COUNT) {
        lower_error(cl->l, c->span, TIR_E_ARGUMENTS,
                    "a step is first, middle or last, and leads or runs beside another");
        return;
    }
    cl->l->f->step = (enum tir_step_place)place;
    cl->l->f->pace = (enum tir_step_pace)pace;
}

// meta(BM = 128, ...): what was bound when the IR was made.
static void clause_meta(struct clauses *cl, const struct ast_clause *c)
{
    struct lower *l = cl->l;
    l->f->metas = arena_array(l->arena, struct tir_meta, c->args.len);
    vec_foreach(const struct ast_arg, it, &c->args) {
        struct val v = lower_expr(l, it->value);
        if (v.kind == VAL_POISON)
            continue;
        if (!it->name || (!val_is_constant(v) && v.kind != VAL_ELEM))
            lower_error(l, it->span, TIR_E_ARGUMENTS, "expected NAME = VALUE");
        else
            l->f->metas[l->f->meta_count++] =
                (struct tir_meta){.name = it->name, .value = meta_text(l, v)};
    }
}

static void clause_shared(struct clauses *cl, const struct ast_clause *c)
{
    one_int(cl->l, c, 0, INT32_MAX, TIR_E_ARGUMENTS, &cl->l->f->shared_bytes);
}

static void clause_persistent(struct clauses *cl, const struct ast_clause *c)
{
    int64_t count;
    if (one_int(cl->l, c, 0, 64, TIR_E_ARGUMENTS, &count))
        cl->l->f->persistent = (uint32_t)count;
}

static void cluster_sizes(struct lower *l, const struct ast_clause *c, uint32_t out[MAX_GRID])
{
    if (c->args.len < 1 || c->args.len > MAX_GRID) {
        lower_error(l, c->span, TIR_E_GRID, "a cluster has 1 to %d sizes", MAX_GRID);
        return;
    }
    int64_t size[MAX_GRID] = {1, 1, 1}, ctas = 1;
    for (uint32_t i = 0; i < c->args.len; i++) {
        if (!const_int(l, c->args.at[i].value, "the size of a cluster", &size[i]))
            return;
        bool fits = size[i] >= 1 && tir_mul_checked(ctas, size[i], &ctas) && ctas <= MAX_CLUSTER;
        if (!fits) {
            lower_error(l, c->args.at[i].value->span, TIR_E_GRID, "a cluster has 1 to %d CTAs",
                        MAX_CLUSTER);
            return;
        }
    }
    for (uint32_t i = 0; i < MAX_GRID; i++)
        out[i] = (uint32_t)size[i];
}

static void clause_cluster(struct clauses *cl, const struct ast_clause *c)
{
    cluster_sizes(cl->l, c, cl->l->f->cluster);
}

static void clause_preferred(struct clauses *cl, const struct ast_clause *c)
{
    cl->preferred = c;
    cluster_sizes(cl->l, c, cl->l->f->preferred);
}

// What CUDA takes: so many clusters of the stated size along each axis, along z one. A tiles loop
// would number the clusters, of which there are two sizes.
static void check_preferred(const struct clauses *cl)
{
    const struct tir_func *f = cl->l->f;
    const uint32_t *size = f->cluster, *preferred = f->preferred;
    const struct tir_span span = cl->preferred->span;
    if (!size[0] || !cl->grid.len)
        lower_error(cl->l, span, TIR_E_GRID,
                    "`preferred(...)` stands beside `grid(...)` and the `cluster(...)` that it may "
                    "take the place of");
    else if (preferred[0] % size[0] || preferred[1] % size[1] || preferred[2] != size[2])
        lower_error(cl->l, span, TIR_E_GRID,
                    "preferred clusters of %u x %u x %u CTAs are not made of clusters of %u x %u x "
                    "%u, one along z",
                    preferred[0], preferred[1], preferred[2], size[0], size[1], size[2]);
}

// contract(off): a product in a sum is rounded by itself.
static void clause_contract(struct clauses *cl, const struct ast_clause *c)
{
    if (c->args.len != 1 || c->args.at[0].name || strcmp(word_of(&c->args.at[0]), "off") != 0)
        lower_error(cl->l, c->span, TIR_E_ARGUMENTS, "expected `contract(off)`");
    cl->l->rounds_products = true;
}

// config(META = VALUE, ...): the loader has bound them.
static void clause_config(struct clauses *cl, const struct ast_clause *c)
{
    (void)cl, (void)c;
}

static const struct {
    const char *name;
    bool of_ir;
    void (*handle)(struct clauses *cl, const struct ast_clause *c);
} clauses[] = {
#define CLAUSE(name, of_ir) {#name, of_ir, clause_##name},
#include "front/parse/clause.def"
};

static void lower_clause(struct clauses *cl, const struct ast_clause *c)
{
    if (c->kind < AST_CLAUSE_COUNT) {
        cl->l->is_ir |= clauses[c->kind].of_ir;
        clauses[c->kind].handle(cl, c);
        return;
    }
    struct name_list names = {.owner = "kernel", .what = "clause"};
    for (uint32_t i = 0; i < AST_CLAUSE_COUNT; i++)
        if (!clauses[i].of_ir)
            vec_push(cl->l->arena, &names.names, clauses[i].name);
    lower_unknown_name(cl->l, c->span, TIR_E_SYNTAX, c->name, &names);
}

// The runtime computes with integers before a launch.
static void check_host(struct lower *l)
{
    for (const struct tir_inst *inst = l->f->host->first; inst; inst = inst->next)
        for (uint32_t i = 0; i < inst->operand_count; i++) {
            const struct tir_type *t = inst->operands[i]->type;
            if (!tir_elem_is_float(t->elem))
                continue;
            lower_error(l, inst->span, TIR_E_GRID,
                        "`grid` and `where` are computed with integers; this takes %s",
                        lower_type_name(l, t));
            return;
        }
}

static void check_sizes(struct lower *l, struct tir_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (tir_expression_size(l->arena, values[i]) > TIR_MAX_EXPRESSION)
            lower_error(l, values[i]->def->span, TIR_E_GRID, TIR_EXPRESSION_TOO_LONG,
                        TIR_MAX_EXPRESSION);
}

bool lower_clauses(struct lower *l, const struct ast_kernel *k)
{
    struct clauses cl = {.l = l};
    uint32_t errors = l->cx->diags.error_count;
    struct tir_builder outer = l->b;
    l->b = tir_builder_at_end(l->f, l->f->host);
    l->in_host = true;
    struct symbol *scope = scope_enter(l);
    lower_sized_dims(l, &cl.conditions);
    for (int others = 0; others < 2; others++) // they may make no sense where a condition is false
        vec_foreach(const struct ast_clause, it, &k->clauses)
            if ((it->kind != AST_CLAUSE_where) == others && !lower_is_left_out(l))
                lower_clause(&cl, it);
    scope_leave(l, scope);
    l->in_host = false;
    if (cl.preferred && l->f->preferred[0])
        check_preferred(&cl);
    check_host(l);
    check_sizes(l, cl.grid.at, cl.grid.len);
    check_sizes(l, cl.conditions.at, cl.conditions.len);
    bool ok = l->cx->diags.error_count == errors;
    if (ok) {
        l->f->grid_count = cl.grid.len;
        vec_foreach(struct tir_value *, it, &cl.conditions)
            vec_push(l->arena, &cl.grid, *it);
        tir_build_yield(&l->b, cl.grid.at, cl.grid.len);
    }
    l->b = outer;
    if (ok)
        lower_sized_dims(l, NULL);
    return ok;
}
