// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walking the box of a tensor copy. The rules are what an H200 does
// (tools/bench/tensor_map_probe.c, tests/emu/tensor_map.golden).

#include "emu/async/tensor_map.h"

#include <stddef.h>
#include <string.h>

enum {
    MAX_EXTENT = 233472, // shared memory of a multiprocessor
    UNIT = 16,           // bytes
    PACKED_ROW = 128     // elements of 4 or 6 bits
};
#define FAR (UINT64_C(1) << 60)

struct walk {
    const struct emu_tensor_copy *copy;
    const tir_tensor_map *map;
    emu_tensor_run_fn emit;
    void *user;
    uint32_t row_bytes, pitch;
    uint32_t swizzle_mask;     // of address bits 4 to 6
    uint32_t next;             // where in shared memory the next row goes, before swizzling
    struct emu_tensor_run run; // that may go on; size 0: none
};

// --- sizes ---

static bool is_interleaved(const tir_tensor_map *m)
{
    return m->interleave != TIR_TENSOR_MAP_DENSE;
}

static uint32_t slice_bytes(const tir_tensor_map *m)
{
    return 16u * (uint32_t)m->interleave;
}

// Of 16 bytes of shared memory those that elements of 4 or 6 bits are in; of others, all.
static uint32_t used_bytes(const tir_tensor_map *m)
{
    return UNIT * tir_tensor_map_type_bits(m->type) / (8 * tir_tensor_map_type_bytes(m->type));
}

// Bytes of a row.
static uint32_t row_bytes(const struct emu_tensor_copy *c)
{
    const tir_tensor_map *m = c->map;
    const uint32_t inner = c->mode == EMU_TENSOR_IM2COL ? m->channels : m->box[0];
    return is_interleaved(m) ? slice_bytes(m) : inner * tir_tensor_map_type_bytes(m->type);
}

// Rows a dimension of the box has. Steps of dimension 0 count only where it is one of rows. Of an
// interleaved tensor the last dimension but one is that of slices, and its box counts elements.
static uint32_t box_rows(const struct emu_tensor_copy *c, uint32_t dim)
{
    const tir_tensor_map *m = c->map;
    if (dim == 0 && !is_interleaved(m))
        return 1;
    if (is_interleaved(m) && dim == m->rank - 2)
        return (m->box[dim] * tir_tensor_map_type_bytes(m->type) + slice_bytes(m) - 1) /
               slice_bytes(m);
    return (m->box[dim] + m->steps[dim] - 1) / m->steps[dim];
}

static uint64_t row_count(const struct emu_tensor_copy *c)
{
    if (c->mode == EMU_TENSOR_ROWS)
        return 4;
    if (c->mode == EMU_TENSOR_IM2COL)
        return c->map->pixels;
    uint64_t rows = 1;
    for (uint32_t i = 0; i < c->map->rank; i++)
        rows *= box_rows(c, i);
    return rows;
}

static uint32_t row_pitch(const struct emu_tensor_copy *c)
{
    const uint32_t span = c->map->swizzle ? 16u << c->map->swizzle : 0, bytes = row_bytes(c);
    return bytes < span && !is_interleaved(c->map) ? span : bytes;
}

uint32_t emu_tensor_bytes(const struct emu_tensor_copy *copy)
{
    return (uint32_t)row_count(copy) * row_bytes(copy) / UNIT * used_bytes(copy->map);
}

uint32_t emu_tensor_extent(const struct emu_tensor_copy *copy)
{
    return (uint32_t)row_count(copy) * row_pitch(copy);
}

uint64_t emu_tensor_fill(const tir_tensor_map *map)
{
    return map->fill == TIR_TENSOR_MAP_FILL_NAN ? UINT64_C(0x7ff77ff77ff77ff7) : 0;
}

