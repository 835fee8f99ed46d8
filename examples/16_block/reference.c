// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The block's formulas, one sequence and one row after the other, in double precision and without
// any rounding between. Nothing is shared with the kernels but the weights.
#include "block.h"

#include <complex.h>
#include <math.h>

// Keys and values so far of one sequence.
struct cache {
    double k[GROUPS][CACHE][HEAD], v[GROUPS][CACHE][HEAD];
    int length;
};

static double weight(const struct data *data, enum tensor t, int i)
{
    return (double)bf16_value(((const uint16_t *)data->contents[t])[i]);
}

// y = W x
static void multiply(const struct data *data, enum tensor w, const double *x, int columns,
                     double *y, int rows)
{
    for (int i = 0; i < rows; i++) {
        y[i] = 0;
        for (int j = 0; j < columns; j++)
            y[i] += weight(data, w, i * columns + j) * x[j];
    }
}

static void norm(const struct data *data, enum tensor gain, const double *x, double *y)
{
    double square = 0;
    for (int i = 0; i < MODEL; i++)
        square += x[i] * x[i];
    for (int i = 0; i < MODEL; i++)
        y[i] = x[i] / sqrt(square / MODEL + EPSILON) * weight(data, gain, i);
}

// Pairs of a head as complex numbers, each turned by its own angle.
static void turn(const double *x, int position, double *y)
{
    for (int i = 0; i < HEAD / 2; i++) {
        const double angle = position / pow(10000, 2.0 * i / HEAD);
        const double complex z = (x[i] + x[i + HEAD / 2] * I) * cexp(angle * I);
        y[i] = creal(z);
        y[i + HEAD / 2] = cimag(z);
    }
}

static void attend(const struct cache *cache, int g, const double *q, double *o)
{
    double weights[CACHE], most = -INFINITY, total = 0;
    for (int t = 0; t < cache->length; t++) {
        weights[t] = 0;
        for (int d = 0; d < HEAD; d++)
            weights[t] += SCALE * q[d] * cache->k[g][t][d];
        most = fmax(most, weights[t]);
    }
    for (int d = 0; d < HEAD; d++)
        o[d] = 0;
    for (int t = 0; t < cache->length; t++) {
        const double w = exp(weights[t] - most);
        total += w;
        for (int d = 0; d < HEAD; d++)
            o[d] += w * cache->v[g][t][d];
    }
    for (int d = 0; d < HEAD; d++)
        o[d] /= total;
}

static void block(const struct data *data, struct cache *cache, const double *x, double *y)
{
    double normed[MODEL], qkv[ROW], q[HEAD], o[MODEL], middle[MODEL], gate[HIDDEN], up[HIDDEN];
    const int at = cache->length++;
    norm(data, GAIN_1, x, normed);
    multiply(data, W_QKV, normed, MODEL, qkv, ROW);
    for (int g = 0; g < GROUPS; g++) {
        turn(qkv + (HEADS + g) * HEAD, at, cache->k[g][at]);
        for (int d = 0; d < HEAD; d++)
            cache->v[g][at][d] = qkv[(HEADS + GROUPS + g) * HEAD + d];
    }
    for (int h = 0; h < HEADS; h++) {
        turn(qkv + h * HEAD, at, q);
        attend(cache, h / (HEADS / GROUPS), q, o + h * HEAD);
    }
    multiply(data, W_O, o, MODEL, middle, MODEL);
    for (int i = 0; i < MODEL; i++)
        middle[i] += x[i];
    norm(data, GAIN_2, middle, normed);
    multiply(data, W_GATE, normed, MODEL, gate, HIDDEN);
    multiply(data, W_UP, normed, MODEL, up, HIDDEN);
    for (int i = 0; i < HIDDEN; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    multiply(data, W_DOWN, gate, HIDDEN, y, MODEL);
    for (int i = 0; i < MODEL; i++)
        y[i] += middle[i];
}

static void start(const struct data *data, struct cache *cache, int b)
{
    cache->length = first_lengths[b];
    for (int g = 0; g < GROUPS; g++)
        for (int t = 0; t < cache->length; t++)
            for (int d = 0; d < HEAD; d++) {
                const int i = ((b * GROUPS + g) * CACHE + t) * HEAD + d;
                cache->k[g][t][d] = weight(data, K, i);
                cache->v[g][t][d] = weight(data, V, i);
            }
}

void reference(const struct data *data, float *outputs)
{
    static struct cache cache;
    for (int b = 0; b < BATCH; b++) {
        start(data, &cache, b);
        for (int token = 0; token < TOKENS; token++) {
            double x[MODEL], y[MODEL];
            for (int i = 0; i < MODEL; i++)
                x[i] = (double)bf16_value(data->inputs[token][b * MODEL + i]);
            block(data, &cache, x, y);
            for (int i = 0; i < MODEL; i++)
                outputs[(token * BATCH + b) * MODEL + i] = (float)y[i];
        }
    }
}
