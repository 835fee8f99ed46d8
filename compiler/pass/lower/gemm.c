// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lower_tile, gemm_async: descriptors of the operands and wgmma on them.
//
// Each warpgroup has the rows and columns that the accumulator's layout gives it. It takes them as
// m64 blocks, and columns as at most 256 at a time; one wgmma operation takes as many steps along K
// as lie at equal distances in memory.
//
// A from registers is packed: two 16-bit columns, which is the accumulator's fragment of a product,
// or four 8-bit ones, are one register. Packing writes registers, so a fence follows it. Until the
// wait nothing else may access them (PTX ISA, "wgmma.wait_group"), not even read them, although A
// itself may be used: the fence gives the product registers of its own, and they become operands of
// the await.

#include "machine/budget.h"
#include "machine/product.h"
#include "pass/lower/descriptor.h"
#include "pass/receipt.h"
#include "pass/sync/crew.h"

enum { M = TIR_WGMMA_ROWS, MAX_COLUMNS = TIR_WGMMA_MOST_COLUMNS, MAX_STEPS = 16 };

// Registers that an asynchronous product reads.
struct lower_operands {
    struct tir_value **at;
    uint32_t count;
};

struct gemm {
    struct lower *lo;
    struct tir_inst *inst;
    enum tir_word kind, b_kind;  // of the elements of A; of those of B, if they are others
    uint32_t groups_m, groups_n; // warpgroups
    uint32_t rows, columns;      // of one warpgroup
    uint32_t n;                  // columns of one instruction
    uint32_t together;           // sums in a register: 1, or 2 of 16 bits
    uint32_t depth, steps, bits; // of one instruction; instructions along K; of an element
    bool a_in_registers;
    struct lower_descriptor a, b; // in shared memory
    struct tir_value **packed;    // A in registers: 4 for each m64 block and step
};

static bool refuse(struct gemm *g, const char *why)
{
    tir_error_at(g->lo->cx->diags, g->inst->span, TIR_E_UNSUPPORTED, "no wgmma for gemm_async: %s",
                 why);
    g->lo->failed = true;
    return false;
}

// Passes registers through an await or a fence and gives them as they are after it. One operation
// takes as many as it can; further operations, which wait for nothing more, take the others.
static struct tir_value **tie_registers(struct lower *lo, enum tir_op op,
                                        struct tir_value *const *registers, uint32_t count,
                                        int64_t groups)
{
    struct tir_value **given = tir_lower_new_registers(lo, count);
    const struct tir_type **types =
        arena_array(lo->cx->scratch, const struct tir_type *, TIR_TIED_REGISTERS);
    uint32_t at = 0, n;
    do {
        n = TIR_MIN(count - at, TIR_TIED_REGISTERS);
        for (uint32_t i = 0; i < n; i++)
            types[i] = registers[at + i]->type;
        struct tir_inst *inst = tir_build(&lo->b, op, registers + at, n, types, n, 0);
        if (op == TIR_OP_AWAIT)
            tir_set_int(lo->f, inst, TIR_ATTR_groups, groups);
        if (n)
            memcpy(given + at, inst->results, n * sizeof(*given));
        at += n;
    } while (at < count);
    return given;
}

// A in registers.

