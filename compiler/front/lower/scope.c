// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names and what they mean. One map holds the innermost meaning of each name; a symbol remembers
// what it hides, and leaving a scope brings that back.
#include "front/lower/lower.h"

#include "front/lower/builtin.h"
#include "front/parse/foreign.h"

struct symbol *scope_enter(struct lower *l)
{
    struct symbol *outer = l->scope;
    l->scope = NULL;
    return outer;
}

void scope_leave(struct lower *l, struct symbol *outer)
{
    for (struct symbol *s = l->scope; s; s = s->next) {
        if (!s->used && !s->may_be_unused && s->name[0] != '_' && !l->cx->diags.error_count)
            tir_error_at(&l->cx->diags, s->span, TIR_W_UNUSED, "`%s` is never used", s->name);
        l->names.entries[s->place].value = s->shadowed;
    }
    l->scope = outer;
}

struct symbol *scope_declare(struct lower *l, const char *name, struct tir_span span,
                             struct val val)
{
    struct symbol *s = arena_new(l->arena, struct symbol);
    s->name = name;
    s->span = span;
    s->val = val;
    s->level = l->level;
    s->may_be_unused = true;
    s->place = tir_map_place(&l->names, tir_map_key(name));
    s->shadowed = l->names.entries[s->place].value;
    s->next = l->scope;
    l->scope = s;
    l->names.entries[s->place].value = s;
    return s;
}

struct symbol *scope_find(struct lower *l, const char *name)
{
    struct symbol *s = tir_map_get(&l->names, tir_map_key(name));
    return s ? s : tir_map_get(&l->home->globals, tir_map_key(name));
}

static struct tir_nearest nearest_to(const char *name)
{
    size_t length = strlen(name); // everything is near one letter
    return tir_nearest_to(tir_str_of(name), length < 2 ? 0 : length < 4 ? 1 : length < 7 ? 2 : 3);
}

static void suggest(struct lower *l, struct tir_span span, const struct tir_nearest *n)
{
    if (n->name.ptr)
        tir_fix_at(&l->cx->diags, span, n->name.ptr, "the nearest name");
}

static bool is_buffer(struct val v)
{
    return v.kind == VAL_IR && tir_type_is_buffer(v.ir->type);
}

// The buffers of a ring have names inside of put and get alone.
static bool note_ring(struct lower *l, const char *name)
{
    vec_foreach(struct ring *, ring, &l->rings)
        vec_foreach(const struct ast_binding, b, (*ring)->buffers)
            if (strcmp(b->name, name) == 0) {
                lower_note(l, b->span,
                           "a buffer of this ring has its name inside of `put` and `get`");
                return true;
            }
    return false;
}

static bool is_callable(struct lower *l, const char *name)
{
    return tir_op_by_name(tir_str_of(name)) != TIR_OP_COUNT || builtin_find(name) ||
           tir_map_get(&l->home->fns, tir_map_key(name));
}

void scope_unknown(struct lower *l, struct tir_span span, const char *name)
{
    struct tir_nearest n = nearest_to(name);
    const struct tir_map *maps[] = {&l->names, &l->home->globals};
    for (int tensors = 1; tensors >= 0; tensors--) // of equally near names the tensor's
        for (uint32_t m = 0; m < TIR_COUNT_OF(maps); m++)
            for (uint32_t i = 0; i < maps[m]->count; i++) {
                const struct symbol *s = maps[m]->entries[i].value;
                if (s && is_buffer(s->val) == (tensors == 1))
                    tir_nearest_try(&n, tir_str_of(s->name));
            }
    if (is_callable(l, name)) {
        lower_error(l, span, TIR_E_NAME, "`%s` is a function, not a value", name);
        return;
    }
    lower_error(l, span, TIR_E_NAME, "unknown name `%.100s`", name);
    if (!note_ring(l, name) && !tir_foreign_help(&l->cx->diags, span, name))
        suggest(l, span, &n);
}

void scope_unknown_prefix(struct lower *l, const struct ast_expr *e)
{
    scope_unknown(l, e->base->span, e->base->name);
    struct ast_expr function = {.kind = AST_NAME, .span = e->span, .name = e->field};
    if (!tir_foreign_word(e->base->name))
        return;
    if (is_callable(l, e->field) || lower_fn_value(l, &function))
        tir_fix_at(&l->cx->diags, e->span, e->field, "here it is");
    else
        tir_foreign_help(&l->cx->diags, e->span, e->field);
}

void scope_unknown_function(struct lower *l, const struct module *m, const struct ast_expr *e)
{
    bool here = m == l->home && e->kind == AST_NAME;
    const char *name = here ? e->name : e->field;
    struct tir_nearest n = nearest_to(name);
    const struct module *modules[] = {m, here ? lower_standard(l) : m};
    for (uint32_t k = 0; k < TIR_COUNT_OF(modules); k++)
        for (uint32_t i = 0; i < modules[k]->fns.count; i++)
            tir_nearest_try(
                &n, tir_str_of(((const struct ast_fn *)modules[k]->fns.entries[i].value)->name));
    for (int op = 0; op < TIR_OP_COUNT && here; op++)
        tir_nearest_try(&n, tir_str_of(tir_ops[op].name));
    for (uint32_t i = 0; i < BUILTIN_COUNT && here; i++)
        tir_nearest_try(&n, tir_str_of(builtins[i].name));
    lower_error(l, e->span, TIR_E_NAME, "unknown function `%.100s`", name);
    if (n.name.ptr && !here)
        n.name = tir_str_format(l->arena, "%s." STR_FMT, e->base->name, STR_ARG(n.name));
    if (!here || !tir_foreign_help(&l->cx->diags, e->span, name))
        suggest(l, e->span, &n);
}
