#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program of examples/blackwell_scales on the emulator, against the tile program in plain.tir.

usage: block_scales.py TIRC mxfp8.tir|nvfp4.tir|README.md

For sizes below, at and above the tile the kernel runs on numbers for which every order of summation
gives the same result, and must give exactly what the reference interpreter makes of plain.tir; the
emulator looks for races. Where there is ptxas, it must not spill. Without any one of its waits, arrivals,
commits and fences the kernel must be refused. Of the page the commands are run.
"""

import pathlib
import sys
import tempfile

import ladder

# M, N, bytes along K
SIZES = [(1, 8, 16), (128, 128, 128), (130, 120, 144), (129, 136, 272), (256, 264, 656), (300, 8, 640)]
ladder.ARCHES["blackwell_scales"] = "sm_100a"


def blocks(size, of):
    return max(1, -(-size // of))


def check_product(tirc, path, m, n, k):
    packed = path.stem == "nvfp4"
    low, high = (0, 255) if packed else (-4, 4)
    ladder.run([tirc, "run", path, f"--kernel={path.stem}", "--device=emu", "--arch=sm_100a",
                "--emu-check=full", f"M={m}", f"N={n}", f"{'H' if packed else 'K'}={k}",
                f"MB={blocks(m, 128)}", f"NB={blocks(n, 128)}", f"KB={blocks(k, 32 if packed else 128)}",
                f"A=randint:{low}:{high}", f"B=randint:{low}:{high}", "SA=randint:1:4",
                "SB=randint:1:4", "--check=0",
                f"--check-against={path.with_name('plain.tir')}:{path.stem}"])


def main():
    tirc, path = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        if path.name == "README.md":
            ladder.run_page(tirc, path, folder)
            return 0
        ok = ladder.assemble(tirc, path, folder) and ladder.needs_all(tirc, path, folder)
    for sizes in SIZES:
        check_product(tirc, path, *sizes)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
