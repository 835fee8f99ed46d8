// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomics: lanes take their turn in order, and nothing else runs meanwhile.

#include "emu/mem/atom.h"

#include <math.h>
#include <string.h>

#include "emu/lane/fp.h"
#include "emu/run/run.h"
#include "emu/run/state.h"

static float canon(float x)
{
    return x != x ? emu_f32_of(EMU_NAN_F32) : x;
}

static uint64_t add16(uint64_t a, uint64_t b, enum emu_type type)
{
    const double sum = emu_fp_to_f64((uint16_t)a, type) + emu_fp_to_f64((uint16_t)b, type);
    return emu_fp_from_f64(sum, type, EMU_RN, false);
}

static uint64_t pick16(uint64_t a, uint64_t b, enum emu_type type, bool want_min)
{
    const double x = emu_fp_to_f64((uint16_t)a, type), y = emu_fp_to_f64((uint16_t)b, type);
    if (x != x || y != y)
        return x == x ? (uint16_t)a : y == y ? (uint16_t)b : EMU_NAN_F16;
    const bool less = x < y || (x == y && signbit(x) && !signbit(y));
    return less == want_min ? (uint16_t)a : (uint16_t)b;
}

const char *const emu_atom_names[] = {"add", "min", "max",  "inc", "dec", "and",
                                      "or",  "xor", "exch", "cas", NULL};

#define ATOM(op, type, expr)                                        \
    static uint64_t op##_##type(uint64_t a, uint64_t b, uint64_t c) \
    {                                                               \
        (void)a;                                                    \
        (void)b;                                                    \
        (void)c;                                                    \
        return (uint64_t)(expr);                                    \
    }
#include "emu/mem/atom.def"

emu_atom_fn emu_atom_find(int op, enum emu_type type)
{
    static const struct {
        const char *name;
        enum emu_type type;
        emu_atom_fn fn;
    } rows[] = {
#define ATOM(op, type, expr) {#op, EMU_##type, op##_##type},
#include "emu/mem/atom.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type && strcmp(rows[i].name, emu_atom_names[op]) == 0)
            return rows[i].fn;
    return NULL;
}

// exch and cas of 16 bytes, which no function over 64-bit integers can do. list: a result and a
// source; src: address, new value of cas; op: it is cas
EMU_RUN(atom_wide)
{
    enum { SIZE = 16 };
    uint64_t address[EMU_WARP];
    uint8_t old[SIZE * EMU_WARP];
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint8_t *b = emu_at_ref(w, args[1].ref), *c = emu_at_ref(w, in->src[1]);
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const struct emu_cell cell =
            emu_resolve(w, i, (enum emu_space)in->space, address[i], SIZE, EMU_ATOMIC);
        memcpy(old + i * SIZE, cell.bytes, SIZE);
        const bool writes = !in->op || memcmp(cell.bytes, b + i * SIZE, SIZE) == 0;
        const uint8_t *value = (in->op ? c : b) + i * SIZE;
        w->launch->events += writes && memcmp(cell.bytes, value, SIZE) != 0;
        if (writes)
            memcpy(cell.bytes, value, SIZE);
    }
    emu_commit(w, args[0].ref, old, SIZE, mask);
    emu_poll(w, in, address[emu_first_lane(mask)]);
}

// list: for each element a result and a source; src: address, new value of cas; op: it is cas
EMU_RUN(atom)
{
    uint64_t address[EMU_WARP];
    uint8_t old[8][8 * EMU_WARP];
    const uint32_t size = in->size, elements = in->count / 2u;
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    emu_addresses(w, in, address);
    for (uint32_t i = 0; i < EMU_WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        const uint64_t c = emu_lane_value(w, in->src[1], size, i);
        for (uint32_t k = 0; k < elements; k++) {
            const struct emu_cell cell = emu_resolve(w, i, (enum emu_space)in->space,
                                                     address[i] + k * size, size, EMU_ATOMIC);
            uint64_t value = 0;
            memcpy(&value, cell.bytes, size);
            memcpy(old[k] + i * size, &value, size);
            const uint64_t before = value;
            value = in->atom(value, emu_lane_value(w, args[2 * k + 1].ref, size, i), c);
            w->launch->events += value != before;
            memcpy(cell.bytes, &value, size);
        }
    }
    for (uint32_t k = 0; k < elements; k++)
        emu_commit(w, args[2 * k].ref, old[k], size, mask);
    emu_poll(w, in, address[emu_first_lane(mask)]);
}
