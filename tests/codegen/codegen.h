// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests of code generation: building kernels in lowered form, and compiling them.
#ifndef TESTS_CODEGEN_CODEGEN_H
#define TESTS_CODEGEN_CODEGEN_H

#include "../unit/ir_unit.h"

#include "target/nvptx/nvptx.h"
#include "target/nvptx/ptxas.h"

// A further kernel of u's module, made current.
static inline void add_kernel(struct ir_unit *u, const char *name, uint32_t threads)
{
    u->f = tir_func_new(u->m, name);
    u->f->form = TIR_FORM_LOWERED;
    u->f->threads = threads;
    vec_push(u->m->arena, &u->m->funcs, u->f);
    u->b = tir_builder_at_end(u->f, u->f->body);
}

static inline void start_kernel(struct ir_unit *u, const char *name, uint32_t threads)
{
    ir_unit_start(u);
    u->m->funcs.len = 0;
    add_kernel(u, name, threads);
}

static inline struct tir_value *vector(struct ir_unit *u, const char *name,
                                       enum tir_direction direction, enum tir_elem elem)
{
    return ir_tensor(u, name, direction, elem, 1, -1, 0);
}

static inline struct tir_value *scalar_param(struct ir_unit *u, const char *name,
                                             enum tir_elem elem)
{
    return ir_add_param(u, name, ir_scalar(u, elem))->value;
}

static inline struct tir_value *op0(struct ir_unit *u, enum tir_op op)
{
    return tir_build1(&u->b, op, ir_scalar(u, TIR_I32), NULL, 0);
}

static inline struct tir_value *op2(struct ir_unit *u, enum tir_op op, struct tir_value *x,
                                    struct tir_value *y)
{
    return tir_binary(&u->b, op, x, y);
}

static inline struct tir_value *cast(struct ir_unit *u, struct tir_value *x, enum tir_elem to)
{
    return tir_build1(&u->b, TIR_OP_CAST, ir_scalar(u, to), &x, 1);
}

// Loads `count` values of `elem` at base + at + offset.
static inline struct tir_inst *build_ld(struct ir_unit *u, struct tir_value *base,
                                        struct tir_value *at, int64_t offset,
                                        struct tir_value *pred, enum tir_elem elem, uint32_t count)
{
    const struct tir_type *types[32];
    for (uint32_t i = 0; i < count; i++)
        types[i] = ir_scalar(u, elem);
    struct tir_inst *inst =
        tir_build(&u->b, TIR_OP_LD, (struct tir_value *[]){base, at, pred}, 3, types, count, 0);
    if (offset)
        tir_set_int(u->f, inst, TIR_ATTR_offset, offset);
    tir_set_int(u->f, inst, TIR_ATTR_width, (int64_t)count * tir_elems[elem].bits / 8);
    return inst;
}

static inline void build_st(struct ir_unit *u, struct tir_value *base, struct tir_value *at,
                            int64_t offset, struct tir_value *pred, struct tir_value *const *values,
                            uint32_t count)
{
    struct tir_value *operands[3 + 32] = {base, at, pred};
    for (uint32_t i = 0; i < count; i++)
        operands[3 + i] = values[i];
    struct tir_inst *inst = tir_build(&u->b, TIR_OP_ST, operands, 3 + count, NULL, 0, 0);
    if (offset)
        tir_set_int(u->f, inst, TIR_ATTR_offset, offset);
    tir_set_int(u->f, inst, TIR_ATTR_width,
                (int64_t)count * tir_elems[values[0]->type->elem].bits / 8);
}

// A buffer of bytes; shared ones lie at `offset`.
static inline struct tir_value *build_alloc(struct ir_unit *u, enum tir_space space,
                                            enum tir_elem elem, int64_t count, int64_t offset)
{
    struct tir_type t = {.elem = elem, .space = space, .rank = 1, .shape = {count}};
    const struct tir_type *type = tir_type_get(u->cx.types, &t);
    struct tir_inst *inst = tir_build(&u->b, TIR_OP_ALLOC, NULL, 0, &type, 1, 0);
    if (space == TIR_SPACE_SHARED) {
        tir_set_int(u->f, inst, TIR_ATTR_offset, offset);
        u->f->shared_bytes = TIR_MAX(u->f->shared_bytes, offset + tir_type_bytes(type));
    }
    return tir_result(inst);
}

// The whole module as PTX; fails the test with the diagnostics when it does not compile.
static inline tir_str compile_for(struct ir_unit *u, const char *arch)
{
    struct tir_nvptx_options options = {.target = tir_target_find(tir_str_of(arch)),
                                        .verify = true};
    struct tir_nvptx_result result;
    struct tir_nvptx nvptx = {0};
    if (!tir_nvptx_emit(&nvptx, &u->cx.arena, &u->cx.diags, u->m->funcs.at, u->m->funcs.len,
                        &options, &result)) {
        struct tir_text text;
        tir_text_init(&text, &u->cx.arena, 0);
        tir_diags_render(&u->cx.diags, TIR_DIAG_TEXT, &text);
        fail_msg("%s: %s", arch, tir_text_str(&text).ptr);
    }
    return result.ptx;
}

static inline void assert_has(tir_str ptx, const char *part)
{
    assert_non_null(ptx.ptr);
    if (!strstr(ptx.ptr, part))
        fail_msg("no '%s' in:\n%s", part, ptx.ptr);
}

static inline void assert_has_not(tir_str ptx, const char *part)
{
    if (strstr(ptx.ptr, part))
        fail_msg("'%s' in:\n%s", part, ptx.ptr);
}

// Assembles when ptxas is installed.
static inline void assemble(struct ir_unit *u, const char *arch, tir_str ptx)
{
    const char *path = tir_ptxas_find(&u->cx.arena);
    struct tir_ptxas_result result;
    if (path &&
        tir_ptxas_run(&u->cx.arena, path, tir_target_find(tir_str_of(arch)), ptx, &result) &&
        !result.ok)
        fail_msg("ptxas for %s: %s", arch, result.log.ptr);
}

#endif
