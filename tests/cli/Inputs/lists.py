# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lists.py TIMES COUNT: lists of configurations, each so many times in the next one; the last one is first."""
import sys

TIMES, COUNT = map(int, sys.argv[1:])
lists = ["configs l0 { " + "config(BM = 1) " * TIMES + "}"]
lists += [f"configs l{i} {{ " + f"config l{i - 1} " * TIMES + "}" for i in range(1, COUNT)]
print("\n".join(lists if TIMES > 1 else reversed(lists)))
print("kernel k<BM = 1>(X: f32[M], Y: out f32[M]) config l0 { for m in tiles(M by BM) { Y[m:+BM] = X[m:+BM]; } }")
