// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of targets and of what passes allow themselves, as Markdown.

#include "machine/help.h"

#include "machine/budget.h"
#include "machine/target.h"

static const struct {
    enum tir_feature feature;
    const char *name, *meaning;
} features[] = {
#define FEATURE(id, meaning) {TIR_HAS_##id, #id, meaning},
#include "machine/feature.def"
};

static void add_targets(struct tir_text *out)
{
    for (uint32_t i = 0; i < tir_target_count; i++) {
        const struct tir_target *t = &tir_targets[i];
        tir_text_format(out, "| `%s` | %u.%u | %lld | %lld | %u | %u | %s %s |\n", t->name,
                        t->ptx / 10, t->ptx % 10, (long long)t->shared_per_cta,
                        (long long)t->shared_per_sm, t->warps_per_sm, t->multiprocessors,
                        t->is_measured ? "measured on" : "modelled as", tir_costs[t->card].card);
    }
}

static void add_features(struct tir_text *out)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(features); i++) {
        const char *separator = "";
        tir_text_add(out, STR("| `"));
        for (const char *c = features[i].name; *c; c++)
            tir_text_format(out, "%c", *c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        tir_text_format(out, "` | %s | ", features[i].meaning);
        for (uint32_t k = 0; k < tir_target_count; k++)
            if (tir_targets[k].features & features[i].feature) {
                tir_text_format(out, "%s%s", separator, tir_targets[k].name);
                separator = ", ";
            }
        tir_text_add(out, STR(" |\n"));
    }
}

static void add_budgets(struct tir_text *out)
{
    static const struct {
        int64_t value;
        enum tir_basis basis;
        const char *name, *unit, *meaning;
    } budgets[] = {
#define BUDGET(id, value, unit, basis, meaning) {value, TIR_BASIS_##basis, #id, unit, meaning},
#include "machine/budget.def"
    };
    for (uint32_t i = 0; i < TIR_COUNT_OF(budgets); i++)
        tir_text_format(out, "| %s | %lld %s | %s | %s |\n", budgets[i].name,
                        (long long)budgets[i].value, budgets[i].unit,
                        budgets[i].basis == TIR_BASIS_DERIVED ? "derived" : "chosen",
                        budgets[i].meaning);
}

void tir_help_targets(struct tir_text *out)
{
    tir_text_add(out, STR("# Targets\n\n"
                          "Shared memory is in bytes; multiprocessors are those of the largest "
                          "card. Costs: the card whose rates\nestimates of time use, and whether "
                          "it is one of that target.\n\n"
                          "| target | PTX | shared, CTA | shared, SM | warps, SM | "
                          "multiprocessors | costs |\n|---|---|---|---|---|---|---|\n"));
    add_targets(out);
    tir_text_add(out, STR("\n# Features\n\nA configuration may need one: "
                          "`config(BN = 256, needs = tcgen05)`.\n\n"
                          "| name | feature | targets |\n|---|---|---|\n"));
    add_features(out);
    tir_text_add(out,
                 STR("\n# Budgets\n\n"
                     "What passes allow themselves, or leave to others, where the hardware "
                     "sets no limit. Derived: it follows\nfrom limits of the hardware. "
                     "Chosen: it works for the examples, and other values were not "
                     "measured.\n\n| budget | value | basis | meaning |\n|---|---|---|---|\n"));
    add_budgets(out);
}
