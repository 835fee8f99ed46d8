#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the products among the examples with their formulas in double precision.

usage: forms.py TIRC [DEVICE]

The interpreter runs the same program, so it cannot know whether that program computes what it says:
a wrong constant or a scale of the wrong block is the same mistake on both sides. Here each kernel
has its formula once more. An element may be off by a share of max(|it|, rms of its tensor).
"""

import cmath
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
RANDOM = random.Random()


# ---- elements


def e4m3(code):
    exponent, fraction = code >> 3 & 15, code & 7
    size = fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
    return -size if code & 128 else size


def bf16(code):
    return struct.unpack("<f", struct.pack("<I", code << 16))[0]


def bf16_code(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def gauss():
    return RANDOM.gauss(0, 1)


def same(code):
    return code


# Element: its type in a file, the code that struct knows, number of a code, a random code, and what
# a result may be off by: four roundings, of operands that are computed and of the result.
ELEMENTS = {
    "f32": ("<f4", "f", same, lambda: struct.unpack("<f", struct.pack("<f", gauss()))[0], 1e-5),
    "f16": ("<f2", "e", same, lambda: struct.unpack("<e", struct.pack("<e", gauss()))[0], 2**-9),
    "bf16": ("<u2", "H", bf16, lambda: bf16_code(gauss()), 2**-6),
    "e4m3": ("|u1", "B", e4m3, lambda: RANDOM.randrange(0x18, 0x48) + RANDOM.choice((0, 128)), 2**-4),
    "i8": ("|i1", "b", same, lambda: RANDOM.randrange(-128, 128), 0),
    "u8": ("|u1", "B", same, lambda: RANDOM.randrange(256), 0),
    "i32": ("<i4", "i", same, lambda: RANDOM.randrange(-99, 100), 0),
}


def write(path, element, shape, codes):
    kind, code = ELEMENTS[element][:2]
    dims = "".join(f"{n}, " for n in shape)
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dims}), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(codes)}{code}", *codes))


def read(path, element, count):
    code, number = ELEMENTS[element][1:3]
    with open(path, "rb") as file:
        data = file.read()[-count * struct.calcsize(code):]
    return [number(x) for x in struct.unpack(f"<{count}{code}", data)]


# ---- tensors: an object with a shape, read as t[i, j].


class Tensor:
    def __init__(self, shape, values):
        self.shape, self.values = shape, values

    def __getitem__(self, index):
        at = 0
        for i, n in zip(index if isinstance(index, tuple) else (index,), self.shape):
            assert 0 <= i < n
            at = at * n + i
        return self.values[at]


def matrix(rows, columns, element):
    """A tensor by its formula."""
    return Tensor((rows, columns), [element(i, j) for i in range(rows) for j in range(columns)])


def product(a, b, size, turned=("n", "t")):
    """The sums of op(A) . op(B) by (i, j)."""
    m, n, k = size
    left = [[a[i, p] if turned[0] == "n" else a[p, i] for p in range(k)] for i in range(m)]
    right = [[b[j, p] if turned[1] == "t" else b[p, j] for p in range(k)] for j in range(n)]
    return [[math.fsum(x * y for x, y in zip(row, column)) for column in right] for row in left]


# ---- forms: each gives the file, the kernel, the run's arguments, the inputs and the outputs with
# their formulas. Instead of one kernel: (kernel, arguments, tensors read, tensors written) of several.

SIZE = (37, 45, 71)
M, N, K = SIZE
DIMS = [f"M={M}", f"N={N}", f"K={K}"]
TILE = [word for tile in ("BM=32", "BN=32", "BK=32") for word in ("-D", tile)]
HALF = ["-D", "T=f16"]


def normal(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def logistic(x):
    return (1 + math.tanh(x / 2)) / 2


ACTIVATIONS = [
    lambda x: x, lambda x: max(x, 0.0), lambda x: x * normal(x),
    lambda x: x * logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    lambda x: x * logistic(x),
    lambda x: x * logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
]


def epilogues():
    file = "10_epilogues/epilogues.tir"
    ab = {"A": ("f16", (M, K)), "B": ("f16", (N, K))}

    def form(kernel, words, more, formula):
        def outputs(x):
            ab_t = product(x["A"], x["B"], SIZE)
            return {"D": ("f16", matrix(M, N, lambda i, j: formula(x, ab_t, i, j)))}
        return file, kernel, [*HALF, *TILE, *DIMS, *words], {**ab, **more}, outputs

    plane, row, column = ("f16", (M, N)), ("f16", (N,)), ("f32", (M,))
    yield form("scaled", ["alpha=0.75", "beta=-2.5"], {"C": plane},
               lambda x, d, i, j: 0.75 * d[i][j] - 2.5 * x["C"][i, j])
    for act, f in enumerate(ACTIVATIONS):
        yield form("linear", ["-D", f"ACT={act}"], {"Bias": row},
                   lambda x, d, i, j, f=f: f(d[i][j] + x["Bias"][j]))
    for act, f in list(enumerate(ACTIVATIONS))[:-1]:  # the last one is for 16 bits

        def exact(x, f=f):
            d = product(x["A"], x["B"], SIZE)
            return {"D": ("f32", matrix(M, N, lambda i, j: f(d[i][j] + x["Bias"][j])))}
        yield (file, "linear", ["-D", "T=f32", *TILE, *DIMS, "-D", f"ACT={act}"],
               {"A": ("f32", (M, K)), "B": ("f32", (N, K)), "Bias": ("f32", (N,))}, exact)
    yield form("residual", [], {"Bias": row, "R": plane},
               lambda x, d, i, j: d[i][j] + x["Bias"][j] + x["R"][i, j])
    yield form("row_column", [], {"Rows": column, "Columns": ("f32", (N,))},
               lambda x, d, i, j: d[i][j] * x["Rows"][i] * x["Columns"][j])

    def gated(x):
        gate, up = product(x["A"], x["G"], SIZE), product(x["A"], x["U"], SIZE)
        return {"D": ("f16", matrix(M, N, lambda i, j: ACTIVATIONS[4](gate[i][j]) * up[i][j]))}
    yield (file, "gated", [*HALF, *TILE, *DIMS],
           {"A": ab["A"], "G": ab["B"], "U": ab["B"]}, gated)

    def quantized_rows(x):
        d = product(x["A"], x["B"], SIZE)
        biggest = 448.0  # what is larger becomes e4m3's largest
        return {"D": ("e4m3", matrix(M, N, lambda i, j: max(-biggest, min(
            biggest, d[i][j] / x["S"][i]))))}
    yield (file, "quantized_rows", [*HALF, *TILE, *DIMS], {**ab, "S": column}, quantized_rows)

    def quantized(x):
        d = product(x["A"], x["B"], SIZE)
        scale = matrix(M, 2, lambda i, j: max(map(abs, d[i][32 * j:32 * j + 32])) / 448)
        return {"S": ("f32", scale),
                "D": ("e4m3", matrix(M, N, lambda i, j: d[i][j] / scale[i, j // 32]))}
    yield file, "quantized", [*HALF, *TILE, *DIMS, "J=2"], ab, quantized


def operands():
    file = "11_operands/operands.tir"
    words = [*HALF, "-D", "OUT=f32", *TILE, *DIMS]
    for a in "nt":
        for b in "nt":
            def outputs(x, turned=(a, b)):
                d = product(x["A"], x["B"], SIZE, turned)
                return {"D": ("f32", matrix(M, N, lambda i, j: d[i][j]))}
            yield (file, a + b, words, {"A": ("f16", (M, K) if a == "n" else (K, M)),
                                        "B": ("f16", (K, N) if b == "n" else (N, K))}, outputs)

    def batched(x):
        values = []
        for z in range(3):
            part = [Tensor(x[t].shape[1:], x[t].values[z * rows * K:(z + 1) * rows * K])
                    for t, rows in (("A", M), ("B", N))]
            values += [value for row in product(*part, SIZE) for value in row]
        return {"D": ("f32", Tensor((3, M, N), values))}
    yield (file, "batched", [*words, "Z=3"],
           {"A": ("f16", (3, M, K)), "B": ("f16", (3, N, K))}, batched)


def halves(code):
    """The two weights of a byte of int4_weights."""
    return (code & 15) - 8, (code >> 4) - 8


def place(column, columns):
    """The byte of a packed row of so many columns that holds one: 16j + 8b + 2q + e is (q, j, e, b)."""
    j, b, q, e = column // 16, column // 8 % 2, column // 2 % 4, column % 2
    return q * (columns // 4) + 4 * j + 2 * e + b


def dequantized():
    file, group, k = "12_dequantized/dequantized.tir", 32, 96
    half = group // 2
    size = (M, N, k)
    words = ["-D", f"GROUP={group}", f"N={N}", f"K={k}", "J=3"]
    tile = [*HALF, "-D", "BM=32", "-D", "BN=32", f"M={M}"]
    scales = {"A": ("f16", (M, k)), "S": ("f16", (N, k // group))}

    def int8(x):
        w = matrix(N, k, lambda n, i: x["W"][n, i] * x["S"][n, i // group])
        d = product(x["A"], w, size)
        return {"D": ("f16", matrix(M, N, lambda i, j: d[i][j]))}
    yield (file, "int8_weights", [*words, *tile, "-D", "BK=16"],
           {**scales, "W": ("i8", (N, k))}, int8)

    def int4(x):
        def weight(n, i):
            j = i % group
            byte = x["W"][n, i // group * half + place(j % half, half)]
            return halves(byte)[j // half] * x["S"][n, i // group]
        d = product(x["A"], matrix(N, k, weight), size)
        return {"D": ("f16", matrix(M, N, lambda i, j: d[i][j]))}
    yield (file, "int4_weights", [*words, *tile, f"H={k // 2}"],
           {**scales, "W": ("u8", (N, k // 2))}, int4)

    def largest(x, n, j):
        return max(abs(x["X"][n, j * group + i]) for i in range(group))

    def quantized(x, most):
        scale = matrix(N, k // group, lambda n, j: largest(x, n, j) / most)
        return scale, lambda n, i: round(x["X"][n, i] / scale[n, i // group])

    def quantize8(x):
        scale, weight = quantized(x, 127)
        return {"S": ("f32", scale), "W": ("i8", matrix(N, k, weight))}
    single = ["-D", "T=f32", *words]  # in f16 a number may be half a unit, which rounds either way
    yield file, "quantize_int8", single, {"X": ("f32", (N, k))}, quantize8

    def quantize4(x):
        scale, weight = quantized(x, 7)

        def byte(n, i):
            low = i // half * group + columns[i % half]
            return weight(n, low) + 8 + 16 * (weight(n, low + half) + 8)
        return {"S": ("f32", scale), "W": ("u8", matrix(N, k // 2, byte))}
    columns = sorted(range(half), key=lambda column: place(column, half))
    yield file, "quantize_int4", [*single, f"H={k // 2}"], {"X": ("f32", (N, k))}, quantize4

    def packed_int8(x):
        w = matrix(N, k, lambda n, i: x["W"][n, i // group * group + place(i % group, group)]
                   * x["S"][n, i // group])
        d = product(x["A"], w, size)
        return {"D": ("f16", matrix(M, N, lambda i, j: d[i][j]))}
    yield (file, "int8_weights", [*words, *tile, "-D", f"BK={group}", "-D", "PACKED=true"],
           {**scales, "W": ("i8", (N, k))}, packed_int8)

    order = [i // group * group + column for i in range(0, k, group)
             for column in sorted(range(group), key=lambda column: place(column, group))]
    sizes = ["-D", f"GROUP={group}", f"N={N}", f"K={k}"]
    yield (file, "pack_int8", sizes, {"X": ("i8", (N, k))},
           lambda x: {"W": ("i8", matrix(N, k, lambda n, i: x["X"][n, order[i]]))})
    yield (file, "unpack_int8", sizes, {"W": ("i8", (N, k))},
           lambda x: {"X": ("i8", matrix(N, k, lambda n, i: x["W"][n, order.index(i)]))})

    def bytes_of(n, i, x):
        low = i // half * group + columns[i % half]
        return (x["X"][n, low] + 8 & 255) | (x["X"][n, low + half] + 8 << 4 & 255)
    yield (file, "pack_int4", [*sizes, f"H={k // 2}"], {"X": ("i8", (N, k))},
           lambda x: {"W": ("u8", matrix(N, k // 2, lambda n, i: bytes_of(n, i, x)))})

    def integer(n, i, x):
        j = i % group
        return halves(x["W"][n, i // group * half + place(j % half, half)])[j // half]
    yield (file, "unpack_int4", [*sizes, f"H={k // 2}"], {"W": ("u8", (N, k // 2))},
           lambda x: {"X": ("i8", matrix(N, k, lambda n, i: integer(n, i, x)))})


def fp8():
    file = "13_fp8/fp8.tir"
    m, n, k = size = (37, 140, 300)
    words = ["-D", "OUT=f32", "-D", "BM=32", "-D", "BN=32", f"M={m}", f"N={n}", f"K={k}"]
    ab = {"A": ("e4m3", (m, k)), "B": ("e4m3", (n, k))}

    def form(kernel, shape_a, shape_b, formula, more=()):
        def outputs(x):
            return {"D": ("f32", matrix(m, n, formula(x)))}
        return (file, kernel, [*words, *more],
                {**ab, "ScaleA": ("f32", shape_a), "ScaleB": ("f32", shape_b)}, outputs)

    def whole(scale):
        def formula(x):
            d = product(x["A"], x["B"], size)
            return lambda i, j: d[i][j] * scale(x, i, j)
        return formula

    def blocks(x):
        a = matrix(m, k, lambda i, p: x["A"][i, p] * x["ScaleA"][i, p // 128])
        b = matrix(n, k, lambda j, p: x["B"][j, p] * x["ScaleB"][j // 128, p // 128])
        d = product(a, b, size)
        return lambda i, j: d[i][j]

    yield form("tensor_scales", (1,), (1,), whole(lambda x, i, j: x["ScaleA"][0] * x["ScaleB"][0]))
    yield form("row_scales", (m,), (n,), whole(lambda x, i, j: x["ScaleA"][i] * x["ScaleB"][j]))
    yield form("block_scales", (m, 3), (2, 3), blocks, ["J=3", "I=2"])


def grouped():
    file, offsets = "14_grouped/grouped.tir", [0, 5, 5, 41, 60]
    groups, m, n, k = 4, 60, 45, 71
    table = {"Offsets": ("i32", (groups + 1,), offsets)}
    tile = [*HALF, *TILE]

    def part(tensor, z, rows):
        columns = tensor.shape[-1]
        return Tensor((rows, columns), tensor.values[z * columns:(z + rows) * columns])

    def forward(x):
        values = []
        for e, (begin, end) in enumerate(zip(offsets, offsets[1:])):
            d = product(part(x["A"], begin, end - begin), part(x["B"], e * n, n), (end - begin, n, k))
            values += [value for row in d for value in row]
        return {"D": ("f16", Tensor((m, n), values))}
    inputs = {"A": ("f16", (m, k)), "B": ("f16", (groups, n, k)), **table}
    words = [*tile, f"M={m}", f"N={n}", f"K={k}", f"E={groups}"]
    yield file, "grouped", words, inputs, forward
    yield (file, [("plan", ["-D", "BM=32", "J=6"], ["Offsets"], ["Table"]),
                  ("planned", words, ["A", "B", "Offsets", "Table"], ["D"])], [], inputs, forward)

    def gradient(x):
        values = []
        for begin, end in zip(offsets, offsets[1:]):
            d = product(part(x["A"], begin, end - begin), part(x["B"], begin, end - begin),
                        (k, n, end - begin), ("t", "n"))
            values += [value for row in d for value in row]
        return {"D": ("f16", Tensor((groups, k, n), values))}
    yield (file, "gradient", [*tile, f"K={m}", f"N={n}", f"M={k}", f"E={groups}"],
           {"A": ("f16", (m, k)), "B": ("f16", (m, n)), **table}, gradient)


def split_k():
    file, size = "15_split_k/split_k.tir", (37, 45, 300)
    tile = [*HALF, *TILE]
    ab = {"A": ("f16", (37, 300)), "B": ("f16", (45, 300))}

    def whole(x):
        d = product(x["A"], x["B"], size)
        return {"D": ("f16", matrix(37, 45, lambda i, j: d[i][j]))}

    yield file, "split", [*tile, "-D", "PARTS=3"], ab, whole
    for ctas in (1, 3, 7, 50):  # of 40 steps in 4 tiles
        yield file, "stream", [*tile, f"ctas={ctas}"], ab, whole

    def atomic(x):
        d = product(x["A"], x["B"], size)
        return {"E": ("f32", matrix(37, 45, lambda i, j: d[i][j] + x["D"][i, j]))}
    yield file, "split_atomic", tile, {**ab, "D": ("f32", (37, 45))}, atomic


def attention():
    heads, groups, wide = 4, 2, 64
    for causal, s, t in ((True, 37, 45), (True, 45, 37), (False, 37, 45)):
        def outputs(x, causal=causal, s=s, t=t):
            values = []
            for h in range(heads):
                g = h // (heads // groups)
                for i in range(s):
                    seen = min(t, i + 1 + t - s) if causal else t
                    scores = [math.fsum(x["Q"][0, h, i, d] * x["K"][0, g, j, d]
                                        for d in range(wide)) / 8 for j in range(max(seen, 0))]
                    top = max(scores, default=0)
                    weights = [math.exp(score - top) for score in scores]
                    total = math.fsum(weights) or 1
                    values += [math.fsum(w * x["V"][0, g, j, d] for j, w in enumerate(weights))
                               / total for d in range(wide)]
            return {"O": ("bf16", Tensor((1, heads, s, wide), values))}
        kv = ("bf16", (1, groups, t, wide))
        yield ("attention/attention.tir", "attention",
               ["-D", "D=64", "-D", "BQ=32", "-D", "BT=16", "-D", f"CAUSAL={str(causal).lower()}",
                "scale=0.125"],
               {"Q": ("bf16", (1, heads, s, wide)), "K": kv, "V": kv}, outputs)


def attended(x, h, i, s, t, wide, more):
    """Weights and logarithm of the sum for query i of head h, whose keys all heads share."""
    q, at = x["Q"], i + t - s
    scores = {}
    for j in range(t):
        score = math.fsum(q[0, h, i, d] * x["K"][0, 0, j, d] for d in range(wide)) / 8
        if "limit" in more:
            score = more["limit"] * math.tanh(score / more["limit"])
        if "Slope" in x:
            score += x["Slope"][h] * (j - at)
        seen = x["Keep"][0, j] != 0 if "Keep" in x else more.get("all") or j <= at
        if seen and j > at - more.get("width", t + s):
            scores[j] = score
    sink = [x["Sink"][h]] if "Sink" in x else []
    top = max([*scores.values(), *sink], default=0)
    total = math.fsum(math.exp(score - top) for score in [*scores.values(), *sink])
    weights = {j: math.exp(score - top) / total for j, score in scores.items()}
    return weights, top + math.log(total) if total else -math.inf


def attention_forward():
    heads, s, t, wide = 2, 21, 17, 64
    shape = (1, heads, s, wide)
    for form, words, more, extra in (
            ("full", [], {"all": True}, {}), ("causal", [], {}, {}), ("window", ["width=5"], {"width": 5}, {}),
            ("soft_cap", ["limit=0.5"], {"limit": 0.5}, {}), ("alibi", [], {}, {"Slope": ("f32", (heads,))}),
            ("sinks", [], {}, {"Sink": ("f32", (heads,))}),
            ("padded", [], {"all": True}, {"Keep": ("i8", (1, t), [j % 3 % 2 for j in range(t)])})):
        def outputs(x, more=more):
            values, sums = [], []
            for h in range(heads):
                for i in range(s):
                    weights, total = attended(x, h, i, s, t, wide, more)
                    values += [math.fsum(w * x["V"][0, 0, j, d] for j, w in weights.items())
                               for d in range(wide)]
                    sums.append(total)
            return {"O": ("bf16", Tensor(shape, values)), "L": ("f32", Tensor(shape[:3], sums))}
        kv = ("bf16", (1, 1, t, wide))
        yield ("attention/forward.tir", form, ["-D", "D=64", "-D", "BQ=32", "-D", "BT=16", "scale=0.125", *words],
               {"Q": ("bf16", shape), "K": kv, "V": kv, **extra}, outputs)


def attention_fixed():
    """A fixed maximum: queries of which every third has scores that f32 cannot hold without one."""
    heads, s, t, wide = 2, 45, 37, 64
    shape, kv = (1, heads, s, wide), ("bf16", (1, 1, t, wide))
    for form, more in (("full", {"all": True}), ("causal", {})):
        for large in (1, 60):
            def outputs(x, more=more):
                values, sums = [], []
                for h in range(heads):
                    for i in range(s):
                        weights, total = attended(x, h, i, s, t, wide, more)
                        values += [math.fsum(w * x["V"][0, 0, j, d] for j, w in weights.items())
                                   for d in range(wide)]
                        sums.append(total)
                return {"O": ("bf16", Tensor(shape, values)), "L": ("f32", Tensor(shape[:3], sums))}
            q = [bf16_code(gauss() * (large if i // wide % 3 == 0 else 1)) for i in range(math.prod(shape))]
            yield ("attention/fixed.tir", form, ["-D", "D=64", "-D", "BQ=32", "-D", "BT=16", "scale=0.125"],
                   {"Q": ("bf16", shape, q), "K": kv, "V": kv}, outputs)


def attention_backward():
    heads, s, t, wide = 2, 21, 17, 64

    def outputs(x):
        """The gradients of O by the chain rule, with O and L of the same softmax."""
        grads = {name: [0.0] * (h * n * wide) for name, h, n in (("dQ", heads, s), ("dK", 1, t), ("dV", 1, t))}
        for h in range(heads):
            for i in range(s):
                weights, _ = attended(x, h, i, s, t, wide, {})
                g = [x["dO"][0, h, i, d] for d in range(wide)]
                dp = {j: math.fsum(g[d] * x["V"][0, 0, j, d] for d in range(wide)) for j in weights}
                mean = math.fsum(w * dp[j] for j, w in weights.items())
                for j, w in weights.items():
                    ds = w * (dp[j] - mean) / 8
                    for d in range(wide):
                        grads["dQ"][(h * s + i) * wide + d] += ds * x["K"][0, 0, j, d]
                        grads["dK"][j * wide + d] += ds * x["Q"][0, h, i, d]
                        grads["dV"][j * wide + d] += w * g[d]
        return {"dQ": ("bf16", Tensor((1, heads, s, wide), grads["dQ"])),
                "dK": ("bf16", Tensor((1, 1, t, wide), grads["dK"])),
                "dV": ("bf16", Tensor((1, 1, t, wide), grads["dV"]))}
    q, kv = ("bf16", (1, heads, s, wide)), ("bf16", (1, 1, t, wide))
    words = ["-D", "D=64", "scale=0.125"]
    inputs = {"Q": q, "K": kv, "V": kv, "dO": q}
    for kernel in "backward", "deterministic":
        steps = [("attention/forward.tir:causal", words, ["Q", "K", "V"], ["O", "L"]),
             (kernel, words, [*inputs, "O", "L"], ["dQ", "dK", "dV"])]
        yield "attention/backward.tir", steps, words, inputs, outputs


def linear_attention():
    t, wide = 75, 64

    def outputs(x, form):
        state = [[0.0] * wide for _ in range(wide)]
        values = []
        for i in range(t):
            q, k, v = ([x[name][0, 0, i, d] for d in range(wide)] for name in "QKV")
            if form == "gated":
                fade, add = math.exp(x["A"][0, 0, i]), v
            else:
                said = [math.fsum(k[c] * state[c][d] for c in range(wide)) for d in range(wide)]
                fade, add = 1, [x["Beta"][0, 0, i] * (a - b) for a, b in zip(v, said)]
            state = [[fade * y + k[c] * add[d] for d, y in enumerate(row)] for c, row in enumerate(state)]
            values += [math.fsum(q[c] * state[c][d] for c in range(wide)) for d in range(wide)]
        return {"O": ("bf16", Tensor((1, 1, t, wide), values))}
    tensor = ("bf16", (1, 1, t, wide))
    small = ("bf16", tensor[1], [bf16_code(RANDOM.gauss(0, 0.1)) for _ in range(t * wide)])
    for form, key, name, codes in (("gated", tensor, "A", [-(i % 7) / 8 for i in range(t)]),
                                   ("delta", small, "Beta", [i % 5 / 4 for i in range(t)])):
        yield ("attention/linear.tir", form, [],
               {"Q": tensor, "K": key, "V": tensor, name: ("f32", (1, 1, t), codes)},
               lambda x, form=form: outputs(x, form))


def attention_decode():
    rows, s, wide, held = 6, 2, 64, [50, 1]  # of a length of 1 the first of two queries sees no key

    def outputs(x, paged):
        values = []
        for b, length in enumerate(held):
            def at(name, j, d, b=b):
                return x[name][x["Table"][b, j // 7], j % 7, 0, d] if paged else x[name][b, 0, j, d]
            for r in range(rows):
                keys = range(r % s + length - s + 1)
                scores = [math.fsum(x["Q"][b, 0, r, d] * at("K", j, d) for d in range(wide)) / 8 for j in keys]
                top = max(scores, default=0)
                weights = [math.exp(score - top) for score in scores]
                values += [math.fsum(w * at("V", j, d) for j, w in zip(keys, weights))
                           / max(math.fsum(weights), 1) for d in range(wide)]
        return {"O": ("bf16", Tensor((2, 1, rows, wide), values))}
    q, length = ("bf16", (2, 1, rows, wide)), ("i32", (2,), held)
    words = ["-D", "D=64", "-D", "BT=16", "-D", "CTAS=6", "S=2", "scale=0.125"]
    kv = ("bf16", (2, 1, 50, wide))
    yield ("attention/decode.tir", "decode", words, {"Q": q, "K": kv, "V": kv, "Length": length},
           lambda x: outputs(x, False))
    kv = ("bf16", (20, 7, 1, wide))
    table = ("i32", (2, 8), [(3 * i + 1) % 20 for i in range(16)])
    yield ("attention/decode.tir", "paged", words,
           {"Q": q, "K": kv, "V": kv, "Length": length, "Table": table}, lambda x: outputs(x, True))


def attention_append():
    heads, groups, s, wide, held = 5, 2, 3, 64, [50, 3, 0]  # the last sequence is not in use
    batch, size = len(held), 50
    x = ("bf16", (batch, s, heads + 2 * groups, wide))
    angles = [p / 10000 ** (2 * i / wide) for p in range(size) for i in range(wide // 2)]
    turns = {name: ("f32", (size, wide // 2), [struct.unpack("<f", struct.pack("<f", f(a)))[0] for a in angles])
             for name, f in (("Cos", math.cos), ("Sin", math.sin))}
    table = [(37 * i + 5) % 40 for i in range(batch * 8)]  # each page once

    def outputs(x, paged, apart):
        def turned(b, i, p, d):
            """Element d as a part of a complex number, turned by the position and its pair."""
            pair, high = (d // 2, d % 2) if apart == 1 else (d % apart, d // apart)
            first = 2 * pair if apart == 1 else pair
            z = complex(x["X"][b, i, p, first], x["X"][b, i, p, first + apart])
            z *= cmath.exp(1j * (held[b] - s + i) / 10000 ** (2 * pair / wide))
            return z.imag if high else z.real
        shape = x["K"].shape
        k, v = list(x["K"].values), list(x["V"].values)  # what is not appended stays as it is
        for b in range(batch):
            for i in range(s):
                at = held[b] - s + i
                if at < 0:
                    continue
                for g in range(groups):
                    place = (((table[b * 8 + at // 7] * 7 + at % 7) * groups + g) if paged
                             else (b * groups + g) * size + at) * wide
                    for d in range(wide):
                        k[place + d] = turned(b, i, heads + g, d)
                        v[place + d] = x["X"][b, i, heads + groups + g, d]
        q = [turned(b, i, h, d) if held[b] else 0.0 for b in range(batch) for h in range(heads)
             for i in range(s) for d in range(wide)]
        return {"Q": ("bf16", Tensor((batch, heads, s, wide), q)),
                "K": ("bf16", Tensor(shape, k)), "V": ("bf16", Tensor(shape, v))}
    for apart, words in ((wide // 2, []), (1, ["-D", "INTERLEAVED=true"])):
        for paged, kernel in ((False, "append"), (True, "append_paged")):
            shape = (40, 7, groups, wide) if paged else (batch, groups, size, wide)
            empty = [0x7F80] * math.prod(shape)  # infinity: a row too many is no rounding
            yield ("attention/append.tir", kernel, ["-D", "D=64", f"H={heads}", *words],
                   {"X": x, **turns, "Length": ("i32", (batch,), held),
                    **({"Table": ("i32", (batch, 8), table)} if paged else {}),
                    "K": ("bf16", shape, empty), "V": ("bf16", shape, empty)},
                   lambda x, paged=paged, apart=apart: outputs(x, paged, apart))


FORMS = [epilogues, operands, dequantized, fp8, grouped, split_k, attention, attention_forward, attention_fixed,
         attention_backward, linear_attention, attention_decode, attention_append]
# Outputs that are read too: (kernel, file it leaves): the parameter.
INOUT = {("split_atomic", "E"): "D",
         **{(kernel, name): name for kernel in ("append", "append_paged") for name in "KV"}}


# ---- running


def worst(element, got, want):
    """The largest error as a share of what is allowed."""
    rms = math.sqrt(math.fsum(v * v for v in want.values if math.isfinite(v)) / max(len(want.values), 1))
    allowed = ELEMENTS[element][4]
    return max(0 if g == w else abs(g - w) / (allowed * max(abs(w), rms))
               if allowed and math.isfinite(g) and math.isfinite(w)
               else math.inf for g, w in zip(got, want.values))


def check(tirc, device, form, folder):
    """Runs the steps of a form, one kernel after the other, on tensors in files. A step may name its file."""
    file, steps, words, inputs, outputs = form
    tensors = {}
    RANDOM.seed(7)
    for name, (element, shape, *codes) in inputs.items():
        codes = codes[0] if codes else [ELEMENTS[element][3]() for _ in range(math.prod(shape))]
        tensors[name] = Tensor(shape, [ELEMENTS[element][2](code) for code in codes])
        write(f"{folder}/{name}.npy", element, shape, codes)
    wanted = outputs(tensors)
    if isinstance(steps, str):
        steps = [(steps, words, list(inputs), list(wanted))]
    for kernel, more, read_by, written_by in steps:
        given = [f"{name}=@{folder}/{name}.npy" for name in read_by]
        for name in written_by:
            source = INOUT.get((kernel, name))
            given = [word for word in given if not source or not word.startswith(source + "=")]
            given.append(f"{source}=@{folder}/{source}.npy,save={folder}/{name}.npy" if source
                         else f"{name}=save={folder}/{name}.npy")
        own, _, kernel = kernel.rpartition(":")
        command = [tirc, "run", os.path.join(EXAMPLES, own or file), "--kernel", kernel, "--device", device]
        subprocess.run([*command, *more, *given], check=True, stdout=subprocess.DEVNULL, timeout=300)
    failed = 0
    for name, (element, want) in wanted.items():
        got = read(f"{folder}/{name}.npy", element, len(want.values))
        share = worst(element, got, want)
        failed += share > 1
        print(f"{steps[-1][0]} {' '.join(steps[-1][1])}: {name} {share:.3f} of what is allowed"
              + (" FAILED" if share > 1 else ""))
    return failed


def main():
    tirc = os.path.abspath(sys.argv[1])
    device = sys.argv[2] if len(sys.argv) > 2 else "emu"
    with tempfile.TemporaryDirectory() as folder:
        return sum(check(tirc, device, form, folder) for forms in FORMS for form in forms()) > 0


if __name__ == "__main__":
    sys.exit(main())
