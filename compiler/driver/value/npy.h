// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy's .npy files, versions 1 to 3. bf16 and the 8-bit floats, which NumPy lacks, are kept as
// raw bytes (V2, V1), as the ml_dtypes package does, or read from u2 and u1.
#ifndef TIR_DRIVER_VALUE_NPY_H
#define TIR_DRIVER_VALUE_NPY_H

#include <stdio.h>

#include "driver/value/tensor.h"

// The header's contents, and the place of the data.
struct tir_npy {
    char type[8]; // e.g. "<f4"
    uint32_t rank;
    int64_t shape[TIR_MAX_RANK];
    bool fortran;
    size_t data; // offset of the first element
};

// Reads a header from untrusted bytes, and checks that the data is all there. `name` is for
// messages.
bool tir_npy_header(const char *name, const uint8_t *bytes, size_t size, struct tir_npy *out,
                    tir_error *error);
// Copies the data into a tensor of the same shape, whatever its strides. Refuses another type.
bool tir_npy_read(const char *name, const uint8_t *bytes, size_t size, const struct tir_npy *npy,
                  struct tir_tensor *into, tir_error *error);
// A file, read in two parts: a shape that is not wanted costs no more than the header, and a file
// without an end no more than its header says. Zeroed, or given back by tir_npy_close.
struct tir_npy_file {
    const char *path;
    FILE *file;
    char *bytes; // what was read, from malloc
    size_t size;
    struct tir_npy npy;
    uint64_t need; // bytes of data
};
bool tir_npy_open(const char *path, struct tir_npy_file *f, tir_error *error); // the header
// The data, into a tensor of the same shape.
bool tir_npy_load(struct tir_npy_file *f, struct tir_tensor *into, tir_error *error);
void tir_npy_close(struct tir_npy_file *f);

// The file that holds `tensor`, in C order, little-endian. *out is from malloc.
bool tir_npy_write(const struct tir_tensor *tensor, uint8_t **out, size_t *size, tir_error *error);
// The same into a file.
bool tir_npy_save(const char *path, const struct tir_tensor *tensor, tir_error *error);

#endif
