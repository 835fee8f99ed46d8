// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise operations and casts on scalars.
//
// Integers: where LLVM would have undefined behaviour (division, shifts, float to integer) the
// operands are made harmless first, so that what a program guards with `where` stays guarded.
// Floats: f32, f64, and the f16 and bf16 operations that round once run natively; the others are
// computed in f32 and rounded, which gives the same result for + - * / and the square root.

#include "target/nvptx/emit.h"

#include "ir/walk.h"

static bool is_signed(enum tir_elem elem)
{
    return tir_elems[elem].kind == TIR_KIND_SIGNED;
}

static unsigned int_bits(V x)
{
    return LLVMGetIntTypeWidth(LLVMTypeOf(x));
}

static V int_like(V like, int64_t value)
{
    return LLVMConstInt(LLVMTypeOf(like), (unsigned long long)value, true);
}

// Integers.

// Operands of a division that LLVM defines: b is never 0, and never -1 for signed types (*negate
// then says where the quotient is -a).
static V harmless_divisor(struct emit *e, const struct tir_inst *inst, V b, V *negate)
{
    const struct tir_value *divisor = inst->operands[1];
    *negate = NULL;
    V bad = NULL;
    if (!tir_emit_in_range(e, divisor, 1, INT64_MAX) &&
        !tir_emit_in_range(e, divisor, INT64_MIN, -1))
        bad = tir_emit_icmp(e, LLVMIntEQ, b, int_like(b, 0));
    if (is_signed(divisor->type->elem) && !tir_emit_in_range(e, divisor, 0, INT64_MAX) &&
        !tir_emit_in_range(e, divisor, INT64_MIN, -2)) {
        *negate = tir_emit_icmp(e, LLVMIntEQ, b, int_like(b, -1));
        bad = bad ? LLVMBuildOr(e->b, bad, *negate, "") : *negate;
    }
    return bad ? tir_emit_select(e, bad, int_like(b, 1), b) : b;
}

// Is a quotient to be rounded up by adding to a, as an unsigned number, in which two of signed
// types fit? The quotient by a constant is seen to be none below 0 then, too. LLVM makes more of
// one that is rounded down where the kernel divides by b elsewhere, or has elements: instcombine
// sees it (llvm.c).
static bool rounds_first(const struct emit *e, const struct tir_inst *inst)
{
    int64_t by;
    if (!is_signed(inst->operands[0]->type->elem) || !tir_is_const_int(inst->operands[1], &by) ||
        by < 2)
        return false;
    tir_foreach_inst(other, e->f)
        if (other->op == TIR_OP_LD || other->op == TIR_OP_ST || other->op == TIR_OP_ATOM ||
            (other->op == TIR_OP_DIV && other->operands[1] == inst->operands[1]))
            return false;
    return true;
}

static V int_divide(struct emit *e, const struct tir_inst *inst, V a, V b)
{
    V negate;
    b = harmless_divisor(e, inst, b, &negate);
    bool positive = tir_emit_in_range(e, inst->operands[0], 0, INT64_MAX) &&
                    tir_emit_in_range(e, inst->operands[1], 0, INT64_MAX);
    bool is_unsigned = positive || !is_signed(inst->operands[0]->type->elem);
    if (inst->op == TIR_OP_REM)
        return is_unsigned ? LLVMBuildURem(e->b, a, b, "") : LLVMBuildSRem(e->b, a, b, "");
    if (inst->op == TIR_OP_CEILDIV) { // a >= 0 and b > 0 are the operation's own conditions
        if (rounds_first(e, inst))
            return LLVMBuildUDiv(
                e->b, LLVMBuildAdd(e->b, a, LLVMBuildSub(e->b, b, int_like(b, 1), ""), ""), b, "");
        V quotient = LLVMBuildUDiv(e->b, a, b, "");
        V rest = LLVMBuildSub(e->b, a, LLVMBuildMul(e->b, quotient, b, ""), "");
        V more = tir_emit_icmp(e, LLVMIntNE, rest, int_like(a, 0));
        return LLVMBuildAdd(e->b, quotient, LLVMBuildZExt(e->b, more, LLVMTypeOf(a), ""), "");
    }
    V quotient = is_unsigned ? LLVMBuildUDiv(e->b, a, b, "") : LLVMBuildSDiv(e->b, a, b, "");
    return negate ? tir_emit_select(e, negate, LLVMBuildNeg(e->b, a, ""), quotient) : quotient;
}

