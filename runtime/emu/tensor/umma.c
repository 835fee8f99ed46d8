// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tcgen05.mma and tcgen05.commit: operations of the tensor core of a CTA, or of a pair of CTAs.
//
// They are done in the order of issue, of which PTX promises only a part; a program that relies on
// the rest has a race (emu_umma_order). Where row r and column c of D are, in lanes and columns:
//   one CTA, M 128       lane r, column c
//   one CTA, M 64        lane 32 (r / 16) + r % 16 (+ 16 where the address says so), column c
//   a pair, M 256        rows of 128 in each CTA: lane r % 128, column c
//   a pair, M 128        rows of 64 in each CTA: lane r % 64 + 64 (c / (N / 2)), column c % (N / 2)
//   .ws, M 64            lane r + 64 (c / (N / 2)), column c % (N / 2)
//   .ws, M 32            lane r + 32 (c / (N / 4)), column c % (N / 4)
// A in tensor memory has the same lanes, its elements packed along the columns. Of a pair, each CTA
// has its rows of A and half of the columns of B. D of 16 bits takes the low half of each word.
//
// The scales of row r of A, or of column r of B, are bytes of the word in lane r % 32 and column
// r / 32, the same in each quarter of the lanes. Of a pair, each CTA has those of its rows and
// those of all columns.

#include "emu/tensor/umma_work.h"

#include <math.h>
#include <string.h>

#include "emu/async/mbarrier.h"
#include "emu/lane/fp.h"

enum { ROWS = 16, MOST_K = 64, MOST_UNIT = 16 };

// --- operations ---

struct product {
    struct emu_umma_work work;
    struct emu_umma_shape s;
    struct emu_cta *ctas[2]; // the pair, or one
    uint32_t count;
    uint32_t d, a_address;
    uint32_t scales[2]; // where those of A and B are
    uint64_t a, b;
    uint64_t mask;        // which columns of B are zero, and at which it begins (.ws)
    uint32_t disabled[8]; // lanes that keep what they have, 32 a word
    uint32_t scale;       // D is divided by two to this power
    bool input_d;
};

struct numbers {
    double right[MOST_K * (EMU_UMMA_MOST_N + MOST_UNIT)], left[ROWS * MOST_K],
        sum[ROWS * EMU_UMMA_MOST_N];
};

// In how many parts the columns of D lie, one under the other.
static uint32_t parts_of(const struct product *p)
{
    if (p->work.op.in->op & EMU_UMMA_WS)
        return 128 / p->s.m;
    return p->count == 2 && p->s.m == 128 ? 2 : 1;
}

