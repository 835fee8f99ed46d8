# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the nine steps of examples/gemm_ladder beside cuBLAS.

    python3 ladder.py --library libtirrt.so --artifacts FOLDER [--size N] [--rounds N]

FOLDER holds ladder.STEP.tira (artifacts.py --only 'ladder.*'). Steps 1 and 2 compute one tile, so they
run on one; the others and cuBLAS on N x N x N, all as CUDA graphs replayed in turns. Results are compared
with float32's first, on poisoned outputs.
"""

import argparse

import torch

import products

STEPS = ["1_single_tile", "2_k_loop", "3_spatial", "4_tma", "5_pipeline", "6_persistent",
         "7_specialized", "8_cluster", "9_two_consumers"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    bench, n = products.Bench(options), options.size
    shapes = {"1_single_tile": (128, 128, 64), "2_k_loop": (128, 128, n)}
    calls, flops, keep = [], [], []
    for step in STEPS:
        m, columns, k = shapes.get(step, (n, n, n))
        a, b = products.normal(m, k), products.normal(columns, k)
        out = products.poisoned(m, columns)
        keep.append((a, b, out))
        calls.append(bench.launch(f"ladder.{step}", a, b, out))
        calls[-1]()
        torch.cuda.synchronize()
        bench.check(step, out, a.float() @ b.float().T)
        flops.append(2 * m * columns * k)
    a, b, _ = keep[-1]
    theirs = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    calls.append(lambda: torch.matmul(a, b.T, out=theirs))
    flops.append(2 * n ** 3)
    times = bench.times(calls)
    for step, ms, work in zip([*STEPS, "cuBLAS"], times, flops):
        print(f"{step:16} {ms:9.4f} ms {work / ms / 1e9:8.1f} TFLOP/s", flush=True)
    print(f"{bench.wrong} wrong")
    return bench.wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
