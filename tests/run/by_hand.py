#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that say themselves which warps do what and when, on the emulator.

usage: by_hand.py TIRC FILE.tir

Each file has two kernels, `hand` and `plain`, which compute the same; `plain` leaves everything to
the compiler. For the sizes of each line `//: M=128 N=64` both run on the same inputs, small
integers, and must give the same bytes.
"""

import os
import re
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode:
        print(" ".join(command))
        print(done.stdout + done.stderr)
    return done.returncode == 0


def main():
    tirc, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        source = file.read()
    params = re.search(r"kernel plain\((.*?)\)", source, re.DOTALL).group(1)
    inputs = [f"{name}=randint:-4:4" for name in re.findall(r"(\w+): \w+\[", params)]
    outputs = re.findall(r"(\w+): (?:out|inout) ", params)
    ok = True
    for sizes in re.findall(r"^//: (.*)$", source, re.MULTILINE):
        with tempfile.TemporaryDirectory() as folder:
            results = {}
            for kernel in ("hand", "plain"):
                saved = [f"{name}=@{os.path.join(folder, kernel + name)}.npy" for name in outputs]
                given = [i for i in inputs if i.split("=")[0] not in outputs]
                if not run([tirc, "run", path, f"--kernel={kernel}", "--device=emu",
                            "--arch=sm_90a", "--emu-check=full", *given, *sizes.split(), *saved]):
                    return 1
                results[kernel] = []
                for name in outputs:
                    with open(os.path.join(folder, f"{kernel}{name}.npy"), "rb") as file:
                        results[kernel].append(file.read())
            if results["hand"] != results["plain"]:
                print(f"{path}: {sizes}: the kernels differ")
                ok = False
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
