# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times kernels at sizes that a seed draws, beside torch, paired in one run.

    python3 random_sizes.py --library libtirrt.so --artifacts FOLDER --seed N [--cases N]
        [--sets layers,eights,any,thin,deep,softmax,layernorm,rmsnorm,...] [--artifact matmul_bf16]
        [--sizes MxNxK,...] [--space] [--beside] [--rounds N] [--seconds S] [--device cuda|emu]

Products (cuBLAS): `layers` are weights of published models with a drawn number of rows, `eights`
multiples of 8, `any` sizes of any alignment, `thin` at most 64 rows, `deep` few tiles of long sums,
`askew`, where it is asked for, multiples of 8 with a depth that is an odd one.
Row kernels (bf16): M x N of which a quarter have rows of any alignment. family.py has the
sets of attention, decode, weights of few bits, products with scales and of groups, everyday.py those
of other kernels. The artifacts of head_sizes are those of the same seed (artifacts.py --heads N). Each result is compared
with float32's on poisoned outputs before it is timed. Both sides are CUDA graphs whose
calls rotate over input sets (compare.py), replayed in turns; the ratio is torch's time divided by
ours. Prints the geometric mean of each set and the ten worst.

--checks N compares N launches of each instead of one: what goes wrong by chance goes wrong sooner.
--sizes takes these sizes for each set instead of drawn ones, to compare two compilers at the same.
--beside also times artifacts that have more behind its name (NAME.MORE.tira), each by its model's
choice; --space times them and every other configuration of the artifact, and prints what a perfect
choice would reach, and how many times as long as the best configuration of the artifact the model's
choice takes. All figures go to
$OUT/random_sizes.json where OUT is set, and the times of every configuration of a product to
$OUT/products.txt, which fit_cost.py reads.
"""

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import sys
import time

import torch

import compare
import everyday
import family
import harness
import heads
import tirrt

# Columns and depth of weights: Llama 3 8B and 70B, Qwen 2.5 7B and 32B, Mixtral 8x7B, DeepSeek V3,
# Gemma 2 9B, GPT-OSS 120B (their published configurations).
WEIGHTS = [
    (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192),
    (57344, 8192), (8192, 28672), (4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944),
    (7168, 5120), (5120, 5120), (55296, 5120), (5120, 27648), (1536, 7168), (24576, 1536),
    (2112, 7168), (7168, 16384), (4096, 7168), (7168, 2048), (8192, 3584), (28672, 3584),
    (3584, 14336), (5120, 2880), (2880, 4096), (2880, 2880), (128256, 4096),
]
MOST = 1 << 40  # M * N * K: about 3 ms
MOST_ROWS = 1 << 28  # M * N: 1 GB is moved


def spread(rng, low, high, step=1):
    """A multiple of step, every power of two as likely as the next."""
    return max(step, round(math.exp(rng.uniform(math.log(low), math.log(high))) / step) * step)


def draw(rng, kind):
    if kind == "layers":
        n, k = rng.choice(WEIGHTS)
        return rng.choice([1, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192,
                           spread(rng, 1, 8192)]), n, k
    if kind == "eights":
        return tuple(spread(rng, 64, 8192, 8) for _ in range(3))
    if kind == "askew":
        return spread(rng, 64, 8192, 8), spread(rng, 64, 8192, 8), spread(rng, 64, 8192, 16) + 8
    if kind == "any":
        return tuple(spread(rng, 64, 8192) for _ in range(3))
    if kind == "thin":
        return spread(rng, 1, 64), spread(rng, 1024, 32768, 64), spread(rng, 1024, 16384, 64)
    if kind == "deep":
        return spread(rng, 64, 1024, 8), spread(rng, 64, 1024, 8), spread(rng, 8192, 65536, 64)
    return spread(rng, 1, 1 << 18), spread(rng, 16, 1 << 17, rng.choice([1, 8, 8, 64]))


DEFAULT = ["layers", "eights", "any", "thin", "deep"]
PRODUCTS = [*DEFAULT, "askew"]
ROWS = {"softmax": compare.softmax, "layernorm": compare.layernorm, "rmsnorm": compare.rmsnorm}
DRAWN = {**family.KINDS, **everyday.KINDS}  # besides products and rows
KINDS = [*PRODUCTS, *ROWS, *DRAWN]


def drawn(rng, kind, options):
    """An artifact and a size."""
    if kind in DRAWN:
        draw_one, _, tiny = DRAWN[kind]
        return tiny if options.device == "emu" else draw_one(rng)
    size = draw(rng, kind)
    if options.device == "emu":
        size = tuple(min(n, 40 + n % 50) for n in size)
    return (f"{kind}_rows" if kind in ROWS else options.artifact), size


def too_large(kind, size):
    return math.prod(size) > (MOST if kind in PRODUCTS else MOST_ROWS if kind in ROWS else math.inf)


def maker(kind, artifact):
    if kind in DRAWN:
        return DRAWN[kind][1]
    return ROWS.get(kind) or compare.gemm(artifact.split("_")[1])


def items_of(options):
    every = random.Random(options.seed)
    items = []
    for kind in options.sets.replace("everyday", ",".join(everyday.KINDS)).split(","):
        rng = heads.random_of(kind, options.seed) if kind in heads.KINDS else every
        if options.sizes:
            artifact, _ = drawn(rng, kind, options)
            items += [(kind, artifact, size) for size in options.sizes]
            continue
        count = 0
        while count < options.cases:
            artifact, size = drawn(rng, kind, options)
            if too_large(kind, size):
                continue
            items.append((kind, artifact, size))
            count += 1
    return items


def forced(kernel, work, variant):
    call = kernel.bind(*work.ours)
    call.options.variant = variant
    return call.launch


def label(kernel, variant):
    """A configuration and the facts of the variant."""
    if variant < len(kernel.variants):
        return f"{kernel.variants[variant].config}:{kernel.variant_name(variant)}"
    return f"{kernel.sequences[variant - len(kernel.variants)].config}:steps"


def worst(work, launch, checks):
    return max(work.check(launch) for _ in range(checks))


def configurations(context, kernel, work):
    """The variant that each configuration takes here: label -> number; a wrong one is an error."""
    found = {}
    for variant in range(len(kernel.variants) + len(kernel.sequences)):
        name = label(kernel, variant)
        config = name.split(":")[0]
        if any(other.split(":")[0] == config for other in found):
            continue  # its facts are better
        try:
            error = worst(work, forced(kernel, work, variant), context.options.checks)
        except tirrt.TirError as refusal:
            if harness.fatal(refusal):
                raise
            continue
        if not error <= work.tolerance:
            raise ValueError(f"WRONG {name}: relative error {error:.1e}")
        found[name] = variant
    return found


def one(context, item):
    """Times the model's choice, and with --space all configurations, beside torch."""
    kind, artifact, size = item
    kernel = context.kernel(artifact)
    sets = context.sets(maker(kind, artifact), size)
    work = sets[0]
    error = worst(work, kernel.bind(*work.ours).launch, context.options.checks)
    if not error <= work.tolerance:
        return {"error": f"WRONG: relative error {error:.1e}"}
    taken = kernel.bind(*work.ours).launch().variant
    result = {"choice": label(kernel, taken), "error_relative": error, "flops": work.flops,
              "bytes": work.bytes}
    others = {}  # what launches a set, by name
    if context.options.space:
        others = {name: lambda w, number=number: forced(kernel, w, number)
                  for name, number in configurations(context, kernel, work).items()
                  if number != taken}
    if context.options.space or context.options.beside:
        good, bad = compare.valid(context, work, context.candidates([f"{artifact}.*"]))
        wrong = [f"{name}: {why}" for name, why in bad.items() if why.startswith("WRONG")]
        if wrong:
            return {"error": wrong[0]}
        for name in good:
            others[name.removeprefix(artifact)] = compare.launches(context.kernel(name))
    if context.device.emulated:
        return {**result, "others": list(others)}
    shorter = compare.roughly(kernel.bind(*work.ours).launch)
    sides = [compare.Side(compare.rotation(sets, lambda w: w.theirs, shorter, 1.0),
                          context.stream if work.captured else None),
             compare.Side(compare.rotation(sets, compare.launches(kernel), shorter, 1.0),
                          context.stream)]
    for function in others.values():
        sides.append(compare.Side(compare.rotation(sets, function, shorter, 0.5), context.stream))
    compare.alternate(sides, 1)
    times = compare.alternate(sides, context.options.rounds, context.options.pause)
    # launches in a row, as they were timed
    error = sets[-1].check(sides[1].graph.replay) if work.repeats else 0
    if not error <= work.tolerance:
        return {"error": f"WRONG in a row: relative error {error:.1e}"}
    result["ratio"] = statistics.median(x / y for x, y in zip(*times[:2]))
    medians = [statistics.median(list_of) * 1e3 for list_of in times]
    result["torch_us"], result["ours_us"] = medians[:2]
    result["space_us"] = {result["choice"]: medians[1], **dict(zip(others, medians[2:]))}
    return result


