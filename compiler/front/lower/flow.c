// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How values pass through statements with blocks.
//
// An instruction with blocks carries two kinds of values: those the text names (`carry (...)`,
// `yield`), then the outer variables its blocks assign.
#include "front/lower/flow.h"

struct symbol *flow_flag(struct lower *l, const char *name)
{
    struct symbol *s = arena_new(l->arena, struct symbol);
    s->name = tir_intern_cstr(&l->cx->names, name);
    s->assignable = true;
    s->level = l->level;
    s->val = val_ir(tir_const_bool(l->f, true));
    s->type = s->val.ir->type;
    return s;
}

void flow_room(struct lower *l, struct flow *f)
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
void flow_drop_poison(struct flow *f)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->vars.len; i++)
        if (f->vars.at[i]->val.kind == VAL_IR)
            f->vars.at[kept++] = f->vars.at[i];
    f->vars.len = kept;
}

bool flow_carry(struct lower *l, struct flow *f)
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

struct region region_enter(struct lower *l, struct flow *f, struct tir_block *block)
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
void region_args(struct lower *l, struct flow *f, struct tir_block *block)
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
void region_leave(struct lower *l, struct flow *f, struct region *r, bool yield)
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
void flow_results(struct lower *l, struct flow *f, struct tir_inst *inst)
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

void flow_failed(struct lower *l, const struct ast_stmt *s)
{
    vec_foreach(const struct ast_binding, it, &s->names)
        scope_declare(l, it->name, it->span, val_poison());
}
