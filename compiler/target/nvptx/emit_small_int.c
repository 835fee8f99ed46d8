// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integers of at most 16 bits become floats by arithmetic: `cvt` has a lower rate than that.
//
//     the bits of the integer become the last digits of a large float, less what is too much
//
// As f32 one integer at a time. As floats of 16 bits two at a time, if they lie in bytes, together
// with the floats of 16 bits that they are multiplied by: what products of dequantised weights
// take.

#include "ir/walk.h"
#include "machine/budget.h"
#include "target/nvptx/emit.h"

static unsigned int_bits(V x)
{
    return LLVMGetIntTypeWidth(LLVMTypeOf(x));
}

static V shifted(struct emit *e, V word, unsigned down)
{
    V by = LLVMConstInt(LLVMTypeOf(word), down, false);
    return down ? LLVMBuildLShr(e->b, word, by, "") : word;
}

// Bits of a word: (word >> shift) & mask.
struct bit_field {
    V word;
    unsigned shift;
    uint64_t mask;
};

static uint64_t width_mask(V x)
{
    return UINT64_MAX >> (64 - int_bits(x));
}

// x as bits of the word that it was cut from. A mask of 0: all were shifted out.
static struct bit_field bit_field_of(V x)
{
    struct bit_field f = {x, 0, width_mask(x)};
    while (f.mask) {
        LLVMOpcode op = LLVMIsAInstruction(f.word) ? LLVMGetInstructionOpcode(f.word) : LLVMRet;
        V from = op == LLVMRet ? NULL : LLVMGetOperand(f.word, 0);
        bool resize = op == LLVMTrunc || op == LLVMZExt;
        if (resize && int_bits(from) <= 32) {
            f.word = from;
        } else if ((op == LLVMLShr || op == LLVMAnd) &&
                   LLVMIsAConstantInt(LLVMGetOperand(f.word, 1))) {
            uint64_t c = LLVMConstIntGetZExtValue(LLVMGetOperand(f.word, 1));
            if (op == LLVMAnd)
                f.mask &= c >> f.shift;
            else
                f.shift += c;
            f.word = from;
        } else {
            break;
        }
        f.mask &= f.shift < 32 ? width_mask(f.word) >> f.shift : 0;
    }
    return f;
}

static V as_word(struct emit *e, V x)
{
    return int_bits(x) < 32 ? LLVMBuildZExt(e->b, x, e->ll->i32, "") : x;
}

// (word & mask) ^ bits, as one instruction: ptxas makes two of operations with two constants.
static V masked_xor(struct emit *e, V word, uint64_t mask, uint64_t bits)
{
    V args[] = {word, tir_emit_i32(e, (int64_t)mask), tir_emit_i32(e, (int64_t)bits)};
    if (LLVMIsConstant(word))
        return LLVMBuildXor(e->b, LLVMBuildAnd(e->b, word, args[1], ""), args[2], "");
    return tir_llvm_asm(e->ll, e->ll->i32, STR("lop3.b32 $0, $1, $2, $3, 0x6a;"), STR("=r,r,n,n"),
                        0, args, 3);
}

// What a sum adds to its first operand, which takes its place; 0: v is no such sum.
static int64_t take_added(V *v)
{
    V sum = LLVMIsABinaryOperator(*v);
    if (!sum || LLVMGetInstructionOpcode(sum) != LLVMAdd || !LLVMGetNSW(sum) ||
        !LLVMIsAConstantInt(LLVMGetOperand(sum, 1)))
        return 0;
    *v = LLVMGetOperand(sum, 0);
    return LLVMConstIntGetSExtValue(LLVMGetOperand(sum, 1));
}

// (field ^ sign) - sign + added, with the field as a number without a sign.
struct small_int {
    struct bit_field field;
    uint64_t sign; // the sign bit, as it stands in the field
    int64_t added;
};

static struct small_int small_int_of(V x, bool is_signed)
{
    struct small_int s = {.added = is_signed ? take_added(&x) : 0};
    s.field = bit_field_of(x);
    s.sign = is_signed ? s.field.mask & UINT64_C(1) << (int_bits(x) - 1) : 0;
    return s;
}

// One as f32.

// Bytes as they are loaded: the conversion takes them out of their word for nothing, so every
// second pair goes that way, and both units have work.
static bool is_converted(struct emit *e, struct bit_field f)
{
    return f.mask == 0xff && f.shift % 8 == 0 && e->bytes_to_float++ / 2 % 2;
}

