#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random sizes that a launch computes, against the interpreter.

Usage: launches.py TIRC [--seed N] [--count N]

Each program has a grid, or tiles, as many as an expression says: sums, products, quotients, shifts, casts, choices and
comparisons of a dimension and of integer parameters of all types, small ones and those at the limits of their types. A CTA
or tile marks its element, so that the number is seen. What overflows 64 bits, is a negative u64 or divides by zero may be
an error of the launch: such programs are counted, and that of any other is a failure. Seed 0 is that of the day.
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


class Node:
    """An expression, its value, and whether some part of it, chosen or not, is one that a launch may refuse."""

    def __init__(self, text, of, exact, parts=(), odd=False):
        bits = int(of[1:])
        self.text, self.value = text, exact & (1 << bits) - 1
        if of[0] == "i" and self.value >> (bits - 1):
            self.value -= 1 << bits
        least = 0 if of == "u64" else -(1 << 63)
        self.odd = odd or not least <= exact < 1 << 63 or any(part.odd for part in parts)


def divided(a, b):
    quotient = abs(a) // abs(b) if b else 0
    return -quotient if (a < 0) != (b < 0) else quotient


EXACT = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divided,
    "%": lambda a, b: a - b * divided(a, b), "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "&&": lambda a, b: a and b, "||": lambda a, b: a or b,
}


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.parameters = {name: rng.choice(TYPES) for name in "pqr"}
        self.values = {name: self.number(of) for name, of in self.parameters.items()}
        self.size = rng.choice([0, 1, 3, 40, 255, 259, 40000])

    def number(self, of):
        low, high = limits(of)
        return self.rng.choice([low, low + 1, high, high - 1, *(min(max(self.rng.randint(-9, 200), low), high) for _ in range(4))])

    def constant(self, of, choices):
        low, high = limits(of)
        value = min(max(self.rng.choice(choices), low), high)
        return Node(f"{of}({value})", of, value)

    def leaf(self, of):
        known = {**self.values, "N": self.size}
        fitting = [name for name, other in self.parameters.items() if other == of] + (["N"] if of == "i64" else [])
        if fitting and self.rng.random() < 0.6:
            name = self.rng.choice(fitting)
            return Node(name, of, known[name])
        if self.rng.random() < 0.7:
            name = self.rng.choice([*known])
            return Node(f"{of}({name})", of, known[name])
        low, high = limits(of)
        return self.constant(of, [0, 1, 2, 3, 7, 100, low + 1, high])

    def joined(self, of, how, a, b):
        odd = how in "/%" and not b.value
        return Node(f"({a.text} {how} {b.text})", of, EXACT[how](a.value, b.value), (a, b), odd)

    def condition(self, depth):
        rng = self.rng
        if depth > 0 and rng.random() < 0.3:
            how = rng.choice(["&&", "||", "!="])
            return self.joined("u8", how, self.condition(depth - 1), self.condition(depth - 1))
        of = rng.choice(TYPES)
        a, how = self.value(of, depth - 1), rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return self.joined("u8", how, a, self.value(of, depth - 1))

    def value(self, of, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.leaf(of)
        how = rng.choice("+-*+-*/%^<>,?~-")
        if how == "~":
            a = self.value(rng.choice(TYPES), depth - 1)
            return Node(f"{of}({a.text})", of, a.value, [a])
        a = self.value(of, depth - 1)
        if how in "+-*":
            return self.joined(of, how, a, self.value(of, depth - 1))
        if how == "^":  # of what is not negative, by what is positive
            by = self.constant(of, [1, 2, 3, 64])
            exact = -(-max(a.value, 0) // by.value)
            return Node(f"ceildiv(max({a.text}, {of}(0)), {by.text})", of, exact, [a])
        if how in "/%":
            by = self.constant(of, [1, 2, 3, 7, 64, 100] + ([-1, -3] if of[0] == "i" else []))
            return self.joined(of, how, a, rng.choice([by, self.leaf(of)]))
        if how in "<>":
            by = rng.randrange(min(int(of[1:]), 20))
            return self.joined(of, how * 2, a, Node(f"{of}({by})", of, by))
        b = self.value(of, depth - 1)
        if how == ",":
            name, least = rng.choice([("min", min), ("max", max)])
            return Node(f"{name}({a.text}, {b.text})", of, least(a.value, b.value), (a, b))
        c = self.condition(depth - 1)
        return Node(f"({c.text} ? {a.text} : {b.text})", of, a.value if c.value else b.value, (a, b, c))

    def text(self):
        rng = self.rng
        number = self.value(rng.choice(TYPES), 4)
        self.is_odd = number.odd
        count = f"i64({number.text}) % {MOST // 2} + {MOST // 2}"
        head = f"X: i32[N], Y: inout i32[{MOST}], " + ", ".join(f"{name}: {other}" for name, other in self.parameters.items())
        if rng.random() < 0.5:
            return f"kernel k({head}) grid({count}) threads(32)\n{{\n    if tid() == 0 {{ Y[cta_id()] = 77; }}\n}}\n"
        return f"kernel k({head})\n{{\n    for n in tiles({count}) {{ Y[n] = 77; }}\n}}\n"


def draw(seed):
    program = Program(seed)
    text = program.text()
    values = [f"{name}={value}" for name, value in program.values.items()]
    return text, (program.is_odd, [*values, f"N={program.size}"])


def main():
    options = seeds.parser(__doc__, "tirc", count=60).parse_args()
    failed, refused = [], []

    def run(path, drawn):
        is_odd, given = drawn
        why = seeds.failure([options.tirc, "run", str(path), "--arch=sm_90a", "--device=emu", "--check=0", *given])
        if not why or OVERFLOW not in why or not is_odd:
            return why
        refused.append(path)
        return None

    passed = sum(1 for _ in seeds.passing(options, draw, run, failed))
    print(f"{passed} passed, of which {len(refused)} are refused, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
