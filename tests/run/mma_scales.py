#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of tiles with scales by mma.sync (sm_120a), drawn at random.

usage: mma_scales.py TIRC [COUNT [FIRST]]

Kernel number n has element types, tiles, sizes that tiles do not divide, the orientation of the scales
of B or that all scales are packed, and a schedule of the emulator, all of which follow from n alone. Its receipt must name block_scale,
and on the emulator, under full checks, it must give exactly what the interpreter makes of dot_scaled: the
numbers are small enough for every order of the sums to be exact. So must one with packed scales on sm_100a. ptxas must take it, and the best variant
without spills. Where there is no ptxas, it is left out.

One selector of one instruction is then another one: a byte of a register of scales, or the lanes that have
it. The kernel must give something else.
"""

import os
import pathlib
import random
import re
import subprocess
import sys

import by_number

# elements of A and B, of the scales, elements that share one
KINDS = [("e4m3", "e4m3", "ue8m0", 32), ("e5m2", "e5m2", "ue8m0", 32), ("e4m3", "e5m2", "ue8m0", 32),
         ("e5m2", "e4m3", "ue8m0", 32), ("e3m2", "e3m2", "ue8m0", 32), ("e2m3", "e2m3", "ue8m0", 32),
         ("e2m3", "e3m2", "ue8m0", 32), ("e5m2", "e2m3", "ue8m0", 32), ("e4m3", "e2m1", "ue8m0", 32),
         ("e2m1", "e3m2", "ue8m0", 32), ("u8", "u8", "ue8m0", 32), ("u8", "u8", "ue4m3", 16)]
SCHEDULES = ["lazy", "eager", "adversarial"]
SELECTORS = ["a_scale", "b_scale", "a_thread", "b_thread"]


def draw(number):
    """What varies, in words that the kernel is made of."""
    r = random.Random(number)
    a, b, scale, group = r.choice(KINDS)
    step = 32 * r.choice([1, 2, 3, 4, 4, 8])  # bytes along K of a tile
    rows, columns = r.choice([16, 32, 48, 64, 128]), r.choice([8, 16, 24, 32, 64, 128])
    unit = 32 if a != "u8" else group // 2  # bytes that share a scale, or 32
    group_bytes = group // 2 if a == "u8" else group
    packed = r.random() < 0.3
    if packed:
        rows, columns, step = r.choice([128, 128, 256]), 128, 4 * group_bytes * r.choice([1, 1, 2])
    return {"packed": packed, "a": a, "b": b, "scale": scale, "group": group // 2 if a == "u8" else group, "step": step,
            "rows": rows, "columns": columns, "turned": r.random() < 0.25,
            "m": r.randrange(1, 3 * rows), "n": r.randrange(1, 3 * columns),
            "k": unit * r.randrange(1, 3 * step // unit), "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def kernel(c):
    scales = "k / {0} :+ {1}".format(c["group"], c["step"] // c["group"])
    if c["packed"]:
        scales = f"k / {4 * c['group']} :+ {c['step'] // (4 * c['group'])}, 0:+32, 0:+16"
        of_sa, part_a = "{scale}[MB, KB, 32, 16]", f"SA[m / 128 :+ {c['rows'] // 128}, {scales}]"
    else:
        of_sa, part_a = "{scale}[M, K / {group}]", f"SA[m:+{c['rows']}, {scales}]"
    sb = "SB: {scale}[NB, KB, 32, 16]" if c["packed"] else "SB: {scale}[K / {group}, N]" if c["turned"] else "SB: {scale}[N, K / {group}]"
    a, b = (f"{x}[{i}:+{size}, k:+{c['step']}]" if c[x.lower()] != "e2m1" else  # two in a byte of memory
            f"mx.unpack({x}[{i}:+{size}, k / 2 :+ {c['step'] // 2}])"
            for x, i, size in (("A", "m", c["rows"]), ("B", "n", c["columns"])))
    held = {x: ("u8", "K / 2") if x == "e2m1" else (x, "K") for x in (c["a"], c["b"])}
    (of_a, ka), (of_b, kb) = held[c["a"]], held[c["b"]]
    part = f"SB[n / 128 :+ 1, {scales}]" if c["packed"] else f"SB[{scales}, n:+{c['columns']}]" if c["turned"] else f"SB[n:+{c['columns']}, {scales}].T"
    blocks = f" where MB == ceildiv(M, 128) where NB == ceildiv(N, 128) " \
        f"where KB == ceildiv(K, {4 * c['group']})" if c["packed"] else ""
    return f"""import "tir/mx.tir" as mx;

