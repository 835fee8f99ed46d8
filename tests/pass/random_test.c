// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random tile programs through the whole pipeline. Usage: random_test COUNT, or: random_test print
// SEED
//
// Every pass must leave a program that the verifier accepts and, up to form `synced`, one that the
// interpreter runs to the same outputs as before. `print` writes the program of one seed as .tir,
// for tirc run --check.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "interp/interp.h"
#include "ir/context.h"
#include "ir/number.h"
#include "ir/walk.h"
#include "machine/target.h"
#include "pass/pass.h"

#define POOL   64
#define ROWS   16
#define COLS   32
#define LENGTH 67 // of the tensors, an awkward number

enum { WHOLE, ROW_EACH, COLUMN_EACH, TURNED, SQUARE, SCALAR }; // shapes

struct pool { // values that may be used here
    struct tir_value *at[POOL];
    uint32_t count;
};

struct program {
    struct tir_context cx;
    struct tir_module *m;
    struct tir_func *f;
    struct tir_builder b;
    struct tir_value *in[2], *out[2]; // f32, i32: [N, M]
    struct tir_value *counts;         // i32[N, M], of atomic sums
    struct tir_value *start;          // of the tile
    uint64_t seed;
    uint32_t depth;
};

static uint32_t below(struct program *p, uint32_t n) // xorshift64
{
    p->seed ^= p->seed << 13;
    p->seed ^= p->seed >> 7;
    p->seed ^= p->seed << 17;
    return (uint32_t)(p->seed >> 20) % n;
}

// Types.

static const struct tir_type *shaped(struct program *p, enum tir_elem elem, uint32_t shape)
{
    static const int64_t shapes[][2] = {
        {ROWS, COLS}, {ROWS, 1}, {1, COLS}, {COLS, ROWS}, {ROWS, ROWS}};
    if (shape >= SCALAR)
        return tir_type_scalar(p->cx.types, elem);
    return tir_type_tile(p->cx.types, elem, 2, shapes[shape]);
}

static const struct tir_type *with(struct program *p, const struct tir_type *t, enum tir_elem elem)
{
    return tir_type_with_elem(p->cx.types, t, elem);
}

static enum tir_elem random_elem(struct program *p)
{
    static const enum tir_elem elems[] = {TIR_F32, TIR_I32, TIR_F32,  TIR_I32,  TIR_F32, TIR_I32,
                                          TIR_F32, TIR_I32, TIR_BOOL, TIR_BF16, TIR_I64, TIR_U8};
    return elems[below(p, TIR_COUNT_OF(elems))];
}

static const struct tir_type *random_type(struct program *p)
{
    static const uint32_t shapes[] = {WHOLE,    WHOLE,       WHOLE,  WHOLE,  WHOLE,  WHOLE, WHOLE,
                                      ROW_EACH, COLUMN_EACH, TURNED, SQUARE, SCALAR, SCALAR};
    enum tir_elem elem = random_elem(p);
    return shaped(p, elem, shapes[below(p, TIR_COUNT_OF(shapes))]);
}

// Values.

static struct tir_value *random_constant(struct program *p, const struct tir_type *t)
{
    static const double floats[] = {0, -0.0, 1, -1, 2, 0.5, 3, 0.1};
    static const int64_t ints[] = {0, 1, -1, 2, 3, 7, 100};
    return tir_elem_is_float(t->elem)
               ? tir_const_float(p->f, t, floats[below(p, TIR_COUNT_OF(floats))])
               : tir_const_int(p->f, t, ints[below(p, TIR_COUNT_OF(ints))]);
}

static struct tir_value *unary(struct program *p, enum tir_op op, const struct tir_type *t,
                               struct tir_value *x)
{
    return tir_build1(&p->b, op, t, &x, 1);
}

// The slice [start + row, column] of a tensor.
static struct tir_inst *access(struct program *p, enum tir_op op, struct tir_value *tensor,
                               struct tir_value *const fixed[2], const struct tir_type *t,
                               const struct tir_type *result)
{
    struct tir_value *row = tir_const_index(p->f, (int64_t)below(p, 3) - 1);
    struct tir_value *operands[] = {fixed[0], fixed[1], tensor,
                                    tir_binary(&p->b, TIR_OP_ADD, p->start, row),
                                    tir_const_index(p->f, below(p, 4))};
    struct tir_inst *inst = tir_build(&p->b, op, operands, 5, &result, result ? 1 : 0, 0);
    tir_set_list(p->f, inst, TIR_ATTR_box, t->rank ? t->shape : (const int64_t[]){0, 0}, 2);
    return inst;
}

