// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many registers of tensor memory are loaded and stored at once.
#ifndef TIR_PASS_PIECES_H
#define TIR_PASS_PIECES_H

#include "ir/ir.h"

// Of a lowered kernel. Returns whether anything changed.
bool tir_move_in_pieces(struct tir_func *f, struct tir_arena *scratch);
// A load or store of more than a piece. pieces: gets the results of a load and what they are now.
// False: it is none.
bool tir_cut_in_pieces(struct tir_func *f, struct tir_inst *inst, struct tir_map *pieces);

#endif
