// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tcgen05.cp: copies from shared memory to tensor memory.

#include <string.h>

#include "emu/tensor/umma_work.h"

struct copy {
    struct emu_umma_work work;
    struct emu_cta *ctas[2];
    uint32_t count, to;
    uint64_t from;
};

static const struct {
    uint8_t rows, units, times; // units of 16 bytes; how often the rows are written
} copies[] = {
    [EMU_UMMA_128X256B] = {128, 2, 1},     [EMU_UMMA_128X128B] = {128, 1, 1},
    [EMU_UMMA_4X256B] = {4, 2, 1},         [EMU_UMMA_64X128B_02_13] = {64, 1, 2},
    [EMU_UMMA_64X128B_01_23] = {64, 1, 2}, [EMU_UMMA_32X128B_X4] = {32, 1, 4},
};

// The lane that row r goes to for the n-th time: each pair of warps has all rows.
static uint32_t lane_of(uint32_t shape, uint32_t r, uint32_t n)
{
    if (shape == EMU_UMMA_64X128B_02_13)
        return r / 32 * 64 + n * 32 + r % 32;
    return n * copies[shape].rows + r;
}

// Sixteen narrow elements at the front of 16 bytes become bytes: e2m1 in the middle of each.
static void widen(const uint8_t *from, uint32_t bits, uint8_t *to)
{
    for (uint32_t i = 0; i < 16; i++) {
        const uint8_t *at = from + i * bits / 8;
        const uint32_t two = (uint32_t)at[0] | (uint32_t)at[1] << 8;
        to[i] = (uint8_t)((two >> i * bits % 8 & ((1u << bits) - 1)) << (bits == 4 ? 2 : 0));
    }
}

static void copy_mark(const struct copy *c, uint8_t status)
{
    const uint32_t shape = c->work.op.in->size, lane = c->to >> 16, column = c->to & 0xffff;
    for (uint32_t cta = 0; cta < c->count; cta++)
        for (uint32_t r = 0; r < copies[shape].rows; r++)
            for (uint32_t n = 0; n < copies[shape].times; n++)
                memset(&c->ctas[cta]->tmem->shadow[lane + lane_of(shape, r, n)][column], status,
                       4u * copies[shape].units);
}

static void copy_unit(struct copy *c, struct emu_cta *cta, uint32_t r, uint32_t u)
{
    const struct emu_element byte = emu_element_packed(EMU_u8);
    const struct emu_smem_matrix m = emu_umma_matrix(c->from, false);
    const struct emu_smem memory = emu_umma_memory(&c->work, cta);
    const uint32_t shape = c->work.op.in->size, bits = c->work.op.in->width;
    const uint32_t address = emu_smem_unit(&m, byte, r, 16 * u);
    uint8_t unit[16];
    if (emu_smem_check(&memory, address, bits ? 2 * bits : sizeof unit))
        emu_op_fault(&c->work.op, "uninitialised shared memory is read by tcgen05.cp at 0x%x",
                     address);
    const uint8_t *from = memory.bytes + (address - EMU_SHARED_START);
    if (memory.read)
        memory.read(memory.user, from);
    if (bits)
        widen(from, bits, unit);
    else
        memcpy(unit, from, sizeof unit);
    for (uint32_t n = 0; n < copies[shape].times; n++) {
        const uint32_t lane = (c->to >> 16) + lane_of(shape, r, n);
        const uint32_t column = (c->to & 0xffff) + 4 * u;
        emu_umma_access(&c->work, cta, lane, column, 4, EMU_STORE);
        memcpy(&cta->tmem->words[lane][column], unit, sizeof unit);
    }
}

static void copy_done(struct emu_umma_work *work)
{
    struct copy *c = (struct copy *)work;
    const uint32_t shape = work->op.in->size;
    for (uint32_t cta = 0; cta < c->count; cta++)
        for (uint32_t r = 0; r < copies[shape].rows; r++)
            for (uint32_t u = 0; u < copies[shape].units; u++)
                copy_unit(c, c->ctas[cta], r, u);
    copy_mark(c, EMU_SET);
}

// src[0] + offset: where to; src[1]: descriptor; size: enum emu_umma_copy; width: of the elements
// that become bytes, or 0
EMU_RUN(umma_copy)
{
    const bool pair = in->op & EMU_UMMA_PAIR;
    for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        struct copy *c = emu_umma_work_new(w, in, lane, sizeof *c, copy_done);
        struct emu_cta *first = &w->cta->cluster->ctas[pair ? w->cta->rank & ~1u : w->cta->rank];
        c->count = pair ? 2 : 1;
        c->to = ((const uint32_t *)emu_at_ref(w, in->src[0]))[lane] + (uint32_t)in->offset;
        c->from = ((const uint64_t *)emu_at_ref(w, in->src[1]))[lane];
        if (c->to >> 16 && (in->size != EMU_UMMA_4X256B || c->to >> 16 > EMU_TMEM_LANES - 4))
            emu_fault(w, lane, "misaligned tensor memory address 0x%x of a copy", c->to);
        for (uint32_t i = 0; i < c->count; i++) {
            c->ctas[i] = first + i;
            for (uint32_t k = 0; k < 4u * copies[in->size].units; k++)
                emu_tmem_check(w, lane, c->ctas[i], (c->to & 0xffff) + k);
        }
        emu_umma_check_matrix(w, lane, c->from);
        emu_umma_order(&c->work, 0);
        copy_mark(c, EMU_IN_FLIGHT);
        emu_op_issued(&c->work.op);
    }
}
