# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much work sync_check takes for kernels of the examples: replayed steps, questions for settings, numbers
that the solver tries, and looks at clocks, whose number grows with the square of that of the CTAs of a cluster.

Usage: work.py TIRC EXAMPLES

Time varies, these numbers do not. If rounds that a loop never runs are asked for, or blocks that nothing
comes to, attention's questions double. If every access and barrier looks for its events by itself, wide
clusters take many times as many looks.
"""

import pathlib
import re
import subprocess
import sys

MOST = [  # file, target and metas, and for one variant steps, questions, numbers, looks
    ("attention/attention.tir", "sm_90a", (), 40000, 100, 500, 20000),
    ("attention/attention.tir", "sm_100a", (), 330000, 100, 600, 120000),  # `words`: two warpgroups gather
    ("03_gemm/gemm.tir", "sm_90a", (), 12000, 10, 50, 15000),
    ("03_gemm/matmul.tir", "sm_90a", (), 500000, 20, 400, 20000000),
    ("03_gemm/matmul.tir", "sm_90a", ("CM=2", "CN=4", "BM=128"), 1000000, 20, 400, 10000000),
    ("12_dequantized/dequantized.tir", "sm_90a", (), 250000, 100, 1000, 3000000),
    ("15_split_k/split_k.tir", "sm_90a", (), 40000, 400, 500, 120000),
]
SAID = re.compile(r"sync: (\d+) steps, (\d+) questions for settings, (\d+) numbers tried, "
                  r"(\d+) looks at clocks$", re.MULTILINE)


def main(tirc, examples):
    failed = 0
    for name, target, metas, *most in MOST:
        command = [tirc, "check", f"--arch={target}", "--receipt", pathlib.Path(examples, name)]
        command += [word for meta in metas for word in ("-D", meta)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = [[int(number) for number in numbers] for numbers in SAID.findall(done.stdout)]
        if not found or any(a > b for numbers in found for a, b in zip(numbers, most)):
            print(f"{name} {' '.join(metas)} for {target}: more than {most}: {found}")
            failed += 1
    print(f"{len(MOST) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
