#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random updates of tensors in place, on the emulator against the interpreter.

Usage: rows_in_place.py TIRC [--seed N] [--count N]

Each tile has rows of one or two tensors for itself. Its statements load, change, store and add to parts of them that begin at
the same, the next or any element, in loops and branches, one after the other and in each other. So the same threads come
back to an element, or others do, and a barrier is needed just there; the emulator finds where one is missing. Seed 0 is
that of the day. A failing program is printed, with the command that runs it.
"""

import random
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
WIDTHS = [32, 64, 128, 256]
STARTS = ["0", "0", "0", "1", "{w}", "{w}", "{w} + 1", "{v}", "{v} * {w}"]


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.tensors = "XZ"[:rng.choice([1, 1, 2])]
        self.width = rng.choice(WIDTHS)
        self.rows = rng.choice([1, 1, 2, 4])
        self.values = 0

    def part(self, variables):
        rng = self.rng
        width = self.width if rng.random() < 0.8 else rng.choice(WIDTHS)
        start = rng.choice(STARTS).format(w=width, v=rng.choice(variables))
        return width, f"{rng.choice(self.tensors)}[m:+{self.rows}, {start}:+{width}]"

    def name(self):
        self.values += 1
        return f"v{self.values}"

    def load(self, width, values, variables):
        """A statement that loads a part of this width, whose value is kept for others."""
        while True:
            of, part = self.part(variables)
            if of == width:
                values.append((name := self.name(), width))
                return f"let {name} = {part};"

    def update(self, values, variables):
        rng = self.rng
        width, part = self.part(variables)
        if rng.random() < 0.15:
            return [f"atomic_add({part}, {rng.randint(1, 3)}.0);"]
        lines = [self.load(width, values, variables) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
        rng.shuffle(lines)
        used = [name for name, of in values if of == width]
        of = [name for name in used if rng.random() < 0.6][-3:]
        return [*lines, f"{part} = {' + '.join([*of, str(rng.randint(1, 9))])};"]

    def block(self, values, variables, depth):
        rng, lines = self.rng, []
        for _ in range(rng.randint(1, 4)):
            how = rng.random() if depth < 3 else 1
            if how < 0.25:
                name = f"i{len(variables)}"
                body = self.block(list(values), [*variables, name], depth + 1)
                lines += [f"for {name} in range({rng.choice(['0', '1', '2', '3', 'R'])}) {{", *body, "}"]
            elif how < 0.5:
                lines += [f"if {rng.choice(variables)} {rng.choice(['<', '>', '=='])} {rng.randint(0, 2)} {{",
                          *self.block(list(values), variables, depth + 1), "}"]
                if rng.random() < 0.4:
                    lines += ["else {", *self.block(list(values), variables, depth + 1), "}"]
            else:
                lines += self.update(values, variables)
        return lines

    def text(self):
        tensors = ", ".join(f"{name}: inout f32[M, {2000 if name == 'Z' else 'N'}]" for name in self.tensors)
        lines = "\n".join(f"        {line}" for line in self.block([], ["R"], 0))
        return f"kernel k({tensors}, R: i64)\n{{\n    for m in tiles(M by {self.rows}) {{\n{lines}\n    }}\n}}\n"


def draw(seed):
    rng = random.Random(seed)
    sizes = [f"M={rng.randint(1, 5)}", f"N={rng.choice([64, 500, 1024])}", f"R={rng.randint(0, 3)}"]
    if "N]" not in (text := Program(seed).text()):
        sizes.pop(1)
    return text, sizes, ARCHS[seed % len(ARCHS)]


def run(tirc, path, sizes, arch):
    return seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--emu-check=full", "--check=0",
                          "--schedule=random:1", "X=randint:1:5", *sizes])


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
