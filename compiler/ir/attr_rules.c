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

bool tir_attr_allows_integers(const struct tir_attr *attr)
{
    switch (attr->key) {
    case TIR_ATTR_by:
    case TIR_ATTR_cluster:
        for (uint32_t i = 0; i < attr->list_count; i++)
            if (attr->list[i] < 1)
                return false;
        return true;
    case TIR_ATTR_width:
        return attr->number >= 1 && attr->number <= 16 && tir_is_pow2((uint64_t)attr->number);
    case TIR_ATTR_arrivals:
    case TIR_ATTR_group:
    case TIR_ATTR_split:
    case TIR_ATTR_stages:
    case TIR_ATTR_steps:
    case TIR_ATTR_unroll:
    case TIR_ATTR_warps:
        return attr->number >= 1;
    case TIR_ATTR_column:
        return attr->number >= 0 && attr->number < TIR_TMEM_COLUMNS;
    case TIR_ATTR_upper:
        return attr->number == 1;
    case TIR_ATTR_cta_group:
        return attr->number == 2;
    case TIR_ATTR_rows:
        return attr->number == TIR_TMEM_LANES / 2 || attr->number == TIR_TMEM_LANES / 4;
    case TIR_ATTR_a_scale:
    case TIR_ATTR_b_scale:
        return attr->number >= 0 && attr->number < TIR_TMEM_SCALES;
    case TIR_ATTR_scales:
        return attr->number >= 1 && attr->number <= TIR_TMEM_SCALES &&
               tir_is_pow2((uint64_t)attr->number);
    case TIR_ATTR_row_bits:
        return attr->number >= 32 && attr->number <= 256 && tir_is_pow2((uint64_t)attr->number);
    case TIR_ATTR_columns:
        return attr->number >= 32 && attr->number <= TIR_TMEM_COLUMNS &&
               tir_is_pow2((uint64_t)attr->number);
    case TIR_ATTR_count:
    case TIR_ATTR_first:
    case TIR_ATTR_groups:
    case TIR_ATTR_lag:
    case TIR_ATTR_next:
        return attr->number >= 0;
    case TIR_ATTR_persistent:
        return attr->number >= 0 && attr->number <= TIR_DYNAMIC;
    case TIR_ATTR_a_trans:
    case TIR_ATTR_b_trans:
    case TIR_ATTR_of_abs:
    case TIR_ATTR_read:
    case TIR_ATTR_relaxed:
    case TIR_ATTR_store_role:
    case TIR_ATTR_trans:
    case TIR_ATTR_turns:
        return attr->number == 0 || attr->number == 1;
    case TIR_ATTR_id:
        return attr->number >= 0 && attr->number <= 15;
    case TIR_ATTR_regs:
        return attr->number >= 24 && attr->number <= 256 && attr->number % 8 == 0;
    case TIR_ATTR_bits:
        return attr->number == 4 || attr->number == 6 || attr->number == TIR_MAP_TF32;
    case TIR_ATTR_swizzle:
        return attr->number == 0 || attr->number == 32 || attr->number == 64 || attr->number == 128;
    case TIR_ATTR_threads:
        return attr->number >= 32 && attr->number % 32 == 0;
    default:
        return true;
    }
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
