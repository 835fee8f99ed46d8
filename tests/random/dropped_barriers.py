#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random tile programs that lack one of the barriers that the compiler puts in: sync_check against the emulator.

Usage: dropped_barriers.py TIRC [--seed N] [--count N]

The programs are those of memory_order.py after the pass `turn`, each as often as it has barriers. Where the emulator finds
a data race, sync_check has refused the program or said what it leaves unchecked. Seed 0 is that of the day.
"""

import re
import subprocess
import sys

import memory_order
import seeds

BARRIER = re.compile(r" *bar_sync\(.*\);\n")


def is_accepted(tirc, path, arch):
    done = subprocess.run([tirc, "check", str(path), f"--arch={arch}", "--require=sync"], capture_output=True, text=True,
                          timeout=seeds.SECONDS, check=False)
    return done.returncode == 0


def race(tirc, path, sizes, arch, schedule):
    why = seeds.failure([tirc, "run", str(path), f"--arch={arch}", "--device=emu", "--emu-check=race", f"--schedule={schedule}", *sizes])
    return why if why and "data race" in why else None


def missed(tirc, path, sizes, arch, schedule):
    synced = seeds.output([tirc, "build", str(path), f"--arch={arch}", "--emit=tir", "--stop-after=turn", "-o", "/dev/stdout"])
    if len(re.findall(r"^kernel ", synced, re.M)) > 1:
        return None  # steps, which cannot run by themselves
    wrong = path.with_suffix(".wrong.tir")
    for barrier in BARRIER.finditer(synced):
        wrong.write_text(synced[:barrier.start()] + synced[barrier.end():])
        if is_accepted(tirc, wrong, arch) and (why := race(tirc, wrong, sizes, arch, schedule)):
            return f"{wrong.read_text()}accepted, but {why}"
    return None


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, memory_order.draw, missed))
