// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The geometry of tensor copies: against what a GPU moved (tools/bench/tensor_map_probe.c says what
// a line of the file means), and against a model that looks at one element at a time.

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/async/tensor_map.h"

enum {
    GLOBAL_BYTES = 8 << 20,
    SHARED_START = 2048, // of the tile, in the probe's kernels
    TILE_BYTES = 96 << 10,
    UNTOUCHED = 0x7eadbeef,
    STORED = 0x50000000,
    ADDED = 0x10000000
};
static const uint64_t BASE = 1 << 30; // of the probe's buffer: an address that is not 0

static const char *golden;
static uint8_t global[GLOBAL_BYTES], shared[SHARED_START + TILE_BYTES + 4096];

struct probe {
    tir_tensor_map map;
    struct emu_tensor_copy copy;
    bool is_store, is_add;
    uint32_t tag, bytes;
};

// --- reading a line ---

static int64_t take(char **p)
{
    return strtoll(*p, p, 10);
}

static void take_u32(char **p, uint32_t *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = (uint32_t)take(p);
}

static void take_map(char **p, tir_tensor_map *m)
{
    m->kind = (tir_tensor_map_kind)take(p);
    m->type = (tir_tensor_map_type)take(p);
    m->rank = (uint32_t)take(p);
    m->address = BASE + (uint64_t)take(p);
    for (int i = 0; i < 5; i++)
        m->dims[i] = (uint64_t)take(p);
    for (int i = 0; i < 4; i++)
        m->strides[i] = (uint64_t)take(p);
    take_u32(p, m->box, 5);
    take_u32(p, m->steps, 5);
    m->interleave = (tir_tensor_map_interleave)take(p);
    m->swizzle = (tir_tensor_map_swizzle)take(p);
    m->l2 = (tir_tensor_map_l2)take(p);
    m->fill = (tir_tensor_map_fill)take(p);
    for (int i = 0; i < 3; i++)
        m->lower[i] = (int32_t)take(p);
    for (int i = 0; i < 3; i++)
        m->upper[i] = (int32_t)take(p);
    m->channels = (uint32_t)take(p);
    m->pixels = (uint32_t)take(p);
    take(p); // wide
}

// The rest of the line: what happened.
static char *take_probe(char *line, struct probe *c)
{
    char *p = line;
    *c = (struct probe){.bytes = 0};
    take(&p); // its number
    take_map(&p, &c->map);
    p += strspn(p, " ");
    c->is_store = *p == 's';
    c->is_add = *p == 'a';
    p += strcspn(p, " ");
    c->copy.map = &c->map;
    c->copy.is_load = !c->is_store && !c->is_add;
    c->copy.mode = c->map.kind == TIR_TENSOR_MAP_TILED ? EMU_TENSOR_TILE : EMU_TENSOR_IM2COL;
    for (int i = 0; i < 5; i++)
        c->copy.at[i] = (int32_t)take(&p);
    for (int i = 0; i < 3; i++)
        c->copy.offset[i] = (uint16_t)take(&p);
    c->copy.shared = SHARED_START + (uint32_t)take(&p);
    c->tag = (uint32_t)strtoul(p, &p, 16);
    c->bytes = (uint32_t)take(&p);
    return p + strspn(p, " ");
}

// --- doing it ---

