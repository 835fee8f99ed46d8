// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the configurations of a kernel share: its parameters, and the conditions that all of them
// state. A condition that only some state (`where N % BN == 0`) chooses among them at a launch.

#include "compile/configs.h"

#include "compile/code.h"
#include "compile/formula.h"

static bool same_param(const struct tir_param *a, const struct tir_param *b)
{
    const struct tir_type *x = a->value->type, *y = b->value->type;
    if (x->elem != y->elem || x->space != y->space || x->rank != y->rank)
        return false;
    for (uint32_t d = 0; d < x->rank; d++)
        if (a->dims[d].dim != b->dims[d].dim ||
            (a->dims[d].dim < 0 && a->dims[d].constant != b->dims[d].constant))
            return false;
    return true;
}

static bool same_params(struct tir_context *cx, struct tir_func *const *configs, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t p = 0; p < configs[0]->param_count; p++)
            if (!same_param(&configs[0]->params[p], &configs[i]->params[p])) {
                tir_error_at(&cx->diags, configs[0]->params[p].span, TIR_E_META,
                             "configurations give `%s` different types; a launch chooses among "
                             "those that take the same arguments",
                             configs[0]->params[p].name);
                return false;
            }
    return true;
}

static bool same_formula(const tir_formula *a, const tir_formula *b)
{
    if (!a->count || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->ops[i].code != b->ops[i].code || a->ops[i].value != b->ops[i].value)
            return false;
    return true;
}

struct conditions { // of one configuration
    tir_formula *at;
    uint32_t count;
};

static struct conditions conditions_of(struct tir_context *cx, const struct tir_func *f)
{
    const struct tir_inst *yield = tir_yield_of(f->host);
    uint32_t first = tir_conditions_at(f);
    struct conditions all = {.count = yield ? yield->operand_count - first : 0};
    all.at = arena_array(&cx->arena, tir_formula, all.count + 1);
    for (uint32_t i = 0; i < all.count; i++)
        if (!tir_compile_estimate(cx, f, yield->operands[first + i], &all.at[i]))
            all.at[i] = (tir_formula){0};
    return all;
}

static bool all_state(const struct conditions *configs, uint32_t count, const tir_formula *one)
{
    for (uint32_t i = 0; i < count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < configs[i].count; k++)
            found |= same_formula(&configs[i].at[k], one);
        if (!found)
            return false;
    }
    return true;
}

// Gives how many configurations have conditions of their own.
static uint32_t part_conditions(struct tir_context *cx, struct tir_func *const *configs,
                                uint32_t count)
{
    uint32_t with_own = 0;
    struct conditions *all = arena_array(&cx->arena, struct conditions, count);
    for (uint32_t i = 0; i < count; i++)
        all[i] = conditions_of(cx, configs[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct tir_value **at =
            all[i].count ? tir_yield_of(configs[i]->host)->operands + tir_conditions_at(configs[i])
                         : NULL;
        struct tir_value **own = arena_array(&cx->arena, struct tir_value *, all[i].count + 1);
        uint32_t shared = 0, owned = 0;
        for (uint32_t k = 0; k < all[i].count; k++)
            if (all_state(all, count, &all[i].at[k]))
                at[shared++] = at[k];
            else
                own[owned++] = at[k];
        for (uint32_t k = 0; k < owned; k++)
            at[shared + k] = own[k];
        configs[i]->when_count = configs[i]->own_count = owned;
        with_own += owned > 0;
    }
    return with_own;
}

bool tir_compile_share(struct tir_context *cx, struct tir_func *const *configs, uint32_t count)
{
    if (count <= TIR_MOST_CONFIGS && !same_params(cx, configs, count))
        return false;
    const uint32_t with_own = count <= TIR_MOST_CONFIGS ? part_conditions(cx, configs, count) : 0;
    const bool is_own = with_own > TIR_MOST_OWN_CONFIGS;
    const uint32_t has = is_own ? with_own : count,
                   most = is_own ? TIR_MOST_OWN_CONFIGS : TIR_MOST_CONFIGS;
    if (has > most)
        tir_error_at(&cx->diags, configs[0]->span, TIR_E_LIMIT,
                     "%u configurations%s; the limit is %u", has,
                     is_own ? " with conditions of their own" : "", most);
    return has <= most;
}

tir_str tir_compile_config_text(struct tir_arena *arena, const struct tir_func *f)
{
    struct tir_text text;
    tir_text_init(&text, arena, 0);
    for (uint32_t i = 0; i < f->meta_count; i++) {
        if (!f->metas[i].is_config)
            continue;
        if (text.len)
            tir_text_add(&text, STR(", "));
        tir_text_add(&text, tir_str_of(f->metas[i].name));
        tir_text_char(&text, '=');
        tir_text_add(&text, f->metas[i].value);
    }
    return tir_text_str(&text);
}
