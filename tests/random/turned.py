#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random products whose operands lie either way round, on the emulator against the interpreter.

Usage: turned.py TIRC [--seed N] [--count N]

A is M x K or K x M in memory, B is K x N or N x K, of elements of 8, 16 or 32 bits. In some programs all rounds of K multiply
their columns in another order, which both operands have, or A is made in registers, beside which one warpgroup turns B. Results
must be right. On sm_90a the best variant multiplies on warpgroups if it does so with K contiguous, for tiles of up to 128 x 256;
three warpgroups have fewer registers beside a role that
turns. Seed 0 is that of the day. A failing program is printed.
"""

import json
import random
import sys

import seeds

ARCHS = ["sm_90a", "sm_90a", "sm_90a", "sm_80", "sm_100a", "sm_120a"]
LARGEST = 128 * 256  # of a tile: the role that turns takes registers of more sums
TYPES = {"e4m3": "f32", "e5m2": "f32", "i8": "i32", "u8": "i32", "bf16": "f32", "tf32": "f32"}
BYTES = {"bf16": 2, "tf32": 4}  # of an element; of others 1

PROGRAM = """kernel k(A: {T}[{A}], B: {T}[{B}], D: out {S}[M, N])
{{
    for (m, n) in tiles(M by {BM}, N by {BN}) {{
        var sums: {S}[{BM}, {BN}] = 0;
        for k in range(0, K, {BK}) {{
            let a = {a};
            let b = {b};
            sums += dot({order_a}, {order_b});
        }}
        D[m:+{BM}, n:+{BN}] = sums;
    }}
}}

// Columns 2q, 2q + 1, 2q + 8 and 2q + 9 of each sixteen beside each other.
fn ordered<ROWS, COLS>(x)
{{
    return reshape(permute(reshape(x, ROWS, COLS / 16, 2, 4, 2), permutation = [0, 1, 3, 2, 4]), ROWS, COLS);
}}
"""


def text(fill, a_turned, b_turned):
    """a_turned, b_turned: M, or N, is contiguous."""
    return PROGRAM.format(
        **fill, S=TYPES[fill["T"]], A="K, M" if a_turned else "M, K", B="K, N" if b_turned else "N, K",
        a="A[k:+{BK}, m:+{BM}].T".format(**fill) if a_turned else "A[m:+{BM}, k:+{BK}]".format(**fill),
        b="B[k:+{BK}, n:+{BN}]".format(**fill) if b_turned else "B[n:+{BN}, k:+{BK}].T".format(**fill),
        order_a=factor(fill),
        order_b="ordered(b.T, ROWS = {BN}, COLS = {BK}).T".format(**fill) if fill["ordered"] else "b")


def factor(fill):
    a = "ordered(a, ROWS = {BM}, COLS = {BK})".format(**fill) if fill["ordered"] else "a"
    if not fill["made"]:
        return a
    wide, by = (("i32", "+ 1") if fill["T"] in ("i8", "u8") else ("f32", "* 0.5"))
    return f"{fill['T']}({wide}({a}) {by})"


def draw(seed):
    r = random.Random(seed)
    fill = {"T": r.choice(["e4m3", "e4m3", "i8", "i8", *TYPES]), "BM": r.choice([64, 128, 128, 192, 256]),
            "BN": r.choice([32, 64, 96, 128, 160, 256])}
    fill["BK"] = r.choice([32, 64, 128]) // BYTES.get(fill["T"], 1)
    fill["ordered"] = fill["BK"] % 16 == 0 and r.random() < 0.2
    fill["made"] = r.random() < 0.3
    step = r.choice([16, 16, 16, 4, 1])  # elements that sizes are a multiple of
    sizes = {name: step * r.choice([1, 5, 9, r.randint(1, 14)]) for name in "MN"}
    sizes["K"] = step * r.choice([0, 1, 5, r.randint(1, 20)])
    turned = r.choice([(False, True), (False, True), (True, False), (True, True), (False, False)])
    return text(fill, *turned), sizes, ARCHS[seed % len(ARCHS)], fill


def warpgroups(tirc, path, arch):
    """Does the best variant multiply on warpgroups?"""
    said = seeds.output([tirc, "check", str(path), f"--arch={arch}", "--receipt=json"])
    best = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["variants"][0]
    return any(record["text"].startswith("dot: wgmma") for record in best["records"])


def failure(tirc, path, sizes, arch, fill):
    inputs = "randint:0:3" if fill["T"] == "u8" else "randint:-2:2"
    why = seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--check", f"A={inputs}", f"B={inputs}",
                         *(f"{n}={x}" for n, x in sizes.items())])
    if why or arch != "sm_90a" or fill["ordered"] or fill["BM"] == 192 or fill["BM"] * fill["BN"] > LARGEST:
        return why
    straight = path.with_suffix(".straight.tir")
    straight.write_text(text(fill, False, False))
    if warpgroups(tirc, straight, arch) and not warpgroups(tirc, path, arch):
        return "no product on warpgroups, where K contiguous has one\n"
    return None


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, failure))
