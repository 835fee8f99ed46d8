// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine's rules for tensor copies, products on warpgroups, mbarriers, named barriers and
// clusters.
//
// Operations that not every target has are in a table. What depends on a word or an operand (the
// engine of a group, where a fence reaches, another CTA's mbarrier) is asked for by name.

#include "ir/effect.h"
#include "target/nvptx/emit.h"
#include "target/nvptx/nvptx.h"

#define MOST_ARRIVALS ((1 << 20) - 1) // and bytes, of a phase

struct query {
    const struct tir_func *f;
    const struct tir_target *target;
    const struct tir_inst *inst;
    uint32_t *lacking;
};

// The features that an operation needs.

struct need {
    enum tir_op op;
    uint32_t features; // one of them
    const char *lacks;
};
static const struct need needs[] = {
    {TIR_OP_WGMMA, TIR_HAS_WGMMA, "the target has no products on warpgroups"},
    {TIR_OP_AWAIT, TIR_HAS_WGMMA, "the target has no products on warpgroups"},
    {TIR_OP_WGMMA_FENCE, TIR_HAS_WGMMA, "the target has no products on warpgroups"},
    {TIR_OP_TCGEN05_MMA, TIR_HAS_TCGEN05, "the target has no tensor memory"},
    {TIR_OP_TCGEN05_CP, TIR_HAS_TCGEN05, "the target has no tensor memory"},
    {TIR_OP_TMEM_LD, TIR_HAS_TCGEN05, "the target has no tensor memory"},
    {TIR_OP_TMEM_ST, TIR_HAS_TCGEN05, "the target has no tensor memory"},
    {TIR_OP_TMEM_ALLOC, TIR_HAS_TCGEN05, "the target has no tensor memory"},
    {TIR_OP_TMEM_FREE, TIR_HAS_TCGEN05, "the target has no tensor memory"},
    {TIR_OP_SETMAXNREG, TIR_HAS_WGMMA | TIR_HAS_TCGEN05, "the target cannot move registers"},
    {TIR_OP_TMA_LOAD, TIR_HAS_TMA, "the target has no tensor copies"},
    {TIR_OP_TMA_GATHER, TIR_HAS_GATHER4, "the target has no tensor copies of rows by number"},
    {TIR_OP_TMA_PIXELS, TIR_HAS_TMA, "the target has no tensor copies"},
    {TIR_OP_TMA_STORE, TIR_HAS_TMA, "the target has no tensor copies"},
    {TIR_OP_TMA_PREFETCH, TIR_HAS_TMA, "the target has no tensor copies"},
    {TIR_OP_BULK_LOAD, TIR_HAS_TMA, "the target has no bulk copies"},
    {TIR_OP_BULK_STORE, TIR_HAS_TMA, "the target has no bulk copies"},
    {TIR_OP_BULK_SEND, TIR_HAS_TMA, "the target has no bulk copies"},
    {TIR_OP_ST_ASYNC, TIR_HAS_CLUSTER, "the target has no clusters"},
    {TIR_OP_STMATRIX, TIR_HAS_STMATRIX, "the target has no such instruction"},
    {TIR_OP_REMOTE, TIR_HAS_CLUSTER, "the target has no clusters"},
    {TIR_OP_CLUSTER_ARRIVE, TIR_HAS_CLUSTER, "the target has no clusters"},
    {TIR_OP_CLUSTER_WAIT, TIR_HAS_CLUSTER, "the target has no clusters"},
    {TIR_OP_TRY_CANCEL, TIR_HAS_CLC, "the target has no clusterlaunchcontrol"},
    {TIR_OP_IS_CANCELED, TIR_HAS_CLC, "the target has no clusterlaunchcontrol"},
    {TIR_OP_FIRST_CTAID, TIR_HAS_CLC, "the target has no clusterlaunchcontrol"},
    {TIR_OP_GRIDDEPCONTROL, TIR_HAS_CLUSTER, "the target has no dependent launches"},
};

