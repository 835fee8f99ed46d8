// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16 bits, a row of 16 bytes at an address.
//
// Matrices of bytes have 8 or 16 rows of 16 elements in memory. A register holds four bytes of one
// row: of lane i, row i / 4 (and 8 more in the second register of a matrix), from column 4 (i % 4)
// on. With .trans rows are columns of memory. Elements of 6 or 4 bits lie packed at the front of
// their row, and in the low bits of a byte in a register. Their places were compared with
// measurements of other projects on sm_120, not with a device.

#include <string.h>

#include "emu/decode/decode.h"
#include "emu/run/state.h"
#include "emu/tensor/matrix.h"

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

// One row of 16 elements as bytes.
static void load_row(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, uint64_t address,
                     uint8_t *out)
{
    const enum emu_space space = (enum emu_space)in->space;
    const uint32_t bits = in->width, size = 2 * bits;
    uint8_t packed[17] = {0};
    if (address % 16)
        emu_fault_access(w, lane, "misaligned", "load", "shared", address, 16);
    memcpy(packed, emu_resolve(w, lane, space, address, size == 16 ? 16 : 8, EMU_LOAD).bytes,
           size == 16 ? 16 : 8);
    if (size == 12)
        memcpy(packed + 8, emu_resolve(w, lane, space, address + 8, 4, EMU_LOAD).bytes, 4);
    for (uint32_t i = 0; i < 16; i++) {
        const uint8_t *at = packed + i * bits / 8;
        const uint32_t two = at[0] | (uint32_t)at[1] << 8;
        out[i] = (uint8_t)(two >> i * bits % 8 & ((1u << bits) - 1));
    }
}

// src[0] + offset: addresses; list: registers; width: bits of an element in memory
EMU_RUN(ldmatrix_bytes)
{
    uint64_t address[EMU_WARP];
    uint32_t out[4][EMU_WARP] = {{0}};
    if (!emu_whole_warp(w, mask))
        return;
    emu_addresses(w, in, address);
    const bool trans = in->op & MATRIX_TRANS;
    const uint32_t halves = trans ? 2 : 1, rows = 8 * halves;
    for (uint32_t m = 0; m < in->count / halves; m++) {
        uint8_t matrix[16][16];
        for (uint32_t row = 0; row < rows; row++)
            load_row(w, in, m * rows + row, address[m * rows + row], matrix[row]);
        for (uint32_t i = 0; i < EMU_WARP * halves * 4; i++) {
            const uint32_t lane = i / 4 % EMU_WARP, half = i / (4 * EMU_WARP);
            const uint32_t row = lane / 4 + 8 * half, column = lane % 4 * 4 + i % 4;
            const uint32_t value = trans ? matrix[column][row] : matrix[row][column];
            out[m * halves + half][lane] |= value << 8 * (i % 4);
        }
    }
    for (uint32_t k = 0; k < in->count; k++)
        emu_commit(w, arguments(w, in)[k].ref, out[k], 4, mask);
}

// A register holds bytes of two columns in rows i / 4 and i / 4 + 8; columns are rows of memory.
EMU_RUN(stmatrix_bytes)
{
    uint64_t address[EMU_WARP];
    if (!emu_whole_warp(w, mask))
        return;
    emu_addresses(w, in, address);
    for (uint32_t m = 0; m < in->count; m++) {
        uint8_t matrix[8][16];
        const uint32_t *from = emu_at_ref(w, arguments(w, in)[m].ref);
        for (uint32_t i = 0; i < EMU_WARP * 4; i++)
            matrix[i / 4 % 4 * 2 + i % 2][i / 16 + i % 4 / 2 * 8] =
                (uint8_t)(from[i / 4] >> 8 * (i % 4));
        for (uint32_t row = 0; row < 8; row++) {
            const struct emu_cell cell = emu_resolve(w, m * 8 + row, (enum emu_space)in->space,
                                                     address[m * 8 + row], 16, EMU_STORE);
            memcpy(cell.bytes, matrix[row], 16);
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
    static const char *const must[] = {"sync", "aligned", NULL};
    static const char *const counts[] = {"x1", "x2", "x4", NULL};
    emu_dec_need(d, must);
    const int count = emu_dec_one_of(d, counts);
    if (count < 0)
        emu_dec_bad(d, "'.x1', '.x2' or '.x4' is missing");
    d->in->op = emu_dec_mod(d, "trans") ? MATRIX_TRANS : 0;
    d->in->flags |= EMU_INSN_SYNC;
    return 1u << count;
}

static void need_words(struct emu_dec *d)
{
    static const char *const must[] = {"m8n8", "b16", NULL};
    emu_dec_need(d, must);
}

static enum emu_space matrix_space(struct emu_dec *d)
{
    return emu_dec_mod(d, "shared") || emu_dec_mod(d, "shared::cta") ? EMU_SHARED : EMU_GENERIC;
}

// Bits of an element in memory: 8, or those of a packed format.
static uint8_t byte_bits(struct emu_dec *d)
{
    static const char *const formats[] = {"b4x16_p64", "b6x16_p32", NULL};
    if (emu_dec_mod(d, "b8"))
        return 8;
    const int format = emu_dec_mod(d, "b8x16") ? emu_dec_one_of(d, formats) : -1;
    if (format < 0)
        emu_dec_bad(d, "the format of the elements is missing");
    return format ? 6 : 4;
}

void emu_decode_ldmatrix(struct emu_dec *d)
{
    static const char *const shapes[] = {"m8n16", "m16n16", NULL};
    uint32_t count = matrix_mods(d);
    const int shape = emu_dec_one_of(d, shapes);
    d->in->run = shape < 0 ? emu_run_ldmatrix : emu_run_ldmatrix_bytes;
    if (shape < 0) {
        need_words(d);
    } else {
        d->in->width = byte_bits(d);
        if ((shape == 1) != (d->in->op == MATRIX_TRANS))
            emu_dec_bad(d, "'.m16n16' needs '.trans', and '.m8n16' has none");
        if (shape == 1 ? count == 4 : d->in->width == 8)
            emu_dec_bad(d, "the shape has no such number or format");
        count *= shape == 1 ? 2 : 1;
    }
    emu_dec_args_begin(d);
    emu_dec_registers(d, count, EMU_b32, true);
    emu_dec_memory(d, matrix_space(d));
}

void emu_decode_stmatrix(struct emu_dec *d)
{
    const uint32_t count = matrix_mods(d);
    if (emu_dec_mod(d, "m16n8")) {
        static const char *const must[] = {"b8", NULL};
        emu_dec_need(d, must);
        if (!(d->in->op & MATRIX_TRANS))
            emu_dec_bad(d, "'.m16n8' needs '.trans'");
        d->in->run = emu_run_stmatrix_bytes;
    } else {
        need_words(d);
        d->in->run = emu_run_stmatrix;
    }
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
