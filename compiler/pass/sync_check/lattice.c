// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// See lattice.h: what equations leave, one equation after the other.

#include "pass/sync_check/lattice.h"

#include <stdlib.h>

#include "base/base.h"

#define LARGEST_STEP (INT64_C(1) << 26) // of the lattice: a product of several sizes

void tir_sync_gather(struct sync_problem *q, struct lattice *l, const int64_t *by, int64_t *by_how)
{
    int64_t moves[SYNC_UNKNOWNS];
    uint32_t first = UINT32_MAX;
    for (uint32_t c = 0; c < l->columns; c++)
        moves[c] = tir_sync_change(l, by, c);
    for (bool again = true; again && !q->too_large;) {
        again = false;
        first = UINT32_MAX;
        for (uint32_t c = 0; c < l->columns; c++)
            if (moves[c] && (first == UINT32_MAX || llabs(moves[c]) < llabs(moves[first])))
                first = c;
        for (uint32_t c = 0; first != UINT32_MAX && c < l->columns; c++) {
            int64_t times = c == first ? 0 : moves[c] / moves[first];
            if (!times)
                continue;
            times = tir_sync_checked(q, times, SYNC_INFINITY);
            for (uint32_t i = 0; i < l->rows; i++)
                l->steps[c][i] =
                    tir_sync_checked(q, l->steps[c][i] - times * l->steps[first][i], LARGEST_STEP);
            moves[c] -= times * moves[first];
            again |= moves[c] != 0;
        }
    }
    *by_how = first == UINT32_MAX || q->too_large ? 0 : moves[first];
    if (!*by_how)
        return;
    for (uint32_t i = 0; i < l->rows; i++) {
        int64_t step = l->steps[first][i];
        l->steps[first][i] = l->steps[l->columns - 1][i];
        l->steps[l->columns - 1][i] = step;
    }
}

void tir_sync_fix(struct sync_problem *q, struct lattice *l, int64_t times)
{
    l->columns--;
    if (times > SYNC_INFINITY || times < -SYNC_INFINITY)
        q->too_large = true;
    for (uint32_t i = 0; i < l->rows && !q->too_large; i++)
        l->at[i] =
            tir_sync_checked(q, l->at[i] + times * l->steps[l->columns][i], 2 * SYNC_INFINITY);
}

bool tir_sync_equate(struct sync_problem *q, struct lattice *l, const struct sync_linear *form)
{
    int64_t off = tir_sync_at(q, form, l->at), by;
    tir_sync_gather(q, l, form->by, &by);
    if (by ? off % by : off)
        return q->too_large;
    if (by)
        tir_sync_fix(q, l, -off / by);
    return true;
}

bool tir_sync_is_fixed(const struct lattice *l, const struct sync_linear *form, uint32_t columns)
{
    for (uint32_t c = 0; c < columns; c++)
        if (tir_sync_change(l, form->by, c))
            return false;
    return true;
}
