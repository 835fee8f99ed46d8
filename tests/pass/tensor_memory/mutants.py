# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes each wait, arrival, commit, fence and barrier out of what the pass tensor_memory writes.

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


def accepted(tirc, program, folder):
    """How many programs that lack a line are accepted, and how many there are."""
    whole, path = pathlib.Path(folder, "whole.tir"), pathlib.Path(folder, "without.tir")
    subprocess.run([tirc, "build", "--arch=sm_100a", "--emit=tir", "--stop-after=tensor_memory",
                    "-o", whole, program], check=True)
    lines = whole.read_text(encoding="utf-8").splitlines()
    assert check(tirc, whole).returncode == 0, program
    places = [i for i, line in enumerate(lines)
              if re.match(r"\s*(wait|arrive|commit|fence|bar_sync)\(", line)]
    assert len(places) > 10 and any("gemm_tmem" in line for line in lines), "not on tcgen05"
    count = 0
    for i in places:
        path.write_text("\n".join(lines[:i] + lines[i + 1:]), encoding="utf-8")
        done = check(tirc, path)
        if done.returncode == 0 or not re.search(r"error\[E041\d\]", done.stderr):
            print(f"{program} without line {i + 1}, {lines[i].strip()}:\n{done.stderr}")
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