static struct tir_value *fresh(struct program *p, const struct tir_type *t)
{
    uint32_t which = t->elem == TIR_F32 || t->elem == TIR_BF16 ? 0 : 1;
    const struct tir_type *from = with(p, t, which ? TIR_I32 : TIR_F32);
    struct tir_value *none[] = {NULL, NULL};
    struct tir_value *v = tir_result(access(p, TIR_OP_LOAD, p->in[which], none, from, from));
    return from == t ? v : unary(p, TIR_OP_CAST, t, v);
}

// A value of this type: one from the pool, else one that is loaded for the purpose, or a constant.
static struct tir_value *pick(struct program *p, const struct pool *pool, const struct tir_type *t)
{
    uint32_t first = pool->count ? below(p, pool->count) : 0, chance = below(p, 12);
    for (uint32_t i = 0; i < pool->count && chance; i++)
        if (pool->at[(first + i) % pool->count]->type == t)
            return pool->at[(first + i) % pool->count];
    return chance < 3 ? random_constant(p, t) : fresh(p, t);
}

// Any value whose type the test accepts; NULL: none was found.
static struct tir_value *pick_any(struct program *p, const struct pool *pool)
{
    return pool->count ? pool->at[below(p, pool->count)] : NULL;
}

static void add(struct program *p, struct pool *pool, struct tir_value *v)
{
    pool->at[pool->count < POOL ? pool->count++ : below(p, POOL)] = v;
}

// Operations.

static bool is_exact(enum tir_op op, enum tir_elem elem) // same on every device
{
    static const enum tir_op ops[] = {
        TIR_OP_ADD, TIR_OP_SUB, TIR_OP_MUL,   TIR_OP_NEG,  TIR_OP_ABS,   TIR_OP_MIN,
        TIR_OP_MAX, TIR_OP_AND, TIR_OP_OR,    TIR_OP_XOR,  TIR_OP_NOT,   TIR_OP_SHL,
        TIR_OP_SHR, TIR_OP_FMA, TIR_OP_EQ,    TIR_OP_NE,   TIR_OP_LT,    TIR_OP_LE,
        TIR_OP_GT,  TIR_OP_GE,  TIR_OP_FLOOR, TIR_OP_CEIL, TIR_OP_ROUND, TIR_OP_TRUNC};
    bool is_int = tir_elem_is_int(elem), is_float = tir_elem_is_float(elem);
    enum tir_elem_class elems = tir_ops[op].elems;
    bool takes = elems == TIR_CLASS_ANY || (elems == TIR_CLASS_NUM && (is_int || is_float)) ||
                 (elems == TIR_CLASS_FLOAT && is_float) || (elems == TIR_CLASS_INT && is_int) ||
                 (elems == TIR_CLASS_BITS && !is_float);
    for (uint32_t i = 0; i < TIR_COUNT_OF(ops); i++)
        if (ops[i] == op)
            return takes;
    return false;
}

static void random_elementwise(struct program *p, struct pool *pool)
{
    const struct tir_type *t = random_type(p);
    enum tir_op op;
    do
        op = (enum tir_op)below(p, TIR_OP_COUNT);
    while (!is_exact(op, t->elem));
    struct tir_value *operands[3];
    for (uint32_t i = 0; i < tir_ops[op].operand_count; i++)
        operands[i] = pick(p, pool, t);
    const struct tir_type *r = tir_ops[op].rule == TIR_RULE_COMPARE ? with(p, t, TIR_BOOL) : t;
    add(p, pool, tir_build1(&p->b, op, r, operands, tir_ops[op].operand_count));
}

static void random_choice(struct program *p, struct pool *pool)
{
    const struct tir_type *t = random_type(p);
    struct tir_value *operands[] = {pick(p, pool, with(p, t, TIR_BOOL)), pick(p, pool, t),
                                    pick(p, pool, t)};
    add(p, pool, tir_build1(&p->b, TIR_OP_WHERE, t, operands, 3));
}

static void random_cast(struct program *p, struct pool *pool)
{
    struct tir_value *x = pick_any(p, pool);
    enum tir_elem to = random_elem(p);
    if (x && x->type->elem != to)
        add(p, pool, unary(p, TIR_OP_CAST, with(p, x->type, to), x));
}

