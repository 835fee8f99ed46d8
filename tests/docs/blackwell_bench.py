# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs tools/bench/blackwell.py as far as it goes without a GPU: what it lists, its checks on the emulator, that it
finds what is wrong, and with torch its second part on the emulator.

Usage: blackwell_bench.py TIRC LIBTIRRT
"""

import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bench(*options):
    done = subprocess.run([sys.executable, ROOT / "tools/bench/blackwell.py", *options], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def wrong(tirc, library):
    status, text = bench("--list")
    names = [line.split()[0] for line in text.splitlines()]
    steps = [path.stem for path in sorted((ROOT / "examples/blackwell_ladder").glob("*.tir"))]
    if status or not set(steps) < set(names):
        yield f"--list has not all of {steps}:\n{text}"
    status, text = bench("--tirc", tirc, "--emulate")
    right = [name for name in names if f"{name}: " in text and f"WRONG {name}" not in text]
    if status or right != names or f"{len(names)} kernels, 0 wrong" not in text:
        yield f"--emulate: exit status {status}\n{text}"
    status, text = bench("--tirc", "false", "--emulate", "--only", "gemm")
    if status != 1 or "WRONG gemm: M=128 " not in text or "1 kernels, 1 wrong" not in text:
        yield f"with a compiler that fails: exit status {status}\n{text}"
    status, text = bench("--tirc", tirc, "--emulate", "--only", "no*")
    if status != 2:
        yield f"with no kernel: exit status {status}\n{text}"
    if importlib.util.find_spec("torch"):
        status, text = bench("--tirc", tirc, "--library", library, "--device", "emu")
        if status or text.count("; not timed") != len(names):
            yield f"--device emu: exit status {status}\n{text}"


def main(tirc, library):
    found = list(wrong(str(pathlib.Path(tirc).resolve()), str(pathlib.Path(library).resolve())))
    print("\n".join(found) or "the benchmark lists, checks and finds what is wrong")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
