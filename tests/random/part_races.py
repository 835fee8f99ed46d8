#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random steps by elements, tiles and copies on parts of shared buffers and tensors, with and without what orders them:
sync_check against the emulator.

Usage: part_races.py TIRC [--seed N] [--count N]

A program is of one CTA or of a cluster. Its steps store or load a part, each in its own way; rounds, an argument, the rank of the
CTA or the number of a warp say where the part is, and branches on these and on data say who takes the step. Behind each step all
threads meet: such a program is accepted, with nothing left unchecked but what data decides. One to six of these barriers
are then dropped, moved, or left to a branch, or a step gets another part. Where the emulator finds a race or a hang under
some schedule, sync_check has refused the program or said what it leaves unchecked. Seed 0 is that of the day.
"""

import random
import re
import sys

import handmade_races
import seeds

MUTANTS, ROWS, MOST = 8, 12, 4


class Program:
    """Lines, each a statement or a barrier; `None` where all threads meet."""

    def __init__(self, rng):
        self.rng = rng
        self.ctas = rng.choice([1, 1, 2, 4])
        self.threads = rng.choice([32, 64, 128])
        self.rounds = rng.choice([0, 0, 2, 3, 5])
        self.count = 0
        self.meet = "cluster_sync();" if self.ctas > 1 else "bar_sync();"

    def row(self, height, to=""):
        """Where a part of so many rows begins: below ROWS - height for all arguments and rounds. Whether CTAs are in order in a tensor,
        arguments may not decide."""
        rng = self.rng
        most = ROWS - height
        ways = [str(rng.randrange(most + 1)), str(rng.randrange(0, most + 1, height)), f"u + {rng.randrange(most - MOST + 1)}", f"(u * 3) % {most + 1}"]
        if self.rounds:
            ways += [f"r + {rng.randrange(max(most - self.rounds, 0) + 1)}", f"(r + u) % {min(most + 1, 16)}", f"r % 2 * {min(height, most)}"]
        if self.ctas > 1:
            ways += [f"me * {rng.choice([1, height])} % {most + 1}", f"(me + 1) % {self.ctas} + {rng.randrange(max(most - 3, 1))}"] * 2
        return rng.choice([way for way in ways if not (self.ctas > 1 and to == "P" and "u" in way)])

    def place(self):
        """A buffer, whether it is on the chip, and how its parts are named."""
        rng = self.rng
        names = ["s", "s", "t", "P", "P"]
        name = rng.choice(names)
        if name == "s" and self.ctas > 1 and rng.random() < 0.4:
            return f"remote(s, {rng.choice(['0', f'(me + 1) % {self.ctas}', f'me ^ 1'])})", True
        return name, name != "P"

    def column(self):
        """A permutation of the threads of a warp, or of 32 others."""
        rng = self.rng
        return rng.choice(["laneid()", "31 - laneid()", f"(laneid() + {rng.randrange(1, 32)}) % 32", f"laneid() ^ {1 << rng.randrange(5)}"])

    def statement(self):
        """One that accesses a part, on one line, or several that belong together."""
        rng = self.rng
        to, on_chip = self.place()
        height, half = rng.choice([1, 4, 8]), rng.choice([0, 0, 0, 16])
        width = 16 if half or rng.random() < 0.3 else 32
        self.count += 1
        kind = rng.choice(["element", "element", "load", "load", "tile", "tile load", "copy"])
        if "remote" in to and kind in ("tile load", "copy", "tile"):
            kind = "element"
        if kind == "element":  # each warp has a row, or one of them does it
            if rng.random() < 0.5:
                return [f"if warpid() == {rng.randrange(self.threads // 32)} {{ {to}[{self.row(1, to)}, {self.column()}] = X[{self.count}, laneid()]; }}"]
            return [f"{to}[{self.row(4, to)} + warpid(), {self.column()}] = X[{self.count} + warpid(), laneid()];"]
        if kind == "load":
            return [f"sum += {to}[{self.row(4, to)} + {rng.choice(['0', 'warpid()', '3 - warpid()'])}, {self.column()}];"]
        part = f"{to}[{self.row(height, to)}:+{height}, {half}:+{width}]"
        if kind == "tile":
            value = f"X[{self.count}:+{height}, 0:+{width}]{rng.choice(['', ' * 2.0'])}"
            return [f"store({part}, {value});" if on_chip else f"{part} = {value};"]
        if kind == "copy" and on_chip:
            return [f"copy_async({part}, X[{self.count}:+{height}, 0:+{width}]);", "commit_group();", "wait_group(0);"]
        value = f"load({part})" if on_chip else part
        return [f"Q[{self.count * 8} + {'0' if self.ctas == 1 else '400 * me'}:+{height}, 0:+{width}] = {value} + 1.0;"]

    def step(self):
        rng = self.rng
        lines = self.statement()
        if self.ctas > 1 and re.search(r"(P|remote\(s, 0\))\[[^]]*\] =", lines[0]):  # one CTA alone
            lines = [f"if me == {rng.randrange(self.ctas)} {{", *(f"    {line}" for line in lines), "}"]
        elif rng.random() < 0.25:
            free = self.ctas == 1 or "P[" not in lines[0]
            ways = [*(["u > 1", "u == 2", "u % 2 == 0", "C[1] > 0"] if free else ["me < 3"]), *(["r != 1", "r > 0"] if self.rounds else []), *(["me == 0", "me > 0"] if self.ctas > 1 else [])]
            lines = [f"if {rng.choice(ways)} {{", *(f"    {line}" for line in lines), "}"]
        return [*lines, self.meet]

    def steps(self, count):
        return [line for _ in range(count) for line in self.step()]

    def lines(self):
        rng = self.rng
        body = self.steps(rng.randrange(1, 4))
        if self.rounds:
            rounds, self.rounds = self.rounds, 0
            before = self.steps(rng.randrange(0, 2))
            self.rounds = rounds
            bound = rng.choice([str(rounds), f"where(u > 9, i32(1), i32({rounds}))"]) if self.ctas == 1 else str(rounds)
            inside = [f"for r in range(0, i32({bound})) {{", *(f"    {line}" for line in self.steps(rng.randrange(2, 5))), "}"]
            self.rounds = 0
            body = [*before, *inside, *self.steps(rng.randrange(1, 3))]
        return [f"shared s: f32[{ROWS}, 32];", f"shared t: f32[{ROWS}, 32];", *(["let me = cta_rank();"] if self.ctas > 1 else []), "var sum: f32 = 0;",
                f"store(s, X[0:+{ROWS}, 0:+32]);", f"store(t, X[0:+{ROWS}, 0:+32]);", self.meet, *body,
                f"Y[{'0' if self.ctas == 1 else 'me'}, tid()] = sum;"]


def text_of(program, lines):
    cluster = f" cluster({program.ctas})" if program.ctas > 1 else ""
    body = "\n".join(f"    {line}" for line in lines)
    return (f"kernel k(X: f32[64, 32], C: i32[4], P: inout f32[{ROWS}, 32], Q: inout f32[1700, 32], Y: out f32[{program.ctas}, {program.threads}], u: i32)\n"
            f"    grid({program.ctas}) threads({program.threads}){cluster} where u >= 0 && u <= {MOST}\n{{\n{body}\n}}\n")


def wrong(rng, program, lines):
    """One to six changes."""
    for _ in range(rng.choice([1, 2, 3, 4, 6])):
        meets = [i for i, line in enumerate(lines) if line.strip() == program.meet and i > 7]
        if not meets:
            return lines
        at = rng.choice(meets)
        indent = lines[at][:len(lines[at]) - len(lines[at].lstrip())]
        way = rng.choice(["drop", "drop", "drop", "guard", "weak", "move", "part", "wait"])
        if way == "drop":
            lines = lines[:at] + lines[at + 1:]
        elif way == "guard":
            inside = indent and any(re.match(r"\s*for r in", line) for line in lines[:at])
            lines = lines[:at] + [f"{indent}if {rng.choice(['u != 3', 'u > 0', 'C[2] > 0', *(['r != 1', 'r < 2'] if inside else [])])} {{ {program.meet} }}"] + lines[at + 1:]
        elif way == "weak":
            lines = lines[:at] + [indent + ("bar_sync();" if program.ctas > 1 else "warp_sync();")] + lines[at + 1:]
        elif way == "move" and at + 1 < len(lines):
            lines = lines[:at] + [lines[at + 1], lines[at]] + lines[at + 2:] if lines[at + 1].strip().endswith(";") else lines
        elif way == "part":
            found = [(i, m) for i, line in enumerate(lines) if i > 7 for m in re.finditer(r"(?<=[a-z]\[)(\d+)(?=:\+(4|8), )", line)]
            if found:
                i, m = rng.choice(found)
                lines = lines[:i] + [lines[i][:m.start()] + str(rng.randrange(ROWS - 7)) + lines[i][m.end():]] + lines[i + 1:]
        elif way == "wait":
            lines = [line.replace("wait_group(0)", "wait_group(1)") if rng.random() < 0.5 else line for line in lines]
    return lines


def draw(seed):
    rng = random.Random(seed)
    program = Program(rng)
    lines = program.lines()
    given = [[f"u={u}"] for u in rng.sample(range(MOST + 1), 3)]
    mutants = [(text_of(program, wrong(rng, program, lines)), given) for _ in range(MUTANTS)]
    made = handmade_races.kernel("part_races", "", "", [], ["P=zeros", "Q=zeros", "C=randint:0:2"])
    return text_of(program, lines), made, mutants, given


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    failed = []
    passed = sum(1 for _ in seeds.passing(options, draw, lambda *of: handmade_races.missed(options.tirc, *of), failed))
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
