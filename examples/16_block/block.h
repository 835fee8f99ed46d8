// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sizes of the block, its tensors and what they begin with.
#ifndef EXAMPLES_BLOCK_H
#define EXAMPLES_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tir/artifact.h>
#include <tir/base.h>

enum {
    BATCH = 3,                         // sequences
    HEADS = 4,                         // of queries
    GROUPS = 2,                        // heads of keys and of values
    HEAD = 64,                         // elements of a head
    MODEL = HEADS * HEAD,              // of a row between blocks
    ROW = (HEADS + 2 * GROUPS) * HEAD, // of what the product QKV gives
    HIDDEN = 512,                      // units of the MLP
    CACHE = 150,                       // keys that a sequence has room for
    TOKENS = 6                         // new ones of each sequence
};
#define EPSILON   1e-6
#define SCALE     0.125 // of the scores: 1 / sqrt(HEAD)

// What a result may be off by, as a share of max(|it|, rms of all): results of eight launches are
// rounded to bf16, each by 2^-9 of its size at most.
#define TOLERANCE (1.0 / 32)

// Keys that each sequence has before: none, some, and more than one tile of keys.
static const int first_lengths[BATCH] = {0, 5, 127};

enum tensor {
    INPUT,
    GAIN_1,
    NORMED_1,
    W_QKV,
    QKV,
    COS,
    SIN,
    LENGTH,
    Q,
    K,
    V,
    O,
    W_O,
    MIDDLE,
    GAIN_2,
    NORMED_2,
    W_GATE,
    W_UP,
    GATED,
    W_DOWN,
    OUTPUT,
    TENSORS
};

struct tensor_info {
    tir_element element;
    const char *numpy;   // the element in a file of NumPy
    size_t count, bytes; // elements, and bytes of one
    double mean, spread; // of the random numbers that it begins with; both 0: none
};
extern const struct tensor_info tensors[TENSORS];

static inline size_t tensor_bytes(int t)
{
    return tensors[t].count * tensors[t].bytes;
}

// bf16 is the upper half of an f32.
float bf16_value(uint16_t bits);

struct data {
    void *contents[TENSORS]; // NULL: what a launch leaves there
    uint16_t inputs[TOKENS][BATCH * MODEL];
};

// Random weights, the angles of positions, caches and inputs. False: no memory.
bool make_data(struct data *data);
void free_data(struct data *data);

// The outputs of all tokens, [TOKENS, BATCH, MODEL], by the block's formulas in double precision.
void reference(const struct data *data, float *outputs);

#endif
