#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random masks, on the emulator against the interpreter.

Usage: masks.py TIRC [--seed N] [--count N]

Each program keeps the elements of a tensor of two or three dimensions, or adds up those of a row in a loop, where one to
three comparisons hold. Both sides of a comparison are sums of positions of tiles, numbers of elements, dimensions, constants
and parameters, added or taken away, in 32 and 64 bits; parameters are small, huge or just what is compared. So masks are true
everywhere, nowhere, and at every edge in between. The passes `split` and `narrow` must change some of them, and no result.
Seed 0 is that of the day. A failing program is printed, with the command that runs it.
"""

import random
import re
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
DIMENSIONS = "KMN"
COMPARISONS = ["<", "<=", ">", ">=", "<", "<=", ">", ">=", "==", "!="]
HUGE = [2**31 - 1, -2**31, 2**40, 2**63 - 1, -2**63]


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.names = DIMENSIONS[-rng.choice([2, 2, 3]):]
        most = [1, 4, 16] if len(self.names) == 3 else [1, 8, 32, 64]
        self.tile = {name: rng.choice(most) for name in self.names}
        self.tile["N"] = rng.choice([8, 32, 64])
        self.sizes = {name: rng.randint(0, 3 * extent + 2) for name, extent in self.tile.items()}
        self.parameters = {name: rng.choice([rng.randint(-100, 100)] * 3 + HUGE) for name in "st"}

    def term(self, wide):
        rng, axis = self.rng, self.rng.randrange(len(self.names))
        name = self.names[axis]
        position, number = name.lower(), f"index(x, {axis})"
        choice = rng.choice([position, number, number, name, str(rng.randint(-70, 70)), rng.choice(["s", "t"])])
        small = choice == number or choice.lstrip("-").isdigit()
        return choice if wide or small else f"i32({choice})"

    def side(self, wide):
        text = self.term(wide)
        for _ in range(self.rng.randint(0, 3)):
            text += f" {self.rng.choice('+-')} {self.term(wide)}"
        return text

    def comparison(self):
        """Most are of a position and the number of an element there, as masks are."""
        rng, wide = self.rng, self.rng.random() < 0.85
        left = self.side(wide)
        if rng.random() < 0.7:
            axis = rng.randrange(len(self.names))
            position = self.names[axis].lower()
            left = f"{position if wide else f'i32({position})'} + index(x, {axis})"
        return f"{left} {rng.choice(COMPARISONS)} {self.side(wide)}"

    def text(self):
        rng, names = self.rng, self.names
        mask = f"({self.comparison()})"
        for _ in range(rng.randint(0, 2)):
            mask = f"({mask} {rng.choice(['&&', '||'])} ({self.comparison()}))"
        mask = f"!{mask}" if rng.random() < 0.1 else mask
        where = f"where(seen, x, {rng.choice(['0.0', '-1.0'])})"
        inside = rng.random() < 0.5  # the last dimension is a loop's
        looped = names[:-1] if inside else names
        tiles = ", ".join(f"{n} by {self.tile[n]}" for n in looped)
        of = ", ".join(f"{n.lower()}:+{self.tile[n]}" for n in names)
        out = f"f32[{', '.join(looped)}{', 1' if inside else ''}]"
        to = ", ".join(f"{n.lower()}:+{self.tile[n]}" for n in looped)
        body = [f"let x = X[{of}];", f"let seen = {mask};"]
        if inside:
            shape = ", ".join([*(str(self.tile[n]) for n in looped), "1"])
            body = [f"var total: f32[{shape}] = 0;", f"for n in range(0, N, {self.tile['N']}) {{", *(f"    {b}" for b in body),
                    f"    total += sum({where}, axis = {len(looped)});", "}", f"Y[{to}, :] = total;"]
        else:
            body.append(f"Y[{to}] = {where};")
        lines = "\n".join(f"        {line}" for line in body)
        variables = ", ".join(looped.lower())
        variables = f"({variables})" if len(looped) > 1 else variables
        return (f"kernel k(X: f32[{', '.join(names)}], Y: out {out}, s: i64, t: i64)\n{{\n"
                f"    for {variables} in tiles({tiles}) {{\n{lines}\n    }}\n}}\n")


def draw(seed):
    program = Program(seed)
    return program.text(), program, ARCHS[seed % len(ARCHS)]


def run(tirc, path, program, arch):
    command = [tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--check=0", "X=randint:1:5",
               *(f"{n}={x}" for n, x in {**program.sizes, **program.parameters}.items())]
    return seeds.failure(command)


def wide(tirc, path, arch, stop):
    """How many comparisons of tiles the first variant has in 64 bits after the pass `stop`."""
    command = [tirc, "build", str(path), f"--arch={arch}", f"--stop-after={stop}", "-o", "-"]
    text = seeds.output(command)
    of_64_bits = set(re.findall(r"^ *let (\w+): i64\[", text, re.MULTILINE))
    return sum(left in of_64_bits for left in re.findall(r"= (?:lt|le|gt|ge)\((\w+),", text))


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    failed, before, after = [], 0, 0
    for path, _, arch in seeds.passing(options, draw, lambda *run_of: run(options.tirc, *run_of), failed):
        before += wide(options.tirc, path, arch, "split")
        after += wide(options.tirc, path, arch, "narrow")
    print(f"{options.count - len(failed)} passed, {len(failed)} failed; comparisons in 64 bits: {before}, then {after}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