V tir_emit_small_int(struct emit *e, V x, bool is_signed)
{
    const struct small_int s = small_int_of(x, is_signed);
    struct bit_field f = s.field;
    if (!f.mask)
        return LLVMConstReal(e->ll->f32, (double)s.added);
    if (!s.added && is_converted(e, f))
        return NULL;
    // Below the digits of a float. At whole bytes, so that nibbles need few different constants.
    unsigned down = f.mask << f.shift > 0x7fffff ? f.shift : f.shift % 8;
    V word = as_word(e, shifted(e, f.word, down));
    f.shift -= down;
    uint64_t exponent = (uint64_t)(127 + 23 - f.shift) << 23;
    word = masked_xor(e, word, f.mask << f.shift, exponent | s.sign << f.shift);
    double large = (double)((INT64_C(1) << (23 - f.shift)) + (int64_t)s.sign - s.added);
    return LLVMBuildFSub(e->b, LLVMBuildBitCast(e->b, word, e->ll->f32, ""),
                         LLVMConstReal(e->ll->f32, large), "");
}

// Two as floats of 16 bits.

struct half {        // such a type
    unsigned digits; // after the first one
    uint64_t large;  // the float whose last digit is worth 1
};

static const struct half *half_of(const struct emit *e, enum tir_elem elem)
{
    static const struct half f16 = {10, 0x6400}, bf16 = {7, 0x4300};
    if (elem == TIR_BF16)
        return e->ll->target->features & TIR_HAS_BF16_ARITH ? &bf16 : NULL;
    return elem == TIR_F16 ? &f16 : NULL;
}

static V pair_of(struct emit *e, V first, V second)
{
    V v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(first), 2));
    v = LLVMBuildInsertElement(e->b, v, first, tir_emit_i32(e, 0), "");
    return LLVMBuildInsertElement(e->b, v, second, tir_emit_i32(e, 1), "");
}

// The byte of each field, in the lower half of 16 bits; what is above it is left over.
static V bytes_apart(struct emit *e, const struct small_int *s)
{
    V words[2];
    unsigned at[2];
    for (uint32_t i = 0; i < 2; i++) {
        words[i] = as_word(e, shifted(e, s[i].field.word, s[i].field.shift % 8));
        at[i] = s[i].field.shift / 8;
    }
    if (s[0].field.word == s[1].field.word && at[0] == 0 && at[1] == 2)
        return words[0];
    unsigned select = at[0] * 0x11 + (at[1] + 4) * 0x1100;
    V args[] = {words[0], words[1], tir_emit_i32(e, select)};
    return tir_llvm_call(e->ll, "llvm.nvvm.prmt", NULL, 0, args, 3);
}

static V as_halves(struct emit *e, V word, enum tir_elem to)
{
    return LLVMBuildBitCast(e->b, word, LLVMVectorType(tir_emit_elem_type(e, to), 2), "");
}

// Signed, with one bit more than there are digits: the lower bits and the sign bit become two
// floats. As bf16 the second is 128 if the integer is not negative, else 256.
static V signed_pair(struct emit *e, const struct small_int *s, const struct half *half,
                     enum tir_elem to)
{
    const uint64_t both = 0x10001;
    V bytes = bytes_apart(e, s);
    V low = masked_xor(e, bytes, (s->sign - 1) * both, half->large * both);
    V sign = masked_xor(e, bytes, s->sign * both, half->large * both);
    return LLVMBuildFSub(e->b, as_halves(e, low, to), as_halves(e, sign, to), "");
}

static V converted_pair(struct emit *e, V first, V second, enum tir_elem to)
{
    V pair = pair_of(e, LLVMBuildSIToFP(e->b, first, e->ll->f32, ""),
                     LLVMBuildSIToFP(e->b, second, e->ll->f32, ""));
    return LLVMBuildFPTrunc(e->b, pair, LLVMVectorType(tir_emit_elem_type(e, to), 2), "");
}

// The columns of the widest product on warpgroups.
static int64_t most_columns(const struct emit *e)
{
    int64_t most = 0;
    tir_foreach_inst(inst, e->f)
        if (inst->op == TIR_OP_WGMMA)
            most = TIR_MAX(most, tir_attr_int(inst, TIR_ATTR_cols, 0));
    return most;
}

// Beside wide products, which leave it time, `cvt` takes every second pair: it is slower, but one
// instruction less.
static bool is_turn_of_cvt(struct emit *e)
{
    if (!e->pairs_to_half++)
        e->cvt_takes_turns = most_columns(e) >= TIR_BUDGET_CVT_COLUMNS;
    return e->cvt_takes_turns && e->pairs_to_half % 2;
}

