// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations with one right answer give it bit for bit: generated code, run on the emulator,
// against ir/number.h, the definition that the interpreter and constant folding use.

#include "rig.h"

#include <math.h>

#include "ir/number.h"

// A bit pattern of the type: anything, or a small number, or an extreme one.
static uint64_t pattern(uint64_t *seed, enum tir_elem elem)
{
    uint64_t random = next(seed);
    union tir_number n;
    if (elem == TIR_BOOL)
        return random & 1;
    if (random % 3 == 0) {
        uint64_t any = next(seed) & (UINT64_MAX >> (64 - tir_elem_width(elem)));
        return elem == TIR_TF32 ? any & ~UINT64_C(0x1fff) : any; // values are rounded already
    }
    if (tir_elem_is_float(elem)) {
        static const double extremes[] = {0,   -0.0,  INFINITY, -INFINITY, NAN,
                                          448, 57344, 65504,    1e-8};
        n.f = random % 16 == 1
                  ? extremes[next(seed) % TIR_COUNT_OF(extremes)]
                  : ldexp((double)(int64_t)next(seed), -62 + (int)(next(seed) % 24) - 8);
        n.f = tir_number_round(elem, tir_elem_is_scale(elem) ? fabs(n.f) : n.f);
    } else {
        static const int64_t extremes[] = {0,         1,         -1,        INT64_MAX,
                                           INT64_MIN, INT32_MAX, INT32_MIN, 255};
        n.i = random % 3 == 1 ? extremes[next(seed) % TIR_COUNT_OF(extremes)]
                              : (int64_t)(next(seed) % 41) - 20;
        n.i = tir_number_wrap(elem, n.i);
    }
    return tir_number_encode(elem, n);
}

static void store(void *to, int i, enum tir_elem elem, uint64_t bits)
{
    unsigned size = tir_elems[elem].bits / 8;
    memcpy((char *)to + i * (int)size, &bits, size); // little endian, like the device
}

static uint64_t load(const void *from, int i, enum tir_elem elem)
{
    unsigned size = tir_elems[elem].bits / 8;
    uint64_t bits = 0;
    memcpy(&bits, (const char *)from + i * (int)size, size);
    return bits;
}

static bool same(enum tir_elem elem, uint64_t got, union tir_number right)
{
    if (tir_elem_is_float(elem) && isnan(right.f))
        return isnan(tir_number_decode(elem, got).f);
    return got == tir_number_encode(elem, right);
}

static char x[3][COUNT * 8], o[COUNT * 8];

static void fill(enum tir_op op, enum tir_elem elem)
{
    uint64_t seed = 0x9e3779b97f4a7c15u + (uint64_t)op * 31 + (uint64_t)elem;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < COUNT; i++) {
            enum tir_elem own = op == TIR_OP_WHERE && k == 0 ? TIR_BOOL : elem;
            store(x[k], i, own, pattern(&seed, own));
        }
}

// Where a device may give anything.
static bool is_open(enum tir_op op, enum tir_elem elem, const union tir_number *in)
{
    if (!tir_elem_is_int(elem))
        return false;
    bool unsigned64 = elem == TIR_U64;
    if ((op == TIR_OP_DIV || op == TIR_OP_REM) && in[1].i == 0)
        return true;
    return op == TIR_OP_CEILDIV &&
           ((in[0].i < 0 && !unsigned64) || (in[1].i <= 0 && !unsigned64) || in[1].i == 0);
}

static void check_operation(struct rig *r, const char *arch, enum tir_op op, enum tir_elem elem)
{
    bool compare = op >= TIR_OP_EQ && op <= TIR_OP_GE;
    enum tir_elem to = compare ? TIR_BOOL : elem;
    fill(op, elem);
    run(r, arch, op, elem, x[0], x[1], x[2], to, o);
    for (int i = 0; i < COUNT; i++) {
        union tir_number in[3], right;
        for (int k = 0; k < 3; k++) {
            enum tir_elem own = op == TIR_OP_WHERE && k == 0 ? TIR_BOOL : elem;
            in[k] = tir_number_decode(own, load(x[k], i, own));
        }
        if (is_open(op, elem, in))
            continue;
        assert_true(tir_number_apply(op, elem, in, &right));
        if (!same(to, load(o, i, to), right))
            fail_msg("%s %s on %s: of bits %llx, %llx, %llx gives %llx, not %llx", tir_ops[op].name,
                     tir_elems[elem].name, arch, (unsigned long long)load(x[0], i, elem),
                     (unsigned long long)load(x[1], i, elem),
                     (unsigned long long)load(x[2], i, elem), (unsigned long long)load(o, i, to),
                     (unsigned long long)tir_number_encode(to, right));
    }
}

