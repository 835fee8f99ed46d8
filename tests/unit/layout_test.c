// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layout algebra: maps and their inverses, fragments as PTX documents them, swizzles, slices.

#include "ir_unit.h"

#include "ir/layout.h"

#include <stdlib.h>

static const uint32_t row_major[2] = {1, 0}, column_major[2] = {0, 1};

// Every element is held exactly once per replica, and find is the inverse of coord.
static void check_bijection(const struct tir_layout *l, uint32_t warps)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < l->rank; d++)
        count *= l->shape[d];
    uint32_t *held = calloc((size_t)count, sizeof(*held));
    uint32_t registers = tir_layout_size(l, TIR_AXIS_REG);
    for (uint32_t w = 0; w < warps; w++)
        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t r = 0; r < registers; r++) {
                int64_t coord[TIR_MAX_RANK], index = 0;
                tir_layout_coord(l, (struct tir_layout_at){{r, lane, w}}, coord);
                for (uint32_t d = 0; d < l->rank; d++) {
                    assert_in_range(coord[d], 0, l->shape[d] - 1);
                    index = index * l->shape[d] + coord[d];
                }
                held[index]++;
                struct tir_layout_at at = tir_layout_find(l, coord);
                assert_int_equal(at.at[TIR_AXIS_REG], r);
            }
    for (int64_t i = 1; i < count; i++)
        assert_int_equal(held[i], held[0]);
    assert_int_equal((uint64_t)held[0] * (uint64_t)count, (uint64_t)warps * 32 * registers);
    free(held);
}

static void blocked_layouts_cover_their_tile(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    static const int64_t shapes[][2] = {{64, 128}, {1, 4096}, {128, 1}, {16, 16}, {96, 48}, {3, 5}};
    for (uint32_t i = 0; i < TIR_COUNT_OF(shapes); i++)
        for (uint32_t vector = 1; vector <= 8; vector *= 2)
            for (uint32_t warps = 1; warps <= 8; warps *= 2) {
                check_bijection(tir_layout_blocked(u.cx.types, 2, shapes[i], row_major, row_major,
                                                   vector, 1, warps),
                                warps);
                check_bijection(tir_layout_blocked(u.cx.types, 2, shapes[i], column_major,
                                                   row_major, vector, 1, warps),
                                warps);
            }
    tir_context_finish(&u.cx);
}

static void blocked_lanes_follow_the_contiguous_dimension(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    const struct tir_layout *l =
        tir_layout_blocked(u.cx.types, 2, (int64_t[]){64, 256}, row_major, column_major, 8, 1, 4);
    int64_t coord[TIR_MAX_RANK];
    tir_layout_coord(l, (struct tir_layout_at){{3, 5, 2}}, coord);
    assert_int_equal(coord[0], 2); // warps go down the rows: warp_order begins with dimension 0
    assert_int_equal(coord[1], 5 * 8 + 3);
    tir_context_finish(&u.cx);
}

// PTX ISA, m16n8 accumulators: c_i at row lane / 4 + 8 * (i / 2), column 2 * (lane % 4) + i % 2.
static void mma_layout_is_the_documented_fragment(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    const struct tir_layout *l = tir_layout_mma(u.cx.types, (int64_t[]){64, 32}, 2, 2, false, 4);
    check_bijection(l, 4);
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t i = 0; i < 4; i++) {
            int64_t coord[TIR_MAX_RANK];
            tir_layout_coord(l, (struct tir_layout_at){{i, lane, 0}}, coord);
            assert_int_equal(coord[0], lane / 4 + 8 * (i / 2));
            assert_int_equal(coord[1], 2 * (lane % 4) + i % 2);
        }
    check_bijection(tir_layout_mma(u.cx.types, (int64_t[]){16, 8}, 1, 1, false, 4), 4); // replicas
    tir_context_finish(&u.cx);
}

