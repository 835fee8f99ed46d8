#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels whose threads access single elements, and bugs in them: sync_check against the emulator.

Usage: element_races.py TIRC [--seed N] [--count N]

Threads of a CTA, or of two roles, store, load and add to elements of tensors of one and two dimensions and of shared buffers. In
each statement a thread has an element for itself: by its number turned, multiplied or with other bits, by its warp and lane, and
a sum of arguments, sizes and rounds further on. Where the next statement gives it an element that another thread had, a barrier
stands between the two, of the warp if that is enough. Loops have rounds by sizes, arguments and loaded numbers; branches depend on
threads, arguments, rounds and data. Such a program is not refused.

Then it gets one bug: a barrier is dropped, made one of a warp or put into a branch, an index is changed, or a value of a
constant. Some programs are drawn without any order instead. Where the emulator finds a data race for one of several
launches, sync_check has refused the program or said what it leaves unchecked. Seed 0 is that of the day.
"""

import random
import re
import sys

import seeds

EXTENT = 4096  # elements of a tensor
ROWS, COLUMNS = 256, 128
ARGUMENTS = "n: i32, m: i32, K: i64, L: i64"
REFUSED = "error[E04"
ASKS = ["n > 3", "C[1] > 0", "K > 2", "n == m", "L % 3 == 1", "m * 2 < n"]
OF_THREADS = ["tid() < 40", "t % 2 == 0", "laneid() == 3", "warpid() == 0"]
BARRIER = re.compile(r"^(bar_sync\(.*\)|warp_sync\(\));$", re.MULTILINE)
# Elements of threads, T being the last one: an expression, and whether each warp keeps to the same ones.
OF_ONE = [("t", True), ("T - t", False), ("(t ^ 1)", True), ("(t ^ 33)", False), ("3 * t", False), ("65 * t", False), ("2 * t + 1", False),
          ("(32 * i64(warpid()) + 31 - i64(laneid()))", True), ("(t % 32 * 4 + t / 32)", False), ("(t ^ 5)", True)]
OF_FEW = [one for one in OF_ONE if "65" not in one[0]]  # of a shared buffer
OF_TWO = [("i64(warpid()), i64(laneid())", True), ("i64(warpid()), 31 - i64(laneid())", True), ("t, 0", False), ("0, t", False),
          ("i64(laneid()), i64(warpid())", False), ("3 - i64(warpid()), i64(laneid())", False)]
OF_TWO_FEW = [("i64(warpid()), i64(laneid())", True), ("i64(warpid()), 31 - i64(laneid())", True), ("t & 7, t / 8", False), ("t / 16, t & 15", False),
              ("3 - i64(warpid()), i64(laneid())", False)]
ELEMENTS = {"Y": OF_ONE, "Z": OF_TWO, "s": OF_FEW, "q": OF_TWO_FEW}


class Program:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.threads = rng.choice([32, 64, 64, 96, 128])
        self.has_roles = rng.random() < 0.25
        self.places = rng.sample(["Y", "Z", "s", "q"], rng.choice([1, 1, 2]))
        self.only_stored = rng.random() < 0.3
        self.loops = 0

    def element(self, place, variables):
        """An element for each thread, whether each warp keeps to its own, and what it is further on by."""
        rng = self.rng
        how, by_warp = rng.choice(ELEMENTS[place])
        further = rng.choice(["", "", " + i64(n)", " + K", " + 2 * i64(m)", *(f" + {rng.choice([1, 64, 500])} * {v}" for v in variables)])
        further = further if place in "YZ" else ""
        return f"{place}[{how.replace('T', str(self.threads - 1))}{further}]", by_warp, further

    def accesses(self, at, place, variables):
        rng = self.rng
        value = rng.choice(["1", "1", "2", "i32(t)", "X[t]", "acc + 1", "n", "X[0]", "warpid()", *(f"i32({v})" for v in variables)])
        if self.only_stored:
            return f"{at} = {value};"
        return rng.choice([f"{at} = {value};", f"{at} = {value};", f"acc += {at};", f"{at} = {at} + 1;", f"atomic_add({at}, {value});"])

    def block(self, variables, depth):
        """Begins and ends with a barrier where something was accessed: other rounds, and other branches, have other elements."""
        rng, lines, had = self.rng, [], {}
        for _ in range(rng.choice([1, 2, 3, 4])):
            if depth < 2 and rng.random() < 0.25:
                self.loops += 1
                v = f"v{self.loops}"
                bound = rng.choice(["K", "K", "3", "L", "i64(C[0])", f"i64(C[{variables[-1]} & 3])" if variables else "i64(n) % 5"])
                lines += [self.whole, f"for {v} in range(0, {bound}) {{", *self.block([*variables, v], depth + 1), self.whole, "}", self.whole]
                had = {}
                continue
            place = rng.choice(self.places)
            at, by_warp, further = self.element(place, variables)
            last = had.get(place)
            if last and last[0] != at:
                lines.append("warp_sync();" if last[1] and by_warp and last[2] == further else self.whole)
                had = had if lines[-1] == "warp_sync();" else {}
            had[place] = (at, by_warp, further)
            line = self.accesses(at, place, variables)
            if rng.random() < 0.2:
                asks = rng.choice([*ASKS, *OF_THREADS, *(f"{v} % 2 == 0" for v in variables)])
                line = f"if {asks} {{ {line} }}"
            lines.append(line)
        return lines

    def role(self, whole):
        self.whole = whole
        return ["let t = i64(tid());", "var acc: i32 = 0;", whole, *self.block([], 0), whole, *self.block([], 0), "W[t] = acc;"]

    def text(self):
        buffers = {"s": "shared s: i32[512];", "q": "shared q: i32[32, 64];"}
        head = f"kernel races(X: i32[128], C: i32[4], Y: inout i32[YN], Z: inout i32[ZR, ZC], W: out i32[128], {ARGUMENTS}) grid(1)"
        shared = [buffers[p] for p in self.places if p in buffers]
        if not self.has_roles:
            return "\n".join([f"{head} threads({self.threads})", "{", *shared, *self.role("bar_sync();"), "}", ""])
        body = []
        self.threads = 96
        for place in list(self.places):  # a role for each
            self.places = [place]
            first = not body
            body += [f"role {'one' if first else 'two'} warps({1 if first else 2}) {{",
                     *self.role("warp_sync();" if first else "bar_sync(id = 2, threads = 64);"), "}"]
        return "\n".join([head, "{", *shared, *body, "}", ""])


def scope(lines):
    """The counters of the loops that are open behind these lines."""
    open_blocks = []
    for line in lines:
        if line.endswith("{"):
            open_blocks.append(re.match(r"for (v\d+) ", line))
        elif line.startswith("}") and open_blocks:
            open_blocks.pop()
    return [block[1] for block in open_blocks if block]


def without_order(rng, program):
    """Drops most barriers."""
    return BARRIER.sub(lambda found: found[0] if rng.random() < 0.4 else "", program)


def with_a_bug(rng, program):
    """Changes one thing, if there is one to change."""
    lines = program.split("\n")
    barriers = [i for i, line in enumerate(lines) if BARRIER.match(line)]
    accesses = [i for i, line in enumerate(lines) if re.search(r"[YZsq]\[", line) and not re.match("kernel|shared", line)]
    how = rng.random()
    if how < 0.6 and barriers:
        i = rng.choice(barriers)
        inside = scope(lines[:i])
        asks = [*ASKS, *(f"{v} % 4 != 3" for v in inside), *(f"{v} > 0" for v in inside), *(f"C[{v} & 3] != 1" for v in inside)]
        lines[i] = rng.choice(["", "", "warp_sync();", f"if {rng.choice(asks)} {{ {lines[i]} }}"])
    elif accesses:
        i = rng.choice(accesses)
        old = rng.choice([r"\bt\b", r"\bt\b", r"i64\(laneid\(\)\)", r"i64\(warpid\(\)\)", r"\[(?=[^\]]*\])", r"= 1;", r"= 2;", r"i64\([nm]\)"])
        new = {r"\bt\b": ["(t + 1)", "(t / 2)", "(t ^ 2)", "(t + i64(n))", "(t * i64(m))"], r"= 1;": ["= 2;"], r"= 2;": ["= i32(t);"],
               r"\[(?=[^\]]*\])": ["[1 + ", "[i64(n) + ", "[K + "]}.get(old, ["0", "(t & 15)", "i64(m)", "K"])
        lines[i] = re.sub(old, rng.choice(new), lines[i], count=1)
    return "\n".join(lines)


def launch(rng):
    return [f"n={rng.choice([0, 1, 5, 32, 64, -1, -33, rng.randint(-70, 140)])}", f"m={rng.choice([0, 1, 4, 31, rng.randint(-9, 70)])}",
            f"K={rng.choice([0, 1, 2, 3, 5])}", f"L={rng.choice([1, 2, 3, 4])}", f"YN={EXTENT}", f"ZR={ROWS}", f"ZC={COLUMNS}",
            "X=randint:-4:5", f"C=randint:{rng.choice(['0:3', '1:4', '-1:2'])}", "Y=zeros", "Z=zeros"]


def draw(seed):
    right = Program(seed).text()
    rng = random.Random(seed)
    change = without_order if rng.random() < 0.1 else with_a_bug
    wrong = list(dict.fromkeys(change(rng, right) for _ in range(3)))
    return right, wrong, [launch(rng) for _ in range(4)]


def race(tirc, path, launches):
    for i, sizes in enumerate(launches):
        command = [tirc, "run", str(path), "--arch=sm_90a", "--device=emu", "--emu-check=race", f"--schedule=random:{i + 1}", *sizes]
        why = seeds.failure(command)
        if why and "data race" in why:
            return why
    return None


def missed(tirc, path, wrong, launches):
    def check():
        return seeds.done([tirc, "check", str(path), "--arch=sm_90a", "--require=sync"])
    done = check()
    if REFUSED in done.stderr or (done.returncode and "sync: unchecked" not in done.stderr):
        return f"refused: {done.stderr}{race(tirc, path, launches)}"
    for text in wrong:
        path.write_text(text)
        if check().returncode == 0 and (why := race(tirc, path, launches)):
            return f"{text}accepted, but {why}"
    return None


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, missed))
