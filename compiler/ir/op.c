// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tables of operations, attributes, words and element types, made from the .def files.
//
// Each row of ops.def becomes two small arrays (its operands and its attributes) and one entry of
// tir_ops. The counts of an entry are derived from the arrays, so nothing is written twice.

#include "ir/ir.h"

// clang-format off
#define NONE
#define IN(name)    {#name, TIR_OPERAND_IN},
#define OPT(name)   {#name, TIR_OPERAND_OPT},
#define LIST(name)  {#name, TIR_OPERAND_LIST},
#define REF(name)   {#name, TIR_OPERAND_REF},
#define BUF(name)   {#name, TIR_OPERAND_BUF},
#define MASK(name)  {#name, TIR_OPERAND_OPT, TIR_ROLE_MASK},
#define PRED(name)  {#name, TIR_OPERAND_OPT, TIR_ROLE_PRED},
#define SCRATCH(name)     {#name, TIR_OPERAND_OPT, TIR_ROLE_SCRATCH},
#define OPT_BARRIER(name) {#name, TIR_OPERAND_OPT, TIR_ROLE_BARRIER},
#define BARRIER(name)     {#name, TIR_OPERAND_BUF, TIR_ROLE_BARRIER},
#define I32(name)         {#name, TIR_OPERAND_IN, TIR_ROLE_I32},
#define OPT_I32(name)     {#name, TIR_OPERAND_OPT, TIR_ROLE_I32},
#define ATTR(key)   {TIR_ATTR_##key, true},
#define OATTR(key)  {TIR_ATTR_##key, false},
#define OP(id, name, operands, attrs, ...)                                                         \
    static const struct tir_operand_info operands_##id[] = {operands {NULL, TIR_OPERAND_IN}};      \
    static const struct tir_attr_spec attrs_##id[] = {attrs {TIR_ATTR_COUNT, false}};
#include "ir/ops.def"
#undef NONE

// As constant expressions: how many operands of a row are stored first, and whether it has a slice
// or a list.
enum op_counts {
#define IN(name)   + 1
#define OPT(name)  + 1
#define BUF(name)  + 1
#define LIST(name)
#define REF(name)
#define ATTR(key)
#define OATTR(key)
#define OP(id, name, operands, ...) FIXED_##id = 0 operands,
#include "ir/ops.def"
#define IN(name)
#define OPT(name)
#define BUF(name)
#define LIST(name)
#define REF(name)  + 1
#define ATTR(key)
#define OATTR(key)
#define OP(id, name, operands, ...) REFS_##id = 0 operands,
#include "ir/ops.def"
#define IN(name)
#define OPT(name)
#define BUF(name)
#define LIST(name) + 1
#define REF(name)
#define ATTR(key)
#define OATTR(key)
#define OP(id, name, operands, ...) LISTS_##id = 0 operands,
#include "ir/ops.def"
};

#define PURE     TIR_PURE
#define READS    TIR_READS
#define WRITES   TIR_WRITES
#define ASYNC    TIR_ASYNC
#define SYNC     TIR_SYNC
#define THREAD   TIR_THREAD
#define COMMUTES TIR_COMMUTES
#define REGIONS  TIR_REGIONS
#define END      TIR_END
#define MANY     TIR_MANY
const struct tir_op_info tir_ops[TIR_OP_COUNT] = {
#define OP(id, name, operands, attrs, results, rule, elems, traits, form, meaning)                 \
    [TIR_OP_##id] = {name, operands_##id, attrs_##id,                                              \
                     (uint8_t)(TIR_COUNT_OF(operands_##id) - 1),                                   \
                     (uint8_t)(TIR_COUNT_OF(attrs_##id) - 1), results, FIXED_##id,                 \
                     REFS_##id > 0, LISTS_##id > 0, TIR_RULE_##rule, TIR_CLASS_##elems,            \
                     traits, TIR_FORM_##form, meaning},
#include "ir/ops.def"
};

const struct tir_attr_info tir_attr_infos[TIR_ATTR_COUNT] = {
#define ATTR(key, kind, meaning) [TIR_ATTR_##key] = {#key, TIR_ATTR_##kind, meaning},
#include "ir/attrs.def"
};

const struct tir_word_info tir_words[TIR_WORD_COUNT] = {
    [TIR_WORD_NONE] = {TIR_ATTR_COUNT, ""},
#define WORD(key, name) [TIR_WORD_##key##_##name] = {TIR_ATTR_##key, #name},
#include "ir/words.def"
};

const struct tir_elem_info tir_elems[TIR_ELEM_COUNT] = {
    [TIR_NONE] = {"none", 0, TIR_KIND_NONE, 0},
#define ELEM(id, name, bits, kind, mantissa) [TIR_##id] = {name, bits, TIR_KIND_##kind, mantissa},
#include "ir/elems.def"
};
// clang-format on

enum tir_op tir_op_by_name(tir_str name)
{
    for (uint32_t op = 0; op < TIR_OP_COUNT; op++)
        if (tir_str_is(name, tir_ops[op].name))
            return (enum tir_op)op;
    return TIR_OP_COUNT;
}

enum tir_word tir_word_by_name(enum tir_attr_key key, tir_str name)
{
    for (uint32_t word = 1; word < TIR_WORD_COUNT; word++)
        if (tir_words[word].key == key && tir_str_is(name, tir_words[word].name))
            return (enum tir_word)word;
    return TIR_WORD_NONE;
}

const char *const tir_fact_names[TIR_FACT_COUNT] = {"index32", "vector16", "unit_inner"};
static_assert(TIR_FACT_ALL == (1u << TIR_FACT_COUNT) - 1, "each fact has a name");

const char *tir_form_name(enum tir_form form)
{
    // ORDER FORM
    static const char *const names[TIR_FORM_COUNT] = {"tile",        "laid_out", "async",
                                                      "specialized", "synced",   "lowered"};
    return names[form];
}

const char *const tir_step_names[TIR_STEP_COUNT] = {"none", "first", "middle", "last"};
const char *const tir_pace_names[TIR_PACE_COUNT] = {"alone", "leads", "beside"};

enum tir_form tir_form_by_name(tir_str name)
{
    uint32_t form = 0;
    while (form < TIR_FORM_COUNT && !tir_str_is(name, tir_form_name((enum tir_form)form)))
        form++;
    return (enum tir_form)form;
}

enum tir_op tir_op_of_kind(enum tir_word kind)
{
    static const struct {
        enum tir_word kind;
        enum tir_op op;
    } ops[] = {
        {TIR_WORD_kind_sum, TIR_OP_ADD},  {TIR_WORD_kind_add, TIR_OP_ADD},
        {TIR_WORD_kind_prod, TIR_OP_MUL}, {TIR_WORD_kind_min, TIR_OP_MIN},
        {TIR_WORD_kind_max, TIR_OP_MAX},  {TIR_WORD_kind_and, TIR_OP_AND},
        {TIR_WORD_kind_all, TIR_OP_AND},  {TIR_WORD_kind_or, TIR_OP_OR},
        {TIR_WORD_kind_any, TIR_OP_OR},   {TIR_WORD_kind_xor, TIR_OP_XOR},
    };
    for (uint32_t i = 0; i < TIR_COUNT_OF(ops); i++)
        if (ops[i].kind == kind)
            return ops[i].op;
    return TIR_OP_COUNT;
}