// PTX ISA, figure "WGMMA .m64nNk16 register fragment layout for accumulator matrix D".
static void wgmma_layout_is_the_documented_fragment(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    // 2 x 2 warpgroups of 128 rows (two m64) and 24 columns each
    const struct tir_layout *l = tir_layout_wgmma(u.cx.types, (int64_t[]){256, 48}, 2, 2, 16);
    for (uint32_t warp = 0; warp < 16; warp++)
        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t block = 0; block < 2; block++)
                for (uint32_t r = 0; r < 12; r++) {
                    int64_t coord[TIR_MAX_RANK];
                    tir_layout_coord(l, (struct tir_layout_at){{12 * block + r, lane, warp}},
                                     coord);
                    uint32_t group = warp / 4;
                    assert_int_equal(coord[0], group % 2 * 128 + block * 64 + warp % 4 * 16 +
                                                   lane / 4 + r / 2 % 2 * 8);
                    assert_int_equal(coord[1], group / 2 * 24 + r / 4 * 8 + lane % 4 * 2 + r % 2);
                }
    check_bijection(l, 16);
    check_bijection(tir_layout_wgmma(u.cx.types, (int64_t[]){64, 8}, 1, 1, 8), 8); // replicas
    assert_null(tir_layout_wgmma(u.cx.types, (int64_t[]){96, 64}, 1, 1, 4));
    assert_null(tir_layout_wgmma(u.cx.types, (int64_t[]){128, 12}, 2, 1, 8));
    assert_null(tir_layout_wgmma(u.cx.types, (int64_t[]){128, 64}, 2, 1, 4));
    tir_context_finish(&u.cx);
}

// PTX ISA, figures "Register fragments for wgmma.mma_async", matrix A of k8, k16, k32.
static void wgmma_a_layout_is_the_documented_fragment(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    for (uint32_t bits = 8; bits <= 32; bits *= 2) {
        uint32_t together = 32 / bits, depth = 8 * together;
        const struct tir_layout *l =
            tir_layout_wgmma_a(u.cx.types, (int64_t[]){128, 2 * depth}, bits, 2, 8);
        for (uint32_t warp = 0; warp < 8; warp++)
            for (uint32_t lane = 0; lane < 32; lane++)
                for (uint32_t r = 0; r < 8; r++)
                    for (uint32_t e = 0; e < together; e++) {
                        int64_t coord[TIR_MAX_RANK];
                        tir_layout_coord(l, (struct tir_layout_at){{r * together + e, lane, warp}},
                                         coord);
                        assert_int_equal(coord[0], warp * 16 + r % 2 * 8 + lane / 4);
                        assert_int_equal(coord[1], r / 4 * depth + r / 2 % 2 * (depth / 2) +
                                                       lane % 4 * together + e);
                    }
        check_bijection(l, 8);
    }
    assert_ptr_equal(tir_layout_wgmma_a(u.cx.types, (int64_t[]){128, 64}, 16, 1, 8),
                     tir_layout_wgmma(u.cx.types, (int64_t[]){128, 64}, 1, 1, 8));
    tir_context_finish(&u.cx);
}

static void equal_maps_are_one_pointer(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    int64_t shape[1] = {64};
    struct tir_iter split[] = {
        {2, 32, TIR_AXIS_REG}, {8, 4, TIR_AXIS_REG}, {1, 9, TIR_AXIS_LANE}, {4, 1, TIR_AXIS_REG}};
    struct tir_iter whole[] = {{64, 1, TIR_AXIS_REG}};
    assert_ptr_equal(tir_layout_from_iters(u.cx.types, 1, shape, split, 4, NULL, 0, 0),
                     tir_layout_from_iters(u.cx.types, 1, shape, whole, 1, NULL, 0, 0));
    tir_context_finish(&u.cx);
}

static void overlapping_iterators_are_no_layout(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    int64_t shape[1] = {64};
    struct tir_iter overlap[] = {{16, 2, TIR_AXIS_LANE}, {4, 1, TIR_AXIS_LANE}};
    struct tir_iter wrong_size[] = {{32, 1, TIR_AXIS_LANE}};
    struct tir_iter too_many_lanes[] = {{64, 1, TIR_AXIS_LANE}};
    struct tir_iter zero[] = {{64, 0, TIR_AXIS_REG}};
    assert_null(tir_layout_from_iters(u.cx.types, 1, shape, overlap, 2, NULL, 0, 0));
    assert_null(tir_layout_from_iters(u.cx.types, 1, shape, wrong_size, 1, NULL, 0, 0));
    assert_null(tir_layout_from_iters(u.cx.types, 1, shape, too_many_lanes, 1, NULL, 0, 0));
    assert_null(tir_layout_from_iters(u.cx.types, 1, shape, zero, 1, NULL, 0, 0));
    tir_context_finish(&u.cx);
}

