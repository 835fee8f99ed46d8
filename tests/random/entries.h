// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entries of a PTX module, compared and asked.
#ifndef TESTS_RANDOM_ENTRIES_H
#define TESTS_RANDOM_ENTRIES_H

#include "base/str.h"

// The name of the first entry of `part` that `whole` lacks or has with other code; of length 0:
// none. Comments do not count, nor do the numbers that functions have in their labels.
tir_str entries_strange(tir_str part, tir_str whole);

// Does the code of this entry have the word?
bool entries_have(tir_str ptx, tir_str name, const char *word);

#endif
