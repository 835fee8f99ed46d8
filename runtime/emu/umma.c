// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tcgen05.mma and tcgen05.commit: operations of the tensor core of a CTA, or of a pair of CTAs.
//
// They are done in the order of issue. Where row r and column c of D are, in lanes and columns:
//   one CTA, M 128       lane r, column c
//   one CTA, M 64        lane 32 (r / 16) + r % 16 (+ 16 where the address says so), column c
//   a pair, M 256        rows of 128 in each CTA: lane r % 128, column c
//   a pair, M 128        rows of 64 in each CTA: lane r % 64 + 64 (c / (N / 2)), column c % (N / 2)
// A in tensor memory has the same lanes, its elements packed along the columns. Of a pair, each CTA
// has its rows of A and half of the columns of B. D of 16 bits takes the low half of each word.

#include "emu/umma.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emu/fp.h"
#include "emu/mbarrier.h"
#include "emu/op.h"
#include "emu/run.h"
#include "emu/tmem.h"

enum { ROWS = 16, MOST_N = 256, MOST_K = 64 };

// --- the instruction descriptor ---

static enum emu_type float8(uint32_t code)
{
    static const enum emu_type types[] = {EMU_e4m3, EMU_e5m2, EMU_none, EMU_e2m3,
                                          EMU_e3m2, EMU_e2m1, EMU_none, EMU_none};
    return types[code];
}

static enum emu_type type_of(uint32_t code, enum emu_umma_kind kind)
{
    switch (kind) {
    case EMU_UMMA_F16:
        return code == 0 ? EMU_f16 : code == 1 ? EMU_bf16 : EMU_none;
    case EMU_UMMA_TF32:
        return code == 2 ? EMU_tf32 : EMU_none;
    case EMU_UMMA_F8F6F4:
        return float8(code);
    default:
        return code == 0 ? EMU_u8 : code == 1 ? EMU_s8 : EMU_none;
    }
}

static enum emu_type result_of(uint32_t code, enum emu_umma_kind kind)
{
    if (kind == EMU_UMMA_I8)
        return code == 2 ? EMU_s32 : EMU_none;
    return code == 1 ? EMU_f32 : code == 0 && kind != EMU_UMMA_TF32 ? EMU_f16 : EMU_none;
}

bool emu_umma_shape_of(uint32_t x, enum emu_umma_kind kind, bool pair, struct emu_umma_shape *s)
{
    const enum emu_type a = type_of(x >> 7 & 7, kind), b = type_of(x >> 10 & 7, kind);
    const uint8_t bits = kind == EMU_UMMA_F16 ? 16 : kind == EMU_UMMA_TF32 ? 32 : 8;
    *s = (struct emu_umma_shape){.m = (x >> 24 & 31) << 4,
                                 .n = (x >> 17 & 63) << 3,
                                 .k = 256u / bits,
                                 .a = {(uint8_t)a, bits, false},
                                 .b = {(uint8_t)b, bits, false},
                                 .d = result_of(x >> 4 & 3, kind),
                                 .negate_a = x >> 13 & 1,
                                 .negate_b = x >> 14 & 1,
                                 .trans_a = x >> 15 & 1,
                                 .trans_b = x >> 16 & 1,
                                 .saturate = x >> 3 & 1};
    const bool m_ok = pair ? s->m == 128 || s->m == 256 : s->m == 64 || s->m == 128;
    const uint32_t step = kind == EMU_UMMA_I8 && s->n > 32 ? 16 : 8;
    const bool n_ok = s->n && s->n <= MOST_N && s->n % (pair ? 2 * step : step) == 0;
    return a && b && s->d && m_ok && n_ok && !(x >> 2 & 1) && !(x & 1 << 6);
}

// --- operations ---

// Every operation of the tensor core: they all stand in one queue.
struct work {
    struct emu_op op;
    void (*done)(struct work *work);
};

struct product {
    struct work work;
    struct emu_umma_shape s;
    struct emu_cta *ctas[2]; // the pair, or one
    uint32_t count;
    uint32_t d, a_address;
    uint64_t a, b;
    uint32_t disabled[8]; // lanes that keep what they have, 32 a word
    uint32_t scale;       // D is divided by two to this power
    bool input_d;
};

struct numbers {
    double right[MOST_K * MOST_N], left[ROWS * MOST_K], sum[ROWS * MOST_N];
};

