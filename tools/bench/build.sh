#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds, without a GPU, all that the checks and timings need on a machine that has one but no LLVM:
# a static tirc, libtirrt.so, the kernels and the scripts, packed into FOLDER/kit.tar.gz.
# Usage: tools/bench/build.sh [FOLDER]   (default build-device); PTXAS=PATH also reports registers
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build-device}

[ -f "$out/meson/build.ninja" ] ||
    meson setup "$out/meson" -Dllvm=static -Dtests=enabled -Dbuildtype=release
ninja -C "$out/meson" -j "${JOBS:-2}" \
    compiler/tirc tools/bench/bench_launch tools/bench/bench_first_launch \
    tools/bench/bench_compile_time \
    tests/runtime/runtime_device
rm -rf "$out/kit"
mkdir -p "$out/kit/tools" "$out/kit/tests"
strip -o "$out/kit/tirc" "$out/meson/compiler/tirc"
strip -o "$out/kit/bench_compile_time" "$out/meson/tools/bench/bench_compile_time"
cp -L "$out/meson/runtime/libtirrt.so" "$out/kit/libtirrt.so.1"
ln -s libtirrt.so.1 "$out/kit/libtirrt.so"
cp "$out/meson/tools/bench/bench_launch" "$out/meson/tools/bench/bench_first_launch" \
    "$out/meson/tests/runtime/runtime_device" "$out/kit/"
cp -L "$(ldd "$out/kit/runtime_device" | awk '/libcmocka/ { print $3 }')" "$out/kit/"
cp -R examples "$out/kit/"
cp -R tools/bench tools/blackwell_model.py "$out/kit/tools/"
cp -R tests/device tests/examples tests/run "$out/kit/tests/"
# A kernel that does not compile is listed; the others are still worth a run.
python3 tools/bench/artifacts.py --tirc "$out/kit/tirc" --out "$out/kit/kernels" \
    ${PTXAS:+--ptxas "$PTXAS"} || true
tar -C "$out" -czf "$out/kit.tar.gz" kit
ls -l "$out/kit.tar.gz"