static void random_broadcast(struct program *p, struct pool *pool)
{
    enum tir_elem elem = random_elem(p);
    static const uint32_t shapes[][2] = {{ROW_EACH, WHOLE},
                                         {COLUMN_EACH, WHOLE},
                                         {SCALAR, TURNED},
                                         {SCALAR, WHOLE},
                                         {ROW_EACH, SQUARE}};
    const uint32_t *shape = shapes[below(p, TIR_COUNT_OF(shapes))];
    struct tir_value *x = pick(p, pool, shaped(p, elem, shape[0]));
    add(p, pool, unary(p, TIR_OP_BROADCAST, shaped(p, elem, shape[1]), x));
}

static void random_permute(struct program *p, struct pool *pool)
{
    bool back = below(p, 2);
    enum tir_elem elem = random_elem(p);
    struct tir_value *r = unary(p, TIR_OP_PERMUTE, shaped(p, elem, back ? WHOLE : TURNED),
                                pick(p, pool, shaped(p, elem, back ? TURNED : WHOLE)));
    tir_set_list(p->f, r->def, TIR_ATTR_permutation, (int64_t[]){1, 0}, 2);
    add(p, pool, r);
}

static void random_reduce(struct program *p, struct pool *pool)
{
    // Not sums of floats: their order is open.
    static const enum tir_word kinds[] = {TIR_WORD_kind_min, TIR_WORD_kind_max, TIR_WORD_kind_sum,
                                          TIR_WORD_kind_xor};
    static const enum tir_elem elems[] = {TIR_F32, TIR_I32, TIR_I64, TIR_BF16};
    uint32_t kind = below(p, 4), axis = below(p, 2);
    enum tir_elem elem = elems[kind < 2 ? below(p, 4) : 1 + below(p, 2)];
    bool scans = below(p, 4) == 0;
    struct tir_value *operands[] = {pick(p, pool, shaped(p, elem, WHOLE)), NULL};
    const struct tir_type *t = shaped(p, elem, scans ? WHOLE : axis ? ROW_EACH : COLUMN_EACH);
    struct tir_value *r = tir_build1(&p->b, scans ? TIR_OP_SCAN : TIR_OP_REDUCE, t, operands, 2);
    tir_set_int(p->f, r->def, TIR_ATTR_axis, axis);
    tir_set_word(p->f, r->def, TIR_ATTR_kind, kinds[kind]);
    add(p, pool, r);
}

static void random_iota(struct program *p, struct pool *pool)
{
    uint32_t axis = below(p, 2);
    struct tir_value *r =
        tir_build1(&p->b, TIR_OP_IOTA, shaped(p, TIR_I32, axis ? COLUMN_EACH : ROW_EACH), NULL, 0);
    tir_set_int(p->f, r->def, TIR_ATTR_axis, axis);
    add(p, pool, r);
}

static void random_load(struct program *p, struct pool *pool)
{
    uint32_t which = below(p, 2);
    const struct tir_type *t = shaped(p, which ? TIR_I32 : TIR_F32, below(p, SCALAR + 1));
    struct tir_value *fixed[] = {NULL, NULL};
    if (below(p, 2))
        fixed[TIR_LOAD_PAD] = random_constant(p, shaped(p, t->elem, SCALAR));
    if (t->rank && below(p, 4) == 0)
        fixed[TIR_LOAD_MASK] = pick(p, pool, with(p, t, TIR_BOOL));
    add(p, pool, tir_result(access(p, TIR_OP_LOAD, p->in[which], fixed, t, t)));
}

// Of bytes, whose products and sums are exact.
static void random_dot(struct program *p, struct pool *pool)
{
    struct tir_value *operands[TIR_DOT_OPERANDS] = {pick(p, pool, shaped(p, TIR_U8, WHOLE)),
                                                    pick(p, pool, shaped(p, TIR_U8, TURNED)),
                                                    pick(p, pool, shaped(p, TIR_I32, SQUARE))};
    add(p, pool,
        tir_build1(&p->b, TIR_OP_DOT, shaped(p, TIR_I32, SQUARE), operands, TIR_DOT_OPERANDS));
}

// I[start + 1, t] for a tile t, some of whose elements lie outside.
static void random_gather(struct program *p, struct pool *pool)
{
    const struct tir_type *t = shaped(p, TIR_I32, below(p, 2) ? WHOLE : ROW_EACH);
    struct tir_value *operands[] = {NULL, NULL, p->in[1], p->start, pick(p, pool, t)};
    struct tir_inst *inst = tir_build(&p->b, TIR_OP_LOAD, operands, 5, &t, 1, 0);
    tir_set_list(p->f, inst, TIR_ATTR_box, (int64_t[]){0, -1}, 2);
    add(p, pool, tir_result(inst));
}