// The registers of A as wgmma reads them: one for two rows, 8 apart, and two chunks of columns, of
// each m64 block and step.
static bool pack_a(struct gemm *g)
{
    struct lower *lo = g->lo;
    struct tir_value *a = g->inst->operands[TIR_DOT_A];
    const struct tir_layout *l = a->type->layout;
    const struct tir_layout *fragment =
        tir_layout_wgmma_a(lo->types, a->type->shape, g->bits, g->groups_m, lo->threads / 32);
    if (l && (!fragment || !tir_layout_same_owner(l, fragment)))
        return refuse(g, "A is in registers, but not in wgmma's fragment");
    uint32_t parts = 32 / g->bits, blocks = g->rows / M;
    g->packed = tir_lower_new_registers(lo, 4 * blocks * g->steps);
    for (uint32_t i = 0; i < blocks * g->steps * 4; i++) {
        uint32_t block = i / 4 / g->steps, step = i / 4 % g->steps;
        struct tir_value *values[4];
        for (uint32_t p = 0; p < parts; p++) {
            int64_t coord[TIR_MAX_RANK] = {block * M + i % 2 * 8,
                                           step * g->depth + i / 2 % 2 * (g->depth / 2) + p};
            uint32_t reg = l ? tir_layout_find(l, coord).at[TIR_AXIS_REG] : 0;
            values[p] = tir_lower_register(lo, a, reg);
        }
        g->packed[i] = parts > 1 ? tir_lower_joined(lo, lo->i32, values, parts)
                                 : tir_build1(&lo->b, TIR_OP_BITCAST, lo->i32, values, parts);
    }
    g->packed = tie_registers(lo, TIR_OP_WGMMA_FENCE, g->packed, 4 * blocks * g->steps, 0);
    return true;
}

// The product.

static bool open_operand(struct gemm *g, struct lower_descriptor *d, uint32_t operand, int64_t rows)
{
    *d = (struct lower_descriptor){.kind = LOWER_DESCRIPTOR_WGMMA,
                                   .depth = g->depth,
                                   .steps = g->steps,
                                   .bits = g->bits,
                                   .k_dim = operand == TIR_DOT_A};
    const char *why = tir_lower_descriptor_open(g->lo, d, g->inst->operands[operand], rows);
    return !why || refuse(g, why);
}

static bool build_descriptor(struct gemm *g, struct lower_descriptor *d)
{
    const char *why = tir_lower_descriptor_build(g->lo, d);
    return !why || refuse(g, why);
}

static bool is_fragment(const struct gemm *g, const struct tir_type *t, const int64_t shape[2],
                        uint32_t groups_m, uint32_t groups_n)
{
    const struct tir_layout *l =
        tir_layout_wgmma(g->lo->types, shape, groups_m, groups_n, g->lo->threads / 32);
    return l && (g->together == 1 ? l : tir_lower_packed_layout(g->lo->types, l)) == t->layout;
}

static bool set_groups(struct gemm *g)
{
    const struct tir_type *t = g->inst->results[0]->type;
    uint32_t warps = g->lo->threads / 32, groups = warps / 4;
    int64_t shape[] = {t->shape[0], t->shape[1] * g->together};
    for (uint32_t m = groups; m > 0; m--)
        for (uint32_t n = 1; m * n <= groups; n++)
            if (warps % 4 == 0 && is_fragment(g, t, shape, m, n)) {
                g->groups_m = m;
                g->groups_n = n;
                g->rows = (uint32_t)shape[0] / m;
                g->columns = (uint32_t)shape[1] / n;
                return true;
            }
    return refuse(g, "the accumulators are not in wgmma's fragment on whole warpgroups");
}

static bool set_kind(struct gemm *g)
{
    enum tir_elem a = g->inst->operands[TIR_DOT_A]->type->elem;
    enum tir_elem b = g->inst->operands[TIR_DOT_B]->type->elem;
    enum tir_elem acc = g->inst->results[0]->type->elem;
    int64_t k = g->inst->operands[TIR_DOT_A]->type->shape[1];
    g->together = acc == TIR_I32 && tir_elem_is_float(a) ? 2 : 1; // sums of f16 (packed.c)
    const struct tir_product *product =
        tir_product_find(TIR_ENGINE_WGMMA, a, b, g->together == 2 ? TIR_F16 : acc);
    if (!product)
        return refuse(g, "it has no such element types");
    g->kind = product->kind;
    g->b_kind = tir_b_kind(a, b);
    g->bits = tir_elems[a].bits;
    g->depth = product->depth;
    g->steps = (uint32_t)(k / g->depth);
    if (k % g->depth)
        return refuse(g, "K is no multiple of 32 bytes");
    return true;
}

