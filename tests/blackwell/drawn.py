# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for Blackwell, drawn by a seed: one generator over those of tests/run and tests/random.

draw(seed, number) gives kernel `number`. Families take turns, so any few have one of each: products of tiles and by
hand of every element type, by one CTA and by a pair, in roles also by two pairs; groups of products; loops of attention,
forward and backward; kernels by hand that take over tiles. Loops have 0, 1, S - 1, S or S + 1 rounds for S stages. All numbers are small
enough for every order of the sums to be exact.
"""

import pathlib
import random
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / "run"), str(TESTS / "random")]
import block_scales  # pylint: disable=wrong-import-position
import clusters  # pylint: disable=wrong-import-position
import packed_elements as packed  # pylint: disable=wrong-import-position
import product_loops  # pylint: disable=wrong-import-position
import tensor_memory  # pylint: disable=wrong-import-position
import tensor_memory_tiles as tiles  # pylint: disable=wrong-import-position
import try_cancel  # pylint: disable=wrong-import-position
import around
from kernel import EVERY, WALKS, WITH_TMEM, Kernel, odd, trips

def drawn(r, generator, fits):
    """The first program of another generator that fits."""
    while True:
        c = generator(r.randrange(1 << 40))
        if fits(c):
            return c


# Products.

def of_kind(c):
    if c.get("scales"):
        return ("nvfp4" if c["scales"] == "ue4m3" else "mxfp4") if c["elem"] == "u8" else "mxfp8"
    return c["elem"]


def product_of_tiles(kind, ctas):
    def draw(r):
        c = drawn(r, tiles.draw, lambda c: of_kind(c) == kind and tiles.is_pair(c) == (ctas == 2))
        vector = 32 if c["scales"] else tiles.KINDS[c["elem"]][1]
        c["K"] = odd(r, trips(r, c["stages"]), c["bk"], vector)
        c["walk"] = r.choice(WALKS)
        low, high = (0, 255) if kind.endswith("fp4") else (-4, 4)
        inputs = [f"A=randint:{low}:{high}", f"B=randint:{low}:{high}"]
        inputs += ["SA=randint:1:4", "SB=randint:1:4"] if c["scales"] else []
        inputs += ["P=2"] if c["batch"] else []
        param = "" if c["batch"] else tiles.EPILOGUES[c["epilogue"]][0]
        inputs += {"a": ["a=0.5"], "V": ["V=randint:-9:9"], "C": ["C=randint:-9:9"]}.get(param[:1], [])
        sizes = [f"{name}={c[name]}" for name in "MNK"]
        whole = [f"M={2 * ctas * c['bm']}", f"N={tiles.columns(c)}", f"K={512 if c['scales'] else (c['stages'] + 1) * c['bk']}"]
        return Kernel(f"{kind}, tiles, {ctas} CTA{'s' if ctas > 1 else ''}", tiles.program(c), sizes + inputs,
                      whole + inputs, wish="for a pair of CTAs" if ctas == 2 else "dot: tcgen05")
    return draw


def packed_of_tiles(ctas):
    """mxfp6, and fp6, fp4 and fp8 mixed, packed in memory."""
    def draw(r):
        c = drawn(r, packed.draw, lambda c: c["pair"] == (ctas == 2))
        blocks = trips(r, c["stages"]) * c["step"]
        inputs = [f"{x}=randint:{'0:255' if packed.BITS[c[x.lower()]] < 8 else '-4:4'}" for x in "AB"]
        inputs += ["SA=randint:1:2", "SB=randint:1:2"]
        whole = [f"M={2 * ctas * c['rows']}", f"N={c['columns']}", f"S={4 * (c['stages'] + 1) * c['step']}"]
        return Kernel(f"packed, tiles, {ctas} CTA{'s' if ctas > 1 else ''}", packed.kernel(c),
                      [f"M={c['m']}", f"N={c['n']}", f"S={4 * blocks}"] + inputs, whole + inputs,
                      wish="for a pair of CTAs" if ctas == 2 else "dot: tcgen05")
    return draw


def fits_registers(c):
    """Do threads have registers for the sums, which these kernels read and write as a whole?"""
    return c.get("rows", 128) * c["n"] <= 128 * c.get("threads", 128)


def product_by_hand(kind, ctas):
    def draw(r):
        c = drawn(r, tensor_memory.draw,
                  lambda c: c["elem"] == kind and c["pair"] == (ctas == 2) and fits_registers(c))
        inputs = ["A=randint:-4:4", "B=randint:-4:4", "C=randint:-9:9"]
        return Kernel(f"{kind}, by hand, {ctas} CTA{'s' if ctas > 1 else ''}", tensor_memory.kernels(c), inputs,
                      inputs, WITH_TMEM, "by_hand", ":plain")
    return draw


def scales_by_hand(kind):
    def draw(r):
        c = drawn(r, block_scales.draw,
                  lambda c: of_kind({"elem": c["a"], "scales": c["scale"]}) == kind and fits_registers(c))
        low, high = (0, 255) if c["a"] == "u8" else (-4, 4)
        inputs = [f"A=randint:{low}:{high}", f"B=randint:{low}:{high}", "SA=randint:1:4", "SB=randint:1:4"]
        return Kernel(f"{kind}, by hand, 1 CTA", block_scales.kernels(c), inputs, inputs, WITH_TMEM,
                      "by_hand", ":plain", planted="by_hand__any")  # rows of scales are of any length
    return draw


def in_roles(name, kinds, ctas):
    """By hand in roles, by one CTA, a pair or two pairs that share what tensor copies bring."""
    def draw(r):
        c = drawn(r, clusters.draw, lambda c: c["ctas"] == ctas and (c["a"], c["b"], c["scale"], c["group"]) in kinds)
        return Kernel(f"{name}, in roles, {ctas} CTA{'s' if ctas > 1 else ''}", clusters.kernels(c), clusters.launch(c),
                      clusters.whole(c), WITH_TMEM, "by_hand", ":plain")
    return draw


# Products of groups: a table says which factor a tile of rows has, and how many rows count.

GROUPED = """
kernel grouped(A: {T}[M, K], B: {T}[E, N, K], Group: i32[J], Rows: i32[J], D: inout f32[M, N])
{{
    for (t, n) in tiles(J, N by {bn}{walk}) {{
        let e = Group[t];
        let m = t * {bm};
        if e >= 0 {{
            var acc: f32[{bm}, {bn}] = 0;
            for k in range(0, K, {bk}, stages = {S}) {{
                acc += dot(A[m:+{bm}, k:+{bk}], B[e, n:+{bn}, k:+{bk}].T);
            }}
            store(D[m:+{bm}, n:+{bn}], acc, mask = rows(acc) < Rows[t]);
        }}
    }}
}}
"""


def grouped(kind):
    def draw(r):
        vector = tiles.KINDS[kind][1]
        c = {"T": kind, "bm": r.choice([64, 128, 128]), "bn": r.choice([32, 64, 128, 192]), "bk": r.choice([64, 128]),
             "S": r.choice([1, 2, 3]), "walk": r.choice(WALKS)}
        j, n = r.randint(1, 5), vector * r.randint(1, 320 // vector)
        rows = max(j * c["bm"] - r.choice([0, 0, 1, 7, 40]), 1)
        inputs = ["A=randint:-4:4", "B=randint:-4:4", f"Rows=randint:0:{c['bm'] + 9}",
                  "D=randint:-9:9", "E=3"]
        sizes = [f"M={rows}", f"N={n}", f"K={odd(r, trips(r, c['S']), c['bk'], vector)}", f"J={j}"]
        whole = [f"M={4 * c['bm']}", f"N={c['bn']}", f"K={(c['S'] + 1) * c['bk']}", "J=4", "Group=randint:0:2"]
        return Kernel(f"{kind}, grouped", GROUPED.format(**c), sizes + inputs + ["Group=randint:-1:2"], whole + inputs,
                      wish="dot: tcgen05")
    return draw


# Attention.

def forward(kind):
    def draw(r):
        drawn_as = kind if kind in product_loops.TYPES else "f16"
        while True:
            text, rows, _ = product_loops.program(r.randrange(1 << 40))
            if f"Q: {drawn_as}[" in text and "SQ:" not in text:
                break
        text = re.sub(rf"\b{drawn_as}\b", kind, text)
        tile = int(re.search(r"tiles\(M by (\d+)\)", text)[1])
        step = int(re.search(r"range\(0, .*?, (\d+)(?:, stages = \d)?\) \{", text)[1])
        stages = int((re.search(r"stages = (\d)", text) or [0, 1])[1])
        columns = odd(r, trips(r, stages), step, tiles.KINDS[kind][1])
        text = text.replace(f"tiles(M by {tile})", f"tiles(M by {tile}{r.choice(WALKS)})")
        inputs = ["Q=randint:-1:1", "K=randint:-1:1", "V=randint:-1:1", "L=randint:0:200"]
        many = [f"P=randint:-2:{columns + 2}", f"E=randint:0:{columns + 60}"]
        most = [f"P=randint:-2:{4 * step}", f"E=randint:{4 * step}:{5 * step}"]
        return Kernel(f"{kind}, attention forward", text, [f"M={rows}", f"N={columns}"] + inputs + many,
                      [f"M={2 * tile}", f"N={4 * step}"] + inputs + most)
    return draw


BACKWARD = ["""
kernel backward(Q: {T}[M, {D}], K: {T}[N, {D}], V: {T}[N, {D}], G: {T}[M, {D}], L: i32[M],
    dK: out f32[N, {D}], dV: out f32[N, {D}])
{{
    for t in tiles(N by {BT}{walk}) {{
        let kt = K[t:+{BT}, :];
        let vt = V[t:+{BT}, :];
        var dk: f32[{BT}, {D}] = 0;
        var dv: f32[{BT}, {D}] = 0;
        for q in range({first}, M, {BQ}, stages = {S}) {{
            let qt = Q[q:+{BQ}, :];
            let gt = G[q:+{BQ}, :];
            let s = dot(kt, qt.T);
            let p = where({seen} && q + cols(s) < M, min(max(s, -1), 1), 0);
            dv += dot({T}(p), gt);
            let dp = dot(vt, gt.T) - f32(L[q:+{BQ}])[None, :];
            dk += dot({T}(p * min(max(dp, -2), 2)), qt);
        }}
        dK[t:+{BT}, :] = dk;
        dV[t:+{BT}, :] = dv;
    }}
}}
""", """
kernel backward(Q: {T}[M, {D}], K: {T}[N, {D}], V: {T}[N, {D}], G: {T}[M, {D}], L: i32[M],
    dQ: out f32[M, {D}])
{{
    for q in tiles(M by {CQ}{walk}) {{
        let qt = Q[q:+{CQ}, :];
        let gt = G[q:+{CQ}, :];
        let l = f32(L[q:+{CQ}])[:, None];
        var dq: f32[{CQ}, {D}] = 0;
        for t in range(0, {last}, {CT}, stages = {S}) {{
            let kt = K[t:+{CT}, :];
            let s = dot(qt, kt.T);
            let p = where({sees}, min(max(s, -1), 1), 0);
            dq += dot({T}(p * min(max(dot(gt, V[t:+{CT}, :].T) - l, -2), 2)), kt);
        }}
        dQ[q:+{CQ}, :] = dq;
    }}
}}
"""]
MASKS = {False: {"first": "0", "seen": "true", "sees": "true", "last": "N"},
         True: {"first": "max(0, t - 16) / {BQ} * {BQ}", "seen": "t + rows(s) <= q + cols(s) + 16",
                "sees": "t + cols(s) <= q + rows(s) + 16", "last": "min(N, q + {CQ} + 16)"}}


def backward(kind):
    def draw(r):
        c = {"T": kind, "D": r.choice([32, 64, 64, 128]), "BT": r.choice([64, 128, 128]), "BQ": r.choice([32, 64]),
             "CQ": r.choice([64, 128, 128]), "CT": r.choice([32, 64]), "S": r.choice([1, 2]), "walk": r.choice(WALKS)}
        c.update({name: text.format(**c) for name, text in MASKS[r.random() < 0.5].items()})
        inputs = [f"{name}=randint:-1:1" for name in "QKVGL"]
        vector = tiles.KINDS[kind][1]
        sizes = [f"M={odd(r, trips(r, c['S']), c['BQ'], vector)}", f"N={odd(r, trips(r, c['S']), c['CT'], vector)}"]
        most = 4 * max(c["CQ"], c["BT"])  # as many rows as keys: the last tile has rounds, too, and reads sums
        whole = [f"M={most}", f"N={most}"]
        return Kernel(f"{kind}, attention backward", r.choice(BACKWARD).format(**c), sizes + inputs, whole + inputs)
    return draw


def takes_over(r):
    c = try_cancel.draw(r.randrange(1 << 40))
    lines = try_cancel.roles_body(c) if c["roles"] else try_cancel.plain_body(c)
    inputs = ["X=randint:-99:99", "C=randint:-9:9"]
    sizes = [f"{d}={n}" for d, n in zip("PQR", c["grid"])]
    whole = [f"{d}={3 * n}" for d, n in zip("PQR", c["cluster"])]
    return Kernel("tiles taken over, by hand", try_cancel.kernel(c, lines), sizes + inputs, whole + inputs, EVERY,
                  "by_hand", ":plain", sms=c["sms"])


ELEMENTS = ["f16", "bf16", "e4m3", "e5m2"]
SCALED = ["mxfp8", "mxfp4", "nvfp4"]
ROLES = {"no scales": clusters.PLAIN, "scales": clusters.SCALED, "packed": clusters.PACKED}
FAMILIES = [product_of_tiles(kind, ctas) for kind in ELEMENTS for ctas in (1, 2)] + \
    [product_of_tiles(kind, ctas) for kind in SCALED for ctas in (1, 2)] + [packed_of_tiles(1), packed_of_tiles(2)] + \
    [product_by_hand(kind, ctas) for kind in ELEMENTS for ctas in (1, 2)] + \
    [scales_by_hand(kind) for kind in SCALED] + \
    [in_roles(name, kinds, ctas) for name, kinds in ROLES.items() for ctas in (1, 2, 4)] + \
    [grouped(kind) for kind in ELEMENTS] + \
    [attention(kind) for kind in ELEMENTS for attention in (forward, backward)] + [takes_over] + \
    [around.draw(name) for name in around.PROGRAMS]


def draw(seed, number):
    """A kernel of each family in turn, in an order of the seed: a run that ends early has tried others before."""
    families = random.Random(f"{seed} families").sample(FAMILIES, len(FAMILIES))
    return families[number % len(FAMILIES)](random.Random(f"{seed} {number}"))
