#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the host of examples/16_block, and its launches again by tirc, against the interpreter.

usage: block.py TIRC HOST [DEVICE]

The host compares its outputs with a reference in double precision. It leaves the tensors of its last
token and a command for each launch. On the same inputs tirc must give the same bits, and the
interpreter what `--check` allows.
"""

import os
import shlex
import subprocess
import sys
import tempfile


def elements(path):
    """The bytes after the header of a file of NumPy."""
    with open(path, "rb") as file:
        data = file.read()
    return data[10 + int.from_bytes(data[8:10], "little"):]


def again(tirc, device, command, folder):
    """Whether one launch gives the same again."""
    command = [tirc, *command[1:], "--device", device, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    outputs = [word.partition("save=")[2] for word in command if "save=" in word]
    same = [elements(path) == elements(path.replace(".again", "")) for path in outputs
            if os.path.exists(path)]
    if done.returncode == 0 and len(same) == len(outputs) > 0 and all(same):
        return True
    print("FAILED (%d, same bits: %s):" % (done.returncode, same), " ".join(command))
    print(done.stdout + done.stderr)
    return False


def main():
    tirc, host = (os.path.abspath(path) for path in sys.argv[1:3])
    device = sys.argv[3] if len(sys.argv) > 3 else "emu"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([host, device, folder], capture_output=True, text=True, timeout=300)
        print(done.stdout + done.stderr)
        lines = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("tirc run ")]
        passed = [again(tirc, device, line, folder) for line in lines]
    print(f"{sum(passed)} of {len(passed)} launches give the same again")
    return done.returncode != 0 or len(passed) != 8 or not all(passed)


if __name__ == "__main__":
    sys.exit(main())
