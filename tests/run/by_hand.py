#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that say themselves which warps do what and when, on the emulator.

usage: by_hand.py TIRC FILE.tir

Each file has two kernels, `hand` and `plain`, which compute the same; `plain` is at tile level. For
the sizes of each line `//: M=128 N=64` `hand` runs on small integers, and must give exactly what the
reference interpreter makes of `plain`; unless the line has other inputs (`A=randn`) and a tolerance.
"""

import re
import subprocess
import sys


def main():
    tirc, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        source = file.read()
    params = re.findall(r"(\w+): (out )?\w+\[", re.search(r"kernel plain\((.*?)\)", source,
                                                          re.DOTALL).group(1))
    ok = True
    for line in re.findall(r"^//: (.*)$", source, re.MULTILINE):
        given = line.split()
        names = [word.split("=")[0] for word in given]
        given += [f"{name}=randint:-4:4" for name, out in params if not out and name not in names]
        if "--check" not in names:
            given.append("--check=0")
        command = [tirc, "run", path, "--kernel=hand", "--device=emu", "--arch=sm_90a",
                   "--emu-check=full", "--check-against=:plain", *given]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        if done.returncode:
            print(" ".join(command))
            print(done.stdout + done.stderr)
            ok = False
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
