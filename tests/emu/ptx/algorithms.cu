// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels over arrays as people write them: scans, sorts, sums in double precision, half arithmetic.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The running sum of one block's elements, and the block's total: each thread keeps ITEMS of them.
template <int ITEMS> __device__ unsigned scan_block(unsigned (&items)[ITEMS])
{
    __shared__ unsigned warps[32];
    unsigned sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        unsigned next = sum + items[i];
        items[i] = sum;
        sum = next;
    }
    unsigned inclusive = sum, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned left = __shfl_up_sync(~0u, inclusive, d);
        inclusive += lane >= d ? left : 0;
    }
    __syncthreads();
    if (lane == 31)
        warps[warp] = inclusive;
    __syncthreads();
    if (warp == 0) {
        unsigned x = lane < blockDim.x / 32 ? warps[lane] : 0;
        for (unsigned d = 1; d < 32; d *= 2) {
            unsigned left = __shfl_up_sync(~0u, x, d);
            x += lane >= d ? left : 0;
        }
        warps[lane] = x;
    }
    __syncthreads();
    unsigned before = inclusive - sum + (warp ? warps[warp - 1] : 0);
    for (int i = 0; i < ITEMS; i++)
        items[i] += before;
    return warps[blockDim.x / 32 - 1];
}

// Running sums over many blocks in one launch: a block waits for the one before it.
extern "C" __global__ void scan(const unsigned *in, unsigned *out, unsigned *turn, unsigned *carry, int n)
{
    __shared__ unsigned before;
    unsigned items[4];
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    for (int i = 0; i < 4; i++)
        items[i] = first + i < n ? in[first + i] : 0;
    unsigned total = scan_block(items);
    if (threadIdx.x == 0) {
        while (atomicAdd(turn, 0) != blockIdx.x)
            ;
        __threadfence();
        before = *carry;
        *carry = before + total;
        __threadfence();
        atomicAdd(turn, 1);
    }
    __syncthreads();
    for (int i = 0; i < 4; i++)
        if (first + i < n)
            out[first + i] = before + items[i];
}

// One block sorts up to 4 numbers a thread, two bits at a time.
extern "C" __global__ void radix_sort(unsigned *data)
{
    extern __shared__ unsigned shared[];
    unsigned key[4], flag[4];
    for (int i = 0; i < 4; i++)
        key[i] = data[threadIdx.x * 4 + i];
    for (int bit = 0; bit < 32; bit++) {
        for (int i = 0; i < 4; i++)
            flag[i] = !(key[i] >> bit & 1);
        unsigned zeros[4] = {flag[0], flag[1], flag[2], flag[3]};
        unsigned total = scan_block(zeros);
        __syncthreads();
        for (int i = 0; i < 4; i++) {
            unsigned at = threadIdx.x * 4 + i;
            shared[flag[i] ? zeros[i] : total + at - zeros[i]] = key[i];
        }
        __syncthreads();
        for (int i = 0; i < 4; i++)
            key[i] = shared[threadIdx.x * 4 + i];
    }
    for (int i = 0; i < 4; i++)
        data[threadIdx.x * 4 + i] = key[i];
}

// Counts in shared memory, then in global memory.
extern "C" __global__ void histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (bins[i])
            atomicAdd(&out[i], bins[i]);
}

// Through shared memory, whose rows are padded.
extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += blockDim.y)
        if (x < columns && y + i < rows)
            tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += blockDim.y)
        if (x < rows && y + i < columns)
            out[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}

// The last block to finish adds up what all have found.
extern "C" __global__ void dot(const double *a, const double *b, double *parts, double *out, unsigned *done,
                               int n)
{
    __shared__ double sums[256];
    __shared__ bool last;
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum = fma(a[i], b[i], sum);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int d = blockDim.x / 2; d; d /= 2) {
        if (threadIdx.x < d)
            sums[threadIdx.x] += sums[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        double all = 0;
        for (int i = 0; i < gridDim.x; i++)
            all += ((volatile double *)parts)[i];
        *out = all;
    }
}

// Functions of the mathematical library, single and double precision.
extern "C" __global__ void functions(const float *in, float *out, const double *in64, double *out64)
{
    int i = threadIdx.x;
    float x = in[i];
    float *o = out + i * 12;
    o[0] = sinf(x);
    o[1] = cosf(x);
    o[2] = expf(x);
    o[3] = logf(fabsf(x) + 1e-3f);
    o[4] = powf(fabsf(x), 1.7f);
    o[5] = atan2f(x, 2.0f);
    o[6] = erff(x);
    o[7] = tanhf(x);
    o[8] = rsqrtf(fabsf(x) + 0.5f);
    o[9] = fmodf(x, 0.75f);
    o[10] = __expf(x);
    o[11] = cbrtf(x);
    double y = in64[i];
    double *p = out64 + i * 6;
    p[0] = sin(y);
    p[1] = exp(y);
    p[2] = log(fabs(y) + 1e-6);
    p[3] = sqrt(fabs(y));
    p[4] = 1.0 / (y + 100.0);
    p[5] = tgamma(fabs(y) + 0.5);
}

extern "C" __global__ void halves(const __half2 *a, const __half2 *b, __half2 *out, const __nv_bfloat162 *c,
                                  const __nv_bfloat162 *d, __nv_bfloat162 *out16)
{
    int i = threadIdx.x;
    out[i * 6] = __hadd2(a[i], b[i]);
    out[i * 6 + 1] = __hfma2(a[i], b[i], a[i]);
    out[i * 6 + 2] = __hmax2(a[i], b[i]);
    out[i * 6 + 3] = __hsub2_sat(a[i], b[i]);
    out[i * 6 + 4] = __hge2(a[i], b[i]);
    out[i * 6 + 5] = __h2div(a[i], b[i]);
    out16[i * 4] = __hmul2(c[i], d[i]);
    out16[i * 4 + 1] = __hfma2_relu(c[i], d[i], c[i]);
    out16[i * 4 + 2] = __hmin2_nan(c[i], d[i]);
    out16[i * 4 + 3] = __float22bfloat162_rn(__bfloat1622float2(c[i]));
}

// Integers that the compiler turns into sequences of its own: division, 128 bits, bit fields.
extern "C" __global__ void integers(const long long *in, long long *out, int divisor)
{
    int i = threadIdx.x;
    long long x = in[i];
    long long *o = out + i * 8;
    o[0] = x / divisor;
    o[1] = (unsigned long long)x % 1000007u;
    o[2] = (long long)(((unsigned __int128)(unsigned long long)x * (unsigned long long)in[31 - i]) >> 64);
    o[3] = __popcll(x) + 100 * __clzll(x) + 10000 * __ffsll(x);
    o[4] = (long long)__brevll(x);
    o[5] = __dp4a((int)x, (int)(x >> 32), 7);
    o[6] = __byte_perm((unsigned)x, (unsigned)(x >> 32), 0x3615);
    o[7] = (long long)__vaddss2((unsigned)x, (unsigned)(x >> 32)) << 32 | __vabsdiffu4((unsigned)x, (unsigned)(x >> 32));
}
