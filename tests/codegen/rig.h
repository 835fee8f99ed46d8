// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests of what generated code computes: one operation over many values, on the emulator.
#ifndef TESTS_CODEGEN_RIG_H
#define TESTS_CODEGEN_RIG_H

#include "codegen.h"

#include <stdlib.h>

#include "emu/emu.h"

#define COUNT 8192 // values a run takes

struct rig {
    struct emu *emu;
    uint64_t x, y, z, o;
};

static inline int start(void **state)
{
    struct rig *r = calloc(1, sizeof(*r));
    tir_error error;
    struct emu_options options = {.check = EMU_CHECK_FULL};
    if (!r || emu_create(&options, &r->emu, &error) ||
        emu_alloc(r->emu, COUNT * 8, &r->x, &error) ||
        emu_alloc(r->emu, COUNT * 8, &r->y, &error) ||
        emu_alloc(r->emu, COUNT * 8, &r->z, &error) || emu_alloc(r->emu, COUNT * 8, &r->o, &error))
        return -1;
    *state = r;
    return 0;
}

static inline int finish(void **state)
{
    struct rig *r = *state;
    emu_destroy(r->emu);
    free(r);
    return 0;
}

// O[i] = op(X[i], Y[i], Z[i]) of `from` elements as `to` elements; where: X is bool.
static inline void build(struct ir_unit *u, enum tir_op op, enum tir_elem from, enum tir_elem to)
{
    static const char *const names[] = {"X", "Y", "Z"};
    start_kernel(u, "k", 128);
    struct tir_value *bases[3], *in[3], *o;
    for (uint32_t i = 0; i < 3; i++)
        bases[i] = vector(u, names[i], TIR_IN, op == TIR_OP_WHERE && i == 0 ? TIR_BOOL : from);
    o = vector(u, "O", TIR_OUT, to);
    struct tir_value *first = op2(u, TIR_OP_MUL, op0(u, TIR_OP_CTA_ID), tir_const_i32(u->f, 128));
    struct tir_value *at = op2(u, TIR_OP_ADD, first, op0(u, TIR_OP_TID));
    for (uint32_t i = 0; i < tir_ops[op].operand_count; i++) {
        enum tir_elem elem = bases[i]->type->elem;
        struct tir_value *size = tir_const_i32(u->f, (int32_t)tir_elems[elem].bits / 8);
        in[i] = build_ld(u, bases[i], op2(u, TIR_OP_MUL, at, size), 0, NULL, elem, 1)->results[0];
    }
    struct tir_value *v = tir_build1(&u->b, op, ir_scalar(u, to), in, tir_ops[op].operand_count);
    struct tir_value *size = tir_const_i32(u->f, (int32_t)tir_elems[to].bits / 8);
    build_st(u, o, op2(u, TIR_OP_MUL, at, size), 0, NULL, &v, 1);
}

static inline void must(tir_status status, const tir_error *error)
{
    if (status)
        fail_msg("%s", error->message);
}

// x, y, z: COUNT elements each (where: x has bytes); y and z may be NULL where op does not use
// them.
static inline void run(struct rig *r, const char *arch, enum tir_op op, enum tir_elem from,
                       const void *x, const void *y, const void *z, enum tir_elem to, void *out)
{
    struct ir_unit u;
    build(&u, op, from, to);
    tir_str ptx = compile_for(&u, arch);
    tir_error error;
    struct emu_module *module;
    uint64_t size = COUNT * tir_elems[from].bits / 8;
    must(emu_load(r->emu, ptx, &module, &error), &error);
    must(emu_write(r->emu, r->x, x, op == TIR_OP_WHERE ? COUNT : size, &error), &error);
    must(emu_write(r->emu, r->y, y ? y : x, size, &error), &error);
    must(emu_write(r->emu, r->z, z ? z : x, size, &error), &error);
    uint64_t params[] = {r->x, 1, r->y, 1, r->z, 1, r->o, 1};
    struct emu_launch launch = {.grid = {COUNT / 128, 1, 1},
                                .block = {128, 1, 1},
                                .params = params,
                                .params_size = sizeof(params)};
    must(emu_run(r->emu, module, "k", &launch, &error), &error);
    must(emu_read(r->emu, out, r->o, COUNT * tir_elems[to].bits / 8, &error), &error);
    emu_unload(r->emu, module);
    tir_context_finish(&u.cx);
}

static inline uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

#endif
