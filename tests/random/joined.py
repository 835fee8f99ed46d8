#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random products whose parts of K a cluster sums: two tiles loops that are one launch on sm_90a.

Usage: joined.py TIRC [--seed N] [--count N]

Tiles, clusters of 2 to 8 CTAs, shares of rows or columns, turned products, turned ones by weights of 8 bits with a scale for
each row and step, parts in turn or one after the other, and what is done with the sums are drawn, and a third loop. On sm_90a each program has one launch for both loops, says so, and is seen as
a whole by `sync_check`; where the first loop reads what the second one writes it has two, and says why. On the emulator,
under full checks and two schedules, it gives what the interpreter gives. Seed 0 is that of the day. A failing
program is printed.
"""

import pathlib
import random
import subprocess
import sys
import tempfile

import seeds

SECONDS = 120

PROGRAM = """kernel k(A: {T}[M, K], B: {W}[N, K]{s}, V: f32[{v}], D: {way} {OUT}[M, N]{e}){where}
{{
    let rounds = ceildiv(K, {BK});
    let across = ceildiv(N, {BN});
    scratch P: f32[{C}, ceildiv(M, {BM}) * across, {BM}, {BN}];
    for (m, n, z) in tiles(M by {BM}, N by {BN}, {C}, cluster = (1, 1, {C})) {{
        var acc: f32[{rows}, {columns}] = {begin};
        for k in range({span}, stages = {stages}) {{
            acc += dot({x}, {y}:+{BK}].T);
        }}
        P[z, m / {BM} * across + n / {BN}, :, :] = acc{turn};
    }}
    for (m, n, z) in tiles(M by {BM}, N by {BN}, {C}, cluster = (1, 1, {C})) {{
        let t = m / {BM} * across + n / {BN};
        let at = z * {share};
        var all: f32[{SM}, {SN}] = 0;
        for i in range(0, {C}, unroll) {{ all += P[i, t, {part}]; }}
        D[{place}] = {OUT}({end});
    }}
{third}}}
"""

THIRD = """    for m in tiles(M by 8) {
        E[m:+8] = sum(f32(A[m:+8, 0:+64]), axis = 1)[:, 0];
    }
"""
JOINED, APART = "it exchanges what two loops share", "the first loop may read what the second one writes"
LARGE, MOST = "the tile leaves too little shared memory", 232448 // 4  # bytes of it


def program(seed):
    r = random.Random(seed)
    ctas, turned, down = r.randint(2, 8), r.random() < 0.5, r.random() < 0.3
    high = r.choice([64, 64, 128])
    wide = 8 * ctas * r.randint(1, max(1, 16 // ctas))
    bm, bn = (wide, high) if turned else (high, wide)
    if down:  # along what fills the tensor cores
        ctas = r.choice([2, 4, 8])
    along_m = turned != down
    size = bm if along_m else bn
    share = size // ctas
    if size % ctas:
        return program(f"{seed} again")
    kind, depth = r.choice([("bf16", 64), ("f16", 64), ("bf16", 32)])
    span = r.choice([f"ceildiv(rounds * z, {ctas}) * {depth}, ceildiv(rounds * (z + 1), {ctas}) * {depth}, {depth}",
                     f"z * {depth}, K, {ctas * depth}"])
    x, y = ("B[n:+%d, k" % bn, "A[m:+%d, k" % bm) if turned else ("A[m:+%d, k" % bm, "B[n:+%d, k" % bn)
    few = turned and r.random() < 0.5
    x += f":+{depth}]"
    if few:
        x = f"{kind}(f32({x}) * f32(S[n:+{bn}, k / {depth}][:, None]))"
    sm, sn = (share, bn) if along_m else (bm, share)
    m, n = ("m + at", "n") if along_m else ("m", "n + at")
    end = r.choice(["all", "max(all, 0)", f"all * V[{n}:+{sn}][None, :]", "all / (1 + max(abs(all), axis = 1))"])
    reads, more = r.random() < 0.2, r.random() < 0.3
    rows, columns = (bn, bm) if turned else (bm, bn)
    text = PROGRAM.format(
        way="inout" if reads else "out", begin=f"f32(D[0:+{rows}, 0:+{columns}])" if reads else "0", third=THIRD if more else "",
        e=", E: out f32[M]" if more else "",
        W="i8" if few else kind, s=f", S: {kind}[N, J]" if few else "",
        where=f" where J == ceildiv(K, {depth})" if few else "", T=kind, OUT=r.choice([kind, "f32"]), BK=depth, BM=bm, BN=bn, C=ctas, v="N", rows=rows,
        columns=columns, span=span, stages=r.randint(2, 6), x=x, y=y, turn=".T" if turned else "", share=share,
        SM=sm, SN=sn, part=f"at :+ {share}, :" if along_m else f":, at :+ {share}",
        place=f"{m} :+ {sm}, {n} :+ {sn}", end=end)
    k = 8 * r.randint(1, 100)
    sizes = [f"M={r.randint(1, 2 * bm)}", f"N={8 * r.randint(1, bn // 4)}", f"K={k}"]
    sizes += [f"J={-(-k // depth)}"] if few else []
    says = LARGE if 4 * bm * bn > MOST else APART if reads else f"cluster of {ctas} CTAs: {JOINED}"
    return text, sizes, says


def complaint(tirc, path, sizes, says, seed):
    check = subprocess.run([tirc, "check", "--arch=sm_90a", "--require=sync", "--receipt", path], capture_output=True,
                           text=True, timeout=SECONDS, check=False)
    said = check.stdout + check.stderr
    if check.returncode or says not in said:
        return said
    for schedule in ("adversarial", f"random:{seed % 1000}"):
        run = subprocess.run([tirc, "run", path, *sizes, "--arch=sm_90a", "--device=emu", "--emu-check=full", "--check",
                              f"--schedule={schedule}"], capture_output=True, text=True, timeout=SECONDS, check=False)
        if run.returncode:
            return f"{sizes} {schedule}\n{run.stdout}{run.stderr}"
    return None


def main():
    options = seeds.parser(__doc__, "tirc", count=12).parse_args()
    first = seeds.first(options)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "k.tir")
        for seed in range(first, first + options.count):
            text, sizes, says = program(seed)
            path.write_text(text, encoding="utf-8")
            wrong = complaint(options.tirc, path, sizes, says, seed)
            if wrong:
                print(f"seed {seed}\n{text}\n{wrong}")
                return 1
    print(f"{options.count} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