static void random_atomic(struct program *p, struct pool *pool)
{
    const struct tir_type *t = shaped(p, TIR_I32, below(p, 2) ? WHOLE : SQUARE);
    struct tir_value *operands[] = {pick(p, pool, t),
                                    NULL,
                                    NULL,
                                    NULL,
                                    p->counts,
                                    p->start,
                                    tir_const_index(p->f, below(p, 3))};
    if (below(p, 4) == 0)
        operands[TIR_STORE_MASK] = pick(p, pool, with(p, t, TIR_BOOL));
    struct tir_inst *inst =
        tir_build(&p->b, TIR_OP_ATOMIC, operands, TIR_COUNT_OF(operands), &t, 1, 0);
    tir_set_list(p->f, inst, TIR_ATTR_box, t->shape, 2);
    tir_set_word(p->f, inst, TIR_ATTR_kind, TIR_WORD_kind_add);
    if (below(p, 2))
        add(p, pool, tir_result(inst));
}

static void random_user_reduce(struct program *p, struct pool *pool)
{
    uint32_t axis = below(p, 2);
    const struct tir_type *t = shaped(p, TIR_I32, axis ? ROW_EACH : COLUMN_EACH);
    const struct tir_type *scalar = shaped(p, TIR_I32, SCALAR);
    struct tir_value *operands[] = {pick(p, pool, shaped(p, TIR_I32, WHOLE)), NULL};
    struct tir_inst *inst = tir_build(&p->b, TIR_OP_REDUCE, operands, 2, &t, 1, 1);
    tir_set_int(p->f, inst, TIR_ATTR_axis, axis);
    tir_set_word(p->f, inst, TIR_ATTR_kind, TIR_WORD_kind_user);
    struct tir_value *a = tir_block_add_arg(p->f, inst->regions[0], scalar, "a");
    struct tir_value *b = tir_block_add_arg(p->f, inst->regions[0], scalar, "b");
    struct tir_builder inside = tir_builder_at_end(p->f, inst->regions[0]);
    struct tir_value *both = tir_binary(&inside, TIR_OP_OR, a, b);
    tir_build_yield(&inside, &both, 1);
    add(p, pool, tir_result(inst));
}

// Tiles overlap in nothing that they store, whatever the order they run in.
static void random_store(struct program *p, struct pool *pool)
{
    uint32_t which = below(p, 2);
    static const uint32_t shapes[] = {WHOLE, WHOLE, ROW_EACH, SQUARE};
    const struct tir_type *t = shaped(p, which ? TIR_I32 : TIR_F32, shapes[below(p, 4)]);
    struct tir_value *operands[] = {pick(p, pool, t), NULL, p->out[which], p->start,
                                    tir_const_index(p->f, below(p, 3))};
    if (below(p, 4) == 0)
        operands[TIR_STORE_MASK] = pick(p, pool, with(p, t, TIR_BOOL));
    struct tir_inst *inst = tir_build(&p->b, TIR_OP_STORE, operands, 5, NULL, 0, 0);
    tir_set_list(p->f, inst, TIR_ATTR_box, t->shape, 2);
}

static void random_block(struct program *p, const struct pool *outer, uint32_t length,
                         struct pool *end);

static void random_if(struct program *p, struct pool *pool)
{
    struct tir_value *c = pick(p, pool, shaped(p, TIR_BOOL, SCALAR));
    const struct tir_type *types[] = {random_type(p), random_type(p)};
    struct tir_inst *choice = tir_build(&p->b, TIR_OP_IF, &c, 1, types, 2, 2);
    struct tir_block *after = p->b.block;
    for (uint32_t r = 0; r < 2; r++) {
        struct pool inner;
        p->b = tir_builder_at_end(p->f, choice->regions[r]);
        random_block(p, pool, 5, &inner);
        struct tir_value *yields[] = {pick(p, &inner, types[0]), pick(p, &inner, types[1])};
        tir_build_yield(&p->b, yields, 2);
    }
    p->b = tir_builder_at_end(p->f, after);
    add(p, pool, choice->results[0]);
    add(p, pool, choice->results[1]);
}