static uint32_t get(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void fill(uint8_t *at, uint32_t words, uint32_t first, uint32_t step)
{
    for (uint32_t i = 0; i < words; i++) {
        const uint32_t value = first + i * step;
        for (int k = 0; k < 4; k++)
            at[4 * i + (uint32_t)k] = (uint8_t)(value >> 8 * k);
    }
}

static void move(void *user, struct emu_tensor_run r)
{
    const struct probe *c = user;
    const uint64_t pattern = emu_tensor_fill(&c->map);
    assert_true(r.size > 0 && r.shared + r.size <= sizeof shared);
    assert_true(!r.global || (r.global >= BASE && r.global + r.size <= BASE + GLOBAL_BYTES));
    for (uint32_t i = 0; i < r.size; i++) {
        uint8_t *s = &shared[r.shared + i], *g = r.global ? &global[r.global - BASE + i] : NULL;
        if (c->copy.is_load)
            *s = (uint8_t)(g ? *g : pattern >> 8 * (i % 8));
        else if (g && c->is_store)
            *g = *s;
    }
    const emu_convert_fn convert = c->copy.is_load && r.global ? emu_tensor_convert(&c->map) : NULL;
    for (uint32_t i = 0; i < r.size && convert; i += 4)
        fill(&shared[r.shared + i], 1, convert(get(&shared[r.shared + i])), 0);
    for (uint32_t i = 0; i < r.size && r.global && c->is_add; i += 4)
        fill(&global[r.global - BASE + i], 1,
             get(&global[r.global - BASE + i]) + get(&shared[r.shared + i]), 0);
}

// --- comparing ---

// One run of the line: `limit` bounds what `@` may say. Advances over `words` of memory.
static bool same_run(char **p, const uint8_t *at, uint32_t tag, uint32_t *words)
{
    const char kind = *(*p)++;
    uint32_t value = 0, step = 0;
    if (kind == '@') {
        value = (uint32_t)strtoul(*p, p, 10) + tag;
        step = 1;
    } else if (kind == 'x') {
        value = (uint32_t)strtoul(*p, p, 16);
    } else if (kind == '?') {
        value = UNTOUCHED;
    } else if (kind != '0') {
        return false;
    }
    if (*(*p)++ != '*')
        return false;
    *words = (uint32_t)strtoul(*p, p, 10);
    *p += strspn(*p, " ");
    for (uint32_t i = 0; i < *words; i++)
        if (get(at + 4 * i) != value + i * step)
            return false;
    return true;
}

static bool same_load(char *p, const struct probe *c)
{
    uint32_t at = c->copy.shared, words;
    while (*p != '\n' && *p != '\0') {
        if (!same_run(&p, &shared[at], c->tag, &words))
            return false;
        at += 4 * words;
    }
    return true;
}

// Words between the stretches of the line have not changed.
static bool same_gap(uint32_t from, uint32_t to, uint32_t tag)
{
    for (uint32_t i = from; i < to; i++)
        if (get(&global[4 * i]) != tag + i)
            return false;
    return true;
}

static bool same_store(char *p, const struct probe *c)
{
    uint32_t at = 0, words;
    while (*p != '\n' && *p != '\0') {
        if (strcspn(p, ":") < strcspn(p, " \n")) {
            const uint32_t start = (uint32_t)strtoul(p, &p, 10);
            if (!same_gap(at, start, c->tag))
                return false;
            at = start;
            p += 1 + strspn(p + 1, " ");
        }
        if (!same_run(&p, &global[4 * at], c->is_add ? c->tag + ADDED : STORED, &words))
            return false;
        at += words;
    }
    return same_gap(at, GLOBAL_BYTES / 4, c->tag);
}

static void test_hardware(void **state)
{
    (void)state;
    static char line[1 << 16];
    uint32_t count = 0, faults = 0;
    FILE *file = fopen(golden, "r");
    assert_non_null(file);
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        struct probe c;
        if (line[0] == '#')
            continue;
        char *p = take_probe(line, &c);
        fill(global, GLOBAL_BYTES / 4, c.tag, 1);
        fill(shared, sizeof shared / 4, UNTOUCHED, 0);
        if (!c.copy.is_load)
            fill(&shared[c.copy.shared], emu_tensor_extent(&c.copy) / 4 + 64,
                 c.is_store ? STORED : ADDED, c.is_store);
        const char *why = emu_tensor_walk(&c.copy, move, &c);
        count++;
        if (strncmp(p, "fault", 5) == 0) {
            faults++;
            if (!why)
                fail_msg("line %d: hardware refuses it", number);
            continue;
        }
        if (why)
            fail_msg("line %d: %s", number, why);
        // The state of the barrier in place of `done`: it was told of another number of bytes.
        const bool is_done = strncmp(p, "done", 4) == 0;
        if (c.copy.is_load && (emu_tensor_bytes(&c.copy) == c.bytes) != is_done)
            fail_msg("line %d: %u bytes, and the barrier was told of %u", number,
                     emu_tensor_bytes(&c.copy), c.bytes);
        p += strcspn(p, " \n");
        p += strspn(p, " ");
        if (!(c.copy.is_load ? same_load(p, &c) : same_store(p, &c)))
            fail_msg("line %d: other bytes than on hardware", number);
    }
    fclose(file);
    assert_true(count > 100 && faults > 10 && faults < count);
}

