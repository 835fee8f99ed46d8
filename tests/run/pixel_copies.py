#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor copies of pixels (im2col), by explicit kernels that are drawn at random.

usage: pixel_copies.py TIRC [COUNT [FIRST]]

Kernel number n has elements, a tensor of rank 3 to 5, corners, strides, offsets, a number of pixels that need not be
that of an image or of all, and threads that follow from n alone: one thread of the CTA starts the copies, or one of a
cluster, where both CTAs get the pixels. On the emulator, under full checks and a schedule that also follows from n,
it must give exactly what the interpreter makes of index tiles, and ptxas must take it. Where there is no ptxas, it is
left out.
"""

import pathlib
import random
import sys

import by_number

NAMES = ["Z", "H", "V"]
WIDTH = {"i8": 1, "u8": 1, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "tf32": 4, "f64": 8}
SCHEDULES = ["lazy", "eager", "adversarial"]
ARCHS = ["sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a"]


def draw(number):
    r = random.Random(number)
    elem = r.choice(list(WIDTH))
    swizzle = r.choice([0, 32, 64, 128])
    row = (swizzle or r.choice([16, 32, 64, 128])) * r.choice([1, 1, 2])
    # Columns beyond the swizzle's are further blocks, each of all pixels, which begin with a pattern.
    pattern = 1024 // swizzle if swizzle and row > swizzle else 8
    pixels = r.choice([1, 2, 3, 5, 8]) * pattern if row > (swizzle or row) or r.random() < 0.5 else r.randrange(1, 140)
    rank = r.choice([3, 4, 4, 5])
    size = {3: 40, 4: 12, 5: 6}[rank]
    dims = [r.randrange(1, size) for _ in range(rank - 2)]
    low = [r.randrange(-3, 2) for _ in dims]
    high = [r.randrange(-3, 3) for _ in dims]
    for i, d in enumerate(dims): # some base pixels are left
        if d + high[i] <= low[i]:
            low[i], high[i] = -1, 0
    return {"elem": elem, "columns": row // WIDTH[elem], "parts": r.choice([1, 1, 2]), "pixels": pixels,
            "layout": f"in swizzle({swizzle})" if swizzle else "", "dims": dims, "images": r.randrange(1, {3: 20, 4: 6, 5: 4}[rank]),
            "low": low, "high": high, "steps": [r.choice([1, 1, 1, 2, 3]) for _ in dims],
            "shift": [r.randrange(0, 4) for _ in dims], "both": r.random() < 0.3, "arch": r.choice(ARCHS),
            "number": number, "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def first_pixels(c):
    """The indices of pixel number q of those that the corners leave, moved by `shift`, as text."""
    names = NAMES[3 - len(c["dims"]):]
    many = [f"ceildiv({n} - {l - h}, {s})" for n, l, h, s in zip(names, c["low"], c["high"], c["steps"])]

    def places(q, shift):
        at, left = [], q
        for n, l, s, by in reversed(list(zip(many, c["low"], c["steps"], shift))):
            at.insert(0, f"{left} % {n} * {s} + {by} - {-l}")
            left = f"{left} / {n}"
        return ", ".join([left, *at])
    return places


def kernels(c):
    count, columns, names = c["pixels"], c["columns"], NAMES[3 - len(c["dims"]):]
    places = first_pixels(c)
    tensor, all_columns = "f32" if c["elem"] == "tf32" else c["elem"], c["columns"] * c["parts"]
    params = f"X: {tensor}[B, {', '.join(names)}, {all_columns}], Y: out {c['elem']}[N, {all_columns}]"
    offsets = ", ".join(f"{name} = {by}" for name, by in zip(["dz", "dy", "dx"][3 - len(names):], c["shift"]) if by)
    strides = "" if max(c["steps"]) == 1 else f"strides = {[1, *c['steps'], 1]}, "
    both = "ctas = 3, " if c["both"] else ""
    copy = f"copy_async(Xs, X[{places('p', [0] * len(names))}, k:+{columns}], low = {c['low']}, high = {c['high']}, " \
        f"{offsets}{', ' if offsets else ''}{strides}{both}mbar = full, engine = tma);"
    cluster, me, meet, number = ("cluster(2)", "cta_rank() == 0", "cluster_sync();", "i64(cta_id()) / 2") if c["both"] else \
        ("", "true", "bar_sync();", "i64(cta_id())")
    return f"""
kernel hand({params}) grid({2 if c['both'] else 1} * ceildiv(N, {count})) {cluster} threads(64)
{{
    shared Xs: {c['elem']}[{count}, {columns}] {c['layout']};
    mbarrier full arrivals(1);
    let p = {number} * {count};
    var phase: i32 = 0;
    {meet}
    for k in range(0, {all_columns}, {columns}) {{
        if tid() == 0 {{
            expect_tx(full, bytes(Xs));
            if {me} {{
                {copy}
            }}
        }}
        wait(full, phase);
        phase = 1 - phase;
        Y[p:+{count}, k:+{columns}] = load(Xs);
        fence(async_shared);
        {meet}
    }}
}}

kernel plain({params})
{{
    for p in tiles(N by {count}) {{
        let q = p + i64(iota({count}));
        for k in range(0, {all_columns}, {columns}) {{
            Y[p:+{count}, k:+{columns}] = {c['elem']}(X[{places('q', c['shift'])}, k:+{columns}]);
        }}
    }}
}}
"""


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    sizes = [f"{n}={d}" for n, d in zip(["Z", "H", "V"][3 - len(c["dims"]):], c["dims"])]
    rows = random.Random(f"rows {number}").randrange(1, 3 * c["pixels"] + 2)
    given = [f"B={c['images']}", *sizes, f"N={rows}", f"X=randint:{0 if c['elem'] == 'u8' else -100}:100"]
    return by_number.emulated(tirc, path, "hand", c, given, text) or \
        by_number.assembled(tirc, ptxas, path, "hand", c, text)


def main(tirc, count=32, first=0):
    by_number.run(check, tirc, count, first)
    print(f"{count} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