static void random_for(struct program *p, struct pool *pool)
{
    const struct tir_type *types[] = {random_type(p), random_type(p)};
    struct tir_value *operands[] = {tir_const_i32(p->f, (int32_t)below(p, 3)),
                                    tir_const_i32(p->f, (int32_t)below(p, 5)),
                                    tir_const_i32(p->f, 1 + (int32_t)below(p, 2)),
                                    pick(p, pool, types[0]), pick(p, pool, types[1])};
    struct tir_inst *loop = tir_build(&p->b, TIR_OP_FOR, operands, 5, types, 2, 1);
    struct tir_block *body = loop->regions[0], *after = p->b.block;
    struct pool outer = *pool, inner;
    add(p, &outer, tir_block_add_arg(p->f, body, shaped(p, TIR_I32, SCALAR), "t"));
    for (uint32_t i = 0; i < 2; i++)
        add(p, &outer, tir_block_add_arg(p->f, body, types[i], NULL));
    p->b = tir_builder_at_end(p->f, body);
    random_block(p, &outer, 5, &inner);
    struct tir_value *yields[] = {pick(p, &inner, types[0]), pick(p, &inner, types[1])};
    tir_build_yield(&p->b, yields, 2);
    p->b = tir_builder_at_end(p->f, after);
    add(p, pool, loop->results[0]);
    add(p, pool, loop->results[1]);
}

static void random_block(struct program *p, const struct pool *outer, uint32_t length,
                         struct pool *end)
{
    typedef void step(struct program * p, struct pool * pool);
    static step *const steps[] = {
        random_elementwise, random_elementwise, random_elementwise, random_elementwise,
        random_choice,      random_cast,        random_broadcast,   random_permute,
        random_reduce,      random_iota,        random_load,        random_load,
        random_dot,         random_gather,      random_atomic,      random_user_reduce,
        random_store,       random_store,       random_if,          random_for};
    *end = *outer;
    p->depth++;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t what = below(p, TIR_COUNT_OF(steps) - (p->depth > 2 ? 2 : 0));
        steps[what](p, end);
    }
    p->depth--;
}

static struct tir_value *parameter(struct program *p, const char *name,
                                   enum tir_direction direction, enum tir_elem elem, uint32_t rank)
{
    const struct tir_type t = {
        .elem = elem, .rank = rank, .space = rank ? TIR_SPACE_GLOBAL : TIR_SPACE_VALUE};
    struct tir_param *param = &p->f->params[p->f->param_count++];
    param->name = name;
    param->direction = direction;
    param->dims[0].dim = 0;
    param->dims[1].dim = 1;
    param->value = tir_block_add_arg(p->f, p->f->body, tir_type_get(p->cx.types, &t), name);
    return param->value;
}

static void random_program(struct program *p, uint64_t seed)
{
    p->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    p->depth = 0;
    p->m = tir_module_new(&p->cx.arena, p->cx.types, &p->cx.names, &p->cx.diags);
    struct tir_func *f = p->f = tir_func_new(p->m, "random");
    f->params = arena_array(&p->cx.arena, struct tir_param, 7);
    f->dims = arena_array(&p->cx.arena, struct tir_dim, 2);
    struct pool pool = {.count = 0}, end;
    p->in[0] = parameter(p, "F", TIR_IN, TIR_F32, 2);
    p->in[1] = parameter(p, "I", TIR_IN, TIR_I32, 2);
    p->out[0] = parameter(p, "G", TIR_INOUT, TIR_F32, 2);
    p->out[1] = parameter(p, "J", TIR_INOUT, TIR_I32, 2);
    p->counts = parameter(p, "K", TIR_INOUT, TIR_I32, 2);
    add(p, &pool, parameter(p, "s", TIR_IN, TIR_F32, 0));
    add(p, &pool, parameter(p, "t", TIR_IN, TIR_I32, 0));
    static const char *const dims[] = {"N", "M"};
    for (uint32_t i = 0; i < 2; i++)
        f->dims[f->dim_count++] = (struct tir_dim){
            dims[i], tir_block_add_arg(f, f->body, shaped(p, TIR_I64, SCALAR), dims[i])};
    p->b = tir_builder_at_end(f, f->body);
    struct tir_inst *tiles = tir_build(&p->b, TIR_OP_TILES, &f->dims[0].value, 1, NULL, 0, 1);
    tir_set_list(f, tiles, TIR_ATTR_by, (int64_t[]){ROWS}, 1);
    p->start = tir_block_add_arg(f, tiles->regions[0], shaped(p, TIR_I64, SCALAR), "n");
    p->b = tir_builder_at_end(f, tiles->regions[0]);
    random_block(p, &pool, 30, &end);
    for (uint32_t i = 0; i < 4; i++)
        random_store(p, &end);
    tir_build_yield(&p->b, NULL, 0);
}