def line(item, result):
    name = f"{item[0]:9} {'x'.join(map(str, item[2])):18}"
    if "error" in result:
        return f"{name} FAILED {result['error']}"
    if "ratio" not in result:
        return f"{name} right, {result['choice']} {result['others']}"
    best = min(result["space_us"], key=result["space_us"].get)
    better = f"  best {best} {result['torch_us'] / result['space_us'][best]:.2f}" \
        if best != result["choice"] else ""
    rate = f"{result['bytes'] / result['ours_us'] / 1e3:5.0f} GB/s"
    if result["flops"]:
        rate += f" {result['flops'] / result['ours_us'] / 1e6:4.0f} TFLOP/s"
    return (f"{name} torch {result['torch_us']:8.1f} us, tirc {result['ours_us']:8.1f} us {rate}, "
            f"{result['ratio']:.2f} {result['choice']}{better}")


def space_line(size, space, count):
    """M N K and the microseconds of each configuration."""
    times = {int(name.split(":")[0]): us for name, us in space.items() if name[0] != "."}
    return " ".join([*map(str, size), *(f"{times[i]:.1f}" if i in times else "-"
                                        for i in range(count))])


def save(folder, results):
    text = json.dumps([{"item": item, **result} for item, result in results])
    (folder / "random_sizes.json").write_text(text)
    spaces = [(item[2], r["space_us"]) for item, r in results
              if item[0] in PRODUCTS and len(r.get("space_us", {})) > 1]
    if spaces:
        count = 1 + max(int(name.split(":")[0]) for _, space in spaces for name in space
                        if name[0] != ".")
        (folder / "products.txt").write_text("".join(
            space_line(size, space, count) + "\n" for size, space in spaces))


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def regret(result):
    """How many times as long the choice takes as the best configuration of its artifact."""
    own = [us for name, us in result["space_us"].items() if name[0] != "."]
    return result["space_us"][result["choice"]] / min(own)


