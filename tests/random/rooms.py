#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random copies of a part of a tensor, most of which lies inside by what the kernel says of the numbers of its index.

Usage: rooms.py TIRC [--seed N] [--count N]

Numbers come from the grid, a loop, a condition or a thread, with limits that follow from the tensor's size in some way. A copy by
the bulk engine is compiled where the compiler can show that its part is inside; there a model in Python, of many sizes, must
not find a part that is not. Where nothing but one division bounds the index, as most programs have it, the compiler must show it.
Seed 0 is that of the day. A failing program is printed.
"""

import pathlib
import random
import subprocess
import sys
import tempfile

import seeds

SIZES = [0, 1, 7, 8, 60, 63, 64, 65, 96, 127, 128, 192, 255, 256, 257, 320, 384, 500, 512, 768, 1000, 1024, 1536]
SECONDS = 60


class Index:
    """An index of one number below a limit, as text and as Python."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.each = rng.choice([32, 64, 128])
        self.by = self.each * rng.choice([1, 1, 1, 1, 2]) // rng.choice([1, 1, 1, 1, 2])
        self.box = self.each * rng.choice([1, 1, 1, 1, 2])
        self.multiple = rng.choice([0, 0, self.each, self.each * 2, self.each * 4])
        n, up = self.each, rng.choice([0, 0, 0, n_less(self.each, rng)])
        self.limit, self.of = rng.choice([
            (f"N / {n}", lambda size: size // n),
            (f"ceildiv(N, {n})", lambda size: -(-size // n)),
            (f"(N + {up}) / {n}", lambda size: (size + up) // n),
            (f"min(N / {n}, 3)", lambda size: min(size // n, 3)),
            (f"N / {n} + {up}", lambda size: size // n + up),
            (f"N - {n - 1}", lambda size: size - n + 1),
            (f"N - {n - 8}", lambda size: size - n + 8),
            ("N", lambda size: size),
        ])
        self.form = rng.choice(["grid", "loop", "guard", "parts"])
        self.plus = rng.choice([0, 0, 0, 4, self.by])

    def program(self):
        copy = (f"expect_tx(full, bytes(t)); copy_async(t, X[%s * {self.by} + {self.plus}:+{self.box}], mbar = full, engine = bulk);"
                " wait(full, p); p = 1 - p;")
        where = f" where N %% {self.multiple} == 0" if self.multiple else ""
        head = (f"kernel k(X: f32[N], Y: out f32[{self.box}]) grid(%s) threads(64){where}\n{{\n    shared t: f32[{self.box}];\n"
                "    mbarrier full arrivals(1);\n    let c = i64(cta_id());\n    var p: i32 = 0;\n    if tid() == 0 {\n")
        body = {
            "grid": (self.limit, copy % "c"),
            "loop": ("4", f"for i in range(c, {self.limit}, 4) {{ {copy % 'i'} }}"),
            "guard": ("4096", f"if c < {self.limit} {{ {copy % 'c'} }}"),
            "parts": ("4", f"for i in range(c, ({self.limit}) / 4) {{ for j in range(4) {{ {copy % '(i * 4 + j)'} }} }}"),
        }[self.form]
        return head % body[0] + "        " + body[1] + "\n    }\n}\n"

    def leaves(self):
        """A size of which a part is not inside, or None."""
        for size in SIZES:
            if self.multiple and size % self.multiple:
                continue
            most = self.of(size) - 1
            if self.form == "parts":
                most = int(self.of(size) / 4) * 4 - 1
            if most >= 0 and most * self.by + self.plus + self.box > size:
                return size
        return None

    def must_show(self):
        return (not self.plus and self.by == self.each == self.box and
                (self.limit in (f"N / {self.each}", f"min(N / {self.each}, 3)") or
                 (self.limit.startswith("ceildiv") and self.multiple)))


def n_less(n, rng):
    return rng.choice([1, n - 1, n, 7])


def main():
    options = seeds.parser(__doc__, "tirc", count=60).parse_args()
    first = seeds.first(options)
    shown, refused, failed = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "room.tir")
        for seed in range(first, first + options.count):
            index = Index(seed)
            text = index.program()
            path.write_text(text)
            done = subprocess.run([options.tirc, "check", "--arch=sm_90a", str(path)], capture_output=True, text=True,
                                  timeout=SECONDS, check=False)
            size, why = index.leaves(), None
            if done.returncode == 0:
                shown += 1
                why = size is not None and f"with N={size} a part is not inside"
            elif "needs the whole slice inside" in done.stderr:
                refused += 1
                why = size is None and index.must_show() and "it is not seen that all is inside"
            else:
                why = "refused"
            if why:
                failed += 1
                print(f"seed {seed}: {why}\n{text}{done.stderr}", flush=True)
    print(f"{shown} shown to be inside, {refused} not, {failed} failed")
    return failed > 0 or shown < options.count // 10 or refused < options.count // 10


if __name__ == "__main__":
    sys.exit(main())
