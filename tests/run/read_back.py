#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that is written down between two passes and read again ends as the same PTX.

usage: read_back.py TIRC TARGET FILE.tir...

For every pass, what `tirc build --stop-after=PASS` writes is compiled. It is the best variant, with
what it relies on, so its PTX is that entry of the PTX of the whole file.
"""

import os
import re
import subprocess
import sys
import tempfile


def passes(tirc):
    text = subprocess.run([tirc, "--help-passes"], capture_output=True, text=True).stdout
    return re.findall(r"^\| `(\w+)` \| (?:\w+) \| \w+ \|", text, re.MULTILINE)


def build(tirc, target, path, *more):
    done = subprocess.run([tirc, "build", f"--arch={target}", path, "-o", "-", *more],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        print(" ".join(done.args), done.stderr)
    return done.stdout if done.returncode == 0 else None


def entries(ptx):
    """Each kernel of a module, without the place where it was written."""
    parts = re.split(r"(?=^\s*(?:// \.globl|\.visible \.entry))", ptx, flags=re.MULTILINE)
    found = {}
    for part in parts:
        name = re.search(r"\.entry (\w+)\(", part)
        if name:
            body = re.sub(r"//.*", "", part)
            found[name.group(1)] = re.sub(r"\$L__BB\d+_", "$L__BB_", body).strip()
    return found


def check(tirc, target, path, folder):
    whole = build(tirc, target, path, "--emit=ptx")
    if whole is None:
        return False
    whole, fine = entries(whole), True
    for name in passes(tirc):
        text = build(tirc, target, path, f"--stop-after={name}")
        half = os.path.join(folder, "half.tir")
        with open(half, "w", encoding="utf-8") as file:
            file.write(text or "")
        again = build(tirc, target, half, "--emit=ptx")
        if not text or again is None:
            fine = False
            continue
        for kernel, body in entries(again).items():
            if whole.get(kernel) != body:
                print(f"{path}: {kernel} for {target} is not the same when it is read after {name}")
                fine = False
    return fine


def main():
    tirc, target, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        failed = [f for f in files if not check(tirc, target, f, folder)]
    print(f"{len(files)} files, {len(failed)} failed")
    sys.exit(len(failed) > 0)


if __name__ == "__main__":
    main()