def summary(results):
    timed = [(item, r) for item, r in results if "ratio" in r]
    for kind in KINDS:
        rows = [r for item, r in timed if item[0] == kind]
        if not rows:
            continue
        ratios = [r["ratio"] for r in rows]
        best = [r["torch_us"] / min(r["space_us"].values()) for r in rows]
        print(f"{kind:9} {len(rows):4} cases: geometric mean {geometric(ratios):.3f}, lowest "
              f"{min(ratios):.2f}, {sum(r < 0.9 for r in ratios)} below 0.9; best configuration "
              f"{geometric(best):.3f}")
        for name in sorted({name for r in rows for name in r["space_us"] if name[0] == "."}):
            both = [r for r in rows if name in r["space_us"]]
            print(f"{'':9} {name[1:]} {geometric([r['torch_us'] / r['space_us'][name] for r in both]):.3f}, "
                  f"lowest {min(r['torch_us'] / r['space_us'][name] for r in both):.2f} ({len(both)} cases)")
        if any(len(r["space_us"]) > 1 for r in rows):
            lost = [regret(r) for r in rows]
            print(f"{'':9} the choice takes {geometric(lost):.3f} times as long as the best, worst "
                  f"{max(lost):.2f}, {sum(x > 1.1 for x in lost)} above 1.1")
    print("\nthe ten worst")
    for item, result in sorted(timed, key=lambda row: row[1]["ratio"])[:10]:
        print(line(item, result))


def sizes_of(text):
    return [tuple(int(n) for n in size.split("x")) for size in text.split(",")]


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--artifact", default="matmul_bf16", help="its element type behind a _")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=20, help="of each set")
    parser.add_argument("--sets", default=",".join(DEFAULT), help="or everyday, all of its own")
    parser.add_argument("--sizes", type=sizes_of, help="instead of drawn ones")
    parser.add_argument("--space", action="store_true", help="every configuration")
    parser.add_argument("--beside", action="store_true", help="artifacts of more names, each by its choice")
    parser.add_argument("--checks", type=int, default=1, help="launches of each that are compared")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--pause", type=float, default=0, help="milliseconds between replays")
    parser.add_argument("--scratch", type=int, default=0,
                        help="bytes that sequences take instead of allocating them")
    parser.add_argument("--overlap", action="store_true", help="a launch starts early, and waits")
    parser.add_argument("--seconds", type=float, default=420, help="stop after this long")
    parser.add_argument("--device", choices=("cuda", "emu"), default="cuda")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    deadline = time.monotonic() + options.seconds
    print(f"seed {options.seed}, {options.artifact}", flush=True)
    results = []
    for item, result in harness.run([items_of(options)], lambda: compare.Context(options), one, 120,
                                    deadline):
        results.append((item, result))
        print(line(item, result), flush=True)
    print()
    summary(results)
    if os.environ.get("OUT"):
        save(pathlib.Path(os.environ["OUT"]), results)
    return any("error" in result for _, result in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
