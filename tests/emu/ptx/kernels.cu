// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels for the emulator's tests. kernels.ptx is what nvcc makes of them:
//   nvcc -arch=sm_80 -lineinfo --ptx kernels.cu -o - | sed 's|"[^"]*/\(.*\)"|"\1"|' > kernels.ptx
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

extern "C" {

// Sums n floats: shuffles, shared memory, one atomic a block.
__global__ void reduce(const float *in, float *out, int n)
{
    __shared__ float parts[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int d = 16; d; d /= 2)
        sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
        for (int d = 16; d; d /= 2)
            sum += __shfl_xor_sync(~0u, sum, d);
        if (threadIdx.x == 0)
            atomicAdd(out, sum);
    }
}

// C = A B with tiles of 16, copied asynchronously and double buffered.
__global__ void tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[2][16][16], bs[2][16][16];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    __pipeline_memcpy_async(&as[0][y][x], a + row * n + x, 4);
    __pipeline_memcpy_async(&bs[0][y][x], b + y * n + col, 4);
    __pipeline_commit();
    for (int k = 0, s = 0; k < n; k += 16, s ^= 1) {
        if (k + 16 < n) {
            __pipeline_memcpy_async(&as[s ^ 1][y][x], a + row * n + k + 16 + x, 4);
            __pipeline_memcpy_async(&bs[s ^ 1][y][x], b + (k + 16 + y) * n + col, 4);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += as[s][y][i] * bs[s][i][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

typedef int (*operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int power(int a, int n) { return n == 0 ? 1 : a * power(a, n - 1); }
__device__ operation operations[3] = {plus, times, power};
__constant__ int weights[4] = {3, 1, 4, 1};

// Function pointers, recursion, a switch, local arrays, constant memory.
__global__ void calls(int *out)
{
    const int t = threadIdx.x;
    int local[8];
    for (int i = 0; i < 8; i++)
        local[(i * 3 + t) % 8] = i;
    int r = operations[t % 3](t % 5, t % 4);
    switch (t % 7) {
    case 0: r += 100; break;
    case 1: r -= 7; break;
    case 2: r *= 3; break;
    case 3: r ^= 0x55; break;
    case 4: r = -r; break;
    case 5: r <<= 2; break;
    default: break;
    }
    out[t] = r * 1000 + local[t % 8] * 10 + weights[t % 4];
}

__global__ void histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&out[i], bins[i]);
}

__global__ void halves(const __half2 *a, const __nv_bfloat162 *b, float *out)
{
    const int t = threadIdx.x;
    const __half2 h = __hfma2(a[t], a[t], __float2half2_rn(0.5f));
    const __nv_bfloat162 v = __hmul2(b[t], b[t]);
    out[4 * t] = __low2float(h);
    out[4 * t + 1] = __high2float(h);
    out[4 * t + 2] = __low2float(v);
    out[4 * t + 3] = __half2float(hexp2(__low2half(h)));
}

// C = A B^T in bf16 with mma.sync: tiles of 64 x 64 x 32, two stages of cp.async, ldmatrix from rows
// of 80 bytes, which are free of bank conflicts. n is a multiple of 64.
__global__ void gemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n)
{
    __shared__ __align__(16) __nv_bfloat16 as[2][64][40], bs[2][64][40];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    const int m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    float acc[2][4][4] = {};
    auto copy = [&](int s, int k) {
        for (int i = t; i < 256; i += 128) {
            const int row = i / 4, col = i % 4 * 8;
            __pipeline_memcpy_async(&as[s][row][col], a + (m0 + row) * n + k + col, 16);
            __pipeline_memcpy_async(&bs[s][row][col], b + (n0 + row) * n + k + col, 16);
        }
        __pipeline_commit();
    };
    copy(0, 0);
    for (int k = 0, s = 0; k < n; k += 32, s ^= 1) {
        if (k + 32 < n)
            copy(s ^ 1, k + 32);
        else
            __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int kk = 0; kk < 32; kk += 16) {
            unsigned fa[2][4], fb[4][2];
            for (int i = 0; i < 2; i++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                             : "r"((unsigned)__cvta_generic_to_shared(
                                 &as[s][wm + i * 16 + lane % 16][kk + lane / 16 * 8])));
            for (int j = 0; j < 4; j++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1])
                             : "r"((unsigned)__cvta_generic_to_shared(
                                 &bs[s][wn + j * 8 + lane % 8][kk + lane / 8 % 2 * 8])));
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                 : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]),
                                   "+f"(acc[i][j][3])
                                 : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]),
                                   "r"(fb[j][0]), "r"(fb[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int v = 0; v < 4; v++)
                c[(m0 + wm + i * 16 + lane / 4 + v / 2 * 8) * n + n0 + wn + j * 8 + lane % 4 * 2 +
                  v % 2] = acc[i][j][v];
}

// Reads one element past the end in the last thread.
__global__ void too_far(const float *in, float *out)
{
    out[threadIdx.x] = in[threadIdx.x + 1];
}

}
