// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What attributes may say, of any operation or of one.

#include "ir/attr_rules.h"

// Products are of a kind that is called as the elements of their operands.
static bool names_element(enum tir_word word)
{
    for (uint32_t e = TIR_NONE + 1; e < TIR_ELEM_COUNT; e++)
        if (!strcmp(tir_words[word].name, tir_elems[e].name))
            return true;
    return false;
}

static bool word_allowed(const struct tir_inst *inst, enum tir_word word)
{
    static const enum tir_word combine[] = {
        TIR_WORD_kind_sum, TIR_WORD_kind_prod, TIR_WORD_kind_min, TIR_WORD_kind_max,
        TIR_WORD_kind_and, TIR_WORD_kind_or,   TIR_WORD_kind_xor, TIR_WORD_kind_any,
        TIR_WORD_kind_all, TIR_WORD_kind_user, TIR_WORD_NONE};
    static const enum tir_word atomic[] = {
        TIR_WORD_kind_add,      TIR_WORD_kind_min, TIR_WORD_kind_max,
        TIR_WORD_kind_and,      TIR_WORD_kind_or,  TIR_WORD_kind_xor,
        TIR_WORD_kind_exchange, TIR_WORD_kind_cas, TIR_WORD_NONE};
    static const enum tir_word most[] = {TIR_WORD_kind_min, TIR_WORD_kind_max, TIR_WORD_NONE};
    static const enum tir_word sums[] = {TIR_WORD_kind_add, TIR_WORD_NONE};
    static const enum tir_word ordering[] = {TIR_WORD_ordering_relaxed, TIR_WORD_ordering_acquire,
                                             TIR_WORD_ordering_release, TIR_WORD_ordering_acq_rel,
                                             TIR_WORD_NONE};
    static const enum tir_word scope[] = {TIR_WORD_scope_cta, TIR_WORD_scope_cluster,
                                          TIR_WORD_scope_gpu, TIR_WORD_scope_system, TIR_WORD_NONE};
    static const enum tir_word vote[] = {TIR_WORD_kind_any, TIR_WORD_kind_all, TIR_WORD_kind_ballot,
                                         TIR_WORD_NONE};
    static const enum tir_word copy[] = {TIR_WORD_kind_add, TIR_WORD_kind_min, TIR_WORD_kind_max,
                                         TIR_WORD_kind_and, TIR_WORD_kind_or,  TIR_WORD_kind_xor,
                                         TIR_WORD_NONE};
    static const enum tir_word registers[] = {TIR_WORD_change_inc, TIR_WORD_change_dec,
                                              TIR_WORD_NONE};
    static const enum tir_word launch[] = {TIR_WORD_change_wait, TIR_WORD_change_launch,
                                           TIR_WORD_NONE};
    static const enum tir_word into_shared[] = {TIR_WORD_engine_cp_async, TIR_WORD_engine_bulk,
                                                TIR_WORD_engine_tma, TIR_WORD_NONE};
    static const enum tir_word into_tensor[] = {TIR_WORD_engine_bulk, TIR_WORD_engine_tma,
                                                TIR_WORD_NONE};
    static const enum tir_word product[] = {TIR_WORD_engine_wgmma, TIR_WORD_NONE};
    static const enum tir_word committed[] = {TIR_WORD_engine_cp_async, TIR_WORD_NONE};
    static const enum tir_word grouped[] = {TIR_WORD_engine_cp_async, TIR_WORD_engine_bulk,
                                            TIR_WORD_engine_tma, TIR_WORD_engine_wgmma,
                                            TIR_WORD_NONE};
    static const struct {
        enum tir_op op;
        const enum tir_word *allowed; // of one attribute
    } rows[] = {
        {TIR_OP_REDUCE, combine},
        {TIR_OP_SCAN, combine},
        {TIR_OP_ATOMIC, atomic},
        {TIR_OP_ATOM, atomic},
        {TIR_OP_RED, sums},
        {TIR_OP_TMEM_LD, most},
        {TIR_OP_ATOMIC, ordering},
        {TIR_OP_ATOM, ordering},
        {TIR_OP_RED, ordering},
        {TIR_OP_ATOMIC, scope},
        {TIR_OP_ATOM, scope},
        {TIR_OP_RED, scope},
        {TIR_OP_VOTE, vote},
        {TIR_OP_STORE_ASYNC, copy},
        {TIR_OP_TMA_STORE, copy},
        {TIR_OP_BULK_STORE, copy},
        {TIR_OP_SETMAXNREG, registers},
        {TIR_OP_GRIDDEPCONTROL, launch},
        {TIR_OP_DOT, product},
        {TIR_OP_COPY_ASYNC, into_shared},
        {TIR_OP_STORE_ASYNC, into_tensor},
        {TIR_OP_COMMIT, committed},
        {TIR_OP_COMMIT_GROUP, grouped},
        {TIR_OP_WAIT_GROUP, grouped},
    };
    if (inst->op == TIR_OP_MMA || inst->op == TIR_OP_WGMMA || inst->op == TIR_OP_TCGEN05_MMA)
        return names_element(word);
    if (tir_words[word].key == TIR_ATTR_cache)
        return true;
    for (uint32_t i = 0; i < TIR_COUNT_OF(rows); i++) {
        if (rows[i].op != inst->op || tir_words[*rows[i].allowed].key != tir_words[word].key)
            continue;
        const enum tir_word *allowed = rows[i].allowed;
        while (*allowed && *allowed != word)
            allowed++;
        return *allowed;
    }
    return false;
}