static V int_shift(struct emit *e, const struct tir_inst *inst, V a, V b)
{
    unsigned bits = int_bits(a);
    bool in_range = tir_emit_in_range(e, inst->operands[1], 0, bits - 1);
    V last = int_like(a, bits - 1);
    if (inst->op == TIR_OP_SHR && is_signed(inst->operands[0]->type->elem))
        return LLVMBuildAShr(e->b, a, in_range ? b : tir_emit_binary(e, "llvm.umin", b, last), "");
    // LLVM 22 makes one instruction of the choice below, which looks at the low 32 bits of b alone.
    if (bits == 64 && !in_range)
        b = tir_emit_binary(e, "llvm.umin", b, int_like(b, bits));
    V fits = in_range ? NULL : tir_emit_icmp(e, LLVMIntULE, b, last);
    V by = in_range ? b : tir_emit_select(e, fits, b, int_like(b, 0));
    V shifted =
        inst->op == TIR_OP_SHL ? LLVMBuildShl(e->b, a, by, "") : LLVMBuildLShr(e->b, a, by, "");
    return in_range ? shifted : tir_emit_select(e, fits, shifted, int_like(a, 0));
}

static V int_add_like(struct emit *e, enum tir_op op, V a, V b, bool exact)
{
    if (op == TIR_OP_ADD)
        return exact ? LLVMBuildNSWAdd(e->b, a, b, "") : LLVMBuildAdd(e->b, a, b, "");
    if (op == TIR_OP_SUB)
        return exact ? LLVMBuildNSWSub(e->b, a, b, "") : LLVMBuildSub(e->b, a, b, "");
    return exact ? LLVMBuildNSWMul(e->b, a, b, "") : LLVMBuildMul(e->b, a, b, "");
}

static V int_operation(struct emit *e, const struct tir_inst *inst, const V *in, bool exact)
{
    bool sign = is_signed(inst->operands[0]->type->elem);
    V a = in[0], b = in[1];
    switch (inst->op) {
    case TIR_OP_ADD:
    case TIR_OP_SUB:
    case TIR_OP_MUL:
        return int_add_like(e, inst->op, a, b, exact);
    case TIR_OP_DIV:
    case TIR_OP_REM:
    case TIR_OP_CEILDIV:
        return int_divide(e, inst, a, b);
    case TIR_OP_SHL:
    case TIR_OP_SHR:
        return int_shift(e, inst, a, b);
    case TIR_OP_MIN:
        return tir_emit_binary(e, sign ? "llvm.smin" : "llvm.umin", a, b);
    case TIR_OP_MAX:
        return tir_emit_binary(e, sign ? "llvm.smax" : "llvm.umax", a, b);
    case TIR_OP_AND:
        return LLVMBuildAnd(e->b, a, b, "");
    case TIR_OP_OR:
        return LLVMBuildOr(e->b, a, b, "");
    case TIR_OP_XOR:
        return LLVMBuildXor(e->b, a, b, "");
    case TIR_OP_NOT:
        return LLVMBuildNot(e->b, a, "");
    case TIR_OP_NEG:
        return LLVMBuildNeg(e->b, a, "");
    case TIR_OP_POPCOUNT:
        return tir_emit_unary(e, "llvm.ctpop", a);
    case TIR_OP_LEADING_ZEROS: {
        LLVMTypeRef type = LLVMTypeOf(a);
        return tir_llvm_call(e->ll, "llvm.ctlz", &type, 1,
                             (V[]){a, LLVMConstInt(e->ll->i1, 0, false)}, 2);
    }
    case TIR_OP_ABS: {
        LLVMTypeRef type = LLVMTypeOf(a);
        return sign ? tir_llvm_call(e->ll, "llvm.abs", &type, 1,
                                    (V[]){a, LLVMConstInt(e->ll->i1, 0, false)}, 2)
                    : a;
    }
    default:
        tir_unreachable();
    }
}

