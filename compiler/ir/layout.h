// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts: where each element of a tile lives.
//
// A layout is a mixed-radix map in TIRx's notation. Each dimension of the shape is split into
// iterators, outermost first; an iterator of extent e, stride s on axis a contributes
// s * digit to coordinate a. Axes are the register (or, in memory, the element offset), the lane
// of the warp, and the warp of the CTA:
//
//     S[(8, 2, 4, 2) : (4@laneid, 2, 1@laneid, 1)] + R[2 : 4@warpid]
//
// is a 16 x 8 tile: row = (lane / 4) + 8 * (reg / 2), column = 2 * (lane % 4) + reg % 2, and the
// same data again in warps 4..7. R lists replicas: coordinates that do not change the element. In
// memory a swizzle may follow: swizzle(128) XORs bits 4..6 of the byte offset with bits 7..9, as
// the tensor copy engine and ldmatrix-friendly layouts do (PTX ISA, "Tensor swizzling modes").
//
// Because iterators add up, a coordinate is (a constant of the register) + (a function of the
// lane) + (a function of the warp): lowering computes the thread's part once and folds the rest.
#ifndef TIR_IR_LAYOUT_H
#define TIR_IR_LAYOUT_H

#include "ir/type.h"

enum tir_axis { TIR_AXIS_REG, TIR_AXIS_LANE, TIR_AXIS_WARP, TIR_AXIS_COUNT };
#define TIR_MAX_ITERS 24

struct tir_iter {
    uint32_t extent, stride;
    enum tir_axis axis;
};

struct tir_layout {
    uint32_t rank;
    int64_t shape[TIR_MAX_RANK];
    uint32_t iter_count; // all dimensions', outermost dimension first
    struct tir_iter iters[TIR_MAX_ITERS];
    uint32_t first[TIR_MAX_RANK + 1]; // iters of dimension d: first[d] .. first[d + 1]
    uint32_t replica_count;
    struct tir_iter replicas[TIR_MAX_ITERS];
    uint32_t swizzle; // bytes: 0, 32, 64, 128; memory only
};

#define TIR_SWIZZLE_BYTES 1024 // after which the pattern of every swizzle begins again
// The bytes of shared memory that a buffer of this layout begins at a multiple of: engines and
// ldmatrix count the pattern from address 0, and vectors of 16 bytes are accessed at once.
static inline uint32_t tir_layout_alignment(const struct tir_layout *l)
{
    return l->swizzle ? TIR_SWIZZLE_BYTES : 16;
}

struct tir_layout_at { // a position: one coordinate per axis
    uint32_t at[TIR_AXIS_COUNT];
};

// Interns a layout after checking it: extents multiply to the shape, no two iterators overlap.
// NULL when it is not a layout. Extent-1 iterators are dropped and adjacent ones merged, so that
// equal maps are equal pointers as far as that normal form goes.
const struct tir_layout *tir_layout_get(struct tir_types *types, const struct tir_layout *like);

// The same from a flat list: iterators are dealt out to the dimensions in order.
const struct tir_layout *tir_layout_from_iters(struct tir_types *types, uint32_t rank,
                                               const int64_t *shape, const struct tir_iter *iters,
                                               uint32_t iter_count, const struct tir_iter *replicas,
                                               uint32_t replica_count, uint32_t swizzle);

// The element coordinates that (reg, lane, warp) holds.
void tir_layout_coord(const struct tir_layout *l, struct tir_layout_at at,
                      int64_t coord[TIR_MAX_RANK]);
// Where element `coord` lives (the first of its replicas).
struct tir_layout_at tir_layout_find(const struct tir_layout *l, const int64_t coord[TIR_MAX_RANK]);
uint32_t tir_layout_size(const struct tir_layout *l,
                         enum tir_axis axis); // registers, lanes, warps used
// Does each lane of `warps` warps hold a part of the tile, or a copy of one, in registers without
// gaps? Then the place of an element says which element it is.
bool tir_layout_is_spread(const struct tir_layout *l, uint32_t warps);
#define TIR_NOT_SPREAD                                                                          \
    "%s is not spread over the %u threads: each lane of each warp has a part, or a copy as in " \
    "`+ R[4 : 1@warpid]`, in registers without gaps"