static void a_slice_replicates_what_it_drops(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    const struct tir_layout *l =
        tir_layout_blocked(u.cx.types, 2, (int64_t[]){16, 64}, row_major, row_major, 4, 1, 4);
    const struct tir_layout *s = tir_layout_slice(u.cx.types, l, 1);
    check_bijection(s, 4);
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t lane = 0; lane < 32; lane++) {
            int64_t full[TIR_MAX_RANK], sliced[TIR_MAX_RANK];
            tir_layout_coord(l, (struct tir_layout_at){{0, lane, w}}, full);
            tir_layout_coord(s, (struct tir_layout_at){{0, lane, w}}, sliced);
            assert_int_equal(sliced[0], full[0]);
            assert_int_equal(sliced[1], 0);
        }
    tir_context_finish(&u.cx);
}

static void a_permuted_layout_swaps_coordinates(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    const struct tir_layout *l =
        tir_layout_blocked(u.cx.types, 2, (int64_t[]){16, 64}, row_major, row_major, 4, 1, 4);
    const struct tir_layout *p = tir_layout_permute(u.cx.types, l, (int64_t[]){1, 0});
    int64_t a[TIR_MAX_RANK], b[TIR_MAX_RANK];
    tir_layout_coord(l, (struct tir_layout_at){{1, 17, 3}}, a);
    tir_layout_coord(p, (struct tir_layout_at){{1, 17, 3}}, b);
    assert_int_equal(a[0], b[1]);
    assert_int_equal(a[1], b[0]);
    assert_ptr_equal(tir_layout_permute(u.cx.types, p, (int64_t[]){1, 0}), l);
    tir_context_finish(&u.cx);
}

// PTX ISA, "Tensor swizzling modes": 16-byte chunks of a 128-byte row are XORed with the row mod 8.
static void swizzle_128_spreads_a_column_over_all_banks(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    const struct tir_layout *l = tir_layout_memory(u.cx.types, 2, (int64_t[]){64, 64}, 16, 128);
    uint32_t chunks = 0;
    for (int64_t row = 0; row < 8; row++) {
        int64_t coord[TIR_MAX_RANK] = {row, 8};
        uint64_t byte = tir_layout_byte(l, tir_layout_find(l, coord).at[TIR_AXIS_REG], 16);
        assert_int_equal(byte / 128, row);
        assert_int_equal(byte / 16 % 8, 1 ^ row);
        chunks |= 1u << byte / 16 % 8;
    }
    assert_int_equal(chunks, 0xff);
    tir_context_finish(&u.cx);
}

static void wide_rows_are_split_in_swizzle_atoms(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    const struct tir_layout *l = tir_layout_memory(u.cx.types, 2, (int64_t[]){32, 256}, 16, 128);
    int64_t coord[TIR_MAX_RANK] = {1, 65};
    assert_int_equal(tir_layout_find(l, coord).at[TIR_AXIS_REG], 32 * 64 + 64 + 1);
    assert_null(tir_layout_memory(u.cx.types, 2, (int64_t[]){32, 24}, 16, 128));
    tir_context_finish(&u.cx);
}

static void owners_are_compared_without_registers(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    int64_t shape[1] = {256};
    struct tir_iter a[] = {{2, 4, TIR_AXIS_REG}, {32, 1, TIR_AXIS_LANE}, {4, 1, TIR_AXIS_REG}};
    struct tir_iter b[] = {{2, 1, TIR_AXIS_REG}, {32, 1, TIR_AXIS_LANE}, {4, 2, TIR_AXIS_REG}};
    struct tir_iter c[] = {{8, 1, TIR_AXIS_REG}, {32, 1, TIR_AXIS_LANE}};
    const struct tir_layout *la = tir_layout_from_iters(u.cx.types, 1, shape, a, 3, NULL, 0, 0);
    const struct tir_layout *lb = tir_layout_from_iters(u.cx.types, 1, shape, b, 3, NULL, 0, 0);
    const struct tir_layout *lc = tir_layout_from_iters(u.cx.types, 1, shape, c, 2, NULL, 0, 0);
    assert_true(tir_layout_same_owner(la, lb));
    assert_false(tir_layout_same_owner(la, lc));
    tir_context_finish(&u.cx);
}

