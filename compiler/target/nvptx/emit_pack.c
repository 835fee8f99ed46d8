// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small values as words, and words as small values. LLVM makes arithmetic on bytes of what it does
// not see to be halves of a word, and converts one float at a time.

#include "target/nvptx/emit.h"

unsigned tir_emit_bytes(const struct emit *e, LLVMTypeRef type)
{
    return type == e->ll->i1 ? 1 : (unsigned)LLVMABISizeOfType(e->ll->layout, type);
}

V tir_emit_words(struct emit *e, V *words, uint32_t count, LLVMTypeRef word)
{
    V vector = LLVMGetPoison(LLVMVectorType(word, count));
    for (uint32_t i = 0; i < count; i++)
        vector = LLVMBuildInsertElement(e->b, vector, words[i], tir_emit_i32(e, i), "");
    return vector;
}

static V widen_bits(struct emit *e, V x, LLVMTypeRef to) // the bits of x, zero-extended
{
    if (LLVMTypeOf(x) == e->ll->f16 || LLVMTypeOf(x) == e->ll->bf16)
        x = LLVMBuildBitCast(e->b, x, e->ll->i16, "");
    return LLVMTypeOf(x) == to ? x : LLVMBuildZExt(e->b, x, to, "");
}

// Two floats that were just rounded to 16 bits, as one instruction rounds both; NULL: they are not.
static V round_pair(struct emit *e, V *parts)
{
    V wide[2];
    for (uint32_t i = 0; i < 2; i++) {
        V rounded = LLVMIsAFPTruncInst(parts[i]);
        wide[i] = rounded ? LLVMGetOperand(rounded, 0) : NULL;
        if (!wide[i] || LLVMTypeOf(wide[i]) != e->ll->f32)
            return NULL;
    }
    return LLVMBuildFPTrunc(e->b, tir_emit_words(e, wide, 2, e->ll->f32),
                            LLVMVectorType(LLVMTypeOf(parts[0]), 2), "");
}

// The word that byte number `at` was taken from; NULL: it is no such byte.
static V taken_from(V byte, unsigned *at)
{
    V word = LLVMIsATruncInst(byte) ? LLVMGetOperand(byte, 0) : NULL;
    V shifted = word ? LLVMIsABinaryOperator(word) : NULL;
    *at = 0;
    if (!shifted || LLVMGetInstructionOpcode(shifted) != LLVMLShr)
        return word;
    V by = LLVMIsAConstantInt(LLVMGetOperand(shifted, 1));
    *at = by ? (unsigned)LLVMConstIntGetZExtValue(by) / 8 : 0;
    return by ? LLVMGetOperand(shifted, 0) : NULL;
}

// Two bytes as i16: floats that were just rounded, or half of a word; NULL: something else.
static V pair_of_bytes(struct emit *e, V low, V high)
{
    V pair = tir_emit_fp8_pair(e, low, high);
    if (pair)
        return pair;
    unsigned at[2];
    V word = taken_from(low, &at[0]);
    if (!word || LLVMTypeOf(word) != e->ll->i32 || taken_from(high, &at[1]) != word || at[0] % 2 ||
        at[1] != at[0] + 1)
        return NULL;
    V halves = LLVMBuildBitCast(e->b, word, LLVMVectorType(e->ll->i16, 2), "");
    return LLVMBuildExtractElement(e->b, halves, tir_emit_i32(e, at[0] / 2), "");
}

// Four bytes of at most two words, in any order, as a word; NULL: something else.
static V permute_bytes(struct emit *e, V *parts)
{
    V words[2] = {NULL, NULL};
    uint32_t selector = 0;
    for (uint32_t i = 0; i < 4; i++) {
        unsigned at;
        V word = taken_from(parts[i], &at);
        if (!word || LLVMTypeOf(word) != e->ll->i32)
            return NULL;
        uint32_t k = words[0] && words[0] != word;
        if (words[k] && words[k] != word)
            return NULL;
        words[k] = word;
        selector |= (4 * k + at) << 4 * i;
    }
    V args[] = {words[0], words[1] ? words[1] : words[0], tir_emit_i32(e, selector)};
    return tir_llvm_call(e->ll, "llvm.nvvm.prmt", NULL, 0, args, 3);
}

