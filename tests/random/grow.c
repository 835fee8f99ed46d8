// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Growing an expression of a wanted form: a rule of the table that fits.
#include "rules.h"

const struct grow_rule grow_rules[] = {
#define RULE(name, weight, is_leaf) {#name, weight, is_leaf, fits_##name, grow_##name},
#include "rules.def"
};
const uint32_t grow_rule_count = TIR_COUNT_OF(grow_rules);

static bool may_use(struct program *p, const struct grow_rule *r, const struct form *f)
{
    return (r->is_leaf || p->depth < p->max_depth) && r->fits(p, f);
}

// Programs of wide tiles are about products.
static uint32_t weight_of(const struct program *p, const struct grow_rule *r)
{
    return p->is_wide && r->make == grow_product ? 12 * r->weight : r->weight;
}

static const struct grow_rule *pick_rule(struct program *p, const struct form *f)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < grow_rule_count; i++)
        total += may_use(p, &grow_rules[i], f) ? weight_of(p, &grow_rules[i]) : 0;
    uint32_t at = choose(p->c, total);
    for (uint32_t i = 0; i < grow_rule_count; i++) {
        if (!may_use(p, &grow_rules[i], f))
            continue;
        if (at < weight_of(p, &grow_rules[i]))
            return &grow_rules[i];
        at -= weight_of(p, &grow_rules[i]);
    }
    tir_unreachable(); // a constant always fits
}

struct value grow(struct program *p, struct form f)
{
    const struct grow_rule *wanted = p->outer ? p->outer : p->inner;
    const bool meets = wanted && wanted->fits(p, &f);
    const struct grow_rule *rule = meets ? wanted : pick_rule(p, &f);
    if (meets && p->outer)
        p->outer = NULL; // the inner one is next
    else if (meets)
        p->inner = NULL;
    p->depth++;
    struct value v = tamed(p, &f, rule->make(p, &f));
    p->depth--;
    return !rule->is_leaf && p->depth && chance(p->c, 20) ? let(p, &f, v) : v;
}

struct value grow_firm(struct program *p, struct form f)
{
    p->firm++;
    struct value v = grow(p, f);
    p->firm--;
    return v;
}

const char *grow_condition(struct program *p)
{
    return grow_firm(p, form_scalar(TIR_BOOL)).text;
}
