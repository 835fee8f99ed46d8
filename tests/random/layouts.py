#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random pairs of layouts: a tile goes from one to the other, and on through a loop.

Usage: layouts.py TIRC [--seed N] [--count N]

A tile's extents are products of digits. Each layout makes each digit a register, a lane or a warp, with strides in
any order. In the second one few digits or many have changed, so that elements stay in their thread, go to other lanes
of their warp, or to other warps. The kernel is run on the emulator, with all checks, against the interpreter.
Where no digit has come to or gone from the warps, lanes exchange the elements: the code has no shared memory.
Seed 0 is that of the day. A failing program is printed.
"""

import math
import pathlib
import random
import subprocess
import sys
import tempfile

import seeds

ELEMENTS = ["u8", "i8", "e4m3", "e5m2", "i16", "bf16", "f16", "i32", "f32", "i64", "f64", "bool"]
TARGETS = ["sm_80", "sm_90a", "sm_100a"]
WARPS = 4
MOST_SWAPS = 3  # of lanes and registers in one exchange (compiler/ir/layout_exchange.h)
AXES = {"lane": "@laneid", "warp": "@warpid", "register": ""}

PROGRAM = """kernel k(X: {T}[{shape}], Y: out {T}[{shape}], Z: out {T}[{shape}], R: i32) grid(1) threads({threads})
    form(laid_out) facts(index32, unit_inner)
{{
    let a: {T}[{shape}] in {first} = load(X[{all}]);
    let b: {T}[{shape}] in {second} = convert_layout(a);
    store(Y[{all}], b);
    let c: {T}[{shape}] in {second} = for i: i32 in range(i32(0), R, i32(1)) carry (d: {T}[{shape}] in {second} = b) {{
        let most: {T}[{shape}] in {second} = {combined};
        yield most;
    }}
    store(Z[{all}], c);
}}
"""


def strides(r, digits, axes):
    """The digits of an axis, in any order, are dense."""
    result = {}
    for axis in AXES:
        mine = [i for i, a in enumerate(axes) if a == axis]
        stride = 1
        for i in r.sample(mine, len(mine)):
            result[i] = stride
            stride *= digits[i]
    return result


def layout(r, digits, axes):
    step = strides(r, digits, axes)
    places = ", ".join(f"{step[i]}{AXES[axes[i]]}" for i in range(len(digits)))
    return f"S[({', '.join(map(str, digits))}) : ({places})]"


def program(seed):
    r = random.Random(seed)
    digits = [2] * (5 + int(math.log2(WARPS)) + r.randrange(6)) + r.choice([[], [], [3], [5], [3, 3]])
    axes = ["lane"] * 5 + ["warp"] * int(math.log2(WARPS))
    axes += ["register"] * (len(digits) - len(axes))  # what is no power of two is a register
    order = r.sample(range(len(digits)), len(digits))
    digits, axes = [digits[i] for i in order], [axes[i] for i in order]
    cuts = sorted(r.sample(range(1, len(digits)), r.randrange(4)))
    shape = [math.prod(digits[i:j]) for i, j in zip([0, *cuts], [*cuts, len(digits)])]
    after = list(axes)
    is_far = r.random() < 0.2
    for _ in range(r.randrange(5)):
        i, j = r.sample([i for i, n in enumerate(digits) if n == 2], 2)
        if is_far or "warp" not in (after[i], after[j]):
            after[i], after[j] = after[j], after[i]
    stays = all((a == "warp") == (b == "warp") for a, b in zip(axes, after))
    first, second = layout(r, digits, axes), layout(r, digits, after)
    if stays:  # warps keep their digits' strides
        place = lambda text: text.split(": (")[1].rstrip(")]").split(", ")
        mine, theirs = place(first), place(second)
        theirs = [m if a == "warp" else t for m, t, a in zip(mine, theirs, axes)]
        second = f"{second.split(': (')[0]}: ({', '.join(theirs)})]"
    swaps = sum(a == "lane" and b == "register" for a, b in zip(axes, after))
    element = r.choice(ELEMENTS)
    text = PROGRAM.format(T=element, shape=", ".join(map(str, shape)), all=", ".join(f"0:+{n}" for n in shape),
                          threads=32 * WARPS, first=first, second=second,
                          combined="or(d, b)" if element == "bool" else "max(d, b)")
    exchanged = stays and swaps <= MOST_SWAPS and element != "bool"
    return text, r.choice(TARGETS), exchanged


def run(tirc, folder, seed):
    """What is wrong, or None; whether lanes exchanged elements."""
    text, target, exchanged = program(seed)
    file = pathlib.Path(folder) / f"layouts_{seed}.tir"
    file.write_text(text)
    built = subprocess.run([tirc, "build", file, f"--arch={target}", "--verify", "--emit=ptx"],
                           capture_output=True, text=True, timeout=120)
    if built.returncode:
        return f"{target}: {built.stderr}{text}", False
    if exchanged and ".shared" in built.stdout:
        return f"{target}: elements stay in their warps, and went through shared memory\n{text}", False
    numbers = "0:1" if "bool" in text else "0:200" if "u8" in text else "-9:9"
    done = subprocess.run([tirc, "run", file, f"--arch={target}", "--device=emu", "--check",
                           f"X=randint:{numbers}", "R=3"], capture_output=True, text=True, timeout=120)
    return (f"{target}: {done.stdout}{done.stderr}{text}" if done.returncode else None), "shfl" in built.stdout


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    seed = seeds.first(options)
    wrong = exchanges = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(options.count):
            finding, shuffled = run(options.tirc, folder, seed + i)
            exchanges += shuffled
            if finding:
                wrong += 1
                print(f"seed {seed + i}: {finding}")
    print(f"{options.count} programs, {exchanges} with shuffles, {wrong} findings")
    return wrong > 0 or exchanges == 0


if __name__ == "__main__":
    sys.exit(main())
