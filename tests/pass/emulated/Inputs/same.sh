#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs kernels of FILE on the emulator, which looks for everything it knows, under several schedules:
# each must give exactly what kernel `plain` gives, and that what the interpreter gives.
# Usage: same.sh TIRC FILE OUTPUT "KERNEL ..." "ARGUMENT ..." ARGUMENTS...
# Each ARGUMENT of the list is tried in turn, with all ARGUMENTS.
set -eu
tirc=$1 file=$2 out=$3 kernels=$4 each=$5
shift 5
for argument in $each; do
    "$tirc" run "$file" --device=emu --kernel=plain --check "$@" "$argument" "D=@$out.plain.npy" >"$out.log"
    for kernel in $kernels; do
        for schedule in lazy eager adversarial; do
            "$tirc" run "$file" --device=emu --arch=sm_90a --kernel="$kernel" --emu-check=full \
                --schedule="$schedule" "$@" "$argument" "D=@$out.npy" >"$out.log"
            cmp "$out.plain.npy" "$out.npy" || { echo "$kernel, $argument, $schedule"; exit 1; }
        done
    done
done
