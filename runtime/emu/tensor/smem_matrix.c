// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrices in shared memory.

#include "emu/tensor/smem_matrix.h"

#include <string.h>

#include "emu/device.h"

enum { UNIT = 16, MAX_UNIT = 128 }; // bytes, elements

struct emu_smem_matrix emu_smem_matrix_of(uint64_t descriptor)
{
    return (struct emu_smem_matrix){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                                    .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                                    .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                                    .base = (uint32_t)(descriptor >> 49 & 7)};
}

static uint32_t swizzled(const struct emu_smem_matrix *m, uint32_t address)
{
    if (!m->swizzle)
        return address;
    const uint32_t mask = m->swizzle / UNIT - 1, line = (address >> 7) - m->base;
    return m->wide ? address ^ (line & 3) << 5 : address ^ (line & mask) << 4;
}

uint32_t emu_smem_unit(const struct emu_smem_matrix *m, struct emu_element e, uint32_t i,
                       uint32_t k)
{
    const uint32_t t = UNIT * 8u / e.bits, s = m->swizzle, units = s / UNIT;
    uint32_t at = m->start;
    if (!m->mn_major)
        at += i % 8 * (s ? s : UNIT) + i / 8 * m->stride + k / t * (s ? UNIT : m->leading);
    else if (!s)
        at += i / t * m->stride + k % 8 * UNIT + k / 8 * m->leading;
    else
        at += i / t % units * UNIT + i / (t * units) * m->leading + k % 8 * s + k / 8 * m->stride;
    return swizzled(m, at);
}

enum emu_matrix_fault emu_smem_check(const struct emu_smem *memory, uint32_t address, uint32_t used)
{
    const uint32_t at = address - EMU_SHARED_START;
    if (address < EMU_SHARED_START || at + UNIT > memory->size)
        return EMU_MATRIX_OUTSIDE;
    if (!memory->shadow)
        return EMU_MATRIX_OK;
    uint64_t shadow[2];
    const uint64_t set = EMU_SET * (uint64_t)0x0101010101010101;
    memcpy(shadow, memory->shadow + at, sizeof shadow);
    memset((uint8_t *)shadow + used, EMU_SET, UNIT - used);
    if (shadow[0] == set && shadow[1] == set)
        return EMU_MATRIX_OK;
    return memchr(memory->shadow + at, EMU_IN_FLIGHT, used) ? EMU_MATRIX_IN_FLIGHT
                                                            : EMU_MATRIX_UNSET;
}

enum emu_matrix_fault emu_smem_matrix_read(const struct emu_smem *memory,
                                           const struct emu_smem_matrix *m, struct emu_element e,
                                           uint32_t first, uint32_t rows, uint32_t columns,
                                           double *out, uint32_t row_step, uint32_t column_step,
                                           uint32_t *address)
{
    const uint32_t t = UNIT * 8u / e.bits;
    const bool is_narrow = e.front && emu_types[e.type].bits < 8;
    const uint32_t used = is_narrow ? UNIT * emu_types[e.type].bits / 8u : UNIT;
    const uint32_t di = m->mn_major ? t : 1, dk = m->mn_major ? 1 : t;
    const uint32_t step = m->mn_major ? row_step : column_step; // between elements of a unit
    for (uint32_t i = 0; i < rows; i += di)
        for (uint32_t k = 0; k < columns; k += dk) {
            double values[MAX_UNIT], *to = out + (size_t)i * row_step + (size_t)k * column_step;
            *address = emu_smem_unit(m, e, first + i, k);
            const enum emu_matrix_fault fault = emu_smem_check(memory, *address, used);
            if (fault)
                return fault;
            if (memory->read)
                memory->read(memory->user, memory->bytes + (*address - EMU_SHARED_START));
            emu_elements_decode(e, memory->bytes + (*address - EMU_SHARED_START), t,
                                step == 1 ? to : values);
            for (uint32_t n = 0; n < t && step != 1; n++)
                to[(size_t)n * step] = values[n];
        }
    return EMU_MATRIX_OK;
}