static const char *lacks(const struct query *q, uint32_t feature, const char *what)
{
    if (q->target->features & feature)
        return NULL;
    *q->lacking = feature;
    return what;
}

// Operands.

static bool has_int(const struct tir_inst *inst, enum tir_attr_key key, int64_t low, int64_t high)
{
    int64_t v = tir_attr_int(inst, key, low);
    return v >= low && v <= high;
}

static bool is_i32(const struct tir_value *v) // or absent
{
    return !v ||
           (tir_type_is_scalar(v->type) && (v->type->elem == TIR_I32 || v->type->elem == TIR_U32));
}

static bool is_offset(const struct tir_value *v) // or absent
{
    return !v || (tir_type_is_scalar(v->type) && tir_elem_is_int(v->type->elem) &&
                  tir_elems[v->type->elem].bits >= 32);
}

static bool is_at(const struct tir_value *buffer, enum tir_space space, const struct tir_value *at)
{
    return buffer->type->space == space && is_offset(at);
}

static bool are_words(struct tir_value *const *values, uint32_t count) // registers of 32 bits
{
    for (uint32_t i = 0; i < count; i++)
        if (!tir_type_is_scalar(values[i]->type) || tir_elems[values[i]->type->elem].bits != 32)
            return false;
    return true;
}

// mbarriers.

static const char *check_barrier(const struct query *q)
{
    const struct tir_inst *inst = q->inst;
    if (!is_at(inst->operands[TIR_BAR], TIR_SPACE_SHARED, inst->operands[TIR_BAR_AT]))
        return "it takes a shared buffer and an offset of 32 or 64 bits";
    if (inst->op == TIR_OP_MBARRIER_INIT)
        return has_int(inst, TIR_ATTR_arrivals, 1, MOST_ARRIVALS)
                   ? NULL
                   : "a phase has at most 1048575 arrivals";
    if (!is_i32(inst->operands[TIR_ARRIVE_CTA])) // the parity of a wait
        return "the last operand is an i32";
    if (inst->op == TIR_OP_WAIT || inst->op == TIR_OP_TEST_WAIT)
        return NULL;
    const struct tir_attr *bytes = tir_attr_find(inst, TIR_ATTR_bytes);
    int64_t count = tir_attr_int(inst, TIR_ATTR_count, 1);
    if (count < 0 || count > MOST_ARRIVALS || (!count && !bytes))
        return "a thread counts 1 to 1048575 times, or with bytes not at all";
    if (bytes && !has_int(inst, TIR_ATTR_bytes, 0, MOST_ARRIVALS))
        return "a phase has at most 1048575 bytes";
    if (inst->operands[TIR_ARRIVE_CTA])
        return lacks(q, TIR_HAS_CLUSTER, "the target has no clusters");
    return bytes ? lacks(q, TIR_HAS_TMA, "the target's mbarriers count no bytes") : NULL;
}

static const char *check_commit(const struct query *q)
{
    if (!is_at(q->inst->operands[TIR_BAR], TIR_SPACE_SHARED, q->inst->operands[TIR_BAR_AT]))
        return "it takes a shared buffer and an offset of 32 or 64 bits";
    if (!is_i32(q->inst->operands[TIR_COMMIT_CTAS]))
        return "the CTAs are an i32";
    return tir_commits_copies(q->inst)
               ? lacks(q, TIR_HAS_CP_ASYNC, "the target has no asynchronous copies")
               : lacks(q, TIR_HAS_TCGEN05, "the target has no tensor memory");
}

// Requests to take the place of a cluster.

static const char *check_cancel(const struct tir_inst *inst)
{
    const char *wrong = "it takes shared buffers and offsets of 32 or 64 bits";
    if (!is_at(inst->operands[TIR_CANCEL_RESPONSE], TIR_SPACE_SHARED,
               inst->operands[TIR_CANCEL_AT]))
        return wrong;
    return inst->op != TIR_OP_TRY_CANCEL || is_at(inst->operands[TIR_CANCEL_BAR], TIR_SPACE_SHARED,
                                                  inst->operands[TIR_CANCEL_BAR_AT])
               ? NULL
               : wrong;
}

