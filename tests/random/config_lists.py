#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which configurations a kernel takes of lists that are drawn, held against the rules of docs/language.md.

usage: config_lists.py TIRC LIBTIRRT [--seed=N] [--count=N]

Lists stand in each other, in any order, in the file and in a module. Kernels have some of the metas that they bind, clauses of
their own between lists, and some metas are given. The rules stand here a second time: what the artifact says that the
configurations are, and their order, must follow from them, and a list of which nothing is left must be refused. The formatter
must not change the meaning of the text. Seed 0 is that of the day.
"""

import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import choose_configs  # pylint: disable=wrong-import-position
import seeds  # pylint: disable=wrong-import-position

VALUES = {"B": ["32", "64", "128"], "C": ["1", "2"], "S": ["true", "false"], "T": ["f16", "f32"], "F": ["0.5", "1.5"]}
TARGETS = {"sm_90a": False, "sm_100a": True}  # whether it has tcgen05


def drawn_config(rng, metas):
    """Its metas, and whether it needs tcgen05."""
    names = rng.sample(metas, rng.randint(1, min(2, len(metas))))
    return {name: rng.choice(VALUES[name]) for name in names}, rng.random() < 0.15


class Program:
    def __init__(self, rng):
        self.metas = ["B", *(name for name in ("C", "S", "T", "F") if rng.random() < 0.75)]
        self.defaults = {name: rng.choice(VALUES[name]) for name in self.metas}
        self.given = {name: rng.choice(VALUES[name]) for name in self.metas if rng.random() < 0.15}
        self.arch = rng.choice(list(TARGETS))
        count = rng.randint(1, 5)
        # A list has configurations, and names of lists behind it. Those from `own` on are the module's.
        self.own = rng.randint(0, count)
        self.lists = [[drawn_config(rng, list(VALUES)) if i + 1 == count or rng.random() < 0.75 else rng.randint(i + 1, count - 1)
                       for _ in range(rng.randint(1, 6))] for i in range(count)]
        self.clauses = [rng.randint(0, count - 1) if rng.random() < 0.7 else drawn_config(rng, self.metas)
                        for _ in range(rng.randint(1, 3))]
        self.order = rng.sample(range(count), count)

    def entry(self, entry, in_module):
        if isinstance(entry, int):
            return f"config {'m.' if entry >= self.own and not in_module else ''}l{entry}"
        config, needs = entry
        return f"config({', '.join(f'{n} = {v}' for n, v in config.items())}{', needs = tcgen05' if needs else ''})"

    def texts(self):
        """Of the file and of the module."""
        texts = ['import "m.tir" as m;\n', ""]
        for i in self.order:
            in_module = i >= self.own
            texts[in_module] += f"configs l{i} {{ {' '.join(self.entry(e, in_module) for e in self.lists[i])} }}\n"
        metas = ", ".join(f"{name} = {self.defaults[name]}" for name in self.metas)
        clauses = "\n    ".join(self.entry(clause, False) for clause in self.clauses)
        texts[0] += (f"kernel k<{metas}>(X: f32[N], Y: out f32[N])\n    {clauses}\n"
                     "{\n    for n in tiles(N by B) { Y[n:+B] = X[n:+B]; }\n}\n")
        return texts

    def expanded(self, i):
        for entry in self.lists[i]:
            if isinstance(entry, int):
                yield from self.expanded(entry)
            else:
                yield entry

    def expected(self):
        """What the configurations bind, in their order; None: a list is refused."""
        seen, kept = set(), []
        for clause in self.clauses:
            of_clause = [clause] if not isinstance(clause, int) else [
                (config, needs) for config, needs in self.expanded(clause) if set(config) <= set(self.metas)]
            if not of_clause:
                return None
            for config, needs in of_clause:
                values = tuple({**self.defaults, **config, **self.given}.items())
                agrees = all(config.get(name, value) == value for name, value in self.given.items())
                if agrees and values not in seen and (TARGETS[self.arch] or not needs):
                    seen.add(values)
                    kept.append(config)
        return kept


def bound(text):
    """By "B=64, F=0.5"."""
    return dict(word.split("=") for word in text.split(", "))


def check(o, runtime, folder, program):
    source, artifact = folder / "k.tir", folder / "k.tira"
    for path, text in zip((source, folder / "m.tir"), program.texts()):
        path.write_text(text)
    expected = program.expected()
    for again in range(2):
        build = [o.tirc, "build", source, f"--arch={program.arch}", "-o", artifact,
                 *(word for item in program.given.items() for word in ("-D", "=".join(item)))]
        done = subprocess.run(build, capture_output=True, text=True, timeout=100, check=False)
        if expected is None:
            assert done.returncode and "each binds a meta that it does not have" in done.stderr, done.stderr
        else:
            assert not done.returncode, done.stderr
            kernel = runtime.describe(artifact).kernels[0]
            found = [bound(text.text()) for text in kernel.configs[:kernel.config_count]]
            assert found == expected, (found, expected)
        if not again:
            subprocess.run([o.tirc, "fmt", source, folder / "m.tir"], timeout=100, check=True)


def main():
    o = seeds.parser(__doc__, "tirc", "runtime", count=60).parse_args()
    seed, runtime = seeds.first(o), choose_configs.Runtime(o.runtime)
    refused = kept = 0
    with tempfile.TemporaryDirectory() as name:
        for i in range(seed, seed + o.count):
            program = Program(random.Random(f"lists {i}"))
            try:
                check(o, runtime, pathlib.Path(name), program)
            except AssertionError:
                print(f"seed {i}, {program.arch}, given {program.given}\n" + "// m.tir\n".join(program.texts()), flush=True)
                raise
            expected = program.expected()
            refused, kept = refused + (expected is None), kept + len(expected or [])
    print(f"{o.count} programs, {refused} with a list that is refused, {kept} configurations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