// A call of prmt by a constant?
static bool is_permutation(V v)
{
    V call = LLVMIsACallInst(v);
    size_t length;
    const char *name = call ? LLVMGetValueName2(LLVMGetCalledValue(call), &length) : "";
    return strcmp(name, "llvm.nvvm.prmt") == 0 && LLVMIsAConstantInt(LLVMGetOperand(call, 2));
}

V tir_emit_select_bytes(struct emit *e, V cond, V yes, V no)
{
    if (!is_permutation(yes) || !is_permutation(no))
        return NULL;
    V args[] = {LLVMGetOperand(yes, 0), LLVMGetOperand(yes, 1), NULL};
    if (LLVMGetOperand(no, 0) != args[0] || LLVMGetOperand(no, 1) != args[1])
        return NULL;
    args[2] = tir_emit_select(e, cond, LLVMGetOperand(yes, 2), LLVMGetOperand(no, 2));
    return tir_llvm_call(e->ll, "llvm.nvvm.prmt", NULL, 0, args, 3);
}

// Parts of one or two bytes into a word of `type` (i16, i32 or i64).
static V pack_small(struct emit *e, V *parts, uint32_t count, LLVMTypeRef type)
{
    unsigned bytes = tir_emit_bytes(e, LLVMTypeOf(parts[0]));
    if (bytes == 2 && count == 2) {
        V pair = round_pair(e, parts);
        pair = pair ? pair : tir_emit_words(e, parts, 2, LLVMTypeOf(parts[0]));
        return LLVMBuildBitCast(e->b, pair, type, "");
    }
    V pairs[2] = {NULL, NULL};
    for (uint32_t i = 0; bytes == 1 && count == 4 && i < 2; i++)
        pairs[i] = pair_of_bytes(e, parts[2 * i], parts[2 * i + 1]);
    if (pairs[0] && pairs[1])
        return LLVMBuildBitCast(e->b, tir_emit_words(e, pairs, 2, e->ll->i16), type, "");
    V word = bytes == 1 && count == 4 ? permute_bytes(e, parts) : NULL;
    if (word)
        return word;
    for (uint32_t i = 0, taken; i < count; i += taken) {
        V pair = bytes == 1 && i + 1 < count ? tir_emit_fp8_pair(e, parts[i], parts[i + 1]) : NULL;
        V part = widen_bits(e, pair ? pair : parts[i], type);
        taken = pair ? 2 : 1;
        if (i)
            part = LLVMBuildShl(e->b, part, LLVMConstInt(type, i * bytes * 8, false), "");
        word = word ? LLVMBuildOr(e->b, word, part, "") : part;
    }
    return word;
}

V tir_emit_pack(struct emit *e, V *parts, uint32_t count, LLVMTypeRef type)
{
    LLVMTypeRef part = LLVMTypeOf(parts[0]);
    if (count == 1)
        return part == e->ll->i1 ? LLVMBuildZExt(e->b, parts[0], type, "")
                                 : tir_emit_bits(e, parts[0], type);
    unsigned bytes = tir_emit_bytes(e, part), total = bytes * count;
    LLVMTypeRef i64 = e->ll->i64, i32 = e->ll->i32;
    if (bytes >= 4)
        return LLVMBuildBitCast(e->b, tir_emit_words(e, parts, count, part), type, "");
    if (total <= 4)
        return tir_emit_bits(e, pack_small(e, parts, count, total == 4 ? i32 : e->ll->i16), type);
    assert(total % 4 == 0 && total <= 32);
    V words[8];
    for (uint32_t i = 0; i < total / 4; i++)
        words[i] = pack_small(e, parts + i * (4 / bytes), 4 / bytes, i32);
    V vector = tir_emit_words(e, words, total / 4, i32);
    return total == 8 && type == i64 ? LLVMBuildBitCast(e->b, vector, i64, "")
                                     : tir_emit_bits(e, vector, type);
}

