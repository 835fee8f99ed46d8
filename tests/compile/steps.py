#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of several steps compute on the emulator what the interpreter says they mean.

usage: steps.py TIRC COUNT [SEED]

Tensors, scalars and dimensions come in any order; a dimension is stated by several tensors, and used
in steps that do not touch them; conditions relate those of different steps; scratch tensors have
sizes of their own. Each program is run with --check, for a random target.
"""

import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
DIMS = ["N", "M", "H", "J", "Q", "W"]


class Tensor:
    def __init__(self, name, direction, element, shape):
        self.name, self.direction, self.element, self.shape = name, direction, element, shape

    def declared(self):
        direction = "" if self.direction == "in" else self.direction + " "
        return f"{self.name}: {direction}{self.element}[{', '.join(self.shape)}]"


class Program:
    def __init__(self, rng):
        self.rng = rng
        self.dims = rng.sample(DIMS, rng.randint(1, 4))
        self.sizes = {d: rng.randint(1, 70) for d in self.dims}
        self.scalars = [s for s in ("s", "r") if rng.random() < 0.4]
        self.tensors = []
        self.scratch = []
        self.lines = []
        self.make_tensors()
        self.make_conditions()
        self.make_scratch()
        self.make_steps()

    def make_tensors(self):
        rng = self.rng
        for i in range(rng.randint(2, 5)):
            direction = rng.choice(["in", "in", "inout", "out"])
            element = rng.choice(["f32", "f32", "i32", "u8"] if direction == "in" else ["f32", "i32"])
            shape = [self.extent() for _ in range(rng.choice([1, 1, 1, 2]))]
            self.tensors.append(Tensor(f"T{i}", direction, element, shape))
        self.tensors.append(Tensor("Y", "out", "f32", [rng.choice(self.dims)]))
        for d in self.dims:
            if not any(d in t.shape for t in self.tensors):
                self.tensors.append(Tensor(f"X{d}", "in", "f32", [d]))

    def extent(self):
        return self.rng.choice(self.dims) if self.rng.random() < 0.85 else str(self.rng.randint(1, 9))

    def make_conditions(self):
        rng, self.conditions = self.rng, []
        if len(self.dims) > 1 and rng.random() < 0.3:
            a, b = rng.sample(self.dims, 2)
            self.sizes[a] = self.sizes[b]
            self.conditions.append(f"{a} == {b}")
        for d in self.dims:
            if rng.random() < 0.2:
                self.conditions.append(rng.choice([f"{d} < 1000", f"{d} + {rng.choice(self.dims)} > 1"]))

    def make_scratch(self):
        rng = self.rng
        for i in range(rng.randint(0, 2)):
            size = rng.choice([rng.choice(self.dims), str(rng.randint(1, 40)),
                               f"{rng.choice(self.dims)} + {rng.choice(self.dims)}",
                               f"2 * {rng.choice(self.dims)}"])
            self.scratch.append(Tensor(rng.choice(["S", "T0_0", "S_0"]) + "_" * i, "scratch", "f32", [size]))

    def make_steps(self):
        # What may be read: all that is given, and what a step before wrote.
        known = [t for t in self.tensors if t.direction in ("in", "inout")]
        targets = self.scratch + [t for t in self.tensors if t.direction != "in"]
        self.rng.shuffle(targets)
        targets.sort(key=lambda t: t.direction != "scratch")  # so that others can read it
        groups = []
        for target in targets:
            if groups and self.rng.random() < 0.15 and groups[-1][-1].shape == target.shape:
                groups[-1].append(target)
            else:
                groups.append([target])
        for group in groups:
            self.step(group, [t for t in known if t not in group])
            known += [t for t in group if t not in known and t.direction != "out"]
        if len(groups) < 2:
            self.step([targets[0]], [t for t in known if t is not targets[0]])

    def step(self, group, known):
        rng = self.rng
        shape = group[0].shape
        by = [rng.choice([1, 8, 16, 64]) for _ in shape]
        names = ["p", "q"][: len(shape)]
        head = ", ".join(e if b == 1 else f"{e} by {b}" for e, b in zip(shape, by))
        variables = names[0] if len(names) == 1 else f"({', '.join(names)})"
        self.lines.append(f"    for {variables} in tiles({head}) {{")
        place = ", ".join(n if b == 1 else f"{n}:+{b}" for n, b in zip(names, by))
        for target in group:
            value = " + ".join([str(rng.randint(0, 9))] +
                               [self.term(known, shape, place) for _ in range(rng.randint(0, 4))])
            value = f"f32({value})" if target.element == "f32" else f"i32({value})"
            if target.direction == "inout" and rng.random() < 0.5:
                self.lines.append(f"        {target.name}[{place}] = {target.name}[{place}] + {value};")
            elif target.direction == "inout" and rng.random() < 0.5:
                zeros = ", ".join("0" for _ in shape)
                self.lines.append(f"        atomic_add({target.name}[{zeros}], {rng.randint(1, 9)});")
            else:
                self.lines.append(f"        {target.name}[{place}] = {value};")
        self.lines.append("    }")

    # A number, always a small one.
    def term(self, known, shape, place):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.35 or not known:
            return f"f32({rng.choice(self.dims)}) * {rng.randint(1, 9)}"
        if kind < 0.5 and self.scalars:
            return f"f32({rng.choice(self.scalars)})"
        t = rng.choice(known)
        if t.shape == shape and rng.random() < 0.7:
            return f"f32({t.name}[{place}])"
        return f"f32({t.name}[{', '.join('0' for _ in t.shape)}])"

    def text(self):
        params = [t.declared() for t in self.tensors] + [f"{s}: i32" for s in self.scalars]
        self.rng.shuffle(params)
        clauses = "".join(f" where {c}" for c in self.conditions)
        scratch = [f"    scratch {t.name}: {t.element}[{t.shape[0]}];" for t in self.scratch]
        return "\n".join([f"kernel k({', '.join(params)}){clauses}", "{"] + scratch + self.lines + ["}", ""])

    def arguments(self):
        given = [f"{d}={size}" for d, size in self.sizes.items()]
        given += [f"{s}={self.rng.randint(0, 9)}" for s in self.scalars]
        return given + [f"{t.name}=randint:0:9" for t in self.tensors if t.direction != "out"]


def run(tirc, folder, seed):
    rng = random.Random(seed)
    program = Program(rng)
    path = os.path.join(folder, f"{seed}.tir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.text())
    command = [tirc, "run", path, "--check", "--device=emu", "--verify", "--emu-check=full",
               f"--arch={rng.choice(ARCHS)}"] + program.arguments()
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode == 0:
        return ""
    return f"{' '.join(command)}\n{program.text()}\n{done.stdout[-1500:]}{done.stderr[-1500:]}\n"


def main():
    tirc, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**9)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [w for w in pool.map(lambda i: run(tirc, folder, seed + i), range(count)) if w]
    print("\n".join(wrong[:3]))
    print(f"{len(wrong)} of {count} programs are wrong")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
