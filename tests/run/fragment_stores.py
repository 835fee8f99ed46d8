#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of wgmma fragments to shared memory by stmatrix, on the emulator.

usage: fragment_stores.py TIRC

Each tile holds the number of each of its elements; what lies in the buffer afterwards is read one
element at a time. The buffer has the tile's rows, or, turned, its columns.
"""

import os
import struct
import subprocess
import sys
import tempfile

from warpgroup_gemm import Gemm

CASES = [(64, 64, False, 128), (64, 64, True, 128), (64, 24, False, 0), (64, 24, True, 128),
         (64, 8, False, 0), (64, 8, True, 64), (128, 16, False, 32), (128, 16, True, 32),
         (128, 96, True, 0), (192, 40, False, 0)]


def program(m, n, turned, swizzle):
    rows, columns = (n, m) if turned else (m, n)
    memory = f"swizzle({swizzle})" if swizzle else "row_major"
    fragment = Gemm(bm=m, bn=n, m_groups=1, elem="f16").fragment(n)
    turn = f"let turned: shared f16[{m}, {n}] = permute(whole, permutation = [1, 0]);"
    return f"""
kernel stores(X: f16[{m}, {n}], Y: out f16[{rows}, {columns}])
    grid(1) threads(128) form(synced) facts(vector16, unit_inner) shared({2 * m * n})
{{
    let o: shared f16[{rows}, {columns}] in {memory} = alloc(offset = 0);
    let x: f16[{m}, {n}] in {fragment} = load(X[0:+{m}, 0:+{n}]);
    let whole: shared f16[{rows}, {columns}] = view(o[0:+{rows}, 0:+{columns}]);
    {turn if turned else ""}
    store({"turned" if turned else "whole"}[0:+{m}, 0:+{n}], x);
    bar_sync();
    for i: i32 in range(i32(0), i32({rows}), i32(1)) {{
        for j: i32 in range(i32(0), i32({columns}), i32(1)) {{
            let e: f16 = load(o[i, j]);
            store(Y[i, j], e);
        }}
    }}
}}
"""


def read_halves(path, count):
    with open(path, "rb") as file:
        data = file.read()
    return struct.unpack(f"<{count}e", data[-2 * count:])


def check(tirc, case, folder):
    m, n, turned, _ = case
    source, out = os.path.join(folder, "stores.tir"), os.path.join(folder, "y.npy")
    with open(source, "w", encoding="utf-8") as file:
        file.write(program(*case))
    build = [tirc, "build", "--emit=ptx", "--arch=sm_90a", source]
    ptx = subprocess.run(build, capture_output=True, text=True, timeout=100).stdout
    command = [tirc, "run", source, "--device=emu", "--arch=sm_90a", "X=arange", f"Y=@{out}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode or "stmatrix" not in ptx:
        print(done.stdout + done.stderr + ("" if "stmatrix" in ptx else "no stmatrix"))
        return False
    order = [(i, j) for j in range(n) for i in range(m)] if turned else             [(i, j) for i in range(m) for j in range(n)]
    halves = struct.unpack(f"<{m * n}e", struct.pack(f"<{m * n}e", *range(m * n)))
    return list(read_halves(out, m * n)) == [halves[i * n + j] for i, j in order]


def main():
    failed = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            if not check(sys.argv[1], case, folder):
                print(f"failed: {case}")
                failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
