# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times `deterministic` of backward.tir beside `backward`, at sizes that a seed draws, and its steps.

    python3 gradients.py --library libtirrt.so --artifacts FOLDER --seed N [--cases N] [--rounds N]

For heads of 64 and 128 elements, with a causal mask and with all keys, --cases lengths each. All sides
of a row are CUDA graphs, replayed in turns; medians are printed. Gradients of both are compared with
float32's before they are timed.
"""

import argparse
import itertools
import random
import statistics

import torch

import family
from heads import draw_lengths
from products import Bench

HEADS = 16


def steps_of(bench, name, work, batch, keys):
    """Launches of each step by itself, with scratch tensors of their own."""
    whole = bench.kernel(name)
    values = {param.name.text(): value for param, value in zip(whole.params, work.ours)}
    rows = int(whole.metas["BQ"])
    for scratch in ("Logs", "Delta"):
        values[scratch] = torch.zeros(batch, HEADS, -(-keys // rows), rows, device="cuda")
    values["Deltas"] = torch.zeros(batch, HEADS, keys, device="cuda")
    kernels = [bench.step(name, number) for number in (1, 2, 3)]
    return [kernel.bind(*(values[param.name.text()] for param in kernel.params)).launch for kernel in kernels]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    bench = Bench(parser.parse_args())
    rng, ratios, wrong = random.Random(bench.options.seed), [], 0
    print(f"seed {bench.options.seed}", flush=True)
    for size, causal, _ in itertools.product((64, 128), (True, False), range(bench.options.cases)):
        batch, keys = draw_lengths(rng, 16384, 16384)
        kind = f"{'causal' if causal else 'full'}{size}"
        work = family.backward("cuda", batch, HEADS, keys, size, causal)
        both = [bench.launch(f"{kernel}.{kind}", *work.ours) for kernel in ("backward", "deterministic")]
        errors = [work.check(launch) for launch in both]
        wrong += sum(not error <= work.tolerance for error in errors)
        times = bench.times(both + steps_of(bench, f"deterministic.{kind}", work, batch, keys))
        ratios.append(times[1] / times[0])
        print(f"{kind:9} {batch:3} x {keys:5}: backward {times[0] * 1e3:6.0f} us, deterministic {times[1] * 1e3:6.0f}, "
              f"{ratios[-1]:.3f} times as long; its steps alone {', '.join(f'{ms * 1e3:.0f}' for ms in times[2:])}; "
              f"errors {errors[0]:.0e} and {errors[1]:.0e}", flush=True)
        del work, both
        torch.cuda.empty_cache()
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
