#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the kernels of an emulator test, to prove that what it accepts is PTX.

usage: assemble.py ARCH TEST [ARGUMENT...]

The test runs with RIG_PTX set and writes each kernel that it loads to that folder. Planted bugs
are PTX too: what is wrong with them shows only when they run. A form that ptxas of this release
does not know for ARCH is assembled for the target that its row of UNKNOWN names. Exits with 77
where there is no ptxas.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

UNKNOWN = {"tcgen05.ld.red": "sm_103a"}
AGREED = ["cta_group::1) and CTA pair"]  # what both ptxas and the emulator refuse


def target_of(text, arch):
    return next((target for form, target in UNKNOWN.items() if form in text), arch)


def assemble(ptxas, text, arch):
    target = target_of(text, arch)
    text = re.sub(r"\.version \d+\.\d+", ".version 9.0", text, count=1)
    text = re.sub(r"\.target sm_\w+", f".target {target}", text, count=1)
    done = subprocess.run([ptxas, f"-arch={target}", "-O0", "-o", os.devnull, "-"], input=text,
                          capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    return log if done.returncode and not any(a in log for a in AGREED) else None


def main(arch, *command):
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        print("no ptxas")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command, env={**os.environ, "RIG_PTX": folder}, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        texts = {file.read_text() for file in pathlib.Path(folder).iterdir()}
    assert texts, "the test loads no kernels"
    texts = sorted(texts)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(lambda text: assemble(ptxas, text, arch), texts))
    wrong = [(text, error) for text, error in zip(texts, errors) if error]
    for text, error in wrong[:10]:
        print(f"{text}\n{error}")
    print(f"{len(texts)} kernels, {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
