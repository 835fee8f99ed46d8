#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random sizes of heads, on the emulator against the interpreter.

Usage: heads.py TIRC [--seed N] [--count N]

Each program multiplies tiles of queries by all keys and what comes of it by all values, as attention does; some also add
its transpose times the queries to a third tensor, as a gradient does, by 64 rows beside 128. Heads have any multiple of 8
elements up to 256, those of values often another number. Results must be right, and on sm_90a the best variant has no product
by mma.sync because of the size of its heads. Seed 0 is that of the day. A failing program is printed.
"""

import json
import random
import sys

import seeds

ARCHS = ["sm_90a", "sm_90a", "sm_80", "sm_100a"]
SIZES = ["no wgmma, because the rows of an operand", "no wgmma, because the columns of each",
         "no wgmma, because the tile is not"]

PROGRAM = """kernel k(Q: {T}[S, {D}], K: {T}[N, {D}], V: {T}[N, {W}], O: out {OUT}[S, {W}]{more})
{{
    for s in tiles(S by {BQ}) {{
        let q = Q[s:+{BQ}, :];
        var o: f32[{BQ}, {W}] = 0;
        for n in range(0, N, {BN}, stages = 2) {{
            let p = {T}(dot(q, K[n:+{BN}, :].T) * 0.0625);
            o += dot(p, V[n:+{BN}, :]);{turned}
        }}
        O[s:+{BQ}, :] = {OUT}(o);
    }}
}}
"""


def draw(seed):
    r = random.Random(seed)
    size = 8 * r.choice([r.randint(1, 16), r.randint(1, 32)])
    gradient = r.random() < 0.3
    fill = {"D": size, "W": size if r.random() < 0.6 else 8 * r.randint(1, 32), "T": r.choice(["bf16", "bf16", "f16"]),
            "OUT": r.choice(["f32", "bf16"]), "BQ": r.choice([64, 128]), "BN": r.choice([32, 64, 64]), "more": "", "turned": ""}
    if gradient:
        fill.update(BQ=128, BN=64, more=f", Z: inout f32[N, {size}]",
                    turned="\n            atomic_add(Z[n:+64, :], dot(p.T, q));")
    sizes = {"S": r.choice([1, 63, 130]), "N": r.choice([0, 1, 65, 130])}
    return PROGRAM.format(**fill), sizes, ARCHS[seed % len(ARCHS)]


def failure(tirc, path, sizes, arch):
    why = seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--check", "Q=randint:-2:2", "K=randint:-2:2",
                         "V=randint:-2:2", *(["Z=randint:-2:2"] if "Z:" in path.read_text() else []),
                         *(f"{n}={x}" for n, x in sizes.items())])
    if why or arch != "sm_90a":
        return why
    said = seeds.output([tirc, "check", str(path), f"--arch={arch}", "--receipt=json"])
    best = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["variants"][0]
    slow = [record["text"] for record in best["records"] if any(size in record["text"] for size in SIZES)]
    return "\n".join(slow) or None


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, failure))