// To nearest, ties to even; NaNs become one. Subnormals stay, also where the type says .ftz.
static uint32_t rounded(uint32_t bits)
{
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fffe000;
    return (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
}

emu_convert_fn emu_tensor_convert(const tir_tensor_map *map)
{
    const bool is_tf32 = map->type == TIR_TENSOR_MAP_TF32 || map->type == TIR_TENSOR_MAP_TF32_FTZ;
    return is_tf32 ? rounded : NULL;
}

// --- runs ---

static void flush(struct walk *w)
{
    if (w->run.size)
        w->emit(w->user, w->run);
    w->run.size = 0;
}

// A stretch that is contiguous on both sides; it may go on with the one before.
static void add(struct walk *w, uint64_t global, uint32_t shared, uint32_t size, bool is_tail)
{
    struct emu_tensor_run *r = &w->run;
    const bool goes_on = r->size && r->shared + r->size == shared && r->is_tail == is_tail &&
                         (global ? r->global && r->global + r->size == global : !r->global);
    if (goes_on) {
        r->size += size;
        return;
    }
    flush(w);
    *r = (struct emu_tensor_run){global, shared, size, is_tail};
}

static uint32_t swizzled(const struct walk *w, uint32_t address)
{
    return address ^ (address >> 3 & w->swizzle_mask);
}

// Bytes of the row that begins at `shared` before swizzling: piece by piece where it is swizzled.
static void stretch(struct walk *w, uint64_t global, uint32_t shared, uint32_t size, bool is_tail)
{
    while (size) {
        uint32_t part = size;
        if (w->swizzle_mask && part > 16 - shared % 16)
            part = 16 - shared % 16;
        add(w, global, swizzled(w, shared), part, is_tail);
        global += global ? part : 0;
        shared += part;
        size -= part;
    }
}

// The next row: `before` bytes outside, `inside` bytes from `global` on, the rest outside.
static void row(struct walk *w, uint64_t global, uint32_t before, uint32_t inside)
{
    const uint32_t at = w->next, end = before + inside;
    const uint32_t tail = w->copy->is_load ? 0 : (16 - end % 16) % 16; // rows have multiples of 16
    stretch(w, 0, at, before, false);
    stretch(w, global, at + before, inside, false);
    stretch(w, global + inside, at + end, tail, true);
    stretch(w, 0, at + end + tail, w->row_bytes - end - tail, false);
    w->next += w->pitch;
}

// The next row, of elements of 4 or 6 bits, which is inside or outside as a whole: the last bytes
// of each 16 stay as they are.
static void packed_row(struct walk *w, uint64_t global, int64_t first)
{
    const tir_tensor_map *m = w->map;
    const uint32_t used = used_bytes(m);
    const bool is_inside = global && first >= 0 && (uint64_t)first < m->dims[0];
    if (is_inside)
        global += (uint64_t)first / UNIT * used;
    for (uint32_t at = 0; at < w->row_bytes; at += UNIT)
        stretch(w, is_inside ? global + at / UNIT * used : 0, w->next + at, used, false);
    w->next += w->pitch;
}

// The next row: elements from `first` on of the row of memory at `global`.
static void inner_row(struct walk *w, uint64_t global, int64_t first)
{
    const tir_tensor_map *m = w->map;
    if (used_bytes(m) < UNIT) {
        packed_row(w, global, first);
        return;
    }
    const int64_t bytes = tir_tensor_map_type_bytes(m->type), end = (int64_t)m->dims[0] * bytes;
    const int64_t start = first * bytes, stop = start + w->row_bytes;
    const int64_t from = start < 0 ? 0 : start, to = stop > end ? end : stop;
    if (from >= to)
        row(w, 0, 0, 0);
    else
        row(w, global + (uint64_t)from, (uint32_t)(from - start), (uint32_t)(to - from));
}

// Bytes from the first element of a dimension to its element `at`; far away where it is farther
// than addresses go, so that sums never wrap.
static uint64_t distance(const tir_tensor_map *m, uint32_t dim, uint64_t at)
{
    const uint64_t stride = dim == 0 ? slice_bytes(m) : m->strides[dim - 1];
    return stride && at > FAR / stride ? FAR : at * stride;
}

// Rows at the coordinates `at` of the dimensions from `first` on, or outside.
static void place_row(struct walk *w, const int64_t *at, uint32_t first, int64_t inner)
{
    const tir_tensor_map *m = w->map;
    uint64_t global = m->address;
    for (uint32_t i = first; i < m->rank; i++) {
        if (at[i] < 0 || (uint64_t)at[i] >= m->dims[i]) {
            if (first)
                inner_row(w, 0, -(int64_t)w->row_bytes);
            else
                row(w, 0, 0, 0);
            return;
        }
        global += distance(m, i, (uint64_t)at[i]);
    }
    if (first == 0)
        row(w, global, 0, w->row_bytes);
    else
        inner_row(w, global, inner);
}

static void walk_tile(struct walk *w)
{
    const struct emu_tensor_copy *c = w->copy;
    const tir_tensor_map *m = w->map;
    const uint32_t first = is_interleaved(m) ? 0 : 1, rows = (uint32_t)row_count(c);
    uint32_t index[TIR_TENSOR_MAP_RANK] = {0};
    for (uint32_t n = 0; n < rows; n++) {
        int64_t at[TIR_TENSOR_MAP_RANK];
        for (uint32_t i = 0; i < m->rank; i++)
            at[i] = (int64_t)c->at[i] + (int64_t)index[i] * m->steps[i];
        place_row(w, at, first, c->at[0]);
        for (uint32_t i = first; i < m->rank && ++index[i] == box_rows(c, i); i++)
            index[i] = 0;
    }
}

static void walk_rows(struct walk *w)
{
    const struct emu_tensor_copy *c = w->copy;
    for (int i = 1; i <= 4; i++) {
        const int64_t at[TIR_TENSOR_MAP_RANK] = {0, c->at[i]};
        place_row(w, at, 1, c->at[0]);
    }
}

// The base pixel goes through the box of the corners, row by row, image by image. An interleaved
// tensor has the dims of pixels first, and a slice of each pixel is moved.
static void walk_im2col(struct walk *w)
{
    const struct emu_tensor_copy *c = w->copy;
    const tir_tensor_map *m = w->map;
    const uint32_t first = is_interleaved(m) ? 0 : 1, corners = m->rank - 2;
    int64_t base[TIR_TENSOR_MAP_RANK] = {0};
    for (uint32_t i = 0; i < m->rank; i++)
        base[i] = c->at[i];
    for (uint32_t n = 0; n < m->pixels; n++) {
        int64_t at[TIR_TENSOR_MAP_RANK];
        memcpy(at, base, sizeof at);
        for (uint32_t i = 0; i < corners && c->is_load; i++)
            at[first + i] += c->offset[i];
        place_row(w, at, first, c->at[0]);
        uint32_t i = 0;
        for (; i < corners; i++) {
            int64_t *pixel = &base[first + i];
            *pixel += m->steps[first + i];
            if (*pixel < (int64_t)m->dims[first + i] + m->upper[i])
                break;
            *pixel = m->lower[i];
        }
        base[m->rank - 1] += i == corners;
    }
}

// --- what hardware refuses ---

// The pixels of an im2col copy begin in the box of the corners; that of a store lies in the tensor.
static const char *window_refusal(const struct emu_tensor_copy *c)
{
    const tir_tensor_map *m = c->map;
    const uint32_t first = is_interleaved(m) ? 0 : 1;
    static const uint16_t most[] = {[3] = UINT16_MAX, [4] = UINT8_MAX, [5] = 31}; // PTX ISA
    for (uint32_t i = 0; i + 2 < m->rank; i++) {
        if (c->is_load && c->offset[i] > most[m->rank])
            return "an im2col offset takes more than the 8 bits of rank 4, or 5 bits of rank 5";
        const int64_t dim = (int64_t)m->dims[first + i], at = c->at[first + i];
        const int64_t lower = m->lower[i], upper = dim - 1 + m->upper[i];
        if (at < lower || at > upper)
            return "the first pixel is outside of the map's corners";
        if (!c->is_load && (lower < 0 || upper >= dim))
            return "the map's corners are outside of the tensor";
    }
    return NULL;
}

static const char *refusal(const struct emu_tensor_copy *c)
{
    const tir_tensor_map *m = c->map;
    const uint32_t coordinates = c->mode == EMU_TENSOR_ROWS ? 5 : m->rank;
    if ((c->mode == EMU_TENSOR_IM2COL) != (m->kind != TIR_TENSOR_MAP_TILED))
        return c->mode == EMU_TENSOR_IM2COL ? "an im2col copy needs an im2col map"
                                            : "a tile copy needs a tiled map";
    if (c->mode == EMU_TENSOR_ROWS && (m->rank != 2 || m->box[1] != 1))
        return "gather4 and scatter4 need a map of rank 2 with boxes of one row";
    if (m->address == 0)
        return "the tensor is at address 0";
    if (row_count(c) * row_pitch(c) > MAX_EXTENT)
        return "the box is larger than shared memory";
    if (c->shared % 128)
        return "the tile in shared memory is not aligned to 128 bytes";
    if (!is_interleaved(m) && c->at[0] * (int64_t)tir_tensor_map_type_bytes(m->type) % 16)
        return "coordinate 0 is not at a multiple of 16 bytes";
    if (used_bytes(m) < UNIT && c->at[0] % PACKED_ROW)
        return "coordinate 0 of elements of less than 8 bits is no multiple of 128";
    if (used_bytes(m) < UNIT && !c->is_load)
        return "elements of less than 8 bits are loaded, not stored";
    for (uint32_t i = 0; i < coordinates && !c->is_load; i++)
        if (c->at[i] < 0)
            return "only loads may begin at negative coordinates";
    return c->mode == EMU_TENSOR_IM2COL ? window_refusal(c) : NULL;
}

const char *emu_tensor_walk(const struct emu_tensor_copy *copy, emu_tensor_run_fn emit, void *user)
{
    const char *why = refusal(copy);
    if (why)
        return why;
    struct walk w = {.copy = copy,
                     .map = copy->map,
                     .emit = emit,
                     .user = user,
                     .row_bytes = row_bytes(copy),
                     .pitch = row_pitch(copy),
                     .swizzle_mask = (1u << copy->map->swizzle) * 16 - 16,
                     .next = copy->shared};
    if (copy->mode == EMU_TENSOR_TILE)
        walk_tile(&w);
    else if (copy->mode == EMU_TENSOR_IM2COL)
        walk_im2col(&w);
    else
        walk_rows(&w);
    flush(&w);
    return NULL;
}
