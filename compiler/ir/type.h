// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types: an element type, a shape, where the data lives, and how it is laid out there. Interned in
// the context, so equal types are the same pointer.
//
//     f32                                  a scalar (rank 0)
//     f32[64, 128]                         a tile value; "in L" once it has a layout
//     shared bf16[128, 64] in swizzle(128) a buffer in shared memory
//     cluster bf16[128, 64]                the same of another CTA of the cluster
//     shared mbarrier[4]                   barriers there, which only their own operations touch
//     local f32[8]                         a buffer of each thread
//     tensor bf16[M, K]                    a parameter in global memory (rank only; its
//                                          dimensions are values)
#ifndef TIR_IR_TYPE_H
#define TIR_IR_TYPE_H

#include "base/str.h"

#define TIR_MAX_RANK 6

enum tir_elem {
    TIR_NONE, // the type of an instruction without a result, and of "no type"
#define ELEM(id, ...) TIR_##id,
#include "ir/elems.def"
    TIR_ELEM_COUNT
};

enum tir_elem_kind {
    TIR_KIND_NONE,
    TIR_KIND_BOOLEAN,
    TIR_KIND_SIGNED,
    TIR_KIND_UNSIGNED,
    TIR_KIND_FLOAT
};

struct tir_elem_info {
    const char *name;
    uint32_t bits;
    enum tir_elem_kind kind;
    uint32_t mantissa;
};
extern const struct tir_elem_info tir_elems[TIR_ELEM_COUNT];

enum tir_space {
    TIR_SPACE_VALUE,   // registers: a scalar or a tile
    TIR_SPACE_GLOBAL,  // a tensor parameter
    TIR_SPACE_SHARED,  // a buffer of the CTA
    TIR_SPACE_CLUSTER, // a shared buffer of another CTA of the cluster
    TIR_SPACE_LOCAL,   // a buffer of each thread
    TIR_SPACE_TMEM     // a buffer of the CTA in tensor memory
};

struct tir_layout;

struct tir_type {
    enum tir_elem elem;
    enum tir_space space;
    uint32_t rank;
    int64_t shape[TIR_MAX_RANK];     // 0 throughout for SPACE_GLOBAL
    const struct tir_layout *layout; // NULL: none yet; always NULL for scalars
};

struct tir_types; // the table of interned types and layouts

struct tir_types *tir_types_new(struct tir_arena *arena);
const struct tir_type *tir_type_get(struct tir_types *types, const struct tir_type *like);
const struct tir_type *tir_type_scalar(struct tir_types *types, enum tir_elem elem);
const struct tir_type *tir_type_tile(struct tir_types *types, enum tir_elem elem, uint32_t rank,
                                     const int64_t *shape);
const struct tir_type *tir_type_with_elem(struct tir_types *types, const struct tir_type *t,
                                          enum tir_elem elem);
// The same type, from whatever table t is.
const struct tir_type *tir_type_adopt(struct tir_types *types, const struct tir_type *t);
const struct tir_type *tir_type_with_layout(struct tir_types *types, const struct tir_type *t,
                                            const struct tir_layout *layout);

static inline bool tir_type_is_scalar(const struct tir_type *t)
{
    return t->space == TIR_SPACE_VALUE && t->rank == 0 && t->elem != TIR_NONE;
}
static inline bool tir_type_is_tile(const struct tir_type *t)
{
    return t->space == TIR_SPACE_VALUE && t->rank > 0;
}
static inline bool tir_type_is_buffer(const struct tir_type *t) // something to load from
{
    return t->space != TIR_SPACE_VALUE;
}
// Bits that say something; the others of the memory it takes are 0.
static inline uint32_t tir_elem_width(enum tir_elem e)
{
    return e == TIR_E2M1                    ? 4
           : e == TIR_E3M2 || e == TIR_E2M3 ? 6
           : e == TIR_UE4M3                 ? 7
                                            : tir_elems[e].bits;
}
static inline bool tir_elem_is_narrow(enum tir_elem e) // of 4 or 6 bits, which may be packed
{
    return tir_elem_width(e) < 7;
}
static inline bool tir_elem_is_fp8(enum tir_elem e) // that tensor cores multiply, also mixed
{
    return e == TIR_E4M3 || e == TIR_E5M2;
}
// Numbers without a sign, which scale those of a block.
static inline bool tir_elem_is_scale(enum tir_elem e)
{
    return e == TIR_UE8M0 || e == TIR_UE4M3;
}
static inline bool tir_elem_is_float(enum tir_elem e)
{
    return tir_elems[e].kind == TIR_KIND_FLOAT;
}
static inline bool tir_elem_is_int(enum tir_elem e) // signed or unsigned; not bool
{
    return tir_elems[e].kind == TIR_KIND_SIGNED || tir_elems[e].kind == TIR_KIND_UNSIGNED;
}
bool tir_type_same_shape(const struct tir_type *a, const struct tir_type *b);
// Of two shapes with as many elements: the next dimensions of each, from *i and *j on, that have as
// many together. All of size 1 is one such group, too. Moves i and j to their ends.
void tir_shape_group(const struct tir_type *a, uint32_t *i, const struct tir_type *b, uint32_t *j);
// Have the two the same dimensions but for those of size 1?
bool tir_type_differs_in_ones(const struct tir_type *a, const struct tir_type *b);
int64_t tir_type_count(const struct tir_type *t); // elements; 1 for a scalar
int64_t tir_type_bytes(const struct tir_type *t); // bytes when stored densely

