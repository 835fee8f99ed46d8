# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much work sync_check takes for kernels of the examples: replayed steps, and questions for settings.

Usage: work.py TIRC EXAMPLES

Time varies, these numbers do not. If rounds that a loop never runs are asked for, or blocks that nothing
comes to, attention's questions double.
"""

import pathlib
import re
import subprocess
import sys

MOST = [  # file, target, and for one variant steps and questions
    ("attention/attention.tir", "sm_90a", 40000, 500),
    ("attention/attention.tir", "sm_100a", 50000, 100),
    ("03_gemm/gemm.tir", "sm_90a", 15000, 20),
    ("03_gemm/matmul.tir", "sm_90a", 150000, 20),
    ("12_dequantized/dequantized.tir", "sm_90a", 50000, 100),
]
SAID = re.compile(r"sync: (\d+) steps, (\d+) questions for settings$", re.MULTILINE)


def main(tirc, examples):
    failed = 0
    for name, target, steps, questions in MOST:
        command = [tirc, "check", f"--arch={target}", "--receipt", pathlib.Path(examples, name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = [(int(s), int(q)) for s, q in SAID.findall(done.stdout)]
        if not found or max(s for s, _ in found) > steps or max(q for _, q in found) > questions:
            print(f"{name} for {target}: more than {steps} steps or {questions} questions: {found}")
            failed += 1
    print(f"{len(MOST) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
