# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs what a generator draws, program by program: each has a number, by which it can be drawn again."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(check, tirc, count, first):
    """check(tirc, ptxas, number, folder) says what is wrong with a program, or nothing. ptxas may be None."""
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(first), int(first) + int(count)):
            wrong = check(tirc, ptxas, number, folder)
            if wrong:
                sys.exit(f"kernel {number}: {wrong}")


def main(check, what, count):
    """The program of a generator whose kernels have mutants with a wrong `what`: check(..., counts) adds to counts."""
    tirc, rest = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    count, first = rest[0] if rest else count, rest[1] if len(rest) > 1 else 0
    counts = {"mutants": 0, "refused": 0}
    run(lambda *program: check(*program, counts), tirc, count, first)
    print(f"{count} kernels; {counts['mutants']} with a wrong {what}, {counts['refused']} of them refused")


def refused(command, text):
    """What a command says that fails on a program, with the program; None where it does not."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode:
        return f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}{text}"
    return None


def emulated(tirc, path, kernel, drawn, given, text):
    """None where the kernel gives to the bit what kernel `plain` of its file does, under all checks."""
    return refused([tirc, "run", path, f"--kernel={kernel}", f"--arch={drawn['arch']}", "--device=emu",
                    "--emu-check=full", f"--schedule={drawn['schedule']}", *given, "--check=0",
                    "--check-against=:plain"], text)


def assembled(tirc, ptxas, path, kernel, drawn, text):
    """None where ptxas takes the kernel, or is not there."""
    if not ptxas:
        return None
    ptx = os.path.join(os.path.dirname(path), "k.ptx")
    return refused([tirc, "build", path, f"--kernel={kernel}", f"--arch={drawn['arch']}", "--emit=ptx", "-o", ptx],
                   text) or refused([ptxas, f"-arch={drawn['arch']}", "-o", os.devnull, ptx], text)
