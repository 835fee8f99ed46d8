// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interpreter on kernels made with the builder: tiles, edges, loops, threads, refusals.

#include "unit.h"

#include "alloc.h"
#include "interp/interp.h"

#include <math.h>

struct kernel {
    struct tir_arena arena;
    struct tir_interner names;
    struct tir_types *types;
    struct tir_func *f;
    struct tir_builder b;
};

static void kernel_init(struct kernel *k)
{
    memset(k, 0, sizeof *k);
    k->arena = unit_arena();
    k->names.arena = &k->arena;
    k->types = tir_types_new(&k->arena);
    struct tir_module *m = tir_module_new(&k->arena, k->types, &k->names, NULL);
    k->f = tir_func_new(m, "kernel");
    k->f->params = arena_array(&k->arena, struct tir_param, 8);
    k->f->dims = arena_array(&k->arena, struct tir_dim, 8);
    k->b = tir_builder_at_end(k->f, k->f->body);
}

static void kernel_finish(struct kernel *k)
{
    tir_arena_finish(&k->arena);
}

static const struct tir_type *scalar(struct kernel *k, enum tir_elem elem)
{
    return tir_type_scalar(k->types, elem);
}

static const struct tir_type *tile(struct kernel *k, enum tir_elem elem, int64_t m, int64_t n)
{
    return tir_type_tile(k->types, elem, n ? 2 : 1, (int64_t[]){m, n});
}

// A parameter; dims[i]: which named dimension each of its dimensions is.
static struct tir_value *param(struct kernel *k, const char *name, enum tir_elem elem,
                               uint32_t rank, const int32_t *dims)
{
    struct tir_type type = {
        .elem = elem, .rank = rank, .space = rank ? TIR_SPACE_GLOBAL : TIR_SPACE_VALUE};
    struct tir_param *p = &k->f->params[k->f->param_count++];
    p->name = name;
    p->value = tir_block_add_arg(k->f, k->f->body, tir_type_get(k->types, &type), name);
    for (uint32_t i = 0; i < rank; i++)
        p->dims[i].dim = dims[i];
    return p->value;
}

static struct tir_value *dim(struct kernel *k, const char *name)
{
    struct tir_dim *d = &k->f->dims[k->f->dim_count++];
    d->name = name;
    d->value = tir_block_add_arg(k->f, k->f->body, scalar(k, TIR_I64), name);
    return d->value;
}

static struct tir_value *load(struct kernel *k, struct tir_value *from, const struct tir_type *type,
                              struct tir_value *i, struct tir_value *j)
{
    struct tir_value *operands[] = {NULL, NULL, from, i, j};
    struct tir_inst *inst = tir_build(&k->b, TIR_OP_LOAD, operands, j ? 5 : 4, &type, 1, 0);
    tir_set_list(k->f, inst, TIR_ATTR_box, type->shape, j ? 2 : 1);
    return tir_result(inst);
}

static void store(struct kernel *k, struct tir_value *to, struct tir_value *value,
                  struct tir_value *i, struct tir_value *j)
{
    struct tir_value *operands[] = {value, NULL, to, i, j};
    struct tir_inst *inst = tir_build(&k->b, TIR_OP_STORE, operands, j ? 5 : 4, NULL, 0, 0);
    tir_set_list(k->f, inst, TIR_ATTR_box, value->type->shape, j ? 2 : 1);
}

// Opens a tiles loop over one or two extents; the builder moves into its block.
static struct tir_block *tiles(struct kernel *k, struct tir_value *const *extents,
                               const int64_t *by, uint32_t rank)
{
    struct tir_inst *inst = tir_build(&k->b, TIR_OP_TILES, extents, rank, NULL, 0, 1);
    tir_set_list(k->f, inst, TIR_ATTR_by, by, rank);
    for (uint32_t i = 0; i < rank; i++)
        tir_block_add_arg(k->f, inst->regions[0], scalar(k, TIR_I64), NULL);
    k->b = tir_builder_at_end(k->f, inst->regions[0]);
    return inst->regions[0];
}

static struct tir_interp_arg vector(enum tir_elem elem, void *data, int64_t n)
{
    return (struct tir_interp_arg){elem, 1, data, {n}, {1}};
}

static struct tir_interp_arg matrix(enum tir_elem elem, void *data, int64_t m, int64_t n)
{
    return (struct tir_interp_arg){elem, 2, data, {m, n}, {n, 1}};
}

