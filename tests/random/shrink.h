// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making a failing program smaller: fewer choices, and smaller ones, while it fails in the same
// way.
#ifndef TESTS_RANDOM_SHRINK_H
#define TESTS_RANDOM_SHRINK_H

#include "choice.h"

// Whether the program of these choices fails as the one before did; leaves in *c what was chosen.
typedef bool shrink_fails(void *user, struct choices *c);

// *c fails; at most `tries` others are tried. Leaves the smallest one in *c.
void shrink(struct choices *c, uint32_t tries, shrink_fails *fails, void *user);

#endif
