# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# An object for each TIR_X_INIT of a header: its type is tir_x.
s/^#define (TIR_(\w+)_INIT) .*/extern tir_\L\2 \2; tir_\2 \2 = \E\1;/p