// Byte k of the sequence lies where it did, whatever the elements are.
static void a_recast_keeps_the_bytes(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    static const int64_t shape[] = {16, 64}, other[] = {4, 8, 16}, narrow[] = {2048};
    const struct tir_layout *from = tir_layout_memory(u.cx.types, 2, shape, 16, 64);
    const struct tir_layout *wide = tir_layout_recast(u.cx.types, from, 2, 3, other, 4);
    const struct tir_layout *bytes = tir_layout_recast(u.cx.types, from, 2, 1, narrow, 1);
    assert_non_null(wide);
    assert_non_null(bytes);
    for (int64_t k = 0; k < 2048; k++) {
        const int64_t a[TIR_MAX_RANK] = {k / 2 / 64, k / 2 % 64}, c[TIR_MAX_RANK] = {k};
        const int64_t b[TIR_MAX_RANK] = {k / 4 / 128, k / 4 / 16 % 8, k / 4 % 16};
        const uint64_t at = tir_layout_byte(from, tir_layout_find(from, a).at[TIR_AXIS_REG], 16);
        const uint64_t in = tir_layout_byte(wide, tir_layout_find(wide, b).at[TIR_AXIS_REG], 32);
        assert_int_equal(at + (uint64_t)k % 2, in + (uint64_t)k % 4);
        assert_int_equal(at + (uint64_t)k % 2,
                         tir_layout_byte(bytes, tir_layout_find(bytes, c).at[TIR_AXIS_REG], 8));
    }
    // Columns first: two neighbours of a row are no word.
    static const struct tir_iter turned[] = {{16, 1, TIR_AXIS_REG}, {64, 16, TIR_AXIS_REG}};
    from = tir_layout_from_iters(u.cx.types, 2, shape, turned, 2, NULL, 0, 0);
    assert_null(tir_layout_recast(u.cx.types, from, 2, 3, other, 4));
    // 48 columns are not cut where those of 32 end.
    static const int64_t uneven[] = {3, 32}, even[] = {2, 48};
    static const struct tir_iter rows[] = {{3, 64, TIR_AXIS_REG}, {32, 1, TIR_AXIS_REG}};
    from = tir_layout_from_iters(u.cx.types, 2, uneven, rows, 2, NULL, 0, 0);
    assert_null(tir_layout_recast(u.cx.types, from, 4, 2, even, 4));
    tir_context_finish(&u.cx);
}

// Element k, row by row, is where it was.
static void a_reshape_keeps_the_elements(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    static const int64_t rows[] = {64, 128}, box[] = {4, 16, 128}, line[] = {8192};
    const struct tir_layout *from = tir_layout_memory(u.cx.types, 2, rows, 16, 128);
    const struct tir_layout *to = tir_layout_reshape(u.cx.types, from, 3, box);
    assert_non_null(to);
    assert_int_equal(to->swizzle, 128);
    assert_ptr_equal(tir_layout_reshape(u.cx.types, to, 2, rows), from);
    for (int64_t k = 0; k < 8192; k++) {
        const int64_t a[TIR_MAX_RANK] = {k / 128, k % 128};
        const int64_t b[TIR_MAX_RANK] = {k / 2048, k / 128 % 16, k % 128};
        assert_int_equal(tir_layout_find(from, a).at[TIR_AXIS_REG],
                         tir_layout_find(to, b).at[TIR_AXIS_REG]);
    }
    assert_null(tir_layout_reshape(u.cx.types, from, 2, box)); // fewer elements
    // Lanes and warps are digits, too, and replicas stay. 3 lanes are not cut in 2.
    static const struct tir_iter threads[] = {
        {2, 1, TIR_AXIS_WARP}, {32, 1, TIR_AXIS_LANE}, {128, 1, TIR_AXIS_REG}};
    static const struct tir_iter twice[] = {{2, 2, TIR_AXIS_WARP}};
    from = tir_layout_from_iters(u.cx.types, 2, rows, threads, 3, twice, 1, 0);
    to = tir_layout_reshape(u.cx.types, from, 1, line);
    assert_int_equal(to->replica_count, 1);
    assert_ptr_equal(tir_layout_reshape(u.cx.types, to, 2, rows), from);
    static const int64_t odd[] = {3, 4}, even[] = {2, 6};
    static const struct tir_iter three[] = {{3, 1, TIR_AXIS_LANE}, {4, 1, TIR_AXIS_REG}};
    from = tir_layout_from_iters(u.cx.types, 2, odd, three, 2, NULL, 0, 0);
    assert_null(tir_layout_reshape(u.cx.types, from, 2, even));
    tir_context_finish(&u.cx);
}

