// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products on warpgroups: every kind, A in shared memory and in registers, fresh and kept
// accumulators, against plain sums. The kernels are built here: one operation with its steps.

#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "ir/number.h"

enum { M = 64, A_AT = 0, B_AT = 8192, IMAGE = 8192 + 32768, ROW = 128, MAX_K = 128 };

// The scale: true at run time, false at run time, false and known; or a loop around it.
enum keep { KEEP, DROP, FRESH, LOOP };

struct form {
    enum tir_word kind;
    enum tir_elem elem, sum;
    int n;
    bool a_registers, a_trans, b_trans;
    enum keep keep;
};

static int bits_of(const struct form *t)
{
    return (int)tir_elems[t->elem].bits;
}

static int k_of(const struct form *t) // 128 bytes of a row
{
    return 8 * ROW / bits_of(t);
}

static int sums_of(const struct form *t) // registers
{
    return t->n / (t->sum == TIR_F16 ? 4 : 2);
}

// The kernel.

static struct tir_value *build(struct ir_unit *u, enum tir_op op, enum tir_elem elem,
                               struct tir_value *x, struct tir_value *y)
{
    return tir_build1(&u->b, op, ir_scalar(u, elem), (struct tir_value *[]){x, y}, y ? 2 : 1);
}

static void build_plain(struct ir_unit *u, enum tir_op op, enum tir_attr_key key,
                        enum tir_word word)
{
    struct tir_inst *inst = tir_build(&u->b, op, NULL, 0, NULL, 0, 0);
    if (key != TIR_ATTR_COUNT)
        tir_set_word(u->f, inst, key, word);
}

// K-major rows of 128 bytes, or with M (N) contiguous rows of 64 elements: swizzled over 128 bytes.
static struct tir_value *build_descriptor(struct ir_unit *u, struct tir_value *image, int64_t at)
{
    struct tir_value *operands[] = {image, NULL};
    struct tir_inst *address = tir_build(&u->b, TIR_OP_ADDRESS, operands, 2,
                                         (const struct tir_type *[]){ir_scalar(u, TIR_I32)}, 1, 0);
    tir_set_int(u->f, address, TIR_ATTR_offset, at);
    struct tir_value *unit =
        build(u, TIR_OP_SHR, TIR_I32, tir_result(address), tir_const_i32(u->f, 4));
    unit = build(u, TIR_OP_AND, TIR_I32, unit, tir_const_i32(u->f, 0x3fff));
    int64_t rest = INT64_C(1) << 62 | INT64_C(64) << 32 | INT64_C(512) << 16; // 1024, 8192 bytes
    return build(u, TIR_OP_OR, TIR_I64, cast(u, unit, TIR_I64), tir_const_index(u->f, rest));
}

// Words w of X at 512 w + 4 tid.
static void load_words(struct ir_unit *u, struct tir_value *x, struct tir_value *at,
                       enum tir_elem elem, int count, struct tir_value **out)
{
    for (int i = 0; i < count; i++)
        out[i] = build_ld(u, x, at, 512 * i, NULL, elem, 1)->results[0];
}

struct operands { // of one wgmma, and what is needed to make it
    struct tir_value *at[3 + 16 + 128];
    int count, first_sum, sums, steps;
    const struct tir_type *types[128];
};

