#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of tile programs in tensor memory, drawn at random.

usage: tensor_memory_tiles.py TIRC [COUNT [FIRST]]

Program number n has element types, orientations, tiles, sizes and an epilogue that follow from n
alone; some have scales (`dot_scaled`), which tensor cores must take, and some ask for clusters of two
tiles, which must be pairs of CTAs where they can. For sm_100a its best variant must
multiply on tcgen05, and on the emulator, under full checks and a schedule that also follows from n, give
exactly what the interpreter gives. ptxas must take it,
without spills; where there is no ptxas, this is left out.
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

# Element types, their sums, how many elements are 16 bytes, and whether they may be turned.
KINDS = {"f16": ("f32", 8, True), "bf16": ("f32", 8, True), "e4m3": ("f32", 16, False),
         "e5m2": ("f32", 16, False), "i8": ("i32", 16, False), "u8": ("i32", 16, False)}
# Of products with scales: elements of A and B, of the scales, and bytes that share one.
SCALED = [("e4m3", "e4m3", "ue8m0", 32), ("e5m2", "e4m3", "ue8m0", 32), ("e4m3", "e5m2", "ue8m0", 32),
          ("u8", "u8", "ue8m0", 16), ("u8", "u8", "ue4m3", 8)]
# Elements that one instruction multiplies by others.
MIXED = [("e4m3", "e5m2"), ("i8", "u8")]
EPILOGUES = {
    "plain": ("", "D[{at}] = OUT(acc);"),
    "scaled": ("a: f32", "D[{at}] = OUT(f32(acc) * a);"),
    "bias": ("V: f32[N]", "D[{at}] = OUT(f32(acc) + V[n:+{bn}][None, :]);"),
    "residual": ("C: f32[M, N]", "D[{at}] = OUT(f32(acc) + C[{at}]);"),
    "rows": ("R: out f32[M, ceildiv(N, {bn})]",
             "D[{at}] = OUT(acc); R[m:+{bm}, n / {bn} :+ 1] = max(f32(acc), axis = 1);"),
}


