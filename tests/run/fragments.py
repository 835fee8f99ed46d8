#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of wgmma to shared memory by stmatrix and back by ldmatrix, on the emulator.

usage: fragments.py TIRC

Each tile holds the number of each of its elements; what lies in the buffer afterwards is read one
element at a time, and as a fragment. The buffer has the tile's rows, or, turned, its columns.
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
    buffer = "turned" if turned else "whole"
    turn = f"let turned: shared f16[{m}, {n}] = permute(whole, permutation = [1, 0]);"
    return f"""
kernel stores(X: f16[{m}, {n}], Y: out f16[{rows}, {columns}], Z: out f16[{m}, {n}])
    grid(1) threads(128) form(synced) facts(vector16, unit_inner) shared({2 * m * n})
{{
    let o: shared f16[{rows}, {columns}] in {memory} = alloc(offset = 0);
    let x: f16[{m}, {n}] in {fragment} = load(X[0:+{m}, 0:+{n}]);
    let whole: shared f16[{rows}, {columns}] = view(o[0:+{rows}, 0:+{columns}]);
    {turn if turned else ""}
    store({buffer}[0:+{m}, 0:+{n}], x);
    bar_sync();
    let z: f16[{m}, {n}] in {fragment} = load({buffer}[0:+{m}, 0:+{n}]);
    store(Z[0:+{m}, 0:+{n}], z);
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
    back = os.path.join(folder, "z.npy")
    with open(source, "w", encoding="utf-8") as file:
        file.write(program(*case))
    build = [tirc, "build", "--emit=ptx", "--arch=sm_90a", source]
    ptx = subprocess.run(build, capture_output=True, text=True, timeout=100).stdout
    command = [tirc, "run", source, "--device=emu", "--arch=sm_90a", "X=arange", f"Y=@{out}",
               f"Z=@{back}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode or "stmatrix" not in ptx or "ldmatrix" not in ptx:
        print(done.stdout + done.stderr)
        print("\n".join(x for x in ("stmatrix", "ldmatrix") if x not in ptx))
        return False
    order = [(i, j) for j in range(n) for i in range(m)] if turned else             [(i, j) for i in range(m) for j in range(n)]
    halves = struct.unpack(f"<{m * n}e", struct.pack(f"<{m * n}e", *range(m * n)))
    if read_halves(back, m * n) != halves:
        return False
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
