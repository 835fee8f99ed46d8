// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For tests of the IR: a context, and short names for building functions.
#ifndef TESTS_UNIT_IR_UNIT_H
#define TESTS_UNIT_IR_UNIT_H

#include "unit.h"

#include "ir/context.h"
#include "ir/ir.h"

struct ir_unit {
    struct tir_context cx;
    struct tir_module *m;
    struct tir_func *f;
    struct tir_builder b; // at the end of f's body
};

static inline void ir_unit_start(struct ir_unit *u)
{
    tir_context_init(&u->cx, NULL);
    u->m = tir_module_new(&u->cx.arena, u->cx.types, &u->cx.names, &u->cx.diags);
    u->f = tir_func_new(u->m, "k");
    vec_push(u->m->arena, &u->m->funcs, u->f);
    u->b = tir_builder_at_end(u->f, u->f->body);
}

static inline const struct tir_type *ir_scalar(struct ir_unit *u, enum tir_elem elem)
{
    return tir_type_scalar(u->cx.types, elem);
}

static inline const struct tir_type *ir_tile(struct ir_unit *u, enum tir_elem elem, int64_t rows,
                                             int64_t cols)
{
    return tir_type_tile(u->cx.types, elem, 2, (int64_t[]){rows, cols});
}

static inline struct tir_param *ir_add_param(struct ir_unit *u, const char *name,
                                             const struct tir_type *type)
{
    struct tir_func *f = u->f;
    struct tir_param *params = arena_array(u->m->arena, struct tir_param, f->param_count + 1);
    for (uint32_t i = 0; i < f->param_count; i++)
        params[i] = f->params[i];
    f->params = params;
    struct tir_param *p = &params[f->param_count++];
    p->name = name;
    p->value = tir_block_add_arg(f, f->body, type, name);
    return p;
}

// A tensor parameter of rank 1 or 2 over dims by index; dims are added by ir_dims, after the
// params.
static inline struct tir_value *ir_tensor(struct ir_unit *u, const char *name,
                                          enum tir_direction direction, enum tir_elem elem,
                                          uint32_t rank, int32_t d0, int32_t d1)
{
    struct tir_type t = {.elem = elem, .space = TIR_SPACE_GLOBAL, .rank = rank};
    struct tir_param *p = ir_add_param(u, name, tir_type_get(u->cx.types, &t));
    p->direction = direction;
    p->dims[0].dim = d0;
    p->dims[1].dim = d1;
    return p->value;
}

static inline void ir_dims(struct ir_unit *u, const char *const *names, uint32_t count)
{
    u->f->dims = arena_array(u->m->arena, struct tir_dim, count);
    u->f->dim_count = count;
    for (uint32_t i = 0; i < count; i++)
        u->f->dims[i] = (struct tir_dim){
            names[i], tir_block_add_arg(u->f, u->f->body, ir_scalar(u, TIR_I64), names[i])};
}

// base[i0:+n0, i1:+n1] as the value of a load; a box of 0 is a single index.
static inline struct tir_value *ir_load2(struct ir_unit *u, struct tir_value *base,
                                         struct tir_value *i0, int64_t n0, struct tir_value *i1,
                                         int64_t n1, const struct tir_type *type)
{
    struct tir_value *operands[] = {NULL, NULL, base, i0, i1};
    struct tir_inst *load = tir_build(&u->b, TIR_OP_LOAD, operands, 5, &type, 1, 0);
    tir_set_list(u->f, load, TIR_ATTR_box, (int64_t[]){n0, n1}, 2);
    return tir_result(load);
}

static inline struct tir_value *ir_load1(struct ir_unit *u, struct tir_value *base,
                                         struct tir_value *i, int64_t n,
                                         const struct tir_type *type)
{
    struct tir_value *operands[] = {NULL, NULL, base, i};
    struct tir_inst *load = tir_build(&u->b, TIR_OP_LOAD, operands, 4, &type, 1, 0);
    tir_set_list(u->f, load, TIR_ATTR_box, (int64_t[]){n}, 1);
    return tir_result(load);
}

static inline struct tir_inst *ir_store1(struct ir_unit *u, struct tir_value *base,
                                         struct tir_value *i, int64_t n, struct tir_value *value)
{
    struct tir_value *operands[] = {value, NULL, base, i};
    struct tir_inst *store = tir_build(&u->b, TIR_OP_STORE, operands, 4, NULL, 0, 0);
    tir_set_list(u->f, store, TIR_ATTR_box, (int64_t[]){n}, 1);
    return store;
}

static inline struct tir_inst *ir_store2(struct ir_unit *u, struct tir_value *base,
                                         struct tir_value *i0, int64_t n0, struct tir_value *i1,
                                         int64_t n1, struct tir_value *value)
{
    struct tir_value *operands[] = {value, NULL, base, i0, i1};
    struct tir_inst *store = tir_build(&u->b, TIR_OP_STORE, operands, 5, NULL, 0, 0);
    tir_set_list(u->f, store, TIR_ATTR_box, (int64_t[]){n0, n1}, 2);
    return store;
}

// A for loop with one carried value; the builder moves inside. ir_end_for yields and moves out.
static inline struct tir_inst *ir_for1(struct ir_unit *u, struct tir_value *begin,
                                       struct tir_value *end, struct tir_value *step,
                                       struct tir_value *init, const struct tir_type *type)
{
    struct tir_value *operands[] = {begin, end, step, init};
    struct tir_inst *loop =
        tir_build(&u->b, TIR_OP_FOR, operands, init ? 4 : 3, &type, init ? 1 : 0, 1);
    tir_block_add_arg(u->f, loop->regions[0], begin->type, "i");
    if (init)
        tir_block_add_arg(u->f, loop->regions[0], type, "acc");
    u->b = tir_builder_at_end(u->f, loop->regions[0]);
    return loop;
}

static inline void ir_end(struct ir_unit *u, struct tir_value *value)
{
    struct tir_inst *owner = u->b.block->owner;
    tir_build_yield(&u->b, &value, value ? 1 : 0);
    u->b = tir_builder_at_end(u->f, owner->block);
}

static inline tir_str ir_text(struct ir_unit *u, const struct tir_func *f)
{
    struct tir_text text;
    tir_text_init(&text, u->m->arena, 0);
    tir_print_func(&text, f);
    return tir_text_str(&text);
}

#define assert_ir(u, f, expected) assert_str(ir_text((u), (f)), expected)

#endif
