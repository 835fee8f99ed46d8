// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the CUDA driver makes of tensor map parameters. Usage: tensor_map_dump [RANDOM_COUNT]
//
// Prints one line for each set of parameters: the slots below in decimal, then the 128 bytes that
// the driver wrote (trailing zeros cut) or `E` and the error code. Every slot is varied alone over
// several base sets, the modes are combined with one another, and random sets, of which a part is
// made illegal in one slot, follow. No memory lies behind the addresses. Exit status 77: no GPU.

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_map_driver.h"

static void dump(const struct params *p)
{
    alignas(64) uint8_t map[128];
    memset(map, 0xaa, sizeof map);
    int result = driver_encode(p, map);
    params_print(p);
    if (result != 0) {
        printf("E%d\n", result);
        return;
    }
    int size = sizeof map;
    while (size > 0 && map[size - 1] == 0)
        size--;
    for (int i = 0; i < size; i++)
        printf("%02x", map[i]);
    putchar('\n');
}

static void sweep(struct params p, int slot, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        p.at[slot] = values[i];
        dump(&p);
    }
}

// Every power of two below 2^bits, and its two neighbours at `unit` distance.
static void sweep_bits(struct params p, int slot, int bits, int64_t unit)
{
    for (int i = 0; i < bits; i++)
        sweep(p, slot,
              (int64_t[]){INT64_C(1) << i, (INT64_C(1) << i) - unit, (INT64_C(1) << i) + unit}, 3);
}

static void sweep_range(struct params p, int slot, int64_t from, int64_t to)
{
    for (int64_t i = from; i <= to; i++) {
        p.at[slot] = i;
        dump(&p);
    }
}

static void sweep_all(int kind, int rank)
{
    struct params p = params_base(kind, rank);
    dump(&p);
    sweep_range(p, S_type, -1, 16);
    sweep_range(p, S_interleave, -1, 3);
    sweep_range(p, S_swizzle, -1, 7);
    sweep_range(p, S_l2, -1, 4);
    sweep_range(p, S_fill, -1, 2);
    sweep_bits(p, S_address, 63, 16);
    for (int i = 0; i < rank; i++) {
        sweep_bits(p, S_dim0 + i, 34, 1);
        sweep_range(p, S_step0 + i, 0, 9);
    }
    for (int i = 0; i + 1 < rank; i++)
        sweep_bits(p, S_stride0 + i, 42, 16);
    for (int i = 0; i < rank && kind == TILED; i++) {
        sweep_bits(p, S_box0 + i, 10, 1);
        sweep(p, S_box0 + i, (int64_t[]){24, 40, 48, 56, 72, 80, 96, 120, 160, 192, 248}, 11);
    }
    if (kind == TILED)
        return;
    sweep_bits(p, S_channels, 10, 1);
    sweep(p, S_channels, (int64_t[]){24, 40, 48, 56, 72, 80, 96, 120, 160, 192, 248}, 11);
    sweep_bits(p, S_pixels, 12, 1);
    sweep_range(p, S_wide, -1, 2);
    static const int64_t corners[] = {
        -40000, -32769, -32768, -4096, -129, -128, -127,  -110,  -104, -100, -64, -33,
        -32,    -17,    -16,    -15,   -8,   -4,   -3,    -2,    -1,   0,    1,   2,
        3,      4,      7,      8,     15,   16,   17,    31,    32,   64,   90,  99,
        100,    104,    110,    127,   128,  4096, 32767, 32768, 40000};
    for (int i = 0; i < 3; i++) {
        sweep(p, S_lower0 + i, corners, sizeof corners / sizeof *corners);
        sweep(p, S_upper0 + i, corners, sizeof corners / sizeof *corners);
    }
}

// The modes with one another: type, interleave, swizzle, fill, bytes of the inner box.
static void sweep_modes(int kind, int rank)
{
    static const int inner[] = {16, 32, 48, 64, 128, 144, 256};
    for (int type = 0; type < 16; type++) {
        for (int mode = 0; mode < 3 * 7 * 2; mode++) {
            struct params p = params_base(kind, rank);
            p.at[S_type] = type;
            p.at[S_interleave] = mode % 3;
            p.at[S_swizzle] = mode / 3 % 7;
            p.at[S_fill] = mode / 21;
            p.at[S_dim0] = 128;
            p.at[S_stride0] = 1024;
            for (size_t i = 0; i < (type < PACKED ? sizeof inner / sizeof *inner : 1); i++) {
                p.at[S_box0] = p.at[S_channels] = params_inner(type, inner[i]);
                dump(&p);
            }
        }
        struct params p = params_base(kind, rank);
        p.at[S_type] = type;
        p.at[S_box0] = p.at[S_channels] = params_inner(type, 32);
        p.at[S_dim0] = 128;
        sweep_bits(p, S_address, 9, 1);
        sweep_bits(p, S_stride0, 12, 16);
        sweep(p, S_dim0, (int64_t[]){1, 2, 16, 63, 64, 96, 127, 256, 258, 384}, 10);
    }
}