// Whether the low halves of 64-bit operands give the low half of the result.
static bool is_low_enough(enum tir_op op)
{
    return op == TIR_OP_ADD || op == TIR_OP_SUB || op == TIR_OP_MUL || op == TIR_OP_AND ||
           op == TIR_OP_OR || op == TIR_OP_XOR || op == TIR_OP_NOT || op == TIR_OP_NEG;
}

// Whether it counts bits, of which a narrow operand has fewer.
static bool counts_bits(enum tir_op op)
{
    return op == TIR_OP_POPCOUNT || op == TIR_OP_LEADING_ZEROS;
}

static bool are_narrow(const struct emit *e, const struct tir_inst *inst, uint32_t from)
{
    for (uint32_t i = from; i < inst->operand_count; i++)
        if (!tir_emit_is_narrow(e, inst->operands[i]))
            return false;
    return true;
}

static void emit_integer(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *result = inst->results[0];
    bool inputs = are_narrow(e, inst, 0), output = e->slots[result->id].narrow;
    bool half = output && (inputs || is_low_enough(inst->op)) && !counts_bits(inst->op);
    V in[3] = {0};
    for (uint32_t i = 0; i < inst->operand_count; i++)
        in[i] =
            half ? tir_emit_value32(e, inst->operands[i]) : tir_emit_value(e, inst->operands[i]);
    // Narrow inputs cannot overflow 64 bits; nor 32 when the true result fits.
    bool exact = inputs || tir_emit_is_exact(e, inst);
    V v = int_operation(e, inst, in, exact);
    if (half)
        tir_emit_set32(e, result, v);
    else
        tir_emit_set(e, result, v);
}

// Floats.

// The type an operation is computed in.
static enum tir_elem computed_in(enum tir_op op, enum tir_elem elem)
{
    if (elem == TIR_F64 || elem == TIR_F32)
        return elem;
    bool native = op == TIR_OP_ADD || op == TIR_OP_SUB || op == TIR_OP_MUL || op == TIR_OP_FMA ||
                  op == TIR_OP_NEG || op == TIR_OP_ABS || op == TIR_OP_MIN || op == TIR_OP_MAX;
    return native && (elem == TIR_F16 || elem == TIR_BF16) ? elem : TIR_F32;
}

static V float_operation(struct emit *e, enum tir_op op, const V *in)
{
    V a = in[0], b = in[1];
    switch (op) {
    case TIR_OP_ADD:
        return LLVMBuildFAdd(e->b, a, b, "");
    case TIR_OP_SUB:
        return LLVMBuildFSub(e->b, a, b, "");
    case TIR_OP_MUL:
        return LLVMBuildFMul(e->b, a, b, "");
    case TIR_OP_DIV_APPROX:
        if (LLVMTypeOf(a) == e->ll->f32)
            return tir_llvm_call(e->ll, "llvm.nvvm.div.full", NULL, 0, (V[]){a, b}, 2);
        return LLVMBuildFDiv(e->b, a, b, "");
    case TIR_OP_DIV:
        return LLVMBuildFDiv(e->b, a, b, "");
    case TIR_OP_REM:
        return tir_emit_remainder(e, a, b);
    case TIR_OP_POW:
        return tir_emit_pow(e, a, b);
    case TIR_OP_NEG:
        return LLVMBuildFNeg(e->b, a, "");
    case TIR_OP_ABS:
        return tir_emit_unary(e, "llvm.fabs", a);
    case TIR_OP_MIN:
        return tir_emit_binary(e, "llvm.minimum", a, b);
    case TIR_OP_MAX:
        return tir_emit_binary(e, "llvm.maximum", a, b);
    case TIR_OP_FMA:
        return tir_emit_fma(e, a, b, in[2]);
    case TIR_OP_FLOOR:
        return tir_emit_unary(e, "llvm.floor", a);
    case TIR_OP_CEIL:
        return tir_emit_unary(e, "llvm.ceil", a);
    case TIR_OP_ROUND:
        return tir_emit_unary(e, "llvm.roundeven", a);
    case TIR_OP_TRUNC:
        return tir_emit_unary(e, "llvm.trunc", a);
    case TIR_OP_SQRT:
        return tir_emit_unary(e, "llvm.sqrt", a);
    default:
        return tir_emit_math(e, op, a);
    }
}