static tir_status run(struct kernel *k, const struct tir_interp_arg *args, tir_error *error)
{
    return tir_interp_run(k->f, args, k->f->param_count, NULL, error);
}

// Z[i:+8] = X[i:+8] + Y[i:+8] over tiles of N.
static void build_add(struct kernel *k)
{
    kernel_init(k);
    struct tir_value *x = param(k, "X", TIR_F32, 1, (int32_t[]){0});
    struct tir_value *y = param(k, "Y", TIR_F32, 1, (int32_t[]){0});
    struct tir_value *z = param(k, "Z", TIR_F32, 1, (int32_t[]){0});
    struct tir_value *n = dim(k, "N");
    struct tir_block *body = tiles(k, &n, (int64_t[]){8}, 1);
    const struct tir_type *t = tile(k, TIR_F32, 8, 0);
    struct tir_value *sum = tir_binary(&k->b, TIR_OP_ADD, load(k, x, t, body->args[0], NULL),
                                       load(k, y, t, body->args[0], NULL));
    store(k, z, sum, body->args[0], NULL);
}

static void edges_are_read_as_zero_and_not_written(void **state)
{
    (void)state;
    struct kernel k;
    build_add(&k);
    for (int64_t n = 0; n <= 17; n++) {
        float x[17], y[17], z[18];
        for (int i = 0; i < 17; i++) {
            x[i] = (float)i;
            y[i] = 0.5f;
        }
        for (int i = 0; i < 18; i++)
            z[i] = -1;
        struct tir_interp_arg args[] = {vector(TIR_F32, x, n), vector(TIR_F32, y, n),
                                        vector(TIR_F32, z, n)};
        assert_int_equal(run(&k, args, NULL), TIR_OK);
        for (int i = 0; i < 18; i++)
            assert_true(z[i] == (i < n ? (float)i + 0.5f : -1));
    }
    kernel_finish(&k);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    struct kernel k;
    build_add(&k);
    float x[4] = {0};
    tir_error error;
    struct tir_interp_arg args[] = {vector(TIR_F32, x, 4), vector(TIR_F32, x, 3),
                                    vector(TIR_F32, x, 4)};
    assert_int_equal(run(&k, args, &error), TIR_ERR_INVALID);
    assert_string_equal(error.message, "dimension 0 of 'Y' is 4, as N, not 3");
    args[1] = vector(TIR_BF16, x, 4);
    assert_int_equal(run(&k, args, &error), TIR_ERR_INVALID);
    assert_string_equal(error.message, "'Y' is a f32 of rank 1, got bf16 of rank 1");
    args[1] = vector(TIR_F32, NULL, 4);
    assert_int_equal(run(&k, args, &error), TIR_ERR_INVALID);
    assert_int_equal(tir_interp_run(k.f, args, 2, NULL, &error), TIR_ERR_INVALID);
    kernel_finish(&k);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct kernel k;
    build_add(&k);
    float x[20] = {0};
    struct tir_interp_arg args[] = {vector(TIR_F32, x, 20), vector(TIR_F32, x, 20),
                                    vector(TIR_F32, x, 20)};
    tir_status status = TIR_ERR_NO_MEMORY;
    for (int n = 1; status == TIR_ERR_NO_MEMORY; n++) {
        struct counting counting = {.countdown = n};
        tir_allocator allocator = counting_allocator(&counting);
        struct tir_interp_options options = {.allocator = &allocator};
        status = tir_interp_run(k.f, args, 3, &options, NULL);
        assert_int_equal(counting.live, 0);
        assert_true(n < 100);
    }
    assert_int_equal(status, TIR_OK);
    kernel_finish(&k);
}

