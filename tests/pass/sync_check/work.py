# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much work sync_check takes for kernels of the examples: replayed steps, questions for settings, numbers
that the solver tries, and looks at clocks, whose number grows with the square of that of the CTAs of a cluster.

Usage: work.py TIRC EXAMPLES

Time varies, these numbers do not. If rounds that a loop never runs are asked for, or blocks that nothing
comes to, attention's questions double. If every access and barrier looks for its events by itself, wide
clusters take many times as many looks. Buffers that lie in the same bytes one after the other are a program of
its own: each access would look at those of all buffers before it.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

MOST = [  # file, target and metas, and for one variant steps, questions, numbers, looks
    ("attention/attention.tir", "sm_90a", (), 40000, 100, 500, 20000),
    # `words`: two warpgroups gather, loops are split; tiles that are not SHORT have 33 rounds and more
    ("attention/attention.tir", "sm_100a", (), 530000, 100, 600, 120000),
    ("03_gemm/gemm.tir", "sm_90a", (), 12000, 10, 50, 15000),
    ("03_gemm/matmul.tir", "sm_90a", (), 1000000, 30, 400, 20000000),  # clusters of eight; words
    ("03_gemm/matmul.tir", "sm_90a", ("CM=2", "CN=2", "BM=64", "BN=64"), 500000, 30, 400, 20000000),
    ("03_gemm/matmul.tir", "sm_90a", ("CM=2", "CN=4", "BM=128"), 1000000, 20, 400, 10000000),
    ("12_dequantized/dequantized.tir", "sm_90a", (), 250000, 100, 1000, 3000000),
    ("15_split_k/split_k.tir", "sm_90a", (), 40000, 400, 500, 120000),
]
OVERLAID = (150000, 20, 100, 20000)
SAID = re.compile(r"sync: (\d+) steps, (\d+) questions for settings, (\d+) numbers tried, "
                  r"(\d+) looks at clocks$", re.MULTILINE)


def overlaid(products):
    """A loop of products whose operands, computed by the one before, lie in the same bytes."""
    product = "                v = dot(bf16(cumsum(v, axis = {})), bf16(v).T) * 0.001;\n"
    return """kernel overlaid(X: f32[M, 64], Y: out f32[M, 64], n: i32) {
    ring loaded[2] {
        x: f32[64, 64];
    }
    role fill warps(1) {
        for m in tiles(M by 64) {
            for i in range(n) {
                put loaded {
                    x = X[m:+64, :];
                }
            }
        }
    }
    role work warpgroups(1) {
        for m in tiles(M by 64) {
            var v: f32[64, 64] = 0;
            for i in range(n) {
                get loaded {
                    v += load(x);
                }
""" + "".join(product.format(i % 2) for i in range(products)) + """            }
            Y[m:+64, :] = v;
        }
    }
}
"""


def is_within(tirc, path, target, metas, most):
    command = [tirc, "check", f"--arch={target}", "--receipt", path]
    command += [word for meta in metas for word in ("-D", meta)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [[int(number) for number in numbers] for numbers in SAID.findall(done.stdout)]
    if found and all(a <= b for numbers in found for a, b in zip(numbers, most)):
        return True
    print(f"{path} {' '.join(metas)} for {target}: more than {most}: {found}")
    return False


def main(tirc, examples):
    passed = [is_within(tirc, pathlib.Path(examples, name), target, metas, most)
              for name, target, metas, *most in MOST]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "overlaid.tir")
        path.write_text(overlaid(64), encoding="utf-8")
        passed.append(is_within(tirc, path, "sm_90a", (), OVERLAID))
    print(f"{passed.count(True)} passed, {passed.count(False)} failed")
    return not all(passed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