// Where an element of D is: the CTA, its lane and its column. Rows count within the CTA.
static void place(const struct product *p, uint32_t row, uint32_t column, uint32_t *lane,
                  uint32_t *at)
{
    const uint32_t parts = parts_of(p), columns = p->s.n / parts;
    const bool spread = p->count == 1 && p->s.m == 64 && parts == 1;
    *at = (p->d & 0xffff) + column % columns;
    *lane = spread ? row / 16 * 32 + row % 16 + (p->d >> 16)
                   : row + column / columns * (EMU_TMEM_LANES / parts);
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

// The mask of zero columns: each part of the columns repeats a span that is used and one that is
// not, from a place in the first of them on.
enum { MASK_IS_ON = 39, MASK_FIRST = 32, MASK_ZEROS = 40, MASK_USED = 48, MASK_SHIFT = 56 };

static uint32_t mask_shift(const struct product *p)
{
    return (uint32_t)(p->mask >> MASK_SHIFT) & 63;
}

static bool is_zero(const struct product *p, uint32_t column)
{
    const uint32_t columns = p->s.n / parts_of(p), part = column / columns;
    const uint32_t zeros = (uint32_t)(p->mask >> MASK_ZEROS & 255) + 1;
    const uint32_t used = (uint32_t)(p->mask >> MASK_USED & 255) + 1;
    const bool zeros_first = p->mask >> (MASK_FIRST + part) & 1;
    const uint32_t at = (column % columns + (uint32_t)(p->mask >> 8 * part & 255)) % (zeros + used);
    return p->mask >> MASK_IS_ON & 1 && (zeros_first ? at < zeros : at >= used);
}

static void check_mask(struct emu_warp *w, uint32_t lane, const struct product *p,
                       uint32_t descriptor)
{
    const uint32_t code = descriptor >> 30, most = p->s.m == 32 ? 16 : 32;
    const uint32_t allowed = code ? 4u << code : 0, shift = mask_shift(p);
    if (p->mask >> 36 & 7 || p->mask >> 62)
        emu_fault(w, lane, "tcgen05.mma: reserved bits of the mask of zero columns are set");
    if (shift > most || shift > allowed)
        emu_fault(w, lane, "tcgen05.mma: B is shifted by %u columns, and by %u at most", shift,
                  allowed < most ? allowed : most);
    for (uint32_t part = 0; part < parts_of(p) && p->mask >> MASK_IS_ON & 1; part++) {
        const uint32_t first = p->mask >> (MASK_FIRST + part) & 1 ? MASK_ZEROS : MASK_USED;
        if ((p->mask >> 8 * part & 255) > (p->mask >> first & 255))
            emu_fault(w, lane, "tcgen05.mma: mask %u of zero columns begins after its first span",
                      part);
    }
}

// The same of B that has a mask: columns that are zero are not read where they lie apart.
static void read_masked_b(struct product *p, double *right)
{
    const struct emu_smem_matrix m = emu_umma_matrix(p->b, p->s.trans_b);
    const struct emu_smem memory = emu_umma_memory(&p->work, p->ctas[0]);
    const uint32_t unit = p->s.trans_b ? 128u / p->s.b.bits : 1, shift = mask_shift(p);
    const uint32_t before = shift % unit, wide = (before + p->s.n + unit - 1) / unit * unit;
    const uint32_t step = p->s.trans_b ? wide : 1;
    enum emu_matrix_fault kind = EMU_MATRIX_OK;
    uint32_t address = 0;
    for (uint32_t n = 0; n < wide && !kind; n += step)
        if (p->s.trans_b || !is_zero(p, n))
            kind = emu_smem_matrix_read(&memory, &m, p->s.b, shift - before + n, step, p->s.k,
                                        right + n, 1, wide, &address);
    if (kind)
        fault(p, kind, address);
    for (uint32_t k = 0; k < p->s.k; k++)
        for (uint32_t n = 0; n < p->s.n; n++)
            right[k * p->s.n + n] = is_zero(p, n) ? 0 : right[k * wide + before + n];
}

// B by rows of k; each CTA has its part of the columns.
static void read_b(struct product *p, double *right)
{
    const uint32_t columns = p->s.n / p->count;
    const struct emu_smem_matrix m = emu_umma_matrix(p->b, p->s.trans_b);
    if (p->mask)
        read_masked_b(p, right);
    for (uint32_t i = 0; i < p->count && !p->mask; i++) {
        uint32_t address = 0;
        const struct emu_smem memory = emu_umma_memory(&p->work, p->ctas[i]);
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
    const struct emu_smem memory = emu_umma_memory(&p->work, cta);
    const struct emu_smem_matrix m = emu_umma_matrix(p->a, p->s.trans_a);
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
            emu_umma_access(&p->work, cta, lane, p->a_address & 0xffff, columns, EMU_LOAD);
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

// The scales of row or column i as numbers.
static void read_scales(struct product *p, const struct emu_cta *cta, uint32_t side, uint32_t i,
                        double *out)
{
    const uint32_t column = (p->scales[side] & 0xffff) + i / 32, count = p->work.op.in->width;
    const uint32_t byte = count == 4 ? 0 : side ? p->s.scale_b : p->s.scale_a;
    const uint32_t mask = count == 4 ? UINT32_MAX : (1u << 8 * count) - 1;
    const uint32_t first = cta->tmem->words[i % 32][column] >> 8 * byte & mask;
    for (uint32_t lane = i % 32; lane < EMU_TMEM_LANES; lane += 32) {
        emu_umma_access(&p->work, cta, lane, column, 1, EMU_LOAD);
        if (cta->tmem->shadow[lane][column] == EMU_UNSET)
            emu_op_fault(&p->work.op,
                         "uninitialised tensor memory is read by tcgen05.mma: lane %u column %u of "
                         "scales",
                         lane, column);
        if ((cta->tmem->words[lane][column] >> 8 * byte & mask) != first)
            emu_op_fault(&p->work.op,
                         "tensor memory: the scales in column %u differ between quarters of lanes",
                         column);
    }
    emu_elements_decode(emu_element_packed(p->s.scale), &first, count, out); // little endian
}

static void scale_a(struct product *p, const struct emu_cta *cta, uint32_t row, double *left)
{
    double factor[4];
    const uint32_t length = p->s.k / p->work.op.in->width;
    for (uint32_t i = 0; i < ROWS; i++) {
        read_scales(p, cta, 0, row + i, factor);
        for (uint32_t k = 0; k < p->s.k; k++)
            left[i * p->s.k + k] *= factor[k / length];
    }
}

static void scale_b(struct product *p, const struct emu_cta *cta, double *right)
{
    double factor[4];
    const uint32_t length = p->s.k / p->work.op.in->width;
    for (uint32_t n = 0; n < p->s.n; n++) {
        read_scales(p, cta, 1, n, factor);
        for (uint32_t k = 0; k < p->s.k; k++)
            right[k * p->s.n + n] *= factor[k / length];
    }
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

// Sixteen rows of D, each in as many runs as there are parts.
static void access_d(struct product *p, uint32_t cta, uint32_t first)
{
    const uint32_t columns = p->s.n / parts_of(p);
    for (uint32_t i = 0; i < ROWS && p->work.op.agent; i++)
        for (uint32_t n = 0; n < p->s.n; n += columns) {
            uint32_t lane, column;
            place(p, first + i, n, &lane, &column);
            if (!(p->disabled[cta * 4 + lane / 32] >> lane % 32 & 1))
                emu_umma_access(&p->work, p->ctas[cta], lane, column, columns, EMU_STORE);
        }
}

// Names the accumulator and the shape of the products that keep their order.
static uint32_t accumulator_of(const struct product *p)
{
    const uint32_t ways = (p->work.op.in->op & EMU_UMMA_WS ? 1u : 0) | (p->count - 1) << 1;
    return 1 | (p->d & 0x1ff) << 1 | (p->d >> 16 ? 1u : 0) << 10 | p->s.m / 32 << 11 |
           p->s.n / 8 << 15 | p->s.k / 8 << 21 | ways << 26;
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

static void multiply(struct emu_umma_work *work);

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

static void multiply(struct emu_umma_work *work)
{
    struct product *p = (struct product *)work;
    struct numbers x;
    for (uint32_t cta = 0; cta < p->count; cta++) {
        if (cta == 0 || p->s.scale)
            read_b(p, x.right);
        if (p->s.scale)
            scale_b(p, p->ctas[cta], x.right);
        for (uint32_t row = 0; row < p->s.m / p->count; row += ROWS) {
            read_a(p, p->ctas[cta], row, x.left);
            if (p->s.scale)
                scale_a(p, p->ctas[cta], row, x.left);
            emu_matrix_multiply(ROWS, p->s.n, p->s.k, x.left, NULL, x.right, x.sum);
            access_d(p, cta, row);
            write_d(p, cta, row, x.sum);
        }
    }
    if (!is_followed(p))
        mark_d(p, EMU_SET);
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
    const uint32_t columns = p->s.n / parts_of(p), base = p->d >> 16;
    if (base && !(base == 16 && p->count == 1 && p->s.m == 64 && columns == p->s.n))
        emu_fault(w, lane, "misaligned tensor memory address 0x%x of D", p->d);
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t c = 0; c < columns; c++)
            emu_tmem_check(w, lane, p->ctas[i], (p->d & 0xffff) + c);
        for (uint32_t c = 0;
             c < p->s.k * p->s.a.bits / 32 && p->work.op.in->op & EMU_UMMA_A_IN_TMEM; c++)
            emu_tmem_check(w, lane, p->ctas[i], (p->a_address & 0xffff) + c);
        for (uint32_t side = 0; side < 2 && p->s.scale; side++)
            for (uint32_t c = 0; c < (side ? p->s.n : p->s.m / p->count); c += 32)
                emu_tmem_check(w, lane, p->ctas[i], (p->scales[side] & 0xffff) + c / 32);
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

// list: D, A, B, the instruction descriptor, disabled lanes, where scales are, or the mask; src[2]:
// whether D is read; offset: scale of D; width: scales of a row; count: of the list
EMU_RUN(umma)
{
    const struct emu_arg *args = &w->launch->module->args.at[in->list];
    const uint32_t enabled = *(const uint32_t *)emu_at_ref(w, in->src[2]);
    for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        struct product *p = emu_umma_work_new(w, in, lane, sizeof *p, multiply);
        const bool pair = in->op & EMU_UMMA_PAIR;
        const uint32_t descriptor = (uint32_t)value_at(w, &args[3], lane);
        struct emu_cta *first = &w->cta->cluster->ctas[pair ? w->cta->rank & ~1u : w->cta->rank];
        if (!emu_umma_shape_of(descriptor, in->op & EMU_UMMA_KIND, in->op, &p->s))
            emu_fault(w, lane, "tcgen05.mma: the kind has nothing that descriptor 0x%x says",
                      descriptor);
        p->work.cycles = p->s.n / 2;
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
        for (uint32_t i = 0; i < 2 && p->s.scale; i++)
            p->scales[i] = (uint32_t)value_at(w, &args[4 + i], lane);
        if (p->s.scale && (p->s.scale_a % in->width || p->s.scale_b % in->width))
            emu_fault(w, lane, "tcgen05.mma: %u scales cannot start at byte %u or %u", in->width,
                      p->s.scale_a, p->s.scale_b);
        p->mask = in->op & EMU_UMMA_WS && in->count > 4 ? value_at(w, &args[4], lane) : 0;
        check_mask(w, lane, p, p->mask ? descriptor : 0);
        for (uint32_t i = 4; i < in->count && !p->s.scale && !(in->op & EMU_UMMA_WS); i++)
            p->disabled[i - 4] = (uint32_t)value_at(w, &args[i], lane);
        emu_umma_check_matrix(w, lane, p->b);
        if (!(in->op & EMU_UMMA_A_IN_TMEM))
            emu_umma_check_matrix(w, lane, p->a);
        check(w, lane, p);
        emu_umma_order(&p->work, accumulator_of(p));
        mark_d(p, EMU_IN_FLIGHT);
        emu_op_issued(&p->work.op);
    }
}

// --- commits ---

struct commit {
    struct emu_umma_work work;
    struct emu_mbarrier *barriers[EMU_MAX_CLUSTER];
    uint32_t count;
};

static void arrive(struct emu_umma_work *work)
{
    struct commit *c = (struct commit *)work;
    const struct emu_by by = emu_by_op(&work->op);
    if (work->op.agent)
        emu_order_fence_tensor(work->op.agent, false);
    for (uint32_t i = 0; i < c->count; i++) {
        emu_op_release(&work->op, EMU_AGENT_UMMA, &c->barriers[i]->view);
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
        if (w->umma_lanes && !(w->umma_lanes >> lane & 1))
            emu_fault(w, lane, "tensor core: this lane commits, and lane %u has started operations",
                      emu_first_lane(w->umma_lanes));
        w->umma_lanes = 0;
        struct commit *c = emu_umma_work_new(w, in, lane, sizeof *c, arrive);
        struct emu_mbarrier *b = emu_mbarrier_at(w, lane, (enum emu_space)in->space, address[lane]);
        if (!(in->op & EMU_UMMA_MULTICAST))
            c->barriers[c->count++] = b;
        for (uint32_t i = 0; i < 16 && in->op & EMU_UMMA_MULTICAST; i++) {
            if (!(ctas[lane] >> i & 1))
                continue;
            if (i >= w->cta->cluster->size)
                emu_fault(w, lane, "multicast to CTA %u of a cluster of %u", i,
                          w->cta->cluster->size);
            c->barriers[c->count++] = emu_mbarrier_at(
                w, lane, EMU_SHARED_CLUSTER, b->offset + EMU_SHARED_START + emu_rank_bits(i));
        }
        c->work.op.barriers = c->barriers;
        c->work.op.barrier_count = c->count;
        w->umma_group++;
        emu_op_issued(&c->work.op);
    }
}
