#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/choose_configs.py on a small space, held against what `tirc build` says of each pair of configurations.

usage: choose.py TIRC LIBTIRRT CHOOSE_CONFIGS.py [--seed=N] [--count=N]

Where sizes are known the receipt has the cycles of the cheapest configuration and of the next one. From those of all
candidates, each beside the first one, follow the best pair, and how many times as long launches take with it as with all. The
tool, which evaluates formulas of an artifact, must choose that pair and say that loss. A candidate that does not compile,
that a condition rules out, or whose sums are too many for wgmma is left out, and one of two spaces is there once. Seed 0 is that of the day.
"""

import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "random"))
import seeds  # pylint: disable=wrong-import-position

KERNEL = """
configs ignored { config(BM = 32) }
kernel product<BM = 128, BN = 128, BK = 64>(A: f16[M, K], B: f16[N, K], D: out f16[M, N]) where BM != 48
    config(BM = 128, BN = 128) config(BM = 64, BN = 64)
{
    for (m, n) in tiles(M by BM, N by BN) {
        var acc: f32[BM, BN] = 0;
        for k in range(0, K, BK, stages = 3) { acc += dot(A[m:+BM, k:+BK], B[n:+BN, k:+BK].T); }
        D[m:+BM, n:+BN] = f16(acc);
    }
}
"""
FIRST = (128, 128)
SPACE = ["--space=BM=64,128 BN=64..192:64", "--space=BM=48 BN=64", "--space=BM=64 BN=64,0", "--space=BM=256 BN=256"]
CANDIDATES = [(m, n) for m in (64, 128) for n in (64, 128, 192)]


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=100, check=False)


def cycles(tirc, folder, tile, size):
    """Of the first configuration and of this one."""
    clauses = " ".join(f"config(BM = {m}, BN = {n})" for m, n in (FIRST, tile))
    source = folder / "pair.tir"
    source.write_text(re.sub(r"config\(BM = 128.*", clauses, KERNEL))
    done = run(tirc, "build", source, "--arch=sm_90a", "-o", folder / "pair.tira", "--receipt",
               *(f"--dim={name}={n}" for name, n in size.items()))
    said = re.search(r"configuration: BM=(\d+), BN=(\d+), the cheapest of 2: (\d+) cycles; next .*, (\d+)", done.stdout)
    assert said, done.stdout + done.stderr
    costs = int(said[3]), int(said[4])
    return costs if (int(said[1]), int(said[2])) == FIRST else costs[::-1]


def drawn(seed, count):
    """The ranges have one size each."""
    rng = random.Random(f"choose {seed}")
    size = lambda low, high: 8 * int(2 ** rng.uniform(low, high))
    return [{"M": size(0, 10), "N": size(3, 10), "K": size(3, 10)} for _ in range(count)]


def main():
    o = seeds.parser(__doc__, "tirc", "runtime", "choose", count=4).parse_args()
    sizes = drawn(seeds.first(o), o.count)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "product.tir").write_text(KERNEL)
        costs = {tile: [cycles(o.tirc, folder, tile, size)[1] for size in sizes] for tile in CANDIDATES if tile != FIRST}
        costs[FIRST] = [cycles(o.tirc, folder, (64, 64), size)[0] for size in sizes]
        draws = ["--draw=" + " ".join(f"{name}={n}..{n}" for name, n in size.items()) for size in sizes]
        done = run(sys.executable, o.choose, o.tirc, o.runtime, folder / "product.tir", *SPACE, *draws, f"--count={o.count}",
                   "--most=2", "--loss=1", "--name=two", "--require=wgmma")
    print(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr

    def loss(tile):
        return math.exp(sum(math.log(min(x, y) / min(all_)) for x, y, *all_ in
                            zip(costs[FIRST], costs[tile], *costs.values())) / len(sizes))

    best = min(map(loss, CANDIDATES))
    kept = [tuple(map(int, found)) for found in re.findall(r"config\(BM = (\d+), BN = (\d+)\)", done.stdout)]
    assert kept[0] == FIRST and len(kept) == (1 if loss(FIRST) == best else 2), kept
    assert loss(kept[-1]) <= best * 1.0001, (kept, {tile: loss(tile) for tile in CANDIDATES})
    said = re.search(r"configs two \{", done.stdout) and re.search(r"(\d+) of (\d+); .*\n.*takes ([\d.]+) times", done.stdout)
    assert said and int(said[2]) == len(CANDIDATES) and abs(float(said[3]) - best) < 2e-4, (said and said[0], best)
    assert "config(BM = 64, BN = 0) is refused: " in done.stderr, done.stderr
    assert "config(BM = 256, BN = 256) is left out: dot: no wgmma" in done.stderr, done.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