// --- an element at a time ---

static uint32_t random_below(uint32_t limit)
{
    static uint64_t seed = 88172645463325252;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % limit;
}

enum { PLACES = 1 << 18 };
static uint64_t where[PLACES]; // of each byte of shared memory: its global address, 0: outside
static bool is_there[PLACES];
static uint32_t moved;

static void note(void *user, struct emu_tensor_run r)
{
    (void)user;
    for (uint32_t i = 0; i < r.size; i++) {
        assert_true(r.shared + i < PLACES && !is_there[r.shared + i]);
        is_there[r.shared + i] = true;
        where[r.shared + i] = r.global ? r.global + i : 0;
    }
    moved += r.size;
}

// The coordinates of element `n` of dimension 0 in row `row` of the box.
static void coordinates(const struct emu_tensor_copy *c, uint32_t row, uint32_t n, int64_t *at)
{
    const tir_tensor_map *m = c->map;
    at[0] = (int64_t)c->at[0] + n;
    if (c->mode == EMU_TENSOR_ROWS) {
        at[1] = c->at[1 + row];
    } else if (c->mode == EMU_TENSOR_TILE) {
        for (uint32_t i = 1; i < m->rank; i++) {
            const uint32_t count = (m->box[i] + m->steps[i] - 1) / m->steps[i];
            at[i] = c->at[i] + (int64_t)(row % count) * m->steps[i];
            row /= count;
        }
    } else {
        // Steps from the first pixel: whole windows that went by, and what is left in this one.
        for (uint32_t i = 1; i < m->rank; i++)
            at[i] = c->at[i];
        for (; row > 0; row--)
            for (uint32_t i = 1; i < m->rank; i++) {
                const bool is_pixel = i + 1 < m->rank;
                at[i] += is_pixel ? m->steps[i] : 1;
                if (!is_pixel || at[i] <= (int64_t)m->dims[i] - 1 + m->upper[i - 1])
                    break;
                at[i] = m->lower[i - 1];
            }
        for (uint32_t i = 1; i + 1 < m->rank; i++)
            at[i] += c->offset[i - 1];
    }
}

static uint64_t address_of(const tir_tensor_map *m, const int64_t *at)
{
    uint64_t address = m->address + (uint64_t)at[0] * tir_tensor_map_type_bits(m->type) / 8;
    for (uint32_t i = 0; i < m->rank; i++)
        if (at[i] < 0 || at[i] >= (int64_t)m->dims[i])
            return 0;
    for (uint32_t i = 1; i < m->rank; i++)
        address += (uint64_t)at[i] * m->strides[i - 1];
    return address;
}

// The swizzle as a table of the pieces of eight rows of 128 bytes.
static uint32_t swizzle(const tir_tensor_map *m, uint32_t address)
{
    const uint32_t row = address / 128 % 8, piece = address / 16 % 8;
    const uint32_t other = row % (1u << m->swizzle);
    return address - piece * 16 + (piece ^ other) * 16;
}

static void check_elements(const struct emu_tensor_copy *c)
{
    const tir_tensor_map *m = c->map;
    const uint32_t size = tir_tensor_map_type_bytes(m->type), span = 16u << m->swizzle;
    const uint32_t inner = c->mode == EMU_TENSOR_IM2COL ? m->channels : m->box[0];
    const uint32_t rows = emu_tensor_bytes(c) / (inner * size);
    memset(is_there, 0, sizeof is_there);
    moved = 0;
    assert_null(emu_tensor_walk(c, note, NULL));
    assert_int_equal(moved, emu_tensor_bytes(c));
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t n = 0; n < inner; n++) {
            int64_t at[TIR_TENSOR_MAP_RANK];
            coordinates(c, row, n, at);
            const uint64_t address = address_of(m, at);
            const uint32_t pitch = m->swizzle ? span : inner * size;
            const uint32_t place = swizzle(m, c->shared + row * pitch + n * size);
            for (uint32_t k = 0; k < size; k++) {
                assert_true(is_there[place + k]);
                assert_true(where[place + k] == (address ? address + k : 0));
            }
        }
}

