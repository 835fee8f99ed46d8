// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles that walk together, for passes beside `cluster`.
#ifndef TIR_PASS_ROLE_CLUSTER_H
#define TIR_PASS_ROLE_CLUSTER_H

#include "pass/pass.h"

// Why the kernel's tiles cannot walk together as their clause asks, since a tile beyond the last
// would be seen; NULL: they can.
const char *tir_cluster_refusal(struct tir_func *f, struct tir_pass_cx *cx);
// Has the product the shape that two CTAs multiply together, and are they asked to?
// (tensor_memory_pair.c)
bool tir_tmem_suits_pair(const struct tir_inst *tiles, const struct tir_inst *dot);
// Takes the clause: the kernel's tiles become those of its clusters, and it gets their size.
void tir_cluster_widen(struct tir_func *f, struct tir_pass_cx *cx);

#endif
