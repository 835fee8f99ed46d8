// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The grid's barrier of cooperative groups.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Each CTA stores a number, and reads those of all others after the barrier, round after round.
extern "C" __global__ void meet(unsigned *all, unsigned *out, unsigned rounds)
{
    cg::grid_group grid = cg::this_grid();
    unsigned sum = 0;
    for (unsigned r = 0; r < rounds; r++) {
        if (threadIdx.x == 0)
            all[blockIdx.x] = blockIdx.x * (r + 1);
        grid.sync();
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += all[i];
        grid.sync();
    }
    out[grid.thread_rank()] = sum;
}