static V emit_float(struct emit *e, const struct tir_elementwise *kind, const V *operands)
{
    enum tir_elem elem = kind->to, in_elem = computed_in(kind->op, elem);
    V in[TIR_ELEMENTWISE_OPERANDS] = {0};
    for (uint32_t i = 0; i < TIR_ELEMENTWISE_OPERANDS && operands[i]; i++)
        in[i] = tir_emit_convert(e, operands[i], elem, in_elem);
    V v = float_operation(e, kind->op, in);
    return v ? tir_emit_convert(e, v, in_elem, elem) : NULL;
}

// Comparisons, choice.

struct comparison {
    enum tir_op op;
    LLVMIntPredicate signed_, unsigned_;
    LLVMRealPredicate real;
};

static const struct comparison *comparison_of(enum tir_op op)
{
    static const struct comparison rows[] = {
        {TIR_OP_EQ, LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ},
        {TIR_OP_NE, LLVMIntNE, LLVMIntNE, LLVMRealUNE},
        {TIR_OP_LT, LLVMIntSLT, LLVMIntULT, LLVMRealOLT},
        {TIR_OP_LE, LLVMIntSLE, LLVMIntULE, LLVMRealOLE},
        {TIR_OP_GT, LLVMIntSGT, LLVMIntUGT, LLVMRealOGT},
        {TIR_OP_GE, LLVMIntSGE, LLVMIntUGE, LLVMRealOGE},
    };
    const struct comparison *row = rows;
    while (row->op != op)
        row++;
    return row;
}

static bool is_comparison(enum tir_op op)
{
    return op == TIR_OP_EQ || op == TIR_OP_NE || op == TIR_OP_LT || op == TIR_OP_LE ||
           op == TIR_OP_GT || op == TIR_OP_GE;
}

static V compare_floats(struct emit *e, const struct tir_elementwise *kind, const V *operands)
{
    V in[2] = {operands[0], operands[1]};
    if (tir_elems[kind->from].bits <= 8)
        for (uint32_t i = 0; i < 2; i++)
            in[i] = tir_emit_convert(e, in[i], kind->from, TIR_F32);
    return tir_emit_fcmp(e, comparison_of(kind->op)->real, in[0], in[1]);
}

static void compare_integers(struct emit *e, const struct tir_inst *inst)
{
    const struct comparison *is = comparison_of(inst->op);
    enum tir_elem elem = inst->operands[0]->type->elem;
    bool half = are_narrow(e, inst, 0);
    V in[2];
    for (uint32_t i = 0; i < 2; i++)
        in[i] =
            half ? tir_emit_value32(e, inst->operands[i]) : tir_emit_value(e, inst->operands[i]);
    tir_emit_set(e, inst->results[0],
                 tir_emit_icmp(e, is_signed(elem) ? is->signed_ : is->unsigned_, in[0], in[1]));
}

static void emit_where(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *result = inst->results[0];
    bool half = e->slots[result->id].narrow;
    V cond = tir_emit_value(e, inst->operands[0]), in[2];
    for (uint32_t i = 0; i < 2; i++)
        in[i] = half ? tir_emit_value32(e, inst->operands[i + 1])
                     : tir_emit_value(e, inst->operands[i + 1]);
    V v = tir_emit_select_bytes(e, cond, in[0], in[1]);
    v = v ? v : tir_emit_select(e, cond, in[0], in[1]);
    if (half)
        tir_emit_set32(e, result, v);
    else
        tir_emit_set(e, result, v);
}

// Casts.