// Bits of a tile of 2^bits elements in any order: in `axes` of them threads may have some.
static const struct tir_layout *random_bits(struct tir_types *types, uint64_t *seed, uint32_t rank,
                                            const int64_t *shape, enum tir_axis axes)
{
    struct tir_iter iters[TIR_MAX_ITERS];
    uint32_t strides[TIR_AXIS_COUNT] = {1, 1, 1}, order[TIR_MAX_ITERS], count = 0;
    for (uint32_t d = 0; d < rank; d++)
        for (int64_t n = shape[d]; n > 1; n /= 2)
            count++;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = 0; i < count; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint32_t k = i + (uint32_t)(*seed >> 33) % (count - i), taken = order[k];
        order[k] = order[i];
        enum tir_axis axis = (enum tir_axis)((*seed >> 50) % (axes + 1u));
        if (axis == TIR_AXIS_LANE && strides[axis] == 32)
            axis = TIR_AXIS_REG;
        iters[taken] = (struct tir_iter){2, strides[axis], axis};
        strides[axis] *= 2;
    }
    return tir_layout_from_iters(types, rank, shape, iters, count, NULL, 0, 0);
}

static void unflatten(const struct tir_layout *l, int64_t i, int64_t coord[TIR_MAX_RANK])
{
    for (uint32_t d = l->rank; d-- > 0; i /= l->shape[d])
        coord[d] = i % l->shape[d];
}

static int64_t count_of(const struct tir_layout *l)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < l->rank; d++)
        count *= l->shape[d];
    return count;
}

