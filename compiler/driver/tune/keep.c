// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses configurations one after the other: each time the one that makes launches of all sizes
// the fastest, by their geometric mean. A configuration that the model likes better than it is
// makes launches slower, so more are not always better, and it ends where none helps.
#include "driver/tune/keep.h"

#include <math.h>

static const double UNFIT = 7; // some thousand times as long: nothing can be launched

static int64_t cost_of(const struct tir_candidate *c, const int64_t *dims, const int64_t *scalars)
{
    const tir_artifact_kernel *info = c->info;
    const tir_formula *formula = c->variant < info->variant_count
                                     ? &info->variants[c->variant].cost
                                     : &info->sequences[c->variant - info->variant_count].cost;
    tir_error ignored;
    int64_t cost;
    if (!formula->count || tir_formula_eval(formula, dims, scalars, &cost, &ignored))
        return INT64_MAX;
    return cost;
}

void tir_keep_add(struct tir_keep *keep, const struct tir_candidates *list, const int64_t *dims,
                  const int64_t *scalars)
{
    double best = INFINITY;
    keep->candidates = list->all.len;
    vec_foreach(const struct tir_candidate, c, &list->all)
        best = c->fits ? fmin(best, c->time) : best;
    vec_foreach(const struct tir_candidate, c, &list->all) {
        struct tir_keep_cell cell = {INFINITY, INT64_MAX};
        if (c->fits)
            cell = (struct tir_keep_cell){log(c->time / best), cost_of(c, dims, scalars)};
        vec_push(keep->arena, &keep->cells, cell);
    }
}

static bool fits(const struct tir_keep_cell *cell)
{
    return cell && !isinf(cell->loss);
}

// What a launch takes of two; the first of equals.
static const struct tir_keep_cell *chosen(const struct tir_keep_cell *first,
                                          const struct tir_keep_cell *second)
{
    if (!fits(first))
        return second;
    return !fits(second) || second->cost >= first->cost ? first : second;
}

// The mean over the sizes, with candidate `more` beside those that `taken` comes from.
static double loss_with(const struct tir_keep *keep, const struct tir_keep_cell *const *taken,
                        uint32_t more)
{
    const uint32_t sizes = keep->cells.len / keep->candidates;
    double sum = 0;
    for (uint32_t s = 0; s < sizes; s++) {
        const struct tir_keep_cell *cell =
            chosen(taken[s], &keep->cells.at[s * keep->candidates + more]);
        sum += fits(cell) ? cell->loss : UNFIT;
    }
    return sum / sizes;
}

void tir_keep_choose(struct tir_keep *keep, uint32_t most)
{
    const uint32_t sizes = keep->candidates ? keep->cells.len / keep->candidates : 0;
    const struct tir_keep_cell **taken = // by a launch of each size
        arena_array(keep->arena, const struct tir_keep_cell *, sizes + 1);
    double loss = INFINITY;
    while (sizes && keep->kept.len < most) {
        uint32_t best = keep->candidates;
        for (uint32_t i = 0; i < keep->candidates; i++) {
            const double with = loss_with(keep, taken, i);
            if (with < loss) {
                loss = with;
                best = i;
            }
        }
        if (best == keep->candidates)
            break;
        vec_push(keep->arena, &keep->kept, best);
        for (uint32_t s = 0; s < sizes; s++)
            taken[s] = chosen(taken[s], &keep->cells.at[s * keep->candidates + best]);
    }
    double sum = 0;
    for (uint32_t s = 0; s < sizes; s++) {
        sum += fits(taken[s]) ? taken[s]->loss : 0;
        keep->unfit += !fits(taken[s]);
    }
    keep->loss = keep->unfit < sizes ? exp(sum / (sizes - keep->unfit)) : 1;
}
