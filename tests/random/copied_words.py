#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random products of rows of any alignment, whose configurations have conditions, on the emulator against the interpreter.

Usage: copied_words.py TIRC [--seed N] [--count N]

A kernel takes tiles of gemm.product, in one launch and in parts of K. Some configurations have a condition of their own, that K is no
multiple of a number: these alone have variants for rows that no tensor copy fetches, beside those that copy rows first and the first
one. Lengths of rows are multiples of 1 to 16 elements, tensors begin anywhere, and rows have gaps. A launch that no
configuration takes is a failure, and so is a wrong result, and a kernel that is refused for its number of configurations. The model must choose configurations
of each kind. Seed 0 is that of the day. A failing program is printed, with the command that runs it.
"""

import collections
import random
import re
import subprocess
import sys

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_90a", "sm_90a", "sm_100a"]
METAS = {"BM": 64, "BN": 64, "STAGES": 4, "SMS": 132, "SPLIT": "false", "FLIP": "false", "PAD": "false", "WORDS": "false"}
MOST_CONDITIONS = 12  # TIR_MOST_OWN_CONFIGS
KERNEL = """import "tir/gemm.tir" as gemm;

kernel product<{metas}, T = {element}>(A: T[M, K], B: T[N, K], D: out f32[M, N])
    where !WORDS || K % {step} != 0{configs}
{{
    gemm.product(A, B, D, M, N, K, gemm.plain, 0, 0, BM = BM, BN = BN, STAGES = STAGES, SMS = SMS, SPLIT = SPLIT,
        FLIP = FLIP, PAD = PAD, OUT = f32);
}}
"""


def configuration(rng, **given):
    few = rng.random() < 0.3
    return {**METAS, "BM": rng.choice([16, 32, 48] if few else [64, 128]), "BN": rng.choice([64, 64, 128]), "FLIP": str(few).lower(),
            "STAGES": rng.randint(2, 5), "SMS": rng.choice([8, 132, 396]), "SPLIT": rng.choice(["false", "true"]), **given}


def draw(seed):
    """A program, and what runs it."""
    rng = random.Random(f"copied words {seed}")
    words = rng.choice([1, 1, 2, 3])
    configs = [configuration(rng, PAD="true"), *(configuration(rng, WORDS="true") for _ in range(words)),
               *(configuration(rng) for _ in range(rng.choice([1, 3, MOST_CONDITIONS + 3])))]
    rng.shuffle(configs)
    element, step = rng.choice([("bf16", 8), ("f16", 8), ("f16", 16), ("e4m3", 16)])
    clauses = "".join(f"\n    config({', '.join(f'{k} = {v}' for k, v in config.items())})" for config in configs)
    text = KERNEL.format(metas=", ".join(f"{k} = {v}" for k, v in METAS.items()), element=element, step=step, configs=clauses)
    unit = rng.choice([1, 2, 4, 8, 16])
    sizes = {"M": rng.randint(1, 150), "N": rng.randint(1, 150), "K": unit * rng.randint(1, max(1, 700 // unit))}
    if rng.random() < 0.6:
        sizes[rng.choice("MN")] = rng.randint(1, 8)
    tensors = [f"{name}=randn,pad={rng.choice([1, 2, 3, 4])},offset={rng.choice([1, 2, 8])}" for name in "ABD" if rng.random() < 0.15]
    return text, rng.choice(ARCHS), [*(f"{name}={n}" for name, n in sizes.items()), *tensors]


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    failed, chosen = [], collections.Counter()

    def failure(path, arch, arguments):
        command = [options.tirc, "run", str(path), f"--arch={arch}", "--check", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seeds.SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{' '.join(command)}\nno end after {seeds.SECONDS} s"
        said = re.search(r"(\d+ x 1 x 1|step \d of \d)", done.stdout)
        chosen["in steps" if said and "step" in said[0] else "in one launch"] += 1
        return None if done.returncode == 0 else f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    passed = sum(1 for _ in seeds.passing(options, draw, failure, failed))
    print(f"{passed} programs pass; {dict(chosen)}")
    assert options.count < 20 or len(chosen) == 2, chosen
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
