// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parameters of a PTX kernel, from the words of the command line.
#ifndef TIR_DRIVER_EMU_ARGS_H
#define TIR_DRIVER_EMU_ARGS_H

#include "driver/emu/map.h"
#include "driver/value/scalar.h"
#include "driver/value/tensor.h"

// One word. A buffer without contents is uninitialised on the device.
struct tir_emu_arg {
    const char *word;
    bool is_buffer;
    bool is_hidden; // a buffer that is no parameter: maps are over it
    bool is_map;
    struct tir_emu_map map;
    struct tir_scalar scalar;
    struct tir_tensor_spec spec;
    struct tir_tensor tensor; // what the device starts from; freed by tir_emu_args_release
    struct tir_tensor result; // what it ends with; its bytes are NULL before the launch
};

struct tir_emu_args {
    struct tir_emu_arg *at;
    uint32_t count;
};

// Reads "f32=1.5", "buf:bf16[256,64]=randn->out.npy", the same with "mem:", and
// "tmap:0:box=64x128". False: *error; *out can be released all the same.
bool tir_emu_args_parse(struct tir_arena *arena, const char *const *words, uint32_t count,
                        uint64_t seed, struct tir_emu_args *out, tir_error *error);
void tir_emu_args_release(struct tir_emu_args *args);

#endif