// A bf16 is the upper half of an f32: one that was loaded as half of a word takes one instruction.
static V bf16_to_f32(struct emit *e, V x)
{
    V pair = LLVMIsAExtractElementInst(x) ? LLVMGetOperand(x, 0) : NULL;
    V word = pair && LLVMIsABitCastInst(pair) ? LLVMGetOperand(pair, 0) : NULL;
    if (!word || LLVMTypeOf(word) != e->ll->i32)
        return LLVMBuildFPExt(e->b, x, e->ll->f32, "");
    bool upper = LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
    V bits = upper ? LLVMBuildAnd(e->b, word, int_like(word, 0xffff0000), "")
                   : LLVMBuildShl(e->b, word, int_like(word, 16), "");
    return LLVMBuildBitCast(e->b, bits, e->ll->f32, "");
}

static V float_to_float(struct emit *e, V x, enum tir_elem from, enum tir_elem to)
{
    if (tir_elems[from].bits <= 8)
        return tir_emit_convert(e, tir_emit_from_fp8(e, x, from), TIR_F32, to);
    if (tir_elems[to].bits <= 8 || to == TIR_TF32) {
        // A second rounding after f64 to f32 would be wrong for halfway cases: round that to odd.
        V f32 = from == TIR_F64 ? tir_emit_f32_to_odd(e, x) : float_to_float(e, x, from, TIR_F32);
        return to == TIR_TF32 ? tir_emit_to_tf32(e, f32) : tir_emit_to_fp8(e, f32, to);
    }
    LLVMTypeRef type = tir_emit_elem_type(e, to);
    if (LLVMTypeOf(x) == type)
        return x;
    if (from == TIR_BF16 && to == TIR_F32)
        return bf16_to_f32(e, x);
    if (tir_elems[from].bits == 16 && tir_elems[to].bits == 16)
        x = LLVMBuildFPExt(e->b, x, e->ll->f32, "");
    return tir_elems[to].bits > tir_elems[from].bits ? LLVMBuildFPExt(e->b, x, type, "")
                                                     : LLVMBuildFPTrunc(e->b, x, type, "");
}

// An i64 or u64 whose low 24 bits are replaced by one sticky bit when it is large: f64 then holds
// it exactly, and rounding that to a shorter type rounds only once.
static V sticky_int(struct emit *e, V x, bool sign)
{
    V low = LLVMBuildAnd(e->b, x, int_like(x, 0xffffff), "");
    V sticky =
        LLVMBuildZExt(e->b, tir_emit_icmp(e, LLVMIntNE, low, int_like(x, 0)), e->ll->i64, "");
    V high = LLVMBuildOr(e->b, LLVMBuildXor(e->b, x, low, ""),
                         LLVMBuildShl(e->b, sticky, int_like(x, 24), ""), "");
    V size = sign ? tir_llvm_call(e->ll, "llvm.abs", &e->ll->i64, 1,
                                  (V[]){x, LLVMConstInt(e->ll->i1, 0, false)}, 2)
                  : x;
    V large = tir_emit_icmp(e, LLVMIntUGE, size, int_like(x, INT64_C(1) << 50));
    return tir_emit_select(e, large, high, x);
}

static V int_to_float(struct emit *e, V x, bool sign, enum tir_elem to)
{
    unsigned bits = int_bits(x);
    V small = bits <= 16 && to != TIR_F64 ? tir_emit_small_int(e, x, sign) : NULL;
    if (small)
        return float_to_float(e, small, TIR_F32, to);
    bool direct = to == TIR_F32 || to == TIR_F64 || to == TIR_F16;
    enum tir_elem via = direct ? to : bits <= 16 ? TIR_F32 : TIR_F64;
    if (!direct && bits == 64)
        x = sticky_int(e, x, sign);
    LLVMTypeRef type = tir_emit_elem_type(e, via);
    V f = sign ? LLVMBuildSIToFP(e->b, x, type, "") : LLVMBuildUIToFP(e->b, x, type, "");
    if (via == TIR_F64 && to == TIR_BF16) { // of the two casts LLVM makes one by f32 before sm_90
        f = tir_emit_f32_to_odd(e, f);
        via = TIR_F32;
    }
    return direct ? f : float_to_float(e, f, via, to);
}

