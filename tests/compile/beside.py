# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tirc says and gives the same on one processor, where sync_check comes before code generation, and on all, where it
is made beside that on a copy: the receipt has the steps that it took, and what is printed has its order.

Usage: beside.py TIRC ARCH FILE...
"""

import os
import subprocess
import sys

# With line information there is one module, whatever the number of processors.
WAYS = (("--emit=ptx", "-g"), ("--emit=ptx", "-g", "--print-after=sync_check"),
        ("--emit=tir", "--stop-after=sync_check"), ("--emit=tir", "--stop-after=turn"))


def build(processors, command):
    done = subprocess.run(command, capture_output=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, processors))
    return done.returncode, done.stdout, done.stderr


def main():
    tirc, arch, *files = sys.argv[1:]
    all_processors = os.sched_getaffinity(0)
    one = {min(all_processors)}
    for file in files:
        for way in WAYS:
            command = [tirc, "build", file, "--arch=" + arch, "--receipt=json", "-o", "-", *way]
            alone, beside = build(one, command), build(all_processors, command)
            if alone[0] != 0:
                sys.exit(f"{' '.join(command)}: {alone[2].decode()}")
            if alone != beside:
                sys.exit(f"{' '.join(command)}: {len(all_processors)} processors do not give what one gives")


main()