kernel product(A: {of_a}[M, {ka}], SA: {of_sa.format(**c)}, B: {of_b}[N, {kb}],
               {sb.format(**c)}, D: out f32[M, N]) where K % {c['group']} == 0{blocks}
{{
    for (m, n) in tiles(M by {c['rows']}, N by {c['columns']}) {{
        var acc: f32[{c['rows']}, {c['columns']}] = 0;
        for k in range(0, K, {c['step']}) {{
            acc += dot_scaled({a}, {part_a},
                {b}.T, {part});
        }}
        D[m:+{c['rows']}, n:+{c['columns']}] = acc;
    }}
}}
"""


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def failed(done, text):
    return f"{' '.join(map(str, done.args))}\n{done.stdout}{done.stderr}{text}" if done.returncode \
        else None


def on_emulator(tirc, path, c, sizes, against=None, arch="sm_120a"):
    ints = ["0:255" if x in ("u8", "e2m1") else "-4:4" for x in (c["a"], c["b"])]
    m, n, k = sizes
    dims = [f"M={m}", f"N={n}", f"K={k}"]
    return run([tirc, "run", path, *dims, f"--arch={arch}", "--device=emu", "--emu-check=full",
                f"--schedule={c['schedule']}", f"A=randint:{ints[0]}", f"B=randint:{ints[1]}",
                "SA=randint:1:9", "SB=randint:1:9", "--check=0",
                *([f"--check-against={against}:product"] if against else [])])


def wrong_selector(text, number):
    """The kernel with a selector of one instruction that is right for another one. None: all are equal."""
    r = random.Random(number)
    for name in r.sample(SELECTORS, len(SELECTORS)):
        place = r.choice(list(re.finditer(rf"\b{name} = (\d)", text)))
        others = sorted(set(re.findall(rf"\b{name} = (\d)", text)) - {place[1]})
        if others:
            return text[:place.start(1)] + r.choice(others) + text[place.end(1):]
    return None


def check_mutant(text, path, c, tirc, number, counts):
    """Whether a wrong selector of the kernel for whole tiles is noticed: None, or what is wrong."""
    half = path.with_name("half.tir")
    done = run([tirc, "build", path, "--arch=sm_120a", "--stop-after=lower_tile", "-o", half])
    if done.returncode:
        return failed(done, text)
    mutant = wrong_selector(half.read_text(encoding="utf-8"), number)
    if not mutant:
        return None
    counts["mutants"] += 1
    half.write_text(mutant, encoding="utf-8")
    done = on_emulator(tirc, half, c, [2 * c["rows"], 2 * c["columns"], 4 * c["step"]], path)
    return None if done.returncode and "FAIL" in done.stdout else \
        f"another selector changes nothing:\n{done.stdout}{done.stderr}{text}"


def check(tirc, ptxas, number, folder, counts):
    c = draw(number)
    text = kernel(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    for arch in ["sm_120a", "sm_100a"] if c["packed"] else ["sm_120a"]:
        wrong = failed(on_emulator(tirc, path, c, [c["m"], c["n"], c["k"]], arch=arch), text)
        if wrong:
            return wrong
    ptx = os.path.join(folder, "k.ptx")
    done = run([tirc, "build", path, "--arch=sm_120a", "--emit=ptx", "--receipt", "-o", ptx])
    wrong = failed(done, text)
    if not wrong and "with block_scale" not in done.stderr + done.stdout:
        wrong = f"no block_scale:\n{done.stderr}{done.stdout}{text}"
    if ptxas and not wrong:
        done = run([ptxas, "-arch=sm_120a", "-v", "-o", os.devnull, ptx])
        best = re.search(r"properties for product\n(.*)", done.stderr)
        wrong = failed(done, text) or \
            (None if best and " 0 bytes spill stores" in best[1] else f"ptxas spills:\n{done.stderr}{text}")
    return wrong or check_mutant(text, path, c, tirc, number, counts)


def main(tirc, count=16, first=0):
    counts = {"mutants": 0}
    by_number.run(lambda *program: check(*program, counts), tirc, count, first)
    print(f"{count} kernels; {counts['mutants']} with a wrong selector")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
