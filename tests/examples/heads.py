#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/bench/artifacts.py compiles of the attention that a seed draws is what random_sizes.py then loads.

usage: heads.py TIRC ARTIFACTS.py [--seed=N] [--count=N]

Artifacts and sizes come from different commands, on different machines, and agree by their draws alone. Seed 0 is that of the day.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "random"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench"))
import heads  # pylint: disable=wrong-import-position
import seeds  # pylint: disable=wrong-import-position


def drawn(seed, count):
    """As random_sizes.py draws them: one set after the other, each with its own numbers."""
    for kind in heads.KINDS:
        rng, draw = heads.random_of(kind, seed), heads.draw(kind)
        for _ in range(count):
            yield kind, *draw(rng)


def is_sound(kind, size):
    batch, of_queries, of_keys, keys, width, values, _ = size
    return batch > 0 and of_queries % of_keys == 0 and keys >= 512 and (kind == heads.FORWARD or width == values) and \
        all(n % 8 == 0 and 8 <= n <= 256 for n in (width, values))


def main():
    o = seeds.parser(__doc__, "tirc", "artifacts", count=1).parse_args()
    seed = seeds.first(o)
    items = list(drawn(seed, o.count))
    wrong = [item for item in items if not is_sound(item[0], item[2])]
    with tempfile.TemporaryDirectory() as folder:
        for _, name, _ in items:
            done = subprocess.run([sys.executable, o.artifacts, "--tirc", o.tirc, "--out", folder, f"--heads={seed}",
                                   f"--cases={o.count}", f"--only={name}"], capture_output=True, text=True, check=False)
            if done.returncode or not (pathlib.Path(folder) / f"{name}.tira").exists():
                wrong.append((name, done.stdout + done.stderr))
    print(f"seed {seed}: {items}")
    for item in wrong:
        print("WRONG", *item)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