static V unpack_part(struct emit *e, V word, unsigned index, LLVMTypeRef part)
{
    unsigned bytes = tir_emit_bytes(e, part);
    V shift = LLVMConstInt(LLVMTypeOf(word), index * bytes * 8, false);
    V v = index ? LLVMBuildLShr(e->b, word, shift, "") : word;
    if (part == e->ll->i1)
        return LLVMBuildTrunc(e->b, v, e->ll->i1, "");
    if (bytes == 1)
        return LLVMBuildTrunc(e->b, v, e->ll->i8, "");
    return tir_emit_bits(e, LLVMBuildTrunc(e->b, v, e->ll->i16, ""), part);
}

// Splits x (an integer or a vector of words) into `count` equal parts.
void tir_emit_unpack(struct emit *e, V x, LLVMTypeRef part, uint32_t count, V *parts)
{
    unsigned bytes = tir_emit_bytes(e, part), total = bytes * count;
    if (count == 1) {
        parts[0] =
            part == e->ll->i1 ? LLVMBuildTrunc(e->b, x, part, "") : tir_emit_bits(e, x, part);
        return;
    }
    if (bytes >= 4) {
        V vector = tir_emit_bits(e, x, LLVMVectorType(part, count));
        for (uint32_t i = 0; i < count; i++)
            parts[i] = LLVMBuildExtractElement(e->b, vector, tir_emit_i32(e, i), "");
        return;
    }
    if (total < 4) {
        V word = tir_emit_bits(e, x, e->ll->i16);
        for (uint32_t i = 0; i < count; i++)
            parts[i] = unpack_part(e, word, i, part);
        return;
    }
    unsigned words = total / 4, per_word = 4 / bytes;
    V vector = tir_emit_bits(e, x, LLVMVectorType(e->ll->i32, words));
    V word = NULL; // one value for all of its parts: emit_small_int.c looks for those of a word
    for (uint32_t i = 0; i < count; i++) {
        if (i % per_word == 0)
            word = LLVMBuildExtractElement(e->b, vector, tir_emit_i32(e, i / per_word), "");
        if (bytes == 2 && part != e->ll->i16) {
            V pair = LLVMBuildBitCast(e->b, word, LLVMVectorType(part, 2), "");
            parts[i] = LLVMBuildExtractElement(e->b, pair, tir_emit_i32(e, i % 2), "");
        } else {
            parts[i] = unpack_part(e, word, i % per_word, part);
        }
    }
}

void tir_emit_pack_op(struct emit *e, const struct tir_inst *inst)
{
    V parts[32];
    uint32_t count = inst->operand_count;
    assert(count && count <= TIR_COUNT_OF(parts));
    if (e->slots[inst->results[0]->id].v)
        return; // of sums, which a wait has given
    for (uint32_t i = 0; i < count; i++)
        parts[i] = tir_emit_value(e, inst->operands[i]);
    tir_emit_set(e, inst->results[0],
                 tir_emit_pack(e, parts, count, tir_emit_type(e, inst->results[0]->type)));
}

void tir_emit_unpack_op(struct emit *e, const struct tir_inst *inst)
{
    V parts[32];
    uint32_t count = inst->result_count;
    assert(count && count <= TIR_COUNT_OF(parts));
    const struct tir_inst *def = inst->operands[0]->def;
    V x = tir_emit_value(e, inst->operands[0]);
    if (def && def->op == TIR_OP_AWAIT && inst->results[0]->type->elem == TIR_F16)
        x = tir_emit_in_place(e, x);
    tir_emit_unpack(e, x, tir_emit_type(e, inst->results[0]->type), count, parts);
    for (uint32_t i = 0; i < count; i++)
        tir_emit_set(e, inst->results[i], parts[i]);
}