// Groups, fences, barriers.

static const char *check_group(const struct query *q)
{
    const enum tir_done done = tir_done_of_group(q->inst);
    if (!has_int(q->inst, TIR_ATTR_groups, 0, tir_dones[done].groups))
        return done == TIR_DONE_WGMMA ? "at most 7 groups of products can be in flight"
                                      : "the number of groups is out of range";
    if (done == TIR_DONE_CP_ASYNC)
        return lacks(q, TIR_HAS_CP_ASYNC, "the target has no asynchronous copies");
    if (done == TIR_DONE_TMA)
        return lacks(q, TIR_HAS_TMA, "the target has no bulk copies");
    return lacks(q, TIR_HAS_WGMMA, "the target has no products on warpgroups");
}

static const char *check_fence(const struct query *q)
{
    switch (tir_attr_word(q->inst, TIR_ATTR_of, TIR_WORD_NONE)) {
    case TIR_WORD_of_wgmma:
        return lacks(q, TIR_HAS_WGMMA, "the target has no products on warpgroups");
    case TIR_WORD_of_before_thread_sync:
    case TIR_WORD_of_after_thread_sync:
        return lacks(q, TIR_HAS_TCGEN05, "the target has no tensor memory");
    case TIR_WORD_of_async:
    case TIR_WORD_of_async_shared:
    case TIR_WORD_of_async_global:
        return lacks(q, TIR_HAS_TMA, "the target has no async proxy");
    case TIR_WORD_of_cluster:
        return lacks(q, TIR_HAS_CLUSTER, "the target has no clusters");
    default:
        return NULL;
    }
}

static const char *check_bar(const struct tir_inst *inst)
{
    int64_t threads = tir_attr_int(inst, TIR_ATTR_threads, 32);
    return threads > 1024 ? "a barrier waits for at most 1024 threads" : NULL;
}

// Tensor copies.

static const char *check_box(const struct query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_value *tensor = tir_ref_base(inst);
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    int64_t swizzle = tir_attr_int(inst, TIR_ATTR_swizzle, 0);
    uint32_t rank = tensor->type->rank;
    if (!tir_param_of(q->f, tensor) || !rank || !box || box->list_count != rank)
        return "it takes a part of a tensor";
    for (uint32_t d = 0; d < rank; d++)
        if (!is_offset(tir_ref_indices(inst)[d]) || box->list[d] < 0 ||
            box->list[d] * tir_slice_stride(inst, d) > TIR_TMA_MAX_BOX)
            return "a part has at most 256 elements in each dimension, and scalar starts";
    int64_t inner = TIR_MAX(box->list[rank - 1], 1) * tir_elems[tensor->type->elem].bits / 8;
    if (inner % 16 || (swizzle && inner > swizzle))
        return "the innermost extent of a part has a multiple of 16 bytes, and no more than the swizzle";
    return NULL;
}

static const char *check_gathered(const struct query *q)
{
    const struct tir_inst *inst = q->inst;
    const struct tir_value *ctas = inst->operands[TIR_TMA_CTAS];
    const struct tir_attr *box = tir_attr_find(inst, TIR_ATTR_box);
    if (box->list_count != 2 || box->list[0])
        return "it takes a row of a tensor of rank 2";
    for (uint32_t i = 1; i < TIR_ROWS_AT_ONCE; i++)
        if (!is_i32(inst->operands[TIR_GATHER_ROWS + i - 1]))
            return "the rows are i32";
    return ctas && lacks(q, TIR_HAS_TCGEN05, "") ? "the target has none to several CTAs" : NULL;
}