// Where an element of D is: the CTA, its lane and its column. Rows count within the CTA.
static void place(const struct product *p, uint32_t row, uint32_t column, uint32_t *lane,
                  uint32_t *at)
{
    *at = (p->d & 0xffff) + column;
    if (p->count == 1) {
        *lane = p->s.m == 128 ? row : row / 16 * 32 + row % 16 + (p->d >> 16);
        return;
    }
    *lane = row;
    if (p->s.m == 128) {
        *lane = row + column / (p->s.n / 2) * 64;
        *at = (p->d & 0xffff) + column % (p->s.n / 2);
    }
}

static struct emu_smem_matrix matrix_of(uint64_t descriptor, bool mn_major)
{
    static const uint32_t swizzles[] = {0, 128, 128, 0, 64, 0, 32, 0};
    struct emu_smem_matrix m = emu_smem_matrix_of(descriptor);
    m.swizzle = swizzles[descriptor >> 61];
    m.wide = descriptor >> 61 == 1;
    m.mn_major = mn_major;
    return m;
}

static _Noreturn void fault(struct product *p, enum emu_matrix_fault kind, uint32_t address)
{
    switch (kind) {
    case EMU_MATRIX_OUTSIDE:
        emu_op_fault(&p->work.op, "out-of-bounds shared access of tcgen05.mma at 0x%x", address);
    case EMU_MATRIX_IN_FLIGHT:
        emu_op_fault(&p->work.op, "read while a copy is in flight: tcgen05.mma at shared 0x%x",
                     address);
    default:
        emu_op_fault(&p->work.op, "uninitialised shared memory is read by tcgen05.mma at 0x%x",
                     address);
    }
}

static struct emu_smem memory_of(const struct emu_cta *cta)
{
    const struct emu_grid *l = cta->launch;
    return (struct emu_smem){.bytes = cta->shared,
                             .shadow = l->emu->options.check ? cta->shared_shadow : NULL,
                             .size = l->shared_size};
}

// B by rows of k; each CTA has its part of the columns.
static void read_b(struct product *p, double *right)
{
    const uint32_t columns = p->s.n / p->count;
    const struct emu_smem_matrix m = matrix_of(p->b, p->s.trans_b);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t address = 0;
        const struct emu_smem memory = memory_of(p->ctas[i]);
        const enum emu_matrix_fault kind = emu_smem_matrix_read(
            &memory, &m, p->s.b, 0, columns, p->s.k, right + i * columns, 1, p->s.n, &address);
        if (kind)
            fault(p, kind, address);
    }
    for (uint32_t i = 0; i < p->s.k * p->s.n && p->s.negate_b; i++)
        right[i] = -right[i];
}

// Sixteen rows of the CTA's part of A.
static void read_a(struct product *p, struct emu_cta *cta, uint32_t row, double *left)
{
    const struct emu_smem memory = memory_of(cta);
    const struct emu_smem_matrix m = matrix_of(p->a, p->s.trans_a);
    uint32_t address = 0;
    if (!(p->work.op.in->op & EMU_UMMA_A_IN_TMEM)) {
        const enum emu_matrix_fault kind =
            emu_smem_matrix_read(&memory, &m, p->s.a, row, ROWS, p->s.k, left, p->s.k, 1, &address);
        if (kind)
            fault(p, kind, address);
    } else {
        const uint32_t columns = p->s.k * p->s.a.bits / 32;
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t lane, column;
            place(p, row + i, 0, &lane, &column);
            for (uint32_t c = 0; c < columns; c++)
                if (cta->tmem->shadow[lane][(p->a_address & 0xffff) + c] == EMU_UNSET)
                    emu_op_fault(&p->work.op,
                                 "uninitialised tensor memory is read by tcgen05.mma: lane "
                                 "%u column %u",
                                 lane, (p->a_address & 0xffff) + c);
            emu_elements_decode(p->s.a, &cta->tmem->words[lane][p->a_address & 0xffff], p->s.k,
                                left + i * p->s.k);
        }
    }
    for (uint32_t i = 0; i < ROWS * p->s.k && p->s.negate_a; i++)
        left[i] = -left[i];
}

