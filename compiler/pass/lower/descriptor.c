// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile: descriptors of matrices in shared memory.
//
// A descriptor says where an operand lies in shared memory (PTX ISA, "Matrix descriptor format"):
// its address, a swizzle, and two strides. It counts in chunks of 16 bytes. With r and c the
// coordinates along M or N and along K, and S the swizzle's bytes (16 without one), the byte is
//
//     K contiguous:       r % 8 * S + r / 8 * stride
//                         + chunk of c * (16, or leading without swizzle)
//     M or N contiguous:  chunk of r % (S / 16) * 16 + chunk of r / (S / 16) * leading
//                         + c % 8 * S + c / 8 * stride
//
// Without a swizzle the second formula has leading and stride exchanged. The strides are read off
// the buffer's layout. The chunks of an instruction's operand are then compared with the formula:
// if one differs, no descriptor describes the operand.
//
// wgmma and tcgen05 have the same fields but for the code of the swizzle; tcgen05 has a constant
// beside them (PTX ISA, "Shared memory descriptor").

#include "pass/lower/descriptor.h"

enum { CHUNK = 16, ROWS = 8 };

// Byte of element (r along M or N, k) of the operand, from where its part starts.
static int64_t byte_at(const struct lower_descriptor *d, int64_t r, int64_t k)
{
    int64_t coord[TIR_MAX_RANK] = {0};
    coord[d->k_dim] = k;
    coord[1 - d->k_dim] = r;
    return tir_lower_part_byte(&d->part, coord);
}

static int64_t described(const struct lower_descriptor *d, int64_t r, int64_t k, int64_t chunk)
{
    int64_t line = d->swizzle ? d->swizzle : CHUNK, chunks = line / CHUNK;
    if (!d->trans)
        return r % ROWS * line + r / ROWS * d->stride +
               k / chunk * (d->swizzle ? CHUNK : d->leading);
    int64_t along = r / chunk / chunks, across = k / ROWS;
    return r / chunk % chunks * CHUNK + k % ROWS * line +
           (d->swizzle ? along * d->leading + across * d->stride
                       : along * d->stride + across * d->leading);
}

// Both the byte and the formula are a sum of what r and what k add. So each is looked at alone.
bool tir_lower_descriptor_fits(const struct lower_descriptor *d, int64_t r0, int64_t rows)
{
    int64_t chunk = 8 * CHUNK / d->bits, line = d->swizzle ? d->swizzle : CHUNK;
    int64_t r_step = d->trans ? chunk : 1, k_step = d->trans ? 1 : chunk;
    int64_t first = byte_at(d, r0, 0);
    for (int64_t r = 0; r < rows; r += r_step)
        if (byte_at(d, r0 + r, 0) - first != described(d, r, 0, chunk))
            return false;
    for (uint32_t s = 0; s < d->steps; s++) {
        int64_t k0 = (int64_t)s * d->depth, start = byte_at(d, r0, k0);
        // A pattern begins at its first row; along K it may be entered inside of a row.
        if (start % CHUNK || start / line % ROWS || (d->trans && start % line))
            return false;
        for (int64_t k = 0; k < d->depth; k += k_step)
            if (byte_at(d, r0, k0 + k) - start != described(d, 0, k, chunk))
                return false;
    }
    return true;
}

static bool fits_field(int64_t bytes)
{
    return bytes >= 0 && bytes % CHUNK == 0 && bytes / CHUNK <= TIR_DESCRIPTOR_ADDRESS;
}

const char *tir_lower_descriptor_open(struct lower *lo, struct lower_descriptor *d,
                                      struct tir_value *buffer, int64_t rows)
{
    int64_t element = d->bits / 8, chunk = 8 * CHUNK / d->bits, k = (int64_t)d->depth * d->steps;
    d->part = tir_lower_part_of(lo, buffer);
    d->swizzle = d->part.memory->swizzle;
    d->trans = byte_at(d, 0, 1) != element;
    if (d->trans && byte_at(d, 1, 0) != element)
        return "an operand has no contiguous dimension";
    if (d->trans && d->bits != 16)
        return "only 16-bit operands may lie with M or N contiguous";
    int64_t along = d->trans ? chunk * TIR_MAX(1, d->swizzle / CHUNK) : ROWS;
    int64_t across = d->trans ? ROWS : chunk;
    int64_t next_row = rows > along ? byte_at(d, along, 0) : 0;
    int64_t next_k = k > across ? byte_at(d, 0, across) : 0;
    bool exchanged = d->trans && d->swizzle;
    d->stride = exchanged ? next_k : next_row;
    d->leading = exchanged ? next_row : next_k;
    if (!fits_field(d->stride) || !fits_field(d->leading))
        return "rows of an operand lie too far apart for a descriptor";
    return NULL;
}

// The bits that do not depend on where the matrix is, by the swizzle / 32.
static uint64_t mode_of(const struct lower_descriptor *d)
{
    static const uint8_t wgmma[] = {[0] = 0, [4] = 1, [2] = 2, [1] = 3};
    static const uint8_t tcgen05[] = {[0] = 0, [4] = 2, [2] = 4, [1] = 6};
    return d->kind == LOWER_DESCRIPTOR_WGMMA
               ? (uint64_t)wgmma[d->swizzle / 32] << 62
               : (uint64_t)tcgen05[d->swizzle / 32] << 61 | (uint64_t)1 << 46;
}

const char *tir_lower_descriptor_build(struct lower *lo, struct lower_descriptor *d)
{
    if (!tir_lower_part_adds(&d->part))
        return "an operand begins inside of what lies together";
    struct tir_value *at = tir_lower_part_start(lo, &d->part);
    struct tir_value *operands[] = {d->part.base, at};
    struct tir_value *v = tir_build1(&lo->b, TIR_OP_ADDRESS, lo->i32, operands, 2);
    v = tir_binary(&lo->b, TIR_OP_SHR, v, tir_lower_i32(lo, 4));
    v = tir_lower_cast(lo, &lo->b,
                       tir_binary(&lo->b, TIR_OP_AND, v, tir_lower_i32(lo, TIR_DESCRIPTOR_ADDRESS)),
                       lo->i64);
    bool unused = d->swizzle && !d->trans; // the rows of a swizzle say it all
    uint64_t bits = (unused ? 1 : (uint64_t)d->leading / CHUNK) << 16 |
                    (uint64_t)d->stride / CHUNK << 32 | mode_of(d);
    d->start = tir_binary(&lo->b, TIR_OP_OR, v, tir_const_int(lo->f, lo->i64, (int64_t)bits));
    return NULL;
}

struct tir_value *tir_lower_descriptor_at(struct lower *lo, const struct lower_descriptor *d,
                                          int64_t r, int64_t k)
{
    return tir_lower_add(lo, &lo->b, d->start,
                         tir_const_int(lo->f, lo->i64, byte_at(d, r, k) / CHUNK));
}

int64_t tir_lower_descriptor_step(const struct lower_descriptor *d, int64_t r, uint32_t step)
{
    const int64_t k = (int64_t)step * d->depth;
    return (byte_at(d, r, k + d->depth) - byte_at(d, r, k)) / CHUNK;
}