def draw(number):
    r = random.Random(number)
    elem = r.choice(list(KINDS))
    sums, vector, may_turn = KINDS[elem]
    size = lambda most: r.choice([r.randint(1, most), 128, 256])
    bm = r.choice([64, 128, 128, 192, 256])
    others = next((m for m in MIXED if elem in m), [elem])
    c = {"elem": elem, "other": random.Random(f"other {number}").choice(others), "sums": sums, "bm": bm, "bk": r.choice([64, 128]), "scales": None,
         "bn": r.choice([16, 32, 64, 128] + ([192, 256] if bm < 256 else [])),
         "a_turned": may_turn and r.random() < 0.3, "b_turned": may_turn and r.random() < 0.3,
         "batch": r.random() < 0.3, "stages": r.choice([1, 2, 3]), "epilogue": r.choice(list(EPILOGUES)),
         "out": r.choice(["f32", "bf16"]) if sums == "f32" else "f32",
         "M": -(-size(300) // vector) * vector, "N": -(-size(300) // vector) * vector,
         "K": vector * r.randint(1, 400 // vector),
         "schedule": r.choice(["lazy", "eager", "adversarial", f"random:{number}"])}
    c = scaled(c, r) if r.random() < 0.3 else c
    return {**c, "cluster": r.random() < 0.5, "walk": r.choice(["", ", persistent = true",
                                                                ", persistent = dynamic"])}


def is_pair(c):
    return c["cluster"] and columns(c) % 32 == 0


def columns(c):
    return max(c["bn"], 64) if c["b_turned"] else c["bn"]


def scaled(c, r):
    """The same program with scales: rows in blocks of 128, K in whole blocks."""
    elem, other, scales, block = r.choice(SCALED)
    return {**c, "elem": elem, "other": other, "scales": scales, "block": block, "sums": "f32",
            "bm": 256 if c["bm"] == 256 else 128, "bk": r.choice([32, 64, 128]), "a_turned": False,
            "b_turned": False, "out": r.choice(["f32", "bf16"]), "K": 32 * r.randint(0, 12)}


def program(c):
    bm, bn, bk = c["bm"], columns(c), c["bk"]
    batch, b = ("P, ", "p, ") if c["batch"] else ("", "")
    a = ("K, M", f"{b}k:+{bk}, m:+{bm}", "") if c["a_turned"] else ("M, K", f"{b}m:+{bm}, k:+{bk}", "")
    w = ("K, N", f"{b}k:+{bk}, n:+{bn}", "") if c["b_turned"] else ("N, K", f"{b}n:+{bn}, k:+{bk}", ".T")
    turn = ".T" if c["a_turned"] else ""
    param, text = EPILOGUES["plain"] if c["batch"] else EPILOGUES[c["epilogue"]]
    at = f"{b}m:+{bm}, n:+{bn}"
    walk = (f", cluster = ({'1, ' if c['batch'] else ''}2, 1)" if c["cluster"] else "") + c["walk"]
    extents = f"(p, m, n) in tiles(P by 1, M by {bm}, N by {bn}{walk})" if c["batch"] else \
        f"(m, n) in tiles(M by {bm}, N by {bn}{walk})"
    more = f", {param.format(bm=bm, bn=bn)}" if param else ""
    of, call = "", f"dot(A[{a[1]}]{turn}, B[{w[1]}]{w[2]})"
    if c["scales"]:
        of = "".join(f" S{x}: {c['scales']}[{batch}{r}, K / {c['block']}]," for x, r in ["AM", "BN"])
        part = f"k / {c['block']} :+ {bk // c['block']}"
        call = f"dot_scaled(A[{a[1]}], SA[{b}m:+{bm}, {part}], B[{w[1]}].T, SB[{b}n:+{bn}, {part}].T)"
    return f"""
kernel product<OUT = {c['out']}>(A: {c['elem']}[{batch}{a[0]}], B: {c['other']}[{batch}{w[0]}],{of}
    D: out OUT[{batch}M, N]{more})
{{
    for {extents} {{
        var acc: {c['sums']}[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {c['stages']}) {{
            acc += {call};
        }}
        {text.format(at=at, bm=bm, bn=bn)}
    }}
}}
"""


def run(command, text):
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}{text}")
    return done.stdout + done.stderr


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = program(c)
    path, ptx = pathlib.Path(folder, "k.tir"), os.path.join(folder, "k.ptx")
    path.write_text(text, encoding="utf-8")
    low, high = (0, 255 if c["scales"] else 7) if "u8" in (c["elem"], c["other"]) else (-4, 4)
    scales = ["SA=randint:1:4", "SB=randint:1:4"] if c["scales"] else []
    sizes = [f"{name}={c[name]}" for name in "MNK"] + (["P=3"] if c["batch"] else [])
    given = {"a": "a=0.5", "V": "V=randint:-9:9", "C": "C=randint:-9:9"}
    param = "" if c["batch"] else EPILOGUES[c["epilogue"]][0]
    more = [given[param[0]]] if param and param[0] in given else []
    run([tirc, "run", path, "--arch=sm_100a", "--device=emu", "--emu-check=full",
         f"--schedule={c['schedule']}", *sizes, f"A=randint:{low}:{high}", f"B=randint:{low}:{high}",
         *scales, *more, "--check=0"], text)
    said = run([tirc, "build", path, "--arch=sm_100a", "--emit=ptx", "-o", ptx, "--receipt=json"], text)
    variants = json.loads(said)["variants"]
    best = variants[0]["records"]
    if not any("dot: tcgen05" in r["text"] for r in best):
        sys.exit(f"program {number} is not on tcgen05: {[r['text'] for r in best]}{text}")
    if c["scales"] and any("bf16" in r["text"] for r in best if r["text"].startswith("dot:")):
        sys.exit(f"program {number} multiplies its scales: {[r['text'] for r in best]}{text}")
    if is_pair(c) != any("for a pair of CTAs" in r["text"] for r in best) or \
            (c["cluster"] and not is_pair(c)) != any("no pair of CTAs" in r["text"] for r in best):
        sys.exit(f"program {number}: {[r['text'] for r in best]}{text}")
    log = run([ptxas, "-arch=sm_100a", "-v", "-o", os.devnull, ptx], text) if ptxas else ""
    spills = dict(re.findall(r"Function properties for (\S+)\n(.*)", log))
    for variant in variants:
        if any("dot: tcgen05" in r["text"] for r in variant["records"]) and \
                re.search(r"[1-9]\d* bytes spill", spills.get(variant["entry"], "")):
            sys.exit(f"program {number} spills: {spills[variant['entry']]}{text}")


def main(tirc, count=10, first=0):
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(first), int(first) + int(count)):
            check(tirc, ptxas, number, folder)
    print(f"{count} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
