#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with scales in tensor memory, by explicit kernels that are drawn at random.

usage: block_scales.py TIRC [COUNT [FIRST]]

Kernel number n has element types, sizes, layouts of operands and scales, A in shared or tensor memory,
and the scales of a column that it begins with, all of which follow from n alone. On the emulator, under
full checks and a schedule that also follows from n, it must give exactly what the interpreter makes of
dot_scaled: the numbers are small enough for every order of the sums to be exact. ptxas must take it for
sm_100a and sm_103a. Where there is no ptxas, it is left out.

One of the scales' numbers is then another one. The kernel must give something else, or be refused.
"""

import os
import pathlib
import random
import re
import subprocess

import by_number

# elements of A and B, of the scales, elements that share one
KINDS = [("e4m3", "e4m3", "ue8m0", 32), ("e5m2", "e5m2", "ue8m0", 32), ("e4m3", "e5m2", "ue8m0", 32),
         ("e5m2", "e4m3", "ue8m0", 32), ("u8", "u8", "ue8m0", 32), ("u8", "u8", "ue4m3", 16)]
SCHEDULES = ["lazy", "eager", "adversarial"]


def draw(number):
    """What varies, in words that the kernel is made of."""
    r = random.Random(number)
    a, b, scale, block = r.choice(KINDS)
    step = 32 * r.choice([1, 2, 3, 4, 8])  # bytes along K of a product
    scales = step * (2 if a == "u8" else 1) // block
    words = -(-scales // 4)
    of_step = 64 // block if a == "u8" else 1  # scales of one instruction
    first = of_step * r.randrange((4 * words - scales) // of_step + 1)
    n = r.choice([16, 32, 48, 64, 96, 128, 192, 256, 320])
    rows = r.choice([128, 128, 256]) if n <= 128 else 128
    swizzles = [s for s in (32, 64, 128) if step % s == 0]
    return {"a": a, "b": b, "scale": scale, "step": step, "scales": scales, "width": 4 * words,
            "first": first, "n": n, "rows": rows, "swizzles": [r.choice(swizzles) for _ in "ab"],
            "products": r.choice([1, 1, 2, 3]), "a_in_tmem": r.random() < 0.3,
            "way": r.choice(["once", "once", "slots", "whole"]) if first == 0 else
            r.choice(["once", "slots"]),
            "blocks": words == 1 and rows == 128 and n <= 128 and r.random() < 0.5,
            "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def scales_of(c, name, rows, shown):
    """The declarations of the scales of A or B, what fills shared memory, the copy, and the operand."""
    width, whole = c["width"], c["width"] * c["products"]
    held = whole if c["way"] == "whole" else width
    layout = f"S[({rows // 128}, 4, 32, {held // 4}, 4) : ({held // 4 * 512}, 4, 16, 512, 1)]"
    tensor, of, scale = f"S{name}", f"s{name}", c["scale"]
    begin = "0" if c["way"] == "whole" else f"i * {width}"
    if c["blocks"] and c["way"] != "whole":
        declared = f"shared {of}_s: {scale}[32, 16];"
        fill = " ".join(f"store({of}_s[0:+32, {4 * j}:+4], {tensor}[{32 * j}:+32, {begin}:+4]);"
                        for j in range(4))
    else:
        declared = f"shared {of}_s: {scale}[{rows}, {held}] in {layout};"
        fill = f"store({of}_s, {tensor}[0:+{rows}, {begin}:+{held}]);"
    slots = "2, " if c["way"] == "slots" else ""
    declared += f" tmem {of}: {scale}[{slots}{rows}, {held}];"
    slot = "i % 2, " if slots else ""
    first = f"i * {width}" if c["way"] == "whole" else f"{c['first']}"
    part = f"{of}[{slot}0:+{shown}, {first} :+ {c['scales']}]"
    to = f"{of}[{slot}0:+{rows}, 0:+{held}]" if slots else of
    return declared, fill, f"copy_async({to}, {of}_s);", part


def kernels(c):
    n, step, rows, products = c["n"], c["step"], c["rows"], c["products"]
    padded = -(-n // 128) * 128
    wide = c["width"] * products
    whole = step * products
    params = f"A: {c['a']}[{rows}, {whole}], B: {c['b']}[{n}, {whole}], " \
        f"SA: {c['scale']}[{rows}, {wide}], SB: {c['scale']}[{padded}, {wide}], " \
        f"D: out f32[{rows}, {n}]"
    of_a, of_b = scales_of(c, "A", rows, rows), scales_of(c, "B", padded, n)
    fill, copies = f"{of_a[1]} {of_b[1]}", f"{of_a[2]} {of_b[2]}"
    once = c["way"] == "whole"
    where_a = f"tmem P: {c['a']}[{rows}, {step}];" if c["a_in_tmem"] else ""
    copies_in = "copy_async(P, As);" if c["a_in_tmem"] else ""
    packed = c["a"] == "u8"
    tiles = ["A[m:+64, {0} * {1} :+ {1}]", "B[0:+{2}, {0} * {1} :+ {1}]"]
    terms = []
    for i in range(products):
        a, b = [t.format(i, step, n) for t in tiles]
        if packed:
            a, b = f"mx.unpack({a})", f"mx.unpack({b})"
        at = i * c["width"] + c["first"]
        terms.append(f"acc += dot_scaled({a}, SA[m:+64, {at}:+{c['scales']}], {b}.T, "
                     f"SB[0:+{n}, {at}:+{c['scales']}].T);")
    plain = "\n        ".join(terms)
    return f"""import "tir/mx.tir" as mx;