// Element i of a composition is the element of `of` that `by` names.
static void check_composition(const struct tir_layout *of, const struct tir_layout *by,
                              const struct tir_layout *made)
{
    assert_non_null(made);
    for (int64_t i = 0; i < count_of(by); i++) {
        int64_t at[TIR_MAX_RANK] = {0}, from[TIR_MAX_RANK] = {0};
        unflatten(by, i, at);
        unflatten(of, tir_layout_find(by, at).at[TIR_AXIS_REG], from);
        const struct tir_layout_at x = tir_layout_find(made, at), y = tir_layout_find(of, from);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static void a_composition_names_elements(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    uint64_t seed = 1;
    static const int64_t shape[] = {16, 32}, other[] = {8, 4, 16}, part[] = {4, 8}, tile[] = {4, 8};
    for (int i = 0; i < 200; i++) {
        const struct tir_layout *of = random_bits(u.cx.types, &seed, 2, shape, TIR_AXIS_WARP);
        const struct tir_layout *by = random_bits(u.cx.types, &seed, 3, other, TIR_AXIS_REG);
        const struct tir_layout *some = random_bits(u.cx.types, &seed, 2, part, TIR_AXIS_REG);
        check_composition(of, by, tir_layout_compose(u.cx.types, of, by));
        // A part of the elements may leave gaps between threads, which no layout has.
        const struct tir_layout *made = tir_layout_compose(u.cx.types, of, some);
        if (made)
            check_composition(of, some, made);
        const struct tir_layout *divided = tir_layout_divide(u.cx.types, of, tile);
        assert_non_null(divided);
        for (int64_t k = 0; k < 512; k++) {
            const int64_t c[TIR_MAX_RANK] = {k / 32, k % 32};
            const int64_t t[TIR_MAX_RANK] = {c[0] / 4, c[1] / 8, c[0] % 4, c[1] % 8};
            const struct tir_layout_at x = tir_layout_find(of, c), y = tir_layout_find(divided, t);
            assert_memory_equal(&x, &y, sizeof x);
        }
    }
    const struct tir_layout *lanes = random_bits(u.cx.types, &seed, 2, shape, TIR_AXIS_WARP);
    assert_null(tir_layout_compose(u.cx.types, lanes, lanes)); // by threads
    static const int64_t three[] = {3, 5};
    static const struct tir_iter cut[] = {{3, 2, TIR_AXIS_REG}, {5, 6, TIR_AXIS_REG}};
    const struct tir_layout *by = tir_layout_from_iters(u.cx.types, 2, three, cut, 2, NULL, 0, 0);
    assert_null(tir_layout_compose(u.cx.types, lanes, by));
    assert_null(tir_layout_divide(u.cx.types, lanes, three));
    tir_context_finish(&u.cx);
}

static void a_product_is_a_tile_of_tiles(void **state)
{
    (void)state;
    struct ir_unit u;
    ir_unit_start(&u);
    uint64_t seed = 7;
    static const int64_t tiles[] = {2, 4}, tile[] = {8, 4};
    for (int i = 0; i < 200; i++) {
        const struct tir_layout *outer = random_bits(u.cx.types, &seed, 2, tiles, TIR_AXIS_REG);
        const struct tir_layout *inner = random_bits(u.cx.types, &seed, 2, tile, TIR_AXIS_WARP);
        const struct tir_layout *made = tir_layout_product(u.cx.types, outer, inner);
        assert_non_null(made);
        for (int64_t k = 0; k < 256; k++) {
            const int64_t c[TIR_MAX_RANK] = {k / 16, k % 16};
            const int64_t o[TIR_MAX_RANK] = {c[0] / 8, c[1] / 4},
                          n[TIR_MAX_RANK] = {c[0] % 8, c[1] % 4};
            const struct tir_layout_at x = tir_layout_find(outer, o), y = tir_layout_find(inner, n);
            const struct tir_layout_at z = tir_layout_find(made, c);
            for (enum tir_axis a = 0; a < TIR_AXIS_COUNT; a++)
                assert_int_equal(z.at[a], x.at[a] * tir_layout_size(inner, a) + y.at[a]);
        }
    }
    // 64 x 8 of wgmma: an atom of a warp, in 4 warps.
    static const int64_t rows[] = {4, 1}, atom[] = {16, 8}, all[] = {64, 8};
    static const struct tir_iter warps[] = {{4, 1, TIR_AXIS_WARP}};
    static const struct tir_iter lanes[] = {
        {2, 2, TIR_AXIS_REG}, {8, 4, TIR_AXIS_LANE}, {4, 1, TIR_AXIS_LANE}, {2, 1, TIR_AXIS_REG}};
    assert_ptr_equal(
        tir_layout_product(u.cx.types,
                           tir_layout_from_iters(u.cx.types, 2, rows, warps, 1, NULL, 0, 0),
                           tir_layout_from_iters(u.cx.types, 2, atom, lanes, 4, NULL, 0, 0)),
        tir_layout_wgmma(u.cx.types, all, 1, 1, 4));
    tir_context_finish(&u.cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked_layouts_cover_their_tile),
        cmocka_unit_test(blocked_lanes_follow_the_contiguous_dimension),
        cmocka_unit_test(mma_layout_is_the_documented_fragment),
        cmocka_unit_test(wgmma_layout_is_the_documented_fragment),
        cmocka_unit_test(wgmma_a_layout_is_the_documented_fragment),
        cmocka_unit_test(equal_maps_are_one_pointer),
        cmocka_unit_test(overlapping_iterators_are_no_layout),
        cmocka_unit_test(a_slice_replicates_what_it_drops),
        cmocka_unit_test(a_permuted_layout_swaps_coordinates),
        cmocka_unit_test(swizzle_128_spreads_a_column_over_all_banks),
        cmocka_unit_test(wide_rows_are_split_in_swizzle_atoms),
        cmocka_unit_test(owners_are_compared_without_registers),
        cmocka_unit_test(a_recast_keeps_the_bytes),
        cmocka_unit_test(a_reshape_keeps_the_elements),
        cmocka_unit_test(a_composition_names_elements),
        cmocka_unit_test(a_product_is_a_tile_of_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
