#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random expressions of all element types on numbers that are hard, on the emulator against the interpreter, bit by bit.

Usage: numbers.py TIRC [--seed N] [--count N]

Each kernel computes a few expressions of casts, arithmetic, comparisons and choices, by tiles or by single threads. Its
inputs are bits: powers of two and their neighbours, zeros, infinities, NaNs, subnormals and ties of all formats, and what
is near to where others overflow. Operands are mostly such bits, sometimes constants, which are folded. Of a NaN that is
computed the bits are not compared, nor are quotients of f32, which may be approximate. Seed 0 is that of the day.
"""

import pathlib
import random
import sys

import npy
import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
ELEMENTS = 512
INTEGERS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
NARROW = {"e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "ue8m0": 8, "ue4m3": 8, "e2m1": 8, "tf32": 32}  # only cast
COMPUTED = {**INTEGERS, **FLOATS}
ALL = {**COMPUTED, **NARROW}
FORMATS = {8: [(4, 3), (5, 2), (3, 2), (2, 3), (2, 1)], 16: [(5, 10), (8, 7)], 32: [(8, 23), (8, 10)], 64: [(11, 52)]}
# Distances from the exponent of 1 at which some type ends or becomes subnormal.
STEPS = [-149, -134, -133, -127, -126, -25, -24, -17, -16, -15, -14, -10, -9, -7, -6, -2, -1, 0, 1, 2, 4, 7, 8, 9, 15, 16, 31, 32, 63, 64]


def hard_float(rng, bits):
    exponents, fractions = rng.choice(FORMATS[bits])
    full, kept = (1 << exponents) - 1, rng.randint(0, fractions)
    step = (full >> 1) + rng.choice(STEPS)
    exponent = rng.choice([0, 0, full, full, full - 1, rng.randint(0, full), *[min(max(step, 0), full)] * 6])
    tie = rng.getrandbits(kept) << (fractions - kept) | (1 << (fractions - kept) >> 1)
    fraction = rng.choice([0, 0, (1 << fractions) - 1, 1, rng.getrandbits(fractions), tie, tie + 1, tie - 1]) & ((1 << fractions) - 1)
    return (rng.getrandbits(1) << (exponents + fractions) | exponent << fractions | fraction) << (bits - 1 - exponents - fractions)


def hard_bits(rng, bits):
    how = rng.random()
    if how < 0.2:
        return rng.getrandbits(bits)
    if how < 0.45:
        return ((1 << rng.randrange(bits)) + rng.choice([-1, 0, 0, 1])) * rng.choice([1, -1]) & ((1 << bits) - 1)
    return hard_float(rng, bits)


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.inputs = {}  # name -> bits
        self.lets = []

    def let(self, value):
        name = f"n{len(self.lets)}"
        self.lets.append(f"let {name} = {value};")
        return name

    def constant(self, of):
        rng = self.rng
        if of in FLOATS:
            return f"{of}({rng.choice(['0.0', '-0.0', '1.0', 'inf', '-inf', 'nan', '0.5', '-1.0', '2.0', '3.0'])})"
        bits = INTEGERS[of]
        low, high = (0, 2**bits - 1) if of[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        number = rng.choice([0, 1, 2, 3, 7, high, low, high - 1, 1 << rng.randrange(bits - 1), bits, bits - 1, bits + 1])
        return f"{of}({min(max(number, low), high, 2**63 - 1)})"

    def leaf(self, of):
        if of in COMPUTED and self.rng.random() < 0.12:
            return self.constant(of)
        bits = ALL[of]
        name = f"{self.rng.choice('ABC')}{bits}"
        self.inputs[name] = bits
        name = name.lower()
        if of == f"u{bits}":
            return name
        if of == "tf32":
            return f"tf32(bitcast(f32, {name}))"
        used = {"e3m2": 63, "e2m3": 63, "e2m1": 15, "ue4m3": 127}.get(of)
        return f"bitcast({of}, {name}{f' & {used}' if used else ''})"

    def condition(self, depth):
        rng = self.rng
        if rng.random() < 0.2 and depth > 0:
            return f"({self.condition(depth - 1)} {rng.choice(['&&', '||', '^', '==', '!='])} {self.condition(depth - 1)})"
        of = rng.choice(list(COMPUTED))
        return f"({self.value(of, depth - 1)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {self.value(of, depth - 1)})"

    def integer(self, of, depth):
        rng, a = self.rng, self.value(of, depth - 1)
        how = rng.random()
        if how < 0.15:
            return rng.choice([f"(-{a})", f"abs({a})", f"(~{a})"])
        b = self.value(of, depth - 1)
        if how < 0.3:
            return f"({a} {rng.choice(['<<', '>>'])} {b})"
        if how < 0.45:
            by = [f"({b} | 1)", f"{of}({rng.choice([1, 2, 3, 7, 8, 10, 100, 127])})"] + [f"{of}({-n})" for n in (1, 3, 8) if of[0] == "i"]
            return f"({a} {rng.choice('/%')} {rng.choice(by)})"
        if how < 0.65:
            return rng.choice([f"min({a}, {b})", f"max({a}, {b})", f"clamp({a}, {self.leaf(of)}, {b})"])
        return f"({a} {rng.choice('+-*&|^')} {b})"

    def float(self, of, depth):
        rng, a = self.rng, self.value(of, depth - 1)
        how = rng.random()
        if how < 0.2:
            return rng.choice([f"(-{a})", *[f"{name}({a})" for name in ("abs", "floor", "ceil", "round", "trunc", "sqrt")]])
        b = self.value(of, depth - 1)
        if how < 0.45:
            return rng.choice([f"min({a}, {b})", f"max({a}, {b})", f"clamp({a}, {self.leaf(of)}, {b})"])
        if how < 0.55:
            return rng.choice([f"fma({a}, {b}, {self.value(of, depth - 1)})", f"({a} * {b} {rng.choice('+-')} {self.value(of, depth - 1)})"])
        if how < 0.6:
            return f"({a} {rng.choice('%' if of == 'f32' else '/%')} {b})"
        return f"({a} {rng.choice('+-*')} {b})"

    def value(self, of, depth):
        rng = self.rng
        how = rng.random()
        if depth <= 0 or how < 0.1:
            return self.leaf(of)
        if how < 0.4 or of in NARROW:
            source = rng.choice([*ALL, "bool"])
            if source == of or (source == "bool" and of in NARROW):
                return self.leaf(of)
            return f"{of}({self.condition(depth - 1) if source == 'bool' else self.value(source, depth - 1)})"
        if how < 0.48:
            return f"where({self.condition(depth - 1)}, {self.value(of, depth - 1)}, {self.value(of, depth - 1)})"
        if how < 0.54:
            source = rng.choice([x for x in COMPUTED if COMPUTED[x] == ALL[of]])
            if source in FLOATS:
                name = self.let(self.value(source, depth - 1))
                return f"bitcast({of}, where({name} == {name}, {name}, {source}(0.0)))"
            return f"bitcast({of}, {self.value(source, depth - 1)})"
        return self.integer(of, depth) if of in INTEGERS else self.float(of, depth)

    def result(self):
        """The bits of an expression, and how many; those of any NaN are the same."""
        of = self.rng.choice(list(ALL))
        bits = ALL[of]
        x = self.let(self.value(of, self.rng.randint(1, 4)))
        x = self.let(f"f32({x})") if of == "tf32" else x
        shown = x if of == f"u{bits}" else f"bitcast(u{bits}, {x})"
        if of in FLOATS or of == "tf32":
            shown = f"where({x} == {x}, {shown}, u{bits}({(1 << (bits - 1)) - 1}))"
        if of in ("e4m3", "e5m2"):
            shown = f"where(f32({x}) == f32({x}), {shown}, 127)"
        return shown, bits

    def text(self):
        results = [self.result() for _ in range(6)]
        tensors = [f"{name}: u{bits}[N]" for name, bits in sorted(self.inputs.items())]
        tensors += [f"Y{i}: out u{bits}[N]" for i, (_, bits) in enumerate(results)]
        of_tiles = self.rng.random() < 0.5
        part = "n:+256" if of_tiles else "n"
        lines = [f"let {name.lower()} = {name}[{part}];" for name in sorted(self.inputs)] + self.lets
        lines += [f"Y{i}[{part}] = {shown}{f' + zeros(u{bits}, 256)' if of_tiles else ''};" for i, (shown, bits) in enumerate(results)]
        around = "for n in tiles(N by 256) {" if of_tiles else "let n = i64(cta_id()) * 128 + i64(tid());\n    if n < N {"
        clauses = "" if of_tiles else " grid(ceildiv(N, 128)) threads(128)"
        body = "\n".join(f"        {line}" for line in lines)
        return f"kernel k({', '.join(tensors)}){clauses}\n{{\n    {around}\n{body}\n    }}\n}}\n"


def draw(seed):
    program = Program(seed)
    return program.text(), program.inputs, seed


def run(tirc, path, inputs, seed):
    rng = random.Random(seed)
    given = []
    for name, bits in sorted(inputs.items()):
        file = pathlib.Path(path.parent, f"{name}.npy")
        npy.write(file, bits, [hard_bits(rng, bits) for _ in range(ELEMENTS)])
        given.append(f"{name}=@{file}")
    return seeds.failure([tirc, "run", str(path), f"--arch={ARCHS[seed % len(ARCHS)]}", "--device=emu", "--check=0",
                          f"N={ELEMENTS}", *given])


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