// cvt.rzi saturates. NaN gives 0 only between f32 and 32-bit integers, so the other forms test for
// it; narrower integers are clamped afterwards.
static V float_to_int(struct emit *e, V x, enum tir_elem from, enum tir_elem to)
{
    static const char *const names[2][2][2] = {
        {{"llvm.nvvm.f2ui.rz", "llvm.nvvm.f2i.rz"}, {"llvm.nvvm.f2ull.rz", "llvm.nvvm.f2ll.rz"}},
        {{"llvm.nvvm.d2ui.rz", "llvm.nvvm.d2i.rz"}, {"llvm.nvvm.d2ull.rz", "llvm.nvvm.d2ll.rz"}}};
    bool wide_in = from == TIR_F64, wide_out = tir_elems[to].bits == 64, sign = is_signed(to);
    if (!wide_in)
        x = float_to_float(e, x, from, TIR_F32);
    V v = tir_llvm_call(e->ll, names[wide_in][wide_out][sign], NULL, 0, &x, 1);
    if (wide_in || wide_out)
        v = tir_emit_select(e, tir_emit_fcmp(e, LLVMRealUNO, x, x), int_like(v, 0), v);
    unsigned bits = tir_elems[to].bits;
    if (bits >= 32)
        return v;
    int64_t top = sign ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
    v = tir_emit_binary(e, sign ? "llvm.smin" : "llvm.umin", v, int_like(v, top));
    if (sign)
        v = tir_emit_binary(e, "llvm.smax", v, int_like(v, -top - 1));
    return LLVMBuildTrunc(e->b, v, tir_emit_elem_type(e, to), "");
}

static V int_to_int(struct emit *e, V x, bool sign, enum tir_elem to)
{
    LLVMTypeRef type = tir_emit_elem_type(e, to);
    if (int_bits(x) >= tir_elems[to].bits)
        return int_bits(x) == tir_elems[to].bits ? x : LLVMBuildTrunc(e->b, x, type, "");
    return sign ? LLVMBuildSExt(e->b, x, type, "") : LLVMBuildZExt(e->b, x, type, "");
}

V tir_emit_convert(struct emit *e, V x, enum tir_elem from, enum tir_elem to)
{
    if (from == to)
        return x;
    if (to == TIR_BOOL) {
        if (!tir_elem_is_float(from))
            return tir_emit_icmp(e, LLVMIntNE, x, int_like(x, 0));
        V f = tir_elems[from].bits <= 8 ? tir_emit_from_fp8(e, x, from) : x;
        return tir_emit_fcmp(e, LLVMRealUNE, f, tir_emit_const(f, 0));
    }
    if (from == TIR_BOOL && !tir_elem_is_float(to))
        return LLVMBuildZExt(e->b, x, tir_emit_elem_type(e, to), "");
    if (from == TIR_BOOL) {
        V one = LLVMConstReal(e->ll->f32, 1), zero = LLVMConstReal(e->ll->f32, 0);
        return float_to_float(e, tir_emit_select(e, x, one, zero), TIR_F32, to);
    }
    if (tir_elem_is_float(from))
        return tir_elem_is_float(to) ? float_to_float(e, x, from, to)
                                     : float_to_int(e, x, from, to);
    bool sign = is_signed(from);
    return tir_elem_is_float(to) ? int_to_float(e, x, sign, to) : int_to_int(e, x, sign, to);
}

