// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is asked of every program: that all targets take it, that the device computes what the
// interpreter does, that no check complains, and that its IR, printed and read again half-way,
// gives the same PTX.
#ifndef TESTS_RANDOM_JUDGE_H
#define TESTS_RANDOM_JUDGE_H

#include "program.h"
#include "tir/runtime.h"

struct judge_options {
    const char *folder; // in which programs find "own.tir"
    const char *path;   // of a file in it
    const char *device; // as tir_rt_device_open takes it
    uint32_t ptxas;     // every so manieth program is assembled; 0: none
    uint32_t reread;    // so many are printed half-way and read again; 0: none
    bool unchecked;     // what sync_check could not check is a finding
    const char *only;   // this target alone; NULL or empty: see below
    bool all_targets;   // else two, and a third one that the seed picks
    bool notes;         // nothing but what ptxas says of products on warpgroups is asked
    bool spills;        // and their kernels must not use local memory
};

struct finding {
    char arch[16];   // the target
    char key[200];   // what went wrong, without numbers: the same for the same mistake
    char text[1200]; // in full
};

// Counts of a run.
struct tally {
    uint64_t programs, refused, launches, assembled;
    uint64_t longest, longest_seed; // bytes of PTX that an entry of a program has on average
    uint64_t products;              // programs with products on warpgroups, where notes are asked
    uint64_t spilling;              // those that use local memory beside them
    uint64_t spilled, spilled_seed; // its bytes, the most
};

struct judge {
    struct judge_options options;
    tir_runtime *runtime;
    tir_rt_device *device;
    const char *own_arch; // what a GPU runs; NULL: an emulator, which runs all
    char *stage;          // what is done now, for the message of a crash; 40 bytes
    char *arch;           // the target; 16 bytes
    struct tally *tally;
};

bool judge_open(struct judge *j, tir_error *error);
void judge_close(struct judge *j);

// False: *finding says what is wrong.
bool judge_program(struct judge *j, const struct program *p, uint64_t seed,
                   struct finding *finding);

#endif