static tir_tensor_map random_map(enum emu_tensor_mode mode)
{
    tir_tensor_map m = {.kind = mode == EMU_TENSOR_IM2COL ? TIR_TENSOR_MAP_IM2COL
                                                          : TIR_TENSOR_MAP_TILED,
                        .type = (tir_tensor_map_type)random_below(TIR_TENSOR_MAP_TF32_FTZ + 1),
                        .swizzle = (tir_tensor_map_swizzle)random_below(4),
                        .rank = mode == EMU_TENSOR_ROWS     ? 2
                                : mode == EMU_TENSOR_IM2COL ? 3 + random_below(3)
                                                            : 1 + random_below(5),
                        .address = 4096,
                        .pixels = 1 + random_below(60)};
    const uint32_t size = tir_tensor_map_type_bytes(m.type);
    const uint32_t span = m.swizzle ? 16u << m.swizzle : 256;
    m.channels = m.box[0] = 16 * (1 + random_below(span / 16)) / size;
    uint64_t stride = 1024;
    for (uint32_t i = 0; i < m.rank; i++) {
        m.dims[i] = 1 + random_below(i ? 9 : 900 / size);
        m.steps[i] = i && random_below(2) ? 1 + random_below(3) : 1;
        if (i) {
            m.box[i] = mode == EMU_TENSOR_ROWS ? 1 : 1 + random_below(5);
            m.strides[i - 1] = stride;
            stride *= m.dims[i] + random_below(2);
        }
    }
    for (uint32_t i = 0; i + 2 < m.rank; i++) {
        m.lower[i] = (int32_t)random_below(4) - 2;
        m.upper[i] = m.lower[i] - (int32_t)random_below((uint32_t)m.dims[i + 1]);
    }
    return m;
}

static void test_elements(void **state)
{
    (void)state;
    for (int n = 0; n < 1500; n++) {
        const enum emu_tensor_mode mode = (enum emu_tensor_mode)random_below(3);
        const tir_tensor_map m = random_map(mode);
        uint8_t bytes[TIR_TENSOR_MAP_BYTES];
        tir_error error;
        if (tir_tensor_map_encode(&m, bytes, &error) != TIR_OK)
            fail_msg("%s", error.message);
        struct emu_tensor_copy c = {.map = &m,
                                    .mode = mode,
                                    .is_load = true,
                                    .offset = {1, 0, 2},
                                    .shared = 128 * random_below(8)};
        const int32_t unit = 16 / (int32_t)tir_tensor_map_type_bytes(m.type);
        c.at[0] = unit * ((int32_t)random_below(8) - 2);
        for (int i = 1; i < 5; i++)
            c.at[i] = (int32_t)random_below(10) - 3;
        for (uint32_t i = 1; i + 1 < m.rank && mode == EMU_TENSOR_IM2COL; i++)
            c.at[i] = m.lower[i - 1] +
                      (int32_t)random_below(
                          (uint32_t)((int32_t)m.dims[i] + m.upper[i - 1] - m.lower[i - 1]));
        check_elements(&c);
    }
}

static void expect_refusal(const tir_tensor_map *m, struct emu_tensor_copy c, const char *why)
{
    c.map = m;
    moved = 0;
    const char *said = emu_tensor_walk(&c, note, NULL);
    assert_non_null(said);
    assert_non_null(strstr(said, why));
    assert_int_equal(moved, 0);
}

static void far(void *user, struct emu_tensor_run r)
{
    uint64_t *last = user;
    assert_true(r.global >= UINT64_C(1) << 57);
    *last = r.global;
}