// Are elements told apart by their offsets alone, as in a buffer?
bool tir_layout_is_memory(const struct tir_layout *l);
// What one step of iterator i of dimension d adds to that dimension's coordinate.
int64_t tir_layout_weight(const struct tir_layout *l, uint32_t d, uint32_t i);
// Bytes a shared or local buffer occupies.
int64_t tir_buffer_bytes(const struct tir_type *t);
// Element offset -> byte offset with the swizzle applied.
uint64_t tir_layout_byte(const struct tir_layout *l, uint64_t element, uint32_t elem_bits);

// Layout of the same data after: keeping axis as size 1 (its lanes and warps become replicas, its
// registers vanish); permuting dimensions; counting the elements, row by row, in another shape.
const struct tir_layout *tir_layout_slice(struct tir_types *types, const struct tir_layout *l,
                                          uint32_t axis);
const struct tir_layout *tir_layout_permute(struct tir_types *types, const struct tir_layout *l,
                                            const int64_t *order);
// The permutation that exchanges the last two of `rank` dimensions.
void tir_transposition(uint32_t rank, int64_t *order);
const struct tir_type *tir_type_transpose(struct tir_types *types,
                                          const struct tir_type *t); // of its last two dimensions
const struct tir_layout *tir_layout_reshape(struct tir_types *types, const struct tir_layout *l,
                                            uint32_t rank,
                                            const int64_t *shape); // NULL: a digit would be cut
// With dimension d of `of`, which is of memory as l is, in front of those of l.
const struct tir_layout *tir_layout_before(struct tir_types *types, const struct tir_layout *of,
                                           uint32_t d, const struct tir_layout *l);
// Of a part of the tile that begins at a multiple of `shape`: each thread keeps what it has of it.
// NULL: some threads have nothing of such a part.
const struct tir_layout *tir_layout_part(struct tir_types *types, const struct tir_layout *l,
                                         const int64_t *shape);
// Of a tile with so many columns in place of l's: each thread has fewer of its registers. NULL: the
// registers of a row do not divide so.
const struct tir_layout *tir_layout_narrow(struct tir_types *types, const struct tir_layout *l,
                                           int64_t columns);
// Of a tile of `shape`, multiples of l's, whose parts of l's shape each lie as l says, one after
// the other in registers. NULL: too many iterators.
const struct tir_layout *tir_layout_repeat(struct tir_types *types, const struct tir_layout *l,
                                           const int64_t *shape);

// Of layouts (layout_algebra.c). Element i of a composition is an element of `of`: number by(i),
// which counts row by row; `by` is of memory, without a swizzle. NULL: a digit would be cut.
const struct tir_layout *tir_layout_compose(struct tir_types *types, const struct tir_layout *of,
                                            const struct tir_layout *by);
// The same elements as tiles of l's rank: the tiles along each dimension, then a tile's own
// dimensions. NULL: the tiles do not divide it.
const struct tir_layout *tir_layout_divide(struct tir_types *types, const struct tir_layout *l,
                                           const int64_t *tile);
// A tile in `outer` of tiles in `inner`: what outer has along an axis counts in what inner has
// there. NULL: the ranks differ, or outer is swizzled.
const struct tir_layout *tir_layout_product(struct tir_types *types, const struct tir_layout *outer,
                                            const struct tir_layout *inner);
// Are all elements at the same place, however that is written, with the same list of replicas?
bool tir_layout_is_same(const struct tir_layout *a, const struct tir_layout *b);
// Of memory: the same bytes, in the order of the elements, as elements of `bytes` bytes in another
// shape; the elements of l have from_bytes. NULL: the bytes of an element would not lie together,
// or a dimension would end within one of l.
const struct tir_layout *tir_layout_recast(struct tir_types *types, const struct tir_layout *l,
                                           uint32_t from_bytes, uint32_t rank, const int64_t *shape,
                                           uint32_t bytes);

// The layout an index tile needs so that each thread has the indices of its own elements of an
// access in layout `access`. at: the first dimension of the accessed tile that the index tile
// stands for. It repeats along those where its size is 1.
const struct tir_layout *tir_layout_of_index(struct tir_types *types, uint32_t rank,
                                             const int64_t *shape, const struct tir_layout *access,
                                             uint32_t at);

// Blocked: `vector` neighbouring elements along order[0] and `patch` along order[1] in registers,
// then the lanes along order[0], order[1], ..., then the warps along warp_order; what is left over
// repeats in registers.
const struct tir_layout *tir_layout_blocked(struct tir_types *types, uint32_t rank,
                                            const int64_t *shape, const uint32_t *order,
                                            const uint32_t *warp_order, uint32_t vector,
                                            uint32_t patch, uint32_t warps);
