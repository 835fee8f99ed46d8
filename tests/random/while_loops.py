#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random while loops that count, or nearly so, on the emulator against the interpreter.

Usage: while_loops.py TIRC [--seed N] [--count N]

Each program is one kernel of some loops: of all integer types, up and down, with bounds and steps that are constants,
parameters or dimensions, also near the limits of the type and where the counter wraps; the counter, others beside it and a
sum of all rounds are used after the loop. Loops are nested, and end rounds and themselves early. A model in Python draws
again what takes too many rounds. The pass `counted` must make some of them loops with an index, and leave some.
Seed 0 is that of the day. A failing program is printed, with the command that runs it.
"""

import random
import re
import sys

import seeds

TYPES = {name: (int(name[1:]), name[0] == "i") for name in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")}
MOST_ROUNDS = 1500  # of all loops of one at the top
LOOPS = 6


def limits(kind):
    bits, signed = TYPES[kind]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


MOST = (1 << 63) - 1  # that a constant and a launch condition can be


def wrap(kind, x):
    low, high = limits(kind)
    return (x - low) % (high - low + 1) + low


class TooLong(Exception):
    """The loops of a program take more rounds than a test should."""


class Loops:
    """Draws loops, as text of the language and, side by side, as Python that says how many rounds they take."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.tir, self.model, self.params, self.where, self.names = [], [], {}, [], 0

    def put(self, depth, tir, model):
        self.tir.append("    " * (depth + 1) + tir)
        if model is not None:
            self.model.append("    " * depth + model)

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def number(self, kind, low, high):
        """A number of the type in low .. high, near the ends of either more often than not."""
        low, high = max(low, limits(kind)[0]), min(high, limits(kind)[1], MOST)
        if low > high:
            low, high = limits(kind)[0], min(limits(kind)[1], MOST)
        near = self.rng.choice([low, high, max(low, min(high, 0)), self.rng.randint(low, high)])
        return max(low, min(high, near + self.rng.choice([0, 0, 0, self.rng.randint(-3, 3)])))

    def value(self, kind, x, least=None):
        """x as a constant, or as a parameter whose launch condition may say something of it: at least `least`."""
        if x <= MOST and self.rng.random() < 0.6:
            return f"{kind}({x})"
        name = self.fresh("p")
        self.params[name] = (kind, x)
        low, high = limits(kind)
        low = low if least is None else least
        if x <= MOST and self.rng.random() < 0.7:
            room = self.rng.choice([0, 5, 100])
            self.where.append(f"{name} >= {max(low, x - room)} && {name} <= {min(high, MOST, x + room)}")
        if 0 < x <= MOST and self.rng.random() < 0.5:
            for divisor in (64, 16, 3, 2):
                if x % divisor == 0:
                    self.where.append(f"{name} % {divisor} == 0")
                    break
        return name

    def step(self, depth, k, kind, step, down):
        """What a round adds to the counter, in one of the ways to write it."""
        sign = "-" if down else "+"
        op = f"{k} = {k} {sign} {{}};"
        model = f"{k} = wrap('{kind}', {k} {sign} {{}})"
        form = self.rng.choice(["plain", "plain", "plain", "split", "ways", "turned"] * 2 + ["some"])
        if form == "split" and step > 1:
            part = self.rng.randint(1, step - 1)
            for n in (part, step - part):
                self.put(depth, op.format(f"{kind}({n})"), model.format(n))
        elif form in ("ways", "some"):  # some: another step in some rounds
            self.put(depth, "if s % 2 == 0 {", "if s % 2 == 0:")
            self.put(depth + 1, op.format(f"{kind}({step})"), model.format(step))
            self.put(depth, "} else {", "else:")
            last = step if form == "ways" or step >= limits(kind)[1] else step + 1
            self.put(depth + 1, op.format(f"{kind}({last})"), model.format(last))
            self.put(depth, "}", None)
        elif form == "turned" and not down:
            self.put(depth, f"{k} = {self.value(kind, step, 1)} + {k};", model.format(step))
        else:
            self.put(depth, op.format(self.value(kind, step, 1)), model.format(step))

    def condition(self, k, kind, bound, down):
        """The comparison, in the language and in Python."""
        compare = self.rng.choice([">", ">=", ">", "!="] if down else ["<", "<=", "<", "!="])
        if self.rng.random() < 0.1:
            compare = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}[compare]
        offset = self.rng.choice([0, 0, 0, self.rng.randint(-5, 5)])
        if not limits(kind)[0] <= offset <= limits(kind)[1]:
            offset = -offset
        counter, of_model = k, k
        if offset:
            counter, of_model = f"{k} + {kind}({offset})", f"wrap('{kind}', {k} + {offset})"
        wide = kind
        if TYPES[kind][0] < 64 and self.rng.random() < 0.3:
            wide = "i64"
            counter = f"i64({counter})"
        end = self.value(wide, bound)
        model = f"{of_model} {compare} {bound}"
        if self.rng.random() < 0.2:
            turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}[compare]
            return f"{end} {turned} {counter}", model
        return f"{counter} {compare} {end}", model

    def loop(self, depth, outer):
        rng = self.rng
        kind = rng.choice(list(TYPES))
        k, j, down = self.fresh("k"), self.fresh("j"), rng.random() < 0.4
        step = self.number(kind, 1, rng.choice([1, 4, 64, limits(kind)[1]]))
        step = max(1, min(step, limits(kind)[1]))
        begin = self.number(kind, -20, 20) if rng.random() < 0.8 else self.number(kind, *limits(kind))
        length = step * rng.randint(0, 6) + rng.choice([0, 0, 0, rng.randint(-3, 3)])
        bound = wrap(kind, begin - length if down else begin + length)
        text = self.value(kind, begin)
        if outer and outer[1] == kind and rng.random() < 0.4:
            text, begin = outer[0], outer[0]
        self.put(depth, f"var {k}: {kind} = {text};", f"{k} = {begin}")
        beside = rng.choice([kind, "i64", "i32"])
        other = step * rng.choice([0, 1, 2, -1]) or rng.randint(1, 9)
        other = other if limits(beside)[0] <= other <= limits(beside)[1] else 1
        first = self.value(beside, self.number(beside, -100, 100))
        at_first = self.params[first][1] if first in self.params else int(re.findall(r"\((-?\d+)\)", first)[0])
        self.put(depth, f"var {j}: {beside} = {first};", f"{j} = {at_first}")
        condition, model = self.condition(k, kind, bound, down)
        self.put(depth, f"while {condition} {{", f"while {model}:")
        self.put(depth + 1, f"s = s * 5 + i64({k}) + i64({j}) * 3;",
                 f"count(); s = wrap('i64', s * 5 + wrap('i64', {k}) + wrap('i64', {j}) * 3)")
        if rng.random() < 0.08:
            self.put(depth + 1, "if s % 7 == 3 { break; }", "if rem(s, 7) == 3: break")
        is_first = rng.random() < 0.3
        if is_first:
            self.step(depth + 1, k, kind, step, down)
            if rng.random() < 0.5:
                self.put(depth + 1, "if s % 3 == 1 { continue; }", "if rem(s, 3) == 1: continue")
            self.put(depth + 1, f"s = s - i64({k}) * 7;", f"s = wrap('i64', s - wrap('i64', {k}) * 7)")
        if depth < 2 and rng.random() < 0.4:
            self.loop(depth + 1, (k, kind))
        self.put(depth + 1, f"{j} = {j} + {beside}({other});", f"{j} = wrap('{beside}', {j} + {other})")
        if not is_first:
            self.step(depth + 1, k, kind, step, down)
        self.put(depth, "}", None)
        self.put(depth, f"s = s * 11 + i64({k});", f"s = wrap('i64', s * 11 + wrap('i64', {k}))")
        if rng.random() < 0.7:
            self.put(depth, f"s = s - i64({j});", f"s = wrap('i64', s - wrap('i64', {j}))")

    def ends(self, lines):
        """Do the loops end soon?"""
        rounds = 0

        def count():
            nonlocal rounds
            rounds += 1
            if rounds > MOST_ROUNDS:
                raise TooLong

        def rem(a, b):
            return a - b * int(a / b) if abs(a) < 1 << 52 else (abs(a) % b) * (1 if a > 0 else -1)

        model = {"s": 0, "wrap": wrap, "count": count, "rem": rem}
        try:
            exec("\n".join(lines), model)  # pylint: disable=exec-used
        except TooLong:
            return False
        return True