// Boxes as large as they get: the driver may hold them to the size of shared memory.
static void sweep_large_boxes(void)
{
    for (int rank = 1; rank <= 5; rank++)
        for (int size = 0; size < 3 * 3 * 3 * 3 * 3; size++) {
            struct params p = params_base(TILED, rank);
            for (int i = 0, left = size; i < rank; i++, left /= 3)
                p.at[S_box0 + i] = (int64_t[]){8, 128, 256}[left % 3];
            if (rank == 5 || size < 27)
                dump(&p);
        }
}

// Evenly spread over the number of bits.
static int64_t random_bits(int max)
{
    uint64_t top = UINT64_C(1) << random_below((uint64_t)max);
    return (int64_t)(top + random_below(top));
}

static int64_t random_corner(int rank)
{
    int64_t limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
    return (int64_t)random_below((uint64_t)(random_below(2) ? 4 : 2 * limit)) -
           (random_below(2) ? 2 : limit);
}

static struct params random_params(void)
{
    int kind = (int)(random_below(16) == 0 ? IM2COL_WIDE : random_below(3) == 0);
    int rank = (int)(kind == TILED ? 1 + random_below(5) : 3 + random_below(3));
    int type = (int)random_below(random_below(4) ? 13 : 16);
    int align = type > PACKED || random_below(2) ? 32 : 16;
    struct params p = params_base(kind, rank);
    p.at[S_type] = type;
    p.at[S_address] = random_bits(48 - 5) * align;
    int64_t stride = 0;
    for (int i = 0; i < rank; i++) {
        p.at[S_dim0 + i] = type > PACKED && i == 0 ? random_bits(24) * 128 : random_bits(32);
        if (type == PACKED && i == 0)
            p.at[S_dim0] = 2 * random_bits(30);
        p.at[S_box0 + i] = 1 + (int64_t)random_below(random_below(2) ? 8 : 256);
        p.at[S_step0 + i] = random_below(3) ? 1 : 1 + (int64_t)random_below(8);
        if (i > 0) {
            stride += random_bits(34) * align;
            p.at[S_stride0 + i - 1] = stride;
        }
    }
    p.at[S_swizzle] = (int64_t)random_below(7);
    p.at[S_interleave] = random_below(3) ? 0 : (int64_t)random_below(3);
    if (p.at[S_interleave] == 2)
        p.at[S_swizzle] = 1;
    static const uint8_t spans[] = {240, 32, 64, 128, 128, 128, 128};
    p.at[S_box0] =
        params_inner(type, 16 * (1 + (int64_t)random_below(spans[p.at[S_swizzle]] / 16)));
    p.at[S_channels] = p.at[S_box0];
    p.at[S_pixels] = 1 + (int64_t)random_below(1024);
    p.at[S_wide] = (int64_t)random_below(2);
    p.at[S_l2] = (int64_t)random_below(4);
    p.at[S_fill] = (int64_t)random_below(2);
    for (int i = 0; i < 3; i++) {
        p.at[S_lower0 + i] = random_corner(rank);
        p.at[S_upper0 + i] = random_corner(rank);
    }
    return p;
}

static void dump_random(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct params p = random_params();
        if (i % 4 == 3) {
            int slot = S_type + (int)random_below(SLOT_COUNT - S_type);
            p.at[slot] = random_below(2) ? random_bits(42) : (int64_t)random_below(17) - 1;
        }
        if (p.at[S_rank] >= 0 && p.at[S_rank] <= 8)
            dump(&p);
    }
}

int main(int argc, char **argv)
{
    if (!driver_start()) {
        fputs("no GPU, or a driver without tensor maps\n", stderr);
        return 77;
    }
    driver_print();
#define SLOT(name) " " #name
    puts("#" SLOTS(SLOT));
#undef SLOT
    for (int rank = 0; rank <= 6; rank++) {
        struct params p = params_base(TILED, rank < 6 ? rank : 5);
        for (int kind = TILED; kind < KINDS; kind++) {
            p.at[S_kind] = kind;
            p.at[S_rank] = rank;
            dump(&p);
        }
    }
    for (int rank = 1; rank <= 5; rank++)
        sweep_all(TILED, rank);
    for (int rank = 3; rank <= 5; rank++)
        sweep_all(IM2COL, rank);
    sweep_all(IM2COL_WIDE, 4);
    sweep_modes(TILED, 3);
    sweep_modes(IM2COL, 4);
    sweep_large_boxes();
    dump_random(argc > 1 ? strtoull(argv[1], NULL, 10) : 6000);
    return 0;
}
