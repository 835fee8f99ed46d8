#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads of pixels in programs on tiles: convolutions that are drawn at random.

usage: convolutions.py TIRC [COUNT [FIRST]]

Kernel number n has elements, images of rank 3 to 5, corners, strides, places of the filter, tiles, loops and a target
that follow from n alone. Its pixels come by `load(..., pixels = n)`: to a product in a loop, in a nest of loops or
without one, through a ring that a role fills, or to be added. On the emulator, under full checks and a schedule that
also follows from n, it must give exactly what the interpreter makes of index tiles, and of the kernel itself; ptxas
must take it. Where there is no ptxas, it is left out. What a receipt says of the copies is counted: tensor copies
bring pixels to products wherever rows are aligned on a target that has them.
"""

import pathlib
import random
import subprocess
import sys

import by_number
from pixel_copies import NAMES, first_pixels

WIDTH = {"bf16": 2, "f16": 2, "e4m3": 1, "i8": 1, "f32": 4, "tf32": 4, "widened": 1, "packed": 1}
# Of a tensor's elements, and what a product takes of them: two numbers of 6 bits that lie packed have scales.
MEMORY = {"tf32": "f32", "widened": "i8", "packed": "u8"}
FACTOR = {"tf32": ("tf32({})", "tf32({})"), "widened": ("bf16({})", "bf16({})"),
          "packed": ("expand(e2m3, {})", "expand(e3m2, {})")}
SCHEDULES = ["lazy", "eager", "adversarial"]
ARCHS = ["sm_80", "sm_90", "sm_90a", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]
FORMS = ["nest", "nest", "loop", "places", "sum", "roles"]


def draw(number):
    r = random.Random(number)
    rank = r.choice([3, 4, 4, 4, 5])
    dims = [r.randrange(1, {3: 60, 4: 14, 5: 6}[rank]) for _ in range(rank - 2)]
    taps = [r.choice([1, 2, 3, 3]) for _ in dims]
    low = [r.randrange(-2, 2) for _ in dims]
    high = [r.randrange(-3, 2) for _ in dims]
    for i, d in enumerate(dims):  # some base pixels are left
        if d + high[i] <= low[i]:
            low[i], high[i] = -1, 0
    elem = r.choice(["bf16", "bf16", "bf16", *WIDTH])
    depth = 96 if elem == "packed" else r.choice([32, 64, 128]) // WIDTH[elem] * r.choice([1, 1, 2])
    left = [0] if elem == "packed" else [0, 0, 8, 16, 3]
    forms = ["nest", "loop", "places"] if elem in FACTOR else FORMS
    return {"number": number, "elem": elem, "dims": dims, "taps": taps, "low": low, "high": high,
            "steps": [r.choice([1, 1, 1, 2, 3]) for _ in dims], "images": r.randrange(1, 5),
            "BM": r.choice([16, 32, 48, 64, 64, 128, 128, 192, 256]), "BN": r.choice([8, 16, 32, 64, 128]),
            "BK": max(depth, 16), "channels": r.choice([1, 1, 2, 3]) * max(depth, 16) - r.choice(left),
            "filters": r.randrange(1, 140), "form": r.choice(forms), "stages": r.choice(["", ", stages = 3", ", stages = 1"]),
            "options": r.choice(["", "", ", persistent", ", persistent, order = grouped(2)",
                                 ", persistent, cluster = (2, 1)", ", persistent, cluster = (1, 2)"]),
            "aligned": r.random() < 0.8, "arch": r.choice(ARCHS), "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def kernels(c):
    names, rank = NAMES[3 - len(c["dims"]):], len(c["dims"])
    places, at = first_pixels(c), ["i", "j", "k"][3 - rank:]
    zero = ["0"] * rank
    strides = f", strides = {[1, *c['steps'], 1]}" if max(c["steps"]) > 1 else ""
    sums = "i32" if c["elem"] == "i8" else "f32"
    m, n, d = c["BM"], c["BN"], c["BK"]
    taps = ", ".join(map(str, c["taps"]))
    memory = MEMORY.get(c["elem"], c["elem"])
    params = f"X: {memory}[B, {', '.join(names)}, C], W: {memory}[{taps}, F, C], Y: out {sums}[P, F]"
    if c["elem"] == "packed":
        params += ", SX: ue8m0[P, K], SW: ue8m0[F, K]"
    scales = f", SX[p:+{m}, c / 24:+4]", f", SW[f:+{n}, c / 24:+4].T"

    def dot(x, w):
        x, w = (how.format(v) for how, v in zip(FACTOR.get(c["elem"], ("{}", "{}")), (x, w)))
        return f"dot_scaled({x}{scales[0]}, {w}.T{scales[1]})" if c["elem"] == "packed" else f"dot({x}, {w}.T)"

    def load(by):
        offsets = "".join(f", {name} = {b}" for name, b in zip(["dz", "dy", "dx"][3 - rank:], by) if b != "0")
        return f"load(X[{places('p', zero)}, c:+{d}], pixels = {m}, low = {c['low']}, high = {c['high']}{strides}{offsets})"
    filters = f"W[{', '.join(at)}, f:+{n}, c:+{d}]"
    grid = f"for (p, f) in tiles(P by {m}, F by {n}"

    def nest(body, unroll=""):
        loops = "".join(f"for {a} in range(0, {t}{unroll}) {{ " for a, t in zip(at, c["taps"]))
        return f"{loops}for c in range(0, C, {d}{c['stages']}) {{ {body} }}" + " }" * rank
    round_of = "".join(f"let {a} = t / {step} % {t_};\n" for a, t_, step in
                       zip(at, c["taps"], [f"(ceildiv(C, {d})" + "".join(f" * {x}" for x in c["taps"][i + 1:]) + ")"
                                           for i in range(rank)]))
    begin = f"{grid}{c['options']}) {{ var acc: {sums}[{m}, {n}] = 0;"
    product = f"acc += {dot(load(at), filters)};"
    end = f"Y[p:+{m}, f:+{n}] = acc; }}"
    if c["form"] == "sum":  # of all channels of all places, once for each filter
        text = f"{grid}) {{ var acc: {sums}[{m}, 1] = 0; " + \
            nest(f"acc += sum({sums}({load(at)}), axis = 1);") + f" {end}"
    elif c["form"] == "loop":
        text = f"{begin} for t in range(0, {' * '.join(map(str, c['taps']))} * ceildiv(C, {d}){c['stages']}) {{\n" \
            f"{round_of}let c = t % ceildiv(C, {d}) * {d};\n{product} }} {end}"
    elif c["form"] == "places":  # known at compile time
        text = f"{begin} {nest(product, ', unroll')} {end}"
    elif c["form"] == "roles":
        text = f"ring ab[3] {{ a: {c['elem']}[{m}, {d}]; b: {c['elem']}[{n}, {d}]; }}\n" \
            f"role load warps(2) {{ {grid}) {{ {nest(f'put ab {{ a = {load(at)}; b = {filters}; }}')} }} }}\n" \
            f"role math warpgroups(1) {{ {begin.replace(c['options'], '')} {nest('get ab { acc += dot(a, b.T); }')} {end} }}"
    else:
        text = f"{begin} {nest(product)} {end}"
    seen = f"X[{places('q', at)}, c:+{d}]"
    plain = f"acc += sum({sums}({seen}), axis = 1);" if c["form"] == "sum" else f"acc += {dot(seen, filters)};"
    width = 1 if c["form"] == "sum" else n
    where = "where C % 96 == 0" if c["elem"] == "packed" else ""
    return f"""kernel hand({params}) {where}
{{
    {text}
}}

