#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that a pair of CTAs multiplies on sm_100a.

usage: tensor_memory_pairs.py TIRC

Loops of no round, of one, and of about as many as there are slots, for tiles that walk in each way, give on the
emulator, under full checks and several schedules, exactly what the interpreter gives; clusters may reach beyond
the last tile. A kernel in which a CTA takes the other one's half of B, or its rows of A, is found by its values.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

STAGES = 3
TRIPS = [0, 1, STAGES - 1, STAGES, STAGES + 1, 2 * STAGES + 1]
SCHEDULES = ["lazy", "eager", "adversarial", "random:1"]
WALKS = ["", ", persistent = true", ", persistent = dynamic"]
SIZES = [(384, 256), (200, 136), (1, 8)]  # whole tiles of which one has no neighbour, and parts of tiles

SOURCE = """
kernel product(A: bf16[M, K], B: bf16[N, K], D: out f32[M, N])
{{
    for (m, n) in tiles(M by 128, N by 64, cluster = (2, 1){walk}) {{
        var x: f32[128, 64] = 0;
        for k in range(0, K, 64, stages = {stages}) {{ x += dot(A[m:+128, k:+64], B[n:+64, k:+64].T); }}
        D[m:+128, n:+64] = x;
    }}
}}
"""

# What the CTA's place in its pair is multiplied by, in the kernel as the pass writes it.
ROWS = (r"(mul\(v\d+, i32\()128\)", r"\g<1>0)")
HALF = (r"(mul\(v\d+, )32\)", r"\g<1>0)")


def run(command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=250, check=False)


def emulate(tirc, path, m, n, k, *more):
    return run([tirc, "run", path, "--arch=sm_100a", "--device=emu", "--emu-check=full", f"M={m}", f"N={n}",
                f"K={k}", "A=randint:-4:4", "B=randint:-4:4", "--check=0", *more])


def check_sizes(tirc, folder):
    path, count = pathlib.Path(folder, "product.tir"), 0
    for walk in WALKS:
        path.write_text(SOURCE.format(walk=walk, stages=STAGES), encoding="utf-8")
        said = run([tirc, "check", "--arch=sm_100a", "--require=sync,cluster", "--receipt", path])
        if said.returncode or "for a pair of CTAs" not in said.stdout + said.stderr:
            sys.exit(f"no pair: {said.stdout}{said.stderr}")
        for m, n in SIZES:
            for trips in TRIPS:
                schedule = SCHEDULES[count % len(SCHEDULES)]
                done = emulate(tirc, path, m, n, 64 * trips, f"--schedule={schedule}", "--emu-sms=2")
                if done.returncode:
                    sys.exit(f"{m} x {n}, {trips} rounds{walk}, {schedule}: {done.stdout}{done.stderr}")
                count += 1
    return count


def check_mutants(tirc, folder):
    source, path = pathlib.Path(folder, "product.tir"), pathlib.Path(folder, "mutant.tir")
    source.write_text(SOURCE.format(walk="", stages=STAGES), encoding="utf-8")
    whole = run([tirc, "build", "--arch=sm_100a", "--emit=tir", "--stop-after=tensor_memory", "-o", "-", source])
    for pattern, by in [(None, None), ROWS, HALF]:
        text, changed = re.subn(pattern, by, whole.stdout) if pattern else (whole.stdout, 1)
        assert changed, pattern
        path.write_text(text, encoding="utf-8")
        done = emulate(tirc, path, 256, 64, 128, f"--check-against={source}")
        said = done.stdout + done.stderr
        # Two CTAs that store the same rows race, as the copy engine stores without an order.
        found = "largest error" in said or "data race: global asynchronous write" in said
        if bool(done.returncode) != bool(pattern) or (pattern and not found):
            sys.exit(f"{pattern}: {said}")


def main(tirc):
    with tempfile.TemporaryDirectory() as folder:
        print(f"{check_sizes(tirc, folder)} launches")
        check_mutants(tirc, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
