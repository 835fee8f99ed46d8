// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The GPU that the emulator is compared with, through the few calls of the driver that this needs.
#ifndef TESTS_EMU_HARDWARE_H
#define TESTS_EMU_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPU_SOURCE = 1 << 20, GPU_RESULT = 1 << 18 }; // bytes of the two buffers of a launch

struct gpu {
    int (*load)(void **, const void *);
    int (*unload)(void *);
    int (*function)(void **, void *, const char *);
    int (*to_device)(uint64_t, const void *, size_t);
    int (*to_host)(void *, uint64_t, size_t);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*synchronize)(void);
    uint64_t src, dst;
};

// A launch of the kernel `each` of a module, whose parameters are the two buffers.
struct gpu_job {
    unsigned grid, threads;
    const void *src;
    size_t src_size;
    void *out;
    size_t out_size;
};

// False when there is no driver or no GPU.
bool gpu_open(struct gpu *g);
// Gives the driver's status, 0 when all went well.
int gpu_run(struct gpu *g, const char *text, const struct gpu_job *job);

// Measures how far sums of matrix products are from those of the GPU, or, when g is NULL, only
// whether the emulator runs them. Gives the exit status of the program.
int hardware_sums(struct gpu *g);

#endif
