// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs mean the same before and after the general passes: each is interpreted both ways
// on inputs that include NaN, infinities, both zeros and the extreme integers.

#include "ir_unit.h"

#include "interp/interp.h"
#include "ir/number.h"
#include "ir/walk.h"
#include "pass/pass.h"

#include <math.h>
#include <stdio.h>

#define PROGRAMS 1000
#define POOL     64
#define OUT      48 // elements of each output

static uint64_t seed;

static uint32_t random_below(uint32_t n) // xorshift64
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % n;
}

// Values made so far that may be used here, by what they are.
struct pool {
    struct tir_value *at[POOL];
    uint32_t count;
};

struct program {
    struct ir_unit u;
    struct tir_value *outputs[3]; // f32, i32, u8
    uint32_t stored, depth;
};

static const enum tir_elem output_elems[] = {TIR_F32, TIR_I32, TIR_U8};

static struct tir_value *random_constant(struct program *p, const struct tir_type *t)
{
    static const double floats[] = {0, -0.0, 1, -1, 2, 0.5, 3, 1e30, 1e-40, 0.1};
    static const int64_t ints[] = {0, 1, -1, 2, 3, 8, 31, 40, 127, 255, INT32_MAX, INT32_MIN};
    if (!tir_elem_is_float(t->elem))
        return tir_const_int(p->u.f, t, ints[random_below(TIR_COUNT_OF(ints))]);
    uint32_t i = random_below(TIR_COUNT_OF(floats) + 3);
    double special[] = {INFINITY, -INFINITY, NAN};
    return tir_const_float(
        p->u.f, t, i < TIR_COUNT_OF(floats) ? floats[i] : special[i - TIR_COUNT_OF(floats)]);
}

// A value of this type from the pool, or a constant.
static struct tir_value *pick(struct program *p, const struct pool *pool, const struct tir_type *t)
{
    for (uint32_t tries = 0; tries < 6 && pool->count; tries++) {
        struct tir_value *v = pool->at[random_below(pool->count)];
        if (v->type == t)
            return v;
    }
    return random_constant(p, t);
}

static void add(struct pool *pool, struct tir_value *v)
{
    pool->at[pool->count < POOL ? pool->count++ : random_below(POOL)] = v;
}

static const struct tir_type *random_type(struct program *p)
{
    static const enum tir_elem elems[] = {TIR_F32, TIR_I32, TIR_U8, TIR_BOOL, TIR_I64, TIR_F32};
    const struct tir_type *t = ir_scalar(&p->u, elems[random_below(TIR_COUNT_OF(elems))]);
    return random_below(4) ? t : tir_type_tile(p->u.cx.types, t->elem, 1, (int64_t[]){4});
}

static bool takes(enum tir_elem_class elems, enum tir_elem e)
{
    bool is_int = tir_elem_is_int(e), is_float = tir_elem_is_float(e);
    return elems == TIR_CLASS_ANY || (elems == TIR_CLASS_NUM && (is_int || is_float)) ||
           (elems == TIR_CLASS_FLOAT && is_float) || (elems == TIR_CLASS_INT && is_int) ||
           (elems == TIR_CLASS_BITS && !is_float);
}

static void random_elementwise(struct program *p, struct pool *pool)
{
    const struct tir_type *t = random_type(p);
    enum tir_op op = (enum tir_op)random_below(TIR_OP_COUNT);
    enum tir_rule rule = tir_ops[op].rule;
    bool fits = rule == TIR_RULE_COMPARE || (rule == TIR_RULE_SAME && op != TIR_OP_SCAN);
    // Functions that round differently in a library are not at stake, nor is division by zero.
    if (!fits || !takes(tir_ops[op].elems, t->elem) || op == TIR_OP_CEILDIV)
        return;
    struct tir_value *operands[3];
    for (uint32_t i = 0; i < tir_ops[op].operand_count; i++)
        operands[i] = pick(p, pool, t);
    const struct tir_type *result =
        rule == TIR_RULE_COMPARE ? tir_type_with_elem(p->u.cx.types, t, TIR_BOOL) : t;
    add(pool, tir_build1(&p->u.b, op, result, operands, tir_ops[op].operand_count));
}

