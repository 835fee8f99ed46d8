// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The choices that a random program is made of.
//
// All that a generator decides, it asks here, and choice 0 is always the simplest. So a list of
// numbers is a program: what was chosen can be replayed, and a shorter list, or one of smaller
// numbers, is a simpler program that is as well-typed as any other. shrink.c works on such lists.
#ifndef TESTS_RANDOM_CHOICE_H
#define TESTS_RANDOM_CHOICE_H

#include "base/base.h"

#define MAX_CHOICES 16384

struct choices {
    uint64_t state;                      // of the series that a seed starts
    bool is_replay;                      // what is chosen comes from `made`; behind its end it is 0
    uint32_t made_count;                 // of a replay: how many there are
    uint32_t forced[4][2], forced_count; // numbers of choices, and what they are; kept by
                                         // choices_seed
    uint32_t count;                      // made so far
    uint32_t made[MAX_CHOICES];
};

void choices_seed(struct choices *c, uint64_t seed);
void choices_replay(struct choices *c, const uint32_t *made, uint32_t count);

uint32_t choose(struct choices *c, uint32_t n);   // 0 to n - 1
bool chance(struct choices *c, uint32_t percent); // choice 0: no
#define choose_from(c, array) ((array)[choose((c), (uint32_t)TIR_COUNT_OF(array))])

#endif
