# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes each wait, arrival, commit, fence and barrier out of what the pass tensor_memory writes, and changes
each number of arrivals and bytes, and each CTA that is told.

Usage: mutants.py TIRC PROGRAM...

sync_check must refuse every one of these programs, and accept the whole.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def check(tirc, path):
    return subprocess.run([tirc, "check", "--arch=sm_100a", path], capture_output=True, text=True,
                          timeout=100, check=False)


# What a line has, and what it has not to have.
CHANGES = [(r"arrivals = (\d+)", lambda n: [n - 1, n + 1]), (r"bytes = (\d+)", lambda n: [n // 2, 2 * n]),
           (r"ctas = i32\((\d)\)", lambda n: [1, 2])]


def mutants(lines):
    """The programs, each with the number of the line that differs, and that line."""
    for i, line in enumerate(lines):
        changed = [re.sub(r", cta = i32\(0\)", "", line)]
        if re.match(r"\s*(wait|arrive|commit|commit_group|wait_group|fence|bar_sync|cluster_arrive|cluster_wait)\(", line):
            changed.append("")
        for pattern, others in CHANGES:
            for found in re.finditer(pattern, line):
                changed += [line[:found.start(1)] + str(n) + line[found.end(1):]
                            for n in others(int(found[1])) if n]
        for new in changed:
            if new != line:
                yield i, new, lines[:i] + [new] + lines[i + 1:]


def accepted(tirc, program, folder):
    """How many programs with another line are accepted, and how many there are."""
    whole, path = pathlib.Path(folder, "whole.tir"), pathlib.Path(folder, "without.tir")
    subprocess.run([tirc, "build", "--arch=sm_100a", "--emit=tir", "--stop-after=tensor_memory",
                    "-o", whole, program], check=True)
    lines = whole.read_text(encoding="utf-8").splitlines()
    assert check(tirc, whole).returncode == 0, program
    places = list(mutants(lines))
    assert len(places) > 10 and any("gemm_tmem" in line for line in lines), "not on tcgen05"
    count = 0
    for i, new, text in places:
        path.write_text("\n".join(text), encoding="utf-8")
        done = check(tirc, path)
        if done.returncode == 0 or not re.search(r"error\[E041\d\]", done.stderr):
            print(f"{program} with line {i + 1}, {lines[i].strip()}, as {new.strip()}:\n{done.stderr}")
            count += 1
    return count, len(places)


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for program in sys.argv[2:]:
            count, of = accepted(sys.argv[1], program, folder)
            print(f"{program}: {of} programs, {count} not refused")
            failed += count
    return failed != 0


sys.exit(main())
