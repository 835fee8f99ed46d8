// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules of rules.def as data.
#ifndef TESTS_RANDOM_RULES_H
#define TESTS_RANDOM_RULES_H

#include "program.h"

struct grow_rule {
    const char *name;
    uint32_t weight;
    bool is_leaf; // needs no other expression
    bool (*fits)(struct program *p, const struct form *f);
    struct value (*make)(struct program *p, const struct form *f);
};
extern const struct grow_rule grow_rules[];
extern const uint32_t grow_rule_count;

#define RULE(name, ...)                                        \
    bool fits_##name(struct program *p, const struct form *f); \
    struct value grow_##name(struct program *p, const struct form *f);
#include "rules.def"

// The file that programs import as "own.tir".
extern const char own_module[];

#endif
