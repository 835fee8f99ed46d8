// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What work costs on a card, from cost.def. Cycles are those of a multiprocessor.
#ifndef TIR_MACHINE_COST_H
#define TIR_MACHINE_COST_H

#include "base/base.h"

enum tir_card {
#define CARD(id, ...) TIR_CARD_##id,
#include "machine/cost.def"
    TIR_CARD_COUNT
};

struct tir_cost {
    const char *card;
    int64_t products; // of 16-bit elements, a cycle
    int64_t fetched;  // bytes of operands that arrive in shared memory, a cycle
    int64_t stored;   // sums that leave, a cycle
    int64_t moved;    // bytes from and to memory, a cycle, where nothing is multiplied
    int64_t fixed;    // cycles to fill and empty the pipeline of a tile
    int64_t launch;   // cycles from one launch to the next
    // Percent of its time that a product takes by the columns of its tile: the first row that has
    // no more columns counts. Fewer columns than fewest_columns take the time of as many.
    struct {
        int64_t columns, percent;
    } by_columns[3];
    int64_t fewest_columns;
    // Percent where mma.sync keeps more sums than these: too many registers, and too few warps to
    // hide what they wait for.
    int64_t most_sums, too_many_sums;
};

extern const struct tir_cost tir_costs[TIR_CARD_COUNT];

#endif
