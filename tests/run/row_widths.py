#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of every width, in and out by the engines of sm_90a.

usage: row_widths.py TIRC

Rows of 8 to 256 elements, of every type that a product takes and gives. Their bytes are multiples
of all that swizzles, tensor maps and copies ask for, of some, and of nothing. check makes all that
build makes; some widths also run, on the emulator, into tensors with aligned rows and with others.
"""

import os
import subprocess
import sys
import tempfile

OUT = ["f32", "bf16", "f16", "f64", "u8"]
IN = ["bf16", "f16", "tf32", "f32", "e4m3", "i8"]
WIDTHS = [*range(8, 137, 8), 160, 176, 192, 208, 224, 240, 248, 256]
RUN = [24, 48, 80, 88, 208]


def stores(elem, n):
    return f"""
kernel stores(A: bf16[M, K], B: bf16[N, K], D: out {elem}[M, N])
{{
    for (m, n) in tiles(M by 64, N by {n}) {{
        var acc: f32[64, {n}] = 0;
        for k in range(0, K, 64) {{ acc += dot(A[m:+64, k:+64], B[n:+{n}, k:+64].T); }}
        D[m:+64, n:+{n}] = {elem}(acc);
    }}
}}
"""


def loads(elem, n):
    acc = "i32" if elem == "i8" else "f32"
    return f"""
kernel loads(A: {elem}[M, K], B: {elem}[N, K], D: out {acc}[M, N])
{{
    for (m, n) in tiles(M by 64, N by 64) {{
        var acc: {acc}[64, 64] = 0;
        for k in range(0, K, {n}) {{ acc += dot(A[m:+64, k:+{n}], B[n:+64, k:+{n}].T); }}
        D[m:+64, n:+64] = acc;
    }}
}}
"""


def turned(elem, n):
    return f"""
kernel turned(A: {elem}[K, M], B: {elem}[K, N], D: out f32[M, N])
{{
    for (m, n) in tiles(M by 64, N by {n}) {{
        var acc: f32[64, {n}] = 0;
        for k in range(0, K, 64) {{ acc += dot(A[k:+64, m:+64].T, B[k:+64, n:+{n}]); }}
        D[m:+64, n:+{n}] = acc;
    }}
}}
"""


def tirc(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    if done.returncode:
        print(" ".join(command), done.stdout, done.stderr, done.returncode)
    return done.returncode == 0


def main():
    kernels = [(stores, e) for e in OUT] + [(loads, e) for e in IN] + [(turned, "bf16")]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        # A file holds all widths, so that there is one compiler run for each.
        for make, elem in kernels:
            text, names = "", []
            for n in WIDTHS:
                name = f"{make.__name__}_{n}"
                text += make(elem, n).replace(f"kernel {make.__name__}", f"kernel {name}")
                names.append(name)
            path = os.path.join(folder, f"{make.__name__}_{elem}.tir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            target = ["--arch=sm_90a"]
            good = tirc([sys.argv[1], "check", path] + target)
            for n in RUN if good and elem in ("f32", "bf16") else []:
                k, columns = (n, 64) if make is loads else (64, n)
                for size in [columns, columns + 1]:
                    given = ["A=randn", "B=randn", "M=64", f"N={size}", f"K={k}"]
                    good = tirc([sys.argv[1], "run", path, f"--kernel={make.__name__}_{n}",
                                 "--check", "--device=emu"] + target + given) and good
            failed += not good
    print(f"{len(kernels)} sets of kernels, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