static const char *check_pixels(const struct tir_inst *inst)
{
    if (!tir_pixels_fit(inst) || !has_int(inst, TIR_ATTR_pixels, 1, TIR_TMA_MAX_PIXELS))
        return "it takes up to 1024 pixels of a tensor of rank 3 to 5, and their corners";
    for (uint32_t i = 0; i < TIR_PIXEL_DIMS; i++)
        if (!is_i32(inst->operands[TIR_PIXELS_DZ + i]))
            return "how far pixels are from their base is an i32";
    return NULL;
}

static const char *check_tensor_copy(const struct query *q)
{
    const struct tir_inst *inst = q->inst;
    struct tir_value *const *operands = inst->operands;
    const char *wrong = check_box(q);
    if (wrong || inst->op == TIR_OP_TMA_PREFETCH)
        return wrong;
    if (!is_at(operands[TIR_TMA_BUFFER], TIR_SPACE_SHARED, operands[TIR_TMA_AT]))
        return "it takes a shared buffer and an offset of 32 or 64 bits";
    if (inst->op == TIR_OP_TMA_STORE)
        return tir_engine_combines(tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE),
                                   tir_ref_base(inst)->type->elem)
                   ? NULL
                   : "the engine cannot combine elements of this type so";
    const struct tir_value *bar = operands[TIR_TMA_BAR];
    if (!is_at(bar, bar->type->space, operands[TIR_TMA_BAR_AT]))
        return "it takes an mbarrier and an offset of 32 or 64 bits";
    if (bar->type->space == TIR_SPACE_CLUSTER && lacks(q, TIR_HAS_TCGEN05, ""))
        return "the target has no pairs of CTAs";
    if (!is_i32(operands[TIR_TMA_CTAS]))
        return "the CTAs are an i32";
    if (inst->op == TIR_OP_TMA_PIXELS)
        return check_pixels(inst);
    return inst->op == TIR_OP_TMA_GATHER ? check_gathered(q) : NULL;
}

enum { LOAD_FROM = TIR_TMA_BAR_AT + 1, LOAD_FROM_AT, LOAD_BYTES, LOAD_CTAS };
enum { STORE_TO, STORE_TO_AT, STORE_FROM, STORE_FROM_AT, STORE_BYTES };

static const char *check_bulk(const struct tir_inst *inst)
{
    struct tir_value *const *operands = inst->operands;
    bool fits;
    if (inst->op == TIR_OP_BULK_LOAD)
        fits = is_at(operands[TIR_TMA_BUFFER], TIR_SPACE_SHARED, operands[TIR_TMA_AT]) &&
               is_at(operands[TIR_TMA_BAR], TIR_SPACE_SHARED, operands[TIR_TMA_BAR_AT]) &&
               is_at(operands[LOAD_FROM], TIR_SPACE_GLOBAL, operands[LOAD_FROM_AT]) &&
               is_i32(operands[LOAD_BYTES]) && is_i32(operands[LOAD_CTAS]);
    else
        fits = is_at(operands[STORE_TO], TIR_SPACE_GLOBAL, operands[STORE_TO_AT]) &&
               is_at(operands[STORE_FROM], TIR_SPACE_SHARED, operands[STORE_FROM_AT]) &&
               is_i32(operands[STORE_BYTES]);
    if (!fits)
        return "it copies between a tensor and a shared buffer, a number of bytes (i32)";
    return inst->op == TIR_OP_BULK_LOAD ||
                   tir_engine_combines(tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE),
                                       operands[STORE_TO]->type->elem)
               ? NULL
               : "the engine cannot combine elements of this type so";
}

// Products, and matrices of a warp.

// One instruction must do with the registers that threads begin with, whatever setmaxnreg adds.
static bool fits_registers(const struct query *q, int64_t registers)
{
    int64_t ctas = q->f->persistent ? q->f->persistent : 1;
    return !q->f->threads || registers * q->f->threads * ctas <= q->target->registers_per_sm;
}

