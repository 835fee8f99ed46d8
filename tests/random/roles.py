#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of two to four roles that hand tiles on through rings, on the emulator against the interpreter.

Usage: roles.py TIRC [--seed N] [--count N]

Rings stand before, in and behind a loop that all roles have, which a dimension, loaded numbers or a condition bounds. A ring
goes from any role to a later one; data or the tile's number decides whether it is used. What is put are copies, tiles
computed of other rings, masked and gathered ones, in all element types; what is got is summed, or added to a tensor in
place. Sizes are odd, also 0. No program is refused. Seed 0 is that of the day.
"""

import random
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
SHAPES = [(16, 32), (32, 32), (64, 64), (128, 64), (8, 128), (64, 32), (1, 128), (24, 40)]
TYPES = ["f32", "f32", "bf16", "f16", "i32", "i8", "u8", "i16", "f64", "i64"]
BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2, "i8": 1, "u8": 1}
FLOATS = ["f32", "f64", "f16", "bf16"]
TILES = ["", "", ", persistent", ", persistent", ", persistent = dynamic"]
DATA = {"above": "> 0", "even": "% 2 == 0"}


def cast(value, have, want):
    if have == want:
        return value
    if want in ("i8", "u8", "i16") and have in FLOATS:
        return f"{want}(min(max(f32({value}), 0), 100))"
    return f"{want}({value})"


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.height, self.width = rng.choice(SHAPES)
        small = self.height * self.width <= 256
        warps = ["warps(1)", "warps(2)"] + ([] if small else ["warps(4)", "warpgroups(1)", "warpgroups(2)"])
        self.roles = [rng.choice(warps) for _ in range(rng.choice([2, 2, 3, 3, 4]))]
        self.tiles = rng.choice(TILES)
        self.loop = rng.choice(["for", "for", "while", "twice", "for data", "while data"])
        self.rings, self.phases = [], []
        self.room = 60000  # bytes of shared memory: all targets have them, and some for what changes threads
        for where in ("before", "loop", "behind"):
            if where == "loop" or rng.random() < 0.35:
                self.phases.append((where, [self.ring() for _ in range(rng.choice([1, 1, 2, 3]))],
                                    rng.choice([None, None, None, *DATA, "index"])))
        self.params = ["X: f32[M, K]", "J: i32[M, K]", "T: i32[G]"]
        self.updated = {}  # tensors in place, and their types

    def ring(self):
        """Its name, the roles that put and get, its buffers and slots: what there is still room for."""
        rng, n = self.rng, len(self.rings)
        roles, slots = sorted(rng.sample(range(len(self.roles)), 2)), rng.choice([1, 2, 2, 3])
        buffers = [(f"b{n}_{i}", rng.choice(TYPES)) for i in range(rng.choice([1, 1, 2]))]
        elements = self.height * self.width
        if slots * elements * sum(BYTES[of] for _, of in buffers) > self.room:
            buffers, slots = [(buffers[0][0], rng.choice(["i8", "u8"]))], 1
        self.room -= slots * elements * sum(BYTES[of] for _, of in buffers)
        self.rings.append((f"r{n}", *roles, buffers, slots))
        return self.rings[-1]

    def source(self, want, column):
        """A tile that a role loads for a ring, copied if its type is that of the tensor."""
        h, w = self.height, self.width
        tensor, have = self.rng.choice([("X", "f32"), ("J", "i32")])
        plain = f"{tensor}[m:+{h}, {column}:+{w}]"
        return cast(self.rng.choice([
            plain, plain, plain, plain, f"{tensor}[m + 1:+{h}, {column} - 1:+{w}]",
            f"{tensor}[(i32(m) + {h - 1} - iota({h})), {column}:+{w}]",
            f"load({plain}, pad = 1, mask = index(zeros(bool, {h}, {w}), 0) < {h - 3})"]), have, want)

    def put(self, ring, column, computed):
        rng, lines = self.rng, []
        for name, want in ring[3]:
            copied = {"f32": "X", "i32": "J"}.get(want)
            if computed and rng.random() < 0.5:
                value = cast(rng.choice(["{0}", "{0} + {0}"]).format(computed[0]), computed[1], want)
            elif copied and rng.random() < 0.7:
                value = f"{copied}[m:+{self.height}, {column}:+{self.width}]"
            else:
                value = self.source(want, column)
            lines.append(f"{name} = {value};")
        return [f"put {ring[0]} {{", *lines, "}"]

    def get(self, ring, column, sums, role):
        rng, lines = self.rng, []
        for name, have in ring[3]:
            total, of = rng.choice(sums)
            value, how = cast(f"{name}[:, :]", have, of), rng.random()
            if how < 0.5:
                lines.append(f"{total} += {value};")
            elif how < 0.7:
                lines.append(f"{total} = {total} * {rng.choice([1, 2, -1])} + {value};")
            elif how < 0.8:
                lines.append(f"{total} += sum({value}, axis = {rng.randrange(2)});")
            else:
                of = self.updated.setdefault(f"Z{role}", rng.choice(["f32", "i32"]))
                place = f"Z{role}[m:+{self.height}, {column}:+{self.width}]"
                lines.append(f"{place} = {place} + {cast(f'{name}[:, :]', have, of)};")
        return [f"get {ring[0]} {{", *lines, "}"]

    def phase(self, role, phase, column, sums):
        where, rings, asks = phase
        lines, got = [], False
        for ring in rings:
            if role == ring[1]:
                lines += self.put(ring, column, sums[0] if got else None)
            elif role == ring[2]:
                lines += self.get(ring, column, sums, role)
                got = True
        if not lines or not asks:
            return lines
        number = f"m / {self.height}" if where != "loop" else f"(m / {self.height} + k / {self.width})"
        question = f"{number} % 3 != 1" if asks == "index" else f"T[{number}{' % G' if where == 'loop' else ''}] {DATA[asks]}"
        return [f"if {question} {{", *lines, "}"]

    def rounds(self, lines):
        step, count = self.width, f"i64(T[m / {self.height}]) * {self.width}"
        return {"for": [f"for k in range(0, K, {step}) {{", *lines, "}"],
                "for data": [f"for k in range(0, min(K, {count}), {step}) {{", *lines, "}"],
                "twice": ["for q in range(2) {", f"for k in range(q * {step}, K, {2 * step}) {{", *lines, "}", "}"],
                "while": ["var k: i64 = 0;", "while k < K {", *lines, f"k += {step};", "}"],
                "while data": ["var k: i64 = 0;", f"while k < K && k < {count} {{", *lines, f"k += {step};", "}"]}[self.loop]

    def role(self, role):
        sums = [(f"a{role}", self.rng.choice(["f32", "i32", "i64"])), (f"c{role}", self.rng.choice(["f32", "i32"]))]
        lines = [f"var {name}: {of}[{self.height}, {self.width}] = 0;" for name, of in sums]
        for phase in self.phases:
            inner = self.phase(role, phase, "k" if phase[0] == "loop" else "0", sums)
            lines += self.rounds(inner) if inner and phase[0] == "loop" else inner
        for name, of in sums if any(ring[2] == role for ring in self.rings) else []:
            self.params.append(f"Y{name}: out {of}[M, {self.width}]")
            lines.append(f"Y{name}[m:+{self.height}, 0:+{self.width}] = {name};")
        return [f"role p{role} {self.roles[role]} {{", f"for m in tiles(M by {self.height}{self.tiles}) {{", *lines, "}", "}"]

    def text(self):
        lines = []
        for name, _, _, buffers, slots in self.rings:
            lines += [f"ring {name}[{slots}] {{",
                      *(f"{buffer}: {of}[{self.height}, {self.width}]{self.rng.choice(['', '', ' in row_major'])};"
                        for buffer, of in buffers), "}"]
        for role in range(len(self.roles)):
            if any(role in ring[1:3] for ring in self.rings):
                lines += self.role(role)
        params = [*self.params, *(f"{name}: inout {of}[M, K]" for name, of in self.updated.items())]
        body = "\n".join(f"    {line}" for line in lines)
        return f"kernel k({', '.join(params)}) where G == ceildiv(M, {self.height})\n{{\n{body}\n}}\n"


def draw(seed):
    rng, program = random.Random(seed), Program(seed)
    text, height = program.text(), program.height
    rows = max(rng.randint(1, 5) * height - rng.choice([0, 0, 1]), 1)
    columns = rng.choice([0, 1, 2, 3, 5]) * program.width + rng.choice([0, 0, 4, 3])
    sizes = [f"M={rows}", f"K={columns}", f"G={-(-rows // height)}", "X=randint:-4:5", "J=randint:-4:5", "T=randint:-1:4",
             *(f"{name}=randint:-4:5" for name in program.updated)]
    return text, sizes, ARCHS[seed % len(ARCHS)]


def run(tirc, path, sizes, arch):
    return seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--emu-check=full", "--check=0",
                          "--schedule=random:1", *sizes])


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
