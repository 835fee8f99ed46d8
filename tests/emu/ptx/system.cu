// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What device code asks of the system: printf, assert, malloc, recursion, function pointers.
#include <assert.h>
#include <stdio.h>

// The formats of system_test.c, in order; its arguments are computed from the thread's number.
extern "C" __global__ void prints(int from)
{
    int t = from + (int)threadIdx.x;
    printf("%d %i %u %x %X %o|", t, -t, t * 7u, t * 255, t * 4095, t + 8);
    printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%.3d] [%8.3d]|", t, t, -t, t, t, t, t);
    printf("%lld %llu %llx %#x %#o|", -5000000000LL * t, 18000000000000000000ULL, 0xfeedULL << t, t, t);
    printf("%f %.2f %10.3f %-10.1f| %e %.3E %g %G|", t * 1.5, -t * 0.125, t / 3.0, (double)t, t * 1e10,
           t * 1e-7, t * 0.5, t * 1e20);
    printf("%+.1f % .1f %08.2f %a|", (double)t, (double)t, -1.5 * t, t * 0.75);
    printf("%s %10s %-10s %.2s %c%c%%|", "text", "right", "left", "cut", 'a' + t, 'z');
    printf("%*d %-*d %.*f|", 6, t, 4, t, 2, t * 1.25);
    printf("%hd %hhu %ld %zu|\n", (short)t, (unsigned char)t, (long)t, (size_t)t);
}

extern "C" __global__ void returns(int *out)
{
    out[0] = printf("%d %s\n", 1, "two");
    out[1] = printf("nothing\n");
}

extern "C" __global__ void asserts(const int *in, int limit)
{
    assert(in[threadIdx.x] < limit && "too large");
}

// A list built with malloc, walked, and freed.
struct node {
    node *next;
    int value;
};

extern "C" __global__ void lists(int *out, int n)
{
    node *head = nullptr;
    for (int i = 0; i < n; i++) {
        node *fresh = (node *)malloc(sizeof(node));
        fresh->next = head;
        fresh->value = i * (int)(threadIdx.x + 1);
        head = fresh;
    }
    int sum = 0;
    while (head) {
        node *next = head->next;
        sum += head->value;
        free(head);
        head = next;
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void leaks(int **out)
{
    int *p = (int *)malloc(64);
    free(p);
    *out = p;
    p[3] = 1;
}

extern "C" __global__ void frees_twice(int *not_mine)
{
    free(not_mine + 1);
}

__device__ __noinline__ int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

typedef float (*operation)(float, float);
__device__ __noinline__ float add(float a, float b) { return a + b; }
__device__ __noinline__ float multiply(float a, float b) { return a * b; }
__device__ __noinline__ float larger(float a, float b) { return a > b ? a : b; }
__device__ operation table[] = {add, multiply, larger};

extern "C" __global__ void calls(int *deep, float *out, const int *which, float a, float b)
{
    int t = threadIdx.x;
    deep[t] = ackermann(2, t % 4);
    out[t] = table[which[t]](a + t, b);
}

// Indices that are not known when it is compiled: the array lies in local memory.
extern "C" __global__ void local_arrays(unsigned *out, const unsigned *in, int rounds)
{
    unsigned state[16];
    for (int i = 0; i < 16; i++)
        state[i] = in[i] + threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        unsigned at = state[r & 15] & 15;
        state[at] = state[at] * 1664525u + state[(at + r) & 15] + 1013904223u;
    }
    unsigned sum = 0;
    for (int i = 0; i < 16; i++)
        sum ^= state[i] * (i + 1);
    out[threadIdx.x] = sum;
}

extern "C" __global__ void specials(unsigned *out)
{
    unsigned lanemask, dynamic, total, smid, warps;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lanemask));
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(smid));
    asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
    long long before = clock64();
    out[0] = lanemask;
    out[1] = dynamic;
    out[2] = total - dynamic;
    out[3] = smid > 0;
    out[4] = warps > 0;
    out[5] = clock64() > before;
}
