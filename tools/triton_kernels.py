# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the Triton kernels of the emulator's tests to PTX; needs no GPU.

    python3 triton_kernels.py FOLDER      (Triton 3.9)
"""

import pathlib
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(out, x, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * cols + at, e / tl.sum(e, axis=0), mask=at < cols)


@triton.jit
def product(a, b, d, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :],
                    mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + n[None, :] * K + k[:, None],
                    mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, y)
    tl.store(d + m[:, None] * N + n[None, :], acc.to(tl.bfloat16),
             mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def scan(out, x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def histogram(counts, x, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    h = tl.histogram(v, BINS)
    tl.atomic_add(counts + tl.arange(0, BINS), h)


PRODUCT = {"a": "*bf16", "b": "*bf16", "d": "*bf16", "M": "i32", "N": "i32", "K": "i32"}
CASES = [
    ("softmax", softmax, {"out": "*fp32", "x": "*fp32", "cols": "i32"}, {"BLOCK": 1024}, 90),
    ("product", product, PRODUCT, {"BM": 128, "BN": 128, "BK": 64}, 80),
    ("product", product, PRODUCT, {"BM": 128, "BN": 128, "BK": 64}, 90),
    ("scan", scan, {"out": "*i32", "x": "*i32"}, {"BLOCK": 1024}, 80),
    ("histogram", histogram, {"counts": "*i32", "x": "*i32", "n": "i32"},
     {"BLOCK": 1024, "BINS": 64}, 80),
]

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for name, kernel, types, metas, sm in CASES:
        aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values())
                   if t[0] == "*" or name == "product"}
        values = {(len(types) + i,): v for i, v in enumerate(metas.values())}
        source = ASTSource(kernel, {**types, **{m: "constexpr" for m in metas}}, values, aligned)
        built = triton.compile(source, target=GPUTarget("cuda", sm, 32),
                               options={"num_warps": 4, "num_stages": 3})
        # Lines of the source stay, paths and the sections for debuggers do not.
        ptx = re.sub(r'"/[^"\n]*/([^"\n]*)"', r'"\1"', built.asm["ptx"]).split("\t.section")[0]
        (folder / f"triton_{name}_{sm}.ptx").write_text(ptx)
        print(f"{name} sm_{sm}: {built.metadata.shared} bytes of shared memory")