static bool takes(enum tir_op op, enum tir_elem elem)
{
    enum tir_elem_class class = tir_ops[op].elems;
    bool is_float = tir_elem_is_float(elem);
    if (op == TIR_OP_REM && elem == TIR_F64)
        return false;
    // Computed in f32, so rounded twice: fma of tf32 and the 8-bit floats, sums of scales.
    if (op == TIR_OP_FMA && (elem == TIR_TF32 || tir_elems[elem].bits <= 8))
        return false;
    if (elem == TIR_UE8M0 && op < TIR_OP_EQ)
        return false;
    return class == TIR_CLASS_ANY || (class == TIR_CLASS_NUM && elem != TIR_BOOL) ||
           (class == TIR_CLASS_FLOAT && is_float) ||
           (class == TIR_CLASS_INT && tir_elem_is_int(elem)) ||
           (class == TIR_CLASS_BITS && !is_float);
}

static void operations_are_exact(void **state)
{
    static const enum tir_op ops[] = {
        TIR_OP_ADD,  TIR_OP_SUB,   TIR_OP_MUL,   TIR_OP_DIV,  TIR_OP_REM,  TIR_OP_CEILDIV,
        TIR_OP_NEG,  TIR_OP_ABS,   TIR_OP_MIN,   TIR_OP_MAX,  TIR_OP_AND,  TIR_OP_OR,
        TIR_OP_XOR,  TIR_OP_NOT,   TIR_OP_SHL,   TIR_OP_SHR,  TIR_OP_FMA,  TIR_OP_FLOOR,
        TIR_OP_CEIL, TIR_OP_ROUND, TIR_OP_TRUNC, TIR_OP_SQRT, TIR_OP_EQ,   TIR_OP_NE,
        TIR_OP_LT,   TIR_OP_LE,    TIR_OP_GT,    TIR_OP_GE,   TIR_OP_WHERE};
    for (uint32_t i = 0; i < TIR_COUNT_OF(ops); i++)
        for (int elem = TIR_BOOL; elem < TIR_MBARRIER; elem++)
            if (takes(ops[i], (enum tir_elem)elem)) {
                check_operation(*state, "sm_80", ops[i], (enum tir_elem)elem);
                if (tir_elem_is_float((enum tir_elem)elem))
                    check_operation(*state, "sm_90a", ops[i], (enum tir_elem)elem);
            }
}

static void check_cast(struct rig *r, const char *arch, enum tir_elem from, enum tir_elem to)
{
    fill(TIR_OP_CAST, from);
    run(r, arch, TIR_OP_CAST, from, x[0], NULL, NULL, to, o);
    for (int i = 0; i < COUNT; i++) {
        union tir_number in = tir_number_decode(from, load(x[0], i, from));
        if (!same(to, load(o, i, to), tir_number_cast(to, from, in)))
            fail_msg("%s to %s on %s: %llx gives %llx, not %llx", tir_elems[from].name,
                     tir_elems[to].name, arch, (unsigned long long)load(x[0], i, from),
                     (unsigned long long)load(o, i, to),
                     (unsigned long long)tir_number_encode(to, tir_number_cast(to, from, in)));
    }
}

static void casts_are_exact(void **state)
{
    for (int from = TIR_BOOL; from < TIR_MBARRIER; from++)
        for (int to = TIR_BOOL; to < TIR_MBARRIER; to++) {
            if (from == to)
                continue;
            check_cast(*state, "sm_80", (enum tir_elem)from, (enum tir_elem)to);
            check_cast(*state, "sm_90a", (enum tir_elem)from, (enum tir_elem)to);
            if (tir_elems[from].bits <= 8 || tir_elems[to].bits <= 8)
                check_cast(*state, "sm_100a", (enum tir_elem)from, (enum tir_elem)to);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_exact),
        cmocka_unit_test(casts_are_exact),
    };
    return cmocka_run_group_tests_name("exact", tests, start, finish);
}
