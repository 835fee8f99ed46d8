#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What sync_check says of a program does not change by parameters that nobody uses.

Usage: unused_tensors.py TIRC [--seed N] [--count N]

Data is unknown to sync_check: it draws answers, by hashes in which the numbers of values are. A tensor of constant size in front
of the parameters renumbers them all, and so draws other answers. A right program that is refused for some answers was
accepted by luck, and so was a wrong one that is accepted for some. Programs are those of roles.py and product_loops.py,
and the files of tests/pass/sync_check. Each kernel has one verdict (refused, unchecked or accepted), whichever fault is found first.
Seed 0 is that of the day.
"""

import pathlib
import random
import re
import sys

import product_loops
import roles
import seeds

FILES = sorted((pathlib.Path(__file__).resolve().parents[1] / "pass" / "sync_check").glob("*.tir"))
KERNEL = re.compile(r"^kernel \w+(?:<[^>]*>)?\((?=(\))?)", re.MULTILINE)
FOUND = re.compile(r"^[^ \n]*?:(\d+):\d+: (error|warning)\[(\w+)\]", re.MULTILINE)
MOST = 3  # tensors


def draw(seed):
    rng = random.Random(seed)
    kind = seed % 4
    if kind == 0:
        text = rng.choice(FILES).read_text()
        return text, rng.choice(re.findall(r"--arch=(sm_\w+)", text) or ["sm_90a"])
    if kind == 1:
        return product_loops.guarded(seed)[0], rng.choice(product_loops.TARGETS)
    text, _, arch = roles.draw(seed)
    return text, arch


def with_unused(text, count):
    tensors = ", ".join(f"Unused{i}: f32[1]" for i in range(count))
    return KERNEL.sub(lambda m: m[0] + tensors + ("" if m[1] else ", "), text)


def verdicts(tirc, path, text, arch):
    """The lines of the kernels that are refused, and of those with something unchecked."""
    path.write_text(text)
    said = seeds.done([tirc, "check", f"--arch={arch}", str(path)]).stderr
    begins = [text.count("\n", 0, m.start()) + 1 for m in KERNEL.finditer(text)]
    return {(max((b for b in begins if b <= int(line)), default=0), kind) for line, kind, code in FOUND.findall(said)
            if kind == "error" or code == "W0004"}


def changed(tirc, path, arch):
    text = path.read_text()
    first = verdicts(tirc, path, text, arch)
    for count in range(1, MOST + 1):
        now = verdicts(tirc, path, with_unused(text, count), arch)
        if now != first:
            return f"{arch}: with {count} unused tensors {sorted(now)}, without {sorted(first)}"
    return None


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, changed))