static void write_d(struct product *p, uint32_t cta, uint32_t first, const double *sum)
{
    struct emu_tmem *t = p->ctas[cta]->tmem;
    const double factor = ldexp(1, -(int)p->scale);
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t n = 0; n < p->s.n; n++) {
            uint32_t lane, column;
            place(p, first + i, n, &lane, &column);
            if (p->disabled[cta * 4 + lane / 32] >> lane % 32 & 1)
                continue;
            uint32_t *to = &t->words[lane][column];
            const double c = p->input_d ? emu_matrix_c(*to, p->s.d) * factor : 0;
            *to = (uint32_t)emu_matrix_finish(sum[i * p->s.n + n], c, p->s.d, p->s.saturate);
        }
}

static void mark_d(struct product *p, uint8_t status)
{
    for (uint32_t cta = 0; cta < p->count; cta++)
        for (uint32_t row = 0; row < p->s.m / p->count; row++)
            for (uint32_t n = 0; n < p->s.n; n++) {
                uint32_t lane, column;
                place(p, row, n, &lane, &column);
                if (!(p->disabled[cta * 4 + lane / 32] >> lane % 32 & 1))
                    p->ctas[cta]->tmem->shadow[lane][column] = status;
            }
}

static void multiply(struct work *work);

// Another product on these columns is in flight.
static bool is_followed(const struct product *p)
{
    for (const struct emu_op *op = p->work.op.next; op; op = op->next) {
        const struct product *other = (const struct product *)op;
        if (op->engine == p->work.op.engine && op->queue == p->work.op.queue &&
            other->work.done == multiply && other->d == p->d)
            return true;
    }
    return false;
}

static void multiply(struct work *work)
{
    struct product *p = (struct product *)work;
    struct numbers x;
    read_b(p, x.right);
    for (uint32_t cta = 0; cta < p->count; cta++)
        for (uint32_t row = 0; row < p->s.m / p->count; row += ROWS) {
            read_a(p, p->ctas[cta], row, x.left);
            emu_matrix_multiply(ROWS, p->s.n, p->s.k, x.left, NULL, x.right, x.sum);
            write_d(p, cta, row, x.sum);
        }
    if (!is_followed(p))
        mark_d(p, EMU_SET);
}

static void finish(struct emu_op *op)
{
    ((struct work *)op)->done((struct work *)op);
}

static void describe(const struct emu_op *op, char *text, size_t size)
{
    (void)op;
    snprintf(text, size, "a later tcgen05.commit");
}

static uint64_t cycles(const struct emu_op *op)
{
    const struct work *work = (const struct work *)op;
    return work->done == multiply ? ((const struct product *)op)->s.n / 2 : 1;
}

static const struct emu_engine engine = {.name = "tcgen05",
                                         .unit = EMU_UNIT_MATRIX,
                                         .latency = 20,
                                         .cycles = cycles,
                                         .in_order = true,
                                         .finish = finish,
                                         .describe = describe};

static void *work_new(struct emu_warp *w, const struct emu_insn *in, uint32_t lane, size_t size,
                      void (*done)(struct work *))
{
    struct work *work = emu_op_new(w, &engine, lane, size);
    const uint32_t rank = in->op & EMU_UMMA_PAIR ? w->cta->rank & ~1u : w->cta->rank;
    if (in->op & EMU_UMMA_PAIR && rank + 1 >= w->launch->cluster_size)
        emu_fault(w, lane, "cta_group::2 in a CTA without a peer");
    work->op.queue = &w->cta->cluster->ctas[rank];
    work->done = done;
    return work;
}

// --- products ---

static uint64_t value_at(const struct emu_warp *w, const struct emu_arg *arg, uint32_t lane)
{
    const void *v = emu_at_ref(w, arg->ref);
    return arg->width == 8 ? ((const uint64_t *)v)[lane]
                           : ((const uint32_t *)v)[lane] + arg->offset;
}

