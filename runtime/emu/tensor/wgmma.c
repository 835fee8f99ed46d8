// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The numeric part of wgmma: one warp's 16 rows of a product.
//
// Each warp of a warpgroup has the rows of D whose A it holds in its registers, or that lie there
// in the matrix in shared memory, and all of B. With g = lane / 4 and t = lane % 4, value v of a
// lane is in row g + 8 (v / 2 % 2) and column 8 (v / 4) + 2 t + v % 2: a C of mma for every eight
// columns. Precision is that of mma (mma.c).

#include "emu/tensor/wgmma.h"

#include <string.h>

#include "emu/lane/fp.h"

enum { ROWS = 16, BLOCK = 64, MAX_K = 256 }; // columns of B at a time

static void negate(double *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = -values[i];
}

static enum emu_matrix_fault read_a(const struct emu_wgmma *p, const struct emu_smem *memory,
                                    uint32_t stored, double *left, uint32_t *address)
{
    enum emu_matrix_fault fault = EMU_MATRIX_OK;
    const uint32_t count = emu_element_count(p->a);
    if (p->flags & EMU_WGMMA_A_IN_REGISTERS)
        for (uint32_t r = 0; r < EMU_WGMMA_A_REGISTERS; r++)
            emu_register_decode(p->a, p->a_lanes[r], left + r % 2 * 8 * stored + r / 2 * count,
                                stored);
    else
        fault = emu_smem_matrix_read(memory, &p->a_matrix, p->a, p->warp * ROWS, ROWS, stored, left,
                                     stored, 1, address);
    if (p->flags & EMU_WGMMA_NEGATE_A)
        negate(left, ROWS * stored);
    return fault;
}

static void finish_floats(const struct emu_wgmma *p, const double *sum, uint32_t step,
                          uint32_t *const *d)
{
    for (uint32_t v = 0; v < 4; v++)
        for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
            const uint32_t at = (lane / 4 + v / 2 * 8) * step + lane % 4 * 2 + v % 2;
            const float f = (float)(sum[at] + (p->scale_d ? emu_f32_of(d[v][lane]) : 0));
            d[v][lane] = f != f ? EMU_NAN_F32 : emu_f32_bits(f);
        }
}

static void finish_integers(const struct emu_wgmma *p, const double *sum, uint32_t step,
                            uint32_t *const *d)
{
    for (uint32_t v = 0; v < 4; v++)
        for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
            const uint32_t at = (lane / 4 + v / 2 * 8) * step + lane % 4 * 2 + v % 2;
            const int32_t c = p->scale_d ? (int32_t)d[v][lane] : 0;
            d[v][lane] =
                (uint32_t)emu_matrix_finish(sum[at], c, EMU_s32, p->flags & EMU_WGMMA_SATFINITE);
        }
}

static void finish_halves(const struct emu_wgmma *p, const double *sum, uint32_t step,
                          uint32_t *const *d)
{
    for (uint32_t v = 0; v < 2; v++)
        for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
            const double *at = sum + (lane / 4 + v * 8) * step + lane % 4 * 2;
            uint64_t out = 0;
            for (uint32_t i = 0; i < 2; i++) {
                const double c =
                    p->scale_d ? emu_matrix_c(d[v][lane] >> 16 * i & 0xffff, EMU_f16) : 0;
                out |= emu_matrix_finish(at[i], c, EMU_f16, false) << 16 * i;
            }
            d[v][lane] = (uint32_t)out;
        }
}

enum emu_matrix_fault emu_wgmma_compute(const struct emu_wgmma *p, const struct emu_smem *memory,
                                        uint32_t *address)
{
    double left[ROWS * MAX_K], right[MAX_K * BLOCK], sum[ROWS * BLOCK];
    uint16_t at[ROWS * MAX_K / 2];
    const bool sparse = p->flags & EMU_WGMMA_SPARSE;
    const uint32_t stored = sparse ? p->k / 2 : p->k;
    enum emu_matrix_fault fault = read_a(p, memory, stored, left, address);
    for (uint32_t row = 0; row < ROWS && sparse && !fault; row++) {
        const uint64_t bits = emu_sparse_metadata(p->a, p->metadata, p->k, p->selector, row);
        if (!emu_sparse_positions(p->a, bits, stored, false, at + row * stored)) {
            *address = row;
            return EMU_MATRIX_METADATA;
        }
    }
    for (uint32_t n = 0; n < p->n && !fault; n += BLOCK) {
        const uint32_t columns = p->n - n < BLOCK ? p->n - n : BLOCK;
        fault = emu_smem_matrix_read(memory, &p->b_matrix, p->b, n, columns, p->k, right, 1,
                                     columns, address);
        if (fault)
            break;
        if (p->flags & EMU_WGMMA_NEGATE_B)
            negate(right, p->k * columns);
        emu_matrix_multiply(ROWS, columns, stored, left, sparse ? at : NULL, right, sum);
        for (uint32_t c = 0; c < columns; c += 8)
            if (p->d == EMU_f16)
                finish_halves(p, sum + c, columns, p->d_lanes + (n + c) / 4);
            else
                (p->d == EMU_f32 ? finish_floats : finish_integers)(p, sum + c, columns,
                                                                    p->d_lanes + (n + c) / 2);
    }
    return fault;
}