// D[M, N] = A[M, K] . B[N, K]^T in tiles of 64 x 64 x 32.
static void build_gemm(struct kernel *k)
{
    kernel_init(k);
    enum { BM = 64, BN = 64, BK = 32 };
    struct tir_value *a = param(k, "A", TIR_F32, 2, (int32_t[]){0, 2});
    struct tir_value *b = param(k, "B", TIR_F32, 2, (int32_t[]){1, 2});
    struct tir_value *d = param(k, "D", TIR_F32, 2, (int32_t[]){0, 1});
    struct tir_value *extents[] = {dim(k, "M"), dim(k, "N")}, *depth = dim(k, "K");
    struct tir_value **at = tiles(k, extents, (int64_t[]){BM, BN}, 2)->args;
    const struct tir_type *sum = tile(k, TIR_F32, BM, BN);
    struct tir_value *init[] = {tir_const_index(k->f, 0), depth, tir_const_index(k->f, BK),
                                tir_const_float(k->f, sum, 0)};
    struct tir_inst *loop = tir_build(&k->b, TIR_OP_FOR, init, 4, &sum, 1, 1);
    struct tir_block *body = loop->regions[0];
    struct tir_value *step = tir_block_add_arg(k->f, body, scalar(k, TIR_I64), "k");
    struct tir_value *acc = tir_block_add_arg(k->f, body, sum, "acc");
    struct tir_builder outer = k->b;
    k->b = tir_builder_at_end(k->f, body);
    struct tir_value *left = load(k, a, tile(k, TIR_F32, BM, BK), at[0], step);
    struct tir_value *right = load(k, b, tile(k, TIR_F32, BN, BK), at[1], step);
    const struct tir_type *turned = tile(k, TIR_F32, BK, BN);
    struct tir_inst *turn = tir_build(&k->b, TIR_OP_PERMUTE, &right, 1, &turned, 1, 0);
    tir_set_list(k->f, turn, TIR_ATTR_permutation, (int64_t[]){1, 0}, 2);
    struct tir_value *dot[TIR_DOT_OPERANDS] = {left, tir_result(turn), acc};
    struct tir_value *next = tir_build1(&k->b, TIR_OP_DOT, sum, dot, TIR_DOT_OPERANDS);
    tir_build_yield(&k->b, &next, 1);
    k->b = outer;
    store(k, d, tir_result(loop), at[0], at[1]);
}

static void run_gemm(struct kernel *k, int64_t m, int64_t n, int64_t depth)
{
    float *a = test_calloc((size_t)(m * depth), sizeof *a),
          *b = test_calloc((size_t)(n * depth), 4);
    float *d = test_calloc((size_t)(m * n), sizeof *d);
    for (int64_t i = 0; i < m * depth; i++)
        a[i] = (float)(i * 7 % 31 - 15);
    for (int64_t i = 0; i < n * depth; i++)
        b[i] = (float)(i * 5 % 29 - 14);
    struct tir_interp_arg args[] = {matrix(TIR_F32, a, m, depth), matrix(TIR_F32, b, n, depth),
                                    matrix(TIR_F32, d, m, n)};
    assert_int_equal(run(k, args, NULL), TIR_OK);
    for (int64_t i = 0; i < m; i += 1 + m / 13)
        for (int64_t j = 0; j < n; j += 1 + n / 11) {
            double want = 0;
            for (int64_t p = 0; p < depth; p++)
                want += (double)a[i * depth + p] * b[j * depth + p];
            assert_true(d[i * n + j] == (float)want);
        }
    test_free(a);
    test_free(b);
    test_free(d);
}

static void products_are_right_at_every_edge(void **state)
{
    (void)state;
    struct kernel k;
    build_gemm(&k);
    static const int64_t sizes[] = {1, 31, 63, 64, 65, 101};
    for (uint32_t i = 0; i < TIR_COUNT_OF(sizes); i++)
        run_gemm(&k, sizes[i], sizes[(i + 1) % 6], sizes[(i + 2) % 6]);
    run_gemm(&k, 256, 256, 256);
    kernel_finish(&k);
}

// An explicit kernel of one CTA of 64 threads: Y[tid()] = what `body` gives for its tid.
static void build_threads(struct kernel *k,
                          struct tir_value *(*body)(struct kernel *, struct tir_value *))
{
    kernel_init(k);
    struct tir_value *y = param(k, "Y", TIR_I32, 1, (int32_t[]){0});
    dim(k, "N");
    k->f->threads = 64;
    k->f->grid_count = 1;
    struct tir_builder host = tir_builder_at_end(k->f, k->f->host);
    struct tir_value *one = tir_const_index(k->f, 1);
    tir_build_yield(&host, &one, 1);
    struct tir_value *tid = tir_build1(&k->b, TIR_OP_TID, scalar(k, TIR_I32), NULL, 0);
    store(k, y, body(k, tid), tid, NULL);
}

static tir_status run_threads(struct kernel *k, int32_t y[64], tir_error *error)
{
    struct tir_interp_arg arg = vector(TIR_I32, y, 64);
    return run(k, &arg, error);
}

