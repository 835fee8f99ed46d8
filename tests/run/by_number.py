# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs what a generator draws, program by program: each has a number, by which it can be drawn again."""

import shutil
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