kernel by_hand({params}) grid(1) threads(128)
{{
    shared As: {c['a']}[{rows}, {step}] in swizzle({c['swizzles'][0]});
    shared Bs: {c['b']}[{n}, {step}] in swizzle({c['swizzles'][1]});
    mbarrier done arrivals(1);
    tmem acc: f32[{rows}, {n}];
    {where_a}
    {of_a[0]}
    {of_b[0]}
    {fill if once else ''}
    var phase: i32 = 0;
    for i in range(0, {products}) {{
        store(As, A[0:+{rows}, i * {step} :+ {step}]);
        store(Bs, B[0:+{n}, i * {step} :+ {step}]);
        {'' if once else fill}
        fence(async_shared);
        bar_sync();
        if tid() == 32 {{
            {f"if i == 0 {{ {copies} }}" if once else copies}
            {copies_in}
            gemm_async(acc, {'P' if c['a_in_tmem'] else 'As'}, Bs.T, {of_a[3]}, {of_b[3]}.T, accumulate = i > 0);
            commit(done);
        }}
        wait(done, phase);
        fence(after_thread_sync);
        phase = 1 - phase;
    }}
    D[0:+{rows}, 0:+{n}] = acc[0:+{rows}, 0:+{n}];
}}

kernel plain({params})
{{
    for (m) in tiles({rows} by 64) {{
        var acc: f32[64, {n}] = 0;
        {plain}
        D[m:+64, 0:+{n}] = acc;
    }}
}}
"""


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def failed(done, text):
    return f"{' '.join(map(str, done.args))}\n{done.stdout}{done.stderr}{text}" if done.returncode \
        else None


def on_emulator(tirc, path, c):
    low, high = (0, 255) if c["a"] == "u8" else (-4, 4)
    return run([tirc, "run", path, "--kernel=by_hand", "--arch=sm_100a", "--device=emu",
                "--emu-check=full", f"--schedule={c['schedule']}", f"A=randint:{low}:{high}",
                f"B=randint:{low}:{high}", "SA=randint:1:4", "SB=randint:1:4", "--check=0",
                "--check-against=:plain"])


def wrong_scales(text, number):
    """The kernel with another first scale of A or of B."""
    r = random.Random(number)
    parts = list(re.finditer(r"(s[AB]\[[^\]]*, )(\d+)( :\+ \d+\])", text))
    if not parts:
        return None
    part = r.choice(parts)
    other = r.choice([i for i in range(4) if i != int(part[2])])
    return text[:part.start(2)] + str(other) + text[part.end(2):]


def check(tirc, ptxas, number, folder, count):
    c = draw(number)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    wrong = failed(on_emulator(tirc, path, c), text)
    for arch in ["sm_100a", "sm_103a"] if ptxas and not wrong else []:
        ptx = os.path.join(folder, "k.ptx")
        wrong = wrong or failed(run([tirc, "build", path, "--kernel=by_hand", f"--arch={arch}",
                                     "--emit=ptx", "-o", ptx]), text)
        wrong = wrong or failed(run([ptxas, f"-arch={arch}", "-o", os.devnull, ptx]), text)
    mutant = wrong_scales(text, number)
    if not wrong and mutant:
        path.write_text(mutant, encoding="utf-8")
        done = on_emulator(tirc, path, c)
        count["mutants"] += 1
        count["refused"] += "error[" in done.stderr
        if not done.returncode:
            wrong = f"another first scale changes nothing:\n{mutant}"
    return wrong


if __name__ == "__main__":
    by_number.main(check, "scale", 16)
