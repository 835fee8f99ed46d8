// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is given by name: options of statements, arguments of calls, attributes of operations.
#include "front/lower/lower.h"
#include "front/parse/foreign.h"

const struct ast_arg *arg_named(const ast_args *args, const char *name)
{
    vec_foreach(const struct ast_arg, it, args)
        if (it->name && it->name[0] == name[0] && strcmp(it->name, name) == 0)
            return it; // most are told apart by the first character
    return NULL;
}

const struct ast_arg *arg_interned(const ast_args *args, const char *name)
{
    vec_foreach(const struct ast_arg, it, args)
        if (it->name == name)
            return it;
    return NULL;
}

void lower_unknown_name(struct lower *l, struct tir_span span, enum tir_diag_code code,
                        const char *name, const struct name_list *list)
{
    struct tir_text known;
    tir_text_init(&known, l->arena, 4096);
    vec_foreach(const char *, it, &list->names)
        tir_text_format(&known, "%s`%s`", it == list->names.at ? "; it has " : ", ", *it);
    lower_error(l, span, code, "`%.64s` has no %s `%.64s`" STR_FMT, list->owner, list->what, name,
                STR_ARG(tir_text_str(&known)));
    tir_foreign_help(&l->cx->diags, span, name);
}

bool lower_check_names(struct lower *l, const ast_args *args, const struct name_list *list)
{
    vec_foreach(const struct ast_arg, it, args) {
        const char *known = NULL;
        for (uint32_t i = 0; it->name && i < list->names.len; i++)
            if (strcmp(list->names.at[i], it->name) == 0)
                known = list->names.at[i];
        if (it->name && !known) {
            lower_unknown_name(l, it->span, TIR_E_ARGUMENTS, it->name, list);
            return false;
        }
        if (known && known != list->repeats && arg_named(args, known) != it) {
            lower_error(l, it->span, TIR_E_ARGUMENTS, "`%s` is given twice", known);
            return false;
        }
    }
    return true;
}

// Options.

enum option_value { INT, COUNT, FLAG, OTHER };

static const struct option {
    enum ast_stmt_kind statement;
    const char *name;
    enum option_value value;
    int64_t least, most, step;
} options[AST_OPTION_COUNT] = {
#define OPTION(statement, name, value, least, most, step) \
    {AST_##statement, #name, value, least, most, step},
#include "front/parse/option.def"
};

static const struct statement {
    enum ast_stmt_kind kind;
    const char *word;
    enum tir_diag_code code; // of a value out of range
} statements[] = {
#define STATEMENT(kind, word, code) {AST_##kind, word, TIR_E_##code},
#include "front/parse/option.def"
};

static const struct statement *statement_of(enum ast_stmt_kind kind)
{
    uint32_t i = 0;
    while (statements[i].kind != kind) {
        i++;
        assert(i < TIR_COUNT_OF(statements));
    }
    return &statements[i];
}

static bool lower_flag(struct lower *l, const struct option *o, const struct ast_arg *arg,
                       int64_t *out)
{
    const bool has_word = o->most == TIR_DYNAMIC;
    if (has_word && arg->value->kind == AST_NAME && !strcmp(arg->value->name, "dynamic")) {
        *out = TIR_DYNAMIC;
        return true;
    }
    struct val v = lower_expr(l, arg->value);
    *out = v.kind == VAL_BOOL ? v.truth : v.i;
    if (v.kind == VAL_BOOL || (v.kind == VAL_INT && v.i >= o->least && v.i <= o->most))
        return true;
    if (v.kind != VAL_POISON)
        lower_error(l, arg->span, TIR_E_CONSTANT, "`%s` is %s, not %s", o->name,
                    has_word ? "true, false or dynamic" : "true or false", lower_val_name(l, v));
    return false;
}

static bool lower_int(struct lower *l, const struct option *o, const struct ast_arg *arg,
                      int64_t *out)
{
    if (!const_int(l, arg->value, o->name, out))
        return false;
    if (*out >= o->least && *out <= o->most && *out % o->step == 0)
        return true;
    struct tir_text range;
    tir_text_init(&range, l->arena, 0);
    if (o->most == INT32_MAX && *out < o->least)
        tir_text_format(&range, "at least %lld", (long long)o->least);
    else
        tir_text_format(&range, "%lld to %lld", (long long)o->least, (long long)o->most);
    if (o->step > 1)
        tir_text_format(&range, ", in steps of %lld", (long long)o->step);
    lower_error(l, arg->span, statement_of(o->statement)->code,
                "`%s` must be " STR_FMT ", not %lld", o->name, STR_ARG(tir_text_str(&range)),
                (long long)*out);
    return false;
}

static bool lower_option(struct lower *l, const struct option *o, const struct ast_arg *arg,
                         int64_t *out)
{
    if (o->value == OTHER || (o->value == COUNT && !arg->value))
        return true;
    if (o->value == FLAG && !arg->value) {
        *out = true;
        return true;
    }
    if (!arg->value) {
        lower_error(l, arg->span, TIR_E_ARGUMENTS, "`%s` has a value: `%s(n)`", o->name, o->name);
        return false;
    }
    return o->value == FLAG ? lower_flag(l, o, arg, out) : lower_int(l, o, arg, out);
}

bool lower_options(struct lower *l, const struct ast_stmt *s, struct options *out)
{
    struct name_list list = {.owner = statement_of(s->kind)->word, .what = "option"};
    for (uint32_t i = 0; i < AST_OPTION_COUNT; i++)
        if (options[i].statement == s->kind)
            vec_push(l->arena, &list.names, options[i].name);
    *out = (struct options){{NULL}, {0}};
    if (!lower_check_names(l, &s->options, &list))
        return false;
    for (uint32_t i = 0; i < AST_OPTION_COUNT; i++) {
        const bool here = options[i].statement == s->kind;
        out->arg[i] = here ? arg_named(&s->options, options[i].name) : NULL;
        if (out->arg[i] && !lower_option(l, &options[i], out->arg[i], &out->value[i]))
            return false;
    }
    return true;
}
