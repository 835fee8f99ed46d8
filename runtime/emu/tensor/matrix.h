// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by all matrix instructions: elements as numbers, products, and rounding of the results.
//
// Every element of every format is a double, exactly, and so is every product of two of them. An
// instruction decodes its operands into arrays of doubles once, multiplies, adds C and rounds.
// Integers take the same way: no sum of an instruction comes near 2^53.
#ifndef EMU_MATRIX_H
#define EMU_MATRIX_H

#include "emu/decode/program.h"

// How elements lie in memory and registers: `bits` apart, packed from the lowest bit up. The
// narrow types of kind::f8f6f4 take 8 bits each: e2m1 the middle four, e3m2 and e2m3 the low six.
struct emu_element {
    uint8_t type; // enum emu_type
    uint8_t bits;
    bool front; // 8 bits in shared memory: 16 elements lie packed at the front of their 16 bytes
};

static inline struct emu_element emu_element_packed(enum emu_type type)
{
    return (struct emu_element){(uint8_t)type, emu_types[type].bits, false};
}

static inline struct emu_element emu_element_padded(enum emu_type type)
{
    return (struct emu_element){(uint8_t)type, 8, false};
}

void emu_elements_decode(struct emu_element e, const void *from, uint32_t count, double *out);

// D[m][n] = the sum of A[m][j] * B[j][n] in the order of j = 0 ... k - 1. All are stored by rows
// without gaps; n is a multiple of 8. When `at` is there, A[m][j] stands in column at[m][j], so it
// is multiplied with that row of B.
void emu_matrix_multiply(uint32_t m, uint32_t n, uint32_t k, const double *a, const uint16_t *at,
                         const double *b, double *d);

// The bits of sum + c, rounded once to nearest even. Of integers: wrapped or saturated.
uint64_t emu_matrix_finish(double sum, double c, enum emu_type type, bool saturate);
// A value of C as a double: f16, f32, s32.
double emu_matrix_c(uint32_t bits, enum emu_type type);

// Every lane of the warp must be there; false while some are still elsewhere.
bool emu_whole_warp(struct emu_warp *w, uint32_t mask);

// The 32 lanes of one register as rows of numbers: lane / 4 is the row, and its 4 lanes follow one
// another. A row has emu_element_count(e) elements and goes to out + row * row_step.
static inline uint32_t emu_element_count(struct emu_element e)
{
    return e.bits == 64 ? 4 : 128u / e.bits;
}
void emu_register_decode(struct emu_element e, const void *lanes, double *out, uint32_t row_step);

// The metadata of a row of a sparse matrix of 16 rows with `k` elements, of which half are stored:
// up to 64 bits in the order of the elements. Rows g and g + 8 share either the two halves of the
// registers of quad g (elements of 16 and 32 bits), or its even and odd lanes (narrower ones). The
// selector says which lanes of a quad have them where not all do.
uint64_t emu_sparse_metadata(struct emu_element e, const uint32_t *lanes, uint32_t k,
                             uint32_t selector, uint32_t row);
// How many bits of metadata a row has.
static inline uint32_t emu_sparse_bits(struct emu_element e, uint32_t k)
{
    return e.bits == 32 ? 2 * k : e.bits == 4 ? k / 2 : k;
}
// Positions of the stored elements of one row of a sparse matrix. Two of four units are stored; a
// unit is an element, half of one (32 bits) or two of them (4 bits). `bits` holds two bits for each
// unit. False when they name no two different units, or when ordered, not in that order.
bool emu_sparse_positions(struct emu_element e, uint64_t bits, uint32_t stored, bool ordered,
                          uint16_t *out);

#endif
