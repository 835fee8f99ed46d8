// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrices in shared memory as descriptors describe them, for wgmma and tcgen05.
//
// Rows are along M or N, columns along K. A unit is 16 bytes, T elements. In a K-major matrix the
// elements of a row follow one another, in an MN-major one those of a column do:
//
//   major  swizzle  element (i, k) is at                                                 bytes
//   K      none     (i % 8) * 16 + (i / 8) * stride + (k / T) * leading
//   K      S bytes  (i % 8) * S + (i / 8) * stride + (k / T) * 16
//   MN     none     (i / T) * stride + (k % 8) * 16 + (k / 8) * leading
//   MN     S bytes  (i / T % (S / 16)) * 16 + (i / (T * S / 16)) * leading
//                   + (k % 8) * S + (k / 8) * stride
//
// from the start address. A swizzle then exchanges units: the low bits of the unit's index in its
// 128 bytes are xored with those of the address's 128-byte line, counted from the pattern's start.
#ifndef EMU_SMEM_MATRIX_H
#define EMU_SMEM_MATRIX_H

#include "emu/tensor/matrix.h"

struct emu_smem_matrix {
    uint32_t start, leading, stride; // bytes
    uint32_t swizzle;                // 0, 32, 64, 128
    uint32_t base;                   // of the pattern, in lines of 128 bytes
    bool wide;                       // a swizzle of 128 exchanges 32 bytes at a time
    bool mn_major;
};

// The fields that all generations share; the swizzle stays 0.
struct emu_smem_matrix emu_smem_matrix_of(uint64_t descriptor);

// The shared memory of a CTA.
struct emu_smem {
    const uint8_t *bytes, *shadow; // of EMU_SHARED_START; shadow NULL: nothing is checked
    uint32_t size;
    void (*read)(void *user, const uint8_t *unit); // is told of every unit that is read; or NULL
    void *user;
};

enum emu_matrix_fault {
    EMU_MATRIX_OK,
    EMU_MATRIX_OUTSIDE,
    EMU_MATRIX_UNSET,
    EMU_MATRIX_IN_FLIGHT,
    EMU_MATRIX_METADATA // of a sparse matrix; the address is the row
};

// The fault of reading the first bytes of the unit at an address.
enum emu_matrix_fault emu_smem_check(const struct emu_smem *memory, uint32_t address,
                                     uint32_t used);
// The address of the unit that element (i, k) is in.
uint32_t emu_smem_unit(const struct emu_smem_matrix *m, struct emu_element e, uint32_t i,
                       uint32_t k);

// Reads rows first ... first + rows - 1 and columns 0 ... columns - 1; both counts are multiples of
// a unit's elements along the major direction, and of one along the other. Element (first + i, k)
// goes to out[i * row_step + k * column_step]. `address` is where a fault is.
enum emu_matrix_fault emu_smem_matrix_read(const struct emu_smem *memory,
                                           const struct emu_smem_matrix *m, struct emu_element e,
                                           uint32_t first, uint32_t rows, uint32_t columns,
                                           double *out, uint32_t row_step, uint32_t column_step,
                                           uint32_t *address);

#endif
