# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much work sync_check takes for kernels of the examples: replayed steps, questions for settings, and
numbers that the solver tries.

Usage: work.py TIRC EXAMPLES

Time varies, these numbers do not. If rounds that a loop never runs are asked for, or blocks that nothing
comes to, attention's questions double.
"""

import pathlib
import re
import subprocess
import sys

MOST = [  # file, target, and for one variant steps, questions and numbers
    ("attention/attention.tir", "sm_90a", 80000, 500, 2000),
    ("attention/attention.tir", "sm_100a", 180000, 200, 2000),
    ("03_gemm/gemm.tir", "sm_90a", 15000, 20, 100),
    ("03_gemm/matmul.tir", "sm_90a", 500000, 20, 400),
    ("12_dequantized/dequantized.tir", "sm_90a", 250000, 300, 2000),
    ("15_split_k/split_k.tir", "sm_90a", 40000, 400, 5000),
]
SAID = re.compile(
    r"sync: (\d+) steps, (\d+) questions for settings, (\d+) numbers tried$", re.MULTILINE)


def main(tirc, examples):
    failed = 0
    for name, target, *most in MOST:
        command = [tirc, "check", f"--arch={target}", "--receipt", pathlib.Path(examples, name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = [[int(number) for number in numbers] for numbers in SAID.findall(done.stdout)]
        if not found or any(a > b for numbers in found for a, b in zip(numbers, most)):
            print(f"{name} for {target}: more than {most}: {found}")
            failed += 1
    print(f"{len(MOST) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