static struct tir_inst *build_wgmma(struct ir_unit *u, const struct form *t,
                                    const struct operands *o)
{
    build_plain(u, TIR_OP_FENCE, TIR_ATTR_of, TIR_WORD_of_wgmma);
    struct tir_inst *wgmma =
        tir_build(&u->b, TIR_OP_WGMMA, o->at, (uint32_t)o->count, o->types, (uint32_t)o->sums, 0);
    tir_set_word(u->f, wgmma, TIR_ATTR_kind, t->kind);
    tir_set_int(u->f, wgmma, TIR_ATTR_cols, t->n);
    tir_set_int(u->f, wgmma, TIR_ATTR_depth, 256 / bits_of(t));
    tir_set_int(u->f, wgmma, TIR_ATTR_steps, o->steps);
    tir_set_int(u->f, wgmma, TIR_ATTR_a_step, t->a_trans ? 128 : 2);
    tir_set_int(u->f, wgmma, TIR_ATTR_b_step, t->b_trans ? 128 : 2);
    tir_set_int(u->f, wgmma, TIR_ATTR_a_trans, t->a_trans);
    tir_set_int(u->f, wgmma, TIR_ATTR_b_trans, t->b_trans);
    build_plain(u, TIR_OP_COMMIT_GROUP, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
    return wgmma;
}

// As often as trips says, in a loop that carries the accumulators; one group stays in flight.
static struct tir_inst *build_loop(struct ir_unit *u, const struct form *t, struct operands *o,
                                   struct tir_value *trips)
{
    struct tir_value *operands[3 + 128] = {tir_const_i32(u->f, 0), trips, tir_const_i32(u->f, 1)};
    memcpy(operands + 3, o->at + o->first_sum, (size_t)o->sums * sizeof *operands);
    struct tir_inst *loop = tir_build(&u->b, TIR_OP_FOR, operands, 3 + (uint32_t)o->sums, o->types,
                                      (uint32_t)o->sums, 1);
    struct tir_block *body = loop->regions[0];
    tir_block_add_arg(u->f, body, ir_scalar(u, TIR_I32), "k");
    for (int i = 0; i < o->sums; i++)
        o->at[o->first_sum + i] = tir_block_add_arg(u->f, body, o->types[i], "sum");
    u->b = tir_builder_at_end(u->f, body);
    struct tir_inst *wgmma = build_wgmma(u, t, o);
    struct tir_inst *wait = tir_build(&u->b, TIR_OP_WAIT_GROUP, NULL, 0, NULL, 0, 0);
    tir_set_int(u->f, wait, TIR_ATTR_groups, 1);
    tir_set_word(u->f, wait, TIR_ATTR_engine, TIR_WORD_engine_wgmma);
    tir_build_yield(&u->b, wgmma->results, (uint32_t)o->sums);
    u->b = tir_builder_at_end(u->f, u->f->body);
    return loop;
}

static void build_product(struct ir_unit *u, const struct form *t)
{
    start_kernel(u, "product", 128);
    struct tir_value *x = vector(u, "X", TIR_IN, TIR_I32), *a = vector(u, "A", TIR_IN, TIR_I32);
    enum tir_elem sum = t->sum == TIR_F16 ? TIR_I32 : t->sum;
    struct tir_value *c = vector(u, "C", TIR_IN, sum), *out = vector(u, "O", TIR_OUT, sum);
    struct tir_value *scale = vector(u, "S", TIR_IN, TIR_I32);
    ir_dims(u, (const char *const[]){"N"}, 1);
    struct tir_value *image = build_alloc(u, TIR_SPACE_SHARED, TIR_I32, IMAGE / 4, 0);
    struct tir_value *tid = op0(u, TIR_OP_TID);
    struct tir_value *unit = op2(u, TIR_OP_MUL, tid, tir_const_i32(u->f, 16));
    for (int i = 0; i < IMAGE; i += 2048)
        build_st(u, image, unit, i, NULL, build_ld(u, x, unit, i, NULL, TIR_I32, 4)->results, 4);
    struct tir_value *at = op2(u, TIR_OP_MUL, tid, tir_const_i32(u->f, 4));
    struct operands o = {.sums = sums_of(t), .steps = k_of(t) * bits_of(t) / 256};
    for (int i = 0; i < o.sums; i++)
        o.types[i] = ir_scalar(u, sum);
    o.first_sum = 3 + (t->a_registers ? 4 * o.steps : 0);
    o.count = o.first_sum + (t->keep == FRESH ? 0 : o.sums);
    load_words(u, a, at, TIR_I32, o.first_sum - 3, o.at + 3);
    load_words(u, c, at, sum, o.count - o.first_sum, o.at + o.first_sum);
    struct tir_value *zero = tir_const_i32(u->f, 0);
    struct tir_value *kept = build_ld(u, scale, zero, 0, NULL, TIR_I32, 1)->results[0];
    o.at[TIR_WGMMA_B] = build_descriptor(u, image, B_AT);
    o.at[TIR_WGMMA_A] = t->a_registers ? NULL : build_descriptor(u, image, A_AT);
    o.at[TIR_WGMMA_SCALE] = t->keep == LOOP    ? NULL
                            : t->keep == FRESH ? tir_const_bool(u->f, false)
                                               : op2(u, TIR_OP_NE, kept, zero);
    build_plain(u, TIR_OP_FENCE, TIR_ATTR_of, TIR_WORD_of_async_shared);
    build_plain(u, TIR_OP_BAR_SYNC, TIR_ATTR_COUNT, TIR_WORD_NONE);
    struct tir_inst *product = t->keep == LOOP ? build_loop(u, t, &o, kept) : build_wgmma(u, t, &o);
    struct tir_inst *await = tir_build(&u->b, TIR_OP_AWAIT, product->results, (uint32_t)o.sums,
                                       o.types, (uint32_t)o.sums, 0);
    tir_set_int(u->f, await, TIR_ATTR_groups, 0);
    // A branch in front of what reads the accumulators, as the arrival at an mbarrier is.
    struct tir_value *first = op2(u, TIR_OP_EQ, tid, zero);
    struct tir_inst *branch = tir_build(&u->b, TIR_OP_IF, &first, 1, NULL, 0, 2);
    u->b = tir_builder_at_end(u->f, branch->regions[1]);
    ir_end(u, NULL);
    u->b = tir_builder_at_end(u->f, branch->regions[0]);
    build_plain(u, TIR_OP_FENCE, TIR_ATTR_of, TIR_WORD_of_gpu);
    ir_end(u, NULL);
    for (int i = 0; i < o.sums; i++)
        build_st(u, out, at, 512 * i, NULL, &await->results[i], 1);
}

// What goes in, and what has to come out.

struct data {
    uint8_t image[IMAGE];
    uint32_t a[16][128], c[128][128], out[128][128];
    double x[M][MAX_K], y[256][MAX_K], z[M][256];
};

static uint64_t encode(enum tir_elem elem, int value)
{
    union tir_number number = {.i = value};
    if (tir_elem_is_float(elem))
        number.f = value;
    return tir_number_encode(elem, number);
}

static void put_bits(uint8_t *bytes, size_t index, int bits, uint64_t value)
{
    for (int i = 0; i < bits / 8; i++)
        bytes[index * (size_t)(bits / 8) + (size_t)i] |= (uint8_t)(value >> 8 * i);
}

// Element (row, k) of a matrix in an image of swizzled rows.
static void put_shared(uint8_t *image, const struct form *t, bool trans, int row, int k,
                       uint64_t bits)
{
    int line = trans ? row / 64 * 64 + k : row, col = trans ? row % 64 : k; // a line has 128 bytes
    int byte = col * bits_of(t) / 8;
    int at = line * ROW + ((byte / 16) ^ (line % 8)) * 16 + byte % 16;
    put_bits(image + at, 0, bits_of(t), bits);
}

// PTX's fragments: registers of A, and the registers and lanes of the accumulators.
static void put_register(uint32_t (*a)[128], const struct form *t, int row, int k, uint64_t bits)
{
    int each = 32 / bits_of(t), step = k / (8 * each), in_step = k % (8 * each);
    int reg = 4 * step + row / 8 % 2 + in_step / (4 * each) * 2;
    int lane = row / 16 * 32 + row % 8 * 4 + in_step % (4 * each) / each;
    a[reg][lane] |= (uint32_t)(bits << in_step % each * bits_of(t));
}

static int lane_of(int row, int col)
{
    return row / 16 * 32 + row % 8 * 4 + col % 8 / 2;
}

static int number_of(int row, int col) // of the accumulator
{
    return col / 8 * 4 + row / 8 % 2 * 2 + col % 2;
}

static int draw(const struct form *t, uint64_t *seed)
{
    return (int)(rig_random(seed) % 9) - (t->elem == TIR_U8 ? 0 : 4);
}

static void fill(struct data *d, const struct form *t, uint64_t seed)
{
    memset(d, 0, sizeof *d);
    for (int k = 0; k < k_of(t); k++) {
        for (int row = 0; row < M; row++) {
            int v = draw(t, &seed);
            d->x[row][k] = v;
            if (t->a_registers)
                put_register(d->a, t, row, k, encode(t->elem, v));
            else
                put_shared(d->image + A_AT, t, t->a_trans, row, k, encode(t->elem, v));
        }
        for (int row = 0; row < t->n; row++) {
            int v = draw(t, &seed);
            d->y[row][k] = v;
            put_shared(d->image + B_AT, t, t->b_trans, row, k, encode(t->elem, v));
        }
    }
    for (int row = 0; row < M; row++)
        for (int col = 0; col < t->n; col++) {
            int v = (int)(rig_random(&seed) % 101) - 50, i = number_of(row, col),
                lane = lane_of(row, col);
            d->z[row][col] = v;
            if (t->sum == TIR_F16)
                d->c[i / 2][lane] |= (uint32_t)encode(TIR_F16, v) << i % 2 * 16;
            else
                d->c[i][lane] = (uint32_t)encode(t->sum, v);
        }
}

static double result(const struct form *t, const struct data *d, int row, int col)
{
    int i = number_of(row, col), lane = lane_of(row, col);
    if (t->sum == TIR_F16)
        return tir_number_decode(TIR_F16, d->out[i / 2][lane] >> i % 2 * 16 & 0xffff).f;
    union tir_number v = tir_number_decode(t->sum, d->out[i][lane]);
    return t->sum == TIR_F32 ? v.f : (double)v.i;
}

// times: how often the sum of products is added.
static void check(const struct form *t, uint32_t times, uint64_t seed)
{
    static struct data d;
    fill(&d, t, seed);
    struct engine e;
    memset(&e, 0, sizeof e);
    build_product(&e.u, t);
    engine_load(&e);
    uint32_t scale = t->keep == LOOP ? times : t->keep == KEEP;
    const uint64_t dims[] = {1 << 14};
    engine_tensor(&e, d.image, sizeof d.image, dims, 1);
    engine_tensor(&e, d.a, sizeof d.a, dims, 1);
    engine_tensor(&e, d.c, sizeof d.c, dims, 1);
    uint64_t out = engine_tensor(&e, d.out, sizeof d.out, dims, 1);
    engine_tensor(&e, &scale, sizeof scale, dims, 1);
    engine_run(&e, 1);
    rig_read(&e.r, d.out, out, sizeof d.out);
    for (int row = 0; row < M; row++)
        for (int col = 0; col < t->n; col++) {
            double want = t->keep == KEEP || t->keep == LOOP ? d.z[row][col] : 0;
            for (int k = 0; k < k_of(t); k++)
                want += times * d.x[row][k] * d.y[col][k];
            if (result(t, &d, row, col) != want)
                fail_msg("%s n %d, registers %d, transposed %d %d: (%d, %d) is %g, not %g",
                         tir_words[t->kind].name, t->n, t->a_registers, t->a_trans, t->b_trans, row,
                         col, result(t, &d, row, col), want);
        }
    engine_close(&e);
}

static void products_are_sums_of_products(void **state)
{
    static const struct form forms[] = {
        {TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 256, .keep = KEEP},
        {TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 8, .keep = DROP},
        {TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 128, .b_trans = true, .keep = FRESH},
        {TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 128, .a_registers = true, .b_trans = true},
        {TIR_WORD_kind_f16, TIR_F16, TIR_F32, 72, .a_trans = true, .keep = KEEP},
        {TIR_WORD_kind_f16, TIR_F16, TIR_F32, 64, .a_trans = true, .b_trans = true},
        {TIR_WORD_kind_f16, TIR_F16, TIR_F32, 24, .a_registers = true, .keep = FRESH},
        {TIR_WORD_kind_f16, TIR_F16, TIR_F16, 136, .keep = KEEP},
        {TIR_WORD_kind_f16, TIR_F16, TIR_F16, 40, .a_registers = true, .keep = DROP},
        {TIR_WORD_kind_tf32, TIR_TF32, TIR_F32, 96, .keep = KEEP},
        {TIR_WORD_kind_tf32, TIR_TF32, TIR_F32, 16, .a_registers = true, .keep = FRESH},
        {TIR_WORD_kind_e4m3, TIR_E4M3, TIR_F32, 48, .keep = KEEP},
        {TIR_WORD_kind_e4m3, TIR_E4M3, TIR_F32, 200, .a_registers = true, .keep = DROP},
        {TIR_WORD_kind_e4m3, TIR_E4M3, TIR_F16, 64, .keep = FRESH},
        {TIR_WORD_kind_e5m2, TIR_E5M2, TIR_F32, 56, .keep = FRESH},
        {TIR_WORD_kind_e5m2, TIR_E5M2, TIR_F16, 32, .a_registers = true, .keep = KEEP},
        {TIR_WORD_kind_i8, TIR_I8, TIR_I32, 112, .keep = KEEP},
        {TIR_WORD_kind_i8, TIR_I8, TIR_I32, 24, .a_registers = true, .keep = DROP},
        {TIR_WORD_kind_u8, TIR_U8, TIR_I32, 64, .keep = FRESH},
        {TIR_WORD_kind_u8, TIR_U8, TIR_I32, 16, .a_registers = true, .keep = KEEP},
    };
    (void)state;
    for (size_t i = 0; i < TIR_COUNT_OF(forms); i++)
        check(&forms[i], 1, i + 1);
}

// Also when the loop is never entered.
static void a_loop_carries_accumulators(void **state)
{
    (void)state;
    for (uint32_t times = 0; times < 4; times++)
        check(&(struct form){TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 256, .keep = LOOP}, times,
              times + 1);
    check(&(struct form){TIR_WORD_kind_e4m3, TIR_E4M3, TIR_F32, 64, .a_registers = true,
                         .keep = LOOP},
          2, 9);
}

// 512 threads begin with 128 registers each.
static void too_many_accumulators_are_refused(void **state)
{
    (void)state;
    struct ir_unit u;
    build_product(&u, &(struct form){TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 256, .keep = KEEP});
    assert_true(tir_nvptx_check(u.f, tir_target_find(STR("sm_90a")), &u.cx.diags));
    u.f->threads = 512;
    assert_false(tir_nvptx_check(u.f, tir_target_find(STR("sm_90a")), &u.cx.diags));
    tir_context_finish(&u.cx);
}

// Every number of columns compiles and is accepted by the assembler in one kernel.
static void every_number_of_columns_has_an_instruction(void **state)
{
    (void)state;
    for (int n = 8; n <= 256; n += 8) {
        struct ir_unit u;
        build_product(&u, &(struct form){TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, n, .keep = KEEP});
        char name[32];
        snprintf(name, sizeof name, "m64n%dk16.f32.bf16.bf16", n);
        tir_str ptx = compile_for(&u, "sm_90a");
        assert_has(ptx, name);
        if (n % 64 == 40)
            assemble_clean(&u, "sm_90a", ptx);
        tir_context_finish(&u.cx);
    }
}

static int count_of(tir_str ptx, const char *part)
{
    int count = 0;
    for (const char *at = ptx.ptr; (at = strstr(at, part)); at++)
        count++;
    return count;
}

// Puts what stands behind the loop in another order: the release in front of the wait.
static void swap_await_and_branch(struct tir_func *f)
{
    struct tir_inst *await = NULL, *branch = NULL;
    for (struct tir_inst *inst = f->body->first; inst; inst = inst->next) {
        await = inst->op == TIR_OP_AWAIT ? inst : await;
        branch = inst->op == TIR_OP_IF ? inst : branch;
    }
    tir_move_before(await, branch->next);
}

// On the way that never entered a loop the accumulators are waited for apart, or ptxas serialises
// the products where more code follows.
static void each_way_out_of_a_loop_waits(void **state)
{
    (void)state;
    struct ir_unit u;
    for (int swapped = 0; swapped < 2; swapped++) {
        build_product(&u, &(struct form){TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 16, .keep = LOOP});
        if (swapped)
            swap_await_and_branch(u.f);
        tir_str ptx = compile_for(&u, "sm_90a");
        assert_int_equal(count_of(ptx, "wgmma.wait_group.sync.aligned 0;"), 2);
        tir_context_finish(&u.cx);
    }
}

// The accumulators stay in their registers: nothing moves them but what makes the first ones.
static void accumulators_are_not_moved(void **state)
{
    (void)state;
    struct ir_unit u;
    build_product(&u, &(struct form){TIR_WORD_kind_bf16, TIR_BF16, TIR_F32, 256, .keep = KEEP});
    tir_str ptx = compile_for(&u, "sm_90a");
    assert_in_range(count_of(ptx, "mov.b32"), 0, 8);
    tir_context_finish(&u.cx);
}

// Products m64n8 and their four sums, in text.
#define FOUR(a, b, c, d) "let " #a ": f32, " #b ": f32, " #c ": f32, " #d ": f32 = "
#define LIST(a, b, c, d) #a ", " #b ", " #c ", " #d
#define PRODUCT(to, kept)                                  \
    "fence(of = wgmma);\n" FOUR to "wgmma(q, a = q, " kept \
    ", kind = bf16, cols = 8, depth = 16, steps = 1);\n"   \
    "commit_group(engine = wgmma);\n"
#define FRESH(to)               PRODUCT(to, "scale = false")
#define ADD(to, sums)           PRODUCT(to, LIST sums)
#define AWAIT(to, sums, groups) FOUR to "await(" LIST sums ", groups = " #groups ");\n"
#define STORE(sums)             "st(O, 0, " LIST sums ", width = 16);\n"
#define LOOP(to, begin, text)   FOUR to "for i: i32 in range(0, n) carry (" begin ") {\n" text "}\n"

// Sums of a loop in two registers of halves, m and p.
#define PACKED                                                                               \
    LOOP((a, b, c, d), "w: f32 = f32(0), x: f32 = f32(0), y: f32 = f32(0), z: f32 = f32(0)", \
         ADD((e, f, g, h), (w, x, y, z)) "yield e, f, g, h;\n")                              \
    AWAIT((r, s, t, u), (a, b, c, d), 0)                                                     \
    "let i: bf16 = cast(r);\n"                                                               \
    "let j: bf16 = cast(s);\n"                                                               \
    "let k: bf16 = cast(t);\n"                                                               \
    "let l: bf16 = cast(u);\n"                                                               \
    "let m: i32 = pack(i, j);\n"                                                             \
    "let p: i32 = pack(k, l);\n"                                                             \
    "let to: shared bf16[64, 8] in S[(64, 8) : (8, 1)] = alloc(offset = 0);\n"

// Bodies of kernels, and how many sums, and registers packed of them, LLVM does not see.
static const struct {
    const char *body;
    int sums;
    int in_a_row; // stores of matrices that follow another one in the same piece of PTX
} chains[] = {
    // A loop carries them in flight.
    {LOOP((a, b, c, d), "w: f32 = f32(0), x: f32 = f32(0), y: f32 = f32(0), z: f32 = f32(0)",
          ADD((e, f, g, h), (w, x, y, z)) "yield e, f, g, h;\n")
         AWAIT((r, s, t, u), (a, b, c, d), 0) STORE((r, s, t, u)),
     4},
    // The second product goes on with the sums of the first, which are read, too.
    {FRESH((a, b, c, d)) AWAIT((r, s, t, u), (a, b, c, d), 0) STORE((r, s, t, u))
         ADD((e, f, g, h), (r, s, t, u)) AWAIT((w, x, y, z), (e, f, g, h), 0) STORE((w, x, y, z)),
     4},
    // Two that are apart.
    {FRESH((a, b, c, d)) FRESH((e, f, g, h)) AWAIT((r, s, t, u), (a, b, c, d), 1)
         STORE((r, s, t, u)) AWAIT((w, x, y, z), (e, f, g, h), 0) STORE((w, x, y, z)),
     8},
    // Two products add to the same sums.
    {FRESH((a, b, c, d)) AWAIT((r, s, t, u), (a, b, c, d), 0) ADD((e, f, g, h), (r, s, t, u))
         ADD((i, j, k, l), (r, s, t, u)) AWAIT((w, x, y, z), (e, f, g, h), 1) STORE((w, x, y, z))
             AWAIT((m, o, p, v), (i, j, k, l), 0) STORE((m, o, p, v)),
     0},
    // Each round adds to the sums that were there before the loop.
    {FRESH((a, b, c, d)) AWAIT((r, s, t, u), (a, b, c, d), 0) "for i: i32 in range(0, n) {\n" ADD(
         (e, f, g, h), (r, s, t, u)) AWAIT((w, x, y, z), (e, f, g, h), 0) STORE((w, x, y, z)) "}\n",
     0},
    // A round starts a product while that of the round before it is in flight.
    {FRESH((a, b, c, d)) LOOP((i, j, k, l), "w: f32 = a, x: f32 = b, y: f32 = c, z: f32 = d",
                              FRESH((e, f, g, h)) AWAIT((r, s, t, u), (w, x, y, z), 1)
                                  STORE((r, s, t, u)) "yield e, f, g, h;\n")
         AWAIT((m, o, p, v), (i, j, k, l), 0) STORE((m, o, p, v)),
     0},
    // Stores of matrices alone read what is packed, with nothing but an address between them.
    {PACKED "stmatrix(to, 0, m);\nlet at: i32 = mul(n, 16);\nstmatrix(to, at, p);\n", 6, 1},
    // Something is between them.
    {PACKED "stmatrix(to, 0, m);\nwarp_sync();\nstmatrix(to, 512, p);\n", 6, 0},
    // One store has a register that another operation reads, too, and then LLVM's alone.
    {PACKED "stmatrix(to, 0, m, p);\nst(O, 0, m, width = 4);\n", 5, 0},
    {PACKED "stmatrix(to, 0, m);\nst(O, 0, m, p, width = 8);\n", 4, 0},
};

static void sums_that_only_products_touch_are_unseen(void **state)
{
    (void)state;
    for (size_t i = 0; i < TIR_COUNT_OF(chains); i++) {
        char source[4096], name[32];
        snprintf(source, sizeof source,
                 "kernel k(O: out f32[N], q: i64, n: i32)\n"
                 "    threads(128) form(lowered) shared(1024)\n"
                 "{\n%s}\n",
                 chains[i].body);
        struct ir_unit u;
        parse_kernel(&u, source);
        tir_str ptx = compile_for(&u, "sm_90a");
        if (chains[i].sums)
            assemble_clean(&u, "sm_90a", ptx);
        snprintf(name, sizeof name, ".reg .b32 %%sum<%d>;", chains[i].sums);
        assert_int_equal(count_of(ptx, name), chains[i].sums != 0);
        assert_int_equal(count_of(ptx, "%sum") != 0, chains[i].sums != 0);
        assert_int_equal(count_of(ptx, "}; stmatrix"), chains[i].in_a_row);
        tir_context_finish(&u.cx);
    }
}

// What no instruction does. m64n8: four accumulators f0..3 or i0..3, four registers of A i0..3.
struct refused {
    const char *arch, *call, *message;
};
static const struct refused refusals[] = {
    {"sm_90", "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 16, steps = 1)",
     "the target has no products on warpgroups"},
    {"sm_100a", "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 16, steps = 1)",
     "the target has no products on warpgroups"},
    {"sm_90a", "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 12, depth = 16, steps = 1)",
     "as many columns"},
    {"sm_90a", "wgmma(d, a = d, i0, i1, i2, i3, kind = i8, cols = 40, depth = 32, steps = 1)",
     "as many columns"},
    {"sm_90a", "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 8, steps = 1)",
     "kind and depth"},
    {"sm_90a", "wgmma(d, a = d, f0, f1, f2, f3, kind = f64, cols = 8, depth = 4, steps = 1)",
     "kind and depth"},
    {"sm_90a", "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 16, steps = 17)",
     "1 to 16 steps"},
    {"sm_90a",
     "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 16, steps = 1, b_step = -2)",
     "within shared memory"},
    {"sm_90a",
     "wgmma(d, a = d, f0, f1, f2, f3, kind = tf32, cols = 8, depth = 8, steps = 1, b_trans = 1)",
     "only elements of 16 bits"},
    {"sm_90a",
     "wgmma(d, i0, i1, i2, i3, f0, f1, f2, f3, kind = f16, cols = 8, depth = 16, steps = 1, "
     "a_trans = 1)",
     "A in registers cannot be transposed"},
    {"sm_90a", "wgmma(d, a = d, kind = bf16, cols = 8, depth = 16, steps = 1)",
     "then the accumulators unless the scale is false"},
    {"sm_90a", "wgmma(d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 16, steps = 1)",
     "then the accumulators unless the scale is false"},
    {"sm_90a", "wgmma(i0, a = d, f0, f1, f2, f3, kind = bf16, cols = 8, depth = 16, steps = 1)",
     "descriptors have 64 bits"},
    {"sm_90a", "wgmma(d, a = d, f0, f1, f2, f3, kind = bf16, cols = 16, depth = 16, steps = 1)",
     "ask for other accumulators"},
    {"sm_90a", "wgmma(d, a = d, f0, f1, f2, f3, kind = i8, cols = 8, depth = 32, steps = 1)",
     "accumulators are f32"},
};

static void other_products_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TIR_COUNT_OF(refusals); i++) {
        const struct refused *r = &refusals[i];
        char source[2048];
        snprintf(source, sizeof source,
                 "kernel k(O: out f32[N], d: i64, i0: i32, i1: i32, i2: i32, i3: i32,\n"
                 "         f0: f32, f1: f32, f2: f32, f3: f32)\n"
                 "    threads(128) form(lowered) shared(1024)\n"
                 "{\n"
                 "    let x0: f32, x1: f32, x2: f32, x3: f32 = %s;\n"
                 "}\n",
                 r->call);
        expect_refused(source, r->arch, r->message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sums_of_products),
        cmocka_unit_test(a_loop_carries_accumulators),
        cmocka_unit_test(every_number_of_columns_has_an_instruction),
        cmocka_unit_test(each_way_out_of_a_loop_waits),
        cmocka_unit_test(accumulators_are_not_moved),
        cmocka_unit_test(sums_that_only_products_touch_are_unseen),
        cmocka_unit_test(other_products_are_refused),
        cmocka_unit_test(too_many_accumulators_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
