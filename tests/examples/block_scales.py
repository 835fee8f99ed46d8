#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program of examples/blackwell_scales on the emulator, against the tile program in plain.tir.

usage: block_scales.py TIRC mxfp8.tir|nvfp4.tir|README.md

For sizes below, at and above the tile the kernel runs on numbers for which every order of summation
gives the same result, and must give exactly what the reference interpreter makes of plain.tir; the
emulator looks for races. Where there is ptxas, it must not spill. Without any one of its waits, arrivals,
commits and fences the kernel must be refused. With planted bugs, what sync_check can see is refused; where
it is told not to look, or cannot, the emulator finds them. Of the page the commands are run.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import ladder

# M, N, bytes along K
SIZES = [(1, 8, 16), (128, 128, 128), (130, 120, 144), (129, 136, 272), (256, 264, 656), (300, 8, 640)]
ladder.ARCHES["blackwell_scales"] = "sm_100a"


def blocks(size, of):
    return max(1, -(-size // of))


def command(tirc, path, original, m, n, k):
    packed = original.stem == "nvfp4"
    low, high = (0, 255) if packed else (-4, 4)
    return [tirc, "run", path, f"--kernel={original.stem}", "--device=emu", "--arch=sm_100a",
            "--emu-check=full", f"M={m}", f"N={n}", f"{'H' if packed else 'K'}={k}",
            f"MB={blocks(m, 128)}", f"NB={blocks(n, 128)}", f"KB={blocks(k, 32 if packed else 128)}",
            f"A=randint:{low}:{high}", f"B=randint:{low}:{high}", "SA=randint:1:4", "SB=randint:1:4",
            "--check=0", f"--check-against={original.with_name('plain.tir')}:{original.stem}"]


# (what is replaced, by what, what sync_check says, what the run says without it); "" for sync_check: nothing
BUGS = [
    (r"\b(s[ab])\[s\]", r"\1[0]", "E0411", "tensor core out of order"),  # one slot: copies overtake products
    (r"\bsb\[s\]\.T", "sa[s].T", "", "FAIL"),
    (r"sa\[s\], sb\[s\]", "sa[(s + 1) % STAGES], sb[s]", "E0411", "tensor core out of order"),
]


def finds_bugs(tirc, path, folder):
    text, ok = path.read_text(encoding="utf-8"), True
    for what, by, said, found in BUGS:
        mutant = re.sub(what, by, text)
        assert mutant != text, what
        wrong = pathlib.Path(folder, path.name)
        for blind in ([False, True] if said else [True]):
            wrong.write_text(re.sub(r"(role multiply warps\(1\) \{\n)", r'\1assume_sync("planted");\n', mutant)
                             if blind else mutant, encoding="utf-8")
            done = subprocess.run(command(tirc, wrong, path, 128, 128, 640), capture_output=True, text=True,
                                  timeout=100, check=False)
            if done.returncode == 0 or (found if blind else said) not in done.stdout + done.stderr:
                print(f"{what} -> {by}, {'without' if blind else 'with'} sync_check:\n{done.stdout}{done.stderr}")
                ok = False
    return ok


def main():
    tirc, path = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        if path.name == "README.md":
            ladder.run_page(tirc, path, folder)
            return 0
        ok = ladder.assemble(tirc, path, folder) and ladder.needs_all(tirc, path, folder) and \
            finds_bugs(tirc, path, folder)
    for sizes in SIZES:
        ladder.run(command(tirc, path, path, *sizes))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