// Products of strides and coordinates that do not fit 64 bits lead nowhere near the tensor.
static void test_far(void **state)
{
    (void)state;
    tir_tensor_map m = {
        .type = TIR_TENSOR_MAP_U8,
        .rank = 5,
        .address = 4096,
        .dims = {16, UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 32},
        .steps = {1, 1, 1, 1, 1},
        .box = {16, 1, 1, 1, 1}};
    struct emu_tensor_copy c = {
        .map = &m, .is_load = true, .at = {0, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
    for (uint32_t bit = 26; bit < 40; bit++) {
        uint64_t last = 0;
        for (int i = 0; i < 4; i++)
            m.strides[i] = UINT64_C(1) << bit;
        assert_null(emu_tensor_walk(&c, far, &last));
        assert_true(last > 0);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    tir_tensor_map m = {.type = TIR_TENSOR_MAP_F16,
                        .rank = 2,
                        .address = 4096,
                        .dims = {64, 64},
                        .strides = {256},
                        .steps = {1, 1},
                        .box = {8, 2}};
    const struct emu_tensor_copy load = {.is_load = true, .shared = 1024};
    struct emu_tensor_copy c = load;
    c.shared = 1040;
    expect_refusal(&m, c, "128 bytes");
    c = load;
    c.at[0] = 1;
    expect_refusal(&m, c, "16 bytes");
    c = load;
    c.at[1] = -1;
    c.is_load = false;
    expect_refusal(&m, c, "negative");
    c = load;
    c.mode = EMU_TENSOR_ROWS;
    expect_refusal(&m, c, "one row");
    c.mode = EMU_TENSOR_IM2COL;
    expect_refusal(&m, c, "im2col map");
    tir_tensor_map pixels = m;
    pixels.kind = TIR_TENSOR_MAP_IM2COL;
    pixels.rank = 4;
    pixels.channels = 8;
    pixels.pixels = 2;
    for (int i = 2; i < 4; i++) {
        pixels.dims[i] = 4;
        pixels.strides[i - 1] = 1024;
        pixels.steps[i] = 1;
    }
    c = load;
    c.mode = EMU_TENSOR_IM2COL;
    c.offset[1] = 256;
    expect_refusal(&pixels, c, "8 bits of rank 4");
    m.address = 0;
    expect_refusal(&m, load, "address 0");
    m.address = 4096;
    // The driver's count of bytes is 0 for a step above the box, so it takes such a map.
    m.rank = 5;
    for (int i = 1; i < 5; i++) {
        m.dims[i] = 256;
        m.strides[i - 1] = 256;
        m.box[i] = i < 4 ? 256 : 4;
        m.steps[i] = i < 4 ? 1 : 8;
    }
    uint8_t bytes[TIR_TENSOR_MAP_BYTES];
    assert_int_equal(tir_tensor_map_encode(&m, bytes, NULL), TIR_OK);
    expect_refusal(&m, load, "larger than shared memory");
}

// The first bytes of each 16, in the order of the elements, and nothing else.
static void check_packed(const struct emu_tensor_copy *c, uint32_t bits)
{
    const tir_tensor_map *m = c->map;
    memset(is_there, 0, sizeof is_there);
    moved = 0;
    assert_null(emu_tensor_walk(c, note, NULL));
    assert_int_equal(moved, emu_tensor_bytes(c));
    assert_int_equal(moved, m->box[1] * 128 * bits / 8);
    for (uint32_t row = 0; row < m->box[1]; row++)
        for (uint32_t n = 0; n < 128; n++) {
            const int64_t at[] = {c->at[0] + n / 16 * 16, c->at[1] + row};
            const uint32_t place = swizzle(m, c->shared + row * 128 + n / 16 * 16) + n % 16;
            const uint64_t address = address_of(m, at);
            assert_int_equal(is_there[place], n % 16 < 2 * bits);
            if (is_there[place])
                assert_true(where[place] == (address ? address + n % 16 : 0));
        }
}

static void test_packed(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        const bool is_6 = random_below(2);
        const tir_tensor_map m = {
            .type = is_6 ? TIR_TENSOR_MAP_U6_ALIGN16 : TIR_TENSOR_MAP_U4_ALIGN16,
            .swizzle = random_below(2) ? TIR_TENSOR_MAP_SWIZZLE_128 : TIR_TENSOR_MAP_SWIZZLE_NONE,
            .rank = 2,
            .address = 4096,
            .dims = {128 * (1 + random_below(3)), 1 + random_below(9)},
            .strides = {1024},
            .steps = {1, 1},
            .box = {128, 1 + random_below(5)}};
        const struct emu_tensor_copy c = {
            .map = &m,
            .is_load = true,
            .at = {128 * ((int32_t)random_below(5) - 1), (int32_t)random_below(10) - 3},
            .shared = 128 * random_below(8)};
        check_packed(&c, is_6 ? 6 : 4);
        struct emu_tensor_copy wrong = c;
        wrong.at[0] += 64;
        expect_refusal(&m, wrong, "multiple of 128");
        wrong = c;
        wrong.at[0] = wrong.at[1] = 0;
        wrong.is_load = false;
        expect_refusal(&m, wrong, "loaded, not stored");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    golden = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hardware), cmocka_unit_test(test_elements),
        cmocka_unit_test(test_packed),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
