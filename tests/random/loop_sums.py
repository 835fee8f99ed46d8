#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loops that add up rows, on the emulator against the interpreter.

Usage: loop_sums.py TIRC [--seed N] [--count N]

Each program has a loop over the columns of a tensor that carries one to four values: sums, largest and smallest ones of
rows, of columns or of all, that begin with a constant or with what was loaded, are multiplied by a factor of each row or by
a constant, take two reductions a round, or are looked at in their round; of floating-point and integer types, in tiles of
drawn sizes, for drawn numbers of threads and targets, some in a loop around. The pass `defer` must combine some of them
behind the loop, and leave some. Seed 0 is that of the day. A failing program is printed, with the command that runs it.
"""

import random
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
ELEMENTS = ["f32", "f32", "f32", "f64", "f16", "i32", "i64"]
KINDS = {"sum": "{0} + {1}", "max": "max({0}, {1})", "min": "min({0}, {1})"}
TOLERANCE = {"f16": "0.05", "i32": "0", "i64": "0"}


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        rng = self.rng
        self.element = rng.choice(ELEMENTS)
        self.rows, self.columns = rng.choice([1, 2, 3, 4, 8, 16, 64]), rng.choice([8, 32, 40, 64, 128, 256, 1024])
        self.sizes = {"M": rng.randint(1, 3 * self.rows), "N": rng.randint(0, 5 * self.columns)}
        self.begin, self.round, self.end, self.outputs = [], [], [], 0

    def shape(self, axis):
        return {0: (1, self.columns), 1: (self.rows, 1), None: ()}[axis]

    def store(self, value, axis):
        """Of sums of columns each row of tiles has its own."""
        name = f"Y{self.outputs}"
        self.outputs += 1
        kind = self.element
        if axis == 1:
            self.end.append(f"{name}[m:+{self.rows}, :] = {value};")
            return f"{name}: out {kind}[M, 1]"
        columns = f"0:+{self.columns}" if axis == 0 else "0"
        self.end.append(f"{name}[m / {self.rows}, {columns}] = {value};".replace(
            f"[m / {self.rows}, 0:+", f"[m / {self.rows}:+1, 0:+"))
        return f"{name}: out {kind}[ceildiv(M, {self.rows}), {self.columns if axis == 0 else 1}]"

    def value(self, number):
        rng, name = self.rng, f"v{number}"
        kind, axis = rng.choice(["sum", "sum", "sum", "max", "min"]), rng.choice([1, 1, 1, 0, None])
        shape = self.shape(axis)
        of = f"{self.element}[{', '.join(map(str, shape))}]" if shape else self.element
        loaded = axis == 1 and rng.random() < 0.4
        begin = f"A[m:+{self.rows}, :]" if loaded else str(rng.choice([0, 0, 0, 1, 3]))
        self.begin.append(f"var {name}: {of} = {begin};")

        def reduction():
            x = rng.choice(["x", "x", "x + x", "x * x"])
            return f"{kind}({x}{'' if axis is None else f', axis = {axis}'})"
        old = name
        if kind == "sum" and rng.random() < 0.4:
            old = f"{name} * {rng.choice(['a', 'a', '(a + a)'] if axis == 1 else ['2', '3'])}"
        update = KINDS[kind].format(old, reduction())
        if rng.random() < 0.25:
            update = KINDS[kind].format(update, reduction())
        self.round.append(f"{name} = {update};")
        if rng.random() < 0.15:
            self.round.append(f"{name} = {name} + {name};")
        return self.store(name, axis)

    def text(self):
        rng, outputs = self.rng, [self.value(i) for i in range(self.rng.randint(1, 4))]
        threads = rng.choice([None, None, 32, 64, 128, 256])
        step, around = self.columns, rng.random() < 0.2
        uses = any(" * (a" in line or " * a" in line for line in self.round)
        lines = [f"let a = A[m:+{self.rows}, :];"] * uses + self.begin
        loop = [f"for k in range(0, N, {step}) {{", f"    let x = X[m:+{self.rows}, k:+{step}];",
                *(f"    {line}" for line in self.round), "}"]
        if around:
            loop = ["for again in range(2) {", *(f"    {line}" for line in loop), "}"]
        body = "\n".join(f"        {line}" for line in lines + loop + self.end)
        clause = f" threads({threads})" if threads else ""
        return (f"kernel k(X: {self.element}[M, N], A: {self.element}[M, 1], {', '.join(outputs)}){clause}\n{{\n"
                f"    for m in tiles(M by {self.rows}) {{\n{body}\n    }}\n}}\n")


def draw(seed):
    program = Program(seed)
    return program.text(), program, ARCHS[seed % len(ARCHS)]


def run(tirc, path, program, arch):
    command = [tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--emu-check=full",
               f"--check={TOLERANCE.get(program.element, '1e-3')}", *(f"{n}={x}" for n, x in program.sizes.items())]
    if program.element[0] == "i":
        command += ["X=randint:-3:4", "A=randint:-1:3"]
    else:
        command += ["X=rand:-1:1", "A=rand:-0.5:0.5"]
    return seeds.failure(command)


def deferred(tirc, path, arch):
    """How many values the first variant combines behind its loop."""
    command = [tirc, "build", str(path), f"--arch={arch}", "--stop-after=defer", "--emit=tir", "--receipt", "-o", "/dev/null"]
    text = seeds.output(command)
    return text.split("\nk__")[0].count(" behind it")


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    failed, behind, all_of = [], 0, 0
    for path, program, arch in seeds.passing(options, draw, lambda *run_of: run(options.tirc, *run_of), failed):
        behind += deferred(options.tirc, path, arch)
        all_of += program.outputs
    print(f"{options.count - len(failed)} passed, {len(failed)} failed; {behind} of {all_of} values are combined behind their loops")
    return bool(failed) or not options.count // 4 < behind < all_of


if __name__ == "__main__":
    sys.exit(main())