static const char *check_wgmma(const struct query *q)
{
    const struct tir_inst *inst = q->inst;
    const char *wrong = tir_wgmma_wrong(inst);
    if (wrong)
        return wrong;
    uint32_t count;
    struct tir_value **registers = tir_list(inst, &count);
    const struct tir_value *scale = inst->operands[TIR_WGMMA_SCALE];
    int64_t cols = tir_attr_int(inst, TIR_ATTR_cols, 0),
            steps = tir_attr_int(inst, TIR_ATTR_steps, 0);
    int64_t of_a = inst->operands[TIR_WGMMA_A] ? 0 : 4 * steps, sums = inst->result_count;
    for (uint32_t i = TIR_WGMMA_B; i <= TIR_WGMMA_A; i++)
        if (inst->operands[i] && (!tir_type_is_scalar(inst->operands[i]->type) ||
                                  tir_elems[inst->operands[i]->type->elem].bits != 64))
            return "descriptors have 64 bits";
    if (scale && (!tir_type_is_scalar(scale->type) || scale->type->elem != TIR_BOOL))
        return "the scale is a bool";
    if (!fits_registers(q, sums + 16))
        return "the accumulators do not fit the registers that as many threads begin with";
    if (!are_words(registers, count) || !are_words(inst->results, inst->result_count))
        return "it takes and gives registers of 32 bits";
    for (uint32_t i = 1; i < inst->result_count; i++)
        if (inst->results[i]->type != inst->results[0]->type)
            return "the accumulators have one type";
    enum tir_word kind = tir_attr_word(inst, TIR_ATTR_kind, TIR_WORD_NONE);
    bool integer = kind == TIR_WORD_kind_i8 || kind == TIR_WORD_kind_u8, halves = 4 * sums == cols;
    if (!sums || (!halves && 2 * sums != cols) ||
        (halves && (integer || kind == TIR_WORD_kind_bf16 || kind == TIR_WORD_kind_tf32)))
        return "the kind and the columns ask for other accumulators";
    if (tir_elem_is_float(inst->results[0]->type->elem) == (integer || halves))
        return "accumulators are f32, i32 for integers, or i32 that hold two f16";
    if (count != of_a + sums && (tir_emit_known(scale) != 0 || count != of_a))
        return "the registers are those of A, then the accumulators unless the scale is false";
    for (uint32_t i = (uint32_t)of_a; i < count; i++)
        if (registers[i]->type != inst->results[i - of_a]->type)
            return "the accumulators have one type";
    return NULL;
}

static_assert(TIR_TIED_REGISTERS <= TIR_ASM_INPUTS, "both are inline PTX");

// An await, or a fence of registers.
static const char *check_tied(const struct tir_inst *inst)
{
    if (inst->operand_count > TIR_TIED_REGISTERS || !are_words(inst->operands, inst->operand_count))
        return "it takes at most 256 registers of 32 bits";
    return has_int(inst, TIR_ATTR_groups, 0, tir_dones[TIR_DONE_WGMMA].groups)
               ? NULL
               : "at most 7 groups can be in flight";
}

// Tensor memory.

static const char *check_tcgen05_mma(const struct tir_inst *inst)
{
    const struct tir_value *a = inst->operands[TIR_TCGEN05_A], *b = inst->operands[TIR_TCGEN05_B];
    const struct tir_value *accumulate = inst->operands[TIR_TCGEN05_ACCUMULATE];
    if (!is_i32(inst->operands[TIR_TCGEN05_D]) || !is_offset(a))
        return "addresses in tensor memory are i32";
    if (!is_offset(b) || tir_elems[b->type->elem].bits != 64)
        return "descriptors have 64 bits";
    if (accumulate && (!tir_type_is_scalar(accumulate->type) || accumulate->type->elem != TIR_BOOL))
        return "accumulate is a bool";
    const struct tir_value *sa = inst->operands[TIR_TCGEN05_SA],
                           *sb = inst->operands[TIR_TCGEN05_SB];
    if (!sa != !sb || (sa && (!is_i32(sa) || !is_i32(sb))))
        return "it takes the addresses of the scales of A and B, or neither";
    return tir_tcgen05_wrong(inst);
}

