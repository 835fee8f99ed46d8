// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tensors of the block begin with.
#include "block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BF16 TIR_ELEMENT_BF16, "<u2"
#define F32  TIR_ELEMENT_F32, "<f4"

const struct tensor_info tensors[TENSORS] = {
    [INPUT] = {BF16, BATCH *MODEL, 2},
    [GAIN_1] = {BF16, MODEL, 2, .mean = 1, .spread = 0.2},
    [NORMED_1] = {BF16, BATCH *MODEL, 2},
    [W_QKV] = {BF16, ROW *MODEL, 2, .spread = 0.0625}, // 1 / sqrt(MODEL)
    [QKV] = {BF16, BATCH *ROW, 2},
    [COS] = {F32, CACHE *HEAD / 2, 4},
    [SIN] = {F32, CACHE *HEAD / 2, 4},
    [LENGTH] = {TIR_ELEMENT_I32, "<i4", BATCH, 4},
    [Q] = {BF16, BATCH *MODEL, 2},
    [K] = {BF16, BATCH *GROUPS *CACHE *HEAD, 2, .spread = 1},
    [V] = {BF16, BATCH *GROUPS *CACHE *HEAD, 2, .spread = 1},
    [O] = {BF16, BATCH *MODEL, 2},
    [W_O] = {BF16, MODEL *MODEL, 2, .spread = 0.0625},
    [MIDDLE] = {BF16, BATCH *MODEL, 2},
    [GAIN_2] = {BF16, MODEL, 2, .mean = 1, .spread = 0.2},
    [NORMED_2] = {BF16, BATCH *MODEL, 2},
    [W_GATE] = {BF16, HIDDEN *MODEL, 2, .spread = 0.0625},
    [W_UP] = {BF16, HIDDEN *MODEL, 2, .spread = 0.0625},
    [GATED] = {BF16, BATCH *HIDDEN, 2},
    [W_DOWN] = {BF16, MODEL *HIDDEN, 2, .spread = 0.0442}, // 1 / sqrt(HIDDEN)
    [OUTPUT] = {BF16, BATCH *MODEL, 2},
};

float bf16_value(uint16_t bits)
{
    const uint32_t whole = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return value;
}

// To the nearest, and of two to the even one.
static uint16_t bf16_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Between 0 and 1: the upper half of a linear congruential generator (Knuth's MMIX).
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 32) + 0.5) / 4294967296.0;
}

// Normally distributed, by Box and Muller.
static void fill(uint64_t *state, uint16_t *bits, size_t count, double mean, double spread)
{
    for (size_t i = 0; i < count; i++) {
        const double radius = sqrt(-2 * log(uniform(state)));
        bits[i] =
            bf16_bits((float)(mean + spread * radius * cos(6.283185307179586 * uniform(state))));
    }
}

// Rotary embedding: pair i turns by p / 10000^(2 i / HEAD) at position p.
static void fill_angles(float *values, double (*function)(double))
{
    for (int p = 0; p < CACHE; p++)
        for (int i = 0; i < HEAD / 2; i++)
            values[p * HEAD / 2 + i] = (float)function(p / pow(10000, 2.0 * i / HEAD));
}

// Rows of a cache past its length are zeros. They have the weight 0, but a NaN there would spread.
static void clear_later(uint16_t *cache)
{
    for (int row = 0; row < BATCH * GROUPS; row++) {
        const int length = first_lengths[row / GROUPS];
        memset(cache + (row * CACHE + length) * HEAD, 0,
               (size_t)(CACHE - length) * HEAD * sizeof *cache);
    }
}

bool make_data(struct data *data)
{
    uint64_t state = 1;
    memset(data, 0, sizeof *data);
    for (int t = 0; t < TENSORS; t++) {
        const struct tensor_info *info = &tensors[t];
        if (info->spread == 0 && t != COS && t != SIN)
            continue;
        data->contents[t] = malloc(tensor_bytes(t));
        if (!data->contents[t]) {
            free_data(data);
            return false;
        }
        if (info->spread != 0)
            fill(&state, data->contents[t], info->count, info->mean, info->spread);
    }
    fill_angles(data->contents[COS], cos);
    fill_angles(data->contents[SIN], sin);
    clear_later(data->contents[K]);
    clear_later(data->contents[V]);
    fill(&state, data->inputs[0], TOKENS * BATCH * MODEL, 0, 1);
    return true;
}

void free_data(struct data *data)
{
    for (int t = 0; t < TENSORS; t++)
        free(data->contents[t]);
}