#define ANY INT64_MAX
struct range { // of an integer, or of each of a list
    enum tir_attr_key key;
    int64_t low, high;
    int64_t unit; // that it is a multiple of; 0: a power of two
};

static const struct range ranges[] = {
    {TIR_ATTR_a_scale, 0, TIR_TMEM_SCALES - 1, 1},
    {TIR_ATTR_a_trans, 0, 1, 1},
    {TIR_ATTR_arrivals, 1, ANY, 1},
    {TIR_ATTR_b_scale, 0, TIR_TMEM_SCALES - 1, 1},
    {TIR_ATTR_b_trans, 0, 1, 1},
    {TIR_ATTR_by, 1, ANY, 1},
    {TIR_ATTR_cluster, 1, ANY, 1},
    {TIR_ATTR_column, 0, TIR_TMEM_COLUMNS - 1, 1},
    {TIR_ATTR_columns, 32, TIR_TMEM_COLUMNS, 0},
    {TIR_ATTR_count, 0, ANY, 1},
    {TIR_ATTR_cta_group, 2, 2, 1},
    {TIR_ATTR_first, 0, ANY, 1},
    {TIR_ATTR_group, 1, ANY, 1},
    {TIR_ATTR_groups, 0, ANY, 1},
    {TIR_ATTR_id, 0, 15, 1},
    {TIR_ATTR_lag, 0, ANY, 1},
    {TIR_ATTR_next, 0, ANY, 1},
    {TIR_ATTR_of_abs, 0, 1, 1},
    {TIR_ATTR_persistent, 0, TIR_DYNAMIC, 1},
    {TIR_ATTR_read, 0, 1, 1},
    {TIR_ATTR_regs, 24, 256, 8},
    {TIR_ATTR_relaxed, 0, 1, 1},
    {TIR_ATTR_row_bits, 32, 256, 0},
    {TIR_ATTR_rows, TIR_TMEM_LANES / 4, TIR_TMEM_LANES / 2, 0},
    {TIR_ATTR_scales, 1, TIR_TMEM_SCALES, 0},
    {TIR_ATTR_split, 1, ANY, 1},
    {TIR_ATTR_stages, 1, ANY, 1},
    {TIR_ATTR_steps, 1, ANY, 1},
    {TIR_ATTR_store_role, 0, 1, 1},
    {TIR_ATTR_threads, 32, ANY, 32},
    {TIR_ATTR_trans, 0, 1, 1},
    {TIR_ATTR_turns, 0, 1, 1},
    {TIR_ATTR_unroll, 1, ANY, 1},
    {TIR_ATTR_upper, 1, 1, 1},
    {TIR_ATTR_warps, 1, ANY, 1},
    {TIR_ATTR_width, 1, 16, 0},
};

static const struct range *range_of(enum tir_attr_key key)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(ranges); i++)
        if (ranges[i].key == key)
            return &ranges[i];
    return NULL;
}

static bool in_range(const struct range *range, int64_t x)
{
    const bool fits = range->unit ? x % range->unit == 0 : x > 0 && tir_is_pow2((uint64_t)x);
    return fits && x >= range->low && x <= range->high;
}

bool tir_attr_allows_integers(const struct tir_attr *attr)
{
    const struct range *range = range_of(attr->key);
    if (attr->key == TIR_ATTR_bits)
        return attr->number == 4 || attr->number == 6 || attr->number == TIR_MAP_TF32;
    if (attr->key == TIR_ATTR_swizzle)
        return !attr->number ||
               (attr->number >= 32 && attr->number <= 128 && tir_is_pow2((uint64_t)attr->number));
    if (!range)
        return true;
    bool allowed = tir_attr_infos[attr->key].kind == TIR_ATTR_LIST || in_range(range, attr->number);
    for (uint32_t i = 0; i < attr->list_count; i++)
        allowed &= in_range(range, attr->list[i]);
    return allowed;
}

tir_str tir_attr_range(struct tir_arena *arena, enum tir_attr_key key)
{
    const struct range *range = range_of(key);
    if (!range)
        return (tir_str){0};
    const tir_str unit = range->unit == 1 ? tir_str_of("")
                         : range->unit > 1
                             ? tir_str_format(arena, ", a multiple of %lld", (long long)range->unit)
                             : tir_str_of(", a power of two");
    if (range->high == ANY)
        return tir_str_format(arena, "at least %lld" STR_FMT, (long long)range->low, STR_ARG(unit));
    if (range->high == range->low)
        return tir_str_format(arena, "%lld", (long long)range->low);
    return tir_str_format(arena, "%lld to %lld" STR_FMT, (long long)range->low,
                          (long long)range->high, STR_ARG(unit));
}

bool tir_attr_allows_word(const struct tir_inst *inst, const struct tir_attr *attr)
{
    const bool is_of_op =
        attr->key == TIR_ATTR_kind || attr->key == TIR_ATTR_change || attr->key == TIR_ATTR_engine;
    if (tir_attr_infos[attr->key].kind != TIR_ATTR_WORD)
        return true;
    if (attr->number <= TIR_WORD_NONE || attr->number >= TIR_WORD_COUNT ||
        tir_words[attr->number].key != attr->key)
        return false;
    return !is_of_op || word_allowed(inst, (enum tir_word)attr->number);
}
