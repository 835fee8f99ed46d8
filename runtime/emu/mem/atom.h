// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations by name and type.
#ifndef EMU_ATOM_H
#define EMU_ATOM_H

#include "emu/decode/program.h"

// "add" "min" ... NULL, in the order emu_atom_find counts.
extern const char *const emu_atom_names[];

// NULL when PTX has no such operation.
emu_atom_fn emu_atom_find(int op, enum emu_type type);

#endif
