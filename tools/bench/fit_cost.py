# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the numbers of a card (compiler/machine/cost.def) to measured products.

    python3 fit_cost.py MATMUL.tir PRODUCTS.txt... [--multiprocessors 132] [--steps N]

PRODUCTS.txt is what `random_sizes.py --space` writes: M N K and the microseconds of each
configuration. The model is that of compiler/compile/cost.c, for this kernel alone. What is sought
is small regret: how many times as long the model's choice takes as the best configuration. A
fraction of the error of the times themselves keeps the numbers near what they stand for. Needs
numpy and scipy.
"""

import argparse
import math
import pathlib
import re

import numpy
from scipy.optimize import minimize

# Member of struct tir_cost: first guess, least, most.
NUMBERS = {"products": (2300, 1500, 4500), "fetched": (127, 20, 140), "round": (95, 0, 200),
           "stored": (8, 4, 200), "memory": (3800, 1500, 9000), "moved": (17, 4, 60),
           "start": (2180, 0, 5000), "fixed": (556, 100, 4000), "clustered": (548, 0, 4000),
           "begun": (250, 0, 2000), "launch": (4900, 1000, 9000), "fewest_columns": (40, 32, 128)}
IN_GPCS = 0.91  # of the multiprocessors, for clusters of more than two CTAs
LEAST, MOST = (numpy.array([row[i] for row in NUMBERS.values()], float) for i in (1, 2))
ERROR_SHARE = 0.02
CLOCK = 1755  # cycles of a microsecond


def configurations(path):
    """The config clauses of a kernel, in their order, padded ones left out."""
    text = pathlib.Path(path).read_text()
    for clause in re.findall(r"\bconfig\(([^)]*)\)", text):
        metas = {"BK": 64, "SPLIT": False, "FLIP": False, "PAD": False, "CM": 1, "CN": 1}
        for name, value in re.findall(r"(\w+) = (\w+)", clause):
            metas[name] = value == "true" if value in ("true", "false") else int(value)
        yield metas


def measurements(paths):
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            if line and line[0] != "#":
                words = line.split()
                yield tuple(map(int, words[:3])), {
                    i: float(us) for i, us in enumerate(words[3:]) if us != "-"}


def cycles(card, metas, size, multiprocessors):
    m, n, k = size
    bm, bn, bk, cm, cn = (metas[name] for name in ("BM", "BN", "BK", "CM", "CN"))
    tiles = cm * -(-m // (bm * cm)) * cn * -(-n // (bn * cn))
    rounds = -(-k // bk)
    parts = 1
    if metas["SPLIT"]:
        parts = max(1, min(multiprocessors // tiles, k // (bk * 4)))
        rounds = -(-rounds // parts)
    rows, columns = (bn, bm) if metas["FLIP"] else (bm, bn)
    multiply = rows * max(columns, card["fewest_columns"]) * bk / card["products"]
    askew = 1 + (k * 2 % 128 > 0) + (k * 2 % 32 > 0)
    asked = (bm / cn + bn / cm) * bk * 2 * askew
    fetch = max((bm + bn) * bk * 2, asked) / card["fetched"]
    at_a_time = int(multiprocessors * IN_GPCS) if cm * cn > 2 else multiprocessors
    waves = -(-tiles * parts // at_a_time)
    beside = card["fixed"] + card["clustered"] * (cm * cn > 1) + bm * bn / card["stored"]
    total = card["start"] + waves * (beside + rounds * (card["round"] + max(multiply, fetch)))
    total += (m * k + n * k) * 2 / card["memory"]
    if metas["SPLIT"]:
        blocks = -(-(-(-m // 2) * -(-n // 256)) // multiprocessors)
        return total + card["launch"] + blocks * (
            card["begun"] + (parts * 2 * 256 * 4 + 2 * 256 * 2) / card["moved"])
    return total + m * n * 2 / card["memory"]


def judge(card, configs, rows, multiprocessors):
    """Mean logarithm of the regret, mean square of the error of times near the best."""
    regret, error, weight = 0.0, 0.0, 0.0
    for size, measured in rows:
        least = min(measured.values())
        guess = {i: cycles(card, configs[i], size, multiprocessors) for i in measured}
        regret += math.log(measured[min(guess, key=guess.get)] / least)
        for i, us in measured.items():
            share = (least / us) ** 2
            error += share * math.log(guess[i] / CLOCK / us) ** 2
            weight += share
    return regret / len(rows), error / weight


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kernel")
    parser.add_argument("products", nargs="+")
    parser.add_argument("--multiprocessors", type=int, default=132)
    parser.add_argument("--steps", type=int, default=800)
    options = parser.parse_args()
    configs = list(configurations(options.kernel))
    rows = [(size, {i: us for i, us in measured.items() if not configs[i]["PAD"]})
            for size, measured in measurements(options.products)]

    def card_of(x):
        return dict(zip(NUMBERS, LEAST + (MOST - LEAST) * numpy.clip(x, 0, 1)))

    def score(x):
        regret, error = judge(card_of(x), configs, rows, options.multiprocessors)
        return regret + ERROR_SHARE * error

    start = (numpy.array([row[0] for row in NUMBERS.values()]) - LEAST) / (MOST - LEAST)
    found = minimize(score, start, method="Nelder-Mead",
                     options={"maxfev": options.steps, "adaptive": True})
    for name, x in (("first", start), ("found", found.x)):
        regret, error = judge(card_of(x), configs, rows, options.multiprocessors)
        print(f"{name}: {math.exp(regret):.4f} times as long as the best, error of times "
              f"{math.sqrt(error):.2f}")
    print(", ".join(f".{name} = {value:.0f}" for name, value in card_of(found.x).items()))


if __name__ == "__main__":
    main()
