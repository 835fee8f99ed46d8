#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random sizes that a launch computes, against the interpreter.

Usage: launches.py TIRC [--seed N] [--count N]

Each program has a grid, or tiles, as many as an expression says: sums, products, quotients, shifts, casts, choices and
comparisons of a dimension and of integer parameters of all types, small ones and those at the limits of their types. A CTA
or tile marks its element, so that the number is seen. What overflows 64 bits, is a negative u64 or divides by zero is an
error of the launch: such programs are counted. Seed 0 is that of the day.
"""

import random
import sys

import seeds

TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
MOST = 40  # marks
OVERFLOW = "a formula overflows or divides by zero"


def limits(of):
    bits = int(of[1:]) - (of == "u64")  # larger ones count as the largest of i64
    return (0, 2**bits - 1) if of[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.parameters = {name: rng.choice(TYPES) for name in "pqr"}
        self.values = {name: self.number(of) for name, of in self.parameters.items()}
        self.size = rng.choice([0, 1, 3, 40, 255, 259, 40000])

    def number(self, of):
        low, high = limits(of)
        return self.rng.choice([low, low + 1, high, high - 1, *(min(max(self.rng.randint(-9, 200), low), high) for _ in range(4))])

    def constant(self, of):
        low, high = limits(of)
        return f"{of}({min(max(self.rng.choice([0, 1, 2, 3, 7, 100, low + 1, high]), low), high)})"

    def leaf(self, of):
        fitting = [name for name, other in self.parameters.items() if other == of] + (["N"] if of == "i64" else [])
        if fitting and self.rng.random() < 0.6:
            return self.rng.choice(fitting)
        if self.rng.random() < 0.7:
            return f"{of}({self.rng.choice([*self.parameters, 'N'])})"
        return self.constant(of)

    def condition(self, depth):
        rng = self.rng
        if depth > 0 and rng.random() < 0.3:
            return f"({self.condition(depth - 1)} {rng.choice(['&&', '||', '!='])} {self.condition(depth - 1)})"
        of = rng.choice(TYPES)
        return f"({self.value(of, depth - 1)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {self.value(of, depth - 1)})"

    def value(self, of, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.leaf(of)
        how = rng.choice("+-*+-*/%^<>,?~-")
        a = self.value(of, depth - 1)
        if how in "+-*":
            return f"({a} {how} {self.value(of, depth - 1)})"
        if how == "^":  # of what is not negative, by what is positive
            return f"ceildiv(max({a}, {of}(0)), {of}({rng.choice([1, 2, 3, 64])}))"
        if how in "/%":
            by = f"{of}({rng.choice([1, 2, 3, 7, 64, 100] + ([-1, -3] if of[0] == 'i' else []))})"
            return f"({a} {how} {rng.choice([by, self.leaf(of)])})"
        if how in "<>":
            return f"({a} {how * 2} {of}({rng.randrange(min(int(of[1:]), 20))}))"
        if how == ",":
            return f"{rng.choice(['min', 'max'])}({a}, {self.value(of, depth - 1)})"
        if how == "?":
            return f"({self.condition(depth - 1)} ? {a} : {self.value(of, depth - 1)})"
        return f"{of}({self.value(rng.choice(TYPES), depth - 1)})"

    def text(self):
        rng = self.rng
        of = rng.choice(TYPES)
        count = f"{'' if of == 'i64' else 'i64'}({self.value(of, 4)}) % {MOST // 2} + {MOST // 2}"
        head = f"X: i32[N], Y: inout i32[{MOST}], " + ", ".join(f"{name}: {other}" for name, other in self.parameters.items())
        if rng.random() < 0.5:
            return f"kernel k({head}) grid({count}) threads(32)\n{{\n    if tid() == 0 {{ Y[cta_id()] = 77; }}\n}}\n"
        return f"kernel k({head})\n{{\n    for n in tiles({count}) {{ Y[n] = 77; }}\n}}\n"


def draw(seed):
    program = Program(seed)
    values = [f"{name}={value}" for name, value in program.values.items()]
    return program.text(), [*values, f"N={program.size}"]


def main():
    options = seeds.parser(__doc__, "tirc", count=60).parse_args()
    failed, refused = [], []

    def run(path, given):
        why = seeds.failure([options.tirc, "run", str(path), "--arch=sm_90a", "--device=emu", "--check=0", *given])
        if not why or OVERFLOW not in why:
            return why
        refused.append(path)
        return None

    passed = sum(1 for _ in seeds.passing(options, draw, run, failed))
    print(f"{passed} passed, of which {len(refused)} are refused, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
