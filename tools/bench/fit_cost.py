# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the numbers of a card (compiler/machine/cost.def) to measured products.

    python3 fit_cost.py MATMUL.tir PRODUCTS.txt... [--multiprocessors 132] [--steps N] [--splits N]

PRODUCTS.txt is what `random_sizes.py --space` writes: M N K and the microseconds of each
configuration. The model is that of compiler/compile/cost.c, for this kernel alone. First the errors
of the times are made small, of one size against each other above all; then the regret: how many
times as long the model's choice takes as the best configuration. It is made smooth: a configuration
is chosen the more likely, the faster the model says it is. Configurations that copy rows first are
judged among themselves. --splits N fits N times to one half of the sizes and judges on the other.
Needs numpy and scipy.
"""

import argparse
import math
import pathlib
import sys

import numpy
from scipy.optimize import least_squares, minimize

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import configurations as stated  # pylint: disable=wrong-import-position

# Members of struct tir_cost, and where the search begins.
FIRST = {"fetched": 140, "cached": 13000, "off_lines": 50, "off_sectors": 50, "past": 3000,
         "round": 20, "stored": 20, "uneven": 500, "memory": 3000, "unhidden": 30, "moved": 30, "start": 3000,
         "fixed": 500, "clustered": 500, "launch": 2000, "fewest_columns": 32}
PRODUCTS = 2300  # of tensor cores at the clock of short kernels
BEGUN = 4250     # bytes that a tile without products moves while another one begins
IN_GPCS = 0.91   # of the multiprocessors, for clusters of more than two CTAs
CLOCK = 1755     # cycles of a microsecond
COMMON = 0.3     # weight of the error that all configurations of a size share
LIKELY = 0.03    # by so much slower, a configuration is chosen 1 / e as often
PADDED = 0.3     # weight of configurations that copy rows first
POOR = 0.1       # regret above counts twice


def configurations(path):
    """The metas of the configurations for wgmma as arrays, in their order."""
    names = {"BM": 0, "BN": 0, "BK": 64, "SPLIT": 0, "FLIP": 0, "PAD": 0, "CM": 1, "CN": 1}
    rows = [{**names, **{name: {"true": 1, "false": 0}.get(value) or int(value)
                         for name, value in config.items() if name != "needs"}}
            for config in stated.configurations(path) if config.get("needs", "wgmma") == "wgmma"]
    return {name: numpy.array([row[name] for row in rows], float) for name in names}


def measurements(paths, count):
    """Sizes, and times with nan where a configuration was not measured."""
    sizes, times = [], []
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            if line and line[0] != "#":
                words = line.split()
                sizes.append([int(word) for word in words[:3]])
                row = [float("nan" if word == "-" else word) for word in words[3:]]
                times.append(row + [math.nan] * (count - len(row)))
    return numpy.array(sizes, float), numpy.array(times)


def ceildiv(a, b):
    return numpy.ceil(a / b)


class Model:
    """cost.c for sizes x configurations: what does not depend on the card is computed once."""

    def __init__(self, metas, sizes, multiprocessors):
        self.at_once = multiprocessors
        for name, values in metas.items():
            setattr(self, name.lower(), values)
        self.m, self.n, self.k = (sizes[:, i:i + 1] for i in range(3))
        self.cluster = self.cm * self.cn
        self.down = ceildiv(self.m, self.bm * self.cm) * self.cm
        self.across = ceildiv(self.n, self.bn * self.cn) * self.cn
        tiles = self.down * self.across
        self.parts = numpy.where(self.split, numpy.maximum(1, numpy.minimum(
            multiprocessors // tiles, self.k // (self.bk * 4))), 1)
        depth = numpy.minimum(self.k, ceildiv(ceildiv(self.k, self.bk), self.parts) * self.bk)
        self.rounds = ceildiv(depth, self.bk)
        most = numpy.where(self.cluster > 2, int(multiprocessors * IN_GPCS), multiprocessors)
        self.waves = ceildiv(tiles * self.parts, most)
        self.off_lines = (self.k * 2 % 128 > 0) | (self.pad > 0)
        self.off_sectors = (self.k * 2 % 32 > 0) & (self.pad == 0)

    def rows(self, card):
        """Of tensor cores."""
        columns = numpy.where(self.flip, self.bm, self.bn)
        return numpy.where(self.flip, self.bn, self.bm) * numpy.maximum(
            columns, card["fewest_columns"])

    def busy(self, card):
        askew = (card["off_lines"] * self.off_lines + card["off_sectors"] * self.off_sectors) / 100
        asked = self.bm / self.cn + self.bn / self.cm  # rows that no other CTA asks for
        here = self.waves * (self.bm + self.bn + asked * askew) / card["fetched"]
        there = self.down * self.across * self.parts * asked * (1 + askew) / card["cached"]
        fetch = numpy.maximum(here, there) * self.bk * 2
        past = ((self.down * self.bm - self.m) * self.across / self.cn +
                (self.across * self.bn - self.n) * self.down / self.cm) * self.parts
        fetches = fetch + past * self.bk * 2 / card["past"]
        multiply = self.waves * self.rows(card) * self.bk / PRODUCTS
        return self.rounds * (numpy.maximum(multiply, fetches) + self.waves * card["round"])

    def memory(self):
        return (numpy.where(self.pad, 0, (self.m + self.n) * self.k) +
                numpy.where(self.split, 0, self.m * self.n)) * 2

    def tile(self, card):
        row = self.bn * numpy.where(self.split, 4, 2)
        return (card["fixed"] + card["clustered"] * (self.cluster > 1) +
                card["start"] * self.split + self.bm * row / card["stored"] +
                card["uneven"] * self.bm / 64 * (row % 128 > 0))

    def sums(self, card):
        """The launch that adds up parts."""
        tiles = ceildiv(ceildiv(self.m, 2) * ceildiv(self.n, 256), self.at_once)
        moved = ceildiv(self.parts, 8) * 8 * 2048 + 1024
        return card["launch"] + tiles * (BEGUN + moved) / card["moved"]

    def copies(self, card):
        """The launch that copies rows."""
        tiles = (ceildiv(self.m, 16) + ceildiv(self.n, 16)) * ceildiv(self.k, 128)
        return card["launch"] + ceildiv(tiles, self.at_once) * (BEGUN + 16384) / card["moved"]

    def microseconds(self, card):
        busy, memory = self.busy(card), self.memory() / card["memory"]
        hidden = numpy.minimum(busy, memory) * (1 - card["unhidden"] / 100)
        total = busy + memory - hidden + self.waves * self.tile(card)
        total += numpy.where(self.split, self.sums(card), card["start"])
        return (total + self.pad * self.copies(card)) / CLOCK


class Group:
    """Configurations that are judged among themselves."""

    def __init__(self, times, which, weight):
        self.measured = ~numpy.isnan(times) & which
        self.weight = weight
        self.times = numpy.where(self.measured, times, numpy.inf)
        self.least = self.times.min(1)
        self.choices = self.measured.sum(1) > 1
        self.slower = numpy.where(self.measured, numpy.log(self.times / self.least[:, None]), 0)
        self.logs = numpy.where(self.measured, numpy.log(numpy.where(self.measured, times, 1)), 0)
        self.shares = numpy.where(self.measured, numpy.exp(-3 * self.slower), 0)

    def errors(self, guess, rows):
        """Of logarithms: of each configuration, and what all of a size have in common."""
        error = numpy.where(self.measured[rows], numpy.log(guess[rows]) - self.logs[rows], 0)
        shares = self.shares[rows]
        sums = numpy.maximum(shares.sum(1, keepdims=True), 1e-9)
        common = (shares * error).sum(1, keepdims=True) / sums
        return shares, error - common, common, sums

    def regret(self, guess, rows):
        rows = rows[self.choices[rows]]
        choice = numpy.where(self.measured[rows], guess[rows], numpy.inf).argmin(1)
        return self.times[rows, choice] / self.least[rows]

    def likely_regret(self, guess, rows):
        rows = rows[self.choices[rows]]
        logs = numpy.where(self.measured[rows], numpy.log(guess[rows]), numpy.inf)
        chance = numpy.exp((logs.min(1, keepdims=True) - logs) / LIKELY)
        return (chance * self.slower[rows]).sum(1) / chance.sum(1)


class Fit:
    def __init__(self, model, groups):
        self.model, self.groups = model, groups

    def card(self, first, x):
        return {name: value * math.exp(min(max(shift, -4), 4))
                for (name, value), shift in zip(first.items(), x)}

    def residuals(self, card, rows):
        guess = self.model.microseconds(card)
        for group in self.groups:
            shares, own, common, sums = group.errors(guess, rows)
            root = math.sqrt(group.weight)
            yield root * (numpy.sqrt(shares) * own)[shares > 0]
            yield root * COMMON * (common * numpy.sqrt(sums))[:, 0]

    def score(self, card, rows):
        guess, total = self.model.microseconds(card), 0
        for group in self.groups:
            shares, own, common, _ = group.errors(guess, rows)
            error = (shares * own ** 2).sum() / shares.sum() + ((COMMON * common) ** 2).mean()
            regret = group.likely_regret(guess, rows)
            total += group.weight * (
                error + regret.mean() + numpy.maximum(regret - POOR, 0).mean())
        return total

    def fitted(self, first, rows, steps):
        zeros, each = numpy.zeros(len(first)), 0.15 * numpy.eye(len(first))
        near = least_squares(lambda x: numpy.concatenate(
            [0.02 * x, *self.residuals(self.card(first, x), rows)]), zeros, loss="soft_l1",
            f_scale=0.08, diff_step=1e-3)
        near = self.card(first, near.x)
        best = minimize(lambda x: self.score(self.card(near, x), rows) + 5e-4 * (x ** 2).sum(),
                        zeros, method="Nelder-Mead", options={
                            "maxfev": steps, "adaptive": True,
                            "initial_simplex": numpy.vstack([zeros, each])})
        return self.card(near, best.x)

    def judge(self, label, card, rows):
        guess = self.model.microseconds(card)
        for name, group in zip(("products", "with rows copied"), self.groups):
            regret = group.regret(guess, rows)
            if len(regret):
                print(f"{label}, {name}: {math.exp(numpy.log(regret).mean()):.4f} times as long as "
                      f"the best, {(regret > 1.1).sum()} of {len(regret)} above 1.1, worst "
                      f"{regret.max():.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kernel")
    parser.add_argument("products", nargs="+")
    parser.add_argument("--multiprocessors", type=int, default=132)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--splits", type=int, default=0)
    options = parser.parse_args()
    metas = configurations(options.kernel)
    sizes, times = measurements(options.products, len(metas["BM"]))
    fit = Fit(Model(metas, sizes, options.multiprocessors),
              [Group(times, metas["PAD"] == 0, 1), Group(times, metas["PAD"] > 0, PADDED)])
    every = numpy.arange(len(sizes))
    fit.judge("first", FIRST, every)
    card = fit.fitted(FIRST, every, options.steps)
    fit.judge("found", card, every)
    print(", ".join(f".{name} = {value:.0f}" for name, value in card.items()))
    print(f".products = {PRODUCTS}, .begun = {BEGUN / card['moved']:.0f}")
    for split in range(options.splits):
        order = numpy.random.default_rng(split).permutation(len(sizes))
        ours, others = order[::2], order[1::2]
        fit.judge(f"split {split}", fit.fitted(FIRST, ours, options.steps // 2), others)


if __name__ == "__main__":
    main()
