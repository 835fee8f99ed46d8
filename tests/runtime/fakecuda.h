// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a test can tell the fake CUDA driver, and ask it afterwards.
#ifndef TESTS_RUNTIME_FAKECUDA_H
#define TESTS_RUNTIME_FAKECUDA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"

struct fake_launch {
    char function[32];
    unsigned int grid[3], block[3], cluster[3], preferred[3];
    unsigned int shared_bytes;
    cu_stream stream;
    bool early;         // it may overlap the launch before it
    bool cooperative;   // its CTAs run at the same time
    size_t params_size; // of a block; 0: the launch named every parameter instead
    uint32_t parts;     // how many of them lie in `params`, one behind the other
    uint8_t params[4096];
};

struct fake_cuda {
    // Told by the test.
    int device_count, major, minor, max_shared, version;
    const char *missing; // an entry point this driver does not have
    atomic_int fail_at;  // the call that fails, counting from 1; 0: none
    int fail_on;         // so do all after it
    cu_result fail_with;
    atomic_uint sticky;       // what every call that touches the device returns from now on
    unsigned int fault_after; // the launch that makes `sticky` an illegal address; 0: none
    const char *jit_error;    // what compiling PTX fails with, as the log; NULL: it works
    int refuse_cubin;         // cubins are CUDA_ERROR_NO_BINARY_FOR_GPU
    atomic_int busy;          // how often a stream is not done yet when asked
    int active_clusters;      // that fit at a time
    atomic_int capturing;     // a stream is, in the strictest mode
    atomic_int hold;          // loading PTX takes until this is 0
    int idle;                 // launches are written down alone
    atomic_int hold_launch;   // 1: the next launch makes this 2 and begins when it is 0
    void (*at_end)(void *at_end_user); // is called before a capture ends; NULL: nothing is
    void *at_end_user;

    // Asked by the test.
    atomic_int calls;
    atomic_int failed_release; // the call that failed was to free or restore something
    atomic_int memory, modules, streams, events, contexts, pools, graphs; // alive
    cu_context context;                                                   // that was retained last
    size_t scratch_size;                                                  // that was taken last
    cu_stream scratch_stream;
    uint64_t pool_keeps; // bytes that a pool does not give back
    atomic_int holding;  // threads that assemble PTX
    atomic_uint launches;
    atomic_int cubins, assembled; // images that were loaded, by kind
    char assembled_last[1024];    // the start of the PTX
    int max_dynamic_shared;
    struct fake_launch last;
};

// The state. It begins as one sm_90 GPU on which everything works.
struct fake_cuda *fake_cuda(void);

#endif
