#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the norms with sums in double precision, on rows that make a careless variance cancel.

usage: accuracy.py TIRC [DEVICE]

The interpreter runs the same program, so it shares the program's own loss of accuracy and cannot
judge it. Elements are f32; every output may be off by 1e-5 of its size, and by what moves when the
mean is rounded to f32.
"""

import array
import math
import os
import random
import subprocess
import sys
import tempfile

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "05_norm")
EPS = 1e-5
KERNELS = [  # file, kernel, its metas, length of a row
    ("layernorm.tir", "layernorm", {"COLS": 1024}, 1003),
    ("layernorm.tir", "layernorm_shared", {"KEEP": 2048, "COLS": 1024}, 3001),
    ("layernorm.tir", "layernorm_shared", {"KEEP": 2048, "COLS": 1024}, 1500),
    ("layernorm.tir", "layernorm_long", {"COLS": 256}, 8191),
    ("layernorm.tir", "layernorm_long", {"COLS": 1024}, 700),
    ("rmsnorm.tir", "rmsnorm_shared", {"KEEP": 2048, "COLS": 1024}, 3001),
    ("rmsnorm.tir", "rmsnorm_long", {"COLS": 256}, 8191),
]


def rows(n):
    """Rows of n numbers, by what is bad about them."""
    rand = random.Random(n)
    normal = [rand.gauss(0, 1) for _ in range(n)]
    return {
        "plain": normal,
        "first is an outlier": [3000.0] + normal[1:],
        "last is an outlier": normal[:-1] + [-3000.0],
        "mean of 10000": [10000 + x for x in normal],
        "small around 100": [100 + x / 64 for x in normal],
        "outlier far from 100": [-5000.0] + [100 + x / 64 for x in normal[1:]],
        "two halves": [(900 if i < n // 2 else -700) + x / 8 for i, x in enumerate(normal)],
        "constant": [77.7] * n,
    }


def write(path, values, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        array.array("f", values).tofile(file)


def read(path, count):
    values = array.array("f")
    with open(path, "rb") as file:
        file.seek(-4 * count, os.SEEK_END)
        values.fromfile(file, count)
    return values


def reference(kernel, x, w, b):
    """The exact output and what it may be off by."""
    centred = kernel.startswith("layernorm")
    mean = math.fsum(x) / len(x) if centred else 0.0
    square = math.fsum((v - mean) ** 2 for v in x) / len(x)
    scale = 1 / math.sqrt(square + EPS)
    mean_rounding = 2.0**-23 * abs(mean) * scale
    for v, u, c in zip(x, w, b if centred else [0.0] * len(x)):
        y = (v - mean) * scale * u
        yield y + c, 1e-5 * (abs(y) + abs(c)) + mean_rounding * abs(u)


def run(tirc, device, row, folder):
    source, kernel, metas, n = row
    cases = rows(n)
    x = array.array("f", [v for values in cases.values() for v in values])
    rand = random.Random(1)
    w, b = (array.array("f", [rand.gauss(0, 1) for _ in range(n)]) for _ in range(2))
    write(f"{folder}/x.npy", x, (len(cases), n))
    write(f"{folder}/w.npy", w, (n,))
    write(f"{folder}/b.npy", b, (n,))
    command = [tirc, "run", os.path.join(EXAMPLES, source), "--kernel", kernel, "--device", device,
               f"eps={EPS}", f"X=@{folder}/x.npy", f"W=@{folder}/w.npy", f"Y=@{folder}/y.npy"]
    command += [f"B=@{folder}/b.npy"] if source == "layernorm.tir" else []
    for name, value in {**metas, "T": "f32"}.items():
        command += ["-D", f"{name}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
    y = read(f"{folder}/y.npy", len(x))
    failed = 0
    for i, case in enumerate(cases):
        part = slice(i * n, (i + 1) * n)
        share = max(abs(got - want) / allowed if math.isfinite(got) else math.inf
                    for got, (want, allowed) in zip(y[part], reference(kernel, x[part], w, b)))
        failed += share > 1
        print(f"{kernel} {metas} N={n}: {case}: {share:.3f} of what is allowed"
              + (" FAILED" if share > 1 else ""))
    return failed


def main():
    tirc = os.path.abspath(sys.argv[1])
    device = sys.argv[2] if len(sys.argv) > 2 else "emu"
    with tempfile.TemporaryDirectory() as folder:
        return sum(run(tirc, device, row, folder) for row in KERNELS) > 0


if __name__ == "__main__":
    sys.exit(main())
