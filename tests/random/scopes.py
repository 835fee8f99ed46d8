#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random tile programs, each of whose tiles a group of warps computes by itself.

usage: scopes.py TIRC RANDOM_TILES [--seed=N] [--count=N]

The tiles loop of a program of random_tiles becomes a kernel by hand: a grid, and scopes in which each group
of warps walks tiles of its own: one scope, several one after the other with groups of other sizes, a scope in
a scope, or scopes in roles. On the emulator, with checks for races, it must give what the reference
interpreter makes of the tiles loop, to the accuracy of random_tiles. Without a seed the clock gives one, which is
printed. Programs that a group cannot compute as a CTA does are left out: of roles, of several launches, with
text, stated layouts, a file of their own or atomics on single elements, which each thread would do. The compiler orders what a tiles loop
does to a tensor that it loads and stores, and a kernel by hand does so itself: it gets the barriers of a group.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

import seeds

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
OPTIONS = re.compile(r"(order|persistent|cluster|store_role)\b")
OTHER = re.compile(r"\b(role|scratch|config|ordering|print|assert|own)\b|in S\[|atomic_\w+\(\w+\[[^:\]]*\]")


def parts(text):
    """The text cut at commas outside of brackets."""
    depth, out = 0, [""]
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            out.append("")
        else:
            out[-1] += letter
    return [part.strip() for part in out]


class Scope:
    """Groups of so many warps, of the `count` warps that begin with the first one: a role, or the CTA."""

    def __init__(self, warps, first, count):
        self.warps, self.first, self.groups = warps, first, count // warps

    def group(self):
        """Which of its groups a thread is in."""
        return f"(warpid() - {self.first}) / {self.warps}" if self.first else f"warpid() / {self.warps}"

    def barrier(self, taken):
        """That the threads of a group wait for each other, with named barriers behind those taken."""
        if self.warps == 1:
            return ["warp_sync();"]
        return [f"if {self.group()} == {i} {{ bar_sync(id = {taken + i + 1}, threads = {32 * self.warps}); }}"
                for i in range(self.groups)]


def ordered(lines, tensors, wait):
    """The lines, with such a wait before each that names one of these tensors."""
    out = []
    for line in lines:
        begins = not out or out[-1].rstrip().endswith((";", "{", "}"))
        if begins and any(re.search(rf"\b{name}\[", line) for name in tensors):
            out += wait
        out.append(line)
    return out


def divisors(count):
    return [n for n in (1, 2, 4, 8) if count % n == 0]


def drawn_scopes(choice):
    """What stands around the scopes, as (a line, scopes, a line), and how many warps there are. Scopes of one size, of
    several one after the other, in another scope, and in roles."""
    kind = choice.choice(["one", "one", "two", "inside", "roles"])
    if kind == "roles":
        out, first = [], 0
        for name in ["a", "b", "c"][:choice.choice([2, 2, 3])]:
            count = choice.choice([1, 2, 4])
            first += -first % count
            scopes = [Scope(choice.choice(divisors(count)), first, count) for _ in range(choice.choice([1, 1, 2]))]
            out.append((f"role {name} warps({count}) first({first}) {{", scopes, "}"))
            first += count
        return out, first
    count = choice.choice([2, 4, 4, 8])
    scopes = [Scope(choice.choice(divisors(count)), 0, count) for _ in range(2 if kind == "two" else 1)]
    if kind == "inside":
        return [(f"scope warps({count}) {{", scopes, "}")], count
    return [("", scopes, "")], count


def in_scopes(program, choice):
    """The program by hand, or None."""
    heads = re.findall(r"^    for (.*?) in tiles\((.*)\) \{$", program, re.M)
    if len(heads) != 1 or OTHER.search(program):
        return None
    names = [name.strip() for name in heads[0][0].strip("()").split(",")]
    extents = [part for part in parts(heads[0][1]) if not OPTIONS.match(part)]
    around, warps = drawn_scopes(choice)
    ctas, groups = choice.choice([1, 1, 2]), sum(scope.groups for _, scopes, _ in around for scope in scopes)
    lines = program.split("\n")
    begin = next(i for i, line in enumerate(lines) if " in tiles(" in line)
    end = next(i for i in range(begin, len(lines)) if lines[i] == "    }")
    tensors = [name for name in re.findall(r"(\w+): inout ", program)
               if len(re.findall(rf"\b{name}\[", program)) > 1
               or re.search(rf"^ {{12,}}{name}\[[^:\]]*\] ", program, re.M)]  # every thread stores in every round
    walks, before, taken = [], 0, len(around)  # roles have named barriers of their own
    for opening, scopes, closing in around:
        walks.append(opening)
        for scope in scopes:
            walks.append(f"scope warps({scope.warps}) {{")
            for i, (name, extent) in enumerate(zip(names, extents)):
                size, by = extent.split(" by ") if " by " in extent else (extent, "1")
                first, step = "0", by
                if i == 0:
                    first = f"(i64(cta_id()) * {groups} + {before} + i64({scope.group()})) * {by}"
                    step = f"{groups * ctas} * {by}"
                walks.append(f"for {name} in range({first}, i64({size}), {step}) {{")
            walks += ordered(lines[begin + 1:end], tensors, scope.barrier(taken)) + ["}" * (len(names) + 1)]
            before += scope.groups
            taken += scope.groups if tensors and scope.warps > 1 else 0
        walks.append(closing)
    lines[begin:end + 1] = walks
    threads = "" if "role" in around[0][0] else f" threads({32 * warps})"
    return re.sub(r"kernel k(.*?\))( where.*?)?\n\{",
                  rf"kernel hand\1 grid({ctas}){threads}\2" + "\n{",
                  "\n".join(lines), count=1, flags=re.S)


def check(tirc, generator, seed, folder):
    """Whether the program of the seed gives what it should; None: it is left out."""
    text = subprocess.run([generator, f"--seed={seed}", "--print"], capture_output=True, text=True,
                          check=True).stdout
    program = re.sub(r"^//.*\n", "", text, flags=re.M)
    choice = random.Random(seed)
    hand = in_scopes(program, choice)
    if not hand:
        return None
    path = os.path.join(folder, "scope.tir")
    with open(path, "w", encoding="utf-8") as file:
        plain = program[program.index("kernel k"):].replace("kernel k", "kernel plain", 1)
        file.write(hand + "\n" + plain)
    target = choice.choice(TARGETS)
    for launch in re.findall(r"^// launch \d+:(.*)$", text, re.M)[:2]:
        done = subprocess.run([tirc, "run", path, "--kernel=hand", "--device=emu", f"--arch={target}",
                               "--emu-check=race", f"--schedule=random:{seed}", "--verify",
                               "--check-against=:plain", "--check=0.02", *launch.split()],
                              capture_output=True, text=True, timeout=300)
        if "error[E0301]" in done.stderr: # each group has scratch of its own
            return None
        if done.returncode:
            print(f"seed {seed}, {target},{launch}\n{done.stdout}{done.stderr}{hand}")
            return False
    return True


def main():
    given = seeds.parser(__doc__, "tirc", "generator", count=20).parse_args()
    seed = seeds.first(given)
    with tempfile.TemporaryDirectory() as folder:
        found = [check(given.tirc, given.generator, seed + i, folder) for i in range(given.count)]
    print(f"{found.count(True)} right, {found.count(False)} wrong, {found.count(None)} left out")
    return found.count(False) > 0 or not found.count(True)


if __name__ == "__main__":
    sys.exit(main())
