// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rings of buffers from which tensor copies store; a part of specialize_warps.
#ifndef TIR_PASS_ROLE_STORE_RING_H
#define TIR_PASS_ROLE_STORE_RING_H

#include "pass/pass.h"

typedef VEC(struct tir_inst *) tir_inst_list;

// Makes rings of the buffers from which tensor copies store, if they have no other use, and adds
// the rings to the list. The program stays sequential: a put and its get.
void tir_make_store_rings(struct tir_func *f, struct tir_pass_cx *cx, tir_inst_list *rings);

#endif
