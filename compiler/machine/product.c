// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of matrix products.

#include "machine/product.h"

static const struct tir_product products[] = {
#define PRODUCT(engine, elem, acc, kind, depth, feature) \
    {TIR_ENGINE_##engine, TIR_##elem, TIR_##acc, TIR_WORD_kind_##kind, depth, TIR_HAS_##feature},
#include "machine/product.def"
};

const struct tir_product *tir_product_find(enum tir_engine engine, enum tir_elem elem,
                                           enum tir_elem acc)
{
    for (uint32_t i = 0; i < TIR_COUNT_OF(products); i++)
        if (products[i].engine == engine && products[i].elem == elem && products[i].acc == acc)
            return &products[i];
    return NULL;
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
