// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors in host memory, with strides, and what the command line says about one.
#ifndef TIR_DRIVER_VALUE_TENSOR_H
#define TIR_DRIVER_VALUE_TENSOR_H

#include "driver/fail.h"
#include "ir/type.h"

// Element [i, j, ...] is at bytes + (offset + i * strides[0] + j * strides[1] + ...) * element
// size. Strides are never negative.
struct tir_tensor {
    enum tir_elem elem;
    uint32_t rank;
    int64_t shape[TIR_MAX_RANK];
    int64_t strides[TIR_MAX_RANK]; // in elements
    int64_t offset;                // in elements
    int64_t count;                 // elements
    uint64_t size;                 // bytes of storage, the offset and gaps included
    uint8_t *bytes;                // owned, from malloc; never NULL once made
};

// Sets up shape, strides (NULL: contiguous rows with `pad` unused elements after each) and storage
// filled with 0xFF, which is NaN in every float. Refuses more than 2^46 bytes.
bool tir_tensor_make(struct tir_tensor *out, enum tir_elem elem, uint32_t rank,
                     const int64_t *shape, const int64_t *strides, int64_t pad, int64_t offset,
                     tir_error *error);
void tir_tensor_free(struct tir_tensor *tensor);
// Another tensor of the same shape and strides, with the same bytes.
bool tir_tensor_clone(struct tir_tensor *out, const struct tir_tensor *from, tir_error *error);

// Bytes of one element; e2m1 has none and is refused by tir_tensor_make.
uint32_t tir_elem_size(enum tir_elem elem);

// Walks a tensor in row-major order of its indices:
//     struct tir_cursor c = tir_cursor_first(t);
//     for (int64_t i = 0; i < t->count; i++, tir_cursor_next(&c)) ... c.at ...
struct tir_cursor {
    const struct tir_tensor *tensor;
    int64_t index[TIR_MAX_RANK];
    uint8_t *at; // the element
};
struct tir_cursor tir_cursor_first(const struct tir_tensor *tensor);
void tir_cursor_next(struct tir_cursor *cursor);

// The first few elements and a newline: " 1 2 3 4 5 6 7 8 ...\n".
void tir_tensor_glimpse(struct tir_text *out, const struct tir_tensor *t);

enum tir_fill {
    TIR_FILL_DEFAULT, // N(0,1), small integers, or nothing for an output
    TIR_FILL_RANDN,
    TIR_FILL_RAND,
    TIR_FILL_RANDINT,
    TIR_FILL_ARANGE,
    TIR_FILL_CONSTANT,
    TIR_FILL_FILE
};

// "randn,pad=3,save=a.npy" in parts.
struct tir_tensor_spec {
    enum tir_fill fill;
    double a, b;      // RANDN: mean and deviation; RAND: range; CONSTANT: a
    int64_t lo, hi;   // RANDINT: range, both included
    const char *file; // FILE: where it is read from; "@name" of an output comes here too
    const char *save; // NULL: not wanted
    int64_t pad, offset;
    uint32_t stride_count;
    int64_t strides[TIR_MAX_RANK];
};
// Of a tensor of `elem`. Strings come from the arena.
bool tir_tensor_spec_parse(struct tir_arena *arena, const char *text, enum tir_elem elem,
                           struct tir_tensor_spec *out, tir_error *error);

// Fills in every element but for FILE and, when `output`, DEFAULT. The numbers depend on `key` and
// the element's index alone, not on strides.
void tir_tensor_fill(struct tir_tensor *t, const struct tir_tensor_spec *given, uint64_t key);

#endif