static void random_shape(struct program *p, struct pool *pool)
{
    const struct tir_type *t = random_type(p), *other = random_type(p);
    struct tir_value *x = pick(p, pool, t);
    if (random_below(3) == 0) {
        struct tir_value *c = pick(p, pool, tir_type_with_elem(p->u.cx.types, t, TIR_BOOL));
        struct tir_value *operands[] = {c, x, pick(p, pool, t)};
        add(pool, tir_build1(&p->u.b, TIR_OP_WHERE, t, operands, 3));
    } else if (t->rank == 0 && random_below(2)) {
        const struct tir_type *tile = tir_type_tile(p->u.cx.types, t->elem, 1, (int64_t[]){4});
        add(pool, tir_build1(&p->u.b, TIR_OP_BROADCAST, tile, &x, 1));
    } else {
        const struct tir_type *to = tir_type_with_elem(p->u.cx.types, t, other->elem);
        add(pool, tir_build1(&p->u.b, TIR_OP_CAST, to, &x, 1));
    }
}

static void random_store(struct program *p, struct pool *pool)
{
    uint32_t out = random_below(3);
    const struct tir_type *t = ir_scalar(&p->u, output_elems[out]);
    bool tile = random_below(3) == 0;
    if (tile)
        t = tir_type_tile(p->u.cx.types, t->elem, 1, (int64_t[]){4});
    struct tir_value *at = tir_const_index(p->u.f, p->stored++ % OUT);
    ir_store1(&p->u, p->outputs[out], at, tile ? 4 : 0, pick(p, pool, t));
}

static void random_block(struct program *p, const struct pool *outer, uint32_t length);

static void random_if(struct program *p, struct pool *pool)
{
    struct tir_value *c = pick(p, pool, ir_scalar(&p->u, TIR_BOOL));
    const struct tir_type *types[] = {random_type(p), random_type(p)};
    struct tir_inst *choice = tir_build(&p->u.b, TIR_OP_IF, &c, 1, types, 2, 2);
    struct tir_block *after = p->u.b.block;
    for (uint32_t r = 0; r < 2; r++) {
        struct pool inner = *pool;
        p->u.b = tir_builder_at_end(p->u.f, choice->regions[r]);
        random_block(p, &inner, 6);
        struct tir_value *yields[] = {pick(p, &inner, types[0]), pick(p, &inner, types[1])};
        tir_build_yield(&p->u.b, yields, 2);
    }
    p->u.b = tir_builder_at_end(p->u.f, after);
    add(pool, choice->results[0]);
    add(pool, choice->results[1]);
}

static void random_for(struct program *p, struct pool *pool)
{
    struct tir_func *f = p->u.f;
    const struct tir_type *types[] = {random_type(p), random_type(p), random_type(p)};
    struct tir_value *operands[] = {tir_const_i32(f, (int32_t)random_below(3)),
                                    tir_const_i32(f, (int32_t)random_below(6)),
                                    tir_const_i32(f, 1 + (int32_t)random_below(3)),
                                    pick(p, pool, types[0]),
                                    pick(p, pool, types[1]),
                                    pick(p, pool, types[2])};
    struct tir_inst *loop = tir_build(&p->u.b, TIR_OP_FOR, operands, 6, types, 3, 1);
    struct tir_block *body = loop->regions[0], *after = p->u.b.block;
    struct pool inner = *pool;
    add(&inner, tir_block_add_arg(f, body, ir_scalar(&p->u, TIR_I32), "t"));
    for (uint32_t i = 0; i < 3; i++)
        add(&inner, tir_block_add_arg(f, body, types[i], NULL));
    p->u.b = tir_builder_at_end(f, body);
    random_block(p, &inner, 6);
    struct tir_value *yields[3];
    for (uint32_t i = 0; i < 3; i++) // sometimes as it came
        yields[i] = random_below(3) ? pick(p, &inner, types[i]) : body->args[1 + i];
    tir_build_yield(&p->u.b, yields, 3);
    p->u.b = tir_builder_at_end(f, after);
    for (uint32_t i = 0; i < 3; i++)
        add(pool, loop->results[i]);
}

static void random_block(struct program *p, const struct pool *outer, uint32_t length)
{
    struct pool pool = *outer;
    p->depth++;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t what = random_below(24);
        if (what < 14)
            random_elementwise(p, &pool);
        else if (what < 18)
            random_shape(p, &pool);
        else if (what < 21 || p->depth > 3)
            random_store(p, &pool);
        else if (what < 23)
            random_if(p, &pool);
        else
            random_for(p, &pool);
    }
    p->depth--;
}