static void emit_cast(struct emit *e, const struct tir_inst *inst)
{
    const struct tir_value *x = inst->operands[0], *result = inst->results[0];
    enum tir_elem from = x->type->elem, to = result->type->elem;
    if (from == TIR_I64 && to != TIR_BOOL && tir_emit_is_narrow(e, x)) {
        V half = tir_emit_value32(e, x); // the same number
        if (e->slots[result->id].narrow)
            tir_emit_set32(e, result, half);
        else
            tir_emit_set(e, result, tir_emit_convert(e, half, TIR_I32, to));
        return;
    }
    V v = tir_emit_value(e, x);
    bool to_index = tir_elem_is_int(from) && tir_elems[from].bits <= 32;
    if (e->slots[result->id].narrow && to_index) // an index that fits in 32 bits
        tir_emit_set32(e, result,
                       tir_emit_convert(e, v, from, is_signed(from) ? TIR_I32 : TIR_U32));
    else
        tir_emit_set(e, result, tir_emit_convert(e, v, from, to));
}

static void emit_bitcast(struct emit *e, const struct tir_inst *inst)
{
    V v = tir_emit_value(e, inst->operands[0]);
    LLVMTypeRef type = tir_emit_type(e, inst->results[0]->type);
    if (LLVMTypeOf(v) == e->ll->i1)
        v = LLVMBuildZExt(e->b, v, e->ll->i8, "");
    v = type == e->ll->i1 ? LLVMBuildTrunc(e->b, v, type, "") : tir_emit_bits(e, v, type);
    tir_emit_set(e, inst->results[0], tir_emit_narrow_bits(e, v, inst->results[0]->type->elem));
}

// Elementwise operations with floats: what they give depends on their operands alone.

bool tir_emit_is_elementwise(const struct emit *e, const struct tir_inst *inst,
                             struct tir_elementwise *kind)
{
    if (tir_emitter_of(inst->op) != tir_emit_arith || inst->op == TIR_OP_WHERE ||
        inst->op == TIR_OP_BITCAST)
        return false;
    *kind = (struct tir_elementwise){inst->op, inst->operands[0]->type->elem,
                                     inst->results[0]->type->elem};
    return (tir_elem_is_float(kind->from) || tir_elem_is_float(kind->to)) &&
           !tir_emit_is_narrow(e, inst->operands[0]);
}

V tir_emit_elementwise(struct emit *e, const struct tir_elementwise *kind, const V *in)
{
    if (kind->op == TIR_OP_CAST)
        return tir_emit_convert(e, in[0], kind->from, kind->to);
    return is_comparison(kind->op) ? compare_floats(e, kind, in) : emit_float(e, kind, in);
}

static void emit_elementwise(struct emit *e, const struct tir_inst *inst,
                             const struct tir_elementwise *kind)
{
    const struct tir_value *result = inst->results[0];
    V in[TIR_ELEMENTWISE_OPERANDS] = {0};
    for (uint32_t i = 0; i < inst->operand_count; i++)
        in[i] = tir_emit_value(e, inst->operands[i]);
    if (kind->op == TIR_OP_CAST && kind->from == TIR_F32 && tir_elems[kind->to].bits == 16 &&
        tir_emit_pairs_early(e, inst->operands[0]))
        in[0] = tir_emit_in_place(e, in[0]);
    V v = tir_emit_call(e, kind, in);
    if (!v)
        v = tir_emit_elementwise(e, kind, in);
    const char *name = tir_ops[kind->op].name, *elem = tir_elems[kind->to].name;
    if (!v)
        v = tir_emit_unsupported(e, result->type,
                                 tir_str_format(e->arena, "%s of %s", name, elem).ptr);
    tir_emit_set(e, result, v);
}

void tir_emit_arith(struct emit *e, const struct tir_inst *inst)
{
    struct tir_elementwise kind;
    if (inst->op == TIR_OP_CAST && tir_emit_small_pair(e, inst))
        return;
    if (inst->op == TIR_OP_EXP2 && tir_emit_exp2_run(e, inst))
        return;
    if (tir_emit_is_elementwise(e, inst, &kind))
        emit_elementwise(e, inst, &kind);
    else if (is_comparison(inst->op))
        compare_integers(e, inst);
    else if (inst->op == TIR_OP_WHERE)
        emit_where(e, inst);
    else if (inst->op == TIR_OP_CAST)
        emit_cast(e, inst);
    else if (inst->op == TIR_OP_BITCAST)
        emit_bitcast(e, inst);
    else
        emit_integer(e, inst);
}
