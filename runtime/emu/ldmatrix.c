// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16 bits, a row of 16 bytes at an address.

#include <string.h>

#include "emu/decode.h"
#include "emu/matrix.h"
#include "emu/state.h"

static const struct emu_arg *arguments(const struct emu_warp *w, const struct emu_insn *in)
{
    return &w->launch->module->args.at[in->list];
}

enum { MATRIX_TRANS = 1 };

// The row and column of the first of the two elements that a lane holds, and the step to the
// second.
static void position(uint32_t lane, bool trans, uint32_t *first, uint32_t *step)
{
    const uint32_t g = lane / 4, t = lane % 4;
    *first = trans ? 2 * t * 8 + g : g * 8 + 2 * t; // an index into the 64 elements
    *step = trans ? 8 : 1;
}

// src[0] + offset: addresses; list: registers
EMU_RUN(ldmatrix)
{
    uint64_t address[EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    emu_addresses(w, in, address);
    const struct emu_arg *args = arguments(w, in);
    uint32_t out[4][EMU_WARP];
    for (uint32_t m = 0; m < in->count; m++) {
        uint16_t matrix[64];
        for (uint32_t row = 0; row < 8; row++) {
            const uint32_t lane = m * 8 + row;
            memcpy(
                matrix + row * 8,
                emu_resolve(w, lane, (enum emu_space)in->space, address[lane], 16, EMU_LOAD).bytes,
                16);
        }
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            uint32_t first, step;
            position(i, in->op & MATRIX_TRANS, &first, &step);
            out[m][i] = matrix[first] | (uint32_t)matrix[first + step] << 16;
        }
    }
    for (uint32_t m = 0; m < in->count; m++)
        emu_commit(w, args[m].ref, out[m], 4, mask);
}

EMU_RUN(stmatrix)
{
    uint64_t address[EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    emu_addresses(w, in, address);
    for (uint32_t m = 0; m < in->count; m++) {
        uint16_t matrix[64];
        const uint32_t *from = emu_at_ref(w, arguments(w, in)[m].ref);
        for (uint32_t i = 0; i < EMU_WARP; i++) {
            uint32_t first, step;
            position(i, in->op & MATRIX_TRANS, &first, &step);
            matrix[first] = (uint16_t)from[i];
            matrix[first + step] = (uint16_t)(from[i] >> 16);
        }
        for (uint32_t row = 0; row < 8; row++) {
            const uint32_t lane = m * 8 + row;
            const struct emu_cell cell =
                emu_resolve(w, lane, (enum emu_space)in->space, address[lane], 16, EMU_STORE);
            memcpy(cell.bytes, matrix + row * 8, 16);
            memset(cell.shadow, EMU_SET, 16);
        }
    }
}

EMU_RUN(movmatrix)
{
    uint16_t matrix[64];
    uint32_t out[EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    const uint32_t *from = emu_at_ref(w, in->src[0]);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint32_t first, step;
        position(i, false, &first, &step);
        matrix[first] = (uint16_t)from[i];
        matrix[first + step] = (uint16_t)(from[i] >> 16);
    }
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        uint32_t first, step;
        position(i, true, &first, &step);
        out[i] = matrix[first] | (uint32_t)matrix[first + step] << 16;
    }
    emu_commit(w, in->dst, out, 4, mask);
}

// --- decoding ---

static uint32_t matrix_mods(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", "m8n8", "b16", NULL};
    static const char *const counts[] = {"x1", "x2", "x4", NULL};
    emu_dec_need(d, must);
    const int count = emu_dec_one_of(d, counts);
    if (count < 0)
        emu_dec_bad(d, "'.x1', '.x2' or '.x4' is missing");
    d->in->op = emu_dec_mod(d, "trans") ? MATRIX_TRANS : 0;
    d->in->flags |= EMU_INSN_SYNC;
    return 1u << count;
}

static enum emu_space matrix_space(struct emu_dec *d)
{
    return emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC;
}

void emu_decode_ldmatrix(struct emu_dec *d)
{
    const uint32_t count = matrix_mods(d);
    d->in->run = emu_run_ldmatrix;
    emu_dec_args_begin(d);
    emu_dec_registers(d, count, EMU_b32, true);
    emu_dec_memory(d, matrix_space(d));
}

void emu_decode_stmatrix(struct emu_dec *d)
{
    const uint32_t count = matrix_mods(d);
    d->in->run = emu_run_stmatrix;
    emu_dec_memory(d, matrix_space(d));
    emu_dec_args_begin(d);
    emu_dec_registers(d, count, EMU_b32, false);
}

void emu_decode_movmatrix(struct emu_dec *d)
{
    static const char *const must[] = {"sync", "aligned", "m8n8", "trans", "b16", NULL};
    emu_dec_need(d, must);
    d->in->run = emu_run_movmatrix;
    d->in->flags |= EMU_INSN_SYNC;
    d->in->dst = emu_dec_dst(d, EMU_b32);
    d->in->src[0] = emu_dec_src(d, EMU_b32);
}