static const char *check_tcgen05_cp(const struct tir_inst *inst)
{
    const struct tir_value *from = inst->operands[TIR_TCGEN05_CP_FROM];
    if (!is_i32(inst->operands[TIR_TCGEN05_CP_TO]) || !is_offset(from) ||
        tir_elems[from->type->elem].bits != 64)
        return "it takes an i32 address and a descriptor of 64 bits";
    const int64_t rows = tir_attr_int(inst, TIR_ATTR_rows, TIR_TMEM_LANES);
    const int64_t row_bits = tir_attr_int(inst, TIR_ATTR_row_bits, 256);
    return (rows == TIR_TMEM_LANES && row_bits >= 128) ||
                   (rows == TIR_TMEM_SCALE_LANES && row_bits == 128)
               ? NULL
               : "no instruction copies such rows";
}

// A load or store: the address, and words.
static const char *check_words(const struct tir_inst *inst, struct tir_value *const *words,
                               uint32_t count)
{
    if (!is_i32(inst->operands[0]) || !count || count > 128 || !tir_is_pow2(count))
        return "it takes an i32 address and 1 to 128 words, a power of two";
    const int64_t row_bits = tir_attr_int(inst, TIR_ATTR_row_bits, 0);
    if (row_bits && row_bits != 32 && row_bits != 64 && row_bits != 128 && row_bits != 256)
        return "no shape has as many bits of 16 lanes";
    if (count % TIR_MAX(row_bits / 64, 1))
        return "the shape has more words than that";
    if ((row_bits == 32) != (tir_attr_int(inst, TIR_ATTR_split, 0) > 0))
        return "16x32bx2 has a split, and no other shape";
    return are_words(words, count) ? NULL : "the words have 32 bits";
}

// A load that reduces has one result more.
static const char *check_tmem_load(const struct query *q)
{
    const struct tir_inst *inst = q->inst;
    const uint32_t reduces = tir_attr_find(inst, TIR_ATTR_kind) != NULL;
    const uint32_t count = inst->result_count - reduces;
    const enum tir_elem elem = inst->results[count - !reduces]->type->elem;
    if (reduces && lacks(q, TIR_HAS_TCGEN05_RED, ""))
        return "the target has no tcgen05.ld.red";
    if (reduces && (count < 2 || tir_attr_int(inst, TIR_ATTR_row_bits, 32) != 32))
        return "loads of two words or more by 32x32b and 16x32bx2 reduce";
    if (reduces && elem != TIR_F32 && elem != TIR_I32 && elem != TIR_U32)
        return "a load reduces f32, i32 and u32";
    if (tir_attr_find(inst, TIR_ATTR_of_abs) && (!reduces || elem != TIR_F32))
        return "f32 that are reduced lose their signs";
    return check_words(inst, inst->results, count);
}

static const char *check_stmatrix(const struct tir_inst *inst)
{
    uint32_t count;
    struct tir_value **values = tir_list(inst, &count);
    if (!is_at(inst->operands[0], TIR_SPACE_SHARED, inst->operands[1]))
        return "it stores to a shared buffer";
    for (uint32_t i = 0; i < count; i++)
        if (!is_i32(values[i]))
            return "the values must be i32";
    return count == 1 || count == 2 || count == 4 ? NULL : "it stores 1, 2 or 4 matrices";
}

static const char *check_send(const struct tir_inst *inst)
{
    struct tir_value *const *v = inst->operands;
    if (!is_at(v[0], TIR_SPACE_CLUSTER, v[1]) || !is_at(v[2], TIR_SPACE_SHARED, v[3]) ||
        !is_at(v[4], TIR_SPACE_SHARED, v[5]))
        return "it copies a shared buffer to a remote, with offsets of 32 or 64 bits";
    return is_i32(v[6]) && is_i32(v[7]) ? NULL : "the bytes and the CTA are i32";
}