// How threads share a copy of a tile: `elements` neighbours along the last dimension move at a
// time.
const struct tir_layout *tir_layout_copy(struct tir_types *types, uint32_t rank,
                                         const int64_t *shape, uint32_t elements, uint32_t warps);
// Accumulators of mma.m16n8: warps_m x warps_n warps over the tile, which they divide, numbered
// along the rows or `down` the columns; replicas in the rest of the `warps`.
const struct tir_layout *tir_layout_mma(struct tir_types *types, const int64_t shape[2],
                                        uint32_t warps_m, uint32_t warps_n, bool down,
                                        uint32_t warps);
// Accumulators of wgmma.m64nN: groups_m x groups_n warpgroups (4 warps each) over the tile, which
// they divide; each has its m64 blocks one after the other in registers. Replicas in the rest of
// the `warps`. NULL: the shape does not divide so.
const struct tir_layout *tir_layout_wgmma(struct tir_types *types, const int64_t shape[2],
                                          uint32_t groups_m, uint32_t groups_n, uint32_t warps);
// Bytes that a warp turns on their way through shared memory, as they are stored: by stmatrix, with
// columns side by side, after ldmatrix.trans has loaded them from rows that were columns. NULL: the
// tile is not of 16 x 16 blocks that the warps share out.
const struct tir_layout *tir_layout_turned_bytes(struct tir_types *types, const int64_t shape[2],
                                                 uint32_t warps);
// A of wgmma in registers, for accumulators of groups_m warpgroups along M: elements of elem_bits,
// as many as fill a 32-bit register lie together. Of 16-bit elements, it is the layout of their
// accumulators.
const struct tir_layout *tir_layout_wgmma_a(struct tir_types *types, const int64_t shape[2],
                                            uint32_t elem_bits, uint32_t groups_m, uint32_t warps);
// What loads of tensor memory give (tir_tmem_block). Of 128 rows, by tcgen05.ld.32x32b, warp w of a
// warpgroup has rows 32 w to 32 w + 31, a thread has the columns of one. Of 64 rows, by 16x256b, it
// is the layout of wgmma; of 64 rows of a pair, by 32x32b, warps 0 and 1 have the first half of the
// columns, warps 2 and 3 the second. Warpgroups share out the blocks of rows, and then the columns.
// NULL: they cannot.
const struct tir_layout *tir_layout_tmem(struct tir_types *types, const int64_t shape[2],
                                         uint32_t warps, bool is_pair);
// The same in the threads that have it as accumulators of mma.m16n8. NULL: none do.
const struct tir_layout *tir_layout_tmem_mma(struct tir_types *types, const int64_t shape[2],
                                             uint32_t warps, bool is_pair);
// Which tcgen05.ld or .st moves a tile, whose elements are then where they are in layout l.
struct tir_tmem_shape {
    uint32_t row_bits; // 0: 32x32b; 64, 128, 256: 16x64b, 16x128b, 16x256b; 32: 16x32bx2
    uint32_t split;    // of 16x32bx2: columns from what lanes 0 to 15 have to what the others have
    const struct tir_layout *natural; // as l, but registers are those that the instruction lists
};
// False: none does.
bool tir_tmem_shape_of(struct tir_types *types, const struct tir_type *tile,
                       const struct tir_layout *l, uint32_t warps, bool is_pair,
                       struct tir_tmem_shape *out);
// How many of the warpgroups go over the rows of a tile that wgmma computes, the others over its
// columns: as many over rows as there are 64 rows for. 0: they do not divide the tile.
uint32_t tir_wgmma_row_groups(const int64_t shape[2], uint32_t warps);
// Row-major memory; with a swizzle, columns are split in atoms of `swizzle` bytes:
// [cols / atom][rows][atom]. A leading stage dimension is outermost.
const struct tir_layout *tir_layout_memory(struct tir_types *types, uint32_t rank,
                                           const int64_t *shape, uint32_t elem_bits,
                                           uint32_t swizzle);
// The largest swizzle whose atoms divide rows of that many bytes; 0: none.
uint32_t tir_layout_swizzle_for(int64_t row_bytes);

// Bytes a conversion moves: 0 when every thread already holds what it needs (registers are
// renamed).
bool tir_layout_same_owner(const struct tir_layout *a, const struct tir_layout *b);

void tir_layout_print(struct tir_text *out, const struct tir_layout *l);

#endif