kernel plain({params})
{{
    {grid}) {{
        let q = p + i64(iota({m}));
        var acc: {sums}[{m}, {width}] = 0;
        {nest(plain)}
        Y[p:+{m}, f:+{n}] = acc;
    }}
}}
"""


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    sizes = [f"{n}={d}" for n, d in zip(NAMES[3 - len(c["dims"]):], c["dims"])]
    rows = random.Random(f"rows {number}").randrange(1, 3 * c["BM"] + 2)
    given = [f"B={c['images']}", *sizes, f"P={rows}", f"C={max(1, c['channels'])}", f"F={c['filters']}",
             *(["X=randint:0:255", "W=randint:0:255", f"K={c['channels'] // 24}", "SX=full:1", "SW=full:1"]
               if c["elem"] == "packed" else [f"X=randint:-4:4{'' if c['aligned'] else ',pad=1'}", "W=randint:-4:4"])]
    run = [tirc, "run", path, "--kernel=hand", f"--arch={c['arch']}", "--device=emu", f"--schedule={c['schedule']}",
           *given, "--check=0"]
    return by_number.emulated(tirc, path, "hand", c, given, text) or by_number.refused(run, text) or \
        by_number.assembled(tirc, ptxas, path, "hand", c, text) or unfed(tirc, path, c, text)


def unfed(tirc, path, c, text):
    """A product on warpgroups whose fastest variant has no tensor copies of pixels; None: there is none."""
    done = subprocess.run([tirc, "check", path, "--kernel=hand", f"--arch={c['arch']}", "--receipt"],
                          capture_output=True, text=True, check=False)
    first = done.stdout.split("hand__")[0]
    feeds = "copy of X: tma, pixels in the order of images" in first
    has_engine = c["arch"] != "sm_80"
    whole = c["elem"] != "packed"  # no tensor copy brings pixels of packed elements
    if has_engine and whole and ("dot: wgmma" in first or "dot: tcgen05" in first) and not feeds:
        return f"no tensor copy of pixels\n{first}{text}"
    if feeds and not has_engine:
        return f"a tensor copy on {c['arch']}\n{first}{text}"
    return None


def main(tirc, count=24, first=0):
    by_number.run(check, tirc, count, first)
    print(f"{count} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
