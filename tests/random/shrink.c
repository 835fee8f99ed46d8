// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shrink.h"

struct search {
    struct choices best, trial;
    uint32_t tries;
    shrink_fails *fails;
    void *user;
};

static bool is_smaller(const struct choices *a, const struct choices *b)
{
    if (a->count != b->count)
        return a->count < b->count;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->made[i] != b->made[i])
            return a->made[i] < b->made[i];
    return false;
}

// The trial's first `count` choices as a program.
static bool try_it(struct search *s, uint32_t count)
{
    if (!s->tries)
        return false;
    s->tries--;
    choices_replay(&s->trial, s->trial.made, count);
    if (!s->fails(s->user, &s->trial))
        return false;
    while (s->trial.count && s->trial.made[s->trial.count - 1] == 0)
        s->trial.count--; // what is missing is 0
    if (!is_smaller(&s->trial, &s->best))
        return false;
    s->best = s->trial;
    return true;
}

static bool without(struct search *s, uint32_t at, uint32_t length)
{
    s->trial = s->best;
    memmove(s->trial.made + at, s->trial.made + at + length,
            (s->best.count - at - length) * sizeof(*s->trial.made));
    return try_it(s, s->best.count - length);
}

static bool replaced(struct search *s, uint32_t at, uint32_t value)
{
    s->trial = s->best;
    s->trial.made[at] = value;
    return try_it(s, s->best.count);
}

static bool drop_runs(struct search *s)
{
    bool any = false;
    for (uint32_t length = s->best.count / 2 + 1; length > 0; length /= 2)
        for (uint32_t at = 0; at + length <= s->best.count && s->tries;)
            if (without(s, at, length))
                any = true;
            else
                at += length;
    return any;
}

static bool lower_values(struct search *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->best.count && s->tries; i++) {
        bool is_lower = false;
        for (uint32_t by = s->best.made[i]; by && !is_lower; by /= 2)
            is_lower = replaced(s, i, s->best.made[i] - by); // 0 first
        any |= is_lower;
    }
    return any;
}

void shrink(struct choices *c, uint32_t tries, shrink_fails *fails, void *user)
{
    static struct search s; // too large for a stack
    s.best = *c;
    s.tries = tries;
    s.fails = fails;
    s.user = user;
    while (s.tries && (drop_runs(&s) | lower_values(&s)))
        continue;
    *c = s.best;
}
