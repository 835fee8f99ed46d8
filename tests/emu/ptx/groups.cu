// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cooperative groups, cuda::barrier, cuda::pipeline, and wmma.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <mma.h>

namespace cg = cooperative_groups;

// Tiles of 8 lanes: sums, running sums, a vote, and the lanes that are active together.
extern "C" __global__ void tiles(const int *in, int *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int x = in[block.thread_rank()];
    int *o = out + block.thread_rank() * 6;
    o[0] = cg::reduce(tile, x, cg::plus<int>());
    o[1] = cg::reduce(tile, x, cg::greater<int>());
    o[2] = cg::inclusive_scan(tile, x);
    o[3] = tile.any(x > 90) + 2 * tile.all(x > 5);
    o[4] = tile.shfl(x, 3) + 1000 * tile.meta_group_rank();
    o[5] = 0;
    if (x % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        o[5] = active.size() * 100 + active.thread_rank();
    }
}

// A block brings its part to shared memory with one collective copy.
extern "C" __global__ void collective_copy(const int *in, int *out, int n)
{
    extern __shared__ int part[];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, part, in + blockIdx.x * n, sizeof(int) * n);
    cg::wait(block);
    for (int i = block.thread_rank(); i < n; i += block.size())
        out[blockIdx.x * n + i] = part[n - 1 - i];
}

// Half of the block produces, half consumes, two barriers hand the buffer back and forth.
extern "C" __global__ void produces(const int *in, int *out, int rounds)
{
    __shared__ int buffer[2][32];
    __shared__ cuda::barrier<cuda::thread_scope_block> ready[2], filled[2];
    auto block = cg::this_thread_block();
    if (block.thread_rank() < 2) {
        init(&ready[block.thread_rank()], block.size());
        init(&filled[block.thread_rank()], block.size());
    }
    block.sync();
    int t = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int r = 0; r < rounds; r++) {
            ready[r % 2].arrive_and_wait();
            buffer[r % 2][t] = in[r * 32 + t] * 3;
            auto token = filled[r % 2].arrive();
            (void)token;
        }
    } else {
        auto first = ready[0].arrive(), second = ready[1].arrive();
        (void)first;
        (void)second;
        for (int r = 0; r < rounds; r++) {
            filled[r % 2].arrive_and_wait();
            out[r * 32 + t] = buffer[r % 2][31 - t];
            auto token = ready[r % 2].arrive();
            (void)token;
        }
    }
}

// Two stages of copies ahead of the sums.
extern "C" __global__ void pipelined(const float *in, float *out, int batches)
{
    constexpr int STAGES = 2;
    extern __shared__ float stage[];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int compute = 0, fetch = 0; compute < batches; compute++) {
        for (; fetch < batches && fetch < compute + STAGES; fetch++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, stage + (fetch % STAGES) * block.size(), in + fetch * block.size(),
                               sizeof(float) * block.size(), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += stage[(compute % STAGES) * block.size() + (threadIdx.x + compute) % block.size()];
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// A thread's own copies.
extern "C" __global__ void own_pipeline(const int4 *in, int4 *out, int rounds)
{
    __shared__ int4 stage[2][64];
    cuda::pipeline<cuda::thread_scope_thread> pipeline = cuda::make_pipeline();
    for (int r = 0; r <= rounds; r++) {
        if (r < rounds) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&stage[r % 2][threadIdx.x], in + r * 64 + threadIdx.x,
                               cuda::aligned_size_t<16>(sizeof(int4)), pipeline);
            pipeline.producer_commit();
        }
        if (r > 0) {
            cuda::pipeline_consumer_wait_prior<0>(pipeline);
            int4 v = stage[(r - 1) % 2][threadIdx.x];
            out[(r - 1) * 64 + threadIdx.x] = make_int4(v.w, v.z, v.y, v.x);
            pipeline.consumer_release();
        }
    }
}

// C = A B, 16 x 16 of it a warp; A by rows, B by columns.
extern "C" __global__ void wmma_product(const __half *a, const __half *b, float *c, int n)
{
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.y + threadIdx.y) * 16;
    fill_fragment(fc, 0.0f);
    for (int k = 0; k < n; k += 16) {
        load_matrix_sync(fa, a + row * n + k, n);
        load_matrix_sync(fb, b + column * n + k, n);
        mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; i++)
        fc.x[i] *= 0.5f;
    store_matrix_sync(c + row * n + column, fc, n, mem_row_major);
}
