#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose products on warpgroups ptxas once serialised, or had too few registers for.

usage: assembled.py TIRC FOLDER

Each file of the folder says in its first comment what was wrong. Its best variant must have products on
warpgroups and no local memory, and ptxas must find nothing to say of any variant that has such products.
Files in a folder inside, which has the name of another target, spilled there: their two best variants
must have no local memory.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys


def wrong(tirc, path, arch="sm_90a"):
    """What ptxas says of the variants with products on warpgroups, and the bytes of stack of each."""
    done = subprocess.run([tirc, "build", str(path), f"--cubin={arch}", "--receipt=json", "-o", os.devnull],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return [done.stderr], {}
    notes, stacks = [], {}
    for variant in json.loads(done.stdout)["variants"]:
        texts = [record["text"] for record in variant["records"]]
        if not any(text.startswith("dot: wgmma") for text in texts):
            continue
        notes += [f"{variant['entry']}: {text}" for text in texts if text.startswith("ptxas: ")]
        stack = [found[1] for text in texts if (found := re.search(r"(\d+) bytes of stack", text))]
        stacks[variant["entry"]] = int(stack[0])
    return notes, stacks


def spilled(tirc, path, arch):
    """What the two best variants have in local memory."""
    done = subprocess.run([tirc, "build", str(path), f"--cubin={arch}", "--receipt=json", "-o", os.devnull],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return [done.stderr]
    return [f"{arch} {variant['entry']}: {record['text']}"
            for variant in json.loads(done.stdout)["variants"][:2]
            for record in variant["records"] if re.search(r"[1-9]\d* bytes of stack", record["text"])]


def has_ptxas():
    return shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")


def main(tirc, folder):
    if not has_ptxas():
        print("no ptxas")
        return 77
    failed = 0
    paths = sorted(pathlib.Path(folder).glob("*.tir"))
    for path in paths:
        found, stacks = wrong(tirc, path)
        if "k" not in stacks:
            found.append("the best variant has no product on warpgroups")
        elif stacks["k"]:
            found.append(f"{stacks['k']} bytes of stack")
        failed += bool(found)
        for text in found:
            print(f"{path.name}: {text}")
    for path in sorted(pathlib.Path(folder).glob("*/*.tir")):
        found = spilled(tirc, path, path.parent.name)
        paths.append(path)
        failed += bool(found)
        for text in found:
            print(f"{path.name}: {text}")
    print(f"{len(paths) - failed} passed, {failed} failed")
    return failed > 0 or not paths


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