static const char *check_st_async(const struct tir_inst *inst)
{
    struct tir_value *const *v = inst->operands;
    if (!is_at(v[0], TIR_SPACE_CLUSTER, v[1]) || !is_at(v[2], TIR_SPACE_SHARED, v[3]))
        return "it stores to a remote, with offsets of 32 or 64 bits";
    const uint32_t bits = tir_elems[v[4]->type->elem].bits;
    if (!tir_type_is_scalar(v[4]->type) || (bits != 32 && bits != 64))
        return "the value is a scalar of 4 or 8 bytes";
    if (v[6] && (!tir_type_is_scalar(v[6]->type) || v[6]->type->elem != TIR_BOOL))
        return "the predicate is a bool";
    return is_i32(v[5]) ? NULL : "the CTA is an i32";
}

const char *tir_nvptx_check_async(const struct tir_func *f, const struct tir_target *target,
                                  const struct tir_inst *inst, uint32_t *lacking)
{
    const struct query q = {f, target, inst, lacking};
    *lacking = 0;
    for (uint32_t i = 0; i < TIR_COUNT_OF(needs); i++)
        if (needs[i].op == inst->op && lacks(&q, needs[i].features, needs[i].lacks))
            return needs[i].lacks;
    switch (inst->op) {
    case TIR_OP_MBARRIER_INIT:
    case TIR_OP_ARRIVE:
    case TIR_OP_WAIT:
    case TIR_OP_TEST_WAIT:
        return check_barrier(&q);
    case TIR_OP_COMMIT_GROUP:
    case TIR_OP_WAIT_GROUP:
        return check_group(&q);
    case TIR_OP_FENCE:
        return check_fence(&q);
    case TIR_OP_BAR_SYNC:
    case TIR_OP_BAR_ARRIVE:
        return check_bar(inst);
    case TIR_OP_TMA_LOAD:
    case TIR_OP_TMA_GATHER:
    case TIR_OP_TMA_PIXELS:
    case TIR_OP_TMA_STORE:
    case TIR_OP_TMA_PREFETCH:
        return check_tensor_copy(&q);
    case TIR_OP_BULK_LOAD:
    case TIR_OP_BULK_STORE:
        return check_bulk(inst);
    case TIR_OP_BULK_SEND:
        return check_send(inst);
    case TIR_OP_ST_ASYNC:
        return check_st_async(inst);
    case TIR_OP_WGMMA:
        return check_wgmma(&q);
    case TIR_OP_AWAIT:
    case TIR_OP_WGMMA_FENCE:
        return check_tied(inst);
    case TIR_OP_TCGEN05_MMA:
        return check_tcgen05_mma(inst);
    case TIR_OP_TCGEN05_CP:
        return check_tcgen05_cp(inst);
    case TIR_OP_TMEM_LD:
        return check_tmem_load(&q);
    case TIR_OP_TMEM_ST:
        return check_words(inst, inst->operands + 1, inst->operand_count - 1);
    case TIR_OP_TMEM_ALLOC:
        return is_at(inst->operands[0], TIR_SPACE_SHARED, NULL) ? NULL
                                                                : "the slot is a shared buffer";
    case TIR_OP_TMEM_FREE:
        return is_i32(inst->operands[0]) ? NULL : "the base is an i32";
    case TIR_OP_COMMIT:
        return check_commit(&q);
    case TIR_OP_TRY_CANCEL:
    case TIR_OP_IS_CANCELED:
    case TIR_OP_FIRST_CTAID:
        return check_cancel(inst);
    case TIR_OP_STMATRIX:
        return check_stmatrix(inst);
    case TIR_OP_ADDRESS:
        return is_at(inst->operands[0], TIR_SPACE_SHARED, inst->operands[1])
                   ? NULL
                   : "it takes a shared buffer and an offset of 32 or 64 bits";
    default:
        return NULL;
    }
}
