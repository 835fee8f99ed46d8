// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding metas: what `-D NAME=VALUE` or the default gives, of the kind that is stated or follows
// from the default.
#include "front/lower/lower.h"

#include "ir/number.h"

static const char *kind_name(enum val_kind kind)
{
    return kind == VAL_INT     ? "int"
           : kind == VAL_FLOAT ? "float"
           : kind == VAL_BOOL  ? "bool"
                               : "type";
}

static bool stated_kind(struct lower *l, const struct ast_binding *meta, enum val_kind *out)
{
    static const enum val_kind kinds[] = {VAL_INT, VAL_FLOAT, VAL_BOOL, VAL_ELEM};
    const struct ast_type *t = meta->type;
    const char *name = t->elem == TIR_BOOL && !t->dims.len ? "bool" : t->name;
    for (uint32_t i = 0; name && !t->dims.len && i < TIR_COUNT_OF(kinds); i++)
        if (strcmp(name, kind_name(kinds[i])) == 0) {
            *out = kinds[i];
            return true;
        }
    lower_error(l, t->span, TIR_E_META, "a meta is an int, a bool, a float or a type");
    return false;
}

// A value on the command line is one token, or a minus and a number.
struct val meta_parse(struct lower *l, tir_str text)
{
    for (int e = TIR_NONE + 1; e < TIR_ELEM_COUNT; e++)
        if (tir_str_is(text, tir_elems[e].name))
            return (struct val){.kind = VAL_ELEM, .elem = (enum tir_elem)e};
    struct tir_source_file *file = tir_source_add(&l->cx->sources, STR("command line"), text);
    struct tir_lexer lexer;
    if (!file || !tir_lexer_init(&lexer, l->cx, file))
        return val_poison();
    lexer.muted = true;
    struct tir_token t = tir_lex(&lexer);
    bool negative = t.kind == TIR_TOK_SUB;
    if (negative)
        t = tir_lex(&lexer);
    if (tir_lex(&lexer).kind != TIR_TOK_EOF)
        return val_poison();
    if (t.kind == TIR_TOK_INT && t.number <= INT64_MAX)
        return val_int(negative ? -(int64_t)t.number : (int64_t)t.number);
    if (t.kind == TIR_TOK_FLOAT)
        return val_float(negative ? -t.real : t.real);
    if (!negative && (t.kind == TIR_TOK_TRUE || t.kind == TIR_TOK_FALSE))
        return val_bool(t.kind == TIR_TOK_TRUE);
    return val_poison();
}

static struct val bind_given(struct lower *l, const struct ast_binding *meta, enum val_kind kind,
                             const struct tir_binding *given)
{
    struct val v = meta_parse(l, given->value);
    if (kind == VAL_FLOAT && v.kind == VAL_INT)
        v = val_float((double)v.i);
    if (v.kind == kind)
        return v;
    lower_error(l, meta->span, TIR_E_META, "meta `%s` is of kind %s, and `%.*s` is not", meta->name,
                kind_name(kind), (int)TIR_MIN(given->value.len, 64), given->value.ptr);
    return val_poison();
}

struct val meta_bind(struct lower *l, const struct ast_binding *meta,
                     const struct tir_binding *given)
{
    enum val_kind kind = VAL_POISON;
    struct val v = val_poison();
    if (meta->type && !stated_kind(l, meta, &kind))
        return v;
    if (meta->value) {
        v = lower_expr(l, meta->value);
        if (v.kind == VAL_POISON)
            return v;
        if (kind == VAL_FLOAT && v.kind == VAL_INT)
            v = val_float((double)v.i);
        bool known = val_is_constant(v) || v.kind == VAL_ELEM;
        if (!known || (meta->type && v.kind != kind)) {
            lower_error(l, meta->value->span, TIR_E_META, "meta `%s` cannot be %s", meta->name,
                        lower_val_name(l, v));
            lower_suggest_parameter(l, meta->value->span, v);
            return val_poison();
        }
        kind = v.kind;
    }
    if (given)
        return kind == VAL_POISON ? meta_parse(l, given->value) : bind_given(l, meta, kind, given);
    if (!meta->value)
        lower_error(l, meta->span, TIR_E_META,
                    "meta `%s` has no default and must be given: -D %s=VALUE", meta->name,
                    meta->name);
    return v;
}

tir_str meta_text(struct lower *l, struct val v)
{
    struct tir_text text;
    if (v.kind == VAL_ELEM)
        return tir_str_of(tir_elems[v.elem].name);
    if (v.kind == VAL_BOOL)
        return v.truth ? STR("true") : STR("false");
    tir_text_init(&text, l->arena, 0);
    if (v.kind == VAL_INT)
        tir_text_int(&text, v.i);
    else
        tir_number_print(&text, TIR_F64, (union tir_number){.f = v.f});
    return tir_text_str(&text);
}