// PTX ISA, "wgmma.mma_async": every multiple of 8; of integers, from 32 on every one of 16.
static bool has_columns(const struct gemm *g, uint32_t n)
{
    bool is_int = g->kind == TIR_WORD_kind_i8 || g->kind == TIR_WORD_kind_u8;
    return n % 8 == 0 && (!is_int || n == 8 || n == 24 || n % 16 == 0);
}

// One instruction must do with the registers that threads begin with, whatever setmaxnreg adds.
static uint32_t most_columns(const struct gemm *g)
{
    const struct tir_func *f = g->lo->f;
    uint32_t had = tir_launch_registers(f->threads * TIR_MAX(f->persistent, 1));
    uint32_t sums = had > TIR_BUDGET_FREE_REGISTERS ? had - TIR_BUDGET_FREE_REGISTERS : 0;
    return TIR_MIN(2 * g->together * sums, MAX_COLUMNS);
}

// The most columns at a time for which every instruction's B has a descriptor.
static bool set_columns(struct gemm *g)
{
    for (g->n = TIR_MIN(g->columns, most_columns(g)); g->n; g->n--) {
        if (g->columns % g->n || !has_columns(g, g->n))
            continue;
        bool fits = true;
        for (uint32_t c = 0; fits && c < g->columns; c += g->n)
            fits = tir_lower_descriptor_fits(&g->b, c, g->n);
        if (fits)
            return true;
    }
    return refuse(g, "B's layout in shared memory has no descriptor");
}

static bool open_a(struct gemm *g)
{
    struct tir_value *a = g->inst->operands[TIR_DOT_A];
    g->a_in_registers = !tir_type_is_buffer(a->type);
    if (g->a_in_registers)
        return pack_a(g);
    if (!open_operand(g, &g->a, TIR_DOT_A, g->rows))
        return false;
    for (uint32_t r = 0; r < g->rows; r += M)
        if (!tir_lower_descriptor_fits(&g->a, r, M))
            return refuse(g, "A's layout in shared memory has no descriptor");
    return true;
}

// The warpgroup's rows of A and columns of B.
static void move_operand(struct gemm *g, struct lower_descriptor *o, uint32_t stride,
                         uint32_t count, int64_t size)
{
    struct lower *lo = g->lo;
    if (count == 1)
        return;
    struct tir_value *warp = tir_lower_thread(lo, TIR_AXIS_WARP);
    bool top = stride * count == lo->threads / 32;
    struct tir_value *group = tir_lower_digit(lo, &lo->top, warp, stride, count, top);
    tir_lower_part_move(lo, &o->part, 1 - o->k_dim, tir_lower_mul_const(lo, &lo->top, group, size),
                        (uint64_t)size, size);
}

// Steps from `step` on that lie at equal distances in both operands.
static uint32_t equal_steps(const struct gemm *g, int64_t r, int64_t c, uint32_t step,
                            int64_t *a_step, int64_t *b_step)
{
    uint32_t end = step + 1;
    *a_step = *b_step = 0;
    for (; end < g->steps && end - step < MAX_STEPS; end++) {
        int64_t a = g->a_in_registers ? 0 : tir_lower_descriptor_step(&g->a, r, end - 1);
        int64_t b = tir_lower_descriptor_step(&g->b, c, end - 1);
        if (end == step + 1) {
            *a_step = a;
            *b_step = b;
        } else if (a != *a_step || b != *b_step) {
            break;
        }
    }
    return end - step;
}