static struct tir_value *i32(struct kernel *k, int32_t x)
{
    return tir_const_i32(k->f, x);
}

static struct tir_value *warp_sum(struct kernel *k, struct tir_value *x)
{
    for (int32_t by = 16; by; by /= 2) {
        struct tir_value *operands[] = {x, i32(k, by)};
        const struct tir_type *type = x->type;
        struct tir_inst *inst = tir_build(&k->b, TIR_OP_SHUFFLE, operands, 2, &type, 1, 0);
        tir_set_word(k->f, inst, TIR_ATTR_mode, TIR_WORD_mode_bfly);
        x = tir_binary(&k->b, TIR_OP_ADD, x, tir_result(inst));
    }
    return x;
}

// if tid < 10 { 3 tid } else { -tid }: the branch diverges within a warp.
static struct tir_value *branch(struct kernel *k, struct tir_value *tid)
{
    struct tir_value *cond = tir_binary(&k->b, TIR_OP_LT, tid, i32(k, 10));
    const struct tir_type *type = tid->type;
    struct tir_inst *inst = tir_build(&k->b, TIR_OP_IF, &cond, 1, &type, 1, 2);
    struct tir_builder outer = k->b;
    k->b = tir_builder_at_end(k->f, inst->regions[0]);
    struct tir_value *x = tir_binary(&k->b, TIR_OP_MUL, tid, i32(k, 3));
    tir_build_yield(&k->b, &x, 1);
    k->b = tir_builder_at_end(k->f, inst->regions[1]);
    x = tir_binary(&k->b, TIR_OP_SUB, i32(k, 0), tid);
    tir_build_yield(&k->b, &x, 1);
    k->b = outer;
    return tir_result(inst);
}

// Counts from 0 while below tid, each thread as far as its own: carried (count, sum).
static struct tir_value *ragged_loop(struct kernel *k, struct tir_value *tid)
{
    const struct tir_type *types[] = {tid->type, tid->type};
    struct tir_value *init[] = {i32(k, 0), tid, i32(k, 1), i32(k, 100), i32(k, 7)};
    struct tir_inst *loop = tir_build(&k->b, TIR_OP_FOR, init, 5, types, 2, 1);
    struct tir_block *body = loop->regions[0];
    struct tir_value *i = tir_block_add_arg(k->f, body, tid->type, "i");
    struct tir_value *a = tir_block_add_arg(k->f, body, tid->type, "a");
    struct tir_value *b = tir_block_add_arg(k->f, body, tid->type, "b");
    struct tir_builder inner = tir_builder_at_end(k->f, body);
    struct tir_value *sum = tir_binary(&inner, TIR_OP_ADD, a, i);
    tir_build_yield(&inner, (struct tir_value *[]){b, sum}, 2); // swaps every time
    return loop->results[0];
}

static struct tir_value *divergent_barrier(struct kernel *k, struct tir_value *tid)
{
    struct tir_value *cond = tir_binary(&k->b, TIR_OP_LT, tid, i32(k, 32));
    struct tir_inst *inst = tir_build(&k->b, TIR_OP_IF, &cond, 1, NULL, 0, 2);
    struct tir_builder inner = tir_builder_at_end(k->f, inst->regions[0]);
    tir_build(&inner, TIR_OP_BAR_SYNC, NULL, 0, NULL, 0, 0);
    tir_build_yield(&inner, NULL, 0);
    inner = tir_builder_at_end(k->f, inst->regions[1]);
    tir_build_yield(&inner, NULL, 0);
    return tid;
}

// while (x != 0) x = x: never ends for the threads but the first.
static struct tir_value *endless(struct kernel *k, struct tir_value *tid)
{
    const struct tir_type *type = tid->type;
    struct tir_inst *loop = tir_build(&k->b, TIR_OP_WHILE, &tid, 1, &type, 1, 2);
    struct tir_value *x = tir_block_add_arg(k->f, loop->regions[0], type, "x");
    struct tir_builder inner = tir_builder_at_end(k->f, loop->regions[0]);
    struct tir_value *go = tir_binary(&inner, TIR_OP_NE, x, i32(k, 0));
    tir_build_yield(&inner, &go, 1);
    x = tir_block_add_arg(k->f, loop->regions[1], type, "x");
    inner = tir_builder_at_end(k->f, loop->regions[1]);
    tir_build_yield(&inner, &x, 1);
    return tir_result(loop);
}