def program(seed):
    """A kernel, and what it is launched with."""
    drawn, number = Loops(seed), 0
    while number < LOOPS:
        kept = (len(drawn.tir), len(drawn.model), dict(drawn.params), list(drawn.where))
        drawn.put(0, "s = s % 1000;", "s = rem(s, 1000)")
        drawn.loop(0, None)
        drawn.put(0, f"Y[{number}] = s;", None)
        if drawn.ends(drawn.model):
            number += 1
        else:
            drawn.tir, drawn.model = drawn.tir[:kept[0]], drawn.model[:kept[1]]
            drawn.params, drawn.where = kept[2], kept[3]
    params = "".join(f", {name}: {kind}" for name, (kind, _) in drawn.params.items())
    where = " where " + " && ".join(drawn.where) if drawn.where else ""
    body = "\n".join(drawn.tir)
    text = (f"kernel k(Y: out i64[{LOOPS}]{params}) grid(1) threads(32){where}\n{{\n    var s: i64 = 0;\n{body}\n}}\n")
    return text, [f"{name}={x}" for name, (_, x) in drawn.params.items()]


def failure(tirc, path, given):
    """What running the program says, if it is not what the interpreter gives."""
    command = [tirc, "run", str(path), "--arch=sm_90a", "--device=emu", "--emu-check=full", "--check=0", *given]
    return seeds.failure(command)


def loops_of(tirc, path):
    """How many loops of the program have an index, and how many have a condition."""
    command = [tirc, "build", str(path), "--arch=sm_90a", "--stop-after=counted", "--emit=tir", "-o", "-"]
    text = seeds.output(command)
    return len(re.findall(r"\bfor ", text)), len(re.findall(r"\bwhile ", text))


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    failed, counted, left = [], 0, 0
    for path, _ in seeds.passing(options, program, lambda *run: failure(options.tirc, *run), failed):
        with_index, with_condition = loops_of(options.tirc, path)
        counted += with_index
        left += with_condition
    print(f"{options.count - len(failed)} passed, {len(failed)} failed; {counted} loops with an index, {left} with a condition")
    return bool(failed) or counted < options.count or left < options.count


if __name__ == "__main__":
    sys.exit(main())
