# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes each wait, arrival, commit, fence and barrier out of what the pass tensor_memory writes.

Usage: mutants.py TIRC PROGRAM

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


def main():
    tirc, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        whole, path = pathlib.Path(folder, "whole.tir"), pathlib.Path(folder, "without.tir")
        subprocess.run([tirc, "build", "--arch=sm_100a", "--emit=tir", "--stop-after=tensor_memory",
                        "-o", whole, program], check=True)
        lines = whole.read_text(encoding="utf-8").splitlines()
        assert check(tirc, whole).returncode == 0
        places = [i for i, line in enumerate(lines)
                  if re.match(r"\s*(wait|arrive|commit|fence|bar_sync)\(", line)]
        assert len(places) > 10 and any("gemm_tmem" in line for line in lines), "not on tcgen05"
        accepted = 0
        for i in places:
            path.write_text("\n".join(lines[:i] + lines[i + 1:]), encoding="utf-8")
            done = check(tirc, path)
            if done.returncode == 0 or not re.search(r"error\[E041\d\]", done.stderr):
                print(f"without line {i + 1}, {lines[i].strip()}:\n{done.stderr}")
                accepted += 1
    print(f"{len(places)} programs, {accepted} not refused")
    return accepted != 0


sys.exit(main())