static struct tir_value *assume_small(struct kernel *k, struct tir_value *tid)
{
    struct tir_value *cond = tir_binary(&k->b, TIR_OP_LT, tid, i32(k, 63));
    tir_build(&k->b, TIR_OP_ASSUME, &cond, 1, NULL, 0, 0);
    return tid;
}

static struct tir_value *inline_ptx(struct kernel *k, struct tir_value *tid)
{
    struct tir_inst *inst = tir_build(&k->b, TIR_OP_PTX, NULL, 0, NULL, 0, 0);
    tir_set_text(k->f, inst, TIR_ATTR_text, STR("nanosleep.u32 1;"));
    return tid;
}

static void threads_run_in_lockstep(void **state)
{
    (void)state;
    struct kernel k;
    int32_t y[64];
    build_threads(&k, warp_sum);
    assert_int_equal(run_threads(&k, y, NULL), TIR_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(y[i], i < 32 ? 31 * 32 / 2 : 31 * 32 / 2 + 32 * 32);
    kernel_finish(&k);
    build_threads(&k, branch);
    assert_int_equal(run_threads(&k, y, NULL), TIR_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(y[i], i < 10 ? 3 * i : -i);
    kernel_finish(&k);
}

static void threads_leave_loops_one_by_one(void **state)
{
    (void)state;
    struct kernel k;
    int32_t y[64];
    build_threads(&k, ragged_loop);
    assert_int_equal(run_threads(&k, y, NULL), TIR_OK);
    for (int i = 0; i < 64; i++) {
        int32_t a = 100, b = 7;
        for (int j = 0; j < i; j++) {
            int32_t sum = a + j;
            a = b;
            b = sum;
        }
        assert_int_equal(y[i], a);
    }
    kernel_finish(&k);
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        struct tir_value *(*body)(struct kernel *, struct tir_value *);
        tir_status status;
        const char *message;
    } cases[] = {
        {divergent_barrier, TIR_ERR_INVALID, "only 32 of 64 threads arrive at this barrier"},
        {endless, TIR_ERR_INVALID, "gave up after 1000 steps"},
        {assume_small, TIR_ERR_INVALID, "an assumption does not hold"},
        {inline_ptx, TIR_ERR_UNSUPPORTED, "inline PTX cannot be interpreted"},
    };
    for (uint32_t i = 0; i < TIR_COUNT_OF(cases); i++) {
        struct kernel k;
        int32_t y[64];
        tir_error error;
        build_threads(&k, cases[i].body);
        struct tir_interp_arg arg = vector(TIR_I32, y, 64);
        struct tir_interp_options options = {.step_limit = 1000};
        assert_int_equal(tir_interp_run(k.f, &arg, 1, &options, &error), cases[i].status);
        assert_string_equal(error.message, cases[i].message);
        kernel_finish(&k);
    }
}

static void comparing_finds_the_first_mismatch(void **state)
{
    (void)state;
    float want[] = {1, 1e-9f, NAN, INFINITY, -2}, got[] = {1, 1e-6f, NAN, INFINITY, -2};
    struct tir_interp_diff diff;
    double rtol = tir_interp_tolerance(TIR_F32);
    assert_true(tir_interp_compare(TIR_F32, got, want, 5, rtol, &diff));
    assert_true(diff.max_abs > 9e-7 && diff.max_abs < 1e-6);
    assert_int_equal(diff.first, -1);
    got[2] = 0;
    got[3] = -INFINITY;
    got[4] = -2.001f;
    assert_false(tir_interp_compare(TIR_F32, got, want, 5, rtol, &diff));
    assert_int_equal(diff.mismatches, 3);
    assert_int_equal(diff.first, 2);
    int32_t a[] = {1, 2, 3}, b[] = {1, 2, 4};
    assert_false(tir_interp_compare(TIR_I32, a, b, 3, 1, &diff));
    assert_int_equal(diff.first, 2);
    assert_true(diff.got == 3 && diff.want == 4);
    assert_true(tir_interp_tolerance(TIR_BF16) > tir_interp_tolerance(TIR_F16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_are_read_as_zero_and_not_written),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(products_are_right_at_every_edge),
        cmocka_unit_test(threads_run_in_lockstep),
        cmocka_unit_test(threads_leave_loops_one_by_one),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(comparing_finds_the_first_mismatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