static void random_program(struct program *p)
{
    ir_unit_start(&p->u);
    struct pool pool = {.count = 0};
    static const enum tir_elem params[] = {TIR_F32, TIR_F32, TIR_F32, TIR_I32,
                                           TIR_I32, TIR_U8,  TIR_BOOL};
    for (uint32_t i = 0; i < TIR_COUNT_OF(params); i++) {
        static const char *const names[] = {"a", "b", "c", "i", "j", "u", "q"};
        add(&pool, ir_add_param(&p->u, names[i], ir_scalar(&p->u, params[i]))->value);
    }
    static const char *const outputs[] = {"F", "I", "U"};
    for (uint32_t i = 0; i < 3; i++)
        p->outputs[i] = ir_tensor(&p->u, outputs[i], TIR_OUT, output_elems[i], 1, 0, -1);
    ir_dims(&p->u, (const char *[]){"N"}, 1);
    p->stored = p->depth = 0;
    struct tir_value *one = tir_const_index(p->u.f, 1);
    struct tir_inst *tiles = tir_build(&p->u.b, TIR_OP_TILES, &one, 1, NULL, 0, 1);
    tir_set_list(p->u.f, tiles, TIR_ATTR_by, (int64_t[]){1}, 1);
    tir_block_add_arg(p->u.f, tiles->regions[0], ir_scalar(&p->u, TIR_I64), "tile");
    p->u.b = tir_builder_at_end(p->u.f, tiles->regions[0]);
    random_block(p, &pool, 60);
    ir_end(&p->u, NULL);
}

struct memory {
    float f[OUT + 4];
    int32_t i[OUT + 4];
    uint8_t u[OUT + 4];
};

static void interpret(struct tir_func *f, uint32_t inputs, struct memory *m)
{
    static const float floats[] = {1.5f, -0.0f, NAN, INFINITY, -3e38f, 0.0f, 7e-41f, -2.0f};
    static const int32_t ints[] = {0, 1, -1, INT32_MAX, INT32_MIN, 7, -12, 100};
    float fs[] = {floats[inputs % 8], floats[(inputs + 3) % 8], floats[(inputs / 2 + 5) % 8]};
    int32_t is[] = {ints[inputs % 8], ints[(inputs + 5) % 8]};
    uint8_t u = (uint8_t)(inputs * 51), q = inputs & 1;
    memset(m, 0x55, sizeof(*m));
    const int64_t n = OUT + 4;
    const struct tir_interp_arg args[] = {
        {TIR_F32, .data = &fs[0]},
        {TIR_F32, .data = &fs[1]},
        {TIR_F32, .data = &fs[2]},
        {TIR_I32, .data = &is[0]},
        {TIR_I32, .data = &is[1]},
        {TIR_U8, .data = &u},
        {TIR_BOOL, .data = &q},
        {TIR_F32, .rank = 1, .data = m->f, .shape = {n}, .strides = {1}},
        {TIR_I32, .rank = 1, .data = m->i, .shape = {n}, .strides = {1}},
        {TIR_U8, .rank = 1, .data = m->u, .shape = {n}, .strides = {1}},
    };
    tir_error error = {0};
    tir_status status = tir_interp_run(f, args, TIR_COUNT_OF(args), NULL, &error);
    if (status != TIR_OK)
        fail_msg("%s", error.message);
}

static bool equal(const struct memory *a, const struct memory *b)
{
    for (uint32_t k = 0; k < OUT + 4; k++)
        if (!(isnan(a->f[k]) && isnan(b->f[k])) && memcmp(&a->f[k], &b->f[k], sizeof(float)))
            return false;
    return !memcmp(a->i, b->i, sizeof(a->i)) && !memcmp(a->u, b->u, sizeof(a->u));
}

static void programs_keep_their_meaning(void **state)
{
    (void)state;
    uint32_t shrunk = 0;
    for (uint32_t n = 0; n < PROGRAMS; n++) {
        struct program p;
        seed = n * UINT64_C(0x9e3779b97f4a7c15) + 1;
        random_program(&p);
        assert_true(tir_verify(p.u.f));
        struct tir_func *cleaned = tir_func_clone(p.u.f);
        struct tir_pass_cx cx = {.scratch = &p.u.cx.scratch, .diags = &p.u.cx.diags};
        tir_pass_clean(cleaned, &cx);
        assert_true(tir_verify(cleaned));
        shrunk += ir_text(&p.u, cleaned).len < ir_text(&p.u, p.u.f).len;
        for (uint32_t inputs = 0; inputs < 8; inputs++) {
            struct memory before, after;
            interpret(p.u.f, inputs, &before);
            interpret(cleaned, inputs, &after);
            if (!equal(&before, &after)) {
                printf("%s\nbecame\n%s\n", tir_str_copy(&p.u.cx.arena, ir_text(&p.u, p.u.f)).ptr,
                       tir_str_copy(&p.u.cx.arena, ir_text(&p.u, cleaned)).ptr);
                fail_msg("program %u differs on inputs %u", n, inputs);
            }
        }
        tir_context_finish(&p.u.cx);
    }
    assert_true(shrunk > PROGRAMS * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_keep_their_meaning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
