#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which configuration of `matmul` is chosen for sm_100a, at sizes drawn by a seed, and why.

usage: choices.py TIRC MATMUL.tir COST.def [--seed=N] [--count=N]

The receipt names the configuration, what the model takes it to cost, and the next one. The arithmetic of the model
stands here a second time, for configurations of one launch: their cost must be what the receipt says, and none may be
cheaper than the one chosen. Pairs of CTAs must be chosen where they are cheapest, be made (`cta_group::2`), and be
among what is chosen for large sizes; where the tiles of a pair would be more than half beyond M, none may be. Seed 0 is that of the day.
"""

import collections
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "random"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import configurations as stated  # pylint: disable=wrong-import-position
import seeds  # pylint: disable=wrong-import-position

SMS = 148
DEFAULTS = {"BM": 128, "BN": 256, "BK": 64, "CM": 1, "CN": 1, "FLIP": False, "SPLIT": False, "PAD": False}


def card(path):
    text = re.search(r'CARD\(B200,.*?\n#undef', path.read_text(), re.DOTALL)[0]
    text = re.sub(r"//.*", "", text)
    return {name: math.prod(map(int, value.split("*"))) for name, value in re.findall(r"\.(\w+) = ([\d* ]+)", text)}


def configurations(path):
    for config in stated.configurations(path):
        if config.get("needs") == "wgmma":
            continue
        c = {**DEFAULTS, **{name: {"true": True, "false": False}.get(value, value) for name, value in config.items()}}
        yield {k: int(v) if isinstance(v, str) and v.isdigit() else v for k, v in c.items()}


def shape(c):
    """Rows and columns of the product."""
    return (c["BN"], c["BM"]) if c["FLIP"] else (c["BM"], c["BN"])


def is_pair(c):
    rows, columns = shape(c)
    return c["CM"] * c["CN"] == 2 and rows % 128 == 0 and columns % 32 == 0


def cycles(b, c, m, n, k):
    rows, columns = shape(c)
    pair = is_pair(c)
    along_m, along_n = (c["CM"], c["CN"]) if pair else (1, 1)
    tiles = along_m * -(-m // (c["BM"] * along_m)) * along_n * -(-n // (c["BN"] * along_n))
    worth = rows // 128 * 128 if rows % 128 == 0 else rows // 64 * b["fewest_rows"] if rows % 64 == 0 else rows
    multiply = worth * max(columns, b["fewest_columns"]) * c["BK"] // b["products"]
    fetch = (rows * c["BK"] * 2 + columns * c["BK"] * 2 // (2 if pair else 1)) // b["fetched"]
    waves = -(-tiles // SMS)
    busy = -(-k // c["BK"]) * waves * (b["round"] + max(multiply, fetch))
    read = sum(2 * x * y // b["memory"] for x, y in [(m, k), (n, k), (m, n)])
    tile = b["fixed"] + pair * b["clustered"] + 2 * rows * columns // b["stored"]
    return b["start"] + waves * tile + busy + read - min(busy, read) * (100 - b["unhidden"]) // 100


def parse(text):
    c = dict(DEFAULTS)
    for name, value in re.findall(r"(\w+)=(\w+)", text):
        c[name] = {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)
    return c


def key(c):
    return tuple(c[name] for name in DEFAULTS)


def drawn(r):
    size = lambda low, high: max(8, int(2 ** r.uniform(low, high)) // 8 * 8)
    return size(3, 14), size(6, 14), size(6, 13) // 64 * 64 or 64


def main():
    o = seeds.parser(__doc__, "tirc", "matmul", "cost", count=24).parse_args()
    seed = seeds.first(o)
    b, configs, chosen = card(pathlib.Path(o.cost)), list(configurations(pathlib.Path(o.matmul))), collections.Counter()
    sizes = [drawn(random.Random(f"{seed} {i}")) for i in range(o.count)] + [(8192, 8192, 8192), (4096, 4096, 4096)]
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder, "k.ptx")
        for m, n, k in sizes:
            done = subprocess.run([o.tirc, "build", o.matmul, "--arch=sm_100a", "--emit=ptx", "-o", ptx, "--receipt",
                                   f"--dim=M={m}", f"--dim=N={n}", f"--dim=K={k}"], capture_output=True, text=True,
                                  timeout=100, check=False)
            said = done.stdout + done.stderr
            assert done.returncode == 0 and "modelled as B200" in said, said
            why = re.search(r"configuration: (.*), the cheapest of \d+: (\d+) cycles", said)
            assert why or "matmul__step" in said or "__" in said, said
            if not why:  # of two launches
                chosen["two launches"] += 1
                continue
            c, cost = parse(why[1]), int(why[2])
            chosen[why[1]] += 1
            print(f"{m} x {n} x {k}: {why[0]}")
            if c["SPLIT"] or c["PAD"]:
                continue
            assert abs(cycles(b, c, m, n, k) - cost) <= 0.002 * cost, (c, cycles(b, c, m, n, k), cost)
            for other in configs:
                assert other["SPLIT"] or other["PAD"] or cycles(b, other, m, n, k) >= 0.998 * cost, (other, why[0])
            assert is_pair(c) == ("for a pair of CTAs" in said) == ("cta_group::2" in ptx.read_text()), said
            assert not (is_pair(c) and 2 * m < 256 * (c["CM"] > 1)), why[0]
            if min(m, n) >= 4096 and k >= 1024:
                assert is_pair(c), why[0]
    for name, count in chosen.most_common():
        print(f"{count:4} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
