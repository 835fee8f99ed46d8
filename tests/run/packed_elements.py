#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of tiles with scales by tcgen05 whose elements of 6 or 4 bits lie packed in memory, drawn at random.

usage: packed_elements.py TIRC [COUNT [FIRST]]

Kernel number n has element types, of which one may be of fp8, tiles, sizes that tiles do not divide, one CTA or a
pair, and a schedule of the emulator, all of which follow from n alone. Its receipt must name tcgen05, and on the
emulator, under full checks, it must give exactly what the interpreter makes of dot_scaled: the numbers are small enough for every order of
the sums to be exact. So must it on sm_120a and sm_90a, which multiply it otherwise. ptxas must take the best variant
without spills for sm_100a and sm_103a. Where there is no ptxas, it is left out.

One number of its tensor copies or instructions is then another one: the bits of packed elements, or the kind
of an element. The kernel must give something else, or fail.
"""

import os
import pathlib
import random
import re
import sys

import by_number
import mma_scales

BITS = {"e3m2": 6, "e2m3": 6, "e2m1": 4, "e4m3": 8, "e5m2": 8}
PACKED = ["e3m2", "e2m3", "e2m1"]
SHARED = 32  # elements with one scale; 128 of them are a row of a box


def draw(number):
    """What varies, in words that the kernel is made of."""
    r = random.Random(number)
    factors = [r.choice(PACKED), r.choice(list(BITS))]
    r.shuffle(factors)
    rows, columns = r.choice([(128, 16), (128, 48), (128, 64), (128, 128), (128, 256), (256, 64), (256, 128)])
    step = r.choice([1, 1, 2])
    return {"a": factors[0], "b": factors[1], "rows": rows, "columns": columns, "step": step,
            "pair": columns % 32 == 0 and r.random() < 0.4, "stages": r.choice([1, 2, 3, 4]), "persistent": r.choice(["", ", persistent", ", persistent = dynamic"]),
            "m": r.randrange(1, 2 * rows), "n": r.randrange(1, 3 * columns), "blocks": r.randrange(0, 3 * step + 1),
            "schedule": r.choice([*mma_scales.SCHEDULES, f"random:{number}"])}


def kernel(c):
    def part(name, elem, at):
        of_scale = SHARED * BITS[elem] // 8  # bytes
        load = f"{name}[{at}, {of_scale} * s:+{4 * of_scale * c['step']}]"
        return f"expand({elem}, {load})" if BITS[elem] < 8 else load

    of_a, of_b = ("u8" if BITS[c[x]] < 8 else c[x] for x in "ab")
    m, n = f"m:+{c['rows']}", f"n:+{c['columns']}"
    scales = f"s:+{4 * c['step']}"
    walk = c["persistent"] + (", cluster = (2, 1)" if c["pair"] else "")
    return f"""kernel product(A: {of_a}[M, HA], SA: ue8m0[M, S], B: {of_b}[N, HB], SB: ue8m0[N, S], D: out f32[M, N])
    where S % 4 == 0 where HA == {SHARED * BITS[c['a']] // 8} * S where HB == {SHARED * BITS[c['b']] // 8} * S
{{
    for (m, n) in tiles(M by {c['rows']}, N by {c['columns']}{walk}) {{
        var acc: f32[{c['rows']}, {c['columns']}] = 0;
        for s in range(0, S, {4 * c['step']}, stages = {c['stages']}) {{
            acc += dot_scaled({part('A', c['a'], m)}, SA[{m}, {scales}],
                {part('B', c['b'], n)}.T, SB[{n}, {scales}].T);
        }}
        D[{m}, {n}] = acc;
    }}
}}
"""


def on_emulator(tirc, path, c, arch, sizes, against=None):
    m, n, blocks = sizes
    ints = {x: "0:255" if BITS[c[x.lower()]] < 8 else "-4:4" for x in "AB"}
    return mma_scales.run([tirc, "run", path, f"M={m}", f"N={n}", f"S={4 * blocks}", f"--arch={arch}", "--device=emu",
                           "--emu-check=full", f"--schedule={c['schedule']}", "--emu-sms=2", f"A=randint:{ints['A']}",
                           f"B=randint:{ints['B']}", "SA=randint:1:2", "SB=randint:1:2", "--check=0",
                           *([f"--check-against={against}:product"] if against else [])])


def wrong_number(text, number):
    """The kernel with another kind of elements, or other bits of packed ones where the copy's rows stay as long."""
    r = random.Random(number)
    places = list(re.finditer(r"\b(?:b_)?kind = (e\d\w+)", text))
    place = r.choice(places)
    other = r.choice([x for x in BITS if x != place[1] and (BITS[x] < 8) == (BITS[place[1]] < 8)])
    return text[:place.start(1)] + other + text[place.end(1):]


def check_mutant(text, path, c, tirc, number):
    half = path.with_name("half.tir")
    done = mma_scales.run([tirc, "build", path, "--arch=sm_100a", "--stop-after=lower_tile", "-o", half])
    if done.returncode:
        return mma_scales.failed(done, text)
    half.write_text(wrong_number(half.read_text(encoding="utf-8"), number), encoding="utf-8")
    done = on_emulator(tirc, half, c, "sm_100a", [2 * c["rows"], 2 * c["columns"], 2 * c["step"]], path)
    return None if done.returncode == 1 else \
        f"another kind changes nothing:\n{done.stdout}{done.stderr}{text}"


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = kernel(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    for arch in ["sm_100a", random.Random(number).choice(["sm_103a", "sm_120a", "sm_90a"])]:
        wrong = mma_scales.failed(on_emulator(tirc, path, c, arch, [c["m"], c["n"], c["blocks"]]), text)
        if wrong:
            return f"{arch}: {wrong}"
    for arch in ["sm_100a", "sm_103a"]:
        ptx = os.path.join(folder, "k.ptx")
        done = mma_scales.run([tirc, "build", path, f"--arch={arch}", "--emit=ptx", "--receipt", "-o", ptx])
        wrong = mma_scales.failed(done, text)
        if not wrong and not re.search("dot: tcgen05.*" + ("pair" if c["pair"] else ""), done.stderr + done.stdout):
            wrong = f"no tcgen05:\n{done.stderr}{done.stdout}{text}"
        if ptxas and not wrong:
            done = mma_scales.run([ptxas, f"-arch={arch}", "-v", "-o", os.devnull, ptx])
            best = re.search(r"properties for product\n(.*)", done.stderr)
            wrong = mma_scales.failed(done, text) or \
                (None if best and " 0 bytes spill stores" in best[1] else f"ptxas spills:\n{done.stderr}{text}")
        if wrong:
            return f"{arch}: {wrong}"
    return check_mutant(text, path, c, tirc, number)


def main(tirc, count=8, first=0):
    by_number.run(lambda *program: check(*program), tirc, count, first)
    print(f"{count} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