// NULL: they are not alike, lie across bytes, or are too large for the digits.
static V small_pair(struct emit *e, V first, V second, bool is_signed, enum tir_elem to)
{
    const struct half *half = half_of(e, to);
    const struct small_int s[2] = {small_int_of(first, is_signed), small_int_of(second, is_signed)};
    const uint64_t mask = s[0].field.mask, one = UINT64_C(1) << half->digits;
    const unsigned at = s[0].field.shift % 8;
    const int64_t large = (int64_t)(one + s[0].sign) - s[0].added;
    if (!mask || mask != s[1].field.mask || mask << at > 0xff || at != s[1].field.shift % 8 ||
        s[0].sign != s[1].sign || s[0].added != s[1].added)
        return NULL;
    if (mask == 2 * one - 1 && s[0].sign == one && !s[0].added)
        return is_turn_of_cvt(e) ? converted_pair(e, first, second, to)
                                 : signed_pair(e, s, half, to);
    if (mask >= one || large < 0 || large > (int64_t)(2 * one))
        return NULL;
    V word = masked_xor(e, bytes_apart(e, s), mask * 0x10001, (half->large ^ s[0].sign) * 0x10001);
    LLVMTypeRef type = tir_emit_elem_type(e, to);
    V too_much = LLVMConstReal(type, (double)large);
    return LLVMBuildFSub(e->b, as_halves(e, word, to), pair_of(e, too_much, too_much), "");
}

static V rounded_pair(struct emit *e, const struct tir_value *first, const struct tir_value *second,
                      enum tir_elem to)
{
    V parts[2] = {tir_emit_convert(e, tir_emit_value(e, first), first->type->elem, TIR_F32),
                  tir_emit_convert(e, tir_emit_value(e, second), second->type->elem, TIR_F32)};
    return LLVMBuildFPTrunc(e->b, pair_of(e, parts[0], parts[1]),
                            LLVMVectorType(tir_emit_elem_type(e, to), 2), "");
}

// What a cast rounds: an integer, or its product with a float of the type that it rounds to.
struct rounded {
    const struct tir_value *integer; // NULL: neither
    const struct tir_value *scale;   // NULL: there is none
};

// What became the f32 v; NULL: no cast did that.
static const struct tir_value *source_of(const struct tir_value *v)
{
    const bool is_cast = v->def && v->def->op == TIR_OP_CAST && v->type->elem == TIR_F32;
    return is_cast ? v->def->operands[0] : NULL;
}

static bool is_byte(const struct tir_value *v)
{
    return v && tir_elem_is_int(v->type->elem) && tir_elems[v->type->elem].bits == 8;
}

static struct rounded rounded_of(const struct tir_inst *cast)
{
    const struct tir_value *x = cast->operands[0];
    if (is_byte(x) || is_byte(source_of(x)))
        return (struct rounded){.integer = is_byte(x) ? x : source_of(x)};
    if (!x->def || x->def->op != TIR_OP_MUL || x->type->elem != TIR_F32)
        return (struct rounded){0};
    for (uint32_t i = 0; i < 2; i++) {
        const struct tir_value *integer = source_of(x->def->operands[i]);
        const struct tir_value *scale = source_of(x->def->operands[1 - i]);
        if (is_byte(integer) && scale && scale->type->elem == cast->results[0]->type->elem)
            return (struct rounded){integer, scale};
    }
    return (struct rounded){0};
}

// An integer of 8 bits and a float of 16 have at most 19 digits together, so f32 held their product
// exactly, and one rounding to 16 bits gives the same.
bool tir_emit_small_pair(struct emit *e, const struct tir_inst *cast)
{
    if (cast == e->paired) { // the second one
        e->paired = NULL;
        return true;
    }
    const struct tir_inst *next = cast->next;
    const enum tir_elem to = cast->results[0]->type->elem;
    if (!half_of(e, to) || !next || next->op != TIR_OP_CAST || next->results[0]->type->elem != to)
        return false;
    const struct rounded a = rounded_of(cast), b = rounded_of(next);
    if (!a.integer || !b.integer || a.integer->type->elem != b.integer->type->elem ||
        !a.scale != !b.scale)
        return false;
    const bool is_signed = tir_elems[a.integer->type->elem].kind == TIR_KIND_SIGNED;
    V pair =
        small_pair(e, tir_emit_value(e, a.integer), tir_emit_value(e, b.integer), is_signed, to);
    if (!pair && a.scale) // f32 first, two of them rounded at a time
        pair = rounded_pair(e, a.integer, b.integer, to);
    if (!pair)
        return false;
    if (a.scale)
        pair = LLVMBuildFMul(
            e->b, pair, pair_of(e, tir_emit_value(e, a.scale), tir_emit_value(e, b.scale)), "");
    tir_emit_set(e, cast->results[0], LLVMBuildExtractElement(e->b, pair, tir_emit_i32(e, 0), ""));
    tir_emit_set(e, next->results[0], LLVMBuildExtractElement(e->b, pair, tir_emit_i32(e, 1), ""));
    e->paired = next;
    return true;
}
