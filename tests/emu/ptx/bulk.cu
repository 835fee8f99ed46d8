// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bulk copies, mbarriers, clusters and distributed shared memory, through inline PTX.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ void init(unsigned long long *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ void expect(unsigned long long *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

__device__ void wait(unsigned long long *barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\n"
                 "bra WAIT;\n"
                 "DONE:\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

__device__ void copy_in(void *to, const void *from, unsigned bytes, unsigned long long *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ void copy_out(void *to, const void *from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
                 "r"(bytes)
                 : "memory");
}

// Doubles an array in tiles of 1024 floats: two stages in flight, results leave in bulk too.
extern "C" __global__ void doubles(const float *in, float *out, int tiles)
{
    __shared__ alignas(128) float stage[2][1024];
    __shared__ alignas(128) float result[1024];
    __shared__ unsigned long long full[2];
    if (threadIdx.x == 0) {
        init(&full[0], 1);
        init(&full[1], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int t = 0; t < 2 && t < tiles; t++) {
            expect(&full[t], sizeof stage[0]);
            copy_in(stage[t], in + t * 1024, sizeof stage[0], &full[t]);
        }
    for (int t = 0; t < tiles; t++) {
        wait(&full[t % 2], t / 2 & 1);
        for (int i = threadIdx.x; i < 1024; i += blockDim.x)
            result[i] = 2 * stage[t % 2][i];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            copy_out(out + t * 1024, result, sizeof result);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            if (t + 2 < tiles) {
                expect(&full[t % 2], sizeof stage[0]);
                copy_in(stage[t % 2], in + (t + 2) * 1024, sizeof stage[0], &full[t % 2]);
            }
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Each block of a cluster of 4 counts a quarter of the bins, for all blocks of its cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned bins[64];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < 64; i += blockDim.x)
        bins[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned *theirs = cluster.map_shared_rank(bins, in[i] / 64);
        atomicAdd(theirs + in[i] % 64, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < 64; i += blockDim.x)
        atomicAdd(&out[cluster.block_rank() * 64 + i], bins[i]);
}
