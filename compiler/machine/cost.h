// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What work costs on a card, from cost.def. Cycles are those of a multiprocessor.
#ifndef TIR_MACHINE_COST_H
#define TIR_MACHINE_COST_H

#include "ir/type.h"

enum tir_card {
#define CARD(id, ...) TIR_CARD_##id,
#include "machine/cost.def"
    TIR_CARD_COUNT
};

struct tir_cost {
    const char *card;
    bool is_published; // from published rates and guesses; nothing was measured
    int64_t products;  // of 16-bit elements, a cycle; of others as their bits say, but for f64
    int64_t products_of_f64;
    int64_t products_in_rounds; // as `products`, of loops that are full of them
    int64_t fetched;            // bytes of operands that arrive in shared memory, a cycle
    int64_t cached;             // bytes that the L2 cache gives all multiprocessors, a cycle
    // Percent longer where rows do not begin at multiples of 128 bytes; beside that, of 32.
    int64_t off_lines, off_sectors;
    int64_t words, elements; // bytes that the threads of a CTA copy so, a cycle
    int64_t past;       // bytes past the end of a tensor that the card fills with zeros, a cycle
    int64_t computed;   // elements of operands that an operation makes, a cycle
    int64_t converted;  // the same of operands that follow from no product, in registers of 32 bits
    int64_t converting; // cycles that a warpgroup waits in a round that converts
    int64_t used;       // elements that an operation makes of sums of the same round, a cycle
    int64_t using;      // cycles that a warpgroup waits for these sums
    int64_t round;      // cycles of a round beside its products
    int64_t stored;     // bytes of results that leave, a cycle
    int64_t uneven;     // cycles more for 64 rows of results that 128 bytes do not divide
    int64_t memory;     // bytes that the card moves from and to memory, a cycle
    int64_t unhidden; // percent of products and of moving memory, what takes less, beside the other
    int64_t moved;    // bytes a cycle that tiles without products move, mostly in the L2 cache
    int64_t start;    // cycles to fill the pipeline of a CTA
    int64_t fixed;    // cycles of a tile beside its rounds and its results
    int64_t clustered;   // cycles more of a tile in a cluster
    int64_t exchange;    // cycles more of a tile whose sums the CTAs of a cluster exchange
    int64_t refill;      // cycles until a slot of its ring is full again, where one CTA loads
    int64_t in_gpcs;     // percent of the multiprocessors that clusters of more than two CTAs reach
    int64_t clusters[9]; // by their CTAs: how many run that fill multiprocessors; 0: unknown
    int64_t begun;       // cycles to begin a tile that has no pipeline
    int64_t launch;      // cycles from one launch to the next
    int64_t fewest_columns; // a product with fewer takes the time of as many
    int64_t fewest_rows;    // so do its blocks of rows in tensor memory
    // How many times as long a product takes whose operands are copied 4 bytes at a time, or by
    // single elements.
    int64_t by_words, by_elements;
    // Percent where mma.sync keeps more sums than these: too many registers, and too few warps to
    // hide what they wait for.
    int64_t most_sums, too_many_sums;
};

extern const struct tir_cost tir_costs[TIR_CARD_COUNT];

// Products of such elements, a cycle.
int64_t tir_products_a_cycle(const struct tir_cost *cost, enum tir_elem elem);

#endif