// One operation: `count` steps of the m64 block at row r and the columns at c. acc: its
// accumulators, in and out; fresh: they count as zeros.
static void build_wgmma(struct gemm *g, uint32_t r, uint32_t c, uint32_t step, uint32_t count,
                        const int64_t by[2], bool fresh, struct tir_value **acc)
{
    struct lower *lo = g->lo;
    uint32_t own = g->n / 2 / g->together, n = TIR_WGMMA_REGISTERS, k = step * g->depth;
    struct tir_value **operands = tir_lower_new_registers(lo, n + 4 * count + own);
    operands[TIR_WGMMA_B] = tir_lower_descriptor_at(lo, &g->b, c, k);
    operands[TIR_WGMMA_A] = g->a_in_registers ? NULL : tir_lower_descriptor_at(lo, &g->a, r, k);
    operands[TIR_WGMMA_SCALE] = fresh ? tir_const_bool(lo->f, false) : NULL;
    for (uint32_t i = 0; g->a_in_registers && i < 4 * count; i++)
        operands[n++] = g->packed[4 * (r / M * g->steps + step) + i];
    const struct tir_type **types = arena_array(lo->cx->scratch, const struct tir_type *, own);
    for (uint32_t i = 0; i < own; i++) {
        types[i] = tir_type_scalar(lo->types, g->inst->results[0]->type->elem);
        if (!fresh)
            operands[n++] = acc[i];
    }
    struct tir_inst *wgmma = tir_build(&lo->b, TIR_OP_WGMMA, operands, n, types, own, 0);
    tir_set_word(lo->f, wgmma, TIR_ATTR_kind, g->kind);
    if (g->b_kind)
        tir_set_word(lo->f, wgmma, TIR_ATTR_b_kind, g->b_kind);
    tir_set_int(lo->f, wgmma, TIR_ATTR_cols, g->n);
    tir_set_int(lo->f, wgmma, TIR_ATTR_depth, g->depth);
    tir_set_int(lo->f, wgmma, TIR_ATTR_steps, count);
    if (by[0])
        tir_set_int(lo->f, wgmma, TIR_ATTR_a_step, by[0]);
    if (by[1])
        tir_set_int(lo->f, wgmma, TIR_ATTR_b_step, by[1]);
    if (g->a.trans)
        tir_set_int(lo->f, wgmma, TIR_ATTR_a_trans, 1);
    if (g->b.trans)
        tir_set_int(lo->f, wgmma, TIR_ATTR_b_trans, 1);
    memcpy(acc, wgmma->results, own * sizeof(*acc));
}

static bool is_zero(const struct tir_value *v)
{
    return v->kind == TIR_VALUE_CONST && v->constant.i == 0; // the bits of either kind
}

static void build_product(struct gemm *g)
{
    struct lower *lo = g->lo;
    struct tir_value *acc = g->inst->operands[TIR_DOT_ACC], *result = g->inst->results[0];
    uint32_t count = tir_lower_register_count(result->type);
    struct tir_value **d = tir_lower_new_registers(lo, count);
    for (uint32_t i = 0; i < count; i++)
        d[i] = tir_lower_register(lo, acc, i);
    for (uint32_t r = 0; r < g->rows; r += M)
        for (uint32_t c = 0; c < g->columns; c += g->n)
            for (uint32_t step = 0, steps; step < g->steps; step += steps) {
                int64_t by[2];
                steps = equal_steps(g, r, c, step, &by[0], &by[1]);
                build_wgmma(g, r, c, step, steps, by, step == 0 && is_zero(acc),
                            d + (r / M * g->columns + c) / 2 / g->together);
            }
    tir_lower_set_registers(lo, result, d);
}

// What registers are read until this product is done, its own and those of products before it that
// it adds to.
static void note_in_flight(struct gemm *g)
{
    struct lower *lo = g->lo;
    struct tir_value *acc = g->inst->operands[TIR_DOT_ACC];
    const struct lower_operands *before = tir_map_get(&lo->in_flight, tir_map_key(acc));
    uint32_t own = g->a_in_registers ? 4 * g->rows / M * g->steps : 0;
    uint32_t earlier = before ? before->count : 0;
    if (!own && !earlier)
        return;
    struct lower_operands *all = arena_new(lo->cx->scratch, struct lower_operands);
    all->at = tir_lower_new_registers(lo, own + earlier);
    all->count = own + earlier;
    if (own)
        memcpy(all->at, g->packed, own * sizeof(*all->at));
    if (earlier)
        memcpy(all->at + own, before->at, earlier * sizeof(*all->at));
    tir_map_set(&lo->in_flight, tir_map_key(g->inst->results[0]), all);
}