// Tensor memory: a column has 32 bits in each lane. The rows of a buffer come in blocks, as those
// of products do. A block of 128 rows has all lanes. One of 64 has half of the 32 lanes of each
// warp, the lower half if its number is even, and the next one the upper half of the same columns.
// Of a pair of CTAs, a block of 64 rows is folded: lanes 0 to 63 have the first half of its
// columns, the others the second (PTX ISA, tcgen05 data path layout B).
enum { TIR_TMEM_LANES = 128, TIR_TMEM_COLUMNS = 512 };
// The rows of each block of so many rows: 128 if these divide them, else 64; 0: neither does.
static inline int64_t tir_tmem_block(int64_t rows)
{
    return rows % TIR_TMEM_LANES == 0         ? TIR_TMEM_LANES
           : rows % (TIR_TMEM_LANES / 2) == 0 ? TIR_TMEM_LANES / 2
                                              : 0;
}
static inline bool tir_tmem_folds(int64_t rows, bool is_pair)
{
    return is_pair && tir_tmem_block(rows) == TIR_TMEM_LANES / 2;
}
// Is it a buffer of scales of the products there? Its elements say so. Rows come in blocks of 128.
// Row r is in lane r % 32 of each warp. Four scales that follow one another along a row share 32
// bits: scale s is in column r / 32 + rows / 32 * (s / 4).
static inline bool tir_tmem_is_scales(const struct tir_type *t)
{
    return t->space == TIR_SPACE_TMEM && tir_elem_is_scale(t->elem);
}
enum { TIR_TMEM_SCALES = 4, TIR_TMEM_SCALE_LANES = 32 }; // of a column; of a block of rows
// Elements along an axis of a factor with scales: u8 are two e2m1.
static inline int64_t tir_scaled_depth(const struct tir_type *t, uint32_t axis)
{
    return t->shape[axis] * (t->elem == TIR_U8 ? 2 : 1);
}
// Scales of a factor: a matrix with as many along the axis as the factor has blocks there; or
// packed as tensor memory takes them, in blocks [rows / 128, scales / 4, 32, 16], whose element
// [i, j, r, 4 * q + t] is scale 4 * j + t of row 128 * i + 32 * q + r.
enum { TIR_PACKED_SCALES = TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES * TIR_TMEM_SCALES };
static inline bool tir_scales_are_packed(const struct tir_type *t)
{
    return t->rank == 4 && t->shape[2] == TIR_TMEM_SCALE_LANES && t->shape[3] == TIR_PACKED_SCALES;
}
static inline int64_t tir_scales_count(const struct tir_type *t, uint32_t axis)
{
    return tir_scales_are_packed(t) ? t->shape[1] * TIR_TMEM_SCALES : t->shape[axis];
}
// Of A, or columns of B.
static inline int64_t tir_scales_rows(const struct tir_type *t, uint32_t axis)
{
    return tir_scales_are_packed(t) ? t->shape[0] * TIR_TMEM_LANES : t->shape[1 - axis];
}
// Where the scale of a row is in packed ones.
static inline int64_t tir_packed_scale(const struct tir_type *t, int64_t row, int64_t scale)
{
    const int64_t block = row / TIR_TMEM_LANES * t->shape[1] + scale / TIR_TMEM_SCALES;
    return (block * TIR_TMEM_SCALE_LANES + row % TIR_TMEM_SCALE_LANES) * TIR_PACKED_SCALES +
           row % TIR_TMEM_LANES / TIR_TMEM_SCALE_LANES * TIR_TMEM_SCALES + scale % TIR_TMEM_SCALES;
}
// The columns of a buffer in tensor memory; 0: its rows are no whole number of them, or too many.
int64_t tir_tmem_columns(const struct tir_type *t, bool is_pair);

// The type as it is written in .tir text.
void tir_type_print(struct tir_text *out, const struct tir_type *t);
tir_str tir_type_text(struct tir_arena *arena, const struct tir_type *t);

#endif