// Running.

struct memory {
    float f[LENGTH * LENGTH], g[LENGTH * LENGTH];
    int32_t i[LENGTH * LENGTH], j[LENGTH * LENGTH], k[LENGTH * LENGTH];
};

static bool interpret(struct tir_func *f, struct memory *m, tir_error *error)
{
    float s = 1.5f;
    int32_t t = -3;
    for (int k = 0; k < LENGTH * LENGTH; k++) {
        m->f[k] = (float)((k * 37) % 101 - 50) / 8;
        m->i[k] = (k * 53) % 89 - 40;
        m->g[k] = 0;
        m->j[k] = 0;
        m->k[k] = k;
    }
    const struct tir_interp_arg args[] = {
        {TIR_F32, 2, m->f, {LENGTH, LENGTH}, {LENGTH, 1}},
        {TIR_I32, 2, m->i, {LENGTH, LENGTH}, {LENGTH, 1}},
        {TIR_F32, 2, m->g, {LENGTH, LENGTH}, {LENGTH, 1}},
        {TIR_I32, 2, m->j, {LENGTH, LENGTH}, {LENGTH, 1}},
        {TIR_I32, 2, m->k, {LENGTH, LENGTH}, {LENGTH, 1}},
        {TIR_F32, .data = &s},
        {TIR_I32, .data = &t},
    };
    return tir_interp_run(f, args, TIR_COUNT_OF(args), NULL, error) == TIR_OK;
}

static bool equal(const struct memory *a, const struct memory *b)
{
    struct tir_interp_diff diff;
    return tir_interp_compare(TIR_F32, a->g, b->g, LENGTH * LENGTH, 0, &diff) &&
           !memcmp(a->j, b->j, sizeof(a->j)) && !memcmp(a->k, b->k, sizeof(a->k));
}

static bool complain(struct program *p, uint64_t seed, const char *pass, const char *what)
{
    struct tir_text text;
    tir_text_init(&text, &p->cx.arena, 0);
    tir_diags_render(&p->cx.diags, TIR_DIAG_TEXT, &text);
    tir_print_func(&text, p->f);
    printf("FAIL seed %llu, %s: %s\n%s", (unsigned long long)seed, pass, what, text.ptr);
    return false;
}

static bool run_pipeline(struct program *p, uint64_t seed)
{
    static struct memory want, got;
    tir_error error;
    random_program(p, seed);
    if (!tir_verify(p->f) || !interpret(p->f, &want, &error))
        return complain(p, seed, "before the first pass", "");
    const struct tir_target *arch = tir_target_find(STR("sm_80"));
    for (uint32_t i = 0; i < tir_pipeline_count; i++) {
        struct tir_pass_cx cx = {.scratch = &p->cx.scratch, .diags = &p->cx.diags, .target = arch};
        struct tir_pass_options options = {
            .run = tir_str_of(tir_passes[i].name), .bisect = -1, .verify = true};
        if (!tir_run_passes(p->f, &cx, &options))
            return complain(p, seed, tir_passes[i].name, "failed");
        if (p->f->form == TIR_FORM_LOWERED)
            continue;
        if (!interpret(p->f, &got, &error))
            return complain(p, seed, tir_passes[i].name, error.message);
        if (!equal(&got, &want))
            return complain(p, seed, tir_passes[i].name, "the outputs differ");
    }
    return true;
}

static bool run_one(uint64_t seed, bool print)
{
    static struct program p;
    static bool ok;
    ok = false;
    if (setjmp(p.cx.out_of_memory) == 0) {
        tir_context_init(&p.cx, NULL);
        if (print) {
            struct tir_text text;
            random_program(&p, seed);
            tir_text_init(&text, &p.cx.arena, 0);
            tir_print_func(&text, p.f);
            fputs(text.ptr, stdout);
            ok = true;
        } else {
            ok = run_pipeline(&p, seed);
        }
    }
    tir_context_finish(&p.cx);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return !run_one(strtoull(argv[2], NULL, 10), true);
    uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    int passed = 0, failed = 0;
    for (uint64_t seed = 0; seed < count && failed < 5; seed++) {
        bool ok = run_one(seed, false);
        passed += ok;
        failed += !ok;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
