// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of interned types and layouts; only type.c and layout.c look inside.
#ifndef TIR_IR_TYPE_TABLE_H
#define TIR_IR_TYPE_TABLE_H

#include "base/map.h"
#include "ir/layout.h"
#include "ir/type.h"

struct tir_type_node {
    struct tir_type type;
    struct tir_type_node *next; // same hash
};

struct tir_layout_node {
    struct tir_layout layout;
    struct tir_layout_node *next; // same hash
};

struct tir_types {
    struct tir_arena *arena;
    const struct tir_type *scalars[TIR_ELEM_COUNT]; // NULL: not asked for yet
    struct tir_map types;                           // hash -> struct tir_type_node
    struct tir_map layouts;                         // hash -> struct tir_layout_node
};

#endif
