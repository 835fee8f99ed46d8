// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of matrix products.

#include "machine/product.h"

static const struct tir_product products[] = {
#define PRODUCT(engine, elem, acc, kind, depth, feature) \
    {TIR_ENGINE_##engine, TIR_##elem, TIR_##acc, TIR_WORD_kind_##kind, depth, TIR_HAS_##feature},
#include "machine/product.def"
};

static bool is_byte(enum tir_elem e)
{
    return e == TIR_I8 || e == TIR_U8;
}

bool tir_elems_multiply(enum tir_elem a, enum tir_elem b)
{
    return a == b || (tir_elem_is_fp8(a) && tir_elem_is_fp8(b)) || (is_byte(a) && is_byte(b));
}

const struct tir_product *tir_product_find(enum tir_engine engine, enum tir_elem a, enum tir_elem b,
                                           enum tir_elem acc)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(products); i++)
        if (products[i].engine == engine && products[i].elem == a && products[i].acc == acc &&
            tir_elems_multiply(a, b))
            return &products[i];
    return NULL;
}

static const struct {
    enum tir_elem elem;
    enum tir_word kind, b_kind;
} kinds[] = {
#define KIND(elem, name)                                         \
    {                                                            \
        TIR_##elem, TIR_WORD_kind_##name, TIR_WORD_b_kind_##name \
    }
    KIND(E4M3, e4m3), KIND(E5M2, e5m2), KIND(E3M2, e3m2), KIND(E2M3, e2m3),
    KIND(E2M1, e2m1), KIND(I8, i8),     KIND(U8, u8),
#undef KIND
};

enum tir_word tir_b_kind(enum tir_elem a, enum tir_elem b)
{
    for (uint32_t i = 0; a != b && i < TIR_COUNT_OF(kinds); i++)
        if (kinds[i].elem == b)
            return kinds[i].b_kind;
    return TIR_WORD_NONE;
}

bool tir_kind_takes(enum tir_word kind, enum tir_word b_kind)
{
    enum tir_elem a = TIR_F32, b = TIR_F64; // which do not multiply
    for (uint32_t i = 0; i < TIR_COUNT_OF(kinds); i++) {
        a = kinds[i].kind == kind ? kinds[i].elem : a;
        b = kinds[i].b_kind == b_kind ? kinds[i].elem : b;
    }
    return b_kind == TIR_WORD_NONE || tir_elems_multiply(a, b);
}

const struct tir_product *tir_product_of_kind(enum tir_engine engine, enum tir_word kind)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(products); i++)
        if (products[i].engine == engine && products[i].kind == kind)
            return &products[i];
    return NULL;
}

static const struct tir_scaled scaled[] = {
#define SCALED(engine, elem, scale, kind, scales, feature)                       \
    {TIR_ENGINE_##engine,    TIR_##elem, TIR_##scale,      TIR_WORD_kind_##kind, \
     TIR_WORD_b_kind_##kind, scales,     TIR_HAS_##feature},
#include "machine/product.def"
};

const struct tir_scaled *tir_scaled_find(enum tir_engine engine, enum tir_elem elem,
                                         enum tir_elem scale)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(scaled); i++)
        if (scaled[i].engine == engine && scaled[i].elem == elem && scaled[i].scale == scale)
            return &scaled[i];
    return NULL;
}

const struct tir_scaled *tir_scaled_of_kind(enum tir_engine engine, enum tir_word kind,
                                            uint32_t scales)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(scaled); i++)
        if (scaled[i].engine == engine && scaled[i].kind == kind && scaled[i].scales == scales)
            return &scaled[i];
    return NULL;
}