// All columns of D and A must be allocated, and D written where it is read.
static void check(struct emu_warp *w, uint32_t lane, const struct product *p)
{
    const uint32_t columns = p->count == 2 && p->s.m == 128 ? p->s.n / 2 : p->s.n;
    const uint32_t base = p->d >> 16;
    if (base && !(base == 16 && p->count == 1 && p->s.m == 64))
        emu_fault(w, lane, "misaligned tensor memory address 0x%x of D", p->d);
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t c = 0; c < columns; c++)
            emu_tmem_check(w, lane, p->ctas[i], (p->d & 0xffff) + c);
        for (uint32_t c = 0;
             c < p->s.k * p->s.a.bits / 32 && p->work.op.in->op & EMU_UMMA_A_IN_TMEM; c++)
            emu_tmem_check(w, lane, p->ctas[i], (p->a_address & 0xffff) + c);
        for (uint32_t row = 0; row < p->s.m / p->count && p->input_d; row++)
            for (uint32_t c = 0; c < p->s.n && w->launch->emu->options.check; c++) {
                uint32_t at, column;
                place(p, row, c, &at, &column);
                if (p->ctas[i]->tmem->shadow[at][column] == EMU_UNSET)
                    emu_fault(w, lane,
                              "uninitialised tensor memory is read by tcgen05.mma: lane %u column "
                              "%u of D",
                              at, column);
            }
    }
}

// list: D, A, B, the instruction descriptor, disabled lanes; src[2]: whether D is read; offset:
// scale of D; count: of the list
EMU_RUN(umma)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t enabled = *(const uint32_t *)emu_at_ref(w, in->src[2]);
    for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        struct product *p = work_new(w, in, lane, sizeof *p, multiply);
        const bool pair = in->op & EMU_UMMA_PAIR;
        const uint32_t descriptor = (uint32_t)value_at(w, &args[3], lane);
        struct emu_cta *first = &w->cta->cluster->ctas[pair ? w->cta->rank & ~1u : w->cta->rank];
        if (!emu_umma_shape_of(descriptor, in->op & EMU_UMMA_KIND, pair, &p->s))
            emu_fault(w, lane, "tcgen05.mma: the kind has nothing that descriptor 0x%x says",
                      descriptor);
        p->count = pair ? 2 : 1;
        for (uint32_t i = 0; i < p->count; i++)
            p->ctas[i] = first + i;
        p->d = (uint32_t)value_at(w, &args[0], lane);
        p->a = value_at(w, &args[1], lane);
        p->a_address = (uint32_t)p->a;
        p->b = value_at(w, &args[2], lane);
        p->input_d = (enabled >> lane & 1) != (in->op & EMU_UMMA_NOT_INPUT_D ? 1 : 0);
        p->scale = (uint32_t)in->offset;
        p->s.a.front = !(in->op & EMU_UMMA_A_IN_TMEM);
        p->s.b.front = true;
        for (uint32_t i = 4; i < in->count; i++)
            p->disabled[i - 4] = (uint32_t)value_at(w, &args[i], lane);
        check(w, lane, p);
        mark_d(p, EMU_IN_FLIGHT);
        emu_op_issued(&p->work.op);
    }
}

// --- commits ---

struct commit {
    struct work work;
    struct emu_mbarrier *barriers[EMU_MAX_CLUSTER];
    uint32_t count;
};

static void arrive(struct work *work)
{
    struct commit *c = (struct commit *)work;
    const struct emu_by by = emu_by_op(&work->op);
    for (uint32_t i = 0; i < c->count; i++) {
        emu_op_signal(&work->op, &c->barriers[i]->view);
        emu_mbarrier_arrive(c->barriers[i], &by, 1);
    }
}

// src[0] + offset: the mbarrier; src[1]: the mask of CTAs, for multicast
EMU_RUN(umma_commit)
{
    uint64_t address[EMU_WARP];
    const uint16_t *ctas = emu_at_ref(w, in->src[1]);
    emu_addresses(w, in, address);
    for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        struct commit *c = work_new(w, in, lane, sizeof *c, arrive);
        struct emu_mbarrier *b = emu_mbarrier_at(w, lane, (enum emu_space)in->space, address[lane]);
        if (!(in->op & EMU_UMMA_MULTICAST))
            c->barriers[c->count++] = b;
        for (uint32_t i = 0; i < 16 && in->op & EMU_UMMA_MULTICAST; i++) {
            if (!(ctas[lane] >> i & 1))
                continue;
            if (i >= w->launch->cluster_size)
                emu_fault(w, lane, "multicast to CTA %u of a cluster of %u", i,
                          w->launch->cluster_size);
            c->barriers[c->count++] = emu_mbarrier_at(
                w, lane, EMU_SHARED_CLUSTER, b->offset + EMU_SHARED_START + emu_rank_bits(i));
        }
        emu_op_track(&c->work.op);
        emu_op_issued(&c->work.op);
    }
}