void tir_lower_gemm(struct lower *lo, struct tir_inst *inst)
{
    struct gemm g = {.lo = lo, .inst = inst};
    if (!(lo->cx->target->features & TIR_HAS_WGMMA)) {
        refuse(&g, "the target has none");
        tir_lower_note_target(lo, TIR_HAS_WGMMA);
        return;
    }
    if (!set_kind(&g) || !set_groups(&g) || !open_operand(&g, &g.b, TIR_DOT_B, g.columns) ||
        !set_columns(&g) || !open_a(&g))
        return;
    move_operand(&g, &g.b, 4 * g.groups_m, g.groups_n, g.columns);
    if (!build_descriptor(&g, &g.b))
        return;
    if (!g.a_in_registers) {
        move_operand(&g, &g.a, 4, g.groups_m, g.rows);
        if (!build_descriptor(&g, &g.a))
            return;
    }
    build_product(&g);
    note_in_flight(&g);
    tir_receipt_add(
        lo->cx, TIR_TOPIC_DOT, inst->span, "dot: wgmma m64n%uk%u.%s%s%s, %u of a warpgroup%s", g.n,
        g.depth, tir_words[g.kind].name, g.b_kind ? " by " : "",
        g.b_kind ? tir_words[g.b_kind].name : "", g.rows / M * g.steps * (g.columns / g.n),
        g.a_in_registers ? ", A from registers" : "");
}

void tir_lower_check_yield(struct lower *lo, const struct tir_inst *yield)
{
    for (uint32_t i = 0; i < yield->operand_count && !lo->failed; i++)
        if (tir_map_get(&lo->in_flight, tir_map_key(yield->operands[i])))
            tir_lower_unsupported(lo, yield,
                                  "a product with A in registers that its block does not wait for");
}

// Sums have 32 bits, or two of them have. What is narrower is an operand, of which the product
// reads a packed copy: it may be used at any time.
static bool is_awaited(const struct tir_value *v)
{
    return tir_elems[v->type->elem].bits == 32;
}

void tir_lower_await(struct lower *lo, struct tir_inst *inst)
{
    VEC(struct tir_value *) operands = {0};
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        struct tir_value *v = inst->operands[i];
        for (uint32_t r = 0; is_awaited(v) && r < tir_lower_register_count(v->type); r++)
            vec_push(lo->cx->scratch, &operands, tir_lower_register(lo, v, r));
    }
    for (uint32_t i = 0; i < inst->operand_count; i++) {
        const struct lower_operands *a =
            tir_map_get(&lo->in_flight, tir_map_key(inst->operands[i]));
        for (uint32_t r = 0; a && r < a->count; r++)
            vec_push(lo->cx->scratch, &operands, a->at[r]);
    }
    struct tir_value **given = tie_registers(lo, TIR_OP_AWAIT, operands.at, operands.len,
                                             tir_attr_int(inst, TIR_ATTR_groups, 0));
    for (uint32_t i = 0; i < inst->result_count; i++) {
        struct tir_value *v = inst->results[i], *from = inst->operands[i];
        uint32_t count = tir_lower_register_count(v->type);
        struct tir_value **registers = given;
        if (is_awaited(from)) {
            given += count;
        } else {
            registers = tir_lower_new_registers(lo, count);
            for (uint32_t r = 0; r < count; r++)
                registers[r] = tir_lower_register(lo, from, r);
        }
        tir_lower_set_registers(lo, v, registers);
    }
}
