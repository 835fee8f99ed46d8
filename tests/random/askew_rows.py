#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of whole rows that begin anywhere, on the emulator against the interpreter.

Usage: askew_rows.py TIRC [--seed N] [--count N]

Each tile has a row of tensors of several element types for itself, or a few. Its statements load rows and vectors that all rows share,
combine them, mask them by their columns, reduce them and store rows of any type, of all rows or of the first ones, and add to a counter. Some walk longer rows in the grid, or in loops, with
a tile that goes from round to round, where the order of rounds matters, and keep a part of the row in shared memory. Rows have any length, and tensors begin anywhere: so vectors of memory are cut where rows begin and end,
and lie anywhere beside each other. All numbers are exact, and the emulator finds what is touched outside of a tensor. Seed 0 is that of the day. A failing program is printed, with
the command that runs it.
"""

import random
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
TYPES = ["f32", "bf16", "f16", "i32", "i16", "i8", "u8"]
MOST_KEPT = 96000  # bytes of a buffer: less shared memory than any target has
COLS = [64, 128, 256, 512, 1000, 1024, 1536]
REDUCTIONS = ["rowsum", "rowmax", "rowmin"]


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.cols = rng.choice(COLS)
        self.threads = rng.choice([32, 64, 128])
        self.rows = rng.choice([1, 1, 1, 2, 3, 4, 8])
        self.deep = rng.random() < 0.2  # tensors of three dimensions
        self.extent = rng.choice(["M"] * 6 + ["M - 1", "M / 2"])  # rows that have tiles
        self.counts = rng.random() < 0.1
        self.walks = rng.random() < 0.4
        self.spreads = not self.walks and rng.random() < 0.2  # the grid walks rows
        self.start = "n" if self.walks or self.spreads else "0"  # of the columns of a slice
        self.tensors = {}
        self.kept = None  # the element type of a buffer in shared memory, with so many columns:
        self.keep = self.cols * rng.choice([1, 2, 3, 4]) + rng.choice([0] * 9 + [self.cols // 2])
        while 4 * self.rows * self.keep > MOST_KEPT:
            self.keep -= self.cols
        self.values = 0
        self.in_loop = self.spreads

    def tensor(self, kind, dims, direction=""):
        name = f"{kind}{len(self.tensors)}"
        self.tensors[name] = (self.rng.choice(TYPES), dims, direction)
        return name

    def row(self, name, columns=None):
        row = self.rng.choice(["m", "m", "m", "m", "M - 1 - m"]) if self.rows == 1 else "m"
        columns = columns or f"{self.start}:+{self.cols}"
        return f"{name}[{'b, ' if self.deep else ''}{row}:+{self.rows}, {columns}]"

    def direction(self):
        return "out " if self.extent == "M" else "inout "

    def rows_of(self):
        return ["B", "M", "N"] if self.deep else ["M", "N"]

    def load(self):
        rng = self.rng
        if rng.random() < 0.3 and (self.rows == 1 or self.tensors):  # the first has all rows
            name = self.tensor("W", ["N"])
            return f"i32({name}[None, {self.start}:+{self.cols}])"
        name = self.tensor("X", self.rows_of())
        pad = rng.choice([None, None, 1, 3])
        part = self.row(name)
        return f"i32(load({part}, pad = {pad}))" if pad and self.tensors[name][0] not in ("u8",) else f"i32({part})"

    def statement(self, names):
        rng = self.rng
        a, b = rng.choice(names), rng.choice(names)
        if self.rows > 1 and rng.random() < 0.08:  # rows that are not on their own
            return rng.choice([f"{a} + i32(sum({b}, axis = 0) % 5)", f"where(rows({a}) == 1, {a}, {b})",
                               f"where(m + rows({a}) < 3, {a}, {b})", f"{a} + i32(m % 3)"])
        if rng.random() < 0.05:  # other elements of the same rows
            part = rng.choice([f"1:+8:{rng.randint(2, 4)}", "i64(iota(8) * 5)"])
            return f"{a} + sum(i32({self.row(self.tensor('X', self.rows_of()), part)}), axis = 1) % 7"
        at = "n + " if self.in_loop else ""
        return rng.choice([
            f"{a} + {b}", f"{a} - {b}", f"max({a}, {b})",
            f"where({a} < {b}, {a}, {b} + 1)",
            f"where({at}cols({a}) < N, {a}, {rng.randint(0, 3)})",
            f"where(cols({a}) % {rng.randint(2, 5)} == 0, {a}, {b})",
            f"where({at}cols({a}) + {rng.randint(1, 40)} < N, {a}, 0)",
            f"{a} + i32({rng.choice(REDUCTIONS)}({b}) % 7)",
            f"{a} - i32(rowsum(where({at}cols({b}) < N, {b}, 0)) % 5)",
        ])

    def lets(self, names, most, draw):
        """One to `most` new names of what draw() gives."""
        lines = []
        for _ in range(self.rng.randint(1, most)):
            name = f"v{self.values}"
            self.values += 1
            lines.append(f"let {name} = {draw()};")
            names.append(name)
        return lines

    def statements(self, names, most):
        return self.lets(names, most, lambda: self.statement(names))

    def loop(self, carried):
        """A loop over the tiles of a row, from the first or the second on."""
        rng = self.rng
        names = [] if carried is None or rng.random() < 0.5 else [carried]
        self.in_loop = True
        body = self.lets(names, 2, self.load)
        whole = self.kept and rng.random() < 0.7  # of the buffer
        if whole:
            body += self.lets(names, 1, lambda: f"i32(kept[:, n:+{self.cols}])")
        body += self.statements(names, 3)
        if whole and rng.random() < 0.3:
            body.append(f"kept[:, n:+{self.cols}] = {self.kept}(min(max({names[-1]}, 0), 100));")
        if carried is None:
            name = self.tensor("Y", self.rows_of(), self.direction())
            body.append(f"{self.row(name)} = {self.tensors[name][0]}(min(max({names[-1]} + total, 0), 100));")
        else:
            value = rng.choice([f"{carried} + {names[-1]}", f"max({carried}, {names[-1]})", f"({carried} * 3 + {names[-1]}) % 101"])
            body.append(f"{carried} = {value};")
        self.in_loop = False
        first = rng.choice([0, 0, 0, self.cols])
        stages = rng.choice(["", "", ", stages = 3"])
        end = self.keep if whole else "N"
        return [f"for n in range({first}, {end}, {self.cols}{stages}) {{", *[f"    {line}" for line in body], "}"]

    def keeps(self):
        """A part of a row, or all of it, in shared memory, as it is or not."""
        rng = self.rng
        name = self.tensor("X", self.rows_of())
        self.kept = self.tensors[name][0]
        row = self.row(name, f"0:+{self.keep}")
        if rng.random() < 0.4:
            value = rng.choice([f"i32({row}) + 1", f"where(cols({row}) < N, i32({row}), 2)", f"cols({row}) % 90",
                                f"where(cols({row}) < N, 1, 0)"])
            row = f"{self.kept}({value})"
        return [f"shared kept: {self.kept}[{self.rows}, {self.keep}];", f"kept[:, :] = {row};"]

    def walk(self):
        rng = self.rng
        shape = f"{self.rows}, {self.cols}"
        lines = self.keeps() if rng.random() < 0.5 else []
        lines += [f"var sums: i32[{shape}] = {rng.randint(0, 2)};", *self.loop("sums")]
        names = ["sums"]
        lines += self.statements(names, 2) if rng.random() < 0.5 else []
        few = ""
        if rng.random() < 0.2:  # a buffer with fewer columns than turn
            shape = f"{self.rows}, {rng.choice([2, 4, 8, 16])}"
            lines += [f"shared few: i32[{shape}];", f"few[:, :] = cols(zeros(i32, {shape}));"]
            few = " + rowsum(few[:, :])"
        lines.append(f"let total = (rowsum({names[-1]} % 50){few}) % 7;")
        lines += self.loop(None)
        if self.kept and rng.random() < 0.3:
            name = self.tensor("Y", self.rows_of(), self.direction())
            self.tensors[name] = (self.kept, *self.tensors[name][1:])
            lines.append(f"{self.row(name, f'0:+{self.keep}')} = kept[:, :];")
        return lines

    def text(self):
        lines = self.walk() if self.walks else self.whole()
        if self.counts:
            name = self.tensor("C", ["1"], "inout ")
            self.tensors[name] = ("i32", ["1"], "inout ")
            lines.append(f"atomic_add({name}[0], i32(1));")
        tensors = ", ".join(f"{name}: {direction}{kind}[{', '.join(dims)}]"
                            for name, (kind, dims, direction) in self.tensors.items())
        grid = {"b": "B by 1"} if self.deep else {}
        grid["m"] = f"{self.extent} by {self.rows}"
        grid |= {"n": f"N by {self.cols}"} if self.spreads else {}
        loop = f"({', '.join(grid)}) in tiles({', '.join(grid.values())})"
        body = "\n".join(f"        {line}" for line in lines)
        where = "" if self.walks or self.spreads else f"where N <= {self.cols} "
        return f"kernel k({tensors}) {where}threads({self.threads})\n{{\n    for {loop} {{\n{body}\n    }}\n}}\n"

    def whole(self):
        rng, names = self.rng, []
        lines = self.lets(names, 3, self.load) + self.statements(names, 5)
        for _ in range(rng.choice([1, 1, 2])):
            name = self.tensor("Y", self.rows_of(), self.direction())
            value = f"min(max({rng.choice(names[-2:])}, 0), 100)"
            lines.append(f"{self.row(name)} = {self.tensors[name][0]}({value});")
        if rng.random() < 0.3 and not self.deep and not self.spreads:
            name = self.tensor("S", ["M"], self.direction())
            value = f"min(max(rowsum(i32({names[-1]}) + 0 * {names[0]}) % 50, 0), 50)"
            lines.append(f"{name}[m:+{self.rows}] = reshape({self.tensors[name][0]}({value}), {self.rows});")
        return lines


def draw(seed):
    program = Program(seed)
    text, rng = program.text(), random.Random(seed + 1)
    most = program.cols
    columns = rng.choice([rng.randint(1, most), rng.randint(1, most), most, most // 8 + rng.randint(0, 20)])
    columns += rng.randint(0, 3) * most if program.walks or program.spreads else 0
    sizes = [f"M={rng.randint(1, 5 if program.rows == 1 else 40)}", f"N={columns}"]
    sizes += [f"B={rng.randint(1, 3)}"] if program.deep else []
    for name, (_, dims, direction) in program.tensors.items():
        place = f",offset={rng.randint(1, 9)}" if rng.random() < 0.3 else ""
        if len(dims) == 2 and rng.random() < 0.2:  # rows of a larger tensor
            place += f",strides={columns + rng.randint(1, 9)}x1"
        sizes.append(f"{name}={'zeros' if direction else 'randint:0:9'}{place}")
    return text, sizes, ARCHS[seed % len(ARCHS)]


def run(tirc, path, sizes, arch):
    return seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--emu-check=full", "--check=0", *sizes])


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
