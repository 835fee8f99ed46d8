#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs that load and store tensors in place in every way, on the emulator against the interpreter.

Usage: memory_order.py TIRC [--seed N] [--count N]

Each tile has a part of one or two tensors for itself, of any element types: a matrix, or some rows. It loads and stores
tiles of it as they are, turned, with strides, by computed and loaded indices, masked, as part of one row, and single rows,
columns and elements; atomics add to it. Loops with stages, whiles and branches stand in each other, their conditions and
indices are loaded from what is stored, and products take factors from it. Results are exact. The emulator finds each
barrier that is missing, and sync_check refuses nothing. Seed 0 is that of the day.
"""

import random
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
TYPES = ["i32", "i32", "f32", "f32", "bf16", "f16", "i8", "u8", "i64", "f64", "i16"]
FLOATS = ["bf16", "f16", "f32", "f64"]
ADDED = ["i32", "i64", "f32", "f16", "bf16", "f64"]
# Tiles, and the matrix around them.
SMALL = ([(1, 32), (4, 32), (8, 16), (16, 16), (16, 32), (32, 32), (5, 24), (2, 128)], [16, 32, 40], [64, 96, 100, 128])
LARGE = ([(64, 64), (64, 32), (128, 64), (64, 128)], [64, 128, 136], [100, 128, 192])


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        tiles, heights, widths = LARGE if rng.random() < 0.15 else SMALL
        self.height, self.width = rng.choice(tiles)
        self.types = {"X": rng.choice(TYPES)}
        if rng.random() < 0.4:
            self.types["Z"] = rng.choice(TYPES)
        self.is_matrix = rng.random() < 0.7  # or rows
        self.rows = rng.choice(heights) if self.is_matrix else max(self.height, self.width, 16)
        self.columns = rng.choice(widths)
        self.named = rng.random() < 0.5
        self.sum = rng.choice(["i32", "f32"])  # the type that it computes in
        self.values = 0

    def name(self, of):
        self.values += 1
        return f"{of}{self.values}"

    # Places. `variables` are those of the loops around, and R.

    def start(self, n, variables):
        """An index from which on n elements are taken; it may lie outside."""
        rng, v = self.rng, self.rng.choice(variables)
        return rng.choice(["0", "0", "0", str(rng.randint(0, 3)), v, v, f"{v} + {rng.randint(1, 3)}", f"{v} - 1", f"{v} * {n}",
                           f"({v} + 1) * {n}", f"{v} % 2 * {n}", str(n), f"i64(I[{v} & 7])"])

    def row(self, n, variables):
        """The same for rows, which belong to the tile."""
        start = self.start(n, variables)
        if self.is_matrix:
            return start
        return "m" if n == self.rows else f"m + min(max({start}, 0), {self.rows - n})"

    def distinct(self, n, loads):
        """n indices, all different unless they are only loaded from."""
        rng = self.rng
        if n & (n - 1):
            return f"(iota({n}) + {rng.randint(0, 3)})"
        few = [f"((iota({n}) * {rng.choice([1, 3, 5])} + {rng.randint(0, 9)}) & {n - 1})", f"({n - 1} - iota({n}))",
               f"(iota({n}) ^ (i32(I[{rng.randint(0, 7)}]) & {n - 1}))"]
        return rng.choice([*few, f"P[0:+{n}]"] if loads else few)

    def at(self, tensor, row, column):
        return f"{tensor}[{'b, ' if self.is_matrix else ''}{row}, {column}]"

    def slice(self, height, width, variables, loads):
        """A tensor, a slice of it, and what makes a tile [height, width] of the slice and back: T, F (flat), or nothing."""
        rng, tensor = self.rng, self.rng.choice(list(self.types))
        row, column = self.row(height, variables), self.start(width, variables)
        how = rng.random()
        if how < 0.12 and (self.is_matrix or width <= self.rows):
            return tensor, self.at(tensor, f"{self.row(width, variables)}:+{width}", f"{self.start(height, variables)}:+{height}"), "T"
        if how < 0.2:
            return tensor, self.at(tensor, f"{row}:+{height}", f"{column}:+{width}:{rng.choice([2, 3])}"), ""
        if how < 0.28:
            return tensor, self.at(tensor, f"{row}:+{height}", f"{rng.randint(0, 2) * width} + {self.distinct(width, loads)}"), ""
        if how < 0.36 and self.is_matrix:
            return tensor, self.at(tensor, self.distinct(height, loads), f"{column}:+{width}"), ""
        if how < 0.4 and self.is_matrix:
            rows, columns = self.distinct(height, loads), self.distinct(width, loads)
            return tensor, self.at(tensor, f"{rows}[:, None]", f"{columns}[None, :]"), ""
        if how < 0.46 and height * width <= self.columns:
            return tensor, self.at(tensor, self.row(1, variables), f"{self.start(height * width, variables)}:+{height * width}"), "F"
        return tensor, self.at(tensor, f"{row}:+{height}", f"{column}:+{width}"), ""

    # Values.

    def cast(self, tensor, value):
        return value if self.types[tensor] == self.sum else f"{self.sum}({value})"

    def stored(self, tensor, value):
        """As the tensor has it; floats stay small, so that all is exact."""
        to = self.types[tensor]
        if self.sum == "f32":
            value = f"clamp({value}, {0 if to == 'u8' else -9}, 9)"
        elif to in FLOATS:
            value = f"({value} % 10)"
        return f"{to}({value})"

    def load(self, variables):
        rng, tensor = self.rng, self.rng.choice(list(self.types))
        rows, columns = f"{self.row(self.height, variables)}:+{self.height}", f"{self.start(self.width, variables)}:+{self.width}"
        how = rng.random()
        if how < 0.1:
            return self.cast(tensor, self.at(tensor, self.row(1, variables), columns) + "[None, :]")
        if how < 0.17:
            return self.cast(tensor, self.at(tensor, rows, self.start(1, variables)) + "[:, None]")
        if how < 0.25:
            return self.cast(tensor, self.at(tensor, self.row(1, variables), self.start(1, variables)))
        if how < 0.3:
            return f"sum({self.cast(tensor, self.at(tensor, rows, columns))}, axis = {rng.choice([0, 1])})"
        tensor, part, by = self.slice(self.height, self.width, variables, True)
        return self.cast(tensor, f"{part}.T" if by == "T" else f"reshape({part}, {self.height}, {self.width})" if by else part)

    def turned(self, value, by):
        return f"({value}).T" if by == "T" else f"reshape({value}, {self.height * self.width})" if by else value

    def update(self, values, variables):
        rng, lines = self.rng, []
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            lines.append(f"let {(name := self.name('v'))} = {self.load(variables)};")
            values.append(name)
        used = [name for name in values if rng.random() < 0.6][-4:]
        tile = f"(zeros({self.sum}, {self.height}, {self.width}) + {' + '.join([*used, str(rng.randint(1, 5))])})"
        tensor, part, by = self.slice(self.height, self.width, variables, False)
        how = rng.random()
        if how < 0.1:
            one = f"max({tile})" if rng.random() < 0.5 else str(rng.randint(1, 9))
            return [*lines, f"{self.at(tensor, self.row(1, variables), self.start(1, variables))} = {self.stored(tensor, one)};"]
        if how < 0.18:
            one = self.at(tensor, self.row(1, variables), f"{self.start(self.width, variables)}:+{self.width}")
            return [*lines, f"{one} = {self.stored(tensor, f'{tile}[{rng.randrange(self.height)}, :]')};"]
        if how < 0.3 and not by and self.types[tensor] in ADDED:
            added = f"atomic_add({part}, {self.stored(tensor, tile)})"
            if rng.random() < 0.6:
                return [*lines, f"{added};"]
            values.append(name := self.name("v"))
            return [*lines, f"let {name} = {self.cast(tensor, added)};"]
        value = self.turned(self.stored(tensor, tile), by)
        if rng.random() < 0.15:
            return [*lines, f"store({part}, {value}, mask = {self.turned(f'({tile} > 2)', by)});"]
        return [*lines, f"{part} = {value};"]

    # Statements.

    def loop(self, variables):
        """The head of a loop, and its variable."""
        rng, name = self.rng, self.name("j")
        ends = rng.choice(["0, 1", "0, 2", "0, 3", "R", "2, -1, -1", "1, 4", "0, R + 1", "0, 6, 2"])
        return f"for {name} in range({ends}{rng.choice(['', '', ', stages = 2', ', stages = 3', ', stages = 4'])}) {{", [*variables, name, name]

    def sums(self, values, variables):
        """A loop that adds up tiles, and changes what it has loaded or will load."""
        rng, name = self.rng, self.name("v")
        head, inner = self.loop(variables)
        body = [f"{name} += {self.load(inner)};" for _ in range(rng.choice([1, 1, 2]))]
        if self.height >= 16 and self.width >= 16 and rng.random() < 0.6:
            body = [f"{name} += {self.product(inner)};"]
        if self.sum == "f32":
            body.append(f"{name} = clamp({name}, -20, 20);")
        if rng.random() < 0.6:
            body = rng.choice([lambda x: x + body, lambda x: body + x])(self.update([name], inner))
        values.append(name)
        return [f"var {name}: {self.sum}[{self.height}, {self.width}] = 0;", head, *body, "}"]

    def product(self, variables):
        element = self.rng.choice(["bf16", "f16", "tf32"]) if self.sum == "f32" else "i8"
        depth = self.rng.choice([16, 32, 64])
        return f"dot({self.factor(self.height, depth, element, variables)}, {self.factor(depth, self.width, element, variables)})"

    def factor(self, height, width, element, variables):
        rng, tensor = self.rng, self.rng.choice(list(self.types))
        turned = rng.random() < 0.4
        height, width = (width, height) if turned else (height, width)
        if not self.is_matrix and height > self.rows:
            return f"zeros({element}, {width if turned else height}, {height if turned else width})"
        part = self.at(tensor, f"{self.row(height, variables)}:+{height}", f"{self.start(width, variables)}:+{width}")
        part = f"{part}.T" if turned else part
        of = self.types[tensor]
        if of == element:
            return part
        return f"{element}({part})" if element == "i8" or of in ("f32", "f16", "bf16") else f"{element}(f32({part}))"

    def condition(self, variables):
        rng, tensor = self.rng, self.rng.choice(list(self.types))
        how = rng.random()
        if how < 0.4:
            return f"{rng.choice(variables)} {rng.choice(['<', '>', '=='])} {rng.randint(0, 2)}"
        if how < 0.8:
            return f"{self.at(tensor, self.row(1, variables), self.start(1, variables))} > {rng.randint(0, 3)}"
        one = self.at(tensor, self.row(1, variables), f"{self.start(self.width, variables)}:+{self.width}")
        return f"any({one} > {rng.randint(1, 4)})"

    def block(self, values, variables, depth):
        rng, lines = self.rng, []
        for _ in range(rng.randint(1, 3)):
            how = rng.random() if depth < 3 else 1
            if how < 0.12:
                head, inner = self.loop(variables)
                lines += [head, *self.block(list(values), inner, depth + 1)]
                if rng.random() < 0.2:
                    lines += [f"if {self.condition(inner)} {{ {rng.choice(['break', 'continue'])}; }}", *self.update(list(values), inner)]
                lines.append("}")
            elif how < 0.24:
                name = self.name("c")
                inner = [*variables, name, name]
                lines += [f"var {name}: i64 = 0;", f"while {name} < {rng.randint(1, 4)} && {self.condition(inner)} {{",
                          *self.block(list(values), inner, depth + 1), f"{name} += 1;", "}"]
            elif how < 0.36:
                lines += [f"if {self.condition(variables)} {{", *self.block(list(values), variables, depth + 1), "}"]
                if rng.random() < 0.4:
                    lines += ["else {", *self.block(list(values), variables, depth + 1), "}"]
            elif how < 0.55:
                lines += self.sums(values, variables)
            else:
                lines += self.update(values, variables)
        return lines

    def text(self):
        rng = self.rng
        sizes = ("B, H, W" if self.named else f"B, {self.rows}, {self.columns}") if self.is_matrix else f"M, {'W' if self.named else self.columns}"
        tensors = ", ".join(f"{name}: inout {element}[{sizes}]" for name, element in self.types.items())
        tiles = "b in tiles(B" if self.is_matrix else f"m in tiles(M by {self.rows}"
        steps = ""
        for _ in range(rng.choice([1, 1, 1, 2])):
            lines = "\n".join(f"        {line}" for line in self.block([], ["R"], 0))
            steps += f"    for {tiles}{rng.choice(['', '', ', persistent', ', store_role'])}) {{\n{lines}\n    }}\n"
        return f"kernel k({tensors}, I: i32[8], P: i32[256], R: i64)\n{{\n{steps}}}\n"


def draw(seed):
    rng = random.Random(seed)
    program = Program(seed)
    text = program.text()
    sizes = [f"B={rng.randint(1, 3)}"] if program.is_matrix else [f"M={program.rows * rng.randint(1, 2) - rng.randint(0, 1)}"]
    if program.named:
        sizes += [f"W={program.columns}", *([f"H={program.rows}"] if program.is_matrix else [])]
    sizes += [f"R={rng.randint(0, 3)}", "I=randint:0:6", "P=randint:0:15"]
    sizes += [f"{name}=randint:{0 if element == 'u8' else -3}:5" for name, element in program.types.items()]
    return text, sizes, ARCHS[seed % len(ARCHS)], rng.choice(["lazy", "eager", "adversarial", "random:1", "random:2"])


def run(tirc, path, sizes, arch, schedule):
    return seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--emu-check=full", "--check=0",
                          f"--schedule={schedule}", *sizes])


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
